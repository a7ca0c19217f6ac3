"""``list_tools``: the tool with which a model sees everything that it can call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from yiemagent_nb.core.results import ToolResult
from yiemagent_nb.core.tools import Tool, ToolAnnotations
from yiemagent_nb.core.validation import cut
from yiemagent_nb.mcp.plain_text import cut_plain
from yiemagent_nb.mcp.results import MAX_CHARACTERS
from yiemagent_nb.mcp.shelf import Shelf
from yiemagent_nb.mcp.text_limit import limit_text

__all__ = ["LIST_TOOLS", "make_list_tools"]

LIST_TOOLS = "list_tools"
SOURCE = "yiemagent_nb"

MAX_LINE = 120


def make_list_tools(
    discover: Callable[[], Awaitable[None]],
    tools: Callable[[], Mapping[str, Tool]],
    shelves: Callable[[], Sequence[Shelf]],
) -> Tool:
    """The built-in tool ``list_tools``. It works also when every server is down.

    Args:
        discover: Asks all servers again for their tools.
        tools: Everything that the agent can call now.
        shelves: What each server offers.
    """

    async def execute(*_: Any) -> ToolResult:
        before = tools().keys()
        await discover()
        now = tools()
        added = [name for name in now if name not in before]
        new = set(added)
        lines = [_headline(len(now), len(added)), "", *(_line(tool, new=name in new) for name, tool in now.items())]
        lines += ["", *(cut_plain(shelf.describe(), 2000) for shelf in shelves())]
        return ToolResult(
            limit_text(["\n".join(lines)], MAX_CHARACTERS),
            details={"servers": [_facts(shelf) for shelf in shelves()]},
            added_tool_names=tuple(added) or None,
        )

    return Tool(
        name=LIST_TOOLS,
        description="List every tool that can be called, and look for new ones at all servers.",
        execute=execute,
        annotations=ToolAnnotations(read_only=True, destructive=False, idempotent=True),
        source=SOURCE,
        validator=_takes_nothing,
    )


def _takes_nothing(_: dict[str, Any]) -> dict[str, Any]:
    """Arguments do no harm here, and a model that gives some wants the list all the same."""
    return {}


def _headline(count: int, added: int) -> str:
    return f"{count} tool{'' if count == 1 else 's'} can be called, {added or 'none'} of them new:"


def _line(tool: Tool, *, new: bool) -> str:
    description = " ".join(tool.description[: 10 * MAX_LINE].split())
    return f"{tool.name} ({tool.source}{', new' if new else ''}): {cut(description, MAX_LINE)}"


def _facts(shelf: Shelf) -> dict[str, Any]:
    server = shelf.server
    return {
        "name": server.name,
        "state": server.state if server.enabled else "disabled",
        "tools": len(shelf.names),
        "problems": list(shelf.problems),
    }
