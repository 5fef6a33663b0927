"""An empty home, and a control socket that publishes roots to `rootsd confine`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from rootsd.core.access import Access
from rootsd.core.mount_plan import ConfinedRoot
from support.git_project import Project
from support.roots_publisher import RootsPublisher


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("ROOTSD_DIR", str(tmp_path / "rootsd"))
    return home


@pytest.fixture
def publisher(tmp_path: Path, home: Path) -> Iterator[RootsPublisher]:
    with RootsPublisher(tmp_path / "rootsd") as publisher:
        yield publisher


@pytest.fixture
def root(tmp_path: Path, publisher: RootsPublisher) -> ConfinedRoot:
    """A folder with a file, which is published."""
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "file").write_text("text\n")
    root = ConfinedRoot(os.fsencode(tmp_path / "root"), Access.READ_WRITE)
    publisher.publish(root)
    return root


@pytest.fixture
def project(monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    with TemporaryDirectory(prefix="w") as short:
        home = Path(short)
        monkeypatch.setenv("HOME", short)
        monkeypatch.setenv("ROOTSD_DIR", f"{short}/rootsd")
        for name in ("SSH_AUTH_SOCK", "GNUPGHOME", "DOCKER_HOST", "GH_TOKEN", "GITHUB_TOKEN"):
            monkeypatch.delenv(name, raising=False)
        with RootsPublisher(home / "rootsd") as publisher:
            project = Project(home, publisher)
            project.approve()
            yield project
