"""Chooses the best watcher that this system has."""

from __future__ import annotations

import sys

from rootsd.host.watch.events import Post, Watched, Watcher
from rootsd.host.watch.polling import PollingWatcher

if sys.platform == "linux":
    from rootsd.host.watch.inotify import InotifyWatcher

    def best_watcher(post: Post) -> Watcher:
        """inotify, or polling if the user's inotify instances are used up."""
        try:
            return InotifyWatcher(post)
        except OSError:
            return PollingWatcher(Watched.NO_INSTANCE)

elif sys.platform == "darwin":
    from rootsd.host.watch.fsevents import FSEventsWatcher

    def best_watcher(post: Post) -> Watcher:
        """FSEvents, which every macOS has."""
        return FSEventsWatcher(post)

else:

    def best_watcher(post: Post) -> Watcher:  # noqa: ARG001
        """No watcher is known for this system."""
        return PollingWatcher()
