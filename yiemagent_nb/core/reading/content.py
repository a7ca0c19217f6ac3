"""The content of an answer while it grows: which block each piece belongs to."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, cast

from yiemagent_nb.core.messages import AssistantContent, ImageContent, ReasoningContent, TextContent
from yiemagent_nb.core.reading.blocks import Block, CallBlock, Delta
from yiemagent_nb.core.reading.fields import (
    clean_text,
    clean_tool_name,
    dump_json,
    has_surrogates,
    offered_name,
    read_call,
)
from yiemagent_nb.core.reading.tags import ThinkTags, split_lone_close
from yiemagent_nb.core.reading.text_calls import TextCalls

__all__ = ["GrowingContent"]


class GrowingContent:
    """The blocks of one answer, in the order in which they were begun.

    Most methods take ``out``, to which they add the deltas of what they appended.

    Args:
        tool_names: The tools that were offered.
        text_tool_calls: Whether calls written as text are understood.
    """

    def __init__(self, tool_names: Collection[str], *, text_tool_calls: bool) -> None:
        self.refused = False
        self._tool_names = tool_names
        self._blocks: list[Block] = []
        self._open: Block | None = None
        """The last block, where its next piece needs no look at anything else."""
        self._last_call: CallBlock | None = None
        self._by_key: dict[object, CallBlock] = {}
        self._by_id: dict[str, CallBlock] = {}
        self._details: list[dict[str, Any]] = []
        self._tags: ThinkTags | None = ThinkTags()
        self._text_calls: TextCalls | None = None
        if text_tool_calls:
            self.understand_text_calls()

    def understand_text_calls(self) -> None:
        """From now on, calls of the offered tools that are written as text are understood."""
        if self._text_calls is None and self._tool_names:
            self._text_calls = TextCalls(self._tool_names)

    @property
    def empty(self) -> bool:
        """Whether no block was begun."""
        return not self._blocks

    @property
    def has_calls(self) -> bool:
        """Whether a call has come, be it without a name."""
        return any(isinstance(block, CallBlock) and (block.name or block.pieces) for block in self._blocks)

    def quick(self, delta: dict[str, Any]) -> tuple[Delta] | None:
        """Append the delta of a chunk where it only goes on with what came last; None for any other.

        Nearly all deltas of a stream take this path.
        """
        block = self._open
        if block is None:
            return None
        key, value = "", None
        for each, content in delta.items():
            if content and each != "role":
                if value is not None:
                    return None
                key, value = each, content
        if type(value) is str:
            if key != ("content" if block.kind == "text" else block.signature):
                return None
            if block.half or (not value.isascii() and has_surrogates(value)):
                return None
            offset = block.length
            block.length = offset + len(value)
            block.pieces.append(value)
            return (Delta(block.kind, value, block.index, offset),)
        return self._quick_arguments(block, cast("list[object]", value)) if type(value) is list else None

    def _quick_arguments(self, block: Block, calls: list[object]) -> tuple[Delta] | None:
        part = calls[0] if len(calls) == 1 else None
        if type(part) is not dict or type(block) is not CallBlock:
            return None
        fields = cast("dict[str, Any]", part)
        index: object = fields.get("index")
        if fields.get("id") or type(index) is not int or self._by_key.get(index) is not block:
            return None
        function: object = fields.get("function")
        if type(function) is not dict:
            return None
        inner = cast("dict[str, Any]", function)
        piece: object = inner.get("arguments")
        if type(piece) is not str or not piece or inner.get("name"):
            return None
        delta = block.append(piece)
        return None if delta is None else (delta,)

    def text(self, piece: str, out: list[Delta]) -> None:
        """Append text, which may hold reasoning between tags, or calls."""
        if not piece:
            return
        if self._tags is None:
            self._answer_text(piece, out)
            return
        parts = self._tags.feed(piece)
        if self._tags.settled:
            self._tags = None
        self._split_text(parts, out)

    def reasoning(self, piece: str, signature: str | None, out: list[Delta]) -> None:
        """Append reasoning; ``signature`` says where it stood, as in ``reading.REASONING_FIELDS``."""
        block = self._blocks[-1] if self._blocks else None
        if block is None or block.kind != "reasoning" or (signature and block.signature not in {None, signature}):
            block = self.open_reasoning(signature, out)
        elif signature:
            block.signature = signature
        self.append(block, piece, out)
        self._open = block if signature else None

    def reasoning_details(self, details: Sequence[Mapping[str, Any]], out: list[Delta]) -> None:
        """Keep OpenRouter's reasoning details, which go back unchanged with the first reasoning.

        Pieces of one detail's text are joined.
        """
        if not any(block.kind == "reasoning" for block in self._blocks):
            self.open_reasoning(None, out)
        for detail in details:
            last = self._details[-1] if self._details else {}
            key = next((key for key in ("text", "summary") if isinstance(detail.get(key), str)), "")
            same = all(last.get(each) == detail.get(each) for each in ("type", "index"))
            if same and isinstance(last.get(key), str) and not last.get("signature"):
                joined = last[key] + detail[key]
                last.update({name: value for name, value in detail.items() if value is not None})
                last[key] = joined
            else:
                self._details.append(dict(detail))

    def refusal(self, piece: str, out: list[Delta]) -> None:
        """Append what a model says instead of an answer: it is shown as text, and the message is filtered."""
        self.refused = True
        self.append(self._text_block(), piece, out)

    def image(self, image: ImageContent, out: list[Delta]) -> None:
        """Append an image."""
        self.settle(out)
        self._begin(Block("text", len(self._blocks))).image = image

    def call(self, part: Mapping[str, Any], out: list[Delta], *, whole: bool) -> None:
        """Take a call, or a piece of one.

        Args:
            part: The call in any form that ``read_call`` knows, maybe with an ``index``.
            out: Takes the deltas.
            whole: Whether it is a call of its own in any case.
        """
        call_id, name, arguments = read_call(part)
        name = clean_tool_name(name)
        piece = "" if arguments is None else arguments if isinstance(arguments, str) else dump_json(arguments)
        index: object = part.get("index")
        key = index if isinstance(index, int | str) else None
        call = None if whole else self._continued(key, call_id, name, piece)
        if call is None:
            call = self.open_call(key, out)
        elif piece and (name or call_id) and call.is_whole() and call.text == piece:
            piece = ""  # a server that repeats the whole call at its end
        self.grow_call(call, call_id, name, piece, out)

    def open_call(self, key: object, out: list[Delta]) -> CallBlock:
        """A new call; ``key`` is what the server tells its pieces by."""
        self.settle(out)
        call = CallBlock(len(self._blocks))
        self._begin(call)
        self._last_call = call
        if key is not None:
            self._by_key[key] = call
        return call

    def call_of(self, key: object) -> CallBlock | None:
        """The call that ``key`` opened."""
        return self._by_key.get(key)

    def grow_call(self, call: CallBlock, call_id: str, name: str, piece: str, out: list[Delta]) -> None:
        """Add to a call: its id where it has none, a piece of its name, a piece of its arguments."""
        if call_id and not call.given_id:
            call.given_id = clean_text(call_id)
            if self._by_id.setdefault(call_id, call) is call:  # one that came before gets a new one
                call.id = call.given_id
        if name and name != call.name:
            call.name = offered_name(name if name.startswith(call.name) else call.name + name, self._tool_names)
        delta = call.append(piece)
        if delta is not None:
            out.append(delta)
            self._open = call if call is self._blocks[-1] else None

    def open_reasoning(self, signature: str | None, out: list[Delta]) -> Block:
        """A new block of reasoning, even where one is open."""
        self.settle(out)
        block = self._begin(Block("reasoning", len(self._blocks)))
        block.signature = signature
        return block

    def append(self, block: Block, piece: str, out: list[Delta]) -> None:
        """Append a piece to a block of text or reasoning."""
        delta = block.append(piece)
        if delta is not None:
            out.append(delta)

    def settle(self, out: list[Delta]) -> None:
        """Tell what was held back, since something else follows, or nothing."""
        if self._tags is not None:
            parts = self._tags.flush()
            self._tags = ThinkTags() if self.empty and not parts else None
            self._split_text(parts, out)
        if self._text_calls is None:
            return
        for part in self._text_calls.flush():
            if isinstance(part, str):
                self.append(self._text_block(), part, out)
                continue
            call = CallBlock(len(self._blocks))
            self._begin(call)
            self._last_call = call
            arguments = part.arguments if isinstance(part.arguments, str) else dump_json(part.arguments)
            self.grow_call(call, "", part.name, arguments, out)

    def build(self) -> tuple[AssistantContent, ...]:
        """The content, whole, as it stands."""
        if self._details:
            first = next(block for block in self._blocks if block.kind == "reasoning")
            first.signature = dump_json({"reasoning_details": self._details})
        content = [built for block in self._blocks if (built := block.build()) is not None]
        if not any(isinstance(block, ReasoningContent) for block in content):
            for index, block in enumerate(content):
                if isinstance(block, TextContent) and (split := split_lone_close(block.text)) is not None:
                    answer = [TextContent(split[1])] if split[1] else []
                    content[index : index + 1] = [ReasoningContent(split[0]), *answer]
                    break
        return tuple(content)

    def calls_parse(self) -> bool:
        """Whether there are calls, and the arguments of each are whole."""
        calls = [call for block in self._blocks if isinstance(block, CallBlock) and (call := block.build()) is not None]
        return bool(calls) and all(call.type == "function" and call.raw_arguments is None for call in calls)

    def _begin(self, block: Block) -> Block:
        self._blocks.append(block)
        self._open = None
        return block

    def _text_block(self) -> Block:
        block = self._blocks[-1] if self._blocks else None
        if block is None or block.kind != "text" or block.image is not None:
            block = self._begin(Block("text", len(self._blocks)))
        return block

    def _split_text(self, parts: list[tuple[bool, str]], out: list[Delta]) -> None:
        for is_reasoning, piece in parts:
            if not is_reasoning:
                self._answer_text(piece, out)
                continue
            block = self._blocks[-1] if self._blocks else None
            if block is None or block.kind != "reasoning":
                block = self._begin(Block("reasoning", len(self._blocks)))
            self.append(block, piece, out)

    def _answer_text(self, piece: str, out: list[Delta]) -> None:
        if self._text_calls is not None:
            piece = self._text_calls.feed(piece)
        if piece:
            block = self._text_block()
            self.append(block, piece, out)
            if self._text_calls is None and self._tags is None:
                self._open = block

    def _continued(self, key: object, call_id: str, name: str, piece: str) -> CallBlock | None:
        """The call that a piece goes on with, or None where it starts a new one.

        A new call starts where the index is new, where the id is new and a name comes with it, and
        where a name comes without an index or after whole arguments. Else the open call goes on.
        """
        open_call = self._last_call if key is None else self._by_key.get(key)
        if open_call is None:
            last = self._last_call
            return None if name or call_id or last is None or last.is_whole() else last
        if call_id and call_id != open_call.given_id:
            known = self._by_id.get(call_id)
            return known or (open_call if self._goes_on(open_call, name, piece) else None)
        if not name or call_id or not self._starts_anew(open_call, key, name, piece):
            return open_call
        return None

    def _goes_on(self, open_call: CallBlock, name: str, piece: str) -> bool:
        """Whether a piece with a new id goes on with the open call: servers make one up for each piece."""
        if not open_call.given_id and not open_call.pieces:
            return not name or name == open_call.name  # the id comes late
        if open_call.is_whole():
            return False
        begun = bool(open_call.pieces) and not piece.lstrip().startswith("{")
        return not name or (name == open_call.name and begun)

    def _starts_anew(self, open_call: CallBlock, key: object, name: str, piece: str) -> bool:
        """Whether a name without an id, beside an open call, is another call's."""
        if key is None and open_call.name:
            return True
        if name != open_call.name:
            return bool(open_call.pieces) or {name, open_call.name} <= set(self._tool_names)
        text = open_call.text
        return piece.lstrip().startswith("{") and text not in {"{}", piece} and open_call.is_whole()
