"""Firefox without a window, for tests that have to pass in a second browser.

It is driven over WebDriver BiDi, the protocol that Firefox itself speaks, so it needs no driver: `DPMF_FIREFOX` names
the program, else `firefox-esr` and `firefox` are looked for on `PATH`.
"""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .browser import find_browser, give_up

VARIABLE = "DPMF_FIREFOX"
PROGRAMS = ("firefox-esr", "firefox")
_PATIENCE = 300.0  # seconds; machines may be busy
_LISTENING = re.compile(r"WebDriver BiDi listening on (ws://\S+)")


class Firefox:
    """A window of Firefox.

    Attributes:
        complaints: errors of its console.
    """

    def __init__(self, socket: Any) -> None:
        self.complaints: list[str] = []
        self._socket, self._last = socket, 0
        self._send("session.new", capabilities={})
        self._send("session.subscribe", events=["log.entryAdded"])
        self._window = self._send("browsingContext.getTree")["contexts"][0]["context"]

    def _send(self, method: str, **parameters: Any) -> Any:
        self._last += 1
        self._socket.send(json.dumps({"id": self._last, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv(timeout=_PATIENCE))
            if message.get("id") == self._last:
                assert message["type"] == "success", message
                return message["result"]
            if message.get("method") == "log.entryAdded" and message["params"]["level"] == "error":
                self.complaints.append(message["params"]["text"])

    def open(self, address: str, state: str = "ready") -> None:
        """Open a page, and wait until it is in a state."""
        self._send("browsingContext.navigate", context=self._window, url=address, wait="complete")
        self.wait(f"document.body.dataset.state === '{state}'")

    def evaluate(self, expression: str) -> Any:
        """Return what an expression of JavaScript is in the page; promises are awaited."""
        text = f"Promise.resolve({expression}).then((found) => JSON.stringify(found ?? null))"
        target = {"context": self._window}
        answer = self._send("script.evaluate", expression=text, target=target, awaitPromise=True)
        assert answer["type"] == "success", answer
        return json.loads(answer["result"]["value"])

    def wait(self, expression: str) -> None:
        """Wait until an expression is true."""
        deadline = time.monotonic() + _PATIENCE
        while not self.evaluate(expression):
            assert time.monotonic() < deadline, expression
            time.sleep(0.02)

    def click(self, selector: str) -> None:
        """Click in the middle of an element, as a mouse does."""
        locator = {"type": "css", "value": selector}
        (node, *_) = self._send("browsingContext.locateNodes", context=self._window, locator=locator)["nodes"]
        self.evaluate(f"document.querySelector({json.dumps(selector)}).scrollIntoView({{ block: 'center' }})")
        move = {"type": "pointerMove", "x": 0, "y": 0, "origin": {"type": "element", "element": node}}
        steps = [move, {"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]
        source = {"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": steps}
        self._send("input.performActions", context=self._window, actions=[source])


@contextmanager
def started_firefox(profile: Path) -> Iterator[Firefox]:
    """Start Firefox with an empty profile, and yield its window."""
    program = find_browser(VARIABLE, PROGRAMS, "Firefox", "firefox-esr")
    try:
        from websockets.sync.client import connect
    except ImportError:
        give_up("nothing to drive Firefox with: pip install websockets")
    command = [program, "--headless", "--no-remote", "--profile", str(profile), "--remote-debugging-port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        assert process.stderr is not None
        try:
            found = next(filter(None, map(_LISTENING.search, process.stderr)), None)
            assert found is not None, "Firefox did not start"
            with connect(f"{found[1]}/session", max_size=None) as socket:
                yield Firefox(socket)
        finally:
            process.kill()
