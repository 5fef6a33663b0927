"""The shape of the repository: rules about files that no linter checks."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

TOP = Path(__file__).parent.parent
PACKAGE = TOP / "daemon" / "rootsd"
TESTS = TOP / "tests"
GLOSSARY = TOP / "docs" / "GLOSSARY.md"

MAX_FUNCTION_LINES = 60
# In two parts, so that this file passes its own test.
REGISTRY_HOSTS = tuple(
    f"{name}.{end}"
    for name, end in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("npmjs", "org"),
        ("npmjs", "com"),
        ("yarnpkg", "com"),
        ("deb.debian", "org"),
    )
)
SLEEPS = ("sleep", "sleep_until", "sleep_forever")

# Words that a newcomer could not guess. docs/GLOSSARY.md has the words to use instead.
_CLASS_WORDS = """
    Asking Audience Awaited Backlog Barrier Behind Bookings Chronicle Desk Door Entry Eras Fault
    Gate Ground Guards Habits Happening Hints Intake Keeping Linked Means Memo Notice Noticing
    Offers Outlet Overtaken Patience Reception Renewal Repairs Reply Rounds Senses Shapes Sight
    Standing Strays Supplier Supply Surveyor Sweeping Terrain Territory Told Turns Visit Visitor
    Wish
"""
_MODULE_WORDS = """
    arrival becoming boundary collecting diagnosis examining guarding keys manner nowhere pace
    portrait relief sparing stable voices
"""
RETIRED_CLASSES = frozenset(_CLASS_WORDS.split())
RETIRED_MODULES = frozenset(f"{_CLASS_WORDS.lower()} {_MODULE_WORDS}".split())


def _sources() -> list[Path]:
    return sorted([*PACKAGE.rglob("*.py"), *TESTS.rglob("*.py")])


def _of(folder: Path, paths: list[Path]) -> list[str]:
    return [str(path.relative_to(folder)) for path in paths]


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_bytes(), filename=str(path))


def _functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def _sleeping_lines(tree: ast.AST) -> list[int]:
    """Lines that call something named `sleep`; a sleep of zero only gives way to others."""
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute | ast.Name)
        and (node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id) in SLEEPS
        and not (node.args and isinstance(node.args[0], ast.Constant) and node.args[0].value == 0)
    ]


def _public_classes(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield node.name


def _modules_of_public_classes() -> dict[str, list[str]]:
    """Return the modules of the package that define each public class name."""
    modules: dict[str, list[str]] = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        for name in _public_classes(_tree(path)):
            modules[name].append(str(path.relative_to(PACKAGE)))
    return modules


def _tracked_and_new_files() -> list[Path]:
    listing = subprocess.run(
        ["git", "-C", str(TOP), "-c", f"safe.directory={TOP}", "ls-files", "-z",
         "--cached", "--others", "--exclude-standard"],
        capture_output=True, check=True,
    )  # fmt: skip
    paths = (TOP / name.decode() for name in listing.stdout.split(b"\0") if name)
    return [path for path in paths if path.is_file()]


@pytest.mark.parametrize("path", _sources(), ids=lambda path: str(path.relative_to(TOP)))
def test_file_has_short_functions_no_sleep_and_a_docstring(path: Path) -> None:
    tree = _tree(path)
    long_functions = [
        f"{function.name}: {function.end_lineno - function.lineno + 1}"
        for function in _functions(tree)
        if function.end_lineno is not None
        and function.end_lineno - function.lineno >= MAX_FUNCTION_LINES
    ]
    assert long_functions == []
    assert _sleeping_lines(tree) == []
    assert ast.get_docstring(tree) or not tree.body or path.is_relative_to(TESTS)


def test_no_test_hides_in_a_class() -> None:
    classes = [
        f"{path.relative_to(TOP)}: {node.name}"
        for path in TESTS.rglob("test_*.py")
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test")
    ]
    assert classes == []


def test_no_module_is_a_drawer_for_everything() -> None:
    drawers = {"util", "utils", "helper", "helpers", "misc", "common"}
    assert _of(TOP, [path for path in _sources() if path.stem in drawers]) == []


def test_each_public_class_name_is_used_once() -> None:
    modules = _modules_of_public_classes()
    assert len(modules) > 100, "the search for classes finds nothing"
    assert {name: where for name, where in modules.items() if len(where) > 1} == {}


def test_no_class_has_a_retired_name() -> None:
    modules = _modules_of_public_classes()
    assert {name: modules[name] for name in RETIRED_CLASSES & modules.keys()} == {}


def test_no_module_has_a_retired_name() -> None:
    modules = [path for path in PACKAGE.rglob("*") if path.stem in RETIRED_MODULES]
    assert _of(PACKAGE, modules) == []


def test_a_nested_public_class_is_found_and_a_private_one_is_not() -> None:
    tree = ast.parse("class Door:\n    class Desk: ...\nclass _Gate: ...")
    assert list(_public_classes(tree)) == ["Door", "Desk"]


def test_the_glossary_is_sorted_and_defines_each_word_once_on_one_line() -> None:
    lines = GLOSSARY.read_text().partition("\n- ")[2].splitlines()
    entries = [re.fullmatch(r"(?:- )?\*\*(.+?)\*\*: .+[.]", line) for line in lines]
    assert [line for line, entry in zip(lines, entries, strict=True) if entry is None] == []
    words = [entry[1].lower() for entry in entries if entry is not None]
    assert words == sorted(set(words))


@pytest.mark.needs("checkout")
def test_no_file_names_a_registry() -> None:
    named = [
        f"{path.relative_to(TOP)} names {host}"
        for path in _tracked_and_new_files()
        for host in REGISTRY_HOSTS
        if host.encode() in path.read_bytes()
    ]
    assert named == []


@pytest.mark.parametrize(
    "call", ["time.sleep(1)", "sleep(0.1)", "await anyio.sleep(delay)", "await sleep_forever()"]
)
def test_a_sleep_is_found(call: str) -> None:
    assert _sleeping_lines(ast.parse(f"async def f():\n    {call}")) == [2]


def test_giving_way_is_no_sleep() -> None:
    assert _sleeping_lines(ast.parse("async def f():\n    await anyio.sleep(0)")) == []


_EXAMPLE_VCS = """
from rootsd.core.model import ProjectKind
from rootsd.vcs.base import MarkedVcs


class Example(MarkedVcs):
    kind = ProjectKind.EXAMPLE
    progress = (b"/.example",)

    def stage(self, path):
        return None
"""
# Each line to add, after which line, in which file.
_EXAMPLE_VCS_LINES = (
    ("vcs/registry.py", "from rootsd.vcs.darcs import Darcs",
     "from rootsd.vcs.example import Example"),
    ("vcs/registry.py", "    Darcs(),", "    Example(),"),
    ("core/model.py", '    DARCS = "darcs", b"_darcs"', '    EXAMPLE = "example", b".example"'),
)  # fmt: skip
_FIND_EXAMPLE = """
import os, sys
from rootsd.core.model import Parent
from rootsd.disk.markers import WalkRules
from rootsd.disk.walk import Walker, WalkFolder
from rootsd.vcs.probe import probe

top = os.fsencode(sys.argv[1])
found = Walker(WalkRules.of(Parent(top))).walk(WalkFolder(top, 3, top=True)).listings[-1]
print(found.kind, probe(found.place.path).kind, probe(found.place.path).incomplete)
"""


def test_a_new_vcs_is_one_file_its_line_in_the_registry_and_its_stored_value(
    tmp_path: Path,
) -> None:
    package = tmp_path / "rootsd"
    shutil.copytree(PACKAGE, package)
    (package / "vcs" / "example.py").write_text(_EXAMPLE_VCS)
    for name, before, line in _EXAMPLE_VCS_LINES:
        text = (package / name).read_text()
        assert text.count(before + "\n") == 1
        (package / name).write_text(text.replace(before, f"{before}\n{line}"))
    (tmp_path / "src" / "one" / ".example").mkdir(parents=True)
    run = subprocess.run(
        [sys.executable, "-c", _FIND_EXAMPLE, tmp_path / "src"],
        capture_output=True, text=True, check=True, env={"PYTHONPATH": str(tmp_path)},
    )  # fmt: skip
    assert run.stdout == "example example None\n"
