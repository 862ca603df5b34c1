"""The Python of the README and of the quick start does what it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dpmf.ratings.synthetic import make

ROOT = Path(__file__).parent.parent


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
    (snippet,) = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)
    titles = {'"Toy Story (1995)"': '"The Silent Orbit"', '"Heat (1995)"': '"The Silent Vault"'}
    for theirs, ours in titles.items():
        assert theirs in snippet
        snippet = snippet.replace(theirs, ours)
    names: dict[str, object] = {}
    exec(snippet, names)
    recommended = names["mine"].recommend(k=10)  # type: ignore[attr-defined]
    assert len(recommended) == 10
