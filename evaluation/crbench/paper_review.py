"""The paper's two reviewers (CR-Bench, section 6, listings 4 and 5): the whole change, and every comment counts.

They are not our reviewer with other settings. The reply has the paper's four fields in its order, nothing is
checked against the change, nothing is held back, and there is no limit on size: a change that the model refuses is
a task without an answer.
"""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from bot.core.config import ReviewConfig
from bot.core.errors import ModelError
from bot.core.frozen import Frozen, Lenient
from bot.features.shared.findings import Severity
from bot.models.prompts import Prompts
from bot.models.protocol import Model, Prompt
from evaluation.benchmark import Session
from evaluation.crbench.task import ReviewTask
from evaluation.run.runner import Outcome
from evaluation.run.staging import Heard

#: Strategy -> the prompts that it asks: the first look and, for Reflexion, the further ones.
PROMPTS = {"single-shot": ("crbench.single-shot",), "reflexion": ("crbench.reflexion", "crbench.reflect")}


class PaperComment(Lenient):
    """One comment, with the fields of listings 4 and 5."""

    file: str = Field(description="path of the file")
    line: int | None = Field(description="number of the line, approximately")
    comment: str = Field(description="the problem")
    severity: Annotated[Severity, BeforeValidator(lambda value: str(value).strip().lower())]


class PaperReview(Frozen):
    """The list of listings 4 and 5; providers want an object around it."""

    comments: tuple[PaperComment, ...]


def paper_session(config: ReviewConfig, prompts: Prompts) -> Session[ReviewTask]:
    """The paper's reviewer of that strategy, for every task."""
    names = PROMPTS[config.strategy]
    rounds = config.iterations if config.strategy == "reflexion" else 0
    shaping = {"strategy": config.strategy} | ({"iterations": rounds} if rounds else {})
    return Session(
        run=lambda task, model: _review(task, model, prompts, names, rounds),
        config={"preset": "paper", "review": shaping},
        prompts={name: prompts.hash(name) for name in names},
    )


def _review(task: ReviewTask, model: Model, prompts: Prompts, names: tuple[str, ...], rounds: int) -> Outcome:
    """Ask once, and ``rounds`` times more with the last comments at hand; the last usable answer counts."""
    assert task.pull is not None, "read_tasks gives complete tasks only"
    heard = Heard(model, task.instance_id)
    change = {
        "repository": task.repo,
        "number": task.pull.number,
        "title": task.pull.title,
        "description": task.pull.body,
        "change": task.pull.diff,
    }
    review: PaperReview | None = None
    try:
        for iteration in range(rounds + 1):
            earlier: dict[str, Any] = {}
            if review is not None:
                plain = [comment.model_dump(mode="json") for comment in review.comments]
                earlier = {"iteration": iteration, "previous": plain, "previous_json": json.dumps(plain, indent=1)}
            system, user = prompts.render(names[min(iteration, 1)], **change, **earlier)
            prompt = Prompt(purpose="review", system=system, user=user, subject=task.instance_id)
            review = heard.complete(prompt, PaperReview).value
    except ModelError as error:
        if heard.unasked is not None:
            raise
        if review is None:
            return Outcome(usage=heard.usage, lost=heard.lost, error=f"model:{error.reason}: {error}")
    assert review is not None, "the first answer came"
    comments = [comment.model_dump(mode="json") for comment in review.comments]
    return Outcome(raw_reply=heard.text, usage=heard.usage, details={"comments": comments})
