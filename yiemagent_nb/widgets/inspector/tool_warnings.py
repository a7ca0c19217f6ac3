"""What is odd about a tool, in sentences for a person: its words, its schema, its hints, its name.

A description is read by the model, and comes from whoever runs the server. What is looked for here are
mistakes, and the known ways to hide instructions from people ("tool poisoning"). Nothing is blocked.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast
from weakref import WeakKeyDictionary

from yiemagent_nb.core.tools import Tool
from yiemagent_nb.core.validation import format_names, shorten
from yiemagent_nb.widgets.inspector.schema_oddities import schema_advice, schema_texts, schema_warnings
from yiemagent_nb.widgets.texts import one_line

__all__ = ["ToolWarnings", "beside_each_other"]

LONG_DESCRIPTION = 4_000
"""Characters that a description rarely needs: all of them go to the model with each request."""

LONG_SCHEMA = 20_000
MOST_READ = 20_000
"""Characters of a tool's texts that are searched."""

LONGEST_QUOTE = 80
MOST_ALIKE = 50
"""Tools of one look that are compared; a server may have hundreds."""

_HIDDEN = re.compile(
    "[\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f\U000e0100-\U000e01ef]"
    "|[\ufe00-\ufe0f]{3,}"
)
"""Characters that show nothing, or reorder what stands beside them. Joiners and single selectors belong to words."""

_INSTRUCTION = re.compile(
    r"\b(?:ignore|disregard|forget|override)\b.{0,20}\b(?:previous|prior|above|earlier|all|any|other|system)\b"
    r".{0,20}\b(?:instructions?|prompts?|rules|tools?|messages?|context)\b"
    r"|\b(?:do not|don't|never|without)\s+(?:tell|telling|mention|mentioning|inform|informing|show|showing|ask|asking"
    r"|reveal|notify|notifying)\b.{0,40}\b(?:users?|persons?|human|them)\b"
    r"|<\s*/?\s*(?:important|system|secret|hidden|instructions?|admin)\b[^>]{0,40}>"
    r"|\b(?:before|after|when|whenever)\s+(?:using|calling|you (?:use|call))\s+(?:this|any|another|every|other)\b"
    r".{0,20}\btools?\b.{0,40}\b(?:read|send|call|use|include|pass|first|must)\b"
    r"|\byou (?:must|should|have to) (?:always|first|also|never)\b"
    r"|\b(?:read|send|include|pass|cat)\b.{0,40}"
    r"(?:~/\.|\.ssh\b|id_rsa|\.env\b|/etc/passwd|api[ _-]?keys?\b|credentials\b)"
    r"|\bsystem prompt\b",
    re.IGNORECASE | re.DOTALL,
)

_DEPRECATED = re.compile(r"\W{0,4}deprecated\b", re.IGNORECASE)


class ToolWarnings:
    """The warnings of each tool. What a tool says of itself is read once."""

    def __init__(self) -> None:
        self._own: WeakKeyDictionary[Tool, tuple[str, ...]] = WeakKeyDictionary()
        self._advice: WeakKeyDictionary[Tool, tuple[str, ...]] = WeakKeyDictionary()

    def unread(self, tools: Mapping[str, Tool]) -> list[Tool]:
        """Those whose own words were not read yet, which takes up to some milliseconds each."""
        return [tool for tool in tools.values() if tool not in self._own]

    def own(self, tool: Tool) -> tuple[str, ...]:
        """What is odd about a tool by itself."""
        known = self._own.get(tool)
        if known is None:
            known = self._own[tool] = tuple(_own_warnings(tool))
        return known

    def advice(self, tool: Tool) -> tuple[str, ...]:
        """What of a tool could be better, and is no reason to be wary."""
        known = self._advice.get(tool)
        if known is None:
            known = self._advice[tool] = tuple(_advice(tool))
        return known

    def known(self, tool: Tool) -> tuple[str, ...]:
        """The same, as far as it was read."""
        return self._own.get(tool, ())


def _own_warnings(tool: Tool) -> Iterator[str]:
    yield from _description_warnings(tool)
    yield from _word_warnings(tool)
    yield from _hint_warnings(tool)
    yield from schema_warnings(tool.input_schema)


def _advice(tool: Tool) -> Iterator[str]:
    yield from schema_advice(tool.input_schema)
    if len(tool.description) > LONG_DESCRIPTION:
        size = len(tool.description)
        yield f"Its description has {size:,} characters, all of which go to the model with each request."
    size = len(json.dumps(tool.input_schema, ensure_ascii=False, default=repr))
    if size > LONG_SCHEMA:
        yield f"Its input schema has {size:,} characters, all of which go to the model with each request."


def _description_warnings(tool: Tool) -> Iterator[str]:
    description = tool.description
    if tool.function is None and description.endswith(f", a tool of the server {tool.source}"):
        yield "Its server gives no description, so a model has only the name to go by."
    if _DEPRECATED.match(description) or tool.input_schema.get("deprecated") is True:
        yield "It says of itself that it is deprecated."


def _word_warnings(tool: Tool) -> Iterator[str]:
    texts = {
        "name": tool.original_name,
        "title": tool.label,
        "description": tool.description,
        "input schema": "\n".join(schema_texts(tool.input_schema, MOST_READ)),
        "output schema": "\n".join(schema_texts(tool.output_schema or {}, MOST_READ)),
    }
    for what, text in texts.items():
        if hidden := {found[0][0] for found in _HIDDEN.finditer(text, 0, MOST_READ)}:
            names = ", ".join(f"U+{ord(character):04X}" for character in sorted(hidden)[:5])
            more = f" and {len(hidden) - 5} more" if len(hidden) > 5 else ""  # noqa: PLR2004 - as many as are named
            yield (
                f"Its {what} holds characters that are invisible or reorder text ({names}{more}): "
                "a model reads there what a person does not see."
            )
        plain = _HIDDEN.sub("", text[:MOST_READ])
        if tool.function is None and (found := _INSTRUCTION.search(plain)) is not None:
            yield f"Its {what} speaks to the model like an instruction: {shorten(one_line(found[0], LONGEST_QUOTE))}."


def _hint_warnings(tool: Tool) -> Iterator[str]:
    hints = tool.annotations
    if hints.read_only and hints.destructive:
        yield "It says that it is read-only, and that it is destructive: one of these hints is wrong."
    if hints.read_only and hints.idempotent is False:
        yield "It says that it is read-only, and that a second call changes something: one of these hints is wrong."


# --- Beside the others -------------------------------------------------------------------------


def beside_each_other(tools: Iterable[Tool]) -> dict[str, list[str]]:
    """By name, what is odd about tools that stand beside each other; only those with such."""
    by_name: dict[str, list[Tool]] = {}
    by_look: dict[str, list[Tool]] = {}
    for tool in tools:
        by_name.setdefault(tool.original_name, []).append(tool)
        by_look.setdefault(_look(tool.original_name), []).append(tool)
    found: dict[str, list[str]] = {}
    for group in by_look.values():
        for tool in group[:MOST_ALIKE]:
            if warnings := [*_same_name(tool, by_name[tool.original_name]), *_looks_alike(tool, group)]:
                found[tool.name] = warnings
    return found


def _same_name(tool: Tool, group: list[Tool]) -> Iterator[str]:
    others = format_names(dict.fromkeys(other.source for other in group[:MOST_ALIKE] if other is not tool))
    if others:
        called = f"The model calls this one {tool.name}."
        yield f"Another tool is called {shorten(tool.original_name)} too, from {others}. {called}"


def _looks_alike(tool: Tool, group: list[Tool]) -> Iterator[str]:
    alike = [other for other in group[:MOST_ALIKE] if other.original_name != tool.original_name]
    if alike:
        names = ", ".join(
            dict.fromkeys(f"{shorten(other.original_name)} from {shorten(other.source)[1:-1]}" for other in alike)
        )
        yield f"Its name, {shorten(tool.original_name)}, is easily taken for {one_line(names, 3 * LONGEST_QUOTE)}."


_ALIKE = str.maketrans({"1": "l", "i": "l", "|": "l", "0": "o", "5": "s", "_": "", "-": "", ".": "", " ": "", "а": "a"})  # noqa: RUF001 - a letter that looks like another is what is meant


def _look(name: str) -> str:
    """What a name looks like at a glance."""
    plain = unicodedata.normalize("NFKD", name[:200]).casefold()
    return cast("Any", plain).translate(_ALIKE)
