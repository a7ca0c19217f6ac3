"""The bound that ratios are taken against: a loop as one writes it by hand on httpx2.

It keeps the history as a list of dicts and nothing else: no types, no checks, no events.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Any, Final

import httpx2

__all__ = ["ADD", "BareAgent", "Complete", "client_for", "streamed", "streamed_responses", "whole"]

Message = dict[str, Any]

Complete = Callable[[Mapping[str, Any]], Awaitable[Message]]
"""Sends a request and gives the answer's message."""

ADD: Final[Mapping[str, Any]] = {
    "type": "function",
    "function": {
        "name": "add",
        "description": "Add two integers.",
        "parameters": {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "required": ["a", "b"],
        },
    },
}
"""The tool, as a model sees it."""


def client_for(base_url: str) -> httpx2.AsyncClient:
    """An HTTP client with room for a connection each of a hundred agents."""
    limits = httpx2.Limits(max_connections=1000, max_keepalive_connections=200)
    return httpx2.AsyncClient(base_url=base_url, timeout=60, limits=limits)


def whole(client: httpx2.AsyncClient) -> Complete:
    """Answers in one piece."""

    async def complete(request: Mapping[str, Any]) -> Message:
        response = await client.post("/chat/completions", json=request)
        message: Message = response.json()["choices"][0]["message"]
        return message

    return complete


def streamed(client: httpx2.AsyncClient, on_text: Callable[[str], None]) -> Complete:
    """Answers that stream in; ``on_text`` is told each piece of text."""

    async def complete(request: Mapping[str, Any]) -> Message:
        pieces: list[str] = []
        calls: dict[int, dict[str, Any]] = {}
        async with client.stream("POST", "/chat/completions", json=request) as response:
            async for delta in _deltas(response):
                if text := delta.get("content"):
                    pieces.append(text)
                    on_text(text)
                for part in delta.get("tool_calls", ()):
                    if "id" in part:
                        calls[part.pop("index")] = part
                    else:
                        calls[part["index"]]["function"]["arguments"] += part["function"]["arguments"]
        message: Message = {"role": "assistant", "content": "".join(pieces) or None}
        if calls:
            message["tool_calls"] = list(calls.values())
        return message

    return complete


def streamed_responses(client: httpx2.AsyncClient, on_text: Callable[[str], None]) -> Complete:
    """Text that streams in over the Responses API; ``on_text`` is told each piece of it."""

    async def complete(request: Mapping[str, Any]) -> Message:
        pieces: list[str] = []
        body = {"model": request["model"], "stream": True, "input": request["messages"]}
        async with client.stream("POST", "/responses", json=body) as response:
            async for line in response.aiter_lines():
                if line.startswith("data: "):
                    event = json.loads(line[6:])
                    if event["type"] == "response.output_text.delta":
                        pieces.append(event["delta"])
                        on_text(event["delta"])
        return {"role": "assistant", "content": "".join(pieces)}

    return complete


async def _deltas(response: httpx2.Response) -> AsyncGenerator[dict[str, Any], None]:
    async for line in response.aiter_lines():
        if line.startswith("data: ") and line != "data: [DONE]":
            for choice in json.loads(line[6:])["choices"]:
                yield choice["delta"]


class BareAgent:
    """The loop.

    Args:
        complete: Sends a request.
        model: The model's name.
        add: The function behind the tool.
        stream: Whether ``complete`` wants streams.
    """

    def __init__(
        self, complete: Complete, model: str, add: Callable[..., Awaitable[int]], *, stream: bool = False
    ) -> None:
        self._complete = complete
        self._add = add
        self._request: dict[str, Any] = {"model": model, "stream": stream}
        self._messages: list[Message] = [{"role": "system", "content": "Be brief."}]

    async def ask(self, text: str) -> str:
        """Say something and give back the last answer."""
        messages = self._messages
        messages.append({"role": "user", "content": text})
        while True:
            answer = await self._complete({**self._request, "messages": messages, "tools": [ADD]})
            messages.append(answer)
            calls = answer.get("tool_calls")
            if not calls:
                return answer["content"]
            if len(calls) == 1:
                messages.append(await self._run(calls[0]))
            else:
                messages += await asyncio.gather(*map(self._run, calls))

    async def _run(self, call: Mapping[str, Any]) -> Message:
        value = await self._add(**json.loads(call["function"]["arguments"]))
        return {"role": "tool", "tool_call_id": call["id"], "content": str(value)}
