"""A stranger's first ten minutes, from the wheel alone: the commands of the docs, as printed.

The machine has an empty home, Python, git, and no network; `support.stranger` makes it. They
take too long for `make test`; the stage "a stranger's first ten minutes" of `.ci/run` runs them.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from support.documents import CLONED_ADDRESS, ORIGIN, blocks, fits, make_sources
from support.pipx_install import built_wheel
from support.polling import until
from support.stranger import EXTRA, HOME, WHEELS, Stranger
from support.wheelhouse import run_time_packages, write_wheels

pytestmark = [
    pytest.mark.needs("linux"), pytest.mark.needs("bubblewrap"),
    pytest.mark.needs("user-namespaces"),
]  # fmt: skip

TOP = Path(__file__).parent.parent.parent.parent
SUPPORT = TOP / "tests" / "support"
README, PACKAGES = TOP / "README.md", TOP / "packaging" / "README.md"
# The pages that lead from an installation to the first root.
FIRST_PAGES = (README, *TOP.glob("docs/guide/start.md"))
GEMINI = "~/.gemini/settings.json"
CLIENT = f"~/.local/lib/rootsd/bin/python {EXTRA}/settings_client.py {GEMINI}"
WITH_SYSTEMD = (
    "--dir", "/run/systemd/system", "--dir", "/run/user/1000/systemd",
    "--ro-bind", str(SUPPORT / "fake_systemctl.sh"), "/usr/bin/systemctl",
)  # fmt: skip


def commands(page: Path) -> list[tuple[str, list[str]]]:
    """Return the commands of the page's console blocks, with the output that the page shows."""
    return [command for block in blocks(page, "console") for command in block.commands]


def commands_after(first_words: str) -> list[str]:
    """Return the commands of the one block in the docs that begins with these words."""
    (block,) = (
        block
        for page in (TOP / "docs").rglob("*.md")
        for block in blocks(page, "console")
        if block.commands[0][0].startswith(first_words)
    )
    return [command for command, _ in block.commands]


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout, and those of its dependencies."""
    folder = tmp_path_factory.mktemp("wheels")
    write_wheels(folder, run_time_packages())
    shutil.copy(built_wheel(tmp_path_factory.mktemp("built")), folder)
    return folder


@pytest.fixture(scope="module")
def extra(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("more") / "extra"
    folder.mkdir()
    shutil.copy(SUPPORT / "settings_client.py", folder)
    return folder


@pytest.fixture(scope="module")
def installed(wheels: Path, extra: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which the stranger has installed the wheel, and done nothing else."""
    home = tmp_path_factory.mktemp("installed")
    with Stranger(home, wheels, extra) as stranger:
        stranger.succeeds(f"cd {WHEELS}")  # where they have downloaded it
        for command, shown in commands(PACKAGES):
            done = stranger.succeeds(command)
            assert fits(shown, done.lines), f"$ {command}\n{done.text}"
    return home


class Machines:
    """Makes machines on which rootsd is installed, with the projects of the README."""

    def __init__(self, installed: Path, wheels: Path, extra: Path, folder: Path) -> None:
        self._installed, self._wheels, self._extra = installed, wheels, extra
        self._folder = folder
        self._running: list[Stranger] = []

    def start(self, more: Sequence[str] = (), **variables: str) -> Stranger:
        home = self._folder / "home"
        subprocess.run(["cp", "-a", self._installed, home], check=True)
        make_sources(home)
        (home / ".gitconfig").write_text(
            f'[url "{HOME}/{ORIGIN}"]\n\tinsteadOf = {CLONED_ADDRESS}\n'
            "[user]\n\tname = you\n\temail = you@example.org\n"
        )
        stranger = Stranger(home, self._wheels, self._extra, more, **variables)
        self._running.append(stranger.__enter__())
        return stranger

    def stop(self) -> None:
        for stranger in self._running:
            stranger.__exit__(None, None, None)


@pytest.fixture
def machines(installed: Path, wheels: Path, extra: Path, tmp_path: Path) -> Iterator[Machines]:
    machines = Machines(installed, wheels, extra, tmp_path)
    yield machines
    machines.stop()


@pytest.fixture
def stranger(machines: Machines) -> Stranger:
    return machines.start()


def roots(stranger: Stranger) -> list[str]:
    """Return the names of the roots that the connected client gets."""
    told = stranger.succeeds(CLIENT).lines
    return [line.removeprefix("- ").partition(":")[0] for line in told[1:]]


def test_the_machine_has_nothing_but_python_and_git(stranger: Stranger) -> None:
    assert stranger.types(f"ls {TOP}").status == 2
    for program in ("make", "curl", "uv", "pipx", "systemctl", "sudo"):
        assert stranger.types(f"command -v {program}").status == 1, program
    packages = stranger.succeeds("~/.local/lib/rootsd/bin/pip list --format freeze").text
    assert "mcp==" in packages
    assert re.search(r"^(pytest|mypy|ruff|rootsd @)", packages, re.MULTILINE) is None
    reach = "import socket; socket.create_connection(('192.0.2.1', 80), 5)"
    assert stranger.types(f'python3 -c "{reach}" 2>&1 | grep -c unreachable').text == "1\n"
    # The controls: a status that is not 0, and the traceback, are noticed.
    with pytest.raises(AssertionError, match="ls: cannot access"):
        stranger.succeeds("ls /nowhere")
    with pytest.raises(AssertionError, match="Traceback"):
        stranger.types("python3 -c 'raise OSError'")


@pytest.mark.parametrize("page", FIRST_PAGES, ids=lambda page: page.stem)
def test_the_commands_of_a_page_print_what_it_shows(stranger: Stranger, page: Path) -> None:
    typed = 0
    for command, shown in commands(page):
        done = stranger.succeeds(command)
        assert fits(shown, done.lines), f"$ {command}\n{done.text}"
        typed += 1
    assert typed >= 4


def test_init_sets_up_everything_and_a_client_sees_the_first_root(stranger: Stranger) -> None:
    stranger.succeeds("mkdir ~/.gemini")
    told = stranger.succeeds(
        "rootsd init",
        ("Watch ~/src (2 repositories)?", "y"),
        ("Watch ~/elsewhere (1 repository)?", "n"),
        ("Complete rootsd's words in bash", "y"),
        ("Add rcd", "y"),
        ("Connect Gemini CLI, in ~/.gemini/settings.json?", "y"),
        ("May Gemini CLI", "n"),
    )
    assert "3 to decide: rootsd pending" in told.text
    assert "Any other MCP client runs: ~/.local/bin/rootsd bridge" in told.text
    assert "approved  api" in stranger.succeeds("rootsd approve api").text
    assert roots(stranger) == ["api"]
    assert "denied  api" in stranger.succeeds("rootsd deny api").text
    assert roots(stranger) == []
    stranger.succeeds("rootsd approve zero")
    shell = stranger.succeeds("bash -ic 'rcd zero && pwd; complete -p rootsd' 2>&1")
    assert "~/src/zero" in shell.lines
    assert shell.lines[-1].startswith("complete ")
    again = stranger.succeeds("rootsd init", ("Watch ~/elsewhere (1 repository)?", "n"))
    assert again.text.count("[Y/n]") == 1


def test_connect_asks_about_the_client_that_is_there(stranger: Stranger) -> None:
    stranger.succeeds("mkdir ~/.gemini")
    before = '{"theme": "dark"}'
    (stranger.home / ".gemini" / "settings.json").write_text(before)
    stranger.succeeds("rootsd up ~/src")
    stranger.succeeds("rootsd approve api")
    told = stranger.succeeds(
        "rootsd connect", ("Connect Gemini CLI", "y"), ("May Gemini CLI", "n")
    )
    assert "To take this back: rootsd disconnect gemini" in told.text
    settings = json.loads((stranger.home / ".gemini" / "settings.json").read_text())
    assert settings["mcpServers"]["rootsd"] == {
        "command": f"{HOME}/.local/bin/rootsd", "args": ["bridge"],
    }  # fmt: skip
    assert settings["theme"] == "dark"
    assert roots(stranger) == ["api"]
    assert "gemini" in stranger.succeeds("rootsd clients --no-check").text
    assert "0 errors" not in stranger.succeeds("rootsd doctor").text
    stranger.succeeds("rootsd disconnect gemini")
    assert (stranger.home / ".gemini" / "settings.json").read_text() == before


def test_without_systemd_the_service_is_refused_with_the_next_command(stranger: Stranger) -> None:
    stranger.succeeds("rootsd up ~/src")
    refused = stranger.types("rootsd service install")
    assert refused.status == 1
    assert "systemd does not run here" in refused.text
    assert refused.lines[-1] == "  try: rootsd up"
    stranger.succeeds("rootsd up")
    assert "rootsd up runs the daemon in the background" in stranger.succeeds("rootsd doctor").text


def test_the_service_is_installed_shown_and_removed_as_the_page_says(machines: Machines) -> None:
    stranger = machines.start(WITH_SYSTEMD)
    stranger.succeeds("rootsd up ~/src")
    stranger.succeeds("rootsd approve api")
    done = {
        command.split()[2]: stranger.succeeds(command).text
        for command in commands_after("rootsd service install")
    }
    assert "The service is installed in ~/.config/systemd/user." in done["install"]
    assert "projects  1 published" in done["install"]
    assert "active\tactive" in done["status"]
    assert "Decisions are kept in ~/.local/state/rootsd" in done["uninstall"]
    assert not (stranger.home / ".config" / "systemd").exists()


def test_denials_reach_the_access_lists_of_a_client_as_the_page_says(stranger: Stranger) -> None:
    stranger.succeeds("mkdir ~/.claude")
    stranger.succeeds("rootsd up ~/src")
    stranger.succeeds("rootsd deny zero")
    settings = stranger.home / ".claude" / "settings.json"

    def denied() -> bool:
        return settings.exists() and any(
            f"{HOME}/src/zero" in rule
            for rule in json.loads(settings.read_text())["permissions"]["deny"]
        )

    add, add_tag, add_focus, show, remove = commands_after("rootsd sync add")
    for command in (add, add_tag, add_focus):
        stranger.succeeds(command)
        assert until(denied), command  # the daemon writes the file in the background
    assert "claude-code" in stranger.succeeds(show).text
    stranger.succeeds(remove)
    assert not settings.exists()
    (connect,) = commands_after("rootsd connect claude-code --hook")
    stranger.succeeds(connect, ("May Claude Code", "n"))
    assert "rootsd hook" in settings.read_text()


def test_the_removal_leaves_nothing(stranger: Stranger) -> None:
    before = {path for path in stranger.home.rglob("*") if ".local/lib" not in str(path)}
    stranger.succeeds("rootsd up ~/src")
    down, remove, uninstall = commands_after("rootsd down")
    stranger.succeeds(down)
    stranger.succeeds(remove)
    assert stranger.types(uninstall).status == 127  # the wheel was installed without pipx
    after = {path for path in stranger.home.rglob("*") if ".local/lib" not in str(path)}
    left = {str(path.relative_to(stranger.home)) for path in after - before}
    assert left <= {".config", ".local/share", ".local/state"}
