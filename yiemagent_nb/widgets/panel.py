"""Panel: a part of an ``AgentWidget`` that also stands alone."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from typing import TYPE_CHECKING, Any, ClassVar

from yiemagent_nb.core.events import Event
from yiemagent_nb.widgets.protocol import PageEvent, PageMessage

if TYPE_CHECKING:
    from yiemagent_nb.core.agent import Agent
    from yiemagent_nb.widgets.agent_widget import AgentWidget

__all__ = ["Panel", "Post"]

Post = Callable[[Iterable[PageEvent]], None]
"""Sends events to the page, with the next batch; from any thread."""


class Panel:
    """A part of an ``AgentWidget``: what it tells the page, and what it does when the page asks.

    Displayed, or through ``widget``, a panel is a widget of its own.

    Args:
        agent: The agent that the panel shows.
    """

    name: ClassVar[str]
    """The panel's name in the page."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self._widget: AgentWidget | None = None

    def observe(self, event: Event) -> Iterable[PageEvent]:
        """What the page is told of an event. Called on the agent's loop, in order."""
        raise NotImplementedError

    def snapshot(self) -> dict[str, Any]:
        """All that a new page needs."""
        raise NotImplementedError

    def handle(self, message: PageMessage, post: Post) -> bool | Coroutine[Any, Any, None]:
        """Do what the page asks, if it is this panel's business; returns whether it was.

        Called from any thread: it calls only what is thread-safe. A coroutine that it returns is
        awaited on the agent's event loop, and the page is answered when it ends.

        Raises:
            YiemAgentError: It cannot be done; the page is told.
        """
        raise NotImplementedError

    @property
    def widget(self) -> AgentWidget:
        """The panel alone as a widget, to display or to compose with others."""
        if self._widget is None:
            from yiemagent_nb.widgets.agent_widget import AgentWidget  # noqa: PLC0415 - the widget imports panels

            self._widget = AgentWidget(self.agent, panels=[self], header=False)
        return self._widget

    def close(self) -> None:
        """Take back the widget of its own, if there is one."""
        if self._widget is not None:
            self._widget.close()
            self._widget = None

    def _ipython_display_(self) -> None:
        self.widget.show()
