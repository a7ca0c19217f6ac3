"""The thinking level as the header shows it: which one is set, and why it may be of no use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from yiemagent_nb.core.backend import Calling
from yiemagent_nb.core.models import THINKING_LEVELS

if TYPE_CHECKING:
    from yiemagent_nb.core.agent import Agent

__all__ = ["thinking_form"]


def thinking_form(agent: Agent) -> dict[str, Any]:
    """What the page shows: ``level``, ``levels``, and a ``note`` where no other can be picked.

    A level that is set can always be taken back; a model of which nothing is known may reason.
    """
    state = agent.state
    return {
        "level": state.thinking_level,
        "levels": list(THINKING_LEVELS),
        "note": _why_not(agent) if state.thinking_level == "off" else "",
    }


def _why_not(agent: Agent) -> str:
    """Why a level would change nothing; empty where it may."""
    if not Calling.of(agent.llm_call).takes("thinking_level"):
        return f"{agent.backend_label} takes no thinking_level."
    model = agent.state.model
    if model is not None and not model.reasoning:
        return f"The model {model.name or model.id} does not reason, as far as is known."
    return ""
