"""Delivery of events: to the sink, to sync listeners inline, to async ones through queues."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

from yiemagent_nb.core.call_stages import CallStage
from yiemagent_nb.core.errors import AgentBusyError, InvalidParametersError, describe_error
from yiemagent_nb.core.events import AgentError, Event, MessageUpdate, Trace
from yiemagent_nb.core.exchange import Exchange
from yiemagent_nb.core.execution import is_async_callable
from yiemagent_nb.core.hooks import hook_name
from yiemagent_nb.core.observers import Observers
from yiemagent_nb.core.runtime import running_loop
from yiemagent_nb.core.signal import AbortSignal

__all__ = ["EventSink", "Hub", "Listener"]

Listener = Callable[[Event, AbortSignal], Awaitable[None] | None]
"""``listener(event, signal)``, sync or async."""

EventSink = Callable[[Event], Awaitable[None] | None]
"""Sees every event, ``Trace`` included."""

_log = logging.getLogger("yiemagent_nb")


class Hub:
    """Delivers events in order. All but ``subscribe`` runs on the agent's event loop.

    A sync listener is called inline. An async one has a queue of its own, so a slow one delays
    nobody; while it lags, text deltas of one message are merged. One that raises is reported once
    and stays subscribed.
    """

    def __init__(self) -> None:
        self._inline: tuple[_Inline, ...] = ()
        self._queued: tuple[_Queued, ...] = ()
        self._sink: _Inline | _Queued | None = None
        self.exchanges: Observers[Exchange] = Observers()
        self.calls: Observers[CallStage] = Observers()
        self._waiting: deque[tuple[Event, AbortSignal]] = deque()
        self._publishing = False

    @property
    def tracing(self) -> bool:
        """Whether anyone wants ``Trace`` events."""
        return self._sink is not None

    def set_sink(self, sink: EventSink | None) -> None:
        """Send everything to ``sink``, or to none.

        Raises:
            InvalidParametersError: It cannot be called.
        """
        if sink is None:
            self._sink = None
        else:
            _require_callable("an event sink", "(event)", sink)
            self._sink = self._wrap(lambda event, _signal: sink(event), sink)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Add a listener; returns the function that takes it back.

        Raises:
            InvalidParametersError: It cannot be called.
        """
        _require_callable("a listener", "(event, signal)", listener)
        entry = self._wrap(listener, listener)
        if isinstance(entry, _Queued):
            self._queued = (*self._queued, entry)
        else:
            self._inline = (*self._inline, entry)

        def unsubscribe() -> None:
            self._inline = tuple(each for each in self._inline if each is not entry)
            self._queued = tuple(each for each in self._queued if each is not entry)
            entry.active = False

        return unsubscribe

    def publish(self, event: Event, signal: AbortSignal) -> None:
        """Deliver an event. One that a listener causes comes after the one it listens to."""
        self._waiting.append((event, signal))
        if self._publishing:
            return
        self._publishing = True
        try:
            while self._waiting:
                self._deliver(*self._waiting.popleft())
        finally:
            self._publishing = False

    def _deliver(self, event: Event, signal: AbortSignal) -> None:
        if self._sink is not None:
            self._sink.take(event, signal)
        if isinstance(event, Trace):
            return
        for entry in self._inline:
            if entry.active:
                entry.take(event, signal)
        for entry in self._queued:
            if entry.active:
                entry.take(event, signal)

    async def flush(self) -> None:
        """Wait until every async listener has handled what was published.

        Raises:
            AgentBusyError: Awaited inside a listener, which would wait for itself.
        """
        entries = [*self._inline, *self._queued, *([self._sink] if self._sink is not None else [])]
        current = asyncio.current_task()
        if any(entry.task is current for entry in entries):
            raise AgentBusyError(
                "wait_idle was awaited inside a listener, and would wait for that listener itself.",
                "Await it in a task of its own.",
            )
        for entry in entries:
            task = entry.serve()
            if task is not None:
                await asyncio.wait({task})

    def _wrap(self, call: Listener, original: Callable[..., Any]) -> _Inline | _Queued:
        kind = _Queued if is_async_callable(original) else _Inline
        return kind(call, hook_name(original), self._report)

    def _report(self, name: str, error: BaseException, signal: AbortSignal) -> None:
        what = describe_error(error)
        _log.warning("the listener %s raised %s; it stays subscribed", name, what, exc_info=error)
        text = f"The listener {name} raised {what}. Further errors of it are only logged."
        self.publish(AgentError("LISTENER_ERROR", text), signal)


def _require_callable(what: str, arguments: str, value: object) -> None:
    if not callable(value):
        raise InvalidParametersError(
            f"{what[0].upper()}{what[1:]} is a function {arguments}, not {type(value).__name__}.",
            "Pass a function without calling it.",
        )


Report = Callable[[str, BaseException, AbortSignal], None]

_Work = tuple["Event | _Deltas | Awaitable[Any]", AbortSignal]


class _Entry:
    """A listener and what waits for it. Its task lives while there is something to await."""

    def __init__(self, call: Listener, name: str, report: Report) -> None:
        self.active = True
        self.task: asyncio.Task[None] | None = None
        self._call = call
        self._name = name
        self._report = report
        self._failed = False
        self._queue: deque[_Work] = deque()

    def serve(self) -> asyncio.Task[None] | None:
        """The task that serves what waits, on the running loop; None where nothing waits.

        Where no loop runs, nothing is awaited yet: what waits is served when something is.
        """
        loop = running_loop()
        task = self.task
        if task is not None and (task.done() or task.get_loop() is not loop):
            task = self.task = None
        if task is None and self._queue and loop is not None:
            task = self.task = loop.create_task(self._serve())
        return task

    async def _serve(self) -> None:
        while self._queue and self.active:
            work, signal = self._queue.popleft()
            try:
                if isinstance(work, _Deltas):
                    work = work.merged()
                answer = work if inspect.isawaitable(work) else self._call(work, signal)
                if answer is not None:
                    await answer
            except asyncio.CancelledError as error:
                if (task := self.task) is None or task.cancelling():
                    raise
                self._fail(error, signal)
            except (Exception, SystemExit) as error:
                self._fail(error, signal)

    def _fail(self, error: BaseException, signal: AbortSignal) -> None:
        if self._failed:
            _log.debug("the listener %s raised %s again", self._name, describe_error(error))
        else:
            self._failed = True
            self._report(self._name, error, signal)


class _Inline(_Entry):
    """A sync listener; awaitables that it returns after all are awaited in their order."""

    def take(self, event: Event, signal: AbortSignal) -> None:
        try:
            answer = self._call(event, signal)
        except (Exception, SystemExit, asyncio.CancelledError) as error:
            self._fail(error, signal)
            return
        if answer is not None and inspect.isawaitable(answer):
            self._queue.append((answer, signal))
            self.serve()


class _Queued(_Entry):
    """An async listener, called when what came before has been handled."""

    def take(self, event: Event, signal: AbortSignal) -> None:
        if isinstance(event, MessageUpdate):
            last = self._queue[-1][0] if self._queue else None
            if isinstance(last, _Deltas) and last.accepts(event):
                last.parts.append(event.delta)
                return
            self._queue.append((_Deltas(event), signal))
        else:
            self._queue.append((event, signal))
        self.serve()


class _Deltas:
    """Consecutive deltas of one block, joined when they are delivered."""

    __slots__ = ("first", "parts")

    def __init__(self, first: MessageUpdate) -> None:
        self.first = first
        self.parts = [first.delta]

    def accepts(self, update: MessageUpdate) -> bool:
        first = self.first
        return (
            update.kind == first.kind
            and update.block == first.block
            and update.message_id == first.message_id
            and update.tool_call_id == first.tool_call_id
        )

    def merged(self) -> MessageUpdate:
        first = self.first
        if len(self.parts) == 1:
            return first
        return MessageUpdate(
            message_id=first.message_id,
            kind=first.kind,
            delta="".join(self.parts),
            offset=first.offset,
            block=first.block,
            tool_call_id=first.tool_call_id,
            tool_name=first.tool_name,
        )
