"""Both bouncers in a row, before and after a patch is written (BouncerBench, V; figure 4 and Table IV)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from bot.core.errors import OperatorError
from bot.core.text import amount
from evaluation.bouncerbench import paper
from evaluation.bouncerbench.answers import Answer
from evaluation.bouncerbench.tasks import InputTask, OutputTask
from evaluation.report.figures import Flow, sankey
from evaluation.report.page import Cell, Figure, Section, Table, percentage


@dataclass(frozen=True)
class Patches:
    """Patches that reach a stage."""

    correct: int
    wrong: int

    @property
    def all(self) -> int:
        return self.correct + self.wrong

    @property
    def correct_share(self) -> float | None:
        return self.correct / self.all if self.all else None

    @property
    def wrong_share(self) -> float | None:
        return self.wrong / self.all if self.all else None

    def as_json(self) -> dict[str, int]:
        return {"all": self.all, "correct": self.correct, "wrong": self.wrong}

    def __sub__(self, other: Patches) -> Patches:
        return Patches(self.correct - other.correct, self.wrong - other.wrong)


@dataclass(frozen=True)
class Tickets:
    """Tickets by what their annotators say; ``unknown`` ones were not annotated."""

    vague: int
    clear: int
    unknown: int

    @property
    def all(self) -> int:
        return self.vague + self.clear + self.unknown


@dataclass(frozen=True)
class Chain:
    """Counts of tickets and their patches after each bouncer.

    ``submitted`` are the patches without any bouncer, ``let_through`` those of tickets that the input bouncer lets
    through, ``visible`` those that the output bouncer lets through as well.
    """

    tickets: Tickets
    turned_away: Tickets
    submitted: Patches
    let_through: Patches
    visible: Patches
    mean_characters: float | None
    unanswered_input: int
    unanswered_output: int
    unlabelled: int

    @property
    def held_back(self) -> Patches:
        return self.let_through - self.visible

    @property
    def lost_share(self) -> float | None:
        """The share of correct patches that are not shown (Table IV, "Lost")."""
        if not self.submitted.correct:
            return None
        return 1 - self.visible.correct / self.submitted.correct

    def as_json(self) -> dict[str, Any]:
        return {
            "tickets": self.tickets.all,
            **vars(self.tickets),
            **{f"turned_away_{name}": count for name, count in vars(self.turned_away).items()},
            "submitted": self.submitted.as_json(),
            "drafted": self.let_through.as_json(),
            "held_back": self.held_back.as_json(),
            "shown": self.visible.as_json(),
            "correct_share_before": self.submitted.correct_share,
            "correct_share_after": self.visible.correct_share,
            "wrong_share_before": self.submitted.wrong_share,
            "wrong_share_after": self.visible.wrong_share,
            "lost_share": self.lost_share,
            "mean_characters": self.mean_characters,
            "unanswered_input": self.unanswered_input,
            "unanswered_output": self.unanswered_output,
            "unlabelled_tasks": self.unlabelled,
        }


def chain(tasks: Sequence[OutputTask], inputs: Mapping[str, Answer], outputs: Mapping[str, Answer]) -> Chain:
    """Let every task with a known outcome pass both bouncers.

    A missing answer turns nothing away (the authors' convention); it is counted. Raises OperatorError if no
    task has a known outcome.
    """
    labelled = [task for task in tasks if task.bounce is not None]
    if not labelled:
        raise OperatorError("no output task with a known outcome: the two bouncers cannot be chained")

    def bounce(answers: Mapping[str, Answer], task: OutputTask) -> bool | None:
        answer = answers.get(task.instance_id)
        return None if answer is None else answer.bounce

    through = [task for task in labelled if not bounce(inputs, task)]
    visible = [task for task in through if not bounce(outputs, task)]
    away = [task for task in labelled if bounce(inputs, task)]
    lengths = [len(task.patch) for task in through if task.patch is not None]
    return Chain(
        tickets=_tickets(labelled),
        turned_away=_tickets(away),
        submitted=_patches(labelled),
        let_through=_patches(through),
        visible=_patches(visible),
        mean_characters=sum(lengths) / len(lengths) if lengths else None,
        unanswered_input=sum(bounce(inputs, task) is None for task in labelled),
        unanswered_output=sum(bounce(outputs, task) is None for task in through),
        unlabelled=len(tasks) - len(labelled),
    )


def with_annotations(tasks: Iterable[OutputTask], issues: Iterable[InputTask]) -> list[OutputTask]:
    """The tasks, each with what ``issues`` say of its ticket; what a task says itself comes first."""
    annotations = {task.instance_id: task for task in issues}
    return [
        task
        if task.vague is not None or (issue := annotations.get(task.instance_id)) is None
        else task.model_copy(update={"quality": issue.quality, "input_bounce": issue.input_bounce})
        for task in tasks
    ]


def _tickets(tasks: Sequence[OutputTask]) -> Tickets:
    return Tickets(*(sum(task.vague is truth for task in tasks) for truth in (True, False, None)))


def _patches(tasks: Sequence[OutputTask]) -> Patches:
    wrong = sum(task.bounce is True for task in tasks)
    return Patches(correct=len(tasks) - wrong, wrong=wrong)


def chain_section(before: str, after: str, result: Chain) -> Section:
    """Both bouncers in a row, beside the paper's Lite and table IV."""
    unlabelled = amount(result.unlabelled, "task")
    unanswered = (
        f"Input bouncer: {before}. Output bouncer: {after}. Missing answers turn nothing away: "
        f"{result.unanswered_input} before and {result.unanswered_output} after the patch is written. "
        f"{unlabelled} whose outcome is not known {'is' if result.unlabelled == 1 else 'are'} left out."
    )
    held_back, visible = result.held_back, result.visible
    caption = (
        f"{_in_words(result.tickets)}. The input bouncer turns away {_in_words(result.turned_away)}. "
        f"Of the {result.let_through.all} patches it lets be written, the output bouncer holds back "
        f"{held_back.wrong} wrong and {held_back.correct} correct ones; "
        f"{visible.correct} correct and {visible.wrong} wrong ones are shown."
    )
    figure = Figure(partial(_sankey, result), caption)
    before_share, after_share, lost = (
        "–" if share is None else f"{100 * share:.1f} %"
        for share in (result.submitted.wrong_share, result.visible.wrong_share, result.lost_share)
    )
    summary = (
        f"shown: {result.visible.all} instead of {result.submitted.all}, wrong {after_share} instead of "
        f"{before_share}; {lost} of the correct ones lost."
    )
    tables = (_load(result), _table_iv(result))
    return Section("Both bouncers in a row", (summary, unanswered), tables, (figure,), {"chain": result.as_json()})


def _load(result: Chain) -> Table:
    rows: list[tuple[Cell, ...]] = [
        ("patches shown", result.submitted.all, result.visible.all),
        ("of these wrong", result.submitted.wrong, result.visible.wrong),
        ("wrong share %", percentage(result.submitted.wrong_share), percentage(result.visible.wrong_share)),
        ("correct share %", percentage(result.submitted.correct_share), percentage(result.visible.correct_share)),
    ]
    quoted: list[tuple[Cell, ...]] = [
        ("patches shown (paper, Lite)", *paper.LITE_SHOWN),
        ("wrong share % (paper, Lite)", *map(percentage, paper.LITE_WRONG_SHARE)),
    ]
    return Table(("review load", "without bouncers", "with both"), (*rows, *quoted), quoted_from=len(rows))


def _table_iv(result: Chain) -> Table:
    published = tuple(
        (f"{name} (paper)", percentage(before), percentage(after), length, percentage(lost))
        for name, (before, after, length, lost) in paper.TABLE_IV.items()
    )
    ours: tuple[Cell, ...] = (
        "these patches",
        percentage(result.submitted.correct_share),
        percentage(result.visible.correct_share),
        None if result.mean_characters is None else round(result.mean_characters),
        percentage(result.lost_share),
    )
    return Table(
        ("submission", "correct before %", "correct after %", "characters (mean)", "correct ones lost %"),
        (ours, *published),
        title="Beside the paper's table IV",
        quoted_from=1,
    )


def _sankey(result: Chain) -> str:
    held_back, visible = result.held_back, result.visible
    kinds = {"vague": "tickets, vague", "clear": "tickets, clear", "unknown": "tickets, not annotated"}
    all_tickets, away = vars(result.tickets), vars(result.turned_away)
    columns = (
        tuple(kinds.values()),
        ("patches", "turned away"),
        ("shown, correct", "shown, wrong", "held back, wrong", "held back, correct"),
    )
    flows = (
        *(Flow(node, "patches", all_tickets[kind] - away[kind]) for kind, node in kinds.items()),
        *(Flow(node, "turned away", away[kind]) for kind, node in kinds.items()),
        Flow("patches", "shown, correct", visible.correct),
        Flow("patches", "shown, wrong", visible.wrong),
        Flow("patches", "held back, wrong", held_back.wrong),
        Flow("patches", "held back, correct", held_back.correct),
    )
    # All other nodes are grey.
    colours = {
        "tickets, vague": "#d9822b",
        "tickets, clear": "#0b5fa5",
        "patches": "#0b5fa5",
        "shown, correct": "#2e8b57",
        "shown, wrong": "#c0392b",
        "held back, correct": "#d9822b",
    }
    return sankey(columns, flows, colours)


def _in_words(tickets: Tickets) -> str:
    counts = (("vague", tickets.vague), ("clear", tickets.clear), ("not annotated", tickets.unknown))
    words = ", ".join(f"{count} {kind}" for kind, count in counts if count)
    return amount(tickets.all, "ticket") + (f" ({words})" if words else "")
