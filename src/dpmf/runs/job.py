"""A run from data to saved results: what is read, whether it is streamed, and where the results go.

>>> from dpmf.methods import SGD
>>> job = Job(SGD(n_factors=2, n_epochs=1), "synthetic")
>>> job.check()
>>> job.run(Arguments(n_threads=1)).streamed
False
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from dpmf.engine.store import StoredRatings
from dpmf.engine.threads import thread_count
from dpmf.errors import InvalidArgument
from dpmf.files import scratch_folder
from dpmf.methods import Method
from dpmf.ratings import Ratings
from dpmf.ratings.options import ReadOptions
from dpmf.ratings.store.columns import is_store
from dpmf.runs.outputs import Outputs, check_apart
from dpmf.runs.parts import AnyParts, AnySplit, Split, split_ratings
from dpmf.runs.reading import check_store
from dpmf.runs.streamed import open_ratings, prepare
from dpmf.runs.training import Arguments, Run, train, train_on

if TYPE_CHECKING:
    from dpmf.engine.checkpoints import Checkpoint
    from dpmf.engine.cluster import Ray
    from dpmf.methods.objective.profiles import Profiles


@dataclass(frozen=True, eq=False)
class Job:
    """What is trained on what.

    Attributes:
        method: configured.
        data: a catalogue name, a file or a folder.
        options: how to read the data.
        split: what, or who, is held out, or the file to test on.
        memory: how many bytes there are; ratings that take more are streamed from disk. None for no limit.
        outputs: where results go.
        executor: a cluster to train on; None for this process.
    """

    method: Method
    data: str
    options: ReadOptions = field(default_factory=ReadOptions)
    split: AnySplit = field(default_factory=Split)
    memory: int | None = None
    outputs: Outputs = field(default_factory=Outputs)
    executor: Ray | None = None

    def check(self, n_threads: int | None = None, checkpoint: Checkpoint | None = None) -> None:
        """Refuse what could not be carried out or saved, before anything is read."""
        thread_count(n_threads)
        store = Path(self.data) if is_store(self.data) else None
        folder = None if checkpoint is None else Path(checkpoint.folder)
        check_apart({"data": store, "release": self.outputs.out, "model": self.outputs.model, "checkpoint": folder})
        self.outputs.check()
        if self.executor is not None:
            self._check_executor(self.executor)
        if self.memory is not None and not self.method.streams:
            run = "a claim about it" if self.method.kind == "paper" else "a run without privacy"
            raise InvalidArgument(
                f"{self.method.name} cannot be streamed here: {run} needs all ratings in memory; set no memory limit, "
                "or choose a certified run, which streams"
            )

    def _check_executor(self, executor: Ray) -> None:
        """Refuse what would bring people's ratings or profiles here from a cluster."""
        self.method.check_executor(executor)
        check_store(self.data, self.options)
        if self.memory is not None:
            raise InvalidArgument("a memory limit is of this machine: workers hold their shares of the ratings")
        if self.outputs.model is not None:
            raise InvalidArgument("a model cannot be saved from a cluster: everybody's profile stays on its workers")
        if not isinstance(self.split, Split) or self.split.holdout:
            raise InvalidArgument(
                "nothing can be held out on a cluster: hold it out before `dpmf data ingest`, and try the release with "
                "`dpmf evaluate RELEASE DATA`"
            )

    def run(self, arguments: Arguments) -> Run:
        """Read, train, test and save."""
        if self.executor is not None:
            store = StoredRatings.open(Path(self.data))
            run = train(self.method, store, replace(arguments, executor=self.executor))
            self.outputs.save(run.model)
            return run
        if self.memory is None:
            return self._train(split_ratings(Ratings.read(self.data, **vars(self.options)), self.split), arguments)
        with scratch_folder("train") as scratch:
            return self._train(self._parts(self.memory, arguments.profiles, scratch), arguments)

    def _train(self, parts: AnyParts, arguments: Arguments) -> Run:
        run = train_on(self.method, parts, arguments)
        self.outputs.save(run.model)
        return run

    def _parts(self, memory: int, profiles: Profiles | None, scratch: Path) -> AnyParts:
        """Return ratings in memory if they and the factors to learn fit there, else laid out on disk."""
        n_factors = self.method.most_factors if profiles is None else profiles.n_factors
        assert n_factors is not None
        sizes = {"memory": memory, "n_factors": n_factors}
        with open_ratings(self.data, **sizes, scratch=scratch, options=self.options) as source:
            if isinstance(source, Ratings):
                return split_ratings(source, self.split)
            return prepare(source, self.split, memory=memory, scratch=scratch)
