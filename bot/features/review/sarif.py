"""Findings as SARIF 2.1.0 (OASIS), which code-scanning dashboards read. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from bot.core.actions import Skipped
from bot.core.text import show
from bot.features.shared.findings import Category, Finding, Severity

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"

_LEVELS = {Severity.HIGH: "error", Severity.MEDIUM: "warning", Severity.LOW: "note"}


def sarif(
    findings: Sequence[Finding], skipped: Sequence[Skipped], version: str, *, complete: bool
) -> dict[str, Any]:
    """Return a log with one run. Files that were not reviewed are notifications.

    ``version`` is this program's; ``complete`` is False if nothing was reviewed.
    """
    rules = [_rule(category) for category in Category]
    unread = [_notification(file) for file in skipped]
    run = {
        "tool": {"driver": {"name": "bouncer", "version": version, "rules": rules}},
        "columnKind": "unicodeCodePoints",
        "invocations": [{"executionSuccessful": complete, "toolExecutionNotifications": unread}],
        "results": [_result(finding) for finding in findings],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(category: Category) -> dict[str, Any]:
    return {
        "id": category.value,
        "name": category.name.capitalize(),
        "shortDescription": {"text": category.description},
    }


def _result(finding: Finding) -> dict[str, Any]:
    return {
        "ruleId": finding.category.value,
        "ruleIndex": list(Category).index(finding.category),
        "level": _LEVELS[finding.severity],
        "message": {"text": _message(finding)},
        "locations": [_location(finding)],
        "partialFingerprints": {"bouncer/v1": finding.fingerprint},
        "properties": {"impact": finding.impact.value, "severity": finding.severity.value},
    }


def _message(finding: Finding) -> str:
    text = "\n".join(show(line) for line in finding.comment.split("\n"))
    return f"{text} (removed line {finding.line})" if finding.line and finding.side == "LEFT" else text


def _location(finding: Finding) -> dict[str, Any]:
    place: dict[str, Any] = {"artifactLocation": _artifact(finding.path)}
    # A dashboard shows the new file, which does not have the lines of the old one.
    if finding.line is not None and finding.side == "RIGHT":
        place["region"] = {"startLine": finding.start_line or finding.line, "endLine": finding.line}
    return {"physicalLocation": place}


def _notification(skipped: Skipped) -> dict[str, Any]:
    return {
        "level": "note",
        "message": {"text": f"not reviewed: {skipped.reason}"},
        "locations": [{"physicalLocation": {"artifactLocation": _artifact(skipped.path)}}],
    }


def _artifact(path: str) -> dict[str, str]:
    return {"uri": quote(path.lstrip("/")), "uriBaseId": "%SRCROOT%"}
