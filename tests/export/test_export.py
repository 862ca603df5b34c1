"""Exports hold what a release holds: vectors, indexes that find it, graphs that compute it; and say what they lack."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
import scipy.sparse

from dpmf.errors import DpmfError, MissingExtra, NotVerified
from dpmf.export.files import export
from dpmf.export.vectors import query_of, vectors_of
from dpmf.methods import SGD
from dpmf.model import Person, Ranking, Release, Ridge
from dpmf.model.learnt import Learnt
from dpmf.privacy import Budget, GaussianEvent, Guarantee
from dpmf.ratings import Items, Scale
from dpmf.ratings.synthetic import make

IMPLICIT: dict[str, Any] = {"mean": 0.0, "scale": Scale(0, 1), "feedback": "implicit", "alpha": 2.0}


def release_of(n: int = 300, K: int = 8, **changes: Any) -> Release:
    rng = np.random.default_rng(1)
    lengths = rng.lognormal(0, 0.5, (n, 1))
    release = Release(
        items=Items.of(np.arange(100, 100 + n), [f"Film, {j}" for j in range(n)]),
        scale=Scale(1, 5),
        mean=3.4,
        item_factors=(rng.normal(0, 0.4, (n, K)) * lengths).astype(np.float32),
        item_biases=rng.normal(0, 0.4, n).astype(np.float32),
        ridge=Ridge(2.0, 3.0, 0.5),
        configuration={"method": "sgd"},
        guarantee=Guarantee.none(),
    )
    return replace(release, **changes)


def people_of(release: Release, n: int = 40, most: int = 30) -> list[tuple[list[int], list[float], Person]]:
    """Return positions and ratings of people, the first of whom has none, and the people."""
    rng, people = np.random.default_rng(2), []
    for count in np.linspace(0, most, n).astype(int):
        positions = np.sort(rng.choice(len(release.items), count, replace=False)).tolist()
        top = 9 if release.is_implicit else int(release.scale.hi)
        values = rng.integers(1, top + 1, count).astype(float).tolist()
        ids = [release.items.ids[place] for place in positions]
        rated = dict(zip(ids, values, strict=True)) if not release.is_implicit or release.weighs_counts else ids
        people.append((positions, values, release.fold_in(rated)))
    return people


def recall(found: Any, best: Any) -> float:
    return float(np.mean([len(set(one) & set(other)) / len(other) for one, other in zip(found, best, strict=True)]))


def test_inner_products_are_expected_ratings() -> None:
    release = release_of()
    vectors = vectors_of(release)
    for _, _, person in people_of(release, 5):
        query, offset = query_of(person)
        predicted = np.clip(vectors.items @ query + offset, 1, 5)
        np.testing.assert_allclose(predicted, person.predict(release.items.ids), atol=1e-5)
    assert vectors.agreement == 1.0
    implicit = release_of(**IMPLICIT)
    query, offset = query_of(implicit.fold_in([100, 105]))
    scores = implicit.fold_in([100, 105]).predict(implicit.items.ids)
    np.testing.assert_allclose(vectors_of(implicit).items @ query + offset, scores, atol=1e-5)


def test_a_ranking_without_pairs_is_in_its_vectors(ranking_of: Callable[..., Ranking]) -> None:
    release = release_of(ranking=ranking_of(300, n_pairs=0))
    vectors = vectors_of(release, "ranking")
    assert release.ranking is not None
    assert vectors.positions.tolist() == release.ranking.items.tolist()
    person = release.fold_in({100: 5, 101: 4, 120: 3, 130: 1})
    scores = release.ranking.scores(person.rated, person.owned.values)[vectors.positions]
    np.testing.assert_allclose(vectors.items @ query_of(person, "ranking")[0], scores, atol=1e-5)
    assert vectors.agreement == 1.0


def test_what_pairs_add_to_lists_is_told(ranking_of: Callable[..., Ranking]) -> None:
    loud = ranking_of(300, n_pairs=20)
    loud = replace(loud, values=100 * loud.values)
    quiet = replace(loud, values=1e-7 * loud.values)
    assert vectors_of(release_of(ranking=loud), "ranking").agreement < 0.6
    assert vectors_of(release_of(ranking=quiet), "ranking").agreement == 1.0


def test_indexes_find_what_is_best(tmp_path: Path) -> None:
    import faiss
    from usearch.index import Index

    release = release_of(n=3000, K=24)
    about = export(release, "usearch", tmp_path / "usearch").about
    export(release, "faiss", tmp_path / "faiss")
    flat: Any = faiss.read_index(str(tmp_path / "faiss/index.faiss"))
    graph: Any = Index.restore(str(tmp_path / "usearch/index.usearch"))
    graph.expansion_search = about["search"]["expansion_search"]
    people = [person for _, _, person in people_of(release)]
    queries = np.array([query_of(person)[0] for person in people])
    best = [person.best(10, include_rated=True)[0].tolist() for person in people]
    assert recall(flat.search(queries, 10)[1].tolist(), best) >= 0.99
    assert recall([graph.search(query, 10).keys.tolist() for query in queries], best) >= 0.99


def test_indexes_of_a_ranking_find_what_is_best_by_its_factors(
    ranking_of: Callable[..., Ranking], tmp_path: Path
) -> None:
    import faiss

    release = release_of(ranking=ranking_of(300, n_factors=6, n_pairs=0))
    about = export(release, "faiss", tmp_path / "x", part="ranking").about
    rows = list(csv.DictReader((tmp_path / "x/items.csv").read_text(encoding="utf-8").splitlines()))
    index, found, best = faiss.read_index(str(tmp_path / "x/index.faiss")), [], []
    for _, _, person in people_of(release)[5:]:
        listed = index.search(query_of(person, "ranking")[0][None], 10)[1][0]
        found.append([int(rows[row]["item"]) for row in listed])
        best.append([one.item for one in person.recommend(k=10, include_rated=True)])
    assert recall(found, best) >= 0.99
    assert about["left_out"][1] == "100 items outside the head, which follow by popularity"


def test_tables_and_arrays_hold_everything(ranking_of: Callable[..., Ranking], tmp_path: Path) -> None:
    release = release_of(n=60, ranking=ranking_of(60))
    assert release.ranking is not None
    export(release, "parquet", tmp_path / "table")
    rows = duckdb.execute(f"SELECT * FROM '{tmp_path}/table/vectors.parquet'").fetchall()
    assert [(row[0], row[1], row[2]) for row in rows[:2]] == [(0, 100, "Film, 0"), (1, 101, "Film, 1")]
    np.testing.assert_array_equal(np.array([row[-1] for row in rows], np.float32), vectors_of(release).items)
    listed = list(csv.reader((tmp_path / "table/items.csv").read_text(encoding="utf-8").splitlines()))
    assert listed[1] == ["0", "100", "Film, 0", ""]
    about = export(release, "numpy", tmp_path / "arrays").about
    assert about["parts"] == ["ratings", "ranking"]
    for name in ("items", "left", "right", "popularity"):
        np.testing.assert_array_equal(np.load(tmp_path / f"arrays/ranking_{name}.npy"), getattr(release.ranking, name))
    pairs = scipy.sparse.load_npz(tmp_path / "arrays/ranking_pairs.npz")
    np.testing.assert_array_equal(pairs.data, release.ranking.values)
    np.testing.assert_array_equal(np.load(tmp_path / "arrays/vectors.npy"), vectors_of(release).items)


KNOWN = Learnt(300, factors=8, pairs=0, rated=50, with_ratings=np.arange(300) % 6 == 1)
GRAPHS: dict[str, dict[str, Any]] = {
    "ratings": {},
    "per rating": {"ridge": Ridge(0.1, 0.2, 1.0)},
    "no penalty": {"K": 3, "ridge": Ridge(0.3, 0.0)},
    "biases": {"K": 0},
    "known in part": {"configuration": {"method": "sgd", "learnt": KNOWN.record()}},
    "implicit": IMPLICIT,
    "both": {"ranking": {}},
    "ranking": {"K": 0, "item_biases": np.zeros(300, np.float32), "ranking": {"threshold": 5.0}},
    "observations": {"K": 0, "item_biases": np.zeros(300, np.float32), "ranking": {"threshold": 0.0}, **IMPLICIT},
    "counts": {"K": 0, "item_biases": np.zeros(300, np.float32), "ranking": {"threshold": 6.0}, **IMPLICIT},
    "pairs alone": {"ranking": {"n_factors": 0, "n_pairs": 5}},
    "no pairs": {"ranking": {"n_pairs": 0}},
}


@pytest.mark.parametrize("name", GRAPHS)
def test_graphs_compute_what_dpmf_does(ranking_of: Callable[..., Ranking], tmp_path: Path, name: str) -> None:
    import onnxruntime

    changes = dict(GRAPHS[name])
    if "ranking" in changes:
        changes["ranking"] = ranking_of(300, **changes["ranking"])
    release = release_of(**changes)
    about = export(release, "onnx", tmp_path / "x").about
    assert (export(release, "numpy", tmp_path / "y").about.get("left_out") is not None) == (name == "known in part")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(tmp_path / "x/recommend.onnx", options, ["CPUExecutionProvider"])
    assert [one.name for one in session.get_outputs()] == about["outputs"]
    found, best = [], []
    for positions, values, person in people_of(release, 12):
        asked = {"items": np.array(positions, np.int64), "ratings": np.array(values, np.float32)}
        out = dict(zip(about["outputs"], session.run(None, asked), strict=True))
        chosen, scores = person.best(10)
        found.append([item for item in out["order"] if item not in positions][:10])
        best.append(chosen.tolist())
        assert sorted(out["order"]) == list(range(300))
        if release.ranking is None:
            scores[positions] = out["scores"][positions]
            np.testing.assert_allclose(out["scores"], scores, atol=1e-4)
        if release.predicts_ratings:
            np.testing.assert_allclose(out["expected"], person.predict(release.items.ids), atol=1e-4)
        if release.predicts:
            np.testing.assert_allclose(out["query"], query_of(person, "ratings")[0], atol=1e-4)
    assert recall(found, best) >= 0.99


def test_what_cannot_be_exported_is_said(
    ranking_of: Callable[..., Ranking], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rated, both = release_of(), release_of(ranking=ranking_of(300))
    only = replace(both, item_factors=np.zeros((300, 0), np.float32), item_biases=np.zeros(300, np.float32))
    popular = replace(only, ranking=Ranking.by_popularity(np.arange(300)))
    for release, to, part, words in [
        (rated, "csv", None, "to='csv' is not known"),
        (rated, "faiss", "ranking", "has no ranking part"),
        (only, "faiss", "ratings", "only ranks"),
        (both, "faiss", "users", "part='users' is not known"),
        (popular, "usearch", None, "nothing to search by"),
        (both, "onnx", "ranking", "has all parts"),
    ]:
        with pytest.raises(DpmfError, match=words):
            export(release, to, tmp_path / "x", part)
        assert not (tmp_path / "x").exists()
    lie = Guarantee.certified_by(Budget(1.0), [GaussianEvent("item sums", 5.0, 1, 40)], releases=["item factors"])
    with pytest.raises(NotVerified, match="cannot be exported"):
        export(replace(rated, guarantee=replace(lie, epsilon=0.01)), "numpy", tmp_path / "x")
    for library in ("faiss", "usearch.index", "onnx"):
        monkeypatch.setitem(sys.modules, library, None)
        to = library.split(".")[0]
        with pytest.raises(MissingExtra, match=rf"{to} is not installed: pip install 'dpmf\[export\]'"):
            export(rated, to, tmp_path / "x")
    assert not (tmp_path / "x").exists()


def test_an_export_says_what_is_guaranteed_and_replaces_its_own_kind_only(tmp_path: Path) -> None:
    release = SGD(n_factors=2, n_epochs=1).fit(make(40, 20), n_threads=1).release
    for _ in range(2):
        sizes = export(release, "numpy", tmp_path / "x").files
    assert sizes == {file.name: file.stat().st_size for file in (tmp_path / "x").iterdir()}
    about = json.loads((tmp_path / "x/about.json").read_text(encoding="utf-8"))
    assert about["guarantee"]["mode"] == "none"
    assert about["query"].endswith("an expected rating is the inner product + mean + the person's bias")
    implicit = export(release_of(**IMPLICIT), "parquet", tmp_path / "y").about
    assert implicit["query"].endswith("a score is the inner product")
    with pytest.raises(DpmfError, match=r"holds other files \(vectors.npy\)"):
        export(release, "parquet", tmp_path / "x")
