"""LogSink: events as records of the standard library's logging."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from yiemagent_nb.core.events import (
    AgentError,
    Event,
    MessageEnd,
    MessageUpdate,
    ToolExecutionEnd,
    ToolExecutionUpdate,
    Trace,
    dump_event,
)

__all__ = ["LogSink"]

LOGGER = "yiemagent_nb.events"
MAX_CHARACTERS = 200


class LogSink:
    """Writes a record for each event: errors at WARNING, steps and deltas at DEBUG, others at INFO.

    The event itself stands in the record as ``event``, for formatters that want all of it.

    Args:
        logger: Where records go.
    """

    def __init__(self, logger: logging.Logger | str = LOGGER) -> None:
        self._logger = logging.getLogger(logger) if isinstance(logger, str) else logger

    def __call__(self, event: Event) -> None:
        """Write one event."""
        level = _level(event)
        if self._logger.isEnabledFor(level):
            self._logger.log(level, "%s", _line(event), extra={"event": event})


def _level(event: Event) -> int:
    if isinstance(event, AgentError) or (isinstance(event, ToolExecutionEnd) and event.is_error):
        return logging.WARNING
    if isinstance(event, Trace | MessageUpdate | ToolExecutionUpdate):
        return logging.DEBUG
    return logging.INFO


def _line(event: Event) -> str:
    match event:
        case Trace():
            return f"trace {event.step} {_short(event.data)}"
        case MessageEnd():
            return f"message_end {event.message.role} {_short(getattr(event.message, 'text', ''))}"
        case ToolExecutionEnd():
            return f"tool_execution_end {event.tool_name} in {event.duration:.3f} s: {_short(event.result.text)}"
        case _:
            fields = dump_event(event)
            kind = fields.pop("type")
            return f"{kind} {_short(fields)}" if fields else kind


def _short(value: Mapping[str, Any] | str) -> str:
    text = value if isinstance(value, str) else ", ".join(f"{name}={each!r}" for name, each in value.items())
    text = " ".join(text.split())
    return text if len(text) <= MAX_CHARACTERS else f"{text[:MAX_CHARACTERS]}…"
