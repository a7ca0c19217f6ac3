"""AgentAnswerer: answers what servers ask through an agent: its model, its approvals and its questions.

Servers are not trusted: what they ask costs money and a person's attention, so how much of it goes on
at once, and unseen, is limited here.
"""

from __future__ import annotations

import weakref
from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from yiemagent_nb.core.approval import Ask, Decision, Subject
from yiemagent_nb.core.concurrency import Interrupted, run_abortable
from yiemagent_nb.core.errors import InvalidParametersError, McpError, YiemAgentError
from yiemagent_nb.core.events import ApprovalChoice, ApprovalRequested, QuestionAsked
from yiemagent_nb.core.messages import new_id
from yiemagent_nb.core.questions import ReadAnswer
from yiemagent_nb.core.signal import AbortSignal
from yiemagent_nb.mcp.elicitation import ELICITATION, INVALID_PARAMS, Elicitation, read_elicitation
from yiemagent_nb.mcp.requests import INTERNAL_ERROR, REJECTED, Unanswered, too_many
from yiemagent_nb.mcp.sampling import SAMPLING, read_sampling, restored, sampling_result, shown

if TYPE_CHECKING:
    from yiemagent_nb.core.agent import Agent

__all__ = ["AgentAnswerer"]

MAX_SAMPLINGS = 4
"""How many requests to sample an agent takes of one server at once; further ones are rejected."""

MAX_SAMPLINGS_IN_RUN = 50
"""How many requests of one server an approval for the session covers in a run; then a person is asked again."""

MAX_QUESTIONS = 8
"""How many questions of one server wait in an agent at once; further ones are cancelled."""

MAX_MESSAGE = 10_000
"""Characters of a question's message that a person is shown."""

MAX_ADDRESS = 5_000
"""Characters of an address that a person may be asked to visit."""

_WHAT_SAMPLING_IS = "A server asks the model something on its own, and reads the answer."


class AgentAnswerer:
    """Answers through an agent, as long as that lives.

    Sampling is approved first, for each request or for the session, and answered by the agent's
    model, without its history and tools. What was allowed for the session counts while the agent
    runs, and a limited number of times in each run. A function of ``approve(ask=...)`` answers in a
    person's place, also only while the agent runs. The event sink hears of each request.

    Elicitations wait in ``agent.questions``. Both end when the agent is aborted, when the run in which
    they came is over, and when the server asks no more.

    Args:
        agent: Held weakly.
    """

    def __init__(self, agent: Agent) -> None:
        self._agent = weakref.ref(agent)
        self._unanswered: defaultdict[str, Unanswered] = defaultdict(Unanswered)
        """By server, since servers live on event loops of their own."""

    @property
    def busy(self) -> bool:
        """Whether the agent runs."""
        agent = self._agent()
        return agent is not None and agent.is_running

    async def sampling(self, server: str, params: Mapping[str, Any]) -> dict[str, Any] | None:
        """See ``Answerer``."""
        agent = self._living()
        if agent is None or not (agent.is_running or agent.hears_people):
            return None
        with self._unanswered[server].one(SAMPLING, MAX_SAMPLINGS) as admitted:
            if not admitted:
                raise too_many(MAX_SAMPLINGS)
            return await agent.alongside(lambda signal: _sample(agent, server, params, signal))

    async def elicitation(self, server: str, params: Mapping[str, Any]) -> dict[str, Any] | None:
        """See ``Answerer``."""
        question, read = _as_question(server, read_elicitation(params))
        agent = self._living()
        if agent is None or not agent.hears_people:
            return None
        with self._unanswered[server].one(ELICITATION, MAX_QUESTIONS) as admitted:
            if not admitted:
                return {"action": "cancel"}
            answer = await agent.alongside(lambda signal: agent.questions.ask(question, signal, read))
        content = {} if read is None or answer.action != "accept" else {"content": dict(answer.content)}
        return {"action": answer.action, **content}

    def _living(self) -> Agent | None:
        agent = self._agent()
        return None if agent is None or agent.closed else agent


def _as_question(server: str, asked: Elicitation) -> tuple[QuestionAsked, ReadAnswer | None]:
    """What a person is asked, and what reads their answer."""
    message = asked.message if len(asked.message) <= MAX_MESSAGE else f"{asked.message[:MAX_MESSAGE]}…"
    if len(asked.url) > MAX_ADDRESS:
        raise McpError(f"url must have at most {MAX_ADDRESS:,} characters.", rpc_code=INVALID_PARAMS)
    if asked.form is None:
        return QuestionAsked(new_id("question"), server, message, url=asked.url), None
    return QuestionAsked(new_id("question"), server, message, asked.form.schema), asked.form.read


async def _sample(agent: Agent, server: str, params: Mapping[str, Any], signal: AbortSignal) -> dict[str, Any] | None:
    """Have the request approved, then ask the model; None where nobody can approve it. Runs on the agent's loop."""
    asked = read_sampling(params)
    subject = Subject("sampling", server)  # no tool of a server's can be one of that kind
    choice: ApprovalChoice = "allow_session"
    if not agent.approvals.use(subject, MAX_SAMPLINGS_IN_RUN):
        ask = agent.approval_function if agent.is_running else None
        if ask is None and not agent.hears_people:
            return None
        decision = await _approved(agent, subject, params, signal, ask)
        choice = decision.choice
        if choice == "allow_edited" and decision.arguments is not None:
            asked = read_sampling(restored(decision.arguments, params))
    agent.trace("sampling.asked", server=server, choice=choice, messages=len(asked.messages))
    try:
        answer = await agent.complete(asked.messages, asked.system_prompt, signal=signal, **asked.options)
    except YiemAgentError as error:
        raise McpError(error.message, rpc_code=INTERNAL_ERROR) from error
    usage = answer.usage
    cost = None if usage is None or usage.cost is None else usage.cost.total
    agent.trace("sampling.answered", server=server, stop_reason=answer.stop_reason, cost=cost)
    if answer.stop_reason == "aborted":
        raise McpError("The request was stopped.", rpc_code=REJECTED)
    if answer.stop_reason == "error":
        raise McpError(answer.error_message or "The model failed to answer.", rpc_code=INTERNAL_ERROR)
    return sampling_result(answer, agent.backend_label)


async def _approved(
    agent: Agent, subject: Subject, params: Mapping[str, Any], signal: AbortSignal, ask: Ask | None
) -> Decision:
    """The decision of a person, or of a function in their place.

    Raises:
        McpError: The request is rejected.
    """
    request_id = new_id("approval")
    request = ApprovalRequested(request_id, request_id, SAMPLING, shown(params), subject.source, _WHAT_SAMPLING_IS)

    def check(edited: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            read_sampling(restored(edited, params))
        except McpError as error:
            raise InvalidParametersError(error.message) from error
        return edited

    try:
        decision = await run_abortable(agent.approvals.request(subject, request, signal, ask, check), signal)
    except Interrupted as error:
        raise McpError("The request was rejected: the run was aborted.", rpc_code=REJECTED) from error
    if decision.choice == "deny":
        reason = f": {decision.reason}" if decision.reason else ""
        raise McpError(f"The person rejected the request{reason}.", rpc_code=REJECTED)
    return decision
