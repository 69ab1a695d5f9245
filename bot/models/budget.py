"""Prices of models, and daily budgets per repository, per owner, or in total.

The worst case is reserved before the call and corrected after it, so that neither parallel workers nor a
crash in between can exceed the limit. Prices are a table that an operator can replace.
"""

from __future__ import annotations

import math
import re
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cache
from pathlib import Path
from typing import Annotated, Protocol

import yaml
from pydantic import AfterValidator, Field, ValidationError

from bot.core.actions import Usage
from bot.core.errors import BudgetExceeded, ModelError, SettingsError, TransientError
from bot.core.frozen import Frozen, Lenient, first_fault
from bot.core.io_limits import read_file
from bot.models.protocol import Model, Prompt, Reply, T, Wrapper

#: One question may take this many requests: the first, the one at low effort, the repair turn.
REQUESTS = 3
#: Characters that a repair turn adds: the quoted answer, and the schema.
_REPAIR = 12_000


class Limit(Frozen):
    """The budget of a scope for one day (UTC); None = without limit."""

    scope: str = Field(description="``repository:owner/name``, ``owner:name``, ``all``, or the name of a run")
    usd: float | None = Field(None, ge=0)
    calls: int | None = Field(None, ge=0, description="bounds models without a known price too")
    reserve: float = Field(0.0, ge=0, lt=1, description="share of both that is reserved for other uses")

    def used_up(self, day: date) -> str:
        """Return the start of the sentence that people read when there is no room left."""
        scope, _, name = self.scope.partition(":")
        names = {"repository": name, "owner": f"all repositories of {name}", "all": "all repositories"}
        if scope not in names:
            return f"the budget of {self.scope} is used up"
        return f"the daily budget of {names[scope]} is used up ({day})"


class Spent(Frozen):
    """Requests made, and their price in millionths of a US dollar: whole numbers, so that they add up."""

    micros: int = Field(0, ge=0)
    calls: int = Field(0, ge=0)

    def __add__(self, other: Spent) -> Spent:
        return Spent(micros=self.micros + other.micros, calls=self.calls + other.calls)


class BudgetStore(Protocol):
    """Stores spending by scope and day. Both methods are atomic, across processes too."""

    def reserve(self, day: date, limits: tuple[Limit, ...], worst: Spent) -> str:
        """Reserve ``worst`` in every scope; if ``over`` returns an error, reserve nothing and raise it."""
        ...

    def settle(self, reservation: str, spent: Spent) -> None:
        """Replace a reservation by the real spending; settling again changes nothing."""
        ...


@dataclass(frozen=True)
class Budget:
    """The limits of one repository, and the store of its spending."""

    store: BudgetStore
    limits: tuple[Limit, ...]
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)

    @property
    def today(self) -> date:
        return self.clock().astimezone(UTC).date()


def over(limit: Limit, day: date, spent: Spent, worst: Spent) -> BudgetExceeded | None:
    """Return the error to raise if a limit leaves no room for the worst case; else None."""
    share = 1 - limit.reserve
    reserved = f" ({limit.reserve:.0%} are kept for what maintainers ask for)" if limit.reserve else ""
    if limit.calls is not None and spent.calls + worst.calls > limit.calls * share:
        return BudgetExceeded(
            f"{limit.used_up(day)}: {spent.calls} of {limit.calls} model calls are made"
            f" or reserved, and this question may take {worst.calls}{reserved}"
        )
    if limit.usd is not None and worst.micros and spent.micros + worst.micros > limit.usd * share * 1_000_000:
        return BudgetExceeded(
            f"{limit.used_up(day)}: {spent.micros / 1e6:.2f} of {limit.usd:.2f} USD are"
            f" spent or reserved, and this question may take {worst.micros / 1e6:.2f}{reserved}"
        )
    return None


class MemoryBudget:
    def __init__(self) -> None:
        self._spent: dict[tuple[date, str], Spent] = {}
        self._reserved: dict[str, tuple[date, tuple[str, ...], Spent]] = {}
        self._lock = threading.Lock()

    def spent(self, day: date, scope: str) -> Spent:
        """Return settled and reserved spending together."""
        return self._spent.get((day, scope), Spent())

    def reserve(self, day: date, limits: tuple[Limit, ...], worst: Spent) -> str:
        with self._lock:
            for limit in limits:
                if error := over(limit, day, self.spent(day, limit.scope), worst):
                    raise error
            scopes = tuple(limit.scope for limit in limits)
            reservation = uuid.uuid4().hex
            self._reserved[reservation] = (day, scopes, worst)
            for scope in scopes:
                self._spent[day, scope] = self.spent(day, scope) + worst
            return reservation

    def settle(self, reservation: str, spent: Spent) -> None:
        with self._lock:
            day, scopes, worst = self._reserved.pop(reservation, (date.min, (), Spent()))
            for scope in scopes:
                before = self._spent[day, scope]
                self._spent[day, scope] = Spent(
                    micros=before.micros - worst.micros + spent.micros,
                    calls=before.calls - worst.calls + spent.calls,
                )


class Budgeted(Wrapper):
    """A model that is asked only if every limit leaves room for the worst case; raises BudgetExceeded otherwise.

    The constructor raises SettingsError if a limit is in dollars and the model has no known price.
    """

    def __init__(self, model: Model, price: Price | None, budget: Budget) -> None:
        if price is None and any(limit.usd is not None for limit in budget.limits):
            raise SettingsError(
                f"model {model.id}: a budget in USD is set, but no price is known: add it to BOUNCER_PRICES_FILE"
            )
        super().__init__(model)
        self._price = price
        self._budget = budget

    def complete(self, prompt: Prompt, schema: type[T]) -> Reply[T]:
        store, limits = self._budget.store, self._budget.limits
        reservation = store.reserve(self._budget.today, limits, worst_case(prompt, self._price))
        try:
            reply = self._model.complete(prompt, schema)
        except (ModelError, TransientError) as error:
            store.settle(reservation, spending(error.usage or Usage(), self._price))
            raise
        store.settle(reservation, spending(reply.usage, self._price))
        return reply


def worst_case(prompt: Prompt, price: Price | None) -> Spent:
    """Return the most that one question can cost: every request in full."""
    if price is None:
        return Spent(calls=REQUESTS)
    tokens = most_tokens(prompt.system + prompt.user) + _REPAIR // 2
    # Writing into a provider's prompt cache can cost more than plain input.
    cost = max(price.cost(tokens, prompt.max_tokens, 0, cache_writes) for cache_writes in (0, tokens))
    return Spent(calls=REQUESTS, micros=REQUESTS * _micros(cost))


def most_tokens(text: str) -> int:
    """Return the most tokens that a text can have: one for every two bytes."""
    return math.ceil(len(text.encode("utf-8", "replace")) / 2)


def spending(usage: Usage, price: Price | None) -> Spent:
    """Return what a question has cost, by its own account if it gives one."""
    if price is None:
        return Spent(calls=usage.calls)
    cost = usage.cost_usd
    if cost is None:
        cost = price.cost(usage.input_tokens, usage.output_tokens)
    return Spent(calls=usage.calls, micros=_micros(cost))


def _micros(cost: float) -> int:
    # Rounded up: no cost is lost to rounding.
    return math.ceil(cost * 1_000_000)


#: The largest table of prices, bytes.
_LARGEST = 1 << 20
PACKAGED = Path(__file__).parent / "prices.yml"
_FREE_PROVIDERS = ("recorded", "scripted")
# gpt-4.1-2025-04-14, claude-haiku-4-5-20251001, claude-3-7-sonnet-latest: a snapshot costs what its model costs.
_SNAPSHOT = re.compile(r"-(\d{4}-\d{2}-\d{2}|20\d{6}|latest)$")


class Price(Frozen):
    """The price of one model, in US dollars per million tokens; reasoning tokens count as output."""

    input: float = Field(ge=0)
    output: float = Field(ge=0)
    cached: float | None = Field(None, ge=0, description="input read from the provider's cache; None = as input")
    cache_write: float | None = Field(
        None, ge=0, alias="written", description="input written to that cache; None = as input"
    )

    def cost(self, input_tokens: int, output_tokens: int, cache_reads: int = 0, cache_writes: int = 0) -> float:
        """Return US dollars; ``cache_reads`` and ``cache_writes`` are parts of ``input_tokens``."""
        read_cost = cache_reads * (self.input if self.cached is None else self.cached)
        write_cost = cache_writes * (self.input if self.cache_write is None else self.cache_write)
        plain_input = (input_tokens - cache_reads - cache_writes) * self.input
        return (plain_input + read_cost + write_cost + output_tokens * self.output) / 1_000_000


def _model_id(text: str) -> str:
    if not re.fullmatch(r"[a-z]+:\S+", text):
        raise ValueError(f"{text!r} is no model id (provider:name)")
    return text


class Prices(Lenient):
    """Prices by model id (``provider:name``)."""

    models: dict[Annotated[str, AfterValidator(_model_id)], Price]

    def of(self, model_id: str) -> Price | None:
        """Return the price of a model; None if it is unknown: its cost is then unknown, not zero."""
        if model_id.partition(":")[0] in _FREE_PROVIDERS:
            return Price(input=0, output=0)
        return self.models.get(model_id) or self.models.get(_SNAPSHOT.sub("", model_id))


def load_prices(file: Path | None = None) -> Prices:
    """Load the packaged table, overridden by an operator's file; raises SettingsError."""
    packaged = _packaged()
    return Prices(models={**packaged.models, **_read(file).models}) if file else packaged


@cache
def _packaged() -> Prices:
    return _read(PACKAGED)


def _read(file: Path) -> Prices:
    where = f"prices (BOUNCER_PRICES_FILE): {file}"
    try:
        return Prices.model_validate(yaml.safe_load(read_file(file, _LARGEST)))
    except OSError as error:
        raise SettingsError(f"{where} cannot be read: {error.strerror}") from None
    except yaml.YAMLError as error:
        raise SettingsError(f"{where} is not YAML: {' '.join(str(error).split())[:200]}") from None
    except ValidationError as error:
        place, message = first_fault(error, "the file")
        raise SettingsError(f"{where}: {place}: {message}") from None
