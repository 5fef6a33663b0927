"""The adapter between discovery's thread and the ledger, on real folders."""

from __future__ import annotations

import asyncio
import gc
import os
import shutil
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
import pytest
from anyio import to_thread

from rootsd.core.catalog import Catalog
from rootsd.core.errors import NotPresent, RefusedPlace
from rootsd.core.exclusion import Exclusion, ExclusionReason
from rootsd.core.inputs import (
    Approve,
    InputEvent,
    ProjectGone,
    ProjectNamed,
    ProjectObserved,
    ProjectUnsafe,
)
from rootsd.core.model import LapseReason, Parent, Presence, Project, ProjectKind
from rootsd.core.names import project_id
from rootsd.core.paths import RefusedPlaces
from rootsd.core.shared_git import included_checkouts
from rootsd.daemon import discovery_adapter
from rootsd.daemon.discovery_adapter import DiscoveryAdapter
from rootsd.daemon.garbage import freeze_scanned
from rootsd.discovery.engine import DiscoveryEngine
from rootsd.discovery.status import ParentReport
from rootsd.disk.hung_mounts import HungMountDetector
from rootsd.disk.look import Look
from rootsd.disk.safety import explain_alias
from rootsd.state.ledger import Ledger
from rootsd.wire.scans import ScanProgressItem
from support.ledger_harness import HANG_GUARD, FakeSaver, FakeVerifier, no_expiries
from support.repositories import fake_repository, git, make_repository, raw
from support.sample_decisions import NOON, PERSON
from support.system_parts import folder_safety, this_system


def an_adapter(ledger: Ledger, on_death: Callable[[], None]) -> DiscoveryAdapter:
    hung = HungMountDetector()
    return DiscoveryAdapter(ledger, on_death, None, this_system(), hung, folder_safety())


@asynccontextmanager
async def running_adapter(
    home: Path, *parents: Path, saver: FakeSaver | None = None
) -> AsyncIterator[tuple[DiscoveryAdapter, Ledger]]:
    places = RefusedPlaces(raw(home))
    ledger = Ledger(
        Catalog.of((), (), places, 1),
        saver or FakeSaver(),
        FakeVerifier(),
        expiries=no_expiries(),
        now=lambda: NOON,
    )
    surveyor = an_adapter(ledger, lambda: None)
    async with anyio.create_task_group() as group:
        group.start_soon(surveyor.forward_observations)
        group.start_soon(surveyor.follow_roots)
        surveyor.start([Parent(raw(parent)) for parent in parents])
        try:
            with anyio.fail_after(HANG_GUARD):
                yield surveyor, ledger
        finally:
            group.cancel_scope.cancel()
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(surveyor.stop)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    (home / "src").mkdir(parents=True)
    return home


async def test_a_scan_returns_after_its_projects_are_in_the_catalog(home: Path) -> None:
    for name in ("src/one", "src/two", "work/three"):
        make_repository(home / name)
    expected = [raw(home / "src" / "one"), raw(home / "src" / "two")]
    async with running_adapter(home, home / "src") as (surveyor, ledger):
        await surveyor.first_scan()
        [status] = surveyor.parent_status(ledger.catalog)
        assert (status["state"], sorted(ledger.catalog.projects)) == ("watched", expected)
    async with running_adapter(home, home / "src") as (surveyor, ledger):
        cost = await surveyor.scan(None, None)
        assert sorted(ledger.catalog.projects) == expected
        assert cost.folders >= 3
        surveyor.set_parents([Parent(raw(home / "work"))])
        await surveyor.scan(None, None)
        assert raw(home / "work" / "three") in ledger.catalog.projects
        [status] = surveyor.parent_status(ledger.catalog)
        assert (status["path"], status["projects"]) == (str(home / "work"), 1)


async def test_the_projects_of_a_parent_are_frozen_once_it_was_scanned(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A parent that comes later, too, and nothing before the first one."""
    for name in ("src/one", "work/two"):
        make_repository(home / name)
    frozen: list[set[str]] = []
    async with running_adapter(home) as (surveyor, ledger), anyio.create_task_group() as group:

        def note() -> None:
            frozen.append({Path(os.fsdecode(path)).name for path in ledger.catalog.projects})

        monkeypatch.setattr(gc, "freeze", note)
        group.start_soon(freeze_scanned, surveyor.scanned_beside)
        parents = []
        for number, name in enumerate(("src", "work")):
            await surveyor.first_scan()
            await surveyor.scan(None, None)
            assert len(frozen) == number
            parents.append(Parent(raw(home / name)))
            surveyor.set_parents(parents)
            while len(frozen) == number:
                await anyio.lowlevel.checkpoint()
        assert frozen == [{"one"}, {"one", "two"}]
        group.cancel_scope.cancel()


async def test_a_parent_that_waits_for_the_scan_of_another_one_was_not_scanned(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both come at once, and discovery scans one after the other."""
    seen: list[str] = []
    whole = DiscoveryAdapter._take_status

    def note(surveyor: DiscoveryAdapter, status: tuple[ParentReport, ...]) -> None:
        seen.append(" ".join(each.state.value for each in status))
        whole(surveyor, status)

    monkeypatch.setattr(DiscoveryAdapter, "_take_status", note)
    (home / "work").mkdir()
    async with running_adapter(home, home / "src", home / "work") as (surveyor, _):
        await surveyor.first_scan()
    assert list(dict.fromkeys(seen)) == [
        "scanning scanning",
        "watched scanning",
        "watched watched",
    ]


async def test_one_parent_that_hangs_does_not_keep_the_others_from_being_frozen(
    home: Path,
) -> None:
    make_repository(home / "src" / "one")
    async with running_adapter(home, home / "src") as (surveyor, _):
        await surveyor.first_scan()
        surveyor._parents += (Parent(b"/never/scanned"),)
        assert await surveyor.scanned_beside(frozenset()) == {raw(home / "src")}


async def test_a_scan_waits_for_projects_created_just_before_it(
    home: Path,
) -> None:
    for name in ("empty", "staged", "remote"):
        git("init", home / "src" / name)
    for name in ("staged", "remote"):
        (home / "src" / name / "file").write_text("a file\n")
    git("add", "file", cwd=home / "src" / "staged")
    git("remote", "add", "origin", "https://git.example/one", cwd=home / "src" / "remote")
    async with running_adapter(home, home / "src") as (surveyor, ledger):
        cost = await surveyor.scan(None, None)
        assert cost.being_made == frozenset()
        known = [path.rpartition(b"/")[2] for path in sorted(ledger.catalog.projects)]
        assert known == [b"empty", b"remote", b"staged"]


async def test_a_long_scan_reports_its_progress(home: Path) -> None:
    make_repository(home / "src" / "one")
    for number in range(1_200):
        (home / "src" / f"plain{number}").mkdir()
    told: list[ScanProgressItem] = []
    async with running_adapter(home, home / "src") as (surveyor, _):
        await surveyor.scan(raw(home / "src"), told.append)
    assert {progress["parent"] for progress in told} == {str(home / "src")}
    counts = [progress["folders"] for progress in told]
    assert counts == sorted(counts)
    assert counts[-1] > 500


async def test_a_named_folder_outside_every_parent_is_added_and_looks_and_refusals_add_nothing(
    home: Path,
) -> None:
    elsewhere = raw(make_repository(home / "elsewhere"))
    async with running_adapter(home, home / "src") as (surveyor, ledger):
        seen = await surveyor.observe(elsewhere)
        assert isinstance(seen, ProjectObserved)
        assert seen.kind is ProjectKind.GIT
        assert isinstance(await surveyor.observe(raw(home / "nowhere")), ProjectGone)
        assert (await surveyor.observe_project(elsewhere)).kind is ProjectKind.GIT
        for take in (surveyor.observe_project, surveyor.propose):
            with pytest.raises(NotPresent, match="no folder"):
                await take(raw(home / "nowhere"))
            with pytest.raises(RefusedPlace, match="home"):
                await take(raw(home))
        await surveyor.scan(None, None)
        assert not ledger.catalog.projects
        await surveyor.propose(elsewhere)
        assert elsewhere in ledger.catalog.projects


async def test_a_system_folder_under_another_name_is_not_proposed(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = make_repository(home / "one")
    monkeypatch.setattr(
        "rootsd.daemon.discovery_adapter.explain_alias",
        partial(explain_alias, places=[raw(home / "alias")]),
    )
    (home / "alias").symlink_to("one")
    async with running_adapter(home, home / "src") as (surveyor, ledger):
        with pytest.raises(RefusedPlace, match="alias under another name"):
            await surveyor.propose(raw(one))
        assert not ledger.catalog.projects


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
async def test_a_crash_of_discovery_is_raised_in_the_event_loop(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_self: DiscoveryEngine) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(DiscoveryEngine, "tick", broken)
    died = anyio.Event()
    catalog = Catalog.of((), (), RefusedPlaces(raw(home)), 1)
    ledger = Ledger(
        catalog, FakeSaver(), FakeVerifier(()), expiries=no_expiries(), now=lambda: NOON
    )
    surveyor = an_adapter(ledger, died.set)
    surveyor.start([Parent(raw(home / "src"))])
    with anyio.fail_after(HANG_GUARD):
        await died.wait()
    await to_thread.run_sync(surveyor.stop)


async def test_a_root_that_is_removed_leaves_the_published_set(home: Path) -> None:
    one = make_repository(home / "src" / "one")
    async with running_adapter(home, home / "src") as (surveyor, ledger):
        await surveyor.scan(None, None)
        seen = ledger.catalog.projects[raw(one)].observed.identity
        assert seen is not None
        await ledger.execute([Approve(raw(one), seen, PERSON)])
        assert list(ledger.catalog.roots) == [raw(one)]
        gone = ledger.revision
        await to_thread.run_sync(shutil.rmtree, one)
        while ledger.catalog.roots:
            gone = (await ledger.wait_for_revision_past(gone)).revision


async def _until(ledger: Ledger, is_so: Callable[[Project], bool], path: bytes) -> None:
    catalog = ledger.catalog
    while not is_so(catalog.projects[path]):
        catalog = await ledger.wait_for_change(catalog)


async def test_a_missing_root_lapses_when_another_folder_takes_its_path(
    home: Path,
) -> None:
    one = make_repository(home / "src" / "one")
    async with running_adapter(home, home / "src") as (surveyor, ledger):
        await surveyor.scan(None, None)
        seen = ledger.catalog.projects[raw(one)].observed.identity
        await ledger.execute([Approve(raw(one), seen, PERSON)])
        one.rename(home / "away")
        await _until(ledger, lambda known: known.observed.presence is Presence.MISSING, raw(one))
        assert not ledger.catalog.projects[raw(one)].ruling.is_lapsed
        one.symlink_to(home / "away")
        await _until(ledger, lambda known: known.ruling.is_lapsed, raw(one))
        assert ledger.catalog.roots == {}


async def test_a_parent_that_is_missing_is_shown_with_its_reason(home: Path) -> None:
    async with running_adapter(home, home / "later") as (surveyor, ledger):
        await surveyor.scan(None, None)
        [status] = surveyor.parent_status(ledger.catalog)
        assert status["state"] == "missing"
        assert surveyor.degraded()


async def test_many_observations_are_processed_in_parts_with_hazards_first(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other tasks run between the parts."""
    monkeypatch.setattr("rootsd.daemon.discovery_adapter._BATCH", 5)
    for number in range(8):
        fake_repository(home / "src" / "open" / f"r{number}")
    (home / "src" / "open").chmod(0o777)
    batches: list[list[InputEvent]] = []
    order: list[str] = []
    async with running_adapter(home, home / "src") as (surveyor, ledger):
        take_in = ledger.apply_events

        async def recorded(facts: Iterable[InputEvent]) -> None:
            facts = list(facts)
            if isinstance(facts[0], ProjectNamed):
                return await take_in(facts)
            batches.append(facts)
            order.append("batch")
            asyncio.get_running_loop().call_soon(order.append, "another")
            return await take_in(facts)

        monkeypatch.setattr(ledger, "apply_events", recorded)
        await surveyor.scan(None, None)
    assert [len(batch) for batch in batches] == [6, 6, 4]
    assert order == ["batch", "another"] * 3
    for batch in batches:
        for observed, hazard in zip(batch[::2], batch[1::2], strict=True):
            assert isinstance(observed, ProjectObserved)
            assert hazard == ProjectUnsafe(observed.path, LapseReason.EXPOSED)


async def test_a_pending_checkout_is_watched_while_an_approval_includes_its_git_directory(
    home: Path,
) -> None:
    """No parent contains the checkout, so nothing else would notice that it is replaced."""
    checkout, tree = make_repository(home / "checkout"), home / "tree"
    git("worktree", "add", "--detach", str(tree), cwd=checkout)
    async with running_adapter(home, home / "src") as (surveyor, ledger):
        for path in (checkout, tree):
            await surveyor.propose(raw(path))
        known = {
            path: ledger.catalog.projects[raw(path)].observed.identity for path in (checkout, tree)
        }
        approval = Approve(raw(tree), known[tree], PERSON, shared_git=known[checkout])
        await ledger.execute([approval])
        assert included_checkouts(ledger.catalog) == {raw(checkout)}
        for _ in range(2):  # before the second scan begins, discovery watches the checkout
            await surveyor.scan(None, None)
        checkout.rename(home / "elsewhere")
        while included_checkouts(catalog := ledger.catalog):
            await ledger.wait_for_change(catalog)


async def test_a_second_look_finds_what_changed_a_moment_ago(home: Path) -> None:
    one, two = home / "src" / "one", home / "src" / "two"
    make_repository(one)
    head = (one / ".git" / "HEAD").read_bytes()
    (one / ".git" / "HEAD").unlink()
    async with running_adapter(home, home / "src") as (surveyor, ledger):
        await surveyor.propose(raw(one))
        assert ledger.catalog.projects[raw(one)].observed.incomplete is not None
        (one / ".git" / "HEAD").write_bytes(head)
        await to_thread.run_sync(make_repository, two)
        await surveyor.look_again([raw(one)])
        assert ledger.catalog.projects[raw(one)].observed.incomplete is None
        assert raw(two) in ledger.catalog.projects


async def test_a_folder_that_is_left_out_has_a_reason(home: Path) -> None:
    make_repository(home / "src" / "one")
    (home / "src" / ".hidden" / "two").mkdir(parents=True)
    async with running_adapter(home, home / "src") as (surveyor, _ledger):
        assert await surveyor.why_unseen(raw(home / "src" / "one")) is None
        hidden = await surveyor.why_unseen(raw(home / "src" / ".hidden" / "two"))
        assert hidden == Exclusion(ExclusionReason.HIDDEN, raw(home / "src" / ".hidden"))
        missing = await surveyor.why_unseen(raw(home / "other"))
        assert missing == Exclusion(ExclusionReason.NO_FOLDER, raw(home / "other"))
        outside = await surveyor.why_unseen(raw(home))
        assert outside == Exclusion(ExclusionReason.OUTSIDE, raw(home))
        assert await surveyor.why_unsafe(raw(home / "src" / "one")) is None
        (home / "src").chmod(0o777)
        why = await surveyor.why_unsafe(raw(home / "src" / "one"))
        assert why is not None
        assert "src" in why


async def test_a_worktree_outside_of_the_parents_is_named_until_it_is_added(home: Path) -> None:
    main, outside = make_repository(home / "src" / "one"), home / "trees" / "two"
    git("worktree", "add", outside, cwd=main)
    async with running_adapter(home, home / "src") as (surveyor, ledger):
        await surveyor.scan(None, None)
        assert await surveyor.left_out() == [Exclusion(ExclusionReason.OUTSIDE, raw(outside))]
        await surveyor.propose(raw(outside))
        assert raw(outside) in ledger.catalog.projects
        assert await surveyor.left_out() == []


@pytest.mark.parametrize("looks", [True, False])
async def test_a_look_below_a_folder_sees_what_no_scan_finds_unless_it_is_switched_off(
    home: Path, monkeypatch: pytest.MonkeyPatch, looks: bool
) -> None:
    top = home / "work"
    inside = {raw(fake_repository(top / name)) for name in ("one", ".hidden/dot")}
    if not looks:
        monkeypatch.setattr(discovery_adapter, "look_below", lambda *_: Look((), is_whole=True))
    async with running_adapter(home) as (adapter, ledger):
        await adapter.propose(raw(top))
        below = await adapter.look_below(list(ledger.catalog.projects.values()))
    assert {seen.path for seen in below.projects} == (inside if looks else set())
    assert not below.unsearched
    assert ledger.catalog.projects.keys() == {raw(top)}


async def test_names_stay_from_the_end_of_the_first_scan(home: Path) -> None:
    fake_repository(home / "src" / "acme" / "api")
    fake_repository(home / "src" / "beta" / "api")
    fake_repository(home / "src" / "web")
    async with running_adapter(home, home / "src") as (surveyor, ledger):
        await surveyor.first_scan()
        assert ledger.catalog.kept_keys.keys() == {"acme/api", "beta/api", "web"}
        fake_repository(home / "src" / "acme" / "web")
        await surveyor.scan(None, None)
        shutil.rmtree(home / "src" / "web")
        await surveyor.scan(None, None)
        assert ledger.catalog.kept_keys.keys() == {"acme/api", "beta/api", "acme/web"}


async def test_the_end_of_the_first_scan_names_all_its_projects(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[ParentReport, ...]] = []
    end = DiscoveryAdapter._take_status
    monkeypatch.setattr(DiscoveryAdapter, "_take_status", lambda _, status: told.append(status))
    async with running_adapter(home, home / "src") as (surveyor, ledger):
        for name in ("acme", "beta"):
            fake_repository(home / "src" / name / "api")
            await surveyor.scan(None, None)
            assert not ledger.catalog.kept_keys
        end(surveyor, told[-1])
        await surveyor._idle.wait()
        assert ledger.catalog.kept_keys.keys() == {"acme/api", "beta/api"}


async def test_the_name_of_a_uri_that_a_person_adds_stays(home: Path) -> None:
    one, two = b"https://h.example/api", b"http://h.example/api"
    async with running_adapter(home, home / "src") as (surveyor, ledger):
        await surveyor.first_scan()
        for uri in (one, two):
            await ledger.observe([ProjectObserved(uri, ProjectKind.URI, None)])
            await _until(ledger, lambda known: known.name is not None, uri)
        names = [ledger.catalog.projects[uri].name for uri in (one, two)]
        assert names == ["h.example/api", f"h.example/api~{project_id(two)}"]


async def test_naming_ends_if_a_name_is_longer_when_folded(home: Path) -> None:
    long = "straße-" + "a" * 70
    fake_repository(home / "src" / "g" / long / "web")
    fake_repository(home / "src" / "web")
    async with running_adapter(home, home / "src") as (surveyor, ledger):
        await surveyor.first_scan()
        fake_repository(home / "src" / long)
        await surveyor.scan(None, None)
        project = ledger.catalog.projects[raw(home / "src" / long)]
        assert project.name == f"src/{long}"


async def test_naming_ends_if_the_ledger_refuses_a_name(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_repository(home / "src" / "api")
    async with running_adapter(home, home / "src") as (surveyor, ledger):
        take_in = ledger.apply_events

        async def without_names(facts: Iterable[InputEvent]) -> None:
            await take_in([each for each in facts if not isinstance(each, ProjectNamed)])

        monkeypatch.setattr(ledger, "apply_events", without_names)
        await surveyor.scan(None, None)
        assert not ledger.catalog.kept_keys
