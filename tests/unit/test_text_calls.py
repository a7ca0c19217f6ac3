"""Tool calls that a model writes into its text."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yiemagent_nb.core.messages import AssistantMessage, ReasoningContent, TextContent, ToolCall
from yiemagent_nb.core.reading.assemble import Assembler
from yiemagent_nb.core.reading.extract import extract

pytestmark = pytest.mark.requirement("Y FR-002")

TOOLS = ("get_weather", "search")
LUGO = ("get_weather", {"city": "Lugo"})
FJORD = ("search", {"query": "fjord"})

FORMS: dict[str, tuple[str, list[Any]]] = {
    "hermes": ('<tool_call>\n{"name": "get_weather", "arguments": {"city": "Lugo"}}\n</tool_call>', [LUGO]),
    "hermes-two": (
        (
            '<tool_call>{"name":"get_weather","arguments":{"city":"Lugo"}}</tool_call>\n'
            '<tool_call>{"name":"search","arguments":{"query":"fjord"}}</tool_call>'
        ),
        [LUGO, FJORD],
    ),
    "hermes-unclosed": ('<tool_call>{"name": "get_weather", "arguments": {"city": "Lugo"}}', [LUGO]),
    "hermes-tag-in-argument": (
        '<tool_call>{"name": "search", "arguments": {"query": "</tool_call>"}}</tool_call>',
        [("search", {"query": "</tool_call>"})],
    ),
    "hermes-arguments-as-text": (
        '<tool_call>{"name": "search", "arguments": "{\\"query\\": \\"fjord\\"}"}</tool_call>',
        [FJORD],
    ),
    "qwen-coder": (
        "<tool_call>\n<function=get_weather>\n<parameter=city>\nLugo\n</parameter>\n</function>\n</tool_call>",
        [LUGO],
    ),
    "glm": (
        "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Lugo</arg_value>\n</tool_call>",
        [LUGO],
    ),
    "mistral": (
        '[TOOL_CALLS][{"name":"get_weather","arguments":{"city":"Lugo"}},{"name":"search","arguments":{"query":"fjord"}}]',
        [LUGO, FJORD],
    ),
    "mistral-args": (
        '[TOOL_CALLS]get_weather[ARGS]{"city":"Lugo"}[TOOL_CALLS]search[ARGS]{"query":"fjord"}',
        [LUGO, FJORD],
    ),
    "llama-bare": ('{"name": "get_weather", "parameters": {"city": "Lugo"}}', [LUGO]),
    "llama-python-tag": (
        (
            '<|python_tag|>{"name":"get_weather","parameters":{"city":"Lugo"}}; '
            '{"name":"search","parameters":{"query":"fjord"}}'
        ),
        [LUGO, FJORD],
    ),
    "llama-function": ('<function=get_weather>{"city": "Lugo"}</function>', [LUGO]),
    "llama-pythonic": ("[get_weather(city='Lugo'), search(query=\"fjord\")]", [LUGO, FJORD]),
    "granite": ('<|tool_call|>[{"name":"get_weather","arguments":{"city":"Lugo"}}]', [LUGO]),
    "phi": ('functools[{"name":"get_weather","arguments":{"city":"Lugo"}}]', [LUGO]),
    "deepseek": (
        (
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n"  # noqa: RUF001
            '```json\n{"city":"Lugo"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>'  # noqa: RUF001
        ),
        [LUGO],
    ),
    "kimi": (
        (
            "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>"
            '{"city":"Lugo"}<|tool_call_end|><|tool_calls_section_end|>'
        ),
        [LUGO],
    ),
    "qwen-coder-without-its-first-tag": (
        "<function=get_weather>\n<parameter=city>\nLugo\n</parameter>\n</function>\n</tool_call>",
        [LUGO],
    ),
    "seed": (
        "<seed:tool_call>\n<function=get_weather>\n<parameter=city>Lugo</parameter>\n</function>\n</seed:tool_call>",
        [LUGO],
    ),
    "glm-on-one-line": ("<tool_call>get_weather<arg_key>city</arg_key><arg_value>Lugo</arg_value></tool_call>", [LUGO]),
    "llama-builtin": ('<|python_tag|>search.call(query="fjord")<|eom_id|>', [FJORD]),
    "llama-4": ('<|python_start|>[get_weather(city="Lugo")]<|python_end|><|eot_id|>', [LUGO]),
    "lfm2": ('<|tool_call_start|>[get_weather(city="Lugo"), search(query="fjord")]<|tool_call_end|>', [LUGO, FJORD]),
    "lfm2-json": (
        '<|tool_call_start|>[{"name":"get_weather","arguments":{"city":"Lugo"}}]<|tool_call_end|>',
        [LUGO],
    ),
    "olmo": ('<function_calls>get_weather(city="Lugo")\nsearch(query="fjord")</function_calls>', [LUGO, FJORD]),
    "granite-20b": ('<function_call> {"name": "get_weather", "arguments": {"city": "Lugo"}}', [LUGO]),
    "jamba": ('<tool_calls>[{"name":"get_weather","arguments":{"city":"Lugo"}}]</tool_calls>', [LUGO]),
    "nemotron": ('<TOOLCALL>[{"name":"get_weather","arguments":{"city":"Lugo"}}]</TOOLCALL>', [LUGO]),
    "cohere": (
        '<|START_ACTION|>[\n  {"tool_call_id": "0", "tool_name": "get_weather", "parameters": {"city": "Lugo"}}\n]',
        [LUGO],
    ),
    "minimax": (
        (
            '<minimax:tool_call>\n<invoke name="get_weather">\n<parameter name="city">Lugo</parameter>\n</invoke>\n'
            '<invoke name="search"><parameter name="query">fjord</parameter></invoke>\n</minimax:tool_call>'
        ),
        [LUGO, FJORD],
    ),
    "invoke-alone": ('<invoke name="get_weather"><parameter name="city">Lugo</parameter></invoke>', [LUGO]),
    "deepseek-3.2": (
        (
            '<｜DSML｜function_calls>\n<｜DSML｜invoke name="search">\n'  # noqa: RUF001
            '<｜DSML｜parameter name="query" string="true">2024</｜DSML｜parameter>\n'  # noqa: RUF001
            '<｜DSML｜parameter name="top" string="false">3</｜DSML｜parameter>\n'  # noqa: RUF001
            "</｜DSML｜invoke>\n</｜DSML｜function_calls>"  # noqa: RUF001
        ),
        [("search", {"query": "2024", "top": 3})],
    ),
    "deepseek-3.1": (
        '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{"city":"Lugo"}<｜tool▁call▁end｜>',  # noqa: RUF001
        [LUGO],
    ),
    "functiongemma": ("<start_function_call>call:get_weather{city:<escape>Lugo<escape>}<end_function_call>", [LUGO]),
    "gemma-4": (
        '<|tool_call>call:search{query:<|"|>a, {b}<|"|>,deep:{n:3,flags:[true,null]},"s":"t", plain:word}<tool_call|>',
        [("search", {"query": "a, {b}", "deep": {"n": 3, "flags": [True, None]}, "s": "t", "plain": "word"})],
    ),
    "gpt-oss": (
        '<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city":"Lugo"}<|call|>',
        [LUGO],
    ),
    "gpt-oss-recipient-first": (
        '<|start|>assistant to=functions.get_weather<|channel|>commentary json<|message|>{"city":"Lugo"}<|call|>',
        [LUGO],
    ),
    "gpt-oss-without-its-tokens": ('commentary to=functions.get_weather json{"city":"Lugo"}', [LUGO]),
    "named-with-a-prefix": ('<tool_call>{"name": "functions.get_weather", "arguments": {"city": "Lugo"}}', [LUGO]),
}


def calls_of(message: AssistantMessage) -> list[tuple[str, Any]]:
    return [
        (call.name, call.arguments if call.raw_arguments is None else call.raw_arguments) for call in message.tool_calls
    ]


def stream(text: str, size: int) -> AssistantMessage:
    assembler = Assembler(tool_names=TOOLS, text_tool_calls=True)
    told = ""
    for at in range(0, len(text), size):
        told += "".join(d.text for d in assembler.feed(text[at : at + size]) if d.kind == "text")
    deltas = assembler.feed({"stop_reason": "stop"})
    told += "".join(delta.text for delta in deltas if delta.kind == "text")
    message = assembler.finish()
    assert told == message.text
    return message


@pytest.mark.parametrize(("text", "calls"), FORMS.values(), ids=FORMS.keys())
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_each_form_is_understood_whatever_the_pieces(text: str, calls: list[Any], size: int) -> None:
    message = stream(text, size)
    assert calls_of(message) == calls
    assert (message.text, message.stop_reason) == ("", "tool_calls")
    assert len({call.id for call in message.tool_calls}) == len(calls)
    assert calls_of(extract(text, tool_names=TOOLS, text_tool_calls=True)) == calls


def test_a_call_after_thoughts_in_channels_is_found() -> None:
    text = (
        "<|channel|>analysis<|message|>I need it.<|end|><|start|>assistant"
        '<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city":"Lugo"}<|call|>'
    )
    for size in (1, 7, 1000):
        message = stream(text, size)
        assert (message.reasoning, message.text) == ("I need it.", "")
        assert calls_of(message) == [LUGO]


def test_text_around_a_call_stays_in_its_place() -> None:
    message = stream('<think>hm</think>Let me look.\n<tool_call>{"name":"search","arguments":{}}</tool_call> Done.', 4)
    assert [type(block) for block in message.content] == [ReasoningContent, TextContent, ToolCall, TextContent]
    assert message.text == "Let me look.\n Done."


@pytest.mark.parametrize(
    "text",
    [
        'Example: {"name": "search", "arguments": {}} is how a call looks.',
        '```\n<tool_call>{"name":"search","arguments":{}}</tool_call>\n```',
        'Write `<tool_call>{"name":"search","arguments":{}}</tool_call>` for it.',
        '<tool_call>{"name": "rm_all", "arguments": {}}</tool_call>',
        '[{"name": "search", "arguments": {}}, {"name": "rm_all", "arguments": {}}]',
        '{"name": "search"}',
        '{"city": "Lugo"}',
        "[1, 2, 3]",
        "[search(undefined)]",
        "[search(query=open('x'))]",
        "a < b, and <tool",
        "{ this is no JSON",
        "[TOOL_CALLS] none",
        "<start_function_call>call:rm_all{a:1}<end_function_call>",
        "<start_function_call>call:search{a:<escape>open",
        "<start_function_call>call:search{a b}",
        '<invoke name="rm_all"><parameter name="a">1</parameter></invoke>',
        "<|channel|>commentary<|message|>I will look",
        "<|channel|>commentary to=functions.rm_all <|message|>{}",
        "<|tool_call_start|>[search('fjord')]<|tool_call_end|>",
        "<|python_tag|>import os",
    ],
)
def test_what_is_no_offered_call_stays_text(text: str) -> None:
    for message in (stream(text, 1), stream(text, 1000), extract(text, tool_names=TOOLS, text_tool_calls=True)):
        assert (message.text, message.tool_calls) == (text, ())


def test_a_broken_call_of_an_offered_tool_reaches_the_model_as_broken() -> None:
    inner = '{"name": "search", "arguments": {"query": "x}}'
    message = extract(f"<tool_call>{inner}</tool_call>", tool_names=TOOLS, text_tool_calls=True)
    assert calls_of(message) == [("search", inner)]


@pytest.mark.parametrize(("tool_names", "text_tool_calls"), [(TOOLS, False), ((), True)])
def test_text_is_text_unless_calls_in_it_were_asked_for_and_tools_offered(
    tool_names: tuple[str, ...], text_tool_calls: bool
) -> None:
    text = FORMS["hermes"][0]
    assert extract(text, tool_names=tool_names, text_tool_calls=text_tool_calls).text == text


@given(st.text("<tool_cal>/{}[]\"':,`\n searchTOLCAS|fun=", max_size=80), st.integers(1, 9))
def test_no_text_is_lost_and_none_makes_it_fail(text: str, size: int) -> None:
    message = stream(text, size)
    if not message.tool_calls:
        assert message.text == text
