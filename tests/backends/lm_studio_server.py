"""LM Studio's server as its documents and its bug tracker describe it, over a real loopback socket.

It keeps models on a disk and instances in memory. Its habits, with the places that tell of them:

- ``GET /api/v1/models`` and ``POST /api/v1/models/load``, ``/unload`` from 0.4 on, ``GET
  /api/v0/models`` from 0.3 on, ``GET /v1/models`` always, which lists what is loaded, or with
  Just-in-Time loading all that is there (documentation, "REST API", "List Models").
- A path that it does not know is answered with status 200 and an ``error`` string (tracker 618).
- Loading takes no field that it does not know, and what is loaded is loaded once more as ``NAME:2``
  (tracker 1582).
- ``tool_choice`` must be a word (tracker 670), ``response_format`` no ``json_object``; the Responses
  endpoint ignores ``text.format`` (tracker 1396).
- A prompt that is too long is an error string or an answer without text (trackers 237 and 2339).
- With authentication on, each request needs a token (documentation, "Authentication").
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Self, cast

__all__ = ["Disk", "LMStudioServer", "Request"]

DEFAULT_CONTEXT = 4096
LOAD_FIELDS = frozenset(
    {
        *("model", "context_length", "eval_batch_size", "flash_attention", "num_experts"),
        *("offload_kv_cache_to_gpu", "echo_load_config"),
    }
)
NO_MODELS = "No models loaded. Please load a model in the developer page or use the 'lms load' command."
NO_ROOM = (
    "Model loading was stopped due to insufficient system resources. Under the current settings, this model requires "
    "approximately 273.25 GB of memory, and continuing to load it would likely overload your system and cause it to "
    "freeze. If you think this is incorrect, you can adjust the model loading guardrails in settings."
)


@dataclass
class Disk:
    """A model on the disk. ``reasoning`` lists its public settings; ``fits`` says whether it can be loaded."""

    key: str
    kind: Literal["llm", "embedding"] = "llm"
    name: str = ""
    max_context: int = 131_072
    vision: bool = False
    tools: bool = True
    reasoning: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    fits: bool = True


class Request(NamedTuple):
    method: str
    path: str
    headers: Mapping[str, str]
    body: Any


@dataclass
class Reply:
    status: int
    body: Any
    events: list[Any] = field(default_factory=list[Any])


class LMStudioServer:
    """One server.

    Args:
        disk: What is downloaded.
        loaded: Instances in memory: their ids, the keys of their models, their context.
        version: The API that it has: 4 for 0.4 (v1), 3 for 0.3 (v0), 2 for older ones.
        jit: Whether a request loads a model that is not in memory.
        token: What requests must carry.
        load_failure: The status of a loading that fails for want of memory.
        overflow: Whether a prompt that is too long is an ``error``, or ``silent``.

    Attributes:
        memory: Instances in memory: (key, context) by id.
        requests: All that was asked.
        gate: Loading waits for it.
        loading: Set as soon as a loading waits for the gate.
        abandoned: Set when a client goes while its loading waits.
        broken: What chat completions fail with, in place of an answer: (status, message).
        load_answer: What loading answers in place of its own answer.
    """

    def __init__(
        self,
        *disk: Disk,
        loaded: Mapping[str, tuple[str, int]] | None = None,
        version: int = 4,
        jit: bool = True,
        token: str = "",
        load_failure: int = 500,
        overflow: Literal["error", "silent"] = "error",
    ) -> None:
        self.disk = {model.key: model for model in disk}
        self.memory = dict(loaded or {})
        self.version = version
        self.jit = jit
        self.token = token
        self.load_failure = load_failure
        self.overflow = overflow
        self.requests: list[Request] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.loading = asyncio.Event()
        self.abandoned = asyncio.Event()
        self.broken: tuple[int, str] | None = None
        self.load_answer: Any = None
        self.base_url = ""
        self._clients: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.base_url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._clients:
            task.cancel()
        await asyncio.gather(*self._clients, return_exceptions=True)

    @property
    def asked(self) -> list[str]:
        """The paths that were asked, in order."""
        return [request.path for request in self.requests]

    def bodies(self, path: str) -> list[Any]:
        """What was sent to a path."""
        return [request.body for request in self.requests if request.path == path]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._clients.add(task)
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
                raw = await reader.readexactly(int(headers.get("content-length", "0")))
                method, path, _ = head[0].split(" ")
                request = Request(method, path, headers, json.loads(raw) if raw else None)
                self.requests.append(request)
                reply = await self._reply(request, reader)
                if reply is None:
                    break
                writer.write(_encode(reply))
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client has gone, or the server is closed
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    async def _reply(self, request: Request, reader: asyncio.StreamReader) -> Reply | None:
        if self.token and request.headers.get("authorization") != f"Bearer {self.token}":
            words = (
                "An LM Studio API token is required to make requests to this server, but none was provided using the "
                "Authorization header using the 'Bearer' scheme (i.e., 'Authorization: Bearer $LM_API_TOKEN')."
            )
            return _error(401, words, "invalid_request", code="invalid_api_key")
        method, path, _, body = request
        routes: dict[tuple[str, str], tuple[int, Callable[[], Reply | Awaitable[Reply | None]]]] = {
            ("GET", "/v1/models"): (2, lambda: Reply(200, {"object": "list", "data": self._open()})),
            ("GET", "/api/v0/models"): (3, lambda: Reply(200, {"object": "list", "data": self._v0()})),
            ("GET", "/api/v1/models"): (
                4,
                lambda: Reply(200, {"models": [self._v1(model) for model in self.disk.values()]}),
            ),
            ("POST", "/api/v1/models/load"): (4, lambda: self._load(body, reader)),
            ("POST", "/api/v1/models/unload"): (4, lambda: self._unload(body)),
            ("POST", "/v1/chat/completions"): (2, lambda: self._chat(body)),
            ("POST", "/v1/responses"): (3, lambda: self._respond(body)),
        }
        version, answer = routes.get((method, path), (self.version + 1, None))
        if answer is None or self.version < version:
            return Reply(200, {"error": f"Unexpected endpoint or method. ({method} {path})"})
        reply = answer()
        return reply if isinstance(reply, Reply) else await reply

    def _names(self) -> list[str]:
        """Instances under their ids, and what is not in memory under its key."""
        in_memory = {key for key, _ in self.memory.values()}
        return [*self.memory, *(key for key in self.disk if key not in in_memory)]

    def _open(self) -> list[dict[str, str]]:
        return [{"id": name, "object": "model"} for name in (self._names() if self.jit else self.memory)]

    def _v0(self) -> list[dict[str, Any]]:
        return [self._v0_entry(name) for name in self._names()]

    def _v0_entry(self, name: str) -> dict[str, Any]:
        key, context = self.memory.get(name, (name, None))
        model = self.disk[key]
        kind = "embeddings" if model.kind == "embedding" else "vlm" if model.vision else "llm"
        state = {"state": "not-loaded"} if context is None else {"state": "loaded", "loaded_context_length": context}
        return {
            "id": name,
            "object": "model",
            "type": kind,
            "publisher": "test",
            "compatibility_type": "gguf",
            **state,
            "max_context_length": model.max_context,
            "capabilities": ["tool_use"] if model.tools else [],
        }

    def _v1(self, model: Disk) -> dict[str, Any]:
        entry: dict[str, Any] = {
            "type": model.kind,
            "publisher": "test",
            "key": model.key,
            "display_name": model.name or model.key,
            "quantization": {"name": "Q4_K_M", "bits_per_weight": 4},
            "size_bytes": 1_000_000,
            "params_string": None,
            "loaded_instances": [
                {"id": name, "config": {"context_length": context}}
                for name, (key, context) in self.memory.items()
                if key == model.key
            ],
            "max_context_length": model.max_context,
            "format": "gguf",
        }
        if model.kind == "llm":
            can: dict[str, Any] = {"vision": model.vision, "trained_for_tool_use": model.tools}
            if model.reasoning:
                can["reasoning"] = {"allowed_options": list(model.reasoning), "default": model.reasoning[-1]}
            entry["capabilities"] = can
        if model.variants:
            entry |= {"variants": list(model.variants), "selected_variant": model.variants[0]}
        return entry

    async def _load(self, body: dict[str, Any], reader: asyncio.StreamReader) -> Reply | None:
        if unknown := body.keys() - LOAD_FIELDS:
            return _error(400, f"Unrecognized key(s) in object: {sorted(unknown)}", "invalid_request")
        model = self._find(body["model"])
        if model is None:
            return _error(404, f"Model not found: {body['model']}", "model_not_found")
        if not self.gate.is_set():
            opened, gone = asyncio.ensure_future(self.gate.wait()), asyncio.ensure_future(reader.read(1))
            self.loading.set()
            await asyncio.wait({opened, gone}, return_when=asyncio.FIRST_COMPLETED)
            if gone.done():
                opened.cancel()
                self.abandoned.set()
                return None
            gone.cancel()
            await asyncio.gather(gone, return_exceptions=True)
        if not model.fits:
            words = f'Failed to load model "{model.key}". Error: {NO_ROOM}'
            return _error(self.load_failure, words, "model_load_failed")
        if self.load_answer is not None:
            return Reply(200, self.load_answer)
        name, context = self._keep(model, body.get("context_length"))
        loaded = {"type": model.kind, "instance_id": name, "load_time_seconds": 9.099, "status": "loaded"}
        config = {"load_config": {"context_length": context}} if body.get("echo_load_config") else {}
        return Reply(200, {**loaded, **config})

    def _unload(self, body: dict[str, Any]) -> Reply:
        name = body["instance_id"]
        if self.memory.pop(name, None) is None:
            return _error(404, f"Model instance not found: {name}", "model_not_found")
        return Reply(200, {"instance_id": name})

    def _find(self, name: str) -> Disk | None:
        return next((model for model in self.disk.values() if name == model.key or name in model.variants), None)

    def _keep(self, model: Disk, context: int | None) -> tuple[str, int]:
        name, number = model.key, 1
        while name in self.memory:
            number += 1
            name = f"{model.key}:{number}"
        self.memory[name] = (model.key, min(context or DEFAULT_CONTEXT, model.max_context))
        return name, self.memory[name][1]

    def _instance(self, name: str) -> str | Reply:
        """The instance that answers: by its id, else by its model's key, else loaded on request."""
        if name in self.memory:
            return name
        for instance, (key, _) in self.memory.items():
            if key == name:
                return instance
        if not self.jit:
            return _error(404, NO_MODELS, "invalid_request_error", param="model", code=None)
        model = self._find(name)
        if model is None:
            shown = ", ".join(self.disk)
            words = f'Invalid model identifier "{name}". Please specify a valid downloaded model (e.g., {shown}).'
            return _error(400, words, "invalid_request_error", param="model", code="model_not_found")
        if not model.fits:
            words = f'Failed to load model "{name}". Error: {NO_ROOM}'
            return _error(404, words, "invalid_request_error", param="model", code="model_not_found")
        return self._keep(model, None)[0]

    def _chat(self, body: dict[str, Any]) -> Reply:
        if self.broken is not None:
            return Reply(self.broken[0], {"error": self.broken[1]})
        if not isinstance(body.get("tool_choice", "auto"), str):
            words = "Invalid tool_choice type: 'object'. Supported string values: none, auto, required"
            return Reply(400, {"error": words})
        if cast("dict[str, Any]", body.get("response_format") or {}).get("type") == "json_object":
            return Reply(400, {"error": "'response_format.type' must be 'json_schema' or 'text'"})
        name = self._instance(body["model"])
        if isinstance(name, Reply):
            return name
        context = self.memory[name][1]
        count = sum(len(str(message.get("content"))) // 4 for message in body["messages"])
        fits = count < context
        if not fits and self.overflow == "error":
            words = (
                f"Trying to keep the first {count} tokens when context the overflows. However, the model is loaded "
                f"with context length of only {context} tokens, which is not enough. Try to load the model with a "
                "larger context length, or provide a shorter input"
            )
            return Reply(400, {"error": words})
        return _answer(name, count, fits, body)

    def _respond(self, body: dict[str, Any]) -> Reply:
        name = self._instance(body["model"])
        if isinstance(name, Reply):
            return name
        text: dict[str, Any] = {"type": "output_text", "text": "Hello", "annotations": []}
        item: dict[str, Any] = {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [text],
        }
        usage = {"input_tokens": 3, "output_tokens": 1, "total_tokens": 4}
        response = {"id": "resp_1", "object": "response", "model": name, "status": "completed", "usage": usage}
        if not body.get("stream"):
            return Reply(200, {**response, "output": [item]})
        place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
        events: list[Any] = [
            {"type": "response.created", "response": {**response, "status": "in_progress", "output": []}},
            {"type": "response.output_text.delta", **place, "delta": "Hello"},
            {"type": "response.completed", "response": {**response, "output": [item]}},
        ]
        return Reply(200, None, events)


def _answer(name: str, count: int, fits: bool, body: dict[str, Any]) -> Reply:
    text = "Hello" if fits else ""
    usage = {"prompt_tokens": count, "completion_tokens": int(fits), "total_tokens": count + int(fits)}
    head = {"id": "chatcmpl-1", "created": 1_796_000_000, "model": name}
    if not body.get("stream"):
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        return Reply(200, {**head, "object": "chat.completion", "choices": [choice], "usage": usage})
    deltas: list[tuple[dict[str, str], str | None]] = [({"role": "assistant", "content": ""}, None), ({}, "stop")]
    if text:
        deltas.insert(1, ({"content": text}, None))
    head["object"] = "chat.completion.chunk"
    chunks: list[Any] = [
        {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]} for delta, finish in deltas
    ]
    if cast("dict[str, Any]", body.get("stream_options") or {}).get("include_usage"):
        chunks.append({**head, "choices": [], "usage": usage})
    return Reply(200, None, [*chunks, "[DONE]"])


def _error(status: int, message: str, kind: str, **more: str | None) -> Reply:
    return Reply(status, {"error": {"message": message, "type": kind, **more}})


def _encode(reply: Reply) -> bytes:
    if reply.events:
        lines = [each if isinstance(each, str) else json.dumps(each) for each in reply.events]
        content, media_type = "".join(f"data: {line}\n\n" for line in lines).encode(), "text/event-stream"
    else:
        content, media_type = json.dumps(reply.body).encode(), "application/json; charset=utf-8"
    head = f"HTTP/1.1 {reply.status} X\r\ncontent-type: {media_type}\r\ncontent-length: {len(content)}\r\n\r\n"
    return head.encode() + content
