"""Probabilities in percent: a monotone map through points, as calibration writes it and models apply it. Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence


def interpolated(place: float, places: Sequence[float], values: Sequence[float]) -> float:
    """The value at ``place`` on the line through the points; beyond the ends it is that of the end.

    ``places`` rise; where one stands twice, the map steps there and the later value counts.
    """
    after = bisect_left(places, place)
    if after < len(places) and places[after] == place:
        return values[bisect_right(places, place) - 1]
    if after == 0:
        return values[0]
    if after == len(places):
        return values[-1]
    share = (place - places[after - 1]) / (places[after] - places[after - 1])
    return values[after - 1] + share * (values[after] - values[after - 1])
