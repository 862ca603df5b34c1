"""Both servers and devices over queues, with time that passes when told: whole runs, and what goes wrong on the way."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dpmf.federated.certified import CertifiedScenario, simulate_certified
from dpmf.federated.certified.agreement import Agreement
from dpmf.methods import ALS, EASE
from dpmf.methods.verification import verify_release
from dpmf.privacy import Budget

from .deploy_world import SEED, World, factors, some_people

BUDGET = Budget(20.0)
METHODS: dict[str, ALS | EASE] = {
    "als": ALS(n_factors=2, n_epochs=2, budget=BUDGET),
    "ease": EASE(head=5, budget=BUDGET),
}


@pytest.mark.parametrize("name", METHODS)
def test_a_run_over_connections_gives_what_the_simulation_gives_bit_for_bit(name: str, tmp_path: Path) -> None:
    ratings = some_people(12, 10)
    agreement = Agreement(METHODS[name], ratings.catalogue, ratings.scale, n_users=12)
    world = World(agreement, ratings, tmp_path)
    world.everybody_joins()
    release = world.carry_out()
    method = replace(METHODS[name], noise_seed=SEED)
    scenario = CertifiedScenario(BUDGET, noise_seed=SEED, method=method, dropouts=0.0, colluders=0.0)
    expected = simulate_certified(ratings, scenario, n_threads=1).model.release
    assert factors(release) == factors(expected)
    assert release.guarantee.certified
    assert verify_release(release).ok
    release.save(tmp_path / "release")
    expected.save(tmp_path / "expected")
    tensors = [(tmp_path / one / "release.safetensors").read_bytes() for one in ("release", "expected")]
    assert tensors[0] == tensors[1]
