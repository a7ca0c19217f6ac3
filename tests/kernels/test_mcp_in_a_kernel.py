"""MCP servers in a real kernel: connections outlive cells, an interrupt reaches a stuck call, no process stays."""

# jupyter_client has types in part.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import asyncio
import secrets
import sys
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from kernels.kernel import Cell, Kernel, start_kernel

SERVER = Path(__file__).with_name("server_with_family.py")

STUCK = """
import asyncio
async def stick(server):
    return await server.call_tool("stick", on_progress=lambda _: print("started", flush=True))
"""

ASLEEP = """
import asyncio
print("started", flush=True)
await asyncio.sleep(60)
"""
"""Nothing is interrupted sooner."""


def started(message: dict[str, Any]) -> bool:
    return message["msg_type"] == "stream" and "started" in message["content"]["text"]


@dataclass(frozen=True)
class Desk:
    """A kernel whose servers can be found in the table of processes.

    Attributes:
        kernel: Has the cell ``setup`` run.
        token: Stands on the command lines of the servers and of their children.
        errors: What the kernel's process writes to its standard error.
    """

    kernel: Kernel
    token: str
    errors: Path

    def processes(self) -> list[psutil.Process]:
        """The servers, their children, and what stands between."""
        found: list[psutil.Process] = []
        for process in psutil.process_iter():
            try:
                if self.token in process.cmdline():
                    found.append(process)
            except (psutil.NoSuchProcess, psutil.AccessDenied):
                continue
        return found

    def assert_quiet(self, *cells: Cell) -> None:
        """Nothing was written to the standard error of the cells or of the kernel."""
        for cell in cells:
            assert [content["text"] for content in cell.of("stream") if content["name"] == "stderr"] == []
        lines = self.errors.read_text().splitlines()
        assert [line for line in lines if line.strip() and not line.startswith("[IPKernelApp] WARNING")] == []

    async def assert_empty(self) -> None:
        """No process is left, or none is after a few seconds."""
        async with asyncio.timeout(15):
            while processes := self.processes():
                await asyncio.to_thread(psutil.wait_procs, processes, 1)


def setup(token: str) -> str:
    command = f"{sys.executable!r}, {str(SERVER)!r}, {token!r}"
    return f"""
%load_ext yiemagent_nb
from yiemagent_nb import Agent, Demo, McpServer

one = McpServer.stdio({command}, name="one")
two = McpServer.stdio({command}, name="two")
"""


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncGenerator[Desk]:
    token, errors = f"family-{secrets.token_hex(8)}", tmp_path / "kernel.log"
    async with start_kernel(errors) as kernel:
        await kernel.must(setup(token))
        yield Desk(kernel, token, errors)


def ended(processes: list[psutil.Process]) -> None:
    """All of them are gone, or go within seconds."""
    assert len(processes) >= 4, "two servers and their children were expected"
    _, alive = psutil.wait_procs(processes, timeout=15)
    assert alive == []


OPEN_BOTH = "import asyncio\nawait asyncio.gather(one.open(), two.open());"


async def test_a_connection_opened_in_one_cell_serves_another(desk: Desk) -> None:
    first = await desk.kernel.must("await one.call_tool('who')")
    second = await desk.kernel.must("await one.call_tool('who')")
    assert first.text
    assert first.text == second.text
    cell = await desk.kernel.must(
        "agent = Agent(Demo(delay=0), mcp_servers=[one])\n(await agent.prompt('add 17 and 25')).text"
    )
    assert "42" in cell.text
    third = await desk.kernel.must("await one.call_tool('who')")
    assert third.text == first.text
    desk.assert_quiet(first, second, cell, third)


async def test_a_cell_that_is_run_again_and_closing_leave_no_process_and_no_traceback(desk: Desk) -> None:
    cells = [await desk.kernel.must(OPEN_BOTH)]
    first = desk.processes()
    cells.append(await desk.kernel.must(setup(desk.token) + OPEN_BOTH))
    ended(first)
    second = desk.processes()
    assert {process.pid for process in second}.isdisjoint(process.pid for process in first)
    cells.append(await desk.kernel.must("await one.close()\nawait two.close()\nprint(one.state, two.state)"))
    assert "closed closed" in cells[-1].text
    ended(second)
    await desk.assert_empty()
    desk.assert_quiet(*cells)


async def test_a_stuck_call_is_interrupted_at_once_and_the_other_servers_stay_ready(desk: Desk) -> None:
    await desk.kernel.must(OPEN_BOTH + STUCK)
    asleep = await desk.kernel.run(ASLEEP, when=started)
    cell = await desk.kernel.run("await stick(one)", when=started)
    assert cell.status == "error"
    assert cell.seconds < asleep.seconds + 1
    after = await desk.kernel.must(
        "print(one.state, two.state, one.restarts, two.restarts)\nawait two.call_tool('who');"
    )
    assert "ready ready 0 0" in after.text
    again = await desk.kernel.must("(await one.call_tool('add', {'a': 1, 'b': 2}))['content'][0]['text']")
    assert "3" in again.text
    desk.assert_quiet(after, again)


@pytest.mark.parametrize("ask", ["await agent.prompt('x')", "agent.ask('x')"])
async def test_a_run_whose_tool_is_stuck_is_interrupted_at_once(desk: Desk, ask: str) -> None:
    await desk.kernel.must(
        OPEN_BOTH
        + """
from yiemagent_nb import ToolExecutionUpdate
from yiemagent_nb.testing import Scripted, call
agent = Agent(Scripted([[call("stick")], "free"]), mcp_servers=[one])
agent.subscribe(lambda event, signal: print("started", flush=True) if isinstance(event, ToolExecutionUpdate) else None);
"""
    )
    asleep = await desk.kernel.run(ASLEEP, when=started)
    cell = await desk.kernel.run(ask, when=started)
    assert cell.status == "error"
    assert cell.seconds < asleep.seconds + 1
    after = await desk.kernel.must(
        "await agent.wait_idle()\nprint(agent.messages[-1].role, agent.messages[-1].is_error, one.state, two.state)"
    )
    assert "toolResult True ready ready" in after.text
    desk.assert_quiet(after)


async def test_no_process_stays_when_the_kernel_is_shut_down(desk: Desk) -> None:
    await desk.kernel.must(OPEN_BOTH)
    processes = desk.processes()
    await desk.kernel.manager.shutdown_kernel()
    ended(processes)
    desk.assert_quiet()


async def test_no_process_stays_when_the_kernel_is_restarted_and_the_servers_are_reached_again(desk: Desk) -> None:
    await desk.kernel.must(OPEN_BOTH)
    processes = desk.processes()
    await desk.kernel.restart()
    ended(processes)
    await desk.kernel.must(setup(desk.token))
    assert (await desk.kernel.must("await one.call_tool('who')")).text
    desk.assert_quiet()


async def test_no_process_stays_when_the_kernel_is_killed(desk: Desk) -> None:
    await desk.kernel.must(OPEN_BOTH)
    processes = desk.processes()
    await desk.kernel.manager.signal_kernel(9)
    ended(processes)


async def test_no_process_stays_when_the_kernel_is_killed_while_a_call_runs_and_a_server_starts(desk: Desk) -> None:
    await desk.kernel.must("await one.open()" + STUCK)
    await desk.kernel.must("""
stuck, opening = asyncio.ensure_future(stick(one)), asyncio.ensure_future(two.open())
while two.state != "connecting":
    await asyncio.sleep(0)
""")
    assert len(desk.processes()) >= 3
    await desk.kernel.manager.signal_kernel(9)
    await desk.assert_empty()
