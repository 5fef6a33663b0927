"""Each gate of `make lint` fails when it should, and passes when it should.

Each tool runs as in `make lint`, with the settings of pyproject.toml, once on the unchanged tree
and once on a copy with all planted faults.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

TOP = Path(__file__).parent.parent
BIN = Path(sys.executable).parent
HEAD = '"""Planted."""\n\nfrom __future__ import annotations\n\n'


@dataclass(frozen=True, slots=True)
class Tree:
    """A copy of what the gates look at."""

    top: Path

    def plant(self, name: str, text: str) -> Path:
        """Write `text` to daemon/rootsd/`name`, behind what stands there already."""
        path = self.top / "daemon" / "rootsd" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as file:
            file.write(text)
        return path

    def run(self, *command: str | Path) -> subprocess.CompletedProcess[str]:
        """Run a tool of this environment in the copy, with both its outputs in `stdout`."""
        program, *arguments = command
        return subprocess.run(
            [BIN / program, *arguments],
            cwd=self.top,
            env={**os.environ, "PYTHONPATH": str(self.top / "daemon")},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    """A copy for the cases of this module, which plant files of different names."""
    top = tmp_path_factory.mktemp("tree")
    shutil.copy(TOP / "pyproject.toml", top)
    plugin = "tools/mypy_structs.py"
    (top / plugin).parent.mkdir()
    shutil.copy(TOP / plugin, top / plugin)
    shutil.copytree(TOP / "daemon", top / "daemon", ignore=shutil.ignore_patterns("__pycache__"))
    return Tree(top)


def test_ruff_passes_the_tree_as_it_is() -> None:
    run = Tree(TOP).run("ruff", "check", "--no-cache", "daemon")
    assert run.returncode == 0, run.stdout


PURE = "core, wire and the proxies' protocol do no I/O"
LEAN = "the proxies, the wall, check, and hook use the standard library only"


RUFF_CASES = [
    ("FBT001", "def scan(deep: bool) -> bool:\n    return not deep\n"),
    ("TID251", "import time\n\ntime.sleep(1)\n"),
    ("TID251", "import daemon.rootsd\n\nprogram = daemon.rootsd\n"),
    ("TID251", "import asyncio\n\n\nasync def f() -> None:\n    _ = asyncio.create_task(g())\n"),
    ("TID252", "from . import model as model\n"),
    ("BLE001", "try:\n    import os as os\nexcept Exception:\n    raised = 1\n"),
    ("S110", "try:\n    import os as os\nexcept Exception:\n    pass\n"),
    ("S602", "import subprocess\n\nsubprocess.run('ls *', shell=True, check=True)\n"),
    ("T201", "print('talk')\n"),
    ("ANN201", "def untold():\n    return 1\n"),
    ("DTZ005", "import datetime\n\nnow = datetime.datetime.now()\n"),
]


@pytest.fixture(scope="module")
def ruff_findings(tree: Tree) -> str:
    planted = [
        tree.plant(f"daemon/ruff_{number}.py", HEAD + text)
        for number, (_, text) in enumerate(RUFF_CASES)
    ]
    run = tree.run("ruff", "check", "--no-cache", "--output-format=concise", *planted)
    assert run.returncode == 1, run.stdout
    return run.stdout


@pytest.mark.parametrize("number", range(len(RUFF_CASES)), ids=[rule for rule, _ in RUFF_CASES])
def test_ruff_finds(number: int, ruff_findings: str) -> None:
    rule, _ = RUFF_CASES[number]
    assert re.search(rf"/ruff_{number}\.py:.* {rule} ", ruff_findings), ruff_findings


KINDS = "from enum import Enum\n\n\nclass Kind(Enum):\n    ONE = 1\n    TWO = 2\n\n\n"
BOTH = (
    "def told(kind: Kind) -> str:\n    match kind:\n"
    "        case Kind.ONE:\n            said = 'one'\n"
    "        case Kind.TWO:\n            said = 'two'\n    return said\n"
)
ONE = (
    "def told(kind: Kind) -> str:\n    said = ''\n    match kind:\n"
    "        case Kind.ONE:\n            said = 'one'\n    return said\n"
)

STRUCT = (
    "from msgspec import Struct\nfrom msgspec.structs import replace\n\n\n"
    "class Place(Struct, frozen=True):\n    name: str\n\n\n"
)


MYPY_CASES = [
    ("exhaustive-match", KINDS + ONE),
    ("no-untyped-def", "def untyped(path):\n    return path\n"),
    ("type-arg", "def bare(paths: list) -> None: ...\n"),
    ("ignore-without-code", "wrong: int = 'a'  # type: ignore\n"),
    ("return-value", "def wrong() -> int:\n    return 'a'\n"),
    ("call-arg", STRUCT + "replace(Place('a'), path='b')\n"),
    ("arg-type", STRUCT + "replace(Place('a'), name=1)\n"),
]


@pytest.fixture(scope="module")
def mypy_findings(tree: Tree) -> str:
    """What one run says of all cases, and of a file without a finding."""
    cases = [*(text for _, text in MYPY_CASES), KINDS + BOTH]
    planted = [
        tree.plant(f"daemon/mypy_{number}.py", HEAD + text) for number, text in enumerate(cases)
    ]
    run = tree.run("mypy", "--cache-dir", tree.top / "mypy", *planted)
    assert run.returncode == 1, run.stdout
    return run.stdout


def test_mypy_passes_what_is_typed_and_exhaustive(mypy_findings: str) -> None:
    assert f"mypy_{len(MYPY_CASES)}.py" not in mypy_findings


@pytest.mark.parametrize("number", range(len(MYPY_CASES)), ids=[code for code, _ in MYPY_CASES])
def test_mypy_finds(number: int, mypy_findings: str) -> None:
    code, _ = MYPY_CASES[number]
    assert re.search(rf"/mypy_{number}\.py:.*\[{code}\]", mypy_findings), mypy_findings


def test_import_contracts_pass_the_tree_as_it_is() -> None:
    run = Tree(TOP).run("lint-imports", "--no-cache")
    assert run.returncode == 0, run.stdout
    assert "0 broken" in run.stdout


IMPORT_CASES = [
    ("layers", "core/planted_1.py", "import rootsd.net\n"),
    ("layers", "disk/planted_2.py", "import rootsd.vcs\n"),
    ("layers", "mcp/planted_3.py", "import rootsd.control\n"),
    ("layers", "discovery/planted_4.py", "import rootsd.mcp\n"),
    ("layers", "extra/__init__.py", ""),
    ("layers", "extra_module.py", ""),
    (PURE, "core/planted_5.py", "import os\n"),
    (PURE, "wire/planted_6.py", "from time import monotonic\n"),
    (PURE, "proxy/bridge/session.py", "import os\n"),
    (PURE, "proxy/run/session.py", "import time\n"),
    ("the ledger does not know the store", "state/ledger.py", "import rootsd.state.store\n"),
    ("layers inside control", "control/handlers/planted_7.py", "import rootsd.control.server\n"),
    ("the MCP protocol does no I/O of its own", "mcp/protocol.py", "import socket\n"),
    (
        "the command line reaches the daemon through its socket",
        "cli/planted_8.py",
        "import rootsd.state.store.store\n",
    ),
    (
        "the command line reaches the daemon through its socket",
        "cli/commands/planted_9.py",
        "import rootsd.daemon\n",
    ),
    (LEAN, "proxy/bridge/planted_10.py", "import click\n"),
    (LEAN, "proxy/run/planted_11.py", "import asyncio\n"),
    (LEAN, "places/runtime_dir.py", "import anyio\n"),
    ("client uses the standard library only", "client.py", "import pydantic\n"),
    ("one place per dependency", "daemon/planted_12.py", "import mcp\n"),
    ("one place per dependency", "daemon/planted_13.py", "import subprocess\n"),
]


@pytest.fixture(scope="module")
def broken_contracts(tree: Tree) -> dict[str, str]:
    """What is said of each broken contract, by its name."""
    for _, name, text in IMPORT_CASES:
        tree.plant(name, text)
    run = tree.run("lint-imports", "--no-cache")
    assert run.returncode == 1, run.stdout
    _, *parts = re.split(r"^(.+)\n-+\n\n", run.stdout, flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


@pytest.mark.parametrize(("contract", "name", "text"), IMPORT_CASES)
def test_import_contracts_find(
    contract: str, name: str, text: str, broken_contracts: dict[str, str]
) -> None:
    module = f"rootsd.{name.removesuffix('.py').removesuffix('/__init__').replace('/', '.')}"
    # A planted import, which may be the last of several, or a module without a layer.
    line = f"{module} -> {text.split()[1]} (" if text else f"{module}\n"
    said = broken_contracts[contract]
    assert re.search(rf"^-? +{re.escape(line)}", said, re.MULTILINE), said
