"""What crosses the wire is written down where somebody looks, byte for byte, and no key with it."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2
import pytest
from backends.web import closed_port

from yiemagent_nb import Agent, OpenAICompatible, RetryPolicy, tool
from yiemagent_nb.core.exchange import current_exchange
from yiemagent_nb.tracing.copies import copy_of
from yiemagent_nb.tracing.details import Details, details_of
from yiemagent_nb.tracing.recorder import TraceRecorder
from yiemagent_nb.tracing.rows import Row

pytestmark = pytest.mark.requirement("Y FR-006", "Y FR-002")

KEY = "sk-Xq8ZrT3mWv7LbN2kPd9y"
ONCE = RetryPolicy(1, 0.001)
AWKWARD = "It's \"quoted\" with \\ back\\nslashes, `ticks`, $HOME, !history, %s, 'single''' é 🎉\n\ttab\r\n[key]"


def event(content: str = "", finish: str | None = None) -> bytes:
    fields = {"choices": [{"index": 0, "delta": {"content": content}, "finish_reason": finish}]}
    return f"data: {json.dumps(fields)}\n\n".encode()


HELLO = event("Hel") + event("lo", "stop") + b"data: [DONE]\n\n"


def response(body: bytes, status: str = "200 OK", media_type: str = "text/event-stream", more: str = "") -> bytes:
    head = f"HTTP/1.1 {status}\r\ncontent-type: {media_type}\r\ncontent-length: {len(body)}\r\n{more}\r\n"
    return head.encode() + body


@dataclass
class RawServer:
    """Answers each request with the next bytes, and keeps the requests as they came."""

    port: int = 0
    heads: list[str] = field(default_factory=list[str])
    bodies: list[bytes] = field(default_factory=list[bytes])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"


Answering = bytes | Callable[[asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def raw_server(*answers: Answering) -> AsyncGenerator[RawServer]:
    kept = RawServer()
    waiting = list(answers)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while waiting:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                lengths = [
                    line.split(":")[1] for line in head.lower().splitlines() if line.startswith("content-length")
                ]
                kept.heads.append(head)
                kept.bodies.append(await reader.readexactly(int(lengths[0]) if lengths else 0))
                answer = waiting.pop(0)
                if isinstance(answer, bytes):
                    writer.write(answer)
                    await writer.drain()
                else:
                    await answer(writer)
                    return
        except (EOFError, OSError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    kept.port = server.sockets[0].getsockname()[1]
    async with server:
        yield kept


def model_row(trace: TraceRecorder) -> Row:
    return [row for row in trace.rows() if row.kind == "model"][-1]


def shown(details: Details) -> str:
    return json.dumps([str(each) for each in (details.request, details.response, details.facts, details.wire)])


async def test_a_streamed_answer_stands_there_as_it_came() -> None:
    async with raw_server(response(HELLO, more="x-request-id: r-1\r\n")) as server:
        agent = Agent(OpenAICompatible(server.url, "m", api_key=KEY), "Be brief.")
        trace = TraceRecorder.of(agent)
        await agent.prompt("hi")
        (wire,) = model_row(trace).model.exchanges[0].wire
        assert (wire.method, wire.url, wire.status) == ("POST", f"{server.url}/chat/completions", 200)
        assert wire.body == server.bodies[0]
        assert b"".join(wire.pieces) == HELLO
        assert wire.ended is not None
        assert wire.first is not None
        assert wire.started <= wire.first <= wire.ended
        sent = {line.split(": ", 1)[0].lower(): line.split(": ", 1)[1] for line in server.heads[0].splitlines()[1:-1]}
        told = {name.lower(): value for name, value in wire.headers}
        assert told == {**sent, "authorization": "Bearer [key]"}
        assert sent["authorization"] == f"Bearer {KEY}"
        assert ("x-request-id", "r-1") in wire.answer_headers
        details = details_of(model_row(trace))
        assert details.wire[0].answer == HELLO.decode()
        assert json.loads(details.wire[0].body) == json.loads(server.bodies[0])


async def test_repetitions_are_further_requests() -> None:
    busy = response(b'{"error": {"message": "busy"}}', "503 Busy", "application/json")
    async with raw_server(busy, response(HELLO)) as server:
        agent = Agent(OpenAICompatible(server.url, "m", retries=ONCE))
        trace = TraceRecorder.of(agent)
        assert (await agent.prompt("hi")).text == "Hello"
        first, second = details_of(model_row(trace)).wire
        assert (first.status, first.answer) == (503, '{"error": {"message": "busy"}}')
        assert (second.status, second.answer) == (200, HELLO.decode())
        assert first.body == second.body


async def test_a_refusal_is_told_with_its_words() -> None:
    words = b'{"error": {"message": "no such field"}}'
    async with raw_server(response(words, "400 Bad", "application/json")) as server:
        agent = Agent(OpenAICompatible(server.url, "m"))
        trace = TraceRecorder.of(agent)
        await agent.prompt("hi")
        row = model_row(trace)
        assert row.state == "failed"
        (wire,) = details_of(row).wire
        assert (wire.status, wire.answer) == (400, words.decode())


async def test_an_abort_leaves_what_had_come() -> None:
    async def begin(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n" + event("Hel"))
        await writer.drain()
        await gone.wait()

    gone = asyncio.Event()
    async with raw_server(begin) as server:
        agent = Agent(OpenAICompatible(server.url, "m"))
        trace = TraceRecorder.of(agent)
        agent.subscribe(lambda event, _: agent.abort() if event.type == "message_update" else None)
        await agent.prompt("hi")
        gone.set()
        row = model_row(trace)
        assert row.state == "aborted"
        (wire,) = details_of(row).wire
        assert wire.answer == event("Hel").decode()
        assert wire.error == "The answer was not read to its end."
        assert wire.seconds is not None


async def test_a_server_that_is_not_there_is_told_in_words() -> None:
    agent = Agent(OpenAICompatible(f"http://127.0.0.1:{closed_port()}/v1", "m", retries=0))
    trace = TraceRecorder.of(agent)
    await agent.prompt("hi")
    (wire,) = details_of(model_row(trace)).wire
    assert wire.status is None
    assert "127.0.0.1" in wire.error
    assert wire.seconds is not None


async def test_a_client_of_ones_own_is_written_down_too() -> None:
    async with raw_server(response(HELLO)) as server:
        client = httpx2.AsyncClient(trust_env=False, headers={"x-api-key": KEY, "x-plain": "yes"})
        agent = Agent(OpenAICompatible(server.url, "m", http_client=client))
        trace = TraceRecorder.of(agent)
        await agent.prompt("hi")
        await client.aclose()
        (wire,) = model_row(trace).model.exchanges[0].wire
        headers = dict(wire.headers)
        assert (headers["x-api-key"], headers["x-plain"]) == ("[key]", "yes")
        assert wire.body == server.bodies[0]


async def test_nothing_is_written_down_while_nobody_looks() -> None:
    seen: list[object] = []

    async with raw_server(response(HELLO)) as server:
        backend = OpenAICompatible(server.url, "m")

        def looks(messages: Any, **options: Any) -> Any:
            seen.append(current_exchange.get())
            return backend(messages, **options)

        agent = Agent(looks)
        assert (await agent.prompt("hi")).text == "Hello"
    assert seen == [None]


async def test_keys_that_a_server_says_back_are_masked_in_all_that_is_shown() -> None:
    said = json.dumps({"error": {"message": f"wrong {KEY}"}}).encode()
    async with raw_server(
        response(said, "503 Busy", "application/json", more=f"x-echo: {KEY}\r\n"),
        response(event(f"Your key is {KEY[:14]}") + event(f"{KEY[14:]}.", "stop") + b"data: [DONE]\n\n"),
    ) as server:
        backend = OpenAICompatible(server.url, "m", api_key=KEY, retries=ONCE, headers={"X-Also": "plain"})
        agent = Agent(backend, f"The key is {KEY}.")
        trace = TraceRecorder.of(agent)
        await agent.prompt(f"my key is {KEY}")
        texts = [shown(details_of(row)) for row in trace.rows()]
        texts += [copy_of(trace, model_row(trace), form).text for form in ("python", "curl", "test")]
        texts += [copy_of(trace, trace.rows()[0], "test").text, repr(trace), *map(repr, trace.rows())]
        texts += [repr(wire) for wire in model_row(trace).model.exchanges[0].wire]
    assert KEY in server.heads[0]
    assert sum(text.count("[key]") for text in texts) > 10
    pieces = [KEY[at : at + 12] for at in range(len(KEY) - 11)]
    assert not [text for text in texts if any(piece in text for piece in pieces)]


async def run_shell(command: str, **variables: str) -> bytes:
    shell = await asyncio.create_subprocess_exec(
        "sh",  # from its input, as a person pastes it: no argument may be as long
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, **variables},
    )
    out, err = await shell.communicate(command.encode())
    assert shell.returncode == 0, err.decode()
    return out


@tool
async def add(a: int, b: int) -> int:
    """Add 'two' "numbers"."""
    return a + b


@pytest.mark.parametrize(
    ("options", "variables", "prompt"),
    [
        ({"api_key": KEY}, {"MODEL_SERVER_KEY": KEY}, AWKWARD),
        ({"api_key_env": "MY_KEY"}, {"MY_KEY": KEY}, "x" * 300_000),
        ({"headers": {"X-API-Key": KEY, "X-It's": "a 'b' \"c\" $d"}}, {"X_API_KEY": KEY}, "hi"),
        ({"headers": {"Authorization": f"Bearer {KEY}"}}, {"AUTHORIZATION": f"Bearer {KEY}"}, "hi"),
    ],
)
async def test_curl_makes_the_same_request_byte_for_byte(
    options: dict[str, Any], variables: dict[str, str], prompt: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    async with raw_server(response(HELLO), response(HELLO)) as server:
        agent = Agent(OpenAICompatible(server.url, "m", **options), "Be brief.", tools=[add])
        trace = TraceRecorder.of(agent)
        await agent.prompt(prompt)
        command = copy_of(trace, model_row(trace), "curl").text
        assert KEY not in command
        assert all(f"variable {name}." in command for name in variables)
        assert await run_shell(command, **variables) == HELLO
        assert server.bodies[0] == server.bodies[1]
        assert fields_of(server.heads[0]) == fields_of(server.heads[1])


def fields_of(head: str) -> Sequence[str]:
    first, *lines = head.strip().splitlines()
    return [first, *sorted(line.lower() for line in lines if not line.lower().startswith("connection"))]


async def test_a_login_in_the_address_comes_from_a_variable() -> None:
    async with raw_server(response(HELLO), response(HELLO), response(HELLO)) as server:
        address = f"http://someone:{KEY}@127.0.0.1:{server.port}/v1"
        agent = Agent(OpenAICompatible(address, "m"))
        trace = TraceRecorder.of(agent)
        await agent.prompt("hi")
        command = copy_of(trace, model_row(trace), "curl").text
        said = next(line.split(": ", 1)[1] for line in server.heads[0].splitlines() if line.startswith("Authorization"))
        await run_shell(command, AUTHORIZATION=said)
        assert fields_of(server.heads[0]) == fields_of(server.heads[1])
        cell = copy_of(trace, model_row(trace), "python").text
        assert "os.environ['AUTHORIZATION']" in cell


async def test_a_cell_asks_the_server_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL_SERVER_KEY", KEY)
    async with raw_server(response(HELLO), response(HELLO)) as server:
        backend = OpenAICompatible(server.url, "m", api_key=KEY, temperature=0.5, extra_body={"top_k": 3})
        agent = Agent(backend, "Be brief.", tools=[add], options={"seed": 7})
        trace = TraceRecorder.of(agent)
        await agent.prompt(AWKWARD)
        cell = copy_of(trace, model_row(trace), "python").text
        names: dict[str, Any] = {}
        body = "\n".join(f"    {line}" for line in cell.splitlines()[:-1])
        exec(f"async def cell():\n{body}\n    return answer", names)  # noqa: S102 - the cell that is tested
        answer = await names["cell"]()
        assert answer.text == "Hello"
        assert json.loads(server.bodies[0]) == json.loads(server.bodies[1])
        assert server.heads[0].lower() == server.heads[1].lower()


async def test_a_key_that_comes_in_pieces_is_masked_in_the_answer_that_crossed_the_wire() -> None:
    pieces = b"".join(event(KEY[at : at + 6]) for at in range(0, len(KEY), 6))
    async with raw_server(response(b": " + b"-" * 30 + b"\n\n" + pieces + event("", "stop"))) as server:
        agent = Agent(OpenAICompatible(server.url, api_key=KEY, model="m"))
        trace = TraceRecorder.of(agent)
        await agent.prompt("hi")
        details = details_of(trace.rows()[-1])
        await agent.shutdown()
    answer = details.wire[-1].answer
    assert '"choices.0.delta.content": "[key]"' in answer
    for text in (answer, *(section.text for section in details.response)):
        assert not [KEY[at : at + 6] for at in range(0, len(KEY) - 6, 6) if KEY[at : at + 6] in text]
