"""The widget keeps no conversation in its state, and its plain stand-in does the same work."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import weakref
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any, cast

import ipywidgets
import pytest

from yiemagent_nb.core.agent import Agent
from yiemagent_nb.core.approval import approve
from yiemagent_nb.core.events import QuestionAsked
from yiemagent_nb.core.questions import Answer
from yiemagent_nb.core.signal import AbortSignal
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
    hub = cast("Any", agent)._hub
    widget.close()
    left = hub._inline  # what records the agent, and watches its hooks, goes on as long as the agent
    other = AgentWidget(agent)
    assert len(hub._inline) > len(left)
    other.close()
    assert hub._inline == left
    assert len(left) == 2
    assert (await agent.prompt("hello")).text == "The SECRET is forty-two."


@pytest.mark.parametrize("plain", [False, True])
async def test_nothing_keeps_the_agent_of_a_closed_widget(plain: bool) -> None:
    agent = Agent(secretive)
    widget = AgentWidget(agent, plain=plain)
    await agent.prompt("hello")
    known = weakref.ref(agent)
    widget.close()
    del agent, widget
    await asyncio.sleep(0)  # the run's own task is done then
    gc.collect()
    assert known() is None


async def test_a_closed_widget_opens_again_when_it_is_shown(widget: AgentWidget) -> None:
    state = cast("Any", widget)
    first = state.model_id
    widget.close()
    widget.show()
    assert first != state.model_id
    assert state._repr_mimebundle_() is not None
    state._handle_custom_msg({"type": "hello", "last_seq": 0, "page": "p"}, [])
    assert widget.is_watched


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
    [approval] = plain._asked.children
    assert "Allow <b>Add</b> to run?" in approval.children[0].value
    approval.children[1].children[0].click()
    assert (await run).text == "So: 3"
    assert plain._asked.children == ()
    plain.close()


def ask(agent: Agent, schema: Mapping[str, Any] | None, url: str = "") -> asyncio.Future[Answer]:
    question = QuestionAsked("q-1", "<i>railways</i>", "<b>Where to?</b>", schema, url)
    return asyncio.ensure_future(agent.questions.ask(question, AbortSignal()))


async def shown(plain: Any) -> Any:
    """The card of the question, once the agent has asked it."""
    await asyncio.sleep(0)
    [card] = plain._asked.children
    return card


def press(card: Any, text: str) -> None:
    next(button for button in card.children[-1].children if button.description == text).click()


async def test_the_plain_stand_in_asks_a_servers_question(agent: Agent) -> None:
    properties: dict[str, Any] = {
        "city": {"type": "string", "title": "<b>City</b>"},
        "seats": {"type": "integer", "default": 2},
        "class": {"enum": ["s", "f"], "enumNames": ["Second", "First"], "default": "s"},
        "extras": {"type": "array", "items": {"enum": ["bike", "meal"]}},
        "window": {"type": "boolean"},
        "note": {"type": ["string", "null"]},
    }
    plain = cast("Any", PlainAgentWidget(agent))
    waiting = ask(agent, {"type": "object", "properties": properties, "required": ["city", "note"]})
    card = await shown(plain)
    words, _, city, _, seats, _, choice, _, extras, _, window, *_ = card.children
    assert "&lt;b&gt;Where to?&lt;/b&gt;" in words.value
    assert "&lt;i&gt;railways&lt;/i&gt;" in words.value
    seats.value = "two"
    press(card, "Submit")
    assert "seats should be a number" in plain._problem.value
    seats.value = "3.5"
    press(card, "Submit")
    assert "seats should be an integer" in plain._problem.value
    seats.value, city.value, choice.value, extras.value, window.value = "3", "Lisbon", 1, (1,), False
    press(card, "Submit")
    assert (await waiting).content == {
        "city": "Lisbon",
        "seats": 3,
        "class": "f",
        "extras": ["meal"],
        "window": False,
        "note": None,
    }
    assert plain._asked.children == ()
    assert plain._problem.value == ""
    plain.close()


async def test_the_plain_stand_in_names_fields_as_the_form_does(agent: Agent) -> None:
    plain = cast("Any", PlainAgentWidget(agent))
    waiting = ask(agent, {"properties": {"name": {"type": "string", "title": "<i>String</i>"}}, "required": ["name"]})
    card = await shown(plain)
    press(card, "Submit")
    assert "&lt;i&gt;String&lt;/i&gt; is missing" in plain._problem.value
    press(card, "Dismiss")
    await waiting
    plain.close()


@pytest.mark.parametrize(("text", "action"), [("Done", "accept"), ("Decline", "decline"), ("Dismiss", "cancel")])
async def test_the_plain_stand_in_asks_for_a_visit(agent: Agent, text: str, action: str) -> None:
    plain = cast("Any", PlainAgentWidget(agent))
    waiting = ask(agent, None, "https://example.org/?a=1&b=2")
    card = await shown(plain)
    assert '<a href="https://example.org/?a=1&amp;b=2" rel="noopener noreferrer" target="_blank">' in (
        card.children[0].value
    )
    press(card, text)
    assert (await waiting).action == action
    plain.close()


async def test_the_plain_stand_in_links_to_no_address_but_the_webs(agent: Agent) -> None:
    plain = cast("Any", PlainAgentWidget(agent))
    waiting = ask(agent, None, "javascript:alert(1)")
    card = await shown(plain)
    assert "href" not in card.children[0].value
    press(card, "Dismiss")
    await waiting
    plain.close()


@pytest.mark.parametrize("plain", [False, True])
async def test_what_could_not_be_frozen_can_be_frozen_again(plain: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = Agent(secretive)
    widget = AgentWidget(agent, plain=plain)
    await agent.prompt("hello")
    published: list[Mapping[str, Any]] = []

    def publish(data: Mapping[str, Any], *_more: Any, **_how: Any) -> None:
        published.append(data)
        if len(published) == 1:
            raise OSError("The kernel cannot speak.")

    for module in ("plain", "agent_widget", "transcript_output"):
        monkeypatch.setattr(f"yiemagent_nb.widgets.{module}.publish", publish)
        monkeypatch.setattr(f"yiemagent_nb.widgets.{module}.in_kernel", lambda: True)
    with pytest.raises(OSError, match="cannot speak"):
        widget.freeze()
    widget.freeze()
    widget.freeze()
    assert len(published) == 2
    assert "SECRET" in published[1]["text/html"]


def test_a_program_without_anywidget_gets_the_plain_widget() -> None:
    code = (
        "import importlib.util, sys\n"
        "find = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *rest: None if name == 'anywidget' else find(name, *rest)\n"
        "from yiemagent_nb.widgets import AgentWidget, PlainAgentWidget\n"
        "assert AgentWidget is PlainAgentWidget and 'anywidget' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_front_end_is_read_when_a_widget_is_made() -> None:
    code = (
        "from yiemagent_nb.widgets import AgentWidget, assets\n"
        "assert not assets.script.cache_info().currsize and not assets.style.cache_info().currsize\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_importing_the_package_loads_no_widgets() -> None:
    code = "import sys, yiemagent_nb; assert not {'ipywidgets', 'anywidget', 'markdown_it'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
