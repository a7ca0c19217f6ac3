"""What an answer took: tokens, cost, model and thinking, summed over the turns since a person spoke."""

from __future__ import annotations

from typing import Any

import pytest

from yiemagent_nb.core.messages import (
    AssistantMessage,
    AssistantToolCallMessage,
    Message,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from yiemagent_nb.core.models import Cost, Usage
from yiemagent_nb.widgets.answer_facts import AnswerFacts, answer_facts, dollars, newest_first

CALL = ToolCall(id="c", name="add", arguments={})


def facts(*messages: Message) -> AnswerFacts | None:
    last = messages[-1]
    assert isinstance(last, AssistantMessage)
    return answer_facts(last, newest_first(messages, len(messages) - 1))


def answer(text: str = "fine", **fields: Any) -> AssistantMessage:
    return AssistantMessage(text, **fields)


def line(*messages: Message) -> str:
    found = facts(*messages)
    assert found is not None
    return found.line


def test_all_that_is_known_stands_on_one_line() -> None:
    usage = Usage(
        input_tokens=1_200,
        output_tokens=80,
        cache_read_tokens=1_000,
        cache_write_tokens=100,
        reasoning_tokens=20,
        cost=Cost(input=0.0001, cache_read=0.0001, cache_write=0.00015, output=0.0008, total=0.00115),
    )
    found = facts(answer(model="tide-1", provider="harbour", thinking_sent="high", usage=usage))
    assert found is not None
    assert found.line == "tide-1 · thinking high · 1,200 tokens in (1,000 cached), 80 out (20 reasoning) · $0.0011"
    assert found.details.splitlines() == [
        "Model: tide-1 (harbour)",
        "Thinking: high",
        "Input: 1,200 tokens, 1,000 of them from a cache, 100 written to a cache",
        "Output: 80 tokens, 20 of them reasoning",
        "Cost: $0.0011 (input $0.00010, cache read $0.00010, cache write $0.00015, output $0.00080)",
    ]


def test_the_turns_since_a_person_spoke_are_summed() -> None:
    def turn(cost: float) -> Usage:
        return Usage(input_tokens=100, output_tokens=10, cost=Cost(total=cost))

    found = facts(
        UserMessage("before"),
        answer(model="old", usage=turn(9.0)),
        UserMessage("now"),
        AssistantToolCallMessage(tool_calls=[CALL], model="small", usage=turn(0.25)),
        ToolResultMessage(tool_call_id="c", tool_name="add"),
        answer(model="large", usage=turn(1.5)),
    )
    assert found is not None
    assert found.line == "large · 200 tokens in, 20 out · $1.75 · 2 turns"
    assert "Models: small, large" in found.details
    assert "The sum of 2 turns" in found.details


def test_an_answer_that_calls_tools_says_nothing_yet() -> None:
    assert facts(AssistantToolCallMessage(tool_calls=[CALL], model="m", usage=Usage(input_tokens=1))) is None


def test_an_answer_of_which_nothing_is_known_says_nothing() -> None:
    assert facts(answer()) is None


@pytest.mark.parametrize("usage", [Usage(input_tokens=7), Usage(input_tokens=7, cost=Cost())])
def test_a_cost_that_is_not_known_is_not_told(usage: Usage) -> None:
    found = facts(answer(usage=usage))
    assert found is not None
    assert found.line == "7 tokens in, 0 out"
    assert "ost" not in found.details


@pytest.mark.parametrize(("sent", "shown"), [("off", "m"), (None, "m"), ("low", "m · thinking low")])
def test_thinking_is_told_where_it_was_asked_for(sent: str | None, shown: str) -> None:
    assert line(answer(model="m", thinking_sent=sent)) == shown


def test_a_models_name_stays_on_its_line() -> None:
    shown = line(answer(model="a\nb " + "x" * 500))
    assert shown.startswith("a b xxx")
    assert len(shown) == 60


@pytest.mark.parametrize(
    ("cost", "shown"),
    [
        (0.0, ""),
        (1e-9, ""),
        (0.0000123, "$0.000012"),
        (0.0031, "$0.0031"),
        (0.1234, "$0.12"),
        (1.5, "$1.50"),
        (1234.5, "$1,234.50"),
    ],
)
def test_a_cost_has_two_digits_that_say_something(cost: float, shown: str) -> None:
    assert dollars(cost) == shown
