from __future__ import annotations

import asyncio
import contextvars
import json
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.strategies import json_values, wild_text

from yiemagent_nb.core import concurrency
from yiemagent_nb.core.approval import Approvals
from yiemagent_nb.core.errors import RateLimitedError
from yiemagent_nb.core.events import Event, ToolExecutionUpdate
from yiemagent_nb.core.hooks import AfterToolCallContext, AgentContext, BeforeToolCallContext, BeforeToolCallResult
from yiemagent_nb.core.lifecycle import (
    CallScope,
    ExecutedToolCall,
    ImmediateOutcome,
    PreparedToolCall,
    create_tool_result_message,
    execute_prepared_tool_call,
    finalize_executed_tool_call,
    prepare_tool_call,
)
from yiemagent_nb.core.messages import AssistantToolCallMessage, ImageContent, ToolCall, dump_message
from yiemagent_nb.core.models import Usage
from yiemagent_nb.core.results import ToolResult
from yiemagent_nb.core.signal import AbortSignal
from yiemagent_nb.core.tools import Tool, ToolContext, as_tools, current_agent, tool

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


async def async_execute(_id: str, arguments: dict[str, Any], _signal: AbortSignal, _report: Any, /) -> Any:
    return f"a is {arguments['a']}"


def make(execute: Callable[..., Any] = async_execute, name: str = "f", **fields: Any) -> Tool:
    return Tool(name=name, description="Do it.", execute=execute, input_schema=SCHEMA, **fields)


@dataclass
class Life:
    """The life of one call, with what was told meanwhile."""

    tools: Iterable[Tool] = ()
    before: tuple[Callable[..., Any], ...] = ()
    after: tuple[Callable[..., Any], ...] = ()
    signal: AbortSignal = field(default_factory=AbortSignal)
    events: list[Event] = field(default_factory=list[Event])
    steps: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list[tuple[str, Mapping[str, Any]]])

    def scope(self, call: ToolCall) -> CallScope:
        return CallScope(
            message=AssistantToolCallMessage(tool_calls=[call]),
            context=AgentContext(tools=as_tools(self.tools)),
            signal=self.signal,
            emit=self.events.append,
            approvals=Approvals(self.events.append),
            before_hooks=self.before,
            after_hooks=self.after,
            trace=lambda step, data: self.steps.append((step, data)),
        )

    async def prepare(self, call: ToolCall) -> PreparedToolCall | ImmediateOutcome:
        return await prepare_tool_call(call, self.scope(call))

    async def run(self, call: ToolCall | None = None) -> ToolResult:
        call = call or ToolCall(id="c1", name="f", arguments={"a": 1})
        scope = self.scope(call)
        prepared = await prepare_tool_call(call, scope)
        if isinstance(prepared, ImmediateOutcome):
            return prepared.result
        return await finalize_executed_tool_call(await execute_prepared_tool_call(prepared, scope), scope)


def ask_nothing(*_: Any) -> None:
    """A hook that lets everything be."""


def code(result: ToolResult) -> str:
    """The code of an error result."""
    assert result.is_error
    return cast("dict[str, str]", result.details)["code"]


# --- Preparing ---------------------------------------------------------------------------------


@pytest.mark.requirement("Y FR-005", "A FR-002")
async def test_a_call_goes_through_all_its_phases() -> None:
    life = Life([make()])
    result = await life.run()
    assert (result.text, result.is_error) == ("a is 1", False)
    assert [step for step, _ in life.steps] == ["call.lookup", "call.validated", "call.executing", "call.executed"]
    assert all(data["tool_call_id"] == "c1" and data["tool_name"] == "f" for _, data in life.steps)


@pytest.mark.requirement("Y FR-005", "A SPEC-7.1")
async def test_an_unknown_tool_is_answered_with_the_nearest_names() -> None:
    life = Life([make(name="get_weather"), make(name="get_whether"), make(name="add")])
    result = await life.run(ToolCall(name="get_weathr", arguments={"a": 1}))
    assert code(result) == "TOOL_NOT_FOUND"
    assert 'There is no tool named "get_weathr". Did you mean get_weather or get_whether?' in result.text


@pytest.mark.requirement("Y FR-005", "A SPEC-7.1")
@pytest.mark.parametrize(("tools", "hint"), [((), "Tools: none."), ((make(name="add"),), "Tools: add.")])
async def test_a_name_like_no_other_is_answered_with_the_tools_that_there_are(
    tools: tuple[Tool, ...], hint: str
) -> None:
    assert hint in (await Life(tools).run(ToolCall(name="zzz"))).text


@pytest.mark.requirement("Y FR-005", "A SPEC-7.1")
async def test_a_call_whose_arguments_did_not_parse_never_runs() -> None:
    ran: list[str] = []
    result = await Life([make(lambda *_: ran.append("ran"))]).run(ToolCall(name="f", raw_arguments='{"a": 1'))
    assert code(result) == "INVALID_PARAMETERS"
    assert "not valid JSON" in result.text
    assert ran == []


@pytest.mark.requirement("Y FR-005", "Y SP-023")
async def test_missing_arguments_are_named() -> None:
    result = await Life([make()]).run(ToolCall(name="f"))
    assert result.text.startswith("Missing required arguments: a")


@pytest.mark.requirement("Y FR-005", "Y US-004")
@pytest.mark.parametrize("reason", ["Not on Sundays.", None])
async def test_a_hook_may_block_a_call(reason: str | None) -> None:
    ran: list[str] = []

    def no(_context: BeforeToolCallContext, _signal: AbortSignal) -> BeforeToolCallResult:
        return BeforeToolCallResult(block=True, reason=reason)

    result = await Life([make(lambda *_: ran.append("ran"))], before=(no,)).run()
    assert result.is_error
    assert result.text == (reason or "The call was blocked.")
    assert result.details == {"blocked": True, "hook": "no"}
    assert ran == []


@pytest.mark.requirement("Y FR-005", "Y US-004")
@pytest.mark.parametrize("answer", [{"a": 2}, BeforeToolCallResult(arguments={"a": 2})], ids=["mapping", "result"])
async def test_a_hook_may_change_the_arguments(answer: Any) -> None:
    async def change(_context: BeforeToolCallContext, _signal: AbortSignal) -> Any:
        await asyncio.sleep(0)
        return answer

    assert (await Life([make()], before=(change,)).run()).text == "a is 2"


@pytest.mark.requirement("Y FR-005", "Y US-004")
async def test_changed_arguments_are_validated_again() -> None:
    result = await Life([make()], before=(lambda *_: {"a": "many"},)).run()
    assert code(result) == "INVALID_PARAMETERS"
    assert "integer" in result.text


@pytest.mark.requirement("Y FR-005", "Y US-004")
async def test_hooks_are_asked_in_order_and_see_what_the_ones_before_changed() -> None:
    seen: list[dict[str, Any]] = []

    def add_one(context: BeforeToolCallContext, _signal: AbortSignal) -> dict[str, Any]:
        seen.append(context.arguments)
        return {"a": context.arguments["a"] + 1}

    assert (await Life([make()], before=(add_one, add_one)).run()).text == "a is 3"
    assert seen == [{"a": 1}, {"a": 2}]


@pytest.mark.requirement("Y FR-005")
async def test_a_hook_gets_a_copy_of_the_arguments() -> None:
    def spoil(context: BeforeToolCallContext, _signal: AbortSignal) -> None:
        context.arguments["a"] = 99

    assert (await Life([make()], before=(spoil,)).run()).text == "a is 1"


@pytest.mark.requirement("Y FR-005")
async def test_after_a_hook_that_blocks_no_other_is_asked() -> None:
    asked: list[str] = []
    no: Callable[..., Any] = lambda *_: BeforeToolCallResult(block=True)  # noqa: E731
    await Life([make()], before=(no, lambda *_: asked.append("asked"))).run()
    assert asked == []


# --- Hooks that fail ---------------------------------------------------------------------------


class MuteError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


class StrangeError(BaseException):
    """No exception of the usual kind."""


ERRORS: list[BaseException] = [
    RuntimeError("broken \ud800"),
    MuteError(),
    SystemExit(3),
    asyncio.CancelledError("by itself"),
    TimeoutError("mine"),
    StopIteration("odd"),
    StrangeError("strange"),
    GeneratorExit(),
    ExceptionGroup("several", [ValueError("one")]),
]
by_name: Callable[[BaseException], str] = lambda error: type(error).__name__  # noqa: E731


def raising(error: BaseException) -> Callable[..., Any]:
    def hook(*_: Any) -> None:
        raise error

    return hook


def raising_async(error: BaseException) -> Callable[..., Any]:
    async def hook(*_: Any) -> None:
        await asyncio.sleep(0)
        raise error

    return hook


@pytest.mark.requirement("Y FR-005", "Y US-004", "Y NFR-202", "A SPEC-7.1")
@pytest.mark.parametrize("phase", ["before", "after"])
@pytest.mark.parametrize("make_hook", [raising, raising_async])
@pytest.mark.parametrize("error", ERRORS, ids=by_name)
async def test_a_hook_that_raises_becomes_an_error_result_that_names_it(
    phase: str, make_hook: Callable[[BaseException], Callable[..., Any]], error: BaseException
) -> None:
    result = await Life([make()], **cast("Any", {phase: (make_hook(error),)})).run()
    assert code(result) == "HOOK_ERROR"
    assert f"The hook hook raised {type(error).__name__}" in result.text.replace("RuntimeError: coroutine raised ", "")


@pytest.mark.requirement("Y FR-005", "Y US-004", "Y NFR-202")
@pytest.mark.parametrize("phase", ["before", "after"])
@pytest.mark.parametrize("answer", [True, "no", 5, [1], object(), ToolCall(name="f")], ids=lambda a: type(a).__name__)
async def test_rubbish_of_a_hook_becomes_an_error_result_that_names_it(phase: str, answer: Any) -> None:
    def rubbish(*_: Any) -> Any:
        return answer

    result = await Life([make()], **cast("Any", {phase: (rubbish,)})).run()
    assert code(result) == "HOOK_ERROR"
    assert f"The hook rubbish returned {type(answer).__name__}; expected" in result.text


@pytest.mark.requirement("Y FR-005", "Y NFR-202")
@pytest.mark.parametrize("verdict", [{"arguments": 5}, {"block": True, "reason": 5}], ids=repr)
async def test_rubbish_inside_a_verdict_becomes_an_error_result(verdict: dict[str, Any]) -> None:
    result = await Life([make()], before=(lambda *_: BeforeToolCallResult(**verdict),)).run()
    assert result.is_error
    assert result.text


@pytest.mark.requirement("Y FR-005", "Y SD-005")
async def test_what_hooks_note_stands_behind_the_result_whatever_it_is() -> None:
    def noting(text: str, **fields: Any) -> Callable[..., Any]:
        return lambda *_: BeforeToolCallResult(note=text, **fields)

    def fail(*_: Any) -> Any:
        raise ValueError("no")

    def change(_: AfterToolCallContext) -> ToolResult:
        return ToolResult("changed")

    def nothing(*_: Any) -> ToolResult:
        return ToolResult()

    notes = (noting("one"), noting("two"))
    ended = {
        "a is 1\n\none\n\ntwo": Life([make()], before=notes),
        "f raised ValueError: no": Life([make(fail)], before=notes),
        "changed\n\none": Life([make()], before=notes, after=(change,)),
        "The hook fail raised ValueError: no": Life([make()], before=notes, after=(fail,)),
        "stop\n\none\n\ntwo\n\nthree": Life([make()], before=(*notes, noting("three", block=True, reason="stop"))),
        "The arguments of f are not valid": Life([make()], before=(*notes, noting("three", arguments={"a": "x"}))),
    }
    for start, life in ended.items():
        result = await life.run()
        assert result.text.startswith(start)
        assert "\n\none\n\ntwo" in result.text
    assert (await Life([make(nothing)], before=notes).run()).text == "one\n\ntwo"


@pytest.mark.requirement("Y FR-005", "Y NFR-202")
async def test_a_note_that_is_no_text_is_an_error_that_names_the_hook() -> None:
    def noting(*_: Any) -> BeforeToolCallResult:
        return BeforeToolCallResult(note=cast("str", 5))

    result = await Life([make()], before=(noting,)).run()
    assert code(result) == "HOOK_ERROR"
    assert "The hook noting gave 5 as a note; expected a text." in result.text


# --- Executing ---------------------------------------------------------------------------------


@pytest.mark.requirement("A FR-002", "A SPEC-3.1")
async def test_a_sync_tool_runs_in_a_thread_and_the_loop_goes_on() -> None:
    go = threading.Event()

    def execute(*_: Any) -> str:
        return f"{go.wait(5)} in {threading.current_thread().name}"

    running = asyncio.create_task(Life([make(execute)]).run())
    await asyncio.sleep(0)
    go.set()  # which only a loop that is not blocked can do
    assert (await running).text == "True in yiemagent_nb execute"


@pytest.mark.requirement("A FR-002", "A SPEC-3.1")
async def test_a_sync_tool_sees_the_context_variables_of_the_caller() -> None:
    who: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="nobody")
    who.set("the caller")
    current_agent.set("the agent")

    @tool
    def f(a: int, context: ToolContext) -> str:
        """Tell who called."""
        return f"{who.get()} {context.agent} {context.tool_call_id} {a}"

    assert (await Life([f]).run()).text == "the caller the agent c1 1"


@pytest.mark.requirement("A FR-002", "A SPEC-3.1")
async def test_a_sync_tool_may_return_an_awaitable() -> None:
    def execute(*arguments: Any) -> Awaitable[Any]:
        return async_execute(*arguments)

    assert (await Life([make(execute)]).run()).text == "a is 1"


@pytest.mark.requirement("Y FR-005", "Y NFR-202", "A SPEC-7.1")
@pytest.mark.parametrize("make_execute", [raising, raising_async])
@pytest.mark.parametrize("error", ERRORS, ids=by_name)
async def test_a_tool_that_raises_becomes_an_error_result_that_names_it(
    make_execute: Callable[[BaseException], Callable[..., Any]], error: BaseException
) -> None:
    result = await Life([make(make_execute(error))]).run()
    assert code(result) == "TOOL_FAILED"
    assert f"f raised {type(error).__name__}" in result.text.replace("RuntimeError: coroutine raised ", "")
    result.text.encode()


@pytest.mark.requirement("Y FR-005", "A SPEC-7.1")
@pytest.mark.parametrize("make_execute", [raising, raising_async])
async def test_a_typed_error_of_a_tool_keeps_its_code(
    make_execute: Callable[[BaseException], Callable[..., Any]],
) -> None:
    result = await Life([make(make_execute(RateLimitedError("Slow down.", "Wait a minute.")))]).run()
    assert code(result) == "RATE_LIMITED"
    assert result.text == "Slow down. Wait a minute. [RATE_LIMITED]"


@pytest.mark.requirement("Y FR-005", "A SPEC-7.1", "A FR-005")
async def test_an_async_tool_is_cancelled_when_its_time_is_over() -> None:
    ended: list[str] = []

    async def execute(_id: str, _arguments: dict[str, Any], signal: AbortSignal, _report: Any) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(f"aborted: {signal.aborted}")

    life = Life([make(execute, timeout=0.02)])
    result = await life.run()
    assert code(result) == "EXECUTION_TIMEOUT"
    assert "f did not finish within 0.02 s." in result.text
    assert ended == ["aborted: False"]
    assert not life.signal.aborted, "a timeout stops one call and not the run"


@pytest.mark.requirement("Y FR-005", "A SPEC-7.1")
async def test_a_sync_tool_hears_by_its_signal_that_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(concurrency, "ABORT_GRACE", 0.02)
    heard: list[bool] = []
    ended = threading.Event()

    def execute(_id: str, _arguments: dict[str, Any], signal: AbortSignal, _report: Any) -> None:
        heard.append(signal.wait_threadsafe(5))
        ended.set()

    result = await Life([make(execute, timeout=0.02)]).run()
    assert code(result) == "EXECUTION_TIMEOUT"
    assert "Its thread may still be running." in result.text
    assert await asyncio.to_thread(ended.wait, 5)
    assert heard == [True]


@pytest.mark.requirement("Y FR-005")
async def test_a_timeout_error_of_a_tools_own_is_its_failure() -> None:
    result = await Life([make(raising_async(TimeoutError("the server slept")), timeout=30)]).run()
    assert code(result) == "TOOL_FAILED"
    assert "the server slept" in result.text


@pytest.mark.requirement("Y FR-005")
async def test_what_finishes_in_spite_of_its_timeout_counts() -> None:
    async def execute(*_: Any) -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "half of it"
        return "all of it"

    result = await Life([make(execute, timeout=0.01)]).run()
    assert (result.text, result.is_error) == ("half of it", False)


@pytest.mark.requirement("Y FR-005", "Y NFR-202")
async def test_a_tool_that_swallows_its_cancellation_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(concurrency, "ABORT_GRACE", 0.02)
    release = asyncio.Event()

    async def execute(*_: Any) -> str:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        return "too late"

    result = await Life([make(execute, timeout=0.01)]).run()
    assert code(result) == "EXECUTION_TIMEOUT"
    release.set()
    for task in asyncio.all_tasks() - {cast("asyncio.Task[Any]", asyncio.current_task())}:
        await task


# --- Aborting ----------------------------------------------------------------------------------


@pytest.mark.requirement("Y SP-022", "Y SD-008", "A SPEC-7.1")
async def test_a_call_that_is_aborted_before_it_starts_does_not_run() -> None:
    asked: list[str] = []
    life = Life([make(lambda *_: asked.append("ran"))], before=(lambda *_: asked.append("asked"),))
    life.signal.abort()
    result = await life.run()
    assert code(result) == "EXECUTION_ABORTED"
    assert "f did not run, because the person aborted the run." in result.text
    assert asked == []


@pytest.mark.requirement("Y SP-022", "Y SD-008")
async def test_an_abort_ends_a_hook_that_waits() -> None:
    async def hook(_context: BeforeToolCallContext, _signal: AbortSignal) -> None:
        asyncio.get_running_loop().call_soon(life.signal.abort)
        await asyncio.Event().wait()

    life = Life([make()], before=(hook,))
    assert code(await life.run()) == "EXECUTION_ABORTED"


@pytest.mark.requirement("Y SP-022", "Y SD-008")
@pytest.mark.parametrize("is_async", [False, True])
async def test_an_abort_inside_a_hook_keeps_the_call_and_the_other_hooks_from_running(*, is_async: bool) -> None:
    asked: list[str] = []

    def abort(_context: BeforeToolCallContext, signal: AbortSignal) -> Any:
        signal.abort()
        return nothing() if is_async else None

    async def nothing() -> None:
        asked.append("awaited")

    async def other(*_: Any) -> None:
        asked.append("other")

    life = Life([make(lambda *_: asked.append("ran"))], before=(abort, other))
    assert code(await life.run()) == "EXECUTION_ABORTED"
    assert asked == []


@pytest.mark.requirement("Y SP-022", "Y SD-008", "A SPEC-7.1")
async def test_an_abort_cancels_an_async_tool_at_once() -> None:
    async def execute(*_: Any) -> None:
        asyncio.get_running_loop().call_soon(life.signal.abort)
        await asyncio.Event().wait()

    life = Life([make(execute)])
    result = await life.run()
    assert code(result) == "EXECUTION_ABORTED"
    assert "f was stopped before it finished" in result.text


@pytest.mark.requirement("Y SP-022", "Y SD-008")
async def test_a_sync_tool_reads_the_abort_from_its_signal_and_its_result_counts() -> None:
    waiting = threading.Event()

    def execute(_id: str, _arguments: dict[str, Any], signal: AbortSignal, _report: Any) -> str:
        waiting.set()
        return f"stopped early: {signal.wait_threadsafe(5)}"

    life = Life([make(execute)])
    running = asyncio.create_task(life.run())
    assert await asyncio.to_thread(waiting.wait, 5)
    life.signal.abort()
    result = await running
    assert result.is_error or result.text == "stopped early: True"


@pytest.mark.requirement("Y SP-022", "Y SD-008")
async def test_after_an_abort_no_after_hook_is_asked_and_the_real_result_stays() -> None:
    asked: list[str] = []

    async def execute(*_: Any) -> str:
        life.signal.abort()
        return "done all the same"

    life = Life([make(execute)], after=(lambda *_: asked.append("asked"),))
    result = await life.run()
    assert (result.text, result.is_error) == ("done all the same", False)
    assert asked == []


@pytest.mark.requirement("Y SP-022", "Y SD-008")
async def test_an_abort_during_an_after_hook_leaves_the_real_result() -> None:
    async def hook(_context: AfterToolCallContext) -> ToolResult:
        asyncio.get_running_loop().call_soon(life.signal.abort)
        await asyncio.Event().wait()
        return ToolResult("never")

    life = Life([make()], after=(hook,))
    assert (await life.run()).text == "a is 1"


@pytest.mark.requirement("Y SP-022")
@pytest.mark.parametrize("phase", ["before", "after", "tool"])
async def test_ctrl_c_inside_a_hook_or_a_tool_aborts_the_run(phase: str) -> None:
    hooks: dict[str, Any] = {} if phase == "tool" else {phase: (raising(KeyboardInterrupt()),)}
    life = Life([make(raising(KeyboardInterrupt()) if phase == "tool" else async_execute)], **hooks)
    result = await life.run()
    assert life.signal.aborted
    assert life.signal.reason == "interrupted from the keyboard"
    assert result.text == "a is 1" if phase == "after" else code(result) == "EXECUTION_ABORTED"


@pytest.mark.requirement("Y SP-022")
@pytest.mark.parametrize("place", ["hook", "tool"])
async def test_cancelling_the_caller_passes_through_and_ends_what_ran(place: str) -> None:
    ended = asyncio.Event()
    waiting = asyncio.Event()

    async def wait(*_: Any) -> None:
        waiting.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    life = Life([make(wait)]) if place == "tool" else Life([make()], before=(wait,))
    running = asyncio.create_task(life.run())
    await waiting.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    async with asyncio.timeout(5):
        await ended.wait()


# --- Progress ----------------------------------------------------------------------------------


def updates(life: Life) -> list[str]:
    return [event.update.text for event in life.events if isinstance(event, ToolExecutionUpdate)]


@pytest.mark.requirement("A FR-002", "A SPEC-3.2")
async def test_updates_of_an_async_tool_are_told_in_order() -> None:
    async def execute(
        _id: str, _arguments: dict[str, Any], _signal: AbortSignal, report: Callable[[Any], None]
    ) -> None:
        report("one")
        await asyncio.sleep(0)
        report({"two": 2})

    life = Life([make(execute)])
    await life.run()
    assert updates(life) == ["one", '{"two":2}']
    assert isinstance(life.events[0], ToolExecutionUpdate)
    assert (life.events[0].tool_call_id, life.events[0].tool_name) == ("c1", "f")


@pytest.mark.requirement("A FR-002", "A SPEC-3.2")
async def test_updates_of_a_thread_are_told_on_the_loop_in_order() -> None:
    threads: list[threading.Thread] = []

    class Told(list[Event]):
        def append(self, event: Event) -> None:
            threads.append(threading.current_thread())
            super().append(event)

    def execute(_id: str, _arguments: dict[str, Any], _signal: AbortSignal, report: Callable[[Any], None]) -> str:
        for number in range(20):
            report(str(number))
        return "done"

    life = Life([make(execute)], events=Told())
    assert (await life.run()).text == "done"
    assert updates(life) == [str(number) for number in range(20)]
    assert set(threads) == {threading.current_thread()}


@pytest.mark.requirement("A FR-002", "A SPEC-3.2", "Y SD-008")
@pytest.mark.parametrize("from_thread", [False, True])
async def test_updates_after_a_tool_has_settled_are_dropped(*, from_thread: bool) -> None:
    reports: list[Callable[[Any], None]] = []

    async def execute(_id: str, _arguments: dict[str, Any], _signal: AbortSignal, report: Callable[[Any], None]) -> str:
        report("in time")
        reports.append(report)
        return "done"

    life = Life([make(execute)])
    await life.run()
    if from_thread:
        await asyncio.to_thread(reports[0], "late")
    else:
        reports[0]("late")
    await asyncio.sleep(0)
    assert updates(life) == ["in time"]


@pytest.mark.requirement("A FR-002", "A SPEC-3.2")
def test_an_update_after_the_loop_was_closed_does_no_harm() -> None:
    reports: list[Callable[[Any], None]] = []

    async def execute(_id: str, _arguments: dict[str, Any], _signal: AbortSignal, report: Callable[[Any], None]) -> str:
        reports.append(report)
        return "done"

    asyncio.run(Life([make(execute)]).run())
    reports[0]("late")


# --- Finalizing --------------------------------------------------------------------------------


@pytest.mark.requirement("Y FR-005", "Y US-004", "Y SD-005")
async def test_after_hooks_change_the_result_one_after_the_other() -> None:
    seen: list[tuple[str, bool]] = []

    def first(context: AfterToolCallContext) -> ToolResult:
        seen.append((context.result.text, context.is_error))
        return ToolResult(f"{context.result.text}!", is_error=True)

    async def second(context: AfterToolCallContext) -> ToolResult:
        await asyncio.sleep(0)
        seen.append((context.result.text, context.is_error))
        return ToolResult(f"{context.result.text}!", terminate=True)

    result = await Life([make()], after=(first, ask_nothing, second)).run()
    assert seen == [("a is 1", False), ("a is 1!", True)]
    assert (result.text, result.is_error, result.terminate) == ("a is 1!!", False, True)


@pytest.mark.requirement("Y FR-005", "Y US-004")
async def test_an_after_hook_sees_failed_calls_too_and_may_mend_them() -> None:
    def mend(context: AfterToolCallContext) -> ToolResult | None:
        return ToolResult("mended") if context.is_error else None

    result = await Life([make(raising(RuntimeError("broken")))], after=(mend,)).run()
    assert (result.text, result.is_error) == ("mended", False)


@pytest.mark.requirement("Y SP-004", "A SPEC-2.4")
def test_the_message_of_a_result_has_all_of_it() -> None:
    image = ImageContent(data="AAAA", mime_type="image/png")
    result = ToolResult(
        ["seen", image], details={"n": 1}, usage=Usage(input_tokens=5), added_tool_names=("g",), is_error=True
    )
    message = create_tool_result_message(ToolCall(id="c1", name="f"), result)
    assert (message.tool_call_id, message.tool_name) == ("c1", "f")
    for name in ("content", "details", "usage", "added_tool_names", "is_error"):
        assert getattr(message, name) == getattr(result, name)


@pytest.mark.requirement("Y SD-007")
async def test_every_step_of_a_call_is_traced_by_name() -> None:
    life = Life([make()], before=(ask_nothing,), after=(ask_nothing,))
    await life.run()
    assert [step for step, _ in life.steps] == [
        "call.lookup",
        "call.validated",
        "call.before_hook",
        "call.executing",
        "call.executed",
        "call.after_hook",
    ]
    refused = Life()
    await refused.run()
    assert refused.steps[-1] == ("call.refused", {"tool_call_id": "c1", "tool_name": "f", "code": "TOOL_NOT_FOUND"})


async def test_the_duration_leaves_the_hooks_out() -> None:
    async def slow(*_: Any) -> None:
        await asyncio.sleep(0.02)

    call = ToolCall(name="f", arguments={"a": 1})
    scope = Life([make()], before=(slow,), after=(slow,)).scope(call)
    prepared = await prepare_tool_call(call, scope)
    executed = await execute_prepared_tool_call(cast("PreparedToolCall", prepared), scope)
    await finalize_executed_tool_call(executed, scope)
    assert executed.duration < 0.02


# --- Nothing makes a phase raise ---------------------------------------------------------------


class Hostile:
    def __repr__(self) -> str:
        raise RuntimeError("no")

    __str__ = __repr__

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)


values = st.one_of(
    st.none(),
    wild_text,
    json_values(wild_text),
    st.binary(max_size=5),
    st.sampled_from([Hostile(), object(), float("nan"), {1, 2}, ToolResult, ToolResult("x"), 3 + 4j]),
    st.builds(BeforeToolCallResult, st.booleans(), st.none() | wild_text, st.none() | st.just({"a": 3})),
    st.builds(ToolResult, wild_text, is_error=st.booleans()),
    st.integers().map(lambda number: {"a": number}),
)
errors = st.sampled_from([*ERRORS, KeyboardInterrupt()])


@dataclass(frozen=True)
class Behaviour:
    """What a tool or a hook does when it is called."""

    is_async: bool
    aborts: bool
    hangs: str
    value: Any
    error: BaseException | None

    def called(self, signal: AbortSignal) -> Any:
        """Behave in this very call, or in the coroutine that is returned."""
        if self.is_async:
            return self._awaited(signal)
        if self.aborts:
            signal.abort()
        return self._end()

    async def _awaited(self, signal: AbortSignal) -> Any:
        await asyncio.sleep(0)
        if self.aborts:
            signal.abort()
        if self.hangs:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if self.hangs == "heeds its cancellation":
                    raise
                if self.hangs == "delays its end":
                    await asyncio.sleep(0.05)
        return self._end()

    def _end(self) -> Any:
        if self.error is not None:
            raise self.error
        return self.value


behaviours = st.builds(
    Behaviour,
    is_async=st.booleans(),
    aborts=st.sampled_from([False, False, False, True]),
    hangs=st.sampled_from(["", "", "", "heeds its cancellation", "swallows its cancellation", "delays its end"]),
    value=values,
    error=st.none() | errors,
)


def tool_of(behaviour: Behaviour, timeout: float | None) -> Tool:
    """An async tool, or one in a thread that waits for its signal where it hangs."""

    def in_thread(_id: str, _arguments: dict[str, Any], signal: AbortSignal, report: Callable[[Any], None]) -> Any:
        report(behaviour.value)
        if behaviour.hangs:
            signal.wait_threadsafe(5)
        return behaviour.called(signal)

    async def on_loop(_id: str, _arguments: dict[str, Any], signal: AbortSignal, report: Callable[[Any], None]) -> Any:
        report(behaviour.value)
        return await behaviour.called(signal)

    return make(on_loop if behaviour.is_async else in_thread, timeout=timeout)


calls = st.builds(
    ToolCall,
    name=st.sampled_from(["f", "f", "f", "f", "g", ""]) | wild_text,
    arguments=st.sampled_from([{"a": 1}, {"a": 1}, {"a": 1}, {}, {"a": "x"}, {"a": 1, "b": None}]),
    raw_arguments=st.sampled_from([None, None, None, "{", "\ud800"]),
)


@pytest.mark.requirement("Y FR-005", "Y US-004", "Y SD-005", "Y P-004", "Y NFR-202", "Y SP-022", "Y SD-008")
@settings(max_examples=600)
@given(
    call=calls,
    does=behaviours,
    timeout=st.sampled_from([None, None, 0.003]),
    before=st.lists(behaviours, max_size=2),
    after=st.lists(behaviours, max_size=2),
    aborted_early=st.sampled_from([False, False, False, True]),
)
def test_nothing_that_a_model_a_tool_or_a_hook_does_makes_a_phase_raise(
    call: ToolCall,
    does: Behaviour,
    timeout: float | None,
    before: list[Behaviour],
    after: list[Behaviour],
    *,
    aborted_early: bool,
) -> None:
    signal = AbortSignal()

    async def live() -> tuple[ToolResult, Life]:
        life = Life(
            [tool_of(does, timeout)],
            before=tuple(hook_of(each, signal) for each in before),
            after=tuple(hook_of(each, signal) for each in after),
            signal=signal,
        )
        if aborted_early:
            signal.abort()
        if any(each.hangs for each in (does, *before, *after)):
            asyncio.get_running_loop().call_later(0.004, signal.abort)
        scope = life.scope(call)
        prepared = await prepare_tool_call(call, scope)
        if isinstance(prepared, ImmediateOutcome):
            return prepared.result, life
        assert isinstance(prepared, PreparedToolCall)
        executed = await execute_prepared_tool_call(prepared, scope)
        assert isinstance(executed, ExecutedToolCall)
        return await finalize_executed_tool_call(executed, scope), life

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(concurrency, "ABORT_GRACE", 0.01)
        result, life = asyncio.run(live())

    assert isinstance(result, ToolResult)
    message = create_tool_result_message(call, result)
    json.dumps(dump_message(message), allow_nan=False, ensure_ascii=False).encode()
    if aborted_early:
        assert code(result) == "EXECUTION_ABORTED"
    if result.is_error:
        assert result.text or result is does.value or any(result is each.value for each in (does, *after))
    assert all(isinstance(event, ToolExecutionUpdate) for event in life.events)


def hook_of(behaviour: Behaviour, signal: AbortSignal) -> Callable[..., Any]:
    def hook(*_: Any) -> Any:
        return behaviour.called(signal)

    return hook
