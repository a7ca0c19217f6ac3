"""Calls through NATS, in both forms, to a service and to responders that know nothing of it."""

from __future__ import annotations

import asyncio
import contextvars
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any, Literal
from uuid import uuid4

import pytest
from mcp_nats.broker import BrokerServer
from mcp_nats.helpers import Function, KeepingInbox, asking_server, connected, hear, text_of, until
from nats.aio.client import Client
from nats.aio.msg import Msg

from yiemagent_nb.core.errors import InvalidParametersError, McpConnectionError, McpError, McpTimeoutError
from yiemagent_nb.mcp.link import Progress
from yiemagent_nb.mcp.links.nats import NatsTransport
from yiemagent_nb.mcp.nats.service import NatsService, serve_on_nats
from yiemagent_nb.mcp.server import McpServer

pytestmark = pytest.mark.requirement("Y SD-004", "Y P-002", "Y SP-009", "Y SP-010")

Form = Literal["json-rpc", "stateless"]


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


@pytest.fixture(params=["json-rpc", "stateless"])
def form(request: pytest.FixtureRequest) -> Form:
    return request.param


@pytest.mark.usefixtures("service")
async def test_a_call_gives_the_envelope_of_json_rpc(broker: BrokerServer, topic: str, form: Form) -> None:
    async with McpServer.nats(broker.url, topic, "me", binding=form) as server:
        assert (await server("tools/call", "echo", {"text": "ä"}))["result"]["content"] == [
            {"type": "text", "text": "ä"}
        ]
        assert [tool["name"] for tool in await server.list_tools()] == ["echo", "big", "wait"]
        answer = await server("tools/call", "fail", {})
        assert answer["error"]["code"] == -32603
        assert "it broke" in answer["error"]["message"]


@pytest.mark.usefixtures("service")
async def test_a_connection_of_ones_own_stays_open(broker: BrokerServer, topic: str, form: Form) -> None:
    async with connected(broker.url) as client:
        async with McpServer.nats(client, topic, binding=form) as server:
            assert text_of(await server.call_tool("echo", {"text": "a"})) == "a"
        assert client.is_connected
        async with McpServer.nats(client, topic, binding=form) as server:
            assert text_of(await server.call_tool("echo", {"text": "b"})) == "b"


@pytest.mark.usefixtures("service")
async def test_hundred_calls_at_once_get_their_own_answers(broker: BrokerServer, topic: str, form: Form) -> None:
    async with McpServer.nats(broker.url, topic, binding=form) as server:
        results = await asyncio.gather(*(server.call_tool("echo", {"text": str(n)}) for n in range(100)))
    assert [text_of(result) for result in results] == [str(n) for n in range(100)]


async def test_auto_finds_the_stateless_form_and_what_the_server_is(broker: BrokerServer, topic: str) -> None:
    async with (
        serve_on_nats(asking_server(), broker.url, topic),
        NatsTransport(broker.url, topic).open(KeepingInbox()) as link,
    ):
        assert (link.info.name, link.info.instructions) == ("asking", "Ask away.")
        assert "tools" in link.info.capabilities
        assert link.info.protocol


# Responders that know nothing of us


async def respond(client: Client, topic: str, answer: Any, seen: list[Msg]) -> None:
    """A responder written by hand."""

    async def handle(message: Msg) -> None:
        seen.append(message)
        request = json.loads(message.data)
        reply = answer(request)
        if reply is not None:
            await message.respond(json.dumps(reply).encode())  # nats-py sends the request's headers back

    await hear(client, topic, handle)
    await client.flush()


def by_hand(request: dict[str, Any]) -> dict[str, Any]:
    if request["method"] != "tools/call":
        return {"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32601, "message": "Method not found"}}
    return {"jsonrpc": "2.0", "id": request["id"], "result": {"content": [{"type": "text", "text": "by hand"}]}}


@pytest.mark.parametrize("binding", ["auto", "json-rpc"])
async def test_a_responder_by_hand_gets_plain_json_rpc(
    broker: BrokerServer, topic: str, binding: Literal["auto", "json-rpc"]
) -> None:
    seen: list[Msg] = []
    async with connected(broker.url) as client:
        await respond(client, topic, by_hand, seen)
        async with McpServer.nats(broker.url, topic, "agent-7", binding=binding) as server:
            answer = await server("tools/call", "echo", {"a": 1}, "session-1")
            assert text_of(answer["result"]) == "by hand"
            assert (await server("tools/list"))["error"] == {"code": -32601, "message": "Method not found"}
    call = next(message for message in seen if b"tools/call" in message.data)
    request = json.loads(call.data)
    assert set(request) == {"jsonrpc", "id", "method", "params"}
    assert request["params"] == {"name": "echo", "arguments": {"a": 1}, "sessionId": "session-1"}
    assert call.headers == {"Sender-Id": "agent-7"}


async def test_an_answer_without_the_frame_of_json_rpc_is_read_too(broker: BrokerServer, topic: str) -> None:
    async with connected(broker.url) as client:
        await respond(client, topic, lambda _: {"result": {"tools": []}}, [])  # pyright: ignore[reportUnknownLambdaType]
        async with McpServer.nats(broker.url, topic, binding="json-rpc") as server:
            assert await server.list_tools() == []


async def test_a_plain_responder_is_told_apart_where_frames_were_asked_for(broker: BrokerServer, topic: str) -> None:
    async with connected(broker.url) as client:
        await respond(client, topic, by_hand, [])
        server = McpServer.nats(broker.url, topic, binding="stateless")
        with pytest.raises(McpConnectionError, match="plain JSON-RPC"):
            await server.request("tools/list")
        await server.close()


async def test_a_responder_that_ignores_what_it_does_not_know_is_spoken_to_plainly(
    broker: BrokerServer, topic: str
) -> None:
    def answer(request: dict[str, Any]) -> dict[str, Any] | None:
        return None if request["method"] == "server/discover" else by_hand(request)

    async with connected(broker.url) as client:
        await respond(client, topic, answer, [])
        async with McpServer.nats(broker.url, topic) as server:
            assert text_of(await server.call_tool("echo")) == "by hand"


@pytest.mark.parametrize("reply", [b"", b"no json", b"[]", b"\xff", b'{"id": 1}', b'{"error": "text"}'])
async def test_an_answer_that_is_none_is_an_error(broker: BrokerServer, topic: str, reply: bytes) -> None:
    async with connected(broker.url) as client:

        async def handle(message: Msg) -> None:
            await client.publish(message.reply, reply)

        await hear(client, topic, handle)
        await client.flush()
        async with McpServer.nats(broker.url, topic, binding="json-rpc") as server:
            with pytest.raises(McpError, match="The answer to tools/list"):
                await server.request("tools/list")


async def test_nobody_there_is_an_error_at_once(broker: BrokerServer, topic: str, form: Form) -> None:
    server = McpServer.nats(broker.url, topic, binding=form, timeout=30)
    async with asyncio.timeout(10):
        with pytest.raises(McpConnectionError, match=f"Nobody serves {topic}"):
            await server.request("tools/list")
    await server.close()


async def test_a_service_that_went_away_is_an_error_at_once(broker: BrokerServer, topic: str, form: Form) -> None:
    async with serve_on_nats(Function(), broker.url, topic), McpServer.nats(broker.url, topic, binding=form) as server:
        await server.list_tools()
        gone = serve_on_nats(Function(), broker.url, f"{topic}.other")
        await gone
        await gone.stop()
        async with asyncio.timeout(10):
            with pytest.raises(McpConnectionError, match="Nobody serves"):
                await McpServer.nats(broker.url, f"{topic}.other", binding="json-rpc").request("tools/list")


# Sizes


@pytest.mark.usefixtures("service")
async def test_a_result_of_20_mb_arrives(broker: BrokerServer, topic: str) -> None:
    async with McpServer.nats(broker.url, topic) as server:
        assert len(text_of(await server.call_tool("big", {"size": 20_000_000}))) == 20_000_000


@pytest.mark.usefixtures("service")
async def test_a_plain_result_over_the_limit_is_an_error_that_says_so(broker: BrokerServer, topic: str) -> None:
    async with McpServer.nats(broker.url, topic, binding="json-rpc") as server:
        answer = await server("tools/call", "big", {"size": 2_000_000})
    assert answer["error"]["code"] == -32011
    assert "payload limit" in answer["error"]["message"]


@pytest.mark.usefixtures("service")
async def test_a_plain_request_over_the_limit_is_an_error_that_says_so(broker: BrokerServer, topic: str) -> None:
    async with McpServer.nats(broker.url, topic, "x" * 200, binding="json-rpc") as server:
        with pytest.raises(McpError, match="payload limit"):
            await server.call_tool("echo", {"text": "x" * (1024 * 1024 - 200)})
        assert text_of(await server.call_tool("echo", {"text": "fine"})) == "fine"


async def test_the_hint_of_a_plain_timeout_tells_of_the_payload_limit(broker: BrokerServer, topic: str) -> None:
    async with connected(broker.url) as client:
        await respond(client, topic, lambda _: None, [])  # pyright: ignore[reportUnknownLambdaType]
        async with McpServer.nats(broker.url, topic, binding="json-rpc", timeout=0.2) as server:
            with pytest.raises(McpTimeoutError, match="1048576 bytes never arrives"):
                await server.request("tools/list")


@pytest.mark.usefixtures("service")
async def test_a_large_request_arrives(broker: BrokerServer, topic: str) -> None:
    async with McpServer.nats(broker.url, topic) as server:
        text = "ä" * 3_000_000
        assert text_of(await server.call_tool("echo", {"text": text})) == text


# Time


@pytest.mark.usefixtures("service")
async def test_cancelling_the_caller_cancels_the_tool(broker: BrokerServer, topic: str, function: Function) -> None:
    async with McpServer.nats(broker.url, topic) as server:
        call = asyncio.ensure_future(server.call_tool("wait"))
        await function.started.wait()
        call.cancel()
        async with asyncio.timeout(10):
            await function.cancelled.wait()
        assert text_of(await server.call_tool("echo", {"text": "fine"})) == "fine"


@pytest.mark.usefixtures("service")
async def test_closing_the_caller_cancels_the_tool(broker: BrokerServer, topic: str, function: Function) -> None:
    async with McpServer.nats(broker.url, topic) as server:
        call = asyncio.ensure_future(server.call_tool("wait"))
        await function.started.wait()
    async with asyncio.timeout(10):
        await function.cancelled.wait()
        with pytest.raises(McpConnectionError):
            await call


@pytest.mark.usefixtures("service")
async def test_a_timeout_reaches_the_tool(broker: BrokerServer, topic: str, function: Function) -> None:
    async with McpServer.nats(broker.url, topic) as server:
        with pytest.raises(McpTimeoutError, match=r"within 0\.3 seconds"):
            await server.call_tool("wait", timeout=0.3)
        async with asyncio.timeout(10):
            await function.cancelled.wait()


async def test_a_request_that_is_accepted_after_its_caller_gave_up_is_cancelled(
    broker: BrokerServer, topic: str
) -> None:
    cancelled: list[Msg] = []
    async with connected(broker.url) as client:
        waiting: list[Msg] = []

        async def handle(message: Msg) -> None:
            waiting.append(message)

        async def control(message: Msg) -> None:
            cancelled.append(message)

        await hear(client, topic, handle)
        await hear(client, f"{topic}.control.late.*", control)
        await client.flush()
        async with AsyncExitStack() as stack:
            opened = NatsTransport(broker.url, topic, binding="stateless").open(KeepingInbox())
            opening = asyncio.ensure_future(stack.enter_async_context(opened))
            await until(lambda: len(waiting) == 1)
            first = waiting[0]
            accepted = {"Mcp-Frame": "accepted", "Mcp-Worker": "late", "Mcp-Period": "1"}
            discovered: dict[str, Any] = {
                "jsonrpc": "2.0",
                "id": "1",
                "result": {"supportedVersions": ["x"], "capabilities": {}},
            }
            await client.publish(
                first.reply, json.dumps(discovered).encode(), headers={"Mcp-Frame": "end", "Mcp-Worker": "late"}
            )
            link = await opening
            with pytest.raises(McpTimeoutError):
                await link.request("tools/call", {"name": "a"}, timeout=0.1)
            await client.publish(waiting[1].reply, b"", reply=f"{topic}.control.late.1", headers=accepted)
            await until(lambda: len(cancelled) == 1)
    assert cancelled[0].headers is not None
    assert cancelled[0].headers["Mcp-Frame"] == "cancel"


@pytest.mark.usefixtures("service")
async def test_a_long_call_lives_as_long_as_the_worker_gives_signs_of_life(
    broker: BrokerServer, topic: str, function: Function
) -> None:
    async with McpServer.nats(broker.url, topic) as server:
        call = asyncio.ensure_future(server.call_tool("wait", {"text": "late"}))
        done, _ = await asyncio.wait({call}, timeout=1.5)  # the signs of life are 0.2 seconds apart
        assert not done
        function.go_on.set()
        assert text_of(await call) == "late"


async def test_a_worker_that_falls_silent_counts_as_dead(broker: BrokerServer, topic: str) -> None:
    async with connected(broker.url) as client:

        async def handle(message: Msg) -> None:
            headers = {"Mcp-Frame": "accepted", "Mcp-Worker": "w", "Mcp-Period": "0.2"}
            if b"server/discover" in message.data:
                headers = {"Mcp-Frame": "end", "Mcp-Worker": "w"}
            await client.publish(
                message.reply, b'{"jsonrpc":"2.0","id":1,"result":{}}', reply=f"{topic}.control.w.1", headers=headers
            )

        await hear(client, topic, handle)
        await client.flush()
        async with McpServer.nats(broker.url, topic) as server, asyncio.timeout(10):
            with pytest.raises(McpConnectionError, match="died during tools/call: it was silent for"):
                await server.call_tool("echo")


async def test_a_request_that_nobody_takes_ends_after_a_few_seconds(broker: BrokerServer, topic: str) -> None:
    async with connected(broker.url) as client:

        async def handle(message: Msg) -> None:
            if b"server/discover" in message.data:
                headers = {"Mcp-Frame": "end", "Mcp-Worker": "w"}
                await client.publish(message.reply, b'{"jsonrpc":"2.0","id":1,"result":{}}', headers=headers)

        await hear(client, topic, handle)
        await client.flush()
        async with McpServer.nats(broker.url, topic) as server, asyncio.timeout(15):
            with pytest.raises(McpConnectionError, match="took tools/call within 5 seconds"):
                await server.call_tool("echo")


# What a server says by itself


async def test_progress_arrives_in_order_and_before_the_result(broker: BrokerServer, topic: str) -> None:
    reported: list[Progress] = []
    async with (
        serve_on_nats(McpServer.in_process(asking_server()), broker.url, topic),
        McpServer.nats(broker.url, topic) as server,
    ):
        assert text_of(await server.call_tool("steps", on_progress=reported.append)) == "done"
    assert reported == [Progress(step, 3, f"step {step}") for step in (1, 2, 3)]


async def test_a_question_of_a_tool_reaches_its_caller(broker: BrokerServer, topic: str) -> None:
    asked: list[str] = []

    def elicit(message: str, _schema: Any) -> dict[str, Any]:
        asked.append(message)
        return {"city": "Lisbon"}

    upstream = McpServer.in_process(asking_server(), protocol="legacy")
    async with (
        serve_on_nats(upstream, broker.url, topic),
        McpServer.nats(broker.url, topic, on_elicitation=elicit) as server,
    ):
        assert text_of(await server.call_tool("where")) == "accept: Lisbon"
    assert asked == ["Which city?"]


@pytest.mark.parametrize(("tells_whose", "second_gets"), [(True, "Porto"), (False, "None")])
async def test_a_question_is_never_put_to_another_caller(
    broker: BrokerServer, topic: str, tells_whose: bool, second_gets: str
) -> None:
    """Servers of the protocols before 2026 do not tell whose request led to a question."""
    asked = asyncio.Event()
    may_answer = asyncio.Event()

    async def tools(method: str, *_: Any) -> dict[str, Any]:
        assert method == "tools/call"
        context = None if tells_whose else contextvars.Context()
        question = {"message": "Which city?", "requestedSchema": schema}
        answer = await asyncio.create_task(upstream.answerers[-1].elicitation("tools", question), context=context)
        city = None if answer is None else answer["content"]["city"]
        return {"content": [{"type": "text", "text": str(city)}]}

    async def answer_late(_message: str, _schema: Any) -> dict[str, Any]:
        asked.set()
        await may_answer.wait()
        return {"city": "Lisbon"}

    def answer(_message: str, _schema: Any) -> dict[str, Any]:
        return {"city": "Porto"}

    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    upstream = McpServer(tools)
    async with (
        serve_on_nats(upstream, broker.url, topic),
        McpServer.nats(broker.url, topic, on_elicitation=answer_late) as first,
        McpServer.nats(broker.url, topic, on_elicitation=answer) as second,
    ):
        call = asyncio.ensure_future(first.call_tool("where"))
        await asked.wait()
        assert text_of(await second.call_tool("where")) == second_gets
        may_answer.set()
        assert text_of(await call) == "Lisbon"


async def test_sampling_and_roots_are_asked_of_the_caller(broker: BrokerServer, topic: str) -> None:
    """By a worker of another hand: its questions, in pieces, and the answers, in pieces."""
    answers: list[dict[str, Any]] = []
    async with connected(broker.url) as client:
        replies: list[str] = []
        pieces: list[bytes] = []

        async def control(message: Msg) -> None:
            assert message.headers is not None
            assert message.headers["Mcp-Frame"] == "answer"
            pieces.append(message.data)
            part, _, parts = message.headers.get("Mcp-Part", "1/1").partition("/")
            if part != parts:
                return
            answers.append(json.loads(b"".join(pieces)))
            pieces.clear()
            if len(answers) == 3:
                await end(replies[-1], {"content": []})

        async def end(reply: str, result: dict[str, Any]) -> None:
            body = json.dumps({"jsonrpc": "2.0", "id": 1, "result": result}).encode()
            await client.publish(reply, body, headers={"Mcp-Frame": "end", "Mcp-Worker": "w"})

        async def handle(message: Msg) -> None:
            if b"server/discover" in message.data:
                await end(message.reply, {})
                return
            assert message.headers is not None
            assert message.headers["Mcp-Answers"] == "sampling/createMessage,roots/list"
            replies.append(message.reply)
            own = {"Mcp-Worker": "w"}
            there = f"{topic}.control.w.1"
            await client.publish(message.reply, reply=there, headers={"Mcp-Frame": "accepted", **own})
            for number, method in enumerate(("sampling/createMessage", "roots/list", "elicitation/create")):
                body = json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": {"n": number}}).encode()
                cut = len(body) // 2
                for part, piece in (("1/2", body[:cut]), ("2/2", body[cut:])):
                    size = {"Mcp-Part": part, "Mcp-Size": str(len(body))}
                    headers = {"Mcp-Frame": "question", **own, **size}
                    await client.publish(message.reply, piece, reply=there, headers=headers)

        await hear(client, topic, handle)
        await hear(client, f"{topic}.control.w.*", control)
        await client.flush()
        inbox = KeepingInbox({"sampling/createMessage": {"text": "x" * 2_000_000}, "roots/list": {"roots": []}})
        async with NatsTransport(broker.url, topic, binding="stateless").open(inbox) as link:
            assert await link.request("tools/call", {"name": "a"}) == {"content": []}
    by_id = {answer["id"]: answer for answer in answers}
    assert len(by_id[0]["result"]["text"]) == 2_000_000
    assert by_id[1]["result"] == {"roots": []}
    assert by_id[2]["error"]["code"] == -32601
    assert sorted(inbox.asked) == [("roots/list", {"n": 1}), ("sampling/createMessage", {"n": 0})]


@pytest.mark.parametrize("protocol", ["auto", "legacy"])
async def test_a_changed_list_of_tools_is_told_to_all(
    broker: BrokerServer, topic: str, protocol: Literal["auto", "legacy"]
) -> None:
    async with (
        serve_on_nats(McpServer.in_process(asking_server(), protocol=protocol), broker.url, topic),
        McpServer.nats(broker.url, topic) as first,
        McpServer.nats(broker.url, topic) as second,
    ):
        heard: list[str] = []
        first.subscribe(lambda event: heard.append(f"first {event.kind}"))
        second.subscribe(lambda event: heard.append(f"second {event.kind}"))
        await first.call_tool("grow")
        await until(lambda: {"first tools_changed", "second tools_changed"} <= set(heard))
        assert "another" in [tool["name"] for tool in await second.list_tools()]


@pytest.mark.usefixtures("service")
async def test_rubbish_among_the_events_is_counted(broker: BrokerServer, topic: str) -> None:
    inbox = KeepingInbox()
    note = json.dumps({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}).encode()
    frame = {"Mcp-Frame": "notification"}
    async with connected(broker.url) as client, NatsTransport(broker.url, topic).open(inbox):
        for payload, headers in (
            (b"rubbish", frame),
            (note, None),
            (note, {"Mcp-Frame": "end"}),
            (note, {**frame, "Mcp-Part": "1/2", "Mcp-Size": "1"}),
            (b'{"method": "tools/list"}', frame),
            (note, frame),
        ):
            await client.publish(f"{topic}.events", payload, headers=headers)
        await until(lambda: len(inbox.notes) == 1)
    assert inbox.notes == [("notifications/tools/list_changed", {})]
    assert len(inbox.rubbish) == 5


# Use and misuse


@pytest.mark.parametrize("topic", ["", "a b", "a.*", "a.>", "a..b", ".a", "a\nb"])
def test_what_is_no_topic_is_refused(topic: str) -> None:
    with pytest.raises(InvalidParametersError, match="topic must be"):
        NatsTransport("nats://127.0.0.1:4222", topic)


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(InvalidParametersError, match="binding must be one of"):
        NatsTransport("nats://127.0.0.1:4222", "a", binding="other")  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidParametersError, match="sender_id"):
        NatsTransport("nats://127.0.0.1:4222", "a", "a\r\nX: y")
    with pytest.raises(InvalidParametersError, match="needs an address"):
        NatsTransport(7, "a")  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidParametersError, match="cannot have error_cb"):
        NatsTransport("nats://127.0.0.1:4222", "a", options={"error_cb": print})
    with pytest.raises(InvalidParametersError, match="must be at least 1"):
        serve_on_nats(Function, "nats://127.0.0.1:4222", "a", concurrency=0)


async def test_an_unknown_option_is_refused(broker: BrokerServer, topic: str) -> None:
    with pytest.raises(InvalidParametersError, match="colour"):
        async with NatsTransport(broker.url, topic, options={"colour": "red"}).open(KeepingInbox()):
            pass


async def test_a_connection_of_another_loop_is_refused(broker: BrokerServer, topic: str) -> None:
    async with connected(broker.url) as client:

        async def use() -> str:
            server = McpServer.nats(client, topic)
            try:
                await server.request("tools/list")
            except McpConnectionError as error:
                return str(error)
            finally:
                await server.close()
            return ""

        assert "another event loop" in await asyncio.to_thread(asyncio.run, use())


async def test_a_closed_connection_is_refused(broker: BrokerServer, topic: str) -> None:
    async with connected(broker.url) as client:
        await client.close()
        server = McpServer.nats(client, topic)
        with pytest.raises(McpConnectionError, match="is closed"):
            await server.request("tools/list")
        await server.close()


@pytest.mark.usefixtures("service")
async def test_a_link_ends_when_the_users_connection_is_closed(
    broker: BrokerServer, topic: str, function: Function
) -> None:
    async with connected(broker.url) as client, NatsTransport(client, topic).open(KeepingInbox()) as link:
        waiting = asyncio.ensure_future(link.wait_closed())
        call = asyncio.ensure_future(link.request("tools/call", {"name": "wait", "arguments": {}}))
        await asyncio.sleep(0)
        await client.close()
        async with asyncio.timeout(10):
            assert "was closed" in await waiting
            with pytest.raises(McpConnectionError):
                await call
    function.go_on.set()


@pytest.mark.usefixtures("service")
async def test_connecting_that_is_cancelled_leaves_the_users_connection_unharmed(
    broker: BrokerServer, topic: str
) -> None:
    async with connected(broker.url) as client:
        for delays in range(12):
            starting = asyncio.ensure_future(_start_and_stop(client, f"{topic}.{delays}"))
            for _ in range(delays):
                await asyncio.sleep(0)
            starting.cancel()
            await asyncio.wait({starting})
        async with McpServer.nats(client, topic) as server:
            assert text_of(await server.call_tool("echo", {"text": "fine"})) == "fine"


async def _start_and_stop(client: Client, topic: str) -> None:
    service = await serve_on_nats(Function(), client, topic)
    await service.stop()
