"""The elements of which HTML for a file is made. Whatever text they hold is escaped."""

from __future__ import annotations

from html import escape

from yiemagent_nb.sessions.pieces import IMAGE_TYPES, cut_text
from yiemagent_nb.sessions.visible import visible_code, visible_name
from yiemagent_nb.widgets.tool_details import size_in_words

__all__ = ["html_folded", "html_image", "html_name", "html_pre"]


def html_pre(text: str, most: int) -> str:
    """A text as it stands, at most so many characters of it."""
    return f"<pre>{escape(visible_code(cut_text(text, most)))}</pre>"


def html_name(text: str) -> str:
    """A text on one line in which nothing hides, and which turns the direction of nothing beside it."""
    return f"<bdi>{escape(visible_name(text))}</bdi>"


def html_folded(summary: str, body: str) -> str:
    """HTML below a summary, which is HTML too, that a click opens."""
    return f"<details><summary>{summary}</summary>{body}</details>"


def html_image(mime_type: str, data: str = "") -> str:
    """An image of base64 ``data``, or its type alone. Its words stand where a reader shows no images of files."""
    if mime_type not in IMAGE_TYPES or not data:
        return f"<p><em>[an image of type {html_name(mime_type)}]</em></p>"
    alt = f"image ({mime_type.partition('/')[2].upper()}, {size_in_words(len(data) * 3 // 4)})"
    return f'<p><img alt="{alt}" src="data:{mime_type};base64,{data}"></p>'
