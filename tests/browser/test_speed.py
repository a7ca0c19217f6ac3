"""The widget keeps up: what crosses the wire, and how often. How long the page is busy is printed only,
since that depends on the machine: `pytest tests/browser/test_speed.py -s`."""

from __future__ import annotations

from typing import Any

import pytest
from browser.conftest import OpenNotebook
from browser.lab import Notebook
from playwright.async_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

STREAM = """
import asyncio, json
from yiemagent_nb.core.agent import Agent
from yiemagent_nb.widgets import AgentWidget

async def words(messages):
    delay, count = (0.01, 2000) if messages[-1]["content"] == "steady" else (0, 9000)
    loop = asyncio.get_running_loop()
    due = loop.time()
    for number in range(count):
        end = "\\n\\n" if number % 40 == 39 else " "
        yield f"{'**bold** word' if number % 9 == 0 else 'some more text'} {number:05d}"[:20].ljust(19, ".") + end
        if delay:
            due += delay
            await asyncio.sleep(max(0, due - loop.time()))

agent = Agent(words)
widget = AgentWidget(agent, transcript=False)
sent = []
send = widget._host.frames._send
def counted(batch):
    sent.append(len(json.dumps(batch)))
    send(batch)
widget._host.frames._send = counted
widget
"""

WATCH = """() => {
    window.longTasks = [];
    window.watcher = new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) window.longTasks.push(Math.round(entry.duration));
    });
    window.watcher.observe({ entryTypes: ["longtask"] });
}"""


async def long_tasks(notebook: Notebook) -> list[int]:
    return await notebook.page.evaluate("() => window.longTasks")


async def output(notebook: Notebook, index: int) -> Any:
    await notebook.run_cell(index)
    return eval(await notebook.cell(index).locator(".jp-OutputArea-output").inner_text())  # noqa: S307 - our own tuple


async def test_two_thousand_deltas_stream_within_the_budget(open_notebook: OpenNotebook) -> None:
    notebook = await open_notebook(STREAM, "len(sent), sum(sent), len(agent.state.messages[-1].text)")
    await notebook.page.evaluate(WATCH)
    before = notebook.received
    await notebook.say("steady")
    answer = notebook.widget().locator(".yna-answer .yna-markdown")
    await expect(answer).to_contain_text("01999", timeout=60_000)
    await notebook.until_ready()
    slow = await long_tasks(notebook)
    size = notebook.received - before
    frames, content, length = await output(notebook, 1)
    print(
        f"\n{frames} frames, {size / 1e6:.2f} MB over the comm, {content / 1e6:.2f} MB of it ours, "
        f"for {length / 1e3:.0f} kB; long tasks {slow}"
    )
    assert length >= 39_000
    assert frames <= 600
    assert size <= 400_000


async def test_a_flood_ends_with_the_same_text(open_notebook: OpenNotebook) -> None:
    notebook = await open_notebook(STREAM, "len(sent), sum(sent), agent.state.messages[-1].text")
    await notebook.say("flood")
    await expect(notebook.widget().locator(".yna-answer .yna-markdown")).to_contain_text("08999", timeout=30_000)
    await notebook.until_ready()
    frames, _size, text = await output(notebook, 1)
    shown = await notebook.widget().locator(".yna-answer .yna-markdown").text_content()
    assert shown is not None
    assert shown.split() == text.replace("**", "").split()
    assert frames < 120


LONG_SESSION = '''
from yiemagent_nb.core.agent import Agent
from yiemagent_nb.core.messages import *
from yiemagent_nb.widgets import AgentWidget

body = """Here is **what I found** in part {n}:

- one thing, with `code`
- another thing

```python
def part_{n}(value: int) -> int:
    return value + {n}  # a comment
```

| name | value |
|------|-------|
| a    | {n}   |

And a closing sentence of some length, so that the text has the size of a usual answer.
"""
history = []
for n in range(500):
    history += [UserMessage(f"question {n}"), AssistantMessage(body.replace("{n}", str(n)))]
agent = Agent(lambda messages: "fine", messages=history)
None
'''


async def test_a_session_of_a_thousand_messages_opens_scrolls_and_takes_text(open_notebook: OpenNotebook) -> None:
    notebook = await open_notebook(LONG_SESSION, "AgentWidget(agent, transcript=False)")
    page = notebook.page
    await page.evaluate(WATCH)
    await page.evaluate(
        """() => {
            window.firstPaint = null;
            const begin = performance.now();
            const look = () => {
                if ([...document.querySelectorAll(".yna-said")].some((each) => each.textContent === "question 499")) {
                    window.firstPaint = performance.now() - begin;
                } else requestAnimationFrame(look);
            };
            look();
        }"""
    )
    await notebook.run_cell(1)
    widget = notebook.widget()
    await expect(widget.locator(".yna-said").last).to_have_text("question 499")
    painted = await page.evaluate("() => window.firstPaint")
    await page.evaluate("() => { window.longTasks.length = 0; }")
    await notebook.composer().press_sequentially("typing while the rest is built", delay=15)
    await expect(widget.locator(".yna-said")).to_have_count(500)
    building = await long_tasks(notebook)
    await page.evaluate("() => { window.longTasks.length = 0; }")
    await page.evaluate(
        """async () => {
            const scroller = document.querySelector(".yna-scroll");
            for (let step = 0; step < 60; step += 1) {
                scroller.scrollTop = scroller.scrollHeight * (1 - step / 60);
                await new Promise(requestAnimationFrame);
            }
        }"""
    )
    await notebook.composer().press_sequentially(" and more", delay=15)
    scrolling = await long_tasks(notebook)
    print(
        f"\nfirst paint {painted:.0f} ms, long tasks while building {building}, while scrolling and typing {scrolling}"
    )
    assert await widget.locator(".yna-said").first.text_content() == "question 0"
    assert await notebook.composer().input_value() == "typing while the rest is built and more"
