"""What the kinds of `dpmf plot` share: options, what a folder holds, and where the picture goes.

>>> parse_size("6x4.5")
(6.0, 4.5)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpmf.cli.groups import all_of
from dpmf.cli.output import METRICS_NOTE, json_option, print_json, say
from dpmf.errors import InvalidArgument

if TYPE_CHECKING:
    from dpmf.compare.results import Row
    from dpmf.model import Model, Release

_LEAST_INCHES, _MOST_INCHES = 3, 50  # in less, legends do not leave room for anything
_HOLDS = {"runs.csv": "results", "model.json": "model", "release.json": "release"}
_MADE_BY = {
    "results": "results of `dpmf compare`",
    "model": "models (`dpmf train --model`)",
    "release": "releases (`dpmf train --out`)",
}
picture_options = all_of(
    [
        click.option(
            "--out",
            type=click.Path(path_type=Path),
            required=True,
            metavar="FILE",
            help="Where to save the picture: .png, .svg or .pdf.",
        ),
        click.option("--title", metavar="TEXT", help="Title of the picture."),
        click.option("--size", metavar="WxH", help="Width and height in inches, such as 7x5."),
        json_option,
    ]
)


def check_picture(out: Path, size: str | None) -> tuple[float, float] | None:
    """Refuse a file that cannot be written, before anything is read; return the size if one is asked for."""
    from dpmf.compare.plots.figure import format_of

    format_of(out)
    if not out.parent.is_dir():
        raise InvalidArgument(f"--out {out}: there is no folder {out.parent}, make it first")
    if out.is_dir():
        raise InvalidArgument(f"--out {out} is a folder: name a file")
    return None if size is None else parse_size(size)


def parse_size(text: str) -> tuple[float, float]:
    """Read "7x5" as inches."""
    match = re.fullmatch(r"(\d{1,3}(?:\.\d{1,3})?)\s*[x×]\s*(\d{1,3}(?:\.\d{1,3})?)", text.strip().lower())
    if match is None or not all(_LEAST_INCHES <= float(side) <= _MOST_INCHES for side in match.groups()):
        raise InvalidArgument(
            f"--size {text!r} should be width x height in inches, from {_LEAST_INCHES} to {_MOST_INCHES}: 7x5"
        )
    return float(match[1]), float(match[2])


def finish(
    picture: Any, drawn: dict[str, Any], *, out: Path, title: str | None, as_json: bool, note: str = METRICS_NOTE
) -> None:
    """Save the picture and say so, or print what was drawn."""
    from dpmf.compare.plots.figure import save
    from dpmf.privacy.events import check_text

    if title:
        check_text("--title", title)
        picture.suptitle(title, parse_math=False)
    save(picture, out)
    if as_json:
        print_json({**drawn, "out": str(out), "note": note or None})
        return
    say(f"Picture saved in {out}")
    if note:
        say(note, "dim")


def kind_of(source: Path) -> str:
    """Return what a folder holds: "results", "model" or "release"."""
    if not source.exists():
        raise InvalidArgument(f"there is nothing at {source}")
    for name, kind in _HOLDS.items():
        if (source / name).is_file():
            return kind
    raise InvalidArgument(f"{source} is not a folder with {', '.join(list(_HOLDS)[:-1])} or release.json")


def check_kinds(sources: Sequence[Path], allowed: Iterable[str]) -> str:
    """Return the one kind of all sources, or refuse them."""
    allowed = tuple(allowed)
    kinds = {source: kind_of(source) for source in sources}
    for source, kind in kinds.items():
        if kind not in allowed:
            takes = " or ".join(_MADE_BY[one] for one in allowed)
            raise InvalidArgument(f"{source} is a folder of {_MADE_BY[kind]}, and this draws {takes}")
    first = kinds[sources[0]]
    if len(sources) > 1 and "results" in kinds.values():
        raise InvalidArgument("results are drawn alone: name one folder of `dpmf compare`, or leave it out")
    return first


def rows_of(folder: Path) -> list[Row]:
    """Return the rows that `dpmf compare` left in a folder."""
    from dpmf.compare.results import Table

    rows = Table(folder / "runs.csv").rows()
    if not rows:
        raise InvalidArgument(f"{folder} holds no result yet: let `dpmf compare` finish a run first")
    return rows


def releases_of(sources: Sequence[Path]) -> dict[str, Release]:
    """Return releases by name, those inside models too."""
    from dpmf.model import Release

    return {
        _name(source): Release.load(source / "release" if kind_of(source) == "model" else source) for source in sources
    }


def models_of(sources: Sequence[Path]) -> dict[str, Model]:
    """Return models by name."""
    from dpmf.model import Model

    return {_name(source): Model.load(source) for source in sources}


def _name(source: Path) -> str:
    """Return what a legend calls a folder: matplotlib would leave out what begins with an underscore."""
    return f"./{source}" if str(source).startswith("_") else str(source)
