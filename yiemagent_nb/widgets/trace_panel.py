"""TracePanel: what an agent did, as a timeline in the page."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, ClassVar

from yiemagent_nb.core.concurrency import run_in_thread
from yiemagent_nb.core.redaction import mask_keys
from yiemagent_nb.tracing.copies import copy_of
from yiemagent_nb.tracing.details import details_of
from yiemagent_nb.tracing.difference import difference
from yiemagent_nb.tracing.recorder import TraceRecorder
from yiemagent_nb.tracing.rows import Row, one_line
from yiemagent_nb.tracing.test_file import write_test
from yiemagent_nb.widgets.apps import refuse_in_apps
from yiemagent_nb.widgets.panel import Buffers, Post, SidePanel, reply
from yiemagent_nb.widgets.panel_protocol import (
    ClearTrace,
    CopyRow,
    LoadDifference,
    LoadRow,
    LoadRows,
    WriteTest,
)
from yiemagent_nb.widgets.protocol import PageEvent, PageMessage

if TYPE_CHECKING:
    from yiemagent_nb.core.agent import Agent

__all__ = ["TracePanel"]

NEWEST = 200
"""So many rows has a page that opens the panel; it asks for others when they are looked at."""

MOST_COPIED = 4_000_000
"""Characters of a copy that a page gets."""

LONGEST_ERROR = 300
"""Characters of an error in the line of its row."""

_Asking = LoadRows | LoadRow | LoadDifference | CopyRow | WriteTest


class TracePanel(SidePanel):
    """An agent's runs, turns, model calls and tools, each with what was sent and what came back.

    It records from the moment when it is made. In Python the same stands in ``TraceRecorder.of(agent)``.

    Args:
        agent: The agent.

    Example::

        TracePanel(agent)
    """

    name: ClassVar[str] = "trace"

    def __init__(self, agent: Agent) -> None:
        super().__init__(agent)
        self.trace = TraceRecorder.of(agent)
        self._cleared = 0
        self._leave: Callable[[], None] | None = None

    def connect(self, post: Post) -> Callable[[], None]:
        """See ``Panel``."""
        if self._leave is None:
            self._leave = self.trace.subscribe(self._on_row)
        leave = super().connect(post)

        def end() -> None:
            leave()
            if not self._posts and self._leave is not None:
                self._leave()
                self._leave = None

        return end

    def state(self) -> dict[str, Any]:
        """The newest rows, and how many there are."""
        trace = self.trace
        rows = trace.newest(NEWEST)
        return {"start": trace.start, "total": trace.total, "cleared": trace.cleared, "rows": [_form(r) for r in rows]}

    def ask(self, message: PageMessage, post: Post, buffers: Buffers) -> bool | Coroutine[Any, Any, None]:
        """See ``Panel``. What takes time is done in a thread: neither the page nor the agent waits for it."""
        del buffers
        if isinstance(message, WriteTest):
            refuse_in_apps("Files are not written")
        match message:
            case LoadRows() | LoadRow() | LoadDifference() | CopyRow() | WriteTest():
                return self._answer(message, post)
            case ClearTrace():
                self.trace.clear()
                self._tell_all()
            case _:
                return False
        return True

    async def _answer(self, message: _Asking, post: Post) -> None:
        reply(message, await run_in_thread(self._value, message), post)

    def _value(self, message: _Asking) -> dict[str, Any]:
        trace = self.trace
        match message:
            case LoadRows():
                rows = trace.rows(message.start, message.count)
                start = rows[0].number if rows else max(message.start, trace.start)
                return {"start": start, "rows": [_form(row) for row in rows]}
            case LoadRow():
                row = trace.row(message.row)
                return {**_form(row), **asdict(details_of(row))}
            case LoadDifference():
                against = None if message.against is None else trace.row(message.against)
                return asdict(difference(trace, trace.row(message.row), against))
            case CopyRow():
                copy = copy_of(trace, trace.row(message.row), message.form, most=MOST_COPIED)
                return {"text": copy.text, "name": copy.name}
            case WriteTest():
                return {"path": write_test(trace, trace.row(message.row), message.path).as_posix()}

    def _on_row(self, row: Row) -> None:
        if not self.is_open:
            return
        if self.trace.cleared != self._cleared:
            self._tell_all()
        self.tell({"type": "rows", "rows": [_form(row)]})

    def _tell_all(self) -> None:
        self._cleared = self.trace.cleared
        self.tell({"type": "state", "state": self.state()}, whole=True)


def _form(row: Row) -> PageEvent:
    parent = row.parent
    return {
        "row": row.number,
        "kind": row.kind,
        "parent": None if parent is None else parent.number,
        "title": mask_keys(row.title),
        "started": row.started * 1000,
        "waited": row.waited,
        "first": row.first,
        "duration": row.duration,
        "state": row.state,
        "tokens": None if row.tokens is None else row.tokens._asdict(),
        "cost": row.cost,
        "summary": one_line(row.error, LONGEST_ERROR)
        if row.state == "failed" and row.error
        else mask_keys(row.summary),
        "lane": row.lane,
    }
