"""An MCP server over HTTP, and pages beside it that are none: a program, and how tests start it.

Run as a program it takes its port and its ways, writes ``ready`` and serves until it is ended.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import socket
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Generator
from pathlib import Path
from typing import Any

import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.shared.exceptions import MCPError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["HttpServer", "free_port", "running"]

GOOD = "let-me-in-0123456789"
"""The bearer token that ``/unauthorized`` takes."""


# The program


def mcp_server(log: Path) -> MCPServer:
    """A server whose tools show what reached it; what happens there is written to ``log``."""
    server = MCPServer("fixture", log_level="CRITICAL")

    def note(line: str) -> None:
        with log.open("a") as file:
            file.write(f"{line}\n")

    @server.tool()
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    @server.tool()
    async def headers(ctx: Context[Any, Any]) -> dict[str, str]:
        """The headers of this request."""
        request: Request | None = ctx.request_context.request
        return {} if request is None else dict(request.headers)

    @server.tool()
    async def wait(seconds: float) -> str:
        """Answer late."""
        note("began")
        try:
            await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            note("cancelled")
            raise
        return "done"

    @server.tool()
    async def text(size: int) -> str:
        """A text of so many characters."""
        return "x" * size

    @server.tool()
    async def count(steps: int, ctx: Context[Any, Any]) -> str:
        """Tell of each step."""
        for step in range(steps):
            await ctx.report_progress(step + 1, steps, f"step {step + 1}")
        return "counted"

    _add_failing_tools(server)
    return server


def _add_failing_tools(server: MCPServer) -> None:
    @server.tool()
    async def refuse(ctx: Context[Any, Any]) -> str:
        """Answer with an error of JSON-RPC that repeats the token."""
        request: Request | None = ctx.request_context.request
        sent = "" if request is None else request.headers["authorization"]
        raise MCPError(code=-32050, message=f"{sent} \x1b[31mis no\x1b[0m token", data={"sent": sent})

    @server.tool()
    async def fail(ctx: Context[Any, Any]) -> str:
        """Fail with the token in the result."""
        request: Request | None = ctx.request_context.request
        raise ToolError("" if request is None else request.headers["authorization"])


class HandshakeOnly:
    """Refuses what is newer than the handshake, as servers of before 2026 do."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Look at the method of a message before it goes on."""
        if scope["type"] != "http" or scope["method"] != "POST":
            await self.app(scope, receive, send)
            return
        body = await Request(scope, receive).body()
        with contextlib.suppress(ValueError):
            message = json.loads(body)
            if message.get("method") == "server/discover":
                error = {"code": -32601, "message": "Method not found"}
                reply = JSONResponse({"jsonrpc": "2.0", "id": message["id"], "error": error}, 400)
                await reply(scope, receive, send)
                return
        waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def again() -> Message:
            return waiting.pop() if waiting else await receive()

        await self.app(scope, again, send)


async def _refuse(request: Request) -> Response:
    if request.headers.get("authorization") == f"Bearer {GOOD}":
        return JSONResponse({"detail": "now you may, but there is nothing"}, 503)
    sent = request.headers.get("authorization", "nothing")
    return JSONResponse(
        {"error": "invalid_token", "error_description": f"{sent} is no token"},
        401,
        {"www-authenticate": 'Bearer resource_metadata="http://127.0.0.1/.well-known/oauth-protected-resource"'},
    )


def _pages() -> list[Route]:
    def page(path: str, reply: Response, *methods: str) -> Route:
        async def answer(_: Request) -> Response:
            return reply

        return Route(path, answer, methods=[*(methods or ("GET", "POST"))])

    return [
        Route("/unauthorized", _refuse, methods=["GET", "POST"]),
        page("/html", HTMLResponse("<html><head><title>My wiki</title></head><body>Hello</body></html>")),
        page("/json", JSONResponse({"status": "ok"})),
        page("/empty", Response()),
        page("/forbidden", JSONResponse({"error": {"message": "not for you"}}, 403)),
        page("/down", PlainTextResponse("the database is away", 503)),
        page("/get", PlainTextResponse("a page"), "GET"),
        page("/elsewhere", RedirectResponse("http://example.org/mcp?secret=abc", 307)),
        page("/moved", RedirectResponse("/mcp", 307)),
        page("/loses", RedirectResponse("/mcp", 302)),
        page("/broken", Response(b'{"jsonrpc": "2.0", "id"', media_type="application/json")),
    ]


class Slow:
    """Lets every answer wait."""

    def __init__(self, app: ASGIApp, seconds: float) -> None:
        self.app = app
        self.seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Wait, then go on."""
        if scope["type"] == "http":
            await asyncio.sleep(self.seconds)
        await self.app(scope, receive, send)


def main() -> None:
    """Serve until ended."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--handshake", action="store_true")
    parser.add_argument("--stateless", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--sse", action="store_true")
    parser.add_argument("--slow", type=float, default=0.0)
    parser.add_argument("--certificate")
    arguments = parser.parse_args()
    server = mcp_server(arguments.log)
    if arguments.sse:
        served: ASGIApp = server.sse_app()
    else:
        served = server.streamable_http_app(json_response=arguments.json, stateless_http=arguments.stateless)
    if arguments.handshake:
        served = HandshakeOnly(served)
    if arguments.slow:
        served = Slow(served, arguments.slow)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        if arguments.sse:
            yield
            return
        async with server.session_manager.run():
            yield

    app = Starlette(routes=[*_pages(), Mount("/", served)], lifespan=lifespan)
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", arguments.port))
    listener.listen()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    config = uvicorn.Config(
        app, log_level="critical", ssl_certfile=arguments.certificate, timeout_graceful_shutdown=1, lifespan="on"
    )
    uvicorn.Server(config).run(sockets=[listener])


# How tests start it


class HttpServer:
    """The program, on a port that stays its own when it is started again."""

    def __init__(self, folder: Path, *ways: str) -> None:
        self.port = free_port()
        self.log = folder / f"log-{self.port}.txt"
        self.log.touch()
        self._ways = ways
        self._process: subprocess.Popen[str] | None = None

    def url(self, path: str = "/mcp") -> str:
        """The address of a page."""
        scheme = "https" if "--certificate" in self._ways else "http"
        return f"{scheme}://127.0.0.1:{self.port}{path}"

    def start(self) -> None:
        """Start it, and wait until it listens."""
        command = [sys.executable, __file__, "--port", str(self.port), "--log", str(self.log), *self._ways]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"

    def kill(self) -> None:
        """End it at once, as a crash does."""
        process = self._process
        if process is not None:
            process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()
            self._process = None

    async def logged(self, line: str, seconds: float = 10.0) -> bool:
        """Whether a line is written to its log in time."""
        end = time.monotonic() + seconds
        while line not in self.log.read_text().splitlines():
            if time.monotonic() > end:
                return False
            await asyncio.sleep(0.02)
        return True


@contextlib.contextmanager
def running(folder: Path, *ways: str) -> Generator[HttpServer]:
    """A server that runs."""
    server = HttpServer(folder, *ways)
    server.start()
    try:
        yield server
    finally:
        server.kill()


def free_port() -> int:
    """A port of this machine on which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


if __name__ == "__main__":
    main()
