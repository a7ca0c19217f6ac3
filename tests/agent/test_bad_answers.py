"""What a backend, or a hook before a request, does wrong: a typed error that names it, and no harm."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest
from agent.script import Model, Recorder, check_agent, forever, history_of
from agent.wrongs import Unreadable, raiser

from yiemagent_nb.core.agent import Agent
from yiemagent_nb.core.backend import LlmCall
from yiemagent_nb.core.events import AgentError, Event
from yiemagent_nb.core.models import LlmModel

pytestmark = pytest.mark.requirement("Y NFR-201", "Y FR-005", "Y FR-002")


class Described:
    """A backend that says what it is."""

    provider = "described"
    model = LlmModel(id="d")

    def __init__(self, function: Callable[[], object]) -> None:
        self._function = function

    async def __call__(self, _: object) -> object:
        """Answer."""
        return self._function()


def described(function: Callable[[], object]) -> LlmCall:
    """An answer of a backend that says what it is."""
    return Described(function)


def asynchronous(function: Callable[[], object]) -> LlmCall:
    """An answer of a coroutine function."""

    async def backend(_: object) -> object:
        return function()

    return backend


def synchronous(function: Callable[[], object]) -> LlmCall:
    """An answer of a plain function, which runs in a thread."""

    def backend(_: object) -> object:
        return function()

    return backend


def streaming(function: Callable[[], object]) -> LlmCall:
    """An answer in the middle of a stream."""

    async def backend(_: object) -> AsyncIterator[object]:
        yield "Hel"
        yield function()

    return backend


def generating(function: Callable[[], object]) -> LlmCall:
    """An answer in the middle of a stream from a thread."""

    def backend(_: object) -> Iterator[object]:
        yield "Hel"
        yield function()

    return backend


WAYS = [described, asynchronous, synchronous, streaming, generating]
ways = pytest.mark.parametrize("way", WAYS)


@ways
@pytest.mark.parametrize(
    ("answer", "came"),
    [
        (None, "None"),
        (17, "int (17)"),
        (object, "type"),
        (b"bytes", "bytes"),
        ({}, "an empty mapping"),
        ({"wrong": 1, "keys": 2}, "a mapping with the keys wrong, keys"),
        ([17], "int (17)"),
        ([], "list ([])"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
@pytest.mark.requirement("Y SP-018", "Y P-003")
async def test_an_answer_of_no_known_form_is_an_error_that_says_what_came_and_what_was_expected(
    way: Callable[[Callable[[], object]], LlmCall], answer: object, came: str
) -> None:
    agent = Agent(way(lambda: answer))
    recorder = Recorder(agent)

    message = await agent.prompt("u")

    assert history_of(agent) == "u a,error"
    assert message.text == ("Hel" if way in (streaming, generating) else "")
    errors = recorder.of_type(AgentError)
    assert [error.code for error in errors] == ["MALFORMED_RESPONSE"]
    assert "llm_call" in errors[0].message
    assert came in errors[0].message
    assert "expected" in errors[0].message
    assert errors[0].message == message.error_message
    await check_agent(agent, recorder)


@ways
@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ValueError("no good"), "ValueError: no good"),
        (SystemExit(3), "SystemExit: 3"),
        (asyncio.CancelledError(), "CancelledError"),
        (TimeoutError("too late"), "TimeoutError: too late"),
        (Unreadable(), "Unreadable"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
@pytest.mark.requirement("Y risk table")
async def test_a_backend_that_raises_is_named_and_ends_the_run_alone(
    way: Callable[[Callable[[], object]], LlmCall], error: BaseException, told: str
) -> None:
    seen: list[Event] = []
    agent = Agent(way(raiser(error)), event_sink=seen.append)
    recorder = Recorder(agent)

    message = await agent.prompt("u")

    assert history_of(agent) == "u a,error"
    assert recorder.of_type(AgentError)[0].code == "BACKEND_ERROR"
    assert recorder.of_type(AgentError)[0] in seen, "the sink sees it too"
    assert told in str(message.error_message)
    assert ("Described" if way is described else "backend") in str(message.error_message)
    await check_agent(agent, recorder)


@ways
async def test_a_keyboard_interrupt_in_a_backend_aborts_the_run(way: Callable[[Callable[[], object]], LlmCall]) -> None:
    agent = Agent(way(raiser(KeyboardInterrupt())))
    recorder = Recorder(agent)

    message = await agent.prompt("u")

    assert message.stop_reason == "aborted"
    await check_agent(agent, recorder)


@pytest.mark.parametrize("error", [StopIteration("x"), StopAsyncIteration("x"), GeneratorExit("x")], ids=repr)
@pytest.mark.parametrize("way", [asynchronous, synchronous])
async def test_a_backend_that_raises_what_ends_iterations_is_an_error(
    way: Callable[[Callable[[], object]], LlmCall], error: BaseException
) -> None:
    agent = Agent(way(raiser(error)))
    recorder = Recorder(agent)

    message = await agent.prompt("u")

    assert message.stop_reason == "error"
    await check_agent(agent, recorder)


@pytest.mark.parametrize("way", [described, asynchronous, synchronous])
@pytest.mark.parametrize("answer", [{"error": {"message": "overloaded"}}, {"error": "overloaded"}])
async def test_an_error_mapping_is_an_error_with_the_servers_own_words(
    way: Callable[[Callable[[], object]], LlmCall], answer: object
) -> None:
    agent = Agent(way(lambda: answer))
    recorder = Recorder(agent)

    message = await agent.prompt("u")

    assert message.stop_reason == "error"
    assert "overloaded" in str(message.error_message)
    await check_agent(agent, recorder)


class Dumps:
    """An object as OpenAI's client gives them."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self._fields = fields

    def model_dump(self) -> Mapping[str, Any]:
        """The fields."""
        return self._fields


ENVELOPE = {"choices": [{"message": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"}]}


@pytest.mark.parametrize("way", [described, asynchronous, synchronous])
@pytest.mark.parametrize(
    "answer",
    ["Hello", ["Hello"], {"content": "Hello"}, {"message": {"content": "Hello"}}, ENVELOPE, Dumps(ENVELOPE)],
    ids=["string", "list", "mapping", "nested", "OpenAI", "object"],
)
@pytest.mark.requirement("Y SP-017", "Y SP-018", "Y SD-009")
async def test_an_answer_of_any_known_form_is_read(
    way: Callable[[Callable[[], object]], LlmCall], answer: object
) -> None:
    agent = Agent(way(lambda: answer))
    recorder = Recorder(agent)

    assert (await agent.prompt("u")).text == "Hello"
    await check_agent(agent, recorder)


def chunk(content: str | None, finish: str | None = None) -> dict[str, Any]:
    """A chunk as OpenAI streams them."""
    delta = {} if content is None else {"content": content}
    return {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


@pytest.mark.parametrize("form", ["dicts", "objects"])
@pytest.mark.parametrize(
    "kind", ["async generator", "sync generator", "coroutine that gives an iterator", "list iterator"]
)
@pytest.mark.requirement("Y SP-017", "Y SP-018", "Y SD-009")
async def test_openais_chunks_stream_from_any_kind_of_iterator(form: str, kind: str) -> None:
    chunks = [chunk("Hel"), chunk("lo"), chunk(None, "stop")]
    pieces: Sequence[object] = chunks if form == "dicts" else [Dumps(each) for each in chunks]

    async def stream(_: object = None) -> AsyncIterator[object]:
        for piece in pieces:
            yield piece

    def generate(_: object) -> Iterator[object]:
        yield from pieces

    async def give(_: object) -> AsyncIterator[object]:
        return stream()

    def iterator(_: object) -> Iterator[object]:
        return iter(pieces)

    backends: Mapping[str, LlmCall] = {
        "async generator": stream,
        "sync generator": generate,
        "coroutine that gives an iterator": give,
        "list iterator": iterator,
    }
    agent = Agent(backends[kind])
    recorder = Recorder(agent)

    answer = await agent.prompt("u")

    assert (answer.text, answer.stop_reason) == ("Hello", "end_turn")
    assert recorder.order == "AS TS MS(u) ME(u) MS(a) MU ME(a) TE AE"
    await check_agent(agent, recorder)


async def test_a_stream_of_chunks_that_stops_before_its_end_is_an_error_and_keeps_what_came() -> None:
    async def stream(_: object) -> AsyncIterator[object]:
        yield chunk("Hel")

    agent = Agent(stream)
    recorder = Recorder(agent)

    answer = await agent.prompt("u")

    assert (answer.text, answer.stop_reason) == ("Hel", "error")
    assert recorder.of_type(AgentError)[0].code == "STREAM_INTERRUPTED"
    await check_agent(agent, recorder)


async def test_a_stream_without_a_piece_is_an_error() -> None:
    agent = Agent(Model([lambda: None]))
    recorder = Recorder(agent)

    answer = await agent.prompt("u")

    assert answer.stop_reason == "error"
    assert "nothing in it" in str(answer.error_message)
    await check_agent(agent, recorder)


@pytest.mark.usefixtures("short_grace")
@pytest.mark.parametrize("kind", ["async", "swallows its cancellation", "in a thread", "an iterator in a thread"])
@pytest.mark.requirement("Y SP-022", "Y SD-008")
async def test_an_abort_ends_a_backend_that_never_answers(kind: str) -> None:
    started, released = asyncio.Event(), threading.Event()
    over = asyncio.Event()
    loop = asyncio.get_running_loop()

    async def waits(_: object) -> str:
        started.set()
        await forever()
        return "never"

    async def swallows(_: object) -> str:
        started.set()
        while not over.is_set():
            try:
                await over.wait()
            except asyncio.CancelledError:
                continue
        return "late"

    def blocks(_: object) -> str:
        loop.call_soon_threadsafe(started.set)
        released.wait(60)
        return "late"

    def iterates(_: object) -> Iterator[str]:
        yield "Hel"
        loop.call_soon_threadsafe(started.set)
        released.wait(60)

    backends: Mapping[str, LlmCall] = {
        "async": waits,
        "swallows its cancellation": swallows,
        "in a thread": blocks,
        "an iterator in a thread": iterates,
    }
    agent = Agent(backends[kind])
    recorder = Recorder(agent)
    running = asyncio.create_task(agent.prompt("u"))
    await started.wait()

    agent.abort()
    answer = await running

    assert answer.stop_reason == "aborted"
    assert history_of(agent) == "u a,aborted"
    await check_agent(agent, recorder)
    released.set()
    over.set()
    await asyncio.sleep(0)
    assert "late" not in [getattr(message, "text", "") for message in agent.messages]


# Hooks before a request


@pytest.mark.parametrize("hook", ["prepare_context", "format_messages"])
@pytest.mark.parametrize("way", [described, asynchronous])
@pytest.mark.parametrize(
    ("behaviour", "told"),
    [
        (raiser(ValueError("no good")), "raised ValueError: no good"),
        (raiser(SystemExit(3)), "raised SystemExit: 3"),
        (lambda: None, "returned NoneType"),
        (lambda: 17, "returned int"),
        (lambda: {"role": "user"}, "returned dict"),
    ],
    ids=["raises", "exits", "nothing", "a number", "a mapping"],
)
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@pytest.mark.requirement("Y FR-005", "Y US-004")
async def test_a_hook_before_a_request_that_fails_is_named_and_sends_nothing(
    hook: str,
    way: Callable[[Callable[[], object]], LlmCall],
    behaviour: Callable[[], object],
    told: str,
    is_async: bool,
) -> None:
    asked: list[object] = []

    async def a_hook_async(_: object) -> Any:
        return behaviour()

    def a_hook(_: object) -> Any:
        return behaviour()

    given: Any = a_hook_async if is_async else a_hook
    agent = Agent(way(lambda: asked.append(1) or "Hello"))
    agent.set_hooks(
        prepare_context=given if hook == "prepare_context" else None,
        format_messages=given if hook == "format_messages" else None,
    )
    recorder = Recorder(agent)

    answer = await agent.prompt("u")

    assert answer.stop_reason == "error"
    assert recorder.of_type(AgentError)[0].code == "HOOK_ERROR"
    assert f"The hook {given.__name__} {told}" in str(answer.error_message)
    assert asked == []
    agent.set_hooks(prepare_context=None, format_messages=None)
    await check_agent(agent, recorder)
