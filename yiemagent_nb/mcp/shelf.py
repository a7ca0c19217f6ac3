"""Shelf: the tools of one server, as they were last discovered."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from yiemagent_nb.core.errors import InvalidParametersError, McpError
from yiemagent_nb.core.tools import Tool
from yiemagent_nb.core.validation import cut
from yiemagent_nb.mcp.discovery import Listing
from yiemagent_nb.mcp.server import McpServer
from yiemagent_nb.mcp.tools import ToolDefinition, read_definition

__all__ = ["Shelf", "read_definitions"]

BURST = 5
"""How many discoveries may follow each other without a pause, when a server says that its tools changed."""

BURST_SECONDS = 5.0

READ_AT_ONCE = 25
"""After so many definitions the event loop has its turn."""

_METHOD_NOT_FOUND = -32601


@dataclass(frozen=True, slots=True)
class _Made:
    definition: ToolDefinition
    tool: Tool


Definitions = Mapping[str, ToolDefinition | InvalidParametersError]
"""What each tool of a list says, or why it cannot be used."""


async def read_definitions(listing: Listing) -> Definitions:
    """Read the definitions of a list, which may be long, and let others work meanwhile."""
    read: dict[str, ToolDefinition | InvalidParametersError] = {}
    for number, raw in enumerate(listing.items, 1):
        try:
            read[raw["name"]] = read_definition(raw)
        except InvalidParametersError as error:
            read[raw["name"]] = error
        if number % READ_AT_ONCE == 0:
            await asyncio.sleep(0)
    return read


def _problems(definitions: Definitions) -> Iterator[str]:
    for definition in definitions.values():
        if isinstance(definition, ToolDefinition):
            yield from definition.problems
        else:
            yield f"{definition.message} The tool was left out."


class Shelf:
    """Keeps what a server offers, and the ``Tool`` objects made of it while their definitions stay the same.

    Args:
        server: The server.
    """

    def __init__(self, server: McpServer) -> None:
        self.server = server
        self.settled = not server.enabled
        """Whether it was discovered once, or failed to be."""
        self.failure: McpError | None = None
        """Why the last discovery failed. What was found before is still there."""
        self.task: asyncio.Task[None] | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.again = False
        """Whether it changed while it was discovered, or while nobody could look."""
        self.expects_ready = False
        """Whether the discovery that goes on is what makes the server ready."""
        self.shown: tuple[str, ...] = ()
        """The tools that the agent was given, by their names at the server."""
        self.unsubscribe: Callable[[], None] = _do_nothing
        self._told = ""
        self._definitions: dict[str, ToolDefinition] = {}
        self._made: dict[str, _Made] = {}
        self._left_out: tuple[str, ...] = ()
        self._starts: deque[float] = deque(maxlen=BURST)

    @property
    def names(self) -> tuple[str, ...]:
        """The tools, by their names at the server, in its order."""
        return tuple(filter(self.server.admits, self._definitions)) if self.server.enabled else ()

    @property
    def problems(self) -> tuple[str, ...]:
        """Why the last discovery failed, and what was wrong in what it found."""
        failure = () if self.failure is None else (cut(self.failure.message, 2000),)
        return (*failure, *self._left_out)

    @property
    def agrees(self) -> bool:
        """Whether the agent has been given what there is."""
        return self.shown == self.names

    def untold_failure(self) -> McpError | None:
        """Why the last discovery failed, if that was not asked for before."""
        told, self._told = self._told, "" if self.failure is None else self.failure.message
        return None if self._told == told else self.failure

    def take(self, listing: Listing, definitions: Definitions) -> None:
        """Keep what was found. A list that was not read to its end takes nothing away."""
        found = {} if listing.complete else dict(self._definitions)
        for name, definition in definitions.items():
            if isinstance(definition, ToolDefinition):
                found[name] = definition
            else:
                found.pop(name, None)
        self._definitions = found
        self._made = {name: made for name, made in self._made.items() if name in found}
        self._left_out = (*listing.problems, *_problems(definitions))
        self.failure = None

    def fail(self, error: McpError) -> None:
        """Keep why there is nothing new. A server without tools is none that failed."""
        if error.rpc_code == _METHOD_NOT_FOUND:
            self.take(Listing(problems=("It offers no tools.",)), {})
        else:
            self.failure = error

    def tool(self, original: str, name: str) -> Tool:
        """A tool of the server under the name that it has for the model; the same object as long as it is the same."""
        server, definition, made = self.server, self._definitions[original], self._made.get(original)
        if made is not None and made.tool.name == name and made.definition.says_the_same(definition):
            tool = made.tool
        else:
            tool = definition.make_tool(server, name, max_characters=server.max_result_characters)
        self._made[original] = _Made(definition, tool)
        return tool

    def pause(self, now: float) -> float:
        """Seconds to wait before the next discovery, so that a server cannot keep everyone busy; counts it."""
        oldest = self._starts[0] if len(self._starts) == BURST else now - BURST_SECONDS
        start = max(now, oldest + BURST_SECONDS)
        self._starts.append(start)
        return start - now

    def describe(self) -> str:
        """How many tools it has, and why it has no more, in a line."""
        server, count = self.server, len(self.names)
        line = f"{count} tool{'' if count == 1 else 's'} from {server.name}"
        if not server.enabled:
            return f"{line}: it is switched off"
        if not self.settled:
            return f"{line}: it has not answered yet"
        if self.failure is not None and count:
            line = f"{line}, which did not answer when it was asked again"
        return f"{line}: {' '.join(self.problems)}" if self.problems else line


def _do_nothing() -> None:
    pass
