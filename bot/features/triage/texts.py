"""The comment on a bounced issue: about ten lines, kind and specific. Pure.

The fixed sentences are English; the model writes its questions in the issue's language.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

from bot.core.markdown import clean, clean_line
from bot.core.subjects import Repository
from bot.features.shared.history import DISCLOSURE, PAUSED, READ_AGAIN
from bot.features.shared.labels import InputLabel
from bot.features.triage.judgement import InputVerdict, Missing
from bot.models.protocol import caveat

#: Characters of one question, and of the folded explanation.
MAX_QUESTION = 240
MAX_EXPLANATION = 1_500

CLEARED = "Thanks, that answers my questions. (I'm a bot; an AI model read this.)"

_MISSING: Mapping[Missing, str] = {
    "steps to reproduce": "the steps to reproduce it",
    "expected result": "what you expected to happen",
    "actual result": "what happens instead",
    "version": "the version you use",
    "minimal example": "a minimal example",
    "error text": "the error message, as text",
    "name of the option": "the name of the option",
    "output format": "the format of the output",
    "decision between alternatives": "Which of the alternatives do you want?",
}


def bounce(
    verdict: InputVerdict,
    model: str,
    day: date,
    repository: Repository,
    about_url: str,
    *,
    again: bool = False,
    paused: bool = False,
) -> str:
    """Return the comment on an issue that was bounced; ``about_url`` is the page that explains the bot.

    ``again``: its author has answered before, so nothing is listed that they may have been asked already.
    ``paused``: an answer will not be read.
    """
    lines = _request(verdict, repository.host, again=again)
    lines += ["", f"{PAUSED if paused else READ_AGAIN} *{DISCLOSURE}*"]
    if note := caveat(model):
        lines += ["", f"_{note}_"]
    source = f"[what this bot does]({about_url})" if about_url else "posted by Bouncer"
    footer = f"`{model}`, {day.isoformat()}, {source}"
    explanation = [clean(verdict.explanation, host=repository.host, limit=MAX_EXPLANATION)]
    if verdict.marked_by:
        # The maintainer decided, not the model; its explanation only says why it asks its questions.
        explanation = explanation if verdict.questions else []
    else:
        chance = "" if verdict.p_bounce is None else f" ({verdict.p_bounce}% likely)"
        # The chance is that of a vague issue, whatever the label: a low threshold bounces well specified ones.
        impossible = verdict.label == InputLabel.IMPOSSIBLE_TO_SOLVE
        footer = f"{'impossible to solve as it is written' if impossible else 'too vague'}{chance}, {footer}"
    folded = "\n\n".join([*explanation, footer])
    return "\n".join([*lines, "", "<details><summary>Why I'm asking</summary>", "", folded, "</details>"])


def _request(verdict: InputVerdict, host: str, *, again: bool) -> list[str]:
    """Return the lines that say who asks, and for which details."""
    details = [clean_line(question, host=host, limit=MAX_QUESTION) for question in verdict.questions]
    thanks = "Thanks for the reply." if again else "Thanks for the report."
    if verdict.marked_by:
        thanks = f"{thanks} {verdict.marked_by} asked for more details."
        if not details:
            return [thanks]
    elif not details and not again:
        details = [_MISSING[name] for name in verdict.missing] or [
            "what happens, what should happen instead, and how to see it"
        ]
    if not details:
        return [f"{thanks} I still can't tell what exactly should change; a maintainer may know."]
    intro = "To work on this, a maintainer will probably need:"
    return [f"{thanks} {intro}", *(f"- {detail}" for detail in details)]
