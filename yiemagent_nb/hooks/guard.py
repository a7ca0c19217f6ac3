"""GuardedHook: a hook that a person wrote in the editor, so that nothing it does stops the run.

Where it raises, returns what is no answer, or does not return, this is reported with the line in its
code, and the run goes on: a call does not run without its ``before_tool_call``, and gives no result
without its ``after_tool_call``, but the model reads an error that says why; for the other three the run
does what it would do without the hook, or ends, as the person chose.
"""

from __future__ import annotations

import inspect
from asyncio import CancelledError
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, aclosing
from dataclasses import dataclass, replace
from typing import Any, cast

from yiemagent_nb.core.approval import Approvals, Ask, Check, Decision, Subject
from yiemagent_nb.core.concurrency import Interrupted
from yiemagent_nb.core.errors import HookError, YiemAgentError, describe_error
from yiemagent_nb.core.events import ApprovalRequested
from yiemagent_nb.core.execution import is_async_callable
from yiemagent_nb.core.hooks import AgentContext, BeforeToolCallContext, BeforeToolCallResult
from yiemagent_nb.core.lifecycle import error_result
from yiemagent_nb.core.reading.assemble import Assembler
from yiemagent_nb.core.request import RequestBuilder
from yiemagent_nb.core.signal import AbortSignal
from yiemagent_nb.core.tools import Tool
from yiemagent_nb.hooks.answers import BackendAnswers, Pieces
from yiemagent_nb.hooks.failures import Failure
from yiemagent_nb.hooks.kinds import HookKind, OnError
from yiemagent_nb.hooks.limited import (
    BLOCKED,
    BLOCKS_HINT,
    LONGEST_MESSAGE,
    LimitedCall,
    TookTooLongError,
    line_of,
)
from yiemagent_nb.hooks.static import is_a
from yiemagent_nb.hooks.texts import error_text, masked

__all__ = ["DEFAULT_SECONDS", "GuardedHook", "HookSource", "NoAnswerError", "explain", "reading"]

DEFAULT_SECONDS = 10.0

_DOES_WITHOUT = {
    "prepare_context": "Everything was sent, as without this hook.",
    "format_messages": "The messages were written as without this hook.",
    "around_llm_call": "The model answered as without this hook.",
    "before_tool_call": "The call did not run; the model reads why.",
    "after_tool_call": "The result was kept back; the model reads why.",
}


class NoAnswerError(Exception):
    """A hook returned what is no answer."""


@dataclass(frozen=True, slots=True)
class HookSource:
    """Where a hook's code comes from.

    Args:
        code: Its text.
        filename: Its name, as it stands in tracebacks.
        version: Its number in the editor.
    """

    code: str
    filename: str
    version: int


class GuardedHook:
    """A hook of the editor.

    Args:
        kind: Which hook it is.
        function: What the person wrote.
        source: Where it stands.
        report: Takes what it does wrong. From any thread; it must not raise.
        provider: Whom requests go to, for ``format_messages``.
        on_error: Whether the run does without it when it fails, or ends.
        seconds: How long it may take, without the time in which a person is asked, or the model.
    """

    def __init__(
        self,
        kind: HookKind,
        function: Callable[..., Any],
        source: HookSource,
        *,
        report: Callable[[Failure], None],
        provider: Callable[[], str] = str,
        on_error: OnError = "go_on",
        seconds: float = DEFAULT_SECONDS,
    ) -> None:
        self.__name__ = kind.name
        self.kind = kind
        self.function = self.__wrapped__ = function  # by the latter it is seen that a person is asked
        self.source = source
        self.on_error: OnError = on_error
        self._report = report
        self._provider = provider
        self._seconds = seconds
        self._builder = RequestBuilder()

    def __repr__(self) -> str:
        """Its name and version."""
        return f"<{self.kind.name}, version {self.source.version} of the hook editor>"

    async def __call__(self, *arguments: Any) -> Any:
        """Ask the hook; see the module's docstring."""
        call = LimitedCall(self._seconds, self.source.filename)
        answers: BackendAnswers | None = None
        offered = arguments
        if self.kind.name == "around_llm_call":
            answers = BackendAnswers(arguments[0], call.pause)
            offered = (answers.call, *arguments[1:])
        elif self.kind.name == "before_tool_call":
            offered = (_without_haste(arguments[0], call.pause), *arguments[1:])
        try:
            answer = await call.run(reading(self.kind, self.function, arguments, answers), *offered)
        except (CancelledError, Interrupted):
            raise
        except BaseException as error:
            if _is_interrupt(error) or (answers is not None and answers.raised(error)):
                raise
            return await self._failed(error, arguments, answers, call)
        self._tell_blocked(call)
        return answer if answers is None else self._passed_on(answer, arguments, answers)

    async def _failed(
        self, error: BaseException, arguments: tuple[Any, ...], answers: BackendAnswers | None, call: LimitedCall
    ) -> Any:
        """Report it, and give what the run goes on with."""
        failure = self._tell(error, call)
        match self.kind.name:
            case "before_tool_call":
                return BeforeToolCallResult(block=True, reason=str(failure))
            case "after_tool_call":
                return error_result(failure)
            case _ if self._ends:
                raise failure from error
            case "prepare_context":
                (state,) = arguments
                return AgentContext(state.system_prompt, state.messages, state.tools)
            case "format_messages":
                (context,) = arguments
                return self._builder.build(context.system_prompt, context.messages, self._provider())
            case "around_llm_call":
                return await cast("BackendAnswers", answers).instead(*arguments[1:])

    @property
    def _ends(self) -> bool:
        return self.on_error == "end" and not self.kind.several

    @property
    def _first_line(self) -> int | None:
        """Where the hook's function begins, if that is in its code."""
        code = getattr(self.function, "__code__", None)
        return code.co_firstlineno if code is not None and code.co_filename == self.source.filename else None

    def _tell_blocked(self, call: LimitedCall) -> None:
        """Report that an async hook held up the event loop, though it came to an end."""
        if call.blocked is not None:
            line = call.blocked[0] or self._first_line
            kind = self.kind.name
            self._report(Failure(kind, self.source.version, line, BLOCKED, BLOCKS_HINT, "Its answer was used."))

    def _tell(self, error: BaseException, call: LimitedCall, *, cut_short: bool = False) -> HookError:
        """Report a failure; returns it as an error that a run, or the model, is told."""
        kind = self.kind
        ends = self._ends or cut_short
        action = "The run ended with this error." if ends else _DOES_WITHOUT[kind.name]
        message, hint = explain(error, kind, call)
        line = line_of(error, self.source.filename) or self._first_line
        self._report(Failure(kind.name, self.source.version, line, message, hint, action))
        where = "" if line is None else f", line {line}"
        return HookError(
            f"The hook {kind.name} (version {self.source.version} of the editor{where}) failed: {message}",
            "The call did not go on." if kind.several else "Change it in the hook editor, or revert it.",
        )

    def _passed_on(self, answer: Any, arguments: tuple[Any, ...], answers: BackendAnswers) -> Any:
        """An answer of ``around_llm_call``, which may yet come in pieces."""
        if isinstance(answer, Pieces) and not answer.taken and answers.gave(answer):
            return answer.source
        if isinstance(answer, AsyncIterable | Iterator):
            return self._pieces(answer, arguments, answers)
        return answer

    async def _pieces(self, answer: Any, arguments: tuple[Any, ...], answers: BackendAnswers) -> AsyncGenerator[Any]:
        """The pieces that a hook makes, and those of the backend from where the hook fails."""
        call = LimitedCall(self._seconds, self.source.filename)
        answers.pause = call.pause
        assembler = Assembler()
        count = 0
        try:
            async with aclosing(call.iterate(answer)) as pieces:
                async for piece in pieces:
                    _check_piece(assembler, piece, answers)
                    count += 1
                    yield piece
            _require_answer(count, answers)
            self._tell_blocked(call)
        except (CancelledError, GeneratorExit, Interrupted):
            raise
        except BaseException as error:
            if _is_interrupt(error) or answers.raised(error):
                raise
            newest = answers.newest_pieces
            cut_short = bool(count) and newest is None
            failure = self._tell(error, call, cut_short=cut_short)
            if self._ends or cut_short:
                raise failure from error
            # A hook that failed with a piece in hand did not pass that on.
            begin = max(count, len(newest.taken) - 1) if count and newest is not None else 0
            async for piece in _as_pieces(await answers.instead(*arguments[1:], begin=begin)):
                yield piece
        finally:
            for given in answers.given:
                if isinstance(given, Pieces):
                    await given.close()


def reading(
    kind: HookKind, function: Callable[..., Any], arguments: tuple[Any, ...], answers: BackendAnswers | None = None
) -> Callable[..., Any]:
    """A function, as async as the hook, that calls it and reads its answer.

    What reads an answer looks at a person's own objects, so that it has to be limited like the hook.
    It raises ``NoAnswerError`` where there is none.
    """

    def read(answer: Any) -> Any:
        if answers is not None and answers.gave(answer):
            return answer
        try:
            return kind.read(arguments, answer)
        except Exception as error:
            own = is_a(error, YiemAgentError)
            what = cast("YiemAgentError", error).message if own else error_text(error, LONGEST_MESSAGE)
            raise NoAnswerError(f"{what[:1].upper()}{what[1:].rstrip('.')}.") from error

    def call(*offered: Any) -> Any:
        answer = function(*offered)
        return read_later(answer) if inspect.isawaitable(answer) else read(answer)

    async def read_later(answer: Awaitable[Any]) -> Any:
        return read(await answer)

    async def call_async(*offered: Any) -> Any:
        answer = function(*offered)
        return read(await answer if inspect.isawaitable(answer) else answer)

    return call_async if is_async_callable(function) else call


def explain(error: BaseException, kind: HookKind, call: LimitedCall) -> tuple[str, str]:
    """What happened in a call, and what to do next, without keys. No code of the error runs."""
    if type(error) is NoAnswerError:
        return masked(str(error), LONGEST_MESSAGE), f"Expected {kind.wanted}."
    if type(error) is TookTooLongError:
        message = f"It did not return in time, and was ended after {error.seconds:g} s."
        if call.blocked is not None:
            return message, BLOCKS_HINT
        return message, "The time in which a person or the model is asked does not count."
    hint = "Names are looked up in the notebook: define it there, or in this code." if is_a(error, NameError) else ""
    return f"It raised {call.describe(error).rstrip('.')}.", hint


def _is_interrupt(error: BaseException) -> bool:
    """Whether a person interrupted the kernel; a hook in a thread hears nothing of that."""
    return is_a(error, KeyboardInterrupt, GeneratorExit)


def _check_piece(assembler: Assembler, piece: object, answers: BackendAnswers) -> None:
    newest = answers.newest_pieces
    own = newest is not None and bool(newest.taken) and piece is newest.taken[-1]
    try:
        assembler.feed(piece)
    except Exception as error:
        if own:
            raise
        raise NoAnswerError(f"A piece of its answer cannot be read: {describe_error(error)}") from error


def _require_answer(count: int, answers: BackendAnswers) -> None:
    if not count and not answers.given:
        raise NoAnswerError("It gave no answer.")


async def _as_pieces(answer: Any) -> AsyncGenerator[Any]:
    if isinstance(answer, AsyncIterable):
        async for piece in cast("AsyncIterable[Any]", answer):
            yield piece
    else:
        yield answer


def _without_haste(
    context: BeforeToolCallContext, pause: Callable[[], AbstractContextManager[None]]
) -> BeforeToolCallContext:
    return replace(context, approvals=_PausingApprovals(context.approvals, pause))


class _PausingApprovals(Approvals):
    """The agent's approvals, sharing all that they know; a person who is asked may take their time."""

    __slots__ = ("_pause",)

    def __init__(self, approvals: Approvals, pause: Callable[[], AbstractContextManager[None]]) -> None:
        self.__dict__ = vars(approvals)
        self._pause = pause

    async def request(
        self,
        subject: Tool | Subject,
        request: ApprovalRequested,
        signal: AbortSignal,
        ask: Ask | None,
        check: Check | None = None,
    ) -> Decision:
        with self._pause():
            return await super().request(subject, request, signal, ask, check)
