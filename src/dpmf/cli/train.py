"""`dpmf train`."""

from __future__ import annotations

import math
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpmf.cli.options import (
    check_apart,
    check_holdout,
    data_options,
    parse_data_options,
    parse_settings,
    parse_size,
    read_ratings,
    split_option,
)
from dpmf.cli.output import json_option, print_json, progress
from dpmf.cli.train_gaussian import claim_report, overall_delta, print_claim
from dpmf.cli.train_objective import (
    check_profiles,
    objective_report,
    print_objective,
    profile_options,
    read_profiles,
)
from dpmf.cli.train_options import (
    check_claim,
    check_mode,
    check_neighbours_and_delta,
    checkpoint_of,
    ledger_of,
    private_options,
    read_user_budgets,
    refuse_private_options,
)
from dpmf.cli.train_report import paid, print_run, report_of
from dpmf.cli.train_sgld import chain_options, check_chains, draw_traces, print_sampling, sampling_report
from dpmf.cli.train_sketch import print_sketch, sketch_report
from dpmf.errors import InvalidArgument

if TYPE_CHECKING:
    from dpmf.runs.training import Run


@click.command()
@click.argument("data")
@click.option("--method", default="als", show_default=True,
              type=click.Choice(["als", "sgd", "sgld", "gaussian", "sketch", "objective"]),
              help="How to factorize; sgd is not private.")  # fmt: skip
@click.option("--feedback", default="explicit", show_default=True, type=click.Choice(["explicit", "implicit"]),
              help="What counts: ratings, or which items people have, whatever the rating.")  # fmt: skip
@private_options
@profile_options
@click.option("--factors", type=int, metavar="K", help="Length of the factor vectors.")
@click.option("--epochs", type=int, metavar="N", help="How often every rating is visited.")
@chain_options
@click.option("--holdout", type=float, metavar="F", help="Hold out this fraction and report the error on it.")
@split_option
@click.option("--seed", type=int, default=0, show_default=True, help="Fixes split, initial factors and order.")
@click.option("--threads", type=int, metavar="N", help="Threads; all CPUs by default. Never changes the result.")
@click.option("--memory", metavar="SIZE", help="Stream ratings from the disk if they take more than this, such as 1GB.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Any other field of the method.")
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Where to save the release.")
@click.option(
    "--checkpoint",
    "checkpoint_folder",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Where to keep snapshots of the run. Sensitive.",
)
@click.option("--checkpoint-every", type=int, metavar="N",
              help="Epochs per snapshot, 1 by default; a private run takes one after every round.")  # fmt: skip
@click.option("--checkpoint-minutes", type=float, metavar="M", help="Snapshot after so many minutes, too.")
@click.option("--resume", is_flag=True, help="Go on from the newest snapshot in --checkpoint, if there is one.")
@click.option(
    "--model",
    "model_folder",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Where to save the whole model, user factors included. Sensitive.",
)
@data_options
@json_option
def train(
    data: str, method: str, feedback: str, epsilon: float | None, delta: float, mode: str, neighbours: str,
    items_public: bool, user_budgets: Path | None, ledger_file: Path | None, cap: float | None, sign_key: Path | None,
    profiles: Path | None, profiles_epsilon: float | None, profiles_public: bool,
    factors: int | None, epochs: int | None, chains: int, trace: Path | None, holdout: float | None,
    how: str, seed: int, threads: int | None, memory: str | None, settings: tuple[str, ...], out: Path | None,
    model_folder: Path | None,
    checkpoint_folder: Path | None, checkpoint_every: int | None, checkpoint_minutes: float | None, resume: bool,
    as_json: bool, **reading: Any,
) -> None:  # fmt: skip
    """Train a model on the ratings in DATA: a catalogue name, a file or a folder."""
    check_mode(method, mode, epsilon, feedback)
    if mode == "paper" and epsilon not in (None, math.inf):
        check_claim(method, user_budgets, ledger_file, cap)
    check_profiles(method, mode, epsilon, profiles, profiles_epsilon, profiles_public)
    check_chains(method, mode, epsilon, chains, trace, memory)
    if holdout is not None:
        check_holdout(holdout, how)
    elif how != "random":
        raise InvalidArgument(f"--split {how} says what to hold out: say how much with --holdout")
    began = time.perf_counter()
    from dpmf.engine.threads import thread_count
    from dpmf.files import check_replaceable
    from dpmf.methods import METHODS, SGLD, GaussianGD, ObjectivePerturbation, Sketch, configure
    from dpmf.model import model as model_files
    from dpmf.model import release_json as release_files
    from dpmf.model.signing import read_private_key
    from dpmf.ratings.store.columns import is_store

    given: dict[str, Any] = {"n_factors": factors, "n_epochs": epochs, "seed": seed}
    private: dict[str, Any] = {}
    if method == "sgd":
        refuse_private_options(method, items_public, user_budgets, ledger_file, cap)
    else:
        assert epsilon is not None
        check_neighbours_and_delta(method, mode, epsilon, neighbours)
        given |= METHODS[method].private_fields(mode, epsilon, delta, neighbours=neighbours, items_public=items_public)
        private = {"user_budgets": read_user_budgets(user_budgets), **({"n_chains": chains} if chains else {})}
    if method == "als":
        given["feedback"] = feedback
    elif method == "gaussian":
        assert epsilon is not None
        given |= overall_delta(mode, epsilon, delta, settings)
    elif method == "objective":
        private["profiles"] = read_profiles(profiles, profiles_epsilon, profiles_public, delta)
    configured = configure(
        method, {**{name: value for name, value in given.items() if value is not None}, **parse_settings(settings)}
    )
    thread_count(threads)
    checkpoint = checkpoint_of(checkpoint_folder, checkpoint_every, checkpoint_minutes, resume)
    # Find out before the work, not after it, that the result could not be saved.
    store = Path(data) if is_store(data) else None
    check_apart({"DATA": store, "--out": out, "--model": model_folder, "--checkpoint": checkpoint_folder})
    if sign_key is not None:
        if out is None:
            raise InvalidArgument("--sign-key signs what --out saves: name the folder")
        read_private_key(sign_key)
    if out is not None:
        check_replaceable(out, release_files.FILES)
    if model_folder is not None:
        check_replaceable(model_folder, model_files.FILES)
        check_replaceable(model_folder / "release", release_files.FILES)
    if memory is not None and method not in ("sgd", "sgld"):
        raise InvalidArgument("--memory streams ratings for sgd and sgld: leave it out, or take one of them")
    limit = None if memory is None else parse_size(memory)
    error = "rmse" if feedback == "explicit" else "error"
    if method != "sgd":  # last of all, because it makes a file
        # What a ledger adds up: claims about ratings count as unbounded in any.
        unit = "rating" if method == "objective" else "user"
        private["ledger"] = ledger_of(ledger_file, cap, given["budget"], unit)
    with progress(f"reading, then training {method}", configured.n_turns) as advance:
        run = _train(
            configured, data, limit, reading, {"holdout": holdout or 0.0, "how": how, "seed": seed}, private,
            n_threads=threads, checkpoint=checkpoint,
            callbacks=[lambda record: advance(record.epoch, f"train {error} {record.train_rmse:.4f}")],
        )  # fmt: skip
    if out is not None:
        run.model.release.save(out, sign_key)
    if model_folder is not None:
        run.model.save(model_folder)
    report = report_of(run, method, time.perf_counter() - began, out)
    if isinstance(configured, SGLD):
        report |= sampling_report(configured, run, private["user_budgets"])
        if trace is not None:
            draw_traces(run, trace)
    if isinstance(configured, GaussianGD):
        report |= claim_report(configured, run)
    if isinstance(configured, Sketch):
        report |= sketch_report(configured, run)
    if isinstance(configured, ObjectivePerturbation):
        report |= objective_report(given["budget"], run)
    if run.model.guarantee.mode == "certified" and private.get("user_budgets"):
        report["user_epsilons"] = paid(run, given["budget"], private["user_budgets"])
    if as_json:
        print_json(report)
    else:
        print_run(run, report, model_folder)
        print_sampling(run, report)
        print_claim(report)
        print_sketch(report)
        print_objective(report)


def _train(
    method: Any, data: str, memory: int | None, reading: dict[str, Any], split: Any, private: Any, **how: Any
) -> Run:
    """Read and train, in memory or, if there is too little of it, from the disk."""
    from dpmf.ratings import Ratings
    from dpmf.runs.training import train_and_test

    if memory is None:
        return train_and_test(method, read_ratings(data, **reading), **split, **private, **how)
    from dpmf.runs.streamed import open_ratings, prepare, train_streamed

    n_factors = method.facts()["n_factors"]
    with tempfile.TemporaryDirectory(prefix="dpmf-train-") as folder:
        place, options = Path(folder), parse_data_options(**reading)
        with open_ratings(data, memory=memory, n_factors=n_factors, scratch=place, options=options) as source:
            if isinstance(source, Ratings):
                return train_and_test(method, source, **split, **private, **how)
            prepared = prepare(source, memory=memory, scratch=place, **split)
        return train_streamed(method, prepared, **private, **how)
