"""JSON Schemas in the strict form, which OpenAI's models then follow to the letter.

Source: OpenAI's guide "Structured model outputs", "Supported schemas": every object closed, every
property required, a part of the keywords and formats, and limits on the size of the whole. What is
left out of a schema here is checked all the same, when the answer is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from yiemagent_nb.core.reading.fields import as_mapping

__all__ = ["strict_schema"]

Schema = dict[str, Any]

_KEPT = frozenset(
    {
        "$ref",
        "const",
        "description",
        "enum",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "format",
        "maxItems",
        "maximum",
        "minItems",
        "minimum",
        "multipleOf",
        "pattern",
        "type",
    }
)
"""Keywords that stay as they are; those that hold schemas are written anew, all others left out."""
_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})
_REFUSED = frozenset(
    {
        "$dynamicRef",
        "allOf",
        "dependencies",
        "dependentRequired",
        "dependentSchemas",
        "else",
        "if",
        "not",
        "patternProperties",
        "prefixItems",
        "then",
    }
)
"""Without these a schema would say something else."""
_DEFINITIONS = ("definitions", "$defs")
_DEFINITION = re.compile(r"#/(?:definitions|\$defs)/([^/]+)")
_LOOKS_AROUND = re.compile(r"\(\?(?!:)|\\[1-9kK]")
"""What patterns may not have: assertions, flags, names, and references to groups."""
_TYPES: Mapping[type, str] = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}

_MOST_PROPERTIES = 5_000
_MOST_LEVELS = 10
_MOST_ENUM_VALUES = 1_000
_MOST_LETTERS = 120_000
"""In all names of properties and definitions, and all values of enums and constants."""
_LONG_ENUM, _MOST_LETTERS_OF_LONG_ENUM = 250, 15_000


class _NotStrictError(Exception):
    """The schema has no strict form."""


def strict_schema(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """The strict form of a schema; None where it has none, as with an object of any keys.

    A property that may be left out must be given; its default no longer stands in the schema.
    """
    try:
        definitions: Schema = {}
        for keyword in _DEFINITIONS:
            definitions |= _schemas_by_name(schema.get(keyword, {}))
        strict = _strict(schema)
        if strict.get("type") != "object" or "anyOf" in strict:
            return None
        _check_limits(strict, definitions)
    except (_NotStrictError, RecursionError):
        return None
    return {**strict, "$defs": definitions} if definitions else strict


def _strict(schema: object) -> Schema:
    fields = as_mapping(schema)
    if fields is None or not _REFUSED.isdisjoint(fields):
        raise _NotStrictError
    if "$ref" in fields:
        return {"$ref": _reference(fields["$ref"])}
    strict: Schema = {name: value for name, value in fields.items() if name in _KEPT}
    if str(strict.get("format")) not in _FORMATS:
        strict.pop("format", None)
    if _LOOKS_AROUND.search(str(strict.get("pattern", ""))):
        del strict["pattern"]
    if "anyOf" in fields or "oneOf" in fields:
        strict["anyOf"] = _choices(fields)
        return strict
    if "const" in strict or "enum" in strict:
        kind = _type_of(strict["enum"] if "enum" in strict else [strict["const"]])
        strict.setdefault("type", kind)
    kinds = _kinds(strict.get("type", "object" if "properties" in fields else None))
    if "object" in kinds:
        properties = _schemas_by_name(fields.get("properties"))
        if not properties or fields.get("additionalProperties", False) is not False:
            raise _NotStrictError
        strict |= {"properties": properties, "additionalProperties": False, "required": list(properties)}
        strict.setdefault("type", "object")
    if "array" in kinds:
        strict["items"] = _strict(fields.get("items"))
    return strict


def _schemas_by_name(schemas: object) -> Schema:
    return {name: _strict(each) for name, each in (as_mapping(schemas) or {}).items()}


def _choices(fields: Mapping[str, Any]) -> list[Schema]:
    choices: object = fields.get("anyOf", fields.get("oneOf"))
    if not isinstance(choices, list) or not choices or {"anyOf", "oneOf"} <= fields.keys() or "properties" in fields:
        raise _NotStrictError
    return [_strict(each) for each in cast("list[object]", choices)]


def _reference(reference: object) -> str:
    """A reference to the whole schema or one of its definitions."""
    if reference == "#":
        return "#"
    found = _DEFINITION.fullmatch(str(reference))
    if found is None:
        raise _NotStrictError
    return f"#/$defs/{found[1]}"


def _kinds(kinds: object) -> Sequence[object]:
    listed = cast("list[object]", kinds) if isinstance(kinds, list) else [kinds]
    if not listed or not all(isinstance(kind, str) for kind in listed):
        raise _NotStrictError  # anything at all
    return listed


def _type_of(values: object) -> str | list[str]:
    """The types of an enum's values, which must be said; values of other types are not taken."""
    listed = cast("list[object]", values) if isinstance(values, list) else []
    kinds = list(dict.fromkeys(_TYPES.get(type(value), "") for value in listed))
    if not kinds or "" in kinds:
        raise _NotStrictError
    return kinds[0] if len(kinds) == 1 else kinds


def _check_limits(strict: Schema, definitions: Schema) -> None:
    names = list(definitions)
    values: list[object] = []
    properties = 0
    for schema in (each for whole in (strict, *definitions.values()) for each in _all_schemas(whole)):
        names += schema.get("properties", ())
        properties += len(schema.get("properties", ()))
        options: list[object] = schema.get("enum", [])
        if len(options) > _LONG_ENUM and _letters(options) > _MOST_LETTERS_OF_LONG_ENUM:
            raise _NotStrictError
        values += [*options, *([schema["const"]] if "const" in schema else ())]
    if (
        properties > _MOST_PROPERTIES
        or len(values) > _MOST_ENUM_VALUES
        or _letters([*names, *values]) > _MOST_LETTERS
        or _levels(strict, definitions, {"#": 0}) > _MOST_LEVELS
    ):
        raise _NotStrictError


def _letters(values: Sequence[object]) -> int:
    return sum(len(str(value)) for value in values)


def _inner(schema: Schema) -> list[Schema]:
    items = [schema["items"]] if "items" in schema else []
    return [*schema.get("properties", {}).values(), *items, *schema.get("anyOf", ())]


def _all_schemas(schema: Schema) -> Iterator[Schema]:
    waiting = [schema]
    while waiting:
        each = waiting.pop()
        yield each
        waiting += _inner(each)


def _levels(schema: Schema, definitions: Schema, known: dict[str, int]) -> int:
    """How deep objects and arrays stand in one another; a schema within itself counts once."""
    if "$ref" in schema:
        reference: str = schema["$ref"]
        if reference not in known:
            definition = definitions.get(reference.rpartition("/")[2])
            if definition is None:
                raise _NotStrictError
            known[reference] = 0
            known[reference] = _levels(definition, definitions, known)
        return known[reference]
    level = 1 if {"properties", "items"} & schema.keys() else 0
    return level + max((_levels(each, definitions, known) for each in _inner(schema)), default=0)
