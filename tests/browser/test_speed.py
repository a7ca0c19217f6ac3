"""The widget keeps up: what crosses the wire, how often, and how long the page works at a time.

What a task of the page takes is processor time, since on a busy machine it also waits. Nothing of the test's
own runs in the page meanwhile: a search by label in a long transcript alone takes seconds. Times are printed,
since machines are noisy: `pytest tests/browser/test_speed.py -s`; what crosses the wire is asserted.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
from browser.conftest import OpenNotebook
from browser.lab import Notebook
from playwright.async_api import Page, expect

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

UNTIL = """([selector, text]) => new Promise((resolve) => {
    const look = () => {
        const found = [...document.querySelectorAll(selector)].at(-1);
        if (found?.textContent.includes(text)) return resolve();
        setTimeout(look, 100);
    };
    look();
})"""


@asynccontextmanager
async def tasks(page: Page) -> AsyncGenerator[list[float]]:
    """What the page's own thread does meanwhile: processor time of each task in milliseconds, the longest first."""
    session = cast("Any", await page.context.new_cdp_session(page))  # its messages have no types
    events: list[dict[str, Any]] = []
    done = asyncio.Event()

    def collect(data: dict[str, list[dict[str, Any]]]) -> None:
        events.extend(data["value"])

    def finish(_data: dict[str, Any]) -> None:
        done.set()

    session.on("Tracing.dataCollected", collect)
    session.on("Tracing.tracingComplete", finish)
    await session.send("Tracing.start", {"categories": "toplevel", "transferMode": "ReportEvents"})
    found: list[float] = []
    yield found
    await session.send("Tracing.end")
    await asyncio.wait_for(done.wait(), 30)
    await session.detach()
    threads = {
        (event["pid"], event["tid"])
        for event in events
        if event["name"] == "thread_name" and event["args"]["name"] == "CrRendererMain"
    }
    found += sorted(
        (
            event["tdur"] / 1000
            for event in events
            if event["name"].endswith("RunTask") and (event["pid"], event["tid"]) in threads and "tdur" in event
        ),
        reverse=True,
    )
    assert found, "no task was seen"


async def until(page: Page, selector: str, text: str) -> None:
    """Wait until the last such element has a text, with next to no work in the page."""
    await page.evaluate(UNTIL, [selector, text])


def longest(found: list[float]) -> str:
    return " ".join(f"{each:.0f}" for each in found[:5])


async def output(notebook: Notebook, index: int) -> Any:
    await notebook.run_cell(index)
    return eval(await notebook.cell(index).locator(".jp-OutputArea-output").inner_text())  # noqa: S307 - our own tuple


async def test_two_thousand_deltas_stream_within_the_budget(open_notebook: OpenNotebook) -> None:
    notebook = await open_notebook(STREAM, "len(sent), sum(sent), len(agent.state.messages[-1].text)")
    await notebook.until_ready()
    before = notebook.received
    async with tasks(notebook.page) as found:
        await notebook.say("steady")
        await until(notebook.page, ".yna-answer .yna-markdown", "01999")
    await notebook.until_ready()
    size = notebook.received - before
    frames, content, length = await output(notebook, 1)
    print(
        f"\n{frames} frames, {size / 1e6:.2f} MB over the comm, {content / 1e6:.2f} MB of it ours, "
        f"for {length / 1e3:.0f} kB; longest tasks {longest(found)} ms"
    )
    assert length >= 39_000
    assert frames <= 600
    assert size <= 400_000


async def test_a_flood_ends_with_the_same_text_in_a_view_from_the_start_and_in_a_late_one(
    open_notebook: OpenNotebook,
) -> None:
    notebook = await open_notebook(STREAM, "widget", "len(sent), sum(sent), agent.state.messages[-1].text")
    await notebook.say("flood")
    await until(notebook.page, ".yna-answer .yna-markdown", "00")
    await notebook.run_cell(1)
    answers = notebook.page.locator(".yna-answer .yna-markdown")
    await expect(answers).to_have_count(2)
    for index in (0, 1):
        await expect(answers.nth(index)).to_contain_text("08999", timeout=30_000)
        await notebook.until_ready(index)
    frames, _size, text = await output(notebook, 2)
    for shown in await answers.all_text_contents():
        assert shown.split() == text.replace("**", "").split()
    assert frames < 140


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
    await page.evaluate(
        """() => {
            window.firstPaint = null;
            const begin = performance.now();
            const look = () => {
                if ([...document.querySelectorAll(".yna-said")].some((each) => each.textContent === "question 499")) {
                    window.firstPaint = performance.now() - begin;
                    document.querySelector(".yna textarea").focus();
                } else requestAnimationFrame(look);
            };
            look();
        }"""
    )
    async with tasks(page) as painting:
        await notebook.run_cell(1)
        await until(page, ".yna-said", "question 499")
    async with tasks(page) as building:
        await page.keyboard.type("typing while the rest is built", delay=15)
        await page.evaluate(UNTIL.replace(".at(-1)", ".at(0)"), [".yna-said", "question 0"])
    painted = await page.evaluate("() => window.firstPaint")
    async with tasks(page) as scrolling:
        await page.evaluate(
            """async () => {
                const scroller = document.querySelector(".yna-scroll");
                for (let step = 0; step < 60; step += 1) {
                    scroller.scrollTop = scroller.scrollHeight * (1 - step / 60);
                    await new Promise(requestAnimationFrame);
                }
            }"""
        )
        await page.keyboard.type(" and more", delay=15)
    print(
        f"\nfirst paint after {painted:.0f} ms, {sum(painting):.0f} of them work; "
        f"longest tasks until then {longest(painting)} ms, while building {longest(building)} ms, "
        f"while scrolling and typing {longest(scrolling)} ms"
    )
    widget = notebook.widget()
    await expect(widget.locator(".yna-said")).to_have_count(500)
    assert await page.locator(".yna textarea").input_value() == "typing while the rest is built and more"
