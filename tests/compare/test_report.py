"""The report: everything in one page, nothing from elsewhere, and no epsilon without what stands behind it."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from dpmf.compare.comparison import Comparison
from dpmf.compare.plots import figure as drawing
from dpmf.compare.report import page as writing
from dpmf.compare.report import write_report
from dpmf.compare.report.decision import headline
from dpmf.compare.report.tables import best_points, best_row, brief, by_guarantee, figures, group_names, groups
from dpmf.compare.results import Row, Table
from dpmf.compare.summary import summarize
from dpmf.compare.sweep import Sweep, points_of
from dpmf.errors import MissingExtra
from dpmf.files import read_json
from dpmf.privacy import Guarantee
from dpmf.ratings import Ratings

from .measured import certified, claimed

_EMPTY = {"meta", "br", "hr", "img", "input", "link"}
_METHODS = ("als", "sgld", "gaussian", "objective", "sketch")


class Page(HTMLParser):
    """What a page consists of; fails on tags that do not match."""

    def __init__(self, content: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self._open: list[str] = []
        self.feed(content)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in _EMPTY:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


@pytest.fixture(scope="module")
def folder(small_ratings: Ratings, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a small comparison of all methods, with its report."""
    folder = tmp_path_factory.mktemp("comparison") / "one"
    quick = {name: {"n_epochs": 2} for name in ("als", "sgd", "gaussian")}
    quick |= {name: {"n_epochs": 1} for name in ("sgld", "sketch")}  # noise for a sample takes seconds to calibrate
    plan = Sweep(points_of(_METHODS, ["certified", "paper"], [5.0]), repeats=2, settings=quick, seed=11)
    with Comparison.open(folder, plan, small_ratings, command="dpmf compare <small> --repeats 2") as comparison:
        rows = comparison.run(n_threads=1)
        write_report(folder, comparison.facts, plan, rows)
    return folder


@pytest.fixture(scope="module")
def page(folder: Path) -> Page:
    return Page((folder / "report.html").read_text())


def test_nothing_is_fetched_and_nothing_runs(folder: Path, page: Page) -> None:
    names = {tag for tag, _ in page.tags}
    assert not names & {"script", "link", "iframe", "object", "embed", "img", "image"}
    content = (folder / "report.html").read_text()
    assert set(re.findall(r"https?://[^\s\"'<]+", content)) <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
    }
    for _, attributes in page.tags:
        for name, value in attributes.items():
            assert not name.startswith("on")
            if name in ("href", "xlink:href", "src"):
                assert (value or "").startswith("#")
    assert not re.search(r"@import|url\((?!#)", content)
    policy = next(one["content"] for tag, one in page.tags if tag == "meta" and "http-equiv" in one)
    assert "default-src 'none'" in (policy or "")


def test_it_says_whose_it_is_and_how_it_was_made(page: Page) -> None:
    assert "no guarantee covers them" in page.text
    assert "dpmf compare <small> --repeats 2" in page.text
    assert "Seeds of splits and starts: 11 to 12. The noise of private runs has no seed" in page.text
    for word in ("numpy", "numba", "dp-accounting", "mean rating", "ratings per user median"):
        assert word in page.text


def test_every_guarantee_is_there_with_all_it_rests_on(folder: Path, page: Page) -> None:
    private = [row for row in Table(folder / "runs.csv").rows() if row.guarantee]
    assert {row.method for row in private} == set(_METHODS)
    for row in private:
        assert str(Guarantee.from_json(row.guarantee)) in page.text
        for sentence in row.guarantee["assumptions"]:
            assert " ".join(sentence.split()) in page.text
        for event in row.guarantee["events"]:
            assert event["what"] in page.text


def test_pictures_are_drawn_for_each_unit_apart(page: Page) -> None:
    labels = [one["aria-label"] or "" for tag, one in page.tags if tag == "svg"]
    for metric in ("rmse", "recall", "ndcg", "kld"):
        for unit in ("user", "rating"):
            assert f"{metric} against ε per {unit}" in labels
    assert len([label for label in labels if label.startswith("rmse by")]) == 4


def test_ids_in_pictures_are_unique(page: Page) -> None:
    ids = [one["id"] for _, one in page.tags if "id" in one]
    assert len(ids) == len(set(ids))


def test_names_from_outside_stay_text(folder: Path, small_ratings: Ratings, tmp_path: Path) -> None:
    facts: dict[str, Any] = {
        "name": "<script>alert(1)</script>",
        "command": "'\"><b>",
        "began": "",
        "versions": {},
        "machine": {},
        "data": dict.fromkeys(writing._FIELDS, "</table>"),
    }
    row = Row("als", "certified", 1.0, 0, 0, error="<img src=x onerror=alert(1)>")
    write_report(tmp_path, facts, Sweep(points_of(["als"], ["certified"], [1.0])), [row])
    made = Page((tmp_path / "report.html").read_text())
    assert not {tag for tag, _ in made.tags} & {"script", "b", "img"}
    assert "<img src=x onerror=alert(1)>" in made.text


def test_without_matplotlib_there_is_a_report_without_pictures(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*_: float) -> Any:
        raise MissingExtra("no matplotlib")

    for place in (drawing, writing):
        monkeypatch.setattr(place, "figure", missing)
    monkeypatch.setattr(writing, "accuracy_figure", missing)
    rows, plan = Table(folder / "runs.csv").rows(), Sweep(points_of(["als"], ["certified"], [1.0]))
    report, picture = write_report(tmp_path, read_json(folder / "comparison.json"), plan, rows)
    assert picture is None
    assert "not drawn, because matplotlib is not installed" in Page(report.read_text()).text


MIXED = [
    claimed("sgld", 1.0, unit="user", rmse=0.8, by_popularity=[[1.0, 9, 0.81]]),
    certified("als", 1.0, rmse=0.9, by_popularity=[[1.0, 9, 0.91]]),
    certified("als", 1.0, 1, rmse=0.96, by_popularity=[[1.0, 9, 0.95]]),
    certified("als", 5.0, rmse=0.7, seeded=True, by_popularity=[[1.0, 9, 0.71]]),
    claimed("objective", 2.0, rmse=0.6, by_popularity=[[1.0, 9, None]]),
    Row("gaussian", "certified", 3.0, 0, 0, error="it has diverged"),
    Row("sgd", "none", math.inf, 0, 0, rmse=0.5, by_popularity=[[1.0, 9, 0.51]]),
]


def test_different_guarantees_are_never_in_one_table() -> None:
    points = summarize(MIXED)
    tables = {
        guarantee.text: [[cell.text for cell in row] for row in rows]
        for guarantee, rows in by_guarantee(points, figures).items()
    }
    short = {name: [row[:3] for row in rows] for name, rows in tables.items()}
    found = points[1].epsilon
    assert found is not None
    assert found < 1.0  # what is shown is the guarantee's, not what was asked for
    assert short == {
        "without an ε": [["sgd, not private", "–", "0.5000"]],
        "certified per user, add-remove, δ = 1e-06": [["als", f"{found:g}", "0.9300"]],
        "not private: noise from a seed": [["als", f"{points[2].epsilon:g}", "0.7000"]],
        "a paper's claim, not certified, per user, replace": [["sgld", "1", "0.8000"]],
        "a paper's claim, not certified, per rating, replace": [["objective", "2", "0.6000"]],
        "did not end": [["gaussian", "3 asked for", "–"]],
    }
    kinds = {guarantee.text: guarantee.kind for guarantee in by_guarantee(points, figures)}
    assert [name for name, kind in kinds.items() if kind == "proven"] == ["certified per user, add-remove, δ = 1e-06"]
    assert sorted(name for name, kind in kinds.items() if kind == "claim") == sorted(
        name for name in kinds if name.startswith("a paper's claim")
    )
    # Claims and seeded runs have lower errors, and are not what is proven.
    assert [[cell.text for cell in best_row(point)] for point in best_points(points)] == [
        [f"{found:g} per user", "als", "0.9300"]
    ]


def test_groups_are_by_guarantee_too() -> None:
    tables = by_guarantee(summarize(MIXED), groups("by_popularity"))
    cells = {guarantee.text: [[cell.text for cell in row][2:] for row in rows] for guarantee, rows in tables.items()}
    assert cells["certified per user, add-remove, δ = 1e-06"] == [["0.9300"]]
    assert cells["not private: noise from a seed"] == [["0.7100"]]
    assert cells["a paper's claim, not certified, per user, replace"] == [["0.8100"]]
    assert cells["a paper's claim, not certified, per rating, replace"] == [["–"]]


def test_a_terminal_gets_means_and_ranges() -> None:
    (point,) = summarize([certified("als", 1.0, 0, rmse=0.9), certified("als", 1.0, 1, rmse=0.96, seconds=2.0)])
    texts = [cell.text for cell in brief(point)]
    assert texts == ["als", f"{point.epsilon:g}", "0.9300", "0.9000", "0.9600", "–", "–", "2.0", "2"]


def _text_of(folder: Path, rows: list[Row], plan: Sweep) -> str:
    facts: dict[str, Any] = {
        "name": "",
        "command": "",
        "began": "",
        "versions": {},
        "machine": {},
        "data": dict.fromkeys(writing._FIELDS, 1),
    }
    return Page(write_report(folder, facts, plan, rows)[0].read_text()).text


def test_what_is_said_of_noise_is_true_of_every_run(tmp_path: Path) -> None:
    plan = Sweep(points_of(["als"], ["certified"], [1.0]))
    fresh = _text_of(tmp_path, [certified("als", 1.0, rmse=0.9)], plan)
    assert "The noise of private runs has no seed" in fresh
    mixed = _text_of(tmp_path, [certified("als", 1.0, rmse=0.9, seeded=True), certified("sgld", 1.0, rmse=0.9)], plan)
    assert "The noise of als came from a seed that was set, so nothing about it is private; that of all others" in mixed
    seeded = _text_of(tmp_path, [certified("als", 1.0, rmse=0.9, seeded=True)], plan)
    assert "so nothing about it is private." in seeded
    assert "als, not private: noise from a seed" in seeded
    assert "als, certified" not in seeded


def test_every_guarantee_of_a_method_is_listed(tmp_path: Path) -> None:
    rows = [
        certified("als", 1.0, rmse=0.9),
        certified("als", 5.0, rmse=0.8),
        certified("als", 5.0, 1, noise=90.0, rmse=1),
    ]
    found = _text_of(tmp_path, rows, Sweep(points_of(["als"], ["certified"], [1.0])))
    for row in rows:
        assert str(Guarantee.from_json(row.guarantee)) in found
    assert len({str(Guarantee.from_json(row.guarantee)) for row in rows}) == 3


def test_time_is_said_to_be_of_the_threads_that_there_were(tmp_path: Path) -> None:
    rows = [certified("als", 1.0, rmse=0.9, seconds=1.0, threads=3), certified("als", 1.0, 1, rmse=0.9, threads=1)]
    assert "(threads: 3)" in _text_of(tmp_path, rows, Sweep(points_of(["als"], ["certified"], [1.0]), repeats=2))
    untimed = _text_of(tmp_path, rows[1:], Sweep(points_of(["als"], ["certified"], [1.0]), how="last", holdout=1))
    assert "threads" not in untimed


def test_a_picture_of_other_rows_does_not_stay(tmp_path: Path) -> None:
    plan = Sweep(points_of(["als"], ["certified"], [1.0]))
    _text_of(tmp_path, [certified("als", 1.0, rmse=0.9)], plan)
    assert (tmp_path / "accuracy.png").exists()
    _text_of(tmp_path, [Row("sgd", "none", math.inf, 0, 0, rmse=0.5)], plan)
    assert not (tmp_path / "accuracy.png").exists()


def test_groups_are_named() -> None:
    row = Row("als", "certified", 1.0, 0, 0, by_activity=[[0.01, 1, 0.5], [0.1, 1, 0.5], [1.0, 1, None]])
    assert group_names([row], "by_activity") == ["most active 1%", "1% to 10%", "10% to 100%"]


def calibrated(method: str, epsilon: float, **found: Any) -> Row:
    """Return a row whose noise was chosen for its epsilon, which it misses by a hair."""
    return replace(certified(method, epsilon, **found), epsilon=0.99994 * epsilon)


DECIDING = [
    calibrated("als", 0.1, rmse=1.1, ndcg=0.1),
    calibrated("gaussian", 0.1, rmse=1.2, ndcg=0.2),  # what is best for ratings need not be for lists
    calibrated("als", 1.0, rmse=0.95, ndcg=0.3),
    calibrated("gaussian", 1.0, rmse=0.99, ndcg=0.1),
    calibrated("als", 5.0, rmse=0.9, ndcg=0.4),
    Row("own-mean", "none", math.inf, 0, 0, rmse=1.0),
    Row("popular", "none", math.inf, 0, 0, ndcg=0.05),
    Row("sgd", "none", math.inf, 0, 0, rmse=0.85, ndcg=0.01),
    Row("exact-ease", "none", math.inf, 0, 0, ndcg=0.5),
]


def test_a_report_begins_with_the_decision(tmp_path: Path) -> None:
    ratings, lists = writing.findings(summarize(DECIDING)).split("</section>")[:2]
    assert "From ε = 1 per user on, the best certified method has a better rmse than the per-user mean" in ratings
    assert "At every ε here, the best certified method has a better ndcg@10 than exact popularity." in lists
    assert [re.findall(r"<td[^>]*>([^<]*)", row) for row in ratings.split("<tr>")[2:]] == [
        ["0.1 per user", "als", "1.1000", "+0.2500", "+0.1000"],
        ["1 per user", "als", "0.9500", "+0.1000", "−0.0500"],
        ["5 per user", "als", "0.9000", "+0.0500", "−0.1000"],
    ]
    assert [re.findall(r"<td[^>]*>([^<]*)", row) for row in lists.split("<tr>")[2:]] == [
        ["0.1 per user", "gaussian", "0.2000", "−0.3000", "+0.1500"],
        ["1 per user", "als", "0.3000", "−0.2000", "+0.2500"],
        ["5 per user", "als", "0.4000", "−0.1000", "+0.3500"],
    ]
    text = _text_of(tmp_path, MIXED, Sweep(points_of(["als"], ["certified"], [1.0])))
    assert text.index("no guarantee covers these") < text.index("best certified") < text.index("ranking against ε")


@pytest.mark.parametrize(
    ("height", "words"),
    [(0.94, "From ε = 5 per user on"), (0.5, "No certified method here has a better rmse"), (2.0, "At every ε here")],
)
def test_a_headline_says_from_where_on_it_is_worth_it(height: float, words: str) -> None:
    rows = [*DECIDING[:5], Row("own-mean", "none", math.inf, 0, 0, rmse=height)]
    assert headline(summarize(rows), "rmse", "own-mean", "the per-user mean").startswith(words)


def test_details_are_folded(page: Page) -> None:
    names = [tag for tag, _ in page.tags]
    first = names.index("details")
    assert "svg" in names[:first]
    assert names[:first].count("table") == 2  # the decision: for ratings, and for lists


def test_units_without_anything_certified_are_among_the_details(tmp_path: Path) -> None:
    plan = Sweep(points_of(["als"], ["certified"], [1.0]))
    text = _text_of(tmp_path, MIXED, plan)
    assert text.index("rmse against ε per user") < text.index("Details") < text.index("rmse against ε per rating")
    only_claims = _text_of(tmp_path, [claimed("objective", 2.0, rmse=0.6)], plan)
    assert only_claims.index("rmse against ε per rating") < only_claims.index("Details")
