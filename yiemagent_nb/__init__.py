"""A Jupyter-first toolkit for LLM agents that call tools.

In a notebook::

    %load_ext yiemagent_nb
    from yiemagent_nb import AgentWidget
    AgentWidget()

In a script::

    from yiemagent_nb import Agent
    print(Agent(my_llm_call, tools=[add]).ask("What is 17 + 25?").text)

Names are imported when they are first used, so that ``import yiemagent_nb`` stays light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from IPython.core.interactiveshell import InteractiveShell

    from yiemagent_nb.backends.connecting import connect
    from yiemagent_nb.backends.demo import Demo
    from yiemagent_nb.backends.discovery import DefaultBackend, find_backend
    from yiemagent_nb.backends.engine.model_server import Health
    from yiemagent_nb.backends.engine.options import ServerOptions
    from yiemagent_nb.backends.http.connection import Timeouts
    from yiemagent_nb.backends.http.retry import RetryPolicy
    from yiemagent_nb.backends.lm_studio import LMStudio
    from yiemagent_nb.backends.local import Local
    from yiemagent_nb.backends.openai import OpenAI
    from yiemagent_nb.backends.openai_compatible import OpenAICompatible
    from yiemagent_nb.backends.prices import PriceTable
    from yiemagent_nb.backends.scripted import Scripted
    from yiemagent_nb.backends.vllm import VLLM
    from yiemagent_nb.core.agent import Agent
    from yiemagent_nb.core.approval import Approvals, Decision, approve
    from yiemagent_nb.core.channels import SHUTDOWN, Channel
    from yiemagent_nb.core.config import LoopConfig
    from yiemagent_nb.core.errors import (
        AuthenticationError,
        BackendConnectionError,
        BackendError,
        BackendNotFoundError,
        BackendRateLimitedError,
        BackendTimeoutError,
        BadRequestError,
        ContextLengthError,
        MalformedResponseError,
        McpConnectionError,
        McpError,
        McpTimeoutError,
        OutputInvalidError,
        QuotaExceededError,
        ServerError,
        StreamInterruptedError,
        YiemAgentError,
    )
    from yiemagent_nb.core.events import (
        AgentEnd,
        AgentError,
        AgentStart,
        ApprovalRequested,
        ApprovalResolved,
        BackendChanged,
        Event,
        HistoryChanged,
        HooksChanged,
        MessageEnd,
        MessageStart,
        MessageUpdate,
        QuestionAnswered,
        QuestionAsked,
        QueueChanged,
        ToolExecutionEnd,
        ToolExecutionStart,
        ToolExecutionUpdate,
        ToolsChanged,
        Trace,
        TurnEnd,
        TurnStart,
        dump_event,
        load_event,
    )
    from yiemagent_nb.core.exchange import Exchange, WireExchange
    from yiemagent_nb.core.hooks import (
        AfterToolCallContext,
        AgentContext,
        BeforeToolCallContext,
        BeforeToolCallResult,
        Hooks,
    )
    from yiemagent_nb.core.limits import Limits
    from yiemagent_nb.core.loop import EventStream, agent_loop, agent_loop_continue, stream_assistant_response
    from yiemagent_nb.core.messages import (
        AssistantMessage,
        AssistantToolCallMessage,
        CustomMessage,
        ImageContent,
        Message,
        ReasoningContent,
        TextContent,
        ToolCall,
        ToolResultMessage,
        UserMessage,
        dump_message,
        load_message,
    )
    from yiemagent_nb.core.models import Cost, LlmModel, ModelCost, ThinkingLevel, Usage
    from yiemagent_nb.core.openai_form import from_openai, parse_messages, to_openai, tool_to_openai
    from yiemagent_nb.core.output import OutputFormat
    from yiemagent_nb.core.questions import Questions
    from yiemagent_nb.core.reading.extract import extract
    from yiemagent_nb.core.results import ToolResult
    from yiemagent_nb.core.signal import AbortSignal
    from yiemagent_nb.core.state import AgentState
    from yiemagent_nb.core.tool_source import ToolSource
    from yiemagent_nb.core.tools import Tool, ToolAnnotations, ToolContext, tool
    from yiemagent_nb.mcp.config import read_mcp_config
    from yiemagent_nb.mcp.link import Progress, ServerInfo
    from yiemagent_nb.mcp.nats.service import serve_on_nats
    from yiemagent_nb.mcp.oauth import FileTokenStorage, OAuth
    from yiemagent_nb.mcp.server import McpServer, ServerEvent
    from yiemagent_nb.sessions.export import save_conversation
    from yiemagent_nb.sinks.jsonl import JsonlSink
    from yiemagent_nb.sinks.log import LogSink
    from yiemagent_nb.tracing.recorder import TraceRecorder
    from yiemagent_nb.widgets.agent_widget import AgentWidget
    from yiemagent_nb.widgets.chat_panel import ChatPanel
    from yiemagent_nb.widgets.hook_editor import HookEditor
    from yiemagent_nb.widgets.tool_inspector import ToolInspector
    from yiemagent_nb.widgets.trace_panel import TracePanel

_HOMES = {
    "backends.connecting": ("connect",),
    "backends.demo": ("Demo",),
    "backends.discovery": ("find_backend",),
    "backends.http.connection": ("Timeouts",),
    "backends.lm_studio": ("LMStudio",),
    "backends.local": ("Local",),
    "backends.engine.model_server": ("Health",),
    "backends.openai": ("OpenAI",),
    "backends.openai_compatible": ("OpenAICompatible",),
    "backends.engine.options": ("ServerOptions",),
    "backends.prices": ("PriceTable",),
    "backends.http.retry": ("RetryPolicy",),
    "backends.scripted": ("Scripted",),
    "backends.vllm": ("VLLM",),
    "core.agent": ("Agent",),
    "core.approval": ("Approvals", "Decision", "approve"),
    "core.channels": ("SHUTDOWN", "Channel"),
    "core.config": ("LoopConfig",),
    "core.errors": (
        "AuthenticationError",
        "BackendConnectionError",
        "BackendError",
        "BackendNotFoundError",
        "BackendRateLimitedError",
        "BackendTimeoutError",
        "BadRequestError",
        "ContextLengthError",
        "MalformedResponseError",
        "McpConnectionError",
        "McpError",
        "McpTimeoutError",
        "OutputInvalidError",
        "QuotaExceededError",
        "ServerError",
        "StreamInterruptedError",
        "YiemAgentError",
    ),
    "core.events": (
        "AgentEnd",
        "AgentError",
        "AgentStart",
        "ApprovalRequested",
        "ApprovalResolved",
        "BackendChanged",
        "Event",
        "HistoryChanged",
        "HooksChanged",
        "MessageEnd",
        "MessageStart",
        "MessageUpdate",
        "QuestionAnswered",
        "QuestionAsked",
        "QueueChanged",
        "ToolExecutionEnd",
        "ToolExecutionStart",
        "ToolExecutionUpdate",
        "ToolsChanged",
        "Trace",
        "TurnEnd",
        "TurnStart",
        "dump_event",
        "load_event",
    ),
    "core.output": ("OutputFormat",),
    "core.questions": ("Questions",),
    "core.reading.extract": ("extract",),
    "core.exchange": ("Exchange", "WireExchange"),
    "core.hooks": ("AfterToolCallContext", "AgentContext", "BeforeToolCallContext", "BeforeToolCallResult", "Hooks"),
    "core.limits": ("Limits",),
    "core.loop": ("EventStream", "agent_loop", "agent_loop_continue", "stream_assistant_response"),
    "core.messages": (
        "AssistantMessage",
        "AssistantToolCallMessage",
        "CustomMessage",
        "ImageContent",
        "Message",
        "ReasoningContent",
        "TextContent",
        "ToolCall",
        "ToolResultMessage",
        "UserMessage",
        "dump_message",
        "load_message",
    ),
    "core.models": ("Cost", "LlmModel", "ModelCost", "ThinkingLevel", "Usage"),
    "core.openai_form": ("from_openai", "parse_messages", "to_openai", "tool_to_openai"),
    "core.results": ("ToolResult",),
    "core.signal": ("AbortSignal",),
    "core.state": ("AgentState",),
    "core.tools": ("Tool", "ToolAnnotations", "ToolContext", "tool"),
    "mcp.config": ("read_mcp_config",),
    "mcp.link": ("Progress", "ServerInfo"),
    "mcp.nats.service": ("serve_on_nats",),
    "mcp.oauth": ("FileTokenStorage", "OAuth"),
    "mcp.server": ("McpServer", "ServerEvent"),
    "sessions.export": ("save_conversation",),
    "sinks.jsonl": ("JsonlSink",),
    "sinks.log": ("LogSink",),
    "tracing.recorder": ("TraceRecorder",),
    "widgets.agent_widget": ("AgentWidget",),
    "widgets.chat_panel": ("ChatPanel",),
    "widgets.hook_editor": ("HookEditor",),
    "widgets.tool_inspector": ("ToolInspector",),
    "widgets.trace_panel": ("TracePanel",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "SHUTDOWN",
    "VLLM",
    "AbortSignal",
    "AfterToolCallContext",
    "Agent",
    "AgentContext",
    "AgentEnd",
    "AgentError",
    "AgentStart",
    "AgentState",
    "AgentWidget",
    "ApprovalRequested",
    "ApprovalResolved",
    "Approvals",
    "AssistantMessage",
    "AssistantToolCallMessage",
    "AuthenticationError",
    "BackendChanged",
    "BackendConnectionError",
    "BackendError",
    "BackendNotFoundError",
    "BackendRateLimitedError",
    "BackendTimeoutError",
    "BadRequestError",
    "BeforeToolCallContext",
    "BeforeToolCallResult",
    "Channel",
    "ChatPanel",
    "ContextLengthError",
    "Cost",
    "CustomMessage",
    "Decision",
    "Demo",
    "Event",
    "EventStream",
    "Exchange",
    "FileTokenStorage",
    "Health",
    "HistoryChanged",
    "HookEditor",
    "Hooks",
    "HooksChanged",
    "ImageContent",
    "JsonlSink",
    "LMStudio",
    "Limits",
    "LlmModel",
    "Local",
    "LogSink",
    "LoopConfig",
    "MalformedResponseError",
    "McpConnectionError",
    "McpError",
    "McpServer",
    "McpTimeoutError",
    "Message",
    "MessageEnd",
    "MessageStart",
    "MessageUpdate",
    "ModelCost",
    "OAuth",
    "OpenAI",
    "OpenAICompatible",
    "OutputFormat",
    "OutputInvalidError",
    "PriceTable",
    "Progress",
    "QuestionAnswered",
    "QuestionAsked",
    "Questions",
    "QueueChanged",
    "QuotaExceededError",
    "ReasoningContent",
    "RetryPolicy",
    "Scripted",
    "ServerError",
    "ServerEvent",
    "ServerInfo",
    "ServerOptions",
    "StreamInterruptedError",
    "TextContent",
    "ThinkingLevel",
    "Timeouts",
    "Tool",
    "ToolAnnotations",
    "ToolCall",
    "ToolContext",
    "ToolExecutionEnd",
    "ToolExecutionStart",
    "ToolExecutionUpdate",
    "ToolInspector",
    "ToolResult",
    "ToolResultMessage",
    "ToolsChanged",
    "Trace",
    "TracePanel",
    "TraceRecorder",
    "TurnEnd",
    "TurnStart",
    "Usage",
    "UserMessage",
    "WireExchange",
    "YiemAgentError",
    "agent_loop",
    "agent_loop_continue",
    "approve",
    "connect",
    "dump_event",
    "dump_message",
    "extract",
    "find_backend",
    "from_openai",
    "load_event",
    "load_ipython_extension",
    "load_message",
    "parse_messages",
    "read_mcp_config",
    "save_conversation",
    "serve_on_nats",
    "stream_assistant_response",
    "to_openai",
    "tool",
    "tool_to_openai",
    "unload_ipython_extension",
]


def __getattr__(name: str) -> Any:
    """Import a public name from its home at its first use (PEP 562)."""
    if name == "__version__":
        from importlib.metadata import version  # noqa: PLC0415 - costs as much as all else here

        return version("yiemagent_nb")
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    if name == "Agent":
        import_module(f"{__name__}.core.backend").set_default_backend(_default_backend)
        import_module(f"{__name__}.core.tool_source").set_tool_source(_tool_source)
    globals()[name] = value
    return value


def _default_backend() -> DefaultBackend:
    """What answers when ``Agent()`` is given no backend: the core itself knows none."""
    from yiemagent_nb.backends.discovery import DefaultBackend  # noqa: PLC0415 - only where nothing was chosen

    return DefaultBackend()


def _tool_source(servers: Iterable[Any]) -> ToolSource:
    """Where the tools of ``Agent(mcp_servers=…)`` come from: the core itself knows no MCP."""
    from yiemagent_nb.mcp.registry import McpTools  # noqa: PLC0415 - only where servers are named

    return McpTools(servers)


def __dir__() -> list[str]:
    """The public names, those not yet imported too."""
    return sorted({*globals(), *__all__})


def load_ipython_extension(ipython: InteractiveShell) -> None:
    """``%load_ext yiemagent_nb``: registers the magics and makes interrupts wake a waiting cell."""
    from yiemagent_nb.magics import load  # noqa: PLC0415 - only a notebook needs it

    load(ipython)


def unload_ipython_extension(ipython: InteractiveShell) -> None:
    """``%unload_ext yiemagent_nb``: takes everything back."""
    from yiemagent_nb.magics import unload  # noqa: PLC0415

    unload(ipython)
