"""Leave keys and e-mail addresses out of what is sent. The history keeps them."""

import re
from typing import Any, cast

from yiemagent_nb.core.hooks import AgentContext
from yiemagent_nb.core.messages import CustomMessage, Message, TextContent, ToolCall
from yiemagent_nb.core.state import AgentState

PATTERNS = {
    "[e-mail]": re.compile(r"(?<![\w.+-])[\w.+-]+@[\w-]+(\.[\w-]+)+"),
    "[key]": re.compile(r"\b(sk|pk|ghp|gho|xoxb|xoxp|AKIA|AIza)[-_A-Za-z0-9]{12,}"),
    "[token]": re.compile(r"(?<=[Bb]earer )[\w.~+/-]{12,}=*"),
}


def redact(value: Any) -> Any:
    """A text, or what holds texts, without them."""
    match value:
        case str():
            for word, pattern in PATTERNS.items():
                value = pattern.sub(word, value)
            return value
        case dict():
            return {redact(name): redact(each) for name, each in cast("dict[str, Any]", value).items()}
        case list():
            return [redact(each) for each in cast("list[Any]", value)]
        case _:
            return value


def redact_block(block: Any) -> Any:
    """A block of a message without them; images and the model's reasoning stay as they are."""
    match block:
        case TextContent():
            return block.model_copy(update={"text": redact(block.text)})
        case ToolCall():
            return block.model_copy(update={"arguments": redact(block.arguments)})
        case _:
            return block


def redact_message(message: Message) -> Message:
    """A message without them."""
    if isinstance(message, CustomMessage):  # it is not sent
        return message
    return message.model_copy(update={"content": tuple(map(redact_block, message.content))})


def prepare_context(state: AgentState) -> AgentContext:
    """Send copies of the messages, without keys and addresses."""
    return AgentContext(redact(state.system_prompt), list(map(redact_message, state.messages)), state.tools)
