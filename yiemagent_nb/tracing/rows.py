"""Row: one line of an agent's timeline."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from yiemagent_nb.core.events import ApprovalRequested, ApprovalResolved
from yiemagent_nb.core.exchange import Exchange
from yiemagent_nb.core.json_values import JsonMapping
from yiemagent_nb.core.messages import AssistantMessage, UserMessage
from yiemagent_nb.core.results import ToolResult
from yiemagent_nb.core.validation import shorten
from yiemagent_nb.tracing.masking import bounded, masked_beginning, masked_values
from yiemagent_nb.tracing.requests import StoredRequest

__all__ = ["CallBody", "ModelBody", "Row", "RowKind", "RowState", "RunBody", "Tokens", "one_line"]

RowKind = Literal["run", "turn", "model", "tool", "hand"]
RowState = Literal["running", "done", "failed", "aborted"]


_SUMMARY = 120
_ARGUMENTS, _ARGUMENT = 4, 40
_BEGINNING = 200
"""Characters of an argument that are looked at."""
_ERROR_KEPT = 500
"""Characters of an error that stay when the rest of a row is let go."""


class Tokens(NamedTuple):
    """Tokens of one answer, or of several: ``input`` with those that were read from a cache, ``cached``."""

    input: int
    output: int
    cached: int


@dataclass(slots=True, eq=False)
class ModelBody:
    """What was sent to the model, and what came back.

    Args:
        exchanges: One; several where a hook around the backend asks it more than once, none where
            nothing was sent. Their messages stand in ``requests``.
        requests: What each of them was given.
        answer: The message that was made of it; None before it is there.
    """

    exchanges: list[Exchange] = field(default_factory=list[Exchange])
    requests: list[StoredRequest] = field(default_factory=list[StoredRequest])
    answer: AssistantMessage | None = None
    size: int = 0

    @property
    def used(self) -> int:
        """Which of them the message was read from; -1, the last one, where that is not known."""
        return next((at for at, each in enumerate(self.exchanges) if each.answer is not None), -1)

    @property
    def summary(self) -> str:
        """The answer."""
        return "" if self.answer is None else _words(self.answer)


@dataclass(slots=True, eq=False)
class CallBody:
    """A call of a tool.

    Args:
        call_id: Its id.
        arguments: As the model gave them.
        ran_with: As the tool was given them, validated and perhaps changed by hooks; None where it did
            not run, or nobody told.
        result: What it gave; None before it is there. Its ``details`` are left out where they are no JSON.
        updates: How often it reported progress.
        asked: That a person was asked for approval.
        decided: What came of it.
    """

    call_id: str
    arguments: JsonMapping
    ran_with: JsonMapping | None = None
    result: ToolResult | None = None
    updates: int = 0
    asked: ApprovalRequested | None = None
    decided: ApprovalResolved | None = None
    size: int = 0

    @property
    def summary(self) -> str:
        """The arguments and the result."""
        given = ", ".join(
            f"{one_line(name, _ARGUMENT)}={shorten(masked_values(value, _BEGINNING), _ARGUMENT)}"
            for name, value in [*self.arguments.items()][:_ARGUMENTS]
        )
        if self.result is None:
            return one_line(given)
        text = one_line(self.result.text) or ("(no text)" if self.result.content else "(nothing)")
        return one_line(f"{given} → {text}" if given else text)


@dataclass(slots=True, eq=False)
class RunBody:
    """A run, or a turn of it: what people said in it, the last answer, and in a run how it ended."""

    said: list[UserMessage] = field(default_factory=list[UserMessage])
    answer: AssistantMessage | None = None
    reason: str = ""
    size: int = 0

    @property
    def summary(self) -> str:
        """What people said first, else what was answered."""
        if self.said:
            return one_line(self.said[0].text) or "(an image)"
        return "" if self.answer is None else _words(self.answer)


@dataclass(slots=True, eq=False)
class Row:
    """One line of the timeline. It changes until it has ended.

    Args:
        number: From 0 in the order in which they began; never used twice.
        kind: What it is of; ``hand`` is a call of a tool by hand.
        parent: The row that it is a part of.
        title: The tool, the backend, …
        began: When, by ``time.perf_counter``.
        started: The same in seconds since 1970. It never goes back from one row to the next.
        waited: Seconds until it was let go on (hooks, an approval, a free place); None while it waits.
        first: Seconds until the first token; None where there is none yet.
        duration: Seconds until its end; None while it goes on.
        state: How it stands.
        tokens: Those of the answer; of a turn or a run, of all its answers.
        cost: US dollars, as far as prices are known.
        lane: Which of those that go on at once, from 0.
        error: What went wrong, in words.
        body: What it held; None where that was let go, since the trace holds no more.
    """

    number: int
    kind: RowKind
    parent: Row | None = field(repr=False)
    title: str
    began: float = field(repr=False)
    started: float
    waited: float | None = None
    first: float | None = None
    duration: float | None = None
    state: RowState = "running"
    tokens: Tokens | None = None
    cost: float | None = None
    lane: int = 0
    error: str = ""
    body: ModelBody | CallBody | RunBody | None = field(default=None, repr=False)
    _summary: str | None = field(default=None, repr=False)

    @property
    def summary(self) -> str:
        """What was said, answered, called or given, in one line."""
        if self._summary is not None:
            return self._summary
        summary = "" if self.body is None else self.body.summary
        if self.duration is not None:
            self._summary = summary
        return summary

    def let_go(self) -> None:
        """Forget what it held, but not the line about it."""
        self._summary = self.summary
        self.error = bounded(self.error, _ERROR_KEPT)
        self.body = None

    @property
    def model(self) -> ModelBody:
        """What a model call held; empty where that was let go."""
        return self.body if isinstance(self.body, ModelBody) else ModelBody()

    def add(self, tokens: Tokens | None, cost: float | None) -> None:
        """Count an answer, here and in all that this is a part of."""
        row: Row | None = self
        while row is not None:
            if tokens is not None:
                row.tokens = tokens if row.tokens is None else Tokens(*map(sum, zip(row.tokens, tokens, strict=True)))
            if cost is not None:
                row.cost = (row.cost or 0.0) + cost
            row = row.parent


def one_line(text: str, limit: int = _SUMMARY) -> str:
    """The beginning of a text as one line, without keys."""
    whole = len(text) <= 4 * limit
    line = " ".join(masked_beginning(text, 4 * limit).split())
    return line if len(line) <= limit and whole else f"{line[: limit - 1]}…"


def _words(message: AssistantMessage) -> str:
    """An answer in one line: its text, else its calls."""
    text = one_line(message.text)
    if message.error_message and not text:
        return one_line(message.error_message)
    calls = ", ".join(one_line(call.name, 40) for call in message.tool_calls[:5])
    return f"{text} → {calls}" if text and calls else text or calls
