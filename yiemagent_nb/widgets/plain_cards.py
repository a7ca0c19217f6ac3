"""What waits for a person, of ``ipywidgets`` alone: a call to approve, a server's question."""

from __future__ import annotations

import json
from collections.abc import Callable
from html import escape
from typing import TYPE_CHECKING, Any, cast

import ipywidgets

from yiemagent_nb.core.errors import InvalidParametersError, YiemAgentError
from yiemagent_nb.core.events import ApprovalChoice, ApprovalRequested, QuestionAsked
from yiemagent_nb.widgets.question_fields import QuestionField, question_fields, with_titles
from yiemagent_nb.widgets.texts import shortened
from yiemagent_nb.widgets.tool_details import is_web_address

if TYPE_CHECKING:
    from yiemagent_nb.core.agent import Agent

__all__ = ["approval_card", "button", "close_tree", "question_card"]

LONGEST_ARGUMENTS = 5_000
LONGEST_MESSAGE = 10_000

_WIDE = ipywidgets.Layout(width="auto")
_NOTE = "The words above are the server's. Enter no passwords or keys: no server should ask for them."

Complain = Callable[[str], None]


def button(text: str, action: Callable[[], None]) -> ipywidgets.Button:
    """A button that does something when it is clicked."""

    def click(_button: object) -> None:
        action()

    made = ipywidgets.Button(description=text, layout=_WIDE)
    cast("Any", made).on_click(click)
    return made


def close_tree(box: ipywidgets.Box) -> None:
    """Close a container with all that is in it: ``ipywidgets`` closes it alone, and buttons keep what they act on."""
    children = cast("tuple[ipywidgets.Widget, ...]", cast("Any", box).children)
    ipywidgets.Widget.close(box)
    for child in children:
        if isinstance(child, ipywidgets.Box):
            close_tree(child)
        else:
            child.close()


def approval_card(agent: Agent, request: ApprovalRequested, complain: Complain) -> ipywidgets.HBox:
    """A call that waits for a person's word."""

    def answer(choice: ApprovalChoice) -> Callable[[], None]:
        return lambda: _try(lambda: agent.approvals.resolve(request.request_id, choice), complain)

    call = f"{request.tool_name}({shortened(str(dict(request.args)), LONGEST_ARGUMENTS)})"
    source = f" from {escape(request.source)}" if request.source != "python" else ""
    return ipywidgets.HBox(
        [
            ipywidgets.HTML(f"Allow <code>{escape(call)}</code>{source}?"),
            button("Allow once", answer("allow_once")),
            button("Allow for this session", answer("allow_session")),
            button("Deny", answer("deny")),
        ]
    )


def question_card(agent: Agent, question: QuestionAsked, complain: Complain) -> ipywidgets.VBox:
    """A server's question with a form, or with an address to visit."""
    fields = question_fields(question.schema) if question.schema is not None else ()
    inputs = [(field, _input(field)) for field in fields or ()]

    def submit() -> None:
        content = _read(inputs) if question.schema is not None else None
        try:
            agent.questions.answer(question.request_id, content)
        except InvalidParametersError as error:
            raise with_titles(error, question.schema) from error

    accept = [button("Submit" if question.schema is not None else "Done", lambda: _try(submit, complain))]
    buttons = [
        *(accept if fields is not None else []),
        button("Decline", lambda: _try(lambda: agent.questions.decline(question.request_id), complain)),
        button("Dismiss", lambda: _try(lambda: agent.questions.cancel(question.request_id), complain)),
    ]
    return ipywidgets.VBox(
        [
            ipywidgets.HTML(
                f"<b>The server {escape(question.source)} asks:</b>"
                f"<p style='white-space:pre-wrap'>{escape(shortened(question.message, LONGEST_MESSAGE))}</p>"
                f"{_address(question.url) if question.schema is None else ''}"
                f"{'' if fields is not None else '<p>This question is too large to be shown.</p>'}"
            ),
            *(each for field, entry in inputs for each in (_label(field), entry)),
            ipywidgets.HTML(f"<small>{escape(_NOTE)}</small>"),
            ipywidgets.HBox(buttons),
        ]
    )


def _try(action: Callable[[], None], complain: Complain) -> None:
    try:
        action()
    except YiemAgentError as error:
        complain(str(error))
    else:
        complain("")


def _address(url: str) -> str:
    shown = f"<p><code style='overflow-wrap:anywhere'>{escape(url)}</code></p>"
    if not is_web_address(url):
        return shown
    return f'{shown}<p><a href="{escape(url)}" rel="noopener noreferrer" target="_blank">Open</a></p>'


def _label(field: QuestionField) -> ipywidgets.HTML:
    facts = ", ".join(filter(None, ("required" if field.required else "", field.format, field.hint)))
    description = f"<br>{escape(field.description)}" if field.description else ""
    return ipywidgets.HTML(f"<b>{escape(field.title)}</b> <small>{escape(facts)}</small>{description}")


def _input(field: QuestionField) -> ipywidgets.ValueWidget:
    match field.kind:
        case "choice" | "boolean":
            choices = field.choices or ()
            options = [(each.label, index) for index, each in enumerate(choices)] or [("No", False), ("Yes", True)]
            values = [each.value for each in choices] or [False, True]
            selected = options[values.index(field.default)][1] if field.default is not None else None
            return ipywidgets.Dropdown(options=[("", None), *options], value=selected, layout=_WIDE)
        case "choices":
            chosen = [index for index, each in enumerate(field.choices) if each.value in (field.default or [])]
            options = [(each.label, index) for index, each in enumerate(field.choices)]
            return ipywidgets.SelectMultiple(options=options, value=chosen, layout=_WIDE)
        case _:
            plain = field.default if isinstance(field.default, str) else json.dumps(field.default)
            return ipywidgets.Textarea(value="" if field.default is None else plain, rows=1, layout=_WIDE)


def _read(inputs: list[tuple[QuestionField, ipywidgets.ValueWidget]]) -> dict[str, Any]:
    """The values by their names; an empty field is absent.

    Raises:
        InvalidParametersError: Something should be a number, or JSON, and is none.
    """
    content: dict[str, Any] = {}
    for field, entry in inputs:
        value = cast("Any", entry).value
        if value in (None, "", ()):
            if field.required and field.nullable:
                content[field.name] = None
            continue
        content[field.name] = _value(field, value)
    return content


def _value(field: QuestionField, value: object) -> Any:
    match field.kind:
        case "text" | "boolean":
            return value
        case "choice":
            return field.choices[cast("int", value)].value
        case "choices":
            return [field.choices[index].value for index in cast("tuple[int, ...]", value)]
        case _:
            try:
                return json.loads(str(value), parse_constant=_no_number)
            except ValueError:
                wanted = "JSON" if field.kind == "json" else "a number"
                raise InvalidParametersError(f"{field.title} should be {wanted}, got {value!r}.") from None


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no JSON")
