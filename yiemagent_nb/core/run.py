"""Run: what one run keeps while it goes on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from yiemagent_nb.core.approval import Approvals
from yiemagent_nb.core.backend import Calling
from yiemagent_nb.core.call_stages import CallObserver
from yiemagent_nb.core.config import LoopConfig
from yiemagent_nb.core.events import Event, MessageEnd, MessageStart, Trace
from yiemagent_nb.core.exchange import Exchange, ExchangeObserver
from yiemagent_nb.core.hooks import AgentContext
from yiemagent_nb.core.messages import AssistantMessage, Message, new_id
from yiemagent_nb.core.output import OutputFormat
from yiemagent_nb.core.reading.assemble import Assembler
from yiemagent_nb.core.results import ToolResult
from yiemagent_nb.core.signal import AbortSignal
from yiemagent_nb.core.state import AgentState

__all__ = ["Emit", "Run"]

Emit = Callable[[Event], None]


def _nobody() -> None:
    return None


class Run:
    """One run: the history that it adds to, its signal, and where its events go.

    Args:
        context: System prompt, history and tools. Its ``messages`` must be a list: the run
            appends to it.
        config: Read anew at every turn.
        signal: Ends the run when set.
        emit: Takes every event, in order, on the event loop.
        approvals: Where approval hooks ask.
        tracing: Says whether ``Trace`` events are wanted.
        spent: US dollars spent before.
        output: The form that answers must have; default: the configuration's.
        observe: Takes each exchange with the model when it begins; None while nobody observes.
        observe_calls: Takes the stages of calls; None while nobody observes.
    """

    def __init__(
        self,
        context: AgentContext,
        config: LoopConfig,
        signal: AbortSignal,
        emit: Emit,
        *,
        approvals: Approvals | None = None,
        tracing: Callable[[], bool] = bool,
        spent: float = 0.0,
        output: OutputFormat[Any] | None = None,
        observe: Callable[[], ExchangeObserver | None] = _nobody,
        observe_calls: Callable[[], CallObserver | None] = _nobody,
    ) -> None:
        if not isinstance(context.messages, list):
            context.messages = list(context.messages)
        self.history: list[Message] = context.messages
        self.context = context
        self.config = config
        self.signal = signal
        self.emit = emit
        self.approvals = approvals if approvals is not None else Approvals(emit)
        self.added: list[Message] = []
        self.assembler: Assembler | None = None
        self.pending_calls: set[str] = set()
        self.settled_calls: dict[str, ToolResult] = {}
        """Results that do not stand in the history yet, by call id."""
        self.error_message: str | None = None
        self.spent = spent
        self.output = config.output if output is None else output
        self.corrections = 0
        """How often the model was told that its answer does not have that form."""
        self.exchanges: list[Exchange] = []
        """Those that were made for the answer that is awaited, while somebody observes."""
        self.used: Exchange | None = None
        """The one of them that the answer is read from, where it is what the backend gave."""
        self._tracing = tracing
        self._observe = observe
        self._observe_calls = observe_calls
        self._calling = Calling.of(config.llm_call)

    @property
    def observer(self) -> ExchangeObserver | None:
        """Takes each exchange with the model when it begins; None while nobody observes."""
        return self._observe()

    @property
    def call_observer(self) -> CallObserver | None:
        """Takes the stages of calls; None while nobody observes."""
        return self._observe_calls()

    @property
    def trace(self) -> Callable[[str, Mapping[str, Any]], None] | None:
        """Takes named steps; None where nobody wants them."""
        return self._trace if self._tracing() else None

    def step(self, name: str, **data: Any) -> None:
        """Trace a named step, if anyone wants it."""
        if self._tracing():
            self.emit(Trace(name, data))

    def _trace(self, step: str, data: Mapping[str, Any]) -> None:
        self.emit(Trace(step, data))

    def add(self, message: Message, message_id: str | None = None) -> None:
        """Append to the history and tell: ``MessageStart`` (unless it was told) and ``MessageEnd``."""
        if message_id is None:
            message_id = new_id("msg")
            self.emit(MessageStart(message_id, message))
        self.history.append(message)
        self.added.append(message)
        self.emit(MessageEnd(message_id, message))

    @property
    def calling(self) -> Calling:
        """How the backend of this turn is called."""
        if self._calling.llm_call is not self.config.llm_call:
            self._calling = Calling.of(self.config.llm_call)
        return self._calling

    @property
    def over_budget(self) -> bool:
        """Whether ``limits.max_cost`` is reached."""
        return self.config.limits.max_cost is not None and self.spent >= self.config.limits.max_cost

    @property
    def streaming_message(self) -> AssistantMessage | None:
        """What has come of the answer that streams in."""
        return None if self.assembler is None else self.assembler.so_far()

    def state(self) -> AgentState:
        """A snapshot."""
        return AgentState(
            system_prompt=self.context.system_prompt,
            model=self.calling.model(self.config.model),
            thinking_level=self.config.thinking_level,
            tools=dict(self.context.tools),
            messages=tuple(self.history),
            is_streaming=True,
            streaming_message=self.streaming_message,
            pending_tool_calls=frozenset(self.pending_calls),
            error_message=self.error_message,
        )
