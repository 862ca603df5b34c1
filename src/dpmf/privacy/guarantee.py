"""What is promised about a release, as data.

>>> print(Guarantee.none())
none: not private. Item factors and biases were computed from the ratings without any protection.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from dpmf.errors import DamagedFile


@dataclass(frozen=True)
class Guarantee:
    """A privacy guarantee, or its absence.

    Attributes:
        epsilon, delta: the parameters of differential privacy; None if nothing is promised.
        unit: what is protected, "user" or "rating"; None if nothing is.
        neighbours: which data sets count as neighbours, such as "add-remove"; None if nothing is promised.
        mode: "none".
        certified: whether the code that made the release enforces the guarantee.
        assumptions: what it rests on, one sentence each.
        events: what was done, so that epsilon can be computed again.
    """

    epsilon: float | None
    delta: float | None
    unit: str | None
    neighbours: str | None
    mode: str
    certified: bool
    assumptions: tuple[str, ...] = ()
    events: tuple[Mapping[str, Any], ...] = ()

    @classmethod
    def none(cls) -> Guarantee:
        """Return the guarantee of a model that is not private."""
        return cls(None, None, None, None, mode="none", certified=False)

    @property
    def is_private(self) -> bool:
        """Whether anything is promised at all."""
        return self.mode != "none"

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON types."""
        content = asdict(self)
        return {**content, "assumptions": list(self.assumptions), "events": [dict(event) for event in self.events]}

    @classmethod
    def from_json(cls, content: Any) -> Guarantee:
        """Read what `to_json` wrote; a guarantee this version does not understand is refused, not guessed."""
        if content != cls.none().to_json():
            raise DamagedFile("the guarantee of this release is not one that this version of dpmf understands")
        return cls.none()

    def __str__(self) -> str:
        return "none: not private. Item factors and biases were computed from the ratings without any protection."
