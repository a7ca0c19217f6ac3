"""ChatPanel: the conversation and a composer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar

from yiemagent_nb.core.events import Event
from yiemagent_nb.widgets.panel import Panel, Post
from yiemagent_nb.widgets.protocol import Approve, Earlier, FollowUp, PageEvent, PageMessage, Send, Stop
from yiemagent_nb.widgets.transcript import TranscriptFeed

if TYPE_CHECKING:
    from yiemagent_nb.core.agent import Agent

__all__ = ["ChatPanel"]


class ChatPanel(Panel):
    """Talks with an agent: its answers as they stream, its tool calls, approvals, and a composer.

    Args:
        agent: The agent to talk with.

    Example::

        ChatPanel(agent)
    """

    name: ClassVar[str] = "chat"

    def __init__(self, agent: Agent) -> None:
        super().__init__(agent)
        self._feed = TranscriptFeed(agent)

    def observe(self, event: Event) -> Iterable[PageEvent]:
        """The events of the transcript."""
        return self._feed.translate(event)

    def snapshot(self) -> dict[str, Any]:
        """The newest part of the transcript, and what is going on."""
        return self._feed.snapshot()

    def handle(self, message: PageMessage, post: Post) -> bool:
        """Send, queue, stop, approve, or give an earlier part of the transcript."""
        match message:
            case Send():
                self.agent.input_channel.put_nowait(message.text)
            case FollowUp():
                self.agent.follow_up_channel.put_nowait(message.text)
            case Stop():
                self.agent.abort()
            case Approve():
                self.agent.approvals.resolve(message.request_id, message.choice, message.reason, message.arguments)
            case Earlier():
                post([self._feed.earlier(message.before)])
            case _:
                return False
        return True
