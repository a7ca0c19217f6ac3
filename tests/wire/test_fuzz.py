"""Arbitrary bytes as an answer, cut anywhere: no hang, no untyped error, no half of a message.

Answers are bytes of no meaning, and the wire cases spoilt: pieces of them deleted, doubled, swapped,
cut off and put together, and values in their JSON replaced by others of any type and size.
``YIEMAGENT_FUZZ=100`` makes a run so many times as long.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

import pytest
from agent.grammar import EventGrammar, check_history, check_request
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from wire.rubbish import (
    ANSWERS,
    CUTS,
    GOOD,
    HTTP_ANSWERS,
    MEDIA_TYPES,
    NUMBERS,
    SPOILT,
    WAITS,
    FuzzServer,
    HttpAnswer,
    bodies,
    cut,
)

from yiemagent_nb.backends.engine.chat_request import ChatRequest
from yiemagent_nb.backends.engine.responses_request import ResponsesRequest
from yiemagent_nb.backends.engine.stream_reader import StreamReader
from yiemagent_nb.backends.http.connection import Timeouts
from yiemagent_nb.backends.http.retry import read_retry_after
from yiemagent_nb.backends.openai_compatible import OpenAICompatible
from yiemagent_nb.core.agent import Agent
from yiemagent_nb.core.errors import BackendError, YiemAgentError
from yiemagent_nb.core.events import Event, MessageEnd, MessageUpdate
from yiemagent_nb.core.limits import Limits
from yiemagent_nb.core.messages import (
    AssistantMessage,
    Message,
    ReasoningContent,
    TextContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    dump_message,
    load_message,
)
from yiemagent_nb.core.reading.assemble import Assembler
from yiemagent_nb.core.reading.blocks import NAMELESS
from yiemagent_nb.core.reading.extract import extract
from yiemagent_nb.core.reading.fields import read_arguments
from yiemagent_nb.core.request import RequestBuilder
from yiemagent_nb.core.tools import Tool

pytestmark = pytest.mark.requirement("Y SP-017", "Y SP-018", "Y SD-009", "Y FR-002")

LONGER = int(os.environ.get("YIEMAGENT_FUZZ", "1"))
SLOW = 5.0
"""Seconds after which an answer of a few kilobytes counts as hanging."""
TOOLS = ("get_weather", "search", "add")
MESSAGES: list[Mapping[str, Any]] = [{"role": "user", "content": "hi"}]


def examples(count: int) -> Callable[[Any], Any]:
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    return settings(max_examples=count * LONGER, deadline=None, suppress_health_check=checks)


# What must hold


@dataclass
class Told:
    """The deltas of one answer, by the block that they belong to."""

    kinds: dict[int, str] = field(default_factory=dict[int, str])
    pieces: dict[int, list[str]] = field(default_factory=dict[int, list[str]])
    lengths: dict[int, int] = field(default_factory=dict[int, int])

    def add(self, kind: str, text: str, block: int, offset: int) -> None:
        """Take a delta, which must go on where the last one of its block ended."""
        assert self.kinds.setdefault(block, kind) == kind, "a block changed its kind"
        assert self.lengths.setdefault(block, 0) == offset, "a delta does not begin where the last one ended"
        self.lengths[block] += len(text)
        self.pieces.setdefault(block, []).append(text)

    def check(self, message: AssistantMessage) -> None:
        """What was told is what the message holds."""
        text, reasoning = self._joined("text"), self._joined("reasoning")
        if message.reasoning and not reasoning and text:
            # The opening tag stood in the prompt, so the reasoning was told as text.
            blocks = [block.text for block in message.content if isinstance(block, TextContent | ReasoningContent)]
            assert _bare("".join(blocks)).startswith(_bare(text)), "the deltas are not the answer"
        else:
            assert _valid(message.text).startswith(_valid(text)), "the deltas are not the text"
            assert _valid(message.reasoning).startswith(_valid(reasoning)), "the deltas are not the reasoning"
        calls = [call for call in message.tool_calls if call.name != NAMELESS]
        told = [pieces for block, pieces in sorted(self.pieces.items()) if self.kinds[block] == "tool_call"]
        assert len(told) <= len(calls), "a call was told that the message does not have"
        for call, pieces in zip(calls, told, strict=False):
            # A server may send all of them once more, also after it lost some: then those count.
            readings = [read_arguments("".join(pieces[start:])) for start in range(len(pieces))]
            is_repaired = readings[0][1] is not None and call.raw_arguments is None
            assert is_repaired or (call.arguments, call.raw_arguments) in readings, "the deltas are not the arguments"

    def _joined(self, kind: str) -> str:
        return "".join("".join(self.pieces[block]) for block in sorted(self.pieces) if self.kinds[block] == kind)


def _bare(text: str) -> str:
    """Text without closing tags and white space."""
    return re.sub(r"</\w+>|\[/THINK\]|\s", "", _valid(text))


def _valid(text: str) -> str:
    return text.replace("\ufffd", "")


def check_message(message: AssistantMessage) -> None:
    """A message can be kept, and be sent to both endpoints with a result for each of its calls."""
    assert load_message(json.loads(json.dumps(dump_message(message), ensure_ascii=False).encode())) == message
    calls = message.tool_calls
    assert len({call.id for call in calls} - {""}) == len(calls), "two calls have one id"
    for call in calls:
        assert call.raw_arguments is None or not call.arguments, "arguments were read from half of their text"
    assert (message.stop_reason == "tool_calls") <= bool(calls)
    results = [
        ToolResultMessage(tool_call_id=call.id, tool_name=call.name, content=(TextContent("done"),)) for call in calls
    ]
    history: list[Message] = [UserMessage("hi"), message, *results, UserMessage("go on")]
    request = RequestBuilder().build("Be kind.", history, message.provider or "p")
    check_request(request)
    for encode in (ChatRequest().encode, ResponsesRequest(message.provider or "p").encode):
        json.loads(encode(request, None, {"model": "m"}))


def check_error(error: YiemAgentError) -> None:
    """An error says what happened, and its code."""
    assert error.message
    assert str(error).endswith(f"[{error.code}]")


def read(pieces: Sequence[bytes], media_type: str, *, text_tool_calls: bool) -> tuple[Told, AssistantMessage]:
    """What is made of some bytes, without a socket."""
    assembler = Assembler(tool_names=TOOLS, text_tool_calls=text_tool_calls)
    reader = StreamReader()
    reader.begin(media_type)
    told = Told()
    waiting = iter([*pieces, b"", b""])
    try:
        while not reader.over:
            for chunk in reader.feed(b"" if reader.error else next(waiting)):
                for delta in assembler.feed(chunk):
                    told.add(delta.kind, delta.text, delta.block, delta.offset)
        return told, assembler.finish()
    except BackendError as error:
        check_error(error)
        return told, assembler.partial("error", str(error))


@given(ANSWERS, CUTS, MEDIA_TYPES, st.booleans())
@examples(2000)
def test_any_bytes_become_a_message_or_a_typed_error(
    answer: bytes, cuts: list[int], media_type: str, text_tool_calls: bool
) -> None:
    start = time.perf_counter()
    told, message = read(cut(answer, cuts), media_type, text_tool_calls=text_tool_calls)
    assert time.perf_counter() - start < SLOW
    told.check(message)
    check_message(message)


@given(ANSWERS, CUTS)
@examples(500)
def test_where_bytes_are_cut_makes_no_difference(answer: bytes, cuts: list[int]) -> None:
    _, whole = read([answer] if answer else [], "text/event-stream", text_tool_calls=False)
    _, pieces = read(cut(answer, cuts), "text/event-stream", text_tool_calls=False)
    assert without_chance(pieces) == without_chance(whole)


def without_chance(message: AssistantMessage) -> dict[str, Any]:
    """A message without its time, and without the ids that were made here."""
    fields = dump_message(message)
    fields.pop("timestamp")
    calls: list[dict[str, Any]] = [block for block in fields["content"] if "arguments" in block]
    for call in calls:
        if call["id"].startswith("call_"):
            del call["id"]
    return fields


@given(st.sampled_from(bodies()), NUMBERS, st.booleans())
@examples(500)
def test_an_answer_that_is_cut_off_runs_no_call_that_was_not_whole(body: bytes, at: int, text_tool_calls: bool) -> None:
    _, whole = read([body], "text/event-stream", text_tool_calls=text_tool_calls)
    _, message = read([body[: at % len(body)] or b"\n"], "text/event-stream", text_tool_calls=text_tool_calls)
    known = [(call.name, call.arguments) for call in whole.tool_calls]
    for call in calls_to_run(message):
        assert (call.name, call.arguments) in known


def calls_to_run(message: AssistantMessage) -> list[ToolCall]:
    return [call for call in message.tool_calls if message.stop_reason == "tool_calls" and call.raw_arguments is None]


@given(SPOILT | st.binary(max_size=300))
@examples(500)
def test_any_json_is_a_response_or_a_typed_error(body: bytes) -> None:
    try:
        response: object = json.loads(body)
    except (ValueError, RecursionError):
        response = body.decode("utf-8", "replace")
    try:
        message = extract(response, tool_names=TOOLS, text_tool_calls=True)
    except YiemAgentError as error:
        check_error(error)
    else:
        check_message(message)


MANY = 30_000
NASTY: Mapping[str, bytes] = {
    "objects that are never whole": b'data: {"a":}\n' * MANY,
    "objects without a line's end": b'data: {"a": 1}' * MANY,
    "lists in lists": b"data: " + b"[" * MANY * 10 + b"\n\n",
    "bare braces": b"{\n" * MANY,
    "bare objects that do not end": b'{"a":1}\n{\n' * MANY,
    "empty events": b"data: {}\n\n" * MANY,
    "no data": b"data\n" * MANY,
    "names alone": b"event: x\n" * MANY,
    "names between data": b'event: x\ndata: {"a":}\n' * MANY,
    "carriage returns": b"\r" * MANY * 10,
    "one long line": b"x" * MANY * 50,
    "one long string": b'data: {"choices":[{"delta":{"content":"' + b"x" * MANY * 30 + b'"}}]}\n\n',
    "tags that do not end": b'data: {"choices":[{"index":0,"delta":{"content":"<think"}}]}\n\n' * (MANY // 4),
    "closing brackets": b'data: {"choices":[{"index":0,"delta":{"content":"<"}}]}\n\n' * (MANY // 4),
    "open thoughts": b'data: {"choices":[{"index":0,"delta":{"content":"<think> <"}}]}\n\n' * (MANY // 4),
    "arguments that look whole": b'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":'
    b'{"name":"add","arguments":"{}}"}}]}}]}\n\n' * (MANY // 4),
    "arguments without a key": b'data: {"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"}"}}]}}]}\n\n'
    * (MANY // 4),
    "calls": b'data: {"choices":[{"delta":{"tool_calls":[{"function":{"name":"add"}}]}}]}\n\n' * (MANY // 4),
    "names that grow": b'data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"x"}}]}}]}\n\n'
    * (MANY // 4),
    "details": b'data: {"choices":[{"delta":{"reasoning_details":[{"type":"t","index":0,"text":"x"}]}}]}\n\n'
    * (MANY // 4),
    "text calls": b'data: {"choices":[{"delta":{"content":"<tool_call>{"}}]}\n\n' * (MANY // 4),
}


@pytest.mark.parametrize("nasty", NASTY)
def test_the_time_grows_no_faster_than_the_answer(nasty: str) -> None:
    def once(data: bytes) -> float:
        start = time.process_time()
        read(cut(data, range(0, len(data), 9973)), "text/event-stream", text_tool_calls=True)
        return time.process_time() - start

    def seconds(data: bytes) -> float:
        return min(once(data) for _ in range(3))  # a collection of all garbage may fall into one of them

    data = NASTY[nasty]
    quarter, whole = seconds(data[: len(data) // 4]), seconds(data)
    assert whole < 1 or whole < 10 * quarter, f"{quarter:.2f} s for a quarter, {whole:.2f} s for all"


# Over a socket


@given(WAITS, st.sampled_from(["retry-after", "retry-after-ms", "x-ratelimit-reset", "x-ratelimit-reset-tokens"]))
@examples(1000)
def test_any_header_says_how_long_to_wait_or_nothing(value: str, name: str) -> None:
    seconds = read_retry_after({name: value})
    assert seconds is None or seconds >= 0


def backend_of(server: FuzzServer, **options: Any) -> OpenAICompatible:
    patience = Timeouts(connect=2, first_byte=2, between_bytes=2, write=2)
    return OpenAICompatible(server.base_url, "m", timeout=patience, retries=0, **options)


@given(HTTP_ANSWERS, st.booleans(), st.sampled_from(["chat-completions", "responses"]))
@examples(300)
def test_any_answer_over_a_socket_becomes_a_message_or_a_typed_error(
    answer: HttpAnswer, stream: bool, api: Literal["chat-completions", "responses"]
) -> None:
    async def play() -> None:
        async with FuzzServer(answer) as server, backend_of(server, api=api) as backend, asyncio.timeout(SLOW):
            assembler = Assembler(tool_names=TOOLS)
            response = backend(MESSAGES, stream=stream)
            try:
                if stream:
                    async for piece in cast("Any", response):
                        assembler.feed(piece)
                    message = assembler.finish()
                else:
                    message = extract(await cast("Any", response), tool_names=TOOLS)
            except BackendError as error:
                check_error(error)
                message = assembler.partial("error", str(error))
            check_message(message)

    asyncio.run(play())


@given(HTTP_ANSWERS)
@examples(60)
def test_models_and_health_of_any_server_are_lists_and_sentences(answer: HttpAnswer) -> None:
    async def play() -> None:
        async with FuzzServer(answer) as server, backend_of(server) as backend, asyncio.timeout(SLOW):
            try:
                models = await backend.models()
            except BackendError as error:
                check_error(error)
            else:
                assert all(model.id for model in models)
            assert (await backend.health()).message

    asyncio.run(play())


class Grammar(EventGrammar):
    """The order of events; that deltas make the message is checked here, with what servers send again."""

    def _message_end(self, event: MessageEnd) -> None:
        self._open_turn(event).texts.clear()
        super()._message_end(event)


class Recorder:
    """An agent's tools and what they were called with, and its events."""

    def __init__(self) -> None:
        self.grammar = Grammar()
        self.called: list[tuple[str, Mapping[str, Any]]] = []
        self.told = Told()
        self.answers: list[tuple[Told, AssistantMessage]] = []

    def tools(self) -> list[Tool]:
        schema = {"type": "object"}
        return [
            Tool(name=name, description="A tool.", execute=self._execute(name), input_schema=schema) for name in TOOLS
        ]

    def _execute(self, name: str) -> Callable[..., Awaitable[str]]:
        async def execute(_call_id: str, arguments: dict[str, Any], *_: object) -> str:
            self.called.append((name, arguments))
            return "done"

        return execute

    def __call__(self, event: Event, _signal: object) -> None:
        self.grammar(event)
        if isinstance(event, MessageUpdate):
            self.told.add(event.kind, event.delta, event.block, event.offset)
        elif isinstance(event, MessageEnd):
            if isinstance(event.message, AssistantMessage):
                self.answers.append((self.told, event.message))
            self.told = Told()


@given(HTTP_ANSWERS, st.booleans())
@examples(200)
def test_an_agent_stays_whole_whatever_its_server_answers(answer: HttpAnswer, text_tool_calls: bool) -> None:
    async def play() -> None:
        recorder = Recorder()
        async with FuzzServer(answer, GOOD) as server, backend_of(server) as backend, asyncio.timeout(SLOW):
            limits = Limits(messages_per_minute=None)
            async with Agent(backend, tools=recorder.tools(), text_tool_calls=text_tool_calls, limits=limits) as agent:
                agent.subscribe(recorder)
                await agent.prompt("hello")
                check_history(agent.messages)
                assert (await agent.prompt("again")).text == "well"
            recorder.grammar.finish()
            check_history(agent.messages)
            for body in server.bodies:
                check_request(body["messages"])
            for told, message in recorder.answers:
                told.check(message)
            run = [(call.name, call.arguments) for _, message in recorder.answers for call in calls_to_run(message)]
            assert all(called in run for called in recorder.called)

    asyncio.run(play())
