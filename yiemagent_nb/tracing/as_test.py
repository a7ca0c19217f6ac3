"""A recorded exchange, or a run, as the text of a test."""

from __future__ import annotations

from typing import TYPE_CHECKING

from yiemagent_nb.core.messages import dump_message
from yiemagent_nb.core.redaction import mask_keys
from yiemagent_nb.tracing.literals import lines_of, literal
from yiemagent_nb.tracing.recorded import RecordedTurn, recorded_of
from yiemagent_nb.tracing.rows import Row

if TYPE_CHECKING:
    from yiemagent_nb.tracing.recorder import TraceRecorder

__all__ = ["test_of"]

_HEAD = '''\
"""{what}, recorded. It runs offline.

It fails when something else is sent to the model, or something else is read of its answers.{left_out}
"""

import asyncio
import json

from yiemagent_nb import Agent, BackendError, Limits, Tool, ToolResult, load_message
from yiemagent_nb.testing import Scripted

SYSTEM_PROMPT = {system_prompt}

HISTORY = {history}

OPTIONS = {options}

TURNS = [
{turns}]
"""Of each request: how many messages are those of the request before, and the others; the tools that were
offered; what the backend gave; what was read of it; other tools that it called; the results of its calls; what
people said meanwhile."""
'''

_TAIL = '''

class Recorded(Scripted):
    provider = {provider}


def backend_gives(number):
    turn = TURNS[number]

    async def pieces():
        for piece in turn["pieces"]:
            yield piece
        if turn["ended"] == "error":
            raise BackendError(turn["error"])
        if turn["ended"] == "aborted":
            agent.abort()
            await asyncio.Event().wait()

    def answer(messages):
        for message in turn["said"]:
            agent.steer(load_message(message))
        agent.set_tools([*tools_of(number), *tools_that_came(number)])
        return pieces() if turn["whole"] is None else turn["whole"]

    return answer


def stand_ins(offered):
    """Tools whose calls give what they gave."""

    def stand_in(call_id, arguments, signal, on_update):
        answer = next(message for message in reversed(agent.messages) if getattr(message, "tool_calls", ()))
        place = [call.id for call in answer.tool_calls].index(call_id)
        results = TURNS[len(backend.requests) - 1]["results"]
        if {aborts} and len(backend.requests) == len(TURNS):
            agent.abort()
        result = results[place] if place < len(results) else None
        return ToolResult("(it did not run)", is_error=True) if result is None else ToolResult.model_validate(result)

    async def run(*call):
        return stand_in(*call)

    return [
        Tool(
            name=tool["name"],
            description=tool["description"],
            input_schema=tool["parameters"],
            execute=run,
            validate_required_args=lambda _: None,
            validator=dict,
        )
        for tool in offered
    ]


def tools_of(number):
    """The tools that were offered."""
    return stand_ins([tool["function"] for tool in TOOLS[TURNS[number]["tools"]]])


def tools_that_came(number):
    """Others that were called."""
    names = TURNS[number]["called_too"]
    return stand_ins([{{"name": name, "description": "(not offered)", "parameters": {{}}}} for name in names])


def numbered(messages):
    """Messages in which the ids of calls are numbers: where a model gives none, they are made anew each time."""
    ids = {{}}
    plain = json.loads(json.dumps(list(messages)))
    for message in plain:
        for call in message.get("tool_calls") or ():
            call["id"] = ids.setdefault(call["id"], f"call {{len(ids)}}")
        if "tool_call_id" in message:
            message["tool_call_id"] = ids.get(message["tool_call_id"], message["tool_call_id"])
    return plain


def all_sent():
    """The messages of each request, whole."""
    requests = []
    messages = []
    for turn in TURNS:
        messages = [*messages[: turn["shared"]], *turn["sent"]]
        requests.append(messages)
    return requests


def read(message):
    usage = message.usage
    return {{
        "text": message.text,
        "reasoning": "".join(block.text for block in message.content if block.type == "reasoning"),
        "calls": [[call.name, call.arguments] for call in message.tool_calls],
        "stop_reason": message.stop_reason,
        "tokens": None if usage is None else [usage.input_tokens, usage.output_tokens, usage.cache_read_tokens],
    }}


def offer(event, _):
    if event.type == "turn_start":
        agent.set_tools(tools_of(min(len(backend.requests), len(TURNS) - 1)))


backend = Recorded([backend_gives(number) for number in range(len(TURNS))])
agent = None


def test_{name}():
    global agent
    backend.requests.clear()
    agent = Agent(
        backend,
        SYSTEM_PROMPT,
        messages=[load_message(message) for message in HISTORY],
        model=OPTIONS.get("model"),
        thinking_level=OPTIONS.get("thinking_level", "off"),
        options={{name: value for name, value in OPTIONS.items() if name not in ("model", "thinking_level")}},
        limits=Limits(max_turns=len(TURNS), messages_per_minute=None),
        steering_mode="all",
        text_tool_calls={text_tool_calls},{format_messages}
    )
    agent.subscribe(offer)
    known = len(agent.messages)
    asyncio.run(agent.continue_())
    answers = [message for message in agent.messages[known:] if message.role == "assistant"]
    assert [numbered(request.messages) for request in backend.requests] == [numbered(sent) for sent in all_sent()]
    assert [json.loads(json.dumps(request.tools)) for request in backend.requests] == [
        TOOLS[turn["tools"]] for turn in TURNS
    ]
    assert [read(message) for message in answers] == [turn["read"] for turn in TURNS]
'''

_INDENT = 8 * " "
_AS_THEY_WERE = "\n        format_messages=lambda _: all_sent()[len(backend.requests)],"
_ANYTHING = [{"role": "user", "content": [{"type": "text", "text": "(what was sent is given as it was)"}]}]


def test_of(trace: TraceRecorder, row: Row) -> str:
    """The text of a test with what a row recorded: a call of the model alone, or those of a run in order.

    Raises:
        InvalidParametersError: As for ``recorded_of``.
    """
    recorded = recorded_of(trace, row)
    history = _ANYTHING if recorded.history is None else [dump_message(message) for message in recorded.history]
    tools: list[object] = []
    turns = "".join(_turn(turn, tools, alone=not recorded.is_run) for turn in recorded.turns)
    left_out = "".join(f"\n{words}" for words in recorded.left_out)
    head = _HEAD.format(
        what="A run of an agent" if recorded.is_run else "A request to a model and its answer",
        left_out=f"\n{left_out}" if left_out else "",
        system_prompt=literal(recorded.system_prompt),
        history=lines_of(history, ""),
        options=literal(recorded.options),
        turns=turns,
    )
    tail = _TAIL.format(
        provider=repr(recorded.provider),
        aborts=recorded.aborts,
        name="the_run_is_as_it_was" if recorded.is_run else "the_exchange_is_as_it_was",
        text_tool_calls=recorded.text_tool_calls,
        format_messages="" if recorded.history is not None else _AS_THEY_WERE,
    )
    offered = f"\nTOOLS = {lines_of(tools, '')}\n" + '"""The lists of tools that were offered, by number."""\n'
    return mask_keys(head + offered + tail)


def _turn(turn: RecordedTurn, tools: list[object], *, alone: bool) -> str:
    offered = [dict(tool) for tool in turn.tools]
    if offered not in tools[-1:] and offered not in tools:
        tools.append(offered)
    fields = {
        "shared": turn.shared,
        "sent": lines_of(turn.sent, _INDENT),
        "tools": tools.index(offered),
        "whole": literal(turn.whole, _INDENT),
        "pieces": lines_of(turn.pieces, _INDENT),
        "ended": repr(turn.ended),
        "error": repr(turn.error),
        "read": literal(turn.read, _INDENT),
        "called_too": repr(turn.called_too),
        "results": "[]" if alone else lines_of(turn.results, _INDENT),
        "said": lines_of([dump_message(message) for message in turn.said], _INDENT),
    }
    return "    {\n" + "".join(f"        {name!r}: {text},\n" for name, text in fields.items()) + "    },\n"
