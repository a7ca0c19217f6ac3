"""An MCP server over stdio that has a child of its own: ``server_with_family.py TOKEN``.

TOKEN stands on the command lines of both, so that a test finds them in the table of processes.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys

from mcp.server import MCPServer
from mcp.server.mcpserver import Context

TOKEN = sys.argv[1]

server = MCPServer("family")
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)", TOKEN], stdin=subprocess.DEVNULL)


@server.tool()
def who() -> str:
    """Tell the processes."""
    return f"{os.getpid()} {child.pid}"


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
async def stick(context: Context) -> str:
    """Begin, and never end."""
    await context.report_progress(1)
    await asyncio.Event().wait()
    return "never"


if __name__ == "__main__":
    server.run("stdio")
