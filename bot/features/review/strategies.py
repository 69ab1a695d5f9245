"""The reviewers: each piece of a packed change is put to a model once, or again with the last findings at hand.

Single-shot and Reflexion are CR-Bench's A_1 and A_2 (section 6; Reflexion: Shinn et al. 2023).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from bot.code.packing import Packed, Piece, Skipped
from bot.code.quotes import bare
from bot.core.actions import Usage
from bot.core.config import ReviewConfig
from bot.core.errors import BudgetExceeded, ModelError
from bot.features.review.anchoring import anchor
from bot.features.review.background import Background
from bot.features.shared.findings import Dropped, Finding, Reported, ReviewReply, same_cause, same_defect
from bot.features.shared.investigation import Notes
from bot.features.shared.taxonomy import CATEGORIES, IMPACTS
from bot.models.prompts import Prompts
from bot.models.protocol import Model, Prompt, Reply, ask_all

#: Characters of a pull request's title and description that a reviewer is shown.
MAX_TITLE = 300
MAX_DESCRIPTION = 6_000


@dataclass(frozen=True, slots=True)
class Change:
    """What a change says of itself and what stands around it; what a model need not say of it again.

    ``contexts`` are the code around each piece of it.
    """

    title: str = ""
    description: str = ""
    repository: str = ""
    subject: str = ""
    known: tuple[str, ...] = ()
    background: Background = field(default_factory=Background)
    contexts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """A piece of a change, the ``part``-th (from 1) of ``parts``, and what somebody saw who looked around."""

    piece: Piece
    part: int
    parts: int
    change: Change
    notes: str = ""

    def prompt(self, prompts: Prompts, name: str, **more: object) -> Prompt:
        """The prompt ``name`` about this piece."""
        change = self.change
        system, user = prompts.render(
            name,
            title=change.title[:MAX_TITLE],
            description=change.description[:MAX_DESCRIPTION],
            repository=change.repository,
            change=self.piece.text,
            part=self.part,
            parts=self.parts,
            known=change.known,
            background=change.background,
            context=change.contexts[self.part - 1] if change.contexts else "",
            notes=self.notes,
            categories=CATEGORIES,
            impacts=IMPACTS,
            **more,
        )
        return Prompt(purpose="review", system=system, user=user, subject=change.subject)


@dataclass(frozen=True, slots=True)
class Round:
    """One exchange with the model."""

    prompt_hash: str
    reply: Reply[ReviewReply]


@dataclass(frozen=True, slots=True)
class LookedAt:
    """All exchanges about one piece, and what each look came to: one list, or one for every look of a panel."""

    rounds: tuple[Round, ...]
    opinions: tuple[tuple[Reported, ...], ...]


def reflexion(model: Model, prompts: Prompts, question: Question, iterations: int) -> LookedAt:
    """The first look and at most ``iterations`` further ones; stops when a round changes nothing.

    A later round that yields no usable answer ends the looking, and what was found before it stands.
    Raises ModelError or TransientError for the first look, TransientError for any.
    """
    rounds = [_ask(model, question.prompt(prompts, "review.single-shot"))]
    for number in range(1, iterations + 1):
        previous = rounds[-1].reply.value.findings
        plain = [each.model_dump(mode="json") for each in previous]
        as_json = json.dumps(plain, ensure_ascii=False, indent=1)
        prompt = question.prompt(
            prompts, "review.reflexion", round=number, previous=previous, previous_json=as_json
        )
        try:
            rounds.append(_ask(model, prompt))
        except ModelError:
            break
        if _substance(rounds[-1].reply.value.findings) == _substance(previous):
            break
    return LookedAt(tuple(rounds), (rounds[-1].reply.value.findings,))


def _ask(model: Model, prompt: Prompt) -> Round:
    return Round(prompt.hash, model.complete(prompt, ReviewReply))


#: What each look follows through the change; further looks begin anew with the first, as another draw.
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


def panel(model: Model, prompts: Prompts, question: Question, looks: int) -> LookedAt:
    """``looks`` looks side by side. One that yields nothing usable is left out.

    Raises ModelError where none does, TransientError as soon as one does.
    """
    asked = []
    for number in range(looks):
        draw, lens = divmod(number, len(LENSES))
        prompt = question.prompt(prompts, "review.panel", lens=LENSES[lens])
        # At temperature 0 the same lens would see the same again.
        asked.append(prompt.model_copy(update={"sample": draw, "temperature": None}) if draw else prompt)
    answers = ask_all(model, asked, ReviewReply, looks)
    rounds = tuple(
        Round(prompt.hash, answer)
        for prompt, answer in zip(asked, answers, strict=True)
        if not isinstance(answer, ModelError)
    )
    if not rounds:
        raise next(each for each in answers if isinstance(each, ModelError))
    opinions = tuple(() if isinstance(each, ModelError) else each.value.findings for each in answers)
    return LookedAt(rounds, opinions)


def _substance(findings: tuple[Reported, ...]) -> frozenset[tuple[str, str, str, str]]:
    """What would be posted, whatever the words: a second look that only rephrases has changed nothing."""
    return frozenset((each.path, bare(each.quote), each.category, each.severity) for each in findings)


#: Findings of one reply that are looked at; a model that reports more is looping.
MAX_REPORTED = 100


@dataclass(slots=True)
class Result:
    """What came of the reading; ``unread`` are the pieces that no usable answer came back for."""

    findings: tuple[Finding, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    unread: tuple[Skipped, ...] = ()
    rounds: list[Round] = field(default_factory=list)
    looks: int = 1
    notes: tuple[Notes, ...] = ()

    @property
    def usage(self) -> Usage:
        looking = sum((each.usage for each in self.notes), Usage())
        return sum((each.reply.usage for each in self.rounds), looking)

    @property
    def model(self) -> str:
        return self.rounds[-1].reply.model if self.rounds else ""


Look = Callable[[Question], LookedAt]
#: Looks at the repository's code before a question about it is answered.
LookAround = Callable[[Question], Notes]


def looker(config: ReviewConfig, model: Model, prompts: Prompts) -> Look:
    """How one piece is read under a strategy; a single shot is Reflexion without a second look."""
    if config.strategy == "panel":
        return lambda question: panel(model, prompts, question, config.looks)
    iterations = config.iterations if config.strategy == "reflexion" else 0
    return lambda question: reflexion(model, prompts, question, iterations)


def review(packed: Packed, change: Change, look: Look, look_around: LookAround | None = None) -> Result:
    """Read every piece, after a look around where one is wanted.

    A piece that fails is named in ``unread``; where all fail, the first error is raised.

    Raises ModelError, or TransientError as soon as any call does.
    """
    result = Result()
    reported: list[list[Reported]] = []
    failed: list[ModelError] = []
    unread: list[Skipped] = []
    for number, piece in enumerate(packed.pieces, start=1):
        try:
            question = Question(piece, number, len(packed.pieces), change)
            if look_around is not None:
                notes = look_around(question)
                result.notes += (notes,)
                question = replace(question, notes=notes.text if notes.looks else "")
            seen = look(question)
        except ModelError as error:
            failed.append(error)
            spent = isinstance(error, BudgetExceeded)
            reason = "the model budget of the day is spent" if spent else f"no usable answer ({error.reason})"
            unread += [Skipped(path=path, reason=reason) for path in piece.paths]
            continue
        result.rounds += seen.rounds
        reported += [[] for _ in range(len(seen.opinions) - len(reported))]
        for one_look, opinion in zip(reported, seen.opinions, strict=True):
            one_look += opinion[:MAX_REPORTED]
    if failed and not result.rounds:
        raise failed[0]
    anchored = [anchor(each, packed.diff) for each in reported]
    result.looks = len(reported)
    result.findings = one_cause(merged([found for found, _ in anchored]))
    result.dropped = tuple(each for _, dropped in anchored for each in dropped)
    result.unread = tuple(unread)
    return result


def merged(opinions: Sequence[Sequence[Finding]]) -> tuple[Finding, ...]:
    """Each defect once, in the words of the first look that saw it, with the number of looks that did.

    Its severity and confidence are the highest that were given. What one look names twice are two defects.
    """
    groups: list[list[Finding]] = []
    for opinion in opinions:
        before = list(groups)
        for finding in opinion:
            group = next((each for each in before if _one_defect(each[0], finding)), None)
            if group is None:
                groups.append([finding])
            else:
                group.append(finding)
                before.remove(group)
    return tuple(_as_one(group) for group in groups)


def one_cause(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Merge findings of one cause: the first stays, with the other lines among its places."""
    groups: list[list[int]] = []
    for number, finding in enumerate(findings):
        related = [group for group in groups if any(same_cause(findings[member], finding) for member in group)]
        groups = [group for group in groups if group not in related]
        groups.append([*sorted(member for group in related for member in group), number])
    return tuple(_with_places([findings[member] for member in group]) for group in sorted(groups))


def _with_places(group: Sequence[Finding]) -> Finding:
    first = group[0]
    if len(group) == 1:
        return first
    named = (place for member in group for place in (*member.own_places[:1], *member.places))
    places = tuple(place for place in dict.fromkeys(named) if place not in first.own_places)
    merged_finding = _as_one(group)
    looks = max(member.looks for member in group)
    return merged_finding.model_copy(update={"looks": looks, "places": places})


def _as_one(group: Sequence[Finding]) -> Finding:
    severity = max((each.severity for each in group), key=lambda each: each.rank)
    places = dict.fromkeys(place for each in group for place in each.places)
    more = {"severity": severity, "places": tuple(places)}
    confidence = max((each.confidence for each in group if each.confidence is not None), default=None)
    return group[0].model_copy(update={"looks": len(group), "confidence": confidence, **more})


def _one_defect(one: Finding, other: Finding) -> bool:
    """The same fingerprint or code, or overlapping lines and the same cause or effect: looks quote differently."""
    if same_defect(one, other):
        return True
    if (one.path, one.side) != (other.path, other.side) or one.line is None or other.line is None:
        return False
    overlap = (one.start_line or one.line) <= other.line and (other.start_line or other.line) <= one.line
    return overlap and (one.category == other.category or one.impact == other.impact)
