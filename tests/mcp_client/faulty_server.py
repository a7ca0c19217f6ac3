"""An MCP server over stdio that misbehaves as its arguments and its tools say.

It is plain Python, so that nothing but itself decides what stands on its standard output.

Arguments: ``ignores-eof``, ``ignores-term``, ``tells-of-term``, ``child``, ``stubborn-grandchild``, ``daemon``,
``prints-rubbish``, ``dies=CODE``, ``hangs``.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

Arguments = dict[str, Any]

BLOCK = 1 << 16

family: dict[str, int] = {"server": os.getpid()}


def write(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def send(message: dict[str, Any]) -> None:
    write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


def say(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


def text(words: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}]}


# What it starts


def stay() -> None:
    while True:
        signal.pause()


def fork(then: Callable[[], None]) -> int:
    process = os.fork()
    if process == 0:
        then()
        os._exit(0)
    return process


def fork_below(name: str, prepare: Callable[[], None]) -> None:
    """Start a process below a process in between, which ends at once where the first one is a daemon."""
    reading, writing = os.pipe()

    def grandchild() -> None:
        prepare()
        os.write(writing, str(os.getpid()).encode())
        stay()

    def between() -> None:
        if name == "daemon":
            os.setsid()
        fork(grandchild)
        if name != "daemon":
            stay()

    family[f"{name} parent"] = fork(between)
    family[name] = int(os.read(reading, 32))
    if name == "daemon":
        os.waitpid(family.pop(f"{name} parent"), 0)


def tell_of_term(*_: object) -> None:
    say("it got SIGTERM\n")
    os._exit(0)


def ignore_term() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


# What its tools do


def end(arguments: Arguments) -> dict[str, Any]:
    write(bytes.fromhex(arguments.get("hex", "")))
    say("these are my last words\n")
    os._exit(arguments["code"])


def die(arguments: Arguments) -> dict[str, Any]:
    os.kill(os.getpid(), arguments["signal"])
    return {}


def flood(arguments: Arguments) -> dict[str, Any]:
    """Write bytes to standard error, in lines of a length; a length of 0 makes one line of them."""
    length: int = arguments["line"]
    line = b"x" * (length - 1) + b"\n" if length else b"x" * BLOCK
    block = line * max(1, BLOCK // len(line))
    for _ in range(0, arguments["size"], len(block)):
        sys.stderr.buffer.write(block)
    sys.stderr.buffer.write(b"\nthe flood is over\n")
    sys.stderr.buffer.flush()
    return text("done")


def speak(arguments: Arguments) -> dict[str, Any]:
    say(arguments["text"])
    return text("done")


def raw(arguments: Arguments) -> dict[str, Any]:
    """Write to standard output what may be no message, and then the answer."""
    write(bytes.fromhex(arguments["hex"]))
    return text("done")


def raw_flood(arguments: Arguments) -> dict[str, Any]:
    write(b"no message\n" * arguments["lines"])
    return text("done")


def go_deaf(_: Arguments) -> dict[str, Any]:
    answer(current, text("what?"))
    stay()
    return {}


def close_output(_: Arguments) -> dict[str, Any]:
    os.close(1)
    stay()
    return {}


def close_input(_: Arguments) -> dict[str, Any]:
    os.close(0)
    answer(current, text("closed"))
    stay()
    return {}


def refuse(arguments: Arguments) -> None:
    """Answer with an error of JSON-RPC; ``{NAME}`` stands for a variable of the environment, here and below."""
    words = arguments["text"].format_map(os.environ)
    send({"id": current, "error": {"code": -32050, "message": words, "data": {"words": words}}})


def fail(arguments: Arguments) -> dict[str, Any]:
    return {**text(arguments["text"].format_map(os.environ)), "isError": True}


def log(arguments: Arguments) -> dict[str, Any]:
    words = arguments["text"].format_map(os.environ)
    send({"method": "notifications/message", "params": {"level": "info", "data": {"words": [words]}}})
    return text(words)


def report(arguments: Arguments) -> dict[str, Any]:
    """Tell of progress; the token is that of the request, as this client has it."""
    for step in range(arguments["steps"]):
        words = arguments["text"].format_map(os.environ)
        send(
            {
                "method": "notifications/progress",
                "params": {"progressToken": current, "progress": step, "message": words},
            }
        )
    return text("done")


def start_daemon(_: Arguments) -> dict[str, Any]:
    fork_below("daemon", ignore_term)
    return text(json.dumps(family))


TOOLS: dict[str, Callable[[Arguments], Any]] = {
    "echo": lambda arguments: text(arguments["text"]),
    "family": lambda _: text(json.dumps(family)),
    "environment": lambda _: text(json.dumps({**os.environ, "cwd": os.getcwd()})),  # noqa: PTH109 - plain and quick
    "big": lambda arguments: text("x" * arguments["size"]),
    "end": end,
    "die": die,
    "flood": flood,
    "speak": speak,
    "raw": raw,
    "raw_flood": raw_flood,
    "go_deaf": go_deaf,
    "close_output": close_output,
    "close_input": close_input,
    "start_daemon": start_daemon,
    "refuse": refuse,
    "fail": fail,
    "log": log,
    "report": report,
    "wrong": lambda _: ["no object"],
    "never": lambda _: None,
}

current: Any = None


def answer(request: Any, result: Any) -> None:
    send({"id": request, "result": result})


def serve(line: bytes) -> None:
    global current  # noqa: PLW0603 - a tool that answers before it misbehaves needs it
    message = json.loads(line)
    current = message.get("id")
    match message["method"]:
        case "initialize":
            about = {"name": "faulty", "version": "1"}
            protocol = message["params"]["protocolVersion"]
            answer(current, {"protocolVersion": protocol, "capabilities": {"tools": {}}, "serverInfo": about})
        case "tools/list":
            tools = [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]
            answer(current, {"tools": tools})
        case "tools/call":
            params = message["params"]
            result = TOOLS[params["name"]](params.get("arguments") or {})
            if result is not None:
                answer(current, result)
        case _ if current is not None:
            send({"id": current, "error": {"code": -32601, "message": "Method not found"}})
        case _:
            pass


def prepare(options: list[str]) -> None:
    if "ignores-term" in options:
        ignore_term()
    if "tells-of-term" in options:
        signal.signal(signal.SIGTERM, tell_of_term)
    if "child" in options:
        family["child"] = fork(stay)
    if "stubborn-grandchild" in options:
        fork_below("grandchild", ignore_term)
    if "daemon" in options:
        fork_below("daemon", lambda: None)
    if "prints-rubbish" in options:
        write(b"Welcome!\n\n{this is no message}\n")


def main() -> None:
    options = sys.argv[1:]
    prepare(options)
    for option in options:
        if option.startswith("dies="):
            say("I cannot find my configuration\n")
            sys.exit(int(option[5:]))
    if "hangs" in options:
        stay()
    while line := sys.stdin.buffer.readline():
        serve(line)
    if "ignores-eof" in options:
        stay()


if __name__ == "__main__":
    main()
