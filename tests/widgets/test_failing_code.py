"""What fails in a person's own backend or tool harms neither the page nor what it asks next."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from itertools import count
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator
from widgets.page import Page

from yiemagent_nb.core.agent import Agent
from yiemagent_nb.core.approval import approve
from yiemagent_nb.core.messages import AssistantMessage, ToolResultMessage, UserMessage
from yiemagent_nb.core.models import LlmModel
from yiemagent_nb.testing import Scripted, call


class Own:
    """A backend of a user's own."""

    def __call__(self, _messages: object, *, model: object = None) -> str:
        return "hi" if model is None else "hi from a model"


def failing(name: str, **others: object) -> Own:
    """A backend one of whose attributes cannot be read."""

    def fail(_self: object) -> object:
        raise RuntimeError(f"no {name}")

    return type("Failing", (Own,), {**others, name: property(fail)})()


class Half(Own):
    """Its suggestions break off."""

    @property
    def suggestions(self) -> Iterator[str]:
        yield "one"
        raise RuntimeError("no second")


class Endless(Own):
    """Its suggestions never end, and one would fill a page."""

    @property
    def suggestions(self) -> Iterator[str]:
        yield "x" * 1_000_000
        for number in count():
            yield str(number)


class Named(Own):
    """It says its model by name alone."""

    provider = "mine"
    model = "tiny"


BACKENDS = [
    failing("base_url"),
    failing("base_url", provider="mine", model=None),
    failing("suggestions"),
    failing("provider", model=None),
    failing("model", provider="mine"),
    failing("health"),
    failing("connection"),
    Half(),
    Endless(),
    Named(),
]


@pytest.mark.parametrize("backend", BACKENDS, ids=range(len(BACKENDS)))
async def test_a_backend_whose_attributes_fail_is_shown_and_answers(backend: Own) -> None:
    agent = Agent(backend)
    page = Page(agent)
    page.hello()
    await page.until("alive")
    snapshot = page.batches[0]["snapshot"]
    assert snapshot["backend"]["label"]
    assert snapshot["backend"]["note"] == ""
    assert len(str(snapshot)) < 20_000
    assert (await agent.prompt("hello")).text.startswith("hi")
    page.host.receive({"type": "check_backend", "ticket": "t"})
    assert (await page.reply("t"))["type"] == "accepted"
    assert page.synced


async def test_a_header_of_which_a_part_fails_shows_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = Agent(Own())
    page = Page(agent)

    def fail() -> dict[str, Any]:
        raise RuntimeError("no watch")

    monkeypatch.setattr(page.host.backend.watch, "form", fail)
    page.hello()
    await page.until("alive")
    shown = page.batches[0]["snapshot"]["backend"]
    assert shown["choices"] == [{"key": "1", "label": "Own"}]
    assert "no watch" in shown["note"]
    assert shown["health"]["state"] == "unknown"


class Describing(Own):
    """It knows no model, and says so in its own way."""

    def describe_model(self, model: str) -> LlmModel:
        raise ZeroDivisionError(model)


async def test_what_fails_in_an_unforeseen_way_is_refused_as_often_as_it_is_asked_for(
    caplog: pytest.LogCaptureFixture,
) -> None:
    page = Page(Agent(Describing()))
    page.hello()
    request = {"type": "set_model", "ticket": "t", "model": "tiny"}
    for times in (1, 2):
        with caplog.at_level(logging.ERROR):
            page.host.receive(request)
        await page.until("refused", times)
    refused = page.events("refused")[-1]
    assert (refused["ticket"], refused["message"]) == ("t", "It failed with ZeroDivisionError: tiny.")
    assert page.events("accepted") == []
    assert "what a page asked for failed" in caplog.text


def _no_zero(number: int) -> int:
    return number if 1 / number else 0


async def test_edited_arguments_at_which_the_tools_own_check_fails_leave_the_request_waiting() -> None:
    def half(number: Annotated[int, AfterValidator(_no_zero)]) -> float:
        """Halve a number."""
        return number / 2

    agent = Agent(Scripted([[call("half", number=3)], "done"]), tools=[half], before_tool_call=approve())
    page = Page(agent)
    page.hello()
    run = asyncio.create_task(agent.prompt("go"))
    await page.until("approval")
    [waiting] = agent.approvals.pending
    edit = {"type": "approve", "request_id": waiting.request_id, "choice": "allow_edited"}
    for times in (1, 2):
        page.host.receive({**edit, "ticket": "t", "arguments": {"number": 0}})
        await page.until("refused", times)
    refused = page.events("refused")[-1]
    assert refused["code"] == "INVALID_PARAMETERS"
    assert "the tool's own check" in refused["message"].lower()
    assert "ZeroDivisionError" in refused["message"]
    assert agent.approvals.pending == (waiting,)
    page.host.receive({**edit, "ticket": "t", "arguments": {"number": 4}})
    assert (await run).text == "done"
    result = agent.messages[2]
    assert isinstance(result, ToolResultMessage)
    assert result.text.startswith("2.0\n")


def test_a_request_for_which_the_agent_has_no_event_loop_is_refused_as_often_as_it_is_made() -> None:
    agent = Agent(Own(), messages=[UserMessage("hello"), AssistantMessage("hi")])
    page = Page(agent)
    page.hello()
    page.until_threadsafe("alive")
    for times in (1, 2):
        page.host.receive({"type": "regenerate", "ticket": "t", "index": 1})
        page.until_threadsafe("refused", times)
    assert page.events("refused")[-1]["code"] == "AGENT_CLOSED"
    assert page.events("accepted") == []
