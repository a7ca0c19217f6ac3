"""What an MCP server's result holds beside text and images, as HTML for a file."""

from __future__ import annotations

from collections.abc import Callable
from html import escape

from yiemagent_nb.core.messages import ImageContent, ToolResultMessage
from yiemagent_nb.widgets.static_elements import html_folded, html_name, html_pre
from yiemagent_nb.widgets.tool_details import (
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

__all__ = ["html_details"]


def html_details(result: ToolResultMessage, most: int, html_image: Callable[[str, str], str]) -> str:
    """What an MCP server sent beside text and images.

    Args:
        result: The result of a call.
        most: Characters of a text that are kept.
        html_image: Gives the HTML of an image of a type and with base64 data.
    """
    seen = {block.data for block in result.content if isinstance(block, ImageContent)}
    details = read_details(result.details, seen)
    if details is None:
        return ""
    left_out = f"<p><em>Left out: {html_name(details.left_out)}.</em></p>" if details.left_out else ""
    return "".join(_html_part(part, most, html_image) for part in details.parts) + left_out


def _html_part(part: Part, most: int, html_image: Callable[[str, str], str]) -> str:
    """One part. Recordings would make the file large: they are named."""
    match part:
        case Words():
            html = html_pre(part.text, most)
        case Picture():
            html = html_image(part.mime_type, part.data)
        case Audio():
            what = ", ".join(filter(None, (html_name(part.mime_type), size_in_words(part.size))))
            html = f"<p><em>A recording ({what}), which this file does not keep.</em></p>"
        case Link():
            size = size_in_words(part.size) if part.size is not None else ""
            facts = " · ".join(map(html_name, filter(None, (part.description, part.mime_type, size))))
            html = f"<p>{html_name(part.name)} {_html_address(part.uri)} <small>{facts}</small></p>"
        case Resource(text=None):
            facts = " · ".join(filter(None, (html_name(part.mime_type), size_in_words(part.size))))
            html = f"<p>{_html_address(part.uri)} <small>{facts}</small></p>"
        case Resource():
            summary = f"{_html_address(part.uri)} <small>{html_name(part.mime_type)}</small>"
            html = html_folded(summary, html_pre(part.text or "", most))
        case Structure():
            html = html_folded(html_name(part.title), html_pre(part.text, most))
    return html


def _html_address(uri: str) -> str:
    if not is_web_address(uri):
        return f"<code>{html_name(uri)}</code>"
    return f'<a href="{escape(uri)}" rel="noopener noreferrer nofollow" target="_blank">{html_name(uri)}</a>'
