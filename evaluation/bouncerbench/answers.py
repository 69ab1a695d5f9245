"""Answers of a bouncer, read from recorded responses, a submission, or a run.

Forms read: JSON Lines with ``instance_id`` and ``label`` or ``bounce`` (and, if known, ``model``, ``p_bounce``,
``explanation``, ``tool_calls``); output tasks with ``bouncer_labels`` and ``codex_label``; the leaderboard's JSON
object of ``input_bounce`` / ``output_bounce`` and ``trace``; the authors' JSON object of ``label``,
``explanation`` and ``trace``; the records of a run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from bot.core.actions import Usage
from bot.core.errors import OperatorError
from bot.core.frozen import Frozen, Lenient
from bot.features.shared.findings import Grade
from bot.features.shared.labels import tidy_label
from bot.models.protocol import Voice
from evaluation.bouncerbench.tasks import INPUT, LABEL_NAMES, OUTPUT, Kind, Maybe
from evaluation.dataset import Row, read_json, read_rows, shaped, task_id, unique, validated
from evaluation.run.folder import Familiarity, Record, RunFolder

#: The threshold of every benchmark unless told otherwise (BouncerBench, III.A): the third label bounces.
PAPER_LINE = 2


class Answer(Frozen):
    """One verdict on one task."""

    instance_id: str
    level: int | None = Field(
        None, ge=0, le=3, description="severity of the label; None if only a bounce is known"
    )
    bounce: bool | None = Field(None, description="None = no usable answer came")
    p_bounce: float | None = Field(None, ge=0, le=100, description="percent")
    explanation: str = ""
    tool_calls: int | None = Field(None, description="how often tools were called; None = not recorded")
    recognised: Familiarity | None = Field(None, description="as the model said; None = it said nothing")
    error: str | None = None
    usage: Usage = Usage()
    voices: tuple[Voice, ...] = Field((), description="if several models were asked: each by itself")


@dataclass(frozen=True)
class Line:
    """The threshold of a bounce: a label's severity, or a probability (percent) if the reply has one."""

    level: int = PAPER_LINE
    above: float | None = None

    def bounces(self, level: int | None, p_bounce: float | None) -> bool | None:
        """None if the reply has nothing to hold against the line."""
        if self.above is not None and p_bounce is not None:
            return p_bounce >= self.above
        return None if level is None else level >= self.level


class _Response(Frozen):
    label: Annotated[str | None, BeforeValidator(tidy_label), Maybe] = None
    bounce: Annotated[bool | None, Maybe] = None
    input_bounce: Annotated[bool | None, Maybe] = None
    output_bounce: Annotated[bool | None, Maybe] = None
    p_bounce: Annotated[float | None, Field(ge=0, le=100), Maybe] = None
    explanation: str | None = None
    model: str | None = None
    tool_calls: Annotated[int | None, Field(ge=0), Maybe] = None
    recognised: Annotated[Grade | None, Maybe] = None
    published: Annotated[bool | None, Maybe] = None
    trace: Any = None

    @property
    def calls(self) -> int | None:
        """Tool calls as the row counts them, or as its trace shows them."""
        if self.tool_calls is not None or not isinstance(self.trace, list):
            return self.tool_calls
        steps = [step for step in self.trace if isinstance(step, dict)]
        return sum(bool(step.get("type") == "function_call") for step in steps)


def read_answers(source: str, benchmark: Kind, line: Line | None = None) -> dict[str, dict[str, Answer]]:
    """Answers by model name and instance id; the name is empty if the file gives none.

    ``line`` redraws the line from label or probability; None keeps what the file says, and
    takes the paper's line if it has only a label. Raises OperatorError with the place for a malformed row, a label
    that the benchmark does not have, or an instance that one model answers twice.
    """
    rows = (_answer(row, benchmark, line) for row in _responses(source))
    models: dict[str, dict[str, Answer]] = {}
    keyed = (
        (f"{model or 'the'} answer to {answer.instance_id}", where, (model, answer))
        for model, where, answer in rows
    )
    for model, answer in unique(keyed):
        models.setdefault(model, {})[answer.instance_id] = answer
    return models


class _Verifying(Lenient):
    prompt: str | None = None
    bounce_above: float | None = None


def run_answers(run: RunFolder, line: Line | None = None) -> dict[str, Answer]:
    """The answers of a run by instance id; tasks that failed or were not reached are answers without a verdict."""
    benchmark: Kind = INPUT if run.facts.benchmark == INPUT else OUTPUT
    config = run.facts.part("verify", _Verifying)
    if line is None and config.prompt == "rubric":
        # Live the chance of wrong behaviour decides; hidden tests check the form too.
        line = Line(above=50 if config.bounce_above is None else config.bounce_above)
    answers = {record.task_id: record_answer(record, benchmark, line) for record in run.records()}
    return answers | {identity: Answer(instance_id=identity) for identity in run.missing()}


class _Verdict(Lenient):
    explanation: str | None = None
    p_form: float | None = None


class _Reply(Lenient):
    voices: tuple[Voice, ...] = ()


class _DecisionRecord(Lenient):
    """The fields of the records of triage and verify, of this version and of earlier ones."""

    bounced: bool | None = None
    p_bounce: float | None = None
    explanation: str | None = None
    tool_calls: int | None = None
    voices: tuple[Voice, ...] = ()
    replies: tuple[_Reply, ...] = ()
    verdicts: tuple[_Verdict, ...] = ()


def record_answer(record: Record, benchmark: Kind, line: Line | None) -> Answer:
    """One record as an answer. Raises OperatorError if its verdict is no label of the benchmark."""
    decision = record.decision or {}
    where = f"record of {record.task_id}"
    fields = validated(_DecisionRecord.model_validate, record.decision_record, where)
    level = _level(decision.get("verdict"), benchmark, where)
    p_bounce = _joined(fields)
    if level is None:
        bounce = None
    elif line is not None:
        bounce = line.bounces(level, p_bounce)
    else:
        bounce = level >= PAPER_LINE if fields.bounced is None else fields.bounced
    texts = [fields.explanation, *(verdict.explanation for verdict in fields.verdicts)]
    answer = {
        "instance_id": record.task_id,
        "level": level,
        "bounce": bounce,
        "p_bounce": p_bounce,
        "explanation": "\n\n".join(text for text in texts if text),
        "tool_calls": record.details.get("tool_calls", fields.tool_calls),
        "recognised": record.recognised,
        "error": record.error or (decision.get("abstained") if level is None else None),
        "usage": record.usage,
        "voices": fields.voices or next((reply.voices for reply in fields.replies), ()),
    }
    return validated(Answer.model_validate, answer, where)


def _joined(fields: _DecisionRecord) -> float | None:
    """Return the chance that tests fail: of wrong behaviour or, with `prompt: rubric`, of a missed form.

    The two are chances of different failures: a patch passes if neither happens.
    """
    behaviour = fields.p_bounce
    forms = [verdict.p_form for verdict in fields.verdicts if verdict.p_form is not None]
    if behaviour is None or not forms:
        return behaviour
    joined: float = round(100 - (100 - behaviour) * (100 - max(forms)) / 100, 1)
    return joined


def _responses(source: str) -> Iterator[Row]:
    """The rows of any form; an object keyed by instance id becomes one row a key."""
    if not source.removesuffix(".gz").endswith(".json"):
        for row in read_rows(source):
            yield from _recorded_in_task(row) if "codex_label" in row.data else (row,)
        return
    value = read_json(source)
    if not isinstance(value, dict):
        raise OperatorError(f"{source}: a JSON object keyed by instance id is needed")
    for key, entry in value.items():
        where = f"{source}: {key}"
        if not isinstance(entry, dict):
            raise OperatorError(f"{where}: a JSON object is needed, not {type(entry).__name__}")
        yield Row({**entry, "instance_id": key}, where)


def _recorded_in_task(row: Row) -> Iterator[Row]:
    """The labels of several models that an output task carries in ``bouncer_labels`` and ``codex_label``."""
    labels = row.data.get("bouncer_labels", {})
    if not isinstance(labels, dict):
        raise OperatorError(f"{row.where}: bouncer_labels: a JSON object of labels by model is needed")
    for model, label in {**labels, "codex": row.data["codex_label"]}.items():
        yield Row({"instance_id": row.data.get("instance_id"), "model": model, "label": label}, row.where)


def _answer(row: Row, benchmark: Kind, line: Line | None) -> tuple[str, str, Answer]:
    """``(model, where, answer)``."""
    identity, response = task_id(row), shaped(row, _Response)
    level = _level(response.label, benchmark, row.where)
    answer = Answer(
        instance_id=identity,
        level=level,
        bounce=_bounce(response, level, benchmark, line, row.where),
        p_bounce=response.p_bounce,
        explanation=response.explanation or (response.trace if isinstance(response.trace, str) else ""),
        tool_calls=response.calls,
        recognised=Familiarity.said_in(response.model_dump(include={"recognised", "published"})),
    )
    return response.model or "", row.where, answer


def _bounce(response: _Response, level: int | None, benchmark: Kind, line: Line | None, where: str) -> bool | None:
    """The decision as the file says it, or at another line. Raises OperatorError if the row has none."""
    side = "input_bounce" if benchmark == INPUT else "output_bounce"
    submitted: bool | None = getattr(response, side)
    bounce = response.bounce if submitted is None else submitted
    # A null, or an empty cell of a CSV file, is no answer; a row without any of these fields is a mistake.
    if level is None and bounce is None and not {"label", "bounce", side} & response.model_fields_set:
        raise OperatorError(f"{where}: neither label nor bounce")
    if line is None:
        return Line().bounces(level, None) if bounce is None else bounce
    redrawn = line.bounces(level, response.p_bounce)
    if redrawn is None and bounce is not None:
        raise OperatorError(f"{where}: the line cannot be moved: neither label nor probability is given")
    return redrawn


def _level(label: Any, benchmark: Kind, where: str) -> int | None:
    """The label's severity, 0 to 3. Raises OperatorError for a label of another benchmark or of none."""
    if label is None:
        return None
    names = LABEL_NAMES[benchmark]
    if label not in names:
        raise OperatorError(f"{where}: unknown label {str(label)[:60]!r}: {benchmark} has {', '.join(names)}")
    return names.index(label)


def line_of(benchmark: Kind, bounce_at: str | None, bounce_above: int | None) -> Line | None:
    """The line that the options draw; None if they say nothing. Raises OperatorError for a strange label."""
    if bounce_at is None and bounce_above is None:
        return None
    names = LABEL_NAMES[benchmark]
    if bounce_at is not None and bounce_at not in names[1:]:
        raise OperatorError(f"--bounce-at: {bounce_at!r} is none of {', '.join(names[1:])}")
    return Line(PAPER_LINE if bounce_at is None else names.index(bounce_at), bounce_above)


def gather(
    benchmark: Kind, run: str | None, predictions: str | None, model_name: str | None, line: Line | None = None
) -> dict[str, dict[str, Answer]]:
    """Answers by model name from a run or a file. Raises OperatorError."""
    if (run is None) == (predictions is None):
        raise OperatorError("one of --run and --predictions is needed")
    if run is not None:
        folder = RunFolder.read(Path(run), benchmark)
        return {folder.facts.model: run_answers(folder, line)}
    assert predictions is not None
    models = read_answers(predictions, benchmark, line)
    if not models:
        raise OperatorError(f"{predictions} holds no answer")
    if model_name is None:
        return {name or Path(predictions).name: answers for name, answers in models.items()}
    if set(models) == {""}:
        return {model_name: models[""]}
    if model_name not in models:
        raise OperatorError(f"{predictions} holds no model {model_name!r}; it holds {', '.join(sorted(models))}")
    return {model_name: models[model_name]}


def answers_of(benchmark: Kind, source: str, line: Line | None = None) -> dict[str, Answer]:
    """The answers of a run's folder, or of one model in a file, ``F#MODEL``. Raises OperatorError."""
    if Path(source).is_dir():
        models = gather(benchmark, source, None, None, line)
    else:
        file, _, name = source.partition("#")
        models = gather(benchmark, None, file, name or None, line)
    if len(models) > 1:
        raise OperatorError(f"{source} holds several models: name one, {source}#{next(iter(models))}")
    return next(iter(models.values()))
