"""Every scenario of the benchmark runs and gives its figures. Nothing here looks at a time."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.bench

RUN = Path(__file__).with_name("run.py")
SHOWN = "a round of 1 call, CPU, of 3"


def run(*arguments: str) -> str:
    done = subprocess.run([sys.executable, RUN, "--tiny", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@cache
def figures_of(scenario: str) -> list[dict[str, Any]]:
    figures: list[dict[str, Any]] = json.loads(run("--only", scenario, "--json"))
    return figures


@pytest.mark.parametrize(
    ("scenario", "count"),
    [
        ("rounds", 2),
        ("batches", 1),
        ("history", 12),
        ("deltas", 4),
        ("recorded", 2),
        ("crowd", 3),
        ("imports", 5),
        ("mcp_discovery", 16),
        ("mcp_calls", 4),
        ("mcp_nats", 5),
        ("mcp_start", 1),
    ],
)
def test_a_scenario_gives_all_its_figures(scenario: str, count: int) -> None:
    figures = figures_of(scenario)
    assert len(figures) == count
    assert {figure["scenario"] for figure in figures} == {scenario}
    assert all(math.isfinite(figure["agent"]) for figure in figures)


@pytest.mark.parametrize("scenario", ["rounds", "batches", "history", "deltas"])
def test_figures_of_cpu_stand_beside_those_of_the_bare_loop(scenario: str) -> None:
    figures = [figure for figure in figures_of(scenario) if "CPU" in figure["name"]]
    assert figures
    assert all(figure["agent"] > 0 and figure["bare"] > 0 and figure["ratio"] > 0 for figure in figures)


@pytest.mark.requirement("Y NFR-101", "Y KPI-001", "A SPEC-11.1", "A SPEC-11.2")
def test_the_latencies_and_the_throughput_that_are_asked_for_at_least_are_figures() -> None:
    targets = {figure["name"]: figure["target"] for figure in figures_of("floors")}
    assert targets == {
        "a tool call with its answer, median": "≤ 500 ms",
        "a tool call with its answer, 95th percentile": "≤ 2,000 ms",
        "a tool call with its answer, 99th percentile": "≤ 5,000 ms",
        "a message, channel to channel, median": "≤ 200 ms",
        "a message, channel to channel, 95th percentile": "≤ 500 ms",
        "a message, channel to channel, 99th percentile": "≤ 1,000 ms",
        "an agent from 12 messages to its answer": "≤ 2,000 ms",
        "of 3 sessions at once, answered": "≥ 3",
        "messages an hour in each of them": "≥ 1,000",
        "tool calls a minute in one": "≥ 100",
    }


@pytest.mark.requirement("A SPEC-11.2", "A NFR-102")
def test_every_session_of_many_at_once_gets_its_answers() -> None:
    answered = next(figure for figure in figures_of("floors") if "sessions at once" in figure["name"])
    assert answered["agent"] == 3


@pytest.mark.requirement("Y NFR-102", "Y KPI-002")
def test_discovery_over_each_transport_stands_beside_the_bare_client_with_the_time_that_is_allowed() -> None:
    figures = {figure["name"]: figure for figure in figures_of("mcp_discovery")}
    for transport in ("in process", "stdio", "HTTP", "NATS"):
        assert figures[f"60 tools, {transport}"]["ratio"] > 0
        assert figures[f"60 tools, {transport}, as an agent's own"]["target"] == "≤ 2,000 ms"


@pytest.mark.parametrize("scenario", ["mcp_calls", "mcp_discovery"])
def test_a_request_to_an_mcp_server_never_costs_many_times_what_it_costs_the_bare_client(scenario: str) -> None:
    for figure in figures_of(scenario):
        assert figure["ratio"] < 20, figure


def test_the_table_shows_a_figure_with_its_target_and_whether_it_is_met() -> None:
    line = next(line for line in run("--only", "rounds").splitlines() if SHOWN in line)
    assert "≤ 1.2x" in line
    assert line.endswith(("met", "missed"))
