"""TraceRecorder: listens to an agent and keeps what happened as rows."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING

from yiemagent_nb.core.call_stages import CallStage
from yiemagent_nb.core.errors import InvalidParametersError
from yiemagent_nb.core.events import Event, MessageUpdate
from yiemagent_nb.core.exchange import Exchange
from yiemagent_nb.tracing.keeping import Keeping
from yiemagent_nb.tracing.rows import Row, RowKind
from yiemagent_nb.tracing.story import Story

if TYPE_CHECKING:
    from yiemagent_nb.core.agent import Agent
    from yiemagent_nb.core.signal import AbortSignal

__all__ = ["MOST_BYTES", "MOST_ROWS", "RowListener", "TraceRecorder"]

MOST_ROWS = 20_000
"""So many rows are kept, the newest."""

MOST_BYTES = 64_000_000
"""So much of what requests and answers held is kept, about, in bytes; older rows keep their figures only."""

RowListener = Callable[[Row], None]
"""Told of a row that is new or has changed, on the agent's event loop; it must be quick."""

_known: weakref.WeakKeyDictionary[Agent, weakref.ref[TraceRecorder]] = weakref.WeakKeyDictionary()
_making = threading.Lock()


class TraceRecorder:
    """Keeps what an agent does as rows: runs, turns, calls of the model and of tools.

    An agent has one recorder, which lives as long as the agent. It records from the first ``of`` on.
    Its rows may be read from any thread.

    Example::

        trace = TraceRecorder.of(agent)
        await agent.prompt("What is 17 + 25?")
        print(trace)
        print(trace.rows()[-1].duration)
    """

    def __init__(self, agent: Agent) -> None:
        """Use ``TraceRecorder.of``, which gives an agent's one recorder."""
        self.agent: weakref.ref[Agent] = weakref.ref(agent)
        self._lock = threading.RLock()
        self._numbers = count()
        self._rows: list[Row] = []
        self._listeners: tuple[RowListener, ...] = ()
        self._to_tell: dict[int, Row] = {}
        self._keeping = Keeping(MOST_BYTES)
        self._zero = time.time() - time.perf_counter()
        self._story = Story(self._begin, self._changed, self._keeping)
        self.start = 0
        """The number of the first row that is kept."""
        self.cleared = 0
        """How often all rows were forgotten."""
        self.total = 0
        """The number that the next row gets."""
        agent.subscribe(self._listen)
        agent.observe_exchanges(self._observe)
        agent.observe_calls(self._got_on)

    @classmethod
    def of(cls, agent: Agent) -> TraceRecorder:
        """The recorder of an agent, which begins to record if it is new."""
        with _making:
            kept = _known.get(agent)
            recorder = None if kept is None else kept()
            if recorder is None:
                recorder = cls(agent)
                _known[agent] = weakref.ref(recorder)  # the agent holds it, as a listener
            return recorder

    @classmethod
    def known(cls, agent: Agent) -> TraceRecorder | None:
        """The recorder of an agent; None where nobody asked for one yet."""
        kept = _known.get(agent)
        return None if kept is None else kept()

    def __len__(self) -> int:
        """How many rows are kept."""
        return len(self._rows)

    def __repr__(self) -> str:
        """The newest rows as a timeline."""
        return self.table()

    # What was recorded

    def rows(self, start: int | None = None, count: int | None = None) -> list[Row]:
        """Rows that are kept, in the order in which they began.

        Args:
            start: The number of the first; default: the first that is kept.
            count: How many at most; default: all that follow.
        """
        with self._lock:
            first = max(0, (self.start if start is None else start) - self.start)
            return self._rows[first : None if count is None else first + count]

    def newest(self, count: int) -> list[Row]:
        """The newest rows, the oldest of them first."""
        with self._lock:
            return self._rows[-count:] if count > 0 else []

    def row(self, number: int) -> Row:
        """A row.

        Raises:
            InvalidParametersError: There is none with this number, or it was forgotten.
        """
        with self._lock:
            if self.start <= number < self.total:
                return self._rows[number - self.start]
        what = "was forgotten" if 0 <= number < self.start else "does not exist"
        raise InvalidParametersError(
            f"Row {number} of the trace {what}; it has rows {self.start} to {self.total - 1}."
            if self._rows
            else f"Row {number} of the trace {what}; it has no rows."
        )

    def model_call_before(self, row: Row) -> Row | None:
        """The call of the model before a row; None where none is kept."""
        with self._lock:
            at = row.number - self.start - 1
            while at >= 0:
                if self._rows[at].kind == "model":
                    return self._rows[at]
                at -= 1
        return None

    def children(self, row: Row) -> list[Row]:
        """The rows that are a part of another, in order: those of a run are its turns."""
        with self._lock:
            inside = self._rows[max(0, row.number - self.start) :]
        found: list[Row] = []
        for each in inside:
            if each.parent is row:
                found.append(each)
            elif each.kind == "run" and each is not row:
                break
        return found

    def table(self, last: int = 50) -> str:
        """The newest rows as a timeline for a terminal.

        Args:
            last: How many rows.
        """
        from yiemagent_nb.tracing.timeline import timeline  # noqa: PLC0415 - loaded when somebody looks

        return timeline(self.newest(last), len(self._rows))

    # What is done with it

    def subscribe(self, listener: RowListener) -> Callable[[], None]:
        """Call ``listener(row)`` for each row that is new or has changed; returns what takes it back."""
        self._listeners = (*self._listeners, listener)

        def leave() -> None:
            self._listeners = tuple(each for each in self._listeners if each is not listener)

        return leave

    def clear(self) -> None:
        """Forget all rows. What goes on now is not told any more."""
        with self._lock:
            self.start = self.total
            self.cleared += 1
            self._rows.clear()
            self._keeping.clear()

    def _begin(self, kind: RowKind, parent: Row | None, title: str, began: float | None = None) -> Row:
        now = time.perf_counter() if began is None else began
        row = Row(next(self._numbers), kind, parent, title, now, self._zero + now)
        self._rows.append(row)
        self.total = row.number + 1
        if len(self._rows) > MOST_ROWS:
            self._forget(len(self._rows) - MOST_ROWS + MOST_ROWS // 100)
        return row

    def _forget(self, number: int) -> None:
        for row in self._rows[:number]:
            self._keeping.drop(row)
        del self._rows[:number]
        self.start += number

    def _changed(self, row: Row) -> None:
        if self._listeners and row.number >= self.start:
            self._to_tell[row.number] = row

    def _tell(self) -> None:
        """Tell of rows, without the lock: who is told may wait for someone who reads rows."""
        if self._to_tell:
            rows, self._to_tell = self._to_tell, {}
            for row in rows.values():
                for listener in self._listeners:
                    listener(row)

    def _listen(self, event: Event, _signal: AbortSignal) -> None:
        if type(event) is MessageUpdate:
            if event.message_id == self._story.awaited:  # the first piece of an answer
                self._story.first_token()
                self._tell()
            return
        with self._lock:
            self._story.take(event)
        self._tell()

    def _observe(self, exchange: Exchange) -> None:
        with self._lock:
            self._story.sent(exchange)
        self._tell()

    def _got_on(self, stage: CallStage) -> None:
        with self._lock:
            self._story.got_on(stage)
        self._tell()
