"""Martian's code review benchmark, read from a clone: the published judgements of twelve tools by three judges.

``offline/results/<judge>/evaluations.json`` holds, by pull request and tool, the golden comments that a judge
found matched and the tool's comments ("candidates") that match none; ``candidates.json`` holds the candidates.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import Field, ValidationError

from bot.core.errors import OperatorError
from bot.core.frozen import Lenient
from evaluation.git.clones import listing
from evaluation.git.repository import GitRepository

T = TypeVar("T", bound=Lenient)

_RESULTS = re.compile(r"offline/results/(?P<judge>[^/]+)/evaluations\.json")


class _Golden(Lenient):
    golden_comment: str


class _Unmatched(Lenient):
    candidate: str


class _Evaluation(Lenient):
    true_positives: tuple[_Golden, ...] = ()
    false_positives: tuple[_Unmatched, ...] = ()
    false_negatives: tuple[_Golden, ...] = ()
    total_candidates: int = 0
    skipped: bool = False


class _Candidate(Lenient):
    text: str = Field("", description="what the tool says, as the judge's model extracted it")


@dataclass(frozen=True)
class ToolScore:
    """One tool over all pull requests, as one judge saw it."""

    tool: str
    judge: str
    pulls: int
    golden: int
    candidates: int
    matched: int

    @property
    def recall(self) -> float:
        return self.matched / self.golden if self.golden else 0.0

    @property
    def precision(self) -> float | None:
        return self.matched / self.candidates if self.candidates else None

    @property
    def comments_per_pull(self) -> float:
        return self.candidates / self.pulls if self.pulls else 0.0

    def as_json(self) -> dict[str, object]:
        """Counts and shares by name."""
        shares = {"recall": self.recall, "precision": self.precision, "comments_per_pull": self.comments_per_pull}
        return {**vars(self), **shares}


@dataclass(frozen=True)
class JudgedCandidate:
    """A tool's comment on a pull request, and whether one published judge found it among the golden ones."""

    judge: str
    url: str
    golden: tuple[str, ...]
    text: str
    matched: bool


class Martian:
    """The published results in a clone. Raises OperatorError if there are none."""

    def __init__(self, folder: Path) -> None:
        self.evaluations: dict[str, dict[str, dict[str, _Evaluation]]] = {}
        self._candidates: dict[str, dict[str, dict[str, list[_Candidate]]]] = {}
        with GitRepository(folder, shallow=True) as clone:
            head = clone.head()
            for file in listing(clone, head):
                match = _RESULTS.fullmatch(file.path)
                if match is None:
                    continue
                judge = match["judge"]
                raw = clone.blob(head, file.path)
                self.evaluations[judge] = {
                    url: {tool: _shaped(_Evaluation, entry, file.path) for tool, entry in by_tool.items()}
                    for url, by_tool in _object(raw, file.path).items()
                }
                path = file.path.replace("evaluations.json", "candidates.json")
                self._candidates[judge] = {
                    url: {
                        tool: [_shaped(_Candidate, entry, path) for entry in entries]
                        for tool, entries in by_tool.items()
                    }
                    for url, by_tool in _object(clone.blob(head, path), path).items()
                }
        if not self.evaluations:
            raise OperatorError(f"{folder} holds no offline/results/JUDGE/evaluations.json")

    def tools(self) -> list[ToolScore]:
        """Every tool by every judge."""
        scores: list[ToolScore] = []
        for judge, by_url in sorted(self.evaluations.items()):
            for tool in sorted({tool for by_tool in by_url.values() for tool in by_tool}):
                mine = [by_tool[tool] for by_tool in by_url.values() if tool in by_tool]
                mine = [evaluation for evaluation in mine if not evaluation.skipped]
                scores.append(
                    ToolScore(
                        tool=tool,
                        judge=judge,
                        pulls=len(mine),
                        golden=sum(len(entry.true_positives) + len(entry.false_negatives) for entry in mine),
                        candidates=sum(entry.total_candidates for entry in mine),
                        matched=sum(len(entry.true_positives) for entry in mine),
                    )
                )
        return scores

    def candidates(self) -> Iterator[JudgedCandidate]:
        """Every candidate with the verdict of the judge whose model extracted it."""
        for judge, by_url in sorted(self.evaluations.items()):
            for url, by_tool in by_url.items():
                for tool, evaluation in by_tool.items():
                    if evaluation.skipped:
                        continue
                    unmatched = {entry.candidate for entry in evaluation.false_positives}
                    golden = (*evaluation.true_positives, *evaluation.false_negatives)
                    texts = dict.fromkeys(
                        entry.text for entry in self._candidates[judge].get(url, {}).get(tool, ()) if entry.text
                    )
                    # Golden comments in one order, whatever was matched: questions about them are cached.
                    golden_texts = tuple(sorted(entry.golden_comment for entry in golden))
                    for text in texts:
                        yield JudgedCandidate(judge, url, golden_texts, text, text not in unmatched)


def _object(raw: bytes | None, path: str) -> dict[str, dict[str, list[object]]]:
    try:
        value = json.loads(raw or b"{}")
    except ValueError as error:
        raise OperatorError(f"{path}: not JSON: {str(error)[:120]}") from None
    if not isinstance(value, dict) or not all(isinstance(entry, dict) for entry in value.values()):
        raise OperatorError(f"{path}: a JSON object by pull request and tool is needed")
    return value


def _shaped(shape: type[T], entry: object, path: str) -> T:
    try:
        return shape.model_validate(entry)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise OperatorError(f"{path}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
