"""LM Studio's backend, against a server with LM Studio's habits on a real socket."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest
from backends.lm_studio_server import Disk, LMStudioServer

from yiemagent_nb import Agent
from yiemagent_nb.backends.http.connection import Timeouts
from yiemagent_nb.backends.http.retry import RetryPolicy
from yiemagent_nb.backends.lm_studio import LMStudio
from yiemagent_nb.core.errors import (
    AuthenticationError,
    BackendConnectionError,
    BackendError,
    BackendNotFoundError,
    BackendTimeoutError,
    BadRequestError,
    ContextLengthError,
    InvalidParametersError,
    MalformedResponseError,
)
from yiemagent_nb.core.messages import AssistantMessage
from yiemagent_nb.core.models import LlmModel, ThinkingLevel
from yiemagent_nb.core.reading.assemble import Assembler

pytestmark = pytest.mark.requirement("Y FR-002", "Y US-005")

MESSAGES = [{"role": "user", "content": "hi"}]
ADD = {"type": "function", "function": {"name": "add", "description": "Add.", "parameters": {"type": "object"}}}
TIME = {"type": "function", "function": {"name": "time", "description": "Now.", "parameters": {"type": "object"}}}
EMBEDDING = Disk("text-embedding-nomic", kind="embedding", max_context=2048)
QWEN = Disk("qwen/qwen3-8b", name="Qwen3 8B", vision=True, reasoning=("off", "on"), max_context=32_768)
GPT_OSS = Disk("openai/gpt-oss-20b", name="GPT-OSS 20B", reasoning=("low", "medium", "high"))
LLAMA = Disk("llama-3.2-1b", name="Llama 3.2 1B", tools=False)
FAST = RetryPolicy(retries=2, first_delay=0.001)
LIST, LOAD, UNLOAD = "/api/v1/models", "/api/v1/models/load", "/api/v1/models/unload"
CHAT = "/v1/chat/completions"


async def ask(backend: LMStudio, text: str = "hi", **keywords: Any) -> AssistantMessage:
    assembler = Assembler()
    async for piece in cast("AsyncIterator[Any]", backend([{"role": "user", "content": text}], **keywords)):
        assembler.feed(piece)
    return assembler.finish()


async def let_others_begin() -> None:
    """So many turns of this event loop that a question gets to where it waits for something."""
    for _ in range(20):
        await asyncio.sleep(0)


def connect(server: LMStudioServer, model: str | LlmModel | None = None, **options: Any) -> LMStudio:
    options.setdefault("retries", FAST)
    return LMStudio(model, base_url=server.base_url, **options)


async def test_the_list_has_what_chats_with_what_is_loaded_first() -> None:
    loaded = {GPT_OSS.key: (GPT_OSS.key, 8192)}
    async with LMStudioServer(EMBEDDING, LLAMA, QWEN, GPT_OSS, loaded=loaded) as server, connect(server) as backend:
        models = await backend.models()
    assert [(model.id, model.name, model.loaded, model.context_window) for model in models] == [
        (GPT_OSS.key, "GPT-OSS 20B", True, 8192),
        (QWEN.key, "Qwen3 8B", False, 32_768),
        (LLAMA.key, "Llama 3.2 1B", False, 131_072),  # not trained to call tools
    ]
    assert [model.input for model in models] == [("text",), ("text", "image"), ("text",)]
    assert [model.reasoning for model in models] == [True, True, False]
    assert {(model.provider, model.base_url) for model in models} == {("lmstudio", server.base_url)}


async def test_each_instance_in_memory_is_listed_by_its_name() -> None:
    loaded = {"mine": (QWEN.key, 4096), f"{QWEN.key}:2": (QWEN.key, 16_384)}
    async with LMStudioServer(QWEN, loaded=loaded) as server, connect(server) as backend:
        models = await backend.models()
    assert [(model.id, model.context_window) for model in models] == [
        (QWEN.key, 16_384),
        ("mine", 4096),
        (f"{QWEN.key}:2", 16_384),
    ]


async def test_versions_without_the_newer_list_are_asked_for_the_older_one() -> None:
    loaded = {QWEN.key: (QWEN.key, 8192)}
    async with LMStudioServer(EMBEDDING, LLAMA, QWEN, loaded=loaded, version=3) as server, connect(server) as backend:
        models = await backend.models()
        assert server.asked == [LIST, "/api/v0/models"]
    assert [(model.id, model.loaded, model.context_window, model.input) for model in models] == [
        (QWEN.key, True, 8192, ("text", "image")),
        (LLAMA.key, False, 131_072, ("text",)),
    ]


async def test_the_oldest_versions_list_names_alone() -> None:
    async with LMStudioServer(EMBEDDING, LLAMA, version=2) as server, connect(server) as backend:
        models = await backend.models()
        assert server.asked == [LIST, "/api/v0/models", "/v1/models"]
    assert [(model.id, model.loaded, model.context_window) for model in models] == [
        (LLAMA.key, None, None),
        (EMBEDDING.key, None, None),
    ]


@pytest.mark.parametrize("base", ["", "/v1", "/v1/", "/api/v1", "/api/v0", "/v1/chat/completions"])
async def test_the_address_may_be_that_of_any_of_its_apis(base: str) -> None:
    async with LMStudioServer(QWEN) as server:
        address = server.base_url.removesuffix("/v1") + base
        async with LMStudio(QWEN.key, base_url=address) as backend:
            assert backend.base_url == server.base_url
            assert (await ask(backend)).text == "Hello"
        assert server.asked == [LIST, LOAD, CHAT]


async def test_a_model_is_loaded_before_the_first_question_and_asked_for_once() -> None:
    async with LMStudioServer(QWEN) as server, connect(server, QWEN.key) as backend:
        message = await ask(backend)
        for _ in range(2):
            await ask(backend)
        assert server.asked == [LIST, LOAD, CHAT, CHAT, CHAT]
        assert server.bodies(LOAD) == [{"model": QWEN.key, "echo_load_config": True}]
        assert backend.describe_model(QWEN.key).context_window == 4096
    assert (message.text, message.provider, message.model) == ("Hello", "lmstudio", QWEN.key)
    assert message.usage is not None


async def test_a_loaded_model_is_asked_as_it_is() -> None:
    async with (
        LMStudioServer(QWEN, loaded={QWEN.key: (QWEN.key, 8192)}) as server,
        connect(server, QWEN.key) as backend,
    ):
        assert (await ask(backend)).text == "Hello"
        whole = await cast("Any", backend(MESSAGES, stream=False))
        assert whole["choices"][0]["message"]["content"] == "Hello"
        assert server.asked == [LIST, CHAT, CHAT]


async def test_without_a_name_the_loaded_model_answers_and_the_list_is_asked_once() -> None:
    loaded = {LLAMA.key: (LLAMA.key, 8192)}
    async with LMStudioServer(EMBEDDING, QWEN, LLAMA, loaded=loaded) as server, connect(server) as backend:
        assert (await ask(backend)).model == LLAMA.key
        assert server.asked == [LIST, CHAT]


async def test_questions_that_come_together_load_a_model_once() -> None:
    async with LMStudioServer(QWEN) as server, connect(server, QWEN.key) as backend:
        server.gate.clear()
        questions = [asyncio.ensure_future(ask(backend)) for _ in range(4)]
        await server.loading.wait()
        server.gate.set()
        assert [message.text for message in await asyncio.gather(*questions)] == ["Hello"] * 4
        assert server.asked == [LIST, LOAD, *[CHAT] * 4]
        assert list(server.memory) == [QWEN.key]


@pytest.mark.parametrize(
    ("loaded", "wanted", "unloads", "loads"),
    [
        ({}, 16_384, [], 16_384),
        ({}, 1_000_000, [], 32_768),  # no more than the model can have
        ({QWEN.key: 16_384}, 16_384, [], None),
        ({QWEN.key: 32_768}, 16_384, [], None),
        ({QWEN.key: 32_768}, 1_000_000, [], None),
        ({QWEN.key: 4096}, 16_384, [QWEN.key], 16_384),
        ({"mine": 4096, f"{QWEN.key}:2": 8192}, 16_384, ["mine", f"{QWEN.key}:2"], 16_384),
        ({"mine": 4096, f"{QWEN.key}:2": 20_000}, 16_384, [], None),
    ],
)
async def test_a_model_with_less_context_than_wanted_is_loaded_anew(
    loaded: dict[str, int], wanted: int, unloads: list[str], loads: int | None
) -> None:
    memory = {name: (QWEN.key, context) for name, context in loaded.items()}
    async with (
        LMStudioServer(QWEN, loaded=memory) as server,
        connect(server, QWEN.key, context_length=wanted) as backend,
    ):
        assert (await ask(backend)).text == "Hello"
        assert [body["instance_id"] for body in server.bodies(UNLOAD)] == unloads
        assert [body["context_length"] for body in server.bodies(LOAD)] == ([] if loads is None else [loads])
        most = max(context for _, context in server.memory.values())
        assert most >= min(wanted, QWEN.max_context)
        assert backend.describe_model(QWEN.key).context_window == most
        assert server.memory[server.bodies(CHAT)[0]["model"]][1] == most


async def test_an_instance_and_a_quantization_can_be_asked_by_their_names() -> None:
    gemma = Disk("google/gemma", variants=("google/gemma@q4_k_m", "google/gemma@q8_0"))
    async with LMStudioServer(gemma, loaded={"mine": (gemma.key, 4096)}) as server, connect(server) as backend:
        for name in ("mine", "google/gemma", "google/gemma@q4_k_m"):
            assert (await ask(backend, model=name)).model == "mine"
            assert server.bodies(CHAT)[-1]["model"] == "mine"
        assert LOAD not in server.asked
        await ask(backend, model="google/gemma@q8_0")
        assert server.bodies(LOAD) == [{"model": "google/gemma@q8_0", "echo_load_config": True}]
        assert server.bodies(CHAT)[-1]["model"] == gemma.key
        assert UNLOAD not in server.asked


async def test_an_instance_with_too_little_context_is_replaced_alone() -> None:
    loaded = {"mine": (QWEN.key, 4096), "other": (LLAMA.key, 4096)}
    async with (
        LMStudioServer(QWEN, LLAMA, loaded=loaded) as server,
        connect(server, "mine", context_length=8192) as backend,
    ):
        assert (await ask(backend)).text == "Hello"
        assert server.memory == {"other": (LLAMA.key, 4096), QWEN.key: (QWEN.key, 8192)}
        assert server.bodies(CHAT)[0]["model"] == QWEN.key


async def test_a_loading_that_takes_long_is_waited_for() -> None:
    async with LMStudioServer(QWEN) as server, connect(server, QWEN.key) as backend:
        server.gate.clear()
        question = asyncio.ensure_future(ask(backend))
        await server.loading.wait()
        assert not question.done()
        server.gate.set()
        assert (await question).text == "Hello"


async def test_a_loading_that_takes_too_long_ends_in_a_timeout() -> None:
    async with (
        LMStudioServer(QWEN) as server,
        connect(server, QWEN.key, timeout=Timeouts(first_byte=1)) as backend,
    ):
        server.gate.clear()
        with pytest.raises(BackendTimeoutError, match="did not begin to answer within 1 seconds"):
            await ask(backend)
        await server.abandoned.wait()
        assert server.asked == [LIST, LOAD]


@pytest.mark.parametrize("status", [400, 404, 500, 503])
async def test_a_loading_that_fails_says_why_and_is_not_repeated(status: int) -> None:
    big = Disk("big", fits=False)
    async with LMStudioServer(big, load_failure=status) as server, connect(server, "big") as backend:
        with pytest.raises(
            BackendError, match=r"LM Studio did not load big\..*insufficient system resources"
        ) as caught:
            await ask(backend)
        assert "backend.unload" in caught.value.hint
        assert "guardrails" in caught.value.hint
        assert server.asked == [LIST, LOAD]


async def test_a_loading_on_request_that_fails_says_why_and_is_not_repeated() -> None:
    big = Disk("big", fits=False)
    async with LMStudioServer(big) as server, connect(server, "big", load=False) as backend:
        with pytest.raises(BackendError, match="insufficient system resources") as caught:
            await ask(backend)
        assert "guardrails" in caught.value.hint
        assert server.asked == [LIST, CHAT]


async def test_an_abort_ends_the_wait_for_a_loading() -> None:
    async with LMStudioServer(QWEN) as server, connect(server, QWEN.key) as backend:
        server.gate.clear()
        async with Agent(backend) as agent:
            run = asyncio.ensure_future(agent.prompt("hi"))
            await server.loading.wait()
            agent.abort()
            await run
            await asyncio.wait_for(server.abandoned.wait(), 5)
            assert cast("AssistantMessage", agent.state.messages[-1]).stop_reason == "aborted"
            server.gate.set()
            await agent.prompt("again")
            assert cast("AssistantMessage", agent.state.messages[-1]).text == "Hello"
        assert server.asked == [LIST, LOAD, LIST, LOAD, CHAT]


async def test_an_abort_of_one_question_leaves_the_loading_to_the_others() -> None:
    async with LMStudioServer(QWEN) as server, connect(server, QWEN.key) as backend:
        server.gate.clear()
        first, second = asyncio.ensure_future(ask(backend)), asyncio.ensure_future(ask(backend))
        await server.loading.wait()
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        server.gate.set()
        assert (await second).text == "Hello"
        assert server.asked == [LIST, LOAD, CHAT]
        assert not server.abandoned.is_set()


async def test_questions_from_several_threads_load_a_model_once() -> None:
    async with LMStudioServer(QWEN) as server:
        backend = connect(server, QWEN.key)
        asked = threading.Barrier(4)

        async def question() -> str:
            async with backend:
                asking = asyncio.ensure_future(ask(backend))
                await let_others_begin()
                await asyncio.to_thread(asked.wait)
                return (await asking).text

        server.gate.clear()
        threads = [asyncio.ensure_future(asyncio.to_thread(asyncio.run, question())) for _ in range(3)]
        await asyncio.to_thread(asked.wait)
        await server.loading.wait()
        async with connect(server) as other:
            await other.models()
        server.gate.set()
        assert await asyncio.gather(*threads) == ["Hello"] * 3
        assert len(server.bodies(LOAD)) == 1
        assert list(server.memory) == [QWEN.key]


async def test_a_loading_whose_loop_ends_is_begun_anew_by_another_that_waits() -> None:
    async with LMStudioServer(QWEN) as server, connect(server, QWEN.key) as backend:
        ends = threading.Event()

        async def begin() -> None:
            asking = asyncio.ensure_future(ask(backend))
            await asyncio.to_thread(ends.wait)
            assert not asking.done()

        server.gate.clear()
        thread = asyncio.ensure_future(asyncio.to_thread(asyncio.run, begin()))
        await server.loading.wait()
        question = asyncio.ensure_future(ask(backend))
        await let_others_begin()
        ends.set()
        await thread
        await server.abandoned.wait()
        server.gate.set()
        assert (await question).text == "Hello"
        assert server.asked == [LIST, LOAD, LIST, LOAD, CHAT]


async def test_a_model_that_was_unloaded_meanwhile_is_loaded_anew() -> None:
    async with (
        LMStudioServer(QWEN, jit=False) as server,
        connect(server, QWEN.key, context_length=8192) as backend,
    ):
        await ask(backend)
        for _ in range(2):
            server.memory.clear()
            server.requests.clear()
            assert (await ask(backend)).text == "Hello"
            assert server.asked == [CHAT, LIST, LOAD, CHAT]
            assert server.memory == {QWEN.key: (QWEN.key, 8192)}


async def test_questions_that_find_their_model_unloaded_together_load_it_once() -> None:
    async with LMStudioServer(QWEN, jit=False) as server, connect(server, QWEN.key) as backend:
        await ask(backend)
        server.memory.clear()
        server.requests.clear()
        messages = await asyncio.gather(*(ask(backend) for _ in range(4)))
        assert [message.text for message in messages] == ["Hello"] * 4
        assert len(server.bodies(LOAD)) == 1


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (400, "Model unloaded."),
        (400, "Model is unloaded."),
        (404, "No models loaded."),
        (400, "The model has crashed."),
    ],
)
async def test_a_model_that_stays_away_is_made_ready_once_and_then_an_error(status: int, words: str) -> None:
    async with LMStudioServer(QWEN, jit=False) as server, connect(server, QWEN.key) as backend:
        await ask(backend)
        server.requests.clear()
        server.broken = (status, words)
        with pytest.raises(BackendError, match=words):
            await ask(backend)
        assert server.asked == [CHAT, LIST, CHAT]


async def test_without_loading_the_server_loads_or_says_what_to_do() -> None:
    async with LMStudioServer(QWEN) as server, connect(server, QWEN.key, load=False) as backend:
        assert (await ask(backend)).text == "Hello"
        assert server.asked == [LIST, CHAT]
        server.jit = False
        server.memory.clear()
        async with connect(server, QWEN.key, load=False) as other:
            with pytest.raises(BackendNotFoundError, match="No models loaded") as caught:
                await ask(other)
        assert f"backend.load({QWEN.key!r})" in caught.value.hint
        assert "Just-in-Time" in caught.value.hint
        assert server.asked == [LIST, CHAT, LIST, CHAT]


async def test_a_ttl_leaves_loading_to_the_server_since_only_then_it_counts() -> None:
    async with LMStudioServer(QWEN) as server, connect(server, QWEN.key, ttl=300, extra_body={"top_k": 3}) as backend:
        await ask(backend)
        assert server.asked == [LIST, CHAT]
        assert (server.bodies(CHAT)[0]["ttl"], server.bodies(CHAT)[0]["top_k"]) == (300, 3)


async def test_models_are_loaded_and_unloaded_by_hand() -> None:
    async with LMStudioServer(QWEN, LLAMA) as server, connect(server, QWEN.key) as backend:
        model = await backend.load()
        assert (model.id, model.loaded, model.context_window) == (QWEN.key, True, 4096)
        await ask(backend)
        assert server.asked == [LIST, LOAD, CHAT]
        assert (await backend.load(context_length=8192)).context_window == 8192
        assert (await backend.load(LLAMA.key)).id == LLAMA.key
        assert server.memory == {QWEN.key: (QWEN.key, 8192), LLAMA.key: (LLAMA.key, 4096)}
        await ask(backend)
        await backend.unload(LLAMA.key)
        await backend.unload()
        await backend.unload()  # it is not there: nothing to do
        assert server.memory == {}
        assert len(server.bodies(UNLOAD)) == 3  # one for the smaller context
        assert (await ask(backend)).text == "Hello"
        assert list(server.memory) == [QWEN.key]


async def test_without_a_name_what_is_loaded_is_unloaded() -> None:
    loaded = {EMBEDDING.key: (EMBEDDING.key, 2048), "a": (QWEN.key, 1), "b": (QWEN.key, 2), "c": (LLAMA.key, 1)}
    async with LMStudioServer(EMBEDDING, QWEN, LLAMA, loaded=loaded) as server, connect(server) as backend:
        await backend.unload("a")
        assert list(server.memory) == [EMBEDDING.key, "b", "c"]
        await backend.unload()
        assert list(server.memory) == [EMBEDDING.key, "c"]


async def test_names_that_are_not_there_are_refused() -> None:
    async with LMStudioServer(QWEN, EMBEDDING) as server, connect(server, "qwen-99") as backend:
        with pytest.raises(BackendNotFoundError, match="LM Studio did not load qwen-99") as caught:
            await ask(backend)
        assert "lms get qwen-99" in caught.value.hint
        with pytest.raises(BackendNotFoundError, match="LM Studio has no model 'qwen-99'"):
            await backend.unload()
        with pytest.raises(BadRequestError, match="makes embeddings and cannot chat"):
            await ask(backend, model=EMBEDDING.key)
        assert CHAT not in server.asked


async def test_versions_that_cannot_load_leave_it_to_a_request() -> None:
    for version in (2, 3):
        async with LMStudioServer(QWEN, version=version) as server, connect(server, QWEN.key) as backend:
            assert (await ask(backend)).text == "Hello"
            assert LOAD not in server.asked
            with pytest.raises(BadRequestError, match="cannot be told to unload") as caught:
                await backend.unload()
            assert "0.4.0" in caught.value.hint
            server.memory.clear()
            with pytest.raises(BadRequestError, match=r"cannot be told to load qwen/qwen3-8b\.") as caught:
                await backend.load()
            assert "lms load qwen/qwen3-8b" in caught.value.hint
            with pytest.raises(BadRequestError, match="cannot be told to load qwen/qwen3-8b with 16,384") as caught:
                await backend.load(context_length=16_384)
            assert "lms load qwen/qwen3-8b --context-length 16384" in caught.value.hint


async def test_an_older_version_with_enough_context_is_asked() -> None:
    loaded = {QWEN.key: (QWEN.key, 16_384)}
    async with (
        LMStudioServer(QWEN, loaded=loaded, version=3) as server,
        connect(server, QWEN.key, context_length=8192) as backend,
    ):
        assert (await ask(backend)).text == "Hello"


@pytest.mark.requirement("A SPEC-1.2")
@pytest.mark.parametrize(
    ("model", "level", "effort", "sent"),
    [
        (QWEN, "off", "none", "off"),
        (QWEN, "minimal", "medium", "medium"),
        (QWEN, "medium", "medium", "medium"),
        (QWEN, "max", "medium", "medium"),
        (GPT_OSS, "off", None, "off"),  # it has no such setting
        (GPT_OSS, "minimal", "low", "low"),
        (GPT_OSS, "medium", "medium", "medium"),
        (GPT_OSS, "xhigh", "high", "high"),
        (LLAMA, "off", None, "off"),
        (LLAMA, "high", None, "off"),
        (Disk("r1", reasoning=("on",)), "off", None, "off"),
        (Disk("r1", reasoning=("on",)), "low", "medium", "medium"),
        (Disk("odd", reasoning=("off", "cosmic")), "low", "none", "off"),
    ],
)
@pytest.mark.parametrize("api", ["chat-completions", "responses"])
async def test_thinking_is_asked_for_as_the_model_allows(
    model: Disk, level: ThinkingLevel, effort: str | None, sent: str, api: str
) -> None:
    async with LMStudioServer(model) as server, connect(server, model.key, api=api) as backend:
        message = await ask(backend, thinking_level=level)
        body = server.requests[-1].body
    reasoning: Any = {"reasoning_effort": effort} if api == "chat-completions" else {"reasoning": {"effort": effort}}
    assert {key: body[key] for key in body if key.startswith("reasoning")} == ({} if effort is None else reasoning)
    assert message.thinking_sent == sent
    assert (message.text, message.api) == ("Hello", api)


async def test_an_older_version_does_not_say_what_thinks_so_it_is_asked() -> None:
    async with LMStudioServer(GPT_OSS, version=3) as server, connect(server, GPT_OSS.key) as backend:
        assert (await ask(backend, thinking_level="high")).thinking_sent == "high"
        assert server.bodies(CHAT)[0]["reasoning_effort"] == "high"


@pytest.mark.parametrize("choice", ["add", {"type": "function", "function": {"name": "add"}}])
async def test_a_named_tool_is_offered_alone_since_choices_are_words(choice: Any) -> None:
    async with LMStudioServer(QWEN) as server, connect(server, QWEN.key) as backend:
        await ask(backend, tools=[TIME, ADD], tool_choice=choice)
        body = server.bodies(CHAT)[0]
    assert (body["tools"], body["tool_choice"]) == ([ADD], "required")


async def test_json_is_asked_for_by_a_schema() -> None:
    async with LMStudioServer(QWEN) as server, connect(server, QWEN.key) as backend:
        assert (await ask(backend, response_format={"type": "json_object"})).text == "Hello"
        schema = {"type": "json_schema", "json_schema": {"name": "answer", "schema": {"type": "object"}}}
        assert server.bodies(CHAT)[0]["response_format"] == schema
        given = {"type": "json_schema", "json_schema": {"name": "m", "schema": {"type": "array"}}}
        await ask(backend, response_format=given)
        assert server.bodies(CHAT)[1]["response_format"] == given


async def test_a_format_that_responses_would_ignore_is_asked_for_in_words() -> None:
    async with LMStudioServer(QWEN) as server, connect(server, QWEN.key, api="responses") as backend:
        schema = {"type": "object", "properties": {"city": {"type": "string"}}}
        await ask(backend, response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": schema}})
        assert (await ask(backend, response_format={"type": "text"})).text == "Hello"
        first, second = server.bodies("/v1/responses")
    assert '"city"' in first["instructions"]
    assert "format" not in first.get("text", {})
    assert "instructions" not in second


async def test_a_context_that_overflows_is_told_with_its_numbers() -> None:
    loaded = {QWEN.key: (QWEN.key, 4096)}
    async with LMStudioServer(QWEN, loaded=loaded) as server, connect(server, QWEN.key) as backend:
        with pytest.raises(ContextLengthError, match="only 4096 tokens") as caught:
            await ask(backend, "word " * 10_000)
        assert "loaded with 4,096 tokens of context and can have 32,768" in caught.value.hint
        assert "context_length=16384" in caught.value.hint
        assert server.asked == [LIST, CHAT]
    full = {QWEN.key: (QWEN.key, 32_768)}
    async with LMStudioServer(QWEN, loaded=full) as server, connect(server, QWEN.key) as backend:
        with pytest.raises(ContextLengthError) as caught:
            await ask(backend, "word " * 50_000)
    assert "context_length" not in caught.value.hint
    async with LMStudioServer(QWEN, version=2) as server, connect(server, QWEN.key) as backend:
        with pytest.raises(ContextLengthError) as caught:
            await ask(backend, "word " * 10_000)
    assert "context_length=32768" in caught.value.hint


async def test_an_overflow_without_a_word_is_an_answer_with_a_remark() -> None:
    loaded = {QWEN.key: (QWEN.key, 4096)}
    async with (
        LMStudioServer(QWEN, loaded=loaded, overflow="silent") as server,
        connect(server, QWEN.key) as backend,
    ):
        message = await ask(backend, "word " * 10_000)
    assert message.text == ""
    assert message.error_message is not None
    assert message.usage is not None
    assert message.usage.input_tokens > 4096


@pytest.mark.requirement("Y P-003")
async def test_a_token_is_taken_from_the_environment_and_asked_for_where_it_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("LM_API_TOKEN", raising=False)
    async with LMStudioServer(QWEN, token="sk-lm-secret:token") as server, connect(server, QWEN.key) as backend:  # noqa: S106 - a test's own
        with pytest.raises(AuthenticationError) as caught:
            await ask(backend)
        assert "LM_API_TOKEN" in caught.value.hint
        assert server.asked == [LIST]  # a refusal is no older version
        health = await backend.health()
        assert not health.ok
        assert "Manage Tokens" in health.message
        monkeypatch.setenv("LM_API_TOKEN", "sk-lm-secret:token")
        assert (await ask(backend)).text == "Hello"
        assert "secret" not in repr(backend)


async def test_a_server_that_is_off_is_told_how_to_start() -> None:
    async with LMStudioServer(QWEN) as server:
        address = server.base_url
    async with LMStudio(QWEN.key, base_url=address, retries=0) as backend:
        with pytest.raises(BackendConnectionError) as caught:
            await ask(backend)
        assert "lms server start" in caught.value.hint
        assert "lms server start" in (await backend.health()).message


async def test_a_wrong_path_is_an_error_whatever_its_status() -> None:
    async with (
        LMStudioServer(QWEN) as server,
        LMStudio(QWEN.key, base_url=f"{server.base_url}/more", load=False, retries=0) as backend,
    ):
        with pytest.raises(BackendNotFoundError, match="Unexpected endpoint") as caught:
            await backend.models()
        assert "ends in /v1" in caught.value.hint
        with pytest.raises(BackendNotFoundError, match="Unexpected endpoint"):
            await ask(backend)


async def test_health_says_what_is_loaded_and_with_how_much_context() -> None:
    gemma = Disk("gemma", variants=("gemma@q4",))
    loaded = {QWEN.key: (QWEN.key, 8192), "gemma": ("gemma", 4096)}
    async with LMStudioServer(LLAMA, QWEN, gemma, loaded=loaded) as server:
        for name, sentence in (
            (QWEN.key, f"{QWEN.key} is loaded with 8,192 tokens of context."),
            (
                LLAMA.key,
                f"{LLAMA.key} is not loaded yet (it can have 131,072 tokens of context); the first message loads it.",
            ),
            ("gemma@q4", "gemma@q4 is loaded with 4,096 tokens of context."),
        ):
            async with connect(server, name) as backend:
                health = await backend.health()
                assert health.ok
                assert sentence in health.message
        async with connect(server, "nothing") as backend:
            health = await backend.health()
            assert not health.ok
            assert "lists no model 'nothing'" in health.message


async def test_an_answer_to_loading_without_an_instance_is_malformed() -> None:
    async with LMStudioServer(QWEN) as server, connect(server, QWEN.key) as backend:
        server.load_answer = {"status": "loaded"}
        with pytest.raises(MalformedResponseError, match="no instance_id"):
            await ask(backend)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"context_length": 0}, "context_length is 0"),
        ({"context_length": "8k"}, "context_length is '8k'"),
        ({"ttl": -1}, "ttl is -1"),
        ({"ttl": True}, "ttl is True"),
        ({"context_length": 8192, "load": False}, "only where this backend loads"),
        ({"context_length": 8192, "ttl": 60}, "only where this backend loads"),
        ({"base_url": "localhost"}, "no web address"),
    ],
)
async def test_options_that_cannot_be_kept_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidParametersError, match=words):
        LMStudio("m", **options)
    with pytest.raises(InvalidParametersError, match="context_length is -1"):
        await LMStudio("m").load(context_length=-1)
