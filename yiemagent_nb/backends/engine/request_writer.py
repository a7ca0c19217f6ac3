"""From a question to the request that asks it: endpoint, fields and messages, as a server takes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from yiemagent_nb.backends.engine.chat_request import ChatRequest, chat_fields
from yiemagent_nb.backends.engine.habits import Api, Habits, Lessons, RequestPlan
from yiemagent_nb.backends.engine.options import ServerOptions
from yiemagent_nb.backends.engine.responses_request import ResponsesRequest, responses_fields
from yiemagent_nb.backends.engine.tool_choice import apply_tool_choice
from yiemagent_nb.backends.http.connection import RequestBody
from yiemagent_nb.core.backend import OpenAIMessages
from yiemagent_nb.core.messages import AssistantMessage
from yiemagent_nb.core.models import LlmModel, ModelCost, ThinkingLevel
from yiemagent_nb.core.output import in_words
from yiemagent_nb.core.reading.fields import REASONING_FIELDS, as_mapping, text_of
from yiemagent_nb.core.request import WireMessage
from yiemagent_nb.core.signal import AbortSignal

__all__ = ["OPTIONS_OF_REQUESTS", "Question", "Request", "RequestWriter"]

OPTIONS_OF_REQUESTS = ("temperature", "top_p", "seed", "stop", "max_tokens", "response_format", "tool_choice")
"""The options of a backend that are fields of its requests."""

_REASONING_KEYS = frozenset({*REASONING_FIELDS, "reasoning_details"})


@dataclass(frozen=True, slots=True)
class Question:
    """What one call asks."""

    messages: OpenAIMessages
    tools: Sequence[Mapping[str, Any]] | None
    model: LlmModel | str | None
    thinking_level: ThinkingLevel
    signal: AbortSignal | None
    options: Mapping[str, Any] = field(repr=False)


class Request(NamedTuple):
    """A request as it is sent, and the first piece of its answer, with what is known of it beforehand.

    ``rewrites`` is how often the question was put otherwise before.
    """

    plan: RequestPlan
    body: bytes
    first_piece: dict[str, Any]
    rewrites: int = 0


class RequestWriter:
    """Writes the requests of one backend.

    Args:
        habits: What the server wants in a way of its own.
        api: The endpoint; None leaves it to the model.
        options: The backend's options, of which some are fields of each request.
        register: Told of the fields, so that keys among them can be masked.
    """

    def __init__(
        self,
        habits: Habits,
        api: Api | None,
        options: ServerOptions,
        register: Callable[[Mapping[str, object]], None],
    ) -> None:
        self._habits = habits
        self._api: Api | None = api
        self._options = {name: options.get(name) for name in OPTIONS_OF_REQUESTS}
        self._extra_body = dict(options.get("extra_body") or {})
        self._asks_usage = options.get("include_usage", True)
        self._text_tool_calls = options.get("text_tool_calls", False)
        self._register = register
        self._chat = ChatRequest()
        self._responses = ResponsesRequest(habits.provider)

    def write(
        self, question: Question, model: LlmModel, cost: ModelCost | None, lessons: Lessons, *, stream: bool
    ) -> Request:
        """The request for a question.

        Args:
            question: What is asked.
            model: The model that is asked, made ready.
            cost: What it costs; None where nobody knows.
            lessons: What refusals taught.
            stream: Whether the answer comes in pieces.

        Raises:
            InvalidParametersError: Something in it cannot be sent.
        """
        habits = self._habits
        thinking = habits.thinking(question.thinking_level, model, lessons)
        api = self._api or habits.api_of(model, lessons)
        fields: dict[str, Any] = {"model": model.id, "stream": stream}
        if stream and self._asks_usage and api == "chat-completions" and "no_usage" not in lessons:
            fields["stream_options"] = {"include_usage": True}
        for more in (self._options, thinking.fields, self._extra_body, question.options):
            _lay_over(fields, more)
        fields = {name: value for name, value in fields.items() if value is not None}
        self._register(fields)
        has_format = (as_mapping(fields.get("response_format")) or {}).get("type") not in {None, "text"}
        plan = RequestPlan(model, api, self._api is not None, thinking.sent != "off", has_format, lessons)
        tools, choice = question.tools, fields.pop("tool_choice", None)
        if tools is not None and choice is not None:
            tools, choice = apply_tool_choice(tools, choice, habits.tool_choices)
            if choice is not None:
                fields["tool_choice"] = choice
        messages = self._adapted(question.messages, plan, fields)
        fields = habits.fields(fields, plan)
        if api == "responses":
            body = self._responses.encode(messages, tools, responses_fields(fields))
        else:
            body = self._chat.encode(messages, tools, chat_fields(fields))
        first_piece: dict[str, Any] = {
            "api": api,
            "provider": habits.provider,
            "model": model.id,
            "thinking_sent": thinking.sent,
        }
        if cost is not None:
            first_piece["prices"] = cost
        if self._text_tool_calls:
            first_piece["text_tool_calls"] = True
        return Request(plan, RequestBody(body), first_piece)

    def _adapted(self, messages: OpenAIMessages, plan: RequestPlan, fields: dict[str, Any]) -> OpenAIMessages:
        """The messages, without what this server or model does not take. Nearly always they stay as they are."""
        model, lessons = plan.model, plan.lessons
        if "input" in model.model_fields_set and "image" not in model.input:
            messages = _each(messages, lambda message: _without_images(message, model.id))
        if plan.api == "responses" and (since := lessons.get("reasoning_since")) is not None:
            messages = _each(messages, lambda message: dict(message) if _is_older(message, since) else message)
        elif plan.api == "chat-completions" and "no_reasoning_fields" in lessons:
            messages = _each(messages, _without_reasoning)
        if plan.has_format and not self._habits.takes_format(plan):
            output = as_mapping(fields.pop("response_format")) or {}
            schema = (as_mapping(output.get("json_schema")) or {}).get("schema") or {"type": "object"}
            first = messages[0] if messages and messages[0].get("role") == "system" else None
            prompt = in_words("" if first is None else text_of(first.get("content")), schema)
            messages = [{"role": "system", "content": prompt}, *(messages if first is None else messages[1:])]
        return messages


def _each(
    messages: OpenAIMessages, change: Callable[[Mapping[str, Any]], Mapping[str, Any]]
) -> Sequence[Mapping[str, Any]]:
    changed = [change(message) for message in messages]
    return messages if all(new is old for new, old in zip(changed, messages, strict=True)) else changed


def _without_images(message: Mapping[str, Any], model: str) -> Mapping[str, Any]:
    content: object = message.get("content")
    if not isinstance(content, list):
        return message
    blocks = cast("list[Mapping[str, Any]]", content)
    if not any("image_url" in block for block in blocks):
        return message
    words = {"type": "text", "text": f"(An image stands here; {model} reads text only.)"}
    texts = [text_of((words if "image_url" in block else block).get("text")) for block in blocks]
    return {**message, "content": "\n".join(texts)}


def _is_older(message: Mapping[str, Any], since: Any) -> bool:
    source = message.source if isinstance(message, WireMessage) else None
    return isinstance(source, AssistantMessage) and source.timestamp <= since


def _without_reasoning(message: Mapping[str, Any]) -> Mapping[str, Any]:
    if _REASONING_KEYS.isdisjoint(message):
        return message
    return {name: value for name, value in message.items() if name not in _REASONING_KEYS}


def _lay_over(fields: dict[str, Any], more: Mapping[str, Any]) -> None:
    """Put ``more`` over ``fields``; objects that stand in both are joined."""
    for name, value in more.items():
        old = fields.get(name)
        both = isinstance(value, Mapping) and isinstance(old, Mapping)
        fields[name] = {**cast("Mapping[str, Any]", old), **cast("Mapping[str, Any]", value)} if both else value
