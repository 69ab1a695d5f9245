"""Definition and registry of the benchmarks.

    dataset -> task -> run -> records -> score -> report

A benchmark reads tasks from a file, runs one task through the live code, scores the records of a run, and presents
its scores as sections of tables and figures. The rest is shared: files (``dataset``), run folders, the cache, the
budget and batches (``run``), the page and the terminal (``report``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from importlib import import_module
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

if TYPE_CHECKING:  # what a benchmark is made of takes a second to import, and a --help needs none of it
    from bot.models.protocol import Model
    from evaluation.report.cutoff import Sample
    from evaluation.report.page import Cell, Section
    from evaluation.run.folder import RunFolder
    from evaluation.run.model import Account
    from evaluation.run.runner import Outcome
    from evaluation.statistics import Resampling

#: A task without an answer is right in nothing, an acceptance (the authors of BouncerBench), or left out.
Missing = Literal["count", "accept", "exclude"]

T = TypeVar("T")
S = TypeVar("S")


@dataclass(frozen=True)
class Session(Generic[T]):
    """A benchmark with the options of one command: ready to run task after task, in several threads.

    ``config`` is what shapes a decision beside model and tasks, ``prompts`` the hash of each prompt that is asked:
    two runs that differ in these are different runs. Tasks that are not ``ready`` lack what running needs; they
    are counted and left out. ``answered_by`` stands for the model where none is asked. ``start`` is called once
    with the run's account, which builds further models within the same cache and budget.
    """

    run: Callable[[T, Model], Outcome]
    config: Mapping[str, Any]
    prompts: Mapping[str, str] = field(default_factory=dict)
    ready: Callable[[T], bool] = lambda task: True
    answered_by: str | None = None
    start: Callable[[Account], None] = lambda account: None


@dataclass(frozen=True)
class Scoring:
    """How answers are scored: what a missing one counts as, the bootstrap, and from when on bugs are fresh.

    ``martian`` is a clone of Martian's benchmark, whose tools stand beside reviewers; ``most_comments`` per pull
    request decide which thresholds of a reviewer are the best.
    """

    missing: Missing = "count"
    seed: int = 0
    replicates: int = 2000
    cutoff: datetime | None = None
    martian: str | None = None
    most_comments: float | None = None

    @property
    def resampling(self) -> Resampling:
        from evaluation.statistics import Resampling

        return Resampling(self.seed, self.replicates)


@dataclass(frozen=True)
class Benchmark(Generic[T, S]):
    """``score`` takes a run, the name that it goes by, and a task file.

    ``sections`` tells several scores on one page, those of all benchmarks with the same function together;
    ``sample`` is what a score's figures can be made of again, on a part of its tasks; ``costs`` are rows about
    what is not in the runs' own cost, or quoted. ``absent`` makes a task of unknown truth from the id of a task of
    the run that the task file lacks; without it such a file is refused. ``score_file`` takes a file of answers
    and a task file; without it answers are scored from runs alone.
    """

    name: str
    read: Callable[[str], Iterator[T]]
    identify: Callable[[T], str]
    score: Callable[[RunFolder, str, str, Scoring], S]
    sections: Callable[[Sequence[S], Scoring], list[Section]]
    sample: Callable[[S], Sample]
    costs: Callable[[Sequence[S]], list[tuple[Cell, ...]]] = lambda scores: []
    absent: Callable[[str], T] | None = None
    score_file: Callable[[str, str, Scoring], list[S]] | None = None

    def due(self, run: RunFolder, source: str) -> list[T]:
        """The tasks that the run was to do: the denominator of its figures. Raises OperatorError."""
        return run.due(list(self.read(source)), self.identify, self.absent)

    def contamination(self, scores: Sequence[S], source: str, scoring: Scoring) -> list[Section]:
        """The scores without recognised answers, where any speaks of it; before and after a cutoff, if any."""
        from evaluation.report.cutoff import cutoff_section, read_dates, recognised_section

        samples = [self.sample(score) for score in scores]
        how = scoring.resampling
        sections = [recognised_section([sample for sample in samples if sample.recognised], how)]
        if scoring.cutoff is not None:
            sections.append(cutoff_section(samples, read_dates(source), scoring.cutoff, how))
        return [section for section in sections if section is not None]


@dataclass(frozen=True)
class Entry:
    """A benchmark's description, and the places of its parts.

    Parts are named as ``module:attribute``, so that ``--help`` imports none of them. ``commands`` maps
    a verb to its command and its line in ``--help``. ``benchmark`` is empty if there are no runs of it.
    ``batched`` means that all of its questions can wait for a provider's batch API.
    """

    about: str
    commands: Mapping[str, tuple[str, str]]
    benchmark: str = ""
    batched: bool = False

    def load(self) -> Benchmark[Any, Any]:
        benchmark = resolve_name(self.benchmark)
        assert isinstance(benchmark, Benchmark)
        return benchmark


#: Where the benchmarks are: to add one, make a folder with ``ENTRIES`` in its ``__init__`` and name it here.
FOLDERS = ("bouncerbench", "crbench", "brt", "bloom", "fresh", "ambiguity", "duplicates")


@cache
def benchmarks() -> dict[str, Entry]:
    """Return every benchmark by name, as the folders declare them."""
    return {
        name: entry for folder in FOLDERS for name, entry in import_module(f"evaluation.{folder}").ENTRIES.items()
    }
