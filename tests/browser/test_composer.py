"""A person writes: files, commands, what waits, Stop from the first moment, and what was written before."""

from __future__ import annotations

import asyncio
import base64
import struct
import zlib
from typing import Any

import pytest
from browser.conftest import OpenNotebook
from browser.lab import Notebook
from playwright.async_api import Locator, expect

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

SLOW = '''
import asyncio
from yiemagent_nb.core.agent import Agent
from yiemagent_nb.widgets import AgentWidget

go_on = asyncio.Event()

async def slow(messages):
    yield "Working. "
    await go_on.wait()
    yield f"You said {messages[-1]['content']}."

def plot(column):
    """Plot a column."""
    return f"Plot {column}"

agent = Agent(slow)
w = AgentWidget(agent, commands={"plot": plot})
w
'''

QUICK = SLOW.replace("asyncio.Event()", "asyncio.Event()\ngo_on.set()")

_TRANSFER = """(element, [kinds, files, text]) => {
    const data = new DataTransfer();
    for (const [name, type, content] of files) {
        const bytes = Uint8Array.from(atob(content), (character) => character.charCodeAt(0));
        data.items.add(new File([bytes], name, {type}));
    }
    if (text) data.setData("text/plain", text);
    return kinds.map((kind) => {
        const Kind = kind === "paste" ? ClipboardEvent : DragEvent;
        const carried = kind === "paste" ? {clipboardData: data} : {dataTransfer: data};
        const event = new Kind(kind, {bubbles: true, cancelable: true, ...carried});
        element.dispatchEvent(event);
        return event.defaultPrevented;
    });
}"""

_WATCH = """() => {
    window.seenOutside = [];
    for (const kind of ["dragenter", "dragover", "drop", "paste"]) {
        document.body.addEventListener(kind, (event) => window.seenOutside.push(event.type));
    }
}"""


def png(width: int, height: int) -> bytes:
    """A picture of one colour."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    rows = (b"\0" + b"\x33\x66\x99" * width) * height
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows, 1)) + chunk(b"IEND", b"")


def file(name: str, mime_type: str, data: bytes) -> list[str]:
    return [name, mime_type, base64.b64encode(data).decode()]


async def transfer(target: Locator, kinds: list[str], files: list[list[str]], text: str = "") -> Any:
    """Let the page's own events carry files; returns which of them the widget kept from the browser."""
    return await target.evaluate(_TRANSFER, [kinds, files, text])


async def output(notebook: Notebook, cell: int) -> str:
    await notebook.run_cell(cell)
    return (await notebook.cell(cell).locator(".jp-OutputArea-output").last.inner_text()).strip()


async def test_files_are_dropped_pasted_taken_away_and_sent(open_notebook: OpenNotebook) -> None:
    notebook = await open_notebook(
        QUICK,
        "image, text = [m for m in agent.messages if m.role == 'user'][0].content[1:]\n"
        "import base64, struct\n"
        "print(struct.unpack('>II', base64.b64decode(image.data)[16:24]), text.text)",
    )
    widget, composer = notebook.widget(), notebook.composer()
    chips = widget.locator(".yna-chip")
    await notebook.page.evaluate(_WATCH)
    table = file("data.csv", "text/csv", b"x,y\n1,2")
    files = [file("chart.png", "image/png", png(3000, 1500)), table, file("archive.bin", "", b"PK\xff\0")]
    log = widget.locator(".yna-log")
    assert await transfer(log, ["dragenter", "dragover"], files) == [True, True]
    await expect(widget).to_have_class("yna yna-dropping")
    await transfer(log, ["dragleave"], files)
    await expect(widget).to_have_class("yna")
    assert await transfer(log, ["dragover", "drop"], files) == [True, True]
    await expect(chips).to_have_text(["chart.pngscaled to 2048 \N{MULTIPLICATION SIGN} 1024", "data.csv7 B"])
    problem = widget.locator(".yna-composer .yna-problem")
    await expect(problem).to_contain_text("archive.bin is neither an image nor text. Save it beside the notebook")
    await expect(composer).to_be_focused()
    assert await transfer(composer, ["paste"], [file("image.png", "image/png", png(9, 5))]) == [True]
    await expect(chips).to_have_count(3)
    await expect(chips.last).to_contain_text("9 \N{MULTIPLICATION SIGN} 5")
    await widget.get_by_role("button", name="Remove image.png").click()
    await expect(chips).to_have_count(2)
    # What programs copy has a picture of the text beside it: the text is meant.
    assert await transfer(composer, ["paste"], [file("image.png", "image/png", png(9, 5))], "cells") == [False]
    assert await transfer(widget.locator(".yna-header"), ["drop"], [], "https://example.org/") == [True]
    await expect(chips).to_have_count(2)
    await notebook.say("What is it?")
    await notebook.until_ready()
    await expect(chips).to_have_count(0)
    assert await output(notebook, 1) == '(2048, 1024) <file name="data.csv">\nx,y\n1,2\n</file>'
    async with notebook.page.expect_file_chooser() as chooser:
        await widget.get_by_role("button", name="Attach files").click()
    await (await chooser.value).set_files({"name": "more.txt", "mimeType": "text/plain", "buffer": b"more"})
    await expect(chips).to_have_text(["more.txt4 B"])
    assert await notebook.page.evaluate("() => window.seenOutside") == []


async def test_what_waits_is_taken_back_with_its_files_or_steers_now(open_notebook: OpenNotebook) -> None:
    notebook = await open_notebook(SLOW, "go_on.set()")
    widget, composer = notebook.widget(), notebook.composer()
    hint, queued = widget.locator(".yna-hint"), widget.locator(".yna-queued")
    await expect(hint).to_have_text("Enter sends · Shift+Enter breaks the line")
    await notebook.say("start")
    await expect(widget.locator(".yna-answer")).to_contain_text("Working.")
    await expect(hint).to_have_text("Enter steers · Alt+Enter queues · Esc stops")
    await transfer(composer, ["drop"], [file("a<b>.csv", "", b"x,y"), file("dot.png", "", png(4, 4))])
    await expect(widget.locator(".yna-chip")).to_have_count(2)
    await notebook.say("with files", key="Alt+Enter")
    await notebook.say("left", key="Alt+Enter")
    await expect(queued).to_have_text(
        ["Queuedwith filesa<b>.csv, 1 imageSteer nowTake back", "QueuedleftSteer nowTake back"]
    )
    await widget.get_by_role("button", name="Steer now: left").click()
    await expect(queued.first).to_have_text("SteeringleftTake back")
    await expect(widget.get_by_role("button", name="Take back: left")).to_be_focused()
    await composer.fill("a draft")
    await widget.get_by_role("button", name="Take back: with files").evaluate("b => { b.click(); b.click(); }")
    await expect(composer).to_have_value("with files\n\na draft")
    await expect(widget.locator(".yna-composer .yna-problem")).to_be_hidden()
    await expect(composer).to_be_focused()
    await expect(widget.locator(".yna-chip-name")).to_have_text(["a<b>.csv", "image.png"])
    await expect(queued).to_have_count(1)
    await notebook.page.keyboard.press("Escape")
    await expect(queued).to_have_text("WaitingleftTake back")
    await expect(hint).to_have_text("Enter sends, and what waits goes on with it")
    await notebook.run_cell(1)
    await composer.fill("go on")
    await composer.press("Enter")
    await expect(widget.locator(".yna-answer").last).to_contain_text("You said")
    await notebook.until_ready()
    said = widget.locator(".yna-user")
    await expect(said.nth(1)).to_contain_text("left")
    await expect(said.nth(2)).to_contain_text("go on")


async def test_stop_works_from_the_first_moment(open_notebook: OpenNotebook) -> None:
    block = "import time, pathlib\nwhile not pathlib.Path('unblock').exists(): time.sleep(0.02)"
    notebook = await open_notebook(SLOW, block, "print(len(agent.messages), agent.is_running)")
    widget, composer = notebook.widget(), notebook.composer()
    blocked = asyncio.ensure_future(notebook.run_cell(1))
    await expect(notebook.cell(1).locator(".jp-InputPrompt")).to_contain_text("[*]")
    await composer.fill("never mind")
    await composer.press("Enter")
    stop = widget.get_by_role("button", name="Stop")
    await expect(stop).to_be_visible()
    await stop.click()
    await expect(widget.locator(".yna-hint")).to_have_text("Stopping…")
    (notebook.lab.notebooks / "unblock").touch()
    await blocked
    await expect(widget.locator(".yna-queued")).to_have_text("Waitingnever mindTake back")
    assert await output(notebook, 2) == "0 False"
    await expect(stop).to_be_hidden()
    await widget.get_by_role("button", name="Take back").click()
    await expect(composer).to_have_value("never mind")
    # The kernel is free now: the stop meets the run, or the message before it.
    await composer.press("Enter")
    await composer.press("Escape")
    await expect(stop).to_be_hidden()
    await notebook.until_ready()
    assert (await output(notebook, 2)).endswith("False")


async def test_commands_are_listed_completed_and_run(open_notebook: OpenNotebook) -> None:
    notebook = await open_notebook(QUICK)
    widget, composer = notebook.widget(), notebook.composer()
    hint, menu = widget.locator(".yna-hint"), widget.get_by_role("listbox", name="Commands")
    await composer.press_sequentially("/")
    await expect(menu.get_by_role("option")).to_contain_text(["/plot", "/new", "/stop", "/retry"])
    await expect(hint).to_have_text("Enter completes /plot · Esc closes the list")
    combobox = widget.get_by_role("combobox", name="Message to the agent")
    await expect(combobox).to_have_attribute("aria-expanded", "true")
    await composer.press("ArrowDown")
    chosen = menu.get_by_role("option", selected=True)
    await expect(chosen).to_contain_text("/new")
    await expect(combobox).to_have_attribute("aria-activedescendant", str(await chosen.get_attribute("id")))
    await composer.press("Escape")
    await expect(menu).to_be_hidden()
    await expect(composer).to_have_attribute("aria-label", "Message to the agent")
    await expect(combobox).to_have_count(0)
    await composer.fill("")
    await composer.fill("/pl")
    await composer.press("Tab")
    await expect(composer).to_have_value("/plot ")
    await composer.press_sequentially("price")
    await expect(hint).to_have_text("Enter runs /plot: Plot a column")
    await composer.press("Enter")
    await expect(widget.locator(".yna-said")).to_have_text("Plot price")
    await notebook.until_ready()
    await notebook.say("/data/x is a path")
    await expect(widget.locator(".yna-said").last).to_have_text("/data/x is a path")
    await notebook.until_ready()
    await notebook.say("/thinking")
    notice = widget.locator(".yna-notice")
    await expect(notice).to_contain_text("The thinking level is off.")
    await widget.get_by_role("button", name="Dismiss").click()
    await expect(notice).to_be_hidden()
    await composer.fill("/thinking much")
    await composer.press("Enter")
    await expect(widget.locator(".yna-composer .yna-problem")).to_contain_text("no thinking level 'much'")
    await expect(composer).to_have_value("/thinking much")
    await composer.fill("/ne")
    await composer.press("Enter")
    await composer.press("Enter")
    await expect(widget.locator(".yna-said")).to_have_count(0)
    await expect(notice).to_contain_text("What was said stays")


async def test_keys_after_a_click_anywhere_in_the_widget_never_reach_the_notebook(open_notebook: OpenNotebook) -> None:
    notebook = await open_notebook(QUICK, "'another cell'", width=1400)
    widget, keyboard = notebook.widget(), notebook.page.keyboard
    cells = notebook.page.locator(".jp-NotebookPanel:not(.lm-mod-hidden) .jp-CodeCell")
    for place in (
        ".yna-header",
        ".yna-status",
        ".yna-empty-title",
        ".yna-composer",
        ".yna-hint",
        ".yna-bar",
        ".yna-box",
    ):
        await widget.locator(place).click(position={"x": 3, "y": 3})
        inside = "() => document.querySelector('.yna').contains(document.activeElement)"
        assert await notebook.page.evaluate(inside), place
        for key in "dda":
            await keyboard.press(key)
        await expect(cells).to_have_count(2)
    await expect(notebook.composer()).to_have_value("dda" * 3)
    await expect(notebook.composer()).to_be_focused()


async def test_what_was_written_comes_back(open_notebook: OpenNotebook) -> None:
    notebook = await open_notebook(QUICK, "w")
    await notebook.run_cell(1)
    composer = notebook.composer(1)
    for text in ("first", "second"):
        await notebook.say(text, index=1)
        await notebook.until_ready(1)
    await composer.fill("a draft " * 30 + "end")  # wraps into several lines
    await composer.press("ArrowUp")
    await expect(composer).to_have_value("a draft " * 30 + "end")
    await composer.press("Control+Home")
    await composer.press("ArrowUp")
    await expect(composer).to_have_value("second")
    await composer.press("ArrowUp")
    await composer.press("ArrowUp")
    await expect(composer).to_have_value("first")
    for _ in range(2):
        await composer.press("ArrowDown")
    await expect(composer).to_have_value("a draft " * 30 + "end")
    await composer.fill("kept")
    await transfer(composer, ["drop"], [file("kept.txt", "", b"kept")])
    await expect(notebook.widget(1).locator(".yna-chip")).to_have_count(1)
    await notebook.run_cell(1)  # draws the view anew
    await expect(notebook.composer(1)).to_have_value("kept")
    await expect(notebook.widget(1).locator(".yna-chip")).to_have_text("kept.txt4 B")
