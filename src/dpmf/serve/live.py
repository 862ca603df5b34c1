"""The release that is being served, and its successor as soon as there is one.

A release is replaced as a whole by a rename, so a reader finds the old one or the new one. The new one is read in the
background and replaces the old one between two requests; requests in progress are answered from the old one. A release
that is damaged, or that may not be served, is ignored, and the old one stays.
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
from dpmf.model.selection import NO_FILTERS, Filters, find_filters
from dpmf.ratings import Scale
from dpmf.serve.content import Content, content_of
from dpmf.serve.site import read_site

logger = logging.getLogger(__name__)
_INTERVAL = 1.0  # seconds between two checks for a new release
Fingerprint: TypeAlias = tuple[tuple[int, int, int] | None, ...]


@dataclass(frozen=True, eq=False)
class Served:
    """A release, prepared to be served.

    Attributes:
        release: answers come from it.
        files: path → file, of the page and the release.
        folded_titles: titles of all items, case-folded for the search.
    """

    release: Release
    files: dict[str, Content]
    folded_titles: tuple[str, ...]


class Live:
    """The current release, replaced by a newer one while requests go on.

    Args:
        folder: the release's folder.
        check: raises `DpmfError` if a release may not be served.
        agreement: the file of an agreement that visitors can join; None for none.

    Raises:
        DpmfError: the folder holds no release that may be served.
    """

    def __init__(self, folder: Path, check: Callable[[Release], None], agreement: Path | None = None) -> None:
        self._folder, self._check, self._agreement = folder, check, agreement
        self._seen = self._fingerprint()
        self.now = self._read()

    async def watch(self) -> None:
        """Switch to a new release whenever there is one, until cancelled."""
        refused: Fingerprint | None = None  # so that each refusal is logged once
        while True:
            await asyncio.sleep(_INTERVAL)
            found = self._fingerprint()
            if found == self._seen:
                continue
            try:
                coming = await asyncio.to_thread(self._read)
                there, here = coming.release, self.now.release
                if _kind(there) != _kind(here):
                    raise InvalidArgument("it has another scale or another kind of feedback: restart the service")
                self.now, self._seen = coming, found
            except (DpmfError, OSError) as error:  # it may still be arriving: try again
                if found != refused:
                    refused = found
                    logger.warning("the release in %s is ignored, the old one stays: %s", self._folder, error)
            else:
                logger.info("serving a new release")

    def _fingerprint(self) -> Fingerprint:
        """Return what changes with either file, without reading them: they may arrive one after the other."""
        return tuple(_stat_of(self._folder / name) for name in FILES)

    def _read(self) -> Served:
        site = read_site(self._folder, self._agreement)
        release = site.release
        self._check(release)
        if len(release.items):  # compile the kernels now, not during the first request
            somebody = release.fold_in({release.items.ids[0]: release.scale.middle})
            recommend(somebody, 1)
            if release.items.genre_table.numbers:
                recommend(somebody, 1, find_filters(release.items, most_per_genre=1))
        return Served(release, content_of(site), tuple(map(str.casefold, release.items.titles)))


def _stat_of(path: Path) -> tuple[int, int, int] | None:
    with contextlib.suppress(OSError):
        found = path.stat()
        return found.st_ino, found.st_size, found.st_mtime_ns
    return None


def recommend(person: Person, k: int, filters: Filters = NO_FILTERS) -> list[Recommendation]:
    """Return the k best items of a person that pass the filters, computed by this thread alone."""
    seen = np.array([0, len(person.rated)])
    biases = np.array([person.bias], np.float32)
    of_person = person.factors[None], biases, seen, person.rated
    return recommend_many(person.release, *of_person, k, rated=person.owned, filters=filters, n_threads=1)[0]


def _kind(release: Release) -> tuple[Scale, str, bool]:
    """Return what clients have to know of a release to ask for recommendations."""
    return release.scale, release.feedback, release.weighs_counts
