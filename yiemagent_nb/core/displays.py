"""What an object that shows itself in notebooks looks like as text.

Objects show themselves by methods such as ``_repr_markdown_``, ``_repr_latex_`` and ``_repr_html_``, or
by ``_repr_mimebundle_``, which gives several forms at once
(https://ipython.readthedocs.io, "Rich display"). A model reads markdown and LaTeX as they are; of HTML
only its words and tables are left, since nothing of it may run anywhere.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from html import unescape
from typing import Any, cast

__all__ = ["html_as_text", "shown_as_markup", "shown_as_words"]

LONGEST_HTML = 2_000_000
"""Characters of HTML that are read: plots put whole libraries into theirs."""

SVG_ALONE = "(A picture in SVG, which is not shown: SVG may hold scripts. Return a PNG of it, or a figure.)"

_SAYS_NOTHING = re.compile(r"<[\w.<>]+( object)?( at 0x[0-9a-fA-F]+)?>|[\w.]+\(\.\.\.\)")
_FORMULA = re.compile(r"\$(?!\$|\\displaystyle\s)([^$]+)\$")


def shown_as_markup(value: object) -> str | None:
    """The markdown or LaTeX of an object that has either; None for any other.

    Raises:
        Exception: Whatever the object raises.
    """
    if isinstance(value, type):
        return None
    for method, mime_type in (("_repr_markdown_", "text/markdown"), ("_repr_latex_", "text/latex")):
        text = _called(value, method)
        if text:
            return _formula(text) if mime_type == "text/latex" else text
    return None


def shown_as_words(value: object) -> str | None:
    """What an object says of itself in words; None where that is no more than what kind of object it is.

    It is the ``repr``, or ``str`` where that says more, or what it is drawn from as JSON, or the words of
    its HTML.

    Raises:
        Exception: Whatever the object raises.
    """
    for text in (repr(value), str(value)):
        if not _SAYS_NOTHING.fullmatch(text):
            return text
    if isinstance(value, type):
        return None
    if (drawn_from := _json_form(value)) is not None:
        return drawn_from
    if html := _called(value, "_repr_html_"):
        return html_as_text(html)
    return SVG_ALONE if _called(value, "_repr_svg_") else None


def _json_form(value: Any) -> str | None:
    """The JSON from which a page would draw an object, such as the specification of a plot."""
    data = _shown(value, "_repr_json_")
    if isinstance(data, dict | list):
        return json.dumps(data, ensure_ascii=False, default=repr)
    forms = _shown(value, "_repr_mimebundle_")
    if not isinstance(forms, Mapping):
        return None
    for mime_type, form in cast("Mapping[str, object]", forms).items():
        if mime_type.endswith("+json") and isinstance(form, Mapping):
            return json.dumps(form, ensure_ascii=False, default=repr)
    return None


def _shown(value: Any, method: str) -> object:
    represent = getattr(value, method, None)
    shown: object = represent() if callable(represent) else None
    if not isinstance(shown, tuple):
        return shown
    first, *_metadata = cast("tuple[object, ...]", shown) or (None,)  # IPython allows (data, metadata)
    return first


def _called(value: object, method: str) -> str | None:
    shown = _shown(value, method)
    return shown if isinstance(shown, str) else None


def _formula(latex: str) -> str:
    """LaTeX as a displayed formula, where it is one formula in single dollars."""
    found = _FORMULA.fullmatch(latex.strip())
    return latex if found is None else f"$${found[1]}$$"


def html_as_text(html: str) -> str:
    """The words of an HTML text, its tables as markdown; without scripts, styles and all that is not seen.

    It takes time in proportion to the text, and returns no more than a few times as much, whatever the text is.
    """
    reader = _Reader()
    for words, end, tag in _tokens(html[:LONGEST_HTML]):
        reader.take_words(words)
        if tag:
            (reader.take_end if end else reader.take_start)(tag)
    return reader.text()


_MARKUP = re.compile(
    r"""<(?:
        !--.*?(?:-->|\Z)                                      # a comment
        |(?:[!?]|/(?![a-z])).*?(?:>|\Z)                       # a declaration, and what is taken for a comment
        |(?P<end>/?)(?P<tag>[a-z][^\s/>]*)
         (?:=\s*+"[^"]*+(?:"|\Z)|=\s*+'[^']*+(?:'|\Z)|[^>])*+  # its attributes, whose values may hold >
         (?:(?<=(?P<closed>/))>|>|\Z)
    )""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
"""What stands in angle brackets, or after one that is never closed. It never looks twice at a character that it
has taken, so that no text makes it slow."""
_REFERENCE = re.compile(r"&(?:#\d++|#x[0-9a-f]++|[a-z][a-z0-9]{1,31});?", re.IGNORECASE)
LONGEST_REFERENCE = 40
"""Characters of a reference; longer ones are numbers that are no character's, and that Python may refuse to read."""
_RAW = {tag: re.compile(rf"</{tag}(?=[\s/>])", re.IGNORECASE) for tag in ("script", "style", "title", "iframe")}
"""Elements whose text is no markup, and where it ends."""
_UNSEEN = frozenset({*_RAW, "template", "svg", "math", "noscript", "object", "select"})
_LINES = re.compile(
    "address|article|aside|blockquote|br|dd|div|dl|dt|fieldset|figcaption|figure|footer|form|h[1-6]|header|hr|li|main|"
    "nav|ol|p|pre|section|summary|ul"
)


def _tokens(html: str) -> Iterator[tuple[str, bool, str]]:
    """The words before each tag, whether it ends an element, and its name; at the end the last words alone."""
    position = 0
    while (found := _MARKUP.search(html, position)) is not None:
        tag, closed = (found["tag"] or "").lower(), found["closed"] is not None
        yield html[position : found.start()], found["end"] == "/", tag
        position = found.end()
        if tag in _RAW and not found["end"] and not closed:
            end = _RAW[tag].search(html, position)
            position = len(html) if end is None else end.start()
        elif tag in _UNSEEN and closed:
            yield "", True, tag
    yield html[position:], False, ""


def _reference(found: re.Match[str]) -> str:
    return unescape(found[0]) if len(found[0]) <= LONGEST_REFERENCE else "\N{REPLACEMENT CHARACTER}"


class _Reader:
    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._unseen: list[str] = []
        self._rows: list[list[str]] | None = None
        self._cell: list[str] | None = None

    def text(self) -> str:
        self._end_table()
        lines = (" ".join(line.split()) for line in "".join(self._pieces).split("\n"))
        return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()

    def take_start(self, tag: str) -> None:
        if tag in _UNSEEN:
            self._unseen.append(tag)
        elif self._unseen:
            return
        elif tag == "table":
            self._end_table()
            self._rows = []
        elif self._rows is not None and tag == "tr":
            self._end_cell()
            self._rows.append([])
        elif self._rows is not None and tag in {"td", "th"}:
            self._end_cell()
            self._cell = []
        elif _LINES.fullmatch(tag):
            self._put("\n")

    def take_end(self, tag: str) -> None:
        if self._unseen:
            if tag == self._unseen[-1]:
                self._unseen.pop()
        elif tag in {"td", "th"}:
            self._end_cell()
        elif tag == "table":
            self._end_table()
        elif _LINES.fullmatch(tag):
            self._put("\n")

    def take_words(self, words: str) -> None:
        if words and not self._unseen:
            self._put(_REFERENCE.sub(_reference, words))

    def _put(self, text: str) -> None:
        if self._cell is not None:
            self._cell.append(text)
        elif self._rows is None or text.strip():
            self._pieces.append(text)

    def _end_cell(self) -> None:
        if self._cell is not None and self._rows is not None:
            text = " ".join("".join(self._cell).split())
            if not self._rows:
                self._rows.append([])
            self._rows[-1].append(text.replace("\\", "\\\\").replace("|", "\\|"))
        self._cell = None

    def _end_table(self) -> None:
        """Put the table as markdown, where a row may be shorter than the first: to fill all up could make far more."""
        self._end_cell()
        rows, self._rows = [row for row in self._rows or () if row], None
        if not rows:
            return
        width = max(map(len, rows))
        head, *body = rows
        lines = [head + [""] * (width - len(head)), ["---"] * width, *body]
        self._pieces.append("\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n\n")
