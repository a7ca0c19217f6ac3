"""``%agent_tools``: which tools an agent has, and which of them the model is offered."""

# IPython has no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUntypedFunctionDecorator=false

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, cast

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring

from yiemagent_nb.core.tools import Tool
from yiemagent_nb.magics.agent_magics import AgentMagics
from yiemagent_nb.magics.tool_report import ServerLine, ToolReport, ToolSheet

if TYPE_CHECKING:
    from yiemagent_nb.core.agent import Agent
    from yiemagent_nb.widgets.tool_inspector import ToolInspector

__all__ = ["ToolMagics"]


@magics_class
class ToolMagics(Magics):
    """The magic."""

    @magic_arguments()
    @argument("--off", metavar="NAME", help="do not offer the model this tool any more; patterns such as read_* too")
    @argument("--on", metavar="NAME", help="offer it again")
    @argument("--panel", action="store_true", help="show the tool inspector")
    @argument("name", nargs="*", help="a tool, to see all of it, or words and patterns to look for")
    @line_magic
    def agent_tools(self, line: str) -> ToolReport | ToolSheet | ToolInspector:
        """Show an agent's tools by where they come from, or all of one tool.

        The agent is the one of ``%agent``. A tool that is switched off stays registered, and cannot be
        called by the model from the next turn on.
        """
        line = cast("Any", self.shell).var_expand(line, depth=1)
        arguments = parse_argstring(cast("Any", self.agent_tools), line)
        agent = self._agent()
        for pattern, active in ((arguments.off, False), (arguments.on, True)):
            if pattern is not None:
                self._switch(agent, pattern, active=active)
        if arguments.panel:
            from yiemagent_nb.widgets.tool_inspector import ToolInspector  # noqa: PLC0415 - only where it is shown

            return ToolInspector(agent)
        return self._report(agent, arguments.name)

    def _switch(self, agent: Agent, pattern: str, *, active: bool) -> None:
        names = [name for name in agent.registered_tools if name == pattern or fnmatchcase(name, pattern)]
        if not names:
            raise UsageError(f"No tool matches {pattern!r}; %agent_tools lists them.")
        for name in names:
            agent.set_tool_active(name, active)

    def _report(self, agent: Agent, words: list[str]) -> ToolReport | ToolSheet:
        tools = agent.registered_tools
        if len(words) == 1 and (tool := tools.get(words[0])) is not None:
            return ToolSheet(tool, tool.name in agent.tools)
        found = [tool for tool in tools.values() if _matches(tool, words)]
        servers = [_server_line(agent, server) for server in agent.mcp_servers]
        return ToolReport(found, frozenset(agent.tools), servers, len(tools) - len(found))

    def _agent(self) -> Agent:
        registry = cast("Any", self.shell).magics_manager.registry
        return cast("AgentMagics", registry[AgentMagics.__name__]).choose("")


def _matches(tool: Tool, words: Iterable[str]) -> bool:
    said = f"{tool.name} {tool.label} {tool.source} {tool.description}".lower()
    return all(word.lower() in said or fnmatchcase(tool.name, word) for word in words)


def _server_line(agent: Agent, server: Any) -> ServerLine:
    state = server.state if server.enabled else "switched off"
    return ServerLine(server.name, f"{state}, {server.kind} {server.target}", agent.mcp_problems.get(server.name, ()))
