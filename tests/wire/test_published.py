"""The published schemas take what each server documents, and refuse the usual mistakes."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any, cast, get_args

import pytest
from jsonschema import Draft202012Validator
from wire.published import Server, check_body, registry

Body = dict[str, Any]

PICTURE = "data:image/png;base64,iVBORw0KGgo="
ANSWER_SCHEMA = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}
PARAMETERS = {"type": "object", "properties": {"a": {"type": "integer", "minimum": 0}}, "additionalProperties": False}
TOOL = {"type": "function", "function": {"name": "add", "description": "Adds.", "parameters": PARAMETERS}}
FLAT_TOOL = {"type": "function", "name": "add", "description": "Adds.", "parameters": PARAMETERS, "strict": False}
NAMED_CHOICE = {"type": "function", "function": {"name": "add"}}
JSON_SCHEMA = {"type": "json_schema", "json_schema": {"name": "answer", "schema": ANSWER_SCHEMA, "strict": True}}
FLAT_JSON_SCHEMA = {"type": "json_schema", "name": "answer", "schema": ANSWER_SCHEMA, "strict": True}
STREAM = {"stream": True, "stream_options": {"include_usage": True}}

DETAILS = [
    {"type": "reasoning.text", "text": "17 + 25", "signature": "s", "format": "anthropic-claude-v1", "index": 0},
    {"type": "reasoning.encrypted", "data": "AAAA", "id": "rs_1", "format": "openai-responses-v1", "index": 1},
]


def conversation(**reasoning: object) -> list[Body]:
    """Text, an image, a tool call and its result; the assistant's message carries its reasoning as given."""
    call = {"id": "call_1", "type": "function", "function": {"name": "add", "arguments": '{"a": 17}'}}
    return [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "What is 17 + 25?"},
        {"role": "assistant", "content": None, "tool_calls": [call], **reasoning},
        {"role": "tool", "tool_call_id": "call_1", "content": "42"},
        {"role": "assistant", "content": "42"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "And this?"},
                {"type": "image_url", "image_url": {"url": PICTURE}},
            ],
        },
    ]


def items(reasoning: Body, *, answer: Body) -> list[Body]:
    """The same conversation as input items of the Responses endpoint."""
    return [
        {"role": "user", "content": "What is 17 + 25?"},
        {"type": "reasoning", **reasoning},
        {"type": "function_call", "call_id": "call_1", "name": "add", "arguments": '{"a": 17}'},
        {"type": "function_call_output", "call_id": "call_1", "output": "42"},
        {"type": "message", "role": "assistant", **answer},
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "And this?"},
                {"type": "input_image", "image_url": PICTURE, "detail": "auto"},
            ],
        },
    ]


STORED_ANSWER: Body = {
    "id": "msg_1",
    "status": "completed",
    "content": [{"type": "output_text", "text": "42", "annotations": []}],
}
BARE_ANSWER: Body = {"content": [{"type": "output_text", "text": "42"}]}
STORED_REASONING: Body = {
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "Add."}],
    "encrypted_content": "AAAA",
}
BARE_REASONING: Body = {"summary": [], "content": [{"type": "reasoning_text", "text": "17 + 25"}]}
SAMPLING: Body = {"temperature": 0.5, "top_p": 0.9, "seed": 7, "stop": ["\n\n"]}

RICH: dict[Server, Body] = {
    "openai-chat": {
        **SAMPLING,
        **STREAM,
        "model": "gpt-5.4",
        "messages": conversation(),
        "tools": [TOOL],
        "tool_choice": NAMED_CHOICE,
        "parallel_tool_calls": False,
        "response_format": JSON_SCHEMA,
        "reasoning_effort": "xhigh",
        "max_completion_tokens": 100,
        "store": False,
        "metadata": {"run": "1"},
    },
    "openai-responses": {
        "model": "gpt-5.4",
        "instructions": "Be brief.",
        "input": items(STORED_REASONING, answer=STORED_ANSWER),
        "tools": [FLAT_TOOL],
        "tool_choice": {"type": "function", "name": "add"},
        "text": {"format": FLAT_JSON_SCHEMA, "verbosity": "low"},
        "reasoning": {"effort": "high", "summary": "auto"},
        "include": ["reasoning.encrypted_content"],
        "store": False,
        "stream": True,
        "stream_options": {"include_obfuscation": False},
        "max_output_tokens": 100,
    },
    "lmstudio": {
        **SAMPLING,
        **STREAM,
        "model": "qwen3-8b",
        "messages": conversation(),
        "tools": [TOOL],
        "tool_choice": "required",
        "response_format": JSON_SCHEMA,
        "max_tokens": 100,
        "top_k": 20,
        "ttl": 300,
    },
    "lmstudio-responses": {
        "model": "gpt-oss-20b",
        "input": items(STORED_REASONING, answer=STORED_ANSWER),
        "tools": [FLAT_TOOL],
        "reasoning": {"effort": "low"},
        "stream": True,
        "previous_response_id": "resp_1",
    },
    "vllm": {
        **SAMPLING,
        **STREAM,
        "model": "qwen3-8b",
        "messages": conversation(reasoning="17 + 25"),
        "tools": [TOOL],
        "tool_choice": NAMED_CHOICE,
        "response_format": JSON_SCHEMA,
        "reasoning_effort": "none",
        "chat_template_kwargs": {"enable_thinking": False, "custom": 1},
        "max_completion_tokens": 100,
        "top_k": 20,
    },
    "vllm-responses": {
        **SAMPLING,
        "model": "qwen3-8b",
        "input": items(BARE_REASONING, answer=BARE_ANSWER),
        "tools": [FLAT_TOOL],
        "tool_choice": "required",
        "text": {"format": FLAT_JSON_SCHEMA},
        "reasoning": {"effort": "medium"},
        "stream": True,
        "store": False,
    },
    "ollama": {
        **SAMPLING,
        **STREAM,
        "model": "qwen3:8b",
        "messages": conversation(reasoning="17 + 25"),
        "tools": [TOOL],
        "response_format": JSON_SCHEMA,
        "reasoning_effort": "none",
        "max_tokens": 100,
    },
    "llamacpp": {
        **SAMPLING,
        **STREAM,
        "model": "any",
        "messages": conversation(reasoning_content="17 + 25"),
        "tools": [TOOL],
        "tool_choice": "required",
        "response_format": JSON_SCHEMA,
        "reasoning_effort": "low",
        "chat_template_kwargs": {"enable_thinking": True},
        "cache_prompt": True,
        "max_tokens": -1,
    },
    "openrouter": {
        **SAMPLING,
        **STREAM,
        "model": "anthropic/claude-sonnet-5",
        "messages": conversation(reasoning="17 + 25", reasoning_details=DETAILS),
        "tools": [TOOL],
        "tool_choice": NAMED_CHOICE,
        "response_format": JSON_SCHEMA,
        "reasoning": {"effort": "high", "exclude": False},
        "provider": {"order": ["anthropic"], "require_parameters": True},
        "max_tokens": 100,
    },
    "sglang": {
        **SAMPLING,
        **STREAM,
        "model": "qwen3-8b",
        "messages": conversation(reasoning_content="17 + 25"),
        "tools": [TOOL],
        "tool_choice": NAMED_CHOICE,
        "response_format": JSON_SCHEMA,
        "reasoning_effort": 0.5,
        "chat_template_kwargs": {"thinking": True},
        "separate_reasoning": True,
        "max_completion_tokens": 100,
    },
}

EVERY: tuple[Server, ...] = get_args(Server)
CHAT: tuple[Server, ...] = tuple(server for server in EVERY if "messages" in RICH[server])
RESPONSES: tuple[Server, ...] = tuple(server for server in EVERY if "input" in RICH[server])


def others(known_to: set[Server]) -> tuple[Server, ...]:
    """The servers with a chat endpoint that do not document something."""
    return tuple(server for server in CHAT if server not in known_to)


def put(field: str, value: object) -> Callable[[Body], None]:
    return lambda body: body.update({field: value})


def put_in_message(index: int, **fields: object) -> Callable[[Body], None]:
    return lambda body: body["messages"][index].update(fields)


def put_in_item(index: int, **fields: object) -> Callable[[Body], None]:
    return lambda body: body["input"][index].update(fields)


def put_in(field: str, **fields: object) -> Callable[[Body], None]:
    return lambda body: body[field].update(fields)


IMAGE_BLOCKS = [{"type": "image_url", "image_url": {"url": PICTURE}}]
CHAT_TEXT = [{"type": "text", "text": "hi"}]

MISTAKES: dict[str, tuple[tuple[Server, ...], Callable[[Body], None], str]] = {
    "an unknown field": (EVERY, put("no_such_field", 1), "the body: expected only the fields"),
    "a wrong type": (EVERY, put("temperature", "warm"), "temperature: expected"),
    "no messages": (CHAT, lambda body: body.pop("messages"), "the body: expected all of"),
    "no input": (("lmstudio-responses", "vllm-responses"), lambda body: body.pop("input"), "the body: expected all of"),
    "our own role": (CHAT, put_in_message(3, role="toolResult"), 'messages[3].role: expected one of "'),
    "the developer role where it is unknown": (
        others({"openai-chat", "vllm", "openrouter", "sglang"}),
        put_in_message(0, role="developer"),
        'messages[0].role: expected one of "system"',
    ),
    "max_completion_tokens where it is unknown": (
        others({"openai-chat", "vllm", "llamacpp", "openrouter", "sglang"}),
        put("max_completion_tokens", 10),
        "came max_completion_tokens",
    ),
    "a result without its call": (
        CHAT,
        lambda body: body["messages"][3].pop("tool_call_id"),
        "messages[3]: expected all of",
    ),
    "a call with parsed arguments": (
        CHAT,
        lambda body: body["messages"][2]["tool_calls"][0]["function"].update(arguments={"a": 17}),
        "messages[2].tool_calls[0].function.arguments: expected type",
    ),
    "an image in an assistant message where it is unknown": (
        others({"openrouter", "sglang"}),
        put_in_message(4, content=IMAGE_BLOCKS),
        "messages[4].content[0].type: expected",
    ),
    "an image block without its url": (
        CHAT,
        put_in_message(5, content=[{"type": "image_url", "image_url": {"uri": PICTURE}}]),
        "messages[5].content[0].image_url",
    ),
    "a block of the Responses endpoint": (
        CHAT,
        put_in_message(5, content=[{"type": "input_text", "text": "hi"}]),
        'messages[5].content[0].type: expected one of "text", "image_url"',
    ),
    "reasoning_content where it is unknown": (
        others({"vllm", "llamacpp", "sglang", "lmstudio"}),
        put_in_message(2, reasoning_content="17 + 25"),
        "came reasoning_content",
    ),
    "reasoning where it is unknown": (
        others({"vllm", "ollama", "openrouter", "lmstudio"}),
        put_in_message(2, reasoning="17 + 25"),
        "messages[2]: expected only the fields",
    ),
    "reasoning_details where they are unknown": (
        others({"openrouter"}),
        put_in_message(2, reasoning_details=DETAILS),
        "came reasoning_details",
    ),
    "reasoning on a user's message": (
        CHAT,
        put_in_message(1, reasoning="17 + 25"),
        "messages[1]: expected only the fields",
    ),
    "an effort that does not exist": (
        ("openai-chat", "vllm", "ollama", "llamacpp", "openrouter", "sglang"),
        put("reasoning_effort", "off"),
        "reasoning_effort: expected",
    ),
    "an effort that Ollama does not document": (
        ("ollama",),
        put("reasoning_effort", "xhigh"),
        "reasoning_effort: expected enum",
    ),
    "an effort that LM Studio does not know": (
        ("lmstudio",),
        put("reasoning_effort", "xhigh"),
        "reasoning_effort: expected enum",
    ),
    "thinking as a word": (
        ("vllm", "llamacpp", "sglang"),
        put("chat_template_kwargs", {"enable_thinking": "true"}),
        "chat_template_kwargs.enable_thinking: expected type",
    ),
    "a named choice where only words are known": (
        ("lmstudio", "llamacpp"),
        put("tool_choice", NAMED_CHOICE),
        "tool_choice: expected",
    ),
    "a tool choice at Ollama": (("ollama",), put("tool_choice", "auto"), "came tool_choice"),
    "strict in a tool where it is unknown": (
        ("lmstudio", "ollama", "llamacpp"),
        lambda body: body["tools"][0]["function"].update(strict=True),
        "tools[0].function: expected only the fields",
    ),
    "a flat tool": (CHAT, put("tools", [FLAT_TOOL]), "tools[0]: expected"),
    "a JSON schema without its name": (
        CHAT,
        lambda body: body["response_format"]["json_schema"].pop("name"),
        "response_format.json_schema: expected all of",
    ),
    "json_object at LM Studio": (
        ("lmstudio",),
        put("response_format", {"type": "json_object"}),
        "response_format",
    ),
    "an older name for structured output": (("vllm",), put("guided_json", ANSWER_SCHEMA), "came guided_json"),
    "two constraints": (
        ("vllm",),
        put("structured_outputs", {"json": ANSWER_SCHEMA, "regex": "a+"}),
        "structured_outputs: expected",
    ),
    "stream options of a whole answer": (("vllm",), put("stream", False), "stream: expected const true"),
    "an empty list of tools": (("vllm",), put("tools", []), "tools: expected minItems 1"),
    "a choice without tools": (("vllm", "vllm-responses"), lambda body: body.pop("tools"), "expected all of tools"),
    "an image by address at Ollama": (
        ("ollama",),
        put_in_message(5, content=[{"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}]),
        "messages[5].content[0].image_url.url: expected pattern",
    ),
    "a chat message as a result": (
        RESPONSES,
        lambda body: body["input"].append({"role": "tool", "tool_call_id": "call_1", "content": "42"}),
        "input[6].role: expected one of",
    ),
    "calls inside a message": (
        RESPONSES,
        lambda body: body["input"].append({"role": "assistant", "content": "", "tool_calls": []}),
        "input[6]: expected only the fields",
    ),
    "a block of the chat endpoint": (
        RESPONSES,
        put_in_item(5, content=CHAT_TEXT),
        'input[5].content[0].type: expected one of "input_text"',
    ),
    "a call without its call_id": (
        RESPONSES,
        lambda body: body["input"][2].pop("call_id"),
        "input[2]: expected all of",
    ),
    "a reasoning item without its summary": (
        RESPONSES,
        lambda body: body["input"][1].pop("summary"),
        "input[1]: expected all of",
    ),
    "a nested tool": (RESPONSES, put("tools", [TOOL]), "tools[0]: expected"),
    "a field of the chat endpoint": (RESPONSES, put("messages", []), "came messages"),
    "seed and stop at OpenAI's Responses": (("openai-responses",), put("seed", 7), "came seed"),
    "usage options at OpenAI's Responses": (
        ("openai-responses",),
        put_in("stream_options", include_usage=True),
        "stream_options: expected only the fields include_obfuscation",
    ),
    "a nested JSON schema": (
        ("openai-responses", "vllm-responses"),
        put("text", {"format": JSON_SCHEMA}),
        "text.format: expected",
    ),
    "structured output at LM Studio's Responses": (
        ("lmstudio-responses",),
        put("text", {"format": FLAT_JSON_SCHEMA}),
        "came text",
    ),
    "the form of the answer given twice": (
        ("vllm-responses",),
        put("structured_outputs", {"json": ANSWER_SCHEMA}),
        "structured_outputs: expected",
    ),
}


@pytest.mark.parametrize("server", EVERY)
def test_a_rich_body_is_taken(server: Server) -> None:
    check_body(server, RICH[server])


@pytest.mark.parametrize("server", EVERY)
def test_the_smallest_body_is_taken(server: Server) -> None:
    text = {"messages": [{"role": "user", "content": "hi"}]} if server in CHAT else {"input": "hi"}
    check_body(server, {"model": "m", **text})


@pytest.mark.parametrize(
    ("server", "mistake"),
    [(server, mistake) for mistake, (servers, _, _) in MISTAKES.items() for server in servers],
)
def test_a_mistake_is_refused_at_its_place(server: Server, mistake: str) -> None:
    _, make, expected = MISTAKES[mistake]
    body = copy.deepcopy(RICH[server])
    make(body)
    with pytest.raises(AssertionError) as refusal:
        check_body(server, body)
    lines = str(refusal.value).splitlines()
    assert expected in str(refusal.value)
    assert lines[0].startswith(server)
    assert all("expected" in line and "came" in line for line in lines[1:])


def test_every_thing_that_is_wrong_is_named() -> None:
    with pytest.raises(AssertionError) as refusal:
        check_body("ollama", {"model": 1, "messages": [], "n": 2})
    assert len(str(refusal.value).splitlines()) == 1 + 3


def test_the_body_is_left_as_it_was() -> None:
    body = copy.deepcopy(RICH["vllm"])
    check_body("vllm", body)
    assert body == RICH["vllm"]


def references(node: Any) -> Iterator[str]:
    if isinstance(node, list):
        for item in cast("list[Any]", node):
            yield from references(item)
    elif isinstance(node, dict):
        for key, value in cast("dict[str, Any]", node).items():
            if key == "$ref" and isinstance(value, str):
                yield value
            else:
                yield from references(value)


@pytest.mark.parametrize("name", ["common", *EVERY])
def test_each_schema_is_sound_and_refers_to_what_is_there(name: str) -> None:
    schemas = registry()
    schema = schemas.contents(f"urn:published:{name}")
    Draft202012Validator.check_schema(schema)
    resolver = schemas.resolver(f"urn:published:{name}")
    for reference in references(schema):
        assert resolver.lookup(reference).contents


@pytest.mark.parametrize("name", ["common", *EVERY])
def test_each_schema_that_was_written_down_names_its_source(name: str) -> None:
    schema = registry().contents(f"urn:published:{name}")
    assert name.startswith("openai-") or len(schema["$comment"]) > 100
