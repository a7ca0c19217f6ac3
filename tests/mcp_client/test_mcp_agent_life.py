"""An agent that calls tools of its servers, and how long it uses these, on which event loops."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any

import pytest
from mcp_client.agents_with_servers import agent_with, discovered, message_text, names, registry, results
from mcp_client.waiting import next_state, next_tools
from mcp_client.workbench import Workbench, definition, text_result

from yiemagent_nb import Agent, Tool
from yiemagent_nb.mcp.link import Progress
from yiemagent_nb.mcp.server import McpServer
from yiemagent_nb.testing import EventRecorder, call

# Calls in a run


@pytest.mark.requirement("Y SP-010")
async def test_a_result_with_an_error_is_an_error_result_of_the_run() -> None:
    bench = Workbench([definition("do")])
    bench.answer = lambda _name, _arguments: text_result("no such city", isError=True)
    async with agent_with(McpServer(bench), answers=[[call("do")], "sorry"]) as agent:
        await agent.prompt("go")
        assert results(agent)[0].is_error
        assert message_text(results(agent)[0]) == "no such city"


async def test_progress_becomes_updates_of_the_call() -> None:
    bench = Workbench([definition("do")])
    bench.progress = (Progress(1, 2, "half"),)
    async with agent_with(McpServer(bench), answers=[[call("do")], "done"]) as agent:
        recorder = EventRecorder()
        agent.subscribe(recorder)
        await agent.prompt("go")
        assert "XU(do)" in recorder.types()


async def never() -> dict[str, Any]:
    await asyncio.Event().wait()
    raise AssertionError


async def test_an_abort_cancels_the_call_at_the_server_and_leaves_the_agent_usable() -> None:
    bench = Workbench([definition("do")])
    bench.answer = lambda _name, _arguments: never()
    server = McpServer(bench)
    async with agent_with(server, answers=[[call("do")], "after all"]) as agent:
        run = asyncio.create_task(agent.prompt("go"))
        await bench.called.wait()
        agent.abort()
        assert (await run).stop_reason in ("aborted", "tool_calls")
        assert bench.cancelled == 1
        assert results(agent)[0].is_error
        assert (await agent.prompt("again")).text == "after all"
        assert server.state == "ready"


async def test_a_call_that_takes_too_long_is_cancelled_and_is_an_error_result() -> None:
    bench = Workbench([definition("do")])
    bench.answer = lambda _name, _arguments: never()
    async with agent_with(McpServer(bench, timeout=0.1), answers=[[call("do")], "too slow"]) as agent:
        await agent.prompt("go")
        assert results(agent)[0].details["code"] == "EXECUTION_TIMEOUT"
        assert bench.cancelled == 1


async def test_an_abort_ends_the_wait_for_a_server_that_does_not_answer() -> None:
    bench = Workbench()
    bench.may_list.clear()
    server = McpServer(bench)
    async with agent_with(server, answers=["hello"]) as agent:
        with next_state(server, "ready") as ready:
            run = asyncio.create_task(agent.prompt("go"))
            await ready.over()
        agent.abort()
        async with asyncio.timeout(5):
            assert (await run).stop_reason == "aborted"


# Who uses a server, and until when


async def test_shutdown_disconnects_before_it_returns() -> None:
    bench = Workbench([definition("one")])
    server = McpServer(bench)
    agent = agent_with(server)
    await discovered(agent)
    assert bench.is_open
    await agent.shutdown()
    assert not bench.is_open
    assert server.state == "closed"
    assert not server.in_use
    assert server.answerers == []


async def test_shutdown_in_the_middle_of_a_discovery_ends_it() -> None:
    bench = Workbench()
    bench.may_list.clear()
    server = McpServer(bench)
    agent = agent_with(server)
    with next_state(server, "ready") as ready:
        registry(agent).start()
        await ready.over()
    await agent.shutdown()
    assert not bench.is_open


async def test_a_server_of_two_agents_closes_with_the_last_one() -> None:
    bench = Workbench([definition("one")])
    server = McpServer(bench)
    first, second = agent_with(server), agent_with(server, answers=[[call("one")], "done"])
    await discovered(first)
    await discovered(second)
    assert bench.opened == 1
    assert len(server.answerers) == 2
    await first.shutdown()
    assert bench.is_open
    await second.prompt("go")
    assert not results(second)[0].is_error
    await second.shutdown()
    assert not bench.is_open


async def test_a_server_that_was_opened_by_hand_stays_open() -> None:
    bench = Workbench([definition("one")])
    async with McpServer(bench) as server:
        agent = agent_with(server)
        await discovered(agent)
        await agent.shutdown()
        assert bench.is_open


async def test_an_agent_that_is_collected_lets_its_server_go() -> None:
    bench = Workbench([definition("one")])
    server = McpServer(bench)
    agent: Agent | None = agent_with(server, answers=[[call("one")], "hello"])
    await discovered(agent)
    await server.close()
    await agent.prompt("hi")  # connects again in the middle of the run
    assert server.state == "ready"
    alive = weakref.ref(agent)
    with next_state(server, "closed") as closed:
        agent = None
        await asyncio.sleep(0)  # what the loop runs in this very step may hold the run
        gc.collect()
        assert alive() is None
        await closed.over()
    assert not bench.is_open
    assert server.answerers == []


async def test_the_agent_answers_what_its_servers_ask() -> None:
    server = McpServer(Workbench())
    async with agent_with(server):
        assert len(server.answerers) == 1


# Event loops


def test_ask_from_a_plain_script_finds_and_calls_a_servers_tool() -> None:
    bench = Workbench([definition("one")])
    server = McpServer(bench)
    agent = agent_with(server, answers=[[call("one")], "done"])
    assert agent.ask("go").text == "done"
    assert not results(agent)[0].is_error
    with asyncio.Runner() as runner:
        runner.run(agent.shutdown())
    assert not bench.is_open


NESTED = """
import asyncio
from mcp_client.agents_with_servers import agent_with, results
from mcp_client.workbench import Workbench, definition
from yiemagent_nb import McpServer
from yiemagent_nb.testing import call

async def main():
    bench = Workbench([definition("one")])
    async with agent_with(McpServer(bench), answers=[[call("one")], "done"]) as agent:
        assert agent.ask("go").text == "done"
        assert not results(agent)[0].is_error
        print("fine")

asyncio.run(main())
"""


def test_ask_nested_in_a_running_loop_finds_and_calls_a_servers_tool() -> None:
    tests = Path(__file__).parents[1]  # in a process of its own: a nested run patches asyncio for all of it
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tests), str(tests.parent)])}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", NESTED], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("fine\n", "")


async def test_an_agent_with_a_thread_of_its_own_uses_a_server_of_this_loop() -> None:
    bench = Workbench([definition("one")])
    async with McpServer(bench) as server:
        agent = agent_with(server, answers=[[call("one")], "done"], runtime="thread")
        assert (await agent.prompt("go")).text == "done"
        assert not results(agent)[0].is_error
        bench.change([definition("one"), definition("two")])
        await agent.shutdown()
        assert bench.is_open


def test_an_agent_goes_on_in_a_second_loop_and_hears_of_changes_there() -> None:
    bench = Workbench([definition("one")])
    agent = agent_with(McpServer(bench), answers=["first", [call("one")], "second"])
    with asyncio.Runner() as runner:
        assert runner.run(agent.prompt("go")).text == "first"
    assert names(agent) == ["one"]

    async def go_on() -> None:
        assert (await agent.prompt("go")).text == "second"
        assert not results(agent)[0].is_error
        with next_tools(agent) as changed:
            bench.change([definition("two")])
            await changed.over()
        await agent.shutdown()

    with asyncio.Runner() as runner:
        runner.run(go_on())
    assert names(agent) == ["two"]
    assert bench.opened == 2


def test_an_interrupted_discovery_is_done_again_in_the_next_loop() -> None:
    bench = Workbench([definition("one")])
    agent = agent_with(McpServer(bench))

    async def begin() -> None:
        bench.may_list = asyncio.Event()
        registry(agent).start()

    async def go_on() -> None:
        bench.may_list = asyncio.Event()
        bench.may_list.set()
        await discovered(agent)
        await agent.shutdown()

    with asyncio.Runner() as runner:
        runner.run(begin())
    assert names(agent) == []
    with asyncio.Runner() as runner:
        runner.run(go_on())
    assert names(agent) == ["one"]


def test_a_registry_shows_its_servers() -> None:
    assert repr(registry(agent_with(McpServer(Workbench())))) == "<McpTools of bench, 1 tools>"
    assert isinstance(agent_with(McpServer(Workbench())).tools["list_tools"], Tool)
