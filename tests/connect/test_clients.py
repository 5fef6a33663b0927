"""Every client that `rootsd connect` knows: where its settings are, and what its entry is.

The expected texts are in `golden/`, one file per client. To change one, delete the file, run this
test once, and review the new file.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from rootsd.agents.forms.client import ClientTrial, ToolFile
from rootsd.agents.forms.place import HomeVariable, Platform, SettingsPlace
from rootsd.connect.base import ClientEnvironment
from rootsd.connect.edits import AddedEntry, add_entry, all_servers
from rootsd.connect.registry import all_clients
from rootsd.connect.servers import list_servers
from rootsd.sync.targets import TARGETS
from support.agent_programs import PROGRAMS
from support.client_home import MCP_CLIENTS, ROOTSD, client_named

GOLDEN = Path(__file__).parent / "golden"
NAMES = MCP_CLIENTS
HOME = Path("/home/ann")


def place(name: str, platform: Platform) -> str:
    environment = ClientEnvironment(HOME, {}, platform)
    return str(client_named(name).settings(environment))


@pytest.mark.parametrize("name", TARGETS)
def test_lists_are_in_the_home_that_a_variable_names(name: str) -> None:
    for variable in client_named(name).facts.places[0].variables:
        if variable.name == "XDG_CONFIG_HOME":  # the lists of opencode are not below it
            continue
        moved = {variable.name: "/second"}
        settings = client_named(name).settings(ClientEnvironment(HOME, moved, Platform.LINUX))
        lists = TARGETS[name].settings_file(str(HOME), moved)
        assert (settings.parents[-2], lists.split("/")[1]) == (Path("/second"), "second")


@pytest.mark.parametrize("name", NAMES)
def test_a_client_is_as_it_was_described(name: str) -> None:
    client = client_named(name)
    tools = client.facts.tools
    extra = tools.members if tools and tools.where is ToolFile.ENTRY else {}
    new, changes = add_entry(client, client.facts.language.new_file, (ROOTSD, "bridge"), extra, {})
    described = (
        f"linux: {place(name, Platform.LINUX)}\nmacos: {place(name, Platform.MACOS)}\n"
        f"trial: {client.facts.trial}\n--- new file, with the permission for tools\n{new}"
        f"--- to paste\n{client.snippet(client.facts.form.entry((ROOTSD, 'bridge'), {}, {}))}\n"
    )
    file = GOLDEN / f"{name}.txt"
    if not file.exists():
        file.write_text(described)
        pytest.fail(f"{file} is new: review it, and run this test again")
    assert described == file.read_text(), (
        f"to accept this, delete {file}, run this test, and review the file"
    )
    [added] = changes
    assert isinstance(added, AddedEntry)
    assert client.remove(new, added.made) == client.facts.language.new_file
    assert list_servers(client.facts.form, all_servers(client, new)) == []


def test_golden_files_are_those_of_clients() -> None:
    assert sorted(path.stem for path in GOLDEN.glob("*.txt")) == NAMES


def test_clients_that_the_tests_run_are_the_tried_ones() -> None:
    run = {program.name for program in PROGRAMS.values() if program.speaks_mcp}
    tried = {
        name for name, client in all_clients().items() if client.facts.trial is ClientTrial.TRIED
    }
    assert tried == {"claude-code" if name == "claude" else name for name in run}


def test_the_first_place_that_exists_is_used(tmp_path: Path) -> None:
    environment = ClientEnvironment(tmp_path, {}, Platform.LINUX)
    other = tmp_path / ".config" / "opencode" / "opencode.jsonc"
    other.parent.mkdir(parents=True)
    other.touch()
    assert client_named("opencode").settings(environment) == other


def test_a_client_is_found_by_its_program_its_settings_or_its_folder(tmp_path: Path) -> None:
    environment = ClientEnvironment(tmp_path, {"PATH": str(tmp_path / "bin")}, Platform.LINUX)
    assert not any(client.is_found(environment) for client in all_clients().values())
    (tmp_path / ".claude.json").touch()
    (tmp_path / ".codex").mkdir()
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "qwen"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    found = {name for name, client in all_clients().items() if client.is_found(environment)}
    assert found == {"claude-code", "codex", "qwen"}


def test_an_empty_override_and_place_fall_back_to_the_home_folder() -> None:
    place = SettingsPlace("a", variables=(HomeVariable("X", "b"),))
    assert place.locate(str(HOME), {"X": ""}, Platform.MACOS) == f"{HOME}/a"


@pytest.mark.parametrize(
    ("name", "variables", "linux", "macos"),
    [
        ("vscode", {"XDG_CONFIG_HOME": "/x"}, "/x/Code/User/mcp.json", ""),
        ("vscodium", {"XDG_CONFIG_HOME": "/x"}, "/x/VSCodium/User/mcp.json", ""),
        ("zed", {"XDG_CONFIG_HOME": "/x"}, "/x/zed/settings.json", ""),
        (
            "claude-desktop", {"XDG_CONFIG_HOME": "/x"},
            "/x/Claude/claude_desktop_config.json", "",
        ),
        ("gemini", {"GEMINI_CLI_HOME": "/x"}, "/x/.gemini/settings.json", "same"),
        ("qwen", {"QWEN_HOME": "/x"}, "/x/settings.json", "same"),
        ("continue", {"CONTINUE_GLOBAL_DIR": "/x"}, "/x/config.yaml", "same"),
        ("cline", {"CLINE_DIR": "/x"}, "/x/data/settings/cline_mcp_settings.json", "same"),
        (
            "cline", {"CLINE_DIR": "/y", "CLINE_DATA_DIR": "/x"},
            "/x/settings/cline_mcp_settings.json", "same",
        ),
        (
            "cline", {"CLINE_DATA_DIR": "/y", "CLINE_MCP_SETTINGS_PATH": "/x/mcp.json"},
            "/x/mcp.json", "same",
        ),
        ("codex", {"CODEX_HOME": "/x"}, "/x/config.toml", "same"),
        ("opencode", {"XDG_CONFIG_HOME": "/x"}, "/x/opencode/opencode.json", "same"),
    ],
)  # fmt: skip
def test_a_variable_moves_the_settings_as_the_client_does(
    name: str, variables: dict[str, str], linux: str, macos: str
) -> None:
    client, usual = client_named(name), place(name, Platform.MACOS)
    on_linux = ClientEnvironment(HOME, variables, Platform.LINUX)
    on_macos = ClientEnvironment(HOME, variables, Platform.MACOS)
    assert str(client.settings(on_linux)) == linux
    assert str(client.settings(on_macos)) == (linux if macos == "same" else usual)
    home = on_linux.home_of(client.facts)
    assert {name: value for name, value in home.variables.items() if value} == variables
    assert str(client.settings(ClientEnvironment(HOME, {}, Platform.LINUX).in_home(home))) == linux
    relative = {each: value.removeprefix("/") for each, value in variables.items()}
    in_folder = ClientEnvironment(HOME, relative, Platform.LINUX)
    assert str(client.settings(in_folder)) == place(name, Platform.LINUX)


@pytest.mark.parametrize(
    ("name", "variable", "below"),
    [("codex", "CODEX_HOME", "worktrees"), ("cline", "CLINE_DIR", "worktrees")],
)
def test_a_variable_moves_the_folder_of_worktrees(name: str, variable: str, below: str) -> None:
    worktrees = client_named(name).facts.worktrees
    assert worktrees is not None
    moved = ClientEnvironment(HOME, {variable: "/x"}, Platform.LINUX)
    usual = ClientEnvironment(HOME, {variable: "x"}, Platform.LINUX)
    assert str(moved.locate(worktrees)) == f"/x/{below}"
    assert str(usual.locate(worktrees)) == str(HOME / f".{name}" / below)


def test_settings_that_are_only_named_are_found(tmp_path: Path) -> None:
    environment = ClientEnvironment(tmp_path, {}, Platform.LINUX)

    def named() -> list[str]:
        return [
            sentence
            for client in all_clients().values()
            for sentence in environment.others(client.facts)
        ]

    assert named() == []
    profile = tmp_path / ".config/Code/User/profiles/-3c8ff5b"
    for folder in (
        profile,
        tmp_path / ".var/app/com.visualstudio.code/config",
        tmp_path / ".var/app/com.vscodium.codium/config",
        tmp_path / ".var/app/dev.zed.Zed/config",
    ):
        folder.mkdir(parents=True)  # fmt: skip
    (profile.parent / "a-file").touch()
    assert [sentence.partition(" ha")[0] for sentence in named()] == [
        "VS Code", "VS Code from Flatpak", "VSCodium from Flatpak", "Zed from Flatpak",
    ]  # fmt: skip
    assert (
        f"{profile}; rootsd does not change it (try: code --profile NAME --add-mcp" in named()[0]
    )
    words = shlex.split(named()[0].partition("(try: ")[2].removesuffix(")"))
    assert json.loads(words[-1])["args"] == ["bridge"]
