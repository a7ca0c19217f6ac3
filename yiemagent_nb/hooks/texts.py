"""Texts that a person reads of what hooks do: without the keys of any connection, and of a bearable length."""

from __future__ import annotations

from yiemagent_nb.core.redaction import mask_keys
from yiemagent_nb.hooks.static import type_name
from yiemagent_nb.hooks.watchdog import Overtime

__all__ = ["error_text", "masked", "plain_error_text"]

_LONGEST_KEY = 10_000
"""Characters behind the end of a text that are looked at too, so that no key is cut and then not known."""


def masked(text: str, limit: int, more: str = "") -> str:
    """A text without keys, cut, with ``more`` behind it where it was."""
    shown = mask_keys(text[: limit + _LONGEST_KEY])
    return f"{shown[:limit]}{more}" if len(shown) > limit or len(text) > limit + _LONGEST_KEY else shown


def error_text(error: BaseException, limit: int) -> str:
    """The type and the text of an exception, which is made by code of whoever wrote it: call it within a limit."""
    try:
        text = str(error)
    except Overtime:
        raise
    except BaseException:  # whatever it is: it tells nothing of what happened
        text = "(it has no readable text)"
    return _joined(error, text, limit)


def plain_error_text(error: BaseException, limit: int) -> str:
    """The same, where nothing limits it: only of what is plainly a text."""
    texts = [str(each) for each in BaseException.__dict__["args"].__get__(error) if type(each) is str]
    return _joined(error, texts[0] if len(texts) == 1 else "", limit)


def _joined(error: BaseException, text: str, limit: int) -> str:
    text = masked(text, limit)
    return f"{type_name(error)}: {text}" if text else type_name(error)
