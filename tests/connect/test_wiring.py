"""Connect and disconnect edit files: a person loses nothing, and nothing of rootsd remains."""

from __future__ import annotations

import json
import os
import shutil
import stat
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from msgspec.structs import replace
from ruamel.yaml import YAML

from rootsd.connect.base import HookUse
from rootsd.connect.client_files import ToolAccess, Wired, Wiring
from rootsd.connect.edits import EntryTaken
from rootsd.connect.record import ConnectRecordDamaged
from rootsd.connect.servers import ServerId
from rootsd.connect.wiring import ClientWiring, Consent, WiringIncomplete
from rootsd.connect.wraps import ServerWrap, WrapMode
from rootsd.settings import settings_file
from rootsd.settings.errors import NotEditable
from rootsd.settings.settings_file import SettingsUnusable
from support.client_home import MCP_CLIENTS, ROOTSD, WISH, ClientHome, client_named

MINE = """\
{
  // mine
  "theme": "dark", // why
  "mcpServers": {
    "files": {
      "command": "npx", // c
      "args": ["-y", "x",],
      "env": {"K": "v"},
    },
    "web": {"url": "https://example.com"},
  },
}
""".replace("\n", "\r\n")
CODEX = (
    '# top\nmodel = "x" # c\n\n[mcp_servers.files]\ncommand = "npx" # run\nargs = ["a"]\n# end\n'
)
OPENCODE = '{"mcp": {"files": {"type": "local", "command": ["npx", "x"], "enabled": true}}}\n'
GOOSE = "# top\nextensions:\n  # dev\n  files:\n    cmd: npx\n    args: [x]\n"
CONTINUE = "name: mine\nmcpServers:\n- name: files\n  command: npx # c\n"
VIBE = (
    'active_model = "x"\n\n[[mcp_servers]]\nname = "files"\ncommand = "npx" # run\n'
    'args = ["a"]\n\n[[mcp_servers]]\nname = "web"\nurl = "https://example.com"\n'
)
CLINE = '{"mcpServers": {"old": {"command": "npx"}, "new": {"transport": {"command": "npx"}}}}'
FILES = ServerId("files")
WRAPPED = Wiring(ROOTSD, wraps={FILES: ServerWrap(WrapMode.CONFINED)})
TEXTS = {
    "gemini": MINE, "codex": CODEX, "opencode": OPENCODE, "claude-code": MINE, "goose": GOOSE,
    "continue": CONTINUE, "mistral-vibe": VIBE,
}  # fmt: skip


@pytest.fixture
def client_home(tmp_path: Path) -> ClientHome:
    return ClientHome(tmp_path)


def test_codex_waits_for_rootsd_before_its_first_request(client_home: ClientHome) -> None:
    file = client_home.settings("codex", CODEX)
    wiring = client_home.wiring("codex")
    wiring.connect(WISH, Consent.NONE)
    found = tomllib.loads(file.read_text())["mcp_servers"]
    assert found["rootsd"]["required"] is True
    assert "required" not in found["files"], "that one is not ours"
    assert wiring.state().wired is Wired.YES
    wiring.take_back(None)
    assert file.read_text() == CODEX


def entry_of(file: Path, *keys: str) -> object:
    found = json.loads(file.read_text())
    for key in keys:
        found = found[key]
    return found


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("wish", [WISH, WRAPPED], ids=["plain", "wrapped"])
def test_an_untouched_file_is_restored_byte_for_byte(
    client_home: ClientHome, name: str, wish: Wiring
) -> None:
    file = client_home.settings(name, TEXTS[name])
    file.chmod(0o640)
    wiring = client_home.wiring(name)
    wiring.connect(wish, Consent.NONE)
    assert (wiring.state().wired, wiring.state().ours.wraps) == (Wired.YES, wish.wraps)
    assert file.read_bytes() != TEXTS[name].encode()
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    wiring.take_back(None)
    assert file.read_bytes() == TEXTS[name].encode()
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert client_home.record.names() == []
    assert os.listdir(client_home.record.folder) == []


@pytest.mark.parametrize("name", TEXTS)
def test_later_changes_of_a_person_are_kept(client_home: ClientHome, name: str) -> None:
    text = TEXTS[name]
    file = client_home.settings(name, text)
    wiring = client_home.wiring(name)
    wiring.connect(WRAPPED, Consent.NONE)
    comment = "# new\n" if name in ("codex", "goose", "continue", "mistral-vibe") else "// new\n"
    file.write_bytes(comment.encode() + file.read_bytes())
    _, left = wiring.take_back(None)
    assert left == []
    assert file.read_bytes() == comment.encode() + text.encode()


@pytest.mark.parametrize("name", MCP_CLIENTS)
def test_the_entry_sets_the_variables_that_lead_to_the_daemon(
    client_home: ClientHome, name: str
) -> None:
    wiring = client_home.wiring(name)
    variables = {"ROOTSD_DIR": "/tmp/a b"}
    wiring.connect(Wiring(ROOTSD, variables=variables), Consent.NONE)
    assert wiring.state().ours.variables == variables
    assert "ROOTSD_DIR" in wiring.settings.read_text()
    wiring.connect(wiring.wish_again(WISH), Consent.NONE)
    assert wiring.state().ours.variables == {}
    assert "ROOTSD_DIR" not in wiring.settings.read_text()
    wiring.take_back(None)
    assert not wiring.settings.exists()


@pytest.mark.parametrize("is_reformatted", [False, True])
def test_a_new_file_and_its_folders_are_removed_again(
    client_home: ClientHome, is_reformatted: bool
) -> None:
    wiring = client_home.wiring("cline")
    wiring.connect(WISH, Consent.NONE)
    assert entry_of(wiring.settings, "mcpServers", "rootsd", "transport", "command") == ROOTSD
    assert wiring.settings.read_text().startswith('{\n  "mcpServers": {\n    "rootsd": {\n')
    assert stat.S_IMODE(wiring.settings.stat().st_mode) == 0o600
    if is_reformatted:
        values = json.loads(wiring.settings.read_text())
        wiring.settings.write_text(json.dumps(values, indent=4))
    wiring.take_back(None)
    assert os.listdir(client_home.path) == []


def test_a_new_file_with_later_changes_is_kept_without_our_entry(client_home: ClientHome) -> None:
    wiring = client_home.wiring("qwen")
    wiring.connect(WISH, Consent.NONE)
    values = json.loads(wiring.settings.read_text())
    wiring.settings.write_text(json.dumps({"theme": "x", **values}))
    wiring.take_back(None)
    assert json.loads(wiring.settings.read_text()) == {"theme": "x"}


def test_a_container_that_held_a_persons_server_meanwhile_is_removed(
    client_home: ClientHome,
) -> None:
    file = client_home.settings("cursor", '{"a": 1}')
    wiring = client_home.wiring("cursor")
    wiring.connect(WISH, Consent.NONE)
    text = file.read_text()
    file.write_text(text.replace('{"rootsd"', '{"mine": {"command": "x"}, "rootsd"'))
    wiring.connect(Wiring("/new/rootsd"), Consent.NONE)
    file.write_text(file.read_text().replace('"mine": {"command": "x"}, ', ""))
    wiring.take_back(None)
    assert file.read_text() == '{"a": 1}'


def test_connecting_again_changes_nothing(client_home: ClientHome) -> None:
    file = client_home.settings("gemini", MINE)
    wiring = client_home.wiring("gemini")
    wiring.connect(WISH, Consent.NONE)
    once = file.read_bytes()
    assert wiring.connect(wiring.wish_again(WISH), Consent.NONE) == []
    assert file.read_bytes() == once
    touched = once.replace(b"dark", b"light")
    file.write_bytes(touched)
    assert wiring.connect(wiring.wish_again(WISH), Consent.NONE) == []
    assert file.read_bytes() == touched


def test_a_later_connect_keeps_wrapped_servers_and_writes_the_new_command(
    client_home: ClientHome,
) -> None:
    file = client_home.settings("opencode", OPENCODE)
    wiring = client_home.wiring("opencode")
    wiring.connect(Wiring(ROOTSD, wraps={FILES: ServerWrap(WrapMode.OPEN)}), Consent.NONE)
    wiring.connect(wiring.wish_again(Wiring("/new/rootsd")), Consent.NONE)
    assert wiring.state().ours.wraps == {FILES: ServerWrap(WrapMode.OPEN)}
    assert entry_of(file, "mcp", "files", "command") == [
        "/new/rootsd", "run", "--no-confine", "--", "npx", "x",
    ]  # fmt: skip

    assert entry_of(file, "mcp", "rootsd", "command") == ["/new/rootsd", "bridge"]
    wiring.take_back(None)
    assert file.read_text() == OPENCODE


def test_servers_can_be_unwrapped_separately(client_home: ClientHome) -> None:
    file = client_home.settings("codex", CODEX)
    wiring = client_home.wiring("codex")
    wiring.connect(WISH, Consent.NONE)
    plain = file.read_text()
    wiring.connect(WRAPPED, Consent.NONE)
    assert 'command = "/opt/rootsd/bin/rootsd" # run' in file.read_text()
    assert 'args = ["run", "--confine", "--", "npx","a"]' in file.read_text()
    wiring.take_back(WISH)
    assert file.read_text() == plain


def test_both_forms_of_an_entry_are_wrapped(client_home: ClientHome) -> None:
    file = client_home.settings("cline", CLINE)
    wiring = client_home.wiring("cline")
    modes = {ServerId(name): ServerWrap(WrapMode.OPEN) for name in ("old", "new")}
    wiring.connect(Wiring(ROOTSD, wraps=modes), Consent.NONE)
    command = {"command": ROOTSD, "args": ["run", "--no-confine", "--", "npx"]}
    assert entry_of(file, "mcpServers", "old") == {**command, "timeout": 60}
    assert entry_of(file, "mcpServers", "new") == {"transport": command, "timeout": 60}
    file.write_text(file.read_text() + "\n")
    wiring.take_back(None)
    assert file.read_text() == CLINE + "\n"


@pytest.mark.parametrize(
    ("before", "written", "changed", "left"),
    [
        ("", ', "timeout": 60', ', "timeout": 60', ""),
        ("", ', "timeout": 60', ', "timeout": 90', ', "timeout": 90'),
        (', "timeout": 5', ', "timeout": 5', ', "timeout": 5', ', "timeout": 5'),
    ],
)
def test_a_server_of_cline_gets_time_to_start_if_it_has_no_limit(
    client_home: ClientHome, before: str, written: str, changed: str, left: str
) -> None:
    text = '{"mcpServers": {"files": {"transport": {"command": "npx"}%s}}}'
    file = client_home.settings("cline", text % before)
    wiring = client_home.wiring("cline")
    wiring.connect(WRAPPED, Consent.NONE)
    assert entry_of(file, "mcpServers", "rootsd", "timeout") == 60
    assert f"]}}{written}}}" in file.read_text()
    edited = file.read_text().replace(f"]}}{written}}}", f"]}}{changed}}}", 1)
    file.write_text(edited.replace('"files"', '"renamed"'))
    assert wiring.take_back(None)[1] == []
    assert file.read_text() == (text % left).replace('"files"', '"renamed"')


def test_a_wrapped_server_with_another_program_or_name_is_restored(
    client_home: ClientHome,
) -> None:
    file = client_home.settings("gemini", MINE)
    wiring = client_home.wiring("gemini")
    wiring.connect(WRAPPED, Consent.NONE)
    text = file.read_bytes().replace(b'"--", "npx"', b'"--", "uvx"')
    file.write_bytes(text.replace(b'"files"', b'"documents"'))
    assert wiring.take_back(None)[1] == []
    expected = MINE.replace('"npx"', '"uvx"').replace('"files"', '"documents"')
    assert file.read_bytes() == expected.encode()


def test_a_wrapped_server_with_other_flags_stays_and_is_named(client_home: ClientHome) -> None:
    file = client_home.settings("gemini", MINE)
    wiring = client_home.wiring("gemini")
    wiring.connect(WRAPPED, Consent.NONE)
    file.write_text(file.read_text().replace('"--", "npx"', '"--only", "x", "--", "npx"'))
    _, left = wiring.take_back(None)
    assert left == ["the command of files was changed, so it stays under rootsd run"]
    assert "--only" in file.read_text()
    assert "bridge" not in file.read_text()


def test_a_wrapped_server_that_a_person_removed_is_ignored(client_home: ClientHome) -> None:
    file = client_home.settings("opencode", OPENCODE)
    wiring = client_home.wiring("opencode")
    wiring.connect(WRAPPED, Consent.NONE)
    file.write_text('{"mcp": {}}')
    assert wiring.take_back(None)[1] == []
    assert file.read_text() == '{"mcp": {}}'


def test_an_entry_of_a_person_is_left_alone(client_home: ClientHome) -> None:
    text = '{"mcpServers": {"mine": {"command": "rootsd", "args": ["bridge", "--only", "a"]}}}'
    file = client_home.settings("cursor", text)
    wiring = client_home.wiring("cursor")
    assert wiring.connect(WISH, Consent.NONE) == []
    assert wiring.state().wired is Wired.BY_HAND
    assert file.read_text() == text
    wiring.take_back(None)
    assert file.read_text() == text


@pytest.mark.parametrize(
    ("old", "new", "left"),
    [
        (f'"{ROOTSD}"', '"mine"', "the entry rootsd runs another program now, so it stays"),
        ('"rootsd": {', '"folders": {', "the entry folders connects to rootsd under another name,"
         " so it stays"),
    ],
)  # fmt: skip
def test_an_entry_of_ours_that_a_person_changed_is_kept_and_named(
    client_home: ClientHome, old: str, new: str, left: str
) -> None:
    file = client_home.settings("cursor", "{}\n")
    wiring = client_home.wiring("cursor")
    wiring.connect(WISH, Consent.NONE)
    changed = file.read_text().replace(old, new)
    assert new in changed
    file.write_text(changed)
    assert wiring.take_back(None)[1] == [left]
    assert file.read_text() == changed


def test_another_server_of_our_name_is_not_replaced(client_home: ClientHome) -> None:
    text = '{"mcpServers": {"rootsd": {"command": "other"}}}'
    file = client_home.settings("cursor", text)
    with pytest.raises(EntryTaken):
        client_home.wiring("cursor").connect(WISH, Consent.NONE)
    assert file.read_text() == text


def test_tools_are_allowed_in_the_entry_or_in_a_list_of_another_file(
    client_home: ClientHome,
) -> None:
    wish = Wiring(ROOTSD, ToolAccess.ALLOW)
    gemini = client_home.wiring("gemini")
    gemini.connect(wish, Consent.NONE)
    assert entry_of(gemini.settings, "mcpServers", "rootsd", "trust") is True
    other = client_home.path / ".claude" / "settings.json"
    other.parent.mkdir()
    text = '{"permissions": {"allow": ["mcp__rootsd__list_roots", "Bash(ls)"]}, "x": 1}'
    other.write_text(text)
    claude = client_home.wiring("claude-code")
    claude.connect(wish, Consent.NONE)
    assert entry_of(other, "permissions", "allow") == [
        "mcp__rootsd__list_roots", "Bash(ls)", "mcp__rootsd__resolve_root",
        "mcp__rootsd__request_root",
    ]  # fmt: skip
    assert claude.state().ours.tools is ToolAccess.ALLOW
    other.write_text(other.read_text().replace("1", "2"))
    claude.take_back(None)
    gemini.take_back(None)
    assert other.read_text() == text.replace("1", "2")
    assert not gemini.settings.exists()


def test_a_plain_connect_writes_no_trust(client_home: ClientHome) -> None:
    for name in ("gemini", "qwen", "claude-code"):
        client_home.wiring(name).connect(WISH, Consent.NONE)
        assert "trust" not in client_home.settings(name).read_text()
    assert not (client_home.path / ".claude" / "settings.json").exists()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("cursor", '{"a": 1, "a": 2}'), ("cursor", "{"), ("cursor", '{"mcpServers": []}'),
        ("codex", "a = 1\na = 2\n"), ("codex", "mcp_servers = { x = { command = 'y' } }\n"),
    ],
)  # fmt: skip
def test_an_unsupported_text_is_refused(client_home: ClientHome, name: str, text: str) -> None:
    file = client_home.settings(name, text)
    with pytest.raises(NotEditable):
        client_home.wiring(name).connect(WISH, Consent.NONE)
    assert file.read_text() == text
    assert client_home.record.names() == []


@pytest.mark.parametrize("odd", [b"\xff{}", b"{}" + b" " * (65 << 20)])
def test_a_file_that_cannot_be_read_is_refused(client_home: ClientHome, odd: bytes) -> None:
    file = client_home.settings("cursor", "")
    file.write_bytes(odd)
    with pytest.raises(SettingsUnusable):
        client_home.wiring("cursor").connect(WISH, Consent.NONE)
    assert file.read_bytes() == odd
    assert client_home.wiring("cursor").state().problem


def test_a_symlink_needs_consent_and_stays_a_symlink(client_home: ClientHome) -> None:
    dotfiles = client_home.path / "dotfiles" / ".git"
    dotfiles.mkdir(parents=True)
    real = dotfiles.parent / "mcp.json"
    real.write_text("{}\n")
    file = client_home.settings("cursor")
    file.parent.mkdir()
    file.symlink_to(real)
    wiring = client_home.wiring("cursor")
    assert "is a symlink" in wiring.special_reasons(WISH)[0]
    with pytest.raises(SettingsUnusable):
        wiring.connect(WISH, Consent.NONE)
    wiring.connect(WISH, Consent.GIVEN)
    assert file.is_symlink()
    assert wiring.special_reasons(WISH) == []
    wiring.take_back(None)
    assert (file.is_symlink(), real.read_text()) == (True, "{}\n")


def test_a_plan_equals_the_later_connect(client_home: ClientHome) -> None:
    file = client_home.settings("codex", CODEX)
    wiring = client_home.wiring("codex")
    [planned] = wiring.plan(WRAPPED)
    assert (planned.before, file.read_text()) == (CODEX, CODEX)
    wiring.connect(WRAPPED, Consent.NONE)
    assert file.read_text() == planned.after
    [planned] = wiring.plan(None)
    assert planned.after == CODEX


def test_a_kill_between_the_record_and_the_file_loses_nothing(
    client_home: ClientHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = client_home.settings("gemini", MINE)
    wiring = client_home.wiring("gemini")

    def killed(*words: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("rootsd.settings.settings_file._exchange", killed)
    with pytest.raises(KeyboardInterrupt):
        wiring.connect(WRAPPED, Consent.NONE)
    monkeypatch.undo()
    assert client_home.record.names() == ["gemini"]
    assert wiring.take_back(None) == ([], [])
    assert file.read_bytes() == MINE.encode()
    assert client_home.record.names() == []


def test_a_damaged_record_stops_every_change(client_home: ClientHome) -> None:
    file = client_home.settings("gemini", MINE)
    wiring = client_home.wiring("gemini")
    wiring.connect(WISH, Consent.NONE)
    text = file.read_bytes()
    (client_home.record.folder / "gemini.json").write_text("{")
    with pytest.raises(ConnectRecordDamaged):
        wiring.take_back(None)
    assert file.read_bytes() == text


def test_the_saved_texts_are_private(client_home: ClientHome) -> None:
    client_home.settings("gemini", MINE).chmod(0o644)
    client_home.wiring("gemini").connect(WISH, Consent.NONE)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in client_home.record.folder.iterdir()}
    assert modes == {0o600}


def test_the_lock_of_claude_code_is_held_while_its_file_is_written(
    client_home: ClientHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    client_home.settings("claude-code", "{}")
    lock = client_home.path / ".claude.json.lock"
    held = []
    swap = settings_file._swap

    def watched(new: Path, file: Path) -> None:
        held.append(lock.is_dir())
        swap(new, file)

    monkeypatch.setattr(settings_file, "_swap", watched)
    client_home.wiring("claude-code").connect(WISH, Consent.NONE)
    assert held == [True]
    assert not lock.exists()


def test_an_empty_list_of_arguments_stays_empty_after_reformatting(
    client_home: ClientHome,
) -> None:
    text = '{"mcpServers": {"files": {"command": "x", "args": []}}}'
    file = client_home.settings("claude-code", text)
    wiring = client_home.wiring("claude-code")
    wiring.connect(WRAPPED, Consent.NONE)
    file.write_text(json.dumps(json.loads(file.read_text()), indent=2))
    wiring.take_back(None)
    assert file.read_text() == json.dumps(json.loads(text), indent=2)


@pytest.mark.parametrize(
    ("name", "text", "obstacle"),
    [
        (
            "goose", "extensions:\n  a: {cmd: npx}\n",
            "its command is not edited: it is in flow style",
        ),
        ("goose", "extensions:\n  a:\n    type: builtin\n", "it is a part of the client"),
        ("codex", "[mcp_servers]\na = {command = 'x'}\n", ""),
        (
            "continue", "mcpServers:\n- name: a\n  command: x\n- name: a\n  command: y\n",
            "its command is not edited: a is there twice",
        ),
        (
            "mistral-vibe",
            "mcp_servers = [{name = 'a', command = 'x'}, {name = 'a', command = 'y'}]\n",
            "its command is not edited: a is there twice",
        ),
        ("mistral-vibe", "mcp_servers = [{name = 'a', command = 'x'}]\n", ""),
    ],
)  # fmt: skip
def test_a_server_that_cannot_be_edited_is_listed_with_the_reason(
    client_home: ClientHome, name: str, text: str, obstacle: str
) -> None:
    client_home.settings(name, text)
    [server] = client_home.wiring(name).state().servers
    assert (server.server, server.obstacle) == (ServerId("a"), obstacle)


def test_the_servers_of_a_project_are_listed_and_those_in_its_own_file_are_never_changed(
    client_home: ClientHome,
) -> None:
    projects = {name: client_home.path / name for name in ("a", "b", "c", "gone")}
    server = {"command": "npx"}
    bridge = {"command": ROOTSD, "args": ["bridge"]}
    values: dict[str, dict[str, object]] = {str(each): {} for each in projects.values()}
    values[str(projects["a"])] = {"mcpServers": {"local": server, "rootsd": bridge}}
    values[str(projects["gone"])] = {"mcpServers": {"old": server}}
    text = json.dumps({"mcpServers": {"files": server}, "projects": values})
    client_home.settings("claude-code", text)
    for name, shared in (("a", {"shared": server, "local": server}), ("b", {"docs": server})):
        projects[name].mkdir()
        (projects[name] / ".mcp.json").write_text(json.dumps({"mcpServers": shared}))
    projects["c"].mkdir()
    (projects["c"] / ".mcp.json").write_bytes(b"\xff{")
    wiring = client_home.wiring("claude-code")
    assert [(each.server, each.obstacle) for each in wiring.state().servers] == [
        (FILES, ""),
        (ServerId("local", str(projects["a"])), ""),
        (ServerId("old", str(projects["gone"])), "the folder of its project is gone"),
    ]
    why = ".mcp.json is a file of the project"
    assert [(each.server.label, each.obstacle) for each in wiring.project_file_servers()] == [
        (f"shared (in {projects['a']}/.mcp.json)", why),
        (f"local (in {projects['a']}/.mcp.json)", why),
        (f"docs (in {projects['b']}/.mcp.json)", why),
    ]
    assert client_home.wiring("gemini").project_file_servers() == []


LOCAL = """{"numStartups": 3,
  "projects": {"PROJECT": {"allowedTools": [ ],
    "mcpServers": {"files": {"type": "stdio", "command": "npx", "args": [ "a" ], "env": {}},
                   "bare": {"command": "npx"}, "rootsd": {"command": "/x/rootsd",
                   "args": ["bridge"]}}, "other": 1}},
  "mcpServers": {"files": {"command": "uvx"}}
}"""


@pytest.mark.parametrize("end", ["untouched", "rewritten", "renamed", "no record"])
def test_the_servers_of_one_project_in_the_settings_are_wrapped_and_restored(
    client_home: ClientHome, end: str
) -> None:
    project = client_home.path / "a project"
    project.mkdir()
    before = LOCAL.replace("PROJECT", str(project))
    file = client_home.settings("claude-code", before)
    wiring = client_home.wiring("claude-code")
    wraps = {each.server: ServerWrap() for each in wiring.state().servers}
    assert len(wraps) == 3  # not rootsd itself
    wiring.connect(Wiring(ROOTSD, wraps=wraps), Consent.NONE)
    after = json.loads(file.read_text())
    mine = after["projects"][str(project)]["mcpServers"]
    assert mine["files"] == {
        "type": "stdio", "command": ROOTSD, "args": ["run", "--confine", "--", "npx", "a"],
        "env": {},
    }  # fmt: skip
    assert mine["bare"] == {"command": ROOTSD, "args": ["run", "--confine", "--", "npx"]}
    assert mine["rootsd"] == {"command": "/x/rootsd", "args": ["bridge"]}
    assert wiring.state().ours.wraps == wraps
    if end == "rewritten":
        file.write_text(json.dumps({**after, "numStartups": 4}, indent=2))
    elif end == "renamed":
        file.write_text(file.read_text().replace('"bare"', '"plain"'))
    elif end == "no record":
        shutil.rmtree(client_home.record.folder)
    name = f"rootsd (in {project})"
    stays = f"the entry {name} runs rootsd, but not in the form that rootsd writes, so it stays"
    assert wiring.take_back(None)[1] == [stays]
    if end in ("untouched", "renamed"):
        bare = '"plain"' if end == "renamed" else '"bare"'
        assert file.read_text() == before.replace('"bare"', bare)
        return
    count = 4 if end == "rewritten" else 3
    left, wanted = json.loads(file.read_text()), {**json.loads(before), "numStartups": count}
    for values in (left, wanted):  # without a record, an empty list means the same
        values["projects"][str(project)]["mcpServers"]["bare"].setdefault("args", [])
        values["mcpServers"]["files"].setdefault("args", [])
    assert left == wanted


@pytest.mark.parametrize("name", ["goose", "continue"])
def test_a_client_may_rewrite_yaml_between_connect_and_disconnect(
    client_home: ClientHome, name: str
) -> None:
    file = client_home.settings(name, TEXTS[name])
    before = YAML(typ="safe").load(TEXTS[name])
    wiring = client_home.wiring(name)
    wiring.connect(WRAPPED, Consent.NONE)
    values = YAML(typ="safe").load(file)
    YAML().dump(values, file)
    assert "- --confine" in file.read_text()
    assert wiring.take_back(None)[1] == []
    assert YAML(typ="safe").load(file) == before


def test_simultaneous_connects_lose_nothing(client_home: ClientHome) -> None:
    """A separate thread connects and disconnects each client."""
    texts = {"gemini": MINE, "codex": CODEX, "opencode": OPENCODE, "cursor": "{}"}

    def turn(name: str) -> None:
        for _ in range(3):
            client_home.wiring(name).connect(WISH, Consent.NONE)
            client_home.wiring(name).take_back(None)
        client_home.wiring(name).connect(WISH, Consent.NONE)

    for name, text in texts.items():
        client_home.settings(name, text)
    with ThreadPoolExecutor() as pool:
        list(pool.map(turn, texts))
    assert client_home.record.names() == sorted(texts)
    for name, text in texts.items():
        client_home.wiring(name).take_back(None)
        assert client_home.settings(name).read_bytes() == text.encode()
    assert os.listdir(client_home.record.folder) == []


HOMES = {
    "claude-code": "CLAUDE_CONFIG_DIR", "codex": "CODEX_HOME", "copilot": "COPILOT_HOME",
    "opencode": "XDG_CONFIG_HOME", "goose": "XDG_CONFIG_HOME", "amp": "XDG_CONFIG_HOME",
}  # fmt: skip


def moved(client_home: ClientHome, name: str, folder: Path) -> ClientWiring:
    """The configuration of a client in the home that its variable names."""
    variables = {**client_home.environment.variables, HOMES[name]: str(folder)}
    environment = replace(client_home.environment, variables=variables)
    return ClientWiring(client_named(name), environment, client_home.record)


@pytest.mark.parametrize("name", sorted(HOMES))
def test_a_second_home_of_a_client_takes_nothing_from_the_first(
    client_home: ClientHome, tmp_path: Path, name: str
) -> None:
    wirings = [
        client_home.wiring(name),
        moved(client_home, name, tmp_path / "second"),
        moved(client_home, name, tmp_path / "third"),
    ]
    hook = HookUse.YES if client_named(name).facts.hook else HookUse.NO
    for wiring in wirings:
        wiring.connect(replace(WISH, hook=hook), Consent.NONE)
    assert [each.state().wired for each in wirings] == [Wired.YES] * 3
    assert {each.state().ours.hook for each in wirings} == {hook}
    wirings[1].take_back(None)
    assert [each.state().wired for each in wirings] == [Wired.YES, Wired.NO, Wired.YES]
    assert {wirings[0].state().ours.hook, wirings[2].state().ours.hook} == {hook}
    facts = client_named(name).facts
    known = client_home.record.homes(name)
    homes = [client_home.environment.in_home(known[place]) for place in sorted(known)]
    assert [home.variables.get(HOMES[name]) for home in homes] == [None, str(tmp_path / "third")]
    assert (
        homes[1].home_of(facts).command("rootsd", {}) == f"{HOMES[name]}={tmp_path}/third rootsd"
    )
    shell = {HOMES[name]: "/x"}
    assert homes[0].home_of(facts).command("rootsd", shell) == f"env -u {HOMES[name]} rootsd"
    for home in homes:
        ClientWiring(client_named(name), home, client_home.record).take_back(None)
    assert client_home.record.names() == []
    assert not list(tmp_path.joinpath("third").rglob("*"))


def test_a_file_that_two_homes_share_is_restored_with_the_last_of_them(
    client_home: ClientHome,
) -> None:
    """Claude Code has its hooks in ~/.claude, and its servers elsewhere without the variable."""
    first = client_home.wiring("claude-code")
    second = moved(client_home, "claude-code", client_home.path / ".claude")
    wish = replace(WISH, hook=HookUse.YES)
    first.connect(wish, Consent.NONE)
    second.connect(wish, Consent.NONE)
    second.connect(second.wish_again(replace(WISH, tools=ToolAccess.ALLOW)), Consent.NONE)
    first.take_back(None)
    assert (first.state().wired, second.state().wired) == (Wired.NO, Wired.YES)
    assert (second.state().ours.hook, second.state().ours.tools) == (HookUse.YES, ToolAccess.ALLOW)
    second.take_back(None)
    assert not (client_home.path / ".claude").exists()


def test_a_link_leads_to_the_same_home(client_home: ClientHome, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(client_home.path / ".codex")
    client_home.settings("codex", "model = 'x'\n")
    client_home.wiring("codex").connect(WISH, Consent.NONE)
    again = moved(client_home, "codex", link)
    again.connect(again.wish_again(WISH), Consent.NONE)
    assert len(client_home.record.homes("codex")) == 1
    assert client_home.wiring("codex").state().wired is Wired.YES


@pytest.mark.parametrize("first", ["", '{"a": 1}'])
def test_nothing_is_written_unless_every_file_can_be(client_home: ClientHome, first: str) -> None:
    """The second file of Claude Code, with its hooks, has another schema."""
    file = client_home.settings("claude-code", first)
    settings = client_home.path / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{"hooks": 7}')
    wiring = client_home.wiring("claude-code")
    with pytest.raises(SettingsUnusable, match=r"settings\.json is not edited: hooks is not"):
        wiring.connect(replace(WISH, hook=HookUse.YES), Consent.NONE)
    assert (file.read_text(), settings.read_text()) == (first, '{"hooks": 7}')
    assert client_home.record.names() == []
    settings.write_text("{}")
    settings.chmod(0o444)
    with pytest.raises(SettingsUnusable, match="read-only"):
        wiring.connect(replace(WISH, hook=HookUse.YES), Consent.NONE)
    assert file.read_text() == first


@pytest.mark.parametrize("text", ["", " \n"])
def test_empty_settings_are_an_empty_object_in_each_file(
    client_home: ClientHome, text: str
) -> None:
    file = client_home.settings("claude-code", text)
    settings = client_home.path / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text(text)
    wiring = client_home.wiring("claude-code")
    wiring.connect(replace(WISH, hook=HookUse.YES, tools=ToolAccess.ALLOW), Consent.NONE)
    assert set(json.loads(settings.read_text())) == {"hooks", "permissions"}
    wiring.take_back(None)
    assert (file.read_text(), settings.read_text()) == (text, text)


def test_a_file_that_fails_after_another_was_written_is_named(
    client_home: ClientHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    replaced = settings_file._create
    seen: list[Path] = []

    def create(file: Path, text: str) -> bool:
        if seen:
            raise OSError(28, "No space left on device")
        seen.append(file)
        return replaced(file, text)

    monkeypatch.setattr(settings_file, "_create", create)
    with pytest.raises(WiringIncomplete, match=r"\.claude\.json was changed, but not"):
        client_home.wiring("claude-code").connect(replace(WISH, hook=HookUse.YES), Consent.NONE)


ADOPTED = {
    "gemini": '{"mcpServers": {"files": {"command": "npx", "args": ["-y", "f"]}}}\n',
    "claude-code": '{"mcpServers": {"files": {"command": "npx"}}}\n',
    "opencode": '{"mcp": {"files": {"type": "local", "command": ["npx", "-y"]}}}\n',
    "codex": '[mcp_servers.files]\ncommand = "npx"\nargs = ["-y"]\n',
    "goose": "extensions:\n  files:\n    cmd: npx\n    args:\n      - -y\n",
}


@pytest.mark.parametrize("name", sorted(ADOPTED))
@pytest.mark.parametrize("mode", list(WrapMode))
def test_entries_of_our_form_are_taken_back_without_the_record(
    client_home: ClientHome, name: str, mode: WrapMode
) -> None:
    language = client_named(name).facts.language
    file = client_home.settings(name, ADOPTED[name])
    hook = HookUse.YES if client_named(name).facts.hook else HookUse.NO
    wish = replace(WISH, hook=hook, tools=ToolAccess.ALLOW, wraps={FILES: ServerWrap(mode)})
    client_home.wiring(name).connect(wish, Consent.NONE)
    shutil.rmtree(client_home.record.folder)
    changes, left = client_home.wiring(name).take_back(None)
    assert (bool(changes), left) == (True, [])
    assert language.values(file.read_text()) == language.values(ADOPTED[name])
    for path in client_home.wiring(name).own_files():
        assert ROOTSD not in (path.read_text() if path.exists() else "")


@pytest.mark.parametrize("name", sorted(ADOPTED))
def test_connect_adopts_and_repairs_entries_of_our_form(
    client_home: ClientHome, name: str
) -> None:
    file = client_home.settings(name, ADOPTED[name])
    hook = HookUse.YES if client_named(name).facts.hook else HookUse.NO
    old = replace(WISH, rootsd="/gone/rootsd", hook=hook, wraps={FILES: ServerWrap(WrapMode.OPEN)})
    client_home.wiring(name).connect(old, Consent.NONE)
    shutil.rmtree(client_home.record.folder)
    wiring = client_home.wiring(name)
    wiring.connect(wiring.wish_again(WISH), Consent.NONE)
    state = wiring.state()
    assert (state.wired, state.ours.rootsd, state.ours.wraps, state.ours.hook) == (
        Wired.YES, ROOTSD, {FILES: ServerWrap(WrapMode.OPEN)}, hook,
    )  # fmt: skip
    assert all("/gone/" not in path.read_text() for path in wiring.own_files() if path.exists())
    wiring.take_back(None)
    language = client_named(name).facts.language
    assert language.values(file.read_text()) == language.values(ADOPTED[name])


def test_entries_of_another_form_are_named_and_stay(client_home: ClientHome) -> None:
    text = json.dumps(
        {
            "mcpServers": {
                "mine": {"command": ROOTSD, "args": ["run", "--only", "x", "--", "npx"]},
                "rootsd": {"command": ROOTSD, "args": ["bridge"], "timeout": 5},
            }
        }
    )
    file = client_home.settings("gemini", text)
    wiring = client_home.wiring("gemini")
    client_home.wiring("cursor").connect(WISH, Consent.NONE)
    changes, left = wiring.take_back(None)
    assert (changes, file.read_text()) == ([], text)
    assert [sentence.split()[2] for sentence in left] == ["mine", "rootsd"]


def test_servers_in_each_file_of_opencode_are_wrapped_and_restored(
    client_home: ClientHome, tmp_path: Path
) -> None:
    """Our entry is in the later file of its folder. Another shell names other files."""
    folder = client_home.path / ".config/opencode"
    added = tmp_path / "added.json"

    def settings(name: str) -> str:
        entry = {"type": "local", "command": [name, "--flag"], "enabled": True}
        return json.dumps({"mcp": {name: entry}}, indent=2) + "\n// mine\n"

    late = client_home.path / ".opencode/opencode.json"
    files = {
        folder / "opencode.json": settings("plain"),
        folder / "opencode.jsonc": settings("commented"),
        added: settings("added"),
        late: settings("late"),
    }
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    client = client_named("opencode")
    shell = replace(
        client_home.environment,
        variables={**client_home.environment.variables, "OPENCODE_CONFIG": str(added)},
    )
    record = client_home.record
    wiring = ClientWiring(client, shell, record)
    assert wiring.settings == folder / "opencode.jsonc"
    names = [server.server.name for server in wiring.state().servers]
    assert names == ["plain", "commented", "added", "late"]
    wraps = {ServerId(name): ServerWrap(WrapMode.OPEN) for name in names}
    wiring.connect(wiring.wish_again(Wiring("/bin/rootsd", wraps=wraps)), Consent.NONE)
    assert all('"run"' in path.read_text() for path in files)
    assert ['"bridge"' in path.read_text() for path in files] == [False, True, False, False]

    other = ClientWiring(client, client_home.environment, record)
    assert (other.state().wired, set(other.state().ours.wraps)) == (Wired.YES, set(wraps))
    other.connect(other.wish_again(Wiring("/new/rootsd")), Consent.NONE)
    assert all('"/new/rootsd"' in path.read_text() for path in files)
    other.take_back(None)
    assert {path: path.read_text() for path in files} == files
