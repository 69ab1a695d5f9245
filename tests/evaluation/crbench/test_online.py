"""The construction where GitHub is asked: whose pull request a commit is, its text, issues and labels."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from bot.core.errors import TransientError
from bot.core.subjects import Actor, Comment, Issue, PullRequest
from bot.github.offline import ReplayForge, Snapshot
from bot.github.protocol import PullDiff
from bot.models.prompts import Prompts
from evaluation.crbench.build import Clone, build_tasks, histories, map_instances
from evaluation.crbench.mapping import Instance
from evaluation.crbench.own import own_fixes
from evaluation.crbench.task import ReviewTask, describe
from evaluation.dataset import read_shaped
from evaluation.git.repository import GitRepository, find_clone
from evaluation.run.model import benchmark_prompts
from tests.evaluation.crbench.repositories import Scratch
from tests.scripted import ScriptedModel

ADA = Actor(id=1, login="ada")
LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


def pull(number: int, *, merged: bool = True) -> PullRequest:
    return PullRequest(
        number=number,
        title=f"Pull {number}",
        body="As written",
        author=ADA,
        merged=merged,
        head_sha="a" * 40,
        base_sha="b" * 40,
    )


@pytest.fixture
def scratch(project: Path) -> Scratch:
    return Scratch(project / "repos" / "ada+engine")


def snapshot(scratch: Scratch, pulls: dict[str, tuple[PullRequest, ...]]) -> Snapshot:
    guilty = {"engine.py": scratch.git("rev-parse", "simplify"), "total.py": scratch.git("rev-parse", "main~2")}
    comment = Comment(id=1, author=ADA, body="Looks good")
    return Snapshot(
        repository="ada/engine",
        pulls_for_commit={guilty[path]: result for path, result in pulls.items()},
        pull_requests={7: pull(7)},
        diffs={7: PullDiff(text="diff --git a/engine.py b/engine.py\n")},
        comments={7: (comment, comment)},
        review_comments={7: ()},
    )


def clones(
    project: Path, fixes: list[Instance], forge: ReplayForge
) -> AbstractContextManager[Mapping[str, Clone]]:
    return histories(partial(find_clone, project / "repos"), fixes, forge_of=lambda name: forge)


def test_only_merged_pull_requests_of_a_commit_count(project: Path, scratch: Scratch) -> None:
    fixes = list(read_shaped("fixes.jsonl", Instance))[:2]
    answers = {"engine.py": (pull(7), pull(70, merged=False)), "total.py": (pull(8), pull(9))}

    with clones(project, fixes, ReplayForge(snapshot(scratch, answers))) as open_clones:
        first, second = map_instances(fixes, open_clones)

    assert (first.prs, first.kept) == ((7,), True)
    assert (second.prs, second.kept) == ((8, 9), False), "GitHub names two: no single review could have found it"


def test_title_description_diff_and_number_of_comments_are_githubs(project: Path, scratch: Scratch) -> None:
    fixes = list(read_shaped("fixes.jsonl", Instance))[:1]
    model = ScriptedModel(
        [
            {"reasoning": "r", "category": "PREVENTABLE", "confidence": 1},
            {"description": "It fails."},
            {"reasoning": "r", "category": "coding", "impact": "usability", "severity": "low"},
        ]
    )
    forge = ReplayForge(snapshot(scratch, {"engine.py": (pull(7),)}))

    with clones(project, fixes, forge) as open_clones:
        [task] = build_tasks(fixes, open_clones, partial(describe, model, benchmark_prompts()))

    assert task.pull is not None
    assert (task.pull.title, task.pull.body, task.pull.comments) == ("Pull 7", "As written", 2)
    assert task.pull.diff == "diff --git a/engine.py b/engine.py\n"


class Busy(ReplayForge):
    """GitHub on a bad day."""

    def pulls_for_commit(self, sha: str) -> tuple[PullRequest, ...]:
        raise TransientError("busy", 60)


def test_a_task_that_github_did_not_answer_for_is_tried_again_later(project: Path, scratch: Scratch) -> None:
    fixes = list(read_shaped("fixes.jsonl", Instance))[:1]

    with clones(project, fixes, Busy(snapshot(scratch, {}))) as open_clones:
        [task] = build_tasks(fixes, open_clones, partial(describe, ScriptedModel(), benchmark_prompts()))

    assert isinstance(task, ReviewTask)
    assert (task.unfinished, task.kept, task.reason) == (True, False, "unfinished: busy")


def test_an_issues_labels_decide_whether_what_closes_it_is_a_fix(project: Path, scratch: Scratch) -> None:
    scratch.commit("Mend the sum, closes #1", "total.py", "a = 1")
    scratch.commit("Fix up the new feature, closes #2", "total.py", "a = 2")
    scratch.commit("Change total, closes #3", "total.py", "a = 3")
    issues = {
        1: Issue(number=1, title="The sum is wrong", body="By one.", author=ADA, labels=("type: bug",)),
        2: Issue(number=2, title="I want this", author=ADA, labels=("enhancement",)),
        3: Issue(number=3, title="Hm", author=ADA),
    }
    forge = ReplayForge(Snapshot(repository="ada/engine", issues=issues))

    with GitRepository(scratch.folder) as repository:
        result = list(own_fixes(repository, "ada/engine", LONG_AGO, "https://github.com", forge))

    assert [item.problem_statement for item in result] == [
        "Hm\n\n",
        "The sum is wrong\n\nBy one.",
        result[2].problem_statement,
    ]
    assert result[2].instance_id == "ada__engine-120", "a fix by its subject"


def test_benchmark_prompts_can_be_replaced_by_files_of_the_same_name(tmp_path: Path) -> None:
    (tmp_path / "crbench.judge.md.jinja").write_text("Mine.\n=== user ===\n{{ comment }}\n")

    prompts = benchmark_prompts(tmp_path)

    assert isinstance(prompts, Prompts)
    assert prompts.render("crbench.judge", comment="x") == ("Mine.", "x")
    assert prompts.hash("crbench.judge") != benchmark_prompts().hash("crbench.judge")
    assert set(benchmark_prompts().names()) >= {
        "crbench.judge",
        "crbench.paraphrase",
        "crbench.preventable",
        "crbench.tags",
    }
