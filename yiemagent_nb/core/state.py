"""AgentState: a snapshot of an agent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from yiemagent_nb.core.messages import AssistantMessage, Message
from yiemagent_nb.core.models import LlmModel, ThinkingLevel
from yiemagent_nb.core.tools import Tool

__all__ = ["AgentState"]


@dataclass(frozen=True, slots=True)
class AgentState:
    """An agent at one moment.

    ``tools`` stand in the order in which they were registered. ``streaming_message`` is what has
    come of the answer that streams in; ``pending_tool_calls`` are the ids of the calls that run.
    """

    system_prompt: str = ""
    model: LlmModel | None = None
    thinking_level: ThinkingLevel = "off"
    tools: Mapping[str, Tool] = field(default_factory=dict[str, Tool])
    messages: tuple[Message, ...] = ()
    is_streaming: bool = False
    streaming_message: AssistantMessage | None = None
    pending_tool_calls: frozenset[str] = frozenset()
    error_message: str | None = None
