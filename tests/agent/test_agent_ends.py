"""How an agent is shut down, and where its limits stop it."""

from __future__ import annotations

import asyncio
import time

import pytest
from agent.script import Gate, Model, Recorder, call, check_agent, forever, history_of, stop

from yiemagent_nb.core.agent import Agent
from yiemagent_nb.core.channels import SHUTDOWN
from yiemagent_nb.core.errors import (
    AgentClosedError,
    ChannelClosed,
    RateLimitedError,
)
from yiemagent_nb.core.limits import Limits
from yiemagent_nb.core.messages import (
    AssistantMessage,
    ToolResultMessage,
)

pytestmark = pytest.mark.requirement("A FR-001", "A SPEC-6.1")


def ok() -> str:
    """Work well."""
    return "ok"


# shutdown


@pytest.mark.requirement("Y FR-001", "Y US-001")
async def test_the_shutdown_marker_ends_the_agent_after_the_work_in_hand() -> None:
    gate = Gate()
    agent = Agent(Model([gate, "one"]))
    running = asyncio.create_task(agent.prompt("u"))
    await gate.started.wait()
    agent.steer("before")
    agent.input_channel.put_nowait(SHUTDOWN)
    gate.opened.set()
    await running
    await agent.wait_idle()

    assert agent.closed
    assert history_of(agent) == "u a before a"
    with pytest.raises(AgentClosedError, match="was shut down") as caught:
        await agent.prompt("v")
    assert caught.value.code == "AGENT_CLOSED"
    with pytest.raises(ChannelClosed):
        agent.steer("late")
    with pytest.raises(ChannelClosed):
        agent.follow_up("late")


@pytest.mark.requirement("Y FR-001", "Y US-001")
async def test_shutdown_waits_for_the_work_in_hand_and_may_be_called_twice() -> None:
    agent = Agent(Model())
    agent.steer("u")

    await asyncio.gather(agent.shutdown(), agent.shutdown())
    await agent.shutdown()

    assert agent.closed
    assert history_of(agent) == "u a"


async def test_readers_of_the_output_end_when_the_agent_is_shut_down() -> None:
    agent = Agent(Model("hello"))

    async def read() -> list[object]:
        return [answer["content"] async for answer in agent.output_channel]

    reading = asyncio.create_task(read())
    await agent.prompt("u")
    await agent.shutdown()

    assert await reading == [[{"type": "text", "text": "hello"}]]


async def test_shutdown_ends_although_an_aborted_agents_full_channel_takes_nothing_more() -> None:
    agent = Agent(Model([lambda: [agent.steer(f"s{n}") for n in range(16)], lambda: stop(agent), forever]))
    await agent.prompt("u")
    assert len(agent.input_channel) == 16

    await asyncio.wait_for(agent.shutdown(), 5)

    assert agent.closed
    assert history_of(agent) == "u a,aborted"


async def test_shutdown_of_an_agent_with_a_full_channel_does_the_work_in_hand_first() -> None:
    gate = Gate()
    agent = Agent(Model([gate, "one"]), limits=Limits(max_turns=None))
    running = asyncio.create_task(agent.prompt("u"))
    await gate.started.wait()
    for number in range(16):
        agent.steer(f"s{number}")
    closing = asyncio.create_task(agent.shutdown())
    await asyncio.sleep(0)
    gate.opened.set()
    await running
    await closing

    assert agent.closed
    assert len(agent.messages) == 2 * 17


@pytest.mark.requirement("A SPEC-6.1")
async def test_the_context_manager_shuts_down_and_aborts_first_after_an_error() -> None:
    async with Agent(Model()) as agent:
        await agent.prompt("u")
    assert agent.closed

    gate = Gate()
    agent = Agent(Model([gate]))

    async def fail_within() -> None:
        async with agent:
            agent.steer("u")
            await gate.started.wait()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail_within()
    assert agent.closed
    assert gate.cancelled
    assert history_of(agent) == "u a,aborted"


# limits


@pytest.mark.requirement("A SPEC-9.1", "A SPEC-7.1")
async def test_messages_a_minute_are_limited_until_the_minute_is_over_before_anything_is_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = Model()
    agent = Agent(model, limits=Limits(messages_per_minute=2))
    await agent.prompt("u")
    agent.steer("s")
    await agent.wait_idle()

    for send in (agent.steer, agent.follow_up):
        with pytest.raises(RateLimitedError, match="within a minute") as caught:
            send("more")
        assert caught.value.retry_after is not None
        assert 0 < caught.value.retry_after <= 60
    with pytest.raises(RateLimitedError):
        await agent.prompt("more")

    assert len(model.requests) == 2
    assert history_of(agent) == "u a s a"
    moment = time.monotonic() + 61
    monkeypatch.setattr(agent._runner.meter, "_clock", lambda: moment)  # pyright: ignore[reportPrivateUsage] - a minute later
    await agent.prompt("v")
    assert history_of(agent) == "u a s a v a"
    agent.set_limits(Limits())
    await check_agent(agent)


@pytest.mark.requirement("A SPEC-9.1", "A SPEC-7.1")
async def test_messages_of_a_session_are_limited_until_it_is_reset() -> None:
    agent = Agent(Model(), limits=Limits(messages_per_session=2), messages=["old", AssistantMessage("answer")])
    await agent.prompt("u")

    with pytest.raises(RateLimitedError, match="2 messages"):
        await agent.prompt("v")
    assert history_of(agent) == "old a u a"

    agent.reset()
    await agent.prompt("v")
    assert history_of(agent) == "v a"


@pytest.mark.requirement("A SPEC-9.1")
async def test_calls_run_at_most_so_many_at_a_time() -> None:
    running, most = 0, 0
    gate = asyncio.Event()

    async def a() -> str:
        """Count how many run."""
        nonlocal running, most
        running += 1
        most = max(most, running)
        if running == 3:
            gate.set()
        await gate.wait()
        await asyncio.sleep(0)
        running -= 1
        return "ok"

    agent = Agent(
        Model([call("a", call_id=f"A{n}") for n in range(9)]), tools=[a], limits=Limits(concurrent_tool_calls=3)
    )
    recorder = Recorder(agent)

    await agent.prompt("u")

    assert most == 3
    recorder.check()
    assert len([message for message in agent.messages if isinstance(message, ToolResultMessage)]) == 9
