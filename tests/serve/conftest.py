"""What tests of the page and of the service share: one browser, one host, a site, and a client."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from dpmf.model import Release

from .browser import started_browser
from .client import application
from .host import Host
from .samples import CERTIFIED, random_release


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Return a headless browser; visitors share it and nothing it stores."""
    with started_browser() as browser:
        yield browser


@pytest.fixture(scope="session")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """Return a static host."""
    host = Host(tmp_path_factory.mktemp("releases"))
    yield host
    host.close()


@pytest.fixture(scope="session")
def address(host: Host) -> str:
    """Return the address of a site of `random_release()`, which no test changes."""
    return host.site(random_release(), "plain")


@pytest.fixture
def folder(release: Release, tmp_path: Path) -> Path:
    """Return the folder of a certified release of six items."""
    replace(release, guarantee=CERTIFIED).save(tmp_path / "release")
    return tmp_path / "release"


@pytest.fixture
def client(folder: Path) -> Iterator[TestClient]:
    """Return a client of the service, in this process."""
    with TestClient(application(folder)) as client:
        yield client
