"""Docstrings in Google's, NumPy's and reST's style, read for what a model needs.

A docstring falls into prose, which describes the tool, and sections. Of the sections only those
on parameters are kept; what it returns or raises says nothing about how to call it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

__all__ = ["Docstring", "parse_docstring"]

_PARAMETERS = frozenset(
    {"args", "arguments", "keyword args", "keyword arguments", "other parameters", "parameters", "params"}
)
_OTHERS = frozenset(
    {
        "attributes",
        "example",
        "examples",
        "raises",
        "receives",
        "references",
        "returns",
        "return",
        "see also",
        "todo",
        "warns",
        "yields",
        "yield",
    }
)
_NAMES = r"\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*"
_GOOGLE_HEADER = re.compile(r"(\w[\w ]*?)\s*:\s*")
_GOOGLE_ENTRY = re.compile(rf"({_NAMES})\s*(?:\(.*?\))?\s*:(?:\s+(.*))?")
_NUMPY_RULE = re.compile(r"\s*(?:-{3,}|={3,})\s*")
_NUMPY_ENTRY = re.compile(rf"({_NAMES})\s*(?::.*)?")
_REST_FIELD = re.compile(r":(\w+)(?:\s+([^:]+?))?\s*:(?:\s+(.*))?")
_REST_PARAMETERS = frozenset({"param", "parameter", "arg", "argument", "key", "keyword"})
_BULLET = re.compile(r"(?:[-*•]|\d+[.)])\s")


@dataclass(frozen=True, slots=True)
class Docstring:
    """What a docstring says.

    Args:
        description: Its prose, without sections.
        parameters: What it says of each parameter, by name; only those with a text.
    """

    description: str
    parameters: dict[str, str]


def parse_docstring(docstring: str | None) -> Docstring:
    """Read a docstring of any of the three styles, mixed ones too. It never raises.

    Formats: the Google Python Style Guide (section 3.8), numpydoc, and Sphinx's info field lists.
    """
    lines = inspect.cleandoc(docstring or "").splitlines()
    if len(lines) > 1 and _google_title(lines[0]) and lines[1] and not lines[1].startswith(" "):
        # Beside a header on the first line, its block's own indentation looked like the docstring's.
        lines[1:] = [f"    {line}" for line in lines[1:]]
    prose: list[str] = []
    parameters: dict[str, str] = {}
    position = 0
    while position < len(lines):
        section = _numpy(lines, position) or _google(lines, position) or _rest(lines, position)
        if section is None:
            prose.append(lines[position].rstrip())
            position += 1
            continue
        position, found = section
        parameters.update((name, text) for name, text in found if text)
    description = re.sub(r"\n{3,}", "\n\n", "\n".join(prose)).strip()
    return Docstring(description, parameters)


_Section = tuple[int, list[tuple[str, str]]]
"""The index of the first line behind a section, and the parameters found in it."""


def _numpy(lines: Sequence[str], start: int) -> _Section | None:
    """A title on a line of its own, and a rule below it; the section ends at the next such title."""
    title = _title(lines, start)
    if title is None or title not in _PARAMETERS | _OTHERS:
        return None
    end = start + 2
    while end < len(lines) and _title(lines, end) is None:
        end += 1
    if title not in _PARAMETERS:
        return end, []
    return end, list(_entries(lines[start + 2 : end], _NUMPY_ENTRY))


def _title(lines: Sequence[str], index: int) -> str | None:
    if index + 1 < len(lines) and lines[index].strip() and _NUMPY_RULE.fullmatch(lines[index + 1]):
        return lines[index].strip().lower()
    return None


def _google(lines: Sequence[str], start: int) -> _Section | None:
    """``Args:`` and an indented block below it."""
    title = _google_title(lines[start])
    if title is None:
        return None
    end = _end_of_block(lines, start + 1)
    block = inspect.cleandoc("\n".join(["", *lines[start + 1 : end]])).splitlines()
    if not block:
        return None
    if title not in _PARAMETERS:
        return end, []
    return end, list(_entries(block, _GOOGLE_ENTRY))


def _google_title(line: str) -> str | None:
    header = _GOOGLE_HEADER.fullmatch(line)
    title = header[1].lower() if header is not None else None
    return title if title in _PARAMETERS | _OTHERS else None


def _rest(lines: Sequence[str], start: int) -> _Section | None:
    """One field, ``:param type name: text``, with the indented lines below it."""
    field = _REST_FIELD.fullmatch(lines[start])
    if field is None:
        return None
    end = _end_of_block(lines, start + 1)
    if field[1] not in _REST_PARAMETERS or not field[2]:
        return end, []
    name = field[2].split()[-1].lstrip("*\\")
    return end, [(name, _flow([field[3] or "", *lines[start + 1 : end]]))]


def _end_of_block(lines: Sequence[str], start: int) -> int:
    """The index behind the indented lines from ``start`` on; blank lines at its end belong to it."""
    end = start
    while end < len(lines) and (not lines[end].strip() or lines[end][0].isspace()):
        end += 1
    return end


def _entries(lines: Sequence[str], pattern: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    """Entries at the left margin, each with the indented lines below it."""
    position = 0
    while position < len(lines):
        entry = pattern.fullmatch(lines[position].rstrip())
        end = _end_of_block(lines, position + 1)
        if entry is not None:
            first = entry[2] if pattern.groups > 1 else None
            text = _flow([first or "", *lines[position + 1 : end]])
            for name in entry[1].split(","):
                yield name.strip().lstrip("*"), text
        position = end


def _flow(lines: Sequence[str]) -> str:
    """Wrapped lines as one; paragraphs and list items keep lines of their own."""
    text = ""
    fresh = False
    for line in (line.strip() for line in lines):
        if not line:
            fresh = bool(text)
            continue
        separator = "\n" if fresh or _BULLET.match(line) else " "
        text = f"{text}{separator}{line}" if text else line
        fresh = False
    return text
