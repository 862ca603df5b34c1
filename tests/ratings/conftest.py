"""What the tests of ratings share: a plain view of ratings, one-line errors, and a server to download from."""

from __future__ import annotations

import http.server
import io
import os
import re
import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

import pytest

from dpmf.errors import DpmfError
from dpmf.ratings import Ratings
from dpmf.ratings.catalogue import Archive, Dataset, find

Table = Callable[[Ratings], dict[tuple[int | str, int | str], float]]
Refused = Callable[..., AbstractContextManager[None]]


@pytest.fixture(scope="session")
def table() -> Table:
    """Return a function that shows ratings as a dict from (user id, item id) to rating."""

    def show(ratings: Ratings) -> dict[tuple[int | str, int | str], float]:
        users, items = ratings.user_ids, ratings.catalogue.ids
        rows = zip(ratings.users.tolist(), ratings.items.tolist(), ratings.values.tolist(), strict=True)
        return {(users[user], items[item]): value for user, item, value in rows}

    return show


@pytest.fixture(scope="session")
def refused() -> Refused:
    """Return a context in which a `DpmfError` of one line must be raised that contains all the words given."""

    @contextmanager
    def check(*words: str) -> Iterator[None]:
        with pytest.raises(DpmfError) as caught:
            yield
        message = str(caught.value)
        assert len(message.splitlines()) == 1
        assert not [word for word in words if word not in message], message

    return check


@dataclass
class Site:
    """What the server serves and how well it behaves; what it was asked."""

    good: ClassVar[bytes] = b""  # an archive with ratings.csv and a README below a top folder
    ratings: ClassVar[bytes] = os.urandom(300_000)  # does not compress, so that the archive is long enough to be cut
    url: str = ""
    body: bytes = b""
    resumes: bool = True
    status: int | None = None
    redirect: str | None = None
    cut_at: int | None = None  # close the connection after this many bytes of the archive
    tell_length: bool = True
    lie_about_range: bool = False
    ranges: list[str | None] = field(default_factory=list)

    def dataset(self, checksum: str | None = None) -> Dataset:
        """Return a data set whose archive is at this server."""
        return replace(find("movielens-20m"), name="example", archive=Archive(self.url, checksum, "this test"))


def good_archive() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in {"top/": b"", "top/ratings.csv": Site.ratings, "top/sub/README": b"hello"}.items():
            archive.writestr(name, content)
    return buffer.getvalue()


Site.good = good_archive()


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
    """Serve an archive on 127.0.0.1."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    served = Site()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler_of(served)) as server:
        served.url = f"http://127.0.0.1:{server.server_address[1]}/set.zip"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield served
        server.shutdown()
        thread.join()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return where a data set is fetched to."""
    return tmp_path / "data" / "example"
