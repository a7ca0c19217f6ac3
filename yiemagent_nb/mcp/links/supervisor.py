"""The program that stands between a kernel and one MCP server, so that no process outlives its kernel.

Run as ``python -I -S supervisor.py LIFELINE REPORTS PARENT COMMAND [ARGUMENT…]``, in a session of its
own, with the working directory, the environment and the standard streams that are meant for the
server. It starts the server in a session of its own, lets go of the streams, and waits for what comes
first: the end of the server; the end of LIFELINE, a pipe that only the kernel holds, which closes
however the kernel ends; the end of the process PARENT, should a fork of the kernel hold the pipe too;
SIGTERM. Then it ends all that the server started: SIGTERM, a grace, SIGKILL.

What is signalled is the server's process group. On Linux the supervisor moreover adopts what its
descendants leave behind, daemons in sessions of their own included, so that nothing gets away; and
the server dies with the supervisor, should that be killed.

To REPORTS it writes lines: ``started PID`` or ``failed ERRNO``, and ``exited STATUS``, as ``waitpid``
has it. It must start quickly: it imports nothing of this package and little else.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections.abc import Callable

GRACE_SECONDS = 2.0
KILL_SECONDS = 5.0
"""A process that hangs in the operating system cannot be killed; so long it is waited for."""

POLL_SECONDS = 0.02
PARENT_SECONDS = 1.0

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def process_control() -> Callable[[int, int], object] | None:
    """Linux's ``prctl`` with one argument; None elsewhere, and where Python was built without ctypes."""
    if sys.platform != "linux":
        return None
    try:
        import ctypes  # noqa: PLC0415 - only Linux has a use for it

        prctl = ctypes.CDLL(None).prctl
    except (ImportError, OSError, AttributeError):
        return None
    return lambda option, value: prctl(option, ctypes.c_ulong(value), 0, 0, 0)


class Supervisor:
    """Starts one server, waits, and ends everything.

    Args:
        lifeline: The pipe that the kernel holds.
        reports: Where to write what happens.
        parent: The kernel's process.
    """

    def __init__(self, lifeline: int, reports: int, parent: int) -> None:
        self._lifeline = lifeline
        self._reports = reports
        self._parent = parent
        self._server = 0
        self._exited = False
        self._told_to_end = False
        self._group_is_there = False
        self._control = process_control()
        self._wakes, wakes = os.pipe()
        for end in (self._wakes, wakes):
            os.set_blocking(end, False)
        for inherited in (lifeline, reports):
            os.set_inheritable(inherited, False)
        signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, wake_up)
        signal.signal(signal.SIGTERM, self._end_soon)
        for meant_for_others in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
            signal.signal(meant_for_others, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())  # the kernel blocks interrupts until they are ignored
        if self._control is not None:
            self._control(_PR_SET_CHILD_SUBREAPER, 1)

    def run(self, command: list[str]) -> None:
        """Start the command, and stay until all of it is gone."""
        failure = self._start(command)
        if failure:
            self._report(f"failed {failure}")
            return
        self._report(f"started {self._server}")
        try:
            self._let_go_of_streams()
            self._wait()
        finally:
            self._end(signal.SIGTERM, GRACE_SECONDS)
            self._end(signal.SIGKILL, KILL_SECONDS)

    def _start(self, command: list[str]) -> int:
        """Start the server; returns the number of the error, 0 if there was none."""
        supervisor = os.getpid()
        outcome, tell = os.pipe()  # the second end closes when the server's program begins
        self._server = os.fork()
        if self._server == 0:
            try:
                self._become_server(command, supervisor)
            except OSError as error:
                os.write(tell, str(error.errno).encode())
            finally:
                os._exit(127)
        self._group_is_there = True
        os.close(tell)
        failure = os.read(outcome, 16)
        os.close(outcome)
        return int(failure or 0)

    def _become_server(self, command: list[str], supervisor: int) -> None:
        os.setsid()
        if self._control is not None:
            self._control(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != supervisor:
                return
        for changed in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(changed, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.execvpe(command[0], command, os.environ)  # noqa: S606 - it runs what the person named

    @staticmethod
    def _let_go_of_streams() -> None:
        """The server's streams must end with it."""
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nothing, stream)
        os.close(nothing)

    def _wait(self) -> None:
        while not self._exited and not self._told_to_end and os.getppid() == self._parent:
            lost = self._sleep(PARENT_SECONDS, self._lifeline)
            self._reap()
            if lost:
                return

    def _end(self, sign: signal.Signals, patience: float) -> None:
        """Send a signal to everything, and wait until all is gone."""
        deadline = time.monotonic() + patience
        signalled = False
        while self._reap() and time.monotonic() < deadline:
            if sign == signal.SIGKILL or not signalled:  # killed again, for what was born meanwhile
                self._signal(sign)
                signalled = True
            self._sleep(POLL_SECONDS)

    def _signal(self, sign: signal.Signals) -> None:
        if self._group_is_there:
            self._group_is_there = sent(os.killpg, self._server, sign)
        for process in descendants(os.getpid()):
            sent(os.kill, process, sign)

    def _reap(self) -> bool:
        """Take note of what ended; returns whether anything is left."""
        while True:
            try:
                process, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return self._group_is_there and sent(os.killpg, self._server, 0)
            if process == 0:
                return True
            if process == self._server:
                self._exited = True
                self._report(f"exited {status}")

    def _sleep(self, seconds: float, *wakers: int) -> bool:
        """Sleep until a signal comes, or until one of the pipes wakes; returns whether one did."""
        watch = select.poll()
        for pipe in (self._wakes, *wakers):
            watch.register(pipe, select.POLLIN)
        ready = [pipe for pipe, _ in watch.poll(seconds * 1000)]
        if self._wakes in ready:
            os.read(self._wakes, 4096)
        return any(waker in ready for waker in wakers)

    def _report(self, line: str) -> None:
        try:
            os.write(self._reports, f"{line}\n".encode())
        except OSError:
            self._told_to_end = True  # the kernel is gone

    def _end_soon(self, *_: object) -> None:
        self._told_to_end = True


def wake_up(*_: object) -> None:
    """Do nothing: that a signal has a handler is what ends a sleep."""


def sent(send: Callable[[int, int], None], target: int, sign: int) -> bool:
    """Send a signal; returns whether its target is there."""
    try:
        send(target, sign)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def descendants(ancestor: int) -> list[int]:
    """All processes below one, where there is a ``/proc`` as on Linux."""
    children: dict[int, list[int]] = {}
    for process in names("/proc"):
        if process.isdigit():
            parent = parent_of(process)
            if parent:
                children.setdefault(parent, []).append(int(process))
    found: list[int] = []
    ancestors = [ancestor]
    while ancestors:
        below = children.get(ancestors.pop(), [])
        found += below
        ancestors += below
    return found


def names(folder: str) -> list[str]:
    """What is in a folder; nothing where there is none."""
    try:
        return os.listdir(folder)  # noqa: PTH208 - pathlib takes long to import
    except OSError:
        return []


def parent_of(process: str) -> int:
    """The parent of a process, 0 if it has ended."""
    try:
        with open(f"/proc/{process}/stat", "rb") as file:  # noqa: PTH123 - pathlib takes long to import
            status = file.read()
    except OSError:
        return 0
    return int(status.rpartition(b")")[2].split()[1])  # the name before it may hold anything


if __name__ == "__main__":
    Supervisor(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])).run(sys.argv[4:])
