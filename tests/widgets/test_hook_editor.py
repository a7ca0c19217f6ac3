"""The hook editor: what it tells its pages, and that code runs by Apply and Try of this session alone."""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

from yiemagent_nb.core.agent import Agent
from yiemagent_nb.core.approval import approve
from yiemagent_nb.hooks.kinds import KINDS
from yiemagent_nb.testing import Scripted, call
from yiemagent_nb.widgets.agent_widget import AgentWidget
from yiemagent_nb.widgets.chat_panel import ChatPanel
from yiemagent_nb.widgets.hook_editor import HookEditor
from yiemagent_nb.widgets.host import WidgetHost
from yiemagent_nb.widgets.panel_protocol import PanelMessage

HOOK = "before_tool_call"
CODE = "def before_tool_call(context, signal):\n    return {**context.arguments, 'a': 10}\n"


def add(a: int, b: int) -> int:
    """Add."""
    return a + b


class RefusedError(Exception):
    """The kernel refused."""


class EditorPage:
    """A page that shows the hook editor of an agent, beside the chat."""

    def __init__(self, agent: Agent, editor: HookEditor | None = None) -> None:
        self.text = ""
        self.events: list[dict[str, Any]] = []
        self.session = ""
        self.editor = editor or HookEditor(agent)
        self._tickets = map(str, itertools.count(1))
        self._answers: dict[str, dict[str, Any]] = {}
        self._values: dict[str, Any] = {}
        self._arrived = threading.Condition()
        self.host = WidgetHost(agent, [ChatPanel(agent), self.editor], self._take)
        self.host.receive({"type": "hello", "last_seq": 0})

    async def open(self) -> dict[str, Any]:
        self.host.receive({"type": "open_panel", "panel": "hooks"})
        return (await self.told("state"))["state"]

    async def ask(self, kind: str, **fields: Any) -> Any:
        ticket = next(self._tickets)
        self.host.receive({"type": kind, "ticket": ticket, **fields})
        await self.until(lambda: ticket in self._answers)
        if self._answers[ticket]["type"] == "refused":
            raise RefusedError(self._answers[ticket]["message"])
        return self._values.get(ticket)

    async def act(self, kind: str, **fields: Any) -> Any:
        await self.until(lambda: bool(self.session))
        return await self.ask(kind, session=self.session, **fields)

    async def apply(self, code: str = CODE, *, hook: str = HOOK, action: str = "apply", **fields: Any) -> Any:
        return await self.act("apply_hook", hook=hook, code=code, action=action, **fields)

    async def told(self, kind: str, test: Callable[[dict[str, Any]], object] = lambda _: True) -> dict[str, Any]:
        def found() -> list[dict[str, Any]]:
            return [event for event in tuple(self.events) if event["type"] == kind and test(event)]

        await self.until(lambda: bool(found()))
        return found()[-1]

    async def until(self, test: Callable[[], bool]) -> None:
        def wait() -> None:
            with self._arrived:
                assert self._arrived.wait_for(test, timeout=20)

        await asyncio.to_thread(wait)

    def _take(self, batch: dict[str, Any]) -> None:
        text = json.dumps(batch, ensure_ascii=False, allow_nan=False)
        with self._arrived:
            self.text += text
            for event in json.loads(text)["events"]:
                if event["type"] in ("accepted", "refused"):
                    self._answers[event["ticket"]] = event
                elif event["type"] == "reply":
                    self._values[event["ticket"]] = event["value"]
                elif event["type"] == "panel" and event["panel"] == "hooks":
                    self.events.append(event["event"])
            self.session = batch.get("snapshot", {}).get("session", self.session)
            self._arrived.notify_all()


def adding() -> Agent:
    return Agent(Scripted([[call("add", a=1, b=2)], "three"] * 3), tools=[add])


async def test_the_state_has_all_that_a_page_needs() -> None:
    agent = Agent(Scripted(["hi"]), tools=[add], before_tool_call=approve())
    page = EditorPage(agent)
    state = await page.open()
    assert [hook["name"] for hook in state["hooks"]] == list(KINDS)
    before = next(hook for hook in state["hooks"] if hook["name"] == HOOK)
    assert (before["takes"], before["several"], before["draft"]) == (["context", "signal"], True, None)
    assert before["installed"] == [
        {
            "name": "approve",
            "source": "approve()",
            "origin": "The hook that ``approve`` makes.",
            "editable": False,
            "version": None,
            "on_error": None,
        }
    ]
    assert {"redact", "ask_first"} <= {ready["name"] for ready in state["library"]}
    assert state["recorded"] == dict.fromkeys(KINDS, 0)
    page.host.close()


async def test_a_hook_is_tried_applied_reverted_and_kept_in_versions() -> None:
    agent = adding()
    page = EditorPage(agent)
    await page.open()
    await agent.prompt("1 + 2?")
    trial = await page.apply(action="try")
    assert [(each["title"], each["effect"]) for each in trial["calls"]] == [("add(a=1, b=2)", "changed")]
    assert agent.hooks.before_tool_call == ()
    assert await page.apply() == {"version": 1, "problems": []}
    shown = await page.told("hook", lambda event: event["installed"])
    assert (shown["installed"][0]["version"], shown["installed"][0]["source"]) == (1, CODE)
    await agent.prompt("1 + 2?")
    assert [message.text for message in agent.messages if message.role == "toolResult"] == ["3", "12"]
    answer = await page.apply("def before_tool_call(context):\n    pass\n")
    assert answer["version"] is None
    assert answer["problems"][0]["line"] == 1
    assert await page.ask("load_version", hook=HOOK, version=1) == {"code": CODE}
    await page.act("revert_hook", hook=HOOK)
    assert agent.hooks.before_tool_call == ()
    with pytest.raises(RefusedError, match="nothing to revert"):
        await page.act("revert_hook", hook=HOOK)
    with pytest.raises(RefusedError, match="not installed any more"):
        await page.act("remove_hook", hook=HOOK, index=0)
    page.host.close()


async def test_a_failure_is_told_as_it_happens() -> None:
    agent = adding()
    page = EditorPage(agent)
    await page.open()
    await page.apply("def before_tool_call(context, signal):\n    x = 1\n    return x / 0\n")
    await agent.prompt("1 + 2?")
    failure = await page.told("failures")
    assert (failure["hook"], failure["version"], failure["line"], failure["count"]) == (HOOK, 1, 3, 1)
    assert failure["message"] == "It raised ZeroDivisionError: division by zero."
    page.host.close()


async def test_two_editors_of_an_agent_and_its_code_stay_in_step() -> None:
    agent = adding()
    one, other = EditorPage(agent), EditorPage(agent)
    await one.open()
    await other.open()
    await one.ask("draft_hook", hook=HOOK, code="half a ho")
    assert (await other.told("hook"))["draft"] == "half a ho"
    await one.apply()
    await other.told("hook", lambda event: [each["version"] for each in event["installed"]] == [1])
    agent.set_hooks(before_tool_call=approve())
    for page in (one, other):
        shown = await page.told("hook", lambda event: [each["name"] for each in event["installed"]] == ["approve"])
        assert not shown["revertible"]
        page.host.close()


# Nothing else has code that runs


@pytest.fixture
def marker(tmp_path: Path) -> Iterator[Path]:
    """A file that must not be there in the end."""
    path = tmp_path / "marker"
    yield path
    assert not path.exists()


def making(marker: Path) -> str:
    """Code that makes a file when it runs, when its function runs, and when it is looked at in any way."""
    touch = f"__import__('pathlib').Path({str(marker)!r}).touch()"
    return (
        f"{touch}\n"
        f"class Meta(type):\n    def __getattribute__(cls, name):\n        {touch}\n"
        f"def before_tool_call(context, signal, made={touch}):\n    {touch}\n"
        f'f"{{{touch}}}".title\n[{touch} for _ in "x"].copy\n{touch}.'
    )


STARS = {"apply_hook", "remove_hook", "revert_hook"}


async def test_no_message_but_apply_of_this_session_has_code_that_runs(marker: Path) -> None:
    agent = adding()
    await agent.prompt("1 + 2?")
    page = EditorPage(agent)
    await page.open()
    code = making(marker)
    for cursor in range(0, len(code) + 1, 29):
        await page.ask("complete_code", code=code, cursor=cursor)
    assert (await page.ask("check_code", code=code))["problems"]  # it ends in a dot
    await page.ask("draft_hook", hook=HOOK, code=code)
    for fields in ({}, {"session": ""}, {"session": "guessed"}, {"session": page.session[:-1]}):
        for action in ("try", "apply"):
            with pytest.raises(RefusedError):
                await page.ask("apply_hook", hook=HOOK, code=code.removesuffix("."), action=action, **fields)
    for kind, fields in every_message(code).items():
        with pytest.raises(RefusedError):
            await page.ask(kind, **fields)
    with pytest.raises(RefusedError):
        await page.ask("load_version", hook=HOOK, version=1)
    await page.open()  # the draft goes to each page that opens it, and runs in none
    assert agent.hooks.before_tool_call == ()
    await agent.prompt("1 + 2?")
    page.host.close()


def every_message(code: str) -> dict[str, dict[str, Any]]:
    """Each message of a page that some panel takes, with code in each of its texts."""
    found: dict[str, dict[str, Any]] = {}
    for kind in get_args(PanelMessage):
        (name,) = get_args(kind.model_fields["type"].annotation)
        fields = {
            each: code[:900] for each, of in kind.model_fields.items() if of.annotation is str and each != "ticket"
        }
        if name not in ("check_code", "complete_code", "draft_hook", "load_version", "open_panel"):
            found[name] = {**fields, "session": "guessed"} if "session" in kind.model_fields else fields
    assert set(found) >= STARS
    return found


async def test_the_same_code_runs_when_a_person_presses_apply(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    page = EditorPage(adding())
    await page.apply(making(marker).removesuffix("."))
    assert marker.exists()
    page.host.close()


async def test_a_page_of_another_kernel_has_no_code_that_runs(marker: Path) -> None:
    agent = adding()
    saved, page = EditorPage(agent), EditorPage(agent)
    await saved.until(lambda: bool(saved.session))
    await page.until(lambda: bool(page.session))
    assert saved.session != page.session
    code = making(marker).removesuffix(".")
    for action in ("try", "apply"):
        with pytest.raises(RefusedError, match="does not belong to this session"):
            await page.ask("apply_hook", session=saved.session, hook=HOOK, code=code, action=action)
    assert agent.hooks.before_tool_call == ()
    for each in (saved, page):
        each.host.close()


async def test_no_code_stands_in_the_state_that_a_notebook_saves() -> None:
    agent = adding()
    editor = HookEditor(agent)
    widget = AgentWidget(agent, panels=[ChatPanel(agent), editor])
    page = EditorPage(agent, editor)
    await page.open()
    await page.ask("draft_hook", hook=HOOK, code="draft = 'in the draft'")
    await page.apply(CODE.replace("10", "4711"))
    await page.ask("draft_hook", hook=HOOK, code="draft = 'in the draft'")
    state: dict[str, Any] = widget.get_state()  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    saved = repr({name: value for name, value in state.items() if name not in ("_esm", "_css")})
    assert "4711" not in saved
    assert "in the draft" not in saved
    assert "in the draft" in page.text
    widget.close()
    page.host.close()


async def test_a_hook_that_is_tried_waits_for_nobody_and_the_kernel_stays_alive() -> None:
    agent = adding()
    await agent.prompt("1 + 2?")
    page = EditorPage(agent, HookEditor(agent, seconds=0.2))
    await page.open()
    endless = asyncio.ensure_future(
        page.apply("async def before_tool_call(context, signal):\n    while True: pass\n", action="try")
    )
    assert (await page.ask("check_code", code="x ="))["problems"][0]["line"] == 1
    trial = await endless
    assert (trial["calls"][0]["effect"], trial["calls"][0]["line"]) == ("failed", 2)
    page.host.close()
