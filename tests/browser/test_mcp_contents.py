"""What the tools of MCP servers give beside text is shown, heard and opened, and runs nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from browser.conftest import OpenNotebook
from browser.test_demo_and_looks import CONTRAST
from browser.test_safety import INSPECT
from playwright.async_api import expect
from widgets.payloads import PAYLOADS

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

AGENT = """
import asyncio, base64, io, json, wave
from yiemagent_nb.core.agent import Agent
from yiemagent_nb.core.results import ToolResult
from yiemagent_nb.core.tools import Tool
from yiemagent_nb.testing import Scripted, call
from yiemagent_nb.widgets import AgentWidget

def recording(seconds):
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(8_000)
        out.writeframes(bytes(16_000 * seconds))
    return {{"type": "audio", "data": base64.b64encode(file.getvalue()).decode(), "mimeType": "audio/wav"}}

go_on = asyncio.Event()
content = json.loads({content!r})
details = {{"server": {server!r}, "tool": "book", "content": [*content, recording({seconds})],
            "structured_content": json.loads({structure!r}), "meta": None}}

async def book(tool_call_id, arguments, signal, on_update):
    on_update(ToolResult("3/10: looking for a seat", details={{"progress": 3, "total": 10}}))
    await go_on.wait()
    return ToolResult("Booked.", details=details)

tool = Tool(name="book", description="Book a train.", source={server!r}, execute=book)
agent = Agent(Scripted([[call("book")], "It is booked."]), tools=[tool])
AgentWidget(agent)
"""

CONTENT: list[dict[str, Any]] = [
    {
        "type": "resource_link",
        "uri": "https://example.org/t",
        "name": "Ticket",
        "mimeType": "text/plain",
        "size": 48211,
    },
    {"type": "resource_link", "uri": "rail://table", "name": "Timetable"},
    {
        "type": "resource",
        "resource": {"uri": "rail://b.json", "mimeType": "application/json", "text": '{"id": 9007199254740993}'},
    },
    {"type": "resource", "resource": {"uri": "rail://qr", "mimeType": "application/octet-stream", "blob": "AAAA"}},
    {"type": "audio", "data": "AAAA", "mimeType": "audio/x-unheard"},
    {"type": "text", "text": "The code of the gate is 7.", "annotations": {"audience": ["user"]}},
]


def agent(content: Any, structure: Any, *, server: str = "railways", seconds: int = 1) -> str:
    texts = json.dumps(content), json.dumps(structure)
    return AGENT.format(content=texts[0], structure=texts[1], server=server, seconds=seconds)


async def test_a_result_shows_all_that_its_server_sent(open_notebook: OpenNotebook) -> None:
    notebook = await open_notebook(agent(CONTENT, {"seats": ["12A"]}), "go_on.set()")
    widget = notebook.widget()
    await notebook.say("book")
    await expect(widget.locator(".yna-call-row")).to_contain_text("Booking")
    await expect(widget.locator(".yna-call-source")).to_have_text("railways")
    await expect(widget.locator(".yna-call-progress")).to_contain_text("3/10: looking for a seat")
    await expect(widget.get_by_role("progressbar")).to_have_js_property("value", 0.3)
    await notebook.run_cell(1)
    await notebook.until_ready()
    await expect(widget.get_by_role("progressbar")).to_have_count(0)
    await widget.locator(".yna-call-row").click()
    parts = widget.locator(".yna-result")
    link = parts.get_by_role("link")
    await expect(link).to_have_count(1)
    await expect(link).to_have_attribute("href", "https://example.org/t")
    await expect(link).to_have_attribute("rel", "noopener noreferrer nofollow")
    await expect(parts).to_contain_text("Timetablerail://table")
    await expect(parts).to_contain_text("rail://qrapplication/octet-stream · 3 B")
    await expect(parts).to_contain_text("The code of the gate is 7.")
    await parts.get_by_text("rail://b.json").click()
    await expect(parts.locator(".yna-json")).to_have_text("id: 9007199254740993")
    await parts.get_by_text("Structured result").click()
    await expect(parts.locator(".yna-json").last).to_have_text('seats: [1 item]0: "12A"')
    await expect(widget.locator(".yna-call-rich")).to_contain_text("(audio/x-unheard · 3 B) that cannot be played")
    assert await notebook.page.evaluate(INSPECT) == []
    assert await notebook.page.evaluate(CONTRAST) == []


async def test_a_recording_is_fetched_when_a_person_wants_to_hear_it(open_notebook: OpenNotebook) -> None:
    notebook = await open_notebook(agent([], None, seconds=120), "go_on.set()", "AgentWidget(agent)")
    await notebook.say("book")
    await notebook.run_cell(1)
    await notebook.until_ready()
    before = notebook.received
    await notebook.run_cell(2)
    await expect(notebook.widget(1).locator(".yna-audio")).to_contain_text("audio/wav · 1.9 MB")
    assert notebook.received - before < 500_000
    for view in (0, 1):
        await notebook.widget(view).get_by_role("button", name="Play recording").click()
        await expect(notebook.widget(view).locator("audio")).to_have_js_property("duration", 120)
    assert notebook.received - before > 5_000_000


async def test_nothing_in_a_result_runs(open_notebook: OpenNotebook) -> None:
    texts = [*PAYLOADS.values()]
    content: list[dict[str, Any]] = []
    for text in texts:
        link = {"type": "resource_link", "uri": text, "name": text, "description": text, "mimeType": text}
        resource = {"uri": text, "mimeType": f"application/json{text}", "text": text}
        media = [{"type": kind, "mimeType": text, "data": text} for kind in ("audio", "image")]
        content += [link, {"type": "resource", "resource": resource}, *media, {"type": text, "x": text}]
    notebook = await open_notebook(agent(content, dict.fromkeys(texts, texts[0]), server=texts[1]), "go_on.set()")
    page, widget = notebook.page, notebook.widget()
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    await notebook.say("book")
    await notebook.run_cell(1)
    await notebook.until_ready()
    await widget.locator(".yna-call-row").click()
    await expect(widget.locator(".yna-part")).not_to_have_count(0)
    await widget.evaluate("widget => widget.querySelectorAll('.yna-part').forEach((part) => { part.open = true; })")
    await expect(widget.locator(".yna-part .yna-json").last).to_contain_text("window.pwned")
    await expect(widget.locator(".yna-result").get_by_role("link")).to_have_count(0)
    assert await page.evaluate(INSPECT) == []
    assert await page.evaluate("() => window.pwned") is None
    assert [url for url in requests if not url.startswith((notebook.lab.url, "blob:", "data:"))] == []
