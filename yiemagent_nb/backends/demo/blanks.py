"""Blanks: for any JSON Schema a plain value that is valid, where nobody said a better one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

from yiemagent_nb.backends.demo.slots import FORMAT_SAMPLES, MAX_BOUND, resolve

__all__ = ["blank"]

MAX_NODES = 300
MAX_DEPTH = 8
MAX_ITEMS = 20
MAX_LENGTH = 1_000

_FORMATS: Mapping[str, str] = {**FORMAT_SAMPLES, "ipv4": "127.0.0.1", "ipv6": "::1", "duration": "PT0S"}


def blank(schema: object, root: Mapping[str, Any]) -> Any:
    """The schema's own first choice or default, else the least value of its type.

    Args:
        schema: The schema, valid.
        root: What its references are relative to.
    """
    return _Blanks(root).value(schema)


class _Blanks:
    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._nodes = 0

    def value(self, schema: object, depth: int = 0) -> Any:
        self._nodes += 1
        fields = resolve(schema, self._root)
        if self._nodes > MAX_NODES or depth > MAX_DEPTH:
            return None
        for key in ("const", "default"):
            if key in fields:
                return fields[key]
        if fields.get("enum"):
            return fields["enum"][0]
        parts = [resolve(part, self._root) for key in ("anyOf", "oneOf") for part in fields.get(key, ())]
        if parts:
            chosen = next((part for part in parts if part.get("type") == "null"), parts[0])
            outer = {name: value for name, value in fields.items() if name not in ("anyOf", "oneOf")}
            return self.value({**outer, **chosen}, depth + 1)
        return self._of_kind(_kind(fields), fields, depth)

    def _of_kind(self, kind: str, fields: Mapping[str, Any], depth: int) -> Any:
        if kind == "object":
            properties: Mapping[str, Any] = fields.get("properties", {})
            return {name: self.value(properties.get(name), depth + 1) for name in fields.get("required", ())}
        if kind == "array":
            first: Sequence[Any] = fields.get("prefixItems", ())
            least = max(_bound(fields, "minItems", 0), len(first)) if depth < MAX_DEPTH else 0
            rest = [fields.get("items")] * MAX_ITEMS
            return [self.value(item, depth + 1) for item in [*first, *rest][: min(int(least), MAX_ITEMS)]]
        if kind == "string":
            length = min(_bound(fields, "minLength", 0), MAX_LENGTH)
            return _FORMATS.get(fields.get("format", ""), "").ljust(int(length), "-")
        if kind in ("integer", "number"):
            return _number(fields, whole=kind == "integer")
        return False if kind == "boolean" else None


def _kind(fields: Mapping[str, Any]) -> str:
    named = fields.get("type", "")
    if isinstance(named, list):
        kinds = cast("list[str]", named)
        return "null" if "null" in kinds else kinds[0]
    if named:
        return str(named)
    return "object" if "properties" in fields or "required" in fields else "array" if "items" in fields else ""


def _bound(fields: Mapping[str, Any], key: str, default: float) -> float:
    value = fields.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return default
    return value if abs(value) < MAX_BOUND else default


def _number(fields: Mapping[str, Any], *, whole: bool) -> float:
    """Zero, or a number at the bounds that leave it out."""
    low, high = _bound(fields, "minimum", -MAX_BOUND), _bound(fields, "maximum", MAX_BOUND)
    above, below = _bound(fields, "exclusiveMinimum", -MAX_BOUND), _bound(fields, "exclusiveMaximum", MAX_BOUND)
    step = _bound(fields, "multipleOf", 1) or 1
    least, most = max(low, above), min(high, below)
    steps = (
        *(0, math.ceil(least / step), math.floor(least / step) + 1),
        *(math.floor(most / step), math.ceil(most / step) - 1),
    )
    candidates = (*(number * step for number in steps), (least + most) / 2)
    fitting = next((value for value in candidates if low <= value <= high and above < value < below), 0)
    return int(fitting) if whole else fitting
