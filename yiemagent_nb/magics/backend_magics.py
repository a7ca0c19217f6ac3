"""``%agent_backend``: which backend answers, how it is, and another in its place."""

# IPython has no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUntypedFunctionDecorator=false, reportUntypedBaseClass=false

from __future__ import annotations

import asyncio
import getpass
import re
import shlex
from collections.abc import Coroutine, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from tokenize import DEDENT, INDENT
from typing import TYPE_CHECKING, Any, NamedTuple, Self, cast

from IPython.core.error import StdinNotImplementedError, UsageError
from IPython.core.inputtransformer2 import TokenTransformBase, assemble_continued_line, find_end_of_continued_line
from IPython.core.magic import Magics, line_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring
from pydantic import SecretStr

from yiemagent_nb.backends.discovery import Candidate, DefaultBackend, find_backend
from yiemagent_nb.backends.http.urls import without_login
from yiemagent_nb.backends.named import NAMES, is_address, kind_named, name_of_kind, named_backend
from yiemagent_nb.backends.state import (
    BackendState,
    ask_state,
    is_candidate,
    is_on_this_machine,
    model_name,
    title_of_backend,
    unwrapped,
)
from yiemagent_nb.core.agent import Agent
from yiemagent_nb.core.backend import LlmCall, is_described, provider_of
from yiemagent_nb.core.errors import YiemAgentError
from yiemagent_nb.magics.agent_magics import AgentMagics
from yiemagent_nb.magics.backend_report import BackendReport, Other

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

__all__ = ["AwaitBackend", "BackendMagics", "backends_in"]

LOCAL = "local"
"""Stands before the path of a GGUF file."""

_LINE = re.compile(r"%agent_backend(?=[ \t\r\n\\]|$)")


class _Wish(NamedTuple):
    """What a line asks for."""

    words: list[str]
    key: SecretStr | None
    key_variable: str | None
    check: bool


@magics_class
class BackendMagics(Magics):
    """The magic, and what it learned of models, for completion."""

    def __init__(self, shell: InteractiveShell) -> None:
        super().__init__(shell)
        self.models: dict[str, tuple[str, ...]] = {}
        """The models of backends that were asked, by the name that was typed; ``""`` for the one that answers."""

    @magic_arguments()
    @argument("--key-env", metavar="NAME", help="the environment variable that holds the key")
    @argument("--ask-key", action="store_true", help="ask for the key, so that it does not stand in the notebook")
    @argument("--check", action="store_true", help="ask the backend how it is, wherever it is")
    @argument(
        "backend",
        nargs="*",
        metavar="NAME [MODEL]",
        help=f"{', '.join(NAMES)}; local PATH for a GGUF file; a variable that holds a backend or any callable; "
        "or a server's base URL. None shows the backend that answers",
    )
    @line_magic
    def agent_backend(self, line: str) -> BackendReport:
        """Show an agent's backend, or let another answer from the next turn on.

        The agent is the one of ``%agent``. Shown are the backend, how it is, and what else could
        answer; nothing is sent to a server elsewhere unless its name is typed here or ``--check``
        is given.
        """
        work = self.use(line)
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(asyncio.run, work).result()

    def use(self, line: str) -> Coroutine[Any, Any, BackendReport]:
        """What a line of ``%agent_backend`` becomes: the report, to be awaited.

        Raises:
            UsageError: The line is not understood.
        """
        line = cast("Any", self.shell).var_expand(line, depth=1)
        arguments = parse_argstring(cast("Any", self.agent_backend), line)
        words = _unquoted(arguments.backend)
        if arguments.key_env and arguments.ask_key:
            raise UsageError("Give --key-env or --ask-key, not both.")
        if (arguments.key_env or arguments.ask_key) and not words:
            raise UsageError("Name the backend that the key is for: %agent_backend NAME --ask-key.")
        key = _asked_key(words[0]) if arguments.ask_key else None
        return self._carry_out(_Wish(words, key, arguments.key_env, arguments.check))

    async def _carry_out(self, wish: _Wish) -> BackendReport:
        agent = self._agent()
        try:
            if wish.words:
                backend, model = await self._backend(wish)
                agent.set_llm_call(backend, model)
                return await self._report(agent, wish, ask=wish.check or wish.words[0] != LOCAL)
            backend = agent.llm_call
            if isinstance(backend, DefaultBackend):
                await backend.resolve()
            return await self._report(agent, wish, ask=wish.check or is_on_this_machine(backend))
        except YiemAgentError as error:
            raise UsageError(str(error)) from None

    async def _report(self, agent: Agent, wish: _Wish, *, ask: bool) -> BackendReport:
        backend = agent.llm_call
        state = await ask_state(backend) if ask else BackendState()
        self.models[""] = state.models
        if wish.words:
            self.models[wish.words[0]] = state.models
        name = model_name(backend, agent.state.model, state.models)
        others = None if wish.words else [*await self._others(agent)]
        return BackendReport(title_of_backend(backend), name, state, can_be_asked=not ask, others=others)

    async def _backend(self, wish: _Wish) -> tuple[LlmCall, str | None]:
        """The backend that a line names, and the model to ask it for."""
        name, *rest = wish.words
        if name == LOCAL:
            if not rest:
                raise UsageError("Give the path of a GGUF file: %agent_backend local model.gguf.")
            _refuse_key(wish, "A model on this machine")
            from yiemagent_nb.backends.local import Local  # noqa: PLC0415 - only what is chosen is loaded

            return Local(" ".join(rest)), None
        if len(rest) > 1:
            raise UsageError(f"%agent_backend takes NAME [MODEL], not {' '.join(wish.words)!r}.")
        model = rest[0] if rest else None
        held = backends_in(cast("Any", self.shell).user_ns).get(name)
        if held is not None:
            _refuse_key(wish, f"The backend in the variable {name}")
            return held, model
        if not is_address(name) and name.lower() != "demo" and kind_named(name) is None:
            raise UsageError(
                f"{name} is no backend: it is no variable with one, and none of {', '.join(NAMES)}, local PATH, "
                "or a base URL."
            )
        if wish.key is not None:
            return await named_backend(name, model, api_key=wish.key), None
        if wish.key_variable is not None:
            return await named_backend(name, model, api_key_env=wish.key_variable), None
        return await named_backend(name, model), None

    async def _others(self, agent: Agent) -> Iterator[Other]:
        """What else could answer: on this machine, by a key in the environment, in a variable."""
        current = unwrapped(agent.llm_call)
        found = await find_backend()
        others = [_as_other(each) for each in (found.choice, *found.alternatives) if not is_candidate(current, each)]
        for candidate in (found.choice, *found.alternatives):
            if candidate.models:
                self.models[_name_of(candidate)] = candidate.models
        for name, backend in backends_in(cast("Any", self.shell).user_ns).items():
            if provider_of(backend) and unwrapped(backend) is not current:
                others.append(Other(name, f"{title_of_backend(backend)}, in a variable"))
        return iter(others)

    def _agent(self) -> Agent:
        registry = cast("Any", self.shell).magics_manager.registry
        return cast("AgentMagics", registry[AgentMagics.__name__]).choose("")


class AwaitBackend(TokenTransformBase):
    """Turns a line ``%agent_backend …`` into an ``await``, wherever in a cell it stands unindented."""

    priority = 7  # after help (%agent_backend?), before all other magics

    @classmethod
    def find(cls, tokens_by_line: list[list[Any]]) -> Self | None:
        """The first such line."""
        for line in tokens_by_line:
            first = next((token for token in line if token.type not in {INDENT, DEDENT}), None)
            if first is not None and first.string == "%" and first.start[1] == 0 and _LINE.match(first.line):
                return cls(first.start)
        return None

    def transform(self, lines: list[str]) -> list[str]:
        """The cell with an ``await`` in the place of that line."""
        start: int = self.start_line
        end: int = find_end_of_continued_line(lines, start)
        text = assemble_continued_line(lines, (start, 0), end)
        rest = text[_LINE.match(text).end() :].strip()  # pyright: ignore[reportOptionalMemberAccess] - find saw it
        magics = f"get_ipython().magics_manager.registry[{BackendMagics.__name__!r}]"
        return [*lines[:start], f"await {magics}.use({rest!r})\n", *lines[end + 1 :]]


def backends_in(namespace: Mapping[str, Any]) -> dict[str, LlmCall]:
    """The variables of a person that hold what can be called as a backend."""
    return {
        name: value
        for name, value in namespace.items()
        if not name.startswith("_") and callable(value) and not isinstance(value, type | Agent) and _is_own(value)
    }


def _is_own(value: object) -> bool:
    """Whether it is a backend, or something of the notebook's own rather than IPython's."""
    module = getattr(value, "__module__", None) or type(value).__module__
    return is_described(value) or not str(module).startswith("IPython")


def _unquoted(words: list[str]) -> list[str]:
    return [" ".join(shlex.split(word)) if word[:1] in {"'", '"'} else word for word in words]


def _asked_key(name: str) -> SecretStr:
    try:
        return SecretStr(getpass.getpass(f"Key for {name}: "))
    except StdinNotImplementedError:
        raise UsageError("Nobody can be asked here. Set the key in the environment and use --key-env NAME.") from None


def _refuse_key(wish: _Wish, what: str) -> None:
    if wish.key is not None or wish.key_variable is not None:
        raise UsageError(f"{what} takes no key here.")


def _name_of(candidate: Candidate) -> str:
    return name_of_kind(candidate.provider) or without_login(candidate.base_url)


def _as_other(candidate: Candidate) -> Other:
    return Other(_name_of(candidate), candidate.label)
