"""Events: one frozen class for each thing that can happen, and their stored form."""

from __future__ import annotations

import hashlib
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, TypeAdapter

from bot.core.actions import Task
from bot.core.frozen import Frozen
from bot.core.subjects import Actor, Comment, Issue, PullRequest, Repository, ReviewComment, Subject


class _Event(Frozen):
    """Fields of every event."""

    installation: int | None = Field(
        None, description="id of the app's installation; None in a bare test delivery"
    )
    sender: Actor


class _InRepository(_Event):
    repository: Repository

    @property
    def about(self) -> Issue | PullRequest | None:
        """The issue or pull request of the event; None if it has neither."""
        return None

    @property
    def number(self) -> int:
        """The issue's or pull request's number; 0 if the event is about neither."""
        return self.about.number if self.about else 0

    @property
    def revision(self) -> str:
        """The revision of its subject; empty if that does not matter."""
        return self.about.revision if self.about else ""

    @property
    def subject(self) -> Subject:
        return Subject(repository=self.repository.full_name, number=self.number, revision=self.revision)

    @property
    def by_author(self) -> bool:
        """Return True if the author of the issue or pull request caused the event."""
        return self.about is not None and self.sender.id == self.about.author.id


class _OnIssue(_InRepository):
    issue: Issue

    @property
    def about(self) -> Issue:
        return self.issue


class _OnPullRequest(_InRepository):
    pull_request: PullRequest

    @property
    def about(self) -> PullRequest:
        return self.pull_request


class _OnCommit(_InRepository):
    head_sha: str

    @property
    def revision(self) -> str:
        return f"sha:{self.head_sha}"


class IssueOpened(_OnIssue):
    kind: Literal["issue_opened"] = "issue_opened"


class IssueEdited(_OnIssue):
    """Title or body changed; other edits are no event."""

    kind: Literal["issue_edited"] = "issue_edited"


class IssueReopened(_OnIssue):
    kind: Literal["issue_reopened"] = "issue_reopened"


class IssueLabeled(_OnIssue):
    kind: Literal["issue_labeled"] = "issue_labeled"
    label: str


class IssueUnlabeled(_OnIssue):
    kind: Literal["issue_unlabeled"] = "issue_unlabeled"
    label: str


class IssuePlanned(_OnIssue):
    """Its assignees or its milestone changed."""

    kind: Literal["issue_planned"] = "issue_planned"


class IssueClosed(_OnIssue):
    kind: Literal["issue_closed"] = "issue_closed"


class IssueRemoved(_OnIssue):
    """It was deleted, or transferred to another repository; ``issue`` is as it stood before."""

    kind: Literal["issue_removed"] = "issue_removed"


class IssueUnanswered(_OnIssue):
    """Time has passed since a decision about an issue. It comes from that decision, not from a delivery."""

    kind: Literal["issue_unanswered"] = "issue_unanswered"
    since: float = Field(description="``at`` of that decision; ``issue`` is as it stood then")
    days: float = Field(description="how many days later it happens")
    task: Task = Field("triage", description="the feature that made that decision")


class CommentCreated(_OnIssue):
    """A comment in the conversation of an issue or (``issue.is_pull_request``) a pull request."""

    kind: Literal["comment_created"] = "comment_created"
    comment: Comment


class CommentEdited(_OnIssue):
    kind: Literal["comment_edited"] = "comment_edited"
    comment: Comment


class CommentDeleted(_OnIssue):
    kind: Literal["comment_deleted"] = "comment_deleted"
    comment: Comment


class PullRequestOpened(_OnPullRequest):
    kind: Literal["pull_request_opened"] = "pull_request_opened"


class PullRequestSynchronized(_OnPullRequest):
    """New commits were pushed to the head."""

    kind: Literal["pull_request_synchronized"] = "pull_request_synchronized"


class PullRequestReopened(_OnPullRequest):
    kind: Literal["pull_request_reopened"] = "pull_request_reopened"


class PullRequestReadied(_OnPullRequest):
    """A draft was marked as ready for review."""

    kind: Literal["pull_request_readied"] = "pull_request_readied"


class PullRequestEdited(_OnPullRequest):
    """Title, body or base branch changed; other edits are no event."""

    kind: Literal["pull_request_edited"] = "pull_request_edited"


class PullRequestClosed(_OnPullRequest):
    kind: Literal["pull_request_closed"] = "pull_request_closed"


class LinkedIssueChanged(_InRepository):
    """Something that the checks of a pull request depend on has changed.

    That is an issue which it links, another pull request for the same issue or with the same head, or bouncer.yml.
    It comes from a decision of ``task``, not from a delivery.
    """

    kind: Literal["linked_issue_changed"] = "linked_issue_changed"
    pull: int
    task: Task = "gate"

    @property
    def number(self) -> int:
        return self.pull


class ReviewCommentCreated(_OnPullRequest):
    """A comment on a line of the diff, or a reply in its thread."""

    kind: Literal["review_comment_created"] = "review_comment_created"
    comment: ReviewComment


class ReviewCommentEdited(_OnPullRequest):
    kind: Literal["review_comment_edited"] = "review_comment_edited"
    comment: ReviewComment


class ReviewCommentDeleted(_OnPullRequest):
    kind: Literal["review_comment_deleted"] = "review_comment_deleted"
    comment: ReviewComment


class ReviewThreadResolved(_OnPullRequest):
    kind: Literal["review_thread_resolved"] = "review_thread_resolved"
    comment_ids: tuple[int, ...]


class CheckRerequested(_OnCommit):
    """ "Re-run" was pressed on a check run of ours, or on the whole suite (``name`` is then empty).

    ``numbers`` is empty for pull requests from forks: the commit has to be mapped.
    """

    kind: Literal["check_rerequested"] = "check_rerequested"
    name: str = ""
    numbers: tuple[int, ...] = ()

    @property
    def number(self) -> int:
        return self.numbers[0] if self.numbers else 0


class RecheckRequested(_OnIssue):
    """An operator asked on the dashboard to have an issue or a pull request looked at again."""

    kind: Literal["recheck_requested"] = "recheck_requested"


class MergeGroupRequested(_OnCommit):
    """A merge queue made a commit of its own out of pull requests, and waits for checks on it."""

    kind: Literal["merge_group_requested"] = "merge_group_requested"


class BranchPushed(_InRepository):
    """The default branch has new commits; pushes to other branches are no event.

    It also tells workers that files read before it may be stale.
    """

    kind: Literal["branch_pushed"] = "branch_pushed"
    head_sha: str = ""
    may_change_config: bool = False

    @property
    def revision(self) -> str:
        return f"sha:{self.head_sha}"


class OnboardingRequested(_InRepository):
    """An operator asked on the dashboard for a pull request that adds ``bouncer.yml``."""

    kind: Literal["onboarding_requested"] = "onboarding_requested"
    config: str = Field(description="the text of the file")
    explanation: str = Field(description="for the pull request's description")

    @property
    def revision(self) -> str:
        return f"config:{hashlib.sha256(self.config.encode()).hexdigest()[:12]}"


class InstallationChanged(_Event):
    """The app was installed, removed, suspended, or its permissions were accepted."""

    kind: Literal["installation_changed"] = "installation_changed"
    action: str
    account: str
    repositories: tuple[str, ...] = ()


class InstallationRepositoriesChanged(_Event):
    kind: Literal["installation_repositories_changed"] = "installation_repositories_changed"
    account: str
    added: tuple[str, ...] = ()
    added_ids: tuple[int, ...] = ()
    removed: tuple[str, ...] = ()


class Renamed(_Event):
    """A repository was renamed or transferred, or an account was renamed."""

    kind: Literal["renamed"] = "renamed"
    old: str = Field(description="owner/name of a repository, or login of an account")
    new: str
    repository_id: int | None = None

    @property
    def account(self) -> str:
        """Return the new login of a renamed account; empty if only a repository was renamed."""
        return "" if "/" in self.new else self.new


class Pinged(_Event):
    """GitHub tries the webhook out."""

    kind: Literal["pinged"] = "pinged"


#: Events that show an issue, a head, or a pull request as it stands then.
IssueShown = IssueOpened | IssueEdited | IssueReopened
HeadShown = PullRequestOpened | PullRequestSynchronized | PullRequestReopened | PullRequestReadied
PullShown = HeadShown | PullRequestEdited

IssueEvent = (
    IssueShown | IssueLabeled | IssueUnlabeled | IssuePlanned | IssueClosed | IssueRemoved | IssueUnanswered
)
CommentEvent = CommentCreated | CommentEdited | CommentDeleted
PullRequestEvent = PullShown | PullRequestClosed
RepositoryEvent = (
    IssueEvent
    | CommentEvent
    | PullRequestEvent
    | ReviewCommentCreated
    | ReviewCommentEdited
    | ReviewCommentDeleted
    | ReviewThreadResolved
    | LinkedIssueChanged
    | CheckRerequested
    | RecheckRequested
    | MergeGroupRequested
    | BranchPushed
    | OnboardingRequested
)
Event = RepositoryEvent | InstallationChanged | InstallationRepositoriesChanged | Renamed | Pinged

# The union does not have the configuration of its members.
_EVENT: TypeAdapter[Event] = TypeAdapter(
    Annotated[Event, Field(discriminator="kind")], config=ConfigDict(cache_strings="keys")
)


def from_json(text: str | bytes) -> Event:
    return _EVENT.validate_json(text)
