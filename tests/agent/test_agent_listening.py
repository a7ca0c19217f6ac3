"""What an agent tells: its state, its events, its stream."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

import pytest
from agent.script import Model, Recorder, call, check_agent, forever, history_of

from yiemagent_nb.core.agent import Agent
from yiemagent_nb.core.errors import (
    AgentBusyError,
    InvalidParametersError,
    ServerError,
)
from yiemagent_nb.core.events import AgentEnd, Event, Trace
from yiemagent_nb.core.signal import AbortSignal
from yiemagent_nb.core.state import AgentState
from yiemagent_nb.core.tools import tool

pytestmark = pytest.mark.requirement("A FR-001", "A SPEC-6.1")


def ok() -> str:
    """Work well."""
    return "ok"


# state


@pytest.mark.requirement("Y SP-019", "Y SP-020", "Y SP-021", "A SPEC-1.1", "A SPEC-10.1")
async def test_state_follows_a_whole_run() -> None:
    seen: dict[str, AgentState] = {}

    def look(name: str) -> Callable[[], None]:
        return lambda: seen.update({name: agent.state})

    async def a() -> str:
        """Look at the state."""
        seen["tool"] = agent.state
        return "ok"

    agent = Agent(
        Model(["Hel", look("stream"), "lo", call("a")], [look("second"), "done"]),
        "Be brief.",
        tools=[a],
        thinking_level="low",
        model="m",
    )
    before = agent.state
    await agent.prompt("u")
    after = agent.state

    assert (before.is_streaming, before.messages, before.streaming_message) == (False, (), None)
    assert (before.system_prompt, before.thinking_level) == ("Be brief.", "low")
    assert before.model is not None
    assert before.model.id == "m"
    assert list(before.tools) == ["a"]
    assert seen["stream"].is_streaming
    assert seen["stream"].streaming_message is not None
    assert seen["stream"].streaming_message.text == "Hel"
    assert [message.role for message in seen["stream"].messages] == ["user"]
    assert seen["tool"].pending_tool_calls == frozenset({"A"})
    assert seen["tool"].streaming_message is None
    assert seen["second"].pending_tool_calls == frozenset()
    assert len(seen["second"].messages) == 3
    assert (after.is_streaming, after.pending_tool_calls, after.error_message) == (False, frozenset(), None)
    assert before.messages == (), "a snapshot changed"


async def test_state_keeps_the_last_error_until_a_run_goes_well() -> None:
    agent = Agent(Model([ServerError("gone")]))
    await agent.prompt("u")
    assert agent.state.error_message == "gone [SERVER_ERROR]"
    await agent.prompt("v")
    assert agent.state.error_message is None


async def test_repr_says_what_the_agent_is_and_does() -> None:
    agent = Agent(Model([lambda: seen.append(repr(agent)), "done"]), tools=[ok])
    seen = [repr(agent)]
    await agent.prompt("u")
    await agent.shutdown()

    assert seen == [
        "<Agent Model, 1 tools, 0 messages, idle>",
        "<Agent Model, 1 tools, 1 messages, running>",
    ]
    assert repr(agent) == "<Agent Model, 1 tools, 2 messages, closed>"


# subscribe, wait_idle, stream


@pytest.mark.requirement("A SPEC-5.2")
async def test_unsubscribing_stops_delivery_at_once() -> None:
    events: list[Event] = []

    def listen(event: Event, _: AbortSignal) -> None:
        events.append(event)
        if event.type == "message_update":
            unsubscribe()

    agent = Agent(Model(["Hel", "lo"]))
    unsubscribe = agent.subscribe(listen)

    await agent.prompt("u")

    assert [event.type for event in events].count("message_update") == 1
    assert events[-1].type == "message_update"


async def test_wait_idle_waits_until_async_listeners_have_handled_the_end() -> None:
    handled: list[str] = []

    async def slow(event: Event, _: AbortSignal) -> None:
        await asyncio.sleep(0)
        handled.append(event.type)

    agent = Agent(Model())
    agent.subscribe(slow)
    agent.steer("u")

    await agent.wait_idle()

    assert handled[-1] == "agent_end"


async def test_wait_idle_and_shutdown_inside_an_async_listener_raise_instead_of_hanging() -> None:
    errors: list[Exception] = []

    async def listen(event: Event, _: AbortSignal) -> None:
        if isinstance(event, AgentEnd):
            for wait in (agent.wait_idle, agent.shutdown):
                try:
                    await wait()
                except AgentBusyError as error:
                    errors.append(error)

    agent = Agent(Model())
    agent.subscribe(listen)

    await agent.prompt("u")
    await agent.wait_idle()

    assert [str(error)[:40] for error in errors] == ["wait_idle was awaited inside a listener,"] * 2


async def test_stream_yields_the_events_of_the_run_in_order() -> None:
    agent = Agent(Model(["Hel", "lo", call("a")], "done"), tools=[tool(ok, name="a")])
    recorder = Recorder()

    async for event in agent.stream("u"):
        recorder(event)

    recorder.check()
    assert recorder.order.startswith("AS TS MS(u)")
    assert recorder.order.endswith("TE AE")
    assert not agent.is_running


async def test_leaving_a_stream_early_aborts_the_run() -> None:
    agent = Agent(Model(["Hel", forever]))
    recorder = Recorder(agent)

    async with contextlib.aclosing(agent.stream("u")) as events:
        async for event in events:
            if event.type == "message_update":
                break

    assert not agent.is_running
    assert history_of(agent) == "u a,aborted"
    await check_agent(agent, recorder)


async def test_an_error_of_the_prompt_comes_out_of_its_stream() -> None:
    agent = Agent(Model())

    with pytest.raises(InvalidParametersError):
        async for _ in agent.stream(" "):
            pass
    await check_agent(agent)


async def test_the_sink_sees_each_step_and_listeners_do_not() -> None:
    steps: list[str] = []
    heard: list[Event] = []

    def sink(event: Event) -> None:
        if isinstance(event, Trace):
            steps.append(event.step)

    agent = Agent(Model([call("a")], "done"), tools=[tool(ok, name="a")], event_sink=sink)
    agent.subscribe(lambda event, _: heard.append(event))

    await agent.prompt("u")
    agent.set_event_sink(None)
    await agent.prompt("v")

    assert steps == [
        "turn.start",
        "messages.formatted",
        "llm.called",
        "llm.answered",
        "calls.run",
        "call.lookup",
        "call.validated",
        "call.executing",
        "call.executed",
        "steering.taken",
        "turn.start",
        "messages.formatted",
        "llm.called",
        "llm.answered",
        "queues.taken",
        "run.end",
    ]
    assert not any(isinstance(event, Trace) for event in heard)
