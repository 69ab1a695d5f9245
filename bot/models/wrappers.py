"""Several models that answer as one: a fallback chain, a mean, a cascade from cheap to expensive.

A probability is every whole-number field of the reply's schema whose name starts with ``p_``. Schemas without one
(a review, a drafted test) have no mean: the models take turns, and a cascade asks its second model.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pydantic import BaseModel, TypeAdapter, ValidationError

from bot.core.actions import Usage
from bot.core.errors import BudgetExceeded, ModelError, OperatorNeeded, SettingsError, TransientError
from bot.core.io_limits import read_file
from bot.models.protocol import Model, Prompt, Reply, T, Voice

#: The largest file of maps, bytes.
_LARGEST = 16 << 20
#: By model id and purpose (``triage``, ``verify``): points (stated percent, true percent) of a rising map.
Maps = Mapping[str, Mapping[str, Sequence[tuple[float, float]]]]
_MAPS = TypeAdapter(dict[str, dict[str, tuple[tuple[float, float], ...]]])


class Fallback:
    """A chain of models, asked in order; the reply names the model that answered.

    Every failure falls through, except a spent budget, which ends the chain. If all fail, the error
    is a TransientError if one of them may succeed later, else the last ModelError. The usage of failed
    models is part of the reply's, or of the error's.
    """

    def __init__(self, models: tuple[Model, ...]) -> None:
        self._models = models

    @property
    def id(self) -> str:
        return ",".join(model.id for model in self._models)

    def complete(self, prompt: Prompt, schema: type[T]) -> Reply[T]:
        failures: list[ModelError | TransientError] = []
        for model in self._models:
            try:
                reply = model.complete(prompt, schema)
            except BudgetExceeded as error:
                error.usage = spent([*failures, error])
                raise
            except (ModelError, TransientError) as error:
                failures.append(error)
            else:
                return reply.model_copy(update={"usage": (spent(failures) or Usage()) + reply.usage})
        raise failed(failures)


def spent(failures: Sequence[ModelError | TransientError]) -> Usage | None:
    """Return the total usage of failed questions; None if it is unknown."""
    usages = [error.usage for error in failures if error.usage]
    return sum(usages, Usage()) if usages else None


def failed(failures: Sequence[ModelError | TransientError]) -> ModelError | TransientError:
    """Combine several errors: a TransientError if one of them is one."""
    if len(failures) == 1:
        return failures[0]
    message = "; ".join(str(error) for error in failures)
    transient = [error for error in failures if isinstance(error, TransientError)]
    final: ModelError | TransientError
    if any(isinstance(error, OperatorNeeded) for error in transient):
        final = OperatorNeeded(message)
    elif transient:
        # The shortest wait counts; a model that named none can be asked at any time.
        waits = [error.wait for error in transient]
        final = TransientError(message, None if None in waits else min(wait or 0.0 for wait in waits))
    else:
        last = failures[-1]
        assert isinstance(last, ModelError)
        final = ModelError(message, last.reason)
    final.usage = spent(failures)
    return final


class Mean:
    """Several models, asked in parallel: the mean of their probabilities, mapped by model.

    Everything else is the answer of the voice nearest to the mean. A voice that fails is named in ``Reply.voices``
    and the rest speak; if none is left, the error is that of a fallback chain. ``samples`` draws are taken of
    each voice. The usage is the sum of all.
    """

    def __init__(self, models: Sequence[Model], samples: int = 1, maps: Maps | None = None) -> None:
        self._models = tuple(models)
        self._samples = samples
        self._maps = maps or {}

    @property
    def id(self) -> str:
        names = [model.id for model in self._models]
        if self._samples > 1:
            names.append(f"samples={self._samples}")
        return f"mean({','.join(names)})"

    def complete(self, prompt: Prompt, schema: type[T]) -> Reply[T]:
        if not probabilities(schema):
            start = prompt.turn % len(self._models)
            return Fallback(self._models[start:] + self._models[:start]).complete(prompt, schema)
        draws = [(model, self._draw(prompt, number)) for model in self._models for number in range(self._samples)]
        with ThreadPoolExecutor(len(draws)) as pool:
            futures = [pool.submit(_answer, model, draw, schema) for model, draw in draws]
            answers = [future.result() for future in futures]
        _check_budget(answers)
        replies = [answer for answer in answers if isinstance(answer, Reply)]
        failures = [answer for answer in answers if not isinstance(answer, Reply)]
        if not replies:
            raise failed(failures)
        names = [model.id for model, _ in draws]
        voices = [_voice(name, answer, schema) for name, answer in zip(names, answers, strict=True)]
        usage = sum((reply.usage for reply in replies), spent(failures) or Usage())
        # The maps were fitted on the first probability, which the threshold uses.
        first, *others = probabilities(schema)
        mean = {first: self._mean(first, voices, prompt.purpose)}
        mean |= {name: self._mean(name, voices, None) for name in others}
        nearest = min(replies, key=lambda reply: _distance(reply.value, mean))
        value = nearest.value.model_copy(
            update={name: percent for name, percent in mean.items() if percent is not None}
        )
        return nearest.model_copy(
            update={"value": value, "usage": usage, "model": self.id, "voices": tuple(voices)}
        )

    def _draw(self, prompt: Prompt, number: int) -> Prompt:
        if self._samples == 1:
            return prompt
        # At temperature 0 all draws would be the same.
        return prompt.model_copy(update={"sample": prompt.sample * self._samples + number, "temperature": None})

    def _mean(self, name: str, voices: Sequence[Voice], purpose: str | None) -> int | None:
        percents: list[float] = []
        for voice in voices:
            if name in voice.probabilities:
                percent, points = voice.probabilities[name], self._maps.get(voice.model, {}).get(purpose or "")
                percents.append(interpolated(percent, *zip(*points, strict=True)) if points else percent)
        return round(sum(percents) / len(percents)) if percents else None


class Cascade:
    """A small model, and a large one only if the first probability is from ``low`` to ``high`` percent.

    The reply of ``large`` then counts alone. It is also asked if ``small`` fails or gives no probability; if it
    fails itself, the reply of ``small`` counts. ``Reply.voices`` names the models that were asked.
    """

    def __init__(self, small: Model, low: int, high: int, large: Model) -> None:
        self._small, self._low, self._high, self._large = small, low, high, large

    @property
    def id(self) -> str:
        return f"cascade({self._small.id}@{self._low}-{self._high},{self._large.id})"

    def complete(self, prompt: Prompt, schema: type[T]) -> Reply[T]:
        names = probabilities(schema)
        if not names:
            return self._large.complete(prompt, schema)
        first = _answer(self._small, prompt, schema)
        _check_budget([first])
        voices = [_voice(self._small.id, first, schema)]
        usage = first.usage or Usage()
        percent = voices[0].probabilities.get(names[0])
        if isinstance(first, Reply) and percent is not None and not self._low <= percent <= self._high:
            return first.model_copy(update={"voices": tuple(voices)})
        second = _answer(self._large, prompt, schema)
        _check_budget([first, second])
        voices.append(_voice(self._large.id, second, schema))
        total = {"usage": usage + (second.usage or Usage()), "voices": tuple(voices)}
        if isinstance(second, Reply):
            return second.model_copy(update=total)
        if isinstance(first, Reply):
            return first.model_copy(update=total)
        raise failed([first, second])


def probabilities(schema: type[BaseModel]) -> tuple[str, ...]:
    """Return the fields of a schema that are probabilities in percent."""
    return tuple(name for name in schema.model_fields if name.startswith("p_"))


def load_maps(file: Path) -> Maps:
    """Load the maps of ``bouncer-eval calibrate --maps``; raises SettingsError that names the fault."""
    try:
        maps = _MAPS.validate_json(read_file(file, _LARGEST))
    except OSError as error:
        raise SettingsError(f"BOUNCER_MAPS_FILE: {file} cannot be read: {error.strerror}") from None
    except ValidationError:
        raise SettingsError(
            f"BOUNCER_MAPS_FILE: {file} must hold model -> purpose -> pairs of percents, as JSON"
        ) from None
    return {
        model: {name: points for name, points in by_purpose.items() if points}
        for model, by_purpose in maps.items()
    }


def _answer(model: Model, prompt: Prompt, schema: type[T]) -> Reply[T] | ModelError | TransientError:
    try:
        return model.complete(prompt, schema)
    except (ModelError, TransientError) as error:
        return error


def _check_budget(answers: Sequence[Reply[T] | ModelError | TransientError]) -> None:
    """Raise BudgetExceeded, with the usage of all, if one answer is that: the budget holds for every model."""
    for answer in answers:
        if isinstance(answer, BudgetExceeded):
            answer.usage = sum((other.usage or Usage() for other in answers), Usage())
            raise answer


def _voice(name: str, answer: Reply[T] | ModelError | TransientError, schema: type[T]) -> Voice:
    if not isinstance(answer, Reply):
        return Voice(model=name, error=str(answer)[:300])
    values = {field: getattr(answer.value, field) for field in probabilities(schema)}
    return Voice(
        model=name,
        probabilities={field: value for field, value in values.items() if value is not None},
        label=str(getattr(answer.value, "label", "")),
        cost_usd=answer.usage.cost_usd,
    )


def _distance(value: BaseModel, mean: Mapping[str, int | None]) -> float:
    return sum(
        abs(getattr(value, name) - target) if getattr(value, name) is not None else 100.0
        for name, target in mean.items()
        if target is not None
    )


def interpolated(x: float, xs: Sequence[float], values: Sequence[float]) -> float:
    """Interpolate at ``x`` on the line through the points; beyond the ends the value is that of the end.

    ``xs`` rise; at a repeated one the map steps, and the later value counts.
    """
    after = bisect_left(xs, x)
    if after < len(xs) and xs[after] == x:
        return values[bisect_right(xs, x) - 1]
    if after == 0:
        return values[0]
    if after == len(xs):
        return values[-1]
    share = (x - xs[after - 1]) / (xs[after] - xs[after - 1])
    return values[after - 1] + share * (values[after] - values[after - 1])
