"""What `dpmf data describe` finds out, and the command to run next.

>>> command_of("my ratings.csv", ReadOptions(missing=0.0), None)
"dpmf train 'my ratings.csv' --items-public --missing 0 --epsilon 1 --out release"
"""

from __future__ import annotations

import shlex
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpmf.cli.options import parse_data_options
from dpmf.errors import DpmfError, InvalidArgument
from dpmf.ratings.options import ReadOptions

if TYPE_CHECKING:
    from dpmf.ratings.survey import Survey
    from dpmf.ratings.table import Ratings, Scale


def describe_data(source: str, target: Path | None, given: dict[str, Any]) -> dict[str, Any]:
    """Return facts about DATA: those of the catalogue, and what it holds if it is on this machine."""
    from dpmf.ratings.archive import archive_of
    from dpmf.ratings.catalogue import CATALOGUE
    from dpmf.ratings.location import locate

    path, options = Path(source), parse_data_options(**given)
    if archive_of(path) is not None or path.is_file():
        return _of_file(path, options, target)
    if path.is_dir() and not (path / "dataset.json").exists():  # which would say how they are read
        found = locate(path, options)
        if len(found.paths) == 1 and found.path.is_file():
            return _of_file(found.path, options, target)
    if target is not None:
        raise InvalidArgument(f"--write-dataset is for a file, and {source} is not one: leave it out")
    known = None if path.exists() else CATALOGUE.get(source)
    if known is None:
        return _of_several(source, options)
    facts = {name: getattr(known, name) for name in ("name", "title", "licence", "homepage")}
    facts["address"] = known.archive.url if known.archive else None
    try:
        return facts | _of_several(source, options)
    except DpmfError as error:
        return facts | {"note": str(error)}


def _of_several(source: str, options: ReadOptions, name: str = "") -> dict[str, Any]:
    """Return facts about DATA that is no single file: a folder that says how it is read, or files of a known format.

    Args:
        source: DATA.
        options: how it is read.
        name: of one of its files; by default it is looked up.
    """
    from dpmf.ratings import Ratings
    from dpmf.ratings.location import locate
    from dpmf.ratings.summary import describe
    from dpmf.ratings.survey import usual_scale

    path, ratings = Path(source), Ratings.read(source, **vars(options))
    facts, scale, counts = describe(ratings), None, ratings.scale.counts
    if not ratings.scale.declared and not counts:
        lo, hi = ratings.scale.lo, ratings.scale.hi
        scale = usual_scale(lo, hi)
        facts |= {"values": f"{lo:g} to {hi:g}", "scale": str(scale)}
    if path.exists() and not ratings.catalogue.declared:
        options, listed = _with_items(options, path / (name or locate(path, options).paths[0].name), ratings)
        facts |= listed
    items = "--items-public" if not ratings.catalogue.declared else ""
    return facts | {"command": command_of(source, options, scale, items=items, counts=counts)}


def _of_file(path: Path, options: ReadOptions, target: Path | None) -> dict[str, Any]:
    from dpmf.ratings.formats.archived import unpacked
    from dpmf.ratings.formats.excel import as_text
    from dpmf.ratings.location import locate
    from dpmf.ratings.proposal import find_test, write_dataset
    from dpmf.ratings.summary import describe
    from dpmf.ratings.survey import survey

    with ExitStack() as stack:
        found = locate(path, options)
        if found.format.name == "zip":
            found = stack.enter_context(unpacked(found))
        if len(found.paths) > 1:
            return _of_several(str(path), options, found.paths[0].name)
        if found.format.name == "excel":
            text = stack.enter_context(as_text(found))
            seen = survey(text.path, replace(options, format=None, delimiter=text.options.delimiter))
            seen = replace(seen, separator=None, options=replace(seen.options, delimiter=None, format=options.format))
        else:
            seen = survey(found.path, options)
        inner = found.path
    reading, listed = _with_items(seen.options, path, seen.ratings, inner.name)
    usual = Path(inner.name.lower().removesuffix(".gz")).suffix not in (".dat", ".data")
    understood = replace(reading, header=None if reading.header == usual else reading.header)
    facts = _facts(seen, reading, options.scale)
    facts |= {name: value for name, value in describe(seen.ratings).items() if name != "scale"} | listed
    test = find_test(path)
    facts["test_file"] = None if test is None else str(test)
    command = command_of(
        str(path), understood, seen.scale, counts=seen.scale is None, unrated=reading.unrated, test=test
    )
    if target is not None:
        write_dataset(target, path, seen, reading)
        items = "--items-public" if reading.items is None else ""
        command = command_of(str(target), ReadOptions(), None, items=items, counts=seen.scale is None)
    return facts | {"command": command}


def _with_items(
    options: ReadOptions, path: Path, ratings: Ratings, name: str | None = None
) -> tuple[ReadOptions, dict[str, Any]]:
    """Return options with the file of items that is published beside ratings, and what there is to say about it."""
    from dpmf.ratings.proposal import find_items

    if options.items is None and (beside := find_items(path, name or path.name, ratings)) is not None:
        options = replace(options, items=beside.path, item_columns=options.item_columns or beside.columns)
        return options, {
            "items_file": str(beside.path),
            "catalogue": f"a file with {beside.share:.0%} of the rated items",
        }
    return options, {} if options.items is None else {"items_file": str(options.items)}


def _facts(seen: Survey, reading: ReadOptions, declared: Scale | None) -> dict[str, Any]:
    lo, hi = seen.seen
    fits = None if seen.fits is None else f"yes, on {declared}"
    if seen.fits is False:
        fits = f"no: there are values off the declared {declared}; say --missing for what means no rating"
    return {
        "separator": "space" if seen.separator == " " else seen.separator and repr(seen.separator).strip("'"),
        "header": reading.header,
        "quotes": None if reading.quotes is None else "enclose fields" if reading.quotes else "are text",
        "encoding": None if seen.separator is None else reading.encoding or "utf-8",
        "layout": reading.layout,
        "columns": None
        if seen.columns is None
        else ", ".join(f"{role}: {name}" for role, name in seen.columns.items()),
        "leading": reading.leading,
        "values": f"{lo:g} to {hi:g}",
        "scale": "counts" if seen.scale is None else str(seen.scale),
        "scale_fits": fits,
        "missing": reading.missing,
        "rows": seen.rows,
        "duplicates": seen.duplicates,
        "zeros": seen.zeros,
        "sample": "; ".join(f"user {user}, item {item}: {value:g}" for user, item, value in seen.sample),
    }


def command_of(
    source: str,
    options: ReadOptions,
    scale: Scale | None,
    *,
    items: str = "--items-public",
    counts: bool = False,
    unrated: bool = False,
    test: Path | None = None,
) -> str:
    """Return the command that trains on DATA with these options, as it is typed."""
    words = ["dpmf", "train", source]
    if scale is not None and not counts:
        words += ["--scale", str(scale)]
    words += ["--items", str(options.items)] if options.items is not None else [items] if items else []
    words += ["--item-features", str(options.item_features)] if options.item_features is not None else []
    for name in ("delimiter", "encoding", "escape", "bad_rows", "layout", "leading", "missing", "format", "duplicates"):
        if (value := getattr(options, name)) is not None:
            text = f"{value:g}" if isinstance(value, float) else str(value).replace("\t", "\\t")
            words += [f"--{name.replace('_', '-')}", text]
    for name in ("columns", "item_columns"):
        if (places := getattr(options, name)) is not None:
            pairs = ",".join(f"{role}={'' if place is None else place}" for role, place in places.items())
            words += [f"--{name.replace('_', '-')}", pairs]
    for name in ("item_delimiter", "item_encoding"):
        if (value := getattr(options, name)) is not None:
            words += [f"--{name.replace('_', '-')}", value.replace("\t", "\\t")]
    if options.header is not None:
        words.append("--header" if options.header else "--no-header")
    if options.quotes is not None:
        words.append("--quotes" if options.quotes else "--no-quotes")
    words += ["--test", str(test)] if test is not None else []
    if counts or unrated:
        words += ["--for", "ranking", "--feedback", "implicit"]
    return " ".join(shlex.quote(word) for word in [*words, "--epsilon", "1", "--out", "release"])
