"""The protocol's reference server, over each of its transports: all that it does beside tools."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any

import pytest
from mcp_client.third_party_servers import EVERYTHING, Place
from mcp_client.watching import until

from yiemagent_nb import (
    Agent,
    ApprovalRequested,
    Event,
    McpError,
    McpServer,
    McpTimeoutError,
    QuestionAsked,
    ServerEvent,
    ToolCall,
    ToolExecutionUpdate,
    ToolResultMessage,
)
from yiemagent_nb.core.errors import InvalidParametersError
from yiemagent_nb.testing import EventRecorder, Scripted, call

pytestmark = pytest.mark.timeout(300)  # the first test on a machine installs the server

Connect = Callable[..., AbstractAsyncContextManager[McpServer]]

DOCUMENT = "demo://resource/static/document/features.md"
DYNAMIC = "demo://resource/dynamic/text/7"
PROMPT = {"type": "ref/prompt", "name": "completable-prompt"}


@pytest.fixture(params=EVERYTHING)
def connect(request: pytest.FixtureRequest, place: Place) -> Connect:
    return partial(EVERYTHING[request.param], place)


class Heard:
    """What a server tells by itself."""

    def __init__(self, server: McpServer) -> None:
        self._events: asyncio.Queue[ServerEvent] = asyncio.Queue()
        server.subscribe(self._events.put_nowait)

    async def next(self, kind: str) -> Mapping[str, Any]:
        """The data of the next event of one kind; those before it are passed over."""
        async with asyncio.timeout(20):
            while (event := await self._events.get()).kind != kind:
                pass
            return event.data

    def now(self, kind: str) -> list[Mapping[str, Any]]:
        """The data of all events of one kind that have come."""
        events = [self._events.get_nowait() for _ in range(self._events.qsize())]
        return [event.data for event in events if event.kind == kind]


def name_of(agent: Agent, tool: str) -> str:
    """What an agent calls a tool of the server."""
    return next(name for name, each in agent.state.tools.items() if each.original_name == tool)


def agent_that_calls(server: McpServer, tool: str, *more: Any, **arguments: Any) -> Agent:
    """An agent whose model calls a tool, and then says ``done``; ``more`` it says in between."""

    def first(_messages: object) -> list[ToolCall]:
        return [call(name_of(agent, tool), **arguments)]

    agent = Agent(Scripted([first, *more, "done"]), mcp_servers=[server])
    return agent


def result_of(agent: Agent) -> ToolResultMessage:
    """The only result of a tool."""
    (result,) = [message for message in agent.messages if isinstance(message, ToolResultMessage)]
    return result


async def test_it_says_who_it_is_and_how_it_wants_to_be_used(connect: Connect) -> None:
    async with connect() as server:
        assert server.state == "ready"
        assert server.info.name == "mcp-servers/everything"
        assert server.info.protocol == "2025-11-25"
        assert server.info.capabilities["resources"]["subscribe"] is True
        assert server.info.instructions


async def test_its_prompts_are_listed_and_filled_in(connect: Connect) -> None:
    async with connect() as server:
        names = {prompt["name"] for prompt in await server.list_prompts()}
        assert names == {"simple-prompt", "args-prompt", "completable-prompt", "resource-prompt"}
        simple = await server.get_prompt("simple-prompt")
        assert simple["messages"][0]["content"]["type"] == "text"
        filled = await server.get_prompt("args-prompt", {"city": "Lisbon"})
        assert "Lisbon" in filled["messages"][0]["content"]["text"]
        embedded = await server.get_prompt("resource-prompt", {"resourceType": "Text", "resourceId": "1"})
        assert "resource" in {message["content"]["type"] for message in embedded["messages"]}
        with pytest.raises(McpError, match="city"):
            await server.get_prompt("args-prompt")


async def test_its_resources_and_templates_are_listed_and_read(connect: Connect) -> None:
    async with connect() as server:
        assert DOCUMENT in {resource["uri"] for resource in await server.list_resources()}
        templates = {template["uriTemplate"] for template in await server.list_resource_templates()}
        assert templates == {
            "demo://resource/dynamic/text/{resourceId}",
            "demo://resource/dynamic/blob/{resourceId}",
        }
        (document,) = await server.read_resource(DOCUMENT)
        assert document["text"].startswith("#")
        (text,) = await server.read_resource(DYNAMIC)
        assert "Resource 7" in text["text"]
        (blob,) = await server.read_resource("demo://resource/dynamic/blob/7")
        assert blob["blob"]
        answer = await server("resources/read", "demo://resource/nowhere")
        assert answer["error"]["code"] == -32602
        assert "nowhere" in answer["error"]["message"]


async def test_arguments_of_its_prompts_are_completed_by_what_is_known(connect: Connect) -> None:
    async with connect() as server:
        assert await server.complete(PROMPT, "department", "E") == ["Engineering"]
        assert await server.complete(PROMPT, "name", "", {"department": "Sales"}) == ["David", "Eve", "Frank"]


async def test_a_change_of_a_resource_is_told_to_those_who_asked(connect: Connect) -> None:
    async with connect() as server:
        heard = Heard(server)
        await server.subscribe_resource(DYNAMIC)
        await server.call_tool("toggle-subscriber-updates")
        assert (await heard.next("resource_updated"))["uri"] == DYNAMIC
        await server.call_tool("toggle-subscriber-updates")
        await server.unsubscribe_resource(DYNAMIC)
        heard.now("resource_updated")
        await server.call_tool("toggle-subscriber-updates")
        await server.list_prompts()
        assert heard.now("resource_updated") == []


async def test_a_resource_that_a_tool_makes_is_told_and_can_be_read(connect: Connect) -> None:
    async with connect() as server:
        heard = Heard(server)
        result = await server.call_tool("gzip-file-as-resource", {"name": "a.gz", "data": "data:text/plain,hello"})
        await heard.next("resources_changed")
        (link,) = result["content"]
        assert link["uri"] in {resource["uri"] for resource in await server.list_resources()}
        (content,) = await server.read_resource(link["uri"])
        assert content["blob"].startswith("H4sI")


async def test_its_log_messages_come_from_the_level_on_that_was_asked_for(connect: Connect) -> None:
    async with connect() as server:
        heard = Heard(server)
        await server.set_log_level("debug")
        await server.subscribe_resource(DYNAMIC)
        told = await heard.next("log")
        assert told["level"] == "info"
        assert DYNAMIC in told["data"]
        await server.set_log_level("error")
        heard.now("log")
        await server.unsubscribe_resource(DYNAMIC)
        await server.list_prompts()
        assert heard.now("log") == []


async def test_it_learns_the_roots_that_it_may_know_of(connect: Connect, place: Place) -> None:
    async with connect(roots=[place.folder]) as server:
        result = await server.call_tool("get-roots-list")
        assert place.folder.as_uri() in result["content"][0]["text"]


async def test_it_hears_of_roots_that_changed_while_it_is_connected(connect: Connect, place: Place) -> None:
    async with connect(roots=[place.folder]) as server:
        address = (place.folder / "files").as_uri()

        def was_told() -> bool:
            newest = [entry.text for entry in server.log.entries()]
            answers = [at for at, text in enumerate(newest) if f'"{address}"' in text]
            return bool(answers) and any("Roots updated" in text for text in newest[answers[0] :])

        await server.call_tool("get-roots-list")
        await server.set_roots([place.folder / "files"])
        await until(was_told)
        assert [root["uri"] for root in server.roots] == [address]
        result = await server.call_tool("get-roots-list")
        assert address in result["content"][0]["text"]
        with pytest.raises(InvalidParametersError):
            await server.set_roots(["https://example.org"])
        assert len(server.roots) == 1


@pytest.mark.requirement("Y FR-004")
async def test_what_it_asks_a_model_is_answered_by_the_agents_once_a_person_agreed(connect: Connect) -> None:
    async with connect() as server:
        agent = agent_that_calls(server, "trigger-sampling-request", "the sampled answer", prompt="Say something.")
        asked: list[ApprovalRequested] = []

        def agree(event: Event, _signal: object) -> None:
            if isinstance(event, ApprovalRequested):
                asked.append(event)
                agent.approvals.resolve(event.request_id, "allow_once")

        agent.attend()
        agent.subscribe(agree)
        async with agent:
            await agent.prompt("go")
    assert "the sampled answer" in result_of(agent).text
    assert [event.source for event in asked] == ["everything"]
    assert "Say something." in str(asked[0].args)


async def test_what_it_asks_a_model_is_not_answered_when_the_person_says_no(connect: Connect) -> None:
    async with connect() as server:
        agent = agent_that_calls(server, "trigger-sampling-request", prompt="Say something.")

        def refuse(event: Event, _signal: object) -> None:
            if isinstance(event, ApprovalRequested):
                agent.approvals.resolve(event.request_id, "deny", "not now")

        agent.attend()
        agent.subscribe(refuse)
        async with agent:
            assert (await agent.prompt("go")).text == "done"
    assert result_of(agent).is_error
    assert "not now" in result_of(agent).text


def answering(agent: Agent, answer: Callable[[QuestionAsked], None]) -> None:
    def listen(event: Event, _signal: object) -> None:
        if isinstance(event, QuestionAsked):
            answer(event)

    agent.attend()
    agent.subscribe(listen)


@pytest.mark.requirement("Y FR-004")
async def test_what_it_asks_a_person_is_answered_with_the_defaults_of_what_was_left_out(connect: Connect) -> None:
    async with connect() as server:
        agent = agent_that_calls(server, "trigger-elicitation-request")

        def answer(question: QuestionAsked) -> None:
            assert question.schema is not None
            assert "name" in question.schema["properties"]
            with pytest.raises(InvalidParametersError, match="name"):
                agent.questions.answer(question.request_id, {"check": True})
            agent.questions.answer(question.request_id, {"name": "Ada", "check": True})

        answering(agent, answer)
        async with agent:
            await agent.prompt("go")
    said = result_of(agent).text
    assert "- Name: Ada" in said
    assert "- Agreed to terms: true" in said
    assert "- Favorite Integer: 42" in said


@pytest.mark.parametrize(("choice", "said"), [("decline", "declined"), ("cancel", "cancelled")])
async def test_a_person_may_leave_what_it_asks_unanswered(connect: Connect, choice: str, said: str) -> None:
    async with connect() as server:
        agent = agent_that_calls(server, "trigger-elicitation-request")
        answering(agent, lambda question: getattr(agent.questions, choice)(question.request_id))
        async with agent:
            await agent.prompt("go")
    assert said in result_of(agent).text


async def test_it_may_ask_a_person_to_visit_an_address(connect: Connect) -> None:
    async with connect() as server:
        agent = agent_that_calls(
            server, "trigger-url-elicitation", url="https://example.org/login", message="Log in.", elicitationId="1"
        )
        seen: list[str] = []

        def go(question: QuestionAsked) -> None:
            seen.append(question.url)
            agent.questions.answer(question.request_id)

        answering(agent, go)
        async with agent:
            await agent.prompt("go")
    assert seen == ["https://example.org/login"]
    assert "User completed the URL elicitation flow" in result_of(agent).text


async def test_the_progress_of_a_long_call_is_told_step_by_step(connect: Connect) -> None:
    async with connect() as server:
        agent = agent_that_calls(server, "trigger-long-running-operation", duration=0.2, steps=4)
        recorder = EventRecorder()
        agent.subscribe(recorder)
        async with agent:
            await agent.prompt("go")
    assert [event.update.text for event in recorder.of(ToolExecutionUpdate)] == ["1/4", "2/4", "3/4", "4/4"]


async def test_a_long_call_ends_with_the_run_that_is_aborted_and_the_server_stays(connect: Connect) -> None:
    async with connect() as server:
        agent = agent_that_calls(server, "trigger-long-running-operation", duration=60, steps=600)
        first = asyncio.Event()
        agent.subscribe(lambda event, _: first.set() if isinstance(event, ToolExecutionUpdate) else None)
        async with agent, asyncio.timeout(20):
            run = asyncio.create_task(agent.prompt("go"))
            await first.wait()
            agent.abort()
            assert (await run).stop_reason == "tool_calls"
            assert "aborted" in result_of(agent).text
            answer = await server.call_tool("echo", {"message": "still here"})
        assert answer["content"][0]["text"] == "Echo: still here"
        assert server.restarts == 0


async def test_a_call_that_takes_too_long_is_given_up_and_the_server_stays(connect: Connect) -> None:
    async with connect() as server:
        with pytest.raises(McpTimeoutError):
            await server.call_tool("trigger-long-running-operation", {"duration": 60, "steps": 2}, timeout=0.3)
        answer = await server.call_tool("echo", {"message": "still here"})
        assert answer["content"][0]["text"] == "Echo: still here"
        assert server.restarts == 0


async def test_all_that_crosses_stands_in_its_log_by_direction(connect: Connect, place: Place) -> None:
    def sample(_params: Mapping[str, Any]) -> str:
        return "a sampled answer"

    async with connect(roots=[place.folder], on_sampling=sample) as server:
        heard = Heard(server)
        await server.call_tool("trigger-long-running-operation", {"duration": 0.1, "steps": 2})
        await server.call_tool("trigger-sampling-request", {"prompt": "Say something."})
        await server.call_tool("get-roots-list")
        await server.set_log_level("debug")
        await server.subscribe_resource(DYNAMIC)
        await heard.next("log")
        with pytest.raises(McpError):
            await server.get_prompt("args-prompt")
        with pytest.raises(McpTimeoutError):
            await server.call_tool("trigger-long-running-operation", {"duration": 60, "steps": 2}, timeout=0.2)
        assert 0 < await server.check() < 5
        entries = server.log.entries(limit=1_000)
    seen = {(entry.direction, entry.method, entry.seconds is not None, entry.is_error) for entry in entries}
    assert {
        ("state", "ready", False, False),
        ("out", "initialize", False, False),
        ("in", "initialize", True, False),
        ("out", "notifications/initialized", False, False),
        ("out", "tools/call", False, False),
        ("in", "notifications/progress", False, False),
        ("in", "tools/call", True, False),
        ("in", "sampling/createMessage", False, False),
        ("out", "sampling/createMessage", True, False),
        ("in", "roots/list", False, False),
        ("out", "roots/list", True, False),
        ("out", "logging/setLevel", False, False),
        ("in", "notifications/message", False, False),
        ("out", "resources/subscribe", False, False),
        ("in", "prompts/get", True, True),
        ("out", "notifications/cancelled", False, False),
        ("out", "ping", False, False),
        ("in", "ping", True, False),
    } <= seen
    answered = {entry.id for entry in entries if entry.direction == "in" and entry.seconds is not None}
    assert answered <= {entry.id for entry in entries if entry.direction == "out" and entry.method}
    assert any("a sampled answer" in entry.text for entry in entries if entry.direction == "out")
