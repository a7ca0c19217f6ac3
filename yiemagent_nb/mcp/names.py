"""Names of servers' tools, as a model calls them.

A server's own name for a tool is kept where it is valid and free. Any other becomes
``server__tool``, with ``_`` for each character that a name may not have; where that is too long
or taken, it is cut and ends in ``_`` and 8 hex digits of
``sha256(server, NUL, tool)``. A name is never split again: a table leads back.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterator
from itertools import count

from yiemagent_nb.core.tools import MAX_NAME_LENGTH, TOOL_NAME

__all__ = ["ToolNames"]

_FOREIGN = re.compile(r"[^a-zA-Z0-9_]")
_DIGITS = 8


class ToolNames:
    """The names that were given in a session, each to one tool of one server.

    A tool keeps its name, also while it is gone, so that neither the order of discoveries nor a
    server that comes and goes changes what a conversation calls it.
    """

    def __init__(self) -> None:
        self._names: dict[tuple[str, str], str] = {}
        self._origins: dict[str, tuple[str, str]] = {}

    def __len__(self) -> int:
        """How many names were given."""
        return len(self._origins)

    def name_for(self, server: str, tool: str, reserved: Collection[str] = ()) -> str:
        """The name of a server's tool: the one that it was given before, else a new one.

        Args:
            server: The server's name.
            tool: The tool's name at the server; any text.
            reserved: Names that belong to others, such as the agent's own tools. A tool whose name
                was taken by one of these meanwhile is given another.

        Returns:
            A valid name for a ``Tool``, which no other tool of the session has.
        """
        origin = (server, tool)
        known = self._names.get(origin)
        if known is not None:
            if known not in reserved:
                return known
            del self._origins[known]
        name = next(name for name in _candidates(server, tool) if name not in self._origins and name not in reserved)
        self._names[origin] = name
        self._origins[name] = origin
        return name

    def origin(self, name: str) -> tuple[str, str] | None:
        """The server and its own name of the tool that has this name; None where none has it."""
        return self._origins.get(name)


def _candidates(server: str, tool: str) -> Iterator[str]:
    """What a tool may be called, best first, without an end."""
    if _is_valid(tool):
        yield tool
    readable = _FOREIGN.sub("_", f"{server}__{tool}")
    if readable[0].isdigit():
        readable = f"_{readable}"
    if len(readable) <= MAX_NAME_LENGTH:
        yield readable
    start = readable[: MAX_NAME_LENGTH - _DIGITS - 1]
    for attempt in count():
        yield f"{start}_{_digest(server, tool, attempt)}"


def _is_valid(name: str) -> bool:
    return len(name) <= MAX_NAME_LENGTH and TOOL_NAME.fullmatch(name) is not None


def _digest(server: str, tool: str, attempt: int) -> str:
    parts = [server, tool] if not attempt else [server, tool, str(attempt)]
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
