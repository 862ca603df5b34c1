"""What each party of the published protocol sees: masked elements, sums and item lists; no secret is ever shown."""

from __future__ import annotations

import copy
import itertools
import logging
import math
import pickle
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpmf.errors import InvalidArgument
from dpmf.federated.published import ThirdParty, recommender, third_party
from dpmf.federated.published import user as user_module
from dpmf.federated.published.messages import Answer, Total, Wanted
from dpmf.federated.wire import masks
from dpmf.federated.wire.parties import RECOMMENDER, THIRD_PARTY

from .published_world import World

N_ITEMS = 40


def people(rating: float, n_users: int = 5) -> dict[int, dict[int, float]]:
    return {user: dict.fromkeys(range(N_ITEMS), rating) for user in range(n_users)}


def seen_by_third_party(rating: float, monkeypatch: pytest.MonkeyPatch, shared_noise: bool) -> np.ndarray[Any, Any]:
    """Return all elements that the third party reads when everybody rates everything alike."""
    seen: list[np.ndarray[Any, Any]] = []
    honest = ThirdParty._add

    def note(self: ThirdParty, sender: int, answer: Answer) -> None:
        seen.append(answer.elements.copy())
        honest(self, sender, answer)

    with monkeypatch.context() as patch:
        patch.setattr(ThirdParty, "_add", note)
        here = World(people(rating), shared_noise=shared_noise, epsilon=math.inf, n_factors=10)
        for _ in range(8):
            here.play()
    return np.concatenate([one.ravel() for one in seen])


@pytest.mark.parametrize("shared_noise", [False, True])
def test_what_the_third_party_sees_does_not_depend_on_ratings(
    monkeypatch: pytest.MonkeyPatch, shared_noise: bool
) -> None:
    low, high = (seen_by_third_party(rating, monkeypatch, shared_noise) for rating in (1.0, 5.0))
    for elements in (low, high):  # without any noise, and yet uniform
        for shift in (0, 8, 16, 24):
            counts = np.bincount(elements >> np.uint32(shift) & np.uint32(255), minlength=256)
            assert stats.chisquare(counts).pvalue > 1e-9
        assert abs(np.corrcoef(elements[:-1], elements[1:])[0, 1]) < 6 / math.sqrt(len(elements))
    assert stats.ks_2samp(low, high).pvalue > 1e-9


def test_without_masks_it_would(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_module, "mask_elements", lambda seed, ring, *shape: np.zeros(shape, ring.dtype))
    low, high = (seen_by_third_party(rating, monkeypatch, False) for rating in (1.0, 5.0))
    assert stats.ks_2samp(low, high).pvalue < 1e-12


def seen_by_recommender(ratings: Any, monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Return everything that the recommender reads, all randomness but the keys being the same every time."""
    numbers = itertools.count(1)
    for module in (recommender, third_party, masks):
        monkeypatch.setattr(module, "new_seed", lambda: next(numbers).to_bytes(32, "little"))
    here = World(ratings, shared_noise=True, seed=5, epsilon=math.inf)
    for user in here.users.values():
        user.profile[:] = [0.6, 0.0, 0.8]
    seen: list[bytes] = []
    for kind in (Wanted, Total):

        def note(content: bytes, *sizes: Any, read: Any = kind.decoded) -> Any:
            seen.append(content)
            return read(content, *sizes)

        monkeypatch.setattr(kind, "decoded", note)
    for number, user in here.users.items():
        here.send(number, RECOMMENDER, user.join().message)
    here.play()
    monkeypatch.undo()
    return seen


def test_the_recommender_sees_the_sum_and_the_items_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two people with the same items and profiles swap their ratings: the sum, and all that is seen, is the same."""
    others = {2: {0: 3.0, 1: 3.0}}
    one = seen_by_recommender({0: {0: 5.0, 2: 1.0}, 1: {0: 1.0, 2: 4.0}, **others}, monkeypatch)
    swapped = seen_by_recommender({0: {0: 1.0, 2: 4.0}, 1: {0: 5.0, 2: 1.0}, **others}, monkeypatch)
    other_sum = seen_by_recommender({0: {0: 2.0, 2: 4.0}, 1: {0: 5.0, 2: 1.0}, **others}, monkeypatch)
    assert len(one) == 4
    assert one == swapped
    assert one[:3] == other_sum[:3]
    assert one[3] != other_sum[3]


def test_a_relay_sees_lengths_alone() -> None:
    low, high = (World(people(rating), shared_noise=True) for rating in (1.0, 5.0))
    for here in (low, high):
        here.play()
    shape = [(sender, to, len(message)) for sender, to, message in low.transcript]
    assert shape == [(sender, to, len(message)) for sender, to, message in high.transcript]
    content = np.frombuffer(b"".join(message[8:] for _, _, message in low.transcript), np.uint8)
    assert stats.chisquare(np.bincount(content, minlength=256)).pvalue > 1e-9


def test_no_secret_is_ever_shown(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    ratings = {714: {0: 4.75, 2: 1.25}, 815: {0: 2.75, 1: 3.25}}
    here = World(ratings, shared_noise=True)
    here.play(silent=[815])
    here.send(714, THIRD_PARTY, b"garbage")
    here.send(999, THIRD_PARTY, b"garbage")
    here.send(714, RECOMMENDER, b"x" * 99)
    here.send(RECOMMENDER, 714, b"y" * 99)
    assert len(caplog.records) == 4
    parties = [here.recommender, here.third_party, here.draws, *here.users.values()]
    shown = caplog.text + " ".join(f"{one!r} {one} {getattr(one, 'refusals', '')!r}" for one in parties)
    for secret in ("714", "815", "999", "4.75", "1.25", "0x", "array", "\\x"):
        assert secret not in shown
    for user in here.users.values():
        for number in user.profile:
            assert f"{number:.3f}"[:5] not in shown


def test_parties_cannot_be_copied_or_pickled() -> None:
    here = World(people(3.0, 2), shared_noise=True)
    for party in (here.recommender, here.third_party, here.users[0], here.draws):
        for take in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(InvalidArgument, match="cannot be copied"):
                take(party)
