"""Issues with their annotations, as tasks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.evaluation.running import read, write


@pytest.fixture(scope="session")
def issues(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The annotated instances whose issue text is at hand, as a task file."""
    annotations = {row["instance_id"]: row for row in read(shared_data / "bouncerbench/annotations.jsonl.gz")}
    rows = (
        {**annotations[row["instance_id"]], "problem_statement": row["problem_statement"], "repo": row["repo"]}
        for row in read(shared_data / "swebench/instances.jsonl.gz")
        if row["instance_id"] in annotations
    )
    return write(tmp_path_factory.mktemp("tasks") / "issues.jsonl", rows)
