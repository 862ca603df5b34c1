"""A cluster for tests: workers in this process, to which everything goes as bytes, and which can be lost."""

from __future__ import annotations

import contextlib
import pickle
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from dpmf.engine.cluster import Abandoned, Call, Ray, WorkerLost
from dpmf.engine.ray_host import Mail, Tag

MEETING = 1, 1


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

    def together(self, method: str, *arguments: Any) -> list[Any]:
        mails = [Mail() for _ in self._objects]
        first, self.n_calls = self.n_calls, self.n_calls + len(mails)

        def work(worker: int) -> Any:
            post = Post(mails, worker, first + worker if first + worker in self._losses else None)
            try:
                result = _sent(getattr(self._objects[worker], method)(post, *_sent(arguments)))
                post.lose()
                return result
            except BaseException as why:
                for mail in mails:
                    mail.abandon(MEETING, Abandoned(str(why)))
                raise

        with ThreadPoolExecutor(len(mails)) as pool:
            running = [pool.submit(work, worker) for worker in range(len(mails))]
        errors = [one.exception() for one in running]
        for worker, error in enumerate(errors):
            if isinstance(error, WorkerLost):
                self._objects[worker] = self._made(worker)
        for error in sorted(filter(None, errors), key=lambda error: isinstance(error, Abandoned)):
            raise error
        return [one.result() for one in running]

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


class Post:
    """Post between workers; one that is to be lost is lost after a few things that it sent, or at the end."""

    def __init__(self, mails: Sequence[Mail], own: int, loss: int | None) -> None:
        self._mails, self._own, self._loss = mails, own, loss
        self._left = -1 if loss is None else loss % 7

    def send(self, worker: int, tag: Tag, content: Any) -> None:
        if self._left == 0:
            self.lose()
        self._left -= 1
        self._mails[worker].put(MEETING, tag, _sent(content))

    def receive(self, tag: Tag) -> Any:
        return self._mails[self._own].take(MEETING, tag)

    def lose(self) -> None:
        if self._loss is not None:
            raise WorkerLost("its process ended")


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
