"""How the command of a server is named and shown, and what environment it gets."""

from __future__ import annotations

import json
import sys
import traceback
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_client.watching import Recorder, call, faulty, said
from pydantic import SecretStr

from yiemagent_nb.core.errors import InvalidParametersError, McpConnectionError, McpError
from yiemagent_nb.mcp.link import Progress
from yiemagent_nb.mcp.links.command_line import default_name, inherited_environment
from yiemagent_nb.mcp.links.stdio import StdioTransport

NAMES = {
    "mcp-server-time": "mcp-server-time",
    "/usr/local/bin/mcp-server-git --repository /data": "mcp-server-git",
    r"C:\Tools\weather.exe": "weather",
    "uvx mcp-server-time": "mcp-server-time",
    "uvx mcp-server-time@latest --local-timezone=Europe/Lisbon": "mcp-server-time",
    "uvx --from git+https://example.org/team/tools.git@main weather-server": "weather-server",
    "uvx git+https://example.org/team/weather.git@main": "weather",
    "uvx weather[extra]==1.2": "weather",
    "uvx --python 3.12 --with numpy weather>=2": "weather",
    "uv tool run weather": "weather",
    "uv --directory /srv/weather run server.py": "server",
    "uv run --with mcp mcp run weather.py": "weather",
    "uv run --with fastmcp fastmcp run weather.py:app": "weather",
    "uv run python -m weather.server": "weather.server",
    "uv run -m weather": "weather",
    "pipx run weather": "weather",
    "npx -y @modelcontextprotocol/server-everything": "server-everything",
    "npx -y @modelcontextprotocol/server-everything@1.2.3 stdio": "server-everything",
    "npx --package @team/tools weather": "weather",
    "npx mcp-remote https://example.org/mcp": "mcp-remote",
    "cmd /c npx -y @team/weather": "weather",
    "npm exec @team/weather": "weather",
    "pnpm dlx @team/weather": "weather",
    "bunx weather@1": "weather",
    "deno run -A weather.ts": "weather",
    "python my_server.py": "my_server",
    "/usr/bin/python3.12 -u /srv/my_server.py --fast": "my_server",
    "python -X dev -m weather": "weather",
    "python -m weather.server --port 1": "weather.server",
    "python -c pass": "python",
    "python /srv/weather/__main__.py": "weather",
    "node weather/build/index.js": "weather",
    "node --import tsx /srv/weather/src/main.ts": "weather",
    "node index.js": "index",
    "java -cp x.jar -jar weather.jar": "weather",
    "docker run -i --rm -e KEY -v /a:/b mcp/time:latest": "time",
    "docker run -i registry.example.org:5000/team/weather@sha256:00": "weather",
    "npx": "npx",
    "./odd name!": "odd-name",
    "...": "server",
}


@pytest.mark.parametrize(("line", "name"), NAMES.items(), ids=NAMES)
def test_a_server_is_named_after_its_package_script_or_program(line: str, name: str) -> None:
    command, *arguments = [line] if line.startswith("./odd") else line.split(" ")
    assert default_name(command, arguments) == name
    assert StdioTransport(command, arguments).default_name == name


@given(st.lists(st.text(max_size=40), min_size=1, max_size=6))
def test_any_command_gives_a_name_of_plain_characters(words: list[str]) -> None:
    name = default_name(words[0], words[1:])
    assert 0 < len(name) <= 64
    assert not set(name) & set(" /\\\n:@")


KEY = "s3cr3t-v4lue-0123456789"

MASKED = {
    "a flag": (["--api-key", KEY], "x --api-key [key]"),
    "a short flag with a value": ([f"-token={KEY}"], "x -token=[key]"),
    "a flag with a value": ([f"--auth-token={KEY}", "--verbose"], "x --auth-token=[key] --verbose"),
    "a variable": (["-e", f"GITHUB_TOKEN={KEY}"], "x -e GITHUB_TOKEN=[key]"),
    "a header": (["--header", f"Authorization: Bearer {KEY}"], "x --header Authorization: [key]"),
    "a cookie": (["-H", f"Cookie: a=b; c={KEY}"], "x -H Cookie: [key]"),
    "a password in an address": ([f"postgresql://me:{KEY}@host/db"], "x postgresql://[key]@host/db"),
    "a query": ([f"https://host/mcp?apiKey={KEY}&a=b"], "x https://host/mcp?apiKey=[key]&a=b"),
    "JSON": (["--config", f'{{"apiKey": "{KEY}", "a": 1}}'], 'x --config {"apiKey": "[key]", "a": 1}'),
    "a well-known form": ([f"ghp_{KEY}"], "x [key]"),
    "a bearer": ([f"with Bearer {KEY}"], "x with [key]"),
    "a short flag": (["-p", "hunter2", "-v"], "x -p [key] -v"),
    "a long flag": (["--password", "hunter2"], "x --password [key]"),
    "a shorter flag": (["--db-pass", "hunter2"], "x --db-pass [key]"),
    "a variable PGPASS": (["PGPASS=hunter2"], "x PGPASS=[key]"),
    "a setting": (["--dsn", "Server=db;Password=hunter2;"], "x --dsn Server=db;Password=[key]"),
    "a password before a host": (["me:hunter2@host:22/path"], "x me:[key]@host:22/path"),
    "a password with a sign of its own": (["postgres://me:a@b@host/db"], "x postgres://[key]@host/db"),
    "a user with a password": (["-u", "me:hunter2"], "x -u me:[key]"),
    "a user with a password in one": (["--user=me:hunter2"], "x --user=me:[key]"),
    "a SecretStr": (["--id", SecretStr(KEY)], "x --id [key]"),
    "a variable's value": ([f"--id={KEY}"], "x --id=[key]"),
}


@pytest.mark.parametrize(("arguments", "shown"), MASKED.values(), ids=MASKED)
def test_a_target_shows_no_secret(arguments: list[str | SecretStr], shown: str) -> None:
    transport = StdioTransport("x", arguments, env={"NAME": SecretStr(KEY)})
    assert transport.target == shown
    assert KEY not in repr(transport)


@pytest.mark.parametrize(
    "line",
    [
        "x -p 8080:80",
        "x -p 53:53/udp",
        "x -p python3.12",
        "x -u 1000:1000",
        "x --user=1000:1000",
        "x --pass-through yes",
        "x --compass north",
        "x mcp/time:latest@sha256:00",
        "x time:latest@sha256:00",
        "x npm:weather@1.2",
        "x git@example.org:team/tools",
        "x @team/weather@1.2",
        "x someone@example.org",
    ],
)
def test_a_target_shows_ports_packages_and_images(line: str) -> None:
    command, *arguments = line.split(" ")
    assert StdioTransport(command, arguments).target == line


def test_a_target_shows_what_is_no_secret_and_is_cut() -> None:
    assert StdioTransport("npx", ["-y", "--author", "me", "a b"]).target == "npx -y --author me 'a b'"
    assert len(StdioTransport("npx", ["x" * 100_000]).target) == 200


def test_a_server_inherits_no_key() -> None:
    kept = {
        "HOME": "/home/me",
        "PATH": "/bin",
        "LANG": "C.UTF-8",
        "LC_TIME": "pt_PT",
        "TZ": "UTC",
        "XDG_CACHE_HOME": "/cache",
        "https_proxy": "http://proxy:3128",
        "NO_PROXY": "localhost",
        "SSL_CERT_FILE": "/certificates",
    }
    dropped = {
        "OPENAI_API_KEY": "k",
        "AWS_SECRET_ACCESS_KEY": "k",
        "HTTP_PROXY": "http://me:password@proxy:3128",
        "SHELL": "() { :; }",
        "PYTHONPATH": "/x",
        "ANYTHING": "else",
    }
    assert inherited_environment({**kept, **dropped}) == kept


async def test_a_server_gets_its_own_variables_and_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("LC_TIME", "pt_PT")
    transport = faulty(env={"PLAIN": "1", "MY_KEY": SecretStr("key")}, cwd=tmp_path)
    async with transport.open(Recorder()) as link:
        environment = json.loads(said(await call(link, "environment")))
    assert environment["cwd"] == str(tmp_path)
    assert (environment["PLAIN"], environment["MY_KEY"], environment["LC_TIME"]) == ("1", "key", "pt_PT")
    assert "OPENAI_API_KEY" not in environment


async def test_what_a_server_prints_of_its_keys_is_masked() -> None:
    inbox = Recorder()
    async with faulty(env={"A": SecretStr(KEY), "SOME_TOKEN": "another-value-7"}).open(inbox) as link:
        await call(link, "raw", hex=f"{KEY}\n".encode().hex())
        await call(link, "speak", text=f"using {KEY} and another-value-7\n")
    assert inbox.rubbish == ["[key]"]
    assert inbox.stderr == ["using [key] and [key]"]


@pytest.mark.parametrize(
    ("env", "kept"),
    [
        ({"NAME": SecretStr(KEY)}, "{NAME}"),
        ({"API_KEY": KEY}, "{API_KEY}"),
        ({"DATABASE_URL": f"postgres://bob:{KEY}@host/db"}, "{DATABASE_URL}"),
        ({"PROXY": f"http://one,http://bob:{quote(KEY + '/?', safe='')}@host"}, f"bob used {KEY}/?"),
    ],
)
async def test_a_key_that_a_server_repeats_is_masked_but_in_results_that_succeed(
    env: dict[str, str | SecretStr], kept: str
) -> None:
    inbox = Recorder()
    progress: list[Progress] = []
    async with faulty(env=env).open(inbox) as link:
        with pytest.raises(McpError) as caught:
            await call(link, "refuse", text=kept)
        failed = await call(link, "fail", text=kept)
        succeeded = await call(link, "log", text=kept)
        params = {"name": "report", "arguments": {"steps": 1, "text": kept}}
        await link.request("tools/call", params, on_progress=progress.append)
    assert caught.value.rpc_code == -32050
    assert "[key]" in caught.value.message
    shown = [caught.value.message, caught.value.data, failed, inbox.notifications, progress]
    assert all("[key]" in str(each) and KEY not in str(each) for each in shown), shown
    assert KEY not in "".join(traceback.format_exception(caught.value))
    assert KEY in said(succeeded)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((" ",), {}, "command is empty"),
        (("x", "a b"), {}, "args must be a list of texts"),
        (("x", [1]), {}, r"args\[0\] must be a text, not int"),
        (("x", ["a\0b"]), {}, r"args\[0\] must be a text without NUL"),
        (("x",), {"env": {"A": 1}}, r"env\['A'\] must be a text, not int"),
        (("x",), {"env": {"A=B": "1"}}, "env has 'A=B' where the name of a variable is expected"),
        (("x",), {"cwd": 1}, "cwd must be a text, not int"),
    ],
)
def test_an_option_that_cannot_be_passed_to_a_program_is_refused(
    arguments: tuple[str], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidParametersError, match=message):
        StdioTransport(*arguments, **options)


def script(folder: Path, text: str, mode: int) -> Path:
    path = folder / "weather"
    path.write_text(text)
    path.chmod(mode)
    return path


async def refused(transport: StdioTransport) -> str:
    with pytest.raises(McpConnectionError) as caught:
        async with transport.open(Recorder()):
            pass
    return str(caught.value)


@pytest.mark.parametrize(
    ("program", "hint"), [("npx", "Install Node.js"), ("uvx", "Install uv"), ("wether", "Check its spelling")]
)
async def test_a_missing_program_is_named_with_what_to_install(program: str, hint: str) -> None:
    error = await refused(StdioTransport(program, env={"PATH": "/no/such/folder"}))
    assert f"There is no program {program!r}" in error
    assert hint in error
    assert "full path" in error


async def test_a_whole_command_line_as_the_program_is_told_apart() -> None:
    assert "each of its arguments apart" in await refused(StdioTransport("uvx mcp-server-time"))


async def test_a_program_that_may_not_be_run_is_told(tmp_path: Path) -> None:
    error = await refused(StdioTransport(script(tmp_path, "#!/bin/sh\n", 0o644)))
    assert "it is not executable" in error


async def test_a_text_without_an_interpreter_is_told(tmp_path: Path) -> None:
    error = await refused(StdioTransport(script(tmp_path, "hello\n", 0o755)))
    assert "it is not executable" in error


async def test_a_script_whose_interpreter_is_missing_is_told(tmp_path: Path) -> None:
    error = await refused(StdioTransport(script(tmp_path, "#!/no/such/interpreter\n", 0o755)))
    assert "its first line names a program that is not there" in error


async def test_a_working_directory_that_is_none_is_told(tmp_path: Path) -> None:
    error = await refused(StdioTransport(sys.executable, cwd=tmp_path / "missing"))
    assert "is no folder" in error


async def test_an_interpreter_that_does_not_start_the_supervisor_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = script(tmp_path, "#!/bin/sh\necho no library >&2\nexit 1\n", 0o755)
    monkeypatch.setattr(sys, "executable", str(broken))
    error = await refused(StdioTransport("x"))
    assert "The program that supervises the server 'x' did not start: no library." in error
