"""Words: splitting, stemming, and which of them mean the same."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

__all__ = [
    "DAY_NAMES",
    "EMAIL_NAMES",
    "EXPRESSION_NAMES",
    "GENERIC",
    "NAME_NAMES",
    "NOT_A_WORD",
    "PATH_NAMES",
    "PLACE_NAMES",
    "PREPOSITIONS",
    "SOURCE_NAMES",
    "STOP_WORDS",
    "TARGET_NAMES",
    "TEXT_NAMES",
    "TOPIC_NAMES",
    "URL_NAMES",
    "WORD",
    "ZONE_NAMES",
    "related",
    "stem",
    "stems",
    "words_of_name",
]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
NOT_A_WORD = re.compile(r"[^\w°%+#]+")
_NAME_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_A-Za-z]+")

PREPOSITIONS = _words(
    "in at for to from of about on with called named into by near around as titled saying via using inside"
)

STOP_WORDS = _words(
    "a an the and or but if is are was were be been am do does did can could will would shall should may might "
    "i you he she it we they me him her us them my your his its our their this that these those there here "
    "what which who whom whose when where why how please now just so then too also as at by for from in into of "
    "on onto to with without about let lets want need like give tell ask some any one not no yes ok okay hey"
)

# What parameters are called, by what fits into them.
PLACE_NAMES = _words("city location place town country region address where timezone zone tz area destination")
TARGET_NAMES = _words("to target language lang recipient receiver into dest unit output")
SOURCE_NAMES = _words("from source origin start sender")
NAME_NAMES = _words("name person who user username title label author")
TOPIC_NAMES = _words("query q search topic question keyword keywords term subject about")
TEXT_NAMES = _words("text message content body string sentence phrase input prompt note words word value comment")
EXPRESSION_NAMES = _words("expression expr formula calculation equation")
DAY_NAMES = _words("date day when")
ZONE_NAMES = _words("timezone zone tz")
EMAIL_NAMES = _words("email mail recipient to address")
URL_NAMES = _words("url uri link website page href address")
PATH_NAMES = _words("path file filename folder directory document")

GENERIC_WORDS = (
    "get",
    "set",
    "do",
    "run",
    "make",
    "tool",
    "my",
    "current",
    "data",
    "info",
    "value",
    "use",
    "call",
    "new",
)


_ENDINGS = tuple(
    (re.compile(pattern), instead)
    for pattern, instead in ((r"(?<=..)(?:ies|ied)$", "y"), (r"(?<=...)(?:ing|ed)$", ""), (r"(?<=..[^sui])s$", ""))
)
"""Endings of which the first that fits goes; what is left of the word before them is long enough."""
_LAST_LETTERS = tuple(
    (re.compile(pattern), instead)
    for pattern, instead in ((r"(?<=...)e$", ""), (r"(?<=.)(.)\1$", r"\1"), (r"(?<=..)y$", "i"))
)


@lru_cache(maxsize=8192)
def stem(word: str) -> str:
    """A word without its commonest endings: light, and the same for words that belong together."""
    word = word.lower().removesuffix("'s")
    for ending, instead in _ENDINGS:
        shorter = ending.sub(instead, word)
        if shorter != word:
            word = shorter
            break
    for ending, instead in _LAST_LETTERS:
        word = ending.sub(instead, word)
    return word


GENERIC = frozenset(stem(word) for word in GENERIC_WORDS)
"""Words in tools' names that say nothing about what a tool is for."""

_RELATED = (
    "add plus sum total addition",
    "subtract minus difference subtraction",
    "multiply product multiplication",
    "divide quotient ratio division",
    "calculate compute evaluate calculator calculation math arithmetic calc eval",
    "weather forecast temperature warm cold hot rain sunny",
    "time clock hour",
    "date day today calendar",
    "roll dice die throw",
    "search find lookup query google",
    "plot chart graph draw diagram",
    "image picture photo",
    "delete remove erase",
    "write save store",
    "read open load",
    "list show",
    "random pick choose",
    "flip toss coin",
    "count number",
    "length size",
    "greet greeting",
    "mail email",
    "mean average",
    "stop cancel",
    "create make",
    "convert conversion",
    "wait sleep pause",
)


def _groups() -> dict[str, frozenset[str]]:
    groups: dict[str, frozenset[str]] = {}
    for line in _RELATED:
        group = frozenset(stem(word) for word in line.split())
        for word in group:
            groups[word] = groups.get(word, frozenset()) | group
    return groups


_GROUPS = _groups()


def related(word: str) -> frozenset[str]:
    """The stems that mean about the same as this one, itself left out."""
    return _GROUPS.get(word, frozenset()) - {word}


def words_of_name(name: str) -> list[str]:
    """The words of an identifier, in small letters: ``getWeather_now`` is get, weather, now."""
    return [part.lower() for part in _NAME_PART.findall(name[:200])]


def stems(text: str, *, without: Iterable[str] = STOP_WORDS) -> list[str]:
    """The stems of a text's words, in order, without those that say nothing."""
    dropped = without if isinstance(without, frozenset) else frozenset(without)
    return [stem(word) for word in _WORD.findall(text) if word.lower() not in dropped]
