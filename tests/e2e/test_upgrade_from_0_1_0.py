"""Start the daemon on the folders that version 0.1.0 left behind, and use it."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pexpect
import pytest

from rootsd.state.store.database import connect_frozen, read_number
from rootsd.state.store.opening import DATABASE_NAME
from rootsd.state.store.recovery import check
from rootsd.state.store.schema import MIGRATIONS, NewerStore, refuse_newer
from rootsd.system.config import read_config
from support.documents import blocks
from support.person import HANG_GUARD, Person
from support.release_files import (
    COMMAND,
    FILES,
    RECORDED_HOME,
    STORE_VERSION,
    copy_home,
    printed_decisions,
    unpack_state,
)

UPGRADING = Path(__file__).parents[2] / "docs/UPGRADING.md"
OLD_MIGRATIONS = MIGRATIONS[:STORE_VERSION]
KEPT = ("id", "kind", "tags", "access", "expires_at", "lapsed", "uri", "path")


@pytest.fixture
def person(tmp_path: Path, rootsd_dir: Path) -> Iterator[Person]:
    """A person who has just replaced 0.1.0. Their projects are on a disk that is not mounted."""
    home = tmp_path / "home"
    person = Person(home)
    (rootsd_dir / "config/config.toml").write_text((FILES / "config.toml").read_text())
    unpack_state(rootsd_dir / "state")
    copy_home(home)
    yield person
    person.run("down")


def by_id(items: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {item["id"]: item for item in items}


def test_every_decision_rule_name_and_setting_is_kept(person: Person) -> None:
    printed = printed_decisions()
    person.rootsd("up")
    before, now = by_id(printed["projects"]["items"]), by_id(person.items("ls"))
    decided = {key: item for key, item in before.items() if item["verdict"] != "pending"}
    assert len(decided) > 12
    for key, item in decided.items():
        assert {name: now[key][name] for name in KEPT} == {name: item[name] for name in KEPT}
        assert now[key]["verdict"] == item["verdict"] or item["worktree_of"]
        # Two names look the same, so each got the id of its project.
        assert now[key]["name"] == item["name"] or now[key]["name"] == f"{item['name']}~{key}"
    for verb in ("rule", "tag"):
        key = {"rule": "rules", "tag": "tags"}[verb]
        found = json.loads(person.rootsd(verb, "--json"))["items"]
        assert [{**old, **new} for old, new in zip(printed[key]["items"], found, strict=True)]
    for verb, value in (("focus", "tag"), ("guard", "guard")):
        assert json.loads(person.rootsd(verb, "--json"))[value] == printed[verb][value]
    status = json.loads(person.rootsd("status", "--json"))
    assert not [line for line in status["degraded"] if "lapsed" in line or "damaged" in line]


def test_every_key_of_the_configuration_is_read(person: Person, rootsd_dir: Path) -> None:
    text = (FILES / "config.toml").read_text()
    config = read_config(bytes(rootsd_dir / "config/config.toml"))
    old = tomllib.loads(text)
    assert [parent.path.decode() for parent in config.parents] == [
        each["path"] for each in old["parent"]
    ]
    assert config.parents[0].depth == old["parent"][0]["depth"]
    assert config.parents[0].nested.value == old["parent"][0]["nested"]
    assert [each.decode() for each in config.parents[0].skip] == old["parent"][0]["skip"]
    assert [each.decode() for each in config.parents[0].project_files] == (
        old["parent"][0]["project_files"]
    )
    assert [each.decode() for each in config.refused] == old["roots"]["refuse"]
    assert [each.decode() for each in config.allowed] == old["roots"]["allow"]
    assert config.sessions.max_connections == old["sessions"]["max_connections"]
    approval = config.approval
    assert (approval.guard.value, list(approval.agents), list(approval.markers)) == tuple(
        old["approval"].values()
    )
    assert person.run("config", "check").returncode == 0
    assert text.count(RECORDED_HOME) == 4


def on_a_terminal(person: Person, *words: str) -> str:
    """Run a command on a terminal of its own, as a person does."""
    environment = {**person.environment(), "TERM": "xterm", "NO_COLOR": "1"}
    with pexpect.spawn(
        sys.executable, ["-m", "rootsd", *words], env=environment, encoding="utf-8",
        dimensions=(40, 200), timeout=HANG_GUARD,
    ) as terminal:  # fmt: skip
        shown: str = terminal.read()
        return shown


def test_the_summary_appears_once_on_a_terminal_and_again_on_request(person: Person) -> None:
    person.rootsd("up")
    person.rootsd("ls")
    first = on_a_terminal(person, "ls")
    assert "upgraded   from 0.1.0" in first
    assert "store      version 3, is version 8 now" in first
    assert "1 lapsed" in first
    person.rootsd("down")
    person.rootsd("up")
    assert "upgraded" not in on_a_terminal(person, "ls")
    assert "upgraded   from 0.1.0" in on_a_terminal(person, "version")
    item = json.loads(person.rootsd("version", "--json"))["upgrade"]
    assert Path(item["backup"]).exists()
    assert item["kept"]["lapsed"] == 1


def test_entries_are_named_from_the_files_of_the_clients(person: Person, rootsd_dir: Path) -> None:
    for file in person.home.rglob("*.json"):
        # This shell sets ROOTSD_DIR, so only entries that set it are for this daemon.
        if file.name == "mcp.json" and file.parent.name == ".cursor":
            entries = json.loads(file.read_text())
            for entry in entries["mcpServers"].values():
                entry["env"] = {"ROOTSD_DIR": str(rootsd_dir)}
            file.write_text(json.dumps(entries))
            assert COMMAND in file.read_text()
    person.rootsd("up")
    found = json.loads(person.rootsd("version", "--json"))["upgrade"]["clients"]
    assert {(item["client"], item["entry"]) for item in found} == {
        ("cursor", "rootsd"),
        ("cursor", "files"),
    }


def test_the_documented_way_back_restores_a_store_that_0_1_0_opens(
    person: Person, rootsd_dir: Path
) -> None:
    state = rootsd_dir / "state"
    person.rootsd("up")
    with pytest.raises(NewerStore):
        refuse_newer(state / DATABASE_NAME, OLD_MIGRATIONS)
    (block,) = blocks(UPGRADING, "sh")
    first, *others = block.text.splitlines()
    person.rootsd(*first.split()[1:])
    script = "\n".join(others).replace("~/.local/state/rootsd", str(state))
    subprocess.run(["sh", "-ec", script], check=True, timeout=HANG_GUARD)
    refuse_newer(state / DATABASE_NAME, OLD_MIGRATIONS)
    with closing(connect_frozen(state / DATABASE_NAME)) as db:
        check(db)
        assert read_number(db, "user_version") == STORE_VERSION
