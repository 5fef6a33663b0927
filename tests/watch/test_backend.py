"""The choice of a watcher: the best one for this system, or polling."""

from __future__ import annotations

import errno

import pytest

from rootsd.watch import backend
from rootsd.watch.backend import best_watcher
from rootsd.watch.events import PostResolver, Watcher
from rootsd.watch.inotify import InotifyWatcher
from rootsd.watch.polling import PollingWatcher

pytestmark = pytest.mark.needs("linux")


def _post(_signal: object) -> None:
    pass


def test_linux_has_inotify() -> None:
    watcher = best_watcher(_post)
    watcher.start()
    watcher.stop()
    assert isinstance(watcher, InotifyWatcher)


def test_polling_replaces_inotify_if_no_instance_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    def used_up(_post: PostResolver) -> Watcher:
        raise OSError(errno.EMFILE, "inotify instance limit reached")

    monkeypatch.setattr(backend, "InotifyWatcher", used_up)
    assert isinstance(best_watcher(_post), PollingWatcher)
