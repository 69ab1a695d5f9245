"""A model id becomes a model, or an error of one line names the missing part."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from pydantic import SecretStr
from pytest_httpserver import HTTPServer

from bot import app
from bot.core.errors import SettingsError
from bot.models.budget import Budget, Limit, MemoryBudget, Price, Prices, load_prices
from bot.models.registry import ModelKeys, Models
from bot.settings import Settings
from tests.bot.models.replies import CLEAR, PROMPT, Verdict

KEYS = ModelKeys(openai_api_key=SecretStr("sk-canary"), anthropic_api_key=SecretStr("sk-ant-canary"))


@pytest.mark.parametrize("model_id", ["openai:gpt-5-mini", "anthropic:claude-sonnet-4-5", "openai:org/model:8b"])
def test_a_valid_id_is_built_without_a_request(model_id: str) -> None:
    assert Models(KEYS).build(model_id).id == model_id


@pytest.mark.parametrize(
    ("model_id", "message"),
    [
        ("", "no model is named: use --model or BOUNCER_MODEL, for example openai:gpt-5-mini"),
        ("gpt-5", "model 'gpt-5' (--model, BOUNCER_MODEL): must be one of openai:NAME, anthropic:NAME, recorded:"),
        ("openai:", "model 'openai:' (--model, BOUNCER_MODEL): must be one of"),
        ("mistral:large", "model 'mistral:large' (--model, BOUNCER_MODEL): must be one of"),
        (",openai:gpt-5-mini", "model '' (--model, BOUNCER_MODEL): must be one of"),
        ("openai:gpt-5", "set OPENAI_API_KEY"),
        ("anthropic:claude-x", "set ANTHROPIC_API_KEY"),
        ("local:smollm2", "model 'local:smollm2' (--model, BOUNCER_MODEL): must be one of"),
        ("recorded:/nowhere/x.jsonl#m", "/nowhere/x.jsonl cannot be read"),
    ],
)
def test_a_missing_key_or_file_is_named(model_id: str, message: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(message)):
        Models(ModelKeys()).build(model_id)


def test_a_compatible_server_needs_no_key(httpserver: HTTPServer) -> None:
    content = {"choices": [{"message": {"content": CLEAR.model_dump_json()}, "finish_reason": "stop"}]}
    httpserver.expect_oneshot_request("/v1/chat/completions").respond_with_json(content)
    keys = ModelKeys(openai_base_url=httpserver.url_for("/v1"))
    model = Models(keys).build("openai:qwen3:32b")
    reply = model.complete(PROMPT, Verdict)
    assert reply.value == CLEAR
    assert reply.usage.cost_usd is None


def test_keys_are_not_shown() -> None:
    assert "canary" not in repr(KEYS) + str(KEYS) + KEYS.model_dump_json()


class NextSettings(Settings):
    """The settings with the key of one more provider."""

    mistral_api_key: SecretStr | None = None


@pytest.mark.parametrize(
    ("keys", "signing_key"),
    [
        ({}, b""),
        ({"mistral_api_key": "m"}, b"m"),
        ({"mistral_api_key": "m", "anthropic_api_key": "a"}, b"a"),
        ({"mistral_api_key": "m", "anthropic_api_key": "a", "openai_api_key": "o"}, b"o"),
        (
            {"mistral_api_key": "m", "anthropic_api_key": "a", "openai_api_key": "o", "bouncer_marker_key": "k"},
            b"k",
        ),
    ],
)
def test_the_first_declared_key_signs_markers(keys: dict[str, str], signing_key: bytes) -> None:
    settings = NextSettings.model_validate(keys)
    assert settings.marker_key == signing_key
    assert set(settings.withheld) == {key for name, key in keys.items() if name.endswith("_api_key")}


def test_models_of_one_registry_share_connections(tmp_path: Path) -> None:
    file = tmp_path / "r.jsonl"
    file.write_text(json.dumps({"model": "m", "subject": "s"}))
    models = Models(KEYS)
    assert models.build(f"recorded:{file}") is models.build(f"recorded:{file}")


def test_a_budget_needs_every_price_of_the_chain(tmp_path: Path) -> None:
    file = tmp_path / "r.jsonl"
    file.write_text(json.dumps({"model": "m", "subject": "s"}))
    budget = Budget(MemoryBudget(), (Limit(scope="all", usd=1),))
    Models(KEYS).build(f"openai:gpt-5-mini,recorded:{file}", budget)
    with pytest.raises(SettingsError, match="no price is known"):
        Models(KEYS).build("openai:gpt-5-mini,openai:brand-new", budget)


def test_an_operator_can_record_and_replay_answers(httpserver: HTTPServer, tmp_path: Path) -> None:
    file = tmp_path / "said.jsonl"
    content = {"choices": [{"message": {"content": CLEAR.model_dump_json()}, "finish_reason": "stop"}]}
    httpserver.expect_oneshot_request("/v1/chat/completions").respond_with_json(content)
    settings = Settings(openai_base_url=httpserver.url_for("/v1"), bouncer_record_file=file, _env_file=None)
    reply = app.build_model(settings, "openai:qwen3").complete(PROMPT, Verdict)
    again = app.build_model(Settings(_env_file=None), f"recorded:{file}#openai:qwen3").complete(PROMPT, Verdict)
    assert again.value == reply.value


# --- prices ---------------------------------------------------------------------------------------------


def test_the_packaged_prices_can_be_read() -> None:
    table = load_prices()
    assert table.of("openai:gpt-5-mini") is not None
    assert all(price.output >= price.input for price in table.models.values())


def test_a_snapshot_costs_what_its_model_costs() -> None:
    table = Prices(
        models={"openai:gpt-4.1": Price(input=2, output=8), "anthropic:claude-x": Price(input=1, output=5)}
    )
    assert table.of("openai:gpt-4.1-2025-04-14") == table.of("openai:gpt-4.1") is not None
    assert table.of("anthropic:claude-x-20251001") == table.of("anthropic:claude-x-latest") is not None
    assert table.of("openai:gpt-4.1-mini") is None


def test_an_unknown_price_is_unknown_and_a_recorded_reply_is_free() -> None:
    assert load_prices().of("openai:brand-new") is None
    for free in ("recorded:x#y", "scripted:demo"):
        assert load_prices().of(free) == Price(input=0, output=0)


def test_an_operators_file_is_laid_over_the_packaged_one(tmp_path: Path) -> None:
    file = tmp_path / "prices.yml"
    file.write_text(
        "models:\n  openai:gpt-5-mini: {input: 9, output: 99}\n  openai:mine: {input: 0.5, output: 1}\n"
    )
    table = load_prices(file)
    assert table.of("openai:gpt-5-mini") == Price(input=9, output=99)
    assert table.of("openai:mine") == Price(input=0.5, output=1)
    assert table.of("openai:gpt-5") is not None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not YAML"),
        ("[]", "the file: must be a mapping of keys"),
        ("models: 3", "models: must be a mapping of keys"),
        ("models: {gpt-5: {input: 1, output: 1}}", "'gpt-5' is no model id"),
        ("models: {'openai:x': {input: -1, output: 1}}", "openai:x.input: must be greater"),
        ("models: {'openai:x': {input: 1}}", "openai:x.output: Field required"),
        ("models: {'openai:x': 3}", "openai:x: must be a mapping of keys"),
    ],
)
def test_a_wrong_price_file_is_one_line_that_names_it(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "prices.yml"
    file.write_text(text)
    with pytest.raises(SettingsError) as caught:
        load_prices(file)
    assert message in str(caught.value)
    assert str(file) in str(caught.value)


def test_a_price_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"gone\.yml cannot be read"):
        load_prices(tmp_path / "gone.yml")
