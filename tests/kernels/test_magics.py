"""``%load_ext yiemagent_nb``, ``%agent`` and ``%%agent`` in a real kernel."""

from __future__ import annotations

from typing import Any

import pytest
from kernels.kernel import Kernel, start_kernel

SETUP = """
%load_ext yiemagent_nb
from yiemagent_nb import Agent, Demo, tool

@tool
def add(a: int, b: int) -> int:
    "Add two numbers."
    return a + b

agent = Agent(Demo(delay=0), tools=[add])
"""

HANGING = """
import asyncio
async def never(messages):
    print("started", flush=True)
    await asyncio.Event().wait()
agent.set_llm_call(never)
"""


def started(message: dict[str, Any]) -> bool:
    return message["msg_type"] == "stream" and "started" in message["content"]["text"]


@pytest.fixture
async def kernel() -> Any:
    async with start_kernel() as kernel:
        await kernel.must(SETUP)
        yield kernel


async def test_a_cell_of_percent_percent_agent_shows_the_answer_and_the_call(kernel: Kernel) -> None:
    cell = await kernel.must("%%agent\nadd 17 and 25\n")
    last = cell.of("update_display_data")[-1]["data"]
    assert "42" in last["text/plain"]
    assert "add(" in last["text/plain"]
    assert "<script" not in last["text/html"]


async def test_the_body_of_the_cell_is_not_expanded_but_the_line_is(kernel: Kernel) -> None:
    await kernel.must("which = 'other'; other = Agent(lambda messages: messages[-1]['content'])")
    cell = await kernel.must("%%agent --use {which}\nsay {which} and $which\n")
    assert "say {which} and $which" in cell.of("update_display_data")[-1]["data"]["text/plain"]


async def test_a_line_of_percent_agent_asks_and_without_a_question_shows_the_state(kernel: Kernel) -> None:
    asked = await kernel.must("%agent add 1 and 2")
    assert "3" in asked.of("update_display_data")[-1]["data"]["text/plain"]
    shown = await kernel.must("%agent")
    assert "<Agent demo" in shown.text
    await kernel.must("%agent --reset")
    assert (await kernel.must("print(len(agent.messages))")).text.strip() == "0"


async def test_an_agent_is_made_where_there_is_none(kernel: Kernel) -> None:
    await kernel.must("del agent\nimport os; os.environ['YIEMAGENT_BACKEND'] = 'demo'")
    cell = await kernel.must("%%agent\nhello\n")
    assert cell.of("update_display_data")
    await kernel.must("assert len(agent.messages) == 2")


async def test_an_unknown_variable_is_refused_with_its_name(kernel: Kernel) -> None:
    cell = await kernel.run("%%agent --use nobody\nhello\n")
    assert "nobody holds no agent" in cell.text + cell.error


async def test_help_and_completion_know_the_magic(kernel: Kernel) -> None:
    cell = await kernel.must("print('%%agent' in get_ipython().complete('%%age')[1])")
    assert "True" in cell.text


async def test_unloading_takes_everything_back_and_reloading_works(kernel: Kernel) -> None:
    await kernel.must(
        "import signal\nbefore = signal.set_wakeup_fd(-1)\nsignal.set_wakeup_fd(before)\nassert before != -1"
    )
    await kernel.must("%unload_ext yiemagent_nb")
    await kernel.must("after = signal.set_wakeup_fd(-1); signal.set_wakeup_fd(after); assert after != before")
    gone = await kernel.run("%%agent\nhello\n")
    assert "not found" in gone.text + gone.error
    await kernel.must("%load_ext yiemagent_nb\n%reload_ext yiemagent_nb")
    await kernel.must("%%agent\nhello\n")


async def test_an_interrupt_ends_an_awaiting_cell_at_once_and_leaves_the_agent_usable(kernel: Kernel) -> None:
    await kernel.must(HANGING)
    cell = await kernel.run("await agent.prompt('x')", when=started)
    assert cell.status == "error"
    assert cell.seconds < 3
    await kernel.must("assert agent.messages[-1].stop_reason == 'aborted' and not agent.is_running")
    await kernel.must("agent.set_llm_call(Demo(delay=0))\nassert '5' in (await agent.prompt('add 2 and 3')).text")


async def test_ask_works_in_a_cell_and_an_interrupt_ends_it(kernel: Kernel) -> None:
    cell = await kernel.must("print(agent.ask('add 2 and 3').text)")
    assert "5" in cell.text
    await kernel.must(HANGING)
    stopped = await kernel.run("agent.ask('x')", when=started)
    assert stopped.error.startswith("KeyboardInterrupt")
    assert stopped.seconds < 3
    await kernel.must("agent.set_llm_call(Demo(delay=0))\nassert '9' in agent.ask('add 4 and 5').text")


async def test_a_widget_is_updated_while_ask_runs(kernel: Kernel) -> None:
    await kernel.must("from yiemagent_nb import AgentWidget\nwidget = AgentWidget(agent)")
    shown = await kernel.must("agent.set_llm_call(Demo(delay=0.05))\nprint(widget.model_id)")
    kernel.say_as_page(shown.text.strip(), {"type": "hello", "last_seq": 0})
    cell = await kernel.must("answer = agent.ask('/markdown'); print('the end', flush=True)")
    kinds = [message["msg_type"] for message in cell.messages]
    end = next(i for i, message in enumerate(cell.messages) if "the end" in str(message["content"].get("text", "")))
    assert kinds[:end].count("comm_msg") > 3


async def test_a_task_that_goes_on_after_its_cell_is_not_lost(kernel: Kernel) -> None:
    await kernel.must("agent.steer('add 2 and 3')")
    await kernel.must("await agent.wait_idle()\nassert '5' in agent.messages[-1].text")
