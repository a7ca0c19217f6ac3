"""Batches: numbered, joined, at most 25 a second, none while nobody looks.

Tests that await nothing are coroutines all the same: timers of their loop never fire in them, so
each batch is sent where ``flush`` is called.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from itertools import pairwise
from typing import Any, cast

import pytest

from yiemagent_nb.widgets.frames import FRAME, FrameQueue


class Recorder:
    """Records batches; ``ready`` is set with each."""

    def __init__(self) -> None:
        self.batches: list[dict[str, Any]] = []
        self.times: list[float] = []
        self.ready = threading.Event()
        self.snapshots = 0
        self.frames = FrameQueue(self.send, self.snapshot)

    def send(self, batch: dict[str, Any]) -> None:
        self.batches.append(batch)
        self.times.append(time.monotonic())
        self.ready.set()

    def snapshot(self) -> dict[str, Any]:
        self.snapshots += 1
        return {"number": self.snapshots}


def delta(text: str, offset: int, block: int = 0) -> dict[str, Any]:
    return {"type": "delta", "block": block, "offset": offset, "text": text}


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


async def test_nothing_is_sent_before_a_page_says_hello(recorder: Recorder) -> None:
    recorder.frames.post([{"type": "run_start"}])
    recorder.frames.flush()
    assert recorder.batches == []


async def test_the_first_hello_brings_a_snapshot(recorder: Recorder) -> None:
    recorder.frames.wake(0, greet=True)
    recorder.frames.flush()
    assert recorder.batches == [{"seq": 1, "events": [], "snapshot": {"number": 1}}]


async def test_deltas_of_a_block_are_joined_within_a_frame(recorder: Recorder) -> None:
    recorder.frames.wake(0, greet=True)
    recorder.frames.flush()
    recorder.frames.post([delta("a", 0), delta("x", 0, block=1), delta("b", 1), {"type": "run_end"}])
    recorder.frames.flush()
    assert recorder.batches[1] == {"seq": 2, "events": [delta("ab", 0), delta("x", 0, block=1), {"type": "run_end"}]}


async def test_deltas_are_not_joined_across_another_event(recorder: Recorder) -> None:
    recorder.frames.wake(0, greet=True)
    start = {"type": "message_start", "id": "next"}
    recorder.frames.post([delta("end", 7), start, delta("begin", 0), delta("ning", 5)])
    recorder.frames.flush()
    assert recorder.batches[0]["events"] == [delta("end", 7), start, delta("beginning", 0)]


async def test_a_joined_piece_of_a_call_carries_the_newest_id_and_name(recorder: Recorder) -> None:
    recorder.frames.wake(0, greet=True)
    pieces = [("made", "get", ""), ("given", "get_weather", "{}")]
    for call_id, name, text in pieces:
        recorder.frames.post([{**delta(text, 0), "kind": "tool_call", "call_id": call_id, "name": name}])
    recorder.frames.flush()
    [event] = recorder.batches[0]["events"]
    assert (event["call_id"], event["name"], event["text"]) == ("given", "get_weather", "{}")


async def test_only_the_newest_progress_of_a_call_goes_over(recorder: Recorder) -> None:
    recorder.frames.wake(0, greet=True)
    updates = [{"type": "tool_update", "call_id": "c", "content": [number]} for number in range(50)]
    recorder.frames.post(updates)
    recorder.frames.flush()
    assert recorder.batches[0]["events"] == [{"type": "tool_update", "call_id": "c", "content": [49]}]


async def test_only_the_newest_list_of_tools_goes_over(recorder: Recorder) -> None:
    recorder.frames.wake(0, greet=True)
    recorder.frames.flush()
    recorder.frames.post([{"type": "tools", "tools": [{"name": str(n)}]} for n in range(20)])
    recorder.frames.flush()
    assert recorder.batches[-1]["events"] == [{"type": "tools", "tools": [{"name": "19"}]}]


async def test_a_page_in_step_gets_no_second_snapshot(recorder: Recorder) -> None:
    recorder.frames.wake(0, greet=True)
    recorder.frames.flush()
    recorder.frames.wake(1, greet=True)
    recorder.frames.flush()
    assert recorder.snapshots == 1


async def test_a_page_that_is_behind_gets_a_snapshot_with_the_events_before_it(recorder: Recorder) -> None:
    recorder.frames.wake(0, greet=True)
    recorder.frames.post([{"type": "run_start"}])
    recorder.frames.flush()
    recorder.frames.post([{"type": "run_end"}])
    recorder.frames.wake(0, greet=True)
    recorder.frames.flush()
    assert recorder.batches[1] == {"seq": 2, "events": [{"type": "run_end"}], "snapshot": {"number": 2}}


async def test_a_heartbeat_that_lags_asks_for_nothing(recorder: Recorder) -> None:
    recorder.frames.wake(0, greet=True)
    recorder.frames.flush()
    recorder.frames.post([{"type": "run_start"}])
    recorder.frames.flush()
    recorder.frames.wake(1, greet=False)
    recorder.frames.flush()
    assert recorder.snapshots == 1


async def test_what_was_missed_while_nobody_looked_is_noticed_by_the_next_heartbeat(recorder: Recorder) -> None:
    recorder.frames.wake(0, greet=True)
    recorder.frames.flush()
    recorder.frames.sleep()
    recorder.frames.post([{"type": "run_start"}])
    recorder.frames.wake(1, greet=False)
    recorder.frames.flush()
    assert recorder.batches[-1]["snapshot"] == {"number": 2}


async def test_a_closed_queue_sends_nothing(recorder: Recorder) -> None:
    recorder.frames.wake(0, greet=True)
    recorder.frames.close()
    recorder.frames.wake(0, greet=True)
    recorder.frames.post([{"type": "run_start"}])
    recorder.frames.flush()
    assert recorder.batches == []


def test_without_a_loop_a_timer_sends(recorder: Recorder) -> None:
    recorder.frames.wake(0, greet=True)
    assert recorder.ready.wait(5)


async def test_batches_are_built_on_the_loop_that_was_bound() -> None:
    threads: list[int] = []
    sent = asyncio.Event()

    def send(_batch: dict[str, Any]) -> None:
        threads.append(threading.get_ident())
        sent.set()

    frames = FrameQueue(send, dict)
    frames.bind()
    await asyncio.to_thread(frames.wake, 0, greet=True)
    await asyncio.wait_for(sent.wait(), 5)
    assert threads == [threading.get_ident()]


async def test_a_flood_makes_at_most_25_batches_a_second(recorder: Recorder) -> None:
    frames = recorder.frames
    frames.bind()
    frames.wake(0, greet=True)
    start = time.monotonic()
    offset = 0
    while time.monotonic() - start < 0.5:
        frames.post([delta("word ", offset)])
        offset += 5
        await asyncio.sleep(0)
    frames.flush()
    gaps = [after - before for before, after in pairwise(recorder.times[:-1])]
    assert len(recorder.batches) <= 0.5 * 25 + 2
    assert min(gaps) >= FRAME * 0.9
    assert [batch["seq"] for batch in recorder.batches] == list(range(1, len(recorder.batches) + 1))
    told = "".join(event["text"] for batch in recorder.batches for event in batch["events"])
    assert told == "word " * (offset // 5)


def test_a_loop_that_closed_under_a_timer_does_not_silence_the_queue(recorder: Recorder) -> None:
    async def start() -> None:
        recorder.frames.bind()
        recorder.frames.wake(0, greet=True)  # its timer dies with this loop

    asyncio.run(start())
    recorder.batches.clear()
    recorder.ready.clear()
    cast("Any", recorder.frames)._due = time.monotonic() - 10  # so much later
    recorder.frames.post([{"type": "run_start"}])
    assert recorder.ready.wait(5)


async def test_a_batch_that_cannot_be_sent_is_logged_and_leaves_a_gap(caplog: pytest.LogCaptureFixture) -> None:
    sent: list[dict[str, Any]] = []

    def send(batch: dict[str, Any]) -> None:
        if not sent:
            sent.append({})
            raise ConnectionError("the comm is gone")
        sent.append(batch)

    frames = FrameQueue(send, dict)
    with caplog.at_level(logging.ERROR):
        frames.wake(0, greet=True)
        frames.flush()
    frames.post([{"type": "run_start"}])
    frames.flush()
    assert "batch 1" in caplog.text
    assert sent[1]["seq"] == 2
