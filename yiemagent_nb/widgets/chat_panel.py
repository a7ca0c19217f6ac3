"""ChatPanel: the conversation and a composer."""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from yiemagent_nb.core.errors import InvalidParametersError
from yiemagent_nb.core.events import Event
from yiemagent_nb.core.messages import UserMessage
from yiemagent_nb.sessions.export import conversation_file
from yiemagent_nb.widgets.asked import take_answer
from yiemagent_nb.widgets.attachments import read_attachments
from yiemagent_nb.widgets.commands import ChatCommands, CommandValue
from yiemagent_nb.widgets.panel import Buffers, Panel, Post
from yiemagent_nb.widgets.protocol import (
    Answer,
    Approve,
    Command,
    Earlier,
    Edit,
    Export,
    FollowUp,
    LoadAudio,
    PageEvent,
    PageMessage,
    Regenerate,
    Send,
    SteerNow,
    Stop,
    SwitchBranch,
    TakeBack,
)
from yiemagent_nb.widgets.transcript import TranscriptFeed

if TYPE_CHECKING:
    from yiemagent_nb.core.agent import Agent

__all__ = ["ChatPanel"]


class ChatPanel(Panel):
    """Talks with an agent: its answers as they stream, its tool calls, approvals, servers' questions, and a composer.

    Args:
        agent: The agent to talk with.
        commands: Slash commands of one's own, by name: a text that is sent, in which ``{text}`` becomes
            the words behind the command, or a function that gets the words and returns the text to
            send, or None. See ``yiemagent_nb.widgets.commands``.

    Raises:
        InvalidParametersError: A command cannot be used.

    Example::

        ChatPanel(agent, commands={"shorter": "Say it again in two sentences. {text}"})
    """

    name: ClassVar[str] = "chat"

    def __init__(self, agent: Agent, commands: Mapping[str, CommandValue] | None = None) -> None:
        super().__init__(agent)
        self._commands = ChatCommands(agent, commands)
        self._feed = TranscriptFeed(agent)

    def observe(self, event: Event) -> Iterable[PageEvent]:
        """The events of the transcript."""
        return self._feed.translate(event)

    def snapshot(self) -> dict[str, Any]:
        """The newest part of the transcript, and what is going on."""
        return {**self._feed.snapshot(), "commands": self._commands.forms()}

    def handle(self, message: PageMessage, post: Post, buffers: Buffers = ()) -> bool | Coroutine[Any, Any, None]:
        """Send, queue, stop, approve, answer, change course, or give a part of the transcript."""
        del buffers
        match message:
            case Edit():
                return self.agent.begin_edit(message.index, message.text)
            case Regenerate():
                return self.agent.begin_regenerate(message.index)
            case SwitchBranch():
                return self._switch(message)
            case Command():
                return self._commands.run(message.name, message.text, post) or True
            case _:
                return self._talk(message, post) or self._decide(message) or self._give(message, post)

    async def _switch(self, message: SwitchBranch) -> None:
        self.agent.switch_branch(message.index, message.position)

    def _talk(self, message: PageMessage, post: Post) -> bool:
        match message:
            case Send():
                self.agent.input_channel.put_nowait(read_attachments(message.text, message.attachments))
            case FollowUp():
                self.agent.follow_up_channel.put_nowait(read_attachments(message.text, message.attachments))
            case TakeBack():
                self._take_back(message, post)
            case SteerNow():
                self.agent.steer_now(self._feed.queue_keys.find(message.key))
            case Stop():
                self.agent.abort()
            case _:
                return False
        return True

    def _decide(self, message: PageMessage) -> bool:
        if not isinstance(message, Approve | Answer):
            return False
        take_answer(self.agent, message)
        return True

    def _give(self, message: PageMessage, post: Post) -> bool:
        match message:
            case Earlier():
                post([self._feed.earlier(message.before)])
            case Export():
                post([{"type": "file", "ticket": message.ticket, **self._file(message.format)}])
            case LoadAudio():
                post([self._feed.audio(message.key)])
            case _:
                return False
        return True

    def _take_back(self, message: TakeBack, post: Post) -> None:
        waiting = self._feed.queue_keys.find(message.key)
        if not self.agent.take_back(waiting):
            raise InvalidParametersError("This message does not wait any more.", "The agent has taken it.")
        content = [block.model_dump() for block in waiting.content] if isinstance(waiting, UserMessage) else []
        post([{"type": "taken_back", "ticket": message.ticket, "content": content}])

    def _file(self, form: Literal["markdown", "notebook"]) -> dict[str, str]:
        file = conversation_file(self.agent.messages, form)
        return {"name": file.name, "mime_type": file.mime_type, "text": file.text}
