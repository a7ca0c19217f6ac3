"""The tour of the widget, and a page that shows what its markdown can do."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from yiemagent_nb.backends.demo.conversation import Entry, ToolCard
from yiemagent_nb.backends.demo.examples import examples

__all__ = ["MARKDOWN_PAGE", "guide", "step_of"]

_STEPS = """# The composer
You write below. **Enter** sends, **Shift+Enter** begins a new line. Answers stream in as they are made.

Try: *{first}*

# Tool cards
When I call a tool, a card shows its name, its arguments and what came back. Click a card to open it.

Try: *{first}*

# Several at once
Calls that do not depend on each other run side by side, and one that needs a result waits for it.

Try: *{both}*

# Stop
While something runs, **Stop** ends it. What was said stays, and you can go on at once.

Try: send `/markdown` and press **Stop** while it streams.

# Steering
What you send while I work joins the conversation before my next turn. No call is skipped for it.

Try: send `/markdown`, and while it streams: *{first}*

In code: `agent.steer("…")`

# Follow-ups
A follow-up waits until the work in hand is done, and is taken up then.

Try in a cell:

```python
agent.follow_up({quoted})
await agent.prompt("hello")
```

# Hooks
A hook is a function of yours that sees each call before or after it runs. It may change it or say no.

Try in a cell:

```python
from yiemagent_nb import BeforeToolCallResult


def no(context, signal):
    return BeforeToolCallResult(block=True, reason="Not today.")


agent.set_hooks(before_tool_call=no)
```

Then: *{first}*. `agent.set_hooks(before_tool_call=None)` takes it back.

# Another backend
I am a script. Any function can take my place in the middle of a conversation, and so can a model.

Try in a cell:

```python
def parrot(messages):
    return messages[-1]["content"]


agent.set_llm_call(parrot)
```

To get me back: `from yiemagent_nb import Demo`, then `agent.set_llm_call(Demo())`.
"""
_PAGES = [tuple(page.split("\n", 1)) for page in re.split(r"^# ", _STEPS, flags=re.MULTILINE) if page]
_HEADING = re.compile(r"\*\*Tour, step (\d{1,2}) of \d{1,2}: ")
_END = "That was the tour."
_STOPPED = "The tour is over for now; `/tour` begins it again."

_NO_TOOLS = "hello"

MARKDOWN_PAGE = r"""## What an answer can look like

Text can be **bold**, *italic*, `code`, or ~~struck out~~, and a [link](https://example.org) opens in a new tab.

### Lists and quotes

1. First things first
2. Then the rest
   - with a detail
   - and another

> Simple things should be simple, complex things should be possible.

### A table

| planet | moons | day |
| :--- | ---: | :---: |
| Earth | 1 | 24 h |
| Mars | 2 | 24.6 h |
| Jupiter | 97 | 9.9 h |

### Code

```python
from collections.abc import Iterator


def fibonacci(limit: int) -> Iterator[int]:
    "Numbers that are the sum of the two before them."
    a, b = 0, 1
    while a < limit:
        yield a
        a, b = b, a + b


print(list(fibonacci(100)))
```

```json
{"tool": "add", "arguments": {"a": 17, "b": 25}}
```

### Mathematics

Inline, $e^{i\pi} + 1 = 0$, and on a line of its own:

$$
\int_{-\infty}^{\infty} e^{-x^2}\,dx = \sqrt{\pi}
$$

That is the whole page; everything in it went through the sanitiser, as all text of a model does."""


def step_of(earlier: Sequence[Entry]) -> int | None:
    """The step at which the tour stands, counted from 1; None where there is none under way."""
    for entry in reversed(earlier):
        if entry.role != "assistant":
            continue
        if entry.text.startswith((_END, _STOPPED)):
            return None
        if heading := _HEADING.search(entry.text[:200]):
            return int(heading.group(1))
    return None


def guide(word: str, earlier: Sequence[Entry], cards: Sequence[ToolCard]) -> str:
    """The tour's answer to ``start``, ``next``, ``back`` or ``stop``."""
    if word == "stop":
        return _STOPPED
    at = step_of(earlier) or 0
    step = 1 if word == "start" else at + 1 if word == "next" else max(1, at - 1)
    if step > len(_PAGES):
        return f"{_END} Ask me what I can do, or just try things. `/tour` begins it again."
    title, text = _PAGES[step - 1]
    tries = examples(cards, 2) or [_NO_TOOLS]
    both = " and ".join(tries)
    for name, value in (("{quoted}", json.dumps(tries[0])), ("{first}", tries[0]), ("{both}", both)):
        text = text.replace(name, value)
    ways = "`next` or `stop`" if step == 1 else "`next`, `back` or `stop`"
    return f"**Tour, step {step} of {len(_PAGES)}: {title}**\n\n{text.strip()}\n\nSay {ways}."
