"""What the author of a bounced issue reads: about ten lines, kind and specific. Pure."""

from __future__ import annotations

from datetime import date
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


def bounced(
    verdict: InputVerdict, model: str, day: date, repository: Repository, app: str, *, again: bool = False
) -> str:
    """The comment on an issue that was turned back; ``app`` is the login of our own account.

    ``again``: its author has answered before, so nothing is listed that they may have been asked already.
    """
    host = urlsplit(repository.html_url).netloc
    wanted = [clean_line(question, host=host, limit=QUESTION) for question in verdict.questions]
    if not wanted and not again:
        wanted = [*verdict.missing] or ["what happens, what should happen instead, and how to see it"]
    thanks = "Thanks for the reply." if again else "Thanks for the report."
    lines = [f"{thanks} To work on this, a maintainer will probably need:", *(f"- {each}" for each in wanted)]
    if not wanted:
        lines = [f"{thanks} It is still not clear to me what exactly should change; a maintainer may know."]
    lines += ["", f"Edit the issue or reply below and I'll read it again. *{_DISCLOSED}*"]
    if note := caveat(model):
        lines += ["", f"_{note}_"]
    about = f"[what this bot does]({_about(repository, app)})" if repository.html_url else "posted by Bouncer"
    lines += [
        "",
        "<details><summary>Why I'm asking</summary>",
        "",
        clean(verdict.explanation, host=host, limit=EXPLANATION),
        "",
        f"{_label(verdict)}, `{model}`, {day.isoformat()}, {about}",
        "</details>",
    ]
    return "\n".join(lines)


_DISCLOSED = "I'm a bot using an AI model and may be wrong. Maintainers: `/bouncer accept` to override."


def cleared() -> str:
    """The same comment once the issue can be acted on."""
    return "Thanks, this is clear now."


def accepted(login: str, why: str = "") -> str:
    """The same comment after a maintainer's word."""
    return f"Accepted as it is by {login}" + (f": {clean_line(why, limit=QUESTION).rstrip('.')}." if why else ".")


def warning(days: int) -> str:
    """A week before an unanswered issue is closed."""
    return (
        f"I asked for more details {days} days ago and have not heard back. If nothing happens, I'll close this "
        "issue in a week. To keep it open, reply below or edit the issue. "
        f"*{_DISCLOSED}*"
    )


def closed(days: int) -> str:
    """The same comment once it is closed."""
    return (
        f"Closed for now, because nobody has answered in {days} days. Reply below or edit the issue, and I'll "
        f"open it again. *{_DISCLOSED}*"
    )


def answered() -> str:
    """The same comment after an answer."""
    return "Thanks for coming back to this. The issue stays open."


def _label(verdict: InputVerdict) -> str:
    chance = "" if verdict.p_bounce is None else f" ({verdict.p_bounce:.0f} %)"
    return f"{verdict.label}{chance}"


def _about(repository: Repository, app: str) -> str:
    """The app's own page on the repository's host."""
    parts = urlsplit(repository.html_url)
    return f"{parts.scheme}://{parts.netloc}/apps/{app.removesuffix('[bot]')}"
