"""A run from data to saved results: streamed or not, checked before the work."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from dpmf.engine.checkpoints import Checkpoint
from dpmf.errors import InvalidArgument
from dpmf.methods import ALS, METHODS, SGD, Method, ObjectivePerturbation, Sketch
from dpmf.methods.objective.profiles import Profiles
from dpmf.model import Model, Release
from dpmf.privacy import Budget
from dpmf.ratings import Ratings
from dpmf.runs.job import Job
from dpmf.runs.outputs import Outputs
from dpmf.runs.parts import Split
from dpmf.runs.report import report_of
from dpmf.runs.training import Arguments, train_and_test

QUICK = SGD(n_factors=2, n_epochs=2)


def test_results_are_saved_and_the_same_with_little_memory(data_folder: Path, tmp_path: Path) -> None:
    saved = []
    for memory in (None, 1000):
        folder = tmp_path / str(memory)
        outputs = Outputs(folder / "release", folder / "model")
        plan = Job(QUICK, str(data_folder), split=Split(0.2, seed=3), memory=memory, outputs=outputs)
        plan.check()
        run = plan.run(Arguments(n_threads=1))
        assert run.streamed is (memory is not None)
        assert (Release.load(folder / "release").item_factors == run.model.release.item_factors).all()
        saved.append(Model.load(folder / "model").user_factors)
    assert (saved[0] == saved[1]).all()


def test_what_fits_is_not_streamed(data_folder: Path) -> None:
    assert not Job(QUICK, str(data_folder), memory=10**9).run(Arguments(n_threads=1)).streamed


def _kinds() -> list[Method]:
    private = [one for one in METHODS.values() if one.modes]
    return [
        *(one(**one.private_fields(mode, 2.0)) for one in private for mode in one.modes),
        *(one(**one.private_fields(one.plain_mode, math.inf)) for one in METHODS.values()),
    ]


@pytest.mark.parametrize("method", _kinds(), ids=lambda method: f"{method.name} {method.kind}")
def test_a_limit_is_refused_exactly_where_nothing_streams(method: Method, data_folder: Path) -> None:
    plan = Job(method, str(data_folder), memory=1000)
    if method.streams:
        plan.check()
        return
    with pytest.raises(InvalidArgument, match=f"{method.name} cannot be streamed here.*certified run"):
        plan.check()


def test_open_numbers_of_factors_count_as_the_most_there_can_be() -> None:
    assert ALS(budget=Budget(1)).most_factors == 16
    assert ALS(budget=Budget(1), n_factors=3).most_factors == 3
    assert ObjectivePerturbation(budget=Budget(1, unit="rating", neighbours="replace")).most_factors is None
    for method in _kinds():
        if "profiles" not in method.takes:
            assert method.most_factors or method.name == "ease"  # which has none


def test_profiles_tell_how_many_factors_there_are(data_folder: Path, small_ratings: Ratings) -> None:
    method = ObjectivePerturbation(budget=Budget(1, unit="rating", neighbours="replace"))
    profiles = Profiles.public(list(small_ratings.user_ids), [[0.5, 0.1]] * small_ratings.n_users)
    run = Job(method, str(data_folder), memory=1000).run(Arguments(n_threads=1, profiles=profiles))
    assert (run.streamed, run.model.release.n_factors) == (True, 2)


@pytest.mark.parametrize("inner", ["model", "checkpoint"])
def test_what_is_sensitive_may_not_lie_in_what_is_published(data_folder: Path, tmp_path: Path, inner: str) -> None:
    out, inside = tmp_path / "out", tmp_path / "out" / inner
    outputs = Outputs(out, inside if inner == "model" else None)
    with pytest.raises(InvalidArgument, match="choose folders that are apart"):
        Job(QUICK, str(data_folder), outputs=outputs).check(checkpoint=Checkpoint(inside))


def test_chains_are_refused_where_there_are_none(small_ratings: Ratings) -> None:
    with pytest.raises(InvalidArgument, match="sgd has no chains"):
        train_and_test(QUICK, small_ratings, n_chains=2, n_threads=1)


def test_a_report_adds_what_the_method_reports(small_ratings: Ratings) -> None:
    method = Sketch(n_epochs=1, budget=Budget(math.inf))
    report = report_of(train_and_test(method, small_ratings, n_threads=1), method, seconds=1.0)
    assert list(report)[-1] == "sketch"
    (section,) = method.sections(report)
    assert f"{report['sketch']['rows']} rows" in section.note
