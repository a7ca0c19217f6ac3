"""What a conversation recorded, as its hooks would get it again, and what a hook changes in it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, cast

from yiemagent_nb.core.approval import Approvals, Ask, Check, Decision, Subject
from yiemagent_nb.core.arguments import validate_tool_arguments
from yiemagent_nb.core.errors import InvalidParametersError, YiemAgentError
from yiemagent_nb.core.events import ApprovalRequested
from yiemagent_nb.core.hooks import AfterToolCallContext, AgentContext, BeforeToolCallContext, BeforeToolCallResult
from yiemagent_nb.core.messages import (
    AssistantMessage,
    AssistantToolCallMessage,
    Message,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from yiemagent_nb.core.openai_form import call_to_openai
from yiemagent_nb.core.reading.assemble import Assembler
from yiemagent_nb.core.reading.extract import extract
from yiemagent_nb.core.request import RequestBuilder, RequestTools
from yiemagent_nb.core.results import ToolResult
from yiemagent_nb.core.signal import AbortSignal
from yiemagent_nb.core.state import AgentState
from yiemagent_nb.core.tools import Tool
from yiemagent_nb.core.validation import shorten
from yiemagent_nb.hooks.answers import BackendAnswers
from yiemagent_nb.hooks.differences import (
    Effect,
    Seen,
    answer_text,
    compare_lines,
    context_lines,
    pretty,
    request_lines,
    result_text,
    same,
)
from yiemagent_nb.hooks.examples import example_arguments
from yiemagent_nb.hooks.kinds import HookName
from yiemagent_nb.hooks.texts import masked

if TYPE_CHECKING:
    from yiemagent_nb.core.agent import Agent

__all__ = ["PreparedCall", "RecordedCall", "Recording", "TakenPieces"]

LONGEST_TITLE = 120
MOST_LEVELS = 4

Pause = Callable[[], AbstractContextManager[None]]


class TakenPieces(list[Any]):
    """The pieces of an answer that came in pieces."""


class PreparedCall(Protocol):
    """One call of a hook, ready to be made."""

    arguments: tuple[Any, ...]

    @property
    def answers(self) -> BackendAnswers | None:
        """What the backend says, for a hook around it."""
        ...

    def compare(self, answer: Any) -> Seen:
        """What the hook's answer, read, changes. It looks at a person's own objects: call it within a limit."""
        ...


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """Something that a hook would have been called for.

    Args:
        title: What a person knows it by.
        prepare: Makes it ready, with what counts no time. It may run code of a tool's types, and raises where
            the call would reach no hook.
    """

    title: str
    prepare: Callable[[Pause], PreparedCall]


class Recording:
    """A conversation at one moment.

    Args:
        agent: Whose conversation it is.
    """

    def __init__(self, agent: Agent) -> None:
        state = agent.state
        self.messages: tuple[Message, ...] = state.messages
        self._state = state
        self._tools: Mapping[str, Tool] = dict(agent.registered_tools)
        self._options = dict(agent.options)

    def count(self, hook: HookName) -> int:
        """How many calls there are of a hook's kind."""
        answers = [message for message in self.messages if isinstance(message, AssistantMessage)]
        if hook == "before_tool_call":
            return sum(len(message.tool_calls) for message in answers)
        if hook == "after_tool_call":
            return sum(isinstance(message, ToolResultMessage) for message in self.messages)
        return len(answers)

    def calls(self, hook: HookName) -> list[RecordedCall]:
        """The calls of a hook's kind, oldest first."""
        if hook in ("before_tool_call", "after_tool_call"):
            return list(self._tool_calls(hook))
        return list(self._requests(hook))

    def example(self, hook: HookName) -> RecordedCall:
        """A call that was never made: of a tool that is there, with arguments made from its schema."""
        if hook in ("before_tool_call", "after_tool_call"):
            tool = next(iter(self._tools.values()), None) or _stand_in("example_tool")
            call = ToolCall(name=tool.name, arguments=example_arguments(tool.input_schema))
            message = AssistantToolCallMessage(content=(call,))
            return self._tool_call(hook, call, message, (UserMessage("Hello"), message), ToolResult("An example."))
        answer = AssistantMessage("Hello! How can I help?")
        return self._request(hook, 0, (UserMessage("Hello"),), answer)

    def _tool_calls(self, hook: HookName) -> Iterator[RecordedCall]:
        results = {m.tool_call_id: m for m in self.messages if isinstance(m, ToolResultMessage)}
        for index, message in enumerate(self.messages):
            if isinstance(message, AssistantMessage):
                for call in message.tool_calls:
                    found = results.get(call.id)
                    if hook == "before_tool_call" or found is not None:
                        yield self._tool_call(hook, call, message, self.messages[: index + 1], _result(found))

    def _tool_call(
        self, hook: HookName, call: ToolCall, message: AssistantMessage, history: Sequence[Message], result: ToolResult
    ) -> RecordedCall:
        def prepare(pause: Pause) -> PreparedCall:
            del pause
            tool = self._tools.get(call.name) or _stand_in(call.name)
            arguments = validate_tool_arguments(tool, call)
            context = AgentContext(self._state.system_prompt, tuple(history), self._tools)
            if hook == "after_tool_call":
                return _After(AfterToolCallContext(call, tool, arguments, result, message, context))
            return _Before(call, tool, arguments, message, context)

        words = ", ".join(f"{name}={shorten(_masked(value), 40)}" for name, value in call.arguments.items())
        return RecordedCall(_title(f"{call.name}({words})"), prepare)

    def _requests(self, hook: HookName) -> Iterator[RecordedCall]:
        number = 0
        for index, message in enumerate(self.messages):
            if isinstance(message, AssistantMessage):
                number += 1
                yield self._request(hook, number, self.messages[:index], message)

    def _request(
        self, hook: HookName, number: int, history: tuple[Message, ...], answer: AssistantMessage
    ) -> RecordedCall:
        def prepare(pause: Pause) -> PreparedCall:
            state = self._state
            context = AgentContext(state.system_prompt, history, dict(state.tools))
            if hook == "prepare_context":
                before = AgentState(state.system_prompt, state.model, state.thinking_level, dict(state.tools), history)
                return _Prepare(before, context)
            written = RequestBuilder().build(context.system_prompt, history, answer.provider)
            if hook == "format_messages":
                return _Format(context, written)
            options = {
                **self._options,
                "tools": RequestTools(state.tools.values()),
                "model": state.model,
                "thinking_level": state.thinking_level,
            }
            return _Around(written, options, answer, pause)

        asked = next((m.text for m in reversed(history) if isinstance(m, UserMessage)), "")
        title = f"Request {number}" if number else "An example request"
        return RecordedCall(_title(f"{title}: {asked}" if asked else title), prepare)


class _Before:
    answers = None

    def __init__(
        self, call: ToolCall, tool: Tool, arguments: dict[str, Any], message: AssistantMessage, context: AgentContext
    ) -> None:
        self._before = pretty(arguments)
        self._approvals = _AskingNobody()
        offered = BeforeToolCallContext(call, tool, arguments, message, context, self._approvals)
        self.arguments: tuple[Any, ...] = (offered, AbortSignal())

    def compare(self, answer: BeforeToolCallResult | None) -> Seen:
        asked = self._approvals.asked
        words = [f"A person would be asked about {', '.join(asked)}; here it was allowed once."] if asked else []
        if answer is None:
            return Seen("unchanged", " ".join(words))
        if answer.note:
            words.append(f"The model is told: {answer.note}")
        if answer.block:
            return Seen("blocked", " ".join(words), self._before, "", answer.reason or "The call was blocked.")
        after = self._before if answer.arguments is None else pretty(answer.arguments)
        if after == self._before:
            return Seen("changed" if answer.note else "unchanged", " ".join(words))
        return Seen("changed", " ".join(["It runs with other arguments.", *words]), self._before, after)


class _After:
    answers = None

    def __init__(self, context: AfterToolCallContext) -> None:
        self._before = result_text(context.result)
        self.arguments: tuple[Any, ...] = (context,)

    def compare(self, answer: ToolResult | None) -> Seen:
        after = self._before if answer is None else result_text(answer)
        if after == self._before:
            return Seen("unchanged", "")
        return Seen("changed", "The model reads another result.", self._before, after)


class _Prepare:
    answers = None

    def __init__(self, state: AgentState, context: AgentContext) -> None:
        self._context = context
        self.arguments: tuple[Any, ...] = (state,)

    def compare(self, answer: AgentContext) -> Seen:
        before, after = self._context, answer
        words: list[str] = []
        if gone := [name for name in before.tools if name not in after.tools]:
            words.append(f"Without the tools {', '.join(gone)}.")
        if new := [name for name in after.tools if name not in before.tools]:
            words.append(f"With the tools {', '.join(new)}.")
        seen = compare_lines(context_lines(before), context_lines(after), words)
        return Seen("changed", seen.detail, seen.before, seen.after) if words else seen


class _Format:
    answers = None

    def __init__(self, context: AgentContext, written: Sequence[Mapping[str, Any]]) -> None:
        self._before = request_lines(written)
        self.arguments: tuple[Any, ...] = (context,)

    def compare(self, answer: Sequence[Mapping[str, Any]]) -> Seen:
        return compare_lines(self._before, request_lines(answer))


class _Around:
    def __init__(
        self, written: Sequence[Mapping[str, Any]], options: dict[str, Any], recorded: AssistantMessage, pause: Pause
    ) -> None:
        self._written = written
        self._options = options
        self._recorded = recorded
        self._requests: list[tuple[Any, dict[str, Any]]] = []
        self.answers = BackendAnswers(self._answer, pause)
        self.arguments: tuple[Any, ...] = (self.answers.call, written, dict(options))

    async def _answer(self, messages: Any, **options: Any) -> Any:
        """Stands for the backend: gives the recorded answer."""
        self._requests.append((messages, options))
        return RecordedAnswer(self._recorded)

    def compare(self, answer: Any) -> Seen:
        if type(answer) is TakenPieces:
            assembler = Assembler()
            for piece in answer:
                assembler.feed(piece)
            given = assembler.finish()
        else:
            given = extract(cast("object", answer))
        words: list[str] = []
        if len(self._requests) != 1:
            words.append(f"The model is asked {len(self._requests)} times." if self._requests else "No model is asked.")
        before, after = list[str](), list[str]()
        for messages, options in self._requests[-1:]:
            others = [name for name in {**self._options, **options} if not same(self._options, options, name)]
            if others:
                words.append(f"With other options: {', '.join(others)}.")
            request = compare_lines(request_lines(self._written), request_lines(messages))
            if request.effect == "changed":
                words.append(f"Request: {request.detail}")
                before.append(request.before)
                after.append(request.after)
        if (was := answer_text(self._recorded)) != (now := answer_text(given)):
            words.append("The answer is another.")
            before.append(was)
            after.append(now)
        effect: Effect = "changed" if words else "unchanged"
        return Seen(effect, " ".join(words), "\n\n".join(before), "\n\n".join(after))


class RecordedAnswer(dict[str, Any]):
    """A recorded answer, whole as a mapping, and in one piece as an async iterator: as a backend may give either."""

    def __init__(self, message: AssistantMessage) -> None:
        super().__init__()
        self.update(content=message.text, model=message.model, provider=message.provider)
        if message.reasoning:
            self["reasoning"] = message.reasoning
        if message.tool_calls:
            self["tool_calls"] = [call_to_openai(call) for call in message.tool_calls]
        if message.usage is not None:
            self["usage"] = {
                "prompt_tokens": message.usage.input_tokens,
                "completion_tokens": message.usage.output_tokens,
            }

    async def pieces(self) -> AsyncIterator[dict[str, Any]]:
        """The answer in one piece."""
        yield {**self, "stop_reason": "tool_calls" if "tool_calls" in self else "end_turn"}

    def __aiter__(self) -> AsyncIterator[dict[str, Any]]:
        return self.pieces()


class _AskingNobody(Approvals):
    """Notes what a person would be asked, and allows it once."""

    def __init__(self) -> None:
        super().__init__(lambda _: None)
        self.asked: list[str] = []

    async def request(
        self,
        subject: Tool | Subject,
        request: ApprovalRequested,
        signal: AbortSignal,
        ask: Ask | None,
        check: Check | None = None,
    ) -> Decision:
        del subject, signal, ask, check
        self.asked.append(request.tool_name)
        return Decision("allow_once")


def _stand_in(name: str) -> Tool:
    """A tool that is not there any more."""
    try:
        return Tool(
            name=name,
            description="This tool is not registered any more.",
            execute=_cannot_run,
            input_schema={"type": "object"},
        )
    except InvalidParametersError as error:
        raise InvalidParametersError(f"No tool can have the name {shorten(name)}.") from error


async def _cannot_run(*_: Any) -> str:
    raise YiemAgentError("This tool only stands for one that was there.")


def _result(message: ToolResultMessage | None) -> ToolResult:
    if message is None:
        return ToolResult()
    return ToolResult(message.content, details=message.details, is_error=message.is_error)


def _title(text: str) -> str:
    """One line of a call."""
    return masked(" ".join(text.split()), LONGEST_TITLE, "…")


def _masked(value: object, depth: int = MOST_LEVELS) -> object:
    """An argument whose texts hold no keys."""
    if isinstance(value, str):
        return masked(value, LONGEST_TITLE)
    if not isinstance(value, list | dict):
        return value
    if not depth:
        return ...
    if isinstance(value, list):
        return [_masked(each, depth - 1) for each in cast("list[object]", value)[:LONGEST_TITLE]]
    fields = tuple(cast("dict[str, object]", value).items())[:LONGEST_TITLE]
    return {masked(name, LONGEST_TITLE): _masked(each, depth - 1) for name, each in fields}
