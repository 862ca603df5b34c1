"""`dpmf train --dry-run`: what can be said beforehand, and that it neither reads, writes nor spends."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dpmf import ALS, Budget, Joint
from dpmf.privacy import Guarantee
from dpmf.privacy.ledger import Ledger
from dpmf.ratings import Ratings

Answer = Callable[..., dict[str, Any]]
Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(autouse=True)
def _files() -> None:
    """Write a list of items, and ratings that no run could use."""
    Path("items.csv").write_text("item,title\n" + "".join(f"{item},Film {item}\n" for item in range(300)))
    Path("ratings.csv").write_text("user,item,rating\n" + "1,2,not a number\n" * 5000)


LINE = ("train", "ratings.csv", "--items", "items.csv", "--scale", "1:5", "--dry-run")


@pytest.mark.parametrize("method", ["joint", "als", "ease", "gaussian"])
def test_nothing_is_read_written_or_spent(answer: Answer, command: Command, method: str) -> None:
    before = sorted(Path().iterdir())
    outputs = ("--out", "r", "--ledger", "new.ledger", "--cap", 3)
    line = (*LINE, "--method", method, "--epsilon", 2, "--users-about", 5000, *outputs)
    report = answer(*line)
    assert (report["dry_run"], report["users"], report["items"], report["ledger"]) == (True, 5000, 300, None)
    assert report["epsilon"] <= 2
    assert {one["what"] for one in report["releases"]}
    assert 0 < report["seconds"][0] < report["seconds"][1]
    assert report["memory"] > 1e8
    assert report["ratings"] > 1000  # from the size of the file
    said = " ".join(command(*line).stdout.split())
    assert "No rating was read" in said
    assert "size of the file, and memory and time from that: they are for the holder of the data" in said
    assert sorted(Path().iterdir()) == before


def test_it_plans_what_a_run_does(answer: Answer, small_ratings: Ratings, data_folder: Path) -> None:
    budget = Budget(5.0)
    methods: dict[str, ALS | Joint] = {"als": ALS(budget=budget), "joint": Joint(budget=budget, n_users=120)}
    for name, method in methods.items():
        guarantee = method.fit(small_ratings).guarantee
        Path("these.csv").write_text("item\n" + "".join(f"{item}\n" for item in small_ratings.catalogue.ids))
        Path("none.csv").write_text("user,item,rating\n")
        words = ("--method", name, "--epsilon", 5, "--users-about", 120, "--dry-run", "--scale", "1:5")
        planned = answer("train", "none.csv", "--items", "these.csv", *words)
        done = [(event.what, pytest.approx(event.noise_multiplier)) for event in guarantee.events]  # type: ignore[union-attr]
        assert [(one["what"], one["noise_multiplier"]) for one in planned["releases"]] == done
        assert planned["epsilon"] == pytest.approx(guarantee.epsilon)


def test_what_to_expect_follows_epsilon_times_people(answer: Answer) -> None:
    few, some, many = (answer(*LINE, "--epsilon", 1, "--users-about", users) for users in (300, 6000, 10**6))
    assert few["rmse_of_baseline"][1] == 1.0
    assert few["head"] == few["factors"] == 0
    assert many["rmse_of_baseline"][1] < some["rmse_of_baseline"][0]
    assert many["head"] > some["head"] > 0
    assert few["factors_from_pairs"] == 0 < some["factors_from_pairs"]
    unknown = answer(*LINE, "--epsilon", 1)
    assert (unknown["users"], unknown["head"], unknown["factors"], unknown["rmse_of_baseline"]) == (None,) * 4


def test_a_ledger_is_asked_and_not_written(answer: Answer, command: Command) -> None:
    ledger = Ledger("data.ledger", Budget(2.0))
    events = ALS(budget=Budget(1.5)).plan_of(Ratings.of([1], [1], [1]).catalogue, Ratings.of([1], [1], [1]).scale)
    ledger.spend("before", Guarantee.certified_by(Budget(1.5), events.guaranteed()[1], releases=["item factors"]))
    content = Path("data.ledger").read_bytes()
    fits = [answer(*LINE, "--epsilon", epsilon, "--ledger", "data.ledger")["ledger"] for epsilon in (0.1, 2)]
    assert [one["fits"] for one in fits] == [True, False]
    assert fits[1]["total"] > fits[1]["cap"] == 2
    assert fits[0]["spent"] == pytest.approx(1.5, abs=1e-3)
    assert "does not fit" in command(*LINE, "--epsilon", 2, "--ledger", "data.ledger").stdout
    assert Path("data.ledger").read_bytes() == content


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("train ratings.csv --scale 1:5 --items-public --epsilon 1 --dry-run", "needs a list of items"),
        ("train ratings.csv --items items.csv --epsilon 1 --dry-run", "needs their scale: say it with --scale"),
        ("train ratings.csv --items items.csv --scale 1:5 --epsilon inf --dry-run", "is about certified runs"),
        ("train ratings.csv --items items.csv --scale 1:5 --method sgd --dry-run", "is about certified runs"),
        ("train ratings.csv --items items.csv --epsilon 1 --users-about 0 --dry-run", "--users-about 0 should be"),
    ],
)
def test_what_cannot_be_told_is_refused_in_one_line(command: Command, line: str, words: str) -> None:
    done = command(*line.split())
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert words in done.stderr
