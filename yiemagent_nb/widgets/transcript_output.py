"""TranscriptOutput: the static transcript as an output beside a widget, renewed as turns end."""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

import IPython.display
from IPython.core.getipython import get_ipython

from yiemagent_nb.core.events import AgentEnd, Event, HistoryChanged, TurnEnd
from yiemagent_nb.core.runtime import running_loop
from yiemagent_nb.core.signal import AbortSignal
from yiemagent_nb.widgets.call_times import CallTimes
from yiemagent_nb.widgets.static_transcript import StaticTranscript

if TYPE_CHECKING:
    from yiemagent_nb.core.agent import Agent

__all__ = ["REST", "TranscriptOutput", "in_kernel", "publish"]

_RENEWING = (TurnEnd, AgentEnd, HistoryChanged)

SECONDS_PER_MEGABYTE = 2.0
"""A transcript of a megabyte of HTML is renewed at most every two seconds, a small one at once."""

REST = 10.0
"""How many times as long as a renewal took there is none within a run: it holds up the run's event loop."""

_NOTHING = {"text/plain": ""}
"""An output can be replaced, but not taken away, from another cell than the one that shows it."""

_publish = cast("Callable[..., None]", getattr(IPython.display, "publish_display_data"))  # noqa: B009 - it has no types


def publish(
    data: Mapping[str, Any], metadata: Mapping[str, Any] | None = None, *, name: str = "", update: bool = False
) -> None:
    """Publish an output, or renew the one of that name."""
    _publish(dict(data), dict(metadata or {}), transient={"display_id": name} if name else {}, update=update)


def in_kernel() -> bool:
    """Whether this process is a Jupyter kernel, with outputs that can be renewed."""
    return getattr(get_ipython(), "kernel", None) is not None


class TranscriptOutput:
    """An output that keeps what was said in the notebook's file.

    Args:
        agent: Whose conversation it is.
        name: Names the output, and the class of its HTML, by which a live widget hides it.
    """

    def __init__(self, agent: Agent, name: str) -> None:
        self._agent = agent
        self._name = name
        self._times = CallTimes()
        self._transcript = StaticTranscript(self._times)
        self._published: dict[str, str] = {}
        self._shown = False
        self._next = self._next_in_run = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._unsubscribe = agent.subscribe(self._observe)

    def show(self) -> None:
        """Display the output in the cell that runs."""
        self._shown = True
        self._publish(update=False)

    def final(self) -> dict[str, str]:
        """The conversation as it is now, in a form that no widget hides."""
        return self._bundle()

    def vanish(self) -> None:
        """Leave nothing of the output where it was displayed."""
        if self._shown:
            publish(_NOTHING, name=self._name, update=True)

    def close(self) -> None:
        """Renew the output no more; what was said stays in it."""
        self._unsubscribe()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _observe(self, event: Event, _signal: AbortSignal) -> None:
        self._times.observe(event)
        if not self._shown or self._timer is not None or not isinstance(event, _RENEWING):
            return
        delay = (self._next_in_run if isinstance(event, TurnEnd) else self._next) - time.monotonic()
        loop = running_loop()
        if delay <= 0 or loop is None:
            self._renew()
        elif not isinstance(event, TurnEnd):
            self._timer = loop.call_later(delay, self._renew)

    def _renew(self) -> None:
        self._timer = None
        # In a fresh context the kernel takes the cell that runs now as the parent. The agent's own
        # context names the cell that created it, and programs that execute notebooks drop what
        # comes from another cell than the one that runs.
        contextvars.Context().run(self._publish, update=True)

    def _bundle(self, css_class: str = "") -> dict[str, str]:
        return self._transcript.bundle(self._agent.state.messages, css_class, self._branch_note)

    def _branch_note(self, index: int) -> str:
        branch = self._agent.branches.at(index)
        return f"Branch {branch.position + 1} of {branch.count}" if branch.count > 1 else ""

    def _publish(self, *, update: bool) -> None:
        start = time.monotonic()
        bundle = self._bundle(self._name)
        if not update or bundle != self._published:
            publish(bundle, name=self._name, update=update)
            self._published = bundle
        end = time.monotonic()
        self._next = end + SECONDS_PER_MEGABYTE * len(bundle["text/html"]) / 1e6
        self._next_in_run = max(self._next, end + REST * (end - start))
