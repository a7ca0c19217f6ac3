"""JSON Schemas in the strict form, which OpenAI's models then follow to the letter.

Source: OpenAI's guide "Structured model outputs", "Supported schemas": every object closed, every
property required, and a subset of the keywords.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from yiemagent_nb.core.reading.fields import as_mapping

__all__ = ["strict_schema"]

_LEFT_OUT = frozenset({"default", "examples", "title", "discriminator"})
"""What says nothing about the form, or is refused."""
_REFUSED = frozenset({"allOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas", "prefixItems"})
_OF_SCHEMAS = frozenset({"properties", "$defs", "definitions"})


class _NotStrictError(Exception):
    """The schema has no strict form."""


def strict_schema(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """The strict form of a schema; None where it has none, as with an object of any keys.

    A property that may be left out must be given; its default no longer stands in the schema.
    """
    try:
        strict = _strict(schema)
    except _NotStrictError:
        return None
    return strict if strict.get("type") == "object" else None


def _strict(schema: Mapping[str, Any]) -> dict[str, Any]:
    if not _REFUSED.isdisjoint(schema):
        raise _NotStrictError
    strict = {name: _value(name, value) for name, value in schema.items() if name not in _LEFT_OUT}
    if "oneOf" in strict:
        strict["anyOf"] = strict.pop("oneOf")
    if "$ref" in strict:
        return {"$ref": strict["$ref"], **({"$defs": strict["$defs"]} if "$defs" in strict else {})}
    if strict.get("type") == "object" or "properties" in strict:
        if as_mapping(strict.get("additionalProperties")) is not None or strict.get("additionalProperties") is True:
            raise _NotStrictError
        properties = as_mapping(strict.get("properties")) or {}
        if not properties:
            raise _NotStrictError
        strict |= {"type": "object", "additionalProperties": False, "required": list(properties)}
    elif not {"type", "anyOf", "enum", "const"} & strict.keys():
        raise _NotStrictError  # anything at all
    return strict


def _value(name: str, value: object) -> object:
    if name in _OF_SCHEMAS and isinstance(value, Mapping):
        schemas = cast("Mapping[str, Mapping[str, Any]]", value)
        return {key: _strict(each) for key, each in schemas.items()}
    if name in {"anyOf", "oneOf"} and isinstance(value, list):
        return [_strict(each) for each in cast("list[Mapping[str, Any]]", value)]
    if name == "items":
        if not isinstance(value, Mapping):
            raise _NotStrictError
        return _strict(cast("Mapping[str, Any]", value))
    return value
