"""The embedded default answers with no key and no network, and it looks right in light and dark."""

from __future__ import annotations

from pathlib import Path

import pytest
from browser.conftest import OpenNotebook
from playwright.async_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

DEFAULT = '''
import os
os.environ["YIEMAGENT_BACKEND"] = "demo"
from yiemagent_nb.widgets import AgentWidget

def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b

def weather(city: str) -> str:
    """Tell the weather in a city."""
    return f"Sunny in {city}, 21 degrees."

widget = AgentWidget()
widget.agent.add_tools(add, weather)
widget
'''

CONTRAST = r"""() => {
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = 1;
    const pen = canvas.getContext("2d", { willReadFrequently: true });
    const rgb = (color) => {
        pen.fillStyle = color;
        pen.fillRect(0, 0, 1, 1);
        return [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3);
    };
    const light = (color) => {
        const [r, g, b] = rgb(color).map((part) => {
            const value = part / 255;
            return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
        });
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const ground = (element) => {
        for (let each = element; each; each = each.parentElement) {
            const color = getComputedStyle(each).backgroundColor;
            if (color !== "rgba(0, 0, 0, 0)" && color !== "transparent") return color;
        }
        return "white";
    };
    const poor = [];
    const walk = document.createTreeWalker(document.querySelector(".yna"), NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) {
        const element = walk.currentNode.parentElement;
        if (!walk.currentNode.textContent.trim() || !element.checkVisibility()) continue;
        if (element.closest("button:disabled, .yna-hidden, style")) continue;
        const [a, b] = [light(getComputedStyle(element).color), light(ground(element))];
        const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        const words = walk.currentNode.textContent.slice(0, 30);
        if (ratio < 4.5) poor.push(`${ratio.toFixed(1)} ${element.className}: ${words}`);
    }
    return poor;
}"""


async def test_the_default_answers_calls_tools_and_is_readable_in_light_and_dark(
    open_notebook: OpenNotebook, tmp_path: Path
) -> None:
    notebook = await open_notebook(DEFAULT)
    widget = notebook.widget()
    await expect(widget.locator(".yna-picker, .yna-backend").locator("visible=true").first).to_contain_text("Demo")
    await expect(widget.locator(".yna-suggestion", has_text="/tour")).to_be_visible()
    await expect(widget.locator(".yna-suggestion").first).to_have_text("Add two numbers: a = 17, b = 25")
    await widget.screenshot(path=tmp_path / "empty.png")
    await notebook.say("add 17 and 25, and tell me the weather in Lisbon")
    await notebook.until_ready()
    await expect(widget.locator(".yna-call[data-status=done]")).to_have_count(2)
    await expect(widget.locator(".yna-answer").last).to_contain_text("42")
    await expect(widget.locator(".yna-answer").last).to_contain_text("Sunny in Lisbon")
    await notebook.say("/markdown")
    await notebook.until_ready()
    assert await notebook.page.evaluate(CONTRAST) == []
    await widget.screenshot(path=tmp_path / "light.png")
    try:
        await notebook.set_theme("JupyterLab Dark")
        assert await notebook.page.evaluate(CONTRAST) == []
        await widget.screenshot(path=tmp_path / "dark.png")
    finally:
        await notebook.set_theme("JupyterLab Light")
    print(f"\nscreenshots in {tmp_path}")


async def test_it_fits_into_a_narrow_column(open_notebook: OpenNotebook, tmp_path: Path) -> None:
    notebook = await open_notebook(DEFAULT, width=420, height=800)
    await notebook.say("add 17 and 25")
    await notebook.until_ready()
    await notebook.say("/markdown")
    await notebook.until_ready()
    wider = await notebook.widget().evaluate(
        """widget => [...widget.querySelectorAll("*")].filter((each) => {
            const inner = each.closest("pre, table, .yna-math-display");
            return !inner && each.checkVisibility() && each.getBoundingClientRect().right >
                widget.getBoundingClientRect().right + 1;
        }).map((each) => each.className)"""
    )
    assert wider == []
    await notebook.widget().screenshot(path=tmp_path / "narrow.png")


async def test_two_in_a_row_share_its_width(open_notebook: OpenNotebook) -> None:
    row = "import ipywidgets\nwidget = AgentWidget(agent)\nipywidgets.HBox([widget, AgentWidget(agent)])"
    notebook = await open_notebook(f"from yiemagent_nb import Agent, AgentWidget, Demo\nagent = Agent(Demo())\n{row}")
    widths = [(await notebook.widget(index).bounding_box() or {"width": 0.0})["width"] for index in (0, 1)]
    assert min(widths) > 300
    assert abs(widths[0] - widths[1]) < 20
