"""The command path that stays valid after an upgrade."""

from __future__ import annotations

from pathlib import Path

import pytest

from rootsd.processes.command_path import NoStableCommand, stable_command


def put(environment: Path) -> Path:
    """An environment with the command in it; returns the command."""
    script = environment / "bin" / "rootsd"
    script.parent.mkdir(parents=True, exist_ok=True)
    script.touch()
    return script


def link(name: Path, target: Path) -> Path:
    name.parent.mkdir(parents=True, exist_ok=True)
    name.symlink_to(target)
    return name


def found(started_as: str, environment: Path, home: Path, *search: Path) -> Path:
    return stable_command(
        started_as,
        scripts=environment / "bin",
        environment=environment,
        home=home,
        search=":".join(map(str, search)),
    )


@pytest.mark.parametrize(
    "tool", [".local/share/pipx/venvs/rootsd", ".local/share/uv/tools/rootsd"]
)
def test_the_link_of_pipx_and_uv_is_used(tmp_path: Path, tool: str) -> None:
    environment = tmp_path / tool
    script = put(environment)
    name = link(tmp_path / ".local/bin/rootsd", script)
    for started_as in (str(name), str(script), "rootsd", "/x/rootsd/__main__.py"):
        assert found(started_as, environment, tmp_path, script.parent) == name


def test_the_first_link_on_the_path_is_used(tmp_path: Path) -> None:
    environment = tmp_path / "environment"
    script = put(environment)
    names = [link(tmp_path / folder / "rootsd", script) for folder in ("one", "two")]
    folders = [Path("relative"), script.parent, names[1].parent, names[0].parent]
    assert found(str(script), environment, tmp_path, *folders) == names[1]


def test_for_homebrew_the_link_without_a_version_is_used(tmp_path: Path) -> None:
    libexec = tmp_path / "homebrew/Cellar/rootsd/0.2.0/libexec"
    script = put(libexec)
    name = link(tmp_path / "homebrew/bin/rootsd", script)
    assert found(str(script), libexec, tmp_path / "home") == name


def test_in_a_plain_environment_the_called_path_is_used_and_no_other_rootsd(
    tmp_path: Path,
) -> None:
    environment = tmp_path / "real"
    script = put(environment)
    name = link(tmp_path / "name", environment) / "bin" / "rootsd"
    assert found(str(name), environment, tmp_path) == name
    other = put(tmp_path / "other")
    link(tmp_path / ".local/bin/rootsd", other)
    assert found(str(script), environment, tmp_path, other.parent) == script


def test_a_command_in_a_cache_or_that_is_not_installed_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NoStableCommand, match="not installed"):
        found("python", tmp_path, tmp_path)
    for cache in (".cache/uv/archive-v0/x", "Library/Caches/uv/x", ".cache/pipx/y"):
        script = put(tmp_path / cache)
        with pytest.raises(NoStableCommand, match="cache") as caught:
            found(str(script), tmp_path / cache, tmp_path)
        assert "install" in caught.value.remedy
