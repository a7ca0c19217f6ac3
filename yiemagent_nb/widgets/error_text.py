"""The text of an error, taken apart for people: what happened, what to do, and its code."""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["ErrorText", "read_error"]

_CODE = re.compile(r"\s*\[([A-Z][A-Z_]*)\]\s*$")
_FIRST_SENTENCE = re.compile(r'((?:"[^"]*"|[^".!?]|[.!?](?!\s))*[.!?])\s+(\S.*)', re.DOTALL)
"""A sentence that ends outside of quotation marks, and what follows: servers are quoted whole."""


class ErrorText(NamedTuple):
    """An error as a panel shows it; ``hint`` and ``code`` may be empty."""

    message: str
    hint: str
    code: str


def read_error(text: str) -> ErrorText:
    """Take apart what ``str`` of a ``YiemAgentError`` gives: ``message hint [CODE]``.

    The text does not say where the hint begins, so the first sentence is the message and the others
    are the hint. A text in another form is all message.
    """
    found = _CODE.search(text)
    code = found[1] if found is not None else ""
    whole = text[: found.start()] if found is not None else text
    split = _FIRST_SENTENCE.fullmatch(whole)
    return ErrorText(whole, "", code) if split is None else ErrorText(split[1], split[2], code)
