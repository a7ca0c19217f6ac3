"""A server's text without what a terminal would obey."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from yiemagent_nb.core.validation import cut

__all__ = ["cut_plain", "plain_descriptions", "plain_text"]

_SEQUENCE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
"""A colour or another command of ECMA-48 (CSI), and a title or a link of a terminal (OSC)."""

_CONTROL = re.compile(r"[^\t\n\r\x20-\x7e\xa0-\U0010ffff]")


def plain_text(text: str) -> str:
    """A text without a terminal's commands, other control characters as U+FFFD; tabs and newlines stay."""
    if _CONTROL.search(text) is None:
        return text
    return _CONTROL.sub("\ufffd", _SEQUENCE.sub("", text))


def cut_plain(text: str, limit: int) -> str:
    """As ``cut``, of a plain text; however long the text is, only so much of it is read."""
    return cut(plain_text(text[: limit + 1]), limit)


def plain_descriptions(schema: Any) -> Any:
    """A JSON Schema whose titles and descriptions are plain; a copy where something had to be changed."""
    if isinstance(schema, list):
        return [plain_descriptions(item) for item in cast("list[Any]", schema)]
    if not isinstance(schema, Mapping):
        return schema
    return {
        key: plain_text(value)
        if key in ("title", "description") and isinstance(value, str)
        else plain_descriptions(value)
        for key, value in cast("Mapping[str, Any]", schema).items()
    }
