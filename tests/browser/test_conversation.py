"""A person talks with an agent in JupyterLab."""

from __future__ import annotations

import asyncio

import pytest
from browser.conftest import OpenNotebook
from playwright.async_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

TOOLS = '''
import asyncio, threading
from yiemagent_nb.core.agent import Agent
from yiemagent_nb.core.approval import approve
from yiemagent_nb.widgets import AgentWidget, ChatPanel

def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b

def weather(city: str) -> str:
    """Tell the weather in a city."""
    return f"Sunny in {city}"
'''

CALCULATOR = (
    TOOLS
    + """
async def calculator(messages, tools=None):
    last = messages[-1]
    if last["role"] == "tool":
        yield {"content": f"The sum is **{last['content']}**."}
        return
    yield {"reasoning": "I should add."}
    yield {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "add", "arguments": '{"a": 17, "b": 25}'}}]}

agent = Agent(calculator, tools=[add, weather])
AgentWidget(agent)
"""
)

COUNTER = (
    TOOLS
    + """
async def counter(messages):
    for number in range(2000):
        yield f"{number} "
        await asyncio.sleep(0.02)

agent = Agent(counter)
AgentWidget(agent)
"""
)


async def test_a_function_answers_and_calls_a_tool(open_notebook: OpenNotebook) -> None:
    notebook = await open_notebook(CALCULATOR)
    widget = notebook.widget()
    await expect(widget.locator(".yna-suggestion").first).to_have_text("Add two numbers: a = 17, b = 25")
    await notebook.say("What is 17 + 25?")
    await notebook.until_ready()
    await expect(widget.locator(".yna-said")).to_have_text("What is 17 + 25?")
    row = widget.locator(".yna-call-row")
    await expect(row).to_contain_text("Added")
    await expect(widget.locator(".yna-markdown strong")).to_have_text("42")
    await expect(widget.locator(".yna-thought")).to_contain_text("Thought")
    await row.click()
    await expect(row).to_have_attribute("aria-expanded", "true")
    await expect(widget.locator(".yna-args dt")).to_have_text(["a", "b"])
    await expect(widget.locator(".yna-args dd")).to_have_text(["17", "25"])
    await expect(widget.locator(".yna-section pre").last).to_have_text("42")


async def test_a_suggestion_fills_the_composer_and_waits(open_notebook: OpenNotebook) -> None:
    notebook = await open_notebook(CALCULATOR)
    await notebook.widget().locator(".yna-suggestion").first.click()
    await expect(notebook.composer()).to_have_value("Add two numbers: a = 17, b = 25")
    await expect(notebook.composer()).to_be_focused()
    await expect(notebook.widget().locator(".yna-said")).to_have_count(0)


async def test_shift_enter_breaks_the_line_and_other_keys_leave_the_notebook_alone(open_notebook: OpenNotebook) -> None:
    notebook = await open_notebook(CALCULATOR, "x = 1")
    composer = notebook.composer()
    await composer.click()
    await composer.press_sequentially("add b a x z d d")
    await composer.press("Shift+Enter")
    await composer.press_sequentially("second line")
    await expect(composer).to_have_value("add b a x z d d\nsecond line")
    await expect(notebook.page.locator(".jp-CodeCell")).to_have_count(2)
    await composer.press("Enter")
    await notebook.until_ready()
    await expect(notebook.widget().locator(".yna-said")).to_have_text("add b a x z d d\nsecond line")
    await composer.press("ArrowUp")
    await expect(composer).to_have_value("add b a x z d d\nsecond line")


async def test_an_input_methods_enter_does_not_send(open_notebook: OpenNotebook) -> None:
    notebook = await open_notebook(CALCULATOR)
    composer = notebook.composer()
    await composer.fill("にほん")
    await composer.evaluate(
        "element => element.dispatchEvent(new KeyboardEvent('keydown', "
        "{key: 'Enter', keyCode: 229, isComposing: true, bubbles: true}))"
    )
    await expect(composer).to_have_value("にほん")
    await expect(notebook.widget().locator(".yna-said")).to_have_count(0)


async def test_stop_ends_a_stream_and_the_agent_stays_usable(open_notebook: OpenNotebook) -> None:
    notebook = await open_notebook(COUNTER, "agent.state.messages[-1].stop_reason")
    widget = notebook.widget()
    await notebook.say("count")
    await expect(widget.locator(".yna-answer")).to_contain_text("3 4 5")
    await widget.get_by_role("button", name="Stop").click()
    await expect(widget.locator(".yna-ending")).to_have_text("Stopped.")
    await notebook.until_ready()
    await notebook.run_cell(1)
    await expect(notebook.cell(1).locator(".jp-OutputArea-output")).to_contain_text("aborted")
    await notebook.say("again")
    await expect(widget.locator(".yna-answer").nth(1)).to_contain_text("3 4 5")
    await notebook.composer().press("Escape")
    await expect(widget.locator(".yna-ending")).to_have_count(2)


async def test_while_it_works_one_steers_or_queues(open_notebook: OpenNotebook) -> None:
    notebook = await open_notebook(
        TOOLS
        + """
go_on = asyncio.Event()
async def patient(messages):
    if len(messages) == 1:
        yield "Working. "
        await go_on.wait()
    yield f"You said {messages[-1]['content']}."

agent = Agent(patient)
AgentWidget(agent)
""",
        "go_on.set()",
    )
    widget = notebook.widget()
    await notebook.say("start")
    await expect(widget.locator(".yna-answer")).to_contain_text("Working.")
    await notebook.say("to the left")
    await notebook.say("and afterwards", key="Alt+Enter")
    queued = widget.locator(".yna-queued")
    await expect(queued.nth(0)).to_have_text("Steeringto the leftTake back")
    await expect(queued.nth(1)).to_have_text("Queuedand afterwardsSteer nowTake back")
    await notebook.run_cell(1)
    await notebook.until_ready()
    await expect(queued).to_have_count(0)
    await expect(widget.locator(".yna-said")).to_have_text(["start", "to the left", "and afterwards"])
    await expect(widget.locator(".yna-answer").nth(2)).to_contain_text("You said and afterwards.")


async def test_a_person_approves_edits_and_denies(open_notebook: OpenNotebook) -> None:
    notebook = await open_notebook(CALCULATOR.replace("weather])", "weather], before_tool_call=approve())"))
    widget = notebook.widget()
    await notebook.say("one")
    await expect(widget.locator(".yna-status")).to_have_text("1 waits for you")
    await widget.get_by_role("button", name="Edit…").click()
    editor = widget.get_by_label("Arguments as JSON")
    await editor.fill('{"a": 1, ')
    await widget.get_by_role("button", name="Allow with these arguments").click()
    await expect(widget.locator(".yna-approval .yna-problem")).to_contain_text("This is not JSON")
    await editor.fill('{"a": 1, "b": 2}')
    await widget.get_by_role("button", name="Allow with these arguments").click()
    await notebook.until_ready()
    await expect(widget.locator(".yna-answer").last).to_contain_text("The sum is **3")
    await expect(widget.locator(".yna-answer").last).to_contain_text("the person changed the arguments of this call")
    await notebook.say("two")
    await widget.get_by_role("button", name="Deny…").click()
    await widget.get_by_label("Reason").fill("not now")
    await widget.get_by_label("Reason").press("Enter")
    await notebook.until_ready()
    await expect(widget.locator(".yna-call").nth(1)).to_contain_text("Did not add")
    await expect(widget.locator(".yna-answer").last).to_contain_text("not now")


async def test_an_error_is_a_card_with_its_code_and_the_text_is_kept(open_notebook: OpenNotebook) -> None:
    notebook = await open_notebook(
        TOOLS
        + """
def broken(messages):
    raise RuntimeError("the server is out to lunch")

from yiemagent_nb.core.limits import Limits
agent = Agent(broken, limits=Limits(messages_per_session=1))
AgentWidget(agent)
"""
    )
    widget = notebook.widget()
    await notebook.say("hello")
    await expect(widget.locator(".yna-error")).to_contain_text("out to lunch")
    await expect(widget.locator(".yna-error-code")).to_have_text("BACKEND_ERROR")
    await notebook.until_ready()
    await notebook.composer().fill("once more")
    await notebook.composer().press("Enter")
    await expect(widget.locator(".yna-composer .yna-problem")).to_contain_text("1")
    await expect(notebook.composer()).to_have_value("once more")
    await expect(notebook.composer()).to_be_editable()


async def test_a_second_view_and_a_reloaded_page_show_the_same(open_notebook: OpenNotebook) -> None:
    notebook = await open_notebook(
        CALCULATOR.replace("AgentWidget(agent)", "w = AgentWidget(agent)\nw"), "w", own_page=True
    )
    await notebook.say("What is 17 + 25?")
    await notebook.until_ready()
    await notebook.run_cell(1)
    logs = [notebook.widget(index).locator(".yna-log") for index in (0, 1)]
    await expect(logs[1]).to_contain_text("The sum is 42.")
    assert await logs[0].text_content() == await logs[1].text_content()
    # The model gives its second call the same id as the first, as some servers do.
    await notebook.say("And once more?", index=1)
    # The other view may not know yet that something was said.
    await expect(notebook.widget(0).locator(".yna-markdown")).to_have_count(2)
    await notebook.until_ready()
    await expect(notebook.widget(0).locator(".yna-said")).to_have_count(2)
    before = await notebook.widget(0).locator(".yna-said, .yna-markdown, .yna-call-row").all_text_contents()
    await notebook.save()
    await notebook.reload()
    await expect(notebook.widget(0).locator(".yna-said")).to_have_count(2)
    await expect(notebook.widget(0).locator(".yna-block")).to_have_count(2)  # not the text as it came
    after = await notebook.widget(0).locator(".yna-said, .yna-markdown, .yna-call-row").all_text_contents()
    assert after == before


async def test_the_file_keeps_the_conversation_and_a_live_widget_hides_it(open_notebook: OpenNotebook) -> None:
    notebook = await open_notebook(CALCULATOR)
    await notebook.say("What is 17 + 25?")
    await notebook.until_ready()
    static = notebook.page.locator(".yna-static")
    await expect(static).to_have_count(1)
    await expect(static).to_be_hidden()
    await expect(static).to_contain_text("The sum is 42.")
    outputs = (await notebook.save())["cells"][0]["outputs"]
    kept = outputs[1]["data"]
    assert "<strong>42</strong>" in "".join(kept["text/html"])
    assert "The sum is **42**." in "".join(kept["text/markdown"])
    assert "<script" not in "".join(kept["text/html"])


async def test_a_restarted_kernel_shows_as_disconnected(open_notebook: OpenNotebook) -> None:
    notebook = await open_notebook(CALCULATOR)
    await notebook.say("What is 17 + 25?")
    await notebook.until_ready()
    await notebook.page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
    await expect(notebook.widget().locator(".yna-status")).to_have_text("Disconnected")
    await expect(notebook.widget().locator(".yna-lost")).to_contain_text("Run the cell again")
    await notebook.composer().fill("are you there?")
    await notebook.composer().press("Enter")
    await expect(notebook.composer()).to_have_value("are you there?")
    await expect(notebook.widget().locator(".yna-log")).to_contain_text("The sum is 42.")


async def test_a_blocked_kernel_shows_as_busy_and_the_message_waits(open_notebook: OpenNotebook) -> None:
    notebook = await open_notebook(CALCULATOR, "import time; time.sleep(6)")
    await notebook.until_ready()
    running = asyncio.ensure_future(notebook.run_cell(1))
    await expect(notebook.cell(1).locator(".jp-InputPrompt")).to_contain_text("[*]")
    await notebook.composer().fill("What is 17 + 25?")
    await notebook.composer().press("Enter")
    await expect(notebook.widget().locator(".yna-status")).to_have_text("Kernel busy")
    await expect(notebook.widget().locator(".yna-hint")).to_have_text("Sent as soon as the kernel is free")
    await running
    await expect(notebook.widget().locator(".yna-markdown strong")).to_have_text("42")
    await expect(notebook.widget().locator(".yna-said")).to_have_count(1)


async def test_the_widget_goes_on_during_a_synchronous_call(open_notebook: OpenNotebook) -> None:
    notebook = await open_notebook(COUNTER.replace("range(2000)", "range(100)"), "agent.ask('count').stop_reason")
    running = asyncio.ensure_future(notebook.run_cell(1))
    await expect(notebook.widget().locator(".yna-answer")).to_contain_text("10 11 12")
    await expect(notebook.cell(1).locator(".jp-InputPrompt")).to_contain_text("[*]")
    await running
    await expect(notebook.cell(1).locator(".jp-OutputArea-output")).to_contain_text("end_turn")
    await notebook.until_ready()


async def test_an_agent_with_a_thread_of_its_own_goes_on_while_the_kernel_is_blocked(
    open_notebook: OpenNotebook,
) -> None:
    notebook = await open_notebook(
        COUNTER.replace("range(2000)", "range(150)").replace("Agent(counter)", 'Agent(counter, runtime="thread")'),
        "import time; agent.steer('count'); time.sleep(2)",
    )
    running = asyncio.ensure_future(notebook.run_cell(1))
    await expect(notebook.widget().locator(".yna-answer")).to_contain_text("10 11 12")
    await expect(notebook.cell(1).locator(".jp-InputPrompt")).to_contain_text("[*]")
    await running
    await notebook.until_ready()
