"""``bouncer backlog``: all open issues of a repository in one table: bounce or not, why, and what to ask."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from bot.cli.files import (
    EqualErrors,
    Judging,
    data_folder,
    decided,
    failure,
    model_options,
    print_json,
    rendered,
    show_card,
    write_text,
)
from bot.cli.remote import configured, reached, repository
from bot.core.actions import Usage
from bot.core.errors import ForgeError, OperatorError

if TYPE_CHECKING:
    from bot.app import Access
    from bot.core.actions import Decision
    from bot.core.config import RepoConfig
    from bot.core.subjects import Issue
    from bot.features.services import Services
    from bot.features.triage.record import TriageRecord
    from bot.pipeline.publisher import Publisher
    from bot.pipeline.store import Ledger
    from bot.settings import Settings

#: What a verdict's answer takes, tokens: for the estimate alone.
ANSWER_TOKENS = 400
#: Questions at a time.
WORKERS = 4


class BacklogIssue(NamedTuple):
    """An issue and what is made of it."""

    issue: Issue
    decision: Decision
    labelled: str = ""

    @property
    def record(self) -> TriageRecord:
        """What the verdict recorded; empty without a verdict."""
        from bot.features.triage.record import TriageRecord

        return self.decision.record if isinstance(self.decision.record, TriageRecord) else TriageRecord()

    @property
    def word(self) -> str:
        """Bounce, pass, or not judged."""
        if self.decision.verdict is None:
            return "not judged"
        return "bounce" if self.record.bounced else "pass"

    @property
    def why(self) -> str:
        return self.record.explanation or self.decision.reason

    @property
    def questions(self) -> tuple[str, ...]:
        return self.record.questions

    def as_object(self) -> dict[str, Any]:
        """As ``--json`` prints it."""
        return {
            "number": self.issue.number,
            "title": self.issue.title,
            "url": self.issue.html_url,
            "result": self.word,
            "label": self.decision.verdict,
            "p_bounce": self.record.p_bounce,
            "why": self.why,
            "questions": list(self.questions),
            "labelled": self.labelled,
        }


@click.command()
@click.argument("name", metavar="OWNER/REPO")
@click.option("--limit", type=click.IntRange(1, 1000), default=100, show_default=True, help="Newest issues first.")
@click.option("--apply", "applied", type=click.Choice(["labels"]), help="Label what bounces; no comment.")
@click.option("--out", metavar="FILE.html", help="Write the table as a page too.")
@click.option("--max-cost", type=click.FloatRange(min=0), metavar="USD", help="What the model may cost.")
@click.option("--yes", is_flag=True, help="Do not ask before the model is paid for.")
@model_options
def command(
    name: str,
    limit: int,
    applied: str | None,
    out: str | None,
    max_cost: float | None,
    yes: bool,
    model: str | None,
    prompts: str | None,
    config: str | None,
    as_json: bool,
) -> int:
    """Judge the open issues of OWNER/REPO. Nothing is written there without --apply, and never a comment.

    Answers are kept below BOUNCER_DATA_DIR: the same command goes on where it stopped, and pays nothing twice.
    """
    from bot.pipeline.publisher import Publisher, Spaced

    judging = Judging(model, prompts, config, {"triage": {"mode": "label"}})
    settings = judging.settings()
    settings.check_model()
    name = repository(name, settings)
    with reached(settings, name) as access:
        config_here = configured(access.forge, access.forge.about(), judging)
        issues = access.forge.open_issues(limit)
        with _kept(settings, name) as ledger:
            services = _services(settings, access, config_here, ledger, name, max_cost)
            _agree(settings, services, issues, yes=yes)
            publisher = Publisher(ledger.postings, settings.secrets, Spaced()) if applied else None
            rows, refused = _rows(issues, services, access, publisher)
    if out:
        write_text(out, rendered("backlog.html.jinja", name=name, rows=rows, cost=_cost(rows)))
    if as_json:
        cost = sum((each.decision.usage for each in rows), Usage()).cost_usd
        print_json({"repository": name, "cost_usd": cost, "issues": [each.as_object() for each in rows]})
    else:
        show_card(_text(rows))
    if errors := [error for each in rows if (error := failure(each.decision))]:
        raise OperatorError(f"{name}: {len(errors)} of {len(rows)} issues could not be judged: {errors[0]}")
    if refused:
        raise OperatorError(f"{name}: labels were not set: {refused}. {access.by or 'This'} needs `issues: write`")
    return 0


@contextmanager
def _kept(settings: Settings, name: str) -> Iterator[Ledger]:
    """What was answered about this repository before, in a file below BOUNCER_DATA_DIR."""
    from bot.pipeline.store import Ledger, migrated

    file = data_folder(settings, "backlog") / f"{name.replace('/', '+')}.db"
    with migrated(f"sqlite:///{file}") as database:
        yield Ledger(database)


def _services(
    settings: Settings, access: Access, config: RepoConfig, ledger: Ledger, name: str, max_cost: float | None
) -> Services:
    from bot import app
    from bot.pipeline.store.calls import AskOnce

    model_id = settings.bouncer_model or ""
    model = app.build_models(settings).build(model_id, app.total_budget(max_cost), attempts=3)
    remembered = AskOnce(model, ledger.calls, f"backlog:{name}:{model_id}")
    return app.offline_services(settings, access.forge, config, remembered)


def _agree(settings: Settings, services: Services, issues: Sequence[Issue], *, yes: bool) -> None:
    """Say what it will cost, about, and ask whether that is meant."""
    cost = _estimate(settings, services, issues)
    told = "an unknown amount (no price is known for this model)" if cost is None else f"about {cost:.2f} USD"
    click.echo(f"{len(issues)} open issues, {settings.bouncer_model}: {told}.", err=True)
    if yes or not issues:
        return
    if not sys.stdin.isatty():
        raise OperatorError("nobody can be asked here whether to go on: add --yes, and --max-cost for a limit")
    click.confirm("Go on?", abort=True, err=True)


def _estimate(settings: Settings, services: Services, issues: Sequence[Issue]) -> float | None:
    """US dollars: a token for every four characters sent, a usual answer, one model call an issue."""
    from bot.features.triage.judgement import question
    from bot.models.budget import load_prices
    from bot.models.registry import leaves

    prices = load_prices(settings.bouncer_prices_file)
    known = [prices.of(each) for each in leaves(settings.bouncer_model or "")]
    total = 0.0
    for issue in issues:
        prompt = question(services.prompts, services.config.triage, issue)
        for price in known:
            if price is None:
                return None
            total += price.cost((len(prompt.system) + len(prompt.user)) // 4, ANSWER_TOKENS)
    return total


def _rows(
    issues: Sequence[Issue], services: Services, access: Access, publisher: Publisher | None
) -> tuple[list[BacklogIssue], str]:
    """What is made of each issue, newest first, and why labels could not be set; empty where they could."""
    rows: list[BacklogIssue] = []
    refused = ""
    errors = EqualErrors()
    with ThreadPoolExecutor(WORKERS) as pool:
        for issue, decision in zip(issues, pool.map(lambda each: _judged(each, services), issues), strict=True):
            outcome = ""
            try:
                errors.add(decision)
            except OperatorError:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
            if publisher is not None and not refused:
                try:
                    outcome = publisher.publish(decision, "backlog", services, access.writer).outcome
                except ForgeError as error:
                    refused = str(error)
            rows.append(BacklogIssue(issue, decision, outcome if decision.actions else ""))
    return rows, refused


def _judged(issue: Issue, services: Services) -> Decision:
    from bot.core.events import IssueReopened

    # With what was answered below it.
    event = IssueReopened(sender=issue.author, repository=services.repository, issue=issue)
    decision = decided("triage", event, services)
    if decision is None:
        raise OperatorError("triage is switched off in bouncer.yml")
    return decision


def _text(rows: Sequence[BacklogIssue]) -> str:
    lines = []
    for each in rows:
        lines.append(f"#{each.issue.number}  {each.word:10}  {each.issue.title}")
        lines += [f"      - {question}" for question in each.questions]
        if each.word == "not judged":
            lines.append(f"      {each.why}")
    counts = Counter(each.word for each in rows)
    told = ", ".join(f"{counts[word]} {word}" for word in ("bounce", "pass", "not judged"))
    return "\n".join([*lines, "", f"{told}. {_cost(rows)}"])


def _cost(rows: Sequence[BacklogIssue]) -> str:
    used = sum((each.decision.usage for each in rows), Usage())
    spent = "an unknown amount" if used.cost_usd is None else f"{used.cost_usd:.4f} USD"
    return f"{used.calls} model calls in all, {spent}." if used.calls else "No model was called."
