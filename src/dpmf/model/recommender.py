"""Whoever recommends: a model, which knows its users, and a release, which knows nobody and is shown ratings.

| | who is meant by | what it is |
|---|---|---|
| `Model` | the id of a user it was trained on | sensitive: profiles of everybody, and a release |
| `Release` | that person's own ratings | what is published: items and a guarantee |
| `Person` | | one of them, found in a model or folded in to a release: predicts, recommends, explains |

So both do what a `Person` does, with whom it is about as the first argument.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from dpmf.model.batch import Batch
    from dpmf.model.explanation import Explanation
    from dpmf.model.person import Person
    from dpmf.model.recommendation import Recommendations
    from dpmf.model.selection import Choice


class Recommender(ABC):
    """What `Model` and `Release` have in common; `who` is a user's id to the one, their ratings to the other."""

    @abstractmethod
    def person(self, who: Any) -> Person:
        """Return a person, who predicts and recommends."""

    @abstractmethod
    def recommend_batch(
        self, who: Any, /, k: int = 10, *, n_threads: int | None = None, **choice: Unpack[Choice]
    ) -> Batch:
        """Return the best items for many people at once, with their ids."""

    @abstractmethod
    def similar_items(self, item: object, k: int = 10) -> Recommendations:
        """Return the items most similar to one item (id or title)."""

    def predict(self, who: Any, items: Iterable[object]) -> NDArray[np.float64]:
        """Return the expected ratings of items by one person; see `Person.predict`."""
        return self.person(who).predict(items)

    def recommend(self, who: Any, k: int = 10, **choice: Unpack[Choice]) -> Recommendations:
        """Return the best items for one person; arguments as in `Person.recommend`."""
        return self.person(who).recommend(k, **choice)

    def explain(self, who: Any, item: object) -> Explanation:
        """Return why an item has its score for one person; see `Person.explain`."""
        return self.person(who).explain(item)
