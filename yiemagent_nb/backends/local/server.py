"""The child process in which ``Local`` runs its model."""

from __future__ import annotations

import contextlib
import json
import secrets
import subprocess
import sys
import threading
import weakref
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from yiemagent_nb.core.errors import BackendTimeoutError, ServerError
from yiemagent_nb.core.reading.server_errors import quote

__all__ = ["LocalServer"]

_PROGRAM = Path(__file__).with_name("child.py")
_LAST_LINES = 12
_PATIENCE = 3.0
_MOMENT = 1.0


class LocalServer:
    """One child process with one model. It ends with this process, and when it is closed.

    Args:
        settings: What the child is told: the model's path and name, threads, context.
        start_timeout: Seconds that loading may take.
    """

    def __init__(self, settings: Mapping[str, Any], start_timeout: float) -> None:
        self.key = SecretStr(secrets.token_urlsafe(24))
        self.address = ""
        self._settings = settings
        self._start_timeout = start_timeout
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._words: deque[str] = deque(maxlen=_LAST_LINES)

    @property
    def alive(self) -> bool:
        """Whether the model is loaded and its process runs."""
        return bool(self.address) and self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int | None:
        """The child's process id while it runs."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def start(self) -> str:
        """Start the process if none runs, wait until the model is loaded, and return the address.

        It blocks; any thread may call it.

        Raises:
            ServerError: The process ended instead; the error has its last words.
            BackendTimeoutError: Loading took too long.
        """
        with self._lock:
            if not self.alive:
                self._start()
            return self.address

    def await_end(self) -> None:
        """Wait a moment for a process whose connection broke: it may be ending, and seem alive still."""
        process = self._process
        if process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_MOMENT)

    def close(self) -> None:
        """End the process. A later ``start`` starts another."""
        with self._lock:
            process, self._process, self.address = self._process, None, ""
        if process is not None:
            _end(process)

    def _start(self) -> None:
        self.address = ""
        self._words.clear()
        process = subprocess.Popen(  # noqa: S603 - our own program, by this interpreter
            # -P: the folder of the program has modules whose names would hide the standard library's.
            [sys.executable, "-P", str(_PROGRAM)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C at the parent's terminal is not meant for it
        )
        self._process = process
        weakref.finalize(self, _end, process)
        reported = threading.Event()
        threading.Thread(target=self._listen, args=(process, reported), daemon=True).start()
        threading.Thread(target=self._keep_words, args=(process,), daemon=True).start()
        assert process.stdin is not None  # noqa: S101 - a pipe was asked for
        try:
            process.stdin.write(json.dumps({**self._settings, "key": self.key.get_secret_value()}).encode() + b"\n")
            process.stdin.flush()
        except OSError:
            reported.wait(_PATIENCE)
        in_time = reported.wait(self._start_timeout)
        if self.address:
            return
        _end(process)
        name = self._settings["name"]
        if not in_time:
            raise BackendTimeoutError(
                f"The model {name!r} was not loaded within {self._start_timeout:g} seconds.",
                "Use a smaller model or context_window, or allow more with start_timeout.",
            )
        words = quote(" ".join(self._words)) or "nothing"
        raise ServerError(
            f'The process that loads the model {name!r} ended with code {process.returncode}. It said: "{words}".',
            "Check that the file is whole and that there is enough memory for it and its context_window.",
        )

    def _listen(self, process: subprocess.Popen[bytes], reported: threading.Event) -> None:
        assert process.stdout is not None  # noqa: S101
        line = process.stdout.readline()
        if line:
            self.address = json.loads(line)["address"]
        else:
            process.wait()
        reported.set()

    def _keep_words(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stderr is not None  # noqa: S101
        for line in process.stderr:
            self._words.append(line.decode("utf-8", "replace").strip())


def _end(process: subprocess.Popen[bytes]) -> None:
    """Close the child's input, which ends it; kill it if it does not hear."""
    if process.stdin is not None and not process.stdin.closed:
        try:
            process.stdin.close()
        except OSError:
            process.kill()  # its end of the pipe is gone, and soon it is too
    try:
        process.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
