"""Example values made from a JSON Schema, for trying a hook before anything was called."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

__all__ = ["example_arguments"]

MAX_DEPTH = 6

_FORMATS: Final[Mapping[str, str]] = {
    "date": "2026-01-31",
    "time": "12:30:00Z",
    "date-time": "2026-01-31T12:30:00Z",
    "email": "someone@example.org",
    "uri": "https://example.org/",
    "uuid": "00000000-0000-4000-8000-000000000000",
}
_SIMPLE: Final[Mapping[str, Any]] = {"integer": 1, "number": 1.5, "boolean": True, "null": None}


def example_arguments(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments that a tool with this input schema most likely takes: those that it requires."""
    value = _example(schema, schema, MAX_DEPTH)
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _example(schema: object, root: Mapping[str, Any], depth: int) -> Any:
    if not isinstance(schema, Mapping) or not depth:
        return {}
    fields = cast("Mapping[str, Any]", schema)
    if isinstance(fields.get("$ref"), str):
        return _example(_resolve(fields["$ref"], root), root, depth - 1)
    for keyword in ("default", "const"):
        if keyword in fields:
            return fields[keyword]
    for keyword in ("examples", "enum"):
        if isinstance(fields.get(keyword), list) and fields[keyword]:
            return fields[keyword][0]
    for keyword in ("anyOf", "oneOf", "allOf"):
        if isinstance(fields.get(keyword), list) and fields[keyword]:
            return _example(fields[keyword][0], root, depth - 1)
    return _of_type(fields, root, depth)


def _of_type(fields: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> Any:
    kind = fields.get("type", "object" if "properties" in fields else "string")
    if isinstance(kind, list):
        kind = next(iter(cast("list[Any]", kind)), "string")
    if kind == "object":
        properties: Mapping[str, Any] = fields.get("properties") or {}
        return {name: _example(properties.get(name), root, depth - 1) for name in fields.get("required") or ()}
    if kind == "array":
        return [_example(fields.get("items", {"type": "string"}), root, depth - 1)]
    if kind in ("integer", "number"):
        return fields.get("minimum", fields.get("maximum", _SIMPLE[kind]))
    return _SIMPLE[kind] if kind in _SIMPLE else _FORMATS.get(fields.get("format", ""), "example")


def _resolve(reference: str, root: Mapping[str, Any]) -> object:
    """What a local reference names; nothing where there is no such part."""
    found: Any = root
    for step in reference.removeprefix("#/").split("/"):
        if not isinstance(found, Mapping):
            return None
        found = cast("Mapping[str, Any]", found).get(step.replace("~1", "/").replace("~0", "~"))
    return found
