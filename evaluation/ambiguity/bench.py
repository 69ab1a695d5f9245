"""Ambig-SWE as a benchmark: both texts of each pair through live triage, the question loop, and the scores."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree.ElementTree import Element, ParseError

import numpy as np
from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring
from pydantic import Field

from bot import app
from bot.core.config import RepoConfig
from bot.core.errors import OperatorError
from bot.core.frozen import Frozen, Lenient
from bot.features.shared.labels import InputLabel
from bot.features.triage.record import TriageRecord
from bot.models.protocol import Model
from evaluation.ambiguity.loop import QuestionLoop
from evaluation.benchmark import Benchmark, Scoring, Session
from evaluation.dataset import MAX_JSON, Row, read_rows, shaped, task_id, unique, validated
from evaluation.report.cutoff import Sample
from evaluation.report.page import Cell, Section, Table, percentage
from evaluation.run.folder import RunFolder
from evaluation.run.model import Account, benchmark_prompts
from evaluation.run.replay import ReplayRequest
from evaluation.run.runner import Outcome
from evaluation.statistics import NO_INTERVALS, Array, Counts, auc, bootstrap, contingency, ratio

_MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"


class IssuePair(Frozen):
    """One issue, told in full and told with details left out."""

    instance_id: str
    original_issue: str = Field(min_length=1, description="the full text")
    problem_statement: str = Field(min_length=1, description="the summary")


def read_pairs(source: str) -> Iterator[IssuePair]:
    """The pairs of a file. Raises OperatorError, naming the row."""
    rows = _sheet(source) if source.endswith(".xlsx") else read_rows(source)
    yield from unique((task_id(row), row.where, shaped(row, IssuePair)) for row in rows)


def _sheet(source: str) -> Iterator[Row]:
    """The rows of a workbook's first sheet, by the names in its first row."""
    try:
        with zipfile.ZipFile(source) as book:
            strings = [_text(item) for item in _part(book, "xl/sharedStrings.xml").iter(f"{_MAIN}si")]
            rows = list(_part(book, "xl/worksheets/sheet1.xml").iter(f"{_MAIN}row"))
            # The column's letters are the key: "B" of "B12".
            cells = [
                {cell.get("r", "").rstrip("0123456789"): _value(cell, strings) for cell in row.iter(f"{_MAIN}c")}
                for row in rows
            ]
    except (
        OSError,
        KeyError,
        ValueError,
        IndexError,
        ParseError,
        zipfile.BadZipFile,
        DefusedXmlException,
    ) as error:
        raise OperatorError(f"{source}: cannot be read as a workbook: {str(error)[:120]}") from None
    header, *lines = cells or [{}]
    for number, line in enumerate(lines, 2):
        yield Row(
            {header[column]: text for column, text in line.items() if column in header}, f"{source}:{number}"
        )


def _part(book: zipfile.ZipFile, name: str) -> Element:
    if book.getinfo(name).file_size > MAX_JSON:
        raise ValueError(f"{name} is larger than {MAX_JSON} bytes")
    root: Element = fromstring(book.read(name))
    return root


def _value(cell: Element, strings: list[str]) -> str:
    if cell.get("t") == "inlineStr":
        return _text(cell)
    value = cell.findtext(f"{_MAIN}v") or ""
    return strings[int(value)] if cell.get("t") == "s" else value


def _text(element: Element) -> str:
    # A carriage return is written as an escape.
    return "".join(part.text or "" for part in element.iter(f"{_MAIN}t")).replace("_x000D_", "")


BENCHMARK = "ambiguity"
LABELS = [label.value for label in InputLabel]
#: Ranks of a text: no answer, then 0 to 100 %.
RANKS = 102
PROMPTS = ("ambiguity.author", "ambiguity.points", "ambiguity.recovered")

#: Ambig-SWE, files experiments/test_interactivity of the authors' repository: of about 250 summaries and 250 full
#: issues the shares in percent at which an agent asked, by model and by how much it was encouraged to ask.
PUBLISHED: tuple[tuple[str, float, float], ...] = (
    ("Claude 3.5 Sonnet, low", 19.0, 0.0),
    ("Claude 3.5 Sonnet, medium", 90.7, 23.7),
    ("Claude 3.5 Sonnet, high", 90.2, 36.1),
    ("Claude 3.5 Haiku, low", 2.7, 0.0),
    ("Claude 3.5 Haiku, medium", 9.8, 2.0),
    ("Claude 3.5 Haiku, high", 34.4, 6.0),
    ("DeepSeek-V2, low", 68.8, 30.4),
    ("DeepSeek-V2, medium", 17.0, 7.9),
    ("DeepSeek-V2, high", 6.0, 4.1),
    ("Llama 3.1 70B, low", 43.1, 45.6),
    ("Llama 3.1 70B, medium", 90.6, 95.2),
    ("Llama 3.1 70B, high", 94.1, 93.3),
)


class Points(Lenient):
    """Facts that one text has and the other lacks."""

    points: tuple[str, ...] = Field(description="one sentence each, the most important first")


class Recovered(Lenient):
    """The facts that a comment states."""

    numbers: tuple[int, ...] = Field(description="their numbers in the list")


class Verdict(Frozen):
    """Triage's verdict on one text."""

    label: str
    p_bounce: int | None
    bounced: bool


class PairRecord(Lenient):
    """The verdicts on both texts of a pair, and the conversation about the summary."""

    full: Verdict
    summary: Verdict
    questions: tuple[str, ...] = ()
    points: tuple[str, ...] = Field((), description="what the summary leaves out")
    recovered: tuple[int, ...] = Field((), description="numbers, from 1, of the points in the author's answer")
    cleared: bool = Field(False, description="triage accepted the summary with the answer")


@dataclass
class _Replay:
    """Runs pairs; the author's model is built when the run has an account."""

    request: ReplayRequest
    config: RepoConfig
    author_id: str | None
    loop: bool
    author: Model | None = None

    def start(self, account: Account) -> None:
        if self.author_id is not None:
            self.author = account.model(self.author_id)

    def run(self, pair: IssuePair, model: Model) -> Outcome:
        author = self.author or model
        loop = QuestionLoop(
            pair.instance_id,
            model,
            author,
            app.prompts(self.request.environment),
            benchmark_prompts(),
            "ambiguity.author",
            self.config,
        )
        full = loop.read(pair.original_issue).record
        record: dict[str, Any] = {"full": _verdict(full), "looped": self.loop}
        if not self.loop:
            record["summary"] = _verdict(loop.read(pair.problem_statement).record)
            return Outcome(usage=loop.usage, details=record)
        clarified = loop.clarify(pair.problem_statement, pair.original_issue)
        texts = {"full": pair.original_issue, "summary": pair.problem_statement}
        points = loop.ask("ambiguity.points", author, Points, **texts).points
        numbers: tuple[int, ...] = ()
        if points and clarified.answer:
            reply = loop.ask("ambiguity.recovered", author, Recovered, points=points, answer=clarified.answer)
            numbers = tuple(sorted({number for number in reply.numbers if 0 < number <= len(points)}))
        record |= {
            "summary": {"label": clarified.label, "p_bounce": clarified.p_bounce, "bounced": clarified.flagged},
            "questions": clarified.questions,
            "answer": clarified.answer,
            "points": points,
            "recovered": numbers,
            "cleared": clarified.cleared,
        }
        return Outcome(usage=loop.usage, details=record)


def _verdict(record: TriageRecord) -> dict[str, Any]:
    return record.model_dump(mode="json", include={"label", "p_bounce", "bounced"})


def session(
    request: ReplayRequest, config: str | None, prompt: str | None, author: str | None, *, loop: bool
) -> Session[IssuePair]:
    """The pairs as tasks for live triage. Raises OperatorError."""
    full = app.repo_config(config, {"triage": {"prompt": prompt}})
    replay = _Replay(request, full, author, loop)
    live, own = app.prompts(request.environment), benchmark_prompts()
    name = f"triage.{full.triage.prompt}"
    hashes = {name: live.hash(name)} | ({prompt: own.hash(prompt) for prompt in PROMPTS} if loop else {})
    settings = {**full.model_dump(mode="json", include={"triage"}), "author": author, "loop": loop}
    return Session(replay.run, settings, hashes, start=replay.start)


@dataclass(frozen=True)
class ScoredRun:
    """The pairs of a run by id, None without an answer, and the name that it goes by."""

    name: str
    pairs: Mapping[str, PairRecord | None]

    @property
    def answered(self) -> list[PairRecord]:
        return [pair for pair in self.pairs.values() if pair is not None]

    def _ranks(self) -> Counts:
        """For each pair the ranks of both texts from 1, the full one's first; 0 without an answer.

        A rank is the probability to bounce, or the severity of the label if any verdict has no probability.
        """
        verdicts = [verdict for pair in self.answered for verdict in (pair.full, pair.summary)]
        by_probability = all(verdict.p_bounce is not None for verdict in verdicts)

        def rank(verdict: Verdict) -> int:
            return 1 + ((verdict.p_bounce or 0) if by_probability else LABELS.index(verdict.label))

        ranks = [(0, 0) if pair is None else (rank(pair.full), rank(pair.summary)) for pair in self.pairs.values()]
        return np.array(ranks, dtype=np.int64).reshape(-1, 2)

    def figures(self, draws: Counts) -> dict[str, Array]:
        """The figures on samples of pairs. A pair without an answer is in every denominator but the AUC's."""
        pairs = list(self.pairs.values())
        same = np.zeros(len(pairs), dtype=np.int64)
        columns_of_ranks = [contingency(of_text, same, (RANKS, 1), draws)[:, 1:, 0] for of_text in self._ranks().T]
        columns = {
            "points": [0 if pair is None else len(pair.points) for pair in pairs],
            "recovered": [0 if pair is None else len(pair.recovered) for pair in pairs],
            "summary": [pair is not None and pair.summary.bounced for pair in pairs],
            "full": [pair is not None and pair.full.bounced for pair in pairs],
            "cleared": [pair is not None and pair.cleared for pair in pairs],
        }
        sums = {name: np.asarray(values, dtype=float)[draws].sum(axis=1) for name, values in columns.items()}
        return {
            "auc": auc(np.stack(columns_of_ranks, axis=-1)),
            "bounced_summaries": ratio(sums["summary"], draws.shape[1]),
            "bounced_full": ratio(sums["full"], draws.shape[1]),
            "brought_back": ratio(sums["recovered"], sums["points"]),
            "clear_afterwards": ratio(sums["cleared"], sums["summary"]),
        }


def score_run(run: RunFolder, name: str, source: str, scoring: Scoring) -> ScoredRun:
    pairs = {
        record.task_id: None
        if record.failed
        else validated(PairRecord.model_validate, record.details, f"record of {record.task_id}")
        for record in run.outcomes()
    }
    return ScoredRun(name, pairs)


#: Figures by name, with their line in the table.
_FIGURES = {
    "auc": "AUC: a summary scores above a full issue",
    "bounced_summaries": "summaries bounced %",
    "bounced_full": "full issues bounced %",
    "brought_back": "left-out facts that the answers bring back %",
    "clear_afterwards": "bounced summaries that are clear afterwards %",
}


def sections(runs: Sequence[ScoredRun], scoring: Scoring) -> list[Section]:
    estimates = [bootstrap(run.figures, len(run.pairs), scoring.resampling) for run in runs]
    rows: list[tuple[Cell, ...]] = []
    for run, values in zip(runs, estimates, strict=True):
        rows.append((run.name, "pairs", len(run.pairs), ""))
        rows.append((run.name, "pairs without an answer", len(run.pairs) - len(run.answered), ""))
        for name, text in _FIGURES.items():
            rows.append((run.name, text, *values[name].cells(*((1, 3) if name == "auc" else (100, 1)))))
    note = "The facts, and which of them an answer states, are a model's judgement."
    own = [
        (run.name, *(percentage(values[name].value) for name in ("bounced_summaries", "bounced_full")))
        for run, values in zip(runs, estimates, strict=True)
    ]
    published = tuple((name, f"{of_summaries:.1f}", f"{of_full:.1f}") for name, of_summaries, of_full in PUBLISHED)
    tables = (
        Table(("run", "figure", "value", "95 % interval"), tuple(rows), note=note),
        Table(
            ("run", "summaries %", "full issues %"),
            (*own, *published),
            title="Bounced, beside Ambig-SWE's agents that asked",
            quoted_from=len(own),
            note="The agents were encouraged to ask little, medium or much, on about 250 texts of each kind.",
        ),
    )
    labels = {run.name: _by_label(run) for run in runs}
    data = {
        "ambiguity": {
            run.name: {
                "pairs": len(run.pairs),
                "without_answer": len(run.pairs) - len(run.answered),
                **{name: estimate.as_json() for name, estimate in values.items()},
                "by_label": labels[run.name],
            }
            for run, values in zip(runs, estimates, strict=True)
        }
    }
    return [
        Section("Full issues and summaries", tables=tables, data=data),
        Section("The question loop by label of the summary", tables=(_labels_table(labels),)),
    ]


def _by_label(run: ScoredRun) -> dict[str, dict[str, Any]]:
    values: dict[str, dict[str, Any]] = {}
    for label in LABELS:
        of_label = {name: pair for name, pair in run.pairs.items() if pair and pair.summary.label == label}
        if of_label:
            part = ScoredRun(run.name, of_label)
            figures = bootstrap(part.figures, len(of_label), NO_INTERVALS)
            values[label] = {
                "summaries": len(of_label),
                "questions": sum(len(pair.questions) for pair in part.answered) / len(of_label),
                **{name: figures[name].value for name in ("brought_back", "clear_afterwards")},
            }
    return values


def _labels_table(labels: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (
            run,
            label,
            values["summaries"],
            f"{values['questions']:.2f}",
            percentage(values["brought_back"]),
            percentage(values["clear_afterwards"]),
        )
        for run, by_label in labels.items()
        for label, values in by_label.items()
    ]
    header = ("run", "label", "summaries", "questions each", "brought back %", "clear afterwards %")
    note = "A summary that is not bounced is asked nothing, so nothing is brought back."
    return Table(header, tuple(rows), note=note)


AMBIGUITY: Benchmark[IssuePair, ScoredRun] = Benchmark(
    BENCHMARK,
    read_pairs,
    lambda pair: pair.instance_id,
    score_run,
    sections,
    lambda run: Sample(run.name, list(run.pairs), run.figures),
)
