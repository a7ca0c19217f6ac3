"""What a run is configured with, and what it keeps while it goes on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from yiemagent_nb.core.backend import LlmCall, OpenAIMessages
from yiemagent_nb.core.hooks import AfterToolCall, AgentContext, BeforeToolCall
from yiemagent_nb.core.limits import Limits
from yiemagent_nb.core.messages import AssistantMessage, Message
from yiemagent_nb.core.models import LlmModel, ThinkingLevel
from yiemagent_nb.core.output import OutputFormat
from yiemagent_nb.core.request import RequestBuilder
from yiemagent_nb.core.signal import AbortSignal
from yiemagent_nb.core.state import AgentState
from yiemagent_nb.core.tools import ExecutionMode

__all__ = ["AroundLlmCall", "FormatMessages", "LoopConfig", "PrepareContext"]

PrepareContext = Callable[[AgentState], AgentContext | Awaitable[AgentContext]]
"""Chooses what is sent: ``prepare_context(state) -> AgentContext``. Called before each request."""

FormatMessages = Callable[[AgentContext], OpenAIMessages | Awaitable[OpenAIMessages]]
"""Turns a context into messages in OpenAI's form. Called after ``prepare_context``."""


AroundLlmCall = Callable[[Callable[..., Awaitable[Any]], OpenAIMessages, dict[str, Any]], Any]
"""Calls the backend: ``around_llm_call(call, messages, options)``, sync or async.

``await call(messages, **options)`` asks the backend and gives what it gave: a text, a mapping, or an
async iterator of pieces. What the hook returns is read in its place. It may change the messages (in
copies: those given are read-only) and the options, call several times, or not at all. ``options`` has
tools, model, thinking_level and what else the backend is offered.
"""


def _nothing() -> Sequence[Message]:
    return ()


@dataclass(kw_only=True)
class LoopConfig:
    """How a run goes. Each field is read anew at every turn, so changing one counts from the next on.

    Args:
        llm_call: Answers; see ``yiemagent_nb.core.backend``.
        model: Given to ``llm_call``; its prices make the cost.
        thinking_level: How much the model should think.
        tool_execution: How the calls of one answer run; a sequential tool makes its batch so.
        prepare_context: Chooses what is sent. Default: everything.
        format_messages: Turns it into OpenAI's form. Default: ``RequestBuilder``.
        around_llm_call: Calls the backend, with what it may change; see ``AroundLlmCall``.
        before_tool_call: One hook or several; may block or change a call.
        after_tool_call: One hook or several; may change a result.
        limits: ``max_turns``, ``max_cost`` and ``concurrent_tool_calls`` bind a run.
        options: Further keywords for ``llm_call``.
        text_tool_calls: Understand calls that a model writes as text.
        output: The form that answers must have. Read once, when the run begins.
        prepare_tools: Awaited before each turn, so that tools which are still being looked up can come.
        deliver: Awaited with each answer before the run goes on.
        take_steering: Called before each further turn; returns what joins the conversation.
        take_follow_ups: Called when the run would end; what it returns goes on with it.
    """

    llm_call: LlmCall
    model: LlmModel | None = None
    thinking_level: ThinkingLevel = "off"
    tool_execution: ExecutionMode = "parallel"
    prepare_context: PrepareContext | None = None
    format_messages: FormatMessages | None = None
    around_llm_call: AroundLlmCall | None = None
    before_tool_call: BeforeToolCall | Sequence[BeforeToolCall] | None = None
    after_tool_call: AfterToolCall | Sequence[AfterToolCall] | None = None
    limits: Limits = field(default_factory=Limits)
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    text_tool_calls: bool = False
    output: OutputFormat[Any] | None = None
    prepare_tools: Callable[[AbortSignal], Awaitable[None]] | None = None
    deliver: Callable[[AssistantMessage, AbortSignal], Awaitable[None]] | None = None
    take_steering: Callable[[], Sequence[Message]] = _nothing
    take_follow_ups: Callable[[], Sequence[Message]] = _nothing
    request_builder: RequestBuilder = field(default_factory=RequestBuilder, repr=False)
