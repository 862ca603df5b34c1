"""The plan of certified least squares: what it lists, and what a public number of people saves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpmf.methods.als.certified import PublicALS
from dpmf.methods.als.plan import USERS, ALSPlan
from dpmf.methods.certified.answer import RatingsAnswerer
from dpmf.methods.certified.conversation import converse
from dpmf.methods.certified.curator import Curator
from dpmf.methods.certified.plan import FactorRule
from dpmf.methods.certified.script import Crowd
from dpmf.privacy import Budget
from dpmf.privacy.noise import Noise
from dpmf.ratings.synthetic import make

from ..watch import Recorder


def test_a_public_number_of_people_is_not_paid_for() -> None:
    plan = ALSPlan(30, FactorRule.exactly(2), 3, 0.5, Budget(2.0))
    known = replace(plan, crowd=Crowd(40, 1))
    assert {event.what for event in plan.events()} - {event.what for event in known.events()} == {USERS}
    assert all(USERS not in stage.releases for stage in known.stages())
    before = {event.what: event.noise_multiplier for event in plan.events()}
    assert all(event.noise_multiplier < before[event.what] for event in known.events() if event.what == "item factors")
    ratings, recorder = make(40, 30, seed=1), Recorder(known.events(), Noise(1))
    public = PublicALS(known, ratings.scale, ratings.catalogue.ids.keys, 0)
    curator = Curator(RatingsAnswerer(ratings, np.ones(40), 1), recorder, "add-remove")
    for stage in known.stages():
        converse(public, stage, curator)
    curator.finish()
    assert USERS not in {record.what for record in recorder.records}
    assert public.n_users == 40
