"""Nothing that a model, a tool or a server says runs in the page."""

from __future__ import annotations

import json

import pytest
from browser.conftest import OpenNotebook
from playwright.async_api import expect
from widgets.payloads import PAYLOADS

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

EVERYWHERE = f"""
import asyncio, json
from yiemagent_nb.core.agent import Agent
from yiemagent_nb.core.messages import *
from yiemagent_nb.core.tools import Tool
from yiemagent_nb.core.approval import approve
from yiemagent_nb.widgets import AgentWidget

payloads = json.loads({json.dumps(json.dumps(list(PAYLOADS.values())))})
history = []
for number, text in enumerate(payloads):
    call = ToolCall(id=f"c{{number}}", name=text, arguments={{text: text}})
    history += [
        UserMessage(text),
        AssistantToolCallMessage([ReasoningContent(text), text], tool_calls=[call]),
        ToolResultMessage(tool_call_id=call.id, tool_name=text, content=text, is_error=True),
        CustomMessage(kind=text),
        AssistantMessage("", stop_reason="error", error_message=text),
    ]

everything = "\\n\\n".join(payloads)

async def hostile(messages):
    if messages[-1]["role"] != "tool":
        yield {{"reasoning": everything}}
        for start in range(0, len(everything), 7):
            yield {{"content": everything[start:start + 7]}}
            if start % 70 == 0:
                await asyncio.sleep(0.002)
        arguments = json.dumps({{"text": everything}})
        yield {{"tool_calls": [{{"index": 0, "id": "x", "function": {{"name": "echo", "arguments": arguments}}}}]}}
    else:
        raise RuntimeError(everything)

def echo(tool_call_id, arguments, signal, on_update):
    on_update(everything)
    return everything

tool = Tool(name="echo", label=payloads[1], description=everything, execute=echo,
            input_schema={{"type": "object", "properties": {{"text": {{"type": "string"}}}}}})
agent = Agent(hostile, tools=[tool], messages=history, before_tool_call=approve())
AgentWidget(agent)
"""

# Everything under the widget that is neither plain text structure nor made by the widget itself.
INSPECT = r"""() => {
    const problems = [];
    const forbidden = /^(script|style|iframe|object|embed|form|base|meta|link|noscript|audio|video)$/;
    const ours = ["data-status", "data-state", "data-lm-suppress-shortcuts"];
    const addresses = ["href", "src", "action", "xlink:href"];
    const walk = document.createTreeWalker(document.querySelector(".yna"), NodeFilter.SHOW_ELEMENT);
    for (let node = walk.currentNode; node; node = walk.nextNode()) {
        if (node.closest(".katex")) continue; // made by the renderer of formulas
        const tag = node.tagName.toLowerCase();
        const model = node.closest(".yna-markdown, pre, .yna-said, .yna-thought-text, .yna-error-text");
        if (forbidden.test(tag)) problems.push(tag);
        for (const { name, value } of node.attributes) {
            if (name.startsWith("on")) problems.push(`${tag} ${name}`);
            if (name === "style" && node !== document.querySelector(".yna")) problems.push(`${tag} style=${value}`);
            if (name.startsWith("data-") && !ours.includes(name)) problems.push(`${tag} ${name}`);
            if (addresses.includes(name) && !/^(https?:|mailto:|data:image\/png)/.test(value))
                problems.push(`${tag} ${name}=${value}`);
            if (name === "class" && !value.split(/\s+/).every((each) => each === "" || each.startsWith("yna")))
                problems.push(`${tag} class=${value}`);
            if (model && (name === "id" || name === "name")) problems.push(`${tag} ${name}=${value}`);
        }
    }
    const formula = document.querySelector(".katex :is([href], [onclick], [style*=url], [data-commandlinker-command])");
    if (formula) problems.push(formula.outerHTML);
    const image = document.querySelector(".yna-markdown img");
    if (image) problems.push(`an image was loaded: ${image.src}`);
    return problems;
}"""


async def test_no_payload_runs_anywhere(open_notebook: OpenNotebook) -> None:
    notebook = await open_notebook(EVERYWHERE)
    widget = notebook.widget()
    page = notebook.page
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    await expect(widget.locator(".yna-said")).to_have_count(len(PAYLOADS))
    await notebook.say("go")
    await widget.get_by_role("button", name="Allow once").click()
    await expect(widget.locator(".yna-call").last).to_have_attribute("data-status", "done")
    await expect(widget.locator(".yna-error").last).to_contain_text("window.pwned")
    await notebook.until_ready()
    for row in await widget.locator(".yna-call-row, .yna-thought > summary").all():
        await row.evaluate("element => element.click()")
    await expect(widget.locator(".yna-section").last).to_contain_text("window.pwned")
    assert await page.evaluate(INSPECT) == []
    for link in await widget.locator(".yna-markdown a, .yna-static a").all():
        await link.evaluate("""element => element.dispatchEvent(new MouseEvent("mouseover", { bubbles: true }))""")
    assert await page.evaluate("() => window.pwned") is None
    static = page.locator(".yna-static")
    await expect(static).to_have_count(1)
    dangerous = static.locator("script, iframe, form, input, button, svg, math, object, embed, meta, base, link")
    await expect(dangerous).to_have_count(0)
    assert [url for url in requests if not url.startswith((notebook.lab.url, "blob:", "data:"))] == []
    await expect(page.locator(".jp-NotebookPanel")).to_be_visible()


async def test_an_image_from_elsewhere_is_loaded_when_a_person_asks(open_notebook: OpenNotebook) -> None:
    notebook = await open_notebook(
        "from yiemagent_nb.core.agent import Agent\n"
        "from yiemagent_nb.widgets import AgentWidget\n"
        "agent = Agent(lambda messages: '![a chart](http://127.0.0.1:9/chart.png) and [a link](https://example.org)')\n"
        "AgentWidget(agent)"
    )
    asked: list[str] = []
    notebook.page.on("request", lambda request: asked.append(request.url))
    await notebook.say("show it")
    await notebook.until_ready()
    button = notebook.widget().get_by_role("button", name="Load “a chart” from 127.0.0.1:9")
    await expect(button).to_be_visible()
    assert not any("chart.png" in url for url in asked)
    async with notebook.page.expect_request("**/chart.png"):
        await button.click()
    link = notebook.widget().locator(".yna-markdown a")
    await expect(link).to_have_attribute("rel", "noopener noreferrer nofollow")
    await expect(link).to_have_attribute("target", "_blank")
