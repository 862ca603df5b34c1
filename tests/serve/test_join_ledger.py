"""The ledger of a browser: agreements within a cap, rounds once, on disk before anything else happens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from .host import Host
from .joining import Joining
from .joining_world import offered

MODULES = ["agreement", "ledger"]
READ = """
const catalogue = new TextEncoder().encode(vectors.catalogue);
const agreements = [];
for (const file of vectors.files) agreements.push(await readAgreement(file, catalogue));
const ledger = await openLedger();
const cap = { epsilon: vectors.cap, delta: 1e-6 };
const tried = (promise) => promise.then(() => "done", (error) => error.message);
"""


@pytest.fixture
def joining(browser: Any, host: Host) -> Iterator[Joining]:
    """Return a blank page of a new browser profile."""
    with Joining(browser, host) as joining:
        yield joining


def vectors_of(*methods: str, cap: float = 8.0) -> dict[str, Any]:
    offers = [offered(method) for method in methods]
    return {
        "files": [one.file.to_bytes().decode() for one in offers],
        "catalogue": offers[0].catalogue.decode(),
        "cap": cap,
    }


def test_a_round_is_begun_once_in_all_tabs_and_after_a_reload(joining: Joining) -> None:
    vectors = vectors_of("als")
    first = """
    const account = await ledger.enter(agreements[0], cap);
    const other = await (await openLedger()).enter(agreements[0], cap);
    const both = await Promise.all([tried(account.begin(1, 100)), tried(other.begin(1, 100))]);
    const refused = await Promise.all([tried(account.begin(0, 100)), tried(other.begin(1, 100))]);
    return { before: account.lastRound, both: both.sort(), refused };
    """
    found = joining.run(MODULES, READ + first, vectors)
    again = "the round is not a new one"
    assert found == {"before": -1, "both": ["done", again], "refused": [again, again]}
    joining.reload()
    second = """
    const account = await ledger.enter(agreements[0], cap);
    const tries = [];
    for (const [round, bytes] of [[1, 100], [2, 70], [2, 70]]) tries.push(await tried(account.begin(round, bytes)));
    const entries = await ledger.entries();
    return { last: account.lastRound, tries, entries, spent: await ledger.spent() };
    """
    found = joining.run(MODULES, READ + second, vectors)
    assert (found["last"], found["tries"]) == (1, [again, "done", again])
    (entry,) = found["entries"]
    assert [(one["round"], one["bytes"]) for one in entry["answers"]] == [(1, 100), (2, 70)]
    assert found["spent"] == pytest.approx(5.0, rel=1e-6)  # entered once


def test_agreements_beyond_the_cap_are_refused_and_leave_no_trace(joining: Joining) -> None:
    body = """
    const entered = [];
    for (const agreement of agreements) {
      entered.push([await ledger.wouldSpend(agreement), await tried(ledger.enter(agreement, cap))]);
    }
    const more = await tried(ledger.enter(agreements[2], { epsilon: 100, delta: 1e-6 })); // the cap is fixed
    const count = (await ledger.entries()).length;
    return { entered, more, count, spent: await ledger.spent(), cap: await ledger.cap() };
    """
    found = joining.run(MODULES, READ + body, vectors_of("als", "als-biases", "ease"))
    (one, done), (two, more), (three, refused) = found["entered"]
    assert (done, more) == ("done", "done")
    assert one == pytest.approx(5.0, rel=1e-6)
    assert 5.0 < two < 8.0 < three < 10.0  # composed, not added up
    assert "more than your limit of 8" in refused
    assert "more than your limit of 8" in found["more"]
    assert found["count"] == 2
    assert found["spent"] == pytest.approx(two)
    assert found["cap"]["epsilon"] == 8


def test_two_tabs_cannot_overspend_together(joining: Joining) -> None:
    body = """
    const other = await openLedger();
    const both = [ledger.enter(agreements[0], cap), other.enter(agreements[1], cap)];
    return (await Promise.all(both.map(tried))).map((words) => words === "done").sort();
    """
    assert joining.run(MODULES, READ + body, vectors_of("als", "als-biases", cap=6.0)) == [False, True]


def test_without_a_place_to_keep_it_there_is_no_ledger(joining: Joining) -> None:
    body = "return await openLedger(null).then(() => 'opened', (error) => error.message);"
    assert "keeps nothing" in joining.run(["ledger"], body)
    lost = """
    const account = await ledger.enter(agreements[0], cap);
    await new Promise((done) => (indexedDB.deleteDatabase("dpmf-ledger").onsuccess = done));
    return await tried(account.begin(0, 1));
    """
    assert joining.run(MODULES, READ + lost, vectors_of("als")) == "this browser could not store its ledger"
