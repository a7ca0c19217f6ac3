"""FrameQueue: what goes to the page, gathered into numbered batches, at most 25 a second."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from yiemagent_nb.core.runtime import running_loop
from yiemagent_nb.widgets.protocol import PageEvent, json_safe

__all__ = ["FRAME", "FrameQueue"]

FRAME = 0.04
"""Seconds between two batches at least. Each costs 0.6 kB on its way, whatever is in it."""

_LOST_TIMER = 1.0
"""Seconds after which a timer that has not fired is thought lost with its event loop."""

_log = logging.getLogger(__name__)


class FrameQueue:
    """Gathers events and sends them as batches.

    Nothing is sent while nobody looks. Deltas of one block within a frame are joined, and of the
    progress of one call, the tools, the backend and the queue only the newest stays. A ``renewed``
    brings a snapshot with its batch. Every method
    may be called from any thread; batches are built on the loop that ``bind`` saw, so that a
    snapshot meets the agent between two of its events.

    Args:
        send: Takes each batch; called in order, never twice at once.
        snapshot: Builds the snapshot that goes with a batch.
        frame: Seconds between two batches.
    """

    def __init__(
        self, send: Callable[[dict[str, Any]], None], snapshot: Callable[[], dict[str, Any]], frame: float = FRAME
    ) -> None:
        self.lock = threading.RLock()
        self._send = send
        self._snapshot = snapshot
        self._frame = frame
        self._loop: asyncio.AbstractEventLoop | None = None
        self._events: list[PageEvent] = []
        self._joined: dict[tuple[Any, ...], PageEvent] = {}
        self._seq = 0
        self._wants_snapshot = False
        self._awake = False
        self._closed = False
        self._last = float("-inf")
        self._due: float | None = None

    def bind(self) -> None:
        """Take the loop of this thread, if one runs, for the agent's."""
        self._loop = running_loop() or self._loop

    def wake(self, last_seq: int, *, greet: bool) -> None:
        """A page is there and has seen batch ``last_seq``.

        Args:
            last_seq: The number of the last batch that the page has; 0 where it has none.
            greet: The page asks for a snapshot if it is behind. Otherwise it only shows that it is
                there, and batches may still be under way to it.
        """
        with self.lock:
            if (greet and last_seq == 0) or (last_seq != self._seq and (greet or not self._awake)):
                self._wants_snapshot = True
            self._awake = not self._closed
            self._schedule()

    def sleep(self) -> None:
        """No page looks any more."""
        with self.lock:
            self._awake = False
            self._drop()

    def close(self) -> None:
        """Send nothing more."""
        with self.lock:
            self._closed = True
            self.sleep()

    def post(self, events: Iterable[PageEvent]) -> None:
        """Add events to the next batch."""
        with self.lock:
            for event in events:
                self._add(event)
            if not self._awake:
                self._drop()
            elif self._events:
                self._schedule()

    def flush(self) -> None:
        """Send what waits, now."""
        with self.lock:
            self._due = None
            if not self._awake or not (self._events or self._wants_snapshot):
                return
            events, self._events = self._events, []
            self._joined.clear()
            self._last = time.monotonic()
            self._seq += 1
            for event in events:
                if "pieces" in event:
                    event["text"] = "".join(event.pop("pieces"))
            batch: dict[str, Any] = {"seq": self._seq, "events": json_safe(events)}
            try:
                if self._wants_snapshot:
                    self._wants_snapshot = False
                    batch["snapshot"] = json_safe(self._snapshot())
                self._send(batch)
            except Exception:
                _log.exception("batch %d for the page was lost; the page will ask for a snapshot", self._seq)

    def _drop(self) -> None:
        if self._events:
            self._seq += 1  # what is dropped leaves a gap, which the next page notices
            self._events = []
            self._joined.clear()

    def _add(self, event: PageEvent) -> None:
        match event["type"]:
            case "delta":
                key = ("delta", event["block"])
                if (known := self._joined.get(key)) is not None:
                    known["pieces"].append(event["text"])
                    known.update((name, event[name]) for name in ("call_id", "name") if name in event)
                    return
                event["pieces"] = [event.pop("text")]
                self._joined[key] = event
            case "tool_update":
                key = ("tool_update", event["call_id"])
                if (known := self._joined.get(key)) is not None:
                    known.update(event)
                    return
                self._joined[key] = event
            case "tools" | "backend" | "queue" | "usage" as kind:  # each says all there is of its kind
                if (known := self._joined.get((kind,))) is not None:
                    known.update(event)
                    return
                self._joined[kind,] = event
            case "panel" if event["whole"]:
                key = ("panel", event["panel"], event["event"]["type"])
                if (known := self._joined.get(key)) is not None:
                    known.update(event)
                    return
                self._joined[key] = event
            case "renewed":
                self._wants_snapshot = True
                self._joined.clear()
            case _:
                self._joined.clear()  # what comes after this event is not joined with what came before it
        self._events.append(event)

    def _schedule(self) -> None:
        now = time.monotonic()
        if self._due is not None and now < self._due + _LOST_TIMER:
            return
        delay = max(0.0, self._last + self._frame - now)
        self._due = now + delay
        running = running_loop()
        loop = self._loop if self._loop is not None and not self._loop.is_closed() else running
        if loop is None:
            timer = threading.Timer(delay, self.flush)
            timer.daemon = True
            timer.start()
        elif loop is running:
            loop.call_later(delay, self.flush)
        else:
            loop.call_soon_threadsafe(loop.call_later, delay, self.flush)
