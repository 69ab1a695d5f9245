"""The files of LIBRO's replication package: rankings, features, and the outcomes of 50 tests a bug.

A ranking lists bugs with a test that fails on the buggy version and no others: %BRT needs all bugs beside it.
"""

from __future__ import annotations

import csv
import io
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field, TypeAdapter

from bot.core.errors import OperatorError
from bot.core.frozen import Lenient
from evaluation.brt.metrics import Bug, Draft, Features, Ranking, cluster_sizes, libro_order, rankings
from evaluation.dataset import Row, read_csv, read_json, read_rows, shaped, task_id, unique, validated
from evaluation.report.terminal import say
from evaluation.run.lines import write_file

#: What stands in the column ``first_success_rank`` of a bug that no test reproduces.
NEVER = 100_000
#: LIBRO suggests tests for a bug if more than this many fail alike.
THRESHOLD = 1


def read_rankings(path: Path) -> tuple[Ranking, ...]:
    """Read a CSV with the columns bug_id, first_success_rank, total_success_fibs and num_clusters.

    Raises OperatorError, naming file and line, if a column is missing, a value is no whole number, values of a
    row contradict each other, a bug is listed twice, or nothing is listed at all.
    """
    entries: list[tuple[str, str, Ranking]] = []
    for row in read_csv(str(path)):
        never = row.data.get("first_success_rank", "").strip() == str(NEVER)
        ranking = shaped(Row({**row.data, "first_success_rank": None}, row.where) if never else row, Ranking)
        if contradiction := _contradiction(ranking):
            raise OperatorError(f"{row.where}: {contradiction}")
        entries.append((task_id(row, "bug_id"), row.where, ranking))
    if not entries:
        raise OperatorError(f"{path}: no bug is listed")
    return tuple(unique(entries))


def _contradiction(ranking: Ranking) -> str:
    """Return what cannot be true of a row; empty if nothing contradicts."""
    first, total, length = ranking.first_success_rank, ranking.total_success_fibs, ranking.num_clusters
    if first is None:
        return f"total_success_fibs is {total}, but first_success_rank names no test" if total else ""
    if first > length:
        return "first_success_rank lies behind the end of the list (num_clusters)"
    if not total:
        return "first_success_rank names a test, but total_success_fibs is 0"
    if total > length - first + 1:
        return (
            f"total_success_fibs is {total}, but from first_success_rank on there are {length - first + 1} tests"
        )
    return ""


def bug_key(name: str) -> str:
    """LIBRO's rankings write Chart_1, the reports say Chart-1."""
    return name.replace("-", "_")


def all_bugs(source: str) -> list[str]:
    """The bugs of a list of reports, those that are marked invalid left out. Raises OperatorError."""
    return [bug_id(row) for row in read_rows(source) if not is_invalid(row.data)]


def bug_id(row: Row) -> str:
    """The id of a row's bug, in either column. Raises OperatorError."""
    return task_id(row, "bug_id" if "bug_id" in row.data else "instance_id")


def is_invalid(row: Mapping[str, Any]) -> bool:
    """Return True if the authors marked a report as invalid."""
    return str(row.get("invalid", "")).lower() == "true"


class _Version(Lenient):
    """The outcome of one generated test on one version."""

    compile_error: bool = False
    autogen_failed: bool = Field(False, description="the generated test itself failed")
    failure_message: str | None = None


class _Generated(Lenient):
    """One generated test that could be placed in the code."""

    buggy: _Version
    success: bool

    @property
    def fate(self) -> str:
        if self.buggy.compile_error:
            return "unusable"
        return "failed" if self.buggy.autogen_failed else "passed"


_OUTCOMES: TypeAdapter[dict[str, dict[str, _Generated | str]]] = TypeAdapter(
    dict[str, dict[str, _Generated | str]]
)


class _FeatureRow(Lenient):
    """A row of the features' file: one distinct test that fails on the buggy version."""

    bug_id: str
    test_path: str
    test_length: int
    is_crash: bool
    actual_crash: bool
    actual_value_match: bool
    exception_type_match: bool
    test_exception_type_match: bool

    def features(self, signature: str) -> Features:
        return Features(
            signature=signature, syntax=self.test_path, **self.model_dump(exclude={"bug_id", "test_path"})
        )


def read_outcomes(source: str, features: str | None) -> tuple[Bug, ...]:
    """The bugs of a file with the outcome of each generated test on both versions. Raises OperatorError.

    With the file of features the tests are ranked and selected as LIBRO does; without it none is suggested.
    """
    generated = validated(_OUTCOMES.validate_python, read_json(source), source)
    rows: dict[str, dict[str, _FeatureRow]] = defaultdict(dict)
    for row in read_rows(features) if features else ():
        feature_row = shaped(row, _FeatureRow)
        rows[feature_row.bug_id][feature_row.test_path.removesuffix(".txt")] = feature_row
    return tuple(_bug(name, tests, rows.get(name, {})) for name, tests in generated.items())


def _bug(name: str, generated: Mapping[str, _Generated | str], rows: Mapping[str, _FeatureRow]) -> Bug:
    tests: list[Draft] = []
    clusters: dict[str, _FeatureRow] = {}
    # Of equal tests the features list one, which stands for the others: it comes first.
    for test_id in sorted(generated, key=lambda test_id: test_id not in rows):
        test = generated[test_id]
        if isinstance(test, str):
            tests.append(Draft(candidate_id=test_id, fate="unusable"))
            continue
        message = (test.buggy.failure_message or "").strip()
        row = rows.get(test_id) or (clusters.get(message) if test.fate == "failed" else None)
        if row is not None:
            clusters.setdefault(message, row)
        features = None if row is None else row.features(message)
        tests.append(Draft(candidate_id=test_id, brt=test.success, fate=test.fate, features=features))
    agreeing = max(cluster_sizes(tests).values(), default=0)
    suggested = libro_order(tests) if agreeing > THRESHOLD else ()
    return Bug(name, tuple(tests), suggested, is_drafted=True)


def write_libro(bugs: Sequence[Bug], folder: Path) -> None:
    """Write rankings before and after selection, and features, as the package does. Raises OperatorError."""
    rows = {
        name: [{**row.model_dump(), "first_success_rank": row.first_success_rank or NEVER} for row in ranked]
        for name, ranked in zip(("rankings.csv", "rankings_before.csv"), rankings(bugs), strict=True)
    }
    rows["features.csv"] = list(_feature_rows(bugs))
    columns = {name: tuple(Ranking.model_fields) for name in rows} | {"features.csv": FEATURES}
    for name, lines in rows.items():
        stream = io.StringIO(newline="")
        writer = csv.DictWriter(stream, columns[name])
        writer.writeheader()
        writer.writerows(lines)
        write_file(folder / name, stream.getvalue())
    say(f"{folder}: {', '.join(rows)}")


#: The columns of the features' file.
FEATURES = (
    "bug_id", "test_path", "success", "test_length", "clus_size_output_fib", "num_fib_tests", "is_crash",
    "actual_crash", "actual_value_match", "exception_type_match", "test_exception_type_match",
)  # fmt: skip


def _feature_rows(bugs: Iterable[Bug]) -> Iterator[dict[str, Any]]:
    for bug in bugs:
        sizes = cluster_sizes(bug.tests)
        equal = Counter(test.features.syntax for test in bug.tests if test.features is not None)
        for test in libro_order(bug.tests):
            assert test.features is not None
            yield {
                "bug_id": bug.bug_id,
                "test_path": test.candidate_id,
                "success": test.brt,
                "clus_size_output_fib": sizes[test.features.signature],
                "num_fib_tests": equal[test.features.syntax],
                **test.features.model_dump(exclude={"signature", "syntax"}),
            }
