"""BackendPicker: which backend answers, and what else could."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

from yiemagent_nb.backends.discovery import Candidate, DefaultBackend, Found, find_backend
from yiemagent_nb.backends.state import address_of, is_candidate, title_of_backend, unwrapped
from yiemagent_nb.core.backend import LlmCall, attribute_of, model_of
from yiemagent_nb.core.errors import InvalidParametersError, YiemAgentError, describe_error
from yiemagent_nb.core.models import LlmModel
from yiemagent_nb.widgets.in_thread import in_thread
from yiemagent_nb.widgets.texts import one_line

if TYPE_CHECKING:
    from yiemagent_nb.core.agent import Agent

__all__ = ["BackendPicker"]

MOST_SET_IN_CODE = 5
"""So many backends that code set, and then replaced, can be gone back to."""
LONGEST_TITLE = 80
LONGEST_NOTE = 300
MOST_SUGGESTIONS = 20
LONGEST_SUGGESTION = 500

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Choice:
    key: str
    title: str
    reason: str = ""
    candidate: Candidate | None = None
    backend: LlmCall | None = None
    model: LlmModel | str | None = None
    """The model that was picked there, in place of the backend's own."""
    former: LlmCall | None = None
    """The backend whose place ``backend`` takes; it may still answer for a moment."""
    by_code: bool = False

    def build(self) -> LlmCall:
        if self.backend is None:
            self.backend = cast("Candidate", self.candidate).build()
        return self.backend


class BackendPicker:
    """The backends that a person can choose from: what the agent was given, what was found, what was added.

    Args:
        agent: The agent.
        changed: Called when ``form`` says something new, from any thread.
    """

    def __init__(self, agent: Agent, changed: Callable[[], None]) -> None:
        self._agent = agent
        self._changed = changed
        self._choices: list[_Choice] = []
        self._lock = threading.RLock()
        self._count = 0
        self._note = ""
        self._looking = False
        self._forget: Callable[[], None] | None = None

    def form(self) -> dict[str, Any]:
        """What the page shows: ``label``, ``choices``, ``key`` and ``note``."""
        with self._lock:
            current = self._current()
            backend = self._agent.llm_call
            choices = [{"key": choice.key, "label": choice.title} for choice in self._choices]
        label = "" if current is None else current.title
        if isinstance(backend, DefaultBackend) and backend.found is None:
            label = "Looking for a model…"
        return {
            "label": label,
            "choices": choices,
            "key": "" if current is None else current.key,
            "note": (current.reason if current is not None else "") or self._note,
        }

    def suggestions(self) -> list[str]:
        """Prompts that the backend itself offers."""
        offered = attribute_of(unwrapped(self._agent.llm_call), "suggestions")
        if not isinstance(offered, Iterable) or isinstance(offered, str):
            return []
        try:
            prompts = [*islice(cast("Iterable[object]", offered), MOST_SUGGESTIONS)]
        except Exception:  # an iterator of a user's own may raise anything
            _log.warning("the suggestions of %s cannot be read", self._agent.backend_label, exc_info=True)
            return []
        return [prompt for prompt in prompts if isinstance(prompt, str) and len(prompt) <= LONGEST_SUGGESTION]

    def look(self) -> None:
        """Look what is there, if the agent leaves the choice open. From any thread; returns at once."""
        backend = self._agent.llm_call
        if not isinstance(backend, DefaultBackend) or self._forget is not None:
            return
        self._forget = backend.on_resolved(lambda found: self._take(found, backend))
        if backend.found is None:
            self._search(backend.resolve)

    def look_around(self) -> None:
        """Look what else could answer now, on this machine and in the environment. Returns at once."""
        backend = self._agent.llm_call
        find = backend.look if isinstance(backend, DefaultBackend) else find_backend

        async def look() -> None:
            self._take(await find(), None)

        self._search(look)

    def choose(self, key: str) -> None:
        """Let another backend answer from the next turn on. From any thread.

        Raises:
            InvalidParametersError: No such choice is offered, or it cannot be built.
        """
        with self._lock:
            choice = next((choice for choice in self._choices if choice.key == key), None)
        if choice is None:
            raise InvalidParametersError("No such backend is offered here.", "Open the list again.")
        self._switch(choice)

    def offer(self, backend: LlmCall) -> None:
        """Offer a backend that a person added, and let it answer. One at the same address takes its place."""
        with self._lock:
            choice = next((choice for choice in self._choices if _same_place(choice.backend, backend)), None)
            if choice is None:
                choice = self._add(backend=backend, title=title_of_backend(backend))
            if choice.backend is not backend:
                choice.former, choice.backend, choice.model = choice.backend, backend, None
        self._switch(choice)

    def set_model(self, model: str) -> None:
        """Let another model of this backend answer from the next turn on."""
        self._agent.set_llm_call(self._agent.llm_call, model)
        with self._lock:
            current = self._current()
            if current is not None:
                current.model = self._agent.state.model

    def close(self) -> None:
        """Wait for no choice any more."""
        if self._forget is not None:
            self._forget()

    def _switch(self, choice: _Choice) -> None:
        backend = choice.build()
        with self._lock:
            leaving = self._current()
            if leaving is not None and leaving is not choice:
                leaving.model = self._picked_model()
        self._agent.set_llm_call(backend, choice.model)

    def _picked_model(self) -> LlmModel | None:
        """The agent's model, where it is not the backend's own."""
        model, backend = self._agent.state.model, unwrapped(self._agent.llm_call)
        return None if model_of(backend) == model else model

    def _current(self) -> _Choice | None:
        """The choice that answers now. What code set becomes one; None while nothing is decided."""
        backend = self._agent.llm_call
        for choice in self._choices:
            if backend is choice.backend or backend is choice.former:
                return choice
        if isinstance(backend, DefaultBackend) and backend.found is None:
            return None
        return self._add(backend=backend, title=title_of_backend(backend), by_code=True, first=True)

    def _add(
        self,
        *,
        title: str,
        reason: str = "",
        candidate: Candidate | None = None,
        backend: LlmCall | None = None,
        by_code: bool = False,
        first: bool = False,
    ) -> _Choice:
        self._count += 1
        shown = title = one_line(title, LONGEST_TITLE)
        taken = {choice.title for choice in self._choices}
        number = 1
        while shown in taken:
            number += 1
            shown = f"{title} ({number})"
        choice = _Choice(str(self._count), shown, reason, candidate, backend, by_code=by_code)
        others = self._choices
        in_code = [each for each in others if each.by_code]
        if by_code and len(in_code) >= MOST_SET_IN_CODE:
            others = [each for each in others if each is not in_code[-1]]
        self._choices = [choice, *others] if first else [*others, choice]
        return choice

    def _search(self, search: Callable[[], Any]) -> None:
        if self._looking:
            return
        self._looking = True

        async def run() -> None:
            try:
                await search()
            except YiemAgentError as error:
                self._note = str(error)
                _log.warning("no backend could be chosen: %s", error)
                self._changed()
            except Exception as error:  # what looks may be a user's own
                self._note = one_line(f"Looking for backends failed: {describe_error(error)}", LONGEST_NOTE)
                _log.exception("looking for backends failed")
                self._changed()
            finally:
                self._looking = False

        # In a thread of its own: looking takes a second, and whether this thread's loop runs on is not known.
        in_thread(run)

    def _take(self, found: Found, decided: DefaultBackend | None) -> None:
        """Offer what was found; ``decided`` answers as what was chosen."""
        with self._lock:
            for candidate in (found.choice, *found.alternatives):
                known = next((choice for choice in self._choices if _is_it(choice, candidate)), None)
                if known is not None:
                    continue
                backend = decided if candidate is found.choice else None
                title = candidate.label.partition(": ")[0]
                self._add(title=title, reason=candidate.reason, candidate=candidate, backend=backend)
            if decided is not None:
                chosen = next(choice for choice in self._choices if choice.backend is decided)
                chosen.reason = found.reason
        self._changed()


def _is_it(choice: _Choice, candidate: Candidate) -> bool:
    """Whether a choice is what was found."""
    if choice.candidate is not None:
        return (choice.candidate.provider, choice.candidate.base_url) == (candidate.provider, candidate.base_url)
    return choice.backend is not None and is_candidate(choice.backend, candidate)


def _same_place(one: LlmCall | None, other: LlmCall) -> bool:
    """Whether two backends ask the same server."""
    address = address_of(other)
    return one is not None and address != "" and address_of(unwrapped(one)) == address
