"""Events: what was done to the data, in terms that an accountant can compose.

Throughout, "the released sum" is Σ_i f(i), a vector with one bounded contribution f(i) of each user, rounded to a
public grid, and "Gaussian noise" is independent and of the same standard deviation in every direction. A later
sum may depend on what earlier ones released.

>>> GaussianEvent("item sums", noise_multiplier=4.0, count=3, coordinates=600).to_json()["noise_multiplier"]
4.0
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, TypeAlias

from dpmf.errors import DamagedFile, InvalidArgument

_MOST = 2**53  # whole numbers up to here are exact as floating-point numbers, too
_LEAST_NUMBER = 1e-100  # squares of anything smaller, or larger than its inverse, may under- or overflow


@dataclass(frozen=True)
class GaussianEvent:
    """A sum over everybody, released `count` times with Gaussian noise.

    Attributes:
        what: the name of what was released.
        noise_multiplier: standard deviation of the noise / L2 sensitivity of the sum, where the sensitivity is the
            greatest L2 distance between the sums of two data sets that are neighbours *in the relation of the
            guarantee*. Under "replace" it is the replace sensitivity, so no further factor applies.
        count: the number of releases, each with fresh noise; the sum may be a different one each time.
        coordinates: the greatest number of coordinates released, over all `count` releases; the cost of the sampler's
            inaccuracy is proportional to it. Where noise is made of shares, each coordinate counts once for every share
            that is certain to be in it: docs/proofs/shares.md charges for each.
    """

    kind: ClassVar[str] = "gaussian-noise"
    what: str
    noise_multiplier: float
    count: int = 1
    coordinates: int = 0

    def __post_init__(self) -> None:
        _check_common(self)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON types."""
        return {"kind": self.kind, **asdict(self)}


@dataclass(frozen=True)
class PoissonGaussianEvent:
    """A sum over a fresh Poisson sample, released `count` times with Gaussian noise.

    Every user is in the sample with probability `sampling_rate`, independently of all others and of all other times,
    and neither the sample nor its size is released. The sum is not divided by anything that depends on the data.

    Attributes:
        what: the name of what was released.
        noise_multiplier: standard deviation of the noise / C, where C is the greatest L2 norm of *one contribution*
            f(i). This is the add-remove sensitivity, under "replace" too: there the accountant itself accounts for
            one contribution turning into its opposite.
        sampling_rate: above 0 and below 1; without sampling it is a `GaussianEvent`.
        count: the number of releases, each with a fresh sample and fresh noise.
        coordinates: the number of coordinates released, over all `count` releases.
    """

    kind: ClassVar[str] = "gaussian-noise-on-poisson-sample"
    what: str
    noise_multiplier: float
    sampling_rate: float
    count: int = 1
    coordinates: int = 0

    def __post_init__(self) -> None:
        _check_common(self)
        _check_positive("sampling_rate", self.sampling_rate)
        if self.sampling_rate >= 1:
            raise InvalidArgument(f"sampling_rate={self.sampling_rate:g} should be below 1: 1 is not a sample")

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON types."""
        return {"kind": self.kind, **asdict(self)}


@dataclass(frozen=True)
class NormNoiseEvent:
    """A table of rows of numbers, released `count` times with noise of uniform direction and gamma-distributed length.

    Each row has noise z of its own, with a density proportional to exp(-‖z‖₂ / b); for rows of K numbers the length is
    Gamma(K, b). It costs ε = count / noise_multiplier, and no δ except that of the sampler: docs/proofs/norm-noise.md.

    Attributes:
        what: the name of what was released.
        noise_multiplier: b / sensitivity of the table, where the sensitivity is the greatest L2 distance by which *one
            row* may differ between two data sets that are neighbours *in the relation of the guarantee*, all other rows
            being equal. If several rows may differ, it is the greatest sum of the L2 distances of all rows.
        count: the number of releases, each with fresh noise; the table may be a different one each time.
        coordinates: the greatest number of coordinates released, over all `count` releases.
    """

    kind: ClassVar[str] = "gamma-length-noise"
    what: str
    noise_multiplier: float
    count: int = 1
    coordinates: int = 0

    def __post_init__(self) -> None:
        _check_common(self)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON types."""
        return {"kind": self.kind, **asdict(self)}


@dataclass(frozen=True)
class ClaimEvent:
    """A publication that rests on a claim which no accountant here can check or compose.

    Its privacy loss counts as unbounded.

    Attributes:
        what: the name of what was released.
        claim: what is claimed, and by whom.
    """

    kind: ClassVar[str] = "claim-that-cannot-be-recomputed"
    what: str
    claim: str

    def __post_init__(self) -> None:
        check_text("what", self.what)
        check_text("claim", self.claim)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON types."""
        return {"kind": self.kind, **asdict(self)}


Event: TypeAlias = GaussianEvent | PoissonGaussianEvent | NormNoiseEvent | ClaimEvent
_KINDS: dict[str, type[Event]] = {
    one.kind: one for one in (GaussianEvent, PoissonGaussianEvent, NormNoiseEvent, ClaimEvent)
}


def event_from_json(content: Any) -> Event:
    """Read what an event's `to_json` wrote; an unknown kind or field is refused, not guessed."""
    if not isinstance(content, Mapping) or content.get("kind") not in _KINDS:
        raise DamagedFile("an event of this guarantee is of a kind that this version of dpmf does not know")
    kind = _KINDS[content["kind"]]
    known = {"kind", *(field.name for field in fields(kind))}
    if set(content) != known:
        raise DamagedFile(f"field {sorted(known ^ set(content))[0]!r} of a {kind.kind} event is missing or unknown")
    try:
        return kind(**{name: value for name, value in content.items() if name != "kind"})
    except InvalidArgument as error:
        raise DamagedFile(f"a {kind.kind} event of this guarantee is damaged: {error}") from None


def _check_common(event: GaussianEvent | PoissonGaussianEvent | NormNoiseEvent) -> None:
    check_text("what", event.what)
    _check_positive("noise_multiplier", event.noise_multiplier)
    for name, least in (("count", 1), ("coordinates", 0)):
        value = getattr(event, name)
        if type(value) is not int or not least <= value <= _MOST:
            raise InvalidArgument(f"{name}={value!r} should be a whole number from {least} to {_MOST}")


def _check_positive(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not _LEAST_NUMBER <= value <= 1 / _LEAST_NUMBER:
        raise InvalidArgument(f"{name}={value!r} should be a number above 0")


def check_text(name: str, value: object) -> None:
    """Refuse anything but one line of text: line breaks and control characters could imitate other output."""
    if not isinstance(value, str) or not value.strip():
        raise InvalidArgument(f"{name}={value!r} should be a text that is not empty")
    if not value.isprintable():
        raise InvalidArgument(f"{name}={value!r} should be one line, without control characters")
