"""MATLAB files with a matrix of ratings, a row each, as Ciao and Epinions are published.

>>> FORMAT.recognises(Path("rating.mat"))
True
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpmf.errors import InvalidRatings
from dpmf.ratings.formats import Format, Sizes
from dpmf.ratings.formats.columns import Columns
from dpmf.ratings.formats.roles import find_columns

if TYPE_CHECKING:
    from dpmf.ratings.location import Location
    from dpmf.ratings.options import ReadOptions
    from dpmf.ratings.table import Ratings

_USUAL_NAMES = ("rating", "ratings", "rating_with_timestamp")
_USUAL_PLACES = {  # by the number of columns; of five, the third is a category and the fifth how helpful a review was
    3: {"user": 0, "item": 1, "rating": 2},
    5: {"user": 0, "item": 1, "rating": 3},
    6: {"user": 0, "item": 1, "rating": 3, "timestamp": 5},
}


def _read(location: Location) -> Ratings:
    path, options = location.path, location.options
    matrix = matrix_in(path)
    count = matrix.shape[1]
    places = places_in(path, count, options)
    columns = {role: np.ascontiguousarray(matrix[:, place]) for role, place in places.items()}
    values = columns.get("rating", columns.get("count", np.ones(len(matrix))))
    return location.assemble(
        Columns.of_raw(
            columns["user"], columns["item"], values, columns.get("timestamp"), counts="rating" not in columns
        )
    )


def places_in(path: Path, count: int, options: ReadOptions) -> dict[str, int]:
    """Return the position of each role's column of a matrix: as options say, or else as in Ciao."""
    wanted = options.columns or _USUAL_PLACES.get(count)
    if wanted is None:
        raise InvalidRatings(
            f"{path} has {count} columns, and not 3 (user, item, rating), 5 or 6 as Ciao has: name them, "
            "counted from 0, with columns={'user': …}, …"
        )
    return find_columns(path, None, count, wanted, unrated=options.unrated)


def matrix_in(path: Path) -> NDArray[Any]:
    """Return the matrix of ratings in a file: the only one, or the one of a usual name."""
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError

    try:
        # Of the type that MATLAB gives it. On the disk it is the smallest that holds all values, whoever's they are.
        held: dict[str, Any] = loadmat(path, mat_dtype=True)
    except NotImplementedError:
        raise InvalidRatings(f"{path} is of MATLAB 7.3: save it in MATLAB with the option -v7") from None
    except (MatReadError, ValueError, TypeError, KeyError, IndexError, EOFError) as error:
        raise InvalidRatings(f"{path} is not a MATLAB file: {error}") from None
    matrices = {
        name: one
        for name, one in held.items()
        if isinstance(one, np.ndarray) and one.ndim == 2 and one.dtype.kind in "iuf"
    }
    name = next((name for name in _USUAL_NAMES if name in matrices), None)
    if name is None and len(matrices) == 1:
        name = next(iter(matrices))
    if name is None:
        there = ", ".join(sorted(one for one in held if not one.startswith("__"))) or "nothing"
        raise InvalidRatings(f"{path} has no matrix that is called rating: it has {there}; save that one by itself")
    return matrices[name]


FORMAT = Format(
    name="matlab",
    recognises=lambda path: path.suffix.lower() == ".mat" and not path.is_dir(),
    read=_read,
    sizes=lambda location: Sizes(location.path.stat().st_size),  # a byte a rating at the least
    file_names=("rating.mat", "ratings.mat"),
)
