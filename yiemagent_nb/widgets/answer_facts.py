"""What an answer took: who gave it, how much it was to think, its tokens and its cost."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple

from yiemagent_nb.core.messages import AssistantMessage, Message, UserMessage
from yiemagent_nb.core.models import Cost, Usage
from yiemagent_nb.widgets.texts import one_line

__all__ = ["AnswerFacts", "answer_facts", "dollars", "newest_first"]

LONGEST_NAME = 60
"""Characters of a model's name that are shown; a server may call its model by a file's path."""

_SMALLEST_COST = 1e-6


class AnswerFacts(NamedTuple):
    """What stands under an answer: one quiet line, and all of it in several."""

    line: str
    details: str


def newest_first(messages: Sequence[Message], end: int) -> Iterator[Message]:
    """The messages that stand before the index ``end``, the newest first."""
    return (messages[index] for index in range(min(end, len(messages)) - 1, -1, -1))


def answer_facts(last: AssistantMessage, earlier: Iterable[Message]) -> AnswerFacts | None:
    """What an answer took, with the answers before it that called tools for it.

    Args:
        last: The answer.
        earlier: What stands before it, the newest first; read up to what a person said.

    Returns:
        Sums over all answers since a person spoke last; None where nothing is known, and under an
        answer that calls tools, since its turn stands in the sum of the one that follows.
    """
    if last.stop_reason == "tool_calls":
        return None
    since = takewhile(lambda message: not isinstance(message, UserMessage), earlier)
    answers = [*reversed([each for each in since if isinstance(each, AssistantMessage)]), last]
    usages = [answer.usage for answer in answers if answer.usage is not None]
    usage = _sum(usages) if usages else None
    cost = usage.cost if usage is not None else None
    thinking = last.thinking_sent if last.thinking_sent not in {None, "", "off"} else None
    line = [
        one_line(last.model, LONGEST_NAME),
        f"thinking {thinking}" if thinking else "",
        _tokens(usage) if usage is not None else "",
        dollars(cost.total) if cost is not None else "",
        f"{len(usages)} turns" if len(usages) > 1 else "",
    ]
    shown = " · ".join(filter(None, line))
    if not shown:
        return None
    models = list(dict.fromkeys(_whose(answer) for answer in answers if answer.model))
    details = [
        f"{'Models' if len(models) > 1 else 'Model'}: {', '.join(models)}" if models else "",
        f"Thinking: {thinking}" if thinking else "",
        *(_details(usage, len(usages)) if usage is not None else ()),
    ]
    return AnswerFacts(shown, "\n".join(filter(None, details)))


def dollars(cost: float) -> str:
    """A cost in US dollars, to two digits that say something; empty where there is none."""
    if cost < _SMALLEST_COST:
        return ""
    return f"${cost:,.{max(2, 1 - math.floor(math.log10(cost)))}f}"


def _sum(usages: Sequence[Usage]) -> Usage:
    costs = [usage.cost for usage in usages if usage.cost is not None]
    return Usage(
        input_tokens=sum(usage.input_tokens for usage in usages),
        output_tokens=sum(usage.output_tokens for usage in usages),
        cache_read_tokens=sum(usage.cache_read_tokens for usage in usages),
        cache_write_tokens=sum(usage.cache_write_tokens for usage in usages),
        reasoning_tokens=sum(usage.reasoning_tokens for usage in usages),
        total_tokens=sum(usage.total_tokens for usage in usages),
        cost=_sum_of_costs(costs) if costs else None,
    )


def _sum_of_costs(costs: Sequence[Cost]) -> Cost:
    return Cost(
        input=math.fsum(cost.input for cost in costs),
        output=math.fsum(cost.output for cost in costs),
        cache_read=math.fsum(cost.cache_read for cost in costs),
        cache_write=math.fsum(cost.cache_write for cost in costs),
        total=math.fsum(cost.total for cost in costs),
    )


def _tokens(usage: Usage) -> str:
    cached = f" ({usage.cache_read_tokens:,} cached)" if usage.cache_read_tokens else ""
    reasoning = f" ({usage.reasoning_tokens:,} reasoning)" if usage.reasoning_tokens else ""
    return f"{usage.input_tokens:,} tokens in{cached}, {usage.output_tokens:,} out{reasoning}"


def _details(usage: Usage, turns: int) -> Iterable[str]:
    read = f", {usage.cache_read_tokens:,} of them from a cache" if usage.cache_read_tokens else ""
    written = f", {usage.cache_write_tokens:,} written to a cache" if usage.cache_write_tokens else ""
    yield f"Input: {usage.input_tokens:,} tokens{read}{written}"
    yield f"Output: {usage.output_tokens:,} tokens" + (
        f", {usage.reasoning_tokens:,} of them reasoning" if usage.reasoning_tokens else ""
    )
    if usage.cost is not None and (total := dollars(usage.cost.total)):
        parts = {
            "input": usage.cost.input,
            "cache read": usage.cost.cache_read,
            "cache write": usage.cost.cache_write,
            "output": usage.cost.output,
        }
        shown = [f"{name} {amount}" for name, cost in parts.items() if (amount := dollars(cost))]
        yield f"Cost: {total}" + (f" ({', '.join(shown)})" if shown else "")
    if turns > 1:
        yield f"The sum of {turns} turns, since you spoke last"


def _whose(answer: AssistantMessage) -> str:
    name = one_line(answer.model, LONGEST_NAME)
    return f"{name} ({one_line(answer.provider, LONGEST_NAME)})" if answer.provider else name
