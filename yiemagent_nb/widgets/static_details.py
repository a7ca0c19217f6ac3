"""What an MCP server's result holds beside text and images, as HTML for a file."""

from __future__ import annotations

from html import escape

from yiemagent_nb.core.messages import ImageContent, ToolResultMessage
from yiemagent_nb.widgets.texts import cut_text
from yiemagent_nb.widgets.tool_details import (
    IMAGE_TYPES,
    Audio,
    Link,
    Part,
    Picture,
    Resource,
    Structure,
    Words,
    is_web_address,
    read_details,
    size_in_words,
)

__all__ = ["html_details", "html_image"]


def html_details(result: ToolResultMessage, most: int) -> str:
    """What an MCP server sent beside text and images; long texts are cut to ``most`` characters."""
    seen = {block.data for block in result.content if isinstance(block, ImageContent)}
    details = read_details(result.details, seen)
    if details is None:
        return ""
    left_out = f"<p><em>Left out: {escape(details.left_out)}.</em></p>" if details.left_out else ""
    return "".join(_html_part(part, most) for part in details.parts) + left_out


def _html_part(part: Part, most: int) -> str:
    """One part. Recordings would make the file large: they are named."""
    match part:
        case Words():
            html = _pre(part.text, most)
        case Picture():
            html = html_image(part.mime_type, part.data)
        case Audio():
            what = ", ".join(filter(None, (escape(part.mime_type), size_in_words(part.size))))
            html = f"<p><em>A recording ({what}), which this file does not keep.</em></p>"
        case Link():
            size = size_in_words(part.size) if part.size is not None else ""
            facts = " · ".join(map(escape, filter(None, (part.description, part.mime_type, size))))
            html = f"<p>{escape(part.name)} {_html_address(part.uri)} <small>{facts}</small></p>"
        case Resource(text=None):
            facts = " · ".join(filter(None, (escape(part.mime_type), size_in_words(part.size))))
            html = f"<p>{_html_address(part.uri)} <small>{facts}</small></p>"
        case Resource():
            summary = f"{_html_address(part.uri)} <small>{escape(part.mime_type)}</small>"
            html = f"<details><summary>{summary}</summary>{_pre(part.text or '', most)}</details>"
        case Structure():
            html = f"<details><summary>{escape(part.title)}</summary>{_pre(part.text, most)}</details>"
    return html


def _pre(text: str, most: int) -> str:
    return f"<pre>{escape(cut_text(text, most))}</pre>"


def _html_address(uri: str) -> str:
    if not is_web_address(uri):
        return f"<code>{escape(uri)}</code>"
    return f'<a href="{escape(uri)}" rel="noopener noreferrer nofollow" target="_blank">{escape(uri)}</a>'


def html_image(mime_type: str, data: str) -> str:
    """An image, where it is of a known type."""
    if mime_type not in IMAGE_TYPES or not data:
        return f"<p><em>An image of type {escape(mime_type)}</em></p>"
    return f'<p><img alt="" src="data:{mime_type};base64,{data}"></p>'
