"""ToolInspector: an agent's tools and MCP servers, to look at, to call by hand, and to change."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable
from typing import TYPE_CHECKING, Any, ClassVar

from yiemagent_nb.core.errors import InvalidParametersError, ToolNotFoundError
from yiemagent_nb.core.events import (
    AgentError,
    ApprovalRequested,
    ApprovalResolved,
    Event,
    QuestionAnswered,
    QuestionAsked,
    ToolsChanged,
)
from yiemagent_nb.core.validation import shorten
from yiemagent_nb.widgets.added_backend import read_key
from yiemagent_nb.widgets.apps import refuse_in_apps
from yiemagent_nb.widgets.asked import take_answer
from yiemagent_nb.widgets.inspector.added_server import read_servers
from yiemagent_nb.widgets.inspector.hand_calls import hand_calls
from yiemagent_nb.widgets.inspector.resources import contents_form, list_prompts, list_resources, prompt_form
from yiemagent_nb.widgets.inspector.server_forms import entry_form, server_form
from yiemagent_nb.widgets.inspector.server_watch import ServerWatch
from yiemagent_nb.widgets.inspector.throttle import Throttle
from yiemagent_nb.widgets.inspector.tool_forms import ToolForms
from yiemagent_nb.widgets.page_forms import approval_form, audio_shelf, question_form
from yiemagent_nb.widgets.panel import Buffers, Post, SidePanel, reply
from yiemagent_nb.widgets.panel_protocol import (
    ActOnServer,
    AddServer,
    CallTool,
    CancelCall,
    EnableTool,
    GetPrompt,
    ListPrompts,
    ListResources,
    LoadCall,
    LoadLog,
    LoadLogEntry,
    LoadTool,
    ReadResource,
    WatchResource,
)
from yiemagent_nb.widgets.protocol import Answer, Approve, LoadAudio, PageEvent, PageMessage
from yiemagent_nb.widgets.texts import shortened

if TYPE_CHECKING:
    from yiemagent_nb.core.agent import Agent
    from yiemagent_nb.mcp.server import McpServer

__all__ = ["ToolInspector"]

TELL_SECONDS = 0.25
MOST_ENTRIES = 200
LONGEST_PROBLEM = 500
MOST_PROBLEMS = 50


class ToolInspector(SidePanel):
    """Shows an agent's tools and MCP servers: what they say of themselves, what is odd about it, what they answer.

    Tools are called by hand through the agent, with its hooks or without; servers are added, connected and
    removed; what is said to them is shown message by message.

    Args:
        agent: The agent whose tools are shown.

    Example::

        ToolInspector(agent)
    """

    name: ClassVar[str] = "inspector"

    def __init__(self, agent: Agent) -> None:
        super().__init__(agent)
        self._tools = ToolForms(agent)
        self._shelf = audio_shelf(agent)
        self._calls = hand_calls(agent)
        self._calls.tell(self)
        self._watch = ServerWatch(agent, self._tell_servers, self.tell)
        self._tools_changed = Throttle(self._tell_tools, TELL_SECONDS)
        self._reader: threading.Thread | None = None

    def connect(self, post: Post) -> Callable[[], None]:
        """See ``Panel``. When no widget shows it any more, the servers are left alone, and the agent may go."""
        disconnect = super().connect(post)

        def leave() -> None:
            disconnect()
            if not self._posts:
                self._watch.end()

        return leave

    def state(self) -> dict[str, Any]:
        """Servers, tools, calls, and what discovery left out."""
        self._watch.follow()
        self._read_tools()
        return {
            "servers": self._servers(),
            "tools": self._tools.rows(),
            "calls": self._calls.forms(),
            "problems": self._problems(),
            **self._asked(),
        }

    def observe(self, event: Event) -> Iterable[PageEvent]:
        """Tell what changed of the tools and servers, and which calls wait for a person."""
        self._calls.observe(event)
        if self.is_open:
            match event:
                case ToolsChanged():
                    self._watch.follow()
                    self._tools_changed.poke()
                    self._watch.poke()
                case ApprovalRequested() | ApprovalResolved() | QuestionAsked() | QuestionAnswered():
                    self.tell({"type": "asked", **self._asked()}, whole=True)
                case AgentError():  # perhaps of a server that cannot be asked for its tools
                    self._watch.poke()
                case _:
                    pass
        return ()

    def ask(self, message: PageMessage, post: Post, buffers: Buffers) -> bool | Coroutine[Any, Any, None]:
        """Call, cancel, switch and add; and give what the page looks at."""
        match message:
            case CallTool():
                if not message.hooks:
                    refuse_in_apps("A tool is not called past the agent's hooks")
                self._calls.begin(message)
            case CancelCall():
                self._calls.cancel(message.call)
            case EnableTool():
                self.agent.set_tool_active(message.name, message.enabled)
            case ActOnServer():
                return self._act(message)
            case AddServer():
                return self._add(message, buffers, post)
            case Approve() | Answer():
                take_answer(self.agent, message)
            case _:
                return self._give(message, post) or self._ask_server(message, post)
        return True

    def _give(self, message: PageMessage, post: Post) -> bool:
        """What is known here already."""
        match message:
            case LoadTool():
                reply(message, self._tools.details(self._tool(message.name)), post)
            case LoadCall():
                reply(message, self._calls.details(message.call), post)
            case LoadLog():
                reply(message, self._log(message), post)
            case LoadLogEntry():
                reply(message, {"text": self._server(message.server).log.entry(message.number)}, post)
            case LoadAudio():
                post([self._shelf.event(message.key)])
            case _:
                return False
        return True

    def _ask_server(self, message: PageMessage, post: Post) -> bool | Coroutine[Any, Any, None]:
        """What a server has to be asked for."""
        match message:
            case ListResources():
                return self._list_resources(message, post)
            case ReadResource():
                return self._read_resource(message, post)
            case WatchResource():
                return self._watch_resource(message)
            case ListPrompts():
                return self._list_prompts(message, post)
            case GetPrompt():
                return self._get_prompt(message, post)
            case _:
                return False

    def _asked(self) -> dict[str, Any]:
        """What waits for a person beside the calls by hand: such as what a server asks the model or the person."""
        return {
            "approvals": [approval_form(each) for each in self.agent.approvals.pending if not self._calls.asks(each)],
            "questions": [question_form(each) for each in self.agent.questions.pending],
        }

    # Tools

    def _tool(self, name: str) -> Any:
        tool = self.agent.registered_tools.get(name)
        if tool is None:
            raise ToolNotFoundError(f"There is no tool named {shorten(name)} any more.", "Choose another.")
        return tool

    def _tell_tools(self) -> None:
        self._read_tools()
        self.tell({"type": "tools", "tools": self._tools.rows()}, whole=True)

    def _read_tools(self) -> None:
        """Read what new tools say of themselves, in a thread: a server may have made that slow on purpose."""
        if self._tools.is_unread and (self._reader is None or not self._reader.is_alive()):
            self._reader = threading.Thread(target=self._read, name="yiemagent_nb inspector", daemon=True)
            self._reader.start()

    def _read(self) -> None:
        while self._tools.read():
            self._tools_changed.poke()

    # Servers

    def _server(self, name: str) -> McpServer:
        server = next((each for each in self.agent.mcp_servers if each.name == name), None)
        if server is None:
            raise InvalidParametersError(f"The agent has no server named {shorten(name)} any more.", "Choose another.")
        return server

    def _servers(self) -> list[dict[str, Any]]:
        counts = Counter(tool.source for tool in self.agent.registered_tools.values())
        problems = self.agent.mcp_problems
        return [
            server_form(server, counts[server.name], problems.get(server.name, ())) for server in self.agent.mcp_servers
        ]

    def _problems(self) -> list[str]:
        found = [f"{name}: {each}" for name, several in self.agent.mcp_problems.items() for each in several]
        return [shortened(each, LONGEST_PROBLEM) for each in found[:MOST_PROBLEMS]]

    def _tell_servers(self) -> None:
        self.tell({"type": "servers", "servers": self._servers(), "problems": self._problems()}, whole=True)

    async def _act(self, message: ActOnServer) -> None:
        server = self._server(message.server)
        try:
            match message.action:
                case "connect":
                    server.enabled = True
                    await server.check()
                case "reconnect":
                    server.enabled = True
                    await server.reconnect()
                case "disconnect":
                    server.enabled = False
                    await server.close()
                case "remove":
                    await self.agent.remove_mcp_server(server)
                case "refresh":
                    server.refresh()
                case "check":
                    await server.check()
        finally:
            self._watch.follow()
            self._watch.poke()

    async def _add(self, message: AddServer, buffers: Buffers, post: Post) -> None:
        refuse_in_apps("Servers cannot be added")
        token = read_key(buffers)
        servers, notes = await asyncio.to_thread(read_servers, message.config, message.name, token)
        self.agent.add_mcp_servers(*servers)
        self._watch.follow()
        self._watch.poke()
        reply(message, {"servers": [server.name for server in servers], "notes": notes}, post)

    def _log(self, message: LoadLog) -> dict[str, Any]:
        server = self._server(message.server)
        if message.before is None:
            self._watch.follow_log(server)
        entries = [entry_form(entry) for entry in server.log.entries(message.before, MOST_ENTRIES)]
        first = entries[0]["number"] if entries else message.before or 0
        is_start = len(entries) < MOST_ENTRIES
        return {"entries": entries, "start": 0 if is_start else first}

    # Resources and prompts

    async def _list_resources(self, message: ListResources, post: Post) -> None:
        server = self._server(message.server)
        reply(message, await list_resources(server, self._watch.watched(server.name)), post)

    async def _read_resource(self, message: ReadResource, post: Post) -> None:
        server = self._server(message.server)
        contents = await server.read_resource(message.uri)
        reply(message, {"contents": await asyncio.to_thread(contents_form, server.name, contents, self._shelf)}, post)

    async def _watch_resource(self, message: WatchResource) -> None:
        server = self._server(message.server)
        await (server.subscribe_resource if message.watch else server.unsubscribe_resource)(message.uri)
        self._watch.watch_resource(server.name, message.uri, watch=message.watch)

    async def _list_prompts(self, message: ListPrompts, post: Post) -> None:
        reply(message, {"prompts": await list_prompts(self._server(message.server))}, post)

    async def _get_prompt(self, message: GetPrompt, post: Post) -> None:
        server = self._server(message.server)
        prompt = await server.get_prompt(message.name, message.arguments)
        reply(message, await asyncio.to_thread(prompt_form, server.name, prompt, self._shelf), post)
