"""ServerProcess: one server's process, which ends with the kernel whatever happens.

The kernel starts the supervisor (``supervisor.py``), which starts the server. The lifeline is a pipe
that the supervisor watches: it closes when this process ends, when ``let_go`` is called, when the
``ServerProcess`` is forgotten, and when its event loop was closed. A thread listens to the supervisor
and waits for its end, so that no zombie is left and no event loop needs to know of child processes.
POSIX only.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import select
import shutil
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

from yiemagent_nb.core.errors import McpConnectionError

__all__ = ["ServerProcess", "start_process"]

_SUPERVISOR = Path(__file__).with_name("supervisor.py")

_NODE = "Install Node.js, which brings it."
_UV = "Install uv, which brings it: pip install uv."
_INSTALL = {
    "node": _NODE,
    "npm": _NODE,
    "npx": _NODE,
    "uv": _UV,
    "uvx": _UV,
    "bun": "Install Bun.",
    "bunx": "Install Bun, which brings it.",
    "deno": "Install Deno.",
    "docker": "Install Docker.",
    "pipx": "Install it: pip install pipx.",
    "python": "Use sys.executable for the Python that runs this notebook.",
}

_IDLE_MILLISECONDS = 1_000

_Tell = Callable[[str, int], None]


async def start_process(
    command: Sequence[str], environment: Mapping[str, str], directory: str | None = None
) -> ServerProcess:
    """Start a server.

    Args:
        command: The program and its arguments. The program is looked for on the environment's ``PATH``.
        environment: All of the server's environment.
        directory: Its working directory; this process's where None.

    Raises:
        McpConnectionError: It cannot be started; the message names the command.
    """
    process = ServerProcess(command, environment, directory)
    started = False
    try:
        await process.started.wait()
        started = process.pid != 0
        if started:
            return process
        error = _why_not(process, command[0], environment, directory)
    finally:
        if not started:
            process.let_go()
            process.close_pipes()
    raise error


class ServerProcess:
    """A running server. Made by ``start_process``, on the event loop that it belongs to.

    Attributes:
        stdin: The kernel's end of the server's standard input; ``stdout`` and ``stderr`` likewise.
        pid: The server's process; 0 until it has started.
        failure: The ``errno`` with which it could not be started; 0 where there was none.
        end: How it ended, such as ``exited with code 3``; empty while it runs.
        started: Set when it has started, or will not.
        ended: Set when the server's own process has ended.
        gone: Set when all that it started has ended too.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], directory: str | None) -> None:
        self.pid = 0
        self.failure = 0
        self.end = ""
        self.started = asyncio.Event()
        self.ended = asyncio.Event()
        self.gone = asyncio.Event()
        self._loop = loop = asyncio.get_running_loop()
        self._at_end: Callable[[], None] | None = None
        supervisor, lifeline, reports = _start_supervisor(command, environment, directory)
        self._lifeline = weakref.finalize(self, os.close, lifeline)
        self.stdin, self.stdout, self.stderr = _pipes(supervisor)
        # The thread outlives a forgotten process, and must not hold what would keep it.
        threading.Thread(
            target=_listen,
            args=(supervisor, reports, self._lifeline, weakref.ref(loop), weakref.WeakMethod(self._tell)),
            name=f"yiemagent_nb supervisor {supervisor.pid}",
            daemon=True,
        ).start()

    def when_ended(self, call: Callable[[], None]) -> None:
        """Call a function when the server's own process has ended."""
        self._at_end = call
        if self.ended.is_set():
            call()

    def let_go(self) -> None:
        """End everything that was started, without waiting for it."""
        self._lifeline()

    def close_pipes(self) -> None:
        """Close the kernel's ends of the streams, those that no event loop has taken over."""
        for pipe in (self.stdin, self.stdout, self.stderr):
            pipe.close()

    def _tell(self, what: str, number: int) -> None:
        """Take a report, in the thread that listens."""
        with contextlib.suppress(RuntimeError):  # the event loop was closed
            self._loop.call_soon_threadsafe(self._take, what, number)

    def _take(self, what: str, number: int) -> None:
        match what:
            case "started":
                self.pid = number
                self.started.set()
            case "failed":
                self.failure = number
            case "exited":
                self._has_ended(_describe(number))
            case _:
                self._has_ended("was ended with the program that supervises it")
                self.started.set()
                self.gone.set()

    def _has_ended(self, how: str) -> None:
        if self.ended.is_set():
            return
        self.end = how
        self.ended.set()
        if self._at_end is not None:
            self._at_end()


def _start_supervisor(
    command: Sequence[str], environment: Mapping[str, str], directory: str | None
) -> tuple[subprocess.Popen[bytes], int, int]:
    """Start the supervisor; returns it, the kernel's end of the lifeline, and the reports."""
    ends: list[int] = []
    try:
        ends += os.pipe()
        ends += os.pipe()
        watched, lifeline, reports, reporting = ends
        with _interrupts_held():
            supervisor = subprocess.Popen(  # noqa: S603 - our own program, by this interpreter
                [sys.executable, "-I", "-S", _SUPERVISOR, str(watched), str(reporting), str(os.getpid()), *command],
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment,
                cwd=directory,
                pass_fds=(watched, reporting),
                start_new_session=True,  # an interrupt at the kernel's terminal is not meant for it
            )
    except BaseException as error:
        for end in ends:
            os.close(end)
        if isinstance(error, OSError):
            raise _no_supervisor(error, command[0], directory) from error
        raise
    os.close(watched)
    os.close(reporting)
    return supervisor, lifeline, reports


@contextlib.contextmanager
def _interrupts_held() -> Generator[None]:
    """Start with interrupts blocked what is in our process group for a moment, where they would end it.

    The supervisor ignores them as soon as it can, and then unblocks them.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT,))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _pipes(supervisor: subprocess.Popen[bytes]) -> list[IO[bytes]]:
    return [pipe for pipe in (supervisor.stdin, supervisor.stdout, supervisor.stderr) if pipe is not None]


def _listen(
    supervisor: subprocess.Popen[bytes],
    reports: int,
    let_go: Callable[[], object],
    loop: weakref.ref[asyncio.AbstractEventLoop],
    tell: weakref.WeakMethod[_Tell],
) -> None:
    """Pass on what the supervisor reports, until its end."""
    server = 0
    ended = False
    for report in _lines(reports, lambda: _let_go_without_loop(loop(), supervisor, let_go)):
        what, number = report.split()
        server = int(number) if what == "started" else server
        ended = ended or what == "exited"
        _pass_on(tell, what, int(number))
    if server and not ended:  # the supervisor was killed
        _kill_group(server)
    supervisor.wait()
    _pass_on(tell, "gone", 0)


def _lines(pipe: int, idle: Callable[[], None]) -> Iterator[str]:
    """The lines that come through a pipe; in between, something to do once a second."""
    watch = select.poll()
    watch.register(pipe, select.POLLIN)
    rest = ""
    with open(pipe, "rb", buffering=0) as file:
        while True:
            while not watch.poll(_IDLE_MILLISECONDS):
                idle()
            data = file.read(4096)
            if not data:
                return
            *lines, rest = (rest + data.decode()).split("\n")
            yield from lines


def _let_go_without_loop(
    loop: asyncio.AbstractEventLoop | None, supervisor: subprocess.Popen[bytes], let_go: Callable[[], object]
) -> None:
    """End what belongs to an event loop that was closed: those who wait there are never called again."""
    if loop is None or loop.is_closed():
        let_go()
        for pipe in _pipes(supervisor):
            with contextlib.suppress(OSError):  # the event loop may have closed it
                pipe.close()


def _pass_on(tell: weakref.WeakMethod[_Tell], what: str, number: int) -> None:
    listener = tell()
    if listener is not None:
        listener(what, number)


def _kill_group(leader: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def _describe(status: int) -> str:
    """How a process ended, from its wait status."""
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return f"exited with code {code}"
    try:
        name = f" ({signal.Signals(-code).name})"
    except ValueError:
        name = ""
    return f"was killed by signal {-code}{name}"


def _no_supervisor(error: OSError, program: str, directory: str | None) -> McpConnectionError:
    if directory is not None and not Path(directory).is_dir():
        return McpConnectionError(
            f"The server {program!r} cannot be started: its working directory {directory!r} is no folder.",
            "Give a folder that is there as cwd.",
        )
    return McpConnectionError(f"The server {program!r} cannot be started: {error.strerror or error}.")


def _why_not(
    process: ServerProcess, program: str, environment: Mapping[str, str], directory: str | None
) -> McpConnectionError:
    """Why a process did not start."""
    if not process.failure:
        words = process.stderr.read().decode("utf-8", "replace").strip().splitlines()
        return McpConnectionError(
            f"The program that supervises the server {program!r} did not start: {words[-1] if words else 'no reason'}.",
            f"Check that this Python starts by itself: {sys.executable}",
        )
    if os.sep in program:
        path = Path(directory or "", program)
        found = path.is_file()
    else:
        found = shutil.which(program, path=environment.get("PATH", os.defpath)) is not None
    if process.failure == errno.ENOENT and not found and " " in program:
        return McpConnectionError(
            f"There is no program {program!r} to start the server with.",
            "Give the program and each of its arguments apart: no shell splits them.",
        )
    if process.failure == errno.ENOENT and not found:
        hint = _INSTALL.get(Path(program).name, "Check its spelling, and that it is installed.")
        return McpConnectionError(
            f"There is no program {program!r} to start the server with.",
            f"{hint} If it is there, give its full path: this kernel's PATH may be shorter than your terminal's.",
        )
    if process.failure == errno.ENOENT:
        return McpConnectionError(
            f"The program {program!r} cannot be started: its first line names a program that is not there.",
            "Install that, or start the server with its interpreter: command, then the script as an argument.",
        )
    if process.failure in (errno.EACCES, errno.ENOEXEC):
        return McpConnectionError(
            f"{program!r} cannot be started: it is not executable.",
            "Make it so with chmod +x and a first line such as #!/usr/bin/env python3, or name its interpreter as "
            "the command and the script as an argument.",
        )
    return McpConnectionError(f"The program {program!r} cannot be started: {os.strerror(process.failure)}.")
