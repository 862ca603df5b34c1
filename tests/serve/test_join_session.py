"""Lost connections, and servers that begin another session, while a page takes part; the servers are in that page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from .host import Host
from .joining import Joining
from .joining_world import offered

MODULES = ["agreement", "bytes", "channel", "identity", "messages", "session"]

# Two servers in the page itself, behind a WebSocket that is none. `world` has all connections, and what was sent.
WORLD = """
const signer = async () => {
  const pair = await crypto.subtle.generateKey({ name: "Ed25519" }, true, ["sign", "verify"]);
  return { pair, raw: new Uint8Array(await crypto.subtle.exportKey("raw", pair.publicKey)) };
};
const signs = async ({ pair }, purpose, content) =>
  new Uint8Array(await crypto.subtle.sign("Ed25519", pair.privateKey, joined(`dpmf-${purpose}:`, content)));
const roles = ["recommender", "third_party"];
const identities = { recommender: await signer(), third_party: await signer() };
const agreement = await readAgreement(vectors.file, new TextEncoder().encode(vectors.catalogue));
for (const role of roles) agreement.servers[role].key = identities[role].raw;
const invitation = await readInvitation(vectors.invitation);
const own = { items: Int32Array.of(1, 2), values: Float64Array.of(4, 5) };
const begun = [];
const account = { begin: async (round) => {
  if (begun.includes(round)) throw new Refused("the round is not a new one");
  begun.push(round);
} };

const world = { sockets: [], told: [], sessions: { recommender: await makeKeys(), third_party: await makeKeys() } };
const soon = (condition, patience = 50_000) => new Promise((done, fail) => {
  const check = () => (condition() ? done() : patience-- ? wait(check, 1) : fail(new Error("it never happened")));
  check();
});
const wait = setTimeout;
window.setTimeout = (work, pause) => wait(work, pause / 1000); // pauses are part of the protocol, not of this test

window.WebSocket = class {
  static OPEN = 1;
  readyState = 1;
  sent = [];
  constructor(url) {
    this.role = url.includes("third") ? "third_party" : "recommender";
    world.sockets.push(this);
    if (!world.isSilent) wait(() => this.hello());
  }
  async hello() {
    const { public: key } = world.sessions[this.role];
    const content = joined(`${this.role}:`, agreement.id, key);
    const signature = hex(await signs(identities[world.impostor ?? this.role], "session", content));
    this.says({ type: "hello", role: this.role, agreement: hex(agreement.id), public: hex(key), signature });
  }
  send(content) {
    this.sent.push(content);
    if (typeof content === "string") wait(() => this.says({ type: "welcome" }));
  }
  says(control) {
    this.onmessage?.({ data: JSON.stringify(control) });
  }
  asks(bytes) {
    this.onmessage?.({ data: bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length) });
  }
  close(code) {
    this.cut(code ?? 1005);
  }
  cut(code) {
    if (this.readyState !== 1) return;
    this.readyState = 3;
    this.onclose?.({ code });
  }
};
const latest = (role) => world.sockets.findLast((one) => one.role === role);
const joins = (role) => world.sockets.filter((one) => one.role === role).flatMap(({ sent }) => sent)
  .filter((one) => typeof one === "string").map((text) => JSON.parse(text));
const answers = () => world.sockets.flatMap(({ sent }) => sent).filter((one) => typeof one !== "string").map(hex);
const states = () => world.told.filter(({ state }) => state).map(({ state }) => state);
const part = () => takePart({ agreement, invitation, own, account }, (change) => world.told.push(change));
const isJoined = (count) => soon(() => states().filter((state) => state === "joined").length === count);

async function question(round, channel, value = 1) {
  const { told } = agreement.rounds[round];
  const header = new DataView(new ArrayBuffer(6));
  [2, 16].forEach((byte, place) => header.setUint8(place, byte));
  header.setUint32(2, round, true);
  const arrays = told.map(({ shape }) => new Uint8Array(new Float64Array(shape[0]).fill(value).buffer));
  return channel.seal(joined(new Uint8Array(header.buffer), agreement.digest, new Uint8Array(32), ...arrays));
}
const channelTo = (role) => openChannel(world.sessions[role], unhex(joins(role).at(-1).public, 32));
"""


@pytest.fixture
def joining(browser: Any, host: Host) -> Iterator[Joining]:
    """Return a blank page with the modules at hand."""
    with Joining(browser, host) as joining:
        yield joining


def vectors() -> dict[str, Any]:
    offer = offered("als", urls=("wss://recommender.example", "wss://third.example"))
    return {**offer.to_page(), "invitation": offer.invitation(7).text()}


def test_a_lost_connection_is_opened_again_with_the_same_keys_and_the_same_answer(joining: Joining) -> None:
    body = """
    part();
    await isJoined(1);
    latest("third_party").cut(1006);
    latest("recommender").asks(await question(0, await channelTo("recommender")));
    await isJoined(2);
    await soon(() => answers().length >= 1);
    latest("third_party").cut(1006);
    await isJoined(3);
    await soon(() => answers().length >= 2);
    latest("third_party").says({ type: "received", round: 0 });
    latest("third_party").cut(1006);
    await isJoined(4);
    const opened = await (await channelTo("third_party")).open(unhex(answers()[0], answers()[0].length / 2));
    return {
      publics: roles.map((role) => [...new Set(joins(role).map((one) => one.public))]),
      signed: new Set(joins("third_party").map(({ signature }) => signature)).size,
      counts: roles.map((role) => joins(role).length), answers: answers(), begun, kind: opened[1],
    };
    """
    found = joining.run(MODULES, WORLD + body, vectors())
    assert found["publics"][0] == found["publics"][1]
    assert len(found["publics"][0]) == found["signed"] == 1
    assert found["counts"] == [1, 4]
    assert len(found["answers"]) >= 2
    assert len(set(found["answers"])) == 1  # the same bytes, and not a second draw of noise
    assert (found["begun"], found["kind"]) == ([0], 17)


def test_another_session_gets_new_keys_and_the_same_answer_until_its_round_is_closed(joining: Joining) -> None:
    body = """
    part();
    await isJoined(1);
    const refusals = () => world.told.filter(({ refused }) => refused).map(({ refused }) => refused);
    const contents = [];
    const opened = async (answer) =>
      hex(await (await channelTo("third_party")).open(unhex(answer, answer.length / 2)));
    async function restart() {
      const count = states().filter((state) => state === "joined").length;
      world.sessions.recommender = await makeKeys();
      latest("recommender").cut(1012);
      await isJoined(count + 1);
      return channelTo("recommender");
    }
    let channel = await channelTo("recommender");
    for (const _ of [1, 2]) { // the server is killed, and asks again
      latest("recommender").asks(await question(1, channel));
      await soon(() => answers().length === contents.length + 1);
      contents.push(await opened(answers().at(-1)));
      channel = await restart();
    }
    latest("recommender").asks(await question(1, channel, 2)); // something else
    await soon(() => refusals().length === 1);
    channel = await restart();
    latest("recommender").asks(await question(1, channel));
    await soon(() => answers().length === 3);
    contents.push(await opened(answers().at(-1)));
    channel = await restart();
    latest("third_party").says({ type: "closed", round: 1 });
    latest("recommender").asks(await question(1, channel));
    await soon(() => refusals().length === 2);
    const publics = roles.map((role) => [...new Set(joins(role).map((one) => one.public))]);
    return { publics, begun, contents, refusals: refusals() };
    """
    found = joining.run(MODULES, WORLD + body, vectors())
    assert found["publics"][0] == found["publics"][1]
    assert len(found["publics"][0]) == 5
    assert found["begun"] == [1]
    assert len(found["contents"]) == 3
    assert len(set(found["contents"])) == 1  # with the same seed: nothing was drawn again
    assert all("not a new one" in words for words in found["refusals"])


@pytest.mark.parametrize(
    ("happens", "state", "words"),
    [
        (
            "latest('third_party').says({ type: 'refused', reason: 'nobody is invited' })",
            "stopped",
            "nobody is invited",
        ),
        ("latest('recommender').cut(4401)", "stopped", "refused the connection"),
        ("latest('recommender').cut(4409)", "stopped", "somewhere else"),
        ("latest('recommender').onmessage({ data: '{' })", "stopped", "not what it should be"),
        ("latest('recommender').says({ type: 'over', outcome: 'finished' })", "over", "finished"),
        ("left.leave()", "left", ""),
    ],
)
def test_the_end_is_the_end(joining: Joining, happens: str, state: str, words: str) -> None:
    body = f"""
    const left = part();
    await isJoined(1);
    {happens};
    await soon(() => states().at(-1) !== "joined");
    const count = world.sockets.length;
    await new Promise((done) => wait(done, 20));
    const open = world.sockets.some((one) => one.readyState === 1);
    return {{ last: world.told.at(-1), again: world.sockets.length - count, open }};
    """
    found = joining.run(MODULES, WORLD + body, vectors())
    assert found["last"]["state"] == state
    assert words in (found["last"].get("reason") or "")
    assert (found["again"], found["open"]) == (0, False)


def test_a_server_without_the_key_of_the_agreement_is_not_joined(joining: Joining) -> None:
    body = """
    world.impostor = "recommender";
    part();
    await soon(() => states().at(-1) === "stopped");
    return { sent: world.sockets.flatMap(({ sent }) => sent).length, reason: world.told.at(-1).reason };
    """
    found = joining.run(MODULES, WORLD + body, vectors())
    assert found["sent"] == 0
    assert "is not the server of the agreement" in found["reason"]


def test_answers_leave_on_a_beat_whatever_they_took(joining: Joining) -> None:
    body = """
    let [now, took, left] = [5000, 0, []];
    performance.now = () => now;
    account.begin = async () => (now += took);
    part();
    await isJoined(1);
    window.setTimeout = (work, pause) => {
      left.push(now + pause);
      wait(work);
    };
    const channel = await channelTo("recommender");
    for (const [round, duration] of [[0, 0], [1, 3.5]]) {
      [now, took] = [5000, duration];
      latest("recommender").asks(await question(round, channel));
      await soon(() => answers().length === round + 1);
    }
    [now, took] = [5000, 251];
    latest("recommender").asks(await question(0, channel));
    await soon(() => answers().length === 3);
    return left;
    """
    assert joining.run(MODULES, WORLD + body, vectors()) == [5250, 5250, 5500]
