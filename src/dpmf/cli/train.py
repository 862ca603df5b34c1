"""`dpmf train`."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpmf.cli.chains import ChainOptions, chain_options, check_chains, draw_traces
from dpmf.cli.groups import folder_option, grouped
from dpmf.cli.options import (
    Held,
    check_share,
    check_test,
    data_options,
    parse_data_options,
    parse_holdout,
    parse_settings,
    parse_size,
    split_option,
    test_option,
    was_given,
)
from dpmf.cli.output import json_option, print_json, progress, say
from dpmf.cli.profiles import ProfileOptions, check_profiles, profile_options, read_profiles
from dpmf.cli.train_options import (
    PURPOSES,
    CheckpointOptions,
    ClusterOptions,
    MethodOptions,
    PrivacyOptions,
    SplitOptions,
    check_privacy,
    checkpoint_of,
    cluster_options,
    ledger_of,
    method_for,
    private_options,
    read_start,
    read_user_budgets,
)
from dpmf.cli.train_report import print_run
from dpmf.errors import InvalidArgument
from dpmf.methods import METHODS, configure
from dpmf.runs.outputs import Outputs

if TYPE_CHECKING:
    from dpmf.methods import Method
    from dpmf.ratings.options import ReadOptions
    from dpmf.runs.parts import AnySplit

_OPTIONS = {  # what fields of methods are called on the command line
    "n_factors": "factors", "n_epochs": "epochs", "seed": "seed", "feedback": "feedback", "mode": "mode",
    "items_public": "items_public",
}  # fmt: skip
_COMMON = ("budget", "mode", "items_public")  # fields that private methods have in common


def _with_method(function: Callable[..., None]) -> Callable[..., None]:
    """Choose the method by --method, --for and --feedback, before options are put into groups."""

    @functools.wraps(function)
    def chosen(*, method: str | None, purpose: str | None, feedback: str, **others: Any) -> None:
        if others["start_folder"] is not None and method is None and purpose is None:
            method = "als"
        function(method=method_for(method, purpose, feedback), feedback=feedback, **others)

    return chosen


@click.command()
@click.argument("data")
@click.option(
    "--for",
    "purpose",
    type=click.Choice(list(PURPOSES)),
    help="What the release is for: lists (method ease), expected ratings (als), or both (joint), which is the default.",
)
@click.option(
    "--method",
    type=click.Choice(list(METHODS)),
    help="The method, instead of --for; sgd is not private.",
)
@click.option(
    "--feedback",
    default="explicit",
    show_default=True,
    type=click.Choice(["explicit", "implicit"]),
    help="What to learn from: ratings, or which items people have, whatever the rating.",
)
@private_options
@profile_options
@click.option("--factors", type=int, metavar="K", help="Length of the factor vectors.")
@click.option("--epochs", type=int, metavar="N", help="Passes over the ratings; rounds of a private run.")
@chain_options
@click.option("--holdout", type=Held(), metavar="F", help="Hold out this fraction and report the error on it.")
@split_option
@test_option
@click.option(
    "--holdout-users",
    type=float,
    metavar="F",
    help="Hold out this fraction of the users and report ranking figures for them.",
)
@click.option(
    "--seed", type=int, default=0, show_default=True, help="Seed of the split, the initialization and the order."
)
@click.option(
    "--threads", type=int, metavar="N", help="Number of threads, all CPUs by default; never changes the result."
)
@click.option("--memory", metavar="SIZE", help="Stream ratings from disk if they take more than this, such as 1GB.")
@cluster_options
@click.option(
    "--set", "settings", multiple=True, metavar="NAME=VALUE", help="Set any other parameter of the method (repeatable)."
)
@click.option(
    "--dry-run", is_flag=True, help="Show what the run would cost and could learn, from public facts; reads no ratings."
)
@folder_option("--continue", "start_folder", "Start from this release of joint or als, on new ratings; needs --ledger.")
@folder_option("--out", "out", "Where to save the release.")
@folder_option("--checkpoint", "checkpoint_folder", "Where to save snapshots of the run. Sensitive.")
@click.option(
    "--checkpoint-every",
    type=int,
    metavar="N",
    help="Epochs between snapshots, 1 by default; a private run takes one after every round.",
)
@click.option("--checkpoint-minutes", type=float, metavar="M", help="Also snapshot after this many minutes.")
@click.option("--resume", is_flag=True, help="Resume from the newest snapshot in --checkpoint, if there is one.")
@folder_option("--model", "model", "Where to save the model, user factors included. Sensitive.")
@data_options
@json_option
@_with_method
@grouped(
    asked=MethodOptions,
    privacy=PrivacyOptions,
    profiles=ProfileOptions,
    chains=ChainOptions,
    split=SplitOptions,
    snapshots=CheckpointOptions,
    spread=ClusterOptions,
    outputs=Outputs,
)
def train(
    data: str,
    asked: MethodOptions,
    privacy: PrivacyOptions,
    profiles: ProfileOptions,
    chains: ChainOptions,
    split: SplitOptions,
    snapshots: CheckpointOptions,
    spread: ClusterOptions,
    outputs: Outputs,
    threads: int | None,
    memory: str | None,
    dry_run: bool,
    start_folder: Path | None,
    as_json: bool,
    **reading: Any,
) -> None:
    """Train a model on DATA and save a release.

    DATA is a catalogue name, a file or a folder.
    """
    began = time.perf_counter()
    asked.check()
    check_privacy(asked, privacy)
    check_profiles([asked.method], privacy.kind, profiles)
    check_chains(asked.method, privacy.kind, chains, streams=memory is not None)
    _check_split(split)
    from dpmf.runs.job import Job
    from dpmf.runs.report import report_of
    from dpmf.runs.training import Arguments

    method, user_budgets = _configured(asked, privacy), read_user_budgets(privacy.user_budgets)
    profiles_read = read_profiles(profiles, privacy.delta, allow_large_delta=privacy.allow_large_delta)
    checkpoint = checkpoint_of(**vars(snapshots))
    limit = None if memory is None else parse_size(memory)
    read = replace(parse_data_options(**reading), unrated=method.is_implicit)
    job = Job(method, data, read, _tested_on(split, asked.seed, method, data, read), limit, outputs, spread.executor())
    job.check(threads, checkpoint)
    if dry_run:
        for option, given in (("--continue", start_folder), ("--cluster", job.executor)):
            if given is not None:
                raise InvalidArgument(f"--dry-run knows nothing of {option}: leave one of them out")
        from dpmf.cli.dry_run import run_dry
        from dpmf.engine.threads import thread_count

        run_dry(data, method, read, n_threads=thread_count(threads), ledger_file=privacy.ledger_file, as_json=as_json)
        return
    start = None if start_folder is None else read_start(start_folder, method, privacy)
    ledger = None
    if method.modes:  # last of all, because it makes a file
        # What a ledger adds up is the unit of certified runs: claims about ratings count as unbounded in any.
        unit = method.unit_for("certified")
        ledger = ledger_of(privacy.ledger_file, privacy.cap, method.facts()["budget"], unit)
    error = "error" if method.is_implicit else "rmse"
    doing = "starting workers" if job.executor is not None else "reading"
    with progress(f"{doing}, then training {method.name}", method.n_turns or None) as advance:
        callbacks = [lambda record: advance(record.epoch, f"train {error} {record.train_rmse:.4f}")]
        arguments = Arguments(threads, callbacks, checkpoint, user_budgets, ledger, profiles_read, start, chains.chains)
        run = job.run(arguments)
    report = report_of(run, method, seconds=time.perf_counter() - began, out=outputs.out, user_budgets=user_budgets)
    draw_traces(run, chains)
    if as_json:
        print_json(report)
    else:
        print_run(run, method, report, outputs.model)
        if user_budgets and job.executor is not None:
            say("On a cluster, ids in --user-budgets that are not among the users are not counted: check them")
        if ledger is not None and start is not None:
            say(
                f"People in all data sets of the ledger have spent epsilon {ledger.spent():g} of {ledger.cap.epsilon:g}"
            )


def _check_split(split: SplitOptions) -> None:
    check_test(split.test_file, {"holdout": "--holdout", "how": "--split", "holdout_users": "--holdout-users"})
    if split.holdout_users is not None:
        if split.holdout is not None or split.how != "random":
            raise InvalidArgument(
                "--holdout-users holds out people, and --holdout or --split ratings: give one of them"
            )
        check_share("--holdout-users", split.holdout_users)
        return
    if split.holdout is not None:
        parse_holdout(split.holdout, split.how)
    elif split.how != "random":
        raise InvalidArgument(f"--split {split.how} says what to hold out: say how much with --holdout")


def _tested_on(split: SplitOptions, seed: int, method: Method, data: str, read: ReadOptions) -> AnySplit:
    from dpmf.evaluation.new_users import NewUsers
    from dpmf.runs.parts import Split, TestFile

    if split.test_file is not None:
        return TestFile(split.test_file, data, read)
    if split.holdout_users is None:
        return Split(0.0 if split.holdout is None else parse_holdout(split.holdout, split.how), split.how, seed)
    return NewUsers(split.holdout_users, positive=-math.inf if method.is_implicit else None, seed=seed)


def _configured(asked: MethodOptions, privacy: PrivacyOptions) -> Method:
    """Return the method with all its settings, each of which is given once."""
    fields: dict[str, Any] = {"n_factors": asked.factors, "n_epochs": asked.epochs, "seed": asked.seed}
    settings = parse_settings(asked.settings)
    for name, option in _OPTIONS.items():
        if name in settings and was_given(option):
            raise InvalidArgument(f"--{option.replace('_', '-')} and --set {name} are the same: give one of them")
    if METHODS[asked.method].modes:
        assert privacy.epsilon is not None
        private = METHODS[asked.method].private_fields(
            privacy.mode,
            privacy.epsilon,
            privacy.delta if was_given("delta") else None,
            neighbours=privacy.neighbours if was_given("neighbours") else None,
            items_public=privacy.items_public,
            allow_large_delta=privacy.allow_large_delta,
        )
        for name in settings:
            if name in private and name not in _COMMON:
                raise InvalidArgument(f"--delta and --set {name} are the same: give one of them")
        fields |= private
    if asked.feedback != "explicit":
        fields["feedback"] = asked.feedback
    return configure(asked.method, {name: value for name, value in fields.items() if value is not None} | settings)
