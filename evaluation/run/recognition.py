"""Ask with every answer how well the model knows the task from elsewhere. Used in evaluation alone.

A published bug may stand, with its fix, in what a model was trained on. The paper's prompts are asked as they are.
"""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Any, TypeVar, cast

from pydantic import BaseModel, Field, create_model

from bot.features.review.doubt import DoubtReply
from bot.features.shared.findings import Grade, Reported, ReviewReply, most_familiar
from bot.features.triage.judgement import InputReply
from bot.features.verify.judgement import OutputReply, RubricReply
from bot.models.protocol import Model, Prompt, Reply, Wrapper
from bot.reproduction.drafting import Draft

T = TypeVar("T", bound=BaseModel)

#: What is added to the system part of a question.
SENTENCE = (
    "Say last, in `recognised`, whether you know this very issue or change from elsewhere than the text that you "
    "are shown. That you know the project, its code or its people does not count. `no`: you do not know it. "
    "`vaguely`: it seems familiar, and you could name neither the fix nor the discussion. `knows_outcome`: you "
    "could name the fix, the discussion or what became of it without the text. Say in `published` whether you "
    "know the text from a published data set, such as a benchmark. Both are kept for the record and weigh "
    "nothing; answer everything else from what you are shown."
)
#: What is added for a review.
OF_FINDINGS = "Say it of every finding too, in its own `recognised`: whether you know this very defect."

#: The answers that settle a task; a second question about one of them need not ask again.
_ANSWERS = (InputReply, OutputReply, RubricReply, ReviewReply, DoubtReply, Draft)


class Recognition(Wrapper):
    """A Model that asks it with every answer to one task."""

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self._grades: list[Grade] = []
        self._published: list[bool] = []

    def complete(self, prompt: Prompt, schema: type[T]) -> Reply[T]:
        if schema not in _ANSWERS:
            return self._model.complete(prompt, schema)
        sentences = f"{SENTENCE} {OF_FINDINGS}" if schema is ReviewReply else SENTENCE
        extended = prompt.model_copy(update={"system": f"{prompt.system}\n\n{sentences}"})
        reply = self._model.complete(extended, cast("type[T]", _asking(schema)))
        if (grade := getattr(reply.value, "recognised", None)) is not None:
            self._grades.append(grade)
        if (published := getattr(reply.value, "published", None)) is not None:
            self._published.append(published)
        return reply

    def details(self) -> dict[str, Any]:
        """Return the details for the record; empty if no answer said anything."""
        published = {"published": any(self._published)} if self._published else {}
        return {"recognised": most_familiar(self._grades), **published} if self._grades else published


def prompt_hash() -> str:
    """Identifies what is asked, as ``Prompts.hash`` does for a prompt's file."""
    return hashlib.sha256(f"{SENTENCE}\0{OF_FINDINGS}".encode()).hexdigest()[:16]


@cache
def _asking(schema: type[BaseModel]) -> type[BaseModel]:
    """The schema with both fields behind all others; an answer that was recorded without them is still one."""
    more: dict[str, Any] = {
        "recognised": (Grade | None, Field(None, description="if you know this very issue or change")),
        "published": (bool | None, Field(None, description="if you know the text from a published data set")),
    }
    if schema is ReviewReply:
        grade_field = Field(None, description="if you know this very defect from elsewhere")
        finding = create_model("Reported", __base__=Reported, recognised=(Grade | None, grade_field))
        more["findings"] = (tuple[finding, ...], ReviewReply.model_fields["findings"])
    return create_model(schema.__name__, __base__=schema, **more)
