"""Structured output: a JSON Schema filled from what was said and what the tools gave."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from yiemagent_nb.backends.demo.blanks import blank
from yiemagent_nb.backends.demo.conversation import Entry, Outcome, ToolCard, topics
from yiemagent_nb.backends.demo.facts import RESULT, Facts, is_json
from yiemagent_nb.backends.demo.filling import fill
from yiemagent_nb.backends.demo.planning import MAX_REQUEST, result_for
from yiemagent_nb.backends.demo.slots import Slot, read_slots, resolve
from yiemagent_nb.backends.demo.speaking import failure_of
from yiemagent_nb.backends.demo.values import NOTHING, coerce
from yiemagent_nb.core.errors import InvalidParametersError
from yiemagent_nb.core.json_schema import check_schema, compile_schema
from yiemagent_nb.core.output import DOES_NOT_FIT

__all__ = ["fill_schema", "read_output_schema", "without_corrections"]

MAX_DEPTH = 3
MAX_ITEMS = 20

_PARTS = re.compile(r"[.;\n]+\s+|,?\s+(?:and|or)\s+|,\s+", re.IGNORECASE)

Schema = Mapping[str, Any]


def read_output_schema(response_format: object) -> Schema | None:
    """The JSON Schema that an answer must have; None where none is asked for, or one that is not valid."""
    fields = _mapping(response_format)
    if fields.get("type") != "json_schema":
        return None
    try:
        return check_schema(_mapping(fields.get("json_schema")).get("schema"), "response_format")
    except InvalidParametersError:  # it is the server's to refuse one, and no server is here
        return None


def without_corrections(entries: Sequence[Entry]) -> list[Entry]:
    """The conversation before the script was told that its last answer does not fit: it knows no better one."""
    kept = list(entries)
    while len(kept) > 1 and kept[-1].role == "user" and kept[-1].text.startswith(DOES_NOT_FIT):
        kept = kept[:-1] if kept[-2].role == "user" else kept[:-2]
    return kept


def fill_schema(schema: Schema, entries: Sequence[Entry]) -> str:
    """The JSON of a value that fits the schema, as far as a script can make one."""
    live, _ = topics(entries)
    text = ". ".join(text for topic in live for text in topic.texts)[:MAX_REQUEST]
    outcomes = [outcome for topic in live for outcome in topic.outcomes if not failure_of(outcome)]
    value = _Form(schema, outcomes).value(schema, text)
    return json.dumps(value if is_json(value) else {}, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class _Form:
    """A schema to fill, and what the tools gave."""

    root: Schema
    outcomes: Sequence[Outcome]

    def value(self, schema: object, text: str, depth: int = 0) -> Any:
        """A blank that is filled in as far as words and results reach."""
        value: Any = blank(schema, self.root)
        fields = resolve(schema, self.root)
        if depth > MAX_DEPTH or not isinstance(value, dict):
            return value
        filled = {**cast("dict[str, Any]", value)}
        slots = read_slots(self._rooted(fields))
        said = fill(ToolCard("output", "", slots), Facts(text)).arguments
        for slot in slots:
            schema_of_slot = _mapping(fields.get("properties")).get(slot.name, {})
            for found in self._candidates(slot, schema_of_slot, said, text, depth, alone=len(slots) == 1):
                if self._fits(found, schema_of_slot):
                    filled[slot.name] = found
                    break
        return filled

    def _candidates(
        self, slot: Slot, schema: object, said: Mapping[str, Any], text: str, depth: int, *, alone: bool
    ) -> Iterator[Any]:
        """What may stand in a slot, the surest first."""
        yield from self._from_results(slot, alone=alone)
        if slot.name in said and said[slot.name] is not RESULT:
            yield said[slot.name]
        if "object" in slot.kinds and slot.slots:
            yield self.value(schema, text, depth + 1)
        elif slot.items is not None and slot.items.slots:
            yield from self._lists(resolve(schema, self.root).get("items"), text, depth)

    def _from_results(self, slot: Slot, *, alone: bool) -> Iterator[Any]:
        for outcome in reversed(self.outcomes):
            try:
                fields = _mapping(json.loads(outcome.text))
            except (ValueError, RecursionError):
                fields = {}
            value = NOTHING
            if slot.name in fields:
                value = coerce(fields[slot.name], slot)
            elif alone:
                value = result_for(slot, outcome.text)
            if value is not NOTHING and value is not RESULT:
                yield value

    def _lists(self, schema: object, text: str, depth: int) -> Iterator[list[Any]]:
        """One object for each part of the text that says something; else one for the whole of it."""
        nothing = self.value(schema, "", depth + 1)
        parts = [self.value(schema, part, depth + 1) for part in _PARTS.split(text)[:MAX_ITEMS]]
        yield from (
            [part for part in each if part != nothing] for each in (parts, [self.value(schema, text, depth + 1)])
        )

    def _fits(self, value: object, schema: object) -> bool:
        check = compile_schema({**self._rooted({}), "type": "object", "properties": {"value": schema}})
        return is_json(value) and not check({"value": value})

    def _rooted(self, fields: Schema) -> Schema:
        """Fields in which the root's references lead where they led."""
        return {**fields, **{key: self.root[key] for key in ("$schema", "$defs", "definitions") if key in self.root}}


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
