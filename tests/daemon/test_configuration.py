"""The configuration in force follows its file."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import anyio
import pytest

from rootsd.config.configuration import Config, parse_config, read_config
from rootsd.core.changes import AuditNote, ChangeVerb
from rootsd.core.errors import BadConfig
from rootsd.core.paths import text_of
from rootsd.daemon.configuration import (
    IN_FORCE_FILE,
    ReloadableConfig,
    describe_changes,
)
from support.sample_decisions import PERSON
from support.taken_values import TakenValues

HANG_GUARD = 30
NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
pytestmark = pytest.mark.needs("linux")
Taken = TakenValues[Config, Sequence[AuditNote]]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("a", "b"):
        Path(tmp_path, name).mkdir()
    return tmp_path


@asynccontextmanager
async def following(file: Path) -> AsyncIterator[tuple[ReloadableConfig, Taken]]:
    configuration = ReloadableConfig(
        bytes(file), read_config(bytes(file)), lambda: NOON, debounce_s=0.01
    )
    taken = Taken()
    async with anyio.create_task_group() as group:
        group.start_soon(configuration.keep_reloading, taken.over)
        await anyio.lowlevel.checkpoint()
        yield configuration, taken
        group.cancel_scope.cancel()


def parent(path: Path, more: str = "") -> str:
    return f'[[parent]]\npath = "{path}"\n{more}'


def has(*paths: Path) -> Callable[[Config], bool]:
    return lambda config: {each.path for each in config.parents} == set(map(bytes, paths))


async def test_a_change_of_the_file_and_its_replacement_by_an_editor_take_effect(
    home: Path,
) -> None:
    file = home / "config.toml"
    file.write_text(parent(home / "a"))
    async with following(file) as (configuration, taken):
        file.write_text(parent(home / "a") + parent(home / "b"))
        await taken.until(has(home / "a", home / "b"))
        status = configuration.status()
        assert status["changes"] == [f"parent {home}/b added"]
        assert status["checksum"] == read_config(bytes(file)).checksum
        assert (status["file"], status["error"]) == (str(file), None)
        for name in ("a", "b", "a"):
            fresh = home / "fresh"
            fresh.write_text(parent(home / name))
            fresh.rename(file)
            await taken.until(has(home / name))


async def test_a_change_before_the_start_of_following_takes_effect(home: Path) -> None:
    file = home / "config.toml"
    configuration, taken = (
        ReloadableConfig(bytes(file), Config(), lambda: NOON),
        Taken(),
    )
    file.write_text(parent(home / "a"))
    async with anyio.create_task_group() as group:
        await group.start(configuration.keep_reloading, taken.over)
        assert [has(home / "a")(config) for config in taken.values] == [True]
        group.cancel_scope.cancel()


async def test_a_folder_created_later_is_followed(home: Path) -> None:
    file = home / ".config" / "rootsd" / "config.toml"
    async with following(file) as (_, taken):
        file.parent.mkdir(parents=True)
        file.write_text(parent(home / "a"))
        await taken.until(has(home / "a"))
        file.write_text(parent(home / "b"))
        await taken.until(has(home / "b"))


async def test_a_link_is_followed_to_its_target_and_to_a_new_target(home: Path) -> None:
    (home / "dotfiles").mkdir()
    (home / "dotfiles" / "one.toml").write_text(parent(home / "a"))
    (home / "dotfiles" / "two.toml").write_text(parent(home / "b"))
    file = home / "config.toml"
    file.symlink_to("dotfiles/one.toml")
    async with following(file) as (_, taken):
        (home / "dotfiles" / "one.toml").write_text(parent(home / "a", "depth = 2\n"))
        await taken.until(lambda config: config.parents[0].depth == 2)
        (home / "fresh").symlink_to("dotfiles/two.toml")
        (home / "fresh").rename(file)
        await taken.until(has(home / "b"))


async def test_an_invalid_file_changes_nothing_and_is_reported_until_fixed(
    home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = home / "config.toml"
    file.write_text(parent(home / "a"))
    async with following(file) as (configuration, taken):
        file.write_text(parent(home / "a", "dpeth = 2\n"))
        with pytest.raises(BadConfig):
            await configuration.reload(taken.over)
        (told,) = configuration.degraded()
        assert "line 3, key parent[0].dpeth: there is no such key; did you mean depth?" in told
        assert has(home / "a")(configuration.config)
        assert taken.values == []
        file.write_text(parent(home / "a", "depth = 2\n"))
        await taken.until(lambda config: config.parents[0].depth == 2)
        assert configuration.degraded() == []


async def test_an_unchanged_file_is_not_applied_again_and_a_comment_changes_only_the_text(
    home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    file = home / "config.toml"
    file.write_text(parent(home / "a"))
    configuration, taken = ReloadableConfig(bytes(file), Config(), lambda: NOON), Taken()
    for _ in range(2):
        await configuration.reload(taken.over)
    assert len(taken.values) == 1
    first = configuration.status()["checksum"]
    file.write_text("# mine\n" + parent(home / "a"))
    await configuration.reload(taken.over)
    assert configuration.status()["changes"] == []
    assert configuration.status()["checksum"] != first
    assert "no setting changed" in caplog.text


async def test_changes_are_recorded_with_the_caller(home: Path) -> None:
    file = home / "config.toml"
    a, b = bytes(home / "a"), bytes(home / "b")
    configuration, taken = (
        ReloadableConfig(bytes(file), Config(), lambda: NOON),
        Taken(),
    )
    for path, depth in (("a", 2), ("a", 2), ("a", 3), ("b", 2)):
        file.write_text(parent(home / path, f"depth = {depth}\n"))
        await configuration.reload(taken.over, PERSON)
    assert [change for changes in taken.notes for change in changes] == [
        AuditNote(ChangeVerb.PARENT_ADDED, text_of(a), PERSON),
        AuditNote(ChangeVerb.CONFIGURATION_CHANGED, f"parent {home}/a changed: depth", PERSON),
        AuditNote(ChangeVerb.PARENT_ADDED, text_of(b), PERSON),
        AuditNote(ChangeVerb.PARENT_REMOVED, text_of(a), PERSON),
    ]


def changes() -> Iterator[tuple[str, str, str]]:
    a, b = '[[parent]]\npath = "/srv/a"\n', '[[parent]]\npath = "/srv/b"\n'
    yield a, b, "parent /srv/b added; parent /srv/a removed"
    yield a, a + 'depth = 2\nskip = ["x"]\n', "parent /srv/a changed: depth, skip"
    yield a, a + '[roots]\nrefuse = ["/srv/x"]\n', "roots.refuse changed"
    yield a, a + "[sessions]\nmax_connections = 9\n", "sessions changed"
    yield a, a + '[approval]\nagents = ["x"]\n', "approval.agents changed"
    yield a, a + "[notify]\nenabled = false\n", "notify changed"
    yield "", '[approval]\nguard = "off"\n', "approval.guard changed, which counts for a new store"
    yield a, a + "# a comment\n", ""


@pytest.mark.parametrize(("old", "new", "told"), list(changes()))
def test_each_change_is_described(home: Path, old: str, new: str, told: str) -> None:
    said = "; ".join(describe_changes(parse_config(old, b"c"), parse_config(new, b"c")))
    assert said.startswith(told)
    assert bool(said) == bool(told)


async def test_the_next_start_knows_what_changed_while_no_daemon_ran(home: Path) -> None:
    file, state = home / "config.toml", home / "state"
    state.mkdir(mode=0o700)

    def started() -> list[AuditNote]:
        config = read_config(bytes(file))
        configuration = ReloadableConfig(bytes(file), config, lambda: NOON)
        changes = [*configuration.changes_since(state)]
        configuration.keep_copy(state, config)
        return changes

    assert started() == [], "the first start has nothing to compare with"
    file.write_text('[[parent]]\npath = "~/a"\n')
    assert started() == [AuditNote(ChangeVerb.PARENT_ADDED, text_of(bytes(home / "a")), None)]
    assert started() == [], "the control: each change is told once"
    file.write_text('[[parent]]\npath = "~/b"\n[notify]\nenabled = false\n')
    assert started() == [
        AuditNote(ChangeVerb.PARENT_ADDED, text_of(bytes(home / "b")), None),
        AuditNote(ChangeVerb.PARENT_REMOVED, text_of(bytes(home / "a")), None),
        AuditNote(ChangeVerb.CONFIGURATION_CHANGED, "notify changed", None),
    ]
    file.unlink()
    assert len(started()) == 2
    (state / IN_FORCE_FILE).write_bytes(b"\xff[")
    assert started() == [], "a copy that cannot be read tells nothing"


async def test_no_copy_is_kept_of_a_file_that_changed_since_it_was_read(home: Path) -> None:
    file, state = home / "config.toml", home / "state"
    state.mkdir(mode=0o700)
    file.write_text('[[parent]]\npath = "~/a"\n')
    config = read_config(bytes(file))
    file.write_text('[[parent]]\npath = "~/b"\n')
    ReloadableConfig(bytes(file), config, lambda: NOON).keep_copy(state, config)
    assert not (state / IN_FORCE_FILE).exists()
