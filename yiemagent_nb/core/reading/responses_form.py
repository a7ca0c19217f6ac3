"""Answers of OpenAI's Responses API: its ``output`` items, and the events that stream them.

Source of the form: OpenAI's API reference, "Responses" and "Responses streaming events". Unknown
items and events are skipped, as the reference asks. Servers that speak it leave out events: the
first or the last of an item, all deltas, or the items of the final response; so whatever says more
than what came before is read, and nothing twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from yiemagent_nb.core.reading.blocks import Block, CallBlock, Delta
from yiemagent_nb.core.reading.content import GrowingContent
from yiemagent_nb.core.reading.fields import as_mapping, dump_json, read_call, text_of
from yiemagent_nb.core.reading.server_errors import error_body, server_error

__all__ = ["ResponsesReader"]

_ENDS: Mapping[str, str] = {
    "response.completed": "completed",
    "response.done": "completed",
    "response.incomplete": "incomplete",
    "response.cancelled": "cancelled",
}
_WHOLE_PARTS = frozenset({"response.output_text.done", "response.refusal.done", "response.content_part.done"})
_NOT_SENT_BACK = frozenset({"status", "output_index"})
"""What servers put into a reasoning item and refuse to get back."""


class _Item:
    """An item of the output while it streams: the pieces of it that were told, by what they are."""

    __slots__ = ("call", "part", "reasoning", "refusal", "source", "text", "thoughts")

    def __init__(self) -> None:
        self.text: list[str] = []
        self.refusal: list[str] = []
        self.thoughts: list[str] = []
        """The reasoning of the current part."""
        self.part: object = None
        self.source = ""
        """Whether reasoning comes as a summary or as text; servers send the same as both."""
        self.reasoning: Block | None = None
        self.call: CallBlock | None = None


class ResponsesReader:
    """Reads one answer into ``blocks``.

    ``response`` is the last response object that came, ``stop`` why it ended, once it did.
    """

    __slots__ = ("_blocks", "_by_id", "_by_index", "_items", "response", "stop")

    def __init__(self, blocks: GrowingContent) -> None:
        self._blocks = blocks
        self._items: list[_Item] = []
        self._by_index: dict[int, _Item] = {}
        self._by_id: dict[str, _Item] = {}
        self.response: Mapping[str, Any] | None = None
        self.stop: str | None = None

    def whole(self, response: Mapping[str, Any], out: list[Delta], status: str = "completed") -> None:
        """Read a whole response, or of one that streamed what is new in it.

        Args:
            response: The response object.
            out: Takes the deltas.
            status: What it is where it does not say.

        Raises:
            BackendError: It failed.
        """
        if (error := error_body(response)) is not None:
            raise server_error(error)
        self.response = response
        output: object = response.get("output")
        for index, each in enumerate(cast("list[object]", output) if isinstance(output, list) else ()):
            if (item := as_mapping(each)) is not None:
                self._snapshot(index, item, out)
        if self._blocks.empty:
            self._blocks.text(text_of(response.get("output_text")), out)
        self._blocks.settle(out)
        said = response.get("status")
        self.stop = said if isinstance(said, str) and said not in {"in_progress", "queued"} else status
        details = as_mapping(response.get("incomplete_details")) or {}
        if self.stop == "incomplete" or details.get("reason"):
            self.stop = str(details.get("reason") or "length")

    def quick(self, event: Mapping[str, Any]) -> tuple[Delta] | None:
        """Append a piece of text or arguments that goes on with an item; None for any other event."""
        item_id, piece = event.get("item_id"), event.get("delta")
        state = self._by_id.get(item_id) if type(item_id) is str else None
        if state is None or type(piece) is not str or not piece:
            return None
        kind = event.get("type")
        if kind == "response.output_text.delta":
            told = self._blocks.quick({"content": piece})
            if told is not None:
                state.text.append(piece)
            return told
        if kind == "response.function_call_arguments.delta" and state.call is not None and state.call.told:
            delta = state.call.append(piece)
            return None if delta is None else (delta,)
        return None

    def event(self, kind: str, event: Mapping[str, Any], out: list[Delta]) -> None:
        """Read an event of a stream; an error event never comes here.

        Raises:
            BackendError: The response failed.
        """
        if kind in {"response.output_text.delta", "response.refusal.delta"}:
            state = self._item_of(event)
            piece = text_of(event.get("delta"))
            refused = kind == "response.refusal.delta"
            (state.refusal if refused else state.text).append(piece)
            (self._blocks.refusal if refused else self._blocks.text)(piece, out)
        elif kind.startswith("response.function_call_arguments."):
            self._arguments(self._item_of(event), event, out)
        elif kind.startswith("response.reasoning") and kind.endswith((".delta", ".done")):
            self._reasoning(kind, event, out)
        elif kind in _ENDS:
            self.whole(as_mapping(event.get("response")) or {}, out, _ENDS[kind])
        elif kind in _WHOLE_PARTS:
            part = as_mapping(event.get("part")) or event
            if part.get("type") != "reasoning_text":
                self._part(self._item_of(event), part, out)
        elif kind.startswith("response.output_item.") and (item := as_mapping(event.get("item"))) is not None:
            self._read_item(self._item_of(event, item), item, out, done=kind.endswith("done"))
        elif kind == "response.created":
            self.response = as_mapping(event.get("response"))

    def _item_of(self, event: Mapping[str, Any], item: Mapping[str, Any] | None = None) -> _Item:
        """The item that an event is about, known by its id or its place in the output; else a new one."""
        index: object = event.get("output_index")
        identity: object = event.get("item_id") if item is None else item.get("id") or item.get("item_id")
        found = self._by_id.get(identity) if isinstance(identity, str) else None
        if found is None and isinstance(index, int):
            found = self._by_index.get(index)
        if found is None and not isinstance(index, int) and not isinstance(identity, str) and self._items:
            found = self._items[-1]
        if found is None:
            found = _Item()
            self._items.append(found)
        if isinstance(index, int):
            self._by_index.setdefault(index, found)
        if isinstance(identity, str):
            self._by_id.setdefault(identity, found)
        return found

    def _snapshot(self, index: int, item: Mapping[str, Any], out: list[Delta]) -> None:
        """Read an item of a whole response, unless it streamed."""
        known = self._by_id.get(str(item.get("id"))) or self._by_index.get(index)
        if known is None:
            text = _message_text(item)
            same_text = any(text and text == "".join(each.text) for each in self._items)
            call_id = item.get("call_id")
            same_call = any(each.call and call_id and each.call.given_id == call_id for each in self._items)
            if same_text or same_call:
                return
            known = _Item()
        if known.call is None and not (known.reasoning is not None and known.reasoning.signature):
            self._read_item(known, item, out, done=True)

    def _read_item(self, state: _Item, item: Mapping[str, Any], out: list[Delta], *, done: bool) -> None:
        kind = item.get("type")
        if kind == "function_call":
            call_id, name, arguments = read_call(item)
            if not done:
                # Where it only begins, its id may be the item's own, and no arguments are a placeholder.
                call_id = call_id if item.get("call_id") else ""
                arguments = None if arguments in ({}, "{}") else arguments
            self._call(state, call_id, name, arguments, out)
        elif kind == "message":
            content = item.get("content")
            for part in cast("Sequence[object]", content) if isinstance(content, list) else [{"text": content}]:
                self._part(state, as_mapping(part) or {"text": part}, out, several=True)
        elif kind == "reasoning":
            if state.reasoning is None:
                state.reasoning = self._blocks.open_reasoning(None, out)
            if done:
                kept = {key: value for key, value in item.items() if value is not None and key not in _NOT_SENT_BACK}
                state.reasoning.signature = dump_json(kept)
                if not state.reasoning.pieces:
                    self._blocks.append(state.reasoning, _reasoning_text(item), out)

    def _part(self, state: _Item, part: Mapping[str, Any], out: list[Delta], *, several: bool = False) -> None:
        """Tell what a whole part of a message says beyond its deltas."""
        refusal = text_of(part.get("refusal"))
        told, whole = (state.refusal, refusal) if refusal else (state.text, text_of(part.get("text")))
        tell: Callable[[str, list[Delta]], None] = self._blocks.refusal if refusal else self._blocks.text
        before = "".join(told)
        if not whole.startswith(before):
            before = "" if several and whole not in before else whole
        if rest := whole[len(before) :]:
            told.append(rest)
            tell(rest, out)

    def _arguments(self, state: _Item, event: Mapping[str, Any], out: list[Delta]) -> None:
        piece = text_of(event.get("delta"))
        if piece:
            call = state.call = state.call or self._blocks.open_call(None, out)
            self._blocks.grow_call(call, "", "", piece, out)
        elif "arguments" in event:
            call_id, name = event.get("call_id"), event.get("name")
            self._call(state, call_id if isinstance(call_id, str) else "", name, event["arguments"], out)

    def _call(self, state: _Item, call_id: str, name: object, arguments: object, out: list[Delta]) -> None:
        """Take what a call is, where not all of it was told in pieces."""
        call = state.call = state.call or self._blocks.open_call(None, out)
        whole = arguments if isinstance(arguments, str) else "" if arguments is None else dump_json(arguments)
        told = call.text
        if whole.startswith(told):
            rest = whole[len(told) :]
        else:
            rest = ""
            if whole and not call.is_whole():
                call.pieces[:] = [whole]  # some pieces were lost
                if not call.told:
                    call.length = len(whole)
        self._blocks.grow_call(call, call_id, name if isinstance(name, str) else "", rest, out)

    def _reasoning(self, kind: str, event: Mapping[str, Any], out: list[Delta]) -> None:
        """A piece of reasoning, or a whole part of it."""
        piece = text_of(event.get("delta") if kind.endswith("delta") else event.get("text"))
        source = "summary" if "summary" in kind else "text"
        state = self._item_of(event)
        if not piece or (state.source and state.source != source):
            return
        state.source = source
        if state.reasoning is None:
            state.reasoning = self._blocks.open_reasoning(None, out)
        part = event.get("summary_index")
        if part != state.part:
            if state.thoughts:
                self._blocks.append(state.reasoning, "\n\n", out)
            state.part, state.thoughts = part, []
        if kind.endswith("done"):
            told = "".join(state.thoughts)
            piece = piece[len(told) :] if piece.startswith(told) else ""
        state.thoughts.append(piece)
        self._blocks.append(state.reasoning, piece, out)


def _message_text(item: Mapping[str, Any]) -> str:
    return text_of(item.get("content")) if item.get("type") == "message" else ""


def _reasoning_text(item: Mapping[str, Any]) -> str:
    parts: list[str] = []
    for key in ("summary", "content"):
        value = item.get(key)
        if isinstance(value, list):
            parts = [text for text in map(text_of, cast("list[object]", value)) if text]
        if parts:
            break
    return "\n\n".join(parts)
