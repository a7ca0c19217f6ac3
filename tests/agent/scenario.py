"""Scripts of random examples: what a model says, what hooks answer, and what people do meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from hypothesis import strategies as st

from yiemagent_nb.core.errors import ServerError
from yiemagent_nb.core.queues import QueueMode
from yiemagent_nb.core.tools import ExecutionMode

__all__ = [
    "SCRIPTS",
    "Action",
    "Answer",
    "CallPiece",
    "Ending",
    "Entry",
    "HookAnswer",
    "Script",
    "Shape",
    "fail",
    "whole_answer",
    "wire_pieces",
]

Action = Literal[
    "", "abort", "steer", "follow_up", "say_all", "swap", "fewer_tools", "all_tools", "look", "give_up", "kill"
]
Ending = Literal[
    "", "stop", "length", "error", "crash", "exit", "interrupt", "cancelled", "hang", "stubborn", "empty", "rubbish"
]
Shape = Literal["async generator", "coroutine", "function", "generator", "described"]
HookAnswer = Literal["", "pass", "block", "change", "wrong", "crash", "exit", "interrupt", "hang", "rubbish"]
Entry = Literal["prompt", "steer", "follow_up", "continue"]

TOOL_NAMES = (
    "works",
    "fails",
    "hangs",
    "stubborn",
    "exits",
    "interrupts",
    "cancels_itself",
    "works_in_a_thread",
    "fails_in_a_thread",
    "hangs_in_a_thread",
    "ends_the_run",
    "works_in_turn",
    "too_slow",
    "reports",
    "reports_late",
    "gives_rubbish",
)


@dataclass(frozen=True)
class CallPiece:
    """A call that the model writes, in one piece or in two."""

    name: str
    arguments: str
    call_id: str
    pieces: int


@dataclass(frozen=True)
class Answer:
    """What a model says to one request."""

    pieces: Sequence[str | CallPiece | tuple[str]]
    ending: Ending


@dataclass(frozen=True)
class Script:
    """One example."""

    entries: Sequence[Entry]
    answers: Sequence[Answer]
    actions: Sequence[Action]
    shape: Shape
    tool_execution: ExecutionMode
    steering_mode: QueueMode
    follow_up_mode: QueueMode
    before: Sequence[HookAnswer]
    after: Sequence[HookAnswer]
    prepare: Sequence[HookAnswer]
    noisy: bool


TEXTS = st.sampled_from(["a", "Hello", " ", "\n", "<", "é", "\ud83d", "\ude00", "\ud800", "x" * 50])
REASONING = st.tuples(TEXTS)
RIGHT = ("{}", '{"x": 1}', "null", "", '"{}"')
WRONG = ('{"x": "one"}', '{"x": ', "[1]", '{"x": NaN}')
FINE_TOOLS = ("works", "works", "works_in_a_thread", "works_in_turn", "reports", "reports_late", "ends_the_run")

FINE_CALLS = st.builds(
    CallPiece,
    name=st.sampled_from(FINE_TOOLS),
    arguments=st.sampled_from(RIGHT),
    call_id=st.sampled_from(["", "0", "1", "2"]),
    pieces=st.integers(1, 2),
)
ANY_CALLS = st.builds(
    CallPiece,
    name=st.sampled_from([*TOOL_NAMES, *TOOL_NAMES, "unknown", "", "no name at all"]),
    arguments=st.sampled_from([*RIGHT, *RIGHT, *RIGHT, *WRONG]),
    call_id=st.sampled_from(["", "0", "1", "2"]),
    pieces=st.integers(1, 2),
)
ENDINGS = st.sampled_from([*["", "stop", ""] * 5, "length", *get_args(Ending)])
ANSWERS = st.one_of(
    st.builds(Answer, pieces=st.lists(FINE_CALLS, min_size=1, max_size=4), ending=ENDINGS),
    st.builds(Answer, pieces=st.lists(st.one_of(FINE_CALLS, ANY_CALLS, TEXTS), min_size=1, max_size=5), ending=ENDINGS),
    st.builds(
        Answer,
        pieces=st.lists(st.one_of(TEXTS, REASONING, ANY_CALLS), max_size=5),
        ending=st.sampled_from(get_args(Ending)),
    ),
)
HOOKS = st.lists(st.sampled_from(["", "", "", "", "pass", "pass", *get_args(HookAnswer)]), max_size=4)
SCRIPTS = st.builds(
    Script,
    entries=st.lists(st.sampled_from(["prompt", *get_args(Entry)]), min_size=1, max_size=3),
    answers=st.lists(ANSWERS, min_size=3, max_size=8),
    actions=st.lists(st.sampled_from([*[""] * 12, *get_args(Action)]), min_size=4, max_size=24),
    shape=st.sampled_from(["async generator", "async generator", *get_args(Shape)]),
    tool_execution=st.sampled_from(["parallel", "parallel", "sequential"]),
    steering_mode=st.sampled_from(get_args(QueueMode)),
    follow_up_mode=st.sampled_from(get_args(QueueMode)),
    before=HOOKS,
    after=HOOKS,
    prepare=st.lists(st.sampled_from([*[""] * 6, "crash", "hang", "rubbish", "interrupt", "exit"]), max_size=2),
    noisy=st.booleans(),
)
"""Most of what happens in an example goes well, so that it reaches what does not."""


def wire_pieces(answer: Answer) -> Iterator[object]:
    """The pieces of an answer as a server would stream them."""
    for index, piece in enumerate(answer.pieces):
        if isinstance(piece, str):
            yield piece
        elif isinstance(piece, tuple):
            yield {"reasoning": piece[0]}
        else:
            half = len(piece.arguments) // piece.pieces
            head = {"id": piece.call_id, "function": {"name": piece.name, "arguments": piece.arguments[:half]}}
            yield {"tool_calls": [{"index": index, **head}]}
            if piece.pieces > 1:
                yield {"tool_calls": [{"index": index, "function": {"arguments": piece.arguments[half:]}}]}
    if answer.ending in ("stop", "length"):
        yield {"finish_reason": answer.ending}
    elif answer.ending == "rubbish":
        yield 17
    elif not answer.pieces and answer.ending != "empty":
        yield {"content": ""}


def whole_answer(answer: Answer) -> object:
    """An answer in one piece."""
    if answer.ending == "rubbish":
        return 17
    calls = [
        {"id": piece.call_id, "function": {"name": piece.name, "arguments": piece.arguments}}
        for piece in answer.pieces
        if isinstance(piece, CallPiece)
    ]
    text = "".join(piece for piece in answer.pieces if isinstance(piece, str))
    return {
        "content": text,
        "tool_calls": calls,
        "finish_reason": answer.ending if answer.ending == "length" else "stop",
    }


def fail(how: str) -> None:
    """Raise what a script says, or nothing."""
    errors: Mapping[str, BaseException] = {
        "error": ServerError("the server fell over"),
        "crash": ZeroDivisionError("crashed"),
        "exit": SystemExit(1),
        "interrupt": KeyboardInterrupt(),
        "cancelled": asyncio.CancelledError(),
    }
    if how in errors:
        raise errors[how]
