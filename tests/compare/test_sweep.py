"""A comparison runs what is asked for, once, on the same splits, and goes on after anything."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmf.compare.measurement import RankedParts, measure
from dpmf.compare.results import BIASES, EXACT_EASE, NON_PRIVATE, OWN_MEAN, POPULAR, PRIVATE_POPULAR, Row, Table
from dpmf.compare.sweep import Setting, Sweep, points_of, sweep
from dpmf.errors import InvalidArgument
from dpmf.evaluation import baseline_errors, evaluate, prediction_errors
from dpmf.evaluation.accuracy import by_activity, by_popularity
from dpmf.evaluation.metrics import rmse
from dpmf.methods import METHODS, SGD
from dpmf.methods.objective.profiles import Profiles
from dpmf.ratings import Ratings
from dpmf.runs.parts import Split

QUICK: dict[str, dict[str, Any]] = {"sgd": {"n_factors": 4, "n_epochs": 3}, "als": {"n_factors": 2, "n_epochs": 2}}


def plan_of(*epsilons: float, methods: tuple[str, ...] = ("als",), **how: Any) -> Sweep:
    settings = {name: one for name, one in QUICK.items() if name in (*methods, "sgd")}
    return Sweep(points_of(methods, ["certified", "paper"], epsilons), **{"settings": settings, "repeats": 2, **how})


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(tmp_path / "runs.csv")


def test_every_method_is_run_in_the_modes_it_has() -> None:
    points = points_of(["als", "sgld", "objective", "sgd"], ["certified", "paper"], [1.0, math.inf])
    assert [(one.method, one.mode, one.epsilon) for one in points] == [
        ("als", "certified", 1.0),
        ("als", "none", math.inf),
        ("sgld", "certified", 1.0),
        ("sgld", "paper", 1.0),
        ("sgld", "none", math.inf),
        ("objective", "paper", 1.0),
        ("objective", "none", math.inf),
    ]
    assert Setting("objective", "certified", 1.0) in points_of(["objective"], ["certified"], [1.0], with_profiles=True)


@pytest.mark.parametrize(
    ("methods", "modes", "words"),
    [
        (["svd"], ["certified"], "not known"),
        (["als"], ["paper"], "als has no mode paper here: add certified"),
        (["objective"], ["certified"], "give profiles"),
    ],
)
def test_what_cannot_be_run_is_refused(methods: list[str], modes: list[str], words: str) -> None:
    with pytest.raises(InvalidArgument, match=words):
        points_of(methods, modes, [1.0])


def test_fields_that_a_method_refuses_are_told_before_anything_is_read() -> None:
    with pytest.raises(InvalidArgument, match="has no setting"):
        plan_of(1.0, settings={"als": {"speed": "9"}})
    with pytest.raises(InvalidArgument, match="which is not compared"):
        plan_of(1.0, settings={"sketch": {"depth": "2"}})


@pytest.mark.parametrize("name", ["mode", "seed", "budget", "items_public", "feedback", "eps_i"])
def test_fields_that_labels_are_made_from_cannot_be_set(name: str) -> None:
    with pytest.raises(InvalidArgument, match=f"als.{name} cannot be set here"):
        plan_of(1.0, settings={"als": {name: "1"}})


NOT_TRAINED = (OWN_MEAN, BIASES, POPULAR, EXACT_EASE, PRIVATE_POPULAR)


def test_biases_and_popularity_are_measured_beside_methods(small_ratings: Ratings, table: Table) -> None:
    rows = sweep(plan_of(1.0, 1e6, repeats=1, holdout=0.2), small_ratings, table, n_threads=1)
    found = {(row.method, row.asked): row for row in rows}
    free, biases = found[OWN_MEAN, math.inf], found[BIASES, math.inf]
    assert biases.rmse is not None
    assert free.rmse is not None
    assert biases.rmse < free.rmse
    assert biases.recall is not None
    exact, private = found[POPULAR, math.inf], found[PRIVATE_POPULAR, 1.0]
    ease = found[EXACT_EASE, math.inf]
    assert ease.ndcg is not None
    assert ease.rmse is None
    assert exact.ndcg is not None
    assert private.ndcg is not None
    assert 0 <= private.ndcg <= 1
    assert private.rmse is None
    assert not any(row.certified or row.error for row in (biases, exact, private))
    assert "cannot be met" in found[PRIVATE_POPULAR, 1e6].error  # such as no method could


def test_all_methods_of_a_repeat_have_the_same_split_and_each_repeat_another(
    small_ratings: Ratings, table: Table
) -> None:
    rows = sweep(plan_of(1.0, holdout=0.2, seed=5), small_ratings, table, n_threads=1)
    assert len(rows) == 14
    found = {(row.method, row.repeat): row for row in rows}
    for repeat in (0, 1):
        train, test = small_ratings.split(0.2, seed=5 + repeat)
        model = SGD(n_factors=4, n_epochs=3, seed=5 + repeat).fit(train)
        assert found[NON_PRIVATE, repeat].rmse == rmse(prediction_errors(model, test))
        assert found[OWN_MEAN, repeat].rmse == rmse(baseline_errors(train, test))
        assert found[POPULAR, repeat].recall is not None
        assert found["als", repeat].seed == 5 + repeat
        errors = prediction_errors(model, test)
        for name, grouped in (("by_popularity", by_popularity), ("by_activity", by_activity)):
            assert getattr(found[NON_PRIVATE, repeat], name) == [
                [high, count, error] for high, count, (error,) in grouped(train, test, errors)
            ]
        assert found[NON_PRIVATE, repeat].recall == evaluate(model, test)["recall@10"]
    assert found[OWN_MEAN, 0].rmse != found[OWN_MEAN, 1].rmse
    assert found[NON_PRIVATE, 0].by_popularity != found[NON_PRIVATE, 0].by_activity


def test_splits_and_neighbours_are_those_asked_for(small_ratings: Ratings, table: Table) -> None:
    points = *points_of(["als"], ["certified"], [1.0]), *points_of(["sketch"], ["paper"], [1.0])
    settings = {**QUICK, "sketch": {"n_epochs": 1}}
    plan = Sweep(points, repeats=1, how="per-user", holdout=0.3, neighbours="replace", settings=settings)
    rows = {(row.method, row.mode): row for row in sweep(plan, small_ratings, table, n_threads=1)}
    train, test = small_ratings.split(0.3, seed=0, how="per-user")
    assert rows[OWN_MEAN, "none"].rmse == rmse(baseline_errors(train, test))
    assert rows["als", "certified"].neighbours == "replace"
    assert rows["sketch", "paper"].neighbours == "add-remove"  # what the claim is about


def test_without_privacy_objective_is_that_of_its_paper() -> None:
    plan = plan_of(math.inf, methods=("objective", "gaussian"))
    kinds = {point.method: getattr(plan.configured(point, 0), "kind", "") for point in plan.points}
    assert kinds == {"objective": "published", "gaussian": "none"}


def test_a_run_that_diverges_is_not_a_result(small_ratings: Ratings, table: Table) -> None:
    settings = {"sgd": QUICK["sgd"], "gaussian": {"learning_rate": 1e30}}
    plan = Sweep(points_of(["gaussian"], ["certified"], [1.0]), repeats=1, settings=settings)
    with np.errstate(all="ignore"):
        (row,) = (one for one in sweep(plan, small_ratings, table, n_threads=1) if one.method == "gaussian")
    assert row.error
    assert row.recall is None


def test_lists_are_made_for_the_same_people_every_time(small_ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpmf.compare.measurement.MOST_RANKED", 10)
    first, again, other = (RankedParts.of(small_ratings, Split(0.2, seed=seed)) for seed in (1, 1, 2))
    assert np.count_nonzero(np.diff(first.ranked.indptr)) == 10
    assert (first.ranked.indptr == again.ranked.indptr).all()
    assert (first.ranked.indptr != other.ranked.indptr).any()


@pytest.mark.parametrize("method", ["als", "sgld", "gaussian", "sketch"])
def test_what_is_compiled_is_not_timed(
    small_ratings: Ratings, table: Table, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    kind = METHODS[method]
    fit = kind.fit

    def counted(self: Any, ratings: Ratings, **how: Any) -> Any:
        seen.append(ratings.n_users)
        return fit(self, ratings, **how)

    monkeypatch.setattr(kind, "fit", counted)
    settings = {"sgd": QUICK["sgd"], method: {"n_epochs": 1}}
    modes = ["certified"] if method == "als" else ["certified", "paper"]
    plan = Sweep(points_of([method], modes, [5.0, 9.0]), repeats=1, settings=settings)
    assert not any(row.error for row in sweep(plan, small_ratings, table, n_threads=1))
    few, everybody = 50, small_ratings.n_users
    assert (
        seen == {1: [few, everybody, everybody], 2: [few, everybody, few, everybody, everybody, everybody]}[len(modes)]
    )


def test_private_rows_carry_the_whole_guarantee_and_noise_has_no_seed(small_ratings: Ratings, table: Table) -> None:
    plan = plan_of(50.0, methods=("als", "objective"), repeats=1, delta=1e-5)
    rows = {row.method: row for row in sweep(plan, small_ratings, table, n_threads=1)}
    again = {row.method: row for row in sweep(plan, small_ratings, Table(table.path.with_name("b.csv")), n_threads=1)}
    als, claim = rows["als"], rows["objective"]
    assert (als.epsilon, als.delta, als.unit, als.certified) == (50.0, 1e-5, "user", True)
    assert als.guarantee["events"]
    assert (claim.mode, claim.unit, claim.neighbours, claim.certified) == ("paper", "rating", "replace", False)
    assert claim.guarantee["assumptions"]
    assert als.rmse != again["als"].rmse  # at a small epsilon, noise may leave nothing of either
    assert rows["sgd"].rmse == again["sgd"].rmse
    assert rows["sgd"].guarantee == {}


def test_only_the_first_repeat_is_timed_and_threads_do_not_change_results(small_ratings: Ratings, table: Table) -> None:
    settings: dict[str, Any] = {"settings": {**QUICK, "als": {**QUICK["als"], "noise_seed": 3}}}
    alone = sweep(plan_of(1.0, 5.0, **settings), small_ratings, table, n_threads=2, jobs=1)
    together = sweep(plan_of(1.0, 5.0, **settings), small_ratings, Table(table.path.with_name("b.csv")), n_threads=2)
    trained = [row for row in together if row.method not in NOT_TRAINED]
    assert {(row.repeat, row.seconds is None, row.peak_memory is None) for row in trained} == {
        (0, False, False),
        (1, True, True),
    }
    assert {row.key: row.rmse for row in alone} == {row.key: row.rmse for row in together}
    assert {row.repeat for row in alone if row.seconds is not None} == {0}
    assert not any(row.certified for row in alone)  # the noise had a seed


def test_nothing_is_run_twice_and_more_can_be_added(
    small_ratings: Ratings, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []

    def counted(method: Any, parts: Any, row: Row, *how: Any, **more: Any) -> Row:
        ran.append(f"{row.method} {row.asked:g} {row.repeat}")
        return measure(method, parts, row, *how, **more)

    monkeypatch.setattr("dpmf.compare.sweep.measure", counted)
    sweep(plan_of(1.0, repeats=1), small_ratings, table, n_threads=1)
    assert ran == ["sgd inf 0", "als 1 0"]
    first = table.path.read_bytes()
    sweep(plan_of(1.0, repeats=1), small_ratings, table, n_threads=1)
    assert table.path.read_bytes() == first
    rows = sweep(plan_of(1.0, 5.0, repeats=2), small_ratings, table, n_threads=1)
    assert ran[2:] == ["als 5 0", "sgd inf 1", "als 1 1", "als 5 1"]
    assert len(rows) == 18


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_interruption_keeps_what_has_ended(small_ratings: Ratings, table: Table, jobs: int) -> None:
    def interrupt(done: int, total: int, note: str) -> None:
        if done == 4:
            raise KeyboardInterrupt

    plan = plan_of(1.0, 5.0)
    with pytest.raises(KeyboardInterrupt):
        sweep(plan, small_ratings, table, n_threads=2, jobs=jobs, progress=interrupt)
    kept = table.rows()
    assert 4 <= len([row for row in kept if row.method not in NOT_TRAINED]) <= 5
    rows = sweep(plan, small_ratings, table, n_threads=2, jobs=jobs)
    assert len(rows) == 18
    assert [row for row in rows if row in kept] == kept


def test_a_run_that_fails_says_why_and_is_tried_again(
    small_ratings: Ratings, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> Row:
        raise InvalidArgument("it has diverged")

    with monkeypatch.context() as patch:
        patch.setattr("dpmf.compare.sweep.measure", broken)
        rows = sweep(plan_of(1.0, repeats=1), small_ratings, table, n_threads=1)
    assert {row.error for row in rows} == {"", "it has diverged"}
    rows = sweep(plan_of(1.0, repeats=1), small_ratings, table, n_threads=1)
    assert {row.error for row in rows} == {""}
    assert len(rows) == 7


def test_data_that_no_private_run_may_use_are_refused_at_once(table: Table) -> None:
    undeclared = Ratings.of([1, 1, 2, 2], [1, 2, 1, 2], [1, 5, 2, 4])
    with pytest.raises(InvalidArgument, match="rating scale that is declared"):
        sweep(plan_of(1.0), undeclared, table)
    assert not table.path.exists()


def test_profiles_certify_objective(small_ratings: Ratings, table: Table) -> None:
    factors = [[0.5, 0.1]] * small_ratings.n_users
    profiles = Profiles.public(list(small_ratings.user_ids), factors)
    points = points_of(["objective"], ["certified"], [1.0], with_profiles=True)
    plan = Sweep(points, repeats=1, profiles=profiles, settings={"sgd": QUICK["sgd"]})
    (row,) = (one for one in sweep(plan, small_ratings, table, n_threads=1) if one.method == "objective")
    assert (row.error, row.certified, row.unit, row.epsilon) == ("", True, "rating", 1.0)


def test_a_method_that_only_ranks_stands_beside_those_that_predict(
    small_ratings: Ratings, table: Table, caplog: pytest.LogCaptureFixture
) -> None:
    rows = sweep(plan_of(20.0, methods=("ease", "als"), repeats=1), small_ratings, table)
    (ease,) = (row for row in rows if row.method == "ease")
    (als,) = (row for row in rows if row.method == "als")
    assert (ease.error, ease.rmse, ease.error_cdf, ease.kld) == ("", None, [], None)
    assert ease.ndcg is not None
    assert als.rmse is not None
    assert "popularity" not in caplog.text  # nothing is said about the run that only compiles
