from __future__ import annotations

import importlib
import inspect
import pkgutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import yiemagent_nb

PUBLIC_NAMES = [
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

ALIASES = {"Event", "Message", "ThinkingLevel"}
"""Types of types, which Python gives no docstring of their own."""


def test_the_public_names_are_these() -> None:
    assert yiemagent_nb.__all__ == PUBLIC_NAMES
    assert len(set(PUBLIC_NAMES)) == len(PUBLIC_NAMES)


@pytest.mark.requirement("Y NFR-001")
@pytest.mark.parametrize("name", PUBLIC_NAMES)
def test_a_public_name_can_be_imported_and_explains_itself(name: str) -> None:
    value: Any = getattr(yiemagent_nb, name)
    if name not in ALIASES:
        text = (inspect.getdoc(value) or "").strip()
        assert text
        assert not text.startswith(f"{name}("), "the signature that dataclasses write is no explanation"


@pytest.mark.parametrize("name", PUBLIC_NAMES)
def test_a_public_name_is_listed_by_dir(name: str) -> None:
    assert name in dir(yiemagent_nb)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'yiemagent_nb' has no attribute 'nothing'"):
        _ = yiemagent_nb.nothing


def test_the_version_is_that_of_the_distribution() -> None:
    version = importlib.import_module("importlib.metadata").version("yiemagent_nb")
    assert yiemagent_nb.__version__ == version


@pytest.mark.requirement("Y NFR-001")
def test_everything_can_be_imported_at_once() -> None:
    code = "from yiemagent_nb import *; import yiemagent_nb; assert set(yiemagent_nb.__all__) <= set(globals())"
    run = subprocess.run([sys.executable, "-W", "error", "-c", code], check=False, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def modules() -> list[str]:
    root = str(Path(yiemagent_nb.__file__).parent)
    return ["yiemagent_nb", *(found.name for found in pkgutil.walk_packages([root], "yiemagent_nb."))]


@pytest.mark.parametrize("name", [name for name in modules() if ".core" in name])
def test_a_module_says_what_it_is_and_which_of_its_names_are_for_others(name: str) -> None:
    module = importlib.import_module(name)
    assert (module.__doc__ or "").strip()
    if hasattr(module, "__path__"):  # a folder gives no names of its own
        return
    assert module.__all__ == sorted(module.__all__, key=lambda each: (not each.isupper(), each[0].islower(), each))
    for each in module.__all__:
        assert hasattr(module, each), f"{name}.__all__ lists {each}, which is not there"
