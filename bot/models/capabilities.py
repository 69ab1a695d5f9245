"""How a model wants to be asked: known by its name, else tried, and learned from a refusal."""

from __future__ import annotations

import re
from collections.abc import Container
from typing import Literal

from bot.core.frozen import Frozen

# OpenAI's own, and the open families that think before they answer.
_REASONING = re.compile(
    r"(^|/)(o\d|gpt-([6-9]|[1-9]\d)|gpt-5(?!.*chat)|codex)|qwen-?3|qwq|deepseek-r|gpt-oss|magistral|thinking|reason"
)
_PLAIN = re.compile(r"(^|/)(gpt-4|gpt-3|gpt-5.*chat|chatgpt)|gemma|llama|smollm|mistral|instruct")
# Before structured output: they are given the schema as a tool that they must call.
_TOOL_ONLY = re.compile(
    r"(^|/)(gpt-3\.5|gpt-4($|-\d{4}|-turbo|-32k|-vision)"
    r"|claude-(2|3|instant|(opus|sonnet)-4-0|(opus|sonnet)-4-20))"
)
# Claude takes a temperature up to 4.6; from 4.7 on it refuses one and is steered by effort alone.
_CLAUDE_PLAIN = re.compile(r"claude-(2|3|instant|(opus|sonnet|haiku)-4-([0-6]($|-)|20))")


class Capabilities(Frozen):
    """What may stand in a request to a model."""

    temperature: bool = True
    effort: Literal["always", "lowered", "never"] = "never"
    """``lowered``: said only when less than usual is asked for; it is not known whether the model listens."""
    native_schema: bool = True
    """False: the schema is put as a tool that must be called."""
    limits: tuple[str, ...] = ("max_completion_tokens", "max_tokens")
    """The server's words for the completion limit, the one to use first."""


def of_openai(name: str, *, compatible: bool = False) -> Capabilities:
    """For OpenAI's models, and for whatever runs behind a compatible server."""
    name = name.lower()
    plain = bool(_PLAIN.search(name))
    reasons = not plain and bool(_REASONING.search(name))
    # The newer word for the limit is OpenAI's own; other servers know the older one.
    limits = ("max_tokens", "max_completion_tokens") if compatible and not reasons else Capabilities().limits
    return Capabilities(
        temperature=not reasons,
        effort="always" if reasons else "never" if plain else "lowered",
        native_schema=not _TOOL_ONLY.search(name),
        limits=limits,
    )


def of_claude(name: str) -> Capabilities:
    """For Anthropic's models; a name that is not known is taken for a new one."""
    plain = bool(_CLAUDE_PLAIN.match(name.lower()))
    return Capabilities(
        temperature=plain,
        effort="never" if plain else "always",
        native_schema=not _TOOL_ONLY.search(name.lower()),
        limits=("max_tokens",),
    )


def learned(known: Capabilities, sent: Container[str], said: str) -> Capabilities | None:
    """What is left after a server refused something in these words; None where it named nothing to leave out.

    Each step leaves something for good, so that asking again ends.
    """
    if known.temperature and "temperature" in sent and "temperature" in said:
        return known.model_copy(update={"temperature": False})
    if known.effort != "never" and ("effort" in said or (not known.native_schema and "output_config" in said)):
        return known.model_copy(update={"effort": "never"})
    if len(known.limits) > 1 and known.limits[0] in said:
        return known.model_copy(update={"limits": known.limits[1:]})
    if known.native_schema and re.search(
        r"response_format|json_schema|output_config|output_format|structured", said
    ):
        return known.model_copy(update={"native_schema": False})
    return None
