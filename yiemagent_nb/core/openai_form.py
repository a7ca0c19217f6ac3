"""Messages to and from OpenAI's chat form, one by one, with content as blocks.

Source of the form: OpenAI's API reference, "Create chat completion".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import singledispatch
from typing import Any, NoReturn, cast

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, to_json

from yiemagent_nb.core.errors import InvalidMessageRoleError, InvalidParametersError
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
from yiemagent_nb.core.reading.extract import extract
from yiemagent_nb.core.reading.fields import REASONING_FIELDS
from yiemagent_nb.core.reading.message_form import MESSAGE_KEYS
from yiemagent_nb.core.tools import Tool

__all__ = [
    "REASONING_FIELDS",
    "block_to_openai",
    "call_to_openai",
    "from_openai",
    "parse_messages",
    "system_to_openai",
    "to_openai",
    "tool_to_openai",
]

Block = dict[str, Any]

_TEXT_TYPES = ("text", "input_text", "output_text")


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
    return {"role": "user", "content": [block_to_openai(block) for block in message.content]}


@to_openai.register
def _(message: AssistantMessage) -> dict[str, Any]:
    blocks = [block_to_openai(block) for block in message.content if not isinstance(block, ToolCall)]
    calls = [call_to_openai(call) for call in message.tool_calls]
    if not calls:
        return {"role": "assistant", "content": blocks}
    return {"role": "assistant", "content": blocks or None, "tool_calls": calls}


@to_openai.register
def _(message: ToolResultMessage) -> dict[str, Any]:
    return {
        "role": "tool",
        "tool_call_id": message.tool_call_id,
        "content": [block_to_openai(block) for block in message.content],
    }


def tool_to_openai(tool: Tool) -> dict[str, Any]:
    """A tool in OpenAI's form [SP-016]."""
    return {
        "type": "function",
        "function": {"name": tool.name, "description": tool.description, "parameters": dict(tool.input_schema)},
    }


def block_to_openai(block: TextContent | ImageContent | ReasoningContent) -> Block:
    """A content block in OpenAI's form; reasoning, which that lacks, as a block of its own type."""
    if isinstance(block, TextContent):
        return {"type": "text", "text": block.text}
    if isinstance(block, ImageContent):
        return {"type": "image_url", "image_url": {"url": f"data:{block.mime_type};base64,{block.data}"}}
    signature = {} if block.signature is None else {"signature": block.signature}
    return {"type": "reasoning", "text": block.text, **signature}


def call_to_openai(call: ToolCall) -> dict[str, Any]:
    """A call in OpenAI's form, its arguments as JSON text."""
    # Some servers' templates parse the arguments of the history, so only valid JSON goes back.
    arguments = "{}" if call.raw_arguments is not None else _dump(call.arguments)
    return {"id": call.id, "type": call.type, "function": {"name": call.name, "arguments": arguments}}


def _dump(arguments: Mapping[str, Any]) -> str:
    try:
        return to_json(arguments, inf_nan_mode="null", fallback=repr).decode()
    except PydanticSerializationError:  # lone surrogates: the standard library writes them as escapes
        return json.dumps(arguments, default=repr)


def from_openai(data: Mapping[str, Any], tool_names: Mapping[str, str] | None = None) -> Message:
    """Read one message in OpenAI's form.

    Args:
        data: A message with role ``user``, ``assistant`` or ``tool``.
        tool_names: Names by call id, since OpenAI's tool messages have none.

    Raises:
        InvalidMessageRoleError: Another role. A system prompt belongs to the agent.
        InvalidParametersError: An image that is no data URL, or content of an unknown form.
        MalformedResponseError: The same in an assistant's message.
        pydantic.ValidationError: A field that does not fit, such as broken base64; the error names it.
    """
    if not isinstance(data, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        _refuse(data)
    role = data.get("role")
    if role == "user":
        return UserMessage(_read_blocks(data.get("content")))
    if role == "tool":
        call_id = str(data.get("tool_call_id", ""))
        name = str(data.get("name") or (tool_names or {}).get(call_id, ""))
        return ToolResultMessage(tool_call_id=call_id, tool_name=name, content=_read_blocks(data.get("content")))
    if role == "assistant":
        if not any(data.get(key) for key in MESSAGE_KEYS):
            return AssistantMessage()
        return extract({"message": data})
    hint = "Give it to the agent as system_prompt." if role in ("system", "developer") else ""
    raise InvalidMessageRoleError(f"A message of role {role!r} cannot stand in a history.", hint)


def _read_blocks(content: object) -> tuple[TextContent | ImageContent, ...]:
    """Content of a user's or a tool's message; text that is empty is left out."""
    if content is None:
        return ()
    if isinstance(content, str):
        return (TextContent(content),) if content else ()
    if not isinstance(content, list | tuple):
        raise InvalidParametersError(
            f"The content of a message is {type(content).__name__}.", "Expected a string or a list of content blocks."
        )
    blocks = map(_read_block, cast("Sequence[object]", content))
    return tuple(block for block in blocks if block is not None)


def _read_block(block: object) -> TextContent | ImageContent | None:
    fields: Mapping[str, Any] = cast("Mapping[str, Any]", block) if isinstance(block, Mapping) else {}
    kind = fields.get("type")
    text = block if isinstance(block, str) else fields.get("text") if kind in _TEXT_TYPES else None
    if isinstance(text, str):
        return TextContent(text) if text else None
    if kind == "image":
        return ImageContent.model_validate(fields)
    if kind in ("image_url", "input_image"):
        return _read_image(fields.get("image_url"))
    raise InvalidParametersError(f"A content block of type {kind!r} is neither text nor an image.")


def _read_image(image: object) -> ImageContent:
    url = cast("Mapping[str, Any]", image).get("url") if isinstance(image, Mapping) else image
    head, comma, payload = url.partition(",") if isinstance(url, str) else ("", "", "")
    if not head.startswith("data:") or not head.endswith(";base64") or not comma:
        raise InvalidParametersError(
            "An image must be a base64 data URL; addresses are not fetched.", "Use ImageContent.from_file(path)."
        )
    return ImageContent(data=payload, mime_type=head[5:-7])


def parse_messages(items: Iterable[Message | Mapping[str, Any] | str]) -> list[Message]:
    """Read any mixture of messages, their JSON form, OpenAI's form, and strings (a user's words).

    Raises:
        InvalidMessageRoleError: A role that no history has.
        InvalidParametersError: ``items`` is no list of messages, or one of them is no message.
        pydantic.ValidationError: A field that does not fit; the error names it.
    """
    is_single = issubclass(type(items), str | Mapping | BaseModel)
    if is_single or not hasattr(items, "__iter__"):
        _refuse(items, "list of messages", "Write [message] around a single one.")
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


def _refuse(
    item: object, what: str = "message", hint: str = "Expected a string, a message, or a mapping with a role."
) -> NoReturn:
    raise InvalidParametersError(f"{type(item).__name__} is no {what}.", hint)


def _is_ours(data: Mapping[str, Any]) -> bool:
    return "timestamp" in data or data.get("role") in ("toolResult", "custom")
