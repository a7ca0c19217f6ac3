"""Approval: a hook that asks a person before a tool runs.

``approve()`` is given to an agent as ``before_tool_call``. Each request waits in the agent's
``approvals`` and is answered from the widget, from a cell, or by a function given as ``ask``::

    agent = Agent(tools=[delete_file], before_tool_call=approve())
    ...
    request = agent.approvals.pending[0]
    agent.approvals.resolve(request.request_id, "allow_once")

Nothing ends the wait but an answer or an abort: neither a time-out of the tool nor one of the agent.
A call that was denied is refused without asking, as often as the model makes it with the same
arguments, until the person speaks again.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import json
import threading
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Literal, cast, get_args

from yiemagent_nb.core.approval_words import decision_words, denied_before, edit_note, hint_words
from yiemagent_nb.core.arguments import validate_arguments
from yiemagent_nb.core.errors import InvalidParametersError, YiemAgentError, describe_error
from yiemagent_nb.core.events import ApprovalChoice, ApprovalRequested, ApprovalResolved, Event
from yiemagent_nb.core.hooks import BeforeToolCallContext, BeforeToolCallResult, as_hooks
from yiemagent_nb.core.messages import new_id
from yiemagent_nb.core.signal import AbortSignal
from yiemagent_nb.core.tools import Tool
from yiemagent_nb.core.validation import printable

__all__ = [
    "Approval",
    "ApprovalPolicy",
    "Approvals",
    "Ask",
    "Check",
    "Decision",
    "Subject",
    "approvals_among",
    "approve",
]

Verdict = Literal["ask", "allow", "deny"]
ApprovalPolicy = Callable[[Tool, dict[str, Any]], Verdict] | Collection[str]
"""Which calls to ask for: the names of tools, or a function of the tool and its arguments."""

CHOICES: tuple[ApprovalChoice, ...] = get_args(ApprovalChoice)

LONGEST_ERROR = 300
MOST_REMEMBERED = 1_000
"""How many answers are remembered, to tell a later one what was decided."""


@dataclass(frozen=True, slots=True)
class Decision:
    """A person's answer. ``arguments`` belong to ``allow_edited``, ``reason`` to ``deny``.

    Raises:
        InvalidParametersError: The choice is none of the four, or the edited arguments are missing.
    """

    choice: ApprovalChoice
    reason: str = ""
    arguments: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        """Refuse what is no answer."""
        if self.choice not in CHOICES:
            raise InvalidParametersError(
                f"{self.choice!r} is no approval choice; expected one of {', '.join(CHOICES)}."
            )
        if self.choice == "allow_edited" and not isinstance(self.arguments, Mapping):
            raise InvalidParametersError("allow_edited needs the edited arguments.", "Pass arguments={...}.")


Ask = Callable[[ApprovalRequested], Decision | ApprovalChoice | Awaitable[Decision | ApprovalChoice]]
Check = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""Returns edited arguments as they will be used, or raises ``InvalidParametersError``."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What an approval is about. Nothing of one kind can pass for something of another.

    Args:
        kind: ``tool``, ``function`` for a tool made of a Python function, or what asks by itself,
            such as ``sampling``.
        source: Where it came from, such as a server's name.
        name: Its name there.
        definition: A digest of all that its source says of it.
    """

    kind: str
    source: str
    name: str = ""
    definition: str = ""

    @classmethod
    def of(cls, tool: Tool) -> Subject:
        """A tool as it is defined now: one whose definition changed is another subject."""
        parts = [tool.label, tool.description, tool.input_schema, tool.output_schema, asdict(tool.annotations)]
        definition = json.dumps(parts, sort_keys=True, default=_plain)
        digest = hashlib.sha256(definition.encode("utf-8", "replace")).hexdigest()
        return cls("tool" if tool.function is None else "function", tool.source, tool.original_name, digest)


def _plain(value: object) -> object:
    return dict(cast("Mapping[str, object]", value)) if isinstance(value, Mapping) else repr(value)


@dataclass(frozen=True, slots=True)
class _Waiting:
    request: ApprovalRequested
    answer: Callable[[Decision], None]
    check: Check


class Approvals:
    """The requests that wait for an answer. ``resolve`` may be called from any thread.

    Args:
        emit: Takes the events ``ApprovalRequested`` and ``ApprovalResolved``.
    """

    def __init__(self, emit: Callable[[Event], None]) -> None:
        self._emit = emit
        self._lock = threading.Lock()
        self._waiting: dict[str, _Waiting] = {}
        self._answered: OrderedDict[str, Decision] = OrderedDict()
        self._denied: dict[tuple[Subject, str], str] = {}
        """Calls that a person denied since they last spoke, and why."""
        self._session: set[Subject] = set()
        self._first_asked: dict[Subject, str] = {}
        """The definition of each tool that was asked about, as it was then."""
        self._uses: Counter[Subject] = Counter()
        self._in_run = False

    @property
    def pending(self) -> tuple[ApprovalRequested, ...]:
        """What waits for an answer, oldest first."""
        with self._lock:
            return tuple(waiting.request for waiting in self._waiting.values())

    def allowed_for_session(self, tool: Tool) -> bool:
        """Whether a person allowed this tool, as it is defined now, until ``clear``."""
        return bool(self._session) and Subject.of(tool) in self._session

    def changed(self, tool: Tool) -> bool:
        """Whether a person was asked about this tool when it was defined otherwise."""
        if not self._first_asked:
            return False
        subject = Subject.of(tool)
        return self._first_asked.get(_undefined(subject), subject.definition) != subject.definition

    def use(self, subject: Subject, limit: int) -> bool:
        """Whether what was allowed for the session covers one more use; counts it.

        For what servers ask by themselves: it counts only while a run is active, and ``limit`` times
        in a run. A person who allows it for the session once more allows so many again.
        """
        if not self._in_run or subject not in self._session or self._uses[subject] >= limit:
            return False
        self._uses[subject] += 1
        return True

    def denied(self, tool: Tool, arguments: Mapping[str, Any]) -> str | None:
        """Why a person denied this very call since they last spoke; None where they did not."""
        return self._denied.get(_call_key(tool, arguments)) if self._denied else None

    def deny(self, tool: Tool, arguments: Mapping[str, Any], reason: str) -> None:
        """Remember that a person denied this call, until they speak again."""
        self._denied[_call_key(tool, arguments)] = reason

    def person_spoke(self) -> None:
        """Let what was denied be asked for again."""
        self._denied.clear()

    def run_began(self) -> None:
        """Count anew what is used, and let what was denied be asked for again."""
        self._in_run = True
        self._uses.clear()
        self.person_spoke()

    def run_ended(self) -> None:
        """Let nothing be used until the next run."""
        self._in_run = False

    def clear(self) -> None:
        """Forget what was allowed for the session, though not which definitions were asked about."""
        self._session.clear()
        self.person_spoke()

    def resolve(
        self,
        request_id: str,
        choice: ApprovalChoice,
        reason: str = "",
        arguments: Mapping[str, Any] | None = None,
    ) -> None:
        """Answer a request. The first answer counts.

        Edited arguments are checked here, as the tool checks those of a call; ``prepare_arguments``
        was applied to them before a person saw them, and is not again.

        Args:
            request_id: From ``ApprovalRequested``.
            choice: ``allow_once``, ``allow_session``, ``allow_edited`` or ``deny``.
            reason: Told to the model with ``deny``.
            arguments: What to call the tool with, with ``allow_edited``.

        Raises:
            InvalidParametersError: No such request waits (the error says how it was answered, where
                that is known), the choice is none of these, or the edited arguments are missing or
                do not fit. In the last three cases the request goes on waiting.
            HookError: The tool's ``validate_required_args`` failed; the request goes on waiting.
        """
        decision = Decision(choice, reason, arguments)
        with self._lock:
            waiting = self._waiting.get(request_id)
        if waiting is not None:
            try:
                decision = _checked(decision, waiting.check)
            except InvalidParametersError as error:
                raise InvalidParametersError(error.message, "Change them and answer again.") from error
            with self._lock:  # what is checked may take its time, and another answer may be quicker
                waiting = self._waiting.pop(request_id, None)
                if waiting is not None:
                    self._remember(request_id, decision)
        if waiting is None:
            raise self._not_waiting(request_id)
        waiting.answer(decision)

    def _not_waiting(self, request_id: str) -> InvalidParametersError:
        with self._lock:
            earlier = self._answered.get(request_id)
        if earlier is None:
            return InvalidParametersError(
                f"No request {request_id!r} waits for approval.", "agent.approvals.pending lists those that do."
            )
        return InvalidParametersError(
            f"This request was answered already: {decision_words(earlier.choice, earlier.reason)}.",
            "The first answer counts.",
        )

    def _remember(self, request_id: str, decision: Decision) -> None:
        self._answered[request_id] = replace(decision, arguments={}) if decision.arguments else decision
        if len(self._answered) > MOST_REMEMBERED:
            self._answered.popitem(last=False)

    async def request(
        self,
        subject: Tool | Subject,
        request: ApprovalRequested,
        signal: AbortSignal,
        ask: Ask | None,
        check: Check | None = None,
    ) -> Decision:
        """Ask and wait for the answer, for as long as it takes; an abort answers ``deny``.

        Args:
            subject: What is asked about.
            request: What a person is shown.
            signal: Ends the wait when it is set.
            ask: Answers in code; None waits for ``resolve``.
            check: Checks edited arguments; default: the tool's own check.

        Returns:
            The decision; edited arguments are as ``check`` returned them.

        Raises:
            InvalidParametersError: What ``ask`` returned is no decision, or has arguments that do not fit.
        """
        if check is None:
            check = partial(validate_arguments, subject) if isinstance(subject, Tool) else _as_they_are
        if isinstance(subject, Tool):
            subject = Subject.of(subject)
        self._first_asked.setdefault(_undefined(subject), subject.definition)
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Decision] = loop.create_future()

        def settle(decision: Decision) -> None:
            if not answer.done():
                answer.set_result(decision)

        def wake(decision: Decision) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(settle, decision)

        if ask is None:
            with self._lock:
                self._waiting[request.request_id] = _Waiting(request, wake, check)
        forget = signal.on_abort(lambda: wake(Decision("deny", _why(signal))))
        decision = Decision("deny", "no valid answer came")
        self._emit(request)
        try:
            decision = await answer if ask is None else _checked(await _ask(ask, request), check)
            if decision.choice == "allow_session":
                self._session.add(subject)
                self._uses.pop(subject, None)
        except asyncio.CancelledError:
            decision = Decision("deny", _why(signal))
            raise
        finally:
            forget()
            with self._lock:
                self._waiting.pop(request.request_id, None)
                self._remember(request.request_id, decision)
            self._emit(ApprovalResolved(request.request_id, request.tool_call_id, decision.choice, decision.reason))
        return decision


def _as_they_are(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    return arguments


def _checked(decision: Decision, check: Check) -> Decision:
    """A decision whose edited arguments, if it has some, are fit to be used."""
    if decision.choice != "allow_edited" or decision.arguments is None:
        return decision
    try:
        arguments = check(decision.arguments)
    except YiemAgentError:
        raise
    except Exception as error:  # a tool's own validators may raise anything
        what = printable(describe_error(error))[:LONGEST_ERROR]
        raise InvalidParametersError(f"The tool's own check of these arguments failed with {what}.") from error
    return replace(decision, arguments=arguments)


def _call_key(tool: Tool, arguments: Mapping[str, Any]) -> tuple[Subject, str]:
    return Subject.of(tool), json.dumps(arguments, sort_keys=True, default=_plain)


def _undefined(subject: Subject) -> Subject:
    return replace(subject, definition="")


def _why(signal: AbortSignal) -> str:
    return signal.reason if signal.reason not in ("", "aborted") else "the run was aborted"


async def _ask(ask: Ask, request: ApprovalRequested) -> Decision:
    answer = ask(request)
    if inspect.isawaitable(answer):
        answer = await answer
    decision = Decision(answer) if isinstance(answer, str) else answer
    if not isinstance(decision, Decision):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidParametersError(f"ask returned {answer!r}; expected a Decision or one of {', '.join(CHOICES)}.")
    return decision


class Approval:
    """The hook that ``approve`` makes."""

    __name__ = "approve"

    def __init__(self, policy: ApprovalPolicy | None, ask: Ask | None) -> None:
        self._policy = policy
        self.ask = ask

    def __repr__(self) -> str:
        """The policy alone."""
        return f"approve({self._policy!r})" if self._policy is not None else "approve()"

    @property
    def needs_person(self) -> bool:
        """Whether an answer can only come from outside the run, such as a click in a widget."""
        return self.ask is None

    async def __call__(self, context: BeforeToolCallContext, signal: AbortSignal) -> BeforeToolCallResult | None:
        """Ask where the policy says so, and about what changed; block what was denied."""
        tool = context.tool
        verdict = self._verdict(tool, context.arguments)
        if verdict == "deny":
            return BeforeToolCallResult(block=True, reason="The policy does not allow this call.")
        if verdict == "allow" and not context.approvals.changed(tool):
            return None
        if (why := context.approvals.denied(tool, context.arguments)) is not None:
            return BeforeToolCallResult(block=True, reason=denied_before(why))
        if context.approvals.allowed_for_session(tool):
            return None
        request = ApprovalRequested(
            request_id=new_id("approval"),
            tool_call_id=context.tool_call.id,
            tool_name=tool.name,
            args=context.arguments,
            source=tool.source,
            description=tool.description,
            label=tool.label,
            hints=hint_words(tool.annotations),
        )
        decision = await context.approvals.request(tool, request, signal, self.ask)
        if decision.choice == "deny" and not signal.aborted:
            context.approvals.deny(tool, context.arguments, decision.reason)
        return _as_answer(decision, context.arguments)

    def _verdict(self, tool: Tool, arguments: dict[str, Any]) -> Verdict:
        if self._policy is None:
            return "allow" if tool.annotations.read_only else "ask"
        if callable(self._policy):
            verdict = cast("Any", self._policy(tool, arguments))
            if verdict not in get_args(Verdict):
                raise InvalidParametersError(
                    f"The approval policy returned {verdict!r} for {tool.name}; expected 'ask', 'allow' or 'deny'."
                )
            return verdict
        return "ask" if tool.name in self._policy else "allow"


def _as_answer(decision: Decision, arguments: Mapping[str, Any]) -> BeforeToolCallResult | None:
    """A decision about a call with these arguments, as the lifecycle takes it."""
    if decision.choice == "deny":
        reason = f": {decision.reason}" if decision.reason else "."
        return BeforeToolCallResult(block=True, reason=f"The person denied this call{reason}")
    if decision.arguments is None or decision.choice != "allow_edited":
        return None
    return BeforeToolCallResult(arguments=decision.arguments, note=edit_note(arguments, decision.arguments))


def approvals_among(hooks: object) -> list[Approval]:
    """The approvals among ``before_tool_call`` hooks, those within a wrapper (``__wrapped__``) too."""
    several = as_hooks("before_tool_call", hooks)
    inner = (hook if isinstance(hook, Approval) else getattr(hook, "__wrapped__", None) for hook in several)
    return [hook for hook in inner if isinstance(hook, Approval)]


def approve(policy: ApprovalPolicy | None = None, *, ask: Ask | None = None) -> Approval:
    """A ``before_tool_call`` hook that asks a person.

    The model is told of a denial with its reason, and behind the call's result of arguments that were
    edited. A call that was denied is not asked about again until the person speaks again: in a new
    run, or by a message that joins the one that goes on. The same tool with other arguments is.

    A tool that was asked about and whose definition then changes is asked about again, whatever the
    policy allows, until its new definition is allowed for the session. That a tool is read-only is
    its server's own claim: name the tools, or give a function, where the server is not to be trusted.

    Args:
        policy: Which calls to ask for: a collection of tool names, or a function
            ``(tool, arguments) -> "ask" | "allow" | "deny"``. Default: all tools that are not
            marked read-only.
        ask: Answers in code: ``(request) -> Decision | choice``, sync or async. Without it the
            request waits in ``agent.approvals`` for a widget or a cell. It is asked once: an answer
            that is none, or edited arguments that do not fit, become the call's error result, and
            the call does not run. While a run is active it is also asked what MCP servers ask the
            agent's model (sampling): then ``tool_name`` is ``sampling/createMessage``, which no
            tool is called, and ``source`` the server's name.
    """
    if isinstance(policy, str):
        policy = (policy,)
    return Approval(policy, ask)
