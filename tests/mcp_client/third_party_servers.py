"""How each server that no one here wrote is started, and what its tools are called with."""

from __future__ import annotations

import asyncio
import os
import re
import socket
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from yiemagent_nb import McpServer

__all__ = ["EVERYTHING", "SERVERS", "Call", "Place", "ThirdParty", "everything_command", "everything_listening"]

PUBLISHED = "@modelcontextprotocol"
"""Where the servers of the protocol's own makers stand among the Node packages."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where the servers are, and what they find.

    Args:
        node: The program of Node.js.
        node_servers: The installed Node packages.
        python_servers: The programs of the servers in Python.
        older_python_servers: Those on the first major version of the official SDK.
        folder: Has ``notes.txt``, ``picture.png``, ``sound.wav``, and a git repository ``repository``.
        site: The address of a small web site.
    """

    node: Path
    node_servers: Path
    python_servers: Path
    older_python_servers: Path
    folder: Path
    site: str

    def node_command(self, package: str, *arguments: str | Path) -> tuple[str | Path, ...]:
        """The command of a server on Node."""
        return (self.node, _script(self.node_servers, package), *arguments)


def _script(node_servers: Path, package: str) -> Path:
    return node_servers / PUBLISHED / package / "dist" / "index.js"


def everything_command(node: Path, node_servers: Path) -> tuple[Path, Path]:
    """The command of the reference server over stdio."""
    return node, _script(node_servers, "server-everything")


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a tool, and a text that its result has.

    Args:
        tool: Its name at the server.
        text: Stands in the result.
        arguments: What it is called with.
        blocks: The types of what the server gave beside plain text.
        structured: Whether the result is structured too.
        is_error: Whether it should be refused.
    """

    tool: str
    text: str
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    blocks: tuple[str, ...] = ()
    structured: bool = False
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class ThirdParty:
    """A server.

    Args:
        connect: Starts what has to be started, and gives the server.
        calls: Calls each of its tools once at least, in this order.
    """

    connect: Callable[[Place], AbstractAsyncContextManager[McpServer]]
    calls: Callable[[Place], list[Call]]


@asynccontextmanager
async def _connected(server: McpServer) -> AsyncGenerator[McpServer]:
    async with server:
        yield server


def _on_node(package: str, name: str, *arguments: str) -> Callable[[Place], AbstractAsyncContextManager[McpServer]]:
    """A server on Node over stdio; ``{folder}`` in an argument is the place's folder."""

    def connect(place: Place) -> AbstractAsyncContextManager[McpServer]:
        filled = [argument.format(folder=place.folder) for argument in arguments]
        environment = {"MEMORY_FILE_PATH": str(place.folder / "memory.jsonl")}
        return _connected(McpServer.stdio(*place.node_command(package, *filled), name=name, env=environment))

    return connect


def _on_python(program: str, name: str, *arguments: str) -> Callable[[Place], AbstractAsyncContextManager[McpServer]]:
    def connect(place: Place) -> AbstractAsyncContextManager[McpServer]:
        return _connected(McpServer.stdio(place.python_servers / program, *arguments, name=name))

    return connect


@asynccontextmanager
async def _listening(
    *command: str | Path, says: str, env: Mapping[str, str] | None = None
) -> AsyncGenerator[re.Match[str]]:
    """Run a server until the end of the block; gives what it said of where it listens."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, **(env or {})},
    )
    assert process.stderr is not None
    lines: list[str] = []
    try:
        while (found := re.search(says, "".join(lines))) is None:
            line = await process.stderr.readline()
            assert line, f"{command[0]} ended: {''.join(lines)}"
            lines.append(line.decode(errors="replace"))
        rest = asyncio.create_task(process.stderr.read())  # so that it never waits for a reader
        yield found
        process.terminate()
        await rest
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@asynccontextmanager
async def everything_listening(command: Sequence[str | Path], mode: str) -> AsyncGenerator[str]:
    """The reference server at a port that was free; it does not choose one itself.

    Args:
        command: Its command.
        mode: ``streamableHttp`` or ``sse``.
    """
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    async with _listening(*command, mode, says=r"(listening|running) on port", env={"PORT": str(port)}):
        yield f"http://127.0.0.1:{port}"


@asynccontextmanager
async def _everything_over_stdio(place: Place, **options: Any) -> AsyncGenerator[McpServer]:
    command = everything_command(place.node, place.node_servers)
    async with McpServer.stdio(*command, name="everything", env={"FROM_THE_TEST": "yes"}, **options) as server:
        yield server


@asynccontextmanager
async def _everything_over_http(place: Place, **options: Any) -> AsyncGenerator[McpServer]:
    async with (
        everything_listening(everything_command(place.node, place.node_servers), "streamableHttp") as address,
        McpServer.http(f"{address}/mcp", name="everything", **options) as server,
    ):
        yield server


@asynccontextmanager
async def _everything_over_sse(place: Place, **options: Any) -> AsyncGenerator[McpServer]:
    async with (
        everything_listening(everything_command(place.node, place.node_servers), "sse") as address,
        McpServer.sse(f"{address}/sse", name="everything", **options) as server,
    ):
        yield server


@asynccontextmanager
async def _sqlite_over_stdio(place: Place) -> AsyncGenerator[McpServer]:
    program = place.older_python_servers / "mcp-server-sqlite"
    async with McpServer.stdio(program, "--db-path", place.folder / "stdio.db", name="sqlite") as server:
        yield server


@asynccontextmanager
async def _sqlite_behind_a_proxy(place: Place, *, sse: bool = False) -> AsyncGenerator[McpServer]:
    """A server that knows stdio only, behind another that brings it to HTTP."""
    programs = place.older_python_servers
    served = (programs / "mcp-server-sqlite", "--db-path", place.folder / f"{'sse' if sse else 'http'}.db")
    command = (programs / "mcp-proxy", "--port", "0", "--", *served)
    async with _listening(*command, says=r"Uvicorn running on (\S+)") as found:
        server = McpServer.sse(f"{found[1]}/sse") if sse else McpServer.http(f"{found[1]}/mcp")
        async with server:
            yield server


@asynccontextmanager
async def _duckdb_over_http(place: Place) -> AsyncGenerator[McpServer]:
    program = place.python_servers / "mcp-server-motherduck"
    options = ("--transport", "http", "--port", "0", "--read-write", "--allow-switch-databases")
    async with (
        _listening(program, *options, says=r"Uvicorn running on (\S+)", env={"NO_COLOR": "1"}) as found,
        McpServer.http(f"{found[1]}/mcp", name="duckdb") as server,
    ):
        yield server


EVERYTHING: Mapping[str, Callable[..., AbstractAsyncContextManager[McpServer]]] = {
    "stdio": _everything_over_stdio,
    "HTTP": _everything_over_http,
    "SSE": _everything_over_sse,
}
"""The reference server, which exercises the whole protocol: takes a place, and options of ``McpServer``."""


def _answering(transport: str) -> Callable[[Place], AbstractAsyncContextManager[McpServer]]:
    """The reference server with someone who answers what it asks, without an agent or a person."""

    def sample(_params: Mapping[str, Any]) -> str:
        return "a sampled answer"

    def elicit(_message: str, _schema: Mapping[str, Any] | None, url: str = "") -> dict[str, Any] | bool:
        return True if url else {"name": "Ada"}

    def connected(place: Place) -> AbstractAsyncContextManager[McpServer]:
        return EVERYTHING[transport](place, roots=[place.folder], on_sampling=sample, on_elicitation=elicit)

    return connected


def _everything_calls(place: Place) -> list[Call]:
    page = "data:text/plain,hello"
    url = {"url": f"{place.site}/", "message": "Look at this.", "elicitationId": "1"}
    return [
        Call("echo", "Echo: hello", {"message": "hello"}),
        Call("get-annotated-message", "Error: Operation failed", {"messageType": "error"}),
        Call(
            "get-annotated-message",
            "meant for the person alone",
            {"messageType": "debug", "includeImage": True},
            ("image",),
        ),
        Call("get-env", "PATH"),
        Call("get-resource-links", "demo://resource/dynamic/blob/1", {"count": 2}, ("resource_link",) * 2),
        Call("get-resource-reference", "This is a plaintext resource", {"resourceType": "Text"}, ("resource",)),
        Call("get-resource-reference", "text/plain", {"resourceType": "Blob"}, ("resource",)),
        Call("get-structured-content", "temperature", {"location": "Chicago"}, structured=True),
        Call("get-sum", "The sum of 2 and 3 is 5.", {"a": 2, "b": 3}),
        Call("get-tiny-image", "the MCP logo", blocks=("image",)),
        Call(
            "gzip-file-as-resource",
            "application/gzip",
            {"name": "a.gz", "data": page, "outputType": "resource"},
            ("resource",),
        ),
        Call(
            "gzip-file-as-resource", "demo://resource/session/b.gz", {"name": "b.gz", "data": page}, ("resource_link",)
        ),
        Call("toggle-simulated-logging", "Started simulated"),
        Call("toggle-simulated-logging", "Stopped simulated logging"),
        Call("toggle-subscriber-updates", "Started simulated resource updated"),
        Call("toggle-subscriber-updates", "Stopped simulated resource updates"),
        Call("trigger-long-running-operation", "completed", {"duration": 0.1, "steps": 2}),
        Call("get-roots-list", place.folder.as_uri()),
        Call("trigger-sampling-request", "a sampled answer", {"prompt": "Say something.", "maxTokens": 20}),
        Call("trigger-elicitation-request", "- Name: Ada"),
        Call("trigger-url-elicitation", "User completed the URL elicitation flow", url),
    ]


def _filesystem_calls(place: Place) -> list[Call]:
    folder = place.folder / "files"
    notes, copy = str(folder / "notes.txt"), str(folder / "copy.txt")
    edits = [{"oldText": "first", "newText": "1st"}]
    return [
        Call("list_allowed_directories", str(folder), structured=True),
        Call("read_file", "the first line", {"path": notes}, structured=True),
        Call("read_text_file", "the second line", {"path": notes, "tail": 2}, structured=True),
        Call("read_media_file", "", {"path": str(folder / "picture.png")}, ("image",), structured=True),
        Call("read_media_file", "Audio, audio/wav", {"path": str(folder / "sound.wav")}, ("audio",), structured=True),
        Call("read_multiple_files", "the first line", {"paths": [notes]}, structured=True),
        Call("write_file", "copy.txt", {"path": copy, "content": "the first copy"}, structured=True),
        Call("edit_file", "+the 1st copy", {"path": copy, "edits": edits}, structured=True),
        Call("create_directory", "new", {"path": str(folder / "new")}, structured=True),
        Call("move_file", "moved", {"source": copy, "destination": str(folder / "new" / "c.txt")}, structured=True),
        Call("list_directory", "[FILE] notes.txt", {"path": str(folder)}, structured=True),
        Call("list_directory_with_sizes", "notes.txt", {"path": str(folder), "sortBy": "size"}, structured=True),
        Call("directory_tree", '"c.txt"', {"path": str(folder)}, structured=True),
        Call("search_files", "c.txt", {"path": str(folder), "pattern": "**/c*"}, structured=True),
        Call("get_file_info", "size", {"path": notes}, structured=True),
        Call("read_text_file", "Access denied", {"path": "/etc/hostname"}, is_error=True),
    ]


def _memory_calls(_: Place) -> list[Call]:
    ada = {"name": "Ada", "entityType": "person", "observations": ["wrote the first program"]}
    engine: dict[str, Any] = {"name": "Engine", "entityType": "machine", "observations": []}
    worked_on = {"from": "Ada", "to": "Engine", "relationType": "worked on"}
    more = [{"entityName": "Ada", "contents": ["was a countess"]}]
    less = [{"entityName": "Ada", "observations": ["was a countess"]}]
    return [
        Call("create_entities", "Ada", {"entities": [ada, engine]}, structured=True),
        Call("create_relations", "worked on", {"relations": [worked_on]}, structured=True),
        Call("add_observations", "was a countess", {"observations": more}, structured=True),
        Call("read_graph", "was a countess", structured=True),
        Call("search_nodes", "wrote the first program", {"query": "program"}, structured=True),
        Call("open_nodes", "machine", {"names": ["Engine"]}, structured=True),
        Call("delete_observations", "deleted", {"deletions": less}, structured=True),
        Call("delete_relations", "deleted", {"relations": [worked_on]}, structured=True),
        Call("delete_entities", "deleted", {"entityNames": ["Ada", "Engine"]}, structured=True),
    ]


def _thinking_calls(_: Place) -> list[Call]:
    thought = {"thought": "It is simple.", "nextThoughtNeeded": False, "thoughtNumber": 1, "totalThoughts": 1}
    return [Call("sequentialthinking", '"thoughtNumber": 1', thought, structured=True)]


def _time_calls(_: Place) -> list[Call]:
    noon = {"source_timezone": "Europe/Lisbon", "time": "12:00", "target_timezone": "Asia/Tokyo"}
    return [
        Call("get_current_time", "Europe/Lisbon", {"timezone": "Europe/Lisbon"}, structured=True),
        Call("convert_time", "Asia/Tokyo", noon, structured=True),
    ]


def _git_calls(place: Place) -> list[Call]:
    repository = {"repo_path": str(place.folder / "repository")}
    return [
        Call("git_status", "poem.txt", repository),
        Call("git_diff_unstaged", "+a second line", repository),
        Call("git_add", "staged", {**repository, "files": ["poem.txt"]}),
        Call("git_diff_staged", "+a second line", repository),
        Call("git_reset", "reset", repository),
        Call("git_add", "staged", {**repository, "files": ["poem.txt"]}),
        Call("git_commit", "committed", {**repository, "message": "A longer poem"}),
        Call("git_log", "A longer poem", {**repository, "max_count": 1}),
        Call("git_show", "+a second line", {**repository, "revision": "HEAD"}),
        Call("git_diff", "a second line", {**repository, "target": "HEAD~1"}),
        Call("git_create_branch", "draft", {**repository, "branch_name": "draft"}),
        Call("git_checkout", "draft", {**repository, "branch_name": "draft"}),
        Call("git_branch", "draft", {**repository, "branch_type": "local"}),
    ]


def _fetch_calls(place: Place) -> list[Call]:
    return [
        Call("fetch", "The tide comes twice a day", {"url": f"{place.site}/index.html"}),
        Call("fetch", "robots.txt", {"url": f"{place.site}/private.html"}, is_error=True),
    ]


def _sqlite_calls(_: Place) -> list[Call]:
    return [
        Call("create_table", "created", {"query": "create table tides (port text, metres real)"}),
        Call("write_query", "1", {"query": "insert into tides values ('Saint-Malo', 12.2)"}),
        Call("read_query", "Saint-Malo", {"query": "select * from tides"}),
        Call("list_tables", "tides"),
        Call("describe_table", "metres", {"table_name": "tides"}),
        Call("append_insight", "added", {"insight": "The tide at Saint-Malo is high."}),
        Call("read_query", "no such table", {"query": "select * from currents"}),
    ]


def _duckdb_calls(place: Place) -> list[Call]:
    other = {"path": str(place.folder / "other.duckdb"), "create_if_not_exists": True}
    return [
        Call("execute_query", "", {"sql": "create table tides (port text, metres double)"}, structured=True),
        Call("execute_query", "Saint-Malo", {"sql": "select 'Saint-Malo' as port"}, structured=True),
        Call("list_databases", "memory", structured=True),
        Call("list_tables", "tides", structured=True),
        Call("list_columns", "metres", {"table": "tides"}, structured=True),
        Call("switch_database_connection", "other", other, structured=True),
    ]


SERVERS: Mapping[str, ThirdParty] = {
    "everything over stdio": ThirdParty(_answering("stdio"), _everything_calls),
    "everything over HTTP": ThirdParty(_answering("HTTP"), _everything_calls),
    "everything over SSE": ThirdParty(_answering("SSE"), _everything_calls),
    "filesystem": ThirdParty(_on_node("server-filesystem", "filesystem", "{folder}/files"), _filesystem_calls),
    "memory": ThirdParty(_on_node("server-memory", "memory"), _memory_calls),
    "sequential thinking": ThirdParty(_on_node("server-sequential-thinking", "thinking"), _thinking_calls),
    "time": ThirdParty(_on_python("mcp-server-time", "time"), _time_calls),
    "git": ThirdParty(_on_python("mcp-server-git", "git"), _git_calls),
    "fetch": ThirdParty(_on_python("mcp-server-fetch", "fetch", "--allow-private-ips"), _fetch_calls),
    "sqlite over stdio": ThirdParty(_sqlite_over_stdio, _sqlite_calls),
    "sqlite over HTTP": ThirdParty(_sqlite_behind_a_proxy, _sqlite_calls),
    "sqlite over SSE": ThirdParty(lambda place: _sqlite_behind_a_proxy(place, sse=True), _sqlite_calls),
    "duckdb over HTTP": ThirdParty(_duckdb_over_http, _duckdb_calls),
}
