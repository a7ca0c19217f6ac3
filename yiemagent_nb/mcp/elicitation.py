"""Elicitation: what a server asks a person, and the answer in the form that the server takes.

Source of the form: MCP 2025-11-25, "Elicitation". A form is an object of plain fields: texts, numbers,
booleans, and choices of one or of several, each with a default where the server gives one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, cast
from urllib.parse import urlsplit

from yiemagent_nb.core.bounded_schema import MAX_STEPS
from yiemagent_nb.core.errors import InvalidParametersError, McpError
from yiemagent_nb.core.json_schema import check_schema, compile_schema
from yiemagent_nb.core.json_values import json_form
from yiemagent_nb.core.validation import MAX_SENTENCES, format_names, shorten

__all__ = ["ELICITATION", "INVALID_PARAMS", "Elicitation", "Form", "read_elicitation"]

ELICITATION = "elicitation/create"
INVALID_PARAMS = -32602
"""JSON-RPC's code for params that cannot be understood."""

MAX_FIELDS = 200

_WHOLE = re.compile(r"[+-]?\d{1,300}")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+")
_DEPTH = 4
"""Levels of a field's schema; a choice of several titled values has three."""


@dataclass(frozen=True, slots=True)
class Elicitation:
    """What a server asks: to fill in ``form``, or to visit ``url``. All of it is untrusted."""

    message: str
    form: Form | None = None
    url: str = ""


def read_elicitation(params: Mapping[str, Any]) -> Elicitation:
    """Read the params of ``elicitation/create``.

    Raises:
        McpError: They have not the form of MCP; the error is for the server.
    """
    message, mode = params.get("message"), params.get("mode", "form")
    if not isinstance(message, str):
        raise McpError("message must be a text.", rpc_code=INVALID_PARAMS)
    if mode == "url":
        return Elicitation(message, url=_checked_url(params.get("url")))
    if mode != "form":
        raise McpError(f"mode must be 'form' or 'url', not {shorten(mode)}.", rpc_code=INVALID_PARAMS)
    try:
        return Elicitation(message, Form(params.get("requestedSchema")))
    except InvalidParametersError as error:
        raise McpError(error.message, rpc_code=INVALID_PARAMS) from error


def _checked_url(url: object) -> str:
    try:
        parts = urlsplit(url) if isinstance(url, str) else None
        sound = parts is not None and parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        sound = False
    if not sound or not isinstance(url, str) or not url.isprintable():
        raise McpError(f"url must be an address of http or https, not {shorten(url)}.", rpc_code=INVALID_PARAMS)
    return url


class Form:
    """The fields that a server asks for.

    Args:
        schema: The server's ``requestedSchema``.

    Attributes:
        schema: The same for whoever answers: a field with a default need not be given.

    Raises:
        InvalidParametersError: It is no JSON Schema of an object with plain fields.
    """

    def __init__(self, schema: object) -> None:
        asked = check_schema(schema, "requestedSchema", of_object=True, trusted=False)
        if len(asked["properties"]) > MAX_FIELDS:
            raise InvalidParametersError(f"requestedSchema has more than {MAX_FIELDS} fields, too many for a person.")
        self._fields: dict[str, Mapping[str, Any]] = dict(_plain_fields(asked["properties"]))
        self._defaults = dict(self._usable_defaults())
        self._check = compile_schema(asked, trusted=False)
        required = [name for name in asked.get("required", ()) if name not in self._defaults]
        self.schema: Mapping[str, Any] = {**asked, "required": required} if "required" in asked else asked

    def read(self, content: Mapping[str, Any]) -> dict[str, Any]:
        """What goes to the server: values in the types of their fields, defaults where none were given.

        A number or a truth value may be given as text, a choice by its title, a date as one of Python's.

        Args:
            content: Values by the names of the fields.

        Raises:
            InvalidParametersError: They do not fit; the error says of each which and why.
        """
        given = json_form(content)
        if not isinstance(given, dict):
            raise InvalidParametersError(
                f"The answer is {shorten(content)}; expected values by the names {format_names(self._fields)}."
            )
        values = dict(self._defaults)
        unknown: list[str] = []
        for name, value in cast("dict[str, Any]", given).items():
            field = self._fields.get(name)
            if field is None:
                unknown.append(name)
            elif value is not None or _takes_null(field):
                values[name] = _coerced(value, field)
        problems = [f"{format_names(unknown)} is not asked for; asked for are {format_names(self._fields) or 'none'}"]
        problems = [*(problems if unknown else ()), *self._problems(values)]
        if problems:
            raise InvalidParametersError(f"The answer does not fit: {'; '.join(problems[:MAX_SENTENCES])}.")
        return values

    def _usable_defaults(self) -> Iterator[tuple[str, Any]]:
        """The defaults, without those that do not fit their own fields."""
        with_default = {name: field for name, field in self._fields.items() if field.get("default") is not None}
        for name, field in with_default.items():
            value = field["default"]
            check = compile_schema(
                {"properties": {name: field}}, trusted=False, max_steps=MAX_STEPS // len(with_default)
            )
            if not check({name: value}) and not _format_problem(value, field):
                yield name, value

    def _problems(self, values: Mapping[str, Any]) -> list[str]:
        problems = self._check(values)
        for name, value in values.items():
            problem = _format_problem(value, self._fields[name]) if _is_plain_value(value) else "a plain value"
            if problem:
                problems.append(f"{format_names([name])} should be {problem}, got {shorten(value)}")
        return problems


def _plain_fields(properties: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, field in properties.items():
        if not isinstance(field, Mapping) or not _is_plain(cast("Mapping[str, Any]", field)):
            raise InvalidParametersError(
                f"the field {shorten(name)} of requestedSchema is not plain: expected a text, a number, a boolean, "
                "or a choice of texts."
            )
        yield name, cast("Mapping[str, Any]", field)


def _is_plain(field: object, depth: int = _DEPTH) -> bool:
    """Whether a person can answer with one value, or with several texts."""
    if not isinstance(field, Mapping) or not depth:
        return False
    schema = cast("Mapping[str, Any]", field)
    if "$ref" in schema or "properties" in schema or "object" in _types(schema):
        return False
    if "array" in _types(schema):
        items = schema.get("items")
        return _is_plain(items, depth - 1) and "array" not in _types(cast("Mapping[str, Any]", items))
    return all(_is_plain(option, depth - 1) for option in _options(schema))


def _is_plain_value(value: object) -> bool:
    """Whether MCP takes a value in an answer, whatever the server's schema may say."""
    if isinstance(value, list):
        return all(isinstance(item, str) for item in cast("list[object]", value))
    return value is None or isinstance(value, str | int | float)


def _types(field: Mapping[str, Any]) -> Sequence[str]:
    kind = field.get("type", ())
    return (kind,) if isinstance(kind, str) else cast("Sequence[str]", kind)


def _options(field: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [*field.get("oneOf", ()), *field.get("anyOf", ())]


def _takes_null(field: Mapping[str, Any]) -> bool:
    return "null" in _types(field) or any("null" in _types(option) for option in _options(field))


def _coerced(value: Any, field: Mapping[str, Any]) -> Any:
    """A value as the field's type, where it plainly means one; else as it is, to be refused in its own words."""
    kinds = _types(field) or [kind for option in _options(field) for kind in _types(option)]
    if "array" in kinds:
        several = cast("list[Any]", value) if isinstance(value, list) else [value]
        items: Any = field.get("items", {})
        return [_coerced(each, items) for each in several]
    if isinstance(value, str):
        value = _by_title(value, field)
        return value if "string" in kinds or not kinds else _from_text(value, kinds)
    if isinstance(value, float) and value.is_integer() and "number" not in kinds and "integer" in kinds:
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool) and list(kinds) == ["string"]:
        return str(value)
    return value


def _by_title(text: str, field: Mapping[str, Any]) -> Any:
    """The value of a choice whose title the text is; the text itself where it is none, or that of two."""
    titled: list[tuple[object, object]] = [
        (option["title"], option["const"]) for option in _options(field) if "const" in option and "title" in option
    ]
    names, words = field.get("enumNames"), field.get("enum")
    if isinstance(names, list) and isinstance(words, list):  # as it was before the protocol of 2025-11-25
        titled += zip(cast("list[object]", names), cast("list[object]", words), strict=False)
    if any(value == text for _, value in titled):
        return text
    meant = [value for title, value in titled if title == text]
    return meant[0] if len(meant) == 1 else text


def _from_text(text: str, kinds: Sequence[str]) -> Any:
    word = text.strip()
    if "boolean" in kinds and word.lower() in ("true", "false"):
        return word.lower() == "true"
    if ("integer" in kinds or "number" in kinds) and _WHOLE.fullmatch(word):
        return int(word)
    if "number" in kinds:
        try:
            number = float(word)
        except ValueError:
            return text
        return number if math.isfinite(number) else text
    return text


def _format_problem(value: object, field: Mapping[str, Any]) -> str:
    """What a text should be instead; empty where it is that, or no format is asked for."""
    known = _FORMATS.get(str(field.get("format")))
    if known is None or not isinstance(value, str):
        return ""
    expected, is_one = known
    try:
        return "" if is_one(value) else expected
    except ValueError:
        return expected


def _is_email(text: str) -> bool:
    return _EMAIL.fullmatch(text) is not None


def _is_uri(text: str) -> bool:
    return bool(urlsplit(text).scheme) and not any(character.isspace() for character in text)


def _is_date(text: str) -> bool:
    return _DATE.fullmatch(text) is not None and bool(date.fromisoformat(text))


def _is_moment(text: str) -> bool:
    return _DATE.match(text) is not None and datetime.fromisoformat(text).tzinfo is not None


_FORMATS = {
    "email": ("an e-mail address", _is_email),
    "uri": ("an address with its scheme, such as https://example.org", _is_uri),
    "date": ("a date such as 2026-01-31", _is_date),
    "date-time": ("a date and a time with its zone, such as 2026-01-31T12:00:00Z", _is_moment),
}
"""The formats of MCP's texts: what each is, in words, and how it is told."""
