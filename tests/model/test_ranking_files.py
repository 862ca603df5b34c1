"""The ranking part of a release on disk: what comes back, and that a damaged one is refused with one clear sentence."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from dpmf.errors import DamagedFile, DpmfError
from dpmf.files import digest_of, load_tensors, save_tensors, sha256_of
from dpmf.model import Ranking, Release
from dpmf.model.ranking_tensors import TENSORS

Rankings = Callable[..., Ranking]
Content = dict[str, Any]


@pytest.fixture
def ranked(release: Release, ranking_of: Rankings) -> Release:
    return replace(release, ranking=ranking_of(6))


def rewrite(folder: Path, change: Callable[[Content, Content], object]) -> None:
    """Change tensors and facts, with checksums that fit."""
    names = ["item_factors", "item_biases", *TENSORS]
    tensors, facts = (
        load_tensors(folder / "release.safetensors", names),
        json.loads((folder / "release.json").read_text()),
    )
    change(tensors, facts)
    save_tensors(folder / "release.safetensors", tensors)
    facts["sha256"] = sha256_of(folder / "release.safetensors")
    facts["digest"] = digest_of({name: facts[name] for name in facts if name not in ("digest", "signature")})
    (folder / "release.json").write_text(json.dumps(facts))


def test_a_ranking_comes_back_and_saving_it_again_changes_nothing(ranked: Release, tmp_path: Path) -> None:
    ranked.save(tmp_path / "one")
    back = Release.load(tmp_path / "one")
    assert back.ranking is not None
    assert ranked.ranking is not None
    for name in ("items", "left", "right", "indptr", "pairs", "values", "popularity", "threshold", "lowest_weight"):
        np.testing.assert_array_equal(getattr(back.ranking, name), getattr(ranked.ranking, name))
    assert back.fold_in({10: 5, 60: 4}).recommend(6) == ranked.fold_in({10: 5, 60: 4}).recommend(6)
    back.save(tmp_path / "two")
    one, two = ((tmp_path / name / "release.safetensors").read_bytes() for name in ("one", "two"))
    assert one == two


def test_only_a_ranking_needs_the_newest_format(ranked: Release, tmp_path: Path) -> None:
    ranked.save(tmp_path / "both")
    replace(ranked, ranking=None).save(tmp_path / "ratings")
    facts = [json.loads((tmp_path / name / "release.json").read_text()) for name in ("ratings", "both")]
    assert [one["version"] for one in facts] == [2, 4]
    assert facts[1].keys() - facts[0].keys() == {"feedback", "alpha", "ranking"}
    assert (facts[1]["ranking"]["n_items"], facts[1]["ranking"]["n_factors"], facts[1]["ranking"]["n_pairs"]) == (
        4,
        3,
        8,
    )


def test_factors_take_three_bytes_for_two_numbers(release: Release, ranking_of: Rankings, tmp_path: Path) -> None:
    wide = ranking_of(6, n_factors=1000)
    replace(release, ranking=wide).save(tmp_path / "release")
    assert (tmp_path / "release" / "release.safetensors").stat().st_size < 2 * 4 * 1500 + 2 * 2 * 1004 + 2500


def test_a_release_that_ranks_can_be_signed(ranked: Release, tmp_path: Path) -> None:
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    (tmp_path / "private.pem").write_bytes(private)
    (tmp_path / "public.pem").write_bytes(public)
    ranked.save(tmp_path / "release", sign_key=tmp_path / "private.pem")
    assert Release.load(tmp_path / "release", public_key=tmp_path / "public.pem").ranks


def put(name: str, value: Any) -> Callable[[Content, Content], object]:
    return lambda tensors, facts: tensors.update({f"ranking_{name}": value})


def fact(**changes: Any) -> Callable[[Content, Content], object]:
    return lambda tensors, facts: facts["ranking"].update(changes)


DAMAGES: dict[str, tuple[Callable[[Content, Content], object], str]] = {
    "no ranking": (lambda tensors, facts: facts.pop("ranking"), "field 'ranking' is missing"),
    "older format": (lambda tensors, facts: facts.update(version=3), "field 'ranking' is .* unknown"),
    "ranking a list": (lambda tensors, facts: facts.update(ranking=[]), "should have the fields"),
    "extra fact": (fact(users=7), "should have the fields"),
    "threshold in words": (fact(threshold="high"), "should be a number"),
    "threshold off the scale": (fact(threshold=7.0), "on the scale"),
    "weight above one": (fact(lowest_weight=1.5), "from 0 to 1"),
    "counts without limit": (
        lambda tensors, facts: facts.update(
            feedback="implicit", ranking={**facts["ranking"], "threshold": 4.0, "lowest_weight": 1e-300}
        ),
        "a count of one should weigh more",
    ),
    "size in words": (fact(n_items="4"), "whole numbers"),
    "another size": (fact(n_items=5), "other sizes"),
    "another number of factors": (fact(n_factors=9), "rows of 15 bytes"),
    "another number of pairs": (fact(n_pairs=9), "other sizes"),
    "huge exponent": (fact(value_exponent=10**9), "in range"),
    "tensor missing": (lambda tensors, facts: tensors.pop("ranking_pairs"), "should hold"),
    "users smuggled in": (put("users", np.zeros(3)), "should hold"),
    "items not ascending": (put("items", np.array([0, 2, 1, 5], np.int32)), "ascending positions"),
    "items outside": (put("items", np.array([0, 1, 2, 6], np.int32)), "ascending positions"),
    "items of another type": (put("items", np.arange(4)), "int32"),
    "items a matrix": (put("items", np.zeros((4, 1), np.int32)), "other sizes"),
    "factors of another type": (put("left", np.zeros((4, 6), np.float32)), "rows of 6 bytes"),
    "factors cut off": (put("right", np.zeros((4, 5), np.uint8)), "rows of 6 bytes"),
    "exponents missing": (put("left_exponents", np.zeros(6, np.int16)), "7 of them"),
    "exponents out of range": (put("right_exponents", np.full(7, 9999, np.int16)), "out of range"),
    "factors infinite": (put("right_exponents", np.full(7, 150, np.int16)), "finite"),
    "pairs outside": (put("pairs", np.array([0, 1, 0, 1, 0, 1, 0, 4], np.int32)), "ascending rows"),
    "pairs twice": (put("pairs", np.array([1, 1, 0, 1, 0, 1, 0, 1], np.int32)), "ascending rows"),
    "rows not ascending": (put("indptr", np.array([0, 4, 2, 6, 8])), "ascending rows"),
    "rows too long": (put("indptr", np.array([0, 2, 4, 6, 9])), "ascending rows"),
    "rows missing": (put("indptr", np.array([0, 8])), "ascending rows"),
    "no rows": (put("indptr", np.zeros(0, np.int64)), "ascending rows"),
    "values missing": (put("values", np.zeros(7, np.float16)), "7 values"),
    "values NaN": (put("values", np.full(8, np.nan, np.float16)), "finite"),
    "values of another type": (put("values", np.zeros(8, np.float32)), "16-bit"),
    "popularity missing": (put("popularity", np.zeros(5, np.float32)), "popularity of shape"),
    "popularity infinite": (put("popularity", np.full(6, np.inf, np.float32)), "finite"),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_ranking_is_refused(ranked: Release, tmp_path: Path, name: str) -> None:
    damage, message = DAMAGES[name]
    ranked.save(tmp_path / "release")
    rewrite(tmp_path / "release", lambda tensors, facts: None)
    Release.load(tmp_path / "release")
    rewrite(tmp_path / "release", damage)
    with pytest.raises(DamagedFile, match=message) as refused:
        Release.load(tmp_path / "release")
    assert "\n" not in str(refused.value)


def test_a_ranking_that_is_not_finite_is_not_saved(ranked: Release, tmp_path: Path) -> None:
    assert ranked.ranking is not None
    diverged = replace(ranked.ranking, left=ranked.ranking.left * np.float32("nan"))
    with pytest.raises(DpmfError, match="finite, and nothing was saved"):
        replace(ranked, ranking=diverged).save(tmp_path / "release")
    assert not (tmp_path / "release").exists()
