"""docs/TEAMS.md is true: its example, installed as it says, binds an unmodified rootsd.

The daemon and all commands that read the policy themselves run in their own mount namespaces, in
which a copy of /etc lies over the real one.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rootsd.wire.decisions import DecideRequest, DecisionVerb
from support.confirmed_orders import call_confirmed
from support.documents import blocks
from support.person import HANG_GUARD, Finished, Resident
from support.polling import until

TEAMS = Path(__file__).parent.parent.parent / "docs" / "TEAMS.md"
pytestmark = [pytest.mark.needs("namespaces"), pytest.mark.needs("root")]


# `up` starts the daemon. All others only ask the daemon.
READ_THE_POLICY = ("up", "run", "confine", "doctor", "sync")


class PersonOfATeam(Resident):
    """A person whose machine has its own /etc. Root needs no password for `sudo`."""

    def __init__(self, home: Path, etc: Path) -> None:
        super().__init__(home)
        self.etc = etc
        self.policy = etc / "rootsd" / "policy.toml"
        self._programs = home / "bin"
        self._programs.mkdir()
        for name, words in (("rootsd", f"{sys.executable} -m rootsd"), ("sudo", "")):
            (self._programs / name).write_text(f'#!/bin/sh\nexec {words} "$@"\n')
            (self._programs / name).chmod(0o755)

    def environment(self) -> dict[str, str]:
        inherited = super().environment()
        return {**inherited, "PATH": f"{self.home}/bin:{inherited['PATH']}"}

    def run(self, *arguments: str, within: tuple[str, ...] = ()) -> Finished:
        if arguments[0] in READ_THE_POLICY:
            return self.run_program(sys.executable, "-m", "rootsd", *arguments)
        return super().run(*arguments, within=within)

    def run_program(self, *words: str) -> Finished:
        """Run a program where the machine has its own /etc."""
        script = 'mount --bind "$0" /etc && exec "$@"'
        return subprocess.run(
            ["unshare", "--mount", "sh", "-c", script, str(self.etc), *words],
            capture_output=True,
            text=True,
            check=False,
            timeout=HANG_GUARD,
            env=self.environment(),
            cwd=self.home,
        )

    def verdicts(self) -> dict[str, str]:
        """Return the verdicts as the daemon knows them."""
        return {item["name"]: item["verdict"] for item in self.items("ls")}

    def log(self) -> str:
        """Return the log of the daemon."""
        return Path(self.environment()["ROOTSD_DIR"], "state/log/daemon.log").read_text()

    def why(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.rootsd("why", str(self.parent / name), "--json"))
        return found


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PersonOfATeam]:
    """Return a person with one daemon for all tests of this file, and four projects."""
    folder = tmp_path_factory.mktemp("team")
    etc = folder / "etc"
    shutil.copytree("/etc", etc, symlinks=True, ignore_dangling_symlinks=True)
    shutil.rmtree(etc / "rootsd", ignore_errors=True)
    person = PersonOfATeam(folder / "home", etc)
    for name in ("customers/shop", "api-internal", "acme/site", "tool"):
        person.clone(name)
    person.rootsd("up", str(person.parent))
    for name in ("shop", "api-internal", "site", "tool"):
        person.wait_until_listed(name, "ls")
    yield person
    person.run("down")


@pytest.fixture
def ann(team: PersonOfATeam, monkeypatch: pytest.MonkeyPatch) -> PersonOfATeam:
    """Return a person without a policy, who has approved three of the four projects."""
    monkeypatch.setenv("ROOTSD_DIR", team.environment()["ROOTSD_DIR"])  # `call` looks there
    call_confirmed(
        DecideRequest(DecisionVerb.FORGET, "/", ("shop", "api-internal", "site", "tool"))
    )
    call_confirmed(DecideRequest(DecisionVerb.APPROVE, "/", ("shop", "api-internal", "tool")))
    return team


def documented(language: str) -> str:
    (block,) = blocks(TEAMS, language)
    return block.text


def test_the_documented_example_binds_rootsd_and_loses_no_decision(ann: PersonOfATeam) -> None:
    before = ann.verdicts()
    assert before == {
        "shop": "approved", "api-internal": "approved", "site": "pending", "tool": "approved",
    }  # fmt: skip
    # `~` is the home in the password database, and not the HOME of the test.
    example = documented("toml").replace("~/", f"{ann.home}/")
    (ann.home / "policy.toml").write_text(example)
    (block,) = blocks(TEAMS, "console")
    said = {}
    for command, _ in block.commands:
        if command.startswith("rootsd "):
            until(lambda: ann.verdicts()["site"] == "approved")
        said[command] = ann.run_program("bash", "-c", command)
    assert {done.returncode for done in said.values()} == {0}
    assert "wall required" in said["rootsd status"].stdout
    assert "policy.toml, line 4" in said["rootsd why ~/src/customers/shop"].stdout
    assert "policy.toml, line 7" in said["rootsd rule"].stdout
    assert ann.verdicts() == {
        "shop": "denied", "api-internal": "denied", "site": "approved", "tool": "approved",
    }  # fmt: skip
    for name, status in (("shop", 1), ("api-internal", 4)):
        refused = ann.run("approve", name)
        assert refused.returncode == status
        assert "/etc/rootsd/policy.toml, line" in refused.stderr
    for way_out in (("run", "--no-confine", "--"), ("confine", "--docker", "--")):
        refused = ann.run(*way_out, "touch", str(ann.home / "started"))
        assert refused.returncode == 7
        assert "the policy requires the wall (/etc/rootsd/policy.toml)" in refused.stderr
    assert not (ann.home / "started").exists()

    shutil.rmtree(ann.policy.parent)
    until(lambda: ann.verdicts() == before)


def _emptied(policy: Path) -> None:
    policy.write_text("")


def _writable(policy: Path) -> None:
    policy.chmod(0o666)
    policy.write_text(policy.read_text() + "\n")


def _linked(policy: Path) -> None:
    policy.rename(policy.with_name("other.toml"))
    policy.symlink_to("other.toml")


def test_a_broken_policy_opens_nothing_in_the_access_lists_of_clients(
    ann: PersonOfATeam,
) -> None:
    """The controls are the grant before, and the same lists after the repair."""
    settings = ann.home / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text("{}")
    ann.rootsd("tag", "tool", "work")
    ann.rootsd("deny", "shop")
    ann.rootsd("sync", "add", "claude-code", "--only", "tag:work", "--yes")

    def lists() -> tuple[set[str], set[str]]:
        """Return the denied entries, and the granted folders."""
        found = json.loads(settings.read_text()).get("permissions", {})
        return set(found.get("deny", ())), set(found.get("additionalDirectories", ()))

    tool = str(ann.parent / "tool")
    until(lambda: lists()[1] == {tool})
    denied, granted = lists()
    assert any("/shop/" in entry for entry in denied)
    ann.policy.parent.mkdir(mode=0o755)
    ann.policy.write_text("")
    until(lambda: set(ann.verdicts().values()) == {"denied"})
    until(lambda: lists()[1] == set())
    assert denied < lists()[0]

    # Neither does a start under a broken policy, which does not forget that there is one.
    ann.rootsd("down")
    assert lists()[1] == set()
    assert denied <= lists()[0]
    ann.rootsd("up", str(ann.parent))
    assert set(ann.verdicts().values()) == {"denied"}
    until(lambda: any("/tool/" in entry for entry in lists()[0]))
    assert lists()[1] == set()
    shutil.rmtree(ann.policy.parent)
    until(lambda: lists() == (denied, granted))
    ann.rootsd("sync", "rm", "claude-code")


def test_a_broken_policy_publishes_nothing_and_says_so_everywhere(ann: PersonOfATeam) -> None:
    before, told = ann.verdicts(), len(ann.log())
    ann.policy.parent.mkdir(mode=0o755)
    for breaks in (_emptied, _writable, _linked):
        ann.policy.unlink(missing_ok=True)
        ann.policy.write_text("version = 1\n")
        ann.policy.chmod(0o644)
        until(lambda: ann.verdicts() == before)
        breaks(ann.policy)
        until(lambda: set(ann.verdicts().values()) == {"denied"})
    assert ann.why("tool")["voices"][0]["ground"] == "policy cannot be used"
    assert "the policy cannot be used" in ann.rootsd("status")
    doctor = ann.run("doctor")
    assert doctor.returncode == 1
    assert doctor.stdout.count("is a symlink") == 1
    assert "policy changed: it cannot be used" in ann.log()[told:]
    assert "cannot be used" in ann.rootsd("log", "--last", "3")
    assert ann.run("run", "--no-confine", "--", "true").returncode == 7

    shutil.rmtree(ann.policy.parent)
    until(lambda: ann.verdicts() == before)
