"""Where ratings are, and what is declared about them: a file, a folder, or a name of the catalogue.

>>> import tempfile
>>> path = Path(tempfile.mkdtemp()) / "u.data"
>>> _ = path.write_text("196\\t242\\t3\\t881250949\\n")
>>> located(path).format
'csv'
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from dpmf.errors import InvalidArgument, InvalidRatings
from dpmf.files import read_json
from dpmf.ratings.catalogue import CATALOGUE, find, folder_of
from dpmf.ratings.formats.grouped import grouped_format
from dpmf.ratings.formats.scan import Source, first_line, parquet_source, text_source
from dpmf.ratings.items import Items
from dpmf.ratings.table import Scale

Format = Literal["csv", "parquet", "netflix", "yahoo"]
_KNOWN_FILES = (
    "ratings.parquet",
    "ratings.csv",
    "ratings.dat",
    "u.data",
    "trainIdx1.txt",
    "combined_data_*.txt",
    "mv_*.txt",
)


@dataclass(frozen=True)
class Located:
    """Ratings that were found, with what is declared or given about them.

    Attributes:
        name: what to call them.
        paths: the files.
        format: their layout.
        scale: lowest and highest possible rating, if known.
        missing: a value that means "no rating", if any.
        options: what `text_source` or `parquet_source` should know.
    """

    name: str
    paths: list[Path]
    format: str
    scale: Scale | None
    missing: float | None
    options: Mapping[str, Any]
    _items: Items | str | Path | None
    _items_options: Mapping[str, Any]

    @property
    def is_grouped(self) -> bool:
        """Whether ratings stand in groups below header lines; such files cannot be opened by DuckDB."""
        return self.format in ("netflix", "yahoo")

    def catalogue(self) -> Items | None:
        """Return the public catalogue, or None if there is none."""
        if self._items is None or isinstance(self._items, Items):
            return self._items
        return Items.read(self._items, **self._items_options)

    def open(self, memory: str | None) -> AbstractContextManager[Source]:
        """Open the ratings for DuckDB, with a memory limit such as "2GB"."""
        if self.is_grouped:
            raise InvalidArgument(f"the {self.format} layout can only be read into memory: ingest it first")
        if len(self.paths) > 1:
            names = f"{self.paths[0].name}, {self.paths[1].name}, …"
            raise InvalidRatings(f"several files of ratings ({names}): name one of them")
        if self.format == "parquet":
            return parquet_source(self.paths[0], columns=self.options.get("columns"), memory=memory)
        return text_source(self.paths[0], memory=memory, **self.options)


def located(
    source: str | Path,
    *,
    scale: Scale | tuple[float, float] | None = None,
    items: Items | str | Path | None = None,
    **given: Any,
) -> Located:
    """Find ratings; arguments as in `dpmf.ratings.reader.read`."""
    wanted = given.get("format")
    if wanted is not None and wanted not in get_args(Format):
        raise InvalidArgument(f"format={wanted!r} is not known: choose from {', '.join(get_args(Format))}")
    place = _locate(source)
    options = {**place.options, **{name: value for name, value in given.items() if value is not None}}
    missing = options.pop("missing", None)
    layout = options.pop("format", None) or _recognise(place.paths[0])
    return Located(
        place.name,
        place.paths,
        layout,
        place.scale if scale is None else Scale.of(scale),
        missing,
        options,
        items if items is not None else place.items,
        {} if items is not None else place.items_options,
    )


@dataclass(frozen=True)
class _Place:
    """Where the ratings are, and what is declared about them."""

    name: str
    paths: list[Path]
    scale: Scale | None = None
    items: Path | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    items_options: Mapping[str, Any] = field(default_factory=dict)


def _locate(source: str | Path) -> _Place:
    path = Path(source)
    if path.is_dir():
        return _in_folder(path)
    if path.exists():
        return _Place(path.stem, [path])
    if isinstance(source, str) and source in CATALOGUE:
        return _in_catalogue(source)
    raise InvalidArgument(
        f"no data at {source}: it is neither a file, nor a folder, nor a name that `dpmf data list` shows"
    )


def _in_folder(folder: Path) -> _Place:
    paths = next((found for name in _KNOWN_FILES if (found := sorted(folder.glob(name)))), None)
    if paths is None:
        raise InvalidRatings(f"{folder} holds no ratings: one of {', '.join(_KNOWN_FILES)} should be in it")
    facts = read_json(folder / "dataset.json") if (folder / "dataset.json").exists() else {}
    if not isinstance(facts, dict):
        raise InvalidRatings(f'{folder / "dataset.json"} should be an object such as {{"scale": [1, 5]}}')
    items = folder / "items.csv"
    return _Place(
        str(facts.get("name", folder.name)),
        paths,
        _declared_scale(folder, facts.get("scale")),
        items if items.exists() else None,
    )


def _declared_scale(folder: Path, scale: object) -> Scale | None:
    if scale is None:
        return None
    if not (isinstance(scale, list) and all(isinstance(end, int | float) for end in scale)):
        raise InvalidRatings(f"{folder / 'dataset.json'}: scale {scale!r} should be two numbers, such as [1, 5]")
    try:
        return Scale.of(scale)
    except InvalidArgument as error:
        raise InvalidRatings(f"{folder / 'dataset.json'}: {error}") from None


def _in_catalogue(name: str) -> _Place:
    dataset = find(name)
    folder = folder_of(name)
    paths = sorted(folder.glob(dataset.ratings_file))
    if not paths:
        how = f"run `dpmf data fetch {name}`" if dataset.archive is not None else dataset.obtain
        raise InvalidArgument(f"{name} is not on this machine (looked in {folder}): {how}")
    items = None if dataset.items_file is None else folder / dataset.items_file
    return _Place(
        dataset.title, paths, Scale(*dataset.scale), items, dict(dataset.ratings_options), dict(dataset.items_options)
    )


def _recognise(path: Path) -> str:
    """Name the format of a file by its ending, else by its first line."""
    if path.suffix.lower() in (".parquet", ".pq"):
        return "parquet"
    return grouped_format(first_line(path)) or "csv"
