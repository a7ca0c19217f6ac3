"""Objects in which keys have no quotes and strings stand between tokens, as the Gemma models write them."""

from __future__ import annotations

import json
import re
from typing import Any, cast

__all__ = ["read_loose_object"]

_QUOTES = ("<escape>", '<|"|>', '"')
_BARE_KEY = re.compile(r"\s*([\w.-]+)\s*(?=:)")
_BARE_VALUE = re.compile(r"[^,}\]]*")
_SPACE = re.compile(r"\s*")
_MAX_DEPTH = 50


def read_loose_object(text: str, position: int) -> tuple[dict[str, Any], int] | None:
    """Read the object at ``position``, such as ``{city:<escape>Lugo<escape>,days:[1,2]}``.

    Returns:
        The object and where the text goes on after it; None where it is no whole object.
    """
    try:
        value, end = _value(text, position, _MAX_DEPTH)
    except ValueError:
        return None
    return (cast("dict[str, Any]", value), end) if isinstance(value, dict) else None


def _value(text: str, position: int, depth: int) -> tuple[Any, int]:
    if not depth:
        raise ValueError("nested too deeply")
    position = _after_space(text, position)
    opening = text[position : position + 1]
    if opening == "{":
        return _members(text, position + 1, depth - 1)
    if opening == "[":
        return _elements(text, position + 1, depth - 1)
    if (quoted := _quoted(text, position)) is not None:
        return quoted
    match = _BARE_VALUE.match(text, position)
    bare = match[0].strip() if match else ""
    try:
        return json.loads(bare), position + len(match[0] if match else "")
    except ValueError:
        return bare, position + len(match[0] if match else "")


def _members(text: str, position: int, depth: int) -> tuple[dict[str, Any], int]:
    members: dict[str, Any] = {}
    position = _after_space(text, position)
    while not text.startswith("}", position):
        key, position = _key(text, position)
        members[key], position = _value(text, position, depth)
        position = _after_comma(text, position, "}")
    return members, position + 1


def _elements(text: str, position: int, depth: int) -> tuple[list[Any], int]:
    elements: list[Any] = []
    position = _after_space(text, position)
    while not text.startswith("]", position):
        value, position = _value(text, position, depth)
        elements.append(value)
        position = _after_comma(text, position, "]")
    return elements, position + 1


def _key(text: str, position: int) -> tuple[str, int]:
    quoted = _quoted(text, position)
    if quoted is None and (match := _BARE_KEY.match(text, position)) is not None:
        quoted = (match[1], match.end())
    if quoted is None:
        raise ValueError("no key")
    end = _after_space(text, quoted[1])
    if not text.startswith(":", end):
        raise ValueError("no value")
    return quoted[0], end + 1


def _quoted(text: str, position: int) -> tuple[str, int] | None:
    for quote in _QUOTES:
        if text.startswith(quote, position):
            start = position + len(quote)
            end = text.find(quote, start)
            if end < 0:
                raise ValueError("an open string")
            return text[start:end], end + len(quote)
    return None


def _after_space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


def _after_comma(text: str, position: int, closing: str) -> int:
    position = _after_space(text, position)
    if text.startswith(",", position):
        return _after_space(text, position + 1)
    if not text.startswith(closing, position):
        raise ValueError("neither a comma nor an end")
    return position
