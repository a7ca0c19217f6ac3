"""Messages over a server's standard streams, with a server that does everything wrong."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import psutil
import pytest
from mcp_client.watching import FAULTY_SERVER, Recorder, alive, call, family, faulty, said, until

from yiemagent_nb.core.errors import McpConnectionError, McpError, McpTimeoutError
from yiemagent_nb.core.redaction import Redactor
from yiemagent_nb.mcp.link import Link
from yiemagent_nb.mcp.links import pipes
from yiemagent_nb.mcp.links.sdk import open_sdk_link
from yiemagent_nb.mcp.links.stdio_by_sdk import SdkStreams

pytestmark = pytest.mark.requirement("Y SD-004")

MEBIBYTE = 1 << 20


@asynccontextmanager
async def opened(*options: str, **settings: Any) -> AsyncGenerator[tuple[Link, Recorder]]:
    inbox = Recorder()
    async with faulty(*options, **settings).open(inbox) as link:
        yield link, inbox


def notification(data: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"' + data + b'"}}'


async def write(link: Link, data: bytes) -> None:
    assert said(await call(link, "raw", hex=data.hex())) == "done"


def heard(inbox: Recorder) -> list[str]:
    return [params["data"] for _, params in inbox.notifications]


async def test_a_server_says_who_it_is_and_answers() -> None:
    async with opened() as (link, inbox):
        assert (link.info.name, link.info.version) == ("faulty", "1")
        assert said(await call(link, "echo", text="héllo\n wörld")) == "héllo\n wörld"
    assert inbox.rubbish == []
    assert inbox.stderr == []


def test_the_transport_is_of_kind_stdio() -> None:
    assert faulty().kind == "stdio"


# What is no message


async def test_rubbish_on_the_standard_output_is_told_and_costs_nothing_else() -> None:
    async with opened("prints-rubbish") as (link, inbox):
        await write(link, b"\n \r\n" + b"y" * 3_000_000 + b'\n[1]\n"text"\nnull\n{}\n')
        assert said(await call(link, "echo", text="fine")) == "fine"
    assert inbox.rubbish[:2] == ["Welcome!", "{this is no message}"]
    assert inbox.rubbish[2] == "y" * 999 + "…"
    assert inbox.rubbish[3:] == ["[1]", '"text"', "null", "{}"]


async def test_thousands_of_lines_of_rubbish_are_counted_while_the_event_loop_goes_on() -> None:
    async with opened() as (link, inbox):
        ticks = await ticks_during(call(link, "raw_flood", lines=20_000))
    assert len(inbox.rubbish) == 20_000
    assert ticks > 10


async def test_broken_utf_8_in_a_message_is_replaced() -> None:
    async with opened() as (link, inbox):
        await write(link, notification(b"a\xffb\xc3") + b"\n")
        await until(lambda: inbox.notifications)
    assert heard(inbox) == ["a�b�"]
    assert inbox.rubbish == []


async def test_broken_utf_8_between_messages_is_rubbish() -> None:
    async with opened() as (link, inbox):
        await write(link, b"\xff\xfe\x00\n" + notification(b"a") + b"\n\xc3\n")
        await until(lambda: inbox.notifications)
    assert heard(inbox) == ["a"]
    assert inbox.rubbish == ["��\0", "�"]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (rb"\ud83d", "�"),
        (rb"a\ud83d b\ude00", "a� b�"),
        (rb"\ud83d\ude00 \ud83d", "😀 �"),
        (rb"\\ud83d \udc00", "\\ud83d �"),
        (rb"\ud83d\ud83d\ude00", "�😀"),
    ],
)
async def test_half_a_character_is_replaced(written: bytes, read: str) -> None:
    async with opened() as (link, inbox):
        await write(link, notification(written) + b"\n")
        await until(lambda: inbox.notifications)
    assert heard(inbox) == [read]


async def test_messages_may_come_in_a_batch_and_end_with_carriage_returns() -> None:
    async with opened() as (link, inbox):
        await write(link, b"[" + notification(b"1") + b"," + notification(b"2") + b"]\r\n")
        await until(lambda: len(inbox.notifications) == 2)
    assert heard(inbox) == ["1", "2"]


async def test_an_answer_that_is_none_fails_its_request_at_once() -> None:
    async with opened() as (link, inbox):
        with pytest.raises(McpError, match="The server's answer is no JSON-RPC response"):
            await call(link, "wrong")
    assert len(inbox.rubbish) == 1


@pytest.mark.parametrize(
    "answer",
    [
        '{{"jsonrpc":"2.0","id":{},"result":{{"half":',
        '{{"id":{},"result":[]}}',
        '{{"result":oops,"jsonrpc":"2.0","id":{}}}',
        '{{"jsonrpc":"2.0","result":oops,"id":{} }}',
    ],
)
async def test_an_answer_that_cannot_be_read_fails_its_request_at_once(answer: str) -> None:
    async with opened() as (link, _):
        waiting = asyncio.ensure_future(call(link, "never"))
        for request in range(1, 8):  # one of these numbers is that of the request
            await write(link, answer.format(request).encode() + b"\n")
            if waiting.done():
                break
        with pytest.raises(McpError, match="The server's answer is no JSON-RPC response"):
            await waiting


async def test_a_broken_request_of_the_server_fails_none_of_ours() -> None:
    async with opened() as (link, inbox):
        for number in range(10):
            await write(link, b'{"jsonrpc":"2.0","id":%d,"method":"roots/list","params":7}\n' % number)
        assert said(await call(link, "echo", text="fine")) == "fine"
    assert len(inbox.rubbish) == 10


async def test_a_line_that_is_too_long_is_dropped_and_fails_its_request() -> None:
    async with opened(longest_line=100_000) as (link, inbox):
        with pytest.raises(McpError, match="The server's answer is too long"):
            await call(link, "big", size=5_000_000)
        assert len(said(await call(link, "big", size=90_000))) == 90_000
    assert inbox.rubbish[0].startswith("a line of 5,000,")
    assert len(inbox.rubbish[0]) <= 1_000


async def test_fifty_megabytes_arrive() -> None:
    async with opened() as (link, _):
        result = await call(link, "big", size=50_000_000)
    assert said(result) == "x" * 50_000_000


# Standard error


async def ticks_during(work: Any) -> int:
    """How often the event loop had a turn while something was done."""
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.001)
            ticks += 1

    ticking = asyncio.ensure_future(tick())
    try:
        await work
    finally:
        ticking.cancel()
    return ticks


@pytest.mark.parametrize("length", [20, 5_000, 0])
async def test_a_flood_at_the_standard_error_blocks_nobody_and_fills_no_memory(length: int) -> None:
    memory = psutil.Process().memory_info().rss
    async with opened() as (link, inbox):
        ticks = await ticks_during(call(link, "flood", size=50_000_000, line=length))
        assert ticks > 10
        await until(lambda: "the flood is over" in inbox.stderr[-1:])
    assert psutil.Process().memory_info().rss - memory < 40 * MEBIBYTE
    assert max(map(len, inbox.stderr)) <= 2_000
    assert length != 20 or any("lines left out" in line for line in inbox.stderr)


async def test_each_line_of_a_traceback_arrives_in_order() -> None:
    lines = [f"line {number}" for number in range(150)]
    async with opened() as (link, inbox):
        await call(link, "speak", text="\n".join(lines) + "\n")
        await until(lambda: len(inbox.stderr) == 150)
    assert inbox.stderr == lines


async def test_progress_that_is_rewritten_on_its_line_arrives_as_lines() -> None:
    async with opened() as (link, inbox):
        await call(link, "speak", text="10 %\r20 %\r\nhalf a line")
    assert inbox.stderr == ["10 %", "20 %", "half a line"]


# Ends


async def test_a_server_that_dies_at_the_start_is_one_flat_error_after_its_last_words() -> None:
    inbox = Recorder()
    with pytest.raises(McpConnectionError, match="The server went away during the handshake: it exited with code 3"):
        async with faulty("dies=3").open(inbox):
            pytest.fail("it was opened")
    assert inbox.stderr == ["I cannot find my configuration"]


async def test_a_crash_fails_the_calls_in_flight_at_once() -> None:
    async with opened("child", "ignores-term") as (link, inbox):
        child = (await family(link))["child"]
        with pytest.raises(McpConnectionError):
            await call(link, "end", code=5)
        assert alive([child]), "they waited for what the server left behind"
        assert inbox.stderr == ["these are my last words"]


@pytest.mark.parametrize(
    ("tool", "arguments", "reason"),
    [
        ("end", {"code": 5}, "The server exited with code 5."),
        ("die", {"signal": int(signal.SIGKILL)}, "The server was killed by signal 9 (SIGKILL)."),
        ("close_output", {}, "The server closed its standard output or its standard input."),
        ("close_input", {}, "The server closed its standard output or its standard input."),
    ],
)
async def test_the_last_thing_read_from_a_server_that_ended_says_how(
    tool: str, arguments: dict[str, Any], reason: str
) -> None:
    from mcp.shared.message import SessionMessage  # noqa: PLC0415 - as late as the product loads it
    from mcp_types import JSONRPCRequest  # noqa: PLC0415

    async with faulty().streams(Recorder()) as (incoming, outgoing):
        params = {"name": tool, "arguments": arguments}
        await outgoing.send(SessionMessage(JSONRPCRequest(jsonrpc="2.0", id=1, method="tools/call", params=params)))
        items = [item async for item in incoming]
    assert isinstance(items[-1], McpConnectionError)
    assert items[-1].message == reason


async def test_a_supervisor_that_was_killed_is_told_as_the_reason() -> None:
    async with faulty().streams(Recorder()) as (incoming, _):
        supervisor = next(
            child for child in psutil.Process().children() if "supervisor.py" in " ".join(child.cmdline())
        )
        supervisor.kill()
        items = [item async for item in incoming]
    assert [item.message for item in items] == ["The server was ended with the program that supervises it."]


async def test_a_message_cut_off_by_a_crash_is_rubbish() -> None:
    async with opened() as (link, inbox):
        with pytest.raises(McpConnectionError):
            await call(link, "end", code=1, hex=b'{"jsonrpc":'.hex())
    assert inbox.rubbish == ['{"jsonrpc":']


async def test_a_call_after_the_end_fails() -> None:
    async with opened() as (link, _):
        with pytest.raises(McpConnectionError):
            await call(link, "end", code=1)
        with pytest.raises(McpConnectionError):
            await call(link, "echo", text="anybody?")


async def test_a_connection_that_ended_is_noticed_without_a_call() -> None:
    async with opened() as (link, _):
        psutil.Process((await family(link))["server"]).kill()
        async with asyncio.timeout(10):
            assert await link.wait_closed()


# A server that does not read


async def test_a_server_that_does_not_read_makes_calls_time_out_and_blocks_nothing() -> None:
    async with opened() as (link, _):
        processes = await family(link)
        await call(link, "go_deaf")
        with pytest.raises(McpTimeoutError):
            await link.request("tools/call", {"name": "echo", "arguments": {"text": "x" * 500_000}}, timeout=0.2)
        sending = asyncio.ensure_future(call(link, "echo", text="x" * 10_000_000))
        done, _ = await asyncio.wait({sending}, timeout=0.2)
        assert not done
        sending.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await sending
        began = time.monotonic()
    assert time.monotonic() - began < 12
    assert alive(processes.values()) == []


async def test_a_message_that_a_server_does_not_take_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipes, "UNREAD_SECONDS", 0.1)
    async with opened() as (link, _):
        await call(link, "go_deaf")
        with pytest.raises(McpTimeoutError):
            await link.request("tools/call", {"name": "echo", "arguments": {"text": "x" * 3_000_000}})


async def test_a_large_message_reaches_a_server_that_reads() -> None:
    async with opened() as (link, _):
        assert said(await call(link, "echo", text="é" * 5_000_000)) == "é" * 5_000_000


async def test_a_message_that_is_no_text_is_an_error_and_not_the_end() -> None:
    async with opened() as (link, _):
        with pytest.raises(McpError, match="cannot be written as JSON"):
            await call(link, "echo", text="half a character: \ud83d")
        assert said(await call(link, "echo", text="fine")) == "fine"


# The streams of the SDK, which serve on Windows


def by_the_sdk(inbox: Recorder, *command: str) -> SdkStreams:
    return SdkStreams(command, {}, None, inbox, redactor=Redactor())


async def test_the_sdks_streams_pass_on_messages_and_standard_error() -> None:
    inbox = Recorder()
    async with open_sdk_link(by_the_sdk(inbox, sys.executable, str(FAULTY_SERVER)), inbox) as link:
        assert said(await call(link, "echo", text="hello")) == "hello"
        processes: dict[str, int] = json.loads(said(await call(link, "family")))
        await call(link, "speak", text="one\ntwo\n")
        await until(lambda: inbox.stderr == ["one", "two"])
    assert alive(processes.values()) == []


async def test_the_sdks_streams_tell_of_a_program_that_does_not_start() -> None:
    inbox = Recorder()
    with pytest.raises(McpConnectionError, match="no-such-program-anywhere"):
        async with open_sdk_link(by_the_sdk(inbox, "no-such-program-anywhere"), inbox):
            pytest.fail("it was opened")
