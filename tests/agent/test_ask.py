"""``ask`` in a plain script, inside a running loop, and Ctrl-C in each: every case in a process of its own.

Nested runs patch asyncio for the whole process, and Ctrl-C is for the whole process, so neither may
touch the process of the tests.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Generator
from contextlib import ExitStack
from pathlib import Path

import pytest

pytestmark = pytest.mark.requirement("A FR-001", "A SPEC-6.1", "Y SP-022", "Y SD-008")

ROOT = Path(__file__).parents[2]
SECONDS = 60

PRELUDE = '''
import asyncio, signal, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs that a shell started in the background ignore it
from agent.grammar import check_history
from agent.script import Model, Recorder, call, forever, history_of
from yiemagent_nb.core.agent import Agent
from yiemagent_nb.core.approval import approve
from yiemagent_nb.core.errors import InvalidParametersError

def say(*words):
    print(*words, flush=True)

def add(a: int, b: int) -> int:
    "Add two numbers."
    return a + b

def finish(agent, recorder=None):
    """What must hold after Ctrl-C: a valid history, and an agent that answers."""
    check_history(agent.messages)
    if recorder is not None:
        recorder.check()
    say(history_of(agent))
    agent.set_llm_call(Model("still here"))
'''


class Script:
    """A Python script in a process of its own, which talks to the test by its lines."""

    def __init__(self, code: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-X", "dev", "-W", "error", "-c", PRELUDE + textwrap.dedent(code)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")])},
        )

    def wait_for(self, word: str) -> None:
        """Read lines up to this one."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.strip() == word:
                return
        pytest.fail(f"the script ended before it said {word!r}: {self.process.communicate()[1]}")

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        self.process.send_signal(signal.SIGINT)

    def end(self, *, quietly: bool = True) -> list[str]:
        """Wait for its end, which must be a good one; returns the lines that were not yet read."""
        output, errors = self.process.communicate(timeout=SECONDS)
        assert self.process.returncode == 0, errors
        if quietly:  # that a step took long on a busy machine is no complaint
            assert [line for line in errors.splitlines() if not line.startswith("Executing <")] == []
        return output.splitlines()

    def close(self) -> None:
        """End it, whatever it does."""
        self.process.kill()
        self.process.communicate()


Run = Callable[[str], Script]


@pytest.fixture
def run() -> Generator[Run]:
    """Starts scripts, and ends them after the test."""
    with ExitStack() as stack:

        def start(code: str) -> Script:
            script = Script(code)
            stack.callback(script.close)
            return script

        yield start


def test_ask_answers_in_a_plain_script_which_then_ends_by_itself(run: Run) -> None:
    lines = run(
        """
        agent = Agent(Model([call("add", {"a": 1, "b": 2})], "three", "four"), tools=[add])
        say(agent.ask("u").text)
        say(agent.ask("v").text)
        finish(agent)
        """
    ).end()
    assert lines == ["three", "four", "u a tADD a v a"]


def test_ask_inside_a_running_loop_lets_other_tasks_go_on(run: Run) -> None:
    lines = run(
        """
        ticks = []

        async def tick():
            while True:
                ticks.append(len(ticks))
                await asyncio.sleep(0.001)

        async def pause():
            before = len(ticks)
            while len(ticks) < before + 5:
                await asyncio.sleep(0)

        async def main():
            agent = Agent(Model(["Hel", pause, "lo", call("add", {"a": 1, "b": 2})], [pause, "three"]), tools=[add])
            recorder = Recorder(agent)
            heard = []

            async def listen(event, signal):
                heard.append(event.type)

            agent.subscribe(listen)
            ticking = asyncio.create_task(tick())
            await asyncio.sleep(0)
            say(agent.ask("u").text)
            say(len(ticks) >= 10)
            say(agent.ask("v").text)
            say((await agent.prompt("w")).text)
            await agent.wait_idle()
            say(heard.count("agent_end"))
            recorder.check()
            say(history_of(agent))
            ticking.cancel()

        asyncio.run(main())
        """
    ).end()
    assert lines == ["three", "True", "done", "done", "3", "u a tADD a v a w a"]


def test_ask_inside_a_running_loop_raises_the_errors_of_prompt(run: Run) -> None:
    lines = run(
        """
        from yiemagent_nb.core.errors import YiemAgentError

        async def main():
            agent = Agent(Model([forever]))
            agent.steer("u")
            await asyncio.sleep(0.01)
            for text in ("v", " "):
                try:
                    agent.ask(text)
                except YiemAgentError as error:
                    say(error.code)
            agent.abort()
            await agent.wait_idle()
            finish(agent)
            say(agent.ask("w").text)

        asyncio.run(main())
        """
    ).end()
    assert lines == ["AGENT_BUSY", "INVALID_PARAMETERS", "u a,aborted", "still here"]


def test_ask_in_a_tool_of_another_agent_is_nested_too(run: Run) -> None:
    lines = run(
        """
        async def main():
            inner = Agent(Model("from inside"))

            async def a() -> str:
                "Ask another agent, synchronously."
                return inner.ask("x").text

            outer = Agent(Model([call("a")], "done"), tools=[a])
            say(outer.ask("u").text)
            say(outer.messages[2].text)

        asyncio.run(main())
        """
    ).end()
    assert lines == ["done", "from inside"]


def test_ask_refuses_a_nested_run_that_waits_for_a_click(run: Run) -> None:
    lines = run(
        """
        async def main():
            agent = Agent(Model([call("add", {"a": 1, "b": 2})], "three"), tools=[add], before_tool_call=approve())
            try:
                agent.ask("u")
            except InvalidParametersError as error:
                say("no click" in str(error), len(agent.messages))
            agent.set_hooks(before_tool_call=approve(ask=lambda request: "allow_once"))
            say(agent.ask("u").text)

        asyncio.run(main())
        """
    ).end()
    assert lines == ["True 0", "three"]


def test_ask_in_a_plain_script_waits_for_an_approval_from_another_thread(run: Run) -> None:
    lines = run(
        """
        agent = Agent(Model([call("add", {"a": 1, "b": 2})], "three"), tools=[add], before_tool_call=approve())

        def click(event, signal):
            if event.type == "approval_requested":
                threading.Thread(target=agent.approvals.resolve, args=(event.request_id, "allow_once")).start()

        agent.subscribe(click)
        say(agent.ask("u").text)
        finish(agent)
        """
    ).end()
    assert lines == ["three", "u a tADD a"]


@pytest.mark.parametrize("runtime", ["loop", "thread"])
@pytest.mark.skipif(sys.platform == "win32", reason="uvloop has no build for Windows")
def test_ask_inside_uvloop_says_what_to_do_and_works_with_a_thread_of_its_own(run: Run, runtime: str) -> None:
    lines = run(
        f"""
        import uvloop

        async def main():
            agent = Agent(Model("one", "two"), runtime="{runtime}")
            try:
                say(agent.ask("u").text)
            except InvalidParametersError as error:
                say("uvloop" in str(error), "runtime" in error.hint)
            say((await agent.prompt("v")).text)
            await agent.shutdown()

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(main())
        """
    ).end()
    assert lines == (["True True", "one"] if runtime == "loop" else ["one", "two"])


@pytest.mark.parametrize("runtime", ["loop", "thread"])
def test_ask_inside_a_loop_that_cannot_be_nested_says_what_to_do(run: Run, runtime: str) -> None:
    lines = run(
        f"""
        import nest_asyncio2
        from asyncio import events

        class Foreign(asyncio.AbstractEventLoop):
            "A loop of someone else's: it has what running code needs, and is no BaseEventLoop."

            def __init__(self, loop):
                self.inner = loop

            def is_running(self):
                return True

            def is_closed(self):
                return False

            def call_soon_threadsafe(self, callback, *args, context=None):
                return self.inner.call_soon_threadsafe(callback, *args, context=context)

            call_soon = call_soon_threadsafe

            def create_task(self, work, **options):
                return self.inner.create_task(work, **options)

            def create_future(self):
                return self.inner.create_future()

        async def main():
            loop = asyncio.get_running_loop()
            agent = Agent(Model("one", "two"), runtime="{runtime}")
            events._set_running_loop(Foreign(loop))
            try:
                say(agent.ask("u").text)
            except InvalidParametersError as error:
                say("cannot run inside" in str(error), "runtime" in error.hint)
            finally:
                events._set_running_loop(loop)
            say((await agent.prompt("v")).text)
            await agent.shutdown()

        asyncio.run(main())
        """
    ).end()
    assert lines == (["True True", "one"] if runtime == "loop" else ["one", "two"])


def test_ask_inside_a_running_loop_works_with_a_thread_of_its_own(run: Run) -> None:
    lines = run(
        """
        async def main():
            agent = Agent(Model("one", "two"), runtime="thread")
            say(agent.ask("u").text)
            say((await agent.prompt("v")).text)
            await agent.shutdown()
            say(agent.closed)

        asyncio.run(main())
        """
    ).end()
    assert lines == ["one", "two", "True"]


def test_ctrl_c_stops_ask_in_a_plain_script_and_leaves_the_agent_usable(run: Run) -> None:
    script = run(
        """
        agent = Agent(Model(["Hel", lambda: say("ready"), forever]))
        recorder = Recorder(agent)
        try:
            agent.ask("u")
        except KeyboardInterrupt:
            say("interrupted")
        finish(agent, recorder)
        say(agent.ask("v").text)
        """
    )
    script.wait_for("ready")
    script.interrupt()
    assert script.end() == ["interrupted", "u a,aborted", "still here"]


def test_ctrl_c_stops_tools_of_ask_in_a_plain_script(run: Run) -> None:
    script = run(
        """
        async def waits():
            "Wait on the loop."
            await forever()

        def blocks():
            "Block a thread."
            say("ready")
            time.sleep(3600)

        agent = Agent(Model([call("waits"), call("blocks")]), tools=[waits, blocks])
        recorder = Recorder(agent)
        try:
            agent.ask("u")
        except KeyboardInterrupt:
            say("interrupted")
        finish(agent, recorder)
        say(agent.ask("v").text)
        """
    )
    script.wait_for("ready")
    script.interrupt()
    assert script.end() == ["interrupted", "u a tWAITS tBLOCKS", "still here"]


@pytest.mark.parametrize("runtime", ["loop", "thread"])
def test_ctrl_c_stops_ask_inside_a_running_loop_and_leaves_agent_and_loop_usable(run: Run, runtime: str) -> None:
    script = run(
        f"""
        async def main():
            agent = Agent(Model(["Hel", lambda: say("ready"), forever]), runtime="{runtime}")
            recorder = Recorder(agent)
            try:
                agent.ask("u")
            except KeyboardInterrupt:
                say("interrupted")
            await agent.wait_idle()
            finish(agent, recorder)
            say(agent.ask("v").text)
            say((await agent.prompt("w")).text)
            await agent.shutdown()

        asyncio.run(main())
        """
    )
    script.wait_for("ready")
    script.interrupt()
    assert script.end() == ["interrupted", "u a,aborted", "still here", "done"]


def test_ctrl_c_stops_a_blocking_backend_of_ask_inside_a_running_loop(run: Run) -> None:
    script = run(
        """
        def blocking(messages):
            say("ready")
            time.sleep(3600)

        async def main():
            agent = Agent(blocking)
            recorder = Recorder(agent)
            try:
                agent.ask("u")
            except KeyboardInterrupt:
                say("interrupted")
            finish(agent, recorder)
            say(agent.ask("v").text)

        asyncio.run(main())
        """
    )
    script.wait_for("ready")
    script.interrupt()
    assert script.end() == ["interrupted", "u a,aborted", "still here"]


def test_ctrl_c_during_an_awaited_prompt_aborts_the_run(run: Run) -> None:
    script = run(
        """
        agent = Agent(Model(["Hel", lambda: say("ready"), forever]))
        recorder = Recorder(agent)
        try:
            asyncio.run(agent.prompt("u"))
        except KeyboardInterrupt:
            say("interrupted")
        finish(agent, recorder)
        say(asyncio.run(agent.prompt("v")).text)
        """
    )
    script.wait_for("ready")
    script.interrupt()
    assert script.end() == ["interrupted", "u a,aborted", "still here"]


def test_ctrl_c_leaves_a_backend_behind_that_will_not_stop(run: Run) -> None:
    script = run(
        """
        async def stubborn(messages):
            say("ready")
            while True:
                try:
                    await forever()
                except asyncio.CancelledError:
                    say("swallowed")

        agent = Agent(stubborn)
        recorder = Recorder(agent)
        try:
            agent.ask("u")
        except KeyboardInterrupt:
            say("interrupted")
        finish(agent, recorder)
        say(agent.ask("v").text)
        """
    )
    script.wait_for("ready")
    script.interrupt()
    script.wait_for("swallowed")
    lines = [line for line in script.end(quietly=False) if line != "swallowed"]
    assert lines == ["interrupted", "u a,aborted", "still here"]


def test_a_second_ctrl_c_leaves_ask_at_once(run: Run) -> None:
    script = run(
        """
        import os

        def blocks_the_loop(context, signal):
            signal.on_abort(lambda: say("aborted"))
            say("ready")
            time.sleep(3600)

        agent = Agent(Model([call("add", {"a": 1, "b": 2})]), tools=[add], before_tool_call=blocks_the_loop)
        try:
            agent.ask("u")
        except KeyboardInterrupt:
            say("interrupted")
            os._exit(0)  # the agent's loop is blocked, and cannot be ended otherwise
        """
    )
    script.wait_for("ready")
    script.interrupt()
    script.wait_for("aborted")
    script.interrupt()
    assert script.end() == ["interrupted"]


def test_a_script_that_leaves_an_agent_working_ends_by_itself(run: Run) -> None:
    lines = run(
        """
        agent = Agent(Model(["Hel", lambda: say("ready"), forever]), runtime="thread")
        agent.steer("u")
        while not agent.is_running:
            time.sleep(0.001)
        """
    ).end()
    assert lines in ([], ["ready"])
