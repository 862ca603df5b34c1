"""Limits on addresses, such as `ulimit -v`: what needs more than there are is refused before it begins.

Libraries that run out of addresses while they are loaded, or start threads, do not raise `MemoryError`: some crash,
some abort, and some try again for ever.

>>> check_addresses(2**20)
"""

from __future__ import annotations

import contextlib
import mmap
import os

from dpmf.errors import TooFewAddresses


def check_addresses(n_bytes: int = 0, *, per_thread: int = 0, n_threads: int | None = None) -> None:
    """Raise `TooFewAddresses` where a limit leaves fewer than these, and those for every thread.

    Args:
        n_bytes: needed whatever the number of threads.
        per_thread: needed by each of them.
        n_threads: how many there will be; one on each processor of the machine by default.
    """
    needed = n_bytes + per_thread * (n_threads or os.cpu_count() or 1)
    with contextlib.suppress(ImportError, ValueError):  # there are no such limits here
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit == resource.RLIM_INFINITY:
            return
        try:
            mmap.mmap(-1, needed, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, 0).close()
        except OSError:
            raise TooFewAddresses(
                f"out of memory: a limit of {limit / 2**20:,.0f} MiB on addresses (`ulimit -v`) leaves less than the "
                f"{needed / 2**20:,.0f} MiB needed here"
            ) from None
