"""Writing a message as JSON without ever writing, or walking through, a large one whole."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, cast

from pydantic_core import to_json

__all__ = ["write_bounded"]

PART_BYTES = 8
"""So many bytes each value counts at least, so that none of very many is walked through."""

MAX_DEPTH = 64

_PLAIN = frozenset({int, float, bool, type(None)})


def write_bounded(message: Mapping[str, Any], limit: int) -> tuple[bytes, int]:
    """A message as JSON, or the beginning of it.

    Args:
        message: A JSON object.
        limit: So many bytes are given at most.

    Returns:
        The bytes, and how many the whole has. Of a message that is too large they are estimated: what was not
        walked through is not counted.
    """
    if _is_small(message, limit):
        data = _written(message)
        return data[:limit], len(data)
    beginning = _Beginning(limit)
    data = _written(cast("dict[str, Any]", beginning.of(message)))
    if beginning.is_whole:
        return data[:limit], len(data)
    data = data[:limit].rstrip(b'"]}')  # ends that stand further behind in the whole
    return data, max(len(data) + 1, beginning.size)


def _is_small(message: Mapping[str, Any], limit: int) -> bool:
    """Whether it is certainly cheap to write; the names of fields are left aside."""
    values: list[object] = list(message.values())
    for value in values:  # it grows meanwhile; types are compared, since this is done for each message
        kind = type(value)
        if kind is str:
            limit -= len(cast("str", value))
        elif kind is dict or kind is list:
            parts = cast("dict[object, object] | list[object]", value)
            limit -= PART_BYTES * len(parts)
            if limit > 0:
                values += parts.values() if isinstance(parts, dict) else parts
        elif kind not in _PLAIN:
            return False
        if limit < 0:
            return False
    return True


def _written(message: Mapping[str, Any]) -> bytes:
    try:
        return to_json(message)
    except ValueError:  # such as half characters, or what is no JSON at all
        return json.dumps(_Beginning(1 << 16).of(message), default=repr).encode()


class _Beginning:
    """Copies values in the order in which they would be written, until a number of characters is reached."""

    def __init__(self, limit: int) -> None:
        self.is_whole = True
        self.size = 0
        """How many characters there are at least, as far as they were counted."""
        self._limit = limit

    def of(self, value: object, depth: int = MAX_DEPTH) -> object:
        """The beginning of a value."""
        if isinstance(value, str):
            left = max(0, self._limit - self.size)
            self.size += len(value) + 2
            if len(value) > left:
                self.is_whole = False
                return value[:left]
            return value
        self.size += 1
        if not isinstance(value, Mapping | list | tuple):
            return value
        if not depth:
            self.is_whole = False
            return "…"
        if isinstance(value, Mapping):
            fields = cast("Mapping[object, object]", value).items()
            return {self._name(name): self.of(each, depth - 1) for name, each in self._taken(fields)}
        return [self.of(each, depth - 1) for each in self._taken(cast("list[object]", value))]

    def _name(self, name: object) -> str:
        text = str(name)
        self.size += len(text) + 3
        return text

    def _taken(self, parts: Iterable[Any]) -> Iterator[Any]:
        # Taken at once, since another thread may change what is read.
        for part in list(islice(parts, self._limit // 2 + 2)):
            if self.size > self._limit:
                self.is_whole = False
                return
            self.size += 1
            yield part
