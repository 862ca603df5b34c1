"""Download a public data set once, safely, and put it where dpmf looks for it.

A folder is either absent or whole: the archive is downloaded to a hidden name beside it (and resumed there after an
interruption), checked, unpacked to another hidden name, and renamed into place.

>>> from dpmf.ratings.catalogue import find
>>> fetch(find("synthetic"), Path("anywhere"))
Traceback (most recent call last):
    ...
dpmf.errors.FetchFailed: synthetic cannot be downloaded: built in, nothing to fetch
"""

from __future__ import annotations

import gzip
import hashlib
import http.client
import logging
import lzma
import os
import re
import shutil
import stat
import tarfile
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO, Any, cast
from urllib.parse import urlsplit

from filelock import FileLock

from dpmf.errors import FetchFailed, InvalidArgument
from dpmf.ratings.catalogue import Archive, Dataset

Progress = Callable[[int, int | None], None]
"""Called with the bytes downloaded so far and the total, which is None if the server does not say."""

_CHUNK_BYTES = 1 << 20
_DAMAGED = (
    zipfile.BadZipFile,
    tarfile.TarError,
    gzip.BadGzipFile,
    lzma.LZMAError,
    zlib.error,
    EOFError,
    ValueError,  # names that are no text
    RuntimeError,  # encrypted, or packed by a method unknown here
)
"""What the standard library raises while it reads an archive that is cut, altered or odd."""

_log = logging.getLogger(__name__)


def fetch(dataset: Dataset, folder: Path, *, progress: Progress | None = None, timeout: float = 30.0) -> Path:
    """Download `dataset` into `folder` unless it is there, and return the folder.

    A folder that already has the ratings file is left as it is, without a request. Of two processes that want the same
    folder, the second waits and finds it there.

    Args:
        dataset: An entry of the catalogue.
        folder: Where the files go; see `folder_of`.
        progress: Called as the download grows.
        timeout: Seconds without a byte from the server after which to give up.

    Raises:
        FetchFailed: The data must be obtained by hand, could not be reached, written, or trusted.
        InvalidArgument: `timeout` is not positive.
    """
    if not timeout > 0:
        raise InvalidArgument(f"timeout must be a positive number of seconds, not {timeout}")
    folder = Path(folder).absolute()
    if _has_ratings(dataset, folder):
        return folder
    archive = dataset.archive
    if archive is None:
        raise FetchFailed(f"{dataset.name} cannot be downloaded: {dataset.obtain}")
    if urlsplit(archive.url).scheme not in ("http", "https"):
        raise FetchFailed(f"{archive.url} is neither an http nor an https address")

    # The name holds the address, so that bytes of one archive are never continued with those of another.
    address = hashlib.sha256(archive.url.encode()).hexdigest()[:8]
    partial = folder.with_name(f".{folder.name}.{address}.part")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.with_name(f".{folder.name}.lock")):
            if not _has_ratings(dataset, folder):
                _refuse_foreign_content(dataset, folder)
                _download(dataset, archive.url, partial, folder, progress, timeout)
                _install(dataset, archive, partial, folder)
    except OSError as error:  # network errors were dealt with where they arose: what is left is the disk
        raise FetchFailed(
            f"could not write {folder} ({_reason(error)}): make room or choose another place with DPMF_DATA"
        ) from error
    return folder


def _has_ratings(dataset: Dataset, folder: Path) -> bool:
    return dataset.ratings_file != "" and any(folder.glob(dataset.ratings_file))


def _refuse_foreign_content(dataset: Dataset, folder: Path) -> None:
    """Stop before something that somebody else put at `folder` is overwritten; an empty folder does not count."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FetchFailed(f"{folder} exists but has no {dataset.ratings_file}: move it away and fetch again")


class _WebOnlyRedirects(urllib.request.HTTPRedirectHandler):
    """Follow redirects within the web, but not to ftp and not from https to http."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        allowed = ("https",) if req.type == "https" else ("http", "https")
        if urlsplit(newurl).scheme not in allowed:
            fp.close()
            raise urllib.error.URLError(f"redirected to {newurl}, which is refused")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _download(
    dataset: Dataset, url: str, partial: Path, folder: Path, progress: Progress | None, timeout: float
) -> None:
    """Download what is at `url` to `partial`, resuming where an earlier attempt stopped."""
    start = partial.stat().st_size if partial.exists() else 0
    try:
        response = _open(url, start, timeout)
    except urllib.error.HTTPError as error:
        with error:
            if start and error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                if error.headers.get("Content-Range") == f"bytes */{start}":
                    return  # an earlier attempt downloaded all of it but did not unpack it
                partial.unlink()  # longer than the archive, so not a part of it
                return _download(dataset, url, partial, folder, progress, timeout)
            raise FetchFailed(
                f"{url} answered {error.code} {_reason(error.reason)}: look for the archive at {dataset.homepage} "
                f"and unpack it into {folder}"
            ) from error
    except (OSError, http.client.HTTPException) as error:
        raise FetchFailed(
            f"could not reach {url} ({_reason(error)}): on a machine with a network, download it and unpack it into "
            f"{folder}, or set DPMF_DATA to the folder that holds {folder.name}"
        ) from error

    with response:
        done, total = _extent(response)
        usable = done in (0, start)
        if usable:
            with partial.open("ab") as file:
                file.truncate(done)  # to nothing when the server sends all of it again
                for chunk in _chunks(response, url):
                    file.write(chunk)
                    done += len(chunk)
                    if progress is not None:
                        progress(done, total)
    if not usable:
        if start == 0:
            raise FetchFailed(f"{url} sent a part of the archive that was not requested: fetch again later")
        partial.unlink()
        return _download(dataset, url, partial, folder, progress, timeout)
    if total is not None and done != total:
        raise FetchFailed(f"the download of {url} ended at {done} of {total} bytes: fetch again to continue it")


def _open(url: str, start: int, timeout: float) -> http.client.HTTPResponse:
    headers = {"User-Agent": "dpmf"} | ({"Range": f"bytes={start}-"} if start else {})
    opener = urllib.request.build_opener(_WebOnlyRedirects)
    response = opener.open(urllib.request.Request(url, headers=headers), timeout=timeout)
    return cast(http.client.HTTPResponse, response)


def _extent(response: http.client.HTTPResponse) -> tuple[int, int | None]:
    """Return where in the archive the body begins (-1: cannot be told) and how long the archive is (None: unknown)."""
    if response.status == http.HTTPStatus.PARTIAL_CONTENT:
        declared = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", response.headers.get("Content-Range", ""))
        if declared is None:
            return -1, None
        return int(declared[1]), None if declared[2] == "*" else int(declared[2])
    length = response.headers.get("Content-Length", "")
    return 0, int(length) if length.isdecimal() else None


def _chunks(response: http.client.HTTPResponse, url: str) -> Iterator[bytes]:
    while True:
        try:
            # Not read(): it waits for a full chunk, and would lose what has arrived when the connection breaks.
            chunk = response.read1(_CHUNK_BYTES)
        except (OSError, http.client.HTTPException) as error:
            raise FetchFailed(
                f"lost the connection to {url} ({_reason(error)}): fetch again to continue the download"
            ) from error
        if not chunk:
            return
        yield chunk


def _install(dataset: Dataset, archive: Archive, downloaded: Path, folder: Path) -> None:
    """Check the archive, unpack it, and rename the result to `folder`; a bad archive is removed."""
    staging = folder.with_name(f".{folder.name}.unpacking")
    shutil.rmtree(staging, ignore_errors=True)  # what a killed process may have left; we hold the lock
    try:
        _verify(archive, downloaded)
        staging.mkdir()
        content = _unpack(downloaded, staging / "content", archive.url)
        if not _has_ratings(dataset, content):
            raise FetchFailed(f"the archive {archive.url} has no {dataset.ratings_file}: see {dataset.homepage}")
        if folder.exists():
            folder.rmdir()
        content.replace(folder)
    except FetchFailed:
        downloaded.unlink()  # or the next attempt would find the same bytes and fail the same way
        raise
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    downloaded.unlink()
    _log.info("fetched %s into %s", dataset.name, folder)


def _verify(archive: Archive, downloaded: Path) -> None:
    if archive.checksum is None:
        return
    algorithm, _, expected = archive.checksum.partition(":")
    with downloaded.open("rb") as file:
        found = hashlib.file_digest(file, lambda: hashlib.new(algorithm, usedforsecurity=False)).hexdigest()
    if found != expected:
        raise FetchFailed(
            f"{archive.url} does not have the published checksum (expected {algorithm} {expected}, found {found}): "
            "it has been removed; fetch again, and if that does not help, the publisher has changed the file"
        )


def _unpack(downloaded: Path, target: Path, url: str) -> Path:
    """Unpack a zip or tar file below `target` and return the folder of its files, without a lone top folder."""
    target.mkdir()
    try:
        if zipfile.is_zipfile(downloaded):
            with zipfile.ZipFile(downloaded) as archive:
                for info in archive.infolist():
                    is_link = stat.S_ISLNK(info.external_attr >> 16)
                    path = _safe_path(target, info.filename, is_link, url)
                    _write(path, None if info.is_dir() else archive.open(info))
        elif tarfile.is_tarfile(downloaded):
            with tarfile.open(downloaded) as tar:
                for member in tar:
                    path = _safe_path(target, member.name, not (member.isreg() or member.isdir()), url)
                    _write(path, tar.extractfile(member))
                while tar.fileobj is not None and tar.fileobj.read(_CHUNK_BYTES):
                    pass  # to the very end, where gzip compares its checksum
        else:
            raise FetchFailed(f"what {url} sent is neither a zip nor a tar file: it has been removed")
    except _DAMAGED as error:
        raise FetchFailed(
            f"the archive {url} is damaged ({_reason(error)}): it has been removed; fetch again"
        ) from error
    top = [entry for entry in target.iterdir() if entry.name != "__MACOSX"]  # macOS adds it
    return top[0] if len(top) == 1 and top[0].is_dir() else target


def _safe_path(target: Path, name: str, is_special: bool, url: str) -> Path:
    """Return where a member goes, or refuse the archive if it reaches outside `target` or is a link or a device."""
    # Windows rules are the stricter ones: they know drives and both kinds of slash.
    path = PureWindowsPath(name)
    if is_special or path.anchor or ".." in path.parts:
        raise FetchFailed(f"the archive {url} has the unsafe member {name!r}: it has been removed")
    return target / PurePosixPath(*path.parts)


def _write(path: Path, source: IO[bytes] | None) -> None:
    """Write one member; a folder has no `source`."""
    if source is None:
        path.mkdir(parents=True, exist_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with source, path.open("wb") as file:
        shutil.copyfileobj(source, file, _CHUNK_BYTES)
        file.flush()
        os.fsync(file.fileno())  # the rename that follows must not outrun the bytes


def _reason(error: object) -> str:
    """Say in one line what went wrong."""
    if isinstance(error, urllib.error.URLError) and not isinstance(error, urllib.error.HTTPError):
        error = error.reason
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return " ".join(text.split()) or type(error).__name__
