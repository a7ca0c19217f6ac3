"""What the SDK writes to its log stands for rubbish that a server sent.

Where no logging was set up, Python would print it into the cell.
"""

from __future__ import annotations

import logging
from contextvars import ContextVar
from functools import cache

from yiemagent_nb.core.reading.server_errors import quote
from yiemagent_nb.mcp.link import Inbox

__all__ = ["LOGGERS", "speaking_for"]

LOGGERS = ("client", "mcp.client", "mcp.shared")
"""The SDK's loggers for the client's side: that of its session is called ``client``."""

_inbox: ContextVar[Inbox | None] = ContextVar("yiemagent_nb_sdk_inbox", default=None)


class speaking_for:  # noqa: N801 - used as a function; a generator costs more, for each request
    """Hand what the SDK logs within to an inbox; the tasks that it starts inherit it."""

    def __init__(self, inbox: Inbox) -> None:
        _hear_the_sdk()
        self._speaker = inbox

    def __enter__(self) -> None:
        self._token = _inbox.set(self._speaker)

    def __exit__(self, *_: object) -> None:
        _inbox.reset(self._token)


class _LogToInbox(logging.Handler):
    """Takes what the SDK warns of in our sessions.

    It hides nothing: whatever handlers the person set up get the same records, and what comes from elsewhere
    and has none is printed as if this one were not there.
    """

    def emit(self, record: logging.LogRecord) -> None:
        inbox = _inbox.get()
        if inbox is not None:
            cause = record.exc_info[1] if record.exc_info else None
            inbox.wrote_rubbish(quote(f"{record.getMessage()}{'' if cause is None else f': {cause}'}"))
        elif logging.lastResort is not None and not self._others_hear(record.name):
            logging.lastResort.handle(record)

    def _others_hear(self, name: str) -> bool:
        logger: logging.Logger | None = logging.getLogger(name)
        while logger is not None:
            if any(handler is not self for handler in logger.handlers):
                return True
            logger = logger.parent if logger.propagate else None
        return False


@cache
def _hear_the_sdk() -> None:
    handler = _LogToInbox(logging.WARNING)
    for name in LOGGERS:
        logging.getLogger(name).addHandler(handler)
