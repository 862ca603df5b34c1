"""Options that say how a release is judged: on held-out ratings of people it knows, or on people it has never seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from dpmf.cli.groups import all_of
from dpmf.cli.options import check_share, was_given
from dpmf.errors import InvalidArgument

if TYPE_CHECKING:
    from dpmf.evaluation.new_users import NewUsers

NEW_USERS = "new-users"
_OPTIONS = {"share": "--new-users", "fold_in": "--fold-in", "positive": "--positive", "least": "--least-liked"}


@dataclass(frozen=True)
class ProtocolOptions:
    """How to judge: --protocol, and what goes with new users."""

    protocol: str
    share: float
    fold_in: float
    positive: float | None
    least: int

    @property
    def for_new_users(self) -> bool:
        """Whether people are held out, rather than ratings."""
        return self.protocol == NEW_USERS

    def check(self, others: Mapping[str, str]) -> None:
        """Refuse options of the other protocol, and shares that are none.

        Args:
            others: options of the protocol that holds out ratings, by the name of their argument.
        """
        foreign = others if self.for_new_users else _OPTIONS
        for name, option in foreign.items():
            if was_given(name):
                other = "ratings" if self.for_new_users else NEW_USERS
                raise InvalidArgument(f"{option} belongs to --protocol {other}: leave it out, or choose that protocol")
        check_share("--new-users", self.share)
        check_share("--fold-in", self.fold_in)

    def new_users(self, seed: int, *, positive: float | None = None) -> NewUsers:
        """Return what the library takes; `positive` is what counts where --positive is not given."""
        from dpmf.evaluation.new_users import NewUsers

        liked = positive if self.positive is None else self.positive
        return NewUsers(self.share, self.fold_in, liked, seed, self.least)


def said_of(counts: Mapping[str, object]) -> str:
    """Return in words how many people were held out, and how many are measured."""
    return (
        f"New users: {counts['users']:,}, of {counts['users_held_out']:,} held out; "
        f"left out with fewer than {counts['least_liked']} positives: {counts['users_left_out']:,}"
    )


protocol_options = all_of(
    [
        click.option(
            "--protocol",
            type=click.Choice(["ratings", NEW_USERS]),
            default="ratings",
            show_default=True,
            help="Test on held-out ratings of everybody, or rank items for users who are held out entirely.",
        ),
        click.option(
            "--new-users",
            "share",
            type=float,
            default=0.1,
            show_default=True,
            metavar="F",
            help="Fraction of the users to hold out; lists are computed for at most 10,000 of them.",
        ),
        click.option(
            "--fold-in",
            type=float,
            default=0.8,
            show_default=True,
            metavar="F",
            help="Fraction of the items a new user likes that is folded in.",
        ),
        click.option(
            "--positive",
            type=float,
            metavar="T",
            show_default="three quarters up the scale",
            help="Lowest rating that counts as liking an item.",
        ),
        click.option(
            "--least-liked",
            "least",
            type=click.IntRange(2),
            default=5,
            show_default=True,
            metavar="N",
            help="Leave out new users who like fewer than N items.",
        ),
    ]
)
