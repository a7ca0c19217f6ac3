"""A request as a cell that makes it again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from yiemagent_nb.core.backend import LlmCall, provider_of
from yiemagent_nb.core.openai_form import to_openai
from yiemagent_nb.core.redaction import mask_keys
from yiemagent_nb.tracing.backend_code import BackendCode, code_of
from yiemagent_nb.tracing.details import options_of, tools_of
from yiemagent_nb.tracing.literals import literal
from yiemagent_nb.tracing.rows import Row
from yiemagent_nb.tracing.sent import Sent, sent_of

if TYPE_CHECKING:
    from yiemagent_nb.tracing.recorder import TraceRecorder

__all__ = ["python_of"]


def python_of(trace: TraceRecorder, row: Row) -> str:
    """A notebook's cell that makes the request of a row again.

    Raises:
        InvalidParametersError: The row has no request, or its backend cannot be named in a cell.
    """
    sent = sent_of(row)
    code = _backend(sent, sent.exchange.llm_call, trace)
    lines = [f"# The request of row {row.number} of the trace, made again."]
    if code.key_variable:
        lines.append(f"# The key comes from the environment variable {code.key_variable}.")
    lines += sorted({*code.imports, "from yiemagent_nb.tracing import ask"}, key=lambda line: (line[0] == "f", line))
    lines += ["", f"backend = {code.expression}", f"messages = {literal(sent.messages)}"]
    arguments = ["backend", "messages"]
    tools = tools_of(sent.exchange)
    if tools:
        lines.append(f"tools = {literal(tools)}")
        arguments.append("tools=tools")
    options = options_of(sent.exchange)
    if options:
        lines.append(f"options = {literal(options)}")
        arguments.append("**options")
    lines += [f"answer = await ask({', '.join(arguments)})", "answer"]
    return mask_keys("\n".join(lines) + "\n")


def _backend(sent: Sent, llm_call: LlmCall, trace: TraceRecorder) -> BackendCode:
    if provider_of(llm_call) == "scripted" and sent.answer is not None and not sent.answer.error_message:
        fields = to_openai(sent.answer)  # a script that has gone on gives another answer
        answer = {"choices": [{"message": fields, "finish_reason": sent.answer.raw_stop_reason or "stop"}]}
        return BackendCode(("from yiemagent_nb import Scripted",), f"Scripted([{literal(answer)}])")
    return code_of(llm_call, trace.agent())
