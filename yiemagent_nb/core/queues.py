"""Queues: an agent's three channels, and in which order what waits on them is taken."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, cast

from yiemagent_nb.core.channels import SHUTDOWN, Channel, Shutdown
from yiemagent_nb.core.errors import InvalidMessageRoleError, InvalidParametersError, YiemAgentError
from yiemagent_nb.core.messages import CustomMessage, Message, UserMessage
from yiemagent_nb.core.openai_form import parse_messages

__all__ = ["PromptInput", "QueueMode", "Queues", "Sendable", "read_prompt", "read_sendable"]

INPUT_CAPACITY = 16
FOLLOW_UP_CAPACITY = 32
OUTPUT_CAPACITY = 16

QueueMode = Literal["one_at_a_time", "all"]

Sendable = UserMessage | CustomMessage
"""What people put on a channel."""

PromptInput = str | Sendable | Mapping[str, Any] | Sequence[str | Sendable | Mapping[str, Any]]
"""What people say: a string is a user message."""


class Queues:
    """The channels of an agent. ``held`` keeps what waits there after an abort or an error.

    Args:
        admit: Called with each message of a person before it is stored; may raise.
        on_change: Called after each change of what waits, in the thread that made it.
    """

    def __init__(self, admit: Callable[[Sendable], None], on_change: Callable[[], None]) -> None:
        self.input: Channel[Sendable | Shutdown, Any] = Channel(
            INPUT_CAPACITY, convert=_read_input, admit=self._admit, on_change=on_change
        )
        self.follow_up: Channel[Sendable, Any] = Channel(
            FOLLOW_UP_CAPACITY, convert=read_sendable, admit=self._admit, on_change=on_change
        )
        self.output: Channel[dict[str, Any], dict[str, Any]] = Channel(
            OUTPUT_CAPACITY, convert=dict, lossy_until_read=True
        )
        self.steering_mode: QueueMode = "one_at_a_time"
        self.follow_up_mode: QueueMode = "one_at_a_time"
        self.held = False
        self.closing = False
        self._admit_message = admit
        self._moving: Sendable | None = None
        """What was admitted already and goes from one channel to the other."""
        self._move_lock = threading.Lock()

    @property
    def closed(self) -> bool:
        """Whether the channels were closed."""
        return self.input.closed

    def waiting(self) -> tuple[tuple[Sendable, ...], tuple[Sendable, ...]]:
        """What waits as steering and as follow-ups, oldest first, from any thread.

        What goes from one channel to the other stands in one of them.
        """
        with self._move_lock:
            steering = tuple(item for item in self.input.items() if not isinstance(item, Shutdown))
            return steering, self.follow_up.items()

    def take_back(self, message: Sendable) -> bool:
        """Take a message that waits off its channel, from any thread; returns whether it waited."""
        with self._move_lock:
            return self.input.remove(message) or self.follow_up.remove(message)

    def steer_now(self, message: Sendable) -> None:
        """Move a follow-up to the input channel, from any thread.

        Raises:
            InvalidParametersError: It does not wait as a follow-up.
            ChannelFull: The input channel has no room; it goes on waiting as a follow-up.
        """
        with self._move_lock:
            if not self.follow_up.remove(message):
                raise InvalidParametersError("This message does not wait any more.", "The agent has taken it.")
            self._moving = message
            try:
                self.input.put_nowait(message)
            except YiemAgentError:
                self.follow_up.put_back(message)
                raise
            finally:
                self._moving = None

    def take_steering(self) -> Sequence[Message]:
        """Take from the input channel, one or all by ``steering_mode``, up to a ``SHUTDOWN``."""
        return self._take(self.input, self.steering_mode)

    def take_follow_ups(self) -> Sequence[Message]:
        """Take from the follow-up channel, one or all by ``follow_up_mode``."""
        return self._take(self.follow_up, self.follow_up_mode)

    @property
    def must_close(self) -> bool:
        """Whether ``SHUTDOWN`` was taken, or waits behind messages that are held."""
        return self.closing or SHUTDOWN in self.input.items()

    def hold(self) -> None:
        """Keep what waits until something new is said."""
        self.held = True

    def clear(self) -> None:
        """Throw away what waits."""
        self.input.clear()
        self.follow_up.clear()
        self.held = False

    def close(self) -> None:
        """Refuse further puts; readers of the output end when it is empty."""
        for channel in (self.input, self.follow_up, self.output):
            channel.close()

    def _take(self, channel: Channel[Any, Any], mode: QueueMode) -> Sequence[Message]:
        taken: list[Message] = []
        while not self.closing and (mode == "all" or not taken):
            item = channel.take_nowait()
            if item is None:
                break
            if isinstance(item, Shutdown):
                self.closing = True
            else:
                taken.append(item)
        return taken

    def _admit(self, item: Sendable | Shutdown) -> None:
        if isinstance(item, Shutdown):
            return
        if item is not self._moving:
            self._admit_message(item)
        self.held = False


def read_sendable(value: object) -> Sendable:
    """What a person sends: a string, a message, or the mapping of one.

    Raises:
        InvalidParametersError: It is empty, or no message.
        InvalidMessageRoleError: A message that people do not send.
    """
    if isinstance(value, str):
        if not value.strip():
            raise InvalidParametersError("The message is empty.", "Say something.")
        return UserMessage(value)
    message = parse_messages([cast("Message", value)])[0]
    if not isinstance(message, UserMessage | CustomMessage):
        raise InvalidMessageRoleError(
            f"A message of role {message.role!r} cannot be sent.", "People send UserMessage, or a string."
        )
    return message


def read_prompt(value: object) -> list[Message]:
    """What a person says at once: one message or several, at least one of them a user's.

    Raises:
        InvalidParametersError: One is empty, or no message.
        InvalidMessageRoleError: None is a user's, or one is of a role that people do not send.
    """
    items: Sequence[object] = (value,)
    if isinstance(value, Sequence) and not isinstance(value, str):
        items = cast("Sequence[object]", value)
    messages: list[Message] = [read_sendable(item) for item in items]
    if not any(isinstance(message, UserMessage) for message in messages):
        raise InvalidMessageRoleError(
            "A prompt needs at least one message of a user.", "Add a string or a UserMessage."
        )
    return messages


def _read_input(value: object) -> Sendable | Shutdown:
    return value if isinstance(value, Shutdown) else read_sendable(value)
