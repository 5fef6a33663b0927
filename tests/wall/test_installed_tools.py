"""Real tools install their own kind of package inside, offline, as they do outside."""

from __future__ import annotations

import json
import os
import shutil
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from rootsd.core.access import Access
from rootsd.core.mount_plan import ConfinedRoot, ViewEntry, ViewEntryKind
from support.walls import Wall

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
    "uv": Tool(
        make_wheel,
        f"uv tool install --offline --python /usr/bin/python3 ./{WHEEL}",
        f"uv tool install --force --offline --python /usr/bin/python3 ./{WHEEL}",
        ".local/bin",
    ),
}


def run(wall: Wall, home: Path, folder: Path, line: str) -> str:
    """Run a line of the shell inside, and return what it prints."""
    found = [os.path.dirname(str(shutil.which(each))) for each in TOOLS if shutil.which(each)]
    path = os.pathsep.join(
        [*(str(home / each.programs) for each in TOOLS.values()), *found, "/usr/bin:/bin"]
    )
    variables = {"PATH": path, "HOME": str(home), "npm_config_prefix": f"{home}/.npm-global"}
    done = wall.run(f"""
words, pipes = ["sh", "-ec", {line!r}], dict(stdout=-1, stderr=-2, text=True)
done = subprocess.run(words, cwd={str(folder)!r}, env={variables!r}, **pipes)
result = [done.returncode, done.stdout]
""")
    status, text = done
    assert status == 0, text
    return str(text)


@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=pytest.mark.needs(each)) for each in TOOLS]
)
def test_a_package_that_one_session_installs_works_in_the_next_and_not_outside(
    tmp_path: Path, name: str
) -> None:
    tool = TOOLS[name]
    home, folder = tmp_path / "home", tmp_path / "project"
    (home / ".npm-global/lib").mkdir(parents=True)
    folder.mkdir()
    tool.make(folder)
    root = ConfinedRoot(os.fsencode(folder), Access.READ_WRITE)
    program = os.fsencode(str(shutil.which(name)))
    entries = [ViewEntry(program, ViewEntryKind.READ, "the tool")]

    def start() -> Wall:
        slot, kept = tmp_path / "name/0", tmp_path / "name/kept"
        return Wall(slot, home, [root], entries=entries[program.startswith(b"/usr/") :], kept=kept)

    with start() as first:
        run(first, home, folder, tool.install)
        assert run(first, home, folder, "hello-kept") == "hello\n"
    with start() as second:
        assert run(second, home, folder, "hello-kept") == "hello\n"
        run(second, home, folder, tool.again)
        assert run(second, home, folder, "hello-kept") == "hello\n"
    assert sorted(path.name for path in home.rglob("*")) == [".npm-global", "lib"]
