"""Saying something to an agent, and each error of it by a real cause."""

from __future__ import annotations

import asyncio
import contextlib
import threading

import pytest
from agent.script import Gate, Model, Recorder, call, check_agent, forever, history_of, stop

from yiemagent_nb.core.agent import Agent
from yiemagent_nb.core.errors import (
    AgentBusyError,
    ChannelFull,
    InvalidMessageRoleError,
    InvalidParametersError,
    ServerError,
)
from yiemagent_nb.core.hooks import BeforeToolCallContext
from yiemagent_nb.core.limits import Limits
from yiemagent_nb.core.messages import (
    AssistantMessage,
    CustomMessage,
    TextContent,
    ToolResultMessage,
    UserMessage,
    dump_message,
)
from yiemagent_nb.core.queues import PromptInput
from yiemagent_nb.core.signal import AbortSignal
from yiemagent_nb.core.tools import ToolContext, tool

pytestmark = pytest.mark.requirement("A FR-001", "A SPEC-6.1")


def ok() -> str:
    """Work well."""
    return "ok"


@pytest.mark.parametrize(
    ("given", "texts"),
    [
        ("hi", ["hi"]),
        (UserMessage("hi"), ["hi"]),
        ({"role": "user", "content": "hi"}, ["hi"]),
        (dump_message(UserMessage("hi")), ["hi"]),
        (["one", UserMessage("two")], ["one", "two"]),
        ([CustomMessage(kind="note", data=1), "hi"], ["note", "hi"]),
    ],
    ids=["a string", "a message", "OpenAI's form", "our JSON form", "several", "with a note"],
)
async def test_prompt_takes_a_string_a_message_or_several(given: PromptInput, texts: list[str]) -> None:
    model = Model("hello")
    agent = Agent(model)

    answer = await agent.prompt(given)

    assert answer.text == "hello"
    assert history_of(agent) == " ".join([*texts, "a"])
    assert [message["content"] for message in model.requests[0].messages] == [t for t in texts if t != "note"]


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ("", InvalidParametersError),
        ("  \n", InvalidParametersError),
        ([], InvalidMessageRoleError),
        (AssistantMessage("hi"), InvalidMessageRoleError),
        ({"role": "assistant", "content": "hi"}, InvalidMessageRoleError),
        (ToolResultMessage(tool_call_id="a", tool_name="a", content=(TextContent("x"),)), InvalidMessageRoleError),
        ({"role": "system", "content": "hi"}, InvalidMessageRoleError),
        (CustomMessage(kind="note"), InvalidMessageRoleError),
        (17, InvalidParametersError),
        (None, InvalidParametersError),
        (["hi", 17], InvalidParametersError),
    ],
    ids=lambda value: str(getattr(value, "role", repr(value))),
)
@pytest.mark.requirement("A SPEC-7.1")
async def test_prompt_refuses_what_people_do_not_say_and_sends_nothing(
    given: PromptInput, error: type[Exception]
) -> None:
    agent = Agent(Model())
    recorder = Recorder(agent)

    with pytest.raises(error):
        await agent.prompt(given)

    assert recorder.order == ""
    await check_agent(agent, recorder)


@pytest.mark.requirement("A SPEC-7.1", "A SPEC-7.2")
async def test_prompt_is_busy_from_its_first_instant() -> None:
    agent = Agent(Model("one"))

    first, second = await asyncio.gather(agent.prompt("u"), agent.prompt("v"), return_exceptions=True)

    assert isinstance(first, AssistantMessage)
    assert isinstance(second, AgentBusyError)
    assert second.code == "AGENT_BUSY"
    assert "steer" in second.hint
    assert history_of(agent) == "u a"


async def test_prompt_reset_and_continue_are_refused_while_a_run_is_active() -> None:
    gate = Gate()
    agent = Agent(Model([gate, "done"]))
    running = asyncio.create_task(agent.prompt("u"))
    await gate.started.wait()

    assert agent.is_running
    with pytest.raises(AgentBusyError):
        await agent.prompt("v")
    with pytest.raises(AgentBusyError):
        await agent.continue_()
    with pytest.raises(AgentBusyError):
        agent.reset()
    with pytest.raises(AgentBusyError):
        await anext(agent.stream("v"))

    gate.opened.set()
    await running
    assert history_of(agent) == "u a"


async def test_a_tool_that_prompts_its_own_agent_gets_an_error_result() -> None:
    async def a(context: ToolContext) -> str:
        """Ask the agent itself."""
        assert context.agent is agent
        return (await agent.prompt("v")).text

    agent = Agent(Model([call("a")]), tools=[a])

    await agent.prompt("u")

    result = agent.messages[2]
    assert isinstance(result, ToolResultMessage)
    assert result.details["code"] == "AGENT_BUSY"
    await check_agent(agent)


async def test_cancelling_the_caller_of_prompt_aborts_the_run() -> None:
    agent = Agent(Model(["Hel", forever]))
    recorder = Recorder(agent)

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(agent.prompt("u"), 0.05)

    assert not agent.is_running
    assert history_of(agent) == "u a,aborted"
    await check_agent(agent, recorder)


async def test_cancelling_the_caller_of_prompt_in_the_instant_of_its_start_aborts_the_run() -> None:
    agent = Agent(Model(["Hel", forever]))
    task = asyncio.create_task(agent.prompt("u"))
    await asyncio.sleep(0)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task

    await check_agent(agent)


async def test_cancelling_every_task_of_the_loop_leaves_the_agent_usable() -> None:
    for turns in range(12):
        agent = Agent(
            Model(["Hel", call("a"), call("b")], "more"), tools=[tool(ok, name="a"), tool(forever_tool, name="b")]
        )
        recorder = Recorder(agent)
        agent.steer("u")
        waiting = asyncio.create_task(agent.wait_idle())
        for _ in range(turns):
            await asyncio.sleep(0)
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await waiting
        agent.abort()  # where nothing had begun yet
        await agent.wait_idle()
        said = [*agent.messages, *agent.input_channel.items()]
        assert [each.text for each in said if isinstance(each, UserMessage)] == ["u"], "what was said is lost"
        await check_agent(agent, recorder)


async def forever_tool() -> None:
    """Never end."""
    await forever()


# continuing


async def test_continue_goes_on_from_a_users_message() -> None:
    agent = Agent(Model("hello"), messages=["hi"])
    recorder = Recorder(agent)

    answer = await agent.continue_()

    assert answer.text == "hello"
    assert recorder.order == "AS TS MS(a) MU ME(a) TE AE"


async def test_continue_goes_on_from_a_tools_result_and_from_a_note_behind_it() -> None:
    calls = {"role": "assistant", "tool_calls": [{"id": "A", "function": {"name": "a", "arguments": "{}"}}]}
    result = {"role": "tool", "tool_call_id": "A", "content": "ok"}
    agent = Agent(Model("hello"), messages=["hi", calls, result, CustomMessage(kind="note")])

    answer = await agent.continue_()

    assert answer.text == "hello"


async def test_continue_after_an_error_asks_again() -> None:
    agent = Agent(Model([ServerError("gone")], "hello"))
    await agent.prompt("hi")
    agent.steer("more")
    await agent.wait_idle()

    assert history_of(agent) == "hi a,error more a"
    assert agent.state.error_message is None


@pytest.mark.parametrize("messages", [[], ["hi", AssistantMessage("hello")], [CustomMessage(kind="note")]])
@pytest.mark.requirement("A SPEC-7.1", "A SPEC-7.2")
async def test_continue_is_refused_where_the_history_waits_for_no_answer(messages: list[UserMessage]) -> None:
    agent = Agent(Model(), messages=messages)

    with pytest.raises(InvalidMessageRoleError) as caught:
        await agent.continue_()

    assert caught.value.code == "INVALID_MESSAGE_ROLE"
    assert "prompt" in caught.value.hint
    await check_agent(agent)


@pytest.mark.parametrize("note", [[], [CustomMessage(kind="note")]], ids=["", "behind a note"])
async def test_continue_after_an_answer_takes_waiting_steering_then_follow_ups(note: list[CustomMessage]) -> None:
    agent = Agent(Model(), messages=["hi", AssistantMessage("hello"), *note])
    agent.follow_up("f")
    agent.steer("s")
    agent.abort()  # keeps both where they are

    await agent.continue_()
    await agent.wait_idle()

    assert history_of(agent).endswith("s a f a")


# steer, follow_up, abort, reset


async def test_steering_and_follow_ups_start_a_run_of_an_idle_agent() -> None:
    agent = Agent(Model())
    agent.steer("s")
    await agent.wait_idle()
    agent.follow_up("f")
    await agent.wait_idle()

    assert history_of(agent) == "s a f a"


async def test_steering_goes_before_follow_ups_that_came_first() -> None:
    agent = Agent(Model([lambda: agent.follow_up("f"), lambda: agent.steer("s"), "one"]))

    await agent.prompt("u")
    await agent.wait_idle()

    assert history_of(agent) == "u a s a f a"


@pytest.mark.parametrize("message", ["", AssistantMessage("hi"), 17])
async def test_steer_and_follow_up_refuse_what_people_do_not_say(message: str) -> None:
    agent = Agent(Model())

    with pytest.raises((InvalidParametersError, InvalidMessageRoleError)):
        agent.steer(message)
    with pytest.raises((InvalidParametersError, InvalidMessageRoleError)):
        agent.follow_up(message)
    assert not agent.input_channel.items()
    assert not agent.follow_up_channel.items()


async def test_abort_then_steer_goes_on_with_what_was_said() -> None:
    gate = Gate()
    agent = Agent(Model(["Hel", gate, "lo"], "as you say"))
    recorder = Recorder(agent)
    running = asyncio.create_task(agent.prompt("u"))
    await gate.started.wait()

    agent.abort()
    agent.steer("x")
    answer = await running
    await agent.wait_idle()

    assert answer.stop_reason == "aborted"
    assert history_of(agent) == "u a,aborted x a"
    await check_agent(agent, recorder)


async def test_queues_survive_an_abort_and_an_error_and_go_on_with_the_next_word() -> None:
    agent = Agent(
        Model(
            [lambda: agent.steer("s"), lambda: agent.follow_up("f"), lambda: stop(agent), forever],
            [ServerError("gone")],
        )
    )

    await agent.prompt("u")
    await agent.wait_idle()
    assert (len(agent.input_channel), len(agent.follow_up_channel)) == (1, 1)

    await agent.prompt("v")
    await agent.wait_idle()
    assert (len(agent.input_channel), len(agent.follow_up_channel)) == (1, 1)

    await agent.prompt("w")
    await agent.wait_idle()
    assert history_of(agent) == "u a,aborted v a,error w a s a f a"


async def test_reset_forgets_the_conversation_what_waits_and_the_error() -> None:
    agent = Agent(Model([lambda: agent.steer("s"), lambda: agent.follow_up("f"), ServerError("gone")]))
    await agent.prompt("u")

    agent.reset()

    assert agent.messages == ()
    assert not agent.input_channel.items()
    assert not agent.follow_up_channel.items()
    assert agent.state.error_message is None
    await agent.wait_idle()
    assert agent.messages == ()
    await check_agent(agent)


async def test_abort_of_an_idle_agent_does_nothing_but_keep_what_waits() -> None:
    agent = Agent(Model())
    agent.abort()
    agent.abort()
    await check_agent(agent)


async def test_abort_from_another_thread_ends_the_run() -> None:
    agent = Agent(Model(["Hel", lambda: threading.Thread(target=agent.abort).start(), forever]))
    recorder = Recorder(agent)

    answer = await agent.prompt("u")

    assert answer.stop_reason == "aborted"
    await check_agent(agent, recorder)


async def test_the_signal_of_a_run_tells_its_tools_hooks_and_listeners_of_the_abort() -> None:
    signals: list[AbortSignal] = []

    def before(_: BeforeToolCallContext, signal: AbortSignal) -> None:
        signals.append(signal)

    async def a(context: ToolContext) -> str:
        """Abort, and wait for the signal."""
        signals.append(context.signal)
        agent.abort()
        await context.signal.wait()
        return "stopped"

    agent = Agent(Model([call("a")]), tools=[a], before_tool_call=before)
    agent.subscribe(lambda _, signal: signals.append(signal))

    await agent.prompt("u")

    assert signals
    assert all(signal.aborted for signal in signals)
    await agent.prompt("v")
    assert not signals[-1].aborted


async def test_steering_a_full_channel_is_refused_and_loses_nothing() -> None:
    gate = Gate()
    agent = Agent(Model([gate, "one"]), limits=Limits(max_turns=None))
    running = asyncio.create_task(agent.prompt("u"))
    await gate.started.wait()
    for number in range(16):
        agent.steer(f"s{number}")
    for number in range(32):
        agent.follow_up(f"f{number}")

    with pytest.raises(ChannelFull) as caught:
        agent.steer("one too many")
    assert caught.value.code == "CHANNEL_FULL"
    with pytest.raises(ChannelFull, match="32"):
        agent.follow_up("one too many")

    gate.opened.set()
    await running
    await agent.wait_idle()
    said = [message.text for message in agent.messages if isinstance(message, UserMessage)]
    assert said == ["u", *(f"s{n}" for n in range(16)), *(f"f{n}" for n in range(32))]
