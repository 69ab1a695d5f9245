"""``bouncer backlog``: judge the open issues of a repository: bounce or not, how likely, and what to ask."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, cast

import click

from bot.cli.files import confirm, data_folder, print_json, show_card, write_text
from bot.cli.judging import Judging, cost_option, decided, failure, judge_all, judging_options
from bot.cli.remote import configured, reached, repository
from bot.core.actions import Usage
from bot.core.errors import BudgetExceeded, ForgeError, OperatorError
from bot.core.page import render
from bot.core.text import amount, csv_line

if TYPE_CHECKING:
    from pydantic import BaseModel

    from bot.app import Access
    from bot.core.actions import Decision
    from bot.core.subjects import Issue
    from bot.features.services import Services
    from bot.features.triage.record import TriageRecord
    from bot.github.protocol import Forge
    from bot.github.reader import GitHubForge
    from bot.models.protocol import Prompt
    from bot.pipeline.publisher import Publisher
    from bot.pipeline.store import Ledger
    from bot.pipeline.store.calls import AskOnce
    from bot.settings import Settings

#: Tokens of a typical answer, for the estimate.
ANSWER_TOKENS = 400
#: Questions at a time.
WORKERS = 4
#: In the order of the table.
RESULTS = ("bounce", "pass", "not judged")
COLUMNS = ("number", "title", "url", "result", "p_bounce", "label", "questions", "why", "labelled")


class BacklogIssue(NamedTuple):
    issue: Issue
    decision: Decision
    labelled: bool = False

    @property
    def record(self) -> TriageRecord:
        """The record of the verdict; empty without a verdict."""
        from bot.features.triage.record import TriageRecord

        return self.decision.record_of(TriageRecord)

    @property
    def result(self) -> str:
        if self.decision.verdict is None:
            return "not judged"
        return "bounce" if self.record.bounced else "pass"

    @property
    def percent(self) -> str:
        """How likely the issue is too vague to act on; empty if the model gave no probability."""
        return "" if self.record.p_bounce is None else f"{self.record.p_bounce} %"

    @property
    def why(self) -> str:
        return self.record.explanation or self.decision.reason

    @property
    def order(self) -> tuple[int, int, int]:
        """Bounces first, the most likely on top; newer issues before older ones."""
        return RESULTS.index(self.result), -(self.record.p_bounce or 0), -self.issue.number

    def as_object(self) -> dict[str, Any]:
        """Return the issue as ``--json`` prints it."""
        return {
            "number": self.issue.number,
            "title": self.issue.title,
            "url": self.issue.html_url,
            "result": self.result,
            "label": self.decision.verdict,
            "p_bounce": self.record.p_bounce,
            "why": self.why,
            "questions": list(self.record.questions),
            "labelled": self.labelled,
        }


class Backlog(NamedTuple):
    """The judged issues of a repository, in the order of the table."""

    name: str
    rows: tuple[BacklogIssue, ...]
    open_issues: int | None

    @property
    def counts(self) -> Counter[str]:
        return Counter(row.result for row in self.rows)

    @property
    def title(self) -> str:
        """The number of issues, and of how many if ``--limit`` left some out."""
        if self.open_issues in (None, len(self.rows)):
            return amount(len(self.rows), "open issue")
        return f"{len(self.rows)} of {self.open_issues} open issues (--limit)"

    @property
    def cost(self) -> str:
        usage = sum((row.decision.usage for row in self.rows), Usage())
        if not usage.calls:
            return "No model was called."
        from bot.models.protocol import caveat

        models = sorted({row.decision.model for row in self.rows if row.decision.model})
        notes = " ".join(filter(None, map(caveat, models)))
        calls = amount(usage.calls, "call")
        return f"{calls} of {', '.join(models) or 'the model'}, {usage.cost}. {notes}".strip()


@click.command()
@click.argument("name", metavar="OWNER/REPO")
@click.option(
    "--limit", type=click.IntRange(1, 1000), default=100, show_default=True, help="Most issues, newest first."
)
@click.option(
    "--apply", "applied", type=click.Choice(["labels"]), help="Label the issues that bounce; no comment."
)
@click.option(
    "--limit-actions",
    type=click.IntRange(1, 1000),
    default=100,
    show_default=True,
    help="Most issues to label with --apply, the most likely first.",
)
@click.option("--out", "files", metavar="FILE", multiple=True, help="Write a page, or a .csv file (repeatable).")
@cost_option
@click.option("--yes", is_flag=True, help="Do not ask before the model is called.")
@judging_options
def command(
    name: str,
    limit: int,
    applied: str | None,
    limit_actions: int,
    files: tuple[str, ...],
    max_cost: float | None,
    yes: bool,
    judging: Judging,
    as_json: bool,
) -> int:
    """Judge the open issues of OWNER/REPO. Nothing is written to GitHub without --apply, and never a comment.

    Answers are stored below BOUNCER_DATA_DIR: if interrupted, the same command resumes and pays nothing twice.
    """
    from bot import app
    from bot.pipeline.publisher import Publisher, Spaced

    judging = judging.forcing({"triage": {"mode": "label"}})
    settings = judging.settings()
    settings.check_model()
    name = repository(name, settings)
    for file in files:
        Path(file).open("a").close()  # fails before the model is paid if the file cannot be written
    with reached(settings, name) as access:
        config_here = configured(access.forge, access.forge.about(), judging)
        issues = access.forge.open_issues(limit)
        total = access.forge.open_issue_count() if len(issues) == limit else len(issues)
        with _ledger(settings, name) as ledger:
            model = _model(settings, ledger, name, max_cost)
            forge = cast("Forge", CommentsReadOnce(access.forge))
            services = app.offline_services(settings, forge, config_here, model)
            _confirm(settings, services, model, issues, yes=yes)
            rows, refusal = _judge(issues, services, "judged"), ""
            if applied:
                publisher = Publisher(ledger.postings, settings.secrets, Spaced())
                rows, refusal = _label(rows, publisher, services, access, limit_actions)
    backlog = Backlog(name, tuple(rows), total)
    _print(backlog, files, config_here.triage.label if applied else "", as_json=as_json)
    if errors := [error for row in rows if (error := failure(row.decision))]:
        raise OperatorError(f"{name}: {len(errors)} of {len(rows)} issues could not be judged: {errors[0]}")
    if refusal:
        raise OperatorError(f"{name}: labels were not set: {refusal}. {access.by or 'This'} needs `issues: write`")
    return 0


@contextmanager
def _ledger(settings: Settings, name: str) -> Iterator[Ledger]:
    """Open the file below BOUNCER_DATA_DIR that remembers answers about this repository."""
    from bot.pipeline.store import Ledger, migrated

    file = data_folder(settings, "backlog") / f"{name.replace('/', '+')}.db"
    with migrated(f"sqlite:///{file}") as database:
        yield Ledger(database)


def _model(settings: Settings, ledger: Ledger, name: str, max_cost: float | None) -> AskOnce:
    from bot import app
    from bot.pipeline.store.calls import AskOnce

    model = app.build_model(settings, budget=app.total_budget(max_cost))
    return AskOnce(model, ledger.calls, f"backlog:{name}:{settings.bouncer_model}")


class CommentsReadOnce:
    """A forge that reads the comments of an issue once: for the estimate and for the verdict."""

    def __init__(self, forge: GitHubForge) -> None:
        self._forge = forge
        self.comments = cache(forge.comments)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._forge, name)


def _confirm(
    settings: Settings, services: Services, model: AskOnce, issues: Sequence[Issue], *, yes: bool
) -> None:
    """Print the estimated cost and ask for confirmation."""
    cost = _estimate(settings, services, model, issues)
    name = settings.bouncer_model
    estimate = f"cost with {name} unknown" if cost is None else f"about {cost:.2f} USD with {name}"
    looks = ", without the looks of triage.investigate" if services.config.triage.investigate and issues else ""
    click.echo(f"{amount(len(issues), 'open issue')}; {estimate}{looks}", err=True)
    if issues and not yes:
        confirm("Continue?", "add --yes, and --max-cost for a limit")


class Questions:
    """A Model that counts the characters of every question without a stored answer, and answers none."""

    def __init__(self, model: AskOnce) -> None:
        self.id = model.id
        self._model = model
        self.sizes: list[int] = []

    def complete(self, prompt: Prompt, schema: type[BaseModel]) -> NoReturn:
        from bot.models.conversation import strict

        if self._model.stored(prompt, schema) is None:
            shape = json.dumps(strict(schema), separators=(",", ":"))
            self.sizes.append(len(prompt.system) + len(prompt.user) + len(shape))
        raise BudgetExceeded("an estimate asks no model")


def _estimate(settings: Settings, services: Services, model: AskOnce, issues: Sequence[Issue]) -> float | None:
    """Estimate US dollars: what the handler would ask, a token per four characters; None if a price is unknown."""
    from bot.models.budget import load_prices
    from bot.models.registry import draws

    price_list = load_prices(settings.bouncer_prices_file)
    prices = [(price_list.of(name), count) for name, count in draws(settings.bouncer_model).items()]
    if any(price is None for price, _ in prices):
        return None
    # Looks depend on the answers of the model, and need the code of the repository.
    triage = services.config.triage.model_copy(update={"investigate": False})
    config = services.config.model_copy(update={"triage": triage})
    questions = Questions(model)
    _judge(issues, replace(services, config=config, model=questions), "read")
    return sum(
        count * price.cost(size // 4, ANSWER_TOKENS)
        for price, count in prices
        if price is not None
        for size in questions.sizes
    )


def _judge(issues: Sequence[Issue], services: Services, progress_word: str) -> list[BacklogIssue]:
    """Judge every issue with its comments. Return them in the order of the table."""
    from bot.core.events import IssueReopened

    def judge(issue: Issue) -> Decision:
        event = IssueReopened(sender=issue.author, repository=services.repository, issue=issue)
        decision = decided("triage", event, services)
        if decision is None:
            raise OperatorError("triage is switched off in bouncer.yml")
        return decision

    decisions = judge_all(judge, issues, WORKERS, progress_word)
    return sorted(map(BacklogIssue, issues, decisions), key=lambda row: row.order)


def _label(
    rows: Sequence[BacklogIssue],
    publisher: Publisher,
    services: Services,
    access: Access,
    limit_actions: int,
) -> tuple[list[BacklogIssue], str]:
    """Label up to ``limit_actions`` issues, the most likely first. Return the rows, and why GitHub refused."""
    from bot.pipeline.store.decisions import PublishOutcome

    label = services.config.triage.label
    labelled, result = 0, list(rows)
    for at, row in enumerate(rows):
        if not row.decision.actions or label in row.issue.labels or labelled == limit_actions:
            continue
        try:
            published = publisher.publish(row.decision, "backlog", services, access.writer)
        except ForgeError as error:
            return result, str(error)
        if published.outcome is PublishOutcome.POSTED:
            labelled += 1
            result[at] = row._replace(labelled=True)
    return result, ""


def _print(backlog: Backlog, files: Sequence[str], label: str, *, as_json: bool) -> None:
    for file in files:
        text = _as_csv(backlog)
        if not file.lower().endswith(".csv"):
            data = base64.b64encode(text.encode()).decode("ascii")
            text = render("bot.cli", "backlog.html.jinja", backlog=backlog, results=RESULTS, csv=data)
        write_text(file, text)
    if as_json:
        cost = sum((row.decision.usage for row in backlog.rows), Usage()).cost_usd
        issues = [row.as_object() for row in backlog.rows]
        total = backlog.open_issues
        print_json({"repository": backlog.name, "open_issues": total, "cost_usd": cost, "issues": issues})
    else:
        show_card(_as_text(backlog, label))


def _as_text(backlog: Backlog, label: str) -> str:
    counts = ", ".join(f"{backlog.counts[result]} {result}" for result in RESULTS)
    lines = [f"{backlog.name}, {backlog.title}: {counts}. {backlog.cost}", ""]
    for row in backlog.rows:
        lines.append(f"{row.percent:>5}  {row.result:10}  #{row.issue.number:<5} {row.issue.title}")
        detail = row.why if row.result == "not judged" else next(iter(row.record.questions), "")
        lines += [f"{'':27}{detail}"] if detail and row.result != "pass" else []
    if label:
        bounces = [row for row in backlog.rows if row.result == "bounce"]
        numbers = [f"#{row.issue.number}" for row in bounces if row.labelled]
        before = sum(label in row.issue.labels for row in bounces)
        rest = len(bounces) - len(numbers) - before
        lines += ["", f"Labelled {label}: {', '.join(numbers) or 'none'}"]
        lines += [f"Labelled before: {before}"] if before else []
        lines += [f"Not labelled: {rest} (--limit-actions)"] if rest else []
    return "\n".join(lines)


def _as_csv(backlog: Backlog) -> str:
    rows = ({**row.as_object(), "questions": "\n".join(row.record.questions)} for row in backlog.rows)
    lines = (csv_line(row[name] for name in COLUMNS) for row in rows)
    return csv_line(COLUMNS) + "".join(lines)
