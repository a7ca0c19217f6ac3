"""The loop, once, for everything: functions over plain data.

A run asks the model, runs the calls that it asks for, and goes on until an answer has no calls
and nothing waits::

    steering → prepare_context → format_messages → llm_call → answer
        calls:    run them, append the results, go on
        no calls: take steering, then ask again where the answer lacks the form that is wanted,
                  then take follow-ups, else end

``agent_loop`` and ``agent_loop_continue`` yield the events of a run. ``Agent`` is the same
``run_loop`` with channels and state around it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Self

from yiemagent_nb.core.answer import answer
from yiemagent_nb.core.batch import Batch, close_calls, run_tool_calls
from yiemagent_nb.core.config import LoopConfig
from yiemagent_nb.core.errors import (
    ExecutionAbortedError,
    InvalidMessageRoleError,
    RateLimitedError,
    ToolNotSupportedError,
)
from yiemagent_nb.core.events import AgentEnd, AgentError, AgentStart, EndReason, Event, TurnEnd, TurnStart
from yiemagent_nb.core.hooks import AgentContext
from yiemagent_nb.core.messages import AssistantMessage, CustomMessage, Message, ToolResultMessage, UserMessage
from yiemagent_nb.core.run import Emit, Run
from yiemagent_nb.core.signal import AbortSignal

__all__ = [
    "EventStream",
    "agent_loop",
    "agent_loop_continue",
    "has_open_end",
    "require_open_end",
    "run_loop",
    "stream_assistant_response",
]

CUT_AT_LENGTH = ToolNotSupportedError(
    "The answer reached its length limit, so this call may be incomplete and did not run.",
    "Ask for it again, with shorter arguments.",
)
INTERRUPTED = ExecutionAbortedError("The answer was interrupted, so this call did not run.")


async def run_loop(run: Run, prompts: Sequence[Message] = ()) -> EndReason:
    """Run until nothing is left to do; returns why it ended.

    What the model, tools and hooks do wrong ends up in the history. Only a cancellation of the
    task that awaits this passes through, after the history was made valid.

    Args:
        run: History, configuration, signal and where events go.
        prompts: Appended to the history in the first turn.
    """
    run.emit(AgentStart())
    reason: EndReason = "aborted"
    try:
        reason = await _turns(run, prompts)
    finally:
        run.step("run.end", reason=reason)
        run.emit(AgentEnd(tuple(run.added), reason))
    return reason


async def _turns(run: Run, prompts: Sequence[Message]) -> EndReason:
    pending = prompts
    turns = 0
    while True:
        turns += 1
        reply, batch = await _turn(run, pending, turns)
        if reply.stop_reason == "error":
            return "error"
        if run.signal.aborted or reply.stop_reason == "aborted":
            return "aborted"
        following = _after_calls(run, batch, turns) if batch.results else _after_words(run, reply, turns)
        if isinstance(following, str):
            return following
        pending = following


def _after_calls(run: Run, batch: Batch, turns: int) -> list[Message] | EndReason:
    """What joins the conversation behind the results, or why the run ends with them."""
    if batch.terminate:
        return "terminated"
    if (limit := _limit_reached(run, turns)) is not None:
        return limit
    pending = _heard(run, run.config.take_steering())
    run.step("steering.taken", count=len(pending))
    return pending


def _after_words(run: Run, reply: AssistantMessage, turns: int) -> list[Message] | EndReason:
    """What the run goes on with behind an answer without calls, or why it ends."""
    pending = [] if run.over_budget else _heard(run, run.config.take_steering())
    if not pending and (correction := _correction(run, reply)) is not None:
        if (limit := _limit_reached(run, turns)) is not None:
            return limit
        run.corrections += 1
        run.step("output.corrected", count=run.corrections)
        return [correction]
    if run.over_budget:
        return "done"
    pending = pending or _heard(run, run.config.take_follow_ups())
    run.step("queues.taken", count=len(pending))
    return pending or "done"


def _heard(run: Run, said: Iterable[Message]) -> list[Message]:
    """What people said during the run: from now on they may be asked again for what they denied."""
    heard = [*said]
    if any(isinstance(message, UserMessage) for message in heard):
        run.approvals.person_spoke()
    return heard


def _correction(run: Run, reply: AssistantMessage) -> UserMessage | None:
    """What the model is told of an answer that lacks the form that is wanted, as often as it may be."""
    output = run.output
    return output.correction(reply) if output is not None and run.corrections < output.retries else None


async def _turn(run: Run, pending: Sequence[Message], number: int) -> tuple[AssistantMessage, Batch]:
    run.step("turn.start", turn=number)
    run.emit(TurnStart())
    for message in pending:
        run.add(message)
    start = len(run.added)
    try:
        if run.config.prepare_tools is not None:
            await run.config.prepare_tools(run.signal)
        reply = await answer(run)
        if run.config.deliver is not None:
            await run.config.deliver(reply, run.signal)
        batch = await _run_calls(run, reply)
    except BaseException:  # the task is cancelled, or a person interrupts: leave a valid history
        replies = [message for message in run.added[start:] if isinstance(message, AssistantMessage)]
        for reply in replies:
            run.emit(TurnEnd(reply, close_calls(run, reply, INTERRUPTED).results))
        raise
    run.emit(TurnEnd(reply, batch.results))
    return reply, batch


async def _run_calls(run: Run, reply: AssistantMessage) -> Batch:
    if not reply.tool_calls:
        return Batch(())
    if reply.stop_reason in ("aborted", "error"):
        return close_calls(run, reply, INTERRUPTED)
    if reply.stop_reason == "length":
        return close_calls(run, reply, CUT_AT_LENGTH)
    return await run_tool_calls(run, reply)


def _limit_reached(run: Run, turns: int) -> EndReason | None:
    limits = run.config.limits
    reason: EndReason | None = None
    if limits.max_turns is not None and turns >= limits.max_turns:
        reason = "max_turns"
        error = RateLimitedError(
            f"The run reached Limits.max_turns = {limits.max_turns} and ended before its next request.",
            "Prompt again to go on, or raise the limit.",
        )
    elif run.over_budget:
        reason = "max_cost"
        error = RateLimitedError(
            f"The agent spent ${run.spent:.4f}, which reaches Limits.max_cost = ${limits.max_cost}.",
            "Raise the limit to go on.",
        )
    else:
        return None
    run.error_message = str(error)
    run.emit(AgentError(error.code, str(error)))
    return reason


class EventStream:
    """The events of one run. Iterating starts it; ``aclose`` aborts it.

    Example::

        stream = agent_loop([UserMessage("hi")], AgentContext(), LoopConfig(llm_call=backend))
        async for event in stream:
            ...
        new_messages = await stream.result()
    """

    def __init__(
        self, context: AgentContext, config: LoopConfig, signal: AbortSignal, prompts: Sequence[Message]
    ) -> None:
        self._queue: asyncio.Queue[Event | None] = asyncio.Queue()
        history = AgentContext(context.system_prompt, list(context.messages), context.tools)
        self._run = Run(history, config, signal, self._queue.put_nowait)
        self._prompts = prompts
        self._task: asyncio.Task[None] | None = None
        self._ended = False

    def __aiter__(self) -> Self:
        """The stream itself."""
        return self

    async def __anext__(self) -> Event:
        """The next event of the run."""
        self._start()
        event = None if self._ended else await self._queue.get()
        if event is None:
            self._ended = True
            raise StopAsyncIteration
        return event

    async def result(self) -> tuple[Message, ...]:
        """Wait for the end of the run; returns the messages that it added."""
        await self._start()
        return tuple(self._run.added)

    async def aclose(self) -> None:
        """Abort the run, if it goes on, and wait for its end."""
        self._run.signal.abort("the stream was closed")
        if self._task is not None:
            await self._task
        self._ended = True

    def _start(self) -> asyncio.Task[None]:
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._work())
        return self._task

    async def _work(self) -> None:
        try:
            await run_loop(self._run, self._prompts)
        finally:
            self._queue.put_nowait(None)


def agent_loop(
    prompts: Sequence[Message], context: AgentContext, config: LoopConfig, signal: AbortSignal | None = None
) -> EventStream:
    """Run from new messages; yields events. ``context`` itself is not changed.

    Raises:
        InvalidMessageRoleError: No message of a user or a tool stands among the prompts.
    """
    if not any(isinstance(message, UserMessage | ToolResultMessage) for message in prompts):
        raise InvalidMessageRoleError("A prompt needs at least one message of a user or a tool.")
    return EventStream(context, config, signal or AbortSignal(), prompts)


def agent_loop_continue(context: AgentContext, config: LoopConfig, signal: AbortSignal | None = None) -> EventStream:
    """Run from a history as it stands; yields events. ``context`` itself is not changed.

    Raises:
        InvalidMessageRoleError: The last message is neither a user's nor a tool's.
    """
    require_open_end(context.messages)
    return EventStream(context, config, signal or AbortSignal(), ())


def require_open_end(messages: Sequence[Message]) -> None:
    """Refuse a history that waits for no answer.

    Raises:
        InvalidMessageRoleError: The last message, notes left aside, is neither a user's nor a tool's.
    """
    if not has_open_end(messages):
        last = _last_word(messages)
        role = "is empty" if last is None else f"ends with a message of role {last.role!r}"
        raise InvalidMessageRoleError(
            f"The history {role}; to continue, its last message must be a user's or a tool's.",
            "Use prompt(...) to say something new.",
        )


def has_open_end(messages: Sequence[Message]) -> bool:
    """Whether a history waits for an answer: its last message, notes left aside, is a user's or a tool's."""
    return isinstance(_last_word(messages), UserMessage | ToolResultMessage)


def _last_word(messages: Sequence[Message]) -> Message | None:
    return next((message for message in reversed(messages) if not isinstance(message, CustomMessage)), None)


async def stream_assistant_response(
    context: AgentContext, config: LoopConfig, signal: AbortSignal, emit: Emit
) -> AssistantMessage:
    """One LLM call without its tools: tells the message's events and returns it whole. Never raises."""
    history = AgentContext(context.system_prompt, list(context.messages), context.tools)
    return await answer(Run(history, config, signal, emit))
