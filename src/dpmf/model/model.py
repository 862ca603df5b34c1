"""A trained model with the factors of every user: sensitive, and never published.

>>> from dpmf.ratings import Ratings
>>> from dpmf.methods import SGD
>>> ratings = Ratings.of(["ann", "ann", "bob"], ["Heat", "Up", "Up"], [5, 4, 2], scale=(1, 5))
>>> model = SGD(n_factors=2, n_epochs=3).fit(ratings, n_threads=1)
>>> [one.item for one in model.recommend("bob", k=1)]
['Heat']
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from dpmf.errors import DamagedFile, InvalidArgument, UnknownId
from dpmf.files import (
    check_replaceable,
    dump_json,
    is_sealed,
    load_tensors,
    new_folder,
    read_json,
    save_tensors,
    sealed,
    sha256_of,
    write_text,
)
from dpmf.kernels.csr import Csr
from dpmf.model.batch import Batch, recommend_people
from dpmf.model.person import Person
from dpmf.model.recommendation import Recommendations
from dpmf.model.recommender import Recommender
from dpmf.model.release import Release
from dpmf.model.release_json import FILES as RELEASE_FILES
from dpmf.model.release_json import ids_of_json
from dpmf.model.selection import Choice
from dpmf.privacy import Guarantee
from dpmf.ratings.ids import Ids

FORMAT_VERSION = 1
FILES = ("model.safetensors", "model.json", "SENSITIVE", "release")
_TENSORS = ("user_factors", "user_biases", "seen_indptr", "seen_items")
_WEIGHTS = "seen_weights"  # with a ranking part only
_WARNING = (
    "This folder holds what people rated and a profile of each of them. It is not a release: do not publish it.\n"
)


@dataclass(frozen=True)
class EpochRecord:
    """The figures of one epoch.

    Attributes:
        epoch: from 1.
        seconds: wall time of the updates.
        train_rmse: error on the training ratings as they were visited.
        validation_rmse: error on the validation part after the epoch, or None without one.
    """

    epoch: int
    seconds: float
    train_rmse: float
    validation_rmse: float | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Model(Recommender):
    """A trained model.

    Attributes:
        release: the part that may be published, within its guarantee.
        user_ids: the users.
        user_factors: shape (n_users, K), float32.
        user_biases: shape (n_users,), float32.
        seen_indptr, seen_items: the items that each user has rated, as in `Ratings`.
        seen_weights: shape of `seen_items`, float32, how much each counts in the ranking, see `Release.weigh`; None for
            1 each, or if the release has no ranking part.
        history: one record per epoch.
    """

    release: Release
    user_ids: Ids
    user_factors: NDArray[np.float32]
    user_biases: NDArray[np.float32]
    seen_indptr: NDArray[np.int64]
    seen_items: NDArray[np.int32]
    history: tuple[EpochRecord, ...] = field(default=())
    seen_weights: NDArray[np.float32] | None = None

    @classmethod
    def without_users(cls, release: Release, history: tuple[EpochRecord, ...]) -> Model:
        """Return a model that holds nobody: users stay where their ratings are, as on a cluster."""
        factors, biases = np.zeros((0, release.n_factors), np.float32), np.zeros(0, np.float32)
        return cls(
            release, Ids(np.zeros(0, np.int64)), factors, biases, np.zeros(1, np.int64), np.zeros(0, np.int32), history
        )

    def __repr__(self) -> str:
        """Return sizes only: ratings do not belong in a log."""
        return f"Model({len(self.user_ids):,} users, {self.release!r})"

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of the release; the model itself has none."""
        return self.release.guarantee

    def person(self, who: object) -> Person:
        """Return a user, by id, with the profile learnt in training."""
        place = self._place(who)
        _, seen, weights = self.rated(np.array([place]))
        return Person(
            self.release, float(self.user_biases[place]), self.user_factors[place], seen, weights=np.array(weights)
        )

    def recommend_batch(
        self,
        users: Sequence[object] | None = None,
        k: int = 10,
        *,
        n_threads: int | None = None,
        **choice: Unpack[Choice],
    ) -> Batch:
        """Return the best items for many users (all by default) at once; arguments as in `Person.recommend`."""
        places = (
            np.arange(len(self.user_ids))
            if users is None
            else np.array([self._place(user) for user in users], np.int64)
        )
        rated = self.rated(None if users is None else places)
        people = self.user_factors[places], self.user_biases[places], self.user_ids.array[places]
        return recommend_people(self.release, people, rated, k, n_threads=n_threads, **choice)

    def rated(self, places: NDArray[np.int64] | None = None) -> Csr:
        """Return the items that users have rated, with their weights in the ranking; of all users by default.

        Args:
            places: the users, as numbers from 0.
        """
        weights = self.seen_weights
        if weights is None:
            weights = np.broadcast_to(np.float32(1), self.seen_items.shape)  # takes no memory
        if places is None:
            return Csr(self.seen_indptr, self.seen_items, weights)
        counts = np.diff(self.seen_indptr)[places]
        indptr = np.concatenate([[0], np.cumsum(counts)])
        taken = np.arange(indptr[-1]) + np.repeat(self.seen_indptr[places] - indptr[:-1], counts)
        return Csr(indptr, self.seen_items[taken], weights[taken])

    def similar_items(self, item: object, k: int = 10) -> Recommendations:
        """Return the items most similar to one item; see `Release.similar_items`."""
        return self.release.similar_items(item, k)

    def _place(self, user: object) -> int:
        place = self.user_ids.position(user)
        if place is None:
            raise UnknownId(f"user {user!r} was not in the training ratings: fold them in with release.fold_in(…)")
        return place

    def save(self, folder: str | Path) -> None:
        """Write the whole model, user factors included, to a folder that only its owner can read."""
        check_replaceable(Path(folder) / "release", RELEASE_FILES)
        with new_folder(Path(folder), may_replace=FILES, mode=0o700) as work:
            tensors = {name: getattr(self, name) for name in _TENSORS}
            if self.release.ranks:
                tensors[_WEIGHTS] = self.rated().values
            save_tensors(work / "model.safetensors", tensors)
            self.release.save(work / "release")
            facts = {
                "format": "dpmf-model",
                "version": FORMAT_VERSION,
                "user_ids": list(self.user_ids),
                "history": [asdict(record) for record in self.history],
                "sha256": sha256_of(work / "model.safetensors"),
            }
            write_text(work / "model.json", dump_json(sealed(facts)))
            write_text(work / "SENSITIVE", _WARNING)

    @classmethod
    def load(cls, folder: str | Path) -> Model:
        """Read a model that `save` wrote."""
        folder = Path(folder)
        if not folder.is_dir():
            raise InvalidArgument(f"no model at {folder}: name the folder that a model was saved in")
        facts = read_json(folder / "model.json")
        if not isinstance(facts, dict) or facts.get("format") != "dpmf-model" or facts.get("version") != FORMAT_VERSION:
            raise DamagedFile(f"{folder} is not a model of format {FORMAT_VERSION}")
        if "digest" in facts and not is_sealed(facts):  # models of earlier versions have none
            raise DamagedFile(f"{folder / 'model.json'} is damaged: its content is not what its digest says")
        release = Release.load(folder / "release")
        expected = (*_TENSORS, _WEIGHTS) if release.ranks else _TENSORS
        tensors = load_tensors(folder / "model.safetensors", expected)
        if sha256_of(folder / "model.safetensors") != facts.get("sha256"):
            raise DamagedFile(
                f"{folder / 'model.safetensors'} is damaged: it is not the file that model.json describes"
            )
        try:
            history = tuple(EpochRecord(**record) for record in facts["history"])
            model = cls(release, ids_of_json(facts["user_ids"]), history=history, **tensors)
            model._check()
        except (KeyError, TypeError, ValueError) as error:
            raise DamagedFile(f"{folder / 'model.json'} is damaged: {error}") from None
        return model

    def _check(self) -> None:
        """Raise ValueError unless users, factors, seen items and release are consistent: kernels rely on it."""
        n_users, indptr, seen = len(self.user_ids), self.seen_indptr, self.seen_items
        kinds = (self.user_factors, np.float32), (self.user_biases, np.float32), (indptr, np.int64), (seen, np.int32)
        if any(one.dtype != kind for one, kind in kinds) or seen.ndim != 1:
            raise ValueError("user factors and biases should be float32, and seen items int32 with pointers of int64")
        if self.user_factors.shape != (n_users, self.release.n_factors) or self.user_biases.shape != (n_users,):
            raise ValueError(f"{n_users} users, but factors of shape {self.user_factors.shape}")
        if indptr.shape != (n_users + 1,) or indptr[0] != 0 or indptr[-1] != len(seen) or (np.diff(indptr) < 0).any():
            raise ValueError("the seen items do not belong to these users")
        if len(seen) and not 0 <= seen.min() <= seen.max() < len(self.release.items):
            raise ValueError("the seen items are not those of the release")
        if self.seen_weights is not None and (
            self.seen_weights.dtype != np.float32
            or self.seen_weights.shape != seen.shape
            or not ((self.seen_weights >= 0) & (self.seen_weights <= self.release.most_weight)).all()
        ):
            most = f"{self.release.most_weight:g}"
            raise ValueError(f"the weights of the seen items should be numbers from 0 to {most}, one for each")
