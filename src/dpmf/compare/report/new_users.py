"""What a report says about rankings for new users.

>>> import math
>>> from dpmf.compare.summary import summarize
>>> rows = [Row("als", "certified", 1.0, 0, 7, epsilon=1.0, delta=1e-6, unit="user", neighbours="add-remove",
...             certified=True, ranking={"ndcg@100": 0.3}),
...         Row("popular", "none", math.inf, 0, 7, ranking={"ndcg@100": 0.2})]
>>> ranking_findings(summarize(rows))[2]
'<p>To compare with: popularity, not private, has 0.2000.</p>'
"""

from __future__ import annotations

from collections.abc import Sequence

from dpmf.compare.report.decision import decision_table, headline, reference_heights
from dpmf.compare.report.markup import paragraph
from dpmf.compare.report.tables import best_points
from dpmf.compare.results import EXACT_EASE, IMPLICIT, POPULAR, Row
from dpmf.compare.summary import Point
from dpmf.compare.sweep import Sweep

MAIN = "ndcg@100"
"""The figure that rankings for new users are judged by first."""
_BESIDE = {POPULAR: "beside popularity", EXACT_EASE: "beside EASE, not private"}
_REFERENCES = {
    POPULAR: "popularity, not private, has {}",
    EXACT_EASE: "EASE, not private, {}",
    IMPLICIT: "implicit's ALS, not private, {}",
}


def ranking_findings(points: Sequence[Point]) -> list[str]:
    """Return the decision: the best certified ranking at each epsilon, beside those of peers."""
    heights = reference_heights(points, MAIN)
    beside = [words.format(f"{heights[name]:.4f}") for name, words in _REFERENCES.items() if name in heights]
    compared = paragraph(f"To compare with: {'; '.join(beside)}.") if beside else ""
    if not best_points(points, MAIN):
        return [paragraph("Nothing here is certified."), "", compared]
    said = headline(points, MAIN, POPULAR, "exact popularity")
    return [paragraph(said, "lead") if said else "", decision_table(points, MAIN, _BESIDE), compared]


def protocol_text(plan: Sweep, rows: Sequence[Row]) -> str:
    """Return how rankings were judged, and for how many people."""
    assert plan.new_users is not None
    counted = next((row.ranking for row in rows if row.ranking), {"users": 0, "users_held_out": 0, "users_left_out": 0})
    positive = "three quarters up the scale" if plan.new_users.positive is None else f"{plan.new_users.positive:g}"
    return (
        f"{plan.new_users.share:g} of the people are held out with all their ratings, and everything learns from the "
        f"others. What they rated with {positive} or more is split: {plan.new_users.fold_in:g} of it is folded in, and "
        "the rest is to be found among all other items of the catalogue. In the first repeat lists were made for "
        f"{counted['users']:,} of {counted['users_held_out']:,} people held out; {counted['users_left_out']:,} who "
        f"like fewer than {plan.new_users.least} items were left out. recall@k is divided by k, or by the number of "
        "items to be found if there are fewer. coverage@20 is the share of the catalogue in anybody's first 20, "
        "tail@20 the share of the least popular 80 % of the catalogue in these lists. Below recall and ndcg: the 95 % "
        "interval over people."
    )
