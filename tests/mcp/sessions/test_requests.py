"""Requests for folders, with a fake disk."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest
from msgspec.structs import replace

from rootsd.core.changes import AuditNote
from rootsd.core.errors import Busy, NotPresent
from rootsd.core.inputs import AddRule, Observation, Order, ProjectGone, ProjectObserved
from rootsd.core.model import Actor, ActorKind, Project, ProjectKind, Rule, SessionKey, Verdict
from rootsd.mcp.sessions.request_bounds import FORGOTTEN_AFTER_S, RequestBounds, RootRequestLimits
from rootsd.mcp.sessions.requests import RootRequest, RootRequestQueue
from rootsd.wire.projects import RequestNote
from support.ledger_harness import (
    HANG_GUARD,
    HOME,
    PLACES,
    SOURCES,
    FakeSessions,
    LedgerHarness,
    approve,
    deny,
    path,
    rule,
)
from support.sample_decisions import PERSON, approved, denied, identity, project, worktree

OTHER = b"/projects/other"
AGENT = SessionKey("process:boot:7:70", "an agent")
OTHER_AGENT = SessionKey("process:boot:8:80", "another agent")


async def settled() -> None:
    """Wait until every task and every thread has done what it can."""
    threads = anyio.to_thread.current_default_thread_limiter()
    with anyio.fail_after(HANG_GUARD):
        await anyio.wait_all_tasks_blocked()
        while threads.borrowed_tokens:
            await anyio.lowlevel.checkpoint()
            await anyio.wait_all_tasks_blocked()


class Clients:
    """Root requests on a disk with the folders of OTHER and of projects 1 to 9."""

    def __init__(
        self,
        *projects: Project,
        rules: Sequence[Rule] = (),
        limits: RootRequestLimits | None = None,
    ) -> None:
        self.world = LedgerHarness(*projects, rules=rules)
        self.world.disk.folders |= {path(n): identity(n) for n in range(1, 10)}
        self.world.disk.folders[OTHER] = identity(99)
        self.main_checkouts: dict[bytes, bytes] = {}
        self.now = 0.0
        self.looked: list[bytes] = []
        self.sessions = FakeSessions()
        self.queue = RootRequestQueue(
            self.world.ledger,
            observe=self.look,
            propose=self.propose,
            sessions=self.sessions,
            clock=lambda: self.now,
            limits=limits,
        )

    async def look(self, where: bytes) -> Observation:
        self.looked.append(where)
        there = self.world.disk.folders.get(where)
        if there is None:
            return ProjectGone(where)
        main = self.main_checkouts.get(where)
        return ProjectObserved(where, ProjectKind.GIT, there, main_checkout=main)

    async def propose(self, where: bytes) -> None:
        seen = await self.look(where)
        if isinstance(seen, ProjectGone):
            raise NotPresent("there is no such folder")
        await self.world.ledger.observe([seen])

    async def submit(
        self,
        where: bytes,
        asker: str = "an agent",
        reason: str = "to fix it",
        session: SessionKey | None = None,
    ) -> RootRequest:
        """A request, and all that comes of it."""
        request = RootRequest(where, asker, reason, session)
        self.queue.submit(request)
        await settled()
        return request

    async def execute(self, *orders: Order) -> None:
        """A person's orders, and all that comes of them."""
        with anyio.fail_after(HANG_GUARD):
            await self.world.ledger.execute(orders)
        await settled()

    def attempts(self) -> list[AuditNote]:
        """The requests in the log."""
        saved = (each for batch in self.world.saver.batches for each in batch)
        return [each for each in saved if isinstance(each, AuditNote)]

    def is_waiting(self, where: bytes) -> bool:
        catalog = self.world.ledger.catalog
        known = catalog.projects.get(where)
        return known is not None and catalog.is_pending(known)


@asynccontextmanager
async def served(clients: Clients) -> AsyncIterator[Clients]:
    async with anyio.create_task_group() as group:
        group.start_soon(clients.queue.process_queue)
        group.start_soon(clients.queue.follow_decisions)
        yield clients
        group.cancel_scope.cancel()


async def test_a_folder_becomes_pending_with_client_name_and_reason_and_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    async with served(Clients()) as clients:
        await clients.submit(OTHER)
        assert clients.is_waiting(OTHER)
        assert clients.queue.note_on(OTHER) == 'an agent asks for it: "to fix it"'
    assert 'an agent asks for /projects/other: "to fix it"' in caplog.text


async def test_a_folder_that_is_already_pending_gets_the_note() -> None:
    async with served(Clients(project(1))) as clients:
        await clients.submit(path(1))
        assert clients.queue.note_on(path(1)) is not None
        assert clients.looked == []


async def test_a_request_stays_open_when_no_parent_proposes_the_folder_any_more() -> None:
    async with served(Clients(project(1), project(2))) as clients:
        await clients.submit(path(1))
        strays = [
            ProjectObserved(path(n), ProjectKind.GIT, identity(n), proposed=False) for n in (1, 2)
        ]
        await clients.world.ledger.observe(strays)
        await anyio.wait_all_tasks_blocked()
        assert clients.is_waiting(path(1))
        assert not clients.is_waiting(path(2))
        assert clients.queue.note_on(path(1)) is not None
        await clients.world.ledger.observe([ProjectGone(path(1))])
        del clients.world.disk.folders[path(1)]
        await clients.world.ledger.observe([ProjectGone(path(1))])
        await anyio.wait_all_tasks_blocked()


async def test_the_first_request_of_an_asker_stays() -> None:
    async with served(Clients(project(1))) as clients:
        await clients.submit(path(1), session=AGENT)
        await clients.submit(path(1), "another name", "for no good", session=AGENT)
        assert clients.queue.note_on(path(1)) == 'an agent asks for it: "to fix it"'


async def test_the_requests_of_all_sessions_for_a_folder_are_kept() -> None:
    """Otherwise a program could ask before the agent that needs the folder, under its name."""
    async with served(Clients(project(1))) as clients:
        await clients.submit(path(1), "an agent", "first", session=OTHER_AGENT)
        await clients.submit(path(1), "an agent", "second", session=AGENT)
        assert clients.queue.sessions_requesting(path(1)) == (OTHER_AGENT, AGENT)
        note = clients.queue.note_on(path(1))
        assert note == (
            'another agent (its own name: "an agent") asks for it: "first";'
            ' an agent asks for it: "second"'
        )
        assert isinstance(note, RequestNote)
        assert [(each["session"], each["by"]) for each in note.requests] == [
            ("8", "another agent"),
            ("7", "an agent"),
        ]
        clients.sessions.ended.add(OTHER_AGENT)
        assert clients.queue.sessions_requesting(path(1)) == (AGENT,)


async def test_the_requests_for_one_folder_are_bounded() -> None:
    async with served(Clients(project(1), limits=RootRequestLimits(max_askers=2))) as clients:
        for pid in range(3):
            await clients.submit(path(1), session=SessionKey(f"process:boot:{pid}:1", "x"))
        assert len(clients.queue.sessions_requesting(path(1))) == 2


@pytest.mark.parametrize("name", ["mcp", "a client without a name"])
async def test_a_client_with_the_name_of_its_library_is_shown_by_its_process(name: str) -> None:
    async with served(Clients(project(1), project(2))) as clients:
        await clients.submit(path(1), name, session=AGENT)
        assert clients.queue.note_on(path(1)) == 'an agent asks for it: "to fix it"'
        request = RootRequest(path(2), name, "it is open", None, "zed, pid 4")
        clients.queue.submit(request)
        await anyio.wait_all_tasks_blocked()
        assert clients.queue.note_on(path(2)) == 'zed, pid 4 asks for it: "it is open"'


async def test_a_request_is_in_the_log_and_in_the_note_after_its_session_has_ended() -> None:
    async with served(Clients(project(1))) as clients:
        await clients.submit(path(1), session=AGENT)
        await clients.submit(path(1), "again", session=AGENT)
        clients.sessions.ended.add(AGENT)
        said = 'an agent asked for it, and has ended: "to fix it"'
        assert clients.queue.last_note_on(path(1)) == said
        assert not isinstance(clients.queue.last_note_on(path(1)), RequestNote)
        await clients.submit(path(2))  # the ended request makes room
        assert clients.queue.last_note_on(path(1)) == said
        noted = clients.attempts()
        assert [(each.verb.value, each.text) for each in noted] == [
            ("requested", f'{path(n).decode()}: "to fix it"') for n in (1, 2)
        ]
        assert noted[0].actor == Actor(ActorKind.CALLER, "an agent")
        await clients.execute(approve(1))
        assert clients.world.published() == {path(1)}
        assert clients.queue.last_note_on(path(1)) is None


async def test_a_session_that_has_ended_leaves_its_folder_and_room_for_the_next_request() -> None:
    async with served(Clients(project(1), limits=RootRequestLimits(max_pending=1))) as clients:
        await clients.submit(path(1), session=AGENT)
        clients.sessions.ended.add(AGENT)
        assert clients.queue.note_on(path(1)) is None
        assert clients.queue.sessions_requesting(path(1)) == ()
        assert clients.is_waiting(path(1))
        await clients.submit(path(1), "another", session=OTHER_AGENT)
        note = 'another agent (its own name: "another") asks for it: "to fix it"'
        assert clients.queue.note_on(path(1)) == note
        assert clients.queue.sessions_requesting(path(1)) == (OTHER_AGENT,)


async def test_a_request_of_an_ended_session_leaves_no_note() -> None:
    async with served(Clients(project(1))) as clients:
        heard: list[RootRequest] = []
        clients.queue.on_pending = heard.append
        clients.sessions.ended.add(AGENT)
        await clients.submit(path(1), session=AGENT)
        assert clients.queue.note_on(path(1)) is None
        assert heard == []


@pytest.mark.parametrize("where", [b"/no/such", b"/etc", HOME, HOME + b"/.ssh", b"/"])
async def test_a_path_that_cannot_be_a_root_is_dropped_silently(
    where: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with served(Clients()) as clients:
        await clients.submit(where)
        assert clients.queue.note_on(where) is None
        assert not clients.world.ledger.catalog.projects
    assert caplog.text == ""


@pytest.mark.parametrize("known", [denied(1), approved(1)])
async def test_a_decided_folder_is_not_proposed_again(known: Project) -> None:
    async with served(Clients(known)) as clients:
        before = clients.world.ledger.catalog
        await clients.submit(path(1))
        assert clients.queue.note_on(path(1)) is None
        assert clients.world.ledger.catalog is before


async def test_nothing_below_a_denied_folder_is_proposed() -> None:
    async with served(Clients(denied(1))) as clients:
        inside = path(1) + b"/lib"
        clients.world.disk.folders[inside] = identity(50)
        await clients.submit(inside)
        assert inside not in clients.world.ledger.catalog.projects


async def test_a_request_never_causes_an_approval_by_a_rule() -> None:
    async with served(Clients(rules=[rule(Verdict.APPROVED, SOURCES)])) as clients:
        await clients.submit(path(1))
        assert path(1) not in clients.world.ledger.catalog.projects
        await clients.submit(OTHER)
        assert clients.is_waiting(OTHER)


async def test_a_request_never_causes_an_approval_by_a_main_checkout() -> None:
    async with served(Clients(approved(1))) as clients:
        clients.main_checkouts[OTHER] = path(1)
        young = worktree(2, main=1).observed.identity
        assert young is not None
        clients.world.disk.folders[OTHER] = young
        await clients.submit(OTHER)
        assert OTHER not in clients.world.ledger.catalog.projects


async def test_a_decided_request_makes_room_for_the_next() -> None:
    limits = RootRequestLimits(max_pending=2)
    async with served(Clients(project(1), project(2), limits=limits)) as clients:
        await clients.submit(path(1))
        await clients.submit(path(2))
        await clients.submit(OTHER)
        assert OTHER not in clients.world.ledger.catalog.projects
        await clients.execute(deny(1))
        await clients.submit(OTHER)
        assert clients.is_waiting(OTHER)
        assert clients.queue.note_on(path(1)) is None


async def test_one_session_cannot_use_up_the_places_of_the_others() -> None:
    projects = [project(n) for n in range(1, 8)]
    limits = RootRequestLimits(own_unanswered=2, max_pending=3)
    async with served(Clients(*projects, limits=limits)) as clients:
        for number in (1, 2):
            await clients.submit(path(number), session=AGENT)
        for _ in range(3):
            with pytest.raises(Busy, match="asked for 2 folders and has no answer yet"):
                await clients.submit(path(3), "under another name", session=AGENT)
        await clients.submit(path(1), session=AGENT)  # the same folder counts once
        await clients.submit(path(4), session=OTHER_AGENT)
        assert clients.queue.sessions_requesting(path(4)) == (OTHER_AGENT,)
        await clients.execute(deny(1))
        await clients.submit(path(3), session=AGENT)
        await clients.execute(approve(2))
        await clients.submit(path(5), session=AGENT)
        assert clients.queue.sessions_requesting(path(5)) == (AGENT,)


async def test_control_without_the_bound_one_session_uses_up_the_places_of_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(RequestBounds, "admit", lambda *_: None)
    monkeypatch.setattr(RootRequestQueue, "_count_of", lambda *_: 0)
    limits = RootRequestLimits(own_unanswered=2, max_pending=3)
    projects = [project(n) for n in range(1, 5)]
    async with served(Clients(*projects, limits=limits)) as clients:
        for number in (1, 2, 3):
            await clients.submit(path(number), session=AGENT)
        await clients.submit(path(4), session=OTHER_AGENT)
        assert clients.queue.sessions_requesting(path(4)) == ()


def _agents(count: int) -> list[SessionKey]:
    return [replace(AGENT, id=f"flooding-{number}") for number in range(count)]


@pytest.mark.parametrize("wanted", [path(9), OTHER])
async def test_askers_that_fill_all_places_together_give_way_to_one_with_fewer(
    wanted: bytes,
) -> None:
    limits = RootRequestLimits(own_unanswered=3, max_pending=6)
    first, second = _agents(2)
    projects = [project(n) for n in (1, 2, 3, 4, 5, 6, 9)]
    async with served(Clients(*projects, limits=limits)) as clients:
        for number in (1, 2, 3):
            await clients.submit(path(number), session=first)
            await clients.submit(path(number + 3), session=second)
        await clients.submit(wanted, session=OTHER_AGENT)
        assert clients.queue.sessions_requesting(wanted) == (OTHER_AGENT,)
        kept = [n for n in range(1, 7) if clients.queue.sessions_requesting(path(n))]
        assert len(kept) == 5
        assert {1, 2, 4, 5} <= {*kept}, "only the newest request of one of them gave way"


async def test_with_equal_shares_no_request_gives_way() -> None:
    """The control: a request that a person may have read stays."""
    limits = RootRequestLimits(max_pending=3)
    agents = _agents(3)
    projects = [project(n) for n in (1, 2, 3, 4)]
    async with served(Clients(*projects, limits=limits)) as clients:
        for number, agent in enumerate(agents, 1):
            await clients.submit(path(number), session=agent)
        await clients.submit(path(4), session=OTHER_AGENT)
        assert clients.queue.sessions_requesting(path(4)) == ()
        for number, agent in enumerate(agents, 1):
            assert clients.queue.sessions_requesting(path(number)) == (agent,)


@pytest.mark.parametrize("bounded", [True, False])
async def test_only_with_its_own_bound_a_session_leaves_turns_for_the_others(
    bounded: bool,
) -> None:
    own = 2 if bounded else 100
    limits = RootRequestLimits(burst=4, per_second=0.001, own_burst=own)
    async with served(Clients(limits=limits)) as clients:
        for number in range(4):
            with suppress(Busy):
                await clients.submit(b"/no/%d" % number, session=AGENT)
        if bounded:
            await clients.submit(OTHER, session=OTHER_AGENT)
        else:
            with pytest.raises(Busy, match="too many requests"):
                await clients.submit(OTHER, session=OTHER_AGENT)
        assert clients.is_waiting(OTHER) is bounded


async def test_the_bound_of_one_asker_tells_it_nothing_about_folders() -> None:
    """A request that is dropped counts like one that waits for a person."""
    limits = RootRequestLimits(own_unanswered=2)
    async with served(Clients(denied(1), project(2), limits=limits)) as clients:
        for where in (path(1), b"/no/such/folder"):
            await clients.submit(where, session=AGENT)
        with pytest.raises(Busy, match="asked for 2 folders"):
            await clients.submit(path(2), session=AGENT)
        clients.now += FORGOTTEN_AFTER_S + 1
        await clients.submit(path(2), session=AGENT)
        assert clients.queue.sessions_requesting(path(2)) == (AGENT,)


async def test_control_a_bound_on_requests_that_exist_would_tell_about_folders(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An asker that is refused only for a folder that became a request learns which one did."""
    limits = RootRequestLimits(own_unanswered=1)
    async with served(Clients(denied(1), project(2), limits=limits)) as clients:
        monkeypatch.setattr(
            clients.queue, "_is_answered", lambda asked: not clients.is_waiting(asked.path)
        )
        await clients.submit(b"/no/such/folder", session=AGENT)
        await clients.submit(path(2), session=AGENT)


async def test_old_requests_of_one_session_still_leave_places_for_the_others() -> None:
    limits = RootRequestLimits(own_unanswered=1, max_pending=2)
    async with served(Clients(*(project(n) for n in (1, 2, 3)), limits=limits)) as clients:
        await clients.submit(path(1), session=AGENT)
        clients.now += FORGOTTEN_AFTER_S + 1
        await clients.submit(path(2), session=AGENT)
        assert clients.queue.sessions_requesting(path(2)) == ()
        await clients.submit(path(3), session=OTHER_AGENT)
        assert clients.queue.sessions_requesting(path(3)) == (OTHER_AGENT,)


async def test_too_many_requests_are_refused_for_a_while() -> None:
    limits = RootRequestLimits(burst=2, per_second=0.1)
    async with served(Clients(limits=limits)) as clients:
        for where in (b"/no/1", b"/no/2"):
            await clients.submit(where)
        with pytest.raises(Busy, match="in 10 seconds"):
            await clients.submit(OTHER)
        clients.now += 10
        await clients.submit(OTHER)
        assert clients.is_waiting(OTHER)


async def test_the_queue_of_unprocessed_requests_is_bounded() -> None:
    clients = Clients(limits=RootRequestLimits(burst=1, per_second=1.0))
    await clients.submit(b"/no/1")
    clients.now += 1
    with pytest.raises(Busy):
        await clients.submit(b"/no/2")


async def test_only_the_clients_that_the_user_saw_learn_of_the_denial() -> None:
    async with served(Clients(project(1), project(2))) as clients:
        first = await clients.submit(path(1))
        second = await clients.submit(path(1), session=AGENT)
        elsewhere = await clients.submit(path(2))
        await clients.execute(deny(1))
        later = await clients.submit(path(1))
        told = [request.is_denied for request in (first, second, elsewhere, later)]
        assert told == [True, True, False, False]
        with anyio.fail_after(HANG_GUARD):
            await first.wait_denied()


async def test_other_decisions_are_not_reported_as_denials() -> None:
    inside = path(1) + b"/lib"
    clients = Clients(project(1))
    clients.world.disk.folders[inside] = identity(50)
    async with served(clients):
        below = await clients.submit(inside)
        approved_one = await clients.submit(path(1))
        ruled = await clients.submit(OTHER)
        assert clients.is_waiting(inside)
        await clients.execute(AddRule(OTHER, Verdict.DENIED, PERSON))
        await clients.execute(approve(1))
        await clients.execute(deny(1))
        assert [request.is_denied for request in (below, approved_one, ruled)] == [False] * 3


@pytest.mark.parametrize(
    "above", [b"/elsewhere", SOURCES, HOME], ids=["several", "parent", "home"]
)
async def test_a_folder_of_several_projects_is_not_proposed_for_being_open(
    above: bytes,
) -> None:
    """An agent that asks for it by name is told apart: a person then sees who asks, and why."""
    inside = [replace(project(n), path=b"/elsewhere/%d" % n) for n in (1, 2)]
    async with served(Clients(*inside)) as clients:
        await clients.world.ledger.set_places(PLACES._replace(parents=(SOURCES,)))
        clients.world.disk.folders |= {above: identity(50), b"/alone": identity(51)}
        await clients.submit(above)
        assert above not in clients.world.ledger.catalog.projects
        await clients.submit(b"/elsewhere/1")
        await clients.submit(b"/alone")
        if above == b"/elsewhere":
            await clients.submit(above, session=AGENT)
            assert clients.is_waiting(above)
        assert clients.is_waiting(b"/alone")
        assert clients.queue.note_on(b"/elsewhere/1") is not None


async def test_a_folder_of_one_project_is_proposed_because_a_client_has_it_open() -> None:
    """It may be the checkout around a package. The request of an agent is judged as before."""
    inside = [replace(project(n), path=b"/one/%d" % n) for n in (1,)]
    async with served(Clients(*inside, replace(project(3), path=b"/two/a"))) as clients:
        clients.world.disk.folders |= {b"/one": identity(50)}
        await clients.submit(b"/one")
        assert clients.is_waiting(b"/one")
