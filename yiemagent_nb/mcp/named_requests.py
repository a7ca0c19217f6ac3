"""What MCP's methods take and give: the requests of a server, each with a name of its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, cast

from yiemagent_nb.core.errors import InvalidParametersError
from yiemagent_nb.core.validation import shorten
from yiemagent_nb.mcp.discovery import walk_pages
from yiemagent_nb.mcp.link import OnProgress

__all__ = ["NamedRequests", "params_of"]


class NamedRequests(ABC):
    """The methods of MCP as methods of Python. All of them raise what ``request`` raises."""

    @abstractmethod
    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - the server is told when the time is over
        on_progress: OnProgress | None = None,
    ) -> dict[str, Any]:
        """Send a request; returns its raw result."""

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,  # noqa: ASYNC109
        on_progress: OnProgress | None = None,
    ) -> dict[str, Any]:
        """Call a tool by its name at the server; returns the raw ``CallToolResult``.

        Raises:
            McpError: As for ``request``. A tool that fails says so in its result (``isError``).
        """
        if arguments is not None and not isinstance(cast("object", arguments), Mapping):
            raise InvalidParametersError(
                f"The arguments of {name} must be a mapping of names to values, not {shorten(arguments)}."
            )
        params = {"name": name, "arguments": dict(arguments or {})}
        return await self.request("tools/call", params, timeout=timeout, on_progress=on_progress)

    async def list_tools(self) -> list[dict[str, Any]]:
        """The definitions of all tools, page after page, ``allow`` and ``deny`` left aside."""
        return await self._list("tools/list", "tools")

    async def list_resources(self) -> list[dict[str, Any]]:
        """All resources."""
        return await self._list("resources/list", "resources")

    async def list_resource_templates(self) -> list[dict[str, Any]]:
        """All templates of resources."""
        return await self._list("resources/templates/list", "resourceTemplates")

    async def list_prompts(self) -> list[dict[str, Any]]:
        """All prompts."""
        return await self._list("prompts/list", "prompts")

    async def read_resource(self, uri: str) -> list[dict[str, Any]]:
        """The contents of a resource: each has ``uri`` and ``text`` or ``blob`` (base64)."""
        return cast("list[dict[str, Any]]", (await self.request("resources/read", {"uri": uri})).get("contents", []))

    async def subscribe_resource(self, uri: str) -> None:
        """Ask to be told when a resource changes: a ``ServerEvent`` of kind ``resource_updated``."""
        await self.request("resources/subscribe", {"uri": uri})

    async def unsubscribe_resource(self, uri: str) -> None:
        """Take that back."""
        await self.request("resources/unsubscribe", {"uri": uri})

    async def get_prompt(self, name: str, arguments: Mapping[str, str] | None = None) -> dict[str, Any]:
        """A prompt filled in: ``messages`` and perhaps a ``description``."""
        return await self.request("prompts/get", {"name": name, "arguments": dict(arguments or {})})

    async def complete(
        self, ref: Mapping[str, Any], name: str, value: str, context: Mapping[str, str] | None = None
    ) -> list[str]:
        """What may stand for an argument of a prompt or a template.

        Args:
            ref: ``{"type": "ref/prompt", "name": …}`` or ``{"type": "ref/resource", "uri": …}``.
            name: The argument.
            value: What has been written of it.
            context: The other arguments, as far as they are known.
        """
        params: dict[str, Any] = {"ref": dict(ref), "argument": {"name": name, "value": value}}
        if context:
            params["context"] = {"arguments": dict(context)}
        answer = (await self.request("completion/complete", params)).get("completion", {})
        return [str(value) for value in answer.get("values", [])]

    async def set_log_level(self, level: str) -> None:
        """Say from which level on the server should send log messages: ``debug`` to ``emergency``."""
        await self.request("logging/setLevel", {"level": level})

    async def _list(self, method: str, key: str) -> list[dict[str, Any]]:
        listing = await walk_pages(self.request, method, key)
        return list(listing.items)


def params_of(method: str, arguments: tuple[Any, ...]) -> dict[str, Any]:
    """The params that positional arguments of a server stand for.

    Raises:
        InvalidParametersError: They do not fit the method, or that is no text.
    """
    if not isinstance(cast("object", method), str) or not method:
        raise InvalidParametersError(f"A method of MCP is a text such as 'tools/list', not {shorten(method)}.")
    if len(arguments) == 1 and isinstance(arguments[0], Mapping):
        return dict(cast("Mapping[str, Any]", arguments[0]))
    names = _POSITIONAL.get(method, ())
    if len(arguments) > len(names):
        takes = f"{', '.join(names)}, or its params as one mapping" if names else "its params as one mapping"
        raise InvalidParametersError(f"{method} takes {takes}; {len(arguments)} arguments were given.")
    return {name: value for name, value in zip(names, arguments, strict=False) if value is not None}


_POSITIONAL: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("tools/list", "resources/list", "resources/templates/list", "prompts/list"), ("cursor",)),
    **dict.fromkeys(("resources/read", "resources/subscribe", "resources/unsubscribe"), ("uri",)),
    "tools/call": ("name", "arguments", "sessionId"),
    "prompts/get": ("name", "arguments"),
    "logging/setLevel": ("level",),
}
