"""The files that describe nodes of a cluster as containers: what can be checked of them without a container engine."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from dpmf.cli.train import train

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "containers"
INSTRUCTIONS = {"FROM", "ENV", "COPY", "RUN", "USER", "WORKDIR", "ENTRYPOINT", "CMD"}


def instructions() -> list[tuple[str, str]]:
    """Return the instructions of the container file with what follows each."""
    lines = (FOLDER / "Containerfile").read_text().replace("\\\n", " ").splitlines()
    return [(line.split(maxsplit=1)[0], line.split(maxsplit=1)[1]) for line in lines if line and line[0] != "#"]


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((FOLDER / "compose.yaml").read_text())
    return found


def test_the_container_file_has_known_instructions_and_copies_what_is_there() -> None:
    found = instructions()
    assert found[0][0] == "FROM"
    assert {name for name, _ in found} == INSTRUCTIONS
    for name, rest in found:
        if name == "COPY":
            *sources, _ = rest.split()
            assert all((ROOT / source).exists() for source in sources)
    text = " ".join(rest for name, rest in found if name == "RUN")
    extra = re.search(r"/src\[(\w+)\]", text)
    assert extra is not None
    assert f"\n{extra[1]} = [" in (ROOT / "pyproject.toml").read_text()
    users = [place for place, (name, _) in enumerate(found) if name == "USER"]
    assert users
    assert max(place for place, (name, _) in enumerate(found) if name == "RUN") < users[0]  # nothing runs as root later


def test_services_are_three_nodes_and_a_program_on_a_network_of_their_own(compose: dict[str, Any]) -> None:
    services = compose["services"]
    assert set(services) == {"head", "node", "program"}
    assert 1 + services["node"]["deploy"]["replicas"] == 3
    assert compose["networks"]["inside"]["internal"] is True
    for service in services.values():
        assert service["networks"] == ["inside"]
        assert [volume.partition(":")[0] for volume in service["volumes"]] == list(compose["volumes"])
        build = service["build"]
        assert ((FOLDER / build["context"]).resolve() / build["dockerfile"]).is_file()
        assert set(service.get("depends_on", [])) <= set(services)


def test_commands_have_options_that_exist(compose: dict[str, Any]) -> None:
    scripts = pytest.importorskip("ray.scripts.scripts", reason="Ray is not installed: pip install 'dpmf[ray]'")
    services = compose["services"]
    commands = [shlex.join(services[name]["entrypoint"]) for name in ("head", "node")]
    commands.append(services["program"]["entrypoint"][2].partition("&&")[0])
    for command in commands:
        assert command.startswith("ray start ")
        options = scripts.start.make_context("start", _words(command), resilient_parsing=True).params
        assert any(options[name] for name in ("head", "address"))
    told = re.search(r"run --rm program (train .*)", (FOLDER / "compose.yaml").read_text())
    assert told is not None
    given = train.make_context("train", told[1].split()[1:]).params
    assert given["cluster"] == "head:6379"
    assert isinstance(train, click.Command)


def _words(command: str) -> list[str]:
    return [word for word in shlex.split(command)[2:] if word not in (">", "/dev/null")]
