"""Callbacks: what the SDK's session calls when the server asks or says something by itself."""

from __future__ import annotations

import logging
from importlib.metadata import version
from typing import Any

import mcp_types as types
from mcp.client import ClientRequestContext, IncomingMessage
from mcp.shared.dispatcher import ProgressFnT
from pydantic import BaseModel

from yiemagent_nb.core.errors import McpConnectionError, McpError, describe_error
from yiemagent_nb.mcp.link import Inbox, OnProgress, Progress
from yiemagent_nb.mcp.links.server_text import ServerText

__all__ = ["Callbacks", "dump", "progress_reporter"]

_log = logging.getLogger("yiemagent_nb")


class Callbacks:
    """Hands what the server asks and says to an inbox."""

    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox
        self._end: McpConnectionError | None = None

    def options(self) -> dict[str, Any]:
        """The arguments for a session or a client."""
        answers = self._inbox.answers
        options: dict[str, Any] = {
            "message_handler": self.message,
            "client_info": types.Implementation(name="yiemagent_nb", version=version("yiemagent_nb")),
        }
        if answers("sampling/createMessage"):
            options["sampling_callback"] = self.sampling
        if answers("elicitation/create"):
            options["elicitation_callback"] = self.elicitation
        if answers("roots/list"):
            options["list_roots_callback"] = self.roots
        return options

    async def message(self, message: IncomingMessage) -> None:
        """A notification, or a fault of the transport."""
        if isinstance(message, Exception):
            self._inbox.wrote_rubbish(describe_error(message))
            return
        data = dump(message)
        self._inbox.notified(data["method"], data.get("params") or {})

    async def broken(self, error: Exception) -> None:
        """What came is no message: the last word of a transport whose server ended, or rubbish."""
        if isinstance(error, McpConnectionError):
            self._end = error
        else:
            self._inbox.wrote_rubbish(describe_error(error))

    def why_closed(self) -> str:
        """Why the connection ended, in a few words."""
        if self._end is None:
            return "the connection ended"
        return (self._end.message[:1].lower() + self._end.message[1:]).rstrip(".")

    async def sampling(
        self, _context: ClientRequestContext, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult | types.CreateMessageResultWithTools | types.ErrorData:
        """``sampling/createMessage``."""
        answer = await self._ask("sampling/createMessage", params)
        if isinstance(answer, types.ErrorData):
            return answer
        model = types.CreateMessageResultWithTools if isinstance(answer.get("content"), list) else None
        return (model or types.CreateMessageResult).model_validate(answer)

    async def elicitation(
        self, _context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        """``elicitation/create``."""
        answer = await self._ask("elicitation/create", params)
        return answer if isinstance(answer, types.ErrorData) else types.ElicitResult.model_validate(answer)

    async def roots(self, _context: ClientRequestContext) -> types.ListRootsResult | types.ErrorData:
        """``roots/list``."""
        answer = await self._ask("roots/list", None)
        return answer if isinstance(answer, types.ErrorData) else types.ListRootsResult.model_validate(answer)

    async def _ask(self, method: str, params: BaseModel | None) -> dict[str, Any] | types.ErrorData:
        try:
            return await self._inbox.requested(method, {} if params is None else dump(params))
        except McpError as error:
            return types.ErrorData(code=error.rpc_code, message=error.message, data=error.data)


def progress_reporter(on_progress: OnProgress, text: ServerText) -> ProgressFnT:
    """What the session calls with each progress of a request. It never raises."""
    failed = False

    async def report(progress: float, total: float | None, message: str | None) -> None:
        nonlocal failed
        try:
            on_progress(Progress(progress, total, None if message is None else text.mask(message)))
        except Exception:
            if not failed:  # a server may report thousands of times
                _log.exception("on_progress raised; what more it raises in this request is not told")
            failed = True

    return report


def dump(model: BaseModel) -> dict[str, Any]:
    """A message of the SDK as it goes over the wire."""
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)
