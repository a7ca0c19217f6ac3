"""What people and models are told of approvals."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from yiemagent_nb.core.events import ApprovalChoice
from yiemagent_nb.core.tools import ToolAnnotations
from yiemagent_nb.core.validation import cut, format_names

__all__ = ["decision_words", "denied_before", "edit_note", "hint_words"]

LONGEST_NOTE = 4_000
"""Characters of edited arguments that the model is told whole; of longer ones, what changed."""

_DECISIONS: Mapping[ApprovalChoice, str] = {
    "allow_once": "it was allowed once",
    "allow_session": "it was allowed for this session",
    "allow_edited": "it was allowed with edited arguments",
    "deny": "it was denied",
}


def hint_words(annotations: ToolAnnotations) -> tuple[str, ...]:
    """What a tool says of itself, in words. Nothing is said of what it leaves open."""
    hints = {
        "destructive": annotations.destructive,
        "reaches things outside": annotations.open_world,
        "can be repeated": annotations.idempotent,
        "read-only by its own word": annotations.read_only,
    }
    return tuple(words for words, said in hints.items() if said)


def decision_words(choice: ApprovalChoice, reason: str) -> str:
    """How a request was answered."""
    return f"{_DECISIONS[choice]} ({cut(reason, 200)})" if reason else _DECISIONS[choice]


def denied_before(reason: str) -> str:
    """What the model is told when it makes a call again that was denied."""
    why = f" The reason was: {reason}" if reason else ""
    return f"The person denied this same call before, so it did not run and they were not asked again.{why}"


def edit_note(given: Mapping[str, Any], ran: Mapping[str, Any]) -> str:
    """What the model is told of arguments that a person changed; empty where they are the same."""
    if ran == given:
        return ""
    changed = {name: value for name, value in ran.items() if name not in given or given[name] != value}
    text = _json(ran)
    if len(text) <= LONGEST_NOTE:
        return f"Note: the person changed the arguments of this call. It was allowed with: {text}"
    left_out = format_names(name for name in given if name not in ran)
    return (
        "Note: the person changed the arguments of this call. It was allowed with these in place of yours: "
        f"{cut(_json(changed), LONGEST_NOTE)}{f', and without {left_out}' if left_out else ''}. "
        "All others are as you gave them."
    )


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=repr)
