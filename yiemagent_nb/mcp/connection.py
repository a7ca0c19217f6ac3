"""Connection: the one task that opens, watches and closes a server's link.

The SDK's client must be left by the task that entered it, while notebook cells come and go. So each
server has a task of its own that alone enters and leaves its links; requests run in their caller's
task, after waiting for the link::

    new → connecting → ready → backoff → connecting → … → failed
                                    └──────────────────────→ closed

A connection that was ready and got lost is opened again after a pause that grows. One that cannot
be opened is ``failed`` until somebody asks for it again. No request is repeated here.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import sys
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack
from importlib import import_module
from typing import Any, Literal, cast

from yiemagent_nb.core.concurrency import run_in_thread
from yiemagent_nb.core.errors import McpConnectionError, McpError, McpTimeoutError, YiemAgentError, describe_error
from yiemagent_nb.mcp.clock import Clock
from yiemagent_nb.mcp.link import Link, OnProgress, Progress, ServerInfo, Transport
from yiemagent_nb.mcp.log_writer import LogWriter

__all__ = ["Connection", "ServerState"]

ServerState = Literal["new", "connecting", "ready", "backoff", "failed", "closed"]

PAUSES = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0)
"""Seconds before each further attempt to open a connection that got lost; after the last it has failed."""

IMPATIENT_PAUSE = 0.5
"""The longest pause while a request waits."""

STEADY_SECONDS = 10.0
"""A connection that lived so long starts with the first pause again."""

EXPLAIN_SECONDS = 1.0
"""How long a request that lost its connection waits to learn why."""

SETTLED_SECONDS = 1.0
"""For so long after a failure, requests get the same error rather than another attempt."""

SMALL_REQUESTS = frozenset({"ping", "tools/list", "prompts/list", "resources/list", "resources/templates/list"})
"""The time that these take is the server's latency."""

KEPT_LINES = 200
SHOWN_LINES = 5

_loading = threading.Lock()

_owners: set[asyncio.Task[None]] = set()
"""Keeps the owner tasks: event loops hold theirs weakly."""


class Connection:
    """A server's connection. It lives on the event loop on which it was made.

    Args:
        transport: How to reach the server.
        connect_timeout: Seconds that opening may take.
        log: Where the messages are written that cross it.
        tell: Takes what happens: a kind and its data.
        requested: Answers what the server asks.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        connect_timeout: float,
        log: LogWriter,
        tell: Callable[[str, Mapping[str, Any]], None],
        requested: Callable[[str, Mapping[str, Any]], Awaitable[dict[str, Any]]],
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.state: ServerState = "new"
        self.error: McpError | None = None
        self.info = ServerInfo()
        self.stderr: deque[str] = deque(maxlen=KEPT_LINES)
        self._newest_lines: deque[str] = deque(maxlen=SHOWN_LINES)
        self.rubbish = 0
        self.restarts = 0
        self.latency: float | None = None
        self.log = log
        self._transport = transport
        self._connect_timeout = connect_timeout
        self._tell = tell
        self._requested = requested
        self._link: Link | None = None
        self._owner: asyncio.Task[None] | None = None
        self._stop = asyncio.Event()
        self._wake = asyncio.Event()
        self._over = asyncio.Event()
        self._was_ready = False
        self._reason = ""
        self._waiting: list[asyncio.Future[Link]] = []
        self._clocks: set[Clock] = set()
        self._failed_at = 0.0
        self._life = 0
        """How many links were opened; the number of the newest."""
        self._given_up = 0
        """The number of the link that was closed last."""
        self._refused_ping = 0
        """The number of the link that gave no answer to a ping but an error."""
        self._reopening = asyncio.Lock()

    # For those who send requests

    @property
    def usable(self) -> bool:
        """Whether its event loop still runs."""
        return not self.loop.is_closed() and self.loop.is_running()

    async def link(self) -> Link:
        """The open link, after opening it where it is not.

        Raises:
            McpConnectionError: It cannot be opened.
        """
        if self._link is not None and not self._stop.is_set():
            return self._link
        if self.state == "failed" and self.error is not None and time.monotonic() - self._failed_at < SETTLED_SECONDS:
            raise self.error
        while self._stop.is_set() and self._owner is not None:  # it is being closed, and is wanted again
            await asyncio.wait({self._owner})
        waiter: asyncio.Future[Link] = self.loop.create_future()
        self._waiting.append(waiter)
        self._wake.set()
        self._start()
        try:
            return await waiter
        finally:
            if waiter in self._waiting:
                self._waiting.remove(waiter)

    async def send(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        seconds: float | None,
        on_progress: OnProgress | None,
    ) -> dict[str, Any]:
        """Send a request over the open link; returns its raw result.

        Args:
            method: A method of MCP.
            params: Its params.
            seconds: How long the server may be silent; see ``Clock``.
            on_progress: Called with each ``Progress``.

        Raises:
            McpError: As for ``Link.request``.
        """
        link = await self.link()
        life = self._life
        clock = Clock(seconds)

        def progressed(progress: Progress) -> None:
            clock.restart()
            if on_progress is not None:
                on_progress(progress)

        self._clocks.add(clock)
        started = time.perf_counter()
        try:
            async with clock:
                result = await link.request(method, params, on_progress=progressed)
        except McpConnectionError as error:
            raise await self._explained(error, life) from error
        except TimeoutError as error:
            if not clock.expired:
                raise McpTimeoutError(f"The server did not answer {method} in time.") from error
            hint = link.silence or "Raise the timeout if it needs longer."
            raise McpTimeoutError(f"The server did not answer {method} within {seconds:g} seconds.", hint) from error
        else:
            if method in SMALL_REQUESTS:
                self.latency = time.perf_counter() - started
            return result
        finally:
            self._clocks.discard(clock)

    async def check(self, seconds: float) -> float:
        """How long an answer takes, in seconds; any answer counts. It does not wait for a person who is asked.

        Args:
            seconds: How long it may take.

        Raises:
            McpTimeoutError: None came in time.
            McpConnectionError: It cannot be reached, or went away.
        """
        await self.link()
        life = self._life
        method = "tools/list" if life == self._refused_ping else "ping"
        started = time.perf_counter()
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                await self.send(method, None, None, None)
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise McpTimeoutError(f"The server did not answer {method} within {seconds:g} seconds.") from error
        except (McpTimeoutError, McpConnectionError):
            raise
        except McpError:
            if method == "ping":
                self._refused_ping = life
                return await self.check(seconds)
        self.latency = time.perf_counter() - started
        return self.latency

    async def close(self) -> None:
        """End the link and whatever was started for it."""
        self._request_stop()
        owner = self._owner
        if owner is not None:
            await asyncio.wait({owner})
        else:
            self._become("closed")

    async def reopen(self) -> None:
        """End the link, and open another.

        Raises:
            McpConnectionError: It cannot be opened.
        """
        async with self._reopening:
            await self.close()
            await self.link()

    def close_soon(self) -> None:
        """``close`` from any thread, without waiting."""
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self._request_stop)

    async def until_over(self) -> None:
        """Wait a moment until it is known that the link has ended."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(EXPLAIN_SECONDS):
                await self._over.wait()

    async def _explained(self, error: McpConnectionError, life: int) -> McpConnectionError:
        """What is known by now of why a request lost its connection.

        An error with advice is complete: the link is there, and what stands behind it is not.
        """
        if life == self._given_up:
            return McpConnectionError("The connection was closed before the answer came.", data=error.data)
        if error.hint:
            return error
        await self.until_over()
        reason = f": {self._reason}" if self._over.is_set() and self._reason else ""
        return McpConnectionError(
            f"{error.message.rstrip('.')}{reason}.{self._last_words()}",
            "It is not known whether the request was carried out.",
            rpc_code=error.rpc_code,
            data=error.data,
        )

    # The owner task

    def _start(self) -> None:
        if self._owner is not None:
            return
        self._stop.clear()
        self._wake.clear()
        # In a context of its own: the caller's may hold an agent, which would never be collected.
        context = contextvars.Context()
        name = f"yiemagent_nb {self._transport.kind} server"
        self._owner = self.loop.create_task(self._own(), name=name, context=context)
        _owners.add(self._owner)
        self._owner.add_done_callback(self._ended, context=context)

    def _request_stop(self) -> None:
        if self._link is not None:
            self._given_up = self._life
        self._stop.set()
        self._wake.set()
        if self.state == "connecting" and self._owner is not None:
            self._owner.cancel()

    def _ended(self, owner: asyncio.Task[None]) -> None:
        _owners.discard(owner)
        self._owner = None
        self._link = None
        if self.state not in ("failed", "closed"):
            error = None if owner.cancelled() else owner.exception()
            why = "its event loop ended" if error is None else describe_error(error)
            self._become("closed", McpConnectionError(f"The connection was given up: {why}."))
        self._settle(self.error or McpConnectionError("The connection was closed."))

    async def _own(self) -> None:
        attempt = 0
        while True:
            started = time.monotonic()
            error = await self._attempt()
            if error is None:
                self._become("closed")
                return
            steady = self._was_ready and time.monotonic() - started > STEADY_SECONDS
            attempt = 0 if steady else attempt
            if attempt >= len(PAUSES) or (attempt == 0 and not self._was_ready) or _wants_login(error):
                self._failed_at = time.monotonic()
                self._become("failed", error)
                return
            if not self._was_ready:
                self._settle(error)
            await self._pause(PAUSES[attempt], error)
            attempt += 1
            self.restarts += 1

    async def _attempt(self) -> McpError | None:
        """Open the link and stay until it ends; returns why it did, or None where it was to be closed."""
        self._was_ready = False
        self._reason = ""
        if self._stop.is_set():
            return None
        self._newest_lines.clear()
        self._become("connecting")
        error: McpError | None = None
        try:
            await self._live()
        except asyncio.CancelledError:
            if not self._stop.is_set():
                raise
        except Exception as failure:
            error = self._as_error(failure)
        finally:
            self._link = None
            self._over.set()
        if self._stop.is_set():
            return None
        return error or McpConnectionError(f"The connection got lost: {self._reason}.{self._last_words()}")

    async def _live(self) -> None:
        async with AsyncExitStack() as stack:
            if missing := [name for name in self._transport.modules if name not in sys.modules]:
                await run_in_thread(_load, missing)
            limit = asyncio.timeout(self._connect_timeout + self._transport.patience)
            try:
                async with limit:
                    link = await stack.enter_async_context(self._transport.open(self))
            except TimeoutError as error:
                if not limit.expired():
                    raise
                raise McpConnectionError(
                    f"The server did not get ready within {self._connect_timeout:g} seconds.{self._last_words()}",
                    "Raise connect_timeout if it needs longer, such as for a first download.",
                ) from error
            self._link = link
            self._life += 1
            self._was_ready = True
            self._over.clear()
            self.info = link.info
            self._become("ready")
            for waiter in self._take_waiting():
                waiter.set_result(link)
            self._reason = await self._until_over(link)
            self._over.set()
            self._link = None

    async def _until_over(self, link: Link) -> str:
        """Wait until the link ends by itself, and return why, or until it is to be closed."""
        ends = asyncio.ensure_future(link.wait_closed())
        stops = asyncio.ensure_future(self._stop.wait())
        try:
            await asyncio.wait({ends, stops}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stops.cancel()
            ends.cancel()
            await asyncio.wait({ends, stops})
        return "" if ends.cancelled() else ends.result()

    async def _pause(self, seconds: float, error: McpError) -> None:
        self._become("backoff", error)
        if not self._waiting:
            self._wake.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()
            if not self._stop.is_set():  # a request waits
                async with asyncio.timeout(min(seconds, IMPATIENT_PAUSE)):
                    await self._stop.wait()

    def _become(self, state: ServerState, error: McpError | None = None) -> None:
        self.state = state
        self.error = error
        protocol = f"protocol {self.info.protocol}" if state == "ready" and self.info.protocol else ""
        self.log.became(state, protocol if error is None else str(error), is_error=error is not None)
        self._tell("state", {"state": state, "error": None if error is None else str(error)})

    def _take_waiting(self) -> Iterator[asyncio.Future[Link]]:
        waiting, self._waiting = self._waiting, []
        return (waiter for waiter in waiting if not waiter.done())

    def _settle(self, error: McpError) -> None:
        for waiter in self._take_waiting():
            waiter.set_exception(error)

    def _as_error(self, failure: BaseException) -> McpError:
        """One flat error, with what the server wrote last."""
        first = _first_cause(failure)
        if isinstance(first, McpError):
            text = f"{first.message.rstrip('.')}.{self._last_words()}"
            return McpConnectionError(text, first.hint, rpc_code=first.rpc_code, data=first.data)
        what = first.message if isinstance(first, YiemAgentError) else describe_error(first)
        return McpConnectionError(f"The server cannot be used: {what.rstrip('.')}.{self._last_words()}")

    def _last_words(self) -> str:
        lines = list(self._newest_lines)
        return f" Its last lines:\n{chr(10).join(lines)}" if lines else ""

    # The link's inbox

    def notified(self, method: str, params: Mapping[str, Any]) -> None:
        """See ``Inbox``."""
        kind = _KINDS.get(method)
        if kind is not None:
            self._tell(kind, params)

    async def requested(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """See ``Inbox``. Meanwhile no request runs out of time: a person may be asked."""
        waiting = tuple(self._clocks)
        for clock in waiting:
            clock.pause()
        try:
            return await self._requested(method, params)
        finally:
            for clock in waiting:
                clock.resume()

    def answers(self, method: str) -> bool:
        """See ``Inbox``: always, since somebody who answers may come later."""
        return method in ("sampling/createMessage", "elicitation/create", "roots/list")

    def wrote_to_stderr(self, line: str) -> None:
        """See ``Inbox``."""
        self.stderr.append(line)
        if line.strip():
            self._newest_lines.append(line)
        self.log.wrote_to_stderr(line)
        self._tell("stderr", {"line": line})

    def wrote_rubbish(self, line: str) -> None:
        """See ``Inbox``."""
        self.rubbish += 1
        self.log.wrote_rubbish(line)
        self._tell("rubbish", {"line": line})


_KINDS = {
    "notifications/tools/list_changed": "tools_changed",
    "notifications/prompts/list_changed": "prompts_changed",
    "notifications/resources/list_changed": "resources_changed",
    "notifications/resources/updated": "resource_updated",
    "notifications/message": "log",
}


def _load(modules: Iterable[str]) -> None:
    """Import modules, one connection at a time: two threads within the SDK's packages may wait for each other."""
    with _loading:
        for module in modules:
            import_module(module)


def _wants_login(error: McpError) -> bool:
    """Whether the server refuses who asks, which trying again does not mend."""
    data = error.data
    return isinstance(data, Mapping) and cast("Mapping[str, object]", data).get("status") in (401, 403)


def _first_cause(error: BaseException) -> BaseException:
    """What is at the bottom of the groups that task groups make; one of ours before any other."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    causes = [_first_cause(cause) for cause in cast("BaseExceptionGroup[BaseException]", error).exceptions]
    return next((cause for cause in causes if isinstance(cause, McpError)), causes[0])
