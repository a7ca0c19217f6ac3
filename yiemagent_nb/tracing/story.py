"""Story: from the events and exchanges of an agent to rows that begin, change and end.

Every row ends: what an event does not end ends with what it is a part of.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol, cast

from yiemagent_nb.core.call_stages import CallStage
from yiemagent_nb.core.errors import ExecutionAbortedError
from yiemagent_nb.core.events import (
    AgentEnd,
    AgentStart,
    ApprovalRequested,
    ApprovalResolved,
    EndReason,
    Event,
    MessageEnd,
    MessageStart,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolExecutionUpdate,
    TurnEnd,
    TurnStart,
)
from yiemagent_nb.core.exchange import Exchange
from yiemagent_nb.core.messages import AssistantMessage, UserMessage
from yiemagent_nb.core.results import ToolResult
from yiemagent_nb.tracing.keeping import Keeping, kept_result, size_of_answer, size_of_call
from yiemagent_nb.tracing.masking import bounded
from yiemagent_nb.tracing.requests import length_of
from yiemagent_nb.tracing.rows import CallBody, ModelBody, Row, RowKind, RowState, RunBody, Tokens, one_line

__all__ = ["Begin", "Story"]

_ENDS: Mapping[EndReason, RowState] = {
    "done": "done",
    "terminated": "done",
    "aborted": "aborted",
    "error": "failed",
    "max_turns": "failed",
    "max_cost": "failed",
}
_LONGEST_ERROR = 10_000
"""Characters of an error that a row has; all of it stands in what the row held."""

_INTERRUPTED = "It was interrupted."


class Begin(Protocol):
    """Makes a row."""

    def __call__(self, kind: RowKind, parent: Row | None, title: str) -> Row:
        """A row that begins now."""
        ...


class Changed(Protocol):
    """Told of rows."""

    def __call__(self, row: Row) -> None:
        """It is new, or has changed."""
        ...


class Story:
    """What goes on now. Called in the order in which things happen.

    Args:
        begin: Makes a row.
        changed: Told of each that is new or has changed.
        keeping: Counts what they hold.
    """

    def __init__(self, begin: Begin, changed: Changed, keeping: Keeping) -> None:
        self._make = begin
        self._changed = changed
        self._keeping = keeping
        self._run: Row | None = None
        self._turn: Row | None = None
        self._model: Row | None = None
        self._turns = 0
        self._message = ""
        self._calls: dict[str, Row] = {}
        self._hand: dict[str, Row] = {}
        self._asked: dict[str, Row] = {}
        self._lanes: set[int] = set()
        self._takes: Mapping[type, Callable[[Any], None]] = {
            AgentStart: lambda _: self._begin_run(),
            AgentEnd: lambda event: self._end_run(event.reason),
            TurnStart: lambda _: self._begin_turn(),
            TurnEnd: self._end_turn,
            MessageStart: self._begin_model,
            MessageEnd: self._end_message,
            ToolExecutionStart: self._begin_call,
            ToolExecutionUpdate: self._progress,
            ToolExecutionEnd: self._end_call,
            ApprovalRequested: self._ask,
            ApprovalResolved: self._decide,
        }
        self.awaited = ""
        """The id of the message whose first piece has not come yet; empty where none is awaited."""

    def take(self, event: Event) -> None:
        """An event of the agent."""
        taken = self._takes.get(type(event))
        if taken is not None:
            taken(event)

    def first_token(self) -> None:
        """The first piece of the answer has come."""
        self.awaited = ""
        if self._model is not None:
            self._model.first = time.perf_counter() - self._model.began
            self._changed(self._model)

    def sent(self, exchange: Exchange) -> None:
        """A request goes out to the model."""
        row = self._model
        if row is None or self._message != exchange.message_id:
            return
        row.title = exchange.label or row.title
        if row.waited is None:
            row.waited = time.perf_counter() - row.began
        if isinstance(row.body, ModelBody):
            row.body.exchanges.append(exchange)
            self._keeping.request(row, exchange.messages)
        self._changed(row)

    def got_on(self, stage: CallStage) -> None:
        """A tool begins, or a call by hand begins or ends."""
        call = stage.call
        if stage.stage == "begins":
            self._hand[call.id] = self._begin("hand", None, call.name, CallBody(call.id, call.arguments), lane=True)
        elif stage.stage == "runs":
            row = (self._hand if stage.by_hand else self._calls).get(call.id)
            if row is not None:
                row.waited = time.perf_counter() - row.began
                if isinstance(row.body, CallBody):
                    row.body.ran_with = stage.arguments
                self._changed(row)
        elif stage.result is not None and (row := self._hand.pop(call.id, None)) is not None:
            self._settle_call(row, stage.result)

    # Beginnings and ends

    def _begin(
        self,
        kind: RowKind,
        parent: Row | None,
        title: str,
        body: RunBody | ModelBody | CallBody,
        *,
        lane: bool = False,
    ) -> Row:
        row = self._make(kind, parent, title)
        row.body = body
        self._keeping.add(row)
        if lane:
            while row.lane in self._lanes:
                row.lane += 1
            self._lanes.add(row.lane)
        self._changed(row)
        return row

    def _end(self, row: Row, state: RowState, error: str = "") -> None:
        row.duration = time.perf_counter() - row.began
        if row.waited is None and row.kind in {"model", "tool", "hand"}:
            row.waited = row.duration  # it never was let go on
        row.state = state
        row.error = bounded(error, _LONGEST_ERROR) if error else row.error
        if row.kind in {"tool", "hand"}:
            self._lanes.discard(row.lane)
        self._changed(row)

    def _begin_run(self) -> None:
        self._end_run("")
        self._turns = 0
        self._run = self._begin("run", None, "Run", RunBody())

    def _begin_turn(self) -> None:
        self._close_turn("done")
        if self._run is None:  # it began before this listened
            self._begin_run()
        self._turns += 1
        self._turn = self._begin("turn", self._run, f"Turn {self._turns}", RunBody())

    def _end_turn(self, event: TurnEnd) -> None:
        self._close_turn(_state_of(event.message))

    def _close_turn(self, state: RowState) -> None:
        for row in tuple(self._calls.values()):
            self._end(row, "aborted", _INTERRUPTED)
        self._calls.clear()
        if self._model is not None:
            self._end(self._model, "aborted", _INTERRUPTED)
            self._forget_model()
        if self._turn is not None:
            self._end(self._turn, state)
            self._turn = None

    def _end_run(self, reason: EndReason | str) -> None:
        state = _ENDS.get(cast("EndReason", reason), "aborted")
        self._close_turn(state)
        row, self._run = self._run, None
        if row is None:
            return
        if isinstance(row.body, RunBody):
            row.body.reason = reason
        error = {"max_turns": "Limits.max_turns was reached.", "max_cost": "Limits.max_cost was reached."}.get(reason)
        self._end(row, state, error or ("" if reason else _INTERRUPTED))

    # The model

    def _begin_model(self, event: MessageStart) -> None:
        if not isinstance(event.message, AssistantMessage):
            return
        if self._turn is None:  # it began before this listened
            self._begin_turn()
        self._model = self._begin("model", self._turn, "Model", ModelBody())
        self._message = self.awaited = event.message_id

    def _forget_model(self) -> None:
        self._model = None
        self._message = self.awaited = ""

    def _end_message(self, event: MessageEnd) -> None:
        message = event.message
        if isinstance(message, UserMessage):
            self._heard(message)
        row = self._model
        if row is None or event.message_id != self._message or not isinstance(message, AssistantMessage):
            return
        self._forget_model()
        if isinstance(row.body, ModelBody):
            self._answered(row, row.body, message)
        if message.model:
            row.title = f"{message.provider}: {message.model}" if message.provider else message.model
        usage = message.usage
        if usage is not None:
            tokens = Tokens(usage.input_tokens, usage.output_tokens, usage.cache_read_tokens)
            row.add(tokens, None if usage.cost is None else usage.cost.total)
        self._end(row, _state_of(message), message.error_message or "")
        for above in (self._turn, self._run):
            if above is not None:
                if isinstance(above.body, RunBody):
                    above.body.answer = message
                if row.state == "failed":
                    above.error = row.error
                self._changed(above)

    def _answered(self, row: Row, body: ModelBody, message: AssistantMessage) -> None:
        body.answer = message
        # Their messages stand in the body's requests, which share them with others.
        body.exchanges = [_without_messages(exchange) for exchange in body.exchanges]
        first = body.exchanges[body.used].first if body.exchanges else None
        if row.first is None and first is not None:
            row.first = max(0.0, first - row.began)
        self._keeping.grown(row, size_of_answer(body))

    def _heard(self, message: UserMessage) -> None:
        for row in (self._turn, self._run):
            if row is not None and isinstance(row.body, RunBody):
                row.body.said.append(message)
                self._keeping.grown(row, len(message.text))
                self._changed(row)

    # Tools

    def _begin_call(self, event: ToolExecutionStart) -> None:
        known = self._calls.pop(event.tool_call_id, None)
        if known is not None:
            self._end(known, "aborted", _INTERRUPTED)
        row = self._begin("tool", self._turn, event.tool_name, CallBody(event.tool_call_id, event.args), lane=True)
        self._calls[event.tool_call_id] = row

    def _progress(self, event: ToolExecutionUpdate) -> None:
        row = self._calls.get(event.tool_call_id)
        if row is not None and isinstance(row.body, CallBody):
            row.body.updates += 1

    def _end_call(self, event: ToolExecutionEnd) -> None:
        row = self._calls.pop(event.tool_call_id, None)
        if row is not None:
            self._settle_call(row, event.result)

    def _settle_call(self, row: Row, result: ToolResult) -> None:
        body = row.body
        if isinstance(body, CallBody):
            body.result = kept_result(result)
            self._keeping.grown(row, size_of_call(body))
        state: RowState = "failed" if result.is_error else "done"
        if result.is_error and _code(result) == ExecutionAbortedError.code:
            state = "aborted"
        self._end(row, state, one_line(result.text, 1000) if result.is_error else "")

    def _ask(self, event: ApprovalRequested) -> None:
        row = self._calls.get(event.tool_call_id)
        if row is not None and isinstance(row.body, CallBody):
            row.body.asked = event
            self._asked[event.request_id] = row
            self._keeping.grown(row, length_of(event.args))

    def _decide(self, event: ApprovalResolved) -> None:
        row = self._asked.pop(event.request_id, None)
        if row is not None and isinstance(row.body, CallBody):
            row.body.decided = event


def _without_messages(whole: Exchange) -> Exchange:
    return Exchange(
        whole.message_id,
        whole.llm_call,
        whole.label,
        (),
        whole.options,
        whole.at,
        whole.started,
        whole.first,
        whole.ended,
        whole.response,
        whole.pieces,
        whole.answer,
        whole.error,
        whole.wire,
    )


def _state_of(message: AssistantMessage) -> RowState:
    return "aborted" if message.stop_reason == "aborted" else "failed" if message.stop_reason == "error" else "done"


def _code(result: ToolResult) -> object:
    details = result.details
    return cast("Mapping[str, object]", details).get("code") if isinstance(details, Mapping) else None
