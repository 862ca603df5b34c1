"""The noisy sums of the stage that is under way, on the recommender's disk as soon as they are known.

What a stage learnt is stored when it ends. If the process is killed between two of its rounds, the sums of the first
are needed again, and the third party opens no round again whose sum has left it.

>>> import tempfile
>>> sums = StoredSums(Path(tempfile.mkdtemp()))
>>> sums.store(4, (Noisy(np.ones(2), 0.5, 8.0, np.array([0, 3])),))
>>> sums.of(3), sums.of(4)[0].answered.tolist()
(None, [0, 3])
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dpmf.errors import DamagedFile
from dpmf.files import load_tensors, new_file, save_tensors
from dpmf.methods.certified.questions import Noisy

_PREFIX, _SUFFIX = "round-", ".safetensors"


class StoredSums:
    """Sums by the number of their round.

    Args:
        folder: a folder for them alone.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def store(self, number: int, answers: Sequence[Noisy]) -> None:
        """Store what a round came to; when this returns, it is on the disk."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        tensors = {f"values {place}": np.asarray(one.values, np.float64) for place, one in enumerate(answers)}
        tensors["noise"] = np.array([(one.sd, one.steps) for one in answers], np.float64)
        tensors["answered"] = np.asarray(answers[0].answered, np.int64)
        with new_file(self._path(number), mode=0o600) as temporary:
            save_tensors(temporary, tensors)

    def of(self, number: int, n_answers: int = 1) -> tuple[Noisy, ...] | None:
        """Return what a round came to; None if it is not known."""
        if not self._path(number).exists():
            return None
        names = [f"values {place}" for place in range(n_answers)]
        found = load_tensors(self._path(number), [*names, "noise", "answered"])
        if found["noise"].shape != (n_answers, 2):
            raise DamagedFile(f"{self._path(number)} is damaged; restore it from a backup")
        return tuple(
            Noisy(found[name], float(sd), float(steps), found["answered"])
            for name, (sd, steps) in zip(names, found["noise"], strict=True)
        )

    def drop_before(self, number: int) -> None:
        """Delete sums of earlier rounds: their stage is over."""
        for path in self._folder.glob(f"{_PREFIX}*{_SUFFIX}"):
            if path < self._path(number):
                path.unlink()

    def _path(self, number: int) -> Path:
        return self._folder / f"{_PREFIX}{number:06d}{_SUFFIX}"
