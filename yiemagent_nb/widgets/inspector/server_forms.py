"""Servers, and what is said to and by them, as the inspector's page is told of them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from yiemagent_nb.core.json_values import clean_text
from yiemagent_nb.widgets.texts import one_line, shortened

if TYPE_CHECKING:
    from yiemagent_nb.mcp.protocol_log import LogEntry
    from yiemagent_nb.mcp.server import McpServer

__all__ = ["entry_form", "server_form"]

LONGEST_NAME = 200
LONGEST_TARGET = 500
LONGEST_ERROR = 2_000
LONGEST_INSTRUCTIONS = 4_000
LONGEST_LINE = 300
MOST_LINES = 20
MOST_PROBLEMS = 20
LONGEST_PROBLEM = 500
MOST_CAPABILITIES = 30
LONGEST_CAPABILITY = 60
LONGEST_ENTRY = 160
LOOKED_AT = 400
"""Characters of an entry that are read for its line."""

_BODY = re.compile(r'"(?:error|result|params)"\s*:\s*')
_LEVEL = re.compile(r'"level"\s*:\s*"([a-z]{1,20})"')


def server_form(server: McpServer, tools: int, problems: Sequence[str]) -> dict[str, Any]:
    """A server: how it is reached, how it is, and what it says of itself.

    Args:
        server: The server.
        tools: How many tools the agent has of it.
        problems: What discovery has to say of it.
    """
    info, error = server.info, server.error
    return {
        "name": server.name,
        "kind": server.kind,
        "target": one_line(server.target, LONGEST_TARGET),
        "state": server.state,
        "error": "" if error is None else shortened(clean_text(str(error)), LONGEST_ERROR),
        "enabled": server.enabled,
        "latency": server.latency,
        "restarts": server.restarts,
        "protocol": one_line(info.protocol, LONGEST_NAME),
        "title": one_line(info.name, LONGEST_NAME),
        "version": one_line(info.version, LONGEST_NAME),
        "instructions": shortened(info.instructions, LONGEST_INSTRUCTIONS),
        "capabilities": _capabilities(info.capabilities),
        "tools": tools,
        "problems": _some(problems),
        "stderr": [one_line(line, LONGEST_LINE) for line in server.stderr[-MOST_LINES:]],
    }


def _some(problems: Sequence[str]) -> list[str]:
    shown = [shortened(each, LONGEST_PROBLEM) for each in problems[:MOST_PROBLEMS]]
    return shown + ([f"{len(problems) - MOST_PROBLEMS} more"] if len(problems) > MOST_PROBLEMS else [])


def _capabilities(capabilities: Mapping[str, Any]) -> list[str]:
    """The names of capabilities, and what is more than usual in them: ``resources (subscribe)``."""
    names: list[str] = []
    for name, each in list(capabilities.items())[:MOST_CAPABILITIES]:
        inner: Mapping[str, object] = cast("Mapping[str, object]", each) if isinstance(each, Mapping) else {}
        more = [key for key, value in inner.items() if value is True and key != "listChanged"]
        names.append(one_line(f"{name} ({', '.join(more)})" if more else name, LONGEST_CAPABILITY))
    return names


def entry_form(entry: LogEntry) -> dict[str, Any]:
    """Something that crossed the connection, in a line."""
    level = None
    if entry.method == "notifications/message":
        level = _LEVEL.search(entry.beginning(LOOKED_AT))
    return {
        "number": entry.number,
        "time": entry.time * 1000,
        "direction": entry.direction,
        "method": one_line(entry.method, LONGEST_NAME),
        "id": entry.id,
        "summary": one_line(_gist(entry), LONGEST_ENTRY),
        "size": entry.size,
        "seconds": entry.seconds,
        "is_error": entry.is_error,
        "level": "" if level is None else level[1],
    }


def _gist(entry: LogEntry) -> str:
    """What a message says beside its method and its id; other entries as they are."""
    text = entry.beginning(LOOKED_AT)
    if entry.direction not in ("out", "in"):
        return text
    try:
        message: object = json.loads(text)
    except ValueError:  # one that is longer
        found = _BODY.search(text)
        return text if found is None else text[found.end() :]
    if not isinstance(message, dict):
        return text
    fields = cast("dict[str, object]", message)
    body = next((fields[key] for key in ("error", "result", "params") if key in fields), None)
    return "" if body is None else json.dumps(body, ensure_ascii=False)
