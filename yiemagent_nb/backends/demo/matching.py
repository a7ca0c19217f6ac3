"""Matching: which of the tools a piece of text is about."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

from yiemagent_nb.backends.demo.conversation import ToolCard
from yiemagent_nb.backends.demo.facts import Facts
from yiemagent_nb.backends.demo.filler import named_words
from yiemagent_nb.backends.demo.words import GENERIC, stem, stems, words_of_name

__all__ = ["Match", "Matcher", "operators"]

NAMED = 20.0
OWN_WORD = 3.0
RELATED_WORD = 2.5
WHOLE_NAME = 2.0
CHOICE_WORD = 1.5
PARAMETER_WORD = 1.0
PURPOSE_WORD = 1.0
GENERIC_WORD = 0.7
SUMMARY = 5.0
SUMMARY_WORD = 1.5
ENOUGH = 1.5
"""What description, choices and parameters must add up to where no word of the name was said."""
SURE = 3.0
"""From here on, such a match stands even if the text does not fill the tool."""

_SYMBOL = r"\+|plus\b|[-\u2212]|minus\b|[*\u00d7x](?=\s*[\d(])|times\b|multiplied by\b|[/\u00f7]|divided by\b|over\b"
_OPERATOR = re.compile(
    rf"(?:\d|\)|\b(?:it|that|result|answer))\s*({_SYMBOL})\s*(?:\d|\(|-\d|it\b|that\b|the\b)", re.IGNORECASE
)
_MEANINGS = {
    **dict.fromkeys(("+", "plus"), "add"),
    **dict.fromkeys(("-", "\u2212", "minus"), "subtract"),
    **dict.fromkeys(("/", "\u00f7", "over", "divided by"), "divide"),
}
_STATEMENT = re.compile(
    r"\s*(?:i|we|he|she|they|it|that|this)(?!\s+(?:want|need|would like|wish)\b|'d like)[\s']", re.IGNORECASE
)


def operators(facts: Facts) -> list[str]:
    """The stems of the arithmetic that stands between numbers."""
    text = facts.text
    for day in facts.dates:
        text = text[: day.start] + "\x01" * (day.end - day.start) + text[day.end :]
    found = [_MEANINGS.get(m.group(1).lower(), "multiply") for m in _OPERATOR.finditer(text)]
    return [stem(word) for word in dict.fromkeys(found)]


@dataclass(frozen=True, slots=True)
class Match:
    """A tool, how well it fits, and the words that say so.

    One that is not ``sure`` counts only if the text fills the tool's parameters.
    """

    card: ToolCard
    score: float
    words: tuple[str, ...]
    sure: bool = True


@dataclass(frozen=True, slots=True)
class _Vocabulary:
    card: ToolCard
    own: frozenset[str]
    near: frozenset[str]
    generic: frozenset[str]
    purpose: frozenset[str]
    parameters: frozenset[str]
    choices: frozenset[str]
    summary: frozenset[str]

    @classmethod
    def of(cls, card: ToolCard) -> Self:
        name = frozenset(stem(word) for word in words_of_name(card.name))
        own = name - GENERIC or name
        choices = (str(choice) for slot in card.slots for choice in slot.choices[:20] if isinstance(choice, str))
        return cls(
            card,
            own,
            (named_words(card) | own) - own,
            name - own,
            frozenset(stems(card.description[:400])) - own,
            frozenset(word for slot in card.slots for word in slot.words),
            frozenset(word for choice in choices for word in stems(choice[:60])),
            frozenset(stems(card.summary)),
        )

    def is_named(self, text: str) -> bool:
        """Whether the tool's very name stands in a text, and not only as a word that it may be."""
        name = self.card.name
        if name not in text:  # so that few patterns are made
            return False
        escaped = re.escape(name)
        bare = "" if name.isalpha() and name.islower() else rf"|(?<!\w){escaped}(?!\w)"
        marked = rf"`{escaped}`|(?<!\w){escaped}\s*\(|\b(?:call|use|run|invoke|tool)\s+(?:the\s+)?{escaped}(?!\w)"
        return re.search(marked + bare, text) is not None


class Matcher:
    """Ranks tools for texts.

    Args:
        cards: The tools that were offered.
    """

    def __init__(self, cards: Sequence[ToolCard]) -> None:
        self._tools = [_Vocabulary.of(card) for card in cards]
        self.leads = frozenset(word for tool in self._tools for word in tool.own | tool.near)
        """Words that a request for one of the tools may begin with."""
        self.names = [card.name for card in cards]
        self._shared: dict[str, int] = {}
        for tool in self._tools:
            for word in tool.own:
                self._shared[word] = self._shared.get(word, 0) + 1

    def mentions(self, text: str) -> list[ToolCard]:
        """The tools whose very names stand in a text, or stand for it whole."""
        bare = text.strip().strip("`?.! ")
        return [tool.card for tool in self._tools if tool.is_named(text) or tool.card.name == bare]

    def rank(self, facts: Facts) -> list[Match]:
        """The tools that a text may be about, the best first; none where it is about none."""
        symbols = operators(facts)
        said = dict.fromkeys(stems(facts.masked.replace("_", " ")))
        if "multipli" in symbols or "multiply" in symbols:
            said.pop(stem("times"), None)
        said.update(dict.fromkeys(symbols))
        if symbols:
            said[stem("calculate")] = None
        statement = _STATEMENT.match(facts.text) is not None
        found = [match for tool in self._tools if (match := self._match(tool, facts.text, said, statement=statement))]
        return sorted(found, key=lambda match: -match.score)

    def _match(self, tool: _Vocabulary, text: str, said: Iterable[str], *, statement: bool) -> Match | None:
        named = tool.is_named(text)
        strong, weak = 0.0, 0.0
        words: list[str] = []
        for word in said:
            by_name, by_rest = self._weigh(tool, word)
            strong += by_name
            weak += by_rest
            if by_name or by_rest:
                words.append(word)
        if len(tool.summary) > 1 and tool.summary.issubset(said):
            weak += SUMMARY
        if not named and (statement or (not strong and weak < ENOUGH)):
            return None
        score = strong + weak + WHOLE_NAME * len(tool.own.intersection(words)) / max(1, len(tool.own))
        sure = named or strong > 0 or weak >= SURE
        return Match(tool.card, score + (NAMED if named else 0.0), tuple(words), sure)

    def _weigh(self, tool: _Vocabulary, word: str) -> tuple[float, float]:
        """What a word says for a tool: by the tool's name, and by all else that is known of it."""
        if word in tool.own:
            return OWN_WORD / self._shared[word] ** 0.5, 0.0
        if word in tool.near and word not in self._shared:
            return RELATED_WORD, 0.0
        for words, weight in (
            (tool.choices, CHOICE_WORD),
            (tool.summary, SUMMARY_WORD),
            (tool.parameters, PARAMETER_WORD),
            (tool.purpose, PURPOSE_WORD),
            (tool.generic | tool.near, GENERIC_WORD),
        ):
            if word in words:
                return 0.0, weight
        return 0.0, 0.0
