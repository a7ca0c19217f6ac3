"""One JupyterLab and one Chromium for all browser tests; a notebook and a kernel for each."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import pytest
import pytest_asyncio
from browser.lab import CHROMIUM_FLAGS, Lab, Notebook, find_chromium
from playwright.async_api import BrowserContext, Page, async_playwright

OpenNotebook = Callable[..., Awaitable[Notebook]]


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    lab = Lab(tmp_path_factory.mktemp("lab"))
    try:
        lab.wait()
        yield lab
    finally:
        lab.stop()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[BrowserContext]:
    """One context for all pages, so that JupyterLab comes from its cache."""
    path = find_chromium()
    if path is None:
        pytest.fail("No Chromium here: install it, or name it in the variable CHROMIUM.")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=list(CHROMIUM_FLAGS))
        yield await browser.new_context()
        await browser.close()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared_page(lab: Lab, browser: BrowserContext) -> Page:
    """JupyterLab, loaded once: most tests open their notebook in it."""
    page = await browser.new_page()
    await page.goto(f"{lab.url}/lab?token={lab.token}&reset")
    await page.wait_for_function("() => window.jupyterapp?.restored.then(() => true)")
    await page.evaluate("() => window.jupyterapp.shell.collapseLeft()")
    return page


@pytest_asyncio.fixture(loop_scope="session")
async def open_notebook(
    lab: Lab, browser: BrowserContext, shared_page: Page, request: pytest.FixtureRequest
) -> AsyncIterator[OpenNotebook]:
    """Writes a notebook, opens it and runs its first cell; at the end, its page had no error.

    With ``own_page`` it gets a page that may be loaded again.
    """
    opened: list[Notebook] = []

    async def open_notebook(*cells: str, own_page: bool = False, width: int = 1000, height: int = 900) -> Notebook:
        page = await browser.new_page() if own_page else shared_page
        page.set_default_timeout(20_000)
        await page.set_viewport_size({"width": width, "height": height})
        test = re.sub(r"\W+", "_", str(request.node.name))[:80]
        name = f"{test}_{len(opened)}"
        lab.write_notebook(name, cells)
        notebook = Notebook(lab, page, name)
        opened.append(notebook)
        await (notebook.open_alone() if own_page else notebook.open())
        await notebook.run_cell(0)
        return notebook

    yield open_notebook
    lab_ended_a_kernel = "Canceled future for"  # JupyterLab's own, about the kernel of an earlier test
    problems = [each for notebook in opened for each in notebook.problems if lab_ended_a_kernel not in each]
    for notebook in opened:
        await notebook.close()
        if notebook.page is not shared_page:
            await notebook.page.close()
    assert problems == []
