"""A service on NATS: what it refuses, how much it takes, and how it ends."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp_nats.broker import BrokerServer
from mcp_nats.helpers import Function, connected, hear, text_of, until
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import NoRespondersError

from yiemagent_nb.core.errors import InvalidParametersError, McpConnectionError, McpError
from yiemagent_nb.mcp.link import Progress
from yiemagent_nb.mcp.nats import service as service_module
from yiemagent_nb.mcp.nats.frames import BUSY
from yiemagent_nb.mcp.nats.service import NatsService, serve_on_nats
from yiemagent_nb.mcp.server import McpServer

pytestmark = pytest.mark.requirement("Y SD-004", "Y risk table")


@pytest.fixture
def topic() -> str:
    return f"tools.{uuid4().hex[:8]}"


@pytest.fixture
async def function() -> Function:
    return Function()


@pytest.fixture
async def service(broker: BrokerServer, topic: str, function: Function) -> AsyncIterator[NatsService]:
    async with serve_on_nats(function, broker.url, topic, keep_alive=0.2) as service:
        yield service


@pytest.fixture
async def client(broker: BrokerServer) -> AsyncIterator[Client]:
    async with connected(broker.url) as client:
        yield client


@pytest.mark.usefixtures("service")
@pytest.mark.parametrize(
    ("payload", "code"),
    [
        (b"", -32700),
        (b"\xff\xfe", -32700),
        (b"[" * 50_000, -32700),
        (b"[]", -32700),
        (b"{}", -32600),
        (b'{"method": 7}', -32600),
        (b'{"jsonrpc": "1.0", "method": "ping"}', -32600),
        (b'{"method": "tools/delete"}', -32601),
        (b'{"method": "subscriptions/listen"}', -32601),
        (b'{"method": "tools/list", "params": [1]}', -32602),
        (b'{"id": {"a": 1}, "method": "tools/list", "params": "x"}', -32602),
    ],
)
async def test_what_is_no_request_gets_an_error_in_either_form(
    client: Client, topic: str, payload: bytes, code: int
) -> None:
    answer = json.loads((await client.request(topic, payload, timeout=5)).data)
    assert (answer["jsonrpc"], answer["error"]["code"], answer["id"]) == ("2.0", code, None)
    _, ended = await _frames(client, topic, payload)
    assert ended["error"]["code"] in (code, -32600)


async def _frames(
    client: Client, topic: str, payload: bytes, **headers: str
) -> tuple[list[dict[str, str]], dict[str, Any]]:
    """Ask in the stateless form; returns the headers of all frames, and what the last says."""
    inbox = client.new_inbox()
    subscription = await hear(client, inbox)
    asked = {"Mcp-Frame": "request", "Mcp-Request": uuid4().hex, **{k.replace("_", "-"): v for k, v in headers.items()}}
    await client.publish(topic, payload, reply=inbox, headers=asked)
    seen: list[dict[str, str]] = []
    while True:
        message = await subscription.next_msg(timeout=15)
        seen.append(message.headers or {})
        if seen[-1].get("Mcp-Frame") == "end":
            await subscription.unsubscribe()
            return seen, json.loads(message.data)


@pytest.mark.usefixtures("service")
@pytest.mark.parametrize(
    "headers",
    [
        {"Mcp_Request": "x"},
        {"Mcp_Request": "a b c d e f g h"},
        {"Mcp_Frame": "alive"},
        {"Mcp_Frame": "nonsense"},
        {"Mcp_Part": "2/3", "Mcp_Size": "10"},
        {"Mcp_Part": "0/3", "Mcp_Size": "10"},
        {"Mcp_Part": "1/2", "Mcp_Size": "99999999999"},
        {"Mcp_Part": "1/2", "Mcp_Size": "-1"},
        {"Mcp_Part": "1/1", "Mcp_Size": "3"},
        {"Mcp_Timeout": "soon"},
    ],
)
async def test_wrong_headers_get_an_error(client: Client, topic: str, headers: dict[str, str]) -> None:
    _, ended = await _frames(client, topic, b'{"jsonrpc":"2.0","id":1,"method":"ping"}', **headers)
    assert ended["error"]["code"] == -32600


async def test_nothing_that_arrives_kills_the_service(
    broker: BrokerServer, topic: str, service: NatsService, caplog: pytest.LogCaptureFixture
) -> None:
    json_values = st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=10),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=8,
    )
    requests = st.fixed_dictionaries(
        {},
        optional={
            "jsonrpc": st.just("2.0") | json_values,
            "id": json_values,
            "method": st.sampled_from(["tools/list", "ping", "tools/call", "initialize"]) | json_values,
            "params": json_values,
        },
    )
    payloads = st.binary(max_size=40) | requests.map(lambda message: json.dumps(message).encode())
    headers = st.dictionaries(
        st.sampled_from(["Mcp-Frame", "Mcp-Request", "Mcp-Part", "Mcp-Size", "Mcp-Timeout", "Mcp-Answers", "Status"]),
        st.sampled_from(["request", "answer", "cancel", "1/1", "1/2", "0", "503", "aaaaaaaa", "1e999", "-"]),
        max_size=4,
    )
    loop = asyncio.get_running_loop()
    async with connected(broker.url) as client:

        async def throw(subject: str, payload: bytes, head: dict[str, str]) -> None:
            await client.publish(subject, payload, reply=client.new_inbox(), headers=head or None)
            await client.flush()

        @given(payloads, headers, st.booleans())
        @settings(max_examples=300)
        def attack(payload: bytes, head: dict[str, str], to_control: bool) -> None:
            subject = f"{topic}.control.{service.worker}.x" if to_control else topic
            asyncio.run_coroutine_threadsafe(throw(subject, payload, head), loop).result(10)

        await asyncio.to_thread(attack)
        assert json.loads((await client.request(topic, b'{"id":1,"method":"ping"}', timeout=5)).data)["result"] == {}
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


@pytest.mark.usefixtures("service")
async def test_hostile_frames_on_the_control_subject_end_that_call_at_most(
    client: Client, topic: str, function: Function
) -> None:
    inbox = client.new_inbox()
    subscription = await hear(client, inbox)
    body = b'{"id":1,"method":"tools/call","params":{"name":"wait","arguments":{}}}'
    await client.publish(topic, body, reply=inbox, headers={"Mcp-Frame": "request", "Mcp-Request": uuid4().hex})
    accepted = await subscription.next_msg(timeout=5)
    await function.started.wait()
    answer = {"Mcp-Frame": "answer"}
    for payload, headers in (
        (b"x", None),
        (b"x", {"Mcp-Frame": "end"}),
        (b"no json", answer),
        (b"{}", answer),
        (b'{"id": "99", "result": {}}', answer),
        (b"x", {**answer, "Mcp-Part": "5/9", "Mcp-Size": "100"}),
        (b"x", {**answer, "Mcp-Part": "1/2", "Mcp-Size": "999999999999"}),
        (b"x", {"Mcp-Frame": "request", "Mcp-Part": "7/9", "Mcp-Size": "9"}),
    ):
        await client.publish(accepted.reply, payload, headers=headers)
    await client.flush()
    function.go_on.set()
    while True:
        message = await subscription.next_msg(timeout=5)
        if (message.headers or {}).get("Mcp-Frame") == "end":
            assert "result" in json.loads(message.data)
            return


@pytest.mark.usefixtures("service")
async def test_a_request_is_not_carried_out_twice(client: Client, topic: str, function: Function) -> None:
    inbox = client.new_inbox()
    answers: list[Msg] = []

    async def keep(message: Msg) -> None:
        answers.append(message)

    await hear(client, inbox, keep)
    body = b'{"id":1,"method":"tools/call","params":{"name":"echo","arguments":{}}}'
    again = {"Mcp-Frame": "request", "Mcp-Request": "the-same-request"}
    for _ in range(5):
        await client.publish(topic, body, reply=inbox, headers=again)
    await _frames(client, topic, b'{"id":1,"method":"ping"}')
    await client.flush()
    assert function.calls == ["echo"]
    assert Counter((answer.headers or {}).get("Mcp-Frame") for answer in answers)["end"] == 1


@pytest.mark.usefixtures("service")
async def test_a_notification_is_not_answered(client: Client, topic: str, function: Function) -> None:
    inbox = client.new_inbox()
    subscription = await hear(client, inbox)
    await client.publish(topic, b'{"jsonrpc":"2.0","method":"notifications/initialized"}', reply=inbox)
    await client.publish(topic, b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}')
    await client.request(topic, b'{"id":1,"method":"ping"}', timeout=5)
    assert subscription.pending_msgs == 0
    assert function.calls == []


async def test_an_older_client_may_shake_hands(client: Client, topic: str, service: NatsService) -> None:
    answer = json.loads((await client.request(topic, b'{"id":1,"method":"initialize"}', timeout=5)).data)
    assert answer["result"]["serverInfo"]["name"] == "function"
    assert answer["result"]["protocolVersion"]
    assert service.running == 0


async def test_no_more_run_at_once_than_was_said_and_too_many_are_told(
    broker: BrokerServer, client: Client, topic: str, function: Function
) -> None:
    function.go_on.set()
    async with serve_on_nats(function, broker.url, topic, concurrency=3, backlog=20):
        body = b'{"id":1,"method":"tools/call","params":{"name":"wait","arguments":{"text":"a"}}}'
        plain = [client.request(topic, body, timeout=30) for _ in range(1000)]
        framed = [_frames(client, topic, body) for _ in range(200)]
        answers = await asyncio.gather(*plain)
        ends = await asyncio.gather(*framed)
    outcomes = Counter(
        "done" if "result" in answer else answer["error"]["code"]
        for answer in [*(json.loads(each.data) for each in answers), *(end for _, end in ends)]
    )
    assert set(outcomes) == {"done", BUSY}
    assert sum(outcomes.values()) == 1200
    assert len(function.calls) == outcomes["done"] >= 23
    assert function.most_at_once == 3


async def test_requests_that_cannot_even_be_read_are_told_that_the_worker_is_busy(
    broker: BrokerServer, client: Client, topic: str, function: Function, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service_module, "PENDING_REQUESTS", 3)
    async with serve_on_nats(function, broker.url, topic):
        body = b'{"id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"a"}}}'
        answers = await asyncio.gather(*(client.request(topic, body, timeout=30) for _ in range(500)))
    texts = Counter(json.loads(answer.data).get("error", {}).get("message", "done") for answer in answers)
    assert len(function.calls) == texts["done"] > 0
    assert texts["The worker is busy: more requests came than it can read."] > 0
    assert sum(texts.values()) == 500


async def test_a_busy_worker_is_an_error_with_advice(broker: BrokerServer, topic: str, function: Function) -> None:
    async with (
        serve_on_nats(function, broker.url, topic, concurrency=1, backlog=0),
        McpServer.nats(broker.url, topic) as server,
    ):
        call = asyncio.ensure_future(server.call_tool("wait"))
        await function.started.wait()
        with pytest.raises(McpError, match="busy") as caught:
            await server.call_tool("echo")
        assert (caught.value.rpc_code, caught.value.hint) == (BUSY, "Try again later.")
        function.go_on.set()
        await call


@pytest.mark.parametrize("grace", [0.05, 5.0])
async def test_stopping_finishes_what_runs_or_tells_its_caller(
    broker: BrokerServer, topic: str, function: Function, grace: float
) -> None:
    service = await serve_on_nats(function, broker.url, topic, keep_alive=0.2)
    async with McpServer.nats(broker.url, topic) as server:
        call = asyncio.ensure_future(server.call_tool("wait", {"text": "a"}))
        await function.started.wait()
        stopping = asyncio.ensure_future(service.stop(grace))
        if grace > 1:
            function.go_on.set()
            assert text_of(await call) == "a"
        else:
            with pytest.raises(McpConnectionError, match="The worker was stopped"):
                await call
        await stopping
        with pytest.raises(McpConnectionError, match="Nobody serves"):
            await server.list_tools()
    assert service.running == 0
    await service.stop()
    with pytest.raises(InvalidParametersError, match="started already"):
        await service


async def test_what_was_delivered_before_the_stop_is_answered(
    broker: BrokerServer, client: Client, topic: str, function: Function
) -> None:
    service = await serve_on_nats(function, broker.url, topic)
    body = b'{"id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"a"}}}'
    calls = [asyncio.create_task(client.request(topic, body, timeout=5)) for _ in range(100)]
    await until(lambda: len(function.calls) > 10)
    await service.stop()
    answers = [json.loads(each.data) async for each in _each(calls)]
    assert len(answers) == len(function.calls)


async def _each(calls: list[asyncio.Task[Msg]]) -> AsyncIterator[Msg]:
    for call in calls:
        try:
            yield await call
        except NoRespondersError:
            continue


async def test_denied_tools_cannot_be_reached(broker: BrokerServer, topic: str, function: Function) -> None:
    async with (
        serve_on_nats(McpServer(function, allow=["echo", "b*"], deny=["big"]), broker.url, topic),
        McpServer.nats(broker.url, topic) as server,
    ):
        assert [tool["name"] for tool in await server.list_tools()] == ["echo"]
        with pytest.raises(McpError, match="Unknown tool: big"):
            await server.call_tool("big", {"size": 1})
        assert function.calls == []


async def test_a_program_is_put_on_nats(broker: BrokerServer, topic: str) -> None:
    program = "from mcp_nats.helpers import asking_server; asking_server().run()"
    upstream = McpServer.stdio(
        sys.executable, "-c", program, env={"PYTHONPATH": os.pathsep.join(sys.path)}, name="asking"
    )
    reported: list[Progress] = []
    async with (
        serve_on_nats(upstream, broker.url, topic),
        McpServer.nats(broker.url, topic) as server,
    ):
        assert text_of(await server.call_tool("steps", on_progress=reported.append)) == "done"
        assert server.name == topic
    assert len(reported) == 3
    await until(lambda: upstream.state == "closed")


async def test_a_server_that_cannot_start_keeps_the_service_from_starting(broker: BrokerServer, topic: str) -> None:
    server = McpServer.stdio("no-such-program-anywhere")
    with pytest.raises(McpConnectionError, match="no-such-program-anywhere"):
        await serve_on_nats(server, broker.url, topic)
    with pytest.raises(InvalidParametersError, match="serve_on_nats takes"):
        await serve_on_nats(object(), broker.url, topic)


async def test_a_server_that_others_use_stays_open(broker: BrokerServer, topic: str, function: Function) -> None:
    async with McpServer(function) as upstream:
        async with serve_on_nats(upstream, broker.url, topic):
            pass
        assert upstream.state == "ready"
        assert upstream.answerers == []
