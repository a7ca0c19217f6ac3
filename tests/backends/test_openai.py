"""OpenAI's own habits, against real sockets."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field
from wire.case_server import CaseServer
from wire.published import check_body

from yiemagent_nb import Agent, tool
from yiemagent_nb.backends.http.retry import RetryPolicy
from yiemagent_nb.backends.openai import OpenAI
from yiemagent_nb.backends.openai_compatible import OpenAICompatible
from yiemagent_nb.core.errors import AuthenticationError
from yiemagent_nb.core.models import LlmModel, ModelCost

pytestmark = pytest.mark.requirement("Y FR-002", "Y US-005", "Y SD-009", "Y P-003")

KEY = "sk-test-0123456789"
FAST = RetryPolicy(retries=1, first_delay=0.001)


def told(*events: Mapping[str, Any]) -> list[str]:
    return [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events]


def completed(**fields: Any) -> Mapping[str, Any]:
    usage = {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 40},
        "output_tokens": 20,
        "output_tokens_details": {"reasoning_tokens": 8},
        "total_tokens": 120,
    }
    response: dict[str, Any] = {
        "id": "resp_1",
        "model": "gpt-5.4-2026-03-05",
        "status": "completed",
        "output": [],
        "usage": usage,
    }
    return {"type": "response.completed", "response": {**response, **fields}}


HELLO: Mapping[str, Any] = {
    "body": told({"type": "response.output_text.delta", "output_index": 0, "delta": "Hello"}, completed())
}
CHAT: Mapping[str, Any] = {
    "body": [
        'data: {"choices":[{"index":0,"delta":{"content":"Hello"},"finish_reason":"stop"}]}\n\n',
        "data: [DONE]\n\n",
    ]
}


def refusal(message: str, param: str | None = None, status: int = 400) -> Mapping[str, Any]:
    error = {"message": message, "type": "invalid_request_error", "param": param, "code": None}
    return {"http": {"status": status}, "body": json.dumps({"error": error})}


def sequence(*answers: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"sequence": list(answers), "body": ""}


@tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


async def test_a_model_that_reasons_is_asked_over_responses_and_nothing_is_stored() -> None:
    async with (
        CaseServer(HELLO) as server,
        OpenAI("gpt-5.4", base_url=server.base_url, api_key=KEY, max_tokens=99) as backend,
        Agent(backend, "Be brief.", tools=[add], thinking_level="medium") as agent,
    ):
        answer = await agent.prompt("hi")
    (request,) = server.requests
    assert request.path == "/v1/responses"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    body = request.body
    check_body("openai-responses", body)
    assert {name: body[name] for name in body if name not in {"input", "tools"}} == {
        "model": "gpt-5.4",
        "stream": True,
        "store": False,
        "max_output_tokens": 99,
        "instructions": "Be brief.",
        "reasoning": {"effort": "medium", "summary": "auto"},
        "include": ["reasoning.encrypted_content"],
    }
    assert body["tools"][0]["strict"] is False
    assert (answer.text, answer.api, answer.provider, answer.thinking_sent) == (
        "Hello",
        "responses",
        "openai",
        "medium",
    )
    assert answer.usage is not None
    assert (answer.usage.cache_read_tokens, answer.usage.reasoning_tokens) == (40, 8)


async def test_cost_stands_in_the_message_by_the_shipped_table_or_the_users() -> None:
    prices = {"gpt-5.4": ModelCost(input=10, output=100, cache_read=1)}
    async with CaseServer(HELLO) as server:
        async with OpenAI("gpt-5.4", base_url=server.base_url, api_key=KEY, prices=prices) as backend:
            usage = (await Agent(backend).prompt("hi")).usage
        assert usage is not None
        assert usage.cost is not None
        assert usage.cost.total == pytest.approx((60 * 10 + 40 * 1 + 20 * 100) / 1e6)
    assert OpenAI("gpt-5.4", api_key=KEY).describe_model("gpt-5.4-2026-03-05").cost.input > 0


@pytest.mark.parametrize("model", ["gpt-4.1", "gpt-4o-mini", "gpt-4o-2024-05-13"])
async def test_a_model_that_does_not_reason_is_asked_over_chat_completions(model: str) -> None:
    async with (
        CaseServer(CHAT) as server,
        OpenAI(
            model, base_url=server.base_url, api_key=KEY, max_tokens=9, temperature=0, stop=["x"], seed=3
        ) as backend,
    ):
        await Agent(backend, tools=[add], thinking_level="high").prompt("hi")
    body = server.requests[0].body
    check_body("openai-chat", body)
    assert server.requests[0].path == "/v1/chat/completions"
    assert (body["max_completion_tokens"], body["temperature"], body["stop"], body["seed"]) == (9, 0, ["x"], 3)
    assert "reasoning_effort" not in body


def test_models_newer_than_the_table_are_known_by_their_names() -> None:
    backend = OpenAI(api_key=KEY)
    assert backend.describe_model("gpt-9-preview").api == "responses"
    assert backend.describe_model("o7-mini").reasoning
    assert not backend.describe_model("gpt-5-chat-latest").reasoning
    assert not backend.describe_model("gpt-4.5-turbo").reasoning
    assert backend.describe_model("gpt-5.4").context_window == 1_050_000


async def test_what_a_user_says_of_a_model_goes_before_what_is_known_of_it() -> None:
    model = LlmModel(id="gpt-5.4", api="chat-completions", cost=ModelCost(input=1, output=1))
    async with CaseServer(CHAT) as server, OpenAI(model, base_url=server.base_url, api_key=KEY) as backend:
        await Agent(backend, thinking_level="low").prompt("hi")
    assert server.requests[0].path == "/v1/chat/completions"
    assert server.requests[0].body["reasoning_effort"] == "low"
    assert backend.model is not None
    assert (backend.model.cost.input, backend.model.context_window) == (1, 1_050_000)


async def test_temperature_is_left_out_while_a_model_thinks_and_the_log_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with (
        CaseServer(HELLO) as server,
        OpenAI("gpt-5.4", base_url=server.base_url, api_key=KEY, temperature=0.5) as backend,
    ):
        with caplog.at_level(logging.WARNING):
            await Agent(backend, thinking_level="high").prompt("hi")
            await Agent(backend, thinking_level="high").prompt("hi")
        await Agent(backend).prompt("hi")
    bodies = [request.body for request in server.requests]
    assert ["temperature" in body for body in bodies] == [False, False, True]
    assert [record.message for record in caplog.records if "temperature" in record.message] == [
        "gpt-5.4 takes no temperature while it thinks: left out"
    ]


async def test_a_chat_model_that_needs_responses_is_asked_there_from_then_on() -> None:
    words = (
        "Function tools with reasoning_effort are not supported for gpt-4-next in /v1/chat/completions. "
        "To use function tools, use /v1/responses or set reasoning_effort to 'none'."
    )
    answers = sequence(refusal(words, "reasoning_effort"), HELLO, HELLO)
    async with (
        CaseServer(answers) as server,
        OpenAI(LlmModel(id="gpt-4-next", reasoning=True), base_url=server.base_url, api_key=KEY) as backend,
        Agent(backend, tools=[add], thinking_level="low") as agent,
    ):
        first = await agent.prompt("hi")
        await agent.prompt("again")
    assert [request.path for request in server.requests] == ["/v1/chat/completions", "/v1/responses", "/v1/responses"]
    assert (first.text, first.api) == ("Hello", "responses")


async def test_where_the_user_chose_chat_completions_the_refusal_is_told() -> None:
    words = "To use function tools, use /v1/responses or set reasoning_effort to 'none'."
    async with (
        CaseServer(sequence(refusal(words))) as server,
        OpenAI("gpt-5.4", base_url=server.base_url, api_key=KEY, api="chat-completions") as backend,
    ):
        answer = await Agent(backend, tools=[add], thinking_level="low").prompt("hi")
    assert answer.stop_reason == "error"
    assert "Use the Responses API for this model" in (answer.error_message or "")
    assert len(server.requests) == 1


@pytest.mark.parametrize("api", ["chat-completions", "responses"])
async def test_an_effort_that_the_model_lacks_becomes_the_nearest_that_the_server_names(
    api: Literal["chat-completions", "responses"],
) -> None:
    words = (
        "Unsupported value: 'xhigh' is not supported with the 'gpt-8' model. Supported values are: 'low', and 'high'."
    )
    good = HELLO if api == "responses" else CHAT
    param = "reasoning.effort" if api == "responses" else "reasoning_effort"
    async with (
        CaseServer(sequence(refusal(f"{words} ({param})", param), good, good)) as server,
        OpenAI("gpt-8", base_url=server.base_url, api_key=KEY, api=api) as backend,
        Agent(backend, thinking_level="xhigh") as agent,
    ):
        answer = await agent.prompt("hi")
        agent.set_thinking_level("off")
        second = await agent.prompt("hi")
    assert (answer.thinking_sent, second.thinking_sent) == ("high", "low")
    assert len(server.requests) == 3


async def test_summaries_are_not_asked_for_again_where_the_organisation_may_not_have_them() -> None:
    words = "Your organization must be verified to generate reasoning summaries."
    async with (
        CaseServer(sequence(refusal(words, "reasoning.summary"), HELLO)) as server,
        OpenAI("o3", base_url=server.base_url, api_key=KEY) as backend,
    ):
        assert (await Agent(backend, thinking_level="low").prompt("hi")).text == "Hello"
    assert [request.body["reasoning"] for request in server.requests] == [
        {"effort": "low", "summary": "auto"},
        {"effort": "low"},
    ]


async def test_reasoning_of_another_account_is_left_out_and_the_question_asked_again() -> None:
    item: dict[str, Any] = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA"}
    message: dict[str, Any] = {
        "type": "message",
        "id": "msg_a",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "Hello", "annotations": []}],
    }
    thought: Mapping[str, Any] = {
        "body": told(
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.output_text.delta", "output_index": 1, "delta": "Hello"},
            {"type": "response.output_item.done", "output_index": 1, "item": message},
            completed(),
        )
    }
    refused = refusal("The encrypted content for item rs_1 could not be verified.")
    async with (
        CaseServer(sequence(thought, thought, refused, thought, HELLO)) as server,
        OpenAI("gpt-5.4", base_url=server.base_url, api_key=KEY) as backend,
        Agent(backend) as agent,
    ):
        for _ in range(4):
            assert (await agent.prompt("hi")).text == "Hello"
    kinds = [[item["type"] for item in request.body["input"]] for request in server.requests]
    # Asked again without it, and from then on only what came later goes back.
    assert [each.count("reasoning") for each in kinds] == [0, 1, 2, 0, 1]
    second = server.requests[1].body["input"]
    assert second[1] == item
    assert [each["type"] for each in second] == ["message", "reasoning", "message", "message"]


async def test_questions_side_by_side_learn_each_for_itself() -> None:
    words = "Your organization must be verified to generate reasoning summaries."
    refused = [refusal(words, "reasoning.summary")] * 3
    async with (
        CaseServer(sequence(*refused, HELLO)) as server,
        OpenAI("o3", base_url=server.base_url, api_key=KEY) as backend,
    ):
        agents = [Agent(backend, thinking_level="low") for _ in range(3)]
        answers = await asyncio.gather(*(agent.prompt("hi") for agent in agents))
        assert [answer.text for answer in answers] == ["Hello"] * 3
        await Agent(backend, thinking_level="low").prompt("hi")
    assert [request.body["reasoning"].get("summary") for request in server.requests] == ["auto"] * 3 + [None] * 4


async def test_a_refusal_that_stays_is_told_and_nothing_is_kept_of_it() -> None:
    words = "Your organization must be verified to generate reasoning summaries."
    answers = [refusal(words), refusal("No such tool."), HELLO]
    async with CaseServer(sequence(*answers)) as server, OpenAI("o3", base_url=server.base_url, api_key=KEY) as backend:
        agent = Agent(backend, thinking_level="low")
        assert "No such tool" in ((await agent.prompt("hi")).error_message or "")
        assert (await agent.prompt("hi")).text == "Hello"
    assert [request.body["reasoning"].get("summary") for request in server.requests] == ["auto", None, "auto"]


async def test_a_refusal_that_no_request_can_mend_is_told_at_once() -> None:
    refused = refusal("The encrypted content for item rs_1 could not be verified.")
    async with (
        CaseServer(sequence(refused)) as server,
        OpenAI("gpt-5.4", base_url=server.base_url, api_key=KEY) as backend,
    ):
        answer = await Agent(backend).prompt("hi")
    assert "could not be verified" in (answer.error_message or "")
    assert len(server.requests) == 1


async def test_a_server_that_always_finds_something_else_is_given_up() -> None:
    words = "Unsupported value. Supported values are: '{}'."
    refused = [refusal(words.format(effort), "reasoning.effort") for effort in ("low", "high") * 20]
    async with (
        CaseServer(sequence(*refused)) as server,
        OpenAI("gpt-8", base_url=server.base_url, api_key=KEY) as backend,
    ):
        answer = await Agent(backend, thinking_level="medium").prompt("hi")
    assert "Unsupported value" in (answer.error_message or "")
    assert len(server.requests) == 9


@pytest.mark.parametrize(
    "words", ["Invalid schema for function 'summarize_text'.", "encrypted volumes are full", "think again"]
)
async def test_words_that_only_sound_alike_teach_nothing(words: str) -> None:
    async with (
        CaseServer(sequence(refusal(words))) as server,
        OpenAI("o3", base_url=server.base_url, api_key=KEY) as one,
    ):
        await Agent(one, thinking_level="low").prompt("hi")
    assert len(server.requests) == 1


async def test_what_the_responses_api_lacks_is_left_out_and_the_log_says_so(caplog: pytest.LogCaptureFixture) -> None:
    async with (
        CaseServer(HELLO) as server,
        OpenAI("gpt-5.4", base_url=server.base_url, api_key=KEY, stop="x") as backend,
    ):
        with caplog.at_level(logging.WARNING):
            answer = await Agent(backend, options={"seed": 1}).prompt("hi")
    assert answer.text == "Hello"
    assert not {"stop", "seed"} & server.requests[0].body.keys()
    assert [record.message for record in caplog.records if "Responses" in record.message] == [
        "the Responses API, over which gpt-5.4 is asked, has no seed and no stop: left out"
    ]


async def test_a_choice_of_a_tool_has_the_form_of_each_endpoint() -> None:
    async with CaseServer(sequence(HELLO, CHAT)) as server:
        for model in ("gpt-5.4", "gpt-4.1"):
            async with OpenAI(model, base_url=server.base_url, api_key=KEY, tool_choice="add") as backend:
                await Agent(backend, tools=[add]).prompt("hi")
    first, second = (request.body["tool_choice"] for request in server.requests)
    assert first == {"type": "function", "name": "add"}
    assert second == {"type": "function", "function": {"name": "add"}}


async def test_a_missing_key_is_named_before_anything_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    async with CaseServer(HELLO) as server, OpenAI(base_url=server.base_url) as backend:
        answer = await Agent(backend).prompt("hi")
        health = await backend.health()
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        assert (await Agent(backend).prompt("hi")).text == "Hello"
    assert "OPENAI_API_KEY is not set" in (answer.error_message or "")
    assert AuthenticationError.code in (answer.error_message or "")
    assert (health.ok, "OPENAI_API_KEY" in health.message) == (False, True)
    assert len(server.requests) == 1


async def test_organisation_and_project_are_headers() -> None:
    async with (
        CaseServer(HELLO) as server,
        OpenAI(
            base_url=server.base_url, api_key=KEY, organization="org-1", project="p-1", headers={"X-A": "1"}
        ) as backend,
    ):
        await Agent(backend).prompt("hi")
    headers = server.requests[0].headers
    assert (headers["openai-organization"], headers["openai-project"], headers["x-a"]) == ("org-1", "p-1", "1")


async def test_a_whole_answer_of_responses_is_read_like_a_streamed_one() -> None:
    output = [
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}]},
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "add", "arguments": '{"a":1,"b":2}'},
    ]
    whole = {"body": json.dumps(completed(output=output)["response"])}
    text = [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "3"}]}]
    last = {"body": json.dumps(completed(output=text)["response"])}
    async with (
        CaseServer(sequence(whole, last)) as server,
        OpenAI("gpt-5.4", base_url=server.base_url, api_key=KEY, stream=False) as backend,
        Agent(backend, tools=[add]) as agent,
    ):
        answer = await agent.prompt("hi")
        assert agent.messages[1].role == "assistant"
    assert answer.text == "3"
    assert [item["type"] for item in server.requests[1].body["input"]] == [
        "message",
        "reasoning",
        "function_call",
        "function_call_output",
    ]


class Person(BaseModel):
    """A person."""

    name: str
    age: int = 0
    tags: list[str] = Field(default_factory=list)


@pytest.mark.parametrize("model", ["gpt-5.4", "gpt-4.1"])
async def test_an_output_type_binds_the_model_strictly(model: str) -> None:
    text = '{"name":"Ada","age":36,"tags":[]}'
    piece = {"index": 0, "delta": {"content": text}, "finish_reason": "stop"}
    answers = {
        "gpt-5.4": {
            "body": told({"type": "response.output_text.delta", "output_index": 0, "delta": text}, completed())
        },
        "gpt-4.1": {"body": [f"data: {json.dumps({'choices': [piece]})}\n\n", "data: [DONE]\n\n"]},
    }
    async with (
        CaseServer(answers[model]) as server,
        OpenAI(model, base_url=server.base_url, api_key=KEY) as backend,
    ):
        person = await Agent(backend).prompt("Who?", output_type=Person)
    assert person == Person(name="Ada", age=36)
    body = server.requests[0].body
    check_body("openai-responses" if model == "gpt-5.4" else "openai-chat", body)
    output = body["text"]["format"] if model == "gpt-5.4" else body["response_format"]["json_schema"]
    assert (output["strict"], output["name"]) == (True, "Person")
    assert output["schema"]["required"] == ["name", "age", "tags"]
    assert output["schema"]["additionalProperties"] is False


async def test_other_servers_get_the_schema_as_it_is() -> None:
    piece = {"index": 0, "delta": {"content": '{"name":"Ada"}'}, "finish_reason": "stop"}
    case = {"body": [f"data: {json.dumps({'choices': [piece]})}\n\n", "data: [DONE]\n\n"]}
    async with CaseServer(case) as server, OpenAICompatible(server.base_url, "m") as backend:
        assert await Agent(backend).prompt("Who?", output_type=Person) == Person(name="Ada")
    inner = server.requests[0].body["response_format"]["json_schema"]
    assert "strict" not in inner
    assert inner["schema"]["required"] == ["name"]
