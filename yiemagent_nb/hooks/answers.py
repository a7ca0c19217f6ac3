"""The backend's answers as a hook around it gets them, kept for when the hook fails."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, cast

__all__ = ["BackendAnswers", "Pieces"]


class Pieces:
    """The pieces of an answer that streams in. It remembers those that were taken.

    Args:
        source: The backend's own iterator.
        answers: Whose pieces they are.
    """

    def __init__(self, source: AsyncIterator[Any], answers: BackendAnswers) -> None:
        self.source = source
        self.taken: list[Any] = []
        self._error: Exception | None = None
        self._answers = answers

    def __aiter__(self) -> Pieces:
        return self

    async def __anext__(self) -> Any:
        try:
            with self._answers.pause():
                piece = await anext(self.source)
        except StopAsyncIteration:
            raise
        except Exception as error:
            self._error = error
            self._answers.errors.append(error)
            raise
        self.taken.append(piece)
        return piece

    async def aclose(self) -> None:
        """Nothing: the answer may be needed yet, and is closed with its request."""

    async def from_piece(self, index: int) -> AsyncGenerator[Any, None]:
        """The pieces from this one on, be they taken or not."""
        for piece in self.taken[index:]:
            yield piece
        if self._error is not None:
            raise self._error
        async for piece in self.source:
            yield piece

    async def close(self) -> None:
        """Let the request go."""
        if callable(close := getattr(self.source, "aclose", None)):
            await cast("Callable[[], Awaitable[None]]", close)()


class BackendAnswers:
    """What the backend said while a hook ran.

    Args:
        call: Asks the backend.
        pause: Counts no time while the backend is waited for.
    """

    def __init__(self, call: Callable[..., Awaitable[Any]], pause: Callable[[], AbstractContextManager[None]]) -> None:
        self._call = call
        self.pause = pause
        self.given: list[Any] = []
        self.errors: list[BaseException] = []

    async def call(self, messages: Any, /, **options: Any) -> Any:
        """What the hook awaits: asks the backend."""
        try:
            with self.pause():
                answer = await self._call(messages, **options)
        except Exception as error:
            self.errors.append(error)
            raise
        if isinstance(answer, AsyncIterable) and not isinstance(answer, Mapping):
            answer = Pieces(aiter(cast("AsyncIterable[Any]", answer)), self)
        self.given.append(answer)
        return answer

    @property
    def newest_pieces(self) -> Pieces | None:
        """The newest answer, where it comes in pieces."""
        return self.given[-1] if self.given and isinstance(self.given[-1], Pieces) else None

    def raised(self, error: BaseException) -> bool:
        """Whether an error is the backend's own."""
        return any(error is each for each in self.errors)

    def gave(self, answer: object) -> bool:
        """Whether an answer is the backend's own."""
        return any(answer is each for each in self.given)

    async def instead(self, messages: Any, options: Any, *, begin: int = 0) -> Any:
        """What is answered without the hook: the newest answer that came, else one that is asked for now.

        Args:
            messages: What is asked then.
            options: With which options.
            begin: The first piece that is wanted, of an answer that came in pieces.

        Raises:
            Exception: The backend's own, if the hook hid that.
        """
        if self.given:
            newest = self.given[-1]
            return newest.from_piece(begin) if isinstance(newest, Pieces) else newest
        if self.errors:
            raise self.errors[-1]
        return await self._call(messages, **options)
