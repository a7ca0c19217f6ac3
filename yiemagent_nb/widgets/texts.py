"""Texts of others, at a length that fits."""

from __future__ import annotations

__all__ = ["one_line", "shortened"]


def one_line(text: str, most: int) -> str:
    """A text on one line of at most so many characters."""
    line = " ".join(text[: 4 * most].split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def shortened(text: str, most: int) -> str:
    """At most so many characters of a text, and how many are missing."""
    return text if len(text) <= most else f"{text[:most]}… ({len(text) - most:,} more characters are not shown)"
