"""The widget keeps no conversation in its state, and its plain stand-in does the same work."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any, cast

import ipywidgets
import pytest

from yiemagent_nb.core.agent import Agent
from yiemagent_nb.core.approval import approve
from yiemagent_nb.widgets import AgentWidget, ChatPanel, PlainAgentWidget

Messages = Sequence[Mapping[str, Any]]


async def secretive(_messages: Messages) -> AsyncIterator[str]:
    yield "The SECRET is "
    yield "forty-two."


@pytest.fixture
def agent() -> Agent:
    return Agent(secretive)


@pytest.fixture
def widget(agent: Agent) -> Iterator[AgentWidget]:
    widget = AgentWidget(agent)
    yield widget
    widget.close()


async def test_nothing_that_was_said_is_in_the_widgets_state(agent: Agent, widget: AgentWidget) -> None:
    await agent.prompt("my SECRET question")
    state = cast("dict[str, Any]", cast("Any", widget).get_state())
    assert {name for name in state if not name.startswith("_")} == {"height", "layout", "tabbable", "tooltip"}
    assert "SECRET" not in str({name: value for name, value in state.items() if name not in ("_esm", "_css")})


def test_one_widget_is_one_model_with_a_layout(agent: Agent) -> None:
    instances = cast("dict[str, Any]", cast("Any", ipywidgets).widgets.widget._instances)
    before = set(instances)
    widget = AgentWidget(agent)
    assert len(set(instances) - before) == 2
    widget.close()


def test_the_repr_tells_the_backend_and_no_more(widget: AgentWidget) -> None:
    assert repr(widget) == "AgentWidget(secretive)"


async def test_closing_takes_everything_back_and_leaves_the_agent(agent: Agent, widget: AgentWidget) -> None:
    widget.close()
    assert cast("Any", agent)._hub._inline == ()
    assert (await agent.prompt("hello")).text == "The SECRET is forty-two."


def test_a_panel_alone_is_a_widget_without_a_header(agent: Agent) -> None:
    panel = ChatPanel(agent)
    widget = panel.widget
    assert widget is panel.widget
    assert not cast("Any", widget)._header
    panel.close()


def test_a_widget_composes_with_every_other(widget: AgentWidget) -> None:
    box: Any = cast("Any", ipywidgets.HBox)([widget])
    assert box.children == (widget,)
    box.close()


async def test_the_plain_stand_in_talks_queues_and_stops(agent: Agent) -> None:
    stand_in: object = AgentWidget(agent, plain=True)
    assert type(stand_in) is PlainAgentWidget
    plain = cast("Any", stand_in)
    plain._text.value = "a <b>bold</b> question"
    send = plain.children[-1].children[0]
    send.click()
    assert plain._text.value == ""
    await agent.wait_idle()
    assert "forty-two." in plain._said.value
    assert "a &lt;b&gt;bold&lt;/b&gt; question" in plain._said.value
    plain.close()


async def test_the_plain_stand_in_asks_for_approval() -> None:
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    async def calculator(messages: Messages) -> AsyncIterator[dict[str, Any]]:
        if messages[-1]["role"] == "tool":
            yield {"content": f"So: {messages[-1]['content']}"}
        else:
            call = {"index": 0, "id": "c", "function": {"name": "add", "arguments": '{"a": 1, "b": 2}'}}
            yield {"tool_calls": [call]}

    agent = Agent(calculator, tools=[add], before_tool_call=approve())
    plain = cast("Any", PlainAgentWidget(agent))
    asked = asyncio.Event()
    agent.subscribe(lambda event, _signal: asked.set() if event.type == "approval_requested" else None)
    run = asyncio.ensure_future(agent.prompt("1 + 2?"))
    await asked.wait()
    [approval] = plain._approvals.children
    assert "add(" in approval.children[0].value
    approval.children[1].click()
    assert (await run).text == "So: 3"
    assert plain._approvals.children == ()
    plain.close()


def test_a_program_without_anywidget_gets_the_plain_widget() -> None:
    code = (
        "import importlib.util, sys\n"
        "find = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *rest: None if name == 'anywidget' else find(name, *rest)\n"
        "from yiemagent_nb.widgets import AgentWidget, PlainAgentWidget\n"
        "assert AgentWidget is PlainAgentWidget and 'anywidget' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_importing_the_package_loads_no_widgets() -> None:
    code = "import sys, yiemagent_nb; assert not {'ipywidgets', 'anywidget', 'markdown_it'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
