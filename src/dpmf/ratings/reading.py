"""One door for all sources: a catalogue name, a file of any known layout, or a folder.

>>> import tempfile
>>> path = Path(tempfile.mkdtemp()) / "u.data"
>>> _ = path.write_text("196\\t242\\t3\\t881250949\\n186\\t302\\t3\\t891717742\\n")
>>> read(path, scale=(1, 5))
Ratings(2 ratings, 2 users, 2 items, scale 1:5)
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from dpmf.errors import InvalidArgument, InvalidRatings
from dpmf.files import read_json
from dpmf.ratings.assembling import assemble
from dpmf.ratings.catalogue import CATALOGUE, find, folder_of
from dpmf.ratings.collecting import collect
from dpmf.ratings.columns import Columns
from dpmf.ratings.grouped import grouped_format, read_grouped
from dpmf.ratings.items import Items
from dpmf.ratings.scan import Source, first_line, parquet_source, text_source
from dpmf.ratings.table import Ratings, Scale

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


def read(
    source: str | Path,
    *,
    scale: Scale | tuple[float, float] | None = None,
    items: Items | str | Path | None = None,
    duplicates: str = "last",
    missing: float | None = None,
    memory: str | None = None,
    format: str | None = None,  # noqa: A002  (the word users know)
    delimiter: str | None = None,
    header: bool | None = None,
    columns: Mapping[str, str | int] | None = None,
) -> Ratings:
    """Read ratings.

    Args:
        source: a catalogue name such as "movielens-1m" or "synthetic"; a file (CSV, TSV, Parquet, `.dat`, `u.data`,
            Netflix Prize or Yahoo Music layout); or a folder that holds one, perhaps with `items.csv` (the public
            catalogue) and `dataset.json` (public facts: name, scale).
        scale: lowest and highest possible rating, if the source does not declare them.
        items: the public catalogue or its file, if the source does not come with one.
        duplicates, missing: see `Ratings.of`.
        memory: how much DuckDB may use before it spills to the disk, such as "2GB".
        format: "csv" for any delimited text, "parquet", "netflix" or "yahoo"; found by looking if not given.
        delimiter, header, columns: see `dpmf.ratings.scan.text_source`.
    """
    if format is not None and format not in get_args(Format):
        raise InvalidArgument(f"format={format!r} is not known: choose from {', '.join(get_args(Format))}")
    if str(source) == "synthetic" and not Path(source).exists():
        if any(option is not None for option in (missing, format, delimiter, header, columns)):
            raise InvalidArgument("synthetic ratings are made, not read: leave out options about files")
        return _synthetic(scale, items)
    found = _locate(source)
    given = {"format": format, "delimiter": delimiter, "header": header, "columns": columns, "missing": missing}
    options = {**found.options, **{name: value for name, value in given.items() if value is not None}}
    missing = options.pop("missing", None)
    catalogue = items if isinstance(items, Items) else Items.read(items) if items is not None else found.catalogue()
    return assemble(
        _columns(found.paths, memory=memory, **options),
        scale=scale if scale is not None else found.scale,
        catalogue=catalogue,
        duplicates=duplicates,
        missing=missing,
        name=found.name,
    )


def _synthetic(scale: Scale | tuple[float, float] | None, items: Items | str | Path | None) -> Ratings:
    """Return the built-in set, on another scale or for another catalogue if that is asked for."""
    from dpmf.ratings.synthetic import make

    ratings = make()
    if scale is None and items is None:
        return ratings
    catalogue = items if isinstance(items, Items) or items is None else Items.read(items)
    users, names = ratings.user_ids.array[ratings.users], ratings.catalogue.ids.array[ratings.items]
    columns = Columns.of_raw(users, names, ratings.values, None)
    return assemble(columns, scale=scale or ratings.scale, catalogue=catalogue or ratings.catalogue, name=ratings.name)


@dataclass(frozen=True)
class _Found:
    """Where the ratings are, and what is declared about them."""

    name: str
    paths: list[Path]
    scale: Scale | None = None
    items: Path | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    items_options: Mapping[str, Any] = field(default_factory=dict)

    def catalogue(self) -> Items | None:
        return Items.read(self.items, **self.items_options) if self.items is not None else None


def _locate(source: str | Path) -> _Found:
    path = Path(source)
    if path.is_dir():
        return _in_folder(path)
    if path.exists():
        return _Found(path.stem, [path])
    if isinstance(source, str) and source in CATALOGUE:
        return _in_catalogue(source)
    raise InvalidArgument(
        f"no data at {source}: it is neither a file, nor a folder, nor a name that `dpmf data list` shows"
    )


def _in_folder(folder: Path) -> _Found:
    paths = next((found for name in _KNOWN_FILES if (found := sorted(folder.glob(name)))), None)
    if paths is None:
        raise InvalidRatings(f"{folder} holds no ratings: one of {', '.join(_KNOWN_FILES)} should be in it")
    facts = read_json(folder / "dataset.json") if (folder / "dataset.json").exists() else {}
    if not isinstance(facts, dict):
        raise InvalidRatings(f'{folder / "dataset.json"} should be an object such as {{"scale": [1, 5]}}')
    items = folder / "items.csv"
    return _Found(
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


def _in_catalogue(name: str) -> _Found:
    dataset = find(name)
    folder = folder_of(name)
    paths = sorted(folder.glob(dataset.ratings_file))
    if not paths:
        how = f"run `dpmf data fetch {name}`" if dataset.archive is not None else dataset.obtain
        raise InvalidArgument(f"{name} is not on this machine (looked in {folder}): {how}")
    items = None if dataset.items_file is None else folder / dataset.items_file
    return _Found(
        dataset.title, paths, Scale(*dataset.scale), items, dict(dataset.ratings_options), dict(dataset.items_options)
    )


def _columns(paths: list[Path], *, format: str | None = None, memory: str | None = None, **options: Any) -> Columns:  # noqa: A002
    format = format or _recognise(paths[0])  # noqa: A001
    if format in ("netflix", "yahoo"):
        return read_grouped(paths, format)
    with _source(paths, format, memory, options) as source:
        return collect(source)


def _source(
    paths: list[Path], layout: str, memory: str | None, options: dict[str, Any]
) -> AbstractContextManager[Source]:
    if len(paths) > 1:
        raise InvalidRatings(f"several files of ratings ({paths[0].name}, {paths[1].name}, …): name one of them")
    if layout == "parquet":
        return parquet_source(paths[0], columns=options.get("columns"), memory=memory)
    return text_source(paths[0], memory=memory, **options)


def _recognise(path: Path) -> str:
    """Name the format of a file by its ending, else by its first line."""
    if path.suffix.lower() in (".parquet", ".pq"):
        return "parquet"
    return grouped_format(first_line(path)) or "csv"
