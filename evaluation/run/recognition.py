"""Ask with every answer if the model knows the task from elsewhere. Used in evaluation alone.

A published bug may stand, with its fix, in what a model was trained on. The paper's prompts are asked as they are.
"""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Any, TypeVar, cast

from pydantic import BaseModel, Field, create_model

from bot.features.shared.findings import ReviewReply
from bot.features.triage.judgement import InputReply
from bot.features.verify.judgement import OutputReply
from bot.models.protocol import Model, Prompt, Reply
from bot.reproduction.drafting import Draft

T = TypeVar("T", bound=BaseModel)

#: What is added to the system part of a question.
SENTENCE = (
    "Say last, in `recognised`, whether you know this very issue or change, or what became of it, from elsewhere "
    "than the text that you are shown: true only where you could name the fix or the discussion without it. "
    "It is kept for the record and weighs nothing; answer everything else from what you are shown."
)

#: The answers that settle a task; a second question about one of them need not ask again.
_ANSWERS = (InputReply, OutputReply, ReviewReply, Draft)


class Recognition:
    """A Model that asks it with every answer to one task."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._said: list[bool] = []

    @property
    def id(self) -> str:
        return self._model.id

    def complete(self, prompt: Prompt, schema: type[T]) -> Reply[T]:
        if schema not in _ANSWERS:
            return self._model.complete(prompt, schema)
        extended = prompt.model_copy(update={"system": f"{prompt.system}\n\n{SENTENCE}"})
        reply = self._model.complete(extended, cast("type[T]", _asking(schema)))
        recognised = getattr(reply.value, "recognised", None)
        if recognised is not None:
            self._said.append(recognised)
        return reply

    def details(self) -> dict[str, Any]:
        """Return the details for the record; empty if no answer said anything."""
        return {"recognised": any(self._said)} if self._said else {}


def prompt_hash() -> str:
    """Identifies what is asked, as ``Prompts.hash`` does for a prompt's file."""
    return hashlib.sha256(SENTENCE.encode()).hexdigest()[:16]


@cache
def _asking(schema: type[BaseModel]) -> type[BaseModel]:
    """The schema with the field behind all others; an answer that was recorded without it is still one."""
    described = Field(
        None, description="whether you know this very issue or change, or its outcome, from elsewhere"
    )
    return create_model(schema.__name__, __base__=schema, recognised=(bool | None, described))
