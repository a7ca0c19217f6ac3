"""Logins: in a browser, from machine to machine, and where they are kept."""

from __future__ import annotations

import asyncio
import json
import socket
import stat
import time
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import nbformat
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from mcp_client.login_server import CLIENT, SECRET, LoginServer, logging_in
from nbclient import NotebookClient
from pydantic import SecretStr

from yiemagent_nb.core.errors import InvalidParametersError, McpConnectionError, McpError
from yiemagent_nb.mcp.oauth import FileTokenStorage, MemoryTokenStorage, OAuth
from yiemagent_nb.mcp.server import McpServer

pytestmark = pytest.mark.requirement("Y FR-004", "Y NFR-102")


class Browser:
    """A person's browser: follows the link to wherever it leads."""

    def __init__(self) -> None:
        self.addresses: list[str] = []
        self.pages: list[httpx2.Response] = []

    def __call__(self, address: str) -> None:
        self.addresses.append(address)
        self.pages.append(httpx2.get(address, follow_redirects=True))


@pytest.fixture
async def login() -> AsyncGenerator[LoginServer]:
    async with logging_in() as server:
        yield server


@pytest.fixture
def browser() -> Browser:
    return Browser()


def callback_of(client: dict[str, Any]) -> str:
    """Where the browser comes back to, as a client registered it."""
    return str(client["redirect_uris"][0])


async def add(login: LoginServer, auth: OAuth) -> Any:
    async with McpServer.http(login.url, auth=auth) as server:
        return (await server.call_tool("add", {"a": 1, "b": 2}))["structuredContent"]["result"]


async def test_a_person_logs_in_once_and_is_known_from_then_on(
    login: LoginServer, browser: Browser, capsys: pytest.CaptureFixture[str]
) -> None:
    auth = OAuth(open_browser=browser, client_name="My notebook")
    assert await add(login, auth) == 3
    assert await add(login, auth) == 3
    assert len(browser.addresses) == 1
    assert capsys.readouterr().out == (
        f"Log in for {urlsplit(login.url).netloc} at {urlsplit(login.issuer).netloc}: {browser.addresses[0]}\n"
    )
    assert browser.pages[0].status_code == 200
    assert "You are logged in. You can close this page" in browser.pages[0].text
    assert login.registered[0]["client_name"] == "My notebook"
    assert urlsplit(callback_of(login.registered[0])).hostname == "127.0.0.1"
    assert login.asked[0]["code_challenge_method"] == "S256"


async def test_only_what_is_wanted_is_asked_for(login: LoginServer, browser: Browser) -> None:
    assert await add(login, OAuth(open_browser=browser, scopes=["read"])) == 3
    assert await add(login, OAuth(open_browser=browser)) == 3
    assert [asked["scope"] for asked in login.asked] == ["read", "read write delete"]


async def test_a_server_that_needs_more_later_is_given_it_beside_the_rest(login: LoginServer, browser: Browser) -> None:
    auth = OAuth(open_browser=browser, scopes="read")
    async with McpServer.http(login.url, auth=auth) as server:
        login.needs = "write"
        assert (await server.call_tool("add", {"a": 1, "b": 2}))["structuredContent"] == {"result": 3}
    assert set(login.asked[-1]["scope"].split()) == {"read", "write"}


async def test_a_token_that_has_expired_is_renewed_without_the_person(login: LoginServer, browser: Browser) -> None:
    login.lifetime = -10
    auth = OAuth(open_browser=browser)
    async with McpServer.http(login.url, auth=auth) as server:
        await server.list_tools()
    assert len(browser.addresses) == 1
    assert login.token_requests[-1]["grant_type"] == "refresh_token"


async def test_calls_at_once_do_not_wait_for_each_other(login: LoginServer, browser: Browser) -> None:
    async with McpServer.http(login.url, auth=OAuth(open_browser=browser)) as server:
        results = await asyncio.wait_for(asyncio.gather(server.call_tool("meet"), server.call_tool("meet")), 10)
    assert [result["content"][0]["text"] for result in results] == ["met", "met"]


async def test_calls_at_once_that_find_the_login_gone_ask_for_one(login: LoginServer, browser: Browser) -> None:
    async with McpServer.http(login.url, auth=OAuth(open_browser=browser)) as server:
        login.tokens.clear()
        calls = (server.call_tool("add", {"a": number, "b": 1}) for number in range(5))
        results = await asyncio.gather(*calls)
    assert [result["structuredContent"]["result"] for result in results] == [1, 2, 3, 4, 5]
    assert len(browser.addresses) == 2


async def test_a_login_lasts_longer_than_the_kernel_where_it_is_kept_in_a_file(
    login: LoginServer, browser: Browser, tmp_path: Path
) -> None:
    path = tmp_path / "kept" / "logins.json"
    assert await add(login, OAuth(open_browser=browser, storage=FileTokenStorage(path))) == 3
    assert await add(login, OAuth(open_browser=browser, storage=FileTokenStorage(path))) == 3
    assert len(browser.addresses) == 1
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(json.loads(path.read_text())) == [login.url]
    assert [file.name for file in path.parent.iterdir()] == ["logins.json"]


async def test_the_browser_comes_back_to_the_port_that_was_registered(
    login: LoginServer, browser: Browser, tmp_path: Path
) -> None:
    storage = FileTokenStorage(tmp_path / "logins.json")
    await add(login, OAuth(open_browser=browser, storage=storage))
    login.tokens.clear()
    login.refresh_tokens.clear()
    await add(login, OAuth(open_browser=browser, storage=storage))
    assert len(login.registered) == 1
    port = urlsplit(callback_of(login.registered[0])).port
    login.tokens.clear()
    login.refresh_tokens.clear()
    with socket.create_server(("127.0.0.1", port or 0)):  # another program took it
        await add(login, OAuth(open_browser=browser, storage=storage))
    assert len(login.registered) == 2
    assert len(browser.addresses) == 3


async def test_a_login_waits_for_the_person_and_not_for_whoever_else_comes(login: LoginServer) -> None:
    shown: asyncio.Queue[str] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def show(address: str) -> None:
        loop.call_soon_threadsafe(shown.put_nowait, address)

    server = McpServer.http(login.url, auth=OAuth(open_browser=show))
    opening = asyncio.ensure_future(server.open())
    address = await asyncio.wait_for(shown.get(), 10)
    callback = parse_qs(urlsplit(address).query)["redirect_uri"][0]
    async with httpx2.AsyncClient() as other:
        forged = await other.get(callback, params={"code": "c", "state": "guessed"})
        stray = await other.get(callback.replace("/callback", "/favicon.ico"))
        assert (forged.status_code, stray.status_code) == (400, 404)
        assert "belongs to no login" in forged.text
        assert not opening.done()
        page = await other.get(address, follow_redirects=True)
    assert page.headers["content-security-policy"] == "default-src 'none'"
    await asyncio.wait_for(opening, 10)
    await server.close()


async def refusal(login: LoginServer, auth: OAuth, **options: Any) -> str:
    server = McpServer.http(login.url, auth=auth, **options)
    with pytest.raises(McpConnectionError) as caught:
        await asyncio.wait_for(server.open(), 20)
    await server.close()
    return str(caught.value)


async def test_a_login_that_is_refused_is_told_once_and_asked_for_once(login: LoginServer, browser: Browser) -> None:
    login.refuses = "access_denied"
    said = await refusal(login, OAuth(open_browser=browser))
    assert f"The login at {urlsplit(login.url).netloc} was refused: access_denied she said <no>." in said
    assert len(browser.addresses) == 1
    assert "The login was refused. The notebook says why" in browser.pages[0].text


async def test_a_person_who_does_not_come_is_not_waited_for_without_end(login: LoginServer) -> None:
    said = await refusal(login, OAuth(open_browser=None, timeout=0.3))
    assert f"Nobody logged in at {urlsplit(login.url).netloc} within 0.3 seconds." in said


async def test_a_login_that_is_given_up_leaves_no_port_open(login: LoginServer) -> None:
    shown = asyncio.Event()
    loop = asyncio.get_running_loop()

    def show(_address: str) -> None:
        loop.call_soon_threadsafe(shown.set)

    server = McpServer.http(login.url, auth=OAuth(open_browser=show))
    opening = asyncio.ensure_future(server.open())
    await asyncio.wait_for(shown.wait(), 10)
    await server.close()
    await asyncio.wait({opening})
    assert isinstance(opening.exception(), McpConnectionError)
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", urlsplit(callback_of(login.registered[0])).port)


async def test_a_login_may_take_longer_than_a_connection(login: LoginServer) -> None:
    def dawdle(address: str) -> None:
        time.sleep(0.7)
        httpx2.get(address, follow_redirects=True)

    async with McpServer.http(login.url, auth=OAuth(open_browser=dawdle), connect_timeout=0.5) as server:
        assert (await server.call_tool("add", {"a": 1, "b": 2}))["structuredContent"] == {"result": 3}


async def test_a_port_that_is_taken_is_named(login: LoginServer, browser: Browser) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = await refusal(login, OAuth(open_browser=browser, redirect_port=port))
    assert f"The port {port}, to which the browser comes back after the login, is taken." in said


async def test_a_client_that_was_registered_by_hand_is_used(login: LoginServer, browser: Browser) -> None:
    login.registered.append({"redirect_uris": ["http://127.0.0.1:48123/callback"]})
    auth = OAuth(open_browser=browser, client_id="by-hand", redirect_port=48123, issuer=login.issuer)
    assert await add(login, auth) == 3
    assert len(login.registered) == 1
    assert login.asked[0]["client_id"] == "by-hand"


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post"])
async def test_a_machine_shows_its_secret(login: LoginServer, method: Any) -> None:
    auth = OAuth.client_credentials(CLIENT, SecretStr(SECRET), issuer=login.issuer, scopes="read", method=method)
    assert await add(login, auth) == 3
    assert login.token_requests[0]["scope"] == "read"
    assert ("client_secret" in login.token_requests[0]) == (method == "client_secret_post")


async def test_a_machine_signs_with_its_key(login: LoginServer) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    login.key = (
        key.public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        .decode()
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    assert await add(login, OAuth.private_key_jwt(CLIENT, private, issuer=login.issuer, algorithm="ES256")) == 3


async def test_a_secret_never_goes_to_another_authorization_server(login: LoginServer) -> None:
    auth = OAuth.client_credentials(CLIENT, SECRET, issuer="https://auth.example.org")
    said = await refusal(login, auth)
    assert "Authorization server metadata issuer mismatch" in said
    assert login.token_requests == []


async def test_a_wrong_secret_is_told_without_it(login: LoginServer) -> None:
    wrong = "wrong-secret-0123456789"
    said = await refusal(login, OAuth.client_credentials(CLIENT, wrong, issuer=login.issuer))
    assert "that proves nothing" in said
    assert wrong not in said


async def test_tokens_are_in_nothing_that_is_shown(
    login: LoginServer, browser: Browser, caplog: pytest.LogCaptureFixture
) -> None:
    auth = OAuth(open_browser=browser)
    async with McpServer.http(login.url, auth=auth) as server:
        token = next(iter(login.tokens))
        login.tokens.clear()
        login.refuses = "access_denied"
        with pytest.raises(McpError) as caught:
            await server.call_tool("add", {"a": 1, "b": 2})
        shown = f"{caught.value} {auth!r} {server!r} {caplog.text}"
    assert token not in shown
    assert auth.redacted(f"Bearer {token}") == "Bearer [key]"


# Where logins are kept


def test_a_file_that_is_something_else_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("my notes")
    with pytest.raises(InvalidParametersError, match="holds no logins, and is left as it is"):
        FileTokenStorage(path)
    assert path.read_text() == "my notes"


def test_a_file_that_others_could_read_is_closed_to_them(tmp_path: Path) -> None:
    path = tmp_path / "logins.json"
    path.write_text("{}")
    path.chmod(0o644)
    FileTokenStorage(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_logins_at_different_servers_stand_beside_each_other(tmp_path: Path) -> None:
    path = tmp_path / "logins.json"
    for storage in (MemoryTokenStorage(), FileTokenStorage(path)):
        storage.save("https://a.example/mcp", {"tokens": {"access_token": "a"}})
        storage.save("https://b.example/mcp", {"tokens": {"access_token": "b"}})
        assert storage.load("https://a.example/mcp") == {"tokens": {"access_token": "a"}}
        assert storage.load("https://c.example/mcp") is None
    assert "access_token" not in repr(FileTokenStorage(path))


def test_a_secret_without_its_client_is_refused() -> None:
    with pytest.raises(InvalidParametersError, match="client_secret was given without client_id"):
        OAuth(client_secret=SecretStr("s"))


def test_in_a_notebook_the_link_can_be_clicked_and_holds_no_markup_of_the_server() -> None:
    address = 'https://auth.example/login?a=1&b="><img src=x onerror=alert(1)>'
    source = f"from yiemagent_nb.mcp.browser_login import show_link\nshow_link('Log in', {address!r})"
    forms: Any = nbformat.v4
    notebook = forms.new_notebook(cells=[forms.new_code_cell(source)])
    NotebookClient(notebook, timeout=60, kernel_name="python3").execute()
    (output,) = notebook.cells[0].outputs
    assert output["data"]["text/plain"] == f"Log in: {address}"
    assert output["data"]["text/html"] == (
        '<a href="https://auth.example/login?a=1&amp;b=&quot;&gt;&lt;img src=x onerror=alert(1)&gt;"'
        ' target="_blank" rel="noopener noreferrer">Log in</a>'
    )
