"""Messages and their content: immutable, typed, with one JSON form of our own.

An answer that calls tools is an ``AssistantToolCallMessage``, any other an ``AssistantMessage``;
which of the two a message is says whether it has calls, everywhere.
"""

from __future__ import annotations

import base64
import binascii
import io
import os
import re
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    PlainSerializer,
    Tag,
    TypeAdapter,
    field_validator,
    model_validator,
)

from yiemagent_nb.core.json_values import JsonObject, Opaque, Text
from yiemagent_nb.core.models import ThinkingLevel, Usage

__all__ = [
    "AssistantContent",
    "AssistantMessage",
    "AssistantToolCallMessage",
    "CustomMessage",
    "ImageContent",
    "Message",
    "ReasoningContent",
    "StopReason",
    "TextContent",
    "Timestamp",
    "ToolCall",
    "ToolResultMessage",
    "UserContent",
    "UserMessage",
    "dump_message",
    "load_message",
    "new_id",
    "now",
    "read_content",
]

StopReason = Literal["end_turn", "tool_calls", "length", "content_filter", "aborted", "error"]

IMAGE_MIME = re.compile(r"^image/[a-zA-Z0-9][a-zA-Z0-9!#$&^_.+-]*$")
_SIGNATURES = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif"))
_BASE64 = re.compile(r"[A-Za-z0-9+/]*={0,2}")


def new_id(prefix: str) -> str:
    """A fresh id, ``prefix`` and 16 hex digits."""
    return f"{prefix}_{os.urandom(8).hex()}"


def now() -> datetime:
    """This moment, aware, in whole milliseconds, as it stands in JSON."""
    return _from_milliseconds(time.time_ns() // 1_000_000)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def _from_milliseconds(value: int) -> datetime:
    return _EPOCH + value * _MILLISECOND


def _to_milliseconds(value: datetime) -> int:
    return (value - _EPOCH) // _MILLISECOND


def _read_timestamp(value: object) -> datetime:
    try:
        if isinstance(value, int | float) and not isinstance(value, bool) and value == int(value):
            value = _from_milliseconds(int(value))
    except (OverflowError, ValueError) as error:
        raise ValueError(f"a timestamp lies between the years 1970 and 9999: {error}") from error
    if not isinstance(value, datetime):
        msg = "a timestamp is an aware datetime, or in JSON a positive integer of milliseconds since 1970"
        raise ValueError(msg)  # noqa: TRY004 - pydantic turns ValueError into a validation error
    if value.utcoffset() is None:
        raise ValueError("a timestamp needs a time zone; use datetime.now(UTC)")
    if value - _EPOCH < _MILLISECOND:
        raise ValueError("a timestamp lies after the beginning of 1970")
    return value.replace(microsecond=value.microsecond // 1000 * 1000)


Timestamp = Annotated[
    datetime,
    BeforeValidator(_read_timestamp),
    PlainSerializer(_to_milliseconds, return_type=int, when_used="json"),
]
"""An aware ``datetime`` in Python; milliseconds since 1970 in JSON."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class TextContent(_Frozen):
    """Plain text, never empty."""

    type: Literal["text"] = "text"
    text: Text = Field(min_length=1)

    def __init__(self, text: str = "", **data: Any) -> None:
        super().__init__(**{"text": text, **data})


def _check_base64(value: str) -> str:
    # The decoder alone would accept some malformed endings, a pattern alone a wrong length.
    if not value or len(value) % 4 or _BASE64.fullmatch(value) is None:
        msg = "image data must be base64 (standard alphabet, padded, no line breaks)"
        raise ValueError(msg)
    try:
        binascii.a2b_base64(value)
    except binascii.Error as error:
        msg = f"image data must be base64: {error}"
        raise ValueError(msg) from error
    return value


class ImageContent(_Frozen):
    """A base64 image. ``mime_type`` is an ``image/…`` type."""

    type: Literal["image"] = "image"
    data: Annotated[str, AfterValidator(_check_base64)] = Field(repr=False)
    mime_type: str = Field(pattern=IMAGE_MIME.pattern)

    @classmethod
    def from_bytes(cls, data: bytes, mime_type: str | None = None) -> Self:
        """An image from its bytes; the type is read from them if not given.

        Raises:
            ValueError: The bytes are neither PNG, JPEG, GIF nor WebP, and no type was given.
        """
        if mime_type is None:
            mime_type = next((mime for start, mime in _SIGNATURES if data.startswith(start)), None)
            if mime_type is None and data[:4] == b"RIFF" and data[8:12] == b"WEBP":
                mime_type = "image/webp"
        if mime_type is None:
            msg = "these bytes are neither PNG, JPEG, GIF nor WebP: give mime_type"
            raise ValueError(msg)
        return cls(data=base64.b64encode(data).decode("ascii"), mime_type=mime_type)

    @classmethod
    def from_file(cls, path: str | Path) -> Self:
        """An image from a PNG, JPEG, GIF or WebP file.

        Raises:
            OSError: The file cannot be read.
            ValueError: It is no image of a known type.
        """
        return cls.from_bytes(Path(path).read_bytes())

    @classmethod
    def from_display(cls, value: object) -> Self:
        """An image of anything that shows as one: a PIL image, a matplotlib figure, ``_repr_png_``.

        Raises:
            TypeError: ``value`` offers none of these.
        """
        image = cls.try_display(value)
        if image is None:
            msg = f"{type(value).__name__} shows as no image: it has no _repr_png_, savefig or save"
            raise TypeError(msg)
        return image

    @classmethod
    def try_display(cls, value: object) -> Self | None:
        """As ``from_display``, but None where ``value`` shows as no image."""
        if isinstance(value, type):
            return None
        png: object = None
        if callable(represent := getattr(value, "_repr_png_", None)):
            png = represent()
            if isinstance(png, tuple):  # IPython allows (data, metadata)
                png = cast("tuple[object, ...]", png)[0]
        if png is None and callable(save := getattr(value, "savefig", None)):
            buffer = io.BytesIO()
            save(buffer, format="png")
            png = buffer.getvalue()
        if png is None and callable(save := getattr(value, "save", None)) and hasattr(value, "tobytes"):
            buffer = io.BytesIO()
            save(buffer, format="PNG")
            png = buffer.getvalue()
        if isinstance(png, str):
            return cls(data=png.replace("\n", ""), mime_type="image/png")
        return cls.from_bytes(png, "image/png") if isinstance(png, bytes) and png else None


class ReasoningContent(_Frozen):
    """What a model thought aloud. ``signature`` goes back to its provider unread."""

    type: Literal["reasoning"] = "reasoning"
    text: Text = ""
    signature: Text | None = Field(default=None, repr=False)

    def __init__(self, text: str = "", **data: Any) -> None:
        super().__init__(**{"text": text, **data})


def _id_or_new(value: str) -> str:
    return value or new_id("call")


CallId = Annotated[Text, AfterValidator(_id_or_new)]


class ToolCall(_Frozen):
    """A call that a model asks for.

    ``arguments`` is parsed JSON, copied. ``raw_arguments`` is set only where the text could not be
    parsed; such a call never runs.
    """

    type: Literal["function"] = "function"
    id: CallId = Field(default_factory=lambda: new_id("call"))
    name: Text
    arguments: JsonObject = Field(default_factory=dict[str, Any])
    raw_arguments: Text | None = None


UserContent = Annotated[TextContent | ImageContent, Field(discriminator="type")]
AssistantContent = Annotated[TextContent | ImageContent | ReasoningContent | ToolCall, Field(discriminator="type")]

_ContentInput = str | TextContent | ImageContent | ReasoningContent | ToolCall
"""One block; a string is text."""


def read_content(value: object) -> object:
    """Content as it may be given, a string, one block or several, as a tuple of blocks; none of an empty string."""
    if isinstance(value, str):
        return (TextContent(value),) if value else ()
    if isinstance(value, tuple) and not any(isinstance(item, str) for item in cast("tuple[object, ...]", value)):
        return cast("object", value)
    if isinstance(value, BaseModel):
        return (value,)
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        items = cast("Sequence[object]", value)
        return tuple(TextContent(item) if isinstance(item, str) else item for item in items if item != "")
    return value


def _text_of(content: Sequence[object]) -> str:
    return "".join(block.text for block in content if isinstance(block, TextContent))


class _Message(_Frozen):
    timestamp: Timestamp = Field(default_factory=now)


class UserMessage(_Message):
    """What a person says: text and images. ``UserMessage("hi")`` works."""

    role: Literal["user"] = "user"
    content: Annotated[tuple[UserContent, ...], BeforeValidator(read_content)] = ()

    def __init__(self, content: _ContentInput | Sequence[_ContentInput | Mapping[str, Any]] = (), **data: Any) -> None:
        super().__init__(**cast("dict[str, Any]", {"content": content, **data}))

    @property
    def text(self) -> str:
        """All text of the message."""
        return _text_of(self.content)


class AssistantMessage(_Message):
    """What a model answered.

    ``content`` stands in the order in which it was generated. ``usage`` is None where the server
    said nothing. ``raw_stop_reason`` is the server's own word, ``thinking_sent`` the level or
    effort that was asked for on the wire.
    """

    role: Literal["assistant"] = "assistant"
    content: Annotated[tuple[AssistantContent, ...], BeforeValidator(read_content)] = ()
    api: str = ""
    provider: str = ""
    model: str = ""
    usage: Usage | None = None
    stop_reason: StopReason = "end_turn"
    raw_stop_reason: Text | None = None
    thinking_sent: ThinkingLevel | Text | None = None
    error_message: Text | None = None

    needs_calls: ClassVar[bool] = False

    def __init__(self, content: _ContentInput | Sequence[_ContentInput | Mapping[str, Any]] = (), **data: Any) -> None:
        super().__init__(**cast("dict[str, Any]", {"content": content, **data}))

    @field_validator("content", mode="after")
    @classmethod
    def _unique_call_ids(cls, content: tuple[AssistantContent, ...]) -> tuple[AssistantContent, ...]:
        seen: set[str] = set()
        blocks: list[AssistantContent] = []
        for block in content:
            if isinstance(block, ToolCall):
                if block.id in seen:
                    block = block.model_copy(update={"id": new_id("call")})  # noqa: PLW2901
                seen.add(block.id)
            blocks.append(block)
        if bool(seen) is not cls.needs_calls:
            msg = (
                "an AssistantToolCallMessage has at least one call"
                if cls.needs_calls
                else "an answer with tool calls is an AssistantToolCallMessage"
            )
            raise ValueError(msg)
        return tuple(blocks)

    @property
    def text(self) -> str:
        """All text of the answer, without reasoning."""
        return _text_of(self.content)

    @property
    def reasoning(self) -> str:
        """All reasoning of the answer."""
        return "".join(block.text for block in self.content if isinstance(block, ReasoningContent))

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls in ``content``, in their order."""
        return tuple(block for block in self.content if isinstance(block, ToolCall))


class AssistantToolCallMessage(AssistantMessage):
    """An answer that calls at least one tool. ``tool_calls=[…]`` adds calls after the content."""

    stop_reason: StopReason = "tool_calls"

    needs_calls: ClassVar[bool] = True

    def __init__(
        self,
        content: _ContentInput | Sequence[_ContentInput | Mapping[str, Any]] = (),
        tool_calls: Sequence[ToolCall | Mapping[str, Any]] = (),
        **data: Any,
    ) -> None:
        super().__init__(content, **({**data, "tool_calls": tool_calls} if tool_calls != () else data))

    @model_validator(mode="before")
    @classmethod
    def _take_tool_calls(cls, data: Any) -> Any:
        if not isinstance(data, Mapping) or "tool_calls" not in data:
            return cast("object", data)
        fields = dict(cast("Mapping[str, Any]", data))
        calls = cast("object", fields.pop("tool_calls"))
        if not isinstance(calls, list | tuple):
            raise ValueError(f"tool_calls is a list of calls, not {type(calls).__name__}")  # noqa: TRY004 - for pydantic
        content = read_content(fields.get("content", ()))
        if isinstance(content, tuple):
            fields["content"] = (*cast("tuple[object, ...]", content), *cast("Sequence[object]", calls))
        return fields


class ToolResultMessage(_Message):
    """What a tool answered. OpenAI's role ``tool`` is its form on the wire only."""

    role: Literal["toolResult"] = "toolResult"
    tool_call_id: Text
    tool_name: Text
    content: Annotated[tuple[UserContent, ...], BeforeValidator(read_content)] = ()
    details: Opaque = None
    usage: Usage | None = None
    added_tool_names: tuple[str, ...] | None = None
    is_error: bool = False

    @property
    def text(self) -> str:
        """All text of the result."""
        return _text_of(self.content)


class CustomMessage(_Message):
    """A note for people and widgets; never sent to a model unless ``format_messages`` does so."""

    role: Literal["custom"] = "custom"
    kind: Text = Field(min_length=1)
    data: Opaque = None


def _is_call(block: object) -> bool:
    if isinstance(block, Mapping):
        return cast("Mapping[str, Any]", block).get("type") == "function"
    return isinstance(block, ToolCall)


def _tag(value: object) -> str | None:
    if isinstance(value, BaseModel):
        return type(value).__name__
    if not isinstance(value, Mapping):
        return None
    fields = cast("Mapping[str, Any]", value)
    role = fields.get("role")
    if role == "assistant":
        content = fields.get("content")
        blocks = cast("Sequence[object]", content) if isinstance(content, list | tuple) else (content,)
        calls = fields.get("tool_calls") or any(map(_is_call, blocks))
        return "AssistantToolCallMessage" if calls else "AssistantMessage"
    return _TAGS.get(role) if isinstance(role, str) else None


_TAGS = {"user": "UserMessage", "toolResult": "ToolResultMessage", "custom": "CustomMessage"}


Message = Annotated[
    Annotated[UserMessage, Tag("UserMessage")]
    | Annotated[AssistantMessage, Tag("AssistantMessage")]
    | Annotated[AssistantToolCallMessage, Tag("AssistantToolCallMessage")]
    | Annotated[ToolResultMessage, Tag("ToolResultMessage")]
    | Annotated[CustomMessage, Tag("CustomMessage")],
    Discriminator(
        _tag,
        custom_error_type="message_role",
        custom_error_message="a message's role is user, assistant, toolResult or custom",
    ),
]
"""Any message; told apart by ``role``, and an assistant's by whether it has calls."""

_adapter: TypeAdapter[Message] = TypeAdapter(Message)


def dump_message(message: Message) -> dict[str, Any]:
    """The JSON form of a message: plain dicts, lists and scalars, keys in snake_case, nothing of it None.

    It is valid JSON in UTF-8, whatever stands in ``details`` or ``data``: see ``json_form``.
    """
    return _adapter.dump_python(message, mode="json", exclude_none=True)


def load_message(data: Mapping[str, Any] | str | bytes) -> Message:
    """Read ``dump_message``'s form, or the JSON text of it.

    Raises:
        pydantic.ValidationError: It is no message; the error names the field.
    """
    return _adapter.validate_json(data) if isinstance(data, str | bytes) else _adapter.validate_python(data)
