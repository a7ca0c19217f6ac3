"""What is odd about a tool's JSON Schema: mistakes of its author that the schema's own rules allow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast
from urllib.parse import unquote

from yiemagent_nb.core.validation import format_names, shorten

__all__ = ["schema_advice", "schema_texts", "schema_warnings"]

MOST_PARTS = 5_000
MOST_NAMED = 5

_KNOWN = frozenset(
    {
        *("$anchor", "$comment", "$defs", "$dynamicAnchor", "$dynamicRef", "$id", "$recursiveAnchor", "$recursiveRef"),
        *("$ref", "$schema", "$vocabulary", "additionalItems", "additionalProperties", "allOf", "anyOf", "const"),
        *("contains", "contentEncoding", "contentMediaType", "contentSchema", "default", "definitions", "dependencies"),
        *("dependentRequired", "dependentSchemas", "deprecated", "description", "else", "enum", "examples"),
        *("exclusiveMaximum", "exclusiveMinimum", "format", "id", "if", "items", "maxContains", "maxItems"),
        *("maxLength", "maxProperties", "maximum", "minContains", "minItems", "minLength", "minProperties", "minimum"),
        *("multipleOf", "not", "oneOf", "pattern", "patternProperties", "prefixItems", "properties", "propertyNames"),
        *("readOnly", "required", "then", "title", "type", "unevaluatedItems", "unevaluatedProperties", "uniqueItems"),
        *("writeOnly", "discriminator"),
    }
)
_TYPES = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})
_SAYS_WHAT = ("type", "$ref", "enum", "const", "anyOf", "oneOf", "allOf", "not", "if", "$dynamicRef", "properties")
"""A property with one of these says which values it takes."""

_NAMED_SCHEMAS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_LISTED_SCHEMAS = ("anyOf", "oneOf", "allOf", "prefixItems")
_SCHEMAS = ("items", "additionalProperties", "propertyNames", "not", "contains", "if", "then", "else")
_TEXTS = ("title", "description", "$comment", "default", "const", "pattern", "format")


def schema_warnings(schema: Mapping[str, Any]) -> Iterator[str]:
    """What is odd about an input schema, in sentences."""
    if schema.get("type") != "object":
        yield f"Its input schema is not of an object, but of {shorten(schema.get('type'))}."
    unknown: dict[str, None] = {}
    types: dict[str, None] = {}
    unnamed: dict[str, None] = {}
    references: dict[str, None] = {}
    for part in _parts(schema):
        unknown |= {key: None for key in part if key not in _KNOWN and not key.startswith(("x-", "$"))}
        types |= {text: None for text in _texts(part.get("type")) if text not in _TYPES}
        properties = part.get("properties")
        if isinstance(properties, Mapping) and "type" in part:
            unnamed |= {text: None for text in _texts(part.get("required")) if text not in properties}
        references |= dict.fromkeys(_texts(part.get("$ref")))
    yield from _property_warnings(schema)
    if unnamed:
        yield f"Its schema requires {_listed(unnamed)}, of which it says nothing in its properties."
    if types:
        yield f"Its schema names types that JSON Schema does not have: {_listed(types)}."
    if unknown:
        yield f"Its schema has keywords that JSON Schema does not have, and that count for nothing: {_listed(unknown)}."
    yield from _reference_warnings(schema, references)


def _property_warnings(schema: Mapping[str, Any]) -> Iterator[str]:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return
    named = cast("Mapping[str, object]", properties)
    untyped = [name for name, each in named.items() if not _says_what(each)]
    if untyped:
        yield f"{_count(untyped, 'parameter')} without a type: {_listed(untyped)}."


def schema_advice(schema: Mapping[str, Any]) -> Iterator[str]:
    """What an input schema could say better, in sentences."""
    properties = schema.get("properties")
    if isinstance(properties, Mapping):
        named = cast("Mapping[str, object]", properties)
        if untold := [name for name, each in named.items() if not _says_why(each)]:
            yield f"{_count(untold, 'parameter')} without a description: {_listed(untold)}."


def _says_what(schema: object) -> bool:
    return isinstance(schema, Mapping) and any(key in schema for key in _SAYS_WHAT)


def _says_why(schema: object) -> bool:
    if not isinstance(schema, Mapping):
        return False
    known = cast("Mapping[str, object]", schema)
    return "$ref" in known or (isinstance(said := known.get("description"), str) and bool(said.strip()))


def _reference_warnings(schema: Mapping[str, Any], references: Mapping[str, None]) -> Iterator[str]:
    remote = [each for each in references if not each.startswith("#")]
    if remote:
        yield f"Its schema refers to {_listed(remote)}, which is never fetched: what stands there is not checked."
    astray = [each for each in references if each.startswith("#/") and not _leads_somewhere(schema, each)]
    if astray:
        yield f"Its schema refers to {_listed(astray)}, and there is no such part of it."


def _leads_somewhere(schema: Mapping[str, Any], reference: str) -> bool:
    value: object = schema
    for step in reference.removeprefix("#/").split("/"):
        key = unquote(step).replace("~1", "/").replace("~0", "~")
        if isinstance(value, Mapping) and key in value:
            value = cast("Mapping[str, object]", value)[key]
        elif isinstance(value, list) and key.isdecimal() and int(key) < len(cast("list[object]", value)):
            value = cast("list[object]", value)[int(key)]
        else:
            return False
    return True


def schema_texts(schema: Mapping[str, Any], most: int) -> Iterator[str]:
    """The texts of a schema that a model reads: names, titles, descriptions, defaults, choices; so many characters."""
    for part in _parts(schema):
        named: object = part.get("properties")
        names: list[object] = list(cast("Mapping[object, object]", named)) if isinstance(named, Mapping) else []
        choices: object = part.get("enum")
        items: list[object] = cast("list[object]", choices) if isinstance(choices, list) else []
        for text in [*(part.get(key) for key in _TEXTS), *items, *names]:
            if isinstance(text, str):
                yield text[:most]
                most -= len(text)
        if most <= 0:
            return


def _parts(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """A schema and those within it, so many of them."""
    waiting: list[object] = [schema]
    for _ in range(MOST_PARTS):
        if not waiting:
            return
        part = waiting.pop()
        if not isinstance(part, Mapping):
            continue
        known = cast("Mapping[str, Any]", part)
        yield known
        for key in _NAMED_SCHEMAS:
            if isinstance(known.get(key), Mapping):
                waiting.extend(cast("Mapping[str, object]", known[key]).values())
        for key in _LISTED_SCHEMAS:
            if isinstance(known.get(key), list):
                waiting.extend(cast("list[object]", known[key]))
        waiting.extend(known[key] for key in _SCHEMAS if key in known)


def _texts(value: object) -> list[str]:
    items: list[object] = cast("list[object]", value) if isinstance(value, list) else [value]
    return [item for item in items if isinstance(item, str)]


def _count(names: list[str], what: str) -> str:
    return f"One {what}" if len(names) == 1 else f"{len(names)} {what}s"


def _listed(names: Mapping[str, None] | list[str]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"{format_names(list(names)[:MOST_NAMED])}{more}"
