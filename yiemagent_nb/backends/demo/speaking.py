"""Speaking: results, errors and questions, put into sentences."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

from yiemagent_nb.backends.demo.conversation import Call, Image, Outcome, ToolCard
from yiemagent_nb.backends.demo.facts import Result
from yiemagent_nb.backends.demo.slots import ALL_KINDS, Slot

__all__ = [
    "QUESTION",
    "ask_for",
    "can_show",
    "describe_arguments",
    "describe_tool",
    "failure_of",
    "report",
    "show_value",
    "signature",
]

MAX_SHOWN = 1_500
"""Characters of a result that are repeated in the answer."""
MAX_TABLE = 5_000
MAX_VALUE = 80
MAX_IMAGE = 2_000_000
"""Characters of an image's base64 that are repeated in an answer."""
MAX_ROWS = 10
MAX_COLUMNS = 6
MAX_FIELDS = 12
MAX_CHOICES = 8
SENTENCE = 400

QUESTION = re.compile(r"To call `([^`\n]{1,200})` I need `([^`\n]{1,200})`")
"""How a question for a missing argument begins: the tool, and the first parameter."""

Failure = Literal["", "blocked", "aborted", "missing", "timeout", "unknown", "hook", "failed"]

_SHOWABLE = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64")
_CODE = re.compile(r"\s*\[([A-Z][A-Z_]{2,40})\]\s*\Z")
_CODES: Mapping[str, Failure] = {
    "EXECUTION_ABORTED": "aborted",
    "INVALID_PARAMETERS": "missing",
    "EXECUTION_TIMEOUT": "timeout",
    "TOOL_NOT_FOUND": "unknown",
    "HOOK_ERROR": "hook",
}
_BLOCKED = re.compile(
    r"\b(?:denied|blocked|forbidden|rejected|declined|refused)\b|\b(?:not|never)\s+(?:allow|allowed|permit|permitted|approved)\b",
    re.IGNORECASE,
)
_FAILED = re.compile(r"\A\s*(?:error\b|traceback\b|exception\b|failed\b|[A-Za-z]*(?:Error|Exception):)", re.IGNORECASE)
_EMPTY = frozenset({"", "(no output)", "done", "done.", "ok", "null", "none", "the images of this result follow."})
_ADVICE: Mapping[Failure, str] = {
    "blocked": "So it did not run, and I leave it at that.",
    "aborted": "Ask again whenever you like.",
    "missing": "Tell me the values once more, by name if you like: {example}.",
    "timeout": "You can ask again, or give the tool a longer `timeout`.",
    "unknown": "Ask me what tools there are to see which I can call.",
    "hook": "The hook needs a look; the tool itself did nothing wrong.",
    "failed": "You can ask again with other values: {example}.",
}


def show_value(value: Any) -> str:
    """A value, short enough for a sentence."""
    if isinstance(value, Result):
        return "the result"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=repr)
    text = " ".join(text.split())
    return text if len(text) <= MAX_VALUE else text[: MAX_VALUE - 1] + "…"


def describe_arguments(arguments: Mapping[str, Any]) -> str:
    """``a = 17, b = 25``."""
    return ", ".join(f"{name} = {show_value(value)}" for name, value in list(arguments.items())[:MAX_FIELDS])


def signature(card: ToolCard) -> str:
    """``name(a, b, unit=…)``: the parameters, those that can be left out marked."""
    parts = [slot.name if slot.required else f"{slot.name}=…" for slot in card.slots[:MAX_FIELDS]]
    return f"{card.name}({', '.join(parts)}{', …' if len(card.slots) > MAX_FIELDS else ''})"


def describe_tool(card: ToolCard, example: str) -> str:
    """What a tool does and takes."""
    lines = [f"**`{signature(card)}`**", "", card.summary or "It comes without a description."]
    if card.slots:
        lines.append("")
        lines += [f"- {_describe_slot(slot)}" for slot in card.slots[:MAX_FIELDS]]
    return "\n".join([*lines, "", f"For example: *{example}*"])


def _describe_slot(slot: Slot) -> str:
    kinds = [kind for kind in slot.kinds if kind != "null"]
    if slot.choices:
        kind = f"one of {_listed_choices(slot)}"
    else:
        kind = "anything" if len(slot.kinds) == len(ALL_KINDS) else " or ".join(kinds)
    about = f": {show_value(slot.description)}" if slot.description else ""
    return f"`{slot.name}` ({kind}{'' if slot.required else ', optional'}){about}"


def _listed_choices(slot: Slot) -> str:
    return ", ".join(f"`{show_value(choice)}`" for choice in slot.choices[:MAX_CHOICES])


def ask_for(card: ToolCard, missing: Sequence[Slot], known: Mapping[str, Any]) -> str:
    """A question for what is missing; nothing is made up."""
    names = [f"`{slot.name}`" for slot in missing[:3]]
    listed = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    have = f" I have {describe_arguments(known)}." if known else ""
    if len(missing) > 1:
        return f"To call `{card.name}` I need {listed}.{have} What should they be?"
    slot = missing[0]
    if slot.choices:
        return f"To call `{card.name}` I need {listed}: one of {_listed_choices(slot)}.{have} Which one?"
    if slot.kinds == ("boolean",):
        return f"To call `{card.name}` I need {listed}.{have} Yes or no?"
    about = f" ({show_value(slot.description).rstrip('.')})" if slot.description else ""
    if slot.slots and not about:
        about = f" (with {', '.join(f'`{part.name}`' for part in slot.slots[:MAX_CHOICES])})"
    return f"To call `{card.name}` I need {listed}{about}.{have} What should it be?"


def failure_of(outcome: Outcome) -> Failure:
    """What went wrong with a call; empty where nothing did, as far as its text says."""
    text = outcome.text[-2000:]
    if outcome.aborted:
        return "aborted"
    if code := _CODE.search(text):
        return _CODES.get(code.group(1), "failed")
    if len(outcome.text) <= SENTENCE and _BLOCKED.search(outcome.text):
        return "blocked"
    return "failed" if _FAILED.match(outcome.text[:200]) else ""


def report(outcomes: Sequence[Outcome], example: Mapping[str, str], *, show_images: bool) -> str:
    """What came back, in the order of the calls.

    Args:
        outcomes: Calls and their results.
        example: A request that works, by tool, for those that failed.
        show_images: The images follow in the answer, and are not only mentioned.
    """
    if len(outcomes) == 1:
        return _report_one(outcomes[0], example, show_images=show_images)
    texts = [_report_one(outcome, example, show_images=show_images) for outcome in outcomes]
    if all("\n" not in text for text in texts):
        return "\n".join(f"- {text}" for text in texts)
    return "\n\n".join(texts)


def _report_one(outcome: Outcome, example: Mapping[str, str], *, show_images: bool) -> str:
    failure = failure_of(outcome)
    call = outcome.call
    if failure:
        return _report_failure(outcome, failure, example.get(call.name, f"call {call.name} with …"))
    text = "" if outcome.text.strip().lower() in _EMPTY else outcome.text.strip()
    parts = [_report_text(call, text)] if text or not outcome.images else []
    if outcome.images:
        parts.append(_report_images(call, outcome.images, show=show_images))
    return "\n\n".join(parts)


def _with(call: Call) -> str:
    return f" ({describe_arguments(call.arguments)})" if call.arguments else ""


def _report_failure(outcome: Outcome, failure: Failure, example: str) -> str:
    call = outcome.call
    words = _CODE.sub("", outcome.text.strip())
    words = words if len(words) <= SENTENCE else words[: SENTENCE - 1] + "…"
    words = " ".join(words.split()) or "it gave no reason"
    words += "" if words.endswith((".", "!", "?", "…")) else "."
    verb = {"blocked": "was not run", "aborted": "was stopped"}.get(failure, "did not work")
    return f"`{call.name}`{_with(call)} {verb}: {words} {_ADVICE[failure].format(example=f'*{example}*')}"


def _report_text(call: Call, text: str) -> str:
    said = f"`{call.name}`{_with(call)} says"
    if not text:
        return f"`{call.name}`{_with(call)} is done."
    if block := _as_block(_parsed(text)):
        return f"{said}:\n\n{block}"
    if "\n" in text or len(text) > SENTENCE:
        is_table = re.search(r"^\|.*\|\s*$", text, re.MULTILINE) is not None and len(text) <= MAX_TABLE
        return f"{said}:\n\n{text if is_table else _fenced(text, 'text')}"
    if " " in text and text[-1] in ".!?":
        return f"{text} That is what `{call.name}` says{_with(call)}."
    shown = text if "*" in text or "`" in text else f"**{text}**"
    return f"`{call.name}` says {shown}{_with(call)}."


def _as_block(value: object) -> str:
    """Structured data as a list, a table, or JSON."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return _as_list(fields) or _fenced(json.dumps(fields, ensure_ascii=False, indent=2), "json")
    if isinstance(value, list):
        rows = cast("list[Any]", value)
        return _as_table(rows) or _fenced(json.dumps(rows, ensure_ascii=False, indent=2), "json")
    return ""


def _parsed(text: str) -> object:
    if text[:1] not in "{[":
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _is_flat(value: object) -> bool:
    return value is None or isinstance(value, str | int | float | bool)


def _cell(value: object) -> str:
    return show_value(value).replace("|", "\\|")


def _as_list(fields: Mapping[str, Any]) -> str:
    if not 0 < len(fields) <= MAX_FIELDS or not all(_is_flat(value) for value in fields.values()):
        return ""
    return "\n".join(f"- {show_value(name)}: **{show_value(value)}**" for name, value in fields.items())


def _as_table(rows: Sequence[Any]) -> str:
    shown = [cast("Mapping[str, Any]", row) for row in rows[:MAX_ROWS] if isinstance(row, dict)]
    columns = list(shown[0])[:MAX_COLUMNS] if shown and len(shown) == min(len(rows), MAX_ROWS) else []
    if not columns:
        return ""
    lines = [columns, ["---"] * len(columns), *([row.get(column, "") for column in columns] for row in shown)]
    more = f"\n\n{len(rows) - MAX_ROWS} more rows stand in the tool's card." if len(rows) > MAX_ROWS else ""
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines) + more


def _fenced(text: str, language: str) -> str:
    left = len(text) - MAX_SHOWN
    shown = text[:MAX_SHOWN] if left > 0 else text
    longest = max((len(run) for run in re.findall(r"`+", shown)), default=0)
    fence = "`" * max(3, longest + 1)
    more = f"\n\n{left} more characters stand in the tool's card." if left > 0 else ""
    return f"{fence}{language}\n{shown}\n{fence}{more}"


def _report_images(call: Call, images: Sequence[Image], *, show: bool) -> str:
    kinds = ", ".join(dict.fromkeys(image.kind for image in images if image.kind))
    what = f"{len(images)} images" if len(images) > 1 else "an image"
    what += f" ({kinds})" if kinds else ""
    if show and any(map(can_show, images)):
        return f"Here is what `{call.name}`{_with(call)} drew."
    stands = "they stand" if len(images) > 1 else "it stands"
    return f"`{call.name}`{_with(call)} gave {what}; {stands} in the tool's card above."


def can_show(image: Image) -> bool:
    """Whether an image can be repeated in an answer: a whole, valid data URL of a common kind."""
    head, _, data = image.url.partition(",")
    if not _SHOWABLE.fullmatch(head) or not data or len(data) > MAX_IMAGE:
        return False
    try:
        base64.b64decode(data, validate=True)
    except ValueError:
        return False
    return True
