"""A ``.github/bouncer.yml`` that cannot be used as it stands is reported once per version of the file.

The words go where maintainers look next: the first issue or pull request that is opened after the change.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from bot.core import events
from bot.core.actions import Decision, UpsertComment
from bot.core.config import PATH
from bot.core.config_file import Problem
from bot.core.events import Event
from bot.core.markdown import clean_line
from bot.core.model import Subject
from bot.services import Services

#: Problems that one comment lists; more of them are counted.
MAX_PROBLEMS = 10


def handle(event: Event, services: Services) -> Decision | None:
    """Report what is wrong in the file; None where nothing is, or where it was said before."""
    problems = services.config_problems
    if not problems or not isinstance(event, events.IssueOpened | events.PullRequestOpened):
        return None
    texts = [str(problem) for problem in problems]
    version = hashlib.sha256("\n".join(texts).encode("utf-8", "surrogatepass")).hexdigest()[:12]
    revision = f"config:{version}"
    subject = Subject(repository=services.forge.repository, number=0, revision=revision)
    if any(past.subject.revision == revision for past in services.history.decisions(subject.key, "config")):
        return None
    return Decision(
        kind="config",
        subject=subject,
        verdict="wrong",
        actions=(UpsertComment(task="config", number=event.number, body=report(problems)),),
        reason=f"{len(problems)} problems in {PATH}",
        evidence={"problems": texts},
    )


def report(problems: Sequence[Problem]) -> str:
    """The comment: key, line and allowed values of each problem."""
    count = len(problems)
    found = "a problem; the default is used" if count == 1 else f"{count} problems; the defaults are used"
    lines = [
        f"**Maintainers: `{PATH}` has {found} instead.**",
        "",
        *(f"- {clean_line(str(problem), limit=400)}" for problem in problems[:MAX_PROBLEMS]),
    ]
    if count > MAX_PROBLEMS:
        lines.append(f"- and {count - MAX_PROBLEMS} more")
    return "\n".join(lines)
