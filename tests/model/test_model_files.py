"""Models on disk: complete, marked sensitive, and checked when they come back."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmf.errors import DamagedFile, InvalidArgument
from dpmf.files import save_tensors, sha256_of
from dpmf.methods import SGD
from dpmf.model import Model, Release
from dpmf.ratings import Ratings


def trained(users: list[Any] | None = None) -> Model:
    users = users or ["ann", "ann", "bob", "cy"]
    ratings = Ratings.of(users, [1, 2, 2, 3], [5, 3, 2, 4], scale=(1, 5))
    return SGD(n_factors=3, n_epochs=4).fit(ratings)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    trained().save(tmp_path / "model")
    return tmp_path / "model"


def edit(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    facts = json.loads((folder / "model.json").read_text())
    change(facts)
    facts.pop("digest", None)  # as an earlier version wrote it: what it says is checked all the same
    (folder / "model.json").write_text(json.dumps(facts))


@pytest.mark.parametrize("users", [["ann", "ann", "bob", "Zoë"], [7, 7, 8, -9], ["7", "7", "08", "9"]])
def test_everything_comes_back_as_it_was(tmp_path: Path, users: list[Any]) -> None:
    model = trained(users)
    model.save(tmp_path / "model")
    back = Model.load(tmp_path / "model")
    for name in ("user_factors", "user_biases", "seen_indptr", "seen_items"):
        np.testing.assert_array_equal(getattr(back, name), getattr(model, name))
    assert list(back.user_ids) == list(model.user_ids) == sorted(set(users))
    assert back.history == model.history
    assert [back.recommend(user) for user in users] == [model.recommend(user) for user in users]


def test_a_model_is_for_its_owner_only_and_says_so(folder: Path) -> None:
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert "do not publish" in (folder / "SENSITIVE").read_text()


def test_the_release_inside_a_model_is_a_release(folder: Path) -> None:
    assert Release.load(folder / "release").items.ids == Model.load(folder).release.items.ids


def test_altered_factors_are_noticed(folder: Path) -> None:
    content = bytearray((folder / "model.safetensors").read_bytes())
    content[-1] ^= 1
    (folder / "model.safetensors").write_bytes(content)
    with pytest.raises(DamagedFile, match="is damaged"):
        Model.load(folder)


def test_altered_facts_are_noticed(folder: Path) -> None:
    text = (folder / "model.json").read_text()
    (folder / "model.json").write_text(text.replace('"bob"', '"bib"'))
    with pytest.raises(DamagedFile, match="not what its digest says"):
        Model.load(folder)


@pytest.mark.parametrize("name", ["user_factors", "user_biases", "seen_indptr", "seen_items"])
def test_tensors_of_another_type_are_refused(folder: Path, name: str) -> None:
    model = Model.load(folder)
    tensors = {one: getattr(model, one) for one in ("user_factors", "user_biases", "seen_indptr", "seen_items")}
    save_tensors(folder / "model.safetensors", {**tensors, name: tensors[name].astype(np.float64)})
    edit(folder, lambda facts: facts.update(sha256=sha256_of(folder / "model.safetensors")))
    with pytest.raises(DamagedFile, match="should be float32"):
        Model.load(folder)


def test_truncated_factors_are_noticed(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes()[:50])
    with pytest.raises(DamagedFile, match="is damaged"):
        Model.load(folder)


@pytest.mark.parametrize("name", ["model.json", "model.safetensors"])
def test_a_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(DamagedFile, match=f"{name} is missing"):
        Model.load(folder)


@pytest.mark.parametrize(
    "change",
    [
        lambda facts: facts.pop("user_ids"),
        lambda facts: facts.pop("history"),
        lambda facts: facts["user_ids"].pop(),
        lambda facts: facts.update(user_ids=[1.5, 2.5, None]),
        lambda facts: facts.update(history=[{"epoch": 1, "mood": "good"}]),
        lambda facts: facts.update(history=3),
        lambda facts: facts.update(version=2),
        lambda facts: facts.update(format="dpmf-release"),
    ],
)
def test_facts_that_do_not_fit_are_refused(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    edit(folder, change)
    with pytest.raises(DamagedFile, match="model"):
        Model.load(folder)


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("seen_items", np.array([0, 1, 1, 99], np.int32)),
        ("seen_items", np.array([0, 1, 1, -1], np.int32)),
        ("seen_indptr", np.array([0, 2, 1, 4])),
        ("seen_indptr", np.array([0, 2, 3, 9])),
        ("user_factors", np.zeros((3, 5), np.float32)),
        ("user_biases", np.zeros(4, np.float32)),
    ],
)
def test_arrays_that_do_not_fit_are_refused(folder: Path, name: str, array: np.ndarray[Any, Any]) -> None:
    """Kernels do not check bounds: a position beside the catalogue must not reach them."""
    model = Model.load(folder)
    arrays = {one: getattr(model, one) for one in ("user_factors", "user_biases", "seen_indptr", "seen_items")}
    save_tensors(folder / "model.safetensors", {**arrays, name: array})
    edit(folder, lambda facts: facts.update(sha256=sha256_of(folder / "model.safetensors")))
    with pytest.raises(DamagedFile, match="is damaged"):
        Model.load(folder)


def test_a_folder_of_others_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "release").mkdir()
    (tmp_path / "release" / "notes.txt").write_text("mine")
    with pytest.raises(InvalidArgument, match=r"holds other files \(notes\.txt\)"):
        trained().save(tmp_path)
    assert (tmp_path / "release" / "notes.txt").read_text() == "mine"


def test_a_model_replaces_an_older_one(folder: Path) -> None:
    trained([1, 1, 2, 3]).save(folder)
    assert list(Model.load(folder).user_ids) == [1, 2, 3]


def test_no_folder_is_an_argument_error_that_says_what_to_name(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"no model at .*: name the folder"):
        Model.load(tmp_path / "nowhere")
