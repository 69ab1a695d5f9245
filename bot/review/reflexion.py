"""Look, then look again with the last findings at hand (CR-Bench, 6: A_2; Reflexion, Shinn et al. 2023)."""

from __future__ import annotations

import json

from bot.errors import ModelError
from bot.models.protocol import Model
from bot.prompts import Prompts
from bot.review.findings import Reported, ReviewReply
from bot.review.quotes import bare
from bot.review.single_shot import Question, Round
from bot.review.single_shot import look as first_look

NAME = "review.reflexion"


def look(model: Model, prompts: Prompts, question: Question, iterations: int) -> tuple[Round, ...]:
    """The first look and at most ``iterations`` further ones; stops when a round changes nothing.

    A later round that yields no usable answer ends the looking, and what was found before it stands.
    Raises ModelError or TransientError for the first look, TransientError for any.
    """
    rounds = [*first_look(model, prompts, question)]
    for number in range(1, iterations + 1):
        previous = rounds[-1].reply.value.findings
        prompt = question.prompt(prompts, NAME, round=number, previous=previous, previous_json=_as_json(previous))
        try:
            rounds.append(Round(prompt.hash, model.complete(prompt, ReviewReply)))
        except ModelError:
            break
        if _substance(rounds[-1].reply.value.findings) == _substance(previous):
            break
    return tuple(rounds)


def _as_json(findings: tuple[Reported, ...]) -> str:
    return json.dumps([finding.model_dump(mode="json") for finding in findings], ensure_ascii=False, indent=1)


def _substance(findings: tuple[Reported, ...]) -> frozenset[tuple[str, str, str, str]]:
    """What would be posted, whatever the words: a second look that only rephrases has changed nothing."""
    return frozenset((each.path, bare(each.quote), each.category, each.severity) for each in findings)
