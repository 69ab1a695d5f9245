"""The input bouncer: is this issue specified well enough to act on, and what its author reads. Pure.

A bounced issue gets about ten lines, kind and specific. The fixed sentences stand in ``sentences.toml``.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, model_validator

from bot.core.actions import Decision
from bot.core.config import TriageConfig
from bot.core.frozen import Frozen, Lenient
from bot.core.markdown import clean, clean_line
from bot.core.subjects import Comment, Issue, Repository
from bot.core.text import folded, without_middle
from bot.features.shared import history
from bot.features.shared.labels import MAX_BODY, Chance, InputLabel, agreeing, bounces, tidy_label
from bot.models.prompts import Prompts
from bot.models.protocol import Prompt, caveat

#: What a report or a request can lack; the order in which it is named.
Missing = Literal[
    "steps to reproduce",
    "expected result",
    "actual result",
    "version",
    "minimal example",
    "error text",
    "name of the option",
    "output format",
    "decision between alternatives",
]

MAX_QUESTIONS = 3
#: Characters of the answers to an issue in one prompt.
MAX_ANSWERS = 20_000
#: Characters of one question, and of the folded explanation, in our comment.
QUESTION = 240
EXPLANATION = 1_500
#: From the warning to the end of an issue that nobody answers, days.
WARNING = 7


class OpenPoint(Lenient):
    """A question to the author. One that was recorded as plain text counts as blocking."""

    question: str = Field(description="one short question that the author can answer")
    blocking: bool = Field(description="true only where different answers would lead to different work")

    @model_validator(mode="before")
    @classmethod
    def _plain(cls, value: Any) -> Any:
        return {"question": value, "blocking": True} if isinstance(value, str) else value


class InputReply(Lenient):
    """What the model is to answer. The order matters: it reasons before it chooses (BouncerBench, III.B)."""

    explanation: str = Field(description="what is clear, what is not, and what would have to be guessed")
    open_points: tuple[OpenPoint, ...] = Field(
        (), description="what the text leaves open, at most four, most important first; empty where nothing is"
    )
    missing: tuple[Missing, ...] = Field((), description="what it needs and does not have; often nothing")
    p_bounce: Chance = Field(
        None, description="chance in percent that the issue deserves one of the last two labels"
    )
    label: Annotated[InputLabel, BeforeValidator(tidy_label)]


class TranslatedReply(InputReply):
    """The same where the language is the issue's own."""

    language: str = Field("en", description="ISO 639-1 code of the language in which the issue is written")


class InputVerdict(Frozen):
    """What became of a reply at the line that the maintainer drew."""

    label: InputLabel
    bounced: bool
    p_bounce: int | None
    explanation: str
    questions: tuple[str, ...]
    missing: tuple[Missing, ...]
    language: str = Field("en", description="what its author is answered in")
    marked_by: str = Field("", description="the maintainer who asked for details by setting the label")


#: What an issue can be, as far as it tells by its type, labels, title or headings.
Kind = Literal["question", "tracking", "form", "plain"]

_QUESTION = re.compile(r"\s*\[?(?:question|q|support)\s*[\]:]", re.IGNORECASE)
_TRACKING = re.compile(r"\s*\[?(?:tracking|meta|epic|umbrella|roadmap)(?:\s+issue)?\s*[\]:]", re.IGNORECASE)
_TASKS = re.compile(r"^[-*] \[[ xX]\] +(?:\S*#\d+|https?://\S+/(?:issues|pull)/\d+)", re.MULTILINE)
#: How GitHub writes out what was filled into an issue form, and a field that was left empty.
_HEADINGS = re.compile(r"^### \S", re.MULTILINE)
_EMPTY = "_No response_"


def kind(issue: Issue) -> Kind:
    """What an issue is meant to be. A form's is told by the form's own words, whatever it is about."""
    names = {issue.type.lower(), *map(str.lower, issue.labels)}
    if names & {"question", "support"} or _QUESTION.match(issue.title):
        return "question"
    if names & {"epic", "tracking", "tracking issue", "initiative"} or _TRACKING.match(issue.title):
        return "tracking"
    if len(_TASKS.findall(issue.body)) >= 3:
        return "tracking"
    if issue.body.lstrip().startswith("### ") and (
        len(_HEADINGS.findall(issue.body)) >= 2 or _EMPTY in issue.body
    ):
        return "form"
    return "plain"


def skip_reason(
    issue: Issue, config: TriageConfig, past: Sequence[Decision], *, despite_pause: bool = False
) -> tuple[str, str] | None:
    """Return why this issue is left alone, as a word to count by and a clause; None if it is not."""
    if history.paused(past) and not despite_pause:
        return "skipped:paused", "paused by a maintainer"
    if history.accepted(past):
        return "skipped:accepted", "a maintainer accepted this issue"
    if issue.state == "closed":
        return "skipped:closed", "the issue is closed"
    if issue.author.is_bot:
        return "skipped:bot", f"the author {issue.author.login} is a bot"
    if issue.author.login.lower() in {login.lower() for login in config.ignore_authors}:
        return "skipped:author", f"triage.ignore_authors names {issue.author.login}"
    ignored = {label.lower() for label in config.ignore_labels}
    for label in issue.labels:
        if label.lower() in ignored:
            return "skipped:label", f"triage.ignore_labels names {label}"
    return None


def question(
    prompts: Prompts,
    config: TriageConfig,
    issue: Issue,
    answers: Sequence[Comment] = (),
    asked: Sequence[str] = (),
) -> Prompt:
    """The prompt about an issue, with what was said since and the questions that were asked before."""
    name = config.prompt
    meant = kind(issue)
    system, user = prompts.render(
        f"triage.{name}",
        language=config.language,
        # A form whose fields are all filled in reads like any other text.
        kind="plain" if meant == "form" and _EMPTY not in issue.body else meant,
        title=issue.title,
        # The paper's question is about the text as it stands.
        body=(without_middle if name == "paper" else folded)(issue.body, MAX_BODY),
        answers=_within(answers, MAX_ANSWERS),
        asked=tuple(asked),
    )
    return Prompt(purpose="triage", system=system, user=user)


def verdict(
    reply: InputReply, config: TriageConfig, answered: Iterable[str] = (), marked_by: str = ""
) -> InputVerdict:
    """The verdict at the maintainer's line; questions in ``answered`` are not asked again.

    ``marked_by``: a maintainer says that details are missing, so the issue bounces, and all that is open is asked.
    """
    # The paper's labels are kept as they were given.
    label = reply.label if config.prompt == "paper" else agreeing(reply.label, reply.p_bounce)
    bounced = bounces(label, InputLabel(config.bounce_at), reply.p_bounce, config.bounce_above)
    bounced = bounced or bool(marked_by)
    points = [each.question for each in reply.open_points if each.blocking or marked_by]
    return InputVerdict(
        label=label,
        bounced=bounced,
        p_bounce=reply.p_bounce,
        explanation=reply.explanation,
        questions=_questions(points, answered) if bounced else (),
        missing=tuple(dict.fromkeys(reply.missing)) if bounced else (),
        language=reply.language.lower()[:2] if isinstance(reply, TranslatedReply) else config.language,
        marked_by=marked_by,
    )


def _questions(points: Sequence[str], answered: Iterable[str]) -> tuple[str, ...]:
    """Return those that were not answered before, without repetitions."""
    known = [_words(each) for each in answered]
    chosen: list[str] = []
    for point in points:
        text, words = " ".join(point.split()), _words(point)
        if not words or any(_alike(words, each) for each in known):
            continue
        known.append(words)
        chosen.append(text)
    return tuple(chosen[:MAX_QUESTIONS])


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text.lower()))


def _alike(left: frozenset[str], right: frozenset[str]) -> bool:
    """Whether two questions ask the same: four fifths of their words are shared (Jaccard)."""
    return len(left & right) >= 0.8 * len(left | right)


def _within(answers: Sequence[Comment], limit: int) -> tuple[Comment, ...]:
    """The newest answers that fit into ``limit`` characters, oldest first."""
    kept: list[Comment] = []
    for each in reversed(answers):
        limit -= len(each.body)
        if limit < 0 and kept:
            break
        kept.append(each.model_copy(update={"body": without_middle(each.body, MAX_ANSWERS)}))
    return tuple(reversed(kept))


#: What a report lacks, as its author is told.
_MISSING: Mapping[Missing, str] = {
    "steps to reproduce": "the steps to reproduce it",
    "expected result": "what you expected to happen",
    "actual result": "what happens instead",
    "version": "the version you use",
    "minimal example": "a minimal example",
    "error text": "the error message, as text",
    "name of the option": "the name of the option",
    "output format": "the format of the output",
    "decision between alternatives": "which of the alternatives it should be",
}


def comment(
    verdict: InputVerdict,
    model: str,
    day: date,
    repository: Repository,
    app: str,
    *,
    again: bool = False,
    paused: bool = False,
) -> str:
    """The comment on an issue that was turned back; ``app`` is the login of our own account.

    ``again``: its author has answered before, so nothing is listed that they may have been asked already.
    ``paused``: it is not read again on an answer.
    """
    said = sentences(verdict.language)
    lines = _asking(verdict, repository.host, again=again)
    lines += ["", f"{said['paused' if paused else 'answer']} *{said['disclosed']}*"]
    if note := caveat(model):
        lines += ["", f"_{note}_"]
    about = f"[{said['about']}]({_about(repository, app)})" if repository.html_url else "posted by Bouncer"
    footer = f"`{model}`, {day.isoformat()}, {about}"
    explanation = [clean(verdict.explanation, host=repository.host, limit=EXPLANATION)]
    if verdict.marked_by:
        # The maintainer decided, not the model; its explanation only says why it asks its questions.
        explanation = explanation if verdict.questions else []
    else:
        chance = "" if verdict.p_bounce is None else f" ({verdict.p_bounce}%)"
        footer = f"{verdict.label}{chance}, {footer}"
    folded = "\n\n".join([*explanation, footer])
    return "\n".join([*lines, "", f"<details><summary>{said['why']}</summary>", "", folded, "</details>"])


def _asking(verdict: InputVerdict, host: str, *, again: bool) -> list[str]:
    """Return who asks and what is asked, as lines."""
    said = sentences(verdict.language)
    wanted = [clean_line(question, host=host, limit=QUESTION) for question in verdict.questions]
    thanks = said["again" if again else "thanks"]
    if verdict.marked_by:
        thanks = f"{thanks} {said['marked'].format(login=verdict.marked_by)}"
        if not wanted:
            return [thanks]
    elif not wanted and not again:
        # The names of what is missing are English.
        named = [_MISSING[each] for each in verdict.missing] if said is sentences("en") else []
        wanted = named or [said["generic"]]
    if not wanted:
        return [f"{thanks} {said['unclear']}"]
    return [f"{thanks} {said['needed']}", *(f"- {each}" for each in wanted)]


def cleared(language: str) -> str:
    """The same comment once the issue can be acted on."""
    said = sentences(language)
    return f"{said['cleared']} *{said['read']}*"


def accepted(login: str, why: str, language: str) -> str:
    """The same comment after a maintainer's word."""
    reason = f": {clean_line(why, limit=QUESTION).rstrip('.')}" if why else ""
    return sentences(language)["accepted"].format(login=login, why=reason)


def unanswered(step: Literal["warning", "closed"], days: int, language: str) -> str:
    """A week before an unanswered issue is closed, and the same comment once it is."""
    said = sentences(language)
    return f"{said[step].format(days=days)} *{said['disclosed']}*"


def sentences(language: str) -> Mapping[str, str]:
    """All fixed sentences in a language; in English where it is not known."""
    return translations().get(language) or translations()["en"]


@cache
def translations() -> Mapping[str, Mapping[str, str]]:
    """The fixed sentences by language and name."""
    with Path(__file__).with_name("sentences.toml").open("rb") as file:
        return tomllib.load(file)


def _about(repository: Repository, app: str) -> str:
    """The app's own page on the repository's host."""
    parts = urlsplit(repository.html_url)
    return f"{parts.scheme}://{parts.netloc}/apps/{app.removesuffix('[bot]')}"
