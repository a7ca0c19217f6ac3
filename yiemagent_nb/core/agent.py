"""Agent: channels, state and a background task around the loop; no logic of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Mapping, Sequence
from os import PathLike
from types import TracebackType
from typing import Any, Literal, Self, TypeVar, cast, get_args, overload

from yiemagent_nb.core.agent_settings import (
    AgentSettings,
    as_model,
    require_callable,
    require_one_of,
)
from yiemagent_nb.core.approval import Approvals, approvals_among
from yiemagent_nb.core.backend import LlmCall, default_backend
from yiemagent_nb.core.branches import Branches
from yiemagent_nb.core.channels import Channel, Shutdown
from yiemagent_nb.core.config import AroundLlmCall, FormatMessages, LoopConfig, PrepareContext
from yiemagent_nb.core.errors import AgentClosedError, InvalidParametersError
from yiemagent_nb.core.events import AgentEnd, Event
from yiemagent_nb.core.hand_call import call_by_hand
from yiemagent_nb.core.hooks import AfterToolCall, AgentContext, BeforeToolCall, Hooks, as_hooks
from yiemagent_nb.core.hub import EventSink, Hub
from yiemagent_nb.core.limits import Limits
from yiemagent_nb.core.messages import AssistantMessage, Message, ToolCall, UserMessage, new_id
from yiemagent_nb.core.models import THINKING_LEVELS, LlmModel, ThinkingLevel
from yiemagent_nb.core.openai_form import parse_messages
from yiemagent_nb.core.output import OutputFormat
from yiemagent_nb.core.questions import Questions
from yiemagent_nb.core.queues import PromptInput, QueueMode, Sendable, read_prompt
from yiemagent_nb.core.results import ToolResult
from yiemagent_nb.core.runner import Runner
from yiemagent_nb.core.runtime import ask_in_thread, ask_nested, can_be_nested, running_loop
from yiemagent_nb.core.signal import AbortSignal
from yiemagent_nb.core.state import AgentState
from yiemagent_nb.core.toolbox import Toolbox
from yiemagent_nb.core.tools import ExecutionMode, Tool, as_tools
from yiemagent_nb.core.validation import json_copy

__all__ = ["Agent"]

T = TypeVar("T")


class Agent(AgentSettings):
    """An agent: a conversation with a model that may call tools.

    Args:
        llm_call: The backend: any callable, see ``yiemagent_nb.core.backend``. Default: the first
            that is there of a model server on this machine, a key in the environment, ``Demo``.
        system_prompt: What the model is told first.
        model: Given to the backend; a string is a model's id. Default: the backend's own.
        thinking_level: How much the model should think.
        tools: Tools and plain functions.
        mcp_servers: MCP servers whose tools the model may call as well: ``McpServer`` objects, addresses
            of servers, callables, and what ``read_mcp_config`` gives. They are connected side by side,
            in the background; the first run waits for them.
        messages: A history to begin with, in any form that ``parse_messages`` reads.
        steering_mode: Whether messages on the input channel join a run one a turn or all at once.
        follow_up_mode: The same for follow-ups.
        tool_execution: How the calls of one answer run.
        prepare_context: Chooses what is sent.
        format_messages: Turns it into OpenAI's form.
        around_llm_call: Calls the backend, with what it may change: see ``AroundLlmCall`` in ``core.config``.
        before_tool_call: One hook or several; may block or change a call.
        after_tool_call: One hook or several; may change a result.
        event_sink: Sees every event, ``Trace`` included.
        limits: What the agent may do.
        options: Further keywords for the backend (``temperature``, …).
        text_tool_calls: Understand calls that a model writes as text.
        runtime: ``"loop"`` works on the event loop that first awaits the agent; ``"thread"`` on one
            in a thread of its own, so that blocking cells do not stop it.

    Example::

        agent = Agent(my_llm_call, tools=[add])
        message = await agent.prompt("What is 17 + 25?")
        print(message.text)
    """

    def __init__(
        self,
        llm_call: LlmCall | None = None,
        system_prompt: str = "",
        *,
        model: LlmModel | str | None = None,
        thinking_level: ThinkingLevel = "off",
        tools: Iterable[Tool | Callable[..., Any]] = (),
        mcp_servers: Any = (),
        messages: Iterable[Message | Mapping[str, Any] | str] = (),
        steering_mode: QueueMode = "one_at_a_time",
        follow_up_mode: QueueMode = "one_at_a_time",
        tool_execution: ExecutionMode = "parallel",
        prepare_context: PrepareContext | None = None,
        format_messages: FormatMessages | None = None,
        around_llm_call: AroundLlmCall | None = None,
        before_tool_call: BeforeToolCall | Sequence[BeforeToolCall] | None = None,
        after_tool_call: AfterToolCall | Sequence[AfterToolCall] | None = None,
        event_sink: EventSink | None = None,
        limits: Limits = Limits(),  # noqa: B008 - immutable
        options: Mapping[str, Any] | None = None,
        text_tool_calls: bool = False,
        runtime: Literal["loop", "thread"] = "loop",
    ) -> None:
        if llm_call is None:
            llm_call = default_backend()
        require_callable("llm_call", llm_call)
        as_hooks("before_tool_call", before_tool_call)
        as_hooks("after_tool_call", after_tool_call)
        require_one_of("steering_mode", steering_mode, get_args(QueueMode))
        require_one_of("follow_up_mode", follow_up_mode, get_args(QueueMode))
        require_one_of("tool_execution", tool_execution, get_args(ExecutionMode))
        require_one_of("thinking_level", thinking_level, THINKING_LEVELS)
        require_one_of("runtime", runtime, ("loop", "thread"))
        self._config = LoopConfig(
            llm_call=llm_call,
            model=as_model(model, llm_call),
            thinking_level=thinking_level,
            tool_execution=tool_execution,
            prepare_context=prepare_context,
            format_messages=format_messages,
            around_llm_call=around_llm_call,
            before_tool_call=before_tool_call,
            after_tool_call=after_tool_call,
            limits=limits,
            options=dict(options or {}),
            text_tool_calls=text_tool_calls,
        )
        self._toolbox = Toolbox(as_tools(tools))
        self._nested = 0
        self._attending: set[object] = set()
        self._context = AgentContext(system_prompt, parse_messages(messages), self._toolbox.offered)
        self._hub = Hub()
        self._hub.set_sink(event_sink)
        self._runner = Runner(self, self._context, self._config, self._hub)
        self._runner.queues.steering_mode = steering_mode
        self._runner.queues.follow_up_mode = follow_up_mode
        if runtime == "thread":
            self._runner.binding.move_to_thread()
        if servers := _as_several(mcp_servers):
            self.add_mcp_servers(*servers)

    # What it is

    def __repr__(self) -> str:
        """The backend, the number of tools and messages, and whether it works."""
        state = "closed" if self.closed else "running" if self.is_running else "idle"
        return f"<Agent {self.backend_label}, {len(self._context.tools)} tools, {len(self.messages)} messages, {state}>"

    @property
    def state(self) -> AgentState:
        """A snapshot, from any thread."""
        run = self._runner.run
        return AgentState(
            system_prompt=self._context.system_prompt,
            model=self._model,
            thinking_level=self._config.thinking_level,
            tools=dict(self._context.tools),
            messages=self.messages,
            is_streaming=run is not None,
            streaming_message=None if run is None else run.streaming_message,
            pending_tool_calls=frozenset() if run is None else frozenset(run.pending_calls),
            error_message=self._runner.error_message if run is None else run.error_message,
        )

    @property
    def messages(self) -> tuple[Message, ...]:
        """The history, oldest first."""
        return tuple(self._context.messages)

    @property
    def is_running(self) -> bool:
        """Whether a run is active."""
        return self._runner.run is not None

    @property
    def closed(self) -> bool:
        """Whether the agent was shut down."""
        return self._runner.queues.closed

    @property
    def input_channel(self) -> Channel[Sendable | Shutdown, Any]:
        """What people say, 16 at most: starts a run, or steers the one that goes on."""
        return self._runner.queues.input

    @property
    def follow_up_channel(self) -> Channel[Sendable, Any]:
        """What comes after the work in hand, 32 at most."""
        return self._runner.queues.follow_up

    @property
    def waiting(self) -> tuple[tuple[Sendable, ...], tuple[Sendable, ...]]:
        """What waits as steering and as follow-ups, each oldest first, at one moment, from any thread."""
        return self._runner.queues.waiting()

    @property
    def output_channel(self) -> Channel[dict[str, Any], dict[str, Any]]:
        """Every answer in OpenAI's form. Until someone first reads it, it keeps the newest 16."""
        return self._runner.queues.output

    @property
    def approvals(self) -> Approvals:
        """The calls that wait for a person's word."""
        return self._runner.approvals

    @property
    def questions(self) -> Questions:
        """What a tool's server asks a person, such as MCP's elicitation."""
        return self._runner.questions

    @property
    def hears_people(self) -> bool:
        """Whether a person could answer now: someone attends, and no ``ask`` keeps clicks away."""
        return bool(self._attending) and not self._nested

    @property
    def branches(self) -> Branches:
        """The ways that the conversation took: ``edit`` and ``regenerate`` begin one, ``switch_branch`` shows one."""
        return self._runner.branches

    @property
    def spent(self) -> float:
        """US dollars that its answers cost since it was built or reset, as far as prices are known."""
        return self._runner.spent_by_now

    # Talking to it

    @overload
    async def prompt(self, input: PromptInput) -> AssistantMessage: ...
    @overload
    async def prompt(self, input: PromptInput, *, output_type: type[T], output_retries: int = 2) -> T: ...
    @overload
    async def prompt(self, input: PromptInput, *, output_type: object, output_retries: int = 2) -> Any: ...
    async def prompt(self, input: PromptInput, *, output_type: Any = None, output_retries: int = 2) -> Any:  # noqa: A002
        """Say something and wait for the end of the run; returns its last answer, or what it says.

        Without ``output_type``, a failed or aborted run returns too: see the answer's
        ``stop_reason``. Cancelling the caller aborts the run.

        Args:
            input: A string, a message, or several.
            output_type: What the last answer must be: a pydantic model, a dataclass, a ``TypedDict``,
                or any annotation that pydantic knows, such as ``list[Person]``. The model may use its
                tools before. An answer that does not fit is told so, in a user's message.
            output_retries: How often it is told, at most.

        Returns:
            The last answer; with ``output_type``, a value of that type.

        Example::

            class Person(BaseModel):
                name: str
                age: int

            person = await agent.prompt("Ada Lovelace is 36 years old.", output_type=Person)

        Raises:
            OutputInvalidError: The run ended without an answer that fits ``output_type``. It carries
                the answer; the history has everything.
            InvalidParametersError: ``output_type`` has no JSON Schema; nothing was sent.
            AgentBusyError: A run is active; use ``steer`` or ``follow_up``.
            InvalidMessageRoleError: A message that people do not send.
            RateLimitedError: A limit is reached; nothing was sent.
            AgentClosedError: The agent was shut down.
        """
        messages = read_prompt(input)
        if output_type is None:
            return await self._runner.binding.run(lambda: self._runner.prompt(messages))
        output: OutputFormat[Any] = OutputFormat(output_type, retries=output_retries)
        return await self._runner.binding.run(lambda: self._runner.prompt_for(messages, output))

    async def continue_(self) -> AssistantMessage:
        """Go on from the history as it stands, as after an error; returns the run's last answer.

        Where the history ends in an answer, what waits on the input channel is taken, else what
        waits on the follow-up channel.

        Raises:
            AgentBusyError: A run is active.
            InvalidMessageRoleError: Nothing waits, and the history's last message is an answer.
        """
        return await self._runner.binding.run(self._runner.continue_)

    async def edit(self, index: int, content: str | UserMessage) -> AssistantMessage:
        """Say something else in place of an earlier message; returns the run's last answer.

        What stood there, and all that followed, stays as a branch: see ``branches``.

        Args:
            index: The place in ``messages`` of what a person said.
            content: A string takes the place of the message's words; its images and files stay.
                A message takes the place of all of it.

        Raises:
            AgentBusyError: A run is active.
            InvalidParametersError: No person's message stands there, or the new one is empty.
            RateLimitedError: A limit is reached; nothing was changed.
        """
        runner = self._runner
        return await runner.binding.run(lambda: runner.last_answer(runner.edit(index, content)))

    async def regenerate(self, index: int | None = None) -> AssistantMessage:
        """Ask for another answer in place of an earlier one; returns the run's last answer.

        What stood there, and all that followed, stays as a branch: see ``branches``. The results of
        tools that stand before it are kept, so that a failed answer can be tried again.

        Args:
            index: The place of the answer in ``messages``. Default: where the newest turn's answer begins.

        Raises:
            AgentBusyError: A run is active.
            InvalidParametersError: No answer to something stands there.
            RateLimitedError: A limit is reached; nothing was changed.
        """
        runner = self._runner
        return await runner.binding.run(lambda: runner.last_answer(runner.regenerate(index)))

    async def begin_edit(self, index: int, content: str | UserMessage) -> None:
        """The same as ``edit``, and returns as soon as the run has begun."""
        await self._runner.binding.run(lambda: self._runner.edit(index, content))

    async def begin_regenerate(self, index: int | None = None) -> None:
        """The same as ``regenerate``, and returns as soon as the run has begun."""
        await self._runner.binding.run(lambda: self._runner.regenerate(index))

    def go_back(self, index: int) -> None:
        """End the history before the message ``index``; what stood there stays as a branch: see ``branches``.

        ``go_back(0)`` begins a new conversation.

        Raises:
            AgentBusyError: A run is active.
            InvalidParametersError: There is no such message.
        """
        self._runner.go_back(index)

    def switch_branch(self, index: int, position: int) -> None:
        """Show another of the branches that begin at the message ``index``, counted from 0.

        Raises:
            AgentBusyError: A run is active.
            InvalidParametersError: There is no such branch.
        """
        self._runner.switch_branch(index, position)

    def start(self, work: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Start ``work()`` on the agent's event loop, from any thread, and wait for nothing.

        What it raises is told to listeners as an ``AgentError``.

        Raises:
            AgentClosedError: The agent has no event loop, and none runs here.
        """
        if not self._runner.start_beside(work):
            raise AgentClosedError("The agent has no event loop to work on.", 'Use Agent(runtime="thread").')

    @overload
    def ask(self, input: PromptInput) -> AssistantMessage: ...
    @overload
    def ask(self, input: PromptInput, *, output_type: type[T], output_retries: int = 2) -> T: ...
    @overload
    def ask(self, input: PromptInput, *, output_type: object, output_retries: int = 2) -> Any: ...
    def ask(self, input: PromptInput, *, output_type: Any = None, output_retries: int = 2) -> Any:  # noqa: A002
        """``prompt`` for synchronous code: a plain script, or a cell without ``await``.

        In a script the agent moves to an event loop in a thread of its own. Inside a running loop
        the run is nested in it, so that widgets go on; ``asyncio.timeout`` around it does not stop
        it, and clicks do not arrive meanwhile. A loop that cannot be nested (uvloop) is blocked
        meanwhile, and the agent needs ``runtime="thread"``. Ctrl-C aborts the run and leaves the
        agent usable.

        Args:
            input: As for ``prompt``.
            output_type: As for ``prompt``.
            output_retries: As for ``prompt``.

        Raises:
            OutputInvalidError: As for ``prompt``.
            InvalidParametersError: A hook waits for a click, which cannot arrive in a nested run.
            KeyboardInterrupt: Ctrl-C was pressed.
        """

        def work() -> Coroutine[Any, Any, Any]:
            return self.prompt(input, output_type=output_type, output_retries=output_retries)

        loop = running_loop()
        binding = self._runner.binding
        if loop is not None:
            _refuse_clicks(self._config.before_tool_call)
            if can_be_nested(loop) or not binding.has_thread:
                self._nested += 1
                try:
                    return ask_nested(loop, work, self.abort)
                finally:
                    self._nested -= 1
        return ask_in_thread(binding.for_synchronous_code(), work, self.abort)

    async def complete(
        self,
        messages: Iterable[Message | Mapping[str, Any] | str],
        system_prompt: str = "",
        *,
        signal: AbortSignal | None = None,
        **options: Any,
    ) -> AssistantMessage:
        """Ask the model once, beside the conversation, in mid-run too: without its history and its tools.

        No event tells of it. What it costs counts; a failed or aborted answer returns too, see its
        ``stop_reason``.

        Args:
            messages: What is sent, in any form that ``parse_messages`` reads.
            system_prompt: What the model is told first.
            signal: Stops the request when it is set.
            **options: Further keywords for the backend, in place of the agent's own: ``max_tokens=100``.

        Raises:
            RateLimitedError: ``Limits.max_cost`` is reached; nothing was sent.
        """
        context = AgentContext(system_prompt, parse_messages(messages))
        until = signal or AbortSignal()
        return await self._runner.binding.run(lambda: self._runner.complete(context, options, until))

    async def alongside(self, work: Callable[[AbortSignal], Coroutine[Any, Any, T]]) -> T:
        """Await ``work(signal)`` on the agent's event loop, from whichever loop this is.

        For what serves the agent, such as a server that asks something in mid-call: ``signal`` is set
        by ``abort``, and at the end of the run that goes on now. Cancelling the caller cancels the work.
        """
        return await self._runner.binding.run(lambda: self._runner.alongside(work))

    async def stream(self, input: PromptInput) -> AsyncGenerator[Event, None]:  # noqa: A002
        """Say something and yield the events of the run. Leaving the iteration early aborts it.

        Raises:
            AgentBusyError: A run is active.
        """
        loop = asyncio.get_running_loop()
        self._runner.require_idle()
        queue: asyncio.Queue[Event | None] = asyncio.Queue()

        def listen(event: Event, _signal: AbortSignal) -> None:
            if running_loop() is loop:
                queue.put_nowait(event)
            else:
                loop.call_soon_threadsafe(queue.put_nowait, event)

        unsubscribe = self.subscribe(listen)
        task = loop.create_task(self.prompt(input))
        task.add_done_callback(lambda _: queue.put_nowait(None))
        try:
            while (event := await queue.get()) is not None:
                yield event
                if isinstance(event, AgentEnd):
                    break
            await task
        finally:
            unsubscribe()
            if not task.done():
                task.cancel()
                await asyncio.wait({task})

    def steer(self, message: str | Sendable) -> None:
        """Put on the input channel without waiting: joins the run that goes on, or starts one.

        Raises:
            ChannelFull: 16 messages wait.
            RateLimitedError: A limit is reached; nothing was sent.
        """
        self.input_channel.put_nowait(message)

    def follow_up(self, message: str | Sendable) -> None:
        """Put on the follow-up channel without waiting: comes when the agent would stop.

        Raises:
            ChannelFull: 32 messages wait.
            RateLimitedError: A limit is reached; nothing was sent.
        """
        self.follow_up_channel.put_nowait(message)

    def take_back(self, message: Sendable) -> bool:
        """Take a message off the channel on which it waits, from any thread.

        Args:
            message: As ``input_channel.items()`` or ``follow_up_channel.items()`` has it.

        Returns:
            Whether it waited; False where the agent has taken it.
        """
        return self._runner.take_back(message)

    def steer_now(self, message: Sendable) -> None:
        """Let a follow-up that waits join the run that goes on, from any thread.

        Args:
            message: As ``follow_up_channel.items()`` has it.

        Raises:
            InvalidParametersError: It does not wait there any more.
            ChannelFull: 16 messages wait on the input channel; it goes on waiting as a follow-up.
        """
        self._runner.queues.steer_now(message)

    def abort(self) -> None:
        """Stop the run and what servers ask, from any thread. What waits in the channels stays there.

        What had streamed is kept, every call gets a result, and the agent can be prompted again.
        """
        self._runner.abort()

    async def wait_idle(self) -> None:
        """Wait until nothing runs and listeners have handled the last ``AgentEnd``.

        Raises:
            AgentBusyError: Awaited inside a listener, which would wait for itself.
        """
        await self._runner.binding.run(self._runner.wait_idle)

    async def shutdown(self) -> None:
        """End after the work in hand: what was put on the input channel before comes first.

        MCP servers that nobody else uses are disconnected.
        """
        await self._runner.binding.run(self._runner.shutdown)
        if (source := self._toolbox.source) is not None:
            await self._runner.binding.run(source.close)
        self._runner.binding.stop_thread()

    def reset(self) -> None:
        """Forget the conversation, what waits in the channels, and what was allowed for the session.

        Raises:
            AgentBusyError: A run is active; abort it first.
        """
        self._runner.reset()

    async def __aenter__(self) -> Self:
        """The agent itself."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Shut down; after an error, abort first."""
        if error is not None:
            self.abort()
        await self.shutdown()

    # Listening and changing

    def attend(self) -> Callable[[], None]:
        """Say that somebody is there who sees and answers ``questions`` and ``approvals``.

        A widget does so while it is open; code that answers them calls it. Where nobody attends, what
        a server asks a person is cancelled rather than left to wait. A listener alone does not count:
        it may only write a log.

        Returns:
            What says that they are gone.
        """
        attendance = object()
        self._attending.add(attendance)
        return lambda: self._attending.discard(attendance)

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        hooks: bool = True,
        on_update: Callable[[ToolResult], None] | None = None,
        signal: AbortSignal | None = None,
    ) -> ToolResult:
        """Call a tool by hand, beside the conversation and in mid-run too.

        The arguments are checked as those of a model are. Nothing of it stands in the history; what the tool
        does wrong is a result with ``is_error``.

        Args:
            name: One of ``registered_tools``, those that are switched off among them.
            arguments: For the tool.
            hooks: Ask ``before_tool_call`` and ``after_tool_call``, with their approvals.
            on_update: Takes the tool's progress, on the agent's event loop.
            signal: Stops the call when it is set; ``abort`` does not, ``shutdown`` does.

        Raises:
            AgentClosedError: The agent was shut down.
            InvalidParametersError: The arguments are no JSON object.

        Example::

            result = await agent.call_tool("add", {"a": 17, "b": 25})
            print(result.text)
        """
        call = ToolCall(id=new_id("hand"), name=name, arguments=_json_object(arguments))
        context = AgentContext(self._context.system_prompt, self.messages, dict(self._toolbox.registered))
        asked = self.hooks if hooks else Hooks()

        def work(until: AbortSignal) -> Coroutine[Any, Any, ToolResult]:
            return call_by_hand(
                call,
                context,
                owner=self,
                signal=until,
                approvals=self.approvals,
                before_hooks=asked.before_tool_call,
                after_hooks=asked.after_tool_call,
                on_update=on_update,
                observe=self._hub.calls.tell,
            )

        return await self._runner.binding.run(lambda: self._runner.by_hand(signal, work))


def _json_object(arguments: object) -> dict[str, Any]:
    if not isinstance(arguments, Mapping):
        raise InvalidParametersError(
            f"The arguments must be a mapping, not {type(arguments).__name__}.", 'Give them by name: {"a": 1}.'
        )
    return json_copy(dict(cast("Mapping[str, Any]", arguments)))


def _as_several(servers: Any) -> tuple[Any, ...]:
    """A list of servers, or a single one."""
    given = cast("object", servers)
    single = isinstance(given, str | PathLike | Mapping) or callable(given) or not isinstance(given, Iterable)
    return (servers,) if single else tuple(cast("Iterable[Any]", servers))


def _refuse_clicks(hooks: object) -> None:
    if any(hook.needs_person for hook in approvals_among(hooks)):
        raise InvalidParametersError(
            "ask() cannot wait for an approval: no click arrives while a cell runs synchronously.",
            "Use `await agent.prompt(...)`, or approve(ask=...) that answers in code.",
        )
