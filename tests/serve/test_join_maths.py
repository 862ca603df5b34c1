"""What the page sends when somebody takes part is what dpmf sends: vectors of Python, checked in a real browser."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import kstest

from .host import Host
from .joining import Joining

LEAST_P = 1e-9  # fresh noise every time: one test in a billion fails
VECTORS = json.loads((Path(__file__).parent.parent / "federated" / "vectors" / "wire2.json").read_text())


@pytest.fixture(scope="module")
def joining(browser: Any, host: Host) -> Any:
    """Return a blank page with the modules at hand."""
    with Joining(browser, host) as joining:
        yield joining


def test_seals_equal_those_of_python_and_are_opened_once(joining: Joining) -> None:
    found = joining.run(
        ["channel", "bytes"],
        """
        const { private: privates, public: publics, contents, there, back } = vectors.channel;
        const prefix = unhex("302e020100300506032b656e04220420", 16);
        const keysOf = async (place) => {
          const pkcs8 = joined(prefix, unhex(privates[place], 32));
          const privateKey = await crypto.subtle.importKey("pkcs8", pkcs8, { name: "X25519" }, false, ["deriveBits"]);
          return { privateKey, public: unhex(publics[place], 32) };
        };
        const [one, other] = [await keysOf(0), await keysOf(1)];
        const [here, far] = [await openChannel(one, other.public), await openChannel(other, one.public)];
        const bytesOf = (text) => unhex(text, text.length / 2);
        const sealed = { there: [], back: [] };
        for (const content of contents) {
          sealed.there.push(hex(await here.seal(bytesOf(content))));
          sealed.back.push(hex(await far.seal(bytesOf(content))));
        }
        const opened = [];
        for (const message of there) opened.push(hex(await far.open(bytesOf(message))));
        const refused = async (message) => await far.open(message).then(() => null, (error) => error.message);
        const broken = bytesOf(there[2]);
        broken[20] ^= 1;
        const wrong = new Uint8Array(32);
        return {
          sealed,
          opened,
          again: await refused(bytesOf(there[1])),
          reflected: await refused(bytesOf(back[2])),
          broken: await refused(broken),
          short: await refused(broken.subarray(0, 20)),
          invalid: await openChannel(one, wrong).then(() => null, (error) => error.message),
          own: await openChannel(one, one.public).then(() => null, (error) => error.message),
        };
        """,
        VECTORS,
    )
    expected = VECTORS["channel"]
    assert found["sealed"] == {"there": expected["there"], "back": expected["back"]}
    assert found["opened"] == expected["contents"]
    assert "received before" in found["again"]
    assert found["reflected"] == found["broken"] == "the seal is broken"
    assert "too short" in found["short"]
    assert "not valid" in found["invalid"]
    assert "our own" in found["own"]


def test_masked_numbers_equal_those_of_python_beyond_53_bits_of_the_ring(joining: Joining) -> None:
    found = joining.run(
        ["masks", "ring", "bytes"],
        """
        const packed = [];
        for (const { numbers, seed, bytes } of vectors.masks) {
          const stream = await maskStream(unhex(seed, 32), numbers.length * maskBytes(bytes));
          packed.push(hex(masked(Float64Array.from(numbers), stream, bytes)));
        }
        const refuses = (number) => {
          try {
            masked(Float64Array.of(number), new Uint8Array(8), 8);
            return false;
          } catch (error) {
            return error instanceof RangeError;
          }
        };
        return { packed, refused: [0.5, NaN, Infinity, 2 ** 53].map(refuses) };
        """,
        VECTORS,
    )
    assert found["packed"] == [one["packed"] for one in VECTORS["masks"]]
    assert found["refused"] == [True] * 4


def test_the_sampler_is_that_of_python_table_by_table_and_draw_by_draw(joining: Joining) -> None:
    found = joining.run(
        ["discrete", "bytes"],
        """
        const whole = [];
        for (const { shares, words, refining } of vectors.noise) {
          const table = tableOf(shareSquare(shares));
          const turned = (digits) => digits.match(/../g).reverse().join("");
          const further = table.refined.map((limit) => turned(limit.toString(16).padStart(32, "0")));
          const columns = joined(new Uint8Array(table.thresholds.buffer), new Uint8Array(table.moves.buffer));
          const digest = hex(await sha256(joined(columns, unhex(further.join(""), 16 * further.length))));
          let asked = 0;
          const bits = {
            words: (level) => new Uint32Array(unhex(words[level], words[level].length / 2).buffer),
            refine: () => BigInt(`0x${turned(refining[asked++])}`),
          };
          whole.push({ digest, drawn: [...draw(table, words[0].length / 8, bits)], asked });
        }
        return whole;
        """,
        VECTORS,
    )
    for one, expected in zip(found, VECTORS["noise"], strict=True):
        assert one["digest"] == expected["table"]
        assert one["drawn"] == expected["drawn"]
        assert one["asked"] > 0


def test_noise_of_the_browsers_generator_is_gaussian(joining: Joining) -> None:
    draws, n_shares = 20_000, 100
    found = joining.run(
        ["noise"],
        """
        const deviation = 2 ** 28 / Math.sqrt(vectors.shares);
        return [...makeNoise(vectors.shares)(vectors.draws)].map((number) => number / deviation);
        """,
        {"draws": draws, "shares": n_shares},
    )
    assert kstest(found, "norm").pvalue > LEAST_P
    assert len(set(found)) > 0.99 * draws  # at 2⁻²⁸ of 10 standard deviations, hardly two are alike


def test_epsilons_are_those_of_python_or_a_hair_larger(joining: Joining) -> None:
    found = joining.run(
        ["accounting"],
        "return vectors.epsilons.map(({ events, delta }) => epsilonOf(events, delta));",
        VECTORS,
    )
    for epsilon, expected in zip(found, VECTORS["epsilons"], strict=True):
        assert expected["epsilon"] - 1e-9 <= epsilon <= expected["epsilon"] * (1 + 1e-7) + 1e-9
