"""JSON Schemas: whether one is valid, and whether arguments fit it."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import islice
from typing import Any, Protocol, cast

from pydantic_core import from_json, to_json

from yiemagent_nb.core.bounded_schema import (
    MAX_STEPS,
    Effort,
    TooMuchEffortError,
    bounded_validator,
    count_nodes,
    has_inner_identifiers,
)
from yiemagent_nb.core.errors import InvalidParametersError
from yiemagent_nb.core.validation import MAX_SENTENCES, cut, format_names, format_path, json_copy, shorten

__all__ = ["CheckedSchema", "SchemaCheck", "check_schema", "compile_schema"]

MAX_NODES = 50_000
"""How large a schema may be that nobody vouches for."""

MAX_SHOWN_NAMES = 20

_log = logging.getLogger("yiemagent_nb")

SchemaCheck = Callable[[Mapping[str, Any]], list[str]]
"""Says what is wrong with arguments, a sentence each; nothing where they fit."""


class CheckedSchema(dict[str, Any]):
    """A schema that ``check_schema`` found valid and that nobody changes: it is not checked a second time."""


def check_schema(schema: object, owner: str, *, of_object: bool = False, trusted: bool = True) -> dict[str, Any]:
    """A copy of a JSON Schema that was found valid in the dialect that it names.

    Args:
        schema: The schema.
        owner: What it belongs to, as the error names it: ``the input_schema of tool 'add'``.
        of_object: Whether it must describe an object; a missing ``type`` and missing
            ``properties`` are then filled in.
        trusted: Whether its author is the person. Any other may be built so that checking it takes for
            ever, and is refused where that takes too long.

    Raises:
        InvalidParametersError: It is no schema, or describes something else than an object.
    """
    if not isinstance(schema, Mapping):
        raise InvalidParametersError(
            f"{owner} must be a JSON Schema, a mapping such as {{'type': 'object', 'properties': {{…}}}}, "
            f"not {shorten(schema)}."
        )
    if isinstance(schema, CheckedSchema):
        return _of_object(_quick_copy(schema), owner) if of_object else _quick_copy(schema)
    try:
        copied = json_copy(cast("object", schema)) if trusted else _quick_copy(cast("object", schema))
    except InvalidParametersError as error:
        raise InvalidParametersError(f"{owner} is no JSON Schema: {error.message}") from error
    if of_object:
        copied = _of_object(copied, owner)
    if not trusted and count_nodes(copied) > MAX_NODES:
        raise InvalidParametersError(f"{owner} is too large to be checked: it has more than {MAX_NODES:,} parts.")
    problem = "" if _is_plain(copied) else _schema_problem(copied, trusted=trusted)
    if problem:
        raise InvalidParametersError(f"{owner} is no valid JSON Schema: {problem}.")
    return copied


def _of_object(schema: dict[str, Any], owner: str) -> dict[str, Any]:
    filled: dict[str, Any] = {"type": "object", "properties": {}, **schema}
    if filled["type"] != "object":
        raise InvalidParametersError(
            f"{owner} must be of type 'object', since arguments have names, not {shorten(filled['type'])}.",
            "Put what the tool takes into 'properties'.",
        )
    return filled


def _quick_copy(schema: object) -> dict[str, Any]:
    """As ``json_copy``, several times as quick; meant for schemas that came as JSON."""
    try:
        return from_json(to_json(schema))
    except ValueError:  # such as lone surrogates
        return json_copy(schema)


_TYPES = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})
_DIALECTS = frozenset(
    {
        "http://json-schema.org/draft-06/schema",
        "http://json-schema.org/draft-07/schema",
        "https://json-schema.org/draft/2019-09/schema",
        "https://json-schema.org/draft/2020-12/schema",
    }
)
_PLAIN_DEPTH = 32


def _is_plain(schema: object, depth: int = 0) -> bool:
    """Whether a schema has only common keywords, each well formed, and unknown ones, and so is surely valid.

    Nearly every tool's schema is of this kind, and the keywords mean the same in all dialects
    listed. Asking the library instead would cost each tool more than a millisecond, and the
    first one the library's import.
    """
    if isinstance(schema, bool):
        return True
    if not isinstance(schema, dict) or depth > _PLAIN_DEPTH:
        return False
    for keyword, value in cast("dict[str, Any]", schema).items():
        if keyword in _OTHER_KEYWORDS:
            return False
        rule = _PLAIN_KEYWORDS.get(keyword)
        if rule is not None and not rule(value, depth + 1):  # one that no dialect knows may have any value
            return False
    return True


def _is_text(value: object, _: int) -> bool:
    return isinstance(value, str)


def _is_flag(value: object, _: int) -> bool:
    return isinstance(value, bool)


def _is_number(value: object, _: int) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_size(value: object, _: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_anything(_: object, __: int) -> bool:
    return True


def _is_list(value: object, _: int) -> bool:
    return isinstance(value, list)


def _is_type(value: object, _: int) -> bool:
    kinds: list[object] = cast("list[object]", value) if isinstance(value, list) else [value]
    return bool(kinds) and _are_unique_texts(kinds) and _TYPES.issuperset(kinds)


def _is_required(value: object, _: int) -> bool:
    return isinstance(value, list) and _are_unique_texts(cast("list[object]", value))


def _are_unique_texts(values: list[object]) -> bool:
    return all(isinstance(value, str) for value in values) and len(set(values)) == len(values)


def _is_dialect(value: object, _: int) -> bool:
    return isinstance(value, str) and value.removesuffix("#") in _DIALECTS


def _is_identifier(value: object, _: int) -> bool:
    return isinstance(value, str) and "#" not in value


def _is_positive(value: object, depth: int) -> bool:
    return _is_number(value, depth) and cast("float", value) > 0


def _are_required_lists(value: object, depth: int) -> bool:
    return isinstance(value, dict) and all(
        _is_required(item, depth) for item in cast("dict[str, object]", value).values()
    )


def _are_plain_values(value: object, depth: int) -> bool:
    return isinstance(value, dict) and all(_is_plain(item, depth) for item in cast("dict[str, object]", value).values())


def _are_plain_items(value: object, depth: int) -> bool:
    items = cast("list[object]", value) if isinstance(value, list) else []
    return bool(items) and all(_is_plain(item, depth) for item in items)


_PLAIN_KEYWORDS: Mapping[str, Callable[[Any, int], bool]] = {
    "$schema": _is_dialect,
    "$id": _is_identifier,
    "type": _is_type,
    "required": _is_required,
    "multipleOf": _is_positive,
    "dependentRequired": _are_required_lists,
    **dict.fromkeys(("uniqueItems", "readOnly", "writeOnly", "deprecated"), _is_flag),
    **dict.fromkeys(("title", "description", "format", "pattern", "$comment", "$ref"), _is_text),
    **dict.fromkeys(("contentEncoding", "contentMediaType"), _is_text),
    **dict.fromkeys(("default", "const"), _is_anything),
    **dict.fromkeys(("enum", "examples"), _is_list),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _is_number),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), _is_size),
    **dict.fromkeys(("minContains", "maxContains"), _is_size),
    **dict.fromkeys(("items", "additionalProperties", "propertyNames", "not", "contains"), _is_plain),
    **dict.fromkeys(("if", "then", "else", "additionalItems", "unevaluatedItems", "unevaluatedProperties"), _is_plain),
    **dict.fromkeys(("properties", "patternProperties", "dependentSchemas", "$defs", "definitions"), _are_plain_values),
    **dict.fromkeys(("anyOf", "oneOf", "allOf", "prefixItems"), _are_plain_items),
}
_OTHER_KEYWORDS = frozenset(
    {
        "$anchor",
        "$dynamicAnchor",
        "$dynamicRef",
        "$recursiveAnchor",
        "$recursiveRef",
        "$vocabulary",
        "contentSchema",
        "dependencies",
        "id",
    }
)
"""Those that are left to the library."""


def _schema_problem(schema: dict[str, Any], *, trusted: bool) -> str:
    try:
        base = _library_class(schema.get("$schema"))
        judge = base(base.META_SCHEMA).iter_errors if trusted else bounded_validator(base, base.META_SCHEMA)
        failure: _Failure | None = next(judge(schema), None)
    except TooMuchEffortError:
        return "it is too intricate to be checked"
    except Exception as error:  # such as a schema too deep for the library
        return cut(f"{type(error).__name__}: {error}")
    if failure is None:
        return ""
    return f"at {format_path(failure.absolute_path) or 'its root'}, {cut(failure.message)}"


class _Failure(Protocol):
    """A jsonschema error, as far as it is read here."""

    message: str
    absolute_path: Sequence[str | int]
    validator: str
    validator_value: Any
    instance: Any
    schema: Any


@cache
def _library_class(dialect: object) -> Any:
    """The library's validator for a dialect; the newest where it knows none of this name."""
    from jsonschema import Draft202012Validator, validators  # noqa: PLC0415 - slow to import, and rarely needed

    return cast("Any", validators).validator_for({"$schema": dialect}, default=Draft202012Validator)


@cache
def _validator_class(dialect: object) -> Any:
    """The library's validator for a dialect, except that it passes over patterns that Python cannot read.

    Schemas are written for ECMAScript's regular expressions, which are not quite Python's; such a
    pattern is left to the tool itself.
    """
    from jsonschema import validators  # noqa: PLC0415 - slow to import, and rarely needed

    base = _library_class(dialect)

    def tolerant(keyword: str) -> Callable[..., Iterator[Any]]:
        original = base.VALIDATORS[keyword]

        def check(*arguments: Any) -> Iterator[Any]:
            try:
                yield from original(*arguments) or ()
            except re.error:
                return

        return check

    keywords = [keyword for keyword in ("pattern", "patternProperties") if keyword in base.VALIDATORS]
    return cast("Any", validators).extend(base, {keyword: tolerant(keyword) for keyword in keywords})


def compile_schema(schema: Mapping[str, Any], *, trusted: bool = True, max_steps: int = MAX_STEPS) -> SchemaCheck:
    """A check of arguments against a whole JSON Schema. References outside of it are never fetched.

    Args:
        schema: A schema that ``check_schema`` found valid.
        trusted: Whether its author is the person. A check against any other takes bounded time: what cannot
            be decided in it counts as fitting, and is left to the schema's author.
        max_steps: What a check may cost that is not trusted, in the steps of ``bounded_schema``.
    """
    import referencing  # noqa: PLC0415 - slow to import, and rarely needed

    registry = cast("Any", referencing).Registry()  # an empty one: the library's own would ask the network
    if not trusted:
        return _bounded_check(schema, registry, max_steps)
    validator = _validator_class(schema.get("$schema"))(schema, registry=registry)

    def check(arguments: Mapping[str, Any]) -> list[str]:
        try:
            return _sentences(validator.iter_errors(arguments))
        except Exception as error:  # a reference that leads nowhere or in a circle
            return [f"its schema cannot be applied ({cut(f'{type(error).__name__}: {error}')})"]

    return check


def _bounded_check(schema: Mapping[str, Any], registry: Any, max_steps: int) -> SchemaCheck:
    failures = bounded_validator(_library_class(schema.get("$schema")), schema, registry)
    effort = partial(Effort, max_steps, lookup=count_nodes(schema), pathways=not has_inner_identifiers(schema))

    def check(arguments: Mapping[str, Any]) -> list[str]:
        try:
            return _sentences(failures(arguments, effort()))
        except Exception as error:  # too much of it, or a reference that leads nowhere or in a circle
            _log.debug("a foreign schema was not applied: %s", cut(f"{type(error).__name__}: {error}"))
            return []

    return check


def _sentences(failures: Iterator[Any]) -> list[str]:
    return [_sentence(failure) for failure in islice(failures, 4 * MAX_SENTENCES)]


def _sentence(failure: _Failure) -> str:
    from jsonschema import exceptions  # noqa: PLC0415 - imported already by the validator

    failure = cast("Any", exceptions).best_match([failure]) or failure
    where, keyword, expected = format_path(failure.absolute_path), failure.validator, failure.validator_value
    subject, got = where or "the arguments", shorten(failure.instance)
    if keyword == "required":
        missing = [name for name in expected if name not in failure.instance]
        named = [format_path([*failure.absolute_path, name]) for name in missing[:MAX_SHOWN_NAMES]]
        return f"{', '.join(named)}{_more(missing)} is missing"
    if keyword == "additionalProperties" and expected is False:
        known = failure.schema.get("properties", {})
        unknown = [name for name in failure.instance if name not in known]
        inside = f" in {where}" if where else ""
        return f"{_names(unknown)} is not known{inside}; known are {_names(list(known)) or 'none'}"
    if keyword == "type":
        kinds = cast("list[str]", expected) if isinstance(expected, list) else [str(expected)]
        return f"{subject} should be {' or '.join(map(_with_article, kinds))}, got {got}"
    if keyword in {"enum", "const"}:
        choices = expected if keyword == "enum" else [expected]
        return f"{subject} should be one of {', '.join(shorten(choice) for choice in choices[:20])}, got {got}"
    return f"{subject} should fit {cut(json.dumps({keyword: expected}))}, got {got}"


def _names(names: Sequence[object]) -> str:
    return f"{format_names(names[:MAX_SHOWN_NAMES])}{_more(names)}"


def _more(names: Sequence[object]) -> str:
    return f" and {len(names) - MAX_SHOWN_NAMES} more" if len(names) > MAX_SHOWN_NAMES else ""


def _with_article(kind: str) -> str:
    return kind if kind == "null" else f"{'an' if kind[0] in 'aio' else 'a'} {kind}"
