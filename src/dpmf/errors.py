"""What can go wrong, in words a user can act on.

Every error that dpmf raises on purpose derives from `DpmfError`. Its text is one line that names the argument and
the value and says what to do next; the command line prints it as it is and exits with a non-zero code.

>>> issubclass(InvalidRatings, DpmfError)
True
"""

from __future__ import annotations


class DpmfError(Exception):
    """Base of all errors that dpmf raises on purpose."""

    def __str__(self) -> str:
        """Return one line, even if what is wrong has several."""
        return " ".join(super().__str__().splitlines())


class InvalidArgument(DpmfError, ValueError):
    """An argument has a value that cannot be used."""


class InvalidRatings(DpmfError, ValueError):
    """The ratings themselves are wrong: a missing column, a value off the scale, nothing to learn from."""


class UnknownId(DpmfError, KeyError):
    """A user or an item that the model has never heard of."""

    def __str__(self) -> str:
        """Return the message itself: KeyError would print its repr."""
        return " ".join(str(self.args[0]).splitlines())


class DamagedFile(DpmfError):
    """A saved file is missing, truncated, altered or made by a newer version."""


class MissingExtra(DpmfError, ImportError):
    """An optional dependency is not installed."""


class TooFewAddresses(DpmfError, MemoryError):
    """A limit on the addresses of this process leaves less than libraries need to work."""


class FetchFailed(DpmfError):
    """A download did not succeed, or what arrived is not what was announced."""


class BudgetExceeded(DpmfError):
    """Something would cost more privacy than is allowed."""


class NotVerified(DpmfError):
    """A release does not keep what it says: its events cost something else, or its signature does not fit."""


class NotCertified(DpmfError):
    """Something is to be shown to others that nothing is proven about."""
