"""What a row held, in texts to read: nothing in them is a key."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from yiemagent_nb.core.exchange import Exchange, WireExchange
from yiemagent_nb.core.json_values import clean_text, json_form
from yiemagent_nb.core.messages import AssistantMessage, ImageContent, ReasoningContent, TextContent, ToolCall
from yiemagent_nb.core.redaction import mask_keys
from yiemagent_nb.core.results import ToolResult
from yiemagent_nb.tracing.masking import bounded, joined_where_split, masked_beginning, payloads
from yiemagent_nb.tracing.requests import StoredRequest, size_of
from yiemagent_nb.tracing.rows import CallBody, ModelBody, Row, RunBody
from yiemagent_nb.tracing.timeline import seconds_in_words

__all__ = ["LONGEST", "Details", "Section", "WireDetails", "as_json", "details_of", "options_of", "tools_of"]

LONGEST = 200_000
"""Characters of a text that are shown."""

_LONGEST_KEY = 10_000
"""A key is no longer: a text is masked so far beyond its cut, that no half of one is left."""

_LONGEST_FACT = 1_000

_GONE = "What this row held was let go: the trace holds no more. Its figures stay."


@dataclass(frozen=True, slots=True)
class Section:
    """A text with what it is. ``left_out`` is how many characters more there are."""

    title: str
    language: str
    text: str
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class WireDetails:
    """An HTTP request and its answer, to read. ``left_out`` is how many bytes more there are, of both."""

    method: str
    url: str
    status: int | None
    headers: tuple[tuple[str, str], ...]
    body: str
    answer_headers: tuple[tuple[str, str], ...]
    answer: str
    seconds: float | None
    left_out: int = 0
    error: str = ""


@dataclass(frozen=True, slots=True)
class Details:
    """All that is known of a row: what was sent, what came back, and facts, each a label and a text."""

    request: list[Section] = field(default_factory=list[Section])
    response: list[Section] = field(default_factory=list[Section])
    facts: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    wire: list[WireDetails] = field(default_factory=list[WireDetails])
    error: str = ""


def details_of(row: Row) -> Details:
    """What a row held."""
    details = Details(error=mask_keys(row.error))
    details.facts.extend(_times(row))
    match row.body:
        case ModelBody() as body:
            _tell_model(body, details)
        case CallBody() as body:
            _tell_call(row, body, details)
        case RunBody() as body:
            _tell_run(body, details)
        case _:
            details.facts.append(("Left out", _GONE))
    return details


def as_json(value: object, *, indent: int | None = 2) -> str:
    """Anything as JSON text; keys that are hidden stay so."""
    return json.dumps(json_form(value), ensure_ascii=False, indent=indent)


def tools_of(exchange: Exchange) -> Sequence[Mapping[str, Any]]:
    """The tools that the model was offered."""
    return exchange.options.get("tools") or ()


def options_of(exchange: Exchange) -> dict[str, Any]:
    """The other keywords of a request, without what is none of the model's business."""
    left = {"tools", "signal"}
    options = {name: value for name, value in exchange.options.items() if name not in left and value is not None}
    model = options.get("model")
    if model is not None:
        options["model"] = getattr(model, "id", model)
    return options


def section(title: str, language: str, text: str) -> Section:
    """A text that is masked, and cut where it is too long."""
    shown, left_out = _shown(text)
    return Section(title, language, shown, left_out)


def _shown(text: str, limit: int = LONGEST) -> tuple[str, int]:
    text = clean_text(text)
    return masked_beginning(text, limit + _LONGEST_KEY)[:limit], max(0, len(text) - limit)


def _times(row: Row) -> list[tuple[str, str]]:
    facts: list[tuple[str, str]] = []
    if row.duration is not None:
        facts.append(("Took", seconds_in_words(row.duration)))
    if row.waited is not None:
        facts.append(("Waited", seconds_in_words(row.waited)))
    if row.first is not None:
        facts.append(("First token after", seconds_in_words(row.first)))
        if row.duration is not None:
            generated = max(row.duration - row.first, 1e-9)
            facts.append(("Generated for", seconds_in_words(generated)))
            if row.kind == "model" and row.tokens is not None and row.tokens.output > 1:
                facts.append(("Speed", f"{row.tokens.output / generated:,.1f} tokens/s"))
    if row.tokens is not None:
        cached = f", {row.tokens.cached:,} of them cached" if row.tokens.cached else ""
        facts.append(("Tokens", f"{row.tokens.input:,} in{cached}, {row.tokens.output:,} out"))
    if row.cost is not None:
        facts.append(("Cost", f"${row.cost:.6f}"))
    return facts


def _tell_model(body: ModelBody, details: Details) -> None:
    several = len(body.exchanges) > 1
    if not body.exchanges:
        details.facts.append(("Request", "Nothing was sent: it was stopped, or a hook failed, before that."))
    for number, (exchange, request) in enumerate(zip(body.exchanges, body.requests, strict=False), 1):
        which = f" of request {number}" if several else ""
        details.request.extend(_request_sections(exchange, request, which))
        details.wire.extend(_wire(wire) for wire in exchange.wire)
        details.facts.append((f"Backend{which}", mask_keys(exchange.label)))
        details.response.extend(_raw_sections(exchange, which))
        if several and exchange.error:
            details.facts.append((f"Error{which}", bounded(exchange.error, _LONGEST_FACT)))
    answer = body.answer
    if answer is not None:
        details.response[:0] = _answer_sections(answer)
        details.facts.append(("Ended", answer.stop_reason))
        if answer.raw_stop_reason and answer.raw_stop_reason != answer.stop_reason:
            details.facts.append(("The server's word for it", mask_keys(answer.raw_stop_reason)))
        for label, value in (("Model", answer.model), ("Provider", answer.provider), ("API", answer.api)):
            if value:
                details.facts.append((label, mask_keys(value)))
    if len(details.wire) > 1:
        details.facts.append(("HTTP requests", f"{len(details.wire)}, repetitions and looks among them"))


def _request_sections(exchange: Exchange, request: StoredRequest, which: str) -> list[Section]:
    sections = [_messages_section(f"Messages{which} ({len(request)})", request.messages)]
    tools = tools_of(exchange)
    if tools:
        sections.append(section(f"Tools{which} ({len(tools)})", "json", as_json(tools)))
    sections.append(section(f"Options{which}", "json", as_json(options_of(exchange))))
    return sections


def _messages_section(title: str, messages: Sequence[Mapping[str, Any]]) -> Section:
    """Messages as JSON. What is not shown is not made text."""
    texts: list[str] = []
    size = 0
    for message in messages:
        text = as_json(message)
        texts.append(text)
        size += len(text)
        if size > LONGEST + _LONGEST_KEY:
            break
    whole = section(title, "json", "[\n" + ",\n".join(texts) + "\n]" if texts else "[]")
    unread = sum(map(size_of, messages[len(texts) :]))
    return Section(title, "json", whole.text, whole.left_out + unread)


def _answer_sections(answer: AssistantMessage) -> list[Section]:
    sections: list[Section] = []
    reasoning = "".join(block.text for block in answer.content if isinstance(block, ReasoningContent))
    if reasoning:
        sections.append(section("Reasoning", "", reasoning))
    text = "".join(block.text for block in answer.content if isinstance(block, TextContent))
    if text:
        sections.append(section("Text", "markdown", text))
    for call in answer.content:
        if isinstance(call, ToolCall):
            given = call.raw_arguments if call.raw_arguments is not None else as_json(call.arguments)
            sections.append(section(f"Call of {call.name}", "json", given))
    images = sum(isinstance(block, ImageContent) for block in answer.content)
    if images:
        sections.append(Section("Images", "", f"{images} image{'s' if images > 1 else ''}"))
    return [*sections, section("Message", "json", as_json(answer))]


def _raw_sections(exchange: Exchange, which: str) -> list[Section]:
    if exchange.response is not None:
        return [section(f"As the backend gave it{which}", "json", as_json(exchange.response))]
    if not exchange.pieces:
        return []
    lines: list[str] = []
    size = 0
    for piece in exchange.pieces:
        line = as_json(piece, indent=None)
        lines.append(line)
        size += len(line) + 1
        if size > LONGEST + _LONGEST_KEY:
            break
    joined = joined_where_split(exchange.pieces[: len(lines)])
    if joined is not None:
        words = f"Pieces{which} ({len(exchange.pieces):,}, joined: a key stood across them)"
        return [section(words, "json", as_json(joined))]
    text, _ = _shown("\n".join(lines))
    left_out = size // len(lines) * len(exchange.pieces) - len(text) if len(lines) < len(exchange.pieces) else 0
    return [Section(f"Pieces{which} ({len(exchange.pieces):,})", "json", text, max(0, left_out))]


def _wire(wire: WireExchange) -> WireDetails:
    body, body_left = wire_text(wire, wire.body)
    answer, answer_left = wire_text(wire, b"".join(wire.pieces))
    return WireDetails(
        method=wire.method,
        url=mask_keys(wire.redacted(wire.url)),
        status=wire.status,
        headers=tuple((name, mask_keys(value)) for name, value in wire.headers),
        body=body,
        answer_headers=tuple((mask_keys(name), mask_keys(value)) for name, value in wire.answer_headers),
        answer=answer,
        seconds=None if wire.ended is None else wire.ended - wire.started,
        left_out=body_left + answer_left,
        error=mask_keys(wire.error),
    )


def wire_text(wire: WireExchange, content: bytes, limit: int = LONGEST) -> tuple[str, int]:
    """What crossed the wire as text without keys, and how many bytes of it are left out."""
    text = content[: 4 * (limit + 2 * _LONGEST_KEY)].decode("utf-8", "replace")

    def mask(text: str) -> str:
        return mask_keys(wire.redacted(text))

    joined = joined_where_split(payloads(text[: limit + _LONGEST_KEY]), mask)
    if joined is not None:
        text = f"(It came in pieces, which are shown joined: a key stood across them.)\n{as_json(joined)}"
    shown = masked_beginning(text, limit + _LONGEST_KEY, mask)[:limit]
    return shown, max(0, len(content) - len(shown.encode("utf-8", "replace"))) if len(content) > limit else 0


def _tell_call(row: Row, body: CallBody, details: Details) -> None:
    details.request.append(section("Arguments", "json", as_json(body.arguments)))
    if body.ran_with is not None and as_json(body.ran_with) != as_json(body.arguments):
        details.request.append(section("Arguments as they ran", "json", as_json(body.ran_with)))
    if body.result is not None:
        details.response.extend(_result_sections(body.result))
    elif row.duration is None:
        details.facts.append(("Result", "It has not ended."))
    if body.updates:
        details.facts.append(("Progress", f"{body.updates} report{'s' if body.updates > 1 else ''}"))
    if body.asked is not None:
        choice = "nobody has answered yet" if body.decided is None else body.decided.choice.replace("_", " ")
        reason = "" if body.decided is None or not body.decided.reason else f": {body.decided.reason}"
        details.facts.append(("Approval", mask_keys(f"{choice}{reason}")))
    if body.call_id:
        details.facts.append(("Call id", mask_keys(body.call_id)))


def _result_sections(result: ToolResult) -> list[Section]:
    sections: list[Section] = []
    text = result.text
    if text:
        sections.append(section("Error" if result.is_error else "Result", "", text))
    sections.extend(
        Section("Image", "", f"{block.mime_type}, {len(block.data) * 3 // 4:,} bytes")
        for block in result.content
        if isinstance(block, ImageContent)
    )
    if result.details is not None:
        sections.append(section("Details", "json", as_json(result.details)))
    return sections


def _tell_run(body: RunBody, details: Details) -> None:
    for message in body.said:
        details.request.append(section("Said", "markdown", message.text or "(an image)"))
    if body.answer is not None:
        details.response.extend(_answer_sections(body.answer)[:-1])
    if body.reason:
        details.facts.append(("Ended", body.reason))
