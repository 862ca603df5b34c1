"""What the tests of ratings share: a plain view of ratings, and of the one-line errors that bad input must give."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from dpmf.errors import DpmfError
from dpmf.ratings import Ratings

Table = Callable[[Ratings], dict[tuple[int | str, int | str], float]]
Refused = Callable[..., AbstractContextManager[None]]


@pytest.fixture(scope="session")
def table() -> Table:
    """Return a function that shows ratings as a dict from (user id, item id) to rating."""

    def show(ratings: Ratings) -> dict[tuple[int | str, int | str], float]:
        users, items = ratings.user_ids, ratings.catalogue.ids
        rows = zip(ratings.users.tolist(), ratings.items.tolist(), ratings.values.tolist(), strict=True)
        return {(users[user], items[item]): value for user, item, value in rows}

    return show


@pytest.fixture(scope="session")
def refused() -> Refused:
    """Return a context in which a `DpmfError` of one line must be raised that contains all the words given."""

    @contextmanager
    def check(*words: str) -> Iterator[None]:
        with pytest.raises(DpmfError) as caught:
            yield
        message = str(caught.value)
        assert len(message.splitlines()) == 1
        assert not [word for word in words if word not in message], message

    return check
