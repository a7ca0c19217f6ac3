"""A person decides about calls, in any view, with the pointer or by keyboard alone."""

from __future__ import annotations

import json

import pytest
from browser.conftest import OpenNotebook
from browser.lab import Notebook
from browser.test_demo_and_looks import CONTRAST
from playwright.async_api import Locator, expect

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

AGENT = r'''
import asyncio, dataclasses, json
from yiemagent_nb.core.agent import Agent
from yiemagent_nb.core.approval import approve
from yiemagent_nb.core.events import ApprovalRequested
from yiemagent_nb.core.signal import AbortSignal
from yiemagent_nb.core.tools import ToolAnnotations, tool
from yiemagent_nb.testing import Scripted, call
from yiemagent_nb.widgets import AgentWidget, ChatPanel

@tool(annotations=ToolAnnotations(destructive=True, open_world=True))
def delete_files(paths: list[str], depth: int = 1, note: str = "") -> str:
    """Delete files for good."""
    return f"deleted {paths} {depth}"

delete = dataclasses.replace(delete_files, source="filesystem")
tidy = [call("delete_files", paths=["a.txt", "b.txt"], note="one\ntwo")]
answers = [tidy, "Done.", tidy, tidy, "So be it.", tidy, "Well."]
agent = Agent(Scripted(answers), tools=[delete], before_tool_call=approve())
AgentWidget(agent)
'''

RESULTS = "print(json.dumps([message.text for message in agent.state.messages if message.role == 'toolResult']))"


def cards(view: Locator) -> Locator:
    return view.locator(".yna-approval")


def button(view: Locator, name: str) -> Locator:
    return view.get_by_role("button", name=name, exact=True)


async def results(notebook: Notebook, cell: int) -> list[str]:
    await notebook.run_cell(cell)
    return json.loads(await notebook.cell(cell).locator(".jp-OutputArea-output").inner_text())


@pytest.mark.requirement("Y US-004")
async def test_two_views_show_what_waits_and_settle_together(open_notebook: OpenNotebook) -> None:
    notebook = await open_notebook(AGENT, "ChatPanel(agent)", RESULTS)
    await notebook.run_cell(1)
    views = [notebook.widget(0), notebook.widget(1)]
    await notebook.say("tidy up")
    for view in views:
        await expect(view.locator(".yna-waits")).to_contain_text("1 approval waits for you")
        card = cards(view)
        await expect(card.locator(".yna-approval-title")).to_have_text("Allow Delete files to run?")
        await expect(card.locator(".yna-approval-name")).to_have_text("delete_files")
        await expect(card.locator(".yna-badge")).to_have_text(["filesystem", "destructive", "reaches things outside"])
        await expect(card.locator(".yna-approval-about")).to_have_text("Delete files for good.")
        await expect(card.locator(".yna-args dd").nth(1)).to_have_text("one\ntwo")
    await expect(notebook.composer()).to_be_focused()
    await button(cards(views[1]), "Raw JSON").click()
    await expect(views[1].locator(".yna-approval-args")).to_contain_text('"note": "one\\ntwo"')
    assert await notebook.page.evaluate(CONTRAST) == []

    first, second = cards(views[0]), cards(views[1])
    await button(first, "Edit…").click()
    editor = first.get_by_label("Arguments as JSON")
    await editor.fill('{\n  "paths": ["a.txt"],\n  "depth": two\n}')
    await expect(first.locator(".yna-editor-state")).to_have_text("Line 3, column 12: A text stands in double quotes.")
    await expect(first.locator(".yna-editor-lines .yna-wrong")).to_have_text("3")
    wrong = '{\n  "paths": ["a.txt"],\n  "depth": "two"\n}'
    await editor.fill(wrong)
    await expect(first.locator(".yna-editor-state")).to_have_text("Valid JSON.")
    await button(first, "Allow with these arguments").click()
    await expect(first.locator(".yna-editor-state")).to_have_text("Not accepted as it stands.")
    await expect(first.get_by_role("alert")).to_contain_text("depth should be a valid integer")
    await expect(first.get_by_role("alert")).to_contain_text("Change them and answer again.")
    await expect(editor).to_have_value(wrong)
    await expect(second).to_have_count(1)
    await editor.fill(wrong.replace('"two"', "2"))
    await editor.press("Control+Enter")
    for view in views:
        await expect(cards(view)).to_have_count(0)
        await expect(view.locator(".yna-settled")).to_have_text("Allowed with edited arguments.")
        await expect(view.locator(".yna-waits")).to_be_hidden()
    await notebook.until_ready()
    [told] = await results(notebook, 2)
    assert told.startswith("deleted ['a.txt'] 2\n\nNote: the person changed the arguments of this call.")
    assert told.endswith('It was allowed with: {"paths": ["a.txt"], "depth": 2}')


@pytest.mark.requirement("Y US-004")
async def test_a_denial_reaches_the_model_and_is_not_asked_about_again(open_notebook: OpenNotebook) -> None:
    notebook = await open_notebook(AGENT.replace('[tidy, "Done.", ', "["), RESULTS)
    view = notebook.widget()
    await notebook.say("tidy up")
    await button(cards(view), "Deny…").click()
    await view.get_by_label("Reason").fill("they are mine")
    await view.get_by_label("Reason").press("Enter")
    await notebook.until_ready()
    await expect(view.locator(".yna-settled")).to_have_text("Denied: they are mine")
    await expect(view.locator(".yna-call-row .yna-call-what")).to_have_text(["Did not delete files"] * 2)
    await expect(view.locator(".yna-call-problem:visible")).to_have_text("Denied: they are mine")
    red = 'document.querySelectorAll(".yna-call[data-status=failed]").length'
    assert await notebook.page.evaluate(red) == 0
    again = "The person denied this same call before, so it did not run and they were not asked again."
    assert await results(notebook, 1) == [
        "The person denied this call: they are mine",
        f"{again} The reason was: they are mine",
    ]
    await notebook.say("once more")
    await expect(cards(view)).to_have_count(1)


@pytest.mark.requirement("Y US-004")
async def test_the_first_answer_wins_and_a_later_one_is_told_so(open_notebook: OpenNotebook) -> None:
    notebook = await open_notebook(
        AGENT,
        """
def late(request_id, choice):
    try:
        agent.approvals.resolve(request_id, choice)
    except Exception as error:
        print(error)

[waiting] = agent.approvals.pending
agent.approvals.resolve(waiting.request_id, "deny", "from a cell")
late(waiting.request_id, "allow_once")
""",
    )
    view = notebook.widget()
    await notebook.say("tidy up")
    await expect(cards(view)).to_have_count(1)
    await button(cards(view), "Edit…").click()
    await notebook.run_cell(1)
    await expect(notebook.cell(1).locator(".jp-OutputArea-output")).to_contain_text(
        "This request was answered already: it was denied (from a cell). The first answer counts."
    )
    await expect(view.locator(".yna-settled")).to_have_text("Denied: from a cell")
    await notebook.until_ready()


@pytest.mark.requirement("Y US-004")
async def test_several_that_wait_are_reached_and_answered_by_keyboard_alone(open_notebook: OpenNotebook) -> None:
    notebook = await open_notebook(
        AGENT,
        """
requests = [ApprovalRequested(name, "", "delete_files", {"paths": [name]}, "filesystem") for name in "xy"]
waiting = [asyncio.ensure_future(agent.approvals.request(delete, each, AbortSignal(), None)) for each in requests]
""",
        "decided = [await each for each in waiting]; print([(each.choice, each.arguments) for each in decided])",
    )
    view, keyboard = notebook.widget(), notebook.page.keyboard
    await notebook.run_cell(1)
    await expect(view.locator(".yna-waits")).to_contain_text("2 approvals wait for you")
    await notebook.composer().focus()
    await keyboard.press("Shift+Tab")
    await expect(button(view, "Show")).to_be_focused()
    await keyboard.press("Enter")
    await expect(cards(view).nth(0)).to_be_focused()
    await button(view, "Show").focus()
    await keyboard.press("Enter")
    second = cards(view).nth(1)
    await expect(second).to_be_focused()
    for _ in range(8):
        if await button(second, "Edit…").evaluate("element => element === document.activeElement"):
            break
        await keyboard.press("Tab")
    await keyboard.press("Enter")
    editor = second.get_by_label("Arguments as JSON")
    await expect(editor).to_be_focused()
    await keyboard.press("Control+A")
    await keyboard.type('{\n"paths": ["z.txt"],')
    await keyboard.press("Enter")
    await keyboard.press("Tab")
    await keyboard.type('"depth": 4\n}')
    await expect(editor).to_have_value('{\n  "paths": ["z.txt"],\n    "depth": 4\n  }')
    await keyboard.press("Escape")
    await expect(second.locator(".yna-editor-keys")).to_contain_text("Tab now leaves")
    await keyboard.press("Tab")
    await expect(button(second, "Allow with these arguments")).to_be_focused()
    await keyboard.press("Escape")
    await expect(button(second, "Edit…")).to_be_focused()
    await keyboard.press("Enter")
    await expect(editor).to_have_value('{\n  "paths": ["z.txt"],\n    "depth": 4\n  }')
    await keyboard.press("Control+Enter")
    await expect(view.locator(".yna-settled")).to_be_focused()
    await expect(view.locator(".yna-waits")).to_contain_text("1 approval waits for you")
    await cards(view).focus()
    for name in ("Raw JSON", "Copy"):
        await keyboard.press("Tab")
        await expect(cards(view).locator(":focus")).to_contain_text(name)
    await expect(button(view, "Allow once")).not_to_have_attribute("aria-disabled", "true")
    await button(view, "Allow once").focus()
    await keyboard.press("Space")
    await expect(view.locator(".yna-waits")).to_be_hidden()
    await notebook.run_cell(2)
    await expect(notebook.cell(2).locator(".jp-OutputArea-output")).to_contain_text(
        "[('allow_once', None), ('allow_edited', {'paths': ['z.txt'], 'depth': 4})]"
    )


async def test_two_clicks_on_one_spot_do_not_answer_twice(open_notebook: OpenNotebook) -> None:
    notebook = await open_notebook(
        AGENT.replace("[tidy, ", '[[*tidy, call("delete_files", paths=["c.txt"])], '),
    )
    view = notebook.widget()
    await notebook.say("tidy up")
    await expect(cards(view).first).to_be_visible()
    await button(cards(view).first, "Allow once").dblclick()
    await expect(view.locator(".yna-settled")).to_have_text(["Allowed once."])
    await expect(view.locator(".yna-call-row").first).to_contain_text("Waits for the other approval")
    await expect(view.locator(".yna-spinner")).to_have_count(0)
    await expect(cards(view)).to_have_count(1)
    await button(cards(view), "Deny…").click()


async def test_what_is_hidden_in_arguments_is_shown_by_its_number(open_notebook: OpenNotebook) -> None:
    hidden = r'paths=["safe\u202egpj.exe", "\u200bx"]'
    notebook = await open_notebook(AGENT.replace('paths=["a.txt", "b.txt"]', hidden))
    card = cards(notebook.widget())
    await notebook.say("tidy up")
    await expect(card.locator(".yna-approval-note")).to_contain_text("invisible characters")
    await expect(card.locator(".yna-approval-args")).to_contain_text(r'"safe\u202egpj.exe"')
    await expect(card.locator(".yna-approval-args")).to_contain_text(r'"\u200bx"')
    await button(card, "Edit…").click()
    assert r"safe\u202egpj.exe" in await card.get_by_label("Arguments as JSON").input_value()
