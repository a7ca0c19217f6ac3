"""Values that are said to be what they are: ``add(1, 2)``, JSON, ``name = value``."""

from __future__ import annotations

import re
from typing import Any, cast

from yiemagent_nb.backends.demo.facts import Found, parse_value, split_arguments
from yiemagent_nb.backends.demo.filler import Filler
from yiemagent_nb.backends.demo.slots import Slot
from yiemagent_nb.backends.demo.words import TEXT_NAMES, words_of_name

__all__ = ["from_call_syntax", "from_json", "from_pairs"]


def from_call_syntax(filler: Filler) -> bool:
    """``name(1, b=2)``; returns whether the text has such a call of this tool."""
    text, card = filler.facts.text, filler.card
    opening = re.search(rf"(?<!\w){re.escape(card.name)}`?\s*\(", text)
    if opening is None:
        return False
    depth, end = 1, opening.end()
    while end < len(text) and depth:
        depth += (text[end] in "([{") - (text[end] in ")]}")
        end += 1
    inner = text[opening.end() : end if depth else end - 1]
    place = Found(None, opening.start(), end)
    for part in split_arguments(inner)[: len(card.slots) * 2]:
        name, equals, value = part.partition("=")
        slot = next((slot for slot in card.slots if slot.name == name.strip("` \t\"'")), None) if equals else None
        if slot is None:
            slot, value = next(iter(filler.open.values()), None), part
        if slot is not None:
            _set(filler, slot, value, place)
    return True


def _set(filler: Filler, slot: Slot, text: str, place: Found) -> None:
    if not filler.set(slot, parse_value(text), place):
        filler.set(slot, text.strip(), place)


def from_json(filler: Filler) -> None:
    """A JSON object whose keys are slots, be it the arguments or a whole call."""
    names = {slot.name for slot in filler.card.slots}
    for bracket in filler.facts.brackets:
        if isinstance(bracket.value, list):
            continue
        fields = cast("dict[str, Any]", bracket.value)
        inner: object = fields.get("arguments", fields.get("parameters"))
        if isinstance(inner, dict) and names.isdisjoint(("arguments", "parameters")):
            fields = cast("dict[str, Any]", inner)
        for slot in [slot for slot in filler.open.values() if slot.name in fields]:
            filler.set(slot, fields[slot.name], bracket)


def from_pairs(filler: Filler) -> None:
    """``name = value``, ``name: value``, and ``name is value``."""
    masked = filler.facts.masked
    keys: list[tuple[int, int, Slot]] = []
    for slot in filler.open.values():
        name = re.escape(slot.name)
        spoken = re.escape(" ".join(words_of_name(slot.name)) or slot.name)
        pattern = rf"(?<![\w.`])`?(?:{name}|(?i:{spoken}))`?\s*(?:=(?!=)|:(?!//)|\s(?:is|equals|set to|should be)\s)\s*"
        found = list(re.finditer(pattern, masked))[-1:] if slot.name.strip() else []
        keys += [(m.start(), m.end(), slot) for m in found]
    keys.sort(key=lambda key: key[:2])
    for index, (start, begin, slot) in enumerate(keys):
        following = None if index + 1 == len(keys) else max(begin, keys[index + 1][0])
        piece = _value_at(filler, slot, begin, following)
        _set(filler, slot, piece, Found(None, start, begin + len(piece)))


def _value_at(filler: Filler, slot: Slot, begin: int, following: int | None) -> str:
    """The text of a value, from its beginning to the next key or to what ends it."""
    piece, hidden = filler.facts.text[begin:following], filler.facts.masked[begin:following]
    if shut := re.match("\x01+", hidden):
        return piece[: shut.end()]
    if following is None and TEXT_NAMES.intersection(words_of_name(slot.name)):
        return piece.strip()
    stop = re.search(r"[,;\n]|\s+and\s*$|\s+and\s+(?=\w+\s*=)|[.?!]\s*$", hidden)
    return (piece[: stop.start()] if stop and "array" not in slot.kinds else piece.rstrip(" ,;")).strip()
