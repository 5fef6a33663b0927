"""Where a limit is reached, the setting that is named is never one that is there already."""

from __future__ import annotations

from pathlib import Path

import pytest

from rootsd.host.watch.limits import Limit, granted, setting_for_more


def test_a_limit_is_read(tmp_path: Path) -> None:
    (tmp_path / "max_user_watches").write_text("8192\n")
    assert granted(Limit.WATCHES, str(tmp_path)) == 8192
    assert granted(Limit.INSTANCES, str(tmp_path)) is None


@pytest.mark.parametrize(
    ("limit", "now", "setting"),
    [
        (Limit.WATCHES, None, "fs.inotify.max_user_watches=524288"),
        (Limit.WATCHES, 8_192, "fs.inotify.max_user_watches=524288"),
        (Limit.WATCHES, 524_288, "fs.inotify.max_user_watches=2097152"),
        (Limit.INSTANCES, 128, "fs.inotify.max_user_instances=512"),
        (Limit.INSTANCES, 1_024, "fs.inotify.max_user_instances=4096"),
    ],
)
def test_more_is_more_than_now(limit: Limit, now: int | None, setting: str) -> None:
    assert setting_for_more(limit, now) == setting
