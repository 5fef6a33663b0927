"""Each gate of `make lint` is shown to fail when it should, and to pass when it should.

Every case plants one file in a copy of the tree and runs the tool as `make lint` does, with the
settings of pyproject.toml.
"""

from __future__ import annotations

import os
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


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    shutil.copy(TOP / "pyproject.toml", tmp_path)
    shutil.copytree(
        TOP / "daemon", tmp_path / "daemon", ignore=shutil.ignore_patterns("__pycache__")
    )
    return Tree(tmp_path)


@pytest.fixture(scope="module")
def mypy_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cache for all runs of mypy here: only the first one reads the standard library."""
    return tmp_path_factory.mktemp("mypy")


def test_ruff_passes_the_tree_as_it_is(tree: Tree) -> None:
    run = tree.run("ruff", "check", "--no-cache", "daemon")
    assert run.returncode == 0, run.stdout


PURE = "core, wire and the proxies' protocol do no I/O"
LEAN = "the proxies and check use the standard library only"


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ("FBT001", "def scan(deep: bool) -> bool:\n    return not deep\n"),
        ("TID251", "import time\n\ntime.sleep(1)\n"),
        ("TID251", "import daemon.rootsd\n\nprogram = daemon.rootsd\n"),
        (
            "TID251",
            "import asyncio\n\n\nasync def f() -> None:\n    _ = asyncio.create_task(g())\n",
        ),
        ("TID252", "from . import model as model\n"),
        ("BLE001", "try:\n    import os as os\nexcept Exception:\n    raised = 1\n"),
        ("S110", "try:\n    import os as os\nexcept Exception:\n    pass\n"),
        ("S602", "import subprocess\n\nsubprocess.run('ls *', shell=True, check=True)\n"),
        ("T201", "print('talk')\n"),
        ("ANN201", "def untold():\n    return 1\n"),
        ("DTZ005", "import datetime\n\nnow = datetime.datetime.now()\n"),
    ],
)
def test_ruff_finds(rule: str, text: str, tree: Tree) -> None:
    planted = tree.plant("daemon/planted.py", HEAD + text)
    run = tree.run("ruff", "check", "--no-cache", "--output-format=concise", planted)
    assert run.returncode == 1, run.stdout
    assert f" {rule} " in run.stdout


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


def test_mypy_passes_what_is_typed_and_exhaustive(tree: Tree, mypy_cache: Path) -> None:
    planted = tree.plant("daemon/planted.py", HEAD + KINDS + BOTH)
    run = tree.run("mypy", "--cache-dir", mypy_cache, planted)
    assert run.returncode == 0, run.stdout


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("exhaustive-match", KINDS + ONE),
        ("no-untyped-def", "def untyped(path):\n    return path\n"),
        ("type-arg", "def bare(paths: list) -> None: ...\n"),
        ("ignore-without-code", "wrong: int = 'a'  # type: ignore\n"),
        ("return-value", "def wrong() -> int:\n    return 'a'\n"),
    ],
)
def test_mypy_finds(code: str, text: str, tree: Tree, mypy_cache: Path) -> None:
    planted = tree.plant("daemon/planted.py", HEAD + text)
    run = tree.run("mypy", "--cache-dir", mypy_cache, planted)
    assert run.returncode == 1, run.stdout
    assert f"[{code}]" in run.stdout


def test_import_contracts_pass_the_tree_as_it_is(tree: Tree) -> None:
    run = tree.run("lint-imports", "--no-cache")
    assert run.returncode == 0, run.stdout
    assert "0 broken" in run.stdout


@pytest.mark.parametrize(
    ("contract", "name", "text"),
    [
        ("layers", "core/planted.py", "import rootsd.system\n"),
        ("layers", "disk/planted.py", "import rootsd.vcs\n"),
        ("layers", "mcp/planted.py", "import rootsd.control\n"),
        ("layers", "discovery/planted.py", "import rootsd.mcp\n"),
        ("layers", "extra/__init__.py", ""),
        ("layers", "extra.py", ""),
        (PURE, "core/planted.py", "import os\n"),
        (PURE, "wire/planted.py", "from time import monotonic\n"),
        (PURE, "proxy/bridge/session.py", "import os\n"),
        (PURE, "proxy/run/session.py", "import time\n"),
        ("the ledger does not know the store", "state/ledger.py", "import rootsd.state.store\n"),
        (
            "handlers know neither the server nor the guard",
            "control/handlers/planted.py",
            "import rootsd.control.server\n",
        ),
        ("the MCP protocol does no I/O of its own", "mcp/protocol.py", "import socket\n"),
        (
            "the command line reaches the daemon through its socket",
            "cli/planted.py",
            "import rootsd.state.store.store\n",
        ),
        (
            "the command line reaches the daemon through its socket",
            "cli/commands/planted.py",
            "import rootsd.daemon\n",
        ),
        (LEAN, "proxy/bridge/planted.py", "import click\n"),
        (LEAN, "proxy/run/planted.py", "import asyncio\n"),
        (LEAN, "system/runtime_dir.py", "import anyio\n"),
        ("client uses the standard library only", "client.py", "import pydantic\n"),
        ("one place per dependency", "daemon/planted.py", "import mcp\n"),
        ("one place per dependency", "daemon/planted.py", "import subprocess\n"),
    ],
)
def test_import_contracts_find(contract: str, name: str, text: str, tree: Tree) -> None:
    tree.plant("state/store/store.py", "")
    tree.plant(name, text)
    run = tree.run("lint-imports", "--no-cache")
    assert run.returncode == 1, run.stdout
    assert f"{contract} BROKEN" in run.stdout
