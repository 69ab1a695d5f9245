# ruff: noqa: E501 - lists of texts
"""Parsers of data sets, published ones and a user's own."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path

from pydantic import ValidationError

from bot.core.errors import OperatorError
from evaluation.bloom.masking import mask_report, patched_methods
from evaluation.bouncerbench.leaderboard import read_config
from evaluation.bouncerbench.tasks import input_task
from evaluation.brt.cases import read_candidates, read_cases
from evaluation.crbench.golden import read_golden
from evaluation.crbench.task import read_tasks
from evaluation.dataset import read_rows
from tests.parsers.parser import Parser


@cache
def _place() -> Path:
    """Return a folder of this process; a new file for each text would cost more than parsing it."""
    folder = tempfile.mkdtemp(prefix="bouncer-parsers-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def _file(read: Callable[[str], object], suffix: str = ".jsonl") -> Callable[[str], object]:
    """Return a parser of texts from a parser of files."""

    def stored(text: str) -> object:
        file = _place() / f"text{suffix}"
        file.write_bytes(text.encode("utf-8", "surrogatepass"))
        return read(str(file))

    return stored


def _golden(source: str) -> object:
    with suppress(OperatorError):
        return list(read_golden(read_rows(source), "aacr"))
    return list(read_golden(read_rows(source), "martian"))


def _cases(source: str) -> object:
    with suppress(OperatorError):
        return list(read_candidates(source))
    return read_cases(source)


# fmt: off
PARSERS: tuple[Parser, ...] = (
    Parser(
        "tasks of a benchmark",
        _file(lambda source: [input_task(row) for row in read_rows(source)]),
        raises=(OperatorError, ValidationError),
        hard=(
            ("", "{}\n", ""), ("", '{"a":', ""), ('{"instance_id": "a__b-1", "problem_statement": "', "a ", '"}'),
            ("", "[", ""),
        ),
        words=('{"instance_id": "a__b-1", ', '"problem_statement": "x"', "}", "\n", '"full_score": 2', ", "),
        samples=(
            '{"instance_id": "a__b-1", "repo": "a/b", "problem_statement": "x", "underspecified": 2.0}\n',
        ),
    ),
    Parser(
        "tables of a benchmark",
        _file(lambda source: list(read_rows(source)), ".csv"),
        raises=(OperatorError, ValidationError),
        hard=(("a,b\n", '"', ""), ("a\n", "1\n", "")),
        words=('"', ","),
        samples=(
            "instance_id,problem_statement\na__b-1,\"x, \"\"y\"\"\nz\"\n",
        ),
    ),
    Parser(
        "cases and candidates of BRT",
        _file(_cases),
        raises=(OperatorError, ValidationError),
        hard=(("", '{"instance_id": "a"}\n', ""), ('{"instance_id": "a", "candidate_id": "b", "code": "', "a ", '"}')),
        words=('{"instance_id": "a", ', '"candidate_id": "b"', '"code": "x"', '"bug_id": "a"', "}", "\n", ", "),
        samples=(
            '{"instance_id": "a", "candidate_id": "b", "path": "t.py", "content": "x", "base": "c", "fixed": "d", "command": ["e", "{tests}"], "env": {"F": "g"}}\n',
        ),
    ),
    Parser(
        "reviewers' remarks",
        _file(_golden),
        raises=(OperatorError, ValidationError),
        hard=(("", '{"url": "https://github.com/a/b/pull/1", "comments": []}\n', ""), ('{"url": "', "a/", '"}')),
        words=('{"url": "https://github.com/a/b/pull/1"', '"comments": [{"comment": "x", "severity": "y"}]', "}", ", "),
        samples=(
            '{"url": "https://github.com/a/b/pull/1", "pr_title": "t", "comments": [{"comment": "x", "severity": "high"}]}\n',
            '{"githubPrUrl": "https://github.com/a/b/pull/1", "source_commit": "a", "target_commit": "b", "sample_kind": "positive", "comments": [{"note": "x", "category": "Performance"}]}\n',
        ),
    ),
    Parser(
        "tasks of reviews",
        _file(lambda source: list(read_tasks(source))),
        raises=(OperatorError, ValidationError),
        hard=(("", '{"instance_id": "a"}\n', ""), ('{"instance_id": "a", "pull": ', "[", "")),
        words=('{"instance_id": "a"', '"kept": true', '"bugs": [{}]', '"pull": {}', "}", ", ", "\n"),
        samples=(
            '{"instance_id": "a", "repo": "a/b", "base_commit": "c", "kept": true, "reason": null, "pull": {"number": 1, "title": "t", "body": "b", "base_sha": "c", "head_sha": "d", "diff": "e", "comments": null}, "bugs": [{"description": "f"}]}\n',
        ),
    ),
    Parser(
        "submissions to the leaderboard",
        _file(lambda source: read_config(Path(source)), ".yaml"),
        raises=(OperatorError,),
        hard=(("", "[", ""), ("", "{a: ", ""), ("a: ", "!!str ", "x"), ("", "a: &a\n", ""), ("entries: ", "- ", "x")),
        words=("name: ", "a\n", "entries:\n", "  input: b.json\n", "&a ", "*a", "<<: ", "!!int ", "!!timestamp ", "{", "}"),
        limit=32_000,
        samples=(
            "name: a\noss: true\nsite: b\nicon: c.png\nentries:\n  input: d.json\n  lite: null\n",
        ),
    ),
    Parser(
        "code whose names are masked",
        lambda text: (patched_methods({"a.py": text}, {"a.py": "def f(): pass\n" + text}), mask_report(text, {"f": "g"})),
        hard=(("", "def f(): pass\n", ""), ("", "class A:\n", ""), ("def f():\n x = ", "f(", ""), ("", "f.", "")),
        words=("def f():\n", " return 1\n", "class A:\n", " def g(self): pass\n", "f()", "`f`"),
        limit=16_000,
        samples=(
            "import a\n\nclass B:\n    def c(self, d=1):\n        return self.f(d)\n\ndef f(x):\n    return B().c(x)['f']\n",
        ),
    ),
)
