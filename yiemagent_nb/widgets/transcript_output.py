"""TranscriptOutput: the static transcript as an output beside a widget, renewed as turns end."""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

import IPython.display
from IPython.core.getipython import get_ipython

from yiemagent_nb.core.events import AgentEnd, Event, TurnEnd
from yiemagent_nb.core.signal import AbortSignal
from yiemagent_nb.widgets.static_transcript import transcript_bundle

if TYPE_CHECKING:
    from yiemagent_nb.core.agent import Agent

__all__ = ["TranscriptOutput", "in_kernel", "publish"]

SECONDS_PER_MEGABYTE = 2.0
"""A transcript of a megabyte of HTML is renewed at most every two seconds, a small one at once."""


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
        self._shown = False
        self._next = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._unsubscribe = agent.subscribe(self._observe)

    def show(self) -> None:
        """Display the output in the cell that runs."""
        self._shown = True
        self._publish(update=False)

    def close(self) -> None:
        """Renew the output no more; what was said stays in it."""
        self._unsubscribe()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _observe(self, event: Event, _signal: AbortSignal) -> None:
        if not self._shown or self._timer is not None or not isinstance(event, TurnEnd | AgentEnd):
            return
        delay = self._next - time.monotonic()
        if delay <= 0:
            self._renew()
        elif isinstance(event, AgentEnd):
            self._timer = asyncio.get_running_loop().call_later(delay, self._renew)

    def _renew(self) -> None:
        self._timer = None
        # In a fresh context the kernel takes the cell that runs now as the parent. The agent's own
        # context names the cell that created it, and programs that execute notebooks drop what
        # comes from another cell than the one that runs.
        contextvars.Context().run(self._publish, update=True)

    def _publish(self, *, update: bool) -> None:
        bundle = transcript_bundle(self._agent.state.messages, self._name)
        self._next = time.monotonic() + SECONDS_PER_MEGABYTE * len(bundle["text/html"]) / 1e6
        publish(bundle, name=self._name, update=update)
