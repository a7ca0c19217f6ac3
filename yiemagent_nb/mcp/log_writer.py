"""LogWriter: writes what crosses a server's connection into its log.

A message that is a text on its way is kept as that text, not encoded again. One that is none, such as to
a server in this process, is written as JSON, unless it is large.
"""

from __future__ import annotations

import asyncio
import time
import weakref
from collections import OrderedDict
from collections.abc import Mapping
from functools import partial
from typing import Any, Literal, cast

from yiemagent_nb.mcp.bounded_json import write_bounded
from yiemagent_nb.mcp.protocol_log import MAX_MESSAGE_BYTES, Direction, Kept, ProtocolLog

__all__ = ["LogWriter"]

Way = Literal["out", "in"]

SETTLE_SECONDS = 0.05
"""How long a message that was logged late stays as it is."""

MAX_WAITING = 1_000
"""Of so many requests that wait for an answer, the times are known."""

MAX_METHOD = 200


class LogWriter:
    """Writes into the log of one server, which it does not keep alive.

    It belongs to the connection's event loop.

    Args:
        log: The server's log.
    """

    def __init__(self, log: ProtocolLog) -> None:
        self._log = weakref.ref(log)
        self._waiting: Mapping[Way, OrderedDict[str | int, tuple[str, float]]] = {
            "out": OrderedDict(),
            "in": OrderedDict(),
        }
        """The requests that went each way and were not answered yet: the method and when."""

    def message(self, way: Way, message: Mapping[str, Any], data: bytes | None = None) -> None:
        """A JSON-RPC message crosses.

        Args:
            way: Which way.
            message: The message: what it has of ``method``, ``id``, ``error``, ``result`` and ``params``.
            data: The message as it goes over the wire, where it is a text there.
        """
        log = self._log()
        if log is not None:
            log.settle()  # what it answers may have been logged late
            log.add(self._read(way, message, data, time.time(), time.monotonic()))

    def late_message(self, way: Way, message: Mapping[str, Any]) -> None:
        """As ``message``, for where a call is so quick that its log would slow it down.

        Who changes the message within the next moment changes what is logged.
        """
        log = self._log()
        if log is not None and log.add_late(partial(self._read, way, message, None, time.time(), time.monotonic())):
            asyncio.get_running_loop().call_later(SETTLE_SECONDS, log.settle)

    def frame(self, way: Way, kind: str, text: str) -> None:
        """Something crosses that belongs to the protocol and is no JSON-RPC message.

        Args:
            way: Which way.
            kind: What it is; it stands in place of a method.
            text: What it says.
        """
        self._words(way, text, kind)

    def wrote_to_stderr(self, line: str) -> None:
        """The server's process wrote a line to its standard error."""
        self._words("stderr", line)

    def wrote_rubbish(self, line: str) -> None:
        """Something came that is no message."""
        self._words("rubbish", line, is_error=True)

    def became(self, state: str, why: str = "", *, is_error: bool = False) -> None:
        """The connection came into a state. What went over an earlier one is not answered any more."""
        self._words("state", f"{state}: {why}" if why else state, state, is_error=is_error)
        if state == "connecting":
            for waiting in self._waiting.values():
                waiting.clear()

    def _read(self, way: Way, message: Mapping[str, Any], data: bytes | None, now: float, clock: float) -> Kept:
        method, request_id, seconds = message.get("method"), _as_id(message.get("id")), None
        if isinstance(method, str):
            method = method[:MAX_METHOD]
            if request_id is not None:
                self._ask(way, request_id, method, clock)
        else:
            method = ""
            if request_id is not None:
                asked = self._waiting["in" if way == "out" else "out"].pop(_key(request_id), None)
                if asked is not None:
                    method, seconds = asked[0], clock - asked[1]
        if data is None:
            content, size = write_bounded(message, MAX_MESSAGE_BYTES)
        else:
            content, size = data[:MAX_MESSAGE_BYTES], len(data)
        return Kept(now, way, method, request_id, size, seconds, _tells_an_error(message), content)

    def _ask(self, way: Way, request_id: str | int, method: str, clock: float) -> None:
        waiting = self._waiting[way]
        waiting[_key(request_id)] = method, clock
        if len(waiting) > MAX_WAITING:
            waiting.popitem(last=False)

    def _words(self, direction: Direction, text: str, method: str = "", *, is_error: bool = False) -> None:
        log = self._log()
        if log is not None:
            data = text.encode("utf-8", "replace")
            content = data[:MAX_MESSAGE_BYTES]
            log.add(Kept(time.time(), direction, method, None, len(data), None, is_error, content))


def _as_id(value: object) -> str | int | None:
    if isinstance(value, str):
        return value[:MAX_METHOD]
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _key(request_id: str | int) -> str | int:
    """An id as it is compared: servers send a number back as a text."""
    return int(request_id) if isinstance(request_id, str) and request_id.isdecimal() else request_id


def _tells_an_error(message: Mapping[str, Any]) -> bool:
    if "error" in message:
        return True
    result: object = message.get("result")
    return isinstance(result, dict) and cast("dict[str, Any]", result).get("isError") is True
