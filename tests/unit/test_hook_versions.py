"""What is applied, in which place, how it is taken back, and what is told of it."""

from __future__ import annotations

import asyncio
import gc
import inspect
import os
import subprocess
import sys
import weakref
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from yiemagent_nb.core.agent import Agent
from yiemagent_nb.core.approval import approve
from yiemagent_nb.core.errors import InvalidParametersError
from yiemagent_nb.core.hooks import BeforeToolCallContext
from yiemagent_nb.core.signal import AbortSignal
from yiemagent_nb.hooks.code import HookCodeError
from yiemagent_nb.hooks.failures import Failure
from yiemagent_nb.hooks.guard import GuardedHook
from yiemagent_nb.hooks.kinds import HookName
from yiemagent_nb.hooks.versions import HookBench
from yiemagent_nb.testing import Scripted, call


def code(number: int, hook: HookName = "before_tool_call", takes: str = "context, signal") -> str:
    return f"def {hook}({takes}):\n    return None  # {number}\n"


async def quiet(_messages: object) -> AsyncIterator[str]:
    yield "hi"


def of_code(context: BeforeToolCallContext, signal: AbortSignal) -> None:
    """A hook that a program gave."""
    del context, signal


def versions(bench: HookBench, hook: HookName = "before_tool_call") -> list[int | None]:
    return [each.source.version if isinstance(each, GuardedHook) else None for each in bench.installed(hook)]


async def test_a_new_version_takes_the_place_of_the_former_and_stands_behind_what_code_installed() -> None:
    agent = Agent(quiet, before_tool_call=[approve(), of_code])
    bench = HookBench.of(agent)
    assert HookBench.of(agent) is bench
    assert await bench.apply("before_tool_call", code(1)) == 1
    assert versions(bench) == [None, None, 1]
    assert await bench.apply("before_tool_call", code(2)) == 2
    assert versions(bench) == [None, None, 2]
    assert await bench.apply("before_tool_call", code(3), replaces=3) == 3
    assert versions(bench) == [None, None, 2, 3]
    assert await bench.apply("before_tool_call", code(4), replaces=0) == 4
    assert versions(bench) == [4, None, 2, 3]
    assert agent.hooks.before_tool_call[1] is of_code
    with pytest.raises(InvalidParametersError, match="not there any more"):
        await bench.apply("before_tool_call", code(5), replaces=5)
    bench.remove("before_tool_call", 2)
    assert versions(bench) == [4, None, 3]
    with pytest.raises(InvalidParametersError, match="not installed any more"):
        bench.remove("before_tool_call", 3)
    bench.revert("before_tool_call")
    assert versions(bench) == [None, None]
    assert agent.hooks.before_tool_call[1] is of_code
    assert bench.version("before_tool_call", 2).code == code(2)
    with pytest.raises(InvalidParametersError, match="nothing to revert"):
        bench.revert("before_tool_call")
    with pytest.raises(InvalidParametersError, match="no version 9"):
        bench.version("before_tool_call", 9)


async def test_code_that_is_no_hook_changes_nothing_and_takes_no_number() -> None:
    agent = Agent(quiet)
    bench = HookBench.of(agent)
    with pytest.raises(HookCodeError):
        await bench.apply("prepare_context", "x = ")
    assert agent.hooks.prepare_context is None
    assert await bench.apply("prepare_context", code(1, "prepare_context", "state")) == 1
    assert bench.form("prepare_context")["installed"][0]["origin"] == "version 1 of this editor"
    bench.remove("prepare_context", 0)
    assert agent.hooks.prepare_context is None
    bench.revert("prepare_context")
    assert agent.hooks.prepare_context is None


async def test_what_code_installs_meanwhile_is_what_there_is_then() -> None:
    agent = Agent(quiet, before_tool_call=approve())
    bench = HookBench.of(agent)
    await bench.apply("before_tool_call", code(1))
    agent.set_hooks(before_tool_call=of_code)
    await asyncio.sleep(0)
    form = bench.form("before_tool_call")
    assert [each["name"] for each in form["installed"]] == ["of_code"]
    assert not form["revertible"]
    await bench.apply("before_tool_call", code(2))
    bench.revert("before_tool_call")
    assert agent.hooks.before_tool_call == (of_code,)


async def test_removing_what_code_installed_can_be_reverted() -> None:
    agent = Agent(quiet, before_tool_call=of_code)
    bench = HookBench.of(agent)
    bench.remove("before_tool_call", 0)
    await asyncio.sleep(0)
    assert bench.form("before_tool_call")["revertible"]
    bench.revert("before_tool_call")
    assert agent.hooks.before_tool_call == (of_code,)


async def test_what_is_installed_is_shown_with_its_source_where_there_is_one() -> None:
    class Policy:
        """Lets everything pass."""

        def __call__(self, *_: object) -> None: ...

        def decide(self, *_: object) -> None: ...

    bound = Policy().decide
    agent = Agent(quiet, before_tool_call=[approve({"add"}), of_code, Policy(), partial(of_code), bound])
    approval, function, policy, part, method = HookBench.of(agent).describe("before_tool_call")
    assert (approval.name, approval.source) == ("approve", "approve({'add'})")
    assert approval.origin == "The hook that ``approve`` makes."
    assert function.source.startswith("def of_code(context: BeforeToolCallContext")
    assert function.origin == f"the module {__name__}"
    assert not function.editable  # it sees the names of its module
    assert (policy.name, policy.source, policy.origin) == ("Policy", "", "Lets everything pass.")
    assert part.source == function.source
    assert (method.name, method.source) == ("decide", "def decide(self, *_: object) -> None: ...\n")


class HostileType(type):
    @property
    def __doc__(cls) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
        hostile_ran.append("__doc__")
        raise KeyboardInterrupt


class HostileHook(metaclass=HostileType):
    """Runs code wherever it is looked at."""

    def __call__(self, *_: object) -> None: ...

    def __getattr__(self, name: str) -> Any:
        hostile_ran.append(name)
        raise KeyboardInterrupt

    def __repr__(self) -> str:
        hostile_ran.append("repr")
        raise KeyboardInterrupt


hostile_ran: list[str] = []


def test_describing_what_is_installed_runs_no_code_of_it() -> None:
    def wrapped(*_: object) -> None: ...

    wrapped.__wrapped__ = HostileHook()  # type: ignore[attr-defined]
    agent = Agent(quiet, before_tool_call=[HostileHook(), wrapped, partial(HostileHook())])
    hostile_ran.clear()
    described = HookBench.of(agent).describe("before_tool_call")
    assert hostile_ran == []
    assert [(each.name, each.source) for each in described] == [("HostileHook", ""), ("function", ""), ("partial", "")]
    assert described[0].origin == "Runs code wherever it is looked at."


async def test_a_hook_that_is_applied_in_mid_run_acts_from_the_next_turn() -> None:
    called: list[int] = []
    first, may_go_on = asyncio.Event(), asyncio.Event()

    async def count(number: int) -> int:
        """Count."""
        called.append(number)
        first.set()
        await may_go_on.wait()
        return number

    agent = Agent(Scripted([[call("count", number=1)], [call("count", number=2)], "done"]), tools=[count])
    bench = HookBench.of(agent)
    running = asyncio.ensure_future(agent.prompt("count"))
    await first.wait()
    await bench.apply(
        "before_tool_call",
        "def before_tool_call(context, signal):\n    return {'number': context.arguments['number'] * 10}\n",
    )
    assert bench.form("before_tool_call")["waits"]
    may_go_on.set()
    assert (await running).text == "done"
    assert called == [1, 20]
    assert not bench.form("before_tool_call")["waits"]


async def test_an_approval_that_was_applied_is_known_as_one() -> None:
    agent = Agent(quiet)
    bench = HookBench.of(agent)
    code = "from yiemagent_nb.core.approval import approve\nbefore_tool_call = approve("
    await bench.apply("before_tool_call", f"{code}ask=lambda request: 'deny')\n")
    assert agent.approval_function is not None
    await bench.apply("before_tool_call", f"{code})\n")
    assert agent.approval_function is None
    with pytest.raises(InvalidParametersError, match="no click arrives"):
        agent.ask("hi")


IN_A_NOTEBOOK = """
import asyncio
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_cell("from yiemagent_nb.core.agent import Agent", store_history=True)
shell.run_cell("def prepare_context(state): return known", store_history=True)
shell.run_cell("agent = Agent(lambda messages: 'hi', prepare_context=prepare_context)", store_history=True)
from yiemagent_nb.hooks.versions import HookBench
bench = HookBench.of(shell.user_ns["agent"])
(found,) = bench.describe("prepare_context")
assert found.origin == "cell 2", found
assert found.editable
assert found.source.strip() == "def prepare_context(state): return known"
asyncio.run(bench.apply("prepare_context", "def prepare_context(state): return known\\nleft_there = 1\\n"))
assert shell.user_ns["left_there"] == 1
assert shell.user_ns["prepare_context"].__globals__ is shell.user_ns
"""


def test_hooks_of_cells_are_known_by_their_cells_and_code_runs_where_cells_do(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(IN_A_NOTEBOOK, "utf-8")
    environment = {**os.environ, "IPYTHONDIR": str(tmp_path)}
    ended = subprocess.run(
        [sys.executable, str(program)], env=environment, check=False, capture_output=True, text=True, cwd=tmp_path
    )
    assert ended.returncode == 0, ended.stderr


class Listener:
    """Hears of a bench."""

    def __init__(self) -> None:
        self.heard: list[tuple[HookName, Failure | None]] = []

    def hear(self, hook: HookName, failure: Failure | None) -> None:
        self.heard.append((hook, failure))


async def test_a_hook_that_fails_at_each_call_does_not_flood() -> None:
    agent = Agent(quiet)
    bench = HookBench.of(agent)
    listener = Listener()
    bench.subscribe(listener.hear)
    await bench.apply("prepare_context", "def prepare_context(state):\n    1 / 0\n")
    hook: Any = agent.hooks.prepare_context
    for _ in range(300):
        await hook(agent.state)
    (failure,) = bench.failures.of("prepare_context")
    assert (failure.count, failure.line) == (300, 2)
    told = [each for _, each in listener.heard if each is not None]
    assert 1 <= len(told) < 100
    for number in range(60):
        bench.failures.add(Failure("prepare_context", 1, number, "another", "", ""))
    assert len(bench.failures.of("prepare_context")) == 20


async def test_drafts_and_versions_are_kept_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("yiemagent_nb.hooks.versions.MOST_VERSIONS", 3)
    agent = Agent(quiet)
    bench = HookBench.of(agent)
    bench.draft("before_tool_call", "half of a")
    assert bench.form("before_tool_call")["draft"] == "half of a"
    for number in range(1, 6):
        await bench.apply("before_tool_call", code(number))
    form = bench.form("before_tool_call")
    assert [each["version"] for each in form["versions"]] == [3, 4, 5]
    assert form["draft"] == code(5)
    assert form["versions"][0]["note"] == "def before_tool_call(context, signal):"


async def test_a_bench_keeps_no_agent_alive() -> None:
    agent = Agent(quiet)
    bench = HookBench.of(agent)
    await bench.apply("before_tool_call", code(1))
    gone = weakref.ref(agent)
    del agent
    gc.collect()
    assert gone() is None
    assert bench.failures.of("before_tool_call") == []


async def test_hooks_that_know_their_agent_keep_it_alive_no_longer() -> None:
    import __main__  # noqa: PLC0415

    async def make() -> weakref.ref[Agent]:
        agent = Agent(quiet)

        def knows_it(*_: object) -> None:
            print(agent)

        agent.set_hooks(before_tool_call=knows_it)
        __main__.__dict__["agent_of_this_test"] = agent
        await HookBench.of(agent).apply("before_tool_call", code(1, takes="context, signal, agent=agent_of_this_test"))
        for name in ("agent_of_this_test", "before_tool_call"):
            del __main__.__dict__[name]
        return weakref.ref(agent)

    gone = await make()
    await asyncio.sleep(0)
    gc.collect()
    assert gone() is None


async def test_agents_that_apply_the_same_text_share_no_source() -> None:
    agents = Agent(quiet), Agent(quiet)
    benches = [HookBench.of(agent) for agent in agents]
    for bench in benches:
        await bench.apply("before_tool_call", code(1))
    names = {bench.version("before_tool_call", 1).hook.source.filename for bench in benches}
    assert len(names) == 2
    with pytest.raises(HookCodeError):
        await HookBench.of(Agent(quiet)).apply("before_tool_call", f"{code(1)}1 / 0\n")
    for bench in benches:
        assert inspect.getsource(bench.version("before_tool_call", 1).hook.function) == code(1)


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), True])
def test_a_time_limit_is_a_number_above_zero(seconds: float) -> None:
    with pytest.raises(InvalidParametersError, match="above 0"):
        HookBench.of(Agent(quiet)).set_seconds(seconds)
