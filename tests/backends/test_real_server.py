"""Both endpoints of a real server that no one here wrote: llama.cpp's, with a real model."""

from __future__ import annotations

import asyncio
import base64
import os
import signal
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from typing import Any, Literal, cast

import httpx2
import pytest
from agent.grammar import check_history
from backends.real_server import CONTEXT, MODEL, RealServer
from pydantic import BaseModel, Field

from yiemagent_nb.backends.http.connection import Timeouts
from yiemagent_nb.backends.openai_compatible import OpenAICompatible
from yiemagent_nb.core.agent import Agent
from yiemagent_nb.core.errors import (
    AuthenticationError,
    BadRequestError,
    ContextLengthError,
    StreamInterruptedError,
)
from yiemagent_nb.core.events import Event, MessageUpdate
from yiemagent_nb.core.messages import AssistantMessage, ImageContent, TextContent, UserMessage
from yiemagent_nb.core.reading.assemble import Assembler
from yiemagent_nb.core.reading.blocks import Delta
from yiemagent_nb.core.reading.extract import extract

pytestmark = pytest.mark.requirement("Y FR-002", "Y US-005", "Y P-003", "Y SP-017")

Api = Literal["chat-completions", "responses"]
Messages = Sequence[Mapping[str, Any]]

APIS: tuple[Api, Api] = ("chat-completions", "responses")
on_both = pytest.mark.parametrize("api", APIS)

HELLO = [{"role": "user", "content": "Say hello in one sentence."}]
STORY = "Write a very long story about a fox, with every detail."
ADD: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "add",
        "description": "Add two numbers.",
        "parameters": {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "required": ["a", "b"],
        },
    },
}


def added(number: int, a: int, b: int) -> list[dict[str, Any]]:
    """A question, the call that answers it, its result, and the answer."""
    function = {"name": "add", "arguments": f'{{"a": {a}, "b": {b}}}'}
    return [
        {"role": "user", "content": f"What is {a} plus {b}?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": f"call{number}", "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": f"call{number}", "content": str(a + b)},
        {"role": "assistant", "content": f"It is {a + b}."},
    ]


ADDED = [message for number, (a, b) in enumerate([(3, 4), (20, 6), (8, 31)]) for message in added(number, a, b)]
"""Shows a small model how tools are called."""


@pytest.fixture(scope="module")
def server() -> Iterator[RealServer]:
    with RealServer() as running:
        yield running


def connect(server: RealServer, api: Api = "chat-completions", **options: Any) -> OpenAICompatible:
    settings: dict[str, Any] = {"api_key": server.key, "temperature": 0, "seed": 1, "max_tokens": 24, **options}
    return OpenAICompatible(server.base_url, MODEL, preset="llamacpp", api=api, **settings)


async def ask(backend: OpenAICompatible, messages: Messages, **options: Any) -> tuple[AssistantMessage, list[Delta]]:
    assembler = Assembler(tool_names=["add"])
    deltas: list[Delta] = []
    async for piece in cast("AsyncIterator[Any]", backend(messages, **options)):
        deltas += assembler.feed(piece)
    return assembler.finish(), deltas


async def ask_whole(backend: OpenAICompatible, messages: Messages, **options: Any) -> AssistantMessage:
    return extract(await cast("Any", backend(messages, stream=False, **options)), tool_names=["add"])


async def test_both_endpoints_give_the_same_answer_in_pieces_and_whole(server: RealServer) -> None:
    answers: list[AssistantMessage] = []
    for api in APIS:
        async with connect(server, api) as backend:
            streamed, deltas = await ask(backend, HELLO)
            whole = await ask_whole(backend, HELLO)
        assert len(deltas) > 5
        assert "".join(delta.text for delta in deltas) == streamed.text
        assert (streamed.api, whole.api) == (api, api)
        answers += [streamed, whole]
    assert len({answer.text for answer in answers}) == 1
    for answer in answers:
        assert (answer.provider, answer.model, answer.stop_reason) == ("llamacpp", MODEL, "end_turn")
        assert answer.usage is not None
        assert (answer.usage.input_tokens, answer.usage.total_tokens) == (15, 15 + answer.usage.output_tokens)
        assert answer.usage.output_tokens > 5
        assert answer.usage.cost is not None
        assert answer.usage.cost.total == 0


@on_both
async def test_a_seed_gives_the_same_answer_again_and_another_another_one(server: RealServer, api: Api) -> None:
    async with connect(server, api, temperature=1.5) as backend:
        texts = [(await ask_whole(backend, HELLO, seed=seed)).text for seed in (7, 7, 8)]
    assert texts[0] == texts[1] != texts[2]


@on_both
async def test_an_answer_ends_before_the_stop_word(server: RealServer, api: Api) -> None:
    async with connect(server, api) as backend:
        whole, _ = await ask(backend, HELLO)
        word = whole.text.split()[4]
        stopped, _ = await ask(backend, HELLO, stop=[word])
    assert stopped.text == whole.text.partition(word)[0]
    assert stopped.stop_reason == "end_turn"


@on_both
async def test_an_answer_is_no_longer_than_it_may_be(server: RealServer, api: Api) -> None:
    async with connect(server, api, max_tokens=3) as backend:
        for answer in ((await ask(backend, HELLO))[0], await ask_whole(backend, HELLO)):
            assert answer.usage is not None
            assert answer.usage.output_tokens == 3
            # Over the Responses API this server calls an answer completed that it cut.
            assert answer.stop_reason == ("length" if api == "chat-completions" else "end_turn")


@on_both
async def test_a_call_streams_with_its_name_first(server: RealServer, api: Api) -> None:
    question = [*ADDED, {"role": "user", "content": "What is 17 plus 25?"}]
    async with connect(server, api, max_tokens=60) as backend:
        streamed, deltas = await ask(backend, question, tools=[ADD])
        whole = await ask_whole(backend, question, tools=[ADD])
    for answer in (streamed, whole):
        [call] = answer.tool_calls
        assert (call.name, call.arguments, answer.stop_reason) == ("add", {"a": 17, "b": 25}, "tool_calls")
    calling = [delta for delta in deltas if delta.kind == "tool_call"]
    assert len(calling) > 3
    assert calling[0].tool_name == "add"
    assert len(calling[0].text) < 5


@on_both
async def test_an_agent_runs_the_call_and_answers_with_its_result(server: RealServer, api: Api) -> None:
    asked: list[tuple[int, int]] = []

    def add(a: int, b: int) -> int:
        """Add two numbers."""
        asked.append((a, b))
        return a + b

    async with connect(server, api, max_tokens=60) as backend:
        agent = Agent(backend, tools=[add], messages=ADDED)
        answer = await agent.prompt("What is 17 plus 25?")
    assert asked == [(17, 25)]
    assert "42" in answer.text
    check_history(agent.messages)
    assert all(message.usage for message in agent.messages[len(ADDED) :] if isinstance(message, AssistantMessage))


class Person(BaseModel):
    name: str = Field(max_length=10)
    age: int = Field(ge=0, le=120)


@on_both
async def test_an_answer_has_the_form_of_a_schema(server: RealServer, api: Api) -> None:
    async with connect(server, api, max_tokens=80) as backend:
        person = await Agent(backend).prompt("Make up a person.", output_type=Person, output_retries=0)
    assert person.name
    assert 0 <= person.age <= 120


@on_both
async def test_an_image_is_refused_at_once_where_the_model_sees_none(server: RealServer, api: Api) -> None:
    pixel = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(40)).decode()
    start = time.monotonic()
    async with connect(server, api) as backend:
        agent = Agent(backend)
        look = UserMessage([TextContent("What is this?"), ImageContent(data=pixel, mime_type="image/png")])
        answer = await agent.prompt(look)
        assert answer.stop_reason == "error"
        assert "image input is not supported" in (answer.error_message or "")
        assert "sees images" in (answer.error_message or "")
        with pytest.raises(BadRequestError):
            await ask(backend, [{"role": "user", "content": image_blocks(pixel)}])
    assert time.monotonic() - start < 2


def image_blocks(data: str) -> list[dict[str, Any]]:
    return [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}]


@on_both
async def test_a_conversation_that_is_too_long_says_so_and_how_to_get_more_context(
    server: RealServer, api: Api
) -> None:
    async with connect(server, api) as backend:
        with pytest.raises(ContextLengthError, match=rf"\({CONTEXT} tokens\)") as raised:
            await ask(backend, [{"role": "user", "content": "word " * 2000}])
    assert "--ctx-size" in raised.value.hint


@on_both
async def test_a_wrong_key_is_refused_and_not_repeated(server: RealServer, api: Api) -> None:
    async with connect(server, api, api_key="some-wrong-key-1234567890") as backend:
        with pytest.raises(AuthenticationError, match="Invalid API Key") as raised:
            await ask(backend, HELLO)
        health = await backend.health()
    assert "--api-key" in raised.value.hint
    assert "some-wrong-key" not in f"{raised.value}{health}"
    assert not health.ok


async def test_models_and_health_tell_the_context(server: RealServer) -> None:
    async with connect(server) as backend:
        [model] = await backend.models()
        health = await backend.health()
    assert (model.id, model.context_window) == (MODEL, CONTEXT)
    assert health.ok
    assert f"{CONTEXT:,} tokens" in health.message


@on_both
async def test_an_aborted_answer_frees_the_server_for_the_next_prompt(server: RealServer, api: Api) -> None:
    async with (
        connect(server, api, max_tokens=600) as talkative,
        connect(server, api) as terse,
        look_into(server) as inside,
    ):
        agent = Agent(talkative)

        def abort(event: Event, _signal: object) -> None:
            if isinstance(event, MessageUpdate) and len(event.delta) and event.offset > 5:
                agent.abort()

        forget = agent.subscribe(abort)
        aborted = await agent.prompt(STORY)
        forget()
        assert (aborted.stop_reason, bool(aborted.text)) == ("aborted", True)
        await until_free(inside)
        agent.set_llm_call(terse)
        async with asyncio.timeout(5):
            answer = await agent.prompt("Say yes.")
        assert answer.stop_reason in {"end_turn", "length"}
        assert answer.text
        check_history(agent.messages)


def look_into(server: RealServer) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(base_url=server.address, headers={"Authorization": f"Bearer {server.key}"})


async def is_busy(inside: httpx2.AsyncClient) -> bool:
    [slot] = (await inside.get("/slots")).json()
    return slot["is_processing"]


async def until_free(inside: httpx2.AsyncClient) -> None:
    """Wait until the server's one slot is free; each question takes it a moment."""
    async with asyncio.timeout(2):
        while await is_busy(inside):
            pass


async def test_closing_a_stream_closes_its_connection(server: RealServer) -> None:
    async with connect(server, max_tokens=600) as backend, look_into(server) as inside:
        pieces = cast("AsyncGenerator[Any, None]", backend([{"role": "user", "content": STORY}]))
        for _ in range(6):
            await anext(pieces)
        assert await is_busy(inside)
        await pieces.aclose()
        await until_free(inside)


@on_both
async def test_a_server_that_is_killed_interrupts_the_answer_and_may_come_back(api: Api) -> None:
    with RealServer() as first:
        backend = connect(first, api, max_tokens=600, retries=0, timeout=Timeouts(between_bytes=60))
        agent = Agent(backend)
        killed = 0.0

        def kill(event: Event, _signal: object) -> None:
            nonlocal killed
            if isinstance(event, MessageUpdate) and event.offset > 5 and not killed:
                os.kill(first.pid, signal.SIGKILL)
                killed = time.monotonic()

        agent.subscribe(kill)
        answer = await agent.prompt(STORY)
        assert time.monotonic() - killed < 1
        assert answer.stop_reason == "error"
        assert StreamInterruptedError.code in (answer.error_message or "")
        assert answer.text
        first.await_end()
        gone = await agent.prompt("Are you there?")
        assert "Start it with `llama-server" in (gone.error_message or "")
        port = first.port
    with RealServer(port) as second:
        agent.set_llm_call(connect(second, api))
        back = await agent.prompt("Say yes.")
        assert back.stop_reason in {"end_turn", "length"}
        assert back.text
        check_history(agent.messages)
        await backend.aclose()


async def test_a_conversation_goes_from_one_endpoint_to_the_other_and_back(server: RealServer) -> None:
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    chat, responses = (connect(server, api, max_tokens=60) for api in APIS)
    agent = Agent(chat, tools=[add], messages=ADDED[:8])
    for backend, question in ((chat, "8 plus 31"), (responses, "17 plus 25"), (chat, "2 plus 9")):
        agent.set_llm_call(backend)
        await agent.prompt(f"What is {question}?")
    check_history(agent.messages)
    answers = [message for message in agent.messages[8:] if isinstance(message, AssistantMessage)]
    assert [answer.api for answer in answers] == [APIS[0]] * 2 + [APIS[1]] * 2 + [APIS[0]] * 2
    results = [answer.text for answer in answers if not answer.tool_calls]
    assert [number in text for number, text in zip(("39", "42", "11"), results, strict=True)] == [True] * 3
    tokens = [answer.usage.input_tokens for answer in answers if answer.usage]
    assert tokens == sorted(set(tokens))
    assert len(tokens) == 6
    for backend in (chat, responses):
        await backend.aclose()
