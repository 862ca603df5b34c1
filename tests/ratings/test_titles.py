"""Links between titles: series, seasons and sequels are found, and little else."""

from __future__ import annotations

import time

import numpy as np
import pytest

from dpmf.ratings import Items
from dpmf.ratings.titles import Links, catalogue_links, links_of

OTHERS = [f"{one} {other}" for one in ("Blue", "Old", "Wild") for other in ("River", "House", "Garden", "Storm")]


def similarity(one: str, other: str) -> float:
    """Return how similar two titles are among others."""
    found = links_of([one, other, *OTHERS])
    among = {(int(j), int(k)): float(value) for j, k, value in zip(*vars(found).values(), strict=True)}
    return among.get((0, 1), 0.0)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Catching Fire (The Hunger Games, #2)", "Mockingjay (The Hunger Games, #3)"),
        ("Gemina (The Illuminae Files, #2; Other, #7)", "Illuminae (The Illuminae Files, #1)"),
        ("Mushishi", "Mushishi Zoku Shou 2nd Season"),
        ("Alien (1979)", "Alien: Resurrection (1997)"),
        ("Star Trek IV: The Voyage Home (1986)", "Star Trek VI: The Undiscovered Country (1991)"),
        ("The Walking Dead, Vol. 06: This Sorrowful Life", "The Walking Dead, Vol. 1: Days Gone Bye"),
        ("Gintama&#039;", "Gintama': Enchousen"),
        ("POKÉMON", "Pokemon: Pikachu no Fuyuyasumi"),
        ("進撃の巨人 2", "進撃の巨人"),
    ],
)
def test_parts_of_a_series_are_linked(one: str, other: str) -> None:
    assert similarity(one, other) > 0.15
    assert similarity(one, other) == similarity(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Heat (1995)", "Casino (1995)"),
        ("Part 2", "Chapter 2"),
        ("II", "III"),
        ("", ""),
        ("12", "13"),
        ("!!!", "!!!"),
    ],
)
def test_numbers_and_nothing_link_nothing(one: str, other: str) -> None:
    assert similarity(one, other) == 0


def test_what_many_titles_have_in_common_links_none_of_them() -> None:
    assert not len(links_of([f"The Tale of {'x' * place}y" for place in range(3, 203)]).first)


def test_links_are_ascending_pairs_and_not_too_many() -> None:
    generator = np.random.default_rng(0)
    words = [f"w{'abcdefghij'[one // 10]}{'abcdefghij'[one % 10]}" for one in range(60)]
    titles = [" ".join(generator.choice(words, 3)) for _ in range(1500)]
    found = links_of(titles)
    assert (found.first < found.second).all()
    places = found.first.astype(np.int64) * len(titles) + found.second
    assert (np.diff(places) > 0).all()
    assert 0 < len(found.first) <= 25 * len(titles)
    assert ((found.similarity >= 0.05) & (found.similarity <= 1)).all()


def test_a_catalogue_without_titles_has_no_links() -> None:
    ids = [f"series {'abc'[place // 2]}: {place}" for place in range(6)]
    assert not len(catalogue_links(Items.of(ids)).first)
    assert len(catalogue_links(Items.of(range(6), titles=ids)).first)


def test_coverage_is_the_part_with_a_close_link() -> None:
    links = Links(np.array([0, 0, 1], np.int32), np.array([1, 2, 3], np.int32), np.array([0.9, 0.29, 0.3]))
    assert links.coverage(10) == 0.3
    assert links_of([]).coverage(0) == 0


def test_groups_are_named_by_their_first_member() -> None:
    titles = ["Emma", "Dune (Dune, #1)", "Dune Messiah (Dune, #2)", "Heat", "Hidden Dune (Dune, #3)"]
    groups = links_of(titles).groups(5)
    assert groups.tolist() == [0, 1, 1, 3, 1]
    assert groups.dtype == np.int32
    assert links_of([]).groups(0).tolist() == []


def test_a_large_catalogue_takes_seconds() -> None:
    start = time.perf_counter()
    links_of([f"Volume {'abcdefghij'[one % 10]}{one // 10 % 97} of tale t{one // 7}" for one in range(20_000)])
    assert time.perf_counter() - start < 20
