"""How ratings are distributed over items: a few have most of them. For the holder of the data.

>>> import numpy as np
>>> popularity_figures(np.array([6, 0, 3, 1]))["share_of_top"][0.5]
0.9
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.compare.plots.figure import COLOURS, axes, figure
from dpmf.errors import InvalidArgument

_TOP = (0.01, 0.1, 0.5)  # of the items; at least one


def popularity_figures(counts: NDArray[np.integer[Any]]) -> dict[str, Any]:
    """Return how many items and ratings there are, how many items have none, and which share the top ones have.

    Args:
        counts: how many ratings each item of the catalogue has.
    """
    falling = _falling(counts)
    shares = np.cumsum(falling) / falling.sum()
    return {
        "items": len(falling),
        "rated_items": int(np.count_nonzero(falling)),
        "ratings": int(falling.sum()),
        "most": int(falling[0]),
        "share_of_top": {top: float(shares[max(1, round(top * len(falling))) - 1]) for top in _TOP},
    }


def rank_and_count(counts: NDArray[np.integer[Any]], ax: Any = None) -> Any:
    """Draw how many ratings the first, second … item has, both axes logarithmic; items without any are left out."""
    falling = _falling(counts)
    rated = falling[falling > 0]
    ax = axes(ax)
    ax.plot(np.arange(1, len(rated) + 1), rated, "-", color=COLOURS[0], lw=1.8)
    ax.set(xscale="log", yscale="log", xlabel="rank of the item", ylabel="ratings of the item")
    left = len(falling) - len(rated)
    ax.set_title(
        f"{left:,} of {len(falling):,} items have no rating" if left else f"all {len(falling):,} items are rated"
    )
    ax.title.set_fontsize("small")
    return ax


def concentration(counts: NDArray[np.integer[Any]], ax: Any = None) -> Any:
    """Draw which share of all ratings the most popular items have, by their share of the catalogue."""
    falling = _falling(counts)
    shares = np.concatenate([[0.0], np.cumsum(falling) / falling.sum()])
    ax = axes(ax)
    ax.plot(np.linspace(0, 1, len(shares)), shares, "-", color=COLOURS[0], lw=1.8, label="as it is")
    ax.plot([0, 1], [0, 1], ":", color="#000000", label="if all items were rated alike")
    ax.set(xlabel="share of items, most popular first", ylabel="share of ratings", xlim=(0, 1), ylim=(0, 1.02))
    ax.legend(frameon=False, loc="lower right", fontsize="small")
    return ax


def popularity_figure(counts: NDArray[np.integer[Any]], size: tuple[float, float] | None = None) -> Any:
    """Return a figure with both."""
    picture = figure(*(size or (10, 4.5)))
    left, right = picture.subplots(1, 2)
    rank_and_count(counts, left)
    concentration(counts, right)
    return picture


def _falling(counts: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    falling = np.sort(np.asarray(counts, np.int64))[::-1]
    if not len(falling) or falling[0] <= 0:
        raise InvalidArgument("no item has a rating, so there is nothing to draw")
    return falling
