"""Questions that a tool's server asks a person, such as MCP's elicitation.

Each waits in the agent's ``questions`` and is answered from the widget or from a cell::

    question = agent.questions.pending[0]
    agent.questions.answer(question.request_id, {"city": "Lisbon"})
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from yiemagent_nb.core.errors import InvalidParametersError
from yiemagent_nb.core.events import Event, QuestionAction, QuestionAnswered, QuestionAsked
from yiemagent_nb.core.json_schema import compile_schema
from yiemagent_nb.core.signal import AbortSignal

__all__ = ["Answer", "Questions", "ReadAnswer"]

ReadAnswer = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""Reads what a person says into what goes to the server; raises ``InvalidParametersError`` where it does not fit."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a person said. ``content`` belongs to ``accept``."""

    action: QuestionAction
    content: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class _Waiting:
    question: QuestionAsked
    wake: Callable[[Answer], None]
    read: ReadAnswer


def _fitting(schema: Mapping[str, Any] | None) -> ReadAnswer:
    def read(content: Mapping[str, Any]) -> Mapping[str, Any]:
        problems = [] if schema is None else compile_schema(schema)(content)
        if problems:
            raise InvalidParametersError(f"The answer does not fit: {'; '.join(problems)}.")
        return content

    return read


class Questions:
    """The questions that wait for an answer. They may be answered from any thread.

    Args:
        emit: Takes the events ``QuestionAsked`` and ``QuestionAnswered``.
    """

    def __init__(self, emit: Callable[[Event], None]) -> None:
        self._emit = emit
        self._lock = threading.Lock()
        self._waiting: dict[str, _Waiting] = {}

    @property
    def pending(self) -> tuple[QuestionAsked, ...]:
        """What waits for an answer, oldest first."""
        with self._lock:
            return tuple(waiting.question for waiting in self._waiting.values())

    def answer(self, request_id: str, content: Mapping[str, Any] | None = None) -> None:
        """Answer a question.

        Args:
            request_id: From ``QuestionAsked``.
            content: Values by the names of the fields that the question's schema has.

        Raises:
            InvalidParametersError: No such question waits, or the values do not fit; it waits on then.
        """
        with self._lock:
            waiting = self._waiting.get(request_id)
        said = dict(content or {})
        self._settle(request_id, Answer("accept", said if waiting is None else dict(waiting.read(said))))

    def decline(self, request_id: str) -> None:
        """Say that the question will not be answered.

        Raises:
            InvalidParametersError: No such question waits.
        """
        self._settle(request_id, Answer("decline"))

    def cancel(self, request_id: str) -> None:
        """Put the question away without a word on it.

        Raises:
            InvalidParametersError: No such question waits.
        """
        self._settle(request_id, Answer("cancel"))

    def _settle(self, request_id: str, answer: Answer) -> None:
        with self._lock:
            waiting = self._waiting.pop(request_id, None)
        if waiting is None:
            raise InvalidParametersError(
                f"No question {request_id!r} waits for an answer.", "It was answered, or its call ended."
            )
        waiting.wake(answer)

    async def ask(self, question: QuestionAsked, signal: AbortSignal, read: ReadAnswer | None = None) -> Answer:
        """Ask and wait for the answer; an abort answers ``cancel``.

        Args:
            question: What is asked.
            signal: Ends the wait when it is set.
            read: Reads the answer. Default: it is taken as it is, if it fits the question's schema.
        """
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[Answer] = loop.create_future()

        def settle(answer: Answer) -> None:
            if not answered.done():
                answered.set_result(answer)

        def wake(answer: Answer) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(settle, answer)

        def withdraw() -> None:
            with self._lock:
                self._waiting.pop(question.request_id, None)
            wake(Answer("cancel"))

        with self._lock:
            self._waiting[question.request_id] = _Waiting(question, wake, read or _fitting(question.schema))
        forget = signal.on_abort(withdraw)
        answer = Answer("cancel")
        self._emit(question)
        try:
            answer = await answered
        finally:
            forget()
            with self._lock:
                self._waiting.pop(question.request_id, None)
            self._emit(QuestionAnswered(question.request_id, answer.action))
        return answer
