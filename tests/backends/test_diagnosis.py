"""Each common misconfiguration has its sentence, and what the sentence says to do works."""

from __future__ import annotations

import asyncio
import socket
import ssl
import sys
from collections.abc import AsyncGenerator, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Unpack, cast

import httpx2
import pytest
import trustme
from backends.web import LIST, Page, closed_port, json_page, serving, silent

from yiemagent_nb.backends.engine import diagnosis
from yiemagent_nb.backends.engine.model_server import ModelServer
from yiemagent_nb.backends.engine.options import ServerOptions
from yiemagent_nb.backends.http.connection import Timeouts
from yiemagent_nb.backends.http.retry import RetryPolicy
from yiemagent_nb.backends.openai import OpenAI
from yiemagent_nb.backends.openai_compatible import OpenAICompatible, Preset
from yiemagent_nb.backends.vllm import VLLM
from yiemagent_nb.core.errors import BackendConnectionError, BackendNotFoundError
from yiemagent_nb.core.models import LlmModel

pytestmark = pytest.mark.requirement("Y FR-002", "Y US-005")

SECRET = "sk-planted-0123456789abcdef"  # noqa: S105 - what must go nowhere
ONLY_HERE = pytest.mark.skipif(sys.platform != "linux", reason="127.0.0.2 is there only on Linux")
"""127.0.0.2 stands for another machine: it is reached without a network, and is none of the names of this one."""
OTHER = "127.0.0.2"
QUICK = Timeouts(connect=0.5, first_byte=0.5, between_bytes=0.5, write=0.5)
WEB_PAGE = Page(b"<!doctype html><title>Welcome</title>")


def backend(
    base_url: str, model: str | None = None, preset: Preset | None = None, **options: Unpack[ServerOptions]
) -> OpenAICompatible:
    given: ServerOptions = {"retries": 0, "timeout": QUICK, **options}
    return OpenAICompatible(base_url, model, preset=preset, **given)


async def ask(server: ModelServer) -> None:
    async with server:
        await cast("Coroutine[Any, Any, Any]", server([{"role": "user", "content": "hi"}], stream=False))


def use(context: ssl.SSLContext, certificate: trustme.LeafCert) -> None:
    with certificate.private_key_and_cert_chain_pem.tempfile() as path:
        context.load_cert_chain(path)


async def said(server: ModelServer) -> str:
    """What health says of a server that cannot be used; it never hangs, and says it without the key."""
    async with asyncio.timeout(60), server:
        health = await server.health()
    assert not health.ok
    assert SECRET not in health.message
    assert "  " not in health.message
    return health.message


async def works(server: ModelServer) -> bool:
    async with server:
        return (await server.health()).ok


@pytest.fixture(autouse=True)
def no_usual_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """What runs on this machine is no part of a test."""
    monkeypatch.setattr(diagnosis, "USUAL_PORTS", ())
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


class TestNothingListens:
    async def test_what_does_answer_on_this_machine_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        pages = {"/v1/models": LIST, "/api/v1/models": json_page({"models": [{"key": "small"}]})}
        async with serving(pages) as web:
            monkeypatch.setattr(diagnosis, "USUAL_PORTS", (web.port,))
            wrong = f"http://127.0.0.1:{closed_port()}/v1"
            assert await said(backend(wrong, api_key=SECRET)) == (
                f'Nothing listens at {wrong}. LM Studio answers at {web.url()}. Use base_url="{web.url()}".'
            )
            assert not any(SECRET in head for head in web.heads)
            assert await works(backend(web.url()))

    async def test_else_the_command_that_starts_the_server_is(self) -> None:
        wrong = f"http://localhost:{closed_port()}/v1"
        message = await said(VLLM(base_url=wrong, retries=0))
        assert f"No connection to {wrong}: the connection was refused. Start it with `vllm serve MODEL`" in message
        assert "No model server is at the usual ports of this machine either." in message

    async def test_in_a_container_its_walls_are_spoken_of(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        mark = tmp_path / ".dockerenv"
        monkeypatch.setattr(diagnosis, "_CONTAINER_MARKS", (str(mark),))
        wrong = f"http://127.0.0.1:{closed_port()}/v1"
        assert "container" not in await said(backend(wrong))
        mark.touch()
        assert "use host.docker.internal" in await said(backend(wrong))

    @ONLY_HERE
    async def test_on_another_machine_the_server_may_listen_to_itself_only(self) -> None:
        async with serving({"/v1/models": LIST}) as web:
            message = await said(backend(web.url(host=OTHER)))
        assert f"{OTHER} can be reached, but nothing listens at its port {web.port}" in message
        assert "start it with --host 0.0.0.0" in message
        async with serving({"/v1/models": LIST}, host="0.0.0.0") as web:  # noqa: S104 - what the sentence says
            assert await works(backend(web.url(host=OTHER)))

    @ONLY_HERE
    async def test_ollama_is_opened_in_a_way_of_its_own(self) -> None:
        address = f"http://{OTHER}:{closed_port(OTHER)}/v1"
        assert "set OLLAMA_HOST=0.0.0.0 there" in await said(backend(address, preset="ollama"))

    async def test_a_host_that_is_not_known_is_named(self) -> None:
        message = await said(backend("http://gpu-servr.invalid:8000/v1"))
        assert message.startswith("No host is called 'gpu-servr.invalid': check its spelling")

    @ONLY_HERE
    async def test_a_host_that_takes_no_connections_may_be_behind_a_firewall(self) -> None:
        with socket.socket() as full:
            full.bind((OTHER, 0))
            full.listen(0)
            address = full.getsockname()
            waiting = [socket.socket() for _ in range(4)]  # the queue is full, so no more are taken
            for each in waiting:
                each.setblocking(False)
                each.connect_ex(address)
            message = await said(backend(f"http://{OTHER}:{address[1]}/v1"))
            for each in waiting:
                each.close()
        assert f"{OTHER} does not answer at port {address[1]}: it is off, a firewall is between" in message

    async def test_the_first_request_says_it_too(self) -> None:
        with pytest.raises(BackendConnectionError, match="no host of that name is known") as caught:
            await ask(backend("http://gpu-servr.invalid/v1", "m"))
        assert caught.value.hint == "Check the spelling of the host in base_url, and the network or VPN."


PLACES: Mapping[str, tuple[str, Mapping[str, Page], str]] = {
    "/v1 is missing behind a path": ("/proxy/gpu", {"/proxy/gpu/v1/models": LIST}, "/proxy/gpu/v1"),
    "a path too much": ("/chat/v1", {"/v1/models": LIST}, "/v1"),
    "Ollama's own API": ("/api", {"/v1/models": LIST, "/api/version": json_page({"version": "0.30"})}, "/v1"),
    "under /api": ("/v1", {"/api/v1/models": LIST, "*": WEB_PAGE}, "/api/v1"),
    "a web page": ("/ui", {"/v1/models": LIST, "*": WEB_PAGE}, "/v1"),
    "LM Studio's 200 with an error": (
        "/models",
        {"/v1/models": LIST, "*": json_page({"error": "Unexpected endpoint or method. (GET /models/models)"})},
        "/v1",
    ),
    "JSON that is no list": ("/status", {"/status/models": json_page({"ok": True}), "/v1/models": LIST}, "/v1"),
    "a redirect": (
        "/old",
        {"/old/models": Page(b"", status=308, headers={"Location": "/new/api/models"}), "/new/api/models": LIST},
        "/new/api",
    ),
}


class TestPaths:
    @pytest.mark.parametrize(("path", "pages", "right"), PLACES.values(), ids=list(PLACES))
    async def test_where_the_models_are_is_named(self, path: str, pages: Mapping[str, Page], right: str) -> None:
        async with serving(pages) as web:
            assert await said(backend(web.url(path))) == (
                f"{web.url(path)} is not where the models are. They are at {web.url(right)}: "
                f'use base_url="{web.url(right)}".'
            )
            assert await works(backend(web.url(right)))

    async def test_the_same_server_is_asked_with_the_key(self) -> None:
        async with serving({"/v1/models": LIST}, key=SECRET) as web:
            assert f'use base_url="{web.url()}"' in await said(backend(web.url("/nothing"), api_key=SECRET))
            assert await works(backend(web.url(), api_key=SECRET))

    async def test_lm_studio_hides_its_models_from_those_without_a_token(self) -> None:
        refusal = json_page(
            {"error": {"code": "invalid_api_key", "message": "An LM Studio API token is required"}}, 401
        )
        hidden = json_page({"error": "Unexpected endpoint or method. (GET /v1/models)"})
        async with serving({"/api/v1/models": refusal, "*": hidden}) as web:
            message = await said(backend(web.url()))
        assert f"{web.url('/api/v1')} wants an API key, and none is sent" in message

    async def test_where_no_models_are_anywhere_it_is_said_where_was_looked(self) -> None:
        async with serving({"*": WEB_PAGE}) as web:
            message = await said(backend(web.url()))
        assert f'No list of models is at {web.url()}. The server answered with a web page ("Welcome")' in message
        assert f"Looked also at {web.url('/v1/v1')}, {web.url('/api/v1')}" in message

    @pytest.mark.parametrize(
        "page",
        [
            Page(b"<title>Sign in - Acme</title>"),
            Page(b"", status=302, headers={"Location": "https://sso.acme.invalid/oauth2/authorize?state=1"}),
            Page(b"", status=302, headers={"Location": "/login?next=%2Fv1%2Fmodels"}),
        ],
        ids=["a page", "another host", "a path"],
    )
    async def test_a_login_page_is_told_from_an_api(self, page: Page) -> None:
        async with serving({"*": page}) as web:
            assert "shows people a login page instead of listing models" in await said(backend(web.url()))

    async def test_another_host_is_named_and_not_asked(self) -> None:
        async with serving({"/v1/models": LIST}) as other:
            there = other.url("/v1/models", host="localhost")
            page = Page(b"", status=301, headers={"Location": there})
            async with serving({"*": page}) as web:
                message = await said(backend(web.url(), api_key=SECRET))
            assert f"{web.url()} sends on to another host: {there}." in message
            assert other.heads == []

    async def test_the_first_request_says_where_a_redirect_goes(self) -> None:
        page = Page(b"", status=308, headers={"Location": "/elsewhere"})
        async with serving({"*": page}) as web:
            with pytest.raises(BackendNotFoundError, match=r"has moved to /elsewhere \(status 308\)"):
                await ask(backend(web.url(), "m"))


class TestKeys:
    async def test_a_missing_key_is_told_from_a_wrong_one(self) -> None:
        async with serving({"/v1/models": LIST}, key=SECRET) as web:
            missing = await said(VLLM(base_url=web.url(), retries=0))
            wrong = await said(VLLM(base_url=web.url(), retries=0, api_key="sk-another-0123456789"))
            hint = "The server was started with --api-key: give that key as api_key."
            assert missing == f"{web.url()} wants an API key, and none is sent (status 401). {hint}"
            assert (
                wrong == f'{web.url()} refuses the API key that is sent (status 401). It said: "Unauthorized". {hint}'
            )
            assert await works(VLLM(base_url=web.url(), api_key=SECRET))

    async def test_a_key_in_a_header_or_a_client_is_one(self) -> None:
        async with serving({"/v1/models": LIST}, key=SECRET) as web:
            assert "refuses the API key" in await said(backend(web.url(), headers={"api-key": "wrong-0123456"}))
            async with httpx2.AsyncClient(headers={"Authorization": "Bearer wrong-0123456"}) as client:
                assert "refuses the API key" in await said(backend(web.url(), http_client=client))

    async def test_a_key_without_permission_is_told_so(self) -> None:
        async with serving({"*": json_page({"error": {"message": "Project not allowed"}}, 403)}) as web:
            message = await said(OpenAI(base_url=web.url(), retries=0, api_key=SECRET))
        assert "takes no request with this key (status 403)" in message
        assert 'It said: "Project not allowed". Set OPENAI_API_KEY' in message

    async def test_a_variable_that_is_not_set_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("OPENAI_API_KEY", raising=False)
        async with serving({"/v1/models": LIST}) as web:
            message = await said(OpenAI(base_url=web.url(), retries=0))
            assert message.startswith("There is no API key: the environment variable OPENAI_API_KEY is not set.")
            assert web.heads == []
            monkeypatch.setenv("OPENAI_API_KEY", SECRET)
            assert await works(OpenAI("small", base_url=web.url()))


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@asynccontextmanager
async def tls(certificate: trustme.LeafCert) -> AsyncGenerator[Any]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    use(context, certificate)
    async with serving({"/v1/models": LIST}, context=context) as web:
        yield web


def refuse(listening: socket.socket, context: ssl.SSLContext) -> str:
    """Take one connection, and say why TLS refused it."""
    plain, _ = listening.accept()
    secure = context.wrap_socket(plain, server_side=True, do_handshake_on_connect=False)
    try:
        secure.do_handshake()
    except ssl.SSLError as error:
        with socket.socket(fileno=secure.detach()) as rest:
            while rest.recv(4096):
                pass  # the other side reads the refusal before it hangs up
        return str(error)
    secure.close()
    return ""


class TestTls:
    async def test_https_asked_of_a_server_without_it(self) -> None:
        async with serving({"/v1/models": LIST}) as web:
            message = await said(backend(web.url(scheme="https"), api_key=SECRET))
            assert message == f'127.0.0.1:{web.port} speaks plain HTTP, not TLS: use base_url="{web.url()}".'
            assert not any(SECRET in head for head in web.heads)
            assert await works(backend(web.url()))

    async def test_a_server_that_answers_a_greeting_in_plain_text(self) -> None:
        said_first = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        async with silent(said_first) as web:
            with pytest.raises(BackendConnectionError, match="what listens there speaks no TLS") as caught:
                await ask(backend(web.url(scheme="https"), "m"))
            assert caught.value.hint.startswith("Use http:// in base_url")
            assert "speaks plain HTTP, not TLS" in await said(backend(web.url(scheme="https")))

    async def test_http_asked_of_a_server_with_tls(
        self, authority: trustme.CA, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        authority.cert_pem.write_to_path(tmp_path / "ca.pem")
        async with tls(authority.issue_cert("127.0.0.1")) as web:
            secure = web.url(scheme="https")
            message = await said(backend(web.url(), api_key=SECRET))
            assert message.startswith(f'127.0.0.1:{web.port} speaks TLS, not plain HTTP: use base_url="{secure}".')
            assert "There, its certificate comes from an authority that is not known here. If you trust it" in message
            assert not any(SECRET in head for head in web.heads)
            monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
            assert await said(backend(web.url())) == (
                f'127.0.0.1:{web.port} speaks TLS, not plain HTTP: use base_url="{secure}".'
            )
            assert await works(backend(secure))

    async def test_a_gateway_that_says_that_only_https_is_spoken(self) -> None:
        page = Page(b"<title>400 The plain HTTP request was sent to HTTPS port</title>", status=400)
        async with serving({"*": page}) as web:
            assert await said(backend(web.url())) == f"{web.url()} wants TLS. Use https:// in base_url."

    async def test_an_unknown_authority_is_trusted_by_a_variable_or_a_client(
        self, authority: trustme.CA, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        authority.cert_pem.write_to_path(tmp_path / "ca.pem")
        async with tls(authority.issue_cert("127.0.0.1")) as web:
            secure = web.url(scheme="https")
            message = await said(backend(secure))
            assert f"No connection to {secure}: its certificate comes from an authority that is not known" in message
            assert "set SSL_CERT_FILE to a file with the certificate of that authority" in message
            context = ssl.create_default_context(cafile=str(tmp_path / "ca.pem"))
            async with httpx2.AsyncClient(verify=context, timeout=600) as client:
                assert await works(backend(secure, http_client=client))
            monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
            assert await works(backend(secure))

    async def test_a_self_signed_certificate_is_told_so(
        self, authority: trustme.CA, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        # An authority's own certificate is one that signs itself.
        (tmp_path / "self.pem").write_bytes(authority.cert_pem.bytes())
        (tmp_path / "key.pem").write_bytes(authority.private_key_pem.bytes())
        context.load_cert_chain(tmp_path / "self.pem", tmp_path / "key.pem")
        async with serving({"/v1/models": LIST}, context=context) as web:
            message = await said(backend(web.url(scheme="https")))
            assert "its certificate is self-signed. If you trust it: set SSL_CERT_FILE" in message
            # Trusted, it still is made for nobody's name.
            monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "self.pem"))
            assert "is not made for '127.0.0.1'" in await said(backend(web.url(scheme="https")))

    async def test_a_certificate_out_of_its_time_is_told_so(
        self, authority: trustme.CA, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        authority.cert_pem.write_to_path(tmp_path / "ca.pem")
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
        now, day = datetime.now(UTC), timedelta(days=1)
        old = authority.issue_cert("127.0.0.1", not_before=now - 9 * day, not_after=now - day)
        async with tls(old) as web:
            message = await said(backend(web.url(scheme="https")))
        assert "its certificate has expired. Have it renewed on the server, or set this machine's clock." in message
        early = authority.issue_cert("127.0.0.1", not_before=now + day, not_after=now + 9 * day)
        async with tls(early) as web:
            assert "its certificate is not valid yet" in await said(backend(web.url(scheme="https")))
        async with tls(authority.issue_cert("127.0.0.1")) as web:
            assert await works(backend(web.url(scheme="https")))

    async def test_a_certificate_for_another_name_is_told_so(
        self, authority: trustme.CA, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        authority.cert_pem.write_to_path(tmp_path / "ca.pem")
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
        async with tls(authority.issue_cert("localhost")) as web:
            secure = web.url(scheme="https")
            assert f"The certificate of {secure} is not made for '127.0.0.1'." in await said(backend(secure))
            assert await works(backend(web.url(scheme="https", host="localhost")))

    async def test_a_server_that_wants_a_certificate_from_this_side_says_so(
        self, authority: trustme.CA, tmp_path: Path
    ) -> None:
        authority.cert_pem.write_to_path(tmp_path / "ca.pem")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        use(context, authority.issue_cert("127.0.0.1"))
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(tmp_path / "ca.pem")
        ours = ssl.create_default_context(cafile=str(tmp_path / "ca.pem"))
        # A blocking server, since asyncio's hangs up before the refusal is sent.
        with socket.create_server(("127.0.0.1", 0)) as listening, ThreadPoolExecutor(1) as thread:
            refusing = thread.submit(refuse, listening, context)
            async with httpx2.AsyncClient(verify=ours) as client:
                address = f"https://127.0.0.1:{listening.getsockname()[1]}/v1"
                message = await said(backend(address, http_client=client))
            assert "did not return a certificate" in refusing.result(5)
        assert "it wants a certificate from this side. Load yours into an ssl.SSLContext" in message
        use(ours, authority.issue_cert("me@here"))
        async with serving({"/v1/models": LIST}, context=context) as web, httpx2.AsyncClient(verify=ours) as client:
            assert await works(backend(web.url(scheme="https"), http_client=client))

    async def test_what_is_no_web_server_is_told_so(self) -> None:
        async with silent(b"SSH-2.0-OpenSSH_9.9\r\nmore of it\r\n\r\n") as web:
            message = await said(backend(web.url()))
        assert "what listens there speaks no HTTP. Check the port" in message

    async def test_a_server_that_hangs_up_is_told_so(self) -> None:
        async with silent(b"") as web:
            message = await said(backend(web.url()))
        assert f"No connection to {web.url()}: it closed the connection without an answer." in message


@ONLY_HERE
class TestProxies:
    async def test_a_proxy_that_does_not_answer_is_named_with_its_variable(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        proxy = f"127.0.0.1:{closed_port()}"
        monkeypatch.setenv("HTTP_PROXY", f"http://me:{SECRET}@{proxy}")
        async with serving({"/v1/models": LIST}, host=OTHER) as web:
            assert await said(backend(web.url(host=OTHER))) == (
                f"No connection to the proxy http://{proxy}. The environment variable HTTP_PROXY sends requests to "
                f"{OTHER} through the proxy http://{proxy}: correct it, or add {OTHER} to NO_PROXY to go there "
                "directly."
            )
            monkeypatch.setenv("NO_PROXY", OTHER)
            assert await works(backend(web.url(host=OTHER)))

    async def test_a_proxy_that_refuses_is_quoted(self, monkeypatch: pytest.MonkeyPatch) -> None:
        async with serving({"*": Page(b"", status=407)}) as proxy:
            monkeypatch.setenv("HTTPS_PROXY", proxy.url(""))
            message = await said(backend(f"https://{OTHER}:8000/v1"))
        assert 'the proxy said "407 Said". The environment variable HTTPS_PROXY sends requests' in message

    async def test_a_proxy_that_does_not_find_the_server_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        async with serving({"*": Page(b"<title>ERROR</title>", status=503)}) as proxy:
            monkeypatch.setenv("HTTP_PROXY", proxy.url(""))
            message = await said(backend("http://gpu-box.invalid:8000/v1"))
        assert (
            f"Requests go through the proxy {proxy.url('')} of HTTP_PROXY: add gpu-box.invalid to NO_PROXY" in message
        )

    async def test_this_machine_is_reached_without_one(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("ALL_PROXY", f"http://127.0.0.1:{closed_port()}")
        async with serving({"/v1/models": LIST}) as web:
            assert await works(backend(web.url()))


class TestFailures:
    @pytest.mark.parametrize(
        ("status", "body"),
        [
            (502, b"<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>"),
            (503, b"<html><title>503 Service Temporarily Unavailable</title></html>"),
            (504, b"<title>504 Gateway Time-out</title>"),
            (521, b"<title>gpu.example.com | 521: Web server is down</title>"),
        ],
    )
    async def test_a_gateway_is_told_from_the_server_behind_it(self, status: int, body: bytes) -> None:
        async with serving({"*": Page(body, status=status)}) as web:
            message = await said(backend(web.url()))
        assert f"A gateway answers in place of the model server behind {web.url()}, which is down" in message

    async def test_a_server_that_fails_by_itself_is_quoted(self) -> None:
        async with serving({"*": json_page({"error": "CUDA out of memory"}, 500)}) as web:
            message = await said(backend(web.url()))
        assert 'The server said (status 500): "CUDA out of memory".' in message

    async def test_a_server_that_loads_its_model_is_waited_for(self) -> None:
        page = json_page({"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}, 503)
        async with serving({"*": page}) as web:
            message = await said(backend(web.url()))
        assert message == f"{web.url()} is still loading its model (status 503). Ask again in a while."

    async def test_a_server_that_does_not_answer_may_be_busy(self) -> None:
        async with silent() as web:
            message = await said(backend(web.url()))
        assert f"{web.url()} did not begin to answer within 0.5 seconds." in message
        assert "It took the connection: it may be loading a model or be busy" in message

    async def test_looking_does_not_take_longer_than_it_may(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(diagnosis, "_PATIENCE", 0.2)
        monkeypatch.setattr(diagnosis, "_MOMENT", 30.0)
        page = json_page({"detail": "Not Found"}, 404)
        hanging = asyncio.Event()

        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            head = await reader.readuntil(b"\r\n\r\n")
            if b"GET /ui/models " not in head:
                await hanging.wait()
            writer.write(b"HTTP/1.1 404 No\r\nContent-Length: %d\r\n\r\n%s" % (len(page.body), page.body))
            writer.close()

        async with await asyncio.start_server(talk, "127.0.0.1", 0) as server:
            message = await said(backend(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/ui"))
            hanging.set()
        assert message.startswith('The server said (status 404): "Not Found". Check the base URL')

    async def test_a_question_for_the_health_is_not_repeated(self) -> None:
        async with serving({"*": json_page({"error": "overloaded"}, 500)}) as web:
            await said(backend(web.url(), retries=RetryPolicy(3, first_delay=0.01)))
        assert web.asked == ["/v1/models"]


NAMES = ["qwen3:8b", "qwen3:0.6b", "Qwen/Qwen3-30B-A3B-Instruct", "gpt-oss-20b", "/models/smollm2-135m.gguf"]


class TestUnknownModels:
    @pytest.mark.parametrize(
        ("wanted", "meant"),
        [
            ("qwen3:8B", "Did you mean 'qwen3:8b'"),
            ("qwen3", "Did you mean 'qwen3:"),
            ("openai/gpt-oss-20b", "Did you mean 'gpt-oss-20b'?"),
            ("Qwen3-30B-A3B-Instruct", "Did you mean 'Qwen/Qwen3-30B-A3B-Instruct'?"),
            ("SmolLM2_135M", "Did you mean '/models/smollm2-135m.gguf'?"),
        ],
    )
    def test_names_that_are_alike_are_offered(self, wanted: str, meant: str) -> None:
        models = [LlmModel(id=name, provider="p", base_url="http://h/v1") for name in NAMES]
        message = diagnosis.unknown_model("http://h/v1", wanted, models)
        assert message.startswith(f"http://h/v1 answers, but lists no model '{wanted}'. {meant}")
        assert "It has qwen3:8b, qwen3:0.6b, " in message

    def test_where_none_is_alike_all_are_listed(self) -> None:
        models = [LlmModel(id=f"model-{number}", provider="p", base_url="http://h/v1") for number in range(9)]
        message = diagnosis.unknown_model("http://h/v1", "claude", models)
        assert message == (
            "http://h/v1 answers, but lists no model 'claude'. It has model-0, model-1, model-2, model-3, model-4, …."
        )
