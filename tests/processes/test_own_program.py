"""The programs that an installation for one user starts find its own packages first."""

from __future__ import annotations

import json
import site
import subprocess
import sys
from pathlib import Path

import pytest

from rootsd.processes import own_program

SHOW_PATH = "import json, sys; print(json.dumps(sys.path))"


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The packages of an installation for one user, with a module that prints where it looks."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    folder = tmp_path / "lib" / version / "site-packages"
    folder.mkdir(parents=True)
    (folder / "shows_path.py").write_text(SHOW_PATH)
    monkeypatch.setattr(own_program, "user_packages", lambda: str(folder))
    return str(folder)


def _looked_in(*command: str) -> list[str]:
    done = subprocess.run(command, check=True, capture_output=True)
    path: list[str] = json.loads(done.stdout)
    return path


def test_the_packages_of_the_user_come_before_those_of_the_system(packages: str) -> None:
    path = _looked_in(*own_program.module_command("shows_path"))
    of_system = [path.index(place) for place in site.getsitepackages() if place in path]
    assert of_system, "control: those of the system are there"
    assert path.index(packages) < min(of_system)


def test_the_command_starts_without_the_packages_of_the_system(packages: str) -> None:
    *python, file = own_program.own_command()
    assert file == f"{packages.partition('/lib/')[0]}/bin/rootsd"
    path = _looked_in(*python, "-c", SHOW_PATH)
    assert not set(site.getsitepackages()) & set(path), "bin/rootsd adds them, after its own"
