"""OpenRouter.

Source: OpenRouter's API reference and its guide "Reasoning tokens".
"""

from __future__ import annotations

from typing import Any, ClassVar

from yiemagent_nb.backends.engine.habits import ALL_EFFORTS, Habits, RequestPlan
from yiemagent_nb.backends.kinds import OPENROUTER
from yiemagent_nb.core.errors import BackendError, QuotaExceededError

__all__ = ["OpenRouterHabits"]


class OpenRouterHabits(Habits, kind=OPENROUTER):
    """What OpenRouter takes. It states the cost of each answer by itself."""

    key_hint: ClassVar[str] = "Set OPENROUTER_API_KEY before the notebook starts, or give api_key."
    efforts = ALL_EFFORTS

    def fields(self, fields: dict[str, Any], plan: RequestPlan) -> dict[str, Any]:
        """An effort has a place of its own there."""
        if (effort := fields.pop("reasoning_effort", None)) is not None:
            fields["reasoning"] = {"effort": effort, **fields.get("reasoning", {})}
        return super().fields(fields, plan)

    def hint(self, error: BackendError, model: str) -> str:
        """Where credits come from."""
        if isinstance(error, QuotaExceededError):
            return "Add credits at openrouter.ai, or choose a free model."
        return super().hint(error, model)
