"""CellOutput: one run, shown in the output of the cell that asks, as it comes."""

from __future__ import annotations

import asyncio
import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

from IPython.display import publish_display_data  # pyright: ignore[reportUnknownVariableType] - IPython has no types here

from yiemagent_nb.core.events import Event, MessageEnd, MessageUpdate, ToolExecutionEnd
from yiemagent_nb.core.messages import Message, new_id
from yiemagent_nb.core.signal import AbortSignal
from yiemagent_nb.widgets.call_times import CallTimes
from yiemagent_nb.widgets.static_transcript import StaticTranscript
from yiemagent_nb.widgets.transcript_output import REST, in_kernel

if TYPE_CHECKING:
    from yiemagent_nb.core.agent import Agent

__all__ = ["CellOutput"]

SHORTEST_INTERVAL = 0.25
SECONDS_PER_MEGABYTE = 4.0
"""Each renewal sends the whole output, so a long one is renewed less often."""


class CellOutput:
    """While entered, shows what the agent says and does below the cell that runs.

    In a terminal, which cannot renew an output, it prints once, when it is left.
    """

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._name = new_id("cell")
        self._added: list[Message] = []
        self._times = CallTimes()
        self._transcript = StaticTranscript(self._times)
        self._live = in_kernel()
        self._next = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def __enter__(self) -> Self:
        """Begin to listen."""
        self._loop = asyncio.get_running_loop()
        self._unsubscribe = self._agent.subscribe(self._observe)
        if self._live:
            self._publish(update=False)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Show the whole, and listen no more."""
        self._unsubscribe()
        if self._timer is not None:
            self._timer.cancel()
        self._publish(update=self._live)

    def _observe(self, event: Event, _signal: AbortSignal) -> None:
        self._times.observe(event)
        if isinstance(event, MessageEnd) and event.message.role != "user":
            self._added.append(event.message)
        if self._live and self._loop is not None and isinstance(event, MessageEnd | MessageUpdate | ToolExecutionEnd):
            self._loop.call_soon_threadsafe(self._schedule)

    def _schedule(self) -> None:
        if self._timer is None and self._loop is not None:
            self._timer = self._loop.call_later(max(0.0, self._next - time.monotonic()), self._renew)

    def _renew(self) -> None:
        self._timer = None
        self._publish(update=True)

    def _publish(self, *, update: bool) -> None:
        start = time.monotonic()
        streaming = self._agent.state.streaming_message
        shown = [*self._added, streaming] if streaming is not None and streaming.content else self._added
        bundle = self._transcript.bundle(shown)
        publish_display_data(bundle, transient={"display_id": self._name}, update=update)
        size, end = len(bundle["text/html"]), time.monotonic()
        self._next = end + max(SHORTEST_INTERVAL, SECONDS_PER_MEGABYTE * size / 1e6, REST * (end - start))
