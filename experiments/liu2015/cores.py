"""Figure 3: updates per second against the number of threads, with 2048 factors.

`--data yahoo-music` is synthetic, in the shape of Yahoo's set: a tenth of its users, items and ratings with `--full`,
so that factors take 1.3 GB instead of 13, and a hundredth without. Either way they are far larger than any cache.
Epochs of one thread and of several alternate. The limit is what `dpmf.bench.limit` says of the machine; the rows kept
beside this have an earlier one, the same kernel on rows that stay in the first-level cache. A machine with two
processors has two points.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from dpmf import Ratings
from dpmf.bench.speed import bench
from experiments.figure import Figure, Row, Run, Verdict
from experiments.liu2015.plots import COLOURS, axes_of
from experiments.liu2015.synthetic import YAHOO, is_synthetic, synthetic_like

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

_FACTORS = 2048
_PART = {False: 100, True: 10}  # divisor of the synthetic set: small, and full
_TURNS = 3
_SHARE = 0.9  # of the gain of threads that share nothing: less does not count as scaling
_KEPT = (
    "updates_per_second",
    "one_thread_updates_per_second",
    "bfloat16_updates_per_second",
    "over_one_thread",
    "roofline_updates_per_second",
    "one_thread_roofline_updates_per_second",
    "roofline_over_one_thread",
)


def measure(run: Run) -> list[Row]:
    """Return one row for each number of threads from two on, with the speed of one thread in the same turns."""

    @cache
    def ratings() -> Ratings:
        if not is_synthetic(run.data):
            return run.ratings()
        with synthetic_like(run.data, _PART[run.full]) as folder:
            return Ratings.read(folder)

    def speeds(threads: int) -> dict[str, Any]:
        (found,) = bench(ratings(), [_FACTORS], n_threads=threads, epochs=_TURNS, peers=False)
        sizes = {"users": ratings().n_users, "items": ratings().n_items, "ratings": len(ratings())}
        return {"made_up": is_synthetic(run.data), **sizes, **{name: found[name] for name in _KEPT}}

    return run.each([{"threads": threads} for threads in threads_up_to(run.n_threads)], speeds)


def threads_up_to(most: int) -> list[int]:
    """Return 2, 4, 8 and so on, and the most; 1 alone if there is one.

    >>> threads_up_to(2), threads_up_to(6), threads_up_to(1)
    ([2], [2, 4, 6], [1])
    """
    powers = [1 << power for power in range(1, most.bit_length()) if 1 << power < most]
    return [*powers, most]


def judge(rows: list[Row]) -> Verdict:
    """Judge whether throughput grows with the threads, nearly to the limit of the machine."""
    one, last = rows[0]["one_thread_updates_per_second"], rows[-1]
    gains = [1.0, *(row["over_one_thread"] for row in rows)]
    grows = all(before < after for before, after in pairwise(gains))
    speeds = ", ".join(f"{row['updates_per_second'] / 1e6:.2f} with {row['threads']}" for row in rows)
    sentence = (
        f"{one / 1e6:.2f} million updates per second with one thread, {speeds}; in a typical turn "
        f"{last['over_one_thread']:.2f} times as many, where threads that share nothing have "
        f"{last['roofline_over_one_thread']:.2f} times as many as one. "
        f"With 16-bit items it is {last['bfloat16_updates_per_second'] / 1e6:.2f}. {last['users']:,} users, "
        f"{last['items']:,} items and {last['ratings']:,} ratings" + (", synthetic." if last["made_up"] else ".")
    )
    if last["threads"] == 1:
        return Verdict(None, f"there is one processor; {sentence}")
    return Verdict(grows and last["over_one_thread"] >= _SHARE * last["roofline_over_one_thread"], sentence)


def draw(drawing: Drawing, rows: list[Row]) -> None:
    """Draw speeds against threads, with linear scaling and the machine's limit."""
    axes = axes_of(drawing, "threads", "million updates per second")
    threads = [1, *(row["threads"] for row in rows)]
    for names, line, label, colour in (
        (("one_thread_updates_per_second", "updates_per_second"), "o-", "training", COLOURS[0]),
        (
            ("one_thread_roofline_updates_per_second", "roofline_updates_per_second"),
            "s--",
            "the machine's limit",
            COLOURS[3],
        ),
    ):
        speeds = [rows[0][names[0]], *(row[names[1]] for row in rows)]
        axes.plot(threads, [speed / 1e6 for speed in speeds], line, color=colour, label=label)
    packed = [row["bfloat16_updates_per_second"] / 1e6 for row in rows]
    axes.plot(threads[1:], packed, "^", color=COLOURS[2], label="training, 16-bit items")
    one = rows[0]["one_thread_updates_per_second"] / 1e6
    axes.plot(threads, [one * number for number in threads], ":", color="0.4", label="as many times one thread")
    axes.set_xticks(threads)
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False, fontsize="small")


FIGURE = Figure(
    title=f"Throughput by number of threads, K = {_FACTORS}, synthetic ratings in the shape of Yahoo's",
    published="Throughput with 2048 factors on Yahoo's ratings grows with the number of cores.",
    measure=measure,
    draw=draw,
    judge=judge,
    data=(YAHOO,),
)
