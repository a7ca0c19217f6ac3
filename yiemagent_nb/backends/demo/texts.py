"""Filling slots with words: what stands behind a preposition, in quotes, in capitals, or at the end."""

from __future__ import annotations

import re
from collections.abc import Sequence

from yiemagent_nb.backends.demo.facts import RESULT, Found, split_list
from yiemagent_nb.backends.demo.filler import Filler, named_words
from yiemagent_nb.backends.demo.slots import Slot
from yiemagent_nb.backends.demo.values import plain, time_zones
from yiemagent_nb.backends.demo.words import (
    GENERIC,
    NAME_NAMES,
    PLACE_NAMES,
    SOURCE_NAMES,
    STOP_WORDS,
    TARGET_NAMES,
    TEXT_NAMES,
    TOPIC_NAMES,
    WORD,
    ZONE_NAMES,
    stem,
    words_of_name,
)

__all__ = ["free_phrases", "from_texts", "rest_of"]

MOST_WORDS_OF_A_NAME = 4

_CUES: Sequence[tuple[frozenset[str], tuple[str, ...]]] = (
    (TARGET_NAMES, ("to", "into", "as")),
    (SOURCE_NAMES, ("from",)),
    (PLACE_NAMES, ("in", "at", "near", "around", "inside", "for", "of", "from")),
    (NAME_NAMES, ("named", "called", "titled", "for", "to", "by")),
    (TOPIC_NAMES, ("for", "about", "on", "of")),
    (TEXT_NAMES, ("saying", "of", "about")),
)
"""What a parameter is called, and the words that lead to its value, the surest first."""

_LEADING = re.compile(
    r"^(?:please|the|a|an|me|tool|function|with|for|that|of|to|on|about|say|says|it|some|all|us|from|word|text|string|"
    r"phrase|sentence|message|following|named|called|in)\b[\s:,]*",
    re.IGNORECASE,
)
_TRAILING = re.compile(
    r"(?<![\s,])[\s,]+(?:please|now|for me|right now|again|thanks|thank you)[\s.!?]*$", re.IGNORECASE
)
_CUE_AT_END = re.compile(r"\s(?:to|into|in|from|for|at|with|on|as|by|of)$")
_RESULT = re.compile(r"(?:the |that |this )?(?:result|answer|output)|it|that|this", re.IGNORECASE)
_WHEN = frozenset(stem(word) for word in ["today", "tomorrow", "yesterday", "now", "me", "moment", "that", "this"])


def from_texts(filler: Filler) -> None:
    """Fill the slots that take words: by their cues, then with quotes, then as far as they are required."""
    slots = filler.wanted(lambda slot: slot.is_text and not slot.format.startswith("date"))
    alone = len(slots) == 1
    for names, cues in _CUES:
        for slot in filler.still(slots):
            if names.intersection(words_of_name(slot.name)):
                _from_cues(filler, slot, cues, whole=alone and names in (TOPIC_NAMES, TEXT_NAMES))
    for slot, quote in zip(filler.still(slots), filler.free(filler.facts.quotes), strict=False):
        filler.set(slot, quote.value, quote)
    for slot in filler.still(slots):
        if slot.required:
            _from_what_is_left(filler, slot, whole=alone)


def _from_cues(filler: Filler, slot: Slot, cues: Sequence[str], *, whole: bool) -> None:
    several = bool((PLACE_NAMES | NAME_NAMES).intersection(words_of_name(slot.name)))
    for cue in cues:
        for phrase in free_phrases(filler, whole=whole):
            if phrase.cue == cue and _fits(phrase, slot) and _place(filler, slot, phrase, several=several):
                return


def _from_what_is_left(filler: Filler, slot: Slot, *, whole: bool) -> None:
    words = set(words_of_name(slot.name))
    names = [] if words & (TEXT_NAMES | TOPIC_NAMES) else _names(filler, slot)
    rest = rest_of(filler)
    if names:
        _place(filler, slot, names[0], several=not words & TARGET_NAMES)
    elif rest is not None and (not words & PLACE_NAMES or rest.value[:1].isupper()):
        _place(filler, slot, rest, several=bool(words & NAME_NAMES))
    elif phrase := next((p for p in free_phrases(filler, whole=whole) if _fits(p, slot)), None):
        _place(filler, slot, phrase, several=False)
    elif number := next(iter(filler.free(filler.facts.numbers)), None):
        value = number.value if number.value is RESULT else filler.facts.text[number.start : number.end]
        filler.set(slot, value, number)


def _place(filler: Filler, slot: Slot, phrase: Found, *, several: bool) -> bool:
    value = _TRAILING.sub("", phrase.value).strip()
    zones = time_zones() if ZONE_NAMES.intersection(words_of_name(slot.name)) else {}
    parts = split_list(value) if several and filler.filling.several is None else []
    if len(parts) > 1 and all(len(part.split()) <= MOST_WORDS_OF_A_NAME for part in parts):
        parts = [zones.get(plain(part), part) for part in parts]
        placed = filler.set(slot, parts[0], phrase)
        if placed:
            filler.filling.several = slot.name, tuple(parts)
        return placed
    return filler.set(slot, RESULT if _RESULT.fullmatch(value) else zones.get(plain(value), value), phrase)


def _fits(phrase: Found, slot: Slot) -> bool:
    """Whether a phrase says more than the slot's own name, and more than when."""
    words = [stem(word) for word in WORD.findall(phrase.value)]
    return bool(words) and not _WHEN.union(slot.words).issuperset(words)


def free_phrases(filler: Filler, *, whole: bool = False) -> list[Found]:
    """The phrases behind prepositions that are free, up to what is not."""
    phrases: list[Found] = []
    for phrase in filler.facts.phrases(whole=whole):
        end = min((start for start, _ in filler.filling.taken if phrase.start < start < phrase.end), default=phrase.end)
        value = phrase.value if end == phrase.end else filler.facts.text[phrase.start : end].strip(" ,:;")
        if value:
            phrases.append(Found(value, phrase.start, end, phrase.cue))
    return filler.free(phrases)


def _names(filler: Filler, slot: Slot) -> list[Found]:
    """Capitalised words that are free and no part of the tool's own name or the slot's."""
    own = named_words(filler.card) | set(slot.words)
    names: list[Found] = []
    for capital in filler.free(filler.facts.capitals):
        words = capital.value.split()
        while words and (stem(words[0].strip(",'")) in own or words[0].strip(",.").lower().split("'")[0] in STOP_WORDS):
            words = words[1:]
        if words:
            names.append(Found(" ".join(words), capital.start, capital.end))
    return names


def rest_of(filler: Filler) -> Found | None:
    """What stands behind the words that name the tool, as far as it is free."""
    text, taken = filler.facts.text, filler.filling.taken
    own = named_words(filler.card) | {stem(word) for word in words_of_name(filler.card.name)}
    end = 0
    for word in WORD.finditer(filler.facts.masked.replace("_", " ")):
        if stem(word.group()) in own:
            end = word.end()
        elif end and word.group().lower() not in STOP_WORDS and stem(word.group()) not in GENERIC:
            break
    stop = min((start for start, _ in taken if start > end), default=len(text))
    before = len(text[:stop].rstrip(" ,"))
    if stop < len(text) and (cue := _CUE_AT_END.search(text[end:before])):
        stop = end + cue.start()
    value = text[end:stop].strip(" .?!,:;`\n\t")
    while (shorter := _LEADING.sub("", value)) != value:
        value = shorter
    value = _TRAILING.sub("", value).strip("\"'“”`")
    found = Found(value, end, stop)
    return found if end and value and filler.free([found]) else None
