"""Render what a decision wrote to GitHub, or would have written, as people see it there. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from markupsafe import Markup

from bot.core.actions import (
    Action,
    Decision,
    InlineComment,
    Minimize,
    OpenDraftPull,
    React,
    SetCheck,
    SetDraft,
    SetIssueState,
    SetLabels,
    SubmitReview,
    UpsertComment,
)
from bot.core.markdown import host_of
from bot.features.review.record import ReviewRecord
from bot.pipeline.body import MAX_BODY, Rules, as_html
from bot.pipeline.store.decisions import Posting


class Card(NamedTuple):
    """One box on the page: a title, what stands in it, and where it stands on GitHub (empty: nowhere yet)."""

    title: str
    body: Markup
    url: str = ""
    code: str = ""
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


def cards(decision: Decision, postings: Sequence[Posting], web_url: str, about_url: str = "") -> tuple[Card, ...]:
    """Return a card per action, including those that shadow mode withheld, in the order of writing."""
    renderer = _Renderer(decision, postings, web_url, about_url)
    return tuple(card for action in decision.actions or decision.withheld for card in renderer.cards(action))


class Unposted(NamedTuple):
    """A finding that was not posted, and why."""

    path: str
    line: int | None
    comment: str
    why: str


def unposted(decision: Decision) -> tuple[Unposted, ...]:
    """Return the findings that a review's filters held back, then those whose place is not in the diff."""
    record = decision.record_of(ReviewRecord)
    doubts = {doubt.fingerprint: doubt for doubt in record.doubts}
    rows = []
    for suppressed in record.suppressed:
        finding, why = suppressed.finding, suppressed.reason.replace("_", " ")
        doubt = doubts.get(finding.fingerprint)
        why = f"{why}: {doubt.why}" if doubt and doubt.why else why
        rows.append(Unposted(finding.path, finding.line, finding.comment, why))
    for dropped in record.dropped:
        reported = dropped.reported
        rows.append(Unposted(reported.path, reported.line, reported.comment, dropped.reason.replace("_", " ")))
    return tuple(rows)


class _Renderer:
    """The actions of one decision as cards."""

    def __init__(self, decision: Decision, postings: Sequence[Posting], web_url: str, about_url: str) -> None:
        self._base = f"{web_url}/{decision.subject.repository}"
        # The very pipeline that a body goes through before it is sent.
        self._rules = Rules(host=host_of(web_url), about_url=about_url)
        self._urls = {posting.type: posting.url(web_url) for posting in postings}
        self._code: Mapping[str, str] = {
            finding.fingerprint: "\n".join(finding.code) for finding in decision.record_of(ReviewRecord).posted
        }

    def cards(self, action: Action) -> tuple[Card, ...]:
        url = self._urls.get(action.type, "")
        match action:
            case UpsertComment():
                title = "Comment, where one stands already" if action.only_edit else "Comment"
                return (Card(title, self._html(action.body), url),)
            case SetLabels():
                return (Card("Labels", Markup(), "", "", action.add, action.remove),)
            case SetIssueState():
                done = "closed as not planned" if action.state == "closed" else "opened again"
                return (Card("Issue", Markup("<p>{}</p>").format(done)),)
            case SetDraft():
                done = "converted to a draft" if action.draft else "marked as ready for review"
                return (Card("Pull request", Markup("<p>{}</p>").format(done)),)
            case SubmitReview():
                head = (Card(f"Review of {action.commit_id[:7]}", self._html(action.body), url),)
                return (*head, *(self._finding(comment, action) for comment in action.comments))
            case SetCheck():
                title = f"Check {action.name}: {action.conclusion}"
                body = Markup("<p><strong>{}</strong></p>").format(self._rules.title(action.title))
                return (Card(title, body + self._html(action.summary) + self._html(action.text), url),)
            case OpenDraftPull():
                return (Card(f"Draft pull request: {action.title}", self._html(action.body), url, action.content),)
            case React():
                return (Card("Reaction", Markup("<p>{}</p>").format(action.content)),)
            case Minimize():
                return (Card("Comment", Markup("<p>minimized as {}</p>").format(action.why.lower())),)

    def _finding(self, comment: InlineComment, review: SubmitReview) -> Card:
        """An inline comment; its link leads to the line in the change as it was reviewed."""
        file = hashlib.sha256(comment.path.encode("utf-8", "surrogatepass")).hexdigest()
        line = f"{'R' if comment.side == 'RIGHT' else 'L'}{comment.line}"
        where = f"{self._base}/pull/{review.number}/files/{review.commit_id}#diff-{file}{line}"
        return Card(
            f"{comment.path}, line {comment.line}",
            as_html(self._rules.inline(comment).body),
            where,
            self._code.get(comment.fingerprint, ""),
        )

    def _html(self, body: str) -> Markup:
        return as_html(self._rules.text(body, MAX_BODY)) if body else Markup()
