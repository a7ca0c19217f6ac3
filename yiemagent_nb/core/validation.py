"""What does not fit, said in sentences that a model can act on; and copies of JSON values."""

from __future__ import annotations

import json
import re
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from pydantic import ValidationError

from yiemagent_nb.core.errors import InvalidParametersError

__all__ = [
    "cut",
    "explain_validation_error",
    "format_names",
    "format_path",
    "invalid_arguments",
    "json_copy",
    "printable",
    "shorten",
]

MAX_SENTENCES = 5
"""How many failures a model is told of at once."""

MAX_SHOWN = 80
"""How many characters of a wrong value are shown."""

_containers = reprlib.Repr()
_containers.maxlevel = 3
_containers.maxstring = _containers.maxother = _containers.maxlong = 40


def json_copy(value: object) -> Any:
    """A deep copy of a JSON value: dicts with string keys, lists, strings, numbers, booleans, None.

    Raises:
        InvalidParametersError: Something in it is no JSON value, or it is nested too deeply.
    """
    try:
        return _copy(value)
    except RecursionError:
        raise InvalidParametersError("the value is nested too deeply to be read as JSON.") from None


def _copy(value: object) -> object:
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, (dict, Mapping)):  # the first is far quicker, and nearly always so
        items = cast("Mapping[object, object]", value).items()
        copied = {key: _copy(item) for key, item in items if isinstance(key, str)}
        if len(copied) == len(items):
            return copied
        raise InvalidParametersError("a JSON object has strings as keys, and one here has another type.")
    if isinstance(value, list | tuple):
        return [_copy(item) for item in cast("Sequence[object]", value)]
    raise InvalidParametersError(f"a {type(value).__name__} stands where a JSON value was expected.")


def invalid_arguments(tool_name: str, sentences: Sequence[str]) -> InvalidParametersError:
    """The error for arguments that do not fit; it names the first few failures."""
    shown = "; ".join(sentences[:MAX_SENTENCES])
    more = len(sentences) - MAX_SENTENCES
    return InvalidParametersError(
        f"The arguments of {tool_name} are not valid: {shown}{f'; and {more} more' if more > 0 else ''}.",
        "Call it again with arguments that fit its parameters.",
    )


def shorten(value: object, limit: int = MAX_SHOWN) -> str:
    """A value as a short text: JSON where it is a scalar, else like its ``repr``; never raises."""
    try:
        if isinstance(value, str):
            text = json.dumps(value[: limit + 1], ensure_ascii=False)
        elif value is None or isinstance(value, bool):
            text = json.dumps(value)
        else:
            text = _containers.repr(value)
    except Exception:
        text = f"a {type(value).__name__}"
    if len(text) > limit:
        text = f"{text[:limit]}…"
    return printable(text)


def printable(text: str) -> str:
    """A text with its lone surrogates escaped, so that every file and server takes it."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def format_names(names: Iterable[object]) -> str:
    """Names in a row, each cut."""
    return ", ".join(shorten(name)[1:-1] for name in names)


def cut(text: str, limit: int = 300) -> str:
    """A text that is safe to show: not too long, without lone surrogates, without its last full stop."""
    return printable(text if len(text) <= limit else f"{text[:limit]}…").rstrip(".")


def format_path(parts: Iterable[object]) -> str:
    """A place in the arguments, such as ``orders[0].name``; empty for the whole."""
    path = ""
    for part in parts:
        path += f"[{part}]" if isinstance(part, int) else f".{shorten(part)[1:-1]}" if path else shorten(part)[1:-1]
    return path


def explain_validation_error(
    error: ValidationError, arguments: object, known: Iterable[str], *, whole: str = "the arguments"
) -> list[str]:
    """Pydantic's failures as sentences, one an argument.

    Args:
        error: What pydantic found.
        arguments: What it was given.
        known: The names of the arguments that there are.
        whole: What a failure of all of it is said of.
    """
    found: dict[str, tuple[list[str], str]] = {}
    for failure in error.errors(include_url=False, include_context=False):
        kind, location = failure["type"], failure["loc"]
        path = _path_in(arguments, location)
        if kind == "missing":
            path = f"{path}.{location[-1]}" if path else str(location[-1])
            found[path] = (["is missing"], "")
        elif kind == "extra_forbidden":
            known_names = f"; known are {format_names(known) or 'none'}" if len(location) == 1 else ""
            found[path] = ([f"is not known{known_names}"], "")
        else:
            expectations, _ = found.setdefault(path, ([], shorten(failure["input"])))
            expectation = _expectation(failure["msg"])
            if expectation not in expectations:
                expectations.append(expectation)
    return [
        f"{path or whole} {cut(' or '.join(expectations))}{f', got {got}' if got else ''}"
        for path, (expectations, got) in found.items()
    ]


def _expectation(message: str) -> str:
    if message.startswith("Input "):
        return re.sub(r" for <class '.*'>", "", message.removeprefix("Input "))
    text = re.sub(r"^(Value error|Assertion failed), ", "", message)
    return f"was refused: {text}"


def _path_in(arguments: object, location: Sequence[int | str]) -> str:
    """The part of a location that leads through the arguments; the rest names branches of unions."""
    parts: list[object] = []
    value = arguments
    for part in location:
        if isinstance(value, Mapping) and part in value:
            value = cast("Mapping[object, object]", value)[part]
        elif isinstance(value, list) and isinstance(part, int) and part < len(cast("list[object]", value)):
            value = cast("list[object]", value)[part]
        else:
            continue
        parts.append(part)
    return format_path(parts)
