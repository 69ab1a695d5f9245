"""What a benchmark is, and which there are.

    dataset -> task -> run -> records -> score -> report

A benchmark reads tasks from a file, runs one at a time through the live code, scores the records of a run, and
tells its scores in sections of tables and figures. Everything else is the same for all of them and written once:
files (``dataset``), the run's folder, cache, budget and batches (``run``), the page and the terminal (``report``).
To add one, make a folder with its ``Benchmark`` and its commands, and an entry in ``BENCHMARKS``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

if TYPE_CHECKING:  # what a benchmark is made of takes a second to import, and a --help needs none of it
    from bot.models.protocol import Model
    from evaluation.cutoff import Sample
    from evaluation.report.page import Cell, Section
    from evaluation.run.folder import RunFolder
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
    are counted and left out. ``answered_by`` stands for the model where none is asked.
    """

    run: Callable[[T, Model], Outcome]
    config: Mapping[str, Any]
    prompts: Mapping[str, str] = field(default_factory=dict)
    ready: Callable[[T], bool] = lambda task: True
    answered_by: str | None = None


@dataclass(frozen=True)
class Scoring:
    """How answers are scored: what a missing one counts as, the bootstrap, and from when on bugs are fresh."""

    missing: Missing = "count"
    seed: int = 0
    replicates: int = 2000
    cutoff: datetime | None = None

    @property
    def resampling(self) -> Resampling:
        """The bootstrap's part of it."""
        from evaluation.statistics import Resampling

        return Resampling(self.seed, self.replicates)


@dataclass(frozen=True)
class Benchmark(Generic[T, S]):
    """``score`` takes a run, the name that it goes by, and a task file.

    ``sections`` tells several scores on one page, those of all benchmarks with the same function together;
    ``sample`` is what a score's figures can be made of again, on a part of its tasks; ``costs`` are rows about
    what is not in the runs' own cost, or quoted.
    """

    name: str
    read: Callable[[str], Iterator[T]]
    identify: Callable[[T], str]
    score: Callable[[RunFolder, str, str, Scoring], S]
    sections: Callable[[Sequence[S], Scoring], list[Section]]
    sample: Callable[[S], Sample]
    costs: Callable[[Sequence[S]], list[tuple[Cell, ...]]] = lambda scores: []

    def due(self, run: RunFolder, source: str) -> list[T]:
        """The tasks of a file that the run was to do: the denominator of its figures. Raises OperatorError."""
        return run.due(list(self.read(source)), self.identify)

    def contamination(self, scores: Sequence[S], source: str, scoring: Scoring) -> list[Section]:
        """The scores without recognised answers, where any speaks of it; before and after a cutoff, if any."""
        from evaluation.cutoff import aged, cutoff_section, read_dates, recognised_section

        samples = [self.sample(each) for each in scores]
        how = scoring.resampling
        found = [recognised_section([each for each in samples if each.recognised], how)]
        if scoring.cutoff is not None:
            dates = read_dates(source)
            old_and_new = [aged(each, dates, scoring.cutoff, how) for each in samples]
            found.append(cutoff_section(old_and_new, scoring.cutoff))
        return [section for section in found if section is not None]


@dataclass(frozen=True)
class Entry:
    """A benchmark by name: what it is about, and where its parts are (``module:attribute``).

    ``commands`` has for each verb the place of the command and its line in ``--help``. ``benchmark`` is empty
    where there are no runs of it. ``batched`` says that all its questions can wait for a provider's batch.
    """

    about: str
    commands: Mapping[str, tuple[str, str]]
    benchmark: str = ""
    batched: bool = False

    def load(self) -> Benchmark[Any, Any]:
        """The benchmark itself, with everything that it imports."""
        found = resolve_name(self.benchmark)
        assert isinstance(found, Benchmark)
        return found


def _commands(package: str, ending: str = "", **lines: str) -> dict[str, tuple[str, str]]:
    """For each verb the command ``VERB`` plus ``ending`` of a package, and its line in ``--help``."""
    return {verb: (f"evaluation.{package}.commands:{verb}{ending}", line) for verb, line in lines.items()}


_BOUNCERBENCH = "vague issues and wrong patches (Mathews and Nagappan, BouncerBench)"

BENCHMARKS: dict[str, Entry] = {
    "bouncerbench": Entry(
        _BOUNCERBENCH, _commands("bouncerbench", build="Tasks from annotations, issues, patches.")
    ),
    "crbench": Entry(
        "defects that a review should have found (CR-Bench)",
        _commands(
            "crbench",
            build="Bug-bringing pull requests from bug fixes.",
            replay="Open every pull request that brought a bug in.",
            score="Are the bugs found, and with how much noise?",
        ),
        "evaluation.crbench.bench:CRBENCH",
        batched=True,
    ),
    "golden": Entry(
        "From AACR-Bench's or Martian's comments.",
        _commands("crbench", "_golden", build="From AACR-Bench's or Martian's comments."),
    ),
    "bloom": Entry(
        "six layers on the same bugs: reports and names changed (Qureshi and Jiang)",
        _commands(
            "bloom",
            build="Known bugs, told or named otherwise, for brt.",
            score="What does success rest on, layer by layer?",
        ),
    ),
    "fresh": Entry(
        "executable tasks of all kinds from a clone's own recent fixes",
        _commands("fresh", build="All kinds of tasks from a clone's own recent fixes."),
    ),
    "own": Entry(
        "reviews of a repository of your own, in CR-Bench's form",
        _commands("crbench", "_own", build="The same from a repository of your own."),
    ),
    "bouncerbench-input": Entry(
        _BOUNCERBENCH,
        _commands(
            "bouncerbench",
            "_input",
            replay="Open every issue.",
            score="Which issues were turned away?",
            calibrate="Lines for issues.",
        ),
        "evaluation.bouncerbench.bench:INPUT_BENCH",
        batched=True,
    ),
    "bouncerbench-output": Entry(
        _BOUNCERBENCH,
        _commands(
            "bouncerbench",
            "_output",
            replay="Open every pull request.",
            score="Which patches were held back?",
            calibrate="Lines for patches.",
        ),
        "evaluation.bouncerbench.bench:OUTPUT_BENCH",
        batched=True,
    ),
    "brt": Entry(
        "tests that reproduce a reported bug (LIBRO and Bloom's levels)",
        _commands(
            "brt",
            replay="Draft tests from bug reports, or judge given ones.",
            score="Do the tests reproduce the bugs; are they ranked first?",
        ),
        "evaluation.brt.report:BRT",
    ),
    "bouncerbench-chain": Entry(
        _BOUNCERBENCH, _commands("bouncerbench", "_chain", score="Both bouncers in a row.")
    ),
}
