"""What callers, models, tools, hooks and listeners do wrong: a typed error that names it, and no harm."""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest
from agent.script import Model, Recorder, call, check_agent, forever, history_of

from yiemagent_nb.core import concurrency
from yiemagent_nb.core.agent import Agent
from yiemagent_nb.core.backend import LlmCall
from yiemagent_nb.core.errors import InvalidMessageRoleError, InvalidParametersError, ToolNotSupportedError
from yiemagent_nb.core.events import AgentError, Event, TurnStart
from yiemagent_nb.core.messages import ToolResultMessage
from yiemagent_nb.core.models import LlmModel
from yiemagent_nb.core.results import ToolResult
from yiemagent_nb.core.tools import Tool, ToolContext, tool

pytestmark = pytest.mark.requirement("Y NFR-201", "Y FR-005", "Y FR-002")


class Unshowable:
    """A value that cannot even be looked at."""

    def __repr__(self) -> str:
        raise RuntimeError("do not look at me")


class Unreadable(Exception):  # noqa: N818 - its point is that it tells nothing
    """An error that cannot even be read."""

    def __str__(self) -> str:
        raise RuntimeError("do not read me")


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


def raiser(error: BaseException) -> Callable[[], object]:
    """A function that raises."""

    def fail() -> object:
        raise error

    return fail


# What a model answers


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
async def test_a_backend_that_raises_is_named_and_ends_the_run_alone(
    way: Callable[[Callable[[], object]], LlmCall], error: BaseException, told: str
) -> None:
    agent = Agent(way(raiser(error)))
    recorder = Recorder(agent)

    message = await agent.prompt("u")

    assert history_of(agent) == "u a,error"
    assert recorder.of_type(AgentError)[0].code == "BACKEND_ERROR"
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


@pytest.fixture
def short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not wait long for what does not stop."""
    monkeypatch.setattr(concurrency, "ABORT_GRACE", 0.01)


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


# Tools and their hooks


def cycle() -> list[object]:
    """A list that holds itself."""
    loop: list[object] = []
    loop.append(loop)
    return loop


@pytest.mark.parametrize("is_async", [False, True], ids=["in a thread", "async"])
@pytest.mark.parametrize(
    ("behaviour", "told"),
    [
        (raiser(ValueError("no good")), "bad raised ValueError: no good"),
        (raiser(SystemExit(3)), "bad raised SystemExit: 3"),
        (raiser(GeneratorExit()), "bad raised GeneratorExit"),
        (raiser(StopIteration()), "bad raised "),
        (raiser(asyncio.CancelledError()), "bad raised CancelledError"),
        (raiser(TimeoutError("mine")), "bad raised TimeoutError: mine"),
        (raiser(Unreadable()), "bad raised Unreadable"),
        (Unshowable, "cannot be shown"),
    ],
    ids=[
        "raises",
        "exits",
        "GeneratorExit",
        "StopIteration",
        "CancelledError",
        "TimeoutError",
        "unreadable",
        "unshowable",
    ],
)
@pytest.mark.requirement("Y P-004", "Y NFR-202")
async def test_a_tool_that_fails_in_any_way_is_an_error_result_that_names_it(
    behaviour: Callable[[], object], told: str, is_async: bool
) -> None:
    async def bad_async() -> object:
        """Fail."""
        return behaviour()

    def bad() -> object:
        """Fail."""
        return behaviour()

    agent = Agent(
        Model([call("bad"), call("good")], "sorry"), tools=[tool(bad_async if is_async else bad, name="bad"), good]
    )
    recorder = Recorder(agent)

    answer = await agent.prompt("u")

    assert answer.text == "sorry"
    failed, fine = (message for message in agent.messages if isinstance(message, ToolResultMessage))
    assert failed.is_error
    assert told in failed.text
    assert fine.text == "good"
    await check_agent(agent, recorder)


def good() -> str:
    """Work well."""
    return "good"


@pytest.mark.parametrize(
    "value", [cycle(), object(), {1, 2}, {("a", 1): 2}, b"\x00", float("nan"), lambda: None], ids=repr
)
async def test_a_tool_that_returns_something_unserialisable_gives_the_model_text(value: object) -> None:
    def odd() -> object:
        """Return something odd."""
        return value

    model = Model([call("odd")], "thanks")
    agent = Agent(model, tools=[odd])
    recorder = Recorder(agent)

    answer = await agent.prompt("u")

    assert answer.text == "thanks"
    assert isinstance(model.requests[1].messages[-1]["content"], str)
    await check_agent(agent, recorder)


@pytest.mark.usefixtures("short_grace")
@pytest.mark.requirement("A SPEC-7.1")
async def test_a_tool_that_hangs_is_ended_by_its_timeout_and_the_run_goes_on() -> None:
    async def slow() -> None:
        """Never end."""
        await forever()

    def blocks(context: ToolContext) -> str:
        """Block its thread."""
        context.signal.wait_threadsafe()
        return "late"

    agent = Agent(
        Model([call("slow"), call("blocks")], "sorry"), tools=[tool(slow, timeout=0.01), tool(blocks, timeout=0.01)]
    )
    recorder = Recorder(agent)

    answer = await agent.prompt("u")

    assert answer.text == "sorry"
    results = [message for message in agent.messages if isinstance(message, ToolResultMessage)]
    assert [result.details["code"] for result in results] == ["EXECUTION_TIMEOUT"] * 2
    assert all(result.tool_name in result.text for result in results)
    await check_agent(agent, recorder)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ('{"a": 1', "not valid JSON"),
        ("[1, 2]", "not valid JSON"),
        ("{}", "Missing required arguments: a, b"),
        ('{"a": 1}', "Missing required arguments: b"),
        ('{"a": "one", "b": 2}', "a"),
        ('{"a": 1, "b": 2, "c": 3}', "c"),
    ],
)
@pytest.mark.requirement("Y SP-023", "Y SP-024", "A SPEC-7.1")
async def test_arguments_that_do_not_fit_are_an_error_result_and_nothing_runs(arguments: str, told: str) -> None:
    ran: list[int] = []

    def add(a: int, b: int) -> int:
        """Add two numbers."""
        ran.append(a)
        return a + b

    agent = Agent(Model([call("add", arguments)], "sorry"), tools=[add])
    recorder = Recorder(agent)

    await agent.prompt("u")

    result = agent.messages[2]
    assert isinstance(result, ToolResultMessage)
    assert result.details["code"] == "INVALID_PARAMETERS"
    assert told in result.text
    assert ran == []
    await check_agent(agent, recorder)


@pytest.mark.requirement("A SPEC-7.1")
async def test_an_unknown_tool_is_an_error_result_with_the_nearest_names() -> None:
    agent = Agent(Model([call("goood")], "sorry"), tools=[good])
    await agent.prompt("u")
    result = agent.messages[2]
    assert isinstance(result, ToolResultMessage)
    assert result.details["code"] == "TOOL_NOT_FOUND"
    assert "Did you mean good?" in result.text


@pytest.mark.parametrize("hook", ["before_tool_call", "after_tool_call"])
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize(
    ("behaviour", "told"),
    [
        (raiser(ValueError("no good")), "raised ValueError: no good"),
        (raiser(SystemExit(3)), "raised SystemExit: 3"),
        (raiser(Unreadable()), "raised Unreadable"),
        (lambda: 17, "returned int"),
        (lambda: "yes", "returned str"),
    ],
    ids=["raises", "exits", "unreadable", "a number", "a string"],
)
@pytest.mark.requirement("Y FR-005", "Y US-004", "Y P-004", "A SPEC-7.1")
async def test_a_hook_of_a_call_that_fails_is_an_error_result_that_names_it(
    hook: str, behaviour: Callable[[], object], told: str, is_async: bool
) -> None:
    async def a_hook_async(*_: object) -> Any:
        return behaviour()

    def a_hook(*_: object) -> Any:
        return behaviour()

    given: Any = a_hook_async if is_async else a_hook
    agent = Agent(Model([call("good")], "sorry"), tools=[good])
    if hook == "before_tool_call":
        agent.set_hooks(before_tool_call=given)
    else:
        agent.set_hooks(after_tool_call=given)
    recorder = Recorder(agent)

    answer = await agent.prompt("u")

    assert answer.text == "sorry"
    result = agent.messages[2]
    assert isinstance(result, ToolResultMessage)
    assert result.is_error
    assert result.details["code"] == "HOOK_ERROR"
    assert f"The hook {given.__name__} {told}" in result.text
    await check_agent(agent, recorder)


async def test_a_keyboard_interrupt_in_a_tool_or_a_hook_aborts_the_run() -> None:
    def interrupts(*_: object) -> Any:
        """Press Ctrl-C."""
        raise KeyboardInterrupt

    in_a_tool = Agent(
        Model([call("interrupts"), call("good")]), tools=[tool(interrupts_alone, name="interrupts"), good]
    )
    in_a_hook = Agent(Model([call("good")]), tools=[good], before_tool_call=interrupts)
    for agent in (in_a_tool, in_a_hook):
        recorder = Recorder(agent)
        await agent.prompt("u")
        assert recorder.order.endswith("TE AE")
        assert len(recorder.of_type(TurnStart)) == 1, "a further request was sent"
        agent.set_hooks(before_tool_call=None)
        await check_agent(agent, recorder)


async def interrupts_alone() -> str:
    """Press Ctrl-C."""
    raise KeyboardInterrupt


# Listeners and sinks


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("kind", [ValueError, SystemExit, asyncio.CancelledError, Unreadable])
@pytest.mark.parametrize("place", ["listener", "sink"])
@pytest.mark.requirement("Y SD-007")
async def test_a_listener_or_sink_that_raises_is_reported_once_and_harms_nothing(
    place: str, kind: type[BaseException], is_async: bool, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[str] = []

    def broken(event: Event, _: object = None) -> None:
        heard.append(event.type)
        raise kind

    async def broken_async(event: Event, _: object = None) -> None:
        heard.append(event.type)
        raise kind

    agent = Agent(Model(["Hel", "lo", call("good")], "done"), tools=[good])
    recorder = Recorder(agent)
    given = broken_async if is_async else broken
    if place == "sink":
        agent.set_event_sink(given)
    else:
        agent.subscribe(given)

    with caplog.at_level(logging.WARNING, "yiemagent_nb"):
        answer = await agent.prompt("u")
        await agent.wait_idle()

    assert answer.text == "done"
    assert heard[-1] == "agent_end", "it stays subscribed"
    reports = recorder.of_type(AgentError)
    assert [report.code for report in reports] == ["LISTENER_ERROR"]
    assert given.__name__ in reports[0].message
    assert [record.levelname for record in caplog.records if record.name == "yiemagent_nb"] == ["WARNING"]
    agent.set_event_sink(None)
    await check_agent(agent, recorder)


# What a caller gives


def undescribed() -> None:
    pass


def execute(*_: object) -> ToolResult:
    """Do nothing."""
    return ToolResult("nothing")


@pytest.mark.parametrize(
    ("options", "error", "told"),
    [
        ({"llm_call": 17}, InvalidParametersError, "llm_call must be callable, not int"),
        ({"before_tool_call": 17}, InvalidParametersError, "before_tool_call"),
        ({"after_tool_call": [good, 17]}, InvalidParametersError, "after_tool_call"),
        ({"tools": [good, good]}, InvalidParametersError, "'good'"),
        ({"tools": good}, ToolNotSupportedError, "list of tools"),
        ({"tools": [17]}, ToolNotSupportedError, "17"),
        ({"tools": [int]}, ToolNotSupportedError, "class int"),
        ({"tools": [lambda: 1]}, InvalidParametersError, "name"),
        ({"tools": [undescribed]}, InvalidParametersError, "description of tool 'undescribed'"),
        ({"messages": [17]}, InvalidParametersError, "int is no message"),
        ({"messages": [{"role": "boss", "content": "x"}]}, InvalidMessageRoleError, "boss"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_a_caller_gives_wrong_raises_an_error_that_names_it(
    options: dict[str, Any], error: type[Exception], told: str
) -> None:
    defaults: dict[str, Any] = {"llm_call": Model()}
    with pytest.raises(error) as caught:
        Agent(**(defaults | options))
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"name": "a b"}, "a b"),
        ({"name": "x" * 65}, "65 characters"),
        ({"description": " "}, "description of tool 'a'"),
        ({"input_schema": {"type": "objekt"}}, "input_schema of tool 'a'"),
        ({"input_schema": 17}, "input_schema of tool 'a'"),
        ({"timeout": 0}, "timeout of tool 'a'"),
        ({"execution_mode": "somehow"}, "execution_mode of tool 'a'"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_tool_with_a_wrong_field_raises_an_error_that_names_tool_and_field(fields: dict[str, Any], told: str) -> None:
    defaults: dict[str, Any] = {"name": "a", "description": "x", "execute": execute}
    with pytest.raises(InvalidParametersError) as caught:
        Tool(**(defaults | fields))
    assert told in str(caught.value)


@pytest.mark.parametrize("mode", ["one at a time", "", None])
@pytest.mark.parametrize("option", ["steering_mode", "follow_up_mode", "tool_execution", "thinking_level", "runtime"])
def test_an_option_that_is_none_of_its_words_is_refused_by_name(option: str, mode: Any) -> None:
    options: dict[str, Any] = {option: mode}
    with pytest.raises(InvalidParametersError, match=option.partition("_")[0]):
        Agent(Model(), **options)


async def test_a_backend_with_a_signature_of_its_own_gets_only_what_it_declares() -> None:
    seen: list[object] = []

    def narrow(messages: object) -> str:
        seen.append(messages)
        return "narrow"

    def wide(messages: object, tools: object, signal: object, *, temperature: float = 1.0) -> str:
        seen.append((messages, tools, signal, temperature))
        return "wide"

    agent = Agent(narrow, tools=[good], options={"temperature": 0.5, "unknown": 1})
    assert (await agent.prompt("u")).text == "narrow"
    agent.set_llm_call(wide)
    assert (await agent.prompt("v")).text == "wide"
    assert isinstance(seen[1], tuple)
    assert seen[1][3] == 0.5
    assert inspect.signature(narrow).parameters.keys() == {"messages"}
    await check_agent(agent)


async def test_a_backend_that_cannot_be_called_so_is_an_error_that_names_it() -> None:
    def nothing() -> str:
        return "never"

    agent = Agent(nothing)
    answer = await agent.prompt("u")
    assert answer.stop_reason == "error"
    assert "nothing" in str(answer.error_message)
    await check_agent(agent)
