from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from unit.strategies import usages

from yiemagent_nb.core.models import (
    THINKING_LEVELS,
    Cost,
    LlmModel,
    ModelCost,
    ThinkingLevel,
    Usage,
    nearest_thinking_level,
)

PRICES = ModelCost(input=3.0, output=15.0, cache_read=0.3, cache_write=3.75)


@pytest.mark.requirement("Y SP-007", "Y SP-008")
def test_a_plain_answer_costs_its_input_and_its_output() -> None:
    # 1,000 x $3 / 1e6 = $0.003; 200 x $15 / 1e6 = $0.003
    cost = PRICES.of(Usage(input_tokens=1000, output_tokens=200))
    assert cost.input == pytest.approx(0.003)
    assert cost.output == pytest.approx(0.003)
    assert (cost.cache_read, cost.cache_write) == (0.0, 0.0)
    assert cost.total == pytest.approx(0.006)


@pytest.mark.requirement("Y SP-007", "Y SP-008")
def test_cached_tokens_are_part_of_the_input_and_priced_on_their_own() -> None:
    # 12,000 in: 8,000 read at $0.30 = $0.0024, 3,000 written at $3.75 = $0.01125, 1,000 fresh at $3 = $0.003
    usage = Usage(input_tokens=12_000, output_tokens=1_000, cache_read_tokens=8_000, cache_write_tokens=3_000)
    cost = PRICES.of(usage)
    assert cost.cache_read == pytest.approx(0.0024)
    assert cost.cache_write == pytest.approx(0.01125)
    assert cost.input == pytest.approx(0.003)
    assert cost.output == pytest.approx(0.015)
    assert cost.total == pytest.approx(0.03165)


@pytest.mark.requirement("Y SP-008")
def test_reasoning_is_part_of_the_output_and_costs_nothing_more() -> None:
    assert PRICES.of(Usage(output_tokens=500, reasoning_tokens=400)) == PRICES.of(Usage(output_tokens=500))


@pytest.mark.requirement("Y SP-008")
def test_more_cached_tokens_than_input_make_no_negative_cost() -> None:
    cost = PRICES.of(Usage(input_tokens=10, cache_read_tokens=1_000_000))
    assert cost.input == 0.0
    assert cost.total == pytest.approx(0.3)


@pytest.mark.requirement("Y SP-008")
@given(usages, st.builds(ModelCost, input=st.floats(0, 1e3), output=st.floats(0, 1e3), cache_read=st.floats(0, 1e3)))
def test_the_total_is_the_sum_of_the_parts_and_never_negative(usage: Usage, prices: ModelCost) -> None:
    cost = prices.of(usage)
    parts = (cost.input, cost.output, cost.cache_read, cost.cache_write)
    assert min(parts) >= 0
    assert math.isclose(cost.total, sum(parts))


@pytest.mark.requirement("Y SP-008")
def test_a_model_without_prices_is_free() -> None:
    assert LlmModel(id="m").cost.of(Usage(input_tokens=10**9, output_tokens=10**9)) == Cost()


@pytest.mark.requirement("Y SP-008")
def test_total_tokens_are_the_sum_unless_the_server_says_otherwise() -> None:
    assert Usage(input_tokens=3, output_tokens=4).total_tokens == 7
    assert Usage(input_tokens=3, output_tokens=4, total_tokens=9).total_tokens == 9
    assert Usage().total_tokens == 0


@pytest.mark.requirement("Y SP-008")
@pytest.mark.parametrize("field", sorted(set(Usage.model_fields) - {"cost"}))
def test_a_negative_count_is_refused_by_name(field: str) -> None:
    with pytest.raises(ValidationError, match=field):
        Usage.model_validate({field: -1})


@pytest.mark.requirement("Y SP-007")
@pytest.mark.parametrize("field", sorted(ModelCost.model_fields))
@pytest.mark.parametrize("price", [-0.01, math.nan, math.inf, "much"])
def test_a_price_that_is_none_is_refused_by_name(field: str, price: object) -> None:
    with pytest.raises(ValidationError, match=field):
        ModelCost.model_validate({field: price})


@pytest.mark.requirement("Y SP-007")
def test_a_model_needs_only_its_id() -> None:
    model = LlmModel(id="gpt")
    assert (model.api, model.reasoning, model.input, model.context_window) == (
        "chat-completions",
        False,
        ("text",),
        None,
    )


@pytest.mark.requirement("Y SP-007")
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("id", ""),
        ("api", "completions"),
        ("input", ("audio",)),
        ("context_window", 0),
        ("max_tokens", -1),
        ("price", 1),
    ],
)
def test_a_wrong_field_of_a_model_is_refused_by_name(field: str, value: object) -> None:
    with pytest.raises(ValidationError, match=field):
        LlmModel.model_validate({"id": "m", field: value})


@pytest.mark.requirement("Y SP-007")
def test_models_are_immutable_and_come_back_from_json() -> None:
    model = LlmModel(id="m", cost=PRICES, reasoning=True, input=("text", "image"), max_tokens=5)
    with pytest.raises(ValidationError, match="frozen"):
        setattr(model, "id", "n")  # noqa: B010 - pyright knows that it cannot be set
    assert LlmModel.model_validate_json(model.model_dump_json()) == model


@pytest.mark.requirement("A SPEC-1.2")
@pytest.mark.parametrize(
    ("wanted", "available", "sent"),
    [
        ("medium", ("low", "medium", "high"), "medium"),
        ("minimal", ("low", "medium", "high"), "low"),
        ("off", ("low", "high"), "low"),
        ("off", ("off", "high"), "off"),
        ("max", ("low", "high"), "high"),
        ("xhigh", ("low", "max"), "max"),
        ("high", ("minimal",), "minimal"),
        ("high", (), "off"),
    ],
)
def test_a_missing_level_becomes_the_next_higher_else_the_next_lower(
    wanted: ThinkingLevel, available: tuple[ThinkingLevel, ...], sent: ThinkingLevel
) -> None:
    assert nearest_thinking_level(wanted, available) == sent


@pytest.mark.requirement("A SPEC-1.2")
@given(st.sampled_from(THINKING_LEVELS), st.sets(st.sampled_from(THINKING_LEVELS), min_size=1))
def test_no_level_that_is_there_lies_between_the_wanted_and_the_sent(
    wanted: ThinkingLevel, available: set[ThinkingLevel]
) -> None:
    rank = THINKING_LEVELS.index
    sent = nearest_thinking_level(wanted, available)
    assert sent in available
    higher = [level for level in available if rank(level) >= rank(wanted)]
    assert sent == (min(higher, key=rank) if higher else max(available, key=rank))


@pytest.mark.requirement("A SPEC-1.2")
@pytest.mark.parametrize("wanted", THINKING_LEVELS)
def test_a_model_without_reasoning_is_always_off(wanted: ThinkingLevel) -> None:
    assert nearest_thinking_level(wanted, THINKING_LEVELS, reasoning=False) == "off"
