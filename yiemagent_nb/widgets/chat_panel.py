"""ChatPanel: the conversation and a composer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar

from yiemagent_nb.core.errors import InvalidParametersError
from yiemagent_nb.core.events import Event
from yiemagent_nb.widgets.panel import Panel, Post
from yiemagent_nb.widgets.protocol import (
    Answer,
    Approve,
    Earlier,
    FollowUp,
    LoadAudio,
    PageEvent,
    PageMessage,
    Send,
    Stop,
)
from yiemagent_nb.widgets.question_fields import with_titles
from yiemagent_nb.widgets.transcript import TranscriptFeed

if TYPE_CHECKING:
    from yiemagent_nb.core.agent import Agent

__all__ = ["ChatPanel"]


class ChatPanel(Panel):
    """Talks with an agent: its answers as they stream, its tool calls, approvals, servers' questions, and a composer.

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
        """Send, queue, stop, approve, answer, or give a part of the transcript."""
        match message:
            case Send():
                self.agent.input_channel.put_nowait(message.text)
            case FollowUp():
                self.agent.follow_up_channel.put_nowait(message.text)
            case Stop():
                self.agent.abort()
            case Approve():
                self.agent.approvals.resolve(message.request_id, message.choice, message.reason, message.arguments)
            case Answer():
                self._answer(message)
            case Earlier():
                post([self._feed.earlier(message.before)])
            case LoadAudio():
                audio = self._feed.audio(message.key)
                if audio is None:
                    raise InvalidParametersError(
                        "This recording is not at hand any more.", "Find it in the details of its result."
                    )
                post([audio])
            case _:
                return False
        return True

    def _answer(self, message: Answer) -> None:
        questions = self.agent.questions
        match message.action:
            case "accept":
                waiting = {each.request_id: each.schema for each in questions.pending}
                try:
                    questions.answer(message.request_id, message.content)
                except InvalidParametersError as error:
                    raise with_titles(error, waiting.get(message.request_id)) from error
            case "decline":
                questions.decline(message.request_id)
            case "cancel":
                questions.cancel(message.request_id)
