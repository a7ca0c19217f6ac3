"""The backend for any server with chat completions, against real sockets."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import gzip
import json
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self, cast, get_args

import httpx
import httpx2
import pytest
from pydantic import SecretStr
from wire.case_server import CaseServer

from yiemagent_nb.backends.http.connection import Timeouts
from yiemagent_nb.backends.http.retry import RetryPolicy
from yiemagent_nb.backends.openai_compatible import OpenAICompatible
from yiemagent_nb.core.backend import DescribedBackend, describe_backend
from yiemagent_nb.core.errors import (
    AuthenticationError,
    BackendConnectionError,
    BackendError,
    BackendNotFoundError,
    BackendTimeoutError,
    InvalidParametersError,
    MalformedResponseError,
    ServerError,
    StreamInterruptedError,
)
from yiemagent_nb.core.messages import AssistantMessage
from yiemagent_nb.core.models import LlmModel, ThinkingLevel
from yiemagent_nb.core.reading.assemble import Assembler
from yiemagent_nb.core.signal import AbortSignal

pytestmark = pytest.mark.requirement("Y FR-002", "Y US-005", "Y P-003")

MESSAGES = [{"role": "user", "content": "hi"}]
TOOL = {"type": "function", "function": {"name": "add", "description": "Add.", "parameters": {"type": "object"}}}
FAST = RetryPolicy(retries=2, first_delay=0.001)
KEY = "secret-key-that-nobody-may-see"


def event(finish: str | None = None, **delta: Any) -> str:
    chunk = {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
    return f"data: {json.dumps(chunk)}\n\n"


HELLO = [event(role="assistant", content=""), event(content="Hello"), event("stop"), "data: [DONE]\n\n"]
WHOLE = json.dumps({"model": "m", "choices": [{"message": {"content": "Hello"}, "finish_reason": "stop"}]})


async def ask(backend: OpenAICompatible, messages: Any = MESSAGES, **keywords: Any) -> AssistantMessage:
    assembler = Assembler()
    async for piece in cast("AsyncIterator[Any]", backend(messages, **keywords)):
        assembler.feed(piece)
    return assembler.finish()


async def refused_address() -> str:
    """An address at which nothing listens."""
    server = await asyncio.start_server(lambda _, __: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    return f"http://127.0.0.1:{port}/v1"


HEAD = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"


class Encoded(dict[str, Any]):
    """A message with its JSON made once."""

    def __init__(self, fields: Mapping[str, Any], encoded: bytes) -> None:
        super().__init__(fields)
        self.encoded = encoded


async def test_the_body_is_joined_from_bytes_that_were_made_once() -> None:
    first = Encoded({"role": "user", "content": "never dumped"}, b'{"role":"user","content":"as it was encoded"}')
    async with CaseServer({"body": HELLO}) as server, OpenAICompatible(server.base_url, "m") as backend:
        await ask(backend, [first, first])
        await ask(backend, [first, {"role": "assistant", "content": "Grüße \ud800"}])
    assert first.encoded + b"," + first.encoded in server.requests[0].raw
    assert server.requests[0].body == {
        "model": "m",
        "stream": True,
        "stream_options": {"include_usage": True},
        "messages": [{"role": "user", "content": "as it was encoded"}] * 2,
    }
    assert server.requests[1].body["messages"][1]["content"] == "Grüße ?"


async def test_options_of_the_call_go_before_those_of_the_backend() -> None:
    async with (
        CaseServer({"body": HELLO}) as server,
        OpenAICompatible(
            server.base_url,
            "m",
            temperature=0.5,
            seed=1,
            stop=["x"],
            max_tokens=9,
            response_format={"type": "json_object"},
            tool_choice="add",
            extra_body={"top_k": 3},
            headers={"X-Title": "test"},
        ) as backend,
    ):
        await ask(backend, temperature=0, seed=None, top_p=0.9, tools=[TOOL])
        await ask(backend, tool_choice="required")
    body = server.requests[0].body
    assert {key: body[key] for key in body if key not in {"messages", "stream", "stream_options"}} == {
        "model": "m",
        "temperature": 0,
        "stop": ["x"],
        "max_tokens": 9,
        "response_format": {"type": "json_object"},
        "tool_choice": {"type": "function", "function": {"name": "add"}},
        "top_k": 3,
        "top_p": 0.9,
        "tools": [TOOL],
    }
    assert server.requests[0].headers["x-title"] == "test"
    assert "tool_choice" not in server.requests[1].body


async def test_another_list_of_tools_is_sent_anew() -> None:
    other: dict[str, Any] = {"type": "function", "function": {"name": "other", "description": "O.", "parameters": {}}}
    tools = [TOOL]
    async with CaseServer({"body": HELLO}) as server, OpenAICompatible(server.base_url, "m") as backend:
        for each in cast("list[Any]", [tools, tools, [other], None, tools]):
            await ask(backend, tools=each)
    assert [request.body.get("tools") for request in server.requests] == [[TOOL], [TOOL], [other], None, [TOOL]]


@pytest.mark.requirement("A SPEC-1.2")
@pytest.mark.parametrize(
    ("level", "effort"),
    [
        ("off", None),
        ("minimal", "low"),
        ("low", "low"),
        ("medium", "medium"),
        ("high", "high"),
        ("xhigh", "high"),
        ("max", "high"),
    ],
)
async def test_each_thinking_level_asks_for_an_effort(level: ThinkingLevel, effort: str | None) -> None:
    assert level in get_args(ThinkingLevel)
    async with CaseServer({"body": HELLO}) as server, OpenAICompatible(server.base_url, "m") as backend:
        message = await ask(backend, thinking_level=level)
        await ask(backend, thinking_level=level, model=LlmModel(id="thoughtless", reasoning=False))
    assert server.requests[0].body.get("reasoning_effort") == effort
    assert message.thinking_sent == (effort or "off")
    assert "reasoning_effort" not in server.requests[1].body


async def test_streamed_and_whole_answers_say_who_answered() -> None:
    async with CaseServer({"body": HELLO}) as server, OpenAICompatible(server.base_url, "m", provider="p") as backend:
        message = await ask(backend)
        assert (message.api, message.provider, message.model) == ("chat-completions", "p", "m")
        assert isinstance(backend, DescribedBackend)
        assert describe_backend(backend) == "p: m"
    async with CaseServer({"body": WHOLE}) as server, OpenAICompatible(server.base_url, "m", stream=False) as backend:
        whole = await cast("Any", backend(MESSAGES))
    host = server.base_url.removeprefix("http://").removesuffix("/v1")
    assert (whole["api"], whole["provider"], whole["thinking_sent"]) == ("chat-completions", host, "off")
    assert server.requests[0].body["stream"] is False
    assert "stream_options" not in server.requests[0].body


@pytest.mark.parametrize("stream", [True, False])
async def test_calls_written_as_text_are_understood_where_the_backend_says_so(stream: bool) -> None:
    text = '<tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>'
    whole = json.dumps({"choices": [{"message": {"content": text}, "finish_reason": "stop"}]})
    async with (
        CaseServer({"body": [event(content=text), event("stop")] if stream else whole}) as server,
        OpenAICompatible(server.base_url, "m", text_tool_calls=True) as backend,
    ):
        for tools, names in (([TOOL], ["add"]), (None, [])):
            assembler = Assembler(tool_names=names)
            response = backend(MESSAGES, tools=tools, stream=stream)
            if stream:
                async for piece in cast("AsyncIterator[Any]", response):
                    assembler.feed(piece)
            else:
                assembler.feed(await cast("Any", response))
            assert [call.name for call in assembler.finish().tool_calls] == names


@pytest.mark.parametrize(
    ("given", "base_url"),
    [
        ("http://h:1", "http://h:1/v1"),
        ("http://h:1/", "http://h:1/v1"),
        ("http://h:1/v1/", "http://h:1/v1"),
        ("http://h:1/v1/chat/completions", "http://h:1/v1"),
        ("https://h/api/openai", "https://h/api/openai"),
    ],
)
def test_base_urls_are_completed(given: str, base_url: str) -> None:
    assert OpenAICompatible(given).base_url == base_url


@pytest.mark.parametrize("address", ["localhost:8000", "", "ftp://h/v1", "http://"])
def test_what_is_no_web_address_is_refused(address: str) -> None:
    with pytest.raises(InvalidParametersError, match="no web address"):
        OpenAICompatible(address)


class TestKeys:
    async def test_a_key_is_sent_and_never_shown(self) -> None:
        async with CaseServer({"body": HELLO}) as server:
            for key in (KEY, SecretStr(KEY)):
                async with OpenAICompatible(server.base_url, "m", api_key=key) as backend:
                    await ask(backend)
                    assert KEY not in repr(backend)
                    assert KEY not in repr(vars(backend))
        assert [request.headers["authorization"] for request in server.requests] == [f"Bearer {KEY}"] * 2

    async def test_a_key_comes_from_the_environment_only_where_it_was_named(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        async with CaseServer({"body": HELLO}) as server:
            async with OpenAICompatible(server.base_url, "m") as backend:
                await ask(backend)
            async with OpenAICompatible(server.base_url, "m", api_key_env="OPENAI_API_KEY") as backend:
                await ask(backend)
        assert "authorization" not in server.requests[0].headers
        assert server.requests[1].headers["authorization"] == f"Bearer {KEY}"

    async def test_openais_own_address_takes_openais_key_and_says_so_where_there_is_none(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("OPENAI_API_KEY", raising=False)
        health = await OpenAICompatible("https://api.openai.com/v1", "m").health()
        assert not health.ok
        assert "OPENAI_API_KEY is not set" in health.message

    @pytest.mark.parametrize("stream", [True, False])
    @pytest.mark.parametrize(
        "answer",
        [
            {"http": {"status": 401}, "body": f'{{"error":{{"message":"Incorrect key: {KEY}"}}}}'},
            {"http": {"status": 500}, "body": f"Bearer {KEY} made me fail"},
            {"body": f'{{"error":"Incorrect key: {KEY}"}}'},
            {"http": {"headers": {"content-type": "text/html"}}, "body": f"<title>{KEY}</title>"},
            {"body": f"no JSON but {KEY}"},
            {"http": {"status": 302, "headers": {"location": f"http://h/?key={KEY}"}}, "body": ""},
            {"body": [f'data: {{"error":"Incorrect key: {KEY}"}}\n\n']},
        ],
    )
    async def test_no_error_repeats_a_key(self, answer: Mapping[str, Any], stream: bool) -> None:
        async with (
            CaseServer(answer) as server,
            OpenAICompatible(server.base_url, "m", api_key=KEY, retries=RetryPolicy(0)) as backend,
        ):
            with pytest.raises(BackendError) as caught:
                await (ask(backend) if stream else cast("Any", backend(MESSAGES, stream=False)))
        assert KEY not in str(caught.value)
        assert KEY not in repr(caught.value)


class TestModels:
    LIST = json.dumps(
        {
            "object": "list",
            "data": [
                {"id": "text-embedding-small"},
                {"id": "a", "max_model_len": 4096},
                {"id": "b", "meta": {"n_ctx": 2048, "n_ctx_train": 8192}},
                {
                    "id": "c",
                    "context_length": 1000,
                    "supported_parameters": ["tools"],
                    "pricing": {"prompt": "0.000002", "completion": "0.00001", "input_cache_read": "bad"},
                },
                {"id": "d", "loaded_context_length": 512, "max_context_length": 9999},
            ],
        }
    )

    async def test_the_list_has_context_lengths_and_prices_and_ends_with_what_cannot_chat(self) -> None:
        async with CaseServer({"body": self.LIST}) as server, OpenAICompatible(server.base_url) as backend:
            models = await backend.models()
        assert [(model.id, model.context_window) for model in models] == [
            ("a", 4096),
            ("b", 2048),
            ("c", 1000),
            ("d", 512),
            ("text-embedding-small", None),
        ]
        assert (models[2].cost.input, models[2].cost.output, models[2].cost.cache_read) == (2.0, 10.0, 2.0)
        assert not models[2].reasoning

    async def test_the_first_listed_model_answers_where_none_was_named(self) -> None:
        async with (
            CaseServer({"sequence": [{"body": self.LIST}, {"body": HELLO}]}) as server,
            OpenAICompatible(server.base_url) as backend,
        ):
            assert (await ask(backend)).model == "a"
            await ask(backend)
            assert backend.model is not None
            assert backend.model.id == "a"
        assert [request.path for request in server.requests] == ["/v1/models", *["/v1/chat/completions"] * 2]

    async def test_a_server_without_a_model_says_what_to_do(self) -> None:
        async with CaseServer({"body": '{"data":[]}'}) as server, OpenAICompatible(server.base_url) as backend:
            with pytest.raises(BackendNotFoundError, match="lists no model"):
                await ask(backend)
            health = await backend.health()
        assert (health.ok, health.models) == (False, ())
        assert "Load one" in health.message

    async def test_health_names_what_is_served_and_what_is_missing(self) -> None:
        async with CaseServer({"body": self.LIST}) as server:
            async with OpenAICompatible(server.base_url, "a") as backend:
                health = await backend.health()
                assert (health.ok, len(health.models)) == (True, 5)
                assert "ready and serves a, b, c, d" in health.message
            async with OpenAICompatible(server.base_url, "gone") as backend:
                health = await backend.health()
                assert not health.ok
                assert "no model 'gone'" in health.message

    @pytest.mark.parametrize(
        ("answer", "sentence"),
        [
            ({"body": "<html><title>Login</title></html>"}, 'a web page ("Login")'),
            ({"body": ""}, "empty"),
            ({"body": "nonsense"}, "no JSON"),
            ({"body": "[]"}, "no model"),
            ({"body": "{}"}, "list of models"),
            ({"http": {"status": 401}, "body": '{"error":"Unauthorized"}'}, "Check the API key"),
            ({"http": {"status": 404}, "body": '{"detail":"Not Found"}'}, "Check the base URL"),
            ({"http": {"status": 500}, "body": ""}, "only status 500"),
            ({"http": {"status": 308, "headers": {"location": "/elsewhere"}}, "body": ""}, "moved to /elsewhere"),
        ],
    )
    async def test_each_way_to_be_unusable_has_a_plain_sentence(self, answer: Mapping[str, Any], sentence: str) -> None:
        async with (
            CaseServer(answer) as server,
            OpenAICompatible(server.base_url, retries=RetryPolicy(0)) as backend,
        ):
            health = await backend.health()
        assert not health.ok
        assert sentence in health.message

    async def test_an_unreachable_server_has_a_plain_sentence(self) -> None:
        health = await OpenAICompatible(await refused_address(), retries=0).health()
        assert not health.ok
        assert "Nothing listens there" in health.message
        health = await OpenAICompatible("http://no-such-host.invalid/v1", retries=0, timeout=3).health()
        assert not health.ok
        assert "http://no-such-host.invalid/v1" in health.message

    async def test_a_password_in_the_address_is_not_shown(self) -> None:
        address = (await refused_address()).replace("//", "//user:pass@")
        backend = OpenAICompatible(address, retries=0)
        assert "pass" not in repr(backend)
        assert "pass@" not in (await backend.health()).message


class TestRetries:
    async def test_a_connection_that_breaks_before_the_answer_is_tried_again(self) -> None:
        cut = {"http": {"framing": "close"}, "body": [{"abort": True}]}
        async with (
            CaseServer({"sequence": [cut, cut, {"body": HELLO}]}) as server,
            OpenAICompatible(server.base_url, "m", retries=FAST) as backend,
        ):
            assert (await ask(backend)).text == "Hello"
        assert len(server.requests) == 3

    async def test_an_error_in_the_stream_before_anything_is_shown_is_tried_again(self) -> None:
        failed = {"body": [event(role="assistant", content=""), 'data: {"error":{"message":"crash","code":500}}\n\n']}
        async with (
            CaseServer({"sequence": [failed, {"body": HELLO}]}) as server,
            OpenAICompatible(server.base_url, "m", retries=FAST) as backend,
        ):
            assert (await ask(backend)).text == "Hello"
        assert len(server.requests) == 2

    @pytest.mark.parametrize("shown", [event(content="Once "), event(reasoning="Hm"), event(tool_calls=[{"index": 0}])])
    async def test_nothing_is_tried_again_after_something_was_shown(self, shown: str) -> None:
        async with (
            CaseServer({"body": [shown, 'data: {"error":{"message":"crash","code":500}}\n\n']}) as server,
            OpenAICompatible(server.base_url, "m", retries=FAST) as backend,
        ):
            with pytest.raises(ServerError, match="crash"):
                await ask(backend)
        assert len(server.requests) == 1

    async def test_it_gives_up_after_so_many_times(self) -> None:
        async with (
            CaseServer({"http": {"status": 503}, "body": '{"error":"busy"}'}) as server,
            OpenAICompatible(server.base_url, "m", retries=FAST) as backend,
        ):
            with pytest.raises(ServerError, match="busy"):
                await ask(backend)
        assert len(server.requests) == 3

    async def test_a_server_that_loads_its_model_is_waited_for_beyond_the_count(self) -> None:
        loading = {"http": {"status": 503}, "body": '{"error":{"message":"Loading model","code":503}}'}
        async with (
            CaseServer({"sequence": [*[loading] * 5, {"body": HELLO}]}) as server,
            OpenAICompatible(server.base_url, "m", retries=FAST) as backend,
        ):
            assert (await ask(backend)).text == "Hello"

    async def test_a_server_that_refuses_to_count_tokens_is_asked_without_and_not_again(self) -> None:
        refusal = {"http": {"status": 400}, "body": '{"error":"Unrecognized field: stream_options"}'}
        async with (
            CaseServer({"sequence": [refusal, {"body": HELLO}]}) as server,
            OpenAICompatible(server.base_url, "m", retries=FAST) as backend,
        ):
            await ask(backend)
            await ask(backend)
        assert ["stream_options" in request.body for request in server.requests] == [True, False, False]


class TestEnds:
    async def test_a_connection_that_breaks_after_the_end_is_an_end(self) -> None:
        async with (
            CaseServer({"body": [*HELLO[:-1], {"abort": True}]}) as server,
            OpenAICompatible(server.base_url, "m", retries=FAST) as backend,
        ):
            assert (await ask(backend)).text == "Hello"
        assert len(server.requests) == 1

    async def test_a_server_that_keeps_the_connection_open_after_its_end_is_not_waited_for(self) -> None:
        async with (
            CaseServer({"body": [*HELLO, {"sleep_ms": 60_000}]}) as server,
            OpenAICompatible(server.base_url, "m") as backend,
            asyncio.timeout(5),
        ):
            assert (await ask(backend)).text == "Hello"

    async def test_a_body_without_events_was_interrupted_and_a_page_is_no_answer(self) -> None:
        async with (
            CaseServer({"body": [": nothing\n\n"]}) as server,
            OpenAICompatible(server.base_url, "m", retries=0) as backend,
        ):
            with pytest.raises(StreamInterruptedError, match="before its answer began"):
                await ask(backend)
        async with (
            CaseServer({"body": ["<!doctype html><html>Login</html>"]}) as server,
            OpenAICompatible(server.base_url, "m", retries=0) as backend,
        ):
            with pytest.raises(MalformedResponseError, match="web page"):
                await ask(backend)

    async def test_an_event_that_is_no_json_is_refused_and_a_ping_skipped(self) -> None:
        async with (
            CaseServer({"body": ["event: ping\ndata: now\n\n", "data: {}\n\n", *HELLO]}) as server,
            OpenAICompatible(server.base_url, "m") as backend,
        ):
            assert (await ask(backend)).text == "Hello"
        async with (
            CaseServer({"body": [HELLO[0], "data: {broken\n\n"]}) as server,
            OpenAICompatible(server.base_url, "m", retries=0) as backend,
        ):
            with pytest.raises(MalformedResponseError, match="no JSON"):
                await ask(backend)

    async def test_connections_are_kept_and_used_again(self) -> None:
        async with CaseServer({"body": HELLO}) as server, OpenAICompatible(server.base_url, "m") as backend:
            for _ in range(5):
                await ask(backend)
        assert server.connections == 1

    async def test_a_first_byte_that_does_not_come_in_time_is_a_timeout_and_not_tried_again(self) -> None:
        async with (
            Hanging(says="") as server,
            OpenAICompatible(server.base_url, "m", timeout=Timeouts(first_byte=0.1), retries=FAST) as backend,
        ):
            with pytest.raises(BackendTimeoutError, match=r"did not begin to answer within 0\.1 seconds"):
                await ask(backend)
            assert server.requests == 1

    async def test_a_refused_connection_says_so(self) -> None:
        with pytest.raises(BackendConnectionError, match="No connection to http://127"):
            await ask(OpenAICompatible(await refused_address(), "m", retries=0))


class Hanging:
    """A server that says something, then waits for the client to go, which ``gone`` tells."""

    def __init__(self, says: str = HEAD + event(content="Once ")) -> None:
        self.requests = 0
        self._says = says.encode()

    async def __aenter__(self) -> Self:
        self.gone = asyncio.Event()
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.base_url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        if self.requests:
            await asyncio.wait_for(self.gone.wait(), 5)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        self.requests += 1
        writer.write(self._says)
        with contextlib.suppress(ConnectionError):
            while await reader.read(4096):
                pass
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
        self.gone.set()


class TestCancellation:
    async def test_no_request_outlives_its_task(self) -> None:
        async with Hanging() as server, OpenAICompatible(server.base_url, "m") as backend:
            started = asyncio.Event()

            async def read() -> None:
                async for piece in cast("AsyncIterator[Any]", backend(MESSAGES)):
                    if "choices" in piece:
                        started.set()

            task = asyncio.create_task(read())
            await started.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.wait_for(server.gone.wait(), 5)

    async def test_no_request_outlives_its_iterator(self) -> None:
        async with Hanging() as server, OpenAICompatible(server.base_url, "m") as backend:
            pieces = cast("AsyncGenerator[Any, None]", backend(MESSAGES))
            assert "choices" not in await anext(pieces)
            assert "choices" in await anext(pieces)
            await pieces.aclose()
            await asyncio.wait_for(server.gone.wait(), 5)

    async def test_a_signal_ends_the_answer_at_its_next_piece(self) -> None:
        signal = AbortSignal()
        async with CaseServer({"body": HELLO}) as server, OpenAICompatible(server.base_url, "m") as backend:
            pieces: list[Any] = []
            async for piece in cast("AsyncIterator[Any]", backend(MESSAGES, signal=signal)):
                pieces.append(piece)
                if "choices" in piece:
                    signal.abort()
        assert len(pieces) == 2

    async def test_silence_is_a_timeout_that_leaves_the_task_its_own_cancellation(self) -> None:
        async with (
            Hanging() as server,
            OpenAICompatible(server.base_url, "m", timeout=Timeouts(between_bytes=0.1)) as b,
        ):
            with pytest.raises(BackendTimeoutError, match="nothing came for"):
                await ask(b)
            task = asyncio.current_task()
            assert task is not None
            assert task.cancelling() == 0


async def test_a_fast_stream_leaves_the_others_on_the_loop_their_turn() -> None:
    pieces = "".join([*[event(content="x")] * 20_000, event("stop")])
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    async with CaseServer({"body": [pieces]}) as server, OpenAICompatible(server.base_url, "m") as backend:
        before = turns
        assert len((await ask(backend)).text) == 20_000
        after = turns
    task.cancel()
    assert after - before > 100


class Answering(BaseHTTPRequestHandler):
    """A server in a thread, which outlives any event loop of a test."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(WHOLE)))
        self.end_headers()
        self.wfile.write(WHOLE.encode())

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Say nothing."""


def test_one_backend_serves_several_event_loops() -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Answering) as server:
        threading.Thread(target=server.serve_forever).start()
        backend = OpenAICompatible(f"http://127.0.0.1:{server.server_port}/v1", "m")

        async def scenario() -> str:
            async with backend:
                return (await ask(backend)).text + (await ask(backend)).text

        with ThreadPoolExecutor(3) as threads:
            answers = list(threads.map(asyncio.run, [scenario() for _ in range(6)]))
        server.shutdown()
    assert answers == ["HelloHello"] * 6


class TestOwnClients:
    @pytest.mark.parametrize("library", [httpx, httpx2])
    async def test_a_users_own_client_is_used_and_left_open(self, library: Any) -> None:
        async with (
            CaseServer({"sequence": [{"body": HELLO}, {"body": WHOLE}]}) as server,
            library.AsyncClient(headers={"X-Mine": "yes"}) as client,
        ):
            backend = OpenAICompatible(server.base_url, "m", api_key=KEY, http_client=client)
            assert (await ask(backend)).text == "Hello"
            whole = await cast("Any", backend(MESSAGES, stream=False))
            assert whole["choices"][0]["message"]["content"] == "Hello"
            await backend.aclose()
            assert not client.is_closed
        assert server.requests[0].headers["x-mine"] == "yes"
        assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"

    @pytest.mark.parametrize("library", [httpx, httpx2])
    async def test_its_errors_are_typed_all_the_same(self, library: Any) -> None:
        async with library.AsyncClient() as client:
            backend = OpenAICompatible(await refused_address(), "m", http_client=client, retries=0)
            with pytest.raises(BackendConnectionError):
                await ask(backend)
        async with Hanging() as server, library.AsyncClient(timeout=0.1) as client:
            backend = OpenAICompatible(server.base_url, "m", http_client=client, retries=0)
            with pytest.raises(BackendTimeoutError):
                await ask(backend)

    def test_a_client_that_is_not_async_is_refused(self) -> None:
        with httpx2.Client() as client, pytest.raises(InvalidParametersError, match="expected an httpx"):
            OpenAICompatible("http://h/v1", http_client=cast("Any", client))


async def test_compressed_answers_are_read_where_a_proxy_insists() -> None:
    packed = base64.b64encode(gzip.compress("".join(HELLO).encode())).decode()
    answer = {"http": {"headers": {"content-encoding": "gzip"}}, "body": [{"b64": packed}]}
    async with CaseServer(answer) as server, OpenAICompatible(server.base_url, "m") as backend:
        assert (await ask(backend)).text == "Hello"
    assert server.requests[0].headers["accept-encoding"] == "identity"


async def test_what_cannot_be_json_is_refused_before_it_is_sent() -> None:
    async with CaseServer({"body": HELLO}) as server, OpenAICompatible(server.base_url, "m") as backend:
        for options in ({"temperature": float("nan")}, {"stop": object()}):
            with pytest.raises(InvalidParametersError, match="cannot be written as JSON"):
                await ask(backend, **options)
    assert server.requests == []


async def test_the_key_of_a_missing_variable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MY_KEY", raising=False)
    with pytest.raises(AuthenticationError, match="MY_KEY is not set"):
        await ask(OpenAICompatible("http://127.0.0.1:1/v1", "m", api_key_env="MY_KEY"))
