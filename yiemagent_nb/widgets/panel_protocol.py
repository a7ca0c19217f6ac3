"""What the panels beside the chat and their pages say to each other; the rest is in ``protocol``.

Such a panel tells nothing before a page opens it. From then on its events go over as::

    {"type": "panel", "panel": "trace", "event": {...}, "whole": true}

``whole`` says that the event tells all there is of its kind, so that of several in a batch only the
newest goes over. The first event is ``{"type": "state", "state": {...}}``, which a snapshot also has
under the panel's name (null until it was opened).

**From the page.** All are answered by ``accepted`` or ``refused`` but ``open_panel``. Those marked
with a star act, and carry ``session``, which the snapshot told. "Gives" is what the ``reply``
event brings as ``value``.

===================  ================================  ========================================
type                 fields                            meaning
===================  ================================  ========================================
``open_panel``       panel                             a page shows this panel
``load_tool``        name                              gives ``ToolDetails``
``call_tool`` *      call, name, arguments_text, hooks  call a tool by hand, with the agent's hooks
                                                       or without; ``call`` is a name that the page
                                                       gives it; told by ``call`` events
``cancel_call``      call                              stop such a call
``load_call``        call                              gives ``CallDetails``
``enable_tool`` *    name, enabled                     offer a tool to the model, or do not
``act_on_server`` *  server, action                    connect, reconnect, disconnect, remove, refresh
                                                       (ask for its tools again) or check (its latency)
``add_server`` *     config, name                      a server: an address, a command line, or an entry
                                                       of an MCP configuration as JSON; a token comes as
                                                       the message's one binary buffer, and stands for
                                                       ``${input:…}`` in what was written; gives {servers
                                                       (names), notes (what was passed over, texts)}
``load_log``         server, before                    gives {entries, start}: what was said before entry
                                                       ``before`` (null: the newest); from then on ``log``
                                                       events tell what is said. ``start`` is the number of
                                                       the first, or 0 where none is kept before it
``load_log_entry``   server, number                    gives {text}: one message, whole
``list_resources`` *  server                           gives {resources, templates}
``read_resource`` *  server, uri                       gives {contents}: ``ResultPart``s
``watch_resource`` *  server, uri, watch               be told of its updates, or no more
``list_prompts`` *   server                            gives {prompts}
``get_prompt`` *     server, name, arguments           gives {description, messages (role, content, details)}
``draft_hook``       hook, code                        what stands in the editor; kept, never run
``check_code``       code                              gives {problems}: where it is no Python, or
                                                       Python warns of it
``complete_code``    code, cursor                      gives {items, start}: names that fit; nothing runs
``apply_hook`` *     hook, code, action, replaces,     ``try``: gives ``Trial``; ``apply``: gives
                     on_error                          {version, problems}: version is null where there are
                                                       problems. The only message whose code runs
``remove_hook`` *    hook, index                       take an installed hook away
``revert_hook`` *    hook                              what was installed before the editor's first apply
``load_version``     hook, version                     gives {code}
``load_rows``        start, count                      gives {start, rows}: rows of the trace
``load_row``         row                               gives ``RowDetails``
``load_difference``  row, against                      gives ``Difference`` to the request ``against``
                                                       (null: the one before)
``copy_row``         row, form                         python or curl (a ``model`` row), or test (``model`` or
                                                       ``run``): gives {text, name}
``write_test`` *     row, path                         gives {path}: the test as a file below the
                                                       notebook's folder
``clear_trace`` *                                      forget all rows
===================  ================================  ========================================

**To the page**, by panel.

``inspector``: ``state`` {servers, tools, calls, problems (texts), approvals, questions}, ``servers`` {servers,
problems} (whole), ``tools`` {tools} (whole), ``call`` (a ``Call``, at most ten times a second each), ``log``
{server, entries} (the newest 100 of what was said within a quarter of a second), ``asked`` {approvals, questions}
(whole): what waits for a person and is of no call by hand, as ``approval`` and ``question`` of ``protocol`` have
it; the chat shows it too, ``resource`` {server, uri}: one that is watched changed, ``listed`` {server, kind
(resources or prompts)}: they are to be listed again. ``approve``, ``answer`` and ``load_audio`` of ``protocol`` are
taken here too, so that the panel can stand alone.

- Server: name, kind, target, state, error, enabled, latency (s, or null), restarts, protocol, title,
  version, instructions, capabilities (names), tools (count), problems (texts), stderr (the last lines)
- Tool: name, label, source, summary (one line), hints (words such as "read-only"), enabled, warnings
  (how many), advice (how many), takes (how many parameters)
- ToolDetails: name, label, original, source, description, input_schema and output_schema (as JSON
  text; output may be null), schema (the input schema for the form, references within it left as they are; null
  where it is too large for one),
  definition (where a Python tool is defined: its source text, or empty), facts (label and text,
  such as a timeout), hints, warnings (texts), advice (matters of style, texts), read_only
- Call: call, name, arguments_text (cut where it is long; then ``arguments_cut``, and CallDetails has all of it),
  arguments_cut, state (running, waiting (for a person's word), done, failed, cancelled), started (ms since 1970),
  duration (s of the tool itself, or null), waited (s before it began, as for a person's word),
  progress (0 to 1, or null), progress_text, summary (one line), hooks, approval (what waits
  for a person's word, as ``approval`` of ``protocol`` has it, or null; answered by ``approve``)
- CallDetails: Call's fields, content and details (as ``tool_end`` of ``protocol`` has them), raw (JSON
  text of the result), problems (where a structured result does not fit the output schema), fits (true,
  false, or null where there is no such schema)
- resource: uri, name, title, description, mime_type, size (bytes, or null), watched
- template: uri_template (RFC 6570), name, title, description, mime_type
- prompt: name, title, description, arguments (list of: name, description, required); its messages: role, content
  and details (as ``tool_end`` of ``protocol`` has them)
- log entry: number, time (ms), direction (out, in, stderr, rubbish, state), method, id, summary, size,
  seconds (what an answer took, or null), is_error, level (of a server's log message, else empty)

``hooks``: ``state`` {hooks, library, recorded (how many calls there are to try on, by hook), namespace
(where code runs, in words)}, ``hook`` (a Hook), ``failures`` (a Failure, as it happens),
``recorded`` {recorded} (whole).

- Hook: name, title, takes (its parameters), tells (what it is for), template (code to begin with),
  several (whether there may be more than one), installed (list of: name, source (text, or empty), origin
  (words such as "cell 3" or "version 2 of this editor"), editable, version (or null), on_error), draft (text, or
  null), versions (list of: version, time (ms), lines, note, on_error), failures (the newest 20), waits (whether what
  was applied acts from the next turn on), revertible (whether there is something to revert)
- ``replaces``: an index of installed; null takes the place of this editor's newest version where that is installed, and
  else adds the hook behind the others; the number of those installed adds it behind them in any case
- Failure: hook, version, line (or null), message, hint, count, time (ms), action (what the run did then, in words)
- library entry: name, title, hook, tells, code, on_error (go_on or end: what it is made for)
- Trial: calls (list of: title, detail, effect (changed, blocked, unchanged, failed), before, after
  (texts), line (or null), message, seconds), problems (list of ``problem``), printed (text), note (in
  words, such as that nothing was called yet; may be empty)
- problem: line, column (from 1), message, severity (error or warning)

``trace``: ``state`` {start (the first row that is kept), total (the number that the next one gets), rows (the newest),
cleared (how often all were forgotten)}, ``rows`` {rows}: new ones, and those that changed. Text is left out where it is
very long, never quietly: ``left_out`` is how many characters more there are.

- Row: row (its number, from 0, never used twice), kind (run, turn, model, tool, hand), parent (a row, or
  null), title, started (ms since 1970), waited, first, duration (s, or null while it goes on: until
  it was let go on (an approval, a free place), until the first token, until its end), state (running, done,
  failed, aborted), tokens (input, output, cached; or null), cost (US dollars, or null), summary (one line),
  lane (which of those that go on at once, from 0)
- RowDetails: Row's fields, request (list of sections: title, language, text, left_out), response (the same), facts
  (pairs: [label, text]), wire (list of: method, url, status, headers (pairs), body, answer_headers, answer,
  seconds, left_out, error), error
- Difference: against (a row, or null), sections (list of: title, lines (kind: same, added, removed; text)), unchanged
  (in words)
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from yiemagent_nb.widgets.page_message import MAX_TEXT, Acting, FromPage, Ticketed

__all__ = [
    "ActOnServer",
    "AddServer",
    "ApplyHook",
    "CallTool",
    "CancelCall",
    "CheckCode",
    "ClearTrace",
    "CompleteCode",
    "CopyRow",
    "DraftHook",
    "EnableTool",
    "GetPrompt",
    "HookName",
    "ListPrompts",
    "ListResources",
    "LoadCall",
    "LoadDifference",
    "LoadLog",
    "LoadLogEntry",
    "LoadRow",
    "LoadRows",
    "LoadTool",
    "LoadVersion",
    "OpenPanel",
    "PanelMessage",
    "PanelName",
    "ReadResource",
    "RemoveHook",
    "RevertHook",
    "WatchResource",
    "WriteTest",
]

PanelName = Literal["inspector", "hooks", "trace"]
HookName = Literal["prepare_context", "format_messages", "before_tool_call", "after_tool_call", "around_llm_call"]
ServerAction = Literal["connect", "reconnect", "disconnect", "remove", "refresh", "check"]

MAX_CODE = 200_000
MAX_NAME = 1000
MAX_URI = 10_000


class OpenPanel(FromPage):
    """A page shows a panel."""

    type: Literal["open_panel"]
    panel: PanelName


# The tool inspector


class LoadTool(Ticketed):
    """A person looks at a tool."""

    type: Literal["load_tool"]
    name: str = Field(max_length=MAX_NAME)


class CallTool(Acting):
    """A person calls a tool by hand."""

    type: Literal["call_tool"]
    call: str = Field(min_length=1, max_length=64)
    name: str = Field(max_length=MAX_NAME)
    arguments_text: str = Field(max_length=MAX_TEXT)
    hooks: bool = True


class CancelCall(Ticketed):
    """A person stops a call of their own."""

    type: Literal["cancel_call"]
    call: str = Field(min_length=1, max_length=64)


class LoadCall(Ticketed):
    """A person looks at a call of their own."""

    type: Literal["load_call"]
    call: str = Field(min_length=1, max_length=64)


class EnableTool(Acting):
    """A person offers a tool to the model, or takes it away."""

    type: Literal["enable_tool"]
    name: str = Field(max_length=MAX_NAME)
    enabled: bool


class ActOnServer(Acting):
    """A person connects a server, and the like."""

    type: Literal["act_on_server"]
    server: str = Field(max_length=MAX_NAME)
    action: ServerAction


class AddServer(Acting):
    """A person adds a server."""

    type: Literal["add_server"]
    config: str = Field(min_length=1, max_length=100_000)
    name: str = Field(default="", max_length=100)


class LoadLog(Ticketed):
    """A person looks at what a server and we said to each other."""

    type: Literal["load_log"]
    server: str = Field(max_length=MAX_NAME)
    before: int | None = Field(default=None, ge=0)


class LoadLogEntry(Ticketed):
    """A person looks at one message of a server."""

    type: Literal["load_log_entry"]
    server: str = Field(max_length=MAX_NAME)
    number: int = Field(ge=0)


class ListResources(Acting):
    """A person looks at a server's resources."""

    type: Literal["list_resources"]
    server: str = Field(max_length=MAX_NAME)


class ReadResource(Acting):
    """A person reads a resource."""

    type: Literal["read_resource"]
    server: str = Field(max_length=MAX_NAME)
    uri: str = Field(min_length=1, max_length=MAX_URI)


class WatchResource(Acting):
    """A person wants to hear of a resource's updates, or no more."""

    type: Literal["watch_resource"]
    server: str = Field(max_length=MAX_NAME)
    uri: str = Field(min_length=1, max_length=MAX_URI)
    watch: bool


class ListPrompts(Acting):
    """A person looks at a server's prompts."""

    type: Literal["list_prompts"]
    server: str = Field(max_length=MAX_NAME)


class GetPrompt(Acting):
    """A person fills in a prompt."""

    type: Literal["get_prompt"]
    server: str = Field(max_length=MAX_NAME)
    name: str = Field(max_length=MAX_NAME)
    arguments: dict[str, str] = Field(default_factory=dict, max_length=100)


# The hook editor


class DraftHook(Ticketed):
    """What stands in the editor."""

    type: Literal["draft_hook"]
    hook: HookName
    code: str = Field(max_length=MAX_CODE)


class CheckCode(Ticketed):
    """Is this Python?"""

    type: Literal["check_code"]
    code: str = Field(max_length=MAX_CODE)


class CompleteCode(Ticketed):
    """Which names fit at the cursor, a number of characters?"""

    type: Literal["complete_code"]
    code: str = Field(max_length=MAX_CODE)
    cursor: int = Field(ge=0)


class ApplyHook(Acting):
    """A person tries a hook, or lets it act. No other message has code that runs."""

    type: Literal["apply_hook"]
    hook: HookName
    code: str = Field(max_length=MAX_CODE)
    action: Literal["try", "apply"]
    replaces: int | None = Field(default=None, ge=0)
    on_error: Literal["go_on", "end"] = "go_on"


class RemoveHook(Acting):
    """A person takes an installed hook away."""

    type: Literal["remove_hook"]
    hook: HookName
    index: int = Field(ge=0)


class RevertHook(Acting):
    """A person wants what was installed before."""

    type: Literal["revert_hook"]
    hook: HookName


class LoadVersion(Ticketed):
    """A person looks at what was applied before."""

    type: Literal["load_version"]
    hook: HookName
    version: int = Field(ge=1)


# The trace


class LoadRows(Ticketed):
    """A page wants rows of the trace."""

    type: Literal["load_rows"]
    start: int = Field(ge=0)
    count: int = Field(ge=1, le=2000)


class LoadRow(Ticketed):
    """A person looks at a row."""

    type: Literal["load_row"]
    row: int = Field(ge=0)


class LoadDifference(Ticketed):
    """How does a request differ from another?"""

    type: Literal["load_difference"]
    row: int = Field(ge=0)
    against: int | None = Field(default=None, ge=0)


class CopyRow(Ticketed):
    """A person wants a row as code."""

    type: Literal["copy_row"]
    row: int = Field(ge=0)
    form: Literal["python", "curl", "test"]


class WriteTest(Acting):
    """A person makes a test of a row."""

    type: Literal["write_test"]
    row: int = Field(ge=0)
    path: str = Field(min_length=1, max_length=1000)


class ClearTrace(Acting):
    """A person forgets the trace."""

    type: Literal["clear_trace"]


PanelMessage = (
    ActOnServer
    | AddServer
    | ApplyHook
    | CallTool
    | CancelCall
    | CheckCode
    | ClearTrace
    | CompleteCode
    | CopyRow
    | DraftHook
    | EnableTool
    | GetPrompt
    | ListPrompts
    | ListResources
    | LoadCall
    | LoadDifference
    | LoadLog
    | LoadLogEntry
    | LoadRow
    | LoadRows
    | LoadTool
    | LoadVersion
    | OpenPanel
    | ReadResource
    | RemoveHook
    | RevertHook
    | WatchResource
    | WriteTest
)
"""Anything that the page of a panel beside the chat may say."""
