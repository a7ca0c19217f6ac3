"""One conversation, carried from server to server; every request is what its server publishes."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from typing import Any, NamedTuple, cast

import pytest
from wire.case_server import CaseServer
from wire.published import Server, check_body

from yiemagent_nb import Agent, ImageContent, LlmModel, TextContent, ThinkingLevel, UserMessage, tool
from yiemagent_nb.backends.engine.model_server import ModelServer
from yiemagent_nb.backends.lm_studio import LMStudio
from yiemagent_nb.backends.openai import OpenAI
from yiemagent_nb.backends.openai_compatible import OpenAICompatible
from yiemagent_nb.backends.vllm import VLLM
from yiemagent_nb.core.backend import LlmCall

pytestmark = pytest.mark.requirement("Y FR-002", "Y US-005", "Y SD-009", "A SPEC-1.2")

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
LM_STUDIO_MODELS = {
    "models": [
        {
            "type": "llm",
            "key": "m-1",
            "display_name": "M 1",
            "loaded_instances": [{"id": "m-1", "config": {"context_length": 8192}}],
            "max_context_length": 32768,
            "capabilities": {
                "vision": True,
                "trained_for_tool_use": True,
                "reasoning": {"allowed_options": ["off", "on"], "default": "on"},
            },
        }
    ]
}


@tool
def look_up(city: str) -> ImageContent:
    """Look at a city.

    Args:
        city: Its name.
    """
    del city
    return ImageContent.from_bytes(PIXEL)


def chat(reasoning: str, number: int, **details: Any) -> list[Mapping[str, Any]]:
    """The answers of a chat completions server: a call with its reasoning, then text."""

    def events(*deltas: Mapping[str, Any], finish: str) -> Mapping[str, Any]:
        chunks: list[Any] = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
        chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
        chunks.append({"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}})
        return {"body": [*[f"data: {json.dumps(chunk)}\n\n" for chunk in chunks], "data: [DONE]\n\n"]}

    function = {"name": "look_up", "arguments": '{"city":"Ely"}'}
    call = {"index": 0, "id": f"call_{number}", "type": "function", "function": function}
    return [
        events({reasoning: f"thought {number}", **details}, {"tool_calls": [call]}, finish="tool_calls"),
        events({"content": f"answer {number}"}, finish="stop"),
    ]


def responses(number: int) -> list[Mapping[str, Any]]:
    """The answers of a Responses server, the same way."""

    def events(*items: Mapping[str, Any]) -> Mapping[str, Any]:
        told: list[Mapping[str, Any]] = [{"type": "response.created", "response": {"id": "resp", "output": []}}]
        for index, item in enumerate(items):
            begun: dict[str, Any] = {**item, **({"content": []} if item["type"] == "message" else {"arguments": ""})}
            told.append({"type": "response.output_item.added", "output_index": index, "item": begun})
            if item["type"] == "message":
                text = item["content"][0]["text"]
                told.append({"type": "response.output_text.delta", "output_index": index, "delta": text})
            told.append({"type": "response.output_item.done", "output_index": index, "item": item})
        usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
        whole = {"status": "completed", "output": list(items), "usage": usage, "error": None}
        told.append({"type": "response.completed", "response": whole})
        return {"body": [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in told]}

    summary = [{"type": "summary_text", "text": f"thought {number}"}]
    reasoning = {"type": "reasoning", "id": f"rs_{number}", "summary": summary, "encrypted_content": f"secret {number}"}
    call = {
        "type": "function_call",
        "id": f"fc_{number}",
        "call_id": f"call_{number}",
        "name": "look_up",
        "arguments": '{"city":"Ely"}',
    }
    text: dict[str, Any] = {
        "type": "message",
        "id": f"msg_{number}",
        "role": "assistant",
        "content": [{"type": "output_text", "text": f"answer {number}", "annotations": []}],
    }
    return [events(reasoning, call), events(text)]


Build = Callable[[str], ModelServer]
"""Makes a backend for an address."""


class Stop(NamedTuple):
    """A server on the way."""

    server: Server
    backend: LlmCall
    requests: list[Any]


DETAILS = [{"type": "reasoning.encrypted", "data": "opaque", "index": 0, "format": "openai-responses-v1"}]


async def stops(stack: AsyncExitStack) -> list[Stop]:
    """All servers, each with its two answers."""
    found: list[Stop] = []

    async def add(server: Server, answers: Iterable[Mapping[str, Any]], build: Build) -> None:
        case = {
            "sequence": list(answers),
            "body": "",
            "paths": {"/api/v1/models": {"body": json.dumps(LM_STUDIO_MODELS)}},
        }
        played = await stack.enter_async_context(CaseServer(case))
        backend = await stack.enter_async_context(build(played.base_url))
        found.append(Stop(server, backend, played.requests))

    key = "sk-across-0123456789"
    await add("openai-responses", responses(0), lambda url: OpenAI("gpt-5.4", base_url=url, api_key=key))
    await add("lmstudio", chat("reasoning", 1), lambda url: LMStudio("m-1", base_url=url))
    await add("vllm", chat("reasoning", 2), lambda url: VLLM("m-1", base_url=url, seed=1))
    await add("openai-chat", chat("none", 3), lambda url: OpenAI("gpt-4.1", base_url=url, api_key=key, seed=1))
    await add("ollama", chat("reasoning", 4), lambda url: OpenAICompatible(url, "m-1", preset="ollama"))
    await add("llamacpp", chat("reasoning_content", 5), lambda url: OpenAICompatible(url, "m-1", preset="llamacpp"))
    await add(
        "openrouter",
        chat("reasoning", 6, reasoning_details=DETAILS),
        lambda url: OpenAICompatible(url, "a/m-1", preset="openrouter", api_key=key),
    )
    await add("sglang", chat("reasoning_content", 7), lambda url: OpenAICompatible(url, "m-1", preset="sglang"))
    await add("openai-responses", responses(8), lambda url: OpenAI("gpt-5.4", base_url=url, api_key=key))
    return found


async def test_a_conversation_goes_from_server_to_server_and_each_gets_what_it_publishes() -> None:
    async with AsyncExitStack() as stack:
        way = await stops(stack)
        async with Agent(way[0].backend, "Be brief.", tools=[look_up], thinking_level="high") as agent:
            for number, stop in enumerate(way):
                agent.set_llm_call(stop.backend)
                question = UserMessage([TextContent(f"question {number}"), ImageContent.from_bytes(PIXEL)])
                answer = await agent.prompt(question)
                assert (answer.text, answer.stop_reason) == (f"answer {number}", "end_turn"), answer.error_message
                assert answer.usage is not None
        for stop in way:
            assert len(stop.requests) == 2
            for request in stop.requests:
                check_body(stop.server, request.body)


async def test_what_is_one_servers_own_goes_back_to_it_and_to_no_other() -> None:
    async with AsyncExitStack() as stack:
        way = await stops(stack)
        async with Agent(way[0].backend, tools=[look_up], thinking_level="high") as agent:
            for stop in way:
                agent.set_llm_call(stop.backend)
                await agent.prompt("go")
        sent = [json.dumps([request.body for request in stop.requests]) for stop in way]
        for number, stop in enumerate(way[:-1]):
            own = {at for at, body in enumerate(sent) if f"thought {number}" in body}
            home = {at for at, other in enumerate(way) if provider_of(other) == provider_of(stop)}
            assert own <= home, stop.server
        first, *_, last = (stop.requests[-1].body["input"] for stop in (way[0], way[-1]))
        kinds = [item["type"] for item in first]
        assert kinds == ["message", "reasoning", "function_call", "function_call_output", "message"]
        assert first[1]["encrypted_content"] == "secret 0"
        assert [item["encrypted_content"] for item in last if item["type"] == "reasoning"] == ["secret 0", "secret 8"]
        router = way[6].requests[-1].body["messages"]
        assert [message["reasoning_details"] for message in router if "reasoning_details" in message] == [DETAILS]


def provider_of(stop: Stop) -> str:
    return cast("Any", stop.backend).provider


async def test_a_backend_may_change_between_a_call_and_its_result() -> None:
    async with AsyncExitStack() as stack:
        way = await stops(stack)
        first, second = way[0], way[2]

        @tool(name="look_up")
        def swap(city: str) -> str:
            """Take another backend."""
            agent.set_llm_call(second.backend)
            return f"seen {city}"

        async with Agent(first.backend, tools=[swap], thinking_level="low") as agent:
            answer = await agent.prompt("go")
        assert (answer.text, answer.provider) == ("answer 2", "vllm")
        assert len(first.requests) == 1
        question, call, result = second.requests[0].body["messages"]
        assert [question["role"], call["role"], result["role"]] == ["user", "assistant", "tool"]
        assert (result["tool_call_id"], result["content"]) == (call["tool_calls"][0]["id"], "seen Ely")
        for request in second.requests:
            check_body("vllm", request.body)


LEVELS: tuple[ThinkingLevel, ...] = ("off", "minimal", "low", "medium", "high", "xhigh", "max")


def switch(on: bool, *names: str) -> dict[str, Any]:
    return {"chat_template_kwargs": dict.fromkeys(names, on)}


def efforts(*words: str | None) -> list[dict[str, Any]]:
    return [{"reasoning_effort": word} if word else {} for word in words]


WORDS = ("minimal", "low", "medium", "high", "xhigh", "max")
BODIES: list[tuple[str, Server, Build, list[dict[str, Any]], list[str]]] = [
    (
        "any server",
        "openai-chat",
        lambda url: OpenAICompatible(url, "m"),
        efforts(None, "low", "low", "medium", "high", "high", "high"),
        ["off", "low", "low", "medium", "high", "high", "high"],
    ),
    (
        "gpt-5.4",
        "openai-responses",
        lambda url: OpenAI("gpt-5.4", base_url=url, api_key="sk-test-0123456789"),
        [
            {"reasoning": {"effort": word, **({"summary": "auto"} if word != "none" else {})}}
            for word in ("none", "low", "low", "medium", "high", "xhigh", "xhigh")
        ],
        ["off", "low", "low", "medium", "high", "xhigh", "xhigh"],
    ),
    (
        "gpt-5 over chat completions",
        "openai-chat",
        lambda url: OpenAI("gpt-5", base_url=url, api="chat-completions", api_key="sk-test-0123456789"),
        efforts("minimal", "minimal", "low", "medium", "high", "high", "high"),
        ["minimal", "minimal", "low", "medium", "high", "high", "high"],
    ),
    (
        "gpt-4.1",
        "openai-chat",
        lambda url: OpenAI("gpt-4.1", base_url=url, api_key="sk-test-0123456789"),
        [{}] * 7,
        ["off"] * 7,
    ),
    (
        "vllm",
        "vllm",
        lambda url: VLLM("m", base_url=url),
        [
            switch(False, "enable_thinking", "thinking"),
            *({**switch(True, "enable_thinking", "thinking"), "reasoning_effort": word} for word in WORDS),
        ],
        ["off", *WORDS],
    ),
    (
        "sglang",
        "sglang",
        lambda url: OpenAICompatible(url, "m", preset="sglang"),
        [
            switch(False, "enable_thinking", "thinking"),
            *({**switch(True, "enable_thinking", "thinking"), "reasoning_effort": word} for word in WORDS),
        ],
        ["off", *WORDS],
    ),
    (
        "llama.cpp",
        "llamacpp",
        lambda url: OpenAICompatible(url, "m", preset="llamacpp"),
        [
            switch(False, "enable_thinking"),
            *({**switch(True, "enable_thinking"), "reasoning_effort": word} for word in WORDS),
        ],
        ["off", *WORDS],
    ),
    (
        "ollama",
        "ollama",
        lambda url: OpenAICompatible(url, "m", preset="ollama"),
        efforts("none", "low", "low", "medium", "high", "max", "max"),
        ["off", "low", "low", "medium", "high", "max", "max"],
    ),
    (
        "openrouter",
        "openrouter",
        lambda url: OpenAICompatible(url, "m", preset="openrouter"),
        [{}, *({"reasoning": {"effort": word}} for word in WORDS)],
        ["off", *WORDS],
    ),
]


@pytest.mark.parametrize(("server", "build", "fields", "told"), [row[1:] for row in BODIES], ids=[r[0] for r in BODIES])
async def test_every_thinking_level_becomes_what_the_server_publishes(
    server: Server, build: Build, fields: list[dict[str, Any]], told: list[str]
) -> None:
    answers = [
        answer
        for number in range(7)
        for answer in (responses(number) if "responses" in server else chat("x", number))[1:]
    ]
    async with CaseServer({"sequence": answers, "body": ""}) as played, build(played.base_url) as backend:
        for level, wanted, word in zip(LEVELS, fields, told, strict=True):
            async with Agent(backend, thinking_level=level) as agent:
                answer = await agent.prompt("go")
            body = played.requests[-1].body
            names = ("reasoning_effort", "reasoning", "chat_template_kwargs", "enable_thinking")
            assert {name: body[name] for name in names if name in body} == wanted, level
            assert answer.thinking_sent == word, level
            check_body(server, body)


async def test_a_model_that_cannot_think_is_never_asked_to() -> None:
    model = LlmModel(id="plain", reasoning=False)
    async with CaseServer({"sequence": chat("x", 0)[1:], "body": ""}) as played:
        for build in (lambda: VLLM(model, base_url=played.base_url), lambda: OpenAICompatible(played.base_url, model)):
            async with build() as backend, Agent(backend, thinking_level="max") as agent:
                assert (await agent.prompt("go")).thinking_sent == "off"
            assert "reasoning_effort" not in played.requests[-1].body
            assert "chat_template_kwargs" not in played.requests[-1].body
