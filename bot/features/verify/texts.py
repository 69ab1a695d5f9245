"""The check run of a pull request. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from bot.core.actions import Conclusion, SetCheck, Usage
from bot.core.config import VerifyConfig
from bot.core.markdown import clean, clean_line, code_span, details
from bot.core.subjects import Repository
from bot.core.text import amount
from bot.features.shared.labels import OutputLabel
from bot.features.verify.record import ExecutedTest, NewTests, OutputVerdict, Rival, Twin, VerifyRecord
from bot.models.protocol import caveat

#: The name of the check run.
CHECK = "bouncer / verify"
#: Characters of one point, and of one folded explanation.
POINT = 300
EXPLANATION = 3_000
#: Earlier pull requests that are named.
MAX_TWINS = 3
#: New tests that are listed.
MAX_LISTED = 10

_SOLVED, _NOT_FULLY, _NOT = "Appears to solve", "May not fully solve", "Probably doesn't solve"
_DOES, _NOT_ALL, _NOT_THAT = (
    "Appears to do what it says",
    "May not do all that it says",
    "Probably doesn't do what it says",
)
_WORST_FIRST = (_NOT, _NOT_THAT, _NOT_FULLY, _NOT_ALL, _SOLVED, _DOES)


def skipped(
    head_sha: str, why: str, *, fails: bool = False, note: str = "", tests: NewTests | None = None, host: str = ""
) -> SetCheck:
    """Return a check that says that nothing was judged, and what new tests show. ``fails``: it fails as a gate."""
    titles = (f"Not judged: {why}", tests_sentence(tests) if tests else "")
    parts = (note, f"Nothing was judged: {why}.", _tests_section(tests, host) if tests else "")
    return SetCheck(
        name=CHECK,
        head_sha=head_sha,
        conclusion="failure" if fails else "skipped",
        title="; ".join(filter(None, titles)),
        summary="\n\n".join(filter(None, parts)),
    )


def twins(pulls: Sequence[Twin]) -> str:
    """Return the sentences that name earlier pull requests; empty if there are none."""
    sentences: list[str] = []
    for pull in pulls[:MAX_TWINS]:
        issues = f"is also for {', '.join(f'#{issue}' for issue in pull.closes)}" if pull.closes else ""
        changes = f"makes {pull.share} % of this one's changes" if pull.share else ""
        reasons = " and ".join(filter(None, (issues, changes)))
        sentences.append(f"An earlier open pull request, #{pull.number}, {reasons}.")
    if len(pulls) > MAX_TWINS:
        sentences.append(f"There are {len(pulls) - MAX_TWINS} more like these.")
    return " ".join(sentences)


def check(
    head_sha: str,
    record: VerifyRecord,
    *,
    config: VerifyConfig,
    repository: Repository,
    usage: Usage,
    model: str,
) -> SetCheck:
    """Return the check of a pull request whose verdicts, or reasons for none, are recorded."""
    host, tests = repository.host, record.new_tests
    due = [issue.issue for issue in record.unjudged if issue.due] if fails_unjudged(config) else []
    if not record.verdicts:
        why = "; ".join(_point(issue.why, host) for issue in record.unjudged)
        return skipped(head_sha, why, fails=bool(due), note=record.note, tests=tests, host=host)
    runs: dict[int | None, ExecutedTest] = {run.issue: run for run in record.runs}
    parts = [
        record.note,
        *(_section(verdict, runs, record.rivals, host) for verdict in record.verdicts),
        *(f"### {issue.issue}\n\nNot judged: {_point(issue.why, host)}" for issue in record.unjudged),
        "*An AI model's opinion; it may be wrong.*",
        f"_{model_note}_" if (model_note := caveat(model)) else "",
        _tests_section(tests, host) if tests else "",
        details("Model and cost", f"`{model}`: {amount(usage.calls, 'call')}, {usage.tokens}, {usage.cost}"),
    ]
    titles = (
        _title(record, runs),
        tests_sentence(tests) if tests else "",
        f"not judged: {', '.join(due)}" if due else "",
        _exempt(record.exempt),
    )
    return SetCheck(
        name=CHECK,
        head_sha=head_sha,
        conclusion="failure" if due else _conclusion(record, config),
        title="; ".join(filter(None, titles)),
        summary="\n\n".join(filter(None, parts)),
    )


def _conclusion(record: VerifyRecord, config: VerifyConfig) -> Conclusion:
    if not any(verdict.bounced for verdict in record.verdicts):
        return "success"
    return "failure" if config.gate else "neutral"


def _exempt(paths: Sequence[str]) -> str:
    """Return the clause about files that the change exempted from judgement; empty if there are none."""
    if not paths:
        return ""
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return f"not judged: {clean_line(paths[0], limit=60)}{more}"


def _point(text: str, host: str) -> str:
    return clean_line(text, host=host, limit=POINT)


def fails_unjudged(config: VerifyConfig) -> bool:
    """Return True if the check fails when a verdict was due and there is none."""
    return config.gate and config.gate_unjudged == "fail"


def _title(record: VerifyRecord, runs: Mapping[int | None, ExecutedTest]) -> str:
    """Return the worst verdict in words, with its issues and what their reproducing tests say."""
    phrases = [(verdict.issue, _appears(verdict, runs)) for verdict in record.verdicts]
    worst = min((phrase for _, phrase in phrases), key=_WORST_FIRST.index)
    issues = [issue for issue, phrase in phrases if phrase == worst and issue is not None]
    title = f"{worst} {', '.join(f'#{issue}' for issue in issues)}".rstrip()
    issue_runs = [runs[issue] for issue in issues if issue in runs]
    rivals = [rival for rival in record.rivals if rival.issue in issues and rival.head]
    if len(issue_runs) == 1 and rivals:
        return f"{title}; its reproducing test: {_compared(issue_runs[0], rivals)}"
    if worst not in (_SOLVED, _DOES):
        return title
    if issue_runs:
        return f"{title}; {_passes(issue_runs, len(issues))}"
    is_executed = record.new_tests is not None and record.new_tests.executed
    return title if is_executed else f"{title} (not executed)"


def _passes(runs: Sequence[ExecutedTest], issues: int) -> str:
    """Return what the reproducing tests of so many solved issues say."""
    if len(runs) < issues or not all(run.solved for run in runs):
        return "its reproducing test is inconclusive"
    return "its reproducing test passes here" if len(runs) == 1 else "their reproducing tests pass here"


def _compared(run: ExecutedTest, rivals: Sequence[Rival]) -> str:
    """Return ``passes here, still fails on #15``: the outcomes of one test on all pull requests for its issue."""
    words = {"passed": "passes", "failed": "fails", "timeout": "fails"}
    here = words.get(run.head, "is inconclusive")
    groups: dict[str, list[str]] = {}
    for rival in rivals:
        word = words.get(rival.head, "is inconclusive") if rival.head else "was not run"
        groups.setdefault("still fails" if word == "fails" else word, []).append(f"#{rival.pull}")
    return ", ".join((f"{here} here", *(f"{word} on {', '.join(pulls)}" for word, pulls in groups.items())))


def _appears(verdict: OutputVerdict, runs: Mapping[int | None, ExecutedTest]) -> str:
    """Return the verdict in words. A test that fails counts against the patch; one that passes proves nothing."""
    good, partly, wrong = (_DOES, _NOT_ALL, _NOT_THAT) if verdict.issue is None else (_SOLVED, _NOT_FULLY, _NOT)
    if not verdict.bounced:
        return good
    run = runs.get(verdict.issue)
    failed = run is not None and run.solved is False
    return wrong if failed or verdict.label == OutputLabel.INCORRECT else partly


#: Below every test that passes on head, because the pull request's code ran in the process that reported it.
_UNVERIFIED = (
    "The pass proves nothing by itself: the pull request's own code ran in the test, and a wrong patch can "
    "pass it."
)

#: Below every run of new tests, because tests and code are both the pull request's own.
_FORGED = "The pull request's own code ran in these tests, so they count for nothing in a verdict."


def _section(
    verdict: OutputVerdict, runs: Mapping[int | None, ExecutedTest], rivals: Sequence[Rival], host: str
) -> str:
    words = _appears(verdict, runs)
    if verdict.issue is None:
        lines = [f"### The description: {words}", ""]
        missing, covered = "Said and not implemented", "Said and implemented"
    else:
        words = "Right as far as stated; wording open" if verdict.open_wording else f"{words} it"
        lines = [f"### #{verdict.issue}: {words}", "", *_table(verdict, host)]
        missing, covered = "Missing", "Covered"
    for title, points in (
        (missing, () if verdict.demands else verdict.missing),
        ("Changed without being said", verdict.unsaid),
        ("May have broken", verdict.regressions),
        (covered, () if verdict.demands else verdict.covered),
        ("Remarks (not counted)", verdict.remarks),
    ):
        if points:
            lines += [f"{title}:", *(f"- {_point(point, host)}" for point in points), ""]
    run = runs.get(verdict.issue)
    if run is not None:
        lines += [f"Test {code_span(run.test, limit=POINT)}: {run.base} on base, {run.head} on head."]
        lines += [_UNVERIFIED, ""] if run.head == "passed" else [""]
        if others := [rival for rival in rivals if rival.issue == run.issue]:
            lines += [f"Open pull requests for #{run.issue}: the test {_compared(run, others)}.", ""]
        lines += _output(run.command, run.output, host)
    explanation = clean(verdict.explanation, host=host, limit=EXPLANATION)
    return "\n".join([*lines, details(f"Why: {verdict.label}{_chances(verdict)}", explanation)])


def _table(verdict: OutputVerdict, host: str) -> list[str]:
    """Return the demands and their grades as a table."""
    if not verdict.demands:
        return []
    rows = ["| Demand | Basis | Grade | Line |", "|---|---|---|---|"]
    for demand in verdict.demands:
        line = code_span(demand.quote, limit=100) if demand.quote.strip() else ""
        cells = (_point(demand.text, host), demand.basis, demand.word, line)
        # GitHub ends a cell at a bar behind two backslashes.
        rows.append("| " + " | ".join(re.sub(r"\\*\|", r"\\|", cell) for cell in cells) + " |")
    return [*rows, ""]


def _chances(verdict: OutputVerdict) -> str:
    if verdict.p_bounce is None:
        return ""
    chance = f"{verdict.p_bounce}% likely to fall short"
    if verdict.p_form is not None:
        return f" ({chance} (decides); {verdict.p_form}% likely to miss only an exact form)"
    if verdict.p_objects is None:
        return f" ({chance})"
    chance += " (decides)" if verdict.line == "p_bounce" else ""
    return f" ({chance}; {verdict.p_objects}% likely to draw an objection)"


def tests_sentence(tests: NewTests) -> str:
    """Return what the new tests show, for a title; empty if nothing was run although there are some."""
    if not tests.files:
        return "no test was added"
    count = len(tests.tests)
    if not count:
        return ""
    failing, telling = tests.failing, tests.telling
    idle = sum(test.before == test.after == "passed" for test in tests.tests)
    if failing:
        return f"{_of_new(failing, count)} {_verb('fail', failing)} with the change"
    if idle:
        subject = "it does" if idle == 1 else "they do"
        return f"{_of_new(idle, count)} {_verb('pass', idle)} without the change: {subject} not show the fix"
    if telling:
        before, after = _verb("fail", telling), _verb("pass", telling)
        return f"{_of_new(telling, count)} {before} before the change and {after} after it"
    return "the new tests are inconclusive"


def _of_new(part: int, count: int) -> str:
    if part == count:
        return "the new test" if count == 1 else "the new tests"
    return f"{part} of {count} new tests"


def _verb(verb: str, count: int) -> str:
    if count > 1:
        return verb
    return f"{verb}es" if verb.endswith("s") else f"{verb}s"


def _tests_section(tests: NewTests, host: str) -> str:
    """Return the part of the check about the tests that the pull request adds or changes."""
    sentence = tests_sentence(tests) or f"not run: {_point(tests.why, host)}"
    lines = ["### Tests", "", f"{sentence[:1].upper()}{sentence[1:]}.", ""]
    lines += [
        f"- {code_span(test.test, limit=POINT)}: {test.before} without the change, {test.after} with it"
        for test in tests.tests[:MAX_LISTED]
    ]
    more = max(0, len(tests.tests) - MAX_LISTED) + tests.omitted
    if more:
        lines.append(f"- and {more} more" + (f", {tests.omitted} of which were not run" if tests.omitted else ""))
    if tests.executed:
        lines += ["", _FORGED]
    failing = [test for test in tests.tests if test.after == "failed"]
    example = next((test for test in (*failing, *tests.tests) if test.output.strip()), None)
    if example is not None:
        lines += ["", *_output(example.test, example.output, host)]
    return "\n".join(lines).rstrip()


def _output(ran: str, output: str, host: str) -> list[str]:
    """Return the folded output of a test. What ran is named inside: the title of a fold is HTML."""
    text = f"{code_span(ran, limit=POINT)}\n\n{clean(output, host=host, limit=4_000)}"
    return [details("Output", text), ""]
