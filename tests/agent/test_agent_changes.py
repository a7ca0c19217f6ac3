"""Changing an agent in mid-conversation and in mid-run, and what a backend may answer."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from agent.script import Model, Recorder, call, check_agent, eventually, history_of

from yiemagent_nb.core.agent import Agent
from yiemagent_nb.core.errors import (
    InvalidParametersError,
)
from yiemagent_nb.core.events import AgentError, BackendChanged, MessageEnd, ToolsChanged
from yiemagent_nb.core.hooks import AgentContext, BeforeToolCallContext, BeforeToolCallResult
from yiemagent_nb.core.messages import (
    AssistantMessage,
    TextContent,
    ToolResultMessage,
)
from yiemagent_nb.core.models import LlmModel, ModelCost
from yiemagent_nb.core.results import ToolResult
from yiemagent_nb.core.signal import AbortSignal
from yiemagent_nb.core.state import AgentState
from yiemagent_nb.core.tools import ToolContext, tool

pytestmark = pytest.mark.requirement("A FR-001", "A SPEC-6.1")


def ok() -> str:
    """Work well."""
    return "ok"


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


@pytest.mark.requirement("Y risk table")
async def test_prepare_context_keeps_a_request_short_however_long_the_history_grows() -> None:
    def newest(state: AgentState) -> AgentContext:
        return AgentContext(state.system_prompt, state.messages[-5:], state.tools)

    model = Model()
    agent = Agent(model, prepare_context=newest)
    for number in range(20):
        await agent.prompt(str(number))

    assert len(agent.messages) == 40
    assert max(len(request.messages) for request in model.requests) == 5


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


async def test_options_show_no_key_and_may_be_given_back() -> None:
    model = Model("one")
    headers = {"Authorization": "Bearer very-secret-1", "Accept": "text/plain"}
    agent = Agent(model, options={"api_key": "very-secret-2", "extra_headers": headers, "max_tokens": 5})
    assert "very-secret" not in repr(agent.options)
    agent.set_options({**agent.options, "temperature": 0.5})
    await agent.prompt("u")
    assert model.requests[0].options["api_key"] == "very-secret-2"
    assert model.requests[0].options["extra_headers"] == headers
    assert (model.requests[0].options["temperature"], model.requests[0].options["max_tokens"]) == (0.5, 5)
