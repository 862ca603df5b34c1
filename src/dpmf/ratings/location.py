"""Where ratings are, in which format, and what is declared about them.

>>> import tempfile
>>> path = Path(tempfile.mkdtemp()) / "u.data"
>>> _ = path.write_text("196\\t242\\t3\\t881250949\\n")
>>> locate(path).format.name
'csv'
"""

from __future__ import annotations

import glob
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dpmf.errors import InvalidArgument, InvalidRatings
from dpmf.files import read_json
from dpmf.ratings.archive import archive_of
from dpmf.ratings.assembly import assemble
from dpmf.ratings.catalogue import CATALOGUE, find, folder_of
from dpmf.ratings.feature_files import with_features
from dpmf.ratings.formats import FALLBACK, FORMAT_NAMES, Format, Sizes, file_formats, format_named, recognise
from dpmf.ratings.formats.columns import Columns
from dpmf.ratings.items import Items
from dpmf.ratings.options import FILE_OPTIONS, SEEN, TEXT_OPTIONS, ReadOptions, check_users_about
from dpmf.ratings.store.columns import Source
from dpmf.ratings.table import Ratings, Scale

_BESIDE = ("items.csv", "dataset.json")
_MOST_NAMED = 6
READING = ("duplicates", *FILE_OPTIONS)
"""What `dataset.json` may say about how ratings are read."""


@dataclass(frozen=True)
class Location:
    """Ratings that were found but not yet read.

    Attributes:
        name: what to call them.
        paths: the files, or the folder of a block store; none if the ratings are generated.
        format: their format.
        options: as given, completed by what is declared beside the ratings.
        items_options: how to read the file of items that `options` names.
    """

    name: str
    paths: tuple[Path, ...]
    format: Format
    options: ReadOptions
    items_options: Mapping[str, Any]

    @property
    def path(self) -> Path:
        """The only file.

        Raises:
            InvalidRatings: there are several.
        """
        if len(self.paths) > 1:
            names = f"{self.paths[0].name}, {self.paths[1].name}, …"
            raise InvalidRatings(f"several files of ratings ({names}): name one of them")
        return self.paths[0]

    def read_items(self) -> Items | None:
        """Return the public catalogue of items, or None if there is none."""
        items, features = self.options.items, self.options.item_features
        if items is None:
            if features is not None:
                raise InvalidArgument(
                    f"item_features={str(features)!r} describes a public list of items: name that with items=…"
                )
            return None
        listed = items if isinstance(items, Items) else Items.read(items, **self.items_options)
        return listed if features is None else with_features(listed, features)

    def read(self) -> Ratings:
        """Read the ratings into memory."""
        ratings, about = self.format.read(self), self.options.users_about
        return ratings if about is None else replace(ratings, users_about=about)

    def sizes(self) -> Sizes | None:
        """Estimate the sizes without reading the ratings; None if they are not known beforehand."""
        return None if self.format.sizes is None else self.format.sizes(self)

    def stream(self, *, memory: int, scratch: Path) -> AbstractContextManager[Source]:
        """Open the ratings as a source of pieces.

        Args:
            memory: bytes that may be used, roughly.
            scratch: a folder for temporary files.

        Raises:
            InvalidArgument: the format can only be read into memory.
        """
        if self.format.stream is None:
            raise InvalidArgument(f"the {self.format.name} format can only be read into memory: ingest it first")
        return self.format.stream(self, memory, scratch)

    def assemble(self, columns: Columns) -> Ratings:
        """Check and order the columns that were read here, as the options say."""
        return assemble(
            columns,
            scale=self.options.scale,
            items=self.read_items(),
            duplicates=self.options.duplicates,
            missing=self.options.missing,
            name=self.name,
        )


def locate(source: str | Path, options: ReadOptions | None = None) -> Location:
    """Find ratings: a file, a folder, or a name of the catalogue; see `Ratings.read`."""
    options = options or ReadOptions()
    if options.format is not None and options.format not in FORMAT_NAMES:
        raise InvalidArgument(f"format={options.format!r} is not known: choose from {', '.join(FORMAT_NAMES)}")
    place = _find(source)
    beside = dict(place.declared)
    if options.items is not None:  # features beside the ratings are of the list beside them
        beside.pop("item_features", None)
    completed = options.completed(beside)
    if place.format is not None:
        found = place.format
    elif completed.format is not None:
        found = format_named(completed.format)
    else:
        found = recognise(place.paths[0]) or format_named(FALLBACK)
    refused = [one for one in TEXT_OPTIONS if one not in found.text_options]
    if found.name in FORMAT_NAMES and (name := completed.first_given(refused)):
        raise InvalidArgument(f"{name} is for delimited text, and {source} is of the {found.name} format: leave it out")
    described = completed.of_items()
    if described and (completed.items is None or isinstance(completed.items, Items)):
        raise InvalidArgument(f"item_{next(iter(described))} describes a file of items: name it with items=…")
    return Location(
        name=place.name,
        paths=tuple(place.paths),
        format=found,
        options=completed,
        items_options={**(place.items_options if options.items is None else {}), **described},
    )


@dataclass(frozen=True)
class _Place:
    """The files of a source, with what is declared beside them: values of `ReadOptions`, by name."""

    name: str
    paths: list[Path]
    declared: Mapping[str, Any] = field(default_factory=dict)
    items_options: Mapping[str, Any] = field(default_factory=dict)
    format: Format | None = None  # if the place itself decides it


def _find(source: str | Path) -> _Place:
    path = Path(source)
    if path.is_dir():
        whole = recognise(path)
        return _in_folder(path) if whole is None else _Place(path.name, [path], format=whole)
    if (inside := archive_of(path)) is not None:
        return _Place(Path(inside[1] or inside[0].name).stem, [path], format=format_named("zip"))
    if path.exists():
        return _Place(path.stem, [path])
    if str(source) in CATALOGUE:
        return _in_catalogue(str(source))
    found = glob.glob(str(source)) if glob.has_magic(str(source)) else []  # noqa: PTH207  (patterns may be absolute)
    if paths := sorted(map(Path, found)):
        return _Place(paths[0].parent.name, _of_parquet(paths, source), format=format_named("parquet"))
    raise InvalidArgument(
        f"no data at {source}: it is neither a file, nor a folder, nor a name that `dpmf data list` shows"
    )


def _in_folder(folder: Path) -> _Place:
    facts = read_json(folder / "dataset.json") if (folder / "dataset.json").exists() else {}
    if not isinstance(facts, dict):
        raise InvalidRatings(f'{folder / "dataset.json"} should be an object such as {{"scale": [1, 5]}}')
    if facts.get("confirmed", True) is not True:
        raise InvalidRatings(
            f"{folder / 'dataset.json'} is a proposal: read it and items.csv, and set confirmed to true if scale and "
            "items are public facts, which is an assumption of the guarantee"
        )
    if "file" in facts:
        elsewhere = _find(folder / str(facts["file"]))
        paths, kind = elsewhere.paths, elsewhere.format
    else:
        patterns = [pattern for one in file_formats() for pattern in one.file_names]
        paths = next((found for pattern in patterns if (found := sorted(folder.glob(pattern)))), [])
        kind = None
        if not paths and (paths := sorted(folder.glob("*.parquet"))):
            kind = format_named("parquet")
        paths = paths or _only_file(folder)
    declared = {
        **_declared_reading(folder, facts.get("reading", {})),
        "scale": _declared_scale(folder, facts.get("scale")),
        "items": _declared_items(folder, facts.get("items")),
        "item_features": _declared_features(folder, facts.get("item_features")),
        "users_about": _declared_users(folder, facts.get("users_about")),
    }
    return _Place(str(facts.get("name", folder.name)), paths, declared, {"further": True}, format=kind)


def _of_parquet(paths: list[Path], source: str | Path) -> list[Path]:
    """Return paths of Parquet files, which may be several; refuse others."""
    other = next((one for one in paths if not format_named("parquet").recognises(one)), None)
    if other is not None:
        raise InvalidArgument(f"{source} matches {other}: several files of ratings have to be Parquet files")
    return paths


def _only_file(folder: Path) -> list[Path]:
    """Return the only file in a folder, whatever it is called."""
    files = sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
    files = [path for path in files if path.name not in _BESIDE]
    if len(files) == 1:
        return files
    if not files:
        raise InvalidRatings(f"{folder} holds no ratings: name the file or the folder that does")
    there = ", ".join(path.name for path in files[:_MOST_NAMED]) + (", …" if len(files) > _MOST_NAMED else "")
    likely = next((path for path in files if "rating" in path.name.lower()), files[0])
    raise InvalidRatings(
        f"none of the files in {folder} is known by its name: it has {there}; name one, as in {likely}"
    )


def _declared_reading(folder: Path, reading: object) -> Mapping[str, Any]:
    """Return what is declared about how ratings are read, each of its type."""
    types: Mapping[str, Any] = {
        **{"missing": int | float, "header": bool, "leading": int, "columns": dict, "quotes": bool}
    }
    if not isinstance(reading, dict) or set(reading) - set(READING):
        raise InvalidRatings(f"{folder / 'dataset.json'}: reading should be an object of {', '.join(READING)}")
    wrong = next((name for name, value in reading.items() if not isinstance(value, types.get(name, str))), None)
    if wrong is not None:
        raise InvalidRatings(f"{folder / 'dataset.json'}: {wrong} {reading[wrong]!r} is not of the right type")
    return reading


def _declared_items(folder: Path, source: object) -> Items | Path | None:
    """Return the list beside the ratings, if there is one; one that was seen in the ratings is not declared."""
    path = folder / "items.csv"
    if source not in (None, SEEN):
        raise InvalidRatings(f"{folder / 'dataset.json'}: items {source!r} should be {SEEN!r}, or left out")
    if not path.exists():
        return None
    if source is None:
        return path
    items = Items.read(path)
    return Items(items.ids, items.titles, items.genres, declared=False)


def _declared_features(folder: Path, name: object) -> Path | None:
    """Return the file of item features beside the ratings, if one is named."""
    if name is None:
        return None
    if not isinstance(name, str) or not (folder / name).is_file():
        raise InvalidRatings(f"{folder / 'dataset.json'}: item_features {name!r} should name a file beside it")
    return folder / name


def _declared_scale(folder: Path, scale: object) -> Scale | None:
    if scale is None:
        return None
    if not (isinstance(scale, list) and all(isinstance(end, int | float) for end in scale)):
        raise InvalidRatings(f"{folder / 'dataset.json'}: scale {scale!r} should be two numbers, such as [1, 5]")
    try:
        return Scale.of(scale)
    except InvalidArgument as error:
        raise InvalidRatings(f"{folder / 'dataset.json'}: {error}") from None


def _declared_users(folder: Path, about: Any) -> int | None:
    try:
        check_users_about(about)
    except InvalidArgument as error:
        raise InvalidRatings(f"{folder / 'dataset.json'}: {error}") from None
    return None if about is None else int(about)


def _in_catalogue(name: str) -> _Place:
    dataset = find(name)
    if not dataset.ratings_file:
        return _Place(name, [], format=format_named(name))
    folder = folder_of(name)
    paths = sorted(folder.glob(dataset.ratings_file))
    if not paths:
        how = f"run `dpmf data fetch {name}`" if dataset.archive is not None else dataset.obtain
        raise InvalidArgument(f"{name} is not on this machine (looked in {folder}): {how}")
    items = None if dataset.items_file is None else folder / dataset.items_file
    declared = {**dataset.ratings_options, "scale": Scale(*dataset.scale), "items": items}
    return _Place(dataset.title, paths, declared, dataset.items_options)
