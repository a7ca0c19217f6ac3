"""A person goes back in a conversation, says it otherwise, asks again, picks branches, and finds what was said."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from browser.conftest import OpenNotebook
from browser.test_demo_and_looks import CONTRAST
from playwright.async_api import Locator, expect

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

ECHO = '''
from yiemagent_nb.core.agent import Agent
from yiemagent_nb.core.messages import ImageContent, TextContent, UserMessage
from yiemagent_nb.widgets import AgentWidget

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)
given = 0

async def echo(messages):
    """Number the answers, each of twenty paragraphs."""
    global given
    given += 1
    content = messages[-1]["content"]
    parts = [{"text": content}] if isinstance(content, str) else content
    yield f"Answer {given} to {' | '.join(part.get('text', part.get('type')) for part in parts)}"
    yield "".join(f"\\n\\nparagraph {number}" for number in range(20))

agent = Agent(echo)
widget = AgentWidget(agent, transcript=False)
widget
'''

ATTACHED = """
file = TextContent('<file name="tides &amp; winds.csv">\\nhour,tide\\n1,<b>3.5</b>\\n</file>')
await agent.prompt(UserMessage([TextContent("first"), file, ImageContent(data=PIXEL, mime_type="image/png")]))
"""

SHARKY = '''
import asyncio
from yiemagent_nb.core.agent import Agent
from yiemagent_nb.widgets import AgentWidget

dives = answers = 0
go_on = asyncio.Event()

def dive(place: str) -> str:
    """Dive for something."""
    global dives
    dives += 1
    return f"a pearl from {place}"

async def diver(messages, tools=None):
    global answers
    if messages[-1]["role"] == "user":
        yield {"reasoning": "There may be a reef."}
        arguments = '{"place": "the blue lagoon"}'
        yield {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "dive", "arguments": arguments}}]}
        return
    answers += 1
    if answers == 1:
        raise ConnectionError("a shark bit through the cable")
    yield f"Answer {answers} is **half** "
    await go_on.wait()
    yield "done.\\n\\n```python\\nx = 1\\n```\\n\\nAnd it ends."

agent = Agent(diver, tools=[dive])
AgentWidget(agent, transcript=False)
'''

DIGGER = '''
import asyncio
from yiemagent_nb.core.agent import Agent
from yiemagent_nb.widgets import AgentWidget

thought, dug = asyncio.Event(), asyncio.Event()

async def dig(place: str) -> str:
    """Dig for something."""
    await dug.wait()
    return f"a chest at {place}"

async def digger(messages, tools=None):
    if messages[-1]["role"] == "tool":
        yield "Found it."
        return
    yield {"reasoning": "There **may** be"}
    yield {"reasoning": " a *chest*"}
    await thought.wait()
    arguments = '{"place": "the palm"}'
    yield {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "dig", "arguments": arguments}}]}

agent = Agent(digger, tools=[dig])
AgentWidget(agent, transcript=False)
'''

HISTORY = '''
from yiemagent_nb.core.agent import Agent
from yiemagent_nb.core.messages import *
from yiemagent_nb.widgets import AgentWidget

def catch(fish: str) -> str:
    """Catch a fish."""
    return fish

history = [UserMessage("Where did the herring go?"), AssistantMessage("Into the **herr**ing barrel.")]
for number in range(90):
    history += [UserMessage(f"question {number}"), AssistantMessage("A long answer.\\n\\n" * 8)]
history += [
    UserMessage("Try again"),
    AssistantToolCallMessage(
        [
            ReasoningContent("A herring is a fish."),
            ToolCall(id="1", name="catch", arguments={"fish": "Herring, red"}),
        ]
    ),
    ToolResultMessage(tool_call_id="1", tool_name="catch", content=[TextContent("one herring\\n" * 2)]),
    AssistantMessage("Done.\\n\\n```python\\nherring = 1\\n```"),
    *[UserMessage("and so on"), AssistantMessage("Yes.\\n\\n" * 30)],
]
agent = Agent(lambda messages: "fine", messages=history, tools=[catch])
AgentWidget(agent, transcript=False)
'''

SEEN = """(name) => {
    const range = [...CSS.highlights.get(name)][0];
    const place = document.createRange();
    place.setStart(range.startContainer, range.startOffset);
    place.setEnd(range.endContainer, range.endOffset);
    const box = place.getBoundingClientRect();
    const frame = document.querySelector(".yna-scroll").getBoundingClientRect();
    const seen = box.height > 0 && box.top >= frame.top && box.bottom <= frame.bottom;
    return seen ? place.startContainer.parentElement.closest("[class*=yna]").className : "out of sight";
}"""


async def top(element: Locator) -> float:
    return await element.evaluate("element => element.getBoundingClientRect().top")


async def test_an_edited_message_begins_a_branch_and_the_picker_shows_each_in_two_views(
    open_notebook: OpenNotebook,
) -> None:
    notebook = await open_notebook(ECHO, ATTACHED, "widget")
    await notebook.run_cell(1)
    await notebook.run_cell(2)
    await notebook.say("second")
    await notebook.until_ready()
    here, there = notebook.widget(0), notebook.widget(1)
    first = here.locator(".yna-user").first
    await first.locator("summary").click()
    await expect(first.locator("summary")).to_contain_text("tides & winds.csv")
    await expect(first.locator("code")).to_have_text("hour,tide\n1,<b>3.5</b>")

    await first.get_by_role("button", name="Edit").focus()
    await expect(first.get_by_role("button", name="Edit")).to_be_visible()
    await notebook.page.keyboard.press("Enter")
    editor = here.get_by_label("Another text for this message")
    await expect(editor).to_be_focused()
    await expect(editor).to_have_value("first")
    await expect(first).to_contain_text("Starts a new branch; this one is kept.")
    await notebook.page.keyboard.press("Escape")
    await expect(first.get_by_role("button", name="Edit")).to_be_focused()
    await notebook.page.keyboard.press("Enter")
    await editor.fill("instead")
    await notebook.page.keyboard.press("Shift+Enter")
    await notebook.page.keyboard.press("Enter")

    for view in (here, there):
        await expect(view.locator(".yna-said")).to_have_text(["instead\n"])
        await expect(view.locator(".yna-answer")).to_contain_text("Answer 3 to instead")
        await expect(view.locator(".yna-user img")).to_have_count(1)
        await expect(view.locator(".yna-file")).to_have_count(1)
        await expect(view.locator(".yna-branches")).to_contain_text("Branch 2 of 2")
    await notebook.until_ready()

    back = here.get_by_role("button", name="Previous branch").first
    await back.focus()
    before = await top(back)
    await notebook.page.keyboard.press("Enter")
    for view in (here, there):
        await expect(view.locator(".yna-said")).to_have_text(["first", "second"])
        await expect(view.locator(".yna-branches").first).to_contain_text("Branch 1 of 2")
    await expect(back).to_be_focused()
    assert abs(await top(back) - before) < 2
    await expect(back).to_be_disabled()
    await expect(back).to_have_attribute("title", "This is the first branch.")
    await there.get_by_role("button", name="Next branch").first.click()
    await expect(here.locator(".yna-said")).to_have_text(["instead\n"])


async def test_the_menu_copies_and_saves_the_conversation_by_the_keyboard(open_notebook: OpenNotebook) -> None:
    notebook = await open_notebook(ECHO)
    widget, page = notebook.widget(), notebook.page
    menu = widget.get_by_role("button", name="Conversation", exact=True)
    await expect(menu).to_be_hidden()
    await notebook.say("Keep **this**")
    await notebook.until_ready()
    await menu.focus()

    await page.keyboard.press("ArrowDown")
    await expect(widget.get_by_role("menuitem", name="Search")).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(menu).to_be_focused()
    await expect(widget.get_by_role("menu")).to_be_hidden()
    files: dict[str, str] = {}
    for ups in (2, 1):
        async with page.expect_download() as event:
            for _ in range(ups):
                await page.keyboard.press("ArrowUp")
            await page.keyboard.press("Enter")
        download = await event.value
        files[Path(download.suggested_filename).suffix] = await asyncio.to_thread(
            (await download.path()).read_text, encoding="utf-8"
        )
        await expect(menu).to_be_focused()
    assert "Keep **this**" in files[".md"]
    assert "paragraph 19" in files[".md"]
    assert "paragraph 19" in json.dumps(json.loads(files[".ipynb"])["cells"])

    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("c")
    await page.keyboard.press("Enter")
    await expect(widget.locator(".yna-menu-word")).to_have_text("Copied")
    assert await page.evaluate("navigator.clipboard.readText()") == files[".md"]


async def test_a_failed_answer_is_tried_again_with_the_work_of_its_tools_and_a_whole_one_is_had_anew(
    open_notebook: OpenNotebook,
) -> None:
    notebook = await open_notebook(SHARKY, "go_on.set()", "dives, len(agent.messages)")
    widget = notebook.widget()
    await notebook.say("Dive!")
    await notebook.until_ready()
    card = widget.locator(".yna-error")
    await expect(card).to_contain_text("a shark bit through the cable")
    await card.get_by_role("button", name="Retry").click()
    await expect(widget.locator(".yna-answer").last).to_contain_text("Answer 2 is half")
    await expect(card).to_have_count(0)
    edit = widget.get_by_role("button", name="Edit")
    await expect(edit).to_be_disabled()
    await expect(edit).to_have_attribute("title", "The agent works: stop it first, or wait until it has finished.")
    spoken = widget.locator("[role=status][aria-live]")
    await expect(spoken.locator("p", has_text="half")).to_have_count(0)
    await notebook.run_cell(1)
    await notebook.until_ready()
    await notebook.run_cell(2)
    await expect(notebook.cell(2).locator(".jp-OutputArea-output")).to_have_text("(1, 4)")
    told = await spoken.locator("p").all_text_contents()
    assert told[-4:] == ["Answer 2 is half done.", "Code, python, 1 line.", "And it ends.", "The agent has finished."]
    assert sum("shark" in each for each in told) == 1
    await expect(widget.locator(".yna-branches:visible")).to_contain_text("Branch 2 of 2")

    await widget.get_by_role("button", name="Regenerate").click()
    await expect(widget.locator(".yna-answer").last).to_contain_text("Answer 3 is half done.")
    await notebook.until_ready()
    await notebook.run_cell(2)
    await expect(notebook.cell(2).locator(".jp-OutputArea-output")).to_have_text("(2, 4)")
    await expect(widget.locator(".yna-branches:visible")).to_have_count(1)
    await widget.get_by_role("button", name="Previous branch").locator("visible=true").click()
    await expect(widget.locator(".yna-answer").last).to_contain_text("Answer 2 is half done.")
    await widget.get_by_role("button", name="Previous branch").locator("visible=true").last.click()
    await expect(card).to_contain_text("a shark bit through the cable")


async def test_thoughts_are_markdown_while_they_are_open_and_a_run_stopped_in_a_tool_is_tried_again(
    open_notebook: OpenNotebook,
) -> None:
    notebook = await open_notebook(DIGGER, "thought.set()", "dug.set()")
    widget = notebook.widget()
    await notebook.say("Dig!")
    thoughts = widget.locator(".yna-thought-text")
    await expect(thoughts).to_have_text("There **may** be a *chest*")
    await expect(thoughts).to_be_hidden()
    await widget.locator(".yna-thought > summary").click()
    await expect(thoughts.locator("strong")).to_have_text("may")
    await expect(thoughts.locator("em")).to_have_text("chest")
    await notebook.run_cell(1)
    await expect(widget.locator(".yna-call[data-status=running]")).to_have_count(1)
    retry = widget.get_by_role("button", name="Retry")
    await expect(retry).to_have_count(0)
    await widget.get_by_role("button", name="Stop").click()
    await notebook.until_ready()
    await expect(retry).to_have_count(1)
    await notebook.run_cell(2)
    await retry.click()
    await expect(widget.locator(".yna-answer").last).to_contain_text("Found it.")
    await notebook.until_ready()
    await expect(retry).to_have_count(0)
    await expect(widget.locator(".yna-branches:visible")).to_contain_text("Branch 2 of 2")


async def test_search_finds_what_is_folded_away_and_what_is_not_loaded_yet(
    open_notebook: OpenNotebook, tmp_path: Path
) -> None:
    notebook = await open_notebook(HISTORY)
    widget, page = notebook.widget(), notebook.page
    await notebook.composer().press("Control+f")
    field = widget.get_by_label("Search this conversation")
    await expect(field).to_be_focused()
    await field.fill("HERRING")
    count = widget.locator(".yna-search-count")
    await expect(count).to_have_text("7 of 7")
    await page.wait_for_function(f"name => ({SEEN})(name) !== 'out of sight'", arg="yna-found-now")
    assert "yna-code" in await page.evaluate(SEEN, "yna-found-now")
    seen: list[str] = []
    for place in (1, 2, 3, 4, 5, 6, 7):
        await field.press("Enter")
        await expect(count).to_have_text(f"{place} of 7")
        await page.wait_for_function(f"name => ({SEEN})(name) !== 'out of sight'", arg="yna-found-now")
        seen.append(await page.evaluate(SEEN, "yna-found-now"))
    assert seen[0] == "yna-said"
    assert seen[1] == "yna-block"
    assert seen[2] == "yna-block"
    assert seen[6].startswith("yna-code")
    assert len(set(seen[3:6])) >= 2
    await expect(widget.locator(".yna-thought")).to_have_attribute("open", "")
    assert await page.evaluate("CSS.highlights.get('yna-found').size") == 7
    await field.press("Shift+Enter")
    await expect(count).to_have_text("6 of 7")
    await widget.screenshot(path=tmp_path / "search.png")
    await field.fill("no such fish")
    await expect(count).to_have_text("No results")
    await field.press("Escape")
    await expect(field).to_be_hidden()
    await expect(notebook.composer()).to_be_focused()
    assert await page.evaluate("CSS.highlights.get('yna-found').size") == 0
    assert await page.evaluate(CONTRAST) == []
    print(f"\nscreenshots in {tmp_path}")


async def test_the_place_of_a_branch_stays_also_where_it_is_older_than_what_is_loaded_first(
    open_notebook: OpenNotebook,
) -> None:
    notebook = await open_notebook(HISTORY)
    widget, page = notebook.widget(), notebook.page
    first = widget.locator(".yna-user", has=page.get_by_text("question 3", exact=True))
    await first.get_by_role("button", name="Edit").click()
    await widget.get_by_label("Another text for this message").fill("question 3 again")
    await page.keyboard.press("Enter")
    await notebook.until_ready()
    await expect(widget.locator(".yna-user")).to_have_count(5)
    # The composer has the keyboard now, since the message that had it is gone.
    await expect(notebook.composer()).to_be_focused()
    back = widget.get_by_role("button", name="Previous branch")
    await back.focus()
    before = await top(back)
    await page.keyboard.press("Enter")
    await expect(widget.locator(".yna-branches")).to_contain_text("Branch 1 of 2")
    await expect(back).to_be_focused()
    assert abs(await top(back) - before) < 2
    await expect(widget.locator(".yna-user")).to_have_count(93)
    assert abs(await top(back) - before) < 2


async def test_the_reader_is_not_pulled_to_the_end_and_what_is_opened_stays(open_notebook: OpenNotebook) -> None:
    notebook = await open_notebook(
        HISTORY.replace(
            "AgentWidget(",
            """
import asyncio
more = asyncio.Event()
async def slow(messages):
    yield "One.\\n\\n"
    await more.wait()
    yield "More.\\n\\n" * 30
agent.set_llm_call(slow)
AgentWidget(""",
        ),
        "more.set()",
    )
    widget, page = notebook.widget(), notebook.page
    scroller = widget.locator(".yna-scroll")
    jump = widget.get_by_role("button", name="Jump to latest")
    await notebook.say("go on")
    await expect(widget.locator(".yna-answer").last).to_contain_text("One.")
    await expect(jump).to_be_hidden()
    await scroller.hover()
    await page.mouse.wheel(0, -25)
    await expect(jump).to_be_visible()
    place = """element => {
        const top = each => each.getBoundingClientRect().top;
        return top(element) - top(element.closest(".yna-scroll"));
    }"""
    last = widget.locator(".yna-answer").last
    before = await last.evaluate(place)  # the scroller's own number changes with what is built above
    await notebook.run_cell(1)
    await notebook.until_ready()
    assert abs(await last.evaluate(place) - before) < 2
    await jump.click()
    await expect(jump).to_be_hidden()
    await expect(notebook.composer()).to_be_focused()
    assert await scroller.evaluate("e => e.scrollHeight - e.scrollTop - e.clientHeight") < 2
    await widget.get_by_role("button", name="Conversation", exact=True).click()
    await scroller.evaluate(
        """async (element) => {
            element.scrollTop -= 50;
            for (let frame = 0; frame < 3; frame += 1) await new Promise(requestAnimationFrame);
        }"""
    )
    await expect(widget.get_by_role("menu")).to_be_visible()
