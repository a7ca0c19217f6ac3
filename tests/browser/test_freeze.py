"""A widget that is frozen leaves what was said as an output that needs neither a kernel nor widgets."""

from __future__ import annotations

import json

import pytest
from browser.conftest import OpenNotebook
from playwright.async_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

SETUP = """
from yiemagent_nb import Agent
from yiemagent_nb.testing import Scripted
from yiemagent_nb.widgets import AgentWidget

agent = Agent(Scripted(["The **first** answer", "The second answer", "The third answer"]))
widget = AgentWidget(agent)
widget
"""


async def test_a_frozen_widget_is_replaced_in_every_cell_and_stays_after_a_restart(open_notebook: OpenNotebook) -> None:
    notebook = await open_notebook(SETUP, "widget.show()", "widget.freeze()\nwidget.freeze()", "widget", own_page=True)
    page = notebook.page
    await notebook.until_ready()
    await notebook.run_cell(1)
    await notebook.until_ready(1)
    await notebook.say("my question")
    await expect(notebook.widget().locator(".yna-answer")).to_contain_text("The first answer")
    await notebook.until_ready()
    await expect(page.locator(".yna-static").first).to_be_hidden()
    await notebook.run_cell(2)
    await expect(page.locator(".yna")).to_have_count(0)
    await expect(page.locator(".yna-static")).to_have_count(2)
    for cell in (0, 1):
        await expect(notebook.cell(cell).locator(".yna-static")).to_be_visible()
        await expect(notebook.cell(cell).locator(".yna-static strong").nth(2)).to_have_text("first")
    content = await notebook.save(with_widgets=True)
    text = json.dumps(content)
    assert "widget-view" not in text
    assert "yna-transcript" not in text
    assert [kind["state"] for kind in content["metadata"]["widgets"].values()] == [{}]
    await notebook.run_cell(3)
    await notebook.until_ready()
    await notebook.say("go on")
    await expect(notebook.widget().locator(".yna-answer").last).to_contain_text("The second answer")
    await expect(notebook.cell(0).locator(".yna-static")).to_be_visible()
    await notebook.until_ready()
    await notebook.save()
    await page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
    await notebook.reload()
    for cell in (0, 1, 3):
        await expect(notebook.cell(cell).locator(".yna-static")).to_be_visible()
    await expect(notebook.cell(3).locator(".yna-static")).to_contain_text("The second answer")
