"""Hooks: what they are given and what they may answer.

A hook is a function, sync or async, or a sequence of them that are asked in order. A sync hook is
called on the event loop, so it must be quick. An error in a hook becomes an error result that
names the hook; it stops neither the run nor the agent.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from yiemagent_nb.core.errors import InvalidParametersError
from yiemagent_nb.core.messages import AssistantMessage, Message, ToolCall
from yiemagent_nb.core.results import ToolResult
from yiemagent_nb.core.signal import AbortSignal
from yiemagent_nb.core.tools import Tool

if TYPE_CHECKING:
    from yiemagent_nb.core.approval import Approvals

__all__ = [
    "AfterToolCall",
    "AfterToolCallContext",
    "AgentContext",
    "BeforeToolCall",
    "BeforeToolCallContext",
    "BeforeToolCallResult",
    "Hooks",
    "as_hooks",
    "hook_name",
]


@dataclass(slots=True)
class AgentContext:
    """What one LLM call is made of.

    ``messages`` and ``tools`` are the agent's own, not copies: to change what is sent, build a
    new context in ``prepare_context``.
    """

    system_prompt: str = ""
    messages: Sequence[Message] = ()
    tools: Mapping[str, Tool] = field(default_factory=dict[str, Tool])


@dataclass(frozen=True, slots=True)
class BeforeToolCallContext:
    """A call that passed its validation and is about to run.

    ``arguments`` are a copy: changing them in place changes nothing, return them instead.
    """

    tool_call: ToolCall
    tool: Tool
    arguments: dict[str, Any]
    message: AssistantMessage
    context: AgentContext
    approvals: Approvals


@dataclass(frozen=True, slots=True)
class BeforeToolCallResult:
    """What ``before_tool_call`` may answer; a bare mapping means new ``arguments``.

    Args:
        block: Do not run the call; the model reads ``reason`` as an error.
        reason: Why it was blocked.
        arguments: Run it with these; they are validated again.
        note: Told to the model behind the call's result, whatever that is, as a text of its own;
            such as that the call ran with other arguments than the model gave.
    """

    block: bool = False
    reason: str | None = None
    arguments: Mapping[str, Any] | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class AfterToolCallContext:
    """A call that ran, with its result."""

    tool_call: ToolCall
    tool: Tool
    arguments: dict[str, Any]
    result: ToolResult
    message: AssistantMessage
    context: AgentContext

    @property
    def is_error(self) -> bool:
        """Whether the tool failed."""
        return self.result.is_error


@dataclass(frozen=True, slots=True)
class Hooks:
    """The hooks of an agent, as they are from the next turn on.

    Args:
        prepare_context: Chooses what is sent.
        format_messages: Turns it into OpenAI's form.
        before_tool_call: Asked in order before a call runs.
        after_tool_call: Asked in order after it ran.
        around_llm_call: Calls the backend.
    """

    prepare_context: Callable[..., Any] | None = None
    format_messages: Callable[..., Any] | None = None
    before_tool_call: tuple[Callable[..., Any], ...] = ()
    after_tool_call: tuple[Callable[..., Any], ...] = ()
    around_llm_call: Callable[..., Any] | None = None


BeforeAnswer = BeforeToolCallResult | Mapping[str, Any] | None
AfterAnswer = ToolResult | None
BeforeToolCall = Callable[[BeforeToolCallContext, AbortSignal], BeforeAnswer | Awaitable[BeforeAnswer]]
AfterToolCall = Callable[[AfterToolCallContext], AfterAnswer | Awaitable[AfterAnswer]]


def as_hooks(name: str, hooks: Any) -> tuple[Callable[..., Any], ...]:
    """A hook, a sequence of hooks or None, as a tuple.

    Raises:
        InvalidParametersError: One of them cannot be called.
    """
    if hooks is None:
        return ()
    several = tuple(cast("Sequence[Any]", hooks)) if isinstance(hooks, Sequence) else (hooks,)
    for hook in several:
        if not callable(hook):
            raise InvalidParametersError(
                f"{name} takes a function or a sequence of functions, not {type(hook).__name__}.",
                "Pass a function without calling it.",
            )
    return several


def hook_name(hook: Callable[..., Any]) -> str:
    """What a hook is called in messages."""
    name: str = getattr(hook, "__name__", type(hook).__name__)
    return name
