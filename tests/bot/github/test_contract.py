"""The promises of a forge, kept by the reader of GitHub."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from bot.core.errors import NotFound
from bot.core.subjects import text_revision
from bot.github.protocol import IssueLink
from bot.github.reader import GitHubForge
from tests.bot.github.conftest import FILES, NAME, Scene


def test_a_forge_reports_its_repository_and_our_identity(forge: GitHubForge) -> None:
    about = forge.about()
    assert (forge.repository, about.full_name, about.default_branch, about.private) == (NAME, NAME, "main", False)
    assert about.html_url.endswith(f"/{NAME}")
    assert (forge.identity().login, forge.identity().is_bot) == ("bouncer[bot]", True)


def test_an_issue_has_its_text_author_labels_and_revision(forge: GitHubForge, scene: Scene) -> None:
    issue = forge.issue(scene.issue)
    assert (issue.title, issue.author.login, issue.labels, issue.state) == (
        "Reading fails",
        "alice",
        ("bug",),
        "open",
    )
    assert issue.revision == text_revision("Reading fails", "Nothing works.\nReally.")


def test_all_comments_come_in_order_however_many_pages_they_fill(forge: GitHubForge, scene: Scene) -> None:
    comments = forge.comments(scene.issue)
    assert len(comments) == 121
    assert [comments[0].body, comments[1].body, comments[-1].body] == ["Which version?", "me too 0", "me too 119"]


def test_a_pull_request_states_if_its_code_comes_from_a_fork(forge: GitHubForge, scene: Scene) -> None:
    pull, own = forge.pull_request(scene.pull), forge.pull_request(scene.large)
    assert (pull.head_repository, pull.from_fork, pull.draft) == ("mallory/demo", True, False)
    assert (own.head_repository, own.from_fork, own.draft) == (NAME, False, True)
    assert pull.head_sha == scene.head
    assert pull.base_sha != pull.head_sha


def test_the_diff_is_a_unified_diff_against_the_merge_base(forge: GitHubForge, scene: Scene) -> None:
    diff = forge.diff(scene.pull)
    assert diff.text == (
        "diff --git a/src/table.py b/src/table.py\n"
        "--- a/src/table.py\n"
        "+++ b/src/table.py\n"
        "@@ -1,2 +1,3 @@\n"
        " def read(path):\n"
        "-    return open(path).read()\n"
        "+    with open(path) as file:\n"
        "+        return file.read()\n"
    )
    assert (diff.omitted, diff.unlisted) == ((), 0)


def test_a_diff_that_github_refuses_is_built_file_by_file(forge: GitHubForge, scene: Scene) -> None:
    diff = forge.diff(scene.large)
    assert diff.text.count("diff --git") == 310
    assert "+++ b/generated/309.txt\n@@ -0,0 +1 @@\n+309\n" in diff.text


def test_issues_that_a_pull_request_closes_are_listed(forge: GitHubForge, scene: Scene) -> None:
    assert forge.linked_issues(scene.pull) == (IssueLink(repository=NAME, number=scene.issue),)
    assert forge.linked_issues(scene.large) == ()


def test_reviews_comments_and_resolved_threads_are_listed(forge: GitHubForge, scene: Scene) -> None:
    [comment] = forge.review_comments(scene.pull)
    assert (comment.path, comment.line, comment.side) == ("src/table.py", 2, "RIGHT")
    assert (comment.author.login, comment.commit_id) == ("bouncer[bot]", scene.head)
    assert [review.author.login for review in forge.reviews(scene.pull)] == ["bouncer[bot]"]
    assert forge.resolved_threads(scene.pull) == (scene.finding,)


def test_a_commit_of_a_fork_leads_to_its_pull_request(forge: GitHubForge, scene: Scene) -> None:
    assert [pull.number for pull in forge.pulls_for_commit(scene.head)] == [scene.pull]


@pytest.mark.parametrize(
    ("login", "role"), [("octo", "admin"), ("carol", "triage"), ("mallory", "read"), ("nobody-at-all", "none")]
)
def test_the_permission_of_a_person_is_read(forge: GitHubForge, login: str, role: str) -> None:
    assert forge.permission(login) == role


def test_only_thumbs_count_as_reactions_with_their_accounts(forge: GitHubForge, scene: Scene) -> None:
    reactions = forge.reactions(scene.comment)
    assert [actor.login for actor in reactions.up] == ["alice"]
    assert [actor.login for actor in reactions.down] == ["bob"]
    assert forge.reactions(scene.finding, review=True).up == ()


def test_files_are_read_byte_for_byte(forge: GitHubForge) -> None:
    assert forge.file("README.md", "main") == b"# demo\n"
    assert forge.file("latin.txt", "main") == b"caf\xe9\n"


def test_a_checkout_is_fetched_whole_and_without_our_credentials(
    forge: GitHubForge, scene: Scene, tmp_path: Path
) -> None:
    forge.checkout("main", tmp_path)
    assert (tmp_path / "src" / "table.py").read_text() == FILES["src/table.py"]
    assert (tmp_path / "logo.png").read_bytes() == FILES["logo.png"]
    assert sum(path.is_file() for path in tmp_path.rglob("*")) == len(FILES)
    assert scene.site.github.leaked_credentials == []


def test_only_text_files_inside_the_repository_are_sources(forge: GitHubForge) -> None:
    tree = forge.sources("main")
    assert list(tree.paths()) == sorted(FILES)
    assert tree.read("src/table.py") == FILES["src/table.py"]
    odd = ("logo.png", "latin.txt", "src", "gone.py", "../../etc/passwd", "/etc/passwd", "src/../README.md")
    assert [tree.read(path) for path in odd] == [None] * len(odd)


def test_missing_objects_raise_not_found(forge: GitHubForge, scene: Scene) -> None:
    reads: list[Callable[[], object]] = [
        lambda: forge.issue(999),
        lambda: forge.pull_request(scene.issue),
        lambda: forge.linked_issues(999),
        lambda: forge.file(".github/bouncer.yml", "main"),
        lambda: forge.file("src", "main"),
        lambda: forge.file("../../octo/secret/README.md", "main"),
        lambda: forge.head("gone"),
    ]
    for read in reads:
        with pytest.raises(NotFound):
            read()
