"""Drafted JUnit methods are placed in a test class or refused with a reason."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from unidiff import PatchSet

from bot.reproduction.examples import fixed_examples
from bot.reproduction.java.language import Java
from bot.reproduction.language import DraftRejected
from bot.reproduction.pipeline import language_of_tests
from bot.reproduction.protocol import TestCommand

JAVA = Java()
#: The names of a repository of which nothing is known.
UNKNOWN = JAVA.names({}, {})
HOST = """\
package org.x;

import java.util.List;
import org.junit.Test;

public class ParserTest {
  private int testIssue = 1;

  @Test
  public void testOld() {
    assertEquals("}", Parser.parse("{"));
  }
}
"""
DRAFT = """
```java
import java.util.List;
import java.util.Map;
import static org.junit.Assert.assertNull;

public class Whatever {
    @Test(expected = X.class)
    public void testIssue() throws Exception {
        Map<String, List<String>> m = Parser.parse("}");
        assertEquals(1, m.size()); // why
        assertNull(m.get("a"));
    }

    @Test
    public void testOther() { }
}
```
"""


def test_a_method_is_added_with_the_indentation_of_the_class() -> None:
    injected = JAVA.inject(DRAFT, HOST, None, UNKNOWN)

    assert injected.name == "org.x.ParserTest::testIssue2"
    assert injected.content == HOST.replace(
        "import org.junit.Test;\n",
        "import org.junit.Test;\nimport java.util.Map;\nimport static org.junit.Assert.assertNull;\n"
        "import static org.junit.Assert.assertEquals;\n",
    ).replace(
        "  }\n}\n",
        "  }\n\n"
        "  @Test(expected = X.class)\n"
        "  public void testIssue2() throws Exception {\n"
        '      Map<String, List<String>> m = Parser.parse("}");\n'
        "      assertEquals(1, m.size()); // why\n"
        '      assertNull(m.get("a"));\n'
        "  }\n}\n",
    )


HELPED = """
import java.util.Map;

public class Whatever {
    private static final int SIZE = 1, OTHER = 2;

    @Test
    public void testIssue() {
        assertEquals(SIZE, parsed("}").size());
    }

    private Map<String, String> parsed(String text) {
        return new Source(text).read();
    }

    private static class Source {
        final String text;

        Source(String text) { this.text = text; }

        Map<String, String> read() { return Parser.parse(text); }
    }

    private void unused() { }

    @Test
    public void testOther() { parsed(""); }
}
"""


def test_members_of_the_draft_that_its_test_uses_come_along() -> None:
    injected = JAVA.inject(HELPED, HOST, None, UNKNOWN)
    assert injected.content.endswith(
        '  @Test\n  public void testIssue2() {\n      assertEquals(SIZE, parsed("}").size());\n  }\n\n'
        "  private static final int SIZE = 1, OTHER = 2;\n\n"
        "  private Map<String, String> parsed(String text) {\n      return new Source(text).read();\n  }\n\n"
        "  private static class Source {\n      final String text;\n\n"
        "      Source(String text) { this.text = text; }\n\n"
        "      Map<String, String> read() { return Parser.parse(text); }\n  }\n}\n"
    )
    assert "parsed(String text)" in injected.code
    new = JAVA.new_file(HELPED, None, UNKNOWN, "src/test/java/NewTest.java")
    assert [new.content.count(name) for name in ("parsed(String", "class Source", "unused", "testOther")] == [
        1, 1, 0, 0,
    ]  # fmt: skip
    assert "class Source" in str(JAVA.invert(HELPED))
    assert JAVA.syntax(HELPED) != JAVA.syntax(HELPED.replace("return new", "return null; // new"))


def test_a_helper_that_the_file_has_is_not_repeated() -> None:
    host = HOST.replace("private int testIssue = 1;", "Map<String, String> parsed(String text) { return null; }")
    injected = JAVA.inject(HELPED, host, None, UNKNOWN)
    assert injected.content.count("parsed(String text)") == 1
    lone = "@Test\npublic void testIssue() { assertNull(read(1)); }\n\nString read(int n) { return null; }\n"
    assert "String read(int n)" in JAVA.new_file(lone, None, UNKNOWN, "ATest.java").content


@pytest.mark.parametrize(
    ("draft", "why"),
    [
        ("public void testX() { foo(", "does not parse"),
        ('public void testX() { String s = "a; }', "does not parse"),
        ("public void check() { }", "defines no test"),
        ("", "defines no test"),
        ("<!--" * 5_000, "cannot be read in time|does not parse"),
        ("import org.other.List;\n@Test public void testX() { }", "`List` means java.util.List"),
    ],
)
def test_a_draft_that_cannot_be_placed_is_refused_with_the_reason(draft: str, why: str) -> None:
    with pytest.raises(DraftRejected, match=why):
        JAVA.inject(draft, HOST, None, UNKNOWN)


def test_drafts_are_compared_by_tokens_and_inverted() -> None:
    draft = "@Test public void testA() { assertEquals(1, f()); }"
    other = "@Test\npublic void testB() {\n  // why\n  assertEquals( 1, f() );\n}"

    assert JAVA.syntax(draft) == JAVA.syntax(other)
    assert JAVA.length(draft) == JAVA.length(other)
    assert JAVA.invert(draft) == "@Test public void testA() { assertNotEquals(1, f()); }\n"
    assert JAVA.invert("@Test public void testA() { f(); }") is None


def test_a_method_alone_gets_a_class_and_a_file() -> None:
    draft = "import a.B;\n@Test public void rest() { }"

    injected = JAVA.new_file(draft, "issue12", UNKNOWN, "Issue12Test.java")

    assert injected.name == "Issue12Test::issue12"
    assert injected.content == (
        "import org.junit.Test;\nimport a.B;\n\n"
        "public class Issue12Test {\n    @Test public void issue12() { }\n}\n"
    )
    assert JAVA.new_path("src/test/java/a/XTest.java", "issue12", {}) == "src/test/java/a/Issue12Test.java"


def test_a_new_file_has_its_folders_package_and_the_repositorys_junit() -> None:
    head = "package org.y;\nimport org.junit.jupiter.api.Test;\n"
    sources = {
        "src/main/java/org/x/Parser.java": "package org.x;\npublic class Parser { }\n",
        "src/test/java/org/y/OtherTest.java": f"{head}class OtherTest {{ }}\n",
    }
    names = JAVA.names(sources, {path: text for path, text in sources.items() if JAVA.is_test_file(path)})
    draft = "import org.junit.Test;\n@Test public void a() { assertTrue(new Parser() != null); }"

    injected = JAVA.new_file(draft, None, names, "src/test/java/org/y/ATest.java")

    assert injected.name == "org.y.ATest::a"
    assert injected.content == (
        "package org.y;\n\nimport org.junit.jupiter.api.Test;\nimport org.x.Parser;\n"
        "import static org.junit.jupiter.api.Assertions.assertTrue;\n\n"
        "public class ATest {\n    @Test public void a() { assertTrue(new Parser() != null); }\n}\n"
    )


def test_language_and_examples_follow_the_command_or_the_build(tmp_path: Path) -> None:
    (tmp_path / "java").mkdir()
    (tmp_path / "java" / "pom.xml").write_text("<project/>")
    commands = {"mvn -o test": "java", "pytest": "python", "./check.sh {tests}": "java"}

    languages = {
        command: language_of_tests(tmp_path / "java", TestCommand.parse(command)).name for command in commands
    }

    assert languages == commands
    assert language_of_tests(tmp_path, TestCommand.parse("./check.sh {tests}")).name == "python"
    for example in fixed_examples("java"):
        JAVA.syntax(example.test)


def test_files_tests_and_definitions_are_found() -> None:
    assert JAVA.is_test_file("a/ParserTest.java")
    assert not JAVA.is_test_file("a/Parser.java")
    assert [name for name, _ in JAVA.tests_in(HOST)] == ["org.x.ParserTest::testOld"]
    sources = {
        "a/Parser.java": "public class Parser {\n    static int parse(String s) {\n        return 1;\n    }\n}\n"
    }
    definitions = JAVA.definitions(["Parser.parse", "Parser"], sources, 5)
    assert [(definition.name, definition.line) for definition in definitions] == [("parse", 2), ("Parser", 1)]


def test_the_class_of_the_tests_may_follow_a_helper_and_nest_others() -> None:
    helper = "class Helper {\n    int size;\n}\n\n"
    host = HOST.replace("public class", f"{helper}public class")
    assert [name for name, _ in JAVA.tests_in(host)] == ["org.x.ParserTest::testOld"]
    injected = JAVA.inject(DRAFT.replace("public class", f"{helper}public class"), host, None, UNKNOWN)
    assert injected.name == "org.x.ParserTest::testIssue2"
    assert helper in injected.content

    nested = "class ATest {\n    @Nested\n    class Inner {\n        @Test\n        void works() { }\n    }\n}\n"
    assert [name for name, _ in JAVA.tests_in(nested)] == ["ATest$Inner::works"]
    assert JAVA.inject(nested, HOST, None, UNKNOWN).name == "org.x.ParserTest::works"


def test_real_test_classes_take_a_draft(shared_data: Path) -> None:
    """Use the four whole test files that fixes in GHRB add."""
    rows = [
        json.loads(line)
        for line in gzip.decompress((shared_data / "brt" / "ghrb.jsonl.gz").read_bytes()).splitlines()
    ]
    hosts = [
        "".join(line.value for hunk in file for line in hunk if line.is_added)
        for row in rows
        for file in PatchSet(row["test_diff"])
        if file.is_added_file and JAVA.is_test_file(file.path)
    ]

    placed = [JAVA.inject(DRAFT, host, "testIssue7", UNKNOWN) for host in hosts]

    assert len(placed) == 4
    for host, injected in zip(hosts, placed, strict=True):
        rest = iter(injected.content.splitlines())
        assert all(line in rest for line in host.splitlines())
