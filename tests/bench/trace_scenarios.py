"""What it costs to be recorded: the agent with a trace beside the same agent without one."""

from __future__ import annotations

from collections.abc import AsyncIterator

from contenders import Contenders
from figures import Figure, Target
from scenarios import Sizes, alternate, script

from yiemagent_nb import Agent, TraceRecorder

__all__ = ["recorded"]


async def recorded(contenders: Contenders, sizes: Sizes) -> AsyncIterator[Figure]:
    """A long prompt and a long streamed answer, recorded and not."""

    async def ask(agent: Agent, *, record: bool) -> None:
        if record:
            TraceRecorder.of(agent)
        await agent.prompt("go")

    for name, parts, per, stream in (
        (f"a round, CPU, of {sizes.long:,}", ("rounds", sizes.long, 1), sizes.long, False),
        (f"{sizes.deltas:,} deltas, CPU", ("deltas", sizes.deltas), 1, True),
    ):
        ours, theirs = await alternate(
            sizes.heavy_repeat,
            lambda parts=parts, stream=stream: ask(contenders.agent(script(*parts), stream=stream), record=True),
            lambda parts=parts, stream=stream: ask(contenders.agent(script(*parts), stream=stream), record=False),
        )
        yield Figure("recorded", f"{name}, recorded and not", "ms", ours.cpu_ms(per), theirs.cpu_ms(per), Target(1.1))
