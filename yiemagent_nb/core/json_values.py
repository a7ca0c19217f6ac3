"""JSON values: text and arguments without what JSON cannot hold, and the JSON form of anything."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, cast

from pydantic import BeforeValidator, PlainSerializer
from pydantic_core import to_json

__all__ = ["MAX_DEPTH", "JsonMapping", "JsonObject", "Opaque", "Text", "clean_text", "json_form", "read_json"]

MAX_DEPTH = 100
"""How deeply arguments may be nested; parsers and encoders of other languages stop not far beyond."""

_SURROGATE = re.compile("[\ud800-\udfff]")


def clean_text(text: str) -> str:
    """``text`` with pairs of surrogates joined and lone ones, which UTF-8 cannot hold, as U+FFFD."""
    if text.isascii() or _SURROGATE.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def read_json(value: object, depth: int = MAX_DEPTH) -> Any:
    """A deep copy of a JSON value, its texts clean and its tuples as lists.

    Raises:
        ValueError: Something in it is no JSON, or it is nested too deeply.
    """
    if isinstance(value, str):
        return clean_text(value)
    if value is None or isinstance(value, (int, float)):
        return value
    if not depth:
        raise ValueError(f"it is nested more than {MAX_DEPTH} levels deep")
    if isinstance(value, (dict, Mapping)):
        items = cast("Mapping[object, object]", value).items()
        copied = {clean_text(key): read_json(item, depth - 1) for key, item in items if isinstance(key, str)}
        if len(copied) == len(items):
            return copied
        raise ValueError("the keys of a JSON object are strings, each another")
    if isinstance(value, list | tuple):
        return [read_json(item, depth - 1) for item in cast("Sequence[object]", value)]
    raise ValueError(f"a {type(value).__name__} is no JSON value")


def json_form(value: object) -> Any:
    """The JSON form of anything. It never raises.

    Models and dataclasses become objects, bytes base64, NaN and the infinities strings; a part
    that JSON cannot hold becomes its ``repr``, and so does a whole without an end.
    """
    try:
        return json.loads(to_json(value, inf_nan_mode="strings", bytes_mode="base64", fallback=_show))
    except Exception:  # surrogates, a cycle, too deep, or an object that fails when it is looked at
        return _repaired(value)


def _repaired(value: object) -> Any:
    try:
        return read_json(json.loads(json.dumps(value, default=json_form), parse_constant=str))
    except Exception:
        return _show(value)


def _show(value: object) -> str:
    try:
        return clean_text(repr(value))
    except Exception:
        return f"a {type(value).__name__} whose repr fails"


def _clean(value: object) -> object:
    return value if not isinstance(value, str) or value.isascii() else clean_text(value)


def _read_object(value: object) -> object:
    return read_json(cast("object", value)) if isinstance(value, Mapping) else value


_as_json = PlainSerializer(json_form, when_used="json")

Text = Annotated[str, BeforeValidator(_clean)]
"""Text that UTF-8 can hold: lone surrogates are replaced."""

JsonObject = Annotated[dict[str, Any], BeforeValidator(_read_object), _as_json]
"""A JSON object, copied."""

Opaque = Annotated[Any, _as_json]
"""Anything, kept as it is; in JSON its ``json_form``."""

JsonMapping = Annotated[Mapping[str, Any], _as_json]
"""Anything by name, kept as it is; in JSON its ``json_form``."""
