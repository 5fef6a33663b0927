"""A real project is installed, tested, and built behind the wall: rootsd itself."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rootsd.core.access import Access
from rootsd.core.mount_plan import ConfinedRoot
from support.node_packages import TOP
from support.roots_publisher import RootsPublisher
from support.sizes import Sizes

pytestmark = [pytest.mark.needs("wall", "checkout", "make", "npm")]

_HANG_GUARD_S = 300
# This project lies in the folder in which pytest would make its temporary ones.
_PYTEST = f"PYTHONPATH=daemon {sys.executable} -m pytest -q -p no:cacheprovider --basetemp=/tmp/t"
_SMALL = {
    "make": "printf 'out: README.md\\n\\tcp README.md out\\n' > one.mk; make -f one.mk; cat out",
    "pytest": f"{_PYTEST} tests/core/test_debounce.py",
}
_LARGE = {
    **_SMALL,
    "pytest": f"{_PYTEST} tests/core/test_mount_plan.py tests/core/test_plan.py",
    "a wheel": f"{sys.executable} -m hatchling build -t wheel",
    "pip": "python3 -m venv v; v/bin/pip install -q uv; v/bin/pip install -q iniconfig",
    "uv": "v/bin/uv venv -q w; v/bin/uv pip install -q --python w/bin/python iniconfig",
    "npm": "mkdir n; cd n; npm init -y; npm i --no-audit --no-fund escalade; npm ls escalade",
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    home, project = tmp_path / "home", tmp_path / "home" / "src" / "rootsd"
    project.parent.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("ROOTSD_DIR", str(tmp_path / "dir"))
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    monkeypatch.setenv("UV_SYSTEM_CERTS", "true")  # as pip does; see the Makefile
    subprocess.run(["git", "clone", "-q", TOP, project], check=True)
    with RootsPublisher(tmp_path / "dir") as publisher:
        publisher.publish(ConfinedRoot(os.fsencode(project), Access.READ_WRITE))
        yield project


def test_a_project_is_installed_tested_and_built(project: Path, sizes: Sizes) -> None:
    steps = sizes.pick(test=_SMALL, check=_LARGE, soak=_LARGE)
    script = "\n".join(f"echo '== {name}'; ( {words}\n) || exit" for name, words in steps.items())
    done = subprocess.run(
        [sys.executable, "-m", "rootsd", "confine", "--", "sh", "-c", f"set -e\n{script}"],
        capture_output=True, text=True, check=False, cwd=project, timeout=_HANG_GUARD_S,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert [line[3:] for line in done.stdout.splitlines() if line.startswith("== ")] == [*steps]
    assert (project / "out").read_bytes() == (project / "README.md").read_bytes()
