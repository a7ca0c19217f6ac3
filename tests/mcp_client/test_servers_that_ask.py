"""Real servers whose tools ask the client something, before the protocol of 2026 and with it."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from mcp.server.mcpserver import Context, Elicit, ListRoots, MCPServer, Resolve, Sample
from mcp.shared.exceptions import MCPError
from mcp_types import CreateMessageResult, ListRootsResult, SamplingMessage, TextContent
from pydantic import BaseModel, Field

from yiemagent_nb import Agent
from yiemagent_nb.core.events import ApprovalRequested, Event, QuestionAsked, ToolExecutionEnd
from yiemagent_nb.core.signal import AbortSignal
from yiemagent_nb.mcp.server import McpServer
from yiemagent_nb.testing import EventRecorder, Scripted, call

pytestmark = pytest.mark.requirement("Y US-002")

Protocol = Literal["auto", "legacy"]
PROTOCOLS: tuple[Protocol, ...] = ("auto", "legacy")


class Booking(BaseModel):
    """What a table is booked with."""

    name: str
    people: int = 2
    day: Annotated[str, Field(json_schema_extra={"format": "date"})] = "2026-12-01"


def ask_booking() -> Elicit[Booking]:
    return Elicit("Whom is the table for?", Booking)


def ask_model() -> Sample:
    content = TextContent(text="Name a dish.")
    return Sample([SamplingMessage(role="user", content=content)], max_tokens=50, system_prompt="Be brief.")


def ask_roots() -> ListRoots:
    return ListRoots()


def restaurant() -> MCPServer:
    server = MCPServer("restaurant")

    @server.tool()
    def book(booking: Annotated[Booking, Resolve(ask_booking)]) -> str:
        """Book a table."""
        return f"{booking.people} for {booking.name} on {booking.day}"

    @server.tool()
    def suggest(answer: Annotated[CreateMessageResult, Resolve(ask_model)]) -> str:
        """Suggest a dish."""
        return f"{answer.model} suggests {answer.content.text if isinstance(answer.content, TextContent) else '?'}"

    @server.tool()
    def folders(roots: Annotated[ListRootsResult, Resolve(ask_roots)]) -> str:
        """Tell which folders there are."""
        return json.dumps([[str(root.uri), root.name] for root in roots.roots])

    @server.tool()
    async def sign_in(context: Context) -> str:
        """Sign in."""
        return (await context.elicit_url("Sign in, please.", "https://example.org/in", "e1")).action

    @server.tool()
    async def ask_badly(context: Context) -> str:
        """Ask for what no form has."""
        schema: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "object", "properties": {}}}}
        try:
            await context.session.elicit("Fill in.", schema)
        except MCPError as error:
            return f"{error.code}: {error.message}"
        return "answered"

    return server


def answer_all(agent: Agent) -> None:
    """A person who answers whatever is asked, in a thread of their own."""

    def answer(event: ApprovalRequested | QuestionAsked) -> None:
        if isinstance(event, ApprovalRequested):
            agent.approvals.resolve(event.request_id, "allow_once")
        elif event.schema is None:
            agent.questions.answer(event.request_id)
        else:
            agent.questions.answer(event.request_id, {"name": "Ada", "people": "4"})

    def listen(event: Event, _: AbortSignal) -> None:
        if isinstance(event, ApprovalRequested | QuestionAsked):
            threading.Thread(target=answer, args=(event,)).start()

    agent.attend()
    agent.subscribe(listen)


async def run(tool: str, *answers: Any, listen: bool = True, **options: Any) -> tuple[str, EventRecorder]:
    """A run in which the model calls a tool of the restaurant; gives the tool's result."""
    server = McpServer.in_process(restaurant(), **options)
    agent = Agent(Scripted([[call(tool)], *answers, "done"]), mcp_servers=[server])
    recorder = EventRecorder()
    if listen:
        agent.subscribe(recorder)
        answer_all(agent)
    async with asyncio.timeout(20), agent:
        await agent.prompt("Please.")
        result = next(message for message in agent.messages if message.role == "toolResult")
        assert result.role == "toolResult"
        return result.text, recorder


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_person_fills_in_the_form_of_a_tool_that_runs(protocol: Protocol) -> None:
    text, recorder = await run("book", protocol=protocol)
    assert text == "4 for Ada on 2026-12-01"
    (question,) = recorder.of(QuestionAsked)
    assert (question.source, question.message) == ("restaurant", "Whom is the table for?")


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_function_fills_in_the_form_without_a_person(protocol: Protocol) -> None:
    def fill(message: str, schema: dict[str, Any]) -> dict[str, Any]:
        assert message == "Whom is the table for?"
        assert schema["required"] == ["name"]
        return {"name": "Grace"}

    text, _ = await run("book", protocol=protocol, on_elicitation=fill, listen=False)
    assert text == "2 for Grace on 2026-12-01"


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_where_nobody_is_there_the_tool_hears_of_a_cancellation(protocol: Protocol) -> None:
    text, _ = await run("book", protocol=protocol, listen=False)
    assert "cancel" in text.lower()


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_the_agent_s_model_answers_a_tool_that_runs(protocol: Protocol) -> None:
    text, recorder = await run("suggest", "soup", protocol=protocol)
    assert text == "scripted suggests soup"
    (request,) = recorder.of(ApprovalRequested)
    assert (request.source, request.args["systemPrompt"]) == ("restaurant", "Be brief.")
    assert [code for code in recorder.types() if code.startswith("ME")] == ["ME(u)", "ME(a)", "ME(tsuggest)", "ME(a)"]


async def test_a_function_answers_in_the_model_s_place() -> None:
    def count(params: dict[str, Any]) -> str:
        return f"{params['maxTokens']} peas"

    text, _ = await run("suggest", on_sampling=count, listen=False)
    assert text == "unknown suggests 50 peas"


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_where_nobody_is_there_nothing_is_sampled(protocol: Protocol) -> None:
    server = McpServer.in_process(restaurant(), protocol=protocol)
    agent = Agent(Scripted([[call("suggest")], "done"]), mcp_servers=[server])
    async with asyncio.timeout(20), agent:
        await agent.prompt("Please.")
        (result,) = (message for message in agent.messages if message.role == "toolResult")
        assert result.role == "toolResult"
        assert result.is_error
        assert "nobody is there" in result.text


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_server_is_told_its_roots(protocol: Protocol, tmp_path: Path) -> None:
    text, _ = await run("folders", protocol=protocol, roots=[tmp_path], listen=False)
    assert json.loads(text) == [[tmp_path.as_uri(), tmp_path.name]]
    assert json.loads((await run("folders", protocol=protocol, listen=False))[0]) == []


async def test_a_person_is_asked_to_visit_an_address() -> None:
    text, recorder = await run("sign_in", protocol="legacy")
    assert text == "accept"
    (question,) = recorder.of(QuestionAsked)
    assert (question.schema, question.url) == (None, "https://example.org/in")


async def test_a_form_that_is_none_is_refused_to_the_server() -> None:
    text, recorder = await run("ask_badly", protocol="legacy")
    assert text.startswith("-32602: the field")
    assert recorder.of(QuestionAsked) == []


@pytest.mark.requirement("Y SP-022")
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_an_abort_ends_the_call_and_the_question(protocol: Protocol) -> None:
    server = McpServer.in_process(restaurant(), protocol=protocol)
    agent = Agent(Scripted([[call("book")]]), mcp_servers=[server])
    recorder = EventRecorder()
    agent.attend()
    agent.subscribe(recorder)
    agent.subscribe(lambda event, _: agent.abort() if isinstance(event, QuestionAsked) else None)
    async with asyncio.timeout(20), agent:
        answer = await agent.prompt("Please.")
        assert answer.tool_calls
        (end,) = recorder.of(ToolExecutionEnd)
        assert end.is_error
        assert agent.questions.pending == ()
