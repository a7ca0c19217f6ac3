"""A run that waits for a person, when no widget is left; a card that has just come; how long an answer took."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Any, cast

import ipywidgets
import pytest
from agent.script import Model, call, eventually
from widgets.page import Page

from yiemagent_nb.core.agent import Agent
from yiemagent_nb.core.approval import approve
from yiemagent_nb.core.tools import tool
from yiemagent_nb.widgets import cells
from yiemagent_nb.widgets.plain_cards import approval_card


@tool
def delete() -> str:
    """Delete it."""
    return "deleted"


async def asking() -> tuple[Agent, asyncio.Future[Any]]:
    agent = Agent(Model(call("delete"), "done"), tools=[delete], before_tool_call=approve())
    going = asyncio.ensure_future(agent.prompt("u"))
    await eventually(lambda: bool(agent.approvals.pending))
    return agent, going


async def test_a_run_that_waits_for_a_person_ends_with_the_last_widget_in_which_one_could_answer() -> None:
    agent, going = await asking()
    leave = agent.attend()
    cells._give_up(agent)  # pyright: ignore[reportPrivateUsage]  # another widget is there
    assert agent.approvals.pending
    leave()
    cells._give_up(agent)  # pyright: ignore[reportPrivateUsage]
    await going
    await agent.wait_idle()
    assert agent.approvals.pending == ()
    assert not any(getattr(message, "text", "") == "deleted" for message in agent.messages)


@pytest.mark.parametrize(("wait", "answered"), [(60.0, False), (0.0, True)])
async def test_a_card_that_has_only_just_come_takes_no_answer(wait: float, answered: bool) -> None:
    agent, going = await asking()
    told: list[str] = []
    card = approval_card(agent, agent.approvals.pending[0], told.append, time.monotonic() + wait)
    cast("Any", _button(card, "Allow once")).click()
    assert (agent.approvals.pending == ()) is answered
    assert ("only just appeared" in "".join(told)) is not answered
    agent.abort()
    await going


def _button(box: ipywidgets.Box, text: str) -> ipywidgets.Button:
    for child in cast("tuple[Any, ...]", cast("Any", box).children):
        if isinstance(child, ipywidgets.Button) and cast("Any", child).description == text:
            return child
        if isinstance(child, ipywidgets.Box):
            try:
                return _button(child, text)
            except LookupError:
                continue
    raise LookupError(text)


async def test_a_page_that_comes_late_is_told_how_long_an_answer_took() -> None:
    async def slow(_messages: Sequence[Mapping[str, Any]]) -> str:
        await asyncio.sleep(0.05)
        return "done"

    agent = Agent(slow)
    page = Page(agent)
    page.hello()
    await agent.prompt("u")
    await page.until("message_end")
    took = page.events("message_end")[0]["message"]["seconds"]
    assert took >= 0.05
    page.host.receive({"type": "hello", "last_seq": 0})
    await eventually(lambda: "snapshot" in page.batches[-1])
    assert page.batches[-1]["snapshot"]["chat"]["messages"][-1]["seconds"] == took
