"""Which issues a pull request closes, by GitHub's words."""

import pytest

from bot.features.shared.links import closing_links

HOST = "https://ghe.example"


@pytest.mark.parametrize(
    ("text", "links"),
    [
        ("Fixes #12", ["a/b#12"]),
        ("fix: #12, closes #13 and resolved #14", ["a/b#12", "a/b#13", "a/b#14"]),
        ("CLOSED #1", ["a/b#1"]),
        ("Fixes c/d.e#7", ["c/d.e#7"]),
        ("Resolves https://ghe.example/c/d/issues/9", ["c/d#9"]),
        ("Resolves https://github.com/c/d/issues/9", []),
        ("Resolves https://ghe.example/c/d/pull/9", []),
        ("see #12", []),
        ("prefix #12", []),
        ("hotfixes #12", []),
        ("fixes#12", []),
        ("Fixes #12abc", []),
        ("Fixes `#12`", []),
        ("`Fixes #12`", []),
        ("<!-- Fixes #12 -->", []),
        ("<!-- unclosed Fixes #12", []),
        ("```\nFixes #12\n```\nFixes #13", ["a/b#13"]),
        ("~~~\nFixes #12", []),
        ("As in the log:\n\n    fixes #12\r\n\r\n\tfixes #13\r\n\r\nFixes #14", ["a/b#14"]),
        ("A paragraph that goes on:\n    fixes #12", ["a/b#12"]),
        ("- an item\n\n    fixes #12\n\n      fixes #13", ["a/b#12"]),
        ("Fixes #12\nFixes #12", ["a/b#12"]),
        ("Fixes\n#12", []),
        ("Fixes #" + "9" * 40, []),
    ],
)
def test_closing_words_link_issues(text: str, links: list[str]) -> None:
    assert [f"{link.repository}#{link.number}" for link in closing_links(text, "a/b", HOST)] == links
