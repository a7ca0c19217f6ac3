"""BackendPicker: which backend answers, and what else could."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from yiemagent_nb.backends.discovery import Candidate, DefaultBackend, Found
from yiemagent_nb.core.backend import LlmCall
from yiemagent_nb.core.errors import InvalidParametersError, YiemAgentError

if TYPE_CHECKING:
    from yiemagent_nb.core.agent import Agent

__all__ = ["BackendPicker"]

MODELS_SHOWN = 20
"""So many models of one server are offered."""

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Choice:
    key: str
    label: str
    candidate: Candidate
    model: str | None
    backend: LlmCall | None = None

    def build(self) -> LlmCall:
        if self.backend is None:
            self.backend = self.candidate.build(self.model)
        return self.backend


class BackendPicker:
    """Shows an agent's backend and, where the choice was left open, sets another that was found.

    Args:
        agent: The agent.
        changed: Called when ``form`` says something new, from any thread.
    """

    def __init__(self, agent: Agent, changed: Callable[[], None]) -> None:
        self._agent = agent
        self._changed = changed
        self._choices: list[_Choice] = []
        self._note = ""
        self._looking = False
        self._forget: Callable[[], None] | None = None

    def form(self) -> dict[str, Any]:
        """What the page shows."""
        current = self._agent.llm_call
        key = next((choice.key for choice in self._choices if choice.backend is current), "")
        choices = [{"key": choice.key, "label": choice.label} for choice in self._choices]
        label = self._agent.backend_label
        if isinstance(current, DefaultBackend):
            label = current.label if current.found is not None else "Looking for a model…"
        if choices and not key:  # someone set a backend in code
            choices.insert(0, {"key": "", "label": label})
        return {
            "label": label,
            "choices": choices,
            "key": key,
            "note": self._note if key or not choices else "",
        }

    def suggestions(self) -> list[str]:
        """Prompts that the backend itself offers."""
        backend = self._agent.llm_call
        if isinstance(backend, DefaultBackend) and backend.found is not None:
            backend = backend.found.backend
        offered = getattr(backend, "suggestions", ())
        if not isinstance(offered, Iterable) or isinstance(offered, str):
            return []
        return [prompt for prompt in cast("Iterable[object]", offered) if isinstance(prompt, str)]

    def look(self) -> None:
        """Look what is there, if the agent leaves the choice open. From any thread; returns at once."""
        backend = self._agent.llm_call
        if not isinstance(backend, DefaultBackend) or self._looking:
            return
        self._looking = True
        self._forget = backend.on_resolved(lambda found: self._take(backend, found))
        if backend.found is None:
            # In a thread of its own: looking takes a second, and whether this thread's loop runs on is not known.
            threading.Thread(target=self._resolve, args=(backend,), daemon=True).start()

    def choose(self, key: str) -> None:
        """Let another backend answer from the next turn on. From any thread.

        Raises:
            InvalidParametersError: No such choice is offered.
        """
        choice = next((choice for choice in self._choices if choice.key == key), None)
        if choice is None:
            raise InvalidParametersError("No such backend is offered here.", "Look again: run the cell anew.")
        self._note = choice.candidate.reason
        self._agent.set_llm_call(choice.build())

    def close(self) -> None:
        """Wait for no choice any more."""
        if self._forget is not None:
            self._forget()

    def _resolve(self, backend: DefaultBackend) -> None:
        try:
            asyncio.run(backend.resolve())
        except YiemAgentError as error:
            self._looking = False
            self._note = str(error)
            _log.warning("no backend could be chosen: %s", error)
            self._changed()

    def _take(self, backend: DefaultBackend, found: Found) -> None:
        choices: list[_Choice] = []
        for candidate in (found.choice, *found.alternatives):
            models = candidate.models[:MODELS_SHOWN] or (None,)
            for position, model in enumerate(models):
                label = candidate.label if position == 0 else f"{candidate.label.partition(': ')[0]}: {model}"
                choices.append(_Choice(str(len(choices)), label, candidate, model))
        choices[0].backend = backend  # it answers as what was chosen
        self._choices = choices
        self._note = found.reason
        self._changed()
