"""What can be asked of `dpmf train`: options that make a run private, and what does not go together."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dpmf.cli.groups import all_of
from dpmf.errors import InvalidArgument
from dpmf.methods import METHODS

if TYPE_CHECKING:
    from dpmf.engine.checkpoints import Checkpoint
    from dpmf.engine.cluster import Ray
    from dpmf.methods import Method
    from dpmf.model import Release
    from dpmf.privacy import Budget
    from dpmf.privacy.ledger import Ledger


@dataclass(frozen=True)
class SplitOptions:
    """What to test on: --holdout and --split, --holdout-users, or --test."""

    holdout: float | str | None
    how: str
    holdout_users: float | None
    test_file: str | None


PURPOSES = {"ranking": "ease", "ratings": "als", "both": "joint"}
"""The method for each purpose."""


@dataclass(frozen=True)
class MethodOptions:
    """Which method, and its settings."""

    method: str
    feedback: str
    factors: int | None
    epochs: int | None
    seed: int
    settings: tuple[str, ...]

    def check(self) -> None:
        """Refuse options that say something about a method that it does not have."""
        has = {field.name for field in fields(METHODS[self.method])}
        of_options = {"factors": self.factors, "epochs": self.epochs}
        for name, given in of_options.items():
            if given is not None and f"n_{name}" not in has:
                raise InvalidArgument(f"--{name} {given} means nothing for {self.method}, which has none: leave it out")


@dataclass(frozen=True)
class PrivacyOptions:
    """What makes a run private."""

    epsilon: float | None
    delta: float
    allow_large_delta: bool
    mode: str
    neighbours: str
    items_public: bool
    user_budgets: Path | None
    ledger_file: Path | None
    cap: float | None

    @property
    def kind(self) -> str:
        """What kind of run is asked for: the mode, or "none" without a finite epsilon."""
        return self.mode if self.epsilon not in (None, math.inf) else "none"


@dataclass(frozen=True)
class CheckpointOptions:
    """Where and when to keep snapshots."""

    checkpoint_folder: Path | None
    checkpoint_every: int | None
    checkpoint_minutes: float | None
    resume: bool


@dataclass(frozen=True)
class ClusterOptions:
    """Where to train, if not here."""

    cluster: str | None
    workers: int | None

    def executor(self) -> Ray | None:
        """Return the cluster that was named."""
        if self.cluster is None:
            if self.workers is not None:
                raise InvalidArgument("--workers are those of a cluster: name it with --cluster")
            return None
        from dpmf.engine.cluster import Ray

        return Ray(self.cluster, self.workers)


cluster_options = all_of(
    [
        click.option(
            "--cluster",
            metavar="WHERE",
            help="Work on a Ray cluster: local:N, auto, HOST:PORT or ray://HOST:PORT. It reads block stores only.",
        ),
        click.option("--workers", type=int, metavar="N", help="Workers on the cluster; by default one for each node."),
    ]
)

private_options = all_of(
    [
        click.option(
            "--epsilon", type=float, metavar="E", help="The ε of the privacy budget; 'inf' means not private."
        ),
        click.option(
            "--delta", type=float, default=1e-6, show_default=True, metavar="D", help="The δ of the privacy budget."
        ),
        click.option("--allow-large-delta", is_flag=True, help="Accept a --delta of a half or more."),
        click.option(
            "--mode",
            type=click.Choice(["certified", "paper"]),
            default="certified",
            show_default=True,
            help="Which guarantee: proven here (certified), or as a paper claims.",
        ),
        click.option(
            "--neighbours",
            type=click.Choice(["add-remove", "replace"]),
            default="add-remove",
            show_default=True,
            help="What is hidden: that a person takes part (add-remove), or only what they contribute (replace).",
        ),
        click.option("--items-public", is_flag=True, help="Assert that the item ids in DATA are a public list."),
        click.option(
            "--user-budgets",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="CSV file of user,epsilon: people who ask for a smaller epsilon than the others.",
        ),
        click.option(
            "--ledger",
            "ledger_file",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="Record the cost of the release in this file before any noise is drawn.",
        ),
        click.option("--cap", type=float, metavar="E", help="The total epsilon that a new --ledger allows."),
        click.option(
            "--sign-key",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="Sign the release with this Ed25519 private key (PEM).",
        ),
    ]
)


def method_for(method: str | None, purpose: str | None, feedback: str) -> str:
    """Return the name of the method that --method or --for asks for; a release for both purposes by default.

    >>> method_for(None, None, "explicit"), method_for(None, None, "implicit"), method_for("sgd", None, "explicit")
    ('joint', 'ease', 'sgd')
    """
    if method is not None and purpose is not None:
        raise InvalidArgument("--method and --for each choose a method: give one of them")
    if method is not None:
        return method
    if feedback == "implicit":  # there are no ratings to predict
        if purpose in ("ratings", "both"):
            raise InvalidArgument(
                f"--for {purpose} needs ratings, and --feedback implicit ignores them: take --for ranking, or "
                "--method als"
            )
        return PURPOSES["ranking"]
    return PURPOSES[purpose or "both"]


def check_privacy(asked: MethodOptions, privacy: PrivacyOptions) -> None:
    """Refuse what a method cannot do, before anything is read or made."""
    name, method, epsilon = asked.method, METHODS[asked.method], privacy.epsilon
    if asked.feedback not in method.feedbacks:
        able = " or ".join(other for other, one in METHODS.items() if asked.feedback in one.feedbacks)
        raise InvalidArgument(
            f"--feedback {asked.feedback} is refused: {name} learns from ratings only, take --method {able} (with "
            "--epsilon inf if nothing has to be private)"
        )
    if not method.modes:
        _refuse_privacy(name, privacy)
        return
    if privacy.mode not in method.modes:
        raise InvalidArgument(f"--mode {privacy.mode}: no paper makes a claim about {name} that could be repeated here")
    if epsilon is None:
        raise InvalidArgument(
            f"{name} needs --epsilon: a number such as 1 to be private, or inf, which means not private"
        )
    if privacy.kind == "paper":
        _check_claim(name, privacy)


def read_start(folder: Path, method: Method, privacy: PrivacyOptions) -> Release:
    """Return the release to start from, whose cost the ledger has to have: for people in both it adds up there."""
    from dpmf.methods.als.continued import check_release
    from dpmf.methods.verification import verify_release
    from dpmf.model import Release
    from dpmf.privacy.ledger import Ledger

    if "start" not in method.takes or method.kind != "certified" or method.is_implicit:
        raise InvalidArgument(
            "--continue is for certified runs of als on ratings, from a release of als or joint: leave --method out"
        )
    release = Release.load(folder)
    check_release(release, method.facts()["budget"])
    verdict = verify_release(release)
    if not verdict.ok:
        raise InvalidArgument(f"--continue {folder}: the release contradicts itself: {verdict.reason}")
    path = privacy.ledger_file
    if path is None:
        raise InvalidArgument(
            "--continue needs --ledger FILE, the one that the release was entered in: for whoever is in both sets of "
            "ratings, costs add up"
        )
    entries = Ledger(path).entries() if path.exists() else ()
    if not any(entry.guarantee.events == release.guarantee.own_events() for entry in entries):
        raise InvalidArgument(
            f"--continue {folder}: the ledger {path} has no entry for that release: name the ledger that it was "
            "entered in, or train on all ratings without it"
        )
    return release


def _refuse_privacy(name: str, privacy: PrivacyOptions) -> None:
    """Refuse options of private methods for one that is not."""
    if privacy.epsilon is not None and privacy.epsilon != math.inf:
        raise InvalidArgument(f"--epsilon {privacy.epsilon:g} is refused: {name} is not private, whatever the number")
    named = {
        "--items-public": privacy.items_public or None,
        "--user-budgets": privacy.user_budgets,
        "--ledger": privacy.ledger_file,
        "--cap": privacy.cap,
    }
    for option, given in named.items():
        if given is not None:
            raise InvalidArgument(f"{option} is for private methods, and {name} is not private")


def _check_claim(name: str, privacy: PrivacyOptions) -> None:
    """Refuse what a claim cannot do."""
    if privacy.user_budgets is not None and not METHODS[name].personal_claim:
        raise InvalidArgument(f"--user-budgets: what is claimed about {name} is not about persons, leave it out")
    if privacy.ledger_file is not None and privacy.cap is not None and privacy.cap != math.inf:
        raise InvalidArgument(
            f"--cap {privacy.cap:g}: a claim counts as unbounded, so only a ledger without a cap can record it: "
            "--cap inf"
        )


def ledger_of(path: Path | None, cap: float | None, budget: Budget, unit: str) -> Ledger | None:
    """Return the ledger that was named, created if need be."""
    from dpmf.privacy import Budget
    from dpmf.privacy.ledger import Ledger

    if path is None:
        if cap is not None:
            raise InvalidArgument("--cap is of a ledger: name its file with --ledger")
        return None
    if not budget.is_finite:
        raise InvalidArgument("--ledger means nothing with an infinite epsilon: leave it out, or give a number")
    return Ledger(path, None if cap is None else Budget.recorded(cap, budget.delta, unit, budget.neighbours))


def read_user_budgets(path: Path | None) -> dict[str, float] | None:
    """Read lines of user,epsilon, with or without a header."""
    if path is None:
        return None
    budgets: dict[str, float] = {}
    try:
        lines = path.read_bytes().decode("utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArgument(f"cannot read --user-budgets {path}: {error}") from None
    try:
        # Line by line, so that one person's quote does not hide the wishes of the next.
        rows = [next(csv.reader([line.removesuffix("\r")], strict=True), []) for line in lines]
    except csv.Error as error:
        raise InvalidArgument(f"cannot read --user-budgets {path}: {error}") from None
    for number, row in enumerate(rows, 1):
        if not row or (number == 1 and [part.strip() for part in row] == ["user", "epsilon"]):
            continue
        try:
            user, epsilon = row[0], float(row[1])
            if len(row) > 2 or user != user.strip() or not epsilon >= 0:
                raise ValueError
        except (IndexError, ValueError):
            raise InvalidArgument(f"line {number} of {path} should be user,epsilon, such as ann,0.5") from None
        if user in budgets:
            raise InvalidArgument(f"line {number} of {path} names a user for the second time: choose one epsilon")
        budgets[user] = epsilon
    return budgets


def checkpoint_of(
    checkpoint_folder: Path | None, checkpoint_every: int | None, checkpoint_minutes: float | None, resume: bool
) -> Checkpoint | None:
    """Return where to keep snapshots, if anywhere."""
    from dpmf.engine.checkpoints import Checkpoint

    if checkpoint_folder is None:
        if resume:
            raise InvalidArgument("--resume needs --checkpoint DIR, the folder with the snapshots")
        for option, given in (("--checkpoint-every", checkpoint_every), ("--checkpoint-minutes", checkpoint_minutes)):
            if given is not None:
                raise InvalidArgument(f"{option} needs --checkpoint DIR, the folder to keep snapshots in")
        return None
    seconds = None if checkpoint_minutes is None else 60 * checkpoint_minutes
    return Checkpoint(checkpoint_folder, 1 if checkpoint_every is None else checkpoint_every, seconds, resume)
