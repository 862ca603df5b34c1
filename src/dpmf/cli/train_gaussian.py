"""What `dpmf train` does for gaussian alone: the claim of the paper, by its formula and by the accountant."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from dpmf.cli.options import was_given
from dpmf.cli.output import print_table, say
from dpmf.errors import InvalidArgument

if TYPE_CHECKING:
    from dpmf.methods import GaussianGD
    from dpmf.runs.training import Run


def overall_delta(mode: str, epsilon: float, delta: float, settings: tuple[str, ...]) -> dict[str, float]:
    """Return --delta as a setting, if it was given for a claim: by itself, the claim has the delta of the paper."""
    if not was_given("delta") or mode != "paper" or epsilon == math.inf:
        return {}
    if any(pair.startswith("delta_r=") for pair in settings):
        raise InvalidArgument("--delta and --set delta_r are the same: give one of them")
    return {"delta_r": delta}


def claim_report(method: GaussianGD, run: Run) -> dict[str, Any]:
    """Return what is reported of a claim beside what is reported of every method."""
    if run.model.guarantee.mode != "paper":
        return {}
    return {"claim": method.claim(run.model.release.scale, len(run.model.history)).to_json()}


def print_claim(report: dict[str, Any]) -> None:
    """Print it for people."""
    if "claim" not in report:
        return
    claim = report["claim"]
    rows = [
        ("by the paper's Rényi formula", claim["epsilon_by_renyi"]),
        ("by the accountant, for the same noise", claim["epsilon_by_accountant"]),
    ]
    print_table(f"Claimed for one rating's value: epsilon at delta {claim['delta_r']:g}", ("", "epsilon"), rows)
    say(
        f"{claim['iterations']} iterations of eps_i {claim['eps_i']:.4g} each, with noise of {claim['sigma']:.4g} on "
        "the gradient of user factors. Neither figure covers item factors, which are what a release holds."
    )
