"""What an audit finds: one finding a part, and a verdict over all.

>>> Finding("noise", "Noise", True, "as much noise as stated").mark
'passed'
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Progress = Callable[[int, str], None]
"""Is told how many units of work of a part are done, and what the part is."""


def silent(done: int, note: str) -> None:
    """Tell nobody."""


@dataclass(frozen=True)
class Finding:
    """What one part of an audit found.

    Attributes:
        part: its name in JSON.
        title: in words.
        ok: False if something is violated, None where there is nothing to violate.
        sentence: the finding, in one sentence.
        columns, rows: of a table.
        figures: every number, for programs.
        notes: what the reader has to know, one sentence each.
    """

    part: str
    title: str
    ok: bool | None
    sentence: str
    columns: tuple[str, ...] = ()
    rows: Sequence[Sequence[object]] = ()
    figures: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def mark(self) -> str:
        """The verdict on this part in a word."""
        return {True: "passed", False: "VIOLATED", None: "for information"}[self.ok]


@dataclass(frozen=True)
class Audit:
    """All findings about one subject.

    Attributes:
        about: what was audited, in JSON values.
        findings: of all parts.
        mode: "certified", or "paper" for a published claim.
    """

    about: Mapping[str, Any]
    findings: tuple[Finding, ...]
    mode: str = "certified"

    @property
    def ok(self) -> bool:
        """Whether nothing is violated."""
        return all(one.ok is not False for one in self.findings)

    @property
    def verdict(self) -> str:
        """The verdict, in a few words."""
        if self.ok:
            return "no violation found"
        return "claim violated" if self.mode == "paper" else "guarantee violated"

    def to_json(self) -> dict[str, Any]:
        """Return the verdict and every number."""
        parts = {one.part: {"ok": one.ok, "finding": one.sentence, **one.figures} for one in self.findings}
        return {"verdict": self.verdict, "ok": self.ok, "mode": self.mode, **self.about, "parts": parts}
