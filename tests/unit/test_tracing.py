"""What an agent does stands in its trace, whole, cheap, and bounded."""

from __future__ import annotations

import asyncio
import gc
import json
import weakref
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from yiemagent_nb import Agent, Limits, approve, tool
from yiemagent_nb.core.errors import InvalidParametersError, ServerError
from yiemagent_nb.core.hooks import AgentContext, BeforeToolCallContext, BeforeToolCallResult
from yiemagent_nb.core.models import Usage
from yiemagent_nb.core.redaction import Redactor
from yiemagent_nb.core.signal import AbortSignal
from yiemagent_nb.testing import Scripted, assistant, call
from yiemagent_nb.tracing import recorder as recorder_module
from yiemagent_nb.tracing.details import Details, details_of
from yiemagent_nb.tracing.recorder import TraceRecorder
from yiemagent_nb.tracing.rows import Row

pytestmark = pytest.mark.requirement("Y FR-006")

NO_LIMITS = Limits(max_turns=None, messages_per_minute=None, messages_per_session=None)


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def agent_of(answers: Sequence[Any], **options: Any) -> Agent:
    return Agent(Scripted(answers), "Be brief.", tools=[add], limits=NO_LIMITS, **options)


def kinds(rows: Sequence[Row]) -> list[str]:
    return [f"{row.kind}:{row.title}" if row.kind in {"tool", "hand"} else row.kind for row in rows]


def section(details: Details, title: str) -> str:
    return next(each.text for each in (*details.request, *details.response) if each.title.startswith(title))


def fact(details: Details, label: str) -> str:
    return dict(details.facts)[label]


async def test_a_run_is_told_as_rows_with_parents_times_and_sums() -> None:
    usage = Usage(input_tokens=10, output_tokens=2, cache_read_tokens=4)
    agent = agent_of([[call("add", a=1, b=2), call("add", a=3, b=4)], assistant("It is 3 and 7.", usage=usage)])
    trace = TraceRecorder.of(agent)
    await agent.prompt("What is 1 + 2, and 3 + 4?")
    rows = trace.rows()
    assert kinds(rows) == ["run", "turn", "model", "tool:add", "tool:add", "turn", "model"]
    run, turn, model, first, second, other_turn, last = rows
    assert [row.parent for row in rows] == [None, run, turn, turn, turn, run, other_turn]
    assert (first.lane, second.lane) == (0, 1)
    assert run.tokens == (10, 2, 4)
    assert turn.tokens is None
    assert run.summary == "What is 1 + 2, and 3 + 4?"
    assert first.summary == "a=1, b=2 → 3"
    assert model.summary == "add, add"
    assert last.first is not None
    assert last.duration is not None
    assert last.waited is not None
    assert last.waited <= last.first <= last.duration
    assert trace.children(run) == [turn, other_turn]


async def test_waiting_for_hooks_and_a_free_place_is_told_apart_from_running() -> None:
    free = asyncio.Event()
    began = asyncio.Event()

    @tool
    async def work(number: int) -> str:
        """Work."""
        began.set()
        await free.wait()
        return f"done {number}"

    def hook(context: BeforeToolCallContext, _: AbortSignal) -> BeforeToolCallResult | None:
        return BeforeToolCallResult(arguments={"number": 9}) if context.arguments["number"] == 1 else None

    limits = Limits(concurrent_tool_calls=1)
    agent = Agent(
        Scripted([[call("work", number=1), call("work", number=2)], "ok"]),
        tools=[work],
        limits=limits,
        before_tool_call=hook,
    )
    trace = TraceRecorder.of(agent)
    running = asyncio.create_task(agent.prompt("go"))
    await began.wait()
    first, second = (row for row in trace.rows() if row.kind == "tool")
    assert first.waited is not None
    assert (second.waited, second.state) == (None, "running")
    free.set()
    await running
    assert second.waited is not None
    assert first.duration is not None
    assert second.waited >= first.duration - first.waited - 0.01
    details = details_of(first)
    assert json.loads(section(details, "Arguments")) == {"number": 1}
    assert json.loads(section(details, "Arguments as they ran")) == {"number": 9}


async def test_calls_by_hand_are_told_with_what_came_of_them() -> None:
    agent = agent_of([])
    trace = TraceRecorder.of(agent)
    await agent.call_tool("add", {"a": 1, "b": 2})
    await agent.call_tool("add", {"a": 1})
    fine, wrong = trace.rows()
    assert (fine.kind, fine.state, fine.summary) == ("hand", "done", "a=1, b=2 → 3")
    assert (wrong.kind, wrong.state, wrong.parent) == ("hand", "failed", None)
    assert "b" in wrong.error
    assert section(details_of(fine), "Result") == "3"


async def test_an_approval_is_a_fact_of_its_call() -> None:
    agent = agent_of([[call("add", a=1, b=2)], "ok"], before_tool_call=approve("add"))
    trace = TraceRecorder.of(agent)
    agent.attend()
    asked = asyncio.Event()
    agent.subscribe(lambda event, _: asked.set() if event.type == "approval_requested" else None)
    running = asyncio.create_task(agent.prompt("go"))
    await asked.wait()
    row = trace.rows()[-1]
    assert fact(details_of(row), "Approval") == "nobody has answered yet"
    agent.approvals.resolve(agent.approvals.pending[0].request_id, "deny", "not today")
    await running
    assert row.state == "failed"
    assert fact(details_of(row), "Approval") == "deny: not today"


async def test_a_request_and_its_answer_stand_there_exactly() -> None:
    agent = agent_of(["Hello there."], thinking_level="low", options={"temperature": 0.5})
    trace = TraceRecorder.of(agent)
    await agent.prompt("hi")
    details = details_of(trace.rows()[-1])
    backend: Any = agent.llm_call
    assert json.loads(section(details, "Messages")) == [dict(each) for each in backend.requests[0].messages]
    assert json.loads(section(details, "Tools")) == json.loads(json.dumps(backend.requests[0].tools))
    assert json.loads(section(details, "Options")) == {"thinking_level": "low", "temperature": 0.5}
    assert section(details, "Text") == "Hello there."
    pieces = [json.loads(line) for line in section(details, "Pieces").splitlines()]
    assert "".join(piece["choices"][0]["delta"].get("content", "") for piece in pieces) == "Hello there."


async def test_what_fails_says_why_in_all_that_it_is_a_part_of() -> None:
    agent = agent_of([ServerError("the server fell over")])
    trace = TraceRecorder.of(agent)
    await agent.prompt("hi")
    run, turn, model = trace.rows()
    assert [row.state for row in (run, turn, model)] == ["failed"] * 3
    assert all("fell over" in row.error for row in (run, turn, model))


async def test_a_hook_that_fails_leaves_a_model_call_that_sent_nothing() -> None:
    def broken(_: Any) -> AgentContext:
        raise ValueError("no")

    agent = agent_of(["never"], prepare_context=broken)
    trace = TraceRecorder.of(agent)
    await agent.prompt("hi")
    row = trace.rows()[-1]
    assert (row.kind, row.state, row.waited) == ("model", "failed", row.duration)
    assert "Nothing was sent" in fact(details_of(row), "Request")


async def test_a_hook_that_asks_twice_has_both_requests() -> None:
    async def twice(ask: Any, messages: Any, options: dict[str, Any]) -> Any:
        await ask([*messages, {"role": "user", "content": "draft"}], **options)
        return await ask(messages, **options)

    agent = agent_of(["one", "two"], around_llm_call=twice)
    trace = TraceRecorder.of(agent)
    await agent.prompt("hi")
    titles = [each.title for each in details_of(trace.rows()[-1]).request]
    assert [title for title in titles if title.startswith("Messages")] == [
        "Messages of request 1 (3)",
        "Messages of request 2 (2)",
    ]


async def test_requests_share_their_messages() -> None:
    rounds = 60
    agent = agent_of([*([call("add", a=1, b=number)] for number in range(rounds)), "done"])
    trace = TraceRecorder.of(agent)
    await agent.prompt("go")
    models = [row for row in trace.rows() if row.kind == "model"]
    assert [len(row.model.requests[0].rest) for row in models] == [2, *[2] * rounds]
    backend: Any = agent.llm_call
    for row, request in zip(models, backend.requests, strict=True):
        assert row.model.requests[0].messages == list(request.messages)


async def test_a_message_that_a_hook_changes_later_stays_as_it_was_sent() -> None:
    sent: dict[str, Any] = {"role": "user", "content": "first"}

    def same(_: AgentContext) -> list[dict[str, Any]]:
        return [sent]

    agent = agent_of(["a", "b"], format_messages=same)
    trace = TraceRecorder.of(agent)
    await agent.prompt("go")
    sent["content"] = "second"
    await agent.prompt("go")
    models = [row for row in trace.rows() if row.kind == "model"]
    assert [row.model.requests[0].messages[0]["content"] for row in models] == ["first", "second"]


async def test_older_bodies_are_let_go_and_newer_requests_stay_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder_module, "MOST_BYTES", 30_000)
    agent = agent_of([*([call("add", a=1, b=number)] for number in range(40)), "done"])
    trace = TraceRecorder.of(agent)
    await agent.prompt("go")
    models = [row for row in trace.rows() if row.kind == "model"]
    gone, kept = models[0], models[-1]
    assert gone.body is None
    assert gone.summary == "add"
    assert gone.duration is not None
    assert "let go" in fact(details_of(gone), "Left out")
    backend: Any = agent.llm_call
    assert kept.model.requests[0].messages == list(backend.requests[-1].messages)
    held = [row for row in models if row.body is not None]
    assert 1 < len(held) < len(models)
    for row in held:
        assert row.model.requests[0].messages == list(backend.requests[models.index(row)].messages)


async def test_rows_are_bounded_and_keep_their_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder_module, "MOST_ROWS", 100)
    agent = agent_of(["a"] * 50)
    trace = TraceRecorder.of(agent)
    for _ in range(50):
        await agent.prompt("go")
    assert trace.total == 150
    assert len(trace) <= 100
    assert [row.number for row in trace.rows()] == list(range(trace.start, trace.total))
    with pytest.raises(InvalidParametersError, match="was forgotten"):
        trace.row(0)
    with pytest.raises(InvalidParametersError, match="does not exist"):
        trace.row(150)


async def test_forgotten_rows_are_told_no_more_and_numbers_go_on() -> None:
    agent = agent_of([[call("add", a=1, b=2)], "ok", "ok"])
    trace = TraceRecorder.of(agent)
    told: list[int] = []
    trace.subscribe(lambda row: told.append(row.number))
    agent.subscribe(lambda event, _: trace.clear() if event.type == "tool_execution_start" else None)
    await agent.prompt("go")
    cleared = trace.start
    assert 0 < cleared < trace.total
    assert max(told[: told.index(cleared)]) < cleared
    assert min(told[told.index(cleared) :]) >= cleared
    assert [row.number for row in trace.rows()] == list(range(cleared, trace.total))
    await agent.prompt("again")
    assert trace.rows()[-1].duration is not None


async def test_a_recorder_lives_as_long_as_its_agent_and_no_longer() -> None:
    agent = agent_of(["ok"])
    trace = weakref.ref(TraceRecorder.of(agent))
    gc.collect()
    assert trace() is TraceRecorder.of(agent) is TraceRecorder.known(agent)
    await agent.prompt("hi")
    gone = weakref.ref(agent)
    del agent
    await asyncio.sleep(0)  # the loop lets the run go
    gc.collect()
    assert gone() is None
    assert trace() is None


async def test_the_timeline_reads_in_a_terminal_and_obeys_nothing() -> None:
    agent = agent_of([[call("add", a=1, b=2)], "red \x1b[31m and \u202e back"])
    trace = TraceRecorder.of(agent)
    assert repr(trace) == "Nothing was recorded yet."
    await agent.prompt("What is\n1 + 2?")
    text = trace.table(last=4)
    assert text.splitlines()[0] == "(2 earlier rows)"
    assert "tool add: a=1, b=2 → 3" in text
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert len(repr(trace).splitlines()) == 6


# Keys, and how much is kept

KEY = "sk-proj-Zq8Lw3Xv9Rt2Yp5Nb7Mc4Kd6"


def leaked(text: str) -> str:
    """The longest piece of the key in a text, of eight characters or more."""
    found = [KEY[at:end] for at in range(len(KEY)) for end in range(at + 8, len(KEY) + 1) if KEY[at:end] in text]
    return max(found, key=len, default="")


@pytest.fixture
def key() -> Redactor:
    redactor = Redactor()
    redactor.add(KEY)
    return redactor


@pytest.mark.parametrize("before", [*range(20, 50), *range(70, 125, 2)])
async def test_no_line_of_a_row_has_a_piece_of_a_key_that_was_cut(before: int, key: Redactor) -> None:
    assert key(KEY) == "[key]"
    said = "z" * before + KEY + " " + "q" * 900
    agent = agent_of([[call("none", name=said, headers={"a": said, "b": [KEY]})], said, ServerError(said)])
    trace = TraceRecorder.of(agent)
    await agent.prompt(said)
    await agent.prompt("again")
    for row in trace.rows():
        assert not leaked(row.summary), row
        assert not leaked(repr(row)), row
        row.let_go()
        assert not leaked(row.error)
    assert not leaked(trace.table())


async def test_a_key_that_comes_in_pieces_is_masked_where_it_is_whole(key: Redactor) -> None:
    assert key(KEY) == "[key]"

    async def hostile(_messages: Any) -> AsyncIterator[dict[str, Any]]:
        for text in ("It is ", KEY[:10], KEY[10:20], KEY[20:], ", see?"):
            yield {"choices": [{"index": 0, "delta": {"content": text}}]}
        yield {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}

    agent = Agent(hostile)
    trace = TraceRecorder.of(agent)
    await agent.prompt("hi")
    shown = section(details_of(trace.rows()[-1]), "Pieces (6, joined")
    assert json.loads(shown)["choices.0.delta.content"] == "It is [key], see?"


async def test_pieces_that_hold_whole_keys_stay_pieces(key: Redactor) -> None:
    assert key(KEY) == "[key]"

    async def hostile(_messages: Any) -> AsyncIterator[str]:
        yield f"It is {KEY}"
        yield ", see?"

    agent = Agent(hostile)
    trace = TraceRecorder.of(agent)
    await agent.prompt("hi")
    assert section(details_of(trace.rows()[-1]), "Pieces (2)").splitlines() == ['"It is [key]"', '", see?"']


async def streams_in_pieces(messages: Any) -> AsyncIterator[str]:
    for _ in range(5):
        yield f"{len(messages)}" + "a" * 40_000


async def hides_much(_messages: Any) -> AsyncIterator[dict[str, Any]]:
    yield {"choices": [{"delta": {"content": "a"}, "index": 0}], "padding": "p" * 400_000}


def fails_at_length(_messages: Any) -> str:
    raise ValueError("e" * 200_000)


def thinks_at_length(_messages: Any) -> dict[str, Any]:
    return {"content": "a", "reasoning": "r" * 200_000}


@pytest.mark.parametrize("backend", [streams_in_pieces, hides_much, fails_at_length, thinks_at_length])
async def test_all_that_a_model_call_holds_is_counted(backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder_module, "MOST_BYTES", 1_200_000)
    agent = Agent(backend, limits=NO_LIMITS)
    trace = TraceRecorder.of(agent)
    for _ in range(8):
        await agent.prompt("hi")
        agent.reset()
    models = [row for row in trace.rows() if row.kind == "model"]
    assert 1 <= sum(row.body is not None for row in models) <= 4
    assert all(len(row.error) <= 11_000 for row in trace.rows())
    assert all(len(row.error) <= 600 for row in trace.rows() if row.body is None)


async def test_each_request_of_one_call_shows_what_the_backend_gave() -> None:
    async def fall_back(ask: Any, messages: Any, options: dict[str, Any]) -> Any:
        try:
            return [piece async for piece in await ask(messages, **options)]
        except ServerError:
            return [piece async for piece in await ask(messages, **options)] and "the hook's"

    agent = agent_of([ServerError("it fell over"), "the backend's"], around_llm_call=fall_back)
    trace = TraceRecorder.of(agent)
    await agent.prompt("hi")
    details = details_of(trace.rows()[-1])
    assert section(details, "Text") == "the hook's"
    assert "backend's" in section(details, "Pieces of request 2")
    assert "hook's" not in section(details, "Pieces of request 2")
    assert "fell over" in fact(details, "Error of request 1")
