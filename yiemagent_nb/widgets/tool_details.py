"""What a tool's result holds for people beside its text and images, read from ``ToolResult.details``.

The tools of MCP servers leave there the blocks that are more than text for the model, as the server
sent them, and the structured result: ``{"server", "tool", "content": [...], "structured_content",
"meta", "left_out": [...]}``. The blocks are those of MCP's ``CallToolResult``
(https://modelcontextprotocol.io/specification, "Tools"). Everything in them comes from a server: texts
are cut, and shown as plain text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from yiemagent_nb.sessions.pieces import IMAGE_TYPES
from yiemagent_nb.widgets.texts import one_line

__all__ = [
    "AUDIO_TYPES",
    "LARGEST_AUDIO",
    "Audio",
    "Link",
    "Part",
    "Picture",
    "Resource",
    "Structure",
    "ToolDetails",
    "Words",
    "is_web_address",
    "read_details",
    "size_in_words",
]

AUDIO_TYPES = frozenset(
    f"audio/{name}"
    for name in ("aac", "flac", "m4a", "mp3", "mp4", "mpeg", "ogg", "opus", "wav", "wave", "webm", "x-m4a", "x-wav")
)
"""Types that are played; another one is only named."""

LARGEST_AUDIO = 5_000_000
"""Bytes of a recording that is played."""

LARGEST_PICTURE = 5_000_000
"""Bytes of a picture that is shown."""

MOST_PARTS = 100
LONGEST_RESOURCE = 50_000
LONGEST_STRUCTURE = 100_000
LONGEST_ADDRESS = 2_000
LONGEST_WORDS = 300

_KILOBYTE = 1_000
_MEGABYTE = 1_000_000
_BASE64 = re.compile(r"[A-Za-z0-9+/]*={0,2}")


@dataclass(frozen=True, slots=True)
class Words:
    """A text that is meant for the person alone. ``cut`` says that there is more."""

    text: str
    cut: bool
    type: Literal["words"] = "words"


@dataclass(frozen=True, slots=True)
class Picture:
    """An image that the model does not see. ``data`` is its base64, empty where it cannot be shown."""

    mime_type: str
    size: int
    data: str
    type: Literal["picture"] = "picture"


@dataclass(frozen=True, slots=True)
class Audio:
    """A recording. ``data`` is its base64, empty where it cannot be played; ``size`` is in bytes."""

    mime_type: str
    size: int
    data: str
    uri: str = ""
    type: Literal["audio"] = "audio"


@dataclass(frozen=True, slots=True)
class Link:
    """A resource that the server has. ``size`` is in bytes, None where it is not known."""

    uri: str
    name: str
    description: str
    mime_type: str
    size: int | None
    type: Literal["link"] = "link"


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource that was sent along: its text, or how many bytes it has. ``cut`` says that there is more."""

    uri: str
    mime_type: str
    text: str | None
    size: int
    cut: bool = False
    type: Literal["resource"] = "resource"


@dataclass(frozen=True, slots=True)
class Structure:
    """Something as JSON text, with what it is. ``cut`` says that there is more."""

    title: str
    text: str
    cut: bool
    type: Literal["structure"] = "structure"


Part = Words | Picture | Audio | Link | Resource | Structure


@dataclass(frozen=True, slots=True)
class ToolDetails:
    """What is shown of a result beside its text and images; ``left_out`` says what is not."""

    server: str
    parts: tuple[Part, ...]
    left_out: str = ""


def read_details(details: object, seen: Collection[str] = ()) -> ToolDetails | None:
    """What ``ToolResult.details`` holds to show; None where it is not that of an MCP tool.

    Args:
        details: The result's.
        seen: The data of the images that stand in the result's content, and are shown there.
    """
    form = _mapping(details)
    server = form.get("server")
    if not isinstance(server, str) or "tool" not in form:
        return None
    blocks = [_mapping(block) for block in _list(form.get("content"))]
    blocks = [block for block in blocks if block.get("type") != "image" or block.get("data") not in seen]
    parts = [_part(block) for block in blocks[:MOST_PARTS]]
    if (structured := form.get("structured_content")) is not None:
        parts.append(_structure("Structured result", structured))
    left_out = [_words(each) for each in _list(form.get("left_out"))]
    left_out += [f"{len(blocks) - MOST_PARTS} more parts"] if len(blocks) > MOST_PARTS else []
    return ToolDetails(_words(server), tuple(parts), ", ".join(filter(None, left_out)))


def is_web_address(uri: str) -> bool:
    """Whether a person may open an address from the page."""
    return re.match(r"https?://[^\s/]", uri, re.IGNORECASE) is not None


def size_in_words(size: int) -> str:
    """A number of bytes as people read it."""
    if size < _KILOBYTE:
        return f"{size} B"
    return f"{size / _KILOBYTE:.1f} kB" if size < _MEGABYTE else f"{size / _MEGABYTE:,.1f} MB"


def _part(block: Mapping[str, Any]) -> Part:
    match block.get("type"):
        case "text" if isinstance(text := block.get("text"), str):
            return Words(text[:LONGEST_RESOURCE], len(text) > LONGEST_RESOURCE)
        case "image":
            return _picture(_words(block.get("mimeType")), block.get("data"))
        case "audio":
            return _audio(_words(block.get("mimeType")), block.get("data"))
        case "resource_link":
            size = block.get("size")
            return Link(
                uri=_address(block.get("uri")),
                name=_words(block.get("title")) or _words(block.get("name")),
                description=_words(block.get("description")),
                mime_type=_words(block.get("mimeType")),
                size=int(size) if isinstance(size, int | float) and 0 <= size < float("inf") else None,
            )
        case "resource":
            return _resource(_mapping(block.get("resource")))
        case kind:
            return _structure(f"Content of type {_words(kind) or 'unknown'}", block)


def _resource(resource: Mapping[str, Any]) -> Part:
    uri, mime_type = _address(resource.get("uri")), _words(resource.get("mimeType"))
    text, blob = resource.get("text"), resource.get("blob")
    if isinstance(text, str):
        return Resource(uri, mime_type, text[:LONGEST_RESOURCE], len(text), len(text) > LONGEST_RESOURCE)
    if mime_type.lower() in AUDIO_TYPES:
        return _audio(mime_type, blob, uri)
    return Resource(uri, mime_type, None, _decoded_size(blob))


def _picture(mime_type: str, data: object) -> Picture:
    size = _decoded_size(data)
    visible = mime_type in IMAGE_TYPES and 0 < size <= LARGEST_PICTURE
    return Picture(mime_type, size, data if visible and isinstance(data, str) and _BASE64.fullmatch(data) else "")


def _audio(mime_type: str, data: object, uri: str = "") -> Audio:
    size = _decoded_size(data)
    plain = mime_type.partition(";")[0].strip().lower()
    playable = isinstance(data, str) and plain in AUDIO_TYPES and 0 < size <= LARGEST_AUDIO and _BASE64.fullmatch(data)
    return Audio(plain if playable else mime_type, size, cast("str", data) if playable else "", uri)


def _structure(title: str, value: object) -> Structure:
    """Written only as far as it is shown: a result may have 50 MB."""
    pieces: list[str] = []
    size = 0
    try:
        for piece in json.JSONEncoder(ensure_ascii=False, indent=2, default=repr).iterencode(value):
            pieces.append(piece)
            size += len(piece)
            if size > LONGEST_STRUCTURE:
                break
    except (RecursionError, TypeError, ValueError) as error:
        return Structure(title, f"It cannot be shown: {error}.", cut=False)
    return Structure(title, "".join(pieces)[:LONGEST_STRUCTURE], size > LONGEST_STRUCTURE)


def _decoded_size(data: object) -> int:
    return len(data) * 3 // 4 - data[-2:].count("=") if isinstance(data, str) else 0


def _address(value: object) -> str:
    return value[:LONGEST_ADDRESS] if isinstance(value, str) else ""


def _words(value: object) -> str:
    return one_line(value, LONGEST_WORDS) if isinstance(value, str) else ""


def _list(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
