from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yiemagent_nb.core.errors import AgentBusyError, InvalidParametersError
from yiemagent_nb.core.events import AgentError, AgentStart, Event, MessageUpdate, Trace, TurnStart
from yiemagent_nb.core.hub import Hub
from yiemagent_nb.core.signal import AbortSignal

SIGNAL = AbortSignal()


def note(number: int) -> AgentError:
    return AgentError("NOTE", str(number))


def update(delta: str, offset: int, **fields: Any) -> MessageUpdate:
    place: dict[str, Any] = {"message_id": "m", "kind": "text", "block": 0, **fields}
    return MessageUpdate(**place, delta=delta, offset=offset)


def publish(hub: Hub, *events: Event) -> None:
    for event in events:
        hub.publish(event, SIGNAL)


async def idle(hub: Hub) -> None:
    async with asyncio.timeout(5):
        await hub.flush()


class Seen:
    """A listener, sync by ``take`` and async by ``take_async``, that keeps what it is told."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def take(self, event: Event, _signal: AbortSignal) -> None:
        self.events.append(event)

    async def take_async(self, event: Event, _signal: AbortSignal) -> None:
        await asyncio.sleep(0)
        self.events.append(event)

    @property
    def texts(self) -> list[str]:
        return [event.message for event in self.events if isinstance(event, AgentError)]


class Slow(Seen):
    """An async listener that handles nothing until it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()

    async def take_async(self, event: Event, _signal: AbortSignal) -> None:
        await self.gate.wait()
        self.events.append(event)


# --- Order -------------------------------------------------------------------------------------


@pytest.mark.requirement("A FR-004", "A SPEC-5.2")
def test_sync_listeners_are_called_inline_and_in_order() -> None:
    hub, told = Hub(), list[str]()
    hub.subscribe(lambda event, _: told.append(f"first {cast('AgentError', event).message}"))
    hub.subscribe(lambda event, _: told.append(f"second {cast('AgentError', event).message}"))
    publish(hub, note(1), note(2))
    assert told == ["first 1", "second 1", "first 2", "second 2"]


@pytest.mark.requirement("A FR-004", "A SPEC-5.2")
def test_listeners_get_the_signal_of_the_run() -> None:
    hub, signals = Hub(), list[AbortSignal]()
    hub.subscribe(lambda _, signal: signals.append(signal))
    publish(hub, note(1))
    assert signals == [SIGNAL]


@pytest.mark.requirement("A FR-004", "A SPEC-5.2")
def test_an_event_that_a_listener_causes_comes_after_its_cause_for_everyone() -> None:
    hub, before, after = Hub(), Seen(), Seen()

    def cause(event: Event, signal: AbortSignal) -> None:
        if isinstance(event, AgentStart):
            hub.publish(note(1), signal)
            hub.publish(note(2), signal)

    hub.subscribe(before.take)
    hub.subscribe(cause)
    hub.subscribe(after.take)
    publish(hub, AgentStart(), TurnStart())
    assert before.events == after.events == [AgentStart(), note(1), note(2), TurnStart()]


@pytest.mark.requirement("A FR-004", "A SPEC-5.2")
async def test_async_listeners_get_all_events_in_order() -> None:
    hub, seen = Hub(), Seen()
    hub.subscribe(seen.take_async)
    events = [note(number) for number in range(50)]
    publish(hub, *events[:25])
    await asyncio.sleep(0)
    publish(hub, *events[25:])
    await idle(hub)
    assert seen.events == events


class Callable_:  # noqa: N801 - named as what it is
    def __init__(self, seen: Seen) -> None:
        self._seen = seen

    async def __call__(self, event: Event, signal: AbortSignal) -> None:
        await self._seen.take_async(event, signal)


def as_coroutine(seen: Seen) -> Callable[..., Awaitable[None]]:
    def listen(event: Event, signal: AbortSignal) -> Awaitable[None]:
        return seen.take_async(event, signal)

    return listen


def as_partial(seen: Seen) -> Callable[..., Awaitable[None]]:
    return functools.partial(seen.take_async)


def as_future(seen: Seen) -> Callable[..., Awaitable[None]]:
    def listen(event: Event, signal: AbortSignal) -> Awaitable[None]:
        return asyncio.ensure_future(seen.take_async(event, signal))

    return listen


@pytest.mark.requirement("A FR-004", "A SPEC-5.2")
@pytest.mark.parametrize("make", [Callable_, as_coroutine, as_partial, as_future])
async def test_every_kind_of_async_listener_is_told_in_order(make: Callable[[Seen], Any]) -> None:
    hub, seen = Hub(), Seen()
    hub.subscribe(make(seen))
    events = [note(number) for number in range(10)]
    publish(hub, *events)
    await idle(hub)
    assert seen.events == events


@pytest.mark.requirement("A FR-004", "A SPEC-5.2", "Y SD-007")
async def test_a_slow_listener_delays_nobody() -> None:
    hub, slow, quick, inline = Hub(), Slow(), Seen(), Seen()
    hub.subscribe(slow.take_async)
    events = [note(number) for number in range(20)]
    heard_all = asyncio.Event()

    async def listen(event: Event, signal: AbortSignal) -> None:
        await quick.take_async(event, signal)
        if quick.events == events:
            heard_all.set()

    hub.subscribe(listen)
    hub.subscribe(inline.take)
    publish(hub, *events)
    assert inline.events == events
    async with asyncio.timeout(5):
        await heard_all.wait()
    assert slow.events == []
    slow.gate.set()
    await idle(hub)
    assert slow.events == events


@pytest.mark.requirement("A FR-004", "A SPEC-5.2")
async def test_a_lagging_listener_gets_the_deltas_of_a_block_as_one() -> None:
    hub, slow = Hub(), Slow()
    hub.subscribe(slow.take_async)
    publish(hub, AgentStart())
    await asyncio.sleep(0)  # it now waits inside the first event
    publish(hub, update("a", 0), update("b", 1), update("c", 2), TurnStart(), update("d", 3), update("e", 4))
    slow.gate.set()
    await idle(hub)
    assert slow.events == [AgentStart(), update("abc", 0), TurnStart(), update("de", 3)]


@pytest.mark.requirement("A FR-004", "A SPEC-5.2")
@pytest.mark.parametrize(
    "other",
    [
        {"block": 1},
        {"kind": "reasoning"},
        {"message_id": "n"},
        {"kind": "tool_call", "tool_call_id": "c", "tool_name": "f"},
    ],
    ids=repr,
)
async def test_deltas_of_different_blocks_are_never_merged(other: dict[str, Any]) -> None:
    hub, slow = Hub(), Slow()
    hub.subscribe(slow.take_async)
    events = [AgentStart(), update("a", 0), update("b", 0, **other), update("c", 1)]
    publish(hub, *events)
    slow.gate.set()
    await idle(hub)
    assert slow.events == events


@pytest.mark.requirement("A FR-004", "A SPEC-5.2", "Y SD-007")
@given(st.lists(st.sampled_from(["text", "reasoning", "note", "breathe"]), max_size=40))
def test_merging_loses_no_character_and_no_other_event(steps: list[str]) -> None:
    async def run() -> tuple[list[Event], list[Event]]:
        hub, seen, published = Hub(), Seen(), list[Event]()
        hub.subscribe(seen.take_async)
        lengths = {"text": 0, "reasoning": 0}
        for number, step in enumerate(steps):
            if step == "breathe":
                await asyncio.sleep(0)
                continue
            event: Event = note(number)
            if step != "note":
                event = update(f"{number} ", lengths[step], kind=step, block=int(step == "text"))
                lengths[step] += len(event.delta)
            published.append(event)
            publish(hub, event)
        await idle(hub)
        return published, seen.events

    published, seen = asyncio.run(run())
    assert [each for each in seen if isinstance(each, AgentError)] == [
        each for each in published if isinstance(each, AgentError)
    ]
    for kind in ("text", "reasoning"):
        pieces = [each for each in seen if isinstance(each, MessageUpdate) and each.kind == kind]
        whole = "".join(each.delta for each in published if isinstance(each, MessageUpdate) and each.kind == kind)
        assert "".join(piece.delta for piece in pieces) == whole
        assert all(whole[piece.offset :].startswith(piece.delta) for piece in pieces)


# --- Coming and going --------------------------------------------------------------------------


@pytest.mark.requirement("A FR-004", "A SPEC-5.2")
async def test_an_unsubscribed_listener_hears_nothing_more() -> None:
    hub, inline, queued = Hub(), Seen(), Seen()
    leave = [hub.subscribe(inline.take), hub.subscribe(queued.take_async)]
    publish(hub, note(1))
    await idle(hub)
    for each in (*leave, *leave):
        each()
    publish(hub, note(2))
    await idle(hub)
    assert inline.events == queued.events == [note(1)]


@pytest.mark.requirement("A FR-004", "A SPEC-5.2")
def test_a_listener_that_is_unsubscribed_during_a_delivery_is_not_told_of_it() -> None:
    hub, later = Hub(), Seen()
    hub.subscribe(lambda _event, _signal: leave())
    leave = hub.subscribe(later.take)
    publish(hub, note(1))
    assert later.events == []


@pytest.mark.requirement("A FR-004", "A SPEC-5.2")
async def test_what_waits_for_an_unsubscribed_listener_is_dropped() -> None:
    hub, slow = Hub(), Slow()
    leave = hub.subscribe(slow.take_async)
    publish(hub, note(1), note(2), note(3))
    await asyncio.sleep(0)
    leave()
    slow.gate.set()
    for _ in range(5):
        await asyncio.sleep(0)
    assert slow.events == [note(1)]


@pytest.mark.requirement("A FR-004", "A SPEC-5.2")
def test_a_listener_that_subscribes_during_a_delivery_hears_the_next_event() -> None:
    hub, new = Hub(), Seen()
    hub.subscribe(lambda event, _: hub.subscribe(new.take) if isinstance(event, AgentStart) else None)  # type: ignore[arg-type,return-value]  # pyright: ignore[reportArgumentType]
    publish(hub, AgentStart(), note(1))
    assert new.events == [note(1)]


@pytest.mark.requirement("A FR-004", "A SPEC-5.2")
def test_one_function_may_listen_twice_and_leave_once() -> None:
    hub, seen = Hub(), Seen()
    leave = hub.subscribe(seen.take)
    hub.subscribe(seen.take)
    leave()
    publish(hub, note(1))
    assert seen.events == [note(1)]


@pytest.mark.requirement("A SPEC-7.1")
@pytest.mark.parametrize("value", [None, 5, "print"])
def test_a_listener_or_sink_that_cannot_be_called_is_refused(value: Any) -> None:
    with pytest.raises(InvalidParametersError, match=r"A listener is a function \(event, signal\), not"):
        Hub().subscribe(value)
    if value is not None:
        with pytest.raises(InvalidParametersError, match=r"An event sink is a function \(event\), not"):
            Hub().set_sink(value)


# --- Waiting -----------------------------------------------------------------------------------


@pytest.mark.requirement("A FR-004")
async def test_flush_waits_for_async_listeners_and_the_sink() -> None:
    hub, listener, sink = Hub(), Seen(), Seen()

    async def async_sink(event: Event) -> None:
        await sink.take_async(event, SIGNAL)

    hub.subscribe(listener.take_async)
    hub.set_sink(async_sink)
    publish(hub, note(1), note(2))
    await idle(hub)
    assert listener.events == sink.events == [note(1), note(2)]


@pytest.mark.requirement("A FR-004")
async def test_flush_inside_a_listener_is_refused_instead_of_hanging() -> None:
    hub, errors = Hub(), list[Exception]()

    async def listen(_event: Event, _signal: AbortSignal) -> None:
        try:
            await hub.flush()
        except AgentBusyError as error:
            errors.append(error)

    hub.subscribe(listen)
    publish(hub, note(1))
    await idle(hub)
    assert "would wait for that listener itself" in str(errors[0])


@pytest.mark.requirement("A FR-004")
def test_what_was_published_before_any_loop_ran_is_delivered_by_the_next_flush() -> None:
    hub, seen = Hub(), Seen()
    hub.subscribe(seen.take_async)
    publish(hub, note(1))
    asyncio.run(idle(hub))
    assert seen.events == [note(1)]


@pytest.mark.requirement("A FR-004")
def test_a_listener_whose_loop_ended_goes_on_with_the_next_one() -> None:
    hub, seen = Hub(), Seen()
    hub.subscribe(seen.take_async)

    async def publish_and_leave() -> None:
        publish(hub, note(1), note(2))

    asyncio.run(publish_and_leave())

    async def publish_and_wait() -> None:
        publish(hub, note(3))
        await idle(hub)

    asyncio.run(publish_and_wait())
    assert seen.texts[-1] == "3"
    assert seen.texts == sorted(seen.texts)


# --- The sink ----------------------------------------------------------------------------------


@pytest.mark.requirement("Y SD-007", "Y 4.4")
def test_the_sink_sees_everything_and_listeners_see_no_traces() -> None:
    hub, seen, sunk = Hub(), Seen(), list[Event]()
    hub.subscribe(seen.take)
    assert not hub.tracing
    hub.set_sink(sunk.append)
    assert hub.tracing
    publish(hub, Trace("step"), note(1))
    assert sunk == [Trace("step"), note(1)]
    assert seen.events == [note(1)]
    hub.set_sink(None)
    publish(hub, note(2))
    assert sunk == [Trace("step"), note(1)]


# --- Listeners that fail -----------------------------------------------------------------------


class MuteError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


ERRORS: list[BaseException] = [
    RuntimeError("broken"),
    SystemExit(3),
    asyncio.CancelledError("by itself"),
    MuteError(),
    StopIteration(),
]


def failing(error: BaseException) -> Callable[[Event, AbortSignal], None]:
    def listen(_event: Event, _signal: AbortSignal) -> None:
        raise error

    return listen


def failing_async(error: BaseException) -> Callable[[Event, AbortSignal], Awaitable[None]]:
    async def listen(_event: Event, _signal: AbortSignal) -> None:
        await asyncio.sleep(0)
        raise error

    return listen


def failing_later(error: BaseException) -> Callable[[Event, AbortSignal], Awaitable[None]]:
    def listen(event: Event, signal: AbortSignal) -> Awaitable[None]:
        return failing_async(error)(event, signal)

    return listen


@pytest.mark.requirement("Y SD-007", "Y NFR-201", "Y 4.4")
@pytest.mark.parametrize("make", [failing, failing_async, failing_later])
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
async def test_a_listener_that_raises_is_reported_once_and_harms_nothing(
    make: Callable[[BaseException], Any], error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    hub, seen = Hub(), Seen()
    hub.subscribe(make(error))
    hub.subscribe(seen.take)
    with caplog.at_level(logging.DEBUG, "yiemagent_nb"):
        publish(hub, note(1), note(2))
        await idle(hub)
        await idle(hub)
    reports = [event for event in seen.events if isinstance(event, AgentError) and event.code == "LISTENER_ERROR"]
    assert len(reports) == 1
    assert "The listener listen raised" in reports[0].message
    assert [event for event in seen.events if event not in reports] == [note(1), note(2)]
    assert [record.levelname for record in caplog.records if record.name == "yiemagent_nb"].count("WARNING") == 1


@pytest.mark.requirement("Y SD-007", "Y NFR-201", "Y 4.4")
async def test_a_listener_that_raised_is_still_told_of_the_next_event() -> None:
    hub, told = Hub(), list[Event]()

    async def listen(event: Event, _signal: AbortSignal) -> None:
        told.append(event)
        raise RuntimeError("broken")

    hub.subscribe(listen)
    publish(hub, note(1), note(2))
    await idle(hub)
    assert [event for event in told if event in (note(1), note(2))] == [note(1), note(2)]


@pytest.mark.requirement("Y SD-007", "Y NFR-201", "Y 4.4")
@pytest.mark.parametrize("make", [failing, failing_async])
async def test_a_sink_that_raises_is_reported_to_the_listeners_and_harms_nothing(
    make: Callable[[BaseException], Any],
) -> None:
    hub, seen = Hub(), Seen()
    broken = make(RuntimeError("disk full"))
    hub.set_sink(functools.partial(broken, _signal=SIGNAL))
    hub.subscribe(seen.take)
    publish(hub, note(1), Trace("step"), note(2))
    await idle(hub)
    assert [text for text in seen.texts if "disk full" not in text] == ["1", "2"]
    assert sum("disk full" in text for text in seen.texts) == 1


@pytest.mark.requirement("Y NFR-201")
async def test_cancelling_the_tasks_of_the_loop_ends_listeners_without_a_report() -> None:
    hub, slow, seen = Hub(), Slow(), Seen()
    hub.subscribe(slow.take_async)
    hub.subscribe(seen.take)
    publish(hub, note(1))
    await asyncio.sleep(0)
    serving = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in serving:
        task.cancel()
    await asyncio.wait(serving)
    assert seen.events == [note(1)]
