"""The shape of the repository: rules about files that no linter checks."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
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
GAP = re.compile(r"(?<![-\w{.])[A-Z]{3,}\b")  # such as REF
SLEEPS = ("sleep", "sleep_until", "sleep_forever")


def _sources() -> list[Path]:
    return sorted([*PACKAGE.rglob("*.py"), *TESTS.rglob("*.py")])


def _of(folder: Path, paths: list[Path]) -> list[str]:
    return [str(path.relative_to(folder)) for path in paths]


Nodes = Sequence[ast.AST]


def _nodes(text: str) -> Nodes:
    """Return all nodes of a module, itself first."""
    return [*ast.walk(ast.parse(text))]


def _statements(block: ast.AST) -> Iterator[ast.AST]:
    """Yield a module or statement and all statements in it, which are few of its nodes."""
    yield block
    for name in ("body", "handlers", "cases", "orelse", "finalbody"):
        inner = getattr(block, name, ())
        if isinstance(inner, list):  # a conditional expression has a body, too
            for each in inner:
                yield from _statements(each)


def _functions(nodes: Nodes) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def _sleeping_lines(nodes: Nodes) -> list[int]:
    """Return the lines that call a function named `sleep`. A sleep of zero only yields."""
    return [
        node.lineno
        for node in nodes
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute | ast.Name)
        and (node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id) in SLEEPS
        and not (node.args and isinstance(node.args[0], ast.Constant) and node.args[0].value == 0)
    ]


def _public_classes(nodes: Nodes) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield node.name


@cache
def _modules_of_public_classes() -> dict[str, list[str]]:
    """Return the modules of the package that define each public class name."""
    modules: dict[str, list[str]] = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        for name in _contents(path).public_classes:
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


def _long_functions(nodes: Nodes) -> list[str]:
    return [
        f"{function.name}: {function.end_lineno - function.lineno + 1} lines"
        for function in _functions(nodes)
        if function.end_lineno is not None
        and function.end_lineno - function.lineno >= MAX_FUNCTION_LINES
    ]


def _remedies_to_fill_in(nodes: Nodes) -> list[str]:
    """Return the commands, among the arguments of calls after the first, that have a gap."""
    calls = (node for node in nodes if isinstance(node, ast.Call))
    others = (ast.unparse(each).strip("f'\"") for call in calls for each in call.args[1:])
    return [each for each in others if each.startswith("rootsd ") and GAP.search(each)]


@dataclass(frozen=True, slots=True)
class Contents:
    """What the tests below ask about a file. To parse all files takes seconds, so it is once."""

    long_functions: list[str]
    sleeping_lines: list[int]
    has_docstring: bool
    public_classes: list[str]
    private_imports: list[str]
    sdk_internals: list[str]
    remedies_to_fill_in: list[str]


@cache
def _contents(path: Path) -> Contents:
    text = path.read_text()
    module = ast.parse(text, filename=os.fspath(path))
    nodes = [*_statements(module)]
    may_sleep = any(name in text for name in SLEEPS)
    may_have_gaps = any(GAP.search(line) for line in text.splitlines() if "rootsd " in line)
    return Contents(
        _long_functions(nodes),
        _sleeping_lines([*ast.walk(module)]) if may_sleep else [],
        not module.body or bool(ast.get_docstring(module)),
        [*_public_classes(nodes)],
        _private_imports(nodes),
        _sdk_internals(nodes),
        _remedies_to_fill_in([*ast.walk(module)]) if may_have_gaps else [],
    )


def test_files_have_short_functions_no_sleep_and_a_docstring() -> None:
    found = []
    for path in _sources():
        contents = _contents(path)
        found += [f"{path}: {function}" for function in contents.long_functions]
        found += [f"{path}:{line}: a sleep" for line in contents.sleeping_lines]
        if not contents.has_docstring and not path.is_relative_to(TESTS):
            found.append(f"{path}: no docstring")
    assert found == []


def test_the_command_of_an_error_needs_nothing_filled_in() -> None:
    found = {path.name: _contents(path).remedies_to_fill_in for path in PACKAGE.rglob("*.py")}
    assert {name: remedies for name, remedies in found.items() if remedies} == {}


def test_a_command_with_a_gap_is_found() -> None:
    nodes = _nodes('Refused(f"{a} B", f"rootsd show {A}")\nRefused("", "rootsd approve REF")')
    assert _remedies_to_fill_in(nodes) == ["rootsd approve REF"]


def test_a_long_function_is_found() -> None:
    lines = "    pass\n" * MAX_FUNCTION_LINES
    assert _long_functions(_nodes(f"def f():\n{lines}")) == ["f: 61 lines"]
    assert _long_functions(_nodes(f"def f():\n{lines.removeprefix('    pass')[1:]}")) == []


def test_no_test_hides_in_a_class() -> None:
    classes = [
        f"{path.relative_to(TOP)}: {name}"
        for path in TESTS.rglob("test_*.py")
        for name in _contents(path).public_classes
        if name.startswith("Test")
    ]
    assert classes == []


def test_no_module_has_a_catch_all_name() -> None:
    drawers = {"util", "utils", "helper", "helpers", "misc", "common"}
    assert _of(TOP, [path for path in _sources() if path.stem in drawers]) == []


# The SDK's public packages. The others are internals, for the one module whose cap allows them.
SDK_PUBLIC = frozenset({"mcp", "mcp.server", "mcp_types", "mcp_types.version"})
SDK_INTERNALS_MODULE = PACKAGE / "mcp" / "server.py"


def _imported(nodes: Nodes) -> Iterator[tuple[str, str]]:
    """Yield the module and the name of each import; the name is empty for a whole module."""
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)


def _private_imports(nodes: Nodes) -> list[str]:
    dotted = (f"{module}.{name}" for module, name in _imported(nodes) if module != "__future__")
    return [name for name in dotted if re.search(r"\._[a-z]", name)]


def _sdk_internals(nodes: Nodes) -> list[str]:
    sdk = ("mcp", "mcp_types")
    modules = {module for module, _ in _imported(nodes) if module.partition(".")[0] in sdk}
    return sorted(modules - SDK_PUBLIC)


def test_no_module_imports_a_private_part_of_another() -> None:
    found = {path: _contents(path).private_imports for path in PACKAGE.rglob("*.py")}
    assert {path.name: names for path, names in found.items() if names} == {}


def test_one_module_imports_internals_of_the_sdk() -> None:
    found = {path for path in PACKAGE.rglob("*.py") if _contents(path).sdk_internals}
    assert found == {SDK_INTERNALS_MODULE}


def test_private_imports_and_internals_of_the_sdk_are_found() -> None:
    nodes = _nodes("from mcp.shared import peer, _otel\nimport a._b\nfrom mcp import MCPError")
    assert _private_imports(nodes) == ["mcp.shared._otel", "a._b."]
    assert _sdk_internals(nodes) == ["mcp.shared"]


def test_each_public_class_name_is_used_once() -> None:
    modules = _modules_of_public_classes()
    assert len(modules) > 100, "the search for classes finds nothing"
    assert {name: where for name, where in modules.items() if len(where) > 1} == {}


def test_a_nested_public_class_is_found_and_a_private_one_is_not() -> None:
    nodes = _nodes("class Door:\n    class Desk: ...\nclass _Gate: ...")
    assert list(_public_classes(nodes)) == ["Door", "Desk"]


def test_the_glossary_is_sorted_and_defines_each_word_once_on_one_line() -> None:
    lines = GLOSSARY.read_text().partition("\n- ")[2].splitlines()
    entries = [re.fullmatch(r"(?:- )?\*\*(.+?)\*\*: .+[.]", line) for line in lines]
    assert [line for line, entry in zip(lines, entries, strict=True) if entry is None] == []
    words = [entry[1].lower() for entry in entries if entry is not None]
    assert words == sorted(set(words))


@pytest.mark.needs("checkout")
def test_no_file_but_those_for_packagers_names_a_registry() -> None:
    named = [
        f"{path.relative_to(TOP)} names {host}"
        for path in _tracked_and_new_files()
        for host in REGISTRY_HOSTS
        if path.relative_to(TOP).parts[0] not in (".github", "packaging")
        and host.encode() in path.read_bytes()
    ]
    assert named == []


@pytest.mark.parametrize(
    "call", ["time.sleep(1)", "sleep(0.1)", "await anyio.sleep(delay)", "await sleep_forever()"]
)
def test_a_sleep_is_found(call: str) -> None:
    assert _sleeping_lines(_nodes(f"async def f():\n    {call}")) == [2]


def test_a_sleep_of_zero_is_allowed() -> None:
    assert _sleeping_lines(_nodes("async def f():\n    await anyio.sleep(0)")) == []


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
    ("core/project_kind.py", '    DARCS = "darcs", b"_darcs"',
     '    EXAMPLE = "example", b".example"'),
)  # fmt: skip
_FIND_EXAMPLE_VCS = """
import os, sys
from rootsd.core.model import Parent
from rootsd.disk.markers import WalkRules
from rootsd.disk.walk import Walker, WalkFolder
from rootsd.vcs.probe import probe

top = os.fsencode(sys.argv[1])
found = Walker(WalkRules.of(Parent(top))).walk(WalkFolder(top, 3, top=True)).listings[-1]
print(found.kind, probe(found.place.path).kind, probe(found.place.path).incomplete)
"""


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """Return a copy of the package, with its bytecode, in which a test plants an example."""
    package = tmp_path / "rootsd"
    shutil.copytree(PACKAGE, package)
    return package


def _touched(package: Path) -> set[str]:
    """Return the files of the copy that are new or changed."""
    files = (path.relative_to(package) for path in package.rglob("*.py"))
    return {
        str(file)
        for file in files
        if not (PACKAGE / file).exists()
        or (PACKAGE / file).read_bytes() != (package / file).read_bytes()
    }


def _run_with(package: Path, program: str, *arguments: Path) -> str:
    """Run a program with the copy, and return what it printed."""
    run = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": f"{package.parent}:{TESTS}"},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_a_new_vcs_is_one_file_its_line_in_the_registry_and_its_stored_value(
    planted: Path, tmp_path: Path
) -> None:
    (planted / "vcs" / "example.py").write_text(_EXAMPLE_VCS)
    for name, before, line in _EXAMPLE_VCS_LINES:
        text = (planted / name).read_text()
        assert text.count(before + "\n") == 1
        (planted / name).write_text(text.replace(before, f"{before}\n{line}"))
    (tmp_path / "src" / "one" / ".example").mkdir(parents=True)
    assert _run_with(planted, _FIND_EXAMPLE_VCS, tmp_path / "src") == "example example None\n"
    assert _touched(planted) == {"vcs/example.py", "vcs/registry.py", "core/project_kind.py"}


_EXAMPLE_VERB = '''"""`rootsd example`: repeat a text in capitals."""

import click

from rootsd.cli.options.flags import pass_invocation, verb
from rootsd.wire.daemon import ExampleQuery

SECTION = "Inspect"


@verb("example")
@click.argument("text")
@pass_invocation
def command(invocation, *, text):
    """Repeat TEXT in capitals."""
    invocation.output.line(invocation.call(ExampleQuery(text))["text"])
'''
_EXAMPLE_HANDLER = """
from rootsd.control.routes import query_route
from rootsd.wire.daemon import ExampleQuery


async def answer(query):
    return {"text": query.text.upper()}


def routes(services):
    return (query_route(ExampleQuery, answer),)
"""
_EXAMPLE_REQUEST = """

class ExampleResult(TypedDict):
    text: str


class ExampleQuery(ControlRequest, frozen=True):
    method: ClassVar[str] = "example"
    result: ClassVar[type] = ExampleResult

    text: str
"""
_RUN_EXAMPLE_VERB = """
import sys
from pathlib import Path

from support.daemon_process import ask, running

with running(Path(sys.argv[1])):
    print(ask("example", "hello").stdout, end="")
[line] = [line for line in ask("--help").stdout.splitlines() if line.startswith("  example ")]
print(line.split("  ")[-1].strip())
print("did you mean example?" in ask("exampel", "hello").stderr)
"""


def test_a_new_verb_is_one_file_for_the_command_line_one_handler_and_its_types(
    planted: Path, tmp_path: Path
) -> None:
    (planted / "cli" / "commands" / "example.py").write_text(_EXAMPLE_VERB)
    (planted / "control" / "handlers" / "example.py").write_text(_EXAMPLE_HANDLER)
    with (planted / "wire" / "daemon.py").open("a") as family:
        family.write(_EXAMPLE_REQUEST)
    printed = _run_with(planted, _RUN_EXAMPLE_VERB, tmp_path)
    assert printed.splitlines() == ["HELLO", "repeat a text in capitals", "True"]
    assert _touched(planted) == {
        "cli/commands/example.py",
        "control/handlers/example.py",
        "wire/daemon.py",
    }
