"""Slash commands: what a person runs from the composer of a ``ChatPanel``, built in and of their own.

A command of one's own is a template or a function::

    def plot(column):
        \"\"\"Plot a column of the table.\"\"\"
        return f"Plot the column {column!r} of data.csv, with a title."

    AgentWidget(agent, commands={
        "shorter": "Say it again in two sentences. {text}",
        "plot": plot,
    })

``/plot price`` then calls ``plot("price")`` and sends what it returns.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from yiemagent_nb.core.backend import Calling
from yiemagent_nb.core.concurrency import Outcome, run_cancellable, run_in_thread
from yiemagent_nb.core.errors import InvalidParametersError, YiemAgentError, describe_error
from yiemagent_nb.core.models import THINKING_LEVELS
from yiemagent_nb.core.signal import AbortSignal
from yiemagent_nb.widgets.panel import Post
from yiemagent_nb.widgets.texts import one_line, shortened

if TYPE_CHECKING:
    from yiemagent_nb.core.agent import Agent

__all__ = ["ChatCommands", "CommandValue", "Notice", "SlashCommand"]

LONGEST_DESCRIPTION = 120
LONGEST_NOTICE = 4_000
LONGEST_NAME = 40

_NAME = re.compile(rf"[^\W_][\w-]{{0,{LONGEST_NAME - 1}}}")


@dataclass(frozen=True, slots=True)
class Notice:
    """What a command says to the person alone; the model does not read it."""

    text: str


CommandOutcome = str | Notice | None
"""What a command gives: a text to send, a notice to show, or None."""


@dataclass(frozen=True, slots=True)
class SlashCommand:
    """A command that a person runs by ``/name words``.

    Args:
        name: A letter or digit, then letters, digits, ``_`` and ``-``, at most 40; without the slash.
        description: What it does, in a few words.
        takes: What the words behind it are; empty where it takes none.
        run: Gets the words. Sync, then it runs in a worker thread, or async, then on the agent's event loop.

    Raises:
        InvalidParametersError: The name cannot be typed, or ``run`` cannot be called.
    """

    name: str
    description: str
    takes: str
    run: Callable[[str], CommandOutcome | Awaitable[CommandOutcome]]

    def __post_init__(self) -> None:
        given = cast("object", self.name)
        if not isinstance(given, str) or _NAME.fullmatch(given) is None:
            raise InvalidParametersError(
                f"{given!r} is no name of a command.",
                f"It is a letter or digit, then letters, digits, '_' and '-', at most {LONGEST_NAME}; "
                "the slash is not part of it.",
            )
        if not callable(self.run):
            raise InvalidParametersError(f"The command /{given} cannot be called.", "Give a function of one string.")

    @classmethod
    def of(cls, name: str, value: CommandValue) -> SlashCommand:
        """A command of a user: a template that is sent, a function, or a command as it is.

        Raises:
            InvalidParametersError: The name cannot be typed, or ``value`` is none of these.
        """
        if isinstance(value, SlashCommand):
            return cls(name, value.description, value.takes, value.run)
        if isinstance(value, str):
            takes = "text" if "{text}" in value else ""
            return cls(name, one_line(value.replace("{text}", "…"), LONGEST_DESCRIPTION), takes, _Template(value))
        if not callable(cast("object", value)):
            raise InvalidParametersError(
                f"The command /{name} is of type {type(value).__name__}; expected was a string or a function.",
                "Give a template such as 'Translate this: {text}', or a function that gets the words.",
            )
        return cls(name, _describe(value), _parameter(value), value)


CommandValue = str | Callable[[str], CommandOutcome | Awaitable[CommandOutcome]] | SlashCommand
"""What stands for a command: a template in which ``{text}`` becomes the words, or a function of the words."""


@dataclass(frozen=True, slots=True)
class _Template:
    text: str

    def __call__(self, words: str) -> str:
        if "{text}" in self.text:
            return self.text.replace("{text}", words).strip()
        return f"{self.text}\n\n{words}" if words else self.text


class ChatCommands:
    """The commands of one chat: those that are built in, and the user's, which may replace them.

    Args:
        agent: The agent of the chat.
        commands: The user's commands by name.

    Raises:
        InvalidParametersError: A name cannot be typed, or a command is neither a string nor a function.
    """

    def __init__(self, agent: Agent, commands: Mapping[str, CommandValue] | None = None) -> None:
        self._agent = agent
        own = {name: SlashCommand.of(name, value) for name, value in (commands or {}).items()}
        built_in = {each.name: each for each in self._built_in()}
        self._commands: dict[str, SlashCommand] = {**own, **{k: v for k, v in built_in.items() if k not in own}}
        self._own = frozenset(own)

    def forms(self) -> list[dict[str, Any]]:
        """The commands as the page shows them: ``name``, ``description``, ``takes``; the user's first."""
        return [
            {"name": each.name, "description": each.description, "takes": each.takes}
            for each in self._commands.values()
        ]

    def run(self, name: str, text: str, post: Post) -> Coroutine[Any, Any, None] | None:
        """Run a command, from any thread. What it sends goes to the input channel.

        A user's command goes on by itself, and what goes wrong in it becomes a notice.

        Args:
            name: The command.
            text: The words behind it.
            post: Takes ``notice`` events for the page.

        Returns:
            What is to be awaited on the agent's event loop, if anything.

        Raises:
            YiemAgentError: There is no such command, or a built-in one cannot be carried out.
            AgentClosedError: The agent has no event loop for a user's command.
        """
        command = self._commands.get(name)
        if command is None:
            raise InvalidParametersError(
                f"There is no command /{one_line(name, LONGEST_NAME)}.", "Type / for a list of those that there are."
            )
        words = text.strip()
        if name in self._own:
            self._agent.start(lambda: self._work(command, words, post))
            return None
        outcome = command.run(words)
        if inspect.isawaitable(outcome):
            return self._finish(command, outcome, post)
        self._settle(command, outcome, post)
        return None

    async def _work(self, command: SlashCommand, words: str, post: Post) -> None:
        """Carry out a user's command; whatever goes wrong in it becomes a notice."""
        try:
            self._settle(command, await run_cancellable(_call(command, words), AbortSignal()), post)
        except YiemAgentError as error:
            _notify(post, f"/{command.name}: {error.message} {error.hint}")
        except Exception as error:
            cause = cast("BaseException", error.args[0]) if isinstance(error, Outcome) else error
            _notify(post, f"/{command.name} failed: {describe_error(cause)}")

    async def _finish(self, command: SlashCommand, outcome: Awaitable[CommandOutcome], post: Post) -> None:
        self._settle(command, await outcome, post)

    def _settle(self, command: SlashCommand, outcome: object, post: Post) -> None:
        match outcome:
            case None:
                pass
            case Notice():
                _notify(post, outcome.text)
            case str():
                if outcome.strip():
                    self._agent.input_channel.put_nowait(outcome)
            case _:
                raise InvalidParametersError(
                    f"it returned {type(outcome).__name__}; expected was a text to send, a Notice, or None.",
                    f"Change what the function of /{command.name} returns.",
                )

    def _built_in(self) -> tuple[SlashCommand, ...]:
        return (
            SlashCommand("new", "Start a new conversation; this one stays as a branch", "", self._new),
            SlashCommand("stop", "Stop what the agent does", "", self._stop),
            SlashCommand("retry", "Let the agent answer once more", "", self._retry),
            SlashCommand("model", "Let another model answer", "name", self._model),
            SlashCommand("thinking", "Let the model think more or less", "level", self._thinking),
            SlashCommand("tools", "List the tools that are here", "", self._tools),
            SlashCommand("help", "List the commands", "", self._help),
        )

    async def _new(self, _words: str) -> Notice:
        agent = self._agent
        if not agent.messages:
            return Notice("Nothing was said yet.")
        if any(agent.waiting):
            raise InvalidParametersError(
                "Messages wait here, which would go into the new conversation.", "Take them back, or send them first."
            )
        agent.go_back(0)
        return Notice("What was said stays: the first message of the new conversation has a way back to it.")

    def _stop(self, _words: str) -> None:
        self._agent.abort()

    async def _retry(self, _words: str) -> None:
        try:
            await self._agent.begin_regenerate()
        except InvalidParametersError as error:
            raise InvalidParametersError("There is no answer yet to be given once more.", "Say something.") from error

    def _model(self, words: str) -> Notice:
        agent = self._agent
        model = agent.state.model
        if not words:
            now = "The backend chooses the model." if model is None else f"The model is {model.id}."
            return Notice(f"{now} /model NAME sets another.")
        if not Calling.of(agent.llm_call).takes("model"):
            raise InvalidParametersError(
                f"{agent.backend_label} takes no model.", "Choose another backend in the header, or in code."
            )
        agent.set_llm_call(agent.llm_call, words)
        return Notice(f"From the next request on, {one_line(words, LONGEST_DESCRIPTION)} answers.")

    def _thinking(self, words: str) -> Notice:
        levels = ", ".join(THINKING_LEVELS)
        if not words:
            return Notice(f"The thinking level is {self._agent.state.thinking_level}. There are: {levels}.")
        if words not in THINKING_LEVELS:
            raise InvalidParametersError(
                f"There is no thinking level {one_line(words, LONGEST_NAME)!r}.", f"There are: {levels}."
            )
        self._agent.set_thinking_level(words)
        return Notice(f"From the next request on, the thinking level is {words}.")

    def _tools(self, _words: str) -> Notice:
        tools = self._agent.tools.values()
        if not tools:
            return Notice("There are no tools here. agent.add_tools(function) adds one.")
        lines = [
            f"{tool.name}: {one_line(tool.description, LONGEST_DESCRIPTION)}"
            + (f" ({one_line(tool.source, LONGEST_NAME)})" if tool.source != "python" else "")
            for tool in tools
        ]
        return Notice("\n".join(lines))

    def _help(self, _words: str) -> Notice:
        lines = [
            f"/{each.name}{f' {each.takes.upper()}' if each.takes else ''}: {each.description}"
            for each in self._commands.values()
        ]
        return Notice("\n".join([*lines, "Any other text that begins with / is sent as it is."]))


async def _call(command: SlashCommand, words: str) -> object:
    outcome = await run_in_thread(command.run, words)  # of an async one, this only makes the coroutine
    return await outcome if inspect.isawaitable(outcome) else outcome


def _notify(post: Post, text: str) -> None:
    post([{"type": "notice", "text": shortened(text.strip(), LONGEST_NOTICE)}])


def _describe(function: object) -> str:
    first = (inspect.getdoc(function) or "").strip().partition("\n")[0].rstrip(".")
    name = getattr(function, "__name__", type(function).__name__)
    return one_line(first, LONGEST_DESCRIPTION) or f"Run {name}"


def _parameter(function: Callable[..., object]) -> str:
    """What the words are, by the name of the function's first parameter."""
    try:
        names = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # builtins may tell no signature
        return "text"
    return names[0].strip("_").replace("_", " ") if names else "text"
