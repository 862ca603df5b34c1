"""Releases on disk: what is in them, and that a damaged one is refused with one clear sentence."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmf.errors import DamagedFile, DpmfError, InvalidArgument
from dpmf.files import digest_of, save_tensors, sha256_of
from dpmf.methods import SGD
from dpmf.model import Release
from dpmf.model import release as release_module
from dpmf.model.release_json import ids_of_json
from dpmf.privacy import Budget, GaussianEvent, Guarantee
from dpmf.ratings import Items, Ratings, Scale

FIELDS = {"format", "version", "mean", "scale", "ridge", "items", "configuration", "guarantee", "sha256", "digest"}
Damage = Callable[[Path], object]


def edit(change: Callable[[dict[str, Any]], object], *, seal: bool = True) -> Damage:
    """Return a damage that changes the content of release.json, with a digest that fits unless told otherwise."""

    def damage(folder: Path) -> None:
        facts = json.loads((folder / "release.json").read_text())
        change(facts)
        if seal and "digest" in facts:
            with contextlib.suppress(ValueError):
                facts["digest"] = digest_of(
                    {name: facts[name] for name in facts if name not in ("digest", "signature")}
                )
        (folder / "release.json").write_text(json.dumps(facts))

    return damage


def tensors(**arrays: Any) -> Damage:
    """Return a damage that replaces the tensors, with a checksum that fits."""

    def damage(folder: Path) -> None:
        save_tensors(folder / "release.safetensors", arrays)
        edit(lambda facts: facts.update(sha256=sha256_of(folder / "release.safetensors")))(folder)

    return damage


def flip(name: str, place: int, bits: int = 1) -> Damage:
    def damage(folder: Path) -> None:
        content = bytearray((folder / name).read_bytes())
        content[place] ^= bits
        (folder / name).write_bytes(content)

    return damage


def truncate(name: str, length: int) -> Damage:
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:length])


def downgrade(facts: dict[str, Any]) -> None:
    """Take the digest away, as the first format had none, and claim privacy."""
    del facts["digest"]
    events = [GaussianEvent("item sums", 9.0, coordinates=12)]
    certified = Guarantee.certified_by(Budget(1.0), events, releases=["item factors"])
    facts.update(version=1, guarantee=certified.to_json())


FACTORS, BIASES = np.zeros((6, 2), np.float32), np.zeros(6, np.float32)

DAMAGES: dict[str, tuple[Damage, str]] = {
    "factors altered": (flip("release.safetensors", -1), "is damaged"),
    "tensor header altered": (flip("release.safetensors", 3), "is damaged"),
    "tensors truncated": (truncate("release.safetensors", 40), "is damaged"),
    "tensors empty": (truncate("release.safetensors", 0), "is damaged"),
    "tensors missing": (lambda folder: (folder / "release.safetensors").unlink(), "is missing"),
    "facts missing": (lambda folder: (folder / "release.json").unlink(), "is missing"),
    "facts truncated": (truncate("release.json", 60), "not JSON"),
    "facts empty": (truncate("release.json", 0), "not JSON"),
    "facts not text": (lambda folder: (folder / "release.json").write_bytes(b"\xff\xfe{}"), "not JSON"),
    "facts nested too deep": (lambda folder: (folder / "release.json").write_text("[" * 10**6), "not JSON"),
    "facts a list": (lambda folder: (folder / "release.json").write_text("[]"), "does not describe"),
    "another format": (edit(lambda facts: facts.update(format="model")), "does not describe"),
    "newer format": (edit(lambda facts: facts.update(version=99)), "newer than this dpmf reads.*update"),
    "no format number": (edit(lambda facts: facts.update(version="one")), "'one' is not the number of a format"),
    "extra field": (edit(lambda facts: facts.update(n_users=7)), "field 'n_users' is missing or unknown"),
    "missing field": (edit(lambda facts: facts.pop("ridge")), "field 'ridge' is missing or unknown"),
    "unknown guarantee": (edit(lambda facts: facts["guarantee"].update(epsilon=1.0)), "guarantee"),
    "mean altered": (edit(lambda facts: facts.update(mean=3.3), seal=False), "not what its digest says"),
    "title altered": (edit(lambda facts: facts["items"]["titles"].reverse(), seal=False), "not what its digest says"),
    "digest no text": (edit(lambda facts: facts.update(digest=None), seal=False), "not what its digest says"),
    "digest missing": (edit(lambda facts: facts.pop("digest")), "field 'digest' is missing"),
    "no digest by an older format": (edit(lambda facts: facts.update(version=1)), "field 'digest' is .* unknown"),
    "private in a format without a digest": (edit(downgrade), "not one that its format knows"),
    "extra item field": (edit(lambda facts: facts["items"].update(raters=[1])), "raters"),
    "title lost": (edit(lambda facts: facts["items"]["titles"].pop()), "counts must agree"),
    "item lost": (edit(lambda facts: [column.pop() for column in list(facts["items"].values())[:3]]), "5 items"),
    "item twice": (edit(lambda facts: facts["items"].update(ids=[10, 10, 30, 40, 50, 60])), "twice"),
    "ids of a strange type": (edit(lambda facts: facts["items"].update(ids=[[1], 2, 3, 4, 5, None])), "ids should be"),
    "titles of a strange type": (edit(lambda facts: facts["items"].update(titles=[1, 2, 3, 4, 5, 6])), "titles"),
    "titles one text": (edit(lambda facts: facts["items"].update(titles="abcdef")), "titles"),
    "scale upside down": (edit(lambda facts: facts.update(scale={"lo": 5, "hi": 1})), "not a scale"),
    "scale a list": (edit(lambda facts: facts.update(scale=[1, 5])), "is damaged"),
    "mean no number": (edit(lambda facts: facts.update(mean="high")), "is damaged"),
    "mean not finite": (edit(lambda facts: facts.update(mean=float("inf"))), "digest"),
    "mean of 400 digits": (edit(lambda facts: facts.update(mean=10**400)), "hundreds of digits"),
    "scale of 400 digits": (edit(lambda facts: facts["scale"].update(hi=10**400)), "hundreds of digits"),
    "declared in words": (edit(lambda facts: facts["items"].update(declared="false")), "true or false"),
    "scale declared in words": (edit(lambda facts: facts["scale"].update(declared="no")), "true or false"),
    "ridge no number": (edit(lambda facts: facts["ridge"].update(bias="x")), "is damaged"),
    "ridge negative": (edit(lambda facts: facts["ridge"].update(factors=-1)), "from 0 on"),
    "configuration a list": (edit(lambda facts: facts.update(configuration=[])), "configuration"),
    "too few rows": (tensors(item_factors=FACTORS[:4], item_biases=BIASES), "6 items, 4 rows"),
    "too few biases": (tensors(item_factors=FACTORS, item_biases=BIASES[:4]), "4 biases"),
    "factors of a wrong shape": (tensors(item_factors=FACTORS.ravel(), item_biases=BIASES), "float32 matrix"),
    "biases of a wrong shape": (tensors(item_factors=FACTORS, item_biases=FACTORS), "float32 vector"),
    "factors of a wrong type": (tensors(item_factors=FACTORS.astype(np.float64), item_biases=BIASES), "float32"),
    "factors NaN": (tensors(item_factors=FACTORS * np.float32("nan"), item_biases=BIASES), "finite"),
    "biases infinite": (tensors(item_factors=FACTORS, item_biases=BIASES - np.float32("inf")), "finite"),
    "users smuggled in": (tensors(item_factors=FACTORS, item_biases=BIASES, user_factors=FACTORS), "should hold"),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_release_is_refused(release: Release, tmp_path: Path, name: str) -> None:
    damage, message = DAMAGES[name]
    release.save(tmp_path / "release")
    Release.load(tmp_path / "release")
    damage(tmp_path / "release")
    with pytest.raises(DamagedFile, match=message) as refused:
        Release.load(tmp_path / "release")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("bit", [0, 4, 7])
def test_a_wrong_bit_in_the_facts_never_crashes(release: Release, tmp_path: Path, bit: int) -> None:
    release.save(tmp_path / "release")
    whole = (tmp_path / "release" / "release.json").read_bytes()
    refused = 0
    for place in range(len(whole)):
        flip("release.json", place, 1 << bit)(tmp_path / "release")
        try:
            Release.load(tmp_path / "release").fold_in({10: 3, 20: 3}).recommend(2)
        except DpmfError:
            refused += 1
        (tmp_path / "release" / "release.json").write_bytes(whole)
    assert refused > len(whole) * 0.7  # what is left is white space


def test_everything_comes_back_as_it_was(release: Release, tmp_path: Path) -> None:
    release.save(tmp_path / "release")
    back = Release.load(str(tmp_path / "release"))
    np.testing.assert_array_equal(back.item_factors, release.item_factors)
    np.testing.assert_array_equal(back.item_biases, release.item_biases)
    assert list(back.items.ids) == list(release.items.ids)
    assert (back.items.titles, back.items.genres) == (release.items.titles, release.items.genres)
    assert (back.items.declared, back.scale, back.mean) == (True, release.scale, release.mean)
    assert (back.ridge, back.configuration) == (release.ridge, release.configuration)
    assert back.guarantee == release.guarantee


def test_releases_of_the_first_format_stay_readable(release: Release, tmp_path: Path) -> None:
    release.save(tmp_path / "release")

    def age(facts: dict[str, Any]) -> None:
        del facts["digest"], facts["guarantee"]["releases"]
        facts["version"] = 1

    edit(age)(tmp_path / "release")
    assert Release.load(tmp_path / "release").guarantee == Guarantee.none()


def test_a_guarantee_comes_back(release: Release, tmp_path: Path) -> None:
    events = [GaussianEvent("item sums", 9.0, coordinates=12)]
    certified = Guarantee.certified_by(Budget(1.0), events, releases=["item factors"])
    replace(release, guarantee=certified).save(tmp_path / "release")
    assert Release.load(tmp_path / "release").guarantee == certified


@pytest.mark.parametrize("ids", [["a", "b"], ["1", "02"], [7, -3], ["é", "\u2028 odd"]])
def test_ids_keep_their_type(release: Release, tmp_path: Path, ids: list[object]) -> None:
    two = replace(
        release, items=Items.of(ids), item_factors=release.item_factors[:2], item_biases=release.item_biases[:2]
    )
    two.save(tmp_path / "release")
    assert list(Release.load(tmp_path / "release").items.ids) == ids


def test_a_release_is_two_files_and_its_facts_are_a_whitelist(release: Release, tmp_path: Path) -> None:
    release.save(tmp_path / "release")
    assert sorted(file.name for file in (tmp_path / "release").iterdir()) == ["release.json", "release.safetensors"]
    facts = json.loads((tmp_path / "release" / "release.json").read_text())
    assert set(facts) == FIELDS
    assert set(facts["items"]) == {"ids", "titles", "genres", "declared"}
    assert set(facts["scale"]) == {"lo", "hi", "declared"}
    assert set(facts["ridge"]) == {"bias", "factors", "exponent"}


def test_neither_users_nor_their_number_are_in_a_release(tmp_path: Path) -> None:
    users = [f"person-{number}" for number in range(1237)]
    ratings = Ratings.of(users + users[:617], [1] * 1237 + [2] * 617, [3] * 1854, scale=(1, 5))
    SGD(n_factors=2, n_epochs=1).fit(ratings).release.save(tmp_path / "release")
    content = b"".join(file.read_bytes() for file in (tmp_path / "release").iterdir())
    for secret in (b"person", b"1237", b"1854", b"rmse", str(tmp_path).encode()):
        assert secret not in content


@pytest.mark.parametrize("step", ["save_tensors", "write_text", "sha256_of"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_failure_while_saving_leaves_the_old_release(
    release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, error: BaseException
) -> None:
    release.save(tmp_path / "release")

    def fail(*_: object) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(release_module, step, fail)
        with pytest.raises(type(error)):
            replace(release, mean=1.5).save(tmp_path / "release")
    assert Release.load(tmp_path / "release").mean == release.mean
    assert [file.name for file in tmp_path.iterdir()] == ["release"]


def test_a_release_replaces_an_older_one(release: Release, tmp_path: Path) -> None:
    release.save(tmp_path / "release")
    replace(release, mean=1.5).save(tmp_path / "release")
    assert Release.load(tmp_path / "release").mean == 1.5
    assert [file.name for file in tmp_path.iterdir()] == ["release"]


def test_a_folder_of_others_is_not_overwritten(release: Release, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(InvalidArgument, match=r"holds other files \(thesis\.tex\)"):
        release.save(tmp_path)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_no_folder_is_an_argument_error_that_says_what_to_name(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"no release at .*: name the folder"):
        Release.load(tmp_path / "nowhere")


def implicit(release: Release) -> Release:
    return replace(release, scale=Scale(0, 1), mean=0.0, feedback="implicit", alpha=2.0)


def test_only_implicit_feedback_needs_the_newest_format(release: Release, tmp_path: Path) -> None:
    """So whoever has an older dpmf goes on reading releases of ratings, and is told to update for others."""
    release.save(tmp_path / "ratings")
    implicit(release).save(tmp_path / "items")
    facts = [json.loads((tmp_path / name / "release.json").read_text()) for name in ("ratings", "items")]
    assert [one["version"] for one in facts] == [2, 3]
    assert facts[1].keys() - facts[0].keys() == {"feedback", "alpha"}
    back = Release.load(tmp_path / "items")
    assert (back.feedback, back.alpha, back.is_implicit) == ("implicit", 2.0, True)
    assert back.fold_in([40]).recommend(3) == implicit(release).fold_in([40]).recommend(3)
    assert not Release.load(tmp_path / "ratings").is_implicit


@pytest.mark.parametrize(
    "change",
    [
        lambda facts: facts.pop("alpha"),
        lambda facts: facts.pop("feedback"),
        lambda facts: facts.update(version=2),
        lambda facts: facts.update(alpha=-1.0),
        lambda facts: facts.update(alpha="1"),
        lambda facts: facts.update(feedback="both"),
        lambda facts: facts.update(users=7),
    ],
)
def test_a_damaged_release_of_implicit_feedback_is_refused(
    release: Release, tmp_path: Path, change: Callable[[dict[str, Any]], object]
) -> None:
    implicit(release).save(tmp_path / "release")
    edit(change)(tmp_path / "release")
    with pytest.raises(DamagedFile):
        Release.load(tmp_path / "release")


def test_items_alone_are_not_enough_for_a_release_of_ratings(release: Release) -> None:
    with pytest.raises(InvalidArgument, match="give a mapping from items to ratings"):
        release.fold_in([10, 20])


def test_ids_of_two_types_as_older_versions_wrote_them_are_texts() -> None:
    ids = ids_of_json([7, "x"])
    assert list(ids) == ["7", "x"]
    assert ids.encode(np.array([7, 8])).tolist() == [0, -1]
