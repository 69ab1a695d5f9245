"""An untrusted clone cannot run programs here, nor change what is read from it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from bot.core.errors import OperatorError
from evaluation.crbench.mapping import blame_fix
from evaluation.git.clones import listing
from evaluation.git.repository import GitError, GitRepository, find_clone
from tests.evaluation.crbench.repositories import Scratch


@pytest.fixture
def repository(tmp_path: Path) -> Scratch:
    scratch = Scratch(tmp_path / "repo")
    scratch.commit("One (#1)", "a.txt", "one", "two", "three")
    scratch.commit("Two (#2)", "a.txt", "one", "TWO", "three")
    return scratch


#: Mends the second line, which commit "Two" wrote.
FIX = "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-TWO\n+2\n three\n"


def blamed(scratch: Scratch, commit: str) -> dict[str, int]:
    with GitRepository(scratch.folder) as clone:
        return blame_fix(clone, commit, FIX)


def test_a_hostile_configuration_runs_nothing_and_changes_nothing(repository: Scratch, tmp_path: Path) -> None:
    guilty = repository.head()
    witness = tmp_path / "witness"
    evil = f"touch {witness}; cat"
    repository.write(".gitattributes", "*.txt diff=evil filter=evil")
    head = repository.commit("Attributes (#3)")
    repository.git("config", "diff.evil.textconv", evil)
    repository.git("config", "filter.evil.smudge", evil)
    repository.git("config", "diff.external", evil)
    repository.git("config", "core.fsmonitor", evil)
    repository.git("config", "core.pager", evil)
    repository.git("config", "core.hooksPath", str(tmp_path))
    repository.git("config", "blame.ignoreRevsFile", str(tmp_path / "missing"))

    assert blamed(repository, head) == {guilty: 1}
    with GitRepository(repository.folder) as clone:
        assert clone.refs("refs/heads") == {"refs/heads/main": head}
        assert clone.head() == head
    assert not witness.exists()


def test_a_list_of_revisions_to_ignore_does_not_change_the_result(
    repository: Scratch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    guilty = repository.head()
    (tmp_path / "ignored").write_text(guilty + "\n")
    (tmp_path / "user.config").write_text(f"[blame]\n\tignoreRevsFile = {tmp_path / 'ignored'}\n")
    repository.git("config", "blame.ignoreRevsFile", str(tmp_path / "ignored"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "user.config"))

    assert blamed(repository, guilty) == {guilty: 1}


def test_replaced_commits_and_grafts_are_not_believed(repository: Scratch) -> None:
    head = repository.head()
    other = repository.git("commit-tree", f"{head}^{{tree}}", "-m", "a forged past")
    repository.git("replace", head, other)
    (repository.folder / ".git" / "info").mkdir(exist_ok=True)
    (repository.folder / ".git" / "info" / "grafts").write_text(f"{head}\n")

    assert blamed(repository, head) == {head: 1}


def test_a_missing_object_is_never_fetched_from_where_the_clone_says(repository: Scratch, tmp_path: Path) -> None:
    witness = tmp_path / "witness"
    head = repository.head()
    blob = repository.git("rev-parse", "HEAD~1:a.txt")
    (repository.folder / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    repository.git("config", "extensions.partialClone", "evil")
    repository.git("config", "core.repositoryFormatVersion", "1")
    repository.git("config", "remote.evil.promisor", "true")
    repository.git("config", "remote.evil.url", f"ext::sh -c touch% {witness}")
    repository.git("config", "protocol.ext.allow", "always")

    with pytest.raises(GitError, match="git blame: "):
        blamed(repository, head)
    assert not witness.exists()


def test_a_clone_is_left_exactly_as_it_was(repository: Scratch) -> None:
    def listing() -> dict[str, int]:
        return {str(file): file.stat().st_mtime_ns for file in sorted(repository.folder.rglob("*"))}

    head = repository.head()
    before = listing()
    with GitRepository(repository.folder) as clone:
        blame_fix(clone, head, FIX)
        clone.refs()

    assert listing() == before


def test_a_shallow_clone_is_refused_with_a_clear_line(repository: Scratch, tmp_path: Path) -> None:
    repository.git("clone", "-q", "--depth", "1", f"file://{repository.folder}", str(tmp_path / "shallow"))

    with pytest.raises(OperatorError, match=r"shallow is a shallow clone: .*git fetch --unshallow"):
        GitRepository(tmp_path / "shallow")


def test_a_commits_files_are_listed_without_links(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "ada+engine")
    (scratch.folder / "link.py").symlink_to("/etc/hostname")
    scratch.commit("Begin", "engine.py", "x = 1")
    with GitRepository(scratch.folder) as clone:
        assert [(file.path, file.size, file.program) for file in listing(clone, scratch.head())] == [
            ("engine.py", 6, False)
        ]


def test_clones_are_found_under_the_names_people_give_them(repository: Scratch, tmp_path: Path) -> None:
    repository.git("clone", "-q", "--mirror", str(repository.folder), str(tmp_path / "bare"))
    head = repository.head()
    for layout in ("ada+engine", "ada/engine", "ada+engine/repo", "ada/engine/repo", "ada+engine.git"):
        for source in (repository.folder, tmp_path / "bare"):
            clones = tmp_path / f"clones-{layout.replace('/', '-')}-{source.name}"
            shutil.copytree(source, clones / layout)

            match = find_clone(clones, "ada/engine")

            assert match is not None
            with GitRepository(match) as clone:
                assert clone.blob(head, "a.txt") == b"one\nTWO\nthree\n"


def test_a_linked_worktree_is_read_through_its_repository(repository: Scratch, tmp_path: Path) -> None:
    repository.git("worktree", "add", "-q", str(tmp_path / "linked"))

    with GitRepository(tmp_path / "linked") as clone:
        assert clone.blob(repository.head(), "a.txt") == b"one\nTWO\nthree\n"


def test_a_folder_that_is_no_repository_is_named(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match="is not a git repository"):
        GitRepository(tmp_path)
    assert find_clone(tmp_path, "ada/engine") is None


def test_a_clone_of_another_name_is_not_taken(repository: Scratch, tmp_path: Path) -> None:
    repository.git("clone", "-q", str(repository.folder), str(tmp_path / "clones/ada__engine"))

    assert find_clone(tmp_path / "clones", "ada/engine") is None


def test_what_is_not_there_is_none_and_never_an_error(repository: Scratch) -> None:
    with GitRepository(repository.folder) as clone:
        assert clone.blob(repository.head(), "no such file") is None
        assert clone.blob(repository.head(), "new\nline") is None
        assert not clone.has_commit("ab" * 20)
        assert clone.blob(repository.head(), "a.txt") == b"one\nTWO\nthree\n"
