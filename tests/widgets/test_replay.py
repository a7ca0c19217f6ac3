"""What the front end makes of the batches of real agents is the agents' own history.

The page's connection and store run in node, as the front end has them; the agents, the hosts and the
batches are Python's. Batches get lost, pages come late, and both sides end with the same transcript.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from agent.scenario import SCRIPTS, Script
from agent.script import LENGTH, Gate, Model, call, eventually
from agent.test_random_runs import Play
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from widgets.node_pages import NodePage, NodePages, compare

from yiemagent_nb.core.agent import Agent
from yiemagent_nb.core.approval import approve
from yiemagent_nb.core.errors import ServerError
from yiemagent_nb.core.events import AgentEnd, Event, QuestionAsked
from yiemagent_nb.core.messages import (
    AssistantMessage,
    AssistantToolCallMessage,
    CustomMessage,
    ImageContent,
    TextContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from yiemagent_nb.core.results import ToolResult
from yiemagent_nb.core.signal import AbortSignal
from yiemagent_nb.core.tools import ToolContext

EXAMPLES = 100

PIXEL = ImageContent(
    data="iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
    mime_type="image/png",
)


SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}


@pytest.fixture(scope="module")
def pages(front_end: Path) -> Iterator[NodePages]:
    with NodePages(front_end) as pages:
        yield pages


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def fails() -> None:
    """Fail."""
    raise RuntimeError("it broke: <b>\N{PARTY POPPER}</b>")


async def reports(context: ToolContext) -> str:
    """Tell of its progress."""
    for step in range(5):
        context.update(f"{step}/5")
        await asyncio.sleep(0)
    return "x" * 60_000


def picture() -> ToolResult:
    """Give a picture."""
    return ToolResult(["Here it is.", PIXEL])


TOOLS = (add, fails, reports, picture)
PAIR = [call("add", {"a": 1, "b": 2}, "p"), call("fails", None, "q"), call("reports", None, "r")]

Show = Callable[[Agent], None]
Case = Callable[[Show], Awaitable[Agent]]
CASES: dict[str, Case] = {}


def case(play: Case) -> Case:
    """A way of a conversation: it shows its agent to pages, and returns it at the end."""
    CASES[play.__name__] = play
    return play


@dataclass(frozen=True)
class Plan:
    """How a page follows; the numbers count events of the agent."""

    begins: int = 0
    """When its widget is made."""
    hello: int = 0
    """When a view is shown, at the earliest."""
    frame: int = 1
    """How many events make a batch, unless one is due by the clock."""
    lost: frozenset[int] = frozenset()
    """Batches that never arrive."""


class Follower:
    """A page that follows an agent by a plan."""

    def __init__(self, pages: NodePages, agent: Agent, plan: Plan, event: int) -> None:
        self.page = NodePage(pages, agent, plan.lost)
        self.plan = plan
        self._events = itertools.count(event + 1)
        self._greeted = False
        self._step(event)
        agent.subscribe(lambda _event, _signal: self._step(next(self._events)))  # after the page's own

    def compare(self) -> None:
        """Assert that the page knows what the agent knows, at the end."""
        self._step(10**6)
        try:
            compare(self.page.catch_up(), self.page.agent)
        except AssertionError as error:
            error.add_note(f"{self.plan}, after {self.page.batches} batches")
            raise

    def _step(self, event: int) -> None:
        if event >= self.plan.hello and not self._greeted:
            self._greeted = True
            self.page.hello()
        if event % self.plan.frame == 0:
            self.page.deliver()


class Audience:
    """Pages that follow one agent, each by its plan."""

    def __init__(self, pages: NodePages, plans: Sequence[Plan]) -> None:
        self._pages = pages
        self._waiting = list(plans)
        self._events = itertools.count(1)
        self.followers: list[Follower] = []

    def show(self, agent: Agent) -> None:
        """Follow an agent from now on."""
        self._agent = agent
        self._begin(0)
        agent.subscribe(self._listen)

    def compare(self) -> None:
        """Assert that each page knows what the agent knows."""
        self._begin(10**6)
        for follower in self.followers:
            follower.compare()

    def _listen(self, event: Event, _signal: AbortSignal) -> None:
        number = next(self._events)
        if not isinstance(event, AgentEnd):  # a widget that is made by then takes the run for one that goes on
            self._begin(number)

    def _begin(self, event: int) -> None:
        due = [plan for plan in self._waiting if plan.begins <= event]
        for plan in due:
            self._waiting.remove(plan)
            self.followers.append(Follower(self._pages, self._agent, plan, event))


@case
async def plain(show: Show) -> Agent:
    agent = Agent(Model(["Good ", "day, ", "\N{PARTY POPPER} ", "friend \ud83d.", ""], "Again."))
    show(agent)
    await agent.prompt("hello \ud800")
    await agent.prompt("once more")
    return agent


@case
async def reasoning_between_texts(show: Show) -> Agent:
    pieces = [{"reasoning": "First "}, {"reasoning": "this."}, "Then ", "that.", {"reasoning": "Hm."}, "End."]
    agent = Agent(Model(pieces))
    show(agent)
    await agent.prompt("think")
    return agent


@case
async def an_answer_that_comes_whole(show: Show) -> Agent:
    def answer(messages: Sequence[Any]) -> object:
        return "At once." if len(messages) == 1 else {"content": None}

    agent = Agent(answer, tools=TOOLS)
    show(agent)
    await agent.prompt("one")
    await agent.prompt("two")
    return agent


@case
async def parallel_tools_of_which_one_fails(show: Show) -> Agent:
    agent = Agent(Model([{"reasoning": "Three."}, "I call.", *PAIR], [*PAIR], "Done."), tools=TOOLS)
    show(agent)
    await agent.prompt("go")
    return agent


@case
async def tools_in_turn_and_a_picture(show: Show) -> Agent:
    agent = Agent(Model([call("picture"), *PAIR], "Done."), tools=TOOLS, tool_execution="sequential")
    show(agent)
    await agent.prompt([UserMessage(["look", PIXEL])])
    return agent


@case
async def malformed_arguments_and_an_unknown_tool(show: Show) -> Agent:
    calls = [
        call("add", '{"a": 1, ', "x"),
        call("add", '{"a": "no"}', "y"),
        call("nothing", None, "z"),
        call("add", "", "w"),
    ]
    agent = Agent(Model(calls, [call("add", '{"a": NaN, "b": 1}', "x")], "Sorry."), tools=TOOLS)
    show(agent)
    await agent.prompt("go")
    return agent


@case
async def arguments_in_pieces(show: Show) -> Agent:
    pieces = [
        {"tool_calls": [{"index": 0, "function": {"name": "a", "arguments": ""}}]},
        {"tool_calls": [{"index": 0, "id": "late", "function": {"name": "dd", "arguments": '{"a": 1'}}]},
        {"tool_calls": [{"index": 1, "id": "", "function": {"name": "add", "arguments": '{"a": 3,'}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": ', "b": 2}'}}]},
        {"tool_calls": [{"index": 1, "function": {"arguments": ' "b": 4}'}}]},
    ]
    agent = Agent(Model(pieces, "Sums."), tools=TOOLS)
    show(agent)
    await agent.prompt("go")
    return agent


@case
async def aborted_in_a_stream(show: Show) -> Agent:
    def stop() -> None:
        agent.abort()

    agent = Agent(Model(["I be", *PAIR[:1], stop, "gin"], "Back."), tools=TOOLS)
    show(agent)
    await agent.prompt("go")
    await agent.prompt("again")
    return agent


@case
async def aborted_in_tools(show: Show) -> Agent:
    gate = Gate()

    async def waits() -> object:
        """Wait at the gate."""
        return await gate()

    agent = Agent(Model([*PAIR, call("waits")], "Back."), tools=[*TOOLS, waits])
    show(agent)
    run = asyncio.ensure_future(agent.prompt("go"))
    await gate.started.wait()
    agent.follow_up("this waits")
    agent.abort()
    await run
    return agent


@case
async def errors(show: Show) -> Agent:
    agent = Agent(
        Model(["So f", ServerError("out to lunch")], ServerError("still"), [*PAIR[:1], ServerError("third")], "Fine."),
        tools=TOOLS,
    )
    show(agent)
    for text in ("one", "two", "three", "four"):
        await agent.prompt(text)
    return agent


@case
async def cut_off(show: Show) -> Agent:
    agent = Agent(Model(["Long", LENGTH], [*PAIR[:1], LENGTH], "Short."), tools=TOOLS)
    show(agent)
    await agent.prompt("one")
    await agent.prompt("two")
    return agent


@case
async def steered_and_followed_up(show: Show) -> Agent:
    def say() -> None:
        agent.steer("to the left")
        agent.steer(CustomMessage(kind="a note"))
        agent.follow_up("and afterwards")
        agent.steer("to the right")

    agent = Agent(Model(["Go", say, "ing.", *PAIR], "Left.", "Right.", "After."), tools=TOOLS)
    show(agent)
    await agent.prompt("go")
    return agent


@case
async def notes_and_a_reset(show: Show) -> Agent:
    agent = Agent(Model("One.", "Two."), tools=TOOLS)
    show(agent)
    await agent.prompt([CustomMessage(kind="note", data={"x": 1}), UserMessage("one")])
    agent.reset()
    await agent.prompt("two")
    return agent


@case
async def approvals(show: Show) -> Agent:
    agent = Agent(Model(PAIR[:2], PAIR[::2], "Done."), tools=TOOLS, before_tool_call=approve())
    show(agent)
    run = asyncio.ensure_future(agent.prompt("go"))
    for choice in ("allow_once", "deny", "allow_edited", "allow_session"):
        await eventually(lambda: bool(agent.approvals.pending))
        arguments = {"a": 5, "b": 6} if choice == "allow_edited" else None
        agent.approvals.resolve(agent.approvals.pending[0].request_id, choice, "because", arguments)
        await asyncio.sleep(0)
    await run
    return agent


@case
async def questions(show: Show) -> Agent:
    async def asks(context: ToolContext) -> str:
        """Ask three questions."""
        asked = [
            QuestionAsked(request_id=f"q{number}", source="server", message="Which?", schema=SCHEMA)
            for number in range(3)
        ]
        answers = await asyncio.gather(*(agent.questions.ask(each, context.signal) for each in asked))
        return " ".join(answer.action for answer in answers)

    agent = Agent(Model([call("asks")], "Done."), tools=[asks])
    show(agent)
    run = asyncio.ensure_future(agent.prompt("go"))
    await eventually(lambda: len(agent.questions.pending) == 3)
    agent.questions.answer("q1", {"city": "Lisbon"})
    agent.questions.cancel("q2")
    agent.questions.decline("q0")
    await run
    return agent


@case
async def a_long_history(show: Show) -> Agent:
    history: list[Any] = []
    for number in range(150):
        called = ToolCall(id="same", name="add", arguments={"a": number})
        history += [
            UserMessage(f"question {number}"),
            AssistantToolCallMessage(["I call."], tool_calls=[called]),
            ToolResultMessage(
                tool_call_id="same", tool_name="add", content=(TextContent(f"sum {number}"),), is_error=number % 3 == 0
            ),
            AssistantMessage("x" * 3_000),
        ]
    agent = Agent(Model("Fine."), messages=history, tools=TOOLS)
    show(agent)
    await agent.prompt("go on")
    return agent


PLANS = (
    Plan(),
    Plan(frame=7),
    Plan(frame=1_000),
    *(Plan(hello=number) for number in (3, 5, 6, 8, 11, 14, 18)),
    *(Plan(begins=number, hello=number) for number in (4, 6, 7, 9, 10, 12, 16, 20)),
    *(
        Plan(lost=frozenset({number, number + gap}))
        for number, gap in ((1, 0), (2, 1), (4, 0), (6, 3), (9, 1), (13, 2))
    ),
    Plan(frame=3, lost=frozenset({2, 4, 5})),
    Plan(begins=10_000),
)


@pytest.mark.parametrize("name", CASES)
async def test_pages_know_what_the_agent_knows(pages: NodePages, name: str) -> None:
    audience = Audience(pages, PLANS)
    await CASES[name](audience.show)
    audience.compare()
    assert audience.followers[0].page.asked == 0


PLAN = st.builds(
    Plan,
    begins=st.sampled_from([0, 0, 0, *range(30)]),
    hello=st.sampled_from([0, 0, *range(40)]),
    frame=st.sampled_from([1, 1, 2, 3, 5, 100]),
    lost=st.frozensets(st.integers(1, 40), max_size=6),
)


@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(script=SCRIPTS, plans=st.lists(PLAN, min_size=2, max_size=4, unique=True))
def test_whatever_happens_and_whatever_is_lost(pages: NodePages, script: Script, plans: list[Plan]) -> None:
    async def follow() -> None:
        play = Play(script)
        audience = Audience(pages, plans)
        audience.show(play.agent)
        await play.run()
        audience.compare()

    asyncio.run(follow())


async def test_a_page_that_leaves_takes_nothing_from_another(pages: NodePages) -> None:
    agent = Agent(Model("One.", "Two."))
    page = NodePage(pages, agent)
    page.hello()
    page.host.receive({"type": "hello", "last_seq": 0, "page": "another"})
    await agent.prompt("one")
    page.deliver()
    page.host.receive({"type": "bye", "page": "another"})
    batches = page.batches
    await agent.prompt("two")
    page.deliver()
    assert page.batches > batches
    assert page.asked == 0
    compare(page.catch_up(), agent)
