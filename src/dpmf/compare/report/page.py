"""The report of a comparison: pictures, tables, every guarantee in full, and how it was made.

>>> rows = [Row("als", "certified", 1.0, 0, 7, epsilon=1.0, delta=1e-6, unit="user", neighbours="add-remove",
...             certified=True, rmse=0.9), Row("own-mean", "none", math.inf, 0, 7, rmse=1.0)]
>>> "the per-user mean, which uses no one else&#x27;s data, 1.0000." in findings(summarize(rows))
True
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from dpmf.compare.comparison import PICTURE, REPORT
from dpmf.compare.measurement import MOST_RANKED
from dpmf.compare.plots.accuracy import accuracy_figure, units_with
from dpmf.compare.plots.figure import figure, save
from dpmf.compare.plots.groups import by_group
from dpmf.compare.report.decision import decision_table, headline, reference_heights
from dpmf.compare.report.guarantees import all_guarantees
from dpmf.compare.report.markup import Cell, folded, listed, page, paragraph, table, text
from dpmf.compare.report.new_users import MAIN, protocol_text, ranking_findings
from dpmf.compare.report.sections import draw_inline, guarantee_tables, pictures_by_unit, proven_first, say_not_drawn
from dpmf.compare.report.tables import FIGURES, RANKED, best_points, by_guarantee, figures, group_names, groups, ranked
from dpmf.compare.results import BIASES, EXACT_EASE, NON_PRIVATE, OWN_MEAN, POPULAR, Row
from dpmf.compare.summary import Point, summarize
from dpmf.compare.sweep import Sweep
from dpmf.errors import MissingExtra
from dpmf.files import write_text

_HOLDER = "For the holder of the data: no guarantee covers these figures."
OUTSIDE = (
    "All errors, rankings and divergences here were measured on ratings of these people, "
    "held out or learnt from, and no guarantee covers them: an ε is about a release, not about this page. Do not "
    "publish it, and do not choose what to release by it without counting that as a look at the data."
)
_MARKS = (
    "Filled marks and solid lines: proven here. Hollow marks and dashed lines: what a paper claims, which nothing here "
    "certifies. An ε per user and an ε per rating are different things and never share an axis."
)
_RANKING = (
    "Recall and ndcg of the ten best items of the catalogue that a person has not rated, of up to "
    f"{MOST_RANKED:,} people with a held-out rating of three quarters of the scale or more."
)
_KLD = (
    "kld is how much errors on training ratings differ from errors on held-out ones (Balu and Furon 2016, nats): "
    "measured on average, it guarantees nothing to anybody."
)
_REFERENCES = {
    OWN_MEAN: "the per-user mean, which uses no one else's data,",
    EXACT_EASE: "EASE, not private,",
    POPULAR: "exact popularity, not private,",
    BIASES: "biases alone, not private,",
    NON_PRIVATE: f"{NON_PRIVATE}, not private,",
}
_FIELDS = (
    "ratings",
    "users",
    "items",
    "rated_items",
    "scale",
    "catalogue",
    "mean_rating",
    "density",
    "ratings_per_user_median",
    "ratings_per_user_most",
    "ratings_per_item_median",
    "ratings_per_item_most",
)


def write_report(folder: Path, facts: Mapping[str, Any], plan: Sweep, rows: Sequence[Row]) -> tuple[Path, Path | None]:
    """Write the report, and the main picture if there is matplotlib and anything to draw.

    Args:
        folder: of the comparison.
        facts: see `dpmf.compare.comparison.Comparison`.
        plan: what was asked for.
        rows: what was measured.

    Returns:
        Where they are; None for a picture that there is not.
    """
    picture: Path | None = None
    metric = "rmse" if plan.new_users is None else MAIN
    try:
        if units_with(rows, metric):
            save(accuracy_figure(rows, metric), folder / PICTURE)
            picture = folder / PICTURE
        else:
            (folder / PICTURE).unlink(missing_ok=True)  # of an earlier run, and not of these rows
        draw: Callable[..., str] = draw_inline
        figure()
    except MissingExtra:
        draw = say_not_drawn
    points = summarize(rows)
    title = f"Privacy against accuracy: {facts['name'] or 'ratings'}"
    parts = [
        f"<h1>{text(title)}</h1>",
        *(_on_ratings(plan, rows, draw) if plan.new_users is None else _for_new_users(plan, rows, draw)),
        folded("Guarantees and claims in full", all_guarantees(points) or paragraph("Nothing here is private.")),
        folded("How it was made", "".join(_making(facts, plan, points))),
    ]
    write_text(folder / REPORT, page(title, parts))
    return folder / REPORT, picture


def _on_ratings(plan: Sweep, rows: Sequence[Row], draw: Callable[..., str]) -> list[str]:
    """Return what held-out ratings show."""
    points = summarize(rows)
    shown, claimed = proven_first(rows, ("rmse", "ndcg"), draw)
    return [
        paragraph(_HOLDER, "soft"),
        findings(points),
        _failures(points),
        "<h2>Accuracy and ranking against ε</h2>",
        shown,
        paragraph(OUTSIDE, "note"),
        paragraph(_MARKS, "soft"),
        paragraph(_RANKING, "soft"),
        "<h2>Details</h2>",
        folded("All runs", _all_runs(by_guarantee(points, figures), FIGURES, plan, rows)),
        folded("What papers claim in units of privacy in which nothing here is certified", claimed) if claimed else "",
        folded("Recall", pictures_by_unit(rows, ("recall",), draw)),
        folded("Whom it serves: rare items, and people with few ratings", "".join(_groups(rows, points, draw))),
        folded("What errors tell about who was learnt from", paragraph(_KLD) + pictures_by_unit(rows, ("kld",), draw)),
    ]


def _for_new_users(plan: Sweep, rows: Sequence[Row], draw: Callable[..., str]) -> list[str]:
    """Return what people who were held out show."""
    points = summarize(rows)
    return [
        paragraph(_HOLDER, "soft"),
        *ranking_findings(points),
        _failures(points),
        "<h2>Ranking for new users against ε</h2>",
        pictures_by_unit(rows, (MAIN, "recall@20"), draw),
        paragraph(OUTSIDE, "note"),
        paragraph(_MARKS, "soft"),
        "<h2>Details</h2>",
        folded("How rankings were judged", paragraph(protocol_text(plan, rows))),
        folded("All runs", _all_runs(by_guarantee(points, ranked), RANKED, plan, rows)),
    ]


def _all_runs(tables: Mapping[Cell, list[list[Cell]]], columns: Sequence[str], plan: Sweep, rows: Sequence[Row]) -> str:
    return "".join(guarantee_tables(tables, columns)) + paragraph(_table_note(plan, rows), "soft")


def findings(points: Sequence[Point]) -> str:
    """Return the decision: the best proven method at each epsilon, for ratings and for lists, beside alternatives."""
    parts = [
        _decision(
            points,
            "rmse",
            "To predict ratings",
            {NON_PRIVATE: "beside no privacy", OWN_MEAN: "beside the per-user mean"},
            "the per-user mean, which uses no one else's data",
        ),
        _decision(
            points,
            "ndcg",
            "To make lists",
            {EXACT_EASE: "beside EASE, not private", POPULAR: "beside exact popularity"},
            "exact popularity",
        ),
    ]
    if any(parts):
        return f'<div class="pair">{"".join(parts)}</div>'
    return paragraph("Nothing here is certified.") + _compared(points, "rmse")


def _decision(points: Sequence[Point], figure: str, title: str, beside: Mapping[str, str], name: str) -> str:
    """Return what to choose where one figure counts, and why; nothing if nothing certified has it.

    Args:
        points: what was measured.
        figure: what counts.
        title: of the section.
        beside: see `decision_table`; the last reference is the one that needs no privacy budget.
        name: what that is called in a sentence.
    """
    if not best_points(points, figure):
        return ""
    parts = [
        f"<h2>{text(title)}</h2>",
        paragraph(headline(points, figure, [*beside][-1], name), "lead"),
        decision_table(points, figure, beside),
        _compared(points, figure),
    ]
    return f"<section>{''.join(parts)}</section>"


def _compared(points: Sequence[Point], figure: str) -> str:
    """Return the figure of everything that methods are held against."""
    heights = reference_heights(points, figure)
    beside = [f"{words} {heights[name]:.4f}" for name, words in _REFERENCES.items() if name in heights]
    return paragraph(f"To compare with: {'; '.join(beside)}.", "soft") if beside else ""


def _groups(rows: Sequence[Row], points: Sequence[Point], draw: Callable[..., str]) -> list[str]:
    parts = []
    for which, whose in (("by_popularity", "popularity of the item"), ("by_activity", "activity of the user")):
        drawable = [row for row in rows if getattr(row, which)]
        pictures = [
            draw(partial(by_group, rows, which, unit), f"rmse by {whose}, ε per {unit}")
            for unit in units_with(drawable, "rmse")
        ]
        parts.append('<div class="pair">' + "".join(pictures) + "</div>" if pictures else "")
        columns = ["method", "ε", *group_names(rows, which)]
        shown = [point for point in points if any(getattr(row, which) for row in point.rows)]
        content = "".join(guarantee_tables(by_guarantee(shown, groups(which)), columns))
        parts.append(folded(f"rmse by {whose}, all runs (mean of repeats)", content))
    return parts


def _table_note(plan: Sweep, rows: Sequence[Row]) -> str:
    split = "the last ratings of everybody held out" if plan.how == "last" else "each with a split of its own"
    runs = f"Mean, and min–max below, of up to {plan.repeats} runs, {split}." if plan.repeats > 1 else "One run each."
    timed = [row for row in rows if row.seconds is not None]
    threads = " or ".join(str(one) for one in sorted({row.threads for row in timed if row.threads is not None}))
    if not timed:
        return runs
    return (
        f"{runs} Seconds and memory are of the first run each, which had the machine to itself (threads: {threads}), "
        "the wall time of the training, with calibrating the noise and without compiling, and the most memory that the "
        "process had, with all ratings and whatever earlier runs left in it."
    )


def _failures(points: Sequence[Point]) -> str:
    failed = [f"{one.method}, {one.mode}, ε = {one.asked:g}: {error}" for one in points for error in one.errors]
    return "<h3>What did not end</h3>" + listed(failed) if failed else ""


def _noise(points: Sequence[Point]) -> str:
    seeded = sorted({point.method for point in points if point.seeded})
    if not seeded:
        return "The noise of private runs has no seed: it is fresh in every run."
    others = any(point.n and point.mode != "none" and not point.seeded for point in points)
    return f"The noise of {', '.join(seeded)} came from a seed that was set, so nothing about it is private" + (
        "; that of all others has none, and is fresh in every run." if others else "."
    )


def _making(facts: Mapping[str, Any], plan: Sweep, points: Sequence[Point]) -> list[str]:
    last = plan.seed + plan.repeats - 1
    seeds = f"{plan.seed}" if plan.repeats == 1 else f"{plan.seed} to {last}"
    data = facts["data"]
    described: list[list[str | Cell]] = []
    for name in _FIELDS:
        described.append([name.replace("_", " "), Cell(_shown(data[name]), number=not isinstance(data[name], str))])
    versions = {**facts["versions"], **facts["machine"]}
    settings = [
        f"{method}.{name} = {value}" for method, fields in plan.settings.items() for name, value in fields.items()
    ]
    circumstances = [
        f"Begun {facts['began']}.",
        _tested_on(plan),
        f"Seeds of splits and starts: {seeds}. {_noise(points)}",
        *(f"Set: {one}." for one in settings),
    ]
    return [
        f"<pre>{text(facts['command'])}</pre>",
        listed(circumstances),
        "<h3>Data</h3>",
        table(["", facts["name"] or "ratings"], described),
        "<h3>Software and machine</h3>",
        table(["", ""], [[name, str(value)] for name, value in versions.items()]),
    ]


def _tested_on(plan: Sweep) -> str:
    """Return the sentence about what methods are tested on."""
    if plan.test is not None:
        return f"Tested on {len(plan.test):,} ratings of a file of their own; the seed decides about starts alone."
    if plan.new_users is not None:
        held_out = f"{plan.new_users.share:g} of the people, with all their ratings"
    elif plan.how == "time":
        held_out = f"ratings from the time {plan.holdout:.0f} on"
    else:
        how = " ratings per user, the last" if plan.how == "last" else f" of them, {plan.how}"
        held_out = f"{plan.holdout:g}{how}"
    return f"Held out: {held_out}; the same split for all methods of a repeat."


def _shown(value: object) -> str:
    if isinstance(value, float) and not math.isnan(value):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
