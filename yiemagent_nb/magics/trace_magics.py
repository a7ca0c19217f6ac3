"""``%agent_trace``: what an agent did, as text, and each request as code."""

# IPython has no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUntypedFunctionDecorator=false

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring

from yiemagent_nb.core.errors import YiemAgentError
from yiemagent_nb.magics.agent_magics import AgentMagics
from yiemagent_nb.tracing.copies import CopyForm, copy_of
from yiemagent_nb.tracing.recorder import TraceRecorder
from yiemagent_nb.tracing.test_file import write_test

if TYPE_CHECKING:
    from yiemagent_nb.core.agent import Agent
    from yiemagent_nb.widgets.trace_panel import TracePanel

__all__ = ["TraceMagics", "TraceText"]

NEWEST = 50
_COPIES: tuple[CopyForm, ...] = ("python", "curl")


@dataclass(frozen=True, slots=True, repr=False)
class TraceText:
    """A text that is shown as it is."""

    text: str

    def __repr__(self) -> str:
        """The text."""
        return self.text


@magics_class
class TraceMagics(Magics):
    """The magic."""

    @magic_arguments()
    @argument("--last", type=int, default=NEWEST, metavar="N", help=f"so many rows, the newest (default: {NEWEST})")
    @argument("--python", type=int, metavar="ROW", help="a cell that makes a row's request again")
    @argument("--curl", type=int, metavar="ROW", help="the same as a command line, without its key")
    @argument("--test", type=int, metavar="ROW", help="write a test of a row's exchange")
    @argument("--to", metavar="PATH", default="", help="where, with --test: tests/test_….py unless said otherwise")
    @argument("--clear", action="store_true", help="forget what was recorded")
    @argument("--panel", action="store_true", help="show the trace as a panel")
    @line_magic
    def agent_trace(self, line: str) -> TraceText | TracePanel:
        """Show what an agent did: runs, turns, requests to the model and tools, with times, tokens and cost.

        The agent is the one of ``%agent``. It is recorded from the first ``AgentWidget``, ``TracePanel``
        or ``%agent_trace`` on.
        """
        line = cast("Any", self.shell).var_expand(line, depth=1)
        arguments = parse_argstring(cast("Any", self.agent_trace), line)
        agent = self._agent()
        known = TraceRecorder.known(agent)
        recorder = TraceRecorder.of(agent)
        if arguments.clear:
            recorder.clear()
        if arguments.panel:
            from yiemagent_nb.widgets.trace_panel import TracePanel  # noqa: PLC0415 - only where it is shown

            return TracePanel(agent)
        for form in _COPIES:
            if (row := getattr(arguments, form)) is not None:
                return _copied(recorder, row, form)
        if arguments.test is not None:
            return _written(recorder, arguments.test, arguments.to)
        if known is None:
            return TraceText("Nothing was recorded so far. From now on it is.")
        return TraceText(recorder.table(max(1, arguments.last)))

    def _agent(self) -> Agent:
        registry = cast("Any", self.shell).magics_manager.registry
        return cast("AgentMagics", registry[AgentMagics.__name__]).choose("")


def _copied(recorder: TraceRecorder, row: int, form: CopyForm) -> TraceText:
    with _refusals():
        return TraceText(copy_of(recorder, recorder.row(row), form).text)


def _written(recorder: TraceRecorder, row: int, path: str) -> TraceText:
    with _refusals():
        written = write_test(recorder, recorder.row(row), path)
        return TraceText(f"Written to {written}. Run it with: python -m pytest {written}")


@contextmanager
def _refusals() -> Generator[None]:
    """Tell a person what cannot be done, without a traceback."""
    try:
        yield
    except YiemAgentError as error:
        raise UsageError(str(error)) from None
