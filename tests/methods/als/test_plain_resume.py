"""Plain alternating least squares, stopped and resumed: observations, damage, and a process that is killed."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dpmf import Checkpoint, Ratings
from dpmf.errors import DamagedFile, InvalidArgument
from dpmf.methods.als import ALS
from dpmf.methods.als.plain import Factorization, factorize_observations
from dpmf.privacy import Budget
from dpmf.ratings.synthetic import make

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


def test_killed_at_any_moment_a_run_ends_with_the_same_bits(tmp_path: Path) -> None:
    command = f"{sys.executable} -m dpmf train synthetic --epsilon inf --factors 16 --epochs 150 --out".split()
    subprocess.run([*command, f"{tmp_path}/whole"], check=True, capture_output=True)
    resumable = [*command, f"{tmp_path}/resumed", "--checkpoint", f"{tmp_path}/run", "--resume"]
    for _ in range(2):
        before = set(tmp_path.glob("run/epoch-*"))
        running = subprocess.Popen(resumable, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        began = time.monotonic()
        while running.poll() is None and set(tmp_path.glob("run/epoch-*")) <= before and time.monotonic() - began < 60:
            time.sleep(0.001)
        time.sleep(0.05)
        os.kill(running.pid, signal.SIGKILL)
        assert running.wait() == -signal.SIGKILL, "the run was over before it could be killed"
        assert not (tmp_path / "resumed").exists()
    subprocess.run(resumable, check=True, capture_output=True)
    for name in ("release.safetensors", "release.json"):
        assert (tmp_path / "resumed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
