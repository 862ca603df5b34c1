"""Counters for operators, as Prometheus reads them: how much and how often, never who or what.

>>> metrics = Metrics("third_party")
>>> metrics.count("answers", 2)
>>> metrics.set("participants", 7)
>>> [line for line in metrics.render().splitlines() if line.startswith("dpmf_federate_participants")]
['dpmf_federate_participants{role="third_party"} 7']
"""

from __future__ import annotations

import json
import logging

logger = logging.getLogger("dpmf.federated.deploy")

_HELP = {
    "connections_opened": "Connections of participants that were opened.",
    "joins": "Participants who were admitted, again after a lost connection included.",
    "joins_refused": "Participants who were refused.",
    "connections_closed_by_us": "Connections that the server closed: slow, malformed, too often, replaced.",
    "rounds_opened": "Rounds that were opened.",
    "rounds_closed": "Rounds that ended with a sum.",
    "rounds_discarded": "Rounds that ended without a sum.",
    "answers": "Answers that are in a sum.",
    "answers_refused": "Messages of participants or servers that were refused.",
    "questions_sent": "Questions that were sent to participants.",
    "bytes_in": "Bytes of protocol messages that arrived.",
    "bytes_out": "Bytes of protocol messages that were sent.",
    "sessions": "Sessions, each with new keys.",
}
_GAUGES = {
    "participants": "Participants who are connected.",
    "waiting": "Connections that have not joined yet.",
    "round": "The round that is open, or was last.",
    "linked": "Whether the two servers are connected.",
    "last_round_seconds": "How long the last round took.",
}


class Metrics:
    """What a server counts.

    Args:
        role: of the server.
    """

    def __init__(self, role: str) -> None:
        self.role = role
        self._counts = dict.fromkeys(_HELP, 0)
        self._values: dict[str, float] = dict.fromkeys(_GAUGES, 0)

    def count(self, name: str, by: int = 1) -> None:
        """Add to a counter."""
        self._counts[name] += by

    def set(self, name: str, value: float) -> None:
        """Set a gauge."""
        if name not in self._values:
            raise KeyError(name)
        self._values[name] = value

    def __getitem__(self, name: str) -> float:
        return self._counts[name] if name in self._counts else self._values[name]

    def render(self) -> str:
        """Return the text that Prometheus collects."""
        lines = []
        for name, value in self._counts.items():
            lines += _lines(f"dpmf_federate_{name}_total", "counter", _HELP[name], self.role, value)
        for name, gauge in self._values.items():
            lines += _lines(f"dpmf_federate_{name}", "gauge", _GAUGES[name], self.role, gauge)
        return "\n".join(lines) + "\n"


def log(event: str, **fields: float | str | bool) -> None:
    """Log an event as one JSON object: numbers of people and rounds, no handle, address, key or value."""
    logger.info("%s", json.dumps({"event": event, **fields}))


def _lines(name: str, kind: str, meaning: str, role: str, value: float) -> list[str]:
    return [f"# HELP {name} {meaning}", f"# TYPE {name} {kind}", f'{name}{{role="{role}"}} {value:g}']
