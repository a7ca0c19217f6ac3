"""The life of a tool call: prepare, execute, finalize, and the message that ends it.

None of the three phases raises. Whatever a model, a tool or a hook does wrong becomes a
``ToolResult`` with ``is_error``, whose text the model can act on. What ``before_tool_call`` notes is
added to the result of the call, be it an error or not, behind what ``after_tool_call`` made of it.
"""

from __future__ import annotations

import asyncio
import difflib
import inspect
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from yiemagent_nb.core.approval import Approvals
from yiemagent_nb.core.call_stages import CallObserver, CallStage
from yiemagent_nb.core.concurrency import Interrupted, Outcome, run_abortable, run_in_thread
from yiemagent_nb.core.errors import (
    ExecutionAbortedError,
    ExecutionTimeoutError,
    HookError,
    InvalidParametersError,
    ToolFailedError,
    ToolNotFoundError,
    YiemAgentError,
    describe_error,
)
from yiemagent_nb.core.events import Event, ToolExecutionUpdate
from yiemagent_nb.core.hooks import (
    AfterToolCallContext,
    AgentContext,
    BeforeToolCallContext,
    BeforeToolCallResult,
    hook_name,
)
from yiemagent_nb.core.messages import AssistantMessage, TextContent, ToolCall, ToolResultMessage
from yiemagent_nb.core.results import ToolResult, to_tool_result
from yiemagent_nb.core.signal import AbortSignal
from yiemagent_nb.core.tools import Tool, validate_arguments, validate_tool_arguments
from yiemagent_nb.core.validation import json_copy, printable, shorten

__all__ = [
    "CallScope",
    "ExecutedToolCall",
    "ImmediateOutcome",
    "PreparedToolCall",
    "create_tool_result_message",
    "error_result",
    "execute_prepared_tool_call",
    "finalize_executed_tool_call",
    "prepare_tool_call",
]


@dataclass(frozen=True, slots=True)
class CallScope:
    """What the phases of one batch share.

    Args:
        message: The answer that asked for the calls.
        context: The agent's context.
        signal: The run's signal.
        emit: Takes events, on the event loop.
        before_hooks: Asked in order before a call runs.
        after_hooks: Asked in order after it ran.
        approvals: Where an approval hook asks.
        trace: Takes named steps; None where nobody listens.
        observe: Told when a tool begins; None where nobody observes.
        by_hand: Whether a person makes the calls.
    """

    message: AssistantMessage
    context: AgentContext
    signal: AbortSignal
    emit: Callable[[Event], None]
    approvals: Approvals
    before_hooks: tuple[Callable[..., Any], ...] = ()
    after_hooks: tuple[Callable[..., Any], ...] = ()
    trace: Callable[[str, Mapping[str, Any]], None] | None = None
    observe: CallObserver | None = None
    by_hand: bool = False

    def step(self, name: str, call: ToolCall, **data: Any) -> None:
        """Trace a named step of a call."""
        if self.trace is not None:
            self.trace(name, {"tool_call_id": call.id, "tool_name": call.name, **data})


@dataclass(frozen=True, slots=True)
class PreparedToolCall:
    """A call that may run, with its validated arguments, and what the model is told behind its result."""

    call: ToolCall
    tool: Tool
    arguments: dict[str, Any]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ImmediateOutcome:
    """A call that does not run, with its result."""

    call: ToolCall
    result: ToolResult


@dataclass(frozen=True, slots=True)
class ExecutedToolCall:
    """A call that ran. ``duration`` is in seconds."""

    prepared: PreparedToolCall
    result: ToolResult
    duration: float
    interrupted: bool = field(default=False)


def error_result(error: YiemAgentError) -> ToolResult:
    """An error as the model reads it."""
    return ToolResult(str(error), is_error=True, details={"code": error.code, "message": error.message})


async def prepare_tool_call(call: ToolCall, scope: CallScope) -> PreparedToolCall | ImmediateOutcome:
    """Look the tool up, validate the arguments, ask the hooks. Never raises."""
    notes: list[str] = []
    try:
        prepared = await _prepare(call, scope, notes)
    except YiemAgentError as error:
        scope.step("call.refused", call, code=error.code)
        result = error_result(error)
    except Interrupted:
        result = error_result(aborted(call, started=False))
    except Exception as error:  # a validator that fails in a way of its own
        result = error_result(InvalidParametersError(describe_error(error)))
    else:
        if isinstance(prepared, PreparedToolCall):
            return prepared
        result = prepared
    return ImmediateOutcome(call, _noted(result, notes))


async def _prepare(call: ToolCall, scope: CallScope, notes: list[str]) -> PreparedToolCall | ToolResult:
    if scope.signal.aborted:
        raise aborted(call, started=False)
    scope.step("call.lookup", call)
    tool = scope.context.tools.get(call.name)
    if tool is None:
        raise _not_found(call.name, scope.context.tools)
    arguments = validate_tool_arguments(tool, call)
    scope.step("call.validated", call)
    for hook in scope.before_hooks:
        if scope.signal.aborted:
            break
        scope.step("call.before_hook", call, hook=hook_name(hook))
        offered = BeforeToolCallContext(call, tool, json_copy(arguments), scope.message, scope.context, scope.approvals)
        answer = await _call_hook(hook, scope.signal, offered, scope.signal)
        if answer is None:
            continue
        verdict = _read_before_answer(hook, answer)
        if verdict.note:
            notes.append(verdict.note)
        if verdict.block:
            reason = verdict.reason or "The call was blocked."
            return ToolResult(reason, is_error=True, details={"blocked": True, "hook": hook_name(hook)})
        if verdict.arguments is not None:
            arguments = validate_arguments(tool, verdict.arguments)
    if scope.signal.aborted:
        raise aborted(call, started=False)
    return PreparedToolCall(call, tool, arguments, tuple(notes))


def _noted(result: ToolResult, notes: Sequence[str]) -> ToolResult:
    """A result with what the model is told behind it, apart from its text: servers join the two."""
    content = [*result.content]
    for note in notes:
        apart = "\n\n" if content and isinstance(content[-1], TextContent) else ""
        content.append(TextContent(f"{apart}{printable(note)}"))
    return result.model_copy(update={"content": tuple(content)}) if notes else result


def _read_before_answer(hook: Callable[..., Any], answer: object) -> BeforeToolCallResult:
    if isinstance(answer, BeforeToolCallResult):
        if isinstance(answer.note, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            return answer
        raise HookError(f"The hook {hook_name(hook)} gave {shorten(answer.note)} as a note; expected a text.")
    if isinstance(answer, Mapping):
        return BeforeToolCallResult(arguments=cast("Mapping[str, Any]", answer))
    raise HookError(
        f"The hook {hook_name(hook)} returned {type(answer).__name__}; "
        "expected a BeforeToolCallResult, a mapping of new arguments, or None."
    )


async def _call_hook(hook: Callable[..., Any], signal: AbortSignal, *arguments: Any) -> Any:
    try:
        answer = _ask_hook(hook, *arguments)
        if answer is not None and inspect.isawaitable(answer):
            work = answer if inspect.iscoroutine(answer) else _await(answer)
            answer = await run_abortable(work, signal)
    except Interrupted:
        raise
    except Outcome as outcome:
        error = outcome.args[0]
        if isinstance(error, KeyboardInterrupt):
            signal.abort("interrupted from the keyboard")
            raise Interrupted from None
        raise _hook_failed(hook, error) from error
    except Exception as error:
        raise _hook_failed(hook, error) from error
    return answer


def _ask_hook(hook: Callable[..., Any], *arguments: Any) -> Any:
    """Call a hook; what it raises beside errors, such as ``SystemExit``, comes as an ``Outcome``."""
    try:
        return hook(*arguments)
    except Exception:
        raise
    except BaseException as error:
        raise Outcome(error) from error


async def _await(value: Awaitable[Any]) -> Any:
    return await value


def _hook_failed(hook: Callable[..., Any], error: BaseException) -> HookError:
    return HookError(f"The hook {hook_name(hook)} raised {describe_error(error)}", "The call did not go on.")


async def execute_prepared_tool_call(prepared: PreparedToolCall, scope: CallScope) -> ExecutedToolCall:
    """Run the tool with its timeout and its own signal. Never raises.

    An async tool is cancelled by an abort or its timeout; a sync one runs in a thread, which
    cannot be stopped from outside and reads its signal.
    """
    call, tool = prepared.call, prepared.tool
    # Only a timeout must stop one call and not the run.
    signal = scope.signal if tool.timeout is None else AbortSignal(parent=scope.signal)
    updates = _Updates(call, scope.emit)
    scope.step("call.executing", call)
    if scope.observe is not None:
        scope.observe(CallStage("runs", call, scope.by_hand, prepared.arguments))
    start = time.perf_counter()
    interrupted = False
    try:
        value = await run_abortable(_execute(prepared, signal, updates.report), scope.signal, tool.timeout)
        result = to_tool_result(value)
    except Interrupted:
        interrupted = True
        result = error_result(aborted(call, started=True))
    except TimeoutError as error:
        own = tool.timeout is not None and time.perf_counter() - start >= tool.timeout
        failure = _timed_out(tool) if own else ToolFailedError(f"{tool.name} raised {describe_error(error)}")
        result = error_result(failure)
    except Outcome as error:
        interrupted = isinstance(error.args[0], KeyboardInterrupt)
        if interrupted:
            scope.signal.abort("interrupted from the keyboard")
        result = error_result(aborted(call, started=True) if interrupted else _failed(tool, error.args[0]))
    except Exception as error:
        result = error_result(_failed(tool, error))
    finally:
        updates.settled = True
        if signal is not scope.signal:
            signal.abort("the call is over")
            signal.detach()
    duration = time.perf_counter() - start
    scope.step("call.executed", call, duration=duration, is_error=result.is_error)
    return ExecutedToolCall(prepared, result, duration, interrupted)


async def _execute(prepared: PreparedToolCall, signal: AbortSignal, report: Callable[[Any], None]) -> Any:
    tool = prepared.tool
    arguments = (prepared.call.id, prepared.arguments, signal, report)
    if tool.is_async:
        value = tool.execute(*arguments)
    else:
        value = await run_in_thread(tool.execute, *arguments)
    return await value if inspect.isawaitable(value) else value


class _Updates:
    """Progress of one call, from any thread; what comes after its end is dropped."""

    __slots__ = ("_call", "_emit", "_loop", "settled")

    def __init__(self, call: ToolCall, emit: Callable[[Event], None]) -> None:
        self._call = call
        self._emit = emit
        self._loop = asyncio.get_running_loop()
        self.settled = False

    def report(self, update: Any) -> None:
        if self.settled or self._loop.is_closed():
            return
        event = ToolExecutionUpdate(self._call.id, self._call.name, to_tool_result(update))
        if asyncio._get_running_loop() is self._loop:  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
            self._emit(event)
        else:
            self._loop.call_soon_threadsafe(self._deliver, event)

    def _deliver(self, event: Event) -> None:
        if not self.settled:
            self._emit(event)


async def finalize_executed_tool_call(executed: ExecutedToolCall, scope: CallScope) -> ToolResult:
    """Ask the hooks that may change the result. Never raises."""
    call, result = executed.prepared.call, executed.result
    try:
        for hook in scope.after_hooks:
            if scope.signal.aborted:
                break
            scope.step("call.after_hook", call, hook=hook_name(hook))
            offered = AfterToolCallContext(
                call, executed.prepared.tool, executed.prepared.arguments, result, scope.message, scope.context
            )
            answer = await _call_hook(hook, scope.signal, offered)
            if answer is not None:
                result = _read_after_answer(hook, answer)
    except YiemAgentError as error:
        result = error_result(error)
    except Interrupted:
        pass  # the tool did run: its real result stays
    return _noted(result, executed.prepared.notes)


def _read_after_answer(hook: Callable[..., Any], answer: object) -> ToolResult:
    if isinstance(answer, ToolResult):
        return answer
    raise HookError(f"The hook {hook_name(hook)} returned {type(answer).__name__}; expected a ToolResult or None.")


def create_tool_result_message(call: ToolCall, result: ToolResult) -> ToolResultMessage:
    """The message that stands in history for a call."""
    return ToolResultMessage(
        tool_call_id=call.id,
        tool_name=call.name,
        content=result.content,
        details=result.details,
        usage=result.usage,
        added_tool_names=result.added_tool_names,
        is_error=result.is_error,
    )


def aborted(call: ToolCall, *, started: bool) -> ExecutionAbortedError:
    """The error of a call that an abort ended or kept from starting."""
    how = "was stopped before it finished" if started else "did not run"
    return ExecutionAbortedError(f"{call.name} {how}, because the person aborted the run.")


def _not_found(name: str, tools: Mapping[str, Tool]) -> ToolNotFoundError:
    near = difflib.get_close_matches(name[:200], tools, n=3, cutoff=0.5)
    hint = f"Did you mean {' or '.join(near)}?" if near else f"Tools: {', '.join(list(tools)[:20]) or 'none'}."
    return ToolNotFoundError(f"There is no tool named {shorten(name)}.", hint)


def _timed_out(tool: Tool) -> ExecutionTimeoutError:
    left = "" if tool.is_async else " Its thread may still be running."
    return ExecutionTimeoutError(
        f"{tool.name} did not finish within {tool.timeout:g} s.{left}", "Ask for less at once, or raise its timeout."
    )


def _failed(tool: Tool, error: BaseException) -> YiemAgentError:
    return (
        error if isinstance(error, YiemAgentError) else ToolFailedError(f"{tool.name} raised {describe_error(error)}")
    )
