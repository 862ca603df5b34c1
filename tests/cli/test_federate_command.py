"""`dpmf federate`: what operators, an inviter and a participant type before the first connection."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .conftest import Command

SERVERS = [
    word
    for role, name, port in (("recommender", "Shop", 1), ("third-party", "Adder", 2))
    for word in (f"--{role}-name", name, f"--{role}-url", f"wss://localhost:{port}", f"--{role}-key", f"{role}.pub")
]
ABOUT = ["--name", "Films", "--items", "items.csv", "--scale", "1:5", "--set", "n_factors=1", "--set", "n_epochs=1"]
PEOPLE = [
    "--per-round",
    3,
    "--epsilon",
    5,
    "--ends",
    "2099-01-31",
    "--inviter",
    "inviter.pub",
    "--admitted-by",
    "Office",
]


@pytest.fixture
def agreed(command: Command) -> Callable[..., None]:
    """Make keys and a signed agreement, in this folder."""

    def agree() -> None:
        Path("items.csv").write_text("item,title\n1,Heat\n2,Alien\n3,Up\n")
        for role in ("recommender", "third-party", "inviter"):
            assert command("federate", "keys", role).returncode == 0
            Path(f"{role}.pub").write_bytes((Path(role) / "identity.pub").read_bytes())
        assert command("federate", "agree", "films.json", *ABOUT, *PEOPLE, *SERVERS).returncode == 0

    return agree


def test_from_keys_to_invitations(command: Command, answer: Any, agreed: Callable[..., None]) -> None:
    agreed()
    assert (Path("inviter") / "identity.pem").stat().st_mode & 0o077 == 0
    joining = ["join", "--agreement", "films.json", "--ratings", "mine.csv", "--ledger", "mine.json"]
    Path("mine.csv").write_text("item,rating\nHeat,5\n")

    def refused(*words: object) -> str:
        done = command("federate", *words)
        assert done.returncode != 0
        (line,) = done.stderr.splitlines()
        return line

    assert "did not sign" in refused(*joining, "--invitation", "invitations/invitation-0000001.txt", "--cap", 8)
    assert "DO NOT JOIN" in command("federate", "explain", "films.json").stdout
    assert "neither server" in refused("sign", "films.json", "--key", "inviter/identity.pem")
    for role, missing in (("recommender", ["third_party"]), ("third-party", [])):
        found = answer("federate", "sign", "films.json", "--key", f"{role}/identity.pem")
        assert found["missing_signatures"] == missing
    assert "Both servers have signed" in command("federate", "explain", "films.json").stdout
    inviting = ["invite", "films.json", "--key", "inviter/identity.pem", "--out", "invitations", "--count"]
    assert command("federate", *inviting, 2).returncode == 0
    assert "is there already" in refused(*inviting, 1)
    mine = ["--invitation", "invitations/invitation-0000001.txt"]
    assert "--cap" in refused(*joining, *mine)
    assert "more than the cap of your ledger, 4: nothing was sent" in refused(*joining, *mine, "--cap", 4)
    assert not Path("mine.json").exists()
    assert "cannot be reached" in refused(*joining, *mine, "--cap", 8, "--patience", 1)
    assert not json.loads(Path("mine.json").read_text())["entries"]
    Path("mine.csv").write_text("item,rating\nHeat,6\n")
    assert "off the scale" in refused(*joining, *mine)
    content = json.loads(Path("films.json").read_text())
    Path("films.json").write_text(json.dumps({**content, "agreement": content["agreement"].replace("Shop", "Shed")}))
    assert "did not sign" in refused(*joining, *mine)


def test_servers_refuse_what_is_not_theirs_in_one_line(command: Command, agreed: Callable[..., None]) -> None:
    agreed()
    for role in ("recommender", "third-party"):
        command("federate", "sign", "films.json", "--key", f"{role}/identity.pem")
    for words, reason in (
        (["--key", "inviter/identity.pem"], "the key is not that of the third party"),
        (["--key", "third-party/identity.pem", "--host", "0.0.0.0"], "TLS"),
        (["--key", "third-party/identity.pem", "--people", "items.csv"], "by invitation"),
    ):
        done = command("federate", "third-party", "--agreement", "films.json", "--folder", "state", *words)
        assert done.returncode != 0
        assert reason in done.stderr.splitlines()[-1]
        assert "Traceback" not in done.stderr
