"""A program that opens a server as a kernel does, writes which processes there are, and ends as it is told.

Run as ``kernel_program.py END [OPTION…]``, the options being the faulty server's.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from contextlib import AsyncExitStack

from mcp_client.watching import Recorder, call, family, faulty, said

from yiemagent_nb.mcp.link import Link


def report(**facts: object) -> None:
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()


async def open_server(stack: AsyncExitStack, options: list[str]) -> Link:
    link = await stack.enter_async_context(faulty(*options).open(Recorder()))
    report(**await family(link))
    return link


async def echo(link: Link) -> str:
    return said(await call(link, "echo", text="still here"))


def stay() -> None:
    sys.stdin.read()


def run_without_loop(options: list[str]) -> None:
    """Close the event loop under an open server, and hold on to that, while the program goes on."""
    stack = AsyncExitStack()
    loop = asyncio.new_event_loop()
    loop.run_until_complete(open_server(stack, options))
    loop.close()
    stay()
    assert stack


def run_nested(options: list[str]) -> None:
    import nest_asyncio2  # noqa: PLC0415 - it changes asyncio, which no other way to end wants

    nest_asyncio2.apply()  # pyright: ignore[reportUnknownMemberType] - it has no types

    async def run() -> None:
        async with AsyncExitStack() as stack:
            link = await open_server(stack, options)
            report(answer=asyncio.get_running_loop().run_until_complete(echo(link)))

    asyncio.run(run())


async def run_to(end: str, options: list[str]) -> None:
    async with AsyncExitStack() as stack:
        link = await open_server(stack, options)
        match end:
            case "leaves":
                os._exit(0)
            case "forks":
                child = os.fork()
                if child == 0:
                    signal.pause()
                report(fork=child)
                await asyncio.Event().wait()
            case "is interrupted":
                signal.signal(signal.SIGINT, signal.SIG_IGN)
                os.killpg(0, signal.SIGINT)
                report(answer=await echo(link))
            case _:
                await asyncio.Event().wait()


def main() -> None:
    end, *options = sys.argv[1:]
    match end:
        case "closes its loop":
            run_without_loop(options)
        case "returns":
            loop = asyncio.new_event_loop()
            loop.run_until_complete(open_server(AsyncExitStack(), options))
        case "nests":
            run_nested(options)
        case _:
            asyncio.run(run_to(end, options))


if __name__ == "__main__":
    main()
