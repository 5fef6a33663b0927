"""The shape of the repository: rules about files that no linter checks."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

TOP = Path(__file__).parent.parent
PACKAGE = TOP / "daemon" / "rootsd"
TESTS = TOP / "tests"

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
