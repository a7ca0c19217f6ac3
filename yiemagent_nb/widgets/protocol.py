"""What a widget and its page say to each other.

Everything goes over the widget's custom messages, as JSON; nothing of a conversation is a
synced trait, so no saved notebook holds one in its widget state.

**From the page** comes one object a message, told apart by ``type``. A page is not trusted:
``read_page_message`` validates each one.

==============  ================================  =============================================
type            fields                            meaning
==============  ================================  =============================================
``hello``       last_seq, page                    a page is there; it has seen batch ``last_seq``
                                                  (0: nothing), and wants a snapshot if it is behind
``heartbeat``   last_seq, page                    still there; answered by ``alive``
``bye``         page                              no view is left; send nothing until ``hello``
``earlier``     before                            the messages that stand before this index
``send``        ticket, text, attachments         to the input channel (during a run: steering)
``follow_up``   ticket, text, attachments         to the follow-up channel
``take_back``   ticket, key                       a message that waits; told by ``taken_back``
``steer_now``   ticket, key                       a follow-up joins the run that goes on
``stop``                                          abort the run
``edit``        ticket, index, text               another text for a message of a person, in a branch of its own
``regenerate``  ticket, index                     another answer in place of this one, in a branch of its own
``switch_branch``  ticket, index, position        show another branch that begins at this message
``command``     ticket, name, text                a slash command, and the words behind it
``export``      ticket, format                    the conversation as markdown or a notebook; told by ``file``
``approve``     request_id, choice, reason,       a person's word on a call
                arguments
``answer``      ticket, request_id, action,       a person's answer to a server's question: accept
                content                           (with values, by the names of its fields),
                                                  decline or cancel
``load_audio``  ticket, key                       a recording that a result has; told by ``audio``
``set_backend``  ticket, key                      another backend, by its key in ``backend.choices``
``set_model``   ticket, model                     another model of this backend
``set_thinking``  ticket, level                   another thinking level, from the next turn on
``set_options``  ticket, options                  sampling parameters by name; null takes one away
``add_backend``  ticket, base_url, model, key_env  a server at an address; a key comes as the message's
                                                  one binary buffer, never in its JSON
``check_backend``  ticket                         ask the backend how it is; told by ``backend``
``load_part``   name                              the text of a part of the front end
==============  ================================  =============================================

An ``attachment`` is a file that a person adds: name, mime_type, data (base64).

A ``page`` names itself, so that a widget knows whether another one looks when one leaves.

A ``ticket`` names one press of a button. It is answered by ``accepted`` or ``refused``, and a
repeated one is carried out once, so a page may ask again when it hears nothing.

**To the page** go batches, at most 25 a second::

    {"seq": 7, "events": [...]}                     seq grows by one with each batch
    {"seq": 8, "events": [...], "snapshot": {...}}  all there is, after those events

A page that is in step applies the events and leaves the snapshot alone, unless ``renewed`` stands
among them. One that is new, or
that missed a number, waits for a snapshot and takes that instead. Lengths and offsets count
Unicode code points.

==================  =========================================================================
event               fields
==================  =========================================================================
``run_start``
``run_end``         reason
``message``         id, index, message: a whole message of a person, a tool or a note
``message_start``   id: an answer begins
``delta``           block, offset, text; in the first of a block also its kind (text, reasoning,
                    tool_call), call_id and name; those of a block within a batch are joined
``message_end``     id, index, message: blocks that were streamed carry ``length`` for ``text``
                    (an answer also has ``took`` (line, details), ``seconds`` since its run
                    began, and ``error`` (message, hint, code), or null for each, wherever it stands)
``tool_start``      call_id, name, args
``tool_update``     call_id, content: the newest progress; progress: 0 to 1, or null
``tool_end``        call_id, is_error, duration (s), content; details, where there are any
``queue``           steering, follow_ups: what waits, oldest first: key, text, images (how many), files (names)
``taken_back``      ticket, content: the blocks of a message that waits no more
``approval``        request_id, call_id (of no call here: it stands alone), name, label, args, args_text
                    (instead of args that are long, or hold integers that a page would round, and cannot
                    be edited there; else null), source, description, hints (words such as "destructive")
``approval_done``   request_id, call_id, choice, reason
``question``        request_id, source, message; fields (``QuestionField``), or null and a url, or
                    neither where it is too large to be shown
``question_done``   request_id, action
``tools``           tools: name, label, source; suggestions
``backend``         label, choices (key, label), key, note, thinking (level, levels, note), model, models,
                    window (how many tokens the model takes, or null),
                    health (state: unknown, checking, ok or bad; message, hint), options (by name, or
                    null), options_note, presets (key, label, base_url, key_env)
``usage``           context (tokens of the newest request and its answer, or null), window (how many
                    the model takes, or null), spent (in words)
``file``            ticket, name, mime_type, text: what ``export`` asked for
``notice``          text: what a command says to the person
``error``           code, message, hint
``history``         start, messages: what ``earlier`` asked for
``renewed``         the history is another one: the snapshot that comes along tells it
``accepted``        ticket
``refused``         ticket (or empty), code, message, hint
``alive``           total: how many messages there are
``part``            name, text
``panel``           panel, event: what a panel beside the chat tells; see ``panel_protocol``
``reply``           ticket, value: what a request asked for, told just before ``accepted``
``audio``           key, data (base64)
==================  =========================================================================

A message at which the conversation branches has ``branch``: position (from 0) and count. Another
branch, or a history that was replaced, is told by a snapshot.

``details`` of a result, there and in its message, are what an MCP server sent beside text and
images: server, parts, left_out (what is not there, in words). A part is one of ``tool_details``; a
recording has a ``key`` instead of its data, empty where it cannot be played.

The snapshot has ``messages`` (the newest), ``start`` (the index of the first of them),
``total``, ``live`` (an answer in the making, or null), ``calls`` (those that run),
``running``, ``queue``, ``usage``, ``commands`` (name, description, takes: what its words are),
``approvals``, ``questions``, ``tools`` and ``backend``, in the forms above; ``session``, which
messages that act must bring back; and the state of each panel beside the chat that is open.

The messages of the panels beside the chat stand in ``panel_protocol``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, Self, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, model_validator

from yiemagent_nb.core.events import ApprovalChoice, QuestionAction
from yiemagent_nb.core.models import ThinkingLevel
from yiemagent_nb.widgets.page_message import MAX_TEXT, FromPage, Ticketed, bounded
from yiemagent_nb.widgets.panel_protocol import PanelMessage

__all__ = [
    "AddBackend",
    "Answer",
    "Approve",
    "Attachment",
    "Bye",
    "CheckBackend",
    "Command",
    "Earlier",
    "Edit",
    "Export",
    "FollowUp",
    "Heartbeat",
    "Hello",
    "LoadAudio",
    "LoadPart",
    "PageEvent",
    "PageMessage",
    "Regenerate",
    "Send",
    "SetBackend",
    "SetModel",
    "SetOptions",
    "SetThinking",
    "SteerNow",
    "Stop",
    "SwitchBranch",
    "TakeBack",
    "json_safe",
    "read_page_message",
]

PageEvent = dict[str, Any]
"""One event for the page, in the form that the module's docstring lists."""

MAX_ATTACHMENTS = 20
MAX_ATTACHED = 8_000_000
"""Characters of base64 in one message: Jupyter servers close a connection over a message of 10 MB."""


_PAGE = Field(default="", max_length=64)


class Hello(FromPage):
    """A page is there."""

    type: Literal["hello"]
    last_seq: int = Field(ge=0)
    page: str = _PAGE


class Heartbeat(FromPage):
    """A page is still there."""

    type: Literal["heartbeat"]
    last_seq: int = Field(ge=0)
    page: str = _PAGE


class Bye(FromPage):
    """The last view is gone."""

    type: Literal["bye"]
    page: str = _PAGE


class Earlier(FromPage):
    """A page wants the messages before an index."""

    type: Literal["earlier"]
    before: int = Field(ge=0)


class Attachment(BaseModel):
    """A file that a person adds to what they write."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    name: str = Field(max_length=300)
    mime_type: str = Field(max_length=200)
    data: str = Field(max_length=MAX_ATTACHED)


class _Said(Ticketed):
    text: str = Field(max_length=MAX_TEXT)
    attachments: tuple[Attachment, ...] = Field(default=(), max_length=MAX_ATTACHMENTS)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.text.strip() and not self.attachments:
            raise ValueError("there is neither a text nor a file")
        if sum(len(each.data) for each in self.attachments) > MAX_ATTACHED:
            raise ValueError(f"the files take more than {MAX_ATTACHED:,} characters")
        return self


class Send(_Said):
    """A person wrote something."""

    type: Literal["send"]


class FollowUp(_Said):
    """A person wrote something for when the run would end."""

    type: Literal["follow_up"]


class TakeBack(Ticketed):
    """A person takes back a message that waits."""

    type: Literal["take_back"]
    key: str = Field(min_length=1, max_length=40)


class SteerNow(Ticketed):
    """A person lets a follow-up join the run that goes on."""

    type: Literal["steer_now"]
    key: str = Field(min_length=1, max_length=40)


class Edit(Ticketed):
    """A person says something else in place of an earlier message."""

    type: Literal["edit"]
    index: int = Field(ge=0)
    text: str = Field(max_length=MAX_TEXT)


class Regenerate(Ticketed):
    """A person wants another answer in place of this one."""

    type: Literal["regenerate"]
    index: int = Field(ge=0)


class SwitchBranch(Ticketed):
    """A person wants to see another branch."""

    type: Literal["switch_branch"]
    index: int = Field(ge=0)
    position: int = Field(ge=0)


class Command(Ticketed):
    """A slash command."""

    type: Literal["command"]
    name: str = Field(min_length=1, max_length=100)
    text: str = Field(default="", max_length=MAX_TEXT)


class Export(Ticketed):
    """A person wants to keep the conversation as a file."""

    type: Literal["export"]
    format: Literal["markdown", "notebook"]


class Stop(FromPage):
    """A person stops the run."""

    type: Literal["stop"]


class Approve(Ticketed):
    """A person's word on a call."""

    type: Literal["approve"]
    request_id: str = Field(min_length=1, max_length=200)
    choice: ApprovalChoice
    reason: str = Field(default="", max_length=10_000)
    arguments: dict[str, Any] | None = None


class Answer(Ticketed):
    """A person's answer to a server's question."""

    type: Literal["answer"]
    request_id: str = Field(min_length=1, max_length=200)
    action: QuestionAction
    content: Annotated[dict[str, Any], AfterValidator(bounded)] | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.action != "accept" and self.content is not None:
            raise ValueError("content belongs to accept")
        return self


class LoadAudio(Ticketed):
    """A person wants to hear a recording."""

    type: Literal["load_audio"]
    key: str = Field(min_length=1, max_length=40)


class SetBackend(Ticketed):
    """A person picks another backend."""

    type: Literal["set_backend"]
    key: str = Field(min_length=1, max_length=1000)


class SetModel(Ticketed):
    """A person picks another model of the backend."""

    type: Literal["set_model"]
    model: str = Field(min_length=1, max_length=1000)


class SetThinking(Ticketed):
    """A person lets the model think more or less."""

    type: Literal["set_thinking"]
    level: ThinkingLevel


class SetOptions(Ticketed):
    """A person changes how the model samples; None takes an option away."""

    type: Literal["set_options"]
    options: Annotated[dict[str, float | None], Field(max_length=20)]


class AddBackend(Ticketed):
    """A person names a server. Its key comes beside the message, as a binary buffer."""

    type: Literal["add_backend"]
    base_url: str = Field(min_length=1, max_length=2000)
    model: str = Field(default="", max_length=1000)
    key_env: str = Field(default="", max_length=200)


class CheckBackend(Ticketed):
    """A person wants to know how the backend is."""

    type: Literal["check_backend"]


class LoadPart(FromPage):
    """A page needs a part of the front end that is loaded on first need."""

    type: Literal["load_part"]
    name: Literal[
        "markdown",
        "highlight",
        "math",
        "search",
        "settings",
        "questions",
        "editor",
        "files",
        "menu",
        "code",
        "inspector",
        "hooks",
        "trace",
    ]


PageMessage = Annotated[
    AddBackend
    | Answer
    | Approve
    | Bye
    | CheckBackend
    | Command
    | Earlier
    | Edit
    | Export
    | FollowUp
    | Heartbeat
    | Hello
    | LoadAudio
    | LoadPart
    | PanelMessage
    | Regenerate
    | Send
    | SetBackend
    | SetModel
    | SetOptions
    | SetThinking
    | SteerNow
    | Stop
    | SwitchBranch
    | TakeBack,
    Field(discriminator="type"),
]
"""Anything that a page may say."""

_adapter: TypeAdapter[PageMessage] = TypeAdapter(PageMessage)


def read_page_message(content: object) -> PageMessage:
    """Validate what a page sent.

    Raises:
        pydantic.ValidationError: It is none of the messages above; the error names the field.
    """
    return _adapter.validate_python(content)


_SURROGATE = re.compile("[\ud800-\udfff]")


def json_safe(value: object) -> Any:
    """Any value as plain JSON that every encoder takes.

    Numbers that are none become text, lone surrogates become U+FFFD one for one (so that
    lengths stay), and what JSON cannot hold becomes its ``repr``.
    """
    if isinstance(value, BaseModel):
        value = value.model_dump()
    match value:
        case None | bool() | int():
            return value
        case float() if math.isfinite(value):
            return value
        case str():
            return value if value.isascii() else _SURROGATE.sub("\ufffd", value)
        case Mapping():
            items = cast("Mapping[object, object]", value).items()
            return {json_safe(str(key)): json_safe(item) for key, item in items}
        case list() | tuple() | set() | frozenset():
            return [json_safe(item) for item in cast("Iterable[object]", value)]
        case _:
            return _SURROGATE.sub("\ufffd", repr(value))
