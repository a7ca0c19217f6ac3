"""Which backend answers when none was chosen, with servers that listen on real ports."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from yiemagent_nb.backends.demo import Demo
from yiemagent_nb.backends.discovery import Candidate, DefaultBackend, Found, find_backend
from yiemagent_nb.backends.engine.model_server import ModelServer
from yiemagent_nb.backends.engine.probing import LocalServer, find_local_servers, probe
from yiemagent_nb.backends.kinds import OPENAI
from yiemagent_nb.backends.lm_studio import LMStudio
from yiemagent_nb.backends.openai import OpenAI
from yiemagent_nb.backends.openai_compatible import OpenAICompatible
from yiemagent_nb.backends.vllm import VLLM
from yiemagent_nb.core.agent import Agent
from yiemagent_nb.core.backend import describe_backend
from yiemagent_nb.core.errors import InvalidParametersError
from yiemagent_nb.testing import Scripted

MODELS = {"object": "list", "data": [{"id": "text-embed-1"}, {"id": "small"}, {"id": "large"}]}
SECRET = "sk-never-shown-0123456789"  # noqa: S105 - what must appear nowhere

Answers = Mapping[str, Any]


@dataclass
class Listener:
    """A server on loopback: what it answers at which path, and what it was asked."""

    port: int
    asked: list[str] = field(default_factory=list[str])
    heads: list[str] = field(default_factory=list[str])


def answer_to(answers: Answers, path: str) -> tuple[int, str, bytes]:
    if path not in answers:
        rest = answers.get("*")
        return (404, "text/plain", b"no such page") if rest is None else (200, "text/html", rest)
    value = answers[path]
    return (200, "application/json", value if isinstance(value, bytes) else json.dumps(value).encode())


@asynccontextmanager
async def serving(answers: Answers) -> AsyncGenerator[Listener]:
    """A server that gives these answers by path, and ``*`` for any other path."""
    listener = Listener(0)

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                path = head.split(b" ")[1].decode()
                listener.asked.append(path)
                listener.heads.append(head.decode())
                status, kind, body = answer_to(answers, path)
                writer.write(b"HTTP/1.1 %d X\r\nContent-Type: %s\r\n" % (status, kind.encode()))
                writer.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the client is gone
        finally:
            writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    listener.port = server.sockets[0].getsockname()[1]
    async with server:
        yield listener


@asynccontextmanager
async def silent() -> AsyncGenerator[int]:
    """A server that takes connections and never answers."""
    ended = asyncio.Event()

    async def hold(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await ended.wait()
        writer.close()

    server = await asyncio.start_server(hold, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]
        ended.set()


def closed_port() -> int:
    """A port at which nothing listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


LM_STUDIO: Answers = {
    "/v1/models": MODELS,
    "/api/v1/models": {
        "models": [
            {"type": "llm", "key": "small", "loaded_instances": []},
            {"type": "llm", "key": "large", "loaded_instances": [{"id": "large"}]},
        ]
    },
    # A wrong path answers 200 with an error there.
    "*": b'{"error":"Unexpected endpoint or method."}',
}
VLLM_MODELS = {
    "object": "list",
    "data": [{"id": name, "owned_by": "vllm", "max_model_len": 4096} for name in ("small", "large")],
}
VLLM_SERVER: Answers = {"/v1/models": VLLM_MODELS, "/version": {"version": "0.33.0"}}
SGLANG: Answers = {"/v1/models": MODELS, "/model_info": {"model_path": "small", "tokenizer_path": "small"}}
LLAMA_CPP: Answers = {"/v1/models": MODELS, "/props": {"default_generation_settings": {}, "total_slots": 4}}
OLLAMA: Answers = {"/v1/models": MODELS, "/api/version": {"version": "0.30.1"}}


@pytest.mark.parametrize(
    ("answers", "provider", "first"),
    [
        (LM_STUDIO, "lmstudio", "large"),
        (VLLM_SERVER, "vllm", "small"),
        (LLAMA_CPP, "llamacpp", "small"),
        (OLLAMA, "ollama", "small"),
        (SGLANG, "sglang", "small"),
        ({"/v1/models": MODELS}, "openai-compatible", "small"),
    ],
    ids=["LM Studio", "vLLM", "llama.cpp", "Ollama", "SGLang", "unknown kind"],
)
async def test_a_server_is_known_by_what_it_answers(answers: Answers, provider: str, first: str) -> None:
    async with serving(answers) as server:
        found = await probe(server.port)
    assert found is not None
    assert (found.provider, found.models[0]) == (provider, first)
    assert "text-embed-1" not in found.models
    assert found.base_url == f"http://127.0.0.1:{server.port}/v1"


NO_MODEL_SERVERS: Mapping[str, Answers] = {
    "a web page at every path": {"*": b"<!doctype html><title>My app</title>"},
    "an API of something else": {"/v1/models": {"models": ["sedan", "coupe"]}, "/version": {"version": "1"}},
    "no model": {"/v1/models": {"object": "list", "data": []}, "/api/version": {"version": "0.30.1"}},
    "embeddings only": {"/v1/models": {"data": [{"id": "nomic-embed-text"}]}},
    "a list of odd things": {
        "/v1/models": {"data": [1, None, {"id": 7}, {"id": ""}, {"id": "a\nb"}, {"id": "x" * 500}]}
    },
    "broken JSON": {"/v1/models": b'{"data": ['},
    "deep JSON": {"/v1/models": b"[" * 100_000},
    "a flood": {"/v1/models": b" " * 5_000_000},
}


@pytest.mark.parametrize("answers", NO_MODEL_SERVERS.values(), ids=list(NO_MODEL_SERVERS))
async def test_what_is_no_model_server_is_not_taken_for_one(answers: Answers) -> None:
    async with serving(answers) as server:
        assert await probe(server.port) is None


@pytest.mark.parametrize("path", ["/home/ada/tiny.gguf", "C:\\models\\tiny.gguf"])
async def test_a_model_that_is_a_file_is_shown_without_its_folders(path: str) -> None:
    async with serving({**LLAMA_CPP, "/v1/models": {"data": [{"id": path}]}}) as server:
        found = await find_backend(ports=[server.port], environment={})
    assert found.label == "llama.cpp: tiny.gguf"
    assert found.choice.models == (path,)


async def test_a_port_at_which_nothing_listens_is_passed_over() -> None:
    assert await probe(closed_port()) is None


async def test_servers_come_in_the_order_of_the_ports() -> None:
    async with AsyncExitStack() as stack:
        servers = [await stack.enter_async_context(serving(answers)) for answers in (OLLAMA, VLLM_SERVER)]
        ports = [closed_port(), servers[1].port, servers[0].port, servers[1].port]
        found = await find_local_servers(ports)
    assert [server.provider for server in found] == ["vllm", "ollama"]


async def test_a_server_that_never_answers_costs_no_more_than_the_time_given() -> None:
    start = time.monotonic()
    async with silent() as stuck, serving(OLLAMA) as server:
        found = await find_local_servers([stuck, server.port], patience=2)  # enough for a busy machine
    assert [server.provider for server in found] == ["ollama"]
    assert time.monotonic() - start < 8


async def test_probes_only_read_and_carry_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    async with serving(VLLM_SERVER) as server:
        await find_backend(ports=[server.port])
    assert set(server.asked) == {"/v1/models", "/api/v1/models", "/props", "/model_info", "/api/version", "/version"}
    assert all(head.startswith("GET ") for head in server.heads)
    assert not any("authorization" in head.lower() or SECRET in head for head in server.heads)


async def test_a_server_here_goes_before_a_key_and_a_key_before_the_demo() -> None:
    async with serving(LLAMA_CPP) as server:
        found = await find_backend(ports=[server.port], environment={"OPENAI_API_KEY": SECRET})
    assert isinstance(found.backend, OpenAICompatible)
    assert found.label == "llama.cpp: small"
    assert found.reason == f"llama.cpp answers on port {server.port} of this machine."
    assert [other.provider for other in found.alternatives] == ["openai", "demo"]
    found = await find_backend(ports=[], environment={"OPENAI_API_KEY": SECRET})
    assert found.choice.base_url == "https://api.openai.com/v1"
    assert [other.provider for other in found.alternatives] == ["demo"]


async def test_without_anything_the_demo_answers() -> None:
    found = await find_backend(ports=[closed_port()], environment={})
    assert isinstance(found.backend, Demo)
    assert found.reason == "No model server answers on this machine, and no key is set."
    assert found.alternatives == ()


@pytest.mark.parametrize(
    ("environment", "provider", "address", "model"),
    [
        ({"OPENAI_API_KEY": SECRET, "OPENAI_MODEL": "gpt-x"}, "openai", "https://api.openai.com/v1", "gpt-x"),
        ({"OPENAI_BASE_URL": "http://box:8000/v1"}, "box:8000", "http://box:8000/v1", None),
        ({"OPENAI_BASE_URL": "https://api.openai.com/v1"}, "openai", "https://api.openai.com/v1", OPENAI.model),
        (
            {"OPENROUTER_API_KEY": SECRET, "OPENROUTER_MODEL": "a/b"},
            "openrouter",
            "https://openrouter.ai/api/v1",
            "a/b",
        ),
    ],
)
async def test_the_environment_names_server_and_model(
    environment: Mapping[str, str], provider: str, address: str, model: str | None
) -> None:
    backend = (await find_backend(ports=[], environment=environment)).backend
    assert isinstance(backend, ModelServer)
    assert (backend.provider, backend.base_url) == (provider, address)
    assert (backend.model.id if backend.model else None) == model


async def test_a_key_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENROUTER_API_KEY", "YIEMAGENT_API_KEY"):
        monkeypatch.setenv(name, SECRET)
    monkeypatch.setenv("OPENAI_BASE_URL", f"https://user:{SECRET}@box/v1")
    found = await find_backend(ports=[])
    shown = f"{found!r} {found.label} {found.reason} {found.alternatives!r} {found.choice!r} {found.backend!r}"
    assert SECRET not in shown


@pytest.mark.parametrize("value", ["demo", "Demo", " DEMO "])
async def test_the_demo_can_be_chosen_and_then_nothing_is_probed(value: str) -> None:
    async with serving(VLLM_SERVER) as server:
        found = await find_backend(ports=[server.port], environment={"YIEMAGENT_BACKEND": value, "OPENAI_API_KEY": "k"})
    assert isinstance(found.backend, Demo)
    assert server.asked == []


async def test_a_server_can_be_chosen_by_its_address() -> None:
    chosen = {"YIEMAGENT_BACKEND": "http://box:9000/v1", "YIEMAGENT_MODEL": "m", "OPENAI_API_KEY": SECRET}
    found = await find_backend(ports=[], environment=chosen)
    assert isinstance(found.backend, OpenAICompatible)
    assert found.label == "box: m"
    assert found.choice.key_variable == ""
    assert [other.provider for other in found.alternatives] == ["demo"]


@pytest.mark.parametrize("value", ["gpt", "ftp://box/v1", "http://", "http://[", f"{SECRET}"])
async def test_a_choice_that_is_not_understood_names_the_variable(value: str) -> None:
    with pytest.raises(InvalidParametersError, match="YIEMAGENT_BACKEND holds no web address") as caught:
        await find_backend(ports=[], environment={"YIEMAGENT_BACKEND": value})
    assert SECRET not in str(caught.value)
    with pytest.raises(InvalidParametersError, match="OPENAI_BASE_URL holds no web address"):
        await find_backend(ports=[], environment={"OPENAI_BASE_URL": value})


@pytest.mark.parametrize(
    ("provider", "kind"),
    [
        ("openai", OpenAI),
        ("lmstudio", LMStudio),
        ("vllm", VLLM),
        ("ollama", OpenAICompatible),
        ("llamacpp", OpenAICompatible),
        ("sglang", OpenAICompatible),
        ("openrouter", OpenAICompatible),
    ],
)
def test_what_is_chosen_has_the_habits_of_its_server(provider: str, kind: type[ModelServer]) -> None:
    backend = Candidate(provider, "m", "It is there.", "http://127.0.0.1:9/v1", ("m",)).build()
    assert isinstance(backend, kind)
    shown = "127.0.0.1:9" if provider == "openai-compatible" else provider
    assert (backend.provider, backend.base_url) == (shown, "http://127.0.0.1:9/v1")
    assert backend.model is not None
    assert backend.model.id == "m"


def test_a_server_of_no_known_kind_is_called_by_its_address() -> None:
    backend = Candidate("openai-compatible", "m", "It is there.", "http://127.0.0.1:9/v1", ("m",)).build()
    assert isinstance(backend, OpenAICompatible)
    assert backend.provider == "127.0.0.1:9"


async def test_a_key_of_openai_gives_its_reasoning_models_the_endpoint_for_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://elsewhere.invalid/v1")
    backend = (await find_backend(ports=[], environment={"OPENAI_API_KEY": SECRET})).backend
    assert isinstance(backend, OpenAI)
    assert backend.base_url == "https://api.openai.com/v1"
    assert backend.model is not None
    assert (backend.model.id, backend.model.api, backend.model.reasoning) == (OPENAI.model, "responses", True)


async def test_an_alternative_can_be_built_with_another_model() -> None:
    async with serving(OLLAMA) as server:
        found = await find_backend(ports=[server.port], environment={})
    backend = found.choice.build("large")
    assert isinstance(backend, OpenAICompatible)
    assert backend.model is not None
    assert backend.model.id == "large"
    assert isinstance(found.alternatives[-1].build(), Demo)


def finds(**environment: str) -> Callable[[], Any]:
    """A search that sees only this environment."""
    return lambda: find_backend(ports=[], environment=environment)


async def test_the_default_decides_at_its_first_request() -> None:
    backend = DefaultBackend(finds())
    assert (backend.found, backend.provider, backend.model) == (None, "default", None)
    assert describe_backend(backend) == "default"
    async with Agent(backend) as agent:
        answer = await agent.prompt("hello")
    assert "script" in answer.text
    assert answer.provider == "demo"
    assert describe_backend(backend) == "demo: built-in script"
    assert backend.label == "Demo (built-in script)"
    assert repr(backend) == "DefaultBackend(Demo (built-in script))"


async def test_the_default_tells_once_what_was_chosen() -> None:
    backend = DefaultBackend(finds())
    heard: list[Found] = []
    forgotten: list[Found] = []
    backend.on_resolved(heard.append)
    backend.on_resolved(forgotten.append)()
    found = await backend.resolve()
    assert await backend.resolve() is found
    assert (heard, forgotten) == ([found], [])
    backend.on_resolved(forgotten.append)
    assert forgotten == [found]


async def test_requests_at_the_same_time_share_one_choice() -> None:
    backend = DefaultBackend(finds())
    found = await asyncio.gather(*(backend.resolve() for _ in range(5)))
    assert len({id(each) for each in found}) == 1


async def test_the_default_hands_on_what_the_chosen_one_takes() -> None:
    seen: list[Any] = []

    def parrot(messages: Any, *, thinking_level: str) -> str:
        seen.append(thinking_level)
        return messages[-1]["content"]

    choice = (await find_backend(ports=[], environment={})).choice

    async def find() -> Found:
        return Found(parrot, "parrot", "It was there.", choice=choice)

    async with Agent(DefaultBackend(find), thinking_level="low") as agent:
        assert (await agent.prompt("pretty")).text == "pretty"
    assert seen == ["low"]


async def test_a_bad_environment_is_an_error_of_the_run_and_not_the_end_of_the_agent() -> None:
    async with Agent(DefaultBackend(finds(YIEMAGENT_BACKEND="nonsense"))) as agent:
        answer = await agent.prompt("hello")
        assert answer.stop_reason == "error"
        assert "YIEMAGENT_BACKEND" in (answer.error_message or "")
        agent.set_llm_call(Scripted(["fine"]))
        assert (await agent.prompt("hello")).text == "fine"


async def test_the_default_closes_what_it_chose() -> None:
    backend = DefaultBackend(finds(OPENAI_BASE_URL="http://127.0.0.1:9/v1"))
    await backend.aclose()
    await backend.resolve()
    await backend.aclose()


def test_looking_at_closed_ports_loads_no_http_library() -> None:
    code = (
        "import asyncio, sys\n"
        "from yiemagent_nb.backends.discovery import find_backend\n"
        f"found = asyncio.run(find_backend(ports=[{closed_port()}], environment={{}}))\n"
        "print(found.label, 'httpx2' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert ran.stdout.strip() == "Demo (built-in script) False"


def test_a_server_is_told_by_its_name() -> None:
    assert LocalServer("lmstudio", 1234, ("m",)).name == "LM Studio"
