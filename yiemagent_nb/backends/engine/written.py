"""A backend as the Python that builds it anew. Keys stay out: they come from environment variables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, cast

from yiemagent_nb.core.redaction import Redactor, mask_field

__all__ = ["FALLBACK_VARIABLE", "shown_options", "variable_of", "written"]

FALLBACK_VARIABLE: Final = "MODEL_SERVER_KEY"
"""The environment variable for a key that was given by hand, to a server that has no usual one."""

_LEFT_OUT = frozenset({"api_key", "api_key_env", "headers", "http_client", "prices", "timeout", "retries"})
_PLAIN = (str, int, float, bool, type(None))


class _Expression(str):
    """A text that is Python as it stands."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def shown_options(options: Mapping[str, Any], redactor: Redactor, *, has_login: bool = False) -> dict[str, Any]:
    """Those of a backend's options that can be written down; what of them is a key comes from a variable.

    Args:
        options: As they were given.
        redactor: Knows the keys among them.
        has_login: A name and a password stood in the address; they become a header.
    """
    shown = {
        name: _without_keys(value, redactor)
        for name, value in options.items()
        if name not in _LEFT_OUT and value is not None and _is_plain(value)
    }
    headers = cast("Mapping[str, str]", options.get("headers") or {})
    written_headers = {
        name: _from_variable(name) if mask_field(name, value) != value or redactor(value) != value else value
        for name, value in headers.items()
    }
    if has_login:
        written_headers["Authorization"] = _from_variable("Authorization")
    return {**shown, "headers": written_headers} if written_headers else shown


def written(kind: type, arguments: Mapping[str, Any]) -> str:
    """A call of a class, as Python."""
    return f"{kind.__name__}({', '.join(f'{name}={value!r}' for name, value in arguments.items())})"


def variable_of(name: str) -> str:
    """The environment variable for a header's or a field's value: ``X-API-Key`` becomes ``X_API_KEY``."""
    return re.sub(r"\W+", "_", name).strip("_").upper() or FALLBACK_VARIABLE


def _from_variable(name: str) -> _Expression:
    return _Expression(f"os.environ[{variable_of(name)!r}]")


def _is_plain(value: object, depth: int = 10) -> bool:
    if isinstance(value, Mapping) and depth:
        fields = cast("Mapping[object, object]", value)
        return all(isinstance(name, str) and _is_plain(each, depth - 1) for name, each in fields.items())
    if isinstance(value, list | tuple) and depth:
        return all(_is_plain(each, depth - 1) for each in cast("list[object]", value))
    return isinstance(value, _PLAIN)


def _without_keys(value: object, redactor: Redactor) -> object:
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, object]", value)
        return {
            name: _from_variable(name)
            if isinstance(each, str) and (mask_field(name, each) != each or redactor(each) != each)
            else _without_keys(each, redactor)
            for name, each in fields.items()
        }
    if isinstance(value, list | tuple):
        return [_without_keys(each, redactor) for each in cast("list[object]", value)]
    return value
