"""The widget is for everyone: what axe-core finds, a conversation by keyboard alone, what a screen reader is told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from browser.conftest import OpenNotebook
from browser.lab import Notebook
from playwright.async_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

AGENT = '''
import asyncio, json
from yiemagent_nb.core.agent import Agent
from yiemagent_nb.core.approval import approve
from yiemagent_nb.core.errors import ServerError
from yiemagent_nb.core.events import QuestionAsked
from yiemagent_nb.core.tools import ToolAnnotations, current_agent, tool
from yiemagent_nb.widgets import AgentWidget

quiet = ToolAnnotations(read_only=True)

@tool(annotations=quiet)
def add(a: int, b: int = 2) -> list[dict]:
    """Add two numbers."""
    return [{"a": a, "b": b, "sum": a + b}, {"a": b, "b": a, "sum": a + b}]

@tool(annotations=quiet)
def fail() -> None:
    """Fail."""
    raise RuntimeError("it broke")

@tool(annotations=quiet)
async def ask() -> str:
    """Ask the person."""
    schema = {"properties": {"city": {"type": "string", "title": "City"}, "kind": {"enum": ["one", "two"]},
                             "sure": {"type": "boolean", "title": "Sure"}}, "required": ["city"]}
    asked = QuestionAsked("q", "railways", "Where to?", schema)
    from yiemagent_nb.core.signal import AbortSignal
    return (await current_agent.get().questions.ask(asked, AbortSignal())).action

@tool(annotations=ToolAnnotations(destructive=True))
def delete(path: str) -> str:
    """Delete a file."""
    return f"deleted {path}"

TEXT = """# A heading

Words with **weight**, `code`, a [link](https://example.org) and $x^2$.

> A quotation

```python
def f(x: int) -> str:  # a comment
    return "text" + str(x * 2.5)
```

| name | value |
|------|------:|
| a    | 1     |

1. one
2. two

The end."""

def calls(*named):
    return {"tool_calls": [
        {"index": index, "id": name, "function": {"name": name, "arguments": json.dumps(arguments)}}
        for index, (name, arguments) in enumerate(named)
    ]}

async def model(messages):
    last = messages[-1]
    if last["role"] == "tool":
        for start in range(0, len(TEXT), 6):
            yield TEXT[start:start + 6]
            await asyncio.sleep(0.01)
    elif last["content"] == "show":
        yield {"reasoning": "First I think."}
        yield "I call tools."
        yield calls(("add", {"a": 1}), ("fail", {}))
    elif last["content"] == "delete":
        yield calls(("delete", {"path": "a.txt"}))
    elif last["content"] == "ask":
        yield calls(("ask", {}))
    else:
        raise ServerError("The server is out to lunch.")

agent = Agent(model, tools=[add, fail, ask, delete], before_tool_call=approve())
AgentWidget(agent, height="1400px", transcript=False)
'''

SCAN = """async () => {
    const { violations } = await axe.run(".yna", { resultTypes: ["violations"] });
    const grave = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
    return grave.flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) =>
        `${id}: ${html.slice(0, 160)} ${failureSummary.slice(0, 300)}`));
}"""

LISTEN = """() => {
    window.heard = [];
    const regions = [...document.querySelectorAll(".yna :is([aria-live=polite], [role=status], [role=alert])")];
    for (const region of regions) {
        new MutationObserver((changes) => {
            for (const { addedNodes } of changes)
                for (const node of addedNodes) if (node.textContent.trim()) window.heard.push(node.textContent.trim());
        }).observe(region, { childList: true, subtree: true, characterData: true });
    }
}"""


async def scan(notebook: Notebook, what: str) -> list[str]:
    return [f"{what}: {each}" for each in await notebook.page.evaluate(SCAN)]


async def test_axe_finds_nothing_serious_in_light_and_dark(
    open_notebook: OpenNotebook, front_end: Path, tmp_path: Path
) -> None:
    notebook = await open_notebook(AGENT, height=1600)
    widget = notebook.widget()
    await notebook.page.evaluate((front_end / "node_modules" / "axe-core" / "axe.min.js").read_text("utf-8"))
    found = await scan(notebook, "empty")
    for text in ("show", "fail"):
        await notebook.say(text)
        await notebook.until_ready()
    await notebook.say("ask")
    await expect(widget.locator(".yna-question")).to_be_visible()
    found += await scan(notebook, "closed rows, question and error")
    await widget.get_by_role("button", name="Decline").click()
    await notebook.until_ready()
    await notebook.say("delete")
    await expect(widget.locator(".yna-approval")).to_be_visible()
    rows = widget.locator(".yna-call-row[aria-expanded=false], .yna-thought > summary")
    await rows.evaluate_all("rows => rows.forEach((row) => row.click())")
    await widget.locator(".yna-header button").first.click()
    await expect(widget.locator(".yna-backend-panel")).to_be_visible()
    await notebook.composer().press("Control+f")
    await expect(widget.get_by_label("Search this conversation")).to_be_focused()
    try:
        for theme in ("JupyterLab Light", "JupyterLab Dark"):
            await notebook.set_theme(theme)
            found += await scan(notebook, theme)
            await widget.screenshot(path=tmp_path / f"{theme}.png")
    finally:
        await notebook.set_theme("JupyterLab Light")
    assert found == []
    await widget.evaluate("element => element.append(document.createElement('button'))")
    assert "button-name" in (await scan(notebook, "a button without a name"))[0]


FOCUSED = """() => {
    const focused = document.activeElement;
    return { inside: Boolean(focused.closest(".yna")), name: focused.ariaLabel || focused.textContent.trim() };
}"""


async def press_until(notebook: Notebook, key: str, reached: Callable[[Any], bool], most: int = 60) -> None:
    """Press a key until the focus is where it should be."""
    seen: list[str] = []
    for _ in range(most):
        await notebook.page.keyboard.press(key)
        focused = await notebook.page.evaluate(FOCUSED)
        seen.append(str(focused)[:80])
        if reached(focused):
            return
    pytest.fail(f"{key} never led there: {seen}")


async def test_a_conversation_with_an_approval_by_keyboard_alone(open_notebook: OpenNotebook) -> None:
    notebook = await open_notebook(AGENT, "x = 1", height=1600)
    keyboard = notebook.page.keyboard
    widget = notebook.widget()
    await notebook.page.evaluate("() => document.activeElement.blur()")
    await notebook.page.evaluate("() => window.jupyterapp.commands.execute('notebook:enter-command-mode')")
    await press_until(notebook, "Tab", lambda focused: focused["inside"])
    await press_until(notebook, "Tab", lambda focused: focused["name"].startswith("Message to"))
    await keyboard.type("delete")
    await keyboard.press("Enter")
    await expect(widget.locator(".yna-approval")).to_be_visible()
    await press_until(notebook, "Shift+Tab", lambda focused: focused["name"] == "Allow once")
    await keyboard.press("Enter")
    await expect(widget.locator(".yna-call").first).to_have_attribute("data-status", "done")
    await notebook.until_ready()
    assert (await notebook.page.evaluate(FOCUSED))["inside"]
    await press_until(notebook, "Tab", lambda focused: focused["name"].startswith("Message to"))
    await press_until(notebook, "Tab", lambda focused: not focused["inside"])
    await press_until(notebook, "Shift+Tab", lambda focused: focused["inside"])
    await press_until(notebook, "Shift+Tab", lambda focused: not focused["inside"])
    await expect(notebook.page.locator(".jp-CodeCell")).to_have_count(2)


async def test_a_screen_reader_is_told_finished_blocks_and_each_once(open_notebook: OpenNotebook) -> None:
    notebook = await open_notebook(AGENT)
    await notebook.page.evaluate(LISTEN)
    await notebook.say("show")
    await notebook.until_ready()
    await expect(notebook.widget().locator(".yna-block").last).to_have_text("The end.")
    heard: list[str] = await notebook.page.evaluate("() => window.heard")
    blocks = ["I call tools.", "A heading", "Words with weight", "A quotation", "The end."]
    for block in blocks:
        assert sum(block in each for each in heard) == 1, (block, heard)
    unfinished = [each for each in heard if any(block.startswith(each) and each != block for block in blocks)]
    assert unfinished == [], heard
    assert not any("First I think" in each for each in heard), "reasoning is folded away"
    assert len(heard) < 20
