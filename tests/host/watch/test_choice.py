"""The best watcher of this system, and polling where there is none left."""

from __future__ import annotations

import errno

import pytest

from rootsd.host.watch import choice
from rootsd.host.watch.choice import best_watcher
from rootsd.host.watch.events import Post, Watcher
from rootsd.host.watch.inotify import InotifyWatcher
from rootsd.host.watch.polling import PollingWatcher

pytestmark = pytest.mark.needs("linux")


def _post(_signal: object) -> None:
    pass


def test_linux_has_inotify() -> None:
    watcher = best_watcher(_post)
    watcher.start()
    watcher.stop()
    assert isinstance(watcher, InotifyWatcher)


def test_without_an_inotify_instance_there_is_polling(monkeypatch: pytest.MonkeyPatch) -> None:
    def used_up(_post: Post) -> Watcher:
        raise OSError(errno.EMFILE, "inotify instance limit reached")

    monkeypatch.setattr(choice, "InotifyWatcher", used_up)
    assert isinstance(best_watcher(_post), PollingWatcher)
