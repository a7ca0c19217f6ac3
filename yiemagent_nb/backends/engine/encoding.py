"""JSON for requests: dumped once, joined as bytes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, cast

from yiemagent_nb.core.errors import InvalidParametersError
from yiemagent_nb.core.request import RequestTools

__all__ = ["as_message", "dump", "join_body"]

ToolMapping = Mapping[str, Any]
ToolForm = Callable[[ToolMapping], ToolMapping]

_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def dump(value: object) -> bytes:
    """Compact JSON in UTF-8; lone surrogates become question marks.

    Raises:
        InvalidParametersError: Something in it cannot be JSON.
    """
    try:
        return _encoder.encode(value).encode("utf-8", "replace")
    except (TypeError, ValueError) as error:
        raise InvalidParametersError(
            f"A request cannot be written as JSON: {error}.", "Give messages, tools and options as plain values."
        ) from error


def as_message(message: object) -> Mapping[str, Any]:
    """A message in OpenAI's form, as it is.

    Raises:
        InvalidParametersError: It is something else, such as a message of the history.
    """
    if not isinstance(message, Mapping):
        raise InvalidParametersError(
            f"{type(message).__name__} is no message in OpenAI's form, which is a mapping with role and content.",
            "to_openai(message) makes one of a message of the history.",
        )
    return cast("Mapping[str, Any]", message)


def join_body(
    fields: Mapping[str, Any],
    name: Literal["messages", "input"],
    messages: Sequence[bytes],
    tools: Sequence[ToolMapping] | None,
    form: ToolForm,
) -> bytes:
    """The body of a request: ``fields``, then the messages, then the tools.

    Tools that stand in ``fields``, such as those that the server runs itself, follow the others.

    Args:
        fields: All else that the request has.
        name: What the endpoint calls the messages.
        messages: Their JSON, in pieces to be joined with commas.
        tools: What the model may call, in OpenAI's chat form.
        form: Turns a tool into the form of the endpoint; a function of a module, since its result is
            kept under it.

    Raises:
        InvalidParametersError: Something in it cannot be JSON, or ``fields`` has messages of its own.
    """
    for refused in ("messages", "input"):
        if refused in fields:
            raise InvalidParametersError(
                f"A request's {refused} cannot be given as an option.",
                "They are made of the agent's history; format_messages changes what is sent of it.",
            )
    encoded = _encode_tools(tools, form) if tools else b""
    if "tools" in fields:
        more = _encode_tools(_more_tools(fields["tools"]), form)
        encoded = b",".join([part for part in (encoded, more) if part])
        fields = {name: value for name, value in fields.items() if name != "tools"}
    # All in one joining, so that a long conversation is copied once.
    separated = [part for piece in messages for part in (b",", piece)]
    parts = [dump(fields)[:-1], b',"', name.encode(), b'":[', *separated[1:], b"]"]
    if encoded:
        parts += (b',"tools":[', encoded, b"]")
    parts.append(b"}")
    return b"".join(parts)


def _encode_tools(tools: Sequence[ToolMapping], form: ToolForm) -> bytes:
    """The JSON of tools, without the brackets; kept only with a list that cannot have been changed since."""
    if not isinstance(tools, RequestTools):
        return dump([form(each) for each in tools])[1:-1]
    encoded = tools.kept.get(form)
    if encoded is None:
        encoded = tools.kept[form] = dump([form(each) for each in tools])[1:-1]
    return encoded


def _more_tools(tools: object) -> Sequence[ToolMapping]:
    if isinstance(tools, list | tuple):
        listed = cast("Sequence[object]", tools)
        if all(isinstance(each, Mapping) for each in listed):
            return cast("Sequence[ToolMapping]", listed)
    raise InvalidParametersError(
        "The option tools is no list of mappings.", 'Give each in the server\'s form, such as {"type": "web_search"}.'
    )
