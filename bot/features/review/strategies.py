"""The reviewers: a model reads each piece of a packed change once, several times, or again with its last findings.

Single-shot and Reflexion are CR-Bench's A_1 and A_2 (section 6; Reflexion: Shinn et al. 2023).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bot.code.change.filling import Piece
from bot.code.change.packing import Packed
from bot.code.change.quotes import bare
from bot.core.actions import Skipped, Usage
from bot.core.config import ReviewConfig
from bot.core.errors import BudgetExceeded, ModelError
from bot.features.review.anchoring import anchor
from bot.features.review.background import Background
from bot.features.shared.findings import (
    CATEGORIES,
    IMPACTS,
    Dropped,
    Finding,
    Reported,
    ReviewReply,
    apart,
    most_familiar,
    same_cause,
    same_defect,
)
from bot.features.shared.investigation import Notes
from bot.features.shared.labels import ModelReply, model_reply
from bot.models.protocol import Model, Prompt, Reply, Templates, ask_all
from bot.models.wrappers import spent

#: Names of code that one round lacked and the next is shown.
MAX_PHRASES = 8
#: Characters of a pull request's title and description that a reviewer is shown.
MAX_TITLE = 300
MAX_DESCRIPTION = 6_000


@dataclass(frozen=True, slots=True)
class Change:
    """A change with its description and background.

    ``known_findings`` need not be reported again; ``contexts`` is the code around each piece.
    """

    title: str = ""
    description: str = ""
    repository: str = ""
    subject: str = ""
    known_findings: tuple[str, ...] = ()
    background: Background = field(default_factory=Background)
    contexts: tuple[str, ...] = ()

    @property
    def intention(self) -> dict[str, Any]:
        """The values about the change, beside its code, in every question."""
        return {
            "title": self.title[:MAX_TITLE],
            "description": self.description[:MAX_DESCRIPTION],
            "repository": self.repository,
            "background": self.background,
        }


@dataclass(frozen=True, slots=True)
class Question:
    """A piece of a change, the ``part``-th (from 1) of ``parts``, with notes about the code around it."""

    piece: Piece
    part: int
    parts: int
    change: Change
    notes: str = ""
    looked_up: str = ""
    """The code around the piece, with what an earlier round lacked; empty in the first round."""

    @property
    def context(self) -> str:
        """The code around the piece; empty without it."""
        return self.looked_up or (self.change.contexts[self.part - 1] if self.change.contexts else "")

    @property
    def code(self) -> str:
        """All code that the reviewer is shown."""
        return "\n".join((self.piece.text, self.piece.others, self.context))

    def bare(self) -> Question:
        """Return the question with the diff and what it is meant to do, and nothing around it."""
        background = Background(issues=self.change.background.issues)
        return replace(self, notes="", change=replace(self.change, contexts=(), background=background))

    def prompt(self, prompts: Templates, name: str, **more: object) -> Prompt:
        """Return the prompt ``name`` about this piece."""
        change = self.change
        system, user = prompts.render(
            name,
            change=self.piece.text,
            others=self.piece.others,
            part=self.part,
            parts=self.parts,
            known=change.known_findings,
            context=self.context,
            notes=self.notes,
            categories=CATEGORIES,
            impacts=IMPACTS,
            **change.intention,
            **more,
        )
        return Prompt(purpose="review", system=system, user=user, subject=change.subject)


#: Returns the code around a piece with the code that these phrases name; empty if there is none.
LookUp = Callable[[Piece, Sequence[str]], str]


#: The aspect of each look. Further looks begin again with the first, as another sample. The first look sees the
#: bare diff: the values of a line are followed without its callers, and in published measurements models detect
#: less the more code is around the change.
LENSES = (
    "boundaries and empty values. For each new condition, index, slice, loop and conversion, try the smallest, "
    "the largest, the empty, the absent and the repeated value.",
    "contracts of what is called and of who calls. For each call that was added or changed, what does the other "
    "side expect and return, and in which cases; for each signature, default, return value or type that changed, "
    "which callers, subclasses and stored data still count on the old one.",
    "errors, resources and concurrency. What can fail half-way and what state does it leave; what is opened, "
    "locked or started and not given back on every path; what happens when two of these run at the same time.",
    "what the change removes. For each removed or replaced line, what did it guarantee (a check, a copy, an "
    "order, a special case), who relied on it, and what takes its place.",
)


#: Findings of one reply that are read; a model that reports more is looping.
MAX_REPORTED = 100


@dataclass(slots=True)
class Result:
    """The findings of a review; ``unread`` are the files without a usable answer."""

    findings: tuple[Finding, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    unread: tuple[Skipped, ...] = ()
    replies: tuple[ModelReply, ...] = ()
    looks: int = 0
    tool_calls: int = 0
    usage: Usage = field(default_factory=Usage)
    model: str = ""


#: The reply of each look: one, or one for each look of a panel; None for a look without a usable answer.
Looks = Sequence[Reply[ReviewReply] | None]


@dataclass
class Reviewer:
    """Asks the model about a change, after a look at the code around each piece if ``look_around`` is given."""

    model: Model
    prompts: Templates
    config: ReviewConfig
    look_up: LookUp
    look_around: Callable[[Question], Notes] | None = None
    result: Result = field(default_factory=Result)

    def review(self, packed: Packed, change: Change) -> Result:
        """Review every piece.

        Files of a piece that fails are in ``unread``. Raises the first ModelError if all pieces fail, and
        TransientError if any call raises it.
        """
        result, failure = self.result, None
        is_panel = self.config.strategy == "panel"
        looks: list[list[Finding]] = [[] for _ in range(self.config.looks if is_panel else 1)]
        for number, piece in enumerate(packed.pieces, start=1):
            try:
                question = self._informed(Question(piece, number, len(packed.pieces), change))
                replies, code = self._panel(question) if is_panel else self._reflexion(question)
            except ModelError as error:
                failure = failure or error
                result.usage += error.usage or Usage()
                is_spent = isinstance(error, BudgetExceeded)
                reason = (
                    "the model budget of the day is spent" if is_spent else f"no usable answer ({error.reason})"
                )
                result.unread += tuple(Skipped(path=path, reason=reason) for path in piece.paths)
                continue
            for findings, reply in zip(looks, replies, strict=True):
                if reply is not None:
                    anchored, dropped = anchor(reply.value.findings[:MAX_REPORTED], packed.diff, code)
                    findings += [finding.model_copy(update={"models": (reply.model,)}) for finding in anchored]
                    result.dropped += dropped
        if failure is not None and not result.replies:
            failure.usage = result.usage
            raise failure
        result.looks = len(looks) if packed.pieces else 0
        result.findings = merge_causes(merge_looks(looks))
        return result

    def _informed(self, question: Question) -> Question:
        """Return the question with notes about the code around it."""
        if self.look_around is None:
            return question
        notes = self.look_around(question)
        self.result.usage += notes.usage
        self.result.tool_calls += len(notes.looks)
        return replace(question, notes=notes.text if notes.looks else "")

    def _reflexion(self, question: Question) -> tuple[Looks, str]:
        """Look once, then up to ``review.iterations`` times again, until a round changes nothing.

        A single shot is Reflexion without a second look. A later round is shown the code that the findings before
        it depend on. If one has no usable answer, the findings of the round before it remain. Return the last
        reply and all code that was shown. Raises ModelError or TransientError for the first look, TransientError
        for any.
        """
        iterations = self.config.iterations if self.config.strategy == "reflexion" else 0
        shown_code = question.code
        reply = self._ask(question.prompt(self.prompts, "review.single-shot"))
        for number in range(1, iterations + 1):
            previous = reply.value.findings
            values = [finding.model_dump(mode="json", exclude={"recognised"}) for finding in previous]
            phrases = dict.fromkeys(phrase for finding in previous for phrase in finding.depends_on)
            if phrases and (code := self.look_up(question.piece, list(phrases)[:MAX_PHRASES])):
                question = replace(question, looked_up=code)
            prompt = question.prompt(
                self.prompts,
                "review.reflexion",
                round=number,
                previous=previous,
                previous_json=json.dumps(values, ensure_ascii=False, indent=1),
                looked_up=question.looked_up,
            )
            try:
                reply = self._ask(prompt)
            except ModelError as error:
                self.result.usage += error.usage or Usage()
                break
            if _substance(reply.value.findings) == _substance(previous):
                break
        return [reply], f"{shown_code}\n{question.looked_up}"

    def _panel(self, question: Question) -> tuple[Looks, str]:
        """Look several times in parallel, through one lens, in an order of its own. One look sees the bare diff.

        If the model is several, the looks take turns between them. Return the replies and the code that was shown.
        Raises ModelError if no look has a usable answer, TransientError if any look raises it.
        """
        looks, prompts = self.config.looks, list[Prompt]()
        for number in range(looks):
            sample, lens = divmod(number, len(LENSES))
            # The looks begin at files that are far apart.
            blocks = question.piece.blocks
            start = number * max(1, len(blocks) // looks) % len(blocks)
            look = replace(question, piece=replace(question.piece, blocks=blocks[start:] + blocks[:start]))
            prompt = (look if number else look.bare()).prompt(self.prompts, "review.panel", lens=LENSES[lens])
            # At temperature 0 the same lens would give the same answer again.
            sampling = {"sample": sample, "temperature": None} if sample else {}
            prompts.append(prompt.model_copy(update={"turn": number, **sampling}))
        answers = ask_all(self.model, prompts, ReviewReply, looks)
        failures = [answer for answer in answers if isinstance(answer, ModelError)]
        if len(failures) == looks:
            failures[0].usage = spent(failures)
            raise failures[0]
        self.result.usage += spent(failures) or Usage()
        replies = [None if isinstance(answer, ModelError) else answer for answer in answers]
        for prompt, reply in zip(prompts, replies, strict=True):
            if reply is not None:
                self._add(prompt, reply)
        return replies, question.code

    def _ask(self, prompt: Prompt) -> Reply[ReviewReply]:
        reply = self.model.complete(prompt, ReviewReply)
        self._add(prompt, reply)
        return reply

    def _add(self, prompt: Prompt, reply: Reply[ReviewReply]) -> None:
        self.result.replies += (model_reply(reply, prompt.hash),)
        self.result.usage += reply.usage
        self.result.model = reply.model


def _substance(findings: tuple[Reported, ...]) -> frozenset[tuple[str, str, str, str]]:
    """Return what matters of the findings, without their wording."""
    return frozenset(
        (finding.path, bare(finding.quote), finding.category, finding.severity) for finding in findings
    )


def merge_looks(opinions: Sequence[Sequence[Finding]]) -> tuple[Finding, ...]:
    """Merge equal findings of several looks: the words of the first, the highest severity and confidence.

    Two findings of one look are two defects.
    """
    groups: list[list[Finding]] = []
    for opinion in opinions:
        unmatched = list(groups)
        for finding in opinion:
            group = next((group for group in unmatched if _is_one_defect(group[0], finding)), None)
            if group is None:
                groups.append([finding])
            else:
                group.append(finding)
                unmatched.remove(group)
    return tuple(map(_of_looks, groups))


def _of_looks(group: Sequence[Finding]) -> Finding:
    """Return one finding for all looks at it. What one look was not shown, another one may have seen."""
    is_independent = not all(finding.depends_on for finding in group)
    return _as_one(group).model_copy(update={"depends_on": ()}) if is_independent else _as_one(group)


def merge_causes(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Merge findings of one cause: the first stays, with the other lines among its places."""
    groups: list[list[int]] = []
    for number, finding in enumerate(findings):
        related = [group for group in groups if any(same_cause(findings[member], finding) for member in group)]
        groups = [group for group in groups if group not in related]
        groups.append([*sorted(member for group in related for member in group), number])
    return tuple(_with_places([findings[member] for member in group]) for group in sorted(groups))


def _with_places(group: Sequence[Finding]) -> Finding:
    """Return one finding for a cause, with the lines of the others among its places."""
    all_places = (place for member in group for place in (*member.own_places[:1], *member.places))
    places = tuple(place for place in dict.fromkeys(all_places) if place not in group[0].own_places)
    looks = max(member.looks for member in group)
    return _as_one(group).model_copy(update={"looks": looks, "places": places})


def _as_one(group: Sequence[Finding]) -> Finding:
    confidences = [finding.confidence for finding in group if finding.confidence is not None]
    return group[0].model_copy(
        update={
            "looks": len(group),
            "confidence": max(confidences, default=None),
            "severity": max((finding.severity for finding in group), key=lambda severity: severity.rank),
            "places": tuple(dict.fromkeys(place for finding in group for place in finding.places)),
            "depends_on": tuple(dict.fromkeys(phrase for finding in group for phrase in finding.depends_on)),
            "models": tuple(dict.fromkeys(model for finding in group for model in finding.models)),
            "recognised": most_familiar(finding.recognised for finding in group),
        }
    )


def _is_one_defect(left: Finding, right: Finding) -> bool:
    """Return True for the same defect, or for overlapping lines with the same cause or effect."""
    if apart(left, right):
        return False
    overlap = bool(set(left.own_places) & set(right.own_places))
    same_kind = left.category == right.category or left.impact == right.impact
    return (overlap and same_kind) or same_defect(left, right)
