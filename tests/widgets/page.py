"""A page without a browser: takes batches as the front end does, and keeps what it learned."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from typing import Any

from yiemagent_nb.core.agent import Agent
from yiemagent_nb.widgets.chat_panel import ChatPanel
from yiemagent_nb.widgets.host import WidgetHost


class Page:
    """A page that shows one agent. ``lose`` names batches that never arrive."""

    def __init__(self, agent: Agent, *, lose: frozenset[int] = frozenset()) -> None:
        self.batches: list[dict[str, Any]] = []
        self.times: list[float] = []
        self.size = 0
        self.seq = 0
        self.synced = False
        self.texts: list[str] = []
        self.live: dict[int, str] = {}
        self.replies: dict[str, dict[str, Any]] = {}
        self.problems: list[str] = []
        self._lose = lose
        self._arrived = threading.Condition()
        self.host = WidgetHost(agent, [ChatPanel(agent)], self._take)

    def hello(self) -> None:
        """Say that the page is there."""
        self.host.receive({"type": "hello", "last_seq": self.seq})

    def events(self, kind: str) -> list[dict[str, Any]]:
        """All events of a type, in order."""
        return [event for batch in self.batches for event in batch["events"] if event["type"] == kind]

    async def until(self, kind: str, count: int = 1) -> None:
        """Wait until so many events of a type have come."""
        await asyncio.to_thread(self.until_threadsafe, kind, count)

    def until_threadsafe(self, kind: str, count: int = 1) -> None:
        """The same, in a thread that may block."""
        with self._arrived:
            assert self._arrived.wait_for(lambda: len(self.events(kind)) >= count, timeout=20), kind

    async def reply(self, ticket: str) -> dict[str, Any]:
        """Wait for the answer to a ticket."""

        def wait() -> dict[str, Any]:
            with self._arrived:
                assert self._arrived.wait_for(lambda: ticket in self.replies, timeout=20)
            return self.replies[ticket]

        return await asyncio.to_thread(wait)

    def _take(self, batch: dict[str, Any]) -> None:
        text = json.dumps(batch, ensure_ascii=False, allow_nan=False)
        with self._arrived:
            self.size += len(text.encode())
            self.times.append(time.monotonic())
            if batch["seq"] not in self._lose:
                self.batches.append(batch)
                self._apply(json.loads(text))
            self._arrived.notify_all()

    def _apply(self, batch: dict[str, Any]) -> None:
        for event in batch["events"]:
            if event["type"] in ("accepted", "refused"):
                self.replies[event["ticket"]] = event
        renewed = any(event["type"] == "renewed" for event in batch["events"])
        if self.synced and batch["seq"] == self.seq + 1 and not renewed:
            self.seq = batch["seq"]
            for event in batch["events"]:
                self._apply_event(event)
        elif "snapshot" in batch:
            self.seq = batch["seq"]
            self.synced = True
            self._take_snapshot(batch["snapshot"]["chat"])
        elif not self.synced or batch["seq"] > self.seq:
            self._resync()

    def _resync(self) -> None:
        self.synced = False
        self.host.receive({"type": "hello", "last_seq": 0})

    def _take_snapshot(self, chat: dict[str, Any]) -> None:
        self.texts = [_text(message) for message in chat["messages"]]
        live: dict[str, Any] | None = chat["live"]
        self.live = {block["block"]: block["text"] for block in live["blocks"]} if live is not None else {}

    def _apply_event(self, event: dict[str, Any]) -> None:
        match event["type"]:
            case "message":
                self.texts.append(_text(event["message"]))
            case "message_start":
                self.live = {}
            case "delta":
                known = self.live.get(event["block"], "")
                if len(known) != event["offset"]:
                    self.problems.append(f"block {event['block']} has {len(known)}, not {event['offset']}")
                self.live[event["block"]] = known + event["text"]
            case "message_end":
                for index, block in enumerate(event["message"]["content"]):
                    if "length" in block:
                        block["text"] = self.live[index]
                        if len(block["text"]) != block["length"]:
                            self.problems.append(f"block {index} is not {block['length']} long")
                self.texts.append(_text(event["message"]))
            case _:
                pass


def _text(message: dict[str, Any]) -> str:
    return "".join(block["text"] for block in message.get("content", ()) if block["type"] == "text")
