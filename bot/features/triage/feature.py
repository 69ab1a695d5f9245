"""Triage, the input bouncer: is this issue specified well enough to act on?"""

import re
from collections.abc import Iterator
from typing import get_args

from bot.core import events
from bot.core.actions import Decision, SetLabels, UpsertComment
from bot.features.feature import Feature
from bot.features.shared.labels import InputLabel
from bot.features.shared.posts import Posts
from bot.features.triage.handler import Trigger, concerns, handle, supersedes
from bot.features.triage.record import TriageRecord

_LABEL = re.compile("|".join(InputLabel))


def standing(posts: Posts) -> Iterator[Decision]:
    """Yield the last bounce, as our sticky comment shows it, if the label is still set."""
    label, number = posts.services.config.triage.label, posts.event.number
    comment, _ = next(posts.ours("triage"), (None, None))
    if comment is None:
        return
    folded = comment.body.partition("</summary>")[2].partition("</details>")[0]
    if not folded or label.lower() not in map(str.lower, posts.issue().labels):
        return
    questions = [line[2:] for line in comment.body.partition("<details>")[0].split("\n") if line[:2] == "- "]
    # If a maintainer set the label, the footer names no verdict.
    label_match = _LABEL.search(folded.rpartition("\n\n")[2])
    yield Decision(
        kind="triage",
        subject=posts.subject(),
        verdict=label_match[0] if label_match else InputLabel.VAGUE,
        actions=(
            UpsertComment(task="triage", number=number, body=posts.without_mark(comment.body)),
            SetLabels(number=number, add=(label,)),
        ),
        record=TriageRecord(
            bounced=True,
            explanation=folded.rpartition("\n\n")[0].strip(),
            questions=tuple(questions),
            answers=tuple(earlier.id for earlier in posts.comments() if earlier.id < comment.id),
        ),
    )


FEATURE = Feature(
    name="triage",
    handle=handle,
    record=TriageRecord,
    standing=standing,
    concerns=concerns,
    events=get_args(Trigger),
    after=("commands",),
    supersedes=supersedes,
    debounces=(events.IssueEdited,),
    judges=True,
    permissions={"issues": "write"},
)
