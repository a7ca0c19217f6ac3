"""A JupyterLab on loopback, which serves Notebook 7 and Voilà too, and a headless Chromium that looks at it."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from playwright.async_api import Dialog, Error, Locator, Page, WebSocket, expect

ROOT = Path(__file__).parents[2]

CHROMIUM_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

START_SECONDS = 60


def find_chromium() -> str | None:
    """The path of Chromium: the variable CHROMIUM, else what is installed."""
    named = os.environ.get("CHROMIUM")
    return named or next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class Lab:
    """A JupyterLab server in a folder of its own. Close it by ``stop``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.notebooks = folder / "notebooks"
        self.notebooks.mkdir()
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self.token = secrets.token_hex(16)
        settings = folder / "settings" / "@jupyterlab" / "apputils-extension"
        settings.mkdir(parents=True)
        (settings / "notification.jupyterlab-settings").write_text('{"fetchNews": "false", "checkForUpdates": false}')
        self._log = (folder / "lab.log").open("wb")
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1"),
                *(f"--port={self.port}", "--ServerApp.port_retries=0", f"--IdentityProvider.token={self.token}"),
                *(f"--ServerApp.root_dir={self.notebooks}", "--LabApp.expose_app_in_browser=True"),
                "--LabApp.extension_manager=readonly",
                *("--JupyterNotebookApp.expose_app_in_browser=True", "--VoilaConfiguration.allow_theme_override=YES"),
            ],
            stdout=self._log,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            cwd=self.notebooks,
            env={
                **{name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")},
                "PYTHONPATH": str(ROOT),
                "PYTHONDONTWRITEBYTECODE": "1",
                "JUPYTER_CONFIG_DIR": str(folder / "config"),
                "JUPYTER_DATA_DIR": str(folder / "data"),
                "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
                "JUPYTERLAB_SETTINGS_DIR": str(folder / "settings"),
                "JUPYTERLAB_WORKSPACES_DIR": str(folder / "workspaces"),
                "IPYTHONDIR": str(folder / "ipython"),
                "PYDEVD_DISABLE_FILE_VALIDATION": "1",
            },
        )

    @property
    def url(self) -> str:
        """The server's address."""
        return f"http://127.0.0.1:{self.port}"

    def wait(self) -> None:
        """Wait until the server answers."""
        end = time.monotonic() + START_SECONDS
        while True:
            try:
                with urllib.request.urlopen(f"{self.url}/api?token={self.token}", timeout=5):  # noqa: S310 - loopback
                    return
            except (urllib.error.URLError, TimeoutError):
                if self._process.poll() is not None or time.monotonic() > end:
                    raise RuntimeError(f"JupyterLab did not start:\n{self.log()}") from None
                time.sleep(0.1)

    def log(self) -> str:
        """What the server wrote."""
        return (self.folder / "lab.log").read_text(errors="replace")

    def stop(self) -> None:
        """End the server and its kernels."""
        self._process.terminate()
        try:
            self._process.wait(15)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()

    def write_notebook(self, name: str, cells: Sequence[str]) -> None:
        """Write a notebook with these code cells."""
        content: dict[str, Any] = {
            "cells": [
                {
                    "cell_type": "code",
                    "id": f"cell{index}",
                    "metadata": {},
                    "source": cell,
                    "outputs": [],
                    "execution_count": None,
                }
                for index, cell in enumerate(cells)
            ],
            "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
            "nbformat": 4,
            "nbformat_minor": 5,
        }
        (self.notebooks / f"{name}.ipynb").write_text(json.dumps(content), encoding="utf-8")

    def read_notebook(self, name: str) -> dict[str, Any]:
        """A notebook as it was saved."""
        return json.loads((self.notebooks / f"{name}.ipynb").read_text(encoding="utf-8"))


KEEP_WIDGETS = """async (keep) => {
    const { commands } = window.jupyterapp;
    const name = "@jupyter-widgets/jupyterlab-manager:saveWidgetState";
    if (!commands.hasCommand(name) || commands.isToggled(name) === keep) return;
    await commands.execute(name);
    while (commands.isToggled(name) !== keep) await new Promise(requestAnimationFrame);
}"""


class Notebook:
    """A notebook that is open in a page.

    ``problems`` lists errors and dialogs of the page, ``received`` counts bytes from the kernel.
    """

    def __init__(self, lab: Lab, page: Page, name: str) -> None:
        self.lab = lab
        self.page = page
        self.name = name
        self.problems: list[str] = []
        self.received = 0
        page.on("websocket", self._on_websocket)
        page.on("pageerror", self._on_error)
        page.on("dialog", self._on_dialog)

    def _on_websocket(self, socket: WebSocket) -> None:
        socket.on("framereceived", self._on_frame)

    def _on_frame(self, payload: str | bytes) -> None:
        self.received += len(payload.encode() if isinstance(payload, str) else payload)

    def _on_error(self, error: Error) -> None:
        self.problems.append(str(error))

    async def _on_dialog(self, dialog: Dialog) -> None:
        self.problems.append(f"a dialog opened: {dialog.message}")
        await dialog.dismiss()

    async def open_as_app(self, theme: str = "light") -> None:
        """Let Voilà run the whole notebook in a kernel of this page's own, and wait for its first widget."""
        await self.page.goto(f"{self.lab.url}/voila/render/{self.name}.ipynb?token={self.lab.token}&theme={theme}")
        await self.widget().wait_for()

    async def open(self) -> None:
        """Open the notebook in the JupyterLab of the page and wait for its kernel."""
        await self.page.evaluate(
            "async path => { await window.jupyterapp.commands.execute('docmanager:open', {path}); }",
            f"{self.name}.ipynb",
        )
        await self.wait_for_kernel()

    async def open_alone(self, place: str = "doc/tree") -> None:
        """Load a page with this notebook alone and wait for its kernel.

        Args:
            place: ``doc/tree`` is JupyterLab, ``notebooks`` is Notebook 7.
        """
        await self.page.goto(f"{self.lab.url}/{place}/{self.name}.ipynb?token={self.lab.token}")
        await self.wait_for_kernel()

    async def reload(self) -> None:
        """Load the page again; the kernel goes on."""
        await self.page.reload()
        await self.wait_for_kernel()

    async def close(self) -> None:
        """End the kernel and close the notebook without saving it."""
        self.page.remove_listener("websocket", self._on_websocket)
        self.page.remove_listener("pageerror", self._on_error)
        self.page.remove_listener("dialog", self._on_dialog)
        await self.page.evaluate(
            """async () => {
                const panel = window.jupyterapp.shell.currentWidget;
                await panel.sessionContext.shutdown();
                panel.context.model.dirty = false;
                panel.close();
            }"""
        )

    async def wait_for_kernel(self) -> None:
        """Wait until the kernel is idle."""
        await self.page.wait_for_function(
            """path => {
                const panel = window.jupyterapp?.shell.currentWidget;
                return panel?.context?.path === path && panel.sessionContext.session?.kernel?.status === "idle";
            }""",
            arg=f"{self.name}.ipynb",
        )

    async def command(self, name: str) -> None:
        """Run a command of JupyterLab and wait for its end."""
        await self.page.evaluate("async name => { await window.jupyterapp.commands.execute(name); }", name)

    async def set_theme(self, theme: str) -> None:
        """Change JupyterLab's theme: ``JupyterLab Light`` or ``JupyterLab Dark``."""
        await self.page.evaluate(
            "async theme => { await window.jupyterapp.commands.execute('apputils:change-theme', {theme}); }", theme
        )
        await self.page.locator(f'body[data-jp-theme-name="{theme}"]').wait_for(state="attached")
        await self.page.locator("#jupyterlab-splash").wait_for(state="detached")

    async def run_cell(self, index: int) -> None:
        """Run one cell and wait for its end."""
        await self.page.evaluate(
            """async index => {
                window.jupyterapp.shell.currentWidget.content.activeCellIndex = index;
                await window.jupyterapp.commands.execute("notebook:run-cell");
            }""",
            index,
        )
        errors = self.cell(index).locator('[data-mime-type="application/vnd.jupyter.stderr"], .jp-RenderedText')
        for error in await errors.all_inner_texts():
            assert "Traceback" not in error, error

    async def save(self, *, with_widgets: bool = False) -> dict[str, Any]:
        """Save the notebook, with the states of its widgets or without, and read its file."""
        await self._keep_widgets(keep=with_widgets)
        await self.command("docmanager:save")
        await self._keep_widgets(keep=False)
        return self.lab.read_notebook(self.name)

    async def _keep_widgets(self, *, keep: bool) -> None:
        """Set what is a setting of JupyterLab, for all its pages; its command only turns it over."""
        await self.page.evaluate(KEEP_WIDGETS, keep)

    def cell(self, index: int) -> Locator:
        """A code cell."""
        return self.page.locator(".jp-NotebookPanel:not(.lm-mod-hidden) .jp-CodeCell").nth(index)

    def widget(self, index: int = 0) -> Locator:
        """An agent's widget."""
        return self.page.locator(".yna").nth(index)

    def composer(self, index: int = 0) -> Locator:
        """Where one writes to an agent."""
        return self.widget(index).get_by_label("Message to the agent")

    async def say(self, text: str, index: int = 0, key: str = "Enter") -> None:
        """Type into a widget's composer, press a key, and wait until it was taken."""
        await self.composer(index).fill(text)
        await self.composer(index).press(key)
        await expect(self.composer(index)).to_have_value("")

    async def until_ready(self, index: int = 0) -> None:
        """Wait until the agent is idle and the page knows it."""
        await expect(self.widget(index).locator(".yna-status")).to_have_text("Ready")
