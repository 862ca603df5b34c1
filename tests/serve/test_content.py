"""Files as the service sends them: compressed, tagged, and cached for as long as they stay true."""

from __future__ import annotations

import gzip
from pathlib import Path

from fastapi.testclient import TestClient


def test_files_are_compressed_and_revalidated(client: TestClient, folder: Path) -> None:
    page = client.get("/")
    assert page.status_code == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.content == client.get("/index.html").content
    facts = client.get("/release/release.json")
    assert facts.content == (folder / "release.json").read_bytes()
    assert facts.headers["content-encoding"] == "gzip"
    plain = client.get("/release/release.json", headers={"accept-encoding": "identity"})
    assert plain.content == facts.content
    assert "content-encoding" not in plain.headers
    again = client.get("/release/release.json", headers={"if-none-match": facts.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert client.head("/release/release.json").content == b""
    for missing in ("/nothing", "/../pyproject.toml", "/release/", "/api/nothing", "/%00"):
        assert client.get(missing).status_code == 404


def test_gzip_is_the_same_bytes(folder: Path, client: TestClient) -> None:
    raw = (folder / "release.json").read_bytes()
    with client.stream("GET", "/release/release.json", headers={"accept-encoding": "gzip"}) as answer:
        assert gzip.decompress(b"".join(answer.iter_raw())) == raw


def test_what_is_named_after_its_content_is_never_asked_for_again(client: TestClient) -> None:
    about = client.get("/about.json").json()
    fixed = {"index.html", "js/recovery.js", "sw.js", "about.json"}
    for path in about["files"]:
        wanted = "no-cache" if path in fixed else "public, max-age=31536000, immutable"
        assert client.get(f"/{path}").headers["cache-control"] == wanted, path
    for path in ("", "release/release.json", "release/release.safetensors"):
        assert client.get(f"/{path}").headers["cache-control"] == "no-cache", path


def test_plain_names_of_the_release_are_the_same_bytes(client: TestClient) -> None:
    paths = client.get("/about.json").json()["paths"]
    for name in ("release/release.json", "release/release.safetensors"):
        plain, named = client.get(f"/{name}"), client.get(f"/{paths[name]}")
        assert plain.content == named.content
        assert plain.headers["etag"] == named.headers["etag"]
    again = client.get(f"/{paths[name]}", headers={"if-none-match": named.headers["etag"]})
    assert (again.status_code, again.headers["cache-control"]) == (304, named.headers["cache-control"])
