"""How large JSON values are, without writing them as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

__all__ = ["readable_size", "size_of", "take_within"]

_NODE = 8
"""What a value counts beside its text."""


def size_of(value: object) -> int:
    """About how many characters a JSON value has when it is written; quick, and safe for any nesting."""
    size = 0
    stack = [value]
    while stack:
        item = stack.pop()
        size += _NODE
        if isinstance(item, str):
            size += len(item)
        elif isinstance(item, Mapping):
            for key, part in cast("Mapping[object, object]", item).items():
                size += len(key) if isinstance(key, str) else _NODE
                stack.append(part)
        elif isinstance(item, list | tuple):
            stack.extend(cast("list[object]", item))
    return size


def take_within(values: list[object], budget: int) -> tuple[list[object], int]:
    """Those values, in order, that fit into a budget of characters; and what is left of it."""
    taken: list[object] = []
    for value in values:
        size = size_of(value)
        if size <= budget:
            taken.append(value)
            budget -= size
    return taken, budget


def readable_size(size: int) -> str:
    """A number of bytes as a person reads it, such as ``12.3 kB``."""
    amount, unit = float(size), "bytes"
    for larger in ("kB", "MB", "GB"):
        if amount < 1000:  # noqa: PLR2004 - the step between units
            break
        amount, unit = amount / 1000, larger
    return f"{size} bytes" if unit == "bytes" else f"{amount:.1f} {unit}"
