"""Filling a tool's slots from what a text says, from the surest to the least sure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from yiemagent_nb.backends.demo.conversation import ToolCard
from yiemagent_nb.backends.demo.explicit import from_call_syntax, from_json, from_pairs
from yiemagent_nb.backends.demo.facts import RESULT, Facts, Found
from yiemagent_nb.backends.demo.filler import Filler, Filling
from yiemagent_nb.backends.demo.slots import Slot
from yiemagent_nb.backends.demo.texts import free_phrases, from_texts, rest_of
from yiemagent_nb.backends.demo.values import NO, NOTHING, coerce, plain
from yiemagent_nb.backends.demo.words import (
    DAY_NAMES,
    EMAIL_NAMES,
    EXPRESSION_NAMES,
    GENERIC,
    NOT_A_WORD,
    PATH_NAMES,
    URL_NAMES,
    WORD,
    stem,
    words_of_name,
)

__all__ = ["fill"]

PAIR = 2

_LINKS: Sequence[tuple[frozenset[str], str]] = ((EMAIL_NAMES, "email"), (URL_NAMES, "url"), (PATH_NAMES, "path"))
_ARITHMETIC = re.compile(r"[\d(][\d\s.()]*(?:(?:[-+*/\u00d7\u00f7^%]|\*\*)[\d\s.()-]+)+")
_SUBTRACT_FROM = re.compile(r"\b(?:subtract|take|deduct)\b.*\bfrom\b", re.IGNORECASE)
_SAYS_LITTLE = frozenset({"is", "with", "us", "includ", "enabl", "num", "number", "of", "max", "min", "n"})


def fill(card: ToolCard, facts: Facts) -> Filling:
    """The tool's arguments as far as the text gives them.

    Every value has its slot's type and is one of its choices.
    """
    filler = Filler(card, facts)
    if not from_call_syntax(filler):
        from_json(filler)
        from_pairs(filler)
        _from_choices(filler)
        _from_switches(filler)
        _from_numbers(filler)
        _from_dates(filler)
        _from_links(filler)
        _from_lists(filler)
        from_texts(filler)
        _from_objects(filler)
    for slot in list(filler.open.values()):
        if slot.required and len(slot.choices) == 1:
            filler.set(slot, slot.choices[0])
    filler.filling.missing = tuple(slot for slot in filler.open.values() if slot.required)
    return filler.filling


def _from_choices(filler: Filler) -> None:
    text = filler.facts.text
    for slot in filler.wanted(lambda slot: len(slot.choices) > 1):
        if said := _said(slot.choices, text):
            chosen = max(said, key=len)
            words = r"[\s_-]+".join(map(re.escape, re.split(r"[\s_-]+", chosen)))
            place = re.search(rf"(?<!\w){words}", text, re.IGNORECASE)
            filler.set(slot, chosen, *([Found(None, place.start(), place.end())] if place else []))
            continue
        numbers = [n for n in filler.free(filler.facts.numbers) if n.value is not RESULT and n.value in slot.choices]
        if numbers:
            filler.set(slot, numbers[0].value, numbers[0])
    for slot in filler.wanted(lambda slot: slot.items is not None and bool(slot.items.choices)):
        if slot.items is not None and (said := _said(slot.items.choices, text)):
            filler.set(slot, said)


def _said(choices: Sequence[Any], text: str) -> list[str]:
    """The choices that a text names."""
    exact = f" {NOT_A_WORD.sub(' ', text)} "
    spoken = exact.replace("_", " ").lower()
    stems = set(map(stem, WORD.findall(spoken)))
    said: list[str] = []
    for choice in choices:
        words = plain(NOT_A_WORD.sub(" ", choice)) if isinstance(choice, str) else ""
        if len(words) == 1:  # "C", as against the letter in any sentence
            named = f" {choice} " in exact
        else:
            named = bool(words) and (f" {words} " in spoken or (" " not in words and stem(words) in stems))
        if named:
            said.append(choice)
    return said


def _from_switches(filler: Filler) -> None:
    words = [(stem(word), word.lower()) for word in WORD.findall(filler.facts.text)]
    for slot in filler.wanted(lambda slot: "boolean" in slot.kinds and len(slot.kinds) < PAIR + 1 and not slot.choices):
        own = _telling(slot) - GENERIC
        for position, (stemmed, _) in enumerate(words):
            if stemmed in own:
                before = {word for _, word in words[max(0, position - 2) : position]}
                filler.set(slot, not before & NO)
                break


def _telling(slot: Slot) -> set[str]:
    """The stems of a slot's name that tell it from others."""
    return {word for word in slot.words if len(word) > 1} - _SAYS_LITTLE


def _from_numbers(filler: Filler) -> None:
    if not filler.wanted(lambda slot: slot.is_number and not slot.is_text):
        _from_arithmetic(filler)
        return
    for slot in filler.wanted(lambda slot: slot.is_number):
        for number in filler.free(filler.facts.numbers):
            place = _beside(filler.facts.text, number, slot)
            if place is not None and filler.set(slot, number.value, place):
                break
    takes_many = any("array" in slot.kinds for slot in filler.open.values())
    slots = [slot for slot in filler.open.values() if slot.is_number and slot.required and not slot.is_text]
    numbers = filler.free(filler.facts.numbers)
    if len(slots) == len(numbers) == PAIR and _SUBTRACT_FROM.search(filler.facts.text):
        numbers = numbers[::-1]
    if not takes_many:
        slots += [slot for slot in filler.wanted(lambda slot: slot.is_number) if slot not in slots]
    for slot in slots:
        taken = next((number for number in numbers if filler.set(slot, number.value, number)), None)
        numbers = [number for number in numbers if number is not taken]
    if not takes_many:
        left = [number for number in numbers if number.value is not RESULT]
        filler.filling.unused = tuple(filler.facts.text[number.start : number.end] for number in left)


def _beside(text: str, number: Found, slot: Slot) -> Found | None:
    """The place of a number and the slot's name beside it: ``20 sides``, ``20-sided``, ``sides of 20``."""
    own = _telling(slot)
    after = re.match(r"[-\s]{0,2}([^\W\d_]+)", text[number.end : number.end + 40])
    if after and stem(after.group(1)) in own:
        return Found(None, number.start, number.end + after.end())
    before = re.search(r"([^\W\d_]+)\s+(?:(?:of|is|to|at|=|:)\s*)?$", text[max(0, number.start - 40) : number.start])
    if before and stem(before.group(1)) in own:
        return Found(None, number.start - len(before.group()), number.end)
    return None


def _from_arithmetic(filler: Filler) -> None:
    found = max(_ARITHMETIC.finditer(filler.facts.text), key=lambda m: len(m.group()), default=None)
    if found is None:
        return
    required = [slot for slot in filler.open.values() if slot.required]
    for slot in filler.wanted(lambda slot: slot.is_text):
        if EXPRESSION_NAMES.intersection(words_of_name(slot.name)) or required == [slot]:
            filler.set(slot, found.group().strip(), Found(None, found.start(), found.end()))
            return


def _from_dates(filler: Filler) -> None:
    for slot in filler.wanted(lambda slot: slot.is_text):
        names = words_of_name(slot.name)
        days, clocks = filler.free(filler.facts.dates), filler.free(filler.facts.clocks)
        if days and (slot.format in {"date", "date-time"} or DAY_NAMES.intersection(names)):
            day, rest = days[0], clocks[:1] if slot.format == "date-time" else []
            value = day.value[:10] if slot.format == "date" else day.value
            if slot.format == "date-time" and "T" not in value:
                value += f"T{rest[0].value if rest else '00:00:00'}"
            filler.set(slot, value, day, *rest)
        elif clocks and (slot.format == "time" or "time" in names):
            filler.set(slot, clocks[0].value if slot.format == "time" else clocks[0].value[:5], clocks[0])


def _from_links(filler: Filler) -> None:
    for slot in filler.wanted(lambda slot: slot.is_text):
        words = {*words_of_name(slot.name), slot.format}
        for names, kind in _LINKS:
            links = [link for link in filler.free(filler.facts.links) if link.cue == kind]
            if words & names and links:
                filler.set(slot, links[0].value, links[0])
                break


def _from_lists(filler: Filler) -> None:
    for slot in filler.wanted(lambda slot: "array" in slot.kinds and not slot.is_text):
        listed = [b for b in filler.free(filler.facts.brackets) if isinstance(b.value, list)]
        if (listed and filler.set(slot, listed[0].value, listed[0])) or _from_numbers_in_a_row(filler, slot):
            continue
        if slot.items is None or slot.items.is_text:
            _from_words_in_a_row(filler, slot)


def _from_numbers_in_a_row(filler: Filler, slot: Slot) -> bool:
    if slot.items is not None and not slot.items.is_number:
        return False
    numbers = [number for number in filler.free(filler.facts.numbers) if number.value is not RESULT]
    values = [number.value for number in numbers]
    if slot.items is not None:
        items = slot.items
        values = [value for each in values if (value := coerce(each, items)) is not NOTHING]
    return bool(values) and filler.set(slot, values, *numbers)


def _from_words_in_a_row(filler: Filler, slot: Slot) -> None:
    if quotes := filler.free(filler.facts.quotes):
        filler.set(slot, [quote.value for quote in quotes], *quotes)
    elif [each for each in filler.open.values() if each.required] == [slot]:
        phrase = rest_of(filler) or next(iter(free_phrases(filler)), None)
        if phrase is not None:
            filler.set(slot, phrase.value, phrase)


def _from_objects(filler: Filler) -> None:
    for slot in filler.wanted(lambda slot: "object" in slot.kinds and bool(slot.slots)):
        inner = fill(ToolCard(filler.card.name, "", slot.slots), filler.facts)
        if inner.arguments and not inner.missing and RESULT not in inner.arguments.values() and slot.required:
            filler.set(slot, inner.arguments, *(Found(None, *place) for place in inner.taken))
