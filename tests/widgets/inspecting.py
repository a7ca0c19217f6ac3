"""A page without a browser that shows the tool inspector, and asks it as the front end does."""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
from collections.abc import Callable
from typing import Any

from yiemagent_nb.core.agent import Agent
from yiemagent_nb.widgets.host import WidgetHost
from yiemagent_nb.widgets.panel import Panel
from yiemagent_nb.widgets.tool_inspector import ToolInspector

__all__ = ["InspectorPage", "RefusedError"]


class RefusedError(Exception):
    """The kernel refused what the page asked for."""


class InspectorPage:
    """A page on which ``ToolInspector(agent)`` stands alone, or beside other panels.

    It keeps all that it was sent as ``text``; what the inspector told it, in order, as ``events``; and what
    else it was told as ``others``.
    """

    def __init__(self, agent: Agent, *panels: Panel) -> None:
        self.text = ""
        self.events: list[dict[str, Any]] = []
        self.others: list[dict[str, Any]] = []
        self.state: dict[str, Any] = {}
        self.session = ""
        self._tickets = map(str, itertools.count(1))
        self._answers: dict[str, dict[str, Any]] = {}
        self._values: dict[str, Any] = {}
        self._arrived = threading.Condition()
        self.inspector = ToolInspector(agent)
        self.host = WidgetHost(agent, [*panels, self.inspector], self._take)

    async def open(self) -> dict[str, Any]:
        """Show the inspector; returns its state."""
        self.host.receive({"type": "hello", "last_seq": 0})
        await self.until(lambda: bool(self.session))
        self.host.receive({"type": "open_panel", "panel": "inspector"})
        await self.until(lambda: bool(self.state))
        return self.state

    def close(self) -> None:
        """Leave."""
        self.host.close()
        self.inspector.close()

    async def ask(self, kind: str, *, buffers: tuple[bytes, ...] = (), **fields: Any) -> Any:
        """Ask, and return what the reply brings; None where there is none.

        Raises:
            RefusedError: It was refused.
        """
        ticket = next(self._tickets)
        self.host.receive({"type": kind, "ticket": ticket, **fields}, buffers)
        await self.until(lambda: ticket in self._answers)
        answer = self._answers[ticket]
        if answer["type"] == "refused":
            raise RefusedError(f"{answer['message']} {answer['hint']}")
        return self._values.get(ticket)

    async def act(self, kind: str, *, buffers: tuple[bytes, ...] = (), **fields: Any) -> Any:
        """Ask for something that acts."""
        return await self.ask(kind, buffers=buffers, session=self.session, **fields)

    async def call(self, name: str, arguments: str = "{}", *, call: str = "c1", hooks: bool = True) -> dict[str, Any]:
        """Call a tool by hand, wait for its end, and return its details."""
        await self.act("call_tool", call=call, name=name, arguments_text=arguments, hooks=hooks)
        await self.ended(call)
        return await self.ask("load_call", call=call)

    async def ended(self, call: str) -> dict[str, Any]:
        """Wait for the end of a call; returns the last that was told of it."""
        return await self.told(
            "call", lambda event: event["call"] == call and event["state"] in ("done", "failed", "cancelled")
        )

    async def told(self, kind: str, test: Callable[[dict[str, Any]], object] = lambda _: True) -> dict[str, Any]:
        """Wait for an event of the inspector; returns the first that passes."""
        found: list[dict[str, Any]] = []

        def seen() -> bool:
            found[:] = [event for event in self.events if event["type"] == kind and test(event)]
            return bool(found)

        await self.until(seen)
        return found[0]

    async def until(self, test: Callable[[], object]) -> None:
        """Wait until something is true, which is looked at whenever a batch has come."""

        def wait() -> None:
            with self._arrived:
                assert self._arrived.wait_for(test, timeout=30)

        await asyncio.to_thread(wait)

    def _take(self, batch: dict[str, Any]) -> None:
        text = json.dumps(batch, ensure_ascii=False, allow_nan=False)
        with self._arrived:
            self.text += text
            if "snapshot" in batch:
                self.session = batch["snapshot"]["session"]
            for event in json.loads(text)["events"]:
                self._hear(event)
            self._arrived.notify_all()

    def _hear(self, event: dict[str, Any]) -> None:
        match event["type"]:
            case "panel":
                self.events.append(event["event"])
                if event["event"]["type"] == "state":
                    self.state = event["event"]["state"]
            case "reply":
                self._values[event["ticket"]] = event["value"]
            case "accepted" | "refused":
                self._answers[event["ticket"]] = event
            case _:
                self.others.append(event)
