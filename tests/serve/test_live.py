"""A new release is served without a pause, and a damaged one not at all."""

from __future__ import annotations

import hashlib
import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from dpmf.errors import DamagedFile
from dpmf.model import Release
from dpmf.serve import live as live_module
from dpmf.serve.server import ServerSettings
from dpmf.serve.service import build

from .client import application, ask
from .process import wait_for
from .samples import CERTIFIED


def test_a_new_release_is_served_and_a_damaged_one_is_not(
    folder: Path, release: Release, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(live_module, "_INTERVAL", 0.02)
    with TestClient(application(folder)) as client:

        def mean_score() -> float:
            return float(ask(client, {"10": 5}, k=5).json()["recommendations"][-1]["score"])

        before = mean_score()
        replace(release, guarantee=CERTIFIED, item_biases=release.item_biases - 1).save(folder)
        wait_for(lambda: mean_score() != before)
        after = mean_score()
        tag = client.get("/release/release.json").headers["etag"]
        facts = (folder / "release.json").read_text()
        (folder / "release.json").write_text(facts.replace("Heat", "Cold"))  # its digest does not fit any more
        wait_for(lambda: "is ignored, the old one stays" in caplog.text)
        assert mean_score() == after
        assert client.get("/release/release.json").headers["etag"] == tag
        replace(release, guarantee=CERTIFIED).save(folder)
        wait_for(lambda: mean_score() == before)


def test_a_release_copied_file_by_file_is_served_once_complete(
    folder: Path,
    release: Release,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(live_module, "_INTERVAL", 0.02)
    replace(release, guarantee=CERTIFIED, item_biases=release.item_biases - 1).save(tmp_path / "next")
    with TestClient(application(folder)) as client:
        before = client.get("/about.json").content
        (folder / "release.json").write_bytes((tmp_path / "next" / "release.json").read_bytes())
        wait_for(lambda: "is ignored, the old one stays" in caplog.text)
        assert client.get("/about.json").content == before  # half of it is no release
        (folder / "release.safetensors").write_bytes((tmp_path / "next" / "release.safetensors").read_bytes())
        wait_for(lambda: client.get("/about.json").content != before)


def test_what_is_served_is_what_was_checked(folder: Path, release: Release, monkeypatch: pytest.MonkeyPatch) -> None:
    """A release that is replaced while it is read, by one that others may not see, is not served in part either."""
    honest, calls = Release.load, itertools.count()

    def load(path: Any, *more: Any) -> Release:
        found = honest(path, *more)
        if next(calls) == 0:
            release.save(folder)  # nothing is proven about it
        return found

    monkeypatch.setattr(Release, "load", load)
    with pytest.raises(DamagedFile, match="changed while it was read"):
        build(folder, recommends=False, check=ServerSettings(str(folder), host="0.0.0.0").check)


def test_requests_succeed_while_the_release_is_replaced_repeatedly(
    folder: Path, release: Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_module, "_INTERVAL", 0.01)
    versions = [replace(release, guarantee=CERTIFIED, mean=3.0 + 0.1 * number) for number in range(6)]
    names = ("release/release.json", "release/release.safetensors")
    with TestClient(application(folder)) as client:
        seen = set()
        for version in versions * 3:
            version.save(folder)
            for _ in range(8):
                assert ask(client, {"10": 5}).status_code == 200
                about = client.get("/about.json").content
                facts, tensors = (client.get(f"/{name}").content for name in names)
                named = json.loads(about)["sha256"]
                if named[names[0]] == hashlib.sha256(facts).hexdigest():  # else it was replaced in between
                    assert named[names[1]] == hashlib.sha256(tensors).hexdigest()
                seen.add(about)
            wait_for(lambda: client.get(f"/{names[0]}").content == (folder / "release.json").read_bytes())
    assert len(seen) > 2
