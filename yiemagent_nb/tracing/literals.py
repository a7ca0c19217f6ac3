"""JSON values as Python text, one below the other, without keys."""

from __future__ import annotations

import math
import pprint
from collections.abc import Mapping, Sequence
from typing import cast

from yiemagent_nb.core.json_values import MAX_DEPTH, json_form

__all__ = ["lines_of", "literal", "plain"]

_WIDTH = 110


def literal(value: object, indent: str = "") -> str:
    """A value as a Python literal over as many lines as it needs; all but the first are indented."""
    text = pprint.pformat(plain(value), width=_WIDTH, sort_dicts=False)
    return text.replace("\n", f"\n{indent}")  # those of texts are written as escapes


def lines_of(values: Sequence[object], indent: str = "    ") -> str:
    """A list, each of its values on a line of its own."""
    if not values:
        return "[]"
    lines = "".join(f"{indent}    {plain(value)!r},\n" for value in values)
    return f"[\n{lines}{indent}]"


def plain(value: object, depth: int = MAX_DEPTH) -> object:
    """A value in Python's plain types. Texts stay as they are, halves of characters too."""
    if value is None or isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Mapping) and depth:
        fields = cast("Mapping[object, object]", value)
        return {str(name): plain(each, depth - 1) for name, each in fields.items()}
    if isinstance(value, list | tuple) and depth:
        return [plain(each, depth - 1) for each in cast("list[object]", value)]
    return json_form(cast("object", value))
