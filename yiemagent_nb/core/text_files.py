"""Text files in what a person says: blocks ``<file name="data.csv">``, the file's text, ``</file>``."""

from __future__ import annotations

import re
from html import escape, unescape
from typing import NamedTuple

from yiemagent_nb.core.messages import TextContent

__all__ = ["TextFile", "read_text_file", "text_file_block"]

_BLOCK = re.compile(r'<file name="([^"\n]*)">\n(.*)\n</file>\s*', re.DOTALL)


class TextFile(NamedTuple):
    """A file that a person attached as text. Both come from outside and are not to be trusted."""

    name: str
    text: str


def text_file_block(file: TextFile) -> TextContent:
    """The block in which a file's text is sent, its name escaped as in XML."""
    return TextContent(f'<file name="{escape(file.name)}">\n{file.text}\n</file>')


def read_text_file(text: str) -> TextFile | None:
    """The file that the text of a block holds; None where it is no such block."""
    found = _BLOCK.fullmatch(text)
    return None if found is None else TextFile(unescape(found[1]), found[2])
