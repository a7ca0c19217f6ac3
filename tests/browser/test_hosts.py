"""The main path in Notebook 7 and in Voilà, and what of other hosts can be had without them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, cast

import pytest
import pytest_asyncio
from browser.lab import Lab, Notebook
from playwright.async_api import BrowserContext, Error, Locator, expect

from yiemagent_nb import Agent
from yiemagent_nb.widgets import ChatPanel, assets
from yiemagent_nb.widgets.host import WidgetHost

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

AGENT = '''
import asyncio
from yiemagent_nb import Agent, AgentWidget, approve

def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b

async def model(messages, tools=None):
    last = messages[-1]
    if last["role"] == "tool":
        yield f"The sum is **{last['content']}**."
    elif last["content"] == "count":
        for number in range(2000):
            yield f"{number} "
            await asyncio.sleep(0.02)
    else:
        yield {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "add", "arguments": '{"a": 17, "b": 25}'}}]}

agent = Agent(model, tools=[add], before_tool_call=approve())
AgentWidget(agent)
'''

NOTEBOOKS_OWN = {
    "Cannot read properties of undefined (reading 'schema')",
    "Command 'filebrowser:open-path' not registered.",
}
"""Errors of Notebook 7.6 itself."""

OpenPage = Callable[[str], Awaitable[Notebook]]


@pytest_asyncio.fixture(loop_scope="session")
async def open_page(lab: Lab, browser: BrowserContext) -> AsyncIterator[OpenPage]:
    """A page for a notebook with one cell; at the end, its widgets had no error."""
    opened: list[Notebook] = []

    async def open_page(name: str) -> Notebook:
        page = await browser.new_page()
        page.set_default_timeout(20_000)
        await page.set_viewport_size({"width": 1000, "height": 900})
        lab.write_notebook(name, [AGENT])
        opened.append(Notebook(lab, page, name))
        return opened[-1]

    yield open_page
    for notebook in opened:
        await notebook.page.close()
    assert [each for notebook in opened for each in notebook.problems if each not in NOTEBOOKS_OWN] == []


async def talk(notebook: Notebook) -> None:
    """Ask, approve a call, and stop an answer."""
    widget = notebook.widget()
    await notebook.say("What is 17 + 25?")
    await expect(widget.locator(".yna-status")).to_have_text("1 waits for you")
    await widget.get_by_role("button", name="Allow once").click()
    await expect(widget.locator(".yna-markdown strong")).to_have_text("42")
    await expect(widget.locator(".yna-call-row")).to_contain_text("17")
    await notebook.until_ready()
    await notebook.say("count")
    await expect(widget.locator(".yna-answer").last).to_contain_text("3 4 5")
    await widget.get_by_role("button", name="Stop").click()
    await expect(widget.locator(".yna-ending")).to_contain_text("Stopped.")
    await notebook.until_ready()


async def shade(widget: Locator) -> str:
    """Whether dark text stands on a light ground or the other way round; else how bright both are, from 0 to 1."""
    ground, text = await widget.evaluate(
        """element => {
            const canvas = Object.assign(document.createElement("canvas"), { width: 1, height: 1 });
            const context = canvas.getContext("2d");
            const brightness = (color) => {
                context.fillStyle = color;
                context.fillRect(0, 0, 1, 1);
                const [red, green, blue] = context.getImageData(0, 0, 1, 1).data;
                return (red + green + blue) / 765;
            };
            const style = getComputedStyle(element);
            return [brightness(style.backgroundColor), brightness(style.color)];
        }"""
    )
    if ground > 0.9 and text < 0.3:
        return "light"
    return "dark" if ground < 0.3 and text > 0.7 else f"text of {text} on {ground}"


async def test_in_notebook_7_one_talks_types_reloads_and_turns_the_light_off(open_page: OpenPage) -> None:
    notebook = await open_page("in_notebook_7")
    await notebook.open_alone("notebooks")
    await notebook.run_cell(0)
    await talk(notebook)
    composer = notebook.composer()
    await composer.click()
    await composer.press_sequentially("add b a x z d d m y")
    await composer.press("Shift+Enter")
    await composer.press("Escape")
    await composer.press_sequentially("d d 0 0")
    await expect(composer).to_have_value("add b a x z d d m y\nd d 0 0")
    await expect(notebook.page.locator(".jp-Cell")).to_have_count(1)
    await expect(notebook.page.locator(".jp-CodeCell")).to_have_count(1)
    await expect(notebook.page.locator(".jp-Dialog")).to_have_count(0)
    await expect(notebook.page.locator(".yna-static")).to_be_hidden()
    assert await shade(notebook.widget()) == "light"
    await notebook.save()
    await notebook.reload()
    await expect(notebook.widget().locator(".yna-said")).to_have_text(["What is 17 + 25?", "count"])
    await expect(notebook.widget().locator(".yna-markdown strong")).to_have_text("42")
    await notebook.set_theme("JupyterLab Dark")
    in_the_dark = await shade(notebook.widget())
    await notebook.set_theme("JupyterLab Light")
    assert in_the_dark == "dark"


async def test_in_voila_each_page_has_its_own_agent_and_no_code_is_shown(open_page: OpenPage) -> None:
    notebook = await open_page("in_voila")
    await notebook.open_as_app()
    await talk(notebook)
    await expect(notebook.page.locator(".jp-InputArea-editor")).to_have_count(0)
    await expect(notebook.page.locator(".yna-static")).to_be_hidden()
    assert await shade(notebook.widget()) == "light"
    box = await notebook.widget().bounding_box()
    assert box is not None
    assert 250 < box["height"] <= 602
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 1000
    await notebook.open_as_app("dark")
    await expect(notebook.widget().locator(".yna-status")).to_have_text("Ready")
    await expect(notebook.widget().locator(".yna-said")).to_have_count(0)
    assert await shade(notebook.widget()) == "dark"


MINIMAL = """
async ({ script, style, traits, root }) => {
    document.head.append(Object.assign(document.createElement("style"), { textContent: style + root }));
    const listeners = [];
    const model = {
        get(name) {
            if (!(name in traits)) throw new Error(`There is no trait ${name}.`);
            return traits[name];
        },
        set() {},
        save_changes() {},
        on(name, callback) { listeners.push([name, callback]); },
        off(name, callback) {},
        send(content, callbacks, buffers) { window.tell(content); },
    };
    window.take = (batch) => {
        for (const [name, callback] of listeners) if (name === "msg:custom") callback(batch, []);
    };
    const only = new Proxy(model, {
        get(target, name) {
            if (!(name in target)) throw new Error(`A model has no ${String(name)}.`);
            return target[name];
        },
    });
    const url = URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
    const widget = await (await import(url)).default();
    await widget.initialize({ model: only });
    const el = document.body.appendChild(document.createElement("div"));
    await widget.render({ model: only, el });
}
"""
"""A host that offers what anywidget documents, and throws where more is asked for."""

HOSTS = {
    "none": ("", "light"),
    "vscode": (":root{--vscode-editor-background:#1e1e1e;--vscode-foreground:#cccccc}", "dark"),
    "colab": (":root{--colab-primary-surface-color:#383838;--colab-primary-text-color:#e3e3e3}", "dark"),
}


@pytest.mark.parametrize("name", HOSTS)
async def test_a_host_without_jupyter_needs_only_what_anywidget_documents_and_its_colours_count(
    browser: BrowserContext, name: str
) -> None:
    async def echo(messages: list[dict[str, Any]]) -> str:
        return f"You said **{messages[-1]['content']}**."

    page = await browser.new_page()
    problems: list[Error] = []

    def note(error: Error) -> None:
        problems.append(error)

    page.on("pageerror", note)
    told: set[asyncio.Task[Any]] = set()

    def send(batch: dict[str, Any]) -> None:
        told.add(asyncio.ensure_future(page.evaluate("batch => window.take(batch)", batch)))

    agent = Agent(echo)
    host = WidgetHost(agent, [ChatPanel(agent)], send)
    await cast("Any", page).expose_function("tell", host.receive)
    root, expected = HOSTS[name]
    traits = {"height": "600px", "_panel_names": ["chat"], "_header": True, "_transcript_name": "none"}
    await page.evaluate(MINIMAL, {"script": assets.script(), "style": assets.style(), "traits": traits, "root": root})
    composer = page.get_by_label("Message to the agent")
    await composer.fill("hello")
    await composer.press("Enter")
    await expect(page.locator(".yna-markdown strong")).to_have_text("hello")
    await expect(page.locator(".yna-status")).to_have_text("Ready")
    seen = await shade(page.locator(".yna"))
    await page.close()
    host.close()
    await asyncio.gather(*told)
    await agent.shutdown()
    assert problems == []
    assert seen == expected
