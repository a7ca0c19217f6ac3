"""The committed bundle is what its sources build, with the licences of what is in it."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from widgets.front_end import SOURCES, STATIC, run

SIZES = {
    "widget.js": 120_000,
    "widget.css": 40_000,
    "markdown.js": 97_000,
    "highlight.js": 90_000,
    "math.js": 288_000,
    "search.js": 12_500,
    "settings.js": 16_300,
    "questions.js": 11_600,
    "editor.js": 9_200,
    "files.js": 3_300,
    "menu.js": 6_300,
    "code.js": 470_000,
    "inspector.js": 165_000,
    "hooks.js": 42_000,
    "trace.js": 78_000,
}
"""The greatest sizes, in bytes: each widget carries its script into each notebook that keeps widgets."""
BUILT = sorted(["LICENSES.txt", *SIZES])


def test_the_committed_bundle_is_what_the_sources_build(front_end: Path, tmp_path: Path) -> None:
    run(front_end, "node", "build.mjs", str(tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == BUILT
    assert sorted(path.name for path in STATIC.iterdir()) == BUILT
    for name in BUILT:
        assert (tmp_path / name).read_bytes() == (STATIC / name).read_bytes(), f"{name}: run `npm run build`"


def test_the_sources_pass_the_type_checker(front_end: Path) -> None:
    run(front_end, "npm", "run", "check")


def test_the_sources_pass_the_linter(front_end: Path) -> None:
    run(front_end, "npm", "run", "lint")
    broken = "export const show = (e: HTMLElement, text: any): void => { e.innerHTML = eval(text!); };\n"
    (front_end / "src" / "broken.ts").write_text(broken, encoding="utf-8")
    found = run(front_end, "npm", "run", "lint", fails=True)
    (front_end / "src" / "broken.ts").unlink()
    for rule in ("no-restricted-properties", "no-eval", "no-explicit-any", "no-non-null-assertion"):
        assert rule in found


def test_what_needs_no_page_passes_its_own_tests(front_end: Path) -> None:
    tests = ("test.mjs", "calls.test.mjs", "hooks.test.mjs")
    assert "# fail 0" in run(front_end, "node", "--test", "--test-reporter=tap", *tests)


def test_the_bundle_is_small() -> None:
    for name, most in SIZES.items():
        assert (STATIC / name).stat().st_size <= most


SHEETS = SOURCES / "src" / "styles"


def root_classes(sheet: str) -> Iterator[str]:
    """The classes that a sheet gives a look wherever they stand; what holds for narrow places alone is left out."""
    around: list[str] = []
    for selector, brace in re.findall(r"([^{};]*)([{};])", re.sub(r"/\*.*?\*/", "", sheet, flags=re.DOTALL)):
        if brace == "}":
            around.pop()
        elif brace == "{":
            if all(each in ("", ".yna") for each in around):
                yield from re.findall(r"(?:^|,)\s*(?:\.yna )?\.(yna-[\w-]+)\s*(?=,|$)", selector)
            around.append(selector.strip())


def test_no_class_has_its_look_from_two_sheets() -> None:
    """A part's sheet comes when the part is opened: what it said of another's class would change the chat."""
    first = (SOURCES / "src" / "widget.css").read_text(encoding="utf-8")
    sheets: dict[str, set[str]] = defaultdict(set)
    for path in SHEETS.glob("*.css"):
        for name in root_classes(path.read_text(encoding="utf-8")):
            sheets[name].add("widget.css" if f"/{path.name}" in first else path.name)
    assert {name: found for name, found in sheets.items() if len(found) > 1} == {}
    assert len(sheets) > 400


def test_the_lock_file_names_hashes_and_no_addresses() -> None:
    lock: dict[str, Any] = json.loads((SOURCES / "package-lock.json").read_text(encoding="utf-8"))
    packages = {name: entry for name, entry in lock["packages"].items() if name}
    assert all(entry["integrity"].startswith("sha512-") for entry in packages.values())
    assert not any("resolved" in entry for entry in packages.values())


def test_every_bundled_package_has_its_licence_in_the_wheel() -> None:
    text = (STATIC / "LICENSES.txt").read_text(encoding="utf-8")
    for package in ("dompurify", "highlight.js", "katex", "marked"):
        assert f"\n{package} " in text
    assert "Permission is hereby granted" in text
