"""Usage: how full the model's context is, and what was spent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from yiemagent_nb.core.messages import AssistantMessage
from yiemagent_nb.widgets.answer_facts import dollars, newest_first

if TYPE_CHECKING:
    from yiemagent_nb.core.agent import Agent

__all__ = ["usage_form"]


def usage_form(agent: Agent) -> dict[str, Any]:
    """What the page shows: ``context`` and ``window`` in tokens, None where unknown, and ``spent`` in words."""
    messages = agent.messages
    answers = (each for each in newest_first(messages, len(messages)) if isinstance(each, AssistantMessage))
    usage = next((each.usage for each in answers if each.usage is not None), None)
    model = agent.state.model
    return {
        "context": usage.total_tokens if usage is not None and usage.total_tokens else None,
        "window": model.context_window if model is not None and model.context_window else None,
        "spent": dollars(agent.spent),
    }
