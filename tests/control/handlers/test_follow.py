"""A screen follows everything on one connection, and lists the roots of a session."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from rootsd.control.routes import ConnectionState
from rootsd.core.access import Access
from rootsd.core.changes import ChangeVerb, SettingChange
from rootsd.core.encoding import FocusRecord
from rootsd.core.inputs import ProjectGone
from rootsd.core.model import (
    ProjectKind,
    PublishedRoot,
    Verdict,
)
from rootsd.core.wall import WallEngine
from rootsd.wire.feed import FEED_VERSION
from rootsd.wire.follow import MAX_FOLLOW_ITEMS, FeedPart, FollowRequest, SessionRootsQuery
from rootsd.wire.request import BadRequest
from rootsd.wire.wall import ReportConfinedRequest, WallProgram
from support.control_harness import APPROVE, DENY, ControlHarness, a_session
from support.ledger_harness import HANG_GUARD, add_rule, at, missing, path, sight
from support.sample_decisions import PERSON, approved, denied, project, worktree

SCREEN = FollowRequest(FEED_VERSION, FeedPart.SCREEN)
WALL = FollowRequest(
    FEED_VERSION,
    FeedPart.ROOTS,
    {"version": 1, "client": "claude"},
    WallProgram(
        pid=0,
        program="",
        engine=WallEngine.NAMESPACES,
        landlock=0,
        network=True,
    ),
)


class Screen:
    """A follower that sums up its updates."""

    def __init__(self) -> None:
        self.groups: dict[str, list[str]] = {}
        self.items: dict[str, Mapping[str, Any]] = {}
        self.updates: list[Mapping[str, Any]] = []
        self._sent = asyncio.Queue[Mapping[str, Any]](1)

    async def take(self, method: str, change: Mapping[str, Any]) -> None:
        assert method == "change"
        await self._sent.put(change)

    async def next(self) -> Mapping[str, Any]:
        """Return the next update."""
        with anyio.fail_after(HANG_GUARD):
            change = await self._sent.get()
        assert change["number"] == len(self.updates)
        update = {**change["screen"], "focus": change["focus"]}
        self.updates.append(update)
        for each in update["projects"]:
            self.items[each["item"]["id"]] = {**each["item"], "group": each["group"]}
        for id_ in update["gone"]:
            del self.items[id_]
        return update

    def names(self, group: str) -> set[str]:
        """Return the names of the projects in a group."""
        return {item["name"] for item in self.items.values() if item["group"] == group}


@asynccontextmanager
async def following(control: ControlHarness) -> AsyncIterator[Screen]:
    """Follow, and take the first update."""
    connection, screen = ConnectionState(7), Screen()
    await control.ask(SCREEN, connection)
    assert connection.subscription is not None
    async with anyio.create_task_group() as group:
        group.start_soon(connection.subscription.send_updates, screen.take)
        await screen.next()
        yield screen
        group.cancel_scope.cancel()
    connection.subscription.close()


async def test_the_first_update_has_everything_in_its_group() -> None:
    undecided = missing(project(4))
    control = ControlHarness(project(1), approved(2), denied(3), undecided)
    async with following(control) as screen:
        first = screen.updates[0]
        assert screen.names("pending") == {"p1"}
        assert len(screen.names("approved")) == len(screen.names("denied")) == 1
        assert screen.names("other") == {"p4"}
        assert first["is_complete"]
        assert first["focus"] is None
        assert first["gone"] == []
        assert [session["id"] for session in first["sessions"]] == ["open"]
        assert first["confined"] == []


async def test_an_update_has_only_what_changed() -> None:
    control = ControlHarness(project(1), project(2), project(3))
    async with following(control) as screen:
        await control.decide(APPROVE, "/home/ann/src/p1", tags=("work",))
        update = await screen.next()
        (changed,) = update["projects"]
        assert changed["group"] == "approved"
        assert changed["item"]["published"]
        assert changed["item"]["tags"] == ["work"]
        assert update["sessions"] is None
        assert update["confined"] is None
        await control.decide(DENY, "/home/ann/src/p2")
        assert [each["item"]["name"] for each in (await screen.next())["projects"]] == ["p2"]
        assert screen.names("pending") == {"p3"}


async def test_a_new_name_of_another_project_follows_the_decision() -> None:
    """A name that a decision took is proposed to no other project."""
    first, second = at(b"/home/ann/src/a/api", project(1)), at(b"/home/ann/src/b/web", project(2))
    control = ControlHarness(first, second)
    async with following(control) as screen:
        assert screen.names("pending") == {"api", "web"}
        await control.decide(APPROVE, "/home/ann/src/b/web", name="api")
        (decided,) = (await screen.next())["projects"]
        assert (decided["group"], decided["item"]["name"]) == ("approved", "api")
        await screen.next()
        assert screen.names("pending") == {"a/api"}


async def test_a_project_that_rootsd_forgets_is_gone() -> None:
    control = ControlHarness(project(1), project(2))
    async with following(control) as screen:
        (id_,) = (id_ for id_, item in screen.items.items() if item["name"] == "p1")
        await control.world.ledger.apply_events([ProjectGone(path(1))])
        assert (await screen.next())["gone"] == [id_]
        assert screen.names("pending") == {"p2"}


async def test_an_item_has_the_identity_of_the_folder_and_changes_with_it() -> None:
    control = ControlHarness(project(1))
    async with following(control) as screen:
        (before,) = (item["identity"] for item in screen.items.values())
        await control.world.ledger.apply_events([sight(1, now=9)])
        await screen.next()
        (after,) = (item["identity"] for item in screen.items.values())
        assert before
        assert after
        assert before != after


async def test_many_projects_come_in_several_updates() -> None:
    control = ControlHarness(*(project(number) for number in range(MAX_FOLLOW_ITEMS + 7)))
    async with following(control) as screen:
        assert not screen.updates[0]["is_complete"]
        assert len(screen.updates[0]["projects"]) == MAX_FOLLOW_ITEMS
        rest = await screen.next()
        assert rest["is_complete"]
        assert len(rest["projects"]) == 7


async def test_a_slow_reader_gets_fewer_updates() -> None:
    control = ControlHarness(*(project(number) for number in range(9)))
    async with following(control) as screen:
        for number in range(9):
            await control.decide(APPROVE, f"/home/ann/src/p{number}")
        while screen.names("pending"):
            await screen.next()
        assert len(screen.updates) <= 4


async def test_sessions_confined_programs_and_the_focus_are_followed() -> None:
    control = ControlHarness(approved(1))
    changes = control.services.changes
    async with following(control) as screen:
        control.daemon.open_sessions = [a_session("open"), a_session("new")]
        changes.notify()
        update = await screen.next()
        assert [each["id"] for each in update["sessions"]] == ["open", "new"]
        assert update["projects"] == []
        assert update["confined"] is None
        ledger = control.world.ledger
        await ledger.change_focus(
            SettingChange(FocusRecord("t"), PERSON, ChangeVerb.FOCUS_SET),
            lambda f: f.for_new_sessions("t"),
        )
        assert (await screen.next())["focus"] == "t"


async def test_a_note_about_a_project_is_followed() -> None:
    control = ControlHarness(project(1), project(2))
    async with following(control) as screen:
        control.notes[path(2)] = "claude asked for it"
        control.services.changes.notify()
        (changed,) = (await screen.next())["projects"]
        assert (changed["item"]["name"], changed["item"]["note"]) == ("p2", "claude asked for it")


async def test_a_project_follows_a_rule_and_a_denial_below_it() -> None:
    """The projects themselves stay as they are."""
    inner = at(b"/home/ann/src/p1/inner", project(2))
    control = ControlHarness(approved(1), inner, project(3))
    async with following(control) as screen:
        ledger = control.world.ledger
        await ledger.execute([add_rule(Verdict.DENIED, b"/home/ann/src/p3")])
        (denied_now,) = (await screen.next())["projects"]
        assert (denied_now["group"], denied_now["item"]["name"]) == ("denied", "p3")
        await ledger.execute([add_rule(Verdict.DENIED, inner.path)])
        changed = (await screen.next())["projects"]
        assert {each["item"]["name"]: each["item"]["published"] for each in changed} == {
            "p1": False, "inner": False,
        }  # fmt: skip


async def test_a_worktree_that_waits_follows_the_decision_about_its_main_checkout() -> None:
    """Only its sentence changes."""
    control = ControlHarness(project(1), project(2), worktree(3, 1))
    async with following(control) as screen:
        await control.decide(DENY, "/home/ann/src/p2")
        await screen.next()
        await control.decide(APPROVE, "/home/ann/src/p1")
        changed = {each["item"]["name"] for each in (await screen.next())["projects"]}
        assert changed == {"p1", "p3"}


async def test_a_confined_program_appears_reports_and_leaves() -> None:
    control, warden = ControlHarness(approved(1)), ConnectionState(8)
    wardens = control.services.wall.wardens
    control.services = replace(control.services, changes=wardens.changes)
    async with following(control) as screen:
        await control.ask(WALL, warden)
        (confined,) = (await screen.next())["confined"]
        assert confined["name"] == "claude"
        assert confined["roots"] == 0
        assert warden.subscription is not None
        async with anyio.create_task_group() as group:
            group.start_soon(warden.subscription.send_updates, Screen().take)
            while not wardens.roots_of(confined["id"]):
                await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()
        roots = await control.ask(SessionRootsQuery(confined["id"]))
        assert [root["path"] for root in roots["items"]] == ["/home/ann/src/p1"]
        await control.ask(ReportConfinedRequest(network=False), warden)
        assert (await screen.next())["confined"][0]["network"] is False
        warden.subscription.close()
        assert (await screen.next())["confined"] == []
        assert (await control.ask(SessionRootsQuery(confined["id"])))["items"] == []


async def test_the_roots_of_a_session_are_listed() -> None:
    control = ControlHarness()
    root = PublishedRoot(b"/src/api", "api", ProjectKind.GIT, Access.READ, ())
    control.daemon.roots_by_session["open"] = (root,)
    listed = await control.ask(SessionRootsQuery("open"))
    [item] = listed["items"]
    assert (item["name"], item["path"], item["access"]) == ("api", "/src/api", "read")


async def test_the_answer_names_unknown_words_of_a_scope_and_similar_ones() -> None:
    control = ControlHarness(approved(1), project(2))
    for scope, unknown, similar in (
        ({"names": ["p1", "p2", "pp1"], "tags": ["x"]}, ["pp1", "tag:x"], ["p1"]),
        ({"names": ["p1", "p2"]}, [], []),
        ({}, [], []),
    ):
        hello = {"version": 1, "client": "claude", "scope": scope}
        answer = await control.ask(replace(WALL, hello=hello), ConnectionState(8))
        assert (answer["unknown"], answer["similar"]) == (unknown, similar)


async def test_a_follower_that_starts_no_program_gets_the_roots_that_are_left() -> None:
    control = ControlHarness(approved(1))
    hello = {"version": 1, "client": "an editor", "scope": {"names": ["p1", "gone"]}}
    answer = await control.ask(replace(WALL, hello=hello, wall=None), ConnectionState(8))
    assert answer["unknown"] == []


async def test_a_connection_has_one_subscription() -> None:
    control, connection = ControlHarness(), ConnectionState(7)
    await control.ask(SCREEN, connection)
    with pytest.raises(BadRequest):
        await control.ask(SCREEN, connection)
