"""One function per action: write it to GitHub, unless it stands there already.

Each returns notes. A note without a write means that our own rules refused the action.
"""

from __future__ import annotations

from bot.code.change.diff import Diff, parse
from bot.core.actions import (
    Action,
    InlineComment,
    Minimize,
    OpenDraftPull,
    React,
    SetCheck,
    SetDraft,
    SetIssueState,
    SetLabels,
    SubmitReview,
    Task,
    UpsertComment,
)
from bot.core.config import PATH
from bot.core.errors import ForgeError, NotFound
from bot.core.subjects import Issue, PullRequest
from bot.pipeline.body import MAX_CHECK, Rules
from bot.pipeline.protected_paths import protection
from bot.pipeline.store.decisions import Posting, content_hash
from bot.pipeline.write_context import Moved, Unwanted, WriteContext, unpaced

#: Why nothing is written if a comment of a shared account stands already.
NOT_EDITED = (
    "a comment with this marker stands and was not edited: without BOUNCER_MARKER_KEY another workflow of the "
    "same account could have written it"
)
#: A drafted test, characters.
MAX_TEST = 200_000
#: Conclusions of our checks, from the one that hinders a merge least to the one that hinders it most.
_WORST_LAST = ("skipped", "success", "neutral", "failure")

Notes = tuple[str, ...]


def carry_out(action: Action, context: WriteContext) -> Notes:
    match action:
        case UpsertComment():
            return _upsert_comment(action, context)
        case SetLabels():
            return _set_labels(action, context)
        case SetIssueState():
            return _set_issue_state(action, context)
        case SetDraft():
            return _set_draft(action, context)
        case SubmitReview():
            return _submit_review(action, context)
        case SetCheck():
            return _set_check(action, context)
        case OpenDraftPull():
            return _open_draft_pull(action, context)
        case React():
            return _react(action, context)
        case Minimize():
            return _minimize(action, context)


def _upsert_comment(action: UpsertComment, context: WriteContext) -> Notes:
    """Create or edit our comment of a task, or answer once in a thread of a review."""
    about = f":{action.about}" if action.about else ""
    key = f"comment:{context.repository}#{action.number}:{action.task}{about}"
    body = context.rules.marked(action.body, action.task, action.about, context.seal(action.number))
    posting = context.postings.find(key)
    is_written = posting is not None and posting.content_hash == content_hash(body)
    if posting and is_written and (posting.job == context.job or not context.publisher.on_request):
        context.done += 1
        return ()
    context.check_staleness()
    if action.thread is None and posting and _edit(posting, body, context):
        return ()
    github_id = _own_comment(action, context)
    if github_id is None and action.thread is None and action.only_edit:
        context.done += 1
        return ("no comment to edit",)
    if github_id is None and action.thread is None and posting and not context.publisher.on_request:
        raise Unwanted
    if github_id is not None and not context.publisher.may_edit:
        return (NOT_EDITED,)
    if github_id is None:
        context.before_write()
        if action.thread is None:
            github_id = context.writer.create_comment(action.number, body)
        else:
            github_id = context.writer.reply(action.number, action.thread, body)
    elif action.thread is None:
        # An existing reply in a thread is not edited.
        context.before_write()
        context.writer.edit_comment(github_id, body)
    context.register(key, action, action.number, github_id, body)
    return ()


def _edit(posting: Posting, body: str, context: WriteContext) -> bool:
    """Edit a comment that we posted before. Return False if it was deleted on GitHub."""
    context.before_write()
    try:
        context.writer.edit_comment(posting.github_id, body)
    except NotFound:
        # It stays in the register: a deleted comment is not written again. The next write is this attempt's.
        context.before_write = unpaced
        return False
    context.postings.put(posting.model_copy(update={"content_hash": content_hash(body), "job": context.job}))
    context.done += 1
    return True


def _own_comment(action: UpsertComment, context: WriteContext) -> int | None:
    """Return the id of the comment to edit; None if there is none."""
    issue, forge = context.fresh, context.services.forge
    if isinstance(issue, Issue) and issue.number == action.number and issue.comments == 0:
        return None
    comments = forge.comments(action.number) if action.thread is None else forge.review_comments(action.number)
    return context.own_post(comments, action.number, (action.task, action.about))


def _react(action: React, context: WriteContext) -> Notes:
    # Not paced: it creates no content and can be repeated.
    notes: Notes = ()
    try:
        context.writer.react(action.comment_id, action.content, review=action.on == "review")
    except NotFound as error:
        # Deleted meanwhile: what it asked for counts all the same.
        notes = (f"a comment got no reaction: {error}",)
    context.done += 1
    return notes


def _minimize(action: Minimize, context: WriteContext) -> Notes:
    # Not paced: it creates no content and can be repeated.
    try:
        context.writer.minimize(action.node_id, action.why)
    except ForgeError as error:
        # Deleted meanwhile, or an older server: the finding's fate does not depend on it.
        return (f"a comment was not minimized: {error}",)
    context.done += 1
    return ()


def _set_labels(action: SetLabels, context: WriteContext) -> Notes:
    allowed = context.services.config.labels
    # A label that we set here before the file named another one.
    removable = allowed | _labels_set(action.number, context)
    add = tuple(label for label in action.add if label in allowed)
    remove = tuple(label for label in action.remove if label in removable and label not in add)
    wrong = [label for label in (*action.add, *action.remove) if label not in removable]
    notes = tuple(f"label {label!r} is not one of ours" for label in wrong)
    if not add and not remove:
        return notes
    context.check_staleness()
    current = {label.lower(): label for label in context.issue(action.number).labels}
    missing = tuple(label for label in add if label.lower() not in current)
    if missing:
        context.before_write()
        context.writer.add_labels(action.number, missing)
    for label in remove:
        if label.lower() in current:
            context.before_write()
            context.writer.remove_label(action.number, current[label.lower()])
    context.done += 1
    return notes


def _labels_set(number: int, context: WriteContext) -> set[str]:
    """Return the labels that earlier decisions set on an issue."""
    past = context.services.history.decisions(f"{context.repository}#{number}", "triage")
    labels = (action for decision in past for action in decision.actions if isinstance(action, SetLabels))
    return {label for action in labels for label in action.add}


def _set_issue_state(action: SetIssueState, context: WriteContext) -> Notes:
    context.check_staleness()
    issue = context.issue(action.number)
    if action.state == "closed" and action.comments not in (None, issue.comments):
        # A comment was added since the decision.
        raise Moved
    if issue.state != action.state:
        context.before_write()
        context.writer.set_issue_state(action.number, action.state)
    context.done += 1
    return ()


def _set_draft(action: SetDraft, context: WriteContext) -> Notes:
    pull = context.services.forge.pull_request(action.number)
    if pull.state == "open" and pull.draft != action.draft:
        if action.draft and context.services.config.gate.mode != "draft":
            raise Moved  # The comment after it would say that it was done.
        context.before_write()
        context.writer.set_draft(action.node_id, action.draft)
    context.done += 1
    return ()


def _submit_review(action: SubmitReview, context: WriteContext) -> Notes:
    key = f"review:{context.repository}#{action.number}:{action.identity}"
    if context.postings.find(key):
        context.done += 1
        return ("this commit has its review",)
    context.check_staleness()
    diff, seal = parse(context.services.forge.diff(action.number).text), context.seal(action.number)
    anchored = [comment for comment in action.comments if _is_anchored(comment, diff)]
    comments = tuple(context.rules.inline(comment, seal) for comment in anchored)
    lost = len(action.comments) - len(comments)
    notes = (f"{lost} comments without a line",) if lost else ()
    if not comments:
        return notes
    body = context.rules.marked(action.body, "review", action.identity, seal)
    github_id = _own_review(action, context)
    if github_id is None:
        context.before_write()
        try:
            github_id = context.writer.create_review(action.number, action.commit_id, body, comments)
        except ForgeError:
            context.check_staleness()  # A push since then: its lines or its commit are gone.
            raise
    context.register(key, action, action.number, github_id, body)
    return notes


def _own_review(action: SubmitReview, context: WriteContext) -> int | None:
    """Return the id of this review of ours; None if there is none."""
    pull = context.fresh
    if isinstance(pull, PullRequest) and pull.number == action.number and pull.review_comments == 0:
        # A review of ours always has a comment on a line.
        return None
    reviews = context.services.forge.reviews(action.number)
    return context.own_post(reviews, action.number, ("review", action.identity))


def _is_anchored(comment: InlineComment, diff: Diff) -> bool:
    """Return True if GitHub accepts a comment there: on lines of one hunk, on their own side."""
    first = comment.line if comment.start_line is None else comment.start_line
    if first > comment.line:
        return False
    return any(
        {first, comment.line} <= {line.number(comment.side) for line in hunk.lines}
        for file in diff.named(comment.path)
        for hunk in file.hunks
    )


def _set_check(action: SetCheck, context: WriteContext) -> Notes:
    key = f"check:{context.repository}@{action.head_sha}:{action.name}"
    texts = (
        context.rules.title(action.title),
        context.rules.text(action.summary, MAX_CHECK),
        context.rules.text(action.text, MAX_CHECK),
    )
    content = "\0".join((action.conclusion, *texts))
    posting = context.postings.find(key)
    is_written = posting is not None and posting.content_hash == content_hash(content)
    # After "Re-run" GitHub shows the check as queued until it is written again.
    if posting and is_written and (posting.job == context.job or not context.publisher.on_request):
        context.done += 1
        return ()
    if not context.done:
        # After a review the check is due, whatever was pushed since: it belongs to its commit.
        context.check_staleness()
    if posting and _is_worse_elsewhere(posting, action, context):
        context.done += 1
        return (f"the check is about #{posting.number}, which has the same head",)
    github_id = posting.github_id if posting else None
    if not posting and not context.publisher.first_try:
        runs = context.services.forge.check_runs(action.head_sha, action.name)
        github_id = runs[0].id if runs else None
    context.before_write()
    writer = context.writer
    if github_id is not None:
        try:
            writer.edit_check(github_id, action.conclusion, *texts)
        except NotFound:
            github_id = None
    if github_id is None:
        github_id = writer.create_check(action.name, action.head_sha, context.job, action.conclusion, *texts)
    context.register(key, action, context.decision.subject.number, github_id, content)
    return ()


def _is_worse_elsewhere(posting: Posting, action: SetCheck, context: WriteContext) -> bool:
    """Return True if the check says something worse about another open pull request with the same head.

    All of them show the one check of that name, and it may be required for a merge.
    """
    forge = context.services.forge
    if posting.number in (0, context.decision.subject.number):
        return False
    other = forge.pull_request(posting.number)
    if other.state == "closed" or other.head_sha != action.head_sha:
        return False
    runs = (run for run in forge.check_runs(action.head_sha, action.name) if run.id == posting.github_id)
    worse = _WORST_LAST[_WORST_LAST.index(action.conclusion) + 1 :]
    return any(run.conclusion in worse for run in runs)


def _open_draft_pull(action: OpenDraftPull, context: WriteContext) -> Notes:
    task, rules, writer = context.decision.kind, context.rules, context.writer
    if problem := _bad_draft(action, task, rules):
        return (problem,)
    key = f"pull:{context.repository}:{action.branch}"
    if context.postings.find(key):
        context.done += 1
        return ("its pull request was opened before",)
    context.check_staleness()
    github_id = writer.find_pull(action.branch)
    if github_id is None:
        # One write of the pace for all three: a branch and a file send no notifications.
        context.before_write()
        title = rules.title(action.title)
        writer.create_branch(action.branch, action.base_sha)
        # A model wrote it: the repository's own CI, with its secrets, waits until a person has read it.
        writer.put_file(action.branch, action.path, action.content, f"{title}\n\n[skip ci]")
        body = rules.marked(action.body, task)
        github_id = writer.create_draft_pull(action.branch, action.base, title, body)
    context.register(key, action, action.number, github_id, action.content)
    return ()


def _bad_draft(action: OpenDraftPull, task: Task, rules: Rules) -> str:
    """Return the reason to refuse a drafted test; empty if there is none."""
    if rules.leaks(action.content):
        return "the draft holds a secret of the operator's"
    if not action.branch.startswith("bouncer/"):
        return "a draft's branch must start with bouncer/"
    is_configuration = task == "config" and action.path == PATH
    if not is_configuration and (problem := protection(action.path)):
        return f"a draft cannot be written there: {problem}"
    if len(action.content) > MAX_TEST:
        return "the draft is too large"
    return ""
