"""Example prompts, made from the tools that are there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, cast

from yiemagent_nb.core.tools import Tool

__all__ = ["suggestions"]

MOST = 3
LONGEST = 60
"""Characters of a description that is quoted."""

_DESTRUCTIVE = frozenset({"delete", "drop", "kill", "overwrite", "pay", "purge", "remove", "rm", "send", "wipe"})

_NUMBERS: dict[str, tuple[object, ...]] = {"integer": (17, 25, 3), "number": (2.5, 4.0, 1.5), "boolean": (True,)}

_NAMED = {
    "city": "Lisbon",
    "place": "Lisbon",
    "location": "Lisbon",
    "country": "Portugal",
    "timezone": "Europe/Lisbon",
    "zone": "Europe/Lisbon",
    "name": "Ada",
    "expression": "2 * (3 + 4)",
    "query": "tide tables",
    "date": "2027-01-31",
    "language": "Portuguese",
}


def suggestions(tools: Iterable[Tool]) -> list[str]:
    """At most three prompts that make use of the tools, none that might destroy something."""
    return [_prompt(tool) for tool in islice((tool for tool in tools if not _may_destroy(tool)), MOST)]


def _may_destroy(tool: Tool) -> bool:
    return tool.annotations.destructive or bool(_DESTRUCTIVE & set(tool.name.lower().split("_")))


def _prompt(tool: Tool) -> str:
    schema = tool.input_schema
    properties = cast("Mapping[str, object]", schema.get("properties") or {})
    needed = [name for name in properties if name in schema.get("required", ())]
    samples = [_sample(name, properties[name], position) for position, name in enumerate(needed)]
    purpose = _first_sentence(tool.description)
    if not samples or None in samples:
        return purpose
    values = [f"{name} = {sample}" for name, sample in zip(needed, samples, strict=True)]
    return f"{purpose}: {', '.join(values)}"


def _sample(name: str, subschema: object, position: int) -> object | None:
    """A value that makes sense, or None where only the author of the tool could know one."""
    if not isinstance(subschema, Mapping):  # a schema may also be true or false
        return None
    schema = cast("Mapping[str, Any]", subschema)
    for key in ("examples", "enum"):
        if schema.get(key):
            return _short(schema[key][0])
    kind = schema.get("type")
    if kind == "string":
        return next((_NAMED[part] for part in name.lower().split("_") if part in _NAMED), None)
    numbers = _NUMBERS.get(kind) if isinstance(kind, str) else None
    return numbers[position % len(numbers)] if numbers else None


def _short(value: object) -> object | None:
    return value if len(str(value)) <= LONGEST else None


def _first_sentence(description: str) -> str:
    sentence = re.split(r"(?<=[.!?])\s|\n", description.strip(), maxsplit=1)[0].rstrip(".!?: ")
    return sentence if len(sentence) <= LONGEST else sentence[: LONGEST - 1].rstrip() + "…"
