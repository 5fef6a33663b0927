"""Decide about the projects of another machine, through a real sshd."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from support.documents import blocks
from support.guarded_daemon import AGENT, MARKER
from support.person import Person
from support.process_launcher import ROOTSD, Completed
from support.remote_host import RemoteHost, remote_host
from support.sizes import Sizes

pytestmark = [pytest.mark.needs("linux"), pytest.mark.needs("sshd")]

PAGE = Path(__file__).parent.parent.parent / "docs" / "HOSTS.md"
HOST = "--host=build"
# Only an sshd of root can give a terminal to a login.
NEEDS_A_TERMINAL_THERE = pytest.mark.needs("root")
ATTEMPTS = [
    ("approve one", "terminal"), ("approve one", "orphan"), ("pending", "child"),
    ("approve one", "child"), ("status", "terminal"), ("ui", "terminal"),
]  # fmt: skip
ODD = 'odd \'\\ $(touch x) "name"!'


@pytest.fixture
def build(tmp_path: Path) -> Iterator[RemoteHost]:
    person = Person(tmp_path / "far", guard="agents")
    person.clone("one")
    person.clone(ODD)
    person.rootsd("up", str(person.parent))
    for name in ("one", ODD):
        person.wait_until_listed(name, "pending")
    with remote_host(tmp_path, person) as host:
        yield host
    person.run("down")


def near(build: RemoteHost, *words: str) -> Completed:
    """Run rootsd on the near machine, without a terminal.

    If the user has no home folder, as in CI, sshd says so in its own words. They are left out.
    """
    done = build.near.run(*ROOTSD, *words)
    return replace(done, output=re.sub(r"Could not chdir to home directory .*\n", "", done.output))


def test_a_person_decides_there_and_answers_and_exit_statuses_are_those_of_that_machine(
    build: RemoteHost,
) -> None:
    pending = near(build, "pending", HOST)
    assert pending.status == 0, pending.output
    assert pending.output == build.person.rootsd("pending")
    some = near(build, "pending", HOST, "--exit-code", "--count")
    assert (some.status, some.output) == (3, "2\n")
    unknown = near(build, "approve", "nothing", HOST, "--json")
    assert unknown.status == 5
    assert json.loads(unknown.output)["error"]["code"] == "nothing-matched"
    older = near(build, "approve", "one", "--all", HOST)
    assert older.status == 2
    assert "it may lack an option: ssh build rootsd version" in older.output
    assert near(build, "approve", "one", "--as", "first", HOST).status == 0
    assert near(build, "deny", HOST, "--", f"{build.person.parent}/{ODD}").status == 0
    assert not (build.person.home / "x").exists()
    verdicts = {item["name"]: item["verdict"] for item in build.person.items("ls")}
    assert verdicts == {"first": "approved", ODD: "denied"}
    status = near(build, "--json", "status", "--host", "build")
    there = json.loads(build.person.rootsd("status", "--json"))
    assert json.loads(status.output)["daemon"] == there["daemon"]
    assert near(build, "pending", HOST, "--exit-code").status == 0


@NEEDS_A_TERMINAL_THERE
def test_the_commands_of_the_page_work_as_printed(build: RemoteHost) -> None:
    for name in ("acme/api", "beta"):
        build.person.clone(name)
        build.person.wait_until_listed(Path(name).name, "pending")
    (block,) = blocks(PAGE, "console")
    for command, _ in block.commands:
        keys = [("pending", "q")] if command.startswith("rootsd ui ") else []
        done = build.near.run_on_terminal("bash", "-c", command, typed=keys)
        assert done.status == 0, f"$ {command}\n{done.output}"
    verdicts = {item["name"]: item["verdict"] for item in build.person.items("ls")}
    assert (verdicts["api"], verdicts["beta"]) == ("approved", "denied")


@NEEDS_A_TERMINAL_THERE
def test_on_a_terminal_ssh_and_the_guard_there_ask_and_a_person_answers(build: RemoteHost) -> None:
    build.person.rootsd("guard", "terminal")
    build.forget_host_key()
    typed = [("(yes/no/[fingerprint])? ", "yes\n"), ("to go on: ", "\x03")]
    ended = build.near.run_on_terminal(*ROOTSD, "approve", "one", HOST, typed=typed)
    assert ended.status == 130, "the host key is accepted, and Ctrl-C ends the question there"
    assert "one" in build.person.names("pending")
    typed = [("to go on: ", "{word}\n")]
    done = build.near.run_on_terminal(*ROOTSD, "approve", "one", HOST, typed=typed)
    assert done.status == 0, done.output
    assert "yes/no" not in done.output, "ssh knows the host key now"
    assert "Confirm this command" in done.output
    assert "This was rootsd on build: add --host=build" in done.output
    assert "Connection to" not in done.output
    assert "one" in build.person.names("ls", "--verdict", "approved")
    refused = near(build, "approve", "one", HOST)
    assert refused.status == 7, "without a terminal here, there is none there"


def test_each_failure_of_ssh_and_of_that_machine_has_a_clear_error(build: RemoteHost) -> None:
    build.forget_host_key()
    unknown = near(build, "status", HOST, "--json")
    assert unknown.status == 69
    assert "ssh does not know its host key" in json.loads(unknown.output)["error"]["message"]
    build.change_host_key()
    assert "its host key has changed" in near(build, "status", HOST).output
    build.know_host_key()
    build.person.rootsd("down")
    stopped = near(build, "status", HOST)
    assert stopped.status == 69
    assert "the daemon is not running" in stopped.output
    assert "This was rootsd on build. Run its commands there: ssh build" in stopped.output
    build.install("rootsd", "echo 'rootsd: no such option: --since' >&2; exit 2")
    older = near(build, "pending", "--since=2d", HOST)
    assert older.status == 2
    assert "If it is older than" in older.output
    build.uninstall_rootsd()
    missing = near(build, "status", HOST)
    assert missing.status == 69
    assert "there is no program rootsd on build" in missing.output
    assert "try: ssh build" in missing.output
    build.refuse_keys()
    refused = near(build, "status", HOST)
    assert refused.status == 69
    assert "it refused your keys" in refused.output
    assert "ssh says: " in refused.output
    build.shut_down()
    assert "no ssh server answers there" in near(build, "status", HOST).output


def test_an_agent_here_cannot_decide_there(build: RemoteHost, sizes: Sizes) -> None:
    sources = build.person.home / "near sources"
    sources.mkdir()
    agent = build.person.home / "goose"
    agent.symlink_to(Path(ROOTSD[0]).resolve())

    def attempt(attempts: Sequence[tuple[str, str]]) -> None:
        for verb, way in attempts:
            done = build.near.run(agent, AGENT, way, *ROOTSD, *verb.split(), HOST, **MARKER)
            assert "this command is refused:" in done.output, (verb, way, done.output)

    attempt(sizes.pick(test=ATTEMPTS[:3], check=ATTEMPTS, soak=ATTEMPTS))
    assert near(build, "up", str(sources)).status == 0
    try:
        attempt(sizes.pick(test=ATTEMPTS[:1], check=ATTEMPTS, soak=ATTEMPTS))
        # A positive control: the same without an agent.
        assert near(build, "pending", HOST).status == 0
        assert "approve --host=build -- one" in near(build, "log").output
    finally:
        near(build, "down")
    assert "one" in build.person.names("pending")
    around = build.near.run(agent, AGENT, "child", "ssh", "build", "rootsd approve one", **MARKER)
    assert around.status == 0, "docs/SECURITY.md says so: an agent that may run ssh decides there"
    assert "one" in build.person.names("ls", "--verdict", "approved")
