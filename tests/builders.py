"""Values of the domain with defaults: people, issues, pull requests, comments, events, snapshots, findings.

Every builder takes the fields of what it builds; a test names those that matter to it.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any, TypeVar

from bot.core import events
from bot.core.subjects import Actor, Comment, Issue, PullRequest, Repository
from bot.features.shared.findings import Category, Finding, Impact, Severity
from bot.github.offline import Snapshot

ANN = Actor(id=11, login="ann")  # the author of issues and pull requests
BOB = Actor(id=12, login="bob")  # a stranger
MIA = Actor(id=13, login="mia")  # a maintainer
HELPER = Actor(id=14, login="helper[bot]", is_bot=True)
BOUNCER = Actor(id=1, login="bouncer[bot]", is_bot=True)
REPOSITORY = Repository(
    id=7, owner="acme", name="rocket", default_branch="main", html_url="https://ghe.example/acme/rocket"
)
HEAD, BASE = "a" * 40, "b" * 40

#: A file of a checkout: without the plugins that are installed for our own tests, pytest starts much faster.
NO_PLUGINS = {"pytest.ini": b"[pytest]\naddopts = --disable-plugin-autoload\n"}

AnyEvent = TypeVar("AnyEvent", bound=events.Event)


def issue(**values: Any) -> Issue:
    return Issue(**{"number": 5, "title": "Reading fails", "body": "It broke.", "author": ANN, **values})


def pull(**values: Any) -> PullRequest:
    repository = {"head_repository": REPOSITORY.full_name, "base_repository": REPOSITORY.full_name}
    return PullRequest(
        **{"number": 20, "title": "Read files", "author": ANN, "head_sha": HEAD, **repository, **values}
    )


def event(event_type: type[AnyEvent], about: Issue | PullRequest, by: Actor = ANN, **values: Any) -> AnyEvent:
    """Build an event about an issue or a pull request."""
    subject = {"issue" if isinstance(about, Issue) else "pull_request": about}
    return event_type(**{"sender": by, "repository": REPOSITORY, **subject, **values})


def issue_opened(**values: Any) -> events.IssueOpened:
    return event(events.IssueOpened, issue(**values))


def pull_opened(**values: Any) -> events.PullRequestOpened:
    return event(events.PullRequestOpened, pull(**values))


def pull_pushed(**values: Any) -> events.PullRequestSynchronized:
    return event(events.PullRequestSynchronized, pull(**values))


def comment_created(body: str, by: Actor = ANN, about: Issue | None = None) -> events.CommentCreated:
    comment = Comment(id=900, body=body, author=by)
    return event(events.CommentCreated, about or issue(), by, comment=comment)


def comment_on_pull(body: str, by: Actor = MIA) -> events.CommentCreated:
    """Build the event of a comment in the conversation of the default pull request."""
    return comment_created(body, by, issue(number=20, title="Read files", is_pull_request=True))


def snapshot(**values: Any) -> Snapshot:
    rights = {"ann": "read", "bob": "read", "mia": "write"}
    return Snapshot(**{"repository": REPOSITORY.full_name, "identity": BOUNCER, "permissions": rights, **values})


def diff_of(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """Build the unified diff of the files in ``after``; one whose text is empty is deleted."""
    text = ""
    for path in sorted(after):
        old, new = before.get(path, "").splitlines(True), after[path].splitlines(True)
        names = f"a/{path}" if old else "/dev/null", f"b/{path}" if new else "/dev/null"
        text += "".join(difflib.unified_diff(old, new, *names))
    return text


def finding(**values: Any) -> dict[str, Any]:
    """Build a finding as a model reports it, about the diff of tests/bot/features/reviews.py."""
    return {
        "path": "src/app.py",
        "quote": "return data.value",
        "line": 12,
        "symbol": "data",
        "comment": "Fails for an empty file. `parse` returns None then.",
        "category": "data",
        "impact": "reliability",
        "severity": "high",
        "suggestion": None,
        **values,
    }


def placed_finding(**values: Any) -> Finding:
    """Build a finding whose quote is in a diff."""
    fields = {"path": "a.py", "line": 3, "code": ("x = 1",), "fingerprint": "f1", "comment": "It breaks."}
    kinds = {"category": Category.CODING, "impact": Impact.FUNCTIONAL_SUITABILITY, "severity": Severity.HIGH}
    return Finding(**{**fields, **kinds, **values})
