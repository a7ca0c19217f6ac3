"""The public conformance suite for clients, driven through the public interface."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp_client.conformance import client

from yiemagent_nb.core.errors import McpError, describe_error

FOLDER = Path(__file__).with_name("conformance")
EXPECTED: dict[str, dict[str, str] | list[str]] = json.loads((FOLDER / "expected.json").read_text("utf-8"))
SUMMARY = re.compile(r"^(✓|✗) (\S+): (\d+) passed, (\d+) failed", re.MULTILINE)
AT_ONCE = 6
"""Scenarios that run at once; some measure pauses."""


@asynccontextmanager
async def driver(ends: dict[str, str]) -> AsyncGenerator[int]:
    """Runs the scenarios that come to a port; how each one ended is noted."""
    turn = asyncio.Semaphore(AT_ONCE)

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task: dict[str, Any] = json.loads(await reader.readline())
        code = 0
        async with turn:
            try:
                await client.run(task["scenario"], task["url"], task["context"])
            except McpError as error:
                ends[task["scenario"]] = describe_error(error)
                code = 1
        writer.write(str(code).encode())
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(take, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


@pytest.mark.requirement("Y FR-004")
async def test_the_public_suite_passes_but_for_what_is_explained(
    node: Path, node_servers: Path, tmp_path: Path
) -> None:
    suite = node_servers / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    ends: dict[str, str] = {}
    async with driver(ends) as port:
        command = f"{sys.executable} -S -E {FOLDER / 'relay.py'} {port}"
        arguments = ("client", "--command", command, "--suite", "all", "--timeout", "80000", "-o", str(tmp_path))
        process = await asyncio.create_subprocess_exec(
            node, suite, *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        output = (await process.communicate())[0].decode()
    results = {name: (int(passed), int(failed)) for _, name, passed, failed in SUMMARY.findall(output)}
    failed = {name for name, (_, count) in results.items() if count}
    unchecked = {name for name, counts in results.items() if counts == (0, 0)}
    print(json.dumps({name: results[name] for name in sorted(failed)}), ends)
    assert failed == set(EXPECTED["failing"]), ends
    assert unchecked == set(EXPECTED["without checks"])
    assert results.keys() - failed - unchecked == set(EXPECTED["passing"])
