"""The header shows how much the model thinks, lets a person change it, and says where that is of no use."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import pytest
from widgets.page import Page

from yiemagent_nb.core.agent import Agent
from yiemagent_nb.core.models import THINKING_LEVELS, LlmModel

Messages = Sequence[Mapping[str, Any]]


async def thinker(_messages: Messages, *, thinking_level: str) -> AsyncIterator[str]:
    yield f"I think {thinking_level}."


def shown(page: Page) -> dict[str, Any]:
    """The newest that the page knows."""
    told = page.events("backend")
    return (told[-1] if told else page.batches[0]["snapshot"]["backend"])["thinking"]


async def look(agent: Agent) -> Page:
    page = Page(agent)
    page.hello()
    await page.until("alive")
    return page


async def test_a_person_picks_a_level_and_the_backend_is_given_it() -> None:
    agent = Agent(thinker)
    page = await look(agent)
    assert shown(page) == {"level": "off", "levels": list(THINKING_LEVELS), "note": ""}
    page.host.receive({"type": "set_thinking", "ticket": "t", "level": "high"})
    assert (await page.reply("t"))["type"] == "accepted"
    assert (await agent.prompt("hello")).text == "I think high."


async def test_every_page_of_an_agent_is_told_from_wherever_it_was_set() -> None:
    agent = Agent(thinker)
    pages = [await look(agent), await look(agent)]
    message = {"type": "set_thinking", "ticket": "t", "level": "low"}
    await asyncio.to_thread(pages[0].host.receive, message)
    for page in pages:
        await page.until("backend")
        assert shown(page)["level"] == "low"
    agent.set_thinking_level("max")
    for page in pages:
        await page.until("backend", 2)
        assert shown(page)["level"] == "max"


@pytest.mark.parametrize("level", ["a lot", "", None, 3])
async def test_a_level_that_is_none_is_refused_and_changes_nothing(level: object) -> None:
    agent = Agent(thinker, thinking_level="low")
    page = await look(agent)
    page.host.receive({"type": "set_thinking", "ticket": "t", "level": level})
    refused = await page.reply("t")
    assert refused["code"] == "INVALID_PARAMETERS"
    assert "level" in refused["message"]
    assert agent.state.thinking_level == "low"


async def test_a_model_that_does_not_reason_says_so_while_thinking_is_off() -> None:
    agent = Agent(thinker, model=LlmModel(id="tide-1"))
    page = await look(agent)
    assert shown(page)["note"] == "The model tide-1 does not reason, as far as is known."
    agent.set_thinking_level("low")
    await page.until("backend")
    assert shown(page)["note"] == ""


async def test_a_function_that_takes_no_level_says_so() -> None:
    def plain(_messages: Messages) -> str:
        return "fine"

    assert shown(await look(Agent(plain)))["note"] == "plain takes no thinking_level."


async def test_a_model_that_may_reason_has_no_such_note() -> None:
    agent = Agent(thinker, model=LlmModel(id="tide-1", reasoning=True))
    assert shown(await look(agent))["note"] == ""
