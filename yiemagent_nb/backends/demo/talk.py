"""Talk: what can be answered without a tool, from the conversation and the tools that are there."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from yiemagent_nb.backends.demo.conversation import Entry, Image, ToolCard
from yiemagent_nb.backends.demo.examples import example, examples
from yiemagent_nb.backends.demo.matching import Matcher
from yiemagent_nb.backends.demo.speaking import can_show, describe_tool, show_value, signature
from yiemagent_nb.backends.demo.tour import MARKDOWN_PAGE, guide, step_of

__all__ = ["AGAIN", "NEVER_MIND", "SHOWN_AGAIN", "cannot_help", "last_images", "talk"]

AGAIN = re.compile(
    r"(?:please )?(?:do (?:it|that) )?(?:again|once more|one more time)|repeat (?:it|that)|(?:try|run it) again"
)
NEVER_MIND = re.compile(r"never ?mind|forget (?:it|that|about it)|cancel|no,? thanks?|nothing|skip (?:it|that)")
SHOWN_AGAIN = "Here it is again."
"""Said where the last images follow once more."""
MAX_LISTED = 15
MAX_RECALLED = 12
MAX_ABOUT = 200
MAX_QUOTED = 400
_COMMANDS = "`/help`, `/tour` and `/markdown`"
_COMMAND = re.compile(r"/\w+")

_PICTURE = "(?:image|picture|plot|chart|graph|figure|photo|it)(?: again)?"
_PLEASE = re.compile(r"^please | please$")

_Answer = Callable[[str, Sequence[Entry], Sequence[ToolCard]], str]

_ADD_A_TOOL = """There are no tools here yet. Give the agent a Python function, and I can call it:

```python
from yiemagent_nb import tool


@tool
def add(a: float, b: float) -> float:
    "Add two numbers."
    return a + b


agent.set_tools([add])
```

Then ask me to *add 17 and 25*."""


def _plain(text: str) -> str:
    words = re.sub(r"[^\w/' ]+", " ", text[:400].lower().replace("\u2019", "'"))
    return re.sub(r"\s+", " ", words).strip()


def _tries(cards: Sequence[ToolCard]) -> str:
    return "\n".join(f"- *{request}*" for request in examples(cards))


def _hello(_text: str, earlier: Sequence[Entry], cards: Sequence[ToolCard]) -> str:
    if any(entry.role == "assistant" for entry in earlier):
        return "Hello again! What shall we do?"
    hello = "Hello! I am the built-in demo: a script, not a language model, so I work offline and at once."
    if not cards:
        return f"{hello}\n\n{_ADD_A_TOOL}\n\nOr take the `/tour`."
    return f"{hello} I can call the tools that are here. Try:\n\n{_tries(cards)}\n\nOr take the `/tour`."


def _who(_text: str, _earlier: Sequence[Entry], _cards: Sequence[ToolCard]) -> str:
    return (
        "I am `Demo`, the backend that answers when no other was chosen. I am a script and no language model: I match "
        "your words with the tools that are here, call them, and report what they say. Nothing leaves this machine.\n\n"
        "For real conversation, start a model server (LM Studio, Ollama, llama.cpp, vLLM), set a key, or pass any "
        "function: `agent.set_llm_call(my_function)`."
    )


def _help(_text: str, _earlier: Sequence[Entry], cards: Sequence[ToolCard]) -> str:
    if not cards:
        return f"{_ADD_A_TOOL}\n\nBesides, there is the `/tour`, and `/markdown` shows what answers can look like."
    lines = [f"- `{signature(card)}`: {card.summary}" for card in cards[:MAX_LISTED]]
    if len(cards) > MAX_LISTED:
        lines.append(f"- … and {len(cards) - MAX_LISTED} more")
    count = "This tool is" if len(cards) == 1 else f"These {len(cards)} tools are"
    return (
        f"{count} here:\n\n" + "\n".join(lines) + f"\n\nAsk in plain words, for example:\n\n{_tries(cards)}\n\n"
        "Or take the `/tour`; `/markdown` shows what answers can look like."
    )


def _thanks(_text: str, _earlier: Sequence[Entry], _cards: Sequence[ToolCard]) -> str:
    return "You are welcome!"


def _bye(_text: str, _earlier: Sequence[Entry], _cards: Sequence[ToolCard]) -> str:
    return "Goodbye! The conversation stays here for when you come back."


def _how_are_you(_text: str, _earlier: Sequence[Entry], _cards: Sequence[ToolCard]) -> str:
    return "All parts are moving, thank you. As a script I have no better or worse days. What shall we do?"


def _fine(_text: str, _earlier: Sequence[Entry], _cards: Sequence[ToolCard]) -> str:
    return "Good. What next?"


def _markdown(_text: str, _earlier: Sequence[Entry], _cards: Sequence[ToolCard]) -> str:
    return MARKDOWN_PAGE


def _start_tour(_text: str, earlier: Sequence[Entry], cards: Sequence[ToolCard]) -> str:
    return guide("start", earlier, cards)


def _asked(earlier: Sequence[Entry]) -> list[str]:
    return [entry.text.strip() for entry in earlier if entry.role == "user" and entry.text.strip()]


def _quote(text: str) -> str:
    shown = text if len(text) <= MAX_QUOTED else text[: MAX_QUOTED - 1] + "…"
    return "\n".join(f"> {line}" for line in shown.splitlines())


def _what_i_asked(text: str, earlier: Sequence[Entry], _cards: Sequence[ToolCard]) -> str:
    asked = _asked(earlier)
    if not asked:
        return "Nothing yet: this is your first message."
    if "first" in text:
        return f"Your first message was:\n\n{_quote(asked[0])}"
    if re.search(r"\b(?:so far|all|everything|recap|summar\w+|conversation|questions|messages)\b", text):
        lines = [f"{number}. {show_value(item)}" for number, item in enumerate(asked, 1)]
        dropped = max(0, len(lines) - MAX_RECALLED)
        note = f"\n\nThe first {dropped} are left out here." if dropped else ""
        return "So far you said:\n\n" + "\n".join(lines[dropped:]) + note
    return f"Just before, you said:\n\n{_quote(asked[-1])}"


def _how_many(_text: str, earlier: Sequence[Entry], _cards: Sequence[ToolCard]) -> str:
    count = len(_asked(earlier)) + 1
    calls = sum(len(entry.calls) for entry in earlier)
    return (
        f"This is message {count} of yours, and {calls or 'no'} tool {'call was' if calls == 1 else 'calls were'} made."
    )


def _what_i_said(_text: str, earlier: Sequence[Entry], _cards: Sequence[ToolCard]) -> str:
    said = [entry.text.strip() for entry in earlier if entry.role == "assistant" and entry.text.strip()]
    return f"My last answer was:\n\n{_quote(said[-1])}" if said else "I have not said anything yet."


def _what_i_used(_text: str, earlier: Sequence[Entry], _cards: Sequence[ToolCard]) -> str:
    used: dict[str, int] = {}
    for entry in earlier:
        for call in entry.calls:
            used[call.name] = used.get(call.name, 0) + 1
    if not used:
        return "No tool has been called in this conversation yet."
    return "In this conversation: " + ", ".join(f"`{name}` ({count}\u00d7)" for name, count in used.items()) + "."


def _last_result(_text: str, earlier: Sequence[Entry], _cards: Sequence[ToolCard]) -> str:
    for entry in reversed(earlier):
        if entry.role == "tool":
            return f"The last result was:\n\n{_quote(entry.text)}"
    return "There is no result yet: no tool has been called."


def last_images(earlier: Sequence[Entry]) -> tuple[Image, ...]:
    """The images of the last result that had any that can be shown."""
    found = (tuple(filter(can_show, entry.images)) for entry in reversed(earlier) if entry.role == "tool")
    return next((images for images in found if images), ())


def _image_again(_text: str, earlier: Sequence[Entry], _cards: Sequence[ToolCard]) -> str:
    return SHOWN_AGAIN if last_images(earlier) else ""


_SOME = r"(?: \w+){0,4}"
_RULES: Sequence[tuple[re.Pattern[str], _Answer]] = tuple(
    (re.compile("|".join(patterns)), answer)
    for answer, *patterns in (
        (_start_tour, "/tour", r"(?:(?:give|show) me |take |start |i want |i'd like )?(?:(?:a|the) )?(?:guided )?tour"),
        (_markdown, "/markdown", r"(?:show me )?(?:some )?markdown"),
        (_what_i_used, rf"(?:what|which)(?: of the)? tools? (?:did you|have you|were|was) (?:use|call)d?{_SOME}"),
        (_what_i_used, rf"what did you (?:use|call){_SOME}"),
        (_help, "/help", "/tools", "help(?: me)?", r"what (?:can|do) (?:you|i) do(?: here| for me)?"),
        (_help, "how does this work", "what now", rf"(?:what|which) (?:\w+ )?tools?{_SOME}"),
        (_help, r"(?:list|show)(?: me)?(?: all)?(?: of)?(?: the| your)?(?: available)? tools"),
        (_hello, r"(?:hello|hi|hey|hallo|greetings|hola|moin)(?: there| demo| again| you)?"),
        (_hello, r"good (?:morning|evening|afternoon|day)"),
        (_thanks, rf"(?:many )?(?:thanks?|thank you|thx|cheers){_SOME}"),
        (_bye, rf"(?:good ?bye|bye|see you|ciao){_SOME}"),
        (_how_are_you, rf"(?:hello |hi |hey )?how (?:are you|do you do|is it going){_SOME}", "what's up"),
        (_fine, r"(?:ok|okay|good|great|nice|cool|wow|perfect|fine|well done|amazing|i see|got it)(?: \w+)?"),
        (_who, rf"(?:who|what) are you{_SOME}", r"what(?:'s| is) (?:this|your name|demo)", "what backend is this"),
        (_who, rf"are you (?:\w+ ){{0,4}}(?:model|ai|llm|human|person|real|bot|robot|script|chatgpt|machine){_SOME}"),
        (_who, "(?:what|which) model (?:are you|is this)"),
        (_what_i_asked, rf"(?:what|which) (?:did i|have i|was it i) \w+{_SOME}", rf"(?:recap|summari[sz]e){_SOME}"),
        (_what_i_asked, r"what (?:was|were) my (?:\w+ )?(?:question|message|request|prompt)s?"),
        (_what_i_asked, rf"what have we \w+{_SOME}"),
        (_how_many, rf"how many (?:questions|messages|requests|things){_SOME}"),
        (_what_i_said, rf"what did you (?:say|answer|reply){_SOME}", "say that again"),
        (_what_i_said, "(?:what was|repeat) your (?:last |previous )?(?:answer|reply)"),
        (_last_result, "what (?:was|is) the (?:last |previous )?(?:result|answer|output)(?: again)?"),
        (_image_again, r"(?:show|display)(?: me)?(?: the| that| this)?(?: last| previous)?(?: \w+)? " + _PICTURE),
    )
)
_TOUR_WORDS = {
    **dict.fromkeys(("next", "n", "go on", "continue", "next step", "forward"), "next"),
    **dict.fromkeys(("back", "previous", "go back"), "back"),
    **dict.fromkeys(("stop", "quit", "end", "exit", "stop the tour", "end the tour"), "stop"),
}
_ABOUT = re.compile(
    r"(?:what does|what is|what's|explain|describe|how (?:do i|does one|can i) use|how does|tell me about|help with|"
    r"help)\s+(?:the\s+)?`?([A-Za-z_]\w{0,63})`?(?:\s+tool)?(?:\s+(?:do|work|for))?\s*[?.!]*\s*",
    re.IGNORECASE,
)


def talk(text: str, earlier: Sequence[Entry], cards: Sequence[ToolCard]) -> str:
    """An answer that needs no tool; empty where the text asks for something else.

    Args:
        text: What the person said.
        earlier: What stands before it.
        cards: The tools.
    """
    about = _ABOUT.fullmatch(text.strip()[:MAX_ABOUT])
    if about and (card := next((card for card in cards if card.name == about.group(1)), None)):
        return describe_tool(card, example(card, cards))
    said = _PLEASE.sub("", _plain(text))
    if tour := _tour(said, earlier, cards):
        return tour
    if not said or Matcher(cards).mentions(text):
        return ""
    for pattern, answer in _RULES:
        if pattern.fullmatch(said) and (answered := answer(said, earlier, cards)):
            return answered
    return (
        f"I do not know `{said[:40]}`. There are `/help`, `/tour` and `/markdown`." if _COMMAND.fullmatch(said) else ""
    )


def _tour(said: str, earlier: Sequence[Entry], cards: Sequence[ToolCard]) -> str:
    word = _TOUR_WORDS.get(said)
    if word is None:
        return ""
    if step_of(earlier) is not None:
        return guide(word, earlier, cards)
    return "Nothing is running. In the widget, **Stop** ends what is under way." if word == "stop" else ""


def cannot_help(text: str, cards: Sequence[ToolCard], *, has_images: bool) -> str:
    """What to say where neither a tool nor a rule fits."""
    if has_images:
        return (
            "I got your image, but as a script I cannot look at it. A backend with a model that sees can: choose one "
            "in the header, or by `agent.set_llm_call(…)`."
        )
    if not text.strip():
        return "Your message is empty. Ask me what I can do."
    if not cards:
        return f"That is beyond me: I am a script, not a language model, and I work through tools.\n\n{_ADD_A_TOOL}"
    return (
        "That is beyond me: I am a script, not a language model, and none of the tools here fits. What works:\n\n"
        f"{_tries(cards)}\n\nFor everything else choose a model as the backend, in the header or by "
        "`agent.set_llm_call(…)`."
    )
