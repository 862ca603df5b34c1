"""The Yahoo Music format: below a line `user|count` stand that user's ratings as `item`, `rating`, date and time.

>>> import tempfile
>>> from dpmf.ratings import Ratings
>>> path = Path(tempfile.mkdtemp()) / "trainIdx1.txt"
>>> _ = path.write_text("0|2\\n507696\\t90\\t3811\\t13:24:00\\n137915\\t70\\t3811\\t13:23:00\\n")
>>> Ratings.read(path, scale=(0, 100)).n_users
1
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

_MARK = "|"


def _recognises(path: Path) -> bool:
    if path.is_dir():
        return False
    user, mark, count = first_line(path).strip().partition(_MARK)
    return bool(mark) and user.isdigit() and (not count or count.isdigit())


def _read(location: Location) -> Ratings:
    groups = parse_groups(location, _MARK)
    return location.assemble(Columns.of_raw(groups.headers, groups.members, groups.values, groups.times))


FORMAT = Format(name="yahoo", recognises=_recognises, read=_read, sizes=estimate_sizes, file_names=("trainIdx1.txt",))
