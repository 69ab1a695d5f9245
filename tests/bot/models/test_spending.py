"""A spent budget stops the models with a reason until the next day."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bot import app
from bot.core.config import RepoConfig
from bot.core.errors import BudgetExceeded, ModelError
from bot.core.events import CommentCreated
from bot.core.subjects import Actor, Comment, Issue, Repository
from bot.features.services import NoHistory, Services
from bot.github.offline import ReplayForge
from bot.models.budget import Budget, Budgeted, BudgetStore, Limit, MemoryBudget, Price, Spent
from bot.models.conversation import Answer
from bot.models.prompts import Prompts
from bot.pipeline.store import Ledger
from bot.pipeline.store.calls import Budgets
from bot.pipeline.store.database import open_database
from bot.pipeline.store.migration import migrate
from bot.router import SLASH_COMMANDS, decide
from bot.settings import Settings, load
from bot.simgithub import SimulatedGitHub
from tests.bot.features import test_triage as triage
from tests.bot.features.conftest import REPOSITORY
from tests.bot.models.replies import PROMPT, Verdict
from tests.builders import issue_opened
from tests.scripted import ScriptedModel

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.fixture(params=["memory", "ledger"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BudgetStore]:
    if request.param == "memory":
        yield MemoryBudget()
        return
    database = open_database(f"sqlite:///{tmp_path / 'b.db'}")
    migrate(database)
    yield Budgets(database)
    database.close()


def test_a_spent_budget_skips_issues_until_the_next_day(store: BudgetStore) -> None:
    time = [NOON]
    model = ScriptedModel(lambda _: Answer('{"explanation": "x", "label": "WELL_SPECIFIED"}', "stop", 1000, 100))
    budget = Budget(store, (Limit(scope="all", usd=0.1),), lambda: time[0])
    services = Services(
        commands=SLASH_COMMANDS,
        prompts=Prompts(),
        forge=ReplayForge(triage.snapshot()),
        model=Budgeted(model, Price(input=1.0, output=5.0), budget),
        config=RepoConfig(),
        clock=lambda: time[0],
        history=NoHistory(),
        repository=REPOSITORY,
    )

    def judge(number: int) -> str | None:
        (decision,) = decide(issue_opened(number=number), services, only="triage")
        return decision.verdict or decision.abstained

    verdicts = [judge(number) for number in range(1, 40)]
    calls = len(model.asked)
    assert verdicts == ["WELL_SPECIFIED"] * calls + ["skipped:budget"] * (39 - calls)
    assert 0 < calls < 39
    (decision,) = decide(issue_opened(number=99), services, only="triage")
    assert decision.actions == ()
    assert decision.reason.startswith("the daily budget of all repositories is used up (2026-11-21): ")

    time[0] += timedelta(hours=12)
    assert judge(100) == "WELL_SPECIFIED"


def test_stores_agree_on_spending(store: BudgetStore) -> None:
    limits = (Limit(scope="repository:o/r", usd=1, calls=9), Limit(scope="owner:o", usd=2))
    reservation = store.reserve(NOON.date(), limits, Spent(micros=900_000, calls=3))
    store.settle(reservation, Spent(micros=1234, calls=1))
    store.settle(reservation, Spent(micros=9999, calls=9))
    for scope in ("repository:o/r", "owner:o"):
        assert store.spent(NOON.date(), scope) == Spent(micros=1234, calls=1)


def test_a_share_is_reserved_for_commands_of_maintainers(store: BudgetStore) -> None:
    settings = Settings(bouncer_repository_calls=10, bouncer_budget_reserve=40, _env_file=None)
    limits = app.limits(settings, "o/r")
    unasked = app.limits(settings, "o/r", reserve=True)
    store.reserve(NOON.date(), unasked, Spent(calls=6))
    with pytest.raises(BudgetExceeded, match=r"40% are kept for what maintainers ask for"):
        store.reserve(NOON.date(), unasked, Spent(calls=1))
    store.reserve(NOON.date(), limits, Spent(calls=4))
    with pytest.raises(BudgetExceeded):
        store.reserve(NOON.date(), limits, Spent(calls=1))


def test_a_refused_command_does_not_open_the_reserve(tmp_path: Path) -> None:
    """With the services of a worker: the rest of the budget is reserved for maintainers."""
    with SimulatedGitHub() as github:
        home = "acme/rocket"
        github.create_repository(home)
        github.grant(home, "mia", "write")
        number = github.open_issue(home, "It breaks", author="ann")
        app_made = github.create_app(owner="acme", webhook_secret="secret-secret")
        installation = github.install(app_made, home)
        database = open_database(f"sqlite:///{tmp_path / 'b.db'}")
        migrate(database)
        ledger = Ledger(database)
        ledger.budgets.reserve(app.now().date(), (Limit(scope="repository:acme/rocket"),), Spent(calls=8))
        (tmp_path / "replies.jsonl").write_text('{"model": "clear", "subject": "another", "reply": "{}"}\n')
        live = app.Live(
            load(
                github_app_id=app_made.id,
                github_app_private_key=app_made.private_key,
                github_api_url=github.api_url,
                bouncer_model=f"recorded:{tmp_path}/replies.jsonl#clear",
                bouncer_repository_calls=12,
                bouncer_budget_reserve=50,
            ),
            ledger,
        )

        def spends(login: str) -> bool:
            sender = Actor(id=github.world.users[login].id, login=login)
            event = CommentCreated(
                installation=installation.id,
                sender=sender,
                repository=Repository(id=1, owner="acme", name="rocket"),
                issue=Issue(number=number, title="It breaks", author=Actor(id=1, login="ann")),
                comment=Comment(id=1, body="/bouncer recheck\n/bouncer reproduce", author=sender),
            )
            try:
                live.services_for(event)[0].model.complete(PROMPT, Verdict)
            except ModelError as error:  # no decision is recorded; maintainers get a message
                return not isinstance(error, BudgetExceeded)
            return True

        assert (spends("ann"), spends("mia")) == (False, True)
        live.close()
        database.close()


def test_an_operator_sets_limits_for_repository_owner_and_all_together() -> None:
    settings = Settings(
        bouncer_daily_budget_usd=10, bouncer_owner_budget_usd=5, bouncer_repository_budget_usd=1, _env_file=None
    )
    assert app.limits(settings, "acme/rocket") == (
        Limit(scope="repository:acme/rocket", usd=1, calls=2000),
        Limit(scope="owner:acme", usd=5),
        Limit(scope="all", usd=10),
    )
