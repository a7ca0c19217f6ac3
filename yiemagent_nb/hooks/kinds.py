"""The five hooks of an agent: what each takes, what it may answer, and code to begin with."""

from __future__ import annotations

import json
from collections.abc import AsyncIterable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, cast

from yiemagent_nb.core.arguments import validate_arguments
from yiemagent_nb.core.errors import HookError
from yiemagent_nb.core.hooks import (
    AfterToolCallContext,
    AgentContext,
    BeforeToolCallContext,
    BeforeToolCallResult,
)
from yiemagent_nb.core.messages import AssistantMessage, CustomMessage, ToolResultMessage, UserMessage
from yiemagent_nb.core.openai_form import parse_messages
from yiemagent_nb.core.reading.extract import extract
from yiemagent_nb.core.request import RequestMessages
from yiemagent_nb.core.results import ToolResult
from yiemagent_nb.core.signal import AbortSignal
from yiemagent_nb.core.state import AgentState
from yiemagent_nb.core.tools import Tool
from yiemagent_nb.core.validation import shorten

__all__ = ["KINDS", "HookKind", "HookName", "OnError"]

HookName = Literal["prepare_context", "format_messages", "before_tool_call", "after_tool_call", "around_llm_call"]
OnError = Literal["go_on", "end"]
"""Whether a run does without a hook that failed, or ends. A tool call never goes on without one."""

_MESSAGES = (UserMessage, AssistantMessage, ToolResultMessage, CustomMessage)


@dataclass(frozen=True, slots=True)
class HookKind:
    """One of the hooks.

    Args:
        name: Its name.
        title: What a person reads.
        takes: Its parameters, with their types.
        tells: What it is for.
        template: Code to begin with; it changes nothing.
        several: Whether an agent may have more than one.
        read: Gives an answer in the form that is used, from the arguments and the answer; raises where it is none.
        wanted: What an answer may be, in words.
    """

    name: HookName
    title: str
    takes: Mapping[str, type | None]
    tells: str
    template: str
    several: bool
    read: Callable[[tuple[Any, ...], Any], Any]
    wanted: str

    @property
    def signature(self) -> str:
        """Its first line: ``def before_tool_call(context, signal)``."""
        word = "async def" if self.name == "around_llm_call" else "def"
        return f"{word} {self.name}({', '.join(self.takes)})"


def _read_context(_arguments: tuple[Any, ...], answer: Any) -> AgentContext:
    if not isinstance(answer, AgentContext):
        raise _nonsense(answer)
    if not isinstance(answer.system_prompt, str):  # pyright: ignore[reportUnnecessaryIsInstance] - it is a person's
        raise HookError(f"its system_prompt is {shorten(answer.system_prompt)}; expected a text")
    tools = dict(answer.tools)
    for name, tool in tools.items():
        if not isinstance(tool, Tool) or tool.name != name:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise HookError(f"its tools have {shorten(tool)} under {shorten(name)}; expected Tools by their names")
    messages = tuple(answer.messages)
    known = all(isinstance(cast("object", message), _MESSAGES) for message in messages)
    return AgentContext(answer.system_prompt, messages if known else parse_messages(messages), tools)


def _read_messages(_arguments: tuple[Any, ...], answer: Any) -> Sequence[Mapping[str, Any]]:
    if isinstance(answer, RequestMessages):
        return answer
    if isinstance(answer, str | bytes) or not isinstance(answer, Sequence):
        raise _nonsense(answer)
    messages = list(cast("Sequence[Any]", answer))
    for number, message in enumerate(messages):
        fields = cast("Mapping[str, Any]", message if isinstance(message, Mapping) else {})
        if not isinstance(fields.get("role"), str):
            raise HookError(f"message {number} is {shorten(cast('object', message))}; expected a mapping with a role")
    json.dumps([{**message} for message in messages])
    return messages


def _read_before(arguments: tuple[Any, ...], answer: Any) -> BeforeToolCallResult | None:
    if answer is None:
        return None
    if isinstance(answer, Mapping):
        answer = BeforeToolCallResult(arguments=cast("Mapping[str, Any]", answer))
    if not isinstance(answer, BeforeToolCallResult):
        raise _nonsense(answer)
    for field, value in (("reason", answer.reason or ""), ("note", answer.note)):
        if not isinstance(value, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise HookError(f"its {field} is {shorten(value)}; expected a text")
    if answer.arguments is None:
        return BeforeToolCallResult(bool(answer.block), answer.reason, None, answer.note)
    context: BeforeToolCallContext = arguments[0]
    fitting = validate_arguments(context.tool, dict(answer.arguments))
    return BeforeToolCallResult(bool(answer.block), answer.reason, fitting, answer.note)


def _read_after(_arguments: tuple[Any, ...], answer: Any) -> ToolResult | None:
    if answer is None:
        return None
    if not isinstance(answer, ToolResult):
        raise _nonsense(answer)
    fields: dict[str, Any] = {name: getattr(answer, name) for name in ToolResult.model_fields}
    return ToolResult(**fields)  # one made without its checks is checked here


def _read_answer(_arguments: tuple[Any, ...], answer: Any) -> Any:
    if not isinstance(answer, AsyncIterable | Iterator):
        try:
            extract(answer)
        except Exception:
            raise _nonsense(answer) from None
    return cast("object", answer)


def _nonsense(answer: object) -> HookError:
    kind = type(answer)
    # The repr of most others has an address, which is another each time.
    plain = kind in (str, bytes, int, float, bool, list, tuple, dict, set)
    return HookError(f"it returned {shorten(answer)}, of type {kind.__name__}" if plain else f"it returned {_a(kind)}")


def _a(kind: type) -> str:
    return "None" if kind is type(None) else f"an object of type {kind.__name__}"


_PREPARE = '''\
from yiemagent_nb.core.hooks import AgentContext


def prepare_context(state):
    """Choose what is sent with the next request: the system prompt, the messages, the tools."""
    return AgentContext(state.system_prompt, state.messages, state.tools)
'''

_FORMAT = '''\
from yiemagent_nb.core.reading.extract import extract
from yiemagent_nb.core.request import RequestBuilder

builder = RequestBuilder()


def format_messages(context):
    """Turn what was chosen into messages in OpenAI's form."""
    messages = builder.build(context.system_prompt, context.messages, "")
    return [dict(message) for message in messages]
'''

_BEFORE = '''\
from yiemagent_nb.core.hooks import BeforeToolCallResult


def before_tool_call(context, signal):
    """Look at a call before it runs: return nothing to let it run, new arguments, or a refusal."""
    if context.tool.name == "a_name" and not context.arguments:
        return BeforeToolCallResult(block=True, reason="Say with what.")
    return None
'''

_AFTER = '''\
from yiemagent_nb.core.results import ToolResult


def after_tool_call(context):
    """Look at the result of a call: return nothing to keep it, or another one."""
    if context.is_error:
        return ToolResult(f"{context.result.text}\\nTry it in another way.", is_error=True)
    return None
'''

_AROUND = '''\
async def around_llm_call(call, messages, options):
    """Ask the model: with other messages or options, more than once, or not at all.

    An async hook shares the event loop: `await` what takes time. What blocks, such as time.sleep, holds up all.
    """
    return await call(messages, **options)
'''

KINDS: Final[Mapping[HookName, HookKind]] = {
    kind.name: kind
    for kind in (
        HookKind(
            "prepare_context",
            "What is sent",
            {"state": AgentState},
            "Chooses, before each request, which messages and tools the model sees.",
            _PREPARE,
            several=False,
            read=_read_context,
            wanted="an AgentContext",
        ),
        HookKind(
            "format_messages",
            "How it is written",
            {"context": AgentContext},
            "Turns what was chosen into messages in OpenAI's form.",
            _FORMAT,
            several=False,
            read=_read_messages,
            wanted="a list of messages in OpenAI's form",
        ),
        HookKind(
            "around_llm_call",
            "Around the model",
            {"call": None, "messages": list, "options": dict},
            "Asks the model: with other messages or options, more than once, or not at all.",
            _AROUND,
            several=False,
            read=_read_answer,
            wanted="what `await call(messages, **options)` gives: a text, a mapping, or pieces",
        ),
        HookKind(
            "before_tool_call",
            "Before a tool runs",
            {"context": BeforeToolCallContext, "signal": AbortSignal},
            "May refuse a call, change its arguments, or ask a person.",
            _BEFORE,
            several=True,
            read=_read_before,
            wanted="a BeforeToolCallResult, a mapping of new arguments, or None",
        ),
        HookKind(
            "after_tool_call",
            "After a tool ran",
            {"context": AfterToolCallContext},
            "May change the result that the model reads.",
            _AFTER,
            several=True,
            read=_read_after,
            wanted="a ToolResult or None",
        ),
    )
}
"""The hooks by name, in the order in which a turn comes to them."""
