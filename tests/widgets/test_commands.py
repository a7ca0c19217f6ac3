"""Slash commands: built in, and a user's own, which send a text, tell something, or do something."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from typing import Any, cast

import pytest
from agent.script import eventually

from yiemagent_nb.backends.discovery import Candidate, DefaultBackend, Found
from yiemagent_nb.backends.kinds import OPENAI
from yiemagent_nb.backends.openai import OpenAI
from yiemagent_nb.core.agent import Agent
from yiemagent_nb.core.errors import AgentBusyError, InvalidParametersError, YiemAgentError
from yiemagent_nb.testing import Scripted
from yiemagent_nb.widgets import AgentWidget, ChatPanel
from yiemagent_nb.widgets.commands import ChatCommands, CommandValue, Notice, SlashCommand
from yiemagent_nb.widgets.protocol import read_page_message


class Chat:
    """The commands of an agent that answers "yes", and what they told the page."""

    def __init__(self, agent: Agent | None = None, **commands: CommandValue) -> None:
        self.agent = agent or Agent(Scripted(["yes"] * 9))
        self.commands = ChatCommands(self.agent, commands)
        self.told: list[Mapping[str, Any]] = []

    async def run(self, name: str, text: str = "") -> None:
        later = self.commands.run(name, text, self.told.extend)
        if later is not None:
            await later

    async def said(self) -> list[str]:
        await eventually(lambda: len(self.agent.messages) > 0)
        await self.agent.wait_idle()
        return [message.text for message in self.agent.messages if message.role == "user"]

    async def notice(self) -> str:
        await eventually(lambda: bool(self.told))
        [event] = self.told
        assert event["type"] == "notice"
        return event["text"]


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@pytest.mark.parametrize(
    ("template", "words", "sent"),
    [
        ("Translate: {text}", " good day ", "Translate: good day"),
        ("Twice {text} {text}", "{text}", "Twice {text} {text}"),
        ("No place {0} %s", "for words", "No place {0} %s\n\nfor words"),
        ("Alone", "", "Alone"),
    ],
)
async def test_a_template_is_sent_with_the_words_in_it(template: str, words: str, sent: str) -> None:
    chat = Chat(own=template)
    await chat.run("own", words)
    assert await chat.said() == [sent]


async def test_a_function_runs_in_a_worker_thread_and_what_it_returns_is_sent() -> None:
    threads: list[threading.Thread] = []

    def plot(column: str) -> str:
        threads.append(threading.current_thread())
        return f"Plot {column}"

    chat = Chat(plot=plot)
    await chat.run("plot", "price")
    assert await chat.said() == ["Plot price"]
    assert threads[0] is not threading.current_thread()


async def test_an_async_function_runs_on_the_agents_loop() -> None:
    loops: list[asyncio.AbstractEventLoop] = []

    async def look(words: str) -> str:
        loops.append(asyncio.get_running_loop())
        return words.upper()

    chat = Chat(look=look)
    await asyncio.to_thread(
        chat.commands.run, "look", "here", chat.told.extend
    )  # as where sub-shells take a page's messages
    assert await chat.said() == ["HERE"]
    assert loops == [asyncio.get_running_loop()]


async def test_a_function_may_send_nothing_or_tell_something_to_the_person_alone() -> None:
    done: list[str] = []
    chat = Chat(quiet=done.append, tell=lambda words: Notice(f"You said {words}."))
    await chat.run("quiet", "a")
    await eventually(lambda: done == ["a"])
    await chat.run("tell", "b")
    assert await chat.notice() == "You said b."
    assert chat.agent.messages == ()


def _divide(words: str) -> str:
    return str(1 / len(words))


def _count(words: str) -> int:
    return len(words)


def _of_nothing() -> str:
    return "x"


@pytest.mark.parametrize(
    ("value", "notice"),
    [
        (_divide, "/own failed: ZeroDivisionError: division by zero"),
        (_count, "/own: it returned int; expected was a text to send, a Notice, or None."),
        (_of_nothing, "/own failed: TypeError"),
    ],
)
async def test_what_goes_wrong_in_a_users_command_becomes_a_notice(value: Any, notice: str) -> None:
    chat = Chat(own=value)
    await chat.run("own")
    assert (await chat.notice()).startswith(notice)


async def test_a_full_channel_is_told_too() -> None:
    chat = Chat(own="x")
    chat.agent.abort()
    for _ in range(16):
        chat.agent.input_channel.put_nowait("waits")
        chat.agent.abort()
    await chat.run("own")
    assert "full" in await chat.notice()


@pytest.mark.parametrize("name", ["", "/x", "a b", "-x", "x" * 41, "a/b", 3])
def test_a_name_that_cannot_be_typed_is_refused(name: Any) -> None:
    with pytest.raises(InvalidParametersError, match="is no name of a command"):
        ChatPanel(Agent(Scripted(["yes"])), commands={name: "x"})


def test_a_value_that_is_neither_text_nor_function_is_refused() -> None:
    with pytest.raises(InvalidParametersError, match="/x is of type int; expected was a string or a function"):
        ChatPanel(Agent(Scripted(["yes"])), commands=cast("Any", {"x": 3}))


def test_a_users_commands_come_first_say_what_they_are_and_may_replace_a_built_in_one() -> None:
    def plot(column_name: str) -> str:
        """Plot a column.

        Of the table.
        """
        return column_name

    own = SlashCommand("any", "Mine", "what", plot)
    widget = AgentWidget(Agent(Scripted(["yes"])), commands={"plot": plot, "short": "In short: {text}", "help": own})
    forms: list[dict[str, Any]] = (widget.panels[0].snapshot() or {})["commands"]
    widget.close()
    assert forms[:3] == [
        {"name": "plot", "description": "Plot a column", "takes": "column name"},
        {"name": "short", "description": "In short: …", "takes": "text"},
        {"name": "help", "description": "Mine", "takes": "what"},
    ]
    assert [form["name"] for form in forms[3:]] == ["new", "stop", "retry", "model", "thinking", "tools"]


def test_commands_beside_panels_would_belong_to_nobody() -> None:
    agent = Agent(Scripted(["yes"]))
    with pytest.raises(InvalidParametersError, match="belong to a ChatPanel"):
        AgentWidget(agent, panels=[ChatPanel(agent)], commands={"x": "y"})


async def test_an_unknown_command_is_refused_by_the_panel() -> None:
    message = read_page_message({"type": "command", "ticket": "1", "name": "nope", "text": ""})
    with pytest.raises(YiemAgentError, match="There is no command /nope"):
        ChatPanel(Agent(Scripted(["yes"]))).handle(message, lambda _: None)


async def test_new_keeps_the_conversation_as_a_branch_and_retry_answers_once_more() -> None:
    chat = Chat(Agent(Scripted(["one", "two", "three"])))
    with pytest.raises(InvalidParametersError, match="no answer yet"):
        await chat.run("retry")
    await chat.agent.prompt("u")
    await chat.run("retry")
    await eventually(lambda: [getattr(each, "text", "") for each in chat.agent.messages] == ["u", "two"])
    await chat.agent.wait_idle()
    await chat.run("new")
    await eventually(lambda: chat.agent.messages == ())
    assert "a way back" in (await chat.notice())
    await chat.agent.prompt("v")
    chat.agent.switch_branch(0, 0)
    assert [getattr(each, "text", "") for each in chat.agent.messages] == ["u", "two"]


async def test_stop_ends_a_run_and_what_needs_an_idle_agent_is_refused_meanwhile() -> None:
    started = asyncio.Event()

    async def endless(_messages: object) -> str:
        started.set()
        await asyncio.Event().wait()
        return ""

    chat = Chat(Agent(endless))
    going = asyncio.ensure_future(chat.agent.prompt("u"))
    await started.wait()
    for name in ("new", "retry"):
        with pytest.raises(AgentBusyError):
            await chat.run(name)
    await chat.run("stop")
    assert (await going).stop_reason == "aborted"


async def test_model_and_thinking_set_what_is_known_and_tell_what_is_set() -> None:
    def answer(_messages: object, *, model: object = None, thinking_level: object = None) -> str:
        return f"{model} {thinking_level}"

    chat = Chat(Agent(answer))
    await chat.run("model", "tiny-1")
    await chat.run("thinking", "high")
    assert chat.agent.state.model is not None
    assert (chat.agent.state.model.id, chat.agent.state.thinking_level) == ("tiny-1", "high")
    await chat.run("model")
    await chat.run("thinking")
    assert "The model is tiny-1." in chat.told[2]["text"]
    assert "The thinking level is high. There are: off, minimal" in chat.told[3]["text"]
    with pytest.raises(InvalidParametersError, match="no thinking level 'much'"):
        await chat.run("thinking", "much")


async def test_of_another_model_of_the_backend_that_was_found_its_context_and_prices_are_known() -> None:
    cloud = Candidate("openai", "OpenAI", "A key is set.", OPENAI.base_url, ("gpt-5.4",))

    async def find() -> Found:
        return Found(OpenAI("gpt-5.4", api_key="sk-of-the-test"), cloud.label, cloud.reason, choice=cloud)

    backend = DefaultBackend(find)
    assert backend.describe_model("gpt-5.4").context_window is None
    await backend.resolve()
    chat = Chat(Agent(backend))
    await chat.run("model", "gpt-5.4")
    assert chat.agent.state.model == OpenAI("gpt-5.4", api_key="sk-of-the-test").model


async def test_a_backend_that_takes_no_model_is_told_none() -> None:
    def answer(_messages: object) -> str:
        return "x"

    with pytest.raises(InvalidParametersError, match="answer takes no model"):
        await Chat(Agent(answer)).run("model", "tiny-1")


async def test_tools_and_help_list_what_is_there() -> None:
    chat = Chat(Agent(Scripted(["yes"]), tools=[add]), own="Mine {text}")
    await chat.run("tools")
    await chat.run("help")
    tools, listed = (event["text"] for event in chat.told)
    assert tools == "add: Add two numbers."
    assert listed.startswith("/own TEXT: Mine …\n/new: Start")
    empty = Chat()
    await empty.run("tools")
    assert "no tools" in await empty.notice()


async def leave(_words: str) -> str:
    raise SystemExit(3)


async def cancel(_words: str) -> str:
    raise asyncio.CancelledError


def leave_in_a_thread(_words: str) -> str:
    raise SystemExit(4)


@pytest.mark.parametrize(
    ("command", "said"), [(leave, "SystemExit: 3"), (cancel, "CancelledError"), (leave_in_a_thread, "SystemExit: 4")]
)
async def test_a_command_ends_nothing_but_itself(command: CommandValue, said: str) -> None:
    chat = Chat(own=command)
    await chat.run("own")
    assert said in await chat.notice()


async def test_a_new_conversation_is_not_begun_while_something_waits() -> None:
    chat = Chat(Agent(Scripted(["one"])))
    await chat.agent.prompt("u")
    chat.agent.abort()  # what is put now would start a run
    chat.agent.follow_up_channel.put_nowait("old")
    with pytest.raises(InvalidParametersError, match="Messages wait here"):
        await chat.run("new")
