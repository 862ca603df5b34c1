"""How much memory this process has taken.

>>> peak = peak_memory()
>>> peak is None or peak > 10_000_000
True
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import sys
from pathlib import Path


def forget_peak_memory() -> bool:
    """Reset `peak_memory` to what is in use now; tell whether that could be done."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)  # the GNU library keeps what was freed, which would count
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
        return True
    return False


def peak_memory() -> int | None:
    """Return the most memory this process has had resident, in bytes, or None where that is not known."""
    with contextlib.suppress(OSError, ValueError, StopIteration):
        # On Linux getrusage would also count what the process was before it became this program.
        lines = Path("/proc/self/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) * 1024
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
