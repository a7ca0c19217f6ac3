"""A person writes hooks in JupyterLab: tries them, applies them in mid-run, and sees what goes wrong in them."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from browser.conftest import OpenNotebook
from browser.lab import Lab, Notebook
from browser.test_accessibility import scan
from browser.test_speed import longest, tasks
from playwright.async_api import BrowserContext, Locator, expect

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

AGENT = '''
import asyncio, json
from yiemagent_nb.core.agent import Agent
from yiemagent_nb.widgets import AgentWidget, ChatPanel
from yiemagent_nb.widgets.hook_editor import HookEditor

limits = []
may_go_on = asyncio.Event()
may_go_on.set()
most_rows_at_once = 7

def search(query: str, limit: int = 100) -> str:
    """Search."""
    limits.append(limit)
    return f"found {limit}"

async def model(messages):
    """Calls as often as it is told to, and waits between two calls where the notebook says so."""
    asked = max(index for index, message in enumerate(messages) if message["role"] == "user")
    done = len([message for message in messages[asked:] if message["role"] == "tool"])
    if done >= int(messages[asked]["content"]):
        yield f"Done: {messages[-1]['content']}"
        return
    if done:
        await may_go_on.wait()
    call = {"name": "search", "arguments": json.dumps({"query": "größe 😀", "limit": 100})}
    yield {"tool_calls": [{"index": 0, "id": f"c{done}", "function": call}]}

agent = Agent(model, tools=[search])
'''

SHOWN = AGENT + "widget = AgentWidget(agent, panels=[ChatPanel(agent), HookEditor(agent)], transcript=False)\nwidget"

CAP = 'def before_tool_call(context, signal):\n    return {**context.arguments, "limit": 7}\n'


class Hooks:
    """The panel of hooks in a page."""

    def __init__(self, notebook: Notebook, index: int = 0) -> None:
        self.notebook = notebook
        self.widget = notebook.widget(index)

    async def open(self, title: str = "Before a tool runs") -> None:
        tab = self.widget.get_by_role("button", name="Hooks", exact=True)
        if await tab.get_attribute("aria-expanded") == "false":
            await tab.click()
        await self.widget.locator(".yna-hook-row", has_text=title).click()
        await expect(self.code).to_be_visible()

    @property
    def page(self) -> Locator:
        """The page of the hook that is shown."""
        return self.widget.locator(".yna-hook:not([hidden])")

    @property
    def code(self) -> Locator:
        """Where its code is edited."""
        return self.page.locator(".yna-hook-editor .cm-content")

    @property
    def said(self) -> Locator:
        """What came of the last thing that was done."""
        return self.page.locator(".yna-hook-said")

    @property
    def wrong(self) -> Locator:
        """What is wrong with the code, and what went wrong in runs."""
        return self.page.locator(".yna-hook-problem")

    async def write(self, code: str) -> None:
        """Paste a text in the place of all that stands there."""
        await self.code.click()
        await self.notebook.page.keyboard.press("Control+a")
        await self.notebook.page.keyboard.insert_text(code)

    async def apply(self, code: str, version: int) -> None:
        await self.write(code)
        await self.notebook.page.keyboard.press("Control+Enter")
        await expect(self.said).to_contain_text(f"Version {version} is applied.")

    def button(self, name: str) -> Locator:
        return self.page.get_by_role("button", name=name, exact=True)


async def value(notebook: Notebook, index: int) -> Any:
    """What a cell gives, as a Python literal."""
    await notebook.run_cell(index)
    return ast.literal_eval(await notebook.cell(index).locator(".jp-OutputArea-output").last.inner_text())


async def lines(code: Locator) -> Sequence[str]:
    return await code.locator(".cm-line").all_inner_texts()


ON_TOP = """(element) => {
    const { left, top, width, height } = element.getBoundingClientRect();
    return element.contains(document.elementFromPoint(left + width / 2, top + height / 2));
}"""


async def test_a_hook_is_typed_tried_on_what_was_called_and_applied_in_mid_run(open_notebook: OpenNotebook) -> None:
    notebook = await open_notebook(SHOWN, "may_go_on.clear()", "limits", "may_go_on.set()", width=1300)
    hooks = Hooks(notebook)
    await notebook.run_cell(1)
    await notebook.say("2")
    await expect(notebook.widget().locator(".yna-call-row")).to_have_count(1)
    await hooks.open()
    await expect(hooks.page.locator(".yna-hook-bar")).to_contain_text("Try runs it on 1 call of the model's")
    await hooks.code.click()
    keyboard = notebook.page.keyboard
    await keyboard.press("Control+a")
    async with tasks(notebook.page) as found:
        await keyboard.type("def before_tool_call(context, signal):\n", delay=5)
        await keyboard.type('return {**context.arguments, "limit": most_row', delay=5)
        await expect(hooks.code.page.locator(".cm-tooltip-autocomplete li")).to_have_text(["most_rows_at_once"])
        await notebook.page.wait_for_timeout(100)  # a list that has just come takes no key
        assert await notebook.page.locator(".cm-tooltip-autocomplete li").evaluate(ON_TOP)
        await keyboard.press("Enter")
        await keyboard.type("}")
    assert max(found) < 50, longest(found)
    assert await lines(hooks.code) == [
        "def before_tool_call(context, signal):",
        '    return {**context.arguments, "limit": most_rows_at_once}',
    ]
    await keyboard.press("Control+Shift+Enter")
    await expect(hooks.said).to_have_text("Tried on 1 call: 1 changed.")
    await expect(hooks.page.locator(".yna-trial del")).to_contain_text('"limit": 100')
    await expect(hooks.page.locator(".yna-trial ins")).to_contain_text('"limit": 7')
    assert await value(notebook, 2) == [100]
    await hooks.code.click()
    await keyboard.press("Control+Enter")
    await expect(hooks.said).to_have_text("Version 1 is applied. It acts from the next turn on.")
    await expect(hooks.page.locator(".yna-hook-waits")).to_be_visible()
    await notebook.run_cell(3)
    await notebook.until_ready()
    assert await value(notebook, 2) == [100, 7]
    await expect(hooks.page.locator(".yna-hook-bar")).to_contain_text("Try runs it on 2 calls of the model's")
    await expect(hooks.page.locator(".yna-hook-waits")).to_have_count(0)
    await expect(hooks.page.locator(".yna-installed-row")).to_have_count(1)


FAILING = [
    ('def before_tool_call(context, signal):\n    return {"limit": 1 / 0}\n', "ZeroDivisionError"),
    ("def before_tool_call(context, signal):\n    return 42\n", "It returned 42"),
    ("def before_tool_call(context, signal):\n    while True:\n        pass\n", "did not return in time"),
]


async def test_a_hook_that_fails_stops_no_run_and_the_editor_says_where_and_what(open_notebook: OpenNotebook) -> None:
    impatient = SHOWN.replace("HookEditor(agent)", "HookEditor(agent, seconds=0.5)")
    notebook = await open_notebook(impatient, "limits, len(agent.hooks.before_tool_call)", width=1300)
    hooks = Hooks(notebook)
    answers = notebook.widget().locator(".yna-answer", has_text="Done:")
    await hooks.open()
    await hooks.write("def before_tool_call(context, signal):\n    return '😀' = 1\n")
    await expect(hooks.wrong).to_contain_text("Line 2: ")
    await expect(hooks.page.locator(".cm-lint-marker")).to_have_count(1)
    await hooks.button("Apply").click()
    await expect(hooks.said).to_contain_text("Nothing was applied")
    assert await value(notebook, 1) == ([], 0)
    await hooks.write(CAP)
    await expect(hooks.wrong).to_have_count(0)
    await expect(hooks.page.locator(".cm-lint-marker")).to_have_count(0)
    for number, (code, message) in enumerate(FAILING, 1):
        await hooks.apply(code, number)
        await notebook.say("1")
        await expect(hooks.wrong.filter(has_text=message)).to_contain_text(f"version {number}")
        await expect(answers).to_have_count(number)
        await notebook.until_ready()
    assert await value(notebook, 1) == ([], 1)
    await expect(hooks.widget.locator(".yna-hook-row[aria-current]")).to_contain_text("3 failures")
    await hooks.write(FAILING[0][0])
    await hooks.apply(FAILING[0][0] + "\n", 4)
    await notebook.say("1")
    await expect(hooks.page.locator(".cm-lint-marker-warning")).to_have_count(1)
    await hooks.page.get_by_role("button", name="line 2 of version 4").click()
    await expect(hooks.page.locator(".cm-lineNumbers .cm-activeLineGutter")).to_have_text("2")
    await expect(hooks.code).to_be_focused()


async def test_a_person_chooses_whether_a_run_goes_on_without_a_hook(open_notebook: OpenNotebook) -> None:
    notebook = await open_notebook(SHOWN, width=1300)
    hooks = Hooks(notebook)
    code = "async def around_llm_call(call, messages, options):\n    raise LookupError('no way')\n"
    await hooks.open("Around the model")
    await hooks.apply(code, 1)
    await notebook.say("0")
    await expect(notebook.widget().locator(".yna-answer")).to_contain_text("Done:")
    await expect(hooks.wrong).to_contain_text("no way")
    await notebook.until_ready()
    await hooks.page.get_by_label("If it fails").select_option("End the run")
    await hooks.apply(code + "\n", 2)
    await notebook.say("0")
    await expect(notebook.widget().locator(".yna-error-text")).to_contain_text("no way")
    await expect(hooks.wrong.filter(has_text="version 2")).to_contain_text("The run ended")


async def test_versions_are_looked_at_compared_loaded_and_reverted(open_notebook: OpenNotebook) -> None:
    installed = "[getattr(hook, '__name__', '') for hook in agent.hooks.before_tool_call]"
    notebook = await open_notebook(SHOWN, installed, width=1300)
    await notebook.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    hooks = Hooks(notebook)
    await hooks.open()
    await hooks.button("Start from…").click()
    ready = hooks.page.locator(".yna-ready")
    await expect(ready.last).to_contain_text("Empty")
    title = await ready.first.locator("strong").inner_text()
    template = await lines(hooks.code)
    await ready.first.click()
    await expect(hooks.said).to_contain_text(title)
    assert await lines(hooks.code) != template
    await notebook.page.keyboard.press("Control+z")
    assert await lines(hooks.code) == template

    await hooks.apply(CAP, 1)
    await hooks.apply(CAP.replace("7", "8"), 2)
    await expect(hooks.page.locator(".yna-installed-row")).to_have_count(1)
    await expect(hooks.page.locator(".yna-hook-standing")).to_have_text("As it is installed")
    await hooks.button("Versions (2)").click()
    await hooks.button("Compare version 1").click()
    await expect(hooks.page.locator(".yna-version-place del")).to_contain_text('"limit": 7')
    await expect(hooks.page.locator(".yna-version-place ins")).to_contain_text('"limit": 8')
    await hooks.button("Look at version 1").click()
    await expect(hooks.page.locator(".yna-version-place pre")).to_have_text(CAP)
    await hooks.button("Load version 1").click()
    await expect(hooks.code).to_contain_text('"limit": 7')
    await expect(hooks.page.locator(".yna-hook-standing")).to_have_text("A draft, not applied")

    await hooks.button("Copy as cell").click()
    cell = await notebook.page.evaluate("navigator.clipboard.readText()")
    assert cell == CAP + "\n\nagent.set_hooks(before_tool_call=[*agent.hooks.before_tool_call, before_tool_call])\n"
    await hooks.button("Revert").click()
    await expect(hooks.page.locator(".yna-installed h4")).to_have_text("Nothing is installed.")
    assert await value(notebook, 1) == []


async def test_what_a_cell_installed_is_shown_edited_and_removed(open_notebook: OpenNotebook) -> None:
    cell = """
def log_calls(context, signal):
    "Say what is called."
    print(context.tool_call.name)

agent.set_hooks(before_tool_call=log_calls)
"""
    notebook = await open_notebook(SHOWN, cell, "len(agent.hooks.before_tool_call)", width=1300)
    hooks = Hooks(notebook)
    await hooks.open()
    await notebook.run_cell(1)  # it is told while the panel is open
    row = hooks.page.locator(".yna-installed-row")
    await expect(row).to_contain_text("log_calls")
    await row.locator("summary").click()
    await expect(row.locator("pre")).to_contain_text('"Say what is called."')
    await hooks.button("Edit log_calls").click()
    await expect(hooks.code).to_contain_text("print(context.tool_call.name)")
    await expect(hooks.page.get_by_role("combobox", name="Apply").locator("option:checked")).to_contain_text(
        "in place of log_calls"
    )
    await hooks.button("Remove log_calls").click()
    await expect(row).to_have_count(1)
    await hooks.button("Remove log_calls?").click()
    await expect(row).to_have_count(0)
    assert await value(notebook, 2) == 0


async def test_a_draft_outlives_the_page_and_another_view_does_not_write_over_it(
    lab: Lab, browser: BrowserContext, open_notebook: OpenNotebook
) -> None:
    notebook = await open_notebook(SHOWN, width=1300)
    hooks = Hooks(notebook)
    await hooks.open()
    await hooks.write("a_draft = 1")
    await hooks.open("After a tool ran")
    await hooks.open()
    assert await lines(hooks.code) == ["a_draft = 1"]
    await expect(hooks.widget.locator(".yna-hook-row[aria-current]")).to_contain_text("draft")

    await notebook.save()
    page = await browser.new_page()
    await page.set_viewport_size({"width": 1300, "height": 900})
    second = Notebook(lab, page, notebook.name)
    await second.open_alone()
    other = Hooks(second)
    await other.open()
    await expect(other.code).to_have_text("a_draft = 1")
    await hooks.write("another = 2")
    await expect(other.code).to_have_text("another = 2")  # its editor has not the keyboard: it follows
    await other.write("theirs = 3")
    conflict = hooks.page.locator(".yna-hook-conflict")
    await expect(conflict).to_be_visible()
    await expect(hooks.code).to_have_text("another = 2")
    await notebook.page.keyboard.type(" + 2")
    await expect(hooks.code).to_have_text("another = 2 + 2")
    await conflict.get_by_role("button", name="Keep mine").click()
    await expect(conflict).to_be_hidden()
    await expect(other.page.locator(".yna-hook-conflict")).to_be_visible()
    await other.page.get_by_role("button", name="Take theirs").click()
    await expect(other.code).to_have_text("another = 2 + 2")
    await page.close()


SEND = """async ([comm, data]) => {
    const { kernel } = window.jupyterapp.shell.currentWidget.sessionContext.session;
    const header = {
        msg_id: Math.random().toString(36).slice(2), msg_type: "comm_msg", session: kernel.clientId,
        username: "", date: new Date().toISOString(), version: "5.2",
    };
    const content = { comm_id: comm, data: { method: "custom", content: data } };
    kernel.sendShellMessage({ channel: "shell", header, parent_header: {}, metadata: {}, content, buffers: [] }, false);
}"""


async def test_code_runs_by_apply_from_this_kernels_own_page_alone(open_notebook: OpenNotebook) -> None:
    marked = "import builtins\nbuiltins.marker = True\n"
    notebook = await open_notebook(SHOWN, "import builtins\nhasattr(builtins, 'marker')", "widget.model_id", width=1300)
    hooks = Hooks(notebook)
    await hooks.open()
    comm = await value(notebook, 2)
    code = marked + CAP
    attempts: list[dict[str, Any]] = [
        {"type": "draft_hook", "hook": "before_tool_call", "code": code},
        {"type": "check_code", "code": code},
        {"type": "complete_code", "code": marked + "marker.", "cursor": len(marked) + 7},
        {"type": "complete_code", "code": "setattr(builtins, 'marker', 1).", "cursor": 31},
        {"type": "load_version", "hook": "before_tool_call", "version": 1},
        {"type": "revert_hook", "hook": "before_tool_call", "code": code},
        *(
            {"type": "apply_hook", "hook": "before_tool_call", "code": code, "action": action, "session": session}
            for action in ("try", "apply")
            for session in ("", "another", None)
        ),
    ]
    for number, attempt in enumerate(attempts):
        await notebook.page.evaluate(SEND, [comm, {**attempt, "ticket": f"forged-{number}"}])
    await expect(hooks.code).to_contain_text("builtins.marker = True")  # the draft was taken, so the rest was looked at
    await notebook.say("1")
    await notebook.until_ready()
    assert await value(notebook, 1) is False

    saved = await notebook.save(with_widgets=True)
    assert saved["metadata"]["widgets"]
    await notebook.page.evaluate(CLOSE)
    await notebook.open()  # in a new kernel
    await expect(notebook.cell(0).locator(".jp-OutputArea-output")).not_to_have_count(0)
    assert await value(notebook, 1) is False
    await notebook.run_cell(0)
    await hooks.open()
    await notebook.say("1")
    await notebook.until_ready()
    assert await value(notebook, 1) is False
    await hooks.apply(code, 1)
    assert await value(notebook, 1) is True


CLOSE = """async () => {
    const panel = window.jupyterapp.shell.currentWidget;
    await panel.sessionContext.shutdown();
    panel.close();
}"""

STYLE = """() => {
    const own = document.querySelector(".jp-Cell .jp-InputArea-editor .cm-content");
    const style = (element) => Object.fromEntries([...getComputedStyle(element)].map((name) =>
        [name, getComputedStyle(element)[name]]).filter(([name]) => !/size|height|width|origin|inset/.test(name)));
    return [own, own.parentElement, own.querySelector(".cm-line")].map(style);
}"""


async def test_the_editor_lives_beside_the_notebooks_own_and_is_for_the_keyboard(
    open_notebook: OpenNotebook, front_end: Path, tmp_path: Path
) -> None:
    notebook = await open_notebook(SHOWN, "x = 1", width=1300)
    page = notebook.page
    hooks = Hooks(notebook)
    before = await page.evaluate(STYLE)
    await hooks.open()
    await hooks.apply(CAP, 1)
    assert await page.evaluate(STYLE) == before
    await notebook.say("1")
    await notebook.until_ready()
    await hooks.code.click()
    await page.keyboard.press("Control+Home")
    await page.keyboard.press("Tab")
    assert (await lines(hooks.code))[0].startswith("    def ")
    await page.keyboard.press("Shift+Tab")
    await expect(hooks.code).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(hooks.page.locator(".yna-code-keys")).to_have_text("Tab now leaves the editor; Escape goes back.")
    await page.keyboard.press("Tab")
    await expect(hooks.code).not_to_be_focused()
    await page.keyboard.press("Shift+Tab")
    await expect(hooks.code).to_be_focused()
    await page.keyboard.press("Control+Shift+Enter")
    await expect(hooks.page.locator(".yna-trial-call").first).to_be_visible()
    await page.keyboard.press("Control+f")
    await expect(hooks.page.locator(".cm-search input").first).to_be_focused()
    await hooks.button("Versions (1)").click()
    await hooks.button("Start from…").click()

    await page.evaluate((front_end / "node_modules" / "axe-core" / "axe.min.js").read_text("utf-8"))
    found: list[str] = []
    try:
        for theme in ("JupyterLab Light", "JupyterLab Dark"):
            await notebook.set_theme(theme)
            for width in (1300, 420):
                await page.set_viewport_size({"width": width, "height": 900})
                found += await scan(notebook, f"{theme}, {width}")
                await hooks.widget.screenshot(path=tmp_path / f"{theme} {width}.png")
    finally:
        await notebook.set_theme("JupyterLab Light")
    assert found == []
