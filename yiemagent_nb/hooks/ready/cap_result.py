"""Cut long results, so that one call does not fill the model's context."""

from yiemagent_nb.core.hooks import AfterToolCallContext
from yiemagent_nb.core.messages import TextContent
from yiemagent_nb.core.results import ToolResult

MOST_CHARACTERS = 4_000


def after_tool_call(context: AfterToolCallContext) -> ToolResult | None:
    """Keep the beginning and the end of a long result; images stay as they are."""
    result = context.result
    text = result.text
    if len(text) <= MOST_CHARACTERS:
        return None
    half = MOST_CHARACTERS // 2
    left_out = len(text) - 2 * half
    short = f"{text[:half]}\n… {left_out:,} characters left out …\n{text[-half:]}"
    others = [block for block in result.content if not isinstance(block, TextContent)]
    return result.model_copy(update={"content": (TextContent(short), *others)})
