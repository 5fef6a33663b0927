"""The guard: it examines the caller, asks, refuses, and records."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Collection, Sequence
from contextlib import suppress

import anyio
import pytest
from msgspec.structs import replace

from rootsd.config.schema import ApprovalTable
from rootsd.control import callers
from rootsd.control.guard import CommandGuard
from rootsd.control.guarded_connection import ChallengeNeeded, GuardedConnection
from rootsd.control.routes import GuardedCommand
from rootsd.core.changes import AuditNote, AuditRecord, ChangeVerb, SettingChange
from rootsd.core.encoding import AllowedPrograms
from rootsd.core.errors import CallerRefused
from rootsd.core.guard_setting import Guard
from rootsd.core.model import ActorKind
from rootsd.core.processes import (
    Lineage,
    LineageCompleteness,
    Process,
    ProgramSight,
    TerminalHolder,
)
from rootsd.helper.processes import ProcessReport
from rootsd.wire.request import BadRequest
from support.counted_calls import count_calls
from support.ledger_harness import DiskRefuses
from support.process_table import OWN_GROUP, TERMINAL, FakePeer, ProcessTable, process
from support.sample_decisions import PERSON

HANG_GUARD = 60


class Notes:
    """The notes that were to be stored."""

    def __init__(self) -> None:
        self.kept: list[AuditRecord] = []
        self.refusing = False

    async def __call__(self, note: AuditRecord) -> None:
        if self.refusing:
            raise DiskRefuses("no room left")
        self.kept.append(note)


async def preview() -> Sequence[str]:
    return ("approve /home/ann/src/api",)


ORDER = GuardedCommand("approve api", preview)
SHELL = process(20, 1, "bash", terminal=TERMINAL)
PERSONS = process(90, 20, "rootsd", terminal=TERMINAL)
CLAUDE = process(30, 20, "claude", terminal=TERMINAL)
AGENTS = process(91, 30, "rootsd", terminal=TERMINAL)
HOST = process(40, 20, "my-host", terminal=TERMINAL)
BRIDGE = process(41, 40, "rootsd", "python3", "-m", "rootsd", "bridge")
HOSTS = process(92, 40, "rootsd", terminal=TERMINAL)
ORPHAN = process(93, 1, "rootsd", control_group=OWN_GROUP)


@pytest.fixture
def process_table() -> ProcessTable:
    return ProcessTable(SHELL, PERSONS, CLAUDE, AGENTS, HOST, BRIDGE, HOSTS, ORPHAN)


@pytest.fixture
def notes() -> Notes:
    return Notes()


@pytest.fixture
def guard(process_table: ProcessTable, notes: Notes) -> CommandGuard:
    return process_table.guard(notes)


async def test_a_person_is_admitted_and_named(guard: CommandGuard, notes: Notes) -> None:
    actor = await GuardedConnection(guard, FakePeer(90)).admit(ORDER, None)
    assert actor.kind is ActorKind.PERSON
    assert actor.detail == "pid 90, bash, pts/0"
    assert notes.kept == []
    assert guard.refused.unseen is None


async def test_the_caller_of_a_query_is_a_person_unless_an_order_would_be_refused(
    guard: CommandGuard, process_table: ProcessTable, notes: Notes
) -> None:
    process_table.connected = {41}
    kinds = {
        pid: (await GuardedConnection(guard, FakePeer(pid)).actor()).kind for pid in (90, 91, 92)
    }
    assert kinds == {90: ActorKind.PERSON, 91: ActorKind.CALLER, 92: ActorKind.PERSON}
    assert notes.kept == []
    assert guard.refused.unseen is None


async def test_an_agent_is_refused_and_recorded(
    guard: CommandGuard, notes: Notes, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        with (
            caplog.at_level(logging.WARNING),
            pytest.raises(CallerRefused, match="Claude Code started it") as refusal,
        ):
            await GuardedConnection(guard, FakePeer(91)).admit(ORDER, None)
        assert "your own terminal" in refusal.value.remedy
    assert [note.text for note in notes.kept if isinstance(note, AuditNote)] == ["approve api"] * 2
    assert all("Claude Code" in note.actor.detail for note in notes.kept if note.actor)
    told = guard.refused.unseen
    assert told is not None
    assert (told["count"], told["what"]) == (2, "approve api")
    assert told["at"] == "2026-03-04T12:00:00Z"
    assert "refused: approve api (pid 91, claude < bash, pts/0)" in caplog.text


async def test_a_flood_of_attempts_is_counted_and_not_completely_stored(
    guard: CommandGuard, notes: Notes, process_table: ProcessTable
) -> None:
    async def attempt() -> None:
        with suppress(CallerRefused):
            await GuardedConnection(guard, FakePeer(91)).admit(ORDER, None)

    for _ in range(100):
        await attempt()
    assert len(notes.kept) == 20
    assert guard.refused.unseen is not None
    assert guard.refused.unseen["count"] == 100
    process_table.seconds += 60
    await attempt()
    last = notes.kept[-1]
    assert isinstance(last, AuditNote)
    assert last.text == "approve api (80 more like it)"


async def test_an_order_is_refused_even_if_the_refusal_cannot_be_stored(
    guard: CommandGuard, notes: Notes
) -> None:
    notes.refusing = True
    with pytest.raises(CallerRefused):
        await GuardedConnection(guard, FakePeer(91)).admit(ORDER, None)
    assert guard.refused.unseen is not None


async def test_a_caller_that_ended_during_the_examination_is_refused(guard: CommandGuard) -> None:
    peer = FakePeer(90)
    peer.gone = True
    with pytest.raises(CallerRefused, match="is gone"):
        await GuardedConnection(guard, peer).admit(ORDER, None)
    with pytest.raises(CallerRefused, match="is gone"):
        await GuardedConnection(guard, FakePeer(99)).admit(ORDER, None)


async def _challenged(
    connection: GuardedConnection, order: GuardedCommand = ORDER
) -> ChallengeNeeded:
    with pytest.raises(ChallengeNeeded) as needed:
        await connection.admit(order, None)
    return needed.value


async def test_below_an_unknown_host_a_challenge_is_shown_and_its_word_counts_once(
    guard: CommandGuard, process_table: ProcessTable, notes: Notes
) -> None:
    process_table.connected = {41}
    connection = GuardedConnection(guard, FakePeer(92))
    connection.check_may_ask(ORDER, None)
    needed = await _challenged(connection)
    _, first, second, third = process_table.shown[-1].split("\r\n")
    assert first == "approve /home/ann/src/api"
    assert "my-host, pid 40, which uses MCP, started it" in second
    assert third == f"Type {process_table.word()} to go on: "
    assert process_table.word() not in f"{needed.message} {needed.remedy} {needed.challenge}"
    assert "pts/0" in needed.message
    assert needed.challenge == {"terminal": "pts/0"}
    connection.check_may_ask(ORDER, process_table.word())
    actor = await connection.admit(ORDER, f" {process_table.word()}\n")
    assert actor.kind is ActorKind.CHALLENGED
    assert "my-host, pid 40, which uses MCP, started it" in actor.detail
    assert notes.kept == []
    with pytest.raises(CallerRefused, match="was not the one asked for"):
        await connection.admit(ORDER, process_table.word())
    assert len(notes.kept) == 1


async def test_if_the_word_cannot_be_shown_the_order_is_refused(
    guard: CommandGuard, process_table: ProcessTable, notes: Notes
) -> None:
    process_table.connected, process_table.dark = {41}, True
    with pytest.raises(CallerRefused, match="could not be shown: the terminal is stopped") as it:
        await GuardedConnection(guard, FakePeer(92)).admit(ORDER, None)
    assert not isinstance(it.value, ChallengeNeeded)
    assert len(notes.kept) == 1


async def test_a_wrong_word_or_one_for_another_order_is_recorded_as_an_attempt(
    guard: CommandGuard, process_table: ProcessTable, notes: Notes
) -> None:
    process_table.connected = {41}
    connection = GuardedConnection(guard, FakePeer(92))
    await _challenged(connection)
    with pytest.raises(CallerRefused):
        await connection.admit(ORDER, "wrong")
    await _challenged(connection)
    with pytest.raises(CallerRefused):
        await connection.admit(replace(ORDER, text="approve other"), process_table.word())
    elsewhere = GuardedConnection(guard, FakePeer(92))
    await _challenged(connection)
    with pytest.raises(CallerRefused):
        await elsewhere.admit(ORDER, process_table.word())
    assert len(notes.kept) == 3


@pytest.mark.parametrize("seen_as", [LineageCompleteness.CUT_OFF, LineageCompleteness.LATE])
async def test_an_incomplete_lineage_is_refused_or_challenged(
    guard: CommandGuard, process_table: ProcessTable, seen_as: LineageCompleteness
) -> None:
    process_table.seen_as = {90: seen_as, 93: seen_as}
    with pytest.raises(CallerRefused, match=r"too large, to inspect|too long"):
        await GuardedConnection(guard, FakePeer(93)).admit(ORDER, None)
    connection = GuardedConnection(guard, FakePeer(90))
    await _challenged(connection)
    actor = await connection.admit(ORDER, process_table.word())
    assert actor.kind is ActorKind.CHALLENGED


async def test_while_an_mcp_connection_is_unexamined_every_caller_is_challenged(
    guard: CommandGuard, process_table: ProcessTable
) -> None:
    process_table.connected, process_table.seen_as = {41}, {41: LineageCompleteness.LATE}
    process_table.processes[41] = dataclasses.replace(process_table.processes[41], parent=1)
    with pytest.raises(CallerRefused, match="programs that use MCP"):
        await GuardedConnection(guard, FakePeer(93)).admit(ORDER, None)
    await _challenged(GuardedConnection(guard, FakePeer(90)))
    process_table.seen_as = {}
    assert (
        await GuardedConnection(guard, FakePeer(90)).admit(ORDER, None)
    ).kind is ActorKind.PERSON
    # Once it was examined, a late examination changes nothing.
    process_table.seen_as = {41: LineageCompleteness.LATE}
    assert (
        await GuardedConnection(guard, FakePeer(90)).admit(ORDER, None)
    ).kind is ActorKind.PERSON


async def test_a_terminal_that_an_agent_created_is_challenged(
    guard: CommandGuard, process_table: ProcessTable
) -> None:
    process_table.connected = {41}
    maker = process(95, 1, "python3", control_group=OWN_GROUP)
    process_table.add(process(96, 1, "rootsd", terminal=TERMINAL, control_group=OWN_GROUP))
    process_table.holders = {TERMINAL: (TerminalHolder(Lineage((maker,))),)}
    needed = await _challenged(GuardedConnection(guard, FakePeer(96)))
    assert "python3, pid 95 holds its terminal, in the control group of" in needed.message


async def test_a_host_is_remembered_after_its_answered_bridge_has_ended(
    guard: CommandGuard, process_table: ProcessTable
) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(guard.keep_recording_hosts)
        process_table.connected = {41}
        with anyio.fail_after(HANG_GUARD):
            await guard.record_connection()
        assert process_table.looks
        group.cancel_scope.cancel()
    process_table.connected = set()
    await _challenged(GuardedConnection(guard, FakePeer(92)))
    with pytest.raises(CallerRefused, match="control group of"):
        await GuardedConnection(guard, FakePeer(93)).admit(ORDER, None)


class Slow(ProcessTable):
    """An examination that waits until the test lets it end."""

    def __init__(self, *processes: Process) -> None:
        super().__init__(*processes)
        self.begun, self.may_end = anyio.Event(), anyio.Event()

    async def look_up(
        self, callers: Sequence[int], others: Sequence[int], markers: Collection[str]
    ) -> ProcessReport | None:
        found = await super().look_up(callers, others, markers)
        self.begun.set()
        await self.may_end.wait()
        return found


async def test_a_client_that_connects_during_an_examination_waits_for_the_next_one(
    notes: Notes,
) -> None:
    process_table = Slow(SHELL, CLAUDE, HOST, BRIDGE)
    guard = process_table.guard(notes)
    answered_after: list[list[list[int]]] = []

    async def connect(pid: int) -> None:
        process_table.connected.add(pid)
        await guard.record_connection()
        answered_after.append(list(process_table.looks))

    async with anyio.create_task_group() as remembering:
        remembering.start_soon(guard.keep_recording_hosts)
        with anyio.fail_after(HANG_GUARD):
            async with anyio.create_task_group() as group:
                group.start_soon(connect, 30)
                await process_table.begun.wait()
                group.start_soon(connect, 41)
                await anyio.wait_all_tasks_blocked()
                assert answered_after == []
                process_table.may_end.set()
        remembering.cancel_scope.cancel()
    assert [looks[-1] for looks in answered_after][1] == [30, 41]


async def test_a_slow_examination_delays_no_client(
    guard: CommandGuard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(callers, "_LOOKUP_TIMEOUT_S", 0.01)
    with anyio.fail_after(HANG_GUARD):
        await guard.record_connection()  # and no examination runs


async def test_a_host_that_has_ended_no_longer_counts(
    guard: CommandGuard, process_table: ProcessTable
) -> None:
    process_table.connected = {41}
    with pytest.raises(CallerRefused, match="control group of"):
        await GuardedConnection(guard, FakePeer(93)).admit(ORDER, None)
    process_table.connected = set()
    del process_table.processes[40], process_table.processes[41]
    assert (
        await GuardedConnection(guard, FakePeer(93)).admit(ORDER, None)
    ).kind is ActorKind.PERSON


async def test_a_command_of_an_agent_that_decides_nothing_is_recorded(
    guard: CommandGuard, notes: Notes, process_table: ProcessTable
) -> None:
    await guard.note_command("down", FakePeer(91))
    (note,) = notes.kept
    assert isinstance(note, AuditNote)
    assert (note.text, note.verb) == ("down", ChangeVerb.AGENT_COMMAND)
    assert note.actor is not None
    assert "Claude Code started it" in note.actor.detail
    kept = guard.agent_commands.unseen
    assert kept is not None
    assert (kept["count"], kept["what"]) == (1, "down")
    assert guard.refused.unseen is None


async def test_a_command_of_a_person_or_an_unreadable_caller_is_not_recorded(
    guard: CommandGuard, notes: Notes, process_table: ProcessTable
) -> None:
    await guard.note_command("down", FakePeer(90))
    await guard.note_command("down", FakePeer(99))  # it has ended
    await guard.set_guard(Guard.TERMINAL, PERSON)  # a script has no terminal and is no agent
    await guard.note_command("down", FakePeer(93))
    process_table.blind = True
    await guard.note_command("down", FakePeer(91))
    process_table.blind = False
    await guard.set_guard(Guard.OFF, PERSON)
    await guard.note_command("down", FakePeer(91))
    assert [note for note in notes.kept if isinstance(note, AuditNote)] == []
    assert guard.agent_commands.unseen is None


async def test_a_flood_of_commands_is_counted_and_hides_no_refusal(
    guard: CommandGuard, notes: Notes
) -> None:
    for _ in range(100):
        await guard.note_command("reload", FakePeer(91))
    assert len(notes.kept) == 20
    assert guard.agent_commands.unseen is not None
    assert guard.agent_commands.unseen["count"] == 100
    with pytest.raises(CallerRefused):
        await GuardedConnection(guard, FakePeer(91)).admit(ORDER, None)
    assert len(notes.kept) == 21


async def test_without_a_helper_every_caller_is_refused(
    guard: CommandGuard, process_table: ProcessTable
) -> None:
    process_table.blind = True
    for pid in (90, 93):
        with pytest.raises(CallerRefused, match="helper process does not answer") as refused:
            await GuardedConnection(guard, FakePeer(pid)).admit(ORDER, None)
        assert not isinstance(refused.value, ChallengeNeeded)
        assert refused.value.remedy == "rootsd down && rootsd up"


async def test_a_new_guard_setting_takes_effect_and_is_stored(
    guard: CommandGuard, notes: Notes
) -> None:
    await guard.set_guard(Guard.OFF, PERSON)
    assert notes.kept == [SettingChange(Guard.OFF, PERSON, ChangeVerb.GUARD_SET)]
    assert (
        await GuardedConnection(guard, FakePeer(91)).admit(ORDER, None)
    ).kind is ActorKind.PERSON


async def test_on_a_refusing_disk_the_guard_can_be_tightened_and_not_loosened(
    guard: CommandGuard, notes: Notes
) -> None:
    notes.refusing = True
    with pytest.raises(DiskRefuses):
        await guard.set_guard(Guard.OFF, PERSON)
    assert guard.guard == "agents"
    with pytest.raises(DiskRefuses):
        await guard.set_guard(Guard.TERMINAL, PERSON)
    assert guard.guard == "terminal"


async def test_a_new_store_gets_the_configured_mode(guard: CommandGuard, notes: Notes) -> None:
    await guard.adopt_mode(ApprovalTable(Guard.AGENTS))
    assert notes.kept == []
    await guard.adopt_mode(ApprovalTable(Guard.OFF))
    assert guard.guard is Guard.OFF
    assert len(notes.kept) == 1


async def test_the_configuration_names_further_agents(
    guard: CommandGuard, process_table: ProcessTable
) -> None:
    process_table.add(process(94, 40, "rootsd", terminal=TERMINAL, markers=frozenset({"MINE"})))
    await _challenged(GuardedConnection(guard, FakePeer(92)))
    guard.set_agents(ApprovalTable(agents=("my-host",)))
    with pytest.raises(CallerRefused, match="my-host started it"):
        await _challenged(GuardedConnection(guard, FakePeer(92)))
    guard.set_agents(ApprovalTable(markers=("MINE",)))
    with pytest.raises(CallerRefused, match="MINE is set for"):
        await GuardedConnection(guard, FakePeer(94)).admit(ORDER, None)


SCRIPT = process(60, 59, "bash", "bash", "deploy.sh")
CRON = process(59, 1, "cron")
RUN = process(61, 60, "rootsd", "python3", "-m", "rootsd", "run", "--", "server")
LATER = process(62, 60, "rootsd")


@pytest.mark.parametrize("is_script", [True, False], ids=["script", "control: editor"])
async def test_a_script_that_ran_a_server_may_decide_once_the_server_has_ended(
    guard: CommandGuard, process_table: ProcessTable, *, is_script: bool
) -> None:
    """A program that started the server itself stays a host."""
    process_table.add(SCRIPT if is_script else process(60, 59, "code", "code"), CRON, RUN, LATER)
    process_table.connected = {61}
    with pytest.raises(CallerRefused, match="uses MCP"):
        await GuardedConnection(guard, FakePeer(62)).admit(ORDER, None)
    process_table.connected = set()
    del process_table.processes[61]
    if is_script:
        actor = await GuardedConnection(guard, FakePeer(62)).admit(ORDER, None)
        assert actor.kind is ActorKind.PERSON
    else:
        with pytest.raises(CallerRefused, match="code, pid 60, which uses MCP, started it"):
            await GuardedConnection(guard, FakePeer(62)).admit(ORDER, None)


def _hidden(each: Process) -> Process:
    return dataclasses.replace(each, program=b"", sight=ProgramSight.HIDDEN, markers=frozenset())


async def test_a_program_that_introduced_itself_before_it_hid_is_still_known(
    guard: CommandGuard, process_table: ProcessTable
) -> None:
    process_table.add(_hidden(PERSONS))
    await GuardedConnection(guard, FakePeer(90)).introduce()
    needed = await _challenged(GuardedConnection(guard, FakePeer(90)))
    assert "which hides its program" in needed.message, "the control: it hid before"
    process_table.add(PERSONS)
    await GuardedConnection(guard, FakePeer(90)).introduce()
    process_table.add(_hidden(PERSONS))
    assert (
        await GuardedConnection(guard, FakePeer(90)).admit(ORDER, None)
    ).kind is ActorKind.PERSON
    # What it had in its environment is not forgotten, nor is another process the same one.
    marked = dataclasses.replace(AGENTS, parent=20, markers=frozenset({"GEMINI_CLI"}))
    process_table.add(marked)
    await GuardedConnection(guard, FakePeer(91)).introduce()
    process_table.add(_hidden(marked))
    with pytest.raises(CallerRefused, match="GEMINI_CLI is set"):
        await GuardedConnection(guard, FakePeer(91)).admit(ORDER, None)
    process_table.add(dataclasses.replace(_hidden(PERSONS), started=901))
    await _challenged(GuardedConnection(guard, FakePeer(90)))


async def test_a_connection_carries_one_command_and_nothing_before_it(guard: CommandGuard) -> None:
    fresh, used = (GuardedConnection(guard, FakePeer(90)) for _ in range(2))
    fresh.check_may_ask(ORDER, None)
    used.check_may_ask(None, None)
    for connection in (fresh, used):
        for typed in (None, "word"):
            with pytest.raises(CallerRefused, match="has carried another request"):
                connection.check_may_ask(ORDER, typed)
        connection.check_may_ask(None, None)


async def test_the_last_command_is_remembered_with_each_program(
    guard: CommandGuard, process_table: ProcessTable
) -> None:
    assert guard.last is None
    with pytest.raises(ChallengeNeeded):
        await GuardedConnection(guard, FakePeer(92)).admit(ORDER, None)
    assert guard.last is not None
    assert (guard.last["what"], guard.last["judgment"]) == ("approve api", "asked")
    assert [(each["name"], each["use"]) for each in guard.last["programs"]] == [
        ("rootsd", "rootsd"), ("my-host", None), ("bash", "shell"),
    ]  # fmt: skip
    assert guard.last["programs"][1]["allow"] == "rootsd guard allow /usr/bin/my-host"
    paths = ["/usr/bin/rootsd", "/usr/bin/my-host", "/usr/bin/bash"]
    assert [each["program"] for each in guard.last["programs"]] == paths
    await GuardedConnection(guard, FakePeer(90)).admit(ORDER, None)
    assert (guard.last["judgment"], guard.last["why"]) == ("passed", None)


async def test_an_unknown_program_is_refused_by_name_until_a_person_allows_it(
    guard: CommandGuard, process_table: ProcessTable, notes: Notes
) -> None:
    process_table.add(process(95, 40, "rootsd"))
    with pytest.raises(CallerRefused, match=r"does not know my-host \(/usr/bin/my-host\)") as it:
        await GuardedConnection(guard, FakePeer(95)).admit(ORDER, None)
    assert it.value.remedy == "rootsd guard allow /usr/bin/my-host"
    allowed = frozenset({"/usr/bin/my-host"})
    await guard.set_allowed(allowed, PERSON, ChangeVerb.PROGRAM_ALLOWED)
    assert notes.kept[-1] == SettingChange(
        AllowedPrograms(allowed), PERSON, ChangeVerb.PROGRAM_ALLOWED
    )
    assert (
        await GuardedConnection(guard, FakePeer(95)).admit(ORDER, None)
    ).kind is ActorKind.PERSON
    assert "If that is a program of yours" not in "".join(process_table.shown)


@pytest.mark.parametrize(
    "program",
    [
        "kimi",
        "bin/kimi",
        "/opt/claude",
        "/usr/bin/python3.12",
        "python -m aider",
        "python -m my/x",
        "/opt/x\n",
        "",
    ],
)
async def test_an_agent_an_interpreter_and_no_path_cannot_be_allowed(
    guard: CommandGuard, notes: Notes, program: str
) -> None:
    with pytest.raises(BadRequest):
        await guard.set_allowed(frozenset({program}), PERSON, ChangeVerb.PROGRAM_ALLOWED)
    assert notes.kept == []


async def test_if_the_store_refuses_a_program_it_is_not_known(
    guard: CommandGuard, notes: Notes
) -> None:
    notes.refusing = True
    with pytest.raises(DiskRefuses):
        await guard.set_allowed(frozenset({"/opt/x"}), PERSON, ChangeVerb.PROGRAM_ALLOWED)
    assert guard.allowed == frozenset()


async def test_the_variables_of_agents_are_gathered_when_the_agents_change(
    guard: CommandGuard,
) -> None:
    def decide() -> None:
        with pytest.raises(StopIteration):
            GuardedConnection(guard, FakePeer(90)).admit(ORDER, None).send(None)

    decided = count_calls(decide)
    assert (decided["CallerFinder.find"], decided["markers_of"]) == (1, 0)
    control = count_calls(lambda: guard.set_agents(ApprovalTable()))
    assert control["markers_of"] == 1
