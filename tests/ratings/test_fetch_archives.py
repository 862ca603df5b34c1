"""Archives that were downloaded: unpacked without their top folder, checked, and refused if damaged or unsafe."""

from __future__ import annotations

import hashlib
import io
import os
import stat
import tarfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dpmf.errors import FetchFailed
from dpmf.ratings.fetch import fetch

if TYPE_CHECKING:
    from ratings.conftest import Site

RATINGS = os.urandom(300_000)  # does not compress, so that archives are long enough to be cut


def zip_of(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def tar_of(members: list[tuple[tarfile.TarInfo, bytes]], mode: str = "w:gz") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:  # type: ignore[call-overload]
        for info, content in members:
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


GOOD = zip_of({"top/": b"", "top/ratings.csv": RATINGS, "top/sub/README": b"hello"})


def left_beside(folder: Path) -> set[str]:
    """Names beside `folder`, but for the lock, which stays (removing a lock file is a race)."""
    return {path.name for path in folder.parent.iterdir()} - {f".{folder.name}.lock"}


def one_line(error: pytest.ExceptionInfo[FetchFailed]) -> str:
    text = str(error.value)
    assert "\n" not in text
    return text


def test_downloads_unpacks_and_strips_the_top_folder(site: Site, folder: Path) -> None:
    site.body = GOOD
    seen: list[tuple[int, int | None]] = []
    checksum = "sha256:" + hashlib.sha256(GOOD).hexdigest()
    assert fetch(site.dataset(checksum), folder, progress=lambda done, total: seen.append((done, total))) == folder
    assert (folder / "ratings.csv").read_bytes() == RATINGS
    assert (folder / "sub" / "README").read_bytes() == b"hello"
    assert left_beside(folder) == {"example"}
    assert seen[-1] == (len(GOOD), len(GOOD))
    assert seen == sorted(seen)


def test_files_at_the_top_stay_at_the_top(site: Site, folder: Path) -> None:
    site.body = zip_of({"ratings.csv": b"x", "books.csv": b"y"})
    fetch(site.dataset("md5:" + hashlib.md5(site.body).hexdigest()), folder)
    assert {path.name for path in folder.iterdir()} == {"ratings.csv", "books.csv"}


def test_what_a_mac_adds_to_a_zip_does_not_hide_the_top_folder(site: Site, folder: Path) -> None:
    site.body = zip_of({"top/ratings.csv": b"x", "__MACOSX/top/._ratings.csv": b"junk"})
    fetch(site.dataset(), folder)
    assert {path.name for path in folder.iterdir()} == {"ratings.csv"}


@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_unpacks_tar_files(site: Site, folder: Path, mode: str) -> None:
    directory = tarfile.TarInfo("./set")
    directory.type = tarfile.DIRTYPE
    site.body = tar_of([(directory, b""), (tarfile.TarInfo("./set/ratings.csv"), RATINGS)], mode)
    fetch(site.dataset(), folder)
    assert (folder / "ratings.csv").read_bytes() == RATINGS


def test_a_wrong_checksum_names_both_and_removes_the_file(site: Site, folder: Path) -> None:
    site.body = GOOD
    expected = "0" * 64
    with pytest.raises(FetchFailed) as error:
        fetch(site.dataset("sha256:" + expected), folder)
    assert expected in one_line(error)
    assert hashlib.sha256(GOOD).hexdigest() in one_line(error)
    assert left_beside(folder) == set()


def link_in_zip() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        info = zipfile.ZipInfo("ratings.csv")
        info.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(info, "/etc/passwd")
    return buffer.getvalue()


def link_in_tar(kind: bytes) -> bytes:
    info = tarfile.TarInfo("top/ratings.csv")
    info.type, info.linkname = kind, "/etc/passwd"
    return tar_of([(info, b"")])


UNSAFE = {
    "zip slip": zip_of({"ratings.csv": b"x", "../escaped.txt": b"x"}),
    "zip slip with backslashes": zip_of({"ratings.csv": b"x", "..\\escaped.txt": b"x"}),
    "zip absolute": zip_of({"/tmp/escaped.txt": b"x"}),
    "zip drive": zip_of({"C:/escaped.txt": b"x"}),
    "zip link": link_in_zip(),
    "tar slip": tar_of([(tarfile.TarInfo("top/../../escaped.txt"), b"x")]),
    "tar absolute": tar_of([(tarfile.TarInfo("/tmp/escaped.txt"), b"x")]),
    "tar symbolic link": link_in_tar(tarfile.SYMTYPE),
    "tar hard link": link_in_tar(tarfile.LNKTYPE),
    "tar device": link_in_tar(tarfile.CHRTYPE),
}


@pytest.mark.parametrize("body", UNSAFE.values(), ids=UNSAFE.keys())
def test_unsafe_archives_are_refused_and_removed(site: Site, folder: Path, body: bytes) -> None:
    site.body = body
    with pytest.raises(FetchFailed, match="unsafe member") as error:
        fetch(site.dataset(), folder)
    one_line(error)
    assert left_beside(folder) == set()
    assert not list(folder.parent.parent.rglob("escaped.txt"))


def flipped(body: bytes, at: int) -> bytes:
    return body[:at] + bytes([body[at] ^ 0xFF]) + body[at + 1 :]


TAR = tar_of([(tarfile.TarInfo("ratings.csv"), RATINGS)])


BAD = {
    "a page": (b"<html>please log in</html>", "neither a zip nor a tar"),
    "nothing": (b"", "neither a zip nor a tar"),
    "zip with a wrong byte": (flipped(GOOD, 1000), "damaged"),
    "tar.gz with a wrong checksum": (flipped(TAR, len(TAR) - 8), "damaged"),
    "tar.gz with a wrong byte": (flipped(TAR, len(TAR) // 2), "damaged"),
    "tar.gz cut short": (TAR[: len(TAR) // 2], "damaged"),
    "another data set": (zip_of({"top/songs.csv": b"x"}), r"has no ratings\.csv"),
}


@pytest.mark.parametrize(("body", "message"), BAD.values(), ids=BAD.keys())
def test_bad_archives_are_refused_and_removed(site: Site, folder: Path, body: bytes, message: str) -> None:
    site.body = body
    with pytest.raises(FetchFailed, match=message) as error:
        fetch(site.dataset(), folder)
    one_line(error)
    assert left_beside(folder) == set()


def test_leftovers_of_a_killed_process_are_cleaned_up(site: Site, folder: Path) -> None:
    site.body = GOOD
    stale = folder.parent / ".example.unpacking" / "content"
    stale.mkdir(parents=True)
    (stale / "half").write_text("x")
    fetch(site.dataset(), folder)
    assert left_beside(folder) == {"example"}
    assert not (folder / "half").exists()
