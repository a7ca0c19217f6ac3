"""A server's resources and prompts as the inspector's page is told of them. All of it is untrusted, and bounded."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from yiemagent_nb.core.errors import McpError
from yiemagent_nb.sessions.pieces import IMAGE_TYPES
from yiemagent_nb.widgets.page_forms import AudioShelf
from yiemagent_nb.widgets.texts import one_line, shortened

if TYPE_CHECKING:
    from yiemagent_nb.mcp.server import McpServer

__all__ = ["contents_form", "list_prompts", "list_resources", "prompt_form"]

MOST_LISTED = 1_000
MOST_PARTS = 100
MOST_MESSAGES = 100
MOST_ARGUMENTS = 100
LONGEST_URI = 2_000
LONGEST_NAME = 200
LONGEST_DESCRIPTION = 500
LONGEST_TEXT = 50_000
MOST_CHARACTERS = 8_000_000
"""Of all that one answer brings to a page."""

LARGEST_IMAGE = 7_000_000
"""Characters of base64."""

_METHOD_NOT_FOUND = -32601


async def list_resources(server: McpServer, watched: Collection[str]) -> dict[str, Any]:
    """What a server has to read: resources, and templates of their addresses.

    Args:
        server: The server.
        watched: The addresses of those that are watched.

    Raises:
        McpError: It does not say.
    """
    resources = await _or_none(server.list_resources())
    templates = await _or_none(server.list_resource_templates())
    return {
        "resources": [
            {
                "uri": _text(each.get("uri"), LONGEST_URI),
                **_named(each),
                "mime_type": _text(each.get("mimeType"), LONGEST_NAME),
                "size": _size(each.get("size")),
                "watched": each.get("uri") in watched,
            }
            for each in resources[:MOST_LISTED]
        ],
        "templates": [
            {
                "uri_template": _text(each.get("uriTemplate"), LONGEST_URI),
                **_named(each),
                "mime_type": _text(each.get("mimeType"), LONGEST_NAME),
            }
            for each in templates[:MOST_LISTED]
        ],
    }


async def list_prompts(server: McpServer) -> list[dict[str, Any]]:
    """A server's prompts, with what each takes.

    Raises:
        McpError: It does not say.
    """
    return [
        {**_named(each), "arguments": [_argument(item) for item in _mappings(each.get("arguments"))[:MOST_ARGUMENTS]]}
        for each in (await _or_none(server.list_prompts()))[:MOST_LISTED]
    ]


def contents_form(server: str, contents: Sequence[object], shelf: AudioShelf) -> list[dict[str, Any]]:
    """The contents of a resource, as parts of a result."""
    blocks = [_resource_block(each) for each in _mappings(contents)]
    return _parts(server, blocks, shelf)


def prompt_form(server: str, prompt: Mapping[str, Any], shelf: AudioShelf) -> dict[str, Any]:
    """A prompt that was filled in."""
    return {
        "description": shortened(_plain(prompt.get("description")), LONGEST_DESCRIPTION),
        "messages": [_message(server, each, shelf) for each in _mappings(prompt.get("messages"))[:MOST_MESSAGES]],
    }


def _message(server: str, message: Mapping[str, Any], shelf: AudioShelf) -> dict[str, Any]:
    said: object = message.get("content")
    blocks = _mappings(cast("object", said) if isinstance(said, list) else [said])
    content: list[dict[str, Any]] = []
    others: list[Mapping[str, Any]] = []
    for block in blocks:
        if block.get("type") == "text" and isinstance(text := block.get("text"), str):
            content.append(_text_block(text))
        else:
            others.append(block)
    parts = _parts(server, others, shelf)
    details = {"server": one_line(server, LONGEST_NAME), "parts": parts, "left_out": ""} if parts else None
    return {"role": _text(message.get("role"), LONGEST_NAME), "content": content, "details": details}


def _text_block(text: str) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "text", "text": text[:LONGEST_TEXT]}
    return {**block, "left_out": len(text) - LONGEST_TEXT} if len(text) > LONGEST_TEXT else block


def _resource_block(resource: Mapping[str, Any]) -> Mapping[str, Any]:
    kind, blob = resource.get("mimeType"), resource.get("blob")
    if kind in IMAGE_TYPES and isinstance(blob, str) and len(blob) <= LARGEST_IMAGE:
        return {"type": "image", "mimeType": kind, "data": blob}
    return {"type": "resource", "resource": resource}


def _parts(server: str, blocks: Sequence[Mapping[str, Any]], shelf: AudioShelf) -> list[dict[str, Any]]:
    details = {"server": server, "tool": "", "content": list(blocks[:MOST_PARTS])}
    form = shelf.details_form(details, ())
    parts: list[dict[str, Any]] = [] if form is None else form["parts"]
    kept: list[dict[str, Any]] = []
    room = MOST_CHARACTERS
    for part in parts:
        room -= len(part.get("data") or part.get("text") or "")
        if room < 0:
            text = "More is not shown: it is too large."
            return [*kept, {"type": "words", "text": text, "cut": True}]
        kept.append(part)
    return kept


async def _or_none(listing: Any) -> list[dict[str, Any]]:
    try:
        return await listing
    except McpError as error:
        if error.rpc_code != _METHOD_NOT_FOUND:
            raise
        return []


def _named(item: Mapping[str, Any]) -> dict[str, str]:
    return {
        "name": _text(item.get("name"), LONGEST_NAME),
        "title": _text(item.get("title"), LONGEST_NAME),
        "description": _text(item.get("description"), LONGEST_DESCRIPTION),
    }


def _argument(item: Mapping[str, Any]) -> dict[str, Any]:
    named = _named(item)
    return {"name": named["name"], "description": named["description"], "required": item.get("required") is True}


def _mappings(items: object) -> list[Mapping[str, Any]]:
    listed: list[object] = cast("list[object]", items) if isinstance(items, list) else []
    return [cast("Mapping[str, Any]", item) for item in listed if isinstance(item, Mapping)]


def _size(size: object) -> int | None:
    known = isinstance(size, int | float) and not isinstance(size, bool) and 0 <= size < float("inf")
    return int(cast("float", size)) if known else None


def _plain(value: object) -> str:
    return value if isinstance(value, str) else ""


def _text(value: object, most: int) -> str:
    return one_line(_plain(value), most)
