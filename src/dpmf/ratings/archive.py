"""Files inside zip archives, named like those in folders: `ml-latest-small.zip/movies.csv`.

>>> import tempfile
>>> path = Path(tempfile.mkdtemp()) / "ml.zip"
>>> with zipfile.ZipFile(path, "w") as archive:
...     archive.writestr("ml-small/movies.csv", "movieId,title\\n")
>>> read_member(path / "movies.csv")
b'movieId,title\\n'
"""

from __future__ import annotations

import contextlib
import shutil
import zipfile
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from dpmf.errors import InvalidArgument

_MOST_NAMED = 6


def archive_of(path: Path) -> tuple[Path, str] | None:
    """Return a zip archive and what is named in it, "" for nothing; None if a path leads into none."""
    for place in (path, *path.parents):
        if place.suffix.lower() == ".zip" and place.is_file():
            return place, path.relative_to(place).as_posix().removeprefix(".")
    return None


def read_member(path: Path) -> bytes:
    """Return the content of a file inside an archive."""
    place, name = archive_of(path) or (path, "")
    with _opened(place) as archive:
        return archive.read(_member(place, archive, name))


def members(place: Path, name: str, patterns: Sequence[str], beside: Sequence[str]) -> list[zipfile.ZipInfo]:
    """Return the files that are meant: the one that is named, or those of the first pattern that fits any.

    Args:
        place: the archive.
        name: what is named in it, or "".
        patterns: of names of files, the best first; the only file of an archive needs none.
        beside: names of files in the same folder that go with them.
    """
    with _opened(place) as archive:
        if name:
            return [_member(place, archive, name)]
        files = _files(archive)
        for pattern in patterns:
            if found := [one for one in files if fnmatchcase(PurePosixPath(one.filename).name, pattern)]:
                folder = PurePosixPath(found[0].filename).parent
                found = [one for one in found if PurePosixPath(one.filename).parent == folder]
                return found + [one for one in files if PurePosixPath(one.filename) in [folder / two for two in beside]]
        return files if len(files) == 1 else [_member(place, archive, name)]


def names_beside(place: Path, name: str, wanted: Sequence[str]) -> list[str]:
    """Return which files of these names are in the folder of another file of an archive, or with "" anywhere in it."""
    with _opened(place) as archive:
        files = [PurePosixPath(one.filename) for one in _files(archive)]
        folders = {file.parent for file in files if not name or f"/{file}".endswith(f"/{name}")}
        return [str(file) for one in wanted for file in files if file.name == one and file.parent in folders]


def extract(place: Path, chosen: Sequence[zipfile.ZipInfo], folder: Path) -> list[Path]:
    """Write files of an archive to a folder, without the folders they are in, and return where they are."""
    paths = []
    with _opened(place) as archive:
        for one in chosen:
            paths.append(folder / PurePosixPath(one.filename).name)
            with archive.open(one) as packed, paths[-1].open("wb") as file:
                shutil.copyfileobj(packed, file, 1 << 20)
    return paths


def _files(archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    hidden = ("__MACOSX/",)  # what a Mac adds to every archive
    return [one for one in archive.infolist() if not one.is_dir() and not one.filename.startswith(hidden)]


def _member(place: Path, archive: zipfile.ZipFile, name: str) -> zipfile.ZipInfo:
    files = _files(archive)
    found = [one for one in files if name and f"/{one.filename}".endswith(f"/{name}")]
    if len(found) == 1:
        return found[0]
    what = "several" if found else "no"
    there = ", ".join(one.filename for one in (found or files)[:_MOST_NAMED])
    more = ", …" if len(found or files) > _MOST_NAMED else ""
    likely = [one.filename for one in files if "rating" in one.filename.lower()] + [one.filename for one in files[:1]]
    example = place / likely[0] if likely else place
    wanted = f"{what} files called {name}" if name else "several files"
    raise InvalidArgument(f"{place} has {wanted}: it has {there}{more}; name one, as in {example}")


@contextlib.contextmanager
def _opened(place: Path) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(place) as archive:
            yield archive
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:  # damaged, odd, encrypted
        raise InvalidArgument(f"cannot read {place}: {error}") from None
