"""Examples: requests that are sure to work with the tools that are there."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from yiemagent_nb.backends.demo.conversation import ToolCard
from yiemagent_nb.backends.demo.planning import make_plan
from yiemagent_nb.backends.demo.slots import sample
from yiemagent_nb.backends.demo.words import words_of_name

__all__ = ["example", "examples"]

_RISKY = frozenset(
    (
        "delete",
        "remove",
        "erase",
        "drop",
        "kill",
        "destroy",
        "write",
        "send",
        "pay",
        "buy",
        "overwrite",
        "reset",
        "stop",
    )
)
LONGEST = 120


def example(card: ToolCard, cards: Sequence[ToolCard]) -> str:
    """A request that calls this tool: the most natural one that is understood as such."""
    arguments = {slot.name: sample(slot, index) for index, slot in enumerate(card.slots) if slot.required}
    for request in _requests(card, arguments):
        if len(request) > LONGEST:
            continue
        steps = make_plan(request, cards)
        if (
            len(steps) == 1
            and steps[0].card.name == card.name
            and not steps[0].missing
            and steps[0].arguments == arguments
        ):
            return request
    return f"call {card.name} with {json.dumps(arguments, ensure_ascii=False)}"


def _requests(card: ToolCard, arguments: Mapping[str, Any]) -> Iterator[str]:
    words = [word for word in words_of_name(card.name) if word not in {"get", "tool"}] or [card.name]
    spoken = " ".join(words)
    values = list(arguments.values())
    if not values:
        yield card.summary.rstrip(".!")
        yield spoken
    elif all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        yield f"{spoken} {' and '.join(str(value) for value in values)}"
    elif len(values) == 1 and isinstance(values[0], str):
        yield f"{spoken} in {values[0]}"
        yield f"{spoken} {values[0]}"
        yield f'{spoken} "{values[0]}"'
    pairs = (f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in arguments.items())
    yield f"call {card.name}" + (f" with {', '.join(pairs)}" if arguments else "")


def examples(cards: Sequence[ToolCard], most: int = 3) -> list[str]:
    """Requests for some of the tools, as different from one another as can be.

    Tools that may change or destroy something are left out.
    """
    harmless = [card for card in cards if not _RISKY.intersection(words_of_name(card.name))]
    shapes: set[tuple[tuple[str, ...], ...]] = set()
    varied: list[ToolCard] = []
    alike: list[ToolCard] = []
    for card in harmless:
        shape = tuple(slot.kinds for slot in card.slots if slot.required)
        (alike if shape in shapes else varied).append(card)
        shapes.add(shape)
    chosen = (varied + alike)[:most]
    return [example(card, cards) for card in harmless if card in chosen]
