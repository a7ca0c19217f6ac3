"""Uses every backend with marked keys against a server that says them back, and writes down all there is.

Run as ``python -m backends.keys_program FOLDER`` with the keys, the server's address, the path of some
weights and that of a file for keys made meanwhile, as JSON on its standard input. Into the folder it
writes no key by itself: where one stands there, this package let it out.
"""

from __future__ import annotations

import asyncio
import copy
import json
import logging
import os
import pickle
import signal
import sys
import traceback
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast, get_args

import httpx
import httpx2
from backends.hostile_server import WAYS
from IPython.core.ultratb import VerboseTB
from pydantic import BaseModel, SecretStr
from widgets.page import Page

from yiemagent_nb.backends.discovery import find_backend
from yiemagent_nb.backends.engine.model_server import ModelServer
from yiemagent_nb.backends.http.retry import RetryPolicy
from yiemagent_nb.backends.lm_studio import LMStudio
from yiemagent_nb.backends.local import Local
from yiemagent_nb.backends.openai import OpenAI
from yiemagent_nb.backends.openai_compatible import OpenAICompatible, Preset
from yiemagent_nb.backends.vllm import VLLM
from yiemagent_nb.core.agent import Agent
from yiemagent_nb.core.errors import YiemAgentError
from yiemagent_nb.core.events import Event, dump_event
from yiemagent_nb.sinks.jsonl import JsonlSink
from yiemagent_nb.sinks.log import LogSink
from yiemagent_nb.tracing.copies import CopyForm, copy_of
from yiemagent_nb.tracing.details import details_of
from yiemagent_nb.tracing.recorder import TraceRecorder
from yiemagent_nb.widgets.trace_panel import TracePanel

MESSAGES = [{"role": "user", "content": "hello"}]
ONCE = RetryPolicy(1, 0.001)
FEW_WAYS = ("401-json", "stream-late-error", "stream-named", "no-http")
"""Those that every way to give a key meets."""
MORE_WAYS = (*FEW_WAYS, "stream-failed", "whole-named", "400-values")
"""Those that every kind of backend meets."""

Build = Callable[[str], ModelServer]
"""Makes a backend for a way of the server's."""


class Record:
    """Writes down what can be seen of things, each under a title."""

    def __init__(self, folder: Path) -> None:
        self._file = (folder / "seen.txt").open("w", encoding="utf-8")

    def say(self, title: str, text: object) -> None:
        """Write a text."""
        self._file.write(f"--- {title}\n{text}\n")

    def look_at(self, title: str, thing: Any) -> None:
        """Write what a thing shows of itself, of a copy, in a pickle, and of its public attributes."""
        self.say(title, f"{thing!r}\n{thing!s}")
        for how, make in {"copy": copy.copy, "deepcopy": copy.deepcopy, "pickle": pickle.dumps}.items():
            try:
                made = make(thing)
            except Exception as error:
                self.say(f"{title}: {how} failed", error)
            else:
                self.say(f"{title}: {how}", repr(made))
        for name, value in public(thing):
            self.say(f"{title}.{name}", f"{value!r}\n{value!s}")

    def error(self, title: str, error: BaseException) -> None:
        """Write all that an error and those behind it show, the variables of their frames included."""
        for each in behind(error):
            if type(each).__module__.startswith("yiemagent_nb"):
                self.look_at(f"{title}: {type(each).__name__}", each)
            self.say(f"{title}: traceback", "".join(traceback.format_exception(each)))
            shown = traceback.TracebackException.from_exception(each, capture_locals=True)
            self.say(f"{title}: traceback with variables", "".join(shown.format()))

    def verbose(self, title: str, error: BaseException) -> None:
        """Write an error as IPython shows it after ``%xmode Verbose``."""
        lines = VerboseTB(theme_name="nocolor").structured_traceback(type(error), error, error.__traceback__)
        self.say(f"{title}: as a notebook shows it", "\n".join(lines))

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def public(thing: Any, depth: int = 2) -> Iterator[tuple[str, Any]]:
    """The public attributes of a thing, and those of what they hold."""
    for name in dir(thing):
        if name.startswith("_") or (isinstance(thing, BaseModel) and name not in type(thing).model_fields):
            continue
        with warnings.catch_warnings(action="ignore"):
            value = getattr(thing, name, None)
        if callable(value):
            continue
        yield name, value
        if depth and type(value).__module__.startswith("yiemagent_nb"):
            for inner, each in public(value, depth - 1):
                yield f"{name}.{inner}", each


def behind(error: BaseException) -> Iterator[BaseException]:
    """An error with its causes and contexts, whether or not they would be shown."""
    waiting: list[BaseException | None] = [error]
    seen: set[int] = set()
    while waiting:
        each = waiting.pop()
        if each is not None and id(each) not in seen:
            seen.add(id(each))
            yield each
            waiting += [each.__cause__, each.__context__, *getattr(each, "exceptions", ())]


async def failure_of(work: Awaitable[object]) -> BaseException | None:
    """How some work fails. No key stands in a variable here, since tracebacks begin in this frame."""
    try:
        await work
    except Exception as error:
        return error
    return None


async def last_of(pieces: AsyncIterator[Any]) -> None:
    async for _ in pieces:
        pass


async def use(record: Record, title: str, backend: ModelServer, folder: Path, *, thoroughly: bool) -> None:
    """Ask a backend in all ways, by itself and as an agent's, and write down what came of it."""
    answers: dict[str, Awaitable[object]] = {
        "stream": last_of(cast("AsyncIterator[Any]", backend(MESSAGES, thinking_level="high"))),
        "whole": cast("Awaitable[object]", backend(MESSAGES, stream=False)),
        "models": backend.models(),
    }
    for how, work in answers.items():
        if (error := await failure_of(work)) is not None:
            record.error(f"{title} {how}", error)
            if thoroughly and how == "stream":
                record.verbose(f"{title} {how}", error)
    if thoroughly:
        record.look_at(f"{title} health", await backend.health())
        record.look_at(title, backend)
    await run_agent(record, title, Agent(backend), folder)


async def run_agent(record: Record, title: str, agent: Agent, folder: Path) -> None:
    """Prompt an agent, and write down its events in all forms, its state, its messages and what a page is told."""
    events: list[Event] = []
    agent.subscribe(lambda event, _: events.append(event))
    agent.subscribe(lambda event, _: LogSink()(event))
    trace = TraceRecorder.of(agent)
    page = Page(agent)
    page.hello()
    with JsonlSink(folder / "events.jsonl") as sink:
        agent.set_event_sink(sink)
        message = await agent.prompt("hello")
        agent.set_event_sink(None)
    page.hello()
    await page.until("message_end")
    record.say(f"{title} message", f"{message!r}\n{message.model_dump_json()}")
    record.say(f"{title} events", "\n".join(f"{event!r} {dump_event(event)}" for event in events))
    record.say(f"{title} page", json.dumps(page.batches))
    tell_trace(record, f"{title} trace", trace)
    record.look_at(f"{title} agent", agent)
    record.look_at(f"{title} state", agent.state)
    page.host.close()


def tell_trace(record: Record, title: str, trace: TraceRecorder) -> None:
    """Write all that a trace shows of its rows: figures, what was sent and came back, copies."""
    record.say(title, repr(trace))
    panel = TracePanel(cast("Agent", trace.agent()))
    record.say(f"{title} panel", json.dumps(panel.state()))
    for row in trace.rows():
        record.say(f"{title} row", f"{row!r}\n{details_of(row)!r}")
        for exchange in row.model.exchanges:
            record.say(f"{title} exchange", f"{exchange.label} {exchange.options!r}")
            for wire in exchange.wire:
                record.look_at(f"{title} headers", (wire.url, *wire.headers, *wire.answer_headers, wire.error))
        for form in get_args(CopyForm):
            try:
                record.say(f"{title} as {form}", copy_of(trace, row, form).text)
            except YiemAgentError as error:
                record.error(f"{title} as {form}", error)


def givers(keys: Mapping[str, str], server: str) -> dict[str, Build]:
    """Backends that were given their key in every way there is."""

    def at(way: str, login: str = "") -> str:
        return f"http://{login}{server}/{way}/v1"

    def compatible(base_url: str, **options: Any) -> ModelServer:
        return OpenAICompatible(base_url, "m", retries=ONCE, **options)

    os.environ["MARKED_KEY"] = keys["api_key_env"]
    return {
        "api_key": lambda way: compatible(at(way), api_key=keys["api_key"]),
        "SecretStr": lambda way: compatible(at(way), api_key=SecretStr(keys["SecretStr"])),
        "api_key_env": lambda way: compatible(at(way), api_key_env="MARKED_KEY"),
        "Authorization": lambda way: compatible(at(way), headers={"Authorization": f"Bearer {keys['Authorization']}"}),
        "api-key": lambda way: compatible(at(way), headers={"api-key": keys["api-key"]}),
        "X-API-Key": lambda way: compatible(at(way), headers={"X-API-Key": f"{keys['X-API-Key']}\n"}),
        "Cookie": lambda way: compatible(at(way), headers={"Cookie": f"session={keys['Cookie']}"}),
        "base_url": lambda way: compatible(at(way, f"someone:{keys['base_url']}@")),
        "escaped base_url": lambda way: compatible(at(way, f"one:{keys['escaped base_url']}%2B%40%2F@")),
        "line break": lambda way: compatible(at(way), api_key=f"{keys['line break']}\n"),
        "illegal": lambda way: compatible(at(way), api_key=f"{keys['illegal']}é"),
        "odd": lambda way: compatible(at(way), api_key=keys["odd"]),
        "httpx2 headers": lambda way: compatible(
            at(way), http_client=httpx2.AsyncClient(trust_env=False, headers={"x-api-key": keys["httpx2 headers"]})
        ),
        "httpx auth": lambda way: compatible(
            at(way), http_client=httpx.AsyncClient(trust_env=False, auth=("someone", keys["httpx auth"]))
        ),
        "httpx key": lambda way: compatible(
            at(way), api_key=keys["httpx key"], http_client=httpx.AsyncClient(trust_env=False)
        ),
        "extra_body": lambda way: compatible(at(way), extra_body={"api_key": keys["extra_body"]}),
    }


def kinds(keys: Mapping[str, str], server: str) -> dict[str, Build]:
    """Every class and preset, each with a key as an argument and with one from its own variable."""
    for variable in ("OPENAI_API_KEY", "OPENROUTER_API_KEY", "LM_API_TOKEN"):
        os.environ[variable] = keys["variable"]
    found: dict[str, Build] = {}
    for how, options in {"argument": {"api_key": keys["argument"]}, "variable": {}}.items():
        more: dict[str, Any] = {"retries": ONCE, **options}
        found |= {
            f"OpenAI {how}": lambda way, more=more: OpenAI("gpt-5.4", base_url=f"http://{server}/{way}/v1", **more),
            f"OpenAI chat {how}": lambda way, more=more: OpenAI(
                "gpt-4o", base_url=f"http://{server}/{way}/v1", api="chat-completions", **more
            ),
            f"VLLM {how}": lambda way, more=more: VLLM("m", base_url=f"http://{server}/{way}/v1", **more),
            f"LMStudio {how}": lambda way, more=more: LMStudio("m", base_url=f"http://{server}/{way}/v1", **more),
            f"no model {how}": lambda way, more=more: OpenAICompatible(f"http://{server}/{way}/v1", **more),
        }
        for preset in get_args(Preset):
            found[f"{preset} {how}"] = lambda way, more=more, preset=preset: OpenAICompatible(
                f"http://{server}/{way}/v1", "m", preset=preset, api="responses", **more
            )
    return found


async def give_up(record: Record, backend: Build) -> None:
    """Stop waiting: by cancelling, by a timeout of the backend's own, and by an abort."""
    for way in ("stall", "stall-late"):
        try:
            async with asyncio.timeout(0.1):
                await last_of(cast("AsyncIterator[Any]", backend(way)(MESSAGES)))
        except TimeoutError as error:
            record.error(f"cancelled in {way}", error)
            record.verbose(f"cancelled in {way}", error)
    agent = Agent(backend("stall-late"))
    agent.subscribe(lambda event, _: agent.abort() if event.type == "message_update" else None)
    record.say("aborted", repr(await agent.prompt("hello")))


async def discover(record: Record, keys: Mapping[str, str], server: str, folder: Path) -> None:
    """Find a backend by what stands in the environment."""
    os.environ |= {
        "YIEMAGENT_BACKEND": f"http://someone:{keys['discovered']}@{server}/401-json/v1",
        "YIEMAGENT_API_KEY": keys["argument"],
        "YIEMAGENT_MODEL": "m",
    }
    found = await find_backend()
    record.say("found", f"{found!r}\n{found}")
    await run_agent(record, "found", Agent(found.backend), folder)


def construct(record: Record, keys: Mapping[str, str]) -> None:
    """Build what cannot be built. A traceback's variables are the caller's own here."""
    secret = keys["malformed"]
    for base_url in (
        f"htp://one:{secret}@host/v1",
        f"http://one:{secret}/2@host/v1",
        f"http://one:{secret}#2@host/v1",
        f"http://one:12/{secret}@host/v1",
        f"http://one:{secret}@[::1/v1",
        f"http://one:{secret}\u2100@host/v1",
        f"http://host/v1?key={secret}",
        f"one:{secret}@host/v1",
    ):
        for kind in (OpenAICompatible, OpenAI, VLLM, LMStudio):
            try:
                kind(base_url=base_url)
            except YiemAgentError as error:
                record.look_at("malformed", error)
                record.say("malformed", "".join(traceback.format_exception(error)))
            else:
                raise AssertionError("it could be built")
    try:
        OpenAICompatible("http://host/v1", headers={"x-api-key": f"{secret}\n{secret}"})
    except YiemAgentError as error:
        record.look_at("malformed header", error)


async def use_local(record: Record, weights: str, folder: Path) -> str:
    """Run a model in a child process, also until it is killed; gives back the key that it was made."""
    backend = Local(weights, context_window=512, threads=1, max_tokens=4)
    await backend.start()
    server: Any = vars(backend)["_server"]
    await run_agent(record, "Local", Agent(backend), folder)
    record.look_at("Local", backend)
    record.look_at("Local server", server)
    record.look_at("Local health", await backend.health())
    pieces = cast("AsyncIterator[Any]", backend(MESSAGES, max_tokens=400))
    await anext(pieces)
    await anext(pieces)
    os.kill(backend.pid or 0, signal.SIGKILL)
    error = await failure_of(last_of(pieces))
    assert error is not None
    record.error("Local killed", error)
    record.verbose("Local killed", error)
    await backend.aclose()
    return server.key.get_secret_value()


class EveryAttribute(logging.Formatter):
    """Shows all that a record holds."""

    def format(self, record: logging.LogRecord) -> str:
        """The usual line, and what it was made of."""
        return f"{super().format(record)} {record.args!r} {getattr(record, 'event', '')!r}"


async def main(folder: Path, told: Mapping[str, Any]) -> dict[str, str]:
    """Use everything; gives back the keys that were made meanwhile."""
    keys, server = cast("Mapping[str, str]", told["keys"]), str(told["server"])
    record = Record(folder)
    by_giver = givers(keys, server)
    for way in WAYS:
        if not way.startswith("stall"):
            await use(record, f"api_key {way}", by_giver["api_key"](way), folder, thoroughly=way in MORE_WAYS)
    for giver, build in by_giver.items():
        for way in FEW_WAYS:
            await use(record, f"{giver} {way}", build(way), folder, thoroughly=way == "401-json")
    for kind, build in kinds(keys, server).items():
        for way in MORE_WAYS if kind.endswith("argument") else ("401-json",):
            await use(record, f"{kind} {way}", build(way), folder, thoroughly=way == "401-json")
    await give_up(record, by_giver["api_key"])
    agent = Agent(by_giver["SecretStr"]("401-json"), options={"api_key": keys["options"]})
    await run_agent(record, "options", agent, folder)
    await discover(record, keys, server, folder)
    construct(record, keys)
    local_key = await use_local(record, str(told["weights"]), folder)
    record.close()
    return {"Local": local_key}


if __name__ == "__main__":
    logs = logging.FileHandler(Path(sys.argv[1]) / "log.txt", encoding="utf-8")
    logs.setFormatter(EveryAttribute())
    logging.basicConfig(level=logging.DEBUG, handlers=[logs])
    told: Mapping[str, Any] = json.load(sys.stdin)
    own_keys = asyncio.run(main(Path(sys.argv[1]), told), debug=True)
    Path(told["own_keys"]).write_text(json.dumps(own_keys))
