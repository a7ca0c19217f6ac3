"""A person picks, checks and adds backends in the header; a key that they type is seen nowhere."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from backends.test_keys import forms_of
from backends.web import Web, closed_port, json_page, serving
from browser.conftest import OpenNotebook
from browser.lab import Notebook
from playwright.async_api import Page, WebSocket, expect

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

KEY = "sk-marked-zq7rw3tx9lm2kv8bn4jc6hd"
NAMES = ["small", "qwen3:8b", "gpt-oss-20b", *(f"other-{number}" for number in range(8))]
MODELS = json_page({"data": [{"id": name, "owned_by": "vllm", "max_model_len": 131072} for name in [*NAMES, KEY]]})
ANSWER = json_page(
    {
        "model": KEY,
        "choices": [{"message": {"role": "assistant", "content": "Hello there."}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 12300, "completion_tokens": 45, "total_tokens": 12345},
    }
)
ERROR = json_page({"error": {"message": f"Incorrect API key provided: {KEY}"}}, 401)

DEMO = """
import logging, os
logging.basicConfig(level=logging.DEBUG, filename="kernel.log", force=True)
os.environ["YIEMAGENT_BACKEND"] = "demo"
from yiemagent_nb import Agent, AgentWidget, Demo
agent = Agent(Demo(delay=0))
widget = AgentWidget(agent)
widget
"""

IS_ONE_LINE = """row => {
    const tabs = row.querySelector(".yna-tabs");
    const below = tabs.offsetTop > row.firstElementChild.offsetTop + 15 ? tabs.offsetHeight : 0;
    return row.scrollWidth <= row.clientWidth && row.clientHeight - below < 60;
}"""
"""Whether the header is one line; where it is narrow the panels' tabs stand below that."""


@pytest_asyncio.fixture(loop_scope="session")
async def server() -> AsyncIterator[Web]:
    """A model server; a test names it before its notebook, whose kernel then hangs up first."""
    async with serving({"/v1/models": MODELS, "/v1/chat/completions": ANSWER}, key=KEY) as web:
        yield web


@pytest_asyncio.fixture(loop_scope="session")
async def refusing() -> AsyncIterator[Web]:
    """A server that refuses every key, and repeats it."""
    async with serving({"*": ERROR}) as web:
        yield web


async def open_panel(notebook: Notebook) -> None:
    await notebook.widget().locator(".yna-backend-button").click()
    await expect(notebook.widget().get_by_role("region", name="Backend and model")).to_be_visible()


async def add(notebook: Notebook, address: str, key: str) -> None:
    widget = notebook.widget()
    await widget.get_by_role("button", name="Add a backend…").click()
    await widget.get_by_label("Base URL").fill(address)
    field = widget.get_by_label("or a key", exact=True)
    await field.fill(key)
    await field.press("Enter")
    await expect(field).to_have_value("")


def json_parts(frame: bytes) -> bytes:
    """A message of Jupyter's websocket protocol without its binary buffers."""
    count = int.from_bytes(frame[:8], "little")
    offsets = [int.from_bytes(frame[8 * at : 8 * at + 8], "little") for at in range(1, count + 1)]
    return frame[offsets[0] : offsets[5]]


class Frames:
    """What goes over the websockets of a page."""

    def __init__(self, page: Page) -> None:
        self.sent: list[str | bytes] = []
        self.received: list[str | bytes] = []
        page.on("websocket", self._on_websocket)

    def _on_websocket(self, socket: WebSocket) -> None:
        socket.on("framesent", self._on_sent)
        socket.on("framereceived", self._on_received)

    def _on_sent(self, frame: str | bytes) -> None:
        self.sent.append(frame)

    def _on_received(self, frame: str | bytes) -> None:
        self.received.append(frame)


def as_bytes(frames: list[str | bytes]) -> bytes:
    return b"\n".join(frame.encode() if isinstance(frame, str) else frame for frame in frames)


@pytest.mark.requirement("Y FR-002", "Y US-005")
async def test_a_person_adds_a_server_with_a_key_that_is_then_nowhere(
    server: Web, refusing: Web, open_notebook: OpenNotebook
) -> None:
    notebook = await open_notebook(DEMO, "agent, agent.llm_call, widget, agent.state", own_page=True)
    frames = Frames(notebook.page)
    await notebook.save()
    await notebook.reload()
    widget = notebook.widget()
    await expect(widget.locator(".yna-backend")).to_have_text("Demo (built-in script)")
    await open_panel(notebook)
    await add(notebook, refusing.url(), KEY)
    error = widget.locator(".yna-add").get_by_role("alert")
    await expect(error).to_contain_text("Incorrect API key provided: [key]")
    await widget.get_by_role("button", name="Cancel").click()
    await add(notebook, server.url(""), KEY)
    await expect(widget.locator(".yna-backend")).to_have_text(f"vLLM at 127.0.0.1:{server.port}")
    await expect(widget.locator(".yna-model")).to_have_text("small")
    await expect(widget.locator(".yna-health")).to_contain_text("is ready and serves small, qwen3:8b")
    await expect(widget.locator(".yna-add")).to_be_hidden()  # till then, Escape closes it alone
    await notebook.page.keyboard.press("Escape")
    await expect(widget.locator(".yna-backend-button")).to_be_focused()
    await notebook.say("hello")
    await expect(widget.locator(".yna-answer").last).to_contain_text("Hello there.")
    assert any(f"Bearer {KEY}" in head and head.startswith("POST") for head in server.heads)
    await expect(widget.locator(".yna-usage-words")).to_have_text("12.3k of 131k")
    await expect(widget.locator(".yna-usage")).to_have_attribute("title", "12,345 of 131,072 tokens of context (9 %)")
    await notebook.run_cell(1)
    page = await notebook.page.content()
    values = await notebook.page.evaluate("[...document.querySelectorAll('input, textarea')].map((each) => each.value)")
    plain = await notebook.save()
    full = await notebook.save(with_widgets=True)
    assert "widgets" in full["metadata"]
    with_key = [frame for frame in frames.sent if KEY.encode() in as_bytes([frame])]
    assert len(with_key) == 2, "one buffer for each time it was typed"
    assert all(isinstance(frame, bytes) and b"add_backend" in json_parts(frame) for frame in with_key)
    json_sent = [json_parts(frame) if isinstance(frame, bytes) else frame.encode() for frame in frames.sent]
    places: dict[str, Any] = {
        "page": page,
        "fields": values,
        "sent": b"\n".join(json_sent).decode("utf-8", "replace"),
        "received": as_bytes(frames.received).decode("utf-8", "replace"),
        "notebook": json.dumps(plain),
        "notebook with widgets": json.dumps(full),
        "log of the kernel": (notebook.lab.notebooks / "kernel.log").read_text(),
        "log of the server": notebook.lab.log(),
    }
    assert "add_backend" in places["sent"]
    assert "add_backend" in places["log of the kernel"]
    found = [place for place, text in places.items() for form in forms_of(KEY) if form in str(text)]
    assert found == []


async def test_a_person_picks_a_model_sets_how_it_samples_and_goes_back(
    server: Web, open_notebook: OpenNotebook, tmp_path: Path
) -> None:
    code = f"agent = Agent(OpenAICompatible({server.url()!r}, 'small', api_key={KEY!r}))"
    notebook = await open_notebook(
        DEMO.replace("agent = Agent(Demo(delay=0))", code).replace("Demo\n", "Demo, OpenAICompatible\n"),
        "assert agent.state.model.id == 'gpt-oss-20b'\nassert dict(agent.options) == {'temperature': 0.5}",
        "assert agent.backend_label.startswith('demo')",
    )
    widget = notebook.widget()
    await expect(widget.locator(".yna-header")).to_have_attribute("data-health", "ok")
    await open_panel(notebook)
    await widget.get_by_label("Search models").fill("oss")
    await widget.get_by_role("radio", name="gpt-oss-20b").click()
    await expect(widget.locator(".yna-model")).to_have_text("gpt-oss-20b")
    temperature = widget.get_by_label("Temperature")
    await temperature.fill("0,5")
    await temperature.press("Tab")
    await widget.get_by_label("Top p").fill("7")
    await widget.get_by_label("Top p").press("Tab")
    await expect(widget.locator(".yna-sampling").get_by_role("alert")).to_contain_text(
        "top_p is 7.0; expected a number from 0 to 1."
    )
    await notebook.run_cell(1)
    await widget.screenshot(path=tmp_path / "light.png")
    await notebook.set_theme("JupyterLab Dark")
    await widget.screenshot(path=tmp_path / "dark.png")
    await notebook.set_theme("JupyterLab Light")
    # By keyboard alone: another backend, once the check has found one.
    await widget.get_by_role("button", name="Check").press("Enter")
    first = widget.get_by_role("radiogroup", name="Backend").get_by_role("radio").first
    await expect(widget.get_by_role("radio", name="Demo (built-in script)")).to_be_visible()
    await first.focus()
    await notebook.page.keyboard.press("ArrowDown")
    await notebook.page.keyboard.press("Enter")
    await expect(widget.locator(".yna-backend")).to_have_text("Demo (built-in script)")
    await expect(widget.locator(".yna-sampling")).to_contain_text("nothing in it is left to chance")
    await expect(widget.get_by_role("radio", name="Demo (built-in script)")).to_be_focused()
    await notebook.page.keyboard.press("Escape")
    await expect(widget.get_by_role("region", name="Backend and model")).to_be_hidden()
    await notebook.run_cell(2)


async def test_a_connection_that_fails_is_said_in_the_header_in_a_sentence(open_notebook: OpenNotebook) -> None:
    address = f"http://127.0.0.1:{closed_port()}/v1"
    code = f"agent = Agent(OpenAICompatible({address!r}, 'small', retries=0))"
    notebook = await open_notebook(
        DEMO.replace("agent = Agent(Demo(delay=0))", code).replace("Demo\n", "Demo, OpenAICompatible\n")
    )
    widget = notebook.widget()
    await expect(widget.locator(".yna-header")).to_have_attribute("data-health", "bad")
    await expect(widget.locator(".yna-header-note")).to_contain_text(f"No connection to {address}")
    for width in (320, 640, 1600):
        await widget.evaluate("(root, width) => { root.style.width = `${width}px`; }", width)
        row = widget.locator(".yna-header")
        assert await row.evaluate(IS_ONE_LINE)
