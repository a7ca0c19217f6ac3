"""Keeping keys out of what is shown: errors repeat what servers say, and servers may repeat keys."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote, quote_plus, unquote, urlsplit

from yiemagent_nb.core.errors import AuthenticationError

__all__ = ["Redactor", "checked_key"]

_MASK: Final = "[key]"
_SHORTEST = 6
"""Characters that a secret has at least; a shorter one would mask ordinary words."""
_SECRET_HEADERS = ("auth", "key", "token", "secret", "cookie", "password")


def checked_key(key: str) -> str:
    """A key without the white space around it, which files and copying leave there.

    Raises:
        AuthenticationError: It holds what no HTTP header may hold; the error does not repeat it.
    """
    key = key.strip()
    if not all("!" <= character <= "~" for character in key):
        raise AuthenticationError(
            "The API key holds a space, a line break or a character outside ASCII, so it cannot be sent.",
            "Copy the key again, alone.",
        )
    return key


class Redactor:
    """Masks the secrets of one connection in any text, also where they stand escaped.

    Args:
        base_url: May hold a name and a password.
        headers: Those whose names tell of keys hold secrets.
    """

    def __init__(self, base_url: str, headers: Mapping[str, str]) -> None:
        self._known: set[str] = set()
        self._forms: list[str] = []
        if password := urlsplit(base_url).password:
            self.add(unquote(password))
            self.add(password)
        for name, value in headers.items():
            if any(word in name.lower() for word in _SECRET_HEADERS):
                self.add(value)
                self.add(value.rpartition(" ")[2])  # without "Bearer"

    def add(self, secret: str) -> None:
        """Mask this one too from now on."""
        if len(secret) < _SHORTEST or secret in self._known:
            return
        self._known.add(secret)
        forms = {secret, quote(secret, safe=""), quote_plus(secret), html.escape(secret), json.dumps(secret)[1:-1]}
        self._forms = sorted({*self._forms, *forms}, key=len, reverse=True)

    def __call__(self, text: str) -> str:
        """``text`` without any secret."""
        for form in self._forms:
            if form in text:
                text = text.replace(form, _MASK)
        return text
