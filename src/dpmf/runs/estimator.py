"""A method as scikit-learn uses it: fitted in place, scored on held-out rows, searched over by `GridSearchCV`.

Settings that are chosen by errors on ratings depend on these ratings, and no guarantee of a single run covers that. So
an estimator of a private method demands that the ratings are public; what it finds is for other ratings.

>>> import dpmf
>>> rows = np.array([[1, 1, 5], [1, 2, 1], [2, 1, 4], [2, 2, 2], [3, 1, 5]])
>>> estimator = Estimator(dpmf.SGD(n_factors=1, n_epochs=2), scale=(1, 5)).fit(rows)
>>> estimator.predict(rows[:2]).shape, estimator.score(rows) < 0
((2,), True)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from dpmf.errors import InvalidArgument
from dpmf.evaluation import evaluate
from dpmf.methods.base import Method
from dpmf.model import Model
from dpmf.ratings import Ratings, Scale
from dpmf.ratings.formats.frames import pairs_of
from dpmf.ratings.given import as_ratings
from dpmf.ratings.ids import Ids

if TYPE_CHECKING:
    from sklearn.utils import Tags

_ERRORS = ("rmse", "mae")
_PUBLIC = "Settings may have been chosen by errors on these ratings, which were asserted to be public."
_PARAMETERS = ("method", "scale", "items", "columns", "figure", "public")


class Estimator:
    """A method with what it needs to know of a table, and after `fit` the model.

    Rows are those of a table or of an array, as `Ratings.of` takes them; with `y` their ratings come by themselves, and
    rows are of user and item.

    Attributes:
        method: what is fitted; its settings are parameters, too, as `method__n_factors`.
        scale, items, columns: of the ratings, as in `Ratings.of`.
        figure: what `score` returns, a name among those that `dpmf.evaluate` returns; errors count as negative.
        public: whether the ratings are asserted to be public, which a private method needs here.
        model_: what `fit` has learnt: sensitive.
    """

    model_: Model

    def __init__(
        self,
        method: Method,
        *,
        scale: Scale | tuple[float, float] | None = None,
        items: Any = None,
        columns: Mapping[str, str | int | None] | None = None,
        figure: str = "rmse",
        public: bool = False,
    ) -> None:
        self.method = method
        self.scale = scale
        self.items = items
        self.columns = columns
        self.figure = figure
        self.public = public

    def __repr__(self) -> str:
        return f"Estimator({self.method!r})"

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the arguments by name; if `deep`, those of the method as well, as `method__n_factors`."""
        own = {name: getattr(self, name) for name in _PARAMETERS}
        nested = {f"method__{name}": value for name, value in self.method.get_params().items()} if deep else {}
        return own | nested

    def set_params(self, **changes: Any) -> Self:
        """Change arguments, in place."""
        nested = {name.removeprefix("method__"): changes.pop(name) for name in list(changes) if "__" in name}
        if unknown := changes.keys() - set(_PARAMETERS):
            raise InvalidArgument(
                f"Estimator has no parameter {min(unknown)!r}: it has {', '.join(_PARAMETERS)}, and settings of the "
                "method as method__n_factors"
            )
        for name, value in changes.items():
            setattr(self, name, value)
        self.method = self.method.set_params(**nested)
        return self

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from ratings, and keep the model as `model_`."""
        if self.method.kind in ("certified", "paper") and not self.public:
            raise InvalidArgument(
                "settings that are chosen by errors on private ratings cost more than any single run says: search on "
                "public ratings with Estimator(…, public=True), and fit the method found to the private ones by itself"
            )
        model = self.method.fit(self._ratings(X, y))
        if model.guarantee.mode != "none":
            guarantee = replace(model.guarantee, assumptions=(*model.guarantee.assumptions, _PUBLIC))
            model = replace(model, release=replace(model.release, guarantee=guarantee))
        self.model_ = model
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Return expected ratings of rows of user and item; of whoever or whatever is new, by what is known."""
        model, release = self._fitted(), self._fitted().release
        release.check_predicts()
        users, items = pairs_of(X, self.columns)
        u, j = _places(model.user_ids, users), _places(release.items.ids, items)
        factors, biases = _with_nothing(model.user_factors)[u], _with_nothing(model.user_biases)[u]
        of_items = _with_nothing(release.item_factors)[j]
        scores: NDArray[np.float64] = np.einsum("nk,nk->n", factors, of_items, dtype=np.float64)
        scores += biases + _with_nothing(release.item_biases)[j] + release.mean
        return scores if release.is_implicit else np.clip(scores, release.scale.lo, release.scale.hi)

    def score(self, X: Any, y: Any = None) -> float:
        """Return `figure` on these ratings, the greater the better: errors are negative."""
        test = X if y is None else self._ratings(X, y)
        found = evaluate(self._fitted(), test.to_pandas() if isinstance(test, Ratings) else test, columns=self.columns)
        if self.figure not in found:
            raise InvalidArgument(f"figure={self.figure!r} is not known: choose from {', '.join(found)}")
        return -found[self.figure] if self.figure in _ERRORS else found[self.figure]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Tags:
        from sklearn.utils import RegressorTags, Tags, TargetTags

        return Tags("regressor", TargetTags(required=False), regressor_tags=RegressorTags())

    def _fitted(self) -> Model:
        if not self.__sklearn_is_fitted__():
            raise InvalidArgument("this estimator has learnt nothing yet: call fit first")
        return self.model_

    def _ratings(self, X: Any, y: Any) -> Ratings:
        described: dict[str, Any] = {"scale": self.scale, "items": self.items}
        if y is None:
            return as_ratings(X, columns=self.columns, unrated=self.method.is_implicit, **described)
        return Ratings.of(*pairs_of(X, self.columns), y, **described)


def _places(ids: Ids, column: NDArray[Any]) -> NDArray[np.int32]:
    """Return positions; -1 for what is new."""
    distinct, codes = Ids.factorize(column)
    return ids.encode(distinct.array)[codes]


def _with_nothing(rows: NDArray[Any]) -> NDArray[Any]:
    """Return rows with a last one of zeros, for what is at position -1."""
    return np.concatenate([rows, np.zeros((1, *rows.shape[1:]), rows.dtype)])
