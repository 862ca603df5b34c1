"""Clusters of our own: started again where Ray gives up too soon, with nothing left of the attempts before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dpmf.engine.cluster import Ray
from dpmf.engine.ray_connect import own_cluster
from dpmf.errors import DpmfError


class Node:
    """What Ray starts, and leaves running when it gives up."""

    def __init__(self, library: Library) -> None:
        library.running.append(self)
        self.library = library
        if len(library.folders) <= library.failures:
            raise Exception("The current node timed out during startup. This could happen because of …")

    def kill_all_processes(self, **_: Any) -> None:
        self.library.running.remove(self)


class Library:
    """Ray, which gives up some times before it starts."""

    def __init__(self, failures: int) -> None:
        self.failures, self.folders, self.running, self.ended = failures, list[str](), list[Node](), 0

    def is_initialized(self) -> bool:
        return False

    def init(self, *, _temp_dir: str, **_: Any) -> None:
        self.folders.append(_temp_dir)
        assert Path(_temp_dir).is_dir()
        Node(self)

    def shutdown(self) -> None:
        self.running.clear()
        self.ended += 1


@pytest.fixture(autouse=True)
def _token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_AUTH_TOKEN", "given")


@pytest.mark.parametrize("failures", [0, 1, 4])
def test_a_start_that_took_too_long_is_tried_again(failures: int) -> None:
    library = Library(failures)
    with own_cluster(library, Ray("local:2"), 2):
        assert len(library.running) == 1
        assert len(library.folders) == failures + 1
    assert library.ended == 1
    assert not Path(library.folders[0]).exists()


def test_it_ends_with_one_line_that_says_why() -> None:
    library = Library(1000)
    with (
        pytest.raises(DpmfError, match="Ray did not start within half a minute, 5 times: is this machine busy"),
        own_cluster(library, Ray("local:2"), 2),
    ):
        pass
    assert not library.running
    assert len(library.folders) == 5
    assert not Path(library.folders[0]).exists()


def test_a_path_that_is_too_long_for_sockets_is_an_error_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library(0)

    def init(**_: Any) -> None:
        raise OSError("validate_socket_filename failed: AF_UNIX path length cannot exceed 107 bytes: /far/away")

    monkeypatch.setattr(library, "init", init)
    with (
        pytest.raises(DpmfError, match=r"is too long for the paths of Ray's sockets: set TMPDIR to a shorter one"),
        own_cluster(library, Ray("local:2"), 2),
    ):
        pass
