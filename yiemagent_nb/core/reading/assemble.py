"""An answer put together from the pieces in which it streams, whatever the server's habits.

Nothing here grows with the message so far: a piece costs a few look-ups, and the parts are joined
once, at the end. ``extract`` reads whole answers through the same code.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, cast

from yiemagent_nb.core.errors import MalformedResponseError, StreamInterruptedError
from yiemagent_nb.core.messages import (
    AssistantMessage,
    AssistantToolCallMessage,
    ReasoningContent,
    StopReason,
    TextContent,
    ToolCall,
)
from yiemagent_nb.core.models import ModelCost, Usage
from yiemagent_nb.core.reading.blocks import Delta
from yiemagent_nb.core.reading.content import GrowingContent
from yiemagent_nb.core.reading.fields import (
    as_mapping,
    clean_text,
    dump_json,
    read_prices,
    read_stop_reason,
    read_usage,
    worse_stop,
)
from yiemagent_nb.core.reading.message_form import (
    CONTENT_TYPES,
    EXPECTED_FORMS,
    MESSAGE_KEYS,
    read_content_blocks,
    read_message,
    unknown_form,
)
from yiemagent_nb.core.reading.responses_form import ResponsesReader
from yiemagent_nb.core.reading.server_errors import error_body, server_error

__all__ = ["Assembler", "Delta"]

_EXTRA_KEYS = frozenset(
    {
        "usage",
        "api",
        "provider",
        "model",
        "thinking_sent",
        "stop_reason",
        "stopReason",
        "finish_reason",
        "error_message",
        "errorMessage",
        "done",
        "text_tool_calls",
        "prices",
    }
)

_EXTRAS_OF_CHUNKS = frozenset({"usage", "api", "x_groq", "error_message"})
"""What a chunk after the first may say beside its choices."""


class Assembler:
    """Takes the pieces of one answer, gives their deltas, and in the end the message.

    Args:
        tool_names: The tools that were offered.
        text_tool_calls: Whether calls that a model writes as text are understood.

    Example::

        assembler = Assembler()
        assembler.feed("Hel")
        assembler.feed({"choices": [{"delta": {"content": "lo"}, "finish_reason": "stop"}]})
        assert assembler.finish().text == "Hello"
    """

    def __init__(self, *, tool_names: Collection[str] = (), text_tool_calls: bool = False) -> None:
        self._blocks = GrowingContent(tool_names, text_tool_calls=text_tool_calls)
        self._responses: ResponsesReader | None = None
        self._whole: AssistantMessage | None = None
        self._extras: dict[str, str] = {}
        self._usage: object = None
        self._prices: ModelCost | None = None
        self._stop: str | None = None
        self._choice: object = None
        self._answered = False
        """Whether anything of an answer came, be it empty."""
        self._streamed = False
        """Whether a delta came, so that a whole message after it only repeats what is known."""
        self._needs_end = False
        """Whether the answer comes in a form that says when it ends."""
        self._done = False
        """Whether the server said that nothing more comes, beside the answer."""

    def feed(self, piece: object) -> Sequence[Delta]:
        """Take a piece.

        Args:
            piece: A string (text); an OpenAI chunk; a mapping with ``content``, reasoning under any
                of its names, ``tool_calls`` or extras (``api``, ``provider``, ``model``, ``usage``,
                ``stop_reason``, ``thinking_sent``; ``prices``, a ``ModelCost`` or a mapping like it, for
                usage that comes without a cost; ``text_tool_calls: True`` to understand such calls
                from here on; ``done: True`` where the server said that this is the end); an event of
                the Responses API; an object with ``model_dump()``; or a whole response.

        Raises:
            BackendError: The piece is an error; its subclass says which.
            MalformedResponseError: It has none of these forms.
        """
        if self._answered and (quick := self._quick(piece)) is not None:
            return quick
        out: list[Delta] = []
        self._read(piece, out, whole=False)
        return out

    def feed_whole(self, response: object) -> None:
        """Take a whole response, of which each call is one of its own.

        Raises:
            BackendError: It is an error; its subclass says which.
            MalformedResponseError: It has none of the known forms.
        """
        self._read(response, [], whole=True)

    def finish(self) -> AssistantMessage | AssistantToolCallMessage:
        """The whole message, when nothing more comes.

        A message without any content is no error, since servers do answer so: its
        ``error_message`` says that it is empty and what that may mean.

        Raises:
            StreamInterruptedError: The answer came in a form that says when it ends, and did not.
            MalformedResponseError: Nothing came.
        """
        if self._whole is not None:
            return self._whole
        blocks = self._blocks
        blocks.settle([])
        error_message = self._extras.get("error_message")
        if not self._answered and error_message is None:
            raise MalformedResponseError("The llm_call's answer has nothing in it.", f"Expected {EXPECTED_FORMS}.")
        if self._needs_end and self._stop is None and not (self._done and blocks.calls_parse()):
            raise StreamInterruptedError(
                "The answer stopped before its end: the server sent no finish_reason.",
                "Ask again; what has come is kept.",
            )
        stop = read_stop_reason(self._stop, has_calls=blocks.has_calls)
        if self._stop is None and error_message is not None:
            stop = "error"
        if stop == "end_turn" and blocks.refused:
            stop = "content_filter"
        if stop == "error" and error_message is None:
            error_message = f"The server ended its answer with {self._stop!r}. Ask again."
        return self._message(stop, error_message)

    def so_far(self) -> AssistantMessage | AssistantToolCallMessage:
        """What has come so far, while more comes. What is held back is left out, and stays held back."""
        return self._whole or self._message("aborted", None)

    def partial(
        self, stop_reason: StopReason, error_message: str | None = None
    ) -> AssistantMessage | AssistantToolCallMessage:
        """What has come, for an answer that was stopped or failed; nothing more may come.

        A call whose arguments do not parse yet keeps them in ``raw_arguments``.
        """
        if self._whole is not None:
            return self._whole.model_copy(update={"stop_reason": stop_reason, "error_message": error_message})
        self._blocks.settle([])
        return self._message(stop_reason, error_message)

    def _message(self, stop: StopReason, error_message: str | None) -> AssistantMessage | AssistantToolCallMessage:
        content = self._blocks.build()
        usage = read_usage(self._usage)
        if usage is not None and usage.cost is None and self._prices is not None:
            usage = usage.model_copy(update={"cost": self._prices.of(usage)})
        if not content and stop == "end_turn" and error_message is None:
            error_message = _empty_answer(usage)
        has_calls = any(isinstance(block, ToolCall) for block in content)
        extras = self._extras
        message_type = AssistantToolCallMessage if has_calls else AssistantMessage
        return message_type(
            content=content,
            api=extras.get("api", ""),
            provider=extras.get("provider", ""),
            model=extras.get("model", ""),
            usage=usage,
            stop_reason=stop,
            raw_stop_reason=self._stop,
            thinking_sent=extras.get("thinking_sent"),
            error_message=error_message,
        )

    def _quick(self, piece: object) -> tuple[Delta] | None:
        """The shape of nearly all chunks: one delta of one kind that goes on; None for any other."""
        if type(piece) is not dict:
            return None
        fields = cast("dict[str, Any]", piece)
        if self._responses is not None:
            return self._responses.quick(fields)
        choices = fields.get("choices")
        if not choices or type(choices) is not list or "error" in fields or fields.get("usage"):
            return None
        choice: object = cast("list[object]", choices)[0]
        if type(choice) is not dict:
            return None
        choice = cast("dict[str, Any]", choice)
        delta: object = choice.get("delta")
        if type(delta) is not dict or choice.get("finish_reason") or choice.get("index", 0) != self._choice:
            return None
        return self._blocks.quick(cast("dict[str, Any]", delta))

    def _read(self, piece: Any, out: list[Delta], *, whole: bool) -> None:
        if isinstance(piece, str):
            self._answered = True
            self._blocks.text(piece, out)
        elif isinstance(piece, AssistantMessage):
            self._take_message(piece, out)
        elif (error := error_body(fields := as_mapping(piece) or piece)) is not None:
            raise server_error(error)
        elif isinstance(piece, list | tuple):
            if not piece:
                raise unknown_form(cast("object", piece))
            self._answered = True
            read_content_blocks(self._blocks, cast("Sequence[object]", piece), out, whole=True)
        elif not isinstance(fields, Mapping):
            raise unknown_form(piece)
        elif not self._read_mapping(cast("Mapping[str, Any]", fields), out, whole=whole):
            # Among the chunks of an answer, servers may send events of their own.
            kind = cast("Mapping[str, Any]", fields).get("type")
            if not self._needs_end and (whole or not isinstance(kind, str)):
                raise unknown_form(piece)

    def _read_mapping(self, fields: Mapping[str, Any], out: list[Delta], *, whole: bool) -> bool:
        """Read a piece or a response; False where it has no known form."""
        kind = fields.get("type")
        blocks = self._blocks
        if isinstance(kind, str) and kind.startswith("response."):
            self._needs_end = True
            self._read_responses(kind, fields, out)
        elif isinstance(choices := fields.get("choices"), list | tuple):
            if not self._answered or not _EXTRAS_OF_CHUNKS.isdisjoint(fields):
                self._read_extras(fields)
            self._needs_end |= fields.get("object") == "chat.completion.chunk"
            for choice in map(as_mapping, cast("Sequence[object]", choices)):
                if choice is not None:
                    self._read_choice(choice, out)
        elif isinstance(fields.get("output"), list):
            self._read_responses(None, fields, out)
        elif (message := as_mapping(fields.get("message"))) is not None:
            self._answered = True
            self._read_extras(fields)
            read_message(blocks, message, out, whole="done" not in fields)
            self._read_end(fields, out)
        elif isinstance(kind, str) and kind in CONTENT_TYPES and "role" not in fields:
            self._answered = True
            read_content_blocks(blocks, [fields], out, whole=whole)
        elif not MESSAGE_KEYS.isdisjoint(fields) or not _EXTRA_KEYS.isdisjoint(fields):
            self._answered |= not MESSAGE_KEYS.isdisjoint(fields)
            self._read_extras(fields)
            read_message(blocks, fields, out, whole=whole)
            self._read_end(fields, out)
        else:
            return False
        return True

    def _read_choice(self, choice: Mapping[str, Any], out: list[Delta]) -> None:
        """A choice of a chat completion, or of a chunk of one. Only the first choice is read."""
        index: object = choice.get("index", 0)
        if self._choice is None:
            self._choice = index
        if index != self._choice:
            return
        if error := choice.get("error"):
            raise server_error(error)
        message = as_mapping(choice.get("message"))
        delta = as_mapping(choice.get("delta"))
        if message and not delta and not (self._streamed and delta is not None):
            read_message(self._blocks, message, out, whole=True)
        else:
            self._needs_end = self._streamed = True
            # Old completions put the text into the choice itself.
            if delta is None or delta:
                read_message(self._blocks, choice if delta is None else delta, out, whole=False)
        self._answered = True
        if usage := choice.get("usage"):
            self._usage = usage
        self._read_end(choice, out)

    def _read_responses(self, kind: str | None, fields: Mapping[str, Any], out: list[Delta]) -> None:
        self._answered = True
        reader = self._responses = self._responses or ResponsesReader(self._blocks)
        before = reader.response
        if kind is None:
            reader.whole(fields, out)
        else:
            reader.event(kind, fields, out)
        if reader.response is not before and reader.response is not None:
            self._read_extras(reader.response)
            self._stop = reader.stop

    def _read_extras(self, fields: Mapping[str, Any]) -> None:
        """What stands beside the content, in every form."""
        if usage := fields.get("usage"):
            self._usage = usage
        elif "eval_count" in fields:
            self._usage = fields
        elif (groq := as_mapping(fields.get("x_groq"))) is not None:
            self._usage = groq.get("usage") or self._usage
        extras = self._extras
        for key in ("api", "model", "thinking_sent"):
            if isinstance(value := fields.get(key), str) and value:
                extras[key] = clean_text(value)
        if isinstance(value := fields.get("provider"), str) and value and ("choices" not in fields or "api" in fields):
            extras["provider"] = clean_text(value)  # beside choices alone, OpenRouter names whom it asked
        if fields.get("text_tool_calls") is True:
            self._blocks.understand_text_calls()
        if message := fields.get("error_message") or fields.get("errorMessage"):
            extras["error_message"] = clean_text(str(message))
        if "prices" in fields:
            self._prices = read_prices(fields["prices"])

    def _read_end(self, fields: Mapping[str, Any], out: list[Delta]) -> None:
        """Read why the answer ended, if it did; then what was held back can be told."""
        stop = fields.get("finish_reason") or fields.get("done_reason")
        if not stop and "delta" not in fields:  # vLLM puts another value under this name into choices
            stop = fields.get("stop_reason") or fields.get("stopReason")
        if isinstance(stop, Mapping):
            stop = cast("Mapping[str, Any]", stop).get("type")
        native = fields.get("native_finish_reason")  # OpenRouter calls some failures a good end
        if isinstance(native, str) and read_stop_reason(native, has_calls=False) == "error":
            stop = native
        if isinstance(stop, str) and stop:
            self._answered = True
            self._stop = worse_stop(self._stop, clean_text(stop))
            self._blocks.settle(out)
        if fields.get("done") is True:
            self._done = True

    def _take_message(self, message: AssistantMessage, out: list[Delta]) -> None:
        self._whole = message
        for index, block in enumerate(message.content):
            if isinstance(block, TextContent):
                out.append(Delta("text", block.text, index, 0))
            elif isinstance(block, ReasoningContent):
                out.append(Delta("reasoning", block.text, index, 0))
            elif isinstance(block, ToolCall):
                arguments = dump_json(block.arguments) if block.raw_arguments is None else block.raw_arguments
                out.append(Delta("tool_call", arguments, index, 0, block.id, block.name))


def _empty_answer(usage: Usage | None) -> str:
    if usage is not None and usage.input_tokens:
        return (
            f"The model's answer is empty; the request had {usage.input_tokens:,} tokens. If the server loaded the "
            "model with a smaller context, load it with a larger one or shorten the conversation; else ask again."
        )
    return "The model's answer is empty. Ask again, or look at the server's log."
