"""What `dpmf train` does for objective alone: where factors of users come from, and what each part costs."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpmf.cli.output import print_table
from dpmf.errors import InvalidArgument

if TYPE_CHECKING:
    from dpmf.methods.objective.profiles import Profiles
    from dpmf.privacy import Budget
    from dpmf.runs.training import Run

_PROFILES = (
    click.option("--profiles", type=click.Path(path_type=Path), metavar="PATH",
                 help="Factors of users, for --method objective: a public CSV of user,x1,…, or a release."),
    click.option("--profiles-epsilon", type=float, metavar="E", help="What profiles made with a release may cost."),
    click.option("--profiles-public", is_flag=True,
                 help="Assert that the release in --profiles was made from other people's ratings."),
)  # fmt: skip


def profile_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options; `check_profiles` and `read_profiles` take them."""
    for option in reversed(_PROFILES):
        function = option(function)
    return function


def check_profiles(
    method: str, mode: str, epsilon: float | None, profiles: Path | None, profiles_epsilon: float | None, public: bool
) -> None:
    """Refuse what does not go together, before anything is read or made."""
    certified = method == "objective" and mode == "certified" and epsilon not in (None, math.inf)
    if certified and profiles is None:
        raise InvalidArgument(
            "objective needs --profiles to be certified: a public CSV of user,x1,…, or a release; or take --mode "
            "paper, a claim"
        )
    named = {"--profiles": profiles, "--profiles-epsilon": profiles_epsilon, "--profiles-public": public or None}
    for option, given in named.items():
        if given is not None and not certified:
            raise InvalidArgument(f"{option} is for a certified run of --method objective: leave it out")
    if profiles is None:
        return
    if profiles.is_dir() and profiles_epsilon is None:
        raise InvalidArgument("--profiles names a release, and what is made with it costs: say how much, with "
                              "--profiles-epsilon")  # fmt: skip
    if not profiles.is_dir() and (profiles_epsilon is not None or public):
        raise InvalidArgument(f"--profiles {profiles} is no folder with a release: leave --profiles-epsilon and "
                              "--profiles-public out")  # fmt: skip


def read_profiles(path: Path | None, epsilon: float | None, public: bool, delta: float) -> Profiles | None:
    """Return profiles from a release in a folder, or from a table."""
    from dpmf.methods.objective.profiles import Profiles
    from dpmf.model import Release
    from dpmf.privacy import Budget

    if path is None:
        return None
    if not path.is_dir():
        return Profiles.public(*_read_table(path))
    assert epsilon is not None
    return Profiles.from_release(Release.load(path), Budget(epsilon, delta, "rating", "replace"), public=public)


def _read_table(path: Path) -> tuple[Any, Any]:
    """Read lines of user,x1,…,xK, with a header."""
    import numpy as np

    from dpmf.ratings.ids import parse_ids

    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = [(number, row) for number, row in enumerate(csv.reader(file), 1) if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InvalidArgument(f"cannot read --profiles {path}: {error}") from None
    if len(rows) < 2 or rows[0][1][0].strip() != "user" or len(rows[0][1]) < 2:
        raise InvalidArgument(f"--profiles {path} should begin with a line user,x1,…, and have a line for every user")
    factors = np.empty((len(rows) - 1, len(rows[0][1]) - 1))
    for place, (number, row) in enumerate(rows[1:]):
        try:
            numbers = [float(one) for one in row[1:]]
            if len(numbers) != factors.shape[1]:
                raise ValueError
            factors[place] = numbers
        except ValueError:
            raise InvalidArgument(
                f"line {number} of {path} should be a user and {factors.shape[1]} numbers, as its first line says"
            ) from None
    return parse_ids([row[0].strip() for _, row in rows[1:]]), factors


def objective_report(budget: Budget, run: Run) -> dict[str, Any]:
    """Return what the parts of a certified run cost, each by itself."""
    from dpmf.privacy.accounting import epsilon_of
    from dpmf.privacy.guarantee import rounded_up

    guarantee = run.model.guarantee
    if guarantee.mode != "certified":
        return {}
    assert guarantee.delta is not None
    *before, _ = guarantee.events
    profiles = rounded_up(epsilon_of(before, guarantee.delta, neighbours="replace")) if before else 0.0
    return {"parts": {"items": budget.epsilon, "profiles": profiles}}


def print_objective(report: dict[str, Any]) -> None:
    """Print it for people."""
    if "parts" in report:
        parts = report["parts"]
        rows = [("item factors, given profiles", parts["items"]), ("profiles of users", parts["profiles"]),
                ("together", report["epsilon"])]  # fmt: skip
        print_table(f"Paid for one rating's value: epsilon at delta {report['delta']:g}", ("", "epsilon"), rows)
