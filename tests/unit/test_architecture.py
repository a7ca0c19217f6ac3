from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import yiemagent_nb

ROOT = Path(yiemagent_nb.__file__).parent
PACKAGE = "yiemagent_nb"

SERVICES = frozenset({"backends", "hooks", "mcp", "sessions", "sinks", "tracing"})
SURFACES = frozenset({"widgets", "remote", "magics"})

MAY_IMPORT = {
    "core": {"core"},
    **{service: {"core", service} for service in SERVICES},
    **{surface: {"core", *SERVICES, surface} for surface in SURFACES},
    "magics": {"core", *SERVICES, "widgets", "magics"},
    "testing": {"core", *SERVICES, "testing"},
}
"""The arrows: which part of the package may import from which."""

PYDANTIC = frozenset({"pydantic", "pydantic_core", "annotated_types", "typing_extensions", "typing_inspection"})
LAZY_IN_CORE = frozenset({"jsonschema", "referencing", "nest_asyncio2"})
"""``referencing`` is a part of ``jsonschema``."""


def sources() -> list[Path]:
    return sorted(path for path in ROOT.rglob("*.py") if "node_modules" not in path.parts)


def part_of(path: Path) -> str:
    """The folder, or the module at the top, that a file belongs to."""
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported(path: Path) -> Iterator[tuple[ast.stmt, str]]:
    """Each import of a file, with the full name of what it imports from."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            if node.module == PACKAGE:
                yield from ((node, f"{PACKAGE}.{alias.name}") for alias in node.names)
            else:
                yield node, node.module or ""


def runs_at_import(path: Path) -> set[ast.stmt]:
    """The imports that run when the module is imported, those for type checkers left out."""
    found: set[ast.stmt] = set()

    def visit(nodes: list[ast.stmt]) -> None:
        for node in nodes:
            if isinstance(node, ast.Import | ast.ImportFrom):
                found.add(node)
            elif isinstance(node, ast.If) and not (isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"):
                visit([*node.body, *node.orelse])
            elif isinstance(node, ast.Try):
                visit([*node.body, *node.orelse, *node.finalbody, *(each for h in node.handlers for each in h.body)])

    visit(ast.parse(path.read_text("utf-8")).body)
    return found


@pytest.mark.requirement("Y NFR-001")
@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(ROOT)))
def test_arrows_point_to_the_core(path: Path) -> None:
    part = part_of(path)
    if part == "__init__":
        return  # it names everything, and imports nothing before it is asked for
    assert part in MAY_IMPORT, f"say in MAY_IMPORT what {part} may import"
    for node, name in imported(path):
        if name == PACKAGE or name.startswith(f"{PACKAGE}."):
            target = name.split(".")[1] if "." in name else "__init__"
            top_level = (ROOT / target).is_dir() or (ROOT / f"{target}.py").is_file()
            if target == "__init__" or not top_level:
                assert part in SURFACES | {"testing"}, f"{path.name}:{node.lineno} imports {name} from the top"
            else:
                assert target in MAY_IMPORT[part], f"{path.name}:{node.lineno}: {part} must not import {name}"


@pytest.mark.requirement("Y NFR-001")
@pytest.mark.parametrize("path", sorted((ROOT / "core").rglob("*.py")), ids=lambda path: path.name)
def test_the_core_stands_on_pydantic_and_the_standard_library_alone(path: Path) -> None:
    lines_at_import = {node.lineno for node in runs_at_import(path)}
    for node, name in imported(path):
        package = name.split(".")[0]
        if package in {PACKAGE, *PYDANTIC} or package in sys.stdlib_module_names:
            continue
        assert package in LAZY_IN_CORE, f"{path.name}:{node.lineno} imports {name}"
        assert node.lineno not in lines_at_import, f"{path.name}:{node.lineno} imports {name} before it is needed"


LOADED = """
import sys
before = set(sys.modules)
{statement}
import json
names = {{name.split(".")[0] for name in set(sys.modules) - before}}
foreign = {{name for name in names if name not in sys.stdlib_module_names and not name.startswith("_sysconfigdata")}}
print(json.dumps(sorted(foreign)))
"""


def loaded_by(statement: str) -> set[str]:
    """The packages outside the standard library that a fresh interpreter loads for a statement."""
    code = LOADED.format(statement=statement)
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], check=True, capture_output=True, text=True, cwd=ROOT.parent
    )
    return set(json.loads(run.stdout))


@pytest.mark.requirement("Y NFR-001", "Y NFR-002")
def test_importing_the_package_loads_nothing_else() -> None:
    assert loaded_by("import yiemagent_nb") <= {PACKAGE, *PYDANTIC}


@pytest.mark.requirement("Y NFR-001")
def test_importing_the_whole_core_loads_pydantic_and_nothing_else() -> None:
    names = sorted(f"{PACKAGE}.core.{path.stem}" for path in (ROOT / "core").glob("*.py") if path.stem != "__init__")
    assert loaded_by(f"import {', '.join(names)}") == {PACKAGE, *PYDANTIC}


@pytest.mark.requirement("Y NFR-001")
def test_an_agent_of_a_plain_function_answers_without_a_notebook_and_without_http() -> None:
    statement = (
        "from yiemagent_nb import Agent, tool\n"
        "def add(a: int, b: int) -> int:\n"
        "    'Add.'\n"
        "    return a + b\n"
        "agent = Agent(lambda messages: 'hi', tools=[add])\n"
        "assert agent.ask('hello').text == 'hi'\n"
    )
    assert loaded_by(statement) <= {PACKAGE, *PYDANTIC}
