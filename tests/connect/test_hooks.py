"""`rootsd connect --hook` installs a permission hook, and `disconnect` removes it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from rootsd import hook
from rootsd.connect.base import HookUse, WorktreeMaker, hook_entry
from rootsd.connect.client_files import ToolAccess
from rootsd.connect.registry import all_clients
from rootsd.connect.wiring import Consent
from support.client_home import ROOTSD, WISH, ClientHome, client_named

HOOKED = replace(WISH, hook=HookUse.YES)
DIALECTS = hook.dialects()
MINE = """{
  // mine
  "version": 1,
  "hooks": {
    "PreToolUse": [{"matcher": "Bash", "hooks": []}],
    "preToolUse": [{"command": "./mine"}], // c
  },
}
"""


@pytest.fixture
def client_home(tmp_path: Path) -> ClientHome:
    return ClientHome(tmp_path)


def file_of(client_home: ClientHome, name: str) -> Path:
    found = client_named(name).facts.hook
    assert found is not None
    return client_home.environment.locate(found.place)


def commands_in(value: Any) -> list[str]:  # noqa: ANN401 - a JSON value
    """Return the strings in a JSON value that run our hook."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [found for each in value for found in commands_in(each)]
    return [value] if isinstance(value, str) and " hook " in value else []


def test_each_hook_that_is_answered_can_be_installed() -> None:
    named = [name for name, client in all_clients().items() if client.facts.hook is not None]
    assert sorted(named) == sorted(DIALECTS)


@pytest.mark.parametrize("name", DIALECTS)
def test_a_new_file_has_the_hook_and_is_removed(client_home: ClientHome, name: str) -> None:
    wiring, file = client_home.wiring(name), file_of(client_home, name)
    wiring.connect(HOOKED, Consent.NONE)
    value = json.loads(file.read_text())
    known = client_named(name).facts.hook
    assert known is not None
    command = f"{ROOTSD} hook {name}"
    assert {each.removesuffix(" || true") for each in commands_in(value)} == {command}
    for event in DIALECTS[name].events:
        ours, *moves = value["hooks"][event]
        assert ours == hook_entry(known, HookUse.YES, command)
        assert [move["matcher"] for move in moves] == [
            tools for about, tools in DIALECTS[name].moves.items() if about == event
        ]
    assert value["hooks"].keys() >= DIALECTS[name].moves.keys()
    assert wiring.state().ours.hook is HookUse.YES
    wiring.take_back(None)
    assert (os.listdir(client_home.path), client_home.record.names()) == ([], [])


@pytest.mark.parametrize("name", ["claude-code", "codex", "copilot", "cursor"])
def test_a_persons_hooks_stay(client_home: ClientHome, name: str) -> None:
    wiring, file = client_home.wiring(name), file_of(client_home, name)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(MINE)
    wiring.connect(HOOKED, Consent.NONE)
    assert ROOTSD in file.read_text()
    wiring.take_back(None)
    assert file.read_text() == MINE
    wiring.connect(HOOKED, Consent.NONE)
    file.write_text(file.read_text().replace("// mine", "// also mine"))
    wiring.take_back(None)
    assert file.read_text() == MINE.replace("// mine", "// also mine")


def test_a_strict_hook_refuses_calls_whose_hook_fails(client_home: ClientHome) -> None:
    wiring, file = client_home.wiring("claude-code"), file_of(client_home, "claude-code")
    wiring.connect(HOOKED, Consent.NONE)
    plain = file.read_text()
    assert "onFailure" not in plain
    strict = wiring.wish_again(replace(WISH, hook=HookUse.STRICT))
    wiring.connect(strict, Consent.NONE)
    [entry] = json.loads(file.read_text())["hooks"]["PreToolUse"][0]["hooks"]
    assert entry["command"] == f"{ROOTSD} hook claude-code --strict"
    assert entry["onFailure"] == "block"
    assert wiring.state().ours.hook is HookUse.STRICT
    assert wiring.connect(wiring.wish_again(WISH), Consent.NONE) == []
    wiring.connect(wiring.wish_again(HOOKED), Consent.NONE)
    assert file.read_text() == plain
    assert wiring.state().ours.hook is HookUse.YES


def test_a_strict_hook_without_a_record_is_removed_first(client_home: ClientHome) -> None:
    wiring, file = client_home.wiring("claude-code"), file_of(client_home, "claude-code")
    wiring.connect(replace(WISH, hook=HookUse.STRICT), Consent.NONE)
    client_home.record.save("claude-code", str(file), None)
    client_home.record.save("claude-code", str(wiring.settings), None)
    assert wiring.wish_again(WISH).hook is HookUse.STRICT
    changes, left = wiring.take_back(None)
    assert ([change.path for change in changes], left) == ([file, wiring.settings], [])
    assert "hook" not in file.read_text()


def test_worktrees_are_made_by_rootsd_only_on_request(client_home: ClientHome) -> None:
    wiring, file = client_home.wiring("claude-code"), file_of(client_home, "claude-code")
    file.parent.mkdir(parents=True)
    file.write_text(MINE)
    wiring.connect(HOOKED, Consent.NONE)
    assert "Worktree" not in file.read_text()
    wiring.connect(replace(HOOKED, worktrees=WorktreeMaker.ROOTSD), Consent.NONE)
    assert all(f'"Worktree{verb}": [' in file.read_text() for verb in ("Create", "Remove"))
    assert wiring.connect(wiring.wish_again(WISH), Consent.NONE) == []
    client_home.record.save("claude-code", str(file), None)
    assert wiring.wish_again(WISH).worktrees is WorktreeMaker.ROOTSD
    wiring.connect(wiring.wish_again(WISH), Consent.NONE)
    wiring.take_back(None)
    assert file.read_text() == MINE


def test_a_client_without_strict_hooks_gets_a_plain_one(client_home: ClientHome) -> None:
    wiring = client_home.wiring("codex")
    wiring.connect(replace(WISH, hook=HookUse.STRICT), Consent.NONE)
    assert wiring.state().ours.hook is HookUse.YES
    assert "strict" not in file_of(client_home, "codex").read_text()


def test_the_programs_of_hooks_are_found(client_home: ClientHome) -> None:
    wiring, file = client_home.wiring("claude-code"), file_of(client_home, "claude-code")
    assert wiring.hook_programs() == []
    wiring.connect(replace(HOOKED, variables={"ROOTSD_DIR": "/a b"}), Consent.NONE)
    assert wiring.hook_programs() == [ROOTSD]
    file.write_text(file.read_text().replace(f" {ROOTSD} hook", " /gone/rootsd hook"))
    assert wiring.hook_programs() == ["/gone/rootsd"]
    file.write_text("{")
    assert wiring.hook_programs() == []


def test_hook_and_tools_share_a_file_and_are_told_apart(client_home: ClientHome) -> None:
    wiring = client_home.wiring("claude-code")
    wiring.connect(HOOKED, Consent.NONE)
    assert wiring.state().ours.tools is ToolAccess.ASK
    tools = wiring.wish_again(replace(WISH, tools=ToolAccess.ALLOW))
    wiring.connect(tools, Consent.NONE)
    assert (wiring.state().ours.tools, wiring.state().ours.hook) == (ToolAccess.ALLOW, HookUse.YES)
    value = json.loads(file_of(client_home, "claude-code").read_text())
    assert (len(value["permissions"]["allow"]), len(value["hooks"]["PreToolUse"])) == (3, 2)
    assert wiring.connect(wiring.wish_again(WISH), Consent.NONE) == []
    wiring.connect(replace(WISH, tools=ToolAccess.ALLOW), Consent.NONE)
    assert (wiring.state().ours.tools, wiring.state().ours.hook) == (ToolAccess.ALLOW, HookUse.NO)


def test_a_command_in_an_awkward_place_is_quoted(client_home: ClientHome) -> None:
    wish = replace(HOOKED, rootsd="/my 'tools'/rootsd", variables={"ROOTSD_DIR": "/a b"})
    client_home.wiring("qwen").connect(wish, Consent.NONE)
    [command] = commands_in(json.loads(file_of(client_home, "qwen").read_text()))
    assert command == "env 'ROOTSD_DIR=/a b' '/my '\"'\"'tools'\"'\"'/rootsd' hook qwen"


def test_a_hook_that_a_person_changed_stays_and_is_named(client_home: ClientHome) -> None:
    wiring, file = client_home.wiring("codex"), file_of(client_home, "codex")
    wiring.connect(HOOKED, Consent.NONE)
    file.write_text(file.read_text().replace('"timeout": 10', '"timeout": 3'))
    _, left = wiring.take_back(None)
    assert left == ["a hook of rootsd in hooks.PreToolUse was changed, so it stays"]
    assert '"timeout": 3' in file.read_text()
