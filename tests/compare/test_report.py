"""The report: everything in one page, nothing from elsewhere, and no epsilon without what stands behind it."""

from __future__ import annotations

import math
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from dpmf.compare.comparison import Comparison
from dpmf.compare.plots import drawing
from dpmf.compare.report import write_report, writing
from dpmf.compare.report.tables import best_rows, by_promise, group_names, promise_of
from dpmf.compare.results import Row
from dpmf.compare.summary import summarize
from dpmf.compare.sweep import Sweep, points_of
from dpmf.errors import MissingExtra
from dpmf.privacy.guarantee import SEEDED
from dpmf.ratings import Ratings

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
    quick = {name: {"n_epochs": 2} for name in ("als", "sgd", "sgld", "gaussian", "sketch")}
    plan = Sweep(points_of(_METHODS, ["certified", "paper"], [1.0, 5.0]), repeats=2, settings=quick, seed=11)
    with Comparison.open(folder, plan, small_ratings, command="dpmf compare <small> --repeats 2") as comparison:
        rows = comparison.run(n_threads=1)
        write_report(folder, comparison.facts, plan, rows, 1)
    return folder


@pytest.fixture(scope="module")
def page(folder: Path) -> Page:
    return Page((folder / "report.html").read_text())


def test_nothing_is_fetched_and_nothing_runs(folder: Path, page: Page) -> None:
    names = {tag for tag, _ in page.tags}
    assert not names & {"script", "link", "iframe", "object", "embed", "img", "image"}
    content = (folder / "report.html").read_text()
    assert set(re.findall(r"https?://[^\s\"'<]+", content)) <= {
        "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
    }  # fmt: skip
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
    from dpmf.compare.results import Table

    promised = [row for row in Table(folder / "runs.csv").rows() if row.guarantee]
    assert {row.method for row in promised} == set(_METHODS)
    for row in promised:
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
        "name": "<script>alert(1)</script>", "command": "'\"><b>", "began": "", "versions": {}, "machine": {},
        "data": dict.fromkeys(writing._FIELDS, "</table>"),
    }  # fmt: skip
    row = Row("als", "certified", 1.0, 0, 0, error="<img src=x onerror=alert(1)>")
    write_report(tmp_path, facts, Sweep(points_of(["als"], ["certified"], [1.0])), [row], 1)
    made = Page((tmp_path / "report.html").read_text())
    assert not {tag for tag, _ in made.tags} & {"script", "b", "img"}
    assert "<img src=x onerror=alert(1)>" in made.text


def test_without_matplotlib_there_is_a_report_without_pictures(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dpmf.compare.results import Table
    from dpmf.files import read_json

    def missing(*_: float) -> Any:
        raise MissingExtra("no matplotlib")

    for place in (drawing, writing):
        monkeypatch.setattr(place, "figure", missing)
    monkeypatch.setattr(writing, "accuracy_figure", missing)
    rows, plan = Table(folder / "runs.csv").rows(), Sweep(points_of(["als"], ["certified"], [1.0]))
    report, picture = write_report(tmp_path, read_json(folder / "comparison.json"), plan, rows, 1)
    assert picture is None
    assert "not drawn, because matplotlib is not installed" in Page(report.read_text()).text


def test_a_claim_is_never_called_certified() -> None:
    common: dict[str, Any] = {"delta": 1e-6, "unit": "user", "neighbours": "add-remove", "rmse": 0.8}
    rows = [
        Row("sgld", "paper", 1.0, 0, 0, epsilon=1.0, **common),
        Row("als", "certified", 1.0, 0, 0, epsilon=1.0, certified=True, **{**common, "rmse": 0.9}),
        Row("als", "certified", 5.0, 0, 0, epsilon=5.0, certified=False, guarantee={"assumptions": [SEEDED]}, **common),
        Row("sgd", "none", math.inf, 0, 0, rmse=0.7),
    ]
    points = summarize(rows)
    kinds = {(point.method, point.asked): promise_of(point).kind for point in points}
    assert kinds == {("sgd", math.inf): "", ("als", 1.0): "proven", ("als", 5.0): "", ("sgld", 1.0): "claim"}
    assert len(by_promise(points)) == 4
    # The claim and the seeded run have lower errors, and are not what is proven.
    assert [[cell.text for cell in row] for row in best_rows(points)] == [["1 per user", "als", "0.9000"]]


def test_groups_are_named() -> None:
    row = Row("als", "certified", 1.0, 0, 0, by_activity=[[0.01, 1, 0.5], [0.1, 1, 0.5], [1.0, 1, None]])
    assert group_names([row], "by_activity") == ["most active 1%", "1% to 10%", "10% to 100%"]
