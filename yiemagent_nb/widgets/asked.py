"""What waits for a person, and their answers: calls to be approved, and questions of servers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from yiemagent_nb.core.errors import InvalidParametersError
from yiemagent_nb.widgets.protocol import Answer, Approve
from yiemagent_nb.widgets.question_fields import with_titles

if TYPE_CHECKING:
    from yiemagent_nb.core.agent import Agent

__all__ = ["take_answer"]


def take_answer(agent: Agent, message: Approve | Answer) -> None:
    """Give the agent a person's word. From any thread.

    Raises:
        InvalidParametersError: Nothing waits for it, or it does not fit.
    """
    if isinstance(message, Approve):
        agent.approvals.resolve(message.request_id, message.choice, message.reason, message.arguments)
        return
    questions = agent.questions
    match message.action:
        case "accept":
            waiting = {each.request_id: each.schema for each in questions.pending}
            try:
                questions.answer(message.request_id, message.content)
            except InvalidParametersError as error:
                raise with_titles(error, waiting.get(message.request_id)) from error
        case "decline":
            questions.decline(message.request_id)
        case "cancel":
            questions.cancel(message.request_id)
