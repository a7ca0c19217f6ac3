"""Any whole response of a model, read into one message."""

from __future__ import annotations

from collections.abc import Collection

from yiemagent_nb.core.messages import AssistantMessage, AssistantToolCallMessage
from yiemagent_nb.core.reading.assemble import Assembler

__all__ = ["extract"]


def extract(
    response: object, *, tool_names: Collection[str] = (), text_tool_calls: bool = False
) -> AssistantMessage | AssistantToolCallMessage:
    """Read a whole response, without being told which form it has.

    Known are: a string; a message of this package; OpenAI's envelope with ``choices`` or its nested
    ``message``; a mapping with ``content`` (text or blocks of text, reasoning, ``tool_call`` and
    ``tool_calls``), ``reasoning`` under any of its names, and ``tool_calls``; the Responses API's
    object with ``output``; a list of content blocks; and objects whose ``model_dump()`` is one of
    these. Beside any of them may stand ``api``, ``provider``, ``model``, ``usage``, ``prices``,
    ``error_message``, ``thinking_sent``. Arguments may be JSON text or an object; ids that are
    missing are made; arguments that do not parse stay in ``raw_arguments``.

    Args:
        response: What the ``llm_call`` returned.
        tool_names: The tools that were offered.
        text_tool_calls: Whether calls that the model wrote as text are understood.

    Raises:
        BackendError: The response is an error mapping; the subclass says which.
        MalformedResponseError: It has none of these forms.
    """
    if isinstance(response, AssistantMessage):
        return response
    assembler = Assembler(tool_names=tool_names, text_tool_calls=text_tool_calls)
    assembler.feed_whole(response)
    return assembler.finish()
