"""What the page computes is what dpmf computes: the JavaScript of the site, run in a real browser."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dpmf.model import Explanation, Person, Ranking, Release, Ridge
from dpmf.model.learnt import Learnt
from dpmf.ratings import Scale

from .host import Host
from .samples import random_release

N_PEOPLE = 12
IMPLICIT = {"mean": 0.0, "scale": Scale(0, 1), "feedback": "implicit"}
KNOWN = Learnt(
    60, factors=4, pairs=0, rated=20, with_factors=np.arange(60) % 3 == 1, with_ratings=np.arange(60) % 3 == 1
)
RELEASES: dict[str, dict[str, Any]] = {
    "one factor": {"K": 1},
    "few factors": {"K": 4, "ridge": Ridge(0.5, 0.25)},
    "per rating": {"K": 8, "ridge": Ridge(0.02, 0.05, exponent=1.0)},
    "between": {"K": 16, "ridge": Ridge(1.0, 2.0, exponent=0.5), "scale": Scale(0.5, 5)},
    "no penalty": {"K": 3, "ridge": Ridge(0.3, 0.0)},
    "many factors": {"K": 65, "n": 300, "ridge": Ridge(4.0, 12.0)},
    "wide scale": {"K": 5, "scale": Scale(0, 100), "mean": 60.0},
    "known in part": {"K": 4, "configuration": {"method": "als", "learnt": KNOWN.record()}},
    "implicit": {"K": 6, "alpha": 3.0, **IMPLICIT},
    "implicit, many": {"K": 33, "n": 400, "alpha": 0.5, "ridge": Ridge(0.0, 0.1), **IMPLICIT},
}

COMPUTE = """async ([paths, people]) => {
  const [{ modelOf }, { foldIn, scoresOf, contributions }, { best, listed, similar }] =
    await Promise.all(["release", "foldin", "ranking"].map((name) => import(paths[`js/${name}.js`])));
  const facts = await (await fetch(paths["release/release.json"])).json();
  const model = modelOf(facts, await (await fetch(paths["release/release.safetensors"])).arrayBuffer());
  return {
    people: people.map(({ items, values }) => {
      const person = foldIn(model, items, values);
      const scores = scoresOf(model, person);
      const sums = Array.from(scores, (_, item) => {
        const { start, parts } = contributions(model, person, item);
        return start + parts.reduce((total, part) => total + part, 0);
      });
      const why = [0, 7].map((item) => contributions(model, person, item));
      return { scores: [...scores], sums, why, best: best(listed(model, scores), 10, (item) => !items.includes(item)) };
    }),
    similar: similar(model, 1, 5),
  };
}"""


def put_up(host: Host, release: Release, name: str) -> dict[str, str]:
    """Put a site up, and return the addresses of its files, by their names without digests."""
    address = host.site(release, name)
    return {file: f"{address}{path}" for file, path in host.paths(name).items()}


def people_of(release: Release) -> list[dict[str, list[Any]]]:
    rng = np.random.default_rng(7)
    people = []
    for count in np.linspace(0, min(40, len(release.items) // 2), N_PEOPLE).astype(int):
        items = np.sort(rng.choice(len(release.items), count, replace=False))
        values = rng.uniform(release.scale.lo, release.scale.hi, count).round(1)
        people.append({"items": items.tolist(), "values": values.tolist()})
    return people


def scores_of(person: Person) -> np.ndarray[Any, Any]:
    release = person.release
    return release.item_factors @ person.factors + release.item_biases + release.mean + person.bias


def in_order(person: Person, explained: Explanation) -> list[float]:
    """Return what each of a person's items adds, in the order of the catalogue, as the page has it."""
    adds = {one.item: one.adds for one in explained.shares}
    items = (person.release.items.ids[int(place)] for place in person.rated)
    return [adds[item] for item in items if item in adds]


@pytest.mark.parametrize("name", RELEASES)
def test_fold_in_equals_the_one_in_python(browser: Any, host: Host, name: str) -> None:
    changes = dict(RELEASES[name])
    release = random_release(n=changes.pop("n", 60), K=changes.pop("K"), **changes)
    paths = put_up(host, release, f"maths-{name.replace(' ', '-').replace(',', '')}")
    people = people_of(release)
    page = browser.new_page()
    try:
        page.goto(f"{host.address}/blank.html")
        answer = page.evaluate(COMPUTE, [paths, people])
    finally:
        page.close()
    for person, found in zip(people, answer["people"], strict=True):
        rated = {release.items.ids[item]: value for item, value in zip(*person.values(), strict=True)}
        expected = release.fold_in(rated)
        np.testing.assert_allclose(found["scores"], scores_of(expected), rtol=0, atol=1e-4)
        np.testing.assert_allclose(found["sums"], scores_of(expected), rtol=0, atol=1e-4)
        for item, why in zip([0, 7], found["why"], strict=True):
            explained = expected.explain(release.items.ids[item])
            assert why["start"] == pytest.approx(explained.start, abs=1e-4)
            np.testing.assert_allclose(why["parts"], in_order(expected, explained), rtol=0, atol=1e-4)
        chosen = [one.item for one in expected.recommend(k=10)]
        assert [release.items.ids[item] for item in found["best"]] == chosen
    alike = release.similar_items(release.items.ids[1], k=5)
    assert [release.items.ids[one["item"]] for one in answer["similar"]] == [one.item for one in alike]
    np.testing.assert_allclose([one["cosine"] for one in answer["similar"]], [one.score for one in alike], atol=1e-4)


RANKINGS: dict[str, dict[str, Any]] = {
    "both": {},
    "only": {"K": 0, "item_biases": np.zeros(60, np.float32)},
    "implicit": {"K": 0, "item_biases": np.zeros(60, np.float32), "implicit": True, "threshold": 0.0},
    "counts": {"K": 0, "item_biases": np.zeros(60, np.float32), "implicit": True, "threshold": 4.0},
    "no factors": {"n_factors": 0, "n_pairs": 5},
    "no pairs": {"n_factors": 4, "n_pairs": 0},
    "threshold at the top": {"threshold": 5.0},
}

RANK = """async ([paths, people]) => {
  const [{ modelOf }, { ownerOf, rankingScores, rankingParts, together }, { best }] =
    await Promise.all(["release", "pairs", "ranking"].map((name) => import(paths[`js/${name}.js`])));
  const facts = await (await fetch(paths["release/release.json"])).json();
  const model = modelOf(facts, await (await fetch(paths["release/release.safetensors"])).arrayBuffer());
  const { ranking, predicts } = model;
  return {
    predicts,
    people: people.map(({ items, values }) => {
      const owner = ownerOf(ranking, items, values);
      const scores = rankingScores(ranking, owner);
      const sums = Array.from(scores, (_, item) =>
        rankingParts(ranking, owner, item)?.reduce((total, part) => total + part, 0) ?? null);
      const why = [0, 7].map((item) => ({ items: owner.items, parts: rankingParts(ranking, owner, item) ?? [] }));
      return { why, scores: [...scores], sums, best: best(scores, 60, (item) => !items.includes(item), ranking.order) };
    }),
    together: Array.from(ranking.places, (_, item) => together(ranking, item, 5)),
  };
}"""


@pytest.mark.parametrize("name", RANKINGS)
def test_the_ranking_equals_the_one_in_python(
    browser: Any, host: Host, ranking_of: Callable[..., Ranking], name: str
) -> None:
    changes = dict(RANKINGS[name])
    of_release: dict[str, Any] = {name: changes.pop(name) for name in ("K", "item_biases") if name in changes}
    if changes.pop("implicit", False):
        of_release |= IMPLICIT
    release = random_release(**of_release, ranking=ranking_of(60, **{"n_factors": 7, **changes}))
    assert release.ranking is not None
    paths = put_up(host, release, f"ranking-{name.replace(' ', '-')}")
    people = people_of(release)
    if name == "counts":
        people = [{**one, "values": [1 + 6 * value for value in one["values"]]} for one in people]
    page = browser.new_page()
    try:
        page.goto(f"{host.address}/blank.html")
        answer = page.evaluate(RANK, [paths, people])
    finally:
        page.close()
    assert answer["predicts"] == release.predicts
    for person, found in zip(people, answer["people"], strict=True):
        expected = release.fold_in(
            {release.items.ids[item]: value for item, value in zip(*person.values(), strict=True)}
        )
        assert expected.weights is not None
        scores = release.ranking.scores(expected.rated, expected.weights)
        np.testing.assert_allclose(found["scores"], scores, rtol=1e-4, atol=1e-5)
        for item, why in zip([0, 7], found["why"], strict=True):
            adds = {one.item: one.adds for one in expected.explain(release.items.ids[item]).shares}
            parts = dict(zip([release.items.ids[place] for place in why["items"]], why["parts"], strict=False))
            assert parts == pytest.approx(adds, rel=1e-4, abs=1e-5)
        known = [item for item, total in enumerate(found["sums"]) if total is not None]
        np.testing.assert_allclose([found["sums"][item] for item in known], scores[known], rtol=1e-4, atol=1e-5)
        assert [release.items.ids[item] for item in found["best"]] == [one.item for one in expected.recommend(k=60)]
    for item, alike in enumerate(answer["together"]):
        if release.ranking.knows(item):
            same = release.similar_items(release.items.ids[item], k=5)
            assert [release.items.ids[one["item"]] for one in alike] == [one.item for one in same]
            np.testing.assert_allclose([one["score"] for one in alike], [one.score for one in same], atol=1e-4)
        else:
            assert alike is None


DAMAGE_RANKING = """async ([paths]) => {
  const [{ modelOf, checkFacts }, { readTensors }] =
    await Promise.all(["release", "safetensors"].map((name) => import(paths[`js/${name}.js`])));
  const facts = await (await fetch(paths["release/release.json"])).json();
  const whole = await (await fetch(paths["release/release.safetensors"])).arrayBuffer();
  const refused = (damage) => {
    const [copy, buffer] = [structuredClone(facts), whole.slice(0)];
    damage(copy, Object.fromEntries([...readTensors(buffer)].map(([name, { data }]) => [name, data])));
    try {
      checkFacts(copy);
      modelOf(copy, buffer);
      return false;
    } catch (error) {
      return error.constructor.name === "Damaged";
    }
  };
  return [
    !refused(() => {}),
    refused((facts) => (facts.version = 6)),
    refused((facts) => (facts.ranking.n_items = "4")),
    refused((facts) => (facts.ranking.n_pairs += 1)),
    refused((facts) => (facts.ranking.threshold = null)),
    refused((facts, tensors) => (tensors.ranking_items[1] = 0)),
    refused((facts, tensors) => (tensors.ranking_pairs[0] = 1000)),
    refused((facts, tensors) => (tensors.ranking_indptr[1] = 99n)),
    refused((facts, tensors) => (tensors.ranking_values[0] = 0x7c00)),
    refused((facts, tensors) => (tensors.ranking_popularity[0] = NaN)),
    refused((facts, tensors) => tensors.ranking_left_exponents.fill(300)),
  ];
}"""


def test_a_damaged_ranking_is_refused(browser: Any, host: Host, ranking_of: Callable[..., Ranking]) -> None:
    # An even number of factors, and so on, so that all tensors are aligned and changed in place.
    paths = put_up(host, random_release(ranking=ranking_of(60, n_factors=8)), "damaged-ranking")
    page = browser.new_page()
    try:
        page.goto(f"{host.address}/blank.html")
        assert page.evaluate(DAMAGE_RANKING, [paths]) == [True] * 11
    finally:
        page.close()


DAMAGE = """async ([paths]) => {
  const { readTensors } = await import(paths["js/safetensors.js"]);
  const whole = await (await fetch(paths["release/release.safetensors"])).arrayBuffer();
  const refused = (buffer) => {
    try {
      readTensors(buffer);
      return false;
    } catch (error) {
      return error.constructor.name === "Damaged";
    }
  };
  const altered = (place, value) => {
    const copy = new Uint8Array(whole.slice(0));
    copy[place] = value;
    return copy.buffer;
  };
  return [
    !refused(whole), refused(new ArrayBuffer(0)), refused(whole.slice(0, 7)), refused(whole.slice(0, 40)),
    refused(whole.slice(0, -1)), refused(altered(7, 255)), refused(altered(8, 0)), refused(new ArrayBuffer(64)),
  ];
}"""


def test_damaged_tensors_are_refused(browser: Any, host: Host) -> None:
    paths = put_up(host, random_release(), "damage")
    page = browser.new_page()
    try:
        page.goto(f"{host.address}/blank.html")
        assert page.evaluate(DAMAGE, [paths]) == [True] * 8
    finally:
        page.close()
