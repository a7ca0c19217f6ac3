from __future__ import annotations

import asyncio
import dataclasses
import threading
from collections.abc import Callable
from typing import Any, cast, get_args

import pytest

from yiemagent_nb.core.agent import Agent
from yiemagent_nb.core.approval import Approval, Approvals, Decision, Subject, approve
from yiemagent_nb.core.approval_words import edit_note
from yiemagent_nb.core.errors import InvalidParametersError
from yiemagent_nb.core.events import ApprovalChoice, ApprovalRequested, ApprovalResolved, Event
from yiemagent_nb.core.hooks import AgentContext
from yiemagent_nb.core.lifecycle import CallScope, ImmediateOutcome, PreparedToolCall, prepare_tool_call
from yiemagent_nb.core.messages import AssistantToolCallMessage, ToolCall, ToolResultMessage
from yiemagent_nb.core.signal import AbortSignal
from yiemagent_nb.core.tools import Tool, ToolAnnotations, tool
from yiemagent_nb.testing import Scripted, call

CHOICES: tuple[ApprovalChoice, ...] = get_args(ApprovalChoice)


@tool
def delete(path: str) -> str:
    """Delete a file."""
    return path


@tool(annotations=ToolAnnotations(read_only=True))
def look(path: str) -> str:
    """Look at a file."""
    return path


class Desk:
    """Where calls come to be approved."""

    def __init__(self, hook: Approval) -> None:
        self.hook = hook
        self.events: list[Event] = []
        self.approvals = Approvals(self._emit)
        self.signal = AbortSignal()
        self.asked = asyncio.Event()

    def _emit(self, event: Event) -> None:
        self.events.append(event)
        if isinstance(event, ApprovalRequested):
            self.asked.set()

    async def prepare(self, called: Tool = delete, path: str = "notes.txt") -> PreparedToolCall | ImmediateOutcome:
        call = ToolCall(id="c1", name=called.name, arguments={"path": path})
        scope = CallScope(
            message=AssistantToolCallMessage(tool_calls=[call]),
            context=AgentContext(tools={called.name: called}),
            signal=self.signal,
            emit=self._emit,
            approvals=self.approvals,
            before_hooks=(self.hook,),
        )
        return await prepare_tool_call(call, scope)

    async def request(self, called: Tool = delete) -> tuple[asyncio.Task[Any], ApprovalRequested]:
        """A call that waits for an answer, and its request."""
        self.asked.clear()
        task = asyncio.create_task(self.prepare(called))
        async with asyncio.timeout(5):
            await self.asked.wait()
        return task, self.approvals.pending[-1]

    @property
    def requests(self) -> list[ApprovalRequested]:
        return [event for event in self.events if isinstance(event, ApprovalRequested)]

    @property
    def resolved(self) -> list[ApprovalResolved]:
        return [event for event in self.events if isinstance(event, ApprovalResolved)]


def answering(answer: Any) -> Callable[[ApprovalRequested], Any]:
    return lambda _request: answer


def text(outcome: PreparedToolCall | ImmediateOutcome) -> str:
    assert isinstance(outcome, ImmediateOutcome)
    assert outcome.result.is_error
    return outcome.result.text


# --- Whom to ask for ---------------------------------------------------------------------------


@pytest.mark.requirement("Y US-004", "Y FR-005")
async def test_by_default_all_but_read_only_tools_are_asked_for() -> None:
    desk = Desk(approve(ask=answering("allow_once")))
    assert isinstance(await desk.prepare(look), PreparedToolCall)
    assert desk.requests == []
    assert isinstance(await desk.prepare(delete), PreparedToolCall)
    assert [request.tool_name for request in desk.requests] == ["delete"]


@pytest.mark.requirement("Y US-004")
@pytest.mark.parametrize(
    "policy", ["delete", ["delete"], {"delete", "other"}, {"delete": 1}], ids=lambda p: type(p).__name__
)
async def test_names_say_which_tools_are_asked_for(policy: Any) -> None:
    desk = Desk(approve(policy, ask=answering("allow_once")))
    await desk.prepare(delete)
    await desk.prepare(look)
    assert [request.tool_name for request in desk.requests] == ["delete"]


@pytest.mark.requirement("Y US-004")
async def test_a_function_says_what_is_asked_for_allowed_and_denied() -> None:
    def policy(called: Tool, arguments: dict[str, Any]) -> Any:
        assert called is delete
        return {"a": "allow", "b": "deny", "c": "ask"}[arguments["path"]]

    desk = Desk(approve(policy, ask=answering("allow_once")))
    assert isinstance(await desk.prepare(path="a"), PreparedToolCall)
    assert text(await desk.prepare(path="b")) == "The policy does not allow this call."
    assert desk.requests == []
    assert isinstance(await desk.prepare(path="c"), PreparedToolCall)
    assert [request.args for request in desk.requests] == [{"path": "c"}]


@pytest.mark.requirement("Y US-004", "Y NFR-202")
@pytest.mark.parametrize("answer", [None, True, "yes", ["ask"]], ids=repr)
async def test_a_policy_that_answers_something_else_lets_nothing_run(answer: Any) -> None:
    desk = Desk(approve(lambda _tool, _arguments: answer, ask=answering("allow_once")))
    assert "The approval policy returned" in text(await desk.prepare())
    assert "expected 'ask', 'allow' or 'deny'" in text(await desk.prepare())


@pytest.mark.requirement("Y US-004", "Y NFR-202")
async def test_a_policy_that_raises_lets_nothing_run() -> None:
    desk = Desk(approve(lambda _tool, arguments: arguments["nothing"], ask=answering("allow_once")))
    assert "The hook approve raised KeyError" in text(await desk.prepare())


@pytest.mark.requirement("Y US-004")
async def test_a_request_says_what_is_to_be_approved() -> None:
    desk = Desk(approve())
    said = ToolAnnotations(read_only=False, destructive=True, open_world=True)
    task, request = await desk.request(dataclasses.replace(delete, source="files", annotations=said))
    assert request == ApprovalRequested(
        request_id=request.request_id,
        tool_call_id="c1",
        tool_name="delete",
        args={"path": "notes.txt"},
        source="files",
        description="Delete a file.",
        label="Delete",
        hints=("destructive", "reaches things outside"),
    )
    desk.approvals.resolve(request.request_id, "deny")
    await task


def test_the_hook_shows_its_policy_and_whether_it_needs_a_person() -> None:
    assert repr(approve()) == "approve()"
    assert repr(approve(["delete"])) == "approve(['delete'])"
    assert approve().needs_person
    assert not approve(ask=answering("deny")).needs_person


# --- Answers -----------------------------------------------------------------------------------


@pytest.mark.requirement("Y US-004")
async def test_allow_once_lets_one_call_run_and_asks_again() -> None:
    desk = Desk(approve())
    for _ in range(2):
        task, request = await desk.request()
        desk.approvals.resolve(request.request_id, "allow_once")
        assert isinstance(await task, PreparedToolCall)
    assert len(desk.requests) == 2
    assert desk.approvals.pending == ()
    assert [event.choice for event in desk.resolved] == ["allow_once", "allow_once"]


@pytest.mark.requirement("Y US-004")
async def test_allow_for_the_session_asks_no_more_until_it_is_cleared() -> None:
    desk = Desk(approve())
    task, request = await desk.request()
    desk.approvals.resolve(request.request_id, "allow_session")
    await task
    assert isinstance(await desk.prepare(), PreparedToolCall)
    assert len(desk.requests) == 1
    desk.approvals.clear()
    task, request = await desk.request()
    desk.approvals.resolve(request.request_id, "deny")
    await task


@pytest.mark.requirement("Y US-004", "Y risk table")
@pytest.mark.parametrize(
    "change",
    [
        {"description": "Delete a file and tell everyone."},
        {"input_schema": {"type": "object", "properties": {"path": {}, "force": {}}}, "validator": None},
        {"annotations": ToolAnnotations(destructive=True)},
        {"source": "another server"},
        {"original_name": "remove"},
    ],
    ids=lambda change: next(iter(change)),
)
async def test_a_tool_whose_definition_changed_must_be_approved_again(change: dict[str, Any]) -> None:
    desk = Desk(approve(ask=answering("allow_session")))
    await desk.prepare(delete)
    await desk.prepare(dataclasses.replace(delete))
    assert len(desk.requests) == 1, "an equal definition is the same"
    await desk.prepare(dataclasses.replace(delete, **change))
    assert len(desk.requests) == 2


@pytest.mark.parametrize(
    ("annotations", "hints"),
    [
        (ToolAnnotations(), ()),
        (ToolAnnotations(read_only=False, destructive=False, idempotent=False, open_world=False), ()),
        (ToolAnnotations(idempotent=True, read_only=True), ("can be repeated", "read-only by its own word")),
    ],
)
async def test_hints_say_what_a_tool_says_of_itself_and_nothing_else(
    annotations: ToolAnnotations, hints: tuple[str, ...]
) -> None:
    desk = Desk(approve(["delete"], ask=answering("allow_once")))
    await desk.prepare(dataclasses.replace(delete, annotations=annotations))
    assert desk.requests[0].hints == hints


@pytest.mark.requirement("Y US-004")
async def test_edited_arguments_are_what_the_tool_runs_with() -> None:
    desk = Desk(approve())
    task, request = await desk.request()
    desk.approvals.resolve(request.request_id, "allow_edited", arguments={"path": "safe"})
    assert (await task).arguments == {"path": "safe"}


@pytest.mark.requirement("Y US-004", "Y SP-023")
@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"paths": "safe"}, "Missing required arguments: path"),
        ({"path": 5}, "path should be a valid string, got 5"),
        ({"path": {1: "x"}}, "a JSON object has strings as keys"),
    ],
)
@pytest.mark.parametrize("called", [delete, dataclasses.replace(delete, validator=None, function=None)])
async def test_edited_arguments_that_do_not_fit_are_refused_and_the_request_goes_on_waiting(
    called: Tool, arguments: dict[str, Any], problem: str
) -> None:
    desk = Desk(approve())
    task, request = await desk.request(called)
    expected = problem if called is delete else problem.replace("a valid", "a")
    with pytest.raises(InvalidParametersError, match=expected) as caught:
        desk.approvals.resolve(request.request_id, "allow_edited", arguments=arguments)
    assert caught.value.hint == "Change them and answer again."
    assert desk.approvals.pending == (request,)
    assert desk.resolved == []
    desk.approvals.resolve(request.request_id, "allow_edited", arguments={"path": "safe"})
    assert (await task).arguments == {"path": "safe"}


@pytest.mark.requirement("Y US-004", "Y SP-024")
async def test_edited_arguments_are_checked_by_the_tools_own_check_and_not_prepared_again() -> None:
    def no_slash(arguments: dict[str, Any]) -> str | None:
        return "path has a slash" if "/" in arguments["path"] else None

    def at_home(arguments: dict[str, Any]) -> dict[str, Any]:
        return {"path": f"home.{arguments['path']}"}

    called = dataclasses.replace(
        delete,
        prepare_arguments=at_home,
        validate_required_args=no_slash,
    )
    desk = Desk(approve())
    task, request = await desk.request(called)
    assert request.args == {"path": "home.notes.txt"}
    with pytest.raises(InvalidParametersError, match="path has a slash"):
        desk.approvals.resolve(request.request_id, "allow_edited", arguments={"path": "/etc"})
    desk.approvals.resolve(request.request_id, "allow_edited", arguments={"path": "home.other.txt"})
    assert (await task).arguments == {"path": "home.other.txt"}


@pytest.mark.requirement("Y US-004")
async def test_the_first_of_two_answers_counts_even_where_the_other_is_still_being_checked() -> None:
    def answer_meanwhile(_arguments: dict[str, Any]) -> None:
        desk.approvals.resolve("r", "deny", "quicker")

    desk = Desk(approve())
    called = dataclasses.replace(delete, validate_required_args=answer_meanwhile)
    request = ApprovalRequested("r", "c1", "delete", {"path": "notes.txt"})
    asked = asyncio.create_task(desk.approvals.request(called, request, desk.signal, None))
    async with asyncio.timeout(5):
        await desk.asked.wait()
    with pytest.raises(InvalidParametersError, match=r"answered already: it was denied \(quicker\)"):
        desk.approvals.resolve("r", "allow_edited", arguments={"path": "x"})
    assert (await asked).choice == "deny"


@pytest.mark.requirement("Y US-004")
@pytest.mark.parametrize(("reason", "told"), [("too risky", "denied this call: too risky"), ("", "denied this call.")])
async def test_a_denied_call_does_not_run_and_the_model_is_told_why(reason: str, told: str) -> None:
    desk = Desk(approve())
    task, request = await desk.request()
    desk.approvals.resolve(request.request_id, "deny", reason)
    assert text(await task) == f"The person {told}"
    assert desk.resolved == [ApprovalResolved(request.request_id, "c1", "deny", reason)]


@pytest.mark.requirement("Y US-004")
async def test_an_answer_may_come_from_another_thread() -> None:
    desk = Desk(approve())
    task, request = await desk.request()
    thread = threading.Thread(target=desk.approvals.resolve, args=(request.request_id, "allow_once"))
    thread.start()
    async with asyncio.timeout(5):
        assert isinstance(await task, PreparedToolCall)
    thread.join()


@pytest.mark.requirement("Y US-004", "A SPEC-7.1")
async def test_an_answer_that_is_none_is_refused_and_the_request_goes_on_waiting() -> None:
    desk = Desk(approve())
    task, request = await desk.request()
    with pytest.raises(InvalidParametersError, match="'yes' is no approval choice; expected one of allow_once"):
        desk.approvals.resolve(request.request_id, cast("Any", "yes"))
    with pytest.raises(InvalidParametersError, match="allow_edited needs the edited arguments"):
        desk.approvals.resolve(request.request_id, "allow_edited")
    assert desk.approvals.pending == (request,)
    desk.approvals.resolve(request.request_id, "allow_once")
    await task


@pytest.mark.requirement("Y US-004", "A SPEC-7.1")
async def test_a_request_is_answered_once() -> None:
    desk = Desk(approve())
    task, request = await desk.request()
    desk.approvals.resolve(request.request_id, "deny", "not now")
    told = r"This request was answered already: it was denied \(not now\)\. The first answer counts\."
    with pytest.raises(InvalidParametersError, match=told):
        desk.approvals.resolve(request.request_id, "allow_once")
    assert isinstance(await task, ImmediateOutcome)
    with pytest.raises(InvalidParametersError, match=told):
        desk.approvals.resolve(request.request_id, "deny")
    task, request = await desk.request(dataclasses.replace(delete, source="files"))
    desk.signal.abort()
    await task
    with pytest.raises(InvalidParametersError, match=r"it was denied \(the run was aborted\)"):
        desk.approvals.resolve(request.request_id, "allow_once")
    with pytest.raises(InvalidParametersError, match="No request 'nothing' waits"):
        desk.approvals.resolve("nothing", "deny")


@pytest.mark.requirement("Y US-004")
async def test_two_calls_that_wait_are_answered_each_on_its_own() -> None:
    desk = Desk(approve())
    first, second = await desk.request(), await desk.request()
    assert desk.approvals.pending == (first[1], second[1])
    desk.approvals.resolve(second[1].request_id, "allow_once")
    assert isinstance(await second[0], PreparedToolCall)
    desk.approvals.resolve(first[1].request_id, "deny")
    assert isinstance(await first[0], ImmediateOutcome)


# --- A call that was denied --------------------------------------------------------------------


@pytest.mark.requirement("Y US-004")
async def test_a_call_that_was_denied_is_not_asked_about_again_until_the_person_speaks() -> None:
    desk = Desk(approve())
    task, request = await desk.request()
    desk.approvals.resolve(request.request_id, "deny", "it is mine")
    await task
    told = text(await desk.prepare())
    assert "denied this same call before" in told
    assert "The reason was: it is mine" in told
    assert len(desk.requests) == 1
    desk.approvals.person_spoke()
    task, request = await desk.request()
    desk.approvals.resolve(request.request_id, "allow_once")
    assert isinstance(await task, PreparedToolCall)


@pytest.mark.requirement("Y US-004")
async def test_another_call_of_a_tool_that_was_denied_is_asked_about() -> None:
    desk = Desk(approve(ask=lambda request: "deny" if request.args["path"] == "a" else "allow_session"))
    assert isinstance(await desk.prepare(path="a"), ImmediateOutcome)
    assert isinstance(await desk.prepare(path="b"), PreparedToolCall)
    assert len(desk.requests) == 2
    assert "denied this same call" in text(await desk.prepare(path="a")), "allowed for the session, but not this call"


@pytest.mark.requirement("Y US-004")
async def test_what_an_abort_ended_was_not_denied_by_a_person() -> None:
    desk = Desk(approve())
    task, _ = await desk.request()
    desk.signal.abort()
    await task
    assert desk.approvals.denied(delete, {"path": "notes.txt"}) is None


# --- What the model is told --------------------------------------------------------------------


@tool
async def divide(a: int, b: int = 1) -> float:
    """Divide two numbers."""
    return a / b


def told(agent: Agent) -> list[str]:
    """The results of the calls so far."""
    return [message.text for message in agent.state.messages if isinstance(message, ToolResultMessage)]


@pytest.mark.requirement("Y US-004", "Y FR-005")
@pytest.mark.parametrize(
    ("edited", "result", "note"),
    [
        ({"a": 6, "b": 3}, "2.0", 'It was allowed with: {"a": 6, "b": 3}'),
        ({"a": 6, "b": 0}, "ZeroDivisionError", 'It was allowed with: {"a": 6, "b": 0}'),
        ({"a": "6"}, "6.0", 'It was allowed with: {"a": 6}'),
        ({"a": 8, "b": 2}, "4.0", None),
    ],
    ids=["changed", "failing", "coerced", "the same"],
)
async def test_the_model_is_told_of_arguments_that_a_person_changed(
    edited: dict[str, Any], result: str, note: str | None
) -> None:
    decision = Decision("allow_edited", arguments=edited)
    model = Scripted([[call("divide", a=8, b=2)], "so"])
    agent = Agent(model, tools=[divide], before_tool_call=approve(ask=answering(decision)))
    await agent.prompt("divide")
    [said] = told(agent)
    assert result in said
    assert ("\n\nNote: the person changed the arguments of this call." in said) is (note is not None)
    assert note is None or note in said
    assert model.requests[-1].messages[-1]["content"] == said


@pytest.mark.requirement("Y US-004")
async def test_of_long_arguments_the_model_is_told_what_changed() -> None:
    given = {"a": "x" * 5_000, "b": 1, "c": 2}
    assert edit_note(given, {**given, "b": 3}).endswith(
        'with these in place of yours: {"b": 3}. All others are as you gave them.'
    )
    assert "{}, and without b, c." in edit_note(given, {"a": given["a"]})
    assert len(edit_note(given, {**given, "a": "y" * 100_000})) < 5_000


@pytest.mark.requirement("Y US-004")
@pytest.mark.parametrize("speaks", [False, True])
async def test_a_model_that_insists_is_refused_until_a_message_joins_the_run(*, speaks: bool) -> None:
    asked: list[ApprovalRequested] = []

    def ask(request: ApprovalRequested) -> Decision:
        asked.append(request)
        if speaks and len(asked) == 1:
            agent.steer("well, do it")
        return Decision("deny", "not now")

    again = [call("divide", a=1)]
    agent = Agent(Scripted([again, again, "so be it", again, "well"]), tools=[divide])
    agent.set_hooks(before_tool_call=approve(ask=ask))
    await agent.prompt("divide")
    assert len(asked) == (2 if speaks else 1)
    assert told(agent)[0] == "The person denied this call: not now"
    assert ("denied this same call before" in told(agent)[1]) is not speaks
    await agent.prompt("and now?")
    assert len(asked) == (3 if speaks else 2)


@pytest.mark.requirement("Y US-004", "A SPEC-7.1")
async def test_the_wait_for_a_person_counts_for_no_timeout() -> None:
    async def ask(_request: ApprovalRequested) -> ApprovalChoice:
        await asyncio.sleep(0.15)
        return "allow_once"

    agent = Agent(Scripted([[call("divide", a=1)], "so"]), tools=[dataclasses.replace(divide, timeout=0.05)])
    agent.set_hooks(before_tool_call=approve(ask=ask))
    await agent.prompt("divide")
    assert told(agent) == ["1.0"]


# --- Aborting ----------------------------------------------------------------------------------


@pytest.mark.requirement("Y SP-022", "Y SD-008", "Y US-004")
@pytest.mark.parametrize("from_thread", [False, True])
async def test_an_abort_ends_the_wait_and_the_request_is_told_as_denied(*, from_thread: bool) -> None:
    desk = Desk(approve())
    task, request = await desk.request()
    if from_thread:
        threading.Thread(target=desk.signal.abort).start()
    else:
        desk.signal.abort()
    async with asyncio.timeout(5):
        assert "[EXECUTION_ABORTED]" in text(await task)
    assert desk.resolved == [ApprovalResolved(request.request_id, "c1", "deny", "the run was aborted")]
    assert desk.approvals.pending == ()


@pytest.mark.requirement("Y SP-022", "Y US-004")
async def test_an_abort_ends_a_wait_for_an_answer_in_code() -> None:
    async def ask(_request: ApprovalRequested) -> ApprovalChoice:
        asyncio.get_running_loop().call_soon(desk.signal.abort)
        await asyncio.Event().wait()
        return "allow_once"

    desk = Desk(approve(ask=ask))
    async with asyncio.timeout(5):
        assert "[EXECUTION_ABORTED]" in text(await desk.prepare())
    assert [event.reason for event in desk.resolved] == ["the run was aborted"]


@pytest.mark.requirement("Y US-004")
async def test_an_answer_after_the_loop_was_closed_does_no_harm() -> None:
    def wait_and_close() -> tuple[Approvals, ApprovalRequested]:
        async def begin() -> tuple[Approvals, ApprovalRequested]:
            desk = Desk(approve())
            task, request = await desk.request()
            approvals, waiting = desk.approvals, desk.approvals._waiting.copy()  # pyright: ignore[reportPrivateUsage]
            task.cancel()
            await asyncio.wait({task})
            approvals._waiting.update(waiting)  # pyright: ignore[reportPrivateUsage]
            return approvals, request

        return asyncio.run(begin())

    approvals, request = await asyncio.to_thread(wait_and_close)
    approvals.resolve(request.request_id, "allow_once")


# --- A definition that changes -----------------------------------------------------------------

READ_ONLY = ToolAnnotations(read_only=True)
CHANGES: list[dict[str, Any]] = [
    {"annotations": READ_ONLY},
    {"annotations": READ_ONLY, "description": "Delete everything."},
    {"label": "Look at a file"},
    {"description": "Delete everything."},
    {"output_schema": {"type": "object"}},
    {"input_schema": {"type": "object"}},
]


def anything_but_read_only(called: Tool, _arguments: dict[str, Any]) -> Any:
    return "allow" if called.annotations.read_only else "ask"


@pytest.mark.requirement("Y US-004", "Y FR-005")
@pytest.mark.parametrize("policy", [None, anything_but_read_only])
@pytest.mark.parametrize("changes", CHANGES, ids="+".join)
async def test_a_tool_that_changed_after_it_was_allowed_is_asked_about_again(
    changes: dict[str, Any], policy: Any
) -> None:
    desk = Desk(approve(policy, ask=answering("allow_session")))
    await desk.prepare(delete)
    changed = dataclasses.replace(delete, **changes)
    for _ in range(2):
        assert isinstance(await desk.prepare(changed), PreparedToolCall)
    assert len(desk.requests) == 2


@pytest.mark.requirement("Y US-004")
@pytest.mark.parametrize("answer", ["deny", "allow_once"])
async def test_a_tool_that_calls_itself_read_only_afterwards_stays_asked_about(answer: ApprovalChoice) -> None:
    desk = Desk(approve(ask=answering(answer)))
    await desk.prepare(delete)
    desk.approvals.clear()
    for _ in range(2):
        desk.approvals.person_spoke()
        await desk.prepare(dataclasses.replace(delete, annotations=READ_ONLY))
    assert len(desk.requests) == 3


@pytest.mark.requirement("Y US-004")
async def test_a_change_does_not_lift_what_the_policy_denies() -> None:
    desk = Desk(approve(lambda called, _: "deny" if called.annotations.read_only else "ask", ask=answering("deny")))
    await desk.prepare(delete)
    changed = dataclasses.replace(delete, annotations=READ_ONLY)
    assert text(await desk.prepare(changed)) == "The policy does not allow this call."


@pytest.mark.requirement("Y US-004")
async def test_a_server_s_tool_is_not_allowed_by_an_approval_of_a_function_that_is_described_alike() -> None:
    desk = Desk(approve(ask=answering("allow_session")))
    await desk.prepare(delete)
    await desk.prepare(dataclasses.replace(delete, function=None))
    assert len(desk.requests) == 2


# --- What is asked about without a tool --------------------------------------------------------

SAMPLING = Subject("sampling", "maths")


async def allow_sampling(desk: Desk) -> None:
    request = ApprovalRequested("a", "a", "sampling/createMessage", {})
    await desk.approvals.request(SAMPLING, request, desk.signal, answering("allow_session"))


async def test_what_servers_ask_is_covered_by_the_session_in_a_run_and_so_often() -> None:
    desk = Desk(approve())
    await allow_sampling(desk)
    assert not desk.approvals.use(SAMPLING, 2)
    for _ in range(2):
        desk.approvals.run_began()
        assert [desk.approvals.use(SAMPLING, 2) for _ in range(3)] == [True, True, False]
    await allow_sampling(desk)
    assert desk.approvals.use(SAMPLING, 2)
    assert not desk.approvals.use(Subject("sampling", "other"), 2)
    desk.approvals.run_ended()
    assert not desk.approvals.use(SAMPLING, 2)


async def test_no_tool_obtains_the_approval_of_something_else() -> None:
    desk = Desk(approve(ask=answering("allow_session")))
    called = dataclasses.replace(delete, function=None, source="maths", original_name="sampling/createMessage")
    await desk.prepare(called)
    desk.approvals.run_began()
    assert desk.approvals.allowed_for_session(called)
    subjects = [SAMPLING, Subject("sampling", "maths", "sampling/createMessage", Subject.of(called).definition)]
    assert not any(desk.approvals.use(subject, 9) for subject in subjects)


# --- Answers in code ---------------------------------------------------------------------------


@pytest.mark.requirement("Y US-004")
@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("choice", CHOICES)
async def test_a_function_may_answer_every_choice(choice: ApprovalChoice, *, is_async: bool) -> None:
    edited = {"path": "safe"} if choice == "allow_edited" else None
    decision = Decision(choice, "because", edited)

    async def later(_request: ApprovalRequested) -> Decision:
        await asyncio.sleep(0)
        return decision

    desk = Desk(approve(ask=later if is_async else answering(decision)))
    outcome = await desk.prepare()
    if choice == "deny":
        assert text(outcome) == "The person denied this call: because"
    else:
        assert isinstance(outcome, PreparedToolCall)
        assert outcome.arguments == (edited or {"path": "notes.txt"})
    assert [event.choice for event in desk.resolved] == [choice]


@pytest.mark.requirement("Y US-004", "Y NFR-202")
@pytest.mark.parametrize("answer", [None, True, "yes", {"choice": "deny"}, "allow_edited"], ids=repr)
async def test_a_wrong_answer_in_code_lets_nothing_run(answer: Any) -> None:
    desk = Desk(approve(ask=answering(answer)))
    assert "The hook approve raised InvalidParametersError" in text(await desk.prepare())
    assert [(event.choice, event.reason) for event in desk.resolved] == [("deny", "no valid answer came")]


@pytest.mark.requirement("Y US-004", "Y NFR-202")
async def test_arguments_edited_in_code_that_do_not_fit_let_nothing_run() -> None:
    desk = Desk(approve(ask=answering(Decision("allow_edited", arguments={"path": 5}))))
    told = text(await desk.prepare())
    assert "The hook approve raised InvalidParametersError" in told
    assert "path should be a valid string, got 5" in told
    assert [event.choice for event in desk.resolved] == ["deny"]


@pytest.mark.requirement("Y US-004", "Y NFR-202")
async def test_a_function_that_raises_lets_nothing_run() -> None:
    def ask(_request: ApprovalRequested) -> Decision:
        raise RuntimeError("no one there")

    desk = Desk(approve(ask=ask))
    assert "no one there" in text(await desk.prepare())
    assert [event.choice for event in desk.resolved] == ["deny"]


@pytest.mark.requirement("Y US-004", "A SPEC-7.1")
@pytest.mark.parametrize("fields", [{"choice": "yes"}, {"choice": "allow_edited"}, {"choice": None}], ids=repr)
def test_a_decision_that_is_none_cannot_be_built(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidParametersError):
        Decision(**fields)
