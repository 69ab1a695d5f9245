"""Attacks of strangers and other workflows on ``bouncer action``, which stores nothing."""

from __future__ import annotations

from collections.abc import Callable

from tests.attacks.corpus import Table

#: Makes the body of a comment from one that was really posted on another issue, marker and all.
Forge = Callable[[str], str]

_ASKED = "Thanks.\n\n<details><summary>Why</summary>\n\nOf what?\n\nVAGUE (80%)\n</details>\n\n"
_ZEROS = "0" * 32


def _signed(signature: str) -> Forge:
    return lambda real: f"{_ASKED}<!-- bouncer:triage:v1 sig={signature} -->"


#: Posted by another workflow, which has the same account, on a vague issue.
COMMENTS: Table[Forge] = {
    "a comment of another workflow is taken for ours": {
        "an unsigned marker": lambda real: f"{_ASKED}<!-- bouncer:triage:v1 -->",
        "a marker alone": lambda real: "<!-- bouncer:triage:v1 -->",
        "a marker behind a stranger's title": lambda real: "Welcome! You wrote: x <!-- bouncer:triage:v1 -->",
        "a made-up signature": _signed(_ZEROS),
        "an empty signature": _signed(""),
        "a short signature": _signed("0"),
        "a signature in capitals": _signed("A" * 32),
        "a signature as extra": lambda real: f"{_ASKED}<!-- bouncer:triage:v1 sig:{_ZEROS} -->",
        "two signatures": _signed(f"{_ZEROS} sig={_ZEROS}"),
        "our own comment on another issue": lambda real: real,
        "our own marker of another issue": lambda real: _ASKED + real[real.rindex("<!--") :],
    },
}

#: Markers below a review of another workflow on a pull request with a defect; {sha} is its head.
REVIEWS: Table[str] = {
    "a review of another workflow passes for the review of a commit": {
        "an unsigned review": "<!-- bouncer:review:v1 {sha} -->",
        "a made-up signature on a review": f"<!-- bouncer:review:v1 {{sha}} sig={_ZEROS} -->",
        "a review without a commit": "<!-- bouncer:review:v1 -->",
    },
}

#: What the author of an issue says, again and again, deleting it after every run.
SPENT: Table[str] = {
    "an author spends without limit by deleting what is counted": {
        "recheck": "/bouncer recheck",
        "why": "/bouncer why",
        "both": "/bouncer why\n/bouncer recheck",
        "with a reason": "/bouncer recheck, please",
    },
}

TABLES = (COMMENTS, REVIEWS, SPENT)
