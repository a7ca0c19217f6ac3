"""Whatever happens in a run, its trace is a trace: rows end, in order, within each other, and lanes never overlap."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Generator, Sequence
from itertools import pairwise
from typing import Any

import pytest
from agent.scenario import SCRIPTS, Script
from agent.test_random_runs import Play
from hypothesis import HealthCheck, Phase, given, settings

from yiemagent_nb.core import concurrency
from yiemagent_nb.tracing.as_test import test_of as text_of_test
from yiemagent_nb.tracing.details import details_of
from yiemagent_nb.tracing.difference import difference
from yiemagent_nb.tracing.recorder import TraceRecorder
from yiemagent_nb.tracing.rows import Row

EXAMPLES = 100

SLACK = 1e-6
"""Seconds by which sums of times may miss each other."""


def check_rows(rows: Sequence[Row]) -> None:
    assert [row.number for row in rows] == list(range(len(rows)))
    for row, following in pairwise(rows):
        assert row.began <= following.began
        assert row.started <= following.started
    for row in rows:
        assert row.state != "running", f"{row} never ended"
        assert row.duration is not None
        assert row.duration >= 0
        assert 0 <= (row.waited or 0.0) <= row.duration + SLACK
        assert 0 <= (row.first or 0.0) <= row.duration + SLACK
        kinds = {"run": None, "hand": None, "turn": "run", "model": "turn", "tool": "turn"}
        parent = row.parent
        assert (None if parent is None else parent.kind) == kinds[row.kind]
        if parent is not None:
            assert parent.number < row.number
            assert parent.duration is not None
            assert row.began + row.duration <= parent.began + parent.duration + SLACK, f"{row} outlives {parent}"
    for lane in {row.lane for row in rows}:
        in_lane = [row for row in rows if row.kind in {"tool", "hand"} and row.lane == lane]
        for row, following in pairwise(in_lane):
            assert row.duration is not None
            assert row.began + row.duration <= following.began + SLACK, f"{row} and {following} share a lane"


def check_texts(trace: TraceRecorder) -> None:
    for row in trace.rows():
        details_of(row)
        if row.kind == "model" and row.model.requests:
            difference(trace, row)
    assert trace.table()


def play_tests(trace: TraceRecorder) -> None:
    """A test of each run passes, whatever happened in it: what was sent is sent again, and read as it was."""
    rows = trace.rows()
    runs = [row.parent.parent for row in rows if row.model.exchanges and row.parent is not None]
    for run in dict.fromkeys(run for run in runs if run is not None):
        text = text_of_test(trace, run)
        names: dict[str, Any] = {"__name__": "test_recorded"}
        exec(compile(text, "test_recorded.py", "exec"), names)  # noqa: S102 - the test that is tested
        names["test_the_run_is_as_it_was"]()


@pytest.fixture(scope="module")
def runner() -> Generator[asyncio.Runner]:
    with pytest.MonkeyPatch.context() as patch, asyncio.Runner() as runner:
        patch.setattr(concurrency, "ABORT_GRACE", 0.0)
        patch.setattr(logging.getLogger("yiemagent_nb"), "disabled", True)
        yield runner


@pytest.mark.requirement("Y FR-006")
@pytest.mark.timeout(200)
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # an example is small, and is made smaller for minutes
)
@given(script=SCRIPTS)
def test_whatever_happens_a_trace_stays_a_trace(runner: asyncio.Runner, script: Script) -> None:
    async def play() -> TraceRecorder:
        example = Play(script)
        trace = TraceRecorder.of(example.agent)
        await example.run()
        await example.agent.call_tool("works", {"x": "wrong"})
        return trace

    trace = runner.run(play())
    check_rows(trace.rows())
    check_texts(trace)
    play_tests(trace)
