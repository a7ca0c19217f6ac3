"""The command that the conformance suite starts: hands its task to the test, and ends as that did.

The suite starts as many at once as it has scenarios, and loading everything would cost each of them more than
the scenario itself.
"""

from __future__ import annotations

import json
import os
import socket
import sys


def main() -> int:
    """Send the address, the scenario and its context to a port; returns the exit code that comes back."""
    port, url = sys.argv[1:]
    task = {
        "url": url,
        "scenario": os.environ["MCP_CONFORMANCE_SCENARIO"],
        "context": json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}")),
    }
    with socket.create_connection(("127.0.0.1", int(port))) as connection:
        connection.sendall(json.dumps(task).encode() + b"\n")
        return int(connection.recv(16))


if __name__ == "__main__":
    sys.exit(main())
