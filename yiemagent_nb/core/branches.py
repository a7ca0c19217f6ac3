"""Branches: the ways that a conversation took, of which the history shows one.

Going back to a message and saying something else, or asking for another answer, loses nothing: what
stood there stays as a branch beside the new one. Until someone goes back, nothing is kept here but
the history itself.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

from yiemagent_nb.core.errors import InvalidParametersError
from yiemagent_nb.core.loop import has_open_end
from yiemagent_nb.core.messages import AssistantMessage, Message, TextContent, UserContent, UserMessage
from yiemagent_nb.core.text_files import read_text_file

__all__ = ["Branch", "Branches"]


@dataclass(frozen=True, slots=True)
class Branch:
    """Which of the branches that begin at one place is shown, counted from 0, and how many there are."""

    position: int
    count: int


_ONLY = Branch(0, 1)


def _is_words(block: UserContent) -> bool:
    return isinstance(block, TextContent) and read_text_file(block.text) is None


class _Node:
    """A message, or the root, and what followed it."""

    __slots__ = ("followers", "message", "shown")

    def __init__(self, message: Message | None) -> None:
        self.message = message
        self.followers: list[_Node] = []
        self.shown: _Node | None = None
        """The follower that stood in the history last."""


class Branches:
    """The branches of a history. ``at`` may be called from any thread, all else on the agent's loop.

    Args:
        history: The messages that are shown. Others only append to it, or call ``clear``.
    """

    def __init__(self, history: list[Message]) -> None:
        self._history = history
        self._lock = threading.RLock()
        self.clear()

    def at(self, index: int) -> Branch:
        """Which of the branches that begin with the message ``index`` of the history is shown.

        Behind the last message none is: then ``position`` is ``count``, the number of those that begin there.
        """
        with self._lock:
            if not self._forked or not 0 <= index <= len(self._history):
                return _ONLY
            self._follow()
            ways = self._path[index].followers
            if index == len(self._history):
                return Branch(len(ways), len(ways))
            return Branch(ways.index(self._path[index + 1]), len(ways))

    def clear(self) -> None:
        """Forget all branches but the history."""
        with self._lock:
            self._path = [_Node(None)]
            self._forked = False

    def go_back(self, index: int) -> None:
        """End the history before the message ``index``; what stood there stays as a branch."""
        with self._lock:
            self._follow()
            self._forked = True
            del self._path[index + 1 :]
            del self._history[index:]

    def switch(self, index: int, position: int) -> None:
        """Show another of the branches that begin at the message ``index``, as far as it went last.

        Raises:
            InvalidParametersError: There is no such branch.
        """
        with self._lock:
            self._follow()
            if not 0 <= index <= len(self._history) or not 0 <= position < len(self._path[index].followers):
                raise InvalidParametersError(
                    f"No branch {position} begins at message {index}.",
                    "agent.branches.at(index) tells how many there are.",
                )
            node: _Node | None = self._path[index].followers[position]
            self.go_back(index)
            while node is not None and node.message is not None:
                self._path[-1].shown = node
                self._path.append(node)
                self._history.append(node.message)
                node = node.shown

    def read_edit(self, index: int, content: str | UserMessage) -> UserMessage:
        """What is said in place of the message ``index``: a string takes the place of its words alone.

        Raises:
            InvalidParametersError: No person's message stands there, or the new one is empty.
        """
        old = self.require(index)
        if not isinstance(old, UserMessage):
            raise InvalidParametersError(
                f"Message {index} is of role {old.role!r}; only what a person said can be edited.",
                "Use regenerate(index) for another answer.",
            )
        if isinstance(content, UserMessage):
            return content
        kept = [block for block in old.content if not _is_words(block)]
        text = [TextContent(content)] if content.strip() else []
        if not text and not kept:
            raise InvalidParametersError("The message is empty.", "Say something.")
        return UserMessage([*text, *kept])

    def find_answer(self, index: int | None) -> int:
        """The place of the answer ``index``; without one, where the newest turn's answer begins.

        Raises:
            InvalidParametersError: No answer stands there, or nothing that waits for one before it.
        """
        history = self._history
        if index is None:
            spoken = (place for place in range(len(history) - 1, -1, -1) if isinstance(history[place], UserMessage))
            index = next(spoken, -1) + 1
        if not isinstance(self.require(index), AssistantMessage) or not has_open_end(history[:index]):
            raise InvalidParametersError(
                f"Message {index} is no answer to something that was said.", "Give the index of an assistant message."
            )
        return index

    def require(self, index: int) -> Message:
        """The message ``index``.

        Raises:
            InvalidParametersError: There is none.
        """
        if not 0 <= index < len(self._history):
            raise InvalidParametersError(
                f"There is no message {index}; the history has {len(self._history)}.", "Count from 0."
            )
        return self._history[index]

    def _follow(self) -> None:
        """Take in what was appended to the history."""
        for message in self._history[len(self._path) - 1 :]:
            node = _Node(message)
            self._path[-1].followers.append(node)
            self._path[-1].shown = node
            self._path.append(node)
