"""Cutting a long result to what a model can read, its beginning and its end kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

__all__ = ["limit_text"]

Other = TypeVar("Other")

_HEAD_SHARE = 2 / 3


def limit_text(parts: Sequence[str | Other], max_characters: int) -> list[str | Other]:
    """Cut texts to ``max_characters`` in all; a line in the middle says what is missing.

    Args:
        parts: Texts, and others that are kept as they are.
        max_characters: How many characters may stay. The line itself counts, and stands even
            where it alone is longer.

    Returns:
        The parts, none of them an empty text.
    """
    total = sum(len(part) for part in parts if isinstance(part, str))
    if total <= max_characters:
        return [part for part in parts if part != ""]
    kept = max(0, max_characters - len(_marker(total, 0)))
    head = round(kept * _HEAD_SHARE)
    tail_start = total - (kept - head)
    marker = _marker(total, kept)
    limited: list[str | Other] = []
    position, marked = 0, False
    for part in parts:
        if not isinstance(part, str):
            limited.append(part)
            continue
        start, position = position, position + len(part)
        text = part[: max(0, head - start)]
        if position > head and not marked:
            text, marked = f"{text}{marker}", True
        text += part[max(head - start, tail_start - start, 0) :]
        if text:
            limited.append(text)
    return limited


def _marker(total: int, kept: int) -> str:
    return f"\n[… {total - kept:,} of {total:,} characters were left out here; ask for less at once …]\n"
