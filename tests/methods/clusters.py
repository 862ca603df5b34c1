"""A cluster for tests: workers in this process, to which everything goes as bytes, and which can be lost."""

from __future__ import annotations

import contextlib
import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from dpmf.engine.cluster import Call, Ray, WorkerLost


class Pretence:
    """Workers that live here.

    Args:
        n_workers: how many.
        n_threads: of each.
        losses: the numbers of calls, counted from 0 over all workers, that lose their worker.
    """

    def __init__(self, n_workers: int, n_threads: int = 1, losses: Sequence[int] = ()) -> None:
        self.n_workers, self.n_threads = n_workers, n_threads
        self._losses = set(losses)
        self.n_calls = 0

    def offers(self) -> dict[str, Any]:
        return {"workers": self.n_workers}

    @contextlib.contextmanager
    def team(self, make: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> Iterator[Pretence]:
        self._recipe = make, arguments
        self._objects = [self._made(worker) for worker in range(self.n_workers)]
        yield self

    def _made(self, worker: int) -> Any:
        make, arguments = _sent(self._recipe)
        return make(*arguments[worker])

    def ask(self, method: str, *arguments: Any) -> Iterator[Any]:
        for worker in reversed(range(self.n_workers)):  # whoever is done first
            while True:
                try:
                    yield self._call(worker, method, arguments)
                    break
                except WorkerLost:
                    continue

    def carry_out(self, calls: Sequence[Call]) -> list[Any]:
        results: dict[Call, Any] = {}
        for call in calls:
            arguments = tuple(results[one] if isinstance(one, Call) else one for one in call.arguments)
            results[call] = self._call(call.worker, call.method, arguments)
        return [results[call] for call in calls if call.wanted]

    def _call(self, worker: int, method: str, arguments: tuple[Any, ...]) -> Any:
        number, self.n_calls = self.n_calls, self.n_calls + 1
        result = _sent(getattr(self._objects[worker], method)(*_sent(arguments)))
        if number in self._losses:  # its work was done, and nobody hears of it
            self._objects[worker] = self._made(worker)
            raise WorkerLost("its process ended")
        return result


@dataclass(frozen=True)
class Pretended(Ray):
    """An executor of such workers."""

    n: int = 2
    losses: Sequence[int] = ()
    started: list[Pretence] = field(default_factory=list)

    @contextlib.contextmanager
    def start(self, n_threads: int | None = None) -> Iterator[Pretence]:
        self.started.append(Pretence(self.n, n_threads or 1, self.losses))
        yield self.started[-1]


def _sent(content: Any) -> Any:
    return pickle.loads(pickle.dumps(content))
