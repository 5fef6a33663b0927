"""The policy in force follows its file, also when it is broken, repaired, or removed."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import anyio
import pytest

from rootsd.config.policy import load_policy
from rootsd.core.policy import NO_POLICY, MachinePolicy
from rootsd.core.wall import ProtectionPolicy, WallSettings
from rootsd.daemon.policy import ReloadablePolicy
from support.taken_values import TakenValues

HANG_GUARD = 30
NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
VALID = "version = 1\n"
REQUIRED = VALID + "[confine]\nrequired = true\n"
Taken = TakenValues[MachinePolicy, str]
pytestmark = [pytest.mark.needs("linux"), pytest.mark.needs("root")]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The path of a policy that does not exist yet; nor does its folder."""
    return tmp_path / "rootsd" / "policy.toml"


@asynccontextmanager
async def following(file: Path) -> AsyncIterator[tuple[ReloadablePolicy, Taken]]:
    policy = ReloadablePolicy(bytes(file), load_policy(bytes(file)), lambda: NOON, retry_s=0.01)
    taken = Taken()
    async with anyio.create_task_group() as group:
        await group.start(policy.keep_reloading, taken.over)
        yield policy, taken
        group.cancel_scope.cancel()


def write(file: Path, text: str, mode: int = 0o644) -> None:
    file.parent.mkdir(mode=0o755, exist_ok=True)
    file.touch()
    file.chmod(mode)
    file.write_text(text)


async def test_a_policy_that_appears_changes_and_goes_takes_effect(file: Path) -> None:
    async with following(file) as (policy, taken):
        assert policy.status() is None
        write(file, REQUIRED)
        await taken.until(lambda found: found.requires_wall)
        shown = policy.status()
        assert shown is not None
        assert (shown["file"], shown["requires_wall"], shown["error"]) == (str(file), True, None)
        write(file, VALID)
        await taken.until(lambda found: found == MachinePolicy(is_present=True))
        os.unlink(file)
        await taken.until(lambda found: found is NO_POLICY)
        assert policy.status() is None
    assert taken.notes[-1] == "no policy"


async def test_a_broken_policy_takes_effect_and_is_repaired_by_a_mode_alone(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(file, REQUIRED)
    async with following(file) as (policy, taken):
        write(file, VALID, 0o666)
        await taken.until(lambda found: bool(found.problem))
        shown = policy.status()
        assert shown is not None
        assert str(file) in (shown["error"] or "")
        assert shown["remedy"] == f"sudo chmod go-w {file}"
        os.chmod(file, 0o644)  # no watch reports this
        await taken.until(lambda found: not found.problem)
        repaired = policy.status()
        assert repaired is not None
        assert repaired["error"] is None
    assert [r.levelno for r in caplog.records if "cannot be used" in r.message] == [logging.ERROR]


async def test_a_file_of_another_user_is_broken_until_root_owns_it(file: Path) -> None:
    write(file, VALID)
    os.chown(file, 12345, 0)
    async with following(file) as (policy, taken):
        assert policy.policy.problem
        os.chown(file, 0, 0)
        await taken.until(lambda found: not found.problem)


async def test_a_reload_without_a_change_applies_nothing(file: Path) -> None:
    write(file, VALID)
    policy = ReloadablePolicy(bytes(file), load_policy(bytes(file)), lambda: NOON)
    taken = Taken()
    await policy.reload(taken.over)
    assert taken.values == []
    write(file, "")
    await policy.reload(taken.over)
    assert [bool(found.problem) for found in taken.values] == [True]


@pytest.mark.parametrize(("text", "is_closed"), [(VALID, False), (REQUIRED, True), ("", True)])
async def test_the_users_settings_do_not_open_a_required_wall(
    file: Path, text: str, *, is_closed: bool
) -> None:
    write(file, text)
    policy = ReloadablePolicy(bytes(file), load_policy(bytes(file)), lambda: NOON)
    users = WallSettings(
        (b"/r",),
        (b"/w",),
        (b"/k",),
        (b"/h",),
        protect=ProtectionPolicy.NONE,
        network=False,
        default=True,
    )
    closed = WallSettings(hide=(b"/h",), network=False, default=True)
    assert policy.wall_settings(users) == (closed if is_closed else users)
