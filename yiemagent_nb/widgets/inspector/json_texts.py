"""JSON texts of the inspector: arguments read exactly as they were written, and values shown as far as they fit."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, cast

from yiemagent_nb.core.errors import InvalidParametersError
from yiemagent_nb.core.json_values import MAX_DEPTH, clean_text, read_json
from yiemagent_nb.core.validation import shorten
from yiemagent_nb.widgets.texts import shortened

__all__ = ["read_arguments", "shown_json"]

MOST_VALUES = 20_000
MOST_CHARACTERS = 200_000
LONGEST_TEXT = 20_000

_EXPECTED = 'Expected a JSON object with the arguments by name, such as {"city": "Lisbon"}.'


def read_arguments(text: str) -> dict[str, Any]:
    """The arguments of a call that a person wrote, as JSON. Integers of any size stay what they are.

    Raises:
        InvalidParametersError: It is no JSON object; the error says what is wrong, and where.
    """
    if not text.strip():
        return {}
    try:
        value: object = json.loads(
            text, object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite, parse_int=_integer
        )
        value = read_json(value)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise InvalidParametersError(f"The arguments are no JSON: {_plain(error.msg)} at {place}.", _EXPECTED) from None
    except (ValueError, RecursionError) as error:
        why = f"they are nested more than {MAX_DEPTH} levels deep" if isinstance(error, RecursionError) else str(error)
        raise InvalidParametersError(f"The arguments cannot be used: {why}.", _EXPECTED) from None
    if not isinstance(value, dict):
        raise InvalidParametersError(f"The arguments are {_kind(value)}.", _EXPECTED)
    return cast("dict[str, Any]", value)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        raise ValueError(f"{shorten(counts.most_common(1)[0][0])} is named twice in one object")
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number that JSON has")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:40]} is too large for a number with a fraction or an exponent")
    return number


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"an integer has {len(text):,} digits, which is more than Python reads") from None


def _plain(message: str) -> str:
    words = message[0].lower() + message[1:]
    return words.removesuffix(" at")


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "a text"
        case _:
            return "a list"


def shown_json(value: object, most: int = MOST_CHARACTERS) -> str:
    """A JSON value as indented JSON text of about so many characters; what is left out is said in its place.

    Only so much of the value is looked at, however large it is.
    """
    return json.dumps(_Shown(most).copy(value, MAX_DEPTH), ensure_ascii=False, indent=2)


class _Shown:
    """Copies a value as far as there is room."""

    def __init__(self, characters: int) -> None:
        self._characters = characters
        self._values = MOST_VALUES

    def copy(self, value: object, depth: int) -> object:
        self._values -= 1
        match value:
            case str():
                return self._text(value)
            case None | bool():
                self._characters -= 5
                return value
            case int() | float():
                return self._number(value)
            case Mapping() if depth:
                return self._mapping(cast("Mapping[object, object]", value), depth)
            case list() | tuple() if depth:
                return self._list(cast("Sequence[object]", value), depth)
            case _:
                return self._text(f"… ({type(value).__name__}, not shown)")

    @property
    def _is_full(self) -> bool:
        return self._characters <= 0 or self._values <= 0

    def _text(self, text: str) -> str:
        kept = clean_text(shortened(text, max(0, min(LONGEST_TEXT, self._characters))))
        self._characters -= len(kept) + 2
        return kept

    def _number(self, number: float) -> object:
        if isinstance(number, float) and not math.isfinite(number):
            return self._text(str(number))
        try:
            self._characters -= len(str(number))
        except ValueError:  # more digits than Python writes
            return self._text(f"… (an integer of {number.bit_length():,} bits)" if isinstance(number, int) else "…")
        return number

    def _mapping(self, value: Mapping[object, object], depth: int) -> dict[str, object]:
        kept: dict[str, object] = {}
        for key, item in value.items():
            if self._is_full:
                kept["…"] = f"{len(value) - len(kept):,} more are not shown"
                break
            kept[self._text(str(key))] = self.copy(item, depth - 1)
            self._characters -= 2 * (MAX_DEPTH - depth) + 4
        return kept

    def _list(self, value: Sequence[object], depth: int) -> list[object]:
        kept: list[object] = []
        for item in value:
            if self._is_full:
                kept.append(f"… {len(value) - len(kept):,} more are not shown")
                break
            kept.append(self.copy(item, depth - 1))
            self._characters -= 2 * (MAX_DEPTH - depth) + 4
        return kept
