"""A server's question reaches every page, is answered there, and the server alone learns the answer."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from widgets.page import Page

from yiemagent_nb.core.agent import Agent
from yiemagent_nb.core.events import ApprovalRequested, QuestionAction, QuestionAsked
from yiemagent_nb.core.questions import Answer
from yiemagent_nb.core.signal import AbortSignal
from yiemagent_nb.core.tools import Tool
from yiemagent_nb.testing import Scripted

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string", "minLength": 2}, "seats": {"type": "integer", "default": 1}},
    "required": ["city"],
}


@pytest.fixture
def agent() -> Agent:
    return Agent(Scripted([]))


@pytest.fixture
def page(agent: Agent) -> Page:
    page = Page(agent)
    page.hello()
    return page


def ask(
    agent: Agent, schema: Mapping[str, Any] | None, url: str = "", message: str = "Where to?"
) -> asyncio.Future[Answer]:
    question = QuestionAsked("q-1", "railways", message, schema, url)
    return asyncio.ensure_future(agent.questions.ask(question, AbortSignal()))


async def test_a_question_is_told_with_its_fields_and_to_pages_that_come_late(agent: Agent, page: Page) -> None:
    waiting = ask(agent, SCHEMA)
    await page.until("question")
    late = Page(agent)
    late.hello()
    await late.until("alive")
    [told] = page.events("question")
    assert late.batches[0]["snapshot"]["chat"]["questions"] == [{k: v for k, v in told.items() if k != "type"}]
    assert (told["source"], told["message"], told["url"]) == ("railways", "Where to?", "")
    assert [(each["name"], each["kind"], each["default"]) for each in told["fields"]] == [
        ("city", "text", None),
        ("seats", "integer", 1),
    ]
    agent.questions.cancel("q-1")
    await waiting


@pytest.mark.parametrize(
    ("action", "content"),
    [("accept", {"city": "Lisbon"}), ("decline", None), ("cancel", None)],
)
async def test_a_persons_answer_goes_to_the_server_and_not_into_the_page(
    agent: Agent, page: Page, action: QuestionAction, content: dict[str, Any] | None
) -> None:
    waiting = ask(agent, SCHEMA)
    await page.until("question")
    page.host.receive({"type": "answer", "ticket": "t", "request_id": "q-1", "action": action, "content": content})
    assert (await page.reply("t"))["type"] == "accepted"
    assert await waiting == Answer(action, content or {})
    await page.until("question_done")
    assert page.events("question_done") == [{"type": "question_done", "request_id": "q-1", "action": action}]
    assert "Lisbon" not in str(page.batches)


async def test_values_that_do_not_fit_are_refused_and_the_question_waits_on(agent: Agent, page: Page) -> None:
    waiting = ask(agent, SCHEMA)
    await page.until("question")
    answer = {"type": "answer", "ticket": "t", "request_id": "q-1", "action": "accept"}
    page.host.receive({**answer, "content": {"city": "L", "seats": "two"}})
    refused = await page.reply("t")
    assert refused["type"] == "refused"
    assert "seats should be an integer" in refused["message"]
    assert [question.request_id for question in agent.questions.pending] == ["q-1"]
    page.host.receive({**answer, "content": {"city": "Lisbon"}})
    assert (await waiting).content == {"city": "Lisbon"}


async def test_a_visit_is_asked_for_with_its_address(agent: Agent, page: Page) -> None:
    waiting = ask(agent, None, "https://example.org/sign-in")
    await page.until("question")
    [told] = page.events("question")
    assert (told["fields"], told["url"]) == (None, "https://example.org/sign-in")
    page.host.receive({"type": "answer", "ticket": "t", "request_id": "q-1", "action": "accept"})
    assert await waiting == Answer("accept")


async def test_a_question_of_any_size_makes_a_small_message(agent: Agent, page: Page) -> None:
    large = {"type": "object", "properties": {f"x{n}": {"type": "string", "title": "t" * 100} for n in range(5_000)}}
    waiting = ask(agent, large, message="m" * 5_000_000)
    await page.until("question")
    [told] = page.events("question")
    assert (told["fields"], told["url"]) == (None, "")
    assert page.size < 20_000
    agent.questions.cancel("q-1")
    await waiting


async def test_an_answer_to_no_question_is_refused(page: Page) -> None:
    page.host.receive({"type": "answer", "ticket": "t", "request_id": "gone", "action": "decline"})
    assert "No question 'gone' waits" in (await page.reply("t"))["message"]


async def test_a_request_for_approval_of_any_size_is_shown_shortened(agent: Agent, page: Page) -> None:
    tool = Tool(name="sampling", description="Use the model.", source="notes", execute=print)
    args = {"messages": [{"text": "Describe this."}, {"data": "x" * 3_000_000}]}
    request = ApprovalRequested("a-1", "", "sampling", args, "notes", "")
    waiting = asyncio.ensure_future(agent.approvals.request(tool, request, AbortSignal(), None))
    await page.until("approval")
    [told] = page.events("approval")
    assert (told["call_id"], told["source"], told["args"]) == ("", "notes", {})
    assert "Describe this." in told["args_text"]
    assert len(told["args_text"]) < 10_000
    page.host.receive({"type": "approve", "ticket": "t", "request_id": "a-1", "choice": "allow_once"})
    assert (await waiting).choice == "allow_once"
