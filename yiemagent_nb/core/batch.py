"""The calls of one answer: which run at once, and in which order everything is told."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass

from yiemagent_nb.core.concurrency import start_task
from yiemagent_nb.core.errors import YiemAgentError
from yiemagent_nb.core.events import ToolExecutionEnd, ToolExecutionStart
from yiemagent_nb.core.hooks import as_hooks
from yiemagent_nb.core.lifecycle import (
    CallScope,
    ImmediateOutcome,
    PreparedToolCall,
    create_tool_result_message,
    error_result,
    execute_prepared_tool_call,
    finalize_executed_tool_call,
    prepare_tool_call,
)
from yiemagent_nb.core.messages import AssistantMessage, ToolCall, ToolResultMessage
from yiemagent_nb.core.results import ToolResult
from yiemagent_nb.core.run import Run

__all__ = ["Batch", "close_calls", "run_tool_calls"]


@dataclass(frozen=True, slots=True)
class Batch:
    """The results of one answer's calls, in the order of the calls."""

    results: tuple[ToolResultMessage, ...]
    terminate: bool = False


async def run_tool_calls(run: Run, message: AssistantMessage) -> Batch:
    """Run all calls of an answer and append their results. Each gets one, whatever happens.

    Calls are prepared one after the other, so that two approvals never meet. In a parallel batch
    they then run at once, at most ``limits.concurrent_tool_calls`` at a time; a sequential tool
    makes its whole batch sequential, and there each call ends before the next begins.
    """
    calls = message.tool_calls
    sequential = _is_sequential(run, calls)
    scope = CallScope(
        message=message,
        context=run.context,
        signal=run.signal,
        emit=run.emit,
        approvals=run.approvals,
        before_hooks=as_hooks("before_tool_call", run.config.before_tool_call),
        after_hooks=as_hooks("after_tool_call", run.config.after_tool_call),
        trace=run.trace,
        observe=run.call_observer,
    )
    run.step("calls.run", count=len(calls), sequential=sequential)
    results = await (_run_in_turn if sequential else _run_at_once)(run, scope, calls)
    return Batch(tuple(told for told, _ in results), all(result.terminate for _, result in results))


def close_calls(run: Run, message: AssistantMessage, error: YiemAgentError) -> Batch:
    """Give each call of an answer that has no result yet the same error result, without waiting.

    Returns:
        All results of the answer, those that it had before too.
    """
    results = _results_of(run, message)
    rest = message.tool_calls[len(results) :]
    for call in rest:
        if call.id in run.pending_calls:
            _end(run, call, error_result(error), 0.0)
    for call in rest:
        if call.id not in run.settled_calls:
            _start(run, call)
            _end(run, call, error_result(error), 0.0)
        results.append(_tell(run, call, run.settled_calls[call.id]))
    return Batch(tuple(results))


def _results_of(run: Run, message: AssistantMessage) -> list[ToolResultMessage]:
    """The results that follow an answer. Ids do not tell: a model may use one again in a later answer."""
    results: list[ToolResultMessage] = []
    for each in reversed(run.added):
        if each is message:
            break
        if isinstance(each, ToolResultMessage):
            results.insert(0, each)
    return results


def _is_sequential(run: Run, calls: Sequence[ToolCall]) -> bool:
    tools = (run.context.tools.get(call.name) for call in calls)
    modes = {(tool.execution_mode if tool else None) or run.config.tool_execution for tool in tools}
    return "sequential" in modes


async def _run_in_turn(
    run: Run, scope: CallScope, calls: Sequence[ToolCall]
) -> list[tuple[ToolResultMessage, ToolResult]]:
    results: list[tuple[ToolResultMessage, ToolResult]] = []
    for call in calls:
        _start(run, call)
        prepared = await prepare_tool_call(call, scope)
        result = await _settle(run, scope, prepared, nullcontext())
        results.append((_tell(run, call, result), result))
    return results


async def _run_at_once(
    run: Run, scope: CallScope, calls: Sequence[ToolCall]
) -> list[tuple[ToolResultMessage, ToolResult]]:
    prepared: list[PreparedToolCall | ImmediateOutcome] = []
    for call in calls:
        _start(run, call)
        prepared.append(await prepare_tool_call(call, scope))
    if len(prepared) == 1:
        settled = [await _settle(run, scope, prepared[0], nullcontext())]
    else:
        limit = run.config.limits.concurrent_tool_calls
        room = nullcontext() if limit is None else asyncio.Semaphore(limit)
        settled = await asyncio.gather(*[start_task(_settle(run, scope, each, room)) for each in prepared])
    return [(_tell(run, call, result), result) for call, result in zip(calls, settled, strict=True)]


async def _settle(
    run: Run,
    scope: CallScope,
    prepared: PreparedToolCall | ImmediateOutcome,
    room: AbstractAsyncContextManager[object],
) -> ToolResult:
    if isinstance(prepared, ImmediateOutcome):
        _end(run, prepared.call, prepared.result, 0.0)
        return prepared.result
    async with room:
        executed = await execute_prepared_tool_call(prepared, scope)
    result = await finalize_executed_tool_call(executed, scope)
    _end(run, prepared.call, result, executed.duration)
    return result


def _start(run: Run, call: ToolCall) -> None:
    run.pending_calls.add(call.id)
    run.emit(ToolExecutionStart(call.id, call.name, call.arguments))


def _end(run: Run, call: ToolCall, result: ToolResult, duration: float) -> None:
    run.pending_calls.discard(call.id)
    run.settled_calls[call.id] = result
    run.emit(ToolExecutionEnd(call.id, call.name, result, result.is_error, duration))


def _tell(run: Run, call: ToolCall, result: ToolResult) -> ToolResultMessage:
    message = create_tool_result_message(call, result)
    run.settled_calls.pop(call.id, None)
    run.add(message)
    return message
