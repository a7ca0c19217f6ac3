"""The loop without an agent: functions over a context and a configuration."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from agent.grammar import check_history
from agent.script import Model, Recorder, call, eventually, forever, labels, words_of

from yiemagent_nb.core.config import LoopConfig
from yiemagent_nb.core.errors import InvalidMessageRoleError, ServerError
from yiemagent_nb.core.events import AgentEnd, Event
from yiemagent_nb.core.hooks import AgentContext
from yiemagent_nb.core.limits import Limits
from yiemagent_nb.core.loop import EventStream, agent_loop, agent_loop_continue, stream_assistant_response
from yiemagent_nb.core.messages import AssistantMessage, CustomMessage, Message, ToolResultMessage, UserMessage
from yiemagent_nb.core.signal import AbortSignal
from yiemagent_nb.core.tools import as_tools

pytestmark = pytest.mark.requirement("A SPEC-6.2", "A SD-001")


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def collect(stream: EventStream) -> Recorder:
    """All events of a stream, in an order that the grammar allows."""
    recorder = Recorder()
    async for event in stream:
        recorder(event)
    recorder.check()
    return recorder


async def test_agent_loop_yields_the_events_of_a_run_with_tools() -> None:
    model = Model([call("add", {"a": 1, "b": 2})], "three")
    context = AgentContext("Be brief.", [], as_tools([add]))

    stream = agent_loop([UserMessage("u")], context, LoopConfig(llm_call=model))
    recorder = await collect(stream)
    added = await stream.result()

    assert recorder.order == (
        "AS TS MS(u) ME(u) MS(a) MU ME(a) XS(ADD) XE(ADD) MS(tADD) ME(tADD) TE TS MS(a) MU ME(a) TE AE"
    )
    assert words_of(added) == "u a tADD a"
    assert recorder.of_type(AgentEnd)[0].messages == added
    assert model.requests[0].texts[0] == "Be brief."
    assert model.requests[1].texts[-1] == "3"


async def test_the_context_that_was_given_is_not_changed() -> None:
    before: list[Message] = [UserMessage("old"), AssistantMessage("answer")]
    context = AgentContext("", before)

    added = await agent_loop([UserMessage("u")], context, LoopConfig(llm_call=Model())).result()

    assert words_of(before) == "old a"
    assert context.messages is before
    assert words_of(added) == "u a"


async def test_result_runs_a_loop_that_nobody_iterates_over() -> None:
    added = await agent_loop([UserMessage("u")], AgentContext(), LoopConfig(llm_call=Model("hello"))).result()
    assert words_of(added) == "u a"


async def test_a_stream_that_ended_stays_at_its_end() -> None:
    stream = agent_loop([UserMessage("u")], AgentContext(), LoopConfig(llm_call=Model()))
    await collect(stream)
    with pytest.raises(StopAsyncIteration):
        await anext(stream)
    await stream.aclose()


async def test_agent_loop_continue_goes_on_from_a_users_or_a_tools_message() -> None:
    model = Model("hello")
    context = AgentContext("", [UserMessage("u"), CustomMessage(kind="note")])

    stream = agent_loop_continue(context, LoopConfig(llm_call=model))
    recorder = await collect(stream)

    assert recorder.order == "AS TS MS(a) MU ME(a) TE AE"
    assert words_of(await stream.result()) == "a"


@pytest.mark.parametrize("messages", [[], [UserMessage("u"), AssistantMessage("a")], [CustomMessage(kind="note")]])
async def test_agent_loop_continue_refuses_a_history_that_waits_for_no_answer(messages: list[Message]) -> None:
    with pytest.raises(InvalidMessageRoleError, match="to continue"):
        agent_loop_continue(AgentContext("", messages), LoopConfig(llm_call=Model()))


@pytest.mark.parametrize("messages", [[], [AssistantMessage("a")], [CustomMessage(kind="note")]])
async def test_agent_loop_refuses_prompts_that_ask_for_no_answer(messages: list[Message]) -> None:
    with pytest.raises(InvalidMessageRoleError, match="at least one"):
        agent_loop(messages, AgentContext(), LoopConfig(llm_call=Model()))


async def test_leaving_a_stream_early_aborts_its_run() -> None:
    stream = agent_loop([UserMessage("u")], AgentContext(), LoopConfig(llm_call=Model(["Hel", forever])))
    seen: list[Event] = []

    async with contextlib.aclosing(stream):
        async for event in stream:
            seen.append(event)
            if event.type == "message_update":
                break

    added = await stream.result()
    assert words_of(added) == "u a,aborted"
    assert labels(seen)[-1] == "MU"


async def test_closing_a_stream_that_never_began_runs_nothing() -> None:
    model = Model()
    stream = agent_loop([UserMessage("u")], AgentContext(), LoopConfig(llm_call=model))
    await stream.aclose()
    assert [event async for event in stream] == []
    assert model.requests == []


async def test_a_signal_of_the_caller_ends_the_run() -> None:
    signal = AbortSignal()
    model = Model(["Hel", lambda: signal.abort("enough"), forever])

    stream = agent_loop([UserMessage("u")], AgentContext(), LoopConfig(llm_call=model), signal)
    recorder = await collect(stream)

    assert recorder.order == "AS TS MS(u) ME(u) MS(a) MU ME(a,aborted) TE AE"
    last = (await stream.result())[-1]
    assert isinstance(last, AssistantMessage)
    assert last.error_message == "enough"


async def test_an_error_of_the_model_is_an_event_and_a_message_and_raises_nothing() -> None:
    model = Model([ServerError("gone")])
    recorder = await collect(agent_loop([UserMessage("u")], AgentContext(), LoopConfig(llm_call=model)))
    assert recorder.order_with_errors == "AS TS MS(u) ME(u) MS(a) ME(a,error) error TE AE"


async def test_cancelling_the_task_of_a_run_leaves_its_history_valid() -> None:
    async def a() -> None:
        """Never end."""
        started.set()
        await forever()

    started = asyncio.Event()
    stream = agent_loop(
        [UserMessage("u")],
        AgentContext("", [], as_tools([a, add])),
        LoopConfig(llm_call=Model([call("add", {"a": 1, "b": 2}), call("a")])),
    )
    recorder = Recorder()
    result = asyncio.create_task(stream.result())
    await started.wait()
    await eventually(lambda: stream._run.pending_calls == {"A"})  # pyright: ignore[reportPrivateUsage] - to cancel in mid-batch
    result.cancel()
    with pytest.raises(asyncio.CancelledError):
        await result
    with contextlib.suppress(asyncio.CancelledError):
        async for event in stream:
            recorder(event)

    recorder.check()
    ended = recorder.of_type(AgentEnd)[0]
    assert words_of(ended.messages) == "u a tADD tA"
    check_history(ended.messages)
    real, stopped = (message for message in ended.messages if isinstance(message, ToolResultMessage))
    assert real.text == "3", "a result that was there is lost"
    assert stopped.is_error


async def test_queues_of_ones_own_steer_a_run() -> None:
    waiting: list[list[Message]] = [[UserMessage("s")], []]
    later: list[list[Message]] = [[UserMessage("f")], []]
    config = LoopConfig(
        llm_call=Model(),
        take_steering=lambda: waiting.pop(0) if waiting else [],
        take_follow_ups=lambda: later.pop(0) if later else [],
    )
    added = await agent_loop([UserMessage("u")], AgentContext(), config).result()
    assert words_of(added) == "u a s a f a"


async def test_the_limits_of_the_configuration_bind_the_run() -> None:
    model = Model(*([call("add", {"a": 1, "b": 2})] for _ in range(5)))
    config = LoopConfig(llm_call=model, limits=Limits(max_turns=2))
    stream = agent_loop([UserMessage("u")], AgentContext("", [], as_tools([add])), config)
    recorder = await collect(stream)
    assert len(model.requests) == 2
    assert recorder.of_type(AgentEnd)[0].reason == "max_turns"


async def test_stream_assistant_response_is_one_call_without_its_tools() -> None:
    events: list[Event] = []
    messages: list[Message] = [UserMessage("u")]
    model = Model(["Hel", "lo", call("add", {"a": 1, "b": 2})])

    answer = await stream_assistant_response(
        AgentContext("", messages, as_tools([add])), LoopConfig(llm_call=model), AbortSignal(), events.append
    )

    assert answer.text == "Hello"
    assert [call.name for call in answer.tool_calls] == ["add"]
    assert labels(events) == ["MS(a)", "MU", "MU", "MU", "ME(a)"]
    assert model.requests[0].tools == ("add",)
    assert messages == [UserMessage("u", timestamp=messages[0].timestamp)]


async def test_stream_assistant_response_never_raises() -> None:
    events: list[Event] = []
    aborted = AbortSignal()
    aborted.abort()

    failed = await stream_assistant_response(
        AgentContext("", [UserMessage("u")]),
        LoopConfig(llm_call=Model([ServerError("gone")])),
        AbortSignal(),
        events.append,
    )
    stopped = await stream_assistant_response(
        AgentContext("", [UserMessage("u")]), LoopConfig(llm_call=Model()), aborted, events.append
    )

    assert (failed.stop_reason, failed.error_message) == ("error", "gone [SERVER_ERROR]")
    assert stopped.stop_reason == "aborted"
    assert labels(events, errors=True) == ["MS(a)", "ME(a,error)", "error", "MS(a)", "ME(a,aborted)"]
