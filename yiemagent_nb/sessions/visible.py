"""Characters that nobody sees but that programs obey, made visible: control, bidi, zero width.

A terminal obeys escape sequences, and a page reorders what stands beside bidi controls, so that a
text of someone else could pass for words of the program.
"""

from __future__ import annotations

import re

__all__ = ["visible_code", "visible_name", "visible_text"]

_COLOUR = re.compile("\x1b\\[[0-9;:]*m")
_LINE_END = re.compile("\r\n?")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_BIDI = re.compile("[\u202a-\u202e\u2066-\u2069]")
_FORMAT = re.compile(
    "[\t\n\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff9-\ufffb\U000e0000-\U000e01ef]"
)


def visible_text(text: str) -> str:
    r"""A text for people: control characters as ``\x1b``, lines ended by LF alone.

    Colours of terminals are left out, and halves of characters, which no file can hold, become U+FFFD.
    What words in other scripts need, such as joiners, stays.
    """
    text = _SURROGATE.sub("\ufffd", _LINE_END.sub("\n", text))
    return _CONTROL.sub(_in_hex, _COLOUR.sub("", text))


def visible_code(text: str) -> str:
    r"""A text that is read literally, such as code or a result: bidi controls, which reorder it, as ``\u202e`` too."""
    return _BIDI.sub(_in_hex, visible_text(text))


def visible_name(name: str) -> str:
    r"""A name on one line in which nothing hides: bidi and zero-width characters as ``\u202e`` too."""
    return _FORMAT.sub(_in_hex, visible_text(name))


def _in_hex(found: re.Match[str]) -> str:
    code = ord(found[0])
    if found[0] in "\t\n":
        return " "
    return f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"  # noqa: PLR2004 - the forms of Python
