"""What a server that is not to be trusted can have of a person and a model."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp_client.asking import ASK_NAME, VISIT, Person, allow_session, elicit, handler_of, refused, running, sample

from yiemagent_nb import Agent, approve
from yiemagent_nb.core.errors import McpError
from yiemagent_nb.core.events import ApprovalRequested, ApprovalResolved, Event, QuestionAsked, Trace
from yiemagent_nb.core.signal import AbortSignal
from yiemagent_nb.mcp.agent_answerer import MAX_MESSAGE, MAX_QUESTIONS, MAX_SAMPLINGS, MAX_SAMPLINGS_IN_RUN
from yiemagent_nb.mcp.requests import MAX_CALLS, RequestHandler
from yiemagent_nb.mcp.sampling import MAX_CHARACTERS
from yiemagent_nb.mcp.server import McpServer
from yiemagent_nb.testing import EventRecorder, Scripted, assistant, call

pytestmark = pytest.mark.requirement("Y US-002", "Y NFR-202")

PROGRAM = Path(__file__).with_name("asking_server.py")


def asking_server() -> McpServer:
    return McpServer.stdio(sys.executable, str(PROGRAM), name="asking")


def only_result(agent: Agent) -> Any:
    (result,) = (message for message in agent.messages if message.role == "toolResult")
    assert result.role == "toolResult"
    return json.loads(result.text)


class Model:
    """Counts who asks it at once; answers when it is released."""

    def __init__(self) -> None:
        self.now = self.most = 0
        self.release = asyncio.Event()
        self.asked = asyncio.Event()

    async def __call__(self, _: Any) -> str:
        self.now += 1
        self.most = max(self.most, self.now)
        self.asked.set()
        await self.release.wait()
        self.now -= 1
        return "answer"


def tasks_of(*work: Any) -> list[asyncio.Task[dict[str, Any]]]:
    return [asyncio.create_task(each) for each in work]


# --- Questions ---------------------------------------------------------------------------------


async def test_a_server_s_questions_are_few_at_once_and_end_with_the_run() -> None:
    recorder = EventRecorder()
    script = Scripted([[call("ask", number=100, left=MAX_QUESTIONS)], "done"])
    agent = Agent(script, mcp_servers=[asking_server()])
    agent.subscribe(recorder)
    agent.attend()
    async with asyncio.timeout(20), agent:
        await agent.prompt("Please.")
        assert agent.questions.pending == ()
    assert len(recorder.of(QuestionAsked)) == MAX_QUESTIONS
    assert only_result(agent) == {"cancel": 100 - MAX_QUESTIONS}


async def test_where_somebody_only_listens_a_question_does_not_wait() -> None:
    agent = Agent(Scripted([[call("ask", number=1, left=0)], "done"]), mcp_servers=[asking_server()])
    agent.subscribe(EventRecorder())
    async with asyncio.timeout(20), agent:
        await agent.prompt("Please.")
    assert only_result(agent) == {"cancel": 1}


async def test_a_question_goes_away_with_the_server_that_asked_it() -> None:
    server = asking_server()
    asked, gone = asyncio.Event(), asyncio.Event()

    def listen(event: Event, _: AbortSignal) -> None:
        if event.type == "question_asked":
            asked.set()
        elif event.type == "question_answered":
            gone.set()

    agent = Agent(Scripted(["hello"]), mcp_servers=[server])
    agent.subscribe(listen)
    agent.attend()
    async with asyncio.timeout(20), agent:
        await agent.prompt("Connect.")
        await server.notify("notifications/ask")
        await asked.wait()
        assert len(agent.questions.pending) == 1
        await server.notify("notifications/exit")
        await gone.wait()
        assert agent.questions.pending == ()


async def test_an_abort_takes_back_what_was_asked_of_an_idle_agent() -> None:
    agent = Agent(Scripted([]))
    Person(agent, lambda agent, _: agent.abort())
    async with asyncio.timeout(5):
        assert await elicit(handler_of(agent)) == {"action": "cancel"}


async def test_a_person_is_shown_the_beginning_of_an_endless_question() -> None:
    agent = Agent(Scripted([]))
    person = Person(agent, lambda agent, question: agent.questions.decline(question.request_id))
    await elicit(handler_of(agent), {**ASK_NAME, "message": "x" * 1_000_000})
    (question,) = person.asked
    assert isinstance(question, QuestionAsked)
    assert question.message == "x" * MAX_MESSAGE + "…"


async def test_an_endless_address_is_refused() -> None:
    agent = Agent(Scripted([]))
    agent.attend()
    with refused(-32602, "url must have at most"):
        await elicit(handler_of(agent), {**VISIT, "url": "https://example.org/" + "x" * 10_000})


@pytest.mark.parametrize("ask", [sample, elicit])
async def test_a_flood_does_not_call_a_person_s_function_without_end(ask: Any) -> None:
    release = asyncio.Event()

    async def wait(*_: Any) -> Any:
        await release.wait()
        return "answer" if ask is sample else {"name": "Ada"}

    handler = RequestHandler("flood", on_sampling=wait, on_elicitation=wait)
    tasks = tasks_of(*(ask(handler) for _ in range(MAX_CALLS + 3)))
    async with asyncio.timeout(5):
        await asyncio.gather(*tasks[MAX_CALLS:], return_exceptions=True)
        release.set()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    refusals = [each for each in outcomes if isinstance(each, McpError) or each == {"action": "cancel"}]
    assert refusals == outcomes[MAX_CALLS:]


# --- Sampling ----------------------------------------------------------------------------------


async def test_a_model_answers_few_requests_of_a_server_at_once() -> None:
    model = Model()
    async with running(Scripted([model] * MAX_SAMPLINGS)) as agent:
        Person(agent, allow_session)
        handler = handler_of(agent)
        tasks = tasks_of(*(sample(handler) for _ in range(20)))
        async with asyncio.timeout(5):
            outcomes = await asyncio.gather(*tasks[MAX_SAMPLINGS:], return_exceptions=True)
            model.release.set()
            answers = await asyncio.gather(*tasks[:MAX_SAMPLINGS])
    assert all(isinstance(each, McpError) and each.rpc_code == -1 for each in outcomes)
    assert len(answers) == MAX_SAMPLINGS
    assert model.most <= MAX_SAMPLINGS


async def test_what_is_allowed_for_the_session_is_asked_again_after_so_many_in_a_run() -> None:
    number = 2 * (MAX_SAMPLINGS_IN_RUN + 1)
    async with running(Scripted(["answer"] * number)) as agent:
        person = Person(agent, allow_session)
        handler = handler_of(agent)
        for _ in range(number):
            await sample(handler)
        assert len(person.asked) == 2
        person.leave()
        with refused(-1, "nobody is there"):
            await sample(handler)


async def test_what_is_allowed_for_the_session_does_not_count_while_the_agent_is_idle() -> None:
    async with running(Scripted(["1", "2", "3"])) as agent:
        person = Person(agent, allow_session)
        handler = handler_of(agent)
        await sample(handler)
    await sample(handler)
    assert len(person.asked) == 2
    person.leave()
    with refused(-1, "nobody is there"):
        await sample(handler)


async def test_an_abort_stops_a_model_that_answers_a_server_beside_an_idle_agent() -> None:
    model = Model()
    agent = Agent(Scripted([model]))
    Person(agent, allow_session)
    (task,) = tasks_of(sample(handler_of(agent)))
    async with asyncio.timeout(5):
        await model.asked.wait()
        agent.abort()
        with refused(-1, "The request was stopped"):
            await task


async def test_what_a_server_has_the_model_say_ends_with_the_run() -> None:
    model = Model()
    async with asyncio.timeout(5):
        async with running(Scripted([model])) as agent:
            Person(agent, allow_session)
            (task,) = tasks_of(sample(handler_of(agent)))
            await model.asked.wait()
        with refused(-1, "The request was stopped"):
            await task


async def test_the_sink_hears_of_each_request() -> None:
    steps: list[Trace] = []

    def keep(event: Event) -> None:
        if isinstance(event, Trace) and event.step.startswith("sampling."):
            steps.append(event)

    async with running(Scripted([assistant("1"), "2"]), event_sink=keep) as agent:
        Person(agent, allow_session)
        for _ in range(2):
            await sample(handler_of(agent))
    asked = {"server": "maths", "choice": "allow_session", "messages": 1}
    answered = {"server": "maths", "stop_reason": "end_turn", "cost": None}
    assert steps == [Trace("sampling.asked", asked), Trace("sampling.answered", answered)] * 2


async def test_code_that_answers_approvals_answers_what_servers_ask_the_model_while_the_agent_runs() -> None:
    asked: list[ApprovalRequested] = []

    def ask(request: ApprovalRequested) -> Any:
        asked.append(request)
        return "allow_once"

    async with running(Scripted(["42"]), before_tool_call=approve(ask=ask)) as agent:
        assert (await sample(handler_of(agent)))["content"]["text"] == "42"
    with refused(-1, "nobody is there"):
        await sample(handler_of(agent))
    Person(agent, lambda agent, request: agent.approvals.resolve(request.request_id, "deny"))
    with refused(-1, "The person rejected"):
        await sample(handler_of(agent))
    assert [(request.source, request.tool_name) for request in asked] == [("maths", "sampling/createMessage")]


async def test_an_abort_ends_the_wait_for_code_that_answers() -> None:
    recorder = EventRecorder()

    async def ask(_: ApprovalRequested) -> Any:
        asyncio.get_running_loop().call_soon(agent.abort)
        await asyncio.Event().wait()

    async with asyncio.timeout(5), running(Scripted([]), before_tool_call=approve(ask=ask)) as agent:
        agent.subscribe(recorder)
        with refused(-1, "the run was aborted"):
            await sample(handler_of(agent))
    assert [event.choice for event in recorder.of(ApprovalResolved)] == ["deny"]


async def test_a_tool_of_that_name_and_description_does_not_obtain_the_approval_to_sample() -> None:
    asked: list[str] = []

    def ask(request: ApprovalRequested) -> Any:
        asked.append(request.tool_name)
        return "deny" if request.tool_name == "sampling/createMessage" else "allow_session"

    name = "asking__sampling_createMessage"
    agent = Agent(Scripted([[call(name)], "done"]), mcp_servers=[asking_server()], before_tool_call=approve(ask=ask))
    async with asyncio.timeout(20), agent:
        await agent.prompt("Please.")
    assert asked == [name, "sampling/createMessage"]
    assert only_result(agent) == "The person rejected the request."


async def test_more_text_than_a_person_could_approve_is_refused() -> None:
    content = {"type": "text", "text": "x" * (MAX_CHARACTERS // 2 + 1)}
    with refused(-32602, "at most 1,000,000 characters"):
        await sample(handler_of(), messages=[{"role": "user", "content": [content, content]}])
