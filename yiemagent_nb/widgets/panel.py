"""Panel: a part of an ``AgentWidget`` that also stands alone."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from yiemagent_nb.core.events import Event
from yiemagent_nb.widgets.page_message import Ticketed
from yiemagent_nb.widgets.panel_protocol import OpenPanel
from yiemagent_nb.widgets.protocol import PageEvent, PageMessage

if TYPE_CHECKING:
    from yiemagent_nb.core.agent import Agent
    from yiemagent_nb.widgets.agent_widget import AgentWidget

__all__ = ["Buffers", "Panel", "Post", "SidePanel", "reply"]

Post = Callable[[Iterable[PageEvent]], None]
"""Sends events to the page, with the next batch; from any thread."""

Buffers = Sequence[Any]
"""What came beside a message in binary, such as a token."""


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

    def connect(self, post: Post) -> Callable[[], None]:
        """A widget shows the panel, and takes what it tells by ``post``; returns what ends that."""
        del post
        return _do_nothing

    def observe(self, event: Event) -> Iterable[PageEvent]:
        """What the page is told of an event. Called on the agent's loop, in order."""
        raise NotImplementedError

    def snapshot(self) -> dict[str, Any] | None:
        """All that a new page needs; None while no page shows the panel."""
        raise NotImplementedError

    def handle(self, message: PageMessage, post: Post, buffers: Buffers = ()) -> bool | Coroutine[Any, Any, None]:
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


class SidePanel(Panel):
    """A panel beside the chat. It tells a page nothing before that opens it.

    One panel may stand in several widgets, which all hear what it tells.
    """

    def __init__(self, agent: Agent) -> None:
        super().__init__(agent)
        self._posts: tuple[Post, ...] = ()
        self._is_open = False

    @property
    def is_open(self) -> bool:
        """Whether a page has opened the panel; from then on it stays in step."""
        return self._is_open

    def connect(self, post: Post) -> Callable[[], None]:
        """See ``Panel``."""
        self._posts = (*self._posts, post)

        def leave() -> None:
            self._posts = tuple(each for each in self._posts if each is not post)

        return leave

    def state(self) -> dict[str, Any]:
        """All that a page needs which shows the panel; from any thread."""
        raise NotImplementedError

    def ask(self, message: PageMessage, post: Post, buffers: Buffers) -> bool | Coroutine[Any, Any, None]:
        """Do what the page asks, if it is this panel's business; see ``Panel.handle``."""
        raise NotImplementedError

    def tell(self, event: PageEvent, *, whole: bool = False) -> None:
        """Tell the pages that show the panel; from any thread. Dropped while none does.

        Args:
            event: One of ``panel_protocol``.
            whole: It tells all there is of its kind: of several in a batch only the newest goes over.
        """
        if self._is_open:
            told = self._event(event, whole=whole)
            for post in self._posts:
                post([dict(told)])

    def observe(self, event: Event) -> Iterable[PageEvent]:
        """Nothing: a panel tells when it has something to tell."""
        del event
        return ()

    def snapshot(self) -> dict[str, Any] | None:
        """See ``Panel``."""
        return self.state() if self._is_open else None

    def handle(self, message: PageMessage, post: Post, buffers: Buffers = ()) -> bool | Coroutine[Any, Any, None]:
        """See ``Panel``."""
        if not isinstance(message, OpenPanel):
            return self.ask(message, post, buffers)
        if message.panel != self.name:
            return False
        self._is_open = True
        post([self._event({"type": "state", "state": self.state()}, whole=True)])
        return True

    def _event(self, event: PageEvent, *, whole: bool) -> PageEvent:
        return {"type": "panel", "panel": self.name, "event": event, "whole": whole}


def reply(message: Ticketed, value: object, post: Post) -> None:
    """Give a page what it asked for; it is told just before that its request was accepted."""
    post([{"type": "reply", "ticket": message.ticket, "value": value}])


def _do_nothing() -> None:
    pass
