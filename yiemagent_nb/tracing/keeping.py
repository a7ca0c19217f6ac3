"""Keeping: how much of what rows held is kept, and which of it is let go first."""

from __future__ import annotations

import marshal
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, cast

from yiemagent_nb.core.json_values import json_form
from yiemagent_nb.core.messages import AssistantMessage, ImageContent, TextContent, ToolCall
from yiemagent_nb.core.results import ToolResult
from yiemagent_nb.tracing.requests import RequestStore, length_of
from yiemagent_nb.tracing.rows import CallBody, ModelBody, Row

__all__ = ["Keeping", "kept_result", "size_of_answer", "size_of_call"]

_PIECE = 700
"""Bytes that a piece of an answer takes as Python has it, beside its text."""

_AT_ONCE = 500

_LARGEST_DETAILS = 1_000_000


class Keeping:
    """Counts what rows hold, and lets the bodies of the oldest go where it is too much.

    Args:
        most: Bytes, about.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.size = 0
        self.requests = RequestStore()
        self._rows: deque[Row] = deque()

    def add(self, row: Row) -> None:
        """A row has a body from now on; rows come in the order in which they began."""
        self._rows.append(row)

    def request(self, row: Row, messages: Sequence[Mapping[str, Any]]) -> None:
        """A row's body has a further request."""
        if isinstance(row.body, ModelBody):
            stored = self.requests.add(messages)
            row.body.requests.append(stored)
            self.size += stored.size

    def grown(self, row: Row, size: int) -> None:
        """A row's body holds so many bytes more."""
        if row.body is None:
            return
        row.body.size += size
        self.size += size
        while self.size > self.most and self._rows and self._rows[0] is not row:
            self.drop(self._rows[0])

    def drop(self, row: Row) -> None:
        """Let the body of a row go. Those that are older go with it."""
        if row.body is None:
            return
        while self._rows:
            oldest = self._rows.popleft()
            body = oldest.body
            oldest.let_go()
            if body is not None:
                self.size -= body.size
                if isinstance(body, ModelBody):
                    self.size -= sum(map(self.requests.drop, body.requests))
            if oldest is row:
                break

    def clear(self) -> None:
        """Let everything go."""
        while self._rows:
            self._rows.popleft().let_go()
        self.size = 0
        self.requests.forget()


def size_of_answer(body: ModelBody) -> int:
    """About how many bytes came back from the model."""
    size = 0
    for exchange in body.exchanges:
        crossed = sum(len(wire.body) + sum(map(len, wire.pieces)) + len(wire.error) for wire in exchange.wire)
        # What crossed the wire stands in the pieces too.
        size += len(exchange.pieces) * _PIECE + (2 * crossed if exchange.wire else _size_of_pieces(exchange.pieces))
        size += len(exchange.error) + length_of(exchange.response)
    return size if body.answer is None else size + _size_of_message(body.answer)


def _size_of_pieces(pieces: Sequence[object]) -> int:
    """Of their texts, at the speed of C where they are plain."""
    size = 0
    for start in range(0, len(pieces), _AT_ONCE):
        some = list(pieces[start : start + _AT_ONCE])
        try:
            size += len(marshal.dumps(some))
        except ValueError:
            size += length_of(json_form(some))
    return size


def _size_of_message(message: AssistantMessage) -> int:
    size = len(message.error_message or "")
    for block in message.content:
        if isinstance(block, ToolCall):
            size += length_of(block.arguments) + len(block.raw_arguments or "")
        else:
            size += len(block.data) if isinstance(block, ImageContent) else len(block.text)
    return size


def size_of_call(body: CallBody) -> int:
    """About how many bytes a call was given and gave."""
    size = length_of(body.arguments) + length_of(body.ran_with)
    if body.result is not None:
        for block in body.result.content:
            size += len(block.text) if isinstance(block, TextContent) else len(block.data)
        size += length_of(body.result.details)
    return size


def kept_result(result: ToolResult) -> ToolResult:
    """A result without details that are no JSON, such as a table of data, or that are large."""
    details = result.details
    if details is None or (_is_json(details) and length_of(details) < _LARGEST_DETAILS):
        return result
    return result.model_copy(update={"details": None})


def _is_json(value: object, depth: int = 20) -> bool:
    if value is None or isinstance(value, str | int | float):
        return True
    if isinstance(value, dict) and depth:
        fields = cast("dict[object, object]", value)
        return all(isinstance(name, str) and _is_json(each, depth - 1) for name, each in fields.items())
    if isinstance(value, list | tuple) and depth:
        return all(_is_json(each, depth - 1) for each in cast("Sequence[object]", value))
    return False
