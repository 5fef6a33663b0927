"""Every way to create a project, stopped or killed at any moment: it is proposed when complete."""

from __future__ import annotations

import filecmp
import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path

import pytest

from rootsd.core.inputs import ProjectObserved
from rootsd.core.model import IncompleteReason, Parent, ProjectKind
from rootsd.discovery import candidate, candidates
from rootsd.discovery.service import Discovery
from rootsd.processes.activity import FindFoldersInUse, folders_in_use
from rootsd.vcs.git import kinds
from rootsd.vcs.stages import CompleteProject
from support.creation_methods import WAYS, Creation, Origins
from support.needs import unmet
from support.polling import until
from support.report_collector import HANG_S, ProposalTimes
from support.repositories import git, raw
from support.sizes import Sizes
from support.system_parts import this_system

pytestmark = pytest.mark.needs("linux")

_STOPPED_S = 1.0
_AT_ONCE = 8
_VCS = {".git", ".hg", ".svn", ".bzr", "_darcs", ".fslckout", ".fslckout-journal"}


@contextmanager
def _watched(parent: Path, at_work: FindFoldersInUse = folders_in_use) -> Iterator[ProposalTimes]:
    watch = ProposalTimes(time.time_ns)
    dependencies = this_system(find_in_use=at_work)
    discovery = Discovery(
        report=watch.report,
        on_status=watch.on_status,
        on_death=watch.on_death,
        dependencies=dependencies,
    )
    discovery.start([Parent(raw(parent))], {})
    discovery.scan(None).result(HANG_S)
    try:
        yield watch
    finally:
        discovery.stop()


@dataclass
class Workshop:
    """Creates projects below a watched parent."""

    origins: Origins
    parent: Path
    took: dict[str, float] = field(default_factory=dict)
    moments: random.Random = field(default_factory=lambda: random.Random(11))  # noqa: S311 - repeatable
    numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def start(self, way: Creation, to: Path) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [str(word) for word in way.command(self.origins, to)],
            cwd=self.origins.folder, env=self.origins.environment, start_new_session=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip

    def make(self, way: Creation, to: Path) -> float:
        """Create a project undisturbed, and return how long it took."""
        with self.start(way, to) as process:
            begin = time.monotonic()
            _, said = process.communicate(timeout=HANG_S)
        assert process.returncode == 0, said
        return time.monotonic() - begin

    def strike(self, way: Creation, to: Path, sign: signal.Signals, moment: float) -> None:
        """Create a project, and send the signal at `moment` (0 to 1) of its duration. A stopped
        process continues after a second.
        """
        with self.start(way, to) as process:
            if _ends_within(process, self.took[way.name] * moment):
                return
            with suppress(ProcessLookupError):
                os.killpg(process.pid, sign)
                if sign is signal.SIGSTOP:
                    _ends_within(process, _STOPPED_S)
                    os.killpg(process.pid, signal.SIGCONT)
            process.communicate(timeout=HANG_S)

    def measure(self, ways: Sequence[Creation]) -> None:
        """Create one of each outside the parent, one after the other."""
        for way in ways:
            if way.name not in self.took:
                self.took[way.name] = self.make(way, way.destination(self.origins.folder, 0))


def _ends_within(process: subprocess.Popen[bytes], seconds: float) -> bool:
    try:
        process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


@pytest.fixture(scope="module")
def workshops(tmp_path_factory: pytest.TempPathFactory, sizes: Sizes) -> Workshop:
    """Return what the workshops of all tests share: origins, durations, and unused numbers."""
    top = tmp_path_factory.mktemp("workshops")
    files = sizes.pick(test=60, check=400, soak=1_000)
    return Workshop(Origins(top / "origins", files), top)


@pytest.fixture
def workshop(workshops: Workshop, tmp_path: Path) -> Workshop:
    (tmp_path / "parent").mkdir()
    moments = random.Random(11)  # noqa: S311 - repeatable
    return replace(workshops, parent=tmp_path / "parent", moments=moments)


def _possible(ways: Sequence[Creation]) -> list[Creation]:
    """Return the ways with installed programs. In CI, all must be installed."""
    missing = {need: unmet(need) for way in ways for need in way.needs if unmet(need)}
    assert not missing or os.environ.get("CI") != "true", missing
    return [way for way in ways if missing.keys().isdisjoint(way.needs)]


def _written_later(watch: ProposalTimes, to: Path) -> str:
    """Return the files written after the proposal, and how long after."""
    entries = [Path(folder, name) for folder, _, files in os.walk(to) for name in (".", *files)]
    found = [(entry.lstat(), entry) for entry in entries]
    # A file shared with another clone by a hard link changes when that clone is created.
    written = [
        (seen.st_ctime_ns, entry.relative_to(to))
        for seen, entry in found
        if seen.st_nlink == 1 or entry.is_dir()
    ]
    when, what = max(written)
    late_ms = (when - watch.whole_at[raw(to)]) / 1e6
    return f"{to.name}: {what} {late_ms:.1f} ms later" if late_ms > 0 else ""


def _struck(
    workshop: Workshop, ways: Sequence[Creation], runs: int, sign: signal.Signals
) -> list[tuple[Creation, Path]]:
    """Create projects, using each way in turn, each disturbed at a different moment."""
    workshop.measure(ways)
    order = [ways[number % len(ways)] for number in range(runs)]
    made = [(way, way.destination(workshop.parent, next(workshop.numbers))) for way in order]
    moments = [workshop.moments.uniform(0, 1.1) for _ in made]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        ways_and_places = zip(*made, strict=True)
        list(pool.map(workshop.strike, *ways_and_places, [sign] * runs, moments))
    return made


def test_each_way_ends_in_a_proposal_of_its_kind(workshop: Workshop, sizes: Sizes) -> None:
    ways = _possible(sizes.pick(test=WAYS[::3], check=WAYS, soak=WAYS))
    with _watched(workshop.parent) as watch:
        made = [(way, way.destination(workshop.parent, next(workshop.numbers))) for way in ways]
        with ThreadPoolExecutor(2) as pool:
            assert len(list(pool.map(lambda one: workshop.make(*one), made))) == len(ways)
        watch.wait_for(*(raw(to) for _, to in made))
        live = watch.live()
        assert {way.name: live[raw(to)].kind for way, to in made} == {
            way.name: way.kind for way in ways
        }
        assert not [late for _, to in made if (late := _written_later(watch, to))]
    with _watched(workshop.parent) as fresh:
        fresh.wait_for(*(raw(to) for _, to in made))
        found = {path: (seen.kind, seen.main_checkout) for path, seen in fresh.live().items()}
        assert found == {path: (seen.kind, seen.main_checkout) for path, seen in live.items()}


def test_a_project_stopped_for_a_second_is_proposed_once_it_is_complete(
    workshop: Workshop, sizes: Sizes
) -> None:
    ways = _possible(sizes.pick(test=WAYS[::6], check=WAYS, soak=WAYS))
    with _watched(workshop.parent) as watch:
        runs = sizes.pick(test=len(ways), check=60, soak=180)
        made = _struck(workshop, ways, runs, signal.SIGSTOP)
        watch.wait_for(*(raw(to) for _, to in made))
        assert not [late for _, to in made if (late := _written_later(watch, to))]


def test_control_without_the_checks_a_copy_is_proposed_too_early(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the test above would prove nothing."""
    monkeypatch.setattr(candidate, "is_complete_copy", lambda _path, _kind: True)
    monkeypatch.setattr(kinds, "interrupted_copy", lambda _path, _kind: None)
    ways = [way for way in WAYS if way.name in ("cp -a", "tar x")]
    with _watched(workshop.parent, lambda _paths: frozenset()) as watch:

        def too_early() -> list[Path]:
            made = _struck(workshop, ways, 10, signal.SIGSTOP)
            watch.wait(lambda: all(raw(to) in watch.whole_at for _, to in made))
            return [to for _, to in made if _written_later(watch, to)]

        assert until(too_early)


def _is_whole(workshop: Workshop, way: Creation, to: Path) -> bool:
    """Return whether it equals an undisturbed project, checked without rootsd's code."""
    sample = way.destination(workshop.origins.folder, 0)
    if way.kind is ProjectKind.GIT_BARE or way.name == "clone -n":
        return _head(to) == _head(sample)
    return _is_same(filecmp.dircmp(sample, to, ignore=sorted(_VCS)))


def _is_same(compared: filecmp.dircmp[str]) -> bool:
    if compared.left_only or compared.right_only or compared.diff_files or compared.funny_files:
        return False
    return all(map(_is_same, compared.subdirs.values()))


def _head(repository: Path) -> str | None:
    """Return the commit if everything that belongs to it exists."""
    reported = ""
    for check in (["fsck", "--connectivity-only"], ["rev-parse", "HEAD"]):
        done = subprocess.run(
            ["git", *check], cwd=repository, capture_output=True, text=True, check=False
        )
        if done.returncode:
            return None
        reported = done.stdout
    return reported


def _is_like_another_way(to: Path) -> bool:
    """Return whether it equals the result of `git init`, `git clone --no-checkout`, a clone whose
    submodules nobody wants, or `fossil open --empty`.

    These are complete, so a `git clone --recurse-submodules` that was killed between two
    submodules and a `fossil open` that was killed before its first file are proposed, too. Nothing
    on the disk tells them apart. `rootsd show` lists each submodule that is not there.
    """
    if {entry.name for entry in to.iterdir()} == {".fslckout"}:
        return True
    config = to / ".git" / "config"
    bare = to / "config"
    text = next((file.read_text() for file in (config, bare) if file.exists()), None)
    objects = [*to.glob(".git/objects/*/*"), *to.glob("objects/*/*")]
    if text is not None and "[remote" not in text and not objects:
        return True
    if {entry.name for entry in to.iterdir()} == {".git"} and _head(to) is not None:
        return True
    parts = {path.name for path in to.glob(".git/modules/**/*")}
    is_begun = any(name.endswith(".lock") or name.startswith("tmp_") for name in parts)
    return (to / ".gitmodules").exists() and not is_begun and _is_clean(to)


def _is_clean(work: Path) -> bool:
    """Return whether every tracked file is there, and every one of checked-out submodules.

    If one submodule cannot be cloned, git leaves others as they are: cloned, and not checked out.
    """
    status = "git status --porcelain --ignore-submodules=all"
    each = f'[ ! -e "$(git rev-parse --git-dir)/index" ] || {status}'
    for command in (status.split(), ["git", "submodule", "foreach", "-q", "--recursive", each]):
        done = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)
        if done.returncode or done.stdout:
            return False
    return _head(work) is not None


def _settled_after_kills(
    workshop: Workshop, watch: ProposalTimes, made: list[tuple[Creation, Path]]
) -> None:
    there = {raw(to) for _, to in made if _has_begun(to)}
    watch.wait(lambda: {o.path for o in watch.all if isinstance(o, ProjectObserved)} >= there)


def _has_begun(to: Path) -> bool:
    """Return whether a folder there already identifies itself as a repository."""
    names = {entry.name for entry in to.iterdir()} if to.exists() else set()
    return not names.isdisjoint(_VCS) or names >= {"HEAD", "objects", "refs"}


def test_a_killed_project_is_never_proposed_as_complete(workshop: Workshop, sizes: Sizes) -> None:
    ways = [way for way in WAYS if way.in_parts and way.shows_interruption]
    ways = _possible(sizes.pick(test=ways[1::5], check=ways, soak=ways))
    with _watched(workshop.parent) as watch:
        runs = sizes.pick(test=len(ways), check=60, soak=180)
        made = _struck(workshop, ways, runs, signal.SIGKILL)
        _settled_after_kills(workshop, watch, made)
        proposed = [(way, to) for way, to in made if raw(to) in watch.whole_at]
        broken = [
            to.name for way, to in proposed
            if not _is_whole(workshop, way, to) and not _is_like_another_way(to)
        ]  # fmt: skip
        assert not broken
        live = watch.live()
        assert all(seen.incomplete for path, seen in live.items() if path not in watch.whole_at)


def test_control_without_the_states_a_killed_project_is_proposed(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the test above would prove nothing."""
    monkeypatch.setattr(candidates, "project_state", lambda _path, kind: CompleteProject(kind))
    monkeypatch.setattr(candidate, "is_complete_copy", lambda _path, _kind: True)
    monkeypatch.setattr(kinds, "interrupted_copy", lambda _path, _kind: None)
    ways = [way for way in WAYS if way.name in ("clone", "cp -a")]
    with _watched(workshop.parent, lambda _paths: frozenset()) as watch:

        def broken() -> list[Path]:
            made = _struck(workshop, ways, 10, signal.SIGKILL)
            _settled_after_kills(workshop, watch, made)
            proposed = [(way, to) for way, to in made if raw(to) in watch.whole_at]
            return [to for way, to in proposed if not _is_whole(workshop, way, to)]

        assert until(broken)


def test_an_interrupted_clone_that_continues_is_proposed(workshop: Workshop) -> None:
    made, to = workshop.origins.folder / "one", workshop.parent / "one"
    with _watched(workshop.parent) as watch:
        git("init", made)
        git("remote", "add", "origin", workshop.origins.url, cwd=made)
        (made / ".git" / "objects" / "pack" / "tmp_pack_x").touch()
        made.rename(to)
        watch.wait(lambda: raw(to) in watch.live())
        assert watch.live()[raw(to)].incomplete is IncompleteReason.INTERRUPTED
        assert raw(to) not in watch.whole_at
        (to / ".git" / "objects" / "pack" / "tmp_pack_x").unlink()
        git("fetch", "origin", cwd=to)
        git("checkout", "-b", "main", "origin/main", cwd=to)
        watch.wait_for(raw(to))
