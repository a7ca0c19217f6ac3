"""AgentWidget: an agent in a notebook."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, cast

import traitlets
from anywidget import AnyWidget

from yiemagent_nb.core.errors import InvalidParametersError
from yiemagent_nb.core.messages import new_id
from yiemagent_nb.widgets import assets
from yiemagent_nb.widgets.apps import served_as_app
from yiemagent_nb.widgets.cells import cells
from yiemagent_nb.widgets.chat_panel import ChatPanel
from yiemagent_nb.widgets.commands import CommandValue
from yiemagent_nb.widgets.hook_editor import HookEditor
from yiemagent_nb.widgets.host import WidgetHost
from yiemagent_nb.widgets.panel import Panel
from yiemagent_nb.widgets.plain import PlainAgentWidget, default_agent
from yiemagent_nb.widgets.subshells import hear_page_where_it_speaks
from yiemagent_nb.widgets.tool_inspector import ToolInspector
from yiemagent_nb.widgets.trace_panel import TracePanel
from yiemagent_nb.widgets.transcript_output import TranscriptOutput, in_kernel, publish

if TYPE_CHECKING:
    from yiemagent_nb.core.agent import Agent

__all__ = ["AgentWidget"]

_EMPTY_SCRIPT = "export default {}"
_NO_WIDGETS = "This program cannot show the widget. AgentWidget(agent, plain=True) may do; agent.ask(...) always does."


class AgentWidget(AnyWidget):
    """An agent in a notebook: a header with its backend, and panels.

    A widget keeps its agent, and the agent its MCP servers, until ``close``. When its cell runs again
    and shows another widget, it is closed by itself, unless another cell has shown it, a page still
    looks at it, or a container such as ``HBox`` has it. An agent that nothing else holds then ends its
    servers. Close by hand what was only shown within a container, and what is shown by a program that
    does not name its cells; or end an agent for good with ``await agent.shutdown()``.

    Any number of views, and of widgets on one agent, stay in step. In a saved notebook the
    conversation stands as an output of its own below the widget; a live widget hides it.

    Args:
        agent: The agent; without one, ``Agent()``, which looks for a model server, a key, and
            else takes the embedded demo.
        panels: What it holds. Default: a ``ChatPanel``, and beside it a ``ToolInspector``, a ``HookEditor``
            and a ``TracePanel``; only the first where the notebook is served as an app.
        commands: Slash commands of one's own for that ``ChatPanel``, which describes them.
        height: The greatest height, as CSS has it.
        header: Show the backend and how things stand.
        transcript: Keep the conversation in the notebook's file.
        plain: Build a ``PlainAgentWidget`` instead, for programs that cannot load this front end.

    Raises:
        InvalidParametersError: A command cannot be used, or there are both panels and commands.

    Example::

        AgentWidget(agent)
    """

    height = traitlets.Unicode().tag(sync=True)
    _panel_names = traitlets.List(traitlets.Unicode()).tag(sync=True)
    _header = traitlets.Bool().tag(sync=True)
    _transcript_name = traitlets.Unicode().tag(sync=True)

    _host: WidgetHost | None = None  # until the widget is built, which may fail
    _transcript: TranscriptOutput | None = None
    _is_frozen = False
    _is_shown = False

    # As text, and not as paths: anywidget watches a file for each widget, and so never lets one go.
    _esm = property(lambda _self: assets.script())
    _css = property(lambda _self: assets.style())

    def __new__(cls, *args: Any, **options: Any) -> Self:
        """The widget, or its plain stand-in, which has the same methods."""
        if options.get("plain"):
            return cast(
                "Self", PlainAgentWidget(*args, **{name: options[name] for name in ("agent",) if name in options})
            )
        return super().__new__(cls, *args, **options)

    def __init__(
        self,
        agent: Agent | None = None,
        *,
        panels: Sequence[Panel] | None = None,
        commands: Mapping[str, CommandValue] | None = None,
        height: str = "600px",
        header: bool = True,
        transcript: bool = True,
        plain: bool = False,  # noqa: ARG002 - __new__ reads it
    ) -> None:
        if panels is not None and commands is not None:
            raise InvalidParametersError(
                "Commands belong to a ChatPanel, and panels were given.", "Use panels=[ChatPanel(agent, commands=...)]."
            )
        agent = default_agent() if agent is None else agent
        self.agent = agent
        self.panels: tuple[Panel, ...] = _all_panels(agent, commands) if panels is None else tuple(panels)
        super().__init__(
            layout={"width": "100%"},  # beside others in a row it shares the width
            height=height,
            _panel_names=[panel.name for panel in self.panels],
            _header=header,
            _transcript_name=_new_name(),
        )
        self._keeps_transcript = transcript
        self._output_name = new_id("yna-widget")
        cast("Any", self).on_msg(self._receive)  # ipywidgets has no types
        self._attach()

    def show(self) -> None:
        """Display the widget, and the transcript that the notebook's file keeps, in the cell that runs.

        A widget that was closed opens again, on the same agent.
        """
        if self._host is None:
            self._reopen()
        bundle = cast("tuple[Mapping[str, Any], Mapping[str, Any]] | None", cast("Any", self)._repr_mimebundle_())
        if bundle is None:
            return
        data, metadata = bundle
        publish({**data, "text/plain": f"{self!r}\n{_NO_WIDGETS}"}, metadata, name=self._output_name)
        self._is_shown = True
        if self._transcript is not None and in_kernel():
            self._transcript.show()
        cells.show(self)

    def close(self) -> None:
        """Let go of the agent and take the widget out of the page. The agent goes on."""
        if self._host is not None:
            self._host.close()
            self._host = None
        if self._transcript is not None:
            self._transcript.close()
        super().close()

    def freeze(self) -> None:
        """Replace the widget, wherever it is shown, by the conversation as it is now, for good.

        What stands in the notebook then needs no kernel and no widgets: it can be read on GitHub, in
        nbviewer, and after a restart. A widget that no cell shows by itself, such as one in a container,
        is replaced by nothing there, and the conversation is displayed in the cell that runs. The agent
        goes on; ``AgentWidget(agent)`` shows it again. To freeze twice changes nothing.

        Example::

            widget = AgentWidget(agent)
            widget
            # in the last cell of the notebook
            widget.freeze()
        """
        if self._is_frozen:
            return
        transcript = self._transcript or TranscriptOutput(self.agent, self._transcript_name)
        try:
            if in_kernel():
                publish(transcript.final(), name=self._output_name, update=self._is_shown)
                transcript.vanish()
                self._forget_state()
        finally:
            if transcript is not self._transcript:
                transcript.close()
        self._is_frozen = True  # only now: where something failed, it can be tried again
        self.close()
        cast("Any", self).layout.close()

    @property
    def is_watched(self) -> bool:
        """Whether some page shows the widget, as far as is known."""
        return self._host is not None and bool(self._host.audience)

    def __repr__(self) -> str:
        """The backend, not the conversation."""
        return f"AgentWidget({self.agent.backend_label})"

    def _ipython_display_(self) -> None:
        self.show()

    def _attach(self) -> None:
        hear_page_where_it_speaks(cast("Any", self).comm)
        send = cast("Callable[[dict[str, Any]], None]", cast("Any", self).send)
        self._host = WidgetHost(self.agent, self.panels, send)
        self._transcript = TranscriptOutput(self.agent, self._transcript_name) if self._keeps_transcript else None

    def _forget_state(self) -> None:
        """Let programs that keep the last state of each widget, such as nbconvert, keep no script of this one."""
        comm = cast("Any", self).comm
        if comm is not None:
            comm.send({"method": "update", "state": {"_esm": _EMPTY_SCRIPT, "_css": ""}, "buffer_paths": []})

    def _reopen(self) -> None:
        vars(self).pop("_repr_mimebundle_", None)  # ipywidgets hides the method when a widget is closed
        self._output_name, self._is_shown = new_id("yna-widget"), False
        self._transcript_name = _new_name()  # what was displayed under the old one stays
        if self._is_frozen:
            self._is_frozen = False
            _open_again(cast("Any", self).layout)
        _open_again(self)
        self._attach()

    def _receive(self, _widget: object, content: object, buffers: Sequence[Any]) -> None:
        if self._host is not None:
            self._host.receive(content, buffers)
        if not self.is_watched:
            cells.close_replaced()


def _open_again(widget: Any) -> None:
    widget._model_id = None  # noqa: SLF001 - the page has thrown away the model of that name
    widget.open()


def _all_panels(agent: Agent, commands: Mapping[str, CommandValue] | None) -> tuple[Panel, ...]:
    chat = ChatPanel(agent, commands)
    return (chat,) if served_as_app() else (chat, ToolInspector(agent), HookEditor(agent), TracePanel(agent))


def _new_name() -> str:
    return new_id("yna-transcript").replace("_", "-")
