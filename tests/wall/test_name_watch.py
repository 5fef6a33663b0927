"""Noticing that the name of a socket may have disappeared."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from rootsd.net import listener
from rootsd.net.listener import PollingNameWatch, watch_socket_names

HANG_GUARD_S = 60


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "run" / "pub").mkdir(parents=True)
    (tmp_path / "run" / "pub" / "a.sock").touch()
    return tmp_path / "run"


LOSSES: dict[str, Callable[[Path], object]] = {
    "removed": lambda run: (run / "pub" / "a.sock").unlink(),
    "renamed": lambda run: (run / "pub" / "a.sock").rename(run / "b.sock"),
    "its folder removed": lambda run: shutil.rmtree(run / "pub"),
    "its folder renamed": lambda run: (run / "pub").rename(run / "pub2"),
    "the folder above removed": shutil.rmtree,
    "the folder above renamed": lambda run: run.rename(run.with_name("run2")),
}


@pytest.mark.needs("linux")
@pytest.mark.parametrize("lose", LOSSES.values(), ids=LOSSES)
async def test_each_way_to_lose_the_name_is_noticed(
    place: Path, lose: Callable[[Path], object]
) -> None:
    with closing(watch_socket_names([bytes(place / "pub" / "a.sock")])) as watch:
        assert not isinstance(watch, PollingNameWatch)
        lose(place)
        with anyio.fail_after(HANG_GUARD_S):
            await watch.wait()


@pytest.mark.needs("linux")
async def test_new_files_beside_it_cause_no_wakeup(place: Path) -> None:
    with closing(watch_socket_names([bytes(place / "pub" / "a.sock")])) as watch:
        (place / "pub" / "other").touch()
        (place / "lock").write_text("x")
        (place / "pub" / "a.sock").unlink()
        await watch.wait()
        with anyio.move_on_after(0.05) as nothing_more:
            await watch.wait()
        assert nothing_more.cancelled_caught


@pytest.mark.needs("linux")
async def test_a_missing_folder_is_not_an_error(tmp_path: Path) -> None:
    with closing(watch_socket_names([bytes(tmp_path / "run" / "pub" / "a.sock")])) as watch:
        assert not isinstance(watch, PollingNameWatch)


async def test_without_events_the_name_is_checked_periodically(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    monkeypatch.setattr(listener, "_MAX_PAUSE_S", 0.001)
    with closing(watch_socket_names([b"/nowhere"])) as watch, anyio.fail_after(HANG_GUARD_S):
        await watch.wait()
