"""The built front end: one script, one style sheet, and parts that are loaded on first need."""

from __future__ import annotations

from functools import cache
from pathlib import Path

__all__ = ["part", "script", "style"]

_STATIC = Path(__file__).parent / "static"


@cache
def script() -> str:
    """The script of the widget."""
    return (_STATIC / "widget.js").read_text(encoding="utf-8")


@cache
def style() -> str:
    """The style sheet of the widget."""
    return (_STATIC / "widget.css").read_text(encoding="utf-8")


@cache
def part(name: str) -> str:
    """The script of a part of the front end, such as ``math``."""
    return (_STATIC / f"{name}.js").read_text(encoding="utf-8")
