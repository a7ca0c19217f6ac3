"""Servers over HTTP: real ones over real sockets, and what is none."""

from __future__ import annotations

import asyncio
import logging
import pickle
import socket
import ssl
import subprocess
import sys
import textwrap
import time
from collections.abc import AsyncGenerator, Generator, Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest
import trustme
from mcp_client.http_server import GOOD, HttpServer, free_port, running
from mcp_client.waiting import next_state
from pydantic import SecretStr

from yiemagent_nb.core.errors import InvalidParametersError, McpConnectionError, McpError, McpTimeoutError
from yiemagent_nb.mcp.link import Progress
from yiemagent_nb.mcp.links.http import HttpTransport
from yiemagent_nb.mcp.log_writer import LogWriter
from yiemagent_nb.mcp.protocol_log import ProtocolLog
from yiemagent_nb.mcp.server import McpServer, ServerEvent

pytestmark = pytest.mark.requirement("Y FR-004", "Y SP-009")

KEY = "k3y-of-a-person-0123456789"

WAYS = {
    "2026": (),
    "handshake": ("--handshake",),
    "handshake, JSON": ("--handshake", "--json"),
    "handshake, stateless": ("--handshake", "--stateless"),
    "older": ("--sse",),
}


def connect(server: HttpServer, *ways: str, **options: Any) -> McpServer:
    """The server as a person holds it, in the way in which it speaks."""
    if "--sse" in ways:
        return McpServer.sse(server.url("/sse"), **options)
    return McpServer.http(server.url(), **options)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("http")


@pytest.fixture(scope="module")
def served(folder: Path) -> Generator[HttpServer]:
    with running(folder) as server:
        yield server


@pytest.fixture(scope="module", params=WAYS.values(), ids=list(WAYS))
def each_way(request: pytest.FixtureRequest, folder: Path) -> Generator[tuple[HttpServer, tuple[str, ...]]]:
    ways: tuple[str, ...] = request.param
    with running(folder, *ways) as server:
        yield server, ways


@pytest.fixture
async def each(each_way: tuple[HttpServer, tuple[str, ...]]) -> AsyncGenerator[McpServer]:
    server, ways = each_way
    async with connect(server, *ways) as connected:
        yield connected


async def test_tools_are_listed_and_called(each: McpServer) -> None:
    names = {tool["name"] for tool in await each.list_tools()}
    assert {"add", "headers", "wait"} <= names
    result = await each.call_tool("add", {"a": 2, "b": 3})
    assert result["structuredContent"] == {"result": 5}
    assert each.info.name == "fixture"
    assert each.rubbish == 0


async def test_fifty_calls_at_once_wait_for_none_of_the_others(each: McpServer) -> None:
    began = time.perf_counter()
    results = await asyncio.gather(*(each.call_tool("wait", {"seconds": 1.0}) for _ in range(50)))
    assert all(result["content"][0]["text"] == "done" for result in results)
    assert time.perf_counter() - began < 20  # one after the other they would take 50


async def test_a_cancelled_call_is_cancelled_at_the_server(
    each: McpServer, each_way: tuple[HttpServer, tuple[str, ...]]
) -> None:
    server, ways = each_way
    server.log.write_text("")
    call = asyncio.ensure_future(each.call_tool("wait", {"seconds": 60}))
    assert await server.logged("began")
    call.cancel()
    if "--stateless" not in ways:  # there the server of before 2026 cannot tell which call is meant
        assert await server.logged("cancelled")
    assert (await each.call_tool("add", {"a": 1, "b": 1}))["structuredContent"] == {"result": 2}


async def test_a_call_that_takes_too_long_is_an_error_and_the_others_go_on(each: McpServer) -> None:
    with pytest.raises(McpTimeoutError):
        await each.call_tool("wait", {"seconds": 60}, timeout=0.2)
    assert (await each.call_tool("add", {"a": 1, "b": 1}))["structuredContent"] == {"result": 2}


async def test_a_server_that_is_killed_in_a_call_ends_it_and_works_when_it_is_back(folder: Path) -> None:
    for ways in WAYS.values():
        with running(folder, *ways) as server:
            async with connect(server, *ways) as connected:
                call = asyncio.ensure_future(connected.call_tool("wait", {"seconds": 60}))
                assert await server.logged("began")
                server.kill()
                with pytest.raises(McpConnectionError, match=r"broke off before it had answered|ended"):
                    await asyncio.wait_for(call, 10)
                server.start()
                assert await answers_again(connected), ways


async def answers_again(server: McpServer, seconds: float = 10) -> bool:
    """Whether calls are answered, once those that meet the lost connection have failed."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            result = await server.call_tool("add", {"a": 1, "b": 1})
        except McpConnectionError:
            continue
        return result["structuredContent"] == {"result": 2}
    return False


async def test_a_session_that_the_server_forgot_ends_the_link_and_is_known_as_not_delivered(folder: Path) -> None:
    with running(folder, "--handshake", "--json") as server:
        async with HttpTransport(server.url()).open(Nobody()) as link, httpx2.AsyncClient() as other:
            sent = (await link.request("tools/call", {"name": "headers", "arguments": {}}))["structuredContent"]
            session = {"mcp-session-id": sent["mcp-session-id"]}
            (await other.delete(server.url(), headers=session)).raise_for_status()
            for _ in range(2):  # the one that meets it, and one that comes before the owner has heard of it
                with pytest.raises(McpConnectionError) as caught:
                    await link.request("tools/call", {"name": "add", "arguments": {"a": 1, "b": 1}})
                assert caught.value.data == {"delivered": False}
            assert await asyncio.wait_for(link.wait_closed(), 5) == "it does not know the session any more"


class Nobody:
    """An inbox that nobody reads."""

    log = LogWriter(ProtocolLog())

    def notified(self, method: str, params: Mapping[str, Any]) -> None: ...

    async def requested(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        raise McpError(f"nobody answers {method} of {len(params)} params")

    def answers(self, method: str) -> bool:
        return not method

    def wrote_to_stderr(self, line: str) -> None: ...

    def wrote_rubbish(self, line: str) -> None: ...


async def test_a_session_that_the_server_forgot_is_made_anew(folder: Path) -> None:
    with running(folder, "--handshake", "--json") as server:
        async with McpServer.http(server.url()) as connected, httpx2.AsyncClient() as other:
            sent = (await connected.call_tool("headers"))["structuredContent"]
            session = {"mcp-session-id": sent["mcp-session-id"]}
            (await other.delete(server.url(), headers=session)).raise_for_status()
            assert await answers_again(connected)
            again = (await connected.call_tool("headers"))["structuredContent"]
            assert again["mcp-session-id"] != sent["mcp-session-id"]


async def test_a_server_that_goes_away_while_nobody_asks_is_noticed_by_its_stream(folder: Path) -> None:
    with running(folder, "--handshake") as server:
        async with McpServer.http(server.url()) as connected:
            await connected.list_tools()  # by then the stream of its notifications is open
            with next_state(connected, "backoff") as lost:
                server.kill()
                await lost.over()
            assert connected.error is not None
            assert "the connection was refused" in connected.error.message


async def test_progress_comes_before_the_result(each: McpServer) -> None:
    seen: list[Progress] = []
    await each.call_tool("count", {"steps": 3}, on_progress=seen.append)
    kept = [(step.progress, step.total, step.message) for step in seen]
    assert kept in (
        [(1.0, 3.0, "step 1"), (2.0, 3.0, "step 2"), (3.0, 3.0, "step 3")],
        [],  # an answer in one piece of JSON has no place for it
    )


async def test_a_result_of_twenty_megabytes_arrives(served: HttpServer, folder: Path) -> None:
    async with McpServer.http(served.url()) as server:
        result = await server.call_tool("text", {"size": 20_000_000})
        assert len(result["content"][0]["text"]) == 20_000_000
    with running(folder, "--handshake") as older:
        async with McpServer.http(older.url()) as server:
            result = await server.call_tool("text", {"size": 20_000_000})
            assert len(result["content"][0]["text"]) == 20_000_000


async def test_the_older_transport_tells_that_a_message_is_too_large_and_goes_on(folder: Path) -> None:
    with running(folder, "--sse") as server:
        async with McpServer.sse(server.url("/sse")) as connected:
            with pytest.raises(McpError, match="it sent a message that is too large"):
                await connected.call_tool("text", {"size": 2_000_000})
            assert await answers_again(connected)
            result = await connected.call_tool("text", {"size": 500_000})
            assert len(result["content"][0]["text"]) == 500_000


async def test_an_answer_may_be_slow_to_begin(folder: Path) -> None:
    with running(folder, "--slow", "0.7") as server:
        patient = httpx2.AsyncClient(timeout=httpx2.Timeout(0.3))
        async with patient, McpServer.http(server.url(), client=patient) as connected:
            assert (await connected.call_tool("add", {"a": 1, "b": 1}))["structuredContent"] == {"result": 2}
            with pytest.raises(McpTimeoutError):
                await connected.call_tool("add", {"a": 1, "b": 1}, timeout=0.2)


# What is sent


async def test_headers_and_a_token_are_sent_with_each_request(served: HttpServer) -> None:
    headers = {"X-Team": "blue", "X-Key": SecretStr(KEY)}
    async with McpServer.http(served.url(), headers=headers, auth=SecretStr(GOOD)) as server:
        sent = (await server.call_tool("headers"))["structuredContent"]
    assert (sent["x-team"], sent["x-key"], sent["authorization"]) == ("blue", KEY, f"Bearer {GOOD}")


async def test_an_auth_object_of_httpx2_signs_each_request(served: HttpServer) -> None:
    async with McpServer.http(served.url(), auth=httpx2.BasicAuth("me", "pass")) as server:
        sent = (await server.call_tool("headers"))["structuredContent"]
    assert sent["authorization"] == "Basic bWU6cGFzcw=="


async def test_a_client_of_the_person_sends_with_all_it_has_and_stays_open(served: HttpServer) -> None:
    seen: list[str] = []

    async def see(request: httpx2.Request) -> None:
        seen.append(request.method)

    async with httpx2.AsyncClient(headers={"X-Mine": "yes"}, event_hooks={"request": [see]}) as client:
        async with McpServer.http(served.url(), client=client, headers={"X-Theirs": "too"}) as server:
            sent = (await server.call_tool("headers"))["structuredContent"]
        assert (sent["x-mine"], sent["x-theirs"]) == ("yes", "too")
        assert "POST" in seen
        assert not client.is_closed
        assert (await client.get(served.url("/json"))).json() == {"status": "ok"}


# What is no server


async def failure(url: str, *, sse: bool = False, **options: Any) -> str:
    """Why a server cannot be used, as a person reads it."""
    server = McpServer.sse(url, **options) if sse else McpServer.http(url, **options)
    with pytest.raises(McpConnectionError) as caught:
        await asyncio.wait_for(server.open(), 20)
    assert server.state == "failed"
    await server.close()
    return str(caught.value)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/html", "is a web page ('My wiki'), no MCP server. Check the address"),
        ("/json", 'answers with something that is no MCP: {"status":"ok"}'),
        ("/empty", "answers with nothing"),
        ("/broken", "sent an answer that is no message of MCP"),
        ("/nowhere", "answered with HTTP 404: Not Found. Check the address, its path too."),
        ("/get", "answered with HTTP 404"),
        ("/down", "answered with HTTP 503: the database is away. See the server's log."),
        ("/forbidden", "answered with HTTP 403: not for you. Give auth= with a token that may do this."),
        ("/unauthorized", "asks who you are (HTTP 401: nothing is no token). Give auth=OAuth()"),
        ("/elsewhere", "redirects to http://example.org/mcp. If that is the server you mean, give its address."),
        ("/loses", "If that is the server you mean, give its address."),
    ],
)
async def test_what_is_no_server_is_told_in_one_sentence(served: HttpServer, path: str, words: str) -> None:
    said = await failure(served.url(path))
    assert words in said
    assert said.startswith(served.url(path))
    assert "\n" not in said


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/html", "is a web page ('My wiki'), no MCP server"),
        ("/unauthorized", "asks who you are"),
        ("/elsewhere", "redirects to http://example.org/mcp"),
        ("/nowhere", "HTTP 404"),
    ],
)
async def test_it_is_told_for_the_older_transport_too(served: HttpServer, path: str, words: str) -> None:
    assert words in await failure(served.url(path), sse=True)


async def test_a_redirect_that_stays_at_the_server_and_keeps_the_message_is_followed(served: HttpServer) -> None:
    async with McpServer.http(served.url("/moved")) as server:
        assert (await server.call_tool("add", {"a": 1, "b": 1}))["structuredContent"] == {"result": 2}


async def test_a_path_is_proposed_where_there_is_none() -> None:
    silent = socket.create_server(("127.0.0.1", 0))
    port = silent.getsockname()[1]

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, sock=silent):
        said = await failure(f"http://127.0.0.1:{port}")
    assert f"Most servers answer at /mcp: try http://127.0.0.1:{port}/mcp." in said


async def test_a_port_on_which_nothing_listens_is_told_at_once() -> None:
    began = time.perf_counter()
    said = await failure(f"http://127.0.0.1:{free_port()}/mcp")
    assert "the connection was refused. Nothing listens there: start the server" in said
    assert time.perf_counter() - began < 5


async def test_a_host_that_does_not_exist_is_told() -> None:
    assert "no host of that name is known" in await failure("http://no-such-host.invalid/mcp")


async def test_a_proxy_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("no_proxy", "NO_PROXY", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    proxy = f"http://127.0.0.1:{free_port()}"
    monkeypatch.setenv("http_proxy", proxy.replace("//", "//me:secret@"))
    said = await failure("http://example.org/mcp")
    assert f"No connection to http://example.org/mcp through the proxy {proxy}, which http_proxy names: the" in said
    assert "or add the host to NO_PROXY" in said
    assert "secret" not in said


async def test_what_an_auth_object_raises_is_told(served: HttpServer) -> None:
    class Broken(httpx2.Auth):
        def auth_flow(self, request: httpx2.Request) -> Generator[httpx2.Request, httpx2.Response]:
            raise ValueError(f"no key for {request.method}")
            yield request

    assert "no key for POST" in await failure(served.url(), auth=Broken())


async def test_a_server_that_does_not_answer_is_given_up_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        said = await failure(f"http://127.0.0.1:{silent.getsockname()[1]}/mcp", connect_timeout=0.5)
    assert "did not get ready within 0.5 seconds" in said


async def test_tls_is_asked_for_its_certificate(folder: Path) -> None:
    authority = trustme.CA()
    certificate = folder / "certificate.pem"
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(str(certificate))
    with running(folder, "--certificate", str(certificate)) as server:
        said = await failure(server.url())
        assert "its certificate comes from an authority that is not known here" in said
        assert "client=httpx2.AsyncClient(verify=" in said
        trusting = ssl.create_default_context()
        trusting.load_verify_locations(cadata=authority.cert_pem.bytes().decode())
        async with (
            httpx2.AsyncClient(verify=trusting) as client,
            McpServer.http(server.url(), client=client) as connected,
        ):
            assert (await connected.call_tool("add", {"a": 1, "b": 1}))["structuredContent"] == {"result": 2}


async def test_http_and_https_are_told_apart(served: HttpServer) -> None:
    said = await failure(served.url().replace("http:", "https:"))
    assert "what listens there speaks no TLS. Use http://" in said


# What is never shown


async def test_keys_are_in_nothing_that_is_shown(served: HttpServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    address = served.url("/unauthorized").replace("//", f"//me:{KEY}1@") + f"?api_key={KEY}2&page=3"
    events: list[ServerEvent] = []
    server = McpServer.http(address, headers={"X-Key": SecretStr(f"{KEY}3")}, auth=f"{KEY}4")
    server.subscribe(events.append)
    envelope = await server("tools/list")
    shown = f"{envelope} {server!r} {server.target} {server.name} {server.error} {events} {caplog.text}"
    assert KEY not in shown
    assert server.target == f"{served.url('/unauthorized')}?api_key=[key]&page=3"
    assert "does not accept the token (HTTP 401: Bearer [key] is no token)" in envelope["error"]["message"]
    with pytest.raises(InvalidParametersError, match="cannot be pickled"):
        pickle.dumps(HttpTransport(address))
    await server.close()


async def test_keys_that_a_server_repeats_in_errors_are_masked_and_those_in_results_are_not(
    each_way: tuple[HttpServer, tuple[str, ...]],
) -> None:
    server, ways = each_way
    async with connect(server, *ways, auth=KEY) as connected:
        with pytest.raises(McpError) as caught:
            await connected.call_tool("refuse")
        assert caught.value.message == "Bearer [key] is no token"
        assert caught.value.data == {"sent": "Bearer [key]"}
        failed = await connected.call_tool("fail")
        assert failed["isError"]
        assert "[key]" in failed["content"][0]["text"]
        assert KEY not in str(failed)
        assert KEY in str(await connected.call_tool("headers"))


@pytest.mark.parametrize(
    ("address", "name", "target"),
    [
        ("https://mcp.linear.app/mcp", "mcp.linear.app", None),
        ("https://mcp.linear.app/sse", "mcp.linear.app", None),
        ("http://localhost:8000/mcp", "localhost:8000", None),
        ("http://127.0.0.1:3001/", "127.0.0.1:3001", None),
        ("http://[::1]:3001/mcp", "[::1]:3001", None),
        ("https://Example.ORG/api/Tools/mcp/", "example.org/api/Tools", "https://Example.ORG/api/Tools/mcp/"),
        ("https://gitmcp.io/owner/repo", "gitmcp.io/owner/repo", None),
        ("https://me:secret@example.org/mcp", "example.org", "https://example.org/mcp"),
        (
            "https://mcp.zapier.com/api/mcp/s/NjYxZjAtYjI4ZC00OWE2LTg3/mcp",
            "mcp.zapier.com/api/mcp/s",
            "https://mcp.zapier.com/api/mcp/s/[key]/mcp",
        ),
        ("https://example.org/mcp?token=abc&x=1", "example.org", "https://example.org/mcp?token=[key]&x=1"),
        ("https://example.org/mcp?user=NjYxZjAtYjI4ZC00OWE2LTg3", "example.org", "https://example.org/mcp?user=[key]"),
    ],
)
def test_a_server_is_named_after_its_address_and_shown_without_keys(
    address: str, name: str, target: str | None
) -> None:
    transport = HttpTransport(address)
    assert (transport.default_name, transport.target) == (name, target or address)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"url": "mcp.example.org"}, "'mcp.example.org' is no web address. Give it as https://host/mcp."),
        ({"url": "ftp://example.org"}, "is no web address"),
        ({"url": "http://example.org:port/"}, "is no web address"),
        ({"url": 3}, "is no web address"),
        ({"auth": "two words"}, "auth is empty, or holds a space"),
        ({"auth": 3}, "auth must be a token, an OAuth or an httpx2.Auth, not int"),
        ({"auth": "t", "headers": {"authorization": "x"}}, "were both given"),
        ({"headers": {"X-A": "a\nb"}}, "The header 'X-A' holds a line break"),
        ({"headers": {"X-A": 3}}, "The header 'X-A' must be text or a SecretStr, not int"),
    ],
)
def test_a_wrong_argument_is_named(arguments: dict[str, Any], words: str) -> None:
    make: Any = HttpTransport
    with pytest.raises(InvalidParametersError) as caught:
        make(**{"url": "https://example.org/mcp", **arguments})
    assert words in str(caught.value)


QUIET = """
import asyncio, sys
from yiemagent_nb.mcp.server import McpServer

async def main():
    for url in sys.argv[1:]:
        for server in (McpServer.http(url), McpServer.sse(url)):
            envelope = await server("tools/list")
            assert "error" in envelope, envelope
            await server.close()
    rubbish = McpServer.http(sys.argv[1])
    await rubbish("tools/list")
    print("rubbish", rubbish.rubbish > 0)

asyncio.run(main())
"""


def test_nothing_is_printed_where_no_logging_is_set_up(served: HttpServer) -> None:
    pages = ("/broken", "/html", "/elsewhere", "/unauthorized", "/down")
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(QUIET), *map(served.url, pages)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (run.stdout, run.stderr) == ("rubbish True\n", "")
