"""CallStage: what events do not tell of a call, for those who look inside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from yiemagent_nb.core.messages import ToolCall
from yiemagent_nb.core.results import ToolResult

__all__ = ["CallObserver", "CallStage"]


@dataclass(frozen=True, slots=True)
class CallStage:
    """A call got on.

    Args:
        stage: ``runs`` where the tool begins, after validation, hooks, and the wait for a free place. Of a call
            by hand also ``begins`` and ``ends``, which events tell of the model's.
        call: As it was asked for.
        by_hand: Whether a person made it.
        arguments: As the tool is given them; None but where it runs.
        result: What the call came to; None but where it ends.
    """

    stage: Literal["begins", "runs", "ends"]
    call: ToolCall
    by_hand: bool = False
    arguments: dict[str, Any] | None = None
    result: ToolResult | None = None


CallObserver = Callable[[CallStage], None]
"""Told of the stages of calls, on the agent's event loop."""
