from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.server import MCPServer
from mcp_client.workbench import Workbench
from pydantic import SecretStr

from yiemagent_nb.core.errors import InvalidParametersError
from yiemagent_nb.mcp.config import as_servers, read_mcp_config
from yiemagent_nb.mcp.jsonc import read_jsonc
from yiemagent_nb.mcp.oauth import OAuth
from yiemagent_nb.mcp.server import McpServer

pytestmark = pytest.mark.requirement("Y US-002")


class Made(list[dict[str, Any]]):
    """What the constructors of servers were given."""

    @property
    def only(self) -> dict[str, Any]:
        (one,) = self
        return one


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Made:
    """Keeps the arguments, and lets the real constructors work."""
    kept = Made()

    def spy(kind: str) -> None:
        original = cast("Callable[..., McpServer]", getattr(McpServer, kind))

        def make(_class: type[McpServer], *arguments: Any, **options: Any) -> McpServer:
            kept.append({"kind": kind, "arguments": arguments, **options})
            return original(*arguments, **options)

        monkeypatch.setattr(McpServer, kind, classmethod(make))

    for kind in ("stdio", "http", "sse", "nats"):
        spy(kind)
    return kept


def one(entry: Mapping[str, Any], **options: Any) -> McpServer:
    (server,) = read_mcp_config({"mcpServers": {"it": entry}}, **options)
    return server


def plain(value: Any) -> Any:
    """A value with its secrets laid open."""
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in cast("Mapping[str, Any]", value).items()}
    return tuple(map(plain, cast("tuple[Any, ...]", value))) if isinstance(value, tuple) else value


# --- The forms of hosts ------------------------------------------------------------------------


def test_claude_desktop_s_file_is_read(made: Made, tmp_path: Path) -> None:
    path = tmp_path / "claude_desktop_config.json"
    path.write_text(
        json.dumps(
            {
                "globalShortcut": "",
                "mcpServers": {
                    "filesystem": {
                        "command": "npx",
                        "args": ["-y", "@modelcontextprotocol/server-filesystem", "~/Desktop"],
                        "env": {"LEVEL": "debug", "PORT": 8080, "FAST": True, "NONE": None},
                    },
                    "time": {"command": "uvx", "args": ["mcp-server-time"]},
                },
            }
        ),
        "utf-8-sig",
    )
    servers = read_mcp_config(path)
    assert [(server.name, server.kind, server.state) for server in servers] == [
        ("filesystem", "stdio", "new"),
        ("time", "stdio", "new"),
    ]
    assert made[0]["arguments"][-1] == str(Path.home() / "Desktop")
    assert made[0]["env"] == {"LEVEL": "debug", "PORT": "8080", "FAST": "true"}
    assert made[1]["arguments"] == ("uvx", "mcp-server-time")
    assert made[1]["env"] is None


VS_CODE = """
// how VS Code writes it
{
    "inputs": [
        {"type": "promptString", "id": "key", "description": "The API key", "password": true},
        {"type": "pickString", "id": "region", "options": ["eu", "us"], "default": "eu"},
    ],
    "servers": {
        "local": {
            "type": "stdio",
            "command": "${workspaceFolder}/server.sh",
            "args": ["--key=${input:key}", "--region", "${input:region}", "//no comment", ",]"], /* a
            comment */
            "env": {"KEY": "${input:key}", "HOME_OF": "${userHome}", "URL": "http://x/${env:STAGE}"},
            "envFile": "${workspaceFolder}/.env",
            "dev": {"watch": "src/**"},
        },
        "remote": {
            "type": "http",
            "url": "https://example.org/mcp",
            "headers": {"Authorization": "Bearer ${input:key}"},
        },
    },
}
"""


def test_vs_code_s_file_is_read_with_its_inputs(made: Made, tmp_path: Path) -> None:
    folder = tmp_path / ".vscode"
    folder.mkdir()
    path = folder / "mcp.json"
    path.write_text(VS_CODE)
    (tmp_path / ".env").write_text(
        "# mine\nexport TOKEN='a # b'\nPLAIN=text # said so\nKEY=from-file\nEMPTY=\nnonsense\n"
    )
    local, remote = read_mcp_config(str(path), inputs={"key": "k-secret-1"}, environment={"STAGE": "test"})
    assert (local.name, remote.name) == ("local", "remote")
    assert plain(made[0]["arguments"]) == (
        f"{tmp_path}/server.sh",
        "--key=k-secret-1",
        "--region",
        "eu",
        "//no comment",
        ",]",
    )
    assert plain(made[0]["env"]) == {
        "TOKEN": "a # b",
        "PLAIN": "text",
        "KEY": "k-secret-1",
        "EMPTY": "",
        "HOME_OF": str(Path.home()),
        "URL": "http://x/test",
    }
    assert plain(made[1]["headers"]) == {"Authorization": "Bearer k-secret-1"}
    assert "k-secret-1" not in repr(made)
    assert "k-secret-1" not in repr([local, remote])


def test_vs_code_s_settings_hold_servers_too() -> None:
    settings: dict[str, Any] = {"editor.fontSize": 12, "mcp": {"inputs": [], "servers": {"a": {"command": "a"}}}}
    assert [server.name for server in read_mcp_config(settings)] == ["a"]


@pytest.mark.parametrize("key", ["mcpServers", "servers", "mcp_servers", "context_servers", "amp.mcpServers"])
def test_each_host_s_name_for_the_servers_is_known(key: str) -> None:
    assert [server.name for server in read_mcp_config({key: {"a": {"command": "a"}}})] == ["a"]


def test_servers_may_stand_without_an_object_around_them() -> None:
    assert [server.name for server in read_mcp_config({"a": {"command": "a"}, "b": {"url": "http://b"}})] == ["a", "b"]


def test_servers_by_the_name_of_nats_and_url_are_servers_too() -> None:
    configuration = {"nats": {"nats": {"topic": "t"}}, "url": {"url": "https://example.org"}}
    assert [server.kind for server in read_mcp_config({"mcpServers": configuration})] == ["nats", "http"]


def test_a_single_entry_is_a_configuration() -> None:
    assert [server.kind for server in read_mcp_config({"nats": {"topic": "t"}})] == ["nats"]
    (server,) = read_mcp_config({"command": "uvx", "args": ["mcp-server-time"]})
    assert server.kind == "stdio"
    assert server.name


KINDS: list[tuple[dict[str, Any], str, tuple[str, ...]]] = [
    ({"url": "https://example.org/mcp"}, "http", ("https://example.org/mcp",)),
    ({"url": "https://example.org/sse"}, "sse", ("https://example.org/sse",)),
    ({"url": "https://example.org/sse?a=b"}, "sse", ("https://example.org/sse?a=b",)),
    ({"url": "https://example.org/sse", "type": "http"}, "http", ("https://example.org/sse",)),
    ({"url": "https://example.org/x", "type": "sse"}, "sse", ("https://example.org/x",)),
    ({"url": "https://example.org/x", "type": "streamable-http"}, "http", ("https://example.org/x",)),
    ({"url": "https://example.org/x", "type": "streamableHttp"}, "http", ("https://example.org/x",)),
    ({"url": "https://example.org/x", "transport": "streamable_http"}, "http", ("https://example.org/x",)),
    ({"url": "https://example.org/x", "transportType": "sse"}, "sse", ("https://example.org/x",)),
    ({"url": "https://example.org/x", "type": "remote"}, "http", ("https://example.org/x",)),
    ({"serverUrl": "https://example.org/x"}, "http", ("https://example.org/x",)),
    ({"httpUrl": "https://example.org/sse"}, "http", ("https://example.org/sse",)),
    ({"transport": {"type": "http", "url": "https://example.org/x"}}, "http", ("https://example.org/x",)),
    ({"command": "a", "args": ["b"], "transport": "stdio"}, "stdio", ("a", "b")),
    ({"type": "local", "command": ["a", "b"], "args": ["c"]}, "stdio", ("a", "b", "c")),
    ({"source": "custom", "command": {"path": "a", "args": ["b"], "env": {}}}, "stdio", ("a", "b")),
    ({"nats": {"url": "nats://localhost:4222", "topic": "tools"}}, "nats", ("nats://localhost:4222", "tools")),
    ({"type": "nats", "url": "nats://localhost:4222", "topic": "tools"}, "nats", ("nats://localhost:4222", "tools")),
]


@pytest.mark.parametrize(("entry", "kind", "arguments"), KINDS, ids=repr)
def test_how_a_server_is_reached_is_said_in_many_words(
    made: Made, entry: dict[str, Any], kind: str, arguments: tuple[str, ...]
) -> None:
    assert one(entry).kind == kind
    assert (made.only["kind"], made.only["arguments"]) == (kind, arguments)


def test_nats_has_a_sender_and_a_binding(made: Made) -> None:
    one({"nats": {"url": ["nats://a:4222", "nats://b:4222"], "topic": "t", "sender_id": "me", "binding": "json-rpc"}})
    assert made.only["arguments"] == (["nats://a:4222", "nats://b:4222"], "t")
    assert (made.only["sender_id"], made.only["binding"]) == ("me", "json-rpc")


SWITCHES: list[tuple[dict[str, Any], bool]] = [
    ({}, True),
    ({"disabled": False}, True),
    ({"disabled": True}, False),
    ({"enabled": True}, True),
    ({"enabled": False}, False),
    ({"isActive": False}, False),
]


@pytest.mark.parametrize(("fields", "enabled"), SWITCHES, ids=repr)
def test_a_server_that_is_switched_off_comes_switched_off(fields: dict[str, Any], enabled: bool) -> None:
    assert one({"command": "a", **fields}).enabled is enabled


LISTS: list[tuple[dict[str, Any], tuple[str, ...] | None, tuple[str, ...]]] = [
    ({}, None, ()),
    ({"allow": ["a", "read_*"], "deny": ["b"]}, ("a", "read_*"), ("b",)),
    ({"allowedTools": ["a"]}, ("a",), ()),
    ({"enabled_tools": ["a"], "disabled_tools": ["b"]}, ("a",), ("b",)),
    ({"disabledTools": ["b"]}, None, ("b",)),
    ({"includeTools": ["a"], "excludeTools": ["b"]}, ("a",), ("b",)),
    ({"tools": ["*"]}, ("*",), ()),
    ({"tools": {"include": ["a"], "exclude": ["b"]}}, ("a",), ("b",)),
]


@pytest.mark.parametrize(("fields", "allow", "deny"), LISTS, ids=repr)
def test_tools_are_allowed_and_denied_by_the_names_that_hosts_have(fields: Any, allow: Any, deny: Any) -> None:
    server = one({"command": "a", **fields})
    assert (server.allow, server.deny) == (allow, deny)


TIMES: list[tuple[dict[str, Any], float | None, float]] = [
    ({}, 60, 30),
    ({"timeout": 5, "connect_timeout": 2.5}, 5, 2.5),
    ({"timeout": 3600}, 3600, 30),
    ({"timeout": 60000}, 60, 30),
    ({"tool_timeout_sec": 7, "startup_timeout_sec": 20}, 7, 20),
    ({"initTimeout": 10000}, 60, 10),
]


@pytest.mark.parametrize(("fields", "timeout", "connect_timeout"), TIMES, ids=repr)
def test_time_limits_are_seconds_or_milliseconds(fields: Any, timeout: float, connect_timeout: float) -> None:
    server = one({"command": "a", **fields})
    assert (server.timeout, server.connect_timeout) == (timeout, connect_timeout)


def test_a_bearer_token_is_kept_as_a_secret(made: Made) -> None:
    one({"url": "https://example.org", "auth": "${TOKEN}"}, environment={"TOKEN": "t-secret-1"})
    assert made.only["auth"] == SecretStr("t-secret-1")


LOGINS: list[dict[str, Any]] = [
    {"auth": "oauth"},
    {"oauth": True},
    {"oauth": {"clientId": "me", "clientSecret": "${S}", "scopes": ["a", "b"], "callbackPort": 8123}},
    {"auth": {"CLIENT_ID": "me", "CLIENT_SECRET": "${S}", "scopes": "a b"}},
]


@pytest.mark.parametrize("fields", LOGINS, ids=repr)
def test_a_login_by_oauth_is_asked_for_in_many_words(made: Made, fields: dict[str, Any]) -> None:
    one({"url": "https://example.org", **fields}, environment={"S": "s-secret-1"})
    assert isinstance(made.only["auth"], OAuth)


def test_a_login_that_is_not_wanted_is_none(made: Made) -> None:
    one({"url": "https://example.org", "oauth": False})
    assert "auth" not in made.only


def test_relative_folders_are_those_of_the_file(made: Made, tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text('{"mcpServers": {"a": {"command": "a", "cwd": "sub"}}}')
    read_mcp_config(path)
    assert made.only["cwd"] == tmp_path / "sub"


def test_roots_and_the_limit_of_results_are_taken() -> None:
    server = one({"command": "a", "roots": ["/data"], "max_result_characters": 10})
    assert server.max_result_characters == 10


# --- Variables ---------------------------------------------------------------------------------

VARIABLES: list[tuple[str, str]] = [
    ("${A}", "1"),
    ("x${A}y${env:B}z", "x1y2z"),
    ("${A:-other}", "1"),
    ("${NO:-other}", "other"),
    ("${NO:-}", ""),
    ("${EMPTY:-other}", "other"),
    ("${EMPTY}", ""),
    ("${env:NO:-a:b}", "a:b"),
    ("${workspaceFolder}", str(Path.cwd())),
    ("${workspaceFolderBasename}", Path.cwd().name),
    ("${userHome}${/}a", f"{Path.home()}/a"),
    ("$A and $$ and {A}", "$A and $$ and {A}"),
]


@pytest.mark.parametrize(("written", "meant"), VARIABLES)
def test_variables_are_replaced_everywhere(made: Made, written: str, meant: str) -> None:
    environment = {"A": "1", "B": "2", "EMPTY": ""}
    one({"command": "a", "args": [written], "env": {"X": written}}, environment=environment)
    assert made.only["arguments"] == ("a", meant)
    assert made.only["env"] == {"X": meant}


def test_the_process_s_environment_counts_by_default(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOR_THIS_TEST", "yes")
    one({"command": "a", "args": ["${FOR_THIS_TEST}"]})
    assert made.only["arguments"] == ("a", "yes")


SECRETS: list[tuple[str, dict[str, Any]]] = [
    ("${API_KEY}", {}),
    ("x${env:MY_TOKEN}", {}),
    ("${input:secret}", {"secret": SecretStr("k-1234-key")}),
]


@pytest.mark.parametrize(("written", "inputs"), SECRETS)
def test_a_secret_in_an_argument_is_never_shown(made: Made, written: str, inputs: dict[str, Any]) -> None:
    environment = {"API_KEY": "k-1234-key", "MY_TOKEN": "k-1234-key"}
    server = one({"command": "a", "args": [written]}, inputs=inputs, environment=environment)
    assert plain(made.only["arguments"][1]).endswith("k-1234-key")
    assert "k-1234-key" not in f"{server!r} {server.target}"


def test_what_is_not_set_is_named_with_its_server_and_field_all_at_once() -> None:
    configuration = {
        "inputs": [{"id": "key", "description": "The API key"}],
        "mcpServers": {
            "one": {"command": "${NO_COMMAND}", "args": ["a", "${NO_ARG}"], "env": {"X": "${env:NO_ENV}"}},
            "two": {"url": "https://example.org", "headers": {"Authorization": "Bearer ${input:key}"}},
            "three": {"command": "fine", "args": ["${config:editor}"]},
        },
    }
    with pytest.raises(InvalidParametersError) as caught:
        read_mcp_config(configuration, environment={})
    assert caught.value.message.splitlines() == [
        "The MCP configuration cannot be used:",
        (
            '- the server "one": command: the environment variable NO_COMMAND is not set; args[1]: the environment '
            "variable NO_ARG is not set; env.X: the environment variable NO_ENV is not set"
        ),
        (
            '- the server "two": headers.Authorization: the input "key" ("The API key") was not given: pass '
            'inputs={"key": …}'
        ),
        '- the server "three": args[0]: ${config:editor} is no variable that is known here',
    ]


def test_a_server_that_is_switched_off_needs_no_variables() -> None:
    server = one({"command": "${NOT_SET}", "disabled": True}, environment={})
    assert (server.name, server.enabled) == ("it", False)


# --- What is wrong -----------------------------------------------------------------------------

WRONG: list[tuple[Any, str]] = [
    ("npx", "its entry must be an object"),
    ({}, "it has neither a command nor a url"),
    ({"command": ""}, "command is missing"),
    ({"command": []}, "command must be a text"),
    ({"command": "a", "args": "-y b"}, "args must be a list of texts"),
    ({"command": "a", "args": [None]}, r"args\[0\] is missing"),
    ({"command": "a", "env": ["A=B"]}, "env must be an object of texts"),
    ({"command": "a", "env": {"A": {}}}, r"env\.A must be a text"),
    ({"command": "a", "envFile": "/no/such/file"}, "its envFile /no/such/file cannot be read"),
    ({"command": "a", "timeout": -1}, "timeout must be a number above 0"),
    ({"command": "a", "timeout": "long"}, "timeout must be a number above 0"),
    ({"command": "a", "allow": "b"}, "allow must be a list of texts"),
    ({"command": "a", "max_result_characters": "all"}, "max_result_characters must be a number"),
    ({"url": "ftp://example.org"}, "url must begin with http"),
    ({"url": "https://example.org", "type": "websocket"}, 'its type is "websocket"'),
    ({"url": "https://example.org", "type": 3}, "its type is 3"),
    ({"type": "http"}, "url is missing"),
    ({"nats": {"url": "nats://localhost"}}, "topic is missing"),
    ({"url": "https://example.org", "oauth": {"clientSecret": "k-1234-key"}}, "client_secret was given without"),
]


@pytest.mark.parametrize(("entry", "words"), WRONG, ids=repr)
def test_a_wrong_entry_is_refused_by_its_server_and_field(entry: Any, words: str) -> None:
    with pytest.raises(InvalidParametersError, match=f'the server "it": .*{words}'):
        read_mcp_config({"mcpServers": {"it": entry}})


def test_no_secret_stands_in_an_error() -> None:
    secret = "s-1234-secret"  # noqa: S105 - it is no password
    entry = {"url": f"ftp://me:{secret}@example.org", "headers": {"X": secret, "Y": [secret]}, "auth": [secret]}
    with pytest.raises(InvalidParametersError) as caught:
        one(entry)
    assert secret not in str(caught.value)
    with pytest.raises(InvalidParametersError) as caught:
        read_mcp_config(f'{{"mcpServers": {{"a": {{"command": "{secret}" oops}}}}}}')
    assert secret not in str(caught.value)


def test_one_wrong_server_may_be_left_out() -> None:
    configuration = {"mcpServers": {"bad": {}, "good": {"command": "a"}}}
    with pytest.warns(UserWarning, match=r'the server "bad": it has neither(.|\n)*left out'):
        servers = read_mcp_config(configuration, strict=False)
    assert [server.name for server in servers] == ["good"]


def test_what_is_not_understood_is_warned_of_once_and_by_name() -> None:
    configuration = {
        "mcpServers": {
            "one": {"command": "a", "sandboxEnabled": True, "headers": {"A": "b"}},
            "two": {"url": "https://example.org", "headersHelper": "get-headers.sh"},
        }
    }
    with pytest.warns(UserWarning, match="not understood here") as caught:
        read_mcp_config(configuration)
    (warning,) = caught
    text = str(warning.message)
    assert text.endswith(': sandboxEnabled of "one", headers of "one", headersHelper of "two".')
    assert warning.filename == __file__


def test_what_concerns_other_hosts_is_passed_over() -> None:
    harmless: dict[str, Any] = {
        "alwaysAllow": ["x"],
        "autoApprove": [],
        "trust": True,
        "description": "d",
        "_comment": "c",
        "$schema": "s",
        "gallery": True,
        "url": "",
    }
    assert one({"command": "a", **harmless}).name == "it"


NO_CONFIGURATIONS: list[Any] = [{}, {"mcpServers": "none"}, {"editor": {"size": 3}}, "{}", "[]", 3]


@pytest.mark.parametrize("source", NO_CONFIGURATIONS, ids=repr)
def test_what_is_no_configuration_is_refused(source: Any) -> None:
    with pytest.raises(InvalidParametersError):
        read_mcp_config(source)


def test_a_configuration_may_be_empty() -> None:
    assert read_mcp_config({"mcpServers": {}}) == []


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidParametersError, match=r"nowhere\.json cannot be read: No such file"):
        read_mcp_config(tmp_path / "nowhere.json")
    broken = tmp_path / "broken.json"
    broken.write_text('{"mcpServers": {\n  "a": {"command" "a"}\n}}')
    with pytest.raises(InvalidParametersError, match=r"broken\.json is no JSON: .* line 2"):
        read_mcp_config(broken)
    broken.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidParametersError, match=r"broken\.json is not written in UTF-8"):
        read_mcp_config(broken)


def test_json_that_is_too_deep_is_refused() -> None:
    with pytest.raises(InvalidParametersError, match="nested too deeply"):
        read_mcp_config('{"a":' * 100_000)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(json_values, st.sampled_from([None, 2]))
def test_json_without_comments_means_what_it_means(value: Any, indent: int | None) -> None:
    assert read_jsonc(json.dumps(value, indent=indent)) == value


@given(json_values)
def test_comments_and_trailing_commas_change_nothing(value: Any) -> None:
    text = json.dumps([value, {"//": "/* no comment */", "a": ",]"}], indent=1)
    commented = text.replace("\n", ' // a "comment" ,]\n /* and\n another, } */\n')
    assert read_jsonc(f"{commented[:-1]},]") == json.loads(text)


# --- What an agent takes -----------------------------------------------------------------------


def test_a_server_is_taken_as_it_is() -> None:
    server = McpServer.stdio("a")
    assert as_servers([server]) == [server]
    assert as_servers(server) == [server]  # pyright: ignore[reportArgumentType] - people forget the list


ADDRESSES = [
    ("https://example.org/mcp", "http", ("https://example.org/mcp",)),
    ("http://localhost:8000/sse", "sse", ("http://localhost:8000/sse",)),
    (" HTTPS://example.org ", "http", ("HTTPS://example.org",)),
    ("nats://localhost:4222/tools.here", "nats", ("nats://localhost:4222", "tools.here")),
]


@pytest.mark.parametrize(("text", "kind", "arguments"), ADDRESSES)
def test_an_address_is_a_server(made: Made, text: str, kind: str, arguments: tuple[str, ...]) -> None:
    (server,) = as_servers([text])
    assert server.kind == kind
    assert made.only["arguments"] == arguments


def test_configurations_are_taken_in_each_form(tmp_path: Path) -> None:
    configuration = {"mcpServers": {"a": {"command": "a"}, "b": {"command": "b"}}}
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps(configuration))
    for item in (path, str(path), configuration, json.dumps(configuration), read_mcp_config(path)):
        assert [server.name for server in as_servers([item])] == ["a", "b"]
    assert [server.kind for server in as_servers([{"url": "https://example.org"}])] == ["http"]


def answer(method: str, *_: Any) -> dict[str, Any]:
    return {"method": method}


def test_a_callable_a_transport_and_a_server_object_are_taken() -> None:
    own, bench, sdk = as_servers([answer, Workbench(), MCPServer("calculator")])
    assert (own.kind, own.name) == ("callable", "answer")
    assert (bench.kind, bench.name) == ("workbench", "bench")
    assert (sdk.kind, sdk.name) == ("in_process", "calculator")


class Around:
    """Holds a server object as fastmcp does."""

    def __init__(self) -> None:
        self._mcp_server = MCPServer("inner")


def test_a_server_object_of_another_library_is_taken_by_the_one_that_it_holds() -> None:
    (server,) = as_servers([Around()])
    assert (server.kind, server.name) == ("in_process", "inner")


@pytest.mark.parametrize("item", [3, None, "time", "ftp://example.org", "nats://host:4222", McpServer, b"x"], ids=repr)
def test_what_is_no_server_is_refused_with_what_is_taken(item: Any) -> None:
    with pytest.raises(InvalidParametersError, match=r"McpServer objects, addresses|needs the topic"):
        as_servers([item])


# --- A real server -----------------------------------------------------------------------------

SERVER = textwrap.dedent(
    """
    import json, os, sys
    from mcp.server import MCPServer

    server = MCPServer("mirror")


    @server.tool()
    def look() -> str:
        "Tell how this process was started."
        seen = {"token": os.environ["TOKEN"], "b": os.environ["B"]}
        return json.dumps({"args": sys.argv[1:], "cwd": os.getcwd(), **seen})


    server.run()
    """
)


async def test_a_server_starts_as_the_file_says(tmp_path: Path) -> None:
    (tmp_path / "mirror.py").write_text(SERVER)
    (tmp_path / ".env").write_text("B=from the file\n")
    (tmp_path / "work").mkdir()
    path = tmp_path / "mcp.json"
    entry = {
        "command": sys.executable,
        "args": ["${workspaceFolder}/mirror.py", "--name", "${NAME:-nobody}"],
        "env": {"TOKEN": "${input:token}"},
        "envFile": ".env",
        "cwd": "work",
    }
    path.write_text(json.dumps({"mcpServers": {"mirror": entry}}))
    (server,) = read_mcp_config(path, inputs={"token": SecretStr("t-1")}, environment={})
    async with server:
        result = await server.call_tool("look")
    assert json.loads(result["content"][0]["text"]) == {
        "args": ["--name", "nobody"],
        "cwd": str(tmp_path / "work"),
        "token": "t-1",
        "b": "from the file",
    }
