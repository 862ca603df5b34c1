"""Snapshots of a training run: written in the background, atomically, and verified when read.

A checkpoint folder is sensitive: it holds user factors, or, of a certified run, exact training errors beside public
state. Each snapshot is a folder inside it that appears by one rename, so whenever a run is killed, the newest folder
there is a complete snapshot.

>>> import tempfile
>>> plan = Checkpoint(Path(tempfile.mkdtemp()) / "run", resume=True)
>>> with Snapshots(plan, {"method": "sgd"}) as snapshots:
...     snapshots.save(3, {"U": np.ones(2, np.float32)}, {"history": []})
>>> snapshot = Snapshots(plan, {"method": "sgd"}).latest()
>>> snapshot.epoch, snapshot.tensors["U"].tolist()
(3, [1.0, 1.0])
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.rowfile import MappedRows
from dpmf.engine.tensorfile import Tensor, read_tensors, write_tensors
from dpmf.errors import DamagedFile, DpmfError, InvalidArgument
from dpmf.files import dump_json, is_sealed, new_folder, read_json, sealed, sha256_of, write_text
from dpmf.temporary import remove_leftovers
from dpmf.version import __version__

_TENSOR_FILE = "state.safetensors"
_FACTS_FILE = "state.json"
_WARNING = "This folder holds profiles of people, to continue a training run. Do not publish it.\n"


@dataclass(frozen=True)
class Checkpoint:
    """Where and how often to snapshot a run.

    Attributes:
        folder: created if it does not exist, readable by its owner only.
        every_epochs: the number of epochs between snapshots.
        every_seconds: the number of seconds between snapshots, if that comes first; None for epochs only.
        resume: resume from the newest snapshot in the folder, if there is one. Otherwise the folder must be new.
    """

    folder: Path | str
    every_epochs: int = 1
    every_seconds: float | None = None
    resume: bool = False

    def __post_init__(self) -> None:
        if self.every_epochs < 1:
            raise InvalidArgument(f"every_epochs={self.every_epochs}: give at least 1")
        if self.every_seconds is not None and not self.every_seconds > 0:
            raise InvalidArgument(f"every_seconds={self.every_seconds}: give a positive number of seconds")
        folder = Path(self.folder).absolute()
        parent = next(one for one in (folder, *folder.parents) if one.exists())
        if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
            raise InvalidArgument(f"{self.folder} cannot be created: {parent} is not a folder that can be written to")
        if not self.resume and _snapshots_in(folder):
            raise InvalidArgument(f"{self.folder} holds a checkpoint: resume it, or choose another folder")


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The state after an epoch."""

    epoch: int
    tensors: dict[str, NDArray[Any]]
    facts: dict[str, Any]


class Parts(NamedTuple):
    """The state after an epoch, in files that others wrote.

    Attributes:
        epoch: after which it is.
        folder: of the files.
        checksums: SHA-256 by file.
        facts: as those of `Snapshot`.
    """

    epoch: int
    folder: Path
    checksums: dict[str, str]
    facts: dict[str, Any]


class Snapshots:
    """The snapshots of one run.

    Args:
        plan: where and how often to write them.
        identity: what two runs must have in common to be the same run: configuration, data, machine. JSON values.
        may_copy: whether there is enough memory for a copy of the state.
    """

    def __init__(self, plan: Checkpoint, identity: Mapping[str, Any], *, may_copy: bool = True) -> None:
        self._plan = plan
        self._may_copy = may_copy
        self._folder = Path(plan.folder)
        self._identity = json.loads(json.dumps(identity))
        self._last_epoch = 0
        self._last_time = time.monotonic()
        self._writer: threading.Thread | None = None
        self._error: BaseException | None = None

    def is_due(self, epoch: int) -> bool:
        """Whether to take a snapshot after this epoch; never while the previous one is still being written."""
        self._raise_error()
        if self._writer is not None and self._writer.is_alive():
            return False
        seconds = self._plan.every_seconds
        late = seconds is not None and time.monotonic() - self._last_time >= seconds
        return late or epoch - self._last_epoch >= self._plan.every_epochs

    def save(self, epoch: int, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
        """Copy the current state, and write the snapshot in the background.

        Training may continue once this returns. The copy is in memory or, if there is no room for it or a tensor is
        mapped from a disk, in the snapshot's own file.
        """
        self.finish()
        straight = not self._may_copy or any(isinstance(tensor, MappedRows) for tensor in tensors.values())
        state = tensors if straight else {name: np.array(tensor) for name, tensor in tensors.items()}
        steps = self._steps(epoch, state, dict(facts))
        if straight:
            # Straight into the file: a scratch copy would be written and read once more, and take twice the space. The
            # system accepts bytes at the speed of memory while its cache has room; the slow parts, flushing to the
            # disk and the checksum, are left to the background.
            next(steps)
        self._last_epoch, self._last_time = epoch, time.monotonic()
        self._writer = threading.Thread(target=self._finish_steps, args=(steps,), name="dpmf-snapshot")
        self._writer.start()

    def finish(self) -> None:
        """Wait until the last snapshot is on the disk."""
        if self._writer is not None:
            self._writer.join()
            self._writer = None
        self._raise_error()

    def save_parts(self, epoch: int, write: Callable[[Path], Mapping[str, str]], facts: Mapping[str, Any]) -> None:
        """Take a snapshot whose files are written by others, and return when it is on the disk.

        Args:
            epoch: after which it is.
            write: lets others write files to a folder; returns their SHA-256 by name.
            facts: as those of `save`.
        """
        self.finish()
        with self._completed(epoch, facts) as (work, content):
            content["parts"] = dict(write(work))
            missing = [name for name in content["parts"] if not (work / name).is_file()]
            if missing:
                raise DpmfError(
                    f"{self._folder} is not the same folder everywhere, {missing[0]} was written elsewhere: keep "
                    "checkpoints on a disk that all nodes share"
                )
        self._last_epoch, self._last_time = epoch, time.monotonic()

    def latest_parts(self) -> Parts | None:
        """Return the newest snapshot that `save_parts` took, or None if there is none; raises as `latest` does."""
        found = self._newest()
        if found is None:
            return None
        folder, epoch, facts = found
        parts = facts.get("parts")
        if not isinstance(parts, dict) or not is_sealed(facts):
            raise DamagedFile(f"{folder / _FACTS_FILE} is damaged: remove {folder} to resume from an older snapshot")
        self._last_epoch = epoch
        return Parts(epoch, folder, {str(name): str(one) for name, one in parts.items()}, dict(facts["facts"]))

    def latest(self, into: Mapping[str, Tensor] | None = None) -> Snapshot | None:
        """Return the newest snapshot, or None if there is none.

        Args:
            into: arrays to read the tensors of these names into, which saves the memory of a copy. After an error
                their content is undefined.

        Raises:
            InvalidArgument: the snapshot belongs to another run: other data, configuration, CPU or Numba.
            DamagedFile: the snapshot is damaged.
        """
        found = self._newest()
        if found is None:
            return None
        folder, epoch, facts = found
        if not (folder / _TENSOR_FILE).is_file() or sha256_of(folder / _TENSOR_FILE) != facts.get("sha256"):
            raise DamagedFile(f"{folder / _TENSOR_FILE} is damaged: remove {folder} to resume from an older snapshot")
        self._last_epoch = epoch
        tensors = read_tensors(folder / _TENSOR_FILE, list(facts["tensors"]), into)
        return Snapshot(epoch, tensors, dict(facts["facts"]))

    def _newest(self) -> tuple[Path, int, dict[str, Any]] | None:
        """Return folder, epoch and facts of the newest snapshot of this run."""
        if self._folder.is_dir():  # a run that has nothing left to write would leave them there
            remove_leftovers(self._folder, r"\.[\w.-]+\.")
        folders = _snapshots_in(self._folder)
        if not folders:
            return None
        folder = folders[-1]
        facts = read_json(folder / _FACTS_FILE)
        try:
            theirs, epoch, names = dict(facts["identity"]), int(facts["epoch"]), list(facts["tensors"])
            dict(facts["facts"])
            sealed_or_old = is_sealed(facts) if "digest" in facts else True  # earlier versions had no digest
            if not sealed_or_old or not all(isinstance(name, str) for name in names):
                raise ValueError
        except (KeyError, TypeError, ValueError, OverflowError):
            raise DamagedFile(
                f"{folder / _FACTS_FILE} is damaged: remove {folder} to resume from an older snapshot, or start over"
            ) from None
        if _method_name(theirs) != _method_name(self._identity):  # before digests that differ because of it
            raise InvalidArgument(
                f"{self._folder} is a checkpoint of another run (of the method {_method_name(theirs)} there, "
                f"{_method_name(self._identity)} here): use the same method, or another folder"
            )
        for name in sorted({*theirs, *self._identity}):
            if theirs.get(name) != self._identity.get(name):
                there, here = _differing(theirs.get(name), self._identity.get(name))
                raise InvalidArgument(
                    f"{self._folder} is a checkpoint of another run ({name}: {there!r} there, {here!r} here): use the "
                    "same data and settings, or another folder"
                )
        return folder, epoch, facts

    @contextlib.contextmanager
    def _completed(self, epoch: int, facts: Mapping[str, Any]) -> Iterator[tuple[Path, dict[str, Any]]]:
        """Yield the folder of a new snapshot and what its facts will be, which are written at the end."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_text(self._folder / "SENSITIVE", _WARNING)
        # A name with a dot is a partial snapshot of a run that was killed.
        older = [*_snapshots_in(self._folder), *self._folder.glob(".epoch-*")]
        content = {"epoch": epoch, "identity": self._identity, "facts": dict(facts), "tensors": []}
        with new_folder(self._folder / f"epoch-{epoch:06d}", mode=0o700) as work:
            yield work, content
            write_text(work / _FACTS_FILE, dump_json(sealed(content)))
        for folder in older:
            if folder.exists():  # what a kill left of this very snapshot is gone already
                shutil.rmtree(folder)

    def _steps(self, epoch: int, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> Iterator[None]:
        """Write a snapshot in two steps; the tensors are needed for the first only."""
        with self._completed(epoch, facts) as (work, content):
            write_tensors(work / _TENSOR_FILE, tensors)
            yield
            content["tensors"] = sorted(tensors)
            content["sha256"] = sha256_of(work / _TENSOR_FILE)

    def _finish_steps(self, steps: Iterator[None]) -> None:
        try:
            for _ in steps:
                pass
        except BaseException as error:
            self._error = error

    def _raise_error(self) -> None:
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def __enter__(self) -> Snapshots:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.finish()


def _method_name(identity: Mapping[str, Any]) -> Any:
    method = identity.get("method")
    return method.get("name") if isinstance(method, dict) else method


def _differing(one: Any, other: Any) -> tuple[Any, Any]:
    """Return two values; if both are objects, only the fields in which they differ."""
    if not (isinstance(one, dict) and isinstance(other, dict)):
        return one, other
    names = [name for name in {**one, **other} if one.get(name) != other.get(name)]
    return {name: one.get(name) for name in names}, {name: other.get(name) for name in names}


def _snapshots_in(folder: Path) -> list[Path]:
    return sorted(folder.glob("epoch-" + "[0-9]" * 6)) if folder.is_dir() else []


def machine_identity() -> dict[str, str]:
    """Return what results depend on besides configuration and data: CPU features and versions.

    The features are those that kernels are compiled for: of this CPU, unless fewer were asked for.
    """
    import numba
    from llvmlite import binding

    asked_for: str | None = numba.config.CPU_FEATURES  # type: ignore[attr-defined]  # NUMBA_CPU_FEATURES
    name = numba.config.CPU_NAME or binding.get_host_cpu_name()  # type: ignore[attr-defined]  # NUMBA_CPU_NAME
    if asked_for is None:
        asked_for = ",".join(sorted(name for name, there in binding.get_host_cpu_features().items() if there))
    return {
        "dpmf": __version__,
        "numba": numba.__version__,
        "cpu": f"{name} {zlib.crc32(asked_for.encode()):08x}",
    }
