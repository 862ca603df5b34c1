"""New users on the command line: `train --holdout-users`, and `evaluate` and `compare` with --protocol new-users."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dpmf.evaluation.new_users import FIGURES, NewUsers, measure_ranker, release_ranker, split_users
from dpmf.evaluation.peers import count_items, positives_of
from dpmf.model import Release
from dpmf.ratings import Ratings

Answer = Callable[..., dict[str, Any]]
Command = Callable[..., subprocess.CompletedProcess[str]]

KEYS = {*FIGURES, "recall@20_interval", "recall@50_interval", "ndcg@10_interval", "ndcg@100_interval"}
NEW_USERS = ("--protocol", "new-users")


def test_what_train_holds_out_is_what_evaluate_ranks_for(
    answer: Answer, command: Command, data_folder: Path, small_ratings: Ratings
) -> None:
    line = ("train", data_folder, "--method", "sgd", "--epochs", 3, "--factors", 4, "--seed", 5, "--holdout-users", 0.3)
    trained = answer(*line, "--out", "release")
    evaluated = answer("evaluate", "release", data_folder, *NEW_USERS, "--new-users", 0.3, "--seed", 5)
    protocol = NewUsers(share=0.3, seed=5)
    train, people = split_users(small_ratings, protocol)
    popularity = count_items(positives_of(train, 4.0), train.n_items)
    expected = measure_ranker(release_ranker(Release.load("release")), people, popularity)
    assert set(evaluated) == KEYS | {"users", "users_held_out", "users_left_out", "least_liked"}
    assert evaluated["users_held_out"] == small_ratings.n_users - train.n_users
    for name in KEYS:
        assert evaluated[name] == trained[name] == pytest.approx(expected[name], abs=1e-6)
    assert trained["popularity_ndcg@100"] > 0
    assert trained["rmse"] is None
    printed = command(*line).stdout
    assert f"Trained on {len(train):,} ratings of {train.n_users} users" in printed
    assert "New users: " in printed
    assert "ndcg@100" in printed


def test_from_disk_the_figures_are_the_same(command: Command, data_folder: Path, tmp_path: Path) -> None:
    line = f"train {data_folder} --epsilon 5 --holdout-users 0.3 --set noise_seed=3 --set n_epochs=2 --out"
    done = [command(*line.split(), name, *memory) for name, memory in (("a", ()), ("b", ("--memory", "1KB")))]
    assert ", streamed from disk" in done[1].stdout
    kept = [[row for row in one.stdout.splitlines() if "@" in row or "New users" in row] for one in done]
    assert len(kept[0]) == 7
    assert kept[0] == kept[1]
    assert (tmp_path / "a/release.safetensors").read_bytes() == (tmp_path / "b/release.safetensors").read_bytes()


def test_peers_rank_for_the_same_people(answer: Answer, command: Command, data_folder: Path) -> None:
    line = f"train {data_folder} --feedback implicit --epsilon 5 --holdout-users 0.3 --out r"
    assert answer(*line.split())["recall@20"] > 0
    words = ("evaluate", "r", data_folder, *NEW_USERS, "--new-users", 0.3, "--peers", "--fold-in", 0.5)
    report = answer(*words)
    peers = {name: one for name, one in report["peers"].items() if name != "implicit-als"}
    assert list(peers) == ["popular", "private-popular", "exact-ease"]
    assert all(set(one) == KEYS for one in peers.values())
    assert report["users_left_out"] == 0  # everything counts in implicit feedback
    assert answer(*words, "--positive", 5)["users_left_out"] > 0
    printed = command(*words)
    assert "exact-ease" in printed.stdout
    assert "no guarantee covers them" in printed.stdout


def test_a_comparison_for_new_users(answer: Answer, command: Command, data_folder: Path, tmp_path: Path) -> None:
    quick = "--methods als --epsilons 1,5 --repeats 1 --set sgd.n_epochs=1 --set als.n_epochs=1 --new-users 0.3 --out c"
    words = ("compare", data_folder, *NEW_USERS, *quick.split())
    done = command(*words)
    assert done.returncode == 0, done.stderr
    assert max(map(len, map(str.rstrip, done.stdout.splitlines()))) <= 100
    assert "EASE, not private" in done.stdout
    before = (tmp_path / "c/runs.csv").read_bytes()
    report = answer(*words)
    assert (tmp_path / "c/runs.csv").read_bytes() == before
    rows = {(row["method"], row["asked"]): row for row in report["rows"] if row["method"] != "implicit-als"}
    assert set(rows) == {
        *((name, None) for name in ("sgd", "popular", "exact-ease")),
        *((name, epsilon) for name in ("als", "private-popular") for epsilon in (1, 5)),
    }
    assert all(set(row) >= KEYS and row["rmse"] is None and not row["error"] for row in rows.values())
    (point,) = (one for one in report["points"] if one["method"] == "als" and one["asked"] == 5)
    assert point["interval"]["ndcg@100"] == rows["als", 5]["ndcg@100_interval"]
    page = (tmp_path / "c/report.html").read_text()
    assert "Ranking for new users against ε" in page
    assert "To compare with: " in page
    drawn = answer("plot", "accuracy", "c", "--metric", "ndcg@100", "--out", "p.png")
    assert set(drawn["references"]) >= {"popular", "exact-ease"}
    other = command(*words, "--fold-in", 0.5)
    assert "holds a comparison with other new users" in other.stderr
    implicit = command(*words[:-1], "d", "--set", "als.feedback=implicit", "--epsilons", "1")
    assert implicit.returncode == 0, implicit.stderr


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("train DATA --method sgd --holdout-users 100", "--holdout-users 100 is not a fraction"),
        ("train DATA --method sgd --holdout-users 0.1 --holdout 0.1", "give one of them"),
        ("train DATA --method sgd --holdout-users 0.0001", "hold out more"),
        ("evaluate RELEASE DATA --peers", "--peers rank for new users"),
        ("evaluate RELEASE DATA --fold-in 0.5", "--fold-in belongs to --protocol new-users"),
        ("evaluate RELEASE DATA --protocol new-users -k 5", "-k belongs to --protocol ratings"),
        ("evaluate RELEASE DATA --protocol new-users --new-users 2", "--new-users 2 is not a fraction"),
        ("evaluate RELEASE DATA --protocol new-users --positive 9", "positive=9 is above the scale 1:5"),
        ("compare DATA --protocol new-users --holdout 0.2", "--holdout belongs to --protocol ratings"),
        ("compare DATA --positive 3", "--positive belongs to --protocol new-users"),
    ],
)
def test_bad_input_is_one_line(
    command: Command, data_folder: Path, release_folder: Path, line: str, message: str
) -> None:
    places = {"DATA": data_folder, "RELEASE": release_folder}
    done = command(*(places.get(word, word) for word in line.split()))
    assert done.returncode != 0
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
