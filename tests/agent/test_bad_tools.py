"""What tools, their hooks, and listeners do wrong: an error that names them, and no harm."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest
from agent.script import Model, Recorder, call, check_agent, forever
from agent.wrongs import Unreadable, Unshowable, good, raiser

from yiemagent_nb.core.agent import Agent
from yiemagent_nb.core.events import AgentError, Event, TurnStart
from yiemagent_nb.core.messages import ToolResultMessage
from yiemagent_nb.core.tools import ToolContext, tool

pytestmark = pytest.mark.requirement("Y NFR-201", "Y FR-005", "Y FR-002")


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


@pytest.mark.parametrize(
    "value",
    [cycle(), object(), {1, 2}, {("a", 1): 2}, b"\x00", float("nan"), lambda: None],
    ids=lambda value: type(value).__name__,
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
@pytest.mark.requirement("A SPEC-7.1", "Y risk table")
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


@pytest.mark.parametrize("hook", ["prepare_arguments", "validate_required_args"])
@pytest.mark.parametrize("behaviour", [raiser(ValueError("no good")), lambda: 17], ids=["raises", "rubbish"])
@pytest.mark.requirement("Y risk table", "Y FR-005", "Y US-004", "Y SP-024")
async def test_a_hook_of_a_tool_that_fails_is_an_error_result_that_names_both(
    hook: str, behaviour: Callable[[], object]
) -> None:
    ran: list[int] = []

    def add(a: int, b: int) -> int:
        """Add two numbers."""
        ran.append(a)
        return a + b

    def failing(_: dict[str, Any]) -> Any:
        return behaviour()

    made = tool(
        add,
        prepare_arguments=failing if hook == "prepare_arguments" else None,
        validate_required_args=failing if hook == "validate_required_args" else None,
    )
    agent = Agent(Model([call("add", {"a": 1, "b": 2})], "sorry"), tools=[made])
    recorder = Recorder(agent)

    answer = await agent.prompt("u")

    assert answer.text == "sorry"
    result = agent.messages[2]
    assert isinstance(result, ToolResultMessage)
    assert result.details["code"] == "HOOK_ERROR"
    assert f"{hook} of tool 'add'" in result.text
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

    def say_more(*_: object) -> None:
        in_a_tool.follow_up("waits")

    in_a_tool = Agent(
        Model([call("interrupts"), call("good")]), tools=[tool(interrupts_alone, name="interrupts"), good]
    )
    in_a_hook = Agent(Model([call("good")]), tools=[good], before_tool_call=interrupts)
    in_a_tool.set_hooks(before_tool_call=say_more)
    for agent in (in_a_tool, in_a_hook):
        recorder = Recorder(agent)
        await agent.prompt("u")
        assert recorder.order.endswith("TE AE")
        await agent.wait_idle()
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
