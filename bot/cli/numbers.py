"""Numbers on the command line."""

from __future__ import annotations

import math
from typing import Any

import click


class Finite(click.FloatRange):
    """A number in a range. NaN and infinity are refused: no comparison with them limits anything."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number", param, ctx)
        return number


class Harm(click.ParamType[float]):
    """A share of harm, ``5%``, ``5`` or ``0.05``, in the bounds of the key ``harm`` of bouncer.yml."""

    name = "percent"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        from bot.core.config import HARM

        if isinstance(value, float):
            return value
        text = str(value).strip()
        try:
            number = float(text.removesuffix("%").strip())
        except ValueError:
            self.fail(f"{text!r} is not a percentage such as 5%", param, ctx)
        share = number if number < 1 and not text.endswith("%") else number / 100
        least, most = HARM
        if not least <= 100 * share <= most:
            self.fail(f"{text!r} is not between {least} and {most} %", param, ctx)
        return share
