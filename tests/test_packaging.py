"""The contents of the wheel and of the source archive."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import rootsd
from rootsd.cli.man_page import render_man_page
from rootsd.service.shell_scripts import script

TOP = Path(__file__).parent.parent
TEMPLATES = ("systemd", "launchd", "completions", "shell")
# The folders below the prefix where man and the shells look.
SHARED = {
    "man/man1/rootsd.1": render_man_page(),
    "bash-completion/completions/rootsd": script("completion", "bash"),
    "zsh/site-functions/_rootsd": script("completion", "zsh"),
    "fish/vendor_completions.d/rootsd.fish": script("completion", "fish"),
}


def _built(target: str, folder: Path, source: Path) -> Path:
    run = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", folder],
        cwd=source,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout
    (archive,) = folder.glob("rootsd-*")
    return archive


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source archive."""
    return _built("sdist", tmp_path_factory.mktemp("sdist"), TOP)


@pytest.fixture(scope="module")
def wheel(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel as built from the source archive, as a packager does."""
    unpacked = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(archive) as tar:
        for member in tar.getmembers():
            content = tar.extractfile(member)
            assert content is not None, member.name
            file = unpacked / member.name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content.read())
    (source,) = unpacked.iterdir()
    return _built("wheel", tmp_path_factory.mktemp("wheel"), source)


def test_wheel_holds_the_package_and_the_service_files(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as zipped:
        names = set(zipped.namelist())
    modules = {
        str(path.relative_to(TOP / "daemon")) for path in (TOP / "daemon").rglob("*.py")
    } | {"rootsd/py.typed"}
    info = f"rootsd-{rootsd.__version__}"
    templates = {
        f"rootsd/share/{path.relative_to(top)}"
        for top, folder in (*((TOP, name) for name in TEMPLATES), (TOP / "docs", "schema"))
        for path in (top / folder).rglob("*")
        if path.is_file()
    }
    shared = {f"rootsd-{rootsd.__version__}.data/data/share/{name}" for name in SHARED}
    shared |= {f"rootsd-{rootsd.__version__}.data/scripts/rootsd"}
    assert modules | templates | shared == {name for name in names if ".dist-info/" not in name}
    assert f"{info}.dist-info/licenses/LICENSE" in names


@pytest.mark.parametrize(("name", "text"), SHARED.items(), ids=SHARED)
def test_wheel_has_the_current_man_page_and_completions(wheel: Path, name: str, text: str) -> None:
    with zipfile.ZipFile(wheel) as zipped:
        kept = zipped.read(f"rootsd-{rootsd.__version__}.data/data/share/{name}")
    assert kept.decode() == text


_IMPORTED_BY_THE_BUILD = """
import sys
before = set(sys.modules)
from rootsd.cli.man_page import render_man_page
render_man_page()
files = (getattr(sys.modules[name], "__file__", None) for name in set(sys.modules) - before)
print(*{
    file.split("/site-packages/")[1].partition("/")[0].removesuffix(".py")
    for file in files if file and "/site-packages/" in file
})
"""


def test_the_build_imports_only_what_it_requires() -> None:
    run = subprocess.run(
        [sys.executable, "-c", _IMPORTED_BY_THE_BUILD], capture_output=True, text=True, check=True
    )
    system = tomllib.loads((TOP / "pyproject.toml").read_text())["build-system"]
    required = {re.split(r"[.>]", line)[0] for line in system["requires"]}
    imported = set(run.stdout.split()) - {"typing_extensions"}  # msgspec does without it
    assert "click" in imported
    assert imported <= required


def test_wheel_has_the_command_and_the_version(wheel: Path) -> None:
    info = f"rootsd-{rootsd.__version__}.dist-info"
    with zipfile.ZipFile(wheel) as zipped:
        command = zipped.read(f"rootsd-{rootsd.__version__}.data/scripts/rootsd").decode()
        metadata = zipped.read(f"{info}/METADATA").decode()
    # An installer replaces a first line with `python`, and would drop the flag.
    assert command == (TOP / "bin/rootsd").read_text()
    assert command.startswith("#!/bin/sh\n")
    assert f"\nVersion: {rootsd.__version__}\n" in metadata
    assert "\nRequires-Python: >=3.11\n" in metadata


def test_an_index_shows_the_readme_with_addresses_and_pictures(wheel: Path) -> None:
    info = f"rootsd-{rootsd.__version__}.dist-info"
    with zipfile.ZipFile(wheel) as zipped:
        readme = zipped.read(f"{info}/METADATA").decode().partition("\n\n")[2]
    targets = [
        *re.findall(r"\]\(([^)]*)\)", readme),
        *re.findall(r'(?:src|srcset)="([^"]*)"', readme),
    ]
    assert len(targets) > 10
    assert [target for target in targets if not re.match("https?:|#", target)] == []
    assert f"/blob/v{rootsd.__version__}/docs/guide/start.md)" in readme
    assert "mcp-name: " in readme


def test_source_archive_can_be_tested(archive: Path) -> None:
    with tarfile.open(archive) as tar:
        top_level = {name.split("/")[1] for name in tar.getnames()}
    assert {"Makefile", "requirements", "tests", "tools", "daemon", "LICENSE"} <= top_level
    assert {"systemd", "launchd", "completions", "shell", "man", "packaging"} <= top_level
    assert {".ci", ".github", "CONTRIBUTING.md", "flake.nix", "server.json"} <= top_level
    assert ".venv" not in top_level


def test_the_debian_package_has_this_version_and_includes_the_sources_of_the_wheel() -> None:
    newest = (TOP / "packaging/debian/changelog").read_text().splitlines()[0]
    assert newest.startswith(f"rootsd ({rootsd.__version__}) ")
    script = (TOP / "packaging/build_deb.sh").read_text()
    (copied,) = re.findall(r"cp -R (LICENSE .*?) \"", script.replace("\\\n", " "))
    settings = tomllib.loads((TOP / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    wheel = settings["targets"]["wheel"]
    needed = {*wheel["force-include"], *wheel["packages"], *wheel["shared-scripts"]}
    needed |= {settings["hooks"]["custom"]["path"]}
    assert {name.partition("/")[0] for name in needed} <= set(copied.split())
