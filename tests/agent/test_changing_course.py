"""Going back in a conversation, and taking back what waits."""

from __future__ import annotations

import asyncio
import threading

import pytest
from agent.script import Model, Recorder, call, eventually, history_of

from yiemagent_nb.core.agent import Agent
from yiemagent_nb.core.branches import Branch
from yiemagent_nb.core.errors import AgentBusyError, ChannelFull, InvalidParametersError, RateLimitedError
from yiemagent_nb.core.events import AgentError, HistoryChanged
from yiemagent_nb.core.limits import Limits
from yiemagent_nb.core.messages import UserMessage
from yiemagent_nb.core.queues import Queues
from yiemagent_nb.core.tools import tool

pytestmark = pytest.mark.requirement("A FR-001", "A SPEC-6.1")


def texts(agent: Agent) -> list[str]:
    return [getattr(message, "text", "") for message in agent.messages]


async def test_an_edit_begins_a_branch_and_the_old_one_can_be_shown_again() -> None:
    model = Model("first", "second", "third")
    agent = Agent(model)
    recorder = Recorder(agent)
    await agent.prompt("u1")
    await agent.prompt("u2")

    answer = await agent.edit(0, "other")

    assert answer.text == "third"
    assert texts(agent) == ["other", "third"]
    assert model.requests[-1].texts == ["other"]
    assert agent.branches.at(0) == Branch(1, 2)
    agent.switch_branch(0, 0)
    assert texts(agent) == ["u1", "first", "u2", "second"]
    assert agent.branches.at(0) == Branch(0, 2)
    assert agent.branches.at(1) == Branch(0, 1)
    assert [event.length for event in recorder.of_type(HistoryChanged)] == [0, 4]
    recorder.check()


async def test_another_answer_goes_on_from_what_stands_before_it() -> None:
    ran: list[str] = []

    @tool
    def look() -> str:
        """Look."""
        ran.append("look")
        return "seen"

    model = Model(call("look"), RuntimeError("the server fell over"), "at last")
    agent = Agent(model, tools=[look])
    failed = await agent.prompt("u")
    assert failed.stop_reason == "error"

    answer = await agent.regenerate(3)

    assert answer.text == "at last"
    assert history_of(agent) == "u a tLOOK a"
    assert ran == ["look"]
    assert agent.branches.at(3) == Branch(1, 2)
    assert agent.state.error_message is None


async def test_without_a_place_the_whole_turn_is_answered_anew() -> None:
    @tool
    def look() -> str:
        """Look."""
        return "seen"

    agent = Agent(Model(call("look"), "one", "two"), tools=[look])
    await agent.prompt("u")
    await agent.regenerate()
    assert texts(agent) == ["u", "two"]
    agent.switch_branch(1, 0)
    assert history_of(agent) == "u a tLOOK a"


async def test_the_course_is_not_changed_in_mid_run() -> None:
    model = Model("one", [lambda: agent.switch_branch(0, 0)])
    agent = Agent(model)
    await agent.prompt("u")
    going = asyncio.ensure_future(agent.prompt("v"))
    await eventually(lambda: agent.is_running)
    with pytest.raises(AgentBusyError):
        await agent.edit(0, "x")
    with pytest.raises(AgentBusyError):
        await agent.regenerate()
    answer = await going
    assert answer.stop_reason == "error"
    assert "AGENT_BUSY" in (answer.error_message or "")


async def test_what_cannot_be_edited_is_refused_and_nothing_is_lost() -> None:
    agent = Agent(Model("one"))
    await agent.prompt("u")
    with pytest.raises(InvalidParametersError, match="only what a person said can be edited"):
        await agent.edit(1, "x")
    with pytest.raises(InvalidParametersError, match="There is no message 7"):
        await agent.edit(7, "x")
    agent.set_limits(Limits(messages_per_session=1))
    with pytest.raises(RateLimitedError):
        await agent.edit(0, "x")
    assert texts(agent) == ["u", "one"]


async def test_what_is_started_without_waiting_tells_its_failure() -> None:
    agent = Agent(Model("one"))
    recorder = Recorder(agent)
    agent.start(agent.regenerate)
    await eventually(lambda: bool(recorder.of_type(AgentError)))
    assert recorder.of_type(AgentError)[0].code == "INVALID_PARAMETERS"


async def test_a_message_that_waits_is_taken_back_and_does_not_count() -> None:
    gate = asyncio.Event()
    agent = Agent(Model([gate.wait, "one"]), limits=Limits(messages_per_session=2))
    going = asyncio.ensure_future(agent.prompt("u"))
    await eventually(lambda: agent.is_running)
    agent.follow_up("later")
    waiting = agent.follow_up_channel.items()[0]

    assert agent.take_back(waiting)

    assert not agent.take_back(waiting)
    agent.follow_up("instead")
    gate.set()
    await going
    await agent.wait_idle()
    assert [text for text in texts(agent) if text in ("later", "instead")] == ["instead"]


async def test_a_follow_up_is_let_join_the_run() -> None:
    gate = asyncio.Event()

    @tool
    async def wait() -> str:
        """Wait."""
        await gate.wait()
        return "waited"

    agent = Agent(Model(call("wait"), "after", "last"), tools=[wait], limits=Limits(messages_per_session=3))
    going = asyncio.ensure_future(agent.prompt("u"))
    await eventually(lambda: bool(agent.state.pending_tool_calls))
    agent.follow_up("f1")
    agent.follow_up("f2")

    agent.steer_now(agent.waiting[1][1])

    assert [[getattr(item, "text", "") for item in items] for items in agent.waiting] == [["f2"], ["f1"]]
    gate.set()
    await going
    await agent.wait_idle()
    assert history_of(agent) == "u a tWAIT f2 a f1 a"


def test_a_follow_up_that_joins_the_run_waits_all_the_time() -> None:
    seen: list[int] = []
    lookers: list[threading.Thread] = []

    def look() -> None:
        seen.append(sum(map(len, queues.waiting())))

    def look_in_another_thread() -> None:
        lookers.append(threading.Thread(target=look))
        lookers[-1].start()
        lookers[-1].join(0.1)

    queues = Queues(lambda _: None, look_in_another_thread)
    queues.follow_up.put_nowait("f")
    queues.steer_now(queues.follow_up.items()[0])
    for looker in lookers:
        looker.join()
    assert seen == [1, 1, 1]


async def test_where_the_input_is_full_a_follow_up_goes_on_waiting() -> None:
    gate = asyncio.Event()
    agent = Agent(Model([gate.wait, "one"]), steering_mode="all")
    going = asyncio.ensure_future(agent.prompt("u"))
    await eventually(lambda: agent.is_running)
    agent.follow_up("f")
    while len(agent.input_channel) < agent.input_channel.capacity:
        agent.steer("s")
    with pytest.raises(ChannelFull):
        agent.steer_now(agent.follow_up_channel.items()[0])
    assert [item.text for item in agent.follow_up_channel.items() if isinstance(item, UserMessage)] == ["f"]
    with pytest.raises(InvalidParametersError, match="does not wait any more"):
        agent.steer_now(UserMessage("f"))
    gate.set()
    await going
    await agent.wait_idle()


async def test_to_go_back_to_the_beginning_begins_a_new_conversation_and_keeps_the_old_one() -> None:
    model = Model("first", "second")
    agent = Agent(model)
    await agent.prompt("u")
    agent.go_back(0)
    await agent.prompt("v")
    assert model.requests[-1].texts == ["v"]
    assert agent.branches.at(0) == Branch(1, 2)
    with pytest.raises(InvalidParametersError, match="There is no message 2"):
        agent.go_back(2)
