"""Watchdog: ends code that does not end by itself, in whichever thread it runs.

Python can only be interrupted in another thread by an exception that is raised there at some later
moment (``PyThreadState_SetAsyncExc``). So that it never hits other code, three things hold:

- it is raised only between ``_armed = True`` and ``_armed = False``, which stand right around the call
  of the code that is watched, and by a thread that holds the lock while it looks and raises
- after the call the watched thread takes the lock, so that whoever was raising has raised, and lets what
  was raised and has not come yet come to nothing
- what comes until then comes inside a ``try``, and there is at most one

Code that catches everything and goes on is interrupted again by its next line, through ``sys.settrace``: the
exception is made in the watched thread, and sets that there.

Code that waits inside C, such as in ``time.sleep``, is interrupted only when that returns: in a worker
thread it is left behind, on an event loop it is waited for.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys
import threading
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from types import FrameType
from typing import Any

__all__ = ["Ended", "Overtime", "Watchdog"]

AGAIN = 0.1
"""Seconds that code has to clean up, until it is interrupted once more."""
INSISTS_AFTER = 0.25
"""Seconds after which code that goes on is interrupted by its next line too."""
STUCK = 0.5
"""Seconds after which code that is interrupted in vain is thought to wait inside C."""
SLOW = 0.5
"""Seconds after which a step is told to be slow."""
MOMENT = 0.05
"""Seconds that an exception is left to wait for code that waits inside C."""
GIVEN_UP = 10.0
AGAIN_GIVEN_UP = 1.0
"""Seconds until code that was interrupted in vain for ``GIVEN_UP`` seconds is interrupted once more."""

_raise_in = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_ulong, ctypes.py_object)(
    ("PyThreadState_SetAsyncExc", ctypes.pythonapi)
)
_take_back_in = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_ulong, ctypes.c_void_p)(
    ("PyThreadState_SetAsyncExc", ctypes.pythonapi)
)


def _settle() -> None:
    """Have no exception wait for any thread, as far as the interpreter knows.

    As long as it believes that one waits, though it was taken back or its thread is inside C, Python 3.11
    goes round and round in each thread that is traced, such as by a debugger. It believes so until one comes.
    """
    with contextlib.suppress(Overtime):
        _raise_in(threading.get_ident(), Overtime)
        for _ in range(1000):  # it comes at the first turn
            pass


class Overtime(BaseException):
    """Raised inside code whose time is over; no ``except Exception`` catches it."""


def _insistent(insist: Callable[[], None]) -> type[Overtime]:
    """An exception that calls a function when it is made, which is when it arrives in its thread."""

    class Insistent(Overtime):
        def __init__(self) -> None:
            super().__init__()
            insist()

    return Insistent


@dataclass(frozen=True, slots=True)
class Ended:
    """How watched code ended: with a value, or with what it raised."""

    value: Any = None
    error: BaseException | None = None


class Watchdog:
    """Gives code some seconds, in one call or in several steps, and then ends it.

    Args:
        seconds: The time that it has altogether, without that of ``pause``. No step of it may take
            longer than this either, be it in a pause.
        on_over: Called once from the watchdog's thread when the time is over and no exception can end
            the code: it waits for something in a coroutine, or inside C. It must not raise.
        on_slow: Called from there while a step takes longer than ``SLOW``, once a step. It must not raise.
    """

    def __init__(
        self, seconds: float, on_over: Callable[[], object], on_slow: Callable[[], object] = lambda: None
    ) -> None:
        self._seconds = seconds
        self._on_over = on_over
        self._on_slow = on_slow
        self._slow = True
        self._started = False
        self._rlock = threading.RLock()
        self._lock = threading.Condition(self._rlock)
        self._armed = False
        self._raised = False
        self._thread = 0
        self._step_began = 0.0
        self._used = 0.0
        self._since = time.monotonic()
        self._pauses = 0
        self._told = False
        self._ended = False
        self._over = False
        self._traced = False
        self._trace_before: Any = None
        self._insistent = _insistent(self._insist)

    @property
    def over(self) -> bool:
        """Whether the time is over."""
        return self._over

    @property
    def thread(self) -> int:
        """The thread of the newest step."""
        return self._thread

    def call(self, function: Callable[..., Any], *arguments: Any) -> Ended:
        """Call a function in this thread, watched. Never raises. One that ended in time counts, come what may."""
        value: Any = None
        error: BaseException | None = None
        try:
            self._arm()
            value = function(*arguments)
            self._armed = False
        except BaseException as raised:
            self._armed = False  # the first thing of all: see the module's docstring
            error = raised
        try:
            if self._traced:
                sys.settrace(self._trace_before)
                self._traced = False
            with self._lock:
                if self._raised:
                    self._raised = False
                    _settle()
        except Overtime:
            pass  # it came too late: the function has ended
        with contextlib.suppress(RuntimeError):  # it may have come between the lock and the block that lets it go
            while True:
                self._rlock.release()  # until this thread does not have it
        return Ended(value, error)

    @contextlib.contextmanager
    def pause(self) -> Generator[None]:
        """Count no time meanwhile, such as while a person is asked."""
        with self._lock:
            if not self._pauses:
                self._used += time.monotonic() - self._since
            self._pauses += 1
            self._lock.notify()
        try:
            yield
        finally:
            with self._lock:
                self._pauses -= 1
                self._since = time.monotonic()
                self._lock.notify()

    def restart(self, seconds: float | None = None) -> None:
        """Begin to count anew, with another limit where one is given."""
        with self._lock:
            self._seconds = self._seconds if seconds is None else seconds
            self._used = 0.0
            self._since = time.monotonic()
            self._told = self._over = False
            self._lock.notify()

    def end(self) -> None:
        """Watch no more. A step that still goes on, left behind in a thread, is ended when that can be done."""
        with self._lock:
            self._ended = True
            self._seconds = 0.0
            self._lock.notify()

    def _arm(self) -> None:
        with self._lock:
            self._thread = threading.get_ident()
            self._step_began = time.monotonic()
            self._slow = False
            if not self._started:  # what never calls anything needs no thread
                self._started = True
                self._since = self._step_began
                threading.Thread(target=self._watch, name="yiemagent_nb watchdog", daemon=True).start()
            self._armed = True

    def _left(self) -> float:
        now = time.monotonic()
        own = self._seconds - self._used - (0.0 if self._pauses else now - self._since)
        step = self._seconds - (now - self._step_began)
        if self._pauses:
            return step if self._armed else self._seconds
        return min(own, step) if self._armed else own

    def _watch(self) -> None:
        first: float | None = None
        with self._lock:
            while self._armed or not self._ended:
                left = self._left()
                if self._armed and not self._slow:
                    until_slow = SLOW - (time.monotonic() - self._step_began)
                    if until_slow <= 0:
                        self._slow = True
                        self._on_slow()
                    elif left > 0:
                        left = min(left, until_slow)
                if left > 0:
                    first = None
                    self._lock.wait(min(left, SLOW))  # nothing wakes it when a step begins
                    continue
                self._over = True
                if self._armed:
                    first = first or time.monotonic()
                    self._lock.wait(self._interrupt(time.monotonic() - first))
                else:
                    self._tell()
                    self._lock.wait(AGAIN_GIVEN_UP)

    def _interrupt(self, since: float) -> float:
        """Raise in the code, which was first interrupted so many seconds ago; returns when to do so again."""
        self._raised = True
        _raise_in(self._thread, Overtime if since < INSISTS_AFTER else self._insistent)
        if since <= STUCK:
            return AGAIN
        self._tell()
        self._lock.wait(MOMENT)
        if self._armed:  # it cannot come yet, and nothing may wait long: see _settle
            _take_back_in(self._thread, None)
            _settle()
        return AGAIN if since < GIVEN_UP else AGAIN_GIVEN_UP

    def _insist(self) -> None:
        """In the watched thread: let the next line of the code raise as well."""
        if not self._armed:
            return
        if not self._traced:
            self._trace_before = sys.gettrace()
            self._traced = True
        frame = sys._getframe(2)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] - its documented use
        while frame is not None and frame.f_code is not Watchdog.call.__code__:
            frame.f_trace = self._trace
            frame = frame.f_back
        sys.settrace(self._trace)

    def _trace(self, _frame: FrameType, event: str, _argument: object) -> Any:
        if self._armed and event == "line":
            raise Overtime
        return self._trace if self._armed else None

    def _tell(self) -> None:
        if not self._told:
            self._told = True
            self._on_over()
