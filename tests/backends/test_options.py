"""What the options of backends may be, and what is said of those that are not."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from backends.web import LIST, serving

from yiemagent_nb.backends.connecting import connect
from yiemagent_nb.backends.engine.model_server import ModelServer
from yiemagent_nb.backends.engine.options import ServerOptions
from yiemagent_nb.backends.http.connection import Timeouts
from yiemagent_nb.backends.http.retry import RetryPolicy
from yiemagent_nb.backends.kinds import LLAMA_CPP, OLLAMA, OPENAI, OPENROUTER, SGLANG, USUAL_PORTS, Kind, kind_at
from yiemagent_nb.backends.lm_studio import LMStudio
from yiemagent_nb.backends.openai import OpenAI
from yiemagent_nb.backends.openai_compatible import OpenAICompatible, Preset
from yiemagent_nb.backends.vllm import VLLM
from yiemagent_nb.core.errors import InvalidParametersError

pytestmark = pytest.mark.requirement("Y FR-002", "Y US-005")

SECRET = "sk-planted-0123456789abcdef"  # noqa: S105 - what must be shown nowhere
CLASSES: list[type[ModelServer]] = [OpenAICompatible, OpenAI, LMStudio, VLLM]


def build(kind: type[Any] = OpenAICompatible, **options: Any) -> ModelServer:
    return kind(base_url="http://127.0.0.1:9/v1", **options)


def refusal(make: Callable[[], object]) -> str:
    with pytest.raises(InvalidParametersError) as caught:
        make()
    return f"{caught.value.message} {caught.value.hint}".strip()


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("temprature", "temperature"),
        ("time_out", "timeout"),
        ("header", "headers"),
        ("Stream", "stream"),
        ("max_retries", "retries"),
        ("extra_headers", "headers"),
        ("default_headers", "headers"),
        ("max_completion_tokens", "max_tokens"),
        ("max_output_tokens", "max_tokens"),
        ("url", "base_url"),
        ("key", "api_key"),
        ("token", "api_key"),
        ("top_k", 'extra_body={"top_k": …}'),
    ],
)
def test_an_option_that_does_not_exist_is_refused_with_the_one_that_was_meant(
    kind: type[ModelServer], name: str, meant: str
) -> None:
    said = refusal(lambda: build(kind, **{name: SECRET}))
    assert said.startswith(f"{kind.__name__} has no option {name!r}. Did you mean {meant}?")
    assert SECRET not in said


def test_an_option_of_the_class_alone_is_suggested_too() -> None:
    assert "Did you mean context_length?" in refusal(lambda: build(LMStudio, context_lenght=8192))
    assert 'Did you mean headers={"OpenAI-Organization": …}?' in refusal(lambda: build(organization="o"))
    assert repr(build(OpenAI, organization="o", api_key=SECRET)).startswith("OpenAI(")


def test_an_option_that_is_like_no_other_is_pointed_to_the_body() -> None:
    assert refusal(lambda: build(mirostat=2)).endswith('go into extra_body={"mirostat": …}.')


WRONG: list[tuple[str, Any, str]] = [
    ("api_key", 123, "api_key is int; expected a text or a SecretStr."),
    ("api_key_env", SECRET, "api_key_env is str; expected the name of an environment variable"),
    ("stream", None, "stream is None; expected True or False."),
    ("stream", "no", "stream is 'no'"),
    ("include_usage", 1, "include_usage is 1"),
    ("text_tool_calls", "yes", "text_tool_calls is 'yes'"),
    ("timeout", "5", "timeout is '5'; expected seconds, more than 0, or Timeouts(…) of such."),
    ("timeout", -1, "timeout is -1"),
    ("timeout", 0, "timeout is 0"),
    ("timeout", float("nan"), "timeout is nan"),
    ("timeout", True, "timeout is True"),
    ("timeout", Timeouts(connect=-1), "timeout is Timeouts(connect=-1"),
    ("timeout", httpx2.Timeout(5), "timeout is Timeout"),
    ("retries", "3", "retries is '3'; expected a whole number, 0 or more"),
    ("retries", -1, "retries is -1"),
    ("retries", 1.5, "retries is 1.5"),
    ("retries", RetryPolicy(-1), "retries is RetryPolicy(retries=-1"),
    ("headers", [("x-api-key", SECRET)], "headers is list; expected a mapping of names to texts"),
    ("headers", {"x-api-key": " "}, "headers is a mapping in which 'x-api-key' is empty"),
    ("headers", {"x-api-key": SECRET.encode()}, "headers is a mapping in which 'x-api-key' is bytes"),
    ("headers", {"": "x"}, "headers is a mapping in which '' is"),
    ("extra_body", SECRET, "extra_body is str; expected a mapping"),
    ("extra_body", {1: 2}, "extra_body is a mapping with other names"),
    ("temperature", "hot", "temperature is 'hot'; expected a number, 0 or more."),
    ("temperature", -0.1, "temperature is -0.1"),
    ("top_p", 1.5, "top_p is 1.5; expected a number from 0 to 1."),
    ("seed", "x", "seed is 'x'; expected a whole number."),
    ("stop", 5, "stop is 5; expected a text or a list of texts."),
    ("stop", ["a", 5], "stop is list"),
    ("max_tokens", 0, "max_tokens is 0; expected a whole number, 1 or more"),
    ("response_format", int, "response_format is type; expected a mapping"),
    ("tool_choice", 3, "tool_choice is 3; expected auto, none, required, or a tool's name."),
    ("prices", 5, "prices is 5; expected a PriceTable"),
    ("http_client", httpx2.Client, "http_client is type; expected an httpx.AsyncClient or httpx2.AsyncClient."),
    ("model", 5, "model is 5; expected a model's name or an LlmModel."),
    ("model", "", "model is ''"),
    ("api", "completions", "api is 'completions'; expected auto, chat-completions or responses."),
]


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize(("name", "value", "said"), WRONG, ids=[f"{name}={value!r:.20}" for name, value, _ in WRONG])
def test_an_option_of_another_form_is_refused_at_once(
    kind: type[ModelServer], name: str, value: object, said: str
) -> None:
    words = refusal(lambda: build(kind, **{name: value}))
    assert words.startswith(said)
    assert SECRET not in words


def test_a_client_that_waits_is_refused() -> None:
    with httpx2.Client() as client:
        assert refusal(lambda: build(http_client=client)).startswith("http_client is Client; expected an httpx.Async")


RIGHT: dict[str, list[Any]] = {
    "api_key": [SECRET, None],
    "api_key_env": ["MY_KEY", None],
    "stream": [True, False],
    "timeout": [5, 0.5, Timeouts(first_byte=None), None],
    "retries": [0, 3, RetryPolicy(2, first_delay=0), None],
    "headers": [{}, {"X-Team": "a"}, None],
    "extra_body": [{}, {"top_k": 3}, None],
    "temperature": [0, 0.7, 2, None],
    "top_p": [0, 1, 0.5, None],
    "seed": [-1, 0, None],
    "stop": ["x", ["x", "y"], ("x",), None],
    "max_tokens": [1, None],
    "response_format": [{"type": "json_object"}, None],
    "tool_choice": ["auto", "add", {"type": "function", "function": {"name": "add"}}, None],
    "include_usage": [True, False],
    "text_tool_calls": [True, False],
    "prices": [{}, {"m": {"input": 1, "output": 2}}, None],
    "http_client": [httpx2.AsyncClient(), None],
}


@pytest.mark.parametrize("kind", CLASSES)
def test_every_option_of_the_right_form_is_taken(kind: type[ModelServer]) -> None:
    assert RIGHT.keys() == ServerOptions.__annotations__.keys()
    for name, values in RIGHT.items():
        for value in values:
            assert isinstance(build(kind, **{name: value}), ModelServer)


@pytest.mark.parametrize("kind", [OpenAI, LMStudio, VLLM])
@pytest.mark.parametrize("address", ["http://gpu:8000/v1", " HTTPS://gpu", f"http://me:{SECRET}@gpu/v1"])
def test_an_address_in_the_place_of_the_model_is_told_where_it_goes(kind: type[Any], address: str) -> None:
    said = refusal(lambda: kind(address))
    assert f'{kind.__name__}(base_url="http://host:port/v1")' in said
    assert SECRET not in said


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("address", [5, b"http://gpu/v1", ["http://gpu/v1"]])
def test_an_address_that_is_no_text_is_refused(kind: type[Any], address: object) -> None:
    said = refusal(lambda: kind(base_url=address))
    assert said == f"base_url is {type(address).__name__}; expected a web address. Give it as http://host:port/v1."


@pytest.mark.parametrize("kind", [LMStudio, VLLM])
def test_an_address_that_was_not_there_is_refused(kind: type[Any]) -> None:
    assert refusal(lambda: kind(base_url=None)).startswith("base_url is None; expected a web address.")


@pytest.mark.parametrize(
    ("given", "base_url"),
    [
        ("http://h/v1/models", "http://h/v1"),
        ("http://h/v1/models/", "http://h/v1"),
        ("http://h/v1/responses", "http://h/v1"),
        ("http://h/models", "http://h/models"),
        ("https://n.services.ai.azure.com/models/chat/completions", "https://n.services.ai.azure.com/models"),
    ],
)
def test_an_endpoint_at_the_end_of_an_address_is_left_out(given: str, base_url: str) -> None:
    assert OpenAICompatible(given).base_url == base_url


@pytest.mark.parametrize("path", ["/api/v1", "/api/v0", "/api/v1/models", "/v1/chat/completions", ""])
def test_lm_studio_is_asked_at_its_openai_endpoints_whatever_address_is_copied(path: str) -> None:
    assert LMStudio(base_url=f"http://h:1234{path}").base_url == "http://h:1234/v1"


@pytest.mark.parametrize("kind", CLASSES)
def test_a_query_in_an_address_is_refused_with_what_azure_takes_instead(kind: type[Any]) -> None:
    address = f"https://n.openai.azure.com/openai/deployments/d?api-version=2024-10-21&key={SECRET}"
    said = refusal(lambda: kind(base_url=address))
    assert "https://NAME.openai.azure.com/openai/v1" in said
    assert SECRET not in said


def test_the_address_that_the_hint_names_is_taken_with_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    ways: list[ServerOptions] = [{"api_key": SECRET}, {"headers": {"api-key": SECRET}}]
    for options in ways:
        backend = OpenAI("my-deployment", base_url="https://n.openai.azure.com/openai/v1/", **options)
        assert backend.base_url == "https://n.openai.azure.com/openai/v1"
        assert backend.connection.has_key
        assert SECRET not in repr(backend)


@pytest.mark.parametrize("host", ["api.openai.com", "eu.api.openai.com"])
def test_openais_own_address_gets_openais_habits(host: str) -> None:
    backend = OpenAICompatible(f"https://{host}/v1", "gpt-5.4", api_key=SECRET)
    assert backend.provider == "openai"
    assert backend.model is not None
    assert (backend.model.api, backend.model.context_window) == (
        "responses",
        OpenAI(api_key=SECRET).describe_model("gpt-5.4").context_window,
    )


@pytest.mark.parametrize(
    ("host", "kind"),
    [
        ("api.openai.com", OPENAI),
        ("us.api.openai.com", OPENAI),
        ("openrouter.ai", OPENROUTER),
        ("evilopenrouter.ai", None),
        ("api.openai.com.example.org", None),
        ("localhost", None),
    ],
)
def test_a_kind_is_known_by_its_host_and_not_by_one_that_is_spelled_alike(host: str, kind: Kind | None) -> None:
    assert kind_at(host) is kind


def test_the_usual_ports_stand_in_the_order_of_preference() -> None:
    assert USUAL_PORTS == (1234, 8000, 8080, 9931, 11434, 30000)


@pytest.mark.parametrize(
    ("preset", "kind"), [("ollama", OLLAMA), ("llamacpp", LLAMA_CPP), ("sglang", SGLANG), ("openrouter", OPENROUTER)]
)
def test_a_preset_is_a_kind_of_server_at_its_usual_address(preset: Preset, kind: Kind) -> None:
    backend = OpenAICompatible(preset=preset)
    assert (backend.provider, backend.base_url) == (kind.provider, kind.base_url)


@pytest.mark.parametrize("explained", [*CLASSES, connect])
def test_the_options_stand_in_what_a_notebook_shows(explained: Callable[..., Any]) -> None:
    text = inspect.getdoc(explained) or ""
    parameters = inspect.signature(explained).parameters
    assert "ServerOptions" not in text
    assert text.index("Args:") < text.index("\nOptions:\n")
    for name in ServerOptions.__annotations__:
        assert name in parameters
        assert name in text.partition("\nOptions:\n")[2]


async def test_a_misspelt_option_of_connect_is_refused_before_anything_is_asked() -> None:
    options: Any = {"temprature": 0}
    async with serving({"/v1/models": LIST}) as web:
        with pytest.raises(InvalidParametersError, match="Did you mean temperature"):
            await connect(web.url(), **options)
    assert web.asked == []


@pytest.mark.parametrize("module", ["kinds", "engine.probing", "discovery"])
def test_what_looks_for_servers_is_imported_without_the_http_library(module: str) -> None:
    code = f"import sys, yiemagent_nb.backends.{module}; print('httpx2' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert ran.stdout.strip() == "False"
