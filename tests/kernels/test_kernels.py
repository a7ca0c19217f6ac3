"""Stop, steering and approval from a page, on the kernels that people have.

The table here is README's: what acts while a cell runs, and what waits for its end. Nothing gets lost anywhere.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import pytest
import pytest_asyncio
from kernels.kernel import Kernel, start_kernel
from mcp_client.installing import python_folders

pytestmark = pytest.mark.asyncio(loop_scope="module")

OLDER = tuple(Path(__file__).parent / "older_kernels" / f"ipykernel-{version}.txt" for version in ("6.31", "7.3"))

Runtime = Literal["loop", "thread"]
RUNTIMES: tuple[Runtime, ...] = ("loop", "thread")
ACTS = ("stop", "steer", "approve")
LAST = "and now?"

SETUP = """
import asyncio, json, threading, time
import ipykernel
from yiemagent_nb import Agent, AgentEnd, AgentWidget, ApprovalRequested, approve
from yiemagent_nb.testing import call

class Desk:
    "An agent that waits for its page: to be stopped, steered, or given leave to use its tool."

    def __init__(self, act, runtime):
        self.act, self.ready, self.acted = act, threading.Event(), threading.Event()
        self.used = []
        self.agent = Agent(self.answer, tools=[self.touch], before_tool_call=approve(), runtime=runtime)
        self.widget = AgentWidget(self.agent, transcript=False)
        self.agent.subscribe(self.hear)
        self.agent.steer(act)

    async def answer(self, messages):
        last = messages[-1]["content"]
        if last == "stop":
            self.ready.set()
            yield "Working"
            await asyncio.Event().wait()
        elif last == "steer":
            self.ready.set()
            while not len(self.agent.input_channel):
                await asyncio.sleep(0.01)
            yield "Steered"
        elif last == "approve":
            yield {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "touch", "arguments": "{}"}}]}
        else:
            if last == "to the left":
                self.acted.set()
            yield f"You said {last}"

    def touch(self) -> str:
        "Touch it."
        self.used.append(time.monotonic())
        self.acted.set()
        return "touched"

    def hear(self, event, signal):
        if isinstance(event, ApprovalRequested):
            self.ready.set()
        if isinstance(event, AgentEnd) and self.act == "stop":
            self.acted.set()

    async def outcome(self):
        await self.agent.wait_idle()
        await self.agent.prompt("and now?")
        return {
            "roles": "".join(message.role[0] for message in self.agent.messages),
            "stop_reasons": [m.stop_reason for m in self.agent.messages if m.role == "assistant"],
            "texts": [m.text for m in self.agent.messages if m.role != "toolResult"],
            "used": len(self.used),
        }

async def until(*events):
    while not all(event.is_set() for event in events):
        await asyncio.sleep(0.01)
"""

OPEN = f"""
desks = {{f"{{runtime}} {{act}}": Desk(act, runtime) for runtime in {RUNTIMES} for act in {ACTS}}}
await until(*(desk.ready for desk in desks.values()))
print(json.dumps({{name: desk.widget.model_id for name, desk in desks.items()}}))
"""

# A cell goes on until all that can act has acted, and long enough for the rest to be seen waiting.
RUNNING = """
expected = {expected!r}
end, least = time.monotonic() + 20, time.monotonic() + 0.5
print("started", flush=True)
while time.monotonic() < least or (time.monotonic() < end and not all(desks[name].acted.is_set() for name in expected)):
    {wait}
print(json.dumps([name for name, desk in desks.items() if desk.acted.is_set()]))
"""
WAITS = {"awaits": "await asyncio.sleep(0.01)", "blocks": "time.sleep(0.01)"}

OUTCOMES = "print(json.dumps({name: await desk.outcome() for name, desk in desks.items()}))"

DURING: dict[tuple[str, bool], dict[str, tuple[Runtime, ...]]] = {
    ("7.4", True): {"awaits": RUNTIMES, "blocks": ("thread",)},
    ("7.4", False): {"awaits": RUNTIMES, "blocks": ()},
    ("7.3", True): {"awaits": RUNTIMES, "blocks": ("thread",)},
    ("7.3", False): {"awaits": (), "blocks": ()},
    ("6.31", False): {"awaits": (), "blocks": ()},
}
"""Whose page is heard while a cell awaits or blocks, by the kernel and whether the page uses a sub-shell."""

OUTCOME: dict[str, dict[str, Any]] = {
    "stop": {
        "roles": "uaua",
        "stop_reasons": ["aborted", "end_turn"],
        "texts": ["stop", "Working", "and now?", "You said and now?"],
        "used": 0,
    },
    "steer": {
        "roles": "uauaua",
        "stop_reasons": ["end_turn", "end_turn", "end_turn"],
        "texts": ["steer", "Steered", "to the left", "You said to the left", "and now?", "You said and now?"],
        "used": 0,
    },
    "approve": {
        "roles": "uataua",
        "stop_reasons": ["tool_calls", "end_turn", "end_turn"],
        "texts": ["approve", "", "You said touched", "and now?", "You said and now?"],
        "used": 1,
    },
}


@dataclass
class Page:
    """A widget's page as far as it is needed here: it talks, and takes batches.

    Attributes:
        model_id: The widget's.
        kernel: The kernel of both.
        subshell: Over which sub-shell it talks.
    """

    model_id: str
    kernel: Kernel
    subshell: str | None
    name: str = "page"

    def say(self, **content: Any) -> None:
        """Send a message."""
        self.kernel.say_as_page(self.model_id, content, self.subshell)

    def hello(self) -> None:
        """Say that it is there."""
        self.say(type="hello", last_seq=0, page=self.name)

    @property
    def batches(self) -> list[dict[str, Any]]:
        """What came so far."""
        mine = (each["data"] for each in self.kernel.received if each["comm_id"] == self.model_id)
        return [each["content"] for each in mine if each["method"] == "custom"]

    def heard(self, kind: str) -> list[dict[str, Any]]:
        """The events of a type that came so far."""
        return [event for batch in self.batches for event in batch["events"] if event["type"] == kind]

    def last(self, kind: str) -> int:
        """Where the last event of a type stands; -1 where none came."""
        kinds = [event["type"] for batch in self.batches for event in batch["events"]]
        return max((index for index, each in enumerate(kinds) if each == kind), default=-1)

    def snapshots(self) -> list[dict[str, Any]]:
        """The snapshots that came so far."""
        return [batch["snapshot"] for batch in self.batches if "snapshot" in batch]

    @property
    def finished(self) -> bool:
        """Whether it was told of the answer to the last prompt, and that the run is over."""
        said = [event["message"] for event in self.heard("message") if event["message"]["role"] == "user"]
        return (
            said[-1:] != [] and said[-1]["content"][0]["text"] == LAST and self.last("run_end") > self.last("message")
        )

    def act(self, act: str) -> None:
        """Press the button that the agent waits for."""
        match act:
            case "stop":
                self.say(type="stop")
            case "steer":
                self.say(type="send", ticket="t1", text="to the left")
            case _:
                (request,) = self.snapshots()[-1]["chat"]["approvals"]
                self.say(type="approve", ticket="t1", request_id=request["request_id"], choice="allow_once")


@dataclass(frozen=True)
class Platform:
    """A kernel, its version, and the sub-shell that its pages use."""

    kernel: Kernel
    version: str
    subshell: str | None

    async def open(self) -> dict[str, Page]:
        """Six agents that wait for their pages, by runtime and act."""
        ids: dict[str, str] = json.loads((await self.kernel.must(OPEN)).text)
        pages = {name: Page(model_id, self.kernel, self.subshell) for name, model_id in ids.items()}
        for page in pages.values():
            page.hello()
        await self.kernel.listen(lambda: all(page.snapshots() for page in pages.values()))
        return pages


@pytest.fixture(scope="module")
def older_kernels() -> dict[str, Path]:
    return dict(zip(("6.31", "7.3"), python_folders(*OLDER), strict=True))


def shown(setting: tuple[str, bool]) -> str:
    return f"{setting[0]}{'-subshell' * setting[1]}"


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=DURING, ids=shown)
async def platform(request: pytest.FixtureRequest, older_kernels: dict[str, Path]) -> AsyncGenerator[Platform]:
    version, with_subshell = request.param
    async with start_kernel(packages=older_kernels.get(version)) as kernel:
        found = await kernel.must(SETUP + "print(ipykernel.__version__)")
        assert found.text.startswith(f"{version}."), found.text
        yield Platform(kernel, version, await kernel.create_subshell() if with_subshell else None)


def started(message: dict[str, Any]) -> bool:
    return message["msg_type"] == "stream" and "started" in message["content"]["text"]


async def check(platform: Platform, pages: dict[str, Page]) -> None:
    """What was asked for has happened once, each agent goes on, and the pages were told in order."""
    outcomes = json.loads((await platform.kernel.must(OUTCOMES)).text)
    assert outcomes == {f"{runtime} {act}": OUTCOME[act] for runtime in RUNTIMES for act in ACTS}
    await platform.kernel.listen(lambda: all(page.finished for page in pages.values()))
    for name, page in pages.items():
        numbers = [batch["seq"] for batch in page.batches]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers))), name
        assert page.heard("refused") == [], name
        assert len(page.heard("accepted")) == ("stop" not in name), name


@pytest.mark.parametrize("cell", ["awaits", "blocks"])
async def test_while_a_cell_runs_what_can_act_acts_and_the_rest_waits_for_its_end(
    platform: Platform, cell: Literal["awaits", "blocks"]
) -> None:
    pages = await platform.open()
    heard = DURING[platform.version, platform.subshell is not None][cell]
    expected = [f"{runtime} {act}" for runtime in heard for act in ACTS]

    async def act() -> None:
        for name, page in pages.items():
            page.act(name.split()[1])

    running = RUNNING.format(expected=expected, wait=WAITS[cell])
    during = await platform.kernel.run(running, when=started, then=act)
    assert during.status == "ok", during.error
    assert json.loads(during.text.split("started")[1]) == expected
    await check(platform, pages)


async def test_while_no_cell_runs_all_acts_at_once(platform: Platform) -> None:
    pages = await platform.open()
    for name, page in pages.items():
        page.act(name.split()[1])
    await platform.kernel.listen(lambda: all(page.heard("run_end") for page in pages.values()))
    await check(platform, pages)


@pytest.mark.parametrize("platform", [each for each in DURING if each[1]], indirect=True, ids=shown)
async def test_a_page_that_comes_back_over_another_subshell_is_heard(platform: Platform) -> None:
    first = await platform.kernel.create_subshell()
    pages = await replace(platform, subshell=first).open()
    for page in pages.values():
        page.say(type="heartbeat", last_seq=1, page=page.name)
    await platform.kernel.listen(lambda: all(len(page.heard("alive")) > 1 for page in pages.values()))
    await platform.kernel.delete_subshell(first)
    for name, page in pages.items():
        page.subshell = platform.subshell
        page.hello()
        page.act(name.split()[1])
    await platform.kernel.listen(lambda: all(page.heard("run_end") for page in pages.values()))
    await check(platform, pages)
