"""The SDK's pair of streams over a process of our own.

Messages are read in the task that receives them and written in the task that sends them, straight
from and to the pipes. A message is parsed in the event loop, since a thread would hold the
interpreter's lock for as long: 50 MB take 0.03 s as one text, 0.8 s as a million small objects.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, cast

import anyio
from anyio.abc import ObjectReceiveStream, ObjectSendStream
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from mcp_types import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    RequestId,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError
from pydantic_core import from_json

from yiemagent_nb.core.errors import McpConnectionError, McpError
from yiemagent_nb.core.redaction import Redactor
from yiemagent_nb.mcp.link import Inbox
from yiemagent_nb.mcp.links.pipes import Line, LineReader, StderrReader, Writer
from yiemagent_nb.mcp.links.process import ServerProcess, start_process
from yiemagent_nb.mcp.links.sdk_messages import fields_of
from yiemagent_nb.mcp.links.server_text import without_controls

__all__ = ["ServerStreams"]

EXIT_SECONDS = 1.0
"""So long a server has to end by itself when its standard input was closed.

Some wait for the answer to a request that they sent at the start, which can no longer come.
"""

GONE_SECONDS = 8.0
"""So long the supervisor has to end everything: its own limits come to 7 seconds."""

LAST_WORDS_SECONDS = 0.5
CLOSE_SECONDS = 1.0
RUBBISH_CHARACTERS = 1_000
LINES_AT_ONCE = 16
"""After so many lines the event loop has its turn."""


class ServerStreams:
    """Starts a server and yields the stream of what it writes and the one that writes to it.

    When the server ends by itself, the last thing that is read is a ``McpConnectionError`` that says how.

    Args:
        command: The program and its arguments.
        environment: All of the server's environment.
        directory: Its working directory.
        inbox: Takes what is no message.
        redactor: Takes secrets out of what the inbox gets.
        longest_line: The bytes of the longest message.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        directory: str | None,
        inbox: Inbox,
        *,
        redactor: Redactor,
        longest_line: int,
    ) -> None:
        self._command = command
        self._environment = environment
        self._directory = directory
        self._inbox = inbox
        self._redactor = redactor
        self.log = inbox.log
        self._leaving = False
        self.stdin = Writer(self._ends)
        self.stdout = LineReader(longest_line)
        self._stderr = StderrReader(self._wrote_to_stderr)
        self._process: ServerProcess | None = None

    async def __aenter__(self) -> tuple[_Incoming, _Outgoing]:
        self._process = process = await start_process(self._command, self._environment, self._directory)
        try:
            loop = asyncio.get_running_loop()
            await loop.connect_write_pipe(lambda: self.stdin, process.stdin)
            await loop.connect_read_pipe(lambda: self._stderr, process.stderr)
            await loop.connect_read_pipe(lambda: self.stdout, process.stdout)
        except BaseException:
            process.let_go()
            self._close(process)
            raise
        process.when_ended(self._ends)
        return _Incoming(self), _Outgoing(self)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        process = cast("ServerProcess", self._process)
        what = _connection_error(error)
        end = ""
        with anyio.CancelScope(shield=True):
            try:
                if what is not None:
                    await self.why_over()
                    end = process.end
            finally:
                await self._leave(process)
        if what is not None and end:
            raise McpConnectionError(f"{what.message.rstrip('.')}: it {end}.", what.hint, data=what.data) from error

    async def why_over(self) -> McpConnectionError | None:
        """Why nothing more comes, after everything that the server wrote to its standard error; None when leaving."""
        process = cast("ServerProcess", self._process)
        if self._leaving:
            return None
        await _wait(LAST_WORDS_SECONDS, process.ended)
        if process.end:
            await _wait(LAST_WORDS_SECONDS, self._stderr.closed)
        self._stderr.flush()
        return McpConnectionError(f"The server {process.end or 'closed its standard output or its standard input'}.")

    def wrote_rubbish(self, text: str) -> None:
        """Tell of something that is no message."""
        text = self._redactor(text[: 2 * RUBBISH_CHARACTERS])
        self._inbox.wrote_rubbish(text if len(text) <= RUBBISH_CHARACTERS else f"{text[: RUBBISH_CHARACTERS - 1]}…")

    def _wrote_to_stderr(self, line: str) -> None:
        self._inbox.wrote_to_stderr(self._redactor(without_controls(line)))

    def _ends(self) -> None:
        """The server ended, or takes nothing more: what it still says is read, and then the stream ends."""
        if not self._leaving:
            self.stdout.end_when_quiet()

    async def _leave(self, process: ServerProcess) -> None:
        """End the server; if this is cancelled, the supervisor still does."""
        self._leaving = True
        try:
            self.stdin.end()
            self.stdout.discard()
            await _wait(EXIT_SECONDS, process.ended)
            process.let_go()
            await _wait(GONE_SECONDS, process.gone)
        finally:
            process.let_go()
            self._close(process)
        await _wait(CLOSE_SECONDS, self.stdin.closed, self.stdout.closed, self._stderr.closed)

    def _close(self, process: ServerProcess) -> None:
        ends = (self.stdin, self.stdout, self._stderr)
        for end, pipe in zip(ends, (process.stdin, process.stdout, process.stderr), strict=True):
            if end.connected:  # the event loop closes the pipe, and twice might hit another file
                end.close()
            else:
                pipe.close()


async def _wait(seconds: float, *events: asyncio.Event) -> None:
    """Wait for all events, but no longer than some seconds."""
    tasks = {asyncio.ensure_future(event.wait()) for event in events if not event.is_set()}
    if tasks:
        try:
            await asyncio.wait(tasks, timeout=seconds)
        finally:
            for task in tasks:
                task.cancel()


def _connection_error(error: BaseException | None) -> McpConnectionError | None:
    """What an error, or all of a group, says of the connection; None where it says something else."""
    if isinstance(error, BaseExceptionGroup):
        parts = [_connection_error(part) for part in cast("BaseExceptionGroup[BaseException]", error).exceptions]
        return None if None in parts else parts[0]
    if isinstance(error, anyio.BrokenResourceError | anyio.ClosedResourceError) or (
        isinstance(error, MCPError) and error.code == CONNECTION_CLOSED
    ):
        return McpConnectionError("The server went away.")
    return error if isinstance(error, McpConnectionError) else None


class _Outgoing(ObjectSendStream[SessionMessage]):
    """Writes messages to a server's standard input."""

    def __init__(self, streams: ServerStreams) -> None:
        self._streams = streams

    async def send(self, item: SessionMessage) -> None:
        """Write a message.

        Raises:
            McpError: It cannot be written as JSON.
            TimeoutError: The server does not read.
            BrokenResourceError: The server reads no more.
        """
        streams = self._streams
        try:
            data = item.message.model_dump_json(by_alias=True, exclude_unset=True).encode()
        except ValueError as error:
            raise McpError(f"The message to the server cannot be written as JSON: {error}.") from error
        streams.log.message("out", fields_of(item.message), data)
        try:
            await streams.stdin.write(data + b"\n")
        except BrokenPipeError as error:
            raise anyio.BrokenResourceError from error

    async def aclose(self) -> None:
        """Write nothing more. The pipe is closed when the streams are left."""


class _Incoming(ObjectReceiveStream[SessionMessage | Exception]):
    """Reads messages from a server's standard output."""

    def __init__(self, streams: ServerStreams) -> None:
        self._streams = streams
        self._messages: deque[JSONRPCMessage] = deque()
        self._lines = 0
        self._over = False

    async def receive(self) -> SessionMessage | Exception:
        """Wait for the next message.

        Raises:
            EndOfStream: None will come.
        """
        while not self._messages:
            if self._over:
                raise anyio.EndOfStream
            line = await self._streams.stdout.next()
            if line is None:
                self._over = True
                why = await self._streams.why_over()
                if why is None:
                    raise anyio.EndOfStream
                return why
            self._read(line)
            self._lines += 1
            if self._lines % LINES_AT_ONCE == 0:
                await asyncio.sleep(0)
        return SessionMessage(self._messages.popleft())

    async def aclose(self) -> None:
        """Read nothing more."""
        self._over = True
        self._streams.stdout.discard()

    def _read(self, line: Line) -> None:
        """Take the messages of a line, or tell that it holds none."""
        if not line.data or line.data.isspace():
            return
        if not line.whole:
            self._refuse(line.data, f"a line of {line.size:,} bytes, which is too long: ")
            return
        if line.data.lstrip()[:1] not in (b"{", b"["):
            self._refuse(line.data)
            return
        try:
            content = _parse(line.data)
            parts = cast("list[Any]", content) if isinstance(content, list) else [content]
            messages = [jsonrpc_message_adapter.validate_python(part, by_name=False) for part in parts]
        except (ValueError, ValidationError):
            self._refuse(line.data)
            return
        self._messages += messages
        for part in parts:
            self._streams.log.message("in", part, line.data if content is part else None)

    def _refuse(self, data: bytes, why: str = "") -> None:
        """Tell of rubbish. Where it was to answer a request, that fails now rather than in a minute."""
        self._streams.wrote_rubbish(why + data[: 4 * RUBBISH_CHARACTERS].decode("utf-8", "replace"))
        request = _answered(data)
        if request is not None:
            reason = "The server's answer is too long." if why else "The server's answer is no JSON-RPC response."
            error = ErrorData(code=INTERNAL_ERROR, message=reason)
            self._messages.append(JSONRPCError(jsonrpc="2.0", id=request, error=error))


_LONE_SURROGATE = re.compile(
    r"(?<!\\)((?:\\\\)*)(?:(\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)


def _parse(data: bytes) -> Any:
    """Read JSON, of a server that writes broken UTF-8 or half characters too."""
    try:
        return from_json(data)
    except ValueError:
        text = data.decode("utf-8", "replace")
        return from_json(_LONE_SURROGATE.sub(lambda found: found[1] + (found[2] or "\\ufffd"), text))


_ID = rb'"id"\s*:\s*(?:(\d{1,18})|"([\w-]{1,100})")\s*'
_ANSWER_BEGINS = re.compile(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2.0"\s*,\s*)?' + _ID + rb",")
_ANSWER_ENDS = re.compile(_ID + rb"(?:,\s*\"jsonrpc\"\s*:\s*\"2.0\"\s*)?\}\s*\Z")


def _answered(data: bytes) -> RequestId | None:
    """The request that a broken answer has at one of its ends, where libraries write it."""
    found = _ANSWER_BEGINS.match(data) or _ANSWER_ENDS.search(data, max(0, len(data) - 200))
    if found is None or b'"method"' in data[:200] or b'"method"' in data[-200:]:
        return None
    return int(found[1]) if found[1] else found[2].decode()
