"""What commands on little data leave unloaded: loading it would take longer than all they compute."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from dpmf.model import Ranking, Release

HEAVY = ("numba", "llvmlite", "scipy", "dp_accounting", "duckdb", "pandas", "pyarrow", "matplotlib", "cryptography")
COMMANDS = """
import sys
from dpmf.cli import main
for release in ("rates", "ranks", "both"):
    mine = "recommend {} --ratings mine.csv --exclude-genre Space --most-per-genre 2"
    for words in (mine, "similar {} 2", "evaluate {} DATA"):
        sys.argv = ["dpmf", *(DATA if word == "DATA" else word for word in words.format(release).split()), "--json"]
        main()
print(sorted(set(HEAVY) & set(sys.modules)))
"""


def test_little_data_are_served_without_a_compiler(
    data_folder: Path, release_folder: Path, ranking_of: Callable[..., Ranking]
) -> None:
    loaded = Release.load(release_folder)
    n_items = len(loaded.items)
    nothing = np.zeros((n_items, 0), np.float32), np.zeros(n_items, np.float32)
    loaded.save("rates")
    replace(loaded, ranking=ranking_of(n_items)).save("both")
    replace(loaded, ranking=ranking_of(n_items), item_factors=nothing[0], item_biases=nothing[1]).save("ranks")
    Path("mine.csv").write_text("item,rating\nThe Silent Orbit,5\n2,4\n")
    program = f"HEAVY, DATA = {HEAVY}, {str(data_folder)!r}\n{COMMANDS}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=True)
    *answers, loaded_modules = done.stdout.splitlines()
    assert (len(answers), loaded_modules, done.stderr) == (9, "[]", "")
