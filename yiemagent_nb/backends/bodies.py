"""Bodies of answers that should be JSON, and what stands there instead."""

from __future__ import annotations

import json
import re
from typing import Any

from yiemagent_nb.core.errors import MalformedResponseError
from yiemagent_nb.core.reading.server_errors import quote

__all__ = ["no_json", "parse_json", "plain_text"]

_MAX_SHOWN_BYTES = 65_536
_TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)
_MARKUP = re.compile(r"<(script|style)\b.*?</\1\s*>|<[^>]*>", re.IGNORECASE | re.DOTALL)


def parse_json(content: bytes, media_type: str) -> Any:
    """The JSON of a body.

    Raises:
        MalformedResponseError: It is none; the error says what came instead.
    """
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise no_json(content, media_type) from error


def no_json(content: bytes, media_type: str) -> MalformedResponseError:
    """The error for a body that is no JSON."""
    text = content[:_MAX_SHOWN_BYTES].decode("utf-8", "replace")
    if not text.strip():
        return MalformedResponseError("The server's answer is empty; expected JSON.", "Look at the server's log.")
    if media_type == "text/html" or text.lstrip().startswith("<"):
        return MalformedResponseError(
            f'The server answered with a web page ("{quote(plain_text(text), 60)}"); expected JSON.',
            "Check the base URL: it usually ends in /v1.",
        )
    return MalformedResponseError(
        f'The server\'s answer is no JSON: "{quote(text, 120)}".', "Check that a model server answers there."
    )


def plain_text(text: str) -> str:
    """The title of a web page, else its text without markup; other text as it is."""
    title = _TITLE.search(text)
    return " ".join((title[1] if title else _MARKUP.sub(" ", text)).split())
