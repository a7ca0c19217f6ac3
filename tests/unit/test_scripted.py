"""Scripted, and what else ``yiemagent_nb.testing`` offers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import pytest

from yiemagent_nb.core.agent import Agent
from yiemagent_nb.core.errors import BackendError, InvalidParametersError
from yiemagent_nb.core.events import BackendChanged, MessageUpdate, ToolExecutionEnd
from yiemagent_nb.core.messages import (
    AssistantMessage,
    AssistantToolCallMessage,
    ImageContent,
    ReasoningContent,
    TextContent,
    ToolCall,
)
from yiemagent_nb.core.models import Usage
from yiemagent_nb.core.tools import tool
from yiemagent_nb.testing import Answer, EventRecorder, Scripted, assistant, call, result, user


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool
def fail() -> None:
    """Fail."""
    raise ValueError("as it should")


async def pieces_of(backend: Scripted) -> list[Any]:
    return [piece async for piece in await backend([])]


async def answer_of(*answers: Answer, stream: bool = True) -> AssistantMessage:
    async with Agent(Scripted(answers, stream=stream), tools=[add]) as agent:
        return await agent.prompt("go")


FULL = AssistantToolCallMessage.model_validate(
    {
        "content": (
            ReasoningContent("Let me see."),
            TextContent("Both at once."),
            ToolCall(id="c1", name="add", arguments={"a": 1, "b": 2}),
            ToolCall(id="c2", name="add", arguments={"a": 3, "b": 4}),
        ),
        "usage": Usage(input_tokens=7, output_tokens=5, cache_read_tokens=2, reasoning_tokens=1),
        "provider": "teacher",
        "model": "chalk",
    }
)


@pytest.mark.parametrize("stream", [True, False])
async def test_a_text_is_answered_as_it_stands(stream: bool) -> None:
    assert (await answer_of("Two  words\nand more.", stream=stream)).text == "Two  words\nand more."


@pytest.mark.parametrize("stream", [True, False])
async def test_a_message_keeps_its_content_and_usage(stream: bool) -> None:
    async with Agent(Scripted([FULL, "done"], stream=stream), tools=[add]) as agent:
        await agent.prompt("go")
    said = agent.messages[1]
    assert isinstance(said, AssistantToolCallMessage)
    assert (said.reasoning, said.text, said.tool_calls) == (FULL.reasoning, FULL.text, FULL.tool_calls)
    assert (said.usage, said.provider, said.model) == (FULL.usage, "teacher", "chalk")


@pytest.mark.parametrize("stream", [True, False])
async def test_a_message_may_hold_an_image(stream: bool) -> None:
    image = ImageContent(data="AAAA", mime_type="image/png")
    said = await answer_of(AssistantMessage(["See:", image]), stream=stream)
    assert said.content == (TextContent("See:"), image)


async def test_calls_run_and_the_next_answer_follows() -> None:
    backend = Scripted([[call("add", a=1, b=2), call("add", a=3, b=4)], "3 and 7"])
    async with Agent(backend, tools=[add]) as agent:
        assert (await agent.prompt("go")).text == "3 and 7"
    assert [message["content"] for message in backend.requests[1].messages[-2:]] == ["3", "7"]


async def test_a_mapping_is_given_as_it_is() -> None:
    assert (await answer_of({"message": {"role": "assistant", "content": "plain"}})).text == "plain"


async def test_an_exception_is_raised() -> None:
    backend = Scripted([TimeoutError("late"), KeyError])
    with pytest.raises(TimeoutError, match="late"):
        await backend([])
    with pytest.raises(KeyError):
        await backend([])


async def test_a_message_that_ended_in_an_error_is_raised() -> None:
    with pytest.raises(BackendError, match="the server fell asleep"):
        await Scripted([AssistantMessage(stop_reason="error", error_message="the server fell asleep")])([])


async def test_a_function_sees_the_messages() -> None:
    def count(messages: Sequence[Mapping[str, Any]]) -> str:
        return f"{len(messages)}: {messages[-1]['content']}"

    async def shout(messages: Sequence[Mapping[str, Any]]) -> list[ToolCall]:
        return [call("add", a=len(messages), b=0)]

    assert (await answer_of(count)).text == "1: go"
    assert (await answer_of(shout, count)).text == "3: 1"


async def test_a_function_may_give_a_stream_of_its_own() -> None:
    async def drip(_messages: object) -> AsyncIterator[str]:
        async def drops() -> AsyncIterator[str]:
            yield "drip "
            yield "drop"

        return drops()

    assert (await answer_of(drip)).text == "drip drop"


async def test_length_is_told_as_the_server_would() -> None:
    assert (await answer_of(AssistantMessage("and so", stop_reason="length"))).stop_reason == "length"


async def test_pieces_are_words_or_as_long_as_asked() -> None:
    words = await pieces_of(Scripted(["one two"]))
    assert [p["choices"][0]["delta"].get("content") for p in words] == ["one ", "two", None]
    threes = await pieces_of(Scripted(["abcdefgh"], chunk=3))
    assert [p["choices"][0]["delta"].get("content") for p in threes] == ["abc", "def", "gh", None]


async def test_requests_are_kept_as_they_were_given() -> None:
    backend = Scripted(["one"])
    async with Agent(backend, system_prompt="Be brief.", tools=[add], thinking_level="low") as agent:
        await agent.prompt("go")
    (request,) = backend.requests
    assert [message["content"] for message in request.messages] == ["Be brief.", "go"]
    assert [each["function"]["name"] for each in request.tools] == ["add"]
    assert request.options["thinking_level"] == "low"


async def test_a_script_at_its_end_says_how_long_it_was() -> None:
    backend = Scripted(["one"])
    await backend([])
    with pytest.raises(
        BackendError, match=r"The script has 1 answer, and this is request 2\. Give Scripted one answer"
    ):
        await backend([])


@pytest.mark.parametrize("answer", [7, [], ["text"], int, [call("add"), "x"]])
def test_what_is_no_answer_is_refused_at_once(answer: Any) -> None:
    with pytest.raises(InvalidParametersError, match=r"Answer 2 of the script is .*; expected text"):
        Scripted(["fine", answer])


def test_one_string_is_no_script() -> None:
    with pytest.raises(InvalidParametersError, match="list of answers"):
        Scripted("hello")


def test_a_piece_has_a_character_at_least() -> None:
    with pytest.raises(InvalidParametersError, match="chunk is 0"):
        Scripted([], chunk=0)


async def test_what_a_function_gives_is_checked_too() -> None:
    with pytest.raises(InvalidParametersError, match="the function in answer 1 of the script gave is int"):
        await Scripted([lambda _: 7])([])


def test_its_repr_says_how_far_it_is() -> None:
    assert repr(Scripted(["one"])) == "Scripted(0 of 1 answers given)"


async def test_the_recorder_tells_the_order_of_a_run() -> None:
    recorder = EventRecorder()
    async with Agent(Scripted([[call("add", a=1, b=2), call("fail")], "3"]), tools=[add, fail]) as agent:
        agent.set_tools([add, fail])
        agent.subscribe(recorder)
        await agent.prompt("go")
    codes = recorder.types()
    assert codes[:7] == ["AS", "TS", "MS(u)", "ME(u)", "MS(a)", "MU", "ME(a)"]
    assert sorted(codes[7:11]) == ["XE(add)", "XE(fail, error)", "XS(add)", "XS(fail)"]
    assert codes[11:17] == ["MS(tadd)", "ME(tadd)", "MS(tfail)", "ME(tfail)", "TE", "TS"]
    assert codes[17:] == ["MS(a)", "MU", "ME(a)", "TE", "AE"]
    assert recorder.text() == "3"
    assert [event.is_error for event in recorder.of(ToolExecutionEnd)].count(True) == 1


async def test_the_recorder_can_tell_each_piece_and_all_else() -> None:
    recorder = EventRecorder()
    async with Agent(Scripted(["a b c"]), tools=[]) as agent:
        agent.subscribe(recorder)
        await agent.prompt("go")
        agent.set_llm_call(Scripted([]))
    assert recorder.types(every_update=True).count("MU") == len(recorder.of(MessageUpdate)) == 3
    assert recorder.of(BackendChanged)
    assert "BackendChanged" not in recorder.types()
    assert "BackendChanged" in recorder.types(everything=True)
    recorder.clear()
    assert (len(recorder), recorder.text()) == (0, "")


async def test_the_recorder_marks_an_answer_that_failed() -> None:
    recorder = EventRecorder()
    async with Agent(Scripted([])) as agent:
        agent.subscribe(recorder)
        await agent.prompt("go")
    assert "ME(a, error)" in recorder.types()


def test_builders_make_messages() -> None:
    asked = call("add", a=1, b=2)
    assert user("hi").text == "hi"
    assert assistant("hello").text == "hello"
    said = assistant("so", [asked], provider="x")
    assert (said.tool_calls, said.text, said.provider) == ((asked,), "so", "x")
    assert assistant(calls=[asked]).stop_reason == "tool_calls"
    answered = result(asked, "3", is_error=True)
    assert (answered.tool_call_id, answered.tool_name, answered.text, answered.is_error) == (asked.id, "add", "3", True)
