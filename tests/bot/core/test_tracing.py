"""Spans reach a collector if an operator names one, and carry no text."""

from __future__ import annotations

import subprocess
import sys

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

PROGRAM = """
import sys
from bot.core import tracing
from bot.core.errors import ModelError
from bot.models.protocol import Prompt
from tests.scripted import ScriptedModel
from tests.bot.models.replies import CLEAR, Verdict
from opentelemetry import trace

if sys.argv[1]:
    tracing.configure(sys.argv[1])
ask = Prompt(purpose="triage", system="secret system", user="canary text", subject="o/r#1")
with tracing.span("job", task="triage", number=1):
    model = ScriptedModel([CLEAR, ModelError("canary message", "refused")])
    model.complete(ask, Verdict)
    try:
        model.complete(ask, Verdict)
    except ModelError:
        pass
if sys.argv[1]:
    trace.get_tracer_provider().force_flush()
"""


def run(endpoint: str) -> None:
    subprocess.run([sys.executable, "-c", PROGRAM, endpoint], check=True, timeout=60)


def test_a_job_and_its_questions_become_spans(httpserver: HTTPServer) -> None:
    bodies: list[bytes] = []

    def collect(request: Request) -> Response:
        bodies.append(request.data)
        return Response(b"", content_type="application/x-protobuf")

    httpserver.expect_request("/v1/traces", method="POST").respond_with_handler(collect)
    run(httpserver.url_for("").rstrip("/"))
    requests = [ExportTraceServiceRequest.FromString(body) for body in bodies]
    spans = [
        span
        for request in requests
        for group in request.resource_spans
        for s in group.scope_spans
        for span in s.spans
    ]
    job = next(span for span in spans if span.name == "job")
    answer_span, refused = (span for span in spans if span.name == "model")
    assert answer_span.parent_span_id == refused.parent_span_id == job.span_id
    attributes = {attribute.key: attribute.value for attribute in answer_span.attributes}
    assert attributes["bouncer.model"].string_value == "scripted:test"
    assert attributes["bouncer.input_tokens"].int_value == 2
    assert refused.status.message == "ModelError"
    assert b"canary" not in b"".join(bodies)
    assert b"secret" not in b"".join(bodies)
