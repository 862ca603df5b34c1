"""Downloads from a server on 127.0.0.1: a folder is whole or absent, and an interrupted download is resumed."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import socket
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dpmf.errors import FetchFailed, InvalidArgument
from dpmf.ratings.catalogue import find
from dpmf.ratings.fetch import fetch

if TYPE_CHECKING:
    from ratings.conftest import Site


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


def test_a_server_that_does_not_tell_the_length_is_fine(site: Site, folder: Path) -> None:
    site.body, site.tell_length = site.good, False
    seen: list[int | None] = []
    fetch(site.dataset(), folder, progress=lambda done, total: seen.append(total))
    assert (folder / "ratings.csv").read_bytes() == site.ratings
    assert set(seen) == {None}


def test_a_complete_folder_is_returned_without_a_request(site: Site, folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "ratings.csv").write_text("mine")
    assert fetch(site.dataset(), folder) == folder
    assert site.ranges == []
    assert (folder / "ratings.csv").read_text() == "mine"


def test_data_obtained_by_hand_count_as_complete(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "combined_data_1.txt").write_text("1:\n")
    assert fetch(find("netflix"), folder) == folder


def test_an_empty_folder_is_filled(site: Site, folder: Path) -> None:
    site.body = site.good
    folder.mkdir(parents=True)
    fetch(site.dataset(), folder)
    assert (folder / "ratings.csv").exists()


def test_a_folder_with_other_things_is_not_touched(site: Site, folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "thesis.tex").write_text("precious")
    with pytest.raises(FetchFailed, match=r"no ratings\.csv: move it away") as error:
        fetch(site.dataset(), folder)
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
    site.body, site.cut_at = site.good, 100_000
    dataset = site.dataset("sha256:" + hashlib.sha256(site.good).hexdigest())
    with pytest.raises(FetchFailed, match=f"100000 of {len(site.good)} bytes") as error:
        fetch(dataset, folder)
    assert "fetch again" in one_line(error)
    assert not folder.exists()
    assert partial_of(folder).read_bytes() == site.good[:100_000]

    site.cut_at = None
    seen: list[tuple[int, int | None]] = []
    fetch(dataset, folder, progress=lambda done, total: seen.append((done, total)))
    assert site.ranges == [None, "bytes=100000-"]
    assert seen[0][0] > 100_000
    assert seen[-1] == (len(site.good), len(site.good))
    assert (folder / "ratings.csv").read_bytes() == site.ratings
    assert left_beside(folder) == {"example"}


@pytest.mark.parametrize("fault", ["no ranges", "wrong range"])
def test_starts_again_when_the_server_cannot_resume(site: Site, folder: Path, fault: str) -> None:
    site.body, site.cut_at = site.good, 100_000
    with pytest.raises(FetchFailed):
        fetch(site.dataset(), folder)
    site.cut_at = None
    site.resumes = fault != "no ranges"
    site.lie_about_range = fault == "wrong range"
    fetch(site.dataset(), folder)
    assert site.ranges == [None, "bytes=100000-"] + ([None] if fault == "wrong range" else [])
    assert (folder / "ratings.csv").read_bytes() == site.ratings


def test_a_whole_download_that_was_not_unpacked_is_not_downloaded_again(site: Site, folder: Path) -> None:
    site.body, site.cut_at = site.good, 5
    with pytest.raises(FetchFailed):
        fetch(site.dataset(), folder)
    partial_of(folder).write_bytes(site.good)
    site.cut_at = None
    seen: list[int] = []
    fetch(site.dataset(), folder, progress=lambda done, total: seen.append(done))
    assert site.ranges == [None, f"bytes={len(site.good)}-"]
    assert seen == []
    assert (folder / "ratings.csv").read_bytes() == site.ratings


def test_a_partial_longer_than_the_archive_is_thrown_away(site: Site, folder: Path) -> None:
    site.body, site.cut_at = site.good, 5
    with pytest.raises(FetchFailed):
        fetch(site.dataset(), folder)
    partial_of(folder).write_bytes(site.good + b"more")
    site.cut_at = None
    fetch(site.dataset(), folder)
    assert (folder / "ratings.csv").read_bytes() == site.ratings


def test_an_interrupt_leaves_the_partial_download_and_nothing_else(site: Site, folder: Path) -> None:
    site.body = site.good

    def interrupt(done: int, total: int | None) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(site.dataset(), folder, progress=interrupt)
    waiting = partial_of(folder)
    assert left_beside(folder) == {waiting.name}
    assert site.good.startswith(waiting.read_bytes())
    fetch(site.dataset(), folder)
    assert (folder / "ratings.csv").read_bytes() == site.ratings


@pytest.mark.parametrize("status", [403, 404, 500])
def test_a_status_error_is_one_line(site: Site, folder: Path, status: int) -> None:
    site.status = status
    with pytest.raises(FetchFailed, match=f"answered {status}") as error:
        fetch(site.dataset(), folder)
    assert find("movielens-20m").homepage in one_line(error)
    assert left_beside(folder) == set()


def test_a_refused_connection_says_what_to_do(site: Site, folder: Path) -> None:
    with socket.socket() as nobody:  # bound but not listening: refuses
        nobody.bind(("127.0.0.1", 0))
        site.url = f"http://127.0.0.1:{nobody.getsockname()[1]}/set.zip"
        with pytest.raises(FetchFailed, match=r"could not reach .*refused") as error:
            fetch(site.dataset(), folder)
    text = one_line(error)
    assert site.url in text
    assert str(folder) in text
    assert "DPMF_DATA" in text


def test_a_silent_server_times_out(site: Site, folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        site.url = f"http://127.0.0.1:{silent.getsockname()[1]}/set.zip"
        with pytest.raises(FetchFailed, match=r"could not reach .*timed out") as error:
            fetch(site.dataset(), folder, timeout=0.1)
    one_line(error)


@pytest.mark.parametrize("timeout", [0.0, -1.0, float("nan")])
def test_timeout_must_be_positive(site: Site, folder: Path, timeout: float) -> None:
    with pytest.raises(InvalidArgument, match="timeout"):
        fetch(site.dataset(), folder, timeout=timeout)


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/set.zip", "file:///etc/passwd", "set.zip"])
def test_only_web_addresses_are_opened(site: Site, folder: Path, url: str) -> None:
    site.url = url
    with pytest.raises(FetchFailed, match="neither an http nor an https address"):
        fetch(site.dataset(), folder)


def test_a_redirect_out_of_the_web_is_refused(site: Site, folder: Path) -> None:
    site.redirect = "ftp://127.0.0.1/set.zip"
    with pytest.raises(FetchFailed, match="redirected to ftp"):
        fetch(site.dataset(), folder)


def test_a_full_disk_is_one_line_and_leaves_no_half_folder(
    site: Site, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    site.body = site.good
    monkeypatch.setattr(shutil, "copyfileobj", full)
    with pytest.raises(FetchFailed, match=r"could not write .*No space left") as error:
        fetch(site.dataset(), folder)
    one_line(error)
    assert left_beside(folder) == {partial_of(folder).name}
    monkeypatch.undo()
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    fetch(site.dataset(), folder)
    assert (folder / "ratings.csv").read_bytes() == site.ratings


def test_a_place_that_cannot_be_written_is_one_line(site: Site, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(FetchFailed, match="could not write") as error:
        fetch(site.dataset(), tmp_path / "file" / "example")
    one_line(error)


def test_two_who_want_the_same_folder_download_it_once(site: Site, folder: Path) -> None:
    site.body = site.good
    results: list[Path] = []
    threads = [threading.Thread(target=lambda: results.append(fetch(site.dataset(), folder))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [folder] * 4
    assert site.ranges == [None]
