"""What servers ask an agent, and a person who answers."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from typing import Any

import pytest

from yiemagent_nb.core.agent import Agent
from yiemagent_nb.core.errors import McpError
from yiemagent_nb.core.events import ApprovalRequested, Event, QuestionAsked
from yiemagent_nb.core.signal import AbortSignal
from yiemagent_nb.mcp.agent_answerer import AgentAnswerer
from yiemagent_nb.mcp.requests import RequestHandler
from yiemagent_nb.testing import EventRecorder, Scripted

SAMPLE: dict[str, Any] = {
    "messages": [{"role": "user", "content": {"type": "text", "text": "What is 17 + 25?"}}],
    "maxTokens": 100,
}
NAME_SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
ASK_NAME: dict[str, Any] = {"mode": "form", "message": "Who are you?", "requestedSchema": NAME_SCHEMA}
VISIT: dict[str, Any] = {"mode": "url", "message": "Sign in.", "url": "https://example.org/in", "elicitationId": "e1"}


async def sample(handler: RequestHandler, **changes: Any) -> dict[str, Any]:
    return await handler.handle("sampling/createMessage", {**SAMPLE, **changes})


async def elicit(handler: RequestHandler, params: Mapping[str, Any] = ASK_NAME) -> dict[str, Any]:
    return await handler.handle("elicitation/create", params)


@contextlib.contextmanager
def refused(code: int, words: str = "") -> Generator[None]:
    with pytest.raises(McpError, match=words or None) as caught:
        yield
    assert caught.value.rpc_code == code


class Person:
    """Attends to an agent as a widget does, and answers in a thread of its own."""

    def __init__(self, agent: Agent, answer: Callable[[Agent, Any], object]) -> None:
        self.asked: list[ApprovalRequested | QuestionAsked] = []
        self.events = EventRecorder()
        self._agent = agent
        self._answer = answer
        agent.subscribe(self._listen)
        self.leave = agent.attend()

    def _listen(self, event: Event, _: AbortSignal) -> None:
        self.events(event)
        if isinstance(event, ApprovalRequested | QuestionAsked):
            self.asked.append(event)
            threading.Thread(target=self._answer, args=(self._agent, event)).start()


def allow(agent: Agent, request: ApprovalRequested) -> None:
    agent.approvals.resolve(request.request_id, "allow_once")


def allow_session(agent: Agent, request: ApprovalRequested) -> None:
    agent.approvals.resolve(request.request_id, "allow_session")


def say_ada(agent: Agent, question: QuestionAsked) -> None:
    agent.questions.answer(question.request_id, {"name": "Ada"})


def say_yes(agent: Agent, event: ApprovalRequested | QuestionAsked) -> None:
    if isinstance(event, QuestionAsked):
        say_ada(agent, event)
    else:
        allow(agent, event)


@contextlib.asynccontextmanager
async def running(aside: Scripted, **options: Any) -> AsyncGenerator[Agent]:
    """An agent in the midst of a run, whose model answers further requests as ``aside`` says."""
    begun, release = asyncio.Event(), asyncio.Event()

    async def wait(_: Any) -> str:
        begun.set()
        await release.wait()
        return "done"

    agent = Agent(Scripted([wait, *aside.answers]), **options)
    run = asyncio.create_task(agent.prompt("hi"))
    await begun.wait()
    try:
        yield agent
    finally:
        release.set()
        await run


def handler_of(*agents: Agent, name: str = "maths") -> RequestHandler:
    return RequestHandler(name, answerers=[AgentAnswerer(agent) for agent in agents])
