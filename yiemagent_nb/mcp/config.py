"""MCP servers from the configuration that other hosts read.

Source of the forms: the documentation of Claude Desktop and Claude Code (``mcpServers``, ``.mcp.json``), VS
Code (``.vscode/mcp.json``), Cursor, Windsurf, Cline, Gemini CLI and Zed. They name the same things
differently; each name that stands for one of ours is understood. What only concerns another host, such
as ``alwaysAllow``, is passed over: who approves is said by this agent's own hooks.
"""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from yiemagent_nb.core.errors import InvalidParametersError, YiemAgentError
from yiemagent_nb.core.validation import format_names, shorten
from yiemagent_nb.mcp.entries import make_server
from yiemagent_nb.mcp.jsonc import read_jsonc
from yiemagent_nb.mcp.server import McpServer
from yiemagent_nb.mcp.variables import Variables

__all__ = ["as_servers", "read_mcp_config"]

_LISTS = ("mcpServers", "servers", "mcp_servers", "context_servers", "amp.mcpServers")
"""What hosts call the object of servers."""

_SINGLE = ("command", "url", "serverUrl", "httpUrl")
"""A mapping with one of these, or with ``nats``, is a server's own entry."""

_TAKEN = (
    "Expected McpServer objects, addresses (https://…, nats://host/topic), configurations (a .json file, or a mapping "
    "with mcpServers), server objects of the mcp package, or callables."
)


def read_mcp_config(
    source: Path | str | Mapping[str, Any],
    *,
    inputs: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
    strict: bool = True,
) -> list[McpServer]:
    """The servers of a configuration, in its order; nothing is started.

    Comments and trailing commas are understood. In texts, ``${NAME}`` and ``${env:NAME}`` are environment
    variables, ``${NAME:-default}`` one with a default, ``${input:id}`` one of ``inputs``; ``${workspaceFolder}``
    is the folder of the file (for ``.vscode/mcp.json`` the one around it), ``${userHome}`` and a leading
    ``~`` the home folder. Headers, what stands in an ``envFile``, passwords among the inputs and variables
    with the names of secrets are kept as ``SecretStr``. A server that the file switches off comes with
    ``enabled=False``. ``timeout`` is seconds, or milliseconds where it is above 3600, since hosts differ.

    Beside what other hosts know, an entry may have ``allow``, ``deny``, ``connect_timeout``, ``roots``,
    ``max_result_characters`` and ``nats: {url, topic, sender_id, binding}``.

    Args:
        source: The path of a file, its text, or what it holds.
        inputs: Values for ``${input:id}``, where the file gives no default.
        environment: Environment variables; default: this process's.
        strict: Whether a wrong entry is an error. Else it is left out, with a warning.

    Raises:
        InvalidParametersError: There is no such file, it is no configuration, or entries of it are wrong:
            the error names each server, field and variable, and shows no value.

    Example::

        servers = read_mcp_config("~/.cursor/mcp.json", inputs={"github-token": SecretStr("…")})
        agent = Agent(mcp_servers=servers)
    """
    data, folder = _load(source)
    entries, asked = _entries(data)
    variables = Variables(os.environ if environment is None else environment, inputs or {}, asked, folder)
    servers: list[McpServer] = []
    problems: list[str] = []
    unknown: list[str] = []
    for name, entry in entries:
        try:
            server, not_known = make_server(name, entry, variables)
        except YiemAgentError as error:
            problems.append(error.message)
            continue
        servers.append(server)
        unknown += [f"{format_names([key])} of {shorten(server.name)}" for key in not_known]
    if unknown:
        warnings.warn(f"The MCP configuration has what is not understood here: {', '.join(unknown)}.", stacklevel=2)
    if problems:
        text = "The MCP configuration cannot be used:\n- " + "\n- ".join(problems)
        if strict:
            raise InvalidParametersError(text, "Mend these, or pass strict=False to leave those servers out.")
        warnings.warn(f"{text}\nThese servers are left out.", stacklevel=2)
    return servers


def _load(source: Path | str | Mapping[str, Any]) -> tuple[object, Path]:
    """What a source holds, and the folder that it is about."""
    if isinstance(source, Mapping):
        return source, Path.cwd()
    if not isinstance(source, str | Path):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidParametersError(f"A configuration is a path, a text or a mapping, not {shorten(source)}.")
    if isinstance(source, str) and source.lstrip("\ufeff \t\r\n").startswith(("{", "//", "/*")):
        return _parse(source, "The text"), Path.cwd()
    path = Path(source).expanduser().absolute()
    try:
        text = path.read_text("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidParametersError(f"{path} is not written in UTF-8.") from None
    except OSError as error:
        raise InvalidParametersError(
            f"The MCP configuration {path} cannot be read: {error.strerror or type(error).__name__}.",
            "Pass the path of a JSON file, its text, or a mapping.",
        ) from None
    folder = path.parent
    return _parse(text, str(path)), folder.parent if folder.name.startswith(".") else folder


def _parse(text: str, what: str) -> object:
    try:
        return read_jsonc(text)
    except ValueError as error:
        raise InvalidParametersError(f"{what} is no JSON: {error}.") from None


def _entries(data: object) -> tuple[list[tuple[str | None, object]], dict[str, Mapping[str, Any]]]:
    """The entries of servers by name, and the definitions of inputs by id."""
    fields: Mapping[str, Any] = cast("Mapping[str, Any]", data) if isinstance(data, Mapping) else {}
    settings: object = fields.get("mcp")
    inner: Mapping[str, Any] = cast("Mapping[str, Any]", settings) if isinstance(settings, Mapping) else {}
    definitions = {str(each.get("id")): each for part in (fields, inner) for each in _mappings(part.get("inputs"))}
    if any(isinstance(fields.get(key), str | list) for key in _SINGLE) or "nats" in fields:
        return [(None, fields)], definitions
    sections = [
        cast("Mapping[str, object]", part[key])
        for part in (fields, inner)
        for key in _LISTS
        if isinstance(part.get(key), Mapping)
    ]
    found: list[tuple[str | None, object]] = [item for section in sections for item in section.items()]
    if not sections:  # the servers stand there without an object around them, as in plugins of Claude Code
        found = [(name, entry) for name, entry in (inner or fields).items() if _looks_like_entry(entry)]
    if not sections and not found:
        raise InvalidParametersError(
            "This is no MCP configuration: it names no servers.",
            'Expected {"mcpServers": {"name": {"command": "…", "args": […]}}}, or "servers" as VS Code has it.',
        )
    return found, definitions


def _mappings(items: object) -> Iterator[Mapping[str, Any]]:
    if isinstance(items, list):
        yield from (
            cast("Mapping[str, Any]", item) for item in cast("list[object]", items) if isinstance(item, Mapping)
        )


def _looks_like_entry(entry: object) -> bool:
    return isinstance(entry, Mapping) and any(key in entry for key in (*_SINGLE, "nats"))


# --- What an agent takes -----------------------------------------------------------------------


def as_servers(items: Iterable[Any]) -> list[McpServer]:
    """Servers of what ``Agent(mcp_servers=…)`` takes.

    ``McpServer`` objects; addresses of HTTP and, as ``nats://host:port/topic``, of NATS; whatever
    ``read_mcp_config`` reads (texts that end in ``.json``, paths, mappings); server objects of the ``mcp``
    package; transports; any other callable.

    Raises:
        InvalidParametersError: One of them is none of these.
    """
    if isinstance(items, str | Path | Mapping | McpServer) or not isinstance(items, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        items = [items]
    return [server for item in items for server in _as_servers(item)]


def _as_servers(item: Any) -> Sequence[McpServer]:
    if isinstance(item, McpServer):
        return (item,)
    if isinstance(item, str):
        return _from_text(item.strip())
    if isinstance(item, Path | Mapping):
        return read_mcp_config(cast("Path | Mapping[str, Any]", item))
    if isinstance(item, list | tuple):
        return as_servers(cast("list[object]", item))
    if (made := _from_sdk(item)) is not None:
        return (made,)
    if not isinstance(item, type) and (callable(item) or callable(getattr(item, "open", None))):
        return (McpServer(item),)
    raise InvalidParametersError(f"{shorten(item)} is no MCP server.", _TAKEN)


def _from_text(text: str) -> Sequence[McpServer]:
    if text.startswith("{") or text.endswith((".json", ".jsonc")):
        return read_mcp_config(text)
    scheme, _, rest = text.partition("://")
    maker = _BY_SCHEME.get(scheme.lower()) if rest else None
    if maker is None:
        raise InvalidParametersError(f"{shorten(text)} is no address of an MCP server.", _TAKEN)
    return (maker(text),)


def _from_address(url: str) -> McpServer:
    is_sse = re.search(r"/sse/?$", urlsplit(url).path) is not None
    return McpServer.sse(url) if is_sse else McpServer.http(url)


def _from_nats_address(url: str) -> McpServer:
    parts = urlsplit(url)
    topic = parts.path.strip("/")
    if not topic:
        raise InvalidParametersError(
            "An address of NATS needs the topic on which the server listens.", "Write nats://host:4222/topic."
        )
    return McpServer.nats(f"{parts.scheme}://{parts.netloc}", topic)


_BY_SCHEME: Mapping[str, Callable[[str], McpServer]] = {
    **dict.fromkeys(("http", "https"), _from_address),
    **dict.fromkeys(("nats", "tls"), _from_nats_address),
}


def _from_sdk(item: object) -> McpServer | None:
    """A server for an object of the SDK, or for one of another library that holds such an object."""
    if "mcp.server" not in sys.modules:  # then nobody can have made one, and it is slow to import
        return None
    from mcp.server import MCPServer, Server  # noqa: PLC0415

    held: object = getattr(item, "_mcp_server", None)  # fastmcp's
    for each in (item, held):
        if isinstance(each, MCPServer | Server):
            return McpServer.in_process(cast("Server[Any]", each))
    return None
