"""Under an answer stands what it took, in the header how much the model thinks, and an error tells what to do."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from browser.conftest import OpenNotebook
from browser.lab import Notebook
from browser.model_server import ModelServer
from browser.test_demo_and_looks import CONTRAST
from playwright.async_api import Locator, expect

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

AGENT = '''
from yiemagent_nb import Agent, AgentWidget, OpenAICompatible
from yiemagent_nb.core.models import LlmModel, ModelCost

def depth(place: str) -> float:
    """Tell how deep the water is."""
    return 3.5

model = LlmModel(
    id="tide-1", reasoning={reasoning}, cost=ModelCost(input=1.0, output=10.0, cache_read=0.1)
)
agent = Agent(OpenAICompatible("{url}", model, provider="harbour", retries=0), tools=[depth])
AgentWidget(agent)
'''


@pytest_asyncio.fixture(loop_scope="session")
async def server() -> AsyncIterator[ModelServer]:
    async with ModelServer() as server:
        yield server


def usage(prompt: int, completion: int, cached: int, reasoning: int) -> dict[str, Any]:
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "prompt_tokens_details": {"cached_tokens": cached},
        "completion_tokens_details": {"reasoning_tokens": reasoning},
    }


def cells(server: ModelServer, *, reasoning: bool = True) -> str:
    return AGENT.format(url=server.base_url, reasoning=reasoning)


def picker(notebook: Notebook, index: int = 0) -> Locator:
    return notebook.widget(index).get_by_label("Thinking level")


async def test_under_an_answer_stands_what_it_took(
    open_notebook: OpenNotebook, server: ModelServer, tmp_path: Path
) -> None:
    notebook = await open_notebook(cells(server), "AgentWidget(agent)")
    widget = notebook.widget()
    await picker(notebook).select_option("high")
    await notebook.say("How deep is the harbour?")
    first = await server.asked()
    assert first.body["reasoning_effort"] == "high"
    await first.write(reasoning_content="I should look it up.")
    await first.call(0, name="depth", arguments='{"place": "harbour"}')
    await first.finish("tool_calls", **usage(1_000, 50, 0, 20))
    second = await server.asked()
    await second.answer("It is **3.5 m** deep.", **usage(1_200, 30, 1_000, 0))
    await notebook.until_ready()
    line = widget.locator(".yna-facts-line")
    await expect(line).to_contain_text(
        "tide-1 · thinking high · 2,200 tokens in (1,000 cached), 80 out (20 reasoning) · $0.0021 · 2 turns"
    )
    details = (
        "Model: tide-1 (harbour)\nThinking: high\n"
        "Input: 2,200 tokens, 1,000 of them from a cache\nOutput: 80 tokens, 20 of them reasoning\n"
        "Cost: $0.0021 (input $0.0012, cache read $0.00010, output $0.00080)\n"
        "The sum of 2 turns, since you spoke last"
    )
    await expect(line).to_have_attribute("title", details)
    await line.focus()
    await notebook.page.keyboard.press("Enter")
    await expect(widget.locator(".yna-facts-all")).to_be_visible()
    await widget.screenshot(path=tmp_path / "facts_light.png")
    assert await notebook.page.evaluate(CONTRAST) == []
    await notebook.run_cell(1)
    again = notebook.widget(1).locator(".yna-facts-line")
    shown = await line.text_content()
    assert shown is not None
    await expect(again).to_have_text(shown.rpartition(" · ")[0])
    await expect(notebook.page.locator(".yna-static .yna-took").first).to_have_text(shown.rpartition(" · ")[0])
    print(f"\nscreenshots in {tmp_path}")


async def test_nothing_is_said_of_a_cost_and_of_thinking_that_are_not_known(
    open_notebook: OpenNotebook, server: ModelServer
) -> None:
    notebook = await open_notebook(
        cells(server).replace(", cost=ModelCost(input=1.0, output=10.0, cache_read=0.1)", "")
    )
    await notebook.say("How deep is the harbour?")
    await (await server.asked()).answer("Deep.", **usage(12, 3, 0, 0))
    await notebook.until_ready()
    await expect(notebook.widget().locator(".yna-facts-line")).to_contain_text("tide-1 · 12 tokens in, 3 out · ")
    await expect(notebook.widget().locator(".yna-footer")).not_to_contain_text("$")


async def test_the_thinking_level_is_the_same_in_every_view_and_in_code(
    open_notebook: OpenNotebook, server: ModelServer
) -> None:
    notebook = await open_notebook(
        cells(server).replace("AgentWidget(agent)", "widget = AgentWidget(agent)\nwidget"),
        "widget",
        "AgentWidget(agent)",
        "agent.set_thinking_level('max')",
        "agent.state.thinking_level",
    )
    for index in (1, 2):
        await notebook.run_cell(index)
    pickers = [picker(notebook, index) for index in range(3)]
    await expect(pickers[0].locator("option")).to_have_text(["off", "minimal", "low", "medium", "high", "xhigh", "max"])
    await expect(pickers[2]).to_have_value("off")
    await pickers[2].focus()
    await notebook.page.keyboard.press("ArrowDown")
    for each in pickers:
        await expect(each).to_have_value("minimal")
    await notebook.run_cell(4)
    await expect(notebook.cell(4).locator(".jp-OutputArea-output")).to_contain_text("minimal")
    await notebook.run_cell(3)
    for each in pickers:
        await expect(each).to_have_value("max")


async def test_a_model_that_does_not_reason_says_why_no_level_can_be_picked(
    open_notebook: OpenNotebook, server: ModelServer
) -> None:
    notebook = await open_notebook(cells(server, reasoning=False), "agent.set_thinking_level('low')")
    reason = "The model tide-1 does not reason, as far as is known."
    await expect(picker(notebook)).to_be_disabled()
    await expect(picker(notebook)).to_have_attribute("aria-description", reason)
    await expect(notebook.widget().locator(".yna-thinking")).to_have_attribute("title", reason)
    await notebook.run_cell(1)
    await expect(picker(notebook)).to_be_enabled()
    await picker(notebook).select_option("off")
    await expect(picker(notebook)).to_be_disabled()


async def test_an_error_tells_what_happened_what_to_do_and_its_code(
    open_notebook: OpenNotebook, server: ModelServer, tmp_path: Path
) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
    notebook = await open_notebook(
        cells(server), f"agent.set_llm_call(OpenAICompatible({nobody!r}, 'tide-1', retries=0))"
    )
    widget = notebook.widget()
    errors = widget.locator(".yna-error")

    async def check(index: int, said: str, hint: str, code: str) -> None:
        error = errors.nth(index)
        await expect(error.locator(".yna-error-text")).to_contain_text(said)
        await expect(error.locator(".yna-error-hint")).to_contain_text(hint)
        await expect(error.locator(".yna-error-code")).to_have_text(code)

    await notebook.say("one")
    await (await server.asked()).refuse(401, message="Incorrect API key provided. Get one. It is free.")
    await check(0, "Incorrect API key provided. Get one. It is free", "key", "AUTHENTICATION")
    await notebook.say("two")
    await (await server.asked()).refuse(400, message="This model's maximum context length is 4096 tokens.")
    await check(1, "maximum context length is 4096 tokens", "horten", "CONTEXT_LENGTH_EXCEEDED")
    await notebook.run_cell(1)
    await notebook.say("three")
    await check(2, "127.0.0.1", "server", "CONNECTION")
    await notebook.until_ready()
    await expect(errors).to_have_count(3)
    assert await notebook.page.evaluate(CONTRAST) == []
    await widget.screenshot(path=tmp_path / "errors_light.png")
    try:
        await notebook.set_theme("JupyterLab Dark")
        assert await notebook.page.evaluate(CONTRAST) == []
        await widget.screenshot(path=tmp_path / "errors_dark.png")
    finally:
        await notebook.set_theme("JupyterLab Light")
    print(f"\nscreenshots in {tmp_path}")
