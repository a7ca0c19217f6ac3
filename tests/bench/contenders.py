"""The two sides of every comparison, the bare loop and the agent, with the same tool and server."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from bare import BareAgent, client_for, streamed, streamed_responses, whole

from yiemagent_nb import AbortSignal, Agent, Event, Limits, MessageUpdate, OpenAICompatible, tool

__all__ = ["NO_LIMITS", "Contenders", "contenders_on", "hook", "ignore", "listen"]

NO_LIMITS = Limits(max_turns=None, messages_per_minute=None, messages_per_session=None)


def ignore(_text: str) -> None:
    """Takes a piece of text."""


def hook(*_: object) -> None:
    """Leaves every call and every result as it is."""


def listen(_event: Event, _signal: AbortSignal) -> None:
    """Hears every event."""


class Contenders:
    """Builds agents of both sides; each side shares one HTTP client.

    Attributes:
        stamps: When the tool ran: the wall clock and the CPU time of the process, in seconds.
    """

    def __init__(self, base_url: str) -> None:
        self.stamps: list[tuple[float, float]] = []
        self.client = client_for(base_url)
        self.backends = {stream: OpenAICompatible(base_url, stream=stream) for stream in (False, True)}
        self.responses = OpenAICompatible(base_url, api="responses")

        async def add(a: int, b: int) -> int:
            """Add two integers."""
            self.stamps.append((time.perf_counter(), time.process_time()))
            return a + b

        self.add = add
        self.tool = tool(add)

    def bare(self, model: str, *, stream: bool = False, on_text: Callable[[str], None] = ignore) -> BareAgent:
        """The bare loop."""
        complete = streamed(self.client, on_text) if stream else whole(self.client)
        return BareAgent(complete, model, self.add, stream=stream)

    def bare_over_responses(self, model: str, *, on_text: Callable[[str], None]) -> BareAgent:
        """The bare loop over the Responses API."""
        return BareAgent(streamed_responses(self.client, on_text), model, self.add)

    def agent(
        self,
        model: str,
        *,
        stream: bool = False,
        over_responses: bool = False,
        on_text: Callable[[str], None] | None = None,
    ) -> Agent:
        """An agent with hooks and a listener."""
        agent = Agent(
            self.responses if over_responses else self.backends[stream],
            "Be brief.",
            model=model,
            tools=[self.tool],
            limits=NO_LIMITS,
            before_tool_call=hook,
            after_tool_call=hook,
        )
        if on_text is None:
            agent.subscribe(listen)
        else:
            tell = on_text
            agent.subscribe(lambda event, _: tell(event.delta) if isinstance(event, MessageUpdate) else None)
        return agent


@asynccontextmanager
async def contenders_on(base_url: str) -> AsyncGenerator[Contenders, None]:
    """Both sides on one server; their connections are closed at the end."""
    contenders = Contenders(base_url)
    try:
        yield contenders
    finally:
        await contenders.client.aclose()
        for backend in (*contenders.backends.values(), contenders.responses):
            await backend.aclose()
