"""A known agent gets its own state folders inside, with the files that it needs from outside."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

from rootsd.agents import files_with
from rootsd.agents.forms.state import OwnSandbox
from rootsd.core.access import Access
from rootsd.core.errors import RootsdError
from rootsd.core.mount_plan import ConfinedRoot, ViewEntryKind
from rootsd.wall.session.agent_state import PlannedAgent, plan_agent


class Sessions:
    """Sessions of a Claude Code of one name, in the projects of one user."""

    def __init__(self, folder: Path) -> None:
        self.home, self.state = folder / "home", folder / "state"
        self.claude = self.home / ".claude"
        self.claude.mkdir(parents=True)

    def project(self, name: str) -> ConfinedRoot:
        (self.home / name).mkdir(exist_ok=True)
        return ConfinedRoot(os.fsencode(self.home / name), Access.READ_WRITE)

    def plan(self, start: str, *more: str) -> PlannedAgent:
        roots = [self.project(name) for name in (start, *more)]
        os.chdir(self.home / start)
        planned = plan_agent(
            ("claude",), os.fsencode(self.home), os.fsencode(self.state), "claude", roots
        )
        assert planned is not None
        return planned

    def begin(self, start: str, *more: str) -> Path:
        """Prepare a session, and return what the agent has in place of `~/.claude`."""
        planned = self.plan(start, *more)
        assert planned.prepare() == []
        return Path(os.fsdecode(planned.folders[0].own))


OUR_LINES = {
    "default_permissions": "rootsd-wall",
    "permissions": {
        "rootsd-wall": {
            "filesystem": {":root": "write"},
            "network": {"enabled": False},
            "description": "The wall limits files. Commands have no network unless you allow it.",
        }
    },
}


def plan_codex(
    sessions: Sessions, program: str = "codex", sandbox: OwnSandbox = OwnSandbox.OFF
) -> PlannedAgent:
    home, state = os.fsencode(sessions.home), os.fsencode(sessions.state)
    planned = plan_agent((program,), home, state, "c", [], sandbox)
    assert planned is not None
    return planned


def begin_codex(sessions: Sessions, outside: bytes | None = None, program: str = "codex") -> Path:
    """Begin a session, and return its settings. Before it, write `outside` as the person's."""
    if outside is not None:
        (folder := sessions.home / ".codex").mkdir()
        (folder / "config.toml").write_bytes(outside)
    planned = plan_codex(sessions, program)
    assert len(planned.prepare()) == 1
    return Path(os.fsdecode(planned.folders[0].own), "config.toml")


@pytest.fixture
def sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sessions:
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    monkeypatch.chdir(tmp_path)
    return Sessions(tmp_path)


def test_another_program_is_not_an_agent(tmp_path: Path) -> None:
    for word in ("bash", "no such agent", "profile", "", "__init__"):
        assert plan_agent((word,), b"/home", os.fsencode(tmp_path), "x", []) is None


def test_files_that_it_loads_are_read_only_and_planted_ones_are_removed(
    sessions: Sessions,
) -> None:
    (sessions.claude / "settings.json").write_text("{}")
    own = sessions.begin("api")
    assert (own / "settings.json").is_file()
    (own / "hooks").mkdir()
    (own / "hooks" / "run").write_text("planted")
    (own / "CLAUDE.md").write_text("planted")
    (own / "statusline.sh").write_text("planted")
    (own / "projects").mkdir()
    sessions.begin("api")
    assert {each.name for each in own.iterdir()} == {"settings.json", "projects"}
    reads = {
        entry.path
        for entry in sessions.plan("api").entries
        if entry.kind is ViewEntryKind.READ and entry.path.startswith(os.fsencode(sessions.home))
    }
    assert reads == {os.fsencode(sessions.claude / "settings.json")}


def test_a_link_left_by_an_agent_is_not_followed(sessions: Sessions, tmp_path: Path) -> None:
    for name in ("settings.json", "CLAUDE.md"):
        (sessions.claude / name).write_text("{}")
    (sessions.claude / "skills").mkdir()
    (sessions.home / ".claude.json").write_text('{"theme": "dark"}')
    (sessions.claude / ".credentials.json").write_text("secret")
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "file").write_text("kept")
    own = sessions.begin("api")
    for name in ("settings.json", "CLAUDE.md", ".claude.json", ".credentials.json"):
        (own / name).unlink()
        (own / name).symlink_to(victim / "file")
    (own / "skills").rmdir()
    (own / "skills").symlink_to(victim)
    (own / "hooks").symlink_to(victim)
    (own / ".rootsd-new").symlink_to(victim / "file")
    (sessions.home / ".claude.json").write_text('{"theme": "light"}')
    sessions.begin("api")
    assert [each.name for each in victim.iterdir()] == ["file"]
    assert (victim / "file").read_text() == "kept"
    assert not [each for each in own.iterdir() if each.is_symlink()]
    assert json.loads((own / ".claude.json").read_text()) == {"theme": "light"}


def test_history_stays_with_the_project_and_the_name(sessions: Sessions) -> None:
    (sessions.begin("api") / "history.jsonl").write_text("about api")
    assert not (sessions.begin("web") / "history.jsonl").exists()
    assert (sessions.begin("api", "web") / "history.jsonl").read_text() == "about api"
    sessions.state = sessions.state.with_name("other-name")
    assert not (sessions.begin("api") / "history.jsonl").exists()


def test_settings_name_only_the_projects_that_are_visible(sessions: Sessions) -> None:
    api, secret = sessions.home / "api", sessions.home / "secret"
    outside = {
        "theme": "dark",
        "projects": {str(api): {"n": 1}, str(secret): {"n": 2}, str(api / "x"): {"n": 3}},
        "githubRepoPaths": {"ann/secret": [str(secret)]},
    }
    (sessions.home / ".claude.json").write_text(json.dumps(outside))
    own = sessions.begin("api")
    copied = json.loads((own / ".claude.json").read_text())
    assert copied == {"theme": "dark", "projects": {str(api): {"n": 1}, str(api / "x"): {"n": 3}}}


def test_a_copy_is_renewed_only_after_a_change_outside(sessions: Sessions) -> None:
    outside = sessions.home / ".claude.json"
    outside.write_text('{"n": 1}')
    own = sessions.begin("api")
    (own / ".claude.json").write_text('{"n": 2}')
    os.utime(own / ".claude.json", (2**33, 2**33))  # a forged time makes no difference
    sessions.begin("api")
    assert (own / ".claude.json").read_text() == '{"n": 2}'
    outside.write_text('{"n": 30}')
    sessions.begin("api")
    assert json.loads((own / ".claude.json").read_text()) == {"n": 30}


def test_a_login_serves_all_projects_of_the_name(sessions: Sessions) -> None:
    login = ".credentials.json"
    (sessions.claude / login).write_text("from outside")
    assert (sessions.begin("api") / login).read_text() == "from outside"
    (sessions.begin("api") / login).write_text("refreshed inside")
    assert (sessions.begin("web") / login).read_text() == "refreshed inside"
    (sessions.claude / login).write_text("anew from outside")
    assert (sessions.begin("web") / login).read_text() == "anew from outside"
    assert (sessions.begin("api") / login).read_text() == "anew from outside"
    assert (sessions.claude / login).read_text() == "anew from outside"


@pytest.mark.parametrize("above", ["", "..", "settings.json", ".credentials.json"])
def test_nothing_is_copied_from_a_denied_folder(sessions: Sessions, above: str) -> None:
    (sessions.claude / ".credentials.json").write_text("secret")
    (sessions.claude.parent / ".claude.json").write_text("{}")
    planned = sessions.plan("api")
    denied = frozenset({os.fsencode((sessions.claude / above).resolve())})
    planned._replace(denied=denied).prepare()
    own = Path(os.fsdecode(planned.folders[0].own))
    assert (own / ".credentials.json").exists() is (above == "settings.json")
    planned.prepare()
    assert (own / ".credentials.json").exists(), "the control: nothing is denied"


def test_a_sandbox_that_cannot_work_is_off_in_a_stand_in(sessions: Sessions) -> None:
    settings = sessions.claude / "settings.json"
    settings.write_text('{"sandbox": {"enabled": true, "n": 1}, "model": "x"}')
    planned = sessions.plan("api")
    (note,) = planned.prepare()
    assert "sandbox" in note
    (entry,) = (each for each in planned.entries if each.path == os.fsencode(settings))
    assert entry.kind is ViewEntryKind.READ
    stand_in = Path(os.fsdecode(entry.target))
    assert json.loads(stand_in.read_text()) == {
        "sandbox": {"enabled": False, "n": 1},
        "model": "x",
    }
    assert not stand_in.is_relative_to(os.fsdecode(planned.folders[0].own))
    settings.write_text('{"sandbox": {"enabled": false}}')
    assert sessions.plan("api").changed == ()


def test_a_sandbox_that_can_work_is_left_alone(sessions: Sessions) -> None:
    for sandbox, count in ((OwnSandbox.OFF, 5), (OwnSandbox.ALLOWED, 1)):
        planned = plan_codex(sessions, sandbox=sandbox)
        assert len(planned.words(("codex",))) == count
        assert len(planned.prepare()) == (1 if sandbox is OwnSandbox.OFF else 0)


@pytest.mark.parametrize(
    "given",
    ["", "\ufeffmodel = 'x'\ndefault_permissions = ':workspace'\n[permissions.mine.x]\n[tui]\n"],
)
@pytest.mark.parametrize("program", ["codex", "codex-acp"])
def test_codex_starts_with_permissions_that_need_no_mounts(
    sessions: Sessions, given: str, program: str
) -> None:
    """An adapter takes no options, so the file has to say it."""
    own = begin_codex(sessions, given.encode() or None, program)
    assert tomllib.loads(own.read_text()) == {
        **({"model": "x", "tui": {}} if given else {}), **OUR_LINES,
    }  # fmt: skip
    _, *arguments, login = plan_codex(sessions, program).words((program, "login"))
    assert login == "login"
    assert arguments[::2] == (["-c"] * 2 if program == "codex" else [])
    assert tomllib.loads("\n".join(arguments[1::2])) == (OUR_LINES if arguments else {})


@pytest.mark.parametrize(
    ("given", "kept"),
    [("", {}), ("no JSON", {}), ("[]", {}), ('{"a": 1, "permissions": {"b": 2}}', {"a": 1})],
)
def test_an_adapter_of_codex_gets_our_lines_in_its_variable(
    sessions: Sessions, given: str, kept: dict[str, int]
) -> None:
    """It trusts each project, whose settings win over the file."""
    found = plan_codex(sessions, "codex-acp").variables({"CODEX_CONFIG": given})
    assert json.loads(found["CODEX_CONFIG"]) == {**kept, **OUR_LINES}
    for program, sandbox in (("codex", OwnSandbox.OFF), ("codex-acp", OwnSandbox.ALLOWED)):
        assert "CODEX_CONFIG" not in plan_codex(sessions, program, sandbox).variables({})


@pytest.mark.parametrize(
    "left",
    [
        "model = 'y'\ndefault_permissions = ':danger-full-access'\n[tui]\n",
        "model = 'y'\ntui = {}\n[permissions.rootsd-wall]\nnetwork.enabled = true\n",
        "model = 'y'\ntui = {}\n'permissions'.\"rootsd\\u002dwall\".network.enabled = true\n",
    ],
)
def test_what_a_session_left_does_not_replace_our_lines(sessions: Sessions, left: str) -> None:
    own = begin_codex(sessions, b"model = 'x'\n")
    own.write_text(left)
    begin_codex(sessions)
    text = own.read_text()
    assert tomllib.loads(text) == {"model": "y", "tui": {}, **OUR_LINES}
    begin_codex(sessions)
    assert own.read_text() == text


@pytest.mark.parametrize(
    "left", ["", "no TOML", "a = " + "[" * 9999, "a = 1\na = 2\n", "a = 1\n" + "#" * (1 << 20)],
    ids=["empty", "text", "deep", "twice", "large"],
)  # fmt: skip
def test_a_copy_that_a_session_damaged_is_made_again(sessions: Sessions, left: str) -> None:
    own = begin_codex(sessions, b"model = 'x'\n")
    own.write_text(left)
    begin_codex(sessions)
    assert tomllib.loads(own.read_text()) == {"model": "x", **OUR_LINES}


def test_a_link_that_a_session_left_as_its_copy_is_not_read(sessions: Sessions) -> None:
    own = begin_codex(sessions, b"model = 'x'\n")
    (victim := sessions.home / "victim").write_text("secret = 1\n")
    own.unlink()
    own.symlink_to(victim)
    begin_codex(sessions)
    assert tomllib.loads(own.read_text()) == {"model": "x", **OUR_LINES}
    assert victim.read_text() == "secret = 1\n"


def test_our_lines_are_all_that_is_left_of_a_file_that_is_no_toml(sessions: Sessions) -> None:
    own = begin_codex(sessions, b"model = 'x'\n")
    (sessions.home / ".codex" / "config.toml").write_text("no TOML")
    _, note = plan_codex(sessions).prepare()
    assert "config.toml is not copied" in note
    assert tomllib.loads(own.read_text()) == OUR_LINES


def test_a_session_with_a_sandbox_of_its_own_gets_the_persons_lines(sessions: Sessions) -> None:
    mine = "default_permissions = 'mine'\n"
    own = begin_codex(sessions, mine.encode())
    plan_codex(sessions, sandbox=OwnSandbox.ALLOWED).prepare()
    assert own.read_text() == mine
    begin_codex(sessions)
    assert tomllib.loads(own.read_text()) == OUR_LINES


def test_a_newer_version_replaces_its_lines_by_others_of_the_same_length(
    sessions: Sessions,
) -> None:
    own = begin_codex(sessions, b"model = 'x'\n")
    planned = plan_codex(sessions)
    sandbox = planned.state.without_sandbox
    lines = sandbox.settings["config.toml"].replace("The wall", "Our wall")
    newer = sandbox._replace(settings={"config.toml": lines})
    planned._replace(state=planned.state._replace(without_sandbox=newer)).prepare()
    assert own.read_text() == f"{lines}model = 'x'\n"


def test_a_damaged_file_is_not_copied_and_named(sessions: Sessions) -> None:
    (sessions.home / ".claude.json").write_text("{")
    (note,) = sessions.plan("api").prepare()
    assert ".claude.json is not copied" in note


def test_a_variable_moves_the_state(
    sessions: Sessions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved = tmp_path / "moved"
    moved.mkdir()
    (moved / ".claude.json").write_text("{}")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(moved))
    planned = sessions.plan("api")
    (state,) = (entry for entry in planned.entries if entry.kind is ViewEntryKind.STATE)
    assert state.path == os.fsencode(moved)
    assert planned.variables({})["CLAUDE_CONFIG_DIR"] == str(moved)
    planned.prepare()
    assert Path(os.fsdecode(planned.folders[0].own), ".claude.json").read_text() == "{}\n"


@pytest.mark.parametrize("place", ["/", "..", "{home}"])
def test_a_variable_cannot_replace_the_home_folder(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", place.format(home=sessions.home))
    with pytest.raises(RootsdError, match="CLAUDE_CONFIG_DIR"):
        sessions.plan("api")


def test_the_program_from_npm_and_its_interpreter_are_shown(
    sessions: Sessions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "lib" / "node_modules" / "agent"
    package.mkdir(parents=True)
    script = package / "cli.js"
    script.write_text("#!/usr/bin/env -S node --flag\n")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "claude").symlink_to("../lib/node_modules/agent/cli.js")
    for executable in (script, tmp_path / "bin" / "node"):
        executable.touch()
        executable.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    kinds = {entry.path: entry.kind for entry in sessions.plan("api").entries}
    assert kinds[os.fsencode(tmp_path / "bin" / "claude")] is ViewEntryKind.LINK
    assert kinds[os.fsencode(tmp_path / "bin" / "node")] is ViewEntryKind.READ
    assert kinds[os.fsencode(tmp_path / "lib" / "node_modules")] is ViewEntryKind.READ


@pytest.mark.parametrize("agent", files_with("state"), ids=lambda agent: agent.LABEL)
def test_a_variable_moves_the_state_of_each_agent_that_has_one(
    agent: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in agent.state().folders:
        for name, below, _ in folder.place.variables:
            monkeypatch.setenv(name, f"/moved/{name}")
            planned = plan_agent((agent.PROGRAMS[0],), b"/home", bytes(tmp_path), "x", [])
            assert planned is not None
            assert f"/moved/{name}/{below}".rstrip("/").encode() in {
                each.outside for each in planned.folders
            }
            assert (planned.variables({}).get(name) == f"/moved/{name}") is not bool(below)
    assert {"QWEN_HOME", "CLINE_DIR"} <= {
        variable.name
        for each in files_with("state")
        for folder in each.state().folders
        for variable in folder.place.variables
    }
