"""Masking keys in texts that are cut, and in texts that came in pieces."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import cast

from yiemagent_nb.core.json_values import json_form
from yiemagent_nb.core.redaction import mask_keys

__all__ = ["bounded", "joined_where_split", "masked_beginning", "masked_values", "payloads"]

_HALF = 11
"""Characters of a key of which masking may leave fewer than these where the rest of it was cut off."""

_MAX_DEPTH = 20
_MOST_VALUES = 10

Mask = Callable[[str], str]


def masked_beginning(text: str, limit: int, mask: Mask = mask_keys) -> str:
    """The beginning of a text without keys: ``limit`` characters or fewer, and no half of a key at its end."""
    more = limit + _HALF
    return (mask(text) if len(text) <= more else mask(text[:more])[:-_HALF])[:limit]


def bounded(text: str, limit: int) -> str:
    """A text without keys, cut where it is longer."""
    beginning = masked_beginning(text, limit)
    return f"{beginning}… ({len(text) - limit:,} more characters)" if len(text) > limit else beginning


def masked_values(value: object, limit: int, depth: int = 3) -> object:
    """The beginning of a value, its texts masked before anybody cuts them."""
    if isinstance(value, str):
        return masked_beginning(value, limit)
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Mapping) and depth:
        fields = [*cast("Mapping[object, object]", value).items()][:_MOST_VALUES]
        return {masked_values(name, limit): masked_values(each, limit, depth - 1) for name, each in fields}
    if isinstance(value, list | tuple) and depth:
        return [masked_values(each, limit, depth - 1) for each in cast("Sequence[object]", value)[:_MOST_VALUES]]
    return masked_beginning(repr(cast("object", value)), limit)


def joined_where_split(pieces: Iterable[object], mask: Mask = mask_keys) -> dict[str, str] | None:
    """The texts that stand at the same place of pieces, joined, by that place.

    None where no key stands across pieces, so that each can be masked by itself.
    """
    places: dict[str, list[str]] = {}
    for piece in pieces:
        _collect(piece, "", places, _MAX_DEPTH)
    joined = {place: "".join(texts) for place, texts in places.items()}
    for place, text in joined.items():
        if len(places[place]) > 1 and (masked := mask(text)) != text and masked != "".join(map(mask, places[place])):
            return joined
    return None


def payloads(text: str) -> Iterable[object]:
    """What the lines of a streamed body hold: events of a server, or JSON line by line."""
    for line in text.splitlines():
        content = line.removeprefix("data:").strip() if line.startswith("data:") else line
        try:
            value: object = json.loads(content)
        except (ValueError, RecursionError):
            value = {"data" if line.startswith("data:") else "lines": content}
        yield value


def _collect(value: object, place: str, places: dict[str, list[str]], depth: int) -> None:
    if isinstance(value, str):
        places.setdefault(place or "text", []).append(value)
    elif value is None or isinstance(value, bool | int | float) or not depth:
        return
    elif isinstance(value, Mapping):
        for name, each in cast("Mapping[object, object]", value).items():
            _collect(each, f"{place}.{name}" if place else str(name), places, depth - 1)
    elif isinstance(value, list | tuple):
        for position, each in enumerate(cast("Sequence[object]", value)):
            _collect(each, f"{place}.{_place_of(each, position)}", places, depth - 1)
    else:
        _collect(json_form(value), place, places, depth - 1)


def _place_of(part: object, position: int) -> object:
    """Where a part of a list belongs: those of streamed answers say it themselves."""
    return cast("Mapping[object, object]", part).get("index", position) if isinstance(part, Mapping) else position
