"""Delivery of events: to the sink, to sync listeners inline, to async ones through queues."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

from yiemagent_nb.core.errors import AgentBusyError
from yiemagent_nb.core.events import AgentError, Event, MessageUpdate, Trace
from yiemagent_nb.core.hooks import hook_name
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
        self._waiting: deque[tuple[Event, AbortSignal]] = deque()
        self._publishing = False

    @property
    def tracing(self) -> bool:
        """Whether anyone wants ``Trace`` events."""
        return self._sink is not None

    def set_sink(self, sink: EventSink | None) -> None:
        """Send everything to ``sink``, or to none."""
        if sink is None:
            self._sink = None
        else:
            self._sink = self._wrap(lambda event, _signal: sink(event), sink)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Add a listener; returns the function that takes it back.

        Raises:
            TypeError: It cannot be called.
        """
        if not callable(listener):
            raise TypeError(f"a listener is a function (event, signal), not {type(listener).__name__}")
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
        queued = [entry for entry in (*self._queued, self._sink) if isinstance(entry, _Queued)]
        current = asyncio.current_task()
        if any(entry.task is current for entry in queued):
            raise AgentBusyError(
                "wait_idle was awaited inside a listener, and would wait for that listener itself.",
                "Await it in a task of its own.",
            )
        for entry in queued:
            if entry.task is not None:
                await asyncio.wait({entry.task})

    def _wrap(self, call: Listener, original: Callable[..., Any]) -> _Inline | _Queued:
        target = original if inspect.isroutine(original) else getattr(original, "__call__", original)  # noqa: B004
        kind = _Queued if inspect.iscoroutinefunction(target) else _Inline
        return kind(call, hook_name(original), self._report)

    def _report(self, name: str, error: BaseException, signal: AbortSignal) -> None:
        _log.warning("the listener %s raised %r; it stays subscribed", name, error, exc_info=error)
        text = f"The listener {name} raised {type(error).__name__}: {error}. Further errors of it are only logged."
        self.publish(AgentError("LISTENER_ERROR", text), signal)


Report = Callable[[str, BaseException, AbortSignal], None]


class _Entry:
    def __init__(self, call: Listener, name: str, report: Report) -> None:
        self.active = True
        self._call = call
        self._name = name
        self._report = report
        self._failed = False

    def _fail(self, error: BaseException, signal: AbortSignal) -> None:
        if self._failed:
            _log.debug("the listener %s raised %r again", self._name, error)
        else:
            self._failed = True
            self._report(self._name, error, signal)


class _Inline(_Entry):
    """A sync listener; an awaitable that it returns after all is run beside the others."""

    def take(self, event: Event, signal: AbortSignal) -> None:
        try:
            answer = self._call(event, signal)
            if answer is not None and inspect.isawaitable(answer):
                task = asyncio.ensure_future(answer)
                _stragglers.add(task)
                task.add_done_callback(lambda task: self._settled(task, signal))
        except Exception as error:
            self._fail(error, signal)

    def _settled(self, task: asyncio.Future[Any], signal: AbortSignal) -> None:
        _stragglers.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail(error, signal)


_stragglers: set[asyncio.Future[Any]] = set()


class _Queued(_Entry):
    """An async listener with its queue; its task lives while there is something to deliver."""

    def __init__(self, call: Listener, name: str, report: Report) -> None:
        super().__init__(call, name, report)
        self.task: asyncio.Task[None] | None = None
        self._queue: deque[tuple[Event | _Deltas, AbortSignal]] = deque()

    def take(self, event: Event, signal: AbortSignal) -> None:
        if isinstance(event, MessageUpdate):
            last = self._queue[-1][0] if self._queue else None
            if isinstance(last, _Deltas) and last.accepts(event):
                last.parts.append(event.delta)
                return
            self._queue.append((_Deltas(event), signal))
        else:
            self._queue.append((event, signal))
        loop = running_loop()
        if loop is None:  # nothing is awaited yet: the listener is served when something is
            return
        if self.task is None or self.task.done() or self.task.get_loop() is not loop:
            self.task = loop.create_task(self._serve())

    async def _serve(self) -> None:
        while self._queue and self.active:
            entry, signal = self._queue.popleft()
            try:
                answer = self._call(entry.merged() if isinstance(entry, _Deltas) else entry, signal)
                if answer is not None:
                    await answer
            except Exception as error:
                self._fail(error, signal)


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
