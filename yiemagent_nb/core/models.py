"""Models, their prices, and thinking levels."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["THINKING_LEVELS", "Cost", "LlmModel", "ModelCost", "ThinkingLevel", "Usage", "nearest_thinking_level"]

ThinkingLevel = Literal["off", "minimal", "low", "medium", "high", "xhigh", "max"]

THINKING_LEVELS: tuple[ThinkingLevel, ...] = get_args(ThinkingLevel)
"""All levels, from none to most."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Cost(_Frozen):
    """What one answer cost, in US dollars, per part and in total."""

    input: float = 0.0
    output: float = 0.0
    cache_read: float = 0.0
    cache_write: float = 0.0
    total: float = 0.0


class Usage(_Frozen):
    """Tokens of one answer.

    ``input_tokens`` counts the whole prompt, with what was read from or written to a cache;
    ``output_tokens`` counts the whole answer, with its reasoning. ``total_tokens`` is their sum
    unless the server says otherwise.
    """

    input_tokens: int = Field(default=0, ge=0)
    output_tokens: int = Field(default=0, ge=0)
    cache_read_tokens: int = Field(default=0, ge=0)
    cache_write_tokens: int = Field(default=0, ge=0)
    reasoning_tokens: int = Field(default=0, ge=0)
    total_tokens: int = Field(
        default_factory=lambda data: data.get("input_tokens", 0) + data.get("output_tokens", 0), ge=0
    )
    cost: Cost | None = None


class ModelCost(_Frozen):
    """Prices in US dollars per million tokens."""

    input: float = Field(default=0.0, ge=0)
    output: float = Field(default=0.0, ge=0)
    cache_read: float = Field(default=0.0, ge=0)
    cache_write: float = Field(default=0.0, ge=0)

    def of(self, usage: Usage) -> Cost:
        """What ``usage`` costs. Cached tokens are part of the input and priced on their own.

        The cost of a part is its tokens times its price, divided by 1,000,000.
        """
        fresh = max(0, usage.input_tokens - usage.cache_read_tokens - usage.cache_write_tokens)
        parts = {
            "input": fresh * self.input / 1e6,
            "output": usage.output_tokens * self.output / 1e6,
            "cache_read": usage.cache_read_tokens * self.cache_read / 1e6,
            "cache_write": usage.cache_write_tokens * self.cache_write / 1e6,
        }
        return Cost(**parts, total=sum(parts.values()))


class LlmModel(_Frozen):
    """A model that a backend serves.

    ``context_window`` and ``max_tokens`` are numbers of tokens; ``loaded`` says whether the server
    has it in memory. Each is None where nobody says.
    """

    id: str = Field(min_length=1)
    name: str = ""
    provider: str = ""
    base_url: str = ""
    api: Literal["chat-completions", "responses"] = "chat-completions"
    reasoning: bool = False
    input: tuple[Literal["text", "image"], ...] = ("text",)
    cost: ModelCost = ModelCost()
    context_window: int | None = Field(default=None, gt=0)
    max_tokens: int | None = Field(default=None, gt=0)
    loaded: bool | None = None


def nearest_thinking_level(
    wanted: ThinkingLevel, available: Collection[ThinkingLevel], *, reasoning: bool = True
) -> ThinkingLevel:
    """The level to send: the wanted one, else the next higher, else the next lower that is there.

    Args:
        wanted: What the agent asks for.
        available: What the model has; ``off`` need not stand in it.
        reasoning: Whether the model can think at all; if not, the answer is ``off``.
    """
    if not reasoning:
        return "off"
    start = THINKING_LEVELS.index(wanted)
    for level in (*THINKING_LEVELS[start:], *reversed(THINKING_LEVELS[:start])):
        if level in available:
            return level
    return "off"
