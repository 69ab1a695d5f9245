"""The lenses of independent looks at one change, and one list out of what all of them saw. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from bot.review.findings import Finding, same_defect

#: What each look follows through the change; further looks begin anew with the first, as another draw.
LENSES = (
    "boundaries and empty values. For each new condition, index, slice, loop and conversion, try the smallest, "
    "the largest, the empty, the absent and the repeated value.",
    "contracts of what is called and of who calls. For each call that was added or changed, what does the other "
    "side expect and return, and in which cases; for each signature, default, return value or type that changed, "
    "which callers, subclasses and stored data still count on the old one.",
    "errors, resources and concurrency. What can fail half-way and what state does it leave; what is opened, "
    "locked or started and not given back on every path; what happens when two of these run at the same time.",
    "what the change removes. For each removed or replaced line, what did it guarantee (a check, a copy, an "
    "order, a special case), who relied on it, and what takes its place.",
)


def merged(opinions: Sequence[Sequence[Finding]]) -> tuple[Finding, ...]:
    """Each defect once, in the words of the first look that saw it, with the number of looks that did.

    Its severity and confidence are the highest that were given. What one look names twice are two defects.
    """
    groups: list[list[Finding]] = []
    for opinion in opinions:
        before = list(groups)
        for finding in opinion:
            group = next((each for each in before if _one_defect(each[0], finding)), None)
            if group is None:
                groups.append([finding])
            else:
                group.append(finding)
                before.remove(group)
    return tuple(_as_one(group) for group in groups)


def _as_one(group: Sequence[Finding]) -> Finding:
    severity = max((each.severity for each in group), key=lambda each: each.rank)
    places = dict.fromkeys(place for each in group for place in each.places)
    more = {"severity": severity, "places": tuple(places)}
    confidence = max((each.confidence for each in group if each.confidence is not None), default=None)
    return group[0].model_copy(update={"looks": len(group), "confidence": confidence, **more})


def _one_defect(one: Finding, other: Finding) -> bool:
    """The same fingerprint or code, or overlapping lines and the same cause or effect: looks quote differently."""
    if same_defect(one, other):
        return True
    if (one.path, one.side) != (other.path, other.side) or one.line is None or other.line is None:
        return False
    overlap = (one.start_line or one.line) <= other.line and (other.start_line or other.line) <= one.line
    return overlap and (one.category == other.category or one.impact == other.impact)
