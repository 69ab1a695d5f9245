# ruff: noqa: E501 - lists of texts
"""Parsers of texts that users, repositories and models write while Bouncer runs."""

from __future__ import annotations

from contextlib import suppress

from pydantic import ValidationError

from bot.code.change import diff, quotes
from bot.code.change.packing import ChangeFilters, pack
from bot.core import config_file
from bot.core.config import ReviewConfig
from bot.core.markdown import clean, clean_line, code_span, fence
from bot.core.redaction import redact
from bot.core.text import untrusted
from bot.features.shared import links
from bot.features.triage.judgement import InputReply
from bot.github import webhook
from bot.github.payloads import load_json
from bot.models import conversation as replies
from bot.models.conversation import Unusable
from bot.router import SLASH_COMMANDS
from tests.parsers.parser import Parser


def _diff(text: str) -> object:
    parsed = diff.parse(text)
    for file in parsed.files[:20]:
        quotes.Index(file).find("a b")
    return pack(parsed, 24_000, 4, ChangeFilters(("*.lock", "**/gen/*"))), parsed


_DEEP = "a" * 250 + "/b"
_CHANGED = diff.parse(f"diff --git a/{_DEEP} b/{_DEEP}\n--- a/{_DEEP}\n+++ b/{_DEEP}\n@@ -1 +1 @@\n-a\n+b\n")


def _glob(text: str) -> object:
    return pack(_CHANGED, 24_000, 4, ChangeFilters(ReviewConfig(ignore=(text,)).ignore))


def _event(text: str) -> object:
    payload = webhook.load(text.encode("utf-8", "surrogatepass"), "application/json")
    for name in ("issues", "issue_comment", "pull_request", "check_run", "installation"):
        with suppress(webhook.MalformedDelivery):
            webhook.parse(name, payload)
    return payload


def _reply(text: str) -> object:
    return replies.extract(text), replies.read(text, InputReply)


_HUNK = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,9 +1,9 @@\n"
_AROUND = (
    '"repository": {"id": 1, "full_name": "a/b", "default_branch": "main", "private": false}, '
    '"sender": {"id": 2, "login": "mia", "type": "User"}, "installation": {"id": 3}}'
)
_ISSUE = (
    '{"action": "opened", "issue": {"number": 4, "title": "t", "body": "b", "user": {"id": 2, "login": "mia"}, '
    '"labels": [{"name": "bug"}], "state": "open", "comments": 0}, "comment": {"id": 5, "body": "/bouncer help", '
    '"user": null}, ' + _AROUND
)
_PULL = (
    '{"action": "synchronize", "number": 6, "pull_request": {"number": 6, "title": "t", "body": null, '
    '"head": {"sha": "abc", "ref": "x", "repo": null}, "base": {"sha": "def", "ref": "main"}, "draft": false}, '
    '"check_run": {"name": "bouncer / verify", "head_sha": "abc", "pull_requests": [{"number": 6}]}, ' + _AROUND
)

# fmt: off
PARSERS: tuple[Parser, ...] = (
    Parser(
        "commands",
        SLASH_COMMANDS.read,
        hard=tuple(
            ("/bouncer recheck\n" if not end else "", unit, end or "\n\n/bouncer recheck")
            for unit in ("`", "`a``", "<!--", "<pre>\n\n", "> ", "- ", "[a](", "\\`", "/bouncer help\n", "1. ", "a\n===\n", "/bounce&#114; a\n")
            for end in ("", "\n/bouncer accept\n")
        ),
        words=(
            "/bouncer ", "recheck", "verify --run ", "abcdef1", "\n", "<pre>", "</pre>", "<!--", "-->", "```\n",
        ),
        samples=(
            "Thanks!\n\n> /bouncer accept\n\n/bouncer recheck\n\n```\n/bouncer help\n```\n- /bouncer verify --run abcdef1\n",
            "/bouncer accept please\n<!-- /bouncer help -->\n<pre>\n\n/bouncer review\n</pre>\n\n    /bouncer help\n",
        ),
    ),
    Parser(
        "configuration",
        config_file.load,
        hard=(
            ("", "[", ""), ("", "{a: ", ""), ("", "- ", ""), ("", "a: &a\n", ""), ("", "a: *a\n", ""),
            ("", "? ", ""), ("triage: {mode: !!bool ", "x", "}"), ("a: ", "!!str ", "x"), ("", "a: b\n", ""),
            ("triage: ", "!!map {", ""),
        ),
        words=(
            "triage:", "\n  ", "mode: ", "off", "!!bool ", "!!python/object:a ", "&a ", "*a", "[", "]", "{", "}",
            "? ", "review: {ignore: [", "]}", "\n", "1", "<<: ", "!!binary ", "!!timestamp ", "!!int ", "!!set ",
            "- ",
        ),
        limit=64_000,
        samples=(
            "triage:\n  mode: label\n  bounce_at: VAGUE\n  label: 'needs info'\n  ignore_labels: [a, \"b\"]\npulls: {drafts: true}\n",
            "review:\n  strategy: panel\n  looks: 4\n  ignore:\n    - '*.lock'\n  instructions:\n    - paths: ['a/**']\n      text: |\n        Look.\n",
            "reproduce:\n  mode: comment\n  setup: [pip install .]\n  command: python -m pytest {tests}\n  seconds: 60\nverify: {gate: no}\n",
        ),
    ),
    Parser(
        "globs",
        _glob,
        raises=(ValidationError,),
        hard=(
            ("", "*a", "b"), ("", "**/", "b"), ("", "[!a", "]"), ("", "?*", "b"), ("", "[a-", "]"),
            ("!", "*/", "b"),
        ),
        words=("*", "**", "/", "a", "[", "]", "!", "?", "-", "\\", "#"),
        limit=4_000,
        samples=(
            "src/**/gen_[a-z]?/*.py",
            "!/docs/**/*.md",
        ),
    ),
    Parser(
        "diffs",
        _diff,
        hard=(
            ("diff --git a/", "b ", ""),
            ("diff --git ", '"a', ""),
            ("diff --git ", '"\\', ""),
            (_HUNK, "+a b\n", ""),
            ("", "diff --git a/x b/x\n", ""),
            ("", "--- a\n+++ b\n@@ -1 +1 @@\n-a\n+a b\n", ""),
            ("--- a\n+++ b\n", "@@ -1 +1 @@\n", ""),
            (_HUNK, "-a\n", ""),
            ("", "--- a\n", ""),
            ("", "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", ""),
            (_HUNK, "\\ No newline at end of file\n", ""),
            ("diff --git a/x b/x\n", "rename from a\n", ""),
            ("--- a/x\n+++ b/x\n@@ -1,99999 +1,99999 @@\n", " a b\n", ""),
            ("--- a/x\n+++ b/x\n@@ -0,0 +1,99999 @@\n", "+a b", "\n"),
        ),
        words=(
            "diff --git a/x b/x\n", "--- a/x\n", "+++ b/x\n", "@@ -1 +1 @@\n", "@@ -1,2 +1,3 @@ def f\n", "+", "-",
            " ", "\n", '"a\\303"', "rename to y\n", "Binary files a and b differ\n", "/dev/null",
            "new file mode 100644\n",
        ),
        samples=(
            "diff --git a/a.py b/a.py\nindex 1..2 100644\n--- a/a.py\n+++ b/a.py\n@@ -1,3 +1,3 @@ def f():\n a b\n-x = 1\n+x = 2\n c\n",
            "diff --git a/a b/b\nsimilarity index 90%\nrename from a\nrename to b\n--- a/a\n+++ b/b\n@@ -0,0 +1 @@\n+a\n\\ No newline at end of file\n",
            "diff --git \"a/\\303\\244\" \"b/\\303\\244\"\nnew file mode 100755\n--- /dev/null\n+++ \"b/\\303\\244\"\n@@ -0,0 +1,2 @@\n+a\n+b\n",
        ),
    ),
    Parser(
        "models' replies",
        _reply,
        raises=(Unusable,),
        hard=(
            ("", '{"a": ', ""), ("", "[", ""), ('{"a": [', "[", ""), ("", "{} ", ""), ("<think>", "<think>", ""),
            ("", "```json\n", ""), ("", "```json\n{\n", "\n```\n"), ('{"a": "', "\\u", '"}'), ('{"a": ', "1", "}"),
            ("{", '"a": 1, ', '"b": 2}'), ("{}", "{", ""), ("{}", "{[", ""), ("", "\n ```", ""),
            ("", " ```\n", ""), ("a", '{"a":1}', ""), ('{"a":"', "\\ud800", '"}'),
        ),
        words=(
            '{"label": "VAGUE"}', "{", "}", '"a"', ": ", "```json\n", "```", "<think>", "</think>", "NaN", "1e999",
            "[", "]",
        ),
        limit=100_000,
        samples=(
            '<think>so</think>\n```json\n{"explanation": "a b", "open_points": [{"question": "c?", "blocking": true}], "missing": ["version"], "p_bounce": 70, "label": "VAGUE"}\n```\n',
        ),
    ),
    Parser(
        "closing words",
        lambda text: links.closing_links(text, "a/b", "https://github.com"),
        hard=(
            ("", "fixes ", ""), ("fixes", " ", "#1"), ("", "fixes a/", ""), ("", "fixes http://", ""),
            ("", "`", "a"), ("", "`a``", ""), ("", "```\n", ""), ("", "<!--", ""), ("", "~~~\n```\n", ""),
            ("", "fixes a-", ""), ("fixes a/", "b.", ""), ("fixes ", "a-", ""), ("", "``a", ""), ("", "`\n", ""),
            ("", "`a", ""), ("", "a`b``c", ""), ("a", "`", ""), ("", "fix:", ""), ("fix:", " ", "x"),
        ),
        words=("fixes #1 ", "closes a/b#2", "```\n", "<!--", "-->", "https://github.com/a/b/issues/3"),
        samples=(
            "Fixes #12, closes o/r#3 and resolves https://github.com/a/b/issues/4.\n`fixes #5`\n<!-- fixes #6 -->\n```\nfixes #7\n```\n",
        ),
    ),
    Parser(
        "prompts' fences",
        untrusted,
        hard=(("", "<|a", ""), ("", "<|a|>", ""), ("", "<|", "|>"), ("<|", "a", "")),
        words=("<|im_end|>",),
    ),
    Parser(
        "webhooks",
        _event,
        raises=(webhook.MalformedDelivery,),
        hard=(
            ("", "[", ""), ("", '{"a":', ""), ("{", '"a":1,', '"b":1}'), ('{"a":', "1", "}"),
            ('{"a":"', "\\u0000", '"}'), ('{"action":"opened","a":"', "\\ud800", '"}'),
        ),
        words=(
            '{"action": "opened", ', '"issue": {', '"number": 1', '"body": null', "}", ", ",
            '"repository": {"full_name": "a/b"}', '"sender": {"id": 1}', "[", "]", '"\\ud800"', "1e400",
            "99999999999999999999999",
        ),
        samples=(
            _ISSUE,
            _PULL,
        ),
    ),
    Parser(
        "GitHub's answers",
        load_json,
        raises=(ValueError, RecursionError),
        hard=(("", "[", ""), ("", '{"a":', "")),
        words=('{"id": ', "12", ', "body": ', '"a"', "null", "}", "[", "]", '"\\ud800"', "1e400", "1e-9"),
        samples=(
            _ISSUE,
        ),
    ),
    Parser(
        "secrets",
        redact,
        hard=(
            ("", "-----BEGIN PRIVATE KEY-----\n", ""), ("-----BEGIN PRIVATE KEY-----\n", "A\n", ""),
            ("", "token-", ""), ("", "://a:", ""), ("://a:", "b", ""), ("", "://a:b@", ""), ("", "eyJaaaaaaaaaa.", ""),
            ("", "secret=", ""), ("secret=", "a1", " "), ("", "api_key", ""), ("", "sk-", ""), ("", "secret= bearer ", ""),
        ),
        words=("sk-aaaaaaaaaaaaaaaaaaaa", "token: ", "-----END PRIVATE KEY-----", "ghp_", "AKIA", "://u:p@h"),
        samples=(
            "-----BEGIN RSA PRIVATE KEY-----\nMIIEabcdefghijklmnop\nqrst\n-----END RSA PRIVATE KEY-----\npostgres://u:p@h/d api_key = 'a1b2c3d4e5f6g7h8i9j0k'\n",
        ),
    ),
    Parser(
        "Markdown to be posted",
        lambda text: (clean(text, host="ghe.example", limit=len(text)), clean_line(text), code_span(text), fence(text)),
        hard=(
            ("", "![a](", ""), ("", "[a](", ""), ("", "*a_", ""), ("", "`a``", ""), ("", "  - a\n", ""), ("", "![", ""),
            ("", "> 1. ", ""), ("", "\n\n- a", ""), ("", "<!-- bouncer", ""), ("", "www.a", ""), ("", "a@b:", ""),
        ),
        words=("https://ghe.example/a ", "@a", "#1", "```suggestion\n", "<!-- bouncer", "fixes ", "~~", "**", "$a$", "\n"),
        limit=32_000,
        samples=(
            "# A\n\nSee [this](https://ghe.example/a/b) and `code`.\n\n- *one*\n- **two**\n  1. three\n\n> quoted\n\n```py\nx = 1\n```\n| a | b |\n|---|---|\n| c | d |\n",
        ),
    ),
)
