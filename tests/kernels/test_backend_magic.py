"""``%agent_backend`` in a real kernel."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest
import pytest_asyncio
from backends.web import Web, json_page, serving
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from kernels.kernel import Kernel, start_kernel

from yiemagent_nb.backends.demo import Demo
from yiemagent_nb.magics import load, unload

pytestmark = pytest.mark.asyncio(loop_scope="module")

KEY = "sk-a-marked-key-0123456789"
MODELS = {"data": [{"id": name, "owned_by": "vllm", "max_model_len": 8192} for name in ("small", "qwen3:8b")]}
PAGES = {"/v1/models": json_page(MODELS)}

SETUP = """
%reload_ext yiemagent_nb
import os
os.environ.pop("KEY_OF_THE_TEST", None)
os.environ["YIEMAGENT_BACKEND"] = "demo"
from yiemagent_nb import Agent, Demo, OpenAICompatible
def my_model(messages):
    return "mine"
agent = Agent(my_model)
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def started() -> Any:
    """One kernel for all tests: to start one takes longer than any of them."""
    async with start_kernel() as kernel:
        yield kernel


@pytest_asyncio.fixture(loop_scope="module")
async def kernel(started: Kernel) -> Kernel:
    await started.must("%reset -f")
    await started.must(SETUP)
    return started


@pytest_asyncio.fixture(loop_scope="module")
async def server() -> Any:
    async with serving(PAGES, key=KEY) as web:
        yield web


async def test_it_shows_the_backend_its_state_and_what_else_could_answer(kernel: Kernel) -> None:
    shown = await kernel.must("other = Demo()\n%agent_backend")
    assert shown.text.splitlines()[0] == "my_model (not asked yet)"
    assert "%agent_backend --check asks it" in shown.text
    assert "demo   Demo (built-in script)" in shown.text
    assert "other  Demo (built-in script), in a variable" in shown.text
    checked = await kernel.must("%agent_backend --check")
    assert "it cannot be asked how it is" in checked.text


async def test_it_switches_by_name_by_variable_and_by_path(kernel: Kernel) -> None:
    shown = await kernel.must("%agent_backend demo")
    assert shown.text.splitlines()[0] == "Demo (built-in script): demo (ready)"
    await kernel.must("async def ask(messages, *, model=None): return model.id")
    await kernel.must("%agent_backend ask large\nassert (await agent.prompt('hi')).text == 'large'")
    await kernel.must("%agent_backend openrouter some/model\nassert agent.backend_label == 'openrouter: some/model'")
    gone = await kernel.run("%agent_backend local 'no such file.gguf'")
    assert "'no such file.gguf' does not exist" in gone.text + gone.error
    await kernel.must("assert agent.backend_label == 'openrouter: some/model'")


async def test_an_address_is_recognised_and_given_the_key_of_a_variable(kernel: Kernel, server: Web) -> None:
    await kernel.must(f"os.environ['KEY_OF_THE_TEST'] = {KEY!r}")
    shown = await kernel.must(f"%agent_backend {server.url()} --key-env KEY_OF_THE_TEST")
    assert shown.text.splitlines()[0] == f"vLLM at 127.0.0.1:{server.port}: small (ready)"
    assert "small, qwen3:8b" in shown.text
    refused = await kernel.must(f"%agent_backend {server.url()}")
    assert "(not usable)" in refused.text
    assert "key" in refused.text


async def test_a_key_is_asked_for_and_stands_in_no_message(kernel: Kernel, server: Web) -> None:
    cell, asked = await asyncio.gather(kernel.run(f"%agent_backend {server.url()} --ask-key"), kernel.type(KEY))
    assert asked == {"prompt": f"Key for {server.url()}: ", "password": True}
    assert "(ready)" in cell.text
    assert KEY not in str(cell.messages)
    assert any(f"Bearer {KEY}" in head for head in server.heads)


async def test_a_line_within_a_cell_lets_the_kernel_go_on_and_a_call_of_the_magic_works_too(kernel: Kernel) -> None:
    await kernel.must(
        """
import asyncio
from types import SimpleNamespace
class Slow:
    gate = asyncio.Event()
    async def __call__(self, messages):
        return "slow"
    async def health(self):
        await self.gate.wait()
        return SimpleNamespace(ok=True, message="It is slow.")
slow = Slow()
if True:
    asyncio.get_running_loop().call_soon(slow.gate.set)
%agent_backend slow
assert slow.gate.is_set()
text = '''
%agent_backend demo
'''
"""
    )
    await kernel.must("assert text == '\\n%agent_backend demo\\n' and agent.llm_call is slow")
    shown = await kernel.must("get_ipython().run_line_magic('agent_backend', 'demo')")
    assert "Demo (built-in script): demo (ready)" in shown.text


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("nobody", "nobody is no backend: it is no variable with one, and none of openai, openrouter, lm_studio"),
        ("my_model a b", "takes NAME [MODEL]"),
        ("my_model --key-env X", "takes no key here"),
        ("local", "Give the path of a GGUF file"),
        ("--ask-key", "Name the backend that the key is for"),
        ("demo large", "it takes no model"),
        ("http://", "no web address"),
        ("openai --key-env NAME --ask-key", "not both"),
        ("--unknown", "unrecognized arguments"),
    ],
)
async def test_what_is_not_understood_is_refused_in_a_sentence(line: str, words: str) -> None:
    shell: Any = InteractiveShell()
    load(shell)
    try:
        shell.user_ns["my_model"] = Demo()
        with pytest.raises(UsageError, match=re.escape(words)):
            shell.run_line_magic("agent_backend", line)
    finally:
        unload(shell)


async def test_completion_knows_names_variables_options_files_and_models(kernel: Kernel, server: Web) -> None:
    assert "%agent_backend" in await kernel.complete("%agent_b")
    names = await kernel.complete("%agent_backend ")
    assert {f"%agent_backend {name}" for name in ("openai", "lm_studio", "local", "my_model", "demo")} <= {*names}
    assert await kernel.complete("x = 1\n%agent_backend lm") == ["x = 1\n%agent_backend lm_studio"]
    assert "%agent_backend openai gpt-5.4" in await kernel.complete("%agent_backend openai gpt-5")
    assert await kernel.complete("%agent_backend demo --ch") == ["%agent_backend demo --check"]
    await kernel.must(f"os.environ['KEY_OF_THE_TEST'] = {KEY!r}")
    assert await kernel.complete("%agent_backend openai --key-env KEY_O") == [
        "%agent_backend openai --key-env KEY_OF_THE_TEST"
    ]
    await kernel.must(f"served = OpenAICompatible({server.url()!r}, api_key=os.environ['KEY_OF_THE_TEST'])")
    assert await kernel.complete("%agent_backend served qwen3:8") == ["%agent_backend served qwen3:8b"]
    await kernel.must("import pathlib; pathlib.Path('model.gguf').write_text('x'); pathlib.Path('other.txt').touch()")
    try:
        assert await kernel.complete("%agent_backend local model.g") == ["%agent_backend local model.gguf"]
    finally:
        await kernel.must("pathlib.Path('model.gguf').unlink(); pathlib.Path('other.txt').unlink()")


async def test_a_server_elsewhere_is_not_asked_for_a_tab(kernel: Kernel) -> None:
    await kernel.must(
        """
import httpx2
asked = []
def answer(request):
    asked.append(request)
    return httpx2.Response(200, json={"data": [{"id": "far"}]})
client = httpx2.AsyncClient(transport=httpx2.MockTransport(answer))
far = OpenAICompatible("http://far.example/v1", http_client=client)
"""
    )
    assert "%agent_backend far far" not in await kernel.complete("%agent_backend far f")
    await kernel.must("assert asked == []\n%agent_backend far\nassert asked")
    assert await kernel.complete("%agent_backend far f") == ["%agent_backend far far"]


async def test_unloading_takes_the_magic_and_its_completion_back(kernel: Kernel) -> None:
    await kernel.must("%unload_ext yiemagent_nb")
    gone = await kernel.run("%agent_backend demo")
    assert "not found" in gone.text + gone.error
    assert "%agent_backend demo" not in await kernel.complete("%agent_backend de")
    await kernel.must("%reload_ext yiemagent_nb\n%agent_backend demo")
