"""`dpmf train`."""

from __future__ import annotations

import csv
import math
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpmf.cli.gaussian import claim_report, overall_delta, print_claim
from dpmf.cli.options import (
    check_apart,
    check_holdout,
    parse_settings,
    parse_size,
    read_ratings,
    reading_arguments,
    reading_options,
    split_option,
    was_given,
)
from dpmf.cli.output import METRICS_NOTE, json_option, print_json, print_table, progress, say
from dpmf.cli.sampling import chain_options, check_chains, draw_traces, print_sampling, sampling_report
from dpmf.cli.sketching import print_sketch, sketch_report
from dpmf.errors import InvalidArgument

if TYPE_CHECKING:
    from dpmf.compare.running import Run
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


_TURNS = {"als": "rounds", "gaussian": "iterations"}  # what a method calls its epochs


def _private_options(function: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(_PRIVATE):
        function = option(function)
    return function


@click.command()
@click.argument("data")
@click.option("--method", default="als", show_default=True,
              type=click.Choice(["als", "sgd", "sgld", "gaussian", "sketch"]),
              help="How to factorize; sgd is not private.")  # fmt: skip
@click.option("--feedback", default="explicit", show_default=True, type=click.Choice(["explicit", "implicit"]),
              help="What counts: ratings, or which items people have, whatever the rating.")  # fmt: skip
@_private_options
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
@reading_options
@json_option
def train(
    data: str, method: str, feedback: str, epsilon: float | None, delta: float, mode: str, neighbours: str,
    items_public: bool, user_budgets: Path | None, ledger_file: Path | None, cap: float | None, sign_key: Path | None,
    factors: int | None, epochs: int | None, chains: int, trace: Path | None, holdout: float | None,
    how: str, seed: int, threads: int | None, memory: str | None, settings: tuple[str, ...], out: Path | None,
    model_folder: Path | None,
    checkpoint_folder: Path | None, checkpoint_every: int | None, checkpoint_minutes: float | None, resume: bool,
    as_json: bool, **reading: Any,
) -> None:  # fmt: skip
    """Train a model on the ratings in DATA: a catalogue name, a file or a folder."""
    _check_mode(method, mode, epsilon, feedback)
    if mode == "paper" and epsilon not in (None, math.inf):
        _check_claim(method, user_budgets, ledger_file, cap)
    check_chains(method, mode, epsilon, chains, trace, memory)
    if holdout is not None:
        check_holdout(holdout, how)
    elif how != "random":
        raise InvalidArgument(f"--split {how} says what to hold out: say how much with --holdout")
    began = time.perf_counter()
    from dpmf.engine.threads import thread_count
    from dpmf.files import check_replaceable
    from dpmf.methods import SGLD, GaussianGD, Sketch, configure
    from dpmf.model import model as model_files
    from dpmf.model import release as release_files
    from dpmf.model.signing import read_private_key
    from dpmf.privacy import Budget
    from dpmf.ratings.ondisk import is_store

    given: dict[str, Any] = {"n_factors": factors, "n_epochs": epochs, "seed": seed}
    private: dict[str, Any] = {}
    if method == "als":
        assert epsilon is not None
        given |= {"budget": Budget(epsilon, delta, neighbours=neighbours), "items_public": items_public}
        given["feedback"] = feedback
        private = {"user_budgets": _user_budgets(user_budgets)}
    elif method in ("sgld", "sketch"):
        assert epsilon is not None
        if method == "sketch" and mode == "paper" and was_given("delta"):
            raise InvalidArgument("--delta means nothing for the claim about a sketch, which has none: leave it out")
        unit = "rating" if method == "sketch" and mode == "paper" else "user"  # what the claim is about
        given |= {"budget": Budget(epsilon, delta, unit, neighbours), "items_public": items_public}
        # Without a promise SGLD has no mode to choose; a sketch has one with the published settings.
        given["mode"] = "paper" if epsilon == math.inf and method == "sgld" else mode
        private = {"user_budgets": _user_budgets(user_budgets), **({"n_chains": chains} if chains else {})}
    elif method == "gaussian":
        assert epsilon is not None
        given |= {"budget": Budget(epsilon, delta, neighbours=neighbours), "items_public": items_public, "mode": mode}
        given |= overall_delta(mode, epsilon, delta, settings)
        if mode == "paper" and epsilon != math.inf and neighbours != "replace" and was_given("neighbours"):
            raise InvalidArgument(f"--neighbours {neighbours}: the claim is about a rating that is replaced")
        private = {"user_budgets": _user_budgets(user_budgets)}
    else:
        _refuse_private_options(method, items_public, user_budgets, ledger_file, cap)
    configured = configure(
        method, {**{name: value for name, value in given.items() if value is not None}, **parse_settings(settings)}
    )
    thread_count(threads)
    checkpoint = _checkpoint(checkpoint_folder, checkpoint_every, checkpoint_minutes, resume)
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
        private["ledger"] = _ledger(ledger_file, cap, given["budget"])
    with progress(f"reading, then training {method}", configured.n_epochs) as advance:
        run = _train(
            configured, data, limit, reading, {"holdout": holdout or 0.0, "how": how, "seed": seed}, private,
            n_threads=threads, checkpoint=checkpoint,
            callbacks=[lambda record: advance(record.epoch, f"train {error} {record.train_rmse:.4f}")],
        )  # fmt: skip
    if out is not None:
        run.model.release.save(out, sign_key)
    if model_folder is not None:
        run.model.save(model_folder)
    report = _report(run, method, time.perf_counter() - began, out)
    if isinstance(configured, SGLD):
        report |= sampling_report(configured, run, private["user_budgets"])
        if trace is not None:
            draw_traces(run, trace)
    if isinstance(configured, GaussianGD):
        report |= claim_report(configured, run)
    if isinstance(configured, Sketch):
        report |= sketch_report(configured, run)
    if run.model.guarantee.mode == "certified" and private.get("user_budgets"):
        report["user_epsilons"] = _paid(run, given["budget"], private["user_budgets"])
    if as_json:
        print_json(report)
    else:
        _print(run, report, model_folder)
        print_sampling(run, report)
        print_claim(report)
        print_sketch(report)


def _check_mode(method: str, mode: str, epsilon: float | None, feedback: str) -> None:
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


def _refuse_private_options(
    method: str, items_public: bool, user_budgets: Path | None, ledger: Path | None, cap: float | None
) -> None:
    named = {"--items-public": items_public or None, "--user-budgets": user_budgets, "--ledger": ledger, "--cap": cap}
    for option, given in named.items():
        if given is not None:
            raise InvalidArgument(f"{option} is for private methods, and {method} is not private")


def _check_claim(method: str, user_budgets: Path | None, ledger: Path | None, cap: float | None) -> None:
    """Refuse what a claim cannot do, before anything is made."""
    if method != "sgld" and user_budgets is not None:
        raise InvalidArgument(f"--user-budgets: what is claimed about {method} is not about persons, leave it out")
    if ledger is not None and cap is not None and cap != math.inf:
        raise InvalidArgument(
            f"--cap {cap:g}: a claim counts as unbounded, so only a ledger without a cap can record it: --cap inf"
        )


def _ledger(path: Path | None, cap: float | None, budget: Budget) -> Ledger | None:
    from dpmf.privacy import Budget
    from dpmf.privacy.ledger import Ledger

    if path is None:
        if cap is not None:
            raise InvalidArgument("--cap is of a ledger: name its file with --ledger")
        return None
    if not budget.is_finite:
        raise InvalidArgument("--ledger means nothing with an infinite epsilon: leave it out, or give a number")
    # Claims about ratings count as unbounded in any unit; what can be added up is about users.
    return Ledger(path, None if cap is None else Budget(cap, budget.delta, "user", budget.neighbours))


def _user_budgets(path: Path | None) -> dict[str, float] | None:
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


def _train(
    method: Any, data: str, memory: int | None, reading: dict[str, Any], split: Any, private: Any, **how: Any
) -> Run:
    """Read and train, in memory or, if there is too little of it, from the disk."""
    from dpmf.compare.running import train_and_test
    from dpmf.methods import SGLD
    from dpmf.ratings import Ratings

    if memory is None:
        return train_and_test(method, read_ratings(data, **reading), **split, **private, **how)
    from dpmf.compare.streaming import prepare, streaming_source, train_streamed

    n_factors = (method.chosen() if isinstance(method, SGLD) else method).n_factors
    assert n_factors is not None
    with tempfile.TemporaryDirectory(prefix="dpmf-train-") as folder:
        place, options = Path(folder), reading_arguments(**reading)
        with streaming_source(data, memory=memory, n_factors=n_factors, scratch=place, **options) as source:
            if isinstance(source, Ratings):
                return train_and_test(method, source, **split, **private, **how)
            prepared = prepare(source, memory=memory, scratch=place, **split)
        return train_streamed(method, prepared, **private, **how)


def _checkpoint(folder: Path | None, every: int | None, minutes: float | None, resume: bool) -> Checkpoint | None:
    from dpmf.engine.checkpoints import Checkpoint

    if folder is None:
        if resume:
            raise InvalidArgument("--resume needs --checkpoint DIR, the folder with the snapshots")
        for option, given in (("--checkpoint-every", every), ("--checkpoint-minutes", minutes)):
            if given is not None:
                raise InvalidArgument(f"{option} needs --checkpoint DIR, the folder to keep snapshots in")
        return None
    return Checkpoint(folder, 1 if every is None else every, None if minutes is None else 60 * minutes, resume)


def _report(run: Run, method: str, seconds: float, out: Path | None) -> dict[str, Any]:
    from dpmf.compare.running import peak_memory

    guarantee, ranking = run.model.guarantee, {}
    if run.model.release.is_implicit:
        names = ("recall@10", "ndcg@10", "popularity_recall@10", "popularity_ndcg@10")
        ranking = {"feedback": "implicit", **{name: run.accuracy.get(name) for name in names}}
    return {
        "method": method,
        "mode": guarantee.mode,
        **ranking,
        "rmse": run.accuracy.get("rmse"),
        "mae": run.accuracy.get("mae"),
        "baseline_rmse": run.accuracy.get("baseline_rmse"),
        "biases_rmse": run.accuracy.get("biases_rmse"),
        "kld": run.accuracy.get("kld"),
        "kld_top_users": run.accuracy.get("kld_top_users"),
        "rmse_top_users": run.accuracy.get("rmse_top_users"),
        "by_popularity": [
            {"items_up_to": high, "ratings": count, "rmse": ours, "baseline_rmse": free}
            for high, count, (ours, free) in run.by_popularity
        ],
        "factors": run.model.release.n_factors,
        "epsilon": guarantee.epsilon,
        "delta": guarantee.delta,
        "unit": guarantee.unit,
        "neighbours": guarantee.neighbours,
        "certified": guarantee.certified,
        "assumptions": list(guarantee.assumptions),
        "seconds": seconds,
        "epoch_seconds": run.epoch_seconds,
        "updates_per_second": run.updates_per_second,
        "streamed": run.streamed,
        "peak_memory": peak_memory(),
        "out": None if out is None else str(out),
    }


def _paid(run: Run, budget: Budget, wanted: dict[str, float]) -> dict[str, float]:
    """Return the distribution of what users pay, for the holder of the data."""
    import numpy as np

    from dpmf.methods.personal import personal_epsilons

    paid = personal_epsilons(run.model.user_ids, budget, wanted)
    low, quarter, middle, high = np.quantile(paid, (0.0, 0.25, 0.5, 1.0)).tolist()
    return {
        "least": low,
        "quarter": quarter,
        "median": middle,
        "most": high,
        "below_budget": float(np.mean(paid < budget.epsilon)),
        "named": sum(run.model.user_ids.position(user) is not None for user in wanted),
    }


def _print(run: Run, report: dict[str, Any], model_folder: Path | None) -> None:
    sizes = f"{len(run.model.user_ids):,} users and {len(run.model.release.items):,} items"
    say(f"Trained on {run.n_ratings:,} ratings of {sizes}" + (", streamed from the disk" if run.streamed else ""))
    epochs = len(run.model.history)
    say(
        f"{epochs} {_TURNS.get(report['method'], 'epochs')} with {report['factors']} factors in "
        f"{epochs * run.epoch_seconds:.2f} s ({report['updates_per_second'] / 1e6:.1f} M updates/s), "
        f"{report['seconds']:.1f} s in all"
    )
    if run.accuracy:
        _print_accuracy(run, report["method"])
        say(METRICS_NOTE, "dim")
    say(f"Guarantee: {run.model.guarantee}", "bold" if run.model.guarantee.certified else "bold red")
    if "user_epsilons" in report and report["mode"] == "certified":
        paid = report["user_epsilons"]
        say(
            f"Users pay an epsilon of {paid['least']:g} at least, {paid['median']:g} in the middle and "
            f"{paid['most']:g} at most; {paid['below_budget']:.1%} pay less than the budget. Of those named in the "
            f"list, {paid['named']:,} are among the users. {METRICS_NOTE}"
        )
    if report["out"]:
        say(f"Release saved in {report['out']}")
    if model_folder is not None:
        say(f"Model saved in {model_folder}: sensitive, keep it inside", "yellow")


def _print_accuracy(run: Run, method: str) -> None:
    accuracy = run.accuracy
    if run.model.release.is_implicit:
        names = ("recall@10", "ndcg@10")
        popular = "popularity alone" if run.model.guarantee.mode == "none" else "private popularity alone"
        ranked = [(label, *(accuracy[prefix + name] for name in names))
                  for label, prefix in ((popular, "popularity_"), (method, ""))]  # fmt: skip
        print_table("Held-out items", ("", *names), ranked)
        return
    rows = [("mean of your own ratings", accuracy["baseline_rmse"], "")]
    if "biases_rmse" in accuracy:
        rows.append(("private item biases alone", accuracy["biases_rmse"], ""))
    rows.append((method, accuracy["rmse"], f"{accuracy['mae']:.4f}"))
    print_table("Held-out ratings", ("", "rmse", "mae"), rows)
    if math.isfinite(accuracy.get("kld", math.nan)):
        own_fit = method in ("als", "sgld") or run.model.guarantee.mode == "certified"
        whose = "It is of what everybody fits to their own ratings, not of the release, and" if own_fit else "It"
        say(
            f"Leak, as the divergence of errors on training ratings from these: {accuracy['kld']:.4f} nats, and "
            f"{accuracy['kld_top_users']:.4f} for the tenth of the users with the most ratings. {whose} promises "
            "nothing."
        )
    if run.by_popularity:
        buckets = [(f"{high:.0%}", count, ours, free) for high, count, (ours, free) in run.by_popularity]
        print_table("By popularity of the item", ("most popular", "ratings", "rmse", "own mean"), buckets)
