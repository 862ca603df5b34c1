"""Downloads against a server on 127.0.0.1: whole or absent, resumed, checked, and safe to unpack."""

from __future__ import annotations

import errno
import hashlib
import http.server
import io
import os
import re
import shutil
import socket
import stat
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from dpmf.errors import FetchFailed, InvalidArgument
from dpmf.ratings.catalogue import Archive, Dataset, find
from dpmf.ratings.fetch import fetch

RATINGS = os.urandom(300_000)  # does not compress, so that archives are long enough to be cut


@dataclass
class Site:
    """What the server serves and how well it behaves; what it was asked."""

    url: str = ""
    body: bytes = b""
    resumes: bool = True
    status: int | None = None
    redirect: str | None = None
    cut_at: int | None = None  # close the connection after this many bytes of the archive
    tell_length: bool = True
    lie_about_range: bool = False
    ranges: list[str | None] = field(default_factory=list)


def handler_of(site: Site) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

        def do_GET(self) -> None:
            asked = self.headers.get("Range")
            site.ranges.append(asked)
            if site.redirect is not None:
                self.send_response(302)
                self.send_header("Location", site.redirect)
                self.end_headers()
                return
            if site.status is not None:
                self.send_error(site.status)
                return
            start, size = 0, len(site.body)
            match = re.fullmatch(r"bytes=(\d+)-", asked or "")
            if match is not None and site.resumes:
                start = int(match[1])
                if start >= size:
                    self.send_response(416)
                    self.send_header("Content-Range", f"bytes */{size}")
                    self.end_headers()
                    return
                self.send_response(206)
                shown = start + 1 if site.lie_about_range else start
                self.send_header("Content-Range", f"bytes {shown}-{size - 1}/{size}")
            else:
                self.send_response(200)
            if site.tell_length:
                self.send_header("Content-Length", str(size - start))
            self.end_headers()
            self.wfile.write(site.body[start : site.cut_at])

    return Handler


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    served = Site()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler_of(served)) as server:
        served.url = f"http://127.0.0.1:{server.server_address[1]}/set.zip"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield served
        server.shutdown()
        thread.join()


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


def dataset_at(site: Site, checksum: str | None = None) -> Dataset:
    return replace(find("movielens-20m"), name="example", archive=Archive(site.url, checksum, "this test"))


def partial_of(folder: Path) -> Path:
    """The hidden file in which an interrupted download waits."""
    (only,) = folder.parent.glob(f".{folder.name}.*.part")
    return only


def left_beside(folder: Path) -> set[str]:
    """Names beside `folder`, but for the lock, which stays (removing a lock file is a race)."""
    return {path.name for path in folder.parent.iterdir()} - {f".{folder.name}.lock"}


def one_line(error: pytest.ExceptionInfo[FetchFailed]) -> str:
    text = str(error.value)
    assert "\n" not in text
    return text


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data" / "example"


def test_downloads_unpacks_and_strips_the_top_folder(site: Site, folder: Path) -> None:
    site.body = GOOD
    seen: list[tuple[int, int | None]] = []
    checksum = "sha256:" + hashlib.sha256(GOOD).hexdigest()
    assert fetch(dataset_at(site, checksum), folder, progress=lambda done, total: seen.append((done, total))) == folder
    assert (folder / "ratings.csv").read_bytes() == RATINGS
    assert (folder / "sub" / "README").read_bytes() == b"hello"
    assert left_beside(folder) == {"example"}
    assert seen[-1] == (len(GOOD), len(GOOD))
    assert seen == sorted(seen)


def test_files_at_the_top_stay_at_the_top(site: Site, folder: Path) -> None:
    site.body = zip_of({"ratings.csv": b"x", "books.csv": b"y"})
    fetch(dataset_at(site, "md5:" + hashlib.md5(site.body).hexdigest()), folder)
    assert {path.name for path in folder.iterdir()} == {"ratings.csv", "books.csv"}


def test_what_a_mac_adds_to_a_zip_does_not_hide_the_top_folder(site: Site, folder: Path) -> None:
    site.body = zip_of({"top/ratings.csv": b"x", "__MACOSX/top/._ratings.csv": b"junk"})
    fetch(dataset_at(site), folder)
    assert {path.name for path in folder.iterdir()} == {"ratings.csv"}


@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_unpacks_tar_files(site: Site, folder: Path, mode: str) -> None:
    directory = tarfile.TarInfo("./set")
    directory.type = tarfile.DIRTYPE
    site.body = tar_of([(directory, b""), (tarfile.TarInfo("./set/ratings.csv"), RATINGS)], mode)
    fetch(dataset_at(site), folder)
    assert (folder / "ratings.csv").read_bytes() == RATINGS


def test_a_server_that_does_not_tell_the_length_is_fine(site: Site, folder: Path) -> None:
    site.body, site.tell_length = GOOD, False
    seen: list[int | None] = []
    fetch(dataset_at(site), folder, progress=lambda done, total: seen.append(total))
    assert (folder / "ratings.csv").read_bytes() == RATINGS
    assert set(seen) == {None}


def test_a_complete_folder_is_returned_without_a_request(site: Site, folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "ratings.csv").write_text("mine")
    assert fetch(dataset_at(site), folder) == folder
    assert site.ranges == []
    assert (folder / "ratings.csv").read_text() == "mine"


def test_data_obtained_by_hand_count_as_complete(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "combined_data_1.txt").write_text("1:\n")
    assert fetch(find("netflix"), folder) == folder


def test_an_empty_folder_is_filled(site: Site, folder: Path) -> None:
    site.body = GOOD
    folder.mkdir(parents=True)
    fetch(dataset_at(site), folder)
    assert (folder / "ratings.csv").exists()


def test_a_folder_with_other_things_is_not_touched(site: Site, folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "thesis.tex").write_text("precious")
    with pytest.raises(FetchFailed, match=r"no ratings\.csv: move it away") as error:
        fetch(dataset_at(site), folder)
    one_line(error)
    assert site.ranges == []
    assert (folder / "thesis.tex").read_text() == "precious"


@pytest.mark.parametrize("name", ["synthetic", "netflix", "yahoo-music", "anime"])
def test_without_an_archive_the_message_says_how_to_get_the_data(name: str, folder: Path) -> None:
    with pytest.raises(FetchFailed) as error:
        fetch(find(name), folder)
    assert find(name).obtain in one_line(error)
    assert not folder.parent.exists()


def test_a_cut_download_is_resumed_with_a_range_request(site: Site, folder: Path) -> None:
    site.body, site.cut_at = GOOD, 100_000
    dataset = dataset_at(site, "sha256:" + hashlib.sha256(GOOD).hexdigest())
    with pytest.raises(FetchFailed, match=f"100000 of {len(GOOD)} bytes") as error:
        fetch(dataset, folder)
    assert "fetch again" in one_line(error)
    assert not folder.exists()
    assert partial_of(folder).read_bytes() == GOOD[:100_000]

    site.cut_at = None
    seen: list[tuple[int, int | None]] = []
    fetch(dataset, folder, progress=lambda done, total: seen.append((done, total)))
    assert site.ranges == [None, "bytes=100000-"]
    assert seen[0][0] > 100_000
    assert seen[-1] == (len(GOOD), len(GOOD))
    assert (folder / "ratings.csv").read_bytes() == RATINGS
    assert left_beside(folder) == {"example"}


@pytest.mark.parametrize("fault", ["no ranges", "wrong range"])
def test_starts_again_when_the_server_cannot_resume(site: Site, folder: Path, fault: str) -> None:
    site.body, site.cut_at = GOOD, 100_000
    with pytest.raises(FetchFailed):
        fetch(dataset_at(site), folder)
    site.cut_at = None
    site.resumes = fault != "no ranges"
    site.lie_about_range = fault == "wrong range"
    fetch(dataset_at(site), folder)
    assert site.ranges == [None, "bytes=100000-"] + ([None] if fault == "wrong range" else [])
    assert (folder / "ratings.csv").read_bytes() == RATINGS


def test_a_whole_download_that_was_not_unpacked_is_not_downloaded_again(site: Site, folder: Path) -> None:
    site.body, site.cut_at = GOOD, 5
    with pytest.raises(FetchFailed):
        fetch(dataset_at(site), folder)
    partial_of(folder).write_bytes(GOOD)
    site.cut_at = None
    seen: list[int] = []
    fetch(dataset_at(site), folder, progress=lambda done, total: seen.append(done))
    assert site.ranges == [None, f"bytes={len(GOOD)}-"]
    assert seen == []
    assert (folder / "ratings.csv").read_bytes() == RATINGS


def test_a_partial_longer_than_the_archive_is_thrown_away(site: Site, folder: Path) -> None:
    site.body, site.cut_at = GOOD, 5
    with pytest.raises(FetchFailed):
        fetch(dataset_at(site), folder)
    partial_of(folder).write_bytes(GOOD + b"more")
    site.cut_at = None
    fetch(dataset_at(site), folder)
    assert (folder / "ratings.csv").read_bytes() == RATINGS


def test_an_interrupt_leaves_the_partial_download_and_nothing_else(site: Site, folder: Path) -> None:
    site.body = GOOD

    def interrupt(done: int, total: int | None) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(dataset_at(site), folder, progress=interrupt)
    waiting = partial_of(folder)
    assert left_beside(folder) == {waiting.name}
    assert GOOD.startswith(waiting.read_bytes())
    fetch(dataset_at(site), folder)
    assert (folder / "ratings.csv").read_bytes() == RATINGS


def test_a_wrong_checksum_names_both_and_removes_the_file(site: Site, folder: Path) -> None:
    site.body = GOOD
    expected = "0" * 64
    with pytest.raises(FetchFailed) as error:
        fetch(dataset_at(site, "sha256:" + expected), folder)
    assert expected in one_line(error)
    assert hashlib.sha256(GOOD).hexdigest() in one_line(error)
    assert left_beside(folder) == set()


@pytest.mark.parametrize("status", [403, 404, 500])
def test_a_status_error_is_one_line(site: Site, folder: Path, status: int) -> None:
    site.status = status
    with pytest.raises(FetchFailed, match=f"answered {status}") as error:
        fetch(dataset_at(site), folder)
    assert find("movielens-20m").homepage in one_line(error)
    assert left_beside(folder) == set()


def test_a_refused_connection_says_what_to_do(site: Site, folder: Path) -> None:
    with socket.socket() as nobody:  # bound but not listening: refuses
        nobody.bind(("127.0.0.1", 0))
        site.url = f"http://127.0.0.1:{nobody.getsockname()[1]}/set.zip"
        with pytest.raises(FetchFailed, match=r"could not reach .*refused") as error:
            fetch(dataset_at(site), folder)
    text = one_line(error)
    assert site.url in text
    assert str(folder) in text
    assert "DPMF_DATA" in text


def test_a_silent_server_times_out(site: Site, folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        site.url = f"http://127.0.0.1:{silent.getsockname()[1]}/set.zip"
        with pytest.raises(FetchFailed, match=r"could not reach .*timed out") as error:
            fetch(dataset_at(site), folder, timeout=0.1)
    one_line(error)


@pytest.mark.parametrize("timeout", [0.0, -1.0, float("nan")])
def test_timeout_must_be_positive(site: Site, folder: Path, timeout: float) -> None:
    with pytest.raises(InvalidArgument, match="timeout"):
        fetch(dataset_at(site), folder, timeout=timeout)


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/set.zip", "file:///etc/passwd", "set.zip"])
def test_only_web_addresses_are_opened(site: Site, folder: Path, url: str) -> None:
    site.url = url
    with pytest.raises(FetchFailed, match="neither an http nor an https address"):
        fetch(dataset_at(site), folder)


def test_a_redirect_out_of_the_web_is_refused(site: Site, folder: Path) -> None:
    site.redirect = "ftp://127.0.0.1/set.zip"
    with pytest.raises(FetchFailed, match="redirected to ftp"):
        fetch(dataset_at(site), folder)


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
        fetch(dataset_at(site), folder)
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
        fetch(dataset_at(site), folder)
    one_line(error)
    assert left_beside(folder) == set()


def test_a_full_disk_is_one_line_and_leaves_no_half_folder(
    site: Site, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    site.body = GOOD
    monkeypatch.setattr(shutil, "copyfileobj", full)
    with pytest.raises(FetchFailed, match=r"could not write .*No space left") as error:
        fetch(dataset_at(site), folder)
    one_line(error)
    assert left_beside(folder) == {partial_of(folder).name}
    monkeypatch.undo()
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    fetch(dataset_at(site), folder)
    assert (folder / "ratings.csv").read_bytes() == RATINGS


def test_a_place_that_cannot_be_written_is_one_line(site: Site, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(FetchFailed, match="could not write") as error:
        fetch(dataset_at(site), tmp_path / "file" / "example")
    one_line(error)


def test_leftovers_of_a_killed_process_are_cleaned_up(site: Site, folder: Path) -> None:
    site.body = GOOD
    stale = folder.parent / ".example.unpacking" / "content"
    stale.mkdir(parents=True)
    (stale / "half").write_text("x")
    fetch(dataset_at(site), folder)
    assert left_beside(folder) == {"example"}
    assert not (folder / "half").exists()


def test_two_who_want_the_same_folder_download_it_once(site: Site, folder: Path) -> None:
    site.body = GOOD
    results: list[Path] = []
    threads = [threading.Thread(target=lambda: results.append(fetch(dataset_at(site), folder))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [folder] * 4
    assert site.ranges == [None]
