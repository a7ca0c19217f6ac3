"""McpTools: gives one agent the tools of its servers, and keeps them in step.

All servers are discovered side by side, in background tasks on the agent's event loop. A server that
says that its tools changed, or that was connected again, is discovered once more. Names are given in
the order of the servers, whichever answers first, so that they are the same in each session.

While a server is down, its tools stay: a call waits for the connection, or fails and says why.
Otherwise the tools would come and go in the middle of a conversation that has them in its history.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import weakref
from collections.abc import Callable, Coroutine, Iterable, Mapping
from functools import cache, partial
from importlib import import_module
from threading import Thread
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from yiemagent_nb.core.concurrency import Interrupted, run_abortable
from yiemagent_nb.core.errors import InvalidParametersError, McpError, describe_error
from yiemagent_nb.core.runtime import running_loop
from yiemagent_nb.core.signal import AbortSignal
from yiemagent_nb.core.tools import Tool
from yiemagent_nb.core.validation import shorten
from yiemagent_nb.mcp.agent_answerer import AgentAnswerer
from yiemagent_nb.mcp.discovery import walk_pages
from yiemagent_nb.mcp.list_tools import LIST_TOOLS, make_list_tools
from yiemagent_nb.mcp.names import ToolNames
from yiemagent_nb.mcp.server import McpServer, ServerEvent
from yiemagent_nb.mcp.shelf import Shelf, read_definitions

if TYPE_CHECKING:
    from yiemagent_nb.core.agent import Agent

__all__ = ["McpTools"]

REFRESH_SECONDS = 5.0
"""How long a turn waits for tools that are being discovered again."""

LIST_SECONDS = 30.0
"""How long ``list_tools`` waits for servers that do not answer, and the first turn beyond their time to connect."""

_log = logging.getLogger("yiemagent_nb")


class McpTools:
    """The source of an agent's ``mcp_servers``; see ``ToolSource``.

    It uses each server until the agent is shut down or collected, and answers what the server asks
    through the agent.

    Args:
        servers: Whatever ``as_servers`` reads.

    Raises:
        InvalidParametersError: One is no server, or two have one name.
    """

    def __init__(self, servers: Iterable[Any]) -> None:
        self._shelves: tuple[Shelf, ...] = ()
        self._names = ToolNames()
        self._tools: Mapping[str, Tool] = {}
        self._told: Mapping[str, Tool] = {}
        """Those that the agent took over last."""
        self._agent: weakref.ref[Agent] | None = None
        self._answerer: AgentAnswerer | None = None
        self._finalizer: weakref.finalize[Any, Any] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False
        self._list_tools = make_list_tools(self._discover_all, self._callable_tools, lambda: self._shelves)
        self.add(servers)

    def __repr__(self) -> str:
        """The servers' names and the number of tools."""
        names = ", ".join(server.name for server in self.servers)
        return f"<McpTools of {names or 'no servers'}, {len(self._tools)} tools>"

    @property
    def tools(self) -> Mapping[str, Tool]:
        """See ``ToolSource``. ``list_tools`` is among them, unless the agent has its own tool of that name."""
        return MappingProxyType(self._tools)

    @property
    def servers(self) -> tuple[McpServer, ...]:
        """See ``ToolSource``."""
        return tuple(shelf.server for shelf in self._shelves)

    @property
    def names(self) -> ToolNames:
        """Which tool of which server each name stands for."""
        return self._names

    @property
    def problems(self) -> Mapping[str, tuple[str, ...]]:
        """By server, why it could not be discovered and what of it was left out; only those that have such."""
        return {shelf.server.name: shelf.problems for shelf in self._shelves if shelf.problems}

    @property
    def instructions(self) -> Mapping[str, str]:
        """By server, how it wants to be used. Untrusted, and told to no model by itself."""
        told = {server.name: server.info.instructions for server in self.servers}
        return {name: instructions for name, instructions in told.items() if instructions}

    # What an agent calls

    def attach(self, agent: Agent) -> None:
        """See ``ToolSource``. The agent is held weakly."""
        self._agent = weakref.ref(agent)
        self._answerer = AgentAnswerer(agent)
        self._finalizer = weakref.finalize(agent, self._let_go)
        self._finalizer.atexit = False  # what runs then ends with the process, and its loops are gone
        for shelf in self._shelves:
            self._use(shelf)
        self._collect(agent)

    def add(self, servers: Iterable[Any]) -> None:
        """See ``ToolSource``."""
        from yiemagent_nb.mcp.config import as_servers  # noqa: PLC0415 - reads files, which few programs need

        known = self.servers
        added = tuple(Shelf(server) for server in as_servers(servers) if all(server is not each for each in known))
        taken = {server.name for server in self.servers}
        for shelf in added:
            if shelf.server.name in taken:
                raise InvalidParametersError(
                    f"Two MCP servers have the name {shelf.server.name!r}, and their tools could not be told apart.",
                    f"Give one another: McpServer(…, name={shelf.server.name + '-2'!r}).",
                )
            taken.add(shelf.server.name)
        self._shelves += added
        if self._agent is not None:
            for shelf in added:
                self._use(shelf)

    async def remove(self, server: McpServer | str) -> None:
        """See ``ToolSource``. A server that nobody else uses is disconnected when this returns.

        Calls that go on at it end with an error then. Its tools' names stay its own, should it come back.
        """
        shelf = next((each for each in self._shelves if server in (each.server, each.server.name)), None)
        if shelf is None:
            name = server.name if isinstance(server, McpServer) else server
            names = ", ".join(each.server.name for each in self._shelves)
            raise InvalidParametersError(
                f"The agent has no MCP server {shorten(name)}.",
                f"It has these: {names}." if names else "It has none.",
            )
        self._shelves = tuple(each for each in self._shelves if each is not shelf)
        self._leave(shelf)
        self._on_loop(partial(self._cancel, shelf))
        self._publish()
        if not shelf.server.in_use:
            await shelf.server.close()

    def start(self) -> None:
        """See ``ToolSource``. What is known already, or being asked for, is not asked for again."""
        if self._closed:
            return
        _prepare_validation()
        loop = asyncio.get_running_loop()
        if self._loop is not loop:  # the agent came to another loop: the tasks of the last one go on no more
            self._loop = loop
            self._tasks = set()
            for shelf in self._shelves:
                shelf.task = shelf.timer = None
        for shelf in self._shelves:
            if shelf.task is None and (shelf.again or not shelf.settled):
                self._spawn(shelf)

    async def ready(self, signal: AbortSignal) -> None:
        """See ``ToolSource``. Servers that are discovered again are waited for a short while only."""
        if self._loop is not asyncio.get_running_loop():
            self.start()
        if not self._tasks and all(shelf.settled for shelf in self._shelves):
            return
        self.start()
        first = [shelf for shelf in self._shelves if shelf.task and not shelf.settled]
        patience = max((shelf.server.connect_timeout for shelf in first), default=0.0) + LIST_SECONDS
        await _wait({shelf.task for shelf in first if shelf.task}, signal, patience)
        await _wait(self._tasks, signal, REFRESH_SECONDS)

    async def close(self) -> None:
        """See ``ToolSource``. Servers that nobody else uses are disconnected when this returns."""
        self._let_go()
        tasks = [task for task in self._tasks if task.get_loop() is asyncio.get_running_loop()]
        closing = (server.close() for server in self.servers if not server.in_use)
        for outcome in await asyncio.gather(*tasks, *closing, return_exceptions=True):
            if isinstance(outcome, Exception):
                _log.warning("an MCP server did not close: %s", describe_error(outcome))

    # Servers

    def _use(self, shelf: Shelf) -> None:
        server = shelf.server
        server.acquire(self)
        shelf.unsubscribe = server.subscribe(partial(self._hear, shelf))
        if self._answerer is not None:
            server.answerers.append(self._answerer)

    def _let_go(self) -> None:
        """Leave the servers. Also called when the agent is collected, then from any thread."""
        if self._closed:
            return
        self._closed = True
        if self._finalizer is not None:
            self._finalizer.detach()
        for shelf in self._shelves:
            self._leave(shelf)
        self._on_loop(self._cancel_tasks)

    def _leave(self, shelf: Shelf) -> None:
        shelf.unsubscribe()
        if self._answerer in shelf.server.answerers:
            shelf.server.answerers.remove(self._answerer)
        shelf.server.release(id(self))

    def _cancel_tasks(self) -> None:
        for shelf in self._shelves:
            self._cancel(shelf)

    def _cancel(self, shelf: Shelf) -> None:
        """End the discovery of a server."""
        if shelf.timer is not None:
            shelf.timer.cancel()
        if shelf.task is not None:
            shelf.task.cancel()

    def _hear(self, shelf: Shelf, event: ServerEvent) -> None:
        """Called on the server's loop."""
        if event.kind == "tools_changed":
            react = self._changed
        elif event.kind == "state" and event.data.get("state") == "ready":
            react = self._reconnected
        else:
            return
        if not self._on_loop(partial(react, shelf)):
            shelf.again = True  # for when the agent comes to another loop

    def _on_loop(self, callback: Callable[[], None]) -> bool:
        """Call on the agent's loop, at once where this is it; returns whether there is one."""
        loop = self._loop
        if loop is None or loop.is_closed():
            return False
        if running_loop() is loop:
            callback()
        else:
            loop.call_soon_threadsafe(callback)
        return True

    # Discovery

    def _reconnected(self, shelf: Shelf) -> None:
        if shelf.task is not None and shelf.expects_ready:
            shelf.expects_ready = False
        else:
            self._look_again(shelf)

    def _changed(self, shelf: Shelf) -> None:
        if not shelf.agrees:  # what may be used of it changed, which is known at once
            self._publish()
        if shelf.server.enabled:
            self._look_again(shelf)

    def _look_again(self, shelf: Shelf) -> None:
        """Discover a server that changed; changes that come quickly are taken together."""
        if self._closed or shelf.timer is not None or shelf not in self._shelves:
            return
        if shelf.task is not None:
            shelf.again = True
            return
        loop = asyncio.get_running_loop()
        pause = shelf.pause(loop.time())
        if pause > 0:
            shelf.timer = loop.call_later(pause, self._spawn, shelf)
        else:
            self._spawn(shelf)

    def _spawn(self, shelf: Shelf) -> asyncio.Task[None]:
        """Discover a server in a task of its own, unless that goes on already."""
        if shelf.timer is not None:
            shelf.timer.cancel()
            shelf.timer = None
        if shelf.task is not None:
            return shelf.task
        shelf.again = False
        shelf.expects_ready = shelf.server.state != "ready"
        task = shelf.task = asyncio.get_running_loop().create_task(self._discover(shelf))
        self._tasks.add(task)
        task.add_done_callback(partial(self._discovered, shelf))
        return task

    async def _discover(self, shelf: Shelf) -> None:
        try:
            listing = await walk_pages(shelf.server.request, "tools/list", "tools")
        except McpError as error:
            outcome = partial(shelf.fail, error)
        except Exception as error:  # of a transport of the user's
            outcome = partial(shelf.fail, McpError(f"The tools could not be listed: {describe_error(error)}."))
        else:
            outcome = partial(shelf.take, listing, await read_definitions(listing))
        if shelf.task is asyncio.current_task():  # else the agent went to another loop meanwhile
            outcome()
            shelf.settled = True
            self._publish()
            self._tell_failure(shelf)

    def _discovered(self, shelf: Shelf, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("the discovery of %s failed", shelf.server.name, exc_info=error)
        if shelf.task is task:
            shelf.task = None
            if shelf.again and not self._closed:
                self._look_again(shelf)

    async def _discover_all(self) -> None:
        """Ask every server again, also those that were switched on meanwhile."""
        tasks = {self._spawn(shelf) for shelf in self._shelves if shelf.server.enabled}
        if tasks:
            await asyncio.wait(tasks, timeout=LIST_SECONDS)

    # Tools

    def _callable_tools(self) -> Mapping[str, Tool]:
        agent = None if self._agent is None else self._agent()
        return dict(self._tools if agent is None else agent.tools)

    def _publish(self) -> None:
        """Take over what was discovered, and tell the agent."""
        agent = None if self._agent is None else self._agent()
        if agent is None or self._closed:
            return
        self._collect(agent)
        try:
            agent.refresh_tools()
        except InvalidParametersError:  # another thread gave the agent a tool of that name in this very moment
            self._collect(agent)
            agent.refresh_tools()
        self._told = self._tools

    def _tell_failure(self, shelf: Shelf) -> None:
        """Tell a person, once, that a server has no tools to give."""
        agent = None if self._agent is None else self._agent()
        if agent is not None and (failure := shelf.untold_failure()) is not None:
            hint = failure.hint or "Its other servers go on; list_tools asks again."
            agent.report(type(failure)(f"No tools from {shelf.server.name}: {failure.message.rstrip('.')}.", hint))

    def _collect(self, agent: Agent) -> None:
        ours = (self._told, self._tools)
        own = {
            name for name, tool in agent.registered_tools.items() if all(tools.get(name) is not tool for tools in ours)
        }
        reserved = own | {LIST_TOOLS}
        tools = {} if LIST_TOOLS in own else {LIST_TOOLS: self._list_tools}
        for shelf in self._shelves:
            if not shelf.settled:
                break  # names are given in the order of the servers
            shelf.shown = shelf.names
            for original in shelf.shown:
                name = self._names.name_for(shelf.server.name, original, reserved)
                tools[name] = shelf.tool(original, name)
        self._tools = tools


@cache
def _prepare_validation() -> None:
    """Import what checks arguments while servers connect: it takes a second, in which the first call would wait."""
    Thread(target=import_module, args=("jsonschema",), name="yiemagent_nb import", daemon=True).start()


async def _wait(tasks: set[asyncio.Task[None]], signal: AbortSignal, seconds: float | None) -> None:
    """Wait for tasks without ending them; a signal ends the wait."""
    if not tasks:
        return
    with contextlib.suppress(Interrupted, TimeoutError):
        await run_abortable(_all_done(tasks), signal, seconds)


def _all_done(tasks: set[asyncio.Task[None]]) -> Coroutine[Any, Any, Any]:
    return asyncio.wait(set(tasks))
