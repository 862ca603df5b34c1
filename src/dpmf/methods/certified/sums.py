"""Loops over people on several threads.

>>> from dpmf.ratings.synthetic import make
>>> counts = [0, 0]
>>> def work(task, first, last): counts[task] = last - first
>>> over_people(make(50, 40), work, n_tasks=2, n_threads=1)
>>> sum(counts)
50
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dpmf.engine.layout import equal_masses
from dpmf.engine.threads import run_tasks
from dpmf.methods.certified.questions import Rated


def over_people(rated: Rated, work: Callable[[int, int, int], Any], n_tasks: int, n_threads: int) -> None:
    """Call work(task, first, last) for ranges of people with about the same number of ratings."""
    starts = equal_masses(np.diff(rated.indptr) + 1, n_tasks).tolist()
    run_tasks(lambda task: work(task, starts[task], starts[task + 1]), n_tasks, n_threads)
