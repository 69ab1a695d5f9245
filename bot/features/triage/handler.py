"""Input bouncer: is this issue specified well enough to act on?

An issue is judged when it is opened, reopened or edited, when its author answers a bounce, and on
``/bouncer recheck``. A bounced issue gets one sticky comment and a label. When it becomes clear, the label is
removed and the comment shrinks to a line. A clear issue gets nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

from bot.core import events
from bot.core.actions import Action, Decision, React, SetLabels, UpsertComment
from bot.core.commands import Command, parse
from bot.core.config import TriageConfig
from bot.core.errors import NotFound
from bot.core.events import Event
from bot.core.subjects import INSIDERS, Comment, Issue, Repository, may_triage
from bot.core.text import folded, without_middle
from bot.features.services import Services
from bot.features.shared import history, investigation
from bot.features.shared.history import posted_suggestion, skip_reason, with_suggestion
from bot.features.shared.investigation import Notes
from bot.features.shared.labels import MAX_BODY, model_reply
from bot.features.shared.rights import asked_for, is_paused
from bot.features.triage import claims, judgement, texts
from bot.features.triage.judgement import EarlierQuestions, InputVerdict
from bot.features.triage.record import Claim, TriageRecord
from bot.models.protocol import Prompt, Templates, usage_added

IssueEvent = events.IssueShown | events.IssueLabeled | events.RecheckRequested
CommentEvent = events.CommentCreated | events.CommentEdited
Trigger = IssueEvent | CommentEvent

#: Files of the code that a record names, and earlier issues among which examples are searched.
MAX_FILES, MAX_SIMILAR = 10, 25
#: Characters of the answers to an issue in one prompt.
MAX_ANSWERS = 20_000


def concerns(event: Trigger, commands: Sequence[Command]) -> bool:
    """Return True if the event may need a verdict: a new text, an answer of the author, or a recheck."""
    if event.issue.is_pull_request:
        return False
    if isinstance(event, events.IssueLabeled):
        return not event.sender.is_bot
    if isinstance(event, IssueEvent):
        return True
    if commands:
        return isinstance(event, events.CommentCreated) and any(command.word == "recheck" for command in commands)
    return event.by_author


def supersedes(newer: Event, older: Event) -> bool:
    """Return True if a verdict about the newer event covers the older one. All answers are read together."""
    if _is_answer(newer):
        return _is_answer(older)
    return isinstance(newer, events.IssueShown) and isinstance(older, events.IssueShown)


def _is_answer(event: Event) -> bool:
    if not isinstance(event, events.CommentCreated) or not event.by_author:
        return False
    # A mention may be of another account.
    return all(command.mention for command in parse(event.comment.body))


def handle(event: Trigger, services: Services) -> Decision | None:
    """Judge the issue of an event; None if the event asks for no verdict."""
    if services.config.triage.mode == "off":
        return None
    # We reopen an issue when its author answers, so that event is read too.
    if event.sender.id == services.forge.identity().id and not isinstance(event, events.IssueReopened):
        return None
    past = services.history.decisions(event.subject.key, "triage", "commands")
    if isinstance(event, events.IssueLabeled):
        return _judge(event, services, past) if _is_bounce_by_label(event, services, past) else None
    on_request = isinstance(event, events.RecheckRequested) or asked_for("recheck", event, services) is not None
    if not on_request and not _is_due(event, services, past):
        return None
    # Only maintainers can ask while the subject is paused.
    skip = skip_reason(event.issue, services.config.triage, past, despite_pause=on_request)
    if skip is None and not on_request:
        skip = _filter_reason(event.issue, services)
    if skip is not None:
        word, reason = skip
        return Decision(kind="triage", subject=event.subject, abstained=word, reason=reason)
    return _judge(event, services, past)


def _is_bounce_by_label(event: events.IssueLabeled, services: Services, past: Sequence[Decision]) -> bool:
    """Return True if a maintainer set the label. The issue then bounces; the model only writes the questions."""
    is_over = event.issue.state == "closed" or event.issue.locked
    if is_over or event.label.lower() != services.config.triage.label.lower():
        return False
    if is_paused(past) or (history.bounced(history.last_verdict(past)) and not history.accepted(past)):
        return False
    # An issue form sets labels in its author's name.
    return may_triage(services.forge.permission(event.sender.login))


def _is_due(event: Trigger, services: Services, past: Sequence[Decision]) -> bool:
    """Return True if the event changes something that a verdict rests on."""
    last = history.last_verdict(past)
    if isinstance(event, events.IssueEdited):
        return last is None or last.subject.revision != event.issue.revision
    if isinstance(event, CommentEvent):
        return not services.commands.read(event.comment.body) and history.bounced(last)
    return True


def _filter_reason(issue: Issue, services: Services) -> tuple[str, str] | None:
    """Return why this issue is skipped unless a recheck was requested."""
    config = services.config.triage
    if config.authors == "external" and issue.author_association in INSIDERS:
        return "skipped:insider", f"{issue.author.login} belongs to the project (triage.authors: external)"
    kind = judgement.kind(issue)
    if kind in config.ignore_kinds:
        return f"skipped:{kind}", f"triage.ignore_kinds names it: {kind}"
    return None


def _judge(event: Trigger, services: Services, past: Sequence[Decision]) -> Decision:
    issue, config = event.issue, services.config.triage
    # A new issue has comments if the event was read late, or if it was transferred.
    is_new = isinstance(event, events.IssueOpened) and not issue.comments
    answers = () if is_new else _answers(issue, services)
    records = history.triage_records(past)
    questions = tuple(dict.fromkeys(question for record in records for question in record.questions))
    # A question is not repeated once the author has commented after it. An edit answers only the questions that
    # the model does not ask again.
    author_replies = {answer.id for answer in answers if answer.author.id == issue.author.id}
    answered_questions = frozenset(
        question for record in records if author_replies - set(record.answers) for question in record.questions
    )
    examples, key = _examples(issue, services), event.subject.key
    ask = partial(question, services.prompts, config, issue, answers, questions, examples, subject=key)
    prompt, notes, code_values = _look_at_code(ask, event, services)
    with usage_added(notes.usage):
        reply = services.model.complete(prompt, judgement.reply_schema(config))
    marked_by = event.sender.login if isinstance(event, events.IssueLabeled) else ""
    verdict = judgement.verdict(reply.value, config, answered_questions, marked_by)
    reason = "not specified well enough" if verdict.bounced else "specified well enough"
    if marked_by:
        reason = f"{marked_by} asked for details"
    return Decision(
        kind="triage",
        subject=event.subject,
        verdict=verdict.label,
        actions=(
            *_reaction(event, services),
            *_actions(verdict, issue, services, reply.model, past, again=bool(answered_questions)),
        ),
        reason=reason,
        record=TriageRecord(
            **{name: value for name, value in verdict if name not in ("marked_by", "request") or value},
            **dict(model_reply(reply, prompt.hash, notes.looks, notes.text)),
            **code_values,
            prompt=services.prompts.hash(f"triage.{config.prompt}"),
            config=services.config.hash,
            harm=config.harm,
            answers=tuple(comment.id for comment in answers),
            **_closing_values(event, services),
        ),
        again_days=config.warn_after_days if verdict.bounced and config.mode == "comment" else None,
        only_open=True,
        usage=notes.usage + reply.usage,
        model=reply.model,
    )


def question(
    prompts: Templates,
    config: TriageConfig,
    issue: Issue,
    answers: Sequence[Comment] = (),
    earlier_questions: Sequence[str] = (),
    examples: Sequence[EarlierQuestions] = (),
    absent: Sequence[Claim] = (),
    *,
    subject: str = "",
) -> Prompt:
    """Return the prompt about an issue, with the comments and questions that followed it.

    ``absent`` is what it names and the code does not have.
    """
    name = config.prompt
    system, user = prompts.render(
        f"triage.{name}",
        language=config.language,
        kind=judgement.kind_in_prompt(issue),
        title=issue.title,
        # The paper asks about the unchanged text.
        body=(without_middle if name == "paper" else folded)(issue.body, MAX_BODY),
        answers=_newest(answers, MAX_ANSWERS),
        asked=tuple(earlier_questions),
        examples=examples,
        absent=[claim.sentence for claim in absent],
    )
    return Prompt(purpose="triage", system=system, user=user, subject=subject)


def _newest(answers: Sequence[Comment], limit: int) -> tuple[Comment, ...]:
    """Return the newest answers that fit into ``limit`` characters, oldest first, and always the newest one."""
    newest: list[Comment] = []
    for answer in reversed(answers):
        limit -= len(answer.body)
        if limit < 0 and newest:
            break
        newest.append(answer.model_copy(update={"body": without_middle(answer.body, MAX_ANSWERS)}))
    return tuple(reversed(newest))


def _closing_values(event: Trigger, services: Services) -> dict[str, Any]:
    """Return the values of the record that decide if an unanswered issue is closed."""
    if services.config.triage.close_after_days is None:
        return {}
    author_and_app = (event.issue.author.id, services.forge.identity().id)
    reopened = isinstance(event, events.IssueReopened) and event.sender.id not in author_and_app
    return {"at": services.clock().timestamp(), "reopened": reopened}


def _look_at_code(
    ask: Callable[[Sequence[Claim]], Prompt], event: Trigger, services: Services
) -> tuple[Prompt, Notes, dict[str, Any]]:
    """Look up what the issue names, and let the model look, if ``triage.investigate`` is set.

    Return the question with what the code says, the notes, and fields of the record.
    """
    if not services.config.triage.investigate:
        return ask(()), Notes(), {}
    try:
        ref = services.forge.head(services.repository.default_branch)
    except NotFound:
        # The repository has no code yet, or its default branch was renamed since the event.
        return ask(()), Notes(), {}
    text = f"{event.issue.title}\n\n{event.issue.body}"
    with TemporaryDirectory(prefix="bouncer-look-") as folder:
        code = investigation.CommitCode(services.forge, ref, folder)
        absent: tuple[Claim, ...] = ()
        # The paper asks about the text alone.
        if services.config.triage.prompt != "paper" and claims.names_code(text):
            absent = claims.absent(text, services.repository.name, code.tree, services.forge.tags)
        prompt = ask(absent)
        notes = investigation.look_around(services.model, services.prompts, prompt, code)
        reads = [look.target for look in notes.looks if look.action == "read"]
        files = claims.files_in((*reads, notes.text), code.tree)[:MAX_FILES] if notes.looks else ()
    values = {"sha": ref, "absent": absent, "files": files} if absent or files else {}
    return investigation.informed(services.prompts, prompt, notes), notes, values


def _examples(issue: Issue, services: Services) -> tuple[EarlierQuestions, ...]:
    """Return what maintainers asked on the nearest closed issues; empty without an index."""
    config = services.config.triage
    # The paper asks about the text alone.
    if not config.examples or config.prompt == "paper":
        return ()
    similar = services.issue_index.similar(services.repository.full_name, issue, MAX_SIMILAR) or ()
    closed = (earlier for earlier in similar if earlier.state == "closed" and earlier.questions)
    return tuple(
        EarlierQuestions(title=earlier.title, questions=earlier.questions)
        for earlier in islice(closed, config.examples)
    )


def _answers(issue: Issue, services: Services) -> tuple[Comment, ...]:
    """Return the comments of people on the issue, without commands."""
    return tuple(
        comment
        for comment in services.forge.comments(issue.number)
        if not comment.author.is_bot and comment.body.strip() and not services.commands.read(comment.body)
    )


def _reaction(event: Trigger, services: Services) -> tuple[Action, ...]:
    """Return the reaction that tells an author that an answer was read."""
    if services.config.triage.mode != "comment" or not isinstance(event, events.CommentCreated):
        return ()
    if services.commands.read(event.comment.body):
        return ()
    return (React(comment_id=event.comment.id, content="eyes"),)


def _actions(
    verdict: InputVerdict, issue: Issue, services: Services, model: str, past: Sequence[Decision], *, again: bool
) -> tuple[Action, ...]:
    config, number = services.config.triage, issue.number
    accepted = (config.accepted_label,) if config.accepted_label else ()
    standing = history.standing_labels(past)
    if verdict.bounced:
        labels = SetLabels(number=number, add=(config.label,), remove=(*accepted, *(standing or ())))
        if config.mode == "label":
            return (labels,)
        about = services.about_url or app_page(services.repository, services.forge.identity().login)
        day = services.clock().date()
        paused = is_paused(past)
        body = texts.bounce(verdict, model, day, services.repository, about, again=again, paused=paused)
        body = with_suggestion(body, posted_suggestion(issue.number, services))
        return (UpsertComment(task="triage", number=number, body=body), labels)
    was_bounced = standing is not None
    actions: list[Action] = []
    if was_bounced:
        body = with_suggestion(texts.CLEARED, posted_suggestion(issue.number, services))
        actions.append(UpsertComment(task="triage", number=number, body=body, only_edit=True))
    if was_bounced or accepted:
        remove = tuple(dict.fromkeys((config.label, *standing))) if standing is not None else ()
        actions.append(SetLabels(number=number, add=accepted, remove=remove))
    return tuple(actions)


def app_page(repository: Repository, login: str) -> str:
    """Return the App's page on the repository's host; empty if the host is unknown."""
    site = urlsplit(repository.html_url)
    return f"{site.scheme}://{site.netloc}/apps/{login.removesuffix('[bot]')}" if site.netloc else ""
