"""The service in this process, and questions to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx2 as httpx
from fastapi.testclient import TestClient

from dpmf.serve.limits import Limits
from dpmf.serve.server import ServerSettings
from dpmf.serve.service import build


def application(folder: Path, recommends: bool = True) -> Limits:
    """Return the service for a release."""
    return build(folder, recommends=recommends, check=ServerSettings(str(folder)).check)


def ask(client: TestClient, ratings: dict[str, float], **more: Any) -> httpx.Response:
    """Ask for recommendations."""
    return client.post("/api/recommend", json={"ratings": ratings, **more})
