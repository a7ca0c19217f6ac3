"""What is measured in fresh processes, since memory and imports leave their traces in one.

As a program it is one such process: ``processes.py BASE_URL bare|agent AGENTS ROUNDS``.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from itertools import count
from statistics import median
from tempfile import TemporaryDirectory

import psutil
from contenders import Contenders, contenders_on
from figures import Figure, Target
from scenarios import Sizes

__all__ = ["crowd", "imports"]

_Ask = Callable[[str], Awaitable[object]]

_PYDANTIC = """
from pydantic import BaseModel, TypeAdapter
class Point(BaseModel):
    x: int
TypeAdapter(list[Point])
"""
_PYDANTIC_AND_ASYNCIO = f"{_PYDANTIC}import asyncio"
_NOTHING = ""
_PACKAGE = "import yiemagent_nb"
_AGENT = "from yiemagent_nb import Agent"

_MEASURED = """
import time
start = time.perf_counter()
exec({statement!r})
milliseconds = 1000 * (time.perf_counter() - start)
import json, psutil
print(json.dumps([milliseconds, psutil.Process().memory_info().rss / 2**20]))
"""


async def imports(sizes: Sizes) -> AsyncIterator[Figure]:
    """What importing costs, beside pydantic with a model and a type adapter."""
    statements = (_NOTHING, _PACKAGE, _AGENT, _PYDANTIC, _PYDANTIC_AND_ASYNCIO)
    costs: dict[str, list[list[float]]] = {statement: [] for statement in statements}
    with TemporaryDirectory() as compiled:  # as after an installation, whatever this environment does
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": compiled, "PYTHONDONTWRITEBYTECODE": ""}
        for _ in range(sizes.repeat + 1):
            for statement, taken in costs.items():
                taken.append(_run("-c", _MEASURED.format(statement=statement), environment=environment))
    wall = {statement: median(each for each, _ in taken[1:]) for statement, taken in costs.items()}
    memory = {statement: median(each for _, each in taken[1:]) for statement, taken in costs.items()}
    memory = {statement: each - memory[_NOTHING] for statement, each in memory.items()}
    yield Figure("imports", _PACKAGE, "ms", wall[_PACKAGE], None, Target(150, of="figure"))
    yield Figure("imports", _PACKAGE, "MiB", memory[_PACKAGE], None, Target(30, of="figure"))
    beside = f"{_AGENT}, beside pydantic"
    yield Figure("imports", beside, "ms", wall[_AGENT], wall[_PYDANTIC], Target(30, of="difference"))
    yield Figure("imports", beside, "MiB", memory[_AGENT], memory[_PYDANTIC])
    yield Figure("imports", f"{beside} and asyncio", "ms", wall[_AGENT], wall[_PYDANTIC_AND_ASYNCIO])


async def crowd(base_url: str, sizes: Sizes) -> AsyncIterator[Figure]:
    """Many agents at once in one process."""
    taken: dict[str, list[list[float]]] = {"agent": [], "bare": []}
    for _ in range(sizes.heavy_repeat):
        for side, samples in taken.items():
            samples.append(_run(__file__, base_url, side, str(sizes.agents), str(sizes.agent_rounds)))
    agent, bare = ([median(values) for values in zip(*samples, strict=True)] for samples in taken.values())
    name = f"{sizes.agents} agents at once, rounds a second"
    yield Figure("crowd", name, "", agent[0], bare[0], Target(0.7, at_least=True))
    yield Figure("crowd", "a round of one of them, CPU", "ms", agent[1], bare[1])
    yield Figure("crowd", "memory of one of them", "MiB", agent[2], bare[2], Target(0.5, of="figure"))


def _run(*arguments: str, environment: Mapping[str, str] | None = None) -> list[float]:
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=True, env=environment)
    figures: list[float] = json.loads(done.stdout)
    return figures


async def _measure_crowd(base_url: str, side: str, agents: int, rounds: int) -> list[float]:
    """Rounds a second, CPU milliseconds of a round, and MiB of an agent."""
    conversations = count()

    def build(contenders: Contenders) -> _Ask:
        model = f"rounds/{rounds}/1/{side}{next(conversations)}"
        return contenders.agent(model).prompt if side == "agent" else contenders.bare(model).ask

    async with contenders_on(base_url) as contenders:
        for _ in range(3):
            await build(contenders)("go")
        gc.collect()
        memory = psutil.Process().memory_info().rss
        asks = [build(contenders) for _ in range(agents)]
        wall, cpu = time.perf_counter(), time.process_time()
        await asyncio.gather(*(ask("go") for ask in asks))
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        memory = psutil.Process().memory_info().rss - memory
    return [agents * rounds / wall, 1000 * cpu / agents / rounds, memory / agents / 2**20]


if __name__ == "__main__":
    _url, _side, _agents, _rounds = sys.argv[1:]
    print(json.dumps(asyncio.run(_measure_crowd(_url, _side, int(_agents), int(_rounds)))))
