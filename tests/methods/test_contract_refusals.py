"""What every method must refuse, in one clear line, and what it must not."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmf.errors import DpmfError, InvalidArgument
from dpmf.methods import METHODS, ObjectivePerturbation
from dpmf.methods.objective.profiles import Profiles
from dpmf.privacy import Budget
from dpmf.privacy.ledger import Ledger
from dpmf.privacy.verify import verify
from dpmf.ratings import Items, Ratings, Scale

from .cases import ALL, CERTIFIED, PAPER, PLAIN, RATINGS, Case, label_of, of_nobody

every = pytest.mark.parametrize("case", ALL, ids=label_of)
certified = pytest.mark.parametrize("case", CERTIFIED, ids=label_of)


def clear(error: pytest.ExceptionInfo[DpmfError]) -> bool:
    """Return whether a message is one line."""
    return bool(str(error.value)) and "\n" not in str(error.value)


@every
def test_no_ratings_are_refused(case: Case) -> None:
    with pytest.raises(InvalidArgument, match="there are no ratings to train on") as error:
        case.fit(of_nobody(RATINGS))
    assert clear(error)


@pytest.mark.parametrize("case", [case for case in ALL if case.diverges], ids=label_of)
def test_divergence_is_refused(case: Case) -> None:
    with pytest.raises(DpmfError, match=r"diverged.*smaller learning_rate") as error:
        case.fit(RATINGS, case.diverges)
    assert clear(error)


@pytest.mark.parametrize("case", CERTIFIED + PAPER, ids=label_of)
def test_what_was_found_in_the_data_is_refused_or_recorded(case: Case) -> None:
    found = replace(RATINGS, scale=Scale(1, 5, declared=False))
    if case.settings.get("feedback") != "implicit":
        with pytest.raises(InvalidArgument, match="scale that is declared") as error:
            case.fit(found)
        assert clear(error)
    catalogue = RATINGS.catalogue
    seen = replace(RATINGS, catalogue=Items(catalogue.ids, catalogue.titles, catalogue.genres, declared=False))
    with pytest.raises(InvalidArgument, match="public catalogue") as error:
        case.fit(seen)
    assert clear(error)
    asserted = case.fit(seen, {"items_public": True}).guarantee
    assert any("asserts that it is public" in one for one in asserted.assumptions)
    assert not any("asserts that it is public" in one for one in case.fit(RATINGS).guarantee.assumptions)


@pytest.mark.parametrize("case", PLAIN, ids=label_of)
def test_without_a_finite_epsilon_there_is_nothing_to_account_for(case: Case, tmp_path: Path) -> None:
    given: dict[str, Any] = {"user_budgets": {}, "ledger": Ledger(tmp_path / "ledger.json", Budget(1.0))}
    for name, value in given.items():
        with pytest.raises(InvalidArgument, match=rf"{name} means? nothing") as error:
            case.fit(RATINGS, **{name: value})
        assert clear(error)
    if "noise_seed" in METHODS[case.method].__dataclass_fields__:
        with pytest.raises(InvalidArgument, match="noise_seed means nothing with an infinite epsilon"):
            case.fit(RATINGS, {"noise_seed": 1})


@pytest.mark.parametrize("method", [name for name, one in METHODS.items() if one.modes])
def test_a_budget_has_to_be_given(method: str) -> None:
    with pytest.raises(TypeError, match="budget"):
        METHODS[method]()
    for wrong in (None, 1.0):
        with pytest.raises(InvalidArgument, match=r"budget=.*Budget\(epsilon\).*Budget\(math.inf\)"):
            METHODS[method](budget=wrong)  # type: ignore[call-arg]


SENSELESS: dict[str, tuple[Any, ...]] = {
    "seed": (-1, 0.5),
    "items_public": (1, "false"),  # a text is true, whatever it says
    "noise_seed": (-1,),
    "n_factors": (-1, 2.5, True),
    "n_epochs": (0, "many"),
    "learning_rate": (0.0, math.nan),
    "regularization": (-0.1, math.nan),
}


@every
def test_a_setting_that_makes_no_sense_is_refused_by_name(case: Case) -> None:
    for name in SENSELESS.keys() & METHODS[case.method].__dataclass_fields__.keys():
        for value in SENSELESS[name]:
            with pytest.raises(InvalidArgument, match=f"{name}[= ]") as error:
                case.configured(**{name: value})
            assert clear(error)


# Little, and nobody


def fits(case: Case, ratings: Ratings, changes: Mapping[str, Any] | None = None, **options: Any) -> bool:
    """Return whether a model of few ratings is made of numbers."""
    method = case.configured(**{"items_public": True, **(changes or {})})
    if isinstance(method, ObjectivePerturbation):
        options["profiles"] = Profiles.public(ratings.user_ids.array, np.full((ratings.n_users, 2), 0.5))
    model = method.fit(ratings, n_threads=3, **options)
    arrays = model.release.item_factors, model.release.item_biases, model.user_factors, model.user_biases
    return all(np.isfinite(one).all() for one in arrays) and verify(model.guarantee).ok


@certified
def test_tiny_data_are_fine(case: Case) -> None:
    everything = range(RATINGS.n_items)  # for which sampled steps were calibrated before
    one_person = Ratings.of(["ann"], [4], [4], scale=(1, 5), items=everything)
    some = Ratings.of([1, 1, 2], [1, 2, 3], [5, 1, 4], scale=(1, 5), items=everything)
    nothing_left = some.select(np.array([True, True, False]))  # of user 2
    if case.method in ("sgld", "sketch"):
        assert all(fits(case, ratings) for ratings in (one_person, nothing_left))
        return
    one_item = Ratings.of([1, 2], [7, 7], [5, 1], scale=(1, 5), items=[7])
    for epsilon in (0.1, 20.0):
        budget = replace(case.settings["budget"], epsilon=epsilon)
        assert all(fits(case, ratings, {"budget": budget}) for ratings in (one_person, nothing_left, one_item))


@certified
def test_a_certified_run_is_refused_if_everybody_wants_to_be_left_out(case: Case) -> None:
    if case.method == "objective":
        return
    with pytest.raises(InvalidArgument, match="everybody wants to be left out") as error:
        case.fit(RATINGS, user_budgets=dict.fromkeys(RATINGS.user_ids, 0.0))
    assert clear(error)


def test_a_claim_about_nobody_is_refused() -> None:
    case = next(case for case in PAPER if case.method == "sgld")
    with pytest.raises(InvalidArgument, match="everybody wants to be left out") as error:
        case.fit(RATINGS, user_budgets=dict.fromkeys(RATINGS.user_ids, 0.0))
    assert clear(error)
