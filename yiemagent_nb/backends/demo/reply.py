"""The reply: from the conversation so far to the next answer, as a plain function."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from yiemagent_nb.backends.demo.conversation import (
    Call,
    Entry,
    Image,
    Outcome,
    ToolCard,
    Topic,
    canonical,
    topics,
)
from yiemagent_nb.backends.demo.examples import example
from yiemagent_nb.backends.demo.facts import Facts
from yiemagent_nb.backends.demo.filling import fill
from yiemagent_nb.backends.demo.matching import Matcher
from yiemagent_nb.backends.demo.planning import Step, make_plan, with_result
from yiemagent_nb.backends.demo.speaking import (
    QUESTION,
    ask_for,
    can_show,
    describe_arguments,
    failure_of,
    report,
)
from yiemagent_nb.backends.demo.talk import AGAIN, NEVER_MIND, SHOWN_AGAIN, cannot_help, last_images, talk
from yiemagent_nb.backends.demo.values import NOTHING, coerce

__all__ = ["Reply", "make_reply"]

MAX_ROUNDS = 8
"""Answers with calls after which there are no more until a person says something."""
MAX_QUESTIONS = 6
MAX_TOPICS = 8

_SHOW = re.compile(r"\b(?:show|draw|plot|display|see|image|picture|chart|graph|figure|photo)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer: what is thought, what is said, and what is called."""

    thought: str = ""
    text: str = ""
    calls: tuple[Call, ...] = ()
    images: tuple[Image, ...] = ()


@dataclass(slots=True)
class _Work:
    """What one request comes to, as far as its results are there."""

    said: list[str] = field(default_factory=list[str])
    ready: list[tuple[Step, Call]] = field(default_factory=list[tuple[Step, Call]])
    questions: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])


def make_reply(entries: Sequence[Entry], cards: Sequence[ToolCard]) -> Reply:
    """The next answer. The same conversation and tools always give the same one."""
    live, earlier = topics(entries)
    live = live[-MAX_TOPICS:]
    if not any(text.strip() or topic.images for topic in live for text in topic.texts):
        outcomes = [outcome for topic in live for outcome in topic.outcomes]
        if outcomes:
            return Reply(text=report(outcomes, {}, show_images=False))
        return Reply(text=cannot_help("", cards, has_images=False) if live else "There is nothing new to answer.")
    done = {canonical(call) for topic in live for call in topic.calls}
    rounds = _rounds(entries, earlier)
    context = list(earlier)
    works: list[tuple[Topic, _Work]] = []
    for topic in live:
        works.append((topic, _work(topic, context, cards)))
        context += [Entry("user", text) for text in topic.texts]
    ready = [pair for _, work in works for pair in work.ready if canonical(pair[1]) not in done]
    if ready and rounds < MAX_ROUNDS:
        return _call(ready, entries)
    return Reply(text=_answer(works, cards), images=_images(works, earlier))


def _rounds(entries: Sequence[Entry], earlier: Sequence[Entry]) -> int:
    rounds = 0
    for entry in reversed(entries[len(earlier) :]):
        if entry.role == "user":
            break
        rounds += bool(entry.calls)
    return rounds


def _work(topic: Topic, earlier: Sequence[Entry], cards: Sequence[ToolCard]) -> _Work:
    work = _Work()
    for text in topic.texts:
        steps = _continued(text, earlier, cards)
        if steps is None and NEVER_MIND.fullmatch(text.strip().lower().rstrip(".!")):
            work.said.append("All right.")
            continue
        said = "" if steps is not None else talk(text, earlier, cards)
        if said:
            work.said.append(said)
            continue
        if steps is None:
            steps = _planned(text, earlier, cards)
        if steps:
            _follow(steps, topic, work)
        elif not topic.outcomes:
            work.said.append(cannot_help(text, cards, has_images=bool(topic.images)))
    return work


def _planned(text: str, earlier: Sequence[Entry], cards: Sequence[ToolCard]) -> list[Step]:
    if AGAIN.fullmatch(text.strip().lower().rstrip(".!? ")):
        for entry in reversed(earlier):
            if entry.role == "user" and (steps := make_plan(entry.text, cards, _last_result(earlier))):
                return steps
    return make_plan(text, cards, _last_result(earlier))


def _last_result(earlier: Sequence[Entry]) -> str | None:
    return next((entry.text for entry in reversed(earlier) if entry.role == "tool"), None)


def _follow(steps: Sequence[Step], topic: Topic, work: _Work) -> None:
    """Take the steps as far as their results reach."""
    settled: list[Outcome | None] = []
    for step in steps:
        outcome = None
        before = settled[step.after] if step.after is not None else None
        if step.after is None or (before is not None and not failure_of(before)):
            current = step if before is None else with_result(step, before.text)
            if current.missing:
                work.questions.append(ask_for(current.card, current.missing, current.arguments))
            else:
                call = Call("", current.card.name, current.arguments)
                outcome = next((o for o in topic.outcomes if canonical(o.call) == canonical(call)), None)
                if outcome is None:
                    work.ready.append((current, call))
                if current.unused:
                    left = ", ".join(current.unused)
                    them = "them" if len(current.unused) > 1 else "it"
                    work.notes.append(f"`{current.card.name}` has no place for {left}, so I left {them} out.")
        elif before is not None:
            work.notes.append(f"`{step.card.name}` needed that result, so I stopped there.")
        settled.append(outcome)


def _continued(text: str, earlier: Sequence[Entry], cards: Sequence[ToolCard], depth: int = 0) -> list[Step] | None:
    """The step that a question was about, with what the person answered; None where none was asked."""
    if not earlier or earlier[-1].role != "assistant" or depth > MAX_QUESTIONS:
        return None
    question = QUESTION.search(earlier[-1].text)
    card = next((card for card in cards if card.name == question.group(1)), None) if question else None
    if card is None or NEVER_MIND.fullmatch(text.strip().lower().rstrip(".!")) or talk(text, earlier, cards):
        return None
    own = make_plan(text, cards, _last_result(earlier))
    if Matcher(cards).mentions(text) or (own and not any(step.missing for step in own)):
        return None  # a request of its own
    before = [position for position, entry in enumerate(earlier) if entry.role == "user"]
    if not before:
        return None
    first = earlier[before[-1]].text
    steps = _continued(first, earlier[: before[-1]], cards, depth + 1)
    if steps is None:
        steps = make_plan(first, cards, _last_result(earlier[: before[-1]]))
    name = question.group(2) if question else ""
    asked = [step for step in steps if step.missing]
    return [_with_answer(step, text) if step.missing[0].name == name else step for step in asked] or None


def _with_answer(step: Step, text: str) -> Step:
    wanted = ToolCard("answer", "", step.missing)
    filled = fill(wanted, Facts(text)).arguments
    left = [slot for slot in step.missing if slot.name not in filled]
    if len(left) == len(step.missing):
        bare = re.sub(
            r"^(?:it(?:'s| is)|in|at|to|for|the|use|take|make it|let's say)\s+", "", text.strip(), flags=re.IGNORECASE
        )
        value = coerce(bare.strip().rstrip(".!?"), left[0])
        if value is not NOTHING:
            filled = {left[0].name: value}
            left = left[1:]
    return Step(step.card, {**step.arguments, **filled}, tuple(left), words=step.words)


def _call(ready: Sequence[tuple[Step, Call]], entries: Sequence[Entry]) -> Reply:
    used = {call.id for entry in entries for call in entry.calls}
    number = sum(len(entry.calls) for entry in entries)
    calls: list[Call] = []
    seen: set[str] = set()
    steps: list[Step] = []
    for step, call in ready:
        if canonical(call) in seen:
            continue
        seen.add(canonical(call))
        number += 1
        while f"call_demo_{number}" in used:
            number += 1
        calls.append(Call(f"call_demo_{number}", call.name, call.arguments))
        steps.append(step)
    return Reply(thought=_thought(steps, calls), calls=tuple(calls))


def _thought(steps: Sequence[Step], calls: Sequence[Call]) -> str:
    if len(calls) == 1:
        call, words = calls[0], steps[0].words
        because = f" The words that point to it: {', '.join(words[:5])}." if words else ""
        read = f"with {describe_arguments(call.arguments)}" if call.arguments else "without arguments"
        return f"This is something for {call.name}, {read}.{because}"
    listed = "; ".join(f"{call.name} ({describe_arguments(call.arguments)})" for call in calls)
    return f"{len(calls)} calls fit: {listed}. None needs the result of another, so they can run side by side."


def _answer(works: Sequence[tuple[Topic, _Work]], cards: Sequence[ToolCard]) -> str:
    parts: list[str] = []
    for topic, work in works:
        if topic.outcomes:
            parts.append(_report(topic, cards))
        parts += [*work.said, *dict.fromkeys(work.notes), *dict.fromkeys(work.questions)]
    return "\n\n".join(part for part in parts if part) or "There is nothing more to do for this."


def _images(works: Sequence[tuple[Topic, _Work]], earlier: Sequence[Entry]) -> tuple[Image, ...]:
    images = [image for topic, _ in works if _wants_images(topic) for o in topic.outcomes for image in o.images]
    if any(SHOWN_AGAIN in work.said for _, work in works):
        images += last_images(earlier)
    return tuple(image for image in images if can_show(image))


def _wants_images(topic: Topic) -> bool:
    return any(_SHOW.search(text) for text in topic.texts)


def _report(topic: Topic, cards: Sequence[ToolCard]) -> str:
    by_name = {card.name: card for card in cards}
    failed = {outcome.call.name for outcome in topic.outcomes if failure_of(outcome)}
    working: Mapping[str, str] = {name: example(by_name[name], cards) for name in failed if name in by_name}
    return report(topic.outcomes, working, show_images=_wants_images(topic))
