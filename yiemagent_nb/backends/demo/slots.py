"""Slots: what a tool's JSON Schema asks for, in the few terms that a script can fill.

A schema may be hostile: endless, recursive, or of the wrong types. Reading one visits a fixed
number of nodes at most, and what cannot be read accepts anything.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from yiemagent_nb.backends.demo.words import stem, words_of_name

__all__ = ["FORMAT_SAMPLES", "Kind", "Slot", "conforms", "read_slots", "resolve", "sample"]

Kind = str
"""A JSON type: ``string``, ``integer``, ``number``, ``boolean``, ``array``, ``object`` or ``null``."""

ALL_KINDS: tuple[Kind, ...] = ("string", "integer", "number", "boolean", "array", "object", "null")

MAX_NODES = 300
MAX_DEPTH = 4
MAX_SLOTS = 48
MAX_CHOICES = 100
MAX_REFERENCES = 8
MAX_REFERENCE = 500
MAX_BOUND = 1e15

_SAMPLES: Mapping[str, object] = {
    "city": "Lisbon",
    "place": "Lisbon",
    "location": "Lisbon",
    "town": "Lisbon",
    "country": "Portugal",
    "timezone": "Europe/Lisbon",
    "zone": "Europe/Lisbon",
    "name": "Ada",
    "person": "Ada",
    "expression": "2 * (3 + 4)",
    "language": "Portuguese",
    "url": "https://example.org",
    "email": "ada@example.org",
    "path": "notes.txt",
    "query": "tide tables",
}
FORMAT_SAMPLES: Mapping[str, str] = {
    "date": "2027-01-31",
    "date-time": "2027-01-31T09:30:00Z",
    "time": "09:30:00",
    "email": "ada@example.org",
    "uri": "https://example.org",
    "uuid": "123e4567-e89b-12d3-a456-426614174000",
}


@dataclass(frozen=True, slots=True)
class Slot:
    """One parameter."""

    name: str
    kinds: tuple[Kind, ...] = ALL_KINDS
    required: bool = False
    description: str = ""
    choices: tuple[Any, ...] = ()
    format: str = ""
    minimum: float | None = None
    maximum: float | None = None
    given: tuple[Any, ...] = ()
    """Values that the schema itself names: a default, then examples."""
    items: Slot | None = None
    slots: tuple[Slot, ...] = ()
    words: tuple[str, ...] = field(default=(), repr=False)

    @property
    def is_text(self) -> bool:
        """Whether words can fill it."""
        return "string" in self.kinds and not self.choices

    @property
    def is_number(self) -> bool:
        """Whether a number can fill it."""
        return ("integer" in self.kinds or "number" in self.kinds) and not self.choices


class _Reader:
    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._nodes = 0

    def slots(self, schema: Mapping[str, Any], depth: int) -> tuple[Slot, ...]:
        properties = schema.get("properties")
        required = _strings(schema.get("required"))
        found: dict[str, Slot] = {}
        if isinstance(properties, Mapping):
            # Those that a call needs come first, should there be too many.
            named = [key for key in cast("Mapping[object, object]", properties) if isinstance(key, str)][:1000]
            for name in sorted(named, key=lambda name: name not in required)[:MAX_SLOTS]:
                found[name] = self.slot(name, cast("Any", properties)[name], depth, required=name in required)
            found = {name: found[name] for name in named if name in found}
        for name in required[:MAX_SLOTS]:
            if name not in found:
                found[name] = Slot(name, required=True, words=_stems(name))
        return tuple(found.values())

    def slot(self, name: str, schema: object, depth: int, *, required: bool) -> Slot:
        self._nodes += 1
        if self._nodes > MAX_NODES or depth > MAX_DEPTH:
            return Slot(name, required=required, words=_stems(name))
        fields = resolve(schema, self._root)
        kinds = _kinds(fields.get("type"))
        choices = _choices(fields)
        alternatives = _mappings(fields.get("anyOf")) + _mappings(fields.get("oneOf"))
        parts = [resolve(part, self._root) for part in alternatives[:8]]
        if parts and not kinds:
            kinds = tuple(
                dict.fromkeys(kind for part in parts for kind in (_kinds(part.get("type")) or _implied(part)))
            )
            concrete = [part for part in parts if _kinds(part.get("type")) != ("null",)]
            if len(concrete) == 1:  # an optional: what is said about the value says it all
                fields = {
                    **concrete[0],
                    **{key: value for key, value in fields.items() if key not in ("anyOf", "oneOf")},
                }
                choices = choices or _choices(fields)
            elif concrete and all(_choices(part) for part in concrete):
                choices = tuple(choice for part in concrete for choice in _choices(part))[:MAX_CHOICES]
        kinds = kinds or _implied(fields)
        items = fields.get("items")
        return Slot(
            name,
            kinds or ALL_KINDS,
            required,
            description=_text(fields.get("description") or fields.get("title")),
            choices=choices,
            format=_text(fields.get("format")),
            minimum=_bound(fields, "minimum", "exclusiveMinimum"),
            maximum=_bound(fields, "maximum", "exclusiveMaximum"),
            given=_given(fields),
            items=self.slot("", items, depth + 1, required=True) if "array" in kinds and items is not None else None,
            slots=self.slots(fields, depth + 1) if "object" in kinds else (),
            words=_stems(name),
        )


def resolve(schema: object, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema with its references followed and its ``allOf`` merged, as far as is sane."""
    fields: Mapping[str, Any] = cast("Mapping[str, Any]", schema) if isinstance(schema, Mapping) else {}
    for _ in range(MAX_REFERENCES):
        reference = fields.get("$ref")
        if not isinstance(reference, str):
            break
        fields = {**_target(reference, root), **{key: value for key, value in fields.items() if key != "$ref"}}
    for part in _mappings(fields.get("allOf"))[:8]:
        target = _target(part["$ref"], root) if isinstance(part.get("$ref"), str) else part
        fields = {**target, **{key: value for key, value in fields.items() if key != "allOf"}}
    return fields


def _target(reference: str, root: Mapping[str, Any]) -> Mapping[str, Any]:
    place: object = root
    if not reference.startswith("#") or len(reference) > MAX_REFERENCE:  # nothing outside is fetched
        return {}
    for part in reference.removeprefix("#").strip("/").split("/") if reference != "#" else ():
        key = part.replace("~1", "/").replace("~0", "~")
        place = cast("Mapping[str, object]", place).get(key) if isinstance(place, Mapping) else None
    return cast("Mapping[str, Any]", place) if isinstance(place, Mapping) else {}


def read_slots(parameters: object) -> tuple[Slot, ...]:
    """The parameters of a tool, in the schema's order."""
    if not isinstance(parameters, Mapping):
        return ()
    root = cast("Mapping[str, Any]", parameters)
    reader = _Reader(root)
    return reader.slots(resolve(root, root), 0)


def _stems(name: str) -> tuple[str, ...]:
    return tuple(stem(word) for word in words_of_name(name))


def _text(value: object) -> str:
    return value[:500].encode("utf-8", "replace").decode() if isinstance(value, str) else ""


def _strings(value: object) -> list[str]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        return []
    return [item for item in cast("Sequence[object]", value)[:1000] if isinstance(item, str)]


def _mappings(value: object) -> list[Mapping[str, Any]]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        return []
    return [
        cast("Mapping[str, Any]", item) for item in cast("Sequence[object]", value)[:50] if isinstance(item, Mapping)
    ]


def _kinds(value: object) -> tuple[Kind, ...]:
    if isinstance(value, str):
        return (value,) if value in ALL_KINDS else ()
    return tuple(dict.fromkeys(kind for kind in _strings(value) if kind in ALL_KINDS))


def _implied(fields: Mapping[str, Any]) -> tuple[Kind, ...]:
    """The types of a schema that names none, from its choices or its other words."""
    if choices := _choices(fields):
        return tuple(dict.fromkeys(kind for choice in choices if (kind := _kind_of(choice))))
    if "properties" in fields:
        return ("object",)
    return ("array",) if "items" in fields else ()


def _kind_of(value: object) -> Kind:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def _choices(fields: Mapping[str, Any]) -> tuple[Any, ...]:
    if "const" in fields and _is_scalar(fields["const"]):
        return (fields["const"],)
    listed = fields.get("enum")
    if not isinstance(listed, Sequence) or isinstance(listed, str):
        return ()
    return tuple(choice for choice in cast("Sequence[object]", listed)[:MAX_CHOICES] if _is_scalar(choice))


def _is_scalar(value: object) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, str | int | bool) or value is None


def _bound(fields: Mapping[str, Any], inclusive: str, exclusive: str) -> float | None:
    for key in (inclusive, exclusive):
        value = fields.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < MAX_BOUND:
            return float(value) if key == inclusive else value + (1.0 if "inimum" in key else -1.0)
    return None


def _given(fields: Mapping[str, Any]) -> tuple[Any, ...]:
    examples = fields.get("examples")
    listed = list(cast("Sequence[object]", examples)[:3]) if isinstance(examples, list | tuple) else []
    return tuple(value for value in [*listed, fields.get("default")] if value is not None and _is_scalar(value))


def conforms(value: object, slot: Slot, depth: int = 0) -> bool:
    """Whether a value has one of the slot's types, is one of its choices, and all it holds likewise."""
    if slot.choices and not any(choice == value and type(choice) is type(value) for choice in slot.choices):
        return False
    kind = _kind_of(value)
    if kind not in slot.kinds and not (kind == "integer" and "number" in slot.kinds):
        return False
    if depth < MAX_DEPTH and isinstance(value, list) and slot.items is not None:
        items = slot.items
        return all(conforms(item, items, depth + 1) for item in cast("list[object]", value))
    if depth < MAX_DEPTH and isinstance(value, dict) and slot.slots:
        fields = cast("dict[str, object]", value)
        return all(
            conforms(fields[part.name], part, depth + 1) if part.name in fields else not part.required
            for part in slot.slots
        )
    return True


def sample(slot: Slot, position: int = 0, depth: int = 0) -> Any:  # noqa: PLR0911 - one answer a type
    """A value to show in an example."""
    for value in (*slot.choices[:1], *slot.given):
        if conforms(value, slot):
            return value
    if "integer" in slot.kinds or "number" in slot.kinds:
        low = slot.minimum if slot.minimum is not None else -math.inf
        high = slot.maximum if slot.maximum is not None else math.inf
        value = min(max((17, 25, 3)[position % 3], low), high)
        return int(value) if "integer" in slot.kinds or value == int(value) else value
    if "string" in slot.kinds:
        if slot.format in FORMAT_SAMPLES:
            return FORMAT_SAMPLES[slot.format]
        return next((_SAMPLES[word] for word in words_of_name(slot.name) if word in _SAMPLES), "hello")
    if "boolean" in slot.kinds:
        return True
    if depth < MAX_DEPTH and "array" in slot.kinds:
        return [sample(slot.items, index, depth + 1) for index in range(2)] if slot.items is not None else []
    if depth < MAX_DEPTH and "object" in slot.kinds:
        return {part.name: sample(part, index, depth + 1) for index, part in enumerate(slot.slots) if part.required}
    return None
