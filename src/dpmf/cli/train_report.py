"""What `dpmf train` tells people about a run."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpmf.cli.output import METRICS_NOTE, print_table, say
from dpmf.cli.protocol import said_of

if TYPE_CHECKING:
    from dpmf.methods import Method
    from dpmf.methods.base import Section
    from dpmf.model import Release
    from dpmf.runs.training import Run


def print_run(run: Run, method: Method, report: dict[str, Any], model_folder: Path | None) -> None:
    """Print what `dpmf.runs.report` says, and what the method adds."""
    sizes = f"{run.n_users:,} users and {len(run.model.release.items):,} items"
    where = ", streamed from disk" if run.streamed else ", on a cluster" if run.spread else ""
    say(f"Trained on {run.n_ratings:,} ratings of {sizes}{where}")
    say(f"{_learnt(run, method, report)}, {report['seconds']:.1f} s in total")
    _print_learnt(run.model.release)
    if run.new_users:
        _print_new_users(run, method)
        say(METRICS_NOTE, "dim")
    if run.tested_on is not None:
        say(f"Tested on {run.tested_on}")
    if run.accuracy:
        _print_accuracy(run, method)
        say(METRICS_NOTE, "dim")
    say(f"Guarantee: {run.model.guarantee}", "bold" if run.model.guarantee.certified else "bold red")
    if "user_epsilons" in report and report["mode"] == "certified":
        _print_paid(report["user_epsilons"], continues="continues" in run.model.release.configuration)
    if report["out"]:
        say(f"Release saved in {report['out']}")
    if model_folder is not None:
        say(f"Model saved in {model_folder}: sensitive, keep it inside", "yellow")
    for section in method.sections(report):
        _print_section(section)
    if run.convergence is not None:
        say(f"{run.convergence}. {METRICS_NOTE}", "" if run.convergence.converged else "bold red")


def _learnt(run: Run, method: Method, report: dict[str, Any]) -> str:
    ranking, turns, ranks = run.model.release.ranking, len(run.model.history), ""
    if ranking is not None:
        pairs = f"by pairs of {len(ranking.items):,} items, all others " if len(ranking.items) else ""
        ranks = f"Ranks {pairs}by popularity"
        if not run.model.release.predicts:
            return ranks
        ranks += "; predicts ratings after "
    return (
        f"{ranks}{turns} {method.turn}{'s' if turns != 1 else ''} with {report['factors']} "
        f"factor{'s' if report['factors'] != 1 else ''} in "
        f"{turns * run.epoch_seconds:.2f} s ({report['updates_per_second'] / 1e6:.1f} M updates/s)"
    )


def _print_learnt(release: Release) -> None:
    """Print what stands out from the noise, where there is any."""
    if release.learnt.is_recorded:
        say(f"Beyond noise: {release.learnt}")
    if release.learnt.lack is not None:
        say(f"Warning: the release knows {release.learnt.lack}.", "bold red")


def _print_section(section: Section) -> None:
    if section.rows:
        print_table(section.title, section.columns, section.rows)
    if section.note:
        say(f"{section.note} {METRICS_NOTE}" if section.from_ratings else section.note)


def _print_paid(paid: dict[str, Any], *, continues: bool) -> None:
    who = "Epsilon that users spend beside that of the earlier release:" if continues else "Epsilon that users spend:"
    say(
        f"{who} {paid['least']:g} at least, {paid['median']:g} in the median, {paid['most']:g} at "
        f"most; {paid['below_budget']:.1%} spend less than the budget. {paid['named']:,} people in the list are "
        f"users. {METRICS_NOTE}"
    )


def _print_accuracy(run: Run, method: Method) -> None:
    if "recall@10" in run.accuracy:
        _print_ranking(run, method)
    if "rmse" in run.accuracy:
        _print_errors(run, method)


def _print_errors(run: Run, method: Method) -> None:
    accuracy = run.accuracy
    rows = [("per-user mean (uses no one else's data)", accuracy["baseline_rmse"], "")]
    if "biases_rmse" in accuracy:
        rows.append(("private item biases alone", accuracy["biases_rmse"], ""))
    rows.append((method.name, accuracy["rmse"], f"{accuracy['mae']:.4f}"))
    print_table("Held-out ratings", ("", "rmse", "mae"), rows)
    if math.isfinite(accuracy.get("kld", math.nan)):
        whose = (
            "It concerns what everybody fits to their own ratings, not the release, and" if method.folds_in else "It"
        )
        say(
            f"Leak, as the divergence of training errors from these errors: {accuracy['kld']:.4f} nats, and "
            f"{accuracy['kld_top_users']:.4f} for the tenth of the users with the most ratings. {whose} guarantees "
            "nothing."
        )
    if run.by_popularity:
        buckets = [(f"{high:.0%}", count, ours, free) for high, count, (ours, free) in run.by_popularity]
        columns = ("most popular", "ratings", "rmse", "per-user mean")
        print_table("By popularity of the item", columns, buckets)


def _print_new_users(run: Run, method: Method) -> None:
    from dpmf.evaluation.new_users import FIGURES

    figures = run.new_users
    rows = [(name, figures[name], figures[f"popularity_{name}"]) for name in FIGURES]
    say(said_of(figures))
    print_table("", ("", method.name, "popularity, not private"), rows)


def _print_ranking(run: Run, method: Method) -> None:
    names = ("recall@10", "ndcg@10")
    popular = "popularity alone" if run.model.guarantee.mode == "none" else "private popularity alone"
    labels = {"popularity_": popular, "": method.name}
    ranked = [
        (label, *(run.accuracy[prefix + name] for name in names))
        for prefix, label in labels.items()
        if prefix + names[0] in run.accuracy
    ]
    print_table("Held-out items", ("", *names), ranked)
