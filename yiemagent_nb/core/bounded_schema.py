"""Validators for JSON Schemas that nobody vouches for: whatever schema and value they get, they stop soon.

A schema of a server may take a validator exponential time: by its patterns, by references that double at
each step, by comparisons of large values. Here each keyword counts its steps, patterns are matched in
linear time, and a keyword that cannot be decided so is left to whoever sent the schema.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Protocol, cast

from pydantic_core import SchemaError, SchemaValidator, core_schema

__all__ = ["MAX_STEPS", "Effort", "TooMuchEffortError", "bounded_validator", "count_nodes", "has_inner_identifiers"]

MAX_STEPS = 50_000
"""Steps of one check; one takes about four microseconds."""

MAX_PATTERN = 300
MAX_REPETITION = 1_000
MAX_MATCHED = 2_000
"""How many characters a text may have to be matched against a pattern."""

_MOST_COMPILING_STEPS = 25_000
"""The engine itself gives up a pattern that grows too large, after about as much time."""

_LARGE_CLASS = re.compile(r"\\[dDwWsSpP]")
_NODES_PER_STEP = 5
_CHARACTERS_PER_STEP = 100
_OTHER_SYNTAX = re.compile(r"&&|--|~~|\[.*\[|\\[<>]")
"""What the linear engine reads otherwise than ECMAScript does."""

_COUNT = re.compile(r"\{(\d+)(?:,(\d*))?\}")

_UNDECIDED = frozenset({"patternProperties", "unevaluatedItems", "unevaluatedProperties"})
_INVERTING = frozenset({"not", "oneOf", "if", "contains", "disallow"})
"""Where a part that fits too easily makes the whole fail."""

_OVER_ITEMS = frozenset({"items", "additionalItems", "contains", "propertyNames", "additionalProperties"})
_COMPARING = frozenset({"enum", "const", "uniqueItems"})
_REFERRING = frozenset({"$ref", "$dynamicRef", "$recursiveRef"})


class TooMuchEffortError(Exception):
    """A check was given up, since it took more steps than it may."""


@dataclass(slots=True)
class Effort:
    """What one check has cost so far.

    Args:
        left: Steps that it may still take.
        lookup: Steps of a reference that is no plain path into the schema.
        pathways: Whether a plain path is found without a search of the schema.
        undecided: How often a keyword was left to the schema's sender.
        patterns: Those that were matched.
    """

    left: int = MAX_STEPS
    lookup: int = 1
    pathways: bool = True
    undecided: int = 0
    patterns: set[str] = field(default_factory=set[str])

    def spend(self, steps: int) -> None:
        """Count steps.

        Raises:
            TooMuchEffortError: There are none left.
        """
        self.left -= steps
        if self.left < 0:
            raise TooMuchEffortError("it takes too long")


class BoundedValidator(Protocol):
    """Gives a value's failures as the library's errors; its iterator may raise ``TooMuchEffortError``."""

    def __call__(self, value: object, effort: Effort | None = None) -> Iterator[Any]:
        """Check a value with at most this effort; None is that of ``MAX_STEPS``."""
        ...


_effort: ContextVar[Effort] = ContextVar("_effort")

_Keyword = Callable[[Any, Any, Any, Any], Iterator[Any] | None]


def bounded_validator(base: Any, schema: object, registry: Any = None) -> BoundedValidator:
    """A validator that stops soon, whatever the schema and the value.

    Args:
        base: The library's validator class.
        schema: A schema in its dialect.
        registry: Where references outside of the schema are looked up; None is the library's own.
    """
    options = {} if registry is None else {"registry": registry}
    validator = _bounded_class(base)(schema, **options)

    def failures(value: object, effort: Effort | None = None) -> Iterator[Any]:
        effort = effort or Effort()
        errors = validator.iter_errors(value)
        while True:
            token = _effort.set(effort)  # for each step alone, since whoever iterates has their own
            try:
                error = next(errors, None)
            finally:
                _effort.reset(token)
            if error is None:
                return
            yield error

    return failures


@lru_cache
def _bounded_class(base: Any) -> Any:
    from jsonschema import validators  # noqa: PLC0415 - slow to import, and rarely needed

    own: dict[str, _Keyword] = {**dict.fromkeys(_UNDECIDED, _leave_undecided), "uniqueItems": _unique, "pattern": _fits}
    keywords = {
        name: _counted(name, own.get(name) or cast("_Keyword", original)) for name, original in base.VALIDATORS.items()
    }
    bounded = cast("Any", validators).extend(base, keywords)

    def evolve(self: Any, **changes: Any) -> Any:
        """As the library's, which would go back to its own classes where a part of a schema names its dialect."""
        changes.setdefault("schema", self.schema)
        kept = {"registry": self._registry, "_resolver": self._resolver, "format_checker": self.format_checker}
        return bounded(**{**kept, **changes})

    bounded.evolve = evolve
    return bounded


def _counted(name: str, original: _Keyword) -> _Keyword:
    def keyword(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
        effort = _effort.get()
        effort.spend(_steps(name, value, instance, effort))
        if name == "additionalProperties" and "patternProperties" in schema:
            effort.undecided += 1
            return
        if name in _INVERTING:
            yield from _decided(original(validator, value, instance, schema), effort)
            return
        for error in original(validator, value, instance, schema) or ():
            effort.spend(1 + len(error.message) // _CHARACTERS_PER_STEP)
            yield error

    return keyword


def _decided(errors: Iterator[Any] | None, effort: Effort) -> list[Any]:
    """The failures, unless they may come of a part that was left undecided."""
    before = effort.undecided
    found: list[Any] = []
    for error in errors or ():
        effort.spend(1 + len(error.message) // _CHARACTERS_PER_STEP)
        found.append(error)
    return found if effort.undecided == before else []


def _steps(name: str, value: object, instance: object, effort: Effort) -> int:
    """What a keyword costs beside the keywords that it leads to."""
    if name in _REFERRING:
        plain = effort.pathways and isinstance(value, str) and (value == "#" or value.startswith("#/"))
        return 2 if plain else effort.lookup
    steps = 1
    if isinstance(value, dict | list):
        steps += len(cast("list[object]", value))
    if name in _COMPARING:
        steps += count_nodes(instance) // _NODES_PER_STEP
    elif name in _OVER_ITEMS and isinstance(instance, dict | list):
        steps += len(cast("list[object]", instance))
    return steps


def count_nodes(value: object) -> int:
    """How many values a JSON value holds, itself included; a long text counts as several."""
    count, stack = 0, [value]
    while stack:
        item = stack.pop()
        count += 1
        if isinstance(item, str):
            count += len(item) // _CHARACTERS_PER_STEP
        elif isinstance(item, Mapping):
            count += len(cast("Mapping[str, object]", item))
            stack.extend(cast("Mapping[str, object]", item).values())
        elif isinstance(item, list):
            stack.extend(cast("list[object]", item))
    return count


def has_inner_identifiers(schema: Mapping[str, Any]) -> bool:
    """Whether a part of a schema has a name of its own, so that the library searches all of it for a reference."""
    stack: list[object] = list(schema.values())
    while stack:
        item = stack.pop()
        if isinstance(item, Mapping):
            fields = cast("Mapping[str, object]", item)
            if isinstance(fields.get("$id"), str) or isinstance(fields.get("id"), str):
                return True
            stack.extend(fields.values())
        elif isinstance(item, list):
            stack.extend(cast("list[object]", item))
    return False


def _leave_undecided(_validator: Any, _value: Any, _instance: Any, _schema: Any) -> None:
    _effort.get().undecided += 1


def _unique(_: Any, wanted: Any, instance: Any, _schema: Any) -> Iterator[Any]:
    from jsonschema import ValidationError  # noqa: PLC0415 - imported already by the validator

    if wanted and isinstance(instance, list):
        items = cast("list[object]", instance)
        if len({json.dumps(_same_numbers(item), sort_keys=True) for item in items}) < len(items):
            yield cast("Any", ValidationError)("it has an item twice")


def _same_numbers(value: object) -> object:
    """A value in which numbers that are equal in JSON Schema are written alike."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: _same_numbers(item) for key, item in cast("dict[str, object]", value).items()}
    if isinstance(value, list):
        return [_same_numbers(item) for item in cast("list[object]", value)]
    return value


def _fits(_: Any, pattern: Any, instance: Any, _schema: Any) -> Iterator[Any]:
    from jsonschema import ValidationError  # noqa: PLC0415 - imported already by the validator

    if not isinstance(instance, str):
        return
    effort = _effort.get()
    repetition = _repetition(pattern)
    if len(pattern) > MAX_PATTERN or len(instance) > MAX_MATCHED or repetition > MAX_REPETITION:
        effort.undecided += 1
        return
    if pattern not in effort.patterns:
        effort.patterns.add(pattern)
        effort.spend(min(_MOST_COMPILING_STEPS, repetition * (len(pattern) + 100 * len(_LARGE_CLASS.findall(pattern)))))
    effort.spend(len(instance) * repetition // 50)
    engine = _compiled(pattern)
    if engine is None:
        effort.undecided += 1
    elif not engine.isinstance_python(instance):
        yield cast("Any", ValidationError)("it does not match the pattern")


def _repetition(pattern: str) -> int:
    """How often a pattern's counted repetitions write out what they repeat, at most."""
    product = 1
    for least, most in _COUNT.findall(pattern[:MAX_PATTERN]):
        product *= max(1, *(int(count[:9]) for count in (least, most) if count))
    return product


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> SchemaValidator | None:
    """The pattern for an engine that takes linear time; None where that has not all that it needs."""
    if _OTHER_SYNTAX.search(pattern):
        return None
    try:
        return SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex"))
    except SchemaError:
        return None
