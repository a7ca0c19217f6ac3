"""As much as an agent can say: pages end with what it said, and with one another."""

from __future__ import annotations

import pytest
from browser.conftest import OpenNotebook
from playwright.async_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

FLOOD = '''
import asyncio
from yiemagent_nb.core.agent import Agent
from yiemagent_nb.core.tools import ToolContext
from yiemagent_nb.widgets import AgentWidget

late = asyncio.Event()
MANY = 9_000

def report(context: ToolContext) -> str:
    """Tell of each step."""
    for step in range(MANY):
        context.update(f"step {step + 1}")
    return f"{MANY} steps"

async def flood(messages):
    if messages[-1]["content"] == "go":
        for number in range(MANY):
            yield f"{number:04d}" + ("\\n\\n" if number % 30 == 29 else " ")
            if number == MANY // 2:
                await late.wait()
        call = {"index": 0, "id": "c", "function": {"name": "report", "arguments": "{}"}}
        yield {"tool_calls": [call]}
    else:
        yield "That is all."

agent = Agent(flood, tools=[report])
widget = AgentWidget(agent, transcript=False)
sent = []
send = widget._host.frames._send
widget._host.frames._send = lambda batch: (sent.append(batch), send(batch))
widget
'''

SHOWN = """widget => ["said", "block", "call-row"].map((name) =>
    [...widget.querySelectorAll(".yna-" + name)].map((each) => each.textContent.trim()))"""


async def test_nine_thousand_messages_end_with_the_same_text_in_two_views(open_notebook: OpenNotebook) -> None:
    notebook = await open_notebook(
        FLOOD,
        "widget",
        "late.set()",
        "agent.messages[1].text.split() == [f'{number:04d}' for number in range(MANY)], len(sent) < 200",
    )
    await notebook.say("go")
    early = notebook.widget(0)
    await expect(early.locator(".yna-answer")).to_contain_text("4500", timeout=20_000)
    await notebook.run_cell(1)
    late = notebook.widget(1)
    await expect(late.locator(".yna-answer")).to_contain_text("4500", timeout=20_000)
    await notebook.run_cell(2)
    for widget in (early, late):
        await expect(widget.locator(".yna-block").last).to_have_text("That is all.", timeout=30_000)
        await expect(widget.locator(".yna-call")).to_have_attribute("data-status", "done")
    await notebook.until_ready()
    shown = await early.evaluate(SHOWN)
    assert shown == await late.evaluate(SHOWN)
    assert " ".join(shown[1][:-1]).split() == [f"{number:04d}" for number in range(9_000)]
    await notebook.run_cell(3)
    await expect(notebook.cell(3).locator(".jp-OutputArea-output")).to_have_text("(True, True)")


async def test_a_connection_that_is_lost_and_back_costs_nothing(open_notebook: OpenNotebook) -> None:
    notebook = await open_notebook(
        FLOOD.replace("await late.wait()", "await asyncio.sleep(1)").replace("9_000", "300"),
        "agent.messages[1].text.split() == [f'{number:04d}' for number in range(MANY)]",
    )
    widget = notebook.widget()
    await notebook.say("go")
    await expect(widget.locator(".yna-answer")).to_contain_text("0150")
    await notebook.page.evaluate(
        "() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.reconnect()"
    )
    await expect(widget.locator(".yna-block").last).to_have_text("That is all.", timeout=20_000)
    await notebook.until_ready()
    blocks = await widget.locator(".yna-block").all_text_contents()
    assert " ".join(blocks[:-1]).split() == [f"{number:04d}" for number in range(300)]
    await notebook.run_cell(1)
    await expect(notebook.cell(1).locator(".jp-OutputArea-output")).to_have_text("True")
