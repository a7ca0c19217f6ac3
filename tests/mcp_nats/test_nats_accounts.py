"""Accounts, TLS, permissions and payload limits of the NATS server."""

from __future__ import annotations

import asyncio
import logging
import ssl
from pathlib import Path
from typing import Any

import pytest
from mcp_nats.broker import BrokerServer, Certificates
from mcp_nats.helpers import Function, connected, text_of
from pydantic import SecretStr

from yiemagent_nb.core.errors import McpConnectionError
from yiemagent_nb.mcp.nats.service import serve_on_nats
from yiemagent_nb.mcp.server import McpServer

pytestmark = pytest.mark.requirement("Y SD-004")

PASSWORD = "c0rrect-horse"  # noqa: S105 - of a server that lives as long as a test
USERS: dict[str, Any] = {"authorization": {"users": [{"user": "ann", "password": PASSWORD}]}}


@pytest.mark.parametrize("password", [PASSWORD, SecretStr(PASSWORD)])
async def test_a_user_with_a_password(tmp_path: Path, password: str | SecretStr) -> None:
    account = {"user": "ann", "password": password}
    with BrokerServer(tmp_path, **USERS) as broker:
        async with (
            serve_on_nats(Function(), broker.url, "tools", options=account),
            McpServer.nats(broker.url, "tools", connect_options=account) as server,
        ):
            assert text_of(await server.call_tool("echo", {"text": "a"})) == "a"
            assert PASSWORD not in repr(server)


async def test_an_account_in_the_address_is_not_shown(tmp_path: Path) -> None:
    with BrokerServer(tmp_path, **USERS) as broker:
        address = broker.url.replace("//", f"//ann:{PASSWORD}@")
        async with (
            serve_on_nats(Function(), address, "tools") as service,
            McpServer.nats(address, "tools") as server,
        ):
            assert text_of(await server.call_tool("echo", {"text": "a"})) == "a"
            for shown in (repr(server), server.target, repr(service)):
                assert broker.url in shown
                assert PASSWORD not in shown


async def test_a_token(tmp_path: Path) -> None:
    with BrokerServer(tmp_path, authorization={"token": PASSWORD}) as broker:
        account = {"token": SecretStr(PASSWORD)}
        async with (
            serve_on_nats(Function(), broker.url, "tools", options=account),
            McpServer.nats(broker.url, "tools", connect_options=account) as server,
        ):
            assert text_of(await server.call_tool("echo", {"text": "a"})) == "a"


@pytest.mark.parametrize(
    ("address", "account"),
    [
        ("nats://", {"user": "ann", "password": "wr0ng-horse"}),
        ("nats://", {"token": "wr0ng-horse"}),
        ("nats://", {}),
        ("nats://ann:wr0ng-horse@", {}),
        ("nats://wr0ng-horse@", {}),
    ],
)
async def test_a_wrong_account_is_an_error_at_once_without_the_secret(
    tmp_path: Path, address: str, account: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    with BrokerServer(tmp_path, **USERS) as broker:
        server = McpServer.nats(broker.url.replace("nats://", address), "tools", connect_options=account)
        async with asyncio.timeout(10):
            with pytest.raises(McpConnectionError, match=r"(?i)authorization violation") as caught:
                await server.request("tools/list")
    assert "Check the user, the password" in caught.value.hint
    said = f"{caught.value!r} {caught.value.__cause__!r} {server!r} {caplog.text}"
    assert "wr0ng-horse" not in said
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING and record.name != "asyncio"]


async def test_tls(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)
    with BrokerServer(tmp_path, **certificates.settings) as broker:
        options = {"tls": certificates.context}
        address = broker.url.replace("nats://", "tls://")
        async with (
            serve_on_nats(Function(), address, "tools", options=options),
            McpServer.nats(address, "tools", connect_options=options) as server,
        ):
            assert len(text_of(await server.call_tool("big", {"size": 2_000_000}))) == 2_000_000
        server = McpServer.nats(address, "tools", connect_options={"tls": ssl.create_default_context()})
        async with asyncio.timeout(10):
            with pytest.raises(McpConnectionError, match=r"(?i)certificate") as caught:
                await server.request("tools/list")
        assert "option tls" in caught.value.hint


def permissions(**of_ann: Any) -> dict[str, Any]:
    return {
        "authorization": {
            "users": [
                {"user": "ann", "password": PASSWORD, "permissions": of_ann},
                {"user": "bob", "password": PASSWORD},
            ]
        }
    }


ANN = {"user": "ann", "password": PASSWORD}
BOB = {"user": "bob", "password": PASSWORD}


async def test_a_forbidden_topic_is_an_error_at_once(tmp_path: Path) -> None:
    with BrokerServer(tmp_path, **permissions(publish=["Other.>"])) as broker:
        async with serve_on_nats(Function(), broker.url, "Tools", options=BOB), asyncio.timeout(10):
            server = McpServer.nats(broker.url, "Tools", connect_options=ANN)
            with pytest.raises(McpConnectionError, match="may not use Tools: permissions violation"):
                await server.request("tools/list")
            await server.close()
            async with connected(broker.url, error_cb=_quiet, **ANN) as client:
                server = McpServer.nats(client, "Tools", binding="json-rpc")
                with pytest.raises(McpConnectionError, match="may not use Tools: permissions violation"):
                    await server.request("tools/list")
                await server.close()


async def _quiet(_: Exception) -> None:
    pass


async def test_a_forbidden_inbox_is_an_error_at_once(tmp_path: Path) -> None:
    with BrokerServer(tmp_path, **permissions(subscribe=["Other.>"])) as broker:
        async with serve_on_nats(Function(), broker.url, "tools", options=BOB), asyncio.timeout(10):
            server = McpServer.nats(broker.url, "tools", connect_options=ANN)
            with pytest.raises(McpConnectionError, match=r"may not use _INBOX\."):
                await server.request("tools/list")
            await server.close()


async def test_an_account_needs_no_more_than_the_topic_and_its_inbox(tmp_path: Path) -> None:
    allowed = {"publish": ["tools", "tools.control.>"], "subscribe": ["_INBOX.>", "tools.events"]}
    with BrokerServer(tmp_path, **permissions(**allowed)) as broker:
        function = Function()
        async with (
            serve_on_nats(function, broker.url, "tools", options=BOB),
            McpServer.nats(broker.url, "tools", connect_options=ANN) as server,
        ):
            text = "x" * 3_000_000
            assert text_of(await server.call_tool("echo", {"text": text})) == text
            call = asyncio.ensure_future(server.call_tool("wait"))
            await function.started.wait()
            call.cancel()
            async with asyncio.timeout(10):
                await function.cancelled.wait()


async def test_a_service_that_may_not_listen_does_not_start(tmp_path: Path) -> None:
    allowed = permissions(subscribe=["_INBOX.>", "Tools.control.>"])
    with BrokerServer(tmp_path, **allowed) as broker, pytest.raises(McpConnectionError, match="may not use Tools"):
        await serve_on_nats(Function(), broker.url, "Tools", options=ANN)


@pytest.mark.parametrize("size", [0, 20_000_000])
async def test_a_small_payload_limit(tmp_path: Path, size: int) -> None:
    with BrokerServer(tmp_path, max_payload=65536) as broker:
        async with (
            serve_on_nats(Function(), broker.url, "tools"),
            McpServer.nats(broker.url, "tools") as server,
        ):
            assert len(text_of(await server.call_tool("big", {"size": size}))) == size


async def test_payloads_of_about_the_limit(tmp_path: Path) -> None:
    limit = 4096
    with BrokerServer(tmp_path, max_payload=limit) as broker:
        async with (
            serve_on_nats(Function(), broker.url, "tools"),
            McpServer.nats(broker.url, "tools", "someone") as server,
        ):
            for size in (*range(limit - 600, limit + 40, 16), 2 * limit, 3 * limit):
                text = "x" * size
                assert text_of(await server.call_tool("echo", {"text": text})) == text
            assert server.restarts == 0
