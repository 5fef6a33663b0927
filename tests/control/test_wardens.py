"""A warden follows its view on the control socket, and registers its program there."""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
import pytest
from anyio.abc import UNIXSocketStream
from msgspec import convert
from msgspec.structs import replace

from rootsd.control import wardens
from rootsd.control.routes import ConnectionState
from rootsd.control.server import serve_control
from rootsd.control.session_requests import SessionRequests
from rootsd.control.wardens import MAX_LINE_LENGTH, MAX_LINES, MAX_WARDENS
from rootsd.core.changes import ChangeVerb, SettingChange
from rootsd.core.encoding import FocusRecord
from rootsd.core.errors import Busy, UnknownProject
from rootsd.core.model import UNDECIDED, Actor, Focus, Project, SessionKey
from rootsd.core.record import from_json
from rootsd.core.wall import RevokePolicy, WallEngine, WallSettings, WallUse
from rootsd.wire.daemon import SessionsQuery, StatusQuery
from rootsd.wire.decisions import DecisionVerb, TagRequest
from rootsd.wire.feed import FEED_VERSION, OtherVersion
from rootsd.wire.follow import FeedPart, FollowRequest, MoveRequest
from rootsd.wire.jsonrpc import LineReader
from rootsd.wire.request import ApplyMode, BadRequest, ControlRequest
from rootsd.wire.wall import AddRootsRequest, ConfinedState, ReportConfinedRequest, WallProgram
from support.control_harness import APPROVE, CWD, DENY, FORGET, ControlHarness
from support.ledger_harness import HANG_GUARD, at
from support.sample_decisions import PERSON, approved, denied, project, worktree

P1, P2, P3 = ("/home/ann/src/p1", "/home/ann/src/p2", "/home/ann/src/p3")
INNER = P1 + "/inner"
PROGRAM = {
    "pid": 0, "program": "", "engine": WallEngine.NAMESPACES, "landlock": 0, "network": True,
}  # fmt: skip


def root(number: int, session: SessionKey | None = None) -> Project:
    """Return an approved project without tags."""
    known = approved(number)
    decision = known.ruling.decision
    assert decision is not None
    ruling = replace(known.ruling, tags=(), decision=replace(decision, session=session))
    return replace(known, ruling=ruling)


class Warden:
    """The client's end of a control connection."""

    def __init__(self, stream: UNIXSocketStream) -> None:
        self.stream = stream
        self._lines = LineReader(1 << 20)
        self._roots: dict[str, dict[str, Any]] = {}
        self._changes = 0

    async def call(self, method: str, **params: object) -> dict[str, Any]:
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        await self.stream.send(json.dumps(request).encode() + b"\n")
        return dict((await self.next())["result"])

    async def follow(
        self,
        name: str,
        program: Mapping[str, object] = PROGRAM,
        use: WallUse = WallUse.PROGRAM,
        start: object = None,
        **scope: object,
    ) -> dict[str, Any]:
        """Return the answer to `follow`, and the first change as its `view`."""
        hello = {"version": 1, "client": name, "scope": scope, "start": start}
        wanted = {"version": FEED_VERSION, "part": "roots", "hello": hello, "wall": program}
        wanted["use"] = use
        answer = await self.call("follow", **wanted)
        change = (await self.next())["params"]
        self._take(change)
        return {**answer, "view": change["roots"], "revision": change["revision"]}

    async def next(self) -> dict[str, Any]:
        with anyio.fail_after(HANG_GUARD):
            while (line := self._lines.pop()) is None:
                self._lines.feed(await self.stream.receive())
        message: dict[str, Any] = json.loads(line)
        return message

    async def view(self) -> dict[str, dict[str, Any]]:
        """Return the roots by their paths, after the next change."""
        message = await self.next()
        assert message["method"] == "change"
        self._take(message["params"])
        return self._roots

    def _take(self, message: dict[str, Any]) -> None:
        change = message["roots"]
        assert message["number"] == self._changes
        gone = {each["path"] for each in change["removed"]}
        assert gone <= self._roots.keys()
        assert all(self._roots.get(each["path"]) != each for each in change["changed"])
        self._changes += 1
        self._roots = {
            path: root for path, root in self._roots.items() if path not in gone
        } | by_path(change)


def by_path(view: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {each["path"]: each for each in view["changed"]}


def wanted(
    name: str = "x",
    program: Mapping[str, Any] = PROGRAM,
    start: object = None,
    **scope: object,
) -> FollowRequest:
    hello = {"version": 1, "client": name, "scope": scope, "start": start}
    return FollowRequest(FEED_VERSION, FeedPart.ROOTS, hello, convert(program, WallProgram))


@asynccontextmanager
async def connected(control: ControlHarness, pid: int = 7) -> AsyncIterator[Warden]:
    async def admit(request: ControlRequest, typed: str | None) -> Actor:
        return PERSON

    ours, theirs = socket.socketpair()
    near = await UNIXSocketStream.from_socket(ours)
    far = await UNIXSocketStream.from_socket(theirs)
    async with anyio.create_task_group() as group, near, far:
        group.start_soon(
            serve_control, near, control.dispatcher, admit, anyio.lowlevel.checkpoint, pid
        )
        yield Warden(far)
        group.cancel_scope.cancel()


async def confined(control: ControlHarness) -> list[dict[str, Any]]:
    listed = (await control.ask(SessionsQuery()))["confined"]
    assert listed == (await control.ask(StatusQuery()))["confined"]
    return list(listed)


async def test_each_change_is_sent_on_the_same_connection() -> None:
    control = ControlHarness(root(1), at(INNER.encode(), project(2)))
    async with connected(control) as warden:
        answer = await warden.follow("claude")
        assert (answer["start"], answer["revision"]) == (None, 2)
        known = control.world.ledger.catalog.projects[P1.encode()].observed.identity
        assert known is not None
        assert known.handle is not None
        assert answer["view"]["changed"] == [
            {
                "path": P1, "name": "p1", "access": "read-write",
                "identity": {
                    "inode": known.inode,
                    "handle": known.handle.hex(), "born_ns": known.born_ns, "owner": known.owner,
                    "device": None,
                },
                "denied": [], "shared_git": None, "shared_git_identity": None, "git_access": "",
                "ends_ns": None, "is_withheld": False, "whole": None,
            }
        ]  # fmt: skip
        await control.decide(DENY, INNER)
        view = await warden.view()
        assert (view[P1]["denied"], view[P1]["is_withheld"]) == ([INNER], True)
        await control.decide(DENY, "p1")
        assert await warden.view() == {}
        await control.decide(FORGET, INNER)
        await control.decide(APPROVE, "p1")
        assert (await warden.view())[P1]["denied"] == []


async def test_an_included_git_directory_is_sent_and_taken_away_with_a_denial() -> None:
    main, tree = project(1), replace(worktree(2, 1), ruling=UNDECIDED)
    control = ControlHarness(main, tree)
    plan = await control.decide(APPROVE, "p2", effect=ApplyMode.DRY_RUN)
    (item,) = plan["shared_git"]
    await control.decide(APPROVE, "p2")
    async with connected(control) as warden:
        view = by_path((await warden.follow("claude"))["view"])
        assert view[P2]["shared_git"] is view[P2]["shared_git_identity"] is None
        assert view[P2]["git_access"] == (
            "its checkout is pending; to include it: rootsd approve p2 --shared-git"
        )
        shown: dict[str, Any] = {
            "shared_git": (item["root"],),
            "shared_git_shown": (item["identity"],),
        }
        await control.decide(APPROVE, "p2", **shown)
        sent = (await warden.view())[P2]
        assert (sent["shared_git"], sent["git_access"]) == (P1, "the approval includes it")
        assert main.observed.identity is not None
        assert sent["shared_git_identity"]["inode"] == main.observed.identity.inode
        for verb, given in ((DENY, None), (FORGET, P1)):
            await control.decide(verb, "p1")
            sent = (await warden.view())[P2]
            assert sent["shared_git"] == given
            assert (sent["shared_git_identity"] is None) is (given is None)


async def test_requests_are_answered_between_views() -> None:
    control = ControlHarness(root(1))
    with pytest.raises(BadRequest, match="no confined program"):
        await control.ask(ReportConfinedRequest())
    async with connected(control) as warden:
        await warden.follow("claude")
        assert await warden.call("report_confined", network=False, opened=["/src/new"]) == {}
        assert (control.servers.opened, control.servers.proposed) == ([], []), "it is no server"
        assert (await warden.call("check", path=P1))["published"]
        await control.decide(DENY, "p1")
        assert await warden.view() == {}


async def test_outside_the_scope_only_a_denial_of_what_is_no_root_is_sent_and_taken_back() -> None:
    control = ControlHarness(root(1), root(2), project(3))
    async with connected(control) as warden:
        answer = await warden.follow("claude", names=["p1"])
        assert by_path(answer["view"]).keys() == {P1}
        assert answer["view"]["denied"] is None
        await control.decide(FORGET, "p2")
        for verb, denied_now in ((DENY, [P3]), (FORGET, [])):
            await control.decide(verb, "p3")
            change = (await warden.next())["params"]["roots"]
            assert (change["denied"], change["changed"], change["removed"]) == (denied_now, [], [])


async def test_the_workspace_grows_by_approvals_and_survives_a_reconnection() -> None:
    control = ControlHarness(root(1), root(2), project(3))
    scope: dict[str, Any] = {"workspace": P1 + "/a"}
    async with connected(control) as warden:
        answer = await warden.follow("x", **scope)
        assert by_path(answer["view"]).keys() == {P1}
        start = answer["start"]
        await control.decide(APPROVE, "p3")
        assert (await warden.view()).keys() == {P1, P3}
    async with connected(control) as warden:
        answer = await warden.follow("x", **scope, start=start)
        assert by_path(answer["view"]).keys() == {P1, P3}


async def test_a_wall_moves_to_another_root_and_never_out_of_all_roots() -> None:
    """The roots of the new place come before the answer."""
    control = ControlHarness(root(1), root(2), project(3))
    async with connected(control) as warden:
        await warden.follow("x", workspace=P1)
        move = {"jsonrpc": "2.0", "id": 1, "method": "move", "params": {"folders": [P2 + "/a"]}}
        await warden.stream.send(json.dumps(move).encode() + b"\n")
        assert (await warden.view()).keys() == {P2}
        moved = (await warden.next())["result"]
        assert (moved["outside"], moved["start"]["anchor"]) == ([], P2)
        assert (await confined(control))[0]["scope"] == [f"workspace:{P2}"]
        for outside in (P3, "/"):
            moved = await warden.call("move", folders=[outside])
            assert moved == {"outside": [outside], "start": None}
        await control.decide(APPROVE, "p3")
        assert (await warden.view()).keys() == {P2, P3}, "it is still in the workspace of p2"


async def test_only_a_follower_of_roots_moves() -> None:
    control, connection = ControlHarness(root(1)), ConnectionState(7)
    with pytest.raises(BadRequest, match="follows no roots"):
        await control.ask(MoveRequest((P1,)), connection)


async def test_the_focus_narrows_a_warden_without_a_scope() -> None:
    control = ControlHarness(root(1), root(2))
    await control.ask(TagRequest(("p1",), CWD, on=("go",)))
    async with connected(control) as warden:
        await warden.follow("claude")
        change = SettingChange(FocusRecord("go"), PERSON, ChangeVerb.FOCUS_SET)
        await control.world.ledger.change_focus(change, lambda f: f.for_all_sessions("go"))
        assert (await warden.view()).keys() == {P1}


@pytest.mark.parametrize("use", [WallUse.PROGRAM, WallUse.SERVER])
async def test_roots_are_added_to_the_scope_of_a_running_program(use: WallUse) -> None:
    control = ControlHarness(root(1), root(2), root(3), project(4))
    async with connected(control) as warden:
        await warden.follow("claude", use=use, names=["p1"])
        (program,) = await confined(control)
        added = await control.ask(AddRootsRequest(("p2",), program["id"]))
        assert added["items"] == [
            {"program": "claude", "name": "p2", "path": P2, "result": "added"}
        ]
        assert await warden.next() == {
            "jsonrpc": "2.0", "method": "widen", "params": {"names": ["p1", "p2"], "tags": []},
        }  # fmt: skip
        assert (await warden.view()).keys() == {P1, P2}
        assert (await confined(control))[0]["scope"] == ["p1", "p2"]
        await control.decide(DENY, "p2")
        assert (await warden.view()).keys() == {P1}
        with pytest.raises(UnknownProject, match="p4 is no root"):
            await control.ask(AddRootsRequest(("p4",), program["id"]))


async def test_a_dry_run_adds_nothing_and_a_program_with_every_root_lacks_none() -> None:
    control = ControlHarness(root(1), root(2))
    async with connected(control) as warden:
        await warden.follow("claude", names=["p1"])
        (program,) = await confined(control)
        dry = AddRootsRequest(("p2",), program["id"], ApplyMode.DRY_RUN)
        assert (await control.ask(dry))["items"][0]["result"] == "would be added"
        assert (await confined(control))[0]["scope"] == ["p1"]
    async with connected(control) as warden:
        await warden.follow("claude")
        (program,) = await confined(control)
        await control.ask(AddRootsRequest(("p2",), program["id"]))
        assert (await warden.next())["params"] == {"names": [], "tags": []}


async def test_a_program_narrowed_by_the_focus_keeps_its_roots_with_a_new_one() -> None:
    control = ControlHarness(root(1), root(2))
    await control.ask(TagRequest(("p1",), CWD, on=("go",)))
    async with connected(control) as warden:
        await warden.follow("claude")
        change = SettingChange(FocusRecord("go"), PERSON, ChangeVerb.FOCUS_SET)
        await control.world.ledger.change_focus(change, lambda f: f.for_all_sessions("go"))
        assert (await warden.view()).keys() == {P1}
        (program,) = await confined(control)
        await control.ask(AddRootsRequest(("p2",), program["id"]))
        assert (await warden.next())["params"] == {"names": ["p2"], "tags": ["go"]}
        assert (await warden.view()).keys() == {P1, P2}


@pytest.mark.parametrize(("caller", "may"), [("a b", True), ("a b c", False), ("a x", False)])
async def test_a_process_adds_roots_without_a_person_only_to_what_it_has_started(
    caller: str, *, may: bool
) -> None:
    control = ControlHarness(root(1), root(2))
    control.sessions_by_pid[7] = frozenset("abc")
    control.sessions_by_pid[8] = frozenset(caller.split())
    async with connected(control) as warden, connected(control, pid=8) as other:
        await warden.follow("claude", names=["p1"])
        if may:
            await other.call("add_to_session", names=["p2"], id="")
            await warden.next()
            assert (await warden.view()).keys() == {P1, P2}
        else:
            with pytest.raises(KeyError, match="result"):
                await other.call("add_to_session", names=["p2"], id="")
    assert control.dispatcher.guarded_command(AddRootsRequest(("p2",), "")) is None
    assert control.dispatcher.guarded_command(AddRootsRequest(("p2",), "id")) is not None


async def test_a_warden_that_follows_the_focus_changes_with_it_at_once() -> None:
    control = ControlHarness(root(1), root(2))
    await control.ask(TagRequest(("p1",), CWD, on=("go",)))
    async with connected(control) as warden:
        answer = await warden.follow("claude", focus=True)
        assert by_path(answer["view"]) == {}
        for tag, shown in (("go", {P1}), (None, set[str]())):
            change = SettingChange(FocusRecord(tag), PERSON, ChangeVerb.FOCUS_SET)
            refocus = partial(Focus.for_new_sessions, tag=tag)
            await control.world.ledger.change_focus(change, refocus)
            assert (await warden.view()).keys() == shown


async def test_a_root_for_one_session_is_shown_only_to_its_wardens() -> None:
    control = ControlHarness(root(1, SessionKey("s1", "an agent")))
    control.world.ledger.expiries._is_over = lambda session: False
    control.sessions_by_pid[7] = frozenset(["s1"])
    for pid, shown in ((7, [P1]), (8, [])):
        async with connected(control, pid) as warden:
            answer = await warden.follow("x")
            assert [*by_path(answer["view"])] == shown


AGENT = SessionKey("s3", "an agent")
"""The session of a process that `s2` started, and `s2` is a warden that `s1` started."""
LINEAGES = {"s3": frozenset(["s1", "s2", "s3"]), "s4": frozenset(["s1", "s4"])}


async def runs(session: SessionKey) -> bool:
    return True


async def test_a_root_for_a_session_behind_the_wall_is_shown() -> None:
    """A session beside the warden has the same processes above it, except for the warden."""
    beside = SessionKey("s4", "another agent")
    control = ControlHarness(root(1, AGENT), root(2, beside), root(3))
    control.world.ledger.expiries._is_over = lambda session: False
    control.sessions_by_pid[7] = frozenset(["s1", "s2"])
    control.lineages.update(LINEAGES)
    async with connected(control) as warden:
        answer = await warden.follow("x")
        assert by_path(answer["view"]).keys() == {P1, P3}


async def test_an_approval_for_a_session_behind_the_wall_is_shown_while_it_runs() -> None:
    control = ControlHarness(project(1), root(2))
    control.world.ledger.expiries._is_over = lambda session: False
    control.sessions_by_pid[7] = frozenset(["s1", "s2"])
    async with connected(control) as warden:
        answer = await warden.follow("x")
        assert by_path(answer["view"]).keys() == {P2}
        control.services = replace(
            control.services,
            requests=SessionRequests(lambda at: (AGENT,) if at == P1.encode() else (), runs),
        )
        await control.decide(APPROVE, "p1")
        await control.decide(DENY, "p2")
        assert await warden.view() == {}, "the process of the session cannot be seen yet"
        control.lineages.update(LINEAGES)
        await control.decide(APPROVE, "p2")
        assert (await warden.view()).keys() == {P2}
        assert (await warden.view()).keys() == {P1, P2}


@pytest.mark.parametrize(("pid", "found"), [(41, ["process:boot:41:5"]), (40, []), (0, [])])
async def test_a_wall_is_the_session_of_its_owner_if_that_is_above_its_connection(
    pid: int, found: list[str]
) -> None:
    control = ControlHarness(root(1))
    control.sessions_by_pid[7] = frozenset(["process:boot:7:9", "process:boot:41:5"])
    async with connected(control) as warden:
        await warden.follow("claude", {**PROGRAM, "pid": pid})
        sessions = control.services.wall.wardens.sessions()
        assert [key.id for key in sessions] == found
        assert [key.label for key in sessions] == ["claude, pid 41"] * len(found)


async def test_the_entry_lasts_as_long_as_the_connection() -> None:
    control = ControlHarness(root(1))
    async with connected(control) as warden:
        about = {"pid": 41, "program": "/usr/bin/claude", "landlock": 7}
        await warden.follow("claude", {**PROGRAM, **about})
        counts = {"roots": 12, "read_only": 2, "masked": 1, "waiting": 3}
        hidden = ["/src/api: another folder is there now"]
        state = {**counts, "holders": ["43 node"], "not_shown": hidden}
        open_, refused = ["TCP"], ["ssh git@host"]
        await warden.call("report_confined", stays_open=open_, refused=refused, state=state)
        [entry] = await confined(control)
        assert entry == {
            "id": entry["id"], "name": "claude", "warden": 7, "engine": "namespaces",
            "network": True, "scope": [], "since": "2026-03-04T12:00:00Z",
            "stays_open": open_, "refused": refused, **about, **state,
        }  # fmt: skip
        await warden.call("report_confined", network=False)
        [changed] = await confined(control)
        assert changed == {**entry, "network": False}
        await warden.stream.aclose()
        with anyio.fail_after(HANG_GUARD):
            while (await control.ask(SessionsQuery()))["confined"]:
                await anyio.lowlevel.checkpoint()


async def test_texts_from_wardens_are_shortened_and_escaped() -> None:
    control, connection = ControlHarness(), ConnectionState(7)
    lines = tuple("\x1b[2J" + "x" * 999 for _ in range(99))
    name = "a\x1b\u202e" + "b" * 999
    program = {**PROGRAM, "pid": -5, "program": lines[0]}
    await control.ask(wanted(name, program), connection)
    state = ConfinedState(
        roots=-1, read_only=1 << 40, masked=0, waiting=0, holders=[*lines], not_shown=[*lines]
    )
    report = ReportConfinedRequest(stays_open=lines, refused=lines, state=state)
    await control.ask(report, connection)
    [entry] = await confined(control)
    texts = [
        entry["name"],
        entry["program"],
        *entry["stays_open"],
        *entry["refused"],
        *entry["holders"],
        *entry["not_shown"],
    ]
    assert all(text.isprintable() and len(text) <= MAX_LINE_LENGTH for text in texts)
    assert len(entry["stays_open"]) == len(entry["holders"]) == MAX_LINES
    assert (entry["pid"], entry["roots"], entry["read_only"]) == (0, 0, 0)


@pytest.mark.parametrize("verb", [DENY, FORGET])
async def test_a_command_is_answered_once_the_wall_has_applied_it(verb: DecisionVerb) -> None:
    control = ControlHarness(root(1))
    answers = []
    async with connected(control) as warden, anyio.create_task_group() as group:

        async def decide() -> None:
            answers.append(await control.decide(verb, "p1"))

        await warden.follow("claude")
        await warden.call("report_confined", applied=0)
        group.start_soon(decide)
        assert await warden.view() == {}
        await warden.call("report_confined", applied=0)
        assert answers == []
        await warden.call("report_confined", applied=1)
        with anyio.fail_after(HANG_GUARD):
            while not answers:
                await anyio.lowlevel.checkpoint()
    assert answers[0]["warnings"] == []


async def test_a_command_names_a_wall_that_has_not_applied_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The other one is not built yet. It applies everything before its program starts."""
    monkeypatch.setattr(wardens, "_APPLY_TIMEOUT_S", 0.01)
    control = ControlHarness(root(1))
    async with connected(control) as warden, connected(control) as starting:
        await starting.follow("codex")
        await warden.follow("claude")
        await warden.call("report_confined", state=ConfinedState(
            roots=1, read_only=0, masked=0, waiting=0, holders=[], not_shown=[]
        ))  # fmt: skip
        (warning,) = (await control.decide(DENY, "p1"))["warnings"]
    assert warning == (
        "the wall of claude has not confirmed this change yet;"
        " it may still show what it showed before (try: rootsd sessions)"
    )
    assert (await control.decide(APPROVE, "p1"))["warnings"] == []


async def test_each_changed_file_is_told_once_for_a_program() -> None:
    control, connection = ControlHarness(), ConnectionState(7)
    await control.ask(wanted("claude"), connection)
    told: list[tuple[str, Sequence[str]]] = []
    control.services.wall.wardens.on_changed = lambda *told_now: told.append(told_now)
    for names in (("web/.envrc",), ("web/.envrc", "web/h"), ("web/h",)):
        await control.ask(ReportConfinedRequest(changed=names), connection)
    assert told == [("claude", ["web/.envrc"]), ("claude", ["web/h"])]


async def test_there_is_a_limit_on_wardens_and_a_connection_has_one_program() -> None:
    control = ControlHarness()
    connections = [ConnectionState(7) for _ in range(MAX_WARDENS)]
    for connection in connections:
        await control.ask(wanted(), connection)
    with pytest.raises(Busy):
        await control.ask(wanted())
    with pytest.raises(BadRequest, match="already"):
        await control.ask(wanted(), connections[0])
    assert connections[0].subscription is not None
    connections[0].subscription.close()
    await control.ask(wanted())


@pytest.mark.parametrize(
    "request_",
    [
        wanted(cwd="src"),
        wanted(workspace="/a\0"),
        wanted(workspace="/", start={"anchor": "src", "approvals": 1}),
    ],
)
async def test_a_wrong_scope_is_refused(request_: FollowRequest) -> None:
    control = ControlHarness()
    with pytest.raises(BadRequest, match="absolute path"):
        await control.ask(request_)
    assert await confined(control) == []


async def test_the_settings_are_those_in_force() -> None:
    control = ControlHarness()
    control.wall_settings = WallSettings(
        read=(b"/a",), keep=(b"/home/ann/.claude",), network=False, on_revoke=RevokePolicy.KILL
    )
    answer = await control.ask(wanted())
    assert answer["settings"]["keep"] == ["/home/ann/.claude"]
    assert from_json(WallSettings, answer["settings"]) == control.wall_settings


async def test_the_first_view_is_verified_and_an_invisible_change_does_not_recompute_it() -> None:
    control = ControlHarness(root(1), root(2), project(3))
    del control.world.disk.folders[P2.encode()]
    async with connected(control) as warden:
        assert [*by_path((await warden.follow("x"))["view"])] == [P1]
    wardens = control.services.wall.wardens
    before, catalog = wardens.roots(), control.world.ledger.catalog
    await control.decide(DENY, "p3")
    assert control.world.ledger.catalog is not catalog
    assert wardens.roots().roots is before.roots


async def test_the_end_of_an_approval_is_sent_also_for_a_worktree_that_inherits_it() -> None:
    """The warden ends it while no daemon answers."""
    control = ControlHarness(replace(project(1), ruling=UNDECIDED), worktree(2, 1))
    async with connected(control) as warden:
        await control.decide(APPROVE, "p1", lasts=60)
        first = by_path((await warden.follow("claude"))["view"])
        known = control.world.ledger.catalog.expiring[P1.encode()].expires
        assert known is not None
        ends = {path: root["ends_ns"] for path, root in first.items()}
        assert ends[P1] == known.since_boot_ns
        assert set(ends.values()) == {known.since_boot_ns}
        await control.decide(APPROVE, "p1")
        assert (await warden.view())[P1]["ends_ns"] is None


@pytest.mark.parametrize(
    ("version", "remedy"),
    [
        (FEED_VERSION - 1, "start the program again, or rootsd down && rootsd up"),
        (FEED_VERSION + 1, "rootsd down && rootsd up"),
    ],
)
async def test_a_program_of_another_version_gets_no_roots_and_the_next_command(
    version: int, remedy: str
) -> None:
    control = ControlHarness(root(1))
    with pytest.raises(OtherVersion, match=f"version {version} .* version {FEED_VERSION}") as why:
        await control.ask(replace(wanted(), version=version))
    assert why.value.remedy == remedy
    assert await confined(control) == []


async def test_a_follower_of_roots_is_no_confined_program() -> None:
    """As `rootsd sync` follows them."""
    control = ControlHarness(root(1), at(INNER.encode(), denied(2)))
    async with connected(control) as follower:
        wanted_parts = {"version": FEED_VERSION, "part": "roots"}
        await follower.call("follow", **wanted_parts)
        change = (await follower.next())["params"]
        assert ([*by_path(change["roots"])], change["roots"]["denied"]) == ([P1], [INNER])
        assert await confined(control) == []
        change = SettingChange(FocusRecord("go"), PERSON, ChangeVerb.FOCUS_SET)
        await control.world.ledger.change_focus(change, lambda f: f.for_all_sessions("go"))
        assert (await follower.next())["params"]["focus"] == "go"


async def test_a_server_behind_the_wall_has_a_session_with_its_roots_and_its_scope() -> None:
    control = ControlHarness(root(1), at(INNER.encode(), project(2)), root(3))
    async with connected(control) as warden:
        await warden.follow("a server", use=WallUse.SERVER, names=["p1"])
        (session,) = control.servers.opened
        assert session.names == ["a server"]
        assert [scope.names for scope in session.scopes] == [{"p1"}]
        await control.decide(DENY, INNER)
        await warden.view()
        await control.decide(DENY, "p1")
        await warden.view()
        sent = [[root.name for root in each.roots] for each in session.sets]
        assert sent == [["p1"], ["p1"], []], "the wall masks the denied project"
        told = {"roots": 21, "names": ["p1", "\x1b"]}
        await warden.call("report_confined", told=told, opened=["/src/new"])
        assert session.reported == [(21, ("p1", r"\u{1b}"))]
        assert control.servers.proposed == [("/src/new", "a server", [])]
        await warden.stream.aclose()
        with anyio.fail_after(HANG_GUARD):
            while control.servers.is_open:
                await anyio.lowlevel.checkpoint()
