from __future__ import annotations

import dataclasses
import threading
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yiemagent_nb.core.errors import InvalidParametersError, RateLimitedError
from yiemagent_nb.core.limits import Limits, MessageMeter, Throttle


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def meter_of(**limits: Any) -> tuple[MessageMeter, Clock]:
    clock = Clock()
    chosen = Limits(**{"messages_per_session": None, "messages_per_minute": None, **limits})
    return MessageMeter(lambda: chosen, clock), clock


def refused(meter: MessageMeter, messages: int = 1) -> RateLimitedError:
    before = meter.count
    with pytest.raises(RateLimitedError) as caught:
        meter.admit(messages)
    assert meter.count == before, "a refused message was counted"
    return caught.value


@pytest.mark.requirement("A SPEC-9.1", "A SPEC-9.2")
def test_the_defaults_are_those_of_the_contract() -> None:
    assert dataclasses.asdict(Limits()) == {
        "messages_per_session": 1000,
        "messages_per_minute": 100,
        "concurrent_tool_calls": 10,
        "storage_reads_per_second": 1000,
        "storage_writes_per_second": 100,
        "max_turns": 50,
        "max_cost": None,
    }


FIELDS = [each.name for each in dataclasses.fields(Limits)]


@pytest.mark.requirement("A SPEC-9.1")
@pytest.mark.parametrize("name", FIELDS)
@pytest.mark.parametrize("value", [0, -1, float("nan"), "5", True, [1]], ids=repr)
def test_a_limit_that_is_none_is_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(InvalidParametersError, match=rf"Limits\.{name} must be .* greater than 0") as caught:
        Limits(**{name: value})
    assert "None to lift" in caught.value.hint


@pytest.mark.requirement("A SPEC-9.1")
@pytest.mark.parametrize("name", sorted(set(FIELDS) - {"max_cost"}))
def test_a_count_is_a_whole_number(name: str) -> None:
    with pytest.raises(InvalidParametersError, match="a whole number"):
        Limits(**cast("Any", {name: 1.5}))
    assert Limits(max_cost=0.01).max_cost == 0.01


@pytest.mark.requirement("A SPEC-9.1")
@pytest.mark.parametrize("name", FIELDS)
def test_any_limit_may_be_lifted(name: str) -> None:
    assert getattr(Limits(**{name: None}), name) is None


@pytest.mark.requirement("A SPEC-9.1", "A SPEC-9.2")
def test_the_limit_of_a_session_passes_with_a_reset() -> None:
    meter, clock = meter_of(messages_per_session=3)
    meter.admit(2)
    meter.admit()
    clock.now += 10_000
    error = refused(meter)
    assert "reached its 3 messages; nothing was sent" in error.message
    assert "reset()" in error.hint
    assert error.retry_after is None
    meter.reset()
    meter.admit(3)
    meter.reset(2)
    meter.admit()
    refused(meter)


@pytest.mark.requirement("A SPEC-9.1", "A SPEC-9.2")
def test_the_limit_of_a_minute_passes_when_the_error_says() -> None:
    meter, clock = meter_of(messages_per_minute=2)
    meter.admit()
    clock.now += 20
    meter.admit()
    error = refused(meter)
    assert error.retry_after == 40
    assert "Try again in 40 s" in error.hint
    clock.now += 39.9
    refused(meter)
    clock.now += 0.1
    meter.admit()
    assert refused(meter).retry_after == 20


@pytest.mark.requirement("A SPEC-9.1", "A SPEC-9.2")
def test_several_messages_are_counted_all_or_none() -> None:
    meter, clock = meter_of(messages_per_minute=3)
    meter.admit(2)
    clock.now += 1
    assert refused(meter, 2).retry_after == 59
    meter.admit(1)
    assert refused(meter, 3).retry_after == 60


@pytest.mark.requirement("A SPEC-9.2")
def test_more_messages_than_ever_pass_at_once_are_told_not_to_wait() -> None:
    meter, _ = meter_of(messages_per_minute=3)
    error = refused(meter, 4)
    assert error.retry_after is None
    assert "Send fewer at once" in error.hint


@pytest.mark.requirement("A SPEC-9.1")
def test_a_reset_does_not_lift_the_limit_of_a_minute() -> None:
    meter, _ = meter_of(messages_per_minute=1)
    meter.admit()
    meter.reset()
    refused(meter)


@pytest.mark.requirement("A SPEC-9.1")
def test_lifted_limits_let_everything_pass() -> None:
    meter, _ = meter_of()
    meter.admit(10**6)
    assert meter.count == 10**6


@pytest.mark.requirement("A SPEC-9.1")
def test_changed_limits_count_at_once() -> None:
    current = Limits(messages_per_minute=5)
    meter = MessageMeter(lambda: current, Clock())
    meter.admit(5)
    current = Limits(messages_per_minute=2)
    refused(meter)
    current = Limits(messages_per_minute=6)
    meter.admit()


@pytest.mark.requirement("A SPEC-9.1", "A SPEC-9.2")
@given(st.integers(1, 5), st.lists(st.tuples(st.floats(0, 40), st.integers(1, 4)), max_size=30))
def test_no_minute_ever_holds_more_messages_than_allowed(limit: int, steps: list[tuple[float, int]]) -> None:
    meter, clock = meter_of(messages_per_minute=limit)
    admitted: list[float] = []
    for pause, messages in steps:
        clock.now += pause
        try:
            meter.admit(messages)
        except RateLimitedError as error:
            if error.retry_after is None:
                assert messages > limit
                continue
            clock.now += error.retry_after + 1e-6
            meter.admit(messages)
        admitted += [clock.now] * messages
    for moment in admitted:
        assert sum(moment <= other < moment + 60 for other in admitted) <= limit


@pytest.mark.requirement("A SPEC-9.1")
def test_threads_together_are_admitted_no_more_than_allowed() -> None:
    meter, _ = meter_of(messages_per_session=100)
    admitted: list[int] = []

    def send() -> None:
        for _ in range(50):
            try:
                meter.admit()
            except RateLimitedError:
                continue
            admitted.append(1)

    threads = [threading.Thread(target=send) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(admitted) == meter.count == 100


class Sleeper:
    """A clock that goes on only by sleeping."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.waits: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.clock.now += seconds


@pytest.mark.requirement("A SPEC-9.1", "A SPEC-9.2")
def test_a_throttle_waits_and_refuses_nothing() -> None:
    sleeper = Sleeper()
    throttle = Throttle(2, sleeper.clock, sleeper.sleep)
    for _ in range(5):
        throttle.wait()
    assert sleeper.waits == [1.0, 1.0]


@pytest.mark.requirement("A SPEC-9.1")
def test_a_throttle_without_a_rate_never_waits() -> None:
    sleeper = Sleeper()
    throttle = Throttle(None, sleeper.clock, sleeper.sleep)
    for _ in range(5):
        throttle.wait()
    assert sleeper.waits == []


@pytest.mark.requirement("A SPEC-9.1", "A SPEC-9.2")
@given(st.integers(1, 4), st.lists(st.floats(0, 2), max_size=30))
def test_no_second_ever_holds_more_operations_than_the_rate(rate: int, pauses: list[float]) -> None:
    sleeper = Sleeper()
    throttle = Throttle(rate, sleeper.clock, sleeper.sleep)
    moments: list[float] = []
    for pause in pauses:
        sleeper.clock.now += pause
        throttle.wait()
        moments.append(sleeper.clock.now)
    for moment in moments:
        assert sum(moment <= other < moment + 1 - 1e-9 for other in moments) <= rate


@pytest.mark.requirement("A SPEC-9.1", "A SPEC-9.2")
async def test_coroutines_at_a_throttle_get_turns_one_after_the_other() -> None:
    clock = Clock()
    throttle = Throttle(1, clock)
    turns = [throttle._reserve() for _ in range(3)]  # pyright: ignore[reportPrivateUsage]
    assert turns == [0.0, 1.0, 2.0]
    clock.now += 3
    await throttle.wait_async()
