"""Markdown of others, for files that readers render as they like: GitHub, JupyterLab, nbconvert, pandoc.

Readers differ in what they take for a fence, a formula or a tag, so nothing is left to them: outside
of fences, what could begin a tag, an image, a definition, or a link to anything but the web is
escaped, whatever stands around it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from yiemagent_nb.sessions.visible import visible_code, visible_text

__all__ = ["Fence", "defuse_formulas", "fenced", "split_fences", "tame_markdown"]

_OPENING = re.compile(r"([ \t]*)(`{3,}(?=[^`]*$)|~{3,})(.*)$", re.DOTALL)
_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_ENTITY = re.compile(r"&(?=#|bsol;|dollar;)")
_LINK = re.compile(r"\]\((?!https?://[^\s()<>\[\]\\\"'`$]+\))")
_DEFINITION = re.compile(r"\](?=:)")
_MARK = re.compile(r"(?<!\\)(?:\\*\${2,}|\\+(?:begin|end)(?![A-Za-z])|\\{2,}[\[\]])")
_KINDS = {"$$": "$", "\\begin": "b", "\\end": "e", "\\\\[": "[", "\\\\]": "]"}
"""What begins and ends formulas of several lines, and how it is told here; another form of it is ``?``."""

_CLOSED = re.compile(r"(?:\$(?:be)*\$|be|\[\])*")
_NAME = re.compile(r"\\(?:begin|end)\{([^{}]*)\}")
_FENCE_IN_TEXT = re.compile(r"`{3,}|~{3,}")

_LONGEST_RUN = 50
_LONG_RUN = re.compile(f"`{{{_LONGEST_RUN}}}(?=`)")

_DRAWN = frozenset({"mermaid", "geojson", "topojson", "stl", "math", "latex", "vega", "vega-lite", "plantuml", "dot"})
"""Languages that some reader does not show but run, and load things for."""

_COMMANDS = (
    *("href", "url", "class", "cssId", "style", "data", "htmlData", "htmlId", "htmlClass", "htmlStyle", "require"),
    *("def", "edef", "gdef", "xdef", "let", "futurelet", "newcommand", "renewcommand", "providecommand"),
    *(
        "newenvironment",
        "renewenvironment",
        "DeclareMathOperator",
        "csname",
        "catcode",
        "unicode",
        "texttip",
        "mathtip",
    ),
    *("toggle", "action", "includegraphics", "input", "include", "openin", "openout", "read", "write", "immediate"),
    *("special", "directlua", "usepackage", "verbatiminput", "lstinputlisting", "InputIfFileExists", "scantokens"),
)
"""What in a formula makes links, attributes or other commands, or reads and writes files."""

_COMMAND = re.compile(rf"\\(?=(?:{'|'.join(_COMMANDS)})(?![A-Za-z]))")


class Fence(NamedTuple):
    """A fenced piece of code; ``language`` may be empty."""

    language: str
    code: str


class _Opened(NamedTuple):
    """The line that begins a fence. What it says is read once: each look into a match copies."""

    indent: int
    mark: str
    language: str


def split_fences(text: str) -> Iterator[str | Fence]:
    """The texts between fences, and what stands in these; one that is not closed goes to the end."""
    lines: list[str] = []
    opened: _Opened | None = None
    for line in visible_text(text).split("\n"):
        mark = _OPENING.match(line)
        if opened is None:
            if mark is None:
                lines.append(line)
                continue
            yield from _text_between(lines)
            opened, lines = _Opened(len(mark[1]), mark[2], _language(mark[3])), []
        elif mark is not None and mark[2].startswith(opened.mark) and not mark[3].strip():
            yield Fence(opened.language, "\n".join(lines))
            opened, lines = None, []
        else:
            lines.append(line[opened.indent :] if not line[: opened.indent].strip() else line)
    if opened is not None:
        yield Fence(opened.language, "\n".join(lines))
    else:
        yield from _text_between(lines)


def _text_between(lines: list[str]) -> Iterator[str]:
    if text := "\n".join(lines).strip("\n"):
        yield text


def tame_markdown(text: str) -> str:
    """Markdown without live HTML, without images, and with links to the web alone.

    Code in fences is fenced anew, by a fence longer than any that the code holds; outside of them no
    fence is left, so it does not matter how a reader's idea of a fence differs from the one here.
    Formulas stay; their commands that make links or read files do not.
    """
    # Blank lines around fences: no reader lets a formula of one line go beyond.
    return "\n\n".join(
        fenced(part.code, part.language) if isinstance(part, Fence) else _escaped(part) for part in split_fences(text)
    )


def fenced(text: str, language: str = "text") -> str:
    """A text as a fenced block that it cannot end; a run of more than 50 backticks in it is broken."""
    # A space of no width breaks it, since a fence must be longer.
    text = _LONG_RUN.sub("\\g<0>\u200b", visible_code(text))
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}{'text' if language.lower() in _DRAWN else language}\n{text}\n{fence}"


def defuse_formulas(text: str) -> str:
    """A text in which no formula holds a command that makes a link, another command, or reads a file."""
    # A space of no width behind the backslash stays there, however often a reader unescapes.
    return _COMMAND.sub("\\\\\u200b", text)


def _language(words: str) -> str:
    word = re.match(r"[\w+-]*", words.strip())
    return word[0] if word is not None else ""


def _escaped(text: str) -> str:
    text = text if _closes_formulas(text) else _MARK.sub(_without_power, text)
    text = _TAG.sub("&lt;", _ENTITY.sub("&amp;", text))
    text = _DEFINITION.sub(r"]\\", _LINK.sub(r"]\\(", text.replace("![", "!\\[")))
    return defuse_formulas(_FENCE_IN_TEXT.sub(lambda run: "".join(f"\\{mark}" for mark in run[0]), text))


def _closes_formulas(text: str) -> bool:
    """Whether each formula of several lines ends where any reader would end it, and none runs on into code."""
    kinds = "".join(_KINDS.get(mark, "?") for mark in _MARK.findall(text))
    names = _NAME.findall(text)
    named = len(names) == kinds.count("b") + kinds.count("e")
    return named and _CLOSED.fullmatch(kinds) is not None and names[::2] == names[1::2]


def _without_power(mark: re.Match[str]) -> str:
    return mark[0].replace("$", "\\$") if "$" in mark[0] else mark[0].replace("\\", "\\\u200b")
