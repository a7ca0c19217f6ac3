"""What the visitors of a notebook that is served as an app may not do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from yiemagent_nb import Agent, AgentWidget, Scripted
from yiemagent_nb.widgets.hook_editor import HookEditor
from yiemagent_nb.widgets.host import WidgetHost
from yiemagent_nb.widgets.trace_panel import TracePanel


@pytest.fixture(autouse=True)
def _served(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVER_SOFTWARE", "voila/0.5")


def files_of(folder: Path) -> list[Path]:
    return list(folder.iterdir())


async def test_a_widget_holds_only_the_chat_unless_panels_are_named() -> None:
    agent = Agent(Scripted([]))
    widget = AgentWidget(agent)
    named = AgentWidget(agent, panels=[TracePanel(agent)])
    assert [panel.name for panel in widget.panels] == ["chat"]
    assert [panel.name for panel in named.panels] == ["trace"]
    widget.close()
    named.close()


async def test_no_code_is_run_no_hook_is_taken_away_and_no_file_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    def keep(_context: Any, _signal: Any) -> None:
        return None

    agent = Agent(Scripted(["hello"]), before_tool_call=keep)
    batches: list[dict[str, Any]] = []
    host = WidgetHost(agent, [HookEditor(agent), TracePanel(agent)], batches.append)
    host.receive({"type": "hello", "last_seq": 0})
    host.frames.flush()
    session = batches[-1]["snapshot"]["session"]
    await agent.prompt("hi")
    code = "open('ran', 'w').close()\ndef before_tool_call(context, signal): ..."
    asked: list[dict[str, Any]] = [
        {"type": "apply_hook", "hook": "before_tool_call", "code": code, "action": "apply"},
        {"type": "apply_hook", "hook": "before_tool_call", "code": code, "action": "try"},
        {"type": "remove_hook", "hook": "before_tool_call", "index": 0},
        {"type": "revert_hook", "hook": "before_tool_call"},
        {"type": "write_test", "row": 0, "path": "tests/test_it.py"},
    ]
    for number, message in enumerate(asked):
        host.receive({**message, "ticket": str(number), "session": session})
    host.frames.flush()
    refusals = [event for batch in batches for event in batch["events"] if event["type"] == "refused"]
    assert len(refusals) == len(asked), json.dumps(batches)
    assert all("where a notebook is served as an app" in refusal["message"] for refusal in refusals)
    assert agent.hooks.before_tool_call == (keep,)
    assert not files_of(tmp_path)
    host.close()
