"""Try: what a hook would have changed in the calls and requests of a conversation. Nothing is applied."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterable, Callable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import asdict, dataclass, field, replace
from typing import Any, cast

from yiemagent_nb.core.concurrency import run_in_thread
from yiemagent_nb.core.errors import ExecutionTimeoutError, YiemAgentError
from yiemagent_nb.hooks.code import (
    LOAD_SECONDS,
    HookCodeError,
    Problem,
    forget_source,
    load_hook,
    notebook_namespace,
    remember_source,
)
from yiemagent_nb.hooks.differences import Seen
from yiemagent_nb.hooks.guard import explain, reading
from yiemagent_nb.hooks.kinds import KINDS, HookName
from yiemagent_nb.hooks.limited import BLOCKED, BLOCKS_HINT, LimitedCall, TookTooLongError, line_of
from yiemagent_nb.hooks.recorded import PreparedCall, RecordedCall, Recording, TakenPieces
from yiemagent_nb.hooks.static import is_a
from yiemagent_nb.hooks.texts import masked

__all__ = ["Trial", "TriedCall", "try_hook"]

MOST_CALLS = 50
MOST_SECONDS = 30.0
"""How long a trial may take altogether."""
SHOW_SECONDS = 5.0
"""How long it may take to make a call ready, and to look at its answer."""
MOST_PRINTED = 20_000
LONGEST_TEXT = 20_000


@dataclass(frozen=True, slots=True)
class TriedCall:
    """What a hook did with one recorded call, as a page gets it; see ``panel_protocol``."""

    title: str
    detail: str
    effect: str
    before: str = ""
    after: str = ""
    line: int | None = None
    message: str = ""
    seconds: float = 0.0


@dataclass(slots=True)
class Trial:
    """What came of a trial. ``note`` says what a person should know of it."""

    calls: list[TriedCall] = field(default_factory=list[TriedCall])
    problems: list[Problem] = field(default_factory=list[Problem])
    printed: str = ""
    note: str = ""

    def form(self) -> dict[str, Any]:
        """As a page gets it."""
        return asdict(self)


async def try_hook(recording: Recording, hook: HookName, code: str, seconds: float) -> Trial:
    """Try a hook on what was recorded, newest calls last, in a thread with an event loop of its own.

    The code runs in a copy of the notebook's namespace. What it prints is kept.

    Args:
        recording: The conversation.
        hook: Which hook it is to be.
        code: Python.
        seconds: How long one call may take.

    Raises:
        ExecutionTimeoutError: It could not be ended: it waits inside C.
    """
    running = run_in_thread(lambda: asyncio.run(_Trying(recording, hook, code, seconds).run()))
    await asyncio.wait({running}, timeout=LOAD_SECONDS + MOST_SECONDS + 2 * seconds + 5)
    if not running.done():
        raise ExecutionTimeoutError("The code did not end, and could not be ended.", "It may wait for something.")
    return running.result()


class _Trying:
    def __init__(self, recording: Recording, hook: HookName, code: str, seconds: float) -> None:
        self._recording = recording
        self._kind = KINDS[hook]
        self._code = code
        self._seconds = seconds
        self._printed: list[str] = []

    async def run(self) -> Trial:
        trial = Trial()
        filename = remember_source(f"{self._kind.name}, tried", self._code)
        try:
            namespace = {**notebook_namespace(), "print": self._print}
            function = await load_hook(self._kind.name, self._code, filename, namespace)
            await self._try_all(function, filename, trial)
        except HookCodeError as error:
            trial.problems.append(error.problem)
        finally:
            forget_source(filename)
        trial.printed = masked("".join(self._printed), MOST_PRINTED)
        return trial

    async def _try_all(self, function: Callable[..., Any], filename: str, trial: Trial) -> None:
        began = time.monotonic()
        calls = self._recording.calls(self._kind.name)
        left_out = len(calls) - MOST_CALLS
        if not calls:
            calls = [self._recording.example(self._kind.name)]
            trial.note = "Nothing of this kind is in the history yet: this is an example."
        elif left_out > 0:
            trial.note = f"The newest {MOST_CALLS} are shown; {left_out} older ones were left out."
        for number, call in enumerate(calls := calls[-MOST_CALLS:]):
            tried, too_long = await self._try(function, filename, call)
            trial.calls.append(tried)
            rest = len(calls) - number - 1
            if rest and (too_long or time.monotonic() - began > MOST_SECONDS):
                trial.note = f"It took too long: {rest} more {'was' if rest == 1 else 'were'} not tried."
                break

    async def _try(self, function: Callable[..., Any], filename: str, recorded: RecordedCall) -> tuple[TriedCall, bool]:
        began = time.perf_counter()
        call = LimitedCall(self._seconds, filename)
        preparing, comparing = LimitedCall(SHOW_SECONDS, filename), LimitedCall(SHOW_SECONDS, filename)
        try:
            prepared: PreparedCall = await preparing.run(recorded.prepare, call.pause)
        except BaseException as error:
            if not is_a(error, Exception, SystemExit, KeyboardInterrupt):
                raise
            own = is_a(error, YiemAgentError)
            what = cast("YiemAgentError", error).message if own else preparing.describe(error)
            return self._tried(recorded, Seen("unchanged", f"This call reached no hook: {what}"), None, began), False
        try:
            answer = await call.run(
                reading(self._kind, function, prepared.arguments, prepared.answers), *prepared.arguments
            )
            if self._kind.name == "around_llm_call" and _comes_in_pieces(answer):
                call = LimitedCall(self._seconds, filename)
                answer = await self._taken(call, answer)
            call, asked = comparing, call
            seen: Seen = await call.run(prepared.compare, answer)
        except BaseException as error:
            if not is_a(error, Exception, SystemExit, KeyboardInterrupt):
                raise
            message, hint = explain(error, self._kind, call)
            seen = Seen("failed", "", message=f"{message} {hint}".strip())
            return self._tried(recorded, seen, line_of(error, filename), began), is_a(error, TookTooLongError)
        if asked.blocked is not None:
            seen = replace(seen, detail=f"{seen.detail} {BLOCKED} {BLOCKS_HINT}".strip())
        return self._tried(recorded, seen, None, began), False

    async def _taken(self, call: LimitedCall, answer: Any) -> TakenPieces:
        """All pieces of an answer."""
        until = time.monotonic() + MOST_SECONDS
        taken = TakenPieces()
        async with aclosing(call.iterate(answer)) as pieces:
            async for piece in pieces:
                taken.append(piece)
                if time.monotonic() > until:
                    raise TookTooLongError(MOST_SECONDS, None)
        return taken

    def _tried(self, recorded: RecordedCall, seen: Seen, line: int | None, began: float) -> TriedCall:
        return TriedCall(
            recorded.title,
            masked(seen.detail, LONGEST_TEXT, "…"),
            seen.effect,
            _cut(seen.before),
            _cut(seen.after),
            line,
            _cut(seen.message),
            time.perf_counter() - began,
        )

    def _print(self, *values: Any, sep: str | None = " ", end: str | None = "\n", **_others: Any) -> None:
        """Stands for ``print`` in the code."""
        if sum(map(len, self._printed)) < MOST_PRINTED:
            self._printed.append((" " if sep is None else sep).join(map(str, values)) + ("\n" if end is None else end))


def _comes_in_pieces(answer: object) -> bool:
    return not isinstance(answer, Mapping) and isinstance(answer, AsyncIterable | Iterator)


def _cut(text: str) -> str:
    return masked(text, LONGEST_TEXT, f"… ({len(text) - LONGEST_TEXT:,} more characters)")
