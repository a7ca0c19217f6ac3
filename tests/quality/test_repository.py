"""What the repository promises about itself."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]


def tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S607
    return [ROOT / name for name in listed.stdout.split("\0") if name]


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="ignore") if path.is_file() else ""


def commands() -> list[str]:
    blocks = re.findall(r"```bash\n(.*?)```", text_of(ROOT / "README.md"), re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line.startswith("python3 -m venv")]


def test_readme_has_one_command_to_start_and_one_to_test() -> None:
    start, check = commands()
    assert start.endswith("jupyter lab --allow-root notebooks/01_quickstart.ipynb")
    assert check.endswith("pytest -n 2 --no-loadscope-reorder")


def test_ci_calls_the_very_test_command_of_readme() -> None:
    assert f"\n{commands()[1]}\n" in text_of(ROOT / ".ci" / "run")


def test_no_registry_address_stands_in_a_tracked_file() -> None:
    address = re.compile(
        r'"resolved"\s*:|--(extra-)?index-url|https?://[^\s"]*(registry\.|files\.pythonhosted|/simple/|\.whl)'
    )
    here = Path(__file__)
    found = [path.name for path in tracked() if path != here and address.search(text_of(path))]
    assert found == []


def test_every_claimed_python_is_tested() -> None:
    project = tomllib.loads(text_of(ROOT / "pyproject.toml"))["project"]
    claimed = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    other = re.search(r"for version in ([\d. ]+);", text_of(ROOT / ".ci" / "run"))
    assert other is not None
    assert claimed == ["3.11", *other[1].split()]
    assert project["requires-python"] == ">=3.11"


def test_every_direct_dependency_is_pinned_with_hashes() -> None:
    project = tomllib.loads(text_of(ROOT / "pyproject.toml"))["project"]
    for pins in (ROOT / "binder" / "requirements.txt", ROOT / ".ci" / "requirements.txt"):
        text = text_of(pins)
        for requirement in project["dependencies"]:
            name = re.split(r"[<>=\[ ]", requirement)[0]
            assert re.search(rf"^{re.escape(name)}==\S+.*\\\n\s+--hash=sha256:", text, re.MULTILINE), (pins.name, name)


def test_the_built_wheel_has_all_that_a_notebook_needs(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, capture_output=True, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    assert not list(tmp_path.rglob("*.ts"))
    program = (
        "import yiemagent_nb, pathlib, sys\n"
        f"assert pathlib.Path(yiemagent_nb.__file__).is_relative_to({str(tmp_path)!r}), yiemagent_nb.__file__\n"
        "for name in yiemagent_nb.__all__: getattr(yiemagent_nb, name)\n"
        "assert yiemagent_nb.AgentWidget(yiemagent_nb.Agent(yiemagent_nb.Demo()))\n"
        "root = pathlib.Path(yiemagent_nb.__file__).parent\n"
        "assert (root / 'py.typed').exists() and (root / 'widgets' / 'static' / 'LICENSES.txt').exists()\n"
    )
    subprocess.run(
        [sys.executable, "-P", "-c", program], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(tmp_path)}, check=True
    )
