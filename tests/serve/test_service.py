"""The HTTP service: right answers, clear refusals, and nothing about a person kept or logged."""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import schemathesis
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance

from dpmf.model import Ranking, Release
from dpmf.ratings import Items
from dpmf.serve.limits import MOST_BYTES
from dpmf.serve.service import MOST_GENRES, MOST_RATINGS

from .client import application, ask
from .samples import CERTIFIED


def test_recommendations_are_those_of_the_library(client: TestClient, release: Release) -> None:
    ratings = {"10": 5, "Alien (1979)": 1.5, "60": 3, "never heard of": 4}
    answer = ask(client, ratings, k=4)
    assert answer.status_code == 200
    person = release.fold_in(ratings)
    expected = [one.to_json() for one in person.recommend(k=4)]
    found = answer.json()["recommendations"]
    assert [one["item"] for one in found] == [one["item"] for one in expected]
    np.testing.assert_allclose([one["score"] for one in found], [one["score"] for one in expected], atol=1e-4)
    assert (answer.json()["unknown"], answer.json()["ordered_by"]) == (["never heard of"], "factors")


def test_ratings_of_unknown_items_alone_get_the_default_ranking(client: TestClient, release: Release) -> None:
    answer = ask(client, {"nothing": 3}, k=2).json()
    assert [one["item"] for one in answer["recommendations"]] == [one.item for one in release.fold_in({}).recommend(2)]
    assert answer["unknown"] == ["nothing"]


def test_nothing_is_recommended_where_nothing_is_known(release: Release, tmp_path: Path) -> None:
    nothing = {"item_factors": np.zeros((6, 2), np.float32), "item_biases": np.zeros(6, np.float32)}
    replace(release, guarantee=CERTIFIED, **nothing).save(tmp_path / "release")  # type: ignore[arg-type]
    with TestClient(application(tmp_path / "release")) as client:
        answer = ask(client, {"10": 5})
    assert (answer.status_code, "learnt nothing" in answer.json()["detail"]) == (409, True)


def test_implicit_releases_recommend_too(release: Release, tmp_path: Path) -> None:
    implicit = replace(release, feedback="implicit", alpha=2.0, guarantee=CERTIFIED)
    implicit.save(tmp_path / "release")
    with TestClient(application(tmp_path / "release")) as client:
        found = ask(client, {"10": 1, "20": 1}, k=3).json()["recommendations"]
    assert [one["item"] for one in found] == [one.item for one in implicit.fold_in([10, 20]).recommend(k=3)]


def test_counts_weigh_as_in_the_library(release: Release, ranking_of: Callable[..., Ranking], tmp_path: Path) -> None:
    ranking = replace(ranking_of(6), threshold=16.0, lowest_weight=0.5)
    nothing = {"item_factors": np.zeros((6, 0), np.float32), "item_biases": np.zeros(6, np.float32)}
    kind: dict[str, Any] = {"feedback": "implicit", "guarantee": CERTIFIED, "ranking": ranking, **nothing}
    counted = replace(release, **kind)
    counted.save(tmp_path / "release")
    loaded = Release.load(tmp_path / "release")
    with TestClient(application(tmp_path / "release")) as client:
        for own in ({"10": 1, "60": 40.0}, {"10": 40, "60": 0.5}):
            found = ask(client, own, k=3).json()["recommendations"]
            assert found == [one.to_json() for one in loaded.fold_in(own).recommend(k=3)]
        for count in (0, -1):
            assert ask(client, {"10": count}, k=3).status_code == 422


def test_a_ranking_part_orders_recommendations_and_ratings_stand_beside_scores(
    release: Release, ranking_of: Callable[..., Ranking], tmp_path: Path
) -> None:
    ranked = replace(release, guarantee=CERTIFIED, ranking=ranking_of(6))
    nothing = {"item_factors": np.zeros((6, 0), np.float32), "item_biases": np.zeros(6, np.float32)}
    for place, served in enumerate((ranked, replace(ranked, **nothing))):  # type: ignore[arg-type]
        served.save(tmp_path / f"release-{place}")
        with TestClient(application(tmp_path / f"release-{place}")) as client:
            found = ask(client, {"10": 5, "60": 4}, k=3).json()["recommendations"]
            described = client.get("/api/release").json()
        assert found == [one.to_json() for one in served.fold_in({10: 5, 60: 4}).recommend(3)]
        assert ("rating" in found[0], described["predicts"], described["ranks"]) == (place == 0, place == 0, True)


@pytest.mark.parametrize(
    "choice",
    [
        {"only": [30, "60", "Alien (1979)"]},
        {"exclude": [60.0, "Alien (1979)"]},
        {"only_genres": ["Space", "History"], "exclude": []},
        {"exclude_genres": ["Romance"], "most_per_genre": 1},
        {"only_genres": ["Space"], "exclude_genres": ["Horror"]},
        {"only": []},
    ],
)
def test_filters_are_those_of_the_library(client: TestClient, release: Release, choice: dict[str, Any]) -> None:
    answer = ask(client, {"10": 5, "40": 2}, **choice)
    assert answer.status_code == 200
    expected = release.fold_in({10: 5, 40: 2}).recommend(**choice)
    assert [one["item"] for one in answer.json()["recommendations"]] == [one.item for one in expected]


def test_a_limit_on_genres_is_that_of_the_library(release: Release, tmp_path: Path) -> None:
    items = Items.of(release.items.ids, genres=["a", "a|b", "b", "a", "", "c|b"])
    replace(release, items=items, guarantee=CERTIFIED).save(tmp_path / "release")
    with TestClient(application(tmp_path / "release")) as client:
        found = ask(client, {"nothing": 3}, most_per_genre=1).json()["recommendations"]
        unfiltered = ask(client, {"nothing": 3}, only=None, most_per_genre=None).json()["recommendations"]
    assert [one["item"] for one in found] == [60, 10, 50]
    assert [one["item"] for one in unfiltered] == [60, 10, 30, 50, 40, 20]


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"only": ["alien"]}, "item 'alien' is not in the catalogue: did you mean 'Alien (1979)'?"),
        ({"exclude": [77]}, "item 77 is not in the catalogue"),
        ({"exclude": ["Up"]}, "'Up' is the title of several items"),
        ({"only_genres": ["crime"]}, "no item has the genre 'crime': did you mean 'Crime'?"),
        ({"only": list(range(MOST_RATINGS + 1))}, "at most 1000 items"),
        ({"exclude_genres": ["Crime"] * (MOST_GENRES + 1)}, "at most 100 items"),
        ({"most_per_genre": 0}, "greater than or equal to 1"), ({"most_per_genre": 101}, "less than or equal to 100"),
        ({"only": [True]}, "valid integer"), ({"exclude": [1.5]}, "valid integer"), ({"only_genres": "Crime"}, "list"),
    ],
)  # fmt: skip
def test_wrong_filters_are_refused_with_a_reason(client: TestClient, choice: dict[str, Any], message: str) -> None:
    answer = ask(client, {"10": 5}, **choice)
    assert answer.status_code == 422
    assert message in " ".join(one["msg"] for one in answer.json()["detail"])


def test_without_genres_a_limit_on_them_is_refused(release: Release, tmp_path: Path) -> None:
    items = Items.of(release.items.ids)
    replace(release, items=items, guarantee=CERTIFIED).save(tmp_path / "release")
    with TestClient(application(tmp_path / "release")) as client:
        answer = ask(client, {"10": 5}, most_per_genre=3)
    assert answer.status_code == 422
    assert "this catalogue has none" in answer.json()["detail"][0]["msg"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"ratings": {"10": 6}}, 422), ({"ratings": {"10": 0.5}}, 422), ({"ratings": {}}, 422), ({}, 422),
        ({"ratings": {"10": "5"}}, 422), ({"ratings": {"10": None}}, 422), ({"ratings": {"10": True}}, 422),
        ({"ratings": [10]}, 422), ({"ratings": {"10": 5}, "k": 0}, 422), ({"ratings": {"10": 5}, "k": 101}, 422),
        ({"ratings": {"10": 5}, "k": 2.5}, 422), ({"ratings": {"10": 5}, "who": "me"}, 422), ([], 422),
        ({"ratings": {"10": 5, "Heat (1995)": 4}}, 409), ({"ratings": {"Up": 5}}, 409),
        ({"ratings": {str(number): 3 for number in range(MOST_RATINGS + 1)}}, 422),
    ],
)  # fmt: skip
def test_wrong_requests_are_refused_with_a_reason(client: TestClient, body: Any, status: int) -> None:
    answer = client.post("/api/recommend", json=body)
    assert answer.status_code == status
    assert answer.json()["detail"]


@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe", b'{"ratings":{"10":NaN}}', b'{"ratings":{"10":1e999}}',
                                  b'{"ratings":{"\\ud800":5}}'])  # fmt: skip
def test_invalid_json_is_refused(client: TestClient, body: bytes) -> None:
    answer = client.post("/api/recommend", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 422


def test_recommending_here_is_off_unless_asked_for(folder: Path) -> None:
    with TestClient(application(folder, recommends=False)) as client:
        assert ask(client, {"10": 5}).status_code == 405  # only files are there, and nobody posts to those
        assert "/api/recommend" not in client.get("/api/openapi.json").json()["paths"]
        assert client.get("/api/release").json()["recommends_here"] is False
    with TestClient(application(folder)) as client:
        described = client.get("/api/openapi.json").json()["paths"]["/api/recommend"]["post"]["description"]
        assert "Sends ratings to this server" in described


def test_the_catalogue_can_be_searched_and_paged(client: TestClient) -> None:
    whole = client.get("/api/items").json()
    assert whole["total"] == 6
    assert whole["items"][0] == {"item": 10, "title": "Heat (1995)", "genres": "Crime"}
    assert [one["item"] for one in client.get("/api/items", params={"query": "AMÉLIE destin"}).json()["items"]] == [30]
    assert [one["item"] for one in client.get("/api/items", params={"offset": 4, "limit": 9}).json()["items"]] == [
        50,
        60,
    ]
    assert client.get("/api/items", params={"query": "no such"}).json() == {"total": 0, "items": []}
    for wrong in ({"limit": 0}, {"limit": 101}, {"offset": -1}, {"query": "x" * 201}):
        assert client.get("/api/items", params=wrong).status_code == 422


def test_similar_items(client: TestClient, release: Release) -> None:
    found = client.get("/api/similar", params={"item": "Heat (1995)", "k": 2}).json()["similar"]
    assert found == [one.to_json() for one in release.similar_items(10, 2)]
    assert client.get("/api/similar", params={"item": "nothing"}).status_code == 404
    assert client.get("/api/similar", params={"item": "Up"}).status_code == 409  # two have this title
    assert client.get("/api/similar").status_code == 422


def test_release_and_health(client: TestClient) -> None:
    found = client.get("/api/release").json()
    assert found["guarantee"] == json.loads(json.dumps(CERTIFIED.to_json()))
    assert (found["certified"], found["n_items"], found["n_factors"], found["scale"]) == (
        True,
        6,
        2,
        {"lo": 1, "hi": 5},
    )
    assert client.get("/api/health").json()["status"] == "ok"


def test_every_answer_has_the_security_headers(client: TestClient) -> None:
    for answer in (client.get("/"), client.get("/nothing"), client.get("/api/health"), ask(client, {"10": 9}),
                   client.post("/api/recommend", content=b"x" * (MOST_BYTES + 1))):  # fmt: skip
        assert "connect-src 'self'" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert "set-cookie" not in answer.headers


def test_nothing_of_a_person_is_logged(client: TestClient, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    ask(client, {"10": 4.321, "Alien (1979)": 1.234})
    ask(client, {"10": 4.321, "my secret film": 1.234})
    ask(client, {"10": 43.21})
    ours = [record for record in caplog.records if not record.name.startswith("httpx")]
    for secret in ("4.321", "1.234", "43.21", "Alien", "secret"):
        assert secret not in " ".join(record.getMessage() for record in ours)


def test_head_is_answered_and_refusals_do_not_repeat(client: TestClient) -> None:
    assert client.head("/api/health").status_code == 200
    assert client.head("/api/nothing").status_code == 404
    assert "secret" not in ask(client, {"my secret film": 9}).text
    plain = client.get("/release/release.json", headers={"accept-encoding": "gzip;q=0, identity"})
    assert "content-encoding" not in plain.headers


@pytest.mark.filterwarnings("ignore")
def test_the_openapi_description_is_accurate(folder: Path) -> None:
    """Schemathesis sends what the description allows, and what it does not, and checks every answer against it."""
    app, seen = application(folder), set[str]()
    with TestClient(app):
        schema = schemathesis.openapi.from_asgi("/api/openapi.json", app)
        found: Any
        for found in schema.get_all_operations():
            for mode in GenerationMode:

                @settings(max_examples=30, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
                @given(case=found.ok().as_strategy(generation_mode=mode))
                def check(case: Any) -> None:
                    seen.add(case.operation.label)
                    answer = case.call()
                    # Filters may name items and genres that do not exist: the description cannot list those that do.
                    refused = answer.status_code == 422 and answer.json()["detail"][0]["type"] == "filter"
                    case.validate_response(answer, excluded_checks=[positive_data_acceptance] if refused else [])

                with contextlib.suppress(Unsatisfiable):  # what takes no arguments cannot be asked wrongly
                    check()
    assert len(seen) == 5
