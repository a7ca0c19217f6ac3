"""Cells: which cell shows which widgets, so that a widget whose cell was run again can go."""

from __future__ import annotations

import gc
import threading
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakKeyDictionary

import ipywidgets
from IPython.core.getipython import get_ipython

from yiemagent_nb.core.runtime import running_loop
from yiemagent_nb.widgets.transcript_output import in_kernel

if TYPE_CHECKING:
    from yiemagent_nb.core.agent import Agent
    from yiemagent_nb.widgets.agent_widget import AgentWidget

__all__ = ["Cells", "cells"]

_COLLECT_AFTER = (1.0, 2.0)
"""Seconds until garbage is collected: the cell that shows the next widget has most likely ended then, and
IPython has its result. An agent that goes lets go of its servers, so these are garbage only after it."""


class Cells:
    """Closes widgets that their cells show no more.

    A program clears the output of a cell that runs again. A widget that stood there is closed once
    another run of that cell shows a widget, if no other cell showed it, no page looks at it and no
    container has it. Without that, ``ipywidgets`` would keep it for good, and it its agent, and that
    its servers' processes. Someone who has kept the widget may show it again: it opens anew.

    Cells are known by the ``cellId`` that JupyterLab, Jupyter Notebook and VS Code send with what
    they execute. Where a cell is not known, nothing that it shows is closed.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._runs: dict[str, str] = {}
        self._places: WeakKeyDictionary[AgentWidget, set[str]] = WeakKeyDictionary()

    def show(self, widget: AgentWidget) -> None:
        """Note that the cell that runs shows a widget, and close what it replaces."""
        cell, run = _running_cell()
        with self._lock:
            if cell and self._runs.get(cell) != run:
                self._runs[cell] = run
                for places in self._places.values():
                    places.discard(cell)
            self._places.setdefault(widget, set()).add(cell)
        self.close_replaced()

    def close_replaced(self) -> None:
        """Close what stands in no cell any more and is looked at nowhere."""
        with self._lock:
            unplaced = [widget for widget, places in self._places.items() if not places]
        gone = [widget for widget in unplaced if not widget.is_watched and not _has_container(widget)]
        for widget in gone:
            with self._lock:
                self._places.pop(widget, None)
            widget.close()
            _give_up(widget.agent)
            _forget_result(widget)
        if gone and (loop := running_loop()) is not None:
            # An agent and what listens to it know each other, so only a collection ends its servers.
            for delay in _COLLECT_AFTER:
                loop.call_later(delay, gc.collect)


cells = Cells()
"""The cells of this kernel."""


def _give_up(agent: Agent) -> None:
    """Abort a run that waits for a person, where no widget is left in which one could answer."""
    if not agent.hears_people and (agent.approvals.pending or agent.questions.pending):
        agent.abort()


def _running_cell() -> tuple[str, str]:
    """The cell that runs, and a name of this run of it; the cell is empty where it is not known."""
    if not in_kernel():
        return "", ""
    request = cast("dict[str, Any]", cast("Any", get_ipython()).get_parent() or {})
    cell = request.get("metadata", {}).get("cellId")
    run = request.get("header", {}).get("msg_id")
    return (cell, run) if isinstance(cell, str) and isinstance(run, str) else ("", "")


def _has_container(widget: AgentWidget) -> bool:
    instances = cast("dict[str, object]", cast("Any", ipywidgets).widgets.widget._instances)  # noqa: SLF001 - no public name is left
    boxes = [cast("Any", each) for each in tuple(instances.values()) if isinstance(each, ipywidgets.Box)]
    return any(child is widget for box in boxes for child in box.children)


def _forget_result(widget: AgentWidget) -> None:
    """Take a widget out of the results that IPython keeps: ``Out``, ``_`` and ``_7``; no other name is touched."""
    shell = cast("Any", get_ipython())
    if shell is None:
        return
    own: dict[str, object] = shell.user_ns_hidden  # the names that IPython itself gave, with their values
    for name in [name for name, value in own.items() if value is widget]:
        for names in (own, cast("dict[str, object]", shell.user_ns)):
            if names.get(name) is widget:
                names[name] = ""  # as before the first result
    results = cast("dict[int, object]", shell.user_ns.get("_oh", {}))
    for number in [number for number, value in results.items() if value is widget]:
        del results[number]
    for name in ("_", "__", "___"):
        if getattr(shell.displayhook, name, None) is widget:
            setattr(shell.displayhook, name, "")
