"""Martian's code review benchmark, read from a clone: the published judgements of twelve tools by three judges.

``offline/results/<judge>/evaluations.json`` holds, by pull request and tool, the golden comments that a judge
found matched and the tool's comments ("candidates") that match none; ``candidates.json`` holds the candidates.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field, TypeAdapter

from bot.core.errors import OperatorError
from bot.core.frozen import Lenient
from evaluation.dataset import validated
from evaluation.git.clones import listing
from evaluation.git.repository import GitRepository

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


#: By pull request and tool.
_EVALUATIONS = TypeAdapter(dict[str, dict[str, _Evaluation]])
_CANDIDATES = TypeAdapter(dict[str, dict[str, list[_Candidate]]])


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
                judge, path = match["judge"], file.path.replace("evaluations.json", "candidates.json")
                results, candidates = (clone.blob(head, name) or b"{}" for name in (file.path, path))
                self.evaluations[judge] = validated(_EVALUATIONS.validate_json, results, file.path)
                self._candidates[judge] = validated(_CANDIDATES.validate_json, candidates, path)
        if not self.evaluations:
            raise OperatorError(f"{folder} holds no offline/results/JUDGE/evaluations.json")

    def tools(self) -> list[ToolScore]:
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
