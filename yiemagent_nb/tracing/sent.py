"""Sent: what one call of the model was given, and what came of it, whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from yiemagent_nb.core.errors import InvalidParametersError
from yiemagent_nb.core.exchange import Exchange
from yiemagent_nb.core.messages import AssistantMessage
from yiemagent_nb.tracing.requests import StoredRequest
from yiemagent_nb.tracing.rows import Row

__all__ = ["Sent", "sent_of"]


@dataclass(frozen=True, slots=True)
class Sent:
    """A request, the exchange that it belongs to, and its answer, if there is one yet."""

    exchange: Exchange
    request: StoredRequest
    answer: AssistantMessage | None

    @property
    def messages(self) -> list[Mapping[str, Any]]:
        """What was sent, whole; made anew each time."""
        return self.request.messages


def sent_of(row: Row) -> Sent:
    """The request of a row that its message was read from; the last one where that is not known.

    Raises:
        InvalidParametersError: It is no call of the model, nothing was sent, or what was sent was let go.
    """
    if row.kind != "model":
        raise InvalidParametersError(
            f"Row {row.number} is a {row.kind}; only calls of the model have a request.", "Choose one of those."
        )
    if row.body is None:
        raise InvalidParametersError(
            f"What row {row.number} sent was let go: the trace holds no more.", "Choose a newer one."
        )
    body = row.model
    if not body.exchanges:
        raise InvalidParametersError(f"Row {row.number} sent nothing: it was stopped, or a hook failed, before that.")
    return Sent(body.exchanges[body.used], body.requests[body.used], body.answer)
