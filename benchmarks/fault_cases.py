"""The commands that faults are inflicted on: what each writes, and what has to be true of it afterwards."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from fault_program import LOGS, Defect, check_account, digest, start

from dpmf.model import Release
from dpmf.ratings.synthetic import make

_TRAIN = "train data --seed 1 --threads 2"
_KEPT = "--checkpoint checkpoint --resume --out release"
_SAVES = 40


@dataclass(frozen=True)
class Case:
    """A command.

    Attributes:
        name: in the table.
        words: its arguments, or a function.
        outputs: files and folders whose bits a run fixes.
        whole: called with the folder at any time: raises `Defect` if something there is half-written.
        certified: whether noise cannot be predicted, so that bits differ and the account is compared instead.
    """

    name: str
    words: str | Callable[[], None]
    outputs: tuple[str, ...] = ("release",)
    whole: Callable[[Path], None] = lambda folder: None
    certified: bool = False


def check_release(folder: Path) -> None:
    """Raise if there is a release that is not whole."""
    if (folder / "release").exists():
        Release.load(folder / "release")


def check_store(folder: Path) -> None:
    """Raise if there is a store that is not whole."""
    from dpmf.engine.store import StoredRatings

    if (folder / "store").exists():
        StoredRatings.open(folder / "store").columns.load()


def check_rows(folder: Path) -> None:
    """Raise if a row that was there is gone or has changed since the last call."""
    from dpmf.compare.results import Table

    table, seen = folder / "comparison" / "runs.csv", LOGS / "rows"
    if not table.exists():
        if seen.exists():
            raise Defect("the table of results is gone")
        return
    Table(table).rows()
    with table.open(newline="") as file:
        lines = [",".join(row) for row in csv.reader(file.read().rpartition("\n")[0].splitlines(keepends=True))]
    if seen.exists() and not set(seen.read_text().splitlines()) <= set(lines):
        raise Defect("a row of the table of results is gone")
    seen.write_text("\n".join(lines))


def save_repeatedly() -> None:
    """Replace a release by another, and that one by the first, many times."""
    before = Release.load("one"), Release.load("other")
    for number in range(_SAVES):
        before[number % 2].save("release")


def check_saved(folder: Path) -> None:
    """Raise unless there is a release, which is one of the two."""
    if digest(folder / "release") not in (digest(folder / "one"), digest(folder / "other")):
        raise Defect("the release is neither the old one nor the new one")


def cases() -> tuple[Case, ...]:
    """Return all commands."""
    seeded = f"{_KEPT} --set noise_seed=1"
    ledger = f"{_KEPT} --ledger ledger.json --cap inf"
    return (
        Case("sgd", f"{_TRAIN} --method sgd --factors 8 --epochs 12 {_KEPT} --model model",
             ("release", "model/model.safetensors", "model/release"), check_release),
        Case("sgd, streamed", f"{_TRAIN} --method sgd --factors 8 --epochs 4 {_KEPT} --memory 20kB --holdout 0.1",
             whole=check_release),
        Case("als, not private", f"{_TRAIN} --method als --epsilon inf --factors 8 --epochs 8 {_KEPT}",
             whole=check_release),
        Case("als, seeded", f"{_TRAIN} --method als --epsilon 5 {seeded}", whole=check_release),
        Case("sgld, seeded", f"{_TRAIN} --method sgld --epsilon 5 {seeded} --epochs 3", whole=check_release),
        Case("gaussian, seeded", f"{_TRAIN} --method gaussian --epsilon 5 --epochs 12 {seeded}", whole=check_release),
        Case("sketch, seeded", f"{_TRAIN} --method sketch --epsilon 5 --epochs 3 {seeded}", whole=check_release),
        Case("ease, seeded", f"{_TRAIN} --method ease --epsilon 50 {seeded}", whole=check_release),
        Case("als, certified", f"{_TRAIN} --method als --epsilon 5 {ledger}", whole=check_release, certified=True),
        Case("gaussian, certified", f"{_TRAIN} --method gaussian --epsilon 5 --epochs 12 {ledger}", whole=check_release,
             certified=True),
        Case("ease, certified", f"{_TRAIN} --method ease --epsilon 50 {ledger}", whole=check_release, certified=True),
        Case("ingest", "data ingest ratings.csv store --scale 1:5 --replace", ("store",), check_store),
        Case("compare", "compare data --methods als --epsilons 5 --modes certified --repeats 2 --seed 1 --threads 2 "
             "--out comparison", (), check_rows),
        Case("saving a release", save_repeatedly, ("release",), check_saved),
    )  # fmt: skip


def make_world(folder: Path) -> None:
    """Write what commands read: a store of synthetic ratings, a text file of more of them, and two releases."""
    from dpmf.engine.store import StoredRatings
    from dpmf.ratings.store.pieces import MemorySource

    folder.mkdir(parents=True)
    ratings = make(200, 80, mean_ratings=25)
    StoredRatings.build(MemorySource(ratings), folder / "data")
    users, rng = np.repeat(np.arange(2000), 20), np.random.default_rng(1)
    items, values = rng.integers(0, 500, len(users)), rng.integers(1, 6, len(users))
    lines = dict.fromkeys(zip(users.tolist(), items.tolist(), strict=True))
    text = "\n".join(f"{user},{item},{value}" for (user, item), value in zip(lines, values.tolist(), strict=False))
    (folder / "ratings.csv").write_text(f"user,item,rating\n{text}\n")
    for name, seed in (("one", 1), ("other", 2)):
        done = start(f"train data --method sgd --factors 64 --epochs 2 --seed {seed} --out {name}", folder).wait()
        assert done == 0
    shutil.rmtree(folder / "tmp")


def prepare(world: Path, folder: Path, case: Case) -> Path:
    """Return a new folder with a copy of what commands read."""
    shutil.rmtree(folder, ignore_errors=True)
    for path in LOGS.iterdir():
        path.unlink()
    shutil.copytree(world, folder / "here")
    if case.whole is check_saved:
        shutil.copytree(world / "one", folder / "here" / "release")
    return folder / "here"


def check_after(case: Case, folder: Path) -> None:
    """Raise `Defect` if something is half-written, lost or not accounted for, at whatever moment a run ended."""
    try:
        case.whole(folder)
        if case.certified:
            check_account(folder)
    except Defect:
        raise
    except Exception as error:
        raise Defect(f"{type(error).__name__}: {error}") from error


def bits(case: Case, folder: Path) -> str:
    """Return a digest of what the case fixes."""
    if case.certified:
        return "there" if (folder / "release" / "release.json").exists() else "missing"
    return " ".join(digest(folder / name) for name in case.outputs)
