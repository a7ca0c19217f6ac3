"""BackendWatch: how an agent's backend is, and which models it has."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from yiemagent_nb.backends.discovery import DefaultBackend
from yiemagent_nb.backends.state import (
    LONGEST_ASKING,
    BackendState,
    ask_state,
    is_on_this_machine,
    model_name,
    unwrapped,
)
from yiemagent_nb.core.backend import attribute_of
from yiemagent_nb.core.errors import YiemAgentError, describe_error
from yiemagent_nb.core.events import Event, MessageEnd
from yiemagent_nb.core.messages import AssistantMessage
from yiemagent_nb.core.signal import AbortSignal
from yiemagent_nb.widgets.error_text import read_error
from yiemagent_nb.widgets.in_thread import in_thread
from yiemagent_nb.widgets.texts import shortened

if TYPE_CHECKING:
    from yiemagent_nb.core.agent import Agent
    from yiemagent_nb.core.backend import LlmCall

__all__ = ["BackendWatch"]

LONGEST_WAIT = LONGEST_ASKING + 5
"""Seconds that the agent's event loop has, to come to it and to ask."""
LONGEST_MESSAGE = 1000
"""Characters of what a backend says of itself."""

_log = logging.getLogger(__name__)

_TELLING = frozenset({"CONNECTION", "TIMEOUT", "AUTHENTICATION", "NOT_FOUND", "QUOTA_EXCEEDED"})
"""The errors after which the next request would fail too."""


class BackendWatch:
    """Knows how the backend that answers now is.

    Nothing is sent to a server that is not on this machine unless ``check`` is called, which a person's
    doing calls for; what answers of runs tell is taken up.

    Args:
        agent: The agent.
        changed: Called when ``form`` says something new, from any thread.
    """

    def __init__(self, agent: Agent, changed: Callable[[], None]) -> None:
        self._agent = agent
        self._changed = changed
        self._backend: LlmCall | None = None
        self._state = BackendState()
        self._foreseen: tuple[LlmCall, BackendState] | None = None
        self._closed = AbortSignal()

    @property
    def state(self) -> BackendState:
        """How the backend is, as far as it is known."""
        backend = unwrapped(self._agent.llm_call)
        if backend is not self._backend:
            expected, state = self._foreseen or (None, BackendState())
            self._backend, self._state = backend, state if expected is backend else BackendState()
        return self._state

    def form(self) -> dict[str, Any]:
        """What the page shows: ``health``, ``models``, and the ``model`` that answers with its ``window``."""
        state, model = self.state, self._agent.state.model
        health = {
            "state": state.state,
            "message": shortened(state.message, LONGEST_MESSAGE),
            "hint": shortened(state.hint, LONGEST_MESSAGE),
        }
        name = model_name(self._agent.llm_call, model, state.models)
        window = (model.context_window if model is not None else None) or state.windows.get(name)
        return {"health": health, "models": list(state.models), "model": name, "window": window}

    def glance(self) -> None:
        """Ask the backend if it is on this machine and nothing is known of it. From any thread; returns at once."""
        if self.state.state == "unknown" and is_on_this_machine(self._agent.llm_call):
            self.check()

    def check(self) -> None:
        """Ask the backend how it is, wherever it is. From any thread; returns at once."""
        state = self.state
        backend = self._backend
        undecided = isinstance(backend, DefaultBackend)  # it asks nobody before it has chosen
        if backend is None or undecided or state.state == "checking" or self._closed.aborted:
            return
        self._set(replace(state, state="checking", message="", hint=""))

        async def ask() -> None:
            self.know(backend, await self._ask(backend))

        in_thread(ask, self._closed)

    async def _ask(self, backend: LlmCall) -> BackendState:
        """How a backend is; one with a user's client is asked where that lives, on the agent's event loop."""
        if not attribute_of(attribute_of(backend, "connection"), "has_users_client"):
            return await ask_state(backend)
        try:
            async with asyncio.timeout(LONGEST_WAIT):
                return await self._agent.alongside(lambda _signal: ask_state(backend))
        except TimeoutError:
            return BackendState("unknown", "It could not be asked: the kernel is busy.", "Check again afterwards.")
        except YiemAgentError as error:
            return BackendState("unknown", f"It could not be asked: {error.message}", error.hint)
        except Exception as error:
            _log.exception("a backend could not be asked on the agent's event loop")
            return BackendState("unknown", f"It could not be asked: {describe_error(error)}")

    def foresee(self, backend: LlmCall, state: BackendState) -> None:
        """Keep how a backend is that will answer soon, so that it is not asked once more when it does."""
        self._foreseen = unwrapped(backend), state

    def know(self, backend: LlmCall, state: BackendState) -> None:
        """Take up how a backend is, if it is the one that answers now."""
        if unwrapped(backend) is unwrapped(self._agent.llm_call):
            _ = self.state  # another backend may have taken its place since
            self._set(state)

    def observe(self, event: Event) -> None:
        """Learn from the answers of runs."""
        if not isinstance(event, MessageEnd) or not isinstance(event.message, AssistantMessage):
            return
        message, state = event.message, self.state
        if message.stop_reason == "aborted":
            return
        if message.stop_reason != "error":
            if state.state == "bad" or (state.state == "unknown" and not state.message):
                self._set(replace(state, state="ok", message="It answered the last message.", hint=""))
            return
        error = read_error(message.error_message or "")
        if error.code in _TELLING:
            self._set(replace(state, state="bad", message=error.message, hint=error.hint))

    def close(self) -> None:
        """Tell nothing more, and ask no more."""
        self._closed.abort("the widget was closed")

    def _set(self, state: BackendState) -> None:
        self._state = state
        if not self._closed.aborted:
            self._changed()
