# pyright: reportPrivateUsage=false
"""The output that keeps the conversation is renewed where something changed, and not too often."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from yiemagent_nb.core.agent import Agent
from yiemagent_nb.widgets import transcript_output
from yiemagent_nb.widgets.transcript_output import TranscriptOutput


async def chatter(messages: Sequence[Mapping[str, Any]]) -> str:
    return f"answer {len(messages)}"


class Outputs:
    """Takes what is published, at times that the test sets; each takes so many seconds."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.published: list[str] = []
        self.now = 0.0
        self.seconds = 0.0
        monkeypatch.setattr(transcript_output, "publish", self._publish)
        monkeypatch.setattr(transcript_output, "time", SimpleNamespace(monotonic=lambda: self.now))

    def _publish(self, data: Mapping[str, str], **_how: Any) -> None:
        self.published.append(data["text/plain"])
        self.now += self.seconds


async def test_a_run_of_one_turn_renews_the_output_once(monkeypatch: pytest.MonkeyPatch) -> None:
    outputs = Outputs(monkeypatch)
    agent = Agent(chatter)
    output = TranscriptOutput(agent, "name")
    output.show()
    outputs.now += 10
    await agent.prompt("hi")
    outputs.now += 10
    output._renew()  # for the end of the run, some time after that of its turn
    outputs.now += 10
    agent.reset()
    assert [text.count("You:") for text in outputs.published] == [0, 1, 0]
    output.close()


async def test_a_renewal_that_took_long_is_followed_by_a_rest_within_the_run_and_its_end_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    outputs = Outputs(monkeypatch)
    outputs.seconds = 2.0  # so that the next within a run may come 20 seconds later

    async def counter(messages: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        outputs.now += 1.0
        if len(messages) >= 7:
            return {"content": "done"}
        return {"tool_calls": [{"id": str(len(messages)), "function": {"name": "look", "arguments": "{}"}}]}

    def look() -> str:
        """Look."""
        return "seen"

    agent = Agent(counter, tools=[look])
    output = TranscriptOutput(agent, "name")
    output.show()
    outputs.now = 30.0
    await agent.prompt("hi")
    outputs.now += 1.0
    output._renew()  # for the end of the run, which waits for its time by size alone
    assert [text.count("look()") for text in outputs.published] == [0, 1, 3]
    output.close()
