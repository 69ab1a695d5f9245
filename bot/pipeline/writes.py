"""The writes of one decision: each action is written to GitHub, unless it stands there already.

Three things keep a write from being made twice: the register of our postings, the hidden marker that is looked for
before anything is created, and calls that change nothing when they are repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from bot import router
from bot.code.change.diff import Diff, parse
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
from bot.core.config import PATH
from bot.core.errors import ForgeError, NotFound
from bot.core.subjects import Comment, Issue, PullRequest, ReviewComment
from bot.features.services import Services
from bot.github.protocol import PostedReview
from bot.github.writer import GitHubWriter
from bot.pipeline.body import MAX_CHECK, Rules, Seal
from bot.pipeline.protected_paths import protection
from bot.pipeline.store.decisions import Posting, Postings, PublishOutcome, content_hash

#: Why nothing is written if a comment of a shared account stands already.
NOT_EDITED = (
    "a comment with this marker stands and was not edited: without BOUNCER_MARKER_KEY another workflow of the "
    "same account could have written it"
)
#: A drafted test, characters.
MAX_TEST = 200_000
#: Conclusions of our checks, from the one that hinders a merge least to the one that hinders it most.
_WORST_LAST = ("skipped", "success", "neutral", "failure")


class Stop(Exception):
    """Raised to write nothing more of a decision, with the outcome."""

    def __init__(self, outcome: PublishOutcome) -> None:
        self.outcome = outcome


def unpaced() -> None:
    """Allow every write at once."""


@dataclass
class Writes:
    """The writes of one decision for a job. The first fields are those of the Publisher.

    ``done`` counts the actions whose result stands on GitHub. A note without one means that our own rules refused
    the action. ``may_edit``: a comment with our marker that is not in the register is ours.
    """

    postings: Postings
    marker_key: bytes
    may_edit: bool
    first_try: bool
    on_request: bool
    before_write: Callable[[], None]
    rules: Rules
    decision: Decision
    job: str
    services: Services
    writer: GitHubWriter
    done: int = 0
    notes: list[str] = field(default_factory=list)
    fresh: Issue | PullRequest | None = None
    """The subject, as ``check_staleness`` read it."""

    def carry_out(self, action: Action) -> None:
        """Write an action. Raises Stop."""
        match action:
            case UpsertComment() if action.thread is not None:
                self._reply(action, action.thread)
            case UpsertComment():
                self._upsert_comment(action)
            case SetLabels():
                self._set_labels(action)
            case SetIssueState():
                self._set_issue_state(action)
            case SetDraft():
                self._set_draft(action)
            case SubmitReview():
                self._submit_review(action)
            case SetCheck():
                self._set_check(action)
            case OpenDraftPull():
                self._open_draft_pull(action)
            # These are not paced: they create no content and can be repeated.
            case React():
                try:
                    self.writer.react(action.comment_id, action.content, review=action.on == "review")
                except NotFound as error:
                    # Deleted meanwhile: what it asked for counts all the same.
                    self.notes.append(f"a comment got no reaction: {error}")
                self.done += 1
            case Minimize():
                try:
                    self.writer.minimize(action.node_id, action.why)
                    self.done += 1
                except ForgeError as error:
                    # Deleted meanwhile, or an older server: the finding's fate does not depend on it.
                    self.notes.append(f"a comment was not minimized: {error}")

    def check_staleness(self) -> None:
        """Read the subject again. Raises Stop if it changed, or if the feature was switched off."""
        subject, feature = self.decision.subject, router.feature_named(self.decision.kind)
        if subject.number and not feature.is_wanted(self.decision, self.services.config):
            raise Stop(PublishOutcome.MOVED)
        if not subject.number or not feature.checks_staleness:
            return
        if subject.revision.startswith("sha:"):
            self.fresh = self.services.forge.pull_request(subject.number)
        elif subject.revision.startswith("text:"):
            self.fresh = self.services.forge.issue(subject.number)
        if self.fresh is None:
            return
        is_over = self.fresh.state == "closed" or self.fresh.locked
        if isinstance(self.fresh, PullRequest):
            is_over |= self.fresh.draft and not self.services.config.pulls.drafts
        if self.fresh.revision != subject.revision or (self.decision.only_open and is_over):
            raise Stop(PublishOutcome.MOVED)

    def _upsert_comment(self, action: UpsertComment) -> None:
        """Create or edit our comment of a task."""
        key, body = self._comment(action)
        posting = self.postings.find(key)
        if self._stands(posting, body):
            return
        self.check_staleness()
        if posting:
            self.before_write()
            try:
                self.writer.edit_comment(posting.github_id, body)
                self._register(key, action, action.number, posting.github_id, body)
                return
            except NotFound:
                # It stays in the register: a deleted comment is not written again. The next write is paid for.
                self.before_write = unpaced
        issue, github_id = self.fresh, None
        if not (isinstance(issue, Issue) and issue.number == action.number and issue.comments == 0):
            comments = self.services.forge.comments(action.number)
            github_id = self._own_post(comments, action.number, (action.task, action.about))
        if github_id is not None:
            if not self.may_edit:
                self.notes.append(NOT_EDITED)
                return
            self.before_write()
            self.writer.edit_comment(github_id, body)
        elif action.only_edit:
            self.done += 1
            self.notes.append("no comment to edit")
            return
        elif posting and not self.on_request:
            self.notes.append("my comment was deleted, and is not written again")
            raise Stop(PublishOutcome.REFUSED)
        else:
            self.before_write()
            github_id = self.writer.create_comment(action.number, body)
        self._register(key, action, action.number, github_id, body)

    def _reply(self, action: UpsertComment, thread: int) -> None:
        """Answer once in a thread of a review."""
        key, body = self._comment(action)
        if self.postings.find(key):
            self.done += 1
            return
        self.check_staleness()
        comments = self.services.forge.review_comments(action.number)
        github_id = self._own_post(comments, action.number, (action.task, action.about))
        if github_id is None:
            self.before_write()
            github_id = self.writer.reply(action.number, thread, body)
        self._register(key, action, action.number, github_id, body)

    def _comment(self, action: UpsertComment) -> tuple[str, str]:
        """Return the key of a comment in the register, and its whole text."""
        about = f":{action.about}" if action.about else ""
        key = f"comment:{self.services.forge.repository}#{action.number}:{action.task}{about}"
        return key, self.rules.marked(action.body, action.task, action.about, self._seal(action.number))

    def _set_labels(self, action: SetLabels) -> None:
        allowed = self.services.config.labels
        # A label that we set here before the file named another one.
        past = self.services.history.decisions(f"{self.services.forge.repository}#{action.number}", "triage")
        earlier = [item for decision in past for item in decision.actions if isinstance(item, SetLabels)]
        removable = allowed.union(*(item.add for item in earlier))
        add = tuple(label for label in action.add if label in allowed)
        remove = tuple(label for label in action.remove if label in removable and label not in add)
        wrong = [label for label in (*action.add, *action.remove) if label not in removable]
        self.notes += [f"label {label!r} is not one of ours" for label in wrong]
        if not add and not remove:
            return
        self.check_staleness()
        current = {label.lower(): label for label in self._issue(action.number).labels}
        missing = tuple(label for label in add if label.lower() not in current)
        if missing:
            self.before_write()
            self.writer.add_labels(action.number, missing)
        for label in remove:
            if label.lower() in current:
                self.before_write()
                self.writer.remove_label(action.number, current[label.lower()])
        self.done += 1

    def _set_issue_state(self, action: SetIssueState) -> None:
        self.check_staleness()
        issue = self._issue(action.number)
        if action.state == "closed" and action.comments not in (None, issue.comments):
            # A comment was added since the decision.
            raise Stop(PublishOutcome.MOVED)
        if issue.state != action.state:
            self.before_write()
            self.writer.set_issue_state(action.number, action.state)
        self.done += 1

    def _set_draft(self, action: SetDraft) -> None:
        pull = self.services.forge.pull_request(action.number)
        if pull.state == "open" and pull.draft != action.draft:
            if action.draft and self.services.config.gate.mode != "draft":
                # The comment after it would say that it was done.
                raise Stop(PublishOutcome.MOVED)
            self.before_write()
            self.writer.set_draft(action.node_id, action.draft)
        self.done += 1

    def _submit_review(self, action: SubmitReview) -> None:
        key = f"review:{self.services.forge.repository}#{action.number}:{action.identity}"
        if self.postings.find(key):
            self.done += 1
            self.notes.append("this commit has its review")
            return
        self.check_staleness()
        diff, seal = parse(self.services.forge.diff(action.number).text), self._seal(action.number)
        anchored = [comment for comment in action.comments if _is_anchored(comment, diff)]
        comments = tuple(self.rules.inline(comment, seal) for comment in anchored)
        if lost := len(action.comments) - len(comments):
            self.notes.append(f"{lost} comments without a line")
        if not comments:
            return
        body = self.rules.marked(action.body, "review", action.identity, seal)
        github_id, pull = None, self.fresh
        # A review of ours always has a comment on a line.
        if not (isinstance(pull, PullRequest) and pull.number == action.number and pull.review_comments == 0):
            reviews = self.services.forge.reviews(action.number)
            github_id = self._own_post(reviews, action.number, ("review", action.identity))
        if github_id is None:
            self.before_write()
            try:
                github_id = self.writer.create_review(action.number, action.commit_id, body, comments)
            except ForgeError:
                self.check_staleness()  # A push since then: its lines or its commit are gone.
                raise
        self._register(key, action, action.number, github_id, body)

    def _set_check(self, action: SetCheck) -> None:
        key = f"check:{self.services.forge.repository}@{action.head_sha}:{action.name}"
        texts = (
            self.rules.title(action.title),
            self.rules.text(action.summary, MAX_CHECK),
            self.rules.text(action.text, MAX_CHECK),
        )
        content = "\0".join((action.conclusion, *texts))
        posting = self.postings.find(key)
        # After "Re-run" GitHub shows the check as queued until it is written again.
        if self._stands(posting, content):
            return
        if not self.done:
            # After a review the check is due, whatever was pushed since: it belongs to its commit.
            self.check_staleness()
        if posting and self._is_worse_elsewhere(posting, action):
            self.done += 1
            self.notes.append(f"the check is about #{posting.number}, which has the same head")
            return
        github_id, writer = posting.github_id if posting else None, self.writer
        if not posting and not self.first_try:
            runs = self.services.forge.check_runs(action.head_sha, action.name)
            github_id = runs[0].id if runs else None
        self.before_write()
        if github_id is not None:
            try:
                writer.edit_check(github_id, action.conclusion, *texts)
            except NotFound:
                github_id = None
        if github_id is None:
            github_id = writer.create_check(action.name, action.head_sha, self.job, action.conclusion, *texts)
        self._register(key, action, self.decision.subject.number, github_id, content)

    def _is_worse_elsewhere(self, posting: Posting, action: SetCheck) -> bool:
        """Return True if the check says something worse about another open pull request with the same head.

        All of them show the one check of that name, and it may be required for a merge.
        """
        forge = self.services.forge
        if posting.number in (0, self.decision.subject.number):
            return False
        other = forge.pull_request(posting.number)
        if other.state == "closed" or other.head_sha != action.head_sha:
            return False
        runs = (run for run in forge.check_runs(action.head_sha, action.name) if run.id == posting.github_id)
        worse = _WORST_LAST[_WORST_LAST.index(action.conclusion) + 1 :]
        return any(run.conclusion in worse for run in runs)

    def _open_draft_pull(self, action: OpenDraftPull) -> None:
        if problem := self._bad_draft(action):
            self.notes.append(problem)
            return
        key = f"pull:{self.services.forge.repository}:{action.branch}"
        if self.postings.find(key):
            self.done += 1
            self.notes.append("its pull request was opened before")
            return
        self.check_staleness()
        github_id = self.writer.find_pull(action.branch)
        if github_id is None:
            # One write of the pace for all three: a branch and a file send no notifications.
            self.before_write()
            title = self.rules.title(action.title)
            self.writer.create_branch(action.branch, action.base_sha)
            # A model wrote it: the repository's own CI, with its secrets, waits until a person has read it.
            self.writer.put_file(action.branch, action.path, action.content, f"{title}\n\n[skip ci]")
            body = self.rules.marked(action.body, self.decision.kind)
            github_id = self.writer.create_draft_pull(action.branch, action.base, title, body)
        self._register(key, action, action.number, github_id, action.content)

    def _bad_draft(self, action: OpenDraftPull) -> str:
        """Return the reason to refuse a drafted test; empty if there is none."""
        if self.rules.leaks(action.content):
            return "the draft holds a secret of the operator's"
        if not action.branch.startswith("bouncer/"):
            return "a draft's branch must start with bouncer/"
        is_configuration = self.decision.kind == "config" and action.path == PATH
        if not is_configuration and (problem := protection(action.path)):
            return f"a draft cannot be written there: {problem}"
        return "the draft is too large" if len(action.content) > MAX_TEST else ""

    def _stands(self, posting: Posting | None, content: str) -> bool:
        """Return True, and count the action, if this was written before, unless a person asks for it again."""
        if posting is None or posting.content_hash != content_hash(content):
            return False
        stands = posting.job == self.job or not self.on_request
        self.done += stands
        return stands

    def _issue(self, number: int) -> Issue:
        """Return an issue, without a request if it was read already."""
        issue = self.fresh
        return issue if isinstance(issue, Issue) and issue.number == number else self.services.forge.issue(number)

    def _seal(self, number: int) -> Seal:
        return Seal(repository=self.services.forge.repository, number=number, key=self.marker_key)

    def _own_post(
        self, posts: Iterable[Comment | ReviewComment | PostedReview], number: int, marker: tuple[str, str]
    ) -> int | None:
        """Return the id of the first of these posts that is ours and has this marker; None if there is none."""
        me, seal = self.services.forge.identity().id, self._seal(number)
        return next((post.id for post in posts if post.author.id == me and seal.read(post.body) == marker), None)

    def _register(self, key: str, action: Action, number: int, github_id: int, content: str) -> None:
        """Put a write into the register, and count the action as done."""
        self.postings.put(
            Posting(
                key=key,
                type=action.type,
                task=self.decision.kind,
                repository=self.services.forge.repository,
                number=number,
                job=self.job,
                github_id=github_id,
                content_hash=content_hash(content),
            )
        )
        self.done += 1


def _is_anchored(comment: InlineComment, diff: Diff) -> bool:
    """Return True if GitHub accepts a comment there: on lines of one hunk, on their own side."""
    first = comment.start_line or comment.line
    return first <= comment.line and any(
        {first, comment.line} <= {line.number(comment.side) for line in hunk.lines}
        for file in diff.named(comment.path)
        for hunk in file.hunks
    )
