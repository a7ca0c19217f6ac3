"""The agent's figures beside a loop that is written by hand on httpx2, in one run; MCP's beside the bare SDK.

    python tests/bench/run.py [--only rounds,deltas] [--repeat 7] [--json] [--tiny]

A model server runs in a process of its own and answers at once, so that what is left is the cost
of the client's side. CPU times are those of this process. Samples of both sides alternate, after
a first one of each that does not count, and figures are medians, so that other work on the
machine falls on both; wall-clock figures suffer from it most. Nothing here fails a build: the
last column says whether a target is met.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace

from contenders import Contenders, contenders_on
from figures import Figure, as_json, as_table
from mcp_scenarios import mcp_calls, mcp_discovery, mcp_nats, mcp_start
from model_server import running_server
from processes import crowd, imports
from scenarios import FULL, TINY, Sizes, batches, deltas, floors, history, rounds
from trace_scenarios import recorded

Scenario = Callable[[Contenders, str, Sizes], AsyncIterator[Figure]]

SCENARIOS: dict[str, Scenario] = {
    "rounds": lambda contenders, _, sizes: rounds(contenders, sizes),
    "batches": lambda contenders, _, sizes: batches(contenders, sizes),
    "history": lambda contenders, _, sizes: history(contenders, sizes),
    "deltas": lambda contenders, _, sizes: deltas(contenders, sizes),
    "recorded": lambda contenders, _, sizes: recorded(contenders, sizes),
    "crowd": lambda _, base_url, sizes: crowd(base_url, sizes),
    "imports": lambda _, __, sizes: imports(sizes),
    "floors": lambda contenders, _, sizes: floors(contenders, sizes),
    "mcp_discovery": lambda _, __, sizes: mcp_discovery(sizes),
    "mcp_calls": lambda _, __, sizes: mcp_calls(sizes),
    "mcp_nats": lambda _, __, sizes: mcp_nats(sizes),
    "mcp_start": lambda _, __, sizes: mcp_start(sizes),
}


async def measure(names: list[str], sizes: Sizes) -> list[Figure]:
    """Run scenarios, one after the other."""
    figures: list[Figure] = []
    with running_server() as base_url:
        async with contenders_on(base_url) as contenders:
            for name in names:
                start = time.perf_counter()
                figures += [figure async for figure in SCENARIOS[name](contenders, base_url, sizes)]
                print(f"{name}: {time.perf_counter() - start:.1f} s", file=sys.stderr, flush=True)
    return figures


def main() -> None:
    """Read the command line, measure, and print."""
    parser = argparse.ArgumentParser(description="The agent's figures beside a bare loop.")
    parser.add_argument("--only", default=",".join(SCENARIOS), help=f"some of {', '.join(SCENARIOS)}")
    parser.add_argument("--repeat", type=int, help="samples of each side")
    parser.add_argument("--json", action="store_true", help="print figures for programs")
    parser.add_argument("--tiny", action="store_true", help="try everything out, in sizes that say nothing")
    arguments = parser.parse_args()
    names: list[str] = arguments.only.split(",")
    if unknown := set(names) - SCENARIOS.keys():
        parser.error(f"no scenario {', '.join(sorted(unknown))}; there are {', '.join(SCENARIOS)}")
    sizes = TINY if arguments.tiny else FULL
    if arguments.repeat is not None:
        sizes = replace(sizes, repeat=max(1, arguments.repeat))
    figures = asyncio.run(measure(names, sizes))
    print(json.dumps(as_json(figures)) if arguments.json else as_table(figures))


if __name__ == "__main__":
    main()
