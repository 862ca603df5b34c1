"""What stands behind every epsilon of a report: each guarantee in full, each claim with what it rests on.

>>> all_guarantees([])
''
"""

from __future__ import annotations

from collections.abc import Sequence

from dpmf.compare.report.markup import Cell, folded, listed, paragraph, table, text
from dpmf.compare.report.tables import guarantee_of
from dpmf.compare.summary import Point
from dpmf.privacy import Guarantee

_STATUS = {
    "certified": "Certified: bounded, noised and accounted for by this code; epsilon was computed from what was done.",
    "paper": "A paper's claim, not certified: no accountant here can check it, and counted strictly nothing is proven.",
    "seeded": "Not private: the noise came from a seed, for research.",
}


def all_guarantees(points: Sequence[Point]) -> str:
    """Return a section per method and kind of guarantee; those that differ in epsilon alone share one."""
    kinds: dict[tuple[str, str], list[Point]] = {}
    for point in points:
        if point.n and point.guarantee:
            kinds.setdefault((point.method, guarantee_of(point).text), []).append(point)
    return "\n".join(_guarantee(method, alike) for (method, _), alike in kinds.items())


def _guarantee(method: str, points: Sequence[Point]) -> str:
    guarantees = [Guarantee.from_json(point.guarantee) for point in points]
    first = guarantees[0]
    status = "seeded" if first.seeded else first.mode
    heading = f"{method}, {guarantee_of(points[0]).text}"
    return "\n".join(
        [
            f"<h3>{text(heading)}</h3>",
            paragraph(_STATUS[status]),
            listed(str(one) for one in guarantees),
            paragraph("It rests on:"),
            listed(_common_assumptions(guarantees)),
            folded("What was done, by what an accountant can add up", "".join(map(_events, guarantees))),
        ]
    )


def _common_assumptions(guarantees: Sequence[Guarantee]) -> list[str]:
    """Return all assumptions; one that does not hold for every epsilon says for which."""
    everything = dict.fromkeys(one for guarantee in guarantees for one in guarantee.assumptions)
    found = []
    for sentence in everything:
        holders = [guarantee for guarantee in guarantees if sentence in guarantee.assumptions]
        only = "" if len(holders) == len(guarantees) else _at(holders)
        found.append(only + sentence)
    return found


def _at(guarantees: Sequence[Guarantee]) -> str:
    return f"At ε = {', '.join(f'{one.epsilon:g}' for one in guarantees)}: "


def _events(guarantee: Guarantee) -> str:
    names = dict.fromkeys(name for event in guarantee.events for name in event.to_json() if name != "kind")
    rows = [[_cell(event.to_json().get(name)) for name in names] for event in guarantee.events]
    return table([name.replace("_", " ") for name in names], rows, caption=f"At ε = {guarantee.epsilon:g}")


def _cell(value: object) -> Cell:
    if isinstance(value, int | float):
        return Cell(f"{value:,}" if isinstance(value, int) else f"{value:.6g}", number=True)
    return Cell("" if value is None else str(value))
