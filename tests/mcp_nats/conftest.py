"""A NATS server that the tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from mcp_nats.broker import BrokerServer


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerServer]:
    """A server with the default settings."""
    with BrokerServer(tmp_path_factory.mktemp("nats")) as server:
        yield server
