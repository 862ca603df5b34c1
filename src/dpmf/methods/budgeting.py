"""What an epsilon means to each method: which fields of its configuration it sets.

>>> private_fields("sketch", "paper", 2.0)["budget"]
Budget(epsilon=2.0, delta=1e-06, unit='rating', neighbours='add-remove')
>>> private_fields("sgd", "certified", 2.0)
Traceback (most recent call last):
    ...
dpmf.errors.InvalidArgument: epsilon=2: sgd is not private, whatever the number
"""

from __future__ import annotations

import math
from typing import Any

from dpmf.errors import InvalidArgument
from dpmf.privacy import Budget
from dpmf.privacy.budget import DEFAULT_DELTA

MODES: dict[str, tuple[str, ...]] = {
    "als": ("certified",),
    "sgd": (),
    "sgld": ("certified", "paper"),
    "gaussian": ("certified", "paper"),
    "sketch": ("certified", "paper"),
    "objective": ("certified", "paper"),
}
"""What kinds of promise each method can make. That of objective needs profiles to be certified."""


def private_fields(
    method: str,
    mode: str,
    epsilon: float,
    delta: float = DEFAULT_DELTA,
    *,
    neighbours: str = "add-remove",
    items_public: bool = False,
) -> dict[str, Any]:
    """Return the fields that make a method private, or explicitly not.

    Args:
        method: its name on the command line.
        mode: "certified" or "paper".
        epsilon: what is promised, or claimed; infinity says explicitly: not private.
        delta: of a promise. Claims have none, or one of their own.
        neighbours: of a promise. What objective protects is a rating that is replaced.
        items_public: whether item ids that were found in the data are asserted to be a public list.
    """
    if not MODES[method]:
        if math.isfinite(epsilon):
            raise InvalidArgument(f"epsilon={epsilon:g}: {method} is not private, whatever the number")
        return {}
    if mode not in MODES[method]:
        raise InvalidArgument(f"mode={mode!r}: no paper makes a claim about {method} that could be repeated here")
    unit = "rating" if method == "objective" or (method == "sketch" and mode == "paper") else "user"
    neighbours = "replace" if method == "objective" else neighbours
    fields: dict[str, Any] = {"budget": Budget(epsilon, delta, unit, neighbours), "items_public": items_public}
    if method != "als":
        # Without a promise SGLD has no mode to choose; the others have one with the published settings.
        fields["mode"] = "paper" if method == "sgld" and math.isinf(epsilon) else mode
    return fields
