"""The one tree of errors.

Each carries a stable ``code``, what happened (``message``) and what to do next (``hint``)::

    YiemAgentError
    ├── AgentBusyError             AGENT_BUSY
    ├── InvalidMessageRoleError    INVALID_MESSAGE_ROLE
    ├── AgentNotFoundError         AGENT_NOT_FOUND
    ├── AgentClosedError           AGENT_CLOSED
    ├── ToolNotFoundError          TOOL_NOT_FOUND
    ├── ToolNotSupportedError      TOOL_NOT_SUPPORTED
    ├── InvalidParametersError     INVALID_PARAMETERS
    ├── ExecutionTimeoutError      EXECUTION_TIMEOUT
    ├── ExecutionAbortedError      EXECUTION_ABORTED
    ├── ToolFailedError            TOOL_FAILED
    ├── HookError                  HOOK_ERROR
    ├── RateLimitedError           RATE_LIMITED
    ├── ChannelFull                CHANNEL_FULL
    ├── ChannelClosed              CHANNEL_CLOSED
    ├── SessionInvalidError        SESSION_INVALID
    ├── OutputInvalidError         OUTPUT_INVALID
    ├── McpError                   MCP_ERROR
    │   ├── McpConnectionError         MCP_CONNECTION
    │   └── McpTimeoutError            MCP_TIMEOUT
    └── BackendError               BACKEND_ERROR
        ├── AuthenticationError        AUTHENTICATION
        ├── BackendNotFoundError       NOT_FOUND
        ├── BackendRateLimitedError    RATE_LIMITED (a RateLimitedError too)
        ├── QuotaExceededError         QUOTA_EXCEEDED
        ├── ContextLengthError         CONTEXT_LENGTH_EXCEEDED
        ├── BadRequestError            BAD_REQUEST
        ├── ServerError                SERVER_ERROR
        ├── BackendConnectionError     CONNECTION
        ├── BackendTimeoutError        TIMEOUT
        ├── StreamInterruptedError     STREAM_INTERRUPTED
        └── MalformedResponseError     MALFORMED_RESPONSE

Misuse by the caller raises one of these. What a model, a tool or a hook does wrong becomes a
value instead: an error result, or a message whose ``stop_reason`` is ``error``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from yiemagent_nb.core.messages import AssistantMessage

__all__ = [
    "AgentBusyError",
    "AgentClosedError",
    "AgentNotFoundError",
    "AuthenticationError",
    "BackendConnectionError",
    "BackendError",
    "BackendNotFoundError",
    "BackendRateLimitedError",
    "BackendTimeoutError",
    "BadRequestError",
    "ChannelClosed",
    "ChannelFull",
    "ContextLengthError",
    "ExecutionAbortedError",
    "ExecutionTimeoutError",
    "HookError",
    "InvalidMessageRoleError",
    "InvalidParametersError",
    "MalformedResponseError",
    "McpConnectionError",
    "McpError",
    "McpTimeoutError",
    "OutputInvalidError",
    "QuotaExceededError",
    "RateLimitedError",
    "ServerError",
    "SessionInvalidError",
    "StreamInterruptedError",
    "ToolFailedError",
    "ToolNotFoundError",
    "ToolNotSupportedError",
    "YiemAgentError",
    "describe_error",
]


class YiemAgentError(Exception):
    """The root of every error that this package raises.

    Args:
        message: What happened and what was expected, in one or two sentences.
        hint: What to do next; empty where the message says it all.
    """

    code: ClassVar[str] = "ERROR"

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        """The message, the hint and the code, as a person or a model reads them."""
        text = f"{self.message} {self.hint}".rstrip()
        return f"{text} [{self.code}]"


class AgentBusyError(YiemAgentError):
    """A run is active, and the call needs an idle agent."""

    code = "AGENT_BUSY"


class InvalidMessageRoleError(YiemAgentError):
    """A message's role does not fit the operation."""

    code = "INVALID_MESSAGE_ROLE"


class AgentNotFoundError(YiemAgentError):
    """No agent or session of that name is there."""

    code = "AGENT_NOT_FOUND"


class AgentClosedError(YiemAgentError):
    """The agent was shut down, or its event loop was closed, while something waited for it."""

    code = "AGENT_CLOSED"


class ToolNotFoundError(YiemAgentError):
    """No tool of that name is registered."""

    code = "TOOL_NOT_FOUND"


class ToolNotSupportedError(YiemAgentError):
    """What was given as a tool cannot be used as one."""

    code = "TOOL_NOT_SUPPORTED"


class InvalidParametersError(YiemAgentError):
    """Arguments, a schema or an option do not have the form that was expected."""

    code = "INVALID_PARAMETERS"


class ExecutionTimeoutError(YiemAgentError):
    """A tool did not finish within its time."""

    code = "EXECUTION_TIMEOUT"


class ExecutionAbortedError(YiemAgentError):
    """A tool was stopped, or never started, because the run was aborted."""

    code = "EXECUTION_ABORTED"


class ToolFailedError(YiemAgentError):
    """A tool raised."""

    code = "TOOL_FAILED"


class HookError(YiemAgentError):
    """A hook raised, or returned something that is no hook result."""

    code = "HOOK_ERROR"


class RateLimitedError(YiemAgentError):
    """A limit was reached.

    Args:
        message: Which limit, and its value.
        hint: What to do next.
        retry_after: Seconds until the limit passes by itself; None where it does not.
    """

    code = "RATE_LIMITED"

    def __init__(self, message: str, hint: str = "", retry_after: float | None = None) -> None:
        super().__init__(message, hint)
        self.retry_after = retry_after


class ChannelFull(YiemAgentError):  # noqa: N818 - named as the standard library's queue.Full
    """A channel has no room, and the call does not wait."""

    code = "CHANNEL_FULL"


class ChannelClosed(YiemAgentError):  # noqa: N818
    """A channel was closed: nothing can be put, or nothing is left to take."""

    code = "CHANNEL_CLOSED"


class SessionInvalidError(YiemAgentError):
    """A file or store is no session, or a damaged one."""

    code = "SESSION_INVALID"


class OutputInvalidError(YiemAgentError):
    """A run ended without an answer of the type that was asked for.

    Args:
        message: What does not fit, or why there is no answer; with the backend's own words.
        hint: What to do next.
        answer: The last answer, as it stands in the history; None where only a text was read.
    """

    code = "OUTPUT_INVALID"

    def __init__(self, message: str, hint: str = "", answer: AssistantMessage | None = None) -> None:
        super().__init__(message, hint)
        self.answer = answer


class McpError(YiemAgentError):
    """An MCP server answered with an error, or with something that is no answer.

    Args:
        message: What happened, with the server's own words.
        hint: What to do next.
        rpc_code: The code of the JSON-RPC error.
        data: What the server says beside it.
    """

    code = "MCP_ERROR"

    def __init__(self, message: str, hint: str = "", *, rpc_code: int = -32603, data: object = None) -> None:
        super().__init__(message, hint)
        self.rpc_code = rpc_code
        self.data = data


class McpConnectionError(McpError):
    """An MCP server cannot be reached, did not start, or went away during a request."""

    code = "MCP_CONNECTION"

    def __init__(self, message: str, hint: str = "", *, rpc_code: int = -32000, data: object = None) -> None:
        super().__init__(message, hint, rpc_code=rpc_code, data=data)


class McpTimeoutError(McpError):
    """An MCP server did not answer in time."""

    code = "MCP_TIMEOUT"

    def __init__(self, message: str, hint: str = "", *, rpc_code: int = -32001, data: object = None) -> None:
        super().__init__(message, hint, rpc_code=rpc_code, data=data)


class BackendError(YiemAgentError):
    """A backend could not answer.

    Args:
        message: What happened, with the server's own words.
        hint: What to do next.
        status: The HTTP status, where there was one.
        retry_after: Seconds that the server asks to wait; None where it does not say.

    Attributes:
        words: The server's own words alone; empty where it said none.
        param: The field of the request that the server names; empty where it names none.
        labels: The server's own codes and types for the error.
    """

    code = "BACKEND_ERROR"

    def __init__(
        self, message: str, hint: str = "", status: int | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(message, hint)
        self.status = status
        self.retry_after = retry_after
        self.words = ""
        self.param = ""
        self.labels: tuple[str, ...] = ()


class AuthenticationError(BackendError):
    """The key is missing, wrong, or may not do this."""

    code = "AUTHENTICATION"


class BackendNotFoundError(BackendError):
    """The server has no such path or model.

    Args:
        message: What happened, with the server's own words.
        hint: What to do next.
        status: The HTTP status, where there was one.
        location: Where the server sends requests instead, as it says it; None where it sends them nowhere.
    """

    code = "NOT_FOUND"

    def __init__(self, message: str, hint: str = "", status: int | None = None, *, location: str | None = None) -> None:
        super().__init__(message, hint, status)
        self.location = location


class BackendRateLimitedError(BackendError, RateLimitedError):
    """The server asks to wait."""

    code = "RATE_LIMITED"


class QuotaExceededError(BackendError):
    """The account has no quota left; waiting does not help."""

    code = "QUOTA_EXCEEDED"


class ContextLengthError(BackendError):
    """The conversation is longer than the model's context."""

    code = "CONTEXT_LENGTH_EXCEEDED"


class BadRequestError(BackendError):
    """The server refused the request as malformed."""

    code = "BAD_REQUEST"


class ServerError(BackendError):
    """The server failed."""

    code = "SERVER_ERROR"


class BackendConnectionError(BackendError):
    """No connection to the server, or a broken one.

    Args:
        message: What happened.
        hint: What to do next.
        cause: Why, in a few words that stay the same; None where that is not known.
    """

    code = "CONNECTION"

    def __init__(self, message: str, hint: str = "", *, cause: str | None = None) -> None:
        super().__init__(message, hint)
        self.cause = cause


class BackendTimeoutError(BackendError):
    """The server did not answer in time."""

    code = "TIMEOUT"


class StreamInterruptedError(BackendError):
    """The answer stopped before its end."""

    code = "STREAM_INTERRUPTED"


class MalformedResponseError(BackendError):
    """The answer has none of the known forms."""

    code = "MALFORMED_RESPONSE"


def describe_error(error: BaseException) -> str:
    """The type and the text of any exception, of one whose text fails too. It never raises."""
    try:
        text = str(error)
    except Exception:
        text = "(it has no readable text)"
    name = type(error).__name__
    return f"{name}: {text}" if text else name
