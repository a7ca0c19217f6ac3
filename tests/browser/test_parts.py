"""The parts of the front end that are loaded on first need."""

from __future__ import annotations

import pytest
from browser.conftest import OpenNotebook
from playwright.async_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

ANSWERS = '''
from yiemagent_nb.core.agent import Agent
from yiemagent_nb.core.messages import AssistantMessage, UserMessage
from yiemagent_nb.widgets import AgentWidget, assets

asked = []
built = assets.part
broken = set()
late = set()

def part(name):
    asked.append(name)
    if name in broken:
        return "throw new Error('broken on purpose');"
    return ("await new Promise((resolve) => (window.release = resolve));" if name in late else "") + built(name)

assets.part = part

TEXT = """A **bold** word and $x^2$, <img src=x onerror="window.pwned = 1">

```python
def f(): return "<b>text</b>"  # says so
```
"""

def answer(messages):
    return TEXT

def agent():
    return Agent(answer, messages=[UserMessage("before"), AssistantMessage(TEXT)])
'''


async def test_each_part_comes_once_a_page_and_when_it_is_needed(open_notebook: OpenNotebook) -> None:
    notebook = await open_notebook(
        ANSWERS + "AgentWidget(Agent(lambda messages: 'no code'), transcript=False)",
        "AgentWidget(agent(), transcript=False)",
        "AgentWidget(agent(), transcript=False)",
        "sorted(asked)",
        own_page=True,
    )
    await notebook.say("hello")
    await expect(notebook.widget(0).locator(".yna-block")).to_have_text("no code")
    await notebook.until_ready()
    await notebook.run_cell(3)
    output = notebook.cell(3).locator(".jp-OutputArea-output")
    await expect(output).to_have_text("['markdown', 'menu', 'search']")
    for index in (1, 2):
        await notebook.run_cell(index)
        widget = notebook.widget(index)
        await expect(widget.locator(".yna-block strong")).to_have_text("bold")
        await expect(widget.locator(".yna-hl-keyword").first).to_have_text("def")
        await expect(widget.locator(".yna-code code")).to_have_text('def f(): return "<b>text</b>"  # says so')
        await expect(widget.locator(".yna-math math")).to_have_count(1)
    await notebook.run_cell(3)
    await expect(output).to_have_text("['highlight', 'markdown', 'math', 'menu', 'search']")
    colours = "element => [element, element.closest('pre')].map((each) => getComputedStyle(each).color)"
    for index in (1, 2):
        keyword, code = await notebook.widget(index).locator(".yna-hl-keyword").first.evaluate(colours)
        assert keyword != code


async def test_without_its_parts_text_is_shown_as_it_is_written_and_later_rendered(open_notebook: OpenNotebook) -> None:
    notebook = await open_notebook(
        ANSWERS + 'broken.update(["markdown", "highlight"])\nAgentWidget(agent(), transcript=False)',
        'broken.remove("markdown")',
        "broken.clear()",
        own_page=True,
    )
    widget = notebook.widget()

    async def say_until(selector: str) -> None:
        for attempt in range(20):  # what is needed again is asked for again, but not at once
            await notebook.say(f"attempt {attempt}")
            await notebook.until_ready()
            if await widget.locator(selector).count() > 0:
                return
            await notebook.page.wait_for_timeout(250)
        pytest.fail(f"{selector} never came")

    await expect(widget.locator(".yna-plain")).to_contain_text("A **bold** word and $x^2$, <img src=x onerror")
    await expect(widget.locator(".yna-plain *, .yna-block")).to_have_count(0)
    await notebook.run_cell(1)
    await say_until(".yna-block strong")
    await expect(widget.locator(".yna-plain")).to_have_count(0)
    await expect(widget.locator(".yna-code code").first).to_have_text('def f(): return "<b>text</b>"  # says so')
    await expect(widget.locator(".yna-code code span")).to_have_count(0)
    await notebook.run_cell(2)
    await say_until(".yna-hl-keyword")
    await expect(widget.locator(".yna-code").first.locator(".yna-hl-keyword").first).to_have_text("def")
    assert await notebook.page.evaluate("() => window.pwned") is None


async def test_what_a_part_makes_says_that_it_loads_and_what_to_do_where_it_cannot(open_notebook: OpenNotebook) -> None:
    notebook = await open_notebook(
        ANSWERS + 'broken.add("settings")\nlate.add("search")\nAgentWidget(agent(), transcript=False)',
        "broken.clear()",
        own_page=True,
    )
    widget, page = notebook.widget(), notebook.page
    button = widget.locator(".yna-backend-button")
    panel = widget.get_by_role("region", name="Backend and model")
    await button.click()
    await expect(panel).to_have_text("This panel could not be loaded: broken on purpose Retry")
    await notebook.say("goes on")
    await expect(widget.locator(".yna-answer")).to_have_count(2)
    await notebook.until_ready()
    await notebook.run_cell(1)
    await panel.get_by_role("button", name="Retry").press("Enter")
    await expect(panel.get_by_role("radiogroup", name="Backend")).to_be_visible()
    await expect(panel.get_by_role("button", name="Check")).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(panel).to_be_hidden()
    await expect(button).to_be_focused()

    search = widget.get_by_role("search")
    await notebook.composer().press("Control+f")
    await expect(search.get_by_text("Loading…")).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(notebook.composer()).to_be_focused()
    await expect(search).to_be_hidden()
    await page.keyboard.press("Control+f")
    await page.evaluate("window.release()")
    await expect(search.get_by_label("Search this conversation")).to_be_focused()
    await page.keyboard.type("bold")
    await expect(search.locator(".yna-search-count")).to_have_text("1 of 2")
    await page.keyboard.press("Escape")
    await expect(notebook.composer()).to_be_focused()
