"""Ollama, over its OpenAI-compatible endpoints.

Source: Ollama's page "OpenAI compatibility".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar

from yiemagent_nb.backends.engine.habits import Habits, Lessons, RequestPlan, Thinking, is_refusal
from yiemagent_nb.backends.kinds import OLLAMA
from yiemagent_nb.core.errors import BackendError, BackendNotFoundError
from yiemagent_nb.core.models import LlmModel, ThinkingLevel

__all__ = ["OllamaHabits"]

_CANNOT_THINK = re.compile(r"does not support thinking|(invalid|unknown|unsupported)\b.{0,40}\b(reasoning|think)")


class OllamaHabits(Habits, kind=OLLAMA):
    """What Ollama takes. It cuts a conversation that is too long for its context without a word."""

    start_hint: ClassVar[str] = "Start it with `ollama serve`, or check host and port."
    tool_choices: ClassVar[frozenset[str]] = frozenset()
    efforts: ClassVar[Mapping[ThinkingLevel, str]] = {
        "off": "none",
        "low": "low",
        "medium": "medium",
        "high": "high",
        "max": "max",
    }

    def thinking(self, level: ThinkingLevel, model: LlmModel, lessons: Lessons) -> Thinking:
        """An effort, unless the model cannot think."""
        return Thinking({}, "off") if "cannot_think" in lessons else super().thinking(level, model, lessons)

    def learn(self, error: BackendError, plan: RequestPlan) -> Lessons:
        """A model that cannot think refuses to be asked to."""
        if is_refusal(error) and _CANNOT_THINK.search(error.message.lower()):
            return {"cannot_think": True}
        return super().learn(error, plan)

    def hint(self, error: BackendError, model: str) -> str:
        """The command that gets a model."""
        if isinstance(error, BackendNotFoundError) and "not found" in error.message and model:
            return f"Run `ollama pull {model}`, or ask `await backend.models()` for the names it has."
        return super().hint(error, model)
