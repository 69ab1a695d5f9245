"""Findings as SARIF 2.1.0 (OASIS), which code-scanning dashboards read. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from bot.core.actions import Skipped
from bot.core.text import show
from bot.features.shared.findings import Category, Finding, Severity, plain_fingerprint

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"

_LEVELS = {Severity.HIGH: "error", Severity.MEDIUM: "warning", Severity.LOW: "note"}


def sarif(
    findings: Sequence[Finding], skipped: Sequence[Skipped], version: str, *, complete: bool
) -> dict[str, Any]:
    """Return a log with one run. Files that were not reviewed are notifications.

    ``version`` is this program's; ``complete`` is False if nothing was reviewed.
    """
    rules = [
        {
            "id": category.value,
            "name": category.name.capitalize(),
            "shortDescription": {"text": category.description},
        }
        for category in Category
    ]
    unread = [
        {
            "level": "note",
            "message": {"text": f"not reviewed: {file.reason}"},
            "locations": [{"physicalLocation": {"artifactLocation": _artifact(file.path)}}],
        }
        for file in skipped
    ]
    run = {
        "tool": {"driver": {"name": "bouncer", "version": version, "rules": rules}},
        "columnKind": "unicodeCodePoints",
        "invocations": [{"executionSuccessful": complete, "toolExecutionNotifications": unread}],
        "results": [_result(finding) for finding in findings],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _result(finding: Finding) -> dict[str, Any]:
    text = "\n".join(show(line) for line in finding.comment.split("\n"))
    place: dict[str, Any] = {"artifactLocation": _artifact(finding.path)}
    # A dashboard shows the new file, which does not have the lines of the old one.
    if finding.line and finding.side == "LEFT":
        text += f" (removed line {finding.line})"
    elif finding.line is not None:
        place["region"] = {"startLine": finding.start_line or finding.line, "endLine": finding.line}
    return {
        "ruleId": finding.category.value,
        "ruleIndex": list(Category).index(finding.category),
        "level": _LEVELS[finding.severity],
        "message": {"text": text},
        "locations": [{"physicalLocation": place}],
        "partialFingerprints": {"bouncer/v1": plain_fingerprint(finding), "bouncer/v2": finding.fingerprint},
        "properties": {"impact": finding.impact.value, "severity": finding.severity.value},
    }


def _artifact(path: str) -> dict[str, str]:
    return {"uri": quote(path.lstrip("/")), "uriBaseId": "%SRCROOT%"}
