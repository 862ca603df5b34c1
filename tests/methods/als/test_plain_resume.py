"""Plain alternating least squares, stopped and resumed: observations, damage, and a process that is killed."""

from __future__ import annotations

import math
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from dpmf import Checkpoint, Ratings
from dpmf.errors import DamagedFile, InvalidArgument
from dpmf.methods.als import ALS
from dpmf.methods.als.plain import Factorization, factorize_observations
from dpmf.privacy import Budget
from dpmf.ratings.synthetic import make

Program = Callable[..., subprocess.CompletedProcess[str]]

PLAIN = ALS(n_factors=5, n_epochs=6, budget=Budget(math.inf))


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    return make(150, 60)


def test_observations_go_on_to_the_same_bits(tmp_path: Path, ratings: Ratings) -> None:
    def fit(**more: object) -> Factorization:
        return factorize_observations(ratings, n_factors=4, n_epochs=5, **more)  # type: ignore[arg-type]

    whole = fit()
    fit(callbacks=[lambda record: record.epoch == 2], checkpoint=Checkpoint(tmp_path / "run"))
    resumed = fit(checkpoint=Checkpoint(tmp_path / "run", resume=True))
    for name in ("user_factors", "item_factors"):
        assert getattr(whole, name).tobytes() == getattr(resumed, name).tobytes()
    with pytest.raises(InvalidArgument, match="another run"):
        fit(checkpoint=Checkpoint(tmp_path / "run", resume=True), alpha=2.0)


def test_a_damaged_snapshot_is_refused(tmp_path: Path, ratings: Ratings) -> None:
    PLAIN.fit(ratings, checkpoint=Checkpoint(tmp_path / "run"))
    file = next(tmp_path.glob("run/epoch-*/state.safetensors"))
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(DamagedFile, match="damaged"):
        PLAIN.fit(ratings, checkpoint=Checkpoint(tmp_path / "run", resume=True))


def test_killed_at_a_snapshot_a_run_ends_with_the_same_bits(
    program: Program, signalled: Program, tmp_path: Path
) -> None:
    command = ["train", "synthetic", "--epsilon", "inf", "--factors", "16", "--epochs", "12", "--out"]
    program(*command, "whole", check=True)
    resumable = [*command, "resumed", "--checkpoint", "run", "--resume"]
    for after in (True, False):  # the first snapshot is in place, the second is not yet
        assert signalled(*resumable, kind="os.rename", start="epoch-", after=after).returncode == -signal.SIGKILL
        assert len(list(tmp_path.glob("run/epoch-*"))) == 1
        assert not (tmp_path / "resumed").exists()
    program(*resumable, check=True)
    for name in ("release.safetensors", "release.json"):
        assert (tmp_path / "resumed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
