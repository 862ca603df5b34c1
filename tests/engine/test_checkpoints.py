"""Snapshots: whole or not there, of this run or refused, and enough to end with the same bits."""

from __future__ import annotations

import contextlib
import errno
import json
import signal
import stat
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from dpmf import SGD, Checkpoint, Model, Ratings
from dpmf.engine import layout
from dpmf.engine.checkpoints import Snapshots, machine_identity
from dpmf.engine.rowfile import MappedRows
from dpmf.engine.store import StoredRatings
from dpmf.errors import DamagedFile, DpmfError, InvalidArgument
from dpmf.files import dump_json, read_json
from dpmf.ratings import Items, Scale
from dpmf.ratings.store.pieces import MemorySource
from dpmf.ratings.synthetic import make
from dpmf.temporary import SUFFIX

Program = Callable[..., subprocess.CompletedProcess[str]]

IDENTITY = {"method": "test"}


@pytest.fixture
def ratings(monkeypatch: pytest.MonkeyPatch) -> Ratings:
    monkeypatch.setattr(layout, "_LEAST_BLOCK", 100)
    return make(150, 60)


def same_bits(one: Model, other: Model) -> bool:
    ours, theirs = (
        (model.user_factors, model.user_biases, model.release.item_factors, model.release.item_biases)
        for model in (one, other)
    )
    return all(a.tobytes() == b.tobytes() for a, b in zip(ours, theirs, strict=True))


@pytest.mark.parametrize("settings", [{}, {"validation": 0.2, "patience": 9}, {"storage": "bfloat16"}])
def test_a_stopped_run_goes_on_to_the_same_bits(tmp_path: Path, ratings: Ratings, settings: dict[str, object]) -> None:
    method = SGD(n_factors=8, n_epochs=9, **settings)  # type: ignore[arg-type]
    whole = method.fit(ratings)
    method.fit(ratings, callbacks=[lambda record: record.epoch == 4], checkpoint=Checkpoint(tmp_path / "run"))
    resumed = method.fit(ratings, checkpoint=Checkpoint(tmp_path / "run", resume=True), n_threads=3)
    assert same_bits(whole, resumed)
    assert [record.train_rmse for record in resumed.history] == [record.train_rmse for record in whole.history]


@pytest.mark.parametrize("storage", ["float32", "bfloat16"])
@pytest.mark.parametrize(("first", "then"), [(0, 0), (0, None), (None, 0), (10**9, 0)])
def test_a_run_goes_on_in_memory_or_from_the_disk(
    tmp_path: Path, ratings: Ratings, first: int | None, then: int | None, storage: Literal["float32", "bfloat16"]
) -> None:
    method = SGD(n_factors=8, n_epochs=6, storage=storage)
    sources = {memory: stored(ratings, tmp_path / f"store-{memory}", memory) for memory in {first, then}}
    method.fit(sources[first], callbacks=[lambda record: record.epoch == 3], checkpoint=Checkpoint(tmp_path / "run"))
    resumed = method.fit(sources[then], checkpoint=Checkpoint(tmp_path / "run", resume=True))
    assert same_bits(method.fit(ratings), resumed)


def stored(ratings: Ratings, folder: Path, memory: int | None) -> Ratings | StoredRatings:
    """Return ratings on the disk, with user factors there too if there is no memory; None is for all in memory."""
    return ratings if memory is None else StoredRatings.build(MemorySource(ratings), folder, memory=memory)


def test_a_disk_that_fills_up_costs_the_newest_snapshot_only(
    tmp_path: Path, ratings: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    method, on_disk = SGD(n_factors=8, n_epochs=4), stored(ratings, tmp_path / "store", 0)
    first = Checkpoint(tmp_path / "run", every_epochs=2)  # else the writer may be busy when the second is due
    method.fit(on_disk, callbacks=[lambda record: record.epoch == 2], checkpoint=first)

    def full(rows: MappedRows) -> Iterator[Any]:
        yield rows.array[:1]
        raise OSError(errno.ENOSPC, "No space left on device")

    plan = Checkpoint(tmp_path / "run", resume=True)
    with monkeypatch.context() as patch:
        patch.setattr(MappedRows, "pieces", full)
        patch.setattr(Snapshots, "latest", lambda *_, **__: None)
        with pytest.raises(OSError, match=r"No space left on device: .*state\.safetensors"):
            method.fit(on_disk, checkpoint=plan)
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [".lock", "SENSITIVE", "epoch-000002"]
    assert same_bits(method.fit(on_disk, checkpoint=plan), method.fit(ratings))


def test_every_bit_of_a_snapshot_counts(tmp_path: Path, ratings: Ratings) -> None:
    method, plan = SGD(n_factors=4, n_epochs=3), Checkpoint(tmp_path / "run", resume=True)
    expected = method.fit(ratings, checkpoint=plan)
    path = tmp_path / "run" / "epoch-000003" / "state.json"
    content = path.read_bytes()
    for place in range(8 * len(content) - 3, 0, -101):
        damaged = bytearray(content)
        damaged[place // 8] ^= 1 << place % 8
        path.write_bytes(damaged)
        with contextlib.suppress(DpmfError):
            found = method.fit(ratings, checkpoint=plan)
            assert same_bits(found, expected)  # it was a space, or the name of the digest
            assert found.history == expected.history


def test_partial_snapshots_of_killed_runs_are_removed(tmp_path: Path, ratings: Ratings) -> None:
    left = [tmp_path / "run" / f".epoch-00000{epoch}.abcd_123{SUFFIX}" for epoch in (1, 2, 9)]
    for folder in left:
        folder.mkdir(parents=True)
        (folder / "state.safetensors").write_text("profiles")
    method, plan = SGD(n_factors=4, n_epochs=2), Checkpoint(tmp_path / "run", resume=True)
    method.fit(ratings, checkpoint=plan)
    left[0].mkdir()
    for name in ("SENSITIVE", "started.json"):
        (tmp_path / "run" / f".{name}.abcd_123{SUFFIX}").touch()
    method.fit(ratings, checkpoint=plan)  # writes no snapshot
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [".lock", "SENSITIVE", "epoch-000002"]


def test_a_snapshot_of_an_earlier_version_has_no_digest(tmp_path: Path, ratings: Ratings) -> None:
    method, plan = SGD(n_factors=4, n_epochs=3), Checkpoint(tmp_path / "run", resume=True)
    expected = method.fit(ratings, checkpoint=plan)
    path = tmp_path / "run" / "epoch-000003" / "state.json"
    facts = read_json(path)
    del facts["digest"]
    path.write_text(dump_json(facts))
    assert same_bits(method.fit(ratings, checkpoint=plan), expected)


def test_a_run_keeps_others_from_its_checkpoint(tmp_path: Path, ratings: Ratings) -> None:
    method, refused = SGD(n_factors=4, n_epochs=2), []

    def intrude(_: object) -> None:
        with pytest.raises(InvalidArgument, match="another process is using") as caught:
            method.fit(ratings, checkpoint=Checkpoint(tmp_path / "run", resume=True))
        refused.append(caught)

    method.fit(ratings, checkpoint=Checkpoint(tmp_path / "run"), callbacks=[intrude])
    assert len(refused) == 2


def test_a_finished_run_is_not_run_again(tmp_path: Path, ratings: Ratings) -> None:
    method = SGD(n_factors=4, n_epochs=3)
    first = method.fit(ratings, checkpoint=Checkpoint(tmp_path / "run"))
    epochs: list[int] = []
    again = method.fit(
        ratings, checkpoint=Checkpoint(tmp_path / "run", resume=True), callbacks=[lambda r: epochs.append(r.epoch)]
    )
    assert same_bits(first, again)
    assert not epochs


def test_another_run_is_refused(tmp_path: Path, ratings: Ratings) -> None:
    SGD(n_factors=4, n_epochs=2).fit(ratings, checkpoint=Checkpoint(tmp_path / "run"))
    plan = Checkpoint(tmp_path / "run", resume=True)
    with pytest.raises(InvalidArgument, match="another run"):
        SGD(n_factors=5, n_epochs=2).fit(ratings, checkpoint=plan)
    with pytest.raises(InvalidArgument, match="another run"):
        SGD(n_factors=4, n_epochs=2).fit(make(151, 60), checkpoint=plan)
    wider = replace(ratings, scale=Scale(0, 100))
    renamed = replace(ratings, catalogue=Items.of(np.arange(1000, 1060)))
    for other in (wider, renamed):
        with pytest.raises(InvalidArgument, match="another run"):
            SGD(n_factors=4, n_epochs=2).fit(other, checkpoint=plan)
    with pytest.raises(InvalidArgument, match="resume it, or choose another folder"):
        Checkpoint(tmp_path / "run")


@pytest.mark.parametrize("memory", [None, 0])
def test_a_damaged_snapshot_is_refused(tmp_path: Path, ratings: Ratings, memory: int | None) -> None:
    method, source = SGD(n_factors=4, n_epochs=2), stored(ratings, tmp_path / "store", memory)
    method.fit(source, checkpoint=Checkpoint(tmp_path / "run"))
    file = next(tmp_path.glob("run/epoch-*/state.safetensors"))
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(DamagedFile, match="damaged"):
        method.fit(source, checkpoint=Checkpoint(tmp_path / "run", resume=True))


@pytest.mark.parametrize(
    "damage",
    [
        lambda facts: facts.pop("facts"),
        lambda facts: facts["facts"].pop("history"),
        lambda facts: facts["facts"]["history"].pop(),
        lambda facts: facts.update(identity=[1]),
        lambda facts: facts.update(tensors=5),
    ],
)
def test_damaged_facts_are_refused(tmp_path: Path, ratings: Ratings, damage: Callable[[Any], object]) -> None:
    method = SGD(n_factors=4, n_epochs=2)
    method.fit(ratings, checkpoint=Checkpoint(tmp_path / "run"))
    file = next(tmp_path.glob("run/epoch-*/state.json"))
    facts = json.loads(file.read_text())
    damage(facts)
    facts.pop("digest", None)  # as an earlier version wrote it
    file.write_text(json.dumps(facts))
    with pytest.raises(DamagedFile, match="damaged"):
        method.fit(ratings, checkpoint=Checkpoint(tmp_path / "run", resume=True))


def test_only_the_owner_can_read_snapshots(tmp_path: Path) -> None:
    with Snapshots(Checkpoint(tmp_path / "run"), IDENTITY) as snapshots:
        snapshots.save(1, {"U": np.zeros(3)}, {})
    for folder in (tmp_path / "run", tmp_path / "run" / "epoch-000001"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_an_error_while_writing_reaches_the_run(tmp_path: Path) -> None:
    snapshots = Snapshots(Checkpoint(tmp_path / "run"), IDENTITY)
    (tmp_path / "run").write_text("in the way")
    snapshots.save(1, {"U": np.zeros(3)}, {})
    with pytest.raises(OSError, match="exists"):
        snapshots.finish()


def test_a_folder_that_cannot_be_created_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(InvalidArgument, match="cannot be created"):
        Checkpoint(tmp_path / "file" / "run")


def test_snapshots_are_due_by_epochs_or_by_time(tmp_path: Path) -> None:
    snapshots = Snapshots(Checkpoint(tmp_path / "run", every_epochs=3), IDENTITY)
    assert [snapshots.is_due(epoch) for epoch in (1, 2, 3)] == [False, False, True]
    assert Snapshots(Checkpoint(tmp_path / "run", every_epochs=99, every_seconds=1e-9), IDENTITY).is_due(1)


@pytest.mark.parametrize("plan", [{"every_epochs": 0}, {"every_seconds": 0.0}])
def test_a_plan_that_cannot_be_kept_is_refused(tmp_path: Path, plan: dict[str, float]) -> None:
    with pytest.raises(InvalidArgument, match="every_"):
        Checkpoint(tmp_path, **plan)  # type: ignore[arg-type]


@pytest.mark.parametrize("limit", [[], ["--memory", "20kB"]])
def test_killed_at_a_snapshot_a_run_ends_with_the_same_bits(
    program: Program, signalled: Program, tmp_path: Path, limit: list[str]
) -> None:
    command = ["train", "synthetic", "--method", "sgd", "--factors", "8", "--epochs", "12", "--out"]
    program(*command, "whole", check=True)
    resumable = [*command, "resumed", "--checkpoint", "run", "--resume", *limit]
    for kind, after, n_snapshots in (
        ("os.rename", True, 1),  # the first snapshot is in place
        ("os.rename", False, 1),  # the second is written but for its name
        ("shutil.rmtree", False, 2),  # the second is in place, and the first not yet removed
    ):
        assert signalled(*resumable, kind=kind, start="epoch-", after=after).returncode == -signal.SIGKILL
        assert len(list(tmp_path.glob("run/epoch-*"))) == n_snapshots
        assert not (tmp_path / "resumed").exists()
    program(*resumable, check=True)
    for name in ("release.safetensors", "release.json"):
        assert (tmp_path / "resumed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_the_machine_is_what_kernels_are_compiled_for(monkeypatch: pytest.MonkeyPatch) -> None:
    import numba

    here = machine_identity()
    monkeypatch.setattr(numba.config, "CPU_NAME", "haswell")
    named = machine_identity()
    monkeypatch.setattr(numba.config, "CPU_FEATURES", "+avx2")
    narrowed = machine_identity()
    assert named["cpu"].startswith("haswell ")
    assert len({one["cpu"] for one in (here, named, narrowed)}) == 3
    assert here["numba"] == narrowed["numba"]
