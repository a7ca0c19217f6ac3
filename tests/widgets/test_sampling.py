"""A person sets sampling parameters in the header; those that the backend takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from widgets.page import Page

from yiemagent_nb.backends.demo import Demo
from yiemagent_nb.backends.openai import OpenAI
from yiemagent_nb.core.agent import Agent

Messages = Sequence[Mapping[str, Any]]


async def look(agent: Agent) -> tuple[Page, dict[str, Any]]:
    page = Page(agent)
    page.hello()
    await page.until("alive")
    return page, page.batches[0]["snapshot"]["backend"]


async def set_options(page: Page, **options: float | None) -> dict[str, Any]:
    page.host.receive({"type": "set_options", "ticket": "t", "options": options})
    return await page.reply("t")


async def test_what_a_person_sets_reaches_the_backend_and_what_they_empty_does_not() -> None:
    seen: list[dict[str, Any]] = []

    async def llm_call(_messages: Messages, **options: Any) -> str:
        seen.append({name: value for name, value in options.items() if name in {*shown["options"], "stop"}})
        return "hello"

    agent = Agent(llm_call, options={"stop": ["x"], "top_p": 0.5})
    page, shown = await look(agent)
    assert shown["options"] == {"temperature": None, "top_p": 0.5, "max_tokens": None, "seed": None}
    assert shown["options_note"] == ""
    assert (await set_options(page, temperature=0.2, top_p=None, seed=7.0))["type"] == "accepted"
    await page.until("backend")
    assert page.events("backend")[-1]["options"]["temperature"] == 0.2
    await agent.prompt("hello")
    assert seen == [{"stop": ["x"], "temperature": 0.2, "seed": 7}]
    assert type(seen[0]["seed"]) is int


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"temperature": -1.0}, "temperature is -1.0; expected a number, 0 or more"),
        ({"top_p": 1.5}, "expected a number from 0 to 1"),
        ({"max_tokens": 0.5}, "expected a whole number"),
        ({"seed": 1.5}, "expected a whole number"),
        ({"api_key": 1.0}, "takes no api_key"),
        ({"temperature": 1.0, "n": 3.0}, "takes no n"),
    ],
)
async def test_what_is_out_of_range_or_unknown_is_refused_and_changes_nothing(
    options: dict[str, float], words: str
) -> None:
    async def llm_call(_messages: Messages, **_options: Any) -> str:
        raise NotImplementedError

    agent = Agent(llm_call)
    page, _ = await look(agent)
    assert words in (await set_options(page, **options))["message"]
    assert dict(agent.options) == {}


async def test_a_backend_shows_those_that_it_declares_and_says_what_it_lacks() -> None:
    async def some(_messages: Messages, temperature: float = 1.0) -> str:
        raise NotImplementedError

    async def none(_messages: Messages) -> str:
        raise NotImplementedError

    _, shown = await look(Agent(some))
    assert shown["options"] == {"temperature": None}
    assert shown["options_note"] == "some takes no top_p and no max_tokens and no seed."
    _, shown = await look(Agent(none))
    assert (shown["options"], shown["options_note"]) == ({}, "none takes none: it declares no such keywords.")
    _, shown = await look(Agent(Demo()))
    assert shown["options"] == {}
    assert "nothing in it is left to chance" in shown["options_note"]
    _, shown = await look(Agent(OpenAI("gpt-5.4")))
    assert "takes no seed" in shown["options_note"]
