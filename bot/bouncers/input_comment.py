"""What the author of a bounced issue reads: about ten lines, kind and specific. Pure."""

from __future__ import annotations

from datetime import date
from urllib.parse import urlsplit

from bot.bouncers.input import InputVerdict
from bot.core.disclaimer import caveat
from bot.core.markdown import clean, clean_line
from bot.core.model import Repository

#: Characters of one question, and of the folded explanation.
QUESTION = 240
EXPLANATION = 1_500


def bounced(verdict: InputVerdict, model: str, day: date, repository: Repository, app: str) -> str:
    """The comment on an issue that was turned back; ``app`` is the login of our own account."""
    host = urlsplit(repository.html_url).netloc
    lines = ["**This issue may need a little more before someone can act on it.**", ""]
    lines += [f"- {clean_line(question, host=host, limit=QUESTION)}" for question in verdict.questions]
    if verdict.questions:
        lines.append("")
    if verdict.missing:
        lines.append(f"Missing: {', '.join(verdict.missing)}.")
    lines.append(
        "Edit the issue or answer here, and it is read again. Maintainers: `/bouncer accept` overrides this."
    )
    if note := caveat(model):
        lines += ["", f"_{note}_"]
    about = f"[what this bot does]({_about(repository, app)})" if repository.html_url else "posted by Bouncer"
    lines += [
        "",
        f"<details><summary>Why: {_label(verdict)}</summary>",
        "",
        clean(verdict.explanation, host=host, limit=EXPLANATION),
        "",
        f"`{model}`, {day.isoformat()}, {about}",
        "</details>",
    ]
    return "\n".join(lines)


def cleared() -> str:
    """The same comment once the issue can be acted on."""
    return "Thanks, this is clear now."


def accepted(login: str) -> str:
    """The same comment after a maintainer's word."""
    return f"Accepted as it is by {login}."


def _label(verdict: InputVerdict) -> str:
    chance = "" if verdict.p_bounce is None else f" ({verdict.p_bounce:.0f} %)"
    return f"{verdict.label}{chance}"


def _about(repository: Repository, app: str) -> str:
    """The app's own page on the repository's host."""
    parts = urlsplit(repository.html_url)
    return f"{parts.scheme}://{parts.netloc}/apps/{app.removesuffix('[bot]')}"
