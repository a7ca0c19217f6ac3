"""Pages whose connection and store are the front end's own, run by node, beside real agents."""

from __future__ import annotations

import itertools
import json
import shutil
import subprocess
import threading
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, Self

from widgets.front_end import node_environment

from yiemagent_nb.core.agent import Agent
from yiemagent_nb.core.messages import (
    AssistantMessage,
    ImageContent,
    Message,
    TextContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from yiemagent_nb.widgets.chat_panel import ChatPanel
from yiemagent_nb.widgets.host import WidgetHost
from yiemagent_nb.widgets.page_forms import RESULT_CHARACTERS
from yiemagent_nb.widgets.protocol import json_safe

__all__ = ["NodePage", "NodePages", "compare", "transcript"]

_ROUNDS = 20
"""A page that still asks for something after so many answers never comes to rest."""


class NodePages:
    """One node process for any number of pages. From any thread.

    Args:
        front_end: The sources of the front end, with their packages.
    """

    def __init__(self, front_end: Path) -> None:
        environment = node_environment()
        self._process = subprocess.Popen(
            [shutil.which("node", path=environment["PATH"]) or "node", "pages.mjs"],
            cwd=front_end,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()  # the end of its input ends it

    def number(self) -> int:
        """A number for another page."""
        return next(self._numbers)

    def ask(self, **command: Any) -> dict[str, Any]:
        """Send a command and wait for its answer."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        with self._lock:
            stdin.write(json.dumps(command, allow_nan=False) + "\n")
            stdin.flush()
            answer = stdout.readline()
        assert answer, "node ended"
        return json.loads(answer)


class NodePage:
    """A page that follows an agent: batches go to node at once, what it says comes back with ``deliver``.

    Args:
        pages: Where it runs.
        agent: Whom it follows.
        lost: The numbers of batches that are lost on their way.
    """

    def __init__(self, pages: NodePages, agent: Agent, lost: Collection[int] = ()) -> None:
        self.agent = agent
        self.host = WidgetHost(agent, [ChatPanel(agent)], self._take)
        self.batches = 0
        self.asked = 0
        """How many times it asked for a snapshot by itself."""
        self._pages = pages
        self._number = pages.number()
        self._lost = lost
        self._said: list[dict[str, Any]] = []

    def hello(self) -> None:
        """A view is shown."""
        self.host.receive({"type": "hello", "last_seq": 0, "page": str(self._number)})

    def deliver(self) -> None:
        """Send what waits to the page, and bring what the page says to the host."""
        for _ in range(_ROUNDS):
            self.host.frames.flush()
            said, self._said = self._said, []
            if not said:
                return
            for message in said:
                self.asked += message["type"] == "hello"
                self.host.receive(message)
        raise AssertionError(f"the page never comes to rest; its last words: {self._said}")

    def catch_up(self) -> dict[str, Any]:
        """Let the page learn all there is, as its heartbeats and its scrolling up do; returns what it knows."""
        self._lost = ()
        self.deliver()
        self.host.receive({"type": "heartbeat", "last_seq": self._dump()["seq"], "page": str(self._number)})
        self.deliver()
        while (start := self._dump()["store"]["start"]) > 0:
            self.host.receive({"type": "earlier", "before": start})
            self.deliver()
            assert self._dump()["store"]["start"] < start
        known = self._dump("last")
        self.host.close()
        assert (known["synced"], known["status"]) == (True, "ready")
        return known["store"]

    def _dump(self, when: bool | str = True) -> dict[str, Any]:
        return self._pages.ask(page=self._number, dump=when)

    def _take(self, batch: dict[str, Any]) -> None:
        self.batches += 1
        if batch["seq"] not in self._lost:
            self._said += self._pages.ask(page=self._number, batch=batch)["sent"]


def transcript(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """What a page is to know of a history, in the form of the front end's ``dump``, as far as both tell it."""
    entries = [_entry(index, message, messages) for index, message in enumerate(messages)]
    return json_safe([entry for entry in entries if entry is not None])


def _entry(index: int, message: Message, messages: Sequence[Message]) -> dict[str, Any] | None:
    match message:
        case UserMessage():
            return {"role": "user", "index": index, "blocks": [_block(block) for block in message.content]}
        case AssistantMessage():
            results = _results(index, messages)
            return {
                "role": "assistant",
                "index": index,
                "stop_reason": message.stop_reason,
                "failed": bool(message.stop_reason == "error" and message.error_message),
                "blocks": [
                    _call(block, results.get(block.id), message.stop_reason)
                    if isinstance(block, ToolCall)
                    else _block(block)
                    for block in message.content
                ],
            }
        case ToolResultMessage():
            return None
        case _:
            return {"role": "custom", "index": index, "note": message.kind}


def _block(block: Any) -> dict[str, Any]:
    if isinstance(block, ImageContent):
        return {"kind": "image", "mime_type": block.mime_type, "data": block.data}
    return {"kind": block.type, "text": block.text}


def _results(index: int, messages: Sequence[Message]) -> dict[str, ToolResultMessage]:
    """The results of the calls of one answer: ids come again in other answers."""
    following = itertools.takewhile(lambda each: not isinstance(each, AssistantMessage), messages[index + 1 :])
    return {each.tool_call_id: each for each in following if isinstance(each, ToolResultMessage)}


def _call(call: ToolCall, result: ToolResultMessage | None, stop_reason: str) -> dict[str, Any]:
    broken_off = stop_reason in ("aborted", "error")
    status = "stopped" if broken_off or result is None else "failed" if result.is_error else "done"
    texts = [block.text for block in result.content if isinstance(block, TextContent)] if result else []
    told = "".join(text[:RESULT_CHARACTERS] for text in texts) if result else None
    known: dict[str, Any] = {"id": call.id, "name": call.name, "status": status, "asks": False, "result": told}
    if not broken_off:
        known |= {"raw": call.raw_arguments}
        if call.raw_arguments is None:
            known["args"] = call.arguments
    return {"kind": "tool_call", "call": known}


def compare(known: dict[str, Any], agent: Agent) -> None:
    """Assert that a page knows what the agent knows, and nothing else of its history."""
    wanted = transcript(agent.messages)
    entries = [_as_far_as(entry, wanted) for entry in known["entries"] if entry["index"] >= 0]
    assert entries == wanted
    assert not any(entry["live"] for entry in known["entries"]), "something still streams"
    for entry in known["entries"]:
        if entry["index"] < 0:
            assert entry["role"] in ("error", "question", "request")
            assert not (entry["question"] and entry["question"]["action"] is None), "a question still asks"
            assert not (entry["request"] and entry["request"]["asks"]), "an approval still asks"
    assert (known["start"], known["total"], known["running"]) == (0, len(agent.messages), agent.is_running)
    waiting = {"steering": agent.input_channel, "follow_ups": agent.follow_up_channel}
    for name, channel in waiting.items():
        texts = [json_safe(each.text) for each in channel.items() if isinstance(each, UserMessage)]
        assert [each["text"] for each in known["queue"][name]] == texts


def _as_far_as(entry: dict[str, Any], wanted: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """An entry without what the history does not tell."""
    entry = {**entry, "failed": entry["error"] is not None}
    twin = next((each for each in wanted if each["index"] == entry["index"]), None)
    if twin is None:
        return entry
    cut = {name: entry[name] for name in twin}
    if "blocks" not in twin or len(twin["blocks"]) != len(entry["blocks"]):
        return cut
    cut["blocks"] = [_cut(block, other) for block, other in zip(entry["blocks"], twin["blocks"], strict=True)]
    return cut


def _cut(block: dict[str, Any], twin: dict[str, Any]) -> dict[str, Any]:
    if block["kind"] != "tool_call" or twin["kind"] != "tool_call" or block["call"] is None:
        return block
    return {"kind": "tool_call", "call": {name: block["call"][name] for name in twin["call"]}}
