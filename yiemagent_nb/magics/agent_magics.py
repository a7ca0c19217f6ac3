"""``%agent`` and ``%%agent``: talk to an agent from a cell."""

# IPython has no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUntypedFunctionDecorator=false

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, cast

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_cell_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring

from yiemagent_nb.core.agent import Agent
from yiemagent_nb.widgets.cell_output import CellOutput

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

__all__ = ["AgentMagics", "await_agent"]

AGENT_NAME = "agent"
"""The variable that ``%agent`` talks to, unless ``--use`` named another."""

_CELL = re.compile(r"%%agent(?=[ \t\r\n]|$)[ \t]*(?P<line>[^\r\n]*)\r?\n?(?P<body>.*)", re.DOTALL)
_LINE = re.compile(r"%agent[ \t]+(?P<question>[^\s-][^\r\n]*)\s*")


@magics_class
class AgentMagics(Magics):
    """The magics, and which agent they talk to."""

    def __init__(self, shell: InteractiveShell) -> None:
        super().__init__(shell)
        self.name = AGENT_NAME

    @magic_arguments()
    @argument("--use", metavar="NAME", help="talk to the agent in this variable from now on")
    @argument("--stop", action="store_true", help="abort what it does")
    @argument("--reset", action="store_true", help="forget the conversation")
    @argument("question", nargs="*", help="what to ask; none shows the agent's state")
    @line_cell_magic
    def agent(self, line: str, cell: str | None = None) -> object:
        """Ask an agent: ``%agent QUESTION`` on a line, ``%%agent`` with the question below it.

        The agent is the variable ``agent``; where there is none, one is made with the first
        backend that is there. The answer appears as it comes, and stands in ``agent.messages``.
        """
        if cell is None and _LINE.fullmatch(f"%agent {line}") is None:
            return self.command(line)
        agent = self.choose(line if cell is not None else "")
        return agent.ask(cell if cell is not None else line)

    def command(self, line: str) -> Agent:
        """Carry out ``--use``, ``--stop`` and ``--reset``; returns the agent, which shows its state."""
        arguments = parse_argstring(cast("Any", self.agent), line)
        agent = self.choose(f"--use {arguments.use}" if arguments.use else "")
        if arguments.stop:
            agent.abort()
        if arguments.reset:
            agent.reset()
        return agent

    def choose(self, line: str) -> Agent:
        """The agent of ``%%agent [--use NAME]``.

        Raises:
            UsageError: The variable holds no agent, or the line is not understood.
        """
        shell = cast("Any", self.shell)
        words = line.split()
        if words:
            if len(words) != 2 or words[0] != "--use":  # noqa: PLR2004 - the option and its value
                raise UsageError(f"%%agent takes --use NAME, not {line!r}; the question stands below it.")
            if not isinstance(_agent_of(shell.user_ns.get(words[1])), Agent):
                raise UsageError(f"The variable {words[1]} holds no agent.")
            self.name = words[1]
        agent = _agent_of(shell.user_ns.get(self.name))
        if agent is None:
            if self.name in shell.user_ns:
                raise UsageError(f"The variable {self.name} holds no agent; name another with %agent --use NAME.")
            from yiemagent_nb.backends.discovery import DefaultBackend  # noqa: PLC0415 - only where nothing was chosen

            agent = shell.user_ns[self.name] = Agent(DefaultBackend())
        return agent

    async def ask(self, line: str, question: str) -> None:
        """What a ``%%agent`` cell becomes: shows the answer as it comes."""
        agent = self.choose(cast("Any", self.shell).var_expand(line, depth=2))
        if not question.strip():
            raise UsageError("Write the question below %%agent.")
        with CellOutput(agent):
            await agent.prompt(question.strip("\n"))


def _agent_of(value: object) -> Agent | None:
    """An agent, or that of a widget."""
    value = getattr(value, "agent", value)
    return value if isinstance(value, Agent) else None


def await_agent(lines: list[str]) -> list[str]:
    """Turn ``%%agent`` cells, and cells of one ``%agent QUESTION`` line, into an ``await``."""
    source = "".join(lines)
    magics = f"get_ipython().magics_manager.registry[{AgentMagics.__name__!r}]"
    if cell := _CELL.fullmatch(source):
        return [f"await {magics}.ask({cell['line']!r}, {cell['body']!r})\n"]
    if line := _LINE.fullmatch(source):
        return [f"await {magics}.ask('', {line['question']!r})\n"]
    return lines
