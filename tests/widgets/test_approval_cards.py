"""What a person is shown of a call that waits, and how they answer: in the page's form and in the plain panel."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest
from widgets.page import Page

from yiemagent_nb.core.agent import Agent
from yiemagent_nb.core.approval import approve
from yiemagent_nb.core.events import ApprovalRequested
from yiemagent_nb.core.messages import ToolResultMessage
from yiemagent_nb.core.tools import ToolAnnotations, tool
from yiemagent_nb.testing import Scripted, call
from yiemagent_nb.widgets.page_forms import approval_form
from yiemagent_nb.widgets.plain import PlainAgentWidget


@tool(annotations=ToolAnnotations(destructive=True))
def add_up(a: int, b: int) -> int:
    """Add two numbers.

    Any numbers.
    """
    return a + b


def request(**fields: Any) -> ApprovalRequested:
    return dataclasses.replace(ApprovalRequested("r", "c", "add_up", {"a": 1, "b": 2}), **fields)


@pytest.mark.requirement("Y US-004")
def test_a_request_is_told_with_all_that_its_source_says_cut_to_a_length_that_fits() -> None:
    told = approval_form(
        request(label="Add\nup" * 100, source="s" * 1_000, description="One.\nTwo.", hints=("destructive", "x" * 1_000))
    )
    assert (told["label"].startswith("Add upAdd up"), len(told["label"])) == (True, 120)
    assert (len(told["source"]), told["description"]) == (80, "One.")
    assert (told["hints"][0], len(told["hints"][1])) == ("destructive", 60)
    assert (told["args"], told["args_text"]) == ({"a": 1, "b": 2}, None)
    assert len(approval_form(request(hints=("x",) * 1_000))["hints"]) == 8


@pytest.mark.parametrize(
    ("value", "editable"),
    [(2**53 - 1, True), (2**53, False), ([{"deep": [-(2**60)]}], False), (0.1, True), (True, True), ("9" * 30, True)],
)
def test_integers_that_a_page_would_round_are_shown_as_they_are_and_not_edited_there(
    value: object, *, editable: bool
) -> None:
    told = approval_form(request(args={"value": value}))
    assert (told["args_text"] is None) is editable
    assert json.loads(told["args_text"] or json.dumps(told["args"])) == {"value": value}


# --- In the page -------------------------------------------------------------------------------


def adding() -> Agent:
    return Agent(Scripted([[call("add_up", a=17, b=25)], "so"]), tools=[add_up], before_tool_call=approve())


def results(agent: Agent) -> list[str]:
    return [message.text for message in agent.state.messages if isinstance(message, ToolResultMessage)]


@pytest.mark.requirement("Y US-004", "Y SP-023")
async def test_arguments_that_do_not_fit_are_refused_in_the_page_and_go_on_waiting_in_every_view() -> None:
    agent = adding()
    page, other = Page(agent), Page(agent)
    page.hello()
    other.hello()
    run = asyncio.ensure_future(agent.prompt("17 + 25?"))
    for each in (page, other):
        await each.until("approval")
    [asked] = page.events("approval")
    assert (asked["label"], asked["hints"], asked["description"]) == ("Add up", ["destructive"], "Add two numbers.")
    edited = {"type": "approve", "request_id": asked["request_id"], "choice": "allow_edited"}
    page.host.receive({**edited, "ticket": "t1", "arguments": {"a": 1, "b": "two"}})
    refused = await page.reply("t1")
    assert (refused["type"], refused["hint"]) == ("refused", "Change them and answer again.")
    assert "b should be a valid integer" in refused["message"]
    assert 'got "two"' in refused["message"]
    assert page.events("approval_done") == []
    other.host.receive({**edited, "ticket": "t1", "arguments": {"a": 1, "b": 2}})
    await run
    assert results(agent) == [
        '3\n\nNote: the person changed the arguments of this call. It was allowed with: {"a": 1, "b": 2}'
    ]
    page.host.receive({**edited, "ticket": "t2", "choice": "deny"})
    assert (await page.reply("t2"))["message"] == (
        "This request was answered already: it was allowed with edited arguments."
    )
    for each in (page, other):
        await each.until("run_end")
        assert [done["choice"] for done in each.events("approval_done")] == ["allow_edited"]


# --- In the plain panel ------------------------------------------------------------------------


@pytest.fixture
async def asked() -> AsyncIterator[tuple[Agent, Any, asyncio.Future[Any]]]:
    """An agent that waits for approval, its plain panel, and the run."""
    agent = adding()
    plain = cast("Any", PlainAgentWidget(agent))
    came = asyncio.Event()
    agent.subscribe(lambda event, _signal: came.set() if event.type == "approval_requested" else None)
    run = asyncio.ensure_future(agent.prompt("17 + 25?"))
    async with asyncio.timeout(5):
        await came.wait()
    yield agent, plain, run
    agent.abort()
    await run
    plain.close()


def shown(card: Any) -> list[Any]:
    """The steps of a card that are shown."""
    return [step for step in card.children[1:] if step.layout.display != "none"]


def press(card: Any, text: str) -> None:
    [step] = shown(card)
    row = step.children if step.children[0].__class__.__name__ == "Button" else step.children[1].children
    next(button for button in row if button.description == text).click()


@pytest.mark.requirement("Y US-004")
async def test_the_plain_panel_shows_what_asks_and_edits_its_arguments(
    asked: tuple[Agent, Any, asyncio.Future[Any]],
) -> None:
    agent, plain, run = asked
    [card] = plain._asked.children
    told = card.children[0].value
    assert "Allow <b>Add up</b> to run?" in told
    assert "[destructive]" in told
    assert "Add two numbers." in told
    press(card, "Edit…")
    [editing] = shown(card)
    field = editing.children[0]
    assert json.loads(field.value) == {"a": 17, "b": 25}
    for text, problem in [
        ('{"a": 1,', "The arguments are no JSON"),
        ('{"a": NaN, "b": 1}', "NaN is no JSON"),
        ("[1]", "The arguments are a JSON object"),
        ('{"a": 1}', "Missing required arguments: b"),
    ]:
        field.value = text
        press(card, "Allow with these arguments")
        assert problem in plain._problem.value
        assert plain._asked.children == (card,)
        assert field.value == text
    field.value = '{"a": 1, "b": 2}'
    press(card, "Back")
    press(card, "Edit…")
    assert field.value == '{"a": 1, "b": 2}'
    press(card, "Allow with these arguments")
    await run
    assert plain._asked.children == ()
    assert plain._problem.value == ""
    assert results(agent)[0].startswith("3\n\nNote: the person changed")


@pytest.mark.requirement("Y US-004")
async def test_the_plain_panel_denies_with_a_reason(asked: tuple[Agent, Any, asyncio.Future[Any]]) -> None:
    agent, plain, run = asked
    [card] = plain._asked.children
    press(card, "Deny…")
    [denying] = shown(card)
    denying.children[0].value = "not <now>"
    press(card, "Deny")
    await run
    assert results(agent) == ["The person denied this call: not <now>"]
