"""Reading reports of any tracker's format, and choosing context and examples for the prompt."""

from __future__ import annotations

import gzip
import json
import math
import re
from pathlib import Path

import pytest

from bot.reproduction.context import context, layout, read_checkout
from bot.reproduction.examples import STATIC, find_mentions, from_repository
from bot.reproduction.lexical import most_alike, scores, words
from bot.reproduction.protocol import Report
from bot.reproduction.python.language import Python
from bot.reproduction.report import facts, framings, parse_report, read_report, to_markdown

PYTHON = Python()


def test_html_becomes_markdown_with_code_lists_and_links() -> None:
    html = """<div class="m"><p>Reading <code>a&lt;b&gt;</code> fails:</p>
<pre class="x"><code>x = read(
    "a")
</code></pre>
<ul><li>once</li><li>see <a href="https://e.org/1">the   thread</a></li></ul>
<script>alert(1)</script><h2>Expected</h2><p>No<br/>error</p></div>"""

    assert to_markdown(html) == (
        "Reading `a<b>` fails:\n\n"
        '```\nx = read(\n    "a")\n```\n\n'
        "- once\n- see [the thread](https://e.org/1)\n\n"
        "## Expected\n\nNo\nerror"
    )


def test_markdown_is_not_changed() -> None:
    text = "See `a < b`:\r\n\r\n```\r\nif a <b>:\r\n```\r\n"

    assert to_markdown(text) == "See `a < b`:\n\n```\nif a <b>:\n```"


def test_every_shared_java_report_is_converted_to_markdown(shared_data: Path) -> None:
    path = shared_data / "brt" / "defects4j_bug_reports.jsonl.gz"
    rows = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]

    reports = [read_report(row["title"], row["description_html"]) for row in rows]

    assert len(reports) == 814
    assert all(report.title and "<small>" not in report.title for report in reports)
    prose = [re.sub(r"```.*?```|`[^`\n]*`", "", report.body, flags=re.DOTALL) for report in reports]
    # The one quotes a documentation comment in its prose.
    assert sum("</div>" in text or "</p>" in text for text in prose) == 1
    assert sum(bool(facts(report).exceptions) for report in reports) > 150


def test_the_hard_facts_of_a_report() -> None:
    report_facts = facts(
        parse_report(
            "# Table.read() raises pkg.errors.FormatError\n\nCalling `Table.read('x.csv', size=3)` on my_file:\n\n"
            "```python\nfrom pkg import Table\nTable.read( 'x.csv',  size=3 )\n```\n\nRuntimeException it says."
        )
    )

    assert report_facts.exceptions == {"FormatError"}
    assert report_facts.crash
    assert report_facts.calls == ("read('x.csv',size=3)",)
    assert report_facts.names[0] == "Table.read"
    assert "my_file" in report_facts.names


def test_a_report_of_a_wrong_value_is_not_a_crash() -> None:
    report_facts = facts(parse_report("add returns 4\n\n`add(1, 2)` gives 4."))

    assert not report_facts.crash
    assert report_facts.exceptions == frozenset()


def test_words_of_identifiers_are_found_by_their_parts() -> None:
    assert words("readTable my_file HTTPServer") == [
        *("readtable", "read", "table"),
        *("my_file", "my", "file"),
        *("httpserver", "http", "server"),
    ]
    assert most_alike("readTable", {"a": "read_table of a file", "b": "write rows", "c": ""}, 3) == ("a",)


def test_scores_are_okapi_bm25_with_its_usual_constants() -> None:
    """Compare with a calculation by hand: k1 = 1.5, b = 0.75, lengths 2 and 4, mean 3."""
    texts = {"short": "x y", "long": "x z z z"}

    assert scores("x", texts)["short"] == pytest.approx(math.log(1.2) * 2.5 / 2.125)
    assert scores("x", texts)["long"] == pytest.approx(math.log(1.2) * 2.5 / 2.875)
    assert scores("z z", texts)["long"] == pytest.approx(math.log(2) * 7.5 / 4.875)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    files = {
        "src/pkg/__init__.py": "from pkg.table import Table\n",
        "src/pkg/table.py": "class Table:\n    def read(self, path):\n        return parse(path)\n\n\n"
        "def parse(path):\n    return 1\n",
        "src/pkg/other.py": "class Reader:\n    def read(self):\n        pass\n",
        "tests/test_table.py": "from pkg.table import Table\n\n\ndef test_read():\n    # GH-17: empty files\n"
        "    assert Table().read('a')\n",
        "tests/test_other.py": "import pkg.other as o\n\n\ndef test_other():\n    assert o.Reader\n",
        "build/lib/x.py": "def read():\n    pass\n",
        ".hidden/y.py": "def read():\n    pass\n",
        "docs/a.md": "# read\n",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "link.py").symlink_to("/etc/passwd")
    (tmp_path / "bytes.py").write_bytes(b"\xff\xfe")
    return tmp_path


def test_the_innermost_frame_and_linked_code_come_before_other_names() -> None:
    text = (
        "`pkg.Table` breaks\n\nSee https://github.com/o/r/blob/main/src/pkg/table.py#L3\n"
        'Traceback (most recent call last):\n  File "a.py", line 1, in main\n    x()\n'
        '  File "b.py", line 2, in parse_row\n    y()\nValueError: 3\n'
    )
    assert facts(parse_report(text)).names[:4] == ("parse_row", "main", "table", "pkg.Table")


def test_an_option_leads_to_its_code_and_to_the_test_file_of_that_module(repository: Path) -> None:
    code = "def options(parser):\n    parser.add('--fast-mode')\n    return parser\n"
    (repository / "src/pkg/settings.py").write_text(code)
    (repository / "tests/test_settings.py").write_text("def test_nothing():\n    assert True\n")
    checkout = read_checkout(repository, PYTHON)
    report_context = context(
        facts(parse_report("Option ignored\n\nWith '--fast-mode' the table is slow.")), checkout, PYTHON
    )
    assert [definition.name for definition in report_context.definitions] == ["options"]
    assert report_context.host == "tests/test_settings.py"


def test_the_prompt_shows_similar_tests_and_the_code_in_the_report(repository: Path) -> None:
    checkout = read_checkout(repository, PYTHON)

    report_context = context(
        facts(parse_report("`Table.read` fails\n\nReading an empty table.")), checkout, PYTHON
    )

    assert set(checkout.tests) == {"tests/test_table.py", "tests/test_other.py"}
    assert "link.py" not in checkout.paths
    assert report_context.host == "tests/test_table.py"
    # The functions that it calls are shown after it, one level deep.
    assert [(definition.name, definition.path) for definition in report_context.definitions] == [
        ("Table.read", "src/pkg/table.py"),
        ("parse", "src/pkg/table.py"),
    ]
    assert report_context.layout == "./ (1 files)\ndocs/ (1 files)\nsrc/pkg/ (3 files)\ntests/ (2 files)"


FORM = "It fails.\n\n```python\nload(EMPTY)\n```\n\n### Expected\n\nAn empty table.\n\n### Version\n\n4.2"
PROSE = "I call `load(EMPTY)` and it fails. It should return `[]`. Thanks!"


@pytest.mark.parametrize(
    ("body", "parts"),
    [
        (FORM, ["```python\nload(EMPTY)\n```", "An empty table."]),
        (PROSE, ["I call `load(EMPTY)` and it fails.", "It should return `[]`."]),
        ("**Expected behavior**\nNo error.\n**Actual**\nAn error.", ["No error."]),
        ("`load(EMPTY)` should return `[]`.", []),
        ("It is broken.", []),
        ("", []),
        ("# Expected\n\n# Actual\n\nIt fails.", []),
        ("### Expected\n\n_No response_\n\n### Version\n\n4.2", []),
        ("**Expected behavior**\n<!-- What you expected to happen. -->\n**Actual**\nIt fails.", []),
        ("It fails.\n```\nload(EMPTY)\n# Expected: []\n```\n", ["```\nload(EMPTY)\n# Expected: []\n```"]),
        ("1. Run:\n\n   ```\n   load(EMPTY)\n   ```\n", ["```\nload(EMPTY)\n```"]),
        ("It fails. Expected: `[]`. Actual: `None`.", ["Expected: `[]`."]),
        ("Expected:\n```\n[]\n```\nActual:\n```\nNone\n```", ["```\n[]\n```\n\n```\nNone\n```", "```\n[]\n```"]),
        (
            "# Expected\n\nIt prints:\n\n```sh\n# total 3\n3\n```\nand no more.\n",
            ["```sh\n# total 3\n3\n```", "It prints:\n\n```sh\n# total 3\n3\n```\nand no more."],
        ),
    ],
)
def test_a_report_is_framed_as_its_example_and_as_its_expected_result(body: str, parts: list[str]) -> None:
    report = Report(title="Empty files", body=body)
    framed = framings(report)
    assert framed[0] == report
    assert [framing.body for framing in framed[1:]] == parts
    assert {framing.title for framing in framed} == {"Empty files"}


def test_names_are_imported_as_the_repositorys_tests_import_them(repository: Path) -> None:
    checkout = read_checkout(repository, PYTHON)
    names = PYTHON.names(checkout.sources, checkout.tests)

    assert names.provider("Table") == "from pkg.table import Table"
    assert names.provider("o") == "import pkg.other as o"
    assert names.provider("parse") == "from pkg.table import parse"
    assert names.provider("Reader") == "from pkg.other import Reader"
    assert names.provider("unknown") is None


def test_a_large_layout_is_cut_to_its_largest_folders() -> None:
    paths = [f"a{n}/b/c/d/e{k}.py" for n in range(200) for k in range(n + 1)]

    lines = layout(paths).splitlines()

    assert len(lines) == 60
    assert "a199/b/c/ (200 files)" in lines


def test_an_open_book_pairs_tests_with_the_issues_that_they_name(repository: Path) -> None:
    checkout = read_checkout(repository, PYTHON)
    issue = Report(title="Empty files", body="read() of an empty file fails.", number=17)
    report = Report(title="Table read fails for a missing file", number=20)

    examples = from_repository(report, checkout.tests, PYTHON, {17: issue}.get)

    assert [issue for issue, _ in find_mentions(checkout.tests, PYTHON).values()] == [17]
    assert examples[0].report == issue.text
    assert examples[0].test.startswith("def test_read():")
    assert examples[1] == STATIC[0]
    assert from_repository(report, checkout.tests, PYTHON, lambda number: None) == STATIC
    assert find_mentions(checkout.tests, PYTHON, without=17) == {}
