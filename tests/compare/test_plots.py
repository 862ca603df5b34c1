"""Pictures get drawn, on axes of ours or of the caller's."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import IO

import numpy as np
import pytest

from dpmf.compare.plots import catalogue_map, convergence, demo_picture, traces
from dpmf.errors import MissingExtra
from dpmf.methods import SGD
from dpmf.methods.sgld.convergence import Convergence
from dpmf.model import Model
from dpmf.ratings import Ratings

figure = pytest.importorskip("matplotlib.figure")


@pytest.fixture(scope="module")
def model(small_ratings: Ratings) -> Model:
    return SGD(n_factors=4, n_epochs=3, validation=0.2).fit(small_ratings)


PANELS = {"rmse": ({1.0: 0.9, 5.0: 0.8, np.inf: 0.7}, "per-user mean", 1.0), "ndcg": ({1.0: 0.2}, "popular", 0.1)}


def draw_demonstration(model: Model, path: Path) -> None:
    demo_picture(model, model.person("person-00001"), ["One", "Two"], PANELS, path)


def test_the_picture_of_the_demonstration_is_a_png_file(model: Model, tmp_path: Path) -> None:
    draw_demonstration(model, tmp_path / "demo.png")
    assert (tmp_path / "demo.png").read_bytes().startswith(b"\x89PNG")
    assert [file.name for file in tmp_path.iterdir()] == ["demo.png"]


def test_a_picture_that_fails_leaves_no_file(model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: object, file: IO[bytes], **_: object) -> None:
        file.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(figure.Figure, "savefig", fail)
    with pytest.raises(OSError, match="No space"):
        draw_demonstration(model, tmp_path / "demo.png")
    assert list(tmp_path.iterdir()) == []


def test_axes_of_the_caller_are_used(model: Model) -> None:
    left, right = figure.Figure().subplots(1, 2)
    assert catalogue_map(model, ax=left) is left
    assert convergence(model, ax=right) is right
    assert left.get_title()
    assert right.get_xlabel() == "epoch"


def test_traces_show_every_chain_and_the_verdict() -> None:
    ax = traces(Convergence.of(np.random.default_rng(0).normal(size=(3, 20, 5))))
    assert len(ax.get_lines()) == 3 * 3
    assert ax.get_title() == "3 chains: not converged: do not rely on this"


def test_the_map_shows_every_item_once_and_the_person_if_there_is_one(model: Model) -> None:
    ax = catalogue_map(model, model.person("person-00001"))
    assert sum(len(points.get_offsets()) for points in ax.collections) == len(model.release.items)
    assert [note.get_text() for note in ax.texts] == ["one person's taste"]
    assert not catalogue_map(model).texts


def test_the_map_can_draw_a_model_of_one_factor(small_ratings: Ratings) -> None:
    model = SGD(n_factors=1, n_epochs=1).fit(small_ratings)
    ax = catalogue_map(model, model.person("person-00001"))
    assert sum(len(points.get_offsets()) for points in ax.collections) == small_ratings.n_items


def test_convergence_shows_what_the_history_says(model: Model) -> None:
    training, validation = convergence(model).get_lines()
    assert list(training.get_ydata()) == [one.train_rmse for one in model.history]
    assert list(validation.get_ydata()) == [one.validation_rmse for one in model.history]


def test_without_validation_there_is_one_line(small_ratings: Ratings) -> None:
    assert len(convergence(SGD(n_factors=2, n_epochs=2).fit(small_ratings)).get_lines()) == 1


def test_without_matplotlib_the_error_says_what_to_install(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtra, match=r"pip install 'dpmf\[plot\]'"):
        convergence(model)
