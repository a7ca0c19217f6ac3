"""A request as a command for a shell, with curl."""

from __future__ import annotations

import re

from yiemagent_nb.core.backend import attribute_of
from yiemagent_nb.core.errors import InvalidParametersError
from yiemagent_nb.core.exchange import WireExchange
from yiemagent_nb.core.redaction import mask_keys
from yiemagent_nb.tracing.rows import Row
from yiemagent_nb.tracing.sent import sent_of

__all__ = ["curl_of"]

_MASK = "[key]"
_BY_CURL = frozenset({"host", "content-length", "connection", "transfer-encoding"})
"""Headers that curl makes by itself."""


def curl_of(row: Row) -> str:
    """A command that makes the HTTP request of a row again, byte for byte. Keys come from variables.

    The body goes through a pipe: a shell allows no argument as long as a conversation.

    Raises:
        InvalidParametersError: The row has no request, or its backend makes none over HTTP.
    """
    sent = sent_of(row)
    asked = [wire for wire in sent.exchange.wire if wire.method == "POST"] or sent.exchange.wire
    if not asked:
        raise InvalidParametersError(
            f"Row {row.number} has no HTTP request: its backend, {sent.exchange.label}, makes none, or tells of none.",
            "Copy it as Python.",
        )
    variable = attribute_of(sent.exchange.llm_call, "key_variable")
    return _command(asked[-1], variable if isinstance(variable, str) else "")


def _command(wire: WireExchange, key_variable: str) -> str:
    variables: list[str] = []
    target = _quoted(mask_keys(wire.redacted(wire.url)), "MODEL_SERVER_KEY", variables)
    options = [f"--request {wire.method}"]
    for name, value in wire.headers:
        if name.lower() in _BY_CURL:
            continue
        shown = mask_keys(wire.redacted(value))
        variable = _variable(name)
        if name.lower() == "authorization" and _MASK in shown:
            scheme = shown.partition(" ")[0].lower()
            if scheme == "bearer" and key_variable:
                variable = key_variable
            else:
                shown = _MASK  # the variable has the scheme too
        options.append(f"--header {_quoted(f'{name}: {shown}', variable, variables)}")
    lines = [f"curl --no-buffer --silent --show-error {target}", *options]
    if not wire.body:
        return _joined(variables, " \\\n  ".join(lines))
    text = wire.body.decode("utf-8", "surrogateescape")
    body = mask_keys(wire.redacted(text))
    lines += ["--header 'Expect:'", "--data-binary @-"]
    command = f"printf %s {_quoted(body, 'MODEL_SERVER_KEY', variables) if body != text else _single(body)} |\n"
    return _joined(variables, command + " \\\n  ".join(lines))


def _joined(variables: list[str], command: str) -> str:
    heads = [f"# It takes a key from the environment variable {name}.\n" for name in dict.fromkeys(variables)]
    return f"{''.join(heads)}{command}\n"


def _quoted(text: str, variable: str, used: list[str]) -> str:
    """A text as a shell's word; a variable stands where a key was masked."""
    parts = text.split(_MASK)
    if len(parts) > 1:
        used.append(variable)
    return f'"${{{variable}}}"'.join(_single(part) if part or len(parts) == 1 else "" for part in parts)


def _single(text: str) -> str:
    quoted = text.replace("'", "'\\''")
    return f"'{quoted}'"


def _variable(name: str) -> str:
    return re.sub(r"\W+", "_", name).strip("_").upper() or "MODEL_SERVER_KEY"
