"""Real tools install their own kind of package inside, offline, as they do outside."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tarfile
import zipfile
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import NamedTuple

import pytest

from rootsd.core.mount_plan import ConfinedRoot, ViewEntry, ViewEntryKind
from support.needs import uv
from support.walls import Wall, root_at

pytestmark = [pytest.mark.needs("wall")]

WHEEL = "hello_kept-1.0-py3-none-any.whl"
WHEEL_FILES = {
    "hello_kept/__init__.py": "def main(): print('hello')\n",
    "hello_kept-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: hello-kept\nVersion: 1.0\n",
    "hello_kept-1.0.dist-info/WHEEL": (
        "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    ),
    "hello_kept-1.0.dist-info/entry_points.txt": (
        "[console_scripts]\nhello-kept = hello_kept:main\n"
    ),
    "hello_kept-1.0.dist-info/RECORD": "",
}


def make_wheel(folder: Path) -> None:
    with zipfile.ZipFile(folder / WHEEL, "w") as wheel:
        for name, text in WHEEL_FILES.items():
            wheel.writestr(name, text)


def make_npm_package(folder: Path) -> None:
    package = {"name": "hello-kept", "version": "1.0.0", "bin": {"hello-kept": "cli.js"}}
    (folder / "package.json").write_text(json.dumps(package))
    (folder / "cli.js").write_text("#!/usr/bin/env node\nconsole.log('hello')\n")
    (folder / "cli.js").chmod(0o755)
    with tarfile.open(folder / "hello-kept-1.0.0.tgz", "w:gz") as archive:
        for name in ("package.json", "cli.js"):
            archive.add(folder / name, f"package/{name}")


def make_crate(folder: Path) -> None:
    (folder / "src").mkdir()
    (folder / "Cargo.toml").write_text(
        '[package]\nname = "hello-kept"\nversion = "1.0.0"\nedition = "2021"\n'
    )
    (folder / "src/main.rs").write_text('fn main() { println!("hello"); }\n')


def make_module(folder: Path) -> None:
    (folder / "go.mod").write_text("module example.com/hello-kept\n\ngo 1.19\n")
    (folder / "main.go").write_text(
        'package main\n\nimport "os"\n\nfunc main() { os.Stdout.WriteString("hello\\n") }\n'
    )


class Tool(NamedTuple):
    """A tool that installs the program `hello-kept` from a package in the working directory."""

    make: Callable[[Path], None]
    install: str
    again: str
    programs: str
    """Where it installs programs, below the home folder."""


TOOLS = {
    "pip": Tool(
        make_wheel,
        f"python3 -m pip install -q --user --no-index --break-system-packages {WHEEL}",
        f"python3 -m pip install -q --user --no-index --break-system-packages --force-reinstall"
        f" {WHEEL}",
        ".local/bin",
    ),
    "npm": Tool(
        make_npm_package,
        "npm install --offline --no-audit -g ./hello-kept-1.0.0.tgz",
        "npm uninstall -g hello-kept && npm install --offline --no-audit -g"
        " ./hello-kept-1.0.0.tgz",
        ".npm-global/bin",
    ),
    "cargo": Tool(
        make_crate,
        "cargo install --quiet --offline --path .",
        "cargo install --quiet --offline --path . --force",
        ".cargo/bin",
    ),
    "go": Tool(make_module, "go install .", "go clean -cache && go install .", "go/bin"),
    "uv": Tool(
        make_wheel,
        f"uv tool install --offline --python /usr/bin/python3 ./{WHEEL}",
        f"uv tool install --force --offline --python /usr/bin/python3 ./{WHEEL}",
        ".local/bin",
    ),
}


def place_of(tool: str) -> str:
    """Return where a tool is. The one of the system needs nothing that is not visible inside."""
    found = shutil.which(tool, path="/usr/bin") or shutil.which(tool)
    return found or (tool == "uv" and uv()) or ""


def variables_in(home: Path) -> dict[str, str]:
    found = [os.path.dirname(place) for place in map(place_of, TOOLS)]
    programs = (str(home / each.programs) for each in TOOLS.values())
    path = os.pathsep.join([*programs, *found, "/usr/bin:/bin"])
    own = {"PATH": path, "HOME": str(home), "npm_config_prefix": f"{home}/.npm-global"}
    return {**own, "GOFLAGS": "-buildvcs=false", "GOPROXY": "off"}


def run(wall: Wall, home: Path, folder: Path, line: str) -> str:
    """Run a line of the shell inside, and return what it prints."""
    done = wall.run(f"""
words, pipes = ["sh", "-ec", {line!r}], dict(stdout=-1, stderr=-2, text=True)
done = subprocess.run(words, cwd={str(folder)!r}, env={variables_in(home)!r}, **pipes)
result = [done.returncode, done.stdout]
""")
    status, text = done
    assert status == 0, text
    return str(text)


def run_outside(home: Path, folder: Path, line: str) -> str:
    words = ["sh", "-ec", line]
    return subprocess.run(
        words, cwd=folder, env=variables_in(home), check=True, stdout=subprocess.PIPE, text=True
    ).stdout


class Installed(NamedTuple):
    """A tool, and where it is tried."""

    tool: Tool
    home: Path
    root: ConfinedRoot
    start: Callable[[], Wall]

    @property
    def folder(self) -> Path:
        return Path(os.fsdecode(self.root.path))


@pytest.fixture(params=[pytest.param(each, marks=pytest.mark.needs(each)) for each in TOOLS])
def case(tmp_path: Path, request: pytest.FixtureRequest) -> Installed:
    tool, home, folder = TOOLS[request.param], tmp_path / "home", tmp_path / "project"
    (home / ".npm-global/lib").mkdir(parents=True)
    folder.mkdir()
    tool.make(folder)
    root = root_at(folder)
    program = os.fsencode(place_of(request.param))
    entries = [ViewEntry(program, ViewEntryKind.READ, "the tool")]
    own = entries[program.startswith(b"/usr/") :]

    slots = count()

    def start() -> Wall:
        return Wall(
            tmp_path / f"name/{next(slots)}",
            home,
            [root],
            entries=own,
            kept=tmp_path / "name/kept",
        )

    return Installed(tool, home, root, start)


def test_a_package_that_one_session_installs_works_in_the_next_and_not_outside(
    case: Installed,
) -> None:
    tool, home, folder = case.tool, case.home, case.folder
    with case.start() as first:
        run(first, home, folder, tool.install)
        assert run(first, home, folder, "hello-kept") == "hello\n"
    with case.start() as second:
        assert run(second, home, folder, "hello-kept") == "hello\n"
    assert sorted(path.name for path in home.rglob("*")) == [".npm-global", "lib"]


def state_of(home: Path) -> dict[Path, tuple[int, int]]:
    found = ((path, path.lstat()) for path in home.rglob("*"))
    return {path: (each.st_size, each.st_ctime_ns) for path, each in found}


def test_an_upgrade_inside_leaves_the_installation_outside_as_it_is(case: Installed) -> None:
    tool, home, folder = case.tool, case.home, case.folder
    run_outside(home, folder, tool.install)
    assert run_outside(home, folder, "hello-kept") == "hello\n"
    before = state_of(home)
    with case.start() as wall:
        assert run(wall, home, folder, "hello-kept") == "hello\n"
        run(wall, home, folder, tool.again)
        assert run(wall, home, folder, "hello-kept") == "hello\n"
        run(wall, home, folder, f"rm {home / tool.programs}/hello-kept")
    assert state_of(home) == before
    assert run_outside(home, folder, "hello-kept") == "hello\n"
