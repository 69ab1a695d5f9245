"""Each model of the chain, by itself: asked for one word, in a schema."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from bot import app
from bot.cli.doctor.diagnosis import Diagnosis, fail, note, ok
from bot.core.frozen import Frozen
from bot.errors import ModelError, SettingsError, TransientError
from bot.models.budget import Budget, MemoryBudget
from bot.models.protocol import Prompt
from bot.models.registry import Models, leaves
from bot.ops.settings import Settings


class Word(Frozen):
    """The smallest reply."""

    word: Literal["ok"]


#: Room for the thoughts of a reasoning model; the answer itself is a handful of tokens.
QUESTION = Prompt(
    purpose="doctor", system="You answer in JSON.", user='Answer {"word": "ok"}.', max_tokens=500, effort="low"
)


def models(settings: Settings) -> Iterator[Diagnosis]:
    """The models of BOUNCER_MODEL and BOUNCER_JUDGE_MODEL."""
    try:
        built = app.build_models(settings)
    except SettingsError as error:
        yield fail("model", f"cannot be built: {error}")
        return
    chain = leaves(settings.bouncer_model) if settings.bouncer_model else []
    for model_id in chain:
        yield _budget(model_id, built, settings)
    for model_id in dict.fromkeys([*chain, *leaves(settings.bouncer_judge_model or "")]):
        if model_id:
            yield _ask(model_id, built)


def _budget(model_id: str, built: Models, settings: Settings) -> Diagnosis:
    limits = app.limits(settings, "owner/name")
    dollars = ", ".join(
        f"{limit.scope.partition(':')[0]} {limit.usd:.2f}" for limit in limits if limit.usd is not None
    )
    try:
        built.build(model_id, Budget(MemoryBudget(), limits))
    except SettingsError as error:
        return fail("budget", str(error))
    return ok("budget", f"{model_id}: USD a day: {dollars}" if dollars else f"{model_id}: none in USD")


def _ask(model_id: str, built: Models) -> Diagnosis:
    subject = f"model {model_id}"
    if model_id.startswith("recorded:"):
        return note(subject, "answers from a file and is not asked")
    try:
        reply = built.build(model_id).complete(QUESTION, Word)
    except SettingsError as error:
        return fail("model", str(error))
    except TransientError as error:
        return fail(subject, str(error), "try again; check its base URL and the network")
    except ModelError as error:
        return fail(subject, str(error), "check its name, key and base URL")
    usage = reply.usage
    cost = "price not known" if usage.cost_usd is None else f"{usage.cost_usd:.6f} USD"
    tokens = usage.input_tokens + usage.output_tokens
    return ok(subject, f"answers in the schema ({usage.seconds:.1f} s, {tokens} tokens, {cost})")
