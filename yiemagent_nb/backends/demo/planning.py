"""Planning: a request becomes steps, each a call of a tool or the question that it still needs."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from yiemagent_nb.backends.demo.conversation import ToolCard
from yiemagent_nb.backends.demo.facts import Facts, Result, mask
from yiemagent_nb.backends.demo.filler import Filling
from yiemagent_nb.backends.demo.filling import fill
from yiemagent_nb.backends.demo.matching import Match, Matcher
from yiemagent_nb.backends.demo.slots import Slot
from yiemagent_nb.backends.demo.values import NOTHING, coerce
from yiemagent_nb.backends.demo.words import PREPOSITIONS, stem

__all__ = ["Step", "make_plan", "result_for", "with_result"]

MAX_REQUEST = 4_000
"""Characters of a request that are planned for."""
MAX_CLAUSES = 12
MAX_STEPS = 12
CANDIDATES = 4

_SENTENCE = re.compile(
    r"(?<=[.?!])\s+(?=[^\W\d_a-zß-öø-ÿ]|\x01|[a-z])|\n+|;\s*|,?\s+(?:and\s+)?(?:then|afterwards)\s+", re.IGNORECASE
)
_JOINT = re.compile(r",?\s+(?:and|plus|as well as)(?:\s+also)?\s+|,\s+", re.IGNORECASE)
_OPENING = re.compile(
    r"(?:(?:please|also|can you|could you|the|a|an|what is|what's|tell me|show me|me)\s+)*", re.IGNORECASE
)
_ASKS = re.compile(r"(?:what|how|when|where|which|who)(?:'s|\b)", re.IGNORECASE)
_SUM = re.compile(r"\d\s*(?:[-+*/\u00d7\u00f7]|plus|minus|times|over)\s*\d", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Step:
    """A call to make.

    Args:
        card: The tool.
        arguments: Its arguments; ``RESULT`` where the result of step ``after`` belongs.
        missing: Required slots that the request does not fill.
        unused: Numbers that the request gives and the tool does not take.
        after: The step whose result is needed first.
        words: The stems that spoke for this tool.
    """

    card: ToolCard
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    missing: tuple[Slot, ...] = ()
    unused: tuple[str, ...] = ()
    after: int | None = None
    words: tuple[str, ...] = ()


@dataclass(slots=True)
class _Clause:
    text: str
    sentence: int
    goes_on: bool = False
    """Begins with a preposition that the clause before it has too."""


def make_plan(text: str, cards: Sequence[ToolCard], last_result: str | None = None) -> list[Step]:
    """The steps that a request asks for, in its order; none where it is about no tool.

    Args:
        text: What the person said.
        cards: The tools.
        last_result: What the last call in the conversation gave, for requests that speak of it.
    """
    text = text[:MAX_REQUEST]
    matcher = Matcher(cards)
    steps: list[Step] = []
    texts: list[str] = []
    sentences: list[int] = []
    for clause in _clauses(text, matcher):
        facts = Facts(clause.text, matcher.names)
        goes_on = clause.goes_on and bool(steps)
        more = _best([Match(steps[-1].card, 0.0, steps[-1].words)] if goes_on else matcher.rank(facts), facts)
        if not more or (goes_on and more[0].missing):
            if steps and (sentences[-1] == clause.sentence or steps[-1].missing):
                texts[-1] += f", {clause.text}" if sentences[-1] == clause.sentence else f". {clause.text}"
                again = _steps(Match(steps[-1].card, 0.0, steps[-1].words), Facts(texts[-1], matcher.names))
                steps[-1:] = again
            continue
        steps += more
        texts.append(clause.text)
        sentences.append(clause.sentence)
    return _settle(_link(_borrow(steps[:MAX_STEPS])), last_result)


def _clauses(text: str, matcher: Matcher) -> list[_Clause]:
    found: list[_Clause] = []
    for number, sentence in enumerate(_split(text, _SENTENCE)):
        start = len(found)
        for piece in _pieces(sentence, matcher):
            if len(found) == MAX_CLAUSES:
                return found
            goes_on = len(found) > start and _first_word(piece) in PREPOSITIONS
            found.append(_Clause(piece, number, goes_on))
    return found


def _split(text: str, pattern: re.Pattern[str]) -> list[str]:
    pieces: list[str] = []
    start = 0
    for m in pattern.finditer(mask(text)):
        pieces.append(text[start : m.start()])
        start = m.end()
    return [piece.strip() for piece in (*pieces, text[start:]) if piece.strip()]


def _pieces(sentence: str, matcher: Matcher) -> list[str]:
    """A sentence cut where a new request begins, and nowhere else."""
    pieces: list[str] = []
    start = 0
    for m in _JOINT.finditer(mask(sentence)):
        left, right = sentence[start : m.start()], sentence[m.end() :]
        if left.strip() and _begins(left, right, matcher):
            pieces.append(left.strip())
            start = m.end()
    return [*pieces, sentence[start:].strip()]


def _first_word(text: str) -> str:
    found = re.match(r"[^\W\d]+", text)
    return found.group().lower() if found else ""


def _begins(left: str, right: str, matcher: Matcher) -> bool:
    first = _first_word(right)
    if first in PREPOSITIONS:
        return re.search(rf"\b{first}\s", left, re.IGNORECASE) is not None
    opening = _OPENING.match(right)
    word = _first_word(right[opening.end() :] if opening else right)
    if stem(word) in matcher.leads or word in matcher.names or any(part in matcher.leads for part in _parts(word)):
        return True
    if _ASKS.match(right):
        return True
    return bool(_SUM.match(right) and _SUM.search(left))


def _parts(word: str) -> list[str]:
    return [stem(part) for part in word.split("_")] if "_" in word else []


def _best(matches: Sequence[Match], facts: Facts) -> list[Step]:
    """The steps of the tool that fits best, by its words and by what it can be filled with."""
    best: tuple[float, list[Step]] | None = None
    for match in matches[:CANDIDATES]:
        steps = _steps(match, facts)
        missing = len(steps[0].missing)
        if not match.sure and (missing or not steps[0].arguments):
            continue
        score = match.score + (1.5 if not missing else -1.0 * min(missing, 3)) - 0.3 * len(steps[0].unused)
        if best is None or score > best[0]:
            best = score, steps
    return best[1] if best else []


def _steps(match: Match, facts: Facts) -> list[Step]:
    filling = fill(match.card, facts)
    step = Step(match.card, filling.arguments, filling.missing, filling.unused, words=match.words)
    if filling.several is None:
        return [step]
    return _spread(step, filling)


def _spread(step: Step, filling: Filling) -> list[Step]:
    name, values = filling.several or ("", ())
    slot = next(slot for slot in step.card.slots if slot.name == name)
    fitting = [value for part in values if (value := coerce(part, slot)) is not NOTHING]
    return [replace(step, arguments={**step.arguments, name: value}) for value in dict.fromkeys(fitting)]


def _borrow(steps: list[Step]) -> list[Step]:
    """Words that one step has and another lacks go for both: ``the weather and the time in Lisbon``."""
    said: dict[str, Any] = {}
    for step in steps:
        for slot in step.card.slots:
            if slot.name in step.arguments and (slot.is_text or slot.choices):
                said.setdefault(slot.name, step.arguments[slot.name])
    borrowed: list[Step] = []
    for step in steps:
        taken = {
            slot.name: value
            for slot in step.missing
            if slot.name in said and (value := coerce(said[slot.name], slot)) is not NOTHING
        }
        missing = tuple(slot for slot in step.missing if slot.name not in taken)
        borrowed.append(replace(step, arguments={**step.arguments, **taken}, missing=missing))
    return borrowed


def _link(steps: list[Step]) -> list[Step]:
    """A step that speaks of a result takes that of the step before it."""
    linked: list[Step] = []
    for position, step in enumerate(steps):
        waits = any(isinstance(value, Result) for value in step.arguments.values())
        linked.append(replace(step, after=position - 1) if waits and position else step)
    return linked


def _settle(steps: list[Step], last_result: str | None) -> list[Step]:
    """What no step before gives comes from the conversation, or is missing."""
    settled: list[Step] = []
    seen: set[str] = set()
    positions: dict[int, int] = {}
    for position, planned in enumerate(steps):
        step = planned
        if step.after is not None:
            step = replace(step, after=positions[step.after])
        elif any(isinstance(value, Result) for value in step.arguments.values()):
            step = with_result(step, last_result)
        key = f"{step.card.name} {json.dumps(step.arguments, sort_keys=True, default=repr)} {step.after}"
        if key in seen:
            positions[position] = len(settled) - 1
            continue
        seen.add(key)
        positions[position] = len(settled)
        settled.append(step)
    return settled


def with_result(step: Step, text: str | None) -> Step:
    """The step with an earlier result in place; what cannot be read from it is missing."""
    arguments = dict(step.arguments)
    missing = list(step.missing)
    for slot in step.card.slots:
        if isinstance(arguments.get(slot.name), Result):
            value = NOTHING if text is None else result_for(slot, text)
            if value is NOTHING:
                del arguments[slot.name]
                missing += [slot] if slot.required else []
            else:
                arguments[slot.name] = value
    return replace(step, arguments=arguments, missing=tuple(missing), after=None)


def result_for(slot: Slot, text: str) -> Any:
    """What a slot takes from a result's text, or ``NOTHING``."""
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict):
        fields = cast("dict[str, object]", value)
        value = fields.get(slot.name, fields.get("result", next(iter(fields.values())) if len(fields) == 1 else None))
    if value is not None and (fitting := coerce(value, slot)) is not NOTHING:
        return fitting
    if slot.is_number:
        numbers = [n.value for n in Facts(text[-1000:]).numbers if not isinstance(n.value, Result)]
        return coerce(numbers[-1], slot) if numbers else NOTHING
    return coerce(text.strip()[:2000], slot)
