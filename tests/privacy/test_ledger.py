"""A ledger composes, refuses, survives crashes, and cannot be overspent by runs at the same time."""

from __future__ import annotations

import json
import math
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dpmf.errors import BudgetExceeded, DamagedFile, InvalidArgument
from dpmf.files import digest_of
from dpmf.privacy import Budget, GaussianEvent, Guarantee, PoissonGaussianEvent
from dpmf.privacy import ledger as ledger_module
from dpmf.privacy.accounting import epsilon_of
from dpmf.privacy.ledger import Ledger
from dpmf.temporary import SUFFIX

EVENT = GaussianEvent("item sums", 5.0, 1, 40)
SMALL = Guarantee.certified_by(Budget(1.0), [EVENT], releases=["item factors"])
SEEDED = Guarantee.certified_by(Budget(1.0), [EVENT], releases=["item factors"], seeded=True)
PAPER = Guarantee.paper(
    epsilon=0.1, delta=0, unit="user", neighbours="add-remove", claim="a theorem", releases=["item factors"],
    assumptions=["The chain has converged."],
)  # fmt: skip


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.json"


def test_releases_compose_until_the_cap(path: Path) -> None:
    ledger = Ledger(path, Budget(1.5))
    assert ledger.spent() == 0.0
    for number in (1, 2):
        ledger.spend(f"run {number}", SMALL)
        assert ledger.spent() == pytest.approx(epsilon_of([EVENT] * number, 1e-6), abs=2e-6)
    assert ledger.spent() < 2 * epsilon_of([EVENT], 1e-6)  # composed, not added
    before = path.read_bytes()
    with pytest.raises(BudgetExceeded, match=r"'run 3' asks for epsilon=0\.83.*, epsilon=1\.2.* is spent.*cap \(1\.5"):
        ledger.spend("run 3", SMALL)
    assert path.read_bytes() == before
    assert [entry.label for entry in Ledger(path).entries()] == ["run 1", "run 2"]
    assert Ledger(path).entries()[0].guarantee == SMALL


def test_a_run_that_goes_on_is_entered_once(path: Path) -> None:
    ledger = Ledger(path, Budget(1.0))
    ledger.spend("run", SMALL, run="a1")
    before = path.read_bytes()
    Ledger(path).spend("run", SMALL, run="a1")
    assert path.read_bytes() == before
    assert [entry.run for entry in Ledger(path).entries()] == ["a1"]
    with pytest.raises(BudgetExceeded):
        ledger.spend("run", SMALL, run="b2")
    other = Guarantee.certified_by(Budget(1.0), [EVENT], releases=["item biases"])
    with pytest.raises(InvalidArgument, match="another guarantee for this run"):
        ledger.spend("run", other, run="a1")


def test_what_a_kill_left_of_the_ledger_is_removed_by_a_run_that_writes_none(path: Path) -> None:
    Ledger(path, Budget(1.0)).spend("run", SMALL, run="a1")
    path.with_name(f".ledger.json.abcd_123{SUFFIX}").write_text("half of it")
    Ledger(path).spend("run", SMALL, run="a1")
    assert sorted(one.name for one in path.parent.iterdir()) == ["ledger.json", "ledger.json.lock"]


def test_a_run_without_a_name_is_entered_every_time(path: Path) -> None:
    ledger = Ledger(path, Budget(9.0))
    for _ in range(2):
        ledger.spend("run", SMALL)
    assert [entry.run for entry in ledger.entries()] == [None, None]
    assert '"run":' not in path.read_text()


def test_full_batches_and_sampled_steps_compose(path: Path) -> None:
    sampled = PoissonGaussianEvent("gradients", 2.0, 0.01, 100, 100)
    other = Guarantee.certified_by(Budget(1.0), [sampled], releases=["item factors"])
    ledger = Ledger(path, Budget(3.0))
    ledger.spend("one", SMALL)
    ledger.spend("two", other)
    assert ledger.spent() == pytest.approx(epsilon_of([EVENT, sampled], 1e-6), abs=2e-6)


@pytest.mark.parametrize("guarantee", [PAPER, SEEDED, Guarantee.none()])
def test_what_is_not_certified_counts_as_unbounded(path: Path, guarantee: Guarantee) -> None:
    ledger = Ledger(path, Budget(1000.0))
    with pytest.raises(BudgetExceeded, match="epsilon=inf"):
        ledger.spend("claim", guarantee)
    assert ledger.entries() == ()
    endless = Ledger(path.with_name("endless.json"), Budget(math.inf))
    endless.spend("claim", guarantee)
    assert endless.spent() == math.inf
    assert Ledger(endless.path).cap == Budget(math.inf)


def test_units_and_neighbours_are_not_mixed(path: Path) -> None:
    ledger = Ledger(path, Budget(5.0))
    replaced = Guarantee.certified_by(Budget(1.0, neighbours="replace"), [EVENT], releases=["sums"])
    with pytest.raises(InvalidArgument, match="neighbours='replace' cannot be added to a ledger with"):
        ledger.spend("other", replaced)
    rating = Guarantee.certified_by(Budget(1.0, unit="rating"), [EVENT], releases=["sums"])
    with pytest.raises(InvalidArgument, match="unit='rating' cannot be added"):
        ledger.spend("other", rating)


def test_a_claim_of_any_unit_is_recorded_and_unbounded(path: Path) -> None:
    claim = Guarantee.paper(
        epsilon=0.1, delta=0.1, unit="rating", neighbours="replace", claim="a theorem", releases=["item factors"],
        assumptions=["much"],
    )  # fmt: skip
    with pytest.raises(BudgetExceeded):
        Ledger(path, Budget(5.0)).spend("claimed", claim)
    endless = Ledger(path.with_name("endless"), Budget(math.inf))
    endless.spend("claimed", claim)
    assert endless.spent() == math.inf


def test_the_cap_is_fixed_when_the_ledger_is_made(path: Path) -> None:
    with pytest.raises(InvalidArgument, match="no ledger"):
        Ledger(path)
    assert not list(path.parent.iterdir())
    Ledger(path, Budget(1.0))
    assert Ledger(path, Budget(1.0)).cap == Ledger(path).cap == Budget(1.0)
    for other in (Budget(2.0), Budget(1.0, 1e-5), Budget(1.0, unit="rating")):
        with pytest.raises(InvalidArgument, match="cannot change"):
            Ledger(path, other)
    with pytest.raises(InvalidArgument, match="no folder"):
        Ledger(path.parent / "nowhere" / "ledger.json", Budget(1.0))


def test_another_name_is_the_same_ledger(path: Path) -> None:
    Ledger(path, Budget(1.0))
    link = path.with_name("link.json")
    link.symlink_to(path)
    Ledger(link).spend("by the link", SMALL)
    assert link.is_symlink()
    assert Ledger(path).spent() > 0.8


def changed(path: Path, change: dict[str, Any], *, seal: bool) -> None:
    content = {**json.loads(path.read_text()), **change}
    if seal:
        content["digest"] = digest_of({name: content[name] for name in content if name != "digest"})
    path.write_text(json.dumps(content))


@pytest.mark.parametrize("seal", [True, False])
@pytest.mark.parametrize(
    "change",
    [
        {"entries": [{}]}, {"entries": [1]}, {"entries": None}, {"epsilon": -1.0}, {"epsilon": "x"}, {"unit": "item"},
        {"version": 2}, {"format": "dpmf-release"}, {"extra": 1},
        {"entries": [{"label": 1, "date": 2, "guarantee": 3}]},
    ],
)  # fmt: skip
def test_a_damaged_ledger_is_refused_and_kept(path: Path, change: dict[str, Any], seal: bool) -> None:
    Ledger(path, Budget(1.0)).spend("run", SMALL)
    changed(path, change, seal=seal)
    before = path.read_bytes()
    with pytest.raises(DamagedFile) as refused:
        Ledger(path, Budget(1.0))
    assert "\n" not in str(refused.value)
    assert path.read_bytes() == before


def test_an_edited_or_truncated_ledger_is_refused(path: Path) -> None:
    ledger = Ledger(path, Budget(1.0))
    ledger.spend("run", SMALL)
    whole = path.read_bytes()
    changed(path, {"entries": []}, seal=False)
    with pytest.raises(DamagedFile, match=r"digest.*backup"):
        ledger.spend("again", SMALL)
    for length in (0, 1, 40, len(whole) - 3):
        path.write_bytes(whole[:length])
        with pytest.raises(DamagedFile):
            ledger.spend("again", SMALL)
        assert path.read_bytes() == whole[:length]


def test_what_could_not_be_written_was_not_spent_and_says_so(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger(path, Budget(1.0))

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(ledger_module, "write_text", fail)
        with pytest.raises(OSError, match="No space"):
            ledger.spend("run", SMALL)
    assert ledger.entries() == ()


RUN = """
import os, signal, sys
from dpmf.errors import BudgetExceeded
from dpmf.privacy import Budget, GaussianEvent, Guarantee
from dpmf.privacy.ledger import Ledger
from dpmf.temporary import SUFFIX

path, label, what_then = sys.argv[1:]
event = GaussianEvent("item sums", 5.0, 1, 40)
guarantee = Guarantee.certified_by(Budget(1.0), [event], releases=["item factors"])
ledger = Ledger(path, Budget(2.0))
print("ready", flush=True)
sys.stdin.readline()
try:
    for number in range(9):
        ledger.spend(f"{label}-{number}", guarantee)
        print("spent", flush=True)
        if what_then == "die":
            os.kill(os.getpid(), signal.SIGKILL)
except BudgetExceeded:
    print("refused", flush=True)
"""


def start(path: Path, label: str, what_then: str) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", RUN, str(path), label, what_then]
    return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_runs_at_the_same_time_cannot_overspend(path: Path) -> None:
    runs = [start(path, f"run {number}", "go on") for number in range(4)]
    for run in runs:
        assert run.stdout is not None
        assert run.stdout.readline() == "ready\n"
    for run in runs:
        assert run.stdin is not None
        run.stdin.write("go\n")
        run.stdin.flush()
    printed = [run.communicate(timeout=600)[0] for run in runs]
    assert all(run.returncode == 0 for run in runs)
    ledger = Ledger(path)
    n_spent = sum(text.count("spent") for text in printed)
    assert n_spent == len(ledger.entries())
    assert ledger.spent() <= 2.0 < epsilon_of([EVENT] * (n_spent + 1), 1e-6)
    assert all("refused" in text for text in printed)


def test_a_run_that_dies_after_spending_has_spent(path: Path) -> None:
    run = start(path, "doomed", "die")
    run.communicate("go\n", timeout=600)
    assert run.returncode == -signal.SIGKILL
    ledger = Ledger(path)
    assert [entry.label for entry in ledger.entries()] == ["doomed-0"]
    assert ledger.spent() == pytest.approx(epsilon_of([EVENT], 1e-6), abs=2e-6)
    ledger.spend("the next one goes on", SMALL)
