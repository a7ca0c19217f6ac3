"""Tools to offer the demo, and its answers put together from their chunks."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from yiemagent_nb.backends.demo import Demo

TEXT, NUMBER, WHOLE, SWITCH = {"type": "string"}, {"type": "number"}, {"type": "integer"}, {"type": "boolean"}
PIXEL = "data:image/png;base64,iVBORw0KGgo="

Message = dict[str, Any]


def function(name: str, description: str, /, *optional: str, **properties: Mapping[str, Any]) -> dict[str, Any]:
    """A tool in OpenAI's form; all parameters are required but those named."""
    required = [key for key in properties if key not in optional]
    schema = {"type": "object", "properties": properties, "required": required}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


ADD = function("add", "Add two numbers.", a=NUMBER, b=NUMBER)
SUBTRACT = function("subtract", "Subtract b from a.", a=NUMBER, b=NUMBER)
MULTIPLY = function("multiply", "Multiply two numbers.", a=NUMBER, b=NUMBER)
TIME = function("get_time", "Tell the time in a city.", city=TEXT)
UNIT = {"type": "string", "enum": ["celsius", "fahrenheit"]}
DAY = {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]}
WEATHER = function("get_weather", "The weather of a city.", "unit", "day", city=TEXT, unit=UNIT, day=DAY)
ROLL = function("roll_die", "Roll a die.", "sides", sides=WHOLE)
TRANSLATE = function("translate", "Translate a text.", text=TEXT, target_language=TEXT)
SEARCH = function("search_web", "Search the web.", "limit", query=TEXT, limit=WHOLE)
MEAN = function("mean", "The mean of numbers.", values={"type": "array", "items": NUMBER})
PERSON = {"type": "object", "properties": {"name": TEXT, "age": WHOLE}, "required": ["name", "age"]}
REGISTER = function("register", "Register a person.", "urgent", person=PERSON, urgent=SWITCH)
GREET = function("greet", "Greet someone.", name=TEXT)
PLOT = function("plot_sine", "Plot a sine wave.", "frequency", frequency=NUMBER)
DELETE = function("delete_file", "Delete a file.", path=TEXT)
EMAIL = function("send_email", "Send an email.", recipient=TEXT, subject=TEXT, body=TEXT)
ALL = [ADD, SUBTRACT, MULTIPLY, TIME, WEATHER, ROLL, TRANSLATE, SEARCH, MEAN, REGISTER, GREET, PLOT, DELETE, EMAIL]


@dataclass
class Answer:
    """An answer put together from its chunks."""

    text: str = ""
    thought: str = ""
    calls: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    images: list[str] = field(default_factory=list[str])
    finish: str | None = None
    usage: dict[str, int] = field(default_factory=dict[str, int])
    extras: dict[str, Any] = field(default_factory=dict[str, Any])
    pieces: int = 0

    @property
    def made(self) -> list[tuple[str, dict[str, Any]]]:
        return [(call["name"], json.loads(call["arguments"])) for call in self.calls]

    @property
    def message(self) -> Message:
        calls = [
            {"id": c["id"], "type": "function", "function": {"name": c["name"], "arguments": c["arguments"]}}
            for c in self.calls
        ]
        return {"role": "assistant", "content": self.text or None, **({"tool_calls": calls} if calls else {})}


async def read(chunks: AsyncIterator[Mapping[str, Any]]) -> Answer:
    answer = Answer()
    async for chunk in chunks:
        if "choices" not in chunk:
            answer.extras = dict(chunk)
            continue
        answer.usage = chunk.get("usage", answer.usage)
        for choice in chunk["choices"]:
            answer.finish = choice["finish_reason"] or answer.finish
            take(answer, choice["delta"])
    return answer


def take(answer: Answer, delta: Mapping[str, Any]) -> None:
    answer.pieces += 1
    answer.thought += delta.get("reasoning_content", "")
    content = delta.get("content", "")
    if isinstance(content, str):
        answer.text += content
    else:
        answer.images += [block["image_url"]["url"] for block in content]
    for part in delta.get("tool_calls", ()):
        if part["index"] == len(answer.calls):
            answer.calls.append({"id": part["id"], "name": part["function"]["name"], "arguments": ""})
        answer.calls[part["index"]]["arguments"] += part["function"]["arguments"]


async def ask(messages: Sequence[Message], tools: Any = None, **options: Any) -> Answer:
    return await read(await Demo(delay=0)(messages, tools=tools, **options))


def user(text: str) -> Message:
    return {"role": "user", "content": text}


def results(answer: Answer, *texts: str) -> list[Message]:
    """What the tools said to an answer's calls, behind that answer."""
    said = zip(answer.calls, texts, strict=True)
    return [answer.message, *({"role": "tool", "tool_call_id": c["id"], "content": text} for c, text in said)]


async def said_after(request: str, *texts: str, tools: Any = None) -> Answer:
    """The answer once the tools have said these texts."""
    tools = ALL if tools is None else tools
    first = await ask([user(request)], tools)
    return await ask([user(request), *results(first, *texts)], tools)
