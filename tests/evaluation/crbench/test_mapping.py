"""From a fix to the pull request that brought its bug in, on repositories whose history is known."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from evaluation.crbench.build import PullRefs, histories, map_instances
from evaluation.crbench.mapping import Instance, MappedInstance, Unmapped, is_code
from evaluation.git.history import merge_number
from evaluation.git.repository import find_clone
from tests.evaluation.crbench.repositories import ADA, GITHUB, Scratch

MapFix = Callable[..., MappedInstance]

#: Long enough that git recognises a renamed file after a small change.
BODY = tuple(f"line_{number} = {number}" for number in range(12))


@pytest.fixture
def repository(tmp_path: Path) -> Scratch:
    scratch = Scratch(tmp_path / "repos" / "ada+engine")
    scratch.commit("Begin", "engine.py", *BODY)
    return scratch


@pytest.fixture
def map_fix(tmp_path: Path, repository: Scratch) -> MapFix:
    """Map the fix that turns ``path`` into ``lines`` at the present commit (or a given patch at a given base)."""

    def mapped(
        path: str = "",
        *lines: str,
        patch: str | None = None,
        base: str | None = None,
        pull_refs: PullRefs = "verify",
        unmapped: Unmapped = "ignore",
    ) -> MappedInstance:
        fix = Instance(
            instance_id="fix-1",
            repo="ada/engine",
            base_commit=base or repository.head(),
            patch=repository.fix(path, *lines) if patch is None else patch,
        )
        with histories(partial(find_clone, tmp_path / "repos"), [fix], pull_refs) as clones:
            [result] = map_instances([fix], clones, unmapped)
        return result

    return mapped


def changed(number: int, text: str, lines: tuple[str, ...] = BODY) -> tuple[str, ...]:
    return (*lines[:number], text, *lines[number + 1 :])


def test_a_bug_merged_with_a_merge_commit_belongs_to_that_pull_request(
    repository: Scratch, map_fix: MapFix
) -> None:
    repository.branch("feature")
    guilty = repository.commit("Speed up", "engine.py", *changed(3, "line_3 = wrong"))
    repository.go("main")
    repository.merge_pull(7, "feature")

    result = map_fix("engine.py", *BODY)

    assert result.kept
    assert result.prs == (7,)
    assert result.blame_commits == (guilty,)
    assert result.reason is None


@pytest.mark.parametrize(
    ("subject", "numbers"),
    [("Fix what (#3) broke (#8)", (8,)), ("Handle (#12) better", ()), ('Revert "Nice try (#13)"', ())],
)
def test_a_squashed_bug_belongs_to_the_number_that_ends_its_subject(
    repository: Scratch, map_fix: MapFix, subject: str, numbers: tuple[int, ...]
) -> None:
    repository.commit(subject, "engine.py", *changed(3, "line_3 = wrong"), committer=GITHUB)

    result = map_fix("engine.py", *BODY)

    assert result.prs == numbers
    assert result.reason == (None if numbers else "no pull request: 1 commit came in without one")


@pytest.mark.parametrize(("committer", "number"), [(ADA, 9), (GITHUB, 5)])
def test_inside_a_pull_request_only_numbers_that_github_committed_count(
    repository: Scratch, map_fix: MapFix, committer: tuple[str, str], number: int
) -> None:
    """A pull request into a branch was squashed by GitHub; any other number in there is an issue's."""
    repository.branch("feature")
    lines = changed(3, "line_3 = wrong")
    repository.commit("Close the leak (#5)", "engine.py", *lines, committer=committer)
    repository.go("main")
    repository.merge_pull(9, "feature")

    assert map_fix("engine.py", *BODY).prs == (number,)


def test_a_number_without_a_pull_ref_is_an_issue_if_there_are_any(repository: Scratch, map_fix: MapFix) -> None:
    squashed = repository.commit("Tidy (#21)", "engine.py", *changed(3, "line_3 = wrong"))
    repository.git("update-ref", "refs/pull/20/head", squashed)

    assert map_fix("engine.py", *BODY).prs == ()
    assert map_fix("engine.py", *BODY, pull_refs="ignore").prs == (21,)


def test_a_bug_merged_through_several_merges_belongs_to_the_innermost(
    repository: Scratch, map_fix: MapFix
) -> None:
    repository.branch("big")
    repository.commit("Prepare", "other.py", "x = 1")
    repository.branch("part")
    repository.commit("The part", "engine.py", *changed(3, "line_3 = wrong"))
    repository.go("big")
    repository.merge_pull(31, "part")
    repository.go("main")
    repository.merge_pull(30, "big")
    repository.branch("release", "main~1")
    repository.merge("main", "Merge pull request #32 from ada/main")

    assert map_fix("engine.py", *BODY).prs == (31,)
    assert map_fix("other.py").prs == (30,)


def test_a_merge_inside_a_fork_carries_the_forks_own_numbers(repository: Scratch, map_fix: MapFix) -> None:
    repository.branch("feature")
    repository.branch("help")
    repository.commit("Help", "engine.py", *changed(3, "line_3 = wrong"))
    repository.go("feature")
    repository.merge_pull(1, "help")
    repository.go("main")
    repository.merge_pull(40, "feature")
    repository.git("update-ref", "refs/pull/1/head", "main~1")
    repository.git("update-ref", "refs/pull/40/head", "feature")

    assert map_fix("engine.py", *BODY).prs == (40,)


@pytest.mark.parametrize(
    ("subject", "number"),
    [
        ("Make engines faster (#44)", 44),
        ("Auto merge of #45 - ada:engine, r=bob", 45),
        ("Merge #46: faster engines", 46),
        ("Merged PR 47: faster engines", None),
        ("Merge pull request ada/engine#48 from bob/x", 48),
        ("Merge pull request other/project#49 from bob/x", None),
        ("Merge branch 'speed', which closes #50", None),
        ("Merge pull request Ada/Engine#53 from bob/x", 53),
        ("Merge #51 #52", None),
    ],
)
def test_a_merge_subject_can_be_custom(subject: str, number: int | None) -> None:
    assert merge_number(subject, "ada/engine") == number


def test_merging_the_trunk_into_a_branch_does_not_assign_the_trunk(repository: Scratch, map_fix: MapFix) -> None:
    repository.branch("feature")
    repository.commit("Work", "other.py", "x = 1")
    repository.go("main")
    repository.commit("Pushed by hand", "engine.py", *changed(3, "line_3 = wrong"))
    repository.go("feature")
    repository.merge("main", "Merge branch 'main' into feature")
    repository.go("main")
    repository.merge_pull(60, "feature")

    assert map_fix("engine.py", *BODY).prs == ()


def test_a_pull_request_merged_after_the_base_commit_does_not_count(repository: Scratch, map_fix: MapFix) -> None:
    repository.commit("Pushed by hand", "engine.py", *changed(3, "line_3 = wrong"))
    base = repository.head()
    patch = repository.fix("engine.py", *BODY)
    repository.branch("release", "main~1")
    repository.merge("main", "Merge pull request #70 from ada/main")
    repository.go("main")
    repository.merge("release", "Merge branch 'release'")

    assert map_fix(patch=patch, base=base).prs == ()


def test_commits_without_a_pull_request_are_ignored_or_disqualify(repository: Scratch, map_fix: MapFix) -> None:
    first = changed(1, "line_1 = wrong")
    direct = repository.commit("Pushed by hand", "engine.py", *first)
    repository.commit("Squashed (#82)", "engine.py", *changed(9, "line_9 = wrong", first))

    lenient = map_fix("engine.py", *BODY)
    strict = map_fix("engine.py", *BODY, unmapped="discard")

    assert (lenient.kept, lenient.prs, lenient.unmapped_commits) == (True, (82,), (direct,))
    assert (strict.kept, strict.reason) == (False, "1 commit of 2 came in without a pull request")


def test_rebased_commits_are_found_in_the_pull_refs_only_when_asked_for(
    repository: Scratch, map_fix: MapFix
) -> None:
    repository.branch("feature")
    original = repository.commit(
        "Speed up", "engine.py", *changed(3, "line_3 = wrong"), author=("Bob", "bob@x.org")
    )
    repository.git("update-ref", "refs/pull/90/head", "feature")
    repository.go("main")
    repository.commit("Meanwhile", "other.py", "x = 1")
    repository.git("cherry-pick", "feature")
    repository.git("branch", "-D", "feature")

    silent = map_fix("engine.py", *BODY)
    inferred = map_fix("engine.py", *BODY, pull_refs="infer")

    assert silent.prs == ()
    assert inferred.prs == (90,)
    assert original not in inferred.blame_commits


def test_nothing_is_inferred_where_two_pull_requests_hold_the_commit(repository: Scratch, map_fix: MapFix) -> None:
    repository.branch("feature")
    repository.commit("Speed up", "engine.py", *changed(3, "line_3 = wrong"), author=("Bob", "bob@x.org"))
    repository.git("update-ref", "refs/pull/90/head", "feature")
    repository.git("update-ref", "refs/pull/91/head", "feature")
    repository.go("main")
    repository.commit("Meanwhile", "other.py", "x = 1")
    repository.git("cherry-pick", "feature")
    repository.git("branch", "-D", "feature")

    assert map_fix("engine.py", *BODY, pull_refs="infer").prs == ()


def test_a_renamed_file_is_followed_to_who_wrote_the_line(repository: Scratch, map_fix: MapFix) -> None:
    wrong = changed(3, "line_3 = wrong")
    guilty = repository.commit("Wrong (#100)", "engine.py", *wrong)
    repository.git("mv", "engine.py", "motor.py")
    repository.commit("Rename (#101)")

    result = map_fix("motor.py", *BODY)

    assert result.blame_commits == (guilty,)
    assert result.prs == (100,)


def test_reindented_lines_are_new(repository: Scratch, map_fix: MapFix) -> None:
    repository.commit("Wrong (#120)", "engine.py", *changed(3, "line_3 = wrong"))
    repository.commit("Indent (#121)", "engine.py", *changed(3, "    line_3 = wrong"))

    assert map_fix("engine.py", *BODY).prs == (121,)


def test_a_line_of_the_very_first_commit_has_no_pull_request(repository: Scratch, map_fix: MapFix) -> None:
    result = map_fix("engine.py", *changed(3, "line_3 = better"))

    assert result.blame_commits == (repository.head(),)
    assert result.reason == "no pull request: 1 commit came in without one"


def test_all_files_of_a_fix_are_blamed(repository: Scratch, map_fix: MapFix) -> None:
    first = repository.commit("One (#130)", "one.py", *BODY)
    second = repository.commit("Two (#130)", "two.py", *BODY)
    patch = repository.fix("one.py", *changed(1, "x")) + repository.fix("two.py", *changed(2, "y"))

    result = map_fix(patch=patch)

    assert result.blame_commits == tuple(sorted((first, second)))
    assert result.prs == (130,)


def test_tests_and_documentation_are_not_blamed(repository: Scratch, map_fix: MapFix) -> None:
    no_code = ("engine_test.go", "pkg/test_engine.py", "pkg/testing/x.py", "docs/guide.txt", "NEWS.md")
    assert not any(map(is_code, no_code))
    repository.commit("Add (#140)", "tests/check.py", *BODY)

    result = map_fix("tests/check.py", *changed(1, "x"))

    assert result.reason == "nothing to blame: only tests or documentation lose lines"


def test_a_hunk_whose_position_is_off_is_found_by_its_text(repository: Scratch, map_fix: MapFix) -> None:
    repository.commit("Wrong (#150)", "engine.py", *changed(8, "line_8 = wrong"))
    patch = repository.fix("engine.py", *BODY)
    grown = (*(f"new_{number} = 0" for number in range(40)), *changed(8, "line_8 = wrong"))
    repository.commit("Grow (#151)", "engine.py", *grown)

    assert "@@ -6," in patch
    assert map_fix(patch=patch).prs == (150,)


def test_of_two_equal_places_the_one_nearest_to_the_header_is_taken(repository: Scratch, map_fix: MapFix) -> None:
    block = ("def f():", "    a()", "    b()", "    c()", "")
    repository.commit("First (#160)", "twice.py", *BODY, *block, *BODY)
    repository.commit("Second (#161)", "twice.py", *BODY, *block, *BODY, *block)
    fixed = (*BODY, *block, *BODY, "def f():", "    a()", "    c()", "")

    patch = repository.fix("twice.py", *fixed)

    assert map_fix(patch=patch).prs == (161,)
    assert map_fix(patch=patch.rstrip()).prs == (161,), "also where its last, blank line of context was stripped"


#: Longer than the context of a hunk on both sides, so that nothing but its position tells two copies apart.
COPY = ("a = 0", "b = 0", "c = 0", "value = bad", "d = 0", "e = 0", "f = 0")


def test_equal_places_are_told_apart_by_the_shift_of_the_hunk_before(repository: Scratch, map_fix: MapFix) -> None:
    lines = ("top = bad", *(f"first_{number} = 0" for number in range(28)))
    repository.commit("Top (#200)", "copies.py", *lines)
    for copy in range(1, 5):
        lines = (*lines, *COPY, *(f"after_{copy}_{number} = 0" for number in range(13)))
        repository.commit(f"Copy {copy} (#20{copy})", "copies.py", *lines)
    bad = [place for place, line in enumerate(lines) if line == "value = bad"]
    fixed = ["value = good" if place in bad[1:3] else line for place, line in enumerate(lines)]
    patch = repository.fix("copies.py", "top = good", *fixed[1:])
    repository.commit("Grow (#205)", "copies.py", *(f"new_{number} = 0" for number in range(15)), *lines)

    assert [f"@@ -{number},7" in patch for number in (50, 70)] == [True, True]
    assert map_fix(patch=patch).prs == (200, 202, 203)


def test_hunks_are_placed_in_their_order(repository: Scratch, map_fix: MapFix) -> None:
    between = tuple(f"u_{number} = 0" for number in range(20))
    lines: tuple[str, ...] = ()
    for number, more in ((210, COPY), (211, ("x = bad",)), (212, (*between, *COPY))):
        lines = (*lines, *more)
        repository.commit(f"Add (#{number})", "order.py", *lines)
    context = ("a = 0", "b = 0", "c = 0", "-value = bad", "+value = good", "d = 0")
    hunk = "".join(f"{line if line[0] in '+-' else ' ' + line}\n" for line in context)
    patch = f"--- a/order.py\n+++ b/order.py\n@@ -8 +8 @@\n-x = bad\n+x = good\n@@ -10,5 +10,5 @@\n{hunk}"

    assert map_fix(patch=patch).prs == (211, 212), "the copy above the first hunk is nearer to line 10"


def test_a_patch_with_changed_context_is_located_by_removed_lines(repository: Scratch, map_fix: MapFix) -> None:
    repository.commit("Wrong (#170)", "engine.py", *changed(8, "line_8 = wrong"))
    patch = repository.fix("engine.py", *BODY)
    repository.commit("Above (#171)", "engine.py", *changed(6, "line_6 = 66", changed(8, "line_8 = wrong")))

    assert map_fix(patch=patch).prs == (170,)


def test_a_patch_of_another_commit_is_discarded_with_that_reason(repository: Scratch, map_fix: MapFix) -> None:
    repository.commit("Wrong (#180)", "engine.py", *changed(8, "line_8 = wrong"))
    patch = repository.fix("engine.py", *BODY)

    absent = map_fix(patch=patch, base=repository.git("rev-parse", "HEAD~1"))
    no_file = map_fix(patch=patch.replace("engine.py", "gone.py"))

    assert absent.reason == "removed lines of engine.py (line 6) are not in the base commit"
    assert no_file.reason == "gone.py is not in the base commit"


def test_a_removed_line_that_looks_like_a_header_is_a_line(repository: Scratch, map_fix: MapFix) -> None:
    lines = ("select 1;", "-- drop everything", "++ strange", "select 2;")
    repository.commit("Query (#190)", "query.sql", *lines)

    result = map_fix("query.sql", "select 1;", "select 2;")

    assert result.prs == (190,)


def test_unusual_names_and_bytes_are_blamed_like_any_other(repository: Scratch, map_fix: MapFix) -> None:
    path = 'src/naïve "file"\tname.py'
    repository.commit("Odd (#200)", path, "a = 1\x0c", "b = '\x85\u2028'", "c = 3")

    assert map_fix(path, "a = 1\x0c", "b = 2", "c = 3").prs == (200,)


def test_a_patch_without_the_files_windows_line_ends_is_blamed(repository: Scratch, map_fix: MapFix) -> None:
    repository.commit("Windows (#210)", "win.py", *(f"{line}\r" for line in BODY))
    patch = repository.fix("win.py", *(f"{line}\r" for line in changed(3, "x"))).replace("\r", "")

    assert map_fix(patch=patch).prs == (210,)


def test_bases_on_different_branches_are_each_seen_from_their_own_trunk(
    repository: Scratch, map_fix: MapFix
) -> None:
    repository.branch("release")
    repository.branch("port")
    repository.commit("Port", "engine.py", *changed(3, "line_3 = wrong"))
    repository.go("release")
    repository.merge_pull(220, "port")
    patch = repository.fix("engine.py", *BODY)
    on_release = repository.head()
    repository.go("main")
    repository.commit("Same here (#221)", "engine.py", *changed(3, "line_3 = wrong"))

    assert map_fix(patch=patch, base=on_release).prs == (220,)
    assert map_fix(patch=patch, base=repository.head()).prs == (221,)


@pytest.mark.parametrize(
    ("instance", "reason"),
    [
        ({"base_commit": "--contents=/etc/passwd"}, "base commit '--contents=/etc/passwd' is not a full SHA"),
        ({"base_commit": "ab" * 20}, f"base commit {'ab' * 20} is not in the clone"),
        ({"patch": ""}, "no fix: its patch is empty"),
        ({"patch": None, "base_commit": None}, "no fix: its patch is empty"),
        ({"patch": "this is no diff"}, "the patch cannot be read: diff: line 1: no file header"),
        ({"repo": "bob/other"}, "no clone of bob/other"),
    ],
)
def test_an_instance_that_cannot_be_looked_at_says_why(
    tmp_path: Path, repository: Scratch, instance: dict[str, str | None], reason: str
) -> None:
    values = {"instance_id": "x", "repo": "ada/engine", "base_commit": repository.head(), "patch": "p", **instance}
    good = Instance(instance_id="y", repo="ada/engine", base_commit=repository.head(), patch="")
    fix = Instance.model_validate(values)
    with histories(partial(find_clone, tmp_path / "repos"), [fix, good]) as clones:
        first, _ = map_instances([fix, good], clones)

    assert not first.kept
    assert (first.reason or "").startswith(reason)
