"""The release that is being served, and the next one as soon as it is there.

A release is replaced as a whole by a rename, so whoever looks finds the old one or the new one. It is read in the
background and taken over between two requests; whatever is answered at that moment is answered from the old one. One
that is damaged, or that may not be served, is left alone, and the old one stays.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

from dpmf.errors import DpmfError, InvalidArgument
from dpmf.model import Person, Recommendation, Release
from dpmf.model.batch import recommend_many
from dpmf.model.release_json import FILES
from dpmf.serve.content import Content, content_of
from dpmf.serve.site import read_site

logger = logging.getLogger(__name__)
_EVERY = 1.0  # seconds between two looks
Look: TypeAlias = tuple[tuple[int, int, int] | None, ...]


@dataclass(frozen=True, eq=False)
class Served:
    """A release, and the files of its page.

    Attributes:
        release: what is answered from.
        files: what is sent, by path.
        folded_titles: titles of all items, as they are searched.
    """

    release: Release
    files: dict[str, Content]
    folded_titles: tuple[str, ...]


class Live:
    """What is served at the moment.

    Args:
        folder: of the release.
        check: raises `DpmfError` if a release may not be served.

    Raises:
        DpmfError: there is no release there that could be served.
    """

    def __init__(self, folder: Path, check: Callable[[Release], None]) -> None:
        self._folder, self._check = folder, check
        self._seen = self._look()
        self.now = self._read()

    async def watch(self) -> None:
        """Take over a new release whenever there is one, until cancelled."""
        refused: Look | None = None  # what was refused, so that it is said once
        while True:
            await asyncio.sleep(_EVERY)
            found = self._look()
            if found == self._seen:
                continue
            try:
                coming = await asyncio.to_thread(self._read)
                there, here = coming.release, self.now.release
                if (there.scale, there.feedback) != (here.scale, here.feedback):
                    raise InvalidArgument("it has another scale, or another kind of feedback: start the service anew")
                self.now, self._seen = coming, found
            except (DpmfError, OSError) as error:  # it may be on its way still: look again
                if found != refused:
                    refused = found
                    logger.warning("the release in %s is not taken over, the old one stays: %s", self._folder, error)
            else:
                logger.info("a new release is served")

    def _look(self) -> Look:
        """Return what tells one release from another at a glance: both files may come one after the other."""
        return tuple(_stat_of(self._folder / name) for name in FILES)

    def _read(self) -> Served:
        site = read_site(self._folder)
        release = site.release
        self._check(release)
        if len(release.items):  # so that the first request does not wait for compilers
            first = release.items.ids[0]
            recommended(release.fold_in({first: release.scale.middle}), 1)
        return Served(release, content_of(site), tuple(map(str.casefold, release.items.titles)))


def _stat_of(path: Path) -> tuple[int, int, int] | None:
    with contextlib.suppress(OSError):
        found = path.stat()
        return found.st_ino, found.st_size, found.st_mtime_ns
    return None


def recommended(person: Person, k: int) -> list[Recommendation]:
    """Return the k best items of a person, by one thread and without a library that starts others."""
    seen = np.array([0, len(person.rated)])
    biases = np.array([person.bias], np.float32)
    return recommend_many(person.release, person.factors[None], biases, seen, person.rated, k, n_threads=1)[0]
