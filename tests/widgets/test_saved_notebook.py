"""A notebook that a program executes keeps the conversation as an output, and nothing of it in widgets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import nbformat
from nbclient import NotebookClient

SETUP = """
from yiemagent_nb.core.agent import Agent
from yiemagent_nb.widgets import AgentWidget

async def model(messages):
    yield "The **answer** is "
    yield "forty-two."

agent = Agent(model)
AgentWidget(agent)
"""

NESTED = "_ = agent.ask('another one')"


def with_cells(*sources: str) -> dict[str, Any]:
    blank: dict[str, Any] = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    cells = [{**blank, "id": f"cell{index}", "source": source} for index, source in enumerate(sources)]
    return {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


async def test_turns_of_later_cells_renew_the_transcript_of_the_first(tmp_path: Path) -> None:
    notebook = cast("Any", nbformat).from_dict(with_cells(SETUP, "_ = await agent.prompt('my question')", NESTED))
    client = NotebookClient(notebook, timeout=60, kernel_name="python3", store_widget_state=True)
    await client.async_execute(cwd=str(tmp_path))
    widget, transcript = notebook.cells[0].outputs
    assert "application/vnd.jupyter.widget-view+json" in widget.data
    html = transcript.data["text/html"]
    assert html.count("The <strong>answer</strong> is forty-two.") == 2
    assert "my question" in html
    assert "another one" in html
    state = json.dumps(notebook.metadata.widgets)
    assert "forty-two" not in state
    assert "my question" not in state


async def executed(tmp_path: Path, *sources: str, store_widget_state: bool = False) -> Any:
    notebook = cast("Any", nbformat).from_dict(with_cells(*sources))
    client = NotebookClient(notebook, timeout=60, kernel_name="python3", store_widget_state=store_widget_state)
    await client.async_execute(cwd=str(tmp_path))
    return notebook


async def test_a_notebook_grows_by_the_transcript_and_3_kilobytes_a_widget(tmp_path: Path) -> None:
    notebook = await executed(tmp_path, SETUP, "_ = await agent.prompt('my question')", "AgentWidget(agent)")
    size = len(cast("str", cast("Any", nbformat).writes(notebook)))
    transcripts = [output for cell in notebook.cells for output in cell.outputs if "text/html" in output.data]
    assert len(transcripts) == 2
    for cell in notebook.cells:
        cell.outputs = transcripts[:1] if cell.outputs else []
    assert size - len(cast("str", cast("Any", nbformat).writes(notebook))) < 2 * 3_000


async def test_a_frozen_widget_is_one_transcript_and_a_stub_of_its_state(tmp_path: Path) -> None:
    first = SETUP.replace("AgentWidget(agent)", "widget = AgentWidget(agent)\nwidget.show()")
    notebook = await executed(
        tmp_path,
        first,
        "_ = await agent.prompt('my question')",
        "print(widget.freeze(), widget.freeze())",
        "_ = await agent.prompt('another one')",
        "AgentWidget(agent).freeze()",
        "same = AgentWidget(agent)\nsame.show()\nsame.freeze()",
        "AgentWidget(agent, plain=True).freeze()",
        "panel = AgentWidget(agent, plain=True)\npanel.show()\npanel.freeze()",
        store_widget_state=True,
    )
    shown = [[output.get("data", output.get("text")) for output in cell.outputs] for cell in notebook.cells]
    assert "widget-view" not in json.dumps(shown)
    assert shown[2] == ["None None\n"]
    early, nothing = shown[0]
    assert "my question" in early["text/html"]
    assert "another one" not in early["text/html"]
    assert nothing == {"text/plain": ""}
    for cell in (4, 5, 6, 7):
        assert shown[cell][0].keys() == {"text/plain", "text/markdown", "text/html"}
        assert "another one" in shown[cell][0]["text/html"]
    (states,) = (kind["state"] for kind in notebook.metadata.widgets.values())
    agents = [state for state in states.values() if state["model_name"] == "AnyModel"]
    assert len(agents) == 3
    for state in agents:
        assert len(json.dumps(state)) < 1_000


async def test_a_widget_that_was_frozen_or_closed_opens_anew_and_freezes_again(tmp_path: Path) -> None:
    first = SETUP.replace("AgentWidget(agent)", "widget = AgentWidget(agent)\nwidget.show()")
    notebook = await executed(
        tmp_path,
        first,
        "widget.freeze()\n_ = await agent.prompt('my question')\nwidget.show()",
        "widget.close()\nwidget.freeze()",
    )
    assert "my question" not in json.dumps(notebook.cells[0].outputs)
    transcript, nothing = notebook.cells[1].outputs
    assert "my question" in transcript.data["text/html"]
    assert nothing.data == {"text/plain": ""}
