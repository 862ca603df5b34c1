"""Claims of papers: where they are violated, by which evidence, and that the evidence is none where a proof holds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpmf.audit import claims
from dpmf.audit.claims import Claimed, density_loss, linear_attack, without_noise
from dpmf.methods import METHODS, Method, configure
from dpmf.methods.objective.items import noise_vectors
from dpmf.model import Model
from dpmf.privacy.noise import Noise

from .faults import SMALL


def published(name: str, epsilon: float, **settings: Any) -> Method:
    fields = METHODS[name].private_fields("paper", epsilon, items_public=True)
    return configure(name, {"n_factors": 3, "n_epochs": 4, **settings, **fields})


def test_a_sketch_without_noise_violates_its_claim_with_certainty() -> None:
    found = {one.part: one for one in claims.examine(published("sketch", 100.0), SMALL, runs=10)}
    assert found["no_noise"].ok is False
    assert "infinite" in found["no_noise"].sentence
    assert found["two_worlds"].ok  # ten runs cannot show a hundred by themselves


def test_item_factors_after_one_noisy_iteration_have_no_noise() -> None:
    found = {one.part: one for one in claims.examine(published("gaussian", 1.0), SMALL, runs=10)}
    first = found["one_iteration"]
    assert first.ok is False
    assert first.figures["item factors"]["giving_away"] == 3  # of the item whose rating differs
    assert found["no_noise"].ok


def test_a_mean_that_is_published_gives_a_rating_away() -> None:
    claimed = Claimed.of(published("gaussian", 1.0, centering="mean"), SMALL)
    found = without_noise(claimed, claimed.runs(3), "no_noise", "")
    assert found.ok is False
    assert found.figures["mean"]["giving_away"] == 1


def test_a_perturbed_objective_with_fitted_users_loses_more_than_is_claimed() -> None:
    claimed = Claimed.of(published("objective", 1.0, n_factors=20, n_epochs=50), SMALL)
    found = density_loss(claimed, claimed.runs(5))
    assert found.ok is False
    assert found.figures["largest"] > 2


@pytest.mark.parametrize("epsilon", [0.5, 5.0])
def test_a_perturbed_objective_with_users_that_stay_loses_no_more_than_is_claimed(epsilon: float) -> None:
    """The theorem of the paper, at outputs of the noise that it asks for: so losses are computed rightly."""
    claimed = Claimed.of(published("objective", epsilon, n_factors=20, n_epochs=50), SMALL)
    model: Model = claimed.method.fit(claimed.worlds[0], n_threads=1)
    sides = [claims._Side(world, model, claimed.method.facts()["regularization"]) for world in claimed.worlds]
    scale, losses = 8 / epsilon, []
    for seed in range(40):
        eta = noise_vectors(Noise(noise_seed=seed), scale, sides[0].right.shape)
        V = np.asarray(np.linalg.solve(sides[0].matrices, (sides[0].right - eta / 2)[:, :, None])[:, :, 0], np.float64)
        losses.append(abs(sides[0].log_density(V, scale) - sides[1].log_density(V, scale)))
    assert 0.01 * epsilon < max(losses) <= epsilon


def test_a_posterior_draw_is_not_found_to_violate_its_claim() -> None:
    assert all(one.ok for one in claims.examine(published("sgld", 50.0), SMALL, runs=12))


def test_a_rule_that_tells_worlds_apart_is_a_violation_of_a_small_claim() -> None:
    claimed = Claimed.of(published("sketch", 0.1), SMALL)
    found = linear_attack(claimed, claimed.runs(24))
    assert (found.figures["hits"], found.figures["alarms"]) == (12, 0)
    assert found.ok is False


@pytest.mark.parametrize(("unit", "neighbours", "n_more"), [("user", "add-remove", 12), ("rating", "add-remove", 1)])
def test_worlds_differ_in_what_is_protected(unit: str, neighbours: str, n_more: int) -> None:
    (first, second), _ = claims._worlds(SMALL, unit, neighbours)
    assert len(second) - len(first) == n_more


@pytest.mark.parametrize("unit", ["user", "rating"])
def test_replaced_worlds_have_the_same_shape(unit: str) -> None:
    (first, second), _ = claims._worlds(SMALL, unit, "replace")
    assert len(first) == len(second)
    assert np.count_nonzero(first.values != second.values) == (1 if unit == "rating" else 12)
