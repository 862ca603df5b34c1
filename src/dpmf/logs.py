"""What is logged, and what is not.

>>> with quiet("dpmf"):
...     logging.getLogger("dpmf").isEnabledFor(logging.WARNING)
False
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator


@contextlib.contextmanager
def quiet(name: str) -> Iterator[None]:
    """Silence a logger below errors, inside the block."""
    logger = logging.getLogger(name)
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)
