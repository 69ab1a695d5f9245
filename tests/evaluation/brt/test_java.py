"""Java runs: planted bugs, drafts for JUnit 4 and 5, real Maven and Gradle, masked pairs."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from bot.reproduction.execution import SandboxHarness
from bot.reproduction.notation import arguments
from bot.reproduction.protocol import Target, TestCommand
from bot.sandbox.bubblewrap import Bubblewrap
from bot.sandbox.protocol import Limits
from tests.evaluation.checkouts import checkouts, place
from tests.evaluation.running import printed, read, write

pytestmark = [
    pytest.mark.debian("bubblewrap"),
    pytest.mark.debian("default-jdk-headless"),
    pytest.mark.debian("junit5"),
    pytest.mark.usefixtures("remembered_runs"),
]

JARS = [
    f"/usr/share/java/{name}.jar"
    for name in (
        "junit-jupiter-api", "junit-jupiter-engine", "junit-jupiter-params", "junit-vintage-engine", "junit4",
        "junit-platform-commons", "junit-platform-console", "junit-platform-engine", "junit-platform-launcher",
        "junit-platform-reporting", "hamcrest-core", "opentest4j", "opentest4j-reporting-events",
        "apiguardian-api", "picocli", "univocity-parsers",
    )
]  # fmt: skip
CP = ":".join(JARS)
#: Compiles what is there, and lets the launcher select.
BUILD = (
    f"javac -nowarn -proc:none -d out -cp {CP} $(find src -name '*.java') && "
    f"exec java -cp out:{CP} org.junit.platform.console.ConsoleLauncher --details=none --disable-banner {{tests}}"
)
COMMAND = ["sh", "-c", BUILD]

#: Name, the right method, what of it stands there otherwise, and a call with its right value.
BUGS = (
    ("half", "int half(int n) { return n >> 1; }", ">> 1", "<< 1", "4, Sums.half(8)"),
    ("last", "int last(int[] a) { return a[a.length - 1]; }", "- 1", "- 0", "2, Sums.last(new int[] {1, 2})"),
    ("max", "int max(int a, int b) { return a > b ? a : b; }", ">", "<", "3, Sums.max(1, 3)"),
    ("safe", 'String safe(String s) { return s == null ? "" : s.trim(); }', "s ==", "s !=", '"", Sums.safe(null)'),
)
THROWN = {
    "last": "java.lang.ArrayIndexOutOfBoundsException",
    "safe": "java.lang.NullPointerException",
}
MAIN, TESTS = "src/main/java/org/sums/Sums.java", "src/test/java/org/sums/SumsTest.java"
FIFTH = ("org.junit.jupiter.api.Test", "org.junit.jupiter.api.Assertions")
FOURTH = ("org.junit.Test", "org.junit.Assert")


def sums(*planted: str) -> str:
    methods = [code.replace(right, wrong) if name in planted else code for name, code, right, wrong, _ in BUGS]
    body = "".join(f"    public static {method}\n" for method in methods)
    return f"package org.sums;\n\npublic class Sums {{\n{body}}}\n"


def host(
    junit: tuple[str, str], body: str = "@Test public void max() { assertEquals(2, Sums.max(2, 1)); }"
) -> str:
    imports = f"import {junit[0]};\n\nimport static {junit[1]}.*;\n"
    return f"package org.sums;\n\n{imports}\npublic class SumsTest {{\n    {body}\n}}\n"


def pair(folder: Path, junit: tuple[str, str], *planted: str) -> None:
    checkouts(folder, {MAIN: sums(*planted), TESTS: host(junit)}, {MAIN: sums(), TESTS: host(junit)})


def harness(*argv: str) -> SandboxHarness:
    return SandboxHarness(
        Bubblewrap(), TestCommand(argv=argv), limits=Limits(seconds=120, cpu_seconds=120), by_operator=True
    )


def test_planted_bugs_are_told_from_their_fixes(tmp_path: Path) -> None:
    pair(tmp_path, FIFTH, *(name for name, *_ in BUGS))
    tests = "\n    ".join(f"@Test void {name}Works() {{ assertEquals({call}); }}" for name, *_, call in BUGS)
    files = {TESTS: host(FIFTH, tests)}
    targets = [Target(path=TESTS, name=f"org.sums.SumsTest::{name}Works") for name, *_ in BUGS]

    base = harness(*COMMAND).run(tmp_path / "base", targets, files)
    fixed = harness(*COMMAND).run(tmp_path / "fixed", targets, files)

    failures = {test.name.rpartition(".")[2].removesuffix("Works"): test for test in base.tests}
    assert {name: test.exception_type for name, test in failures.items()} == {
        name: THROWN.get(name, "org.opentest4j.AssertionFailedError") for name, *_ in BUGS
    }, base.outcome
    assert all(test.fails and test.path == TESTS for test in base.tests)
    assert failures["max"].message == "expected: <3> but was: <1>"
    assert str(failures["max"].frame).startswith(TESTS)
    assert str(failures["last"].frame).startswith("Sums.java:")
    assert [test.status for test in fixed.tests] == ["passed"] * len(BUGS)


REPORT = "Sums.last fails\n\n`Sums.last(new int[] {1, 2})` throws ArrayIndexOutOfBoundsException. I expect 2.\n"
RIGHT = "@Test\npublic void rest() {\n    assertEquals(2, Sums.last(new int[] {1, 2}));\n}\n"
#: Does not compile.
BROKEN = RIGHT.replace("last", "ultimate")


def test_drafts_for_junit_4_are_placed_run_and_judged(tmp_path: Path) -> None:
    pair(tmp_path, FOURTH, "last")
    case = {"instance_id": "1", "problem_statement": REPORT, "base": "base", "fixed": "fixed", "command": COMMAND}
    cases = write(tmp_path / "cases.jsonl", [case])
    drafts = [{"model": "m", "subject": "1", "plan": "", "code": code} for code in (BROKEN, RIGHT)]
    write(tmp_path / "drafts.jsonl", drafts)
    arguments = ("--model", "recorded:drafts.jsonl#m", "--samples", "2", "--out", "run")

    printed("replay", "brt", "--cases", cases, *arguments)

    (record,) = read("run/records.jsonl")
    broken, draft = record["drafts"]
    assert (broken["fate"], broken["repaired"]) == ("unusable", True)
    assert "cannot find symbol; symbol:   method ultimate(int[])" in broken["why"]
    assert draft["brt"] is True, draft
    assert draft["base"]["exception_type"] == "java.lang.ArrayIndexOutOfBoundsException"
    assert draft["tests"] == [f"{TESTS}::org.sums.SumsTest::rest"]
    assert record["shown"] == ["1"]


def test_a_masked_java_pair_is_still_the_same_bug(tmp_path: Path) -> None:
    """The developer's test stands in the fixed version; masked, it still fails before and passes after."""
    pair(tmp_path, FIFTH, "last")
    place(tmp_path / "fixed", {TESTS: host(FIFTH, RIGHT)})
    case = {"instance_id": "1", "problem_statement": REPORT, "base": "base", "fixed": "fixed", "command": COMMAND}
    cases = write(tmp_path / "cases.jsonl", [case])

    built = printed("build", "bloom", "--cases", cases, "--change", "hash", "--out", "masked")

    assert (built["built"], built["unverified"]) == (1, 0), Path("masked/failed.jsonl").read_text()
    (masked,) = read("masked/cases.jsonl")
    new = masked["changes"]["hash"]["names"]["last"]
    assert f"`Sums.{new}(new int[] {{1, 2}})`" in masked["problem_statement"]
    assert f"static int {new}(" in (Path(masked["base"]) / MAIN).read_text()


REPOSITORY = "/usr/share/maven-repo"
POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>org.sums</groupId><artifactId>sums</artifactId><version>1</version>
  <properties>
    <maven.compiler.source>17</maven.compiler.source>
    <maven.compiler.target>17</maven.compiler.target>
    <project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>
  </properties>
  <dependencies>
    <dependency>
      <groupId>junit</groupId><artifactId>junit</artifactId><version>4.13.2</version><scope>test</scope>
    </dependency>
  </dependencies>
</project>
"""
GRADLE = f"""apply plugin: 'java'
repositories {{ maven {{ url 'file://{REPOSITORY}' }} }}
dependencies {{ testCompile 'junit:junit:4.x' }}
"""
STALE = """<testsuite><testcase name="half" classname="org.sums.SumsTest" time="0.1">
<failure message="yesterday" type="java.lang.AssertionError">java.lang.AssertionError
	at org.sums.SumsTest.half(SumsTest.java:7)</failure></testcase></testsuite>"""


@pytest.mark.parametrize(
    ("command", "build"),
    [
        pytest.param(
            f"mvn -o -q -Dmaven.repo.local={REPOSITORY} test",
            {"pom.xml": POM},
            marks=[pytest.mark.debian("maven"), pytest.mark.debian("libsurefire-java")],
        ),
        pytest.param(
            "gradle --offline --no-daemon -g /tmp/gradle test --tests {tests}",
            {"build.gradle": GRADLE},
            marks=pytest.mark.debian("gradle"),
        ),
    ],
)
def test_real_maven_and_gradle_run_offline_in_the_sandbox(
    tmp_path: Path, command: str, build: dict[str, str]
) -> None:
    """One of two tests is asked for and fails."""
    body = "@Test public void half() { assertEquals(4, Sums.half(8)); }\n    @Test public void other() { fail(); }"
    place(tmp_path, {MAIN: sums("half"), TESTS: host(FOURTH, body), **build})
    test = [Target(path=TESTS, name="org.sums.SumsTest::half")]

    report = harness(*shlex.split(command)).run(tmp_path, test, {})

    (half,) = report.tests
    assert (half.status, half.exception_type) == ("failed", "java.lang.AssertionError"), report
    assert half.message == "expected:<4> but was:<16>"
    assert str(half.frame).startswith(TESTS)


@pytest.mark.parametrize(
    ("tool", "reports"), [("mvnw", "target/surefire-reports"), ("gradlew", "build/test-results/test")]
)
def test_a_report_of_yesterday_counts_for_nothing(tmp_path: Path, tool: str, reports: str) -> None:
    """The build ends before it writes one, as it does when nothing compiles."""
    place(tmp_path, {tool: "#!/bin/sh\nexit 1\n", f"{reports}/TEST-org.sums.SumsTest.xml": STALE})
    (tmp_path / tool).chmod(0o755)
    test = [Target(path=TESTS, name="org.sums.SumsTest::half")]

    report = harness(f"./{tool}", "test").run(tmp_path, test, {})

    assert (report.outcome.status, report.outcome.phase) == ("error", "load"), report


@pytest.mark.parametrize(
    ("command", "argument"),
    [
        ("mvn -o -q test", "-Dtest=a.b.CTest#d"),
        ("mvn -o test -Dtest={tests}", "-Dtest=a.b.CTest#d"),
        ("./gradlew test --offline --tests {tests}", "a.b.CTest.d"),
    ],
)
def test_a_test_is_named_as_its_build_tool_names_it(command: str, argument: str) -> None:
    test = [Target(path="core/src/test/java/a/b/CTest.java", name="a.b.CTest::d")]

    assert argument in arguments(TestCommand.parse(command), test)
