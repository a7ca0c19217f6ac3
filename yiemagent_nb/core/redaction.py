"""Keeping keys out of what is shown: errors repeat what servers say, and servers may repeat keys.

A ``Redactor`` knows the secrets of one connection and masks them in any text. What the HTTP library
logs of the heads of answers goes through all of them, once ``mask_logs`` was called.
"""

from __future__ import annotations

import base64
import binascii
import html
import json
import logging
import re
import threading
import weakref
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from typing import Any, ClassVar, Final, NoReturn, cast
from urllib.parse import quote, unquote

from pydantic import SecretStr

from yiemagent_nb.core.errors import AuthenticationError, InvalidParametersError
from yiemagent_nb.core.reading.fields import REASONING_FIELDS

__all__ = ["Redactor", "checked_key", "mask_field", "mask_keys", "mask_logs", "with_hidden_keys", "with_plain_keys"]

_MASK: Final = "[key]"
_SHORTEST = 6
"""Characters that a secret has at least; a shorter one would mask ordinary words."""
_PLACEHOLDER = re.compile(r"[a-z]+(-[a-z]+)*")
"""What people give where a server asks for no key, "ollama" or "not-needed": no secret, and a word of many texts."""
_WINDOW = 6
_SHORTEST_PIECE = 2 * _WINDOW - 1
"""Pieces of a secret of so many characters hold a whole window that begins at a multiple of its length."""
_MAX_DEPTH = 32
"""No answer of a server that means something is nested deeper."""
_SECRET_NAMES = ("auth", "key", "token", "secret", "cookie", "password", "credential", "session", "signature")
_CONTENT = frozenset(
    {
        *("delta", "output", "item", "part", "content", "text", "refusal", "arguments", "tool_calls"),
        *("function_call", "reasoning_details", *REASONING_FIELDS),
    }
)
"""Fields of answers that hold what the model wrote."""
_LOGGERS = tuple(
    f"{library}{version}{part}"
    for version in ("", "2")
    for library, parts in {"httpx": ("",), "httpcore": (".connection", ".http11", ".http2", ".proxy", ".socks")}.items()
    for part in parts
)


def checked_key(key: str) -> SecretStr:
    """A key without the white space around it, which files and copying leave there.

    Raises:
        AuthenticationError: It holds what no HTTP header may hold; the error does not repeat it.
    """
    secret = SecretStr(key.strip())
    del key  # tracebacks show the variables of a function that raises
    if not _can_be_sent(secret):
        raise AuthenticationError(
            "The API key holds a space, a line break or a character outside ASCII, so it cannot be sent.",
            "Copy the key again, alone.",
        )
    return secret


def _can_be_sent(secret: SecretStr) -> bool:
    return all("!" <= character <= "~" for character in secret.get_secret_value())


class Redactor:
    """Masks secrets in any text, also where they stand escaped, encoded or in part."""

    _additions: ClassVar[int] = 0

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._in_json: set[str] = set()
        self._forms: list[str] = []
        self._windows: set[str] = set()
        with _lock:
            _redactors.add(self)

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled, and with it whatever it belongs to."""
        raise InvalidParametersError(
            "This cannot be pickled: what it is written to would hold its key, in clear.",
            "Write down its class and address, and build it anew.",
        )

    def add(self, secret: str) -> None:
        """Mask this one too from now on."""
        if len(secret) < _SHORTEST or secret in self._known or _PLACEHOLDER.fullmatch(secret):
            return
        self._known.add(secret)
        self._in_json |= {secret, _in_json(secret)}
        forms = set(_forms(secret))
        self._forms = sorted({*self._forms, *forms}, key=len, reverse=True)
        for form in forms:
            if len(form) > _SHORTEST_PIECE:
                self._windows.update(form[at : at + _WINDOW] for at in range(len(form) - _WINDOW + 1))
        with _lock:
            Redactor._additions += 1

    @classmethod
    def additions(cls) -> int:
        """How many secrets were ever added: what was masked before one more was is to be masked anew."""
        return cls._additions

    def add_login(self, login: str) -> None:
        """Mask a name and password, ``name:password`` as in a URL, as they are and as they are sent."""
        for each in (login, unquote(login)):
            self.add(each)
            self.add(each.partition(":")[2])

    def add_fields(self, fields: Mapping[str, object]) -> None:
        """Mask the values of those headers or fields of a request whose names tell of keys."""
        for name, value in fields.items():
            if isinstance(value, str) and any(word in name.lower() for word in _SECRET_NAMES):
                self.add(value)
                scheme, _, credentials = value.strip().partition(" ")
                self.add(credentials)  # without "Bearer"
                if scheme.lower() == "basic":
                    self.add_login(_decoded(credentials))

    def __call__(self, text: str) -> str:
        """``text`` without any secret, or a piece of one of eleven characters or more."""
        for form in self._forms:
            if form in text:
                text = text.replace(form, _MASK)
        return self._without_pieces(text) if self._windows else text

    def clean(self, value: object, depth: int = _MAX_DEPTH) -> object:
        """What JSON held, without any secret in it."""
        if isinstance(value, str):
            return self(value)
        if isinstance(value, list) and depth:
            return [self.clean(each, depth - 1) for each in cast("list[object]", value)]
        if isinstance(value, dict) and depth:
            fields = cast("dict[str, object]", value)
            return {self(name): self.clean(each, depth - 1) for name, each in fields.items()}
        return None if isinstance(value, list | dict) else value

    def clean_labels(self, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """An answer, or a chunk of one, without secrets in what stands beside its content: model, reasons, ids.

        What the model wrote stays as it is.
        """
        if not self._known:
            return fields
        return {
            name: value
            if name in _CONTENT or (name == "message" and isinstance(value, dict))
            else self._clean_label(value)
            for name, value in fields.items()
        }

    def _clean_label(self, value: object) -> object:
        if isinstance(value, list):
            return [self._clean_label(each) for each in cast("list[object]", value)]
        if isinstance(value, dict):
            return self.clean_labels(cast("dict[str, Any]", value))
        return self.clean(value)

    def found_in(self, text: str) -> bool:
        """Whether a secret stands in ``text``, as it is or as JSON writes it."""
        for secret in self._in_json:  # noqa: SIM110 - asked for each chunk; a generator costs more than the look
            if secret in text:
                return True
        return False

    def _without_pieces(self, text: str) -> str:
        windows, size = self._windows, len(text)
        kept: list[str] = []
        start = at = 0
        while at + _WINDOW <= size:
            if text[at : at + _WINDOW] not in windows:
                at += _WINDOW
                continue
            left, right = at, at + _WINDOW
            while left > start and text[left - 1 : left - 1 + _WINDOW] in windows:
                left -= 1
            while right < size and text[right + 1 - _WINDOW : right + 1] in windows:
                right += 1
            at = right + 1 - _WINDOW
            if right - left >= _SHORTEST_PIECE:
                kept += (text[start:left], _MASK)
                start = at = right
        return "".join([*kept, text[start:]])


_lock = threading.Lock()
_redactors: weakref.WeakSet[Redactor] = weakref.WeakSet()


def _forms(secret: str) -> Iterator[str]:
    """A secret as it is, and as URLs, web pages, JSON, Python and base64 write it."""
    in_json = _in_json(secret)
    yield from (secret, quote(secret, safe=""), quote(secret), html.escape(secret), html.escape(secret, quote=False))
    yield from (in_json, in_json.replace("/", r"\/"), json.dumps(in_json)[1:-1], repr(secret)[1:-1])
    raw = secret.encode("utf-8", "replace")
    for before, shared in enumerate((0, 2, 3)):
        # Base64 of a longer text shows another form for each place at which the secret may begin;
        # characters that it shares with what stands before and behind are left out.
        encoded = base64.b64encode(b"\0" * before + raw).decode().rstrip("=")
        middle = encoded[shared : len(encoded) - ((before + len(raw)) % 3 > 0)]
        yield from (middle, middle.replace("+", "-").replace("/", "_"))


def _in_json(secret: str) -> str:
    return json.dumps(secret)[1:-1]


def _decoded(credentials: str) -> str:
    try:
        return base64.b64decode(credentials).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return ""


def with_hidden_keys(fields: Mapping[str, object]) -> dict[str, object]:
    """Fields in which texts that stand under the name of a secret, at any depth, are a ``SecretStr``."""
    hidden: dict[str, object] = {}
    for name, value in fields.items():
        if isinstance(value, Mapping):
            hidden[name] = with_hidden_keys(cast("Mapping[str, object]", value))
        elif isinstance(value, str) and any(word in name.lower() for word in _SECRET_NAMES):
            hidden[name] = SecretStr(value)
        else:
            hidden[name] = value
    return hidden


def with_plain_keys(fields: Mapping[str, object]) -> dict[str, object]:
    """The fields that ``with_hidden_keys`` was given."""
    plain: dict[str, object] = {}
    for name, value in fields.items():
        if isinstance(value, Mapping):
            plain[name] = with_plain_keys(cast("Mapping[str, object]", value))
        else:
            plain[name] = value.get_secret_value() if isinstance(value, SecretStr) else value
    return plain


def mask_field(name: str, value: str) -> str:
    """The value of a header or a field, masked where its name tells of a key; a scheme such as ``Bearer`` stays."""
    if not value or not _tells_of_key(name):
        return value
    scheme, _, credentials = value.partition(" ")
    return f"{scheme} {_MASK}" if credentials and scheme.lower() in {"basic", "bearer", "digest"} else _MASK


@lru_cache(maxsize=1000)
def _tells_of_key(name: str) -> bool:
    name = name.lower()
    return any(word in name for word in _SECRET_NAMES)


def mask_keys(text: str) -> str:
    """``text`` without the secrets of any connection of this program."""
    with _lock:
        redactors = tuple(_redactors)
    for redactor in redactors:
        text = redactor(text)
    return text


class _LogFilter(logging.Filter):
    """Masks the secrets of all connections in a record."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Let every record pass, masked."""
        message = record.getMessage()
        masked = mask_keys(message)
        if masked != message:
            record.msg, record.args = masked, None
        return True


_log_filter = _LogFilter()


@cache
def mask_logs(*more: str) -> None:
    """Mask secrets in what the HTTP libraries log: addresses, and the heads of answers, which may repeat a key.

    Args:
        more: Other loggers that may write secrets.
    """
    for name in (*_LOGGERS, *more):
        logging.getLogger(name).addFilter(_log_filter)
