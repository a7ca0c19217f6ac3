"""Links over the SDK: what servers say wrongly, what is said of it, and what is not sent."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import subprocess
import sys
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from mcp_client.watching import FAULTY_SERVER, Recorder, call, faulty, said, until

from yiemagent_nb.core.errors import McpError
from yiemagent_nb.mcp.link import Link, Progress
from yiemagent_nb.mcp.links.callable import read_envelope
from yiemagent_nb.mcp.links.server_text import ServerText
from yiemagent_nb.mcp.server import McpServer

pytestmark = pytest.mark.requirement("Y SD-004")

TERMINAL = "\x1b[31mred\x1b[0m\x07\x1b]0;title\x07 \x9b2J\u202egnp.exe\x1b"
SHOWN = "red\\x07 \\u202egnp.exe\\x1b"


@pytest.fixture
def inbox() -> Recorder:
    return Recorder()


@pytest.fixture
async def link(inbox: Recorder) -> AsyncGenerator[Link]:
    opened: asyncio.Future[Link] = asyncio.get_running_loop().create_future()
    over = asyncio.Event()

    async def own() -> None:  # the SDK wants a link to be left by the task that entered it
        async with faulty().open(inbox) as link:
            opened.set_result(link)
            await over.wait()

    owner = asyncio.ensure_future(own())
    yield await opened
    over.set()
    await owner


def line(method: str, params: object) -> str:
    """A notification as a server writes it, in hexadecimal digits."""
    return (json.dumps({"jsonrpc": "2.0", "method": method, "params": params}) + "\n").encode().hex()


# Notifications


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("notifications/message", {"level": "nonsense", "data": "hello"}),
        ("notifications/message", {"words": ["no", "level"]}),
        ("notifications/tools/list_changed", {"_meta": "no object"}),
        ("notifications/prompts/list_changed", {"_meta": 1}),
        ("notifications/resources/list_changed", {"_meta": []}),
    ],
)
async def test_a_notification_is_heard_whatever_its_form(
    link: Link, inbox: Recorder, method: str, params: dict[str, Any]
) -> None:
    await call(link, "raw", hex=line(method, params))
    await until(lambda: inbox.notifications)
    assert inbox.notifications == [(method, params)]
    assert inbox.rubbish == []


@pytest.mark.parametrize(
    ("method", "params", "words"),
    [
        ("notifications/progress", {"progressToken": None, "progress": 1}, "params.progressToken"),
        ("notifications/progress", {"progressToken": 1, "progress": "much"}, "params.progress: "),
        ("notifications/resources/updated", {}, "params.uri: Field required"),
    ],
)
async def test_a_notification_that_nobody_can_read_is_rubbish(
    link: Link, inbox: Recorder, method: str, params: dict[str, Any], words: str
) -> None:
    await call(link, "raw", hex=line(method, params))
    await until(lambda: inbox.rubbish)
    assert inbox.notifications == []
    assert inbox.rubbish[0].startswith(f"{method} has not the form of MCP: {words}")


PROGRAM = """
import asyncio, logging, sys
from yiemagent_nb.mcp.server import McpServer

async def main():
    server = McpServer.stdio(sys.executable, sys.argv[1])
    await server.call_tool("raw", {"hex": sys.argv[2] * 200})
    while server.rubbish < 200:
        await asyncio.sleep(0.01)
    await server.close()
    print(server.rubbish)

%s
asyncio.run(main())
logging.getLogger("client").warning("what others write")
"""


def run(setup: str) -> subprocess.CompletedProcess[str]:
    """Run a program whose server sends 200 notifications that nobody can read."""
    wrong = line("notifications/progress", {"progressToken": None, "progress": "secret"})
    return subprocess.run(
        [sys.executable, "-c", PROGRAM % setup, str(FAULTY_SERVER), wrong],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )


def test_nothing_of_malformed_notifications_is_printed_and_the_log_of_others_still_is() -> None:
    process = run("")
    assert process.stdout == "200\n"
    assert process.stderr == "what others write\n"


def test_the_logging_that_a_person_set_up_stays_as_it_is() -> None:
    process = run('logging.basicConfig(format="%(name)s says %(message)s")')
    assert process.stdout == "200\n"
    assert process.stderr == "client says what others write\n"


async def test_an_error_that_the_sdk_logs_is_rubbish_and_reaches_a_persons_handlers(
    link: Link, inbox: Recorder, caplog: pytest.LogCaptureFixture
) -> None:
    async def requested(method: str, params: object) -> dict[str, Any]:
        raise RuntimeError(f"a fault of {method} {params}")

    inbox.requested = requested
    asks = (json.dumps({"jsonrpc": "2.0", "id": "7", "method": "roots/list"}) + "\n").encode().hex()
    await call(link, "raw", hex=asks)
    await until(lambda: inbox.rubbish)
    assert "a fault of roots/list" in inbox.rubbish[0]
    assert "a fault of roots/list" in caplog.text


# Progress


async def test_a_callback_that_raises_is_told_once_and_costs_nothing_else(
    link: Link, inbox: Recorder, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[Progress] = []

    def fail(progress: Progress) -> None:
        seen.append(progress)
        raise ValueError("no place for a bar")

    params = {"name": "report", "arguments": {"steps": 30, "text": "going on"}}
    assert said(await link.request("tools/call", params, on_progress=fail)) == "done"
    await until(lambda: len(seen) == 30)
    assert [(record.name, record.levelno) for record in caplog.records] == [("yiemagent_nb", logging.ERROR)]
    assert "on_progress raised" in caplog.text
    assert "no place for a bar" in caplog.text
    assert inbox.rubbish == []


# What is sent


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        ({"text": math.nan}, "arguments.text is nan"),
        ({"text": "x", "more": [{"a": (1.5, -math.inf)}]}, "arguments.more[0].a[1] is -inf"),
    ],
)
async def test_a_number_that_json_cannot_hold_is_not_sent(link: Link, arguments: dict[str, Any], place: str) -> None:
    with pytest.raises(McpError) as caught:
        await call(link, "echo", **arguments)
    assert place in caught.value.message
    assert caught.value.rpc_code == -32602
    assert "finite" in caught.value.hint


async def test_a_notification_with_such_a_number_is_not_sent_either(link: Link) -> None:
    with pytest.raises(McpError, match=r"reason is nan, which JSON cannot hold"):
        await link.notify("notifications/cancelled", {"requestId": 99, "reason": math.nan})


async def test_numbers_nested_without_end_are_not_sent(link: Link) -> None:
    deep: list[Any] = []
    deep.append(deep)
    with pytest.raises(McpError, match="nested too deeply"):
        await call(link, "echo", text=deep)


# What a server's words do to a terminal


async def test_an_error_of_a_server_comes_without_commands_to_the_terminal(link: Link) -> None:
    with pytest.raises(McpError) as caught:
        await call(link, "refuse", text=TERMINAL)
    assert caught.value.message == SHOWN
    assert caught.value.data == {"words": TERMINAL}


async def test_lines_at_the_standard_error_come_without_them_too(link: Link, inbox: Recorder) -> None:
    await call(link, "speak", text=f"{TERMINAL}\n")
    await until(lambda: inbox.stderr)
    assert inbox.stderr == [SHOWN]


async def test_a_long_error_of_a_server_is_cut(link: Link) -> None:
    with pytest.raises(McpError) as caught:
        await call(link, "refuse", text="long " * 1_000_000)
    assert len(caught.value.message) < 2_010
    assert caught.value.message.endswith("…")
    assert len(str(caught.value.data)) < 20_010


async def test_a_function_that_answers_like_a_server_is_held_to_the_same() -> None:
    def function(_method: str, *_arguments: object) -> dict[str, Any]:
        return {"error": {"code": 1, "message": f"{TERMINAL}\n{'x' * 3_000}", "data": "y" * 30_000}}

    async with McpServer(function, name="f") as server:
        with pytest.raises(McpError) as caught:
            await server.call_tool("t")
    assert SHOWN in caught.value.message
    assert len(caught.value.message) < 2_010
    assert len(str(caught.value.data)) < 20_010


@pytest.mark.parametrize("data", [None, 7, {"a": [1, None, True]}, "words"])
def test_the_data_of_an_error_is_kept_where_it_is_short(data: object) -> None:
    with pytest.raises(McpError) as caught:
        read_envelope({"error": {"code": 5, "message": "no", "data": data}}, "tools/call")
    assert (caught.value.message, caught.value.rpc_code, caught.value.data) == ("no", 5, data)


def test_data_that_is_no_json_is_told_in_short() -> None:
    endless: list[Any] = []
    endless.append(endless)
    assert "[" in str(ServerText().data(endless))


def test_a_key_across_the_place_of_the_cut_is_masked() -> None:
    text = ServerText(lambda words: words.replace("secret", "[key]"))
    assert "sec" not in text.message("x" * 1_997 + "se\x1b[0mcret")


def test_text_of_several_lines_keeps_them() -> None:
    assert ServerText().message("one\r\n\ttwo\n") == "one\n\ttwo\n"
