"""Toolbox: an agent's tools, those of its servers among them, and which of them the model is offered."""

from __future__ import annotations

from collections.abc import Mapping

from yiemagent_nb.core.errors import ToolNotFoundError
from yiemagent_nb.core.tool_source import ToolSource, merge_tools
from yiemagent_nb.core.tools import Tool

__all__ = ["Toolbox"]


class Toolbox:
    """What tools there are, and which are switched off.

    Args:
        own: The agent's own tools by name.
    """

    def __init__(self, own: Mapping[str, Tool]) -> None:
        self.own = dict(own)
        self.source: ToolSource | None = None
        self.registered: dict[str, Tool] = dict(own)
        """All tools by name, in the order in which they were registered."""
        self._inactive: set[str] = set()
        """Names of tools that are switched off, those of tools that may come again among them."""

    @property
    def offered(self) -> dict[str, Tool]:
        """Those that are not switched off."""
        return {name: tool for name, tool in self.registered.items() if name not in self._inactive}

    def replace_own(self, own: Mapping[str, Tool]) -> None:
        """Have other tools of the agent's own.

        Raises:
            InvalidParametersError: A server has a tool of that name; nothing was changed.
        """
        self.registered = merge_tools(own, {} if self.source is None else self.source.tools)
        self.own = dict(own)

    def refresh(self) -> bool:
        """Take over what the source has now; returns whether that is new."""
        if self.source is None:
            return False
        merged = merge_tools(self.own, self.source.tools)
        if merged == self.registered:
            return False
        self.registered = merged
        return True

    def set_active(self, name: str, active: bool) -> bool:
        """Switch a tool on or off; returns whether that is new.

        Raises:
            ToolNotFoundError: There is no such tool.
        """
        if name not in self.registered and name not in self._inactive:
            known = ", ".join(list(self.registered)[:20]) or "none"
            raise ToolNotFoundError(f"There is no tool named {name!r}.", f"Tools: {known}.")
        if active == (name not in self._inactive):
            return False
        (self._inactive.discard if active else self._inactive.add)(name)
        return True
