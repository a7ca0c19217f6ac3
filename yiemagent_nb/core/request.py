"""What is sent: a history in the form that servers take, repaired, and encoded once.

Source of the form: OpenAI's API reference, "Create chat completion".
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from operator import is_
from typing import Any, cast

from pydantic_core import PydanticSerializationError, to_json

from yiemagent_nb.core.json_values import clean_text
from yiemagent_nb.core.messages import (
    AssistantMessage,
    ImageContent,
    Message,
    ReasoningContent,
    TextContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from yiemagent_nb.core.openai_form import block_to_openai, call_to_openai, tool_to_openai
from yiemagent_nb.core.read_only import ReadOnlyDict, ReadOnlyList, freeze
from yiemagent_nb.core.reading.fields import REASONING_FIELDS
from yiemagent_nb.core.tools import Tool

__all__ = ["RequestBuilder", "RequestMessages", "RequestTools", "WireMessage"]

Block = dict[str, Any]

MISSING_RESULT = "No result: the call was interrupted before it finished."
IMAGES_FOLLOW = "The images of this result follow."

_NAME_LENGTH = 64
_ID_LENGTH = 40
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")


class WireMessage(ReadOnlyDict):
    """A message as it is sent: a read-only dict that keeps its JSON as ``encoded``.

    ``source`` is the message that it was made of, for endpoints with a form of their own; None for
    what stands in no history. ``kept`` is for such endpoints to use: the JSON of their form, behind
    all that it depends on beside the message. To change a message, copy it:
    ``{**message, "content": "…"}``.
    """

    __slots__ = ("encoded", "kept", "source")

    encoded: bytes
    source: Message | None
    kept: tuple[Hashable, bytes] | None

    def __init__(self, fields: Mapping[str, Any], source: Message | None = None) -> None:
        try:
            encoded = to_json(fields)
        except PydanticSerializationError:
            fields = cast("Mapping[str, Any]", _without_surrogates(fields))
            encoded = to_json(fields)
        super().__init__({name: freeze(value) for name, value in fields.items()})
        self.encoded = encoded
        self.source = source
        self.kept = None


EncodeMessage = Callable[[int, WireMessage], bytes]
"""Gives a message's JSON by its position in the request and itself; empty where nothing is sent of it."""

_Pieces = dict[Hashable, tuple[int, list[bytes]]]
"""By form, of how many messages the JSON is known, and this, in pieces of many messages each."""


class RequestMessages(ReadOnlyList):
    """The messages of one request, a read-only list.

    Args:
        messages: All of them.
        lasting: So many, from the first on, begin the following requests too; those behind them only
            make this one complete.
        pieces: What was encoded for earlier requests that begin alike. It is shared with them.
    """

    __slots__ = ("_pieces", "lasting")

    lasting: int

    def __init__(self, messages: Iterable[WireMessage], lasting: int, pieces: _Pieces) -> None:
        super().__init__(messages)
        self.lasting = lasting
        self._pieces = pieces

    @property
    def encoded(self) -> bytes:
        """Their JSON, without the brackets of the list."""
        return b",".join(self.pieces(None, _encoded))

    def pieces(self, form: Hashable, encode: EncodeMessage) -> list[bytes]:
        """The JSON of all messages in some form, in few pieces, to be joined with commas.

        What earlier requests had in this form is not encoded again, and not looked at.

        Args:
            form: What ``encode`` depends on beside the message and its position.
            encode: Makes the JSON of each that is new.
        """
        known, pieces = self._pieces.get(form, (0, []))
        if known > self.lasting:  # this request is sent once more, after a later one
            return self._encode(range(len(self)), encode)
        if known < self.lasting:
            pieces = _appended(pieces, self._encode(range(known, self.lasting), encode))
            self._pieces[form] = self.lasting, pieces
        return [*pieces, *self._encode(range(self.lasting, len(self)), encode)]

    def _encode(self, positions: range, encode: EncodeMessage) -> list[bytes]:
        return [piece for position in positions if (piece := encode(position, self[position]))]


class RequestTools(ReadOnlyList):
    """The tools of a request in OpenAI's form, a read-only list.

    ``kept`` is for endpoints to use: the JSON of the whole list, by all that it depends on beside
    the tools.
    """

    __slots__ = ("kept",)

    def __init__(self, tools: Iterable[Tool]) -> None:
        super().__init__(freeze(tool_to_openai(tool)) for tool in tools)
        self.kept: dict[Hashable, bytes] = {}


def _appended(pieces: list[bytes], new: list[bytes]) -> list[bytes]:
    """The pieces with new ones behind them, joined so that each is at least twice as long as the next.

    So there are few of them, however many messages there are, and few bytes are copied with each.
    """
    if not new:
        return pieces
    start = len(pieces)
    length = sum(map(len, new))
    while start and len(pieces[start - 1]) < 2 * length:
        start -= 1
        length += len(pieces[start])
    return [*pieces[:start], b",".join([*pieces[start:], *new])]


def _encoded(position: int, message: WireMessage) -> bytes:
    del position
    return message.encoded


def _without_surrogates(value: object) -> object:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, object]", value)
        return {clean_text(key): _without_surrogates(each) for key, each in fields.items()}
    if isinstance(value, list):
        return [_without_surrogates(each) for each in cast("list[object]", value)]
    return value


class RequestBuilder:
    """Makes the messages of a request from a history, in the form that servers take.

    Text alone is a plain string, since models copy block arrays literally and several servers
    refuse them. The history is repaired on the way: an answer that ended in an error or an abort
    without usable content is left out, and so are empty messages and results without their call;
    a call without a result gets one; images in results follow as one user message after all
    consecutive results; lone surrogates are replaced, and so is what no tool's name may hold in
    the name of a call that a model made up. Reasoning goes back only to the provider that it came
    from, under the name that it had.

    It remembers what it made of the history so far. A history that goes on costs the new messages
    only; any other is made anew, from the same encoded messages where they are known.
    """

    def __init__(self) -> None:
        self._provider = ""
        self._system_prompt = ""
        self._seen: list[Message] = []
        self._made: dict[int, tuple[Message, WireMessage | None]] = {}
        self._request = _Request()
        self._tools: tuple[tuple[Tool, ...], RequestTools] = ((), RequestTools(()))

    def build_tools(self, tools: Mapping[str, Tool]) -> RequestTools | None:
        """The tools in OpenAI's form, the same list as long as they are the same; None for none."""
        current = tuple(tools.values())
        if current != self._tools[0]:
            self._tools = (current, RequestTools(current))
        return self._tools[1] or None

    def build(self, system_prompt: str, messages: Sequence[Message], provider: str = "") -> RequestMessages:
        """The whole request's messages.

        Args:
            system_prompt: Stands first, unless empty.
            messages: The history.
            provider: Whom the request goes to.
        """
        known = len(self._seen)
        if (
            provider != self._provider
            or system_prompt != self._system_prompt
            or len(messages) < known
            or not all(map(is_, self._seen, messages))
        ):
            self._restart(system_prompt, messages, provider)
            known = 0
        for message in messages[known:]:
            self._add(message)
            self._seen.append(message)
        return self._request.complete()

    def _restart(self, system_prompt: str, messages: Sequence[Message], provider: str) -> None:
        """Forget the request, and of the encoded messages those that it no longer needs."""
        if provider != self._provider:
            self._made = {}
        else:
            current = {id(message) for message in messages}
            self._made = {key: made for key, made in self._made.items() if key in current}
        self._provider = provider
        self._system_prompt = system_prompt
        self._seen = []
        self._request = _Request()
        if system_prompt:
            self._request.append(WireMessage({"role": "system", "content": system_prompt}))

    def _add(self, message: Message) -> None:
        if isinstance(message, ToolResultMessage):
            if self._request.expects(message) and (wire := self._encoded(message)) is not None:
                self._request.add_result(message, wire)
        elif (wire := self._encoded(message)) is not None:
            self._request.add(wire, message.tool_calls if isinstance(message, AssistantMessage) else ())

    def _encoded(self, message: Message) -> WireMessage | None:
        made = self._made.get(id(message))
        if made is None:
            fields = _wire_fields(message, self._provider)
            made = (message, None if fields is None else WireMessage(fields, message))
            self._made[id(message)] = made
        return made[1]


class _Request:
    """Messages so far, the calls that wait for their results, and the images that follow them."""

    __slots__ = ("_images", "_open_calls", "_pieces", "_wire")

    def __init__(self) -> None:
        self._wire: list[WireMessage] = []
        self._pieces: _Pieces = {}
        self._open_calls: dict[str, str] = {}
        self._images: list[Block] = []

    def append(self, message: WireMessage) -> None:
        """Add a message as it is."""
        self._wire.append(message)

    def add(self, message: WireMessage, calls: Sequence[ToolCall]) -> None:
        """Add a message that is no result; what came before must be complete."""
        for missing in self._ending():
            self.append(missing)
        self._images = []
        self.append(message)
        self._open_calls = {call.id: call.name for call in calls}

    def expects(self, message: ToolResultMessage) -> bool:
        """Whether a call waits for this result; it waits no longer then."""
        return self._open_calls.pop(message.tool_call_id, None) is not None

    def add_result(self, message: ToolResultMessage, wire: WireMessage) -> None:
        """Add a result that is expected, and keep its images for later."""
        self.append(wire)
        images = [block_to_openai(block) for block in message.content if isinstance(block, ImageContent)]
        if images:
            label = f"Images from the result of {message.tool_name} (call {message.tool_call_id}):"
            self._images = [*self._images, {"type": "text", "text": label}, *images]

    def complete(self) -> RequestMessages:
        """All messages, with what must follow so that they can be sent as they stand."""
        ending = self._ending()
        return RequestMessages((*self._wire, *ending) if ending else self._wire, len(self._wire), self._pieces)

    def _ending(self) -> list[WireMessage]:
        ending = [
            WireMessage({"role": "tool", "tool_call_id": _sendable_id(call_id), "content": MISSING_RESULT})
            for call_id in self._open_calls
        ]
        if self._images:
            ending.append(WireMessage({"role": "user", "content": self._images}))
        return ending


def _wire_fields(message: Message, provider: str) -> Mapping[str, Any] | None:
    """The fields to send, or None where nothing is left to send."""
    if isinstance(message, UserMessage):
        content = _wire_content(message.content)
        return {"role": "user", "content": content} if content else None
    if isinstance(message, ToolResultMessage):
        text = message.text
        if not text:
            text = IMAGES_FOLLOW if message.content else "(no output)"
        return {"role": "tool", "tool_call_id": _sendable_id(message.tool_call_id), "content": text}
    if isinstance(message, AssistantMessage):
        return _wire_answer(message, provider)
    return None


def _wire_answer(message: AssistantMessage, provider: str) -> Mapping[str, Any] | None:
    calls = message.tool_calls
    # Images in an assistant's message are refused by OpenAI's form: the model is told of them.
    parts = [
        "(image)" if isinstance(b, ImageContent) else b.text
        for b in message.content
        if isinstance(b, TextContent | ImageContent)
    ]
    text = "".join(parts)
    if not calls and not text.strip():
        return None
    fields: dict[str, Any] = {"role": "assistant", "content": text or None}
    if message.provider == provider:
        fields |= _wire_reasoning(message)
    if calls:
        fields["tool_calls"] = [call_to_openai(_sendable(call)) for call in calls]
    return fields


def _sendable(call: ToolCall) -> ToolCall:
    """The call under a name and an id that servers take; few need others than they have."""
    name = _NOT_IN_NAMES.sub("_", call.name)[:_NAME_LENGTH] or "unknown"
    call_id = _sendable_id(call.id)
    changed = name != call.name or call_id != call.id
    return call.model_copy(update={"name": name, "id": call_id}) if changed else call


def _sendable_id(call_id: str) -> str:
    """The id of a call as it is sent, the same in the call and in its result: OpenAI refuses long ones."""
    if len(call_id) <= _ID_LENGTH:
        return call_id
    return f"{call_id[: _ID_LENGTH - 9]}_{hashlib.sha256(call_id.encode()).hexdigest()[:8]}"


def _wire_reasoning(message: AssistantMessage) -> dict[str, Any]:
    """Reasoning beside the content, where and as it stood: see ``reading.REASONING_FIELDS``."""
    fields: dict[str, Any] = {}
    for block in message.content:
        if not isinstance(block, ReasoningContent) or block.signature is None:
            continue
        if block.signature in REASONING_FIELDS:
            fields[block.signature] = fields.get(block.signature, "") + block.text
        elif block.signature.startswith('{"reasoning_details":'):
            fields |= json.loads(block.signature)
    return fields


def _wire_content(content: Sequence[TextContent | ImageContent]) -> str | list[Block]:
    if any(isinstance(block, ImageContent) for block in content):
        return [block_to_openai(block) for block in content]
    return "".join(block.text for block in content if isinstance(block, TextContent))
