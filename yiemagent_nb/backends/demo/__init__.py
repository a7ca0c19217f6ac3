"""Demo: the backend that answers when no other was chosen. Offline, deterministic, no model.

How it works, one module a step: ``conversation`` reads the request, ``slots`` the tools' schemas;
``talk`` answers what needs no tool; ``planning`` cuts a request into clauses, ``matching`` finds
each one's tool and ``filling`` its arguments, from the values that ``facts`` finds; ``speaking``
reports what came back; ``reply`` puts these together; ``structured`` fills a JSON Schema where one is
asked for, on the ground of ``blanks``. All of it is functions over plain data, and
what the next answer is follows from the conversation alone, so nothing is remembered in between.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from yiemagent_nb.backends.demo.conversation import Call, Entry, Image, read_entries, read_tools
from yiemagent_nb.backends.demo.reply import Reply, make_reply
from yiemagent_nb.backends.demo.structured import fill_schema, read_output_schema, without_corrections
from yiemagent_nb.core.backend import OpenAIMessages
from yiemagent_nb.core.models import LlmModel
from yiemagent_nb.core.signal import AbortSignal

__all__ = ["Demo"]

CHARACTERS_A_TOKEN = 4
CALL_PIECE = 12
"""Characters of a call's arguments in one piece."""

_PIECE = re.compile(r"\S+\s*|\s+")

Chunk = dict[str, Any]


class Demo:
    """A script that answers, calls the tools that are there, and reports what they say.

    It is no language model, and says so. It understands requests that name a tool or what it is
    for ("add 17 and 25", "weather in Paris and in Rome", "call add with a=1, b=2"), asks for what
    is missing, shows errors and images, fills the JSON Schema of a structured output from what was
    said, knows ``/help``, ``/tour`` and ``/markdown``, and works with any tool by its JSON Schema.
    It needs no network, and no input makes it fail.

    Token counts are estimates, of one token for four characters.

    Args:
        delay: Seconds between two pieces of an answer.

    Example::

        agent = Agent(Demo(), tools=[add])
        await agent.prompt("add 17 and 25")
    """

    suggestions = ("What can you do?", "/tour", "/markdown")
    """Prompts that always work."""

    def __init__(self, *, delay: float = 0.01) -> None:
        self.delay = delay

    def __repr__(self) -> str:
        """How it was made."""
        return f"Demo(delay={self.delay!r})"

    @property
    def provider(self) -> str:
        """``demo``."""
        return "demo"

    @property
    def model(self) -> LlmModel:
        """A stand-in, so that headers and statistics have a name to show."""
        return LlmModel(id="demo", name="built-in script", provider="demo", reasoning=True)

    async def __call__(
        self,
        messages: OpenAIMessages,
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        thinking_level: str = "off",
        signal: AbortSignal | None = None,
        response_format: Mapping[str, Any] | None = None,
        **_: Any,
    ) -> AsyncIterator[Chunk]:
        """Answer, as OpenAI's chunks do.

        Args:
            messages: The conversation in OpenAI's form.
            tools: The tools in OpenAI's form.
            thinking_level: ``off`` keeps it from thinking aloud before an answer in words; before
                calls it always says in a sentence why.
            signal: Ends the stream early.
            response_format: The JSON Schema of the answer, in OpenAI's chat form. What the words and
                the tools' results do not say gets a plain value that is valid.
        """
        entries = read_entries(messages)
        schema = read_output_schema(response_format)
        if schema is not None:
            entries = without_corrections(entries)
        reply = make_reply(entries, read_tools(tools))
        if schema is not None and not reply.calls:
            reply = Reply(text=fill_schema(schema, entries))
        return self._stream(reply, entries, thinking=thinking_level != "off", signal=signal)

    async def _stream(
        self, reply: Reply, entries: Sequence[Entry], *, thinking: bool, signal: AbortSignal | None
    ) -> AsyncIterator[Chunk]:
        yield {"api": "demo", "provider": "demo", "model": "demo"}
        thought = reply.thought or ("I know what to say to this." if thinking else "")
        deltas = [{"reasoning_content": piece} for piece in _PIECE.findall(thought)]
        deltas += [{"content": piece} for piece in _PIECE.findall(reply.text)]
        deltas += [_image_delta(image) for image in reply.images]
        deltas += [delta for index, call in enumerate(reply.calls) for delta in _call_deltas(index, call)]
        for delta in deltas:
            if signal is not None and signal.aborted:
                return
            yield _chunk(delta)
            await asyncio.sleep(self.delay)
        yield _chunk({}, "tool_calls" if reply.calls else "stop")
        yield {"choices": [], "usage": _usage(entries, reply, thought)}


def _chunk(delta: Mapping[str, Any], finish_reason: str | None = None) -> Chunk:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]}


def _image_delta(image: Image) -> dict[str, Any]:
    return {"content": [{"type": "image_url", "image_url": {"url": image.url}}]}


def _call_deltas(index: int, call: Call) -> list[dict[str, Any]]:
    arguments = json.dumps(call.arguments, ensure_ascii=False, allow_nan=False)
    pieces = [arguments[start : start + CALL_PIECE] for start in range(0, len(arguments), CALL_PIECE)]
    head = {"index": index, "id": call.id, "type": "function", "function": {"name": call.name, "arguments": ""}}
    rest = [{"index": index, "function": {"arguments": piece}} for piece in pieces]
    return [{"tool_calls": [part]} for part in (head, *rest)]


def _usage(entries: Sequence[Entry], reply: Reply, thought: str) -> dict[str, int]:
    said = sum(len(entry.text) + sum(len(repr(call.arguments)) for call in entry.calls) for entry in entries)
    answered = len(reply.text) + len(thought) + sum(len(repr(call.arguments)) for call in reply.calls)
    return {"prompt_tokens": -(-said // CHARACTERS_A_TOKEN), "completion_tokens": -(-answered // CHARACTERS_A_TOKEN)}
