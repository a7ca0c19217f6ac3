"""What an agent tells its listeners: typed, frozen, with a JSON form for wires.

A run's order is ``AgentStart (TurnStart … TurnEnd)+ AgentEnd``; within a turn each message is
``MessageStart MessageUpdate* MessageEnd`` and each call ``ToolExecutionStart
ToolExecutionUpdate* ToolExecutionEnd``. ``Trace`` reaches the event sink only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from yiemagent_nb.core.json_values import JsonMapping
from yiemagent_nb.core.messages import AssistantMessage, AssistantToolCallMessage, Message, ToolResultMessage
from yiemagent_nb.core.results import ToolResult

__all__ = [
    "AgentEnd",
    "AgentError",
    "AgentStart",
    "ApprovalChoice",
    "ApprovalRequested",
    "ApprovalResolved",
    "BackendChanged",
    "DeltaKind",
    "EndReason",
    "Event",
    "HistoryChanged",
    "HooksChanged",
    "MessageEnd",
    "MessageStart",
    "MessageUpdate",
    "QuestionAction",
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
]

EndReason = Literal["done", "terminated", "aborted", "error", "max_turns", "max_cost"]
DeltaKind = Literal["text", "reasoning", "tool_call"]
ApprovalChoice = Literal["allow_once", "allow_session", "allow_edited", "deny"]
QuestionAction = Literal["accept", "decline", "cancel"]


@dataclass(frozen=True, slots=True)
class AgentStart:
    """A run begins."""

    type: Literal["agent_start"] = "agent_start"


@dataclass(frozen=True, slots=True)
class AgentEnd:
    """A run ended. ``messages`` are those that it added to the history."""

    messages: tuple[Message, ...]
    reason: EndReason = "done"
    type: Literal["agent_end"] = "agent_end"


@dataclass(frozen=True, slots=True)
class TurnStart:
    """One LLM call with its tool calls begins."""

    type: Literal["turn_start"] = "turn_start"


@dataclass(frozen=True, slots=True)
class TurnEnd:
    """A turn ended, with its answer and the results of its calls."""

    message: AssistantMessage | AssistantToolCallMessage
    tool_results: tuple[ToolResultMessage, ...] = ()
    type: Literal["turn_end"] = "turn_end"


@dataclass(frozen=True, slots=True)
class MessageStart:
    """A message begins; an assistant's is still empty."""

    message_id: str
    message: Message
    type: Literal["message_start"] = "message_start"


@dataclass(frozen=True, slots=True)
class MessageUpdate:
    """A piece of the answer that streams in.

    ``block`` is the index of the content block that grows, ``offset`` the number of characters
    that this block had before. For a tool call ``delta`` is a piece of its JSON arguments, and
    ``tool_call_id`` and ``tool_name`` are set; the first update of a call may have an empty
    delta, so that the call can be shown when its name is known.
    """

    message_id: str
    kind: DeltaKind
    delta: str
    offset: int
    block: int
    tool_call_id: str | None = None
    tool_name: str | None = None
    type: Literal["message_update"] = "message_update"


@dataclass(frozen=True, slots=True)
class MessageEnd:
    """A message is whole."""

    message_id: str
    message: Message
    type: Literal["message_end"] = "message_end"


@dataclass(frozen=True, slots=True)
class ToolExecutionStart:
    """A call is taken up: next come its validation and its hooks, then the tool."""

    tool_call_id: str
    tool_name: str
    args: JsonMapping
    type: Literal["tool_execution_start"] = "tool_execution_start"


@dataclass(frozen=True, slots=True)
class ToolExecutionUpdate:
    """A running tool reports progress."""

    tool_call_id: str
    tool_name: str
    update: ToolResult
    type: Literal["tool_execution_update"] = "tool_execution_update"


@dataclass(frozen=True, slots=True)
class ToolExecutionEnd:
    """A call settled. ``duration`` is the tool's own time in seconds, hooks left out."""

    tool_call_id: str
    tool_name: str
    result: ToolResult
    is_error: bool
    duration: float
    type: Literal["tool_execution_end"] = "tool_execution_end"


@dataclass(frozen=True, slots=True)
class ToolsChanged:
    """The tools are now these."""

    names: tuple[str, ...]
    type: Literal["tools_changed"] = "tools_changed"


@dataclass(frozen=True, slots=True)
class BackendChanged:
    """From the next turn on, this backend answers, at the thinking level that the agent's state has."""

    backend: str
    model: str | None = None
    type: Literal["backend_changed"] = "backend_changed"


@dataclass(frozen=True, slots=True)
class HooksChanged:
    """From the next turn on, the hooks of these kinds are others: ``Agent.hooks`` has them."""

    names: tuple[str, ...]
    type: Literal["hooks_changed"] = "hooks_changed"


@dataclass(frozen=True, slots=True)
class HistoryChanged:
    """The history is another one, of ``length`` messages: a branch was gone back to, or all was forgotten."""

    length: int
    type: Literal["history_changed"] = "history_changed"


@dataclass(frozen=True, slots=True)
class QueueChanged:
    """What waits on the input channel (steering) and the follow-up channel, oldest first."""

    steering: tuple[Message, ...] = ()
    follow_ups: tuple[Message, ...] = ()
    type: Literal["queue_changed"] = "queue_changed"


@dataclass(frozen=True, slots=True)
class ApprovalRequested:
    """A call, or what a server asks the model, waits for a person's word.

    ``label`` is the tool's name for people, and ``hints`` are words for what it says of itself, such
    as "destructive"; like ``description`` they come from its source, and may be wrong.
    """

    request_id: str
    tool_call_id: str
    tool_name: str
    args: JsonMapping
    source: str = "python"
    description: str = ""
    label: str = ""
    hints: tuple[str, ...] = ()
    type: Literal["approval_requested"] = "approval_requested"


@dataclass(frozen=True, slots=True)
class ApprovalResolved:
    """A person, a policy or an abort settled a request."""

    request_id: str
    tool_call_id: str
    choice: ApprovalChoice
    reason: str = ""
    type: Literal["approval_resolved"] = "approval_resolved"


@dataclass(frozen=True, slots=True)
class QuestionAsked:
    """A tool's server asks a person something, as MCP's elicitation does.

    ``schema`` is a JSON Schema of an object whose fields are plain values; None asks for a visit to
    ``url`` instead. Both, and ``message``, come from the server and are not to be trusted.
    """

    request_id: str
    source: str
    message: str
    schema: JsonMapping | None = None
    url: str = ""
    type: Literal["question_asked"] = "question_asked"


@dataclass(frozen=True, slots=True)
class QuestionAnswered:
    """A question was answered, or needs no answer any more. What was answered goes to the server alone."""

    request_id: str
    action: QuestionAction
    type: Literal["question_answered"] = "question_answered"


@dataclass(frozen=True, slots=True)
class AgentError:
    """Something went wrong that a person should see; the agent stays usable."""

    code: str
    message: str
    type: Literal["agent_error"] = "agent_error"


@dataclass(frozen=True, slots=True)
class Trace:
    """A named step of the state machine, for the event sink."""

    step: str
    data: JsonMapping = field(default_factory=dict[str, Any])
    type: Literal["trace"] = "trace"


Event = (
    AgentStart
    | AgentEnd
    | TurnStart
    | TurnEnd
    | MessageStart
    | MessageUpdate
    | MessageEnd
    | ToolExecutionStart
    | ToolExecutionUpdate
    | ToolExecutionEnd
    | ToolsChanged
    | BackendChanged
    | HistoryChanged
    | HooksChanged
    | QueueChanged
    | ApprovalRequested
    | ApprovalResolved
    | QuestionAsked
    | QuestionAnswered
    | AgentError
    | Trace
)


@cache
def _adapter() -> TypeAdapter[Event]:
    return TypeAdapter(Annotated[Event, Field(discriminator="type")])


def dump_event(event: Event) -> dict[str, Any]:
    """The JSON form of an event; what JSON cannot hold in it becomes its ``repr``: see ``json_form``."""
    return _adapter().dump_python(event, mode="json")


def load_event(data: Mapping[str, Any] | str | bytes) -> Event:
    """Read ``dump_event``'s form, or the JSON text of it.

    Raises:
        pydantic.ValidationError: It is no event; the error names the field.
    """
    return _adapter().validate_json(data) if isinstance(data, str | bytes) else _adapter().validate_python(data)
