"""A key, however it is given, is nowhere in what a kernel says, logs or shows."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from backends.hostile_server import HostileServer
from backends.test_keys import leaks, make_keys
from kernels.kernel import Kernel, start_kernel

pytestmark = pytest.mark.requirement("Y FR-002", "Y US-005")

SETUP = """
import json, logging, os
logging.basicConfig(level=logging.DEBUG, filename={log!r})
%load_ext yiemagent_nb
%xmode Verbose
os.environ["YIEMAGENT_BACKEND"] = "demo"
from yiemagent_nb import Agent, AgentWidget, Demo, OpenAICompatible, save_conversation
from yiemagent_nb.core.messages import UserMessage
from yiemagent_nb.sessions.export import conversation_file, export_markdown, export_notebook
with open({keys!r}) as file:
    keys = json.load(file)
os.environ["KEY_OF_THE_TEST"] = keys["api_key_env"]
agent = Agent(Demo())
widget = AgentWidget(agent)
print(widget.model_id)
"""

EXPORT = """
said = [*agent.messages, UserMessage(f"odd: {{keys['odd']}} and {{keys['api_key_env']}}")]
print(export_markdown(said, keys["odd"]), export_notebook(said, keys["odd"]))
print(conversation_file(said, "markdown", keys["odd"]), conversation_file(said, "notebook", keys["odd"]))
save_conversation(said, {stem!r} + ".md", title=keys["odd"])
save_conversation(said, {stem!r} + ".ipynb", title=keys["odd"])
del said
"""


async def test_a_key_is_nowhere_in_what_a_kernel_says_and_logs(tmp_path: Path) -> None:
    keys = {name: key for name, key in make_keys().items() if name in {"api_key", "api_key_env", "httpx key", "odd"}}
    typed, asked = keys["odd"], keys["httpx key"]
    (tmp_path / "keys.json").write_text(json.dumps(keys))
    async with HostileServer() as server, start_kernel(tmp_path / "kernel.txt", debug=True) as kernel:

        def at(way: str) -> str:
            return f"http://{server.address}/{way}/v1"

        setup = SETUP.format(log=str(tmp_path / "log.txt"), keys=str(tmp_path / "keys.json"))
        cells = [await kernel.must(setup)]
        model_id = cells[0].text.split()[-1]
        kernel.say_as_page(model_id, {"type": "hello", "last_seq": 0})
        # Typed in the page: at a server that lists the key as a model, and at one that refuses and repeats it.
        for ticket, way in (("added", "stream-named"), ("refused", "401-headers")):
            message = {"type": "add_backend", "ticket": ticket, "base_url": at(way), "model": "m"}
            kernel.say_as_page(model_id, message, buffers=[typed.encode()])
            await kernel.listen(lambda ticket=ticket: f'"ticket": "{ticket}"' in _told(kernel))
        assert '"type": "accepted", "ticket": "added"' in _told(kernel)
        assert '"type": "refused", "ticket": "refused"' in _told(kernel)
        cells.append(await kernel.must("assert agent.backend_label != 'demo'\nawait agent.prompt('hello')"))
        # In the environment, asked for, and in code.
        cells.append(await kernel.run(f"%agent_backend {at('stream-late-error')} m --key-env KEY_OF_THE_TEST"))
        cells.append(await kernel.run("%%agent\nhello"))
        for way in ("stream-named", "401-headers"):
            run = kernel.run(f"%agent_backend {at(way)} m --ask-key")
            cell, _ = await asyncio.gather(run, kernel.type(asked))
            cells += [cell, await kernel.run("await agent.prompt('hello')")]
        # A person who writes a key into the conversation, or its title, has it in no file.
        cells.append(await kernel.must(EXPORT.format(stem=str(tmp_path / "saved"))))
        code = f"coded = OpenAICompatible({at('401-headers')!r}, 'm', api_key=keys['api_key'])"
        cells.append(await kernel.must(f"{code}\ndel keys"))
        cells.append(await kernel.run("%agent_backend coded --check"))
        cells.append(await kernel.run("%agent_backend --check"))
        cells.append(await kernel.run("await coded.models()"))
        cells.append(await kernel.run("1 / 0"))
        cells.append(await kernel.run("display(agent, agent.llm_call, agent.state, agent.messages, widget, coded)"))
        cells.append(await kernel.must("print(widget.get_state(), vars(widget))"))
        heard = [said for way in server.heard.values() for said in way]
    told = "\n".join(map(str, [*kernel.received, *(message for cell in cells for message in cell.messages)]))
    (tmp_path / "told.txt").write_text(told)
    assert {name for name, key in keys.items() if key not in "\n".join(heard)} == set()
    assert told.count("[key]") > 10
    assert "add_backend" in (tmp_path / "kernel.txt").read_text("utf-8")
    found = [
        f"{name} {leak}"
        for name in ("told.txt", "kernel.txt", "log.txt", "saved.md", "saved.ipynb")
        for leak in leaks((tmp_path / name).read_text("utf-8"), keys)
    ]
    assert not found, "\n".join(found[:40])


def _told(kernel: Kernel) -> str:
    return json.dumps(kernel.received)
