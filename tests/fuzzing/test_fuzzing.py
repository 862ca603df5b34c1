"""Mutated files and messages are read as something valid or refused in one line; nothing else ever happens."""

from __future__ import annotations

import logging
import random
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from .mutations import mutate_bytes
from .targets import FILES, Target, messages, mutate, read_in_page, read_or_refuse

N_MUTATIONS = 200
FEWER = {"certified checkpoint": 60, "store": 100}  # whose readers take a while
QUICK = [target for target in FILES if target.name != "ratings.csv"]  # which benchmarks/fuzz.py has time for


@pytest.mark.parametrize("target", QUICK, ids=lambda target: target.name)
def test_files_are_read_or_refused(target: Target, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)
    (tmp_path / "valid").mkdir()
    target.write(tmp_path / "valid")
    valid = {str(path.relative_to(tmp_path / "valid")): path.read_bytes()
             for path in sorted((tmp_path / "valid").rglob("*")) if path.is_file()}  # fmt: skip
    assert read_or_refuse(lambda: target.read(tmp_path / "valid"))
    refused, n_mutations = 0, FEWER.get(target.name, N_MUTATIONS)
    for number in range(n_mutations):
        rng = random.Random(f"{target.name} {number}")
        changed = mutate(target, valid, tmp_path / "mutated", rng)
        try:
            refused += not read_or_refuse(lambda: target.read(tmp_path / "mutated"))
        except BaseException as error:
            error.add_note(f"mutation {number}, of {changed}")
            raise
    assert refused > n_mutations // 10


@pytest.mark.parametrize("protocol", messages())
def test_messages_are_read_or_refused(protocol: str) -> None:
    refused = 0
    for content, read in messages()[protocol]:
        read(content)
        for number in range(N_MUTATIONS):
            changed = mutate_bytes(content, random.Random(f"{protocol} {number}"))
            refused += not read_or_refuse(partial(read, changed))
    assert refused > N_MUTATIONS


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no node to run the page's scripts")
def test_the_page_reads_or_refuses_releases(tmp_path: Path) -> None:
    target = replace(FILES[0], forge=lambda folder: None)  # the page knows of no digest in release.json
    (tmp_path / "valid").mkdir()
    target.write(tmp_path / "valid")
    valid = {path.name: path.read_bytes() for path in (tmp_path / "valid" / "release").iterdir()}
    for number in range(N_MUTATIONS):
        mutate(target, valid, tmp_path / str(number), random.Random(f"page {number}"))
    outcomes = read_in_page(tmp_path)
    assert len(outcomes) == N_MUTATIONS
    assert set(outcomes) == {"read", "refused"}
    assert outcomes.count("refused") > N_MUTATIONS // 10
