"""The order of events on every path, as the specification's table has it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import NoReturn

import pytest
from agent.script import LENGTH, Gate, Model, Recorder, Step, call, check_agent, eventually, forever, history_of, stop

from yiemagent_nb.core.agent import Agent
from yiemagent_nb.core.concurrency import ABORT_GRACE
from yiemagent_nb.core.errors import RateLimitedError, ServerError
from yiemagent_nb.core.events import AgentEnd, AgentError, ToolExecutionEnd, TurnEnd
from yiemagent_nb.core.limits import Limits
from yiemagent_nb.core.messages import AssistantMessage, ToolResultMessage
from yiemagent_nb.core.models import LlmModel, ModelCost
from yiemagent_nb.core.results import ToolResult
from yiemagent_nb.core.tools import ExecutionMode, Tool, ToolContext, tool

pytestmark = pytest.mark.requirement("A FR-004", "A SPEC-5.1", "Y FR-003")

FIRST = "AS TS MS(u) ME(u) MS(a)"
TWO_CALLS = (call("a"), call("b"))
LAST_TURN = "TS MS(a) MU ME(a) TE AE"


def gates(mode_of_a: ExecutionMode | None = None) -> tuple[Gate, Gate, list[Tool]]:
    """Two tools ``a`` and ``b`` that wait until they are let through."""
    first, second = Gate("from a"), Gate("from b")

    async def a() -> object:
        """Wait at the first gate."""
        return await first()

    async def b() -> object:
        """Wait at the second gate."""
        return await second()

    return first, second, [tool(a, execution_mode=mode_of_a), tool(b)]


def ok() -> str:
    """Work well."""
    return "ok"


@pytest.mark.requirement("Y P-001", "A SPEC-1.3")
async def test_a_plain_reply_is_one_turn() -> None:
    agent = Agent(Model(["Hel", "lo"]))
    recorder = Recorder(agent)

    answer = await agent.prompt("u")

    assert recorder.order == f"{FIRST} MU ME(a) TE AE"
    assert history_of(agent) == "u a"
    assert answer.text == "Hello"
    await check_agent(agent, recorder)


@pytest.mark.requirement("A FR-002", "A SPEC-1.3", "A SD-002")
async def test_parallel_calls_end_as_they_finish_and_stand_in_the_order_of_the_calls() -> None:
    first, second, tools = gates()
    agent = Agent(Model([*TWO_CALLS], "done"), tools=tools)
    recorder = Recorder(agent)

    running = asyncio.create_task(agent.prompt("u"))
    await first.started.wait()
    await second.started.wait()
    second.opened.set()
    await eventually(lambda: bool(recorder.of_type(ToolExecutionEnd)))
    first.opened.set()
    await running

    assert recorder.order == f"{FIRST} MU ME(a) XS(A) XS(B) XE(B) XE(A) MS(tA) ME(tA) MS(tB) ME(tB) TE {LAST_TURN}"
    assert history_of(agent) == "u a tA tB a"
    await check_agent(agent, recorder)


@pytest.mark.parametrize("by", ["the agent", "one tool"])
@pytest.mark.requirement("A FR-002", "A SPEC-1.3", "A SD-002")
async def test_sequential_calls_end_one_before_the_next_begins(by: str) -> None:
    first, second, tools = gates("sequential" if by == "one tool" else None)
    agent = Agent(
        Model([*TWO_CALLS], "done"),
        tools=tools,
        tool_execution="sequential" if by == "the agent" else "parallel",
    )
    recorder = Recorder(agent)
    second.opened.set()

    running = asyncio.create_task(agent.prompt("u"))
    await first.started.wait()
    assert not second.started.is_set()
    first.opened.set()
    await running

    assert recorder.order == f"{FIRST} MU ME(a) XS(A) XE(A) MS(tA) ME(tA) XS(B) XE(B) MS(tB) ME(tB) TE {LAST_TURN}"
    assert history_of(agent) == "u a tA tB a"
    await check_agent(agent, recorder)


def queue_steering_and_follow_up(agent: Callable[[], Agent]) -> Callable[[], str]:
    """A tool that queues s1, s2 and f while it runs."""

    def a() -> str:
        """Queue three messages."""
        agent().steer("s1")
        agent().steer("s2")
        agent().follow_up("f")
        return "queued"

    return a


@pytest.mark.requirement("Y FR-001")
async def test_steering_and_follow_ups_join_one_a_turn_after_the_whole_batch() -> None:
    tools = [queue_steering_and_follow_up(lambda: agent), tool(ok, name="b")]
    agent = Agent(Model([*TWO_CALLS]), tools=tools)
    recorder = Recorder(agent)

    await agent.prompt("u")
    await agent.wait_idle()

    turns = " ".join(f"TS MS({said}) ME({said}) MS(a) MU ME(a) TE" for said in ("s1", "s2", "f"))
    _, _, after_the_batch = recorder.order.partition(" TE ")
    assert after_the_batch == f"{turns} AE"
    assert history_of(agent) == "u a tA tB s1 a s2 a f a"
    await check_agent(agent, recorder)


@pytest.mark.requirement("Y FR-001")
async def test_steering_joins_all_at_once_when_told_so() -> None:
    tools = [queue_steering_and_follow_up(lambda: agent), tool(ok, name="b")]
    agent = Agent(Model([*TWO_CALLS]), tools=tools, steering_mode="all")
    recorder = Recorder(agent)

    await agent.prompt("u")
    await agent.wait_idle()

    _, _, after_the_batch = recorder.order.partition(" TE ")
    assert after_the_batch == "TS MS(s1) ME(s1) MS(s2) ME(s2) MS(a) MU ME(a) TE TS MS(f) ME(f) MS(a) MU ME(a) TE AE"
    assert history_of(agent) == "u a tA tB s1 s2 a f a"
    await check_agent(agent, recorder)


@pytest.mark.requirement("Y FR-001")
async def test_follow_ups_join_all_at_once_when_told_so() -> None:
    model = Model([lambda: agent.follow_up("f1"), lambda: agent.follow_up("f2"), "one"])
    agent = Agent(model, follow_up_mode="all")

    await agent.prompt("u")
    await agent.wait_idle()

    assert history_of(agent) == "u a f1 f2 a"


@pytest.mark.requirement("Y SP-022", "Y SD-008", "Y P-005")
async def test_an_abort_during_a_stream_keeps_the_partial_text() -> None:
    model = Model(["Hel", lambda: stop(agent), forever])
    agent = Agent(model)
    recorder = Recorder(agent)

    answer = await agent.prompt("u")

    assert recorder.order == f"{FIRST} MU ME(a,aborted) TE AE"
    assert history_of(agent) == "u a,aborted"
    assert answer.text == "Hel"
    assert answer.stop_reason == "aborted"
    assert recorder.of_type(AgentEnd)[0].reason == "aborted"
    await check_agent(agent, recorder)


@pytest.mark.requirement("Y SP-022", "Y P-005")
async def test_an_abort_while_a_call_streams_in_gives_that_call_an_error_result() -> None:
    half: Step = {"tool_calls": [{"index": 0, "id": "A", "function": {"name": "a", "arguments": '{"x": '}}]}
    agent = Agent(Model([half, lambda: stop(agent), forever]), tools=[tool(ok, name="a")])
    recorder = Recorder(agent)

    answer = await agent.prompt("u")

    assert recorder.order == f"{FIRST} MU ME(a,aborted) XS(A) XE(A,error) MS(tA) ME(tA) TE AE"
    assert answer.tool_calls[0].raw_arguments == '{"x": '
    await check_agent(agent, recorder)


@pytest.mark.requirement("Y SP-022", "Y SD-008", "Y P-005", "A SPEC-7.1")
async def test_an_abort_during_parallel_tools_gives_each_call_a_result_and_asks_no_more() -> None:
    first, second, tools = gates()
    model = Model([*TWO_CALLS], "never asked for")
    agent = Agent(model, tools=tools)
    recorder = Recorder(agent)

    running = asyncio.create_task(agent.prompt("u"))
    await first.started.wait()
    await second.started.wait()
    second.opened.set()
    await eventually(lambda: bool(recorder.of_type(ToolExecutionEnd)))
    agent.steer("s")
    agent.follow_up("f")
    agent.abort()
    await running

    assert recorder.order == f"{FIRST} MU ME(a) XS(A) XS(B) XE(B) XE(A,error) MS(tA) ME(tA) MS(tB) ME(tB) TE AE"
    assert history_of(agent) == "u a tA tB"
    assert first.cancelled
    stopped, real = (message for message in agent.messages if isinstance(message, ToolResultMessage))
    assert stopped.details["code"] == "EXECUTION_ABORTED"
    assert real.text == "from b"
    assert len(model.requests) == 1
    assert (len(agent.input_channel), len(agent.follow_up_channel)) == (1, 1)
    await check_agent(agent, recorder)
    assert history_of(agent).endswith("are you there? a s a f a")


@pytest.mark.requirement("Y SP-022", "Y P-005")
async def test_an_abort_during_sequential_tools_keeps_the_later_ones_from_starting() -> None:
    first, second, tools = gates()
    agent = Agent(Model([*TWO_CALLS]), tools=tools, tool_execution="sequential")
    recorder = Recorder(agent)

    running = asyncio.create_task(agent.prompt("u"))
    await first.started.wait()
    agent.abort()
    await running

    assert recorder.order == f"{FIRST} MU ME(a) XS(A) XE(A,error) MS(tA) ME(tA) XS(B) XE(B,error) MS(tB) ME(tB) TE AE"
    assert not second.started.is_set()
    await check_agent(agent, recorder)


@pytest.mark.requirement("Y SP-022", "Y SD-008")
async def test_a_tool_that_finishes_in_spite_of_the_abort_keeps_its_real_result() -> None:
    async def a() -> str:
        """Clean up when cancelled."""
        agent.abort()
        try:
            await forever()
        except asyncio.CancelledError:
            await asyncio.sleep(0)
        return "cleaned up"

    agent = Agent(Model([call("a")]), tools=[a])
    recorder = Recorder(agent)

    await agent.prompt("u")

    assert recorder.order == f"{FIRST} MU ME(a) XS(A) XE(A) MS(tA) ME(tA) TE AE"
    result = agent.messages[-1]
    assert isinstance(result, ToolResultMessage)
    assert result.text == "cleaned up"
    await check_agent(agent, recorder)


@pytest.mark.requirement("Y SP-022", "Y SD-008")
@pytest.mark.parametrize("hook", ["before_tool_call", "after_tool_call"])
async def test_an_abort_during_a_hook_ends_the_run(hook: str) -> None:
    async def hang(*_: object) -> None:
        agent.abort()
        await forever()

    agent = Agent(
        Model([*TWO_CALLS]),
        tools=[tool(ok, name="a"), tool(ok, name="b")],
        before_tool_call=hang if hook == "before_tool_call" else None,
        after_tool_call=hang if hook == "after_tool_call" else None,
    )
    recorder = Recorder(agent)

    await agent.prompt("u")

    assert history_of(agent) == "u a tA tB"
    assert recorder.of_type(AgentEnd)[0].reason == "aborted"
    results = [message for message in agent.messages if isinstance(message, ToolResultMessage)]
    assert results[0].is_error is (hook == "before_tool_call")  # after it, the tool did run
    agent.set_hooks(before_tool_call=None, after_tool_call=None)
    await check_agent(agent, recorder)


@pytest.mark.requirement("Y SP-022", "Y SD-008")
@pytest.mark.parametrize("hook", ["prepare_context", "format_messages"])
async def test_an_abort_while_a_request_is_prepared_sends_nothing(hook: str) -> None:
    async def hang(_: object) -> NoReturn:
        agent.abort()
        await forever()
        raise AssertionError

    model = Model()
    agent = Agent(
        model,
        prepare_context=hang if hook == "prepare_context" else None,
        format_messages=hang if hook == "format_messages" else None,
    )
    recorder = Recorder(agent)

    await agent.prompt("u")

    assert recorder.order == f"{FIRST} ME(a,aborted) TE AE"
    assert model.requests == []
    agent.set_hooks(prepare_context=None, format_messages=None)
    await check_agent(agent, recorder)


@pytest.mark.requirement("Y SP-022", "Y SD-008")
async def test_an_abort_before_the_request_sends_nothing() -> None:
    model = Model()
    agent = Agent(model)
    recorder = Recorder(agent)
    agent.subscribe(lambda event, _: agent.abort() if event.type == "agent_start" else None)

    await agent.prompt("u")

    assert recorder.order == f"{FIRST} ME(a,aborted) TE AE"
    assert model.requests == []


@pytest.mark.requirement("Y SP-022", "Y SD-008")
async def test_an_error_that_an_abort_causes_in_the_backend_counts_as_the_abort() -> None:
    async def breaks_when_cancelled(_: object) -> AsyncIterator[str]:
        yield "Hel"
        agent.abort()
        try:
            await forever()
        except asyncio.CancelledError:
            raise ConnectionError("the socket was closed") from None

    agent = Agent(breaks_when_cancelled)
    recorder = Recorder(agent)

    answer = await agent.prompt("u")

    assert recorder.order_with_errors == f"{FIRST} MU ME(a,aborted) TE AE"
    assert (answer.text, answer.stop_reason) == ("Hel", "aborted")


@pytest.mark.requirement("Y P-005", "Y NFR-201")
@pytest.mark.parametrize(
    ("answer", "deltas", "text"),
    [([ServerError("the server fell over")], "", ""), (["Hel", ServerError("the server fell over")], "MU ", "Hel")],
    ids=["before the first delta", "in mid-stream"],
)
async def test_a_backend_error_ends_the_run_and_follow_ups_stay_queued(
    answer: list[Step], deltas: str, text: str
) -> None:
    agent = Agent(Model([lambda: agent.follow_up("f"), *answer]))
    recorder = Recorder(agent)

    message = await agent.prompt("u")

    assert recorder.order_with_errors == f"{FIRST} {deltas}ME(a,error) error TE AE"
    assert history_of(agent) == "u a,error"
    assert (message.text, message.stop_reason) == (text, "error")
    assert message.error_message == "the server fell over [SERVER_ERROR]"
    assert agent.state.error_message == message.error_message
    assert recorder.of_type(AgentError)[0].code == "SERVER_ERROR"
    assert len(agent.follow_up_channel) == 1
    await check_agent(agent, recorder)
    assert history_of(agent).endswith("f a")
    assert agent.state.error_message is None


@pytest.mark.requirement("Y P-005", "Y NFR-201")
async def test_a_backend_error_after_a_whole_call_gives_the_call_an_error_result() -> None:
    agent = Agent(Model([call("a"), ServerError("gone")]), tools=[tool(ok, name="a")])
    recorder = Recorder(agent)

    await agent.prompt("u")

    assert recorder.order_with_errors == f"{FIRST} MU ME(a,error) error XS(A) XE(A,error) MS(tA) ME(tA) TE AE"
    await check_agent(agent, recorder)


@pytest.mark.requirement("Y P-005")
async def test_calls_of_an_answer_cut_by_length_do_not_run_and_the_model_is_told_to_ask_again() -> None:
    ran: list[str] = []

    def a() -> str:
        """Note that it ran."""
        ran.append("a")
        return "ran"

    model = Model([call("a"), LENGTH], "shorter")
    agent = Agent(model, tools=[a])
    recorder = Recorder(agent)

    await agent.prompt("u")

    assert recorder.order == f"{FIRST} MU ME(a) XS(A) XE(A,error) MS(tA) ME(tA) TE {LAST_TURN}"
    assert history_of(agent) == "u a tA a"
    assert ran == []
    assert "Ask for it again" in model.requests[1].texts[-1]
    await check_agent(agent, recorder)


async def test_a_text_cut_by_length_ends_the_run() -> None:
    agent = Agent(Model(["too long", LENGTH]))
    recorder = Recorder(agent)

    answer = await agent.prompt("u")

    assert recorder.order == f"{FIRST} MU ME(a) TE AE"
    assert answer.stop_reason == "length"


def stop_now() -> ToolResult:
    """End the run."""
    return ToolResult("bye", terminate=True)


@pytest.mark.requirement("Y FR-003", "Y P-005")
async def test_results_that_all_terminate_end_the_run_without_a_further_request() -> None:
    model = Model([*TWO_CALLS])
    agent = Agent(model, tools=[tool(stop_now, name="a"), tool(stop_now, name="b")], tool_execution="sequential")
    recorder = Recorder(agent)

    await agent.prompt("u")

    assert recorder.order == f"{FIRST} MU ME(a) XS(A) XE(A) MS(tA) ME(tA) XS(B) XE(B) MS(tB) ME(tB) TE AE"
    assert history_of(agent) == "u a tA tB"
    assert recorder.of_type(AgentEnd)[0].reason == "terminated"
    assert len(model.requests) == 1
    await check_agent(agent, recorder)


@pytest.mark.requirement("Y FR-003")
async def test_a_run_goes_on_when_only_some_results_terminate() -> None:
    model = Model([*TWO_CALLS])
    agent = Agent(model, tools=[tool(stop_now, name="a"), tool(ok, name="b")])

    await agent.prompt("u")

    assert history_of(agent) == "u a tA tB a"
    assert len(model.requests) == 2


@pytest.mark.requirement("Y FR-003")
async def test_what_was_queued_is_taken_in_a_new_run_after_a_run_that_terminated() -> None:
    def a() -> ToolResult:
        """Queue a message and end the run."""
        agent.steer("s")
        return ToolResult("bye", terminate=True)

    agent = Agent(Model([call("a")]), tools=[a])
    recorder = Recorder(agent)

    await agent.prompt("u")
    await agent.wait_idle()

    assert history_of(agent) == "u a tA s a"
    assert [end.reason for end in recorder.of_type(AgentEnd)] == ["terminated", "done"]
    await check_agent(agent, recorder)


@pytest.mark.requirement("Y FR-003", "Y P-001")
async def test_several_rounds_run_until_an_answer_has_no_calls() -> None:
    model = Model([call("a", call_id="A1")], [call("a", call_id="A2")], [call("a", call_id="A3")], "done")
    agent = Agent(model, tools=[tool(ok, name="a")])
    recorder = Recorder(agent)

    await agent.prompt("u")

    assert history_of(agent) == "u a tA1 a tA2 a tA3 a"
    assert len(recorder.of_type(TurnEnd)) == len(model.requests) == 4
    await check_agent(agent, recorder)


async def test_an_unknown_tool_and_arguments_that_are_no_json_become_error_results() -> None:
    model = Model([call("nothing"), call("a", '{"x": ')], "sorry")
    agent = Agent(model, tools=[tool(ok, name="a")])
    recorder = Recorder(agent)

    await agent.prompt("u")

    assert recorder.order == (
        f"{FIRST} MU ME(a) XS(NOTHING) XS(A) XE(NOTHING,error) XE(A,error) "
        f"MS(tNOTHING) ME(tNOTHING) MS(tA) ME(tA) TE {LAST_TURN}"
    )
    unknown, malformed = (message for message in agent.messages if isinstance(message, ToolResultMessage))
    assert unknown.details["code"] == "TOOL_NOT_FOUND"
    assert malformed.details["code"] == "INVALID_PARAMETERS"
    await check_agent(agent, recorder)


async def test_updates_stand_between_the_start_and_the_end_of_their_call() -> None:
    def a(context: ToolContext) -> str:
        """Report progress."""
        context.update("one")
        context.update("two")
        return "three"

    agent = Agent(Model([call("a")]), tools=[a])
    recorder = Recorder(agent)

    await agent.prompt("u")

    assert recorder.order == f"{FIRST} MU ME(a) XS(A) XU(A) XU(A) XE(A) MS(tA) ME(tA) TE {LAST_TURN}"


async def test_updates_after_the_end_of_a_call_are_dropped() -> None:
    kept: list[ToolContext] = []

    def a(context: ToolContext) -> str:
        """Keep the context for later."""
        kept.append(context)
        return "over"

    agent = Agent(Model([call("a")], [lambda: kept[0].update("late"), "done"]), tools=[a])
    recorder = Recorder(agent)

    await agent.prompt("u")

    assert "XU" not in recorder.order


@pytest.mark.requirement("A SPEC-9.1")
async def test_a_run_that_reaches_max_turns_tells_why_between_its_last_turn_and_its_end() -> None:
    model = Model([call("a", call_id="A1")], [call("a", call_id="A2")], "never")
    agent = Agent(model, tools=[tool(ok, name="a")], limits=Limits(max_turns=2))
    recorder = Recorder(agent)

    await agent.prompt("u")

    assert recorder.order_with_errors.endswith("MS(tA2) ME(tA2) TE error AE")
    assert history_of(agent) == "u a tA1 a tA2"
    assert recorder.of_type(AgentEnd)[0].reason == "max_turns"
    assert recorder.of_type(AgentError)[0].code == "RATE_LIMITED"
    assert "Limits.max_turns = 2" in str(agent.state.error_message)
    answer = await agent.continue_()
    assert answer.text == "never"


@pytest.mark.requirement("A SPEC-9.1")
async def test_a_run_that_reaches_max_cost_ends_with_its_results_and_the_next_is_refused() -> None:
    cost = ModelCost(input=1_000_000, output=0)
    usage: Step = {"usage": {"prompt_tokens": 2, "completion_tokens": 0}}
    agent = Agent(
        Model([call("a"), usage], "never"),
        tools=[tool(ok, name="a")],
        model=LlmModel(id="dear", cost=cost),
        limits=Limits(max_cost=1.5),
    )
    recorder = Recorder(agent)

    await agent.prompt("u")

    assert recorder.order_with_errors.endswith("MS(tA) ME(tA) TE error AE")
    assert recorder.of_type(AgentEnd)[0].reason == "max_cost"
    assert "max_cost" in str(agent.state.error_message)
    await check_agent_over_budget(agent)
    agent.set_limits(Limits(max_cost=None))
    await check_agent(agent, recorder)


async def check_agent_over_budget(agent: Agent) -> None:
    """Check that nothing is sent, and nothing lost, while the budget is spent."""
    with pytest.raises(RateLimitedError, match="max_cost"):
        await agent.prompt("more")
    agent.steer("waits")
    await agent.wait_idle()
    assert len(agent.input_channel) == 1
    assert not agent.is_running


async def test_each_answer_is_one_message_with_one_id_from_start_to_end() -> None:
    agent = Agent(Model([{"reasoning": "hm"}, "Hel", "lo", call("a")], "done"), tools=[tool(ok, name="a")])
    recorder = Recorder(agent)

    await agent.prompt("u")

    recorder.check()
    first = next(message for message in agent.messages if isinstance(message, AssistantMessage))
    assert (first.reasoning, first.text) == ("hm", "Hello")


async def test_a_snapshot_taken_at_any_delta_changes_nothing_of_the_answer() -> None:
    pieces = ["<th", "ink>so", " so</thi", "nk>Hel", "lo"]
    plain = Agent(Model(pieces))
    watched = Agent(Model([step for piece in pieces for step in (piece, lambda: watched.state)]))
    recorder = Recorder(watched)

    expected = await plain.prompt("u")
    answer = await watched.prompt("u")

    assert answer.content == expected.content
    recorder.check()


async def test_cancelling_what_a_backend_swallows_ends_after_the_grace_time() -> None:
    released = asyncio.Event()

    async def stubborn(_: object) -> str:
        agent.abort()
        while not released.is_set():
            try:
                await released.wait()
            except asyncio.CancelledError:
                continue
        return "late"

    agent = Agent(stubborn)
    recorder = Recorder(agent)
    start = asyncio.get_running_loop().time()

    answer = await agent.prompt("u")

    assert answer.stop_reason == "aborted"
    assert asyncio.get_running_loop().time() - start < 2 * ABORT_GRACE
    released.set()
    await check_agent(agent, recorder)
