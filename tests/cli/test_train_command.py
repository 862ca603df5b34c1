"""`dpmf train`: what it reports, saves and tells, for people and for programs."""

from __future__ import annotations

import json
import stat
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from dpmf.methods import SGD
from dpmf.model import Model, Release
from dpmf.ratings import Ratings

Answer = Callable[..., dict[str, Any]]
Command = Callable[..., subprocess.CompletedProcess[str]]

RANKING_KEYS = ["feedback", "recall@10", "ndcg@10", "popularity_recall@10", "popularity_ndcg@10"]
TRAIN_KEYS = [
    "method",
    "mode",
    "rmse",
    "mae",
    "baseline_rmse",
    "biases_rmse",
    "kld",
    "kld_top_users",
    "rmse_top_users",
    "by_popularity",
    "factors",
    "learnt",
    "epsilon",
    "delta",
    "unit",
    "neighbours",
    "certified",
    "assumptions",
    "seconds",
    "epoch_seconds",
    "updates_per_second",
    "streamed",
    "peak_memory",
    "out",
]


def test_train_reports_exactly_the_documented_keys(answer: Answer, data_folder: Path) -> None:
    report = answer("train", data_folder, "--method", "sgd", "--epochs", 3, "--factors", 4, "--holdout", 0.1)
    assert list(report) == TRAIN_KEYS
    assert (report["method"], report["mode"], report["certified"], report["streamed"]) == ("sgd", "none", False, False)
    assert report["epsilon"] is report["delta"] is report["unit"] is report["neighbours"] is report["out"] is None
    assert 0 < report["mae"] < report["rmse"] < 3
    assert report["seconds"] > report["epoch_seconds"] > 0


def test_train_without_a_hold_out_has_no_error_figures(answer: Answer, data_folder: Path) -> None:
    report = answer("train", data_folder, "--method", "sgd", "--epochs", 1)
    assert list(report) == TRAIN_KEYS
    assert report["rmse"] is report["mae"] is report["baseline_rmse"] is None


def test_the_default_is_private_and_can_be_verified(answer: Answer, command: Command, data_folder: Path) -> None:
    report = answer("train", data_folder, "--epsilon", 2, "--holdout", 0.1, "--out", "release")
    assert set(report) == {*TRAIN_KEYS, *RANKING_KEYS}
    assert (report["method"], report["mode"], report["certified"]) == ("joint", "certified", True)
    assert (report["epsilon"], report["delta"], report["unit"]) == (2.0, 1e-6, "user")
    assert report["biases_rmse"] > 0
    assert [row["items_up_to"] for row in report["by_popularity"]] == [0.01, 0.1, 0.5, 1.0]
    verdict = answer("verify", "release")
    assert (verdict["ok"], verdict["certified"], verdict["recomputed_epsilon"]) == (True, True, 2.0)
    assert "private item biases alone" in command("train", data_folder, "--epsilon", 2, "--holdout", 0.1).stdout


@pytest.mark.parametrize(("purpose", "method"), [("ranking", "ease"), ("ratings", "als"), ("both", "joint")])
def test_a_purpose_chooses_the_method(
    answer: Answer, command: Command, data_folder: Path, purpose: str, method: str
) -> None:
    report = answer("train", data_folder, "--for", purpose, "--epsilon", 30, "--holdout", 0.1, "--out", "release")
    assert report["method"] == method
    assert (report["rmse"] is not None) == (purpose != "ranking")
    assert ("recall@10" in report) == (purpose != "ratings")
    Path("mine.csv").write_text("item,rating\n1,5\n2,1\n")
    found = command("recommend", "release", "--ratings", "mine.csv", "--json").stdout  # stderr may have a note
    (first, *_) = json.loads(found)["recommendations"]
    assert ("rating" in first) == (purpose == "both")
    figures = answer("evaluate", "release", data_folder, "--holdout", 0.1)
    assert ("rmse" in figures) == (purpose != "ranking")


def test_without_ratings_it_ranks(answer: Answer, data_folder: Path) -> None:
    report = answer("train", data_folder, "--feedback", "implicit", "--epsilon", 30, "--holdout", 0.1)
    assert (report["method"], report["feedback"], report["rmse"]) == ("ease", "implicit", None)
    Path("had.csv").write_text("user,item\n" + "".join(f"u{n},{n % 7}\nu{n},{n % 5}\n" for n in range(60)))
    line = ["train", "had.csv", "--feedback", "implicit", "--epsilon", 30, "--items-public", "--out", "release"]
    assert answer(*line)["method"] == "ease"
    assert "recall@10" in answer("evaluate", "release", "had.csv")


def test_infinity_is_not_private(answer: Answer, data_folder: Path) -> None:
    report = answer("train", data_folder, "--epsilon", "inf", "--factors", 4, "--holdout", 0.1)
    assert (report["epsilon"], report["mode"], report["certified"]) == (None, "none", False)


def test_a_ledger_stops_what_goes_past_its_cap(answer: Answer, command: Command, data_folder: Path) -> None:
    line = ("train", data_folder, "--epsilon", 2, "--factors", 2, "--epochs", 1, "--ledger", "ledger.json")
    assert answer(*line, "--cap", 2.5, "--out", "first")["certified"]
    second = command(*line, "--out", "second")
    assert second.returncode == 1
    assert "more than the cap" in second.stderr
    assert not Path("second").exists()
    assert answer("ledger", "ledger.json")["entries"][0]["label"]


def test_a_signed_release_is_verified_with_the_public_key(answer: Answer, command: Command, data_folder: Path) -> None:
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    Path("private.pem").write_bytes(private)
    Path("public.pem").write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    answer(
        "train", data_folder, "--epsilon", 2, "--factors", 1, "--epochs", 1, "--out", "r", "--sign-key", "private.pem"
    )
    assert answer("verify", "r", "--public-key", "public.pem")["signed"]


def test_users_may_want_a_smaller_epsilon(answer: Answer, data_folder: Path) -> None:
    Path("budgets.csv").write_text("user,epsilon\nperson-00003,0.5\nnobody,0.1\n")
    report = answer(
        "train", data_folder, "--epsilon", 2, "--factors", 1, "--epochs", 1, "--user-budgets", "budgets.csv"
    )
    assert any("independently of their ratings" in one for one in report["assumptions"])
    assert (report["user_epsilons"]["least"], report["user_epsilons"]["most"]) == (0.5, 2.0)


def test_train_saves_what_the_library_would_train(
    answer: Answer, data_folder: Path, small_ratings: Ratings, tmp_path: Path
) -> None:
    words = ["--method", "sgd", "--factors", 4, "--epochs", 3, "--seed", 5, "--set", "decay=0.5"]
    report = answer("train", data_folder, *words, "--threads", 2, "--out", "new/out", "--model", "model")
    assert report["out"] == "new/out"
    expected = SGD(n_factors=4, n_epochs=3, seed=5, decay=0.5).fit(small_ratings)
    saved, model = Release.load("new/out"), Model.load("model")
    assert saved.item_factors.tobytes() == expected.release.item_factors.tobytes()
    assert model.user_factors.tobytes() == expected.user_factors.tobytes()
    assert saved.items.titles == small_ratings.catalogue.titles
    assert stat.S_IMODE(Path("model").stat().st_mode) == 0o700
    assert sorted(file.name for file in tmp_path.iterdir()) == ["model", "new"]


def test_train_tells_people_the_error_and_that_nothing_is_private(command: Command, data_folder: Path) -> None:
    done = command(
        "train", data_folder, "--method", "sgd", "--epochs", 2, "--holdout", 0.2, "--out", "o", "--model", "m"
    )
    assert done.returncode == 0
    for words in ("Trained on", "rmse", "not private", "no guarantee covers them", "Release saved in o", "sensitive"):
        assert words in done.stdout


def test_train_reads_plain_files_as_told(answer: Answer, tmp_path: Path) -> None:
    (tmp_path / "my.txt").write_text("who;what;stars\nann;Heat;5\nbob;Heat;3\nann;Up;-1\n")
    layout = "--columns user=who,item=1,rating=stars --scale 1:5 --missing -1 --delimiter ; --header"
    report = answer("train", "my.txt", "--method", "sgd", *layout.split(), "--out", "r", "--set", "n_epochs=2")
    assert report["out"] == "r"
    assert list(Release.load("r").items.ids) == ["Heat", "Up"]
    assert str(Release.load("r").scale) == "1:5"


def test_holding_out_the_last_ratings(answer: Answer, tmp_path: Path) -> None:
    rows = [f"{user},{item},{1 + (user + item) % 5},{item}" for user in range(9) for item in range(9)]
    (tmp_path / "timed.csv").write_text("user,item,rating,timestamp\n" + "\n".join(rows) + "\n")
    words = ["timed.csv", "--method", "sgd", "--epochs", 1, "--split", "last", "--holdout", 2]
    assert answer("train", *words)["rmse"] > 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--factors", 3, "--set", "n_factors=2"], "--factors and --set n_factors are the same: give one of them"),
        (["--epochs", 3, "--set", "n_epochs=2"], "--epochs and --set n_epochs are the same"),
        (["--seed", 0, "--set", "seed=2"], "--seed and --set seed are the same"),
        (["--items-public", "--set", "items_public=true"], "--items-public and --set items_public are the same"),
        (["--mode", "certified", "--set", "mode=certified"], "--mode and --set mode are the same"),
        (["--feedback", "implicit", "--set", "feedback=explicit"], "--feedback and --set feedback are the same"),
        (["--set", "seed=1", "--set", "seed=2"], "--set seed is given twice"),
    ],
)
def test_a_setting_is_given_once(command: Command, data_folder: Path, given: list[Any], message: str) -> None:
    done = command("train", data_folder, "--method", "als", "--epsilon", "inf", *given)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert message in done.stderr


def test_one_factor_is_not_several(command: Command, data_folder: Path) -> None:
    shown = command("train", data_folder, "--method", "sgd", "--factors", 1, "--epochs", 1).stdout
    assert "1 epoch with 1 factor in " in " ".join(shown.split())


def test_continuing_from_a_release_is_charged_to_the_same_ledger(
    answer: Answer, command: Command, small_ratings: Ratings, tmp_path: Path
) -> None:
    Path("items.csv").write_text("item\n" + "".join(f"{item}\n" for item in small_ratings.catalogue.ids))
    for name, part in zip(("old", "new"), small_ratings.split(0.4), strict=True):
        users, items = small_ratings.user_ids.array[part.users], small_ratings.catalogue.ids.array[part.items]
        rows = [f"{user},{item},{value:g}" for user, item, value in zip(users, items, part.values, strict=True)]
        Path(f"{name}.csv").write_text("\n".join(["user,item,rating", *rows]))
    read = ("--items", "items.csv", "--scale", "1:5")
    first = ("train", "old.csv", *read, "--method", "als", "--factors", 2, "--epochs", 2, "--epsilon", 2)
    answer(*first, "--out", "first", "--ledger", "data.ledger", "--cap", 4)
    line = ("train", "new.csv", *read, "--continue", "first", "--epochs", 2)
    report = answer(*line, "--epsilon", 1, "--ledger", "data.ledger", "--out", "second")
    assert (report["method"], report["certified"]) == ("als", True)
    assert 2 < report["epsilon"] < 3  # of both, as for whoever is in both
    assert any("earlier release" in one for one in report["assumptions"])
    assert answer("verify", "second")["ok"]
    spent = answer("ledger", "data.ledger")["spent"]
    assert 2 < spent < 3
    Path("wishes.csv").write_text(f"{small_ratings.user_ids[0]},0.1\n")
    done = command(*line, "--epsilon", 0.5, "--ledger", "data.ledger", "--user-budgets", "wishes.csv")
    assert "People in all data sets of the ledger have spent epsilon 2." in done.stdout
    assert "Epsilon that users spend beside that of the earlier release: 0.1 at least" in done.stdout
    refusals = {
        ("--epsilon", 1): "--continue needs --ledger FILE",
        (
            "--epsilon",
            1,
            "--ledger",
            "other.ledger",
            "--cap",
            9,
        ): "the ledger other.ledger has no entry",
        ("--epsilon", 4, "--ledger", "data.ledger"): "more than the cap",
        ("--epsilon", "inf", "--ledger", "data.ledger"): "--continue is for certified runs of als",
        ("--epsilon", 1, "--method", "joint", "--ledger", "data.ledger"): "--continue is for certified runs of als",
        ("--epsilon", 1, "--factors", 3, "--ledger", "data.ledger"): "--factors 3: the release to start from has",
    }
    for options, words in refusals.items():
        done = command(*line, *options, "--out", "none")
        assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
        assert words in done.stderr
        assert not Path("none").exists()
    assert not Path("other.ledger").exists()
    honest = Release.load("first")
    plan = {**honest.configuration["plan"], "epsilon": 9.0}
    replace(honest, configuration={**honest.configuration, "plan": plan}).save("forged")
    forged = ("--continue", "forged", "--epsilon", 1, "--ledger", "data.ledger")
    done = command("train", "new.csv", *read, *forged)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    assert "--continue forged: the release contradicts itself" in done.stderr
