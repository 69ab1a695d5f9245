"""The daily budget is never exceeded, with parallel calls and with failures."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.core.errors import BudgetExceeded, ModelError, SettingsError, TransientError
from bot.models.budget import REQUESTS, Budget, Budgeted, Limit, MemoryBudget, Price, Spent, worst_case
from bot.models.conversation import Answer
from tests.bot.models.replies import CLEAR, PROMPT, Verdict
from tests.scripted import ScriptedModel

PRICE = Price(input=1.0, output=10.0)
TODAY = date(2026, 11, 21)
REPOSITORY = "repository:o/r"


def noon() -> datetime:
    return datetime(2026, 11, 21, 12, tzinfo=UTC)


def budget(store: MemoryBudget, *limits: Limit) -> Budget:
    return Budget(store, limits, noon)


def test_a_call_is_booked_on_every_scope_at_its_real_price() -> None:
    store = MemoryBudget()
    limits = budget(
        store, Limit(scope=REPOSITORY, usd=1), Limit(scope="owner:o", usd=1), Limit(scope="all", usd=1)
    )
    model = ScriptedModel([Answer(CLEAR.model_dump_json(), "stop", 1000, 200)])
    Budgeted(model, PRICE, limits).complete(PROMPT, Verdict)
    for scope in (REPOSITORY, "owner:o", "all"):
        assert store.spent(TODAY, scope) == Spent(micros=1000 * 1 + 200 * 10, calls=1)


def test_a_call_that_might_pass_a_limit_is_not_made_and_books_nothing() -> None:
    store = MemoryBudget()
    model = ScriptedModel([CLEAR])
    limits = budget(store, Limit(scope="all", usd=100), Limit(scope="owner:o", usd=0.05))
    with pytest.raises(BudgetExceeded) as caught:
        Budgeted(model, PRICE, limits).complete(PROMPT, Verdict)
    reason = "the daily budget of all repositories of o is used up (2026-11-21): 0.00 of 0.05 USD are spent"
    assert str(caught.value).startswith(reason)
    assert caught.value.reason == "budget"
    assert model.asked == []
    assert store.spent(TODAY, "all") == Spent()


def test_a_number_of_calls_bounds_a_model_without_a_price() -> None:
    store = MemoryBudget()
    model = Budgeted(ScriptedModel(lambda _: CLEAR), None, budget(store, Limit(scope=REPOSITORY, calls=5)))
    for _ in range(3):
        model.complete(PROMPT, Verdict)
    with pytest.raises(BudgetExceeded, match="3 of 5 model calls"):
        model.complete(PROMPT, Verdict)


def test_a_budget_in_dollars_needs_a_price() -> None:
    with pytest.raises(SettingsError, match=r"scripted:test: a budget in USD is set.*BOUNCER_PRICES_FILE"):
        Budgeted(ScriptedModel(), None, budget(MemoryBudget(), Limit(scope="all", usd=1)))


def test_a_free_model_is_asked_when_the_money_is_gone() -> None:
    limits = budget(MemoryBudget(), Limit(scope="all", usd=0))
    assert (
        Budgeted(ScriptedModel([CLEAR]), Price(input=0, output=0), limits).complete(PROMPT, Verdict).value == CLEAR
    )


@pytest.mark.parametrize("error", [ModelError("no", "refused"), TransientError("busy")])
def test_a_failed_call_books_its_real_cost(error: ModelError | TransientError) -> None:
    store = MemoryBudget()
    model = ScriptedModel([Answer("nonsense", "stop", 100, 10), error])
    with pytest.raises(type(error)):
        Budgeted(model, PRICE, budget(store, Limit(scope="all", usd=1))).complete(PROMPT, Verdict)
    assert store.spent(TODAY, "all") == Spent(micros=200, calls=1)


def test_a_crash_leaves_the_worst_case_booked() -> None:
    store = MemoryBudget()
    model = ScriptedModel()
    with pytest.raises(AssertionError):
        Budgeted(model, PRICE, budget(store, Limit(scope="all", usd=1))).complete(PROMPT, Verdict)
    assert store.spent(TODAY, "all") == worst_case(PROMPT, PRICE)


def test_many_workers_at_once_do_not_pass_the_limit() -> None:
    store = MemoryBudget()
    script = ScriptedModel(lambda _: Answer(CLEAR.model_dump_json(), "stop", 4000, 4000))
    limit = 0.5
    model = Budgeted(script, PRICE, budget(store, Limit(scope="all", usd=limit)))

    def ask(number: int) -> bool:
        try:
            model.complete(PROMPT.model_copy(update={"sample": number}), Verdict)
        except BudgetExceeded:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        call_count = sum(pool.map(ask, range(40)))
    spent = store.spent(TODAY, "all")
    assert spent == Spent(micros=call_count * 44_000, calls=call_count)
    assert spent.micros <= limit * 1e6
    assert 0 < call_count < 40


@given(st.text(), st.text(), st.integers(1, 100_000))
def test_the_worst_case_is_no_less_than_any_real_case(system: str, user: str, max_tokens: int) -> None:
    prompt = PROMPT.model_copy(update={"system": system, "user": user, "max_tokens": max_tokens})
    worst = worst_case(prompt, PRICE)
    tokens = math.ceil(len((system + user).encode()) / 2)
    assert worst.micros >= REQUESTS * PRICE.cost(tokens, max_tokens) * 1e6
    assert worst.calls == REQUESTS
