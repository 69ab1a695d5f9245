"""The providers' batch APIs at half the price: requests out to a file, answers from a file into the cache.

A replay whose model is ``Pending`` writes one request for every question that the cache cannot answer and makes no
decision. The answers, imported, let the replay go on; where a handler asks a second question that depends on the
first answer, another round of export and import follows.

Each line has ``custom_id`` (the cache key) and ``body``, the request that a live call would send. OpenAI's Batch
API takes the exported file as it is. Anthropic's Message Batches want the body under the name ``params``, which
those lines carry as well: ``jq -s '{requests: map({custom_id, params})}' FILE`` is what its API takes.
"""

from __future__ import annotations

import json
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import click
from pydantic import BaseModel

from bot.cli import LazyGroup
from bot.cli.files import print_json
from bot.core.actions import Usage
from bot.core.errors import ModelError, OperatorError, TransientError
from bot.core.text import amount
from bot.models import anthropic, openai
from bot.models.budget import Prices, load_prices
from bot.models.conversation import Answer, Request, Unusable, cost, extract
from bot.models.protocol import Prompt, Reply
from evaluation.benchmark import benchmarks
from evaluation.cli import json_option
from evaluation.dataset import Row, read_rows
from evaluation.report.terminal import say
from evaluation.run.model import Cut, FolderStore, cache_key, is_key
from evaluation.run.runner import Postponed

T = TypeVar("T", bound=BaseModel)

#: What a batched call costs, as a share of the same call made at once (both providers).
PRICE_SHARE = 0.5


class Pending:
    """A Model that keeps each request, once, and postpones the task.

    ``form`` is ``openai`` or ``anthropic``. Raises OperatorError if the model is not that provider's.
    """

    def __init__(self, model_id: str, form: str) -> None:
        provider, _, name = model_id.partition(":")
        if provider != form or not name or "," in name:
            raise OperatorError(f"--format {form} needs one model {form}:NAME, not {model_id!r}")
        self.id = model_id
        self.lines: dict[str, str] = {}
        """The lines of the batch by cache key."""
        self._form = form

    def complete(self, prompt: Prompt, schema: type[T]) -> Reply[T]:
        name = cache_key(self.id, prompt, schema)
        self.lines[name] = json.dumps(request(self._form, self.id, prompt, schema))
        raise Postponed(f"not asked yet: {name} waits for the batch")


def request(form: str, model_id: str, prompt: Prompt, schema: type[BaseModel]) -> dict[str, Any]:
    """One line of a batch: exactly what a live call would send, under ``custom_id`` = the cache key."""
    name, model = cache_key(model_id, prompt, schema), model_id.partition(":")[2]
    request = Request(prompt, schema, prompt.effort)
    if form == "openai":
        body = openai.body(model, request, openai.capabilities(model))
        return {"custom_id": name, "method": "POST", "url": "/v1/chat/completions", "body": body}
    body = anthropic.body(model, request, anthropic.capabilities(model))
    return {"custom_id": name, "params": body, "body": body}


def import_results(source: str, store: FolderStore, prices: Prices) -> tuple[int, list[str]]:
    """Put a provider's result lines into the cache; return their number, and a line for each failed request.

    Raises OperatorError for a line that is no result of either provider.
    """
    count = 0
    failures: list[str] = []
    for row in read_rows(source):
        name = row.data.get("custom_id")
        if not isinstance(name, str) or not is_key(name):
            raise OperatorError(f"{row.where}: custom_id: not a key that ``batch export`` wrote")
        try:
            model_id, answer = _answer(row)
            if answer.finish == "length":
                provider, _, model = model_id.partition(":")
                capabilities = (openai if provider == "openai" else anthropic).capabilities(model)
                store.put(name, Cut(has_effort=capabilities.effort != "never").model_dump_json())
            store.put(name, json.dumps(_reply(model_id, answer, prices)))
        except (ModelError, TransientError, Unusable) as error:
            failures.append(f"{row.where}: {error}")
        else:
            count += 1
    return count, failures


def _reply(model_id: str, answer: Answer, prices: Prices) -> dict[str, Any]:
    """A ``Reply`` as JSON. Its value meets the schema when it is read: the schema is not known here.

    Raises Unusable if the text holds no JSON object, ModelError where the model refused or was cut off.
    """
    if answer.finish != "stop":
        raise ModelError(f"the answer ended with {answer.finish}", answer.finish)
    full = cost(answer, prices.of(model_id))
    usage = Usage(
        calls=1,
        input_tokens=answer.input_tokens,
        output_tokens=answer.output_tokens,
        cached_tokens=answer.cached_tokens,
        cost_usd=None if full is None else PRICE_SHARE * full,
    )
    return {
        "value": extract(answer.text),
        "text": answer.text,
        "usage": usage.model_dump(mode="json"),
        "finish_reason": answer.finish,
        "model": model_id,
    }


def _answer(row: Row) -> tuple[str, Answer]:
    """``(model id, answer)``; raises ModelError or TransientError for a request that failed."""
    result, response, error = (row.data.get(field) for field in ("result", "response", "error"))
    if isinstance(result, dict):
        if result.get("type") != "succeeded":
            _failed(result.get("type"), result.get("error"))
        message = result.get("message")
        return f"anthropic:{_model(message, row)}", anthropic.answer(json.dumps(message).encode())
    if error is not None:
        _failed("error", error)
    if not isinstance(response, dict):
        raise OperatorError(f"{row.where}: neither a result of OpenAI's Batch API nor of Anthropic's")
    if response.get("status_code") != 200:
        _failed(f"status {response.get('status_code')}", response.get("body"))
    body = response.get("body")
    return f"openai:{_model(body, row)}", openai.answer(json.dumps(body).encode())


def _model(body: Any, row: Row) -> str:
    model = body.get("model") if isinstance(body, dict) else None
    if not isinstance(model, str) or not model:
        raise OperatorError(f"{row.where}: the result names no model")
    return model


def _failed(kind: Any, detail: Any) -> NoReturn:
    raise ModelError(f"{kind}: {json.dumps(detail)[:200]}", "unavailable")


@dataclass(frozen=True)
class Export:
    """Write requests instead of asking: the option ``--format`` puts this into the command's context."""

    form: str


class Exports(LazyGroup):
    """``batch export``: the replays of the benchmarks, which write their questions down instead of asking them."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        replay = super().get_command(ctx, cmd_name)
        return replay and _exporting(replay)


def _exporting(replay: click.Command) -> click.Command:
    """A replay's command with ``--format``, and a file of requests in place of the run."""

    def chosen(context: click.Context, _option: click.Parameter, form: str) -> None:
        context.obj = Export(form)

    command = copy(replay)
    command.help = "Write one request a line for every question of the replay that the cache cannot answer."
    form = click.Option(
        ["--format"],
        type=click.Choice(["openai", "anthropic"]),
        required=True,
        expose_value=False,
        callback=chosen,
        help="Whose batch API the file is for.",
    )
    out = click.Option(["--out"], required=True, metavar="FILE", help="The file of requests.")
    cache = click.Option(["--cache"], required=True, metavar="DIR", help="Folder where the answers will be put.")
    ours = {"out": out, "cache": cache}
    command.params = [form, *(ours.get(option.name or "", option) for option in replay.params)]
    return command


export_command = Exports(
    "export",
    "Write the requests of a replay that the cache cannot answer to a file.",
    {name: entry.commands["replay"] for name, entry in benchmarks().items() if entry.batched},
)


@click.command("import")
@click.argument("file", metavar="FILE")
@click.option("--cache", required=True, metavar="DIR", help="The folder that replay --cache reads.")
@json_option
def import_command(file: str, cache: str, as_json: bool) -> int:
    """Put the result lines of OpenAI's Batch API or Anthropic's Message Batches into the cache."""
    from bot import settings

    prices = load_prices(settings.load().bouncer_prices_file)
    count, failures = import_results(file, FolderStore(Path(cache)), prices)
    if not count and not failures:
        raise OperatorError(f"{file} holds no result")
    if as_json:
        print_json({"cache": cache, "kept": count, "failures": failures})
    else:
        requests = amount(len(failures), "request has", "requests have")
        say(f"{amount(count, 'answer is', 'answers are')} in {cache}, {requests} none")
        for failure in failures:
            say(failure)
    return 1 if failures and not count else 0
