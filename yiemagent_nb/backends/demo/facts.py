"""Facts: the values that stand in a piece of text, each with its place.

All patterns are linear in the text, whose length the caller bounds.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from datetime import time as clock
from functools import cached_property
from typing import Any, Final, NoReturn, final

from yiemagent_nb.backends.demo.words import PREPOSITIONS

__all__ = [
    "RESULT",
    "Facts",
    "Found",
    "Result",
    "is_json",
    "mask",
    "parse_number",
    "parse_value",
    "split_arguments",
    "split_list",
]

MAX_BRACKETS = 20


@final
class Result:
    """The type of ``RESULT``."""

    def __repr__(self) -> str:
        """Its name."""
        return "RESULT"


RESULT: Final = Result()
"""Stands for what an earlier call gives."""


@dataclass(frozen=True, slots=True)
class Found:
    """A value and where it stands. ``cue`` is the word before it that says what it is for."""

    value: Any
    start: int
    end: int
    cue: str = ""


_QUOTED = re.compile(
    r"""(?<!\w)(?:"([^"\n]{1,2000})"|“([^”\n]{1,2000})”|«([^»\n]{1,2000})»|`([^`\n]{1,2000})`|'([^'\n]{1,2000})'(?!\w))"""
)
_NUMBER = re.compile(
    r"(?<![\w.])(?:[-\u2212+](?=\.?\d))?(?:\d{1,3}(?:,\d{3})+(?!\d)|\d{1,60}(?!\d))?(?:\.\d{1,60})?(?<=\d)"
    r"(?:[eE][-+]?\d{1,3}(?!\w))?"
)
_UNITS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_TEN_WORDS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_TENS: dict[str, int] = dict(zip(_TEN_WORDS, range(20, 100, 10), strict=True))
_WORD_VALUES = {word: value for value, word in enumerate(_UNITS)} | _TENS | {"hundred": 100, "thousand": 1000}
_NUMBER_WORD = re.compile(
    rf"\b(?:({'|'.join(_TENS)})[- ]({'|'.join(_UNITS[1:10])})|({'|'.join(_WORD_VALUES)}))\b", re.IGNORECASE
)
_RESULT = re.compile(
    r"\bthe\s+(?:last\s+|previous\s+)?(?:result|answer|sum|product|total|difference|quotient|output)\b"
    r"|(?<!\bis )(?<!\bwas )(?<!\bif )\b(?:it|that|this)\b"
    r"(?=\s+(?:by|to|from|with|plus|minus|times|and)\b|\s*[-+*/\u00d7\u00f7,]|\s*[.?!]?\s*$)",
    re.IGNORECASE,
)
_ISO = re.compile(
    r"(?<![\w-])(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?)(Z|[+-]\d{2}:\d{2})?)?(?![\w-])"
)
_CLOCK = re.compile(
    r"(?<![\w:])(\d{1,2}):(\d{2})(?::(\d{2}))?\s?([ap]m)?(?![\w:])|(?<![\w:])(\d{1,2})\s?([ap]m)\b", re.IGNORECASE
)
_MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july", "august", "september", "october"),
    *("november", "december"),
)
_MONTH = "|".join(f"{month}|{month[:3]}" for month in _MONTHS)
_SPOKEN = re.compile(
    rf"\b(?:(\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?({_MONTH})|({_MONTH})\s+(\d{{1,2}})(?:st|nd|rd|th)?),?\s+(\d{{4}})\b",
    re.IGNORECASE,
)
_RELATIVE = re.compile(r"\b(today|tomorrow|yesterday)\b", re.IGNORECASE)
_EMAIL = re.compile(r"[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64})+")
_URL = re.compile(r"\bhttps?://[^\s\"'<>]{1,1000}[^\s\"'<>.,;!?)]")
_PATH = re.compile(
    r"(?<![\w@/])(?:~|\.{1,2})?/?(?:[\w.-]{1,100}/){0,20}[\w-]{1,100}\.[A-Za-z][A-Za-z0-9]{0,5}\b(?![\w@/(])"
)
_NAME = (
    r"[A-ZÀ-ÖØ-Þ][\w'\u2019.-]{0,60}(?:\s+(?:(?:of|de|la|le|the|am|do|da|del)\s+)?[A-ZÀ-ÖØ-Þ][\w'\u2019.-]{0,60}){0,5}"
)
_CAPITAL = re.compile(rf"(?<![\w']){_NAME}(?:(?:,\s+(?:(?:and|or)\s+)?|\s+(?:and|or|&)\s+){_NAME}){{0,10}}")
_CUE = re.compile(rf"\b({'|'.join(sorted(PREPOSITIONS))})\s+", re.IGNORECASE)
# Capital letters must stay capital here, so only the words ignore case.
_PHRASE_END = re.compile(
    rf"\s+(?:(?i:{'|'.join(sorted(PREPOSITIONS))}|then|please|today|tomorrow|yesterday|right now|now|again))\b"
    r"|\s*[;\n?!]|[.](?=\s|$)|,(?!\s*(?:and\s+|or\s+)?[A-ZÀ-ÖØ-Þ\x01])|\s+(?:and|or|but)\s+(?![A-ZÀ-ÖØ-Þ\x01])"
)
_ARTICLES = re.compile(r"^(?:the|a|an|my|our|your|some)\s+", re.IGNORECASE)
_ITEM = re.compile(r"\s*(?:,\s*(?:and|or)\s+|,|;|\s+and\s+|\s+or\s+|\s+&\s+)\s*")


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def is_json(value: object) -> bool:
    """Whether a value can be written as strict JSON."""
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def _decode(text: str, start: int) -> tuple[Any, int] | None:
    try:
        value, end = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    return (value, end) if is_json(value) else None


def parse_number(text: str) -> int | float | None:
    """The first number in a text, in digits or words; None where there is none."""
    found = next(iter(Facts(text).numbers), None)
    return found.value if found is not None and not isinstance(found.value, Result) else None


def split_list(text: str) -> list[str]:
    """The parts of ``a, b and c``."""
    return [part.strip() for part in _ITEM.split(text.strip().removeprefix("[").removesuffix("]")) if part.strip()]


def parse_value(text: str) -> Any:
    """A value as someone types it: JSON, Python's words for it, a quoted or a bare string."""
    text = text.strip()
    decoded = _decode(text, 0)
    if decoded is not None and decoded[1] == len(text):
        return decoded[0]
    if text in {"True", "False", "None"}:
        return {"True": True, "False": False, "None": None}[text]
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"`":
        return text[1:-1]
    if text.startswith("[") and text.endswith("]"):
        return [parse_value(part) for part in split_arguments(text[1:-1])] if "[" not in text[1:] else text
    return text


def split_arguments(text: str) -> list[str]:
    """The parts between the commas that stand outside of quotes and brackets."""
    hidden = mask(text)
    parts: list[str] = []
    start = 0
    for position, character in enumerate(hidden):
        if character == ",":
            parts.append(text[start:position])
            start = position + 1
    parts.append(text[start:])
    return [part.strip() for part in parts if part.strip()]


def mask(text: str) -> str:
    """The text with what stands in quotes and in brackets made unreadable, of the same length."""
    hidden = _QUOTED.sub(lambda found: "\x01" * len(found.group()), text)
    out: list[str] = []
    depth = 0
    for character in hidden:
        depth += character in "([{"
        out.append("\x01" if depth else character)
        depth = max(0, depth - (character in ")]}"))
    return "".join(out) if depth == 0 else hidden  # a bracket left open hides nothing


class Facts:
    """What a text has in it. Places are offsets into ``text``.

    Args:
        text: The text, its length bounded by the caller.
        names: Words in backquotes that are no values, such as the tools' names.
    """

    def __init__(self, text: str, names: Sequence[str] = ()) -> None:
        self.text = text
        self._names = frozenset(names)

    @cached_property
    def masked(self) -> str:
        """The text without what stands in quotes and brackets."""
        return mask(self.text)

    @cached_property
    def quotes(self) -> list[Found]:
        """Quoted strings."""
        return [
            quote
            for quote in self._all_quotes
            if quote.value not in self._names and not any(_inside(quote, bracket) for bracket in self.brackets)
        ]

    @cached_property
    def _all_quotes(self) -> list[Found]:
        return [
            Found(next(group for group in m.groups() if group), m.start(), m.end()) for m in _QUOTED.finditer(self.text)
        ]

    @cached_property
    def brackets(self) -> list[Found]:
        """JSON objects and lists."""
        found: list[Found] = []
        position = 0
        for _ in range(MAX_BRACKETS):
            opening = re.compile(r"[{\[]").search(self.text, position)
            if opening is None:
                break
            start = opening.start()
            quoted = any(quote.start < start < quote.end for quote in self._all_quotes)
            decoded = None if quoted else _decode(self.text, start)
            position = decoded[1] if decoded else opening.end()
            if decoded:
                found.append(Found(decoded[0], start, position))
        return found

    @cached_property
    def dates(self) -> list[Found]:
        """Days, as ISO dates or date-times; today's neighbours are counted from the clock's day."""
        found = [
            Found(m.group(1) + (f"T{m.group(2)}{m.group(3) or ''}" if m.group(2) else ""), m.start(), m.end())
            for m in _ISO.finditer(self.text)
        ]
        for m in _SPOKEN.finditer(self.text):
            day, month, year = m.group(1) or m.group(4), m.group(2) or m.group(3), m.group(5)
            number = next(index for index, name in enumerate(_MONTHS, 1) if name.startswith(month.lower()))
            try:
                value = date(int(year), number, int(day)).isoformat()
            except ValueError:  # the 31st of February
                continue
            found.append(Found(value, m.start(), m.end()))
        for m in _RELATIVE.finditer(self.text):
            days = {"today": 0, "tomorrow": 1, "yesterday": -1}[m.group().lower()]
            found.append(Found((date.today() + timedelta(days=days)).isoformat(), m.start(), m.end()))  # noqa: DTZ011 - the person's own day
        return found

    @cached_property
    def clocks(self) -> list[Found]:
        """Times of day, as ``HH:MM:SS``."""
        found: list[Found] = []
        for m in _CLOCK.finditer(self.text):
            hour, minute, second = int(m.group(1) or m.group(5)), int(m.group(2) or 0), int(m.group(3) or 0)
            half = (m.group(4) or m.group(6) or "").lower()
            hour = hour % 12 + (12 if half == "pm" else 0) if half else hour
            try:
                value = clock(hour, minute, second).isoformat()
            except ValueError:  # no hour of a day
                continue
            found.append(Found(value, m.start(), m.end()))
        return found

    @cached_property
    def links(self) -> list[Found]:
        """E-mail addresses, web addresses and file names; the cue says which."""
        patterns = ((_EMAIL, "email"), (_URL, "url"), (_PATH, "path"))
        return [Found(m.group(), m.start(), m.end(), cue) for p, cue in patterns for m in p.finditer(self.text)]

    @cached_property
    def numbers(self) -> list[Found]:
        """Numbers in digits and words, and ``RESULT`` where the text speaks of an earlier result."""
        hidden = list(self.text)
        for other in (*self._all_quotes, *self.brackets, *self.dates, *self.clocks, *self.links):
            hidden[other.start : other.end] = "\x01" * (other.end - other.start)
        text = "".join(hidden)
        found = [
            Found(value, m.start(), m.end())
            for m in _NUMBER.finditer(text)
            if (value := _number(m.group())) is not None
        ]
        for m in _NUMBER_WORD.finditer(text):
            ten, unit, word = m.groups()
            value = _WORD_VALUES[word.lower()] if word else _TENS[ten.lower()] + _WORD_VALUES[unit.lower()]
            found.append(Found(value, m.start(), m.end()))
        found += [Found(RESULT, m.start(), m.end()) for m in _RESULT.finditer(text)]
        return sorted(found, key=lambda number: number.start)

    @cached_property
    def capitals(self) -> list[Found]:
        """Runs of capitalised words, also several joined by commas and an ``and``."""
        return [Found(m.group().rstrip(".'\u2019-"), m.start(), m.end()) for m in _CAPITAL.finditer(self.masked)]

    def phrases(self, *, whole: bool = False) -> Iterator[Found]:
        """What stands behind each preposition, which is the cue.

        Args:
            whole: Up to the end of the text, and not only to the next preposition.
        """
        for m in _CUE.finditer(self.masked):
            start = m.end()
            if whole or m.group(1).lower() == "saying":
                end = len(self.text.rstrip(" .?!\n"))
            else:
                stop = _PHRASE_END.search(self.masked, start)
                end = stop.start() if stop else len(self.text)
            value = self.text[start:end].strip(" ,\t")
            while (shorter := _ARTICLES.sub("", value)) != value:
                value = shorter
            if value:
                yield Found(value.strip("\"'`“”«»"), start, end, m.group(1).lower())


def _inside(inner: Found, outer: Found) -> bool:
    return outer.start <= inner.start and inner.end <= outer.end


def _number(text: str) -> int | float | None:
    if not text:
        return None
    text = text.replace(",", "").replace("\u2212", "-")
    try:
        value = float(text) if "." in text or "e" in text.lower() else int(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
