"""A login in the browser: the link, and the page on this machine that the browser comes back to."""

from __future__ import annotations

import asyncio
import contextlib
import html
import os
import secrets
import sys
import webbrowser
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from mcp.shared.auth import AuthorizationCodeResult

from yiemagent_nb.core.errors import McpConnectionError
from yiemagent_nb.core.reading.server_errors import quote

__all__ = ["CALLBACK_HOST", "CALLBACK_PATH", "BrowserLogin", "open_browser"]

CALLBACK_HOST: Final = "127.0.0.1"
CALLBACK_PATH: Final = "/callback"
MAX_REQUEST_BYTES = 65_536
REQUEST_SECONDS = 10.0


class BrowserLogin:
    """Logins by a person at one server, one after the other: shows a link, and waits for the browser to come back.

    Args:
        server: The server's address.
        port: The port of this machine that the browser comes back to.
        seconds: How long to wait.
        open_browser: Opens an address, or None.
    """

    def __init__(self, server: str, port: int, seconds: float, open_browser: Callable[[str], Any] | None) -> None:
        self._host = urlsplit(server).netloc.rpartition("@")[2]
        self._port = port
        self._seconds = seconds
        self._open_browser = open_browser
        self._state = ""
        self._answer: asyncio.Future[dict[str, str]] | None = None
        self._listener: asyncio.Server | None = None

    async def begin(self, address: str) -> None:
        """Show the address of the login and listen for its end.

        Raises:
            McpConnectionError: The address is none that a browser should open, or the port is taken.
        """
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise McpConnectionError(f"The server {self._host} names no web page for the login: {quote(address, 80)}.")
        self._state = parse_qs(parts.query).get("state", [""])[0]
        self._answer = asyncio.get_running_loop().create_future()
        self._close()
        try:
            self._listener = await asyncio.start_server(self._serve, CALLBACK_HOST, self._port, limit=MAX_REQUEST_BYTES)
        except OSError as error:
            raise McpConnectionError(
                f"The port {self._port}, to which the browser comes back after the login, is taken.",
                "Give OAuth(redirect_port=…) with a free one.",
            ) from error
        try:
            show_link(f"Log in for {self._host} at {parts.netloc}", address)
            if self._open_browser is not None:
                result = await asyncio.to_thread(self._open_browser, address)
                if isinstance(result, Awaitable):
                    await result
        except BaseException:
            self._close()
            raise

    async def end(self) -> AuthorizationCodeResult:
        """Wait for the browser.

        Raises:
            McpConnectionError: The person did not log in in time, or was refused.
        """
        waiting = self._answer
        if waiting is None:
            raise McpConnectionError(f"No login at {self._host} was begun.")
        try:
            async with asyncio.timeout(self._seconds):
                answer = await waiting
        except TimeoutError:
            raise McpConnectionError(
                f"Nobody logged in at {self._host} within {self._seconds:g} seconds.",
                "Ask again to get a new link, or allow more with OAuth(timeout=…).",
            ) from None
        finally:
            self._close()
        if "code" not in answer:
            words = quote(f"{answer.get('error', 'no code')} {answer.get('error_description', '')}".strip(), 200)
            raise McpConnectionError(f"The login at {self._host} was refused: {words}.", "Ask again to get a new link.")
        return AuthorizationCodeResult(code=answer["code"], state=answer.get("state"), iss=answer.get("iss"))

    def _close(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
            status, text = self._take(head)
            writer.write(_page(status, text))
            await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return  # a browser that speaks no HTTP is none; the person may come with another one
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    def _take(self, head: bytes) -> tuple[str, str]:
        """The status and the text for a request; the one that ends the login is kept."""
        method, target, *_ = [*head.split(b"\r\n", 1)[0].decode("latin-1").split(" "), "", ""]
        parts = urlsplit(target)
        if method != "GET" or parts.path != CALLBACK_PATH:
            return "404 Not Found", "There is nothing here."
        answer = {name: values[0] for name, values in parse_qs(parts.query).items()}
        waiting = self._answer
        if waiting is None or waiting.done() or not secrets.compare_digest(answer.get("state", ""), self._state):
            return "400 Bad Request", "This belongs to no login that is waited for."
        waiting.set_result(answer)
        if "code" in answer:
            return "200 OK", "You are logged in. You can close this page and go back to the notebook."
        return "200 OK", "The login was refused. The notebook says why; you can close this page."


def _page(status: str, text: str) -> bytes:
    body = f"<!doctype html><meta charset=utf-8><title>Login</title><p>{html.escape(text)}</p>".encode()
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {len(body)}\r\n"
        "Content-Security-Policy: default-src 'none'\r\nReferrer-Policy: no-referrer\r\nCache-Control: no-store\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode() + body


def show_link(text: str, address: str) -> None:
    """Print a link: one to click on in a notebook, as text elsewhere."""
    shell = sys.modules.get("IPython")
    if shell is not None and getattr(shell.get_ipython(), "kernel", None) is not None:
        href, words = html.escape(address), html.escape(text)
        link = f'<a href="{href}" target="_blank" rel="noopener noreferrer">{words}</a>'
        display = import_module("IPython.display")  # which has no types
        display.publish_display_data({"text/plain": f"{text}: {address}", "text/html": link})
    else:
        sys.stdout.write(f"{text}: {address}\n")
        sys.stdout.flush()


def open_browser(address: str) -> None:
    """Open an address in the browser of this machine, where the person sees it."""
    if sys.platform in ("win32", "darwin"):
        visible = "SSH_CONNECTION" not in os.environ
    else:  # a browser in a terminal would take the kernel's
        visible = bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    if visible:
        webbrowser.open(address)
