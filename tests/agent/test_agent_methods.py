"""Every method of an agent, and each of its errors by a real cause."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable

import pytest
from agent.script import Gate, Model, Recorder, call, check_agent, eventually, forever, history_of, stop

from yiemagent_nb.core.agent import Agent
from yiemagent_nb.core.channels import SHUTDOWN
from yiemagent_nb.core.errors import (
    AgentBusyError,
    AgentClosedError,
    ChannelClosed,
    ChannelFull,
    InvalidMessageRoleError,
    InvalidParametersError,
    RateLimitedError,
    ServerError,
)
from yiemagent_nb.core.events import AgentEnd, AgentError, BackendChanged, Event, MessageEnd, ToolsChanged, Trace
from yiemagent_nb.core.hooks import AgentContext, BeforeToolCallContext, BeforeToolCallResult
from yiemagent_nb.core.limits import Limits
from yiemagent_nb.core.messages import (
    AssistantMessage,
    CustomMessage,
    TextContent,
    ToolResultMessage,
    UserMessage,
    dump_message,
)
from yiemagent_nb.core.models import LlmModel, ModelCost
from yiemagent_nb.core.queues import PromptInput
from yiemagent_nb.core.results import ToolResult
from yiemagent_nb.core.signal import AbortSignal
from yiemagent_nb.core.state import AgentState
from yiemagent_nb.core.tools import ToolContext, tool

pytestmark = pytest.mark.requirement("A FR-001", "A SPEC-6.1")


def ok() -> str:
    """Work well."""
    return "ok"


# prompt


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
    ids=repr,
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


# set_…


@pytest.mark.requirement("Y US-005")
async def test_another_backend_answers_from_the_next_turn_on() -> None:
    second = Model("from the second")
    agent = Agent(Model([lambda: agent.set_llm_call(second), "still the first", call("a")]), tools=[tool(ok, name="a")])
    recorder = Recorder(agent)

    answer = await agent.prompt("u")

    assert answer.text == "from the second"
    assert len(second.requests) == 1
    assert len(recorder.of_type(BackendChanged)) == 1
    assert agent.llm_call is second
    recorder.check()


async def test_an_answer_keeps_who_gave_it_and_its_price_although_the_backend_is_replaced_meanwhile() -> None:
    class Server:
        """A backend that says what it is, and is replaced while it answers."""

        def __init__(self, provider: str, price: float) -> None:
            self.provider = provider
            self.model = LlmModel(id=f"model of {provider}", cost=ModelCost(input=price, output=0))

        async def __call__(self, _: object) -> AsyncIterator[object]:
            """Answer."""
            yield "Hel"
            agent.set_llm_call(second)
            yield {"content": "lo", "usage": {"prompt_tokens": 1_000_000, "completion_tokens": 0}}

    first, second = Server("first", 1.0), Server("second", 100.0)
    agent = Agent(first)

    one = await agent.prompt("u")
    two = await agent.prompt("v")

    assert [(each.provider, each.model) for each in (one, two)] == [
        ("first", "model of first"),
        ("second", "model of second"),
    ]
    costs = [each.usage.cost.total for each in (one, two) if each.usage is not None and each.usage.cost is not None]
    assert costs == [1.0, 100.0]


async def test_replaced_tools_and_hooks_count_from_the_next_turn_on() -> None:
    def block(_: BeforeToolCallContext, __: AbortSignal) -> BeforeToolCallResult:
        return BeforeToolCallResult(block=True, reason="not today")

    def change() -> None:
        agent.set_tools([tool(ok, name="b")])
        agent.set_hooks(before_tool_call=block)

    model = Model([call("a", call_id="A")], [change, call("b", call_id="B")], [call("a", call_id="A2")])
    agent = Agent(model, tools=[tool(ok, name="a")])
    recorder = Recorder(agent)

    await agent.prompt("u")

    first, second, third = (message for message in agent.messages if isinstance(message, ToolResultMessage))
    assert first.text == "ok"
    assert second.text == "not today"
    assert third.details["code"] == "TOOL_NOT_FOUND"
    assert [request.tools for request in model.requests] == [("a",), ("a",), ("b",), ("b",)]
    assert [event.names for event in recorder.of_type(ToolsChanged)] == [("b",)]


@pytest.mark.parametrize("in_a_thread", [False, True])
async def test_a_tool_that_adds_a_tool_makes_it_callable_in_the_same_run(in_a_thread: bool) -> None:
    def discover(context: ToolContext) -> ToolResult:
        """Find another tool."""
        assert context.agent is not None
        context.agent.add_tools(tool(ok, name="found"))
        return ToolResult("found it", added_tool_names=("found",))

    async def discover_async(context: ToolContext) -> ToolResult:
        """Find another tool."""
        return discover(context)

    first = tool(discover if in_a_thread else discover_async, name="discover")
    model = Model([call("discover")], [call("found")], "done")
    agent = Agent(model, tools=[first])
    recorder = Recorder(agent)

    answer = await agent.prompt("u")

    assert answer.text == "done"
    assert [request.tools for request in model.requests] == [
        ("discover",),
        ("discover", "found"),
        ("discover", "found"),
    ]
    assert agent.messages[4].text == "ok"  # pyright: ignore[reportAttributeAccessIssue,reportUnknownMemberType] - a result
    recorder.check()


async def test_the_system_prompt_and_the_thinking_level_can_change() -> None:
    model = Model()
    agent = Agent(model, "one")
    await agent.prompt("u")
    agent.set_system_prompt("two")
    agent.set_thinking_level("high")
    await agent.prompt("v")

    assert [request.texts[0] for request in model.requests] == ["one", "two"]
    assert [request.options["thinking_level"] for request in model.requests] == ["off", "high"]
    assert agent.state.thinking_level == "high"


async def test_options_reach_the_backend() -> None:
    model = Model()
    agent = Agent(model, options={"temperature": 0.5})
    await agent.prompt("u")
    assert model.requests[0].options["temperature"] == 0.5


async def test_prepare_context_and_format_messages_choose_what_is_sent() -> None:
    async def prepare(state: AgentState) -> AgentContext:
        return AgentContext("short", state.messages[-1:], state.tools)

    def format_messages(context: AgentContext) -> list[dict[str, object]]:
        return [
            {"role": "system", "content": context.system_prompt},
            *({"role": "user", "content": str(len(context.messages))} for _ in context.messages),
        ]

    model = Model()
    agent = Agent(
        model, messages=["a", AssistantMessage("b")], prepare_context=prepare, format_messages=format_messages
    )

    await agent.prompt("u")
    agent.set_hooks(prepare_context=None, format_messages=None)
    await agent.prompt("v")

    assert [message["content"] for message in model.requests[0].messages] == ["short", "1"]
    assert len(model.requests[1].messages) == 5


async def test_what_cannot_be_called_is_refused_and_changes_nothing() -> None:
    agent = Agent(Model(), tools=[ok])
    before = agent.llm_call

    with pytest.raises(InvalidParametersError, match="llm_call"):
        agent.set_llm_call(17)  # pyright: ignore[reportArgumentType] - the mistake
    with pytest.raises(InvalidParametersError, match="after_tool_call"):
        agent.set_hooks(before_tool_call=None, after_tool_call=17)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidParametersError, match="thinking_level"):
        agent.set_thinking_level("a lot")  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidParametersError, match="'ok'"):
        agent.add_tools(ok)
    with pytest.raises(InvalidParametersError, match="listener"):
        agent.subscribe(17)  # pyright: ignore[reportArgumentType]

    assert agent.llm_call is before
    assert list(agent.tools) == ["ok"]
    await check_agent(agent)


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
async def test_messages_a_minute_are_limited_before_anything_is_sent() -> None:
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


# answers as messages


async def test_a_backend_may_answer_with_a_message_of_its_own() -> None:
    async def backend(_: object) -> AssistantMessage:
        return AssistantMessage([TextContent("whole")], model="mine")

    agent = Agent(backend)
    recorder = Recorder(agent)

    answer = await agent.prompt("u")

    assert (answer.text, answer.model) == ("whole", "mine")
    assert recorder.order == "AS TS MS(u) ME(u) MS(a) ME(a) TE AE"


async def test_an_answer_without_content_says_so_and_leaves_no_empty_message_in_the_request() -> None:
    model = Model([{"content": ""}], "more")
    agent = Agent(model)
    recorder = Recorder(agent)

    answer = await agent.prompt("u")
    await agent.prompt("v")

    assert answer.error_message is not None
    assert "empty" in answer.error_message
    assert [message["role"] for message in model.requests[1].messages] == ["user", "user"]
    recorder.check()


async def test_ids_that_a_model_uses_again_in_a_later_answer_do_no_harm() -> None:
    cut = {"finish_reason": "length"}
    agent = Agent(
        Model([call("a", call_id="0")], [call("a", call_id="0"), cut], [call("a", call_id="0")]),
        tools=[tool(ok, name="a")],
    )
    recorder = Recorder(agent)

    await agent.prompt("u")

    assert history_of(agent) == "u a t0 a t0 a t0 a"
    await check_agent(agent, recorder)


async def test_a_second_agent_in_a_tool_works_beside_the_first() -> None:
    async def a() -> str:
        """Ask another agent."""
        return (await Agent(Model("from inside")).prompt("u")).text

    agent = Agent(Model([call("a")]), tools=[a])
    await agent.prompt("u")
    result = agent.messages[2]
    assert isinstance(result, ToolResultMessage)
    assert result.text == "from inside"


async def test_errors_are_told_once_to_listeners_and_name_the_backend() -> None:
    def broken(_: object) -> str:
        raise ZeroDivisionError("oh")

    agent = Agent(broken)
    recorder = Recorder(agent)
    await agent.prompt("u")
    errors = recorder.of_type(AgentError)
    assert [error.code for error in errors] == ["BACKEND_ERROR"]
    assert "broken raised ZeroDivisionError: oh" in errors[0].message
    assert len(recorder.of_type(MessageEnd)) == 2
    await eventually(lambda: not agent.is_running)


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
