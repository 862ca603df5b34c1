"""The Netflix Prize format: below a line `movie:` stand that movie's ratings as `user,rating,date`.

>>> import tempfile
>>> from dpmf.ratings import Ratings
>>> path = Path(tempfile.mkdtemp()) / "combined_data_1.txt"
>>> _ = path.write_text("1:\\n7,4,2005-09-06\\n8,3,2005-09-07\\n")
>>> Ratings.read(path, scale=(1, 5)).values.tolist()
[4.0, 3.0]
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dpmf.ratings.formats import Format
from dpmf.ratings.formats.columns import Columns
from dpmf.ratings.formats.grouped import parse_groups
from dpmf.ratings.formats.text import estimate_sizes, first_line

if TYPE_CHECKING:
    from dpmf.ratings.location import Location
    from dpmf.ratings.table import Ratings

_MARK = ":"


def _recognises(path: Path) -> bool:
    if path.is_dir():
        return False
    movie, mark, rest = first_line(path).strip().partition(_MARK)
    return bool(mark) and movie.isdigit() and not rest


def _read(location: Location) -> Ratings:
    groups = parse_groups(location, _MARK)
    return location.assemble(Columns.of_raw(groups.members, groups.headers, groups.values, groups.times))


FORMAT = Format(
    name="netflix",
    recognises=_recognises,
    read=_read,
    sizes=estimate_sizes,
    file_names=("combined_data_*.txt", "mv_*.txt", "training_set/mv_*.txt"),
)
