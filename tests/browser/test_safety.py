"""Nothing that a model, a tool or a server says runs in the page."""

from __future__ import annotations

import json
from typing import Any, cast

import nbformat
import pytest
from browser.conftest import OpenNotebook
from browser.lab import Notebook
from nbconvert import HTMLExporter
from playwright.async_api import BrowserContext, Page, Route, expect
from widgets.payloads import PAYLOADS

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

EVERYWHERE = f"""
import asyncio, json
from html import escape
from IPython.display import publish_display_data
from yiemagent_nb import save_conversation
from yiemagent_nb.core.agent import Agent
from yiemagent_nb.core.events import QuestionAsked
from yiemagent_nb.core.messages import *
from yiemagent_nb.core.signal import AbortSignal
from yiemagent_nb.core.tools import Tool
from yiemagent_nb.core.approval import approve
from yiemagent_nb.sessions.export import export_markdown
from yiemagent_nb.widgets import AgentWidget

payloads = json.loads({json.dumps(json.dumps(list(PAYLOADS.values())))})
history = []
for number, text in enumerate(payloads):
    call = ToolCall(id=f"c{{number}}", name=text, arguments={{text: text}})
    details = {{
        "server": text, "tool": text, "structured_content": {{text: text}}, "left_out": [text],
        "content": [
            {{"type": "resource_link", "uri": text, "name": text, "description": text, "mimeType": text}},
            {{"type": "resource_link", "uri": "https://pwned.example/" + text, "name": text}},
            {{"type": "resource", "resource": {{"uri": text, "mimeType": text, "text": text}}}},
            {{"type": "audio", "data": text, "mimeType": text}},
            {{"type": text, text: text}},
        ],
    }}
    history += [
        UserMessage([text, f'<file name="{{escape(text)}}">\\n{{text}}\\n</file>']),
        AssistantToolCallMessage([ReasoningContent(text), text], tool_calls=[call]),
        ToolResultMessage(tool_call_id=call.id, tool_name=text, content=text, is_error=True, details=details),
        AssistantMessage(
            "", stop_reason="error", error_message=text, model=text, provider=text, thinking_sent=text
        ),
        CustomMessage(kind=text),
    ]

everything = "\\n\\n".join(payloads)
markup = payloads[1]

async def hostile(messages):
    if messages[-1]["role"] != "tool":
        yield {{"reasoning": everything}}
        for start in range(0, len(everything), 19):
            yield {{"content": everything[start:start + 19]}}
            if start % 380 == 0:
                await asyncio.sleep(0.002)
        arguments = json.dumps({{"text": everything}})
        yield {{"tool_calls": [{{"index": 0, "id": "x", "function": {{"name": "echo", "arguments": arguments}}}}]}}
    else:
        raise RuntimeError(everything)

def echo(tool_call_id, arguments, signal, on_update):
    on_update(everything)
    return everything

tool = Tool(name="echo", label=markup, description=everything, source=markup, execute=echo,
            input_schema={{"type": "object", "properties": {{"text": {{"type": "string", "title": markup}}}}}})
agent = Agent(hostile, tools=[tool], messages=history, before_tool_call=approve())
AgentWidget(agent)
"""

PLAIN = """
asked = Agent(hostile, tools=[tool], messages=history, before_tool_call=approve())
panel = AgentWidget(asked, plain=True)
panel.show()
schema = {"type": "object", "properties": {
    text: {"type": "string", "title": text, "description": text, "default": text} for text in payloads[:30]}}
question = QuestionAsked("q", source=markup, message=everything, schema=schema)
asking = asyncio.create_task(asked.questions.ask(question, AbortSignal()))
running = asyncio.create_task(asked.prompt(everything))
while not asked.approvals.pending:
    await asyncio.sleep(0.05)
"""

FILES = """
save_conversation([message for message in history if message.role == "user"], "hostile.ipynb", title=markup)
# Of outputs of its own kernel JupyterLab sanitises nothing.
most = [message for index, message in enumerate(history) if index % 5 < 3]
publish_display_data({"text/markdown": export_markdown(most, markup)})
AgentWidget(Agent(hostile, messages=history)).freeze()
"""

# Everything under the widget that is neither plain text structure nor made by the widget itself.
INSPECT = r"""() => {
    const problems = [];
    const forbidden = /^(script|style|iframe|object|embed|form|base|meta|link|noscript|audio|video)$/;
    const ours = [
        "data-status", "data-state", "data-step", "data-health", "data-full", "data-lm-suppress-shortcuts",
        "data-1p-ignore", "data-bwignore", "data-lpignore", // no password manager fills in a key
    ];
    const addresses = ["href", "src", "action", "xlink:href"];
    const walk = document.createTreeWalker(document.querySelector(".yna"), NodeFilter.SHOW_ELEMENT);
    for (let node = walk.currentNode; node; node = walk.nextNode()) {
        if (node.closest(".katex")) continue; // made by the renderer of formulas
        const tag = node.tagName.toLowerCase();
        const model = node.closest(".yna-markdown, pre, .yna-said, .yna-thought-text, .yna-error-text");
        if (forbidden.test(tag)) problems.push(tag);
        for (const { name, value } of node.attributes) {
            if (name.startsWith("on")) problems.push(`${tag} ${name}`);
            const meter = !model && /^width: [\d.]+%;$/.test(value);
            if (name === "style" && !meter && node !== walk.root) problems.push(`${tag} style=${value}`);
            if (name.startsWith("data-") && !ours.includes(name)) problems.push(`${tag} ${name}`);
            if (addresses.includes(name) && !/^(https?:|mailto:|data:image\/png)/.test(value))
                problems.push(`${tag} ${name}=${value}`);
            if (name === "class" && !value.split(/\s+/).every((each) => each === "" || each.startsWith("yna")))
                problems.push(`${tag} class=${value}`);
            const own = name === "id" && /^yna-[a-z0-9]{6}-\d+$/.test(value); // nobody else can know these
            if (model && (name === "id" || name === "name") && !own) problems.push(`${tag} ${name}=${value}`);
        }
    }
    const formula = document.querySelector(".katex :is([href], [onclick], [style*=url], [data-commandlinker-command])");
    if (formula) problems.push(formula.outerHTML);
    const image = document.querySelector(".yna-markdown img");
    if (image) problems.push(`an image was loaded: ${image.src}`);
    return problems;
}"""


# The same for what other programs draw: the static transcript, ipywidgets, JupyterLab's own markdown, nbconvert.
INSPECT_OTHERS = r"""(selector) => {
    const problems = new Set();
    const forbidden = new Set(
        ("script iframe frame object embed form input button select textarea base meta link template audio video " +
            "dialog svg math plaintext xmp marquee foreignobject annotation-xml img").split(" "),
    );
    const address = /^(href|src|action|xlink:href|formaction|srcdoc|poster)$/;
    const style = /^(text-align: ?(left|right|center);?|white-space: ?pre-wrap;?)$/; // of tables, and of our own pre
    const roots = document.querySelectorAll(selector);
    if (!roots.length) problems.add(`nothing is ${selector}`);
    for (const root of roots) {
        for (const node of root.querySelectorAll("*")) {
            const tag = node.tagName.toLowerCase();
            if (node.closest("mjx-container")) { // made by MathJax
                if (node.matches("a, [href], [src], [onclick]")) problems.add(node.outerHTML);
                continue;
            }
            if (forbidden.has(tag) || tag.includes("-")) problems.add(tag);
            if (tag === "style" && !node.textContent.startsWith(".yna-static{")) problems.add(node.outerHTML);
            const { position } = getComputedStyle(node);
            if (position === "fixed" || position === "sticky") problems.add(`${tag} is ${position}`);
            for (const { name, value } of node.attributes) {
                if (name.startsWith("on") || name.startsWith("data-commandlinker")) problems.add(`${tag} ${name}`);
                if (name === "id" && !/^h[1-6]$/.test(tag)) problems.add(`${tag} id=${value}`);
                if (name === "style" && !style.test(value)) problems.add(`${tag} style=${value}`);
                if (address.test(name) && !/^(https?:|mailto:|#)/.test(value)) problems.add(`${tag} ${name}=${value}`);
            }
        }
    }
    return [...problems];
}"""

OPEN = "async path => { await window.jupyterapp.commands.execute('docmanager:open', { path }); }"


async def nothing_ran(page: Page) -> None:
    """Touch what a person may touch, and see that no payload came to life or hid the page."""
    await page.evaluate(
        """() => {
            for (const each of document.querySelectorAll(
                ":is(.yna-markdown, .yna-static, .jp-RenderedMarkdown, .widget-html) :is(a, summary)"
            ))
                each.dispatchEvent(new MouseEvent("mouseover", { bubbles: true }));
        }"""
    )
    assert await page.evaluate("() => window.pwned") is None
    assert await page.evaluate("() => document.body.checkVisibility()")
    assert await page.evaluate("() => document.elementFromPoint(2, 2).closest('.jp-OutputArea, .yna') === null")


@pytest.mark.timeout(240)
async def test_no_payload_runs_anywhere(open_notebook: OpenNotebook, browser: BrowserContext) -> None:
    notebook = await open_notebook(EVERYWHERE, PLAIN, FILES)
    widget = notebook.widget()
    page = notebook.page
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    await notebook.say("go")
    await widget.get_by_role("button", name="Allow once").click()
    await expect(widget.locator(".yna-call").last).to_have_attribute("data-status", "done")
    await expect(widget.locator(".yna-error").last).to_contain_text("window.pwned")
    await notebook.until_ready()
    await expect(widget.locator(".yna-said")).to_have_count(len(PAYLOADS) + 1, timeout=20_000)
    await page.evaluate(
        """() => document.querySelectorAll(".yna-call-row, .yna-thought > summary").forEach((each) => each.click())"""
    )
    await expect(widget.locator(".yna-section:not(details)").last).to_contain_text("window.pwned")
    assert await page.evaluate(INSPECT) == []
    await nothing_ran(page)

    await notebook.run_cell(1)
    await notebook.run_cell(2)
    await expect(notebook.cell(2).locator(".yna-static")).to_be_visible()
    for drawn in (".yna-static", ".widget-html-content", ".jp-OutputArea .jp-RenderedMarkdown"):
        assert await page.evaluate(INSPECT_OTHERS, drawn) == []
    await nothing_ran(page)
    frozen = (await notebook.save())["cells"][2]

    exported = Notebook(notebook.lab, page, "hostile")
    await page.evaluate(OPEN, "hostile.ipynb")
    cells = ".jp-NotebookPanel:not(.lm-mod-hidden) .jp-MarkdownCell .jp-RenderedMarkdown"
    await expect(page.locator(cells).first).to_be_visible()
    assert await page.evaluate(INSPECT_OTHERS, cells) == []
    await nothing_ran(page)
    assert [url for url in requests if not url.startswith((notebook.lab.url, "blob:", "data:"))] == []
    assert exported.problems == []
    await exported.wait_for_kernel()
    await exported.close()

    content = notebook.lab.read_notebook("hostile")
    content["cells"].append(frozen | {"outputs": frozen["outputs"][-1:]})
    await nothing_runs_after_nbconvert(content, browser)


async def nothing_runs_after_nbconvert(content: dict[str, Any], browser: BrowserContext) -> None:
    """Convert a notebook to HTML, and open it in a page that reaches nothing."""
    notebook = cast("Any", nbformat).reads(json.dumps(content), as_version=4)
    html = cast("str", cast("Any", HTMLExporter()).from_notebook_node(notebook)[0])
    address = "http://converted.test/"
    asked: list[str] = []

    async def serve(route: Route) -> None:
        if route.request.url == address:
            await route.fulfill(body=html, content_type="text/html; charset=utf-8")
        else:
            asked.append(route.request.url)
            await route.abort()

    page = await browser.new_page()
    await page.route("**/*", serve)
    await page.goto(address)
    for drawn in (".yna-static", ".jp-RenderedMarkdown"):
        assert await page.evaluate(INSPECT_OTHERS, drawn) == []
    await nothing_ran(page)
    assert [url for url in asked if "/require.js/" not in url and "/mathjax/" not in url] == []  # nbconvert's own
    await page.close()


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
