"""An MCP server that wants a login, and its authorization server: real ones, in the test's event loop."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import secrets
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode

import jwt
import uvicorn
from mcp.server import MCPServer
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

__all__ = ["LoginServer", "logging_in"]

CLIENT, SECRET = "machine", "machine-secret-0123456789"


@dataclass
class LoginServer:
    """Both servers, and what reached them. Change its fields to change how it answers."""

    url: str
    """Of the MCP server."""
    issuer: str
    """Of the authorization server."""
    key: str = ""
    """The public key (PEM) of a client that signs."""
    refuses: str = ""
    """The error with which it ends logins; empty lets everybody in."""
    lifetime: int = 3600
    """Seconds for which tokens are good, until they are renewed."""
    needs: str = "read"
    """The scope without which no request is taken."""
    registered: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    asked: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    """The queries that came to the page of the login."""
    token_requests: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    tokens: dict[str, str] = field(default_factory=dict[str, str])
    """Good access tokens with their scopes."""
    refresh_tokens: dict[str, str] = field(default_factory=dict[str, str])
    codes: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])

    async def authorize(self, request: Request) -> Response:
        """The page of the login: a person who says yes at once."""
        query = dict(request.query_params)
        self.asked.append(query)
        known = {uri for client in self.registered for uri in client["redirect_uris"]}
        assert query["redirect_uri"] in known, "browsers are only sent where the client said"
        answer = {"state": query["state"], "iss": self.issuer}
        if self.refuses:
            answer |= {"error": self.refuses, "error_description": "she said <no>"}
        else:
            code = answer["code"] = secrets.token_urlsafe()
            self.codes[code] = query
        return RedirectResponse(f"{query['redirect_uri']}?{urlencode(answer)}", 302)

    async def register(self, request: Request) -> Response:
        """Take a new client."""
        client = await request.json()
        self.registered.append(client)
        return JSONResponse({**client, "client_id": f"client-{len(self.registered)}"}, 201)

    async def token(self, request: Request) -> Response:
        """Give tokens for what proves the right to them."""
        form = dict(parse_qsl((await request.body()).decode()))
        self.token_requests.append(form)
        match form.get("grant_type"):
            case "authorization_code":
                asked = self.codes.pop(form["code"], None)
                digest = hashlib.sha256(form["code_verifier"].encode()).digest()
                challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
                good = asked is not None and asked["code_challenge"] == challenge
                scope = "" if asked is None else asked.get("scope", "")
            case "refresh_token":
                scope = self.refresh_tokens.pop(form["refresh_token"], "")
                good = bool(scope)
            case "client_credentials":
                scope, good = form.get("scope", ""), self._proves(form, request.headers.get("authorization", ""))
            case _:
                return JSONResponse({"error": "unsupported_grant_type"}, 400)
        if not good:
            return JSONResponse({"error": "invalid_grant", "error_description": "that proves nothing"}, 400)
        token, refresh = secrets.token_urlsafe(), secrets.token_urlsafe()
        self.tokens[token] = scope
        self.refresh_tokens[refresh] = scope
        seconds = 3600 if form["grant_type"] == "refresh_token" else self.lifetime
        given = {"access_token": token, "token_type": "Bearer", "expires_in": seconds, "scope": scope}
        return JSONResponse(
            given if form["grant_type"] == "client_credentials" else {**given, "refresh_token": refresh}
        )

    def _proves(self, form: dict[str, str], authorization: str) -> bool:
        if "client_assertion" in form:
            claims = jwt.decode(form["client_assertion"], self.key, algorithms=["ES256"], audience=self.issuer)
            return claims["sub"] == CLIENT
        if authorization:
            name, _, secret = base64.b64decode(authorization.removeprefix("Basic ")).decode().partition(":")
            return (unquote(name), unquote(secret)) == (CLIENT, SECRET)
        return (form.get("client_id"), form.get("client_secret")) == (CLIENT, SECRET)

    async def resource_metadata(self, _: Request) -> Response:
        """Where the MCP server says who gives tokens for it."""
        return JSONResponse(
            {
                "resource": self.url,
                "authorization_servers": [self.issuer],
                "scopes_supported": ["read", "write", "delete"],
            }
        )

    async def server_metadata(self, _: Request) -> Response:
        """Where the authorization server says what it can."""
        return JSONResponse(
            {
                "issuer": self.issuer,
                "authorization_endpoint": f"{self.issuer}/authorize",
                "token_endpoint": f"{self.issuer}/token",
                "registration_endpoint": f"{self.issuer}/register",
                "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"],
                "authorization_response_iss_parameter_supported": True,
            }
        )


class _Guard:
    """Lets requests with a good token through to the MCP server."""

    def __init__(self, app: ASGIApp, login: LoginServer) -> None:
        self.app = app
        self.login = login

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Look at the token of a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        token = Request(scope).headers.get("authorization", "").removeprefix("Bearer ")
        granted = self.login.tokens.get(token)
        if granted is None:
            await self._refuse(401, f"invalid_token, {token} is not known")(scope, receive, send)
        elif self.login.needs not in granted.split():
            await self._refuse(403, "insufficient_scope", self.login.needs)(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    def _refuse(self, status: int, error: str, scope: str = "") -> Response:
        place = self.login.url.replace("/mcp", "/.well-known/oauth-protected-resource/mcp")
        wanted = f', scope="{scope}"' if scope else ""
        challenge = f'Bearer error="{error.split(",", maxsplit=1)[0]}", resource_metadata="{place}"{wanted}'
        return JSONResponse({"error": error}, status, {"www-authenticate": challenge})


@asynccontextmanager
async def logging_in() -> AsyncGenerator[LoginServer]:
    """Both servers, while they run."""
    listener = socket.create_server(("127.0.0.1", 0))
    origin = f"http://127.0.0.1:{listener.getsockname()[1]}"
    login = LoginServer(f"{origin}/mcp", origin)
    server = MCPServer("guarded", log_level="CRITICAL")

    @server.tool()
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    here = asyncio.Barrier(2)

    @server.tool()
    async def meet() -> str:
        """Wait for another one who calls this."""
        await here.wait()
        return "met"

    guarded = _Guard(server.streamable_http_app(), login)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        async with server.session_manager.run():
            yield

    app = Starlette(
        routes=[
            Route("/authorize", login.authorize),
            Route("/register", login.register, methods=["POST"]),
            Route("/token", login.token, methods=["POST"]),
            Route("/.well-known/oauth-protected-resource/mcp", login.resource_metadata),
            Route("/.well-known/oauth-authorization-server", login.server_metadata),
            Mount("/", guarded),
        ],
        lifespan=lifespan,
    )
    config = uvicorn.Config(app, log_config=None, log_level="critical", ws="none", timeout_graceful_shutdown=1)
    program = uvicorn.Server(config)
    task = asyncio.ensure_future(program.serve(sockets=[listener]))
    try:
        yield login
    finally:
        program.should_exit = True
        await task
