"""Options of methods that take profiles of users: where they come from, and what they may cost."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpmf.cli.groups import all_of
from dpmf.errors import InvalidArgument
from dpmf.methods import METHODS

if TYPE_CHECKING:
    from dpmf.methods.objective.profiles import Profiles

profile_options = all_of(
    [
        click.option(
            "--profiles",
            type=click.Path(path_type=Path),
            metavar="PATH",
            help="User factors for --method objective: a public CSV file of user,x1,…, or a release.",
        ),
        click.option(
            "--profiles-epsilon", type=float, metavar="E", help="Budget for profiles that are fitted with a release."
        ),
        click.option(
            "--profiles-public",
            is_flag=True,
            help="Assert that the release in --profiles was made from other people's ratings.",
        ),
    ]
)


@dataclass(frozen=True)
class ProfileOptions:
    """Where profiles are, what they may cost, and whether their release is asserted to be public."""

    profiles: Path | None
    profiles_epsilon: float | None
    profiles_public: bool

    @property
    def given(self) -> list[str]:
        """The options that were given."""
        named = {
            "--profiles": self.profiles is not None,
            "--profiles-epsilon": self.profiles_epsilon is not None,
            "--profiles-public": self.profiles_public,
        }
        return [option for option, is_given in named.items() if is_given]


def check_profiles(methods: Sequence[str], kind: str, options: ProfileOptions, *, required: bool = True) -> None:
    """Refuse what does not go together, before anything is read or made.

    Args:
        methods: names of those that will be run.
        kind: what kind of run: "certified", "paper" or "none".
        options: what was asked for.
        required: whether a method that takes profiles has to get them.
    """
    takers = [name for name in methods if name in METHODS and kind in METHODS[name].takes.get("profiles", ())]
    if takers and options.profiles is None and (required or options.given):
        raise InvalidArgument(
            f"{takers[0]} needs --profiles to be certified: a public CSV of user,x1,…, or a release; or take --mode "
            "paper, a claim"
        )
    if options.given and not takers:
        possible = " or ".join(name for name, one in METHODS.items() if "profiles" in one.takes)
        raise InvalidArgument(f"{options.given[0]} is for a certified run of --method {possible}: leave it out")
    if options.profiles is None:
        return
    if options.profiles.is_dir():
        if options.profiles_epsilon is None:
            raise InvalidArgument(
                "--profiles names a release, and what is made with it costs: say how much, with --profiles-epsilon"
            )
    elif len(options.given) > 1:
        raise InvalidArgument(
            f"--profiles {options.profiles} is not a folder with a release: leave --profiles-epsilon and "
            "--profiles-public out"
        )


def read_profiles(options: ProfileOptions, delta: float, *, allow_large_delta: bool = False) -> Profiles | None:
    """Return profiles from a release in a folder, or from a table; None if there are none."""
    from dpmf.methods.objective.profiles import Profiles
    from dpmf.model import Release
    from dpmf.privacy import Budget

    path, epsilon = options.profiles, options.profiles_epsilon
    if path is None:
        return None
    if not path.is_dir():
        return Profiles.public(*_read_table(path))
    assert epsilon is not None
    budget = Budget(epsilon, delta, "rating", "replace", allow_large_delta)
    return Profiles.from_release(Release.load(path), budget, public=options.profiles_public)


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
