"""Values: what was said, turned into what a slot takes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, Final, final

from yiemagent_nb.backends.demo.facts import Result, is_json, parse_number, parse_value, split_list
from yiemagent_nb.backends.demo.slots import Slot, conforms

__all__ = ["NO", "NOTHING", "YES", "Nothing", "coerce", "plain", "time_zones"]


@final
class Nothing:
    """The type of ``NOTHING``."""

    def __repr__(self) -> str:
        """Its name."""
        return "NOTHING"


NOTHING: Final = Nothing()
"""No value; None is one."""

YES = frozenset(["true", "yes", "on", "y", "enabled", "enable", "with", "include"])
NO = frozenset(
    ["false", "no", "off", "n", "disabled", "disable", "without", "exclude", "not", "dont", "don't", "never"]
)


def coerce(value: Any, slot: Slot) -> Any:
    """A value as the slot wants it, or ``NOTHING`` where it cannot be.

    Args:
        value: What was said: text as it was written, or a parsed JSON value.
        slot: What it is for.
    """
    if isinstance(value, Result):
        return value
    candidates = (
        _choices(value, slot)
        if slot.choices
        else _of_text(value, slot)
        if isinstance(value, str)
        else _of_json(value, slot)
    )
    return next((each for each in candidates if conforms(each, slot) and is_json(each)), NOTHING)


def _choices(value: Any, slot: Slot) -> Iterator[Any]:
    wanted = plain(str(value))
    yield from (each for each in slot.choices if each == value and isinstance(each, bool) is isinstance(value, bool))
    yield from (each for each in slot.choices if plain(str(each)) == wanted)


def _of_json(value: Any, slot: Slot) -> Iterator[Any]:
    yield value
    if isinstance(value, float) and value.is_integer():
        yield int(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)
    if "array" in slot.kinds:
        yield [value]


def _of_text(text: str, slot: Slot) -> Iterator[Any]:
    if slot.is_number and (number := parse_number(text)) is not None:
        yield number
        yield int(number) if float(number).is_integer() else number
    if "boolean" in slot.kinds and (word := text.strip().lower().rstrip(".!")) in YES | NO:
        yield word in YES
    parsed = parse_value(text)
    if not isinstance(parsed, str):
        yield parsed
    if "string" in slot.kinds and text.strip():
        yield parsed if isinstance(parsed, str) else text.strip()
    if "array" in slot.kinds and slot.items is not None:
        yield [item for part in split_list(text) if (item := coerce(part, slot.items)) is not NOTHING]


def plain(text: str) -> str:
    """A name as it is compared: small letters, single spaces for all that joins words."""
    return re.sub(r"[\s_-]+", " ", text).strip().lower()


@cache
def time_zones() -> dict[str, str]:
    """The names of time zones, by their plain form and by their city's."""
    from zoneinfo import available_timezones  # noqa: PLC0415 - reads files, and few tools ask for a zone

    continents = ("Europe/", "America/", "Asia/", "Africa/", "Australia/")
    names = sorted(available_timezones(), key=lambda name: (not name.startswith(continents), name))
    zones: dict[str, str] = {}
    for name in names:
        zones.setdefault(plain(name), name)
        zones.setdefault(plain(name.rpartition("/")[2]), name)
    return zones
