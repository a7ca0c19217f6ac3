"""Results of MCP's ``tools/call``, as a model reads them and a person sees them.

What a model cannot read (audio, files, links, pictures of unknown kinds) becomes a note in square
brackets, and stands as it came in the result's ``details``.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from typing import Any, cast

from yiemagent_nb.core.errors import describe_error
from yiemagent_nb.core.json_values import clean_text, json_form
from yiemagent_nb.core.messages import ImageContent, TextContent
from yiemagent_nb.core.results import ToolResult
from yiemagent_nb.core.validation import cut, shorten
from yiemagent_nb.mcp.plain_text import cut_plain, plain_text
from yiemagent_nb.mcp.sizes import readable_size, size_of, take_within
from yiemagent_nb.mcp.text_limit import limit_text

__all__ = ["MAX_CHARACTERS", "ResultReader"]

MAX_CHARACTERS = 100_000
"""How much text of one result a model is given."""

MAX_IMAGES = 20
MAX_IMAGE_BYTES = 10_000_000
"""Of all images of one result together, as base64."""

MAX_DETAILS_BYTES = 20_000_000
MAX_CHECKED_BYTES = 2_000_000
"""A larger structured result is not checked: that would keep the event loop busy."""

_Part = str | ImageContent


class ResultReader:
    """Reads the results of one tool.

    Args:
        server: The server's name.
        tool: The tool's own name at the server.
        check_structured: Says what is wrong with a structured result, a sentence each; None where the
            tool promises none.
        max_characters: How much text of one result the model is given; of a longer one it gets the
            beginning and the end.
    """

    def __init__(
        self,
        server: str,
        tool: str,
        check_structured: Callable[[Any], list[str]] | None = None,
        max_characters: int = MAX_CHARACTERS,
    ) -> None:
        self._server = server
        self._tool = tool
        self._check_structured = check_structured
        self._max_characters = max_characters

    def read(self, raw: object) -> ToolResult:
        """Read a ``CallToolResult`` in its JSON form. It never raises.

        Returns:
            A result whose ``details`` are ``server``, ``tool``, and where there are such:
            ``content`` (the blocks that are more than plain text, as they came),
            ``structured_content``, ``meta``, and ``left_out`` (what was too large to be kept).
        """
        try:
            return self._read(raw)
        except Exception as error:  # whatever a server sends
            return ToolResult(
                f"The result of {self._tool!r} could not be read: {cut_plain(describe_error(error), 300)}.",
                is_error=True,
                details={"server": self._server, "tool": self._tool},
            )

    def _read(self, raw: object) -> ToolResult:
        if not isinstance(raw, Mapping):
            raise TypeError(f"an object was expected, not {shorten(raw)}")
        fields = cast("Mapping[str, Any]", raw)
        is_error = fields.get("isError") is True
        content = fields.get("content")
        reading = _Reading()
        if isinstance(content, list):
            for block in cast("list[object]", content):
                reading.take(block)
        elif content is not None:
            reading.note(f"The result's content is {shorten(content)}, where a list was expected.")
        structured = fields.get("structuredContent")
        if structured is not None and not reading.has_text:
            reading.parts.append(_as_json(structured))
        if not is_error:
            reading.parts.extend(self._structured_notes(structured))
        if not any(reading.parts):
            reading.note(f"The tool {'reported an error' if is_error else 'is done'}, without a word")
        parts = limit_text(_joined(reading.parts), self._max_characters)
        return ToolResult(
            [TextContent(plain_text(part)) if isinstance(part, str) else part for part in parts],
            is_error=is_error,
            details=self._details(reading.kept, structured, fields.get("_meta")),
        )

    def _structured_notes(self, structured: object) -> list[str]:
        if self._check_structured is None or size_of(structured) > MAX_CHECKED_BYTES:
            return []
        if structured is None:
            return ["[The tool promises a structured result and gave none.]"]
        problems = self._check_structured(structured)
        if not problems:
            return []
        return [f"[The structured result does not fit the tool's output schema: {cut('; '.join(problems[:5]), 1000)}.]"]

    def _details(self, blocks: list[object], structured: object, meta: object) -> dict[str, Any]:
        details: dict[str, Any] = {"server": self._server, "tool": self._tool}
        budget = MAX_DETAILS_BYTES
        left_out: list[str] = []
        for name, value in (("content", blocks), ("structured_content", structured), ("meta", meta)):
            if value is None or value == []:
                continue
            size = size_of(value)
            if size <= budget:
                details[name] = value
                budget -= size
            elif value is blocks:
                details[name], budget = take_within(blocks, budget)
                left_out.append(f"{len(blocks) - len(details[name])} blocks of content")
            else:
                left_out.append(f"{name} ({readable_size(size)})")
        if left_out:
            details["left_out"] = left_out
        return details


class _Reading:
    """The blocks of one result, as they are read."""

    def __init__(self) -> None:
        self.parts: list[_Part] = []
        self.kept: list[object] = []
        self.has_text = False
        self._images = 0
        self._image_bytes = 0

    def note(self, text: str) -> None:
        """Tell the model something that is not the server's."""
        self.parts.append(f"[{text}]")

    def take(self, block: object) -> None:
        """Read one block."""
        if not isinstance(block, Mapping):
            self.kept.append(block)
            self.note(f"A part of the result is no object, but {shorten(block)}; it was left out.")
            return
        fields = cast("Mapping[str, Any]", block)
        kind, text = fields.get("type"), fields.get("text")
        if _is_for_person_alone(fields):
            self.kept.append(fields)
            self.note(f"A part of the result ({_word(kind)}) is meant for the person alone and is shown to them.")
        elif kind == "text" and isinstance(text, str):
            self.has_text = self.has_text or bool(text)
            self.parts.append(clean_text(text))
        else:
            self.kept.append(fields)
            self._take_other(kind, fields)

    def _take_other(self, kind: object, fields: Mapping[str, Any]) -> None:
        match kind:
            case "image":
                self._take_image("An image", fields.get("data"), fields.get("mimeType"))
            case "audio":
                self._note_file("Audio", fields.get("data"), fields.get("mimeType"))
            case "resource":
                self._take_resource(fields.get("resource"))
            case "resource_link":
                self._take_link(fields)
            case "text":
                self.note(f"A text is {shorten(fields.get('text'))}; it was left out.")
            case _:
                self.note(f"A part of the result is of the unknown type {_word(kind)}; it is shown to the person.")

    def _take_image(self, what: str, data: object, mime_type: object) -> None:
        """Give the model an image that it can see; a bad one would make its server refuse the conversation."""
        if self._images >= MAX_IMAGES or self._image_bytes + size_of(data) > MAX_IMAGE_BYTES:
            self._note_file(what, data, mime_type, "not sent to you, since the result has too many or too large images")
            return
        try:
            image = _read_image(data)
        except ValueError as error:
            self._note_file(what, data, mime_type, f"not sent to you, since {cut(_reason(error))}")
            return
        self._images += 1
        self._image_bytes += len(image.data)
        self.parts.append(image)

    def _take_resource(self, resource: object) -> None:
        if not isinstance(resource, Mapping):
            self.note(f"A resource is {shorten(resource)}, where an object was expected; it was left out.")
            return
        fields = cast("Mapping[str, Any]", resource)
        text, blob, mime_type = fields.get("text"), fields.get("blob"), fields.get("mimeType")
        what = f"The resource {_word(fields.get('uri'))}"
        if isinstance(text, str):
            self.has_text = True
            kind = f" ({_word(mime_type)})" if mime_type is not None else ""
            self.parts.append(f"[{what}{kind}:]\n{clean_text(text)}")
        elif isinstance(mime_type, str) and mime_type.startswith("image/"):
            self.note(f"{what}:")
            self._take_image(what, blob, mime_type)
        else:
            self._note_file(what, blob, mime_type)

    def _take_link(self, fields: Mapping[str, Any]) -> None:
        size = fields.get("size")
        facts = [_word(fields[name]) for name in ("uri", "mimeType") if name in fields]
        if isinstance(size, int) and not isinstance(size, bool):
            facts.append(readable_size(size))
        title = fields.get("title") or fields.get("name")
        description = fields.get("description")
        about = f": {cut(description)}" if isinstance(description, str) and description else ""
        self.note(f"A link to the resource {_word(title)}, {', '.join(facts) or 'without an address'}{about}")

    def _note_file(self, what: str, data: object, mime_type: object, why: str = "shown to the person") -> None:
        size = readable_size(len(data.rstrip("=")) * 3 // 4) if isinstance(data, str) else "without data"
        self.note(f"{what}, {_word(mime_type)}, {size}: {why}")


def _is_for_person_alone(block: Mapping[str, Any]) -> bool:
    annotations = block.get("annotations")
    audience = cast("Mapping[str, Any]", annotations).get("audience") if isinstance(annotations, Mapping) else None
    return isinstance(audience, list) and "user" in audience and "assistant" not in audience


def _read_image(data: object) -> ImageContent:
    """An image of a kind that models read.

    Raises:
        ValueError: It is none.
    """
    if not isinstance(data, str):
        raise ValueError("it has no data")  # noqa: TRY004 - one kind of error for all that it may lack
    text = "".join(data.split())
    kind = ImageContent.from_bytes(base64.b64decode(text[:64])).mime_type  # servers mislabel their images
    return ImageContent(data=text, mime_type=kind)


def _reason(error: ValueError) -> str:
    """What is wrong with an image, in a few words."""
    errors = getattr(error, "errors", None)
    if callable(errors):
        message = str(cast("list[dict[str, Any]]", errors(include_url=False))[0]["msg"])
        return message.removeprefix("Value error, ")
    return str(error).partition(":")[0]


def _word(value: object) -> str:
    """A short text of the server's, in one line."""
    return cut(" ".join(value[:400].split()), 200) if isinstance(value, str) and value else shorten(value)


def _as_json(value: object) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):  # a callable of the user's gave something that is no JSON
        text = json.dumps(json_form(value), ensure_ascii=False)
    return clean_text(text)


def _joined(parts: list[_Part]) -> list[_Part]:
    """The parts, with texts that follow each other as one, a line each."""
    joined: list[_Part] = []
    lines: list[str] = []
    for part in [*parts, None]:
        if isinstance(part, str):
            lines.append(part)
            continue
        if text := "\n".join(lines):
            joined.append(text)
        lines = []
        if part is not None:
            joined.append(part)
    return joined
