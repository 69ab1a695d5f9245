"""What models cost: a table that an operator can replace, in US dollars per million tokens."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from pydantic import Field, ValidationError

from bot.core.frozen import Frozen
from bot.errors import SettingsError

PACKAGED = Path(__file__).parent / "prices.yml"
_FREE_PROVIDERS = ("local", "recorded", "scripted")
# gpt-4.1-2025-04-14, claude-haiku-4-5-20251001, claude-3-7-sonnet-latest: a snapshot costs what its model costs.
_SNAPSHOT = re.compile(r"-(\d{4}-\d{2}-\d{2}|20\d{6}|latest)$")


class Price(Frozen):
    """Of one model, in US dollars per million tokens; reasoning tokens count as output."""

    input: float = Field(ge=0)
    output: float = Field(ge=0)
    cached: float | None = Field(None, ge=0, description="input read from the provider's cache; None = as input")
    written: float | None = Field(None, ge=0, description="input written to that cache; None = as input")

    def cost(self, input_tokens: int, output_tokens: int, cached: int = 0, written: int = 0) -> float:
        """US dollars; ``cached`` and ``written`` are parts of ``input_tokens``."""
        read = cached * (self.input if self.cached is None else self.cached)
        kept = written * (self.input if self.written is None else self.written)
        rest = (input_tokens - cached - written) * self.input
        return (rest + read + kept + output_tokens * self.output) / 1_000_000


@dataclass(frozen=True)
class Prices:
    """Prices by model id (``provider:name``)."""

    models: Mapping[str, Price] = field(default_factory=dict)

    def of(self, model_id: str) -> Price | None:
        """None where no price is known: a cost is then unknown, not nought."""
        if model_id.partition(":")[0] in _FREE_PROVIDERS:
            return Price(input=0, output=0)
        return self.models.get(model_id) or self.models.get(_SNAPSHOT.sub("", model_id))


def load(file: Path | None = None) -> Prices:
    """The packaged table, with an operator's file laid over it; raises SettingsError that names file and entry."""
    packaged = _read(PACKAGED)
    return Prices({**packaged, **(_read(file) if file else {})})


def _read(file: Path) -> dict[str, Price]:
    try:
        content: Any = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"prices (BOUNCER_PRICES_FILE): {file} cannot be read: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise SettingsError(
            f"prices (BOUNCER_PRICES_FILE): {file} is not YAML: {' '.join(str(error).split())[:200]}"
        ) from None
    entries = content.get("models") if isinstance(content, dict) else None
    if not isinstance(entries, dict):
        raise SettingsError(f"prices (BOUNCER_PRICES_FILE): {file} needs a mapping under the key 'models'")
    return {str(model_id): _price(file, str(model_id), entry) for model_id, entry in entries.items()}


def _price(file: Path, model_id: str, entry: Any) -> Price:
    if not re.fullmatch(r"[a-z]+:\S+", model_id):
        raise SettingsError(f"prices (BOUNCER_PRICES_FILE): {file}: {model_id!r} is no model id (provider:name)")
    try:
        return Price.model_validate(entry)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise SettingsError(
            f"prices (BOUNCER_PRICES_FILE): {file}: {model_id}: {where or 'entry'}: {first['msg']}"
        ) from None
