"""Scripted: answers written down beforehand, for teaching and for tests."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import isawaitable
from itertools import pairwise
from typing import Any, cast

from yiemagent_nb.core.backend import OpenAIMessages
from yiemagent_nb.core.errors import BackendError, InvalidParametersError
from yiemagent_nb.core.messages import (
    AssistantContent,
    AssistantMessage,
    AssistantToolCallMessage,
    ImageContent,
    ReasoningContent,
    TextContent,
    ToolCall,
)
from yiemagent_nb.core.models import LlmModel, Usage

__all__ = ["Answer", "Request", "Scripted"]

Answer = (
    str
    | AssistantMessage
    | Sequence[ToolCall]
    | Mapping[str, Any]
    | BaseException
    | type[BaseException]
    | Callable[[OpenAIMessages], Any]
)
"""What may stand in a script. A function is given the messages, may be async, and gives any of these."""

_FINISH = {"end_turn": "stop", "tool_calls": "tool_calls", "length": "length", "content_filter": "content_filter"}
_WORDS = re.compile(r"\S+\s*|\s+")


@dataclass(frozen=True, slots=True)
class Request:
    """One request as the backend was given it."""

    messages: tuple[Mapping[str, Any], ...]
    tools: tuple[Mapping[str, Any], ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The other keywords: ``model``, ``thinking_level``, ``signal``, ``response_format`` where a run wants
    structured output (the script's answer is given as it is), and what the agent adds."""


class Scripted:
    """A backend that gives the answers of a script, one a request, and keeps the requests.

    Args:
        answers: What it answers, in order: a string; an ``AssistantMessage``; tool calls in a list; any
            mapping that ``extract`` reads, given as it is; an exception, which is raised; or a
            function ``(messages) -> any of these``, sync or async.
        stream: Whether text, reasoning and calls come in pieces.
        delay: Seconds between two pieces, and before an answer that comes whole.
        chunk: Characters of a piece; None is a word.

    Example::

        backend = Scripted([[call("add", a=1, b=2)], "The sum is 3."])
        agent = Agent(backend, tools=[add])
        await agent.prompt("What is 1 + 2?")
        assert len(backend.requests) == 2

    Raises:
        InvalidParametersError: An answer has none of these forms, or ``chunk`` is less than 1.
    """

    def __init__(
        self, answers: Iterable[Answer], *, stream: bool = True, delay: float = 0.0, chunk: int | None = None
    ) -> None:
        if isinstance(answers, str):
            raise InvalidParametersError("Scripted takes a list of answers, not one string.", "Write [text].")
        if chunk is not None and chunk < 1:
            raise InvalidParametersError(f"chunk is {chunk}; expected the characters of a piece, at least 1.")
        self.answers = tuple(answers)
        self.stream = stream
        self.delay = delay
        self.chunk = chunk
        self.requests: list[Request] = []
        for number, answer in enumerate(self.answers, 1):
            _check(answer, f"Answer {number} of the script")

    def __repr__(self) -> str:
        """How far the script has come."""
        return f"Scripted({len(self.requests)} of {len(self.answers)} answers given)"

    @property
    def provider(self) -> str:
        """``scripted``."""
        return "scripted"

    @property
    def model(self) -> LlmModel | None:
        """None: no model stands behind a script."""
        return None

    async def __call__(
        self, messages: OpenAIMessages, *, tools: Sequence[Mapping[str, Any]] | None = None, **options: Any
    ) -> Any:
        """Give the next answer.

        Raises:
            BackendError: The script has no answer left.
            BaseException: What stands in the script.
        """
        self.requests.append(Request(tuple(messages), tuple(tools or ()), options))
        number = len(self.requests)
        if number > len(self.answers):
            count = f"{len(self.answers)} answer{'' if len(self.answers) == 1 else 's'}"
            raise BackendError(
                f"The script has {count}, and this is request {number}.", "Give Scripted one answer for each request."
            )
        answer: Any = self.answers[number - 1]
        if callable(answer) and not isinstance(answer, type):
            answer = answer(messages)
            if isawaitable(answer):
                answer = await answer
            if isinstance(answer, AsyncIterable | Iterator):
                return cast("object", answer)
            _check(answer, f"What the function in answer {number} of the script gave")
        return await self._give(answer)

    async def _give(self, answer: Any) -> Any:
        if isinstance(answer, BaseException | type):
            raise cast("type[BaseException]", answer)
        if isinstance(answer, Mapping):
            await asyncio.sleep(self.delay)
            return cast("Mapping[str, Any]", answer)
        message = _as_message(answer)
        if message.stop_reason in {"error", "aborted"}:
            raise BackendError(message.error_message or f"The script's answer ended as {message.stop_reason}.")
        if self.stream:
            return self._pieces(message)
        await asyncio.sleep(self.delay)
        return _whole(message)

    async def _pieces(self, message: AssistantMessage) -> AsyncIterator[dict[str, Any]]:
        if extras := _extras(message):
            yield extras
        index = 0
        for block in message.content:
            for delta in self._deltas(block, index):
                yield {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
                await asyncio.sleep(self.delay)
            index += isinstance(block, ToolCall)
        yield {"choices": [{"index": 0, "delta": {}, "finish_reason": _FINISH[message.stop_reason]}]}
        if message.usage is not None:
            yield {"choices": [], "usage": _usage(message.usage)}

    def _deltas(self, block: AssistantContent, index: int) -> Iterator[dict[str, Any]]:
        if isinstance(block, ReasoningContent):
            yield from ({"reasoning_content": piece} for piece in self._cut(block.text))
        elif isinstance(block, TextContent):
            yield from ({"content": piece} for piece in self._cut(block.text))
        elif isinstance(block, ImageContent):
            yield {"content": [_image(block)]}
        else:
            call = _call(block)
            arguments = call["function"].pop("arguments")
            yield {"tool_calls": [{"index": index, **call}]}
            for piece in self._cut(arguments):
                yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}

    def _cut(self, text: str) -> list[str]:
        if self.chunk is None:
            return _WORDS.findall(text)
        ends = [*range(0, len(text), self.chunk), len(text)]
        return [text[start:end] for start, end in pairwise(ends)]


def _check(answer: object, what: str) -> None:
    kind = type(answer).__name__
    if isinstance(answer, type):
        fits = issubclass(cast("type[object]", answer), BaseException)
    elif isinstance(answer, list | tuple):
        calls = cast("Sequence[object]", answer)
        fits = bool(calls) and all(isinstance(call, ToolCall) for call in calls)
    else:
        fits = isinstance(answer, str | AssistantMessage | Mapping | BaseException) or callable(answer)
    if not fits:
        raise InvalidParametersError(
            f"{what} is {kind}; expected text, an AssistantMessage, a list of ToolCalls, a mapping, "
            "an exception, or a function."
        )


def _as_message(answer: str | AssistantMessage | Sequence[ToolCall]) -> AssistantMessage:
    if isinstance(answer, AssistantMessage):
        return answer
    return AssistantMessage(answer) if isinstance(answer, str) else _calls_message(answer)


def _calls_message(calls: Sequence[ToolCall]) -> AssistantMessage:
    return AssistantToolCallMessage.model_validate({"content": tuple(calls)})


def _extras(message: AssistantMessage) -> dict[str, Any]:
    fields = {name: getattr(message, name) for name in ("provider", "model", "thinking_sent")}
    extras = {name: value for name, value in fields.items() if value}
    # Beside choices a provider counts only where the api is named too.
    return {"api": message.api or "scripted", **extras} if message.api or extras else {}


def _whole(message: AssistantMessage) -> dict[str, Any]:
    """A message as a server gives it that does not stream."""
    shown = [block for block in message.content if isinstance(block, TextContent | ImageContent)]
    has_images = any(isinstance(block, ImageContent) for block in shown)
    blocks = [{"type": "text", "text": b.text} if isinstance(b, TextContent) else _image(b) for b in shown]
    fields: dict[str, Any] = {"role": "assistant", "content": blocks if has_images else message.text or None}
    if message.reasoning:
        fields["reasoning_content"] = message.reasoning
    if message.tool_calls:
        fields["tool_calls"] = [_call(call) for call in message.tool_calls]
    choice = {"index": 0, "message": fields, "finish_reason": _FINISH[message.stop_reason]}
    usage = {} if message.usage is None else {"usage": _usage(message.usage)}
    return {**_extras(message), "choices": [choice], **usage}


def _image(image: ImageContent) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": f"data:{image.mime_type};base64,{image.data}"}}


def _call(call: ToolCall) -> dict[str, Any]:
    arguments = call.raw_arguments if call.raw_arguments is not None else json.dumps(call.arguments)
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "cache_write_tokens": usage.cache_write_tokens,
    }
