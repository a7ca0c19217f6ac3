"""ServerWatch: hears what happens at an agent's servers, and tells a few times a second."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from yiemagent_nb.widgets.inspector.server_forms import entry_form
from yiemagent_nb.widgets.inspector.throttle import Throttle
from yiemagent_nb.widgets.texts import one_line

if TYPE_CHECKING:
    from yiemagent_nb.core.agent import Agent
    from yiemagent_nb.mcp.protocol_log import LogEntry
    from yiemagent_nb.mcp.server import McpServer, ServerEvent

__all__ = ["ServerWatch"]

TELL_SECONDS = 0.25
MOST_TOLD = 100
"""Log entries of one event; where more were said meanwhile, the newest."""

MOST_LOGS = 4
"""How many servers' logs are followed; a person looks at one."""

LONGEST_URI = 2_000


class ServerWatch:
    """Follows the servers of an agent, those that are added and removed among them.

    Args:
        agent: The agent.
        changed: Called when servers are otherwise than they were; from any thread, a few times a second.
        tell: Takes other events for the page; from any thread.
    """

    def __init__(self, agent: Agent, changed: Callable[[], None], tell: Callable[[dict[str, Any]], None]) -> None:
        self._agent = agent
        self._tell = tell
        self._changed = Throttle(changed, TELL_SECONDS)
        self._lock = threading.Lock()
        self._followed: dict[int, tuple[McpServer, Callable[[], None]]] = {}
        self._logs: dict[str, _LogWatch] = {}
        self._resources: dict[str, frozenset[str]] = {}

    def follow(self) -> None:
        """Follow the servers that the agent has now, and no others; from any thread."""
        servers = {id(server): server for server in self._agent.mcp_servers}
        with self._lock:
            gone = [self._followed.pop(key) for key in list(self._followed) if key not in servers]
            for key, server in servers.items():
                if key not in self._followed:
                    self._followed[key] = (server, server.subscribe(self._hear))
            lost = [self._logs.pop(server.name) for server, _ in gone if server.name in self._logs]
        for _, unsubscribe in gone:
            unsubscribe()
        for log in lost:
            log.end()

    def poke(self) -> None:
        """Have it told that servers changed."""
        self._changed.poke()

    def follow_log(self, server: McpServer) -> None:
        """Tell what is said from now on by and to a server."""
        with self._lock:
            known = self._logs.pop(server.name, None)
            self._logs[server.name] = known or _LogWatch(server, self._tell)  # the newest last
            oldest = list(self._logs)[:-MOST_LOGS]
            lost = [self._logs.pop(name) for name in oldest]
        for log in lost:
            log.end()

    def watched(self, server: str) -> frozenset[str]:
        """The addresses of the resources whose updates a server was asked to tell."""
        return self._resources.get(server, frozenset())

    def watch_resource(self, server: str, uri: str, *, watch: bool) -> None:
        """Remember that a server was asked to tell of a resource, or not to any more."""
        with self._lock:
            known = self.watched(server)
            self._resources[server] = known | {uri} if watch else known - {uri}

    def end(self) -> None:
        """Follow nothing any more."""
        with self._lock:
            ends = [unsubscribe for _, unsubscribe in self._followed.values()] + [
                log.end for log in self._logs.values()
            ]
            self._followed.clear()
            self._logs.clear()
        for end in ends:
            end()

    def _hear(self, event: ServerEvent) -> None:
        """Called on the server's loop, perhaps thousands of times a second."""
        match event.kind:
            case "log":
                pass
            case "resource_updated":
                uri = event.data.get("uri")
                if isinstance(uri, str):
                    self._tell({"type": "resource", "server": event.server, "uri": one_line(uri, LONGEST_URI)})
            case "resources_changed" | "prompts_changed":
                kind = event.kind.removesuffix("_changed")
                self._tell({"type": "listed", "server": event.server, "kind": kind})
            case "state" if event.data.get("state") != "ready" and self._resources.pop(event.server, None):
                self._tell({"type": "listed", "server": event.server, "kind": "resources"})  # none is watched any more
                self._changed.poke()
            case _:
                self._changed.poke()


class _LogWatch:
    """Tells what is said by and to one server."""

    def __init__(self, server: McpServer, tell: Callable[[dict[str, Any]], None]) -> None:
        self._name = server.name
        self._tell = tell
        self._new: deque[LogEntry] = deque(maxlen=MOST_TOLD)
        self._throttle = Throttle(self._flush, TELL_SECONDS)
        self.end = server.log.subscribe(self._take)

    def _take(self, entry: LogEntry) -> None:
        self._new.append(entry)
        self._throttle.poke()

    def _flush(self) -> None:
        entries: list[LogEntry] = []
        while self._new:
            entries.append(self._new.popleft())
        if entries:
            self._tell({"type": "log", "server": self._name, "entries": [entry_form(entry) for entry in entries]})
