"""The fields of a question, so that any front end can draw them.

A question's schema is the flat one of MCP's elicitation (strings, numbers, booleans, and choices
of one or of several: https://modelcontextprotocol.io/specification, "Elicitation"). What fits none
of these kinds is asked for as JSON, so that every question can be answered. All texts come from a
server: they are cut to a length that fits, and shown as plain text.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from yiemagent_nb.core.errors import InvalidParametersError
from yiemagent_nb.core.validation import format_path

__all__ = ["LARGEST_SCHEMA", "Choice", "FieldKind", "QuestionField", "question_fields", "with_titles"]

FieldKind = Literal["text", "number", "integer", "boolean", "choice", "choices", "json"]

LARGEST_SCHEMA = 100_000
"""Characters of a schema as JSON; a larger one is not drawn."""

LONGEST_LABEL = 200
LONGEST_DESCRIPTION = 2_000
LARGEST_NUMBER = 10**15
"""A larger bound is of no use to a person and is not shown."""

_FORMATS = ("email", "uri", "date", "date-time")


@dataclass(frozen=True, slots=True)
class Choice:
    """A value that may be chosen."""

    value: Any
    label: str


@dataclass(frozen=True, slots=True)
class QuestionField:
    """A value that is asked for.

    ``default`` is None where there is none, and ``hint`` says in words what fits. With ``nullable``
    an empty field that is required is answered by null.
    """

    name: str
    kind: FieldKind
    title: str
    description: str = ""
    hint: str = ""
    required: bool = False
    nullable: bool = False
    format: str = ""
    default: Any = None
    choices: tuple[Choice, ...] = ()


def question_fields(schema: Mapping[str, Any]) -> tuple[QuestionField, ...] | None:
    """The fields of a question's schema; None where it is too large to be drawn."""
    try:
        size = len(json.dumps(schema))
    except (TypeError, ValueError, RecursionError):
        return None
    if size > LARGEST_SCHEMA:
        return None
    properties = _mapping(schema.get("properties"))
    required = _list(schema.get("required"))
    return tuple(_field(name, schema, _mapping(each), required=name in required) for name, each in properties.items())


def with_titles(error: InvalidParametersError, schema: Mapping[str, Any] | None) -> InvalidParametersError:
    """What is wrong with an answer, of the fields as a person knows them: by their titles."""
    fields = (question_fields(schema) if schema is not None else None) or ()
    titles = {format_path([field.name]): field.title for field in fields}
    if not titles:
        return error
    names = "|".join(map(re.escape, sorted(titles, key=len, reverse=True)))
    subject = rf"(?<=[:;,] )(?:{names})(?=(?:, (?:{names}))* is missing| should )"
    return InvalidParametersError(re.sub(subject, lambda match: titles[match[0]], error.message), error.hint)


def _field(name: str, whole: Mapping[str, Any], schema: Mapping[str, Any], *, required: bool) -> QuestionField:
    schema, nullable = _without_null(_resolve(whole, schema))
    kind, choices = _kind(schema)
    default = schema.get("default")
    return QuestionField(
        name=name,
        kind=kind,
        title=_cut(schema.get("title"), LONGEST_LABEL) or _cut(name, LONGEST_LABEL),
        description=_cut(schema.get("description"), LONGEST_DESCRIPTION),
        hint=_hint(kind, schema),
        required=required,
        nullable=nullable,
        format=schema["format"] if kind == "text" and schema.get("format") in _FORMATS else "",
        default=default if _fits(default, kind, choices) else None,
        choices=choices,
    )


def _resolve(whole: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """A schema in the place of a reference to it, as generators write enumerations."""
    reference = schema.get("$ref")
    if not isinstance(reference, str) or not reference.startswith("#/$defs/"):
        return schema
    return {**_mapping(_mapping(whole.get("$defs")).get(reference.removeprefix("#/$defs/"))), **schema}


def _without_null(schema: Mapping[str, Any]) -> tuple[Mapping[str, Any], bool]:
    """A schema without the null that it also takes, and whether it does."""
    kinds = schema.get("type")
    if isinstance(kinds, list) and "null" in kinds:
        others = [kind for kind in cast("list[object]", kinds) if kind != "null"]
        return {**schema, "type": others[0] if len(others) == 1 else others}, True
    for keyword in ("anyOf", "oneOf"):
        options = [_mapping(option) for option in _list(schema.get(keyword))]
        others = [option for option in options if option.get("type") != "null"]
        if len(options) > len(others) == 1:
            return {**others[0], **{key: value for key, value in schema.items() if key != keyword}}, True
    return schema, False


def _kind(schema: Mapping[str, Any]) -> tuple[FieldKind, tuple[Choice, ...]]:
    kind = schema.get("type")
    if kind == "array":
        choices = _choices(_mapping(schema.get("items")))
        return ("choices", choices) if choices else ("json", ())
    if choices := _choices(schema):
        return "choice", choices
    match kind:
        case "string":
            return "text", ()
        case "number" | "integer" | "boolean":
            return kind, ()
        case _:
            return "json", ()


def _choices(schema: Mapping[str, Any]) -> tuple[Choice, ...]:
    """What may be chosen: ``enum``, perhaps with ``enumNames``, or constants with titles."""
    if values := _list(schema.get("enum")):
        names = [*_list(schema.get("enumNames")), *[None] * len(values)]
        return tuple(_choice(value, name) for value, name in zip(values, names, strict=False))
    options = [_mapping(option) for option in _list(schema.get("oneOf")) or _list(schema.get("anyOf"))]
    if not options or not all("const" in option for option in options):
        return ()
    return tuple(_choice(option["const"], option.get("title")) for option in options)


def _choice(value: object, title: object) -> Choice:
    plain = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return Choice(value, _cut(title, LONGEST_LABEL) or _cut(plain, LONGEST_LABEL) or "(empty)")


def _fits(default: object, kind: FieldKind, choices: Sequence[Choice]) -> bool:
    """Whether a default can be put into its field."""
    match kind:
        case "text":
            return isinstance(default, str)
        case "number" | "integer":
            known = isinstance(default, int | float) and not isinstance(default, bool) and math.isfinite(default)
            return known and (kind == "number" or default == int(cast("float", default)))
        case "boolean":
            return isinstance(default, bool)
        case "choice":
            return any(choice.value == default for choice in choices)
        case "choices":
            return isinstance(default, list) and all(
                any(choice.value == each for choice in choices) for each in cast("list[object]", default)
            )
        case "json":
            return default is not None


def _hint(kind: FieldKind, schema: Mapping[str, Any]) -> str:
    match kind:
        case "text":
            return _range(schema.get("minLength"), schema.get("maxLength"), " characters")
        case "choices":
            return _range(schema.get("minItems"), schema.get("maxItems"), " of them")
        case "number" | "integer":
            bounds = _range(schema.get("minimum"), schema.get("maximum"))
            more, less = _number(schema.get("exclusiveMinimum")), _number(schema.get("exclusiveMaximum"))
            parts = ["a whole number" if kind == "integer" else "", bounds]
            parts += [f"more than {more}" if more else "", f"less than {less}" if less else ""]
            return ", ".join(filter(None, parts))
        case "json":
            return "JSON"
        case "boolean" | "choice":
            return ""


def _range(least: object, most: object, unit: str = "") -> str:
    low, high = _number(least), _number(most)
    if low and high:
        return f"{low} to {high}{unit}"
    if low:
        return f"at least {low}{unit}"
    return f"at most {high}{unit}" if high else ""


def _number(value: object) -> str:
    """A number to show; empty for what is none."""
    known = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST_NUMBER
    return f"{value:,}" if known else ""


def _cut(text: object, most: int) -> str:
    if not isinstance(text, str):
        return ""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _list(value: object) -> list[Any]:
    return list(cast("Iterable[Any]", value)) if isinstance(value, list | tuple) else []
