"""Random scripts of models, tools, hooks and people: whatever happens, a run stays a run.

Each example is one agent. Its model follows a script; its tools return, fail, hang, swallow their
cancellation, or raise what must not be raised. At numbered points, which are passed at each piece
of an answer, each start of a tool and each hook, a person aborts, steers, follows up, swaps the
backend or the tools, or gives up waiting. What hangs lets the others work for a while and then
aborts the run itself, so that every example ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn

import pytest
from agent.grammar import check_history, check_request, users_texts
from agent.scenario import (
    SCRIPTS,
    Action,
    Answer,
    Ending,
    Entry,
    HookAnswer,
    Script,
    Shape,
    fail,
    whole_answer,
    wire_pieces,
)
from agent.script import Recorder, forever
from agent.wrongs import Unshowable
from hypothesis import HealthCheck, given, settings

from yiemagent_nb.core import concurrency
from yiemagent_nb.core.agent import Agent
from yiemagent_nb.core.backend import LlmCall
from yiemagent_nb.core.errors import AgentClosedError, InvalidMessageRoleError
from yiemagent_nb.core.events import AgentEnd, AgentStart, Event, TurnStart
from yiemagent_nb.core.hooks import AgentContext, BeforeToolCallResult
from yiemagent_nb.core.limits import Limits
from yiemagent_nb.core.messages import AssistantMessage, Message, ToolResultMessage, UserMessage
from yiemagent_nb.core.models import LlmModel
from yiemagent_nb.core.request import RequestBuilder
from yiemagent_nb.core.results import ToolResult
from yiemagent_nb.core.state import AgentState
from yiemagent_nb.core.tools import ToolContext, tool

EXAMPLES = 2000
"""Each of them is at least two runs."""

PATIENCE = 8
"""So many steps of the event loop something hangs before it aborts its own run."""


@dataclass
class Said:
    """What was accepted from people, in order."""

    prompts: list[str] = field(default_factory=list[str])
    steering: list[str] = field(default_factory=list[str])
    follow_ups: list[str] = field(default_factory=list[str])


class Play:
    """One example while it runs."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.loop = asyncio.get_running_loop()
        self.said = Said()
        self.released = asyncio.Event()
        self.player = asyncio.current_task()
        self.killed = False
        self.late_reports: list[Callable[[Any], None]] = []
        self.violations: list[AssertionError] = []
        self.caller: asyncio.Task[object] | None = None
        self._answers = iter(script.answers)
        self._points = itertools.count()
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._hooks = {name: iter(getattr(script, name)) for name in ("before", "after", "prepare")}
        self._actions: Mapping[Action, Callable[[], object]] = {
            "abort": self.abort,
            "steer": lambda: self.say("steer"),
            "follow_up": lambda: self.say("follow_up"),
            "say_all": self.say_all,
            "swap": self.swap,
            "fewer_tools": lambda: self.agent.set_tools(self.all_tools[::2]),
            "all_tools": lambda: self.agent.set_tools(self.all_tools),
            "look": lambda: self.agent.state,
            "give_up": self.give_up,
            "kill": self.kill,
        }
        self.all_tools = Toolbox(self).tools
        self.backend = self.make_backend()
        self.backend_before_hook: LlmCall | None = None
        """``prepare_context`` is called within the turn that it prepares; a swap there comes too late."""
        self.agent = Agent(
            self.backend,
            tools=self.all_tools,
            tool_execution=script.tool_execution,
            steering_mode=script.steering_mode,
            follow_up_mode=script.follow_up_mode,
            before_tool_call=self.before,
            after_tool_call=self.after,
            prepare_context=self.prepare if script.prepare else None,
            limits=Limits(max_turns=8, messages_per_minute=None),
        )
        self.recorder = Recorder(self.agent)
        self.promises = Promises()
        self.agent.subscribe(self.promises)
        if script.noisy:
            self.agent.subscribe(raises)
            self.agent.subscribe(raises_later)
            self.agent.set_event_sink(raises)

    # Points and what people do there

    def point(self) -> None:
        """Pass a numbered point, in any thread."""
        for report in self.late_reports:
            report("late")
        number = next(self._points)
        if number < len(self.script.actions) and (action := self.script.actions[number]):
            self._actions[action]()

    def abort(self) -> None:
        """Abort, as a person does."""
        self.agent.abort()
        if threading.current_thread() is threading.main_thread():
            self.promises.abort()

    def say_all(self) -> None:
        """Say two things to steer, and two that come after."""
        for how in ("steer", "follow_up", "follow_up", "steer"):
            self.say(how)

    def swap(self) -> None:
        """Give the agent another backend."""
        self.backend = self.make_backend()
        self.agent.set_llm_call(self.backend)

    def give_up(self) -> None:
        """Wait no longer for the answer to a prompt."""
        if self.caller is not None:
            self.loop.call_soon_threadsafe(self.caller.cancel)

    def kill(self) -> None:
        """Cancel every task but the one that plays."""
        self.killed = True
        for task in asyncio.all_tasks(self.loop) - {self.player}:
            self.loop.call_soon_threadsafe(task.cancel)

    def say(self, how: Literal["steer", "follow_up"]) -> None:
        """Put a new message on a channel."""
        with self._lock:
            self.promises.say()
            text = f"{how} {next(self._numbers)}"
            if how == "steer":
                self.agent.steer(text)
                self.said.steering.append(text)
            else:
                self.agent.follow_up(text)
                self.said.follow_ups.append(text)

    async def hang(self) -> NoReturn:
        """Hang, and abort after a while."""
        for _ in range(PATIENCE):
            await asyncio.sleep(0)
        self.abort()
        await forever()
        raise AssertionError

    async def hang_stubbornly(self) -> None:
        """The same, and swallow the cancellation."""
        with contextlib.suppress(asyncio.CancelledError):
            await self.hang()
        while not self.released.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await self.released.wait()

    # The model

    def make_backend(self) -> LlmCall:
        """A backend of the script's shape, that only answers while it is the agent's."""

        def check(messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] | None) -> None:
            try:
                assert not self.promises.aborted, "a request was sent after an abort"
                check_request(messages)
                assert backend in (self.backend, self.backend_before_hook), "a backend was asked that was replaced"
                offered = [each["function"]["name"] for each in tools or ()]
                assert offered == list(self.agent.tools), "other tools were offered than there are"
            except AssertionError as violation:
                self.violations.append(violation)

        async def stream(messages: Any, tools: Any = None) -> AsyncGenerator[object, None]:
            check(messages, tools)
            answer = next(self._answers, Answer(["done"], ""))
            for piece in wire_pieces(answer):
                self.point()
                yield piece
            await self.end(answer.ending)

        async def whole(messages: Any, tools: Any = None) -> object:
            check(messages, tools)
            answer = next(self._answers, Answer(["done"], ""))
            self.point()
            await self.end(answer.ending)
            return whole_answer(answer)

        def function(messages: Any, tools: Any = None) -> object:
            check(messages, tools)
            answer = next(self._answers, Answer(["done"], ""))
            self.point()
            fail(answer.ending)
            return whole_answer(answer)

        def generator(messages: Any, tools: Any = None) -> Iterator[object]:
            check(messages, tools)
            answer = next(self._answers, Answer(["done"], ""))
            for piece in wire_pieces(answer):
                self.point()
                yield piece
            fail(answer.ending)

        class Described:
            """A backend that says what it is."""

            provider = "described"
            model = LlmModel(id="random")

            def __call__(self, messages: Any, tools: Any = None) -> AsyncIterator[object]:
                return stream(messages, tools)

        shapes: Mapping[Shape, LlmCall] = {
            "async generator": stream,
            "coroutine": whole,
            "function": function,
            "generator": generator,
            "described": Described(),
        }
        backend = shapes[self.script.shape]
        return backend

    async def end(self, ending: Ending) -> None:
        """End an answer as the script says."""
        if ending == "hang" or (ending == "stubborn" and self.script.shape == "described"):
            await self.hang()
        elif ending == "stubborn":
            await self.hang_stubbornly()
        fail(ending)

    # Hooks

    async def hook(self, name: str) -> HookAnswer:
        """Do what the script says for a hook, as far as every hook can."""
        self.point()
        answer: HookAnswer = next(self._hooks[name], "")
        if answer == "hang":
            await self.hang()
        fail({"crash": "crash", "exit": "exit", "interrupt": "interrupt"}.get(answer, ""))
        return answer

    async def before(self, *_: object) -> Any:
        """The hook before a call."""
        answers: Mapping[HookAnswer, object] = {
            "change": {"x": 2},
            "wrong": {"x": "no number"},
            "rubbish": {"x": object()},
            "block": BeforeToolCallResult(block=True),
        }
        return answers.get(await self.hook("before"))

    async def after(self, _: object) -> Any:
        """The hook after a call."""
        answers: Mapping[HookAnswer, object] = {
            "change": ToolResult("changed"),
            "wrong": ToolResult("changed", is_error=True, terminate=True),
            "rubbish": 17,
        }
        return answers.get(await self.hook("after"))

    async def prepare(self, state: AgentState) -> Any:
        """The hook before a request."""
        self.backend_before_hook = self.backend
        if await self.hook("prepare") == "rubbish":
            return 17
        return AgentContext(state.system_prompt, state.messages, self.agent.tools)

    # The whole example

    async def run(self) -> None:
        """Play the script, and check after each of its runs."""
        for entry in self.script.entries:
            await self.enter(entry)
            await self.settle()
            self.check()
        self.released.set()
        self.agent.set_hooks(before_tool_call=None, after_tool_call=None, prepare_context=None)
        self.agent.set_llm_call(plainly)
        self.promises.say()
        self.said.prompts.append("the end")
        await self.agent.prompt("the end")
        await self.settle()
        self.check()
        assert not self.agent.input_channel.items(), "steering is still queued"
        assert not self.agent.follow_up_channel.items(), "a follow-up is still queued"
        last = self.agent.messages[-1]
        assert isinstance(last, AssistantMessage)
        assert last.text == "still here", "the agent no longer answers"

    async def enter(self, entry: Entry) -> None:
        """Start a run, or let what waits start one."""
        if entry in ("steer", "follow_up"):
            self.say(entry)
            return
        self.promises.say()
        if entry == "continue":
            work = self.agent.continue_()
        else:
            text = f"prompt {next(self._numbers)}"
            self.said.prompts.append(text)
            work = self.agent.prompt(text)
        self.caller = caller = self.loop.create_task(work)
        try:
            answer = await caller
            assert any(answer is message for message in self.agent.messages)
        except InvalidMessageRoleError:
            assert entry == "continue"  # and nothing waited for an answer
        except (asyncio.CancelledError, AgentClosedError):
            assert caller.cancelled() or self.killed  # a person gave up waiting
        finally:
            self.caller = None

    async def settle(self) -> None:
        """Wait until nothing works any more, in threads neither."""
        quiet = 0
        while quiet < 2:  # once more, since a thread may have left something to do for the loop
            await self.agent.wait_idle()
            for _ in range(4):
                await asyncio.sleep(0)
            busy = any(thread.name.startswith("yiemagent_nb") for thread in threading.enumerate())
            quiet = 0 if busy or self.agent.is_running else quiet + 1

    def check(self) -> None:
        """What must hold whenever the agent is idle."""
        agent = self.agent
        for violation in (*self.violations, *self.promises.violations):
            raise violation
        self.recorder.check()
        grammar = self.recorder.grammar
        told = {id(message) for run in grammar.runs for message in run}
        untold = [message for message in agent.messages if id(message) not in told]
        assert sum(map(len, grammar.runs)) + len(untold) == len(agent.messages)
        assert not untold or self.killed, "the history holds what nobody was told"
        assert all(isinstance(message, UserMessage) for message in untold)  # of runs that were killed unborn
        if self.script.steering_mode == self.script.follow_up_mode == "one_at_a_time":
            assert max(grammar.inputs, default=0) <= 1, "two messages joined one turn"
        check_history(agent.messages)
        check_that_cut_calls_did_not_run(agent.messages)
        check_request(RequestBuilder().build("", [*agent.messages, UserMessage("next")]))
        assert agent.state.pending_tool_calls == frozenset()
        assert agent.state.streaming_message is None
        self.check_that_nothing_is_lost()

    def check_that_nothing_is_lost(self) -> None:
        """Each word that was accepted stands in the history or waits, once, and in order."""
        history = users_texts(self.agent.messages)
        steering = [*(t for t in history if t.startswith("steer")), *texts(self.agent.input_channel.items())]
        follow_ups = [*(t for t in history if t.startswith("follow")), *texts(self.agent.follow_up_channel.items())]
        prompts = [t for t in history if not t.startswith(("steer", "follow"))]
        assert steering == self.said.steering, "steering was lost, or came out of order"
        assert follow_ups == self.said.follow_ups, "a follow-up was lost, or came out of order"
        assert prompts == self.said.prompts, "a prompt was lost, or came out of order"


class Promises:
    """What an abort and an error promise: no further request, and that what waits stays where it is.

    A listener, which is also told what people do.
    """

    def __init__(self) -> None:
        self.aborted = False
        self.violations: list[AssertionError] = []
        self._held = False

    def abort(self) -> None:
        """A person aborts."""
        self.aborted = self._held = True

    def say(self) -> None:
        """A person says something new."""
        self._held = False

    def __call__(self, event: Event, _: object) -> None:
        """Take an event."""
        if isinstance(event, AgentStart):
            self.aborted = False
            if self._held:
                self.violations.append(AssertionError("what waited started a run after an abort or an error"))
        elif isinstance(event, TurnStart) and self.aborted:
            self.violations.append(AssertionError("a turn began after an abort"))
        elif isinstance(event, AgentEnd):
            self.aborted = False
            self._held |= event.reason == "error"


class Toolbox:
    """Tools of every kind; ``x`` is there to be wrong."""

    def __init__(self, play: Play) -> None:
        self.play = play
        functions: list[Callable[..., object]] = [
            self.works,
            self.fails,
            self.hangs,
            self.stubborn,
            self.exits,
            self.interrupts,
            self.cancels_itself,
            self.works_in_a_thread,
            self.fails_in_a_thread,
            self.hangs_in_a_thread,
            self.ends_the_run,
            self.reports,
            self.reports_late,
            self.gives_rubbish,
        ]
        self.tools = [
            *(tool(function, description=function.__name__) for function in functions),
            tool(self.works_in_turn, description="One at a time.", execution_mode="sequential"),
            tool(self.too_slow, description="Slow.", timeout=0.0005),
        ]

    async def works(self, x: int = 0) -> str:
        self.play.point()
        return f"worked {x}"

    async def fails(self, x: int = 0) -> str:
        self.play.point()
        raise ValueError(f"failed {x}")

    async def hangs(self, x: int = 0) -> str:
        self.play.point()
        await self.play.hang()
        return f"never {x}"

    async def stubborn(self, x: int = 0) -> str:
        self.play.point()
        await self.play.hang_stubbornly()
        return f"at last {x}"

    async def exits(self, x: int = 0) -> str:
        self.play.point()
        raise SystemExit(x)

    async def interrupts(self, x: int = 0) -> str:
        self.play.point()
        raise KeyboardInterrupt(x)

    async def cancels_itself(self, x: int = 0) -> str:
        self.play.point()
        raise asyncio.CancelledError(x)

    def works_in_a_thread(self, x: int = 0) -> str:
        self.play.point()
        return f"worked {x}"

    def fails_in_a_thread(self, x: int = 0) -> str:
        self.play.point()
        raise Unwanted(x)

    def hangs_in_a_thread(self, context: ToolContext, x: int = 0) -> str:
        self.play.point()
        self.play.loop.call_soon_threadsafe(self.play.agent.abort)
        context.signal.wait_threadsafe()
        return f"stopped {x}"

    async def ends_the_run(self, x: int = 0) -> ToolResult:
        self.play.point()
        return ToolResult(f"over {x}", terminate=True)

    async def works_in_turn(self, x: int = 0) -> str:
        self.play.point()
        return f"worked {x}"

    async def too_slow(self, x: int = 0) -> str:
        self.play.point()
        await forever()
        return f"never {x}"

    async def reports(self, context: ToolContext, x: int = 0) -> AsyncIterator[str]:
        yield f"one {x}"
        self.play.point()
        context.update("between")
        yield f"two {x}"

    async def reports_late(self, context: ToolContext, x: int = 0) -> str:
        self.play.late_reports.append(context.update)
        self.play.point()
        return f"reported {x}"

    async def gives_rubbish(self, x: int = 0) -> object:
        self.play.point()
        return Unshowable() if x else {"key": Unshowable()}


def check_that_cut_calls_did_not_run(messages: Sequence[Message]) -> None:
    """The calls of an answer that was cut, stopped or failed have error results."""
    cut = False
    for message in messages:
        if isinstance(message, AssistantMessage):
            cut = message.stop_reason in ("length", "aborted", "error")
        elif isinstance(message, ToolResultMessage):
            assert message.is_error or not cut, "a call ran whose answer was not whole"


def texts(items: Sequence[object]) -> list[str]:
    """What waits in a channel."""
    return [item.text for item in items if isinstance(item, UserMessage)]


class Unwanted(BaseException):
    """Neither an Exception nor anything that Python knows."""


async def plainly(_: object) -> str:
    """Answer without any script."""
    return "still here"


def raises(*_: object) -> None:
    """A listener, or a sink, that is broken."""
    raise RuntimeError("broken listener")


async def raises_later(*_: object) -> None:
    """A broken listener that is served beside the others."""
    await asyncio.sleep(0)
    raise RuntimeError("broken listener")


@pytest.fixture(scope="module")
def runner() -> Generator[asyncio.Runner]:
    """One event loop for all examples, which also sees that none of them leaves a task behind."""
    with pytest.MonkeyPatch.context() as patch, asyncio.Runner() as runner:
        patch.setattr(concurrency, "ABORT_GRACE", 0.0)
        patch.setattr(logging.getLogger("yiemagent_nb"), "disabled", True)
        yield runner


@pytest.mark.requirement("Y P-005", "Y FR-003", "Y NFR-201", "Y SP-022", "Y SD-008", "A FR-004", "A SPEC-5.1")
@pytest.mark.timeout(300)
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(script=SCRIPTS)
def test_whatever_happens_a_run_stays_a_run(runner: asyncio.Runner, script: Script) -> None:
    async def play() -> None:
        await Play(script).run()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for _ in range(8):
            await asyncio.sleep(0)
        left = {task for task in left if not task.done()}
        assert not left, f"tasks are left behind: {left}"

    runner.run(play())
