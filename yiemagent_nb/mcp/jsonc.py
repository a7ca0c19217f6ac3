"""JSON as people write it: with comments and trailing commas, as VS Code's files have them."""

from __future__ import annotations

import json
import re
from typing import Any

__all__ = ["read_jsonc"]

_STRING = r'"(?:[^"\\]|\\.)*+"'
_COMMENT = re.compile(rf"{_STRING}|(//[^\n]*|/\*.*?\*/)", re.DOTALL)
_TRAILING_COMMA = re.compile(rf"{_STRING}|(,)(?=\s*+[}}\]])", re.DOTALL)


def read_jsonc(text: str) -> Any:
    """The value that a text holds.

    Raises:
        ValueError: It is no JSON; the error says where, and shows nothing of the text.
    """
    for what in (_COMMENT, _TRAILING_COMMA):
        text = what.sub(_blank, text)
    try:
        return json.loads(text.removeprefix("\ufeff"))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _blank(match: re.Match[str]) -> str:
    """A comment as white space of the same form, so that errors name the right line; a string as it is."""
    return match[0] if match[1] is None else re.sub(r"[^\n]", " ", match[0])
