"""Completion of ``%agent_backend``: names, variables, options, files, environment variables and models."""

# IPython has no types.
# pyright: reportUnknownVariableType=false, reportUntypedFunctionDecorator=false

from __future__ import annotations

import asyncio
import os
import re
import threading
from collections.abc import Callable, Coroutine, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from IPython.core.completer import CompletionContext, SimpleCompletion, SimpleMatcherResult, context_matcher

from yiemagent_nb.backends.engine.probing import find_local_servers
from yiemagent_nb.backends.kinds import OPENAI, Kind
from yiemagent_nb.backends.named import NAMES, is_address, kind_named
from yiemagent_nb.backends.state import ask_state, is_on_this_machine
from yiemagent_nb.core.backend import LlmCall
from yiemagent_nb.core.errors import InvalidParametersError
from yiemagent_nb.core.proxies import is_loopback
from yiemagent_nb.magics.backend_magics import LOCAL, BackendMagics, backends_in

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["BackendCompleter"]

Value = TypeVar("Value")

PATIENCE = 1.0
"""Seconds that a server on this machine may take; one elsewhere is not asked for a Tab."""

_LINE = re.compile(r"%?agent_backend[ \t]+(?P<rest>.*)", re.DOTALL)
_OPTIONS = ("--key-env", "--ask-key", "--check")
_SECRET = re.compile(r"KEY|TOKEN|SECRET")


class BackendCompleter:
    """Completes lines of ``%agent_backend``: ``complete`` is a matcher of IPython's completer.

    Args:
        magics: What the models that were seen are taken from.
        namespace: The variables of the person.
    """

    def __init__(self, magics: BackendMagics, namespace: Mapping[str, Any]) -> None:
        self._magics = magics
        self._namespace = namespace

    @context_matcher(identifier="yiemagent_nb.agent_backend", priority=100)
    def complete(self, context: CompletionContext) -> SimpleMatcherResult:
        """What may stand at the cursor."""
        line = _LINE.fullmatch(context.text_until_cursor)
        if line is None:
            return {"completions": [], "suppress": False}
        *before, word = re.split(r"[ \t]+", line["rest"])
        matches = [each for each in self._candidates(before, word) if each.startswith(word)]
        return {
            "completions": [SimpleCompletion(each, type="param") for each in matches],
            "matched_fragment": word,
            "ordered": True,
            "suppress": True,
        }

    def _candidates(self, before: list[str], word: str) -> Iterable[str]:
        if before and before[-1] == "--key-env":
            return sorted(filter(_SECRET.search, os.environ))
        if word.startswith("-"):
            return _OPTIONS
        words = _without_options(before)
        match words:
            case []:
                return [*NAMES, LOCAL, *sorted(backends_in(self._namespace))]
            case [name] if name == LOCAL:
                return _files(word)
            case [name]:
                return self._models(name)
            case _:
                return []

    def _models(self, name: str) -> Iterable[str]:
        """The models of a backend, as far as they are known or this machine can tell."""
        backend = backends_in(self._namespace).get(name)
        kind = kind_named(name)
        if known := self._magics.models.get(name):
            return known
        if backend is not None:
            return _listed(backend) if is_on_this_machine(backend) else ()
        if kind is not None:
            return _models_of(kind)
        return _models_at(name) if is_address(name) and is_loopback(name) else ()


def _models_of(kind: Kind) -> Iterable[str]:
    if kind is OPENAI:
        from yiemagent_nb.backends.openai import known_models  # noqa: PLC0415 - loads the HTTP library

        return known_models()
    servers = _within(lambda: find_local_servers(kind.ports, PATIENCE), []) if kind.ports else []
    return next((server.models for server in servers if server.provider == kind.provider), ())


def _models_at(address: str) -> Iterable[str]:
    from yiemagent_nb.backends.openai_compatible import OpenAICompatible  # noqa: PLC0415 - loads the HTTP library

    try:
        return _listed(OpenAICompatible(address))
    except InvalidParametersError:  # it is typed in part
        return ()


def _listed(backend: LlmCall) -> Iterable[str]:
    state = _within(lambda: ask_state(backend), None)
    return () if state is None else state.models


def _within(work: Callable[[], Coroutine[Any, Any, Value]], otherwise: Value) -> Value:
    """What ``work`` gives in time: the kernel waits for a completion."""
    found = [otherwise]

    def run() -> None:
        found[0] = asyncio.run(work())

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(PATIENCE + 0.5)
    return found[0]


def _files(word: str) -> list[str]:
    """GGUF files, and folders on the way to them."""
    start, _, _ = word.rpartition("/")
    folder = Path(f"{start}/" if start or word.startswith("/") else ".").expanduser()
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        return []
    before = f"{start}/" if "/" in word else ""
    folders = [f"{before}{entry.name}/" for entry in entries if entry.is_dir() and not entry.name.startswith(".")]
    return [*folders, *(f"{before}{entry.name}" for entry in entries if entry.suffix == ".gguf")]


def _without_options(words: list[str]) -> list[str]:
    kept: list[str] = []
    skip = False
    for word in words:
        if skip or word.startswith("-"):
            skip = word == "--key-env" and not skip
        else:
            kept.append(word)
    return kept
