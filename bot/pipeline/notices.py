"""Notices: a signed POST about each verdict and each failed job to one receiver that the operator names.

A notice is a job in a queue of its own, so a slow receiver delays no other job. It is sent at least once, with an
id by which the receiver can recognise a repetition.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import httpx2

from bot import __version__, router
from bot.core.actions import Decision
from bot.core.errors import TransientError
from bot.core.http_client import HttpClient
from bot.github.webhook import sign
from bot.pipeline.job import Job
from bot.pipeline.store.overview import Filter, Overview, export_row

#: How long a receiver may take, seconds.
TIMEOUT = 10.0


class Notices:
    """Sends notices to the operator's receiver."""

    def __init__(self, url: str, secret: str, overview: Overview, web_url: str) -> None:
        self._url = url
        self._secret = secret
        self._overview = overview
        self._web_url = web_url

    @staticmethod
    def are_due(decisions: Iterable[Decision]) -> bool:
        """Return True if a feature that judges reached a verdict, or says why it did not."""
        return any(
            router.feature_named(decision.kind).judges and (decision.verdict or decision.abstained)
            for decision in decisions
        )

    def send(self, job: Job) -> str:
        """Send a notice and return the outcome. Raises TransientError for any answer but success."""
        body = json.dumps(self._body(job), ensure_ascii=False).encode("utf-8", "replace")
        headers = {
            "Content-Type": "application/json",
            "User-Agent": f"bouncer/{__version__}",
            "X-Bouncer-Event": str(job.notice),
            "X-Bouncer-Delivery": job.id,
            "X-Bouncer-Signature-256": sign(body, self._secret),
        }
        try:
            with (
                HttpClient(TIMEOUT) as client,
                client.stream("POST", self._url, content=body, headers=headers) as answer,
            ):
                status = answer.status_code
        except (httpx2.RequestError, httpx2.InvalidURL) as error:
            # The address may be all that is needed to post there, so it is never shown.
            raise TransientError(f"the notice's receiver did not answer ({type(error).__name__})") from None
        if not 200 <= status < 300:
            raise TransientError(f"the notice's receiver answered {status}")
        return f"told: {status}"

    def _body(self, job: Job) -> dict[str, Any]:
        url = f"{self._web_url}/{job.repository}/issues/{job.number}" if job.number else ""
        subject = job.subject if job.number else job.repository
        facts: dict[str, Any] = {
            "id": job.id,
            "event": job.notice,
            "at": datetime.fromtimestamp(job.created_at, UTC).isoformat(),
            "job": job.source_job,
            "task": job.task,
            "repository": job.repository,
            "number": job.number,
            "url": url,
        }
        if job.notice == "failure":
            text = f"{subject}: {job.task} failed: {job.detail}"
            return {**facts, "text": f"{text} {url}".strip(), "error": job.detail}
        decisions = []
        for row, decision in self._overview.full_decisions(Filter(job=job.source_job)):
            urls = [posting.url(self._web_url) for posting in self._overview.postings(row.job)]
            decisions.append({**export_row(row, decision, self._web_url), "posted": list(filter(None, urls))})
        summary = "; ".join(f"{item['kind']}: {item['verdict'] or item['abstained']}" for item in decisions)
        text = f"{subject}: {summary} {url}".strip()
        alarm = self._overview.abstention_alarm()
        text = f"{text}. Alarm: {alarm}" if alarm else text
        return {**facts, "text": text, "decisions": decisions, **({"alarm": alarm} if alarm else {})}
