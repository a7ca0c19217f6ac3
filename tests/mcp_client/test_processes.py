"""No process outlives its kernel or its connection: shown by looking at the process table."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
import uvloop
from mcp_client.watching import Recorder, alive, call, family, faulty, said, until, zombies

from yiemagent_nb.core.errors import McpConnectionError
from yiemagent_nb.mcp.links import process
from yiemagent_nb.mcp.links.stdio import StdioTransport

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="Windows has job objects, and no process groups"),
    pytest.mark.requirement("Y SD-004"),
]

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a process adopt daemons")

KERNEL_PROGRAM = Path(__file__).with_name("kernel_program.py")
TESTS = Path(__file__).parents[1]
LARGE_FAMILY = ("ignores-eof", "ignores-term", "child", "stubborn-grandchild")
WITH_DAEMON = (*LARGE_FAMILY, "daemon") if sys.platform == "linux" else LARGE_FAMILY

Kernel = subprocess.Popen[str]


@contextmanager
def kernel(end: str, *options: str) -> Generator[Kernel]:
    """Run a program that opens a server and then ends in some way."""
    paths = os.pathsep.join(map(str, (TESTS, TESTS.parent)))
    process = subprocess.Popen(
        [sys.executable, "-X", "faulthandler", str(KERNEL_PROGRAM), end, *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": paths},
    )
    try:
        with process:
            yield process
            assert process.stdin is not None
            process.stdin.close()
    finally:
        process.kill()


def reported(process: Kernel) -> dict[str, int]:
    """The next line that a kernel program writes."""
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, "the kernel program failed; its traceback stands above"
    return json.loads(line)


def names(processes: dict[str, int]) -> list[str]:
    return sorted(processes)


async def test_a_server_that_is_closed_is_gone_with_its_supervisor() -> None:
    async with faulty().open(Recorder()) as link:
        processes = await family(link)
        assert len(alive(processes.values())) == 2
    assert alive(processes.values()) == []


async def test_a_server_that_ends_at_the_end_of_its_input_gets_no_signal() -> None:
    inbox = Recorder()
    async with faulty("tells-of-term").open(inbox) as link:
        processes = await family(link)
    assert alive(processes.values()) == []
    assert inbox.stderr == []


async def test_a_server_that_ignores_the_end_of_its_input_is_asked_by_a_signal() -> None:
    inbox = Recorder()
    async with faulty("ignores-eof", "tells-of-term").open(inbox) as link:
        processes = await family(link)
        began = time.monotonic()
    assert 0.9 < time.monotonic() - began < 1.9
    assert inbox.stderr == ["it got SIGTERM"]
    assert alive(processes.values()) == []


async def test_a_server_that_ignores_everything_is_killed_in_bounded_time() -> None:
    async with faulty("ignores-eof", "ignores-term").open(Recorder()) as link:
        processes = await family(link)
        began = time.monotonic()
    assert 2.8 < time.monotonic() - began < 12
    assert alive(processes.values()) == []


async def test_children_and_grandchildren_of_a_server_end_with_it() -> None:
    async with faulty(*LARGE_FAMILY).open(Recorder()) as link:
        processes = await family(link)
        assert names(processes) == ["child", "grandchild", "grandchild parent", "server", "supervisor"]
        assert len(alive(processes.values())) == 5
    assert alive(processes.values()) == []


@on_linux
async def test_a_daemon_that_left_the_servers_session_ends_with_it() -> None:
    async with faulty("daemon").open(Recorder()) as link:
        processes = await family(link)
        assert os.getsid(processes["daemon"]) != os.getsid(processes["server"])
    assert alive(processes.values()) == []


@on_linux
async def test_a_stubborn_daemon_that_a_call_started_ends_when_the_server_crashes() -> None:
    async with faulty("stubborn-grandchild").open(Recorder()) as link:
        supervisor = (await family(link))["supervisor"]
        processes = {"supervisor": supervisor, **json.loads(said(await call(link, "start_daemon")))}
        with pytest.raises(McpConnectionError):
            await call(link, "die", signal=signal.SIGKILL)
    assert {"daemon", "grandchild"} < processes.keys()
    assert alive(processes.values()) == []


async def test_what_a_crashed_server_leaves_behind_ends_while_the_connection_is_still_open() -> None:
    async with faulty("child").open(Recorder()) as link:
        processes = await family(link)
        with pytest.raises(McpConnectionError):
            await call(link, "end", code=1)
        await until(lambda: not alive(processes.values()))


async def test_a_killed_supervisor_takes_its_server_along() -> None:
    async with faulty("child", "ignores-term").open(Recorder()) as link:
        processes = await family(link)
        os.kill(processes["supervisor"], signal.SIGKILL)
        await until(lambda: not alive(processes.values()))
        with pytest.raises(McpConnectionError):
            await call(link, "echo", text="anybody?")


async def test_a_supervisor_that_is_asked_to_end_ends_everything() -> None:
    async with faulty("child").open(Recorder()) as link:
        processes = await family(link)
        os.kill(processes["supervisor"], signal.SIGTERM)
        await until(lambda: not alive(processes.values()))


async def test_a_cancelled_close_still_ends_everything() -> None:
    processes: dict[str, int] = {}
    leaving = asyncio.Event()

    async def use() -> None:
        async with faulty("ignores-eof", "child").open(Recorder()) as link:
            processes.update(await family(link))
            leaving.set()

    task = asyncio.create_task(use())
    await leaving.wait()
    while not task.done():
        task.cancel()
        await asyncio.sleep(0.01)
    assert task.cancelled()
    await until(lambda: not alive(processes.values()))


async def test_an_opening_that_is_cancelled_leaves_nothing() -> None:
    here = psutil.Process()
    before = {child.pid for child in here.children(recursive=True)}

    async def use() -> None:
        async with faulty("hangs", "child").open(Recorder()):
            pytest.fail("a server that hangs was opened")

    def started() -> list[psutil.Process]:
        return [child for child in here.children(recursive=True) if child.pid not in before]

    task = asyncio.create_task(use())
    await until(lambda: len(started()) == 3)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: started() == [])


@pytest.mark.parametrize("program", ["no-such-program-anywhere", "/", str(KERNEL_PROGRAM)])
async def test_a_program_that_does_not_start_leaves_no_process_and_no_descriptor(program: str) -> None:
    async def fail() -> None:
        with pytest.raises(McpConnectionError):
            async with StdioTransport(program).open(Recorder()):
                pass

    await fail()
    descriptors = open_descriptors()
    await fail()
    assert open_descriptors() == descriptors
    assert zombies() == []


def open_descriptors() -> int:
    gc.collect()
    return psutil.Process().num_fds()


async def test_fifty_servers_leave_no_process_no_descriptor_and_no_thread() -> None:
    processes: list[int] = []

    async def use() -> None:
        async with faulty().open(Recorder()) as link:
            processes.extend((await family(link)).values())

    await use()
    descriptors = open_descriptors()
    for _ in range(5):
        await asyncio.gather(*(use() for _ in range(10)))
    assert len(processes) == 102
    assert alive(processes) == []
    assert open_descriptors() == descriptors
    await until(lambda: not [thread for thread in threading.enumerate() if "supervisor" in thread.name])


async def test_a_transport_opens_again_after_a_crash() -> None:
    transport = faulty()
    async with transport.open(Recorder()) as link:
        with pytest.raises(McpConnectionError):
            await call(link, "end", code=1)
    async with transport.open(Recorder()) as link:
        assert said(await call(link, "echo", text="again")) == "again"


# Kernels that end


async def all_gone(processes: dict[str, int]) -> None:
    await until(lambda: not alive(processes.values()))


@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGTERM])
async def test_a_kernel_killed_by_a_signal_leaves_nothing(sign: signal.Signals) -> None:
    with kernel("waits", *WITH_DAEMON) as process:
        processes = reported(process)
        process.send_signal(sign)
        process.wait()
        await all_gone(processes)


@pytest.mark.parametrize("end", ["leaves", "returns"])
async def test_a_kernel_that_ends_without_closing_leaves_nothing(end: str) -> None:
    with kernel(end, *WITH_DAEMON) as process:
        processes = reported(process)
        assert process.wait() == 0
        await all_gone(processes)


async def test_a_killed_kernel_whose_fork_lives_on_leaves_no_server() -> None:
    with kernel("forks", *WITH_DAEMON) as process:
        processes = reported(process)
        fork = reported(process)["fork"]
        try:
            process.kill()
            process.wait()
            await all_gone(processes)
            assert alive([fork])
        finally:
            os.kill(fork, signal.SIGKILL)


async def test_an_event_loop_closed_under_an_open_server_leaves_nothing_though_the_kernel_lives_on() -> None:
    with kernel("closes its loop", *WITH_DAEMON) as process:
        processes = reported(process)
        await all_gone(processes)
        assert process.poll() is None
        assert psutil.Process(process.pid).children() == []


async def test_an_interrupt_of_the_kernels_terminal_does_not_reach_the_server() -> None:
    with kernel("is interrupted") as process:
        processes = reported(process)
        assert reported(process) == {"answer": "still here"}
        await all_gone(processes)


async def test_an_interrupt_while_a_server_starts_does_not_end_its_supervisor(monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted(subprocess.Popen[bytes]):
        """A process that is interrupted before its Python can do anything about it."""

        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            self.send_signal(signal.SIGINT)

    monkeypatch.setattr(process.subprocess, "Popen", Interrupted)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    async with faulty().open(Recorder()) as link:
        assert said(await call(link, "echo", text="not interrupted")) == "not interrupted"
        assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before


def blocked_signals(process: int) -> int:
    """The mask of blocked signals, as Linux has it."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.partition("SigBlk:")[2].split()[0], 16)


@on_linux
async def test_no_signal_is_blocked_in_a_server_or_its_supervisor() -> None:
    async with faulty().open(Recorder()) as link:
        for each in (await family(link)).values():
            assert blocked_signals(each) == 0


async def test_a_server_killed_together_with_its_supervisor_and_kernel_leaves_nothing() -> None:
    with kernel("waits", "ignores-eof", "ignores-term") as process:
        processes = reported(process)
        process.kill()
        with suppress(ProcessLookupError):
            os.kill(processes["supervisor"], signal.SIGKILL)
        await all_gone(processes)


# Event loops


async def test_a_nested_run_of_the_event_loop_can_call_a_server() -> None:
    with kernel("nests") as process:
        processes = reported(process)
        assert reported(process) == {"answer": "still here"}
        assert process.wait() == 0
        await all_gone(processes)


@pytest.mark.parametrize("make_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_server_works_on_an_event_loop_of_another_thread(make_loop: type[asyncio.AbstractEventLoop]) -> None:
    outcome: list[object] = []

    async def use() -> None:
        async with faulty("child").open(Recorder()) as link:
            processes = await family(link)
            outcome.append(len(said(await call(link, "big", size=2_000_000))))
            with pytest.raises(McpConnectionError):
                await call(link, "end", code=1)
        outcome.append(alive(processes.values()))

    def run() -> None:
        with asyncio.Runner(loop_factory=make_loop) as runner:
            runner.run(use())

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert outcome == [2_000_000, []]
