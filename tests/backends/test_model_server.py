"""What the engine does for all servers: lessons from refusals, models and their prices, what a model cannot read."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Mapping
from typing import Any, cast

import httpx2
import pytest
from pydantic import BaseModel
from wire.case_server import CaseServer

from yiemagent_nb import Agent, ImageContent, LlmModel, ModelCost, TextContent, UserMessage, tool
from yiemagent_nb.backends.discovery import Candidate, DefaultBackend, Found
from yiemagent_nb.backends.openai import OpenAI
from yiemagent_nb.backends.openai_compatible import OpenAICompatible
from yiemagent_nb.backends.vllm import VLLM
from yiemagent_nb.core.errors import InvalidParametersError

pytestmark = pytest.mark.requirement("Y FR-002", "Y US-005", "Y SD-009")

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def said(text: str = "Hello", usage: bool = False, **delta: Any) -> Mapping[str, Any]:
    chunks: list[Any] = [{"choices": [{"index": 0, "delta": {**delta, "content": text}, "finish_reason": "stop"}]}]
    if usage:
        chunks.append({"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 5}})
    return {"body": [*[f"data: {json.dumps(chunk)}\n\n" for chunk in chunks], "data: [DONE]\n\n"]}


def called(**delta: Any) -> Mapping[str, Any]:
    function = {"name": "add", "arguments": '{"a":1,"b":2}'}
    calls = [{"index": 0, "id": "c1", "type": "function", "function": function}]
    chunk = {"choices": [{"index": 0, "delta": {**delta, "tool_calls": calls}, "finish_reason": "tool_calls"}]}
    return {"body": [f"data: {json.dumps(chunk)}\n\n", "data: [DONE]\n\n"]}


def refused(message: str, status: int = 400) -> Mapping[str, Any]:
    return {"http": {"status": status}, "body": json.dumps({"error": {"message": message}})}


def sequence(*answers: Mapping[str, Any], **paths: Any) -> Mapping[str, Any]:
    return {"sequence": list(answers), "body": "", **paths}


@tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


class TestLessons:
    async def test_usage_is_not_asked_for_again_where_the_question_was_refused(self) -> None:
        no = refused("Unrecognized request argument supplied: stream_options")
        async with CaseServer(sequence(no, no, said())) as server, OpenAICompatible(server.base_url, "m") as backend:
            answers = await asyncio.gather(*(Agent(backend).prompt("hi") for _ in range(2)))
            await Agent(backend).prompt("hi")
        assert [answer.text for answer in answers] == ["Hello", "Hello"]
        assert ["stream_options" in request.body for request in server.requests] == [True, True, False, False, False]

    async def test_reasoning_is_not_sent_back_to_a_model_that_refuses_it(self) -> None:
        no = refused("'messages.2' : for 'role:assistant' the following must be satisfied["
                     "('messages.2' : property 'reasoning_content' is unsupported)]")  # fmt: skip
        answers = sequence(said(reasoning_content="Hm."), no, said("again", reasoning_content="Ha."), said("more"))
        async with CaseServer(answers) as server, OpenAICompatible(server.base_url, "m") as backend:
            agent = Agent(backend)
            texts = [(await agent.prompt("hi")).text for _ in range(3)]
        assert texts == ["Hello", "again", "more"]
        sent = ["reasoning_content" in json.dumps(request.body) for request in server.requests]
        assert sent == [False, True, False, False]
        assert agent.messages[1].reasoning == "Hm."  # type: ignore[union-attr]

    async def test_a_server_without_structured_output_is_told_in_words(self) -> None:
        class City(BaseModel):
            name: str

        no = refused("Cannot use custom grammar constraints with tools.")
        answers = sequence(called(), said('{"name":"Ely"}'))
        answers["sequence"].insert(0, no)
        async with CaseServer(answers) as server, OpenAICompatible(server.base_url, "m") as backend:
            agent = Agent(backend, "Be brief.", tools=[add])
            assert await agent.prompt("Which?", output_type=City) == City(name="Ely")
        first, *others = (request.body for request in server.requests)
        assert "response_format" in first
        for body in others:
            assert "response_format" not in body
            assert body["messages"][0]["content"].startswith("Be brief.\n\nYour final answer must be one JSON object")
            assert '"name"' in body["messages"][0]["content"]
            assert body["tools"]
        assert len(others) == 2

    async def test_vllm_is_asked_with_fewer_efforts_and_without_switches_where_it_refuses_them(self) -> None:
        answers = sequence(
            refused("chat_template is not supported for Mistral tokenizers."),
            refused("[{'loc': ('body', 'reasoning_effort'), 'msg': \"Input should be 'low', 'medium' or 'high'\"}]"),
            said(),
        )
        async with CaseServer(answers) as server, VLLM("m", base_url=server.base_url) as backend:
            answer = await Agent(backend, thinking_level="max").prompt("hi")
        assert answer.thinking_sent == "high"
        body = server.requests[-1].body
        assert body["reasoning_effort"] == "high"
        assert "chat_template_kwargs" not in body

    async def test_ollamas_model_that_cannot_think_is_not_asked_to_and_others_are(self) -> None:
        answers = sequence(refused('"llama3" does not support thinking'), said())
        async with CaseServer(answers) as server, OpenAICompatible(server.base_url, preset="ollama") as backend:
            for model in ("llama3", "llama3", "qwen3"):
                await Agent(backend, model=model, thinking_level="high").prompt("hi")
        efforts = [request.body.get("reasoning_effort") for request in server.requests]
        assert efforts == ["high", None, None, "high"]

    @pytest.mark.parametrize("words", ["model 'qwen3-thinking' not found", "Think about your reasoning budget."])
    async def test_other_words_about_thinking_teach_nothing(self, words: str) -> None:
        answers = sequence(refused(words, 404), said())
        async with CaseServer(answers) as server, OpenAICompatible(server.base_url, "m", preset="ollama") as backend:
            await Agent(backend, thinking_level="high").prompt("hi")
            await Agent(backend, thinking_level="high").prompt("hi")
        assert [request.body.get("reasoning_effort") for request in server.requests] == ["high", "high"]


class TestModels:
    LIST = staticmethod(lambda *names: {"body": json.dumps({"data": [{"id": name} for name in names]})})

    async def test_the_first_model_is_looked_for_anew_when_the_server_has_another(self) -> None:
        gone = refused("The model `a` does not exist.", 404)
        paths = {"/v1/models": self.LIST("a")}
        async with (
            CaseServer(sequence(said(), gone, said(), paths=paths)) as server,
            VLLM(base_url=server.base_url) as backend,
            Agent(backend) as agent,
        ):
            assert (await agent.prompt("hi")).model == "a"
            paths["/v1/models"] = self.LIST("b")
            assert (await agent.prompt("hi")).model == "b"
            assert (await backend.health()).ok
            assert agent.state.model is not None
            assert agent.state.model.id == "b"
        assert [request.body["model"] for request in server.requests] == ["a", "a", "b"]

    async def test_a_model_that_the_user_chose_is_never_replaced(self) -> None:
        gone = refused("The model `a` does not exist.", 404)
        listed = {"paths": {"/v1/models": self.LIST("b")}}
        async with (
            CaseServer(sequence(gone, said(), **listed)) as server,
            VLLM("a", base_url=server.base_url) as backend,
        ):
            assert "does not exist" in ((await Agent(backend).prompt("hi")).error_message or "")
        assert len(server.requests) == 1

    async def test_two_agents_may_say_different_things_of_one_model(self) -> None:
        plain, thinking = LlmModel(id="m", reasoning=False), LlmModel(id="m", reasoning=True)
        async with CaseServer(sequence(said())) as server, OpenAICompatible(server.base_url) as backend:
            for model in (plain, thinking, plain):
                await Agent(backend, model=model, thinking_level="low").prompt("hi")
        assert ["reasoning_effort" in request.body for request in server.requests] == [False, True, False]

    async def test_a_models_name_is_enough_to_know_what_it_can(self) -> None:
        model = LlmModel(id="gpt-5.4", provider="openai")
        backend = OpenAI(model, api_key="sk-test-0123456789")
        assert backend.model is not None
        assert (backend.model.reasoning, backend.model.context_window) == (True, 1_050_000)
        agent = Agent(backend, model="gpt-4.1")
        assert agent.state.model is not None
        assert (agent.state.model.reasoning, agent.state.model.cost.input > 0) == (False, True)

    async def test_an_image_is_told_of_where_the_model_reads_text_only(self) -> None:
        blind = LlmModel(id="m", input=("text",))
        async with CaseServer(sequence(said())) as server:
            for model in (blind, LlmModel(id="m")):
                async with OpenAICompatible(server.base_url, model) as backend:
                    agent = Agent(backend)
                    await agent.prompt(UserMessage([TextContent("Look:"), ImageContent.from_bytes(PIXEL)]))
        first, second = (request.body["messages"][0]["content"] for request in server.requests)
        assert first == "Look:\n(An image stands here; m reads text only.)"
        assert second[1]["type"] == "image_url"
        assert isinstance(agent.messages[0].content[1], ImageContent)  # type: ignore[union-attr]


class TestCost:
    @pytest.mark.parametrize(
        ("options", "total"),
        [
            ({"preset": "llamacpp", "model": "m"}, 0.0),
            ({"model": "m"}, None),
            ({"model": "m", "prices": {"m": {"input": 1e5, "output": 2e5}}}, 2.0),
            ({"model": LlmModel(id="m", cost=ModelCost(input=1e5))}, 1.0),
            ({"model": "gpt-4.1"}, (10 * 2 + 5 * 8) / 1e6),
        ],
        ids=["a server of one's own", "unknown", "the user's table", "the user's model", "the shipped table"],
    )
    async def test_a_cost_stands_where_the_price_is_known(self, options: Any, total: float | None) -> None:
        async with (
            CaseServer(sequence(said(usage=True))) as server,
            OpenAICompatible(server.base_url, **options) as backend,
        ):
            usage = (await Agent(backend).prompt("hi")).usage
        assert usage is not None
        assert (None if usage.cost is None else usage.cost.total) == (None if total is None else pytest.approx(total))


class TestKeys:
    @pytest.mark.parametrize("name", ["Authorization", "api-key", "X-Api-Key"])
    async def test_a_header_of_ones_own_takes_the_place_of_the_key(
        self, name: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-environment-0123456789")
        async with (
            CaseServer(sequence(said())) as server,
            OpenAI("gpt-4.1", base_url=server.base_url, headers={name: "Bearer mine-0123456789"}) as backend,
        ):
            assert (await Agent(backend).prompt("hi")).text == "Hello"
        assert server.requests[0].headers[name.lower()] == "Bearer mine-0123456789"
        assert "sk-environment" not in str(server.requests[0].headers)

    async def test_no_key_is_demanded_where_a_header_a_login_or_a_client_proves_who_asks(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("OPENAI_API_KEY", raising=False)
        async with CaseServer(sequence(said())) as server, httpx2.AsyncClient(auth=("me", "password")) as client:
            login = server.base_url.replace("http://", "http://me:password@")
            for backend in (
                OpenAI("gpt-4.1", base_url=login),
                OpenAI("gpt-4.1", base_url=server.base_url, headers={"api-key": "k-0123456789"}),
                OpenAI("gpt-4.1", base_url=server.base_url, http_client=client),
            ):
                async with backend:
                    assert (await Agent(backend).prompt("hi")).text == "Hello"

    @pytest.mark.parametrize("name", ["headers", "timeout", "retries", "prices", "http_client", "api_key_env"])
    async def test_what_is_no_part_of_a_request_is_refused_there(self, name: str) -> None:
        backend = OpenAICompatible("http://127.0.0.1:9/v1", "m")
        with pytest.raises(InvalidParametersError, match=f"{name} cannot be set for one request"):
            backend([], **cast("Any", {name: 1}))

    async def test_further_fields_of_one_request_are_laid_over_it(self) -> None:
        async with CaseServer(sequence(said())) as server, OpenAICompatible(server.base_url, "m") as backend:
            await Agent(backend, options={"extra_body": {"top_k": 3}, "top_p": 0.5}).prompt("hi")
        assert (server.requests[0].body["top_k"], server.requests[0].body["top_p"]) == (3, 0.5)
        assert "extra_body" not in server.requests[0].body


async def test_reasoning_goes_back_within_the_first_run_of_a_backend_that_had_to_be_found() -> None:
    async with CaseServer(sequence(called(reasoning="Hm."), said())) as server:

        async def find() -> Found:
            choice = Candidate("ollama", "m", "It is there.", server.base_url, ("m",))
            return Found(choice.build(), "m", "It is there.", choice=choice)

        await Agent(DefaultBackend(find), tools=[add]).prompt("go")
    assert server.requests[1].body["messages"][1]["reasoning"] == "Hm."


async def test_reasoning_does_not_go_from_one_unknown_server_to_another() -> None:
    async with (
        CaseServer(sequence(said(reasoning_content="Hm."))) as first,
        CaseServer(sequence(said())) as second,
        OpenAICompatible(first.base_url, "m") as one,
        OpenAICompatible(second.base_url, "m") as other,
    ):
        agent = Agent(one)
        await agent.prompt("hi")
        await agent.prompt("hi")
        agent.set_llm_call(other)
        await agent.prompt("hi")
    assert "reasoning_content" in first.requests[1].body["messages"][1]
    assert "reasoning_content" not in json.dumps(second.requests[0].body)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"http": {"headers": {"Content-Type": "text/plain"}}, "body": ["Not Found"]}, 'no JSON: "Not Found"'),
        ({"body": "{}"}, "an empty JSON object"),
    ],
)
async def test_what_is_no_answer_is_told_in_the_servers_words(answer: Mapping[str, Any], words: str) -> None:
    async with CaseServer(answer) as server, OpenAICompatible(server.base_url, "m", retries=0) as backend:
        error = (await Agent(backend).prompt("hi")).error_message or ""
    assert words in error
    assert "llm_call" not in error
