"""Filler: a tool whose slots are being filled, and what of the text is still free."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from yiemagent_nb.backends.demo.conversation import ToolCard
from yiemagent_nb.backends.demo.facts import Facts, Found
from yiemagent_nb.backends.demo.slots import Slot
from yiemagent_nb.backends.demo.values import NOTHING, coerce
from yiemagent_nb.backends.demo.words import GENERIC, related, stem, words_of_name

__all__ = ["Filler", "Filling", "named_words"]


@dataclass(slots=True)
class Filling:
    """What could be filled in.

    Args:
        arguments: Values by slot; ``RESULT`` where an earlier call's result belongs.
        missing: Required slots without a value.
        unused: Numbers that were said and that no slot took, as they were written.
        several: A slot whose words name several things, and these things.
        taken: Where the values stood.
    """

    arguments: dict[str, Any] = field(default_factory=dict[str, Any])
    missing: tuple[Slot, ...] = ()
    unused: tuple[str, ...] = ()
    several: tuple[str, tuple[str, ...]] | None = None
    taken: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])


class Filler:
    """The state that the functions which fill share.

    Args:
        card: The tool.
        facts: What the text says.
    """

    def __init__(self, card: ToolCard, facts: Facts) -> None:
        self.card = card
        self.facts = facts
        self.filling = Filling()
        self.open = {slot.name: slot for slot in card.slots}

    def set(self, slot: Slot, value: Any, *places: Found) -> bool:
        """Fill a slot, if the value can be made to fit; its places in the text are then taken."""
        fitting = coerce(value, slot)
        if fitting is NOTHING:
            return False
        self.filling.arguments[slot.name] = fitting
        self.filling.taken += [(place.start, place.end) for place in places]
        self.open.pop(slot.name, None)
        return True

    def free(self, found: Iterable[Found]) -> list[Found]:
        """Those that nothing has taken yet."""
        taken = self.filling.taken
        return [f for f in found if not any(f.start < end and start < f.end for start, end in taken)]

    def wanted(self, accepts: Callable[[Slot], bool]) -> list[Slot]:
        """The open slots that accept something, the required ones first."""
        return sorted((slot for slot in self.open.values() if accepts(slot)), key=lambda slot: not slot.required)

    def still(self, slots: Iterable[Slot]) -> list[Slot]:
        """Those that are open yet."""
        return [slot for slot in slots if slot.name in self.open]


def named_words(card: ToolCard) -> frozenset[str]:
    """The stems in a tool's name that say what it is for, with those of the same meaning."""
    own = {stem(word) for word in words_of_name(card.name)} - GENERIC
    return frozenset(own | {other for word in own for other in related(word)})
