"""Messages to and from OpenAI's chat form.

``to_openai`` and ``from_openai`` convert one message, with content as blocks. ``RequestBuilder``
makes what is sent: it repairs a history so that every provider accepts it, and encodes each
message once.

Source of the form: OpenAI's API reference, "Create chat completion".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import singledispatch
from typing import Any, NoReturn, cast

from yiemagent_nb.core.errors import InvalidMessageRoleError, InvalidParametersError
from yiemagent_nb.core.extract import extract
from yiemagent_nb.core.messages import (
    AssistantMessage,
    CustomMessage,
    ImageContent,
    Message,
    ReasoningContent,
    TextContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    load_message,
)
from yiemagent_nb.core.tools import Tool

__all__ = [
    "RequestBuilder",
    "WireMessage",
    "from_openai",
    "parse_messages",
    "system_to_openai",
    "to_openai",
    "tool_to_openai",
]

Block = dict[str, Any]

MISSING_RESULT = "No result: the call was interrupted before it finished."
IMAGES_FOLLOW = "The images of this result follow."
REASONING_FIELDS = ("reasoning_content", "reasoning", "reasoning_text")


def system_to_openai(system_prompt: str) -> dict[str, Any]:
    """The system message [SP-011]."""
    return {"role": "system", "content": [{"type": "text", "text": system_prompt}]}


@singledispatch
def to_openai(message: Message) -> dict[str, Any]:
    """One message in OpenAI's form, content as blocks [SP-012 to SP-015].

    Reasoning, which OpenAI's form lacks, becomes blocks of type ``reasoning``.

    Raises:
        InvalidMessageRoleError: The message has no such form; ``CustomMessage`` is never sent.
    """
    raise InvalidMessageRoleError(
        f"{type(message).__name__} has no OpenAI form.",
        "Custom messages are for people; format_messages may turn them.",
    )


@to_openai.register
def _(message: UserMessage) -> dict[str, Any]:
    return {"role": "user", "content": [_block(block) for block in message.content]}


@to_openai.register
def _(message: AssistantMessage) -> dict[str, Any]:
    blocks = [_block(block) for block in message.content if not isinstance(block, ToolCall)]
    calls = [_call(call) for call in message.tool_calls]
    if not calls:
        return {"role": "assistant", "content": blocks}
    return {"role": "assistant", "content": blocks or None, "tool_calls": calls}


@to_openai.register
def _(message: ToolResultMessage) -> dict[str, Any]:
    return {
        "role": "tool",
        "tool_call_id": message.tool_call_id,
        "content": [_block(block) for block in message.content],
    }


def tool_to_openai(tool: Tool) -> dict[str, Any]:
    """A tool in OpenAI's form [SP-016]."""
    return {
        "type": "function",
        "function": {"name": tool.name, "description": tool.description, "parameters": dict(tool.input_schema)},
    }


def _block(block: TextContent | ImageContent | ReasoningContent) -> Block:
    if isinstance(block, TextContent):
        return {"type": "text", "text": block.text}
    if isinstance(block, ImageContent):
        return {"type": "image_url", "image_url": {"url": f"data:{block.mime_type};base64,{block.data}"}}
    signature = {} if block.signature is None else {"signature": block.signature}
    return {"type": "reasoning", "text": block.text, **signature}


def _call(call: ToolCall) -> dict[str, Any]:
    # Some servers' templates parse the arguments of the history, so only valid JSON goes back.
    arguments = "{}" if call.raw_arguments is not None else json.dumps(call.arguments, ensure_ascii=False)
    return {"id": call.id, "type": call.type, "function": {"name": call.name, "arguments": arguments}}


def from_openai(data: Mapping[str, Any], tool_names: Mapping[str, str] | None = None) -> Message:
    """Read one message in OpenAI's form.

    Args:
        data: A message with role ``user``, ``assistant`` or ``tool``.
        tool_names: Names by call id, since OpenAI's tool messages have none.

    Raises:
        InvalidMessageRoleError: Another role. A system prompt belongs to the agent.
        InvalidParametersError: An image that is no data URL, or a block of an unknown type.
    """
    role = data.get("role")
    if role == "user":
        return UserMessage(_read_blocks(data.get("content")))
    if role == "tool":
        call_id = str(data.get("tool_call_id", ""))
        name = str(data.get("name") or (tool_names or {}).get(call_id, ""))
        return ToolResultMessage(tool_call_id=call_id, tool_name=name, content=_read_blocks(data.get("content")))
    if role == "assistant":
        if not data.get("content") and not data.get("tool_calls") and not any(data.get(f) for f in REASONING_FIELDS):
            return AssistantMessage()
        return extract({"message": data})
    hint = "Give it to the agent as system_prompt." if role in ("system", "developer") else ""
    raise InvalidMessageRoleError(f"A message of role {role!r} cannot stand in a history.", hint)


def _read_blocks(content: object) -> tuple[TextContent | ImageContent, ...]:
    if content is None:
        return ()
    if isinstance(content, str):
        return (TextContent(content),) if content else ()
    return tuple(_read_block(block) for block in cast("Iterable[object]", content))


def _read_block(block: object) -> TextContent | ImageContent:
    if isinstance(block, str):
        return TextContent(block)
    fields: Mapping[str, Any] = cast("Mapping[str, Any]", block) if isinstance(block, Mapping) else {}
    kind = fields.get("type")
    if kind in ("text", "input_text", "output_text"):
        return TextContent(str(fields["text"]))
    if kind == "image":
        return ImageContent.model_validate(fields)
    if kind in ("image_url", "input_image"):
        image = fields.get("image_url")
        url = str(cast("Mapping[str, Any]", image).get("url") if isinstance(image, Mapping) else image)
        head, comma, payload = url.partition(",")
        if not head.startswith("data:") or not head.endswith(";base64") or not comma:
            raise InvalidParametersError(
                "An image must be a base64 data URL; addresses are not fetched.", "Use ImageContent.from_file(path)."
            )
        return ImageContent(data=payload, mime_type=head[5:-7])
    raise InvalidParametersError(f"A content block of type {kind!r} is neither text nor an image.")


def parse_messages(items: Iterable[Message | Mapping[str, Any] | str]) -> list[Message]:
    """Read any mixture of messages, their JSON form, OpenAI's form, and strings (a user's words).

    Raises:
        InvalidMessageRoleError: A role that no history has.
        pydantic.ValidationError: A field that does not fit; the error names it.
    """
    messages: list[Message] = []
    names: dict[str, str] = {}
    for item in items:
        if isinstance(item, str):
            message: Message = UserMessage(item)
        elif not isinstance(item, Mapping):
            if not isinstance(item, UserMessage | AssistantMessage | ToolResultMessage | CustomMessage):  # pyright: ignore[reportUnnecessaryIsInstance]
                _refuse(item)
            message = item
        else:
            message = load_message(item) if _is_ours(item) else from_openai(item, names)
        if isinstance(message, AssistantMessage):
            names.update({call.id: call.name for call in message.tool_calls})
        messages.append(message)
    return messages


def _refuse(item: object) -> NoReturn:
    raise InvalidParametersError(
        f"{type(item).__name__} is no message.", "Expected a string, a message, or a mapping with a role."
    )


def _is_ours(data: Mapping[str, Any]) -> bool:
    return "timestamp" in data or data.get("role") in ("toolResult", "custom")


class WireMessage(dict[str, Any]):
    """A message as it is sent: a read-only dict that keeps its JSON as ``encoded``.

    To change one, copy it: ``{**message, "content": "…"}``.
    """

    __slots__ = ("encoded",)

    encoded: bytes

    def __init__(self, fields: Mapping[str, Any]) -> None:
        try:
            encoded = _encode(fields)
        except UnicodeEncodeError:
            fields = cast("Mapping[str, Any]", _without_surrogates(fields))
            encoded = _encode(fields)
        super().__init__(fields)
        self.encoded = encoded

    def _read_only(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("messages of a request are read-only: copy one to change it, {**message, 'content': …}")

    __setitem__ = __delitem__ = clear = pop = popitem = setdefault = update = __ior__ = _read_only  # type: ignore[assignment]


def _encode(fields: Mapping[str, Any]) -> bytes:
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()


def _without_surrogates(value: object) -> object:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, object]", value)
        return {cast("str", _without_surrogates(key)): _without_surrogates(each) for key, each in fields.items()}
    if isinstance(value, list):
        return [_without_surrogates(each) for each in cast("list[object]", value)]
    return value


class RequestBuilder:
    """Makes the messages of a request from a history, in the form that servers take.

    Text alone is a plain string, since models copy block arrays literally and several servers
    refuse them. The history is repaired on the way: an answer that ended in an error or an abort
    without usable content is left out, and so are empty messages and results without their call;
    a call without a result gets one; images in results follow as one user message after all
    consecutive results; lone surrogates are replaced. Reasoning goes back only to the provider
    that it came from, under the name that it had.

    It remembers what it made of the history so far. A history that goes on costs the new messages
    only; any other is made anew, from the same encoded messages where they are known.
    """

    def __init__(self) -> None:
        self._provider = ""
        self._system: tuple[str, WireMessage] | None = None
        self._seen: list[Message] = []
        self._made: dict[int, tuple[Message, WireMessage | None]] = {}
        self._request = _Request()
        self._tools: tuple[tuple[Tool, ...], list[dict[str, Any]]] = ((), [])

    def build_tools(self, tools: Mapping[str, Tool]) -> list[dict[str, Any]] | None:
        """The tools in OpenAI's form, the same list as long as they are the same; None for none."""
        current = tuple(tools.values())
        if current != self._tools[0]:
            self._tools = (current, [tool_to_openai(tool) for tool in current])
        return self._tools[1] or None

    def build(self, system_prompt: str, messages: Sequence[Message], provider: str = "") -> list[WireMessage]:
        """The whole request's messages.

        Args:
            system_prompt: Stands first, unless empty.
            messages: The history.
            provider: Whom the request goes to.
        """
        known = len(self._seen)
        if provider != self._provider or len(messages) < known or list(messages[:known]) != self._seen:
            # Messages are immutable, so equal ones, which compare by identity first, are the same.
            if provider != self._provider:
                self._provider = provider
                self._made = {}
            else:
                current = {id(message) for message in messages}
                self._made = {key: made for key, made in self._made.items() if key in current}
            self._seen = []
            self._request = _Request()
            known = 0
        for message in messages[known:]:
            self._add(message)
            self._seen.append(message)
        ready = [*self._request.wire, *self._request.ending()]
        if not system_prompt:
            return ready
        if self._system is None or self._system[0] != system_prompt:
            self._system = (system_prompt, WireMessage({"role": "system", "content": system_prompt}))
        return [self._system[1], *ready]

    def _add(self, message: Message) -> None:
        if isinstance(message, ToolResultMessage):
            self._request.add_result(message, lambda: self._encoded(message))
        elif isinstance(message, UserMessage | AssistantMessage) and (wire := self._encoded(message)) is not None:
            self._request.add(wire, message.tool_calls if isinstance(message, AssistantMessage) else ())

    def _encoded(self, message: Message) -> WireMessage | None:
        made = self._made.get(id(message))
        if made is None:
            fields = _wire_fields(message, self._provider)
            made = (message, None if fields is None else WireMessage(fields))
            self._made[id(message)] = made
        return made[1]


class _Request:
    """Messages so far, the calls that wait for their results, and the images that follow them."""

    __slots__ = ("images", "open_calls", "wire")

    def __init__(self) -> None:
        self.wire: list[WireMessage] = []
        self.open_calls: dict[str, str] = {}
        self.images: list[Block] = []

    def ending(self) -> list[WireMessage]:
        """What must follow so that the request is complete as it stands."""
        ending = [
            WireMessage({"role": "tool", "tool_call_id": call_id, "content": MISSING_RESULT})
            for call_id in self.open_calls
        ]
        if self.images:
            ending.append(WireMessage({"role": "user", "content": self.images}))
        return ending

    def add(self, wire: WireMessage, calls: Sequence[ToolCall]) -> None:
        self.wire += self.ending()
        self.images = []
        self.wire.append(wire)
        self.open_calls = {call.id: call.name for call in calls}

    def add_result(self, message: ToolResultMessage, encoded: Any) -> None:
        if self.open_calls.pop(message.tool_call_id, None) is None:
            return
        self.wire.append(encoded())
        images = [_block(block) for block in message.content if isinstance(block, ImageContent)]
        if images:
            label = f"Images from the result of {message.tool_name} (call {message.tool_call_id}):"
            self.images += [{"type": "text", "text": label}, *images]


def _wire_fields(message: Message, provider: str) -> Mapping[str, Any] | None:
    """The fields to send, or None where nothing is left to send."""
    if isinstance(message, UserMessage):
        content = _wire_content(message.content)
        return {"role": "user", "content": content} if content else None
    if isinstance(message, ToolResultMessage):
        text = message.text
        if not text:
            text = IMAGES_FOLLOW if message.content else "(no output)"
        return {"role": "tool", "tool_call_id": message.tool_call_id, "content": text}
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
        fields["tool_calls"] = [_call(call) for call in calls]
    return fields


def _wire_reasoning(message: AssistantMessage) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for block in message.content:
        if isinstance(block, ReasoningContent) and block.signature in REASONING_FIELDS:
            fields[block.signature] = fields.get(block.signature, "") + block.text
    return fields


def _wire_content(content: Sequence[TextContent | ImageContent]) -> str | list[Block]:
    if any(isinstance(block, ImageContent) for block in content):
        return [_block(block) for block in content]
    return "".join(block.text for block in content if isinstance(block, TextContent))
