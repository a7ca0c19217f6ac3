"""``%agent_tools`` and ``%agent_trace`` in a real kernel."""

from __future__ import annotations

from typing import Any

import pytest
import pytest_asyncio
from kernels.kernel import Kernel, start_kernel

pytestmark = pytest.mark.asyncio(loop_scope="module")

SETUP = r"""
%reload_ext yiemagent_nb
from yiemagent_nb import Agent, McpServer, Scripted, ToolAnnotations, tool
@tool(annotations=ToolAnnotations(read_only=True))
def read_tide(port: str) -> str:
    '''Tell the tide.

    Args:
        port: Which port.
    '''
    return "high"
@tool
def sink(ship: str = "all") -> str:
    '''Sink.\x1b[2J'''
    return "sunk"
def down(*_):
    raise OSError("no such harbour")
def answers():
    return [{"tool_calls": [{"id": "c1", "name": "read_tide", "arguments": {"port": "Lisbon"}}]}, "It is high."]
agent = Agent(Scripted(answers()), tools=[read_tide, sink], mcp_servers=[McpServer(down, name="harbour")])
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


async def test_tools_are_listed_by_their_source_with_what_they_say_of_themselves(kernel: Kernel) -> None:
    await kernel.must("await agent.prompt('is it high?')")
    shown = (await kernel.must("%agent_tools")).text
    assert shown.startswith("3 tools")
    assert "read_tide  Tell the tide. [read-only by its own word]" in shown
    assert "\x1b" not in shown
    assert "harbour (" in shown
    assert "no such harbour" in shown
    found = (await kernel.must("%agent_tools tide")).text
    assert "read_tide" in found
    assert "sink" not in found
    assert "2 others do not match" in found


async def test_a_tool_is_shown_whole_and_switched_off_and_on(kernel: Kernel) -> None:
    sheet = (await kernel.must("%agent_tools read_tide")).text
    assert "port (string, required): Which port." in sheet
    assert '"type": "object"' in sheet
    assert "off sink" in (await kernel.must("%agent_tools --off s*")).text
    await kernel.must("assert 'sink' not in agent.tools and 'sink' in agent.registered_tools")
    assert "off" not in (await kernel.must("%agent_tools --on sink")).text
    wrong = await kernel.run("%agent_tools --off nothing")
    assert "No tool matches 'nothing'" in wrong.text + wrong.error


async def test_a_trace_is_shown_from_the_first_use_on_and_its_rows_become_code(kernel: Kernel, tmp_path: Any) -> None:
    assert "From now on it is" in (await kernel.must("%agent_trace")).text
    await kernel.must(f"import os; os.chdir({str(tmp_path)!r})")
    await kernel.must("await agent.prompt('is it high?')")
    shown = (await kernel.must("%agent_trace")).text
    assert "read_tide" in shown
    assert "is it high?" in shown
    number = next(line.split()[0] for line in shown.splitlines() if " model " in line)
    assert "is it high?" in (await kernel.must(f"%agent_trace --python {number}")).text
    no_http = await kernel.run(f"%agent_trace --curl {number}")
    assert "HTTP" in no_http.text + no_http.error
    written = (await kernel.must(f"%agent_trace --test {number} --to tests/test_tide.py")).text
    assert "tests/test_tide.py" in written
    assert (tmp_path / "tests" / "test_tide.py").exists()
    missing = await kernel.run("%agent_trace --python 99")
    assert "99" in missing.text + missing.error
    assert "Nothing was recorded" in (await kernel.must("%agent_trace --clear")).text


async def test_the_panels_are_shown_by_their_magics(kernel: Kernel) -> None:
    for magic in ("%agent_tools --panel", "%agent_trace --panel"):
        shown = await kernel.must(magic)
        data = [message["content"]["data"] for message in shown.messages if "data" in message["content"]]
        assert any("application/vnd.jupyter.widget-view+json" in each for each in data)
