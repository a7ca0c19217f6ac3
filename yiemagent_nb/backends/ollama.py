"""Ollama, over its OpenAI-compatible endpoints.

Source: Ollama's page "OpenAI compatibility".
"""

from __future__ import annotations

from typing import ClassVar

from yiemagent_nb.backends.habits import Habits, RequestPlan, Thinking
from yiemagent_nb.core.errors import BackendError, BackendNotFoundError
from yiemagent_nb.core.models import LlmModel, ThinkingLevel

__all__ = ["OllamaHabits"]


class OllamaHabits(Habits):
    """What Ollama takes. It cuts a conversation that is too long for its context without a word."""

    provider = "ollama"
    title: ClassVar[str] = "Ollama"
    base_url: ClassVar[str] = "http://127.0.0.1:11434/v1"
    start_hint: ClassVar[str] = "Start it with `ollama serve`, or check host and port."
    tool_choices: ClassVar[frozenset[str]] = frozenset()
    efforts = {"off": "none", "low": "low", "medium": "medium", "high": "high", "max": "max"}  # noqa: RUF012 - read only

    def __init__(self) -> None:
        super().__init__()
        self._cannot_think: set[str] = set()

    def thinking(self, level: ThinkingLevel, model: LlmModel) -> Thinking:
        """An effort, unless the model said that it cannot think."""
        return Thinking({}, "off") if model.id in self._cannot_think else super().thinking(level, model)

    def learn(self, error: BackendError, plan: RequestPlan) -> bool:
        """A model that cannot think refuses to be asked."""
        words = error.message.lower()
        if (
            plan.model.id in self._cannot_think
            or error.status is None
            or not ("think" in words or "reasoning" in words)
        ):
            return False
        self._cannot_think.add(plan.model.id)
        return True

    def hint(self, error: BackendError, model: str) -> str:
        """The command that gets a model."""
        if isinstance(error, BackendNotFoundError) and "not found" in error.message and model:
            return f"Run `ollama pull {model}`, or ask `await backend.models()` for the names it has."
        return super().hint(error, model)
