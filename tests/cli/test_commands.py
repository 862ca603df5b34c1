"""Every command does its job, for people and for programs."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

import dpmf
from dpmf.errors import InvalidArgument
from dpmf.evaluation import evaluate
from dpmf.methods import SGD
from dpmf.model import Model, Release
from dpmf.ratings import Ratings
from dpmf.ratings.catalogue import CATALOGUE

Command = Callable[..., subprocess.CompletedProcess[str]]

TRAIN_KEYS = [
    "method", "mode", "rmse", "mae", "baseline_rmse", "biases_rmse", "kld", "kld_top_users",
    "rmse_top_users", "by_popularity", "factors", "epsilon", "delta", "unit", "neighbours", "certified",
    "assumptions", "seconds", "epoch_seconds", "updates_per_second", "streamed", "peak_memory", "out",
]  # fmt: skip


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def answer(command: Command) -> Callable[..., dict[str, Any]]:
    """Return a function that runs a command with --json and returns the one object it prints."""

    def ask(*arguments: object) -> dict[str, Any]:
        done = command(*arguments, "--json")
        assert (done.returncode, done.stderr) == (0, "")
        content: dict[str, Any] = json.loads(done.stdout)
        return content

    return ask


Answer = Callable[..., dict[str, Any]]


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
    assert list(report) == TRAIN_KEYS
    assert (report["method"], report["mode"], report["certified"]) == ("als", "certified", True)
    assert (report["epsilon"], report["delta"], report["unit"]) == (2.0, 1e-6, "user")
    assert report["biases_rmse"] > 0
    assert [row["items_up_to"] for row in report["by_popularity"]] == [0.01, 0.1, 0.5, 1.0]
    verdict = answer("verify", "release")
    assert (verdict["ok"], verdict["certified"], verdict["recomputed_epsilon"]) == (True, True, 2.0)
    assert "private item biases alone" in command("train", data_folder, "--epsilon", 2, "--holdout", 0.1).stdout


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
    report = answer(
        "train", "my.txt", "--method", "sgd", "--columns", "user=who,item=1,rating=stars", "--scale", "1:5",
        "--missing", -1, "--delimiter", ";", "--header", "--out", "r", "--set", "n_epochs=2",
    )  # fmt: skip
    assert report["out"] == "r"
    assert list(Release.load("r").items.ids) == ["Heat", "Up"]
    assert str(Release.load("r").scale) == "1:5"


def test_holding_out_the_last_ratings(answer: Answer, tmp_path: Path) -> None:
    rows = [f"{user},{item},{1 + (user + item) % 5},{item}" for user in range(9) for item in range(9)]
    (tmp_path / "timed.csv").write_text("user,item,rating,timestamp\n" + "\n".join(rows) + "\n")
    words = ["timed.csv", "--method", "sgd", "--epochs", 1, "--split", "last", "--holdout", 2]
    assert answer("train", *words)["rmse"] > 0


def test_evaluate_measures_what_the_library_measures(
    answer: Answer, data_folder: Path, release_folder: Path, small_ratings: Ratings
) -> None:
    report = answer("evaluate", release_folder, data_folder, "--holdout", 0.2, "--seed", 3)
    known, test = small_ratings.split(0.2, seed=3)
    expected = evaluate(Release.load(release_folder), test, known=known)
    assert {"rmse", "mae", "recall@10", "ndcg@10"} <= set(report)
    assert {name: report[name] for name in expected} == pytest.approx(expected, abs=1e-6)
    assert report["baseline_rmse"] > report["rmse"]


def test_evaluate_uses_the_scale_of_the_release_to_the_last_digit(answer: Answer, tmp_path: Path) -> None:
    rows = [f"{user},{item},{1234567 + (user * item) % 7}" for user in range(12) for item in range(8)]
    (tmp_path / "wide.csv").write_text("user,item,rating\n" + "\n".join(rows) + "\n")
    answer("train", "wide.csv", "--method", "sgd", "--epochs", 1, "--out", "r")
    assert answer("evaluate", "r", "wide.csv", "--holdout", 0.3)["rmse"] < 7


def test_recommend_is_a_fold_in(answer: Answer, release_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("item,rating\nThe Silent Orbit,5\n2,1.5\n")
    report = answer("recommend", release_folder, "--ratings", "mine.csv", "-k", 4)
    expected = Release.load(release_folder).fold_in({"The Silent Orbit": 5, 2: 1.5}).recommend(4)
    assert report == {"recommendations": [one._asdict() for one in expected]}
    assert len(expected) == 4


def test_recommend_obeys_choices_and_reports_unknown_items(
    command: Command, release_folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "mine.csv").write_text("\ufeffThe Silent Orbit,5\nNever Made,2\n", encoding="utf-8")
    words = ["--only", 1, "--only", 2, "--only", 3, "--exclude", 2, "--include-rated", "--json"]
    done = command("recommend", release_folder, "--ratings", "mine.csv", *words)
    assert {one["item"] for one in json.loads(done.stdout)["recommendations"]} == {1, 3}
    assert done.stderr == "dpmf: 1 rated items are not in the catalogue and were left out\n"
    nothing = command("recommend", release_folder, "--ratings", "mine.csv", "--only", 1)
    assert (nothing.returncode, nothing.stdout) == (0, "nothing is left to recommend\n")


def test_similar_finds_by_id_and_by_title(answer: Answer, release_folder: Path) -> None:
    by_id = answer("similar", release_folder, 1, "-k", 3)
    assert by_id == answer("similar", release_folder, "The Silent Orbit", "-k", 3)
    expected = Release.load(release_folder).similar_items(1, 3)
    assert by_id == {"recommendations": [one._asdict() for one in expected]}


def test_tables_hold_titles_and_scores(command: Command, release_folder: Path) -> None:
    done = command("similar", release_folder, 1, "-k", 2)
    best = Release.load(release_folder).similar_items(1, 1)[0]
    assert best.title in done.stdout
    assert f"{best.score:.4f}" in done.stdout


def test_explain_says_that_nothing_is_promised(command: Command, answer: Answer, release_folder: Path) -> None:
    done = command("explain", release_folder)
    assert "not private" in done.stdout
    assert "do not publish it" in done.stdout
    report = answer("explain", release_folder)
    assert (report["epsilon"], report["delta"], report["mode"], report["certified"]) == (None, None, "none", False)
    assert (report["items"], report["factors"]) == (60, 4)


def test_data_list_names_every_data_set(
    command: Command, answer: Answer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DPMF_DATA", str(tmp_path))
    (tmp_path / "movielens-100k").mkdir()
    rows = {row["name"]: row for row in answer("data", "list")["datasets"]}
    assert list(rows) == list(CATALOGUE)
    assert rows["synthetic"]["here"]
    assert rows["movielens-100k"]["here"]
    assert not rows["movielens-1m"]["here"]
    shown = command("data", "list").stdout
    assert all(name in shown for name in CATALOGUE)


def test_data_describe_counts(answer: Answer, data_folder: Path, small_ratings: Ratings) -> None:
    report = answer("data", "describe", data_folder)
    assert (report["users"], report["items"], report["ratings"]) == (120, 60, len(small_ratings))
    assert report["scale"] == "1:5"


def test_data_describe_knows_the_catalogue_without_the_data(
    answer: Answer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DPMF_DATA", str(tmp_path))
    report = answer("data", "describe", "movielens-1m")
    assert report["licence"]
    assert "dpmf data fetch movielens-1m" in report["note"]


def test_data_ingest_writes_what_can_be_read_again(answer: Answer, tmp_path: Path) -> None:
    (tmp_path / "my.csv").write_text("user,item,rating\nann,Heat,5\nbob,Heat,3\n")
    assert answer("data", "ingest", "my.csv", "store", "--scale", "1:5") == {
        "folder": "store", "ratings": 2, "users": 2, "items": 1,
    }  # fmt: skip
    assert Ratings.read("store").values.tolist() == [5.0, 3.0]


def test_data_fetch_leaves_alone_what_is_there(answer: Answer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DPMF_DATA", str(tmp_path))
    (tmp_path / "movielens-1m").mkdir()
    (tmp_path / "movielens-1m" / CATALOGUE["movielens-1m"].ratings_file).write_text("1::2::3::4\n")
    report = answer("data", "fetch", "movielens-1m")
    assert report == {"name": "movielens-1m", "folder": str(tmp_path / "movielens-1m")}


def test_doctor_shows_versions_and_threads(command: Command, answer: Answer) -> None:
    report = answer("doctor")
    assert report["dpmf"] == dpmf.__version__
    assert report["threads"] >= 1
    assert report["numba_cache_files"] >= 0
    assert "numpy" in command("doctor").stdout


def test_version_and_help(command: Command) -> None:
    assert command("--version").stdout.strip().endswith(dpmf.__version__)
    assert "Start with `dpmf demo`" in command("-h").stdout
    for name in ("demo", "train", "evaluate", "recommend", "similar", "explain", "verify", "ledger", "data", "doctor"):
        done = command(name, "--help")
        assert done.returncode == 0
        assert f"dpmf {name}" in done.stdout


def test_an_error_of_several_lines_is_printed_as_one(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise InvalidArgument("first\nsecond")

    monkeypatch.setattr(Release, "load", fail)
    done = command("explain", "anything")
    assert (done.returncode, done.stderr) == (1, "dpmf: first second\n")


def test_bench_reports_speed_beside_the_limit(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpmf.bench.speed._LEAST_SECONDS", 0.0)
    done = command("bench", "synthetic", "--factors", "4", "--epochs", "1", "--users", "50", "--no-peers", "--json")
    report = json.loads(done.stdout)
    assert report["updates_per_second"] > 0
    assert report["roofline_updates_per_second"] > 0
    assert [row["factors"] for row in report["rows"]] == [4]
    assert "of the limit" in command("bench", "synthetic", "--factors", "4", "--users", "50", "--no-peers").stdout


def test_bench_has_a_place_for_peers_that_are_missing(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "false")
    monkeypatch.setattr("dpmf.bench.speed._LEAST_SECONDS", 0.0)
    small = ("bench", "synthetic", "--factors", "4", "--epochs", "1", "--users", "50")
    report = json.loads(command(*small, "--json").stdout)
    assert report["libmf_updates_per_second"] is None
    assert report["implicit_ratings"] is report["als_over_implicit"] is None
    table = command(*small).stdout.partition("beside implicit")[2]
    assert table.split("\n")[4].split() == ["4", *["–"] * 7]
    assert "implicit" not in command(*small, "--no-peers").stdout


@pytest.mark.parametrize(
    ("options", "complaint"),
    [(["--factors", "4,x"], "numbers with commas"), (["--libmf", "nowhere.so"], "no file nowhere")],
)
def test_bench_refuses_what_it_cannot_measure(command: Command, options: list[str], complaint: str) -> None:
    done = command("bench", "synthetic", *options)
    assert done.returncode == 1
    assert complaint in done.stderr


@pytest.mark.parametrize("split", ["random", "per-user"])
def test_too_little_memory_streams_to_the_same_bytes(
    command: Command, tmp_path: Path, data_folder: Path, split: str
) -> None:
    def train(name: str, *options: str) -> dict[str, Any]:
        folders = ("--out", f"{tmp_path}/{name}", "--model", f"{tmp_path}/{name}-model")
        line = f"--method sgd --factors 4 --epochs 3 --holdout 0.2 --split {split} --json".split()
        report: dict[str, Any] = json.loads(command("train", str(data_folder), *line, *folders, *options).stdout)
        return report

    inside, streamed = train("inside"), train("streamed", "--memory", "1KB")
    assert (inside["streamed"], streamed["streamed"]) == (False, True)
    for figure in ("rmse", "mae", "baseline_rmse"):
        assert streamed[figure] == pytest.approx(inside[figure], abs=1e-6)
    for file in ("/release.safetensors", "/release.json", "-model/model.safetensors"):
        assert Path(f"{tmp_path}/streamed{file}").read_bytes() == Path(f"{tmp_path}/inside{file}").read_bytes()
    assert not train("roomy", "--memory", "1GB")["streamed"]


@pytest.mark.parametrize("options", ["", "--holdout 0.2", "--holdout 1 --split last"])
def test_a_file_and_its_store_train_to_the_same_bytes(command: Command, tmp_path: Path, options: str) -> None:
    rows = [(user, item, 1 + (user * item) % 5, user + 7 * item) for user in range(60) for item in range(user % 9 + 3)]
    source, store = tmp_path / "ratings.csv", tmp_path / "store"
    source.write_text("\n".join(["user,item,rating,timestamp", *(",".join(map(str, row)) for row in rows)]))
    scale = ("--scale", "1:5")
    assert command("data", "ingest", str(source), str(store), *scale, "--memory", "1KB").returncode == 0
    assert command("data", "ingest", str(source), f"{store}2", *scale).returncode == 0
    for file in ("store.json", "items.bin", "values.bin", "times.bin", "blocks/blocks.bin"):
        assert (store / file).read_bytes() == Path(f"{store}2", file).read_bytes()
    releases = set()
    ways = [(source, scale), (source, (*scale, "--memory", "1KB")), (store, ()), (store, ("--memory", "1KB"))]
    for number, (data, more) in enumerate(ways):
        line = f"--method sgd --factors 4 --epochs 2 {options} --out {tmp_path}/{number}".split()
        assert command("train", str(data), *line, *more).returncode == 0
        releases.add((tmp_path / str(number) / "release.safetensors").read_bytes())
    assert len(releases) == 1
    assert not list(store.glob("seen*"))


def test_synthetic_ratings_can_be_streamed_too(command: Command) -> None:
    done = command("train", "synthetic", "--method", "sgd", "--epochs", "1", "--memory", "100KB", "--json")
    assert json.loads(done.stdout)["streamed"]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--memory", "lots"], "amount of memory"),
        (["--memory", "1KB", "--split", "last", "--holdout", "1"], "needs a timestamp"),
        (["--memory", "1KB", "--scale", "1:9"], "scale cannot be given for ratings that are ingested"),
    ],
)
def test_streaming_refuses_what_it_cannot_do(
    command: Command, data_folder: Path, options: list[str], complaint: str
) -> None:
    done = command("train", str(data_folder), "--method", "sgd", *options)
    assert done.returncode == 1
    assert complaint in done.stderr


def test_made_up_ratings_can_be_trained_on(command: Command, tmp_path: Path) -> None:
    folder = f"{tmp_path}/made"
    line = f"data make {folder} --like yahoo-music --ratings 3000 --users 90 --items 40 --json".split()
    assert json.loads(command(*line).stdout)["n_ratings"] == 3000
    report = json.loads(
        command("train", folder, "--method", "sgd", "--epochs", "2", "--holdout", "0.1", "--json").stdout
    )
    assert report["rmse"] > 0
    assert command(*line).returncode == 1


# Implicit feedback


@pytest.mark.parametrize("epsilon", ["5", "inf"])
def test_implicit_feedback_from_training_to_recommendations(
    answer: Answer, command: Command, data_folder: Path, epsilon: str
) -> None:
    train = ["train", data_folder, "--feedback", "implicit", "--epsilon", epsilon, "--factors", 3, "--holdout", 0.2]
    report = answer(*train, "--out", "release")
    assert (report["feedback"], report["rmse"], report["by_popularity"]) == ("implicit", None, [])
    for name in ("recall@10", "ndcg@10", "popularity_recall@10", "popularity_ndcg@10"):
        assert 0 < report[name] < 1
    assert report["certified"] == (epsilon == "5")
    verdict = answer("verify", "release")
    assert (verdict["ok"], verdict["certified"]) == (True, epsilon == "5")
    figures = answer("evaluate", "release", data_folder, "--holdout", 0.2)
    assert "rmse" not in figures
    assert figures["recall@10"] == pytest.approx(report["recall@10"], abs=0.05)
    assert figures["popularity_recall@10"] > 0
    Path("items.csv").write_text("item\n1\n2\n")
    Path("rated.csv").write_text("item,rating\n1,5\n2,anything\n")
    found = answer("recommend", "release", "--ratings", "items.csv", "-k", 3)
    assert found == answer("recommend", "release", "--ratings", "rated.csv", "-k", 3)
    assert len(found["recommendations"]) == 3
    words = command("explain", "release").stdout
    assert "not how they rated them" in words
    assert "0:1" not in words
    shown = command(*train).stdout
    assert "popularity alone" in shown
    assert "recall@10" in shown


def test_sgd_refuses_implicit_feedback_in_one_line(command: Command, data_folder: Path) -> None:
    done = command("train", data_folder, "--method", "sgd", "--feedback", "implicit")
    assert done.returncode != 0
    assert "sgd learns from ratings only, take --method als" in done.stderr
    assert done.stderr.count("\n") == 1
