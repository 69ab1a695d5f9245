"""The output bouncer: does this patch solve its issue, and what people read in its check run. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from bot.core.actions import Conclusion, SetCheck, Usage
from bot.core.config import VerifyConfig
from bot.core.frozen import Frozen, Lenient
from bot.core.markdown import clean, clean_line, code_span
from bot.core.subjects import Issue, Repository
from bot.core.text import folded, without_middle
from bot.features.shared.labels import MAX_BODY, Chance, OutputLabel, agreeing, bounces, tidy_label
from bot.models.prompts import Prompts
from bot.models.protocol import Prompt, caveat

#: Characters of a patch that are put into one question: GitHub itself shows no diff above 1 MB. Whether a model
#: can hold that many is for the model to say; a patch is judged whole or not at all.
MAX_PATCH = 1_000_000
#: The check run's name.
CHECK = "bouncer / verify"
#: Characters of one point in it, and of one folded explanation.
POINT = 300
EXPLANATION = 3_000


class Gap(Lenient):
    """Something that a patch leaves out or gets wrong. One that was recorded as plain text counts as certain."""

    what: str = Field(description="a short sentence")
    certain: bool = Field(description="true where the patch itself shows it, false where it is suspected")

    @model_validator(mode="before")
    @classmethod
    def _plain(cls, value: Any) -> Any:
        return {"what": value, "certain": True} if isinstance(value, str) else value


class OutputReply(Lenient):
    """What the model is to answer. The order matters: it reasons before it chooses (BouncerBench, III.B)."""

    explanation: str = Field(description="what the issue asks for, what the patch does, and where they part")
    covered: tuple[str, ...] = Field((), description="what the issue asks for and the patch does; short phrases")
    open_points: tuple[Gap, ...] = Field(
        (), description="what the issue asks for and the patch leaves out or gets wrong; empty where nothing is"
    )
    regressions: tuple[Gap, ...] = Field(
        (), description="what worked before and does not with the patch; empty where nothing is"
    )
    remarks: tuple[str, ...] = Field(
        (), description="stray files and the like: worth a word, and no reason to hold the patch back"
    )
    p_bounce: Chance = Field(
        None, description="chance in percent that the patch has to be held back, as the question puts it"
    )
    p_objects: Chance = Field(
        None, description="chance in percent that a careful reviewer objects to the patch, for whatever reason"
    )
    label: Annotated[OutputLabel, BeforeValidator(tidy_label)]


class OutputVerdict(Frozen):
    """What became of a reply at the line that the maintainer drew, for one linked issue."""

    issue: int
    label: OutputLabel
    bounced: bool
    p_bounce: int | None
    p_objects: int | None = None
    line: Literal["label", "p_bounce"] = Field("label", description="which of the two decided")
    explanation: str
    covered: tuple[str, ...]
    missing: tuple[str, ...]
    regressions: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


def question(
    prompts: Prompts, name: str, issue: Issue, patch: str, *, context: str = "", omitted: Sequence[str] = ()
) -> Prompt:
    """The prompt about a patch and one issue that it says it solves.

    ``context`` is code around it; ``omitted`` are its files that are named and not judged.
    """
    # The paper's question is about the text as it stands.
    body = (without_middle if name == "paper" else folded)(issue.body, MAX_BODY)
    system, user = prompts.render(
        f"verify.{name}", title=issue.title, body=body, patch=patch, context=context, omitted=tuple(omitted)
    )
    return Prompt(purpose="verify", system=system, user=user)


def verdict(reply: OutputReply, issue: int, config: VerifyConfig) -> OutputVerdict:
    """The verdict at the maintainer's line."""
    # The paper's labels are kept as they were given.
    as_said = config.prompt == "paper" or reply.p_bounce is None
    label = reply.label if as_said else agreeing(reply.label, reply.p_bounce)
    by_chance = reply.p_bounce is not None and (config.bounce_above is not None or not as_said)
    return OutputVerdict(
        issue=issue,
        label=label,
        bounced=bounces(label, OutputLabel(config.bounce_at), reply.p_bounce, config.bounce_above),
        p_bounce=reply.p_bounce,
        p_objects=reply.p_objects,
        line="p_bounce" if by_chance else "label",
        explanation=reply.explanation,
        covered=_short(reply.covered),
        missing=_short(_said(each) for each in reply.open_points),
        regressions=_short(_said(each) for each in reply.regressions),
        remarks=_short(reply.remarks),
    )


def _said(gap: Gap) -> str:
    return gap.what if gap.certain or not gap.what.strip() else f"{gap.what.rstrip()} (suspected)"


def _short(points: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(" ".join(point.split()) for point in points if point.strip()))[:6]


class Unjudged(Frozen):
    """A linked issue about which nothing can be said, and why."""

    issue: str = "the patch"
    why: str
    due: bool = Field(False, description="a verdict was due, and an error stood in its way")


class ExecutedTest(Frozen):
    """What came of an issue's stored reproducing test on base and head."""

    issue: int
    test: str
    command: str
    base: str
    head: str
    solved: bool | None = Field(
        description="True: fails on base and passes on head. False: fails on both. None: it says nothing"
    )
    output: str = ""


def skipped(head_sha: str, why: str, *, fails: bool = False) -> SetCheck:
    """A check that says that nothing was judged. ``fails``: a gate that stays shut then."""
    return SetCheck(
        name=CHECK,
        head_sha=head_sha,
        conclusion="failure" if fails else "skipped",
        title=f"Not judged: {why}",
        summary=f"Nothing was judged: {why}.",
    )


def check(
    head_sha: str,
    verdicts: Sequence[OutputVerdict],
    unjudged: Sequence[Unjudged],
    runs: Sequence[ExecutedTest],
    *,
    config: VerifyConfig,
    repository: Repository,
    usage: Usage,
    model: str,
    note: str = "",
    exempt: Sequence[str] = (),
) -> SetCheck:
    """The check for a pull request with at least one linked issue; ``note`` stands first.

    ``exempt``: paths that were not judged for a reason that the change itself made; the title names them.
    """
    host = repository.host
    shut = stays_shut(config) and any(each.due for each in unjudged)
    if not verdicts:
        why = "; ".join(clean_line(each.why, host=host, limit=POINT) for each in unjudged)
        return skipped(head_sha, why, fails=shut)
    by_issue = {run.issue: run for run in runs}
    parts = [_section(verdict, by_issue.get(verdict.issue), host) for verdict in verdicts]
    parts += [
        f"### {each.issue}\n\nNot judged: {clean_line(each.why, host=host, limit=POINT)}" for each in unjudged
    ]
    parts.append("*An AI model's opinion; it may be wrong.*")
    if spoke := caveat(model):
        parts.append(f"_{spoke}_")
    parts.append(_spent(usage, model))
    return SetCheck(
        name=CHECK,
        head_sha=head_sha,
        conclusion="failure" if shut else _conclusion(verdicts, config.gate),
        title=_title(verdicts, by_issue)
        + (f"; not judged: {_due(unjudged)}" if shut else "")
        + _not_judged(exempt),
        summary="\n\n".join(filter(None, (note, *parts))),
    )


def stays_shut(config: VerifyConfig) -> bool:
    """Return True if the check fails when a verdict was due and there is none."""
    return config.gate and config.gate_unjudged == "fail"


def _due(unjudged: Sequence[Unjudged]) -> str:
    return ", ".join(each.issue for each in unjudged if each.due)


def _conclusion(verdicts: Sequence[OutputVerdict], gate: bool) -> Conclusion:
    if not any(verdict.bounced for verdict in verdicts):
        return "success"
    return "failure" if gate else "neutral"


def _not_judged(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return f"; not judged: {clean_line(paths[0], limit=60)}{more}" if paths else ""


def _title(verdicts: Sequence[OutputVerdict], runs: dict[int, ExecutedTest]) -> str:
    """The worst that is to be said, and of which issues."""
    said = [_appears(verdict, runs.get(verdict.issue)) for verdict in verdicts]
    worst = next(each for each in (_NOT, _NOT_FULLY, _SOLVED) if each in said)
    of = [verdict for verdict, each in zip(verdicts, said, strict=True) if each == worst]
    title = f"{worst} {', '.join(f'#{verdict.issue}' for verdict in of)}"
    if worst != _SOLVED:
        return title
    ran = [runs[verdict.issue] for verdict in of if verdict.issue in runs]
    if not ran:
        return f"{title} (not executed)"
    if len(ran) < len(of) or not all(run.solved for run in ran):
        return f"{title}; its reproducing test is inconclusive"
    which = "its reproducing test passes" if len(ran) == 1 else "their reproducing tests pass"
    return f"{title}; {which} here"


#: Behind every pass on head: the pull request's code ran in the process that reported it.
_UNVERIFIED = (
    "The pass proves nothing by itself: the pull request's own code ran in the test, and a wrong patch can \
pass it."
)

_SOLVED, _NOT_FULLY, _NOT = "Appears to solve", "May not fully solve", "Probably doesn't solve"


def _appears(verdict: OutputVerdict, run: ExecutedTest | None) -> str:
    """The verdict in words. A test that fails speaks against the patch; one that passes proves nothing."""
    if not verdict.bounced:
        return _SOLVED
    failed = run is not None and run.solved is False
    return _NOT if failed or verdict.label == OutputLabel.INCORRECT else _NOT_FULLY


def _section(verdict: OutputVerdict, run: ExecutedTest | None, host: str) -> str:
    lines = [f"### #{verdict.issue}: {_appears(verdict, run)} it", ""]
    lines += _points("Missing", verdict.missing, host)
    lines += _points("Worked before and may not now", verdict.regressions, host)
    lines += _points("Covered", verdict.covered, host)
    lines += _points("Remarks (not counted)", verdict.remarks, host)
    if run is not None:
        lines += [f"Test {code_span(run.test, limit=POINT)}: {run.base} on base, {run.head} on head."]
        lines += [_UNVERIFIED, ""] if run.head == "passed" else [""]
        lines += _folded(
            f"Output of `{clean_line(run.command, limit=POINT)}`", clean(run.output, host=host, limit=4_000)
        )
    lines += _folded(
        f"Why: {verdict.label}{_chances(verdict)}", clean(verdict.explanation, host=host, limit=EXPLANATION)
    )
    return "\n".join(lines).rstrip()


def _chances(verdict: OutputVerdict) -> str:
    if verdict.p_bounce is None:
        return ""
    said = f"{verdict.p_bounce}% that it falls short"
    if verdict.p_objects is None:
        return f" ({said})"
    line = "the first" if verdict.line == "p_bounce" else "the label"
    return f" ({said}, {verdict.p_objects}% that a careful reviewer objects; {line} decides)"


def _points(title: str, points: Sequence[str], host: str) -> list[str]:
    if not points:
        return []
    return [f"{title}:", *(f"- {clean_line(point, host=host, limit=POINT)}" for point in points), ""]


def _folded(title: str, text: str) -> list[str]:
    return [f"<details><summary>{title}</summary>", "", text, "", "</details>", ""]


def _spent(usage: Usage, model: str) -> str:
    cost = "cost unknown" if usage.cost_usd is None else f"{usage.cost_usd:.4f} USD"
    calls = "1 call" if usage.calls == 1 else f"{usage.calls} calls"
    return "\n".join(_folded("Model and cost", f"`{model}`: {calls}, {usage.tokens}, {cost}")).rstrip()
