"""Tests that fail alike belong together; tests that are written alike count once. Pure functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from pydantic import Field

from bot.core.frozen import Frozen
from bot.reproduce.failure import Failure, signature

T = TypeVar("T")


class FailingTest(Frozen):
    """A draft that fails on the buggy version, as far as choosing among drafts needs to know it."""

    number: int = Field(description="which draft; unique among the drafts of a report")
    failure: Failure
    syntax: str = Field(description="the test in normal form: equal for tests that differ in layout or comments")
    tokens: int = Field(ge=0, description="length of the test, lexical tokens")
    inverted: bool = Field(False, description="it passed as drafted, and its last assertion was turned round")
    flaky: bool = Field(False, description="two runs of it did not agree")


class Cluster(Frozen):
    """Drafts that fail with one signature."""

    signature: str
    tests: tuple[FailingTest, ...]

    @property
    def size(self) -> int:
        """How many drafts agree on this failure, equal ones counted each: agreement is what size measures."""
        return len(self.tests)

    @property
    def mean_tokens(self) -> float:
        """Mean length of its syntactically distinct tests, tokens."""
        distinct = distinct_tests(self.tests)
        return sum(test.tokens for test in distinct) / len(distinct)


def cluster(tests: Sequence[FailingTest]) -> tuple[Cluster, ...]:
    """Group failing drafts by the signature of their failure, in order of first appearance."""
    return tuple(
        Cluster(signature=key, tests=tuple(members))
        for key, members in grouped(tests, lambda test: signature(test.failure)).items()
    )


def distinct_tests(tests: Sequence[FailingTest]) -> tuple[FailingTest, ...]:
    """One test, the first drafted, of every group of syntactically equal ones."""
    return tuple(members[0] for members in grouped(tests, lambda test: test.syntax).values())


def grouped(items: Sequence[T], key: Callable[[T], str]) -> dict[str, list[T]]:
    """Items by key, keys and items in order of appearance."""
    groups: dict[str, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups
