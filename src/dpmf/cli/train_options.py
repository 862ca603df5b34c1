"""What can be asked of `dpmf train`: options that make a run private, and what does not go together."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dpmf.cli.options import was_given
from dpmf.errors import InvalidArgument

if TYPE_CHECKING:
    from dpmf.engine.checkpoints import Checkpoint
    from dpmf.privacy import Budget
    from dpmf.privacy.ledger import Ledger

_PRIVATE = (
    click.option("--epsilon", type=float, metavar="E", help="Privacy budget; 'inf' says explicitly: not private."),
    click.option("--delta", type=float, default=1e-6, show_default=True, metavar="D", help="Privacy budget, too."),
    click.option("--mode", type=click.Choice(["certified", "paper"]), default="certified", show_default=True,
                 help="What guarantee: proven here, or claimed by a paper."),
    click.option("--neighbours", type=click.Choice(["add-remove", "replace"]), default="add-remove",
                 show_default=True, help="Which data sets should look alike."),
    click.option("--items-public", is_flag=True, help="Assert that the item ids in DATA are a public list."),
    click.option("--user-budgets", type=click.Path(path_type=Path), metavar="FILE",
                 help="CSV of user,epsilon: who wants a smaller epsilon than the others."),
    click.option("--ledger", "ledger_file", type=click.Path(path_type=Path), metavar="FILE",
                 help="Enter what is released here, before it is."),
    click.option("--cap", type=float, metavar="E", help="What all releases in a new --ledger may cost together."),
    click.option("--sign-key", type=click.Path(path_type=Path), metavar="FILE", help="Sign the release: a PEM file."),
)  # fmt: skip


def private_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options that make a run private."""
    for option in reversed(_PRIVATE):
        function = option(function)
    return function


def check_mode(method: str, mode: str, epsilon: float | None, feedback: str) -> None:
    """Refuse what a method cannot do at all."""
    if method != "als" and feedback != "explicit":
        raise InvalidArgument(f"--feedback {feedback} is refused: {method} learns from ratings only, take --method als")
    if method == "sgd":
        if epsilon is not None and epsilon != math.inf:
            raise InvalidArgument(f"--epsilon {epsilon:g} is refused: {method} is not private, whatever the number")
        return
    if mode == "paper" and method == "als":
        raise InvalidArgument(f"--mode paper: no paper makes a claim about {method} that could be repeated here")
    if epsilon is None:
        raise InvalidArgument(
            f"{method} needs --epsilon: a number such as 1 to be private, or inf, which says explicitly: not private"
        )


def check_neighbours_and_delta(method: str, mode: str, epsilon: float, neighbours: str) -> None:
    """Refuse what the promise, or the claim, is not about, if it was asked for and not just left at its default."""
    claimed = mode == "paper" and epsilon != math.inf
    if claimed and method in ("sketch", "objective") and was_given("delta"):
        raise InvalidArgument(f"--delta means nothing for the claim about {method}, which has none: leave it out")
    if neighbours == "replace" or not was_given("neighbours") or epsilon == math.inf:
        return
    if method == "gaussian" and claimed:
        raise InvalidArgument(f"--neighbours {neighbours}: the claim is about a rating that is replaced")
    if method == "objective":
        raise InvalidArgument(f"--neighbours {neighbours}: what objective protects is a rating that is replaced")


def refuse_private_options(
    method: str, items_public: bool, user_budgets: Path | None, ledger: Path | None, cap: float | None
) -> None:
    """Refuse options of private methods for one that is not."""
    named = {"--items-public": items_public or None, "--user-budgets": user_budgets, "--ledger": ledger, "--cap": cap}
    for option, given in named.items():
        if given is not None:
            raise InvalidArgument(f"{option} is for private methods, and {method} is not private")


def check_claim(method: str, user_budgets: Path | None, ledger: Path | None, cap: float | None) -> None:
    """Refuse what a claim cannot do, before anything is made."""
    if method != "sgld" and user_budgets is not None:
        raise InvalidArgument(f"--user-budgets: what is claimed about {method} is not about persons, leave it out")
    if ledger is not None and cap is not None and cap != math.inf:
        raise InvalidArgument(
            f"--cap {cap:g}: a claim counts as unbounded, so only a ledger without a cap can record it: --cap inf"
        )


def ledger_of(path: Path | None, cap: float | None, budget: Budget, unit: str) -> Ledger | None:
    """Return the ledger that was named, made anew if it has to be."""
    from dpmf.privacy import Budget
    from dpmf.privacy.ledger import Ledger

    if path is None:
        if cap is not None:
            raise InvalidArgument("--cap is of a ledger: name its file with --ledger")
        return None
    if not budget.is_finite:
        raise InvalidArgument("--ledger means nothing with an infinite epsilon: leave it out, or give a number")
    return Ledger(path, None if cap is None else Budget(cap, budget.delta, unit, budget.neighbours))


def read_user_budgets(path: Path | None) -> dict[str, float] | None:
    """Read lines of user,epsilon, with or without a header."""
    if path is None:
        return None
    budgets: dict[str, float] = {}
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArgument(f"cannot read --user-budgets {path}: {error}") from None
    try:
        rows = list(csv.reader(lines))
    except csv.Error as error:
        raise InvalidArgument(f"cannot read --user-budgets {path}: {error}") from None
    for number, row in enumerate(rows, 1):
        if not row or (number == 1 and [part.strip() for part in row] == ["user", "epsilon"]):
            continue
        try:
            user, epsilon = row[0].strip(), float(row[1])
            if len(row) > 2 or not epsilon >= 0:
                raise ValueError
        except (IndexError, ValueError):
            raise InvalidArgument(f"line {number} of {path} should be user,epsilon, such as ann,0.5") from None
        if user in budgets:
            raise InvalidArgument(f"line {number} of {path} names a user for the second time: choose one epsilon")
        budgets[user] = epsilon
    return budgets


def checkpoint_of(folder: Path | None, every: int | None, minutes: float | None, resume: bool) -> Checkpoint | None:
    """Return where to keep snapshots, if anywhere."""
    from dpmf.engine.checkpoints import Checkpoint

    if folder is None:
        if resume:
            raise InvalidArgument("--resume needs --checkpoint DIR, the folder with the snapshots")
        for option, given in (("--checkpoint-every", every), ("--checkpoint-minutes", minutes)):
            if given is not None:
                raise InvalidArgument(f"{option} needs --checkpoint DIR, the folder to keep snapshots in")
        return None
    return Checkpoint(folder, 1 if every is None else every, None if minutes is None else 60 * minutes, resume)
