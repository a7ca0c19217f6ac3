"""An MCP server over stdio that asks its client more than is good for it. Plain Python.

Its tool ``ask`` sends so many questions at once, and gives its result when but ``left`` of them are
answered. It also asks once, or ends, when it is notified of ``notifications/ask`` and ``notifications/exit``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from itertools import count
from typing import Any

SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}}
TOOLS: list[dict[str, Any]] = [
    {"name": "ask", "description": "Ask.", "inputSchema": {"type": "object"}},
    {
        "name": "sampling/createMessage",
        "description": "A server asks the model something on its own, and reads the answer.",
        "inputSchema": {"type": "object", "properties": {}},
    },
]
ids = count(1000)


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def text(words: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}]}


def request(method: str, params: dict[str, Any]) -> None:
    send({"id": next(ids), "method": method, "params": params})


def elicit(number: int = 0) -> None:
    request("elicitation/create", {"message": f"Question {number}", "requestedSchema": SCHEMA})


def messages() -> Iterator[dict[str, Any]]:
    return map(json.loads, sys.stdin)


def ask(number: int, left: int) -> dict[str, Any]:
    for each in range(number):
        elicit(each)
    actions: list[str] = []
    for message in messages():
        if "result" in message:
            actions.append(message["result"]["action"])
        if len(actions) == number - left:
            break
    return text(json.dumps({action: actions.count(action) for action in set(actions)}))


def call(name: str, arguments: dict[str, int]) -> dict[str, Any]:
    if name == "ask":
        return ask(arguments["number"], arguments["left"])
    content = {"type": "text", "text": "Say something."}
    request("sampling/createMessage", {"maxTokens": 9, "messages": [{"role": "user", "content": content}]})
    answer = next(message for message in messages() if "result" in message or "error" in message)
    return text(json.dumps(answer.get("error", {}).get("message", "sampled")))


def main() -> None:
    for message in messages():
        match message.get("method"):
            case "initialize":
                version = message["params"]["protocolVersion"]
                about = {"name": "asking", "version": "1"}
                result: dict[str, Any] = {
                    "protocolVersion": version,
                    "capabilities": {"tools": {}},
                    "serverInfo": about,
                }
                send({"id": message["id"], "result": result})
            case "tools/list":
                send({"id": message["id"], "result": {"tools": TOOLS}})
            case "tools/call":
                params = message["params"]
                send({"id": message["id"], "result": call(params["name"], params.get("arguments", {}))})
            case "notifications/ask":
                elicit()
            case "notifications/exit":
                return
            case None | "notifications/initialized":
                pass
            case method:
                send({"id": message.get("id"), "error": {"code": -32601, "message": f"No {method}"}})


main()
