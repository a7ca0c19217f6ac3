"""What servers list at ``/v1/models``: OpenAI's form, and what each adds to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from yiemagent_nb.core.errors import MalformedResponseError
from yiemagent_nb.core.models import LlmModel, ModelCost
from yiemagent_nb.core.reading.fields import as_mapping
from yiemagent_nb.core.reading.server_errors import error_body, quote, server_error

__all__ = ["can_chat", "read_models", "shown_names"]

_CONTEXT_KEYS = (
    "max_model_len",  # vLLM
    "loaded_context_length",  # LM Studio
    "context_length",  # OpenRouter, Together
    "context_window",  # Groq
    "max_context_length",
)
_NO_CHAT = ("embed", "rerank", "whisper", "tts-")
_SHOWN = 5


def can_chat(model_id: str) -> bool:
    """Whether a model can chat, as far as its name tells."""
    return not any(word in model_id.lower() for word in _NO_CHAT)


def shown_names(models: Sequence[LlmModel]) -> str:
    """The names of the first few models, for a sentence."""
    return ", ".join([quote(model.id, 100) for model in models[:_SHOWN]] + ["…"] * (len(models) > _SHOWN))


def read_models(response: object, provider: str, base_url: str) -> list[LlmModel]:
    """The models in a list; those that cannot chat, by their name, come last.

    Raises:
        BackendError: It is an error, or no list of models.
    """
    fields = as_mapping(response)
    entries: object = response if fields is None else fields.get("data", fields.get("models"))
    if not isinstance(entries, list):
        if (error := error_body(response)) is not None:
            raise server_error(error)  # with status 200, as LM Studio answers at a wrong path
        raise MalformedResponseError(
            f"The list of models is {type(response).__name__} without data; expected OpenAI's list.",
            "Check the base URL: it usually ends in /v1.",
        )
    models = [
        _read_model(entry, provider, base_url)
        for each in cast("list[object]", entries)
        if (entry := as_mapping(each)) is not None and (entry.get("id") or entry.get("name"))
    ]
    return sorted(models, key=lambda model: not can_chat(model.id))


def _read_model(entry: Mapping[str, Any], provider: str, base_url: str) -> LlmModel:
    meta = as_mapping(entry.get("meta")) or {}
    context = next((value for key in _CONTEXT_KEYS if (value := _count(entry.get(key)))), None)
    parameters = entry.get("supported_parameters")
    reasoning = "reasoning" in cast("Sequence[object]", parameters) if isinstance(parameters, list) else True
    prices = as_mapping(entry.get("pricing")) or {}
    # What a list leaves out is no gift: cached tokens then cost what others do.
    fresh = _price(prices.get("prompt")) or 0.0
    read, write = _price(prices.get("input_cache_read")), _price(prices.get("input_cache_write"))
    return LlmModel(
        id=str(entry.get("id") or entry.get("name")),
        name=str(entry.get("name") or ""),
        provider=provider,
        base_url=base_url,
        reasoning=reasoning,
        context_window=context or _count(meta.get("n_ctx")) or _count(meta.get("n_ctx_train")),
        cost=ModelCost(
            input=fresh,
            output=_price(prices.get("completion")) or 0.0,
            cache_read=fresh if read is None else read,
            cache_write=fresh if write is None else write,
        ),
    )


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _price(value: object) -> float | None:
    """Dollars per million tokens, of OpenRouter's dollars per token; None where it is no price."""
    try:
        price = float(cast("str", value)) * 1e6
    except (TypeError, ValueError):
        return None
    return price if 0 <= price < float("inf") else None
