"""Given: what a backend gave, in a form that a test can give again and reads the same message from."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from yiemagent_nb.core.errors import YiemAgentError
from yiemagent_nb.core.messages import AssistantMessage, ReasoningContent, StopReason
from yiemagent_nb.core.reading.assemble import Assembler
from yiemagent_nb.core.reading.extract import extract
from yiemagent_nb.tracing.details import tools_of
from yiemagent_nb.tracing.literals import plain
from yiemagent_nb.tracing.masking import joined_where_split
from yiemagent_nb.tracing.sent import Sent

__all__ = ["Given", "given_of", "in_one_piece", "is_split", "read_of"]

_BROKEN: frozenset[StopReason] = frozenset({"error", "aborted"})
_AHEAD = 66
"""So many pieces may have come that nobody read: an iterator in a thread runs ahead."""


@dataclass(frozen=True, slots=True)
class Given:
    """What a backend gave, in JSON's form.

    Args:
        whole: Where it did not stream.
        pieces: Where it did.
        read: The message, as ``read_of`` has it.
        ended: ``error`` and ``aborted`` tell of an answer that is not whole; else empty.
        tool_names: What the model was offered.
    """

    whole: Any
    pieces: list[Any]
    read: dict[str, Any]
    ended: StopReason | None
    tool_names: tuple[str, ...]

    def reads(self, *, text_tool_calls: bool) -> bool:
        """Whether the message is what is read of it.

        Args:
            text_tool_calls: Whether calls in its text are looked for.
        """
        return repr(self._read_again(text_tool_calls=text_tool_calls)) == repr(self.read)

    def _read_again(self, *, text_tool_calls: bool) -> dict[str, Any]:
        assembler = Assembler(tool_names=self.tool_names, text_tool_calls=text_tool_calls)
        try:
            if self.whole is not None:
                return read_of(extract(self.whole, tool_names=self.tool_names, text_tool_calls=text_tool_calls))
            for piece in self.pieces:
                assembler.feed(piece)
            return read_of(assembler.partial(self.ended) if self.ended else assembler.finish())
        except YiemAgentError:
            return read_of(assembler.partial("error"))


def given_of(sent: Sent) -> Given:
    """What the backend gave for a request."""
    answer = sent.answer or AssistantMessage(stop_reason="aborted")
    exchange = sent.exchange
    given = Given(
        whole=None if exchange.response is None or answer.stop_reason == "aborted" else plain(exchange.response),
        pieces=[plain(piece) for piece in exchange.pieces],
        read=read_of(answer),
        ended=answer.stop_reason if answer.stop_reason in _BROKEN else None,
        tool_names=tuple(str(tool.get("function", {}).get("name", "")) for tool in tools_of(exchange)),
    )
    return _as_far_as_read(given) if given.ended == "aborted" else given


def _as_far_as_read(given: Given) -> Given:
    """Without the pieces that came after an abort, which nobody read."""
    for unread in range(min(len(given.pieces), _AHEAD) + 1):
        read = replace(given, pieces=given.pieces[: len(given.pieces) - unread])
        if read.reads(text_tool_calls=False):
            return read
    return given


def is_split(given: Given) -> bool:
    """Whether a key stands across its pieces."""
    return joined_where_split(given.pieces) is not None


def in_one_piece(given: Given, answer: AssistantMessage | None) -> list[Any]:
    """A single piece that the message is read from."""
    read = given.read
    piece: dict[str, Any] = {}
    if read["text"]:
        piece["content"] = read["text"]
    if read["reasoning"]:
        piece["reasoning_content"] = read["reasoning"]
    calls = () if answer is None else answer.tool_calls
    if calls:
        piece["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {
                    "name": call.name,
                    "arguments": json.dumps(dict(call.arguments)) if call.raw_arguments is None else call.raw_arguments,
                },
            }
            for call in calls
        ]
    if read["tokens"] is not None:
        names = ("input_tokens", "output_tokens", "cache_read_tokens")
        piece["usage"] = dict(zip(names, read["tokens"], strict=True))
    if given.ended is None:
        piece |= {"content": read["text"], "stop_reason": read["stop_reason"]}
    return [piece] if piece else []


def read_of(message: AssistantMessage) -> dict[str, Any]:
    """What counts of an answer."""
    usage = message.usage
    return {
        "text": message.text,
        "reasoning": "".join(block.text for block in message.content if isinstance(block, ReasoningContent)),
        "calls": [[call.name, call.arguments] for call in message.tool_calls],
        "stop_reason": message.stop_reason,
        "tokens": None if usage is None else [usage.input_tokens, usage.output_tokens, usage.cache_read_tokens],
    }
