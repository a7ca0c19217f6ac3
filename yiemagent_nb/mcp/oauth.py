"""OAuth: how this side shows an MCP server over HTTP on whose behalf it asks.

The SDK speaks OAuth 2.1 with all that MCP asks of it: finding the authorization server, registering,
PKCE, refreshing, stepping up. What is here joins it with a person (``browser_login``) and with what is
kept (``token_storage``), and offers the ways without a person.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from http import HTTPStatus
from typing import Any, Literal, Self, TypeVar
from urllib.parse import parse_qsl

import httpx2
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.extensions.client_credentials import (
    ClientCredentialsOAuthProvider,
    PrivateKeyJWTOAuthProvider,
    SignedJWTParameters,
)
from mcp.client.auth.extensions.identity_assertion import IdentityAssertionOAuthProvider
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl, BaseModel, SecretStr, ValidationError

from yiemagent_nb.core.errors import InvalidParametersError
from yiemagent_nb.core.redaction import Redactor
from yiemagent_nb.mcp.browser_login import CALLBACK_HOST, CALLBACK_PATH, BrowserLogin, open_browser
from yiemagent_nb.mcp.token_storage import FileTokenStorage, MemoryTokenStorage, TokenStorage

__all__ = ["FileTokenStorage", "MemoryTokenStorage", "OAuth", "TokenStorage"]

Model = TypeVar("Model", bound=BaseModel)


class OAuth:
    """A login by OAuth, for ``McpServer.http(url, auth=OAuth())``.

    The first connection prints a link and opens the browser; the login is kept in ``storage`` and
    renewed by itself. One object serves any number of servers.

    Args:
        scopes: What to ask for. Default: what the server says it needs.
        client_name: The name under which this side registers, as the person reads it at the login.
        redirect_port: The port of this machine that the browser comes back to; 0 takes a free one. Give one
            where the client was registered by hand, or where a firewall wants it.
        storage: Where logins are kept. Default: in memory.
        open_browser: Opens an address; None only prints it. Default: the browser of this machine, if it has one.
        client_id: That of a client which was registered by hand. Default: it registers itself.
        client_secret: Its secret, if it has one.
        issuer: The authorization server at which it was registered; it never goes to another one.
        client_metadata_url: An ``https`` address at which this client's metadata stand, for servers that read
            them there instead of registering clients.
        timeout: Seconds to wait for the person.

    Raises:
        InvalidParametersError: An argument is wrong; the error names it.
    """

    def __init__(
        self,
        *,
        scopes: Iterable[str] | str | None = None,
        client_name: str = "yiemagent_nb",
        redirect_port: int = 0,
        storage: TokenStorage | None = None,
        open_browser: Callable[[str], Any] | None = open_browser,
        client_id: str | None = None,
        client_secret: SecretStr | str | None = None,
        issuer: str | None = None,
        client_metadata_url: str | None = None,
        timeout: float = 300.0,
    ) -> None:
        if client_secret is not None and client_id is None:
            raise InvalidParametersError("client_secret was given without client_id.", "Give both, or none.")
        self.patience = timeout
        self.redacted = Redactor()
        """Masks the secrets of its logins in a text."""
        self._scope = scopes if scopes is None or isinstance(scopes, str) else " ".join(scopes)
        self._client_name = client_name
        self._redirect_port = redirect_port
        self._storage: TokenStorage = MemoryTokenStorage() if storage is None else storage
        self._open_browser = open_browser
        self._client_id = client_id
        self._client_secret = None if client_secret is None else self._secret(client_secret)
        self._issuer = issuer
        self._client_metadata_url = client_metadata_url
        self._machine: Callable[[str, _SdkStorage], httpx2.Auth] | None = None
        self._signers: dict[tuple[str, asyncio.AbstractEventLoop], httpx2.Auth] = {}

    @classmethod
    def client_credentials(
        cls,
        client_id: str,
        client_secret: SecretStr | str,
        *,
        issuer: str,
        scopes: Iterable[str] | str | None = None,
        method: Literal["client_secret_basic", "client_secret_post"] = "client_secret_basic",
        storage: TokenStorage | None = None,
    ) -> Self:
        """From machine to machine, with a client's secret; no person and no browser.

        Args:
            client_id: The client.
            client_secret: Its secret.
            issuer: The authorization server that gave it. Without it the MCP server could name another one
                and get the secret.
            scopes: What to ask for. Default: what the server says it needs.
            method: How the secret is sent.
            storage: Where tokens are kept. Default: in memory.
        """
        oauth = cls(scopes=scopes, storage=storage, timeout=0)
        secret = oauth._secret(client_secret)

        def signer(server: str, kept: _SdkStorage) -> httpx2.Auth:
            provider = _SecretSigner(server, kept, client_id, secret.get_secret_value(), method, oauth._scope, issuer)
            provider.wanted = oauth._scope
            return provider

        oauth._machine = signer
        return oauth

    @classmethod
    def private_key_jwt(
        cls,
        client_id: str,
        private_key: SecretStr | str | Callable[[str], Awaitable[str]],
        *,
        issuer: str,
        algorithm: str = "RS256",
        scopes: Iterable[str] | str | None = None,
        storage: TokenStorage | None = None,
    ) -> Self:
        """From machine to machine, with a key that never leaves this one.

        Args:
            client_id: The client.
            private_key: Its private key (PEM), or an async function that takes the audience and returns a
                signed JWT.
            issuer: The authorization server that knows the key.
            algorithm: How it signs.
            scopes: What to ask for. Default: what the server says it needs.
            storage: Where tokens are kept. Default: in memory.
        """
        oauth = cls(scopes=scopes, storage=storage, timeout=0)
        if callable(private_key):
            assertion = private_key
        else:
            key = oauth._secret(private_key)
            parameters = SignedJWTParameters(
                issuer=client_id, subject=client_id, signing_key=key.get_secret_value(), signing_algorithm=algorithm
            )
            assertion = parameters.create_assertion_provider()

        def signer(server: str, kept: _SdkStorage) -> httpx2.Auth:
            provider = _KeySigner(server, kept, client_id, assertion, oauth._scope, issuer)
            provider.wanted = oauth._scope
            return provider

        oauth._machine = signer
        return oauth

    @classmethod
    def identity_assertion(
        cls,
        client_id: str,
        client_secret: SecretStr | str | None,
        assertion: Callable[[str, str], Awaitable[str]],
        *,
        issuer: str,
        scopes: Iterable[str] | str | None = None,
        method: Literal["client_secret_basic", "client_secret_post"] = "client_secret_post",
        storage: TokenStorage | None = None,
    ) -> Self:
        """With what an identity provider vouches for: a person of the company's, or the machine this runs on.

        Args:
            client_id: The client that the server's authorization server knows.
            client_secret: Its secret; None where the assertion alone does, as with workload identities.
            assertion: An async function ``(audience, resource) -> JWT`` that asks the identity provider for an
                identity assertion (ID-JAG), or for the workload's token.
            issuer: The authorization server; nothing goes to another one.
            scopes: What to ask for. Default: what the server grants by itself.
            method: How the secret is sent.
            storage: Where tokens are kept. Default: in memory.
        """
        oauth = cls(scopes=scopes, storage=storage, timeout=0)
        secret = None if client_secret is None else oauth._secret(client_secret)

        def signer(server: str, kept: _SdkStorage) -> httpx2.Auth:
            if secret is None:
                return _PublicAssertionSigner(
                    server, kept, client_id=client_id, issuer=issuer, assertion=assertion, scope=oauth._scope
                )
            return IdentityAssertionOAuthProvider(
                server, kept, client_id, secret.get_secret_value(), issuer, assertion, oauth._scope, method
            )

        oauth._machine = signer
        return oauth

    def __repr__(self) -> str:
        """Which login it is, without what it brought."""
        return f"<OAuth {self._client_id or self._client_name!r}>"

    def signer(self, server: str) -> httpx2.Auth:
        """What signs the requests to a server, and logs in where the server wants it."""
        key = (server, asyncio.get_running_loop())
        if key not in self._signers:
            self._signers = {kept: signer for kept, signer in self._signers.items() if not kept[1].is_closed()}
            kept = _SdkStorage(server, self._storage, self.redacted)
            self._signers[key] = (self._machine or self._person)(server, kept)
        return self._signers[key]

    def _person(self, server: str, kept: _SdkStorage) -> httpx2.Auth:
        if self._client_id is not None:
            secret = self._client_secret
            kept.use_client(
                OAuthClientInformationFull(
                    client_id=self._client_id,
                    client_secret=None if secret is None else secret.get_secret_value(),
                    token_endpoint_auth_method="none" if secret is None else "client_secret_basic",
                    issuer=self._issuer,
                )
            )
        port = self._redirect_port or kept.registered_port() or _free_port()
        kept.forget_client_of_other_port(port)
        login = BrowserLogin(server, port, self.patience, self._open_browser)
        provider = _Signer(
            server,
            OAuthClientMetadata(
                client_name=self._client_name,
                redirect_uris=[AnyUrl(f"http://{CALLBACK_HOST}:{port}{CALLBACK_PATH}")],
                scope=self._scope,
            ),
            kept,
            login.begin,
            login.end,
            self._client_metadata_url,
        )
        provider.wanted = self._scope
        return provider

    def _secret(self, value: SecretStr | str) -> SecretStr:
        text = value if isinstance(value, str) else value.get_secret_value()
        self.redacted.add(text)
        return SecretStr(text)


class _Signer(OAuthClientProvider):
    """The SDK's, but for two things.

    It asks for what the person wants where the SDK would ask for all that the server offers. And it signs
    with a good token at once: the SDK has each request wait until the one before it is answered.
    """

    wanted: str | None = None
    _steps_up = False

    async def _auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        if self._initialized and self.context.is_token_valid():
            self._add_auth_header(request)
            response = yield request
            if response.status_code not in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
                return
        flow = super()._auth_flow(request)
        try:
            outgoing = await anext(flow)
            while True:
                response = yield outgoing
                if outgoing is request:
                    self._steps_up = response.status_code == HTTPStatus.FORBIDDEN
                outgoing = await flow.asend(response)
        except StopAsyncIteration:
            return
        finally:
            await flow.aclose()

    async def _perform_authorization(self) -> httpx2.Request:
        if self.wanted is not None and not self._steps_up:
            self.context.client_metadata.scope = self.wanted
        return await super()._perform_authorization()


class _SecretSigner(_Signer, ClientCredentialsOAuthProvider):
    """The same, with a client's secret."""


class _KeySigner(_Signer, PrivateKeyJWTOAuthProvider):
    """The same, with a client's key."""


class _PublicAssertionSigner(IdentityAssertionOAuthProvider):
    """The SDK's for identity assertions, which wants a secret, without one."""

    def __init__(
        self,
        server: str,
        storage: _SdkStorage,
        *,
        client_id: str,
        issuer: str,
        assertion: Callable[[str, str], Awaitable[str]],
        scope: str | None,
    ) -> None:
        super().__init__(server, storage, client_id, "none", issuer, assertion, scope)

    def _build_token_request(self, scope: str | None, assertion: str) -> httpx2.Request:
        request = super()._build_token_request(scope, assertion)
        data = dict(parse_qsl(request.content.decode()))
        del data["client_secret"]
        return httpx2.Request("POST", request.url, data=data)


class _SdkStorage:
    """A storage as the SDK wants it, for one server."""

    def __init__(self, server: str, storage: TokenStorage, redacted: Redactor) -> None:
        self._server = server
        self._storage = storage
        self._redacted = redacted
        self._given: OAuthClientInformationFull | None = None

    def use_client(self, client: OAuthClientInformationFull) -> None:
        """Use a client that was registered by hand."""
        self._given = client

    async def get_tokens(self) -> OAuthToken | None:
        """The tokens of the last login."""
        tokens = self._load("tokens", OAuthToken)
        if tokens is not None:
            self._protect(tokens)
        return tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Keep tokens."""
        self._protect(tokens)
        self._save("tokens", tokens.model_dump(mode="json", exclude_none=True))

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """The client as which this side is registered."""
        return self._given or self._load("client", OAuthClientInformationFull)

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Keep it."""
        if client_info.client_secret:
            self._redacted.add(client_info.client_secret)
        self._save("client", client_info.model_dump(mode="json", exclude_none=True))

    def registered_port(self) -> int | None:
        """The port that the client was registered with, if it is free: servers compare it."""
        client = self._load("client", OAuthClientInformationFull)
        uris = (client.redirect_uris if client is not None else None) or []
        port = next((uri.port for uri in uris if uri.host == CALLBACK_HOST), None)
        return port if port is not None and _is_free(port) else None

    def forget_client_of_other_port(self, port: int) -> None:
        """Register anew where the browser would come back to another port than was registered."""
        client = self._load("client", OAuthClientInformationFull)
        if client is not None and client.redirect_uris and all(uri.port != port for uri in client.redirect_uris):
            login = dict(self._storage.load(self._server) or {})
            del login["client"]
            self._storage.save(self._server, login)

    def _load(self, part: str, model: type[Model]) -> Model | None:
        value = (self._storage.load(self._server) or {}).get(part)
        if value is None:
            return None
        try:
            return model.model_validate(value)
        except ValidationError:
            return None  # as from an older version: a new login replaces it

    def _save(self, part: str, value: dict[str, Any]) -> None:
        self._storage.save(self._server, {**(self._storage.load(self._server) or {}), part: value})

    def _protect(self, tokens: OAuthToken) -> None:
        for secret in (tokens.access_token, tokens.refresh_token):
            if secret:
                self._redacted.add(secret)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((CALLBACK_HOST, 0))
        return probe.getsockname()[1]


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((CALLBACK_HOST, port))
        except OSError:
            return False
    return True
