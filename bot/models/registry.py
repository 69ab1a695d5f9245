"""From a model id to a Model: ``provider:name``, or several separated by commas as a fallback chain.

openai:NAME  anthropic:NAME  recorded:FILE#NAME
mean(ID,ID,samples=N)  cascade(SMALL@LOW-HIGH,LARGE)

The openai and anthropic SDKs are imported only when a model of theirs is built: importing anthropic costs 35 MB.
They send requests and describe the shape of a completion. Their ``.parse`` is not used: its errors differ by
provider and carry no usage, and it takes no answer in a code fence. ``conversation`` reads all texts.
"""

from __future__ import annotations

import re
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from pydantic import SecretStr

from bot.core.actions import Usage
from bot.core.errors import ModelError, OperatorNeeded, SettingsError, TransientError
from bot.core.frozen import Frozen
from bot.models.budget import Budget, Budgeted, Prices, load_prices
from bot.models.conversation import Conversation, Provider, Refusals, ReportingRefusals
from bot.models.protocol import Model, Prompt, Reply, T, Wrapper
from bot.models.wrappers import Cascade, Fallback, Maps, Mean

#: The longest pause between two tries, seconds.
LONGEST_SECONDS = 60.0


class ModelKeys(Frozen):
    """Keys, addresses and the time limit of the providers, named as in the settings, without keys in ``repr``."""

    openai_api_key: SecretStr | None = None
    openai_base_url: str | None = None
    anthropic_api_key: SecretStr | None = None
    anthropic_base_url: str | None = None
    bouncer_model_seconds: float = 300.0


class Models:
    """Builds models; models of one ``Models`` share connections."""

    def __init__(
        self,
        keys: ModelKeys,
        prices: Prices | None = None,
        maps: Maps | None = None,
        refusals: Refusals | None = None,
    ) -> None:
        """``refusals`` records refused keys and names; None: such an error is an ordinary ModelError."""
        self._keys = keys
        self._refusals = refusals
        self._maps = maps
        self._prices = prices or load_prices()
        self._built: dict[str, Conversation] = {}
        self._lock = threading.Lock()

    def build(self, model_id: str, budget: Budget | None = None, attempts: int = 1) -> Model:
        """Build the model or chain of an id, within ``budget``; transient failures are tried ``attempts`` times.

        Raises SettingsError with one line that names what is missing: model, provider, key, file, price.
        """
        if not model_id:
            raise SettingsError("no model is named: use --model or BOUNCER_MODEL, for example openai:gpt-5-mini")
        models = tuple(self._several(part, budget) for part in parts(model_id))
        model = models[0] if len(models) == 1 else Fallback(models)
        return Retried(model, attempts) if attempts > 1 else model

    def check(self, model_id: str) -> bool:
        """Return True if the provider takes the key and knows the model, False if that cannot be asked.

        Costs no tokens. Raises ProviderRefused, TransientError, or SettingsError for one that cannot be built.
        """
        from bot.models.remote import Remote

        self._single(model_id, None)
        provider = self._built[model_id].provider
        return isinstance(provider, Remote) and provider.check()

    def _several(self, model_id: str, budget: Budget | None) -> Model:
        """Build one model, or several that answer as one."""
        if model_id.startswith("mean(") and model_id.endswith(")"):
            names = parts(model_id[5:-1])
            samples = 1
            if samples_match := re.fullmatch(r"samples=(\d{1,2})", names[-1]):
                samples, names = int(samples_match[1]), names[:-1]
            if samples < 1 or not names:
                raise SettingsError(f"model {model_id!r}: mean needs a model, and samples from 1 to 99")
            return Mean([self._several(name, budget) for name in names], samples, self._maps)
        if model_id.startswith("cascade(") and model_id.endswith(")"):
            names = parts(model_id[8:-1])
            band = re.fullmatch(r"(.+)@(\d{1,3})-(\d{1,3})", names[0])
            if len(names) != 2 or band is None or not int(band[2]) <= int(band[3]) <= 100:
                raise SettingsError(f"model {model_id!r}: must be cascade(SMALL@LOW-HIGH,LARGE), both in percent")
            small, large = self._several(band[1], budget), self._several(names[1], budget)
            return Cascade(small, int(band[2]), int(band[3]), large)
        return self._single(model_id, budget)

    def _single(self, model_id: str, budget: Budget | None) -> Model:
        price = self._prices.of(model_id)
        with self._lock:
            if model_id not in self._built:
                provider = _provider(model_id, self._keys)
                if model_id.startswith("recorded:"):
                    # It takes no time, so its usage is always the same; what it cost once is not known.
                    conversation = Conversation(model_id, provider, clock=lambda: 0.0)
                else:
                    conversation = Conversation(model_id, provider, price)
                self._built[model_id] = conversation
            model: Model = self._built[model_id]
        if self._refusals is not None:
            model = ReportingRefusals(model, self._refusals)
        return Budgeted(model, price, budget) if budget else model


class Retried(Wrapper):
    """A model with up to ``attempts`` tries of transient failures; waits as asked, else twice as long each time.

    After a longer wait than ``LONGEST_SECONDS`` is asked for, the TransientError is raised, with its wait.
    """

    def __init__(
        self,
        model: Model,
        attempts: int = 3,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        super().__init__(model)
        self._attempts = attempts
        self._sleep = sleep

    def complete(self, prompt: Prompt, schema: type[T]) -> Reply[T]:
        usage = Usage()
        for attempt in range(1, self._attempts + 1):
            try:
                reply = self._model.complete(prompt, schema)
            except (ModelError, TransientError) as error:
                usage += error.usage or Usage()
                error.usage = usage if usage.calls else None
                if isinstance(error, ModelError | OperatorNeeded) or attempt == self._attempts:
                    raise
                wait = 2.0 ** (attempt - 1) if error.wait is None else error.wait
                if wait > LONGEST_SECONDS:
                    raise
                self._sleep(wait)
            else:
                return reply.model_copy(update={"usage": usage + reply.usage})
        raise AssertionError("attempts must be positive")


def parts(model_id: str) -> list[str]:
    """Split a list of ids at its commas, except inside parentheses."""
    segments, depth = [""], 0
    for char in model_id:
        depth += (char == "(") - (char == ")")
        if char == "," and depth == 0:
            segments.append("")
        else:
            segments[-1] += char
    return [part.strip() for part in segments]


def leaves(model_id: str) -> list[str]:
    """Return the ids of all single models in an id, without repetitions, in order."""
    leaf_ids: list[str] = []
    for part in parts(model_id):
        name = re.sub(r"@\d{1,3}-\d{1,3}$", "", part)
        if inner := re.fullmatch(r"(?:mean|cascade)\((.*)\)", name, re.DOTALL):
            leaf_ids += leaves(inner[1])
        elif not name.startswith("samples="):
            leaf_ids.append(name)
    return list(dict.fromkeys(leaf_ids))


def draws(model_id: str) -> Counter[str]:
    """Return how often a question is put to each single model at most, if no model fails: without fallbacks."""
    name = re.sub(r"@\d{1,3}-\d{1,3}$", "", parts(model_id)[0])
    inner = re.fullmatch(r"(?:mean|cascade)\((.*)\)", name, re.DOTALL)
    if inner is None:
        return Counter((name,))
    total, samples = Counter[str](), 1
    for part in parts(inner[1]):
        if part.startswith("samples="):
            samples = int(part.removeprefix("samples="))
        else:
            total += draws(part)
    return Counter({leaf: count * samples for leaf, count in total.items()})


def _provider(model_id: str, keys: ModelKeys) -> Provider:
    provider, _, name = model_id.partition(":")
    make = _PROVIDERS.get(provider)
    if make is None or not name:
        first, slash, rest = model_id.partition("/")
        suggestion = f"; did you mean {first}:{rest}?" if slash and first in _PROVIDERS and rest else ""
        raise SettingsError(
            f"model {model_id!r} (--model, BOUNCER_MODEL): must be one of {_FORMS}, or several separated by "
            f"commas{suggestion}"
        )
    return make(name, keys)


def _openai(name: str, keys: ModelKeys) -> Provider:
    from bot.models import openai

    variables = "OPENAI_API_KEY (or OPENAI_BASE_URL for a server of your own)"
    key = _key(keys.openai_api_key, keys.openai_base_url, f"model openai:{name}: set {variables}")
    return openai.connect(name, key, keys.openai_base_url, keys.bouncer_model_seconds)


def _anthropic(name: str, keys: ModelKeys) -> Provider:
    from bot.models import anthropic

    key = _key(keys.anthropic_api_key, keys.anthropic_base_url, f"model anthropic:{name}: set ANTHROPIC_API_KEY")
    return anthropic.connect(name, key, keys.anthropic_base_url, keys.bouncer_model_seconds)


def _key(secret: SecretStr | None, base_url: str | None, problem: str) -> str:
    """Return the key. Raises SettingsError with ``problem`` if there is none."""
    if secret and (key := secret.get_secret_value().strip()):
        return key
    # A compatible server of the operator's often wants no key; the providers always do.
    if base_url:
        return "none"
    raise SettingsError(problem)


def _recorded(name: str, keys: ModelKeys) -> Provider:
    from bot.models.recorded import Recorded

    file, _, model = name.partition("#")
    return Recorded(Path(file), model)


_PROVIDERS: dict[str, Callable[[str, ModelKeys], Provider]] = {
    "openai": _openai,
    "anthropic": _anthropic,
    "recorded": _recorded,
}

_FORMS = ", ".join(
    [
        *(f"{provider}:NAME" for provider in _PROVIDERS if provider != "recorded"),
        "recorded:FILE#NAME, mean(...), cascade(...)",
    ]
)
