"""Answers of OpenAI's Responses API: its ``output`` items, and the events that stream them.

Source of the form: OpenAI's API reference, "Responses" and "Responses streaming events". Unknown
items and events are skipped, as the reference asks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from yiemagent_nb.core.reading.blocks import Delta
from yiemagent_nb.core.reading.content import GrowingContent
from yiemagent_nb.core.reading.fields import as_mapping, dump_json, read_call, text_of

__all__ = ["ResponsesReader"]

_REASONING_DELTAS = frozenset({"response.reasoning_summary_text.delta", "response.reasoning_text.delta"})
_ENDS = frozenset({"response.completed", "response.incomplete", "response.done"})


class ResponsesReader:
    """Reads one answer into ``blocks``.

    ``response`` is the last response object that came, ``stop`` why it ended, once it did.
    """

    __slots__ = ("_blocks", "_reasoning", "response", "stop")

    def __init__(self, blocks: GrowingContent) -> None:
        self._blocks = blocks
        self._reasoning: dict[object, Any] = {}
        """The open reasoning blocks, by their item's place in the output."""
        self.response: Mapping[str, Any] | None = None
        self.stop: str | None = None

    def whole(self, response: Mapping[str, Any], out: list[Delta]) -> None:
        """Read a whole response."""
        self.response = response
        items: object = response.get("output")
        for each in cast("list[object]", items) if isinstance(items, list) else ():
            if (item := as_mapping(each)) is not None:
                self._item(item, out)
        self._blocks.settle(out)
        status = response.get("status")
        self.stop = status if isinstance(status, str) and status != "in_progress" else "completed"
        if status == "incomplete":
            details = response.get("incomplete_details")
            reason = cast("Mapping[str, Any]", details).get("reason") if isinstance(details, Mapping) else None
            self.stop = str(reason) if reason else "length"

    def event(self, kind: str, event: Mapping[str, Any], out: list[Delta]) -> None:
        """Read an event of a stream; an error event never comes here."""
        index = event.get("output_index", event.get("item_id"))
        place = ("output", index if isinstance(index, int | str) else None)
        piece = event.get("delta")
        text = piece if isinstance(piece, str) else ""
        item = as_mapping(event.get("item"))
        if kind == "response.output_text.delta":
            self._blocks.text(text, out)
        elif kind == "response.refusal.delta":
            self._blocks.refusal(text, out)
        elif kind in _REASONING_DELTAS:
            self._reasoning_piece(place, text, out)
        elif kind == "response.reasoning_summary_part.added" and event.get("summary_index"):
            self._reasoning_piece(place, "\n\n", out)
        elif kind.startswith("response.function_call_arguments."):
            self._arguments(place, event, text, out)
        elif kind.startswith("response.output_item.") and item is not None:
            self._streamed_item(place, item, out, done=kind.endswith("done"))
        elif kind in _ENDS:
            response = as_mapping(event.get("response")) or {}
            # Most servers repeat in the end what they streamed; some send nothing else.
            self.whole({**response, "output": response.get("output") if self._blocks.empty else []}, out)

    def _arguments(self, place: object, event: Mapping[str, Any], text: str, out: list[Delta]) -> None:
        call = self._blocks.call_of(place)
        if call is None:
            return
        if not text and not call.pieces and isinstance(whole := event.get("arguments"), str):
            text = whole
        self._blocks.grow_call(call, "", "", text, out)

    def _reasoning_piece(self, place: object, piece: str, out: list[Delta]) -> None:
        block = self._reasoning.get(place)
        if block is None:
            block = self._reasoning[place] = self._blocks.open_reasoning(None, out)
        self._blocks.append(block, piece, out)

    def _streamed_item(self, place: object, item: Mapping[str, Any], out: list[Delta], *, done: bool) -> None:
        blocks = self._blocks
        kind = item.get("type")
        if kind == "function_call":
            call_id, name, arguments = read_call(item)
            call = blocks.call_of(place) or blocks.open_call(place, out)
            text = arguments if isinstance(arguments, str) and not call.pieces else ""
            blocks.grow_call(call, call_id, name, text, out)
        elif kind == "reasoning":
            block = self._reasoning.get(place)
            if block is None:
                block = self._reasoning[place] = blocks.open_reasoning(None, out)
            if done:
                block.signature = dump_json(item)
                if not block.pieces:
                    blocks.append(block, _reasoning_text(item), out)

    def _item(self, item: Mapping[str, Any], out: list[Delta]) -> None:
        blocks = self._blocks
        kind = item.get("type")
        if kind == "function_call":
            blocks.call(item, out, whole=True)
        elif kind == "reasoning":
            block = blocks.open_reasoning(dump_json(item), out)
            blocks.append(block, _reasoning_text(item), out)
        elif kind == "message":
            content = item.get("content")
            parts = cast("Sequence[object]", content) if isinstance(content, list) else [content]
            for part in parts:
                fields = cast("Mapping[str, Any]", part) if isinstance(part, Mapping) else {"text": part}
                if fields.get("type") == "refusal":
                    blocks.refusal(text_of(fields.get("refusal")), out)
                elif text := text_of(fields.get("text")):
                    blocks.text(text, out)


def _reasoning_text(item: Mapping[str, Any]) -> str:
    parts: list[str] = []
    for key in ("summary", "content"):
        value = item.get(key)
        if isinstance(value, list):
            parts = [text for text in map(text_of, cast("list[object]", value)) if text]
        if parts:
            break
    return "\n\n".join(parts)
