"""What those who look inside may see and change: exchanges with the model, the hook around it, tools by hand."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

import pytest

from yiemagent_nb import (
    AbortSignal,
    AfterToolCallContext,
    Agent,
    BeforeToolCallContext,
    BeforeToolCallResult,
    Event,
    Scripted,
    ToolContext,
    ToolResult,
    approve,
    tool,
)
from yiemagent_nb.core.errors import AgentClosedError, InvalidParametersError, ToolNotFoundError
from yiemagent_nb.core.events import ApprovalRequested, HooksChanged, MessageEnd, ToolsChanged
from yiemagent_nb.core.exchange import Exchange, current_exchange

Call = Callable[..., Awaitable[Any]]


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def calls(name: str, **arguments: Any) -> dict[str, Any]:
    return {"tool_calls": [{"id": "c1", "name": name, "arguments": arguments}]}


async def test_an_observer_sees_each_request_and_what_came_back() -> None:
    exchanges: list[Exchange] = []
    whole: list[tuple[str, bool]] = []
    agent = Agent(Scripted([calls("add", a=1, b=2), "It is 3."]), "Be brief.", tools=[add], options={"api_key": "sk-1"})
    agent.observe_exchanges(exchanges.append)

    def listen(event: Event, _signal: AbortSignal) -> None:
        if isinstance(event, MessageEnd) and event.message.role == "assistant":
            whole.append((event.message_id, exchanges[-1].answer is event.message))

    agent.subscribe(listen)
    await agent.prompt("1 + 2?")
    first, second = exchanges
    assert [message["role"] for message in first.messages] == ["system", "user"]
    assert [message["role"] for message in second.messages] == ["system", "user", "assistant", "tool"]
    assert [each["function"]["name"] for each in first.options["tools"]] == ["add"]
    assert "signal" not in first.options
    assert "sk-1" not in repr(first)
    assert whole == [(first.message_id, True), (second.message_id, True)]
    assert second.pieces
    assert second.first is not None
    assert second.ended is not None
    assert second.started <= second.first <= second.ended
    assert second.answer is agent.messages[-1]


async def test_an_observer_that_left_or_raises_harms_nothing() -> None:
    seen: list[Exchange] = []

    def broken(_exchange: Exchange) -> None:
        raise ValueError("no")

    agent = Agent(Scripted(["a", "b"]))
    agent.observe_exchanges(broken)
    leave = agent.observe_exchanges(seen.append)
    await agent.prompt("x")
    leave()
    assert (await agent.prompt("y")).text == "b"
    assert len(seen) == 1


async def test_a_failed_request_is_an_exchange_with_its_error() -> None:
    seen: list[Exchange] = []

    async def llm_call(messages: Sequence[Mapping[str, Any]]) -> str:
        raise ValueError(f"{len(messages)} are too many")

    agent = Agent(llm_call)
    agent.observe_exchanges(seen.append)
    await agent.prompt("x")
    assert "1 are too many" in seen[0].error
    assert seen[0].answer is agent.messages[-1]


async def through(call: Call, messages: Sequence[Mapping[str, Any]], options: dict[str, Any]) -> Any:
    return await call(messages, **options)


def through_sync(call: Call, messages: Sequence[Mapping[str, Any]], options: dict[str, Any]) -> Any:
    return call(messages, **options)


@pytest.mark.parametrize("hook", [through, through_sync])
async def test_a_hook_around_the_backend_that_changes_nothing_changes_nothing(hook: Any) -> None:
    backend = Scripted(["hello"])
    agent = Agent(backend, around_llm_call=hook)
    assert (await agent.prompt("hi")).text == "hello"


async def test_a_hook_around_the_backend_changes_what_is_sent_and_what_came() -> None:
    asked: list[list[str]] = []

    async def backend(messages: Sequence[Mapping[str, Any]]) -> AsyncIterator[str]:
        asked.append([message["content"] for message in messages])
        yield "one "
        yield "two"

    async def shout(call: Call, messages: Sequence[Mapping[str, Any]], options: dict[str, Any]) -> AsyncIterator[str]:
        pieces = await call([{**message, "content": message["content"].upper()} for message in messages], **options)

        async def louder() -> AsyncIterator[str]:
            async for piece in pieces:
                yield piece.upper()

        return louder()

    exchanges: list[Exchange] = []
    agent = Agent(backend, around_llm_call=shout)
    agent.observe_exchanges(exchanges.append)
    assert (await agent.prompt("hi")).text == "ONE TWO"
    assert asked == [["HI"]]
    assert exchanges[0].messages[0]["content"] == "HI"


async def test_a_hook_around_the_backend_may_ask_another_when_the_first_fails() -> None:
    async def broken(_messages: Any) -> str:
        raise ValueError("down")

    spare = Scripted(["spare"])

    async def fall_back(call: Call, messages: Any, options: dict[str, Any]) -> Any:
        try:
            return await call(messages, **options)
        except ValueError:
            return spare(messages)

    assert (await Agent(broken, around_llm_call=fall_back).prompt("hi")).text == "spare"


async def test_a_backends_own_error_passes_through_the_hook_and_the_hooks_own_names_it() -> None:
    async def broken(_messages: Any) -> str:
        raise ValueError("down")

    def wrong(_call: Call, _messages: Any, _options: dict[str, Any]) -> Any:
        raise KeyError("hook")

    async def silent(call: Call, messages: Any, options: dict[str, Any]) -> None:
        await call(messages, **options)

    backends_own = await Agent(broken, around_llm_call=through).prompt("hi")
    assert "llm_call broken raised ValueError: down" in str(backends_own.error_message)
    hooks_own = await Agent(Scripted(["x"]), around_llm_call=wrong).prompt("hi")
    assert "The hook wrong raised KeyError" in str(hooks_own.error_message)
    nothing = await Agent(Scripted(["x"]), around_llm_call=silent).prompt("hi")
    assert "The hook silent returned None" in str(nothing.error_message)


async def test_hooks_are_shown_and_a_change_is_told() -> None:
    told: list[tuple[str, ...]] = []
    agent = Agent(Scripted([]), before_tool_call=approve())
    agent.subscribe(lambda event, _: told.append(event.names) if isinstance(event, HooksChanged) else None)
    assert [type(hook).__name__ for hook in agent.hooks.before_tool_call] == ["Approval"]
    agent.set_hooks(around_llm_call=through, before_tool_call=None)
    assert agent.hooks.around_llm_call is through
    assert agent.hooks.before_tool_call == ()
    with pytest.raises(InvalidParametersError, match="around_llm_call takes a function"):
        agent.set_hooks(around_llm_call=3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await asyncio.sleep(0)
    assert told == [("before_tool_call", "around_llm_call")]


async def test_a_tool_that_is_switched_off_is_not_offered_and_not_callable() -> None:
    told: list[tuple[str, ...]] = []
    backend = Scripted([calls("add", a=1, b=2), "done", "done"])
    agent = Agent(backend, tools=[add])
    agent.subscribe(lambda event, _: told.append(event.names) if isinstance(event, ToolsChanged) else None)
    agent.set_tool_active("add", False)
    exchanges: list[Exchange] = []
    agent.observe_exchanges(exchanges.append)
    await agent.prompt("x")
    assert not exchanges[0].options["tools"]
    result = agent.messages[2]
    assert result.role == "toolResult"
    assert result.is_error
    assert list(agent.registered_tools) == ["add"]
    agent.set_tools([add])
    assert not agent.tools
    agent.set_tool_active("add", True)
    agent.set_tool_active("add", True)
    await agent.prompt("y")
    assert [each["function"]["name"] for each in exchanges[-1].options["tools"]] == ["add"]
    assert told == [(), (), ("add",)]
    with pytest.raises(ToolNotFoundError, match="There is no tool named 'sub'"):
        agent.set_tool_active("sub", False)


async def test_a_tool_is_called_by_hand_with_its_checks_and_hooks_and_stands_in_no_history() -> None:
    def double(context: AfterToolCallContext) -> ToolResult:
        return ToolResult(context.result.text * 2)

    def refuse(context: BeforeToolCallContext, _signal: AbortSignal) -> BeforeToolCallResult | None:
        return BeforeToolCallResult(block=True, reason="not now") if context.arguments["a"] == 0 else None

    agent = Agent(Scripted([]), tools=[add], before_tool_call=refuse, after_tool_call=double)
    agent.set_tool_active("add", False)
    assert (await agent.call_tool("add", {"a": 1, "b": 2})).text == "33"
    assert (await agent.call_tool("add", {"a": 0, "b": 2}, hooks=False)).text == "2"
    blocked = await agent.call_tool("add", {"a": 0, "b": 2})
    assert blocked.is_error
    assert "not now" in blocked.text
    missing = await agent.call_tool("add", {"a": 1})
    assert "Missing required arguments: b" in missing.text
    unknown = await agent.call_tool("ad", {})
    assert "Did you mean add" in unknown.text
    assert agent.messages == ()


async def test_a_call_by_hand_reports_progress_and_is_stopped_by_its_signal_alone() -> None:
    started = asyncio.Event()

    @tool
    async def wait(context: ToolContext) -> str:
        """Wait."""
        context.update("half")
        assert context.agent is agent
        started.set()
        await asyncio.Event().wait()
        return "never"

    agent = Agent(Scripted([]), tools=[wait])
    updates: list[str] = []
    signal = AbortSignal()
    work = asyncio.ensure_future(
        agent.call_tool("wait", {}, on_update=lambda update: updates.append(update.text), signal=signal)
    )
    await started.wait()
    agent.abort()
    await asyncio.sleep(0)
    assert not work.done()
    signal.abort("enough")
    result = await work
    assert result.is_error
    assert updates == ["half"]


async def test_a_call_by_hand_asks_a_person_where_a_hook_does() -> None:
    agent = Agent(Scripted([]), tools=[add], before_tool_call=approve())

    def answer(event: Event, _signal: AbortSignal) -> None:
        if isinstance(event, ApprovalRequested):
            agent.approvals.resolve(event.request_id, "deny", "no")

    agent.subscribe(answer)
    agent.attend()
    assert "no" in (await agent.call_tool("add", {"a": 1, "b": 2})).text


@pytest.mark.parametrize("runtime", ["loop", "thread"])
async def test_a_shutdown_ends_calls_by_hand_and_lets_none_begin(runtime: Literal["loop", "thread"]) -> None:
    started = threading.Event()

    @tool
    async def wait() -> str:
        """Wait."""
        started.set()
        await asyncio.Event().wait()
        return "never"

    agent = Agent(Scripted([]), tools=[wait, add], runtime=runtime)
    work = asyncio.ensure_future(agent.call_tool("wait", {}))
    await asyncio.to_thread(started.wait)
    await agent.shutdown()
    result = await work
    assert result.is_error
    with pytest.raises(AgentClosedError):
        await agent.call_tool("add", {"a": 1, "b": 2})


async def test_a_shutdown_answers_the_approval_of_a_call_by_hand() -> None:
    agent = Agent(Scripted([]), tools=[add], before_tool_call=approve())
    agent.attend()
    asked = asyncio.Event()
    agent.subscribe(lambda event, _: asked.set() if isinstance(event, ApprovalRequested) else None)
    work = asyncio.ensure_future(agent.call_tool("add", {"a": 1, "b": 2}))
    await asked.wait()
    await agent.shutdown()
    assert (await work).is_error
    assert not agent.approvals.pending


@pytest.mark.parametrize("arguments", [[1, 2], None, {"a": object()}, {1: 2}])
async def test_arguments_that_are_no_json_object_are_refused(arguments: Any) -> None:
    with pytest.raises(InvalidParametersError):
        await Agent(Scripted([]), tools=[add]).call_tool("add", arguments)


# What a hook around the backend leaves of its answers


async def pieces_of(*texts: str) -> AsyncIterator[str]:
    for text in texts:
        await asyncio.sleep(0)
        yield text


async def drained(pieces: Any) -> list[str]:
    return [piece async for piece in pieces]


def seen_by(backend: Any, hook: Any) -> tuple[Agent, list[Exchange]]:
    exchanges: list[Exchange] = []
    agent = Agent(backend, around_llm_call=hook)
    agent.observe_exchanges(exchanges.append)
    return agent, exchanges


async def echo(messages: Sequence[Mapping[str, Any]]) -> AsyncIterator[str]:
    """Streams what was said last, in two pieces; its exchange is the current one in each of its steps."""
    said = str(messages[-1]["content"])
    for piece in (said, "!"):
        await asyncio.sleep(0)
        current = current_exchange.get()
        assert current is not None
        assert current.messages is messages
        yield piece


async def draft_first(call: Call, messages: Any, options: dict[str, Any]) -> Any:
    await drained(await call([{"role": "user", "content": "draft"}], **options))
    assert current_exchange.get() is None
    return await call(messages, **options)


async def both_at_once(call: Call, messages: Any, options: dict[str, Any]) -> Any:
    draft = [{"role": "user", "content": "draft"}]
    first, second = await asyncio.gather(call(draft, **options), call(messages, **options))
    drafted, said = await asyncio.gather(drained(first), drained(second))
    assert drafted == ["draft", "!"]
    return pieces_of(*said)


@pytest.mark.parametrize("hook", [draft_first, both_at_once])
async def test_each_of_several_requests_for_one_message_has_its_own_answer(hook: Any) -> None:
    agent, exchanges = seen_by(echo, hook)
    answer = await agent.prompt("hi")
    assert answer.text == "hi!"
    assert [each.pieces for each in exchanges] == [["draft", "!"], ["hi", "!"]]
    for each in exchanges:
        assert each.first is not None
        assert each.ended is not None
        assert each.started <= each.first <= each.ended
    assert [each.answer for each in exchanges] == [None, answer]


async def test_the_message_belongs_to_the_request_that_it_was_read_from() -> None:
    async def first_of_two(call: Call, messages: Any, options: dict[str, Any]) -> Any:
        one, _ = await asyncio.gather(call(messages, **options), call(messages, **options))
        return one

    agent, exchanges = seen_by(echo, first_of_two)
    answer = await agent.prompt("hi")
    assert [each.answer for each in exchanges] == [answer, None]
    assert [each.pieces for each in exchanges] == [["hi", "!"], []]
    assert exchanges[1].ended is not None


async def test_what_a_hook_makes_of_an_answer_is_not_told_as_the_backends() -> None:
    async def whole(_messages: Any) -> dict[str, Any]:
        return {"content": "the backend's"}

    async def rewrite(call: Call, messages: Any, options: dict[str, Any]) -> str:
        await call(messages, **options)
        return "the hook's"

    agent, exchanges = seen_by(whole, rewrite)
    answer = await agent.prompt("hi")
    assert exchanges[0].response == {"content": "the backend's"}
    assert exchanges[0].answer is answer
    assert answer.text == "the hook's"


async def test_a_request_that_failed_says_so_although_the_hook_asked_another() -> None:
    async def breaks(messages: Any) -> AsyncIterator[str]:
        yield "so far"
        raise ValueError(f"{len(messages)} were too many")

    async def fall_back(call: Call, messages: Any, options: dict[str, Any]) -> Any:
        try:
            return await drained(await call(messages, **options))
        except ValueError:
            return "spare"

    agent, exchanges = seen_by(breaks, fall_back)
    answer = await agent.prompt("hi")
    assert answer.text == "spare"
    assert exchanges[0].pieces == ["so far"]
    assert "1 were too many" in exchanges[0].error
    assert exchanges[0].ended is not None


async def test_a_blocking_iterator_is_observed_and_closed() -> None:
    left: list[Exchange | None] = []

    def blocking(_messages: Any) -> Iterator[str]:
        try:
            yield "one "
            yield "two"
        finally:
            left.append(current_exchange.get())

    async def one_only(call: Call, messages: Any, options: dict[str, Any]) -> str:
        pieces = await call(messages, **options)
        text = next(pieces)
        pieces.close()
        return text

    agent, exchanges = seen_by(blocking, through)
    assert (await agent.prompt("hi")).text == "one two"
    assert exchanges[0].pieces == ["one ", "two"]
    assert left == [exchanges[0]]
    agent.set_hooks(around_llm_call=one_only)
    assert (await agent.prompt("hi")).text == "one "
    assert exchanges[1].pieces == ["one "]
    assert len(left) == 2


async def test_the_tools_of_an_observed_agent_work_for_no_exchange() -> None:
    seen: list[Exchange | None] = []

    @tool
    async def look() -> str:
        """Look."""
        seen.append(current_exchange.get())
        return "seen"

    agent = Agent(Scripted([calls("look"), "done"]), tools=[look])
    agent.observe_exchanges(lambda _: None)
    await agent.prompt("hi")
    assert seen == [None]
