"""Privacy: guarantees."""

from dpmf.privacy.guarantee import Guarantee

__all__ = ["Guarantee"]
