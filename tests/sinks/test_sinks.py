"""The sinks that ship, fed by a real agent."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from yiemagent_nb import Agent, JsonlSink, LogSink, dump_event, load_event, tool
from yiemagent_nb.backends.scripted import Scripted
from yiemagent_nb.testing import EventRecorder, call


@tool
def fail(what: str) -> str:
    """Fail."""
    raise ValueError(what)


def make_agent(**options: Any) -> Agent:
    return Agent(Scripted([[call("fail", what="really")], "done"]), tools=[fail], **options)


@pytest.mark.requirement("Y SD-007", "Y 4.4")
async def test_every_event_and_step_stands_in_the_file_in_order(tmp_path: Path) -> None:
    recorder = EventRecorder()
    with JsonlSink(tmp_path / "events.jsonl") as sink:
        agent = make_agent(event_sink=sink)
        agent.subscribe(recorder)
        await agent.prompt("go")
    lines = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text(encoding="utf-8").splitlines()]
    assert all(isinstance(line.pop("time"), int) for line in lines)
    kinds = [line["type"] for line in lines if line["type"] != "trace"]
    assert kinds == [event.type for event in recorder.events]
    assert {"turn.start", "llm.called", "call.executing", "run.end"} <= {line.get("step") for line in lines}
    assert [dump_event(load_event(line)) for line in lines] == lines


async def test_a_sink_that_cannot_write_is_reported_and_the_run_goes_on(tmp_path: Path) -> None:
    recorder = EventRecorder()
    agent = make_agent(event_sink=JsonlSink(tmp_path / "no folder" / "events.jsonl"))
    agent.subscribe(recorder)
    assert (await agent.prompt("go")).text == "done"
    errors = [event for event in recorder.events if event.type == "agent_error"]
    assert len(errors) == 1
    assert "JsonlSink" in errors[0].message


async def test_records_have_a_level_a_line_and_the_event(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="yiemagent_nb.events"):
        await make_agent(event_sink=LogSink()).prompt("go")
    levels = {record.getMessage().split()[0]: record.levelno for record in caplog.records}
    assert levels["agent_start"] == logging.INFO
    assert levels["trace"] == logging.DEBUG
    assert levels["tool_execution_end"] == logging.WARNING
    assert any("ValueError: really" in record.getMessage() for record in caplog.records)
    assert all(hasattr(record, "event") for record in caplog.records)
