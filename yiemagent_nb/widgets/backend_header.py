"""BackendHeader: what the header of a widget shows of the backend, and what a person does there."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from yiemagent_nb.backends.kinds import KINDS
from yiemagent_nb.core.backend import Calling
from yiemagent_nb.core.errors import InvalidParametersError, describe_error
from yiemagent_nb.core.events import BackendChanged, Event
from yiemagent_nb.core.models import THINKING_LEVELS
from yiemagent_nb.widgets.backend_picker import BackendPicker
from yiemagent_nb.widgets.backend_watch import BackendWatch
from yiemagent_nb.widgets.protocol import (
    AddBackend,
    CheckBackend,
    PageMessage,
    SetBackend,
    SetModel,
    SetOptions,
    SetThinking,
)
from yiemagent_nb.widgets.sampling import sampling_form, set_sampling
from yiemagent_nb.widgets.texts import one_line
from yiemagent_nb.widgets.thinking import thinking_form

if TYPE_CHECKING:
    from yiemagent_nb.core.agent import Agent

__all__ = ["BackendHeader"]

LONGEST_NOTE = 300

_log = logging.getLogger(__name__)

_EMPTY: dict[str, Any] = {
    "label": "",
    "choices": [],
    "key": "",
    "note": "",
    "health": {"state": "unknown", "message": "", "hint": ""},
    "models": [],
    "model": "",
    "window": None,
    "options": {},
    "options_note": "",
    "thinking": {"level": "off", "levels": list(THINKING_LEVELS), "note": ""},
}

Later = Coroutine[Any, Any, None]
"""What is to be awaited before a request is answered."""


class BackendHeader:
    """The backend, its models, its state, the thinking level and the sampling parameters of an agent.

    Args:
        agent: The agent.
        changed: Called when ``form`` says something new, from any thread.
    """

    def __init__(self, agent: Agent, changed: Callable[[], None]) -> None:
        self._agent = agent
        self.picker = BackendPicker(agent, self._found)
        self.watch = BackendWatch(agent, changed)
        self._changed = changed
        self._greeted = False

    def form(self) -> dict[str, Any]:
        """What the page shows; of a backend that makes one of the parts fail, that it does."""
        shown: dict[str, Any] = {**_EMPTY, "presets": _presets()}
        parts: tuple[Callable[[], dict[str, Any]], ...] = (
            self.picker.form,
            self.watch.form,
            lambda: sampling_form(self._agent),
            lambda: {"thinking": thinking_form(self._agent)},
        )
        for part in parts:
            try:
                shown |= part()
            except Exception as error:  # a backend of the user's own may raise anything
                _log.exception("a part of the header failed")
                shown["note"] = one_line(f"Not all of this backend can be shown: {describe_error(error)}", LONGEST_NOTE)
        return shown

    def greet(self) -> None:
        """A page is there: look on this machine, and nowhere else."""
        self._greeted = True
        self.picker.look()
        self.watch.glance()

    def observe(self, event: Event) -> None:
        """Keep up with the agent."""
        if isinstance(event, BackendChanged):
            if self._greeted:
                self.watch.glance()
            self._changed()
        else:
            self.watch.observe(event)

    def handle(self, message: PageMessage, buffers: Sequence[Any] = ()) -> Later | bool:
        """Do what a person asks of the backend; from any thread.

        Returns:
            Whether it was asked of the backend; or what is to be awaited first, on any event loop.

        Raises:
            YiemAgentError: It cannot be done.
        """
        match message:
            case SetBackend():
                self.picker.choose(message.key)
                self.watch.check()
            case SetModel():
                self._set_model(message.model)
            case SetThinking():
                self._agent.set_thinking_level(message.level)
            case SetOptions():
                set_sampling(self._agent, message.options)
            case CheckBackend():
                self.picker.look_around()
                self.watch.check()
            case AddBackend():
                return self._add(message, buffers)
            case _:
                return False
        return True

    def close(self) -> None:
        """Tell nothing more."""
        self.picker.close()
        self.watch.close()

    def _found(self) -> None:
        if self._greeted:
            self.watch.glance()
        self._changed()

    def _set_model(self, model: str) -> None:
        if not Calling.of(self._agent.llm_call).takes("model"):
            raise InvalidParametersError(f"{self._agent.backend_label} takes no model.")
        self.picker.set_model(model)

    def _add(self, message: AddBackend, buffers: Sequence[Any]) -> Later:
        from yiemagent_nb.widgets.added_backend import connect_added, read_key  # noqa: PLC0415 - loads the HTTP library

        key = read_key(buffers)

        async def add() -> None:
            backend, state = await connect_added(message, key)
            self.watch.foresee(backend, state)
            self.picker.offer(backend)
            self.watch.know(backend, state)

        return add()


def _presets() -> list[dict[str, str]]:
    """What a person may start from: ``key``, ``label``, ``base_url``, and ``key_env`` where a key is needed."""
    return [
        {
            "key": kind.provider,
            "label": kind.title,
            "base_url": kind.base_url,
            "key_env": "" if kind.ports else kind.key_variable,  # local servers seldom want one
        }
        for kind in KINDS
    ]
