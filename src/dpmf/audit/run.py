"""A whole audit: every part, on the worlds that it needs.

Worlds are small unless ratings are given: what is audited is a mechanism, whose noise and bounds do not depend on how
many people there are, and in a small world one person is easier to find.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpmf.audit import answerers, attacks, canaries, claims, noise, sensitivity, two_worlds
from dpmf.audit import release as releases
from dpmf.audit.findings import Audit, Finding, Progress, silent
from dpmf.audit.subject import Subject
from dpmf.audit.transcript import overhear
from dpmf.errors import InvalidArgument
from dpmf.logs import quiet
from dpmf.methods.base import Method
from dpmf.model import Release
from dpmf.ratings import Ratings, Scale
from dpmf.ratings.synthetic import make

PARTS = ("sensitivity", "noise", "two_worlds", "one_run", "attacks")
_SECONDS = 45.0  # that two worlds may take, unless a number of runs is given
_LEAST_RUNS = 20
_SIZES: Mapping[str, tuple[int, int, float]] = {  # users, items, and ratings of a user
    "people": (60, 40, 10.0),
    "canaries": (500, 400, 10.0),
    "attacks": (100, 60, 12.0),
    "claims": (30, 20, 6.0),
}


@dataclass(frozen=True, eq=False)
class Plan:
    """What an audit is to do.

    Attributes:
        method: what is audited, with its budget.
        ratings: on which; None for synthetic ones.
        release: that was made by it, if it is about one.
        parts: which of `PARTS`.
        runs: of each world; None for as many as fit into some seconds, up to 500.
        canaries: at most.
        seed: of worlds and persons.
        machinery: a mechanism or an answerer to audit instead of those of dpmf, as `Subject` takes them.
    """

    method: Method
    ratings: Ratings | None = None
    release: Release | None = None
    parts: tuple[str, ...] = PARTS
    runs: int | None = None
    canaries: int = canaries.CANARIES
    seed: int = 0
    machinery: Mapping[str, Any] | None = None

    def crowd(self, purpose: str) -> Ratings:
        """Return the ratings that were given, or synthetic ones of a size that suits the purpose."""
        if self.ratings is not None:
            return self.ratings
        n_users, n_items, mean = _SIZES[purpose]
        made = make(n_users, n_items, mean_ratings=mean, seed=self.seed)
        return made if self.release is None or self.release.is_implicit else _on(made, self.release.scale)

    def subject(self, purpose: str) -> Subject:
        """Return the method on such ratings."""
        return Subject.of(self.method, self.crowd(purpose), seed=self.seed, **(self.machinery or {}))


def _on(ratings: Ratings, scale: Scale) -> Ratings:
    """Return ratings on another scale."""
    share = (ratings.values - ratings.scale.lo) / (ratings.scale.hi - ratings.scale.lo)
    values = (scale.lo + share * (scale.hi - scale.lo)).astype(np.float32)
    return replace(ratings, values=values, scale=scale)


def audit(plan: Plan, progress: Progress = silent) -> Audit:
    """Carry out an audit."""
    for part in plan.parts:
        if part not in PARTS:
            raise InvalidArgument(f"part {part!r} is not known: choose from {', '.join(PARTS)}")
    if plan.method.kind not in ("certified", "paper"):
        raise InvalidArgument(
            f"{plan.method.name} guarantees nothing here, so there is nothing to audit: give an epsilon"
        )
    with quiet("dpmf"):  # advice on single runs, of which there are many here, on few ratings
        found = _of_claim(plan, progress) if plan.method.kind == "paper" else _of_guarantee(plan, progress)
    return Audit(_about(plan), tuple(found), plan.method.kind)


def _about(plan: Plan) -> dict[str, Any]:
    facts = {name: value for name, value in plan.method.configuration().items() if value is not None}
    budget = plan.method.facts()["budget"]
    about: dict[str, Any] = {"method": plan.method.name, "configuration": facts}
    if plan.method.kind == "certified":
        about |= {
            "epsilon": budget.epsilon,
            "delta": budget.delta,
            "unit": budget.unit,
            "neighbours": budget.neighbours,
        }
    else:
        about |= {"epsilon": budget.epsilon}
    about["data"] = "synthetic" if plan.ratings is None else plan.ratings.name or "given"
    if plan.method.kind == "certified":
        given, audited = plan.method.facts(), plan.subject("people").method.facts()
        about["set_for_the_audit"] = {name: value for name, value in audited.items() if value != given[name]}
    return about


def _of_claim(plan: Plan, progress: Progress) -> list[Finding]:
    found = claims.examine(plan.method, plan.crowd("claims"), runs=plan.runs or claims.RUNS, progress=progress)
    if "attacks" in plan.parts:
        paper = Subject(plan.method, plan.crowd("attacks"), seed=plan.seed)
        fit = attacks.as_published(plan.method)
        found.append(attacks.examine(paper, fit=fit, progress=progress))
    return found


def _of_guarantee(plan: Plan, progress: Progress) -> list[Finding]:
    subject, found = plan.subject("people"), list[Finding]()
    if plan.release is not None:
        found.append(releases.examine(plan.release, subject.events))
    if {"sensitivity", "noise", "two_worlds"} & set(plan.parts):
        searched = sensitivity.search(subject, progress)
        if "sensitivity" in plan.parts:
            found.append(sensitivity.finding(searched, answerers.same_shift(subject, searched.worst)))
        if "noise" in plan.parts:
            found.append(noise.examine(subject, searched.worst, progress=progress))
        if "two_worlds" in plan.parts:
            runs = _runs(plan, subject)
            found.append(two_worlds.examine(subject, searched.worst, runs=runs, progress=progress))
    if "one_run" in plan.parts:
        found.append(canaries.examine(plan.subject("canaries"), canaries=plan.canaries, progress=progress))
    if "attacks" in plan.parts:
        found.append(attacks.examine(plan.subject("attacks"), progress=progress))
    return found


def _runs(plan: Plan, subject: Subject) -> int:
    """Return how many runs of each world to make: as many as were asked for, or as fit into the time."""
    if plan.runs is not None:
        return plan.runs
    began = time.perf_counter()
    overhear(subject, subject.world([]) if not subject.protects_values else subject.crowd)
    seconds = 1.5 * (time.perf_counter() - began)
    return max(_LEAST_RUNS, min(two_worlds.RUNS, int(_SECONDS / 2 / max(seconds, 1e-6))))
