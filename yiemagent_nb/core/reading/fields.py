"""How one value of a model's answer is read, whichever server sent it.

Everything that reads answers stands on these: arguments, usage, stop reasons, reasoning, text.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NoReturn, cast

from yiemagent_nb.core.json_values import clean_text, json_form, read_json
from yiemagent_nb.core.messages import StopReason
from yiemagent_nb.core.models import Cost, ModelCost, Usage

__all__ = [
    "REASONING_FIELDS",
    "as_mapping",
    "clean_text",
    "clean_tool_name",
    "dump_json",
    "first_reasoning",
    "has_surrogates",
    "offered_name",
    "read_arguments",
    "read_call",
    "read_prices",
    "read_stop_reason",
    "read_usage",
    "text_of",
    "worse_stop",
]

REASONING_FIELDS = ("reasoning_content", "reasoning", "reasoning_text", "thinking")
"""The names under which servers send reasoning beside the text.

A ``ReasoningContent.signature`` remembers where the reasoning stood, so that it can go back there:

- one of these names: the text goes back under it, beside ``content``;
- a JSON object of ``{"reasoning_details": […]}``: these fields go back beside ``content``, unchanged;
- a JSON object with ``"type": "reasoning"``: an item of the Responses API, which goes back unchanged;
- None: the reasoning stood between tags in the text, and does not go back.
"""

_SURROGATE = re.compile("[\ud800-\udfff]")
_NAMESPACED = re.compile(r"(?:functions?|tools?|default_api)[.:/]([\w-]+?)(?::\d+)?")
_MAX_TOOL_NAME_MARKER = "<|"

_STOP_REASONS: Mapping[str, StopReason] = {
    "length": "length",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "model_length": "length",
    "model_context_window_exceeded": "length",
    "contextlengthreached": "length",
    "maxpredictedtokensreached": "length",
    "content_filter": "content_filter",
    "safety": "content_filter",
    "refusal": "content_filter",
    "recitation": "content_filter",
    "sensitive": "content_filter",
    "prohibited_content": "content_filter",
    "blocklist": "content_filter",
    "spii": "content_filter",
    "error": "error",
    "failed": "error",
    "network_error": "error",
    "insufficient_system_resource": "error",
    "malformed_function_call": "error",
    "unexpected_tool_call": "error",
    "function_call_filter": "error",
    "abort": "error",
    "cancelled": "error",
    "aborted": "aborted",
}


_SEVERITY: Mapping[StopReason, int] = {"error": 3, "aborted": 3, "length": 2, "content_filter": 1}


def as_mapping(value: object) -> Mapping[str, Any] | None:
    """``value`` where it is a mapping, or what its ``model_dump()`` gives; else None."""
    if type(value) is dict or isinstance(value, Mapping):  # the first is far quicker, and nearly always so
        return cast("Mapping[str, Any]", value)
    dump = getattr(value, "model_dump", None)
    if callable(dump) and not isinstance(value, type):
        dumped = dump()
        if isinstance(dumped, Mapping):
            return cast("Mapping[str, Any]", dumped)
    return None


def dump_json(value: object) -> str:
    """Compact JSON text; what JSON cannot hold becomes its ``json_form``."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=repr)
    except (TypeError, ValueError, RecursionError):  # keys that are no strings, or no end
        return json.dumps(json_form(value), ensure_ascii=False, separators=(",", ":"))


def has_surrogates(text: str) -> bool:
    """Whether halves of UTF-16 pairs stand in ``text``, which no encoding of Unicode can hold."""
    return not text.isascii() and _SURROGATE.search(text) is not None


def clean_tool_name(name: str) -> str:
    """A tool's name without the control tokens that some models leak behind it."""
    return clean_text(name.partition(_MAX_TOOL_NAME_MARKER)[0]).strip()


def offered_name(name: str, names: Collection[str]) -> str:
    """``name``, or the offered one in it: models put ``functions.`` before it and a number behind."""
    if name in names or (named := _NAMESPACED.fullmatch(name)) is None:
        return name
    return named[1] if named[1] in names else name


def text_of(value: object) -> str:
    """The text in a string, a text block, or a list of either; empty where there is none."""
    if isinstance(value, str):
        return value
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return "".join(map(text_of, cast("Sequence[object]", value)))
    if isinstance(value, Mapping):
        block = cast("Mapping[str, object]", value)
        for key in ("text", "thinking", "reasoning", "reasoning_content", "reasoning_text", "content", "summary"):
            if text := text_of(block.get(key)):
                return text
    return ""


def first_reasoning(fields: Mapping[str, Any]) -> tuple[str, str]:
    """The first non-empty reasoning beside the text and its field's name; two empty strings if none.

    Some servers send the same text under two names, so only one counts.
    """
    for name in REASONING_FIELDS:
        value = fields.get(name)
        if value and (text := text_of(value)):
            return text, name
    return "", ""


def _refuse_constant(constant: str) -> NoReturn:
    msg = f"{constant} is no JSON"
    raise ValueError(msg)


def _read_float(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refuse_constant(text)


def read_arguments(value: object) -> tuple[dict[str, Any], str | None]:
    """A call's arguments: the parsed object, and the text where it is no JSON object.

    Nothing, ``null`` and an empty list are an empty object; a string that decodes to a string is
    decoded once more; raw control characters in strings pass. What no encoder could write again, numbers beyond
    all bounds and endless nesting, is no JSON either. Exactly one of the two says something:
    arguments beside a text are always empty, never a parsed prefix.
    """
    text = value if isinstance(value, str) else dump_json(value)
    try:
        parsed = _parse(text)
        if isinstance(parsed, str):
            parsed = _parse(parsed)
        if parsed is None or parsed == []:
            return {}, None
        if isinstance(parsed, dict):
            return read_json(cast("object", parsed)), None
    except (ValueError, RecursionError):
        pass
    return {}, clean_text(text)


_decoder = json.JSONDecoder(strict=False, parse_constant=_refuse_constant, parse_float=_read_float)


def _parse(text: str) -> object:
    return _decoder.decode(text) if text.strip() else None


def read_call(call: Mapping[str, Any]) -> tuple[str, str, object]:
    """A call's id, name and arguments, as text or as an object, in any of the known forms.

    Known are OpenAI's ``function`` object, a flat block with ``arguments``, ``args``, ``input`` or
    ``parameters``, the Responses API's item with its ``call_id``, Cohere's ``tool_name``, and this
    package's ``ToolCall``.
    """
    inner = call.get("function")
    fields = cast("Mapping[str, Any]", inner) if isinstance(inner, Mapping) else call
    call_id = call.get("call_id") or call.get("id") or call.get("tool_call_id")
    name = fields.get("name") or (inner if isinstance(inner, str) else fields.get("tool_name"))
    arguments = call.get("raw_arguments")
    for key in ("arguments", "args", "input", "parameters"):
        if arguments is not None:
            break
        arguments = fields.get(key)
    return str(call_id) if call_id else "", name if isinstance(name, str) else "", arguments


_NO_COUNT = 2**53
"""No server counts so many tokens, or takes so many dollars; numbers from here on are not exact everywhere."""


def _count(usage: Mapping[str, Any], names: Iterable[str]) -> int | None:
    """The first count among ``names``; a dot goes into a nested object."""
    for name in names:
        outer, _, inner = name.partition(".")
        value: object = usage.get(outer)
        if inner:
            value = cast("Mapping[str, object]", value).get(inner) if isinstance(value, Mapping) else None
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _NO_COUNT:
            return int(value)
    return None


_INPUT = ("prompt_tokens", "input_tokens", "inputTokens", "promptTokens", "prompt_eval_count")
_OUTPUT = ("completion_tokens", "output_tokens", "outputTokens", "completionTokens", "eval_count")
_TOTAL = ("total_tokens", "totalTokens")
_CACHE_READ = (
    "prompt_tokens_details.cached_tokens",
    "input_tokens_details.cached_tokens",
    "prompt_cache_hit_tokens",
    "cached_tokens",
    "cache_read_input_tokens",
    "cache_read_tokens",
    "cacheReadTokens",
    "cachedInputTokens",
)
_CACHE_WRITE = (
    "cache_creation_input_tokens",
    "prompt_tokens_details.cache_write_tokens",
    "input_tokens_details.cache_write_tokens",
    "cache_write_tokens",
    "cacheWriteTokens",
)
_REASONING = (
    "completion_tokens_details.reasoning_tokens",
    "output_tokens_details.reasoning_tokens",
    "reasoning_tokens",
    "reasoningTokens",
)


def read_usage(value: object) -> Usage | None:
    """Usage under any of its names; None where neither input nor output is known.

    A cost that the server states becomes ``cost``.
    """
    if isinstance(value, Usage):
        return value
    if not isinstance(value, Mapping):
        return None
    usage = cast("Mapping[str, Any]", value)
    input_tokens, output_tokens = _count(usage, _INPUT), _count(usage, _OUTPUT)
    if input_tokens is None and output_tokens is None:
        return None
    cache_read, cache_write = _count(usage, _CACHE_READ) or 0, _count(usage, _CACHE_WRITE) or 0
    if "prompt_tokens" not in usage and ("cache_read_input_tokens" in usage or "cache_creation_input_tokens" in usage):
        # Anthropic's own names: there the input leaves the cached tokens out.
        input_tokens = (input_tokens or 0) + cache_read + cache_write
    counts: dict[str, Any] = {
        "input_tokens": input_tokens or 0,
        "output_tokens": output_tokens or 0,
        "cache_read_tokens": cache_read,
        "cache_write_tokens": cache_write,
        "reasoning_tokens": _count(usage, _REASONING) or 0,
    }
    total = _count(usage, _TOTAL)
    if total is not None:
        counts["total_tokens"] = total
    return Usage(**counts, cost=_read_cost(usage))


def _dollars(value: object) -> float | None:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _NO_COUNT:
        return float(value)
    return None


def _read_cost(usage: Mapping[str, Any]) -> Cost | None:
    """The cost that a server states: OpenRouter's number, or Perplexity's object with a total.

    Source: OpenRouter's documentation, "Usage Accounting". Where a request went through a key of
    one's own (``is_byok``), its ``cost`` is OpenRouter's fee alone, and the provider charges
    ``upstream_inference_cost`` besides.
    """
    stated: object = usage.get("cost")
    if isinstance(stated, Mapping):
        stated = cast("Mapping[str, object]", stated).get("total_cost")
    total = _dollars(stated)
    details = usage.get("cost_details")
    if total is not None and usage.get("is_byok") is True and isinstance(details, Mapping):
        total += _dollars(cast("Mapping[str, object]", details).get("upstream_inference_cost")) or 0.0
    return None if total is None else Cost(total=total)


def read_prices(value: object) -> ModelCost | None:
    """Prices in dollars per million tokens, of a ``ModelCost`` or a mapping; None where there are none."""
    if isinstance(value, ModelCost):
        return value
    if not isinstance(value, Mapping):
        return None
    stated = cast("Mapping[str, object]", value)
    prices = {name: price for name in ModelCost.model_fields if (price := _dollars(stated.get(name))) is not None}
    return ModelCost(**prices) if prices else None


def read_stop_reason(raw: str | None, *, has_calls: bool) -> StopReason:
    """What a server's word for the end means, or the word before a colon.

    Errors come first, then a cut by length, then calls, whatever the server says, then filters.
    """
    stop = _stop_of(raw)
    if stop in {"error", "aborted", "length"}:
        return stop
    return "tool_calls" if has_calls else stop


def _stop_of(raw: str | None) -> StopReason:
    return _STOP_REASONS.get(raw.partition(":")[0].strip().lower(), "end_turn") if raw else "end_turn"


def worse_stop(first: str | None, second: str) -> str:
    """Which of two words for the end counts: an error or a cut stays one, else the second."""
    return first if first and _SEVERITY.get(_stop_of(first), 0) > _SEVERITY.get(_stop_of(second), 0) else second
