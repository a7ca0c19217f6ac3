"""A cell that is run again leaves no widget behind, and with it no agent and no server."""

from __future__ import annotations

import secrets
import sys
from pathlib import Path

import psutil
import pytest
from browser.conftest import OpenNotebook
from browser.lab import Notebook
from playwright.async_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

SERVER = Path(__file__).parents[1] / "kernels" / "server_with_family.py"

SETUP = """
from weakref import WeakSet
from IPython.display import display
from ipywidgets import HBox
from yiemagent_nb import Agent, McpServer
from yiemagent_nb.testing import Scripted
from yiemagent_nb.widgets import AgentWidget

agents = WeakSet()

def new_agent(*servers):
    agent = Agent(Scripted(["one", "two"]), mcp_servers=servers)
    agents.add(agent)
    return agent
"""
COUNT = "print(len(agents))"


async def output(notebook: Notebook, cell: int) -> str:
    await notebook.run_cell(cell)
    return (await notebook.cell(cell).locator(".jp-OutputArea-output").inner_text()).strip()


async def until_output(notebook: Notebook, cell: int, text: str) -> None:
    """Run a cell until it prints a text."""
    for _ in range(75):
        if await output(notebook, cell) == text:
            return
        await notebook.page.wait_for_timeout(200)
    pytest.fail(f"{text!r} was never printed")


async def collected(notebook: Notebook, cell: int) -> str:
    """What a cell prints after pages had the time to say what they show."""
    await notebook.page.wait_for_timeout(3_000)
    return await output(notebook, cell)


@pytest.mark.parametrize("show", ["AgentWidget(agent)", "display(AgentWidget(agent))", "AgentWidget(agent).show()"])
async def test_running_a_cell_again_ends_what_it_had_begun(open_notebook: OpenNotebook, show: str) -> None:
    token = f"family-{secrets.token_hex(8)}"
    server = f"server = McpServer.stdio({sys.executable!r}, {str(SERVER)!r}, {token!r}, name='s')"
    notebook = await open_notebook(SETUP, f"{server}\nawait server.open()\nagent = new_agent(server)\n{show}", COUNT)
    for _ in range(3):
        await notebook.run_cell(1)
        await notebook.until_ready()
    servers = [process for process in psutil.process_iter() if is_server(process, token)]
    newest = max(servers, key=lambda process: process.create_time())
    await until_output(notebook, 2, "1")
    _, alive = psutil.wait_procs([process for process in servers if process != newest], timeout=15)
    assert alive == []
    assert newest.is_running()
    await notebook.say("hello")
    await expect(notebook.widget().locator(".yna-answer")).to_contain_text("one")


def is_server(process: psutil.Process, token: str) -> bool:
    try:
        return process.cmdline()[1:] == [str(SERVER), token]
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return False


@pytest.mark.parametrize("elsewhere", ["display(widget)", "box = HBox([widget])\ndisplay(box)"])
async def test_what_is_shown_elsewhere_goes_on(open_notebook: OpenNotebook, elsewhere: str) -> None:
    notebook = await open_notebook(
        SETUP, "agent = new_agent()\nwidget = AgentWidget(agent)\nwidget", elsewhere, f"del widget\n{COUNT}"
    )
    await notebook.run_cell(1)
    await notebook.run_cell(2)
    await notebook.until_ready(1)
    await notebook.run_cell(1)
    await notebook.until_ready(0)
    assert await collected(notebook, 3) == "2"
    await notebook.say("hello", 1)
    await expect(notebook.widget(1).locator(".yna-answer")).to_contain_text("one")


async def test_a_container_that_is_not_shown_now_keeps_its_widget(open_notebook: OpenNotebook) -> None:
    notebook = await open_notebook(
        SETUP, "agent = new_agent()\nwidget = AgentWidget(agent)\nwidget", "box = HBox([widget])", COUNT, "box"
    )
    await notebook.run_cell(1)
    await notebook.run_cell(2)
    await notebook.run_cell(1)
    await notebook.until_ready()
    assert await collected(notebook, 3) == "2"
    await notebook.run_cell(4)
    await notebook.say("hello", 1)
    await expect(notebook.widget(1).locator(".yna-answer")).to_contain_text("one")


async def test_a_widget_that_someone_kept_opens_again_with_what_was_said(open_notebook: OpenNotebook) -> None:
    notebook = await open_notebook(
        SETUP + "kept = []",
        "agent = new_agent()\nkept.append(AgentWidget(agent))\nkept[-1]",
        "print(kept[0].comm is None)",
        "kept[0]",
        COUNT,
    )
    await notebook.run_cell(1)
    await notebook.until_ready()
    await notebook.say("hello")
    await expect(notebook.widget().locator(".yna-answer")).to_contain_text("one")
    await notebook.until_ready()
    await notebook.run_cell(1)
    await until_output(notebook, 2, "True")
    await notebook.run_cell(3)
    await expect(notebook.widget(1).locator(".yna-answer")).to_contain_text("one")
    await notebook.say("again", 1)
    await expect(notebook.widget(1).locator(".yna-answer").last).to_contain_text("two")
    assert await output(notebook, 4) == "2"


async def test_a_widget_goes_on_when_its_page_is_loaded_again(open_notebook: OpenNotebook) -> None:
    notebook = await open_notebook(SETUP, "AgentWidget(new_agent())", "AgentWidget(new_agent())", COUNT, own_page=True)
    await notebook.run_cell(1)
    await notebook.until_ready()
    await notebook.save()
    await notebook.reload()
    await notebook.run_cell(2)
    await notebook.until_ready(1)
    assert await collected(notebook, 3) == "2"
    await notebook.say("hello")
    await expect(notebook.widget().locator(".yna-answer")).to_contain_text("one")


async def test_what_a_person_named_keeps_its_name(open_notebook: OpenNotebook) -> None:
    notebook = await open_notebook(
        SETUP,
        "AgentWidget(new_agent())",
        "mine = kept = _\nprint(type(kept).__name__)",
        "print(type(kept).__name__, kept.comm, [value for value in Out.values() if value is kept])",
    )
    await notebook.run_cell(1)
    await notebook.until_ready()
    assert await output(notebook, 2) == "AgentWidget"
    await notebook.run_cell(1)
    await until_output(notebook, 3, "AgentWidget None []")
