"""Publishes decisions: each action becomes a GitHub call, with harmless text, if its subject did not change.

Three things keep a write from being made twice: the register of our postings, the hidden marker that is looked for
before anything is created, and calls that change nothing when they are repeated.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field

from bot import router
from bot.code.diff import Diff, parse
from bot.core import actions
from bot.core.config import PATH
from bot.core.errors import ForgeError, NotFound, NotInstalled
from bot.core.subjects import Comment, Issue, PullRequest, ReviewComment
from bot.features.services import Services
from bot.github.protocol import PostedReview
from bot.github.writer import GitHubWriter
from bot.pipeline.body import MAX_CHECK, Rules
from bot.pipeline.markers import Seal
from bot.pipeline.protected_paths import protection
from bot.pipeline.store.decisions import PublishOutcome
from bot.pipeline.store.postings import Posting, Postings

#: Seconds between two writes through one installation (GitHub's best practices for integrators).
APART_SECONDS = 1.0


class Refused(ForgeError):
    """GitHub refused all actions of a decision for good, and nothing of it was posted."""


@dataclass(frozen=True)
class Published:
    """The outcome of publishing a decision; ``notes`` say what was left out, and why."""

    outcome: PublishOutcome
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "; ".join((self.outcome, *self.notes))


class Paced(Exception):
    """Raised if the next write has to wait."""


def unpaced() -> None:
    """Allow every write at once."""


class OneWrite:
    """Allow one write. Raise Paced before the second: the job's next attempt makes it."""

    def __init__(self) -> None:
        self._used = False

    def __call__(self) -> None:
        if self._used:
            raise Paced
        self._used = True


class Spaced:
    """Sleep until the last write is a second ago. For commands, which have no queue."""

    def __init__(self) -> None:
        self._last = -APART_SECONDS

    def __call__(self) -> None:
        time.sleep(max(0.0, self._last + APART_SECONDS - time.monotonic()))
        self._last = time.monotonic()


@dataclass(frozen=True)
class Publisher:
    """Publishes decisions. Publishing one again writes what is missing and nothing else.

    ``secrets`` are never written. ``before_write`` is called before each write that creates or changes content. If
    it raises Paced, the outcome is PACED, and publishing again goes on with the rest. ``marker_key`` signs our
    markers where other programs share our account (``shares_account``); without it no comment of the account that
    was there before is edited, because any of these programs could have written its marker.
    """

    postings: Postings
    secrets: Collection[str] = field(default=(), repr=False)
    before_write: Callable[[], None] = unpaced
    marker_key: bytes = field(default=b"", repr=False)
    shares_account: bool = False
    first_try: bool = False
    """No earlier attempt or job can have written, so a post that is not in the register does not exist."""

    def publish(self, decision: actions.Decision, job: str, services: Services, writer: GitHubWriter) -> Published:
        """Carry out a decision's actions.

        Raises TransientError if a write may or may not have been applied; publishing again finds out. After all
        other actions were carried out, raises ForgeError if GitHub refused one for good, or Refused if it refused
        all of them.
        """
        if not decision.actions:
            return Published(PublishOutcome.WITHHELD if decision.withheld else PublishOutcome.NOTHING)
        executor = Executor(self, decision, job, services, writer, self.before_write)
        notes: list[str] = []
        refused: ForgeError | None = None
        try:
            for action in decision.actions:
                try:
                    notes += executor.carry_out(action)
                except ForgeError as error:
                    # A refused write does not count as this attempt's: the next one would stop here again.
                    executor.before_write = unpaced
                    if error.status == 403 and any(words in str(error) for words in READ_ONLY):
                        # The project takes no more of it: nothing that an operator could repair.
                        notes.append(f"not written: {error}")
                        continue
                    refused = refused or error
                    if isinstance(action, actions.SetDraft):
                        break  # The comment after it would say that it was done.
        except Moved:
            return Published(PublishOutcome.MOVED, tuple(notes))
        except Paced:
            return Published(PublishOutcome.PACED)
        if refused is not None and (executor.done or isinstance(refused, NotFound | NotInstalled)):
            raise refused
        if refused is not None:
            raise Refused(str(refused), refused.status)
        return Published(PublishOutcome.POSTED if executor.done else PublishOutcome.REFUSED, tuple(notes))


#: What GitHub says if a locked conversation or an archived repository takes no more writes.
READ_ONLY = ("issue is locked", "Repository was archived")
#: Why nothing is written if a comment of a shared account stands already.
NOT_EDITED = (
    "a comment with this marker stands and was not edited: without BOUNCER_MARKER_KEY another workflow of the "
    "same account could have written it"
)

#: A drafted test, characters.
MAX_TEST = 200_000


class Moved(Exception):
    """Raised if the subject changed, or was closed or locked, since the decision."""


@dataclass
class Executor:
    """The writes of one decision; ``done`` counts the actions whose result stands on GitHub.

    Methods return notes; a note without a write means that our own rules refused the action.
    """

    publisher: Publisher
    decision: actions.Decision
    job: str
    services: Services
    writer: GitHubWriter
    before_write: Callable[[], None]
    done: int = 0
    _fresh: Issue | PullRequest | None = field(default=None, init=False)
    """The subject, as it was last read."""

    def __post_init__(self) -> None:
        services, secrets = self.services, tuple(self.publisher.secrets)
        self.postings = self.publisher.postings
        self.rules = Rules(host=services.repository.host, secrets=secrets, about_url=services.about_url)

    def carry_out(self, action: actions.Action) -> tuple[str, ...]:
        match action:
            case actions.UpsertComment():
                return self._comment(action)
            case actions.SetLabels():
                return self._labels(action)
            case actions.SetIssueState():
                return self._state(action)
            case actions.SetDraft():
                return self._set_draft(action)
            case actions.SubmitReview():
                return self._review(action)
            case actions.SetCheck():
                return self._check(action)
            case actions.OpenDraftPull():
                return self._draft(action)
            case actions.React():
                return self._react(action)
            case actions.Minimize():
                return self._minimize(action)

    def _comment(self, action: actions.UpsertComment) -> tuple[str, ...]:
        about = f":{action.about}" if action.about else ""
        key = f"comment:{self.services.forge.repository}#{action.number}:{action.task}{about}"
        body = self.rules.marked(action.body, action.task, action.about, self._seal(action.number))
        posting = self.postings.find(key)
        if posting and posting.content_hash == content_hash(body):
            self.done += 1
            return ()
        self._check_staleness()
        if action.thread is None and posting and self._edit(posting, body):
            return ()
        github_id = self._own_comment(action)
        if github_id is None and action.thread is None and action.only_edit:
            self.done += 1
            return ("no comment to edit",)
        if github_id is not None and self.publisher.shares_account and not self.publisher.marker_key:
            return (NOT_EDITED,)
        if action.thread is None:
            self.before_write()
            if github_id is None:
                github_id = self.writer.create_comment(action.number, body)
            else:
                self.writer.edit_comment(github_id, body)
        elif github_id is None:
            # An existing reply in a thread is not edited.
            self.before_write()
            github_id = self.writer.reply(action.number, action.thread, body)
        self._register(key, action, action.number, github_id, body)
        return ()

    def _edit(self, posting: Posting, body: str) -> bool:
        """Edit a comment that we posted before. Return False if it was deleted on GitHub."""
        self.before_write()
        try:
            self.writer.edit_comment(posting.github_id, body)
        except NotFound:
            self.postings.forget(posting.key)
            return False
        self.postings.put(posting.model_copy(update={"content_hash": content_hash(body), "job": self.job}))
        self.done += 1
        return True

    def _seal(self, number: int) -> Seal:
        return Seal(repository=self.services.forge.repository, number=number, key=self.publisher.marker_key)

    def _own_comment(self, action: actions.UpsertComment) -> int | None:
        """Return the id of the comment to edit; None if there is none."""
        issue = self._fresh
        if isinstance(issue, Issue) and issue.number == action.number and issue.comments == 0:
            return None
        forge = self.services.forge
        comments = forge.comments(action.number) if action.thread is None else forge.review_comments(action.number)
        return self._own_post(comments, action.number, (action.task, action.about))

    def _own_post(
        self, posts: Iterable[Comment | ReviewComment | PostedReview], number: int, marker: tuple[str, str]
    ) -> int | None:
        """Return the id of the first of these posts that is ours and has this marker; None if there is none."""
        me, seal = self.services.forge.identity().id, self._seal(number)
        return next((post.id for post in posts if post.author.id == me and seal.read(post.body) == marker), None)

    def _labels(self, action: actions.SetLabels) -> tuple[str, ...]:
        allowed = self.services.config.labels
        notes = tuple(
            f"label {label!r} is not one of ours"
            for label in (*action.add, *action.remove)
            if label not in allowed
        )
        add = tuple(label for label in action.add if label in allowed)
        remove = tuple(label for label in action.remove if label in allowed and label not in add)
        if not add and not remove:
            return notes
        self._check_staleness()
        current = {label.lower() for label in self._issue(action.number).labels}
        missing = tuple(label for label in add if label.lower() not in current)
        if missing:
            self.before_write()
            self.writer.add_labels(action.number, missing)
        for label in remove:
            if label.lower() in current:
                self.before_write()
                self.writer.remove_label(action.number, label)
        self.done += 1
        return notes

    def _state(self, action: actions.SetIssueState) -> tuple[str, ...]:
        self._check_staleness()
        issue = self._issue(action.number)
        if action.state == "closed" and action.comments not in (None, issue.comments):
            # A comment was added since the decision.
            raise Moved
        if issue.state != action.state:
            self.before_write()
            self.writer.set_issue_state(action.number, action.state)
        self.done += 1
        return ()

    def _set_draft(self, action: actions.SetDraft) -> tuple[str, ...]:
        if action.draft and self.services.config.gate.mode != "draft":
            return ("gate.mode is not draft",)
        pull = self.services.forge.pull_request(action.number)
        if pull.state == "open" and pull.draft != action.draft:
            self.before_write()
            self.writer.set_draft(action.node_id, action.draft)
        self.done += 1
        return ()

    def _react(self, action: actions.React) -> tuple[str, ...]:
        # Not paced: it creates no content and can be repeated.
        self.done += 1
        try:
            self.writer.react(action.comment_id, action.content, review=action.on == "review")
        except NotFound as error:
            # Deleted meanwhile: what it asked for counts all the same.
            return (f"a comment got no reaction: {error}",)
        return ()

    def _minimize(self, action: actions.Minimize) -> tuple[str, ...]:
        # Not paced: it creates no content and can be repeated.
        try:
            self.writer.minimize(action.node_id, action.why)
        except ForgeError as error:
            # Deleted meanwhile, or an older server: the finding's fate does not depend on it.
            return (f"a comment was not minimized: {error}",)
        self.done += 1
        return ()

    def _issue(self, number: int) -> Issue:
        issue = self._fresh
        return issue if isinstance(issue, Issue) and issue.number == number else self.services.forge.issue(number)

    def _review(self, action: actions.SubmitReview) -> tuple[str, ...]:
        key = f"review:{self.services.forge.repository}#{action.number}:{action.commit_id}"
        if self.postings.find(key):
            self.done += 1
            return ("this commit has its review",)
        self._check_staleness()
        diff, seal = parse(self.services.forge.diff(action.number).text), self._seal(action.number)
        anchored = [comment for comment in action.comments if _anchored(comment, diff)]
        comments = tuple(self.rules.inline(_without_bad_suggestion(comment), seal) for comment in anchored)
        lost = len(action.comments) - len(comments)
        notes = (f"{lost} comments without a line",) if lost else ()
        if not comments:
            return notes
        body = self.rules.marked(action.body, "review", action.commit_id, seal)
        github_id = self._own_review(action)
        if github_id is None:
            self.before_write()
            try:
                github_id = self.writer.create_review(action.number, action.commit_id, body, comments)
            except ForgeError:
                self._check_staleness()  # A push since then: its lines or its commit are gone.
                raise
        self._register(key, action, action.number, github_id, body)
        return notes

    def _own_review(self, action: actions.SubmitReview) -> int | None:
        """Return the id of our review of this commit; None if there is none."""
        pull = self._fresh
        if isinstance(pull, PullRequest) and pull.number == action.number and pull.review_comments == 0:
            # A review of ours always has a comment on a line.
            return None
        reviews = self.services.forge.reviews(action.number)
        return self._own_post(reviews, action.number, ("review", action.commit_id))

    def _check(self, action: actions.SetCheck) -> tuple[str, ...]:
        key = f"check:{self.services.forge.repository}@{action.head_sha}:{action.name}"
        texts = (
            self.rules.title(action.title),
            self.rules.text(action.summary, MAX_CHECK),
            self.rules.text(action.text, MAX_CHECK),
        )
        content = "\0".join((action.conclusion, *texts))
        posting = self.postings.find(key)
        if posting and posting.content_hash == content_hash(content):
            self.done += 1
            return ()
        if not self.done:
            # After a review the check is due, whatever was pushed since: it belongs to its commit.
            self._check_staleness()
        github_id = posting.github_id if posting else None
        if not posting and not self.publisher.first_try:
            runs = self.services.forge.check_runs(action.head_sha, action.name)
            github_id = runs[0].id if runs else None
        self.before_write()
        if github_id is not None:
            try:
                self.writer.edit_check(github_id, action.conclusion, *texts)
            except NotFound:
                github_id = None
        if github_id is None:
            github_id = self.writer.create_check(action.name, action.head_sha, self.job, action.conclusion, *texts)
        self._register(key, action, self.decision.subject.number, github_id, content)
        return ()

    def _draft(self, action: actions.OpenDraftPull) -> tuple[str, ...]:
        problem = _bad_draft(action, self.decision.kind)
        if self.rules.leaks(action.content):
            problem = "the draft holds a secret of the operator's"
        if problem:
            return (problem,)
        key = f"pull:{self.services.forge.repository}:{action.branch}"
        if self.postings.find(key):
            self.done += 1
            return ("its pull request was opened before",)
        self._check_staleness()
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
        return ()

    def _register(self, key: str, action: actions.Action, number: int, github_id: int, content: str) -> None:
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

    def _check_staleness(self) -> None:
        """Read the subject again. Raises Moved if it changed since the decision."""
        subject = self.decision.subject
        if not router.feature_named(self.decision.kind).checks_staleness or not subject.number:
            return
        if subject.revision.startswith("sha:"):
            self._fresh = self.services.forge.pull_request(subject.number)
        elif subject.revision.startswith("text:"):
            self._fresh = self.services.forge.issue(subject.number)
        if self._fresh is None:
            return
        is_over = self._fresh.state == "closed" or self._fresh.locked
        if self._fresh.revision != subject.revision or (self.decision.only_open and is_over):
            raise Moved


def _anchored(comment: actions.InlineComment, diff: Diff) -> bool:
    """Return True if GitHub accepts a comment there: on lines of one hunk, on their own side."""
    first = comment.line if comment.start_line is None else comment.start_line
    if first > comment.line:
        return False
    return any(
        {first, comment.line} <= {line.number(comment.side) for line in hunk.lines}
        for file in diff.named(comment.path)
        for hunk in file.hunks
    )


#: Lines by which a suggestion may be longer than what it replaces: more is not read before it is applied.
MAX_GROWTH = 3


def _without_bad_suggestion(comment: actions.InlineComment) -> actions.InlineComment:
    """Return the comment, without a suggestion that may not be applied with one click."""
    if comment.suggestion is None:
        return comment
    replaced_lines = comment.line - (comment.start_line or comment.line) + 1
    growth = comment.suggestion.count("\n") + 1 - replaced_lines
    if growth <= MAX_GROWTH and not protection(comment.path):
        return comment
    return comment.model_copy(update={"suggestion": None})


def _bad_draft(action: actions.OpenDraftPull, task: actions.Task) -> str:
    """Return the reason to refuse a drafted test; empty if there is none."""
    if not action.branch.startswith("bouncer/"):
        return "a draft's branch must start with bouncer/"
    is_configuration = task == "config" and action.path == PATH
    if not is_configuration and (problem := protection(action.path)):
        return f"a draft cannot be written there: {problem}"
    if len(action.content) > MAX_TEST:
        return "the draft is too large"
    return ""


def content_hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
