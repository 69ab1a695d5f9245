"""OpenTelemetry spans: one for each job, and one for each question to a model inside it.

No span is recorded unless an operator names a collector. Spans carry names, numbers and sizes, never texts.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.trace import Span, StatusCode

from bot import __version__
from bot.core.errors import SettingsError

#: How long the end of the process waits for a collector.
FLUSH_MILLISECONDS = 2_000

_tracer = trace.get_tracer("bouncer", __version__)


def configure(endpoint: str) -> None:
    """Send spans to a collector that speaks OTLP over HTTP at ``endpoint``; once per process.

    Raises SettingsError if the packages for it are not installed.
    """
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        raise SettingsError(
            "OTEL_EXPORTER_OTLP_ENDPOINT: needs further packages: "
            "run pip install '.[tracing]' in a checkout of Bouncer"
        ) from None
    resource = Resource.create({"service.name": "bouncer", "service.version": __version__})
    provider = TracerProvider(resource=resource)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=f"{endpoint}/v1/traces")))
    trace.set_tracer_provider(provider)


def flush() -> None:
    """Send the remaining spans before the process ends."""
    provider = trace.get_tracer_provider()
    force = getattr(provider, "force_flush", None)
    if force is not None:
        force(FLUSH_MILLISECONDS)


@contextmanager
def span(name: str, **attributes: str | int | float) -> Iterator[Span]:
    """Open a span around a block; an exception marks it as failed, with its type and without its text."""
    prefixed = {f"bouncer.{key}": value for key, value in attributes.items()}
    with _tracer.start_as_current_span(
        name, attributes=prefixed, record_exception=False, set_status_on_exception=False
    ) as current:
        try:
            yield current
        except BaseException as error:
            current.set_status(StatusCode.ERROR, type(error).__name__)
            raise
