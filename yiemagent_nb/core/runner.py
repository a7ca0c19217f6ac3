"""Runner: an agent's runs, one after the other, each in a task of its own."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar, cast

from yiemagent_nb.core.approval import Approvals
from yiemagent_nb.core.binding import LoopBinding
from yiemagent_nb.core.branches import Branches
from yiemagent_nb.core.channels import SHUTDOWN
from yiemagent_nb.core.concurrency import ABORT_GRACE, Interrupted, run_abortable
from yiemagent_nb.core.config import LoopConfig
from yiemagent_nb.core.errors import (
    AgentBusyError,
    AgentClosedError,
    ChannelClosed,
    ChannelFull,
    RateLimitedError,
    YiemAgentError,
    describe_error,
)
from yiemagent_nb.core.events import AgentError, Event, HistoryChanged, QueueChanged
from yiemagent_nb.core.hooks import AgentContext
from yiemagent_nb.core.hub import Hub
from yiemagent_nb.core.limits import MessageMeter
from yiemagent_nb.core.loop import has_open_end, require_open_end, run_loop, stream_assistant_response
from yiemagent_nb.core.messages import AssistantMessage, Message, UserMessage
from yiemagent_nb.core.openai_form import to_openai
from yiemagent_nb.core.output import OutputFormat
from yiemagent_nb.core.questions import Questions
from yiemagent_nb.core.queues import Queues, Sendable
from yiemagent_nb.core.request import RequestBuilder
from yiemagent_nb.core.run import Run
from yiemagent_nb.core.signal import AbortSignal
from yiemagent_nb.core.tools import current_agent

__all__ = ["Runner"]

_active: set[asyncio.Task[None]] = set()
"""The tasks of all runs: an event loop holds its tasks weakly, and a run goes on though nobody holds its agent."""

T = TypeVar("T")


class Runner:
    """Starts runs for prompts and for what waits in the channels, and ends them.

    There is a task only while a run is active. Coroutines run on the agent's loop.

    Args:
        owner: The agent, for tools that ask for it.
        context: System prompt, history and tools, as they are at each moment.
        config: How runs go.
        hub: Where events go.
    """

    def __init__(self, owner: object, context: AgentContext, config: LoopConfig, hub: Hub) -> None:
        self._owner = owner
        self._context = context
        self._config = config
        self._hub = hub
        self.meter = MessageMeter(lambda: self._config.limits)
        self.meter.reset(sum(isinstance(message, UserMessage) for message in context.messages))
        self.queues = Queues(self._count, self._on_queue_change)
        self.branches = Branches(cast("list[Message]", context.messages))
        self.approvals = Approvals(self.emit)
        self.questions = Questions(self.emit)
        self.binding = LoopBinding(self._leave_loop, self._on_queues_moved)
        self.run: Run | None = None
        self.error_message: str | None = None
        self.spent = 0.0
        self._task: asyncio.Task[None] | None = None
        self._abandon: Callable[[], None] = _do_nothing
        self._signal = AbortSignal()
        self._queue_told = False
        self._idle_waiters: list[asyncio.Future[None]] = []
        self._beside: dict[AbortSignal, Run | None] = {}
        """The signals of what goes on beside the conversation, and the run in which it began."""
        self._by_hand: dict[AbortSignal, asyncio.Future[None]] = {}
        """Calls by hand, which the end of a run does not end, and when each is over."""
        self._started: set[asyncio.Task[None]] = set()
        config.deliver = self._deliver
        config.take_steering = self.queues.take_steering
        config.take_follow_ups = self.queues.take_follow_ups

    async def prompt(self, messages: Sequence[Message]) -> AssistantMessage:
        """Run from new messages; returns the run's last answer."""
        return _last_answer(await self._prompt(messages))

    async def prompt_for(self, messages: Sequence[Message], output: OutputFormat[T]) -> T:
        """Run from new messages; returns what the run's last answer says in the form that is wanted."""
        run = await self._prompt(messages, output)
        aborted = "The run was aborted." if run.signal.aborted else None
        return output.read(_last_answer(run), run.error_message or aborted)

    async def _prompt(self, messages: Sequence[Message], output: OutputFormat[Any] | None = None) -> Run:
        self._require_means()
        self.meter.admit(sum(isinstance(message, UserMessage) for message in messages))
        self.queues.held = False
        return await self._result(self._start(messages, output))

    async def continue_(self) -> AssistantMessage:
        """Run from the history as it stands, or from what waits; returns the run's last answer."""
        self.require_idle()
        messages = self._context.messages
        prompts = () if has_open_end(messages) else self._take_next()
        if not prompts:
            require_open_end(messages)
        self.queues.held = False
        return _last_answer(await self._result(self._start(prompts)))

    async def edit(self, index: int, content: str | UserMessage) -> asyncio.Future[Run]:
        """Begin a branch in which something else is said in place of the message ``index``; returns its run."""
        self._require_means()
        message = self.branches.read_edit(index, content)
        self.meter.admit()
        return self._branch(index, [message])

    async def regenerate(self, index: int | None) -> asyncio.Future[Run]:
        """Begin a branch in which another answer stands in place of the answer ``index``; returns its run."""
        self._require_means()
        return self._branch(self.branches.find_answer(index), ())

    def _branch(self, index: int, prompts: Sequence[Message]) -> asyncio.Future[Run]:
        self.branches.go_back(index)
        self._tell_history()
        self.queues.held = False
        return self._start(prompts)

    async def last_answer(self, done: Coroutine[Any, Any, asyncio.Future[Run]]) -> AssistantMessage:
        """The last answer of a run that begins; cancelling this aborts the run."""
        return _last_answer(await self._result(await done))

    def go_back(self, index: int) -> None:
        """End the history before a message."""
        self.require_idle()
        self.branches.require(index)
        self.branches.go_back(index)
        self.error_message = None
        self._tell_history()

    def switch_branch(self, index: int, position: int) -> None:
        """Show another branch."""
        self.require_idle()
        self.branches.switch(index, position)
        self.error_message = None
        self._tell_history()

    def start_beside(self, work: Callable[[], Coroutine[Any, Any, object]]) -> bool:
        """Start ``work()`` on the agent's loop, from any thread; returns whether the agent has one."""

        def begin() -> None:
            task = asyncio.get_running_loop().create_task(self._report_errors(work))
            self._started.add(task)
            task.add_done_callback(self._started.discard)

        return self.binding.call(begin)

    async def _report_errors(self, work: Callable[[], Coroutine[Any, Any, object]]) -> None:
        try:
            await work()
        except Exception as error:
            known = error if isinstance(error, YiemAgentError) else YiemAgentError(describe_error(error))
            self.emit(AgentError(known.code, str(known)))

    def take_back(self, message: Sendable) -> bool:
        """Take a message off the channel on which it waits; returns whether it did."""
        taken = self.queues.take_back(message)
        if taken and isinstance(message, UserMessage):
            self.meter.release()
        return taken

    async def alongside(self, work: Callable[[AbortSignal], Coroutine[Any, Any, T]]) -> T:
        """Await ``work(signal)``; the signal is set by ``abort``, and at the end of the run that is active now."""
        run = self.run
        signal = AbortSignal(None if run is None else run.signal)
        self._beside[signal] = run
        try:
            return await work(signal)
        finally:
            self._beside.pop(signal, None)
            signal.detach()

    async def by_hand(self, parent: AbortSignal | None, work: Callable[[AbortSignal], Coroutine[Any, Any, T]]) -> T:
        """Await ``work(signal)``, which goes beside all runs; the signal is set by ``parent`` and by ``shutdown``."""
        if self.queues.closed:
            raise AgentClosedError("The agent was shut down.", "Build a new one.")
        signal = AbortSignal(parent)
        over = self._by_hand[signal] = asyncio.get_running_loop().create_future()
        try:
            return await work(signal)
        finally:
            del self._by_hand[signal]
            over.set_result(None)
            signal.detach()

    async def complete(
        self, context: AgentContext, options: Mapping[str, Any], signal: AbortSignal
    ) -> AssistantMessage:
        """Ask the model once, beside the conversation: of the answer, only its cost is kept."""
        if self._over_budget:
            raise self._budget_error()
        config = replace(
            self._config,
            options={**self._config.options, **options},
            prepare_context=None,
            format_messages=None,
            output=None,
            request_builder=RequestBuilder(),
        )
        answer = await stream_assistant_response(context, config, signal, _to_nobody)
        if answer.usage is not None and answer.usage.cost is not None:
            spender = self if self.run is None else self.run
            spender.spent += answer.usage.cost.total
        return answer

    def abort(self) -> None:
        """End the run and what goes on beside it, from any thread, and hold what waits."""
        self.queues.hold()
        run = self.run
        if run is not None:
            run.signal.abort()
        for signal in tuple(self._beside):
            signal.abort()

    async def wait_idle(self) -> None:
        """Wait until nothing runs and listeners have handled everything."""
        await self._hub.flush()
        self._start_next()
        while self.run is not None:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._idle_waiters.append(waiter)
            await waiter
        await self._hub.flush()

    async def shutdown(self) -> None:
        """End after the work in hand."""
        with contextlib.suppress(ChannelClosed):  # someone else shut it down meanwhile
            while not self._put_shutdown():
                await self.wait_idle()
        await self.wait_idle()
        for signal in tuple(self._by_hand):
            signal.abort("the agent was shut down")
        if self._by_hand:
            await asyncio.wait(self._by_hand.values(), timeout=2 * ABORT_GRACE)

    def _put_shutdown(self) -> bool:
        try:
            self.queues.input.put_nowait(SHUTDOWN)
        except ChannelFull:
            if self.run is not None or not self.queues.held:
                return False
            self.queues.closing = True  # what is held there is not taken any more
        return True

    def reset(self) -> None:
        """Forget everything that was said and everything that waits."""
        self.require_idle()
        cast("list[Message]", self._context.messages).clear()
        self.branches.clear()
        self.queues.clear()
        self.approvals.clear()
        self.meter.reset()
        self.error_message = None
        self.spent = 0.0
        self._tell_history()

    def _tell_history(self) -> None:
        self.tell(HistoryChanged(len(self._context.messages)))

    def emit(self, event: Event) -> None:
        """Publish on the agent's loop."""
        self._hub.publish(event, self._signal)

    def tell(self, event: Event) -> None:
        """Publish from any thread."""
        if self.binding.is_here:
            self.emit(event)
        else:
            self.binding.call(lambda: self.emit(event))

    def require_idle(self) -> None:
        """Refuse while a run is active, and after the shutdown."""
        if self.queues.closed:
            raise AgentClosedError("The agent was shut down.", "Build a new one; messages= takes this one's history.")
        if self.run is not None:
            raise AgentBusyError(
                "The agent is working on something else.",
                "Use steer(...) or follow_up(...), or wait with `await agent.wait_idle()`.",
            )

    def _require_means(self) -> None:
        """Refuse while a run is active, after the shutdown, and when all that may be spent is spent."""
        self.require_idle()
        if self._over_budget:
            raise self._budget_error()

    def _start(self, prompts: Sequence[Message], output: OutputFormat[Any] | None = None) -> asyncio.Future[Run]:
        """Start a run in a task that has the caller's context variables."""
        signal = AbortSignal()
        signal.on_abort(self.queues.hold)
        run = Run(
            self._context,
            self._config,
            signal,
            self.emit,
            approvals=self.approvals,
            tracing=lambda: self._hub.tracing,
            spent=self.spent,
            output=output,
            observe=lambda: self._hub.exchanges.tell,
            observe_calls=lambda: self._hub.calls.tell,
        )
        self._signal = signal
        self.run = run
        self.approvals.run_began()
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Run] = loop.create_future()
        self._task = loop.create_task(self._serve(run, prompts, done))
        _active.add(self._task)
        self._task.add_done_callback(_active.discard)
        abandon = self._abandon = partial(self._never_began, run, prompts, done)
        self._task.add_done_callback(lambda _: abandon())
        return done

    async def _serve(self, run: Run, prompts: Sequence[Message], done: asyncio.Future[Run]) -> None:
        current_agent.set(self._owner)
        try:
            reason = await run_loop(run, prompts)
        except BaseException as error:  # the loop ends, or a person pressed Ctrl-C
            self.queues.hold()
            self._end(run)
            self._start_next()  # tells those who wait for the end
            _fail(done, AgentClosedError(f"The run was stopped from outside ({type(error).__name__})."))
            raise
        if reason in ("error", "max_cost"):
            self.queues.hold()
        self._end(run)
        if not done.done():
            done.set_result(run)
        self._start_next()

    def _never_began(self, run: Run, prompts: Sequence[Message], done: asyncio.Future[Run]) -> None:
        """End a run whose task was cancelled before its first step. What it was to say is kept."""
        if self.run is not run:
            return
        cast("list[Message]", self._context.messages).extend(prompts)
        self.queues.hold()
        self._end(run)
        error = AgentClosedError("The run was stopped from outside before it began.", "Use continue_() to go on.")
        self.error_message = str(error)
        self.emit(AgentError(error.code, str(error)))
        self._start_next()
        _fail(done, error)

    def _end(self, run: Run) -> None:
        self.spent = run.spent
        self.error_message = run.error_message
        self.run = None
        self._task = None
        self.approvals.run_ended()
        for signal in [signal for signal, began_in in self._beside.items() if began_in is run]:
            signal.abort("the run is over")

    async def _result(self, done: asyncio.Future[Run]) -> Run:
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            self.abort()
            await asyncio.wait({done}, timeout=2 * ABORT_GRACE)
            raise

    def _start_next(self) -> None:
        """Start a run for what waits, unless one is active or what waits is held."""
        if self.run is not None or self.queues.closed:
            return
        prompts = () if self.queues.held or self._refuse_over_budget() else self._take_next()
        if prompts:
            self._start(prompts)
            return
        if self.queues.must_close:
            self.queues.close()
        for waiter in self._idle_waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._idle_waiters.clear()

    def _take_next(self) -> Sequence[Message]:
        return self.queues.take_steering() or self.queues.take_follow_ups()

    def _refuse_over_budget(self) -> bool:
        if not self._over_budget or not any(self.queues.waiting()):
            return False
        self.queues.hold()
        error = self._budget_error()
        self.error_message = str(error)
        self.emit(AgentError(error.code, str(error)))
        return True

    @property
    def _over_budget(self) -> bool:
        limit = self._config.limits.max_cost
        return limit is not None and self.spent_by_now >= limit

    @property
    def spent_by_now(self) -> float:
        """US dollars, those of the run that is active among them."""
        return self.spent if self.run is None else self.run.spent

    def _budget_error(self) -> RateLimitedError:
        return RateLimitedError(
            f"The agent spent ${self.spent_by_now:.4f}, which reaches Limits.max_cost = "
            f"${self._config.limits.max_cost}; nothing was sent.",
            "Raise the limit with set_limits(...), or call reset().",
        )

    async def _deliver(self, reply: AssistantMessage, signal: AbortSignal) -> None:
        """Put an answer on the output channel; an abort ends the wait for a reader."""
        output = self.queues.output
        if output.closed:
            return
        fields = to_openai(reply)
        if reply.error_message is not None:
            fields["error_message"] = reply.error_message
        try:
            output.put_nowait(fields)
        except ChannelFull:
            with contextlib.suppress(Interrupted, ChannelClosed):
                await run_abortable(output.put(fields), signal)

    def _count(self, message: Message) -> None:
        if isinstance(message, UserMessage):
            self.meter.admit()

    def _on_queue_change(self) -> None:
        if not self._queue_told:
            self._queue_told = True  # before the call: the loop of another thread may clear it at once
            if not self.binding.call(self._on_queues_moved):
                self._queue_told = False

    def _on_queues_moved(self) -> None:
        self._queue_told = False
        self.emit(QueueChanged(*self.queues.waiting()))
        self._start_next()

    def _leave_loop(self) -> None:
        """End a run whose loop was closed, or stopped for good, and leave a valid history."""
        self._queue_told = False
        beside, self._beside = self._beside, {}
        for signal in beside:
            signal.abort("its event loop was closed")
        run, task = self.run, self._task
        if run is None or task is None:
            return
        if task.get_loop().is_closed():
            self._idle_waiters.clear()
        run.signal.abort("its event loop was closed")
        _active.discard(task)
        task.add_done_callback(lambda task: task.cancelled() or task.exception())  # should that loop go on after all
        task.get_coro().close()  # ends the run as a cancellation does, which that loop can no longer deliver
        run.emit = _to_nobody
        self._abandon()
        self.error_message = "The event loop was closed under the run."
        self.emit(AgentError(AgentClosedError.code, self.error_message))


def _to_nobody(_: Event) -> None:
    pass


def _do_nothing() -> None:
    pass


def _fail(done: asyncio.Future[Run], error: AgentClosedError) -> None:
    if not done.done() and not done.get_loop().is_closed():
        done.set_exception(error)
        done.exception()  # nobody may be waiting for it


def _last_answer(run: Run) -> AssistantMessage:
    return next(message for message in reversed(run.added) if isinstance(message, AssistantMessage))
