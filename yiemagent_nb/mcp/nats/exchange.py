"""Exchange: one request of a caller in the stateless form, from its frames to its result."""

from __future__ import annotations

import asyncio
import math
import sys
import time
from collections.abc import Coroutine, Mapping
from typing import TYPE_CHECKING, Any

from yiemagent_nb.core.errors import McpConnectionError, McpError, describe_error
from yiemagent_nb.mcp.link import Inbox, OnProgress, Progress
from yiemagent_nb.mcp.links.callable import read_envelope
from yiemagent_nb.mcp.nats.connecting import Broker
from yiemagent_nb.mcp.nats.frames import (
    BUSY,
    PERIOD,
    REQUEST_ID,
    STOPPING,
    WORKER,
    Assembly,
    Frame,
    FrameError,
    Kind,
    as_object,
    read_frame,
    read_message,
    write_frames,
    write_message,
)

if TYPE_CHECKING:
    from nats.aio.msg import Msg

__all__ = ["QUESTIONS", "Exchange", "PlainAnswerError"]

FIRST_SECONDS = 5.0
"""How long a worker may take to say that it took a request."""

SILENT_PERIODS = 3
"""How many signs of life may be missing before a worker counts as dead."""

DOWN_SECONDS = 30.0
"""How long a request waits for a connection that is being made again."""

TICK = 0.2
"""How often a waiting request looks after its connection and its worker, in seconds."""

MAX_BYTES = 256 * 1024 * 1024
"""The largest message that is taken from a worker."""

MAX_QUESTIONS = 16
"""How many questions of one request may be open at once."""

QUESTIONS = ("sampling/createMessage", "elicitation/create", "roots/list")
"""What a server may ask its client."""


class PlainAnswerError(Exception):
    """The request was answered in the plain form; ``payload`` is the answer."""

    def __init__(self, payload: bytes) -> None:
        super().__init__("the answer is a plain one")
        self.payload = payload


class Vigil:
    """Watches over one request: its connection, what the account may do, and the other side's signs of life.

    Args:
        broker: The connection.
        what: The method, to show.
        subjects: Those that the account must be allowed to use.
    """

    def __init__(self, broker: Broker, what: str, *subjects: str) -> None:
        self._broker = broker
        self._what = what
        self.subjects = list(subjects)
        self._began = self._looked = self._heard = time.monotonic()
        self._connected = self._began
        self._reconnects: int = broker.reconnects
        self.interrupted: bool = False
        """Whether the connection broke since the request was sent."""

    def hear(self) -> None:
        """The other side gave a sign of life."""
        self._heard = self._looked = self._connected = time.monotonic()

    def look(self, allowed: float | None, silence: str) -> None:
        """Look whether there is still something to wait for.

        Args:
            allowed: Seconds of silence that are allowed; None where there need be no signs of life.
            silence: What a longer silence means.

        Raises:
            McpConnectionError: There is not.
        """
        now = time.monotonic()
        client = self._broker.client
        late = now - self._looked > 5 * TICK  # something held the event loop: frames may wait to be read
        self._looked = now
        if client.is_closed:
            raise McpConnectionError(f"The connection to NATS was closed during {self._what}.")
        for subject in self.subjects:
            refusal = self._broker.refusal(subject, self._began)
            if refusal is not None:
                raise refusal
        if not client.is_connected:
            self.interrupted = True
            if now - self._connected > DOWN_SECONDS:
                raise McpConnectionError(
                    f"The connection to NATS broke during {self._what} and was not there again within "
                    f"{DOWN_SECONDS:g} seconds.",
                    "Whether the request was carried out is not known.",
                )
            return
        self._connected = now
        if late or self._broker.reconnects != self._reconnects:
            self.interrupted = self.interrupted or self._broker.reconnects != self._reconnects
            self._reconnects = self._broker.reconnects
            self._heard = now
        elif allowed is not None and now - self._heard > allowed:
            if self.interrupted:
                silence = (
                    f"The connection to NATS broke during {self._what}, and the other side was silent after it: the "
                    "answer is lost"
                )
            raise McpConnectionError(f"{silence}.", "Whether the request was carried out is not known.")


class Exchange:
    """One request and what comes back.

    Args:
        broker: The connection.
        topic: The topic of the service.
        reply: The subject on which the answers are heard.
        inbox: Answers questions and takes notifications.
        request_id: The request's id.
    """

    def __init__(self, broker: Broker, topic: str, reply: str, inbox: Inbox, request_id: str) -> None:
        self._broker = broker
        self._topic = topic
        self._reply = reply
        self._inbox = inbox
        self._request_id = request_id
        self._arrived: asyncio.Queue[Msg | McpError] = asyncio.Queue()
        self._assemblies: dict[Kind, Assembly] = {}
        self._worker: str | None = None
        self.control = ""
        """The control subject; empty until a worker accepted the request."""
        self._period: float | None = None
        self._on_progress: OnProgress | None = None
        self._answering: set[asyncio.Task[None]] = set()
        self._writing = asyncio.Lock()

    def put(self, message: Msg | McpError) -> None:
        """Take a message that arrived, or why none will."""
        self._arrived.put_nowait(message)

    async def run(
        self, message: Mapping[str, Any], headers: dict[str, str], on_progress: OnProgress | None, vigil: Vigil
    ) -> dict[str, Any]:
        """Send the request and wait for its result.

        Raises:
            PlainAnswerError: A responder of the plain form answered.
            McpError: The answer is an error, or none.
            McpConnectionError: Nobody is there, or no longer.
        """
        self._on_progress = on_progress
        method = str(message["method"])
        try:
            whole = _written(message)
            cut = write_frames(
                Kind.REQUEST,
                whole,
                limit=self._broker.client.max_payload,
                headers={REQUEST_ID: self._request_id, **headers},
            )
            payload, first = next(cut)
            self._inbox.log.message("out", message, whole)
            await self._broker.publish(self._topic, payload, reply=self._reply, headers=first)
            while True:
                frame, offered = await self._next(vigil, method)
                if frame.kind is Kind.ACCEPTED:
                    if self._accept(frame, offered):
                        vigil.subjects.append(self.control)
                        for payload, further in cut:
                            await self._broker.publish(self.control, payload, headers=further)
                elif self._is_ours(frame) and (result := self._take(frame, method)) is not None:
                    return result
        except FrameError as error:
            raise McpError(f"The service on {self._topic} sent a frame that is none: {error}.") from error
        finally:
            for task in self._answering:
                task.cancel()

    async def _next(self, vigil: Vigil, method: str) -> tuple[Frame, str]:
        """The next frame and its reply subject."""
        while True:
            try:
                async with asyncio.timeout(TICK):
                    arrived = await self._arrived.get()
            except TimeoutError:
                allowed, silence = self._patience(method)
                vigil.look(allowed, silence)
                continue
            if isinstance(arrived, McpError):
                raise arrived
            vigil.hear()
            if arrived.headers is not None and arrived.headers.get("Status") == "503":
                raise no_responders(self._topic)
            frame = read_frame(arrived.headers, arrived.data)
            if frame is None or frame.kind is Kind.REQUEST:  # a responder that sends the request's headers back
                raise PlainAnswerError(arrived.data)
            return frame, arrived.reply

    def _patience(self, method: str) -> tuple[float, str]:
        if self._period is None:
            return FIRST_SECONDS, f"No worker on {self._topic} took {method} within {FIRST_SECONDS:g} seconds"
        seconds = self._period * SILENT_PERIODS
        return seconds, f"The worker on {self._topic} died during {method}: it was silent for {seconds:g} seconds"

    def _accept(self, frame: Frame, control: str) -> bool:
        """Bind the exchange to the worker that accepted first; returns whether this one did."""
        worker = frame.headers.get(WORKER, "")
        if not control.startswith(f"{self._topic}.control.") or not control.isprintable() or " " in control:
            raise FrameError("the control subject is not one of the topic's")
        if self._worker is not None:
            if worker != self._worker:
                self._start(self.cancel(control))
            return False
        period = frame.seconds(PERIOD)
        self._worker, self.control = worker, control
        self._period = min(max(period or 2.0, 0.05), 60.0)
        self._inbox.log.frame("in", Kind.ACCEPTED, f"The worker {worker} took the request {self._request_id}.")
        return True

    def _is_ours(self, frame: Frame) -> bool:
        """Whether the frame is from the worker that took the request."""
        return self._worker is None or frame.headers.get(WORKER, "") == self._worker

    def _take(self, frame: Frame, method: str) -> dict[str, Any] | None:
        if frame.kind not in (Kind.NOTIFICATION, Kind.QUESTION, Kind.END):
            return None
        whole = self._assemblies.setdefault(frame.kind, Assembly(MAX_BYTES)).add(frame)
        if whole is None:
            return None
        message = read_message(whole)
        self._inbox.log.message("in", message, whole)
        if frame.kind is Kind.END:
            return read_result(message, method)
        name, params = message.get("method"), as_object(message.get("params", {}))
        if not isinstance(name, str) or params is None:
            raise FrameError("a notification or a question has no method, or params that are no object")
        if frame.kind is Kind.QUESTION:
            self._start(self._answer(message.get("id"), name, params))
        elif name == "notifications/progress":
            self._report(params)
        elif name.startswith("notifications/"):
            self._inbox.notified(name, params)
        return None

    def _report(self, params: dict[str, Any]) -> None:
        progress, text = _number(params.get("progress")), params.get("message")
        if self._on_progress is not None and progress is not None:
            total = _number(params.get("total"))
            self._on_progress(Progress(progress, total, text if isinstance(text, str) else None))

    # Towards the worker

    def _start(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(coroutine)
        self._answering.add(task)
        task.add_done_callback(self._answered)

    def _answered(self, task: asyncio.Task[None]) -> None:
        self._answering.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self.put(error if isinstance(error, McpError) else McpError(f"A question failed: {describe_error(error)}."))

    async def _answer(self, question_id: object, method: str, params: dict[str, Any]) -> None:
        response: dict[str, Any] = {"jsonrpc": "2.0", "id": question_id}
        try:
            response["result"] = await self._requested(method, params)
            payload = write_message(response)
        except McpError as error:
            response["error"] = {"code": error.rpc_code, "message": error.message}
            payload = write_message(response)
        except ValueError as error:
            del response["result"]
            response["error"] = {"code": -32603, "message": f"The answer cannot be sent: {error}."}
            payload = write_message(response)
        self._inbox.log.message("out", response, payload)
        async with self._writing:  # pieces of two answers must not mix
            for piece, headers in write_frames(
                Kind.ANSWER, payload, limit=self._broker.client.max_payload, headers={REQUEST_ID: self._request_id}
            ):
                await self._broker.publish(self.control, piece, headers=headers)

    async def _requested(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if len(self._answering) > MAX_QUESTIONS:
            raise McpError(f"More than {MAX_QUESTIONS} questions are open.")
        if method not in QUESTIONS or not self._inbox.answers(method):
            raise McpError(f"The client does not answer {method[:100]}.", rpc_code=-32601)
        return await self._inbox.requested(method, params)

    async def cancel(self, control: str) -> None:
        """Tell a worker that nobody waits any more."""
        self._inbox.log.frame("out", Kind.CANCEL, f"Nobody waits for the request {self._request_id} any more.")
        for payload, headers in write_frames(
            Kind.CANCEL, limit=self._broker.client.max_payload, headers={REQUEST_ID: self._request_id}
        ):
            await self._broker.publish(control, payload, headers=headers)


def no_responders(topic: str) -> McpConnectionError:
    """Nobody serves the topic."""
    return McpConnectionError(
        f"Nobody serves {topic} on NATS.", "Start a worker there (serve_on_nats), or check the topic and the account."
    )


def read_result(message: Mapping[str, Any], method: str) -> dict[str, Any]:
    """The result in a JSON-RPC response.

    Raises:
        McpError: It holds an error, or nothing.
    """
    if as_object(message.get("error")) is None and as_object(message.get("result")) is None:
        raise McpError(f"The answer to {method} has neither a result nor an error that is an object.")
    try:
        return read_envelope(message, method)
    except McpError as error:
        if error.rpc_code == STOPPING:
            raise McpConnectionError(error.message, "Another worker may take it.", data=error.data) from error
        if error.rpc_code == BUSY:
            raise McpError(error.message, "Try again later.", rpc_code=BUSY, data=error.data) from error
        raise


def _written(message: Mapping[str, Any]) -> bytes:
    try:
        return write_message(message)
    except ValueError as error:
        raise McpError(f"The request cannot be sent: {error}.", rpc_code=-32602) from error


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > sys.float_info.max:
        return None
    return None if math.isnan(value) else float(value)
