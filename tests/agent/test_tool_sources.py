"""Tools that come and go beside an agent's own: what the core promises to whoever gives them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from agent.script import eventually

from yiemagent_nb import Agent, Scripted, Tool, ToolsChanged, tool
from yiemagent_nb.core import tool_source
from yiemagent_nb.core.errors import InvalidParametersError
from yiemagent_nb.core.events import Event, Trace
from yiemagent_nb.core.signal import AbortSignal

pytestmark = pytest.mark.requirement("Y FR-004", "Y US-002")


@tool
def own() -> str:
    """One of the agent's own."""
    return "own"


def offered(name: str, source: str = "shelf") -> Tool:
    def execute(*_: object) -> str:
        return name

    return Tool(name=name, description="One of a server's.", execute=execute, source=source)


def nothing(*_: object) -> None:
    """A listener that only listens."""


class Shelf:
    """A source whose tools a test puts there."""

    def __init__(self, servers: Iterable[Any]) -> None:
        self.servers = tuple(servers)
        self.tools: dict[str, Tool] = {}
        self.problems: dict[str, tuple[str, ...]] = {"a": ("It is down.",)}
        self.steps: list[str] = []
        self.filled = asyncio.Event()
        self.agent: Agent | None = None

    def attach(self, agent: Agent) -> None:
        self.agent = agent
        self.steps.append("attach")

    def add(self, servers: Iterable[Any]) -> None:
        self.servers = (*self.servers, *servers)
        self.steps.append("add")

    async def remove(self, server: Any) -> None:
        self.servers = tuple(each for each in self.servers if each != server)
        self.steps.append("remove")

    def start(self) -> None:
        self.steps.append("start")

    async def ready(self, signal: AbortSignal) -> None:
        waits = [asyncio.ensure_future(self.filled.wait()), asyncio.ensure_future(signal.wait())]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()

    async def close(self) -> None:
        self.steps.append("close")

    def put(self, *names: str) -> None:
        assert self.agent is not None
        self.tools = {name: offered(name) for name in names}
        self.agent.refresh_tools()
        self.filled.set()


@pytest.fixture
def shelves() -> Iterator[list[Shelf]]:
    made: list[Shelf] = []

    def make(servers: Iterable[Any]) -> Shelf:
        made.append(Shelf(servers))
        return made[-1]

    before = list(tool_source._factories)  # pyright: ignore[reportPrivateUsage]
    tool_source.set_tool_source(make)
    yield made
    tool_source._factories[:] = before  # pyright: ignore[reportPrivateUsage]


async def test_the_first_turn_waits_for_the_servers_tools(shelves: list[Shelf]) -> None:
    seen: list[list[str]] = []

    def answer(_messages: Any, *, tools: Any) -> str:
        seen.append([each["function"]["name"] for each in tools])
        return "done"

    agent = Agent(answer, tools=[own], mcp_servers=["a"])
    (shelf,) = shelves
    run = asyncio.create_task(agent.prompt("go"))
    await eventually(lambda: agent.is_running)
    assert seen == []
    shelf.put("borrowed")
    assert (await run).text == "done"
    assert seen == [["own", "borrowed"]]
    assert shelf.steps == ["attach", "start"]
    await agent.shutdown()
    assert shelf.steps[-1] == "close"


async def test_an_abort_ends_the_wait_for_tools(shelves: list[Shelf]) -> None:
    agent = Agent(Scripted(["never"]), mcp_servers=["a"])
    run = asyncio.create_task(agent.prompt("go"))
    await eventually(lambda: agent.is_running)
    agent.abort()
    assert (await run).stop_reason == "aborted"
    assert len(shelves) == 1


async def test_tools_that_change_are_told_once(shelves: list[Shelf]) -> None:
    agent = Agent(Scripted(["done"]), tools=[own], mcp_servers=["a"])
    told: list[tuple[str, ...]] = []
    agent.subscribe(lambda event, _: told.append(event.names) if isinstance(event, ToolsChanged) else None)
    (shelf,) = shelves
    shelf.put("one", "two")
    agent.refresh_tools()
    shelf.put("two")
    assert told == [("own", "one", "two"), ("own", "two")]
    assert list(agent.tools) == list(agent.state.tools) == ["own", "two"]


async def test_replacing_the_agents_own_tools_leaves_the_servers(shelves: list[Shelf]) -> None:
    agent = Agent(Scripted(["done"]), tools=[own], mcp_servers=["a"])
    (shelf,) = shelves
    shelf.put("borrowed")
    agent.set_tools([tool(lambda: "x", name="mine", description="Another.")])
    assert list(agent.tools) == ["mine", "borrowed"]
    agent.add_tools(own)
    assert list(agent.tools) == ["mine", "own", "borrowed"]


async def test_a_name_that_a_server_has_is_refused(shelves: list[Shelf]) -> None:
    agent = Agent(Scripted(["done"]), mcp_servers=["a"])
    (shelf,) = shelves
    shelf.put("own")
    with pytest.raises(InvalidParametersError, match="'own' is taken by a tool of the server 'shelf'"):
        agent.set_tools([own])
    assert list(agent.tools) == ["own"]
    assert agent.tools["own"].source == "shelf"


async def test_servers_can_be_added_later(shelves: list[Shelf]) -> None:
    agent = Agent(Scripted(["done"]))
    assert (agent.mcp_servers, agent.mcp_problems) == ((), {})
    agent.add_mcp_servers("a")
    agent.add_mcp_servers("b", "c")
    assert agent.mcp_servers == ("a", "b", "c")
    assert agent.mcp_problems == {"a": ("It is down.",)}
    assert len(shelves) == 1
    await asyncio.sleep(0)
    assert shelves[0].steps.count("start") == 2


async def test_an_agent_without_servers_has_no_source(shelves: list[Shelf]) -> None:
    agent = Agent(Scripted(["done"]))
    assert (await agent.prompt("go")).text == "done"
    assert shelves == []


def test_where_nothing_makes_a_source_the_error_says_what_to_do() -> None:
    before = list(tool_source._factories)  # pyright: ignore[reportPrivateUsage]
    tool_source._factories.clear()  # pyright: ignore[reportPrivateUsage]
    try:
        with pytest.raises(InvalidParametersError, match="Import Agent from yiemagent_nb"):
            tool_source.tool_source(["a"])
    finally:
        tool_source._factories[:] = before  # pyright: ignore[reportPrivateUsage]


async def test_people_are_heard_while_somebody_attends_and_a_listener_is_nobody() -> None:
    agent = Agent(Scripted(["done"]))
    agent.subscribe(nothing)
    assert not agent.hears_people
    first, second = agent.attend(), agent.attend()
    first()
    first()
    assert agent.hears_people
    second()
    assert not agent.hears_people


async def test_an_abort_ends_what_goes_on_beside_an_idle_agent() -> None:
    agent = Agent(Scripted([]))
    signals: list[AbortSignal] = []

    async def work(signal: AbortSignal) -> str:
        signals.append(signal)
        await signal.wait()
        return signal.reason

    task = asyncio.create_task(agent.alongside(work))
    while not signals:  # noqa: ASYNC110 - the work begins within a few steps of the loop
        await asyncio.sleep(0)
    threading.Thread(target=agent.abort).start()
    async with asyncio.timeout(5):
        assert await task == "aborted"


async def test_what_began_beside_a_run_ends_with_it_and_what_began_before_goes_on() -> None:
    signals: list[AbortSignal] = []

    async def work(signal: AbortSignal) -> str:
        signals.append(signal)
        await signal.wait()
        return signal.reason

    async def begin(_: Any) -> str:
        tasks.append(asyncio.create_task(agent.alongside(work)))
        while len(signals) < 2:  # noqa: ASYNC110 - the work begins within a few steps of the loop
            await asyncio.sleep(0)
        return "done"

    agent = Agent(Scripted([begin]))
    tasks = [asyncio.create_task(agent.alongside(work))]
    await asyncio.sleep(0)
    assert len(signals) == 1
    async with asyncio.timeout(5):
        await agent.prompt("hi")
        assert await tasks[1] == "the run is over"
        assert not signals[0].aborted
        agent.abort()
        await tasks[0]


async def test_the_sink_alone_hears_of_a_named_step() -> None:
    heard: list[Event] = []
    agent = Agent(Scripted([]))
    agent.trace("nobody")
    agent.set_event_sink(heard.append)
    agent.trace("step", number=1)
    assert heard == [Trace("step", {"number": 1})]
