"""What the author of a bounced issue reads: about ten lines, kind and specific. Pure."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from datetime import date
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from bot.bouncers.input import InputVerdict
from bot.core.markdown import clean, clean_line
from bot.core.model import Repository
from bot.models.protocol import caveat

#: Characters of one question, and of the folded explanation.
QUESTION = 240
EXPLANATION = 1_500
#: From the warning to the end of an issue that nobody answers, days.
WARNING = 7
#: What a report lacks, as its author is told.
_MISSING: Mapping[str, str] = {
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


def bounced(
    verdict: InputVerdict, model: str, day: date, repository: Repository, app: str, *, again: bool = False
) -> str:
    """The comment on an issue that was turned back; ``app`` is the login of our own account.

    ``again``: its author has answered before, so nothing is listed that they may have been asked already.
    """
    said = sentences(verdict.language)
    host = urlsplit(repository.html_url).netloc
    wanted = [clean_line(question, host=host, limit=QUESTION) for question in verdict.questions]
    if not wanted and not again:
        # The names of what is missing are English.
        named = [_MISSING.get(each, each) for each in verdict.missing] if said is sentences("en") else []
        wanted = named or [said["generic"]]
    thanks = said["again" if again else "thanks"]
    lines = [f"{thanks} {said['needed']}", *(f"- {each}" for each in wanted)]
    if not wanted:
        lines = [f"{thanks} {said['unclear']}"]
    lines += ["", f"{said['answer']} *{said['disclosed']}*"]
    if note := caveat(model):
        lines += ["", f"_{note}_"]
    about = f"[{said['about']}]({_about(repository, app)})" if repository.html_url else "posted by Bouncer"
    lines += [
        "",
        f"<details><summary>{said['why']}</summary>",
        "",
        clean(verdict.explanation, host=host, limit=EXPLANATION),
        "",
        f"{_label(verdict)}, `{model}`, {day.isoformat()}, {about}",
        "</details>",
    ]
    return "\n".join(lines)


def cleared(language: str) -> str:
    """The same comment once the issue can be acted on."""
    said = sentences(language)
    return f"{said['cleared']} *{said['read']}*"


def accepted(login: str, why: str, language: str) -> str:
    """The same comment after a maintainer's word."""
    reason = f": {clean_line(why, limit=QUESTION).rstrip('.')}" if why else ""
    return sentences(language)["accepted"].format(login=login, why=reason)


def warning(days: int, language: str) -> str:
    """A week before an unanswered issue is closed."""
    said = sentences(language)
    return f"{said['warning'].format(days=days)} *{said['disclosed']}*"


def closed(days: int, language: str) -> str:
    """The same comment once it is closed."""
    said = sentences(language)
    return f"{said['closed'].format(days=days)} *{said['disclosed']}*"


def answered(language: str) -> str:
    """The same comment after an answer."""
    return sentences(language)["answered"]


def recorded(language: str) -> str:
    """What stands below an answer to ``/bouncer why``."""
    return sentences(language)["recorded"]


def languages() -> frozenset[str]:
    """Those in which the sentences here are known."""
    return frozenset(_table())


def sentences(language: str) -> Mapping[str, str]:
    """All fixed sentences in a language; in English where it is not known."""
    table = _table()
    return table.get(language, table["en"])


@cache
def _table() -> Mapping[str, Mapping[str, str]]:
    with Path(__file__).with_name("sentences.toml").open("rb") as file:
        return tomllib.load(file)


def _label(verdict: InputVerdict) -> str:
    chance = "" if verdict.p_bounce is None else f" ({verdict.p_bounce:.0f}%)"
    return f"{verdict.label}{chance}"


def _about(repository: Repository, app: str) -> str:
    """The app's own page on the repository's host."""
    parts = urlsplit(repository.html_url)
    return f"{parts.scheme}://{parts.netloc}/apps/{app.removesuffix('[bot]')}"
