"""AgentWidget: an agent in a notebook."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, cast

import traitlets
from anywidget import AnyWidget

from yiemagent_nb.core.messages import new_id
from yiemagent_nb.widgets import assets
from yiemagent_nb.widgets.cells import cells
from yiemagent_nb.widgets.chat_panel import ChatPanel
from yiemagent_nb.widgets.host import WidgetHost
from yiemagent_nb.widgets.panel import Panel
from yiemagent_nb.widgets.plain import PlainAgentWidget, default_agent
from yiemagent_nb.widgets.transcript_output import TranscriptOutput, in_kernel, publish

if TYPE_CHECKING:
    from yiemagent_nb.core.agent import Agent

__all__ = ["AgentWidget"]

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
        panels: What it holds. Default: a ``ChatPanel``.
        height: The greatest height, as CSS has it.
        header: Show the backend and how things stand.
        transcript: Keep the conversation in the notebook's file.
        plain: Build a ``PlainAgentWidget`` instead, for programs that cannot load this front end.

    Example::

        AgentWidget(agent)
    """

    height = traitlets.Unicode().tag(sync=True)
    _panel_names = traitlets.List(traitlets.Unicode()).tag(sync=True)
    _header = traitlets.Bool().tag(sync=True)
    _transcript_name = traitlets.Unicode().tag(sync=True)

    _host: WidgetHost | None = None  # until the widget is built, which may fail
    _transcript: TranscriptOutput | None = None

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
        height: str = "600px",
        header: bool = True,
        transcript: bool = True,
        plain: bool = False,  # noqa: ARG002 - __new__ reads it
    ) -> None:
        agent = default_agent() if agent is None else agent
        self.agent = agent
        self.panels: tuple[Panel, ...] = tuple(panels) if panels is not None else (ChatPanel(agent),)
        super().__init__(
            height=height,
            _panel_names=[panel.name for panel in self.panels],
            _header=header,
            _transcript_name=new_id("yna-transcript").replace("_", "-"),
        )
        self._keeps_transcript = transcript
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
        publish({**data, "text/plain": f"{self!r}\n{_NO_WIDGETS}"}, metadata)
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
            self._transcript = None
        super().close()

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
        send = cast("Callable[[dict[str, Any]], None]", cast("Any", self).send)
        self._host = WidgetHost(self.agent, self.panels, send)
        self._transcript = TranscriptOutput(self.agent, self._transcript_name) if self._keeps_transcript else None

    def _reopen(self) -> None:
        vars(self).pop("_repr_mimebundle_", None)  # ipywidgets hides the method when a widget is closed
        self._model_id = None  # the page has thrown away the model of that name
        cast("Any", self).open()
        self._attach()

    def _receive(self, _widget: object, content: object, _buffers: object) -> None:
        if self._host is not None:
            self._host.receive(content)
        if not self.is_watched:
            cells.close_replaced()
