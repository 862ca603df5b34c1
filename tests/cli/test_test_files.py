"""`--test FILE` and `--split time` of `train`, `evaluate` and `compare`."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmf import Release, evaluate
from dpmf.ratings import Ratings
from dpmf.ratings.alignment import beside

Answer = Callable[..., dict[str, Any]]
Command = Callable[..., subprocess.CompletedProcess[str]]
READ = ("--no-header", "--scale", "1:5")
SGD = ("--method", "sgd", "--epochs", 3, "--factors", 2)
COUNTS = {
    "test_ratings": 300, "test_unknown_users": 1, "test_unknown_items": 1, "test_left_out": 2,
    "test_also_trained_on": 1,
}  # fmt: skip


@pytest.fixture(autouse=True)
def _r3() -> None:
    """Write files of the form of Yahoo! R3: people choose what to rate for training, and chance does for testing."""
    rng = np.random.default_rng(3)
    n_users, n_items = 80, 40
    quality = rng.normal(0, 0.7, n_items)
    train, test = [], []
    for user in range(1, n_users + 1):
        ratings = np.clip(np.rint(3 + quality + rng.normal(0, 0.8, n_items)), 1, 5)
        random, others = np.split(rng.permutation(n_items), [5])
        chosen = rng.choice(others, 10, replace=False, p=(odds := np.exp(ratings[others])) / odds.sum())
        train += [f"{user}\t{item + 1}\t{ratings[item]:.0f}" for item in chosen]
        test += [f"{user}\t{item + 1}\t{ratings[item]:.0f}" for item in random] if user <= 60 else []
    test += ["9999\t1\t3", "1\t777\t4", train[0]]
    Path("train.txt").write_text("\n".join(train) + "\n")
    Path("test.txt").write_text("\n".join(test) + "\n")


def test_a_published_test_file_is_tested_on(answer: Answer, command: Command) -> None:
    line = ("train", "train.txt", *READ, *SGD, "--test", "test.txt")
    report = answer(*line, "--out", "release")
    assert {name: report[name] for name in COUNTS} == COUNTS
    train, test = (Ratings.read(name, scale=(1, 5), header=False) for name in ("train.txt", "test.txt"))
    release = Release.load("release")
    expected = evaluate(release, beside(train, test).ratings, known=train)
    judged = answer("evaluate", "release", "train.txt", *READ, "--test", "test.txt")
    assert {name: judged[name] for name in COUNTS} == COUNTS
    for name in ("rmse", "recall@10", "ndcg@10"):
        assert judged[name] == pytest.approx(expected[name], abs=1e-6)
    printed = command(*line)
    assert "Trained on 800 ratings of 80 users" in printed.stdout
    said = "300 ratings of the test file; left out: 2 of 1 users and 1 items that are not in the training data"
    assert f"Tested on {said}; left out, because they are trained on: 1" in printed.stdout


def test_from_disk_the_figures_are_the_same(answer: Answer) -> None:
    for name in ("train", "test"):
        answer("data", "ingest", f"{name}.txt", name, *READ)
    line = ("train", "train.txt", *READ, *SGD, "--test", "test.txt")
    ways = [line, (*line, "--memory", "1KB"), ("train", "train", *SGD, "--test", "test", "--memory", "1KB")]
    reports = [answer(*way) for way in ways]
    assert [one["streamed"] for one in reports] == [False, True, True]
    for one in reports:
        assert {name: one[name] for name in COUNTS} == COUNTS
        for figure in ("rmse", "mae", "baseline_rmse"):
            assert one[figure] == pytest.approx(reports[0][figure], abs=1e-6)


def test_a_comparison_tests_on_the_file_in_every_repeat(command: Command) -> None:
    quick = "--items-public --methods als --epsilons 5 --repeats 2 --set sgd.n_epochs=1 --set als.n_epochs=1 --out c"
    line = ("compare", "train.txt", *READ, *quick.split())
    report = json.loads(command(*line, "--test", "test.txt", "--json").stdout)
    assert {name: report[name] for name in COUNTS} == COUNTS
    free = [row["rmse"] for row in report["rows"] if row["method"] == "own-mean"]
    assert len(free) == 2
    assert len(set(free)) == 1
    assert "Tested on 300 ratings of a file of their own" in Path("c/report.html").read_text()
    other = command(*line)
    assert other.returncode == 1
    assert "comparison with other" in other.stderr.splitlines()[-1]


def test_a_time_splits_whatever_the_dates_look_like(answer: Answer) -> None:
    rows = [(user, item, 1 + (user + item) % 5, item) for user in range(30) for item in range(1, 21)]
    seconds = [",".join(map(str, (*row[:3], 86_400 * row[3]))) for row in rows]
    dates = [",".join(map(str, (*row[:3], f"1970-01-{row[3] + 1:02}"))) for row in rows]
    for name, lines in (("seconds", seconds), ("dates", dates)):
        Path(f"{name}.csv").write_text("\n".join(["user,item,rating,timestamp", *lines]))
    found = [
        answer("train", f"{name}.csv", "--scale", "1:5", *SGD, "--split", "time", "--holdout", cut, *memory)
        for name in ("seconds", "dates")
        for cut in ("1970-01-16", "1296000")
        for memory in ((), ("--memory", "1KB"))
    ]
    assert {one["baseline_rmse"] for one in found} == {found[0]["baseline_rmse"]}
    assert answer("evaluate", _release(answer), "dates.csv", "--split", "time", "--holdout", "1970-01-16")["rmse"] > 0


def _release(answer: Answer) -> str:
    answer("train", "dates.csv", "--scale", "1:5", *SGD, "--out", "of-dates")
    return "of-dates"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--test test.txt --holdout 0.1", "--test test.txt and --holdout each say what to test on: give one"),
        ("--test test.txt --split last", "--test test.txt and --split each say"),
        ("--test test.txt --holdout-users 0.1", "--test test.txt and --holdout-users each say"),
        ("--test nothing.txt", "no data at nothing.txt"),
        ("--test train.txt", "nothing is left of the test file"),
        ("--holdout 2003-01-01", "--holdout 2003-01-01 is not a number; a date goes with --split time"),
        ("--holdout 0.1 --split time", "--holdout 0.1 with --split time should be the time from which on"),
        ("--holdout 0 --split time", "--holdout 0.0 with --split time should be the time"),
        ("--holdout soon --split time", "--holdout soon with --split time should be the time"),
        ("--holdout 2003-01-01 --split time", "--split time needs a timestamp for every rating"),
        ("--holdout 9999 --split time --columns user=0,item=1,rating=2,timestamp=1", "give an earlier one"),
        ("--holdout 1 --split time --columns user=0,item=1,rating=2,timestamp=1", "give a later one"),
    ],
)
def test_what_cannot_be_tested_on_is_refused_in_one_line(options: str, words: str, command: Command) -> None:
    done = command("train", "train.txt", *READ, *SGD, *options.split(), "--out", "release")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert words in done.stderr
    assert not Path("release").exists()
