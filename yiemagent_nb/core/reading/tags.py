"""Reasoning between tags in the text: ``<think>…</think>`` and its relatives, as they stream in."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["ThinkTags", "held_suffix", "split_lone_close"]

_TAGS = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<reasoning>", "</reasoning>"),
    ("[THINK]", "[/THINK]"),
)


def held_suffix(text: str, markers: Iterable[str]) -> int:
    """How many characters at the end of ``text`` may be the start of a marker."""
    longest = 0
    for marker in markers:
        for length in range(min(len(marker) - 1, len(text)), longest, -1):
            if text.endswith(marker[:length]):
                longest = length
                break
    return longest


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
        for opening, closing in _TAGS:
            if start.startswith(opening):
                self._held, self._close = start[len(opening) :], closing
                self._after_tag, self._begun = True, False
                return True
        if not any(opening.startswith(start) for opening, _ in _TAGS):
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
