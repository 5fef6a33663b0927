"""Discovery in its own thread, with the real kernel and real git."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from rootsd.core.inputs import ProjectGone, ProjectObserved, ProjectUnreachable
from rootsd.core.model import ObservedState, Parent, Project, ProjectKind
from rootsd.discovery import service
from rootsd.discovery.engine import DiscoveryEngine
from rootsd.discovery.parent_tree import ParentTree
from rootsd.discovery.service import Discovery
from rootsd.discovery.status import ParentReport, ParentState, report_for
from rootsd.disk.identity import identify
from rootsd.watch.events import PostResolver, Watcher, resolve_overflow
from rootsd.watch.polling import PollingWatcher
from rootsd.wire.scans import ScanProgressItem
from support.fake_watchers import Clock, RecordingWatcher
from support.report_collector import HANG_S, ReportCollector
from support.repositories import fake_repository, git, make_repository, raw
from support.system_parts import this_system

pytestmark = pytest.mark.needs("linux")

Start = Callable[..., Discovery]


@pytest.fixture
def observed() -> ReportCollector:
    return ReportCollector()


@pytest.fixture
def src(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    return tmp_path / "src"


@pytest.fixture
def upstream(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "up", files=50)


@pytest.fixture
def start(observed: ReportCollector, src: Path) -> Iterator[Start]:
    """Start discovery on `src`; end it after the test."""
    running: list[Discovery] = []

    def run(
        *parents: Parent, known: tuple[Project, ...] = (), **dependencies: object
    ) -> Discovery:
        discovery = Discovery(
            report=observed.report,
            on_status=observed.on_status,
            on_death=observed.on_death,
            dependencies=this_system(**dependencies),
        )
        running.append(discovery)
        chosen = parents or (Parent(raw(src)),)
        discovery.start(chosen, {project.path: project for project in known})
        discovery.scan(None).result(HANG_S)
        return discovery

    yield run
    for discovery in running:
        discovery.stop()


def _project(path: Path) -> Project:
    identity = identify(raw(path)) if path.exists() else None
    observed = ObservedState(ProjectKind.GIT, identity, datetime(2026, 1, 1, tzinfo=UTC))
    return Project(raw(path), "r7k2", observed)


def test_a_clone_is_reported_exactly_once_and_complete(
    observed: ReportCollector, start: Start, src: Path, upstream: Path
) -> None:
    start()
    git("clone", f"file://{upstream}", src / "one")
    observed.wait_for(raw(src / "one"))
    git("clone", f"file://{upstream}", src / "deep" / "er" / "two")
    observed.wait_for(raw(src / "one"), raw(src / "deep" / "er" / "two"))
    assert len(observed.all) == 2


def test_a_stopped_clone_is_not_reported_before_it_continues(
    observed: ReportCollector, start: Start, src: Path, upstream: Path, tmp_path: Path
) -> None:
    """The checkout blocks in a filter until the test lets it continue."""
    os.mkfifo(tmp_path / "gate")
    (upstream / ".gitattributes").write_text("f7 filter=slow\n")
    git("add", ".", cwd=upstream)
    git("commit", "-m", "slow", cwd=upstream)
    start()
    smudge = f"filter.slow.smudge=cat {tmp_path / 'gate'}"
    clone = subprocess.Popen(["git", "clone", "-q", "-c", smudge, upstream, src / "one"])
    with (tmp_path / "gate").open("w") as gate:
        # When the filter reads the gate, half of the checkout is done.
        fake_repository(src / "other")
        observed.wait_for(raw(src / "other"))
        assert (src / "one" / ".git" / "index.lock").exists()
        gate.write("x\n")
    assert clone.wait(HANG_S) == 0
    observed.wait_for(raw(src / "other"), raw(src / "one"))
    assert len(observed.sightings_of(raw(src / "one"))) == 1


def test_a_parent_is_removed_and_created_again(
    observed: ReportCollector, start: Start, src: Path
) -> None:
    fake_repository(src / "one")
    start()
    observed.wait_for(raw(src / "one"))
    src.rename(src.with_name("away"))
    observed.wait(lambda: observed.all[-1] == ProjectUnreachable(raw(src / "one")))
    observed.wait(lambda: observed.status[0].state is ParentState.MISSING)
    src.mkdir()
    fake_repository(src / "two")
    observed.wait_for(raw(src / "two"))
    observed.wait(lambda: observed.status[0].state is ParentState.WATCHED)


def test_a_scan_reports_its_changes_and_its_cost(
    observed: ReportCollector, start: Start, src: Path
) -> None:
    fake_repository(src / "one")
    discovery = start(watcher=lambda _post: PollingWatcher(), monotonic=Clock())
    fake_repository(src / "two")
    for number in range(600):
        (src / str(number)).mkdir()
    shutil.rmtree(src / "one")
    fake_repository(src / "three")
    assert discovery.scan(raw(src)).result(HANG_S).folders == 603
    assert ProjectGone(raw(src / "one")) in observed.all
    before = len(observed.all)
    reported: list[ScanProgressItem] = []
    discovery.scan(None, reported.append).result(HANG_S)
    assert [(each["parent"], each["folders"]) for each in reported] == [(str(src), 512)]
    assert len(observed.all) == before
    elsewhere = discovery.scan(b"/elsewhere").result(HANG_S)
    assert elsewhere.folders == 0


@pytest.mark.parametrize("remote", [False, True])
def test_a_settled_scan_includes_a_repository_created_just_before(
    observed: ReportCollector, start: Start, src: Path, *, remote: bool
) -> None:
    git("init", src / "one")
    if remote:  # its quiet period is half a second
        (src / "one" / "file").write_text("a file\n")
        git("remote", "add", "origin", "https://git.example/one", cwd=src / "one")
    discovery = start()
    assert discovery.when_settled(None, HANG_S).result(HANG_S) == frozenset()
    assert list(observed.live()) == [raw(src / "one")]


def test_a_scan_does_not_wait_for_a_project_in_use(
    observed: ReportCollector, start: Start, src: Path
) -> None:
    git("init", src / "one")
    discovery = start(find_in_use=frozenset)
    made = discovery.when_settled(raw(src), HANG_S * 100).result(HANG_S)
    assert made == {raw(src / "one")}
    assert not observed.live()


def test_a_scan_waits_at_most_for_the_given_time(
    observed: ReportCollector, start: Start, src: Path
) -> None:
    git("init", src / "one")
    clock = Clock()
    discovery = start(monotonic=clock)  # during which the quiet period never passes
    assert discovery.when_settled(None, 0.0).result(HANG_S) == {raw(src / "one")}
    elsewhere = discovery.when_settled(b"/elsewhere", HANG_S)
    assert elsewhere.result(HANG_S) == {raw(src / "one")}
    assert not observed.live()


def test_a_stored_project_that_is_gone_is_reported(
    observed: ReportCollector, start: Start, src: Path, tmp_path: Path
) -> None:
    gone, away = src / "gone", tmp_path / "no" / "such"
    here = fake_repository(src / "here")
    start(known=(_project(gone), _project(away), _project(here)))
    assert set(observed.all) == {
        ProjectGone(raw(gone)),
        ProjectUnreachable(raw(away)),
        *observed.sightings_of(raw(here)),
    }


def test_a_folder_is_probed_on_demand_and_watched_as_a_root(
    observed: ReportCollector, start: Start, tmp_path: Path
) -> None:
    plain = tmp_path / "plain" / "one"
    plain.mkdir(parents=True)
    discovery = start()
    seen = discovery.probe(raw(plain)).result(HANG_S)
    assert isinstance(seen, ProjectObserved)
    assert observed.all == [seen]
    discovery.set_roots(frozenset((raw(plain),)), {})
    discovery.probe(raw(plain)).result(HANG_S)
    plain.rmdir()
    observed.wait(lambda: observed.all[-1] == ProjectGone(raw(plain)))


def test_parents_are_changed_while_running(
    observed: ReportCollector, start: Start, src: Path, tmp_path: Path
) -> None:
    discovery = start()
    fake_repository(tmp_path / "more" / "one")
    discovery.set_parents([Parent(raw(src)), Parent(raw(tmp_path / "more"))])
    observed.wait_for(raw(tmp_path / "more" / "one"))
    discovery.set_parents([Parent(raw(src))])
    observed.wait(lambda: len(observed.status) == 1)
    assert raw(tmp_path / "more" / "one") in observed.live()


def test_the_state_of_each_parent_is_built_once_a_turn_and_sent_only_if_it_changed(
    observed: ReportCollector, start: Start, src: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = Counter[str]()
    inform, build, tick = observed.on_status, report_for, DiscoveryEngine.tick

    def counted_build(tree: ParentTree, *, scanning: bool) -> ParentReport:
        work["built"] += 1
        return build(tree, scanning=scanning)

    def counted_tick(engine: DiscoveryEngine) -> None:
        work["turns"] += 1
        tick(engine)

    def counted_inform(status: tuple[ParentReport, ...]) -> None:
        work["sent"] += 1
        inform(status)

    monkeypatch.setattr(observed, "on_status", counted_inform)
    discovery = start()
    discovery.when_settled(None, HANG_S).result(HANG_S)
    monkeypatch.setattr(DiscoveryEngine, "tick", counted_tick)
    monkeypatch.setattr(service, "report_for", counted_build)
    sent = work["sent"]
    fake_repository(src / "one")
    observed.wait_for(raw(src / "one"))
    for _ in range(5):
        discovery.probe(raw(src / "one")).result(HANG_S)
    assert work["sent"] == sent
    src.rename(src.with_name("away"))
    observed.wait(lambda: observed.status[0].state is ParentState.MISSING)
    discovery.stop()
    assert work["sent"] > sent, "the control: a parent that is gone"
    assert 0 < work["built"] <= work["turns"]


class ScriptedWatcher(RecordingWatcher):
    """A watcher whose events come from the test."""

    def start_with(self, post: PostResolver) -> Watcher:
        self.post = post
        return self


def test_after_an_overflow_everything_is_checked(
    observed: ReportCollector, start: Start, src: Path
) -> None:
    scripted = ScriptedWatcher()
    start(watcher=scripted.start_with)
    fake_repository(src / "one")
    scripted.post(resolve_overflow)
    observed.wait_for(raw(src / "one"))


def test_events_beyond_the_queue_limit_cause_a_full_check(
    observed: ReportCollector, start: Start, src: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted = ScriptedWatcher()
    discovery = start(watcher=scripted.start_with)
    monkeypatch.setattr("rootsd.discovery.service._MAX_QUEUED_SIGNALS", 0)
    fake_repository(src / "one")
    scripted.post(tuple)
    assert observed.live() == {}
    discovery.set_roots(frozenset(), {})
    observed.wait_for(raw(src / "one"))


def test_stopping_ends_every_thread(start: Start) -> None:
    before = set(threading.enumerate())
    discovery = start()
    discovery.stop()
    assert set(threading.enumerate()) <= before


def test_a_restart_reports_the_saved_projects_again(src: Path, tmp_path: Path) -> None:
    for number in range(100):
        fake_repository(src / f"r{number}")
    index, expected = tmp_path / "index", {raw(src / f"r{number}") for number in range(100)}
    for _ in range(2):
        observed = ReportCollector()
        discovery = Discovery(
            report=observed.report,
            on_status=observed.on_status,
            on_death=observed.on_death,
            dependencies=this_system(),
            index=index,
        )
        discovery.start([Parent(raw(src))], {})
        observed.wait_for(*expected)
        discovery.stop()
        assert index.exists()
