"""What waits for a person, of ``ipywidgets`` alone: a call to approve, a server's question."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from html import escape
from typing import TYPE_CHECKING, Any, cast

import ipywidgets

from yiemagent_nb.core.errors import InvalidParametersError, YiemAgentError
from yiemagent_nb.core.events import ApprovalChoice, ApprovalRequested, QuestionAsked
from yiemagent_nb.core.json_values import json_form
from yiemagent_nb.widgets.question_fields import QuestionField, question_fields, with_titles
from yiemagent_nb.widgets.texts import one_line, shortened
from yiemagent_nb.widgets.tool_details import is_web_address

if TYPE_CHECKING:
    from yiemagent_nb.core.agent import Agent

__all__ = ["approval_card", "button", "close_tree", "question_card"]

LONGEST_ARGUMENTS = 5_000
LONGEST_EDITED = 200_000
LONGEST_MESSAGE = 10_000
LONGEST_NAME = 120
LONGEST_DESCRIPTION = 500

_WIDE = {"width": "auto"}  # a Layout made here would be a widget of every kernel
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


def approval_card(
    agent: Agent, request: ApprovalRequested, complain: Complain, not_before: float = 0.0
) -> ipywidgets.VBox:
    """A call that waits for a person's word: four answers, two of them with a step of their own.

    Args:
        agent: The agent.
        request: The call.
        complain: Takes what is to be told.
        not_before: The moment, in monotonic seconds, from which an answer counts: a press that was
            meant for the card that stood here before is none.
    """
    args = json.dumps(json_form(request.args), ensure_ascii=False, indent=2)
    edited = ipywidgets.Textarea(value="", rows=min(12, args.count("\n") + 2), layout=ipywidgets.Layout(width="100%"))
    reason = ipywidgets.Text(placeholder="Why not? (the model is told)", layout=ipywidgets.Layout(width="100%"))

    def answer(choice: ApprovalChoice, more: Callable[[], Mapping[str, Any]] = dict) -> Callable[[], None]:
        def resolve() -> None:
            if time.monotonic() < not_before:
                raise InvalidParametersError("This call has only just appeared.", "Look at it, then answer.")
            agent.approvals.resolve(request.request_id, choice, **more())

        return lambda: _try(resolve, complain)

    def edit() -> None:
        cast("Any", edited).value = cast("Any", edited).value or args
        show(editing)

    def show(step: ipywidgets.Box) -> None:
        complain("")
        for each in steps:
            cast("Any", each).layout.display = "" if each is step else "none"

    def back() -> None:
        show(first)

    first = ipywidgets.HBox(
        [
            button("Allow once", answer("allow_once")),
            button("Allow for this session", answer("allow_session")),
            *([button("Edit…", edit)] if len(args) <= LONGEST_EDITED else []),
            button("Deny…", lambda: show(denying)),
        ]
    )
    allow_edited = answer("allow_edited", lambda: {"arguments": _read_arguments(cast("Any", edited).value)})
    deny = answer("deny", lambda: {"reason": cast("Any", reason).value})
    editing = _step(edited, button("Allow with these arguments", allow_edited), button("Back", back))
    denying = _step(reason, button("Deny", deny), button("Back", back))
    steps = (first, editing, denying)
    show(first)
    return ipywidgets.VBox([ipywidgets.HTML(_request_html(request, args)), *steps])


def _step(entry: ipywidgets.ValueWidget, *buttons: ipywidgets.Button) -> ipywidgets.VBox:
    return ipywidgets.VBox([entry, ipywidgets.HBox([*buttons])])


def _request_html(request: ApprovalRequested, args: str) -> str:
    name = request.label or request.tool_name
    source = f" from {escape(one_line(request.source, LONGEST_NAME))}" if request.source != "python" else ""
    said = "".join(f" <small>[{escape(one_line(hint, LONGEST_NAME))}]</small>" for hint in request.hints)
    description = escape(one_line(request.description, LONGEST_DESCRIPTION))
    return (
        f"Allow <b>{escape(one_line(name, LONGEST_NAME))}</b>{source} to run?{said}<br>"
        f"<code>{escape(one_line(request.tool_name, LONGEST_NAME))}</code> {description}"
        f"<pre style='white-space:pre-wrap'>{escape(shortened(args, LONGEST_ARGUMENTS))}</pre>"
    )


def _read_arguments(text: str) -> dict[str, Any]:
    """Arguments that a person wrote.

    Raises:
        InvalidParametersError: They are no JSON, or no object.
    """
    try:
        value: object = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise InvalidParametersError(
            f"The arguments are no JSON: {error}.", "Correct them and answer again."
        ) from error
    if not isinstance(value, dict):
        raise InvalidParametersError('The arguments are a JSON object, such as {"name": "value"}.')
    return cast("dict[str, Any]", value)


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
