"""The built front end: one script, one style sheet, and parts that are loaded on first need."""

from __future__ import annotations

from functools import cache
from pathlib import Path

__all__ = ["SCRIPT", "STYLE", "part"]

_STATIC = Path(__file__).parent / "static"

SCRIPT = _STATIC / "widget.js"
STYLE = _STATIC / "widget.css"


@cache
def part(name: str) -> str:
    """The script of a part of the front end, such as ``math``."""
    return (_STATIC / f"{name}.js").read_text(encoding="utf-8")
