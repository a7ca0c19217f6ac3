"""No key is in anything that a process writes."""

from __future__ import annotations

import asyncio
import base64
import html
import json
import os
import pickle
import random
import string
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import nbformat
import pytest
from backends.hostile_server import WAYS, HostileServer
from backends.real_server import weights
from nbclient import NotebookClient

from yiemagent_nb.backends.openai_compatible import OpenAICompatible
from yiemagent_nb.core.errors import InvalidParametersError

pytestmark = pytest.mark.requirement("Y FR-002", "Y US-005")

PIECE = 12
"""So many characters of a key may be nowhere."""
GIVERS = (
    *("api_key", "SecretStr", "api_key_env", "Authorization", "api-key", "X-API-Key", "Cookie", "base_url"),
    *("escaped base_url", "line break", "illegal", "httpx2 headers", "httpx auth", "httpx key", "extra_body"),
    *("argument", "variable", "options", "discovered", "malformed"),
)


def make_keys() -> dict[str, str]:
    """A key for each way to give one, random, so that no piece of it stands anywhere by chance."""
    dice = random.Random(7)  # noqa: S311 - no secret
    keys = {giver: "".join(dice.choices(string.ascii_letters + string.digits, k=44)) for giver in GIVERS}
    return {**keys, "odd": "sk-" + "".join(dice.choices(string.ascii_letters + "/+=&<>%'\"\\$", k=60))}


def forms_of(key: str) -> Iterator[str]:
    """A key as it is, and as URLs, pages, JSON, Python and base64 show it."""
    in_json = json.dumps(key)[1:-1]
    yield from (key, quote(key, safe=""), quote(key), html.escape(key), repr(key)[1:-1])
    yield from (in_json, json.dumps(in_json)[1:-1], in_json.replace("/", "\\/"))
    for before in range(3):
        encoded = base64.b64encode(b"." * before + key.encode()).decode()[4:-4]
        yield from (encoded, encoded.replace("+", "-").replace("/", "_"))


def leaks(text: str, keys: Mapping[str, str]) -> list[str]:
    """Where a piece of a key stands in a text, and which."""
    pieces = {
        form[at : at + PIECE]: giver
        for giver, key in keys.items()
        for form in forms_of(key)
        for at in range(len(form) - PIECE + 1)
    }
    found: list[str] = []
    title = ""
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("--- "):
            title = line
        for at in range(len(line) - PIECE + 1):
            if giver := pieces.get(line[at : at + PIECE]):
                found.append(f"{number}: {title}: the key of {giver!r} in {line[max(0, at - 150) : at + 60]}")
                break
    return found


def with_cells(*sources: str) -> dict[str, Any]:
    blank: dict[str, Any] = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    cells = [{**blank, "id": f"cell{index}", "source": source} for index, source in enumerate(sources)]
    return {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


async def test_no_key_is_in_anything_that_a_process_writes(tmp_path: Path) -> None:
    keys = make_keys()
    written = tmp_path / "written"
    written.mkdir()
    own_keys = tmp_path / "own_keys.json"
    tests = Path(__file__).parents[1]
    async with HostileServer() as server:
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-X", "dev", "-m", "backends.keys_program", str(written)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": f"{tests}{os.pathsep}{tests.parent}"},
        )
        told = {"keys": keys, "server": server.address, "weights": str(weights()), "own_keys": str(own_keys)}
        out, err = await child.communicate(json.dumps(told).encode())
    assert child.returncode == 0, err.decode()[-3000:]
    keys |= json.loads(own_keys.read_text())
    (written / "stdout.txt").write_bytes(out)
    (written / "stderr.txt").write_bytes(err)
    heard = "\n".join(said for way in WAYS for said in server.heard[way])
    assert {giver for giver in GIVERS if keys[giver] not in heard} == {"illegal", "options", "malformed"}
    assert keys["odd"] in heard
    assert {path.name for path in written.iterdir()} >= {"seen.txt", "log.txt", "events.jsonl"}
    assert (written / "seen.txt").read_text("utf-8").count("[key]") > 1000
    found = [f"{path.name} {leak}" for path in written.iterdir() for leak in leaks(path.read_text("utf-8"), keys)]
    assert not found, f"{len(found)} leaks\n" + "\n".join(found[:40])


def test_a_backend_cannot_be_pickled() -> None:
    with pytest.raises(InvalidParametersError, match="would hold its key"):
        pickle.dumps(OpenAICompatible("http://localhost:1/v1", "m", api_key="some-key-1234567890"))


SETUP = """
import json, logging, sys
logging.basicConfig(level=logging.DEBUG, filename="log.txt")
from yiemagent_nb import Agent, AgentWidget, OpenAICompatible
keys, server = json.load(open("../told.json")).values()
backends = [
    OpenAICompatible(f"http://{server}/401-headers/v1", "m", api_key=keys["api_key"]),
    OpenAICompatible(f"http://someone:{keys['base_url']}@{server}/stream-named/v1"),
    OpenAICompatible(f"http://{server}/stream-late-error/v1", "m", headers={"x-api-key": keys["X-API-Key"]}),
]
agents = [Agent(backend) for backend in backends]
del keys
%xmode Verbose
backends
"""
CELLS = (
    "AgentWidget(agents[0])",
    "AgentWidget(agents[1])",
    "AgentWidget(agents[2])",
    "for agent in agents:\n    display(agent, await agent.prompt('hello'), agent.state)",
    "await backends[0].models()",
    "async for piece in backends[2]([{'role': 'user', 'content': 'hello'}]):\n    display(piece)",
    "display(*[await backend.health() for backend in backends])",
    "%load_ext yiemagent_nb\nagent = agents[0]",
    "%agent",
    "%%agent\nhello",
)


async def test_no_key_is_in_a_saved_notebook_with_widgets_and_verbose_tracebacks(tmp_path: Path) -> None:
    keys = make_keys()
    folder = tmp_path / "notebook"
    folder.mkdir()
    async with HostileServer() as server:
        (tmp_path / "told.json").write_text(json.dumps({"keys": keys, "server": server.address}))
        notebook = cast("Any", nbformat).from_dict(with_cells(SETUP, *CELLS))
        client = NotebookClient(notebook, timeout=60, kernel_name="python3", store_widget_state=True, allow_errors=True)
        await client.async_execute(cwd=str(folder))
        cast("Any", nbformat).write(notebook, folder / "saved.ipynb")
    saved = (folder / "saved.ipynb").read_text("utf-8")
    assert server.heard["401-headers"][0] == keys["api_key"]
    assert saved.count("[key]") > 10
    assert [cell.outputs[-1].ename for cell in notebook.cells if cell.outputs and "ename" in cell.outputs[-1]] == [
        "AuthenticationError",
        "ServerError",
    ]
    found = [leak for name in ("saved.ipynb", "log.txt") for leak in leaks((folder / name).read_text("utf-8"), keys)]
    assert not found, "\n".join(found[:40])
