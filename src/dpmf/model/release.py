"""A release: item factors, biases, the mean, the catalogue, and the guarantee; the part that is published.

It may rank as well as predict ratings, or rank only: then it has a ranking part, see `dpmf.model.ranking`, beside the
factors or with no factors at all.

On disk a release is a folder with exactly two files, `release.safetensors` and `release.json`. The fields of the
latter are a whitelist: no exact count of users or ratings, no error figure, no path, no time. It has the checksum of
the former and a digest of its own fields, which reveal damage, and optionally a signature of that digest, which reveals
tampering. A release whose factors go by counts has format 5, any other with a ranking part format 4, any other of
implicit feedback, which it then records, format 3, and the rest format 2.

>>> import numpy as np, tempfile
>>> release = Release(
...     items=Items.of([1, 2], ["Heat", "Alien"]), scale=Scale(1, 5), mean=3.0,
...     item_factors=np.ones((2, 2), np.float32), item_biases=np.zeros(2, np.float32), ridge=Ridge(1.0, 1.0),
...     configuration={"method": "sgd"}, guarantee=Guarantee.none())
>>> folder = tempfile.mkdtemp() + "/release"
>>> release.save(folder)
>>> Release.load(folder).items.titles
('Heat', 'Alien')
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

import numpy as np
from numpy.typing import NDArray

from dpmf.errors import DamagedFile, DpmfError, InvalidArgument
from dpmf.files import digest_of, dump_json, load_tensors, new_folder, save_tensors, sha256_of, write_text
from dpmf.html import show_facts
from dpmf.model.learnt import Learnt
from dpmf.model.ranking import LARGEST_FACTOR, Ranking
from dpmf.model.ranking_tensors import TENSORS as RANKING_TENSORS
from dpmf.model.ranking_tensors import ranking_of_tensors, ranking_tensors
from dpmf.model.recommender import Recommender
from dpmf.model.release_json import (
    COUNTS_VERSION,
    EXPLICIT_VERSION,
    FACTS_FILE,
    FILES,
    IMPLICIT_VERSION,
    RANKING_VERSION,
    TENSOR_FILE,
    counts_of_json,
    guarantee_of_json,
    items_of_json,
    number_of_json,
    read_facts,
    scale_of_json,
)
from dpmf.model.signing import check_signature, read_private_key, read_public_key, sign
from dpmf.privacy import Guarantee
from dpmf.ratings import Items, Scale
from dpmf.ratings.table import MOST_COUNT

if TYPE_CHECKING:
    from dpmf.kernels.als_implicit import Confidence, ImplicitItems
    from dpmf.kernels.ridge import Penalties
    from dpmf.model.batch import Batch
    from dpmf.model.person import Person
    from dpmf.model.recommendation import Recommendations
    from dpmf.model.selection import Choice

_PUT_BACK = 4.0  # times the width of the scale: more than expected ratings differ
LEAST_RIDGE = 1e-6  # without any penalty, fewer ratings than factors would leave the fit underdetermined
_TENSORS = ("item_factors", "item_biases")
_MOST_WEIGHT = 1e6  # of an item that was had often, beside one that was had once


@dataclass(frozen=True)
class Ridge:
    """The penalties with which a person's own bias and factors are fitted.

    Attributes:
        bias, factors: penalties on the squared bias and the squared norm of the factors.
        exponent: they are multiplied by the number of the person's ratings to this power, from 0 to 1.
    """

    bias: float
    factors: float
    exponent: float = 0.0

    @classmethod
    def from_json(
        cls, version: int, bias: float, factors: float, exponent: float = 0.0, per_rating: bool = False
    ) -> Ridge:
        """Return the penalties in a release of this format, or raise TypeError or ValueError.

        Format 1 had `per_rating` in place of the exponent: whether they are multiplied by the number of ratings.
        """
        if version > 1 and per_rating:
            raise ValueError("the ridge has a field of an older format")
        return cls(number_of_json(bias), number_of_json(factors), 1.0 if per_rating else number_of_json(exponent))


@dataclass(frozen=True, eq=False, repr=False)
class Release(Recommender):
    """Item factors, biases, catalogue and guarantee: everything that is published.

    Attributes:
        items: the public catalogue.
        scale: of the ratings.
        mean: added to every prediction.
        item_factors: shape (n_items, K), float32.
        item_biases: shape (n_items,), float32.
        ridge: the penalties with which a person's own profile is fitted.
        configuration: how the model was trained, public facts only.
        guarantee: the privacy guarantee.
        feedback: whether predictions are ratings ("explicit") or scores for having an item ("implicit").
        alpha: how much more an item that a person has weighs in their fit than one they lack; implicit only.
        most_count, linear: how much that depends on how often they had it, see `dpmf.kernels.als_implicit.Confidence`.
        ranking: the ranking part, which orders recommendations; None if they are ordered by prediction. A release that
            only ranks has factors of no columns, and no biases.
    """

    items: Items
    scale: Scale
    mean: float
    item_factors: NDArray[np.float32]
    item_biases: NDArray[np.float32]
    ridge: Ridge
    configuration: Mapping[str, Any]
    guarantee: Guarantee
    feedback: Literal["explicit", "implicit"] = "explicit"
    alpha: float = 0.0
    ranking: Ranking | None = None
    most_count: float = 1.0
    linear: bool = False

    def __repr__(self) -> str:
        """Return sizes and the mode of the guarantee."""
        ranking = "" if self.ranking is None else f"{self.ranking!r}, "
        factors = f"{self.n_used_factors} factor{'s' if self.n_used_factors != 1 else ''}"
        return f"Release({len(self.items):,} items, {factors}, {ranking}guarantee {self.guarantee.mode})"

    def _repr_html_(self) -> str:
        """Return what it is, with its guarantee."""
        can = [name for name, does in (("rank", self.ranks), ("predict ratings", self.predicts_ratings)) if does]
        facts = {
            "items": len(self.items),
            "factors": self.n_used_factors,
            "can": " and ".join(can) or "score what people may have",
            "method": self.configuration.get("method", "unknown"),
            "guarantee": self.guarantee,
        }
        return show_facts("Release", facts)

    @property
    def n_factors(self) -> int:
        """K, the length of a factor vector."""
        return int(self.item_factors.shape[1])

    @property
    def n_used_factors(self) -> int:
        """How many factors say something: not those that are 0 for every item, as where a run found none."""
        return int(np.count_nonzero(self.item_factors.any(axis=0)))

    @property
    def n_measured_factors(self) -> int:
        """How many factors a run found: all but those that nobody measured, which are the last."""
        return self.n_factors - self.learnt.beside

    @property
    def distinctive_factors(self) -> NDArray[np.float32]:
        """Factors that tell what items are like: all but how popular and how well liked they are."""
        first = self.n_measured_factors
        return np.delete(self.item_factors, np.s_[first : first + self.learnt.leanings], axis=1)

    @cached_property
    def learnt(self) -> Learnt:
        """How much of it is more than noise."""
        return Learnt.of(self)

    @cached_property
    def behind(self) -> NDArray[np.float32] | None:
        """How far each item is put back in lists by expected ratings; None if none is, and where a ranking orders them.

        Items of whose ratings no more than noise is known come last: the luckiest of many would come first.
        """
        known = self.learnt.with_ratings
        if self.ranks or known is None or known.all() or not known.any():
            return None
        return np.where(known, 0, _PUT_BACK * (self.scale.hi - self.scale.lo)).astype(np.float32)

    @property
    def is_implicit(self) -> bool:
        """Whether it predicts what people have, not how they rate it."""
        return self.feedback == "implicit"

    @property
    def weighs_counts(self) -> bool:
        """Whether it matters how often a person had an item."""
        return self.is_implicit and (self.most_count > 1 or self._ranks_by_counts)

    @property
    def _ranks_by_counts(self) -> bool:
        return self.ranking is not None and self.ranking.weighs_counts

    @property
    def confidence(self) -> Confidence:
        """How much an item weighs in a person's fit that they have, by how often."""
        from dpmf.kernels.als_implicit import Confidence

        return Confidence(self.alpha, self.most_count, self.linear)

    @property
    def ranks(self) -> bool:
        """Whether it has a ranking part, which then orders recommendations."""
        return self.ranking is not None

    @property
    def orders(self) -> bool:
        """Whether anything tells items apart: its ranking, or else factors or biases."""
        if self.ranking is not None:
            return bool(len(self.ranking.items) or np.ptp(self.ranking.popularity) > 0)
        return bool(self.item_factors.any() or np.ptp(self.item_biases) > 0)

    @property
    def predicts(self) -> bool:
        """Whether it has a rating model; if not, it can only rank."""
        return self.ranking is None or self.n_factors > 0 or bool(self.item_biases.any())

    @property
    def predicts_ratings(self) -> bool:
        """Whether its predictions are ratings on the scale."""
        return self.predicts and not self.is_implicit

    def check_predicts(self) -> None:
        """Refuse to predict without a rating model."""
        if not self.predicts:
            raise InvalidArgument("this release only ranks items, and predicts no ratings: ask it for recommendations")

    def weigh(self, ratings: NDArray[np.float32]) -> NDArray[np.float32] | None:
        """Return how much items with these ratings, or counts, weigh in the ranking; None if there is no such part."""
        if self.ranking is None:
            return None
        if self.is_implicit:
            return self.ranking.weigh_counts(ratings)
        return self.ranking.weigh(ratings, self.scale.hi)

    @property
    def most_weight(self) -> float:
        """What an item weighs at the most in the ranking: 1, and more than that if it was had often."""
        if self.ranking is None or not (self.is_implicit and self._ranks_by_counts):
            return 1.0
        return 1 / self.ranking.lowest_weight

    @property
    def _version(self) -> int:
        """The format of its files: the oldest that can express it, so that older versions of dpmf read it."""
        if self.most_count > 1:
            return COUNTS_VERSION
        if self.ranks:
            return RANKING_VERSION
        return IMPLICIT_VERSION if self.is_implicit else EXPLICIT_VERSION

    @property
    def penalties(self) -> Penalties:
        """The ridge as fits take it, with a least penalty on factors."""
        from dpmf.kernels.ridge import Penalties

        return Penalties(self.ridge.bias, max(self.ridge.factors, LEAST_RIDGE), self.ridge.exponent)

    @cached_property
    def implicit_items(self) -> ImplicitItems:
        """The items as fits to implicit feedback need them; see `dpmf.kernels.als_implicit`."""
        from dpmf.kernels.als_implicit import prepare_items

        return prepare_items(self.item_factors, self.item_biases, max(self.ridge.factors, LEAST_RIDGE))

    @cached_property
    def tiles(self) -> NDArray[np.float32]:
        """The item factors in tiles, for finding the best items of many people; see `dpmf.kernels.tiles`."""
        from dpmf.kernels.tiles import pack_items

        return pack_items(self.item_factors)

    @cached_property
    def columns(self) -> NDArray[np.float32]:
        """The item factors transposed, shape (K, n_items), for scoring many items at once."""
        return np.ascontiguousarray(self.item_factors.T)

    def fold_in(self, ratings: Mapping[Any, float] | Iterable[Any]) -> Person:
        """Return a person fitted to their own ratings, by item id or title; see `dpmf.model.person.fold_in`."""
        from dpmf.model.person import fold_in

        return fold_in(self, ratings)

    def person(self, who: Mapping[Any, float] | Iterable[Any]) -> Person:
        """Return somebody by their own ratings: the same as `fold_in`."""
        return self.fold_in(who)

    def recommend_batch(
        self,
        ratings: Any,
        /,
        k: int = 10,
        *,
        columns: Mapping[str, str | int | None] | None = None,
        n_threads: int | None = None,
        **choice: Unpack[Choice],
    ) -> Batch:
        """Return the best items for many people, from their own ratings.

        Args:
            ratings: a pandas, polars or Arrow table, an array of rows user, item, rating, or `Ratings` with the
                catalogue of this release. Items that are not in it are left out.
            k: the length of a list, at most.
            columns: of a table, as in `Ratings.of`.
            n_threads: all CPUs by default.
            choice: as in `Person.recommend`.
        """
        from dpmf.model.batch import recommend_to_raters
        from dpmf.model.own import ratings_for

        return recommend_to_raters(self, ratings_for(self, ratings, columns), k, n_threads=n_threads, **choice)

    def similar_items(self, item: object, k: int = 10) -> Recommendations:
        """Return the k items most similar to one item; see `dpmf.model.person.similar_items`."""
        from dpmf.model.person import similar_items

        return similar_items(self, item, k)

    def save(self, folder: str | Path, sign_key: str | Path | None = None) -> None:
        """Write the release; an older release in the same folder is replaced once the new one is complete.

        Args:
            folder: the folder to write.
            sign_key: a PEM file with an Ed25519 private key, to sign the release with.
        """
        key = None if sign_key is None else read_private_key(Path(sign_key))
        if not all(np.isfinite(getattr(self, name)).all() for name in _TENSORS):
            raise DpmfError("item factors are not finite: the training diverged, and nothing was saved")
        if self.ranking is not None:
            try:
                self.ranking.check(len(self.items))
            except ValueError as error:
                raise DpmfError(f"{error}, and nothing was saved") from None
        with new_folder(Path(folder), may_replace=FILES) as work:
            tensors, ranking = ({}, None) if self.ranking is None else ranking_tensors(self.ranking)
            save_tensors(work / TENSOR_FILE, {name: getattr(self, name) for name in _TENSORS} | tensors)
            facts: dict[str, Any] = {
                "format": "dpmf-release",
                "version": self._version,
                "mean": self.mean,
                "scale": {name: getattr(self.scale, name) for name in ("lo", "hi", "declared")},
                "ridge": asdict(self.ridge),
                "items": {
                    "ids": list(self.items.ids),
                    "titles": list(self.items.titles),
                    "genres": list(self.items.genres),
                    "declared": self.items.declared,
                },
                "configuration": dict(self.configuration),
                "guarantee": self.guarantee.to_json(),
                "sha256": sha256_of(work / TENSOR_FILE),
            }
            if self._version >= IMPLICIT_VERSION:
                facts |= {"feedback": self.feedback, "alpha": self.alpha}
            if ranking is not None:
                facts["ranking"] = ranking
            if self._version >= COUNTS_VERSION:
                facts["counts"] = {"most": self.most_count, "linear": self.linear}
            facts["digest"] = digest_of(facts)
            if key is not None:
                facts["signature"] = sign(facts["digest"], key)
            write_text(work / FACTS_FILE, dump_json(facts))

    @classmethod
    def load(cls, folder: str | Path, public_key: str | Path | None = None) -> Release:
        """Read a release, with every check that its files allow.

        Args:
            folder: the folder to read.
            public_key: a PEM file with an Ed25519 public key; a release without a matching signature is refused.

        Raises:
            InvalidArgument: there is no such folder, or no such key.
            DamagedFile: a file is missing, altered, truncated, of a newer format, or holds unknown fields.
            NotVerified: the release is not signed with the key.
        """
        folder = Path(folder)
        if not folder.is_dir():
            raise InvalidArgument(f"no release at {folder}: name the folder that a release was saved in")
        facts = read_facts(folder)
        if public_key is not None:
            check_signature(facts.get("digest"), facts.get("signature"), read_public_key(Path(public_key)))
        if sha256_of(folder / TENSOR_FILE) != facts["sha256"]:
            raise DamagedFile(f"{folder / TENSOR_FILE} is damaged: it is not the file that {FACTS_FILE} describes")
        ranks = "ranking" in facts
        tensors = load_tensors(folder / TENSOR_FILE, (*_TENSORS, *(RANKING_TENSORS if ranks else ())))
        try:
            release = cls(
                items=items_of_json(**facts["items"]),
                scale=scale_of_json(**facts["scale"]),
                mean=number_of_json(facts["mean"]),
                item_factors=tensors["item_factors"],
                item_biases=tensors["item_biases"],
                ridge=Ridge.from_json(facts["version"], **facts["ridge"]),
                configuration=facts["configuration"],
                guarantee=guarantee_of_json(facts["guarantee"], facts["version"]),
                feedback=facts.get("feedback", "explicit"),
                alpha=number_of_json(facts.get("alpha", 0.0)),
                ranking=ranking_of_tensors(tensors, facts["ranking"]) if ranks else None,
                **counts_of_json(**facts.get("counts", {})),
            )
            release._check()
        except (KeyError, TypeError, ValueError) as error:
            raise DamagedFile(f"{folder / FACTS_FILE} is damaged: {error}") from None
        return release

    def _check(self) -> None:
        """Raise ValueError (or TypeError) unless all parts are valid and consistent."""
        factors, biases, ridge = self.item_factors, self.item_biases, self.ridge
        if not factors.dtype == biases.dtype == np.float32 or factors.ndim != 2 or biases.ndim != 1:
            raise ValueError("item factors should be a float32 matrix, and item biases a float32 vector")
        if not len(self.items) == len(factors) == len(biases):
            raise ValueError(f"{len(self.items)} items, {len(factors)} rows of factors, {len(biases)} biases")
        if not (np.isfinite(factors).all() and np.isfinite(biases).all() and math.isfinite(self.mean)):
            raise ValueError("mean, factors and biases should be finite")
        if max(np.abs(factors).max(initial=0), np.abs(biases).max(initial=0)) > LARGEST_FACTOR:
            raise ValueError(f"factors and biases should be at most {LARGEST_FACTOR:g} in magnitude")
        if not -LARGEST_FACTOR <= self.scale.lo <= self.scale.hi <= LARGEST_FACTOR:
            raise ValueError(f"the scale {self.scale} should be within {LARGEST_FACTOR:g} in magnitude")
        if not self.scale.lo <= self.mean <= self.scale.hi:
            raise ValueError(f"the mean {self.mean} should be on the scale {self.scale}")
        if not (0 <= ridge.bias < math.inf and 0 <= ridge.factors < math.inf and 0 <= ridge.exponent <= 1):
            raise ValueError("the ridge penalties should be numbers from 0 on, and their exponent one from 0 to 1")
        if self.feedback not in ("explicit", "implicit") or not 0 <= self.alpha < math.inf:
            raise ValueError("the feedback should be explicit or implicit, and alpha a number from 0 on")
        if not 1 <= self.most_count <= MOST_COUNT or (self.most_count > 1 and not self.is_implicit):
            raise ValueError(f"the count that weighs most should be from 1 to {MOST_COUNT:.0f}, of implicit feedback")
        if not isinstance(self.configuration, dict):
            raise TypeError("the configuration should be an object")
        if self.ranking is not None:
            self.ranking.check(len(self.items))
            if not self.most_weight <= _MOST_WEIGHT:
                raise ValueError(f"a count of one should weigh more than {self.ranking.lowest_weight} of the most")
            counts = len(self.ranking.items) and not self.is_implicit  # else no rating counts, or every one does
            if counts and not self.scale.lo <= self.ranking.threshold <= self.scale.hi:
                raise ValueError(f"the threshold {self.ranking.threshold} should be on the scale {self.scale}")
        self.learnt  # noqa: B018  (refuses a damaged record)
