"""Tool calls that a model writes into its text, because its server has no parser for them.

Known forms, by the models that write them:

- Hermes, Qwen: ``<tool_call>{"name": …, "arguments": {…}}</tool_call>``; Qwen Coder and Seed put
  ``<function=name><parameter=key>value</parameter></function>`` in it, GLM ``name`` and pairs of
  ``<arg_key>``, ``<arg_value>``;
- Mistral: ``[TOOL_CALLS][{…}, …]`` and ``[TOOL_CALLS]name[ARGS]{…}``;
- Llama: the bare object with ``parameters`` as the whole text, also after ``<|python_tag|>``;
  ``<function=name>{…}</function>``; ``[name(key="value")]`` as the whole text; LFM2 and OLMo the
  same between tags;
- Granite and Phi: ``<|tool_call|>[{…}]`` and ``functools[{…}]``; Jamba, Hunyuan, Nemotron and Cohere
  lists of objects between tags of theirs;
- DeepSeek and Kimi: their control tokens around a name and an object;
- MiniMax, DeepSeek since 3.2: ``<invoke name="…"><parameter name="…">…</parameter></invoke>``;
- Gemma: ``call:name{key:value}`` between tokens;
- gpt-oss: ``<|channel|>commentary to=functions.name <|constrain|>json<|message|>{…}``.

A call counts only if its tool was offered and it does not stand in a code fence or in backticks;
all else stays text. ``text_call_forms`` reads what stands behind a marker.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from yiemagent_nb.core.reading.tags import held_suffix
from yiemagent_nb.core.reading.text_call_forms import TextCall, calls_after, whole_text_calls

__all__ = ["TextCall", "TextCalls", "split_text_calls"]

_MARKERS = (
    "<tool_call>",
    "<tool_calls>",
    "<TOOLCALL>",
    "<function_call>",
    "<function_calls>",
    "<minimax:tool_call>",
    "<seed:tool_call>",
    "[TOOL_CALLS]",
    "<|python_tag|>",
    "<|python_start|>",
    "<function=",
    "<invoke name=",
    "<|tool_call|>",
    "<|tool_call_start|>",
    "<|tool_call>",
    "<start_function_call>",
    "<|START_ACTION|>",
    "functools[",
    "<｜tool▁calls▁begin｜>",  # noqa: RUF001 - the model's own characters
    "<｜tool▁call▁begin｜>",  # noqa: RUF001
    "<｜DSML｜function_calls>",  # noqa: RUF001
    "<|tool_calls_section_begin|>",
    "<|tool_call_begin|>",
    "<|start|>assistant<|channel|>commentary",
    "<|start|>assistant to=",
    "<|channel|>commentary",
    "<|channel|>analysis to=",
    "commentary to=",
)
_MAX_TRIES = 100
"""So many markers are looked at behind which no call stands; each look may go through the whole text."""
_MARKER = re.compile("|".join(map(re.escape, _MARKERS)))


def _quoted(text: str, position: int) -> bool:
    """Whether code fences or backticks are open at ``position``."""
    before = text[:position]
    return before.count("```") % 2 == 1 or (before.rpartition("\n")[2].replace("```", "").count("`") % 2 == 1)


def split_text_calls(text: str, names: Collection[str], start: int = 0) -> list[str | TextCall]:
    """Split ``text`` from ``start`` on into what stays text and the calls in it, in their order.

    Args:
        text: The whole text; what stands before ``start`` only says whether a fence is open.
        names: The tools that were offered.
        start: Where to begin.
    """
    if not text[:start].strip() and (calls := whole_text_calls(text[start:], names)):
        return list(calls)
    parts: list[str | TextCall] = []
    shown = position = start
    tries = _MAX_TRIES
    while tries and (match := _MARKER.search(text, position)) is not None:
        position = match.end()
        tries -= 1
        if _quoted(text, match.start()):
            continue
        found = calls_after(match[0], text, match.start(), match.end(), names)
        if found is None:
            continue
        between = text[shown : match.start()]
        if between.strip():
            parts.append(between)
        parts += found[0]
        shown = position = found[1]
        tries = _MAX_TRIES
    rest = text[shown:]
    if rest.strip() or not parts:
        parts.append(rest)
    return parts


class TextCalls:
    """Holds back text in which a call may stand, until it can be told.

    Args:
        names: The tools that were offered.
    """

    __slots__ = ("_held", "_holding", "_names", "_shown")

    def __init__(self, names: Collection[str]) -> None:
        self._names = frozenset(names)
        self._shown: list[str] = []
        self._held = ""
        self._holding = False

    def feed(self, text: str) -> str:
        """Take a piece; give back what can be shown at once."""
        self._held += text
        if self._holding:
            return ""
        if not self._shown:
            start = self._held.lstrip()
            if not start or start[0] in "{[":
                self._holding = bool(start)
                return ""
        match = _MARKER.search(self._held)
        if match is not None:
            self._holding = True
            cut = match.start()
        else:
            cut = len(self._held) - held_suffix(self._held, _MARKERS)
        shown, self._held = self._held[:cut], self._held[cut:]
        if shown:
            self._shown.append(shown)
        return shown

    def flush(self) -> list[str | TextCall]:
        """What was held back, told apart now that the text is whole."""
        if not self._held:
            return []
        before = "".join(self._shown)
        parts = split_text_calls(before + self._held, self._names, len(before))
        self._shown.append(self._held)
        self._held, self._holding = "", False
        return parts
