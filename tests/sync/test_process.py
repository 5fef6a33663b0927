"""`rootsd sync run` as a process: it follows the daemon, and ends without a grant."""

from __future__ import annotations

import errno
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from rootsd.settings import settings_file
from rootsd.sync.entries import NOTHING_OWN
from rootsd.sync.process import AccessSync, DaemonDecisions
from rootsd.sync.record import GrantedTag, SyncedClient, SyncRecord, holder_of
from rootsd.sync.targets import TARGETS
from rootsd.wire.projects import ProjectsQuery
from support.fake_daemon import a_listing, an_item
from support.live_daemon import LiveDaemon, an_update
from support.notify_socket import supervisor
from support.polling import until

HANG_GUARD = 60
DENIED = [an_item("x", path="/src/x", verdict="denied")]
PUBLISHED = [
    an_item("a", path="/src/a", verdict="approved", published=True, tags=["work"]),
    an_item("b", path="/src/b", verdict="approved", published=True, tags=["home"]),
]
DENY = {"deny": ["Read(//src/x/**)", "Edit(//src/x/**)"]}
BOTH = {**DENY, "additionalDirectories": ["/src/a"]}


class Decisions:
    """What the daemon says; `change` tells the process that follows."""

    def __init__(self, daemon: LiveDaemon) -> None:
        self.denied, self.published = DENIED, PUBLISHED
        self.focus: str | None = None
        self._daemon = daemon
        daemon.answers |= {
            "projects": self._projects,
            "focus": lambda _: {"revision": 1, "tag": self.focus, "roots": [], "warnings": []},
        }

    def change(self, *, denied: list[Any] | None = None, focus: str | None = None) -> None:
        if denied is not None:
            self.denied = denied
        self.focus = focus
        self._daemon.send(focus=focus)

    def projects(self, query: ProjectsQuery) -> list[dict[str, Any]]:
        params = {"verdict": query.verdict, "tag": query.tag}
        items: list[dict[str, Any]] = self._projects(params)["items"]
        return items

    def _projects(self, params: dict[str, Any]) -> dict[str, Any]:
        if params.get("verdict") == "denied":
            return a_listing(*self.denied)
        tag = params.get("tag")
        return a_listing(*(each for each in self.published if tag in (None, *each["tags"])))


@pytest.fixture
def daemon(rootsd_dir: Path) -> Iterator[LiveDaemon]:
    with LiveDaemon(rootsd_dir, [an_update()]) as daemon:
        yield daemon


@pytest.fixture
def decisions(daemon: LiveDaemon) -> Decisions:
    return Decisions(daemon)


@pytest.fixture
def record(rootsd_dir: Path) -> SyncRecord:
    return SyncRecord(os.fsencode(rootsd_dir / "state"))


@pytest.fixture
def file(tmp_path: Path, record: SyncRecord) -> Path:
    file = tmp_path / "claude" / "settings.json"
    file.parent.mkdir()
    file.write_text('{\n  "model": "x" // mine\n}\n')
    record.folder.parent.mkdir(0o700, parents=True, exist_ok=True)
    record.save_clients([SyncedClient("claude-code", str(file), "work")])
    return file


def permissions(file: Path) -> Any:  # noqa: ANN401 - a JSON value
    text = file.read_text().replace(" // mine", "")
    return json.loads(text).get("permissions", {})


# A process that notices soon that no daemon is there.
_IMPATIENT = """
from rootsd.__main__ import main
from rootsd.sync import process
process._WAIT_S = process._GRACE_S = 0.2
main()
"""


@contextmanager
def running(
    program: Sequence[str] = ("-m", "rootsd"), ready_fds: Sequence[int] = ()
) -> Iterator[subprocess.Popen[bytes]]:
    words = ("sync", "run", *(f"--ready-fd={fd}" for fd in ready_fds))
    with subprocess.Popen([sys.executable, *program, *words], pass_fds=ready_fds) as process:
        try:
            yield process
        finally:
            process.kill()


def rootsd(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "rootsd", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANG_GUARD)


def grants(file: Path, folder: str) -> bool:
    return bool(permissions(file) == {**DENY, "additionalDirectories": [folder]})


def test_grants_follow_the_focus_and_end_with_it(
    decisions: Decisions, file: Path, record: SyncRecord
) -> None:
    record.save_clients([SyncedClient("claude-code", str(file), granted=GrantedTag.FOCUS)])
    assert record.clients()[str(file)].only == "focus"
    with running() as process:
        until(lambda: permissions(file) == DENY)
        for tag, folder in (("work", "/src/a"), ("home", "/src/b")):
            decisions.change(focus=tag)
            until(partial(grants, file, folder))
        decisions.change(focus=None)
        until(lambda: permissions(file) == DENY)
        process.terminate()
        assert process.wait(HANG_GUARD) == 0


def test_it_follows_decisions_and_withdraws_grants_at_its_end(
    decisions: Decisions, file: Path
) -> None:
    with running() as process:
        until(lambda: permissions(file) == BOTH)
        decisions.change(denied=[])
        until(lambda: permissions(file) == {"additionalDirectories": ["/src/a"]})
        decisions.change(denied=DENIED)
        until(lambda: permissions(file) == BOTH)
        process.send_signal(signal.SIGTERM)
        assert process.wait(HANG_GUARD) == 0
    assert permissions(file) == DENY
    assert "// mine" in file.read_text()


def test_after_a_kill_the_unit_withdraws_the_grants(decisions: Decisions, file: Path) -> None:
    with running() as process:
        until(lambda: permissions(file) == BOTH)
        process.kill()
    assert permissions(file) == BOTH, "nothing could withdraw them"
    assert rootsd("sync", "withdraw").returncode == 0
    assert permissions(file) == DENY


def test_without_a_daemon_the_grants_are_withdrawn_also_at_the_next_start(
    decisions: Decisions, daemon: LiveDaemon, file: Path
) -> None:
    with running(("-c", _IMPATIENT)) as process:
        until(lambda: permissions(file) == BOTH)
        daemon.raw = b""  # the daemon closes all connections
        daemon.drop()
        until(lambda: permissions(file) == DENY)
        daemon.raw = None
        until(lambda: permissions(file) == BOTH)
        process.kill()
    daemon.raw = b""
    daemon.drop()
    assert permissions(file) == BOTH
    with running(("-c", _IMPATIENT)):
        until(lambda: permissions(file) == DENY)


def test_only_one_process_runs_at_a_time(
    decisions: Decisions, file: Path, record: SyncRecord
) -> None:
    with running() as process:
        until(lambda: permissions(file) == BOTH)
        assert holder_of(record) == process.pid
        for words in (("sync", "run"), ("sync", "withdraw")):
            second = rootsd(*words)
            assert (second.returncode, str(process.pid) in second.stderr) == (75, True)
        assert permissions(file) == BOTH
    assert holder_of(record) is None


def test_it_says_that_it_is_ready_only_when_it_holds_the_lock(
    file: Path, record: SyncRecord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`rootsd up` waits for the line on the pipe, and systemd for READY."""
    ready, told = os.pipe()
    with (
        open(ready, "rb", buffering=0) as pipe,
        open(told, "wb"),
        supervisor(tmp_path) as manager,
    ):
        monkeypatch.setenv("NOTIFY_SOCKET", manager.address)
        with running(ready_fds=[told]) as process:
            assert select.select([pipe], [], [], HANG_GUARD)[0]
            assert pipe.readline() == b"ready\n"
            assert holder_of(record) == process.pid
            assert manager.hear() == {"READY": "1"}
            with running(ready_fds=[told]) as late:
                assert late.wait(HANG_GUARD) == 75
            assert not select.select([pipe], [], [], 0)[0]


@pytest.mark.needs("landlock")
def test_it_can_write_only_where_the_settings_are(
    decisions: Decisions, file: Path, tmp_path: Path, record: SyncRecord
) -> None:
    """The symlink leads elsewhere after the start, so the process may not follow it there."""
    record.save_clients([SyncedClient("claude-code", str(file), "work", is_accepted=True)])
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "settings.json").write_text("{}")
    with running():
        until(lambda: permissions(file) == BOTH)
        file.unlink()
        file.symlink_to(elsewhere / "settings.json")
        decisions.change(denied=[])
        until(lambda: any("Permission denied" in each for each in record.problems()))
    assert (elsewhere / "settings.json").read_text() == "{}"


def test_a_file_that_cannot_be_written_is_a_problem_until_it_can(
    decisions: Decisions, file: Path, record: SyncRecord
) -> None:
    work = AccessSync(record, record.clients())
    text = file.read_text()
    file.write_text('{"permissions": "all"}')
    work.apply(_Feed(decisions))
    (_, problem) = record.problems()
    assert "is left alone: permissions is not an object" in problem
    moved = file.with_name("moved.json")
    file.rename(moved)
    file.symlink_to(moved)
    work.apply(_Feed(decisions))
    (_, problem) = record.problems()
    command = f"CLAUDE_CONFIG_DIR={file.parent} rootsd sync add claude-code --yes"
    assert f"is a symlink to {moved} (try: {command})" in problem
    file.unlink()
    file.write_text(text)
    work.apply(_Feed(decisions))
    assert record.problems() == ["rootsd sync does not run (try: rootsd up)"]
    assert permissions(file) == BOTH


def _read_only(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.chmod(0o444)


def _full_disk(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_room(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(settings_file, "sync", no_room)


def _other_schema(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_text('{"permissions": {"deny": {"read": ["mine"]}}}')


def test_a_client_that_never_closes_its_file_keeps_it_and_is_named(
    decisions: Decisions, file: Path, record: SyncRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings_file, "_WRITER_WAIT_S", 0.01)
    before = file.read_text()
    with file.open("a"):
        AccessSync(record, record.clients()).apply(_Feed(decisions))
    assert file.read_text() == before
    assert "another program keeps writing to" in rootsd("sync", "status").stderr


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (_read_only, "settings.json is read-only"),
        (_full_disk, "settings.json cannot be changed: No space left on device"),
        (_other_schema, "settings.json is left alone: permissions.deny is not an array"),
    ],
)
def test_a_persons_text_survives_each_failure_and_the_record_names_it(
    decisions: Decisions,
    file: Path,
    record: SyncRecord,
    monkeypatch: pytest.MonkeyPatch,
    spoil: Callable[[Path, pytest.MonkeyPatch], None],
    said: str,
) -> None:
    whole = file.read_text()
    with monkeypatch.context() as patch:
        spoil(file, patch)
        before = file.read_text()
        AccessSync(record, record.clients()).apply(_Feed(decisions))
        assert file.read_text() == before
        assert os.listdir(file.parent) == [file.name]
        assert any(said in each for each in record.problems())
    file.chmod(0o644)
    file.write_text(whole)
    work = AccessSync(record, record.clients())
    work.apply(_Feed(decisions))
    assert permissions(file) == BOTH
    assert work.remove(str(file)).problem == ""
    assert file.read_text() == whole


def test_a_denial_that_cannot_be_written_is_named(
    decisions: Decisions, file: Path, record: SyncRecord
) -> None:
    decisions.denied = [an_item("odd", path="/src/a?b", verdict="denied")]
    AccessSync(record, record.clients()).apply(_Feed(decisions))
    assert any("/src/a?b is not denied there" in each for each in record.problems())


def test_a_profile_is_kept_until_the_client_is_removed(
    decisions: Decisions, tmp_path: Path, record: SyncRecord
) -> None:
    profile = tmp_path / "codex" / "rootsd.config.toml"
    profile.parent.mkdir()
    record.folder.parent.mkdir(0o700, parents=True, exist_ok=True)
    work = AccessSync(record, {str(profile): SyncedClient("codex", str(profile))})
    work.apply(_Feed(decisions))
    work.withdraw()
    assert '"/src/x" = "deny"' in profile.read_text()
    decisions.denied = []
    work.apply(_Feed(decisions))
    assert 'extends = ":workspace"' in profile.read_text(), "codex -p rootsd still works"
    assert not work.remove(str(profile)).problem
    assert not profile.exists()


def test_a_damaged_record_removes_nothing(
    decisions: Decisions, file: Path, record: SyncRecord
) -> None:
    work = AccessSync(record, record.clients())
    work.apply(_Feed(decisions))
    before = file.read_text()
    (record.folder / "own.json").write_text("{")
    work.withdraw()
    decisions.denied = []
    work.apply(_Feed(decisions))
    assert file.read_text() == before
    assert any("is damaged" in each for each in record.problems())


def test_removing_a_client_restores_the_file(
    decisions: Decisions, file: Path, record: SyncRecord
) -> None:
    before = file.read_text()
    work = AccessSync(record, record.clients())
    work.apply(_Feed(decisions))
    assert file.read_text() != before
    assert not work.remove(str(file)).problem
    assert file.read_text() == before
    assert record.own().get(str(file), NOTHING_OWN) == NOTHING_OWN


class _Feed(DaemonDecisions):
    def __init__(self, decisions: Decisions) -> None:
        self._decisions = decisions

    def projects(self, query: ProjectsQuery) -> list[dict[str, Any]]:
        return self._decisions.projects(query)

    def focus(self) -> str | None:
        return self._decisions.focus


@pytest.fixture
def opencode(tmp_path: Path, record: SyncRecord) -> Path:
    """The folder of opencode's settings, whose `opencode.json` is synced."""
    folder = tmp_path / "opencode"
    folder.mkdir()
    record.folder.parent.mkdir(0o700, parents=True, exist_ok=True)
    record.save_clients([SyncedClient("opencode", str(folder / "opencode.json"))])
    return folder


RULES = {"permission": {"external_directory": {"/src/x/**": "deny"}}}


def test_the_denials_of_opencode_are_in_the_file_that_wins(
    opencode: Path, record: SyncRecord, decisions: Decisions
) -> None:
    """The other file appears while the client is synced, and would erase the denials."""
    work = AccessSync(record, record.clients())
    work.apply(_Feed(decisions))
    plain, winner = opencode / "opencode.json", opencode / "opencode.jsonc"
    assert json.loads(plain.read_text()) == RULES
    theirs = '{"permission": {"external_directory": {"*": "allow"}}}'
    winner.write_text(theirs)
    work.apply(_Feed(decisions))
    assert list(json.loads(winner.read_text())["permission"]["external_directory"]) == [
        "*", "/src/x/**",
    ]  # fmt: skip
    assert not plain.exists()
    [outcome] = record.outcomes().values()
    assert (outcome.denied, outcome.problem, outcome.omitted) == (1, "", ())
    work.remove(str(plain))
    assert winner.read_text() == theirs


@pytest.mark.parametrize(
    ("theirs", "said"),
    [
        ('{"permission": {"external_directory": "allow"}}', "opencode.jsonc is left alone"),
        ('{"permission": {"external_directory": {}, "*": "allow"}}', "is not denied there"),
    ],
)
def test_a_denial_that_opencode_would_not_apply_is_named(
    opencode: Path, record: SyncRecord, decisions: Decisions, theirs: str, said: str
) -> None:
    (opencode / "opencode.jsonc").write_text(theirs)
    AccessSync(record, record.clients()).apply(_Feed(decisions))
    [outcome] = record.outcomes().values()
    assert outcome.denied == 0
    assert said in outcome.problem + "".join(outcome.omitted)


@pytest.mark.parametrize(
    ("client", "place", "theirs", "said"),
    [
        # opencode merges ours after these, so they take nothing away.
        ("opencode", "opencode.json", '{"permission": {"external_directory": "allow"}}', ""),
        ("opencode", ".opencode/opencode.jsonc", '{"permission": "allow"} // mine', ""),
        # A key keeps its first place, so the project decides which rule comes last.
        (
            "opencode", "opencode.jsonc",
            '{"permission": {"external_directory": {"/a": "ask"}, "*": "allow"}}',
            'can open denied folders: "*": "allow" in its settings for opencode applies',
        ),
        (
            "opencode", ".opencode/opencode.json",
            '{"permission": {"external_directory": {"/src/x/**": "allow", "/src/*": "ask"}}}',
            'can open denied folders: "/src/*": "ask"',
        ),
        ("opencode", "opencode.json", '{"permission": ', ""),
        ("codex", ".codex/config.toml", 'model = "x"', ""),
        ("codex", ".codex/config.toml", 'sandbox_mode = "workspace-write"', "has sandbox_mode"),
        ("codex", ".codex/config.toml", "[permissions.rootsd]", "has permissions, which wins"),
    ],
)  # fmt: skip
def test_a_project_whose_own_settings_take_a_denial_away_is_named(
    tmp_path: Path,
    record: SyncRecord,
    decisions: Decisions,
    client: str,
    place: str,
    theirs: str,
    said: str,
) -> None:
    """The file of a project is never edited. What the clients do is in tests/e2e/agents."""
    project = tmp_path / "project"
    (project / place).parent.mkdir(parents=True)
    (project / place).write_text(theirs)
    item = an_item("p", path=str(project), verdict="approved", published=True)
    decisions.published = [item]
    file = tmp_path / "home" / TARGETS[client].format.place.variables[0].below
    file.parent.mkdir()
    record.folder.parent.mkdir(0o700, parents=True, exist_ok=True)
    record.save_clients([SyncedClient(client, str(file))])
    work = AccessSync(record, record.clients())
    work.apply(_Feed(decisions))
    work.withdraw()
    [outcome] = record.outcomes().values()
    named = [each for each in outcome.omitted if each.startswith(f"a session in {project} can ")]
    assert (outcome.denied, len(outcome.omitted), len(named)) == (1, bool(said), bool(said))
    assert said in "".join(named)
    assert (project / place).read_text() == theirs


def test_what_opencode_merges_before_and_after_ours_is_read_back(
    tmp_path: Path, record: SyncRecord, decisions: Decisions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`OPENCODE_CONFIG` adds a file before ours, and `OPENCODE_PERMISSION` comes last."""
    folder = tmp_path / "moved"
    folder.mkdir()
    record.folder.parent.mkdir(0o700, parents=True, exist_ok=True)
    record.save_clients([SyncedClient("opencode", str(folder / "opencode.json"))])
    added = tmp_path / "more.json"

    def denied() -> int:
        AccessSync(record, record.clients()).apply(_Feed(decisions))
        [outcome] = record.outcomes().values()
        return outcome.denied

    added.write_text('{"permission": {"external_directory": {"/a": "ask"}, "*": "allow"}}')
    assert denied() == 1
    monkeypatch.setenv("OPENCODE_CONFIG", str(added))
    assert denied() == 0
    added.write_text('{"permission": {"external_directory": {"*": "allow"}}}')
    assert denied() == 1
    monkeypatch.setenv("OPENCODE_PERMISSION", '{"external_directory": "allow"}')
    assert denied() == 0


@pytest.mark.parametrize("text", ["", " \n"])
def test_empty_settings_are_an_empty_object(
    file: Path, record: SyncRecord, decisions: Decisions, text: str
) -> None:
    file.write_text(text)
    AccessSync(record, record.clients()).apply(_Feed(decisions))
    assert permissions(file) == BOTH
