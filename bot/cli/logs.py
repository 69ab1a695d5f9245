"""Logs on standard error: text on a terminal, else one JSON object per line. Secrets are redacted everywhere."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, MutableMapping
from typing import Any, TextIO

import structlog

from bot.core.redaction import redact

#: Libraries whose INFO messages are noise or advertisements.
_QUIET = ("alembic", "anthropic", "dbos", "github", "gunicorn.access", "httpx2", "openai", "sqlalchemy", "urllib3")

_DEEPEST = 6


def configure(level: str, secrets: Iterable[str] = (), stream: TextIO | None = None) -> None:
    """Send everything that this process logs, libraries included, to ``stream`` (standard error).

    ``secrets`` are the operator's own: they are redacted by value, whatever else looks like a credential by shape.
    """
    operator_secrets = tuple(secrets)

    def redacted(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        return {str(key): _clean(value, operator_secrets, 0) for key, value in event.items()}

    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        redacted,
    ]
    number = logging.getLevelNamesMapping()[level]
    output = stream or sys.stderr
    renderer: Any = (
        structlog.dev.ConsoleRenderer(colors=False)
        if output.isatty()
        else structlog.processors.JSONRenderer(ensure_ascii=False)
    )
    structlog.configure(
        processors=[*shared, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.PrintLoggerFactory(output),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(output)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.add_logger_name],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *shared[1:],
                renderer,
            ],
        )
    )
    logging.basicConfig(level=number, handlers=[handler], force=True)
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)


def _clean(value: Any, secrets: tuple[str, ...], depth: int) -> Any:
    """``value`` without secrets, in types that JSON knows."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, dict) and depth < _DEEPEST:
        return {str(key): _clean(item, secrets, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset) and depth < _DEEPEST:
        return [_clean(item, secrets, depth + 1) for item in value]
    return redact(str(value), secrets).encode("utf-8", "replace").decode()
