"""The Python of the README and of pages of the documentation does what it says."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dpmf.methods.certified.questions import People
from dpmf.ratings import Scale
from dpmf.ratings.synthetic import make

ROOT = Path(__file__).parent.parent


def snippets_of(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("page", ["README.md", "docs/quickstart.md"])
def test_the_python_of_a_page_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ratings = make(200, 60)
    monkeypatch.chdir(tmp_path)
    catalogue = ratings.catalogue
    named = zip(catalogue.ids, catalogue.titles, catalogue.genres, strict=True)
    Path("items.csv").write_text("\n".join(["item,title,genres", *(",".join(map(str, one)) for one in named)]))
    rows = zip(ratings.user_ids.array[ratings.users], ratings.items + 1, ratings.values, strict=True)
    lines = ["user,item,rating", *(f"{user},{item},{value:g}" for user, item, value in rows)]
    Path("ratings.csv").write_text("\n".join(lines))
    (snippet,) = snippets_of(page)
    titles = {'"Toy Story (1995)"': '"The Silent Orbit"', '"Heat (1995)"': '"The Silent Vault"'}
    for theirs, ours in titles.items():
        assert theirs in snippet
        snippet = snippet.replace(theirs, ours)
    names: dict[str, object] = {}
    exec(snippet, names)
    recommended = names["mine"].recommend(k=10)  # type: ignore[attr-defined]
    assert len(recommended) == 10


def test_the_page_about_frames_and_scikit_learn_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(compile("\n".join(snippets_of("docs/python.md")), "docs/python.md", "exec", dont_inherit=True), names)
    assert names["me"].explain(3).score == names["why"].score
    assert set(names["search"].best_params_) == {"method__n_factors"}
    assert names["strangers"].column_names == ["user", "item", "title", "rank", "score", "rating"]
    assert names["chosen"].budget == names["private"].budget


def test_the_worked_example_of_a_method_runs_and_keeps_to_its_bound() -> None:
    page = "docs/contributing-a-method.md"
    names: dict[str, object] = {"__name__": "example"}
    exec(compile("\n".join(snippets_of(page)), page, "exec", dont_inherit=True), names)
    question = names["Deviations"]("deviations", 4, Scale(1, 5))  # type: ignore[operator]
    wild = [5, 5, 1e30, -np.inf, np.nan, 1]
    for items, values, least in (([3, 3, 0, 1, 9, -1], wild, 0.0), ([0, 1, 2, 3], [5, 5, 5, 5], 0.999)):
        columns = {"items": np.array(items, np.int32), "values": np.array(values, np.float32)}
        own: Any = SimpleNamespace(indptr=np.array([0, len(items)]), **columns)
        sums = np.zeros(4, np.int64)
        question.add(People.of(own), None, 0, 1, 1e6, sums)
        assert least * question.reach <= np.linalg.norm(sums) / 1e6 <= question.reach
