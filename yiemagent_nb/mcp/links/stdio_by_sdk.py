"""The SDK's pair of streams for Windows, by the SDK: there its job object ends what a server started."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any

from mcp.client.stdio import StdioServerParameters, stdio_client

from yiemagent_nb.core.errors import McpConnectionError
from yiemagent_nb.core.redaction import Redactor
from yiemagent_nb.mcp.link import Inbox
from yiemagent_nb.mcp.links.pipes import StderrReader
from yiemagent_nb.mcp.links.sdk_messages import LoggedStreams
from yiemagent_nb.mcp.links.server_text import without_controls

__all__ = ["SdkStreams"]

_READ_BYTES = 1 << 16


class SdkStreams:
    """Starts a server and yields the stream of what it writes and the one that writes to it.

    Args:
        command: The program and its arguments.
        environment: The server's environment, beside what the SDK passes on.
        directory: Its working directory.
        inbox: Takes the lines of its standard error.
        redactor: Takes secrets out of those.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        directory: str | None,
        inbox: Inbox,
        *,
        redactor: Redactor,
    ) -> None:
        self._parameters = StdioServerParameters(
            command=command[0],
            args=list(command[1:]),
            env=dict(environment),
            cwd=directory,
            encoding_error_handler="replace",
        )
        self._stderr = StderrReader(lambda line: inbox.wrote_to_stderr(redactor(without_controls(line))))
        self._log = inbox.log
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> tuple[Any, Any]:
        reading, writing = os.pipe()
        loop = asyncio.get_running_loop()
        threading.Thread(target=_pass_on, args=(reading, loop, self._stderr), daemon=True).start()
        try:
            with os.fdopen(writing, "w") as errors:  # the server has the pipe's end for itself afterwards
                streams = LoggedStreams(stdio_client(self._parameters, errors), self._log)
                return await self._stack.enter_async_context(streams)
        except OSError as error:
            raise McpConnectionError(
                f"The server {self._parameters.command!r} cannot be started: {error.strerror or error}.",
                "Check that the program is installed and that cwd is a folder.",
            ) from error

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        return await self._stack.__aexit__(kind, error, traceback)


def _pass_on(reading: int, loop: asyncio.AbstractEventLoop, reader: StderrReader) -> None:
    """Hand on what comes, no faster than the event loop takes it."""
    taken = threading.Semaphore(1)

    def take(data: bytes) -> None:
        if data:
            reader.data_received(data)
        else:
            reader.connection_lost(None)
        taken.release()

    with os.fdopen(reading, "rb", buffering=0) as pipe:
        data = b"?"
        while data:
            data = pipe.read(_READ_BYTES)
            taken.acquire()
            try:
                loop.call_soon_threadsafe(take, data)
            except RuntimeError:
                return  # the event loop was closed
