"""Exchange: one request to the model and what came back, for those who look inside.

While somebody observes, ``BackendCall`` makes one for each call of a backend and sets it as
``current_exchange``, where a backend that speaks HTTP adds what crossed the wire.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from yiemagent_nb.core.backend import LlmCall, OpenAIMessages
from yiemagent_nb.core.messages import AssistantMessage

__all__ = ["Exchange", "ExchangeObserver", "WireExchange", "current_exchange"]


def _as_it_is(text: str) -> str:
    return text


@dataclass(slots=True, eq=False)
class WireExchange:
    """One HTTP request that was made for an exchange, and its answer.

    Args:
        method: Such as ``POST``.
        url: Where to, without keys.
        headers: Name and value of each, in order; what is secret is masked.
        body: As it was sent.
        redacted: Masks keys in a text. What a server says may repeat one, so it goes through this.
        started: When it was sent, by ``time.perf_counter``.
        status: The answer's status; None where there was none.
        answer_headers: As ``headers``.
        pieces: The answer's body as it came.
        first: When the first piece came, by ``time.perf_counter``.
        ended: When the last one had come, or it broke off.
        error: What went wrong, in words.
    """

    method: str
    url: str
    headers: Sequence[tuple[str, str]] = ()
    body: bytes = b""
    redacted: Callable[[str], str] = _as_it_is
    started: float = field(default_factory=time.perf_counter)
    status: int | None = None
    answer_headers: Sequence[tuple[str, str]] = ()
    pieces: list[bytes] = field(default_factory=list[bytes], repr=False)
    first: float | None = None
    ended: float | None = None
    error: str = ""


@dataclass(slots=True, eq=False)
class Exchange:
    """One request to the model. It is filled while the answer comes, with what the backend gave.

    A hook around the backend may ask several times for one message, and may make something else of what
    it is given: each exchange has its own answer, and the message is what was made of them.

    Args:
        message_id: The id of the answer, as its events have it.
        llm_call: What was called.
        label: A short name of it.
        messages: What it was given, in OpenAI's form.
        options: The keywords beside: tools, model, thinking_level and further ones; keys among them are
            hidden.
        at: When it was sent, in seconds since 1970.
        started: The same by ``time.perf_counter``, as are ``first`` and ``ended``.
        first: When the first piece of the answer came.
        ended: When the answer was whole, or broke off, or nobody read on.
        response: What the backend gave, where it did not stream.
        pieces: What it gave, where it did, as far as it was read.
        answer: The message. Of several exchanges for one message, that one has it which the message was
            read from, else the last one.
        error: What the backend raised; else, with ``answer``, what is wrong with the message.
        wire: The HTTP requests that were made for it; empty where the backend makes none, or tells of none.
    """

    message_id: str
    llm_call: LlmCall
    label: str
    messages: OpenAIMessages
    options: Mapping[str, Any]
    at: float = field(default_factory=time.time)
    started: float = field(default_factory=time.perf_counter)
    first: float | None = None
    ended: float | None = None
    response: object = None
    pieces: list[Any] = field(default_factory=list[Any], repr=False)
    answer: AssistantMessage | None = None
    error: str = ""
    wire: list[WireExchange] = field(default_factory=list[WireExchange])


ExchangeObserver = Callable[[Exchange], None]
"""Told when a request goes out; what it is given is filled from then on."""

current_exchange: ContextVar[Exchange | None] = ContextVar("current_exchange", default=None)
"""The exchange that a backend works for, in its call and in each step of its answer; None elsewhere, and where
nobody observes."""
