"""A static host for sites, in this process, with the caching that is hardest on a page."""

from __future__ import annotations

import hashlib
import itertools
import json
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from dpmf.model import Release
from dpmf.serve.site import CONTENT_TYPES, SECURITY_HEADERS, site_files

# Long ago, so that browsers, which guess a lifetime from the age of a file, keep every file for years.
_LAST_MODIFIED = "Mon, 01 Jan 2001 00:00:00 GMT"


class Host:
    """A host on the loopback address that sends validators and no Cache-Control: browsers ask again only if told to.

    Attributes:
        address: without a slash at the end.
        files: path → content; tests may change it at any time.
        log: method, path and body of every request.
        never_stored: paths that are sent with `Cache-Control: no-store`, as if the browser's cache had lost them.
    """

    def __init__(self, folder: Path) -> None:
        self.files: dict[str, bytes] = {"blank.html": b"<!doctype html><title>blank</title>"}
        self.log: list[tuple[str, str, bytes]] = []
        self.never_stored: set[str] = set()
        self._folder, self._numbers = folder, itertools.count()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        self.address = f"http://127.0.0.1:{self._server.server_port}"

    def site(self, release: Release, name: str, *, accept_unproven: bool = False) -> str:
        """Put a release's site up, in place of an older one of this name, and return the address of its page.

        A site that is called "guarded" is sent with the headers for hosts that send any.
        """
        folder = self._folder / str(next(self._numbers))
        release.save(folder)
        files = site_files(folder, accept_unproven=accept_unproven)
        for path in [path for path in self.files if path.startswith(f"{name}/")]:
            del self.files[path]
        self.files |= {f"{name}/{path}": content for path, content in files.items()}
        return f"{self.address}/{name}/"

    def about(self, name: str) -> dict[str, object]:
        """Return the about.json of a site."""
        found: dict[str, object] = json.loads(self.files[f"{name}/about.json"])
        return found

    def paths(self, name: str) -> Mapping[str, str]:
        """Return the paths of a site's files, by their names without digests; about.json included."""
        paths = self.about(name)["paths"]
        assert isinstance(paths, dict)
        return {**paths, "about.json": "about.json"}

    def requested(self, name: str, start: int = 0) -> list[str]:
        """Return the paths within a site that were requested, from a place in the log on.

        The service worker is left out: browsers look for a new one whenever they like.
        """
        asked = [path.removeprefix(f"/{name}/") for _, path, _ in self.log[start:] if path.startswith(f"/{name}/")]
        return [path for path in asked if path != "sw.js"]

    def close(self) -> None:
        """Stop."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _handler(host: Host) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def log_message(self, *_: object) -> None:
            """Print nothing."""

        def parse_request(self) -> bool:
            if not super().parse_request():
                return False
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            host.log.append((self.command, self.path, body))
            return True

        def do_GET(self) -> None:
            path = self.path.partition("?")[0].removeprefix("/")
            if path.endswith("/"):
                path += "index.html"
            content = host.files.get(path)
            tag = f'"{hashlib.sha256(content or b"").hexdigest()[:16]}"'
            if content is None:
                self.send_response(404)
                content = b"not found"
            elif tag == self.headers.get("If-None-Match"):
                self.send_response(304)
                content = b""
            else:
                self.send_response(200)
                self.send_header("Content-Type", CONTENT_TYPES[Path(path).suffix])
            if path in host.files:
                self.send_header("ETag", tag)
                self.send_header("Last-Modified", _LAST_MODIFIED)
            if path in host.never_stored:
                self.send_header("Cache-Control", "no-store")
            if path.startswith("guarded/"):
                for name, value in SECURITY_HEADERS.items():
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    return Handler
