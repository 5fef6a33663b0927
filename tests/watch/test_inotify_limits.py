"""The suggested sysctl setting is always above the current limit."""

from __future__ import annotations

from pathlib import Path

import pytest

from rootsd.watch.inotify_limits import InotifyLimit, read_inotify_limit, sysctl_to_raise


def test_a_limit_is_read(tmp_path: Path) -> None:
    (tmp_path / "max_user_watches").write_text("8192\n")
    assert read_inotify_limit(InotifyLimit.WATCHES, str(tmp_path)) == 8192
    assert read_inotify_limit(InotifyLimit.INSTANCES, str(tmp_path)) is None


@pytest.mark.parametrize(
    ("limit", "now", "setting"),
    [
        (InotifyLimit.WATCHES, None, "fs.inotify.max_user_watches=524288"),
        (InotifyLimit.WATCHES, 8_192, "fs.inotify.max_user_watches=524288"),
        (InotifyLimit.WATCHES, 524_288, "fs.inotify.max_user_watches=2097152"),
        (InotifyLimit.INSTANCES, 128, "fs.inotify.max_user_instances=512"),
        (InotifyLimit.INSTANCES, 1_024, "fs.inotify.max_user_instances=4096"),
    ],
)
def test_the_suggested_limit_is_above_the_current_one(
    limit: InotifyLimit, now: int | None, setting: str
) -> None:
    assert sysctl_to_raise(limit, now) == setting
