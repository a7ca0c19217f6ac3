"""The cards of tools: what they say, how batches stand together, and what is seen of results."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from browser.conftest import OpenNotebook
from browser.test_demo_and_looks import CONTRAST
from browser.test_safety import INSPECT
from playwright.async_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

LOG = 'TreeWalker(document.querySelector(".yna-log")'

BATCH = '''
import asyncio
from yiemagent_nb import Agent, AgentWidget
from yiemagent_nb.core.approval import approve
from yiemagent_nb.testing import Scripted, call

go_on, read_on = asyncio.Event(), asyncio.Event()

async def read_file(path: str) -> str:
    """Read a file."""
    await read_on.wait()
    return "high water at six"

async def send_mail(to: str) -> str:
    """Send a mail."""
    if to == "nobody":
        raise ValueError("nobody has no address")
    await go_on.wait()
    return "sent"

agent = Agent(
    Scripted([[call("read_file", path="a"), call("read_file", path="b"), call("send_mail", to="me")], "All done.",
              [call("send_mail", to="nobody"), call("send_mail", to="me")], "One failed."]),
    tools=[read_file, send_mail],
)
AgentWidget(agent)
'''


async def test_the_calls_of_one_answer_are_a_batch_that_folds_when_all_are_done(open_notebook: OpenNotebook) -> None:
    notebook = await open_notebook(BATCH, "read_on.set()", "go_on.set()")
    widget = notebook.widget()
    await notebook.say("go")
    header, rows = widget.locator(".yna-group-row"), widget.locator(".yna-call-row")
    await expect(header).to_have_text("Running 3 of 3 tools…")
    await expect(header).to_have_attribute("aria-expanded", "true")
    await expect(widget.locator(".yna-call-what .yna-call-verb")).to_have_text(["Reading", "Reading", "Sending"])
    await notebook.run_cell(1)
    await expect(header).to_have_text("Running 1 of 3 tools…")
    await expect(rows.nth(0)).to_contain_text("Read file")
    await notebook.run_cell(2)
    await notebook.until_ready()
    await expect(header).to_contain_text("Ran 3 toolsRead file \u00d72, Send mail")
    await expect(header).to_have_attribute("aria-expanded", "false")
    await expect(rows.first).to_be_hidden()
    times = await widget.locator(".yna-call-time").all_text_contents()
    assert all(times), "the batch and each of its calls tell how long they took"
    await header.press("Enter")
    await expect(rows).to_have_count(3)
    await expect(rows.first).to_be_visible()
    await rows.nth(2).press("Enter")
    await expect(widget.locator(".yna-result")).to_contain_text("sent")
    await header.press("Enter")
    await expect(rows.first).to_be_hidden()
    await notebook.say("again")
    await notebook.until_ready()
    await expect(header.last).to_contain_text("Ran 2 tools, 1 failed")
    await expect(header.last).to_have_attribute("aria-expanded", "true")
    await expect(rows.nth(3)).to_contain_text("Could not send mail")
    await expect(widget.locator(".yna-call-problem").nth(3)).to_contain_text("nobody has no address")
    await rows.nth(3).click()
    error = widget.locator(".yna-call-error")
    await expect(error.locator(".yna-error-text")).to_have_text("send_mail raised ValueError: nobody has no address")
    await expect(error.locator(".yna-error-code")).to_have_text("TOOL_FAILED")
    await expect(header.first).to_have_attribute("aria-expanded", "false")


async def test_a_batch_that_waits_for_a_person_stays_open(open_notebook: OpenNotebook) -> None:
    notebook = await open_notebook(
        BATCH.replace("tools=[read_file, send_mail],", "tools=[read_file, send_mail], before_tool_call=approve(),"),
        "read_on.set(); go_on.set()",
    )
    widget = notebook.widget()
    await notebook.say("go")
    header = widget.locator(".yna-group-row")
    await expect(header).to_contain_text("for you")
    await expect(widget.locator(".yna-call-row").first).to_contain_text("Wants to read file")
    await header.click()
    await expect(header).to_have_attribute("aria-expanded", "true")
    await notebook.run_cell(1)
    for index in range(3):
        card = widget.locator(".yna-call").nth(index)
        await card.get_by_role("button", name="Allow once").click()
        await expect(card.locator(".yna-approval")).to_have_count(0)
    await notebook.until_ready()
    await expect(header).to_contain_text("Ran 3 tools")


RESULTS = r'''
import json
import pandas as pd
from IPython.display import Math
from PIL import Image
from yiemagent_nb import Agent, AgentWidget
from yiemagent_nb.core.tools import Tool
from yiemagent_nb.testing import Scripted, call

def query_table() -> pd.DataFrame:
    """Query the table."""
    return pd.DataFrame({"station": [f"Station {n}" for n in range(400)], "height": range(400)})

def draw_charts() -> list:
    """Draw charts."""
    return [Image.new("RGB", (600, 400), color) for color in ("teal", "orange")]

def solve() -> object:
    """Solve it."""
    return Math(r"x = \frac{1}{2}")

def get_config() -> dict:
    """Get the configuration."""
    return {"server": {"ports": [8000, 8001]}, "limits": {f"limit {n}": n for n in range(250)}, "<b>name</b>": "tides"}

def read_notes() -> str:
    """Read the notes."""
    return "# Tides\n\nHigh at **six**.\n\n<img src=x onerror='window.pwned = 1'>\n\n- Lisbon\n- Cascais\n"

hidden = Tool(name="read", label="Read\u202eelif\u200b", source="ser\u2066ver", description="Read.",
              execute=lambda *_: "nothing")
agent = Agent(Scripted([[call("query_table"), call("draw_charts")], [call("solve")], [call("get_config")],
                        [call("read_notes")], [call("read")], "Done."]),
              tools=[query_table, draw_charts, solve, get_config, read_notes, hidden])
AgentWidget(agent, height="1600px")
'''


async def test_results_are_shown_in_the_form_that_suits_them(open_notebook: OpenNotebook, tmp_path: Path) -> None:
    notebook = await open_notebook(RESULTS, height=1900)
    page, widget = notebook.page, notebook.widget()
    await notebook.say("go")
    await expect(widget.locator(".yna-answer").last).to_contain_text("Done.", timeout=20_000)
    await notebook.until_ready()
    await expect(widget.locator(".yna-group-row").first).to_have_attribute("aria-expanded", "false")

    table = widget.locator(".yna-table")
    await expect(table).to_contain_text("DataFrame, 400 rows x 2 columns (the first 20 rows are shown)")
    await expect(table.locator("tbody tr")).to_have_count(8)
    await table.get_by_role("button", name="Show all 20 rows here").press("Enter")
    await expect(table.locator("tbody tr")).to_have_count(20)
    await expect(table.get_by_role("cell", name="19", exact=True)).to_have_css("text-align", "right")
    await expect(table.get_by_role("columnheader", name="station")).to_have_css("position", "sticky")

    image = widget.get_by_role("button", name="Enlarge Image from Draw charts, 1 of 2")
    small = await image.bounding_box()
    await image.click()
    await expect(image).to_have_attribute("aria-expanded", "true")
    large = await image.bounding_box()
    assert small is not None
    assert large is not None
    assert large["width"] > 2 * small["width"]
    await image.press("Escape")
    assert await image.bounding_box() == small

    await expect(widget.locator(".yna-result-formula math")).to_be_visible()

    rows = widget.locator(".yna-call-row")
    await rows.nth(3).click()
    tree = widget.locator(".yna-json")
    await expect(tree).to_contain_text("server: {ports}")
    await expect(tree.get_by_text("limit 7:")).to_have_count(0)
    await tree.get_by_text("limits", exact=True).click()
    await expect(tree.get_by_text("limit 7:")).to_be_visible()
    await tree.get_by_role("button", name="Show 100 more of 150").click()
    await expect(tree.locator(".yna-json-leaf", has_text="limit ")).to_have_count(200)
    await expect(tree.get_by_text("<b>name</b>", exact=True)).to_be_visible()

    await rows.nth(4).click()
    await expect(widget.locator(".yna-result-markdown strong")).to_have_text("six")

    await expect(rows.nth(5)).to_contain_text(r"Ran read\u202eelif\u200b")
    await expect(rows.nth(5).locator(".yna-call-source")).to_have_text(r"ser\u2066ver")

    assert await page.evaluate(INSPECT.replace('TreeWalker(document.querySelector(".yna")', LOG)) == []
    assert await page.evaluate("() => window.pwned") is None
    assert await page.evaluate(CONTRAST) == []
    await widget.screenshot(path=tmp_path / "light.png")
    try:
        await notebook.set_theme("JupyterLab Dark")
        assert await page.evaluate(CONTRAST) == []
        await widget.screenshot(path=tmp_path / "dark.png")
    finally:
        await notebook.set_theme("JupyterLab Light")
    print(f"\nscreenshots in {tmp_path}")


async def test_the_raw_view_has_the_call_and_its_result_as_they_went_over(open_notebook: OpenNotebook) -> None:
    notebook = await open_notebook(BATCH, "read_on.set(); go_on.set()")
    widget = notebook.widget()
    await notebook.run_cell(1)
    await notebook.say("go")
    await notebook.until_ready()
    await widget.locator(".yna-group-row").click()
    await widget.locator(".yna-call-row").first.click()
    await expect(widget.locator(".yna-raw-view")).to_have_count(0)
    switch = widget.get_by_role("button", name="Raw")
    await switch.click()
    await expect(switch).to_have_attribute("aria-pressed", "true")
    raw = json.loads(await widget.locator(".yna-raw-view pre").inner_text())
    assert raw["call"]["name"] == "read_file"
    assert raw["call"]["arguments"] == {"path": "a"}
    assert raw["result"]["content"] == [{"type": "text", "text": "high water at six"}]
    assert raw["result"]["is_error"] is False
    await expect(widget.locator(".yna-args")).to_be_hidden()
    await switch.click()
    await expect(widget.locator(".yna-args")).to_be_visible()
