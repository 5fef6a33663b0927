"""`make release` changes all places that name the version, and refuses what cannot be right."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from release import DEBIAN, ENTRY, FEATURE, MODULE, SHOWING, main

import rootsd

TOP = Path(__file__).parent.parent
NEXT = f"{int(rootsd.__version__.partition('.')[0]) + 1}.0.0"
FILES = ("CHANGELOG.md", "pyproject.toml", MODULE, ENTRY, FEATURE, DEBIAN, *SHOWING)


def _git(folder: Path, *words: str) -> str:
    run = subprocess.run(["git", "-C", folder, *words], capture_output=True, text=True, check=True)
    return run.stdout


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A repository with the files that a release changes, as they are now."""
    top = tmp_path / "clone"
    for name in FILES:
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(TOP / name, top / name)
    changelog = top / "CHANGELOG.md"
    changelog.write_text(re.sub(
        r"## Unreleased\n.*?(?=^## |\Z)", "## Unreleased\n\n- Something new.\n\n",
        changelog.read_text(), count=1, flags=re.DOTALL | re.MULTILINE,
    ))  # fmt: skip
    _git(tmp_path, "init", "-q", "clone")
    _git(top, "add", ".")
    _git(top, "commit", "-qm", "before")
    return top


def test_without_apply_a_release_prints_the_changes_and_makes_none(
    clone: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([NEXT], clone) == 0
    printed = capsys.readouterr().out
    for name in ("CHANGELOG.md", "daemon/rootsd/__init__.py", "server.json"):
        assert f"+++ b/{name}\n" in printed
    assert f'+__version__ = "{NEXT}"\n' in printed
    typed = [line.strip() for line in printed.splitlines()[-6:] if line.startswith("  ")]
    assert typed[:2] == [f"make release VERSION={NEXT} APPLY=1", f"git push origin HEAD v{NEXT}"]
    assert _git(clone, "status", "--porcelain") == _git(clone, "tag") == ""


def test_a_release_sets_all_versions_commits_and_tags(clone: Path) -> None:
    before = (clone / "packaging/debian/changelog").read_text()
    assert main([NEXT, "--apply"], clone) == 0
    assert f'__version__ = "{NEXT}"\n' in (clone / "daemon/rootsd/__init__.py").read_text()
    entry = json.loads((clone / "server.json").read_text())
    assert entry["version"] == entry["packages"][0]["version"] == NEXT
    debian = (clone / "packaging/debian/changelog").read_text()
    assert debian.startswith(f"rootsd ({NEXT}) unstable; ")
    assert debian.endswith(f"\n\n{before}"), "the older entries stay"
    changelog = (clone / "CHANGELOG.md").read_text()
    heading = (
        rf"## Unreleased\n\n## {re.escape(NEXT)} \(\d{{4}}-\d\d-\d\d\)\n\n- Something new\.\n"
    )
    assert re.search(heading, changelog)
    assert _git(clone, "status", "--porcelain") == ""
    assert _git(clone, "describe", "--exact-match") == f"v{NEXT}\n"
    assert _git(clone, "log", "-1", "--format=%s") == f"release: set the version to {NEXT}\n"


def test_every_document_that_shows_the_version_shows_the_new_one(clone: Path) -> None:
    assert main([NEXT, "--apply"], clone) == 0
    for name in (FEATURE, *SHOWING):
        before, after = ((top / name).read_text() for top in (TOP, clone))
        assert NEXT in after
        assert rootsd.__version__ in before, "the control"
        assert after.count(NEXT) == before.count(rootsd.__version__)


def test_the_first_release_is_of_the_version_of_the_tree(clone: Path) -> None:
    first = rootsd.__version__
    assert main([first, "--apply"], clone) == 0
    assert (clone / DEBIAN).read_text().count(f"rootsd ({first})") == 1
    assert _git(clone, "describe", "--exact-match") == f"v{first}\n"


def test_a_release_for_another_repository_changes_its_address_everywhere(clone: Path) -> None:
    urls = tomllib.loads((clone / "pyproject.toml").read_text())["project"]["urls"]
    old = urls["Repository"]
    assert main([NEXT, "--apply", "--repository", "https://github.com/acme/roots"], clone) == 0
    assert all(old not in (clone / name).read_text() for name in FILES)
    entry = json.loads((clone / "server.json").read_text())
    assert entry["name"] == "io.github.acme/roots"
    assert entry["version"] == NEXT
    assert "<!-- mcp-name: io.github.acme/roots -->" in (clone / "README.md").read_text()
    assert _git(clone, "status", "--porcelain") == ""


@pytest.mark.parametrize(
    ("version", "reason"),
    [
        ("0.0.9", "is not newer than"),
        ("1.0", "is not a version like"),
        ("v1.0.0", "is not a version like"),
        ("1.01.0", "is not a version like"),
    ],
)
def test_a_version_that_is_no_newer_version_is_refused(
    clone: Path, version: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([version, "--apply"], clone) == 1
    assert reason in capsys.readouterr().err
    assert _git(clone, "log", "--format=%s") == "before\n"


@pytest.mark.parametrize("state", ["changed", "new", "staged"])
def test_a_dirty_tree_is_refused(
    clone: Path, state: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (clone / ("new.txt" if state == "new" else "README.md")).write_text("work in progress\n")
    if state == "staged":
        _git(clone, "add", "README.md")
    assert main([NEXT, "--apply"], clone) == 1
    assert "not committed" in capsys.readouterr().err
    assert _git(clone, "tag") == ""


def test_an_existing_tag_is_refused(clone: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _git(clone, "tag", f"v{NEXT}")
    assert main([NEXT, "--apply"], clone) == 1
    assert f"the tag v{NEXT} exists already" in capsys.readouterr().err
    assert _git(clone, "status", "--porcelain") == ""


def test_a_release_without_changes_for_users_is_refused(
    clone: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([NEXT, "--apply"], clone) == 0
    assert main([NEXT.replace(".0.0", ".0.1"), "--apply"], clone) == 1
    assert "nothing below Unreleased" in capsys.readouterr().err


def test_the_tag_of_a_release_names_its_version_and_has_its_notes(
    clone: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([NEXT, "--apply"], clone) == 0
    assert main(["--check", f"v{NEXT}"], clone) == 0
    capsys.readouterr()
    assert main(["--notes", f"v{NEXT}"], clone) == 0
    assert capsys.readouterr().out == "- Something new.\n"
    assert main(["--check", f"v{rootsd.__version__}"], clone) == 1


def test_an_address_that_is_no_repository_is_refused(clone: Path) -> None:
    assert main([NEXT, "--apply", "--repository", "git@example.org:x/y"], clone) == 1
    assert _git(clone, "tag") == ""
