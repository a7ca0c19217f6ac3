"""SdkLink: a link over the official SDK's client session.

The SDK frames, negotiates and correlates. Results are passed on as they came: the SDK checks them
against the protocol's types and refuses a whole answer for one wrong part, where everything above a
link reads what is there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import Any, cast

import mcp_types as types
from mcp.client import ClientRequestContext, ClientSession
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, RootModel, TypeAdapter, ValidationError

from yiemagent_nb.core.errors import McpConnectionError, McpError, McpTimeoutError
from yiemagent_nb.core.validation import format_path
from yiemagent_nb.mcp.link import Inbox, OnProgress, ServerInfo
from yiemagent_nb.mcp.links.sdk_callbacks import dump, progress_reporter
from yiemagent_nb.mcp.links.sdk_dispatcher import Tap, first_problem
from yiemagent_nb.mcp.links.sdk_logging import speaking_for
from yiemagent_nb.mcp.links.server_text import ServerText

__all__ = ["SdkLink", "as_mcp_error", "is_closed"]

MAX_ROUNDS = 10
"""How often a server may ask for input before it must give the result."""

_RawRequest = types.Request[dict[str, Any] | None, str]
_RawNotification = types.Notification[dict[str, Any] | None, str]
_RawResult = RootModel[dict[str, Any]]


class SdkLink:
    """A link over a client session.

    Args:
        session: The SDK's session, after the handshake.
        tap: What is below it; None where that is out of reach, as for a server in this process.
        inbox: Takes what the SDK warns of.
        text: Makes what the server writes fit for errors.
        why_closed: Says why the connection ended.
    """

    def __init__(
        self,
        session: ClientSession,
        tap: Tap | None,
        inbox: Inbox,
        text: ServerText,
        why_closed: Callable[[], str] | None = None,
    ) -> None:
        self._session = session
        self._tap = tap
        self._inbox = inbox
        self._text = text
        self._why_closed = why_closed
        self._closed = asyncio.Event() if tap is None else tap.closed
        self.subscribed: set[str] = set()
        """The resources whose changes are wanted, in the stateless protocol."""
        self.subscriptions_changed = asyncio.Event()

    @property
    def info(self) -> ServerInfo:
        """What the server says of itself."""
        session = self._session
        capabilities = session.server_capabilities
        about = session.server_info
        return ServerInfo(
            name="" if about is None else about.name,
            version="" if about is None else about.version,
            protocol=session.protocol_version or "",
            capabilities={} if capabilities is None else dump(capabilities),
            instructions=session.instructions or "",
        )

    @property
    def stateless(self) -> bool:
        """Whether the protocol is the stateless one."""
        return self._session.protocol_version in MODERN_PROTOCOL_VERSIONS

    @property
    def session(self) -> ClientSession:
        """The SDK's session."""
        return self._session

    @property
    def silence(self) -> str:
        """See ``Link``."""
        return ""

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - the server is told when the time is over
        on_progress: OnProgress | None = None,
    ) -> dict[str, Any]:
        """See ``Link``."""
        if self.stateless and method in ("resources/subscribe", "resources/unsubscribe"):
            return self._change_subscription(method, str((params or {}).get("uri", "")))
        data = dict(params or {})
        _check_numbers(data, method)
        progress = None if on_progress is None else progress_reporter(on_progress, self._text)
        with speaking_for(self._inbox):
            try:
                return self._text.result(await self._finished(method, data, timeout, progress))
            except MCPError as error:
                raise self._as_error(error, method) from None  # its text is the server's, keys and all
            except TimeoutError as error:
                raise McpTimeoutError(f"The server did not answer {method} in time.") from error

    async def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """See ``Link``."""
        _check_numbers(params, method)
        notification = _RawNotification(method=method, params=None if params is None else dict(params))
        with speaking_for(self._inbox):
            await self._session.send_notification(cast("types.ClientNotification", notification))

    async def wait_closed(self) -> str:
        """See ``Link``."""
        await self._closed.wait()
        return "the connection ended" if self._why_closed is None else self._why_closed()

    async def _finished(
        self, method: str, data: dict[str, Any], seconds: float | None, progress: ProgressFnT | None
    ) -> dict[str, Any]:
        """Send a request, and answer what the server asks until it gives the result."""
        result = await self._send(method, data, seconds, progress)
        for round_number in range(MAX_ROUNDS):
            if result.get("resultType") != "input_required":
                return result
            answers = await self._answer_inputs(result, round_number)
            state = result.get("requestState")
            more = {"inputResponses": answers, **({} if state is None else {"requestState": state})}
            result = await self._send(method, {**data, **more}, seconds, progress)
        if result.get("resultType") != "input_required":
            return result
        raise McpError(f"The server asked for input {MAX_ROUNDS} times and gave no result to {method}.")

    async def _send(
        self, method: str, params: dict[str, Any], seconds: float | None, progress: ProgressFnT | None
    ) -> dict[str, Any]:
        try:
            return await self._send_once(method, params, seconds, progress)
        except MCPError as error:
            if error.code != types.HEADER_MISMATCH or method != "tools/call" or not self.stateless:
                raise
        # The server wants arguments repeated in headers that only the tool's newest schema names.
        await self._list_until(str(params.get("name")), seconds)
        return await self._send_once(method, params, seconds, progress)

    async def _send_once(
        self, method: str, params: dict[str, Any], seconds: float | None, progress: ProgressFnT | None
    ) -> dict[str, Any]:
        tap = self._tap
        if tap is not None:
            tap.newest = {}
        try:
            if method == "tools/list" and self.stateless and tap is not None:
                async with asyncio.timeout(seconds):
                    return await self._list_tools(params, tap)
            result = await self._session.send_request(
                _RawRequest(method=method, params=params or None),
                _RawResult,
                request_read_timeout_seconds=seconds,
                progress_callback=progress,
            )
        except ValidationError as error:
            if tap is not None and tap.newest:
                return tap.newest
            raise McpError(
                f"The server's answer to {method} has not the form of MCP: {first_problem(error)}."
            ) from None
        return result.root

    async def _list_tools(self, params: dict[str, Any], tap: Tap) -> dict[str, Any]:
        """List a page through the session, which learns from it what calls must repeat in headers."""
        page = await self._session.list_tools(params=types.PaginatedRequestParams(cursor=params.get("cursor")))
        kept = {tool.name for tool in page.tools}
        raw = dict(tap.newest)
        raw["tools"] = [tool for tool in raw.get("tools", []) if tool.get("name") in kept]
        return raw

    async def _list_until(self, name: str, seconds: float | None) -> None:
        cursor: str | None = None
        async with asyncio.timeout(seconds):
            for _ in range(100):
                page = await self._session.list_tools(params=types.PaginatedRequestParams(cursor=cursor))
                cursor = page.next_cursor
                if cursor is None or any(tool.name == name for tool in page.tools):
                    return

    async def _answer_inputs(self, result: Mapping[str, Any], round_number: int) -> dict[str, Any]:
        """Answer what the server asks before it gives the result."""
        wanted: object = result.get("inputRequests")
        requests = cast("dict[str, dict[str, Any]]", wanted) if isinstance(wanted, dict) else {}
        if not requests:
            await asyncio.sleep(min(0.05 * 2**round_number, 0.25))
            return {}
        adapter: TypeAdapter[types.InputRequest] = TypeAdapter(types.InputRequest)
        try:
            parsed = {key: adapter.validate_python(request) for key, request in requests.items()}
        except ValidationError as error:
            raise McpError(
                f"The server asks for input in a form that MCP does not know: {first_problem(error)}."
            ) from None
        contexts = {key: ClientRequestContext(session=self._session, request_id=key) for key in parsed}
        async with asyncio.TaskGroup() as group:
            tasks = {
                key: group.create_task(self._session.dispatch_input_request(contexts[key], request))
                for key, request in parsed.items()
            }
        answers = {key: task.result() for key, task in tasks.items()}
        for answer in answers.values():
            if isinstance(answer, types.ErrorData):
                raise McpError(answer.message, rpc_code=answer.code, data=answer.data)
        return {key: dump(cast("BaseModel", answer)) for key, answer in answers.items()}

    def _change_subscription(self, method: str, uri: str) -> dict[str, Any]:
        change = self.subscribed.add if method == "resources/subscribe" else self.subscribed.discard
        change(uri)
        self.subscriptions_changed.set()
        return {}

    def _as_error(self, error: MCPError, method: str) -> McpError:
        if error.code == types.CONNECTION_CLOSED and self._closed.is_set():
            return McpConnectionError(f"The server went away during {method}.", data=self._text.data(error.data))
        return as_mcp_error(error, method, self._text)


def is_closed(error: MCPError) -> bool:
    """Whether the connection ended. Servers use its code too, such as for a request before the handshake."""
    return error.code == types.CONNECTION_CLOSED and error.message == "Connection closed"


def as_mcp_error(error: MCPError, what: str, text: ServerText) -> McpError:
    """The SDK's error as one of ours."""
    data = text.data(error.data)
    if is_closed(error):
        return McpConnectionError(f"The server went away during {what}.", data=data)
    if error.code == types.REQUEST_TIMEOUT:
        return McpTimeoutError(f"The server did not answer {what} in time.", data=data)
    return McpError(text.message(error.message), rpc_code=error.code, data=data)


def _check_numbers(params: Mapping[str, Any] | None, method: str) -> None:
    """See that all numbers can be sent.

    Raises:
        McpError: One is no finite number; the SDK would send null in its place.
    """
    try:
        found = _not_finite(params, ())
    except RecursionError:
        raise McpError(f"{method} was not sent: its params are nested too deeply.", rpc_code=INVALID_PARAMS) from None
    if found is not None:
        path, number = found
        raise McpError(
            f"{method} was not sent: {format_path(path)} is {number}, which JSON cannot hold.",
            "Give a finite number, or None where there is no value.",
            rpc_code=INVALID_PARAMS,
        )


_WITHOUT_FRACTIONS = (str, int, bool, type(None))
"""The types of most arguments, which need no further look."""


def _not_finite(value: object, path: tuple[object, ...]) -> tuple[tuple[object, ...], float] | None:
    """The first number that is none, and where it stands."""
    if isinstance(value, float):
        return None if isfinite(value) else (path, value)
    if isinstance(value, Mapping):
        parts = cast("Mapping[object, object]", value).items()
    elif isinstance(value, list | tuple):
        parts = enumerate(cast("Sequence[object]", value))
    else:
        return None
    for key, part in parts:
        if type(part) not in _WITHOUT_FRACTIONS and (found := _not_finite(part, (*path, key))) is not None:
            return found
    return None
