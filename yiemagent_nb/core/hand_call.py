"""A tool that a person calls by hand: the life of a call, beside the conversation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from yiemagent_nb.core.call_stages import CallObserver, CallStage
from yiemagent_nb.core.events import Event, ToolExecutionUpdate
from yiemagent_nb.core.hooks import AgentContext
from yiemagent_nb.core.lifecycle import (
    CallScope,
    ImmediateOutcome,
    aborted,
    error_result,
    execute_prepared_tool_call,
    finalize_executed_tool_call,
    prepare_tool_call,
)
from yiemagent_nb.core.messages import AssistantToolCallMessage, ToolCall
from yiemagent_nb.core.results import ToolResult
from yiemagent_nb.core.signal import AbortSignal
from yiemagent_nb.core.tools import current_agent

if TYPE_CHECKING:
    from yiemagent_nb.core.approval import Approvals

__all__ = ["call_by_hand"]


async def call_by_hand(
    call: ToolCall,
    context: AgentContext,
    *,
    owner: object,
    signal: AbortSignal,
    approvals: Approvals,
    before_hooks: tuple[Callable[..., Any], ...] = (),
    after_hooks: tuple[Callable[..., Any], ...] = (),
    on_update: Callable[[ToolResult], None] | None = None,
    trace: Callable[[str, Mapping[str, Any]], None] | None = None,
    observe: CallObserver | None = None,
) -> ToolResult:
    """Run one call through the three phases, without a message in the history. Never raises.

    Args:
        call: Which tool, and its arguments.
        context: What hooks are given; the tool is one of its.
        owner: The agent, for tools that ask for it.
        signal: Stops the call when it is set.
        approvals: Where an approval hook asks.
        before_hooks: Asked before it runs.
        after_hooks: Asked after it ran.
        on_update: Takes the tool's progress, on the agent's event loop.
        trace: Takes named steps.
        observe: Told when the call begins, when the tool does, and when it ends.
    """

    def emit(event: Event) -> None:
        if on_update is not None and isinstance(event, ToolExecutionUpdate):
            on_update(event.update)

    scope = CallScope(
        message=AssistantToolCallMessage(content=(call,)),
        context=context,
        signal=signal,
        emit=emit,
        approvals=approvals,
        before_hooks=before_hooks,
        after_hooks=after_hooks,
        trace=trace,
        observe=observe,
        by_hand=True,
    )
    if observe is not None:
        observe(CallStage("begins", call, by_hand=True))
    result = error_result(aborted(call, started=True))  # unless it comes to another
    owned = current_agent.set(owner)
    try:
        prepared = await prepare_tool_call(call, scope)
        if isinstance(prepared, ImmediateOutcome):
            result = prepared.result
        else:
            result = await finalize_executed_tool_call(await execute_prepared_tool_call(prepared, scope), scope)
    finally:
        current_agent.reset(owned)
        if observe is not None:
            observe(CallStage("ends", call, by_hand=True, result=result))
    return result
