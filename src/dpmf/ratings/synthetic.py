"""Synthetic ratings with known structure: genres, named items, power-law popularity, planted tastes.

Every person likes some genres and dislikes others, is generous or strict, and rates popular things more often; every
item has a quality and belongs to one or two genres. So a model that learns has something to find, and a picture of
the item factors shows the genres apart.

>>> ratings = make(n_users=50, n_items=40)
>>> ratings.n_users, ratings.n_items, ratings.scale.lo, ratings.scale.hi
(50, 40, 1.0, 5.0)
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpmf.errors import InvalidArgument
from dpmf.ratings.items import Items
from dpmf.ratings.table import Ratings
from dpmf.streams import generator

_GENRES = {
    "Space": ("Orbit", "Comet", "Nebula", "Airlock", "Moonrise", "Pulsar"),
    "Heist": ("Vault", "Getaway", "Alibi", "Lockpick", "Ledger", "Decoy"),
    "Romance": ("Letter", "Waltz", "Orchard", "Promise", "Lighthouse", "Bouquet"),
    "Horror": ("Cellar", "Whisper", "Séance", "Marsh", "Mirror", "Nightfall"),
    "Comedy": ("Picnic", "Mix-up", "Neighbour", "Wedding", "Parrot", "Detour"),
    "History": ("Siege", "Crown", "Harvest", "Treaty", "Voyage", "Cathedral"),
    "Nature": ("Glacier", "Heron", "Canyon", "Reef", "Migration", "Meadow"),
    "Music": ("Encore", "Tempo", "Duet", "Backstage", "Vinyl", "Overture"),
}
_ADJECTIVES = (
    *("Silent", "Golden", "Last", "Hidden", "Crooked", "Electric", "Paper", "Winter", "Borrowed", "Endless"),
    *("Crimson", "Second", "Broken", "Midnight", "Gentle", "Northern", "Forgotten", "Burning", "Velvet", "Lucky"),
)
_SYLLABLES = (*("ba", "ke", "di", "fo", "gu", "ha", "je", "ki", "lo", "mu"), *("na", "pe", "ri", "so", "tu", "va"))


def make(
    n_users: int = 3000, n_items: int = 600, *, mean_ratings: float = 60.0, noise: float = 0.7, seed: int = 0
) -> Ratings:
    """Return synthetic ratings on the scale 1 to 5, in whole stars.

    Args:
        n_users, n_items: sizes.
        mean_ratings: about how many ratings a person gives (log-normal, at least 5).
        noise: standard deviation of what tastes and quality do not explain.
        seed: fixes everything.
    """
    if n_users < 1 or n_items < 10:
        raise InvalidArgument(f"{n_users} users and {n_items} items are too few: at least 1 and 10")
    rng = generator(seed, "synthetic")
    catalogue, membership = _catalogue(n_items, rng)
    popularity = 1.0 / (np.arange(n_items) + 10.0) ** 0.9
    rng.shuffle(popularity)
    quality = rng.normal(0.0, 0.35, n_items) + 0.15 * np.log(popularity / popularity.mean())
    tastes = rng.normal(0.0, 0.75, (n_users, len(_GENRES)))
    generosity = rng.normal(0.0, 0.4, n_users)
    counts = np.clip(rng.lognormal(np.log(mean_ratings) - 0.32, 0.8, n_users), 5, 0.6 * n_items).astype(int)

    users = np.repeat(np.arange(n_users), counts)
    items = np.concatenate(
        [_choose(popularity * np.exp(0.5 * tastes[i] @ membership.T), counts[i], rng) for i in range(n_users)]
    )
    clean = 3.4 + generosity[users] + quality[items] + np.einsum("ng,ng->n", tastes[users], membership[items])
    values = np.clip(np.rint(clean + rng.normal(0.0, noise, len(users))), 1, 5)
    names = np.array([f"person-{i:05d}" for i in range(n_users)], object)
    ratings = Ratings.of(names[users], catalogue.ids.array[items], values, scale=(1, 5), items=catalogue)
    return replace(ratings, name="synthetic")


def _catalogue(
    n_items: int, rng: np.random.Generator
) -> tuple[Items, np.ndarray[tuple[int, int], np.dtype[np.float64]]]:
    """Return named items, and how much each belongs to each genre: 1 to its own, half to a second one for a third."""
    genres = list(_GENRES)
    membership = np.zeros((n_items, len(genres)))
    titles, labels = [], []
    for item in range(n_items):
        own, other = item % len(genres), int(rng.integers(len(genres)))
        membership[item, own] = 1.0
        label = [genres[own]]
        if other != own and rng.random() < 1 / 3:
            membership[item, other] = 0.5
            label.append(genres[other])
        place = item // len(genres)
        nouns = _GENRES[genres[own]]
        noun, number = nouns[place % len(nouns)], place // len(nouns)
        # Parts of a series would be linked by their titles, and tastes know nothing of series: names are all different.
        titles.append(
            f"The {_ADJECTIVES[number]} {noun}" if number < len(_ADJECTIVES) else f"The {noun} of {_name(item)}"
        )
        labels.append("|".join(label))
    return Items.of(np.arange(1, n_items + 1), titles, labels), membership


def _name(number: int) -> str:
    """Return a synthetic name, a different one for every number.

    >>> _name(0), _name(1), _name(1000)
    ('Bababa', 'Kebaba', 'Lotufo')
    """
    syllables: list[str] = []
    while number or len(syllables) < 3:
        number, place = divmod(number, len(_SYLLABLES))
        syllables.append(_SYLLABLES[place])
    return "".join(syllables).capitalize()


def _choose(
    weights: np.ndarray[tuple[int], np.dtype[np.float64]], count: int, rng: np.random.Generator
) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """Return `count` distinct items, drawn one after the other with these weights (the Gumbel trick)."""
    keys = np.log(weights) + rng.gumbel(size=len(weights))
    return np.sort(np.argpartition(keys, -count)[-count:])  # sorted, because NumPy does not specify the order
