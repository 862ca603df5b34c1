"""`dpmf simulate`."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpmf.cli.options import check_apart, check_holdout, data_options, read_ratings, was_given
from dpmf.cli.output import METRICS_NOTE, json_option, print_json, print_table, progress, say
from dpmf.cli.train_options import checkpoint_of, ledger_of
from dpmf.errors import InvalidArgument

if TYPE_CHECKING:
    from dpmf.federated.certified.simulation import CertifiedOutcome, CertifiedScenario
    from dpmf.federated.published.scenario import Scenario
    from dpmf.federated.published.simulation import Outcome
    from dpmf.model import EpochRecord, Model
    from dpmf.privacy import Guarantee

_PUBLISHED = {"client_seconds": 5.7e-7, "third_party_seconds": 0.4}  # Hua, Xia and Zhong (2015), on Netflix
_S1_ROUNDS, _S2_ROUNDS, _S3_ROUNDS = 100, 100, 10_000
MOST_USERS, MOST_FACTORS = 1 << 20, 1024
_FOR = {  # what each option is for: scenarios, and modes
    "per_round": ("--per-round", ("s3",), ("paper", "certified")),
    "come": ("--online-probability", ("s3",), ("paper", "certified")),
    "leave": ("--offline-probability", ("s3",), ("paper", "certified")),
    "alone": ("--without-third-party", ("s2",), ("paper",)),
    "dropouts": ("--dropouts", ("s2", "s3"), ("certified",)),
    "colluders": ("--colluders", ("s2", "s3"), ("certified",)),
    "delta": ("--delta", ("s2", "s3"), ("certified",)),
    "ledger_file": ("--ledger", ("s2", "s3"), ("certified",)),
    "cap": ("--cap", ("s2", "s3"), ("certified",)),
}
_RANGES = {
    "rounds": ("--rounds", 1, 10**9), "per_round": ("--per-round", 1, MOST_USERS),
    "factors": ("--factors", 0, MOST_FACTORS), "come": ("--online-probability", 1e-6, 1.0),
    "leave": ("--offline-probability", 0.0, 1.0), "dropouts": ("--dropouts", 0.0, 0.99),
    "colluders": ("--colluders", 0.0, 0.99),
}  # fmt: skip


@click.command()
@click.argument("data")
@click.option(
    "--scenario",
    type=click.Choice(["s1", "s2", "s3"]),
    default="s3",
    show_default=True,
    help="Whom people trust: the recommender; a third party with sums; likewise, and people come and go.",
)
@click.option(
    "--mode",
    type=click.Choice(["certified", "paper"]),
    default="certified",
    show_default=True,
    help="What guarantee: proven here, or claimed by a paper.",
)
@click.option("--epsilon", type=float, metavar="E", help="Budget or claim; 'inf' says explicitly: no noise at all.")
@click.option("--delta", type=float, default=1e-6, show_default=True, metavar="D", help="Of a certified run.")
@click.option("--rounds", type=int, metavar="N", help="How many: 100, or 10,000 of s3, or 6 of a certified run.")
@click.option(
    "--per-round",
    type=int,
    metavar="K",
    help="How many people take part in a round of s3: 100 at most, or everybody in a certified run.",
)
@click.option("--online-probability", "come", type=float, metavar="P", help="Of coming in a round of s3: 0.005.")
@click.option("--offline-probability", "leave", type=float, metavar="P", help="Of leaving in a round of s3: 0.01.")
@click.option("--without-third-party", "alone", is_flag=True, help="s2 as it would be if nobody added up.")
@click.option("--dropouts", type=float, metavar="F", help="Part of a round that may leave in a certified run: 0.05.")
@click.option("--colluders", type=float, metavar="F", help="Part of a round that may collude, likewise: 0.05.")
@click.option("--factors", type=int, metavar="K", help="Length of the profiles: 50, or chosen in a certified run.")
@click.option("--random-items", type=int, metavar="N", help="Restrict DATA to so many items, drawn with --seed.")
@click.option("--holdout", type=float, metavar="F", help="Hold out this fraction and report the error on it.")
@click.option("--items-public", is_flag=True, help="Assert that the item ids in DATA are a public list.")
@click.option("--seed", type=int, default=0, show_default=True, help="Fixes split, start, and who is online when.")
@click.option("--threads", type=int, metavar="N", help="Threads, for errors; all CPUs by default.")
@click.option(
    "--checkpoint",
    "checkpoint_folder",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Where to keep snapshots of the run. Sensitive: secrets of all parties.",
)
@click.option("--resume", is_flag=True, help="Go on from the newest snapshot in --checkpoint, if there is one.")
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Where to save the release.")
@click.option(
    "--ledger",
    "ledger_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Enter what a certified run releases here, before anybody is asked.",
)
@click.option("--cap", type=float, metavar="E", help="What all releases in a new --ledger may cost together.")
@data_options
@json_option
def simulate(
    data: str, scenario: str, mode: str, epsilon: float | None, delta: float, rounds: int | None,
    per_round: int | None, come: float | None, leave: float | None, alone: bool, dropouts: float | None,
    colluders: float | None, factors: int | None, random_items: int | None, holdout: float | None,
    items_public: bool, seed: int, threads: int | None, checkpoint_folder: Path | None, resume: bool,
    out: Path | None, ledger_file: Path | None, cap: float | None, as_json: bool, **reading: Any,
) -> None:  # fmt: skip
    """Simulate the protocol of an untrusted recommender on the ratings in DATA, with all parties in this process."""
    _check(scenario, mode, epsilon)
    if holdout is not None:
        check_holdout(holdout, "random")
    assert epsilon is not None
    began = time.perf_counter()
    from dpmf.engine.threads import thread_count
    from dpmf.federated.published.trial import accuracy_of, try_out
    from dpmf.files import check_replaceable
    from dpmf.model import release as release_files
    from dpmf.privacy import Budget
    from dpmf.ratings.subset import random_items as restricted

    thread_count(threads)
    given = {"rounds": rounds, "per_round": per_round, "come": come, "leave": leave, "factors": factors,
             "dropouts": dropouts, "colluders": colluders}  # fmt: skip
    chosen = {name: value for name, value in given.items() if value is not None}
    common = {"items_public": items_public, "seed": seed}
    planned = None if scenario == "s1" else _scenario(scenario, mode, epsilon, delta, not alone, {**chosen, **common})
    every = 500 if scenario == "s3" and mode == "paper" else 10
    checkpoint = checkpoint_of(checkpoint_folder, every if checkpoint_folder else None, None, resume)
    check_apart({"--out": out, "--checkpoint": checkpoint_folder})
    if out is not None:
        check_replaceable(out, release_files.FILES)
    ratings = read_ratings(data, **reading)
    if random_items is not None:
        ratings = restricted(ratings, random_items, seed=seed, keep_people=mode == "certified")
    total = (rounds or _S1_ROUNDS) if planned is None else _n_rounds(planned)
    ledger = ledger_of(ledger_file, cap, Budget(epsilon, delta), "user")  # last of all, because it makes a file
    with progress(f"simulating {scenario}", total) as advance:
        note = [""]

        def tell(record: EpochRecord) -> None:
            note[0] = f"train rmse {record.train_rmse:.4f}"
            advance(record.epoch, note[0])

        how: Any = {"n_threads": threads, "callbacks": [tell], "checkpoint": checkpoint}
        if planned is None:
            train, test = ratings.split(holdout, seed=seed) if holdout else (ratings, None)
            model = _trusted(epsilon, {**chosen, **common}).fit(train, **how)
            outcome, accuracy = None, accuracy_of(model, train, test, threads)
        else:
            trial = try_out(
                planned, ratings, holdout=holdout or 0.0, seed=seed, ledger=ledger,
                on_round=lambda done: advance(done, note[0]), **how,
            )  # fmt: skip
            outcome, accuracy = trial.outcome, trial.accuracy
            model = outcome.model
    if out is not None:
        model.release.save(out)
    report = _report(scenario, model, outcome, accuracy, total, time.perf_counter() - began, out)
    if as_json:
        print_json(report)
    else:
        _print(model, outcome, report)


def _check(scenario: str, mode: str, epsilon: float | None) -> None:
    """Refuse what does not go together, before anything is read."""
    if epsilon is None:
        raise InvalidArgument(
            "simulate needs --epsilon: a number such as 1, or inf, which says explicitly: no noise at all"
        )
    if scenario == "s1" and mode == "certified" and epsilon != math.inf:
        raise InvalidArgument(
            "--scenario s1 is certified only with profiles from elsewhere: take dpmf train --method objective "
            "--profiles, or say --mode paper"
        )
    if mode == "certified" and epsilon == math.inf:
        raise InvalidArgument("--epsilon inf certifies nothing: say --mode paper, or give a number")
    for name, (option, least, most) in _RANGES.items():
        value = click.get_current_context().params[name]
        if value is not None and not least <= value <= most:
            raise InvalidArgument(f"{option} {value:g} is out of range: give a number from {least:g} to {most:g}")
    for name, (option, scenarios, modes) in _FOR.items():
        if was_given(name) and (scenario not in scenarios or mode not in modes):
            raise InvalidArgument(f"{option} means nothing for {mode} {scenario}: leave it out")


def _scenario(
    scenario: str, mode: str, epsilon: float, delta: float, third_party: bool, given: dict[str, Any]
) -> Scenario | CertifiedScenario:
    from dpmf.federated.certified.simulation import CertifiedScenario
    from dpmf.federated.published.scenario import Scenario
    from dpmf.privacy import Budget

    names = {"factors": "n_factors", **({"rounds": "n_epochs"} if mode == "certified" else {})}
    settings = {names.get(name, name): value for name, value in given.items()}
    if mode == "certified":
        people = {"come": 0.005, "leave": 0.01} if scenario == "s3" else {}
        return CertifiedScenario(Budget(epsilon, delta), **{**people, **settings})
    usual = {"rounds": _S2_ROUNDS if scenario == "s2" else _S3_ROUNDS, "third_party": third_party}
    return Scenario(scenario, epsilon=epsilon, **{**usual, **settings})  # type: ignore[arg-type]


def _n_rounds(planned: Scenario | CertifiedScenario) -> int:
    """Return how many rounds will be reported on."""
    from dpmf.federated.published.scenario import Scenario

    return planned.rounds if isinstance(planned, Scenario) else planned.n_epochs


def _trusted(epsilon: float, given: dict[str, Any]) -> Any:
    """Return the method of a recommender whom people trust, as published: by steps."""
    from dpmf.methods import ObjectivePerturbation
    from dpmf.privacy import Budget

    return ObjectivePerturbation(
        n_factors=given.get("factors"), n_epochs=given.get("rounds", _S1_ROUNDS), mode="paper",
        budget=Budget(epsilon, unit="rating", neighbours="replace"), items_public=given["items_public"],
        seed=given["seed"], solver=None if epsilon == math.inf else "steps",
    )  # fmt: skip


def _report(
    scenario: str,
    model: Model,
    outcome: Outcome | CertifiedOutcome | None,
    accuracy: dict[str, float],
    rounds: int,
    seconds: float,
    out: Path | None,
) -> dict[str, Any]:
    guarantee = model.guarantee
    traffic = {"bytes_down": 0, "bytes_up": 0} if outcome is None else outcome.traffic.to_json()
    protocol = {}
    if outcome is not None:
        protocol = {
            "discarded": outcome.discarded, "took_part": outcome.took_part or None, "refused": outcome.refused,
            "round_seconds": outcome.seconds / max(outcome.rounds, 1), "published": _PUBLISHED,
        }  # fmt: skip
    return {
        "scenario": scenario,
        "mode": guarantee.mode,
        "rmse": accuracy.get("rmse"),
        "mae": accuracy.get("mae"),
        "baseline_rmse": accuracy.get("baseline_rmse"),
        "mean_error": accuracy["mean_error"],
        "train_rmse": accuracy["train_rmse"],
        "rounds": rounds if outcome is None else outcome.rounds,
        "seconds": seconds,
        **traffic,
        **protocol,
        "factors": model.release.n_factors,
        "epsilon": guarantee.epsilon,
        "delta": guarantee.delta,
        "unit": guarantee.unit,
        "neighbours": guarantee.neighbours,
        "certified": guarantee.certified,
        "guarantee": guarantee.to_json(),
        **_against(outcome, guarantee),
        "out": None if out is None else str(out),
    }


def _against(outcome: Outcome | CertifiedOutcome | None, guarantee: Guarantee) -> dict[str, Any]:
    """Return what is promised against each of the two, or what all rounds together would cost if profiles stood."""
    from dpmf.federated.certified.simulation import CertifiedOutcome

    if isinstance(outcome, CertifiedOutcome):
        agreement = outcome.agreement
        words = sorted({agreement.ring(number).n_bytes for number in range(len(agreement.rounds))})
        return {
            "against_recommender": str(guarantee), "against_third_party": outcome.against_third_party,
            "bytes_per_number": words,
        }  # fmt: skip
    if outcome is None or guarantee.mode != "paper":
        return {}
    return {"composed_epsilon": outcome.claim.composed, "proven_epsilon": None}


def _print(model: Model, outcome: Outcome | CertifiedOutcome | None, report: dict[str, Any]) -> None:
    sizes = f"{len(model.user_ids):,} people and {len(model.release.items):,} items"
    say(f"Simulated {report['rounds']:,} rounds with {sizes} in {report['seconds']:.1f} s")
    if outcome is not None and report["took_part"] is None:
        say("The run was at its end already: what passed in it was not measured by this process")
    elif outcome is not None:
        say(
            f"{report['took_part']:,} people took part; {report['discarded']:,} rounds were discarded and "
            f"{report['refused']:,} messages refused"
        )
        _print_traffic(report)
    rows = [("mean error, training ratings", report["mean_error"])]
    if report["rmse"] is not None:
        rows += [("rmse, held-out ratings", report["rmse"]), ("rmse of the mean of one's own", report["baseline_rmse"])]
    print_table("Errors", ("", "error"), rows)
    say(METRICS_NOTE, "dim")
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


def _print_traffic(report: dict[str, Any]) -> None:
    few = "of people with up to 20 ratings, at most"
    rows = [
        ("down to a person, mean", f"{report['bytes_down']:,.0f} bytes", ""),
        ("up from a person, mean", f"{report['bytes_up']:,.0f} bytes", ""),
        (f"down, {few}", f"{report['most_bytes_down_20_ratings']:,.0f} bytes", "12 KB"),
        (f"up, {few}", f"{report['most_bytes_up_20_ratings']:,.0f} bytes", "5 KB"),
        ("third party to recommender, at most", f"{report['most_bytes_from_third_party']:,.0f} bytes", "3 MB"),
        ("computing of a person, mean", f"{1e3 * report['client_seconds']:.3g} ms",
         f"{1e3 * _PUBLISHED['client_seconds']:.3g} ms"),
        ("computing of the third party, mean", f"{1e3 * report['third_party_seconds']:.3g} ms",
         f"{1e3 * _PUBLISHED['third_party_seconds']:.3g} ms"),
        ("whole round, mean", f"{1e3 * report['round_seconds']:.3g} ms", "5 s"),
    ]  # fmt: skip
    print_table("Per round", ("", "here", "published"), rows)
    if "bytes_per_number" in report:
        packed = " or ".join(map(str, report["bytes_per_number"]))
        say(f"Answers cover the whole catalogue, with {packed} bytes a number instead of 8.")
