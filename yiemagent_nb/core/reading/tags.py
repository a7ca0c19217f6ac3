"""Reasoning between tags in the text: ``<think>…</think>`` and its relatives, as they stream in.

Beside the tags that models are trained on, these are the channels of gpt-oss and Gemma 4, which
servers without a parser for them let through.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

__all__ = ["ThinkTags", "held_suffix", "split_lone_close"]

_TAGS = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<reasoning>", "</reasoning>"),
    ("<thought>", "</thought>"),
    ("[THINK]", "[/THINK]"),
    ("<seed:think>", "</seed:think>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("◁think▷", "◁/think▷"),
)
_CHANNELS = (
    ("<|channel|>analysis<|message|>", "<|end|>"),  # gpt-oss
    ("<|start|>assistant<|channel|>analysis<|message|>", "<|end|>"),
    ("<|channel>thought", "<channel|>"),  # Gemma 4
)
_OPENINGS = (*_TAGS, *_CHANNELS)
_SKIPPED = ("<|channel|>final<|message|>", "<|start|>assistant<|channel|>final<|message|>")
"""What stands between reasoning and answer, and is neither."""
_AT_THE_START = (*(opening for opening, _ in _OPENINGS), *_SKIPPED)


@cache
def _first_characters(markers: tuple[str, ...]) -> frozenset[str]:
    return frozenset(marker[0] for marker in markers)


def held_suffix(text: str, markers: Sequence[str]) -> int:
    """How many characters at the end of ``text`` may be the start of a marker."""
    markers = tuple(markers)
    first = _first_characters(markers)
    for at in range(max(0, len(text) - max(map(len, markers)) + 1), len(text)):
        if text[at] in first and any(marker.startswith(text[at:]) for marker in markers):
            return len(text) - at
    return 0


def split_lone_close(text: str) -> tuple[str, str] | None:
    """Split text whose opening tag stood in the prompt: ``reasoning</think>answer``; None if it is not so."""
    for opening, closing in _TAGS:
        reasoning, tag, answer = text.partition(closing)
        if tag and opening not in reasoning and reasoning.count("`") % 2 == 0:
            return reasoning.strip(), answer.lstrip()
    return None


class ThinkTags:
    """Splits text into reasoning and answer, whatever the pieces in which it comes.

    Tags count only where the answer starts, so that an answer may speak about them. White space
    around the tags is left out. ``settled`` says that no tag can come any more.
    """

    __slots__ = ("_after_tag", "_begun", "_close", "_held", "settled")

    def __init__(self) -> None:
        self.settled = False
        self._held = ""
        self._close = ""
        self._after_tag = False
        self._begun = False
        """Whether some reasoning came after the opening tag."""

    def feed(self, text: str) -> list[tuple[bool, str]]:
        """Take a piece; give back what is settled, each with whether it is reasoning."""
        out: list[tuple[bool, str]] = []
        self._held += text
        while self._held:
            step = self._inside if self._close else self._outside
            if not step(out):
                break
        return out

    def flush(self) -> list[tuple[bool, str]]:
        """What was held back, now that nothing more comes."""
        held, self._held = self._held, ""
        self.settled = True
        if self._close:
            held = held.rstrip() if self._begun else held.strip()
        elif self._after_tag:
            held = held.lstrip()
        return [(bool(self._close), held)] if held else []

    def _outside(self, out: list[tuple[bool, str]]) -> bool:
        start = self._held.lstrip()
        for opening, closing in _OPENINGS:
            if start.startswith(opening):
                self._held, self._close = start[len(opening) :], closing
                self._after_tag, self._begun = True, False
                return True
        for skipped in _SKIPPED:
            if start.startswith(skipped):
                self._held, self._after_tag = start[len(skipped) :], True
                return True
        if not any(opening.startswith(start) for opening in _AT_THE_START):
            out.append((False, start if self._after_tag else self._held))
            self._held = ""
            self.settled = True
        return False

    def _inside(self, out: list[tuple[bool, str]]) -> bool:
        if not self._begun:
            self._held = self._held.lstrip()
        before, tag, after = self._held.partition(self._close)
        if tag:
            self._held, self._close = after, ""
        else:
            settled = len(before) - held_suffix(before, (self._close,))
            self._held = before[len(before[:settled].rstrip()) :]
            before = before[:settled]
        if reasoning := before.rstrip():
            self._begun = True
            out.append((True, reasoning))
        return bool(tag)
