"""The program of ``Local``'s child process: one GGUF model behind llama.cpp's HTTP server.

It reads one line of JSON from its standard input, the settings; writes one to its standard output,
the address, when the model is loaded; and ends when its input does, which happens when the parent
ends, however that comes about. It imports nothing of this package, so that it starts quickly.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import threading
import time
from typing import Any

_PARENT_PAUSE = 1.0


def _follow_parent() -> None:
    """End with the parent: when its pipe closes, or, should another process hold that, when it is gone."""
    parent = os.getppid()

    def watch_pipe() -> None:
        while os.read(0, 4096):
            pass
        os._exit(0)

    def watch_process() -> None:
        while os.getppid() == parent:
            time.sleep(_PARENT_PAUSE)
        os._exit(0)

    threading.Thread(target=watch_pipe, daemon=True).start()
    threading.Thread(target=watch_process, daemon=True).start()


def main() -> None:
    """Load the model, say where it answers, and serve until the parent ends."""
    settings: dict[str, Any] = json.loads(sys.stdin.buffer.readline())
    report = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the engine prints must not stand among the reports
    _follow_parent()
    engine: Any = importlib.import_module("xllamacpp")
    params = engine.CommonParams()
    params.model.path = settings["path"]
    params.model_alias = {settings["name"]}
    params.api_keys = [settings["key"]]
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.ui = False
    params.verbosity = 1
    params.n_ctx = settings["context_window"]
    params.n_parallel = settings["parallel"]
    params.n_gpu_layers = settings["gpu_layers"]
    params.cpuparams.n_threads = settings["threads"]
    params.cpuparams_batch.n_threads = settings["threads"]
    server = engine.Server(params)
    json.dump({"address": server.listening_address}, report)
    report.write("\n")
    report.flush()
    threading.Event().wait()


if __name__ == "__main__":
    main()
