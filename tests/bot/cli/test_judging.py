"""``bouncer triage`` and ``bouncer verify`` on files: what they print and exit with, whatever they are given."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Response

from tests.bot.cli.github_commands import CLEAR, SOLVES, VAGUE, Ran
from tests.builders import NO_PLUGINS

DIFF = "--- a/app.py\n+++ b/app.py\n@@ -1 +1 @@\n-a\n+b\n"

Run = Callable[..., Ran]


@pytest.fixture
def run(tmp_path: Path, bouncer: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command in a folder with an issue, a patch and a model that says ``reply``; code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)
    Path("issue.md").write_text("# It crashes\n\nOn an empty file.\n")
    Path("fix.diff").write_text(DIFF)

    def act(*arguments: str, reply: dict[str, Any] = CLEAR, model: str = "recorded:replies.jsonl#m") -> Ran:
        Path("replies.jsonl").write_text(json.dumps({"model": "m", "subject": "offline/files#1", **reply}) + "\n")
        monkeypatch.setenv("BOUNCER_MODEL", model)
        return bouncer(*arguments)

    return act


def test_a_bounce_fails_only_where_the_command_is_a_gate(run: Run) -> None:
    assert run("triage", "issue.md", reply=VAGUE)[0] == 0
    assert run("triage", "issue.md", "--fail-on", "bounce", reply=VAGUE)[0] == 1
    assert run("triage", "issue.md", "--fail-on", "bounce", reply=CLEAR)[0] == 0


def test_json_is_one_object_and_nothing_else(run: Run) -> None:
    code, out, err = run("triage", "issue.md", "--json", reply=VAGUE)
    report = json.loads(out)
    assert (code, err, out.count("\n")) == (0, "", 1)
    assert (report["label"], report["bounced"], report["questions"]) == ("VAGUE", True, ["Which file?"])


def test_what_a_patch_may_have_broken_is_printed(run: Run) -> None:
    reply = {"text": json.dumps({"explanation": "-", "regressions": ["Old files."], "label": "INCORRECT"})}
    _, out, _ = run("verify", "--issue", "issue.md", "--patch", "fix.diff", reply=reply)
    assert "- may have broken: Old files.\n" in out


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "bad.diff: empty"),
        (b"\x00\x01", "bad.diff: not text in UTF-8"),
        (b"# It crashes\n", "bad.diff: diff: line 1: no file header (--- and +++, or diff --git) in this text"),
        (
            b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ nonsense @@\n+a\n",
            "bad.diff: x: line 4: the hunk header has not the form @@ -a,b +c,d @@",
        ),
    ],
)
def test_what_is_no_patch_is_refused_before_anybody_is_asked(run: Run, content: bytes, why: str) -> None:
    Path("bad.diff").write_bytes(content)
    code, out, err = run("verify", "--issue", "issue.md", "--patch", "bad.diff", reply=SOLVES)
    assert (code, out, err) == (2, "", f"bouncer: {why}\n")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["triage"], "bouncer triage: Missing argument 'FILE|-|URL'. See `bouncer triage --help`."),
        (
            ["verify", "--issue", "issue.md"],
            "bouncer verify: Missing option '--patch'. See `bouncer verify --help`.",
        ),
        (["frob"], "bouncer: No such command 'frob'. See `bouncer --help`."),
    ],
)
def test_wrong_usage_is_one_line(run: Run, arguments: list[str], why: str) -> None:
    assert run(*arguments) == (2, "", f"{why}\n")


def test_a_reply_that_cannot_be_used_is_named_once(run: Run) -> None:
    code, out, _ = run("triage", "issue.md", reply={"text": "It looks fine to me."})
    reason = "recorded:replies.jsonl#m answered with something unusable: the answer holds no JSON object"
    assert (code, out) == (0, f"Not judged: {reason}\n")
    code, out, _ = run("verify", "--issue", "issue.md", "--patch", "fix.diff", reply={"text": "Fine."})
    assert (code, out) == (0, "Not judged: the model gave no usable answer (malformed)\n")


@pytest.mark.parametrize(
    "command",
    [
        ["triage", "issue.md"],
        ["verify", "--issue", "issue.md", "--patch", "fix.diff"],
        ["review", "--diff", "fix.diff"],
    ],
)
@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Response("down", status=503, headers={"retry-after": "0"}), "openai answered 503: down"),
        (
            Response('{"error": {"message": "no"}}', status=401),
            "openai refused the key (401): check OPENAI_API_KEY",
        ),
    ],
    ids=["away", "refused"],
)
def test_a_model_that_does_not_answer_is_an_error_and_no_abstention(
    run: Run,
    httpserver: HTTPServer,
    monkeypatch: pytest.MonkeyPatch,
    command: list[str],
    answer: Response,
    why: str,
) -> None:
    httpserver.expect_request("/v1/chat/completions").respond_with_response(answer)
    monkeypatch.setenv("OPENAI_BASE_URL", httpserver.url_for("/v1"))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-wrong")
    for options in (["--json"], ["--fail-on", "abstain"]):
        code, out, err = run(*command, *options, model="openai:some-model")
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert why in err


TESTED = """\
--- a/rocket.py
+++ b/rocket.py
@@ -1,2 +1,2 @@
 def half(x):
-    return x // 2
+    return x / 2
--- /dev/null
+++ b/test_rocket.py
@@ -0,0 +1,5 @@
+import rocket
+
+
+def test_odd():
+    assert rocket.half(3) == 1.5
"""


@pytest.mark.debian("bubblewrap")
def test_a_patch_is_judged_by_its_words_and_its_new_tests(run: Run) -> None:
    Path("words.md").write_text("# Halve odd numbers\n\nhalf(3) is 1.5, for #12. Fixes #12\n")
    Path("tested.diff").write_text(TESTED)
    Path("here").mkdir()
    for name, data in NO_PLUGINS.items():
        Path("here", name).write_bytes(data)
    Path("here/rocket.py").write_text("def half(x):\n    return x / 2\n")
    Path("here/test_rocket.py").write_text("".join(f"{line[1:]}\n" for line in TESTED.splitlines()[-5:]))
    words = ("verify", "--description", "words.md", "--patch", "tested.diff")
    tested = ("--repo", "here", "--test-command", f"{sys.executable} -m pytest -q {{tests}}")
    claim = {"text": "half(3) is 1.5", "implemented": "yes"}
    reply = {"claims": [claim], "unsaid": ["`half` returns a float"], "p_bounce": 4}
    code, out, _ = run(*words, *tested, reply=reply)
    assert code == 0
    assert out.startswith(
        "CORRECT_BUT_INCOMPLETE: passes (falls short: 4% likely)\n\nhalf(3) is 1.5: implemented.\n"
        "- not said: `half` returns a float\n- covered: half(3) is 1.5\n\n"
        "Tests: the new test fails before the change and passes after it\n"
        "- test_rocket.py::test_odd: failed without the change, passed with it\n"
    )
    Path("here/rocket.py").write_text("def half(x):\n    return x // 2\n")
    Path("here/test_rocket.py").unlink()
    assert (
        run(*words, *tested, reply=reply)[2] == "bouncer: --test-command: --repo here does not hold the change\n"
    )
    assert "--test-command needs --repo" in run(*words, *tested[2:], reply=reply)[2]
