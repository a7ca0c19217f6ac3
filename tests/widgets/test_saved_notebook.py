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
