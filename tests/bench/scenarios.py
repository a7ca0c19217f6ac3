"""What is measured. Samples of both sides alternate in one process; figures are medians of them."""

from __future__ import annotations

import asyncio
import gc
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, pairwise
from statistics import median
from typing import Any

from bare import BareAgent
from contenders import NO_LIMITS, Contenders, hook, listen
from figures import Figure, Target, percentile
from model_server import tool_calls

from yiemagent_nb import Agent, Message, UserMessage, dump_message
from yiemagent_nb.core.request import RequestMessages

__all__ = ["FULL", "TINY", "Sizes", "alternate", "batches", "deltas", "floors", "history", "rounds", "script"]


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured.

    Args:
        rounds: Rounds of one call in a prompt.
        batches: Rounds of ``calls`` parallel calls in a prompt.
        calls: Calls of a batch.
        long: Rounds of the long prompt.
        marks: The rounds of it that are looked at, with ``around`` rounds before and after.
        around: See ``marks``.
        deltas: Pieces of one streamed answer.
        agents: Agents at once in one process.
        agent_rounds: Rounds of each of them.
        messages: Messages that are sent one after the other.
        tools: Tools of an MCP server: a small one and a large one.
        tool_calls: Calls to an MCP server.
        servers: MCP servers that are started side by side.
        result_mib: The size of a large result in MiB.
        repeat: Samples of each side.
    """

    rounds: int = 200
    batches: int = 20
    calls: int = 10
    long: int = 1000
    marks: tuple[int, ...] = (10, 100, 500, 985)
    around: int = 9
    deltas: int = 2000
    agents: int = 100
    agent_rounds: int = 20
    messages: int = 200
    tools: tuple[int, ...] = (50, 500)
    tool_calls: int = 500
    servers: int = 10
    result_mib: int = 20
    repeat: int = 7

    @property
    def heavy_repeat(self) -> int:
        """Samples of what takes seconds."""
        return max(1, self.repeat // 3)


FULL = Sizes()
TINY = Sizes(
    rounds=3,
    batches=2,
    calls=3,
    long=12,
    marks=(2, 4, 6, 9),
    around=1,
    deltas=20,
    agents=3,
    agent_rounds=2,
    messages=4,
    tools=(3, 60),
    tool_calls=25,
    servers=2,
    result_mib=2,
    repeat=1,
)

_conversations = count()


def script(*parts: object) -> str:
    """A model's name that tells the server what to answer, in a conversation of its own."""
    return "/".join(map(str, (*parts, next(_conversations))))


@dataclass(slots=True)
class Samples:
    """Seconds that each sample of one side took."""

    cpu: list[float]
    wall: list[float]

    def cpu_ms(self, per: float) -> float:
        """The median CPU time in milliseconds, of one of so many."""
        return 1000 * median(self.cpu) / per


async def alternate(repeat: int, *sides: Callable[[], Awaitable[object]]) -> list[Samples]:
    """Sample every side in turn, after a first time that does not count."""
    samples = [Samples([], []) for _ in sides]
    for side in sides:
        await side()
    for number in range(repeat):
        turn = list(zip(sides, samples, strict=True))
        for side, taken in turn if number % 2 else reversed(turn):
            gc.collect()
            wall, cpu = time.perf_counter(), time.process_time()
            await side()
            taken.cpu.append(time.process_time() - cpu)
            taken.wall.append(time.perf_counter() - wall)
    return samples


async def _talk(agent: Agent, text: str) -> None:
    """Say something on the input channel, and read the output channel up to the last answer."""
    await agent.input_channel.put(text)
    async for answer in agent.output_channel:
        if not answer.get("tool_calls"):
            return


async def rounds(contenders: Contenders, sizes: Sizes) -> AsyncIterator[Figure]:
    """Rounds of one call, with hooks, events and channels on, answers whole and streamed."""
    for stream in (False, True):

        async def bare(stream: bool = stream) -> None:
            await contenders.bare(script("rounds", sizes.rounds, 1), stream=stream).ask("go")

        async def agent(stream: bool = stream) -> None:
            async with contenders.agent(script("rounds", sizes.rounds, 1), stream=stream) as agent:
                await _talk(agent, "go")

        ours, theirs = await alternate(sizes.repeat, agent, bare)
        name = f"a round of 1 call, CPU, of {sizes.rounds}{', streamed' if stream else ''}"
        yield Figure("rounds", name, "ms", ours.cpu_ms(sizes.rounds), theirs.cpu_ms(sizes.rounds), Target(1.2))


async def batches(contenders: Contenders, sizes: Sizes) -> AsyncIterator[Figure]:
    """Rounds of parallel calls."""
    parts = ("rounds", sizes.batches, sizes.calls)
    ours, theirs = await alternate(
        3 * sizes.repeat,
        lambda: contenders.agent(script(*parts)).prompt("go"),
        lambda: contenders.bare(script(*parts)).ask("go"),
    )
    name = f"a round of {sizes.calls} calls, CPU, of {sizes.batches}"
    yield Figure("batches", name, "ms", ours.cpu_ms(sizes.batches), theirs.cpu_ms(sizes.batches), Target(1.5))


async def history(contenders: Contenders, sizes: Sizes) -> AsyncIterator[Figure]:
    """A long prompt: does a round cost more when there is more behind it?"""
    parts = ("rounds", sizes.long, 1)
    for where, repeat, agent, bare, total, growth in (
        (
            "",
            sizes.heavy_repeat,
            lambda: contenders.agent(script(*parts)).prompt("go"),
            lambda: contenders.bare(script(*parts)).ask("go"),
            Target(0.7),
            None,
        ),
        (
            " without HTTP",
            sizes.repeat,
            lambda: _agent_without_http(contenders, sizes.long).prompt("go"),
            lambda: _bare_without_http(contenders, sizes.long).ask("go"),
            None,
            Target(1.3, of="figure"),
        ),
    ):
        sides = [_Marked(contenders, agent), _Marked(contenders, bare)]
        ours, theirs = await alternate(repeat, *sides)
        name = f"a round{where}, CPU, of {sizes.long:,}"
        yield Figure("history", name, "ms", ours.cpu_ms(sizes.long), theirs.cpu_ms(sizes.long), total)
        costs = [[1000 * side.cost_around(mark, sizes.around) for side in sides] for mark in sizes.marks]
        for mark, (of_agent, of_bare) in zip(sizes.marks, costs, strict=True):
            yield Figure("history", f"around round {mark}{where}, CPU", "ms", of_agent, of_bare)
        name = f"growth from round {sizes.marks[0]} to {sizes.marks[-1]}{where}"
        of_agent, of_bare = (last / first for first, last in zip(costs[0], costs[-1], strict=True))
        yield Figure("history", name, "fold", of_agent, of_bare, growth)


class _Marked:
    """One side, with what each round of each run cost."""

    def __init__(self, contenders: Contenders, side: Callable[[], Awaitable[object]]) -> None:
        self._stamps = contenders.stamps
        self._side = side
        self._runs: list[list[float]] = []

    async def __call__(self) -> None:
        self._stamps.clear()
        await self._side()
        self._runs.append([after - before for (_, before), (_, after) in pairwise(self._stamps)])

    def cost_around(self, mark: int, around: int) -> float:
        """The median CPU seconds of the rounds about one, of all runs but the first."""
        return median(cost for run in self._runs[1:] for cost in run[mark - around - 1 : mark + around])


def _canned(turn: int, of: int) -> dict[str, Any]:
    if turn == of:
        return {"role": "assistant", "content": "done"}
    return {"role": "assistant", "content": None, "tool_calls": tool_calls(turn, 1)}


def _bare_without_http(contenders: Contenders, of: int) -> BareAgent:
    turns = count()

    async def complete(request: Mapping[str, Any]) -> dict[str, Any]:
        json.dumps(request).encode()  # what an HTTP client does before it sends
        return _canned(next(turns), of)

    return BareAgent(complete, "none", contenders.add)


def _agent_without_http(contenders: Contenders, of: int) -> Agent:
    turns = count()

    async def llm_call(messages: RequestMessages) -> dict[str, Any]:
        len(messages.encoded)  # what a backend sends
        return _canned(next(turns), of)

    agent = Agent(
        llm_call,
        "Be brief.",
        tools=[contenders.tool],
        limits=NO_LIMITS,
        before_tool_call=hook,
        after_tool_call=hook,
    )
    agent.subscribe(listen)
    return agent


async def deltas(contenders: Contenders, sizes: Sizes) -> AsyncIterator[Figure]:
    """One long streamed answer, piece by piece, as events, over both endpoints."""
    for over_responses in (False, True):
        bare_first: list[float] = []
        agent_first: list[float] = []

        async def bare(over_responses: bool = over_responses, times: list[float] = bare_first) -> None:
            model, on_text = script("deltas", sizes.deltas), _first_piece(times)
            if over_responses:
                await contenders.bare_over_responses(model, on_text=on_text).ask("go")
            else:
                await contenders.bare(model, stream=True, on_text=on_text).ask("go")

        async def agent(over_responses: bool = over_responses, times: list[float] = agent_first) -> None:
            model, on_text = script("deltas", sizes.deltas), _first_piece(times)
            await contenders.agent(model, stream=True, over_responses=over_responses, on_text=on_text).prompt("go")

        ours, theirs = await alternate(3 * sizes.repeat, agent, bare)
        per = sizes.deltas / 1000
        where = " of Responses" if over_responses else ""
        name = f"1,000 deltas{where}, CPU, of {sizes.deltas:,}"
        yield Figure("deltas", name, "ms", ours.cpu_ms(per), theirs.cpu_ms(per), Target(1.2))
        of_agent, of_bare = (1000 * median(times[1:]) for times in (agent_first, bare_first))
        yield Figure("deltas", f"to the first delta{where}", "ms", of_agent, of_bare, Target(5, of="difference"))


def _first_piece(times: list[float]) -> Callable[[str], None]:
    """A listener that notes the seconds to the first piece."""
    start = time.perf_counter()
    waiting = True

    def on_text(_text: str) -> None:
        nonlocal waiting
        if waiting:
            waiting = False
            times.append(time.perf_counter() - start)

    return on_text


async def floors(contenders: Contenders, sizes: Sizes) -> AsyncIterator[Figure]:
    """The least that is asked: latency of a call, of a message and of a recovery, and throughput."""
    calls = [await _call_times(contenders, side, sizes) for side in (_prompt, _ask)]
    for percent, limit in ((50, 500), (95, 2000), (99, 5000)):
        of_agent, of_bare = (percentile(times, percent) for times in calls)
        target = Target(limit, of="figure")
        yield Figure("floors", f"a tool call with its answer, {_named(percent)}", "ms", of_agent, of_bare, target)
    messages = await _message_times(contenders, sizes)
    for percent, limit in ((50, 200), (95, 500), (99, 1000)):
        target = Target(limit, of="figure")
        name = f"a message, channel to channel, {_named(percent)}"
        yield Figure("floors", name, "ms", percentile(messages, percent), None, target)
    recovered = await _recovery_time(contenders, sizes)
    name = f"an agent from {sizes.long:,} messages to its answer"
    yield Figure("floors", name, "ms", recovered, None, Target(2000, of="figure"))
    answered, seconds = await _sessions(contenders, sizes)
    name = f"of {sizes.agents} sessions at once, answered"
    yield Figure("floors", name, "", answered, None, Target(sizes.agents, of="figure", at_least=True))
    per_hour = sizes.agent_rounds / seconds * 3600
    name = "messages an hour in each of them"
    yield Figure("floors", name, "", per_hour, None, Target(1000, of="figure", at_least=True))
    per_minute = 60_000 / median(calls[0])
    yield Figure("floors", "tool calls a minute in one", "", per_minute, None, Target(100, of="figure", at_least=True))


def _named(percent: int) -> str:
    return "median" if percent == 50 else f"{percent}th percentile"


async def _prompt(contenders: Contenders, model: str) -> None:
    await contenders.agent(model).prompt("go")


async def _ask(contenders: Contenders, model: str) -> None:
    await contenders.bare(model).ask("go")


async def _call_times(
    contenders: Contenders, side: Callable[[Contenders, str], Awaitable[None]], sizes: Sizes
) -> Sequence[float]:
    """Milliseconds from one call to the next: its result, the request, the answer, the next call."""
    contenders.stamps.clear()
    await side(contenders, script("rounds", sizes.rounds, 1))
    return [1000 * (after - before) for (before, _), (after, _) in pairwise(contenders.stamps)]


async def _message_times(contenders: Contenders, sizes: Sizes) -> Sequence[float]:
    """Milliseconds from a message on the input channel to the answer on the output channel."""
    times: list[float] = []
    async with contenders.agent(script("rounds", 0, 0)) as agent:
        for _ in range(sizes.messages):
            start = time.perf_counter()
            await _talk(agent, "go")
            times.append(1000 * (time.perf_counter() - start))
            await agent.wait_idle()
    return times


async def _recovery_time(contenders: Contenders, sizes: Sizes) -> float:
    """Milliseconds until an agent that is rebuilt from stored messages has answered."""
    async with contenders.agent(script("rounds", sizes.long // 2, 1)) as agent:
        await agent.prompt("go")
    stored: list[dict[str, Any]] = [dump_message(message) for message in agent.messages]
    start = time.perf_counter()
    messages: Sequence[Message | Mapping[str, Any]] = [*stored, UserMessage("and now?")]
    again = Agent(contenders.backends[False], model=script("rounds", 0, 0), messages=messages)
    await again.continue_()
    return 1000 * (time.perf_counter() - start)


async def _sessions(contenders: Contenders, sizes: Sizes) -> tuple[int, float]:
    """How many sessions at once got all their answers, and the seconds that it took."""

    async def session() -> bool:
        async with contenders.agent(script("rounds", 0, 0)) as agent:
            for _ in range(sizes.agent_rounds):
                await agent.prompt("go")
        return len(agent.messages) == 2 * sizes.agent_rounds

    start = time.perf_counter()
    answered = await asyncio.gather(*(session() for _ in range(sizes.agents)))
    return sum(answered), time.perf_counter() - start
