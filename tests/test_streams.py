"""Keys are the same for ever, and different for different seeds, purposes and ids."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpmf.streams import as_integer, generator, id_keys, mix, stream_key


def test_keys_never_change() -> None:
    """Anyone's split depends on these; a change of them needs a new version."""
    assert int(stream_key(0, "split")) == 5908037389828046083
    assert int(stream_key(7, "user factors")) == 12378317061788647032
    assert id_keys(np.array([0, 7, -1])).tolist() == [16294208416658607535, 7191089600892374487, 16490336266968443936]
    assert id_keys(np.array(["ann", "007"], object)).tolist() == [11957940740637538957, 13655456112802015817]


def test_every_seed_and_purpose_has_a_key_of_its_own() -> None:
    seeds, purposes = [0, 1, -1, 10, 2**64, 2**128], ["split", "order", "user factors", "item factors", ""]
    keys = {int(stream_key(seed, purpose)) for seed, purpose in product(seeds, purposes)}
    assert len(keys) == len(seeds) * len(purposes)


def test_generators_follow_seed_and_purpose() -> None:
    def draw(seed: int, purpose: str) -> float:
        return generator(seed, purpose).random()

    assert draw(1, "synthetic") == draw(1, "synthetic")
    assert len({draw(1, "synthetic"), draw(2, "synthetic"), draw(1, "other")}) == 3


@pytest.mark.parametrize("kind", [np.int8, np.int32, np.uint8, np.uint64, object])
def test_a_number_has_the_same_key_in_every_type(kind: type) -> None:
    assert id_keys(np.array([3, 100], kind)).tolist() == id_keys(np.array([3, 100])).tolist()


def test_a_number_and_its_text_have_the_same_key_but_other_spellings_do_not() -> None:
    keys = id_keys(np.array(["7", "007", "7 ", "+7", "seven"], object))
    assert int(keys[0]) == int(id_keys(np.array([7]))[0])
    assert len(set(keys.tolist())) == 5


@given(texts=st.lists(st.text("0123456789-abé", max_size=4), unique=True))
def test_the_key_of_an_id_does_not_depend_on_the_others(texts: list[str]) -> None:
    together = id_keys(np.array(texts, object)).tolist()
    assert together == [int(id_keys(np.array([text], object))[0]) for text in texts]
    assert len(set(together)) == len(texts)


def test_mixing_is_a_bijection_that_scatters_neighbours() -> None:
    mixed = mix(np.arange(100_000, dtype=np.uint64))
    assert len(np.unique(mixed)) == 100_000
    flipped = np.unpackbits((mixed[1:] ^ mixed[:-1]).view(np.uint8))
    assert abs(flipped.mean() - 0.5) < 0.002


@pytest.mark.parametrize(("text", "number"), [("0", 0), ("-5", -5), ("9223372036854775807", 2**63 - 1)])
def test_a_text_may_spell_an_integer(text: str, number: int) -> None:
    assert as_integer(text) == number


@pytest.mark.parametrize("text", ["", "-0", "007", "+1", "1_0", " 1", "1.0", "٣", "9223372036854775808", "9" * 5000])
def test_other_spellings_are_texts(text: str) -> None:
    assert as_integer(text) is None
