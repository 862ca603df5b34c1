"""`dpmf simulate`."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpmf.cli.groups import grouped
from dpmf.cli.options import check_holdout, data_options, read_ratings, was_given
from dpmf.cli.output import METRICS_NOTE, json_option, print_json, print_table, progress, say
from dpmf.cli.profiles import ProfileOptions, check_profiles, profile_options, read_profiles
from dpmf.cli.train_options import checkpoint_of, ledger_of, method_for
from dpmf.errors import InvalidArgument

if TYPE_CHECKING:
    from dpmf.federated.simulate.trial import Trial
    from dpmf.model import EpochRecord

_MOST_USERS, _MOST_FACTORS = 1 << 20, 1024
_FOR = {  # the scenarios and modes that each option is for
    "per_round": ("--per-round", ("s3",), ("paper", "certified")),
    "come": ("--online-probability", ("s3",), ("paper", "certified")),
    "leave": ("--offline-probability", ("s3",), ("paper", "certified")),
    "alone": ("--without-third-party", ("s2",), ("paper",)),
    "dropouts": ("--dropouts", ("s2", "s3"), ("certified",)),
    "colluders": ("--colluders", ("s2", "s3"), ("certified",)),
    "method": ("--method", ("s2", "s3"), ("certified",)),
    "delta": ("--delta", ("s2", "s3"), ("certified",)),
    "ledger_file": ("--ledger", ("s2", "s3"), ("certified",)),
    "cap": ("--cap", ("s2", "s3"), ("certified",)),
    "profiles": ("--profiles", ("s2", "s3"), ("certified",)),
    "profiles_epsilon": ("--profiles-epsilon", ("s2", "s3"), ("certified",)),
    "profiles_public": ("--profiles-public", ("s2", "s3"), ("certified",)),
}
_RANGES = {
    "rounds": ("--rounds", 1, 10**9),
    "per_round": ("--per-round", 1, _MOST_USERS),
    "factors": ("--factors", 0, _MOST_FACTORS),
    "come": ("--online-probability", 1e-6, 1.0),
    "leave": ("--offline-probability", 0.0, 1.0),
    "dropouts": ("--dropouts", 0.0, 0.99),
    "colluders": ("--colluders", 0.0, 0.99),
}
_SETTINGS = (*_RANGES, "method", "items_public", "seed")  # options that a plan takes as they are


@click.command()
@click.argument("data")
@click.option(
    "--scenario",
    type=click.Choice(["s1", "s2", "s3"]),
    default="s3",
    show_default=True,
    help="Who is trusted: s1 the recommender; s2 a third party, with sums only; s3 likewise, and people come and go.",
)
@click.option(
    "--mode",
    type=click.Choice(["certified", "paper"]),
    default="certified",
    show_default=True,
    help="Which guarantee: proven here (certified), or as the paper claims.",
)
@click.option(
    "--method",
    metavar="NAME",
    help="Method of a certified run: joint by default, as in training; als sends less.",
)
@click.option(
    "--epsilon", type=float, metavar="E", help="The ε of the budget, or of the claim; 'inf' means not private."
)
@click.option("--delta", type=float, default=1e-6, show_default=True, metavar="D", help="The δ of a certified run.")
@profile_options
@click.option("--rounds", type=int, metavar="N", help="Number of rounds: 100, 10,000 for s3, or 6 in a certified run.")
@click.option(
    "--per-round",
    type=int,
    metavar="K",
    help="Number of people in a round of s3: at most 100, or everybody in a certified run.",
)
@click.option(
    "--online-probability", "come", type=float, metavar="P", help="Chance of coming online in a round of s3: 0.005."
)
@click.option(
    "--offline-probability", "leave", type=float, metavar="P", help="Chance of leaving in a round of s3: 0.01."
)
@click.option("--without-third-party", "alone", is_flag=True, help="s2 as it would be if nobody summed the answers.")
@click.option("--dropouts", type=float, metavar="F", help="Fraction of a certified round that may drop out: 0.05.")
@click.option("--colluders", type=float, metavar="F", help="Fraction of a certified round that may collude: 0.05.")
@click.option("--factors", type=int, metavar="K", help="Length of the profiles: 50, or chosen in a certified run.")
@click.option("--random-items", type=int, metavar="N", help="Restrict DATA to N items, drawn with --seed.")
@click.option("--holdout", type=float, metavar="F", help="Hold out this fraction and report the error on it.")
@click.option("--items-public", is_flag=True, help="Assert that the item ids in DATA are a public list.")
@click.option(
    "--seed",
    type=int,
    default=0,
    show_default=True,
    help="Seed of the split, the initialization, and who is online when.",
)
@click.option("--threads", type=int, metavar="N", help="Number of threads for measuring errors; all CPUs by default.")
@click.option(
    "--checkpoint",
    "checkpoint_folder",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Where to store snapshots of the run. Sensitive: they hold the secrets of all parties.",
)
@click.option("--resume", is_flag=True, help="Resume from the newest snapshot in --checkpoint, if there is one.")
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Where to save the release.")
@click.option(
    "--ledger",
    "ledger_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Record what a certified run releases here, before anybody is asked.",
)
@click.option("--cap", type=float, metavar="E", help="The total epsilon that a new --ledger allows.")
@data_options
@json_option
@grouped(profiles=ProfileOptions)
def simulate(
    data: str,
    scenario: str,
    mode: str,
    epsilon: float | None,
    delta: float,
    profiles: ProfileOptions,
    alone: bool,
    random_items: int | None,
    holdout: float | None,
    threads: int | None,
    checkpoint_folder: Path | None,
    resume: bool,
    out: Path | None,
    ledger_file: Path | None,
    cap: float | None,
    as_json: bool,
    **others: Any,
) -> None:
    """Simulate the untrusted-recommender protocol on DATA.

    All parties are in this process.
    """
    epsilon = _check(scenario, mode, epsilon)
    if mode == "certified":
        others["method"] = method_for(others["method"], None, "explicit")
    check_profiles([others["method"] or "als"], mode if scenario != "s1" else "paper", profiles)
    if holdout is not None:
        check_holdout(holdout, "random")
    began = time.perf_counter()
    from dpmf.engine.threads import thread_count
    from dpmf.federated.certified.scenario import CertifiedScenario
    from dpmf.federated.simulate.report import report_of
    from dpmf.federated.simulate.trial import n_rounds, plan_trial, run_trial, snapshot_interval
    from dpmf.files import check_replaceable
    from dpmf.methods.checks import check_rated
    from dpmf.model import release_json as release_files
    from dpmf.privacy import Budget
    from dpmf.ratings.subset import random_items as restricted
    from dpmf.runs.outputs import check_apart

    thread_count(threads)
    settings = {name: others.pop(name) for name in _SETTINGS}
    settings = {name: value for name, value in settings.items() if value is not None}
    seed = settings["seed"]
    plan = plan_trial(scenario, mode, epsilon, delta, {**settings, **({"third_party": False} if alone else {})})
    every = snapshot_interval(plan) if checkpoint_folder else None
    checkpoint = checkpoint_of(checkpoint_folder, every, None, resume)
    check_apart({"release": out, "checkpoint": checkpoint_folder})
    if out is not None:
        check_replaceable(out, release_files.FILES)
    profiles_read = read_profiles(profiles, delta)
    ratings = read_ratings(data, **others)
    check_rated(ratings.scale)
    if random_items is not None:
        ratings = restricted(ratings, random_items, seed=seed, keep_people=mode == "certified")
    budget = plan.budget if isinstance(plan, CertifiedScenario) else Budget(epsilon, delta)
    ledger = ledger_of(ledger_file, cap, budget, budget.unit)  # last of all, because it creates a file
    with progress(f"simulating {scenario}", n_rounds(plan) or None) as advance:
        note = [""]

        def tell(record: EpochRecord) -> None:
            note[0] = f"train rmse {record.train_rmse:.4f}"
            advance(record.epoch, note[0])

        trial = run_trial(
            plan,
            ratings,
            holdout=holdout or 0.0,
            seed=seed,
            n_threads=threads,
            callbacks=[tell],
            checkpoint=checkpoint,
            ledger=ledger,
            profiles=profiles_read,
            on_round=lambda done: advance(done, note[0]),
        )
    if out is not None:
        trial.model.release.save(out)
    report = report_of(trial, scenario, time.perf_counter() - began)
    report["out"] = None if out is None else str(out)
    if as_json:
        print_json(report)
    else:
        _print(trial, report)


def _check(scenario: str, mode: str, epsilon: float | None) -> float:
    """Refuse options that do not go together, before anything is read; return epsilon."""
    if epsilon is None:
        raise InvalidArgument("simulate needs --epsilon: a number such as 1, or inf, which means not private")
    if scenario == "s1" and mode == "certified" and epsilon != math.inf:
        raise InvalidArgument(
            "--scenario s1 is certified only with profiles from elsewhere: use dpmf train --method objective "
            "--profiles, or add --mode paper"
        )
    if mode == "certified" and epsilon == math.inf:
        raise InvalidArgument("--epsilon inf certifies nothing: add --mode paper, or give a number")
    for name, (option, least, most) in _RANGES.items():
        value = click.get_current_context().params[name]
        if value is not None and not least <= value <= most:
            raise InvalidArgument(f"{option} {value:g} is out of range: give a number from {least:g} to {most:g}")
    for name, (option, scenarios, modes) in _FOR.items():
        if was_given(name) and (scenario not in scenarios or mode not in modes):
            raise InvalidArgument(f"{option} means nothing for {mode} {scenario}: leave it out")
    return epsilon


def _print(trial: Trial, report: dict[str, Any]) -> None:
    model = trial.model
    sizes = f"{len(model.user_ids):,} people and {len(model.release.items):,} items"
    say(f"Simulated {report['rounds']:,} rounds of {report['method']} with {sizes} in {report['seconds']:.1f} s")
    if trial.outcome is not None and report["took_part"] is None:
        say("The run was at its end already, so this process measured no traffic")
    elif trial.outcome is not None:
        say(
            f"{report['took_part']:,} people took part; {report['discarded']:,} rounds were discarded and "
            f"{report['refused']:,} messages refused"
        )
        _print_traffic(report)
    _print_accuracy(report)
    say(f"Guarantee: {model.guarantee}", "bold" if model.guarantee.certified else "bold red")
    if "against_third_party" in report:
        say(f"That is against the recommender. {report['against_third_party']}")
    if "composed_epsilon" in report:
        say(
            f"All rounds together would cost epsilon {report['composed_epsilon']:g} if profiles never moved; they do, "
            "and no finite epsilon is proven. dpmf explain on the release says what else is not covered."
        )
    if report["out"]:
        say(f"Release saved in {report['out']}")


def _print_accuracy(report: dict[str, Any]) -> None:
    if report["mean_error"] is not None:
        rows = [("mean error, training ratings", report["mean_error"])]
        if report["rmse"] is not None:
            rows += [("rmse, held-out ratings", report["rmse"]), ("rmse of the per-user mean", report["baseline_rmse"])]
        print_table("Errors", ("", "error"), rows)
    if report.get("recall@10") is not None:
        names = ("recall@10", "ndcg@10")
        labels = {"popularity_": "popularity, not private", "": report["method"]}
        ranked = [(label, *(report[prefix + name] for name in names)) for prefix, label in labels.items()]
        print_table("Held-out items", ("", *names), ranked)
    if report["mean_error"] is not None or report.get("recall@10") is not None:
        say(METRICS_NOTE, "dim")


def _print_traffic(report: dict[str, Any]) -> None:
    def bytes_of(name: str) -> str:
        return f"{report[name]:,.0f} bytes"

    def milliseconds(figures: dict[str, Any], name: str) -> str:
        return f"{1e3 * figures[name]:.3g} ms"

    few, published = "people with up to 20 ratings, at most", report["published"]
    client, third_party = "client_seconds", "third_party_seconds"
    rows = [
        ("down to a person, mean", bytes_of("bytes_down"), ""),
        ("up from a person, mean", bytes_of("bytes_up"), ""),
        (f"down, {few}", bytes_of("most_bytes_down_20_ratings"), "12 KB"),
        (f"up, {few}", bytes_of("most_bytes_up_20_ratings"), "5 KB"),
        ("third party to recommender, at most", bytes_of("most_bytes_from_third_party"), "3 MB"),
        ("computing time of a person, mean", milliseconds(report, client), milliseconds(published, client)),
        (
            "computing time of the third party, mean",
            milliseconds(report, third_party),
            milliseconds(published, third_party),
        ),
        ("whole round, mean", milliseconds(report, "round_seconds"), "5 s"),
    ]
    print_table("Per round", ("", "here", "published"), rows)
    if "bytes_per_number" in report:
        packed = " or ".join(map(str, report["bytes_per_number"]))
        say(f"Answers cover the whole catalogue, with {packed} bytes per number instead of 8.")
