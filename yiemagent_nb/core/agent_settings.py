"""AgentSettings: what of an agent may be listened to, looked at and changed at any time, also in mid-run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, cast, final

from yiemagent_nb.core.approval import Ask, approvals_among
from yiemagent_nb.core.backend import Calling, DescribesModels, LlmCall, describe_backend
from yiemagent_nb.core.call_stages import CallObserver
from yiemagent_nb.core.config import AroundLlmCall, FormatMessages, LoopConfig, PrepareContext
from yiemagent_nb.core.errors import InvalidParametersError, YiemAgentError
from yiemagent_nb.core.events import AgentError, BackendChanged, HooksChanged, ToolsChanged, Trace
from yiemagent_nb.core.exchange import ExchangeObserver
from yiemagent_nb.core.hooks import AfterToolCall, AgentContext, BeforeToolCall, Hooks, as_hooks
from yiemagent_nb.core.hub import EventSink, Hub, Listener
from yiemagent_nb.core.limits import Limits
from yiemagent_nb.core.models import THINKING_LEVELS, LlmModel, ThinkingLevel
from yiemagent_nb.core.redaction import with_hidden_keys, with_plain_keys
from yiemagent_nb.core.runner import Runner
from yiemagent_nb.core.tool_source import tool_source
from yiemagent_nb.core.toolbox import Toolbox
from yiemagent_nb.core.tools import Tool, as_tools

if TYPE_CHECKING:
    from yiemagent_nb.core.agent import Agent

__all__ = ["UNCHANGED", "AgentSettings", "Unchanged", "as_model", "require_callable", "require_one_of"]


@final
class Unchanged:
    """The type of ``UNCHANGED``."""

    def __repr__(self) -> str:
        """The marker's name."""
        return "UNCHANGED"


UNCHANGED: Final = Unchanged()
"""Leaves a hook as it is, where None would take it away."""


class AgentSettings:
    """The part of an ``Agent`` that listens and changes. What is changed counts from the next turn on.

    Every method may be called from any thread.
    """

    _config: LoopConfig
    _context: AgentContext
    _toolbox: Toolbox
    _hub: Hub
    _runner: Runner

    @property
    def tools(self) -> Mapping[str, Tool]:
        """The tools that the model is offered, by name, in the order in which they were registered."""
        return MappingProxyType(self._context.tools)

    @property
    def registered_tools(self) -> Mapping[str, Tool]:
        """All tools by name, those among them that ``set_tool_active`` switched off."""
        return MappingProxyType(self._toolbox.registered)

    @property
    def hooks(self) -> Hooks:
        """The hooks that count from the next turn on."""
        config = self._config
        return Hooks(
            prepare_context=config.prepare_context,
            format_messages=config.format_messages,
            before_tool_call=as_hooks("before_tool_call", config.before_tool_call),
            after_tool_call=as_hooks("after_tool_call", config.after_tool_call),
            around_llm_call=config.around_llm_call,
        )

    @property
    def approval_function(self) -> Ask | None:
        """What answers approvals in code: the function of an ``approve(ask=...)`` among the hooks."""
        approvals = approvals_among(self._config.before_tool_call)
        return next((approval.ask for approval in approvals if approval.ask is not None), None)

    @property
    def mcp_servers(self) -> tuple[Any, ...]:
        """The MCP servers, in the order in which they were given."""
        source = self._toolbox.source
        return () if source is None else source.servers

    @property
    def mcp_problems(self) -> Mapping[str, tuple[str, ...]]:
        """By server, why it could not be asked for its tools, and what of them was left out."""
        source = self._toolbox.source
        return {} if source is None else source.problems

    @property
    def llm_call(self) -> LlmCall:
        """The backend that answers from the next turn on."""
        return self._config.llm_call

    @property
    def backend_label(self) -> str:
        """A short name of the backend, to show."""
        return describe_backend(self._config.llm_call)

    @property
    def options(self) -> Mapping[str, Any]:
        """Further keywords for the backend, such as ``temperature``. Keys among them are a ``SecretStr``."""
        return MappingProxyType(with_hidden_keys(self._config.options))

    @property
    def _model(self) -> LlmModel | None:
        return Calling.of(self._config.llm_call).model(self._config.model)

    def trace(self, step: str, **data: Any) -> None:
        """Tell the event sink of a named step, from any thread. For what serves the agent."""
        if self._hub.tracing:
            self._runner.tell(Trace(step, data))

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call ``listener(event, signal)`` for every event; returns what takes it back.

        A sync listener is called inline, in order, on the agent's event loop, and must be quick.
        An async one has a queue of its own. One that raises is reported and stays subscribed.
        """
        return self._hub.subscribe(listener)

    def observe_exchanges(self, observer: ExchangeObserver) -> Callable[[], None]:
        """Call ``observer(exchange)`` whenever the model is asked in a run; returns what takes it back.

        It is called on the agent's event loop, when the request goes out, and must be quick. The exchange
        is filled while the answer comes, and whole when the ``MessageEnd`` of its ``message_id`` is told.
        While nobody observes, nothing is kept.

        Raises:
            InvalidParametersError: It cannot be called.
        """
        return self._hub.exchanges.add(observer)

    def observe_calls(self, observer: CallObserver) -> Callable[[], None]:
        """Call ``observer(stage)`` whenever a tool begins to run, and of calls by hand also when they begin and end.

        It is called on the agent's event loop and must be quick; returns what takes it back. The rest of the
        model's calls is told by events.

        Raises:
            InvalidParametersError: It cannot be called.
        """
        return self._hub.calls.add(observer)

    def set_event_sink(self, sink: EventSink | None) -> None:
        """Send every event, ``Trace`` included, to ``sink``, or to none."""
        self._hub.set_sink(sink)

    def set_llm_call(self, llm_call: LlmCall, model: LlmModel | str | None = None) -> None:
        """Let another backend answer from the next turn on, in mid-run too.

        Args:
            llm_call: The backend.
            model: The model to ask it for; default: its own.
        """
        require_callable("llm_call", llm_call)
        chosen = as_model(model, llm_call)
        # The run may be on another thread: it never sees one backend's model with the other backend.
        self._config.model = None
        self._config.llm_call = llm_call
        self._config.model = chosen
        self._tell_backend()

    def set_tools(self, tools: Iterable[Tool | Callable[..., Any]]) -> None:
        """Replace the tools from the next turn on, in mid-run too. Those of MCP servers stay.

        Raises:
            InvalidParametersError: Two tools have one name; nothing was changed.
        """
        self._toolbox.replace_own(as_tools(tools))
        self._offer_tools()

    def add_tools(self, *tools: Tool | Callable[..., Any]) -> None:
        """Add tools, so that the model can call them from the next turn on.

        Raises:
            InvalidParametersError: A name is taken; nothing was changed.
        """
        self.set_tools((*self._toolbox.own.values(), *tools))

    def set_tool_active(self, name: str, active: bool) -> None:
        """Offer a tool to the model from the next turn on, or do not; in mid-run too.

        A tool that is not active cannot be called by the model. It stays in ``registered_tools``, and stays
        switched off when its server is asked for its tools again.

        Raises:
            ToolNotFoundError: There is no such tool.
        """
        if self._toolbox.set_active(name, active):
            self._offer_tools()

    def add_mcp_servers(self, *servers: Any) -> None:
        """Connect further MCP servers, in the background; the next turn waits for their tools.

        Args:
            *servers: As for ``mcp_servers``.

        Raises:
            InvalidParametersError: One is no server, or its name is taken; nothing was changed.
        """
        source = self._toolbox.source
        if source is None:
            source = tool_source(servers)
            source.attach(cast("Agent", self))
            self._toolbox.source = source
            self._config.prepare_tools = source.ready
            self.refresh_tools()
        else:
            source.add(servers)
        self._runner.binding.call(source.start)

    async def remove_mcp_server(self, server: Any) -> None:
        """Let go of an MCP server, which is disconnected if nobody else uses it; its tools are gone at once.

        Args:
            server: One of ``mcp_servers``, or its name.

        Raises:
            InvalidParametersError: There is no such server.
        """
        source = self._toolbox.source
        if source is None:
            raise InvalidParametersError("This agent has no MCP servers.", "add_mcp_servers(...) adds some.")
        await self._runner.binding.run(lambda: source.remove(server))

    def report(self, error: YiemAgentError) -> None:
        """Tell listeners, as an ``AgentError``, of something that a person should see. From any thread."""
        self._runner.tell(AgentError(error.code, str(error)))

    def refresh_tools(self) -> None:
        """Take over what the MCP servers offer now. They call it; it tells ``ToolsChanged`` if that is new."""
        if self._toolbox.refresh():
            self._offer_tools()

    def set_hooks(
        self,
        *,
        before_tool_call: BeforeToolCall | Sequence[BeforeToolCall] | Unchanged | None = UNCHANGED,
        after_tool_call: AfterToolCall | Sequence[AfterToolCall] | Unchanged | None = UNCHANGED,
        prepare_context: PrepareContext | Unchanged | None = UNCHANGED,
        format_messages: FormatMessages | Unchanged | None = UNCHANGED,
        around_llm_call: AroundLlmCall | Unchanged | None = UNCHANGED,
    ) -> None:
        """Replace hooks from the next turn on, in mid-run too; None takes one away.

        Raises:
            InvalidParametersError: Something given cannot be called; nothing was changed.
        """
        given = {
            "before_tool_call": before_tool_call,
            "after_tool_call": after_tool_call,
            "prepare_context": prepare_context,
            "format_messages": format_messages,
            "around_llm_call": around_llm_call,
        }
        changes = {name: hook for name, hook in given.items() if not isinstance(hook, Unchanged)}
        for name, hook in changes.items():
            as_hooks(name, hook)
        for name, hook in changes.items():
            setattr(self._config, name, hook)
        if changes:
            self._runner.tell(HooksChanged(tuple(changes)))

    def set_system_prompt(self, system_prompt: str) -> None:
        """Tell the model something else first, from the next turn on."""
        self._context.system_prompt = system_prompt

    def set_thinking_level(self, level: ThinkingLevel) -> None:
        """Let the model think more or less from the next turn on.

        Raises:
            InvalidParametersError: No such level.
        """
        require_one_of("thinking_level", level, THINKING_LEVELS)
        self._config.thinking_level = level
        self._tell_backend()

    def set_options(self, options: Mapping[str, Any]) -> None:
        """Replace the further keywords for the backend from the next turn on: ``{**agent.options, "seed": 1}``."""
        self._config.options = with_plain_keys(options)
        self._tell_backend()

    def set_limits(self, limits: Limits) -> None:
        """Change what the agent may do."""
        self._config.limits = limits

    def _offer_tools(self) -> None:
        self._context.tools = self._toolbox.offered
        self._runner.tell(ToolsChanged(tuple(self._context.tools)))

    def _tell_backend(self) -> None:
        name = None if self._model is None else self._model.id
        self._runner.tell(BackendChanged(self.backend_label, name))


def require_callable(name: str, value: object) -> None:
    """Refuse a backend that cannot be called."""
    if not callable(value):
        raise InvalidParametersError(
            f"{name} must be callable, not {type(value).__name__}.",
            "Pass a function (messages) -> answer, or a backend such as OpenAICompatible(...).",
        )


def require_one_of(name: str, value: object, words: Sequence[str]) -> None:
    """Refuse a word that is none of these."""
    if value not in words:
        raise InvalidParametersError(f"{name} must be one of {', '.join(words)}, not {value!r}.")


def as_model(model: LlmModel | str | None, llm_call: LlmCall) -> LlmModel | None:
    """A model by its name, with what the backend knows of it."""
    if isinstance(model, str):
        return llm_call.describe_model(model) if isinstance(llm_call, DescribesModels) else LlmModel(id=model)
    return model
