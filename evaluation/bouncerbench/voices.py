"""The voices of a run of ``mean(...)`` or ``cascade(...)``: each alone, where they disagree, what was saved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bot.core.text import amount
from bot.models.protocol import Voice
from evaluation.bouncerbench.answers import Answer, Line
from evaluation.bouncerbench.metrics import Metrics, Tasks, score
from evaluation.bouncerbench.tasks import LABEL_NAMES, Kind
from evaluation.report.page import Cell, Section, Table, percentage
from evaluation.report.terminal import short
from evaluation.statistics import NO_INTERVALS, wilson

#: Upper ends of the ranges of disagreement, percent points.
_APART = (10, 25, 50, 100)


def alone(kind: Kind, answers: Mapping[str, Answer]) -> dict[str, dict[str, Answer]]:
    """Return each voice's answers by its name, at the paper's threshold; a failure has no verdict."""
    names = LABEL_NAMES[kind]
    voices: dict[str, dict[str, Answer]] = {}
    for identity, answer in answers.items():
        for voice in answer.voices:
            level = names.index(voice.label) if voice.label in names else None
            voices.setdefault(voice.model, {}).setdefault(
                identity,
                Answer(
                    instance_id=identity,
                    level=level,
                    bounce=Line().bounces(level, None),
                    p_bounce=voice.probabilities.get("p_bounce"),
                    error=voice.error or None,
                ),
            )
    return voices


def section(
    kind: Kind, name: str, tasks: Tasks, answers: Mapping[str, Answer], together: Metrics
) -> Section | None:
    """One run; None if only one model spoke."""
    voices = alone(kind, answers)
    if not voices:
        return None
    total = _sum([answer.usage.cost_usd for answer in answers.values()])
    rows = [_row(f"{name} (together)", together, len(answers), 0, total)]
    for model, own_answers in voices.items():
        mine = [task for task in tasks if task.instance_id in own_answers]
        metrics = score(kind, mine, own_answers, how=NO_INTERVALS)
        costs = [voice.cost_usd for answer in answers.values() for voice in answer.voices if voice.model == model]
        failed = sum(own_answer.error is not None for own_answer in own_answers.values())
        rows.append(_row(short(model), metrics, len(own_answers), failed, _sum(costs)))
    table = Table(
        ("voice", "asked", "failed", "F_m", "R_b %", "FNR_a %", "AUC", "Brier", "USD"),
        tuple(rows),
        title="Voices, alone and together",
        note="Alone: over the tasks that it was asked, at the paper's line.",
    )
    tables = [table, _disagreement(tasks, answers)]
    return Section(f"Voices of {name}", tuple(_saving(answers)), tuple(filter(None, tables)))


def _row(name: str, metrics: Metrics, count: int, failed: int, cost: float | None) -> tuple[Cell, ...]:
    value = metrics.value
    rates = (percentage(value("r_b")), percentage(value("fnr_a")))
    dollars = None if cost is None else f"{cost:.4f}"
    return (name, count, failed, value("f_m"), *rates, metrics.auc, value("brier"), dollars)


def _sum(costs: Sequence[float | None]) -> float | None:
    values = [cost for cost in costs if cost is not None]
    return sum(values) if values else None


def spread(voices: Sequence[Voice]) -> int | None:
    """How far apart the voices' probabilities lie, percent points; None for fewer than two."""
    percents = [voice.probabilities["p_bounce"] for voice in voices if "p_bounce" in voice.probabilities]
    return max(percents) - min(percents) if len(percents) > 1 else None


def _disagreement(tasks: Tasks, answers: Mapping[str, Answer]) -> Table | None:
    groups: dict[int, list[bool]] = {}
    for task in tasks:
        answer = answers.get(task.instance_id)
        apart = None if answer is None else spread(answer.voices)
        if answer is None or apart is None or task.bounce is None or answer.bounce is None:
            continue
        edge = next(edge for edge in _APART if apart <= edge)
        groups.setdefault(edge, []).append(answer.bounce != task.bounce)
    if not groups:
        return None
    rows = [
        (f"≤ {edge}", len(wrong), sum(wrong), wilson(sum(wrong), len(wrong)).percent())
        for edge, wrong in sorted(groups.items())
    ]
    return Table(
        ("voices apart, percent points", "tasks", "wrong", "wrong %"),
        tuple(rows),
        title="Disagreement",
        note="In brackets: 95 % Wilson intervals.",
    )


def _saving(answers: Mapping[str, Answer]) -> list[str]:
    spoken = [answer.voices for answer in answers.values() if answer.voices]
    single = sum(len(voices) == 1 for voices in spoken)
    if not single:
        return []
    second = [voices[1].cost_usd for voices in spoken if len(voices) > 1]
    costs = [cost for cost in second if cost is not None]
    questions = amount(single, "question")
    line = f"The second model was asked in {len(spoken) - single} of {len(spoken)} tasks: {questions} saved"
    if not costs:
        return [f"{line}."]
    return [f"{line}, about {single * sum(costs) / len(costs):.4f} USD at its mean price a question."]
